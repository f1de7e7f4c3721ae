/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors of one node: reads the einsum-like strings of the table, and completes the named rules from the node's
 * parameters. Dimensions of size 1 have no factor: there is nothing to split. */
#include "graph/factors.h"
#include <string.h>

static int new_factor(oly_factors *f, int64_t size, oly_factor_kind kind)
{
    int k = f->n_factors++;
    f->size[k] = size;
    f->kind[k] = kind;
    return k;
}

static void attach(oly_dim_factors *dim, int factor)
{
    dim->factor[dim->n++] = factor;
}

int oly_factor_new(oly_factors *f, int64_t size, oly_factor_kind kind)
{
    return new_factor(f, size, kind);
}

/* -- written rules --------------------------------------------------------------------------------------- */

/* What each letter, and each position within "...", stands for so far. */
typedef struct naming {
    int letter[26]; /* factor number + 1 */
    int dots[OLY_MAX_RANK];
} naming;

/* Names the dimensions of one term ("bmk" or "...") of shape `type`; returns where the term ends. */
static const char *read_term(oly_factors *f, naming *names, const char *rule, const oly_type *type,
                             oly_dim_factors *dims)
{
    int d = 0;
    while (*rule && *rule != ',' && *rule != '-') {
        bool dots = *rule == '.';
        int count = dots ? type->rank - d : 1; /* "..." comes last or alone in every rule of the table */
        for (int k = 0; k < count; k++, d++) {
            int *name = dots ? &names->dots[k] : &names->letter[*rule - 'a'];
            if (type->shape[d] == 1)
                continue;
            if (!*name)
                *name = new_factor(f, type->shape[d], OLY_FACTOR_REDUCTION) + 1;
            attach(&dims[d], *name - 1);
        }
        rule += dots ? 3 : 1;
    }
    return rule;
}

static oly_status written(const oly_node *node, oly_factors *f)
{
    naming names;
    memset(&names, 0, sizeof names);
    const char *rule = oly_ops[node->op].factors;
    for (int k = 0; k < f->n_operands; k++) {
        rule = read_term(f, &names, rule, &node->in[k]->type, f->operand[k]);
        rule += *rule == ',';
    }
    read_term(f, &names, strchr(rule, '>') + 1, &node->type, f->result);
    for (int d = 0; d < node->type.rank; d++)
        for (int k = 0; k < f->result[d].n; k++)
            f->kind[f->result[d].factor[k]] = OLY_FACTOR_PARALLEL;
    return OLY_OK;
}

/* -- rules completed from parameters ------------------------------------------------------------------------- */

/* Operand dimension d and result dimension e (-1: none) share a factor. */
static void relate(oly_factors *f, const oly_type *x, int d, int e)
{
    if (x->shape[d] == 1)
        return;
    int k = new_factor(f, x->shape[d], e < 0 ? OLY_FACTOR_REDUCTION : OLY_FACTOR_PARALLEL);
    attach(&f->operand[0][d], k);
    if (e >= 0)
        attach(&f->result[e], k);
}

static oly_status reduce(const oly_node *node, oly_factors *f)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0, k = 0, kept = 0; d < x->rank; d++) {
        bool reduced = k < node->params.n_axes && node->params.axes[k] == d;
        relate(f, x, d, reduced ? -1 : kept);
        k += reduced;
        kept += !reduced;
    }
    return OLY_OK;
}

static oly_status transpose(const oly_node *node, oly_factors *f)
{
    for (int d = 0; d < node->type.rank; d++)
        relate(f, &node->in[0]->type, node->params.axes[d], d);
    return OLY_OK;
}

