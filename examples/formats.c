/* SPDX-License-Identifier: BSD-3-Clause */
/* Files for other programs: a wave on a sharded grid as a film, for ParaView, and in HDF5. Writes into the folder given as its argument ("." by default);
 * docs/formats.md explains the files, and how to look at them. */
#include <olympus.h>
#include <string.h>
#include <stdio.h>

enum { ROWS = 90, COLUMNS = 120, FRAMES = 8 };

/* Circular waves around the middle, at a time. */
static oly_array wave(oly_mesh mesh, double time)
{
    oly_array y = oly_mul(oly_sub(oly_reshape(oly_arange(ROWS, OLY_FLOAT32), ROWS, 1), ROWS / 2), 0.2);
    oly_array x = oly_mul(oly_sub(oly_reshape(oly_arange(COLUMNS, OLY_FLOAT32), 1, COLUMNS), COLUMNS / 2), 0.2);
    oly_array radius = oly_sqrt(oly_add(oly_mul(y, y), oly_mul(x, x)));
    oly_array height = oly_div(oly_cos(oly_sub(radius, time)), oly_add(1, oly_mul(0.3, radius)));
    return oly_device_put(height, oly_named(mesh, "i, j"));
}

/* How steep it is, as vectors: the components along x and y, and none along z. */
static oly_array slope(oly_array u)
{
    oly_array none = oly_mul(0, u);
    oly_array y = oly_update(none, "1:-1", oly_sub(oly_slice(u, "2:"), oly_slice(u, ":-2")));
    oly_array x = oly_update(none, ":, 1:-1", oly_sub(oly_slice(u, ":, 2:"), oly_slice(u, ":, :-2")));
    return oly_stack(2, x, y, none);
}

/* Places in the folder; the last few are kept. */
static const char *in(const char *folder, const char *name)
{
    static char path[4][4096];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

/* The same waves as one data set with a row for each time, and their description for ParaView. Returns the last one, read back; NULL in a
 * build without HDF5. */
static oly_array series(oly_mesh mesh, const char *folder)
{
    const char *file = in(folder, "wave.h5");
    const double spacing[] = {0.2, 0.2};
    if (!oly_hdf5_available())
        return NULL;
    for (int frame = 0; frame < FRAMES; frame++)
        OLY_SCOPE
        {
            oly_array u = wave(mesh, 0.5 * frame);
            oly_array time = oly_device_put(oly_mul(oly_ones(OLY_FLOAT64), 0.5 * frame), oly_named(mesh, ""));
            oly_save_hdf5(file, "fields/height", u, .append = true, .fresh = frame == 0);
            oly_save_hdf5(file, "time", time, .append = true);
            if (frame == FRAMES - 1)
                oly_save_hdf5(file, "high", oly_gt(u, 0));
        }
    oly_hdf5_set_text(file, "fields/height", "unit", "m");
    oly_hdf5_set_numbers(file, "", "spacing", 2, spacing);
    oly_save_xdmf(in(folder, "wave.xdmf"), file, "fields/height", .spacing = spacing);
    char unit[8];
    double read[2];
    if (oly_hdf5_get_text(file, "fields/height", "unit", unit, sizeof unit) != 1 ||
        oly_hdf5_get_numbers(file, "", "spacing", 2, read) != 2)
        return NULL;
    return oly_slice(oly_load_hdf5(file, "fields/height", oly_named(mesh, "None, i, j")), "-1");
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '-') {
        bool asked = strcmp(argv[1], "--help") == 0;
        fprintf(asked ? stdout : stderr, "usage: formats [FOLDER]: writes its files there (default .)\n");
        return asked ? 0 : 2;
    }
    oly_init(&argc, &argv);
    const char *folder = argc > 1 ? argv[1] : ".";
    oly_mesh mesh = oly_make_mesh("i=2, j=-1");
    const double spacing[] = {0.2, 0.2};
    for (int frame = 0; frame < FRAMES; frame++)
        OLY_SCOPE
        {
            oly_array u = wave(mesh, 0.5 * frame);
            oly_write_frame(in(folder, "wave-%05d.png"), u, .number = frame, .low = -1, .high = 1,
                            .colours = "coolwarm", .bar = true);
            oly_save_vti(in(folder, "wave-%05d.vti"), "height, slope", OLY_IN(u, slope(u)), .number = frame,
                         .spacing = spacing, .time = 0.5 * frame, .series = in(folder, "wave.pvd"));
        }
    oly_array last = series(mesh, folder);
    oly_array u = oly_load_vti(in(folder, "wave-00007.vti"), "height", oly_named(mesh, "j, i"));
    oly_array most = oly_max(u);
    oly_save_vti(in(folder, "pieces.pvti"), "height", OLY_IN(u), .spacing = spacing);
    if (last && oly_item(oly_all(oly_eq(last, oly_device_put(u, oly_sharding_of(last))))) != 1)
        oly_printf("HDF5 and VTK differ\n");
    if (oly_process_index() == 0)
        oly_printf("wrote %d pictures and images; the last wave is %A high\n", FRAMES, most);
    return oly_finalize();
}
