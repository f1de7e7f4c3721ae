/* SPDX-License-Identifier: BSD-3-Clause */
/* Light in a box with a glass disk in it: Maxwell's equations on a staggered grid, as Yee wrote them.
 *
 * ez is defined on the points of an n x n grid, hx and hy on the midpoints of its edges, so there is one hx less in every row
 * and one hy less in every column. A step takes
 *     hx[i, j] to hx - c (ez[i, j+1] - ez[i, j])
 *     hy[i, j] to hy + c (ez[i+1, j] - ez[i, j])
 *     ez[i, j] to ez + c / glass (hy[i, j] - hy[i-1, j] - hx[i, j] + hx[i, j-1])        but stays 0 along the walls
 * written below as differences of slices. The three fields, of three shapes, are the carries of one loop. The program contains no
 * exchange: the planner inserts it, for several steps at once, with all fields in one message to a neighbour.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/maxwell2d [OPTION...]   (any ranks x devices; --help: the options)
 * Prints: from process 0, the energy before and after, some values, the number of exchanges; then the largest difference from
 *         a plain loop on one core.
 * Writes: a PNG image of ez. */
#include <olympus.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 8 };

typedef struct settings {
    long size; /* points along a side */
    int steps;
    float courant;   /* distance that light travels in a step, in cells */
    float glass;     /* permittivity of the disk */
    bool unchecked;  /* no comparison with a plain loop */
    const char *png; /* path of the image */
} settings;

/* -- the simulation -------------------------------------------------------------------------------------- */

/* The square of the distance from a point, for each point of the grid; in cells. */
static oly_array distance2(long n, long row, long column)
{
    oly_array i = oly_reshape(oly_arange(n, OLY_INT32), n, 1), j = oly_reshape(oly_arange(n, OLY_INT32), 1, n);
    i = oly_sub(i, row);
    j = oly_sub(j, column);
    return oly_astype(oly_add(oly_mul(i, i), oly_mul(j, j)), OLY_FLOAT32);
}

/* A hump of ez to the left; the disk right of the middle. Traced, so that each device generates its own part. */
static void start(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    const settings *s = user;
    long n = s->size;
    double width = (double)n / 40, radius = (double)n / 6;
    oly_array hump = oly_exp(oly_mul(-1 / (width * width), distance2(n, n / 2, n / 5)));
    oly_array inside = oly_lt(distance2(n, n / 2, 3 * n / 5), radius * radius);
    out[0] = oly_update(oly_zeros(OLY_FLOAT32, n, n), "1:-1, 1:-1", oly_slice(hump, "1:-1, 1:-1"));
    out[1] = oly_zeros(OLY_FLOAT32, n, n - 1);
    out[2] = oly_zeros(OLY_FLOAT32, n - 1, n);
    out[3] = oly_where(inside, s->courant / s->glass, oly_mul(s->courant, oly_ones(OLY_FLOAT32, n, n)));
}

typedef struct medium {
    const settings *settings;
    oly_array slow;
} medium;

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const medium *m = user;
    float c = m->settings->courant;
    oly_array ez = carry[0], hx = carry[1], hy = carry[2];
    hx = oly_sub(hx, oly_mul(c, oly_sub(oly_slice(ez, ":, 1:"), oly_slice(ez, ":, :-1"))));
    hy = oly_add(hy, oly_mul(c, oly_sub(oly_slice(ez, "1:, :"), oly_slice(ez, ":-1, :"))));
    oly_array turn = oly_sub(oly_sub(oly_slice(hy, "1:, 1:-1"), oly_slice(hy, ":-1, 1:-1")),
                             oly_sub(oly_slice(hx, "1:-1, 1:"), oly_slice(hx, "1:-1, :-1")));
    oly_array inner = oly_add(oly_slice(ez, "1:-1, 1:-1"), oly_mul(oly_slice(m->slow, "1:-1, 1:-1"), turn));
    carry[0] = oly_update(ez, "1:-1, 1:-1", inner);
    carry[1] = hx;
    carry[2] = hy;
}

static void shine(const oly_array *in, oly_array *out, void *user)
{
    medium m = {user, in[3]};
    memcpy(out, in, 3 * sizeof *in);
    oly_fori(0, m.settings->steps, step, 3, out, &m);
}

/* -- the same without any library, on one core ----------------------------------------------------------- */

static void plain(float *ez, float *hx, float *hy, const float *slow, const settings *s)
{
    long n = s->size;
    for (int k = 0; k < s->steps; k++) {
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n - 1; j++)
                hx[i * (n - 1) + j] -= s->courant * (ez[i * n + j + 1] - ez[i * n + j]);
        for (long i = 0; i < n - 1; i++)
            for (long j = 0; j < n; j++)
                hy[i * n + j] += s->courant * (ez[(i + 1) * n + j] - ez[i * n + j]);
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                ez[i * n + j] += slow[i * n + j] * ((hy[i * n + j] - hy[(i - 1) * n + j]) -
                                                    (hx[i * (n - 1) + j] - hx[i * (n - 1) + j - 1]));
    }
}

