/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8  Loops that go through arrays row by row (oly_scan, slices and updates by the counter): rows are read and
 * written where they are, devices run them by themselves, arrays split along the rows are split otherwise before. Drawn programs have the
 * bits that they have without. LOOP_ROWS=seed: only this program. */
#include "check_steps.h"
#include "core/optimisation.h"
#include "core/facts.h"
#include <olympus.h>
#include <string.h>

enum { PROGRAMS = 240, VERIFIED = 80, MOST = 1 << 18, MOST_OUT = 4 };

static uint64_t seed;
static int n_rows, n_placed; /* in plans since they were 0 */

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static bool has_rows(const oly_step *s)
{
    n_rows += s->kind == OLY_STEP_LOOP ? s->loop.n_rows : 0;
    return false;
}

static int placements(const oly_graph *g)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph *const *graphs;
        n += g->nodes[k]->op == OLY_OP_place;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            n += placements(graphs[j]);
    }
    return n;
}

static void count(oly_plan *plan)
{
    check_count_steps(plan, has_rows);
    n_placed += placements(plan->graph);
}

typedef struct program {
    uint64_t seed;
    int n_carry, n_x, n_y, kind;
    bool reverse, integers;
    int64_t length, width;
    oly_array captured;
    int rows, placed; /* in its plan */
} program;

/* Values that stay exact: sums of small integers. */
static oly_array small(oly_array x, const program *p)
{
    oly_array y = oly_where(oly_gt(x, 40), oly_sub(x, 50), oly_where(oly_lt(x, -40), oly_add(x, 60), x));
    return p->integers ? oly_astype(y, OLY_INT32) : y;
}

static oly_array mixed(oly_array a, oly_array b, const program *p)
{
    switch (draw(7)) {
    case 0: return oly_add(a, b);
    case 1: return oly_sub(a, oly_mul(b, 2));
    case 2: return oly_where(oly_lt(a, b), b, oly_sub(a, 1));
    case 3: return oly_add(oly_max2(a, b), draw(5));
    case 4: return oly_add(oly_roll(a, 1 - 2 * draw(2), 0), b); /* neighbours, of other devices, too */
    case 5: return oly_add(a, small(oly_sum(b), p));
    default: return oly_sub(b, a);
    }
}

static void inner(oly_array i, oly_array *carry, void *user)
{
    oly_array made = small(oly_add(oly_sub(carry[0], carry[1]), i), user);
    carry[1] = carry[0];
    carry[0] = made;
}

static void body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    const program *p = user;
    uint64_t before = seed;
    seed = p->seed;
    bool local = draw(3) > 0; /* nothing of other elements */
    oly_array values[8];
    int n = 0;
    for (int k = 0; k < p->n_carry; k++)
        values[n++] = carry[k];
    for (int k = 0; k < p->n_x; k++)
        values[n++] = x[k];
    oly_array made[3];
    for (int k = 0; k < 3; k++) {
        oly_array a = values[draw(n)], b = values[draw(n)];
        made[k] = small(local ? oly_add(oly_sub(a, b), draw(3)) : mixed(a, b, p), p);
        values[n > 6 ? 6 : n++] = made[k];
    }
    if (draw(3) == 0) {
        oly_array both[2] = {made[0], values[0]};
        oly_fori(0, 1 + draw(4), inner, 2, both, user);
        made[0] = oly_sub(both[0], both[1]);
        made[0] = small(made[0], p);
    }
    if (draw(3) == 0 && p->n_carry > 1) /* passed on */
        carry[1] = carry[0];
    else if (p->n_carry > 1)
        carry[1] = draw(2) && p->n_x > 0 ? x[0] : made[1];
    if (p->n_carry > 0)
        carry[0] = made[draw(3)];
    for (int k = 0; k < p->n_y; k++)
        y[k] = k == 0 && p->n_carry > 0 && draw(2) ? carry[0] : made[draw(3)];
    if (p->n_y > 1 && p->n_x > 0 && draw(3) == 0)
        y[1] = x[p->n_x - 1];
    seed = before;
}

/* The same by hand: rows by the counter, some of them beyond the ends. */
static void by_hand(oly_array i, oly_array *carry, void *user)
{
    const program *p = user;
    uint64_t before = seed;
    seed = p->seed;
    int64_t n = p->length;
    oly_array at = i, to = i;
    switch (draw(5)) {
    case 0: at = oly_sub(n - 1, i); break;
    case 1: at = oly_sub(i, 2); break;             /* negative ones count from the end */
    case 2: at = oly_add(i, 3); break;             /* clamped */
    case 3: to = oly_sub(oly_add(i, i), 1); break; /* by twos, clamped */
    default: to = oly_sub(n - 1, i); break;
    }
    oly_array row = oly_dynamic_slice(p->captured, 2, (oly_operand[]){OLY_ARG(at), OLY_ARG(0)}, 2,
                                      (int64_t[]){1 + draw(2), p->width});
    oly_array sum = oly_sum(row, OLY_AXES(0));
    oly_array made = small(oly_add(sum, oly_mul(carry[0], 2)), p);
    carry[0] = made;
    oly_array rows = draw(2) ? oly_reshape(made, 1, p->width)
                             : oly_concatenate(0, oly_reshape(made, 1, p->width), oly_reshape(sum, 1, p->width));
    if (draw(3) == 0) /* read, too */
        rows = small(oly_add(rows, oly_dynamic_slice(carry[1], 2, (oly_operand[]){OLY_ARG(i), OLY_ARG(0)}, 2,
                                                     (int64_t[]){1, p->width})),
                     p);
    carry[1] = oly_dynamic_update_slice(carry[1], rows, 2, (oly_operand[]){OLY_ARG(to), OLY_ARG(0)});
    seed = before;
}

