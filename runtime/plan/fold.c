/* Reductions over devices. The order is fixed by the mesh alone, one mesh axis at a time, so the same mesh gives the same bits
 * however its devices are spread over processes. Reductions of arrays fold adjacent pairs of positions, minor axis first: the
 * order of recursive doubling over the devices' numbers, which JAX's collectives between processes have. Partial products are
 * folded one after the other, major axis first, within groups of up to 16 positions, then over the groups. Pairs whose positions
 * one process owns are folded there first, so that it sends one partial, not one for each of its devices: a power of two of
 * adjacent positions is a branch of the tree, whoever folds it. Every device needs the partials of a list of positions, folds them in that order, and all the
 * devices of one process with the same list share one fold. Small groups of several axes are folded in one go (nested).
 * Small partials go to everybody, who folds them all; of large ones each process folds a slice and hands it round. */
#include "plan/wires.h"
#include <string.h>

enum { RADIX = 16, MOST_SOURCES = 64, SLICED_BYTES = 1 << 15, MOST_DIGITS = 5 * OLY_MAX_RANK, MOST_TOGETHER = 64 };

/* A value whose partials lie in its slot, where the result will lie too. */
typedef struct oly_folded {
    const oly_node *node;
    const oly_layout *layout;
    int slot;
    oly_fold_rule rule;
} oly_folded;

/* One digit of a stage: positions along `axis` at distance `stride`, up to `radix` of them. Runs of `same` positions (at most
 * `stride`) belong to one process and have the same partial: any one of them will do. */
typedef struct digit {
    int axis, stride, radix, same;
} digit;

typedef struct stage {
    int n_digits;
    digit digits[4];
} stage;

/* Coordinates along one digit that the position at c folds: subtrees of `stride` positions, each of which has the same
 * value everywhere; of a last, smaller subtree the representative wraps. */
static int digit_sources(oly_mesh mesh, const digit *g, int c, int *sources)
{
    int size = mesh->size[g->axis], base = c - c % (g->stride * g->radix), n = 0;
    for (int j = 0; j < g->radix && base + j * g->stride < size; j++) {
        int start = base + j * g->stride, count = size - start < g->stride ? size - start : g->stride;
        sources[n++] = start + c % g->stride % count / g->same * g->same;
    }
    return n;
}

/* The positions whose partials the device at `position` folds, nested by digit. */
static int sources_of(oly_mesh mesh, const stage *s, int position, int *counts, int *sources)
{
    int coordinates[OLY_MAX_RANK], list[4][RADIX], at[4] = {0}, n = 0;
    oly_mesh_coordinates(mesh, position, coordinates);
    for (int k = 0; k < s->n_digits; k++)
        counts[k] = digit_sources(mesh, &s->digits[k], coordinates[s->digits[k].axis], list[k]);
    for (;;) {
        for (int k = 0; k < s->n_digits; k++)
            coordinates[s->digits[k].axis] = list[k][at[k]];
        sources[n++] = oly_mesh_position(mesh, coordinates);
        int k = s->n_digits - 1;
        while (k >= 0 && ++at[k] == counts[k])
            at[k--] = 0;
        if (k < 0)
            return n;
    }
}

/* Coordinates along one digit that fold the partial at c, those whose list of sources has it: at least one of each process. */
static oly_status digit_users(oly_planner *p, const digit *g, int c, int *n_users, int **users)
{
    int size = p->mesh->size[g->axis], base = c - c % (g->stride * g->radix), start = c - c % g->stride;
    int count = size - start < g->stride ? size - start : g->stride, first = c - start;
    int end = first + g->same < count ? first + g->same : count;
    if (count % g->same == 0) /* one of each run of a process speaks for all */
        end = first + 1;
    int most = g->radix * (end - first) * ((g->stride + count - 1) / count);
    *n_users = 0;
    *users = OLY_PLAN_NEW(p, int, most + 1);
    OLY_PLAN_CHECK(*users);
    if (first % g->same != 0)
        return OLY_OK; /* others of its run have the same */
    for (int j = 0; j < g->radix; j++)
        for (int turn = 0; turn < g->stride; turn += count)
            for (int at = turn + first; at < turn + end && at < g->stride; at++)
                if (base + j * g->stride + at < size)
                    (*users)[(*n_users)++] = base + j * g->stride + at;
    return OLY_OK;
}

