/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8  Chains of lookups (plan/schedule/row_chains.c, run/row_blocks.c): drawn programs of gathers and searches, what computes their
 * positions, what uses their results and reductions of these have the bits of separate steps, with positions numbered by the first dimension
 * or by the last, out of range, in loops, into donated memory. LOOKUPS=seed: only this program. */
#include "check_session.h"
#include "core/facts.h"
#include "core/optimisation.h"
#include "device/workers.h"
#include "plan/schedule/schedule.h"
#include "run/device_counts.h"
#include "run/row_blocks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS = 150, MOST = 1 << 20, MOST_VALUES = 24, OUT = 3, IN = 5 };

static uint64_t seed;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

typedef struct program {
    uint64_t seed;
    bool columns; /* N is the last dimension, else the first */
    bool loops, branches;
    int64_t n, k, c, table;
    oly_dtype dtype;
} program;

/* N, and perhaps K and C. Positions are int32. */
typedef struct value {
    oly_array x;
    bool has_k, has_c, is_position;
} value;

typedef struct pool {
    const program *p;
    int n;
    value of[MOST_VALUES];
} pool;

static void add(pool *v, oly_array x, bool has_k, bool has_c, bool is_position)
{
    if (v->n < MOST_VALUES)
        v->of[v->n++] = (value){x, has_k, has_c, is_position};
}

static const value *any(const pool *v, bool is_position)
{
    for (int tries = 0; tries < 100; tries++) {
        const value *x = &v->of[draw(v->n)];
        if (x->is_position == is_position)
            return x;
    }
    return &v->of[is_position];
}

/* With dimensions of 1 where it has none. */
static oly_array whole(const pool *v, const value *x)
{
    oly_array y = x->x;
    if (!x->has_k)
        y = oly_expand_dims(y, v->p->columns ? -2 : 1);
    if (!x->has_c)
        y = oly_expand_dims(y, v->p->columns ? 0 : -1);
    return y;
}

static int axis_of(const pool *v, const value *x, bool k)
{
    return v->p->columns ? (k ? x->has_c : 0) : k ? 1 : 1 + x->has_k;
}

static const char *mode(void)
{
    static const char *const modes[] = {"fill", "clip", "wrap"};
    return modes[draw(3)];
}

static oly_array of_type(oly_array x, const pool *v)
{
    return oly_astype(x, v->p->dtype);
}

static void combine(pool *v)
{
    const value *a = any(v, false), *b = any(v, false);
    oly_array x = whole(v, a), y = whole(v, b), z;
    bool has_k = a->has_k || b->has_k, has_c = a->has_c || b->has_c;
    switch (draw(4)) {
    case 0: z = oly_sub(x, y); break;
    case 1: z = oly_add(oly_mul(x, 2), y); break;
    case 2: z = oly_where(oly_lt(x, y), oly_sub(y, 1), oly_mul(x, y)); break;
    default: z = oly_max2(x, oly_abs(y));
    }
    if (!has_k)
        z = oly_squeeze(z, v->p->columns ? -2 : 1);
    if (!has_c)
        z = oly_squeeze(z, v->p->columns ? 0 : -1);
    add(v, of_type(z, v), has_k, has_c, false);
}

static void reduce(pool *v)
{
    const value *a = any(v, false);
    bool k = a->has_k && (!a->has_c || draw(2));
    if (!a->has_k && !a->has_c)
        return;
    char axis[8];
    snprintf(axis, sizeof axis, "%d", axis_of(v, a, k));
    oly_array x = draw(3) ? oly_sum(a->x, .axes = axis) : oly_max(a->x, .axes = axis);
    add(v, of_type(x, v), a->has_k && !k, a->has_c && k, false);
}

static void look_up(pool *v, const oly_array *in)
{
    const value *at = any(v, true);
    if (draw(3) == 0)
        add(v, oly_take(in[2], at->x, v->p->columns ? 1 : 0, mode()), at->has_k, true, false);
    else
        add(v, oly_take(in[1], at->x, 0, mode()), at->has_k, false, false);
}

