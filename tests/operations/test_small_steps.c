/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Small steps of one device that run again and again, as in loops over few elements, are compiled and then run
 * without a search (compiled_groups.h): drawn loops, of any element type, have the bits of the interpreter, from their first run to their
 * last, whatever buffers their carries are in. SMALL_STEPS=seed:count runs others. */
#include "check_draws.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "machine_code.h"
#include "run/compiled_groups.h"
#include <stdlib.h>
#include <string.h>

enum { CARRIES = 3, ROWS = 6, USUAL = 90, CALLS = 4, MOST = 1 << 18 };

typedef struct drawn {
    int seed, kind, iterations;
    oly_dtype dtype;
    int64_t length;
    bool wide; /* two dimensions, of which slices are taken: rows that are not side by side */
} drawn;
enum { COUNTED, UNTIL, SCANNED, KINDS };

static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32,    OLY_INT64,    OLY_UINT8,
                                   OLY_INT16,   OLY_FLOAT16, OLY_BFLOAT16, OLY_COMPLEX64};

static drawn draw(int seed)
{
    static const int64_t lengths[] = {1, 1, 2, 3, 4, 7, 8, 17, 64, 70};
    check_draws(seed);
    drawn p = {.seed = seed, .kind = below(KINDS), .iterations = 1 + below(40)};
    p.dtype = dtypes[below(sizeof dtypes / sizeof *dtypes)];
    p.length = lengths[below(sizeof lengths / sizeof *lengths)];
    p.wide = below(4) == 0;
    return p;
}

static bool is_integer(oly_array x)
{
    return oly_dtype_of(x) >= OLY_INT8 && oly_dtype_of(x) <= OLY_UINT64;
}

static oly_array scaled(oly_array x, int by)
{
    return is_integer(x) ? oly_mul(x, by) : oly_mul(x, 0.125 * by);
}

/* One to some operations, the last elements of two rows among them. */
static oly_array operation(oly_array x, oly_array y, oly_array number)
{
    bool complex = oly_dtype_of(x) == OLY_COMPLEX64;
    switch (below(8)) {
    case 0: return oly_add(scaled(x, 1 + below(5)), y);
    case 1: return oly_sub(x, scaled(y, 3));
    case 2: return complex ? oly_mul(x, y) : oly_where(oly_gt(x, y), x, scaled(y, 5));
    case 3: return oly_add(x, oly_astype(number, oly_dtype_of(x)));
    case 4: return is_integer(x) ? oly_bitwise_xor(x, y) : complex ? oly_conj(x) : oly_tanh(x);
    case 5: return oly_rank(x) == 2 ? oly_roll(x, 1, 1) : oly_rev(x, 0);
    case 6: return complex ? oly_neg(x) : oly_fmax(x, oly_neg(y));
    default: return oly_mul(scaled(x, 2), scaled(y, 3));
    }
}

static void step(const drawn *p, oly_array *c, oly_array x)
{
    check_draws(p->seed + 1);
    int n = 1 + below(5);
    for (int k = 0; k < n; k++) {
        int to = below(CARRIES - 1);
        c[to] = operation(c[below(CARRIES - 1)], below(3) ? c[below(CARRIES - 1)] : x, c[CARRIES - 1]);
        if (p->wide && below(3) == 0) { /* parts of rows */
            int64_t half = oly_dim(x, 1) / 2;
            oly_array part = oly_slice_in_dim(c[to], 0, half, 1, 1);
            c[to] = oly_concatenate(1, scaled(part, 3), oly_slice_in_dim(x, half, oly_dim(x, 1), 1, 1));
        }
    }
    c[CARRIES - 1] = oly_add(c[CARRIES - 1], 1);
}

typedef struct context {
    const drawn *program;
    oly_array x;
} context;

static void counted(oly_array i, oly_array *carry, void *user)
{
    const context *c = user;
    (void)i;
    step(c->program, carry, c->x);
}

