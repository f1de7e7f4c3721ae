/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the rates of the cost model once on a machine: memory, products and operations of one core, and messages between
 * rank 0 and the first other process of its node and of another. The file is $XDG_CACHE_HOME/olympus/costs-HOST (else below
 * ~/.cache), HOST being rank 0's:
 *
 *     olympus costs 2, network to OTHERHOST
 *     the measured rates, in the notation of OLYMPUS_COSTS
 *
 * It is written under another name and renamed, so that it is complete or absent, whoever else writes it. A file with
 * another first line, or that cannot be read, is ignored; where none can be written, the next start measures again. See
 * measure.h. */
#include "run/measure.h"
#include "communicator.h"
#include "core/error.h"
#include "core/option.h"
#include "core/text.h"
#include "kernel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FORMAT "olympus costs 2, network to "
enum {
    REPEATS = 3,
    MOST_NAME = 64,
    LONG = 8 << 20,
    SHORT_MESSAGES = 200,
    LONG_MESSAGES = 8,
    SIDE = 256,
    LINE = 1024,
    LINES = 4000
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- the file ---------------------------------------------------------------------------------------------------------- */

static void host_name(char name[MOST_NAME])
{
    memset(name, 0, MOST_NAME);
    if (gethostname(name, MOST_NAME - 1) != 0 || strpbrk(name, "/ \n"))
        strcpy(name, "unknown");
}

bool oly_costs_file(char *name, size_t size, const char *suffix)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char host[MOST_NAME];
    int n;
    host_name(host);
    if (cache && cache[0] == '/')
        n = snprintf(name, size, "%s/olympus", cache);
    else if (home && home[0] == '/')
        n = snprintf(name, size, "%s/.cache/olympus", home);
    else
        return false;
    if (n < 0 || (size_t)n >= size)
        return false;
    *strrchr(name, '/') = 0;
    mkdir(name, 0700); /* both may exist */
    name[strlen(name)] = '/';
    mkdir(name, 0700);
    int more = snprintf(name + n, size - (size_t)n, "/costs-%s%s", host, suffix);
    return more > 0 && (size_t)more < size - (size_t)n;
}

static void read_file(oly_rates_known *known)
{
    char name[512], text[2048];
    oly_rates rates = oly_rates_fixed();
    FILE *file = oly_costs_file(name, sizeof name, "") ? fopen(name, "r") : NULL;
    if (!file)
        return;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    char *numbers = strncmp(text, FORMAT, strlen(FORMAT)) == 0 ? strchr(text, '\n') : NULL;
    if (!numbers || oly_rates_add(numbers, &rates) != OLY_OK) { /* of an older version, or edited */
        oly_drop_message();
        return;
    }
    known->rates = rates;
    for (int l = 0; l < OLY_N_LEVELS; l++)
        known->there |= strstr(numbers, oly_level_name((oly_level)l)) ? 1u << l : 0;
    if (strstr(numbers, "memory") && strstr(numbers, "gemm") && strstr(numbers, "operations"))
        known->there |= OLY_RATES_OF_DEVICE;
    size_t length = strcspn(text + strlen(FORMAT), "\n");
    if (length < MOST_NAME)
        memcpy(known->network_to, text + strlen(FORMAT), length);
}

/* As stored in the file, and used from the first time on: all starts use the same numbers. */
static void rates_as_kept(oly_text *t, const oly_rates *rates, unsigned there)
{
    for (int l = 0; l < OLY_N_LEVELS; l++)
        if (there >> l & 1)
            oly_text_add(t, "%s=%.3fus,%.3fGB/s;\n", oly_level_name((oly_level)l), rates->link[l].latency * 1e6,
                         rates->link[l].bandwidth * 1e-9);
    oly_text_add(t, "memory=%.3fGB/s;\ngemm=%.3fGflop/s;\noperations=%.3fGop/s\n", rates->memory * 1e-9,
                 rates->gemm * 1e-9, rates->operations * 1e-9);
}

