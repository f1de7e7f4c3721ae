/* SPDX-License-Identifier: BSD-3-Clause */
/* What the body of a loop over fields computes (time_tiling.h). Values that are read at an offset, or more than once at
 * different positions, and the new values of carries become stages; everything else becomes part of their programs. A
 * stage is divided into pieces, within each of which every update, padding and concatenation on the path
 * (time_tiling_walk.c) is one of its operands. Called by time_tiling.c. */
#include "plan/stencil/time_tiling_walk.h"
#include "core/error.h"
#include <string.h>

enum {
    MOST_PIECES = 128,
    MOST_APART = 8, /* largest difference of the extents of fields */
    MOST_CARRIES = 64,
};

bool oly_tiling_sees_through(const oly_node *n)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_INPUT:
    case OLY_LOWER_TILE:
    case OLY_LOWER_VIEW:
    case OLY_LOWER_WRITE:
    case OLY_LOWER_PAD:
    case OLY_LOWER_RESHAPE:
    case OLY_LOWER_PLACE: return true;
    default: return false;
    }
}

/* Are all operations of the kinds that the walk can follow? */
static bool may_be_found(const oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (!oly_tiling_sees_through(g->nodes[k]))
            return false;
    return true;
}

static void find_dependence(oly_tiling_walk *f)
{
    const oly_graph *g = f->body;
    for (int k = 0; k < g->n_nodes; k++)
        f->meetings[k].input = -1;
    for (int j = 0; j < g->n_inputs; j++) {
        oly_tiling_meeting *m = oly_tiling_meeting_of(f, g->inputs[j]);
        /* what a region computes of other values has not been computed before it, unlike a loop's invariants */
        bool field = j <= f->form->n_fields || (f->form->region && g->inputs[j]->type.rank == f->form->rank);
        m->input = j;
        m->depends = j == 0 ? 1 : field ? 2 : 0;
    }
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++) {
            int other = oly_tiling_meeting_of(f, g->nodes[k]->in[j])->depends;
            if (other > f->meetings[k].depends)
                f->meetings[k].depends = other;
        }
}

/* -- pieces -------------------------------------------------------------------------------------------------------- */

static oly_status make_piece(oly_tiling_walk *f, const oly_node *n, oly_tiling_piece *piece, bool *made)
{
    oly_tiling_spot at = {.dim = {0}};
    bool fits;
    f->n_known = f->code->n_loads = f->code->n_instructions = 0;
    f->cut = -1;
    for (int d = 0; d < OLY_MAX_RANK; d++)
        at.dim[d] = d;
    memcpy(f->lo, piece->lo, sizeof f->lo);
    memcpy(f->hi, piece->hi, sizeof f->hi);
    int value = oly_tiling_walk_from(f, n, &at);
    *made = value >= 0;
    if (value < 0) {
        f->fails = f->fails || f->cut < 0 || f->cut_at <= f->lo[f->cut] || f->cut_at >= f->hi[f->cut];
        return OLY_OK;
    }
    OLY_TRY(oly_tiling_finish(f->p, f->code, value, n->type.dtype, !f->form->region, piece, &fits));
    f->fails = f->fails || !fits;
    return OLY_OK;
}

/* Merges b into a if both run the same program and are adjacent. */
static bool join(oly_tiling_piece *a, const oly_tiling_piece *b, int rank)
{
    int apart = -1;
    for (int d = 0; d < rank; d++) {
        if (a->lo[d] == b->lo[d] && a->hi[d] == b->hi[d])
            continue;
        if (apart >= 0 || (a->hi[d] != b->lo[d] && b->hi[d] != a->lo[d]))
            return false;
        apart = d;
    }
    if (apart < 0 || !oly_tiling_same_program(a, b, rank))
        return false;
    a->lo[apart] = a->lo[apart] < b->lo[apart] ? a->lo[apart] : b->lo[apart];
    a->hi[apart] = a->hi[apart] > b->hi[apart] ? a->hi[apart] : b->hi[apart];
    return true;
}

