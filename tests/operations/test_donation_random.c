/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Donation in random functions: each result combines two operands, which may be the same, converted,
 * reshaped, transposed, and replaces an operand of any type, or none. Whatever is overwritten, the bits are those of
 * the call without donation. */
#include "check.h"
#include "check_session.h"
#include <olympus.h>
#include <string.h>

enum { OPERANDS = 3, ELEMENTS = 64, PROGRAMS = 60 };

typedef struct recipe {
    int left, right, operation, turn;
    bool cut; /* without the first row */
    oly_dtype dtype;
    int shape;
} recipe;

static uint64_t random_state;

static int below(int n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_INT32, OLY_INT16, OLY_INT8, OLY_FLOAT64, OLY_INT64};
static const int64_t shapes[][2] = {{8, 8}, {16, 4}, {64, 1}};

static oly_array shaped(oly_array x, const recipe *r, bool turned)
{
    oly_array y = oly_reshape(oly_astype(x, r->dtype), shapes[r->shape][0], shapes[r->shape][1]);
    if (r->cut)
        return oly_slice(y, "1:");
    switch (turned ? r->turn : 0) {
    case 1: return oly_flip(y, 0);
    case 2: return oly_roll(y, 3, 0);
    case 3: return oly_reshape(oly_transpose(y), shapes[r->shape][0], shapes[r->shape][1]);
    default: return y;
    }
}

static void combine_operands(const oly_array *in, oly_array *out, void *user)
{
    const recipe *all = user;
    for (int k = 0; k < OPERANDS; k++) {
        oly_array left = shaped(in[all[k].left], &all[k], false), right = shaped(in[all[k].right], &all[k], true);
        out[k] = all[k].operation == 0   ? oly_add(left, right)
                 : all[k].operation == 1 ? oly_sub(left, right)
                                         : oly_mul(left, right);
    }
}

static oly_array operand(int number, oly_mesh mesh)
{
    int shape = below(3);
    oly_array x =
        oly_reshape(oly_add(oly_arange(ELEMENTS, OLY_INT32), 5 * number - 40), shapes[shape][0], shapes[shape][1]);
    return oly_device_put(oly_astype(x, dtypes[below(6)]), oly_named(mesh, below(4) ? "x" : ""));
}

static void results_are_those_without_donation(void **state)
{
    (void)state;
    oly_enable_x64(true);
    oly_mesh mesh = oly_make_mesh("x=8");
    random_state = 20;
    for (int program = 0; program < PROGRAMS; program++)
        OLY_SCOPE
        {
            recipe recipes[OPERANDS];
            oly_array in[OPERANDS], wanted[OPERANDS] = {NULL}, got[OPERANDS] = {NULL};
            char wanted_bytes[OPERANDS][8 * ELEMENTS], bytes[8 * ELEMENTS];
            for (int k = 0; k < OPERANDS; k++) {
                in[k] = operand(k, mesh);
                recipes[k] = (recipe){below(OPERANDS), below(OPERANDS),  below(3), below(6),
                                      below(4) == 0,   dtypes[below(6)], below(3)};
            }
            oly_fn f = oly_jit(combine_operands, OPERANDS, OPERANDS, .user = recipes);
            if (below(4) == 0)
                in[1] = in[0]; /* passed twice */
            oly_call_arrays(f, OPERANDS, in, OPERANDS, wanted);
            for (int k = 0; k < OPERANDS; k++) {
                assert_int_equal(oly_process_allgather(wanted[k], wanted_bytes[k], sizeof wanted_bytes[k]), OLY_OK);
                got[k] = below(3) ? in[below(OPERANDS)] : NULL;
                for (int j = 0; j < k; j++)
                    if (got[j] == got[k])
                        got[k] = NULL;
            }
            oly_call_arrays(f, OPERANDS, in, OPERANDS, got);
            for (int k = 0; k < OPERANDS; k++) {
                memset(bytes, 0, sizeof bytes);
                assert_int_equal(oly_process_allgather(got[k], bytes, sizeof bytes), OLY_OK);
                size_t size = (size_t)oly_size(got[k]) * oly_dtype_size(oly_dtype_of(got[k]));
                if (memcmp(bytes, wanted_bytes[k], size) != 0)
                    fail_msg("result %d of program %d", k, program);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_are_those_without_donation, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
