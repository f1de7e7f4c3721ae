/* SPDX-License-Identifier: BSD-3-Clause */
/* One process's value on all, and each process's on all: oly_broadcast_one_to_all, oly_process_allgather_stacked and _tiled,
 * oly_assert_equal, and the same for host memory. Before any data moves all processes exchange a card that says what each
 * contributes, so that they come to the same verdict. */
#include "array/arguments.h"
#include "array/origin.h"
#include "array/processes/between.h"
#include "core/error.h"
#include "core/hash.h"
#include "device/platform.h"
#include <olympus/processes.h>
#include <string.h>

/* What a process contributes. Without padding: its bytes are sent. */
typedef struct card {
    int64_t failed; /* an oly_status: it cannot take part, and says why itself */
    int64_t dtype, rank, shape[OLY_MAX_RANK];
    int64_t elsewhere; /* parts of the array are on other processes */
    int64_t is_source;
    uint64_t contents; /* hash of the value, where it is compared; else 0 */
} card;

static bool same_type(const card *a, const card *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

static oly_type type_of(const card *c)
{
    oly_type type = {.dtype = (oly_dtype)c->dtype, .rank = (int)c->rank};
    memcpy(type.shape, c->shape, sizeof type.shape);
    return type;
}

static oly_status types_differ(const card *zero, int rank, const card *other)
{
    char first[96];
    oly_type a = type_of(zero), b = type_of(other);
    snprintf(first, sizeof first, "%s", oly_type_short(&a));
    return oly_fail(OLY_DIVERGED, "process 0 gives %s, process %d %s; all give the same shape and element type", first,
                    rank, oly_type_short(&b));
}

/* The message of process r, whose status is not OLY_OK, on all; a process that failed itself keeps its own. */
static oly_status share_error(int r, oly_status theirs, oly_status mine)
{
    char text[512] = "", *texts = oly_calloc((size_t)oly_mesh_processes(), sizeof text);
    if (!texts)
        return oly_between_give_up(oly_out_of_memory(sizeof text * (size_t)oly_mesh_processes(), "a message"));
    if (mine != OLY_OK)
        snprintf(text, sizeof text, "%s", oly_pending_message());
    oly_status st = oly_between_gather(text, sizeof text, texts);
    if (st == OLY_OK && mine == OLY_OK)
        st = oly_fail(theirs, "%s (on rank %d)", texts + (size_t)r * sizeof text, r);
    oly_release(texts);
    return mine != OLY_OK ? mine : st;
}

/* The cards of all processes, compared; the caller releases *all. `mine` is what this process has to say of itself. */
static oly_status show_cards(const card *own, oly_status mine, card **all)
{
    int n = oly_mesh_processes();
    card shown = *own;
    shown.failed = mine;
    *all = oly_calloc((size_t)n, sizeof **all);
    if (!*all) /* the others wait: they are notified */
        return oly_between_give_up(oly_out_of_memory(sizeof **all * (size_t)n, "what the processes contribute"));
    OLY_TRY(oly_between_gather(&shown, sizeof shown, *all));
    for (int r = 0; r < n; r++)
        if ((*all)[r].failed != OLY_OK)
            return share_error(r, (oly_status)(*all)[r].failed, mine);
    for (int r = 1; r < n; r++)
        if (!same_type(&(*all)[0], &(*all)[r]))
            return types_differ(&(*all)[0], r, &(*all)[r]);
    return OLY_OK;
}

static size_t bytes_of(const card *c)
{
    oly_type type = type_of(c);
    return (size_t)oly_type_size(&type) * oly_dtype_size(type.dtype);
}

/* The card of an array; fails if it cannot be read. */
static oly_status card_of(oly_array x, card *c)
{
    *c = (card){.dtype = x->type.dtype, .rank = x->type.rank};
    memcpy(c->shape, x->type.shape, sizeof *c->shape * (size_t)x->type.rank);
    OLY_TRY(oly_array_readable(x));
    c->elsewhere = !oly_is_fully_addressable(x) || x->n_shards == 0;
    return OLY_OK;
}

static card card_of_bytes(size_t bytes)
{
    return (card){.dtype = OLY_UINT8, .rank = 1, .shape = {(int64_t)bytes}};
}

/* Each process must have its own value. */
static oly_status check_own(const card *all, const char *remedy)
{
    for (int r = 0; r < oly_mesh_processes(); r++)
        if (all[r].elsewhere) {
            oly_type type = type_of(&all[r]);
            return oly_fail(OLY_NOT_ADDRESSABLE,
                            "%s has parts that are not on process %d, but this call takes each process's own value; %s",
                            oly_type_short(&type), r, remedy);
        }
    return OLY_OK;
}

/* -- one to all ------------------------------------------------------------------------------------------------------------ */

static oly_status find_source(const card *all, int *source)
{
    int n = 0;
    *source = 0;
    for (int r = 0; r < oly_mesh_processes(); r++)
        if (all[r].is_source) {
            if (n++)
                return oly_fail(OLY_INVALID, "processes %d and %d both say that they are the source; one may", *source,
                                r);
            *source = r;
        }
    return OLY_OK;
}

/* The value of x, on the first device of the source. */
static oly_status take_value(oly_array x, int source, oly_array *value)
{
    if (source != oly_mesh_my_process() || !oly_platform_get()->computes)
        return oly_between_from_source(&x->type, source, NULL, value);
    size_t bytes = (size_t)oly_type_size(&x->type) * oly_dtype_size(x->type.dtype);
    void *host = oly_malloc(bytes + 1);
    if (!host)
        return oly_out_of_memory(bytes, "a value for all processes");
    oly_status st = oly_array_fetch(x, host);
    if (st == OLY_OK)
        st = oly_between_from_source(&x->type, source, host, value);
    oly_release(host);
    return st;
}

static oly_status broadcast(oly_array x, bool is_source, oly_array *result)
{
    card own, *all = NULL;
    int source = 0;
    oly_array value = NULL;
    OLY_TRY(oly_between_ready());
    oly_status st = card_of(x, &own);
    own.is_source = is_source;
    st = show_cards(&own, st, &all);
    if (st == OLY_OK)
        st = check_own(all, "fetch a global array with oly_process_allgather");
    if (st == OLY_OK)
        st = find_source(all, &source);
    oly_release(all);
    OLY_TRY(st);
    st = take_value(x, source, &value);
    if (st != OLY_OK)
        return oly_between_give_up(st);
    st = oly_between_send(value, result);
    oly_free(value);
    return st;
}

oly_array oly_broadcast_one_to_all_with(oly_array x, oly_broadcast_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_array result = NULL;
    oly_raise(broadcast(x, options.is_source, &result));
    return result;
}

static oly_status broadcast_host(void *data, size_t bytes, bool is_source)
{
    card own = card_of_bytes(bytes), *all = NULL;
    int source = 0;
    oly_array value = NULL, result = NULL;
    own.is_source = is_source;
    OLY_TRY(oly_between_ready());
    oly_status st = bytes && !data ? oly_fail(OLY_INVALID, "the %zu bytes are at NULL", bytes) : OLY_OK;
    st = show_cards(&own, st, &all);
    if (st == OLY_OK)
        st = find_source(all, &source);
    oly_release(all);
    OLY_TRY(st);
    oly_type type = type_of(&own);
    if ((st = oly_between_from_source(&type, source, data, &value)) != OLY_OK)
        return oly_between_give_up(st);
    st = oly_between_send(value, &result);
    oly_free(value);
    if (st == OLY_OK && source != oly_mesh_my_process())
        st = oly_array_fetch(result, data);
    oly_free(result);
    return st;
}

oly_status oly_broadcast_host_with(void *data, size_t bytes, oly_broadcast_options options)
{
    OLY_ENTER(OLY_STATE);
    return oly_raise(broadcast_host(data, bytes, options.is_source));
}

/* -- each to all ------------------------------------------------------------------------------------------------------------- */

static oly_status check_buffer(const card *own, const void *buffer, size_t bytes)
{
    size_t need = bytes_of(own) * (size_t)oly_mesh_processes();
    if (bytes >= need && (buffer || !need))
        return OLY_OK;
    oly_type type = type_of(own);
    return oly_fail(OLY_INVALID, "the buffer of %zu bytes is too small for %s of each of %d processes, which have %zu",
                    buffer ? bytes : 0, oly_type_short(&type), oly_mesh_processes(), need);
}

/* The values of all processes, one after the other. */
static oly_status gather_values(oly_array x, size_t bytes, void *buffer)
{
    void *mine = oly_malloc(bytes + 1);
    if (!mine)
        return oly_between_give_up(oly_out_of_memory(bytes, "a value for all processes"));
    oly_status st = oly_array_fetch(x, mine);
    if (st == OLY_OK)
        st = oly_between_gather(mine, bytes, buffer);
    oly_release(mine);
    return st;
}

/* Do all say that they have a part of a global array? */
static bool is_global(const card *all)
{
    for (int r = 0; r < oly_mesh_processes(); r++)
        if (!all[r].elsewhere)
            return false;
    return true;
}

static oly_status gather(oly_array x, bool tiled, void *buffer, size_t bytes)
{
    card own, *all = NULL;
    OLY_TRY(oly_between_ready());
    oly_status st = card_of(x, &own);
    if (st == OLY_OK && !own.elsewhere)
        st = check_buffer(&own, buffer, bytes);
    st = show_cards(&own, st, &all);
    bool global = st == OLY_OK && tiled && is_global(all);
    if (st == OLY_OK && !global)
        st = check_own(all, "gather a global array with oly_process_allgather");
    oly_release(all);
    OLY_TRY(st);
    return global ? (oly_process_allgather)(x, buffer, bytes) : gather_values(x, bytes_of(&own), buffer);
}

oly_status(oly_process_allgather_stacked)(oly_array x, void *buffer, size_t bytes)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    return oly_raise(gather(x, false, buffer, bytes));
}

