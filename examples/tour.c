/* SPDX-License-Identifier: BSD-3-Clause */
/* A tour of the whole interface in eleven numbered steps; the README shows the most important ones. Every public
 * function that no other example uses is called here.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/tour      (any ranks x devices; --options lists the settings instead)
 * Prints: from process 0, the result of each step; for a given number of devices the same text on any number of ranks. */
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

/* Only process 0 prints; the others make the same calls. */
static FILE *audience;
#define SAY(...) oly_fprintf(audience, __VA_ARGS__)

/* The array on every device of its mesh, so that each process can print it. Every process must call it. */
static oly_array here(oly_array x)
{
    return oly_device_put(x, oly_named(oly_sharding_mesh(oly_sharding_of(x)), ""));
}

static void step_1_devices(void)
{
    int mine = 0, n = oly_device_count();
    char name[32];
    for (int k = 0; k < n; k++)
        mine += oly_device_is_local(oly_get_device(k)) && oly_device_process(oly_get_device(k)) == oly_process_index();
    if (mine != oly_local_device_count() || oly_process_index() >= oly_process_count())
        exit(1);
    oly_device_str(oly_get_device(n - 1), name, sizeof name);
    SAY("1. devices: Olympus %s, %d %s devices, from %D to %s\n", oly_version(), n,
        oly_device_platform(oly_local_device(0)), oly_get_device(0), name);
}

static oly_mesh step_2_meshes(void)
{
    char axes[32], text[128];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    oly_mesh mesh = oly_make_mesh(axes); /* a row of all devices, called x */

    SAY("2. meshes: %M has %d axis, %s, of %d; its last device is %D\n", mesh, oly_mesh_axis_count(mesh),
        oly_mesh_axis_name(mesh, 0), oly_mesh_axis_size(mesh, 0),
        oly_mesh_device(mesh, oly_mesh_device_count(mesh) - 1));

    oly_mesh_str(mesh, text, sizeof text);
    oly_sharding rows = oly_named(mesh, "x"), all = oly_named(mesh, "");
    int64_t shape[] = {10, 3}, start[2], extent[2];
    oly_sharding_shard(rows, 2, shape, 0, start, extent);
    SAY("   rows of 10 x 3 over %s: the first device has %d x %d\n", text, (int)extent[0], (int)extent[1]);
    oly_spec_str(rows, text, sizeof text);
    SAY("   %s splits the rows", text);
    oly_sharding_str(all, text, sizeof text);
    SAY("; %s = %S is everywhere: %d\n", text, all, oly_sharding_is_replicated(all));
    oly_visualize_sharding(audience, rows, 2, shape);
    return mesh;
}

static void step_3_arrays(oly_mesh mesh)
{
    /* The same data on every process, split in place. */
    float data[] = {1, 2, 3, 4, 5, 6};
    oly_array small = oly_from_host(data, OLY_FLOAT32, 2, (int64_t[]){2, 3});
    char type[64];
    oly_typeof(small, type, sizeof type);
    SAY("3. arrays: %s = %T, %d dimensions, %d elements of %d bytes, committed: %d\n", type, small, oly_rank(small),
        (int)oly_size(small), (int)oly_dtype_size(oly_dtype_of(small)), oly_is_committed(small));
    SAY("%A\n", small);

    /* Each process gives the part of its own devices, here two elements for each. */
    int64_t mine = 2 * oly_local_device_count(), total = 2 * oly_device_count();
    int32_t *part = malloc((size_t)mine * sizeof *part);
    for (int64_t k = 0; k < mine && part; k++)
        part[k] = 2 * oly_device_id(oly_local_device(0)) + (int32_t)k;
    oly_array whole = oly_from_local(oly_named(mesh, "x"), OLY_INT32, 1, &total, part, &mine);
    free(part);
    SAY("   from the parts of all processes: %T, committed: %d, %s\n", whole, oly_is_committed(whole),
        oly_is_fully_addressable(whole) == (oly_process_count() == 1) ? "on its processes" : "elsewhere");

    /* Fetching: one number, a local array, an array from all processes. */
    int32_t *all = malloc((size_t)total * sizeof *all);
    oly_process_allgather(whole, all, (size_t)total * sizeof *all);
    float back[6];
    oly_get(small, back, sizeof back);
    oly_array sum = oly_sum(whole);
    oly_block_until_ready(sum);
    SAY("   the last of them is %d, their sum %g; element 5 of the small one is %g\n", all ? all[total - 1] : 0,
        oly_item(sum), back[5]);
    free(all);
}

