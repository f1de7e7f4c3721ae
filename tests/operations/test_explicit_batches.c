/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  oly_vmap over batches that Explicit axes split: types keep these axes, as in JAX, and values are those of a
 * batch that is not split. */
#include "check_explicit.h"

/* -- every program on a split batch and on one that is not ------------------------------------------------------------------- */

typedef struct batch {
    oly_function function;
    oly_array x, shared; /* shared by all elements; NULL: none */
    int in, out;         /* the dimension that is the batch */
} batch;

static oly_array map(const batch *b, oly_array x)
{
    oly_array y = NULL;
    if (b->shared)
        oly_vmap(b->function, NULL, OLY_IN(x, b->shared), OLY_AXES_OF(b->in, OLY_UNMAPPED), OLY_OUT(y),
                 OLY_AXES_OF(b->out));
    else
        oly_vmap(b->function, NULL, OLY_IN(x), OLY_AXES_OF(b->in), OLY_OUT(y), OLY_AXES_OF(b->out));
    return y;
}

static void expect_batch(int line, batch b, const char *wanted)
{
    char type[256];
    float apart = 1;
    oly_array y = map(&b, b.x);
    if (!y)
        fail_msg("line %d: %s", line, oly_last_error());
    oly_typeof(y, type, sizeof type);
    if (strcmp(type, wanted) != 0)
        fail_msg("line %d: %s instead of %s", line, type, wanted);
    oly_mesh before = check_mesh;
    check_mesh = oly_make_mesh("X=2, Y=4"); /* the planner decides */
    oly_set_mesh(NULL);
    if (b.shared)
        b.shared = oly_device_put(b.shared, check_at(""));
    oly_array difference =
        oly_max(oly_abs(oly_sub(oly_device_put(y, check_at("")), map(&b, oly_device_put(b.x, check_at(""))))));
    if (!difference)
        fail_msg("line %d: %s", line, oly_last_error());
    assert_int_equal(oly_process_allgather(difference, &apart, sizeof apart), OLY_OK);
    if (!(apart <= 1e-5F))
        fail_msg("line %d: wrong by %g", line, (double)apart);
    check_mesh = before;
}
#define BATCH(wanted, f, ...)     expect_batch(__LINE__, (batch){.function = f, .x = __VA_ARGS__}, wanted)
#define SHARED(wanted, f, y, ...) expect_batch(__LINE__, (batch){.function = f, .shared = y, .x = __VA_ARGS__}, wanted)
#define ALONG(wanted, f, d, e, ...)                                                                                    \
    expect_batch(__LINE__, (batch){.function = f, .in = d, .out = e, .x = __VA_ARGS__}, wanted)
#define F(name) static void name(const oly_array *in, oly_array *out, void *user)

/* -- requested shardings ------------------------------------------------------------------------------------------------------ */

static bool is_explicit(void)
{
    return oly_mesh_axis_type(check_mesh, 0) == OLY_AXIS_EXPLICIT;
}

/* On a mesh without Explicit axes a request would be an error. */
static oly_sharding asked(const char *spec)
{
    return check_at(is_explicit() ? spec : "");
}

F(product)
{
    (void)user;
    out[0] = oly_matmul(in[0], in[1], .out_sharding = asked("Y"));
}
F(product_from_right)
{
    (void)user;
    out[0] = oly_matmul(in[1], in[0], .out_sharding = asked("None, Y"));
}
F(product_of_both)
{
    (void)user;
    out[0] = oly_einsum_options("ij,kj->ik", (.out_sharding = asked("None, Y")), in[0], in[0]);
}
F(moved)
{
    (void)user;
    out[0] = is_explicit() ? oly_reshard(in[0], check_at("None, Y")) : in[0];
}
F(reshaped)
{
    (void)user;
    out[0] = oly_reshape_sharded(in[0], asked("Y"), 32);
}
F(repeated)
{
    (void)user;
    out[0] = oly_broadcast_sharded(in[0], asked("Y"), 4, 4, 8);
}
F(summed)
{
    (void)user;
    out[0] = oly_sum(in[0], .axes = "0", .out_sharding = asked("Y"));
}
F(taken)
{
    (void)user;
    out[0] =
        oly_at_get(in[0], OLY_INDEXES(oly_slice(oly_arange(3, OLY_INT32), "1:")), .out_sharding = asked("None, Y"));
}
F(like)
{
    (void)user;
    out[0] = oly_add(oly_zeros_like(in[0]), 1);
}
F(doubled)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}
F(in_a_region)
{
    if (!is_explicit())
        doubled(in, out, user);
    else
        oly_auto_axes(doubled, NULL, OLY_IN(in[0]), OLY_OUT(out[0]), OLY_SHARDINGS(check_at("None, Y")));
}

