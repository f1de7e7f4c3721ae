/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: an array that several processes save as one file, which NumPy reads, and load again with another sharding; several
 * arrays in one file; a raw volume as instruments write them; a table as text. docs/files.md says more.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/files [FOLDER]      (eight devices, on any number of ranks)
 * Prints: from process 0, what was loaded.
 * Writes: FOLDER (default "."): wave.npy, model.npz, volume.raw and table.csv, which it removes unless a folder is given. */
#include <olympus.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder;

static const char *in_folder(const char *name)
{
    static char path[2][4096];
    static int k;
    k = !k;
    snprintf(path[k], sizeof path[k], "%s/%s", folder ? folder : ".", name);
    return path[k];
}

static void print_of_first(const char *what, oly_array x)
{
    char type[64];
    double sum = oly_item(oly_sum(x));
    oly_typeof(x, type, sizeof type);
    if (oly_process_index() == 0)
        oly_printf("%s: %s, sharding %S, sum %g\n", what, type, oly_sharding_of(x), sum);
}

/* numpy.load("wave.npy") */
static void npy(oly_mesh mesh)
{
    oly_array x = oly_device_put(oly_reshape(oly_arange(6 * 8, OLY_FLOAT32), 6, 8), oly_named(mesh, "i, j"));
    oly_save_npy(in_folder("wave.npy"), x);
    print_of_first("rows", oly_load_npy(in_folder("wave.npy"), oly_named(mesh, "(i,j)")));
    print_of_first("columns", oly_load_npy(in_folder("wave.npy"), oly_named(mesh, "None, (i,j)")));
}

/* numpy.load("model.npz")["weights"] */
static void npz(oly_mesh mesh)
{
    oly_array weights = oly_device_put(oly_reshape(oly_arange(15, OLY_FLOAT32), 3, 5), oly_named(mesh, "None, i"));
    oly_array bias = oly_device_put(oly_arange(5, OLY_FLOAT32), oly_named(mesh, "i")), w = NULL, b = NULL;
    oly_sharding placed[] = {oly_named(mesh, "j, i"), NULL};
    char names[64];
    oly_save_npz(in_folder("model.npz"), OLY_NAMES("weights", "bias"), OLY_IN(weights, bias));
    oly_load_npz(in_folder("model.npz"), OLY_NAMES("weights", "bias"), OLY_OUT(w, b), .shardings = placed);
    print_of_first("weights", w);
    print_of_first("bias", b);
    oly_npz_names(in_folder("model.npz"), names, sizeof names);
    if (oly_process_index() == 0)
        printf("model.npz has %s\n", names);
}

/* 512 bytes of something else, then 16-bit numbers, the most significant byte first. */
static void raw(oly_mesh mesh)
{
    const int64_t shape[] = {4, 6, 5};
    oly_array volume = oly_device_put(oly_reshape(oly_arange(120, OLY_UINT16), 4, 6, 5), oly_named(mesh, "i"));
    oly_save_raw(in_folder("volume.raw"), 512, volume, .big_endian = true);
    print_of_first("volume", oly_load_raw(in_folder("volume.raw"), 512, OLY_UINT16, 3, shape, oly_named(mesh, "j, i"),
                                          .big_endian = true));
}

/* A table of numbers as text. */
static void csv(oly_mesh mesh)
{
    oly_array table =
        oly_device_put(oly_div(oly_reshape(oly_arange(6, OLY_FLOAT32), 3, 2), 4), oly_named(mesh, "i, j"));
    oly_save_csv(in_folder("table.csv"), table, .header = "time,height");
    print_of_first("table", oly_load_csv(in_folder("table.csv"), OLY_FLOAT32, oly_named(mesh, "i"), .header_lines = 1));
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-') {
        bool asked = strcmp(argv[1], "--help") == 0;
        fprintf(asked ? stdout : stderr,
                "usage: files [FOLDER]: writes its files there; without it, in \".\", and removes them\n");
        return asked ? 0 : 2;
    }
    oly_init(&argc, &argv);
    folder = argc > 1 ? argv[1] : NULL;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    npy(mesh);
    npz(mesh);
    raw(mesh);
    csv(mesh);
    oly_sync("read");
    if (!folder && oly_process_index() == 0) {
        unlink(in_folder("wave.npy"));
        unlink(in_folder("model.npz"));
        unlink(in_folder("volume.raw"));
        unlink(in_folder("table.csv"));
    }
    return oly_finalize();
}
