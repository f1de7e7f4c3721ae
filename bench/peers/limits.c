/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of this machine, for comparison: memory, arithmetic, the matrix product of OpenBLAS, and the 3-point heat step when
 * bound by the floating-point units alone. Built and run by bench/compare.sh.
 * Run:    limits THREADS [--quick]      Prints: name, seconds, rate, unit; the best of all repeats, all threads together. */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The widest registers of this CPU, and how many time steps of the heat equation fit into them all. */
#ifdef __AVX512F__
enum { LANES = 16, STEPS = 8, ACCUMULATORS = 16 };
#else
enum { LANES = 8, STEPS = 4, ACCUMULATORS = 10 };
#endif
typedef float vector __attribute__((vector_size(LANES * 4)));

enum { REPEATS = 5, COLUMNS = 1024 }; /* at least this many repeats, and for a third of a second */

static int threads;
static long size = 1L << 24;
static long rounds = 1000; /* of the arithmetic loops */
static int matrix = 4096;  /* rows and columns of the product; half of it is summed over */
static float *a, *b, *c;

static float *allocate(long n)
{
    float *p = aligned_alloc(64, (size_t)n * sizeof *p);
    if (!p) {
        fprintf(stderr, "limits: out of memory\n");
        exit(1);
    }
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        p[i] = (float)(i % 1000) / 1000.f;
    return p;
}

static void measure(const char *name, void (*work)(void), double amount, const char *unit)
{
    double best = 1e300, all = 0;
    for (int k = 0; k <= REPEATS || all < 1. / 3; k++) {
        double seconds = -omp_get_wtime();
        work();
        seconds += omp_get_wtime();
        all += seconds;
        if (k > 0 && seconds < best)
            best = seconds;
    }
    printf("%s\t%.9f\t%.3f\t%s\n", name, best, amount / best / 1e9, unit);
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

static void copy(void)
{
#pragma omp parallel
    {
        long first = size * omp_get_thread_num() / threads, last = size * (omp_get_thread_num() + 1) / threads;
        memcpy(b + first, a + first, (size_t)(last - first) * sizeof *a);
    }
}

static void triad(void)
{
#pragma omp parallel for simd
    for (long i = 0; i < size; i++)
        c[i] = a[i] + 2.f * b[i];
}

static void read_all(void)
{
    vector sum = {0};
#pragma omp parallel
    {
        const vector *v = (const vector *)a;
        vector part[8] = {0};
#pragma omp for
        for (long i = 0; i < size / LANES; i += 8)
            for (int k = 0; k < 8; k++)
                part[k] += v[i + k];
#pragma omp critical
        for (int k = 0; k < 8; k++)
            sum += part[k];
    }
    c[0] = sum[0];
}

/* -- arithmetic --------------------------------------------------------------------------------------------------- */

static void multiply_add(void)
{
#pragma omp parallel
    {
        vector v[ACCUMULATORS], factor, sum = {0};
        for (int k = 0; k < LANES; k++)
            factor[k] = .999f;
        for (int k = 0; k < ACCUMULATORS; k++)
            v[k] = factor * (float)k;
        for (long r = 0; r < rounds * 1000; r++) {
#pragma GCC unroll 16
            for (int k = 0; k < ACCUMULATORS; k++)
                v[k] = v[k] * factor + factor;
        }
        for (int k = 0; k < ACCUMULATORS; k++)
            sum += v[k];
#pragma omp critical
        c[0] += sum[0];
    }
}

/* STEPS time steps in one pass over a strip that stays in the nearest cache. Each lane has a strip of its own and needs no
 * other lane's values: the work is an addition, a product and a fused multiply-add per cell and step. */
static __attribute__((noinline)) void strip_pass(const vector *from, vector *to)
{
    vector left[STEPS], middle[STEPS];
    memset(left, 0, sizeof left);
    memset(middle, 0, sizeof middle);
    for (long i = 0; i < COLUMNS; i++) {
        vector right = from[i];
#pragma GCC unroll 8
        for (int s = 0; s < STEPS; s++) {
            vector next = .5f * middle[s] + .25f * (left[s] + right);
            left[s] = middle[s];
            middle[s] = right;
            right = next;
        }
        to[i] = right;
    }
}

static void heat1d_ports(void)
{
#pragma omp parallel
    {
        vector *from = aligned_alloc(64, 2 * COLUMNS * sizeof *from), *to = from + COLUMNS;
        if (!from)
            abort();
        memset(from, 0, 2 * COLUMNS * sizeof *from);
        for (long r = 0; r < rounds; r++) {
            strip_pass(from, to);
            vector *other = from;
            from = to;
            to = other;
        }
#pragma omp critical
        c[0] += from[COLUMNS / 2][0];
        free(from < to ? from : to);
    }
}

static void sgemm(void)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, matrix, matrix, matrix / 2, 1, a, matrix / 2, b, matrix, 0,
                c, matrix);
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1) {
        fprintf(stderr, "usage: limits THREADS [--quick]\n");
        return 2;
    }
    if (argc > 2 && strcmp(argv[2], "--quick") == 0)
        size = 1L << 12, rounds = 10, matrix = 64;
    omp_set_num_threads(threads);
    openblas_set_num_threads(threads);
    a = allocate(size);
    b = allocate(size);
    c = allocate(size);
    double n = (double)size, all = (double)threads;
    measure("copy", copy, n * 8, "GB/s");
    measure("triad", triad, n * 12, "GB/s");
    measure("read", read_all, n * 4, "GB/s");
    measure("fma", multiply_add, all * (double)rounds * 1000 * ACCUMULATORS * LANES * 2, "GFLOP/s");
    measure("heat1d_ports", heat1d_ports, all * (double)rounds * COLUMNS * LANES * STEPS, "Gpoint/s");
    measure("sgemm", sgemm, 2. * matrix * matrix * (matrix / 2), "GFLOP/s");
    free(a);
    free(b);
    free(c);
    return 0;
}
