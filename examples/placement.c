/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of arrays: committed and uncommitted, default devices, computation that follows data, one array assembled from
 * parts on all devices, mesh axes that are part of types, regions in which they are not, donation.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/placement      (8 devices)
 * Prints: from process 0, shardings, types, devices and a message. */
#include <olympus.h>

/* Only process 0 prints. */
static FILE *audience;

/* -- one device ----------------------------------------------------------------------------------------------------------- */
static void one_device(void)
{
    oly_array x = oly_arange(4, OLY_INT32);
    oly_fprintf(audience, "made without saying where:  committed %d\n", oly_is_committed(x));
    oly_array there = oly_device_put(x, oly_single_device(oly_get_device(1)));
    oly_fprintf(audience, "put on a device:            committed %d\n", oly_is_committed(there));
    oly_array sum = oly_add(x, there); /* computation follows the committed operand */
    oly_fprintf(audience, "the sum of both:            committed %d, %S\n", oly_is_committed(sum),
                oly_sharding_of(sum));

    /* Where devices are GPUs, CPU devices are beside them. */
    if (oly_platform_device_count("cpu") > 0) {
        oly_array host = oly_device_put(there, oly_single_device(oly_platform_device("cpu", 0)));
        oly_fprintf(audience, "put on a CPU device:        committed %d\n", oly_is_committed(host));
    }

    oly_device before = oly_set_default_device(oly_get_device(2));
    oly_array third = oly_mul(oly_arange(4, OLY_INT32), 10);
    oly_fprintf(audience, "with a default device:      committed %d, %S\n", oly_is_committed(third),
                oly_sharding_of(third));
    oly_set_default_device(before);

    /* Two committed operands on different devices are not moved implicitly. */
    oly_error_mode mode = oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_array other = oly_device_put(x, oly_single_device(oly_get_device(3)));
    oly_array refused = oly_add(there, other);
    if (!refused)
        oly_fprintf(audience, "%s\n", oly_status_name(oly_last_status()));
    oly_set_error_mode(mode);
    oly_clear_error();
}

/* -- one array on each device -------------------------------------------------------------------------------------------- */

/* Every process makes the parts of its own devices in place; together they are one array. */
static void assembled(void)
{
    oly_sharding split = oly_named(oly_make_mesh("x=2, y=4"), "x, y");
    oly_array parts[8];
    int mine = oly_local_device_count();
    for (int k = 0; k < mine; k++) {
        oly_device d = oly_local_device(k);
        parts[k] = oly_device_put(oly_full(10 * oly_device_id(d), OLY_INT32, 1, 2), oly_single_device(d));
    }
    oly_array whole = oly_from_shards(split, OLY_INT32, 2, (int64_t[]){2, 8}, mine, parts);
    oly_fprintf(audience, "one part on each device:    %T, committed %d\n%A\n", whole, oly_is_committed(whole),
                oly_device_put(whole, oly_named(oly_make_mesh("x=2, y=4"), "")));
}

/* -- axes of a mesh --------------------------------------------------------------------------------------------------------- */
static void gram(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_fprintf(audience, "  inside an automatic region: %T\n", in[0]);
    out[0] = oly_matmul(oly_transpose(in[0]), in[0]); /* over explicit axes this product is ambiguous */
}

static void doubled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_fprintf(audience, "  inside an explicit region:  %T\n", in[0]);
    out[0] = oly_mul(in[0], 2);
}

static void axes(void)
{
    oly_mesh automatic = oly_make_mesh("x=2, y=4");
    oly_mesh explicit_mesh = oly_mesh_with_types(automatic, (oly_axis_type[]){OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT});
    oly_fprintf(audience, "x is explicit: %d, of %M: %d\n", oly_mesh_axis_type(explicit_mesh, 0) == OLY_AXIS_EXPLICIT,
                automatic, oly_mesh_axis_type(automatic, 0) == OLY_AXIS_EXPLICIT);

    oly_array data = oly_reshape(oly_arange(64, OLY_FLOAT32), 8, 8), result = NULL;
    oly_array typed = oly_device_put(data, oly_named(explicit_mesh, "x, y"));
    oly_array plain = oly_device_put(data, oly_named(automatic, "x, y"));
    oly_fprintf(audience, "the same data has the types %T and %T\n", typed, plain);
    oly_fprintf(audience, "its transpose:              %T\n", oly_transpose(typed));
    oly_fprintf(audience, "moved, because we say so:   %T\n", oly_reshard(typed, oly_named(explicit_mesh, "y")));
    oly_fprintf(audience, "summed over rows:           %T\n", oly_sum(typed, .axes = "0"));

    oly_auto_axes(gram, NULL, OLY_IN(typed), OLY_OUT(result), OLY_SHARDINGS(oly_named(explicit_mesh, "x, y")));
    oly_fprintf(audience, "  and outside again:          %T\n", result);
    oly_explicit_axes(doubled, NULL, OLY_IN(plain), OLY_SHARDINGS(oly_named(explicit_mesh, "x, y")), OLY_OUT(result));
    oly_fprintf(audience, "  and outside again:          %T, %S\n", result, oly_sharding_of(result));
}

/* -- donation --------------------------------------------------------------------------------------------------------------- */
static void next(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], 1);
}

/* An array that is input and output of a call is donated: here each result takes the memory of the one before. */
static void donation(void)
{
    oly_sharding split = oly_named(oly_make_mesh("x=8"), "x");
    oly_array x = oly_device_put(oly_zeros(OLY_INT32, 1024), split);
    oly_fn step =
        oly_jit(next, 1, 1, .in_shardings = (oly_sharding[]){split}, .out_shardings = (oly_sharding[]){split});
    for (int k = 0; k < 10; k++)
        oly_call(step, OLY_IN(x), OLY_OUT(x));
    oly_array whole = oly_device_put(oly_sum(x), oly_named(oly_make_mesh("x=8"), ""));
    oly_fprintf(audience, "after ten steps in place, the sum is %A, the result %S\n", whole, oly_sharding_of(x));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() != 8) {
        fprintf(stderr, "placement: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 placement\n",
                oly_device_count());
        oly_finalize();
        return 1;
    }
    audience = oly_process_index() == 0 ? stdout : fopen("/dev/null", "w");
    one_device();
    assembled();
    axes();
    donation();
    return oly_finalize();
}