/* Positions, some of them outside. */
static void find(pool *v, const oly_array *in)
{
    if (draw(2)) {
        const value *at = any(v, true);
        oly_array x = oly_rem(oly_abs(oly_add(oly_mul(at->x, 1 + draw(5)), draw(40))), (int)v->p->table + 2);
        add(v, oly_sub(x, draw(2)), at->has_k, false, true);
        return;
    }
    const value *a = any(v, false);
    if (!a->has_c)
        add(v, oly_searchsorted(in[3], a->x, draw(2) ? "left" : "right"), a->has_k, false, true);
}

/* Writes into one of the tables, or a number, and reads it again. */
static void write_into(pool *v, const oly_array *in)
{
    const value *at = any(v, true), *with = any(v, false), *back = any(v, true);
    oly_array table = draw(2) ? in[1] : oly_full(draw(3), v->p->dtype, v->p->table), x = with->x, y;
    for (int tries = 0; tries < 30 && (with->has_c || with->has_k != at->has_k || with->x == in[4]); tries++)
        x = (with = any(v, false))->x;
    if (with->has_c || with->has_k != at->has_k || draw(4) == 0)
        x = oly_full(1 + draw(3), v->p->dtype);
    switch (draw(5)) {
    case 0: y = oly_at_add(table, OLY_INDEXES(at->x), x, .mode = draw(2) ? "clip" : "drop"); break;
    case 1: y = oly_at_set(table, OLY_INDEXES(at->x), x, .mode = draw(2) ? "clip" : "drop"); break;
    case 2: y = oly_at_max(table, OLY_INDEXES(at->x), x); break;
    case 3: y = oly_at_add(oly_full(0, v->p->dtype, v->p->table), OLY_INDEXES(at->x), x); break;
    default: y = oly_at_add(oly_mul(table, 2), OLY_INDEXES(at->x), x);
    }
    add(v, oly_take(y, back->x, 0, mode()), back->has_k, false, false);
}

/* What reads other rows, or only some columns. */
static void shift(pool *v)
{
    const value *a = any(v, false);
    int along = v->p->columns ? -1 : 0;
    if (v->p->columns && a->has_c && draw(2))
        add(v, oly_index_in_dim(a->x, draw((int)v->p->c), 0), a->has_k, false, false);
    else if (draw(3) == 0)
        add(v, draw(2) ? oly_roll(a->x, 1, along) : oly_flip(a->x, along), a->has_k, a->has_c, false);
}

/* Sums of what is looked up, weighted or not; of two such the weights, or the positions, may be another's sums. */
static void sum_looked_up(pool *v, const oly_array *in)
{
    const value *at = any(v, true), *weight = any(v, false);
    bool of_rows = draw(2);
    for (int tries = 0; tries < 30 && (!at->has_k || weight->has_c || !weight->has_k); tries++) {
        at = any(v, true);
        weight = any(v, false);
    }
    if (!at->has_k || v->p->columns)
        return;
    oly_array x = oly_take(in[of_rows ? 2 : 1], at->x, 0, mode());
    if (weight->has_k && !weight->has_c && draw(3)) {
        oly_array w = of_rows ? oly_expand_dims(weight->x, -1) : weight->x;
        x = draw(2) ? oly_mul(w, x) : oly_mul(x, w);
    }
    add(v, of_type(oly_sum(x, .axes = "1"), v), false, of_rows, false);
}

static oly_array compute(const program *p, const oly_array *in, oly_array first, oly_array *out)
{
    pool v = {.p = p};
    seed = p->seed;
    add(&v, first, false, false, false);
    add(&v, in[0], true, false, true);
    for (int k = 6 + draw(10); k > 0; k--)
        switch (draw(11)) {
        case 10: sum_looked_up(&v, in); break;
        case 8:
        case 9: write_into(&v, in); break;
        case 0:
        case 1:
        case 2: look_up(&v, in); break;
        case 3: find(&v, in); break;
        case 4: reduce(&v); break;
        case 5: shift(&v); break;
        default: combine(&v);
        }
    for (int k = 0; k < OUT && out; k++)
        out[k] = v.of[k == 0 ? v.n - 1 : draw(v.n)].x;
    for (int k = v.n - 1; k > 0; k--)
        if (!v.of[k].has_k && !v.of[k].has_c && !v.of[k].is_position)
            return v.of[k].x;
    return of_type(oly_sum(oly_take(in[1], in[0], 0, "clip"), .axes = p->columns ? "0" : "1"), &v);
}

