/* SPDX-License-Identifier: BSD-3-Clause */
/* Saving sharded arrays and restoring them on other devices: every process writes the parts it holds, and reads the parts it will
 * hold.
 *
 * An array is generated in place, so that no process ever has all of it; it is saved, twice, the second time while the program goes
 * on; restored on another mesh with other parts, and again on half of the devices. A run on any other number of ranks and devices
 * reads the same files: --restore. docs/checkpoints.md explains the rest.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/checkpoint [DIRECTORY]      (eight devices, on any number of ranks)
 *         launch/olyrun -n 3 -d 1 build/examples/checkpoint --restore DIRECTORY      (any ranks x devices)
 * Prints: from process 0, the placements of the array, and whether its elements are unchanged.
 * Writes: DIRECTORY (default build/checkpoint, or checkpoint where there is no build). */
#include <olympus.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 1000, COLUMNS = 37, SEED = 7 };

/* The array that is saved, wherever it is wanted: random numbers do not depend on the placement. */
static oly_array original(oly_sharding place)
{
    return oly_random_normal_sharded(oly_random_key(SEED), OLY_FLOAT32, place, ROWS, COLUMNS);
}

static void save(const char *directory)
{
    oly_array x = original(oly_named(oly_make_mesh("x=4, y=2"), "x, y")), total = oly_sum(x);
    oly_save(directory, OLY_NAMES("x", "total"), OLY_IN(x, total), .step = 100);
    oly_save(directory, OLY_NAMES("x", "total"), OLY_IN(x, total), .step = 200, .async = true, .text = "the second");
    oly_assign(&total, oly_mul(total, 2)); /* meanwhile: what is being saved does not change */
    oly_save_wait();
    if (oly_process_index() == 0)
        oly_printf("saved from %S\n", oly_sharding_of(x));
}

/* Rows on as many devices as there are. */
static oly_sharding everywhere(void)
{
    char axes[32];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    return oly_named(oly_make_mesh(axes), "x");
}

static void restore(const char *directory, oly_sharding place)
{
    oly_array x = NULL, total = NULL;
    oly_sharding places[] = {place, NULL};
    char text[32];
    int64_t step = -1;
    oly_restore(directory, OLY_NAMES("x", "total"), OLY_OUT(x, total), .shardings = places, .step = &step, .text = text,
                .text_size = sizeof text);
    double different = oly_item(oly_sum(oly_ne(oly_device_put(x, everywhere()), original(everywhere()))));
    if (oly_process_index() == 0)
        oly_printf("%S: step %" PRId64 ", %s, total %.3f: %g elements differ\n", oly_sharding_of(x), step, text,
                   oly_item(total), different);
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "--restore") != 0) {
        bool asked = strcmp(argv[1], "--help") == 0;
        fprintf(asked ? stdout : stderr, "usage: checkpoint [FOLDER], or checkpoint --restore FOLDER\n");
        return asked ? 0 : 2;
    }
    oly_init(&argc, &argv);
    bool only_restore = argc > 2 && strcmp(argv[1], "--restore") == 0;
    const char *usual = access("build", W_OK) == 0 ? "build/checkpoint" : "checkpoint";
    const char *directory = only_restore ? argv[2] : argc > 1 ? argv[1] : usual;
    if (!only_restore && oly_device_count() != 8) {
        fprintf(stderr, "checkpoint: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 %s\n",
                oly_device_count(), argv[0]);
        oly_finalize();
        return 1;
    }
    if (only_restore) {
        restore(directory, everywhere());
        return oly_finalize();
    }
    save(directory);
    if (oly_latest_step(directory) != 200)
        fprintf(stderr, "checkpoint: %s has another checkpoint, too\n", directory);
    restore(directory, oly_named(oly_make_mesh("a=2, b=4"), "b, a"));
    restore(directory, oly_named(oly_make_mesh("x=4, y=2"), "None, (y,x)"));
    restore(directory, oly_named(oly_make_mesh("half=4"), "half"));
    restore(directory, oly_single_device(oly_get_device(0)));
    oly_sync("restored"); /* nobody ends before all have read */
    return oly_finalize();
}