/* -- printing -------------------------------------------------------------------------------------------- */

static double sum_of_squares(oly_array x)
{
    oly_array wide = oly_astype(x, OLY_FLOAT64);
    return oly_item(oly_sum(oly_mul(wide, wide)));
}

static void report(const oly_array *first, const oly_array *last, int64_t exchanges, const settings *s)
{
    float sample[SAMPLES];
    char slice[96];
    long stride = (s->size - 1) / (SAMPLES - 1);
    snprintf(slice, sizeof slice, "%ld, :%ld:%ld", s->size / 2, (SAMPLES - 1) * stride + 1, stride);
    oly_process_allgather(oly_slice(last[0], slice), sample, sizeof sample);
    double before = sum_of_squares(first[0]), electric = sum_of_squares(last[0]);
    double magnetic = sum_of_squares(last[1]) + sum_of_squares(last[2]);
    if (oly_process_index() != 0)
        return;
    printf("Maxwell, %ld x %ld points, %d steps: ez^2 %.2f at first, then %.2f and h^2 %.2f\nsamples of ez", s->size,
           s->size, s->steps, before, electric, magnetic);
    for (int k = 0; k < SAMPLES; k++)
        printf(" %.4f", sample[k]);
    printf("\n%lld exchanges for %d steps\n", (long long)exchanges, s->steps);
}

static float *whole(oly_array x, size_t count)
{
    float *data = malloc(count * sizeof *data);
    if (!data)
        exit(1);
    oly_process_allgather(x, data, count * sizeof *data);
    return data;
}

/* The plain loop runs on process 0. */
static void compare(const oly_array *first, const oly_array *last, const settings *s)
{
    size_t n = (size_t)s->size, count[4] = {n * n, n * (n - 1), (n - 1) * n, n * n};
    float *expected[4];
    double largest = 0;
    for (int k = 0; k < 4; k++)
        expected[k] = whole(first[k], count[k]);
    if (oly_process_index() == 0)
        plain(expected[0], expected[1], expected[2], expected[3], s);
    for (int k = 0; k < 3; k++) {
        float *got = whole(last[k], count[k]);
        for (size_t i = 0; i < count[k]; i++)
            largest = fmax(largest, fabs((double)got[i] - expected[k][i]));
        free(got);
    }
    for (int k = 0; k < 4; k++)
        free(expected[k]);
    if (oly_process_index() == 0)
        printf("largest difference from a plain loop on one core: %.2g\n", largest);
}

/* -- starting -------------------------------------------------------------------------------------------- */

static void usage(FILE *file)
{
    fprintf(file, "usage: maxwell2d [OPTION...]\n"
                  "  --size N       points along a side (default 256)\n"
                  "  --steps S      time steps (default 360)\n"
                  "  --courant C    distance that light travels in a step, in cells (default 0.5)\n"
                  "  --glass E      permittivity of the disk (default 2.25)\n"
                  "  --png PATH     the image (default build/maxwell2d.png, or maxwell2d.png where there is no "
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
        {"size", required_argument, NULL, 'n'},    {"steps", required_argument, NULL, 's'},
        {"courant", required_argument, NULL, 'c'}, {"glass", required_argument, NULL, 'g'},
        {"png", required_argument, NULL, 'o'},     {"no-check", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},          {0}};
    settings s = {.size = 256, .steps = 360, .courant = 0.5f, .glass = 2.25f};
    s.png = access("build", W_OK) == 0 ? "build/maxwell2d.png" : "maxwell2d.png";
    bool bad = false;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'n': s.size = number(optarg, 32768); break;
        case 's': s.steps = (int)number(optarg, INT_MAX); break;
        case 'c': s.courant = decimal(optarg); break;
        case 'g': s.glass = decimal(optarg); break;
        case 'o': s.png = optarg; break;
        case 'u': s.unchecked = true; break;
        case 'h': usage(stdout); exit(0);
        default: bad = true;
        }
    }
    if (bad || s.size < SAMPLES || s.steps < 0 || !isfinite(s.courant) || !(s.glass > 0) || optind < argc) {
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

    oly_sharding plane = oly_named(square_mesh(), "i, j"), shardings[] = {plane, plane, plane, plane};
    oly_array first[4] = {NULL}, last[3] = {NULL};
    oly_plan_costs costs;
    oly_call(oly_jit(start, 0, 4, .user = &s, .out_shardings = shardings), 0, NULL,
             OLY_OUT(first[0], first[1], first[2], first[3]));

    oly_fn f = oly_jit(shine, 4, 3, .user = &s);
    oly_call(f, OLY_IN(first[0], first[1], first[2], first[3]), OLY_OUT(last[0], last[1], last[2]));
    oly_costs(&costs, f, first[0], first[1], first[2], first[3]);

    report(first, last, costs.collectives, &s);
    if (!s.unchecked)
        compare(first, last, &s);
    oly_write_png(s.png, last[0], -0.2, 0.2);
    if (oly_process_index() == 0)
        fprintf(stderr, "maxwell2d: wrote %s\n", s.png);
    return oly_finalize();
}
