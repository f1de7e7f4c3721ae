/* SPDX-License-Identifier: BSD-3-Clause */
/* Per-device programs: functions of one device's shard, run on all devices, that exchange data only by collectives; and a function
 * of one element, mapped over a batch.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/shard_map      (eight devices, on any number of ranks)
 * Prints: from process 0, the result of each map. */
#include <olympus.h>

/* Only process 0 prints. */
static FILE *audience;

static oly_mesh mesh;

/* Shows a result, gathered on every process. */
static void show(const char *what, oly_array x)
{
    oly_fprintf(audience, "%-34s %A\n", what, oly_device_put(x, oly_named(mesh, "")));
}

/* -- what devices do -------------------------------------------------------------------------------------------------- */

/* No communication: every device sums its own elements. */
static void shard_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], .keepdims = true);
}

/* Sums over the devices are the same on each: the output's spec need not name the axis. */
static void totals(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array mine = oly_sum(in[0]);
    out[0] = oly_psum(mine, "i");
    out[1] = oly_pmean(mine, "i");
    out[2] = oly_pmin(mine, "i");
    out[3] = oly_pmax(mine, "i");
}

/* Each device passes its number on to the next. */
static void ring(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    oly_array me = oly_reshape(oly_axis_index("i"), 1);
    out[0] = oly_ppermute(me, "i", OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 0}));
}

/* Types show along which axes a value may differ between devices. */
static void types(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_fprintf(audience,
                "a shard is %T, a constant %T, made to vary %T;\n  gathered the shards are %T, their sum is %T\n",
                in[0], oly_scalar(1, OLY_FLOAT32), oly_pvary(oly_scalar(1, OLY_FLOAT32), "i"),
                oly_all_gather(in[0], "i", .tiled = true), oly_psum(in[0], "i"));
    out[0] = in[0];
}

/* Rows become columns: each device keeps its part of every row of the others. */
static void turn(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_all_to_all(in[0], "i", 1, 0, true);
}

/* A sum of which each device keeps one part, assembled again. */
static void sum_in_parts(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array part = oly_div(oly_psum_scatter(in[0], "i", .tiled = true), oly_axis_size("i"));
    out[0] = oly_all_gather(part, "i", .tiled = true, .invariant = true);
}

/* Only the axis x is manual: y is left to the planner, and inside, a row is whole. */
static void sum_of_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(oly_sum(in[0], .axes = "0"), "x");
}

/* -- what one element does ------------------------------------------------------------------------------------------- */
static void distance(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sqrt(oly_sum(oly_pow(oly_sub(in[0], in[1]), 2)));
}

/* A batch with a name: collectives reach over its elements. */
static void from_the_mean(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(in[0], oly_pmean(in[0], "points"));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() != 8) {
        fprintf(stderr, "shard_map: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 shard_map\n",
                oly_device_count());
        oly_finalize();
        return 1;
    }
    audience = oly_process_index() == 0 ? stdout : fopen("/dev/null", "w");
    mesh = oly_make_mesh("i=8");

    oly_array x = oly_device_put(oly_arange(32, OLY_INT32), oly_named(mesh, "i"));
    oly_array result = NULL, mean = NULL, least = NULL, most = NULL;

    oly_shard_map(shard_sums, NULL, mesh, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(result), OLY_SPECS("i"));
    show("the sum of each shard", result);
    oly_shard_map(totals, NULL, mesh, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(result, mean, least, most),
                  OLY_SPECS("", "", "", ""));
    show("psum", result);
    show("pmean", mean);
    show("pmin", least);
    show("pmax", most);
    oly_shard_map(ring, NULL, mesh, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(result), OLY_SPECS("i"));
    show("device k hears from", result);
    oly_shard_map(types, NULL, mesh, OLY_IN(oly_astype(x, OLY_FLOAT32)), OLY_SPECS("i"), OLY_OUT(result),
                  OLY_SPECS("i"));

    oly_array square = oly_reshape(oly_arange(64, OLY_INT32), 8, 8);
    oly_shard_map(turn, NULL, mesh, OLY_IN(square), OLY_SPECS("i"), OLY_OUT(result), OLY_SPECS("None, i"));
    show("row 1 after the exchange", oly_slice(result, "1"));
    oly_shard_map(sum_in_parts, NULL, mesh, OLY_IN(square), OLY_SPECS("None, i"), OLY_OUT(result), OLY_SPECS(""));
    show("mean of each row", oly_reshape(result, 8));

    mesh = oly_make_mesh("x=2, y=4");
    oly_shard_map_with(sum_of_rows, NULL, mesh, OLY_MANUAL(.axis_names = "x"), OLY_IN(square), OLY_SPECS("x"),
                       OLY_OUT(result), OLY_SPECS(""));
    show("sum of all rows", result);

    oly_array points = oly_reshape(oly_arange(8, OLY_FLOAT32), 4, 2), origin = oly_zeros(OLY_FLOAT32, 2);
    oly_vmap(distance, NULL, OLY_IN(points, origin), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(result), OLY_AXES_OF(0));
    show("distances of four points", result);
    oly_vmap_with(from_the_mean, NULL, OLY_BATCH(.axis_name = "points"), OLY_IN(result), OLY_AXES_OF(0),
                  OLY_OUT(result), OLY_AXES_OF(0));
    show("how far from their mean", result);
    return oly_finalize();
}
