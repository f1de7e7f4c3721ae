/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands and calls of olympus/inside.h. See inside.h. */
#include "array/inside/inside.h"
#include "array/arguments.h"
#include "array/compiled.h"
#include "array/dispatch.h"
#include "array/manual.h"
#include "graph/build.h"
#include "graph/compose/compose.h"
#include "graph/varying.h"
#include <string.h>

static oly_status record(const void *request, oly_trace *t, const oly_array *in, oly_array *out)
{
    const oly_inside_request *r = request;
    oly_node **nodes, **results;
    OLY_ARENA_LIST(&t->graph->arena, nodes, r->n);
    OLY_ARENA_LIST(&t->graph->arena, results, r->n_out);
    for (int k = 0, array = 0; k < r->n; k++)
        OLY_TRY(r->operands[k].kind == 'a' ? oly_trace_node(t, in[array++], &nodes[k])
                                           : oly_number_node(t->graph, &r->operands[k], &nodes[k]));
    OLY_TRY(r->record(r, t, nodes, results));
    for (int k = 0; k < r->n_out; k++)
        if (!(out[k] = oly_array_traced(t->graph, results[k])))
            return OLY_MEMORY;
    return OLY_OK;
}

static oly_compiled_cache cache; /* of calls outside of functions; the program's main thread issues them */

void oly_inside_forget(void)
{
    oly_cache_free(&cache);
}

/* With the plan of an earlier call on the same line, of the same format, numbers and kinds of arrays. */
static oly_status run_kept(const oly_inside_request *r, int n, const oly_array *arrays, oly_array *out)
{
    oly_key key;
    oly_site site = oly_current_site();
    size_t length = r->format ? strlen(r->format) : 0;
    oly_key_begin(&key);
    oly_key_add(&key, &r->record, sizeof r->record);
    oly_key_add(&key, &site.file, sizeof site.file);
    oly_key_add(&key, &site.line, sizeof site.line);
    oly_key_add(&key, &length, sizeof length);
    if (length)
        oly_key_add(&key, r->format, length);
    for (int k = 0; k < r->n; k++) {
        const oly_operand *x = &r->operands[k];
        oly_key_add(&key, &x->kind, sizeof x->kind);
        if (x->kind != 'a') {
            oly_key_add(&key, &x->integer, sizeof x->integer);
            oly_key_add(&key, &x->floating, sizeof x->floating);
            oly_key_add(&key, &x->imaginary, sizeof x->imaginary);
        }
    }
    r->sign(r, &key);
    oly_status st = oly_run_known(&cache, &key, record, r, site.call, n, arrays, r->n_out, out);
    oly_key_end(&key);
    return st;
}

oly_status oly_inside_record(const oly_inside_request *r, oly_array *out)
{
    oly_array *arrays = oly_calloc((size_t)r->n + 1, sizeof *arrays);
    int n = 0;
    if (!arrays)
        return oly_out_of_memory(sizeof *arrays * (size_t)r->n, "a list of arrays");
    for (int k = 0; k < r->n; k++)
        if (r->operands[k].kind == 'a')
            arrays[n++] = r->operands[k].array;
    oly_status st = r->sign && !oly_trace_current()
                        ? run_kept(r, n, arrays, out)
                        : oly_record_or_run(record, r, oly_current_site().call, n, arrays, r->n_out, out);
    if (!oly_trace_current() && st != OLY_OK)
        oly_call_failed(st, n, arrays);
    oly_release(arrays);
    return st;
}

bool oly_inside_map(const oly_trace *t)
{
    const oly_manual *m = oly_manual_around(t);
    return m && m->mesh->manual_axes;
}

oly_status oly_inside_vary(oly_trace *t, int n, oly_node **nodes)
{
    const oly_manual *m = oly_manual_around(t);
    for (int k = 0; k < n && m && !m->unchecked; k++) /* there types do not say so, and derivatives count on it */
        OLY_TRY(oly_build_vary(t->graph, nodes[k], m->mesh, m->mesh->manual_axes, &nodes[k]));
    return OLY_OK;
}

/* True on every device of an unchecked map, each for itself. */
static oly_status always_unchecked(oly_trace *t, const oly_manual *m, oly_node **when)
{
    oly_recipe recipe = {0};
    oly_node *pair[2];
    recipe.params.mesh = m->mesh;
    recipe.params.unchecked = true;
    for (int a = 0; a < m->mesh->n_axes; a++)
        if (m->mesh->manual_axes >> a & 1)
            recipe.params.over.axis[recipe.params.over.n++] = a;
    OLY_TRY(oly_compose_axis_index(t->graph, 0, NULL, &recipe, &pair[0]));
    OLY_TRY(oly_build_number(t->graph, OLY_INT32, 0, &pair[1]));
    return oly_build_apply(t->graph, OLY_OP_ge, 2, pair, when);
}

oly_status oly_inside_always(oly_trace *t, oly_node **when)
{
    const oly_manual *m = oly_manual_around(t);
    if (m && m->unchecked)
        return always_unchecked(t, m, when);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_BOOL;
    p.value.i = 1;
    OLY_TRY(oly_graph_add(t->graph, OLY_OP_constant, 0, NULL, &p, when));
    return oly_inside_vary(t, 1, when);
}

oly_status oly_inside_once(oly_graph *g, oly_node **x)
{
    int64_t shape[OLY_MAX_RANK] = {1};
    const oly_type *t = &(*x)->type;
    if (t->rank == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s has %d dimensions; one less is possible here: merge some with oly_reshape",
                        oly_type_short(t), t->rank);
    memcpy(shape + 1, t->shape, sizeof *shape * (size_t)t->rank);
    return oly_build_reshape(g, *x, t->rank + 1, shape, x);
}

void oly_inside_operand(oly_user_call *c, const oly_node *x, char letter)
{
    oly_call_operand *o = &c->in[c->n_in++];
    o->rank = x->type.rank;
    memset(o->letter, letter, sizeof o->letter);
    if (letter == OLY_CALL_ONCE)
        memset(o->letter + 1, OLY_CALL_WHOLE, sizeof o->letter - 1);
}
