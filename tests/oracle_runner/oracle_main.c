/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle runner, build/tests/oracle: runs the cases of tests/oracle (or folders like it) on Olympus and counts how
 * many have the expected results. Every rank runs every case; a failure on any rank counts; rank 0 prints. */
#include "check_races.h"
#include "oracle.h"
#include <dirent.h>
#include <fnmatch.h>
#include <getopt.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEVICES = 16, MOST_REASONS = 512 }; /* the largest mesh of any case */

/* Cases skipped for the same reason. */
typedef struct reason {
    char text[160];
    int count;
} reason;

static struct {
    const char *only, *except;
    bool verbose;
    int passed, failed, skipped;
    int n_reasons;
    reason reasons[MOST_REASONS];
    char running[128]; /* the current case; for a crash */
} runner;

/* -- outcomes -------------------------------------------------------------------------------------------------------- */
static void note(oracle_run *run, const char *format, va_list arguments)
{
    size_t used = strlen(run->reason), left = sizeof run->reason - used;
    if (used > 0 && left > 2) {
        memcpy(run->reason + used, "; ", 3);
        used += 2, left -= 2;
    }
    vsnprintf(run->reason + used, left, format, arguments);
}

bool oracle_fail(oracle_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(run, format, arguments);
    va_end(arguments);
    run->failed = true;
    return false;
}

bool oracle_skip(oracle_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(run, format, arguments);
    va_end(arguments);
    run->skipped = true;
    return false;
}

void oracle_extension(oracle_run *run, const char *what)
{
    size_t used = strlen(run->reason);
    if (!run->failed && !run->skipped)
        snprintf(run->reason + used, sizeof run->reason - used, "%saccepted and checked, where JAX refuses: %s",
                 used > 0 ? "; " : "", what);
}

bool oracle_fail_call(oracle_run *run, const char *what)
{
    oracle_fail(run, "%s: %s: %s", what, oly_status_name(oly_last_status()), oly_last_error());
    oly_clear_error();
    return false;
}

