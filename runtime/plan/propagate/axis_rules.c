/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the rules along which axes propagate. See axis_rules.h. */
#include "plan/propagate/axis_rules.h"
#include <string.h>

/* Packs small pieces densely; the arena would align each of them. */
static void *take(oly_flows *fl, size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    if (bytes > (size_t)(fl->room_end - fl->room) || !fl->room) {
        size_t block = bytes > 16384 ? bytes : 16384;
        fl->room = oly_arena_take(&fl->arena, block);
        if (!fl->room)
            return NULL;
        fl->room_end = fl->room + block;
    }
    void *piece = fl->room;
    fl->room += bytes;
    return piece;
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static oly_flow_tensor tensor_of(oly_frame *f, const oly_node *n)
{
    return (oly_flow_tensor){.value = oly_value_of(f, n),
                             .type = &n->type,
                             .number = f->first_number + n->index,
                             .elements = oly_type_size(&n->type)};
}

/* Computed from constants alone, elementwise or by views, and not placed by the program: it can be computed on any
 * device. */
static bool made_of_constants(oly_frame *f, const oly_node *n)
{
    oly_lowering lowering = oly_ops[n->op].lowering;
    const oly_value *v = oly_value_of(f, n);
    if ((lowering != OLY_LOWER_TILE && lowering != OLY_LOWER_VIEW && lowering != OLY_LOWER_RESHAPE) ||
        n->params.settled || v->layout)
        return false;
    for (int d = 0; d < n->type.rank; d++)
        if (v->axes[d].n)
            return false;
    for (int k = 0; k < n->n_in; k++)
        if (!oly_value_of(f, n->in[k])->silent)
            return false;
    return true;
}

static void number_values(oly_flows *fl, oly_frame *f)
{
    f->first_number = fl->n_values;
    fl->n_values += f->graph->n_nodes;
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_graph_ahead(f->graph, k, 1);
        oly_value_of(f, f->graph->nodes[k])->silent = made_of_constants(f, f->graph->nodes[k]);
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            number_values(fl, body);
    }
}

/* -- rules --------------------------------------------------------------------------------------------------------- */

static oly_flow *flow_new(oly_flows *fl, const oly_node *n, int n_tensors)
{
    if (fl->n == fl->capacity) {
        int capacity = fl->capacity ? 2 * fl->capacity : 64;
        oly_flow *flows = OLY_ARENA_NEW(&fl->arena, oly_flow, capacity);
        if (!flows)
            return NULL;
        if (fl->n)
            memcpy(flows, fl->flows, sizeof *flows * (size_t)fl->n);
        fl->flows = flows;
        fl->capacity = capacity;
    }
    oly_flow *w = &fl->flows[fl->n];
    *w = (oly_flow){.node = n, .n_tensors = n_tensors};
    w->tensors = take(fl, sizeof *w->tensors * (size_t)n_tensors);
    return w->tensors ? &fl->flows[fl->n++] : NULL;
}

/* Dimension d of all values is factor d. */
static oly_status same_dimensions(oly_flows *fl, oly_flow *w, const oly_type *type)
{
    int64_t *size = take(fl, (sizeof *size + 1) * (size_t)type->rank);
    OLY_PLAN_CHECK(size);
    memcpy(size, type->shape, sizeof *size * (size_t)type->rank);
    w->n_factors = type->rank;
    w->size = size;
    w->factor_kind = memset(size + type->rank, OLY_FACTOR_PARALLEL, (size_t)type->rank);
    return OLY_OK;
}

static const uint8_t *pack_dims(oly_flows *fl, const oly_dim_factors *dims, int rank)
{
    size_t bytes = (size_t)rank;
    for (int d = 0; d < rank; d++)
        bytes += (size_t)dims[d].n;
    uint8_t *packed = take(fl, bytes), *to = packed;
    for (int d = 0; packed && d < rank; d++) {
        *to++ = (uint8_t)dims[d].n;
        for (int k = 0; k < dims[d].n; k++)
            *to++ = (uint8_t)dims[d].factor[k];
    }
    return packed;
}

