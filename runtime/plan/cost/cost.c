/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency-bandwidth model: its numbers, and the cost of transfers and collectives. See cost.h. */
#include "plan/cost/cost.h"
#include "core/error.h"
#include "core/facts.h"
#include "core/scan.h"
#include "core/text.h"
#include <string.h>

/* -- the numbers ------------------------------------------------------------------------------------------------------ */

/* Of the devices what their platform says; a typical network: 100 Gbit/s between nodes. */
oly_rates oly_rates_fixed(void)
{
    const oly_facts *f = oly_facts_now();
    return (oly_rates){.link = {{f->copy_latency, f->copy_bandwidth}, {2e-6, 6e9}, {4e-6, 10e9}},
                       .memory = f->memory,
                       .gemm = f->gemm,
                       .operations = f->operations,
                       .common = {2e-6, 6e9}};
}

static oly_rates in_use; /* all zeros until they are asked for or set */

const oly_rates *oly_rates_now(void)
{
    if (in_use.memory == 0)
        in_use = oly_rates_fixed();
    return &in_use;
}

void oly_rates_use(const oly_rates *rates)
{
    in_use = *rates;
}

/* -- as text ----------------------------------------------------------------------------------------------------------- */

/* Reads 12, 0.5 or 1.25. Not strtod, whose decimal point depends on the locale. */
static bool take_number(oly_scanner *s, double *value)
{
    int64_t whole;
    if (oly_scan_peek(s) == '-' || !oly_scan_integer(s, &whole))
        return false;
    *value = (double)whole;
    if (*s->at != '.')
        return true;
    double digit = 0.1;
    for (s->at++; *s->at >= '0' && *s->at <= '9'; s->at++, digit /= 10)
        *value += digit * (*s->at - '0');
    return true;
}

/* Reads a unit with a prefix, "us" of "s" or "GB" of "B", and multiplies *value by the prefix. small: only prefixes
 * below 1. */
