/* run: ranks=1 devices=8.  A donated array is updated in place, and touching it afterwards is an error. */
#include "check.h"
#include "check_session.h"
#include "core/error.h"
#include <math.h>
#include <olympus.h>
#include <string.h>

static void sine(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(in[0]);
}

static void reversed_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user; /* reads elements that other devices hold: the old value is needed while the new one is written */
    out[0] = oly_add(in[0], oly_concatenate(0, oly_slice(in[0], "50:"), oly_slice(in[0], ":50")));
}

static oly_array ramp(void)
{
    return oly_device_put(oly_arange(100, OLY_FLOAT32), oly_named(oly_make_mesh("x=8"), "x"));
}

static const void *memory_of(oly_array x)
{
    const void *memory = NULL;
    OLY_SCOPE
    {
        memory = oly_get_shard(x, 3).memory;
    }
    return memory;
}

static void the_result_is_written_over_the_donated_array(void **state)
{
    (void)state;
    oly_array x = ramp();
    oly_fn f = oly_jit(sine, 1, 1);
    const void *before = memory_of(x);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    assert_ptr_equal(memory_of(x), before);
    oly_array y = NULL;
    oly_call(f, OLY_IN(x), OLY_OUT(y));
    assert_ptr_not_equal(memory_of(y), before);
}

static void data_that_others_hold_is_not_overwritten(void **state)
{
    (void)state;
    oly_array x = ramp(), other = oly_device_put(x, NULL);
    oly_fn f = oly_jit(sine, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    assert_float_equal(oly_item(oly_sum(other)), 4950, 0);
}

/* An array put together from parts shares their memory; donated, it leaves them as they are. */
static void parts_of_an_array_are_shared(void **state)
{
    (void)state;
    oly_array parts[8], whole;
    for (int k = 0; k < 8; k++) /* from the last device to the first */
        parts[k] = oly_device_put(oly_full(7 - k, OLY_FLOAT32, 1), oly_single_device(oly_local_device(7 - k)));
    whole = oly_from_shards(oly_named(oly_make_mesh("x=8"), "x"), OLY_FLOAT32, 1, (int64_t[]){8}, 8, parts);
    for (int k = 0; k < 8; k++)
        assert_ptr_equal(oly_get_shard(whole, k).memory, oly_get_shard(parts[7 - k], 0).memory);
    float values[8];
    oly_call(oly_jit(sine, 1, 1), OLY_IN(whole), OLY_OUT(whole));
    assert_int_equal(oly_get(whole, values, sizeof values), OLY_OK);
    for (int k = 0; k < 8; k++) {
        assert_float_equal(oly_item(parts[k]), 7 - k, 0);
        assert_float_equal(values[k], sinf((float)k), 1e-6);
        oly_free(parts[k]);
    }
}

static void a_plan_that_still_reads_keeps_the_old_value(void **state)
{
    (void)state;
    float values[100];
    oly_array x = ramp();
    oly_fn f = oly_jit(reversed_sum, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    assert_int_equal(oly_get(x, values, sizeof values), OLY_OK);
    for (int k = 0; k < 100; k++)
        assert_float_equal(values[k], k + (k + 50) % 100, 0);
}

static void a_dead_handle_is_an_error(void **state)
{
    (void)state;
    oly_array x = ramp(), old = x;
    oly_fn f = oly_jit(sine, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_null(oly_add(old, 1));
    assert_int_equal(oly_last_status(), OLY_DELETED);
    assert_non_null(strstr(oly_last_error(), "array has been deleted with shape=float32[100]"));
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

/* Replaying takes no memory from the system: not for buffers, and not for the results' handles. */
static void replayed_calls_allocate_nothing(void **state)
{
    (void)state;
    oly_array x = ramp();
    oly_fn f = oly_jit(sine, 1, 1);
    for (int k = 0; k < 600; k++) { /* as many handles as are kept after their death, and more */
        oly_call(f, OLY_IN(x), OLY_OUT(x));
        oly_block_until_ready(x);
    }
    oly_fail_allocation(0); /* the next one */
    for (int k = 0; k < 100; k++) {
        oly_call(f, OLY_IN(x), OLY_OUT(x));
        oly_block_until_ready(x);
    }
    oly_fail_allocation(-1);
    assert_int_equal(oly_last_status(), OLY_OK);
}

/* -- random functions ----------------------------------------------------------------------------------------------------------
 * Each result combines two operands, which may be the same, converted, reshaped, turned; each takes the place of an operand of any
 * type, or of none. Whatever is written over what, the bits are those of the call that donates nothing. */

enum { OPERANDS = 3, ELEMENTS = 64, PROGRAMS = 300 };

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
                in[1] = in[0]; /* given twice */
            oly_call_arrays(f, OPERANDS, in, OPERANDS, wanted);
            for (int k = 0; k < OPERANDS; k++) {
                assert_int_equal(oly_get(wanted[k], wanted_bytes[k], sizeof wanted_bytes[k]), OLY_OK);
                got[k] = below(3) ? in[below(OPERANDS)] : NULL;
                for (int j = 0; j < k; j++)
                    if (got[j] == got[k])
                        got[k] = NULL;
            }
            oly_call_arrays(f, OPERANDS, in, OPERANDS, got);
            for (int k = 0; k < OPERANDS; k++) {
                memset(bytes, 0, sizeof bytes);
                assert_int_equal(oly_get(got[k], bytes, sizeof bytes), OLY_OK);
                size_t size = (size_t)oly_size(got[k]) * oly_dtype_size(oly_dtype_of(got[k]));
                if (memcmp(bytes, wanted_bytes[k], size) != 0)
                    fail_msg("result %d of program %d", k, program);
            }
        }
}

static void narrower(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_astype(oly_add(in[0], 1), OLY_FLOAT32);
}

static void later_part(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_slice(in[0], "4096:"), -4095);
}

/* A result that is smaller fits into its operand, but threads that write it would overtake those that read. */
static void smaller_results_take_no_place(void **state)
{
    (void)state;
    enum { MANY = 1 << 19 };
    oly_enable_x64(true);
    oly_sharding one = oly_single_device(oly_local_device(0));
    oly_fn f = oly_jit(narrower, 1, 1), g = oly_jit(later_part, 1, 1);
    for (int k = 0; k < 10; k++)
        OLY_SCOPE
        {
            oly_array x = oly_device_put(oly_arange(MANY, OLY_FLOAT64), one), y = oly_mul(x, 1);
            oly_call(f, OLY_IN(x), OLY_OUT(x));
            oly_call(g, OLY_IN(y), OLY_OUT(y));
            oly_array ramp = oly_add(oly_device_put(oly_arange(MANY, OLY_FLOAT64), one), 1);
            assert_true(oly_item(oly_all(oly_eq(x, ramp))) == 1);
            assert_true(oly_item(oly_all(oly_eq(y, oly_slice(ramp, ":-4096")))) == 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_result_is_written_over_the_donated_array, check_open, check_close),
        cmocka_unit_test_setup_teardown(data_that_others_hold_is_not_overwritten, check_open, check_close),
        cmocka_unit_test_setup_teardown(parts_of_an_array_are_shared, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_plan_that_still_reads_keeps_the_old_value, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_dead_handle_is_an_error, check_open, check_close),
        cmocka_unit_test_setup_teardown(replayed_calls_allocate_nothing, check_open, check_close),
        cmocka_unit_test_setup_teardown(results_are_those_without_donation, check_open, check_close),
        cmocka_unit_test_setup_teardown(smaller_results_take_no_place, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
