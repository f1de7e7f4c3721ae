/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Sorted lines and the positions of their elements are those of a stable merge sort, and elements are found in them where
 * counting finds them, on every instruction set: lengths around the registers of a network and long enough to be divided, orders that are bad for pivots, equal keys, keys that
 * differ in high or in low bits only, NaN and zeros of both signs. The largest elements, few and many, are those that a loop finds. */
#include "check.h"
#include "core/error.h"
#include "kernel.h"
#include "local.h"
#include "planning.h"
#include "table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 150000, FORMS = 9 };
static uint64_t seed = 1;
static union line {
    float f4[LONGEST];
    double f8[LONGEST];
    int64_t i8[LONGEST];
    uint64_t u8[LONGEST];
    int32_t i4[LONGEST];
    int16_t i2[LONGEST];
    uint8_t u1[LONGEST];
} in, out, expected;
static int32_t position[LONGEST], ordered[LONGEST], other[LONGEST];

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % below;
}

/* An unsigned number whose order is that of the form; any 64 bits where it is 0. */
static uint64_t number_of(int form, int64_t k, int64_t n)
{
    switch (form) {
    case 1: return draw(3);
    case 2: return 7;
    case 3: return (uint64_t)k;
    case 4: return (uint64_t)(n - k);
    case 5: return (uint64_t)(k < n / 2 ? k : n - k);                        /* up and down */
    case 6: return draw(2) ? draw(5) : ((uint64_t)5 << 40) + draw(1u << 20); /* equal high bits */
    case 7: return draw(4) << 45;                                            /* equal low bits */
    case 8: return (uint64_t)(k * 7919 % 1009); /* periodic, as samples at even distances may be */
    default: return draw((uint64_t)1 << 44) << 19;
    }
}

static void fill(oly_dtype dtype, int form, int64_t n)
{
    static const double special[] = {0., -0., NAN, INFINITY, -INFINITY};
    for (int64_t k = 0; k < n; k++) {
        uint64_t x = number_of(form, k, n);
        bool odd = form < 2 && draw(8) == 0;
        double value = odd ? special[draw(5)] : (double)(int64_t)(x - 2);
        switch (dtype) {
        case OLY_FLOAT32: in.f4[k] = (float)value; break;
        case OLY_FLOAT64: in.f8[k] = value; break;
        case OLY_INT64: in.i8[k] = (int64_t)(x - 2); break;
        case OLY_UINT64: in.u8[k] = x - 2; break;
        case OLY_INT32: in.i4[k] = (int32_t)(x - 2); break;
        case OLY_INT16: in.i2[k] = (int16_t)(x - 2); break;
        default: in.u1[k] = (uint8_t)x; break;
        }
    }
}

static bool float_before(double x, double y)
{
    return x < y || (!isnan(x) && isnan(y));
}

static bool before(oly_dtype dtype, int32_t a, int32_t b)
{
    switch (dtype) {
    case OLY_FLOAT32: return float_before((double)in.f4[a], (double)in.f4[b]);
    case OLY_FLOAT64: return float_before(in.f8[a], in.f8[b]);
    case OLY_INT64: return in.i8[a] < in.i8[b];
    case OLY_UINT64: return in.u8[a] < in.u8[b];
    case OLY_INT32: return in.i4[a] < in.i4[b];
    case OLY_INT16: return in.i2[a] < in.i2[b];
    default: return in.u1[a] < in.u1[b];
    }
}

/* ordered: the positions [begin, end) in stable ascending, or stable descending, order. */
static void order(oly_dtype dtype, bool descending, int32_t begin, int32_t end)
{
    if (end - begin < 2) {
        if (end > begin)
            ordered[begin] = begin;
        return;
    }
    int32_t middle = (begin + end) / 2, x = begin, y = middle;
    order(dtype, descending, begin, middle);
    order(dtype, descending, middle, end);
    for (int32_t k = begin; k < end; k++) {
        bool second =
            x == middle ||
            (y < end && (descending ? before(dtype, ordered[x], ordered[y]) : before(dtype, ordered[y], ordered[x])));
        other[k] = second ? ordered[y++] : ordered[x++];
    }
    memcpy(ordered + begin, other + begin, sizeof *other * (size_t)(end - begin));
}

