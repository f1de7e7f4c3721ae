/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays whose shards a function of the program fills: oly_from_callback. */
#include "array/arguments.h"
#include "array/place.h"
#include "array/processes/boxes.h"
#include "array/trace.h"
#include "array/unanimous.h"
#include "core/error.h"
#include "device/platform.h"
#include <stdio.h>
#include <string.h>

/* A call, and what it makes. */
typedef struct filling {
    oly_array whole;
    oly_box *boxes; /* owned: of the local shards */
    oly_shard_function function;
    void *user;
} filling;

/* "[0:4, 8:16]" */
static void box_text(const oly_box *b, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "[");
    for (int d = 0; d < b->rank && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld:%lld", d ? ", " : "", (long long)b->lo[d],
                              (long long)b->hi[d]);
    if (n < size)
        snprintf(text + n, size - n, "]");
}

/* Did it fail, whatever it returned? */
static oly_status judge(const filling *f, const oly_box *b, oly_status returned, oly_status raised)
{
    char text[256];
    oly_status st = returned != OLY_OK ? returned : raised;
    if (st == OLY_OK)
        return OLY_OK;
    box_text(b, text, sizeof text);
    if ((unsigned)st >= OLY_N_STATUS)
        return oly_fail(OLY_INVALID, "the function that fills %s returned %d for %s; it returns an oly_status",
                        oly_type_short(&f->whole->type), (int)returned, text);
    return oly_fail(st, "the function that fills %s failed with %s for %s", oly_type_short(&f->whole->type),
                    oly_status_name(st), text);
}

static oly_status call_function(const filling *f, const oly_box *b, void *memory)
{
    oly_index_box box = oly_index_box_of(b);
    oly_site here = oly_current_site();
    unsigned before = oly_raised_count();
    oly_status returned = f->function(&box, memory, f->user), raised = oly_raised_since(before);
    oly_restore_site(here); /* it may have called Olympus */
    return judge(f, b, returned, raised);
}

static int64_t bytes_of(const filling *f, int s)
{
    return oly_box_count(&f->boxes[s]) * (int64_t)oly_dtype_size(f->whole->type.dtype);
}

/* Fills shard s, or copies an earlier one that holds the same box. */
static oly_status fill_shard(const filling *f, int s)
{
    size_t bytes = (size_t)bytes_of(f, s);
    oly_buffer *b = f->whole->shard[s] = oly_buffer_take(oly_mesh_local_device(f->whole->sharding->mesh, s), bytes);
    void *memory;
    if (!b)
        return oly_buffer_fail(bytes, "a shard");
    if (bytes == 0 || !oly_platform_get()->computes)
        return OLY_OK;
    for (int j = 0; j < s; j++)
        if (oly_box_equal(&f->boxes[j], &f->boxes[s]))
            return oly_buffer_copy(b, f->whole->shard[j], bytes);
    OLY_TRY(oly_buffer_map(b, OLY_ACCESS_WRITE, bytes, &memory));
    oly_status st = call_function(f, &f->boxes[s], memory),
               unmapped = oly_buffer_unmap(b, OLY_ACCESS_WRITE, bytes, memory);
    return st != OLY_OK ? st : unmapped;
}

/* This process's shards. *x is the array even if they fail, unless there is no memory for a handle. */
static oly_status fill(oly_sharding sharding, const oly_type *type, oly_shard_function function, void *user,
                       oly_array *x)
{
    const int *positions;
    int n = oly_mesh_local_positions(sharding->mesh, &positions);
    filling f = {oly_array_new(type, sharding, true, n), oly_malloc(sizeof *f.boxes * (size_t)(n + 1)), function, user};
    *x = f.whole;
    oly_status st =
        f.whole && f.boxes ? OLY_OK : oly_out_of_memory(sizeof *f.boxes * (size_t)n, "the parts of an array");
    oly_layout l = oly_layout_canonical(sharding, type->rank, type->shape);
    for (int s = 0; s < n && st == OLY_OK; s++) {
        f.boxes[s] = oly_layout_shard(&l, positions[s]);
        st = fill_shard(&f, s);
    }
    oly_release(f.boxes);
    return st;
}

static oly_status from_callback(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *shape,
                                oly_shard_function function, void *user, oly_array *x)
{
    oly_type type;
    OLY_TRY(oly_given_type(sharding, dtype, rank, shape, &type));
    if (!function)
        return oly_fail(OLY_INVALID, "the function that fills %s is NULL", oly_type_short(&type));
    if (oly_trace_current())
        return oly_fail(OLY_TRACE, "a function is being recorded: make the array before it is called");
    oly_status st = fill(sharding, &type, function, user, x);
    st = oly_unanimous(sharding->mesh, st);
    return st == OLY_OK ? oly_note_made(*x, 31) : st;
}

oly_array oly_from_callback(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *shape,
                            oly_shard_function function, void *user)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK || oly_need(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_array x = NULL;
    oly_status st = from_callback(sharding, dtype, rank, shape, function, user, &x);
    if (st == OLY_OK)
        return x;
    oly_free(x);
    oly_raise(st);
    return NULL;
}
