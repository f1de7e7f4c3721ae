/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Elements read and written at computed positions are those that plain loops give, on every instruction set and in any number
 * of chunks: any batches, indexes of several dimensions, strides, modes, sizes of elements, parts of arrays, and indexes outside. */
#include "check.h"
#include "core/error.h"
#include "kernel.h"
#include "local.h"
#include "planning.h"
#include "table.h"
#include <complex.h>
#include <math.h>

enum { DRAWN = 2500, MOST_POSITIONS = 6000, MOST_AXES = 3, OPERANDS = MOST_AXES + 2 };

static uint64_t seed = 1;

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 20) % (uint64_t)below);
}

/* A task with its operands: the array, the indexes, and for scatters the updates. */
typedef struct drawn {
    oly_local_task t;
    oly_local_operand in[OPERANDS];
    void *data[OPERANDS];
    char *out, *expected;
    int n_rest, rest[OLY_MAX_RANK]; /* the array's dimensions that are neither batches nor indexed */
} drawn;

/* -- drawing --------------------------------------------------------------------------------------------------------- */

static int64_t count_of(const oly_local_operand *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        n *= x->extent[d];
    return n;
}

/* In memory in any order of dimensions, usually side by side; some may be repeated. Gives the elements it occupies. */
static int64_t place(oly_local_operand *x, bool in_order, bool repeats)
{
    int order[OLY_MAX_RANK];
    int64_t distance = 1;
    for (int d = 0; d < x->rank; d++)
        order[d] = d;
    for (int d = 0; d < x->rank && !in_order && draw(2); d++) {
        int with = (int)draw(x->rank), kept = order[d];
        order[d] = order[with];
        order[with] = kept;
    }
    for (int d = x->rank - 1; d >= 0; d--) {
        bool repeated = repeats && draw(6) == 0;
        x->stride[order[d]] = repeated ? 0 : distance;
        distance *= repeated || x->extent[order[d]] == 0 ? 1 : x->extent[order[d]];
        distance += !in_order && draw(6) == 0 ? draw(3) : 0;
    }
    return distance + 1;
}

static int64_t draw_extent(int64_t most)
{
    switch (draw(12)) {
    case 0: return 1;
    case 1: return 1 + draw(3);
    case 2: return draw(8) == 0 ? 0 : 8;
    case 3: return most > 64 ? 64 + draw(most - 63) : 1 + draw(most);
    default: return 1 + draw(most < 40 ? most : 40);
    }
}

static void fill(oly_dtype dtype, void *data, int64_t n)
{
    int64_t bytes = (int64_t)oly_element_bytes[dtype];
    for (int64_t k = 0; k < n; k++)
        switch (dtype) {
        case OLY_FLOAT32: ((float *)data)[k] = 0.5f + (float)draw(1 << 22) / (1 << 22); break;
        case OLY_FLOAT64: ((double *)data)[k] = 0.5 + (double)draw(1 << 30) / 1e9; break;
        case OLY_COMPLEX128: ((double complex *)data)[k] = CMPLX((double)draw(1 << 30), (double)k); break;
        default:
            for (int64_t b = 0; b < bytes; b++)
                ((uint8_t *)data)[k * bytes + b] = (uint8_t)draw(256);
        }
}

/* all inside; a few not; any; ascending */
static void fill_indexes(const oly_local_operand *x, void *data, int64_t n, int64_t size)
{
    int64_t kind = draw(5), at = -draw(4);
    for (int64_t k = 0; k < n; k++) {
        bool wild = kind == 3 || (kind == 2 && draw(60) == 0);
        int64_t index = wild ? draw(3 * size + 9) - size - 4 : size > 0 ? draw(size) : 0;
        if (kind == 4)
            index = at += draw(9) == 0;
        if (x->dtype == OLY_INT64)
            ((int64_t *)data)[k] = wild && draw(9) == 0 ? index * ((int64_t)1 << 33) : index;
        else
            ((int32_t *)data)[k] = (int32_t)index;
    }
}

static void *room_for(oly_dtype dtype, int64_t n)
{
    void *room = calloc((size_t)n + 1, oly_element_bytes[dtype]);
    assert_non_null(room);
    return room;
}

