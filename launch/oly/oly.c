/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly`: looks inside Olympus programs. One file per subcommand; docs/oly.md is the manual. Neither starts MPI nor needs a running
 * program, except for `oly status`. */
#include "oly.h"
#include "core/error.h"
#include <olympus/base.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct subcommand {
    const char *name;
    tool_main *run;
    const char *arguments, *summary, *details;
} all[] = {
    {"plan", plan_main,
     "PROGRAM [ARGUMENT...] --mesh RANKSxDEVICES [--json | --html FILE [--source DIR]] [--node NODE]",
     "the plans of a program, for a machine that need not exist",
     "Runs the program as rank 0 of a simulated job (OLYMPUS_SIMULATE): nothing is computed, and reading a value ends "
     "it. Every plan\n"
     "made until then is printed.\n\n"
     "  --mesh RxD    ranks of the job and devices of each rank, as 16x8; else OLYMPUS_SIMULATE\n"
     "  --node NODE   a node of that machine, as OLYMPUS_SIMULATE_NODE: its ranks, or hwloc's synthetic notation\n"
     "  --json        a JSON array of plans (docs/explain.md lists the members)\n"
     "  --html FILE   a web page: who holds what, which step moves what between whom\n"
     "  --            what follows belongs to the program\n"},
    {"devices", devices_main, "[--json]", "what a rank started here would get",
     "Cores, caches, memory, NUMA domains and GPUs that this process may use, the launcher it sees, and the devices "
     "and threads that\n"
     "oly_init would make of them. Under a launcher (mpirun -n 4 oly devices) one line per rank.\n\n"
     "  --json        as a JSON object\n"},
    {"options", options_main, "[--all] [--json]", "the OLYMPUS_* variables, and what they are set to",
     "Names that Olympus does not know are reported with the nearest that it knows; then the status is 1.\n\n"
     "  --all         also those that are not set\n"
     "  --json        as a JSON object\n"},
    {"trace", trace_main, "[-o FILE] COMMAND [ARGUMENT...]\n       oly trace FILE [--html PAGE]",
     "runs a program with a timeline, or sums one up",
     "Runs the command with OLYMPUS_TIMELINE set, says how to open the file, and prints where the time went; with a "
     "timeline (.json or\n"
     ".json.gz) only the latter: time by kind of step and by exchange, the slowest lines, and how long each device was "
     "idle.\n\n"
     "  -o FILE       where to write the timeline (olympus-timeline.json)\n"
     "  --html PAGE   a web page of it\n"},
    {"report", report_main, "FOLDER | FILE... [--job JOB] [--events N] [--json] [--html PAGE [--source DIR]]",
     "what happened: the flight recorders of all ranks, merged",
     "Reads olympus-recorder.JOB.RANK files, names the rank at fault, and says for each rank what it was in, with the "
     "line of the\n"
     "program. With several jobs in a folder the last one is reported.\n\n"
     "  --job JOB     this one\n"
     "  --events N    the last N events of all ranks together (12)\n"
     "  --json        as a JSON object\n"
     "  --html PAGE   a web page; of a timeline (.json, .json.gz) or of plans (oly plan --json), too, alone or "
     "together\n"
     "  --source DIR  where the page finds the sources that its lines lead to (the current folder, and those below)\n"},
    {"status", status_main, "[JOB] [--dump] [--events N] [--hosts HOST,... | --here] [--json]",
     "what the ranks of a running job are doing",
     "Asks each rank of this user's jobs on this host: what it waits for and since when, its last events, its memory. "
     "The job is not\n"
     "disturbed: a thread that sleeps otherwise answers, even if the program hangs. Without JOB: the list of jobs, and "
     "if there is one,\n"
     "that one.\n\n"
     "  --dump        each rank also writes its flight recorder file\n"
     "  --events N    the last N events of each rank (3)\n"
     "  --hosts H,H   asks these hosts, too, through ssh; in a Slurm allocation srun asks its hosts (--here: only this "
     "one)\n"
     "  --json        as a JSON array\n"},
};
enum { N_SUBCOMMANDS = sizeof all / sizeof *all };

static const char *current = "";

static void usage(FILE *to)
{
    fprintf(to, "usage: oly SUBCOMMAND ...\n");
    for (int k = 0; k < N_SUBCOMMANDS; k++)
        fprintf(to, "  %-9s %s\n", all[k].name, all[k].summary);
    fprintf(to, "oly SUBCOMMAND --help tells more; oly --version the version. The manual is docs/oly.md.\n");
}

void tool_help(const char *subcommand, FILE *to)
{
    for (int k = 0; k < N_SUBCOMMANDS; k++)
        if (strcmp(all[k].name, subcommand) == 0)
            fprintf(to, "usage: oly %s %s\n\n%s.\n\n%s", all[k].name, all[k].arguments, all[k].summary, all[k].details);
}

/* -- messages ----------------------------------------------------------------------------------------------------------- */

static void say(const char *format, va_list arguments)
{
    fflush(stdout);
    fprintf(stderr, "oly%s%s: ", *current ? " " : "", current);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int tool_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return TOOL_FAILED;
}

int tool_fail_pending(void)
{
    int status = tool_fail("%s", oly_pending_message());
    oly_drop_message();
    return status;
}

int tool_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    fprintf(stderr, "oly %s --help tells how it is used\n", current);
    return TOOL_USAGE;
}

/* -- arguments ---------------------------------------------------------------------------------------------------------- */

static void take_out(int *argc, char **argv, int at, int n)
{
    for (int k = at; k + n <= *argc; k++)
        argv[k] = argv[k + n];
    *argc -= n;
}

const char *tool_option(int *argc, char **argv, const char *name)
{
    size_t n = strlen(name);
    for (int k = 1; k < *argc && strcmp(argv[k], "--") != 0; k++) {
        bool equals = strncmp(argv[k], name, n) == 0 && argv[k][n] == '=' && name[1] == '-';
        if (!equals && strcmp(argv[k], name) != 0)
            continue;
        const char *value = equals ? argv[k] + n + 1 : k + 1 < *argc ? argv[k + 1] : "";
        take_out(argc, argv, k, equals || k + 1 == *argc ? 1 : 2);
        return value;
    }
    return NULL;
}

bool tool_flag(int *argc, char **argv, const char *name)
{
    for (int k = 1; k < *argc && strcmp(argv[k], "--") != 0; k++)
        if (strcmp(argv[k], name) == 0) {
            take_out(argc, argv, k, 1);
            return true;
        }
    return false;
}

void tool_end_of_options(int *argc, char **argv)
{
    for (int k = 1; k < *argc; k++)
        if (strcmp(argv[k], "--") == 0) {
            take_out(argc, argv, k, 1);
            return;
        }
}

const char *tool_unknown_option(int argc, char **argv)
{
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; k++)
        if (argv[k][0] == '-' && argv[k][1])
            return argv[k];
    return NULL;
}

/* "oly trace --help", but not "oly trace program --help". */
static bool asks_for_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0) {
        printf("oly (Olympus) %s\n", OLY_STR(OLY_VERSION_MAJOR) "." OLY_STR(OLY_VERSION_MINOR));
        return 0;
    }
    bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    if (help && argc == 2) {
        usage(stdout);
        return 0;
    }
    if (help)
        name = argv[2];
    for (int k = 0; k < N_SUBCOMMANDS; k++) {
        if (strcmp(all[k].name, name) != 0)
            continue;
        current = all[k].name;
        if (!help && !asks_for_help(argc - 1, argv + 1))
            return all[k].run(argc - 1, argv + 1);
        tool_help(name, stdout);
        return 0;
    }
    if (*name)
        fprintf(stderr, "oly: there is no subcommand %s\n", name);
    usage(stderr);
    return TOOL_USAGE;
}
