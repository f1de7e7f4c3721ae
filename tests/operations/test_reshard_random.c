/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Any sharding to any other: random arrays walk from sharding to sharding, over the same devices, other meshes,
 * other orders, some of the devices and single ones, uneven and empty, replicated in part, and unreduced. After every step
 * each shard is compared with what this file computes alone: which block is where, and each element.
 *   RESHARD_SEED=n   seed of the first walk; walk k has seed n + k
 *   RESHARD_PAIRS=n  how many pairs of shardings (2,500 on each of four layouts)
 *   RESHARD_PRINT=1  print every step before it runs */
#include "check.h"
#include "core/option.h"
#include "device/memory.h"
#include "staging.h"
#include <inttypes.h>
#include <olympus.h>

enum { MOST_RANK = 4, MOST_AXES = 3, MOST_DEVICES = 8, WALK = 5, PAIRS = 2500, STAGED_PAIRS = 500, TEXT = 512 };

/* A sharding, and its parts. */
typedef struct place {
    oly_sharding sharding;
    oly_mesh mesh;
    bool is_explicit;
    int n_devices, device[MOST_DEVICES];
    int n_axes, size[MOST_AXES];
    int n_of[MOST_RANK], axis_of[MOST_RANK][MOST_AXES]; /* axes of each dimension, major first */
    unsigned unreduced;                                 /* axes over which it is unreduced */
} place;

typedef struct walk {
    uint64_t seed, random;
    oly_dtype dtype;
    int rank;
    int64_t shape[MOST_RANK];
    place at;
    bool all_in_order;   /* meshes are of all devices in order */
    char told[4 * TEXT]; /* the last step */
} walk;

static int n_pairs, n_sums;