typedef struct captured {
    const program *p;
    const oly_array *in;
} captured;

static void iteration(oly_array i, oly_array *c, void *user)
{
    const captured *with = user;
    (void)i;
    c[0] = oly_sub(compute(with->p, with->in, c[0], NULL), oly_mul(c[0], 2));
}

static void branch(const oly_array *first, oly_array *out, void *user)
{
    const captured *with = user;
    compute(with->p, with->in, first[0], out);
}

static void other_branch(const oly_array *first, oly_array *out, void *user)
{
    const captured *with = user;
    compute(with->p, with->in, oly_add(first[0], 1), out);
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    if (p->branches) {
        oly_array is_first = oly_ge(oly_max(in[0]), p->seed & 1 ? -100 : 100);
        oly_cond(is_first, branch, other_branch, OLY_IN(in[4]), OUT, out, &(captured){p, in});
        return;
    }
    if (!p->loops) {
        compute(p, in, in[4], out);
        return;
    }
    oly_array c = in[4];
    oly_fori(0, 3, iteration, 1, &c, &(captured){p, in});
    for (int k = 0; k < OUT; k++)
        out[k] = oly_add(c, k);
}

static size_t result_of(program *p, const oly_array *in, bool donates, char *bytes, int64_t *chains)
{
    oly_fn f = oly_jit(run, IN, OUT, .user = p);
    size_t total = 0;
    OLY_SCOPE
    {
        oly_array given[IN], out[OUT] = {NULL};
        memcpy(given, in, sizeof given);
        given[4] = oly_mul(in[4], 1);
        out[0] = donates ? given[4] : NULL;
        int64_t before = oly_counted(&oly_device_counted.row_chains);
        assert_int_equal(oly_call_arrays(f, IN, given, OUT, out), OLY_OK);
        oly_block_until_ready(out[0]);
        *chains = oly_counted(&oly_device_counted.row_chains) - before;
        total = check_bytes_of(OUT, out, bytes, MOST);
    }
    return total;
}

static program drawn(void)
{
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_FLOAT32, OLY_BFLOAT16, OLY_INT32};
    program p = {.columns = draw(2), .loops = draw(4) == 0, .dtype = dtypes[draw(5)]};
    p.n = 8 * (20 + draw(80)) + (draw(3) == 0 ? draw(8) : 0);
    p.k = 1 + draw(9) * (draw(4) ? 1 : 9);
    p.c = 1 + draw(4);
    while (p.n * p.k * p.c * 8 * OUT > MOST)
        p.k = (p.k + 1) / 2;
    p.table = 1 + draw(500);
    p.seed = (uint64_t)draw(1 << 30);
    p.branches = !p.loops && draw(4) == 0;
    return p;
}

/* Small numbers, which no order of sums rounds. */
static oly_array numbers(const program *p, const char *sharding, int rank, const int64_t *shape)
{
    oly_array x = rank == 1 ? oly_random_randint(oly_random_key(draw(1000)), OLY_INT32, -9, 9, shape[0])
                            : oly_random_randint(oly_random_key(draw(1000)), OLY_INT32, -9, 9, shape[0], shape[1]);
    return oly_device_put(oly_astype(x, p->dtype), oly_named(oly_make_mesh("x=4,y=2"), sharding));
}