static bool has_factor(const oly_dim_factors *dims, int rank, int factor)
{
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < dims[d].n; k++)
            if (dims[d].factor[k] == factor)
                return true;
    return false;
}

/* Elementwise, reshape, transpose: every factor is parallel and in every value (scalars excepted). */
static bool goes_through(const oly_node *n, const oly_factors *f)
{
    if (f->flow == OLY_FACTORS_REGROUP)
        return true;
    for (int k = 0; k < f->n_factors; k++) {
        bool everywhere = f->kind[k] == OLY_FACTOR_PARALLEL && has_factor(f->result, n->type.rank, k);
        for (int in = 0; everywhere && in < n->n_in; in++)
            everywhere = n->in[in]->type.rank == 0 ||
                         (in < f->n_operands && has_factor(f->operand[in], n->in[in]->type.rank, k));
        if (!everywhere)
            return false;
    }
    return true;
}

static oly_status describe(oly_flows *fl, oly_flow *w, const oly_node *n, const oly_factors *f)
{
    int64_t *size = take(fl, (sizeof *size + 1) * (size_t)f->n_factors);
    OLY_PLAN_CHECK(size);
    uint8_t *kind = (uint8_t *)(size + f->n_factors);
    for (int k = 0; k < f->n_factors; k++) {
        size[k] = f->size[k];
        kind[k] = (uint8_t)f->kind[k];
        w->late = w->late || f->kind[k] != OLY_FACTOR_PARALLEL;
    }
    w->n_factors = f->n_factors;
    w->size = size;
    w->factor_kind = kind;
    for (int k = 0; k < w->n_tensors; k++) {
        bool result = k == w->n_operands;
        w->tensors[k].dims = pack_dims(fl, result ? f->result : f->operand[k], w->tensors[k].type->rank);
        OLY_PLAN_CHECK(w->tensors[k].dims);
    }
    w->kind = f->flow == OLY_FACTORS_BROADCAST ? OLY_FLOW_BROADCAST
              : f->flow == OLY_FACTORS_FORWARD ? OLY_FLOW_FORWARD
              : goes_through(n, f)             ? OLY_FLOW_THROUGH
                                               : OLY_FLOW_OPERATION;
    return OLY_OK;
}

static oly_status add_node(oly_flows *fl, oly_frame *f, const oly_node *n)
{
    oly_factors factors;
    bool alike = oly_factors_alike(n);
    int n_operands = n->n_in;
    if (n->n_in == 0 || (alike && n->type.rank == 0))
        return OLY_OK;
    if (!alike) {
        OLY_TRY(oly_factors_of(n, &factors));
        if (factors.n_factors == 0)
            return OLY_OK;
        n_operands = factors.n_operands;
    }
    oly_flow *w = flow_new(fl, n, n_operands + 1);
    OLY_PLAN_CHECK(w);
    w->n_operands = n_operands;
    w->single_use = true;
    for (int k = 0; k < n_operands; k++) {
        w->tensors[k] = tensor_of(f, n->in[k]);
        w->single_use = w->single_use && (n->in[k]->n_uses <= 1 || w->tensors[k].value->silent);
    }
    w->tensors[n_operands] = tensor_of(f, n);
    w->constant = w->tensors[n_operands].value->silent;
    if (!alike)
        return describe(fl, w, n, &factors);
    w->kind = OLY_FLOW_THROUGH;
    return same_dimensions(fl, w, &n->type);
}

/* -- edges of loops and branches ----------------------------------------------------------------------------------- */

static oly_status add_edge(oly_flows *fl, const oly_node *n, int n_tensors, const oly_flow_tensor *tensors)
{
    const oly_type *type = tensors[0].type;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): every tensor has a type */
    if (type->rank == 0)
        return OLY_OK;
    oly_flow *w = flow_new(fl, n, n_tensors);
    OLY_PLAN_CHECK(w);
    memcpy(w->tensors, tensors, sizeof *tensors * (size_t)n_tensors);
    w->n_operands = n_tensors;
    w->kind = OLY_FLOW_THROUGH;
    w->single_use = true;
    return same_dimensions(fl, w, type);
}

static oly_status add_frame(oly_flows *fl, oly_frame *f);

