/* SPDX-License-Identifier: BSD-3-Clause */
/* See loop_code.h. What an iteration needs is gathered once: the calls, of which only the addresses change, and where those are in the table of
 * base pointers, which rows and carries are bound to as in loop_buffers.c. */
#include "run/loop_code.h"
#include "core/optimisation.h"
#include "run/compiled_groups.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"

/* Steps, and iterations for which that is worth it; and iterations after which the caller may look at other things. */
enum { MOST_STEPS = 6, MOST_ROWS = 16, FEWEST = 8, MOST = 65536 };

static _Atomic(int64_t) iterations;

typedef struct operand {
    void *const *cell;
    int64_t offset;
} operand;

typedef struct code_step {
    oly_group_held held;
    int n;
    oly_code_call call;
    operand operand[OLY_CODE_OPERANDS];
} code_step;

typedef struct bound_row {
    void **cell;
    void *const *of;
    int64_t offset, step; /* bytes */
} bound_row;

/* A look at what is fixed, and at whether code is known: before every iteration of a loop that may never be such a one. */
static bool is_such(const oly_plan *plan, const oly_step *s, int d)
{
    const oly_block *b = s->loop.body;
    if (s->loop.passed || s->loop.n_rows > MOST_ROWS || b->n_steps > MOST_STEPS)
        return false;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *x = &b->steps[k];
        const oly_prepared *p = x->prepared;
        if (x->kind != OLY_STEP_TILE || !p || !p->known || p->phases != 1 || p->chunks[0][d] != 1 || p->blocks ||
            p->once || p->repeats || x->exchange || x->second || x->awaited || !x->tile.device[d].has_work ||
            !oly_group_is_known(&p->known[d]))
            return false;
    }
    return b->n_steps > 0 && oly_enabled(OLY_OPTIMISATION_LOOPS_OF_CODE) && plan->n_devices > d;
}

/* Iterations from i on whose rows are all inside their arrays, at most n; binds none. */
static int64_t within_rows(const oly_step *s, int64_t i, int64_t n)
{
    for (int k = 0; k < s->loop.n_rows; k++) {
        const oly_loop_row *x = &s->loop.rows[k];
        int64_t from = x->first + i * x->step, to = x->first + (i + n - 1) * x->step;
        if (from < 0 || from > x->last || to < 0 || to > x->last)
            return 0;
    }
    return n;
}

static void describe_row(const oly_plan *plan, void **base, const oly_loop_row *x, int d, int64_t i, bound_row *to)
{
    int64_t bytes = (int64_t)(plan->slots[x->slot].device_bytes[d] / (size_t)x->rows);
    *to = (bound_row){&base[oly_cell(plan, d, x->slot)], &base[oly_cell(plan, d, x->of)],
                      (x->first + i * x->step) * bytes, x->step * bytes};
}

/* False: its code is not known, or not any more. */
static bool describe_step(void **base, const oly_step *x, int d, code_step *to)
{
    const oly_tile_program *p = &x->tile.program;
    const oly_tile_work *w = &x->tile.device[d];
    if (!oly_group_hold(&x->prepared->known[d], &to->held, &to->call))
        return false;
    to->n = p->n_loads + p->n_stores;
    for (int k = 0; k < to->n; k++) {
        const oly_place *at = k < p->n_loads ? &w->loads[k] : &w->stores[k - p->n_loads];
        to->operand[k] = (operand){&base[at->base], at->offset};
        to->call.step[k] = 0;
    }
    return true;
}

static void turn(const oly_plan *plan, void **base, const oly_step *s, int d)
{
    for (int k = 0; k < s->loop.n_carry; k++) {
        void **in = &base[oly_cell(plan, d, s->loop.in_slot[k])], **out = &base[oly_cell(plan, d, s->loop.out_slot[k])];
        if (in == out)
            continue;
        void **spare = &base[oly_cell(plan, d, s->loop.spare_slot[k])], *written = *out;
        *in = written;
        *out = *spare;
        *spare = written;
    }
}

static inline void run_step(code_step *x)
{
    for (int k = 0; k < x->n; k++)
        x->call.at[k] = (char *)*x->operand[k].cell + x->operand[k].offset;
    x->call.rows = 1;
    x->held.code(&x->call);
}

int64_t oly_loop_code_iterations(void)
{
    return atomic_load_explicit(&iterations, memory_order_relaxed);
}

int64_t oly_loop_code_run(const oly_plan *plan, void **base, const oly_step *s, int d, int64_t i)
{
    const oly_block *b = s->loop.body;
    const int predicate = s->loop.predicate < 0 ? -1 : oly_cell(plan, d, s->loop.in_slot[s->loop.predicate]);
    int64_t n = predicate >= 0 || s->loop.count - i > MOST ? MOST : s->loop.count - i, done = 0;
    code_step steps[MOST_STEPS];
    bound_row rows[MOST_ROWS];
    int held = 0;
    if (n < FEWEST || !is_such(plan, s, d))
        return 0;
    n = within_rows(s, i, n);
    for (int k = 0; k < b->n_steps && n > 0; k++)
        if (describe_step(base, &b->steps[k], d, &steps[k]))
            held++;
        else
            n = 0;
    for (int k = 0; k < s->loop.n_rows && n > 0; k++)
        describe_row(plan, base, &s->loop.rows[k], d, i, &rows[k]);
    int32_t *counter = s->loop.counter_slot < 0 ? NULL : base[oly_cell(plan, d, s->loop.counter_slot)];
    for (; done < n; done++) {
        if (predicate >= 0 && !(base[predicate] && *(const bool *)base[predicate]))
            break;
        if (counter)
            *counter = (int32_t)(s->loop.lower + i + done);
        for (int k = 0; k < s->loop.n_rows; k++) {
            *rows[k].cell = *rows[k].of ? (char *)*rows[k].of + rows[k].offset : NULL;
            rows[k].offset += rows[k].step;
        }
        for (int k = 0; k < b->n_steps; k++)
            run_step(&steps[k]);
        turn(plan, base, s, d);
    }
    atomic_fetch_add_explicit(&iterations, done, memory_order_relaxed);
    while (held > 0)
        oly_group_let_go(&steps[--held].held, done);
    return done;
}