static void drawn_programs_have_the_same_bits(void **state)
{
    static char with[MOST], without[MOST];
    static const char *const splits[] = {"(x, y)", "(y, x)", "(x, y)", "x", "None"};
    const char *only = getenv("LOOKUPS");
    int64_t chains[2] = {0, 0}, scatters = 0;
    const oly_optimisations lookups = (oly_optimisations)1 << OLY_OPTIMISATION_LOOKUP_CHAINS,
                            sinks = (oly_optimisations)1 << OLY_OPTIMISATION_SCATTER_CHAINS;
    (void)state;
    for (int j = 0; j < PROGRAMS; j++)
        OLY_SCOPE
        {
            seed = only ? strtoull(only, NULL, 10) : (uint64_t)j * 11 + 5;
            uint64_t own = seed;
            draw(2);
            program p = drawn();
            const char *split = splits[draw(5)], *other = p.branches ? splits[draw(5)] : split;
            char at[40];
            snprintf(at, sizeof at, p.columns ? "None, %s" : "%s, None", split);
            int64_t positions[] = {p.columns ? p.k : p.n, p.columns ? p.n : p.k};
            int64_t table[] = {p.columns ? p.c : p.table, p.columns ? p.table : p.c};
            oly_array sorted = oly_sub(oly_floor_divide(oly_arange(p.table, OLY_INT32), 20), 8);
            oly_array in[IN] = {oly_device_put(oly_random_randint(oly_random_key(draw(1000)), OLY_INT32, -3,
                                                                  (int)p.table + 3, positions[0], positions[1]),
                                               oly_named(oly_make_mesh("x=4,y=2"), at)),
                                numbers(&p, "", 1, &p.table), numbers(&p, "", 2, table),
                                oly_device_put(oly_astype(sorted, p.dtype), oly_named(oly_make_mesh("x=4,y=2"), "")),
                                numbers(&p, other, 1, &p.n)};
            bool donates = draw(3) == 0;
            int64_t run = 0, others = 0;
            oly_optimisations before = oly_disable(lookups | sinks);
            size_t size = result_of(&p, in, donates, without, &others);
            oly_disable(before);
            oly_disable(lookups);
            assert_int_equal(result_of(&p, in, donates, with, &run), size);
            oly_disable(before);
            if (memcmp(with, without, size) != 0)
                fail_msg("LOOKUPS=%llu differs with scatters", (unsigned long long)own);
            scatters += run > others;
            for (int backwards = 0; backwards < 2; backwards++) {
                oly_row_blocks_backwards = backwards;
                assert_int_equal(result_of(&p, in, donates, with, &run), size);
                if (memcmp(with, without, size) != 0)
                    fail_msg("LOOKUPS=%llu differs%s", (unsigned long long)own, backwards ? " backwards" : "");
            }
            oly_row_blocks_backwards = false;
            chains[p.columns] += run > others;
            if (only)
                break;
        }
    if (!only && oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_LOOKUP_CHAINS))
        for (int columns = 0; columns < 2; columns++)
            assert_true(chains[columns] > PROGRAMS / 10);
    if (!only && oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_SCATTER_CHAINS) &&
        oly_workers_count() <= 2)
        assert_true(scatters > PROGRAMS / 20);
}

/* -- sparse matrices ---------------------------------------------------------------------------------------------------------- */

/* Sums over the elements of each row of values times a vector's elements: in[0] vector, in[1] columns, in[2] values, in[3] rows. */
static void sparse_product(const oly_array *in, oly_array *out, void *user)
{
    const int64_t *rows = user;
    out[0] = oly_segment_sum(oly_mul(in[2], oly_take(in[0], in[1], 0, "clip")), in[3], *rows);
}

/* Rows of 1 to 30 elements in order, some empty, or in none; some rows or columns outside, also rows far outside among others. */
static void sparse_products_have_the_same_bits(void **state)
{
    enum { N = 20000, X = 700 };
    static int32_t column[N], row[N];
    static char bytes[2][MOST];
    (void)state;
    for (int j = 0; j < 32; j++)
        OLY_SCOPE
        {
            seed = (uint64_t)j * 17 + 3;
            oly_dtype dtype = draw(2) ? OLY_FLOAT32 : OLY_FLOAT64;
            int kind = draw(5), at = kind == 3 ? -3 : 0, longest = 1 + draw(30);
            for (int k = 0; k < N; k++) {
                at += draw(longest) == 0 ? 1 + draw(2) : 0;
                row[k] = kind == 2 && draw(500) == 0 ? draw(at + 1) : kind == 4 && draw(500) == 0 ? INT32_MAX / 2 : at;
                column[k] = draw(X) + (kind == 1 && draw(2000) == 0 ? X : 0);
            }
            int64_t rows = at + 1 - (kind == 3 ? 40 : 0);
            oly_array in[4] = {
                oly_random_normal(oly_random_key(j), dtype, X), oly_from_host(column, OLY_INT32, 1, (int64_t[]){N}),
                oly_random_normal(oly_random_key(j + 1), dtype, N), oly_from_host(row, OLY_INT32, 1, (int64_t[]){N})};
            size_t size = 0;
            for (int with = 0; with < 2; with++) {
                oly_array out[1] = {NULL};
                oly_optimisations before =
                    oly_disable(with ? 0 : (oly_optimisations)1 << OLY_OPTIMISATION_SCATTER_CHAINS);
                oly_fn f = oly_jit(sparse_product, 4, 1, .user = &rows);
                assert_int_equal(oly_call_arrays(f, 4, in, 1, out), OLY_OK);
                oly_disable(before);
                size = check_bytes_of(1, out, bytes[with], MOST);
            }
            if (memcmp(bytes[0], bytes[1], size) != 0)
                fail_msg("sparse product %d differs", j);
        }
}

