/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8  What is reduced and read again is computed twice where that is cheap: graphs have the copies, and drawn programs have the bits
 * that they have without. REMATERIALISED=seed: only this program. */
#include "check_steps.h"
#include "core/optimisation.h"
#include <olympus.h>
#include <string.h>

enum { PROGRAMS = 110, VERIFIED = 44, KINDS = 11, MOST = 1 << 21 };

static uint64_t seed;
static int n_nodes; /* of the largest plan since it was 0 (verified calls have a second one), in loops, too */

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static int nodes_of(const oly_graph *g)
{
    int n = g->n_nodes;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            n += nodes_of(graphs[j]);
    }
    return n;
}

static void count(oly_plan *plan)
{
    int n = nodes_of(plan->graph);
    n_nodes = n > n_nodes ? n : n_nodes;
}

typedef struct program {
    int kind, axis, op;
} program;

/* x and something repeated. */
static oly_array moved(oly_array x, oly_array y, const program *p)
{
    oly_array by = oly_mean(x, OLY_AXES(p->axis), .keepdims = true);
    switch (p->op) {
    case 0: return oly_sub(x, by);
    case 1: return oly_sub(by, x);
    case 2: return oly_mul(oly_add(by, 1), x);
    case 3: return oly_add(x, 0.5);
    default: return oly_mul(x, oly_max(y, OLY_AXES(0), .keepdims = true));
    }
}

static oly_array sum(oly_array x, const program *p)
{
    return oly_sum(x, OLY_AXES(p->axis), .keepdims = true);
}

/* All pairs of something of each row and something of each column, of which nothing is kept. */
static oly_array pairs(oly_array x, oly_array y, const program *p)
{
    oly_array u = oly_sum(x, OLY_AXES(1), .keepdims = true), v = oly_max(y, OLY_AXES(0), .keepdims = true);
    oly_array d = p->op == 0 ? oly_sub(u, v) : p->op == 1 ? oly_sub(v, u) : p->op == 2 ? oly_mul(u, v) : oly_add(u, v);
    return oly_add(sum(oly_square(d), p), sum(oly_mul(oly_exp(oly_neg(oly_square(d))), d), p));
}

static void iteration(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    oly_array d = moved(carry[0], carry[1], user);
    carry[0] = oly_mul(d, oly_rsqrt(oly_add(sum(oly_square(d), user), 1)));
}

static void norm(const oly_array *in, oly_array *out, void *user)
{
    oly_array d = moved(in[0], in[1], user);
    out[0] = oly_sum(oly_square(oly_div(d, oly_add(sum(oly_abs(d), user), 1))));
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    program *p = user;
    oly_array x = in[0], y = in[1], d = moved(x, y, p);
    switch (p->kind) {
    case 0: out[0] = oly_mul(d, oly_rsqrt(oly_add(sum(oly_square(d), p), 1))); break;
    case 1: out[0] = oly_add(d, oly_sum(oly_mul(d, y))); break; /* whole */
    case 2:
        out[0] = oly_add(oly_add(d, sum(d, p)), oly_max(oly_abs(d)));
        break; /* read by a reduction itself, and by another */
    case 3: d = moved(oly_mul(x, y), y, p), out[0] = oly_add(oly_square(d), sum(oly_abs(d), p)); break;
    case 4: d = moved(oly_sort(x, 1), y, p), out[0] = oly_mul(d, sum(oly_mul(d, d), p)); break;
    case 5:
        out[0] = in[0], out[1] = in[1];
        oly_fori(0, 3, iteration, 2, out, p);
        return;
    case 6: out[0] = oly_apply(oly_grad(oly_jit(norm, 2, 1, .user = p)), x, y); break;
    case 7: out[0] = oly_where(oly_gt(d, 0), d, oly_mul(d, sum(oly_mul(oly_exp(d), d), p))); break;
    case 8: out[0] = oly_add(oly_flip(d, 1), sum(oly_square(d), p)); break;
    case 9: out[0] = oly_add(x, pairs(x, y, p)); break;
    default: out[0] = oly_div(d, sum(oly_astype(oly_gt(d, 0), OLY_FLOAT32), p)); break; /* NaN and infinities */
    }
    out[1] = y;
}

static int result_of(program *p, oly_array x, oly_array y, bool donates, char *bytes)
{
    oly_array out = NULL, other = NULL;
    if (donates)
        x = oly_mul(x, 1);
    oly_fn f = oly_jit(run, 2, 2, .user = p);
    n_nodes = 0;
    if (donates) {
        oly_call(f, OLY_IN(x, y), OLY_OUT(x, other));
        out = x;
    } else {
        oly_call(f, OLY_IN(x, y), OLY_OUT(out, other));
    }
    int nodes = n_nodes; /* of this plan: fetching makes others */
    size_t size = (size_t)oly_size(out) * oly_dtype_size(oly_dtype_of(out));
    assert_true(size <= MOST);
    assert_int_equal(oly_process_allgather(out, bytes, size), OLY_OK);
    return nodes;
}

static void drawn_programs_have_the_same_bits(void **state)
{
    static const char *const specs[] = {"None, None", "x, None", "None, y", "x, y", "(x, y), None", "None, (x, y)"};
    static char with[MOST], without[MOST];
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_REMATERIALISATION;
    const char *only = getenv("REMATERIALISED");
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    int of_kind[KINDS] = {0};
    (void)state;
    int n = getenv("OLYMPUS_VERIFY") ? VERIFIED : PROGRAMS; /* four of each kind, as they take ten times as long */
    for (int k = 0; k < n; k++)
        OLY_SCOPE
        {
            seed = only ? strtoull(only, NULL, 10) : (uint64_t)k;
            program p = {(int)(seed % KINDS), 0, 0};
            draw(2);
            p.axis = draw(2);
            p.op = draw(5);
            int64_t a = 256 + draw(3) * 128, b = 256 + draw(3) * 64 + draw(2) * 3;
            oly_sharding s = oly_named(mesh, specs[b % 8 == 0 ? draw(6) : draw(2)]);
            bool donates = draw(3) == 0;
            oly_array x = oly_device_put(oly_random_normal(oly_random_key(draw(1000)), OLY_FLOAT32, a, b), s);
            oly_array y = oly_device_put(oly_random_normal(oly_random_key(draw(1000)), OLY_FLOAT32, a, b), s);
            int copies = result_of(&p, x, y, donates, with);
            oly_optimisations before = oly_disable(one);
            copies -= result_of(&p, x, y, donates, without);
            oly_disable(before);
            of_kind[p.kind] += copies;
            if (memcmp(with, without, (size_t)(a * b) * 4) != 0)
                fail_msg("REMATERIALISED=%d: kind %d, axis %d, operation %d, [%d, %d]: other bits", k, p.kind, p.axis,
                         p.op, (int)a, (int)b);
        }
    for (int k = 0; k < KINDS && !only; k++) {
        if (oly_process_index() == 0)
            printf("kind %d: %d copies\n", k, of_kind[k]);
        assert_true(of_kind[k] > 0);
    }
}

CHECK_MAIN_LOOKING(drawn_programs_have_the_same_bits, count);
