/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8  Slices with computed starts and lookups in arrays that are split: where devices read each other's memory nothing is reduced. Drawn programs
 * have the bits that they have where devices do not, and, if they add nothing up, when the array is gathered first. SLICES=seed: only this program. */
#include "check_steps.h"
#include "core/facts.h"
#include "core/optimisation.h"
#include <math.h>
#include <olympus.h>
#include <string.h>

/* All kinds, followed by all operations, twice; once where plans are verified, which takes five times as long. */
enum { PROGRAMS = 160, VERIFIED = 80, MOST = 1 << 23 };

static uint64_t seed;
static int n_slices; /* steps of the plans made since it was 0 */

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static bool reads_part(const oly_step *s)
{
    return s->kind == OLY_STEP_LOCAL && s->local.device[0].in && s->local.device[0].task.keeps;
}

static void count(oly_plan *plan)
{
    n_slices += check_count_steps(plan, reads_part);
}

enum { KINDS = 10 };
typedef struct program {
    int kind, mode, after; /* after: what is computed from it; 0: nothing */
    int64_t size[3];
} program;

/* n whole numbers, some of them outside [0, size). */
static oly_array indexes(oly_array start, int64_t n, int64_t size)
{
    oly_array k = oly_mod(oly_mul(oly_add(oly_arange(n, OLY_INT32), start), 7919), size + 6);
    return oly_sub(k, 3);
}

static oly_array look_up(oly_array x, oly_array start, const program *p)
{
    static const char *const modes[] = {NULL, "clip", "wrap"};
    int64_t many = 150000;
    switch (p->kind) {
    case 6: return oly_take(x, indexes(start, 700, oly_dim(x, 0)), 0, modes[p->mode]);
    case 7: x = oly_transpose(x, 1, 0, 2); return oly_take(x, indexes(start, 700, oly_dim(x, 1)), 1, modes[p->mode]);
    case 8: {
        oly_array i = indexes(start, 700 * oly_dim(x, 1) * oly_dim(x, 2), oly_dim(x, 0));
        return oly_take_along_axis(x, oly_reshape(i, 700, oly_dim(x, 1), oly_dim(x, 2)), 0, modes[p->mode]);
    }
    default:
        return oly_at_get(x, OLY_INDEXES(indexes(start, many, oly_dim(x, 0)),
                                         indexes(oly_mul(start, 3), many, oly_dim(x, 1)),
                                         indexes(oly_add(start, 1), many, oly_dim(x, 2))));
    }
}

static oly_array cut(oly_array x, oly_array start, const program *p)
{
    oly_operand starts[] = {OLY_ARG(start), OLY_ARG(oly_mul(start, 2)), OLY_ARG(oly_sub(start, 7))};
    return oly_dynamic_slice(x, 3, starts, 3, p->size);
}

static void one_of_batch(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_operand starts[] = {OLY_ARG(in[1]), OLY_ARG(oly_sub(in[1], 3))};
    out[0] = oly_dynamic_slice(in[0], 2, starts, 2, p->size + 1);
}

static void iteration(oly_array i, oly_array *carry, void *user)
{
    carry[1] = oly_add(oly_mul(carry[1], 0.5), cut(carry[0], oly_mul(i, 3), user));
    carry[0] = oly_add(carry[0], oly_astype(i, OLY_FLOAT32));
}

static void take(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array x = in[0], start = in[1];
    switch (p->kind) {
    case 0: out[0] = cut(x, start, p); break;
    case 1: out[0] = oly_add(oly_mul(cut(oly_mul(x, 2), start, p), 3), 1); break;
    case 2: out[0] = oly_add(cut(x, start, p), cut(oly_neg(x), oly_add(start, 5), p)); break;
    case 3: {
        oly_array carry[] = {x, oly_zeros(OLY_FLOAT32, p->size[0], p->size[1], p->size[2])};
        oly_fori(0, 4, iteration, 2, carry, user);
        out[0] = carry[1];
        break;
    }
    case 4: out[0] = oly_transpose(cut(oly_transpose(x, 2, 1, 0), start, p), 2, 1, 0); break;
    case 5: { /* of each batch */
        oly_array starts = oly_mul(oly_arange(oly_dim(x, 0), OLY_INT32), start);
        oly_vmap(one_of_batch, user, 2, (oly_array[]){x, starts}, (int[]){0, 0}, 1, (oly_array *[]){&out[0]},
                 (int[]){0});
        break;
    }
    default: out[0] = oly_add(look_up(x, start, p), 1); break;
    }
}

