/* SPDX-License-Identifier: BSD-3-Clause */
/* See repeated_work.h. */
#include "run/repeated_work.h"
#include "core/optimisation.h"
#include "core/option.h"
#include "run/executor.h"
#include "run/narrow_product.h"
#include <string.h>

/* -- is it worth it? ---------------------------------------------------------------------------------------------------- */

/* element-operations; as a byte that is written, twice read and copied costs one */
enum { RANDOM_WORD = 24 };

/* So much less work makes it worth it where one thread computes the shares of all devices, and no thread waits for another, and copies
 * so much faster then; and so much less where many devices would compute it. */
static const double IN_TURN = 500, IN_CACHE = 8, FOR_MANY = 10;
enum { MANY = 4 };

/* What a device's share takes that copies of its result would save, in such operations; 0: copying takes as long. */
static double tile_work(const oly_tile_program *p, const oly_tile_work *w)
{
    double each = 0;
    for (int k = 0; k < p->n_instructions; k++)
        each += p->instructions[k].op == OLY_TILE_random_bits || p->instructions[k].op == OLY_TILE_threefry2x32
                    ? RANDOM_WORD
                    : 0;
    for (int d = 0; d < w->box.rank; d++)
        each *= (double)w->box.extent[d];
    return each;
}

static double local_work(const oly_local_task *t)
{
    double n = oly_local_work_of(t), updates = 1;
    if (t->window) /* multiply-adds and comparisons, several at a time */
        return n / 4;
    switch (oly_local_way_of(t->op)) {
    case OLY_LOCAL_READS: return 6 * n;
    case OLY_LOCAL_RUNS:
    case OLY_LOCAL_FINDS: return 2 * n;
    case OLY_LOCAL_WRITES: /* not what is kept of the operand, which each device may have in place */
        for (int d = 0; d < t->in[t->n_in - 1].rank; d++)
            updates *= (double)t->in[t->n_in - 1].extent[d];
        return t->op == OLY_LOCAL_DYNAMIC_UPDATE ? 0 : 16 * updates;
    case OLY_LOCAL_CUTS:
    case OLY_LOCAL_ARRANGES: return 0;
    default: return n;
    }
}

/* With what the group before it takes, which it may compute itself (fused_reduction.h). */
static double reduce_work(const oly_step *s, int d)
{
    const oly_reduce_task *t = &s->reduce.device[d].task;
    double n = 1;
    for (int e = 0; e < t->rank; e++)
        n *= (double)t->extent[e];
    for (int k = 0; k < oly_operand_steps(s); k++) {
        const oly_step *group = oly_operand_step(s, k);
        n += group->tile.device[d].has_work ? tile_work(&group->tile.program, &group->tile.device[d]) : 0;
    }
    return n;
}

static double results_of_product(const oly_gemm_task *t)
{
    double n = (double)t->batch * (double)t->m * (double)t->n;
    for (int k = 0; k < t->n_outer; k++)
        n *= (double)t->outer[k];
    return n;
}

/* Multiply-adds, many at a time but in products with vectors. */
static double product_work(const oly_gemm_task *t)
{
    double n = results_of_product(t) * (double)t->k;
    if (t->m < 4 || t->n < 4)
        return n / 3;
    switch (t->dtype) {
    case OLY_FLOAT32: return n / 8;
    case OLY_COMPLEX64: return n / 3;
    case OLY_COMPLEX128: return n / 2;
    default: return n / 4;
    }
}

static double work_of(const oly_step *s, int d)
{
    switch (s->kind) {
    case OLY_STEP_TILE: return tile_work(&s->tile.program, &s->tile.device[d]);
    case OLY_STEP_REDUCE: return reduce_work(s, d);
    case OLY_STEP_GEMM: return product_work(&s->gemm.device[d].task);
    default: return local_work(&s->local.device[d].task);
    }
}

/* -- the same work ------------------------------------------------------------------------------------------------------ */