/* Over arrays of length x width, as they are or as views of something else. */
static void scans(const oly_array *in, oly_array *out, void *user)
{
    program *p = user;
    uint64_t before = seed;
    seed = p->seed + 1;
    oly_array xs[2], ys[2] = {0}, carry[2];
    for (int k = 0; k < p->n_x; k++) {
        int how = draw(4);
        xs[k] = how == 0   ? oly_flip(in[k], draw(2))
                : how == 1 ? oly_slice(oly_concatenate(0, in[k], in[1 - k]), "1::2")
                : how == 2 ? oly_transpose(in[2 + k])
                           : in[k];
    }
    for (int k = 0; k < p->n_carry; k++)
        carry[k] = draw(2) ? oly_full_like(oly_slice(in[0], "0"), k + 1) : oly_slice(in[1], "-1");
    seed = before;
    oly_scan(p->length, p->reverse, body, p->n_carry, carry, p->n_x, xs, p->n_y, ys, p);
    for (int k = 0; k < MOST_OUT; k++)
        out[k] = k < p->n_carry ? carry[k] : k - p->n_carry < p->n_y ? ys[k - p->n_carry] : in[0];
}

/* Rows and numbers by index. */
static void by_index(oly_array i, oly_array *carry, void *user)
{
    const program *p = user;
    uint64_t before = seed;
    seed = p->seed;
    int64_t n = p->length;
    oly_array at = draw(2) ? oly_sub(n - 1, i) : i, to = draw(2) ? oly_sub(oly_sub(n, i), 1) : i;
    oly_array row = oly_at_get(p->captured, OLY_INDEXES(at));
    oly_array number = oly_take(oly_slice(p->captured, ":, 1"), draw(2) ? at : i, 0, "fill");
    oly_array made = small(oly_add(oly_add(row, number), oly_mul(carry[0], 2)), p);
    if (draw(3) == 0)
        made = small(oly_add(made, oly_at_get(carry[1], OLY_INDEXES(i))), p);
    carry[1] = draw(4) ? oly_at_set(carry[1], OLY_INDEXES(to), draw(2) ? made : carry[0])
                       : small(oly_at_add(carry[1], OLY_INDEXES(to), made), p);
    carry[0] = draw(3) ? made : oly_at_set(made, OLY_INDEXES(oly_sub(i, 2)), number);
    seed = before;
}

static void repeated(oly_array i, oly_array *carry, void *user)
{
    program *p = user;
    oly_array out[MOST_OUT], in[4] = {carry[0], carry[1], oly_transpose(carry[1]), oly_transpose(carry[0])};
    (void)i;
    scans(in, out, user);
    for (int k = 0; k < p->n_y; k++)
        carry[k] = out[p->n_carry + k];
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    oly_array made[MOST_OUT];
    scans(in, made, user);
    out[0] = oly_scalar(0, OLY_FLOAT32);
    for (int k = 0; k < MOST_OUT; k++)
        out[0] = oly_add(out[0], oly_sum(oly_mul(made[k], k + 1)));
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    program *p = user;
    for (int k = 0; k < MOST_OUT; k++)
        out[k] = in[k % 2];
    switch (p->kind) {
    case 0:
    case 1: scans(in, out, user); break;
    case 2: oly_fori(0, 3, repeated, 2, out, user); break;
    case 3: {
        oly_array carry[2] = {oly_slice(in[1], "0"), draw(2) ? oly_zeros_like(in[0]) : in[0]};
        p->captured = in[1];
        oly_fori(0, p->length - draw(2), p->seed % 2 ? by_hand : by_index, 2, carry, user);
        out[0] = carry[0];
        out[1] = carry[1];
        break;
    }
    default: out[0] = oly_apply_n(oly_grad(oly_jit(loss, 4, 1, .user = p)), 4, in);
    }
}

/* More rows than a group can store: each of its results is a carry and rows of two stacks. */
enum { MANY = 30 };

static void many(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    oly_array twice = oly_mul(x[0], 2); /* connects them */
    for (int k = 0; k < MANY; k++)
        y[k] = y[MANY + k] = carry[k] = oly_add(carry[k], twice);
}

