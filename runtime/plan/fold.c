/* The steps of reductions over devices, stage by stage (fold_order.c). Every device needs the partials of a list of positions, folds
 * them in that order, and all the devices of one process with the same list share one fold. Small partials go to everybody, who folds
 * them all; of large ones each process folds a slice and hands it round. What would take too much memory of one process goes in
 * rounds, each of a part of the elements. Called by fold_wait.c. */
#include "plan/fold.h"
#include "plan/wires.h"
#include "core/option.h"
#include <string.h>

enum { SLICED_BYTES = 1 << 15 };

/* Folds one value after the other; what all of them send goes in one exchange. */
typedef struct folder {
    oly_planner *p;
    const oly_node *node;
    const oly_layout *layout;
    const oly_fold_stage *stage;
    int64_t item; /* number of the value, in the upper half: first part of the keys of its pieces */
    bool sliced;  /* each process folds a slice and hands it round: large partials of several processes */
    int round, n_rounds;
    int slot, staging; /* staging: slot of device 0 for partials of other processes */
    int64_t received;  /* bytes in staging so far */
    oly_wires partials, results;
    int group, n_sources, sources[OLY_FOLD_SOURCES]; /* of the device before: most have the same */
    int n_staged, staged_capacity;
    struct staged {
        int position;
        int64_t offset;
    } * staged;
} folder;

static int process_at(oly_mesh mesh, int position)
{
    return oly_mesh_process_of(oly_mesh_device_id(mesh, position));
}

static int64_t elements_at(const folder *f, int position)
{
    oly_box b = oly_layout_box(f->layout, position);
    return oly_box_count(&b);
}

static int device_at(const folder *f, int position)
{
    for (int d = 0; d < f->p->plan->n_devices; d++)
        if (f->p->position[d] == position)
            return d;
    return -1;
}

static size_t element_of(const folder *f)
{
    return oly_dtype_size(f->node->type.dtype);
}

static int cell_of(const folder *f, int device, int slot)
{
    return oly_cell(f->p->plan, device, slot);
}

/* A run of elements of one buffer. */
static oly_piece run_of(int base, int64_t offset, int64_t count)
{
    return (oly_piece){.buffer = base, .offset = offset, .rank = 1, .extent = {count}, .stride = {1}};
}

/* -- who folds what: everything, or a slice each ---------------------------------------------------------------------- */

/* The processes of a list of sources, in order. */
static int processes_of(const folder *f, const int *sources, int n, int *processes)
{
    int found = 0;
    for (int k = 0; k < n; k++) {
        int r = process_at(f->p->mesh, sources[k]), j = 0;
        while (j < found && processes[j] != r)
            j++;
        if (j == found)
            processes[found++] = r;
    }
    return found;
}

/* Of n elements those of this round. */
static void round_of(const folder *f, int64_t n, int64_t *begin, int64_t *end)
{
    *begin = n / f->n_rounds * f->round + n % f->n_rounds * f->round / f->n_rounds;
    *end = n / f->n_rounds * (f->round + 1) + n % f->n_rounds * (f->round + 1) / f->n_rounds;
}

/* The slice of n elements that process `r` folds in this round. */
static void slice_of(const folder *f, const int *processes, int n_processes, int r, int64_t n, int64_t *begin,
                     int64_t *end)
{
    int64_t first, last;
    int j = 0;
    while (j < n_processes && processes[j] != r)
        j++;
    round_of(f, n, &first, &last);
    *begin = f->sliced ? first + (last - first) * j / n_processes : first;
    *end = f->sliced ? first + (last - first) * (j + 1) / n_processes : last;
}

/* Where this process finds [begin, end) of another's partial, counted from element 0. */
static oly_status stage_partial(folder *f, int group, int position, int64_t begin, int64_t end, int64_t *offset)
{
    int64_t bytes = (int64_t)element_of(f);
    for (int k = 0; k < f->n_staged; k++)
        if (f->staged[k].position == position) {
            *offset = f->staged[k].offset;
            return OLY_OK;
        }
    if (f->n_staged == f->staged_capacity) {
        int capacity = f->staged_capacity ? 2 * f->staged_capacity : 16;
        struct staged *more = OLY_PLAN_NEW(f->p, struct staged, capacity);
        OLY_PLAN_CHECK(more);
        if (f->n_staged)
            memcpy(more, f->staged, sizeof *more * (size_t)f->n_staged);
        f->staged = more;
        f->staged_capacity = capacity;
    }
    int64_t at = f->received;
    *offset = at - begin * bytes;
    f->staged[f->n_staged++] = (struct staged){position, *offset};
    f->received += ((end - begin) * bytes + 63) / 64 * 64;
    if (end == begin)
        return OLY_OK;
    return oly_wires_add(f->p, &f->partials,
                         &(oly_wire){process_at(f->p->mesh, position),
                                     false,
                                     {f->item | group, position},
                                     run_of(cell_of(f, 0, f->staging), at, end - begin)});
}

