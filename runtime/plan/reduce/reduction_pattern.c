/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the patterns of reductions over devices, and keeps them. A pattern depends only on the mesh, the axes, the
 * order of the reduction and this process's devices. Plans have many reductions over the same axes, so patterns outlive
 * plans: up to MOST_KEPT of them, until oly_finalize. A finished plan does not point into them. */
#include "plan/reduce/reduction_pattern.h"
#include "core/hash.h"
#include "core/optimisation.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT = 256 };

typedef struct kept_pattern {
    oly_reduction_pattern pattern;
    struct kept_pattern *next;
    oly_arena arena; /* owns everything */
    oly_mesh mesh;
    unsigned axes; /* bits */
    bool in_pairs, large;
    int n_devices;
    const int *position; /* [n_devices] */
} kept_pattern;

static kept_pattern *kept;
static int n_kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* -- one stage ----------------------------------------------------------------------------------------------------------- */

/* A piece with its destination. Sorted, they form messages whose pieces are in the same order at both ends. */
typedef struct entry {
    int peer;
    int64_t key[2];
    oly_reduction_piece piece;
} entry;

typedef struct entry_list {
    int n, capacity;
    entry *entry;
} entry_list;

typedef struct maker {
    oly_mesh mesh;
    int n_devices;
    const int *position;
    oly_arena *arena, *scratch; /* of the pattern; of temporary data */
    oly_reduction_part *part;
    oly_reduction_team *groups;          /* [n_devices] */
    int *group_of;                       /* [n_devices] */
    int (*lists)[OLY_REDUCTION_SOURCES]; /* [group] the positions of its sources */
    int (*by_position)[2];               /* [n_devices] position and device, sorted */
    int *bucket, buckets; /* hash table of groups by their lists: a power of two, open addressing; -1: empty */
    int *staged, *staged_position, staged_capacity;
    entry_list partials[2], results[2]; /* received, sent */
} maker;

static int process_at(oly_mesh mesh, int position)
{
    return oly_mesh_process_of(oly_mesh_device_id(mesh, position));
}

int oly_reduction_processes(oly_mesh mesh, const int *sources, int n, int *processes)
{
    int found = 0;
    for (int k = 0; k < n; k++) {
        int r = process_at(mesh, sources[k]), j = 0;
        while (j < found && processes[j] != r)
            j++;
        if (j == found)
            processes[found++] = r;
    }
    return found;
}

void oly_reduction_slice(int64_t first, int64_t last, int slice, int slices, int64_t *begin, int64_t *end)
{
    *begin = first + (last - first) * slice / slices;
    *end = first + (last - first) * (slice + 1) / slices;
}

static int index_of(const int *processes, int n, int r)
{
    int j = 0;
    while (j < n && processes[j] != r)
        j++;
    return j;
}

static oly_status add_entry(maker *m, entry_list *w, const entry *one)
{
    if (w->n == w->capacity) {
        int capacity = w->capacity ? 2 * w->capacity : 32;
        entry *more = OLY_ARENA_NEW(m->scratch, entry, capacity);
        OLY_PLAN_CHECK(more);
        if (w->n)
            memcpy(more, w->entry, sizeof *more * (size_t)w->n);
        w->entry = more;
        w->capacity = capacity;
    }
    w->entry[w->n++] = *one;
    return OLY_OK;
}

/* The number of another process's partial result among those staged here. */
static oly_status stage_partial(maker *m, int group, int position, int *number)
{
    oly_reduction_part *part = m->part;
    for (*number = 0; *number < part->n_staged; ++*number)
        if (m->staged_position[*number] == position)
            return OLY_OK;
    if (part->n_staged == m->staged_capacity) {
        int capacity = m->staged_capacity ? 2 * m->staged_capacity : 16, *both[2];
        for (int k = 0; k < 2; k++) {
            both[k] = OLY_ARENA_NEW(k ? m->scratch : m->arena, int, capacity);
            OLY_PLAN_CHECK(both[k]);
            if (part->n_staged)
                memcpy(both[k], k ? m->staged_position : m->staged, sizeof(int) * (size_t)part->n_staged);
        }
        m->staged = both[0];
        m->staged_position = both[1];
        m->staged_capacity = capacity;
    }
    m->staged[*number] = group;
    m->staged_position[*number] = position;
    part->n_staged++;
    const oly_reduction_team *g = &m->groups[group];
    int64_t key = part->sliced ? g->first_source : 0;
    return add_entry(m, &m->partials[0],
                     &(entry){process_at(m->mesh, position),
                              {key, position},
                              {group, g->slice, *number, oly_mesh_device_id(m->mesh, position), false}});
}

