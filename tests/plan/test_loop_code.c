/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops whose steps are machine code run without the interpreter (run/loop_code.c): drawn scans, counted and conditional loops over a few
 * numbers, forward and backward, with rows that are read and written, counters, carries that change places or stay, bodies of several steps,
 * nested loops, have the bits of the interpreter, and most of them have been run so. LOOP_CODE=seed:count draws others. */
#include "check.h"
#include "check_draws.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "run/compiled_groups.h"
#include "run/loop_code.h"
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 61, CARRIES = 3, WIDEST = 20, RESULTS = 2 * CARRIES, ROOM = 1 << 18 };

typedef struct drawn {
    int carries, width, seed, rows;
    oly_dtype dtype;
    bool reverse, counts, nested, splits;
} drawn;

/* Numbers stay small, so that everything is seen in the results. */
static oly_array mixed(oly_array a, oly_array b, int how)
{
    switch (how % 6) {
    case 0: return oly_add(oly_mul(a, 0.5), oly_mul(b, 0.25));
    case 1: return oly_sub(oly_mul(a, 0.75), oly_mul(b, 0.25));
    case 2: return oly_max2(oly_mul(a, 0.5), oly_mul(b, 0.75));
    case 3: return oly_where(oly_gt(a, b), oly_mul(a, 0.5), oly_mul(b, -0.5));
    case 4: return oly_mul(0.5, oly_add(a, b));
    default: return oly_size(a) == oly_size(b) ? b : oly_mul(0.5, oly_add(a, b));
    }
}

/* Of carries of one element, which are steps of their own, the first. */
static oly_array fitting(const drawn *x, int k, oly_array a)
{
    return x->splits && k == 1 ? oly_slice(a, ":1") : a;
}

static void advance(const drawn *x, oly_array counter, oly_array *carry, const oly_array *row)
{
    oly_array next[CARRIES];
    for (int k = 0; k < x->carries; k++) {
        int how = x->seed / (1 + k * 7);
        next[k] = mixed(carry[k], fitting(x, k, carry[(k + how / 6) % x->carries]), how);
        if (row)
            next[k] = mixed(next[k], fitting(x, k, row[k % x->rows]), how / 3);
        if (counter && how % 2)
            next[k] = oly_add(next[k], oly_mul(oly_astype(counter, x->dtype), 0.125));
    }
    memcpy(carry, next, sizeof *next * (size_t)x->carries);
}

static void scan_body(oly_array *carry, const oly_array *row, oly_array *out, void *user)
{
    const drawn *x = user;
    advance(x, NULL, carry, row);
    for (int k = 0; k < x->carries; k++)
        out[k] = k % 2 ? row[k % x->rows] : oly_mul(carry[k], 2);
}

static void inner_body(oly_array i, oly_array *carry, void *user)
{
    advance(user, i, carry, NULL);
}
static void fori_body(oly_array i, oly_array *carry, void *user)
{
    const drawn *x = user;
    advance(x, x->counts ? i : NULL, carry, NULL);
    if (x->nested)
        oly_fori(0, 12, inner_body, x->carries, carry, user);
}

static oly_array goes_on(const oly_array *carry, void *user)
{
    const drawn *x = user;
    return oly_lt(carry[x->carries], 40 + x->seed % 7);
}
static void while_body(oly_array *carry, void *user)
{
    const drawn *x = user;
    advance(x, x->counts ? carry[x->carries] : NULL, carry, NULL);
    carry[x->carries] = oly_add(carry[x->carries], 1);
}

static void program(const oly_array *in, oly_array *out, void *user)
{
    const drawn *x = user;
    oly_array carry[CARRIES], again[CARRIES], counted[CARRIES + 1];
    for (int k = 0; k < x->carries; k++)
        counted[k] = again[k] = carry[k] = fitting(x, k, oly_slice(in[k], "0"));
    counted[x->carries] = oly_zeros(OLY_INT32);
    oly_scan(LENGTH, x->reverse, scan_body, x->carries, carry, x->rows, in, x->carries, out, user);
    oly_fori(3, 3 + LENGTH, fori_body, x->carries, again, user);
    oly_while(goes_on, while_body, x->carries + 1, counted, user);
    for (int k = 0; k < x->carries; k++)
        out[x->carries + k] = oly_concatenate(0, carry[k], again[k], counted[k]);
}

