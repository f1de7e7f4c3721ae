/* What the body of a loop over fields does (march.h): values that are read aside, or more than once in different places, and the
 * carries' new values become stages; all else becomes part of their programs. A stage is cut into pieces within which every
 * update, padding and concatenation on the way is one of its operands. Called by march.c. */
#include "plan/march_code.h"
#include "core/error.h"
#include "graph/view.h"
#include <string.h>

enum { FARTHEST = 16, MOST_PIECES = 128, MOST_KNOWN = 384, DEEPEST = 200 };

/* How a node's elements lie to those of the stage: element x of the stage looks at element x[dim[e]] + shift[e]. Where a dimension
 * goes round, that + turn[dim[e]] lies within the node. */
typedef struct spot {
    int dim[OLY_MAX_RANK]; /* -1: element shift[e] */
    int64_t shift[OLY_MAX_RANK], turn[OLY_MARCH_RANK];
} spot;

typedef struct known {
    const oly_node *node;
    spot at;
    int value;
} known;

/* Of a node on whose fields the body's values depend: where it was met first, and whether it is a stage. */
typedef struct meeting {
    int depends; /* 0: not on what changes; 1: on the counter alone; 2: on fields */
    int input;   /* of the body; -1 */
    bool met, is_stage, is_placed;
    const oly_node *root;
    spot at;
    int stage; /* its number */
    int64_t align[OLY_MARCH_RANK];
} meeting;

typedef struct finder {
    oly_planner *p;
    const oly_graph *body;
    oly_march_form *form;
    meeting *meetings; /* [n_nodes] */
    oly_march_code *code;
    known *known;
    int n_known, fixed_capacity;
    bool fails, again, aside; /* nothing of this kind; other stages are needed; something is read aside */
    /* the piece at hand */
    const oly_node *root;
    int64_t lo[OLY_MARCH_RANK], hi[OLY_MARCH_RANK];
    int cut; /* dimension in which it must be cut; -1 */
    int64_t cut_at;
} finder;

static meeting *meeting_of(finder *f, const oly_node *n)
{
    return &f->meetings[n->index];
}

static int fail(finder *f)
{
    f->fails = true;
    return -1;
}

static bool same_spot(const spot *a, const spot *b, int rank)
{
    return memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)rank) == 0 &&
           memcmp(a->shift, b->shift, sizeof *a->shift * (size_t)rank) == 0;
}

/* Dimension for dimension that of the grid. */
static bool is_plain(const finder *f, const oly_node *n, const spot *at)
{
    bool plain = n->type.rank == f->form->rank;
    for (int d = 0; plain && d < n->type.rank; d++)
        plain = at->dim[d] == d;
    return plain;
}

/* Are there only operations that can be looked through? */
static bool may_be_found(const oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        switch (oly_ops[g->nodes[k]->op].lowering) {
        case OLY_LOWER_INPUT:
        case OLY_LOWER_TILE:
        case OLY_LOWER_VIEW:
        case OLY_LOWER_WRITE:
        case OLY_LOWER_PAD:
        case OLY_LOWER_RESHAPE:
        case OLY_LOWER_PLACE: break;
        default: return false;
        }
    return true;
}

static void find_dependence(finder *f)
{
    const oly_graph *g = f->body;
    for (int k = 0; k < g->n_nodes; k++)
        f->meetings[k].input = -1;
    for (int j = 0; j < g->n_inputs; j++) {
        meeting *m = meeting_of(f, g->inputs[j]);
        m->input = j;
        m->depends = j == 0 ? 1 : j <= f->form->n_fields ? 2 : 0;
    }
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++) {
            int other = meeting_of(f, g->nodes[k]->in[j])->depends;
            if (other > f->meetings[k].depends)
                f->meetings[k].depends = other;
        }
}

/* -- reading ---------------------------------------------------------------------------------------------------------- */