/* What other processes fold of device d's partial. */
static oly_status send_partial(folder *f, int d)
{
    int n_users, *users, position = f->p->position[d], counts[4], sources[OLY_FOLD_SOURCES],
                         processes[OLY_FOLD_SOURCES];
    int64_t n = elements_at(f, position), begin, end;
    if (n == 0)
        return OLY_OK;
    OLY_TRY(oly_fold_users(f->p, f->stage, position, &n_users, &users));
    if (n_users == 0)
        return OLY_OK;
    int n_sources = oly_fold_sources(f->p->mesh, f->stage, position, counts, sources);
    int n_processes = processes_of(f, sources, n_sources, processes);
    for (int k = 0; k < n_users; k++) {
        int r = process_at(f->p->mesh, users[k]);
        if (r == oly_mesh_my_process())
            continue;
        slice_of(f, processes, n_processes, r, n, &begin, &end);
        if (end > begin)
            OLY_TRY(oly_wires_add(
                f->p, &f->partials,
                &(oly_wire){r,
                            true,
                            {f->item | (f->sliced ? sources[0] : 0), position},
                            run_of(cell_of(f, d, f->slot), begin * (int64_t)element_of(f), end - begin)}));
    }
    return OLY_OK;
}

/* The folded slices go round: this process's to the others, theirs to every device here. */
static oly_status hand_round(folder *f, const oly_fold_work *g, const int *sources, const int *processes,
                             int n_processes, int64_t n)
{
    int64_t bytes = (int64_t)element_of(f), begin, end;
    for (int k = 0; k < n_processes; k++) {
        int r = processes[k];
        if (r == oly_mesh_my_process())
            continue;
        slice_of(f, processes, n_processes, r, n, &begin, &end);
        if (g->end > g->begin)
            OLY_TRY(oly_wires_add(
                f->p, &f->results,
                &(oly_wire){
                    r, true, {f->item | sources[0], 0}, run_of(g->out_base[0], g->begin * bytes, g->end - g->begin)}));
        for (int o = 0; o < g->n_outs && end > begin; o++)
            OLY_TRY(oly_wires_add(
                f->p, &f->results,
                &(oly_wire){r, false, {f->item | sources[0], 0}, run_of(g->out_base[o], begin * bytes, end - begin)}));
    }
    return OLY_OK;
}

static int same_list(const oly_fold_work *g, const int *bases, const int64_t *offsets, int n)
{
    return g->n_sources == n && memcmp(g->source_base, bases, sizeof(int) * (size_t)n) == 0 &&
           memcmp(g->source_offset, offsets, sizeof(int64_t) * (size_t)n) == 0;
}

