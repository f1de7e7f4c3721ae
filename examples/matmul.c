/* SPDX-License-Identifier: BSD-3-Clause */
/* A distributed matrix product: relu(x @ y) with the inner dimension split over devices.
 *
 * The mesh has two axes, a and b. x is split over both, y by rows over b, so that each device can multiply what
 * it holds; the planner inserts the sum of the partial products over b. The result is split over a only.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/matmul [--size N]    (any even number of devices; 16 make 8 x 2)
 * Prints: from process 0, which devices hold which rows of the result, its sharding, its smallest and largest
 *         element. */
#include <olympus.h>
#include <getopt.h>
#include <stdlib.h>

static bool lists_devices;

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static long size_option(int argc, char **argv)
{
    static const struct option known[] = {{"size", required_argument, NULL, 'n'},
                                          {"devices", no_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    const char *usage = "usage: matmul [--size N] [--devices]\n"
                        "  --size N   x is N x N/2, y is N/2 x N (default 4096)\n"
                        "  --devices  list the devices first\n";
    long n = 4096;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (o == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        lists_devices |= o == 'd';
        n = o == 'n' ? number(optarg, 1L << 20) : o == 'd' ? n : 0;
        if (n < 2)
            break;
    }
    if (n < 2 || optind < argc) {
        fputs(usage, stderr);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    long n = size_option(argc, argv);
    oly_init(&argc, &argv);
    bool speaker = oly_process_index() == 0;
    int devices = oly_device_count();
    if (devices % 2 != 0) {
        if (speaker)
            fprintf(stderr, "matmul needs an even number of devices, there are %d: try launch/olyrun -n 1 -d 8 %s\n",
                    devices, argv[0]);
        oly_finalize();
        return 1;
    }

    if (lists_devices && speaker)
        oly_print_devices();
    char axes[64];
    snprintf(axes, sizeof axes, "a=%d, b=2", devices / 2);
    oly_mesh mesh = oly_make_mesh(axes);
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, n, n / 2), oly_named(mesh, "a, b"));
    oly_array y = oly_device_put(oly_ones(OLY_FLOAT32, n / 2, n), oly_named(mesh, "b, None"));

    oly_array z = oly_relu(oly_matmul(x, y));

    double low = oly_item(oly_min(z)), high = oly_item(oly_max(z)); /* all processes take part in these */
    if (speaker) {
        oly_visualize(stdout, z);
        oly_printf("\n%S\n", oly_sharding_of(z));
        oly_printf("%T: elements from %g to %g\n", z, low, high);
    }
    return oly_finalize();
}