static void join_all(oly_tiling_stage *s, int rank)
{
    bool joined = true;
    while (joined) {
        joined = false;
        for (int i = 0; i < s->n_pieces; i++)
            for (int j = i + 1; j < s->n_pieces; j++)
                if (join(&s->pieces[i], &s->pieces[j], rank)) {
                    s->pieces[j--] = s->pieces[--s->n_pieces];
                    joined = true;
                }
    }
}

static oly_status make_stage(oly_tiling_walk *f, const oly_node *n, oly_tiling_stage *s)
{
    oly_tiling_piece todo[MOST_PIECES + 2], done[MOST_PIECES + 1];
    int n_todo = 1, rank = f->form->rank;
    if (n->type.rank != rank) {
        f->fails = true;
        return OLY_OK;
    }
    f->root = n;
    s->node = n;
    s->n_pieces = 0;
    s->pieces = done;
    memset(todo, 0, sizeof *todo);
    memcpy(todo[0].hi, n->type.shape, sizeof(int64_t) * (size_t)rank);
    while (n_todo > 0 && !f->fails) {
        oly_tiling_piece piece = todo[--n_todo];
        bool made;
        OLY_TRY(make_piece(f, n, &piece, &made));
        if (made) {
            s->pieces[s->n_pieces++] = piece;
        } else if (!f->fails) {
            todo[n_todo] = todo[n_todo + 1] = piece;
            todo[n_todo++].lo[f->cut] = f->cut_at;
            todo[n_todo++].hi[f->cut] = f->cut_at;
        }
        f->fails = f->fails || s->n_pieces + n_todo > MOST_PIECES;
    }
    join_all(s, rank);
    s->pieces = OLY_PLAN_NEW(f->p, oly_tiling_piece, s->n_pieces + 1);
    OLY_PLAN_CHECK(s->pieces);
    memcpy(s->pieces, done, sizeof *done * (size_t)s->n_pieces);
    memcpy(s->align, oly_tiling_meeting_of(f, n)->align, sizeof s->align);
    for (int k = 0; k < s->n_pieces; k++)
        for (int d = 0; d < rank; d++) {
            s->pieces[k].lo[d] += s->align[d];
            s->pieces[k].hi[d] += s->align[d];
        }
    return OLY_OK;
}

/* -- stages -------------------------------------------------------------------------------------------------------- */

/* A value that becomes a field after the step has the position of that field, like others of its extents. */
static void place_like_field(oly_tiling_walk *f, const oly_node *n)
{
    const oly_tiling_form *form = f->form;
    oly_tiling_meeting *m = oly_tiling_meeting_of(f, n);
    for (int j = 0; j < form->n_fields && !m->is_placed; j++)
        if (memcmp(n->type.shape, form->field[j]->type.shape, sizeof(int64_t) * (size_t)form->rank) == 0) {
            memcpy(m->align, form->align[j], sizeof m->align);
            m->is_placed = true;
        }
}

/* Numbers stages in the order of the graph and makes them from last to first: users precede operands, so that each
 * stage has a position before its operands need one. */
static oly_status make_stages(oly_tiling_walk *f)
{
    const oly_graph *g = f->body;
    oly_tiling_form *form = f->form;
    form->n_stages = form->n_fixed = 0;
    f->again = f->aside = false;
    memset(form->wraps, 0, sizeof form->wraps);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_tiling_meeting *m = &f->meetings[k];
        m->met = m->is_placed = false;
        if (m->is_stage)
            m->stage = form->n_stages++;
    }
    for (int j = 0; j < form->n_fields; j++) {
        memcpy(oly_tiling_meeting_of(f, g->inputs[1 + j])->align, form->align[j], sizeof form->align[j]);
        place_like_field(f, g->outputs[j]);
    }
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k]->params.unrolled & OLY_UNROLLED_FIELD)
            place_like_field(f, g->nodes[k]);
    form->stages = OLY_PLAN_NEW(f->p, oly_tiling_stage, form->n_stages + 1);
    OLY_PLAN_CHECK(form->stages);
    for (int k = g->n_nodes - 1; k >= 0 && !f->fails; k--)
        if (f->meetings[k].is_stage && f->meetings[k].is_placed)
            OLY_TRY(make_stage(f, g->nodes[k], &form->stages[f->meetings[k].stage]));
    return OLY_OK;
}

