/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Padding in one step: arrays of every type that a group computes, padded by drawn amounts - at either end, less than nothing, and
 * between elements - with a number or a value of the program, have the bits of a loop over elements, and so have other results of what else reads
 * the group's value or shifts it in a loop, with and without optimisations.
 *
 * PADDING=seed:count runs others. */
#include "check_communication.h"
#include "check_draws.h"
#include "core/optimisation.h"
#include "graph/type.h"
#include "plan/schedule/schedule.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 3, MOST = 40 * 40 * 40, BYTES = 16, USUAL = 90, RESULTS = 5 };

typedef struct drawn {
    oly_dtype dtype;
    int rank, number;
    int64_t shape[MOST_RANK], lo[MOST_RANK], hi[MOST_RANK], between[MOST_RANK];
    bool given, flips,
        again; /* the value is an input; the padded array is not a result itself; the operand is padded twice */
} drawn;

static int64_t padded_extent(const drawn *p, int d)
{
    return p->lo[d] + p->hi[d] + p->shape[d] + (p->shape[d] - 1) * p->between[d];
}

static void draw(drawn *p, int seed)
{
    check_draws(seed);
    *p = (drawn){.dtype = (oly_dtype)(seed % OLY_N_DTYPES), .rank = 1 + below(MOST_RANK), .number = below(2)};
    p->given = below(3) == 0, p->flips = below(2), p->again = below(2);
    for (int d = 0; d < p->rank; d++) {
        int kind = below(4);
        p->shape[d] = d == p->rank - 1 && below(2) ? 16 + below(9) : 2 + below(9);
        p->lo[d] = kind == 0 ? 1 : kind == 1 ? -1 : below(4) - 1;
        p->hi[d] = kind == 0 ? 1 : kind == 1 ? 1 : below(4) - 1;
        p->between[d] = below(3) == 0 ? 1 + below(3) : 0;
        if (padded_extent(p, d) < 1)
            p->hi[d] += 2;
    }
}

static oly_array shifted(oly_array x, oly_array value, const drawn *p)
{
    static const int64_t none[MOST_RANK], one[MOST_RANK] = {1, 1, 1}, away[MOST_RANK] = {-1, -1, -1};
    return p->number ? oly_pad(x, value, one, away, none) : oly_pad(x, value, away, one, none);
}

typedef struct loop {
    const drawn *p;
    oly_array mask, other, value;
} loop;

static void shift(oly_array i, oly_array *c, void *user)
{
    const loop *l = user;
    (void)i;
    oly_array y = oly_where(l->mask, c[0], l->other);
    c[1] = oly_where(l->mask, shifted(c[0], l->value, l->p), y);
    c[0] = shifted(y, l->value, l->p);
}

/* The padded array, its operand, and what else reads that. */
static void run(const oly_array *in, oly_array *out, void *user)
{
    const drawn *p = user;
    oly_array mask = in[0], value = p->given ? in[3] : oly_astype(p->number, p->dtype);
    oly_array y = oly_where(mask, in[1], in[2]), padded = oly_pad(y, value, p->lo, p->hi, p->between);
    loop l = {p, mask, in[2], value};
    oly_array c[] = {in[1], in[2]};
    out[0] = p->flips ? oly_flip(padded, 0) : padded;
    out[1] = oly_where(oly_flip(mask, 0), y, in[1]);
    out[2] = p->again ? oly_where(mask, in[1], shifted(y, value, p)) : mask;
    oly_fori(0, 3, shift, 2, c, &l);
    out[3] = c[0], out[4] = c[1];
}

static size_t bytes_of(oly_array x)
{
    size_t n = oly_dtype_size(oly_dtype_of(x));
    for (int d = 0; d < oly_rank(x); d++)
        n *= (size_t)oly_dim(x, d);
    return n;
}

static void fetch(oly_array x, unsigned char *to)
{
    assert_true(bytes_of(x) <= MOST * BYTES);
    assert_int_equal(oly_process_allgather(x, to, bytes_of(x)), OLY_OK);
}

/* Element by element. */
static void pad(const drawn *p, const unsigned char *y, const unsigned char *value, unsigned char *to)
{
    size_t size = oly_dtype_size(p->dtype);
    int64_t n = 1, count = 1;
    for (int d = 0; d < p->rank; d++)
        n *= padded_extent(p, d), count *= p->shape[d];
    for (int64_t k = 0; k < n; k++)
        memcpy(to + (size_t)k * size, value, size);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0, stride = 1, left = k;
        bool inside = true;
        for (int d = p->rank - 1; d >= 0; d--) {
            int64_t i = p->lo[d] + left % p->shape[d] * (1 + p->between[d]);
            left /= p->shape[d];
            inside = inside && i >= 0 && i < padded_extent(p, d);
            at += i * stride;
            stride *= padded_extent(p, d);
        }
        if (inside)
            memcpy(to + (size_t)at * size, y + (size_t)k * size, size);
    }
}