static int compare_first(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The device of this process at a position; -1: another process's. */
static int device_at(const maker *m, int position)
{
    const int(*found)[2] =
        bsearch(&position, m->by_position, (size_t)m->n_devices, sizeof *m->by_position, compare_first);
    return found ? (*found)[1] : -1;
}

/* The hash table entry of the group that reduces this list, or the empty one for it. */
static int *group_like(const maker *m, const int *sources, int n)
{
    size_t bytes = sizeof(int) * (size_t)n;
    uint64_t at = oly_hash(1, sources, bytes);
    for (;; at++) {
        int *g = &m->bucket[at & (uint64_t)(m->buckets - 1)];
        if (*g < 0 || (m->groups[*g].n_sources == n && memcmp(m->lists[*g], sources, bytes) == 0))
            return g;
    }
}

static oly_status add_device(maker *m, int d)
{
    oly_reduction_part *part = m->part;
    int positions[OLY_REDUCTION_SOURCES], processes[OLY_REDUCTION_SOURCES], counts[4] = {1, 1, 1, 1};
    int n = oly_reduction_sources(m->mesh, &part->stage, m->position[d], counts, positions);
    part->members = counts[0] * counts[1] * counts[2] * counts[3];
    int *place = group_like(m, positions, n), g = *place;
    if (g < 0) {
        g = *place = part->n_groups++;
        memcpy(m->lists[g], positions, sizeof(int) * (size_t)n);
        int *sources = OLY_ARENA_NEW(m->arena, int, n);
        OLY_PLAN_CHECK(sources);
        oly_reduction_team *group = &m->groups[g];
        *group = (oly_reduction_team){.n_sources = n, .sources = sources, .slices = 1, .first_source = positions[0]};
        memcpy(group->counts, counts, sizeof counts);
        if (part->sliced) {
            group->slices = oly_reduction_processes(m->mesh, positions, n, processes);
            group->slice = index_of(processes, group->slices, oly_mesh_my_process());
        }
        for (int k = 0; k < n; k++)
            if ((sources[k] = device_at(m, positions[k])) < 0) {
                int number;
                OLY_TRY(stage_partial(m, g, positions[k], &number));
                sources[k] = -1 - number;
            }
        part->n_sources += n;
    }
    m->groups[g].n_outs++;
    m->group_of[d] = g;
    part->n_outs++;
    return OLY_OK;
}

/* Lists the devices of each group, which have been counted. */
static oly_status list_outs(maker *m)
{
    int *outs = OLY_ARENA_NEW(m->arena, int, m->part->n_outs + 1);
    OLY_PLAN_CHECK(outs);
    for (int g = 0; g < m->part->n_groups; g++) {
        m->groups[g].outs = outs;
        outs += m->groups[g].n_outs;
        m->groups[g].n_outs = 0;
    }
    for (int d = 0; d < m->n_devices; d++)
        if (m->position[d] >= 0) {
            oly_reduction_team *g = &m->groups[m->group_of[d]];
            ((int *)g->outs)[g->n_outs++] = d;
        }
    return OLY_OK;
}

/* Lists what other processes reduce of device d's partial result. */
static oly_status send_partial(maker *m, int d)
{
    const oly_reduction_part *part = m->part;
    const oly_reduction_team *g = &m->groups[m->group_of[d]];
    int n_users, *users, processes[OLY_REDUCTION_SOURCES];
    OLY_TRY(oly_reduction_users(m->scratch, m->mesh, &part->stage, m->position[d], &n_users, &users));
    int n_processes = oly_reduction_processes(m->mesh, m->lists[m->group_of[d]], g->n_sources, processes);
    for (int k = 0; k < n_users; k++) {
        int r = process_at(m->mesh, users[k]);
        if (r == oly_mesh_my_process())
            continue;
        int slice = part->sliced ? index_of(processes, n_processes, r) : 0;
        OLY_TRY(add_entry(
            m, &m->partials[1],
            &(entry){r, {part->sliced ? g->first_source : 0, m->position[d]}, {m->group_of[d], slice, d, -1, false}}));
    }
    return OLY_OK;
}

/* The first device of a process among those at some positions, which is the first that gets the group's result there. */
static int first_of(const maker *m, const int *positions, int n, int process)
{
    int first = INT32_MAX;
    for (int k = 0; k < n; k++) {
        int id = oly_mesh_device_id(m->mesh, positions[k]);
        first = id < first && oly_mesh_process_of(id) == process ? id : first;
    }
    return first;
}

/* Lists the exchange of reduced slices: this process's to the others, theirs to every device here. */
static oly_status hand_round(maker *m, int group, const int *list)
{
    const oly_reduction_team *g = &m->groups[group];
    int processes[OLY_REDUCTION_SOURCES], n = oly_reduction_processes(m->mesh, list, g->n_sources, processes);
    for (int k = 0; k < n; k++) {
        if (processes[k] == oly_mesh_my_process())
            continue;
        int there = first_of(m, list, g->n_sources, processes[k]);
        OLY_TRY(add_entry(m, &m->results[1],
                          &(entry){processes[k], {g->first_source, 0}, {group, g->slice, g->outs[0], there, false}}));
        for (int o = 0; o < g->n_outs; o++)
            OLY_TRY(add_entry(m, &m->results[0],
                              &(entry){processes[k], {g->first_source, 0}, {group, k, g->outs[o], there, false}}));
    }
    return OLY_OK;
}

/* -- messages ------------------------------------------------------------------------------------------------------------ */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int c = compare(x->peer, y->peer);
    c = c ? c : compare(x->key[0], y->key[0]);
    c = c ? c : compare(x->key[1], y->key[1]);
    return c ? c : compare(x->piece.at, y->piece.at);
}