/* Repeated dimensions get a factor that only the result has. */
static oly_status broadcast(const oly_node *node, oly_factors *f)
{
    const oly_type *x = &node->in[0]->type;
    f->flow = OLY_FACTORS_BROADCAST;
    for (int d = 0; d < x->rank; d++)
        relate(f, x, d, node->params.axes[d]);
    for (int e = 0; e < node->type.rank; e++)
        if (f->result[e].n == 0 && node->type.shape[e] != 1)
            attach(&f->result[e], new_factor(f, node->type.shape[e], OLY_FACTOR_PARALLEL));
    return OLY_OK;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One group of a reshape: operand dimensions [i, i_end) and result dimensions [j, j_end) with equal products. Walks
 * both from the major side. The greatest common divisor of what is left of the two current dimensions becomes a shared
 * factor; where they have no common divisor, each side gets factors of its own until both have passed the same number
 * of elements: 6,4 -> 2,12 gives 2 3 4, with 6 = (2,3) and 12 = (3,4); 16,6 -> 24,4 gives 8, then 2 on the left and 3
 * on the right, then 2 and 3 of the second dimensions. */
static void reshape_group(oly_factors *f, const oly_type *x, const oly_type *y, int i, int i_end, int j, int j_end)
{
    int64_t left = 1, right = 1;               /* what is left of dimensions i - 1 and j - 1 */
    int64_t passed_left = 1, passed_right = 1; /* products of the factors so far */
    for (;;) {
        while (left == 1 && i < i_end)
            left = x->shape[i++];
        while (right == 1 && j < j_end)
            right = y->shape[j++];
        if (left == 1 && right == 1)
            return;
        int64_t common = passed_left == passed_right ? greatest_divisor(left, right) : 1;
        int k = new_factor(f, common > 1 ? common : left, OLY_FACTOR_PARALLEL);
        if (common > 1) {
            attach(&f->operand[0][i - 1], k);
            attach(&f->result[j - 1], k);
            passed_left *= common;
            passed_right *= common;
            left /= common;
            right /= common;
            continue;
        }
        if (left > 1 && (passed_left <= passed_right || right == 1)) {
            attach(&f->operand[0][i - 1], k);
            passed_left *= left;
            left = 1;
        } else {
            f->size[k] = right;
            attach(&f->result[j - 1], k);
            passed_right *= right;
            right = 1;
        }
    }
}

static oly_status reshape(const oly_node *node, oly_factors *f)
{
    const oly_type *x = &node->in[0]->type, *y = &node->type;
    if (oly_type_size(x) == 0)
        return OLY_OK; /* no elements: nothing to split */
    f->flow = OLY_FACTORS_REGROUP;
    for (int i = 0, j = 0; i < x->rank && j < y->rank;) {
        int from = i, to = j;
        int64_t left = x->shape[i++], right = y->shape[j++];
        while (left != right) { /* terminates: the products of all dimensions are equal */
            if (left < right)
                left *= x->shape[i++];
            else
                right *= y->shape[j++];
        }
        reshape_group(f, x, y, from, i, to, j);
    }
    return OLY_OK;
}

static bool untouched(const oly_node *node, const oly_type *whole, int d)
{
    const oly_params *p = &node->params;
    return p->start[d] == 0 && p->step[d] == 1 && p->shape[d] == whole->shape[d];
}

static oly_status slice(const oly_node *node, oly_factors *f)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0; d < x->rank; d++) {
        if (node->type.shape[d] == 1)
            continue;
        bool whole = untouched(node, x, d);
        int k = new_factor(f, node->type.shape[d], whole ? OLY_FACTOR_PARALLEL : OLY_FACTOR_SHIFTED);
        attach(&f->operand[0][d], k);
        attach(&f->result[d], k);
    }
    return OLY_OK;
}

static oly_status update(const oly_node *node, oly_factors *f)
{
    f->flow = OLY_FACTORS_FORWARD;
    const oly_type *x = &node->type;
    for (int d = 0; d < x->rank; d++) {
        if (x->shape[d] == 1)
            continue;
        bool whole = untouched(node, x, d);
        int k = new_factor(f, x->shape[d], whole ? OLY_FACTOR_PARALLEL : OLY_FACTOR_SHIFTED);
        attach(&f->operand[0][d], k);
        attach(&f->result[d], k);
        if (node->in[1]->type.shape[d] != 1)
            attach(&f->operand[1][d], k);
    }
    return OLY_OK;
}

static oly_status concatenate(const oly_node *node, oly_factors *f)
{
    for (int d = 0; d < node->type.rank; d++) {
        if (node->type.shape[d] == 1)
            continue;
        bool along = d == node->params.dimension && node->n_in > 1;
        int k = new_factor(f, node->type.shape[d], along ? OLY_FACTOR_SHIFTED : OLY_FACTOR_PARALLEL);
        attach(&f->result[d], k);
        for (int in = 0; in < f->n_operands; in++)
            if (node->in[in]->type.shape[d] != 1)
                attach(&f->operand[in][d], k);
    }
    return OLY_OK;
}

/* Collectives that remove a dimension of the operand and insert one into the result (-1: none). The others keep their
 * order. */
static void exchanged(const oly_node *node, oly_factors *f, int taken, int made)
{
    for (int d = 0, e = 0; d < node->in[0]->type.rank; d++) {
        if (d == taken)
            continue;
        e += e == made;
        relate(f, &node->in[0]->type, d, e++);
    }
}