/* The dimensions of the positions, those of the array, and which of these are indexed. */
static void draw_shape(drawn *d, oly_dtype dtype)
{
    oly_local_operand *x = &d->in[0], *at = &d->in[1];
    d->t.n_batch = (int)draw(3);
    d->t.n_axes = 1 + (int)draw(draw(2) ? 1 : MOST_AXES);
    d->n_rest = draw(2) ? 0 : (int)draw(3);
    at->rank = d->t.n_batch + (int)draw(3);
    int64_t most = MOST_POSITIONS;
    for (int k = 0; k < at->rank; k++) {
        bool long_one = draw(3) == 0;
        at->extent[k] = long_one ? 1 + draw(most) : draw_extent(most < 100 ? most : 100);
        most = at->extent[k] > 0 && most > at->extent[k] ? most / at->extent[k] : 1;
    }
    x->dtype = dtype;
    x->rank = d->t.n_batch + d->t.n_axes + d->n_rest;
    for (int k = 0; k < d->t.n_batch; k++)
        x->extent[k] = at->extent[k];
    int axes = 0, rests = 0;
    for (int k = d->t.n_batch; k < x->rank; k++) {
        bool indexed = rests == d->n_rest || (axes < d->t.n_axes && draw(2));
        x->extent[k] = indexed ? draw_extent(60) : 1 + draw(draw(6) ? 9 : 90);
        *(indexed ? &d->t.axes[axes++] : &d->rest[rests++]) = k;
    }
    if (draw(2))
        for (int a = 1; a < axes; a++) { /* any order of axes */
            int kept = d->t.axes[a], with = (int)draw(a + 1);
            d->t.axes[a] = d->t.axes[with];
            d->t.axes[with] = kept;
        }
    memcpy(x->size, x->extent, sizeof x->size);
}

/* Of the indexed dimensions only a part may be here. */
static void draw_part(drawn *d)
{
    oly_local_operand *x = &d->in[0];
    for (int a = 0; a < d->t.n_axes; a++) {
        x->origin[d->t.axes[a]] = draw(3) ? draw(20) : 0;
        x->size[d->t.axes[a]] += x->origin[d->t.axes[a]] + draw(20);
    }
}

static void draw_indexes(drawn *d)
{
    oly_local_operand shape = d->in[1];
    oly_dtype dtype = draw(2) ? OLY_INT32 : OLY_INT64;
    for (int a = 0; a < d->t.n_axes; a++) {
        oly_local_operand *at = &d->in[1 + a];
        *at = shape;
        at->dtype = dtype;
        memcpy(at->size, at->extent, sizeof at->size);
        int64_t n = place(at, draw(2), draw(3) == 0);
        d->data[1 + a] = room_for(dtype, n);
        fill_indexes(at, d->data[1 + a], n, d->in[0].size[d->t.axes[a]]);
    }
}

/* The dimensions of the positions, then those that are not indexed. */
static oly_local_operand taken(const drawn *d)
{
    oly_local_operand y = {.dtype = d->in[0].dtype, .rank = d->in[1].rank};
    memcpy(y.extent, d->in[1].extent, sizeof y.extent);
    for (int k = 0; k < d->n_rest; k++)
        y.extent[y.rank++] = d->in[0].extent[d->rest[k]];
    memcpy(y.size, y.extent, sizeof y.size);
    return y;
}

/* False: too large. */
static bool draw_task(drawn *d, bool scatters)
{
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32,     OLY_UINT8,
                                      OLY_INT16,   OLY_INT64,   OLY_COMPLEX128};
    static const oly_index_mode modes[] = {OLY_INDEX_FILL, OLY_INDEX_CLIP, OLY_INDEX_WRAP, OLY_INDEX_PROMISE};
    *d = (drawn){.t = {.op = OLY_LOCAL_GATHER, .mode = modes[draw(4)]}};
    d->t.in = d->in;
    draw_shape(d, types[draw(scatters ? 6 : 7)]);
    oly_local_operand *x = &d->in[0], *updates = &d->in[1 + d->t.n_axes], y = taken(d);
    if (count_of(x) > 300000 || count_of(&y) > 60000)
        return false;
    bool part = draw(3) == 0;
    if (part)
        draw_part(d);
    draw_indexes(d);
    int64_t n = place(x, draw(2), false);
    d->data[0] = room_for(x->dtype, n);
    fill(x->dtype, d->data[0], n);
    d->t.n_in = 1 + d->t.n_axes;
    d->t.partial = part && !scatters;
    d->t.keeps = d->t.partial && draw(2);
    d->t.out = y;
    if (scatters) {
        d->t.op = OLY_LOCAL_SCATTER + (oly_local_op)draw(5);
        *updates = y;
        n = place(updates, draw(2), draw(3) == 0);
        d->data[d->t.n_in++] = room_for(x->dtype, n);
        fill(x->dtype, d->data[d->t.n_in - 1], n);
        d->t.out = *x;
    }
    int64_t dense = 1;
    for (int k = d->t.out.rank - 1; k >= 0; dense *= d->t.out.extent[k--])
        d->t.out.stride[k] = dense;
    d->out = room_for(x->dtype, dense);
    d->expected = room_for(x->dtype, dense);
    fill(x->dtype, d->out, dense);
    memcpy(d->expected, d->out, (size_t)dense * oly_element_bytes[x->dtype]);
    return true;
}

