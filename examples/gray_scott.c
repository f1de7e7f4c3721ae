/* SPDX-License-Identifier: BSD-3-Clause */
/* Self-organising patterns of two substances: the Gray-Scott equations on a torus.
 *
 * u is fed and v decays; where they meet, v grows from u: u + 2 v -> 3 v. Both diffuse. A step takes
 *     u to u + du * around(u) - u v v + feed * (1 - u)
 *     v to v + dv * around(v) + u v v - (feed + kill) * v
 * where around() is the sum of the four neighbours less four times the cell itself; oly_roll shifts
 * cyclically. The two fields are the carries of one loop. The program contains no exchange: the planner inserts it, for
 * several steps at once.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/gray_scott [OPTION...]   (any ranks x devices; --help: the options)
 * Prints: from process 0, the sums of both substances, some cells, the number of exchanges; then the largest difference
 *         from a plain loop on one core.
 * Writes: a PNG image of v. */
#include <olympus.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 8 };

typedef struct settings {
    long size; /* cells along a side */
    int steps;
    float feed, kill;
    bool unchecked;  /* no comparison with a plain loop */
    const char *png; /* path of the image */
} settings;

static const float spreads_u = 0.16f, spreads_v = 0.08f;

/* -- the simulation -------------------------------------------------------------------------------------- */

/* u everywhere, and some squares of v. Traced, so that each device generates its own part. */
static void start(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    int64_t n = ((const settings *)user)->size, side = n / 16 + 1;
    oly_array i = oly_reshape(oly_arange(n, OLY_INT32), n, 1), j = oly_reshape(oly_arange(n, OLY_INT32), 1, n);
    oly_array middle =
        oly_logical_and(oly_lt(oly_abs(oly_sub(i, n / 2)), side), oly_lt(oly_abs(oly_sub(j, n / 2)), side));
    oly_array corner = oly_logical_and(oly_lt(i, side), oly_lt(j, 2 * side));
    oly_array there = oly_logical_or(middle, corner);
    out[0] = oly_where(there, 0.5, oly_ones(OLY_FLOAT32, n, n));
    out[1] = oly_where(there, 0.25, oly_zeros(OLY_FLOAT32, n, n));
}

static oly_array around(oly_array x)
{
    oly_array rows = oly_add(oly_roll(x, 1, 0), oly_roll(x, -1, 0));
    oly_array columns = oly_add(oly_roll(x, 1, 1), oly_roll(x, -1, 1));
    return oly_sub(oly_add(rows, columns), oly_mul(4, x));
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const settings *s = user;
    oly_array u = carry[0], v = carry[1], meet = oly_mul(oly_mul(u, v), v);
    carry[0] = oly_add(oly_sub(oly_add(u, oly_mul(spreads_u, around(u))), meet), oly_mul(s->feed, oly_sub(1, u)));
    carry[1] = oly_sub(oly_add(oly_add(v, oly_mul(spreads_v, around(v))), meet), oly_mul(s->feed + s->kill, v));
}

static void react(const oly_array *in, oly_array *out, void *user)
{
    const settings *s = user;
    memcpy(out, in, 2 * sizeof *in);
    oly_fori(0, s->steps, step, 2, out, user);
}

/* -- the same without any library, on one core ----------------------------------------------------------- */

static float around_cell(const float *x, long n, long i, long j)
{
    long up = (i + n - 1) % n, down = (i + 1) % n, left = (j + n - 1) % n, right = (j + 1) % n;
    return x[up * n + j] + x[down * n + j] + (x[i * n + left] + x[i * n + right]) - 4 * x[i * n + j];
}

static void plain(float *u, float *v, const settings *s)
{
    long n = s->size;
    size_t bytes = (size_t)(n * n) * sizeof *u;
    float *a = malloc(bytes), *b = malloc(bytes);
    if (!a || !b)
        exit(1);
    for (int k = 0; k < s->steps; k++) {
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                float p = u[i * n + j], q = v[i * n + j], meet = p * q * q;
                a[i * n + j] = p + spreads_u * around_cell(u, n, i, j) - meet + s->feed * (1 - p);
                b[i * n + j] = q + spreads_v * around_cell(v, n, i, j) + meet - (s->feed + s->kill) * q;
            }
        memcpy(u, a, bytes);
        memcpy(v, b, bytes);
    }
    free(a);
    free(b);
}

/* -- printing -------------------------------------------------------------------------------------------- */