static void requests_keep_the_batch_split(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_array x = CHECK_NUMBERS_AT("X", 8, 4, 8), xy = CHECK_NUMBERS_AT("X, None, Y", 8, 4, 8);
    SHARED("float32[8@X,4@Y,6]", product, CHECK_NUMBERS_AT("", 8, 6), x);
    SHARED("float32[8@X,6,8@Y]", product_from_right, CHECK_NUMBERS_AT("", 6, 4), x);
    BATCH("float32[8@X,4,4@Y]", product_of_both, x);
    BATCH("float32[8@X,4,8@Y]", moved, x);
    BATCH("float32[8@X,32@Y]", reshaped, x);
    BATCH("float32[8@X,4@Y,4,8]", repeated, x);
    BATCH("float32[8@X,8@Y]", summed, x);
    BATCH("float32[8@X,2,8@Y]", taken, x);
    BATCH("float32[8@X,4,8@Y]", like, xy);
    BATCH("float32[8@X,4,8@Y]", in_a_region, x);
    ALONG("float32[4,8@X,8@Y]", moved, 2, 1, CHECK_NUMBERS_AT("None, None, X", 4, 8, 8));
    check_end();
}

/* -- what does not depend on the batch ---------------------------------------------------------------------------------------- */

static void add_up(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], x[0]);
    y[0] = carry[0];
}
F(running)
{
    oly_array carry[1] = {oly_zeros_like(oly_slice(in[0], "0"))}, y[1];
    (void)user;
    oly_scan(4, false, add_up, 1, carry, 1, in, 1, y, NULL);
    out[0] = y[0];
}
static void scale(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    y[0] = oly_mul(x[0], carry[0]);
}
F(scaled)
{
    oly_array carry[1] = {oly_scalar(2.F, OLY_FLOAT32)}, y[1];
    (void)user;
    oly_scan(4, false, scale, 1, carry, 1, in, 1, y, NULL);
    out[0] = y[0];
}
static void add_sine(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(carry[0], oly_sin((oly_array)user));
}
F(from_zeros)
{
    oly_array carry[1] = {oly_zeros(OLY_FLOAT32, 4, 8)};
    (void)user;
    oly_fori(1, 3, add_sine, 1, carry, in[0]);
    out[0] = carry[0];
}
static oly_array is_below(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(oly_sum(carry[0]), 9);
}
static void add_square(oly_array *carry, void *user)
{
    carry[0] = oly_add(carry[0], oly_square((oly_array)user));
}
F(until_nine)
{
    oly_array carry[1] = {oly_zeros(OLY_FLOAT32, 4, 8)};
    (void)user;
    oly_while(is_below, add_square, 1, carry, in[0]);
    out[0] = carry[0];
}
F(with_ones)
{
    (void)user;
    out[0] = oly_concatenate(0, oly_slice(in[0], "0"), oly_ones(OLY_FLOAT32, 2));
}
F(or_zeros)
{
    oly_array row = oly_slice(in[0], "0");
    (void)user;
    out[0] = oly_where(oly_gt(row, 0), row, oly_zeros(OLY_FLOAT32, 8));
}
F(only_ones)
{
    (void)user, (void)in;
    out[0] = oly_ones(OLY_FLOAT32, 3);
}
F(sine)
{
    (void)user;
    out[0] = oly_sin(in[0]);
}
F(zeros)
{
    (void)user, (void)in;
    out[0] = oly_zeros(OLY_FLOAT32, 4, 8);
}
F(each_its_branch)
{
    (void)user;
    oly_cond(oly_gt(oly_sum(in[0]), 0), zeros, sine, 1, in, 1, out, NULL);
}
F(all_one_branch)
{
    (void)user;
    oly_cond(oly_gt(oly_sum(in[1]), 0), zeros, sine, 1, in, 1, out, NULL);
}
F(for_matrices)
{
    (void)user;
    oly_vmap(product, NULL, OLY_IN(in[0], in[1]), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(out[0]), OLY_AXES_OF(0));
}
F(checked)
{
    (void)user;
    oly_check(oly_lt(in[0], 2), "too large");
    out[0] = in[0];
}