static bool is_repeated(const entry *w)
{
    return w->peer == w[-1].peer && w->key[0] == w[-1].key[0] && w->key[1] == w[-1].key[1];
}

/* A piece needed twice by a process is sent once. */
static oly_status list_messages(maker *m, entry_list *w, bool sent, oly_reduction_messages *messages)
{
    if (w->n == 0)
        return OLY_OK;
    qsort(w->entry, (size_t)w->n, sizeof *w->entry, in_order);
    oly_reduction_message *message = OLY_ARENA_NEW(m->arena, oly_reduction_message, w->n);
    oly_reduction_piece *pieces = OLY_ARENA_NEW(m->arena, oly_reduction_piece, w->n);
    OLY_PLAN_CHECK(message);
    OLY_PLAN_CHECK(pieces);
    for (int k = 0; k < w->n; k++) {
        bool repeated = k > 0 && is_repeated(&w->entry[k]);
        if (repeated && sent)
            continue;
        if (k == 0 || w->entry[k].peer != w->entry[k - 1].peer)
            message[messages->n++] = (oly_reduction_message){w->entry[k].peer, 0, pieces + messages->n_pieces};
        pieces[messages->n_pieces] = w->entry[k].piece;
        pieces[messages->n_pieces++].repeated = repeated;
        message[messages->n - 1].n_pieces++;
    }
    messages->message = message;
    return OLY_OK;
}

static bool may_slice(const oly_reduction_stage *s)
{
    for (int k = 0; k < s->n_digits; k++)
        if (s->digits[k].same != s->digits[k].stride)
            return false;
    return true;
}

/* Allocates the tables for a part. */
static oly_status begin_part(maker *m)
{
    for (m->buckets = 8; m->buckets < 2 * m->n_devices; m->buckets *= 2)
        continue;
    m->lists = oly_arena_take(m->scratch, sizeof *m->lists * (size_t)(m->n_devices + 1));
    m->groups = OLY_ARENA_NEW(m->arena, oly_reduction_team, m->n_devices + 1);
    m->group_of = OLY_ARENA_NEW(m->scratch, int, m->n_devices + 1);
    m->by_position = oly_arena_take(m->scratch, sizeof *m->by_position * (size_t)(m->n_devices + 1));
    m->bucket = OLY_ARENA_NEW(m->scratch, int, m->buckets);
    OLY_PLAN_CHECK(m->lists);
    OLY_PLAN_CHECK(m->groups);
    OLY_PLAN_CHECK(m->group_of);
    OLY_PLAN_CHECK(m->by_position);
    OLY_PLAN_CHECK(m->bucket);
    memset(m->bucket, -1, sizeof *m->bucket * (size_t)m->buckets);
    for (int d = 0; d < m->n_devices; d++) {
        m->by_position[d][0] = m->position[d];
        m->by_position[d][1] = d;
    }
    qsort(m->by_position, (size_t)m->n_devices, sizeof *m->by_position, compare_first);
    return OLY_OK;
}

static oly_status make_part(maker *m, const oly_reduction_stage *stage, bool large)
{
    oly_reduction_part *part = m->part;
    OLY_TRY(begin_part(m));
    *part =
        (oly_reduction_part){.stage = *stage, .sliced = large && may_slice(stage), .members = 1, .groups = m->groups};
    for (int d = 0; d < m->n_devices; d++)
        if (m->position[d] >= 0)
            OLY_TRY(add_device(m, d));
    OLY_TRY(list_outs(m));
    for (int d = 0; d < m->n_devices; d++)
        if (m->position[d] >= 0)
            OLY_TRY(send_partial(m, d));
    for (int g = 0; g < part->n_groups && part->sliced; g++)
        OLY_TRY(hand_round(m, g, m->lists[g]));
    part->staged = m->staged;
    for (int sent = 0; sent < 2; sent++) {
        OLY_TRY(list_messages(m, &m->partials[sent], sent, &part->partials[sent]));
        OLY_TRY(list_messages(m, &m->results[sent], sent, &part->results[sent]));
    }
    return OLY_OK;
}

