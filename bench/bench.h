/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the bench: rows, settings, timing, printing. For bench/ alone. A file of rows holds what it measures
 * and ends in a table of bench_row, which main.c lists. */
#ifndef BENCH_H
#define BENCH_H

#include <olympus.h>

/* Measures and prints one line with bench_report. `row` is its own row, for rows that share a function. */
typedef struct bench_row bench_row;
struct bench_row {
    const char *name, *help;
    void (*run)(const bench_row *row);
    int64_t size, quick_size; /* the function defines what `size` means */
    const char *limit;  /* what of bench/peers/limits.c bounds it: copy, read, fma, sgemm, ...; NULL: nothing there */
    const char *inputs; /* rows of families.h: a description of the inputs */
};

/* Tables end with a row without a name. */
extern const bench_row bench_heat_rows[], bench_field_rows[], bench_array_rows[], bench_call_rows[],
    bench_movement_rows[], bench_reshard_rows[], bench_plan_rows[], bench_index_rows[], bench_elementwise_rows[],
    bench_family_rows[], bench_control_rows[], bench_collective_rows[], bench_workload_rows[], bench_program_rows[];

typedef struct bench_settings {
    bool quick;          /* small sizes: shows that a row works, measures nothing */
    int repeats;         /* the best of this many counts */
    bool processor_time; /* of all threads of this process and of the programs it has started, instead of elapsed time */
} bench_settings;
extern bench_settings bench_options;

/* row->size, or the quick one. */
int64_t bench_size(const bench_row *row);

/* Calls `work` once unmeasured, then `repeats` times, all processes starting and ending together; the minimum of the seconds. */
double bench_best(void (*work)(void *data), void *data);

/* A barrier. */
void bench_together(void);

double bench_now(void); /* seconds since an arbitrary moment */

/* Process 0 prints "name seconds rate unit". `seconds` is for one unit of work of `amount` units (10^9 of them for the
 * rates that begin with G): the rate is amount / seconds. */
void bench_report(const char *name, double seconds, double amount, const char *unit);
/* The same for calls: the rate is microseconds per call, and less is better. */
void bench_report_call(const char *name, double seconds);

/* -- arrays ------------------------------------------------------------------------------------------------------- */

/* Mesh 'x' over all devices. */
oly_mesh bench_mesh(void);

/* float32 array with value(i) for its i-th element, split as `spec` says over bench_mesh(). */
oly_array bench_array(int rank, const int64_t *shape, const char *spec, float (*value)(int64_t i));

float bench_wave(int64_t i); /* -4 to 5.972 */

#endif
