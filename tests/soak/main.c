/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs against plain loops (program.h):
 *     soak SEED COUNT        programs SEED, SEED+1, ...; failures are shrunk and printed as C
 *     soak -f FILE...        choices as bytes: the corpus, or what a fuzzer found; NAME+n: with the options of seeds 200 n and on
 *     soak -p SEED           prints a program
 *     soak -s SEED FILE      writes its choices
 *     soak -j SEED COUNT     writes what the reference computes in these programs, for against_jax.py
 *     soak -m SEED           shrinks a program that ends a job of SOAK_RANKS ranks; each attempt is a job, started with MPIRUN
 *     soak -e SEED COUNT     a line for the plans of each program: test_plans_random.sh compares them with those of the last commit
 * Alone, programs run in a child process, so that a crash or a program that does not end (60 s) is a failure like others and can be
 * shrunk. Under a launcher all ranks run the same programs and shrink what fails in step; a crash ends the job: SOAK_PROGRESS=file
 * keeps the seed under way. SOAK_SHRINK=seconds for each failure (20; 0: not at all). Exit status 0: no failure. */
#include "child.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static program current;
static int progress = -1;
static long n_failed, n_statements;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int devices_of_job(void)
{
    const char *mine = getenv("OLYMPUS_NUM_CPU_DEVICES");
    return mine ? atoi(mine) : 1;
}

static double shrink_seconds(void)
{
    const char *text = getenv("SOAK_SHRINK");
    return text ? atof(text) : 20;
}

static void report(const char *name, outcome *o, attempt *run, FILE *to)
{
    n_failed++;
    fprintf(to, "%s: %s\n", name, o->text);
    if (shrink_seconds() > 0) {
        allow_attempts(shrink_seconds());
        shrink_program(&current, o, run);
        print_program(to, &current, o);
        print_options(to);
    } else if (o->got[0])
        fprintf(to, "  got  %s\n  right%s\n", o->got, o->right);
    fflush(to);
}

/* What a batch runs: seeds, or a file. */
typedef struct batch {
    uint64_t seed;
    char **file;
} batch;

static bool draw_of(const batch *b, long k, int devices, char *name, size_t size)
{
    if (b->file) {
        uint8_t bytes[MOST_CHOICES];
        FILE *f = fopen(b->file[k], "rb");
        snprintf(name, size, "%s", b->file[k]);
        if (!f)
            return false;
        size_t n = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        choices_from_bytes(&current.choices, bytes, (int)n);
    } else {
        snprintf(name, size, "seed %llu", (unsigned long long)(b->seed + (uint64_t)k));
        choices_from_seed(&current.choices, b->seed + (uint64_t)k);
    }
    draw_program(&current, devices);
    return evaluate_main(&current);
}

enum { SESSION = 200 }; /* programs with the same options: those of seeds 200 n to 200 n + 199 */

/* Which options: the seed's or, of a file NAME+n, those of number n. */
static uint64_t options_of(const batch *b, long at)
{
    const char *number = b->file ? strrchr(b->file[at], '+') : NULL;
    return number ? strtoull(number + 1, NULL, 10) : b->file ? (uint64_t)at : (b->seed + (uint64_t)at) / SESSION;
}

static long end_of_session(const batch *b, long at, long count)
{
    long more = b->file ? 1 : SESSION - (long)((b->seed + (uint64_t)at) % SESSION);
    return at + more < count ? at + more : count;
}

/* -- alone: a child for each session --------------------------------------------------------------------------------------------- */
static void run_batch(const void *context, long from, long to, outcome *o, long *at)
{
    char name[300];
    begin_session();
    for (*at = from; *at < to && !o->failed; ++*at) {
        if (!draw_of(context, *at, devices_of_job(), name, sizeof name))
            continue;
        n_statements += current.n_statements;
        alarm(60);
        *o = run_program(&current);
        alarm(0);
        if (o->failed)
            break;
    }
    oly_finalize();
}

static void run_alone(const batch *b, long count)
{
    char name[300];
    for (long at = 0; at < count;) {
        long to = end_of_session(b, at, count), reached = at;
        choose_options(options_of(b, at));
        outcome o = run_child(run_batch, b, at, to, &reached);
        if (!o.failed) {
            at = to;
            continue;
        }
        draw_of(b, reached, devices_of_job(), name, sizeof name);
        report(name, &o, attempt_alone, stdout);
        at = reached + 1;
    }
}

/* -- under a launcher ---------------------------------------------------------------------------------------------------------------------- */
static void run_together(const batch *b, long count)
{
    char name[300];
    FILE *to = stdout;
    for (long k = 0, until = 0; k < count; k++) {
        if (k == until) {
            if (k)
                oly_finalize();
            until = end_of_session(b, k, count);
            choose_options(options_of(b, k));
            begin_session();
        }
        if (!draw_of(b, k, oly_device_count(), name, sizeof name))
            continue;
        char line[40];
        if (progress >= 0 && oly_process_index() == 0 &&
            pwrite(progress, line,
                   (size_t)snprintf(line, sizeof line, "%20llu\n", (unsigned long long)(b->seed + (uint64_t)k)), 0) < 0)
            progress = -1;
        alarm(60);
        outcome o = run_program(&current);
        alarm(0);
        agree(&o);
        if (!o.failed)
            continue;
        if (to == stdout && oly_process_index() != 0)
            to = fopen("/dev/null", "w");
        oly_finalize();
        begin_session();
        report(name, &o, attempt_together, to);
    }
    oly_finalize();
}

