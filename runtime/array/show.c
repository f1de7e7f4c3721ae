/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays as text and pictures: the public printing functions, on top of format.c, draw.c and printf.c. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/draw.h"
#include "array/format.h"
#include "array/printf.h"
#include <stdio.h>
#include <string.h>

static bool addressable(oly_array x, void *data)
{
    return oly_array_fetch(x, data) == OLY_OK;
}

/* As JAX: an array that cannot be fetched prints its type. */
static void text_of_remote(oly_text *t, oly_array x)
{
    oly_text_add(t, "Array(shape=(");
    for (int d = 0; d < x->type.rank; d++)
        oly_text_add(t, "%s%lld%s", d ? ", " : "", (long long)x->type.shape[d], x->type.rank == 1 ? "," : "");
    oly_text_add(t, "), dtype=%s)", oly_dtype_name(x->type.dtype));
}

static oly_status array_text(oly_text *t, oly_array x, char letter)
{
    if (x->graph) {
        oly_text_add(t, "Traced<");
        oly_type_text(t, &x->type);
        oly_text_add(t, ">");
        return OLY_OK;
    }
    OLY_TRY(oly_array_readable(x));
    size_t bytes = (size_t)oly_type_size(&x->type) * oly_dtype_size(x->type.dtype);
    void *data = oly_malloc(bytes + 1);
    oly_status st = OLY_OK;
    if (!data)
        return oly_out_of_memory(bytes, "printing an array");
    if (!addressable(x, data)) {
        oly_drop_message();
        text_of_remote(t, x);
    } else if (letter == 'R') {
        st = oly_format_repr(t, x->type.dtype, x->type.weak, x->type.rank, x->type.shape, data);
    } else if (letter == 'A' && x->type.rank == 0) {
        st = oly_format_scalar(t, x->type.dtype, data);
    } else {
        st = oly_format_str(t, x->type.dtype, x->type.rank, x->type.shape, data);
    }
    oly_release(data);
    return st;
}

static oly_status handle(oly_text *t, char letter, void *object)
{
    char buffer[1024];
    buffer[0] = 0;
    if (!object) {
        oly_text_add(t, "None");
        return OLY_OK;
    }
    oly_handle kind = letter == 'D'   ? OLY_HANDLE_DEVICE
                      : letter == 'M' ? OLY_HANDLE_MESH
                      : letter == 'S' ? OLY_HANDLE_SHARDING
                                      : OLY_HANDLE_ARRAY;
    if (!oly_lives_there(object, kind) && !(kind == OLY_HANDLE_ARRAY && oly_died_there(object, kind)))
        return oly_wrong_handle(object, kind);
    switch (letter) {
    case 'A':
    case 'R': return array_text(t, object, letter);
    case 'T': oly_typeof(object, buffer, sizeof buffer); break;
    case 'D': oly_device_str(object, buffer, sizeof buffer); break;
    case 'M': oly_mesh_str(object, buffer, sizeof buffer); break;
    default: oly_sharding_str(object, buffer, sizeof buffer); break;
    }
    oly_text_add(t, "%s", buffer);
    return OLY_OK;
}

static int print_v(FILE *file, const char *format, va_list arguments)
{
    oly_text t = {0};
    oly_status st =
        format ? oly_text_format(&t, format, arguments, handle) : oly_fail(OLY_INVALID, "the format is NULL");
    if (st == OLY_OK && t.failed)
        st = oly_out_of_memory(t.length, "a line of text");
    int n = (int)t.length;
    if (st == OLY_OK && fwrite(oly_text_chars(&t), 1, t.length, file) != t.length)
        st = oly_fail(OLY_IO, "writing %zu bytes of text failed", t.length);
    fflush(file); /* so that lines of several processes do not mix */
    oly_text_free(&t);
    return oly_raise(st) == OLY_OK ? n : -1;
}

int oly_printf(const char *format, ...)
{
    OLY_ENTER(-1);
    va_list arguments;
    va_start(arguments, format);
    int n = print_v(stdout, format, arguments);
    va_end(arguments);
    return n;
}

int oly_fprintf(FILE *file, const char *format, ...)
{
    OLY_ENTER(-1);
    if (!file) {
        oly_raise(oly_fail(OLY_INVALID, "the file is NULL"));
        return -1;
    }
    va_list arguments;
    va_start(arguments, format);
    int n = print_v(file, format, arguments);
    va_end(arguments);
    return n;
}

static int text_into(oly_array x, char letter, char *buffer, size_t size)
{
    oly_text t = {0};
    if (!x)
        return -1;
    oly_status st = array_text(&t, x, letter);
    if (oly_raise(st) != OLY_OK) {
        oly_text_free(&t);
        return -1;
    }
    return oly_text_take(&t, buffer, size);
}

int oly_array_str(oly_array x, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_array(x) != OLY_OK)
        return -1;
    return text_into(x, 's', buffer, size);
}
int oly_array_repr(oly_array x, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_array(x) != OLY_OK)
        return -1;
    return text_into(x, 'R', buffer, size);
}

/* -- drawings ---------------------------------------------------------------------------------------------------------------- */

static oly_status draw(FILE *file, oly_sharding s, int rank, const int64_t *shape)
{
    if (!file || (rank > 0 && !shape))
        return oly_fail(OLY_INVALID, "the %s is NULL", file ? "shape" : "file");
    if (rank < 1 || rank > 2)
        return oly_fail(OLY_SHAPE, "only arrays of 1 or 2 dimensions can be drawn, not %d", rank);
    OLY_TRY(oly_sharding_check_rank(s, rank));
    int n = s->mesh->n_devices;
    int64_t *starts = oly_malloc(sizeof(int64_t) * (size_t)(2 * n + 2)),
            *extents = oly_malloc(sizeof(int64_t) * (size_t)(2 * n + 2));
    int *ids = oly_malloc(sizeof(int) * (size_t)(n + 1));
    oly_text t = {0};
    oly_status st = OLY_OK;
    if (!starts || !extents || !ids)
        st = oly_out_of_memory(sizeof(int64_t) * 2 * (size_t)n, "a drawing");
    oly_layout l = oly_layout_canonical(s, rank, shape);
    for (int p = 0; p < n && st == OLY_OK; p++) {
        oly_box b = oly_layout_box(&l, p);
        ids[p] = oly_mesh_device_number(s->mesh, p);
        for (int d = 0; d < rank; d++) {
            starts[p * rank + d] = b.lo[d];
            extents[p * rank + d] = b.hi[d] - b.lo[d];
        }
    }
    if (st == OLY_OK)
        st =
            oly_draw_sharding(&t, strcmp(oly_device_platform(oly_mesh_device(s->mesh, 0)), "cuda") == 0 ? "GPU" : "CPU",
                              rank, shape, n, starts, extents, ids);
    if (st == OLY_OK)
        fputs(oly_text_chars(&t), file);
    fflush(file);
    oly_text_free(&t);
    oly_release(starts);
    oly_release(extents);
    oly_release(ids);
    return st;
}

oly_status(oly_visualize_sharding)(FILE *file, oly_sharding s, int rank, const int64_t *shape)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(s, OLY_HANDLE_SHARDING));
    return oly_raise(draw(file, s, rank, shape));
}

oly_status(oly_visualize)(FILE *file, oly_array x)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = x->graph ? oly_array_readable(x) : draw(file, x->sharding, x->type.rank, x->type.shape);
    return oly_raise(st);
}