/* The same part of the same slot, each device's own or one that both read at another; or nothing. */
static bool is_same_place(const oly_plan *plan, const oly_place *a, const oly_place *b, int rank)
{
    if (a->base < 0 || b->base < 0)
        return a->base < 0 && b->base < 0;
    return oly_cell_slot(plan, a->base) == oly_cell_slot(plan, b->base) && a->offset == b->offset &&
           memcmp(a->stride, b->stride, sizeof *a->stride * (size_t)rank) == 0;
}

static bool are_same_places(const oly_plan *plan, int n, const oly_place *a, const oly_place *b, int rank)
{
    for (int k = 0; k < n; k++)
        if (!is_same_place(plan, &a[k], &b[k], rank))
            return false;
    return true;
}

static bool is_same_operand(const oly_local_operand *a, const oly_local_operand *b)
{
    size_t bytes = sizeof *a->extent * (size_t)a->rank;
    return a->rank == b->rank && memcmp(a->origin, b->origin, bytes) == 0 && memcmp(a->extent, b->extent, bytes) == 0;
}

static bool is_same_tile(const oly_plan *plan, const oly_step *s, int d, int e)
{
    const oly_tile_work *a = &s->tile.device[d], *b = &s->tile.device[e];
    size_t bytes = sizeof *a->box.extent * (size_t)a->box.rank;
    return a->box.rank == b->box.rank && memcmp(a->box.extent, b->box.extent, bytes) == 0 &&
           memcmp(a->box.origin, b->box.origin, bytes) == 0 &&
           are_same_places(plan, s->tile.program.n_loads, a->loads, b->loads, a->box.rank) &&
           are_same_places(plan, s->tile.program.n_stores, a->stores, b->stores, a->box.rank);
}

static bool is_same_task(const oly_plan *plan, const oly_step *s, int d, int e)
{
    const oly_local_work *a = &s->local.device[d], *b = &s->local.device[e];
    bool same = a->task.part == b->task.part && is_same_operand(&a->task.out, &b->task.out) &&
                oly_cell_slot(plan, a->out_base) == oly_cell_slot(plan, b->out_base);
    for (int k = 0; k < a->task.n_in && same; k++)
        same = is_same_operand(&a->task.in[k], &b->task.in[k]) &&
               is_same_place(plan, &a->in[k], &b->in[k], a->task.in[k].rank);
    return same;
}

static bool is_same_product(const oly_plan *plan, const oly_gemm_work *a, const oly_gemm_work *b)
{
    return a->share == b->share && memcmp(&a->task, &b->task, sizeof a->task) == 0 &&
           is_same_place(plan, &a->a, &b->a, 0) && is_same_place(plan, &a->b, &b->b, 0);
}

static bool is_same_work(const oly_plan *plan, const oly_step *s, int d, int e)
{
    switch (s->kind) {
    case OLY_STEP_TILE: return is_same_tile(plan, s, d, e);
    case OLY_STEP_LOCAL: return is_same_task(plan, s, d, e);
    case OLY_STEP_GEMM: return is_same_product(plan, &s->gemm.device[d], &s->gemm.device[e]);
    default:
        return is_same_place(plan, &s->reduce.device[d].in, &s->reduce.device[e].in, s->reduce.device[d].task.rank);
    }
}

bool oly_is_same_copy(const oly_plan *plan, const oly_copy_work *a, const oly_copy_work *b)
{
    size_t bytes = sizeof *a->task.extent * (size_t)a->task.rank;
    return a->task.rank == b->task.rank && a->task.element_bytes == b->task.element_bytes &&
           memcmp(a->task.extent, b->task.extent, bytes) == 0 &&
           memcmp(a->task.from_stride, b->task.from_stride, bytes) == 0 &&
           memcmp(a->task.to_stride, b->task.to_stride, bytes) == 0 && a->from.offset == b->from.offset &&
           a->to.offset == b->to.offset && oly_cell_slot(plan, a->to.base) == oly_cell_slot(plan, b->to.base);
}

/* -- copies ------------------------------------------------------------------------------------------------------------- */