/* Who folds a position's partial: positions that differ from it only along the digits, at least one of each process. */
static oly_status users_of(oly_planner *p, const stage *s, int position, int *n_users, int **users)
{
    int coordinates[OLY_MAX_RANK], n[4], at[4] = {0}, *list[4], total = 1;
    oly_mesh_coordinates(p->mesh, position, coordinates);
    for (int k = 0; k < s->n_digits; k++) {
        OLY_TRY(digit_users(p, &s->digits[k], coordinates[s->digits[k].axis], &n[k], &list[k]));
        total *= n[k];
    }
    *users = OLY_PLAN_NEW(p, int, total + 1);
    OLY_PLAN_CHECK(*users);
    for (*n_users = 0; *n_users < total;) {
        for (int k = 0; k < s->n_digits; k++)
            coordinates[s->digits[k].axis] = list[k][at[k]];
        (*users)[(*n_users)++] = oly_mesh_position(p->mesh, coordinates);
        for (int k = s->n_digits - 1; k >= 0 && ++at[k] == n[k]; k--)
            at[k] = 0;
    }
    return OLY_OK;
}

/* Folds one value after the other; what all of them send goes in one exchange. */
typedef struct folder {
    oly_planner *p;
    const oly_node *node;
    const oly_layout *layout;
    const stage *stage;
    int64_t item;      /* number of the value, in the upper half: first part of the keys of its pieces */
    bool sliced;       /* each process folds a slice and hands it round: large partials of several processes */
    int slot, staging; /* staging: slot of device 0 for partials of other processes */
    int64_t received;  /* bytes in staging so far */
    oly_wires partials, results;
    int group, n_sources, sources[MOST_SOURCES]; /* of the device before: most have the same */
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

/* The slice of n elements that process `r` folds. */
static void slice_of(const folder *f, const int *processes, int n_processes, int r, int64_t n, int64_t *begin,
                     int64_t *end)
{
    int j = 0;
    while (j < n_processes && processes[j] != r)
        j++;
    *begin = f->sliced ? n * j / n_processes : 0;
    *end = f->sliced ? n * (j + 1) / n_processes : n;
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
    int n_users, *users, position = f->p->position[d], counts[4], sources[MOST_SOURCES], processes[MOST_SOURCES];
    int64_t n = elements_at(f, position), begin, end;
    if (n == 0)
        return OLY_OK;
    OLY_TRY(users_of(f->p, f->stage, position, &n_users, &users));
    if (n_users == 0)
        return OLY_OK;
    int n_sources = sources_of(f->p->mesh, f->stage, position, counts, sources);
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
    int sources[MOST_SOURCES], processes[MOST_SOURCES];
    int n = sources_of(p->mesh, f->stage, p->position[d], counts, sources);
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
        int sources[MOST_SOURCES], counts[4], processes[MOST_SOURCES];
        int n = sources_of(f->p->mesh, f->stage, groups[g].first_source, counts, sources);
        int n_processes = processes_of(f, sources, n, processes);
        OLY_TRY(hand_round(f, &groups[g], sources, processes, n_processes, elements_at(f, groups[g].first_source)));
    }
    return OLY_OK;
}