static void step_4_numbers(oly_mesh mesh)
{
    oly_array x = oly_device_put(oly_sub(oly_arange(5, OLY_FLOAT32), 2), oly_named(mesh, "x")); /* -2 -1 0 1 2 */
    oly_array y = oly_add(oly_mul(0.5, x), 1); /* C numbers adopt the array's type */
    SAY("4. elementwise: x = %A, x / 2 + 1 = %A\n", here(x), here(y));
    SAY("   abs %A sign %A neg %A\n", here(oly_abs(x)), here(oly_sign(x)), here(oly_neg(x)));
    SAY("   exp %A\n   log %A\n", here(oly_exp(x)), here(oly_log(y)));
    SAY("   sqrt %A\n   cos %A\n", here(oly_sqrt(y)), here(oly_cos(x)));
    SAY("   tanh %A\n   sigmoid %A\n   relu %A\n", here(oly_tanh(x)), here(oly_sigmoid(x)), here(oly_relu(x)));
    SAY("   x / y %A x ** 2 %A\n", here(oly_div(x, oly_add(y, 1))), here(oly_pow(x, 2)));
    SAY("   max %A min %A\n", here(oly_max2(x, 0)), here(oly_min2(x, y)));
    SAY("   x < 0 ? -x : 10: %A\n", here(oly_where(oly_lt(x, 0), oly_neg(x), 10)));
    SAY("   == %A != %A\n   <= %A >  %A\n", here(oly_eq(x, 1)), here(oly_ne(x, 1)), here(oly_le(x, 1)),
        here(oly_gt(x, 1)));
    SAY("   >= %A !  %A\n", here(oly_ge(x, 1)), here(oly_logical_not(x)));
    oly_dtype meet = oly_promote_types(OLY_INT32, OLY_FLOAT32);
    SAY("   as int32 %R; int32 and float32 meet in %s\n", here(oly_astype(x, OLY_INT32)), oly_dtype_name(meet));
}

static void step_5_sums(oly_mesh mesh)
{
    oly_array x = oly_device_put(oly_reshape(oly_arange(6, OLY_FLOAT32), 2, 3), oly_named(mesh, "x"));
    SAY("5. reductions: sum %A, of columns %A, of rows, kept as a column:\n%A\n", here(oly_sum(x)),
        here(oly_sum(x, .axes = "0")), here(oly_sum(x, OLY_AXES(1), .keepdims = true)));
    SAY("   mean %A max %A min %A product of rows %A\n", here(oly_mean(x)), here(oly_max(x)), here(oly_min(x)),
        here(oly_prod(x, .axes = "-1")));
    oly_array w = oly_ones(OLY_FLOAT32, 3);
    SAY("   x @ 1 = %A, x . x^T =\n%A\n", here(oly_matmul(x, w)), here(oly_dot(x, oly_transpose(x, 1, 0))));
}

static void step_6_shapes(void)
{
    oly_array x = oly_reshape(oly_arange(12, OLY_INT32), 3, -1);
    SAY("6. slices: x[1:, ::2] =\n%A\n", oly_slice(x, "1:, ::2"));
    SAY("   x with x[1] = 0:\n%A\n", oly_update(x, "1", 0));
    SAY("   rows twice:\n%A\n", oly_concatenate(0, x, x));
    oly_array row = oly_full(7, OLY_INT32, 4);
    SAY("   %A repeated: %T; a zero: %A; a scalar: %R\n", row, oly_broadcast_to(row, 2, 4), oly_zeros(OLY_INT32, 1),
        oly_scalar(1.5, OLY_FLOAT32));
}

/* For computed shapes, axes or lists, each notation has a form that takes numbers. */
static void step_7_forms_for_computed_shapes(oly_mesh mesh)
{
    oly_mesh same = oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){oly_device_count()}, NULL);
    oly_sharding split = oly_named_axes(mesh, 1, (const int *[]){(int[]){0, -1}});
    SAY("7. computed shapes: same mesh: %d, same sharding: %d\n", same == mesh, split == oly_named(mesh, "x"));

    int64_t shape[] = {2, 3};
    oly_array zero = oly_zeros_shape(OLY_FLOAT32, 2, shape), one = oly_ones_shape(OLY_FLOAT32, 2, shape);
    oly_array half = oly_full_shape(OLY_ARG(0.5), OLY_FLOAT32, 2, shape);
    oly_array pair = oly_concatenate_n(3, (oly_array[]){zero, one, half}, 0);
    oly_array turned = oly_transpose_axes(pair, 2, (int[]){1, 0});
    oly_array part = oly_slice_ranges(turned, (int64_t[]){0, 1}, (int64_t[]){2, 6}, (int64_t[]){1, 2});
    SAY("%A\n", part);
    oly_array flat = oly_reshape_shape(part, 1, (int64_t[]){6});
    oly_reduce_options over = {.axis_list = (int[]){0}, .n_axis_list = 1, .axes_given = true};
    oly_operand operand = OLY_ARG(flat);
    SAY("   sum %A product %A max %A min %A mean %A\n", oly_sum_with(operand, over), oly_prod_with(operand, over),
        oly_max_with(operand, over), oly_min_with(operand, over), oly_mean_with(operand, over));
    SAY("   %T %A\n", oly_broadcast_shape(operand, 2, (int64_t[]){2, 6}), oly_scalar_of(OLY_ARG(true), OLY_BOOL));
}