oly_status(oly_process_allgather_tiled)(oly_array x, void *buffer, size_t bytes)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    return oly_raise(gather(x, true, buffer, bytes));
}

oly_status(oly_allgather_host)(const void *mine, size_t bytes, void *all)
{
    OLY_ENTER(OLY_STATE);
    card own = card_of_bytes(bytes), *cards = NULL;
    oly_status st = oly_between_ready();
    if (st != OLY_OK)
        return oly_raise(st);
    if (bytes && (!mine || !all))
        st = oly_fail(OLY_INVALID, "%s is NULL", mine ? "the buffer for the bytes of all processes" : "the data");
    st = show_cards(&own, st, &cards);
    oly_release(cards);
    if (st == OLY_OK)
        st = oly_between_gather(mine, bytes, all);
    return oly_raise(st);
}

/* -- the same on all ------------------------------------------------------------------------------------------------------------- */

static oly_status hash_value(oly_array x, card *c)
{
    size_t bytes = bytes_of(c);
    void *host = oly_malloc(bytes + 1);
    if (!host)
        return oly_out_of_memory(bytes, "a value to compare");
    oly_status st = oly_array_fetch(x, host);
    if (st == OLY_OK)
        c->contents = oly_hash(bytes, host, bytes);
    oly_release(host);
    return st;
}

static oly_status assert_equal(oly_array x, const char *what)
{
    card own, *all = NULL;
    OLY_TRY(oly_between_ready());
    oly_status st = card_of(x, &own);
    if (st == OLY_OK && !own.elsewhere && oly_platform_get()->computes)
        st = hash_value(x, &own);
    st = show_cards(&own, st, &all);
    if (st == OLY_OK)
        st = check_own(all, "replicate a global array first: oly_device_put");
    for (int r = 1; st == OLY_OK && r < oly_mesh_processes(); r++)
        if (all[r].contents != all[0].contents) {
            oly_type type = type_of(&own);
            st = oly_fail(OLY_DIVERGED, "%s: the values of %s are not the same on each process (ranks 0 and %d differ)",
                          what, oly_type_short(&type), r);
        }
    oly_release(all);
    return st;
}

oly_status(oly_assert_equal)(oly_array x, const char *what)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    return oly_raise(assert_equal(x, what ? what : "oly_assert_equal"));
}