/* typed: constants are over the mesh, too. */
static void map_with_constants(bool typed)
{
    oly_array x = CHECK_NUMBERS_AT("X", 8, 4, 8), xy = CHECK_NUMBERS_AT("X, None, Y", 8, 4, 8);
    const struct {
        oly_function function;
        oly_array x, shared;
        const char *wanted;
    } cases[] = {
        {running, x, NULL, "float32[8@X,4,8]"},
        {running, xy, NULL, "float32[8@X,4,8@Y]"},
        {scaled, x, NULL, "float32[8@X,4,8]"},
        {from_zeros, x, NULL, "float32[8@X,4,8]"},
        {until_nine, x, NULL, "float32[8@X,4,8]"},
        {with_ones, x, NULL, "float32[8@X,10]"},
        {or_zeros, x, NULL, "float32[8@X,8]"},
        {only_ones, x, NULL, "float32[8@X,3]"},
        {each_its_branch, x, NULL, "float32[8@X,4,8]"},
        {all_one_branch, x, CHECK_NUMBERS_AT("", 3), "float32[8@X,4,8]"},
        {all_one_branch, x, oly_neg(CHECK_NUMBERS_AT("", 3)), "float32[8@X,4,8]"},
        {checked, xy, NULL, "float32[8@X,4,8@Y]"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        oly_set_mesh(typed ? check_mesh : NULL);
        SHARED(cases[k].wanted, cases[k].function, cases[k].shared, cases[k].x);
    }
    oly_set_mesh(NULL);
    ALONG("float32[10,8@(X,Y)]", with_ones, 1, 1, CHECK_NUMBERS_AT("None, (X, Y)", 4, 8, 8));
}

static void constants_are_split_as_the_batch(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    map_with_constants(false);
    map_with_constants(true);
    SHARED("float32[8@X,4,8@Y,6]", for_matrices, CHECK_NUMBERS_AT("", 8, 6), CHECK_NUMBERS_AT("X", 8, 4, 8, 8));
    check_end();
}

/* -- derivatives -------------------------------------------------------------------------------------------------------------- */

static oly_function differentiated;
F(squares)
{
    differentiated(in, out, user);
    out[0] = oly_sum(oly_square(out[0]));
}
F(gradient)
{
    oly_fn of = oly_grad(oly_jit(squares, 1, 1));
    (void)user;
    oly_call(of, OLY_IN(in[0]), OLY_OUT(out[0]));
}
F(part)
{
    (void)user;
    out[0] = oly_dynamic_slice(in[0], OLY_INDEXES(oly_scalar(1, OLY_INT32), 0), OLY_EXTENTS(2, 8));
}
F(waves)
{
    (void)user;
    out[0] = oly_sum(oly_sin(oly_matmul(in[0], in[1])));
}
F(gradient_of_weights)
{
    oly_fn of = oly_grad(oly_jit(waves, 2, 1), .argnums = "1");
    (void)user;
    oly_call(of, OLY_IN(in[0], in[1]), OLY_OUT(out[0]));
}

static void gradients_keep_the_batch_split(void **state)
{
    (void)state;
    const oly_function all[] = {running, part, moved, from_zeros};
    check_begin_on("X=2:explicit, Y=4:explicit");
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        differentiated = all[k];
        BATCH("float32[8@X,4,8]", gradient, CHECK_NUMBERS_AT("X", 8, 4, 8));
        if (k < 2)
            BATCH("float32[8@X,4,8@Y]", gradient, CHECK_NUMBERS_AT("X, None, Y", 8, 4, 8));
    }
    SHARED("float32[8@X,8,6]", gradient_of_weights, CHECK_NUMBERS_AT("", 8, 6),
           CHECK_NUMBERS_AT("X, None, Y", 8, 4, 8));
    check_end();
}