/* Whole numbers of the type. */
static oly_array numbers(const drawn *p, oly_dtype dtype, oly_sharding placed)
{
    static uint8_t host[MOST];
    int64_t n = 1;
    for (int d = 0; d < p->rank; d++)
        n *= p->shape[d];
    for (int64_t k = 0; k < n; k++)
        host[k] = (uint8_t)below(dtype == OLY_BOOL ? 2 : 256);
    return oly_device_put(oly_astype(oly_from_host(host, OLY_UINT8, p->rank, p->shape), dtype), placed);
}

static void check(const drawn *p, const oly_array *in)
{
    static unsigned char got[MOST * BYTES], wanted[MOST * BYTES], value[BYTES];
    oly_array out[RESULTS] = {NULL}, plain[RESULTS] = {NULL};
    assert_int_equal(oly_call_arrays(oly_jit(run, 4, RESULTS, .user = (void *)(uintptr_t)p), 4, in, RESULTS, out),
                     OLY_OK);
    oly_optimisations before = oly_disable(~(oly_optimisations)0);
    assert_int_equal(oly_call_arrays(oly_jit(run, 4, RESULTS, .user = (void *)(uintptr_t)p), 4, in, RESULTS, plain),
                     OLY_OK);
    oly_disable(before);
    for (int k = 0; k < RESULTS; k++) {
        fetch(out[k], got);
        fetch(plain[k], wanted);
        assert_memory_equal(got, wanted, bytes_of(out[k]));
    }
    fetch(oly_where(in[0], in[1], in[2]), got);
    fetch(p->given ? in[3] : oly_astype(p->number, p->dtype), value);
    pad(p, got, value, wanted);
    fetch(p->flips ? oly_flip(out[0], 0) : out[0], got);
    assert_memory_equal(got, wanted, bytes_of(out[0]));
}

static void drawn_amounts(void **state)
{
    (void)state;
    int count = USUAL, seed = check_draws_wanted("PADDING", 1, &count);
    static const char *const specs[] = {"x,y", "x", "", "y", "(x,y)"};
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    for (int k = 0; k < count; k++)
        OLY_SCOPE
        {
            drawn p;
            draw(&p, seed + k);
            const char *spec = specs[below(5)];
            oly_sharding placed = oly_named(mesh, p.rank == 1 && spec == specs[0] ? "(x,y)" : spec);
            oly_array value = oly_astype(oly_scalar(p.number, OLY_INT32), p.dtype);
            oly_array in[] = {numbers(&p, OLY_BOOL, placed), numbers(&p, p.dtype, placed), numbers(&p, p.dtype, placed),
                              value};
            oly_direct_reads_least = below(2) ? 1 : 1 << 18;
            check(&p, in);
        }
    oly_finalize();
}

/* A smoother reads a field with and without its margins: the group before writes it between them, and has no memory of its own. */
static void smooth(const oly_array *in, oly_array *out, void *user)
{
    static const int64_t one[] = {1, 1}, none[] = {0, 0};
    (void)user;
    oly_array u = oly_mul(in[0], in[0]), p = oly_pad(u, 0, one, one, none);
    oly_array around = oly_add(oly_add(oly_slice(p, ":-2, 1:-1"), oly_slice(p, "2:, 1:-1")),
                               oly_add(oly_slice(p, "1:-1, :-2"), oly_slice(p, "1:-1, 2:")));
    out[0] = oly_sub(u, oly_mul(around, 0.25));
}

static void a_field_with_margins_is_there_once(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    OLY_SCOPE
    {
        oly_array x = oly_reshape(oly_arange(64 * 64, OLY_FLOAT32), 64, 64);
        oly_plan_costs costs;
        assert_int_equal(oly_costs(&costs, oly_jit(smooth, 1, 1), x), OLY_OK);
        assert_int_equal(costs.steps, 4); /* zero, the square, the margins, the sum */
        assert_in_range(costs.scratch_bytes, 66 * 66 * 4, 66 * 66 * 4 + 1024);
    }
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_amounts),
                                       cmocka_unit_test(a_field_with_margins_is_there_once)};
    return CHECK_MAIN(tests);
}