void oly_costs_write(const char *name, const char *text)
{
    char other[560];
    snprintf(other, sizeof other, "%s.%ld", name, (long)getpid());
    FILE *file = fopen(other, "w");
    if (!file)
        return;
    fputs(text, file);
    bool whole = fflush(file) == 0 && !ferror(file);
    if (fclose(file) != 0 || !whole || rename(other, name) != 0)
        unlink(other);
}

static void write_file(const char *network_to, const oly_text *numbers)
{
    char name[512];
    oly_text t = {0};
    oly_text_add(&t, FORMAT "%s\n%s", network_to, oly_text_chars(numbers));
    if (!t.failed && oly_costs_file(name, sizeof name, ""))
        oly_costs_write(name, oly_text_chars(&t));
    oly_text_free(&t);
}

oly_status oly_rates_wanted(oly_rates_known *known)
{
    *known = (oly_rates_known){0};
    OLY_TRY(oly_rates_read(oly_option.costs, &known->rates));
    host_name(known->host);
    if (known->rates.measure) {
        known->rates = oly_rates_fixed();
        read_file(known);
        known->rates.measure = true;
    }
    return OLY_OK;
}

/* -- one device -------------------------------------------------------------------------------------------------------- */

static void measure_memory(char *memory, oly_rates *r)
{
    oly_copy_task t = {.element_bytes = 8, .rank = 1, .extent = {LONG / 8}, .to_stride = {1}, .from_stride = {1}};
    int chunks = oly_copy_chunks(&t);
    double best = 1e9;
    for (int k = 0; k < REPEATS; k++) {
        double begin = now();
        for (int c = 0; c < chunks; c++)
            oly_copy_run(&t, memory + LONG, memory, c, chunks);
        double took = now() - begin;
        best = took < best ? took : best;
    }
    r->memory = 2.0 * LONG / best; /* read and written */
    r->link[OLY_LEVEL_PROCESS].bandwidth = LONG / best;
}

static void measure_gemm(char *memory, oly_rates *r)
{
    oly_gemm_task t = {.dtype = OLY_FLOAT32,
                       .batch = 1,
                       .m = SIDE,
                       .n = SIDE,
                       .k = SIDE,
                       .a_row = SIDE,
                       .a_column = 1,
                       .b_row = SIDE,
                       .b_column = 1,
                       .c_row = SIDE};
    int chunks = oly_gemm_chunks(&t);
    double best = 1e9;
    for (int k = 0; k < REPEATS; k++) {
        double begin = now();
        for (int c = 0; c < chunks; c++)
            oly_gemm_run(&t, memory, memory + 4 * SIDE * SIDE, memory + LONG, c, chunks);
        double took = now() - begin;
        best = took < best ? took : best;
    }
    r->gemm = 2.0 * SIDE * SIDE * SIDE / best;
}

static void measure_operations(char *memory, oly_rates *r)
{
    const int counts[] = {2};
    const void *sources[] = {memory, memory + 4 * LINE};
    double best = 1e9;
    for (int k = 0; k < REPEATS; k++) {
        double begin = now();
        for (int j = 0; j < LINES; j++)
            oly_combine(OLY_COMBINE_SUM, OLY_FLOAT32, false, 1, counts, sources, memory + 8 * LINE, 0, LINE);
        double took = now() - begin;
        best = took < best ? took : best;
    }
    r->operations = (double)LINES * LINE / best;
}

/* -- messages ---------------------------------------------------------------------------------------------------------- */

/* Seconds of an exchange of that many bytes in both directions. */
static oly_status time_exchange(int peer, char *memory, int64_t bytes, int times, double *seconds)
{
    int same = -1;
    oly_piece piece = {.buffer = 0, .device = -1, .peer_device = -1, .rank = 1, .extent = {bytes / 8}, .stride = {1}};
    oly_message message = {.peer = peer, .n_pieces = 1, .pieces = &piece, .same = &same};
    oly_exchange *x;
    oly_ticket ticket = {.sequence = 0, .fingerprint = 7, .call = "oly_init: measuring"};
    void *send = memory, *receive = memory + LONG;
    OLY_TRY(oly_exchange_make(8, 1, &message, 1, &message, &x));
    oly_status st = OLY_OK;
    double begin = now();
    for (int k = -1; k < times && st == OLY_OK; k++) {
        if (k == 0)
            begin = now(); /* the first one warms up */
        st = oly_exchange_start(x, &ticket, &send);
        if (st == OLY_OK)
            st = oly_exchange_finish(x, &ticket, &receive);
    }
    *seconds = (now() - begin) / times;
    oly_exchange_free(x);
    return st;
}