static double copy_tile(const oly_step *s, int store, int from, int to, oly_copy_work *c)
{
    const oly_tile_work *w = &s->tile.device[from];
    const oly_place *place = &w->stores[store];
    size_t bytes = sizeof *place->stride * (size_t)w->box.rank;
    double n = 1;
    c->task = (oly_copy_task){.element_bytes = oly_dtype_size((oly_dtype)s->tile.program.store_dtype[store]),
                              .rank = w->box.rank};
    memcpy(c->task.extent, w->box.extent, bytes);
    memcpy(c->task.from_stride, place->stride, bytes);
    memcpy(c->task.to_stride, place->stride, bytes);
    c->from = *place;
    c->to = s->tile.device[to].stores[store];
    for (int d = 0; d < w->box.rank; d++)
        n *= (double)w->box.extent[d];
    return n;
}

/* n elements next to each other. */
static double copy_row(int64_t n, oly_dtype dtype, oly_place from, oly_place to, oly_copy_work *c)
{
    c->task = (oly_copy_task){
        .element_bytes = oly_dtype_size(dtype), .rank = 1, .extent = {n}, .from_stride = {1}, .to_stride = {1}};
    c->from = from;
    c->to = to;
    c->from.stride[0] = c->to.stride[0] = 1;
    return (double)n;
}

static double copy_local(const oly_step *s, int from, int to, oly_copy_work *c)
{
    const oly_local_operand *out = &s->local.device[from].task.out;
    int64_t n = 1;
    for (int d = 0; d < out->rank; d++)
        n *= out->extent[d];
    return copy_row(n, out->dtype, (oly_place){.base = s->local.device[from].out_base},
                    (oly_place){.base = s->local.device[to].out_base}, c);
}

static double copy_reduced(const oly_step *s, int from, int to, oly_copy_work *c)
{
    const oly_reduce_work *a = &s->reduce.device[from], *b = &s->reduce.device[to];
    int64_t n = 1;
    for (int d = 0; d < a->task.rank; d++)
        n *= a->task.reduced[d] ? 1 : a->task.extent[d];
    return copy_row(n, a->task.dtype, (oly_place){.base = a->out_base, .offset = a->out_offset},
                    (oly_place){.base = b->out_base, .offset = b->out_offset}, c);
}

static double copy_product(const oly_step *s, int from, int to, oly_copy_work *c)
{
    const oly_gemm_work *a = &s->gemm.device[from];
    return copy_row((int64_t)results_of_product(&a->task), a->task.dtype, (oly_place){.base = a->out_base},
                    (oly_place){.base = s->gemm.device[to].out_base}, c);
}

/* Copies of the results of one device at another; returns their elements. */
static double copy_results(const oly_step *s, int from, int to, oly_copy_work *copies)
{
    double n = 0;
    if (s->kind == OLY_STEP_LOCAL)
        return copy_local(s, from, to, copies);
    if (s->kind == OLY_STEP_REDUCE)
        return copy_reduced(s, from, to, copies);
    if (s->kind == OLY_STEP_GEMM)
        return copy_product(s, from, to, copies);
    for (int k = 0; k < s->tile.program.n_stores; k++)
        n += copy_tile(s, k, from, to, &copies[k]);
    return n;
}

/* -- steps -------------------------------------------------------------------------------------------------------------- */

static int results_of(const oly_step *s)
{
    return s->kind == OLY_STEP_TILE ? s->tile.program.n_stores : 1;
}

static bool pays(const oly_plan *plan, const oly_step *s, int d)
{
    double work = work_of(s, d), bytes = 0;
    oly_copy_work c[OLY_TILE_REGISTERS];
    if (work == 0)
        return false;
    copy_results(s, d, d, c);
    for (int k = 0; k < results_of(s); k++) {
        double n = (double)c[k].task.element_bytes;
        for (int e = 0; e < c[k].task.rank; e++)
            n *= (double)c[k].task.extent[e];
        bytes += n;
    }
    if (oly_option.compute_once == 0)
        return true;
    if (oly_operations_of(s) < OLY_WORTH_SHARING)
        return work > bytes / IN_CACHE && work >= oly_option.compute_once / IN_TURN;
    return work > bytes && work >= oly_option.compute_once / (plan->n_devices >= MANY ? FOR_MANY : 1);
}

