/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases about the planner: which shardings it chooses, the contents of the shards, and how much its plans move,
 * compared with XLA's partitioner. Called by the oracle runner. */
#include "oracle.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- XLA's plans --------------------------------------------------------------------------------------------------- */

/* The plan of one of its two propagators. */
typedef struct other_plan {
    int64_t wire, collectives;
    bool there;
} other_plan;

static other_plan other_plan_of(const oracle_case *c, const char *backend)
{
    other_plan plan = {0};
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(c, "wire", k)); k++)
        if (strcmp(line->words[1], backend) == 0) {
            plan.wire = strtoll(line->words[2], NULL, 10);
            plan.there = true;
        }
    for (int k = 0; (line = check_oracle_line(c, "coll", k)); k++) {
        const char *n = check_oracle_value(line, "n");
        if (strcmp(line->words[1], backend) == 0 && n)
            plan.collectives += strtoll(n, NULL, 10);
    }
    return plan;
}

/* The better of the two (fewer bytes, then fewer collectives) among those whose results have our shardings; of both if
 * none has (a propagator may ignore a sharding that the program fixes: its plan is then one of another program). */
static other_plan best_other(const oracle_case *c, const bool *same)
{
    other_plan a = other_plan_of(c, "shardy"), b = other_plan_of(c, "gspmd");
    if (same && same[0] != same[1]) {
        a.there = a.there && same[0];
        b.there = b.there && same[1];
    }
    if (!a.there)
        return b;
    return !b.there || a.wire < b.wire || (a.wire == b.wire && a.collectives <= b.collectives) ? a : b;
}

/* Ours may move no more, and with as many bytes need no more collectives. Every process counts its own devices: with
 * several processes the sum is not known and nothing is compared. */
static void compare_costs(oracle_run *run, const oly_plan_costs *ours, other_plan theirs, const char *what)
{
    if (!theirs.there || oly_process_count() > 1)
        return;
    size_t used = strlen(run->reason);
    snprintf(run->reason + used, sizeof run->reason - used,
             "%s%s moves %" PRId64 " bytes in %" PRId64 " collectives, XLA %" PRId64 " in %" PRId64, used ? "; " : "",
             what, ours->wire_bytes, ours->collectives, theirs.wire, theirs.collectives);
    if (ours->wire_bytes > theirs.wire ||
        (ours->wire_bytes == theirs.wire && ours->collectives > theirs.collectives && theirs.wire > 0))
        oracle_fail(run, "more than XLA");
}

/* -- family reshard -------------------------------------------------------------------------------------------------- */

/* "[0:4,0:3]" */
static bool read_ranges(const char *word, int rank, int64_t *start, int64_t *extent)
{
    for (int d = 0; d < rank; d++) {
        char *end;
        start[d] = strtoll(++word, &end, 10);
        if (*end != ':')
            return false;
        extent[d] = strtoll(end + 1, &end, 10) - start[d];
        word = end;
    }
    return rank == 0 ? strcmp(word, "[]") == 0 : strcmp(word, "]") == 0;
}

/* Checks that the shards of this process are placed as column `column` of the `dev` lines says, and hold the elements
 * of the global array there. */
static bool check_shards(oracle_run *run, oly_array x, int column, const float *all)
{
    int rank = oly_rank(x);
    const int64_t *shape = oly_shape(x);
    const oracle_line *line;
    for (int s = 0; s < oly_shard_count(x); s++)
        OLY_SCOPE
        {
            oly_shard shard = oly_get_shard(x, s);
            int64_t start[OLY_MAX_RANK], extent[OLY_MAX_RANK];
            int device = oly_device_id(shard.device);
            for (int k = 0; (line = check_oracle_line(run->c, "dev", k)); k++)
                if (atoi(line->words[1]) == device)
                    break;
            if (!line || line->n_words <= column || !read_ranges(line->words[column], rank, start, extent)) {
                oracle_fail(run, "no ranges for device %d", device);
                continue;
            }
            bool empty = false, same = true, empty_there = false;
            int64_t n = 1;
            for (int d = 0; d < rank; d++) {
                empty = empty || shard.extent[d] == 0;
                empty_there = empty_there || extent[d] == 0;
                same = same && shard.start[d] == start[d] && shard.extent[d] == extent[d];
                n *= shard.extent[d];
            }
            if (!same && !(empty && empty_there))
                oracle_fail(run, "device %d holds other ranges than %s", device, line->words[column]);
            for (int64_t i = 0; i < n && !empty; i++) {
                int64_t rest = i, at = 0, stride = 1;
                for (int d = rank - 1; d >= 0; d--) {
                    at += (shard.start[d] + rest % shard.extent[d]) * stride;
                    rest /= shard.extent[d];
                    stride *= shape[d];
                }
                if (((const float *)shard.memory)[i] != all[at]) {
                    oracle_fail(run, "device %d holds wrong elements", device);
                    break;
                }
            }
        }
    return !run->failed;
}