static int print_seed(uint64_t seed, const char *file)
{
    choices_from_seed(&current.choices, seed);
    draw_program(&current, devices_of_job());
    if (file) {
        FILE *f = fopen(file, "wb");
        if (!f || fwrite(current.choices.byte, 1, (size_t)current.choices.n, f) != (size_t)current.choices.n ||
            fclose(f) != 0)
            return 1;
        return 0;
    }
    print_program(stdout, &current, NULL);
    return 0;
}

static int print_journal(uint64_t seed, long count)
{
    for (long k = 0; k < count; k++) {
        choices_from_seed(&current.choices, seed + (uint64_t)k);
        draw_program(&current, devices_of_job());
        journal_begin(stdout);
        evaluate_main(&current);
        journal_begin(NULL);
    }
    return ferror(stdout) != 0;
}

/* A seed that ended a job. */
static int shrink_job(uint64_t seed)
{
    batch b = {.seed = seed};
    char name[300];
    outcome o = {.failed = false};
    const char *ranks = getenv("SOAK_RANKS");
    int devices = devices_of_job() * (ranks ? atoi(ranks) : 2);
    choose_options(seed / SESSION);
    allow_attempts(60);
    if (!draw_of(&b, 0, devices, name, sizeof name) || !attempt_job(&current, &o) || !o.failed) {
        printf("%s: does not fail alone\n", name);
        return 1;
    }
    report(name, &o, attempt_job, stdout);
    return 1;
}

/* Plans alone: OLYMPUS_EXPLAIN=text:FILE or json:FILE says where they are written; with OLYMPUS_SIMULATE for any
 * machine. */
static int print_plans(uint64_t seed, long count)
{
    const char *where = getenv("OLYMPUS_EXPLAIN");
    FILE *file = where && strchr(where, ':') ? fopen(strchr(where, ':') + 1, "w+") : NULL;
    batch b = {.seed = seed};
    char name[300];
    if (!file) {
        fprintf(stderr, "soak -e: OLYMPUS_EXPLAIN=text:FILE or json:FILE says where plans come to\n");
        return 1;
    }
    choose_options(seed / SESSION);
    begin_session();
    for (long k = 0; k < count; k++) {
        if (!draw_of(&b, k, oly_device_count(), name, sizeof name))
            continue;
        outcome o = plan_program(&current);
        planned is = read_plans(file);
        printf("%s %08x: %d plans, %d steps, %d collectives, %.0f ns, %08x%s%s\n", name, program_digest(&current),
               is.plans, is.steps, is.collectives, is.nanoseconds, is.digest, o.failed ? " " : "",
               o.failed ? o.text : "");
    }
    fclose(file);
    return oly_finalize() != OLY_OK;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool together = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE");
    bool files = argc > 1 && strcmp(argv[1], "-f") == 0;
    batch b = {.seed = argc > 1 && !files ? strtoull(argv[1], NULL, 10) : 1, .file = files ? argv + 2 : NULL};
    long count = files ? argc - 2 : argc > 2 ? atol(argv[2]) : 100;
    double begin = now();
    if (argc > 2 && strcmp(argv[1], "-p") == 0)
        return print_seed(strtoull(argv[2], NULL, 10), NULL);
    if (argc > 3 && strcmp(argv[1], "-j") == 0)
        return print_journal(strtoull(argv[2], NULL, 10), atol(argv[3]));
    if (argc > 2 && strcmp(argv[1], "-m") == 0)
        return shrink_job(strtoull(argv[2], NULL, 10));
    if (argc > 2 && strcmp(argv[1], "-x") == 0) {
        bool good = run_for_job(argv[2]);
        return oly_finalize() != 0 || !good;
    }
    if (argc > 3 && strcmp(argv[1], "-e") == 0)
        return print_plans(strtoull(argv[2], NULL, 10), atol(argv[3]));
    if (argc > 3 && strcmp(argv[1], "-s") == 0)
        return print_seed(strtoull(argv[2], NULL, 10), argv[3]);
    if (getenv("SOAK_PROGRESS"))
        progress = open(getenv("SOAK_PROGRESS"), O_WRONLY | O_CREAT, 0644);
    if (together)
        run_together(&b, count);
    else
        run_alone(&b, count);
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank || strcmp(rank, "0") == 0)
        printf("%ld programs, %ld failed, %.1f programs/s\n", count, n_failed, (double)count / (now() - begin));
    return n_failed != 0;
}