static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static int below(walk *w, int n)
{
    w->random += 0x9e3779b97f4a7c15;
    return (int)(mixed(w->random) % (uint64_t)n);
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static void fail_walk(const walk *w, const char *why)
{
    fail_msg("RESHARD_SEED=%" PRIu64 " RESHARD_PAIRS=1: %s: %s (%s)", w->seed, w->told, why, oly_last_error());
}

/* -- random shardings --------------------------------------------------------------------------------------------------- */

static const char *const axis_names[MOST_AXES] = {"x", "y", "z"};

/* Sizes with this product. */
static void draw_axes(walk *w, place *p)
{
    int rest = p->n_devices;
    p->n_axes = 1 + below(w, MOST_AXES);
    for (int a = 0; a < p->n_axes; a++) {
        int size = 1 + below(w, rest);
        while (rest % size)
            size--;
        p->size[a] = a == p->n_axes - 1 ? rest : size;
        rest /= p->size[a];
    }
}

static void draw_devices(walk *w, place *p)
{
    int n_all = oly_device_count(), all[MOST_DEVICES];
    for (int k = 0; k < n_all; k++)
        all[k] = k;
    p->n_devices = w->all_in_order || below(w, 2) ? n_all : 1 + below(w, n_all);
    if (!w->all_in_order && below(w, 2))
        for (int k = n_all - 1; k > 0; k--) {
            int j = below(w, k + 1), other = all[j];
            all[j] = all[k];
            all[k] = other;
        }
    int first = below(w, n_all - p->n_devices + 1);
    memcpy(p->device, all + first, sizeof *all * (size_t)p->n_devices);
}

static void draw_mesh(walk *w, place *p, bool is_explicit)
{
    oly_axis_type types[MOST_AXES] = {OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT};
    draw_devices(w, p);
    draw_axes(w, p);
    p->is_explicit = is_explicit;
    p->mesh = oly_mesh_from_devices(p->n_axes, (const char *const *)axis_names, p->size, p->device);
    if (is_explicit)
        p->mesh = oly_mesh_with_types(p->mesh, types);
}

/* Every axis splits a dimension, or none. Axes of `unreduced` split none. */
static void draw_spec(walk *w, place *p, unsigned unreduced)
{
    char spec[200] = "", *at = spec;
    int order[MOST_AXES] = {0, 1, 2};
    for (int k = p->n_axes - 1; k > 0; k--) {
        int j = below(w, k + 1), other = order[j];
        order[j] = order[k];
        order[k] = other;
    }
    memset(p->n_of, 0, sizeof p->n_of);
    p->unreduced = unreduced;
    for (int k = 0; k < p->n_axes; k++) {
        int d = below(w, w->rank + 1);
        if (d < w->rank && !(unreduced >> order[k] & 1))
            p->axis_of[d][p->n_of[d]++] = order[k];
    }
    for (int d = 0; d < w->rank; d++) {
        at += sprintf(at, p->n_of[d] ? "%s(" : "%sNone", d ? ", " : "");
        for (int k = 0; k < p->n_of[d]; k++)
            at += sprintf(at, "%s%s", k ? "," : "", axis_names[p->axis_of[d][k]]);
        at += sprintf(at, p->n_of[d] ? ")" : "");
    }
    for (int a = 0, n = 0; a < p->n_axes; a++)
        if (unreduced >> a & 1)
            at += sprintf(at, "%s%s", n++ ? "," : w->rank ? ", unreduced={" : "unreduced={", axis_names[a]);
    if (unreduced)
        sprintf(at, "}");
    p->sharding = oly_named(p->mesh, spec);
}

static void draw_place(walk *w, place *p)
{
    int kind = below(w, 10);
    if (kind == 0) { /* a single device: a mesh of one */
        *p = (place){.n_devices = 1, .device = {below(w, oly_device_count())}};
        p->sharding = oly_single_device(oly_get_device(p->device[0]));
    } else {
        if (kind > 4 || !p->mesh) { /* another mesh */
            *p = (place){0};
            draw_mesh(w, p, below(w, 5) == 0);
        }
        draw_spec(w, p, 0);
    }
}

static void draw_array(walk *w)
{
    static const oly_dtype types[] = {OLY_BOOL,  OLY_UINT8, OLY_INT16,   OLY_BFLOAT16,  OLY_FLOAT32,
                                      OLY_INT32, OLY_INT64, OLY_FLOAT64, OLY_COMPLEX128};
    static const int most[MOST_RANK + 1] = {1, 40, 20, 11, 9};
    w->dtype = types[below(w, (int)(sizeof types / sizeof *types))];
    w->rank = below(w, 12) ? 1 + below(w, MOST_RANK) : 0;
    for (int d = 0; d < w->rank; d++)
        w->shape[d] = below(w, 40) ? 1 + below(w, most[w->rank]) : 0;
}

/* -- expected contents --------------------------------------------------------------------------------------------- */

/* Balanced blocks: sizes differ by at most one, larger first. */
static void block_of(const walk *w, const place *p, int position, int64_t *lo, int64_t *hi)
{
    int at[MOST_AXES] = {0};
    for (int a = p->n_axes - 1, rest = position; a >= 0; rest /= p->size[a--])
        at[a] = rest % p->size[a];
    for (int d = 0; d < w->rank; d++) {
        int64_t parts = 1, part = 0, n = w->shape[d];
        for (int k = 0; k < p->n_of[d]; k++) {
            part = part * p->size[p->axis_of[d][k]] + at[p->axis_of[d][k]];
            parts *= p->size[p->axis_of[d][k]];
        }
        lo[d] = hi[d] = 0;
        for (int64_t q = 0; q <= part; q++) {
            lo[d] = hi[d];
            hi[d] += n / parts + (q < n % parts);
        }
    }
}

static int64_t size_of(const walk *w)
{
    int64_t size = 1;
    for (int d = 0; d < w->rank; d++)
        size *= w->shape[d];
    return size;
}

/* Element i of array number `which` of the walk. */
static void element_of(const walk *w, int which, int64_t i, void *element)
{
    uint64_t bits[2];
    bits[0] = mixed(w->seed * 1000003 + (uint64_t)which * 7919 + (uint64_t)i);
    bits[1] = mixed(bits[0]);
    if (w->dtype == OLY_BOOL)
        bits[0] &= 1;
    memcpy(element, bits, oly_dtype_size(w->dtype));
}

static void check_box(const walk *w, const place *p, int position, const int64_t *start, const int64_t *extent)
{
    int64_t lo[MOST_RANK], hi[MOST_RANK];
    block_of(w, p, position, lo, hi);
    for (int d = 0; d < w->rank; d++)
        if (start[d] != lo[d] || extent[d] != hi[d] - lo[d])
            fail_walk(w, "another block is on a device than a plain computation says");
}

static int replicas_before(const walk *w, const place *p, int position)
{
    int64_t lo[MOST_RANK], hi[MOST_RANK], other_lo[MOST_RANK], other_hi[MOST_RANK];
    int n = 0;
    block_of(w, p, position, lo, hi);
    for (int q = 0; q < position; q++) {
        block_of(w, p, q, other_lo, other_hi);
        size_t bytes = sizeof *lo * (size_t)w->rank;
        n += memcmp(lo, other_lo, bytes) == 0 && memcmp(hi, other_hi, bytes) == 0;
    }
    return n;
}

static void check_elements(const walk *w, int which, const oly_shard *s)
{
    int64_t at[MOST_RANK] = {0}, n = 1;
    size_t bytes = oly_dtype_size(w->dtype);
    for (int d = 0; d < w->rank; d++)
        n *= s->extent[d];
    for (int64_t i = 0; i < n; i++) {
        unsigned char wanted[16];
        int64_t global = 0;
        for (int d = 0; d < w->rank; d++)
            global = global * w->shape[d] + s->start[d] + at[d];
        element_of(w, which, global, wanted);
        if (memcmp(wanted, (const char *)s->memory + (size_t)i * bytes, bytes) != 0) {
            char why[100];
            snprintf(why, sizeof why, "element %" PRId64 " is wrong on device %d", global, oly_device_id(s->device));
            fail_walk(w, why);
        }
        for (int d = w->rank - 1; d >= 0 && ++at[d] == s->extent[d]; d--)
            at[d] = 0;
    }
}

static void check_array(const walk *w, const place *p, int which, oly_array x)
{
    int shard = 0;
    if (!x)
        fail_walk(w, "refused");
    if (oly_dtype_of(x) != w->dtype || oly_rank(x) != w->rank)
        fail_walk(w, "it has another type");
    if (oly_sharding_of(x) != p->sharding)
        fail_walk(w, "it has another sharding");
    for (int q = 0; q < p->n_devices; q++) {
        int64_t start[OLY_MAX_RANK], extent[OLY_MAX_RANK];
        if (oly_sharding_shard(p->sharding, w->rank, w->shape, q, start, extent) != OLY_OK)
            fail_walk(w, "no shard");
        check_box(w, p, q, start, extent);
        if (!oly_device_is_local(oly_get_device(p->device[q])))
            continue;
        oly_shard s = oly_get_shard(x, shard++);
        if (oly_device_id(s.device) != p->device[q] || s.replica != replicas_before(w, p, q))
            fail_walk(w, "a shard is on another device, or another replica");
        check_box(w, p, q, s.start, s.extent);
        check_elements(w, which, &s);
    }
    if (oly_shard_count(x) != shard)
        fail_walk(w, "another number of shards");
}

/* -- walks -------------------------------------------------------------------------------------------------------------- */

static void tell(walk *w, const place *from, const place *to)
{
    char *at = w->told, *end = w->told + sizeof w->told;
    const place *both[2] = {from, to};
    at += snprintf(at, (size_t)(end - at), "%s[", oly_dtype_name(w->dtype));
    for (int d = 0; d < w->rank; d++)
        at += snprintf(at, (size_t)(end - at), "%s%" PRId64, d ? "," : "", w->shape[d]);
    at += snprintf(at, (size_t)(end - at), "]");
    for (int k = 0; k < 2; k++) {
        char text[TEXT] = "host";
        if (both[k]->sharding)
            oly_sharding_str(both[k]->sharding, text, sizeof text);
        at += snprintf(at, (size_t)(end - at), "%s %s on", k ? " ->" : "", text);
        for (int q = 0; q < both[k]->n_devices; q++)
            at += snprintf(at, (size_t)(end - at), " %d", both[k]->device[q]);
    }
    if (getenv("RESHARD_PRINT"))
        fprintf(stderr, "seed %" PRIu64 ": %s\n", w->seed, w->told);
}

/* -- costs --------------------------------------------------------------------------------------------------------- */

static void place_again(const oly_array *in, oly_array *out, void *to)
{
    out[0] = oly_device_put(in[0], to);
}

static int64_t bytes_at(const walk *w, const place *p, int position, const place *without, int own)
{
    int64_t lo[MOST_RANK], hi[MOST_RANK], own_lo[MOST_RANK], own_hi[MOST_RANK], all = 1, shared = own >= 0;
    block_of(w, p, position, lo, hi);
    if (own >= 0)
        block_of(w, without, own, own_lo, own_hi);
    for (int d = 0; d < w->rank; d++) {
        all *= hi[d] - lo[d];
        if (own < 0)
            continue;
        int64_t from = lo[d] > own_lo[d] ? lo[d] : own_lo[d], to = hi[d] < own_hi[d] ? hi[d] : own_hi[d];
        shared *= to > from ? to - from : 0;
    }
    return (all - shared) * (int64_t)oly_dtype_size(w->dtype);
}

/* No device needs memory beyond its blocks, and each receives the elements it does not have, once. */
static void check_costs(const walk *w, const place *to, oly_array x)
{
    enum { ALIGNMENT = 256 };
    int64_t most = 0, moved = 0;
    for (int q = 0; q < to->n_devices; q++) {
        int own = -1;
        for (int p = 0; p < w->at.n_devices; p++)
            own = w->at.device[p] == to->device[q] ? p : own;
        if (oly_device_is_local(oly_get_device(to->device[q])))
            moved += bytes_at(w, to, q, &w->at, own);
        int64_t bytes = bytes_at(w, to, q, NULL, -1);
        most = bytes > most ? bytes : most;
    }
    for (int p = 0; p < w->at.n_devices; p++) {
        int64_t bytes = bytes_at(w, &w->at, p, NULL, -1);
        most = bytes > most ? bytes : most;
    }
    oly_plan_costs costs;
    oly_fn f = oly_jit(place_again, 1, 1, .user = (void *)to->sharding);
    char why[120];
    if (oly_costs(&costs, f, x) != OLY_OK)
        fail_walk(w, "not planned");
    snprintf(why, sizeof why,
             "%" PRId64 " bytes move instead of %" PRId64 ", with %" PRId64 " in scratch, blocks have %" PRId64,
             costs.wire_bytes, moved, costs.scratch_bytes, most);
    if (costs.wire_bytes != moved || costs.scratch_bytes > most + ALIGNMENT)
        fail_walk(w, why);
}

static oly_array from_host(const walk *w, int which)
{
    size_t bytes = oly_dtype_size(w->dtype);
    char *data = malloc((size_t)size_of(w) * bytes + 16);
    for (int64_t i = 0; i < size_of(w); i++)
        element_of(w, which, i, data + (size_t)i * bytes);
    oly_array x = oly_from_host(data, w->dtype, w->rank, w->shape);
    free(data);
    return x;
}

/* An unreduced value whose terms sum to array `which`: each a row of an array that is split over the axes. */
static oly_array unfinished(walk *w, const place *p, int which, int n_terms)
{
    oly_sharding sharding = p->sharding;
    int64_t size = size_of(w), shape[MOST_RANK + 1] = {n_terms};
    uint64_t *data = calloc((size_t)(size * n_terms) + 1, sizeof *data);
    for (int64_t i = 0; i < size; i++) {
        uint64_t last;
        element_of(w, which, i, &last);
        for (int k = 0; k < n_terms - 1; k++) {
            data[(int64_t)k * size + i] = (uint64_t)below(w, 1 << 30);
            last -= data[(int64_t)k * size + i];
        }
        data[(int64_t)(n_terms - 1) * size + i] = last;
    }
    memcpy(shape + 1, w->shape, sizeof *shape * (size_t)w->rank);
    int axes[MOST_RANK + 1][MOST_AXES + 1], n = 0;
    const int *lists[MOST_RANK + 1];
    for (int a = 0; a < p->n_axes; a++)
        if (p->unreduced >> a & 1)
            axes[0][n++] = a;
    axes[0][n] = -1;
    for (int d = 0; d <= w->rank; d++) {
        lists[d] = axes[d];
        for (int k = 0; d && k < p->n_of[d - 1]; k++)
            axes[d][k] = p->axis_of[d - 1][k];
        if (d)
            axes[d][p->n_of[d - 1]] = -1;
    }
    oly_array terms =
        oly_device_put(oly_from_host(data, OLY_INT64, w->rank + 1, shape), oly_named_axes(p->mesh, w->rank + 1, lists));
    free(data);
    return oly_sum(terms, .axes = "0", .out_sharding = sharding);
}

/* The start of a walk as an unreduced value: over fewer axes, then over none. */
static oly_array finish_sum(walk *w, oly_array x)
{
    for (unsigned left = w->at.unreduced; left;) {
        place next = w->at;
        left &= (unsigned)below(w, 1 << MOST_AXES);
        if (below(w, 2))
            left = 0;
        draw_spec(w, &next, left);
        tell(w, &w->at, &next);
        x = oly_reshard(x, next.sharding);
        if (!x)
            fail_walk(w, "refused");
        w->at = next;
        n_pairs++;
        n_sums++;
    }
    return x;
}

static oly_array start_as_sum(walk *w)
{
    oly_array x;
    w->dtype = OLY_INT64;
    draw_mesh(w, &w->at, true);
    draw_spec(w, &w->at, 1 + (unsigned)below(w, (1 << w->at.n_axes) - 1));
    tell(w, &(place){0}, &w->at);
    if (below(w, 2))
        x = unfinished(w, &w->at, 0, 1 + below(w, 9));
    else
        x = oly_device_put(from_host(w, 0), w->at.sharding);
    if (!x)
        fail_walk(w, "refused");
    return finish_sum(w, x);
}

static void run_walk(uint64_t seed, bool all_in_order)
{
    walk w = {.seed = seed, .random = mixed(seed), .all_in_order = all_in_order};
    oly_array x[2] = {NULL};
    draw_array(&w);
    bool sum = below(&w, 8) == 0;
    int n = sum || below(&w, 4) ? 1 : 2; /* the second replays the plans of the first */
    if (sum) {
        x[0] = start_as_sum(&w);
        check_array(&w, &w.at, 0, x[0]);
    }
    for (int k = 0; k < n && !sum; k++)
        x[k] = from_host(&w, k);
    for (int step = 0; step <= WALK - sum; step++) {
        place next = w.at;
        draw_place(&w, &next);
        tell(&w, &w.at, &next);
        n_pairs += w.at.sharding != NULL;
        if (w.at.sharding && below(&w, 4) == 0)
            check_costs(&w, &next, x[0]);
        for (int k = 0; k < n; k++) {
            x[k] = oly_device_put(x[k], next.sharding);
            check_array(&w, &next, k, x[k]);
        }
        w.at = next;
    }
}

/* As between thousands of processes: gathers are trees. */
static void gathers_go_in_stages(void **state)
{
    (void)state;
    int before = n_pairs;
    setenv("OLYMPUS_DIRECT_PROCESSES", "1", 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_enable_x64(true);
    for (uint64_t seed = (uint64_t)setting("RESHARD_SEED", 5); n_pairs < before + STAGED_PAIRS; seed++) {
        OLY_SCOPE
        run_walk(seed, true);
    }
    oly_enable_x64(false);
    oly_finalize();
    unsetenv("OLYMPUS_DIRECT_PROCESSES");
}

/* -- memory ------------------------------------------------------------------------------------------------------------- */

static int64_t largest_block(const walk *w, const place *p)
{
    int64_t most = 0;
    for (int q = 0; q < p->n_devices; q++) {
        int64_t bytes = bytes_at(w, p, q, NULL, -1);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Moves an array and checks the memory used besides the array before and after: the process's packed messages and, of a
 * reduction, partial results; nothing else. */
static oly_array moved_within_bounds(const walk *w, const place *to, oly_array x)
{
    int64_t limit = oly_option.exchange_memory << 20, slack = 4096;
    int64_t before = largest_block(w, &w->at), after = largest_block(w, to);
    oly_block_until_ready(x);
    oly_pool_stop(); /* frees idle memory; the peak is reset */
    oly_staging_stop();
    oly_staging_peak();
    oly_array y = to->is_explicit ? oly_reshard(x, to->sharding) : oly_device_put(x, to->sharding);
    if (!y)
        fail_walk(w, "refused");
    oly_block_until_ready(y);
    oly_pool_statistics s = oly_pool_statistics_get();
    int64_t extra = (int64_t)s.peak_bytes - (int64_t)s.in_use_bytes, packed = oly_staging_peak();
    int64_t extra_allowed = oly_local_device_count() * slack + (w->at.unreduced ? limit / 4 : 0);
    extra_allowed += extra_allowed / 8; /* the pool has size classes */
    char why[160];
    snprintf(why, sizeof why, "%" PRId64 " bytes besides blocks of %" PRId64 " and %" PRId64 ", %" PRId64 " packed",
             extra, before, after, packed);
    if (packed > limit / 4 * 3 || extra > extra_allowed)
        fail_walk(w, why);
    return y;
}

/* Arrays of megabytes between two shardings, with one mebibyte for packed messages. */
static void large_arrays_go_in_rounds(void **state)
{
    (void)state;
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (uint64_t seed = 1; seed <= 3; seed++)
        OLY_SCOPE
        {
            walk w = {.seed = seed, .random = mixed(seed), .dtype = OLY_FLOAT32, .rank = 2, .shape = {1031, 1021}};
            oly_array x = from_host(&w, 0);
            for (int step = 0; step < 3; step++) {
                place next = {0};
                draw_mesh(&w, &next, false);
                draw_spec(&w, &next, 0);
                tell(&w, &w.at, &next);
                x = step ? moved_within_bounds(&w, &next, x) : oly_device_put(x, next.sharding);
                check_array(&w, &next, 0, x);
                w.at = next;
            }
        }
    oly_finalize();
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
}

/* Unreduced values, of megabytes on each device, are reduced in rounds. */
static void large_sums_are_reduced_in_rounds(void **state)
{
    (void)state;
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_enable_x64(true);
    for (uint64_t seed = 1; seed <= 12; seed++)
        OLY_SCOPE
        {
            walk w = {.seed = seed, .random = mixed(seed), .dtype = OLY_INT64, .rank = 2, .shape = {3, 91033}};
            if (seed % 2)
                w.shape[0] = 517, w.shape[1] = 523;
            draw_mesh(&w, &w.at, true);
            draw_spec(&w, &w.at, 1 + (unsigned)below(&w, (1 << w.at.n_axes) - 1));
            tell(&w, &(place){0}, &w.at);
            oly_array x = unfinished(&w, &w.at, 0, w.at.n_devices);
            for (unsigned left = w.at.unreduced; left;) {
                place next = w.at;
                left &= seed < 3 ? 0 : (unsigned)below(&w, 1 << MOST_AXES);
                draw_spec(&w, &next, left);
                tell(&w, &w.at, &next);
                x = moved_within_bounds(&w, &next, x);
                w.at = next;
            }
            check_array(&w, &w.at, 0, x);
        }
    oly_enable_x64(false);
    oly_finalize();
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
}

enum { AT_ONCE = 8, SIDE = 1024 };

static void turn_many(const oly_array *in, oly_array *out, void *user)
{
    oly_mesh mesh = user;
    for (int k = 0; k < AT_ONCE; k++) {
        oly_array here = oly_with_sharding_constraint(oly_mul(in[0], (double)(k + 1)), oly_named(mesh, "x"));
        out[k] = oly_with_sharding_constraint(here, oly_named(mesh, "None, x"));
    }
}

/* Independent transfers, each of which would pack as much as all of them may. */
static void many_at_once_share_one_bound(void **state)
{
    (void)state;
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    oly_init(NULL, NULL);
    OLY_SCOPE
    {
        oly_mesh mesh = oly_make_mesh("x=8");
        oly_array in =
            oly_device_put(oly_reshape(oly_arange(SIDE * SIDE, OLY_FLOAT32), SIDE, SIDE), oly_named(mesh, "x"));
        oly_fn f = oly_jit(turn_many, 1, AT_ONCE, .user = (void *)mesh);
        oly_array out[AT_ONCE], *results[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++)
            results[k] = &out[k];
        oly_block_until_ready(in);
        oly_staging_stop();
        oly_staging_peak();
        for (int again = 0; again < 3; again++) {
            oly_call(f, OLY_IN(in), AT_ONCE, results);
            for (int k = 0; k < AT_ONCE; k++)
                OLY_FOR_EACH_SHARD(s, out[k])
            for (int64_t i = 0; i < s.extent[0]; i++)
                for (int64_t j = 0; j < s.extent[1]; j++) {
                    float wanted = (float)(k + 1) * (float)((s.start[0] + i) * SIDE + s.start[1] + j);
                    if (((const float *)s.memory)[i * s.extent[1] + j] != wanted)
                        fail_msg("element %d, %d of result %d is wrong", (int)i, (int)j, k);
                }
        }
        assert_in_range(oly_staging_peak(), 0, 3 << 18);
        assert_true(oly_process_count() == 1 || oly_staging_peak() > 0);
    }
    oly_finalize();
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
}

static void arrays_go_anywhere(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_enable_x64(true);
    assert_int_equal(oly_device_count(), MOST_DEVICES);
    uint64_t seed = (uint64_t)setting("RESHARD_SEED", 1000000 * (int64_t)oly_local_device_count());
    for (int64_t most = setting("RESHARD_PAIRS", PAIRS); n_pairs < most; seed++) {
        OLY_SCOPE
        run_walk(seed, false);
    }
    assert_true(n_sums > 0 || getenv("RESHARD_PAIRS"));
    if (getenv("RESHARD_PAIRS"))
        fprintf(stderr, "%d pairs, %d of them sums over devices\n", n_pairs, n_sums);
    oly_enable_x64(false);
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_go_anywhere), cmocka_unit_test(gathers_go_in_stages),
                                       cmocka_unit_test(large_arrays_go_in_rounds),
                                       cmocka_unit_test(large_sums_are_reduced_in_rounds),
                                       cmocka_unit_test(many_at_once_share_one_bound)};
    return CHECK_MAIN(tests);
}
