/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_check: an error where a condition does not hold. The number of the first element that fails is a minimum over all devices, so
 * that every process reports the same error; the values there are sums over devices of which one is not zero. */
#include "array/inside/inside.h"
#include "array/inside/inside_text.h"
#include "array/arguments.h"
#include "core/error.h"
#include "graph/build.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Operands of the call: whether it fails; the number of the first element that does; the values; in maps the number of the first
 * mapped element, for each. The result type in out[0] says the shape of the condition. */
enum { FAILS, WHERE, VALUES };

/* -- the error ----------------------------------------------------------------------------------------------------- */

static void add_index(oly_text *t, const oly_type *condition, uint64_t number)
{
    int64_t index[OLY_MAX_RANK];
    for (int d = condition->rank - 1; d >= 0; d--) {
        index[d] = (int64_t)(number % (uint64_t)condition->shape[d]);
        number /= (uint64_t)condition->shape[d];
    }
    for (int d = 0; d < condition->rank; d++)
        oly_text_add(t, "%s%" PRId64, d ? ", " : " at index (", index[d]);
    if (condition->rank)
        oly_text_add(t, condition->rank == 1 ? ",)" : ")");
}

static oly_status report(const oly_call_frame *f)
{
    const oly_user_call *c = f->call;
    const oly_type *condition = &c->in[WHERE].type; /* its own shape is [] */
    oly_text t = {0};
    if (!*(const bool *)f->in[FAILS].data)
        return OLY_OK;
    oly_status st = oly_inside_format(&t, oly_call_text(c), c->n_in - VALUES, f->in + VALUES, f->device);
    if (st != OLY_OK) {
        snprintf(f->message, f->room, "%s", oly_pending_message());
        oly_text_free(&t);
        return st;
    }
    char place[256];
    oly_text where = {0};
    oly_site_text(&f->site, place, sizeof place);
    add_index(&where, condition, *(const uint64_t *)f->in[WHERE].data);
    for (int k = c->n_in; k < f->n_in; k++)
        oly_text_add(&where, ", element %" PRIu64 " of the map%s", *(const uint64_t *)f->in[k].data,
                     k > c->n_in ? " around" : "");
    snprintf(f->message, f->room, "%s%sthe condition does not hold%s: %s", f->alone ? "" : place, f->alone ? "" : ": ",
             oly_text_chars(&where), oly_text_chars(&t));
    oly_text_free(&t);
    oly_text_free(&where);
    return OLY_CHECK;
}

/* -- the first element that fails ---------------------------------------------------------------------------------- */

static oly_status reduce_all(oly_graph *g, oly_op op, oly_node *x, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    *out = x;
    for (int d = 0; d < x->type.rank; d++)
        p.axes[p.n_axes++] = d;
    return p.n_axes ? oly_graph_add(g, op, 1, &x, &p, out) : OLY_OK;
}

static oly_status number_like(oly_graph *g, oly_dtype dtype, int64_t value, const oly_type *like, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = dtype;
    p.value.i = value;
    OLY_TRY(oly_graph_add(g, OLY_OP_constant, 0, NULL, &p, out));
    return oly_build_broadcast(g, *out, like->rank, like->shape, out);
}

static oly_status position_in(oly_graph *g, const oly_type *like, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_UINT64;
    p.rank = like->rank;
    memcpy(p.shape, like->shape, sizeof p.shape);
    return oly_graph_add(g, OLY_OP_position, 0, NULL, &p, out);
}

typedef struct search {
    oly_graph *g;
    oly_type shape;   /* of the condition */
    oly_node *chosen; /* which element is the first that fails; NULL: the condition is one number */
} search;