static oly_status measure_link(int peer, char *memory, oly_link *link)
{
    double quick, all;
    OLY_TRY(time_exchange(peer, memory, 8, SHORT_MESSAGES, &quick));
    OLY_TRY(time_exchange(peer, memory, LONG, LONG_MESSAGES, &all));
    link->latency = quick;
    link->bandwidth = LONG / (all > 2 * quick ? all - quick : all);
    return OLY_OK;
}

/* The first process at this distance from rank 0; -1: none. */
static int peer_at(oly_level level)
{
    for (int r = 1; r < oly_world_size(); r++)
        if ((oly_node_of(r) == oly_node_of(0) ? OLY_LEVEL_NODE : OLY_LEVEL_NETWORK) == level)
            return r;
    return -1;
}

static oly_status measure(oly_rates *rates, unsigned missing)
{
    int rank = oly_world_rank();
    oly_status st = OLY_OK;
    char *memory = oly_calloc(2, LONG);
    if (!memory)
        return oly_out_of_memory(2 * LONG, "measuring");
    if (rank == 0 && missing & (OLY_RATES_OF_DEVICE | 1u << OLY_LEVEL_PROCESS)) {
        measure_memory(memory, rates);
        measure_gemm(memory, rates);
        measure_operations(memory, rates);
    }
    for (int l = OLY_LEVEL_NODE; l < OLY_N_LEVELS && st == OLY_OK; l++) {
        int peer = peer_at((oly_level)l);
        if (peer < 0 || !(missing >> l & 1) || (rank != 0 && rank != peer))
            continue;
        st = measure_link(rank == 0 ? peer : 0, memory, &rates->link[l]);
    }
    oly_release(memory);
    return st;
}

/* All ranks get rank 0's rates, which are stored. */
static oly_status share(oly_rates *rates, unsigned there, const char *network_to)
{
    int n = oly_world_size();
    oly_rates *all = oly_calloc((size_t)n, sizeof *all);
    if (!all)
        return oly_out_of_memory(sizeof *all * (size_t)n, "rates");
    oly_status st = oly_world_gather(rates, all, sizeof *rates);
    oly_text numbers = {0};
    if (st == OLY_OK) {
        rates_as_kept(&numbers, &all[0], there);
        *rates = oly_rates_fixed();
        st = numbers.failed ? oly_out_of_memory(0, "rates") : oly_rates_add(oly_text_chars(&numbers), rates);
    }
    if (st == OLY_OK && oly_world_rank() == 0)
        write_file(network_to, &numbers);
    oly_text_free(&numbers);
    oly_release(all);
    return st;
}

int oly_rates_peer(void)
{
    return peer_at(OLY_LEVEL_NETWORK);
}

oly_status oly_rates_settle(const oly_rates_known *rank0, const char *other_host)
{
    oly_rates rates = rank0->rates;
    unsigned there = rank0->there, possible = OLY_RATES_OF_DEVICE | 1u << OLY_LEVEL_PROCESS;
    bool measured = rates.measure;
    if (other_host && strcmp(other_host, rank0->network_to) != 0)
        there &= ~(1u << OLY_LEVEL_NETWORK);
    for (int l = OLY_LEVEL_NODE; l < OLY_N_LEVELS; l++)
        possible |= peer_at((oly_level)l) >= 0 ? 1u << l : 0;
    unsigned missing = measured ? possible & ~there : 0;
    if (missing) {
        OLY_TRY(oly_world_vote(measure(&rates, missing), "measuring what messages cost"));
        OLY_TRY(share(&rates, there | missing, other_host ? other_host : rank0->network_to));
    }
    if (measured) { /* what the option says itself goes before; choices do not see what messages were measured to cost */
        rates.common = oly_rates_fixed().common;
        OLY_TRY(oly_rates_add(oly_option.costs, &rates));
    }
    oly_rates_use(&rates);
    return OLY_OK;
}
