/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs on several processes need around their arrays: which part is whose, arrays whose shards a function makes, one
 * process's value on all, each process's value on all, meshes over nodes. Process 0 prints the same text however the devices are distributed.
 *     launch/olyrun -n 4 -d 2 build/examples/processes */
#include <olympus.h>
#include <stdlib.h>

enum { ROWS = 10, COLUMNS = 6 };

/* Fills one box of the matrix with a[i][j] = 10 i + j. A real program would read this box from its file. */
static oly_status ten_i_plus_j(const oly_index_box *box, void *memory, void *user)
{
    float *a = memory;
    (void)user;
    for (int64_t i = 0; i < box->extent[0]; i++)
        for (int64_t j = 0; j < box->extent[1]; j++)
            *a++ = (float)(10 * (box->start[0] + i) + box->start[1] + j);
    return OLY_OK;
}

static oly_array from_a_function(oly_sharding sharding)
{
    oly_array a = oly_from_callback(sharding, OLY_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS}, ten_i_plus_j, NULL);
    oly_array total = oly_sum(a);
    if (oly_process_index() == 0)
        oly_printf("a matrix made by a function: %T, total %A\n", a, total);
    return a;
}

/* The same matrix, each process giving its whole part: what a program with its own reader does. */
static void from_own_parts(oly_sharding sharding, oly_array same)
{
    int64_t shape[] = {ROWS, COLUMNS};
    oly_index_box mine = {.rank = 2};
    float part[ROWS * COLUMNS];
    if (oly_sharding_box(sharding, 2, shape, -1, &mine) != OLY_OK)
        return;
    ten_i_plus_j(&mine, part, NULL);
    oly_array a = oly_from_local(sharding, OLY_FLOAT32, 2, shape, part, mine.extent);
    oly_array differences = oly_sum(oly_ne(a, same));
    if (oly_process_index() == 0)
        oly_printf("made of the parts of the processes: %A elements differ\n", differences);
}

/* Who holds what, as any process can tell of any other without asking it. */
static void print_parts(oly_sharding sharding)
{
    int64_t shape[] = {ROWS, COLUMNS};
    int ids[64], boxes = 0, devices = 0;
    for (int process = 0; process < oly_process_count(); process++) {
        boxes += oly_sharding_boxes(sharding, 2, shape, process, 0, NULL);
        devices += oly_local_devices(process, 64, ids);
    }
    if (oly_process_index() != 0)
        return;
    printf("%d devices hold %d boxes\n", devices, boxes);
    for (int k = 0; k < 3; k++) {
        oly_index_box b;
        oly_device d = oly_get_device(k);
        oly_sharding_device_box(sharding, 2, shape, d, &b);
        long long row = b.start[0], column = b.start[1], rows = b.extent[0], columns = b.extent[1];
        oly_printf("%D holds rows %lld to %lld and columns %lld to %lld\n", d, row, row + rows, column,
                   column + columns);
    }
}

/* Values that only one process knows, or that each has its own of. */
static void share_values(void)
{
    int me = oly_process_index(), n = oly_process_count();
    char name[16] = "";
    if (me == 0)
        snprintf(name, sizeof name, "run-%d", 42); /* say, drawn by process 0 */
    oly_broadcast_host(name, sizeof name);
    oly_array weights = oly_from_host((float[]){(float)me, 1, 2}, OLY_FLOAT32, 1, (int64_t[]){3});
    oly_array common = oly_broadcast_one_to_all(weights, .is_source = me == n - 1); /* the last process's */
    oly_assert_equal(common, "the weights after the broadcast");
    oly_array first = oly_sub(oly_slice(common, "0"), n - 1);
    if (me == 0)
        oly_printf("every process knows %s; the first weight is that of the last process: off by %A\n", name, first);

    float *all = malloc(sizeof *all * 3 * (size_t)n);
    int *numbers = malloc(sizeof *numbers * (size_t)n), in_order = 0;
    oly_process_allgather_stacked(weights, all, sizeof *all * 3 * (size_t)n); /* [n][3] */
    for (int r = 0; r < n; r++)
        in_order += all[3 * r] == (float)r;
    oly_process_allgather_tiled(weights, all, sizeof *all * 3 * (size_t)n); /* [3 n] */
    oly_allgather_host(&me, sizeof me, numbers);
    for (int r = 0; r < n; r++)
        in_order += numbers[r] == r && all[3 * r] == (float)r;
    if (me == 0)
        printf("each process's values, in order: %s\n", in_order == 2 * n ? "yes" : "no");
    free(all);
    free(numbers);
}

/* An array on three of the devices: processes without any of them have its type and sharding, and no shards. */
static void use_some_devices(void)
{
    oly_mesh three = oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){3}, (int[]){5, 0, 6});
    oly_array a = from_a_function(oly_named(three, "x"));
    oly_array doubled = oly_mul(a, 2); /* harmless where there is nothing to compute */
    int here = oly_shard_count(doubled), all[64], total = 0;
    oly_allgather_host(&here, sizeof here, all);
    for (int r = 0; r < oly_process_count(); r++)
        total += all[r];
    if (oly_process_index() == 0)
        oly_printf("on three devices: %T, %d shards on all processes together\n", doubled, total);
}

/* Outer axes over nodes, inner ones within a node: collectives along inner axes stay off the network. */
static void use_nodes(void)
{
    oly_mesh levels = oly_make_hybrid_mesh("data=-1", "model=-1");
    if (oly_process_index() == 0)
        oly_printf("nodes: %d, %M, the last device on node %d\n", oly_node_count(), levels,
                   oly_device_node(oly_mesh_device(levels, oly_device_count() - 1)));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() != 8) {
        fprintf(stderr, "processes: needs 8 devices, there are %d\n", oly_device_count());
        oly_finalize();
        return 1;
    }
    oly_sharding sharding = oly_named(oly_make_mesh("i=4, j=2"), "i, j");
    oly_array a = from_a_function(sharding);
    from_own_parts(sharding, a);
    print_parts(sharding);
    share_values();
    use_some_devices();
    use_nodes();
    return oly_finalize();
}