static bool take_unit(oly_scanner *s, const char *unit, bool small, double *value)
{
    static const struct {
        char prefix;
        double factor;
    } prefixes[] = {{'n', 1e-9}, {'u', 1e-6}, {'m', 1e-3}, {'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
    char word[16];
    const char *begin = s->at;
    if (!oly_scan_word(s, word, sizeof word))
        return false;
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
        if (word[0] == prefixes[k].prefix && (prefixes[k].factor < 1) == small && strcmp(word + 1, unit) == 0) {
            *value *= prefixes[k].factor;
            return true;
        }
    if (strcmp(word, unit) == 0)
        return true;
    s->at = begin;
    return false;
}

static oly_status read_time(oly_scanner *s, double *seconds)
{
    if (!take_number(s, seconds) || !take_unit(s, "s", true, seconds))
        return oly_scan_expected(s, "a time such as 2us");
    return OLY_OK;
}

static oly_status read_rate(oly_scanner *s, const char *unit, const char *expected, double *rate)
{
    char second[2];
    if (!take_number(s, rate) || !(*rate > 0) || !take_unit(s, unit, false, rate) || !oly_scan_take(s, '/') ||
        !oly_scan_word(s, second, sizeof second) || second[0] != 's')
        return oly_scan_expected(s, expected);
    return OLY_OK;
}

static oly_status read_entry(oly_scanner *s, oly_rates *r)
{
    char word[16];
    oly_scanner before = *s;
    if (!oly_scan_word(s, word, sizeof word))
        return oly_scan_expected(s, "process, node, network, memory, gemm, operations, levels or measure");
    if (strcmp(word, "levels") == 0 || strcmp(word, "measure") == 0) {
        *(word[0] == 'l' ? &r->by_level : &r->measure) = true;
        return OLY_OK;
    }
    double *rate = strcmp(word, "memory") == 0       ? &r->memory
                   : strcmp(word, "gemm") == 0       ? &r->gemm
                   : strcmp(word, "operations") == 0 ? &r->operations
                                                     : NULL;
    int level = 0;
    while (!rate && level < OLY_N_LEVELS && strcmp(word, oly_level_name((oly_level)level)) != 0)
        level++;
    if (level == OLY_N_LEVELS)
        return oly_scan_expected(&before, "process, node, network, memory, gemm, operations, levels or measure");
    if (!oly_scan_take(s, '='))
        return oly_scan_expected(s, "=");
    if (rate == &r->gemm)
        return read_rate(s, "flop", "a rate such as 50Gflop/s", rate);
    if (rate == &r->operations)
        return read_rate(s, "op", "a rate such as 2Gop/s", rate);
    if (rate)
        return read_rate(s, "B", "a rate such as 10GB/s", rate);
    OLY_TRY(read_time(s, &r->link[level].latency));
    if (!oly_scan_take(s, ','))
        return oly_scan_expected(s, "a comma and a rate");
    OLY_TRY(read_rate(s, "B", "a rate such as 10GB/s", &r->link[level].bandwidth));
    if (level == OLY_LEVEL_NODE)
        r->common = r->link[level];
    return OLY_OK;
}

oly_status oly_rates_read(const char *text, oly_rates *rates)
{
    *rates = oly_rates_fixed();
    return oly_rates_add(text, rates);
}

oly_status oly_rates_add(const char *text, oly_rates *rates)
{
    oly_scanner s = oly_scan_begin(text);
    while (!oly_scan_end(&s)) {
        OLY_TRY(read_entry(&s, rates));
        if (!oly_scan_end(&s) && !oly_scan_take(&s, ';'))
            return oly_scan_expected(&s, "; or the end");
    }
    return OLY_OK;
}

void oly_rates_text(oly_text *t, const oly_rates *r)
{
    for (int l = 0; l < OLY_N_LEVELS; l++)
        oly_text_add(t, "%s=%.3fus,%.3fGB/s; ", oly_level_name((oly_level)l), r->link[l].latency * 1e6,
                     r->link[l].bandwidth * 1e-9);
    oly_text_add(t, "memory=%.3fGB/s; gemm=%.3fGflop/s; operations=%.3fGop/s%s", r->memory * 1e-9, r->gemm * 1e-9,
                 r->operations * 1e-9, r->by_level ? "; levels" : "");
}

/* -- costs ----------------------------------------------------------------------------------------------------------- */

static double seconds_of(const oly_link *l, double bytes, double messages)
{
    return messages * l->latency + bytes / l->bandwidth;
}

double oly_cost_transfer(oly_level level, double bytes, double messages)
{
    return seconds_of(&oly_rates_now()->link[level], bytes, messages);
}

double oly_cost_choice(oly_level level, double bytes, double messages)
{
    return seconds_of(oly_rates_now()->by_level ? &oly_rates_now()->link[level] : &oly_rates_now()->common, bytes,
                      messages);
}

double oly_collective_bytes(oly_collective kind, int members, double bytes)
{
    double part = bytes / members;
    switch (kind) {
    case OLY_ALL_GATHER:
    case OLY_REDUCE_SCATTER: return (members - 1) * part;
    case OLY_ALL_REDUCE: return 2 * (members - 1) * part;
    case OLY_ALL_TO_ALL: return (members - 1) * part;
    case OLY_PERMUTE: return members > 1 ? bytes : 0;
    }
    return 0;
}

/* An all-gather runs over the minor axes first, so that the major axes carry large parts in few messages; a
 * reduce-scatter runs in the opposite order. An all-reduce is a reduce-scatter and then an all-gather. */
double oly_cost_collective(oly_collective kind, oly_mesh mesh, const oly_axis_list *axes, double bytes)
{
    double seconds = 0, value = bytes;
    if (kind == OLY_ALL_REDUCE)
        return oly_cost_collective(OLY_REDUCE_SCATTER, mesh, axes, bytes) +
               oly_cost_collective(OLY_ALL_GATHER, mesh, axes, bytes);
    if (kind == OLY_PERMUTE || kind == OLY_ALL_TO_ALL) {
        int members = oly_axis_list_parts(mesh, axes);
        double messages = kind == OLY_PERMUTE ? (members > 1) : members - 1;
        return oly_cost_transfer(oly_axes_level(mesh, axes), oly_collective_bytes(kind, members, bytes), messages);
    }
    for (int k = 0; k < axes->n; k++) { /* major first: after each stage a member has 1 / members of what it had */
        int members = mesh->size[axes->axis[k]];
        seconds += oly_cost_transfer(oly_axis_level(mesh, axes->axis[k]), oly_collective_bytes(kind, members, value),
                                     members - 1);
        value /= members;
    }
    return seconds;
}

double oly_cost_memory(double bytes)
{
    return bytes / oly_rates_now()->memory;
}

double oly_cost_gemm(oly_dtype dtype, double multiply_adds)
{
    double flops = 2 * multiply_adds;
    switch (dtype) {
    case OLY_FLOAT64: flops *= 2; break;
    case OLY_COMPLEX64: flops *= 4; break;
    case OLY_COMPLEX128: flops *= 8; break;
    default: break;
    }
    return flops / oly_rates_now()->gemm;
}

double oly_cost_operations(double n)
{
    return n / oly_rates_now()->operations;
}
