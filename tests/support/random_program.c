/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs: see random_program.h. An instruction is drawn, run on one device, and kept if the library accepts
 * it; its result determines what may be drawn next (sums of integers below 2^24 are exact in any order, others have a
 * tolerance; operations that would magnify a tolerance are not drawn). */
#include "random_program.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_VALUE = 6000, LARGEST_INPUT = 2500 };

/* -- random numbers ---------------------------------------------------------------------------------------- */
static uint64_t next_random(program *p) /* splitmix64 */
{
    uint64_t z = p->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t random_below(program *p, uint64_t n)
{
    return next_random(p) % n;
}
static bool one_in(program *p, uint64_t n)
{
    return random_below(p, n) == 0;
}

static int64_t random_extent(program *p)
{
    static const int64_t extents[] = {2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 24, 31};
    if (one_in(p, 12))
        return 1;
    if (one_in(p, 30))
        return 0;
    return extents[random_below(p, sizeof extents / sizeof *extents)];
}

static void random_meshes(program *p)
{
    static const struct {
        int devices;
        const char *axes;
    } known[] = {{8, "x=8"}, {8, "x=2,y=4"}, {8, "x=4,y=2"}, {8, "x=2,y=2,z=2"}, {3, "x=3"},
                 {5, "x=5"}, {6, "x=2,y=3"}, {6, "x=6"},     {7, "x=7"},         {4, "x=2,y=2"},
                 {4, "x=4"}, {2, "x=2"},     {1, "x=1"},     {8, "x=1,y=8"},     {6, "x=3,y=2"}};
    int n_known = sizeof known / sizeof *known;
    p->n_devices = known[random_below(p, (uint64_t)n_known)].devices;
    if (one_in(p, 2))
        p->n_devices = 8;
    bool reversed = p->n_devices == 8 && one_in(p, 6);
    while (p->n_meshes < 4) {
        int k = (int)random_below(p, (uint64_t)n_known);
        if (known[k].devices != p->n_devices)
            continue;
        p->mesh[p->n_meshes++] = (oly_make_mesh)(known[k].axes);
    }
    if (reversed) {
        static const char *const names[] = {"y", "x"};
        p->mesh[0] = (oly_mesh_from_devices)(2, names, (int[]){4, 2}, (int[]){7, 6, 5, 4, 3, 2, 1, 0});
        for (int k = 1; k < 4; k++)
            p->mesh[k] = p->mesh[0];
    }
}

oly_sharding random_sharding(program *p, int rank)
{
    oly_mesh mesh = p->mesh[random_below(p, 4)];
    int axes[OLY_MAX_RANK][OLY_MAX_RANK + 1], used[OLY_MAX_RANK] = {0};
    const int *lists[OLY_MAX_RANK];
    for (int k = 0; k < oly_mesh_axis_count(mesh) && rank > 0 && !one_in(p, 8); k++) {
        int axis = (int)random_below(p, (uint64_t)oly_mesh_axis_count(mesh)), d = (int)random_below(p, (uint64_t)rank);
        bool taken = false;
        for (int e = 0; e < rank; e++)
            for (int j = 0; j < used[e]; j++)
                taken = taken || axes[e][j] == axis;
        if (!taken)
            axes[d][used[d]++] = axis;
    }
    for (int d = 0; d < rank; d++) {
        axes[d][used[d]] = -1;
        lists[d] = axes[d];
    }
    return (oly_named_axes)(mesh, rank, lists);
}

/* -- results ------------------------------------------------------------------------------------------------------- */
static bool is_inexact(const value *v)
{
    return element_is_inexact(v->dtype);
}
static bool is_complex(const value *v)
{
    return element_parts(v->dtype) == 2;
}
static double epsilon(const value *v)
{
    return element_epsilon(v->dtype);
}

static void measure(value *v)
{
    v->biggest = 0;
    v->integral = true;
    for (int64_t i = 0; i < v->size; i++)
        for (int part = 0; part < element_parts(v->dtype); part++) {
            double x = element_part(v->dtype, v->data, i, part);
            if (!isfinite(x))
                v->biggest = INFINITY;
            else if (fabs(x) > v->biggest)
                v->biggest = fabs(x);
            v->integral = v->integral && isfinite(x) && x == floor(x);
        }
}

/* Error of a sum of n terms of the given size, each with an error of its own. float16 and bfloat16 are summed in
 * float32 and rounded at the end. */
static double error_of_sum(const value *result, bool integral, double n, double size, double error)
{
    double step = fmin(epsilon(result), 0x1p-23);
    if (!is_inexact(result) || (integral && error == 0 && n * size <= 1 / step))
        return 0;
    if (!isfinite(result->biggest))
        return -1;
    return n * error + n * n * size * step + n * size * epsilon(result);
}

/* -- drawing instructions: each fills `s` and returns whether it is valid ------------------------------------------ */
static int any_value(program *p)
{
    if (one_in(p, 2) && p->n > 3) /* recent ones make chains */
        return p->n - 1 - (int)random_below(p, 3);
    return (int)random_below(p, (uint64_t)p->n);
}

static bool same_shape(const value *a, const value *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->rank) == 0;
}