/* -- sums at positions -------------------------------------------------------------------------------------------------------- */

/* Of single elements, in memory that stays in cache and in more, where they are fetched ahead: each in its order, those outside dropped, runs
 * of one position as well as none. */
static void sums_at_positions_are_in_order(void **state)
{
    enum { N = 5000, LARGE = 3000000 };
    static int32_t at[N];
    static float with[N], wanted[LARGE], got[LARGE];
    (void)state;
    for (int j = 0; j < 12; j++)
        OLY_SCOPE
        {
            seed = (uint64_t)j * 31 + 7;
            int64_t size = j % 2 ? LARGE : 1 + draw(3000), n = N;
            int kind = draw(4), here = 0;
            memset(wanted, 0, sizeof *wanted * (size_t)size);
            for (int k = 0; k < N; k++) {
                here = kind == 0 && draw(40) ? here : draw((int)size); /* runs */
                here = kind == 1 ? (int)(k * size / N) : here;         /* ascending */
                at[k] = kind == 2 && draw(300) == 0 ? (int32_t)size + draw(9) : here;
                with[k] = (float)draw(1000) / 7;
                if (at[k] < size)
                    wanted[at[k]] += with[k];
            }
            oly_array y =
                oly_segment_sum(oly_from_host(with, OLY_FLOAT32, 1, &n), oly_from_host(at, OLY_INT32, 1, &n), size);
            assert_int_equal(oly_get(y, got, sizeof *got * (size_t)size), OLY_OK);
            assert_memory_equal(got, wanted, sizeof *got * (size_t)size);
        }
}

/* -- sums of what is looked up ------------------------------------------------------------------------------------------------ */

/* in[0] [table, line] or [table], in[1] positions [n, width], in[2] weights [n, width]. */
typedef struct looked_up_sum {
    int line; /* 0: x has no lines */
    int weights; /* 0: none, 1: in[2], 2: in[2] and the product in the other order, 3: computed, 4: those of another order in memory */
    int results;
    const char *mode;
} looked_up_sum;

static void sum_of_looked_up(const oly_array *in, oly_array *out, void *user)
{
    const looked_up_sum *p = user;
    for (int k = 0; k < p->results; k++) {
        oly_array at = k == 0 ? in[1] : oly_max2(oly_sub(in[1], k), 0), x = oly_take(in[0], at, 0, p->mode);
        oly_array w = p->weights == 3   ? oly_mul(in[2], oly_sum(in[2], .axes = "1", .keepdims = true))
                      : p->weights == 4 ? oly_flip(in[2], 0)
                                        : in[2];
        w = p->line ? oly_expand_dims(w, -1) : w;
        oly_array y = p->weights == 0 ? x : p->weights == 2 ? oly_mul(x, w) : oly_mul(w, x);
        out[k] = k == 0 ? oly_sum(y, .axes = "1") : oly_mean(y, .axes = "1");
        if (k == 2)
            out[k] = oly_add(out[k], oly_max(x, .axes = "1")); /* reads what lies in between, too */
    }
}

/* Rows of 1 to 90 positions, of which some may be outside, lines of 1 to 80 elements, -0 and either NaN or infinity among the
 * elements (of two NaNs of different signs compilers choose one). */