static void until(oly_array *carry, void *user)
{
    const context *c = user;
    step(c->program, carry, c->x);
}

static oly_array goes_on(const oly_array *carry, void *user)
{
    const context *c = user;
    return oly_lt(carry[CARRIES - 1], c->program->iterations);
}

static void scanned(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    const context *c = user;
    step(c->program, carry, x[0]);
    y[0] = carry[0];
}

/* in: two carries, and rows of the same shape. */
static void program(const oly_array *in, oly_array *out, void *user)
{
    const drawn *p = user;
    oly_array carry[CARRIES] = {in[0], in[1], oly_zeros(OLY_INT32)}, y = NULL;
    context c = {p, oly_index_in_dim(in[2], 0, 0)};
    if (p->kind == COUNTED)
        oly_fori(0, p->iterations, counted, CARRIES, carry, &c);
    else if (p->kind == UNTIL)
        oly_while(goes_on, until, CARRIES, carry, &c);
    else
        oly_scan(ROWS, false, scanned, CARRIES, carry, 1, &in[2], 1, &y, &c);
    out[0] = carry[0];
    out[1] = y ? y : carry[1];
}

static oly_array numbers(const drawn *p, int rows, int from)
{
    int64_t n = p->length * (p->wide ? 3 : 1);
    oly_array x = oly_sub(oly_mod(oly_mul(oly_iota(OLY_INT32, 0, rows * n), 7), 11), 4);
    x = scaled(oly_astype(oly_add(x, from), p->dtype), 1 + from);
    int64_t shape[] = {rows, p->wide ? 3 : n, p->length};
    int skipped = rows == 1;
    return oly_reshape_shape(x, (p->wide ? 3 : 2) - skipped, shape + skipped);
}

/* The bytes of the results of several calls. */
static size_t results(drawn *p, char *bytes)
{
    oly_array in[] = {numbers(p, 1, 0), numbers(p, 1, 1), numbers(p, ROWS, 2)}, out[2] = {NULL};
    oly_fn f = oly_jit(program, 3, 2, .user = p);
    size_t n = 0;
    for (int k = 0; k < CALLS; k++) {
        oly_call_arrays(f, 3, in, 2, out);
        n += check_bytes_of(2, out, bytes + n, MOST - n);
    }
    return n;
}

/* NaN of any sign is one value in complex numbers, whose products subtract and negate in another order. */
static bool same(const drawn *p, const char *a, const char *b, size_t n)
{
    bool all = p->dtype == OLY_COMPLEX64 || memcmp(a, b, n) == 0;
    for (size_t k = 0; k < n && all && p->dtype == OLY_COMPLEX64; k += sizeof(float)) {
        float x, y;
        memcpy(&x, a + k, sizeof x);
        memcpy(&y, b + k, sizeof y);
        all = memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y);
    }
    return all;
}

static void loops_have_the_bits_of_the_interpreter(void **state)
{
    static char compiled[MOST], interpreted[MOST];
    int count = USUAL, seed = check_draws_wanted("SMALL_STEPS", 1, &count);
    int64_t begun = oly_group_counted().runs;
    (void)state;
    for (int k = seed; k < seed + count; k++)
        OLY_SCOPE
        {
            drawn p = draw(k);
            int64_t after = oly_group_compile_after(k % 3 ? 2000 : 0); /* in the midst of a loop, or at once */
            size_t n = results(&p, compiled);
            oly_group_compile_after(after);
            oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_COMPILED_GROUPS);
            assert_int_equal(results(&p, interpreted), n);
            oly_disable(before);
            if (!same(&p, compiled, interpreted, n))
                fail_msg("seed %d: results differ", k);
        }
    if (count == USUAL && oly_code_available())
        assert_true(oly_group_counted().runs - begun > 10 * USUAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loops_have_the_bits_of_the_interpreter, check_start_wide, check_finish),
    };
    return CHECK_MAIN(tests);
}