/* Slices pay when partials are large and all members of a group fold the same list. */
static bool worth_slicing(const folder *f)
{
    int64_t most = 1;
    for (int k = 0; k < f->stage->n_digits; k++)
        if (f->stage->digits[k].same != f->stage->digits[k].stride)
            return false;
    for (int d = 0; d < f->layout->rank; d++)
        most *= oly_split_cut(&f->layout->split[d], f->layout->shape[d], 1);
    return most * (int64_t)element_of(f) > SLICED_BYTES; /* of the first, largest part: the same on every process */
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

static void describe(oly_planner *p, oly_step *step, int n_items, const oly_folded *items, const int *group_end,
                     int members)
{
    for (int k = 0, g = 0; k < n_items; k++) {
        int64_t bytes = 0;
        for (; g < group_end[k]; g++) {
            oly_box b = oly_layout_box(items[k].layout, step->fold.groups[g].first_source);
            int64_t n = oly_box_count(&b) * (int64_t)oly_dtype_size(items[k].node->type.dtype);
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

/* One stage of every value. */
static oly_status add_stage(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                            const oly_folded *items, const stage *const *stages)
{
    folder f = {.p = p, .node = items[0].node};
    oly_fold_work *groups = OLY_PLAN_NEW(p, oly_fold_work, n_items * p->plan->n_devices + 1);
    int *group_end = OLY_PLAN_NEW(p, int, n_items);
    OLY_PLAN_CHECK(groups);
    OLY_PLAN_CHECK(group_end);
    int n_groups = 0, members = 1;
    bool sliced = false;
    OLY_TRY(staging_slot(&f));
    for (int k = 0; k < n_items; k++) {
        f.item = (int64_t)k << 32;
        f.node = items[k].node;
        f.layout = items[k].layout;
        f.slot = items[k].slot;
        f.stage = stages[k];
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
    describe(p, step, n_items, items, group_end, members);
    for (int k = 0; k < n_items; k++)
        oly_slot_use(p, items[k].slot);
    oly_slot_use(p, f.staging);
    return OLY_OK;
}

/* -- the stages ------------------------------------------------------------------------------------------------------ */

static bool is_local(oly_mesh mesh, const digit *g)
{
    int reach = g->stride * g->radix, together = mesh->together[g->axis];
    return reach <= together || together >= mesh->size[g->axis];
}

static bool is_even(oly_mesh mesh, const digit *g)
{
    return mesh->size[g->axis] % (g->stride * g->radix) == 0;
}

/* The digits that fold the whole axis, from `n` on; how many there are then. */
static int axis_digits(oly_mesh mesh, const oly_fold_rule *rule, int axis, digit *digits, int n)
{
    int size = mesh->size[axis], together = mesh->together[axis];
    for (int stride = 1; stride < size; n++) {
        int radix = RADIX, rest = (size + stride - 1) / stride;
        if (rule->in_pairs && stride < together && together < size && together / stride < radix)
            radix = together / stride;
        radix = radix < rest ? radix : rest;
        digits[n] = (digit){axis, stride, radix, stride < together ? stride : together};
        stride *= radix;
    }
    return n;
}

static int digits_of(oly_mesh mesh, const oly_fold_rule *rule, const oly_axis_list *axes, digit *digits)
{
    int n = 0;
    for (int k = 0; k < mesh->n_axes; k++) {
        int a = rule->in_pairs ? mesh->n_axes - 1 - k : k; /* whatever the order in the spec */
        for (int j = 0; j < axes->n; j++)
            if (axes->axis[j] == a)
                n = axis_digits(mesh, rule, a, digits, n);
    }
    return n;
}

/* Every digit is of at least two positions. */
static int most_digits(oly_mesh mesh, const oly_axis_list *axes)
{
    int n = 0;
    for (int k = 0; k < axes->n; k++)
        for (int size = mesh->size[axes->axis[k]] - 1; size > 0; size /= 2)
            n++;
    return n;
}

/* At most one stage a digit. */
static int stages_of(oly_mesh mesh, const oly_fold_rule *rule, const oly_axis_list *axes, stage *stages)
{
    digit digits[MOST_DIGITS];
    int n = digits_of(mesh, rule, axes, digits), n_stages = 0;
    for (int k = 0; k < n; n_stages++) {
        stage *s = &stages[n_stages];
        bool local = is_local(mesh, &digits[k]);
        s->n_digits = 0;
        for (int sources = digits[k].radix; k < n && s->n_digits < 4 && sources <= MOST_SOURCES / 2; k++) {
            if (s->n_digits > 0 &&
                (digits[k].axis == digits[k - 1].axis || !is_even(mesh, &digits[k]) || !is_even(mesh, &digits[k - 1])))
                break; /* nested digits have as many sources on every device */
            if (local && !is_local(mesh, &digits[k]))
                break; /* each process sends what it has folded as far as it can alone */
            local = local && is_local(mesh, &digits[k]);
            s->digits[s->n_digits++] = digits[k];
            sources *= k + 1 < n ? digits[k + 1].radix : 1;
        }
    }
    return n_stages;
}

/* The values' last stages go together, then those before. */
static oly_status fold_all(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                           const oly_folded *items)
{
    int most = most_digits(p->mesh, axes), n_stages[MOST_TOGETHER], rounds = 0;
    stage *stages = OLY_PLAN_NEW(p, stage, most * n_items + 1);
    OLY_PLAN_CHECK(stages);
    for (int k = 0; k < n_items; k++) {
        n_stages[k] = stages_of(p->mesh, &items[k].rule, axes, stages + k * most);
        rounds = n_stages[k] > rounds ? n_stages[k] : rounds;
    }
    for (int left = rounds; left > 0; left--) {
        oly_folded now[MOST_TOGETHER];
        const stage *of[MOST_TOGETHER];
        int n = 0;
        for (int k = 0; k < n_items; k++)
            if (n_stages[k] >= left) {
                now[n] = items[k];
                of[n++] = &stages[k * most + n_stages[k] - left];
            }
        OLY_TRY(add_stage(p, b, axes, n, now, of));
    }
    return OLY_OK;
}

int oly_fold_group(oly_mesh mesh, const oly_fold_rule *rule, const oly_axis_list *axes, int position, int *counts,
                   int *sources)
{
    stage s = {0};
    int product = 1;
    for (int k = 0; k < mesh->n_axes; k++) {
        int a = rule->in_pairs ? mesh->n_axes - 1 - k : k;
        for (int j = 0; j < axes->n; j++)
            if (axes->axis[j] == a && mesh->size[a] > 1) {
                product *= mesh->size[a];
                if (s.n_digits == 4 || mesh->size[a] > RADIX || product > MOST_SOURCES)
                    return 0;
                s.digits[s.n_digits++] = (digit){a, 1, mesh->size[a], 1};
            }
    }
    memset(counts, 0, sizeof *counts * 4);
    return s.n_digits ? sources_of(mesh, &s, position, counts, sources) : 0;
}

/* -- folds that wait -------------------------------------------------------------------------------------------------- */

/* A reduction over devices is put off until its value is read: others over the same axes that have come by then go with it, in
 * one exchange. */
struct oly_waiting_fold {
    oly_waiting_fold *next;
    oly_node *node;
    oly_fold_rule rule;
    oly_axis_list axes;
};

oly_status oly_fold_later(oly_planner *p, oly_frame *f, oly_node *n, const oly_fold_rule *rule,
                          const oly_axis_list *axes)
{
    oly_waiting_fold *w = OLY_PLAN_NEW(p, oly_waiting_fold, 1), **last = &f->waiting;
    OLY_PLAN_CHECK(w);
    *w = (oly_waiting_fold){NULL, n, *rule, *axes};
    while (*last)
        last = &(*last)->next;
    *last = w;
    oly_value_of(f, n)->waits = true;
    return OLY_OK;
}

const oly_put_off *oly_waits_for(oly_planner *p, oly_frame *f, const oly_node *n)
{
    const oly_waiting_fold *w = f->waiting;
    while (w && w->node != n)
        w = w->next;
    oly_put_off *off = w ? OLY_PLAN_NEW(p, oly_put_off, 1) : NULL;
    if (off)
        *off = (oly_put_off){true, w->rule, w->axes};
    return off;
}

void oly_waits_no_more(oly_frame *f, const oly_node *n)
{
    for (oly_waiting_fold **at = &f->waiting; *at; at = &(*at)->next)
        if ((*at)->node == n) {
            *at = (*at)->next;
            break;
        }
    oly_value_of(f, n)->waits = false;
    f->n_folded++;
}

static bool go_together(const oly_waiting_fold *a, const oly_waiting_fold *b)
{
    return a->rule.combiner == b->rule.combiner && oly_axis_list_equal(&a->axes, &b->axes) &&
           a->node->type.dtype == b->node->type.dtype;
}

/* All that go together with w, which is the first. */
static oly_status fold_together(oly_planner *p, oly_frame *f, const oly_waiting_fold *w)
{
    oly_folded items[MOST_TOGETHER];
    oly_waiting_fold key = *w;
    int n = 0;
    for (oly_waiting_fold **at = &f->waiting; *at;) {
        if (n == MOST_TOGETHER || !go_together(*at, &key)) {
            at = &(*at)->next;
            continue;
        }
        oly_value *v = oly_value_of(f, (*at)->node);
        v->waits = false;
        f->n_folded++;
        items[n++] = (oly_folded){(*at)->node, v->layout, v->slot, (*at)->rule};
        *at = (*at)->next;
    }
    return fold_all(p, f->block, &key.axes, n, items);
}

oly_status oly_fold_now(oly_planner *p, oly_frame *f, const oly_node *n)
{
    if (n && !oly_value_of(f, n)->waits)
        return OLY_OK;
    for (oly_waiting_fold *w; (w = f->waiting);) {
        while (n && w->node != n)
            w = w->next;
        OLY_TRY(fold_together(p, f, w));
        if (n)
            return OLY_OK;
    }
    return OLY_OK;
}