static void drop(drawn *d)
{
    for (int k = 0; k < OPERANDS; k++)
        free(d->data[k]);
    free(d->out);
    free(d->expected);
}

/* -- plain loops ----------------------------------------------------------------------------------------------------- */

typedef enum { HERE, ELSEWHERE, OUTSIDE } found;

/* Where in the array (or, of a scatter, in the result) the element is that position `at` refers to, at 0 in the other dimensions. */
static found find(const drawn *d, const oly_local_operand *array, const int64_t *at, int64_t *offset)
{
    found is = HERE;
    bool drops = d->t.mode == OLY_INDEX_FILL || (d->t.mode == OLY_INDEX_PROMISE && d->t.op != OLY_LOCAL_GATHER);
    *offset = 0;
    for (int k = 0; k < d->t.n_batch; k++)
        *offset += at[k] * array->stride[k];
    for (int a = 0; a < d->t.n_axes; a++) {
        const oly_local_operand *x = &d->in[1 + a];
        int64_t place = 0, n = array->size[d->t.axes[a]], origin = array->origin[d->t.axes[a]];
        for (int k = 0; k < x->rank; k++)
            place += at[k] * x->stride[k];
        int64_t index = x->dtype == OLY_INT64 ? ((int64_t *)d->data[1 + a])[place] : ((int32_t *)d->data[1 + a])[place];
        if ((drops && (index < 0 || index >= n)) || n == 0)
            return OUTSIDE;
        if (d->t.mode == OLY_INDEX_WRAP)
            index = (index % n + n) % n;
        index = index < 0 ? 0 : index >= n ? n - 1 : index;
        if (index < origin || index >= origin + array->extent[d->t.axes[a]])
            is = ELSEWHERE;
        *offset += (index - origin) * array->stride[d->t.axes[a]];
    }
    for (int a = 0; a < d->t.n_axes && is == ELSEWHERE && drops; a++) { /* outside along one, elsewhere along another */
        drawn only = *d;
        only.t.n_axes = 1;
        only.t.axes[0] = d->t.axes[a];
        only.in[1] = d->in[1 + a];
        only.data[1] = d->data[1 + a];
        int64_t unused;
        if (d->t.n_axes > 1 && find(&only, array, at, &unused) == OUTSIDE)
            return OUTSIDE;
    }
    return is;
}

/* What a gather gives for an index outside the array, or in another part. */
static void other_value(oly_dtype dtype, bool outside, void *value)
{
    static const double complex nan_alone = CMPLX(NAN, 0), zeros = CMPLX(-0.0, -0.0);
    static const float nan_4 = NAN, zero_4 = -0.0f;
    static const double nan_8 = NAN, zero_8 = -0.0;
    static const int16_t least_2 = INT16_MIN;
    static const int32_t least_4 = INT32_MIN;
    static const int64_t least_8 = INT64_MIN;
    static const uint8_t most_1 = UINT8_MAX;
    const void *from = NULL;
    switch (dtype) {
    case OLY_FLOAT32: from = outside ? &nan_4 : &zero_4; break;
    case OLY_FLOAT64: from = outside ? &nan_8 : &zero_8; break;
    case OLY_COMPLEX128: from = outside ? &nan_alone : &zeros; break;
    case OLY_INT16: from = outside ? &least_2 : NULL; break;
    case OLY_INT32: from = outside ? &least_4 : NULL; break;
    case OLY_INT64: from = outside ? &least_8 : NULL; break;
    default: from = outside ? &most_1 : NULL; break;
    }
    memset(value, 0, oly_element_bytes[dtype]);
    if (from)
        memcpy(value, from, oly_element_bytes[dtype]);
}

static bool is_first(const drawn *d)
{
    bool first = true;
    for (int a = 0; a < d->t.n_axes; a++)
        first = first && d->in[0].origin[d->t.axes[a]] == 0 && d->in[0].extent[d->t.axes[a]] > 0;
    return first;
}

#define COMBINE(T, U)                                                                                                  \
    do {                                                                                                               \
        T x, y;                                                                                                        \
        memcpy(&x, to, sizeof x);                                                                                      \
        memcpy(&y, from, sizeof y);                                                                                    \
        switch (op) {                                                                                                  \
        case OLY_LOCAL_SCATTER_ADD: x = (T)((U)x + (U)y); break;                                                       \
        case OLY_LOCAL_SCATTER_MUL: x = (T)((U)x * (U)y); break;                                                       \
        case OLY_LOCAL_SCATTER_MIN: x = x < y ? x : y; break;                                                          \
        case OLY_LOCAL_SCATTER_MAX: x = x > y ? x : y; break;                                                          \
        default: x = y;                                                                                                \
        }                                                                                                              \
        memcpy(to, &x, sizeof x);                                                                                      \
    } while (0)