/* Runs it some times, as code is made meanwhile, and returns the bytes of the results, which are the same each time. */
static size_t run(const drawn *x, const oly_array *in, char *bytes, size_t room)
{
    static char first[ROOM];
    oly_fn f = oly_jit(program, x->carries, 2 * x->carries, .user = (void *)(uintptr_t)x);
    size_t n = 0;
    for (int round = 0; round < 3; round++)
        OLY_SCOPE
        {
            oly_array out[RESULTS];
            n = 0;
            assert_int_equal(oly_call_arrays(f, x->carries, in, 2 * x->carries, out), OLY_OK);
            for (int k = 0; k < 2 * x->carries; k++) {
                size_t more = (size_t)oly_size(out[k]) * oly_dtype_size(oly_dtype_of(out[k]));
                assert_true(n + more <= room);
                assert_int_equal(oly_process_allgather(out[k], bytes + n, more), OLY_OK);
                n += more;
            }
            if (round == 0)
                memcpy(first, bytes, n);
            assert_memory_equal(first, bytes, n);
        }
    return n;
}

static drawn draw(int seed)
{
    static const int widths[] = {1, 1, 2, 5, 16, WIDEST};
    check_draws(seed);
    drawn x = {.carries = 1 + below(CARRIES), .width = widths[below(6)], .seed = below(1 << 20)};
    x.rows = 1 + below(x.carries);
    x.dtype = below(4) ? OLY_FLOAT32 : OLY_BFLOAT16;
    x.reverse = below(2), x.counts = below(2), x.nested = below(3) == 0, x.splits = below(3) == 0 && x.width > 1;
    return x;
}

static void loops_have_the_bits_of_the_interpreter(void **state)
{
    static char with[ROOM], without[ROOM];
    static float numbers[LENGTH * WIDEST];
    static const char *const specs[] = {"None, None", "None, x", "None, (x,y)", "y, None"};
    int count = 40, first = check_draws_wanted("LOOP_CODE", 1, &count);
    int64_t before = oly_loop_code_iterations(), work = oly_group_compile_after(0);
    (void)state;
    for (int seed = first; seed < first + count; seed++)
        OLY_SCOPE
        {
            drawn x = draw(seed);
            oly_mesh mesh = oly_make_mesh("x=4, y=2");
            oly_array in[CARRIES];
            for (int k = 0; k < x.carries; k++) {
                const char *spec = specs[below(4)];
                for (int i = 0; i < LENGTH * x.width; i++)
                    numbers[i] = (float)(below(2000) - 1000) / 250;
                in[k] = oly_astype(oly_from_host(numbers, OLY_FLOAT32, 2, (int64_t[]){LENGTH, x.width}), x.dtype);
                if (seed % 3)
                    in[k] = oly_device_put(in[k], oly_named(mesh, spec));
            }
            size_t n = run(&x, in, with, sizeof with);
            oly_optimisations others = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_LOOPS_OF_CODE);
            assert_int_equal(run(&x, in, without, sizeof without), n);
            oly_disable(others);
            if (memcmp(with, without, n) != 0)
                fail_msg("LOOP_CODE=%d:1: other bits, %d carries of %d elements", seed, x.carries, x.width);
        }
    oly_group_compile_after(work);
    if (oly_group_counted().compiled > 0 && oly_process_count() == 1)
        assert_true(oly_loop_code_iterations() - before > count * LENGTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loops_have_the_bits_of_the_interpreter, check_start_wide, check_finish)};
    return CHECK_MAIN(tests);
}