/* -- step 8: functions that are planned once ---------------------------------------------------------------------------- */
static void squares(const oly_array *in, oly_array *out, void *user)
{
    oly_sharding sharding = user;
    oly_array y = oly_with_sharding_constraint(oly_mul(in[0], in[0]), sharding);
    out[0] = y;
    out[1] = oly_sum(y);
}

static void add_counter(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], oly_astype(i, OLY_FLOAT32));
}

static void count_up(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 5, add_counter, 1, out, user); /* stays a loop in the plan */
}

static void all_halved(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    for (int k = 0; k < 100; k++)
        out[k] = oly_mul(in[k], 0.5);
}

static void step_8_functions(oly_mesh mesh)
{
    oly_sharding split = oly_named(mesh, "x");
    oly_array x = oly_device_put(oly_arange(6, OLY_FLOAT32), split), y = NULL, total = NULL;
    oly_fn f = oly_jit(squares, 1, 2, .user = (void *)split);
    oly_call(f, OLY_IN(x), OLY_OUT(y, total)); /* traced, planned, run */
    oly_call(f, OLY_IN(y), OLY_OUT(y, total)); /* run again; y is donated to the new y */
    SAY("8. functions: x ** 4 = %A, sum %A, %S\n", here(y), here(total), oly_sharding_of(y));

    oly_array z = oly_apply(oly_jit(count_up, 1, 1), x); /* one result: no OLY_OUT */
    SAY("   five steps of a loop: %A\n", here(z));

    oly_fn same = oly_jit_with(count_up, NULL, 1, 1, (oly_jit_options){.name = "count", .in_shardings = &split});
    oly_array w = oly_apply_n(same, 1, &x), *outputs[] = {&x};
    oly_call_n(same, 1, &w, 1, outputs);
    SAY("   and five and five more: %A\n", here(x));

    oly_array layers[100]; /* a list of arrays, such as the parameters of a network: all updated in place */
    for (int k = 0; k < 100; k++)
        layers[k] = oly_full(k, OLY_FLOAT32, 2);
    oly_call_arrays(oly_jit(all_halved, 100, 100), 100, layers, 100, layers);
    SAY("   a list of arrays: the last of 100 is %A\n", here(layers[99]));
}

static void step_9_scopes(void)
{
    oly_array total = oly_zeros(OLY_FLOAT32, 3), best = NULL;
    for (int step = 0; step < 4; step++)
        OLY_SCOPE
        {
            oly_array next = oly_add(total, step); /* freed with the scope, as are temporaries */
            if (step == 2)
                best = oly_keep(next);            /* moves to the enclosing scope */
            oly_assign(&total, oly_mul(next, 1)); /* frees the old total; the new one takes its place */
        }
    SAY("9. scopes: %A, kept %A\n", total, best);

    oly_scope_open();
    oly_array early = oly_ones(OLY_FLOAT32, 1000);
    oly_free(early); /* freed now, not at the end of its scope */
    oly_scope_close();
}

static void step_10_errors(void)
{
    char text[64], repr[64];
    oly_array_str(oly_arange(3, OLY_INT32), text, sizeof text);
    oly_array_repr(oly_arange(3, OLY_INT32), repr, sizeof repr);
    SAY("10. errors: %s is the text of %s\n", text, repr);

    oly_error_mode before = oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_array a = oly_zeros(OLY_FLOAT32, 2, 3), b = oly_zeros(OLY_FLOAT32, 4, 5);
    oly_array c = oly_add(oly_matmul(a, b), 1); /* matmul returns NULL, and add of NULL is NULL */
    SAY("    c is %s; %s (%s): %s\n", c ? "there" : "NULL", oly_status_name(oly_last_status()),
        oly_status_text(oly_last_status()), oly_last_error());
    oly_clear_error();
    oly_set_error_mode(before);
}

static void step_11_shards(oly_mesh mesh)
{
    oly_array x = oly_device_put(oly_arange(7, OLY_INT32), oly_named(mesh, "x"));
    int64_t elements = 0;
    OLY_FOR_EACH_SHARD(s, x)
    {
        elements += s.extent[0];
    }
    oly_shard first = oly_shard_count(x) > 0 ? oly_get_shard(x, 0) : (oly_shard){0};
    SAY("11. shards: dimension 0 of x has %d elements (%d by its shape); the first shard, on %D, is %A, replica %d\n",
        (int)oly_dim(x, 0), (int)oly_shape(x)[0], first.device, first.data, first.replica);
    if (oly_process_count() == 1 && elements != 7)
        exit(1);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "--options") == 0) {
        if (oly_process_index() == 0)
            oly_print_options();
        return oly_finalize();
    }
    audience = oly_process_index() == 0 ? stdout : fopen("/dev/null", "w");
    if (!audience)
        return 1;
    step_1_devices();
    oly_mesh mesh = step_2_meshes();
    step_3_arrays(mesh);
    step_4_numbers(mesh);
    step_5_sums(mesh);
    step_6_shapes();
    step_7_forms_for_computed_shapes(mesh);
    step_8_functions(mesh);
    step_9_scopes();
    step_10_errors();
    step_11_shards(mesh);
    return oly_finalize();
}