/* A rank that failed sends rank 0 the reason. */
static void share_outcome(oracle_run *run)
{
    int parallel = 0, rank = oly_process_index(), mine, first;
    MPI_Initialized(&parallel);
    if (!parallel || oly_process_count() == 1)
        return;
    mine = run->failed ? rank : oly_process_count();
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == oly_process_count())
        return;
    run->failed = true;
    if (first != 0 && rank == first)
        MPI_Send(run->reason, sizeof run->reason, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (first != 0 && rank == 0) {
        char why[sizeof run->reason];
        MPI_Recv(why, sizeof why, MPI_CHAR, first, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        snprintf(run->reason, sizeof run->reason, "rank %d: %.1900s", first, why);
    }
}

static void count_reason(const char *text)
{
    int k = 0;
    while (k < runner.n_reasons && strcmp(runner.reasons[k].text, text) != 0)
        k++;
    if (k == MOST_REASONS)
        return;
    if (k == runner.n_reasons)
        snprintf(runner.reasons[runner.n_reasons++].text, sizeof runner.reasons[0].text, "%.159s", text);
    runner.reasons[k].count++;
}

static void print_reasons(void)
{
    for (int k = 0; k < runner.n_reasons; k++)
        printf("skipped %5d: %s\n", runner.reasons[k].count, runner.reasons[k].text);
}

/* -- one case -------------------------------------------------------------------------------------------------------- */

/* The keyword of each kind of case, in matching order. Without a checker: skipped. */
static const struct kind {
    const char *keyword;
    void (*check)(oracle_run *run);
    const char *what; /* the kind, for those without a checker */
} kinds[] = {
    {"kind", oracle_check_heat, NULL},     {"expr", oracle_check_toy, NULL},
    {"text", oracle_check_viz, NULL},      {"str", oracle_check_print, NULL},
    {"type", oracle_check_types, NULL},    {"error", oracle_check_types, NULL},
    {"outspec", oracle_check_plan, NULL},  {"recv", oracle_check_reshard, NULL},
    {"dev", oracle_check_summed, NULL},    {"partitionable", oracle_check_program, NULL},
    {"mode", oracle_check_gradient, NULL}, {"carry", oracle_check_training, NULL},
    {"let", oracle_check_program, NULL},
};

/* Whether JAX had 64-bit types on: a line of the case says so, or the family's name (ops64). */
static bool has_x64(const oracle_run *run)
{
    const oracle_line *line = check_oracle_line(run->c, "x64", 0);
    return line ? line->n_words > 1 && strcmp(line->words[1], "1") == 0 : strstr(run->family->name, "64") != NULL;
}

static void check_case(oracle_run *run)
{
    size_t n = sizeof kinds / sizeof kinds[0], k = 0;
    oly_enable_x64(has_x64(run));
    while (k < n && !check_oracle_line(run->c, kinds[k].keyword, 0))
        k++;
    const oracle_line *mode = check_oracle_line(run->c, "mode", 0);
    if (mode && mode->n_words > 1 && strcmp(mode->words[1], "manual") == 0)
        oracle_check_manual(run);
    else if (k < n && kinds[k].check)
        kinds[k].check(run);
    else
        oracle_skip(run, "%s: not checked yet", k < n ? kinds[k].what : "another kind of case");
}

static void report_case(const oracle_run *run)
{
    const char *outcome = run->failed ? "FAILED" : run->skipped ? "skipped" : "passed";
    if (oly_process_index() == 0 && (run->failed || runner.verbose))
        printf("%s %s%s%s\n", outcome, run->c->id, run->reason[0] ? ": " : "", run->reason);
}

/* Shares, reports and counts the outcome of a case. */
static void end_case(oracle_run *run, int counts[3])
{
    oly_clear_error();
    share_outcome(run);
    report_case(run);
    counts[run->failed ? 1 : run->skipped ? 2 : 0]++;
    if (run->skipped && !run->failed)
        count_reason(run->reason);
}

static bool is_wanted(const char *id)
{
    return (!runner.only || fnmatch(runner.only, id, 0) == 0) && (!runner.except || fnmatch(runner.except, id, 0) != 0);
}

static void run_case(const oracle_family *family, const oracle_case *c, int counts[3])
{
    oracle_run run = {.family = family, .c = c};
    if (!is_wanted(c->id))
        return;
    snprintf(runner.running, sizeof runner.running, "%s", c->id);
    OLY_SCOPE
    {
        check_case(&run);
    }
    end_case(&run, counts);
}

/* The table of promotions, if there is one, counts as one more case. */
static void run_promotions(const oracle_family *family, const char *folder, int counts[3])
{
    char id[64];
    snprintf(id, sizeof id, "%s.promotions", family->name);
    oracle_case c = {.id = id};
    oracle_run run = {.family = family, .c = &c};
    bool found = false;
    if (!is_wanted(id))
        return;
    snprintf(runner.running, sizeof runner.running, "%s", id);
    oly_enable_x64(has_x64(&run));
    OLY_SCOPE
    {
        found = oracle_check_promotions(&run, folder);
    }
    if (found)
        end_case(&run, counts);
}

/* -- families -------------------------------------------------------------------------------------------------------- */
/* Cells of source texts with their output: for people, and for the tests of the examples, which print the same. */
static bool is_text_only(const oracle_family *family)
{
    return family->n_cases > 0 && check_oracle_line(&family->cases[0], "seed", 0);
}

static void run_family(const char *folder)
{
    oracle_family *family = check_oracle_open_folder(folder);
    int counts[3] = {0};
    if (!family) {
        runner.failed++;
        return;
    }
    if (is_text_only(family)) {
        if (oly_process_index() == 0 && runner.verbose)
            printf("%s: %d cells of source texts: nothing to run\n", family->name, family->n_cases);
        check_oracle_close(family);
        return;
    }
    for (int k = 0; k < family->n_cases; k++)
        run_case(family, &family->cases[k], counts);
    run_promotions(family, folder, counts);
    if (oly_process_index() == 0 && (!runner.only || counts[0] + counts[1] + counts[2] > 0))
        printf("%s\t%d\t%d\t%d\n", family->name, counts[0], counts[1], counts[2]);
    fflush(stdout);
    runner.passed += counts[0];
    runner.failed += counts[1];
    runner.skipped += counts[2];
    check_oracle_close(family);
}

static bool is_family(const char *folder)
{
    char path[1300];
    snprintf(path, sizeof path, "%s/cases.txt", folder);
    return access(path, R_OK) == 0;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A folder that is a family, or contains families. */
static void run_folder(const char *folder)
{
    if (is_family(folder)) {
        run_family(folder);
        return;
    }
    struct dirent **entries;
    int n = scandir(folder, &entries, not_hidden, alphasort), found = 0;
    for (int k = 0; k < n; k++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/%s", folder, entries[k]->d_name);
        if (is_family(path)) {
            run_family(path);
            found++;
        }
        free(entries[k]);
    }
    if (n >= 0)
        free(entries);
    if (found == 0) {
        fprintf(stderr, "oracle: no family (a folder with a cases.txt) in %s\n", folder);
        runner.failed++;
    }
}

/* -- starting -------------------------------------------------------------------------------------------------------- */
static void usage(FILE *file)
{
    fprintf(file,
            "usage: oracle [--verbose] [--only GLOB] [--except GLOB] FOLDER...\n"
            "Runs the cases of every family in the folders (tests/oracle/README.md has the grammar); each folder is a\n"
            "family or contains families. Prints FAMILY, passed, failed, skipped, and every failure.\n"
            "  --verbose     name every case; say why cases are skipped\n"
            "  --only GLOB   only cases whose id matches, as 'ops.reduce.*'\n"
            "  --except GLOB not those\n"
            "  --help        this text\n"
            "Runs alone (with %d devices unless OLYMPUS_NUM_CPU_DEVICES is set) or under mpirun. The exit status is 0\n"
            "when no case failed.\n",
            DEVICES);
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {{"verbose", no_argument, NULL, 'v'},
                                          {"only", required_argument, NULL, 'o'},
                                          {"except", required_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'v': runner.verbose = true; break;
        case 'o': runner.only = optarg; break;
        case 'e': runner.except = optarg; break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (optind == argc) {
        usage(stderr);
        exit(2);
    }
}

/* Enough devices for all meshes, unless the user has set a number. */
static void choose_devices(void)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    char devices[16];
    if (!ranks)
        ranks = getenv("PMI_SIZE");
    int n = ranks ? atoi(ranks) : 1;
    snprintf(devices, sizeof devices, "%d", n > 0 && n <= DEVICES ? DEVICES / n : 1);
    setenv("OLYMPUS_NUM_CPU_DEVICES", devices, 0);
}

/* A crash still names the case. */
static void crashed(int number)
{
    static const char words[] = "\noracle: crashed in case ";
    ssize_t ignored = write(STDERR_FILENO, words, sizeof words - 1);
    ignored = write(STDERR_FILENO, runner.running, strlen(runner.running));
    ignored = write(STDERR_FILENO, "\n", 1);
    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    choose_devices();
    check_races();
    oly_init(&argc, &argv);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    signal(SIGSEGV, crashed);
    signal(SIGFPE, crashed);
    signal(SIGABRT, crashed);
    for (int k = optind; k < argc; k++)
        run_folder(argv[k]);
    if (oly_process_index() == 0) {
        if (runner.verbose)
            print_reasons();
        printf("%d passed, %d failed, %d skipped\n", runner.passed, runner.failed, runner.skipped);
    }
    oly_finalize();
    return runner.failed > 0;
}
