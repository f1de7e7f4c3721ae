/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what kernels take on this machine. The file is text:
 *
 *     olympus kernels 2, ISA, THREADS threads, N numbers
 *     N integers, in the order of oly_kernel_rates: attoseconds
 *     end
 *
 * It is written under another name and renamed, as that of measure.c is; a file with another first line, another number of integers, or
 * without its end is ignored, and measured again. See kernel_rates.h. */
#include "run/kernel_rates.h"
#include "communicator.h"
#include "core/error.h"
#include "device/platform.h"
#include "device/workers.h"
#include "plan/cost/cost.h"
#include "plan/cost/forecast.h"
#include "run/forecast.h"
#include "run/measure.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static oly_kernel_rates *in_use;

const oly_kernel_rates *oly_kernel_rates_now(void)
{
    return in_use;
}

/* -- as text --------------------------------------------------------------------------------------------------------------- */

enum { A_LINE = 16 }; /* numbers */
#define ATTOSECONDS 1e18

static void first_line(char line[128])
{
    snprintf(line, 128, "olympus kernels 2, %s, %d threads, %d numbers\n", oly_kernels_isa(), oly_workers_count(),
             (int)OLY_N_KERNEL_RATES);
}

void oly_kernel_rates_text(oly_text *t, const oly_kernel_rates *rates)
{
    char line[128];
    const double *number = (const double *)rates;
    first_line(line);
    oly_text_add(t, "%s", line);
    for (int k = 0; k < OLY_N_KERNEL_RATES; k++)
        oly_text_add(t, "%lld%c", (long long)(number[k] > 0 && number[k] < 1 ? number[k] * ATTOSECONDS + 0.5 : 0),
                     k % A_LINE == A_LINE - 1 || k == OLY_N_KERNEL_RATES - 1 ? '\n' : ' ');
    oly_text_add(t, "end\n");
}

bool oly_kernel_rates_read(const char *text, oly_kernel_rates *rates)
{
    char line[128];
    double *number = (double *)rates;
    first_line(line);
    if (strncmp(text, line, strlen(line)) != 0)
        return false;
    text += strlen(line);
    for (int k = 0; k < OLY_N_KERNEL_RATES; k++) {
        int64_t value = 0;
        if (*text < '0' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9'; text++) {
            if (value > INT64_MAX / 16)
                return false;
            value = 10 * value + (*text - '0');
        }
        if (*text != ' ' && *text != '\n')
            return false;
        text++;
        number[k] = (double)value / ATTOSECONDS;
    }
    return strcmp(text, "end\n") == 0;
}

/* -- the file --------------------------------------------------------------------------------------------------------------- */

/* Other instruction sets and numbers of threads have files of their own. */
static bool file_name(char *name, size_t size)
{
    char suffix[64];
    snprintf(suffix, sizeof suffix, "-kernels-%s-%d", oly_kernels_isa(), oly_workers_count());
    return oly_costs_file(name, size, suffix);
}

static bool read_file(oly_kernel_rates *rates)
{
    enum { LONGEST = 21 * OLY_N_KERNEL_RATES + 256 };
    char name[512], *text = oly_malloc(LONGEST + 1);
    FILE *file = text && file_name(name, sizeof name) ? fopen(name, "r") : NULL;
    if (!file) {
        oly_release(text);
        return false;
    }
    size_t n = fread(text, 1, LONGEST, file);
    fclose(file);
    text[n] = 0;
    bool read = oly_kernel_rates_read(text, rates);
    oly_release(text);
    return read;
}

static void write_file(const char *text)
{
    char name[512];
    if (file_name(name, sizeof name))
        oly_costs_write(name, text);
}

/* -- measuring -------------------------------------------------------------------------------------------------------------- */

/* Each number is the lower one of two, some time apart: other programs that run meanwhile disturb only one, and the numbers are kept. */
static void measure_twice(oly_kernel_rates *rates, char *memory)
{
    static oly_kernel_rates again;
    double *number = (double *)rates;
    const double *other = (const double *)&again;
    oly_measure_kernels(rates, memory);
    oly_measure_local(rates, memory);
    again = (oly_kernel_rates){0};
    oly_measure_kernels(&again, memory);
    oly_measure_local(&again, memory);
    for (int k = 0; k < OLY_N_KERNEL_RATES; k++)
        number[k] = other[k] < number[k] ? other[k] : number[k];
}

/* As stored in the file, and used from the first time on: all starts use the same numbers. */
static oly_status measure(oly_kernel_rates *rates)
{
    enum { HUGE_PAGE = 1 << 21 };
    char *block = oly_malloc(OLY_RATE_MEMORY + HUGE_PAGE);
    oly_text text = {0};
    if (!block)
        return oly_out_of_memory(OLY_RATE_MEMORY, "measuring kernels");
    char *memory = block + (HUGE_PAGE - (uintptr_t)block % HUGE_PAGE) % HUGE_PAGE;
    madvise(memory, OLY_RATE_MEMORY, MADV_HUGEPAGE); /* as that of arrays: device/cpu.c */
    memset(memory, 0, OLY_RATE_MEMORY);
    measure_twice(rates, memory);
    oly_release(block);
    oly_kernel_rates_text(&text, rates);
    oly_status st = text.failed ? oly_out_of_memory(0, "measuring kernels") : OLY_OK;
    if (st == OLY_OK) {
        oly_kernel_rates_read(oly_text_chars(&text), rates);
        write_file(oly_text_chars(&text));
    }
    oly_text_free(&text);
    return st;
}

oly_status oly_kernel_rates_settle(bool peers)
{
    oly_kernel_rates_forget();
    if (!oly_rates_now()->measure || !oly_platform_get()->computes)
        return OLY_OK;
    oly_kernel_rates *rates = oly_calloc(1, sizeof *rates);
    oly_status st = rates ? OLY_OK : oly_out_of_memory(sizeof *rates, "rates of kernels");
    if (st == OLY_OK && (!peers || oly_world_rank() == 0) && !read_file(rates)) {
        memset(rates, 0, sizeof *rates); /* a damaged file may have been read in part */
        st = measure(rates);
    }
    if (peers)
        st = oly_world_vote(st, "measuring kernels");
    if (st == OLY_OK && peers)
        st = oly_world_share(rates, sizeof *rates, 0);
    if (st != OLY_OK) {
        oly_release(rates);
        return st;
    }
    static const oly_forecast_model measured = {.step = oly_forecast_measured};
    in_use = rates;
    oly_forecast_by(&measured);
    return OLY_OK;
}

void oly_kernel_rates_forget(void)
{
    oly_release(in_use);
    in_use = NULL;
    oly_forecast_by(NULL);
}
