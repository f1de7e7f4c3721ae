/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4,8 devices=8  Reductions that compute their operand: plans have them, and random programs have the bits that they have when the operand is written to
 * memory first. FUSED_SEED=n: of the first program. */
#include "check_steps.h"
#include "core/optimisation.h"
#include <olympus.h>
#include <string.h>

enum { PROGRAMS = 66, KINDS = 11, MOST = 1 << 17 };

static uint64_t seed;
static int n_fused; /* in the plans made since it was set to 0 */

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static bool is_fused(const oly_step *s)
{
    return s->kind == OLY_STEP_REDUCE && s->reduce.operand;
}

static void count(oly_plan *plan)
{
    n_fused += check_count_steps(plan, is_fused);
}

typedef struct program {
    int kind, axis; /* axis -1: all */
} program;

static oly_array sum_of(oly_array x, const program *p)
{
    return p->axis < 0 ? oly_sum(x) : oly_sum(x, OLY_AXES(p->axis));
}

/* Two results of one group, one of which is reduced; the sums are carried. */
static void iteration(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_sub(carry[0], oly_mul(carry[1], 0.25));
    carry[1] = oly_mul(carry[1], 0.5);
    carry[2] = oly_sum(oly_mul(carry[0], carry[0]));
}

static void loop(const oly_array *in, oly_array *out)
{
    oly_array state[3] = {in[0], in[1], oly_sum(in[0])};
    oly_fori(0, 5, iteration, 3, state, NULL);
    out[0] = oly_add(state[2], oly_sum(state[0]));
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array x = in[0], y = in[1];
    switch (p->kind) {
    case 0: out[0] = sum_of(oly_mul(x, y), p); break;
    case 1: out[0] = p->axis < 0 ? oly_var(x) : oly_var(x, OLY_AXES(p->axis)); break;
    case 2: out[0] = p->axis < 0 ? oly_logsumexp(x) : oly_logsumexp(x, OLY_AXES(p->axis)); break;
    case 3: out[0] = oly_max(oly_sub(x, oly_sum(sum_of(oly_abs(y), p)))); break;
    case 4: out[0] = sum_of(oly_astype(oly_gt(x, y), OLY_INT32), p); break;
    case 5: out[0] = sum_of(oly_add(oly_mul(x, 2), oly_flip(y, 0)), p); break;
    case 6: loop(in, out); break;
    case 7: out[0] = oly_any(oly_gt(oly_mul(x, y), 1), OLY_AXES(0)); break;
    case 8: out[0] = oly_sum(oly_astype(oly_exp(x), OLY_BFLOAT16), OLY_AXES(0)); break;
    case 10: /* in reverse, so that results in the memory of what is read would be noticed */
        out[0] = oly_sum(oly_mul(oly_flip(oly_sort(x, 1), 1), y), OLY_AXES(0));
        break;
    default: out[0] = oly_min(oly_mul(oly_transpose(x), 3), OLY_AXES(0)); break;
    }
}

static size_t result_of(program *p, const oly_array *in, char *bytes, int *fused)
{
    oly_array out = NULL;
    n_fused = 0;
    oly_call(oly_jit(run, 2, 1, .user = p), OLY_IN(in[0], in[1]), OLY_OUT(out));
    *fused = n_fused;
    size_t size = (size_t)oly_size(out) * oly_dtype_size(oly_dtype_of(out));
    assert_true(size <= MOST);
    assert_int_equal(oly_process_allgather(out, bytes, size), OLY_OK);
    return size;
}

static oly_array drawn(int64_t a, int64_t b, int64_t c, oly_sharding s)
{
    return oly_device_put(oly_random_normal(oly_random_key(draw(1000)), OLY_FLOAT32, a, b, c), s);
}

/* The group also stores what only one process reads: elsewhere no other value may have that memory before the reduction has run. */
static void sum_and_part(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_update(in[0], "0:4", 1), y = oly_astype(x, OLY_INT32);
    oly_array sum = oly_sum(oly_add(y, -3)), more = oly_add(x, 1);
    oly_array lines = oly_astype(oly_broadcast_to(oly_slice(more, "0:2"), 3, 2), OLY_INT32);
    oly_array places = oly_broadcast_to(oly_stack(0, oly_slice(y, "6"), sum), 3, 2);
    out[0] = oly_at_add(oly_zeros(OLY_INT32, 4), OLY_INDEXES(places), lines, .mode = "clip");
}

static void parts_keep_their_memory(void)
{
    const float numbers[7] = {0, 2, 4, 1, 3, 0, 2};
    int got[4];
    oly_array x =
        oly_device_put(oly_from_host(numbers, OLY_FLOAT32, 1, (int64_t[]){7}), oly_named(oly_make_mesh("x=8"), "x"));
    oly_array out = oly_apply(oly_jit(sum_and_part, 1, 1), x);
    assert_int_equal(oly_process_allgather(out, got, sizeof got), OLY_OK);
    assert_true(got[0] == 6 && got[1] == 0 && got[2] == 6 && got[3] == 0);
}

static void random_programs_have_the_same_bits(void **state)
{
    static const char *const specs[] = {"None, None, None", "x, None, None", "None, None, y",
                                        "x, y, None",       "None, x, y",    "None, None, (x, y)"};
    static const int lengths[] = {1, 2, 3, 8, 16, 40, 65, 130};
    static char fused[MOST], separate[MOST];
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_FUSED_REDUCTIONS;
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    int of_kind[KINDS] = {0};
    const char *first = getenv("FUSED_SEED");
    (void)state;
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            seed = (first ? strtoull(first, NULL, 10) : 1) + (uint64_t)k;
            draw(2);
            program p = {k % KINDS, draw(4) - 1};
            int64_t a = lengths[draw(8)], b = lengths[draw(8)], c = lengths[draw(8)];
            oly_sharding s = oly_named(mesh, specs[draw(6)]);
            oly_array in[] = {drawn(a, b, c, s), drawn(a, b, c, s)};
            int n, none;
            size_t size = result_of(&p, in, fused, &n);
            oly_optimisations before = oly_disable(one);
            size_t same = result_of(&p, in, separate, &none);
            oly_disable(before);
            of_kind[p.kind] += n;
            if (none || size != same || memcmp(fused, separate, size) != 0)
                fail_msg("FUSED_SEED=%llu: kind %d, axis %d, [%d, %d, %d]: %d fused, without the pass %d, other bits",
                         (unsigned long long)(first ? strtoull(first, NULL, 10) : 1) + (unsigned long long)k, p.kind,
                         p.axis, (int)a, (int)b, (int)c, n, none);
        }
    for (int k = 0; k < KINDS; k++)
        if (oly_process_index() == 0)
            printf("kind %d: %d fused\n", k, of_kind[k]);
    assert_true(of_kind[0] > 0 && of_kind[1] > 0 && of_kind[2] > 0 && of_kind[6] > 0 && of_kind[10] > 0);
    OLY_SCOPE
    {
        parts_keep_their_memory();
    }
}

CHECK_MAIN_LOOKING(random_programs_have_the_same_bits, count);