static void run(const oly_local_task *t, const void *line, void *to)
{
    const void *operands[] = {line, &in};
    char *scratch = malloc(oly_local_scratch(t) + 1);
    assert_non_null(scratch);
    for (int phase = 0; phase < oly_local_phases(t); phase++)
        for (int k = 0, chunks = oly_local_chunks(t, phase); k < chunks; k++)
            oly_local_run(t, operands, to, scratch, phase, k, chunks);
    free(scratch);
}

static void check_line(oly_dtype dtype, int form, int64_t n, bool reverse)
{
    size_t bytes = oly_element_bytes[dtype];
    oly_local_operand x = {.dtype = dtype, .rank = 1, .size = {n}, .extent = {n}, .stride = {1}};
    oly_local_task t = {.op = OLY_LOCAL_ARGSORT, .n_in = 1, .in = &x, .out = x, .reverse = reverse};
    fill(dtype, form, n);
    order(dtype, reverse, 0, (int32_t)n);
    t.out.dtype = OLY_INT32;
    run(&t, &in, position);
    for (int64_t k = 0; k < n; k++)
        if (position[k] != ordered[k])
            fail_msg("%s: type %d, form %d, %d elements%s: number %d is of element %d, not %d", oly_kernels_isa(),
                     (int)dtype, form, (int)n, reverse ? ", descending" : "", (int)k, (int)position[k],
                     (int)ordered[k]);
    t.op = OLY_LOCAL_SORT;
    t.out.dtype = dtype;
    run(&t, &in, &out);
    if (reverse)
        order(dtype, false, 0, (int32_t)n); /* the ascending order backwards, also of equal elements */
    for (int64_t k = 0; k < n; k++)
        memcpy((char *)&expected + (size_t)(reverse ? n - 1 - k : k) * bytes, (char *)&in + (size_t)ordered[k] * bytes,
               bytes);
    if (memcmp(&out, &expected, (size_t)n * bytes) != 0)
        fail_msg("%s: type %d, form %d, %d elements%s: sorted values differ", oly_kernels_isa(), (int)dtype, form,
                 (int)n, reverse ? ", descending" : "");
}

/* Where the elements of `in` belong in the sorted line `out`, whose order is that of `ordered`. Elements of the line at a distance of
 * `apart`, those that are sought at one of `spread`. */
static void check_places(oly_dtype dtype, int form, int64_t n, int64_t apart, int64_t spread, bool after, oly_dtype to)
{
    int64_t m = (n + apart - 1) / apart, sought = (n + spread - 1) / spread;
    oly_local_operand both[2] = {{.dtype = dtype, .rank = 1, .size = {m}, .extent = {m}, .stride = {apart}},
                                 {.dtype = dtype, .rank = 1, .size = {sought}, .extent = {sought}, .stride = {spread}}};
    oly_local_task t = {.op = OLY_LOCAL_SEARCHSORTED, .n_in = 2, .in = both, .out = both[1], .reverse = after};
    t.out.dtype = to;
    run(&t, &out, &expected);
    for (int64_t k = 0; k < sought; k++) {
        int64_t got = to == OLY_INT64 ? expected.i8[k] : expected.i4[k];
        int32_t place = 0, element = (int32_t)(k * spread);
        for (int32_t step = 1 << 18; step > 0; step /= 2) { /* what belongs before it is at the front of both orders */
            int64_t i = (int64_t)(place + step - 1) * apart;
            if (i < n && (after ? !before(dtype, element, ordered[i]) : before(dtype, ordered[i], element)))
                place += step;
        }
        if (got != place)
            fail_msg("%s: type %d, form %d, %d elements at a distance of %d: place %d, not %d", oly_kernels_isa(),
                     (int)dtype, form, (int)n, (int)apart, (int)got, (int)place);
    }
}