static void place_again(const oly_array *in, oly_array *out, void *sharding)
{
    out[0] = oly_with_sharding_constraint(in[0], (oly_sharding)sharding);
}

void oracle_check_reshard(oracle_run *run)
{
    oly_mesh mesh;
    oly_array x;
    const oracle_line *ranges = check_oracle_line(run->c, "ranges", 0);
    const oracle_line *to = check_oracle_line(run->c, "to", 0), *recv = check_oracle_line(run->c, "recv", 0);
    if (!oracle_mesh(run, &mesh) || oracle_inputs(run, mesh, &x, 1) != 1)
        return;
    oly_sharding target = oracle_sharding(mesh, to->words[1]);
    oly_array moved = oly_device_put(x, target);
    size_t bytes = sizeof(float) * (size_t)oly_size(x);
    float *all = malloc(bytes + 1);
    if (!moved || !all || oly_process_allgather(x, all, bytes) != OLY_OK)
        oracle_fail_call(run, "placing the array");
    else if (check_shards(run, x, 2, all))
        check_shards(run, moved, 3, all);
    free(all);
    oly_plan_costs costs;
    oly_fn f = oly_jit(place_again, 1, 1, .user = (void *)target);
    if (oly_costs(&costs, f, x) != OLY_OK)
        oracle_fail_call(run, "planning");
    else if (oly_process_count() == 1 && costs.wire_bytes > 4 * strtoll(recv->words[1], NULL, 10))
        oracle_fail(run, "moves %" PRId64 " bytes, %s elements are needed", costs.wire_bytes, recv->words[1]);
    compare_costs(run, &costs, best_other(run->c, NULL), "the plan");
    if (ranges && strcmp(ranges->words[1], "balanced") == 0)
        oracle_extension(run, "uneven");
}

/* -- family auto ----------------------------------------------------------------------------------------------------- */

/* Compares the values of the sharded program with those of the same program on one device, in double precision: some of
 * the programs magnify the rounding of float32. */
static void compare_values(oracle_run *run, oly_array sharded, oly_array alone, const char *name)
{
    if (!alone || !sharded || oly_size(alone) == 0)
        return;
    oly_array a = oly_astype(sharded, OLY_FLOAT64), b = oly_astype(alone, OLY_FLOAT64);
    size_t bytes = sizeof(double) * (size_t)oly_size(alone);
    double *x = malloc(bytes), *y = malloc(bytes), scale = 1e-6;
    if (x && y && oly_process_allgather(a, x, bytes) == OLY_OK && oly_get(b, y, bytes) == OLY_OK) {
        for (int64_t i = 0; i < oly_size(alone); i++)
            scale = fmax(scale, fabs(y[i]));
        for (int64_t i = 0; i < oly_size(alone); i++)
            if (!(x[i] == y[i] || fabs(x[i] - y[i]) <= 1e-9 * scale || (isnan(x[i]) && isnan(y[i])))) {
                oracle_fail(run, "%s[%" PRId64 "] is %g sharded and %g on one device", name, i, x[i], y[i]);
                break;
            }
    } else {
        oracle_fail_call(run, name);
    }
    free(x);
    free(y);
}

