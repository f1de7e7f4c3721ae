/* SPDX-License-Identifier: BSD-3-Clause */
/* Files for other programs: a wave on a sharded grid as a film. Writes into the folder given as its argument ("." by default);
 * docs/formats.md explains the files, and how to look at them. */
#include <olympus.h>
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

/* A place in the folder. */
static const char *in(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    const char *folder = argc > 1 ? argv[1] : ".";
    oly_mesh mesh = oly_make_mesh("i=2, j=-1");
    for (int frame = 0; frame < FRAMES; frame++)
        OLY_SCOPE
        {
            oly_array u = wave(mesh, 0.5 * frame);
            oly_write_frame(in(folder, "wave-%05d.png"), u, .number = frame, .low = -1, .high = 1,
                            .colours = "coolwarm", .bar = true);
        }
    if (oly_process_index() == 0)
        printf("wrote %d pictures\n", FRAMES);
    return oly_finalize();
}