/* An element as far away as the other end is one near by, where the dimension goes round. */
static bool bring_near(finder *f, int64_t size, int d, int64_t *shift)
{
    int64_t n = f->form->shape[d], far = *shift < 0 ? -*shift : *shift;
    if (size == n && 2 * far > n) {
        *shift += *shift < 0 ? n : -n;
        f->form->wraps[d] = true;
        far = *shift < 0 ? -*shift : *shift;
    }
    return far <= FARTHEST;
}

static int read_value(finder *f, const oly_node *n, const spot *at, oly_march_kind kind, int index)
{
    oly_march_load load = {{kind, index}, {0}};
    const int64_t *from = meeting_of(f, n)->align, *to = meeting_of(f, f->root)->align;
    if (!is_plain(f, n, at))
        return fail(f);
    for (int d = 0; d < f->form->rank; d++) {
        load.shift[d] = at->shift[d] + (kind == OLY_MARCH_STAGE ? from[d] : 0) - to[d];
        if (!bring_near(f, n->type.shape[d], d, &load.shift[d]))
            return fail(f);
        f->aside = f->aside || load.shift[d] != 0;
    }
    int value = oly_march_read(f->code, &load, n->type.dtype);
    return value < 0 ? fail(f) : value;
}

static oly_march_fixed *find_fixed(finder *f, const oly_node *n, const spot *at)
{
    oly_march_form *form = f->form;
    for (int k = 0; k < form->n_fixed; k++) {
        oly_march_fixed *x = &form->fixed[k];
        bool same = x->node == n && memcmp(x->dim, at->dim, sizeof *x->dim * (size_t)n->type.rank) == 0;
        for (int e = 0; same && e < n->type.rank; e++)
            same = x->dim[e] >= 0 || x->at[e] == at->shift[e];
        if (same)
            return x;
    }
    if (form->n_fixed == f->fixed_capacity)
        return NULL;
    oly_march_fixed *x = &form->fixed[form->n_fixed++];
    *x = (oly_march_fixed){.node = n};
    memcpy(x->dim, at->dim, sizeof x->dim);
    memcpy(x->at, at->shift, sizeof x->at);
    return x;
}

static int read_fixed(finder *f, const oly_node *n, const spot *at)
{
    oly_march_load load = {{OLY_MARCH_FIXED, 0}, {0}};
    oly_march_fixed *x = find_fixed(f, n, at);
    if (!x)
        return fail(f);
    load.of.index = (int)(x - f->form->fixed);
    for (int e = 0; e < n->type.rank; e++) {
        int d = at->dim[e];
        if (d < 0)
            continue;
        int64_t shift = at->shift[e] - meeting_of(f, f->root)->align[d];
        if (!bring_near(f, n->type.shape[e], d, &shift))
            return fail(f);
        load.shift[d] = shift;
        x->low[d] = shift < x->low[d] ? shift : x->low[d];
        x->high[d] = shift > x->high[d] ? shift : x->high[d];
    }
    int value = oly_march_read(f->code, &load, n->type.dtype);
    return value < 0 ? fail(f) : value;
}

/* -- the way through the graph ------------------------------------------------------------------------------------------ */

static int value_of(finder *f, const oly_node *n, const spot *at, int depth);

/* Elements of the node that the piece looks at along its dimension e. */
static void range_of(const finder *f, const spot *at, int e, int64_t *lo, int64_t *hi)
{
    int d = at->dim[e];
    *lo = at->shift[e] + (d < 0 ? 0 : f->lo[d] + at->turn[d]);
    *hi = at->shift[e] + (d < 0 ? 1 : f->hi[d] + at->turn[d]);
}

/* The piece must be cut where it looks at element i of the node's dimension e. */
static int cut(finder *f, const spot *at, int e, int64_t i)
{
    f->cut = at->dim[e];
    f->cut_at = i - at->shift[e] - (f->cut < 0 ? 0 : at->turn[f->cut]);
    return -1;
}