/* A reduction that is computed with the group before it writes what else the group stores, which nobody would copy. */
static bool stores_more(const oly_step *s)
{
    return s->kind == OLY_STEP_REDUCE && s->reduce.operand && s->reduce.operand->tile.program.n_stores > 1;
}

/* Products of copied operands, those that read narrow ones instead of converted copies, and those that are computed in parts are each device's
 * own. */
static bool is_plain(const oly_plan *plan, const oly_step *s)
{
    bool plain = s->gemm.n_copies == 0 && s->gemm.n_phases == 0 &&
                 (!s->gemm.converted[0] || (!oly_has_bytes(s) && !oly_multiplies_bfloats(plan, s)));
    for (int d = 0; d < plan->n_devices; d++)
        plain = plain && !s->gemm.device[d].parts;
    return plain;
}

static bool may_repeat(const oly_plan *plan, const oly_step *s)
{
    return s->replicated && !stores_more(s) && (s->kind != OLY_STEP_GEMM || is_plain(plan, s)) && plan->n_devices > 1 &&
           oly_enabled(OLY_OPTIMISATION_COMPUTE_ONCE) && !oly_platform_is_late() && !oly_platform_is_apart();
}

bool oly_has_same_work(const oly_plan *plan, const oly_step *s)
{
    bool computes =
        s->kind == OLY_STEP_TILE || s->kind == OLY_STEP_REDUCE || s->kind == OLY_STEP_LOCAL || s->kind == OLY_STEP_GEMM;
    if (!computes || !s->replicated)
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        if (!oly_step_has_work(s, d) || !is_same_work(plan, s, 0, d) ||
            (s->kind == OLY_STEP_GEMM && s->gemm.device[d].parts))
            return false;
    return true;
}

bool oly_computes_alike(const oly_plan *plan, const oly_step *s)
{
    return oly_has_same_work(plan, s) && may_repeat(plan, s);
}

/* The first device that computes the same as device d: d itself, or one before it. */
static int first_alike(const oly_plan *plan, const oly_step *s, int d)
{
    for (int e = 0; e < d && oly_step_has_work(s, d); e++)
        if (oly_step_has_work(s, e) && is_same_work(plan, s, e, d))
            return pays(plan, s, d) ? e : d;
    return d;
}

int oly_served_devices(const oly_plan *plan, const oly_step *s)
{
    int n = 0;
    if (s->prepared && ((s->kind != OLY_STEP_MOVE && s->prepared->once) || s->prepared->loop_once))
        return plan->n_devices - 1;
    for (int d = 0; d < plan->n_devices && may_repeat(plan, s); d++)
        n += first_alike(plan, s, d) != d;
    return n;
}

oly_status oly_find_repeats(oly_plan *plan, const oly_step *s, const oly_repeats **found)
{
    *found = NULL;
    if (!may_repeat(plan, s))
        return OLY_OK;
    int *first = OLY_ARENA_NEW(&plan->arena, int, plan->n_devices), n = 0;
    oly_repeats *r = OLY_ARENA_NEW(&plan->arena, oly_repeats, 1);
    if (!first || !r)
        return oly_out_of_memory(0, "a program");
    for (int d = 0; d < plan->n_devices; d++) {
        first[d] = first_alike(plan, s, d);
        n += first[d] != d;
    }
    if (n == 0)
        return OLY_OK;
    int each = results_of(s);
    oly_copy_work *copies = OLY_ARENA_NEW(&plan->arena, oly_copy_work, n * each);
    int *chunks = OLY_ARENA_NEW(&plan->arena, int, n *each);
    if (!copies || !chunks)
        return oly_out_of_memory(0, "a program");
    *r = (oly_repeats){.first = first, .copies = copies, .prepared = {.copies = chunks}};
    for (int d = 0; d < plan->n_devices; d++) {
        r->n_first += oly_step_has_work(s, d) && first[d] == d;
        if (first[d] == d)
            continue;
        r->work += copy_results(s, first[d], d, copies + r->n_copies);
        r->n_copies += each;
    }
    for (int k = 0; k < r->n_copies; k++)
        r->prepared.total_copied += chunks[k] = oly_copy_chunks(&copies[k].task);
    *found = r;
    return OLY_OK;
}