/* Sums over devices are added in the order of the mesh, wherever the parts are. */
static void run(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    take(in, out, user);
    switch (p->after) {
    case 1: out[0] = oly_sum(out[0]); break;
    case 2: out[0] = oly_sum(oly_mul(out[0], 2.5), OLY_AXES(0)); break;
    case 3: out[0] = oly_tensordot(out[0], out[0], oly_rank(out[0])); break;
    case 4: out[0] = oly_add(oly_mean(out[0], OLY_AXES(-1), .keepdims = true), out[0]); break;
    default: break;
    }
}

static size_t result_of(program *p, oly_array x, oly_array start, char *bytes)
{
    oly_array out = NULL;
    n_slices = 0;
    oly_call(oly_jit(run, 2, 1, .user = p), OLY_IN(x, start), OLY_OUT(out));
    size_t size = (size_t)oly_size(out) * oly_dtype_size(oly_dtype_of(out));
    assert_true(size <= MOST);
    int slices = n_slices; /* fetching makes plans, too */
    assert_int_equal(oly_process_allgather(out, bytes, size), OLY_OK);
    n_slices = slices;
    return size;
}

static void say(bool as_wanted, const char *with, int k, const program *p, const char *spec, const int64_t *shape)
{
    if (!as_wanted)
        fail_msg("SLICES=%d: kind %d, then %d, %s, [%d, %d, %d] of [%d, %d, %d]: other bits than %s", k, p->kind,
                 p->after, spec, (int)p->size[0], (int)p->size[1], (int)p->size[2], (int)shape[0], (int)shape[1],
                 (int)shape[2], with);
}

static void drawn_slices_have_the_same_bits(void **state)
{
    static const char *const specs[] = {"x, None, None", "None, y, None", "None, None, x",
                                        "x, y, None",    "None, x, y",    "None, (x, y), None"};
    static char direct[MOST], other[MOST];
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_PARTIAL_RESULTS;
    const char *only = getenv("SLICES");
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    const oly_facts near = *oly_facts_now();
    oly_facts apart = near;
    int total = 0;
    apart.one_memory = 0;
    (void)state;
    int end = getenv("OLYMPUS_VERIFY") ? VERIFIED : PROGRAMS;
    for (int k = only ? atoi(only) : 0; k < (only ? atoi(only) + 1 : end); k++)
        OLY_SCOPE
        {
            seed = (uint64_t)k;
            program p = {.kind = k % KINDS, .after = k / KINDS % 2 * (1 + k / KINDS / 2 % 4)};
            draw(2);
            p.mode = draw(3);
            int64_t shape[] = {64 + 8 * draw(3), 64 + 8 * draw(2) + draw(2), 64 + draw(2) * 16 + draw(2) * 3};
            for (int d = 0; d < 3; d++)
                p.size[d] = 64 - draw(3) * draw(16); /* of any dimension, as they are transposed */
            if (p.kind >= 6)
                shape[0] = 2048, shape[1] = 16, shape[2] = 12 + draw(2) * 4;
            const char *spec = specs[draw(6)];
            if (shape[1] % 8 || shape[2] % 4)
                spec = "x, None, None";
            oly_array x = oly_random_normal(oly_random_key(draw(1000)), OLY_FLOAT32, shape[0], shape[1], shape[2]);
            x = oly_where(oly_gt(x, 1), -0.0, x);
            if (p.after == 0)
                x = oly_where(oly_lt(x, -2), (double)NAN, x);
            if (p.after > 0)
                p.mode = 1; /* no NaN from outside */
            x = oly_device_put(x, oly_named(mesh, spec));
            oly_array start = oly_scalar(draw(60) - 20, OLY_INT32);
            size_t size = result_of(&p, x, start, direct);
            total += n_slices;
            oly_facts_use(&apart);
            size_t same = result_of(&p, x, start, other);
            oly_facts_use(&near);
            say(size == same && n_slices == 0 && memcmp(direct, other, size) == 0, "where memory is apart", k, &p, spec,
                shape);
            oly_optimisations before = oly_disable(one);
            same = result_of(&p, x, start, other);
            oly_disable(before);
            say(p.after > 0 || (size == same && memcmp(direct, other, size) == 0), "of a gathered array", k, &p, spec,
                shape);
        }
    if (oly_process_index() == 0)
        printf("%d steps read the parts of other devices\n", total);
    if (!only)
        assert_true(oly_process_count() > 1 ? total == 0 : total > end / 2);
}

CHECK_MAIN_LOOKING(drawn_slices_have_the_same_bits, count);