/* -- cached patterns ----------------------------------------------------------------------------------------------- */

static oly_status make_parts(kept_pattern *k, const oly_axis_list *axes, const oly_reduction_rule *rule,
                             oly_arena *arena, oly_arena *scratch)
{
    oly_reduction_stage *stages =
        OLY_ARENA_NEW(scratch, oly_reduction_stage, oly_reduction_most_stages(k->mesh, axes) + 1);
    OLY_PLAN_CHECK(stages);
    int n = oly_reduction_stages(k->mesh, rule, axes, stages);
    oly_reduction_part *parts = OLY_ARENA_NEW(arena, oly_reduction_part, n + 1);
    OLY_PLAN_CHECK(parts);
    k->pattern = (oly_reduction_pattern){n, parts};
    for (int j = 0; j < n; j++) {
        maker m = {.mesh = k->mesh,
                   .n_devices = k->n_devices,
                   .position = k->position,
                   .arena = arena,
                   .scratch = scratch,
                   .part = &parts[j]};
        OLY_TRY(make_part(&m, &stages[j], k->large));
    }
    return OLY_OK;
}

/* Copies the key into `arena`, and makes the pattern there. */
static oly_status make_pattern(const kept_pattern *key, const oly_axis_list *axes, const oly_reduction_rule *rule,
                               oly_arena *arena, kept_pattern **made)
{
    oly_arena scratch = {0};
    kept_pattern *k = OLY_ARENA_NEW(arena, kept_pattern, 1);
    int *position = OLY_ARENA_NEW(arena, int, key->n_devices + 1);
    OLY_PLAN_CHECK(k);
    OLY_PLAN_CHECK(position);
    *k = *key;
    memcpy(position, key->position, sizeof *position * (size_t)key->n_devices);
    k->position = position;
    oly_status st = make_parts(k, axes, rule, arena, &scratch);
    oly_arena_free(&scratch);
    *made = k;
    return st;
}

static kept_pattern *find(const kept_pattern *key)
{
    for (kept_pattern *k = kept; k; k = k->next)
        if (k->mesh == key->mesh && k->axes == key->axes && k->in_pairs == key->in_pairs && k->large == key->large &&
            k->n_devices == key->n_devices &&
            memcmp(k->position, key->position, sizeof(int) * (size_t)key->n_devices) == 0)
            return k;
    return NULL;
}

oly_status oly_reduction_pattern_of(oly_planner *p, const oly_axis_list *axes, const oly_reduction_rule *rule,
                                    bool large, const oly_reduction_pattern **pattern)
{
    kept_pattern key = {.mesh = p->mesh,
                        .in_pairs = rule->in_pairs,
                        .large = large && oly_enabled(OLY_OPTIMISATION_SLICED_REDUCTION),
                        .n_devices = p->plan->n_devices,
                        .position = p->position},
                 *k;
    for (int j = 0; j < axes->n; j++)
        key.axes |= 1u << axes->axis[j];
    pthread_mutex_lock(&lock);
    k = find(&key);
    bool room = n_kept < MOST_KEPT;
    pthread_mutex_unlock(&lock);
    if (k) {
        *pattern = &k->pattern;
        return OLY_OK;
    }
    p->plan->looked_at += oly_mesh_local_devices() * (int64_t)OLY_REDUCTION_SOURCES;
    oly_arena arena = {0};
    oly_status st = make_pattern(&key, axes, rule, room ? &arena : &p->plan->arena, &k);
    if (st != OLY_OK) {
        oly_arena_free(&arena);
        return st;
    }
    *pattern = &k->pattern;
    if (!room)
        return OLY_OK;
    k->arena = arena;
    pthread_mutex_lock(&lock); /* another thread may have made the same one meanwhile: both are kept */
    k->next = kept;
    kept = k;
    n_kept++;
    pthread_mutex_unlock(&lock);
    return OLY_OK;
}

void oly_reduction_forget(void)
{
    while (kept) {
        oly_arena arena = kept->arena; /* `kept` is in the arena itself */
        kept = kept->next;
        oly_arena_free(&arena);
    }
    n_kept = 0;
}