static oly_status all_gather(const oly_node *node, oly_factors *f)
{
    exchanged(node, f, -1, node->params.dimension);
    return OLY_OK;
}

static oly_status psum_scatter(const oly_node *node, oly_factors *f)
{
    exchanged(node, f, node->params.dimension, -1);
    return OLY_OK;
}

static oly_status all_to_all(const oly_node *node, oly_factors *f)
{
    exchanged(node, f, node->params.dimension, node->params.axes[0]);
    return OLY_OK;
}

static oly_status permute(const oly_node *node, oly_factors *f)
{
    for (int d = 0; d < node->type.rank; d++)
        relate(f, &node->type, d, d);
    for (int k = 0; k < f->result[node->params.dimension].n; k++)
        f->kind[f->result[node->params.dimension].factor[k]] = OLY_FACTOR_SHIFTED;
    return OLY_OK;
}

/* The update rule with whole and part exchanged: the result has the factor, and the padded operand is aligned with
 * it. */
static oly_status pad(const oly_node *node, oly_factors *f)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0; d < x->rank; d++) {
        if (node->type.shape[d] == 1)
            continue;
        int k = new_factor(f, node->type.shape[d], untouched(node, x, d) ? OLY_FACTOR_PARALLEL : OLY_FACTOR_SHIFTED);
        attach(&f->result[d], k);
        if (x->shape[d] != 1)
            attach(&f->operand[0][d], k);
    }
    return OLY_OK;
}

static oly_status reverse(const oly_node *node, oly_factors *f)
{
    for (int d = 0, k = 0; d < node->type.rank; d++) {
        bool reversed = k < node->params.n_axes && node->params.axes[k] == d;
        k += reversed;
        relate(f, &node->in[0]->type, d, d);
        if (reversed && node->type.shape[d] != 1)
            f->kind[f->n_factors - 1] = OLY_FACTOR_SHIFTED;
    }
    return OLY_OK;
}

/* The body relates a loop's values, not the loop. */
static oly_status loop(const oly_node *node, oly_factors *f)
{
    (void)node, (void)f;
    return OLY_OK;
}

static const struct {
    const char *name;
    oly_status (*rule)(const oly_node *node, oly_factors *f);
} named[] = {{"@reduce", reduce},
             {"@transpose", transpose},
             {"@broadcast", broadcast},
             {"@reshape", reshape},
             {"@slice", slice},
             {"@update", update},
             {"@concatenate", concatenate},
             {"@pad", pad},
             {"@rev", reverse},
             {"@loop", loop},
             {"@all_gather", all_gather},
             {"@psum_scatter", psum_scatter},
             {"@all_to_all", all_to_all},
             {"@permute", permute},
             {"@dot_general", oly_factors_dot_general},
             {"@conv", oly_factors_conv},
             {"@window", oly_factors_window},
             /* factors_local.c */
             {"@along", oly_factors_along},
             {"@top_k", oly_factors_top_k},
             {"@searchsorted", oly_factors_searchsorted},
             {"@gather", oly_factors_gather},
             {"@scatter", oly_factors_scatter},
             {"@call", oly_factors_call}, /* call.c */
             {"@dynamic_slice", oly_factors_dynamic_slice},
             {"@dynamic_update_slice", oly_factors_dynamic_update_slice}};

bool oly_factors_alike(const oly_node *node)
{
    for (const char *rule = oly_ops[node->op].factors; *rule; rule++)
        if (!strchr(".,->", *rule))
            return false;
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k]->type.rank != node->type.rank)
            return false;
    return node->n_in > 0;
}

static void clear(oly_dim_factors *dims, int rank)
{
    for (int d = 0; d < rank; d++)
        dims[d].n = 0;
}

oly_status oly_factors_of(const oly_node *node, oly_factors *f)
{
    const int limit = (int)(sizeof f->operand / sizeof f->operand[0]);
    const oly_op_row *row = &oly_ops[node->op];
    f->n_factors = 0;
    f->flow = OLY_FACTORS_PLAIN;
    f->n_operands = node->n_in < limit ? node->n_in : limit;
    for (int k = 0; k < f->n_operands; k++)
        clear(f->operand[k], node->in[k]->type.rank);
    clear(f->result, node->type.rank);
    if (row->factors[0] != '@')
        return written(node, f);
    for (size_t k = 0; k < sizeof named / sizeof named[0]; k++)
        if (!strcmp(named[k].name, row->factors))
            return named[k].rule(node, f);
    return oly_fail(OLY_INVALID, "%s: its factor rule %s in ops.def is unknown; use one that factors.h names",
                    row->name, row->factors);
}
