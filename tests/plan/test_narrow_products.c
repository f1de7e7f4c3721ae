/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4,8 devices=8  Products that read bytes or bfloat16 instead of converted copies: plans have them, and random programs have the values that they have when
 * the operands are converted first, with and without the matrix registers. So have those whose results are bfloat16. BYTES_SEED=n: of the first program. */
#include "check_steps.h"
#include "core/optimisation.h"
#include <olympus.h>
#include <string.h>

enum { PROGRAMS = 312, KINDS = 13, MOST = 1 << 19 };

static uint64_t seed;
static int n_fused; /* in the plans made since it was set to 0 */

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static bool is_fused(const oly_step *s)
{
    return s->kind == OLY_STEP_GEMM && s->gemm.converted[0];
}

static void count(oly_plan *plan)
{
    n_fused += check_count_steps(plan, is_fused);
}

/* Of the sums. */
static oly_dtype wide(oly_array x)
{
    return oly_dtype_of(x) == OLY_BFLOAT16 ? OLY_FLOAT32 : OLY_INT32;
}

#define PRODUCT(x, y) oly_matmul(x, y, .preferred_element_type = wide(x))

/* The conversions are invariant, but what is multiplied in the second product is not. */
static void iteration(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_add(carry[0], PRODUCT(carry[1], carry[2]));
    carry[1] = oly_astype(oly_add(oly_astype(carry[1], wide(carry[1])), 3), oly_dtype_of(carry[1]));
}

static void loop(const oly_array *in, oly_array *out)
{
    oly_array state[3] = {PRODUCT(in[0], in[1]), in[0], in[1]};
    oly_fori(0, 3, iteration, 3, state, NULL);
    out[0] = state[0];
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const int *kind = user;
    oly_array x = in[0], y = in[1];
    switch (*kind) {
    case 0: out[0] = PRODUCT(x, y); break;
    case 1: out[0] = PRODUCT(x, oly_transpose(x)); break;
    case 2: { /* another reader: the copies are needed */
        oly_array copy = oly_astype(x, wide(x));
        out[0] = oly_add(oly_matmul(copy, oly_astype(y, wide(y))), oly_sum(copy));
        break;
    }
    case 3: out[0] = PRODUCT(oly_flip(x, 0), oly_flip(y, 1)); break;
    case 4: loop(in, out); break;
    case 5: out[0] = PRODUCT(oly_slice(x, "1:, :"), oly_slice(y, ":, 1:")); break;
    case 6: out[0] = oly_einsum("ik,kj->ji", oly_astype(x, wide(x)), oly_astype(y, wide(y))); break;
    case 7: { /* converted to other types */
        static const oly_dtype types[] = {OLY_INT16, OLY_UINT32, OLY_INT64, OLY_FLOAT32};
        oly_dtype type = types[(oly_dim(x, 0) + oly_dim(y, 1)) % 4];
        out[0] = oly_matmul(oly_astype(x, type), oly_astype(y, type));
        break;
    }
    case 8:
        out[0] = oly_matmul(x, y);
        break; /* narrow results */
    /* read before a transpose, with other strides */
    case 9: out[0] = PRODUCT(oly_transpose(y), oly_transpose(x)); break;
    case 10: out[0] = PRODUCT(oly_transpose(oly_slice(y, ":, 1:")), oly_transpose(oly_flip(x, 0))); break;
    case 11: {
        oly_array three = oly_astype(oly_broadcast_to(x, 3, oly_dim(x, 0), oly_dim(x, 1)), wide(x));
        out[0] = oly_einsum("gik,kj->jgi", three, oly_astype(y, wide(y)));
        break;
    }
    default: out[0] = oly_sum(PRODUCT(oly_reshape(x, 1, oly_dim(x, 0), oly_dim(x, 1)), y), OLY_AXES(0)); break;
    }
}

static size_t result_of(int *kind, const oly_array *in, char *bytes, int *fused, oly_optimisations off)
{
    oly_array out = NULL;
    oly_optimisations before = oly_disable(off);
    n_fused = 0;
    oly_call(oly_jit(run, 2, 1, .user = kind), OLY_IN(in[0], in[1]), OLY_OUT(out));
    *fused = n_fused;
    oly_disable(before);
    size_t size = (size_t)oly_size(out) * oly_dtype_size(oly_dtype_of(out));
    assert_true(size <= MOST);
    assert_int_equal(oly_process_allgather(out, bytes, size), OLY_OK);
    return size;
}

/* Sums of bfloat16 are exact. */
static oly_array drawn(bool bytes, int64_t rows, int64_t columns, oly_sharding s)
{
    const int least = bytes ? -128 : -8, end = bytes ? 256 : 9;
    oly_array any = oly_random_randint(oly_random_key(draw(1000)), OLY_INT32, least, end, rows, columns);
    return oly_device_put(oly_astype(any, !bytes ? OLY_BFLOAT16 : draw(2) ? OLY_INT8 : OLY_UINT8), s);
}

static void random_programs_have_the_same_values(void **state)
{
    static const char *const specs[] = {"None, None", "x, None", "None, y", "x, y", "(x, y), None", "None, (x, y)"};
    static const int lengths[] = {1, 2, 3, 8, 16, 40, 65, 130, 300};
    static char fused[MOST], quads[MOST], separate[MOST];
    const oly_optimisations all = (oly_optimisations)1 << OLY_OPTIMISATION_BYTE_PRODUCTS;
    const oly_optimisations matrices = (oly_optimisations)1 << OLY_OPTIMISATION_MATRIX_REGISTERS;
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    int of_kind[2][KINDS] = {{0}};
    const char *first = getenv("BYTES_SEED");
    (void)state;
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            seed = (first ? strtoull(first, NULL, 10) : 1) + (uint64_t)k;
            draw(2);
            const bool bytes = k / KINDS % 2;
            int kind = k % KINDS, n, same, none;
            int64_t a = lengths[1 + draw(8)], b = lengths[draw(9)], c = lengths[1 + draw(8)];
            oly_array in[] = {drawn(bytes, a, b, oly_named(mesh, specs[draw(6)])),
                              drawn(bytes, b, c, oly_named(mesh, specs[draw(6)]))};
            size_t size = result_of(&kind, in, fused, &n, 0);
            size_t size_of_quads = result_of(&kind, in, quads, &same, matrices);
            size_t size_of_separate = result_of(&kind, in, separate, &none, all);
            of_kind[bytes][kind] += n;
            if (none || n != same || size != size_of_quads || size != size_of_separate ||
                memcmp(fused, separate, size) != 0 || memcmp(quads, separate, size) != 0)
                fail_msg("BYTES_SEED=%llu: %s, kind %d, [%d, %d, %d]: %d fused, without the pass %d, other values",
                         (unsigned long long)(first ? strtoull(first, NULL, 10) : 1) + (unsigned long long)k,
                         bytes ? "bytes" : "bfloat16", kind, (int)a, (int)b, (int)c, n, none);
        }
    for (int t = 0; t < 2; t++) {
        for (int k = 0; k < KINDS; k++)
            if (oly_process_index() == 0)
                printf("%s, kind %d: %d fused\n", t ? "bytes" : "bfloat16", k, of_kind[t][k]);
        assert_true(of_kind[t][0] > 0 && of_kind[t][4] > 0 && of_kind[t][6] > 0);
        assert_true(t || of_kind[t][9] > 0);
        assert_int_equal(of_kind[t][2], 0);
    }
}

CHECK_MAIN_LOOKING(random_programs_have_the_same_values, count);