/* -- devices inside of a batch ------------------------------------------------------------------------------------------------ */

F(total)
{
    (void)user;
    out[0] = oly_psum(in[0], "X");
}
F(on_devices)
{
    (void)user;
    oly_shard_map(doubled, NULL, check_mesh, OLY_IN(in[0]), OLY_SPECS("X"), OLY_OUT(out[0]), OLY_SPECS("X"));
}
F(over_devices)
{
    (void)user;
    oly_shard_map(total, NULL, check_mesh, OLY_IN(in[0]), OLY_SPECS("X"), OLY_OUT(out[0]), OLY_SPECS(""));
}

static void devices_keep_their_elements(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_array x = CHECK_NUMBERS_AT("Y, X", 4, 8);
    BATCH("float32[4@Y,8@X]", on_devices, x);
    BATCH("float32[4@Y,4]", over_devices, x);
    differentiated = over_devices;
    BATCH("float32[4@Y,8@X]", gradient, x);
    check_end();
    check_begin_on("X=2:explicit, Y=4"); /* only X is part of types */
    BATCH("float32[8@X,4,8]", running, CHECK_NUMBERS_AT("X, Y", 8, 4, 8));
    BATCH("float32[8@X,8]", or_zeros, CHECK_NUMBERS_AT("X, Y", 8, 4, 8));
    check_end();
}

/* -- errors ------------------------------------------------------------------------------------------------------------------- */

F(added)
{
    (void)user;
    out[0] = oly_add(in[0], in[1]);
}
F(moved_to_the_batch)
{
    (void)user;
    out[0] = oly_reshard(in[0], check_at("X"));
}

static oly_array add_elements(oly_array x, oly_array y, int of_y)
{
    oly_array z = NULL;
    oly_vmap(added, NULL, OLY_IN(x, y), OLY_AXES_OF(0, of_y), OLY_OUT(z), OLY_AXES_OF(0));
    return z;
}

static void batches_are_split_alike(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_array x = CHECK_NUMBERS_AT("X", 8, 4), z = NULL;
    check_type(add_elements(x, oly_ones(OLY_FLOAT32, 8, 4), 0), "float32[8@X,4]"); /* made without a mesh */
    check_type(add_elements(x, CHECK_NUMBERS_AT("Y", 4), OLY_UNMAPPED), "float32[8@X,4@Y]");
    CHECK_REFUSED(add_elements(x, CHECK_NUMBERS_AT("", 8, 4), 0), OLY_SHARDING, "[vmap_mismatch]");
    CHECK_REFUSED(add_elements(x, CHECK_NUMBERS_AT("Y", 8, 4), 0), OLY_SHARDING, "[vmap_mismatch]");
    CHECK_REFUSED(add_elements(x, CHECK_NUMBERS_AT("X", 4), OLY_UNMAPPED), OLY_SHARDING, "[vmap_unmapped]");
    CHECK_REFUSED((oly_vmap(moved_to_the_batch, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(z), OLY_AXES_OF(0)), z),
                  OLY_SHARDING, "[out_duplicate]");
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_keep_the_batch_split),  cmocka_unit_test(constants_are_split_as_the_batch),
        cmocka_unit_test(gradients_keep_the_batch_split), cmocka_unit_test(devices_keep_their_elements),
        cmocka_unit_test(batches_are_split_alike),
    };
    return CHECK_MAIN(tests);
}
