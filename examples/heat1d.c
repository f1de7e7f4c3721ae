/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat equation on a rod, written as three slices of an array. heat1d_mpi.c is the same program by hand.
 *
 * A step takes each inner cell to half of itself plus a quarter of each neighbour; the two end cells keep their
 * temperature. The rod is split over all devices. The planner determines which cells a device needs from its
 * neighbours and when to exchange them.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/heat1d [--size CELLS] [--steps STEPS]       (any ranks x devices)
 * Prints: from process 0, the sum of the temperatures and eleven of them along the rod (heat1d_mpi prints the same
 *         lines), then the largest difference from a plain loop on one core. */
#include <olympus.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 11 };

/* u[i] at the start: arbitrary numbers that both programs can generate. */
static float initial(long i)
{
    return (float)(i * 37 % 101) / 101.f;
}

/* -- the simulation -------------------------------------------------------------------------------------- */
static oly_array heat_step(oly_array u)
{
    oly_array mid = oly_slice(u, "1:-1"), left = oly_slice(u, ":-2"), right = oly_slice(u, "2:");
    oly_array next = oly_add(oly_mul(0.5, mid), oly_add(oly_mul(0.25, left), oly_mul(0.25, right)));
    return oly_update(u, "1:-1", next);
}

static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = heat_step(carry[0]);
}

static void simulate(const oly_array *in, oly_array *out, void *user)
{
    const int *steps = user;
    out[0] = in[0];
    oly_fori(0, *steps, body, 1, out, NULL);
}

/* -- the same without any library, on one core ----------------------------------------------------------- */
static void plain(float *u, long n, int steps)
{
    for (int s = 0; s < steps; s++) {
        float left = u[0];
        for (long i = 1; i < n - 1; i++) {
            float next = 0.5f * u[i] + (0.25f * left + 0.25f * u[i + 1]);
            left = u[i];
            u[i] = next;
        }
    }
}

/* -- printing -------------------------------------------------------------------------------------------- */

/* The two lines that heat1d_mpi prints too. All processes take part. */
static void report(oly_array u, int steps)
{
    float sample[SAMPLES];
    char slice[64];
    long n = (long)oly_dim(u, 0), stride = (n - 1) / (SAMPLES - 1);
    snprintf(slice, sizeof slice, ":%ld:%ld", (SAMPLES - 1) * stride + 1, stride);
    oly_process_allgather(oly_slice(u, slice), sample, sizeof sample);
    double sum = oly_item(oly_sum(oly_astype(u, OLY_FLOAT64)));
    if (oly_process_index() != 0)
        return;
    printf("1-D heat equation, %ld cells, %d steps: sum %.4f\nsamples", n, steps, sum);
    for (int k = 0; k < SAMPLES; k++)
        printf(" %.4f", sample[k]);
    printf("\n");
}

static void compare(oly_array u, float *expected, int steps)
{
    long n = (long)oly_dim(u, 0);
    size_t bytes = (size_t)n * sizeof(float);
    float *got = malloc(bytes);
    double largest = 0;
    if (!got)
        exit(1);
    oly_process_allgather(u, got, bytes);
    plain(expected, n, steps);
    for (long i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)got[i] - expected[i]));
    if (oly_process_index() == 0)
        printf("largest difference from a plain loop on one core: %.2g\n", largest);
    free(got);
}

static void usage(FILE *file)
{
    fprintf(file, "usage: heat1d [--size CELLS] [--steps STEPS]\n"
                  "  --size CELLS    cells between the two fixed ends (default 100)\n"
                  "  --steps STEPS   time steps (default 100)\n");
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static void options(int argc, char **argv, long *cells, int *steps)
{
    static const struct option known[] = {{"size", required_argument, NULL, 'n'},
                                          {"steps", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'n': *cells = number(optarg, 1L << 40); break;
        case 's': *steps = (int)number(optarg, INT_MAX); break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (*cells < SAMPLES || *steps < 0 || optind < argc) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    long cells = 100;
    int steps = 100;
    options(argc, argv, &cells, &steps);
    oly_init(&argc, &argv);

    int64_t n = cells + 2;
    float *start = malloc((size_t)n * sizeof *start);
    if (!start)
        return 1;
    for (long i = 0; i < n; i++)
        start[i] = initial(i);

    char axes[32];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    oly_array u = oly_device_put(oly_from_host(start, OLY_FLOAT32, 1, &n), oly_named(oly_make_mesh(axes), "x"));

    oly_fn sim = oly_jit(simulate, 1, 1, .user = &steps);
    oly_call(sim, OLY_IN(u), OLY_OUT(u)); /* u is donated: updated in place */

    report(u, steps);
    compare(u, start, steps);
    free(start);
    return oly_finalize();
}