static oly_status find_first(search *s, oly_node *condition, oly_node **fails, oly_node **where)
{
    oly_node *position, *none, *least;
    s->shape = condition->type;
    OLY_TRY(position_in(s->g, &s->shape, &position));
    OLY_TRY(number_like(s->g, OLY_UINT64, -1, &s->shape, &none));
    OLY_TRY(oly_build_apply(s->g, OLY_OP_select, 3, (oly_node *[]){condition, none, position}, where));
    OLY_TRY(reduce_all(s->g, OLY_OP_reduce_min, *where, where));
    OLY_TRY(number_like(s->g, OLY_UINT64, -1, &(oly_type){0}, &none));
    OLY_TRY(oly_build_apply(s->g, OLY_OP_ne, 2, (oly_node *[]){*where, none}, fails));
    if (s->shape.rank == 0)
        return OLY_OK;
    OLY_TRY(oly_build_broadcast(s->g, *where, s->shape.rank, s->shape.shape, &least));
    return oly_build_apply(s->g, OLY_OP_eq, 2, (oly_node *[]){position, least}, &s->chosen);
}

static bool broadcasts(const oly_type *x, const oly_type *to)
{
    if (x->rank == 0 || x->rank > to->rank)
        return false;
    for (int d = 1; d <= x->rank; d++)
        if (x->shape[x->rank - d] != 1 && x->shape[x->rank - d] != to->shape[to->rank - d])
            return false;
    return true;
}

/* The value where the condition fails; of an array of another shape all of it. */
static oly_status value_there(search *s, oly_node **x)
{
    oly_node *zero;
    if (!s->chosen || !broadcasts(&(*x)->type, &s->shape))
        return OLY_OK;
    oly_op op = (*x)->type.dtype == OLY_BOOL ? OLY_OP_reduce_or : OLY_OP_reduce_sum;
    OLY_TRY(oly_build_broadcast(s->g, *x, s->shape.rank, s->shape.shape, x));
    OLY_TRY(number_like(s->g, (*x)->type.dtype, 0, &s->shape, &zero));
    OLY_TRY(oly_build_apply(s->g, OLY_OP_select, 3, (oly_node *[]){s->chosen, *x, zero}, x));
    return reduce_all(s->g, op, *x, x);
}

/* -- recording ----------------------------------------------------------------------------------------------------- */

static oly_status record(const oly_inside_request *r, oly_trace *t, oly_node **in, oly_node **out)
{
    oly_node *operands[OLY_CALL_MOST], *condition = in[0];
    search s = {.g = t->graph};
    OLY_TRY(oly_build_truth(t->graph, condition, &condition));
    OLY_TRY(find_first(&s, condition, &operands[FAILS], &operands[WHERE]));
    for (int k = 1; k < r->n; k++) {
        operands[VALUES + k - 1] = in[k];
        OLY_TRY(value_there(&s, &operands[VALUES + k - 1]));
    }
    oly_user_call *c = oly_call_new("oly_check", r->format);
    if (!c)
        return OLY_MEMORY;
    c->effect = c->host = c->agreed = c->gathers = true;
    c->run = report;
    for (int k = 0; k <= r->n; k++)
        oly_inside_operand(c, operands[k], OLY_CALL_WHOLE);
    c->in[WHERE].type = s.shape;
    oly_type_clear_sharding(&c->in[WHERE].type);
    oly_status st = oly_graph_call(t->graph, c, r->n + 1, operands, out);
    oly_release(c);
    return st;
}

oly_status oly_check_n(oly_operand condition, const char *format, int n, const oly_operand *values)
{
    OLY_ENTER(OLY_STATE);
    oly_array unused = NULL;
    oly_operand all[OLY_CALL_MOST] = {condition};
    OLY_TRY(oly_need_operand(&condition));
    OLY_TRY(oly_need_operands(n, values));
    if (n > OLY_CALL_MOST - VALUES)
        return oly_raise(
            oly_fail(OLY_INVALID, "%d values for the message of a check; at most %d", n, OLY_CALL_MOST - VALUES));
    if (n > 0)
        memcpy(all + 1, values, sizeof *values * (size_t)n);
    oly_status st = oly_inside_check_format(format, n);
    const oly_inside_request r = {record, format, 1 + n, all, NULL, 1};
    oly_scope_open();
    if (st == OLY_OK)
        st = oly_inside_record(&r, &unused);
    oly_scope_close();
    return oly_raise(st);
}