/* A carry is one value: the initial value and the body's input and output. A capture is the outer value itself. */
static oly_status add_loop(oly_flows *fl, oly_frame *f, const oly_node *n)
{
    oly_frame *body = f->bodies[n->index];
    for (int c = 0; c < n->n_in; c++) {
        bool carried = c < n->params.n_carry;
        oly_flow_tensor t[3] = {tensor_of(f, n->in[c]), tensor_of(body, body->graph->inputs[1 + c])};
        if (carried)
            t[2] = tensor_of(body, body->graph->outputs[c]);
        OLY_TRY(add_edge(fl, n, carried ? 3 : 2, t));
    }
    return add_frame(fl, body);
}

/* An operand of a branch is the outer value itself. */
static oly_status add_branches(oly_flows *fl, oly_frame *f, const oly_node *n)
{
    for (oly_frame *body = f->bodies[n->index]; body; body = body->next) {
        for (int k = 0; k < body->graph->n_inputs; k++) {
            oly_flow_tensor t[2] = {tensor_of(f, n->in[1 + k]), tensor_of(body, body->graph->inputs[k])};
            OLY_TRY(add_edge(fl, n, 2, t));
        }
        OLY_TRY(add_frame(fl, body));
    }
    return OLY_OK;
}

/* The result of all branches, or a carry of a loop. */
static oly_status add_result(oly_flows *fl, oly_frame *f, const oly_node *n)
{
    bool branch = n->in[0]->params.n_branches > 0;
    int k = n->params.dimension;
    oly_flow_tensor few[8] = {tensor_of(f, n)}, *t = few;
    if (branch && n->in[0]->params.n_branches >= 8) {
        t = take(fl, sizeof *t * (size_t)(1 + n->in[0]->params.n_branches));
        OLY_PLAN_CHECK(t);
        t[0] = few[0];
    }
    int count = 1;
    for (oly_frame *body = f->bodies[n->in[0]->index]; body; body = body->next)
        t[count++] = tensor_of(body, branch ? body->graph->outputs[k] : body->graph->inputs[1 + k]);
    return add_edge(fl, n->in[0], count, t);
}

static oly_status add_frame(oly_flows *fl, oly_frame *f)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        const oly_node *n = f->graph->nodes[k];
        oly_graph_ahead(f->graph, k, 1);
        switch (oly_ops[n->op].lowering) {
        case OLY_LOWER_LOOP: OLY_TRY(add_loop(fl, f, n)); break;
        case OLY_LOWER_BRANCH: OLY_TRY(add_branches(fl, f, n)); break;
        case OLY_LOWER_RESULT: OLY_TRY(add_result(fl, f, n)); break;
        default: OLY_TRY(add_node(fl, f, n));
        }
    }
    return OLY_OK;
}

/* -- the list ------------------------------------------------------------------------------------------------------ */

/* Lists the rules of every value. */
static oly_status index_flows(oly_flows *fl)
{
    fl->first = OLY_ARENA_NEW(&fl->arena, int, fl->n_values + 2);
    OLY_PLAN_CHECK(fl->first);
    int total = 0; /* counts are stored two entries ahead: the sums and the filling shift them by one each */
    for (int k = 0; k < fl->n; k++)
        for (int t = 0; t < fl->flows[k].n_tensors; t++, total++)
            fl->first[fl->flows[k].tensors[t].number + 2]++;
    for (int v = 1; v <= fl->n_values + 1; v++)
        fl->first[v] += fl->first[v - 1];
    fl->of_value = OLY_ARENA_NEW(&fl->arena, int, total + 1);
    OLY_PLAN_CHECK(fl->of_value);
    for (int k = 0; k < fl->n; k++)
        for (int t = 0; t < fl->flows[k].n_tensors; t++)
            fl->of_value[fl->first[fl->flows[k].tensors[t].number + 1]++] = k;
    return OLY_OK;
}

oly_status oly_flows_make(oly_flows *fl, oly_frame *f)
{
    *fl = (oly_flows){0};
    number_values(fl, f);
    OLY_TRY(add_frame(fl, f));
    return index_flows(fl);
}

void oly_flows_free(oly_flows *fl)
{
    oly_arena_free(&fl->arena);
}