static void compare_all_values(oracle_run *run, const oracle_program *p)
{
    oracle_program wide = *p, alone = *p;
    oly_array sharded[ORACLE_MOST_OUTPUTS] = {NULL}, single[ORACLE_MOST_OUTPUTS] = {NULL};
    oly_array *wanted[ORACLE_MOST_OUTPUTS];
    const oracle_line *line;
    for (int k = 0; k < p->n_in; k++) {
        bool floating = oly_dtype_of(p->in[k]) == OLY_FLOAT32;
        wide.in[k] = floating ? oly_astype(p->in[k], OLY_FLOAT64) : p->in[k];
        size_t bytes = (size_t)oly_size(wide.in[k]) * oly_dtype_size(oly_dtype_of(wide.in[k]));
        void *data = malloc(bytes + 1);
        if (!data || oly_process_allgather(wide.in[k], data, bytes) != OLY_OK)
            oracle_fail_call(run, "the operands");
        else
            alone.in[k] = oly_from_host(data, oly_dtype_of(wide.in[k]), oly_rank(wide.in[k]), oly_shape(wide.in[k]));
        free(data);
    }
    for (int k = 0; k < p->n_out; k++)
        wanted[k] = &sharded[k];
    oly_fn f = oly_jit(oracle_program_run, p->n_in, p->n_out, .user = &wide, .name = run->c->id);
    if (run->failed || oly_call(f, p->n_in, wide.in, p->n_out, wanted) != OLY_OK) {
        oracle_fail_call(run, "running in double precision");
        return;
    }
    alone.mesh = NULL; /* on one device constraints split nothing */
    oracle_program_run(alone.in, single, &alone);
    for (int k = 0; (line = check_oracle_line(run->c, "ret", k)); k++)
        compare_values(run, sharded[k], single[k], line->words[1]);
}

/* Did a propagator choose this sharding for the result, too? *theirs: what it chose. */
static bool chosen_by(oracle_run *run, const oracle_program *p, const char *backend, const char *name, oly_array result,
                      const char **theirs)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "outspec", k)); k++) {
        if (strcmp(line->words[1], backend) != 0 || strcmp(line->words[2], name) != 0)
            continue;
        if (strcmp(line->words[3], "?") == 0)
            return false; /* a sharding that no spec can express */
        *theirs = line->words[3];
        return oly_sharding_equivalent(oly_sharding_of(result), oracle_sharding(p->mesh, line->words[3]),
                                       oly_rank(result), oly_shape(result));
    }
    return false;
}

/* The shardings of the results are those of a propagator, or ours moves less. */
static void compare_plans(oracle_run *run, const oracle_program *p, const oly_array *results,
                          const oly_plan_costs *costs)
{
    static const char *const backends[] = {"shardy", "gspmd"};
    const char *theirs = "unknown", *name = "";
    const oracle_line *line;
    char ours[256] = "";
    bool same[2] = {true, true};
    for (int k = 0; (line = check_oracle_line(run->c, "ret", k)); k++)
        for (int b = 0; b < 2; b++)
            if (!chosen_by(run, p, backends[b], line->words[1], results[k], &theirs)) {
                same[b] = false;
                name = line->words[1];
                oly_sharding_str(oly_sharding_of(results[k]), ours, sizeof ours);
            }
    other_plan best = best_other(run->c, same);
    compare_costs(run, costs, best, "our plan");
    if (oly_process_count() == 1 && !same[0] && !same[1] && costs->wire_bytes >= best.wire)
        oracle_fail(run, "%s is sharded %s, XLA's %s", name, ours, theirs);
}

void oracle_check_plan(oracle_run *run)
{
    oracle_program p;
    oly_array results[ORACLE_MOST_OUTPUTS] = {NULL}, *wanted[ORACLE_MOST_OUTPUTS];
    oly_plan_costs costs = {0};
    if (!oracle_program_begin(&p, run, "ret"))
        return;
    for (int k = 0; k < p.n_out; k++)
        wanted[k] = &results[k];
    oly_fn f = oly_jit(oracle_program_run, p.n_in, p.n_out, .user = &p, .name = run->c->id);
    if (oly_call(f, p.n_in, p.in, p.n_out, wanted) != OLY_OK || oly_costs_n(&costs, f, p.n_in, p.in) != OLY_OK) {
        oracle_fail_call(run, "running");
        return;
    }
    compare_plans(run, &p, results, &costs);
    compare_all_values(run, &p);
}