static oly_status add_device(folder *f, int d, oly_fold_work *groups, int *n_groups, int *counts)
{
    oly_planner *p = f->p;
    int sources[OLY_FOLD_SOURCES], processes[OLY_FOLD_SOURCES];
    int n = oly_fold_sources(p->mesh, f->stage, p->position[d], counts, sources);
    if (*n_groups > 0 && n == f->n_sources && memcmp(sources, f->sources, sizeof *sources * (size_t)n) == 0) {
        oly_fold_work *same = &groups[f->group];
        ((int *)same->out_base)[same->n_outs++] = cell_of(f, d, f->slot);
        return OLY_OK;
    }
    int n_processes = processes_of(f, sources, n, processes);
    int64_t elements = elements_at(f, p->position[d]), begin, end;
    int *bases = OLY_PLAN_NEW(p, int, n);
    int64_t *offsets = OLY_PLAN_NEW(p, int64_t, n);
    OLY_PLAN_CHECK(bases);
    OLY_PLAN_CHECK(offsets);
    slice_of(f, processes, n_processes, oly_mesh_my_process(), elements, &begin, &end);
    for (int k = 0; k < n; k++) {
        int device = device_at(f, sources[k]);
        bases[k] = device >= 0 ? cell_of(f, device, f->slot) : cell_of(f, 0, f->staging);
        if (device < 0)
            OLY_TRY(stage_partial(f, f->sliced ? sources[0] : 0, sources[k], begin, end, &offsets[k]));
    }
    int g = 0;
    while (g < *n_groups && !same_list(&groups[g], bases, offsets, n))
        g++;
    if (g == *n_groups) {
        int *outs = OLY_PLAN_NEW(p, int, p->plan->n_devices);
        OLY_PLAN_CHECK(outs);
        groups[(*n_groups)++] = (oly_fold_work){.n_sources = n,
                                                .source_base = bases,
                                                .source_offset = offsets,
                                                .begin = begin,
                                                .end = end,
                                                .out_base = outs,
                                                .first_source = sources[0]};
    }
    ((int *)groups[g].out_base)[groups[g].n_outs++] = cell_of(f, d, f->slot);
    f->group = g;
    f->n_sources = n;
    memcpy(f->sources, sources, sizeof *sources * (size_t)n);
    return OLY_OK;
}

static oly_status hand_all_round(folder *f, const oly_fold_work *groups, int n_groups)
{
    for (int g = 0; g < n_groups && f->sliced; g++) {
        int sources[OLY_FOLD_SOURCES], counts[4], processes[OLY_FOLD_SOURCES];
        int n = oly_fold_sources(f->p->mesh, f->stage, groups[g].first_source, counts, sources);
        int n_processes = processes_of(f, sources, n, processes);
        OLY_TRY(hand_round(f, &groups[g], sources, processes, n_processes, elements_at(f, groups[g].first_source)));
    }
    return OLY_OK;
}

/* Bytes of the first part, which is the largest: the same on every process. */
static int64_t largest_part(const folder *f)
{
    int64_t most = 1;
    for (int d = 0; d < f->layout->rank; d++)
        most *= oly_split_cut(&f->layout->split[d], f->layout->shape[d], 1);
    return most * (int64_t)element_of(f);
}

/* Slices pay when partials are large and all members of a group fold the same list. */
static bool worth_slicing(const folder *f)
{
    for (int k = 0; k < f->stage->n_digits; k++)
        if (f->stage->digits[k].same != f->stage->digits[k].stride)
            return false;
    return largest_part(f) > SLICED_BYTES;
}

static oly_status staging_slot(folder *f)
{
    oly_plan *plan = f->p->plan;
    f->staging = oly_slot_new(f->p, NULL, 0);
    if (f->staging < 0)
        return OLY_MEMORY;
    plan->slots[f->staging].device_bytes[0] = 1; /* sized below; of device 0 only */
    return OLY_OK;
}

static const char *combiner_name(oly_combiner c)
{
    static const char *const names[OLY_N_COMBINERS] = {
        [OLY_COMBINE_SUM] = "sum", [OLY_COMBINE_PROD] = "prod", [OLY_COMBINE_MAX] = "max",
        [OLY_COMBINE_MIN] = "min", [OLY_COMBINE_AND] = "and",   [OLY_COMBINE_OR] = "or"};
    return names[c];
}

/* Adds the groups of one value to those of the step. */
static oly_status fold_item(folder *f, bool in_pairs, oly_fold_work *groups, int *n_groups, int *members)
{
    oly_planner *p = f->p;
    int first = *n_groups, n = 0, counts[4] = {1, 1, 1, 1}, product = 1;
    f->n_staged = 0;
    f->sliced = worth_slicing(f);
    for (int d = 0; d < p->plan->n_devices; d++)
        if (p->position[d] >= 0) {
            OLY_TRY(send_partial(f, d));
            OLY_TRY(add_device(f, d, groups + first, &n, counts));
        }
    for (int k = 0; k < f->stage->n_digits; k++)
        product *= counts[k];
    *members = product > *members ? product : *members;
    for (int g = first; g < first + n; g++) {
        groups[g].in_pairs = in_pairs;
        groups[g].n_counts = f->stage->n_digits;
        memcpy(groups[g].counts, counts, sizeof counts);
        if (groups[g].n_counts == 1)
            groups[g].counts[0] = groups[g].n_sources;
    }
    *n_groups = first + n;
    return hand_all_round(f, groups + first, n);
}