static void sums_of_looked_up_have_the_same_bits(void **state)
{
    enum { N = 6000, RESULTS = 3 };
    static const char *const splits[] = {"x", "None", "x"}, *const modes[] = {"fill", "clip", "wrap"};
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_FLOAT32, OLY_INT32};
    static int32_t at[N];
    static char bytes[2][MOST];
    int passes = 0;
    (void)state;
    for (int j = 0; j < 60; j++)
        OLY_SCOPE
        {
            seed = (uint64_t)j * 23 + 3;
            looked_up_sum p = {draw(3) ? 1 + draw(draw(2) ? 80 : 9) : 0, draw(5), 1 + draw(RESULTS), modes[draw(3)]};
            oly_dtype dtype = dtypes[draw(4)];
            int64_t width = 1 + draw(draw(3) ? 12 : 90), table = 1 + draw(300), n = N / width / 8 * 8;
            n = p.line && n * p.line * 8 * RESULTS > MOST ? MOST / 8 / RESULTS / p.line / 8 * 8 : n;
            bool outside = draw(3) == 0, donates = draw(3) == 0; /* the result takes the memory of the weights */
            p.line = donates ? (int)width : p.line;
            for (int k = 0; k < N; k++)
                at[k] = draw((int)table) + (outside && draw(500) == 0 ? (draw(2) ? (int)table : -(int)table - 5) : 0);
            oly_array x = oly_random_normal(oly_random_key(j), OLY_FLOAT64, table, p.line ? p.line : 1);
            x = oly_where(oly_gt(oly_abs(x), 2.5), draw(2) ? INFINITY : NAN, oly_where(oly_gt(x, 2), -0.0, x));
            x = dtype == OLY_INT32 ? oly_random_randint(oly_random_key(j), dtype, -99, 99, table, p.line ? p.line : 1)
                                   : oly_astype(x, dtype);
            oly_array w =
                oly_astype(oly_mul(oly_random_normal(oly_random_key(j + 1), OLY_FLOAT64, n, width), 9), dtype);
            oly_mesh mesh = oly_make_mesh("x=8");
            oly_sharding rows = oly_named(mesh, splits[draw(3)]);
            oly_array in[3] = {oly_device_put(p.line ? x : oly_squeeze(x, 1), oly_named(mesh, "")),
                               oly_device_put(oly_from_host(at, OLY_INT32, 2, (int64_t[]){n, width}), rows),
                               oly_device_put(w, rows)};
            size_t size = 0;
            for (int with = 0; with < 2; with++) {
                oly_array out[RESULTS] = {NULL};
                int64_t before = oly_counted(&oly_device_counted.gathered_sums);
                oly_optimisations all = oly_disable(with ? 0 : (oly_optimisations)1 << OLY_OPTIMISATION_LOOKUP_CHAINS);
                oly_fn f = oly_jit(sum_of_looked_up, 3, p.results, .user = &p);
                oly_array given[3] = {in[0], in[1], oly_add(in[2], oly_astype(0, dtype))};
                out[0] = donates ? given[2] : NULL;
                assert_int_equal(oly_call_arrays(f, 3, given, p.results, out), OLY_OK);
                oly_disable(all);
                size = check_bytes_of(p.results, out, bytes[with], MOST);
                passes += oly_counted(&oly_device_counted.gathered_sums) > before;
            }
            if (memcmp(bytes[0], bytes[1], size) != 0)
                fail_msg("sum of what is looked up %d differs", j);
        }
    if (oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_LOOKUP_CHAINS))
        assert_true(passes > 12); /* not those that all devices repeat, or whose weights are computed or reversed */
}

/* -- what people write ------------------------------------------------------------------------------------------------------ */

/* Forces of neighbours: x [n, 3], neighbours [n, k]. */
static void forces(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array d = oly_sub(oly_expand_dims(in[0], 1), oly_take(in[0], in[1], 0, "clip"));
    oly_array square = oly_sum(oly_mul(d, d), .axes = "-1");
    oly_array f = oly_where(oly_lt(square, 25), oly_sub(25, square), 0);
    out[0] = oly_sum(oly_mul(oly_expand_dims(f, -1), d), .axes = "1");
}