static void report(oly_array u, oly_array v, int64_t exchanges, const settings *s)
{
    float sample[SAMPLES];
    char slice[96];
    long stride = (s->size - 1) / (SAMPLES - 1);
    snprintf(slice, sizeof slice, "%ld, :%ld:%ld", s->size / 2, (SAMPLES - 1) * stride + 1, stride);
    oly_process_allgather(oly_slice(v, slice), sample, sizeof sample);
    double sum_u = oly_item(oly_sum(oly_astype(u, OLY_FLOAT64))), sum_v = oly_item(oly_sum(oly_astype(v, OLY_FLOAT64)));
    if (oly_process_index() != 0)
        return;
    printf("Gray-Scott, %ld x %ld cells, %d steps: u %.2f, v %.2f\nsamples of v", s->size, s->size, s->steps, sum_u,
           sum_v);
    for (int k = 0; k < SAMPLES; k++)
        printf(" %.4f", sample[k]);
    printf("\n%lld exchanges for %d steps\n", (long long)exchanges, s->steps);
}

/* The plain loop runs on process 0. */
static void compare(const oly_array *first, const oly_array *last, const settings *s)
{
    size_t count = (size_t)(s->size * s->size), bytes = count * sizeof(float);
    float *expected[2], *got = malloc(bytes);
    for (int k = 0; k < 2; k++) {
        expected[k] = malloc(bytes);
        if (!expected[k] || !got)
            exit(1);
        oly_process_allgather(first[k], expected[k], bytes);
    }
    if (oly_process_index() == 0)
        plain(expected[0], expected[1], s);
    double largest = 0;
    for (int k = 0; k < 2; k++) {
        oly_process_allgather(last[k], got, bytes);
        for (size_t i = 0; i < count; i++)
            largest = fmax(largest, fabs((double)got[i] - expected[k][i]));
        free(expected[k]);
    }
    if (oly_process_index() == 0)
        printf("largest difference from a plain loop on one core: %.2g\n", largest);
    free(got);
}

/* -- starting -------------------------------------------------------------------------------------------- */

static void usage(FILE *file)
{
    fprintf(file, "usage: gray_scott [OPTION...]\n"
                  "  --size N       cells along a side (default 256)\n"
                  "  --steps S      time steps (default 2000)\n"
                  "  --feed F       how fast u is fed (default 0.037)\n"
                  "  --kill K       how fast v decays (default 0.06)\n"
                  "  --png PATH     the image (default build/gray_scott.png, or gray_scott.png where there is no "
                  "build)\n"
                  "  --no-check     no comparison with a plain loop on one core\n");
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

/* Not a number, if the text is none. */
static float decimal(const char *text)
{
    char *end;
    float x = strtof(text, &end);
    return end == text || *end ? NAN : x;
}

static settings options(int argc, char **argv)
{
    static const struct option known[] = {
        {"size", required_argument, NULL, 'n'}, {"steps", required_argument, NULL, 's'},
        {"feed", required_argument, NULL, 'f'}, {"kill", required_argument, NULL, 'k'},
        {"png", required_argument, NULL, 'o'},  {"no-check", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},       {0}};
    settings s = {.size = 256, .steps = 2000, .feed = 0.037f, .kill = 0.06f};
    s.png = access("build", W_OK) == 0 ? "build/gray_scott.png" : "gray_scott.png";
    bool bad = false;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'n': s.size = number(optarg, 32768); break;
        case 's': s.steps = (int)number(optarg, INT_MAX); break;
        case 'f': s.feed = decimal(optarg); break;
        case 'k': s.kill = decimal(optarg); break;
        case 'o': s.png = optarg; break;
        case 'u': s.unchecked = true; break;
        case 'h': usage(stdout); exit(0);
        default: bad = true;
        }
    }
    if (bad || s.size < SAMPLES || s.steps < 0 || !isfinite(s.feed) || !isfinite(s.kill) || optind < argc) {
        usage(stderr);
        exit(2);
    }
    return s;
}

/* A mesh over all devices, as square as their number allows. */
static oly_mesh square_mesh(void)
{
    int n = oly_device_count(), rows = 1;
    for (int k = 1; k * k <= n; k++)
        rows = n % k == 0 ? k : rows;
    char axes[64];
    snprintf(axes, sizeof axes, "i=%d, j=%d", n / rows, rows);
    return oly_make_mesh(axes);
}

int main(int argc, char **argv)
{
    settings s = options(argc, argv);
    oly_init(&argc, &argv);

    oly_sharding plane = oly_named(square_mesh(), "i, j"), shardings[] = {plane, plane};
    oly_array first[2] = {NULL, NULL}, last[2] = {NULL, NULL};
    oly_plan_costs costs;
    oly_call(oly_jit(start, 0, 2, .user = &s, .out_shardings = shardings), 0, NULL, OLY_OUT(first[0], first[1]));

    oly_fn f = oly_jit(react, 2, 2, .user = &s);
    oly_call(f, OLY_IN(first[0], first[1]), OLY_OUT(last[0], last[1]));
    oly_costs(&costs, f, first[0], first[1]);

    report(last[0], last[1], costs.collectives, &s);
    if (!s.unchecked)
        compare(first, last, &s);
    oly_write_png(s.png, last[1], 0, 0.4);
    if (oly_process_index() == 0)
        fprintf(stderr, "gray_scott: wrote %s\n", s.png);
    return oly_finalize();
}
