/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays: making and reshaping them, moving elements, reading and writing by index, sorting.
 *
 * Every line of output is an expression of this file and its value. x and grid are split over all devices: the results are
 * the same on any number of them.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/arrays      (any ranks, any devices)
 * Prints: from process 0, expressions and their values. */
#include <olympus.h>

static oly_mesh mesh;
static oly_sharding split; /* dimension 0 over all devices */

/* Prints an expression and its value, gathered on every process. */
#define SHOW(...) show(#__VA_ARGS__, __VA_ARGS__)
static void show(const char *what, oly_array x)
{
    oly_array whole = oly_device_put(x, oly_named(mesh, ""));
    if (oly_process_index() == 0)
        oly_printf(oly_rank(x) > 1 ? "%s =\n%A\n" : "%s = %A\n", what, whole);
}

static void title(const char *text)
{
    if (oly_process_index() == 0)
        printf("-- %s\n", text);
}

static void making(void)
{
    title("making arrays");
    SHOW(oly_arange_range(1, 2, 0.25, OLY_FLOAT32));
    SHOW(oly_linspace(0, 1, 5, OLY_FLOAT32));
    SHOW(oly_arange_sharded(6, OLY_INT32, split)); /* every device generates its own part */
    SHOW(oly_full_sharded(oly_operand_int(7), OLY_INT32, split, 1, (const int64_t[]){3}));
    SHOW(oly_full_like(oly_arange(4, OLY_INT32), 5));
    SHOW(oly_iota(OLY_INT32, 1, 2, 3)); /* the index along dimension 1 */
    SHOW(oly_eye(3, 3, 0, OLY_INT32));
    SHOW(oly_tri(3, 3, 0, OLY_INT32));
}

static void shapes(oly_array x, oly_array grid)
{
    title("other shapes");
    SHOW(oly_ravel(grid));
    SHOW(oly_atleast_2d(x));
    SHOW(oly_squeeze(oly_expand_dims(x, 1)));
    SHOW(oly_swapaxes(grid, 0, 1));
    SHOW(oly_moveaxis(oly_reshape(x, 2, 2, 2), 0, -1));
    SHOW(oly_stack(1, x, oly_neg(x)));
    oly_array halves[2];
    oly_split_evenly(x, 2, 0, halves);
    SHOW(halves[1]);
    const int64_t shape[] = {3, 2};
    const int first[] = {0}; /* dimension 0 of the operand becomes dimension 0 of the result */
    oly_array small = oly_arange(3, OLY_INT32);
    SHOW(oly_broadcast_in_dim(small, 2, shape, 1, first));
    /* The sharding of the result may be given; on Auto axes the planner could also choose it. */
    SHOW(oly_broadcast_in_dim_sharded(small, split, 2, shape, 1, first));
    SHOW(oly_broadcast_sharded(small, split, 2, 3));
    SHOW(oly_reshape_sharded(grid, split, 4, 3));
}

static void moving(oly_array x, oly_array grid)
{
    title("elements elsewhere, and more of them");
    SHOW(oly_flip(x));
    SHOW(oly_rev(grid, 0));
    SHOW(oly_roll(x, 3, 0)); /* only elements that cross a border between devices move */
    SHOW(oly_roll_axes(grid, 2, (const int64_t[]){1, 1}, (const int[]){0, 1}));
    SHOW(oly_index_in_dim(x, -1, 0)); /* with C numbers, along one of several dimensions */
    SHOW(oly_slice_in_dim(x, 1, 6, 2, 0));
    SHOW(oly_tile(oly_slice(x, ":3"), 2));
    SHOW(oly_repeat(oly_slice(x, ":3"), 2, 0));
    SHOW(oly_pad(oly_slice(x, ":3"), -1, (const int64_t[]){2}, (const int64_t[]){0}, (const int64_t[]){1}));
    SHOW(oly_pad_mode(oly_slice(x, ":3"), "reflect", (const int64_t[]){2}, (const int64_t[]){2}));
    SHOW(oly_diff(oly_square(x), 1, 0));
    title("matrices");
    SHOW(oly_tril(grid, 0));
    SHOW(oly_triu(grid, 1));
    SHOW(oly_diag(oly_slice(x, ":3"), 0));
    SHOW(oly_diagonal(grid));
    SHOW(oly_trace(grid));
}

static void indexing(oly_array x, oly_array grid)
{
    title("reading by index");
    oly_array i = oly_from_host((const int32_t[]){2, 0, -1}, OLY_INT32, 1, (const int64_t[]){3});
    SHOW(oly_take(x, i, 0, NULL));
    SHOW(oly_take(x, 99, 0, "clip"));
    SHOW(oly_at_get(grid, OLY_INDEXES(i, 1)));
    SHOW(oly_take_along_axis(grid, oly_argsort(grid, 1, .descending = true), 1, NULL));
    SHOW(oly_dynamic_slice(x, OLY_INDEXES(oly_max(i)), OLY_EXTENTS(3))); /* the start is computed */

    title("writing by index: copies of x");
    SHOW(oly_at_set(x, OLY_INDEXES(i), 50));
    SHOW(oly_at_add(x, OLY_INDEXES(i), 50));
    SHOW(oly_at_mul(x, OLY_INDEXES(i), 50));
    SHOW(oly_at_min(x, OLY_INDEXES(i), 1));
    SHOW(oly_at_max(x, OLY_INDEXES(i), 5));
    SHOW(oly_dynamic_update_slice(x, oly_zeros(OLY_INT32, 2), OLY_INDEXES(3)));

    title("by value");
    oly_array kind = oly_from_host((const int32_t[]){0, 1, 0, 2, 2, 0, 1, 2}, OLY_INT32, 1, (const int64_t[]){8});
    SHOW(oly_segment_sum(x, kind, 3)); /* sums of the elements of each kind */
    SHOW(oly_bincount(kind, 4));       /* the number of elements of each kind */
    SHOW(oly_one_hot(oly_slice(kind, ":4"), 3, OLY_INT32, -1));
}

static void sorting(void)
{
    title("sorting");
    oly_array y =
        oly_device_put(oly_from_host((const float[]){3, 1, 2, 5, 4, 1}, OLY_FLOAT32, 1, (const int64_t[]){6}), split);
    SHOW(y);
    SHOW(oly_sort(y, 0));
    SHOW(oly_argsort(y, 0));
    SHOW(oly_argmax(y));
    SHOW(oly_argmin(y));
    oly_array values, places, together[2];
    oly_top_k(y, 2, &values, &places);
    SHOW(values);
    SHOW(places);
    oly_sort_together(2, (const oly_array[]){y, oly_arange(6, OLY_INT32)}, 0, 1, together);
    SHOW(together[1]); /* the numbers 0 to 5 in the order that sorts y */
    SHOW(oly_searchsorted(oly_sort(y, 0), 2.5, "left"));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    char axis[32];
    snprintf(axis, sizeof axis, "x=%d", oly_device_count());
    mesh = oly_make_mesh(axis);
    split = oly_named(mesh, "x");

    oly_array x = oly_device_put(oly_arange(8, OLY_INT32), split);
    oly_array grid = oly_device_put(oly_reshape(oly_arange(12, OLY_INT32), 3, 4), split);
    making();
    shapes(x, grid);
    moving(x, grid);
    indexing(x, grid);
    sorting();
    return oly_finalize();
}