/* The same with x [3, n], neighbours [k, n]. */
static void forces_of_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array d[3], square = NULL;
    for (int c = 0; c < 3; c++) {
        oly_array x = oly_index_in_dim(in[0], c, 0);
        d[c] = oly_sub(x, oly_take(x, in[1], 0, "clip"));
        square = square ? oly_add(square, oly_mul(d[c], d[c])) : oly_mul(d[c], d[c]);
    }
    oly_array f = oly_where(oly_lt(square, 25), oly_sub(25, square), 0), sums[3];
    for (int c = 0; c < 3; c++)
        sums[c] = oly_sum(oly_mul(f, d[c]), .axes = "0");
    out[0] = oly_stack(0, sums[0], sums[1], sums[2]);
}

static void neighbours_are_one_chain(void **state)
{
    enum { N = 1000, K = 20 };
    static int32_t at[N * K], turned[N * K];
    static float x[N * 3], y[N * 3], wanted[N * 3], got[N * 3];
    (void)state;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++)
            at[i * K + k] = turned[k * N + i] = (i * 7 + k * k * 31) % N;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 3; c++)
            x[i * 3 + c] = y[c * N + i] = (float)((i * 13 + c * 5) % 9);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++) {
            const float *a = &x[i * 3], *b = &x[at[i * K + k] * 3];
            float d[] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]}, square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            for (int c = 0; c < 3; c++)
                wanted[i * 3 + c] += square < 25 ? (25 - square) * d[c] : 0;
        }
    for (int columns = 0; columns < 2; columns++)
        OLY_SCOPE
        {
            int64_t n = N, k = K, c = 3;
            oly_mesh mesh = oly_make_mesh("x=8");
            const int64_t shape_of_x[] = {columns ? c : n, columns ? n : c},
                          shape[] = {columns ? k : n, columns ? n : k};
            oly_array in[] = {
                oly_device_put(oly_from_host(columns ? y : x, OLY_FLOAT32, 2, shape_of_x), oly_named(mesh, "")),
                oly_device_put(oly_from_host(columns ? turned : at, OLY_INT32, 2, shape),
                               oly_named(mesh, columns ? "None, x" : "x, None"))};
            oly_array out = NULL;
            int64_t before = oly_counted(&oly_device_counted.row_chains);
            oly_fn f = oly_jit(columns ? forces_of_columns : forces, 2, 1);
            assert_int_equal(oly_call_arrays(f, 2, in, 1, &out), OLY_OK);
            assert_int_equal(oly_process_allgather(out, got, sizeof got), OLY_OK);
            for (int i = 0; i < N * 3; i++)
                assert_true(got[columns ? i % 3 * N + i / 3 : i] == wanted[i]);
            if (oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_LOOKUP_CHAINS))
                assert_true(oly_counted(&oly_device_counted.row_chains) > before);
        }
}

/* The result takes the memory of what is looked up: then one step follows the other. */
static void turned_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(1, oly_mul(oly_take(in[0], in[1], 1, "clip"), 2));
}

static void turned_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(1, oly_mul(oly_take(in[0], in[1], 0, "clip"), 2));
}

static void what_is_looked_up_may_be_donated(void **state)
{
    enum { N = 3000 };
    static int32_t at[N];
    static float x[3 * N], got[3 * N];
    (void)state;
    for (int i = 0; i < N; i++)
        at[i] = (i * 7 + 11) % N;
    for (int i = 0; i < 3 * N; i++)
        x[i] = (float)i;
    for (int columns = 0; columns < 2; columns++)
        OLY_SCOPE
        {
            int64_t n = N, shape[] = {columns ? 3 : n, columns ? n : 3};
            oly_sharding one = oly_single_device(oly_get_device(0));
            oly_array given = oly_device_put(oly_from_host(x, OLY_FLOAT32, 2, shape), one);
            oly_array in[] = {oly_mul(given, 1), oly_device_put(oly_from_host(at, OLY_INT32, 1, &n), one)}, out = in[0];
            int64_t before = oly_counted(&oly_device_counted.rows_in_order);
            assert_int_equal(oly_call_arrays(oly_jit(columns ? turned_columns : turned_rows, 2, 1), 2, in, 1, &out),
                             OLY_OK);
            assert_int_equal(oly_process_allgather(out, got, sizeof got), OLY_OK);
            for (int i = 0; i < 3 * N; i++)
                assert_true(got[i] == 1 - 2 * x[columns ? i / N * N + at[i % N] : at[i / 3] * 3 + i % 3]);
            if (oly_process_index() == 0 && oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_LOOKUP_CHAINS))
                assert_true(oly_counted(&oly_device_counted.rows_in_order) > before);
        }
}

