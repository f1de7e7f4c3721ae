/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices whose start follows a loop's counter: row i of the arrays that oly_scan goes through. The slice is a slot without memory of its
 * own, which the interpreter binds to the rows of the array before every iteration (oly_loop_row). Where the array is not row-major in
 * memory (a transposed one), it is copied once before the loop instead of row by row. Only on devices whose memory the host can address:
 * others record iterations, with the places that they had. Called by lower_local.c; what is written to row i of a carry:
 * schedule/counted_writes.c. */
#include "plan/lower/lower_local.h"
#include "core/facts.h"
#include "core/optimisation.h"
#include "graph/counters.h"

/* Does the slice have whole rows, of every device's part alike, and are they in the array in every iteration? */
static bool has_rows(const oly_frame *f, const oly_node *n, const oly_local_step *s, oly_counted *form)
{
    const oly_type *x = &n->in[0]->type;
    if (n->params.n_batch > 0 || x->rank == 0 || n->type.rank != x->rank || !oly_counted_of(f->loop, n->in[1], form))
        return false;
    for (int d = 0; d < x->rank; d++) {
        bool whole = d == 0 ? s->out.split[0].parts == 1 && s->in[0].split[0].parts == 1
                            : n->type.shape[d] == x->shape[d] && s->out.split[d].parts == s->in[0].split[d].parts;
        if (!whole)
            return false;
    }
    int64_t end = form->first + form->step * (form->count - 1), most = x->shape[0] - n->type.shape[0];
    return form->first >= 0 && form->first <= most && end >= 0 && end <= most;
}

static bool is_stored(oly_frame *f, const oly_node *n, const oly_layout *l)
{
    for (const oly_node *outer; (outer = oly_captured(f, n)); f = f->outer)
        n = outer;
    const oly_value *v = oly_value_of(f, n);
    return v->slot >= 0 && oly_layout_equal(v->layout, l);
}

oly_status oly_lower_counted(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done)
{
    oly_counted form;
    oly_region all = oly_region_of_layout(&s->in[0]), part = oly_region_of_layout(&s->out);
    int of, slot;
    *done = false;
    if (!oly_enabled(OLY_OPTIMISATION_LOOP_ROWS) || !oly_facts_now()->one_memory || s->op != OLY_LOCAL_DYNAMIC_SLICE ||
        !f->loop || f->loop->params.n_branches > 0 || s->out.mesh != p->mesh || !oly_captured(f, n->in[0]) ||
        oly_is_constant(n->in[0]) || !has_rows(f, n, s, &form) || !oly_is_at_hand(f, n->in[0], &all))
        return OLY_OK;
    if (!is_stored(f, n->in[0], &s->in[0]) && 2 * form.count * n->type.shape[0] < n->in[0]->type.shape[0])
        return OLY_OK;
    OLY_TRY(oly_materialise(p, f, n->in[0], &s->in[0], &of));
    slot = oly_slot_new(p, &part, oly_dtype_size(n->type.dtype));
    if (slot < 0)
        return OLY_MEMORY;
    oly_loop_row row = {slot, of, n->type.shape[0], form.first, form.step, n->in[0]->type.shape[0] - n->type.shape[0]};
    OLY_TRY(oly_bind_rows(p, &row, f->block, &f->n_rows, &f->rows));
    oly_value *v = oly_value_of(f, n);
    OLY_TRY(oly_set_layout(p, v, &s->out));
    v->block = f->block;
    v->slot = slot;
    *done = true;
    return OLY_OK;
}
