/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparing values, element by element where their bytes differ. See compare.h. */
#include "verify/compare.h"
#include "verify/agree.h"
#include "verify/element.h"
#include <math.h>
#include <string.h>

enum { MARGIN = 8 }; /* factor on the differences between the disturbed evaluations */

/* One value as the plan has placed it. */
typedef struct subject {
    oly_held *got;
    oly_held *exact, *disturbed[OLY_DISTURBED];
    double allowed; /* largest difference of an element; 0: none */
} subject;

static void forget(subject *s)
{
    oly_held_drop(s->exact);
    for (int j = 0; j < OLY_DISTURBED; j++)
        oly_held_drop(s->disturbed[j]);
}

static oly_status bring(oly_held *got, const oly_expected *expected, subject *s)
{
    oly_sharding where = got->is.sharding;
    *s = (subject){.got = got};
    OLY_TRY(oly_held_move(expected->exact, where, &s->exact));
    for (int j = 0; j < OLY_DISTURBED && expected->disturbed[j]; j++)
        OLY_TRY(oly_held_move(expected->disturbed[j], where, &s->disturbed[j]));
    return OLY_OK;
}

static oly_status map(subject *s)
{
    OLY_TRY(oly_held_map(s->got));
    OLY_TRY(oly_held_map(s->exact));
    for (int j = 0; j < OLY_DISTURBED && s->disturbed[j]; j++)
        OLY_TRY(oly_held_map(s->disturbed[j]));
    return OLY_OK;
}

static oly_box box_of(const subject *s, int shard)
{
    const int *positions;
    const oly_type *t = &s->got->is.type;
    oly_layout l = oly_layout_canonical(s->got->is.sharding, t->rank, t->shape);
    oly_mesh_local_positions(s->got->is.sharding->mesh, &positions);
    return oly_layout_box(&l, positions[shard]);
}

/* By type and box: a donated buffer may be larger than its present contents. */
static int64_t elements_of(const subject *s, int shard)
{
    oly_box box = box_of(s, shard);
    return oly_box_count(&box);
}

static const char *element_of(const oly_held *x, int shard, int64_t i)
{
    return (const char *)x->host[shard] + i * (int64_t)oly_dtype_size(x->is.type.dtype);
}

/* The largest change that disturbed roundings made to any element of this process. */
static double disturbance(const subject *s)
{
    oly_dtype dtype = s->got->is.type.dtype;
    double most = 0;
    for (int j = 0; j < OLY_DISTURBED && s->disturbed[j]; j++)
        for (int shard = 0; shard < s->got->n_shards; shard++)
            for (int64_t i = 0; i < elements_of(s, shard); i++)
                most = fmax(most, oly_element_distance(dtype, element_of(s->exact, shard, i),
                                                       element_of(s->disturbed[j], shard, i)));
    return most;
}

static bool is_right(const subject *s, int shard, int64_t i)
{
    oly_dtype dtype = s->got->is.type.dtype;
    const char *got = element_of(s->got, shard, i), *exact = element_of(s->exact, shard, i);
    if (oly_element_same(dtype, got, exact))
        return true;
    return s->disturbed[0] && oly_element_distance(dtype, got, exact) <= s->allowed;
}

/* Position of element i of a box in the whole array. */
static int64_t number_of(const oly_box *b, const oly_type *t, int64_t i)
{
    int64_t number = 0, stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        int64_t extent = b->hi[d] - b->lo[d];
        number += (b->lo[d] + i % extent) * stride;
        i /= extent;
        stride *= t->shape[d];
    }
    return number;
}

static void note(const subject *s, int shard, int64_t i, int64_t number, oly_difference *first)
{
    const int *positions;
    oly_dtype dtype = s->got->is.type.dtype;
    oly_mesh mesh = s->got->is.sharding->mesh;
    oly_mesh_local_positions(mesh, &positions);
    first->any = true;
    first->element = number;
    first->device = mesh->everywhere ? oly_mesh_first_local() : oly_mesh_device_id(mesh, positions[shard]);
    first->allowed = s->allowed;
    for (int part = 0; part < oly_element_parts(dtype); part++) {
        first->got[part] = oly_element_part(dtype, element_of(s->got, shard, i), part);
        first->expected[part] = oly_element_part(dtype, element_of(s->exact, shard, i), part);
    }
}

