/* SPDX-License-Identifier: BSD-3-Clause */
/* See loop_buffers.h. A carry has two or more buffers, which are written in turn, or one if it is updated in place. */
#include "run/loop_buffers.h"

static void **cell(const oly_plan *plan, void **base, int device, int slot)
{
    return &base[oly_cell(plan, device, slot)];
}

/* The buffers of a carry, in the order in which they are written. */
static int n_buffers(const oly_step *s, int k)
{
    return 2 + (s->loop.passed ? s->loop.passed[k].n_more : 0);
}

static int buffer_slot(const oly_step *s, int k, int number)
{
    if (number == 0)
        return s->loop.out_slot[k];
    return number == 1 || !s->loop.passed ? s->loop.spare_slot[k] : s->loop.passed[k].more_slot[number - 2];
}

static bool is_passed(const oly_step *s, int k)
{
    return s->loop.passed && s->loop.passed[k].from >= 0;
}

static bool stays_in_place(const oly_step *s, int k)
{
    return s->loop.out_slot[k] == s->loop.in_slot[k];
}

void oly_loop_begin(const oly_plan *plan, void **base, const oly_step *s, int d)
{
    for (int k = 0; k < s->loop.n_carry; k++)
        *cell(plan, base, d, s->loop.in_slot[k]) = *cell(plan, base, d, s->loop.init_slot[k]);
}

void oly_loop_bind_rows(const oly_plan *plan, void **base, const oly_step *s, int d, int64_t i)
{
    for (int k = 0; k < s->loop.n_rows; k++) {
        const oly_loop_row *x = &s->loop.rows[k];
        int64_t row = x->first + i * x->step;
        size_t bytes = plan->slots[x->slot].device_bytes[d] / (size_t)x->rows;
        char *of = *cell(plan, base, d, x->of);
        row = row < 0 ? 0 : row > x->last ? x->last : row;
        *cell(plan, base, d, x->slot) = of ? of + (size_t)row * bytes : NULL;
    }
}

/* The buffer that was written becomes the last that is written again. */
static void rotate(const oly_plan *plan, void **base, const oly_step *s, int d, int k)
{
    void *written = *cell(plan, base, d, s->loop.out_slot[k]);
    int n = n_buffers(s, k);
    for (int b = 0; b < n - 1; b++)
        *cell(plan, base, d, buffer_slot(s, k, b)) = *cell(plan, base, d, buffer_slot(s, k, b + 1));
    *cell(plan, base, d, buffer_slot(s, k, n - 1)) = written;
}

void oly_loop_turn(const oly_plan *plan, void **base, const oly_step *s, int d)
{
    for (int age = s->loop.oldest; age > 0; age--) /* before what they take over changes */
        for (int k = 0; k < s->loop.n_carry; k++)
            if (s->loop.passed[k].age == age)
                *cell(plan, base, d, s->loop.in_slot[k]) =
                    *cell(plan, base, d, s->loop.in_slot[s->loop.passed[k].from]);
    for (int k = 0; k < s->loop.n_carry; k++) {
        if (stays_in_place(s, k) || is_passed(s, k))
            continue;
        *cell(plan, base, d, s->loop.in_slot[k]) = *cell(plan, base, d, s->loop.out_slot[k]);
        rotate(plan, base, s, d, k);
    }
}

void oly_loop_restore(const oly_plan *plan, void **base, const oly_step *s, int d, int64_t n)
{
    for (int k = 0; k < s->loop.n_carry; k++)
        for (int64_t i = n; i % n_buffers(s, k) && !stays_in_place(s, k) && !is_passed(s, k); i++)
            rotate(plan, base, s, d, k);
}

int oly_loop_slot_written(const oly_step *s, int k, int64_t written)
{
    return written < 0 || stays_in_place(s, k) ? -1 : buffer_slot(s, k, (int)(written % n_buffers(s, k)));
}