static int through_view(finder *f, const oly_node *n, const spot *at, int depth)
{
    oly_view_dim dims[OLY_MAX_RANK];
    spot to = {.dim = {0}};
    memcpy(to.turn, at->turn, sizeof to.turn);
    for (int e = 0; e < OLY_MAX_RANK; e++)
        to.dim[e] = -1;
    oly_view_of(n, dims);
    for (int d = 0; d < n->type.rank; d++) {
        if (dims[d].from < 0)
            continue;
        if (dims[d].step != 1 && n->type.shape[d] > 1)
            return fail(f);
        to.dim[dims[d].from] = at->dim[d];
        to.shift[dims[d].from] = at->shift[d] + dims[d].start;
    }
    return value_of(f, n->in[0], &to, depth);
}

/* Dimensions of one element come and go. */
static int through_reshape(finder *f, const oly_node *n, const spot *at, int depth)
{
    const oly_type *in = &n->in[0]->type;
    spot to = {.dim = {0}};
    int d = 0;
    memcpy(to.turn, at->turn, sizeof to.turn);
    for (int e = 0; e < OLY_MAX_RANK; e++)
        to.dim[e] = -1;
    for (int e = 0; e < in->rank; e++) {
        if (in->shape[e] == 1)
            continue;
        while (d < n->type.rank && n->type.shape[d] == 1)
            d++;
        if (d == n->type.rank || n->type.shape[d] != in->shape[e])
            return fail(f);
        to.dim[e] = at->dim[d];
        to.shift[e] = at->shift[d++];
    }
    for (; d < n->type.rank; d++)
        if (n->type.shape[d] != 1)
            return fail(f);
    return value_of(f, n->in[0], &to, depth);
}

static int through_roll(finder *f, const oly_node *n, const spot *at, int e, int64_t by, int depth)
{
    const oly_node *x = n->in[0]->in[0];
    int64_t size = n->type.shape[e], lo, hi;
    int d = at->dim[e];
    spot to = *at;
    if (d < 0 || size != f->form->shape[d])
        return fail(f);
    f->form->wraps[d] = true;
    to.shift[e] += 2 * by > size ? by - size : by;
    if (meeting_of(f, x)->input >= 0 || meeting_of(f, x)->is_stage)
        return value_of(f, x, &to, depth);
    range_of(f, &to, e, &lo, &hi);
    if (lo < 0 && hi > 0)
        return cut(f, &to, e, 0);
    if (lo < size && hi > size)
        return cut(f, &to, e, size);
    if (lo >= size)
        to.turn[d] -= size;
    if (hi <= 0)
        to.turn[d] += size;
    return value_of(f, x, &to, depth);
}

/* Is the piece within a box of the node's elements? *outside: it has nothing of it; cuts it when it has some. */
static bool is_within(finder *f, const oly_node *n, const spot *at, const int64_t *start, const int64_t *extent,
                      bool *outside)
{
    bool within = true;
    *outside = false;
    for (int e = 0; e < n->type.rank; e++) {
        int64_t lo, hi;
        range_of(f, at, e, &lo, &hi);
        *outside = *outside || hi <= start[e] || lo >= start[e] + extent[e];
        within = within && lo >= start[e] && hi <= start[e] + extent[e];
    }
    for (int e = 0; e < n->type.rank && !within && !*outside && f->cut < 0; e++) {
        int64_t lo, hi;
        range_of(f, at, e, &lo, &hi);
        if (lo < start[e])
            cut(f, at, e, start[e]);
        else if (hi > start[e] + extent[e])
            cut(f, at, e, start[e] + extent[e]);
    }
    return within;
}

static int through_part(finder *f, const oly_node *n, const spot *at, const oly_node *inside, const oly_node *around,
                        int depth)
{
    bool outside;
    for (int e = 0; e < n->type.rank; e++)
        if (n->params.step[e] != 1 && inside->type.shape[e] > 1)
            return fail(f);
    if (is_within(f, n, at, n->params.start, inside->type.shape, &outside)) {
        spot to = *at;
        for (int e = 0; e < n->type.rank; e++)
            to.shift[e] -= n->params.start[e];
        return value_of(f, inside, &to, depth);
    }
    return outside ? value_of(f, around, at, depth) : -1;
}