/* Does it depend on the indexes of its elements? */
static bool counts(const oly_tiling_piece *p)
{
    bool any = false;
    for (int k = 0; k < p->program.n_instructions; k++)
        any = any || p->program.instructions[k].op == OLY_TILE_iota;
    return any;
}

static int64_t turned(int64_t x, int64_t n)
{
    return (x % n + n) % n;
}

/* Is an element of piece a one of piece b, or of a periodic image of b? If b is a: of another image. */
static bool coincide(const oly_tiling_form *form, const oly_tiling_piece *a, const oly_tiling_piece *b)
{
    bool in_each = a != b, in_some = false;
    for (int d = 0; d < form->rank; d++) {
        int64_t n = form->shape[d], first = a->hi[d] - a->lo[d], second = b->hi[d] - b->lo[d];
        bool meet = a->lo[d] < b->hi[d] && b->lo[d] < a->hi[d];
        if (form->wraps[d])
            meet = turned(b->lo[d] - a->lo[d], n) < first || turned(a->lo[d] - b->lo[d], n) < second;
        in_each = in_each && meet;
        in_some = in_some || (form->wraps[d] && first > n);
    }
    return a == b ? in_some : in_each;
}

/* On a periodic grid, a stage larger than the grid has elements that are images of others. Both must have the same
 * value, as in a periodic border, because a pass computes only one of them. */
static bool has_one_value(const oly_tiling_form *form, const oly_tiling_stage *s)
{
    for (int i = 0; i < s->n_pieces; i++)
        for (int j = i; j < s->n_pieces; j++) {
            const oly_tiling_piece *a = &s->pieces[i], *b = &s->pieces[j];
            if (coincide(form, a, b) && (counts(a) || !oly_tiling_same_program(a, b, form->rank)))
                return false;
        }
    return true;
}

/* Along a periodic dimension, fields and values from outside must span the whole grid, and stages must have one value
 * per element. */
static bool goes_round(oly_tiling_walk *f)
{
    for (int k = 0; k < f->form->n_stages; k++)
        if (!has_one_value(f->form, &f->form->stages[k]))
            return false;
    for (int j = 0; j < f->form->n_fields; j++)
        for (int d = 0; d < f->form->rank; d++)
            if (f->form->wraps[d] && f->form->field[j]->type.shape[d] != f->form->shape[d])
                return false;
    for (int k = 0; k < f->form->n_fixed; k++) {
        const oly_tiling_fixed *x = &f->form->fixed[k];
        for (int e = 0; e < x->node->type.rank; e++) {
            int d = x->dim[e];
            if (d < 0 || !f->form->wraps[d])
                continue;
            if (x->node->type.shape[e] != f->form->shape[d])
                return false;
        }
    }
    return true;
}

/* Aligns the fields at their centres; the grid is the hull of all. Other alignments would only make the body read
 * farther. */
static bool has_grid(const oly_node *loop, oly_tiling_form *form)
{
    const oly_graph *body = loop->params.body;
    const oly_type *first = &body->inputs[1]->type;
    form->rank = first->rank;
    for (int d = 0; d < form->rank; d++) {
        int64_t lo = 0, hi = first->shape[d];
        for (int j = 0; j < form->n_fields; j++) {
            const oly_type *in = &body->inputs[1 + j]->type, *out = &body->outputs[j]->type;
            if (in->rank != form->rank || out->rank != form->rank || in->dtype != out->dtype ||
                in->shape[d] != out->shape[d] || in->shape[d] < 1)
                return false;
            int64_t at = (first->shape[d] - in->shape[d]) / 2;
            form->align[j][d] = at;
            lo = at < lo ? at : lo;
            hi = at + in->shape[d] > hi ? at + in->shape[d] : hi;
        }
        form->shape[d] = hi - lo;
        for (int j = 0; j < form->n_fields; j++) {
            form->align[j][d] -= lo;
            if (form->shape[d] - body->inputs[1 + j]->type.shape[d] > MOST_APART)
                return false;
        }
    }
    return true;
}

