/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat equation on a plate, with an image at the end. heat2d_mpi.c is the same program by hand.
 *
 * A step takes each inner cell to half of itself plus an eighth of each of its four neighbours; the edge keeps its
 * temperature. The plate starts with a hot upper edge, a hot disc and a hot bar; each device generates its own part.
 *
 * With --checkpoint DIR the plate is saved from time to time, and when SIGTERM or SIGUSR1 asks the program to stop; with --restart, too,
 * it goes on from the last one, with the same bits if the mesh is the same.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/heat2d [OPTION...]     (any ranks x devices; --help: the options)
 * Prints: progress on standard error; from process 0, the sum of the temperatures and some of the middle row
 *         (heat2d_mpi prints the same lines, to rounding), then the largest difference from a plain loop on one core.
 * Writes: a PNG image; with --checkpoint, checkpoints.
 * Exit:   0; 75 if it was asked to stop before the last step. */
#include <olympus.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 8, REPORTS = 20, STOPPED = 75 };

typedef struct settings {
    long size;       /* cells along a side */
    int steps;       /* time steps */
    bool rows_only;  /* 1-D partition: whole rows to each device */
    bool unchecked;  /* no comparison with a plain loop */
    const char *png; /* path of the image */
    /* NULL: none */
    const char *checkpoint; /* folder of checkpoints */
    bool restart;           /* go on from the newest of them */
    int every;              /* steps between two of them; 0: a tenth of all */
} settings;

/* -- the simulation -------------------------------------------------------------------------------------- */

/* 1 where the plate is hot at the start, 0 elsewhere; traced, so that each device generates its own part. */
static void plate(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    int64_t n = ((const settings *)user)->size;
    oly_array i = oly_reshape(oly_arange(n, OLY_INT32), n, 1), j = oly_reshape(oly_arange(n, OLY_INT32), 1, n);
    oly_array down = oly_sub(i, n / 2), across = oly_sub(j, n / 3);
    oly_array disc = oly_lt(oly_add(oly_mul(down, down), oly_mul(across, across)), n * n / 36);
    oly_array bar =
        oly_mul(oly_lt(oly_abs(oly_sub(i, 3 * n / 4)), n / 5), oly_lt(oly_abs(oly_sub(j, 3 * n / 4)), n / 40 + 1));
    oly_array edge = oly_eq(i, 0);
    out[0] = oly_where(oly_add(oly_add(disc, bar), edge), oly_ones(OLY_FLOAT32, n, n), 0);
}

static oly_array heat_step(oly_array u)
{
    oly_array mid = oly_slice(u, "1:-1, 1:-1");
    oly_array up = oly_slice(u, ":-2, 1:-1"), down = oly_slice(u, "2:, 1:-1");
    oly_array left = oly_slice(u, "1:-1, :-2"), right = oly_slice(u, "1:-1, 2:");
    oly_array around = oly_add(oly_add(oly_add(up, down), left), right);
    return oly_update(u, "1:-1, 1:-1", oly_add(oly_mul(0.5, mid), oly_mul(0.125, around)));
}

static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = heat_step(carry[0]);
}