/* A loop whose devices do the same, with a chain that ends with the lookup. */
static void follow(oly_array i, oly_array *c, void *user)
{
    (void)i;
    (void)user;
    c[0] = oly_take(c[0], oly_rem(oly_add(oly_mul(c[0], 5), 3), 40), 0, "clip");
}

static void followed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 3, follow, 1, out, NULL);
}

static void loops_are_run_once_for_all(void **state)
{
    enum { N = 40 };
    static int32_t x[N], next[N], got[N];
    (void)state;
    OLY_SCOPE
    {
        int64_t n = N;
        for (int i = 0; i < N; i++)
            x[i] = (i * 37 + 5) % N;
        oly_array in = oly_device_put(oly_from_host(x, OLY_INT32, 1, &n), oly_named(oly_make_mesh("x=8"), ""));
        oly_array out = oly_apply(oly_jit(followed, 1, 1), in);
        assert_int_equal(oly_process_allgather(out, got, sizeof got), OLY_OK);
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < N; i++)
                next[i] = x[(x[i] * 5 + 3) % N];
            memcpy(x, next, sizeof x);
        }
        assert_memory_equal(got, x, sizeof x);
    }
}

/* What a branch reads in another place is moved before it. Its memory is in use from the branch's begin on, as that of what its chain writes. */
static void sum_of_segments(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_segment_sum(in[0], oly_full(1, OLY_INT32, 4), 6);
}

static void no_segments(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    (void)user;
    out[0] = oly_full(0, OLY_FLOAT32, 6, 90);
}

static void sum_in_a_branch(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_cond(in[1], no_segments, sum_of_segments, OLY_IN(in[0]), 1, out, NULL);
    out[0] = oly_with_sharding_constraint(out[0], oly_named(oly_make_mesh("x=8"), "None, x"));
}

static void what_is_moved_before_a_branch_is_read_from_there(void **state)
{
    enum { N = 90, ROWS = 4 };
    float x[ROWS * N], got[6 * N];
    int64_t shape[] = {ROWS, N};
    (void)state;
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (float)i;
    OLY_SCOPE
    {
        oly_array in[] = {oly_device_put(oly_from_host(x, OLY_FLOAT32, 2, shape), oly_named(oly_make_mesh("x=8"), "x")),
                          oly_device_put(oly_full(0, OLY_BOOL), oly_named(oly_make_mesh("x=8"), ""))},
                  out = NULL;
        int64_t before = oly_counted(&oly_device_counted.row_chains);
        assert_int_equal(oly_call_arrays(oly_jit(sum_in_a_branch, 2, 1), 2, in, 1, &out), OLY_OK);
        assert_int_equal(oly_process_allgather(out, got, sizeof got), OLY_OK);
        for (int i = 0; i < 6 * N; i++)
            assert_true(got[i] == (i / N == 1 ? x[i % N] + x[N + i % N] + x[2 * N + i % N] + x[3 * N + i % N] : 0));
        if (oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_SCATTER_CHAINS) && oly_workers_count() <= 2)
            assert_true(oly_counted(&oly_device_counted.row_chains) > before);
    }
}

static int open_with_chains(void **state)
{
    oly_row_chains_least = 1;
    return check_start_wide(state);
}

static int close_with_chains(void **state)
{
    oly_row_chains_least = 1 << 21;
    return check_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drawn_programs_have_the_same_bits, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(sparse_products_have_the_same_bits, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(sums_of_looked_up_have_the_same_bits, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(sums_at_positions_are_in_order, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(neighbours_are_one_chain, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(what_is_looked_up_may_be_donated, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(loops_are_run_once_for_all, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(what_is_moved_before_a_branch_is_read_from_there, open_with_chains,
                                        close_with_chains),
    };
    return CHECK_MAIN(tests);
}