static bool broadcasts(const value *a, const value *b)
{
    for (int k = 1; k <= a->rank && k <= b->rank; k++) {
        int64_t x = a->shape[a->rank - k], y = b->shape[b->rank - k];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    return true;
}

static void fill_input(program *p, value *v, bool integral)
{
    for (int64_t i = 0; i < v->size; i++)
        for (int part = 0; part < element_parts(v->dtype); part++) {
            double whole = (double)random_below(p, 7) - 3,
                   fraction = (double)random_below(p, 1u << 20) / (1u << 18) - 2;
            if (element_is_unsigned(v->dtype))
                whole = fabs(whole);
            if (v->dtype == OLY_BOOL)
                whole = whole > 0;
            set_element_part(v->dtype, v->data, i, part, integral || !is_inexact(v) ? whole : fraction);
        }
}

static int n_inputs(const program *p)
{
    int n = 0;
    for (int k = 0; k < p->n; k++)
        n += p->call[k].kind == MAKE_INPUT;
    return n;
}

/* Adds an input and returns its number, or -1. */
static int add_input(program *p, oly_dtype dtype, int rank, const int64_t *shape)
{
    if (n_inputs(p) == MOST_INPUTS || p->n == MOST_VALUES)
        return -1;
    instruction *s = &p->call[p->n];
    value *v = &p->value[p->n];
    *s = (instruction){.kind = MAKE_INPUT, .dtype = dtype, .rank = rank};
    *v = (value){.dtype = dtype, .rank = rank, .size = 1};
    for (int d = 0; d < rank; d++) {
        s->shape[d] = v->shape[d] = shape[d];
        v->size *= shape[d];
    }
    v->data = malloc((size_t)v->size * oly_dtype_size(dtype) + 16);
    if (!v->data || v->size > LARGEST_INPUT) {
        free(v->data);
        v->data = NULL;
        return -1;
    }
    fill_input(p, v, !one_in(p, 3));
    measure(v);
    if (!one_in(p, 6))
        s->sharding = random_sharding(p, rank);
    return p->n++;
}

static oly_dtype random_dtype(program *p)
{
    static const oly_dtype read_here[] = {OLY_BOOL, OLY_INT32, OLY_INT64, OLY_UINT32, OLY_FLOAT32, OLY_FLOAT64};
    return read_here[random_below(p, sizeof read_here / sizeof *read_here)];
}

/* Another value that fits x, or a new input of its shape (sometimes with extents of 1). */
static int companion(program *p, int x)
{
    for (int tries = 0; tries < 6; tries++) {
        int y = any_value(p);
        if (broadcasts(&p->value[x], &p->value[y]))
            return y;
    }
    value like = p->value[x];
    int drop = like.rank && one_in(p, 3) ? 1 + (int)random_below(p, (uint64_t)like.rank) : 0;
    for (int d = 0; d < like.rank; d++)
        if (one_in(p, 6))
            like.shape[d] = 1;
    return add_input(p, random_dtype(p), like.rank - drop, like.shape + drop);
}

static bool draw_two(program *p, instruction *s)
{
    s->row = (int)random_below(p, one_in(p, 2) ? N_COMMON_TWOS : N_TWOS);
    s->in[0] = any_value(p);
    s->in[1] = companion(p, s->in[0]);
    s->n_in = 2;
    if (one_in(p, 2) && s->in[1] >= 0) {
        int swap = s->in[0];
        s->in[0] = s->in[1];
        s->in[1] = swap;
    }
    return s->in[0] >= 0 && s->in[1] >= 0;
}

static bool draw_number(program *p, instruction *s)
{
    static const double numbers[] = {0, 1, 2, -1, 3, 0.5, -2, 0.25};
    s->row = (int)random_below(p, N_TWOS);
    s->in[0] = any_value(p);
    s->n_in = 1;
    s->number = numbers[random_below(p, 8)];
    if (random_twos[s->row].growth == EXACT_POWER)
        s->number = 2;
    else if (one_in(p, 8))
        s->imaginary = numbers[random_below(p, 8)];
    return true;
}

static bool draw_where(program *p, instruction *s)
{
    s->n_in = 3;
    s->in[0] = any_value(p);
    s->in[1] = companion(p, s->in[0]);
    if (s->in[1] < 0)
        return false;
    s->in[2] = companion(p, p->value[s->in[1]].size > p->value[s->in[0]].size ? s->in[1] : s->in[0]);
    return s->in[2] >= 0 && broadcasts(&p->value[s->in[1]], &p->value[s->in[2]]) &&
           broadcasts(&p->value[s->in[0]], &p->value[s->in[2]]);
}

static bool draw_reduce(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    s->n_in = 1;
    const value *x = &p->value[s->in[0]];
    s->row = (int)random_below(p, one_in(p, 4) ? N_REDUCTIONS : one_in(p, 2) ? 1 : PROD);
    s->all_axes = one_in(p, 4);
    s->keepdims = one_in(p, 3);
    for (int d = 0; d < x->rank; d++)
        if (!s->all_axes && one_in(p, 2))
            s->axes[s->n_axes++] = one_in(p, 3) ? d - x->rank : d;
    return true;
}

/* Products: an input is created if no value fits. */
static bool draw_product(program *p, instruction *s)
{
    s->n_in = 2;
    s->in[0] = any_value(p);
    const value *a = &p->value[s->in[0]];
    if (a->rank == 0 || a->rank > 3)
        return false;
    int64_t k = a->shape[a->rank - 1], shape[3] = {k, random_extent(p), 0};
    for (int tries = 0; tries < 4; tries++) {
        s->in[1] = any_value(p);
        const value *b = &p->value[s->in[1]];
        if (b->rank >= 1 && b->rank <= 3 && b->shape[b->rank > 1 ? b->rank - 2 : 0] == k)
            return true;
    }
    int rank = one_in(p, 4) ? 1 : 2;
    if (a->rank == 3 && one_in(p, 3)) {
        shape[0] = a->shape[0];
        shape[1] = k;
        shape[2] = random_extent(p);
        rank = 3;
    }
    oly_dtype dtype = one_in(p, 2) ? a->dtype : random_dtype(p);
    s->in[1] = add_input(p, dtype == OLY_BOOL ? OLY_INT32 : dtype, rank, shape);
    return s->in[1] >= 0;
}

static bool draw_reshape(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    s->n_in = 1;
    const value *x = &p->value[s->in[0]];
    s->rank = x->size == 0 ? x->rank : (int)random_below(p, 5);
    if (x->size == 0) {
        for (int d = 0; d < x->rank; d++) /* backwards: still no elements */
            s->shape[d] = x->shape[x->rank - 1 - d];
        return one_in(p, 3);
    }
    for (int d = 0; d < s->rank; d++)
        s->shape[d] = 1;
    int64_t left = x->size;
    if (s->rank == 0)
        return left == 1;
    if (one_in(p, 2)) { /* neighbours merge or split: factors in order */
        int d = 0;
        for (int64_t f = 2; left > 1; f++)
            while (left % f == 0) {
                left /= f;
                s->shape[d] *= f;
                if (d < s->rank - 1 && one_in(p, 2))
                    d++;
            }
        return true;
    }
    for (int64_t f = 2; left > 1; f++)
        for (; left % f == 0; left /= f)
            s->shape[random_below(p, (uint64_t)s->rank)] *= f;
    if (one_in(p, 4))
        s->shape[random_below(p, (uint64_t)s->rank)] = -1;
    return true;
}

static bool draw_transpose(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    s->n_in = 1;
    int rank = p->value[s->in[0]].rank;
    if (one_in(p, 3))
        return rank > 1; /* reversed */
    s->n_axes = rank;
    for (int d = 0; d < rank; d++)
        s->axes[d] = d;
    for (int d = rank - 1; d > 0; d--) {
        int e = (int)random_below(p, (uint64_t)d + 1), swap = s->axes[d];
        s->axes[d] = s->axes[e];
        s->axes[e] = swap;
    }
    return rank > 1;
}

static bool draw_broadcast(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    s->n_in = 1;
    const value *x = &p->value[s->in[0]];
    int more = (int)random_below(p, 3);
    if (x->rank + more > 5)
        return false;
    s->rank = x->rank + more;
    for (int d = 0; d < s->rank; d++) {
        int64_t have = d < more ? 1 : x->shape[d - more];
        s->shape[d] = have == 1 ? random_extent(p) : have;
    }
    return true;
}

static int random_index(program *p, int64_t n, char *text, size_t size)
{
    return snprintf(text, size, "%d", (int)random_below(p, (uint64_t)(2 * n)) - (int)n);
}

static int random_range(program *p, int64_t n, char *text, size_t size)
{
    static const char *const usual[] = {
        ":", "1:", ":-1", "1:-1", "::2", "2:", ":-2", "1::3", "2:-3", ":5", "-3:", "1:-1:2"};
    if (one_in(p, 2) || n == 0)
        return snprintf(text, size, "%s", usual[random_below(p, 12)]);
    int64_t start = (int64_t)random_below(p, (uint64_t)n),
            limit = start + (int64_t)random_below(p, (uint64_t)(n - start) + 1);
    int step = (int)random_below(p, 8);
    return step > 1 ? snprintf(text, size, "%d:%d:%d", (int)start, (int)limit, step)
                    : snprintf(text, size, "%d:%d", (int)start, (int)limit);
}

static void random_slices(program *p, const value *x, char *text, size_t size)
{
    size_t at = 0;
    int first = one_in(p, 6) && x->rank > 1 ? 1 + (int)random_below(p, (uint64_t)x->rank - 1) : 0;
    text[0] = 0;
    if (first > 0)
        at += (size_t)snprintf(text, size, "...");
    for (int d = first; d < x->rank; d++) {
        if (at > 0)
            at += (size_t)snprintf(text + at, size - at, ", ");
        bool index = x->shape[d] > 0 && one_in(p, 6);
        at += (size_t)(index ? random_index(p, x->shape[d], text + at, size - at)
                             : random_range(p, x->shape[d], text + at, size - at));
        if (first == 0 && one_in(p, 8))
            return;
    }
}

static bool draw_slice(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    s->n_in = 1;
    random_slices(p, &p->value[s->in[0]], s->slices, sizeof s->slices);
    return p->value[s->in[0]].rank > 0;
}

/* The value is another slice of the same array, one that happens to fit, or a number. */
static bool draw_update(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    s->in[1] = any_value(p);
    s->n_in = s->kind == APPLY_UPDATE ? 2 : 1;
    s->number = (double)random_below(p, 5) - 2;
    random_slices(p, &p->value[s->in[0]], s->slices, sizeof s->slices);
    return p->value[s->in[0]].rank > 0;
}

static bool draw_concatenate(program *p, instruction *s)
{
    s->in[0] = any_value(p);
    const value *x = &p->value[s->in[0]];
    if (x->rank == 0)
        return false;
    s->dimension = (int)random_below(p, (uint64_t)x->rank);
    s->n_in = 2 + (int)random_below(p, 2);
    for (int k = 1; k < s->n_in; k++) {
        s->in[k] = s->in[0];
        for (int tries = 0; tries < 8; tries++) {
            int y = any_value(p);
            value cut = p->value[y];
            if (cut.rank == x->rank) {
                cut.shape[s->dimension] = x->shape[s->dimension];
                if (same_shape(&cut, x))
                    s->in[k] = y;
            }
        }
    }
    if (one_in(p, 3))
        s->dimension -= x->rank;
    return true;
}

static bool step_fits(const program *p, int step, int x, int w)
{
    const value *a = &p->value[x], *b = &p->value[w];
    bool exact = a->error == 0 && a->integral && a->biggest <= 50, small = a->size <= 2000;
    bool ordered = a->dtype != OLY_BOOL && !is_complex(a); /* sums are clamped */
    bool with_sign = ordered && !element_is_unsigned(a->dtype);
    switch ((loop_step)step) {
    case STEP_STENCIL: return is_inexact(a) && a->rank > 0 && a->shape[0] > 2 && isfinite(a->biggest);
    case STEP_CAPTURE:
        return same_shape(a, b) && a->dtype == b->dtype && ordered && exact && b->integral && b->error == 0 &&
               b->biggest <= 50;
    case STEP_TOTAL: return exact && small && with_sign;
    case STEP_ROTATE: return a->rank > 0 && a->shape[0] > 0;
    case STEP_COUNTER: return exact && with_sign;
    case STEP_REVERSE: return a->rank == 2 && a->shape[0] == a->shape[1];
    case STEP_PRODUCT:
        return exact && a->rank == 2 && b->rank == 2 && b->shape[0] == b->shape[1] && a->shape[1] == b->shape[0] &&
               a->dtype == b->dtype && ordered && b->integral && b->error == 0 && b->biggest <= 50;
    case STEP_ROW: return a->rank > 1 && a->shape[0] > 0;
    case N_LOOP_STEPS: break;
    }
    return false;
}

static bool draw_loop(program *p, instruction *s)
{
    static const int times[] = {0, 1, 2, 3, 4, 7, 12, 33};
    s->in[0] = any_value(p);
    s->in[1] = any_value(p);
    s->n_in = 2;
    const value *x = &p->value[s->in[0]];
    if (x->rank == 2 && x->shape[1] > 0 && one_in(p, 3)) {
        int w = add_input(p, x->dtype, 2, (int64_t[]){x->shape[1], x->shape[1]});
        s->in[1] = w >= 0 ? w : s->in[1];
    }
    s->dtype = p->value[s->in[0]].dtype;
    s->times = times[random_below(p, 8)];
    int wanted = 1 + (int)random_below(p, MOST_LOOP_STEPS);
    bool stencil = false;
    for (int tries = 0; tries < 12 && s->n_steps < wanted; tries++) {
        int step = (int)random_below(p, N_LOOP_STEPS);
        bool sums = step == STEP_CAPTURE || step == STEP_TOTAL || step == STEP_PRODUCT || step == STEP_COUNTER;
        if (!step_fits(p, step, s->in[0], s->in[1]) || (stencil && sums))
            continue;
        bool exact_before = s->n_steps > 0 && step == STEP_STENCIL;
        for (int k = 0; k < s->n_steps && exact_before; k++)
            exact_before = s->step[k] != STEP_ROTATE && s->step[k] != STEP_REVERSE && s->step[k] != STEP_ROW;
        if (exact_before)
            continue; /* halves would not be integers */
        stencil = stencil || step == STEP_STENCIL;
        s->step[s->n_steps++] = step;
    }
    return s->n_steps > 0;
}

static bool draw(program *p, instruction *s)
{
    static const kind often[] = {
        APPLY_ONE,     APPLY_TWO,     APPLY_TWO,           APPLY_TWO,         APPLY_NUMBER,    APPLY_WHERE,
        APPLY_CONVERT, APPLY_REDUCE,  APPLY_REDUCE,        APPLY_MATMUL,      APPLY_MATMUL,    APPLY_DOT,
        APPLY_RESHAPE, APPLY_RESHAPE, APPLY_TRANSPOSE,     APPLY_BROADCAST,   APPLY_SLICE,     APPLY_SLICE,
        APPLY_UPDATE,  APPLY_UPDATE,  APPLY_UPDATE_NUMBER, APPLY_CONCATENATE, APPLY_PLACE,     APPLY_LOOP,
        APPLY_LOOP,    MAKE_ARANGE,   APPLY_REARRANGE,     APPLY_REARRANGE,   APPLY_REARRANGE, APPLY_REARRANGE};
    *s = (instruction){.kind = often[random_below(p, sizeof often / sizeof *often)]};
    switch (s->kind) {
    case MAKE_ARANGE:
        s->dtype = random_dtype(p);
        s->shape[0] = random_extent(p);
        return true;
    case APPLY_ONE:
        s->row = (int)random_below(p, N_ONES);
        s->in[0] = any_value(p);
        s->n_in = 1;
        return true;
    case APPLY_CONVERT:
        s->dtype = random_dtype(p);
        s->in[0] = any_value(p);
        s->n_in = 1;
        return true;
    case APPLY_PLACE:
        s->in[0] = any_value(p);
        s->n_in = 1;
        s->sharding = random_sharding(p, p->value[s->in[0]].rank);
        return true;
    case APPLY_REARRANGE: s->in[0] = any_value(p); return draw_rearrange(p, s, &p->value[s->in[0]]);
    case APPLY_TWO: return draw_two(p, s);
    case APPLY_NUMBER: return draw_number(p, s);
    case APPLY_WHERE: return draw_where(p, s);
    case APPLY_REDUCE: return draw_reduce(p, s);
    case APPLY_MATMUL: return draw_product(p, s);
    case APPLY_DOT: return draw_product(p, s);
    case APPLY_RESHAPE: return draw_reshape(p, s);
    case APPLY_TRANSPOSE: return draw_transpose(p, s);
    case APPLY_BROADCAST: return draw_broadcast(p, s);
    case APPLY_SLICE: return draw_slice(p, s);
    case APPLY_UPDATE: return draw_update(p, s);
    case APPLY_UPDATE_NUMBER: return draw_update(p, s);
    case APPLY_CONCATENATE: return draw_concatenate(p, s);
    case APPLY_LOOP: return draw_loop(p, s);
    default: return false;
    }
}

/* -- errors ------------------------------------------------------------------------------------------------ */

/* How far the result may be from another run's; negative: do not compare. */
static double error_of_reduction(const instruction *s, const value *x, const value *v)
{
    double n = v->size ? (double)x->size / (double)v->size : 0;
    if (s->row == MAX || s->row == MIN) /* NaN has no place in the order of complex numbers */
        return is_complex(x) && (!isfinite(x->biggest) || x->error > 0) ? -1 : x->error;
    if (is_inexact(v) && !isfinite(x->biggest))
        return -1;
    if (s->row != PROD)
        return error_of_sum(v, x->integral && s->row == SUM, n, x->biggest, x->error);
    if (!is_inexact(v))
        return 0;
    double one = is_complex(x) ? 2 * x->biggest : x->biggest, most = pow(one > 1 ? one : 1, n);
    if (x->error > 0 || most > 1e30)
        return -1;
    if (x->integral && most < 0x1p23)
        return 0;
    return isfinite(v->biggest) ? 2 * n * most * epsilon(v) : -1;
}

static double error_of_product(const value *a, const value *b, const value *v)
{
    double k = a->rank ? (double)a->shape[a->rank - 1] : 1;
    if (is_complex(v)) /* four products for a pair of numbers, two in each part */
        k *= 2;
    if (!is_inexact(v))
        return 0;
    if (!isfinite(a->biggest) || !isfinite(b->biggest))
        return -1;
    return error_of_sum(v, a->integral && b->integral, k, a->biggest * b->biggest,
                        a->error * b->biggest + b->error * a->biggest + a->error * b->error);
}

static double error_of_one(const instruction *s, const value *x, const value *v)
{
    spread kind_of = random_ones[s->row].spread;
    if (kind_of == NEEDS_SMALL && x->biggest > 6)
        return -1;
    if (x->error == 0)
        return 0;
    if (kind_of == KEEPS_ERROR)
        return 2 * x->error; /* the magnitude of a complex number has both parts' errors */
    return kind_of == BOUNDED_BY_ONE && !is_complex(v) ? x->error + 8 * epsilon(v) : -1;
}

static double error_of_two(const instruction *s, const value *x, const value *y, const value *v)
{
    double error = x->error + y->error;
    if (random_twos[s->row].growth == EXACT_POWER && (y->biggest > 3 || x->biggest > 1000))
        return -1;
    if (error == 0)
        return 0;
    if (!isfinite(v->biggest))
        return -1;
    switch (random_twos[s->row].growth) {
    case ADDS: return error + epsilon(v) * v->biggest;
    case MULTIPLIES:
        if (is_complex(v))
            return 2 * (x->error * y->biggest + y->error * x->biggest + x->error * y->error) +
                   4 * epsilon(v) * v->biggest;
        return x->error * y->biggest + y->error * x->biggest + x->error * y->error + epsilon(v) * v->biggest;
    case CHOOSES: return is_complex(v) ? -1 : error + epsilon(v) * v->biggest; /* after rounding to one type */
    default: return -1;
    }
}

static double error_of_loop(const instruction *s, const value *x, const value *v)
{
    for (int k = 0; k < s->n_steps; k++)
        if (s->step[k] == STEP_STENCIL)
            return x->error + s->times * 8 * epsilon(v) * x->biggest;
    return x->error;
}

static double largest_error(const program *p, const instruction *s)
{
    double error = 0;
    for (int k = 0; k < s->n_in; k++)
        error = fmax(error, p->value[s->in[k]].error);
    return error;
}

static double error_of(const program *p, const instruction *s, const value *v)
{
    const value *x = &p->value[s->in[0]], *y = &p->value[s->in[1]];
    value number = {.biggest = fmax(fabs(s->number), fabs(s->imaginary)), .integral = s->number == floor(s->number)};
    double most = largest_error(p, s);
    switch (s->kind) {
    case APPLY_ONE: return error_of_one(s, x, v);
    case APPLY_TWO: return error_of_two(s, x, y, v);
    case APPLY_NUMBER: return error_of_two(s, x, &number, v);
    case APPLY_WHERE: return x->error > 0 ? -1 : most;
    case APPLY_CONVERT: return most > 0 && !is_inexact(v) ? -1 : most > 0 ? most + epsilon(v) * v->biggest : 0;
    case APPLY_UPDATE:
    case APPLY_CONCATENATE: return most > 0 && !is_inexact(v) ? -1 : most > 0 ? most + epsilon(v) * v->biggest : 0;
    case APPLY_REDUCE: return error_of_reduction(s, x, v);
    case APPLY_MATMUL:
    case APPLY_DOT: return error_of_product(x, y, v);
    case APPLY_LOOP: return error_of_loop(s, x, v);
    case APPLY_REARRANGE: return error_of_rearrange(s, x, epsilon(v));
    default: return most;
    }
}

/* -- programs ---------------------------------------------------------------------------------------------- */

/* Reads the result of the reference run; false if it is too large, or useless. */
static bool keep(program *p, oly_array x)
{
    const instruction *s = &p->call[p->n];
    value *v = &p->value[p->n];
    *v = (value){.dtype = oly_dtype_of(x), .rank = oly_rank(x), .size = oly_size(x)};
    memcpy(v->shape, oly_shape(x), sizeof(int64_t) * (size_t)v->rank);
    if (v->size > LARGEST_VALUE)
        return false;
    size_t bytes = (size_t)v->size * oly_dtype_size(v->dtype);
    v->data = malloc(bytes + 16);
    if (!v->data || oly_get(x, v->data, bytes) != OLY_OK) {
        free(v->data);
        return false;
    }
    measure(v);
    v->error = error_of(p, s, v);
    if (v->error < 0 || !isfinite(v->error)) {
        free(v->data);
        v->data = NULL;
        return false;
    }
    return true;
}

void make_program(program *p, uint64_t seed)
{
    oly_array reference[MOST_VALUES] = {NULL};
    *p = (program){.seed = seed, .random = seed};
    p->wide = one_in(p, 4);
    oly_enable_x64(p->wide);
    random_meshes(p);
    int wanted = 5 + (int)random_below(p, 11);
    for (int k = 0; k < 2; k++) {
        int rank = (int)random_below(p, 5);
        int64_t shape[4];
        for (int d = 0; d < rank; d++)
            shape[d] = random_extent(p);
        if (add_input(p, random_dtype(p), rank, shape) < 0)
            k--;
    }
    for (int calls = 0, tries = 0; calls < wanted && tries < 400 && p->n < MOST_VALUES - 4; tries++) {
        instruction s;
        bool sensible = draw(p, &s);
        for (int k = 0; k < p->n; k++)
            if (p->call[k].kind == MAKE_INPUT && !reference[k])
                reference[k] = run_instruction(p, k, reference, true);
        if (!sensible)
            continue;
        p->call[p->n] = s;
        oly_array x = run_instruction(p, p->n, reference, true);
        if (!x) /* refused by the library; messages are tested elsewhere */
            oly_clear_error();
        else if (keep(p, x)) {
            reference[p->n++] = x;
            calls++;
        }
    }
}

void free_program(program *p)
{
    for (int k = 0; k < p->n; k++)
        free(p->value[k].data);
}
