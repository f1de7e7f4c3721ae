/* SPDX-License-Identifier: BSD-3-Clause */
/* Saving a sharded array and restoring it on other devices: every process writes the parts it holds to their places in one
 * file, and reads the parts it will hold.
 *
 * An array is generated in place, so that no process ever has all of it; it is saved, restored on another mesh with other
 * parts, and again on half of the devices. A part held by several devices is written by the first one. OLY_FOR_EACH_SHARD
 * visits what this process holds, oly_sharding_shard says what any device will hold, oly_from_shards assembles arrays of single
 * devices, and oly_sync ensures that nobody reads before all have written.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/checkpoint [FILE]      (eight devices, on any number of ranks)
 * Prints: from process 0, the placements of the array, and whether its elements are unchanged.
 * Writes: FILE, or a temporary file that it removes. */
#include <olympus.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 1000, COLUMNS = 37 };

static const int64_t shape[] = {ROWS, COLUMNS};

static void stop(const char *what, const char *path)
{
    fprintf(stderr, "checkpoint: cannot %s %s\n", what, path);
    exit(1);
}

/* -- a box of the array and its place in the file: row by row ---------------------------------------------------------------- */
static void move_box(int file, bool writing, char *memory, const int64_t *start, const int64_t *extent)
{
    size_t line = (size_t)extent[1] * sizeof(float);
    for (int64_t i = 0; i < extent[0]; i++) {
        off_t at = (off_t)(((start[0] + i) * COLUMNS + start[1]) * (int64_t)sizeof(float));
        ssize_t moved = writing ? pwrite(file, memory, line, at) : pread(file, memory, line, at);
        if (moved != (ssize_t)line)
            stop(writing ? "write" : "read", "all of the file");
        memory += line;
    }
}

static void save(const char *path, oly_array x)
{
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    if (file < 0)
        stop("open", path);
    OLY_SCOPE
    {
        OLY_FOR_EACH_SHARD(s, x)
        if (s.replica == 0)
            move_box(file, true, (char *)s.memory, s.start, s.extent);
    }
    close(file);
    oly_sync("saved");
}

static oly_array restore(const char *path, oly_sharding sharding)
{
    oly_array shards[64], whole = NULL;
    oly_mesh mesh = oly_sharding_mesh(sharding);
    int n = 0, file = open(path, O_RDONLY);
    if (file < 0)
        stop("open", path);
    OLY_SCOPE
    {
        for (int position = 0; position < oly_mesh_device_count(mesh); position++) {
            int64_t start[2], extent[2];
            if (!oly_device_is_local(oly_mesh_device(mesh, position)))
                continue;
            oly_sharding_shard(sharding, 2, shape, position, start, extent);
            float *memory = malloc((size_t)(extent[0] * extent[1]) * sizeof *memory + 1);
            if (!memory)
                stop("hold", "a part");
            move_box(file, false, (char *)memory, start, extent);
            oly_array part = oly_from_host(memory, OLY_FLOAT32, 2, extent);
            shards[n++] = oly_device_put(part, oly_single_device(oly_mesh_device(mesh, position)));
            free(memory);
        }
        whole = oly_keep(oly_from_shards(sharding, OLY_FLOAT32, 2, shape, n, shards));
    }
    close(file);
    return whole;
}

/* -- the program ------------------------------------------------------------------------------------------------------------- */
static void report(oly_array saved, oly_array restored)
{
    oly_array there =
        oly_device_put(restored, oly_sharding_of(saved)); /* to the placement of the first: any sharding to any other */
    double different = oly_item(oly_sum(oly_ne(there, saved)));
    if (oly_process_index() == 0)
        oly_printf("%S: %g elements differ\n", oly_sharding_of(restored), different);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() != 8) {
        fprintf(stderr, "checkpoint: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 %s\n",
                oly_device_count(), argv[0]);
        oly_finalize();
        return 1;
    }
    char path[4096];
    const char *usual = access("build", W_OK) == 0 ? "build/checkpoint.tmp" : "checkpoint.tmp";
    snprintf(path, sizeof path, "%s", argc > 1 ? argv[1] : usual);
    oly_mesh grid = oly_make_mesh("x=4, y=2");
    oly_array x = oly_random_normal_sharded(oly_random_key(7), OLY_FLOAT32, oly_named(grid, "x, y"), ROWS, COLUMNS);
    save(path, x);
    if (oly_process_index() == 0)
        oly_printf("saved from %S\n", oly_sharding_of(x));

    report(x, restore(path, oly_named(oly_make_mesh("a=2, b=4"), "b, a")));
    report(x, restore(path, oly_named(grid, "None, (y,x)")));
    report(x, restore(path, oly_named(oly_make_mesh("half=4"), "half")));
    report(x, restore(path, oly_single_device(oly_get_device(0))));
    oly_sync("restored");
    if (argc < 2 && oly_process_index() == 0)
        unlink(path);
    return oly_finalize();
}