/* A number in the order of which the largest are found: NaNs and zeros by their bits. */
static uint64_t rank_of(oly_dtype dtype, int64_t k)
{
    const uint64_t top = (uint64_t)1 << 63;
    switch (dtype) {
    case OLY_FLOAT32: return in.i4[k] < 0 ? (uint64_t)(uint32_t)~in.i4[k] : (uint64_t)(uint32_t)in.i4[k] | 1u << 31;
    case OLY_FLOAT64: return in.i8[k] < 0 ? ~in.u8[k] : in.u8[k] | top;
    case OLY_INT64: return in.u8[k] ^ top;
    case OLY_UINT64: return in.u8[k];
    case OLY_INT32: return (uint64_t)(int64_t)in.i4[k] ^ top;
    case OLY_INT16: return (uint64_t)(int64_t)in.i2[k] ^ top;
    default: return in.u1[k];
    }
}

/* The largest elements of a line, elements `apart`, of equal ones the first. */
static void check_largest(oly_dtype dtype, int form, int64_t n, int64_t apart, int64_t count)
{
    int64_t m = (n + apart - 1) / apart;
    count = count < m ? count : m;
    oly_local_operand x = {.dtype = dtype, .rank = 1, .size = {m}, .extent = {m}, .stride = {apart}};
    oly_local_task t = {.op = OLY_LOCAL_TOP_K, .n_in = 1, .in = &x, .out = x};
    t.out = (oly_local_operand){.dtype = OLY_INT32, .rank = 1, .size = {count}, .extent = {count}, .stride = {1}};
    fill(dtype, form, n);
    run(&t, &in, position);
    for (int64_t i = 0, last = -1; i < count; i++) {
        int64_t best = -1;
        for (int64_t k = 0; k < m; k++) {
            uint64_t here = rank_of(dtype, k * apart), before_it = last < 0 ? 0 : rank_of(dtype, last * apart);
            bool later = last < 0 || here < before_it || (here == before_it && k > last);
            best = later && (best < 0 || here > rank_of(dtype, best * apart)) ? k : best;
        }
        if (position[i] != best)
            fail_msg("%s: type %d, form %d, %d elements at a distance of %d, %d largest: number %d is %d, not %d",
                     oly_kernels_isa(), (int)dtype, form, (int)m, (int)apart, (int)count, (int)i, (int)position[i],
                     (int)best);
        last = best;
    }
}

static void check_isa(void)
{
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT64, OLY_UINT64, OLY_INT32, OLY_INT16, OLY_UINT8};
    for (int form = 0; form < FORMS; form++)
        for (int k = 0; k < 7; k++) {
            for (int64_t n = 1; n < 1100; n += n < 70 ? 1 : 1 + (int64_t)draw(90)) {
                check_line(types[k], form, n, false);
                check_places(types[k], form, n, 1 + (int64_t)draw(3), 1 + (int64_t)draw(3), draw(2),
                             draw(2) ? OLY_INT32 : OLY_INT64);
                check_line(types[k], form, n, true);
                check_largest(types[k], form, n, 1 + (int64_t)draw(2), 1 + (int64_t)draw(n < 70 ? 40 : 10));
            }
            check_largest(types[k], form, 2000 + (int64_t)draw(4000), 1 + (int64_t)draw(2), 1 + (int64_t)draw(34));
            check_line(types[k], form, (form + k) % 2 ? 65536 + (int64_t)draw(1000) : LONGEST - (int64_t)draw(100),
                       draw(2));
        }
}

static void lines_are_sorted_as_by_merging(void **unused)
{
    static const char *const instruction_sets[] = {"base", "avx2", "avx512"};
    (void)unused;
    for (int isa = 0; isa < 3; isa++)
        if (oly_kernels_choose(instruction_sets[isa]) == OLY_OK)
            check_isa();
        else
            oly_drop_message();
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_sorted_as_by_merging)};
    return CHECK_MAIN(tests);
}
