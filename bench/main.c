/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark program: measures what an Olympus program spends time on, and prints a line for each measurement.
 *
 * Run:    build/bench/bench [OPTION...] [NAME...], or under launch/olyrun (all ranks take part, rank 0 prints).
 *         OLYMPUS_NUM_CPU_DEVICES is the number of devices per process.
 * Prints: name, seconds, rate, unit, separated by tabs. bench/compare.sh runs it next to hand-written programs. */
#include "bench.h"
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_REPEATS = 3 };

static const bench_row *const tables[] = {
    bench_heat_rows,    bench_field_rows,      bench_array_rows,    bench_call_rows,        bench_movement_rows,
    bench_reshard_rows, bench_plan_rows,       bench_index_rows,    bench_elementwise_rows, bench_family_rows,
    bench_control_rows, bench_collective_rows, bench_workload_rows, bench_program_rows};

#define FOR_EACH_ROW(row)                                                                                              \
    for (size_t table_ = 0; table_ < sizeof tables / sizeof tables[0]; table_++)                                       \
        for (const bench_row *row = tables[table_]; row->name; row++)

static void usage(FILE *file)
{
    fprintf(
        file,
        "usage: bench [OPTION...] [NAME...]\n"
        "Measures the named rows (default: all; \"plan\" also matches plan_10 and so on; patterns are allowed) and\n"
        "prints for each the best of the repeats:\n"
        "    name <tab> seconds <tab> rate <tab> unit\n"
        "For rates in us/call less is better, for all others more.\n"
        "  --repeats N   repeats, at least %d (default %d)\n"
        "  --quick       small sizes and %d repeats: checks that the rows work\n"
        "  --cpu         processor time of all threads of a process instead of elapsed time, for busy machines\n"
        "  --list        lists the rows and what they measure\n"
        "  --table       the same for programs: name, size, size with --quick, limit, inputs\n"
        "  --help        this text\n"
        "OLYMPUS_NUM_CPU_DEVICES: devices per process. Also runs under mpirun.\n",
        LEAST_REPEATS, bench_options.repeats, LEAST_REPEATS);
}

static void list(void)
{
    FOR_EACH_ROW(row)
    {
        printf("%-16s %s\n", row->name, row->help);
    }
}

/* For bench/peers/array_rows.py. */
static void table(void)
{
    FOR_EACH_ROW(row)
    {
        printf("%s\t%lld\t%lld\t%s\t%s\n", row->name, (long long)row->size, (long long)row->quick_size,
               row->limit ? row->limit : "-", row->inputs ? row->inputs : "-");
    }
}

/* An integer of at least LEAST_REPEATS; ends the program otherwise. */
static int repeats(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || end == text || n < LEAST_REPEATS || n > 1000000) {
        fprintf(stderr, "bench: --repeats needs a number of at least %d, not '%s'\n", LEAST_REPEATS, text);
        exit(2);
    }
    return (int)n;
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {{"repeats", required_argument, NULL, 'r'},
                                          {"quick", no_argument, NULL, 'q'},
                                          {"list", no_argument, NULL, 'l'},
                                          {"table", no_argument, NULL, 't'},
                                          {"cpu", no_argument, NULL, 'c'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'r': bench_options.repeats = repeats(optarg); break;
        case 'q':
            bench_options.quick = true;
            bench_options.repeats = LEAST_REPEATS;
            break;
        case 'l': list(); exit(0);
        case 't': table(); exit(0);
        case 'c': bench_options.processor_time = true; break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
}

/* No names: every row. "plan" is plan_10, too. */
static bool wanted(const bench_row *row, int n, char **names)
{
    for (int k = 0; k < n; k++) {
        size_t length = strlen(names[k]);
        if (fnmatch(names[k], row->name, 0) == 0 ||
            (strncmp(names[k], row->name, length) == 0 && row->name[length] == '_'))
            return true;
    }
    return n == 0;
}

static void check_names(int n, char **names)
{
    for (int k = 0; k < n; k++) {
        bool found = false;
        FOR_EACH_ROW(row)
        {
            found = found || wanted(row, 1, &names[k]);
        }
        if (!found) {
            fprintf(stderr, "bench: there is no row '%s'; bench --list lists them\n", names[k]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    int n = argc - optind;
    char **names = argv + optind;
    check_names(n, names);
    oly_init(&argc, &argv);
    FOR_EACH_ROW(row)
    {
        if (wanted(row, n, names))
            OLY_SCOPE
            {
                row->run(row);
            }
    }
    return oly_finalize();
}