static int through_concatenation(finder *f, const oly_node *n, const spot *at, int depth)
{
    int e = n->params.dimension;
    int64_t by, begin = 0, lo, hi;
    int round;
    if (oly_is_roll(n, &round, &by))
        return through_roll(f, n, at, round, by, depth);
    range_of(f, at, e, &lo, &hi);
    for (int k = 0; k < n->n_in; k++) {
        int64_t end = begin + n->in[k]->type.shape[e];
        if (lo >= begin && lo < end) {
            spot to = *at;
            if (hi > end)
                return cut(f, at, e, end);
            to.shift[e] -= begin;
            return value_of(f, n->in[k], &to, depth);
        }
        begin = end;
    }
    return fail(f);
}

/* A value computed from fields that is met in two places is a stage: it is computed once. */
static void meet(finder *f, const oly_node *n, const spot *at)
{
    meeting *m = meeting_of(f, n);
    if (m->depends < 2 || n == f->root)
        return;
    if (m->met && (m->root != f->root || !same_spot(&m->at, at, n->type.rank)))
        m->is_stage = f->again = true;
    m->met = true;
    m->root = f->root;
    m->at = *at;
}

static int through_operation(finder *f, const oly_node *n, const spot *at, int depth)
{
    int in[3] = {-1, -1, -1}, dimension = n->params.dimension;
    if (oly_is_constant(n))
        return oly_march_splat(f->code, n);
    if (oly_ops[n->op].detail == OLY_TILE_iota) {
        if (n->type.rank != 1 && dimension < 0)
            return fail(f);
        dimension = dimension < 0 ? 0 : dimension;
        if (at->dim[dimension] < 0 || at->shift[dimension] != 0 || at->turn[at->dim[dimension]] != 0)
            return fail(f);
        dimension = at->dim[dimension];
    }
    meet(f, n, at);
    if (n->n_in > 3)
        return fail(f);
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k]->type.rank != n->type.rank ||
            memcmp(n->in[k]->type.shape, n->type.shape, sizeof(int64_t) * (size_t)n->type.rank) != 0)
            return fail(f);
        in[k] = value_of(f, n->in[k], at, depth);
        if (in[k] < 0)
            return -1;
    }
    int value = oly_march_operate(f->code, n, in, dimension);
    return value < 0 ? fail(f) : value;
}

static int through(finder *f, const oly_node *n, const spot *at, int depth)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_TILE: return through_operation(f, n, at, depth);
    case OLY_LOWER_VIEW: return through_view(f, n, at, depth);
    case OLY_LOWER_RESHAPE: return through_reshape(f, n, at, depth);
    case OLY_LOWER_PLACE: return value_of(f, n->in[0], at, depth);
    case OLY_LOWER_WRITE:
        if (oly_ops[n->op].detail == OLY_WRITE_ALL)
            return through_concatenation(f, n, at, depth);
        return through_part(f, n, at, n->in[1], n->in[0], depth);
    case OLY_LOWER_PAD: {
        const spot none = {.dim = {-1}};
        bool outside;
        is_within(f, n, at, n->params.start, n->in[0]->type.shape, &outside);
        return f->cut < 0 && outside ? value_of(f, n->in[1], &none, depth)
                                     : through_part(f, n, at, n->in[0], n->in[1], depth);
    }
    default: return fail(f);
    }
}

/* The number of the value that the piece looks at; -1: it fails, or must be cut. */
static int value_of(finder *f, const oly_node *n, const spot *at, int depth)
{
    const meeting *m = meeting_of(f, n);
    if (f->fails || f->cut >= 0)
        return -1;
    if (depth > DEEPEST)
        return fail(f);
    if (m->input == 0) {
        int counter = oly_march_read(f->code, &(oly_march_load){{OLY_MARCH_COUNTER, 0}, {0}}, n->type.dtype);
        return counter < 0 ? fail(f) : counter;
    }
    if (m->input > 0 && m->input <= f->form->n_fields)
        return read_value(f, n, at, OLY_MARCH_FIELD, m->input - 1);
    if (m->input > 0)
        return read_fixed(f, n, at);
    if (m->is_stage && n != f->root) {
        meeting *stage = meeting_of(f, n);
        const int64_t *to = meeting_of(f, f->root)->align;
        for (int d = 0; d < f->form->rank && !stage->is_placed; d++)
            stage->align[d] = to[d] - at->shift[d];
        stage->is_placed = true;
        return read_value(f, n, at, OLY_MARCH_STAGE, stage->stage);
    }
    for (int k = 0; k < f->n_known; k++)
        if (f->known[k].node == n && same_spot(&f->known[k].at, at, n->type.rank))
            return f->known[k].value;
    int value = through(f, n, at, depth + 1);
    if (value >= 0 && f->n_known < MOST_KNOWN)
        f->known[f->n_known++] = (known){n, *at, value};
    return value;
}