static void describe(const folder *f, oly_step *step, int n_items, const oly_folded *items, const int *group_end,
                     int members)
{
    oly_planner *p = f->p;
    for (int k = 0, g = 0; k < n_items; k++) {
        int64_t bytes = 0;
        for (; g < group_end[k]; g++) {
            oly_box b = oly_layout_box(items[k].layout, step->fold.groups[g].first_source);
            int64_t begin, end;
            round_of(f, oly_box_count(&b), &begin, &end);
            int64_t n = (end - begin) * (int64_t)oly_dtype_size(items[k].node->type.dtype);
            bytes = n > bytes ? n : bytes;
            step->work +=
                (double)(step->fold.groups[g].end - step->fold.groups[g].begin) * step->fold.groups[g].n_sources;
            int sources = step->fold.groups[g].n_sources;
            step->wire += step->fold.groups[g].n_outs * 2 * (sources - 1) * n / sources;
        }
        step->bytes += bytes;
    }
    step->members = members;
    step->messages = members - 1;
    step->detail = n_items == 1 ? oly_plan_say(p, "%s over %d devices", combiner_name(items[0].rule.combiner), members)
                                : oly_plan_say(p, "%s over %d devices of %d values",
                                               combiner_name(items[0].rule.combiner), members, n_items);
}

static void take_up(folder *f, const oly_folded *item, const oly_fold_stage *stage)
{
    f->node = item->node;
    f->layout = item->layout;
    f->slot = item->slot;
    f->stage = stage;
}

/* One round of one stage of every value. */
static oly_status add_round(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                            const oly_folded *items, const oly_fold_stage *const *stages, int round, int n_rounds)
{
    folder f = {.p = p, .node = items[0].node, .round = round, .n_rounds = n_rounds};
    oly_fold_work *groups = OLY_PLAN_NEW(p, oly_fold_work, n_items * p->plan->n_devices + 1);
    int *group_end = OLY_PLAN_NEW(p, int, n_items);
    OLY_PLAN_CHECK(groups);
    OLY_PLAN_CHECK(group_end);
    int n_groups = 0, members = 1;
    bool sliced = false;
    OLY_TRY(staging_slot(&f));
    for (int k = 0; k < n_items; k++) {
        f.item = (int64_t)k << 32;
        take_up(&f, &items[k], stages[k]);
        OLY_TRY(fold_item(&f, items[k].rule.in_pairs, groups, &n_groups, &members));
        group_end[k] = n_groups;
        sliced = sliced || f.sliced;
    }
    oly_slot *staging = &p->plan->slots[f.staging];
    staging->bytes = staging->device_bytes[0] = (size_t)f.received;
    staging->block = b;
    oly_exchange *exchange, *second;
    OLY_TRY(oly_wires_exchange(p, &f.partials, element_of(&f), &exchange));
    oly_status st = oly_wires_exchange(p, &f.results, element_of(&f), &second);
    if (st != OLY_OK) {
        oly_exchange_free(exchange);
        return st;
    }
    oly_step *step = oly_step_add(p, b, OLY_STEP_FOLD, items[0].node, "all-reduce");
    if (!step) {
        oly_exchange_free(exchange);
        oly_exchange_free(second);
        return oly_out_of_memory(0, "a plan");
    }
    step->exchange = exchange;
    step->second = second;
    step->out_slot = items[0].slot;
    step->over = *axes;
    step->fold.combiner = items[0].rule.combiner;
    step->fold.dtype = items[0].node->type.dtype;
    step->fold.sliced = sliced;
    step->fold.n_groups = n_groups;
    step->fold.groups = groups;
    describe(&f, step, n_items, items, group_end, members);
    for (int k = 0; k < n_items; k++)
        oly_slot_use(p, items[k].slot);
    oly_slot_use(p, f.staging);
    return OLY_OK;
}

/* -- rounds ------------------------------------------------------------------------------------------------------------ */

int64_t oly_fold_limit(void)
{
    return (oly_option.exchange_memory << 20) / 4;
}