static void combine(oly_local_op op, oly_dtype dtype, void *to, const void *from)
{
    switch (dtype) {
    case OLY_FLOAT32: COMBINE(float, float); break;
    case OLY_FLOAT64: COMBINE(double, double); break;
    case OLY_INT16: COMBINE(int16_t, uint32_t); break;
    case OLY_INT32: COMBINE(int32_t, uint32_t); break;
    case OLY_INT64: COMBINE(int64_t, uint64_t); break;
    default: COMBINE(uint8_t, uint32_t); break;
    }
}

/* Multi-index of element k of a box. */
static void numbers_of(const oly_local_operand *x, int64_t k, int64_t *at)
{
    for (int d = x->rank - 1; d >= 0; k /= x->extent[d--])
        at[d] = k % x->extent[d];
}

static int64_t offset_of(const oly_local_operand *x, const int64_t *at)
{
    int64_t offset = 0;
    for (int d = 0; d < x->rank; d++)
        offset += at[d] * x->stride[d];
    return offset;
}

static void gather_plainly(drawn *d)
{
    int64_t at[OLY_MAX_RANK], offset, bytes = (int64_t)oly_element_bytes[d->in[0].dtype];
    for (int64_t k = 0, n = count_of(&d->t.out); k < n; k++) {
        numbers_of(&d->t.out, k, at);
        found is = find(d, &d->in[0], at, &offset);
        for (int r = 0; r < d->n_rest; r++)
            offset += at[d->in[1].rank + r] * d->in[0].stride[d->rest[r]];
        bool outside = is == OUTSIDE && (!d->t.partial || is_first(d));
        if (is == HERE)
            memcpy(d->expected + k * bytes, (char *)d->data[0] + offset * bytes, (size_t)bytes);
        else if (!d->t.keeps || outside)
            other_value(d->in[0].dtype, outside, d->expected + k * bytes);
    }
}

static void scatter_plainly(drawn *d)
{
    const oly_local_operand *updates = &d->in[d->t.n_in - 1];
    int64_t at[OLY_MAX_RANK], offset, bytes = (int64_t)oly_element_bytes[d->in[0].dtype];
    for (int64_t k = 0, n = count_of(&d->t.out); k < n; k++) {
        numbers_of(&d->t.out, k, at);
        memcpy(d->expected + k * bytes, (char *)d->data[0] + offset_of(&d->in[0], at) * bytes, (size_t)bytes);
    }
    for (int64_t k = 0, n = count_of(updates); k < n; k++) {
        numbers_of(updates, k, at);
        if (find(d, &d->t.out, at, &offset) != HERE)
            continue;
        for (int r = 0; r < d->n_rest; r++)
            offset += at[d->in[1].rank + r] * d->t.out.stride[d->rest[r]];
        combine(d->t.op, updates->dtype, d->expected + offset * bytes,
                (char *)d->data[d->t.n_in - 1] + offset_of(updates, at) * bytes);
    }
}

/* -- comparing ------------------------------------------------------------------------------------------------------- */

static void check(drawn *d, int chunks, int number)
{
    int64_t bytes = (int64_t)oly_element_bytes[d->in[0].dtype], n = count_of(&d->t.out);
    char *start = room_for(d->in[0].dtype, n);
    memcpy(start, d->out, (size_t)(n * bytes));
    for (int k = 0; k < chunks; k++)
        oly_local_run(&d->t, (const void *const *)d->data, d->out, NULL, 0, k, chunks);
    for (int64_t k = 0; k < n; k++)
        if (memcmp(d->out + k * bytes, d->expected + k * bytes, (size_t)bytes) != 0)
            fail_msg("%s: task %d, operation %d, mode %d, type %d, %d chunks: element %d of %d differs",
                     oly_kernels_isa(), number, (int)d->t.op, (int)d->t.mode, (int)d->in[0].dtype, chunks, (int)k,
                     (int)n);
    memcpy(d->out, start, (size_t)(n * bytes));
    free(start);
}

static void check_all(bool scatters)
{
    static const char *const instruction_sets[] = {"base", "avx2", "avx512"};
    for (int k = 0; k < DRAWN; k++) {
        drawn d;
        if (!draw_task(&d, scatters))
            continue;
        d.t.in = d.in;
        (scatters ? scatter_plainly : gather_plainly)(&d);
        for (int isa = 0; isa < 3; isa++)
            if (oly_kernels_choose(instruction_sets[isa]) == OLY_OK)
                check(&d, 1 + (int)draw(draw(2) ? 1 : 7), k);
            else
                oly_drop_message();
        drop(&d);
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

static void elements_are_read_where_indexes_say(void **unused)
{
    (void)unused;
    check_all(false);
}

static void updates_are_applied_in_order(void **unused)
{
    (void)unused;
    check_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements_are_read_where_indexes_say),
                                       cmocka_unit_test(updates_are_applied_in_order)};
    return CHECK_MAIN(tests);
}