/* -- pieces ------------------------------------------------------------------------------------------------------------- */

static oly_status make_piece(finder *f, const oly_node *n, oly_march_piece *piece, bool *made)
{
    spot at = {.dim = {0}};
    bool fits;
    f->n_known = f->code->n_loads = f->code->n_instructions = 0;
    f->cut = -1;
    for (int d = 0; d < OLY_MAX_RANK; d++)
        at.dim[d] = d;
    memcpy(f->lo, piece->lo, sizeof f->lo);
    memcpy(f->hi, piece->hi, sizeof f->hi);
    int value = through(f, n, &at, 0);
    *made = value >= 0;
    if (value < 0) {
        f->fails = f->fails || f->cut < 0 || f->cut_at <= f->lo[f->cut] || f->cut_at >= f->hi[f->cut];
        return OLY_OK;
    }
    OLY_TRY(oly_march_finish(f->p, f->code, value, n->type.dtype, piece, &fits));
    f->fails = f->fails || !fits;
    return OLY_OK;
}

/* b joins a when both run the same program and lie side by side. */
static bool join(oly_march_piece *a, const oly_march_piece *b, int rank)
{
    int apart = -1;
    for (int d = 0; d < rank; d++) {
        if (a->lo[d] == b->lo[d] && a->hi[d] == b->hi[d])
            continue;
        if (apart >= 0 || (a->hi[d] != b->lo[d] && b->hi[d] != a->lo[d]))
            return false;
        apart = d;
    }
    if (apart < 0 || !oly_march_same_program(a, b, rank))
        return false;
    a->lo[apart] = a->lo[apart] < b->lo[apart] ? a->lo[apart] : b->lo[apart];
    a->hi[apart] = a->hi[apart] > b->hi[apart] ? a->hi[apart] : b->hi[apart];
    return true;
}

static void join_all(oly_march_stage *s, int rank)
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

static oly_status make_stage(finder *f, const oly_node *n, oly_march_stage *s)
{
    oly_march_piece todo[MOST_PIECES + 2], done[MOST_PIECES + 1];
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
        oly_march_piece piece = todo[--n_todo];
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
    s->pieces = OLY_PLAN_NEW(f->p, oly_march_piece, s->n_pieces + 1);
    OLY_PLAN_CHECK(s->pieces);
    memcpy(s->pieces, done, sizeof *done * (size_t)s->n_pieces);
    memcpy(s->align, meeting_of(f, n)->align, sizeof s->align);
    for (int k = 0; k < s->n_pieces; k++)
        for (int d = 0; d < rank; d++) {
            s->pieces[k].lo[d] += s->align[d];
            s->pieces[k].hi[d] += s->align[d];
        }
    return OLY_OK;
}

/* -- stages --------------------------------------------------------------------------------------------------------------- */