static void scan_many(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[MANY], xs = in[0];
    for (int k = 0; k < MANY; k++)
        carry[k] = oly_full_like(oly_slice(xs, "0"), k);
    oly_scan(oly_dim(xs, 0), false, many, MANY, carry, 1, &xs, 2 * MANY, out, user);
}

static void many_results_have_their_rows(void)
{
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 6, 16), oly_named(oly_make_mesh("x=8"), "None, x")),
              out[2 * MANY] = {0};
    oly_call_arrays(oly_jit(scan_many, 1, 2 * MANY), 1, &x, 2 * MANY, out);
    for (int k = 0; k < 2 * MANY; k++) {
        float got[6 * 16];
        assert_int_equal(oly_process_allgather(out[k], got, sizeof got), OLY_OK);
        for (int i = 0; i < 6 * 16; i++)
            assert_true(got[i] == (float)(k % MANY + 2 + 2 * (i / 16)));
    }
}

static size_t result_of(program *p, const oly_array *in, bool donates, char *bytes)
{
    oly_array out[MOST_OUT] = {0}, x = donates ? oly_mul(in[0], 1) : in[0];
    oly_fn f = oly_jit(run, 4, MOST_OUT, .user = p);
    seed = p->seed + 2;
    n_rows = n_placed = 0;
    if (donates) {
        oly_call(f, OLY_IN(x, in[1], in[2], in[3]), OLY_OUT(x, out[1], out[2], out[3]));
        out[0] = x;
    } else {
        oly_call(f, OLY_IN(x, in[1], in[2], in[3]), OLY_OUT(out[0], out[1], out[2], out[3]));
    }
    p->rows = n_rows;
    p->placed = n_placed; /* fetching makes other plans */
    return check_bytes_of(MOST_OUT, out, bytes, MOST);
}

static program drawn(void)
{
    program p = {.kind = draw(5), .n_carry = draw(3), .n_x = 1 + draw(2), .n_y = draw(3), .reverse = draw(2)};
    p.integers = draw(2) && p.kind < 4;
    p.length = 4 + draw(30);
    p.width = 8 * (1 + draw(4)) * (draw(2) ? 1 : 8) + (draw(3) == 0 ? draw(8) : 0);
    if (p.n_carry + p.n_y == 0)
        p.n_y = 1;
    if (p.kind == 2)
        p.n_y = 2;
    p.seed = (uint64_t)draw(1 << 30);
    return p;
}

static void drawn_programs_have_the_same_bits(void **state)
{
    static const char *const specs[] = {"None, None",   "x, None",      "None, y", "x, y",
                                        "(x, y), None", "None, (x, y)", "y, x"};
    static const int passes[] = {OLY_OPTIMISATION_LOOP_ROWS, OLY_OPTIMISATION_LOOPS_BY_DEVICE,
                                 OLY_OPTIMISATION_SCANNED_ARRAYS, OLY_OPTIMISATION_SQUEEZED_VIEWS, -1};
    static char with[MOST], without[MOST];
    const char *only = getenv("LOOP_ROWS");
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    int rows = 0, placed = 0;
    (void)state;
    int n = getenv("OLYMPUS_VERIFY") ? VERIFIED : PROGRAMS; /* fewer, as each takes several times as long */
    for (int k = 0; k < n; k++)
        OLY_SCOPE
        {
            seed = only ? strtoull(only, NULL, 10) : (uint64_t)k * 7 + 3;
            uint64_t own = seed;
            draw(2);
            program p = drawn();
            oly_array in[4];
            bool donates = draw(4) == 0;
            for (int j = 0; j < 4; j++) {
                int64_t a = j < 2 ? p.length : p.width, b = j < 2 ? p.width : p.length;
                oly_array x = oly_random_randint(oly_random_key(draw(1000)), OLY_INT32, -9, 9, a, b);
                const char *spec = specs[draw(7)];
                in[j] = oly_device_put(p.integers ? x : oly_astype(x, OLY_FLOAT32), oly_named(mesh, spec));
            }
            size_t size = result_of(&p, in, donates, with);
            rows += p.rows;
            placed += p.placed;
            for (int j = 0; j < (int)(sizeof passes / sizeof *passes); j++) {
                oly_optimisations off = passes[j] < 0 ? OLY_ALL_OPTIMISATIONS : (oly_optimisations)1 << passes[j];
                oly_optimisations before = oly_disable(off);
                assert_int_equal(result_of(&p, in, donates, without), size);
                oly_disable(before);
                if (memcmp(with, without, size) != 0)
                    fail_msg("program %llu differs without pass %d", (unsigned long long)own, passes[j]);
            }
            if (only)
                break;
        }
    OLY_SCOPE
    {
        many_results_have_their_rows();
    }
    if (!only && oly_facts_now()->one_memory && oly_enabled(OLY_OPTIMISATION_LOOP_ROWS)) {
        assert_true(rows > n / 2);
        assert_true(placed > n / 8);
    }
}

CHECK_MAIN_LOOKING(drawn_programs_have_the_same_bits, count);