static void advance(const oly_array *in, oly_array *out, void *user)
{
    const int *steps = user;
    out[0] = in[0];
    oly_fori(0, *steps, body, 1, out, NULL);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void progress(int done, int here, const settings *s, double time)
{
    if (oly_process_index() != 0)
        return;
    char rate[40];
    double points = (double)(s->size - 2) * (double)(s->size - 2) * here;
    snprintf(rate, sizeof rate, "%.2f Gpoint/s", points / time / 1e9);
    oly_progress("heat2d", done, s->steps, .note = rate); /* one line, if it takes more than two seconds */
    if (done == s->steps)
        fprintf(stderr, "heat2d: 100 %%, %s\n", rate);
}

/* -- checkpoints ----------------------------------------------------------------------------------------- */

/* The newest one takes the place of the plate at the start; returns its step, 0: there is none. */
static int restore(oly_array *u, const settings *s)
{
    int64_t step = 0;
    if (!s->checkpoint || !s->restart)
        return 0;
    if (oly_latest_step(s->checkpoint) < 0) {
        if (oly_process_index() == 0)
            fprintf(stderr, "heat2d: no checkpoint in %s: starting at step 0\n", s->checkpoint);
        return 0;
    }
    oly_restore(s->checkpoint, OLY_NAMES("u"), OLY_OUT(*u), .step = &step);
    if (step > s->steps) {
        if (oly_process_index() == 0)
            fprintf(stderr, "heat2d: the newest checkpoint is of step %" PRId64 ", beyond --steps %d\n", step,
                    s->steps);
        oly_finalize();
        exit(2);
    }
    if (oly_process_index() == 0)
        fprintf(stderr, "heat2d: going on from step %" PRId64 "\n", step);
    return (int)step;
}

/* After steps `before` + 1 to `done`. False: the program is asked to stop, and what it has is saved. */
static bool save(oly_array u, int before, int done, const settings *s)
{
    if (!s->checkpoint)
        return true;
    bool stop = oly_should_stop();
    if (stop || done == s->steps || done / s->every != before / s->every)
        oly_save(s->checkpoint, OLY_NAMES("u"), OLY_IN(u), .step = done, .async = true);
    if (!stop || done == s->steps)
        return true;
    if (oly_process_index() == 0)
        fprintf(stderr, "heat2d: stopping at step %d of %d; --restart goes on from there\n", done, s->steps);
    return false;
}

/* Steps from one progress report to the next. Where the program may be asked to stop, they are few enough to take well below a second: a
 * core computes about 10^9 cells a second, and a step takes some microseconds however few its cells are. */
static int steps_at_once(const settings *s)
{
    int many = s->steps < REPORTS ? 1 : s->steps / REPORTS;
    if (!s->checkpoint)
        return many;
    double cells = (double)s->size * (double)s->size / oly_device_count();
    many = (int)fmin(many, fmax(1, 2.5e8 / (cells + 1e4)));
    return s->every < many ? s->every : many;
}

/* Calls a function of a fixed number of steps repeatedly, to report progress and save in between. Returns the steps done. */
static int simulate(oly_array *u, const settings *s)
{
    int many = steps_at_once(s), done = restore(u, s), began = done;
    int rest = (s->steps - done) % many;
    oly_fn forward = oly_jit(advance, 1, 1, .user = &many), last = oly_jit(advance, 1, 1, .user = &rest);
    double begin = seconds();
    for (bool more = true; done < s->steps && more;) {
        int before = done;
        bool whole = s->steps - done >= many;
        oly_call(whole ? forward : last, OLY_IN(*u), OLY_OUT(*u));
        oly_block_until_ready(*u);
        done += whole ? many : rest;
        progress(done, done - began, s, seconds() - begin);
        more = save(*u, before, done, s);
    }
    return done;
}

/* -- the same without any library, on one core ----------------------------------------------------------- */
static void plain(float *u, float *next, long n, int steps)
{
    memcpy(next, u, (size_t)(n * n) * sizeof *u);
    for (int s = 0; s < steps; s++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++) {
                const float *at = &u[i * n + j];
                next[i * n + j] = 0.5f * at[0] + 0.125f * (at[-n] + at[n] + at[-1] + at[1]);
            }
        memcpy(u, next, (size_t)(n * n) * sizeof *u);
    }
}

/* -- printing -------------------------------------------------------------------------------------------- */

/* The two lines that heat2d_mpi prints too. All processes take part. */
static void report(oly_array u, const settings *s)
{
    float sample[SAMPLES];
    char slice[96];
    long stride = (s->size - 1) / (SAMPLES - 1);
    snprintf(slice, sizeof slice, "%ld, :%ld:%ld", s->size / 2, (SAMPLES - 1) * stride + 1, stride);
    oly_process_allgather(oly_slice(u, slice), sample, sizeof sample);
    double sum = oly_item(oly_sum(oly_astype(u, OLY_FLOAT64)));
    if (oly_process_index() != 0)
        return;
    printf("2-D heat equation, %ld x %ld cells, %d steps: sum %.2f\nsamples", s->size, s->size, s->steps, sum);
    for (int k = 0; k < SAMPLES; k++)
        printf(" %.4f", sample[k]);
    printf("\n");
}