/* Do carries, and operations, allow a loop over fields? */
static bool may_be_loop(const oly_node *loop, oly_tiling_form *form)
{
    const oly_graph *body = loop->params.body;
    return !body->has_effects && body->inputs[1]->type.rank >= 1 && body->inputs[1]->type.rank <= OLY_TILING_RANK &&
           has_grid(loop, form) && may_be_found(body);
}

bool oly_tiling_may_be_found(const oly_node *loop)
{
    oly_tiling_point align[MOST_CARRIES];
    oly_tiling_form form = {.n_fields = loop->params.n_carry, .align = align};
    return form.n_fields >= 1 && form.n_fields <= MOST_CARRIES && may_be_loop(loop, &form);
}

static oly_status find_form(oly_tiling_walk *f, bool *found)
{
    oly_tiling_form *form = f->form;
    const oly_graph *g = f->body;
    find_dependence(f);
    for (int j = 0; j < form->n_fields; j++) {
        form->field[j] = g->inputs[1 + j];
        oly_tiling_meeting *m = oly_tiling_meeting_of(f, g->outputs[j]);
        f->fails = f->fails || m->input == 0 || m->input > form->n_fields;
        m->is_stage = m->input < 0;
    }
    for (int k = 0; k < g->n_nodes; k++) /* as if each unrolled step were an iteration */
        f->meetings[k].is_stage = f->meetings[k].is_stage || (g->nodes[k]->params.unrolled && f->meetings[k].input < 0);
    do
        OLY_TRY(make_stages(f));
    while (f->again && !f->fails);
    if (f->fails || !f->aside || !goes_round(f))
        return OLY_OK;
    for (int j = 0; j < form->n_fields; j++) {
        const oly_tiling_meeting *m = oly_tiling_meeting_of(f, g->outputs[j]);
        form->out[j] = m->input > 0 ? (oly_tiling_ref){OLY_TILING_FIELD, m->input - 1}
                                    : (oly_tiling_ref){OLY_TILING_STAGE, m->stage};
    }
    *found = true;
    return oly_tiling_fuse(f->p, form);
}

oly_status oly_tiling_find(oly_planner *p, const oly_node *loop, oly_tiling_form *form, bool *found)
{
    oly_tiling_walk f = {.p = p, .body = loop->params.body, .form = form};
    size_t n = (size_t)f.body->n_nodes + 1;
    *found = false;
    memset(form, 0, sizeof *form);
    form->n_fields = loop->params.n_carry;
    form->unrolled = loop->params.unrolled & OLY_UNROLLED_LOOP;
    form->region = loop->params.unrolled & OLY_UNROLLED_REGION;
    if (form->n_fields < 1)
        return OLY_OK;
    form->align = OLY_PLAN_NEW(p, oly_tiling_point, form->n_fields);
    OLY_PLAN_CHECK(form->align);
    if (!may_be_loop(loop, form))
        return OLY_OK;
    f.fixed_capacity = 2 * (int)n;
    f.meetings = oly_calloc(n, sizeof *f.meetings);
    f.code = oly_malloc(sizeof *f.code);
    f.known = oly_malloc(sizeof *f.known * OLY_TILING_KNOWN);
    form->fixed = OLY_PLAN_NEW(p, oly_tiling_fixed, f.fixed_capacity);
    form->out = OLY_PLAN_NEW(p, oly_tiling_ref, form->n_fields);
    form->field = OLY_PLAN_NEW(p, const oly_node *, form->n_fields);
    bool taken = f.meetings && f.code && f.known && form->fixed && form->out && form->field;
    oly_status st = taken ? find_form(&f, found) : oly_out_of_memory(0, "a plan");
    oly_release(f.meetings);
    oly_release(f.code);
    oly_release(f.known);
    return st;
}
