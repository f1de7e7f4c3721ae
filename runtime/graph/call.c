/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program as nodes: their texts, types, factors and effects. See call.h. */
#include "graph/call.h"
#include "graph/factors.h"
#include "graph/varying.h"
#include "graph/typing/typing.h"
#include "core/hash.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

oly_user_call *oly_call_new(const char *name, const char *text)
{
    size_t first = strlen(name) + 1, second = strlen(text) + 1, bytes = sizeof(oly_user_call) + first + second;
    oly_user_call *c = oly_calloc(1, bytes);
    if (!c) {
        oly_out_of_memory(bytes, "a function inside a plan");
        return NULL;
    }
    c->bytes = bytes;
    c->text = (int)first;
    memcpy(c->texts, name, first);
    memcpy(c->texts + first, text, second);
    return c;
}

oly_user_call *oly_call_copy(oly_arena *arena, const oly_user_call *c)
{
    oly_user_call *copy = oly_arena_take(arena, c->bytes);
    return copy ? memcpy(copy, c, c->bytes) : NULL;
}

static uint64_t hash_operand(uint64_t h, const oly_call_operand *x)
{
    h = oly_hash_mix(h, (uint64_t)x->rank << 32 | x->wraps);
    for (int d = 0; d < x->rank; d++) {
        h = oly_hash_mix(h, (uint64_t)x->letter[d] << 32 | (uint32_t)x->before[d]);
        h = oly_hash_mix(h, (uint64_t)(uint32_t)x->after[d] << 32 | (uint32_t)x->type.shape[d]);
    }
    return oly_hash_mix(oly_hash_mix(h, (uint64_t)x->zero << 32 | x->nearest),
                        (uint64_t)x->type.dtype << 32 | (uint64_t)x->combiner);
}

uint64_t oly_call_hash(const oly_user_call *c)
{
    uint64_t h = oly_hash_text(oly_hash_text(17, oly_call_name(c)), oly_call_text(c));
    h = oly_hash_mix(h, (uint64_t)c->n_in << 32 | (uint64_t)c->n_out << 8 | (uint64_t)c->effect);
    for (int k = 0; k < c->n_in; k++)
        h = hash_operand(h, &c->in[k]);
    for (int k = 0; k < c->n_out; k++)
        h = hash_operand(h, &c->out[k]);
    return oly_hash_mix(h, c->whole);
}

/* -- type and factors ---------------------------------------------------------------------------------------------- */

oly_status oly_typing_call(oly_node *node)
{
    const oly_user_call *c = node->params.call;
    int lead = node->params.n_batch, which = node->params.dimension;
    oly_type *t = &node->type;
    *t = which < c->n_out ? c->out[which].type : (oly_type){.dtype = OLY_BOOL};
    if (t->rank + lead > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "%s: a result would have %d dimensions with its %d mapped ones; arrays have at most %d",
                        oly_call_name(c), t->rank + lead, lead, OLY_MAX_RANK);
    memmove(t->shape + lead, t->shape, sizeof *t->shape * (size_t)t->rank);
    memcpy(t->shape, node->in[0]->type.shape, sizeof *t->shape * (size_t)lead);
    t->rank += lead;
    return OLY_OK;
}

/* The factor of a letter; -1: none. */
static int factor_of(oly_factors *f, const oly_user_call *c, int *factor, char letter, int64_t size)
{
    if (letter < 'a' || letter > 'z' || size == 1)
        return -1;
    int *made = &factor[letter - 'a'];
    if (*made == 0)
        *made = oly_factor_new(f, size, c->whole >> (letter - 'a') & 1 ? OLY_FACTOR_WHOLE : OLY_FACTOR_REDUCTION) + 1;
    return *made - 1;
}

/* Batch dimensions: those of maps over devices are parallel; an element of another batch is a call, made in order by functions
 * of the host. */
static void relate_batch(const oly_node *node, oly_factors *f)
{
    for (int b = 0; b < node->params.n_batch; b++) {
        bool parallel = node->params.mapped >> b & 1 || !node->params.call->host;
        if (node->in[0]->type.shape[b] == 1)
            continue;
        int factor = oly_factor_new(f, node->in[0]->type.shape[b], parallel ? OLY_FACTOR_PARALLEL : OLY_FACTOR_WHOLE);
        for (int k = 0; k < f->n_operands; k++)
            oly_factor_attach(&f->operand[k][b], factor);
        oly_factor_attach(&f->result[b], factor);
    }
}

oly_status oly_factors_call(const oly_node *node, oly_factors *f)
{
    const oly_user_call *c = node->params.call;
    int factor[26] = {0}, lead = node->params.n_batch, which = node->params.dimension;
    relate_batch(node, f);
    for (int k = 0; k < f->n_operands && k < c->n_in; k++)
        for (int d = 0; d < c->in[k].rank; d++) {
            int made = factor_of(f, c, factor, c->in[k].letter[d], node->in[k]->type.shape[lead + d]);
            if (made >= 0)
                oly_factor_attach(&f->operand[k][lead + d], made);
        }
    for (int d = 0; which < c->n_out && d < c->out[which].rank; d++) {
        int made = factor_of(f, c, factor, c->out[which].letter[d], node->type.shape[lead + d]);
        if (made < 0)
            continue;
        oly_factor_attach(&f->result[lead + d], made);
        f->kind[made] = f->kind[made] == OLY_FACTOR_REDUCTION ? OLY_FACTOR_PARALLEL : f->kind[made];
    }
    return OLY_OK;
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

oly_status oly_graph_call(oly_graph *g, const oly_user_call *c, int n_in, oly_node *const *in, oly_node **out)
{
    static atomic_ullong calls;
    oly_params p;
    oly_node *aligned[8];
    memset(&p, 0, sizeof p);
    OLY_TRY(oly_vary_operands(g, OLY_OP_call, n_in, &in, aligned)); /* once for all results */
    p.call = c;
    p.call_number = atomic_fetch_add(&calls, 1) + 1;
    for (int k = 0; k == 0 || k < c->n_out; k++) {
        p.dimension = k;
        OLY_TRY(oly_graph_add(g, OLY_OP_call, n_in, in, &p, &out[k]));
    }
    return OLY_OK;
}

bool oly_node_has_effect(const oly_node *node)
{
    oly_graph *const *graphs;
    bool any = node->params.call && node->params.call->effect && !node->params.muted;
    if (oly_ops[node->op].lowering == OLY_LOWER_CUSTOM)
        return false; /* what is in them happens when they are used */
    for (int k = oly_node_graphs(node, &graphs) - 1; k >= 0 && !any; k--)
        any = graphs[k]->has_effects;
    return any;
}

void oly_graph_silence(oly_graph *g)
{
    if (!g->has_effects)
        return;
    g->has_effects = false;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph *const *graphs;
        g->nodes[k]->params.muted |= g->nodes[k]->params.call != NULL;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            oly_graph_silence(graphs[j]);
    }
}