/* The plain loop runs on process 0. */
static void compare(const float *start, oly_array u, const settings *s)
{
    long count = s->size * s->size;
    size_t bytes = (size_t)count * sizeof(float);
    float *got = malloc(bytes), *expected = malloc(bytes), *next = malloc(bytes);
    if (!got || !expected || !next)
        exit(1);
    oly_process_allgather(u, got, bytes);
    if (oly_process_index() == 0) {
        double largest = 0;
        memcpy(expected, start, bytes);
        plain(expected, next, s->size, s->steps);
        for (long k = 0; k < count; k++)
            largest = fmax(largest, fabs((double)got[k] - expected[k]));
        printf("largest difference from a plain loop on one core: %.2g\n", largest);
    }
    free(got);
    free(expected);
    free(next);
}

/* -- starting -------------------------------------------------------------------------------------------- */
static void usage(FILE *file)
{
    fprintf(file, "usage: heat2d [OPTION...]\n"
                  "  --size N              cells along a side of the plate (default 512)\n"
                  "  --steps S             time steps (default 1000)\n"
                  "  --partition 1d|2d     whole rows to each device, or rectangles (default 2d)\n"
                  "  --png PATH            the image (default build/heat2d.png, or heat2d.png where there is "
                  "no build)\n"
                  "  --no-check            no comparison with a plain loop on one core\n"
                  "  --checkpoint DIR      save the plate in DIR, also when SIGTERM or SIGUSR1 asks to stop\n"
                  "  --checkpoint-every N  steps from one to the next (default a tenth of all)\n"
                  "  --restart             go on from the newest checkpoint in DIR, if there is one\n");
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static settings options(int argc, char **argv)
{
    static const struct option known[] = {{"size", required_argument, NULL, 'n'},
                                          {"steps", required_argument, NULL, 's'},
                                          {"partition", required_argument, NULL, 'p'},
                                          {"png", required_argument, NULL, 'o'},
                                          {"no-check", no_argument, NULL, 'u'},
                                          {"checkpoint", required_argument, NULL, 'c'},
                                          {"checkpoint-every", required_argument, NULL, 'e'},
                                          {"restart", no_argument, NULL, 'r'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    settings s = {.size = 512, .steps = 1000, .png = access("build", W_OK) == 0 ? "build/heat2d.png" : "heat2d.png"};
    bool bad = false;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'n': s.size = number(optarg, 32768); break;
        case 's': s.steps = (int)number(optarg, INT_MAX); break;
        case 'p':
            s.rows_only = strcmp(optarg, "1d") == 0;
            bad |= !s.rows_only && strcmp(optarg, "2d") != 0;
            break;
        case 'o': s.png = optarg; break;
        case 'u': s.unchecked = true; break;
        case 'c': s.checkpoint = optarg; break;
        case 'e':
            s.every = (int)number(optarg, INT_MAX);
            bad |= s.every < 1;
            break;
        case 'r': s.restart = true; break;
        case 'h': usage(stdout); exit(0);
        default: bad = true;
        }
    }
    if (bad || s.size < SAMPLES || s.steps < 0 || optind < argc || (s.restart && !s.checkpoint)) {
        if (s.restart && !s.checkpoint)
            fprintf(stderr, "heat2d: --restart needs --checkpoint DIR\n");
        usage(stderr);
        exit(2);
    }
    s.every = s.every > 0 ? s.every : s.steps < 10 ? 1 : s.steps / 10;
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
    if (s.checkpoint)
        oly_should_stop(); /* from here on, signals that ask for it do not kill the program */

    oly_sharding sharding = oly_named(square_mesh(), s.rows_only ? "(i,j), None" : "i, j");
    oly_array u = NULL;
    oly_call(oly_jit(plate, 0, 1, .user = &s, .out_shardings = &sharding), 0, NULL, OLY_OUT(u));
    float *start = s.unchecked ? NULL : malloc((size_t)(s.size * s.size) * sizeof *start);
    if (start)
        oly_process_allgather(u, start, (size_t)(s.size * s.size) * sizeof *start);

    if (simulate(&u, &s) < s.steps) {
        free(start);
        return oly_finalize() ? 1 : STOPPED;
    }
    report(u, &s);
    if (start)
        compare(start, u, &s);
    oly_write_png(s.png, u, 0, 1);
    if (oly_process_index() == 0)
        fprintf(stderr, "heat2d: wrote %s\n", s.png);
    free(start);
    return oly_finalize();
}