/* At most what a process keeps of others' partials for one value, if all goes in one round. */
static int64_t staged_by(const folder *f, int process)
{
    int first, n_last = 0, last[OLY_FOLD_SOURCES], n = oly_mesh_devices_of(process, &first);
    int64_t bytes = 0;
    for (int id = first; id < first + n; id++) {
        int position = oly_mesh_position_of(f->p->mesh, id), counts[4], sources[OLY_FOLD_SOURCES];
        if (position < 0)
            continue;
        int n_sources = oly_fold_sources(f->p->mesh, f->stage, position, counts, sources);
        if (n_sources == n_last && memcmp(sources, last, sizeof *sources * (size_t)n_sources) == 0)
            continue; /* as the device before */
        n_last = n_sources;
        memcpy(last, sources, sizeof *sources * (size_t)n_sources);
        int processes[OLY_FOLD_SOURCES], n_processes = processes_of(f, sources, n_sources, processes);
        int64_t begin, end;
        slice_of(f, processes, n_processes, process, elements_at(f, position), &begin, &end);
        for (int k = 0; k < n_sources; k++)
            if (process_at(f->p->mesh, sources[k]) != process)
                bytes += (end - begin) * (int64_t)element_of(f) + 64;
    }
    return bytes;
}

/* More than any process keeps of others' partials, roughly. */
static int64_t staged_at_most(oly_planner *p, int n_items, const oly_folded *items, const oly_fold_stage *const *stages)
{
    folder f = {.p = p};
    int64_t bytes = 0, each = oly_mesh_devices_each(), lists = p->mesh->n_devices;
    lists = each && each < lists ? each : lists;
    for (int k = 0; k < n_items; k++) {
        int64_t sources = 1;
        take_up(&f, &items[k], stages[k]);
        for (int j = 0; j < stages[k]->n_digits; j++)
            sources *= stages[k]->digits[j].radix;
        bytes += sources * lists * (largest_part(&f) + 64);
    }
    return bytes;
}

/* The same on every process: of what the one that keeps most keeps. Where processes are very many, they are alike. */
static int rounds_of(oly_planner *p, int n_items, const oly_folded *items, const oly_fold_stage *const *stages)
{
    enum { MOST_COUNTED = 64 };
    folder f = {.p = p, .n_rounds = 1};
    int64_t most = staged_at_most(p, n_items, items, stages), limit = oly_fold_limit() / 16 * 15;
    int n = oly_mesh_processes(), step = (n + MOST_COUNTED - 1) / MOST_COUNTED;
    if (most <= limit)
        return 1;
    most = 0;
    for (int r = 0; r < n; r += step) {
        int64_t bytes = 0;
        for (int k = 0; k < n_items; k++) {
            take_up(&f, &items[k], stages[k]);
            f.sliced = worth_slicing(&f);
            bytes += staged_by(&f, r);
        }
        most = bytes > most ? bytes : most;
    }
    return most <= limit ? 1 : (int)((most + limit - 1) / limit);
}

/* One stage of every value. */
static oly_status add_stage(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                            const oly_folded *items, const oly_fold_stage *const *stages)
{
    int n_rounds = rounds_of(p, n_items, items, stages);
    for (int round = 0; round < n_rounds; round++)
        OLY_TRY(add_round(p, b, axes, n_items, items, stages, round, n_rounds));
    return OLY_OK;
}

/* The values' last stages go together, then those before. */
oly_status oly_fold_all(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items, const oly_folded *items)
{
    int most = oly_fold_most_stages(p->mesh, axes), n_stages[OLY_FOLD_TOGETHER], rounds = 0;
    oly_fold_stage *stages = OLY_PLAN_NEW(p, oly_fold_stage, most * n_items + 1);
    OLY_PLAN_CHECK(stages);
    for (int k = 0; k < n_items; k++) {
        n_stages[k] = oly_fold_stages(p->mesh, &items[k].rule, axes, stages + k * most);
        rounds = n_stages[k] > rounds ? n_stages[k] : rounds;
    }
    for (int left = rounds; left > 0; left--) {
        oly_folded now[OLY_FOLD_TOGETHER];
        const oly_fold_stage *of[OLY_FOLD_TOGETHER];
        int n = 0;
        for (int k = 0; k < n_items; k++)
            if (n_stages[k] >= left) {
                now[n] = items[k];
                of[n++] = &stages[k * most + n_stages[k] - left];
            }
        if (n > 0)
            OLY_TRY(add_stage(p, b, axes, n, now, of));
    }
    return OLY_OK;
}