/* Stages in the order of the graph. Users come first, so that each is placed before its own operands are. */
static oly_status make_stages(finder *f)
{
    const oly_graph *g = f->body;
    oly_march_form *form = f->form;
    form->n_stages = form->n_fixed = 0;
    f->again = f->aside = false;
    memset(form->wraps, 0, sizeof form->wraps);
    for (int k = 0; k < g->n_nodes; k++) {
        meeting *m = &f->meetings[k];
        m->met = m->is_placed = false;
        if (m->is_stage)
            m->stage = form->n_stages++;
    }
    for (int j = 0; j < form->n_fields; j++)
        meeting_of(f, g->outputs[j])->is_placed = true; /* where the grid is */
    form->stages = OLY_PLAN_NEW(f->p, oly_march_stage, form->n_stages + 1);
    OLY_PLAN_CHECK(form->stages);
    for (int k = g->n_nodes - 1; k >= 0 && !f->fails; k--)
        if (f->meetings[k].is_stage && f->meetings[k].is_placed)
            OLY_TRY(make_stage(f, g->nodes[k], &form->stages[f->meetings[k].stage]));
    return OLY_OK;
}

/* What comes from outside must go round with the grid: all of it, not a part. */
static bool goes_round(finder *f)
{
    for (int k = 0; k < f->form->n_fixed; k++) {
        const oly_march_fixed *x = &f->form->fixed[k];
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

static bool has_grid(const oly_node *loop, oly_march_form *form)
{
    const oly_graph *body = loop->params.body;
    form->n_fields = loop->params.n_carry;
    if (form->n_fields < 1 || body->inputs[1]->type.rank < 1 || body->inputs[1]->type.rank > OLY_MARCH_RANK)
        return false;
    form->rank = body->inputs[1]->type.rank;
    memcpy(form->shape, body->inputs[1]->type.shape, sizeof(int64_t) * (size_t)form->rank);
    for (int j = 0; j < form->n_fields; j++) {
        const oly_type *in = &body->inputs[1 + j]->type, *out = &body->outputs[j]->type;
        if (in->rank != form->rank || out->rank != form->rank || in->dtype != out->dtype)
            return false;
        for (int d = 0; d < form->rank; d++)
            if (in->shape[d] != form->shape[d] || out->shape[d] != form->shape[d] || form->shape[d] < 1)
                return false;
    }
    return true;
}

static oly_status find_form(finder *f, bool *found)
{
    oly_march_form *form = f->form;
    const oly_graph *g = f->body;
    find_dependence(f);
    for (int j = 0; j < form->n_fields; j++) {
        form->field[j] = g->inputs[1 + j];
        meeting *m = meeting_of(f, g->outputs[j]);
        f->fails = f->fails || m->input == 0 || m->input > form->n_fields;
        m->is_stage = m->input < 0;
    }
    do
        OLY_TRY(make_stages(f));
    while (f->again && !f->fails);
    if (f->fails || !f->aside || !goes_round(f))
        return OLY_OK;
    for (int j = 0; j < form->n_fields; j++) {
        const meeting *m = meeting_of(f, g->outputs[j]);
        form->out[j] =
            m->input > 0 ? (oly_march_ref){OLY_MARCH_FIELD, m->input - 1} : (oly_march_ref){OLY_MARCH_STAGE, m->stage};
    }
    *found = true;
    return OLY_OK;
}

oly_status oly_march_find(oly_planner *p, const oly_node *loop, oly_march_form *form, bool *found)
{
    finder f = {.p = p, .body = loop->params.body, .form = form};
    size_t n = (size_t)f.body->n_nodes + 1;
    *found = false;
    memset(form, 0, sizeof *form);
    if (!has_grid(loop, form) || !may_be_found(f.body))
        return OLY_OK;
    f.fixed_capacity = 2 * (int)n;
    f.meetings = oly_calloc(n, sizeof *f.meetings);
    f.code = oly_malloc(sizeof *f.code);
    f.known = oly_malloc(sizeof *f.known * MOST_KNOWN);
    form->fixed = OLY_PLAN_NEW(p, oly_march_fixed, f.fixed_capacity);
    form->out = OLY_PLAN_NEW(p, oly_march_ref, form->n_fields);
    form->field = OLY_PLAN_NEW(p, const oly_node *, form->n_fields);
    bool taken = f.meetings && f.code && f.known && form->fixed && form->out && form->field;
    oly_status st = taken ? find_form(&f, found) : oly_out_of_memory(0, "a plan");
    oly_release(f.meetings);
    oly_release(f.code);
    oly_release(f.known);
    return st;
}