/* The first wrong element on this process. */
static void look(const subject *s, oly_difference *first)
{
    const oly_type *t = &s->got->is.type;
    for (int shard = 0; shard < s->got->n_shards; shard++) {
        oly_box box = box_of(s, shard);
        int64_t n = oly_box_count(&box);
        size_t bytes = (size_t)n * oly_dtype_size(t->dtype);
        if (memcmp(s->got->host[shard], s->exact->host[shard], bytes) == 0)
            continue;
        for (int64_t i = 0; i < n; i++) {
            int64_t number = is_right(s, shard, i) ? -1 : number_of(&box, t, i);
            if (number >= 0 && (!first->any || number < first->element))
                note(s, shard, i, number, first);
            if (number >= 0)
                break; /* later elements have larger numbers */
        }
    }
}

/* -- all processes -------------------------------------------------------------------------------------------------------- */

static double plain(double x)
{
    return isnan(x) ? 0x1p1000 : x;
}

/* The first of the differences that processes have found. */
static oly_status agree_on(oly_mesh mesh, oly_difference *first)
{
    double place[2] = {first->any ? first->which : INFINITY, first->any ? (double)first->element : INFINITY};
    OLY_TRY(oly_agree_least(mesh, 1, &place[0]));
    if (isinf(place[0]))
        return OLY_OK;
    if (!first->any || first->which != (int)place[0])
        place[1] = INFINITY;
    OLY_TRY(oly_agree_least(mesh, 1, &place[1]));
    bool mine = first->any && first->which == (int)place[0] && (double)first->element == place[1];
    double device = mine ? first->device : INFINITY;
    OLY_TRY(oly_agree_least(mesh, 1, &device));
    mine = mine && first->device == (int)device;
    double said[5] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    for (int part = 0; part < 2 && mine; part++) {
        said[part] = plain(first->got[part]);
        said[2 + part] = plain(first->expected[part]);
        said[4] = first->allowed;
    }
    OLY_TRY(oly_agree_least(mesh, 5, said));
    for (int part = 0; part < 2; part++) {
        first->got[part] = said[part] == 0x1p1000 ? NAN : said[part];
        first->expected[part] = said[2 + part] == 0x1p1000 ? NAN : said[2 + part];
    }
    first->allowed = said[4];
    first->any = true;
    first->which = (int)place[0];
    first->element = (int64_t)place[1];
    first->device = (int)device;
    return OLY_OK;
}

static oly_status compare(oly_mesh mesh, int n, subject *s, double *allowed, oly_difference *first)
{
    bool any = false;
    for (int k = 0; k < n; k++) {
        any = any || s[k].disturbed[0];
        allowed[k] = s[k].got ? disturbance(&s[k]) : 0;
    }
    if (any)
        OLY_TRY(oly_agree_largest(mesh, n, allowed));
    for (int k = 0; k < n && !first->any; k++) {
        s[k].allowed = MARGIN * allowed[k];
        first->which = k;
        if (s[k].got)
            look(&s[k], first);
    }
    return agree_on(mesh, first);
}

oly_status oly_compare(oly_mesh mesh, int n, oly_held *const *got, const oly_expected *expected, oly_difference *first)
{
    subject *s = oly_calloc((size_t)n + 1, sizeof *s);
    double *allowed = oly_calloc((size_t)n + 1, sizeof *allowed);
    oly_status st = s && allowed ? OLY_OK : oly_out_of_memory(sizeof *s * (size_t)n, "a comparison");
    memset(first, 0, sizeof *first);
    for (int k = 0; k < n && st == OLY_OK; k++)
        if (got[k])
            st = bring(got[k], &expected[k], &s[k]);
    oly_queue_drain();
    if (st == OLY_OK)
        st = oly_run_failure();
    for (int k = 0; k < n && st == OLY_OK; k++)
        if (got[k])
            st = map(&s[k]);
    if (st == OLY_OK)
        st = compare(mesh, n, s, allowed, first);
    for (int k = 0; s && k < n; k++)
        forget(&s[k]);
    oly_release(s);
    oly_release(allowed);
    return st;
}
