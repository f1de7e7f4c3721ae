/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops, branches, placement, and the collectives of per-device programs, with bodies so simple that their values are
 * known. */
#include "ops_reference.h"

/* -- loops and branches ------------------------------------------------------------------------------------------------- */
static number number_of(const row *r, const tensor *in, number x)
{
    oly_dtype dtype = ops_result_type(r->result, in->dtype);
    return element_is_inexact(dtype) ? x : (number)(long double)ops_wrapped(dtype, (whole)creall(x));
}

static void add_counter(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], oly_astype(i, oly_dtype_of(carry[0])));
}
static oly_array call_fori(const oly_array *in)
{
    oly_array x = in[0];
    return oly_fori(0, 4, add_counter, 1, &x, NULL) == OLY_OK ? x : NULL;
}
static number value_fori(const row *r, const tensor *in, const int64_t *at)
{
    return number_of(r, in, ops_get(in, at) + 6);
}

static oly_array below_three(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[1], 3);
}
static void count_and_double(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], carry[0]);
    carry[1] = oly_add(carry[1], 1);
}
static oly_array call_while(const oly_array *in)
{
    oly_array carry[] = {in[0], oly_scalar(0, OLY_INT32)};
    return oly_while(below_three, count_and_double, 2, carry, NULL) == OLY_OK ? carry[0] : NULL;
}
static number value_while(const row *r, const tensor *in, const int64_t *at)
{
    number x = ops_get(in, at);
    return in->dtype == OLY_BOOL ? x : number_of(r, in, 8 * x);
}

static void same(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}
static void twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], in[0]);
}
static void minus(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(in[0], oly_add(in[0], in[0]));
}
static oly_array call_cond(const oly_array *in)
{
    oly_array out = NULL;
    oly_cond(oly_gt(oly_sum(oly_ne(in[0], 0)), 3), same, minus, 1, in, 1, &out, NULL);
    return out;
}
static number value_cond(const row *r, const tensor *in, const int64_t *at)
{
    int64_t n = 0;
    for (int64_t i = 0; i < in->size; i++)
        n += in->element[i] != 0;
    return number_of(r, in, n > 3 ? ops_get(in, at) : -ops_get(in, at));
}
static oly_array call_switch(const oly_array *in)
{
    oly_array out = NULL;
    oly_switch(in[1], 3, (const oly_function[]){same, twice, minus}, 1, in, 1, &out, NULL);
    return out;
}
static number value_switch(const row *r, const tensor *in, const int64_t *at)
{
    int which = (int)creall(in[1].element[0]);
    number x = ops_get(in, at);
    return number_of(r, in, which <= 0 ? x : which == 1 ? 2 * x : -x);
}

/* -- placing ------------------------------------------------------------------------------------------------------------ */
static oly_mesh grid(void)
{
    return oly_make_mesh("x=2, y=4");
}
static oly_array call_constraint(const oly_array *in)
{
    return oly_with_sharding_constraint(oly_add(in[0], in[0]), oly_named(grid(), "y, x"));
}
static number value_twice(const row *r, const tensor *in, const int64_t *at)
{
    number x = ops_get(in, at);
    return in->dtype == OLY_BOOL ? x : number_of(r, in, x + x);
}
static oly_array call_full_sharded(const oly_array *in)
{
    return oly_full_sharded(OLY_ARG(1), oly_dtype_of(in[0]), oly_named(grid(), "(x,y)"), oly_rank(in[0]),
                            oly_shape(in[0]));
}
static number value_one(const row *r, const tensor *in, const int64_t *at)
{
    (void)r, (void)in, (void)at;
    return 1;
}
static oly_array call_arange_sharded(const oly_array *in)
{
    return oly_arange_sharded(oly_dim(in[0], 0), oly_dtype_of(in[0]), oly_named(grid(), "(y,x)"));
}
static number value_index(const row *r, const tensor *in, const int64_t *at)
{
    (void)r, (void)in;
    return (long double)at[0];
}
static oly_array call_broadcast_sharded(const oly_array *in)
{
    return oly_broadcast_sharded(in[0], NULL, 2, oly_dim(in[0], 0));
}
static number value_row(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return ops_get(in, AT(at[1]));
}
static const int second[] = {1};
static oly_array call_broadcast_in_dim_sharded(const oly_array *in)
{
    return oly_broadcast_in_dim_sharded(in[0], NULL, 2, AT(2, oly_dim(in[0], 0)), 1, second);
}

/* -- collectives: x of [m, n] is split by rows over the devices of d=8 --------------------------------------------- */
static oly_array on_devices(oly_function body, const char *spec, oly_array x)
{
    static const char *const rows[] = {"d"};
    oly_array out = NULL, *wanted[] = {&out};
    oly_shard_map(body, NULL, oly_make_mesh("d=8"), 1, &x, rows, 1, wanted, &spec);
    return out;
}
#define ON_DEVICES(name, spec, ...)                                                                                    \
    static void body_##name(const oly_array *in, oly_array *out, void *user)                                           \
    {                                                                                                                  \
        oly_array x = in[0];                                                                                           \
        (void)user;                                                                                                    \
        out[0] = __VA_ARGS__;                                                                                          \
    }                                                                                                                  \
    static oly_array call_##name(const oly_array *in)                                                                  \
    {                                                                                                                  \
        return on_devices(body_##name, spec, in[0]);                                                                   \
    }
#define RING OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7})
ON_DEVICES(psum, "", oly_psum(x, "d"))
ON_DEVICES(pmean, "", oly_pmean(x, "d"))
ON_DEVICES(pmax, "", oly_pmax(x, "d"))
ON_DEVICES(pmin, "", oly_pmin(x, "d"))
ON_DEVICES(all_gather, "", oly_all_gather(x, "d", .tiled = true, .invariant = true))
ON_DEVICES(psum_scatter, "None, d", oly_psum_scatter(x, "d", .axis = 1, .tiled = true))
ON_DEVICES(all_to_all, "None, d", oly_all_to_all(x, "d", 1, 0, true))
ON_DEVICES(ppermute, "d", oly_ppermute(x, "d", RING))
ON_DEVICES(axis_index, "d", oly_add(x, oly_astype(oly_axis_index("d"), oly_dtype_of(x))))
ON_DEVICES(pvary, "d", oly_pvary(oly_full_shape(OLY_ARG(1), oly_dtype_of(x), 2, oly_shape(x)), "d"))

static number value_over_devices(const row *r, const tensor *in, const int64_t *at)
{
    number total = 0;
    for (int64_t i = 0; i < in->shape[0]; i++) {
        number x = ops_get(in, AT(i, at[1]));
        if (strcmp(r->name, "pmax") == 0)
            total = i && !ops_less(total, x) ? total : x;
        else if (strcmp(r->name, "pmin") == 0)
            total = i && !ops_less(x, total) ? total : x;
        else
            total += x;
    }
    return strcmp(r->name, "pmean") == 0 ? total / 8 : number_of(r, in, total);
}
static number value_same(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return ops_get(in, at);
}
static number value_shifted(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return at[0] == 0 ? 0 : ops_get(in, AT(at[0] - 1, at[1]));
}
static number value_plus_row(const row *r, const tensor *in, const int64_t *at)
{
    return number_of(r, in, ops_get(in, at) + (long double)at[0]);
}

#define ROW(name, op, shapes, types, result, call, value, flags)                                                       \
    {                                                                                                                  \
        name, op, shapes, types, result, call_##call, value_##value, 0, 0, 1, flags, NULL                              \
    }
#define ON_MESH ALONE | DIVIDES
static const row rows[] = {
    ROW("fori", "loop", "mn->mn", NUMBERS, "s", fori, fori, REFUSES_NONE),
    ROW("while", "loop", "mn->mn", ALL, "s", while, while, 0),
    ROW("cond", "branch", "mn->mn", NUMBERS, "s", cond, cond, 0),
    ROW("switch", "branch", "mn,i:->mn", NUMBERS, "s", switch, switch, 0),
    ROW("with_sharding_constraint", "place", "mn->mn", ALL, "s", constraint, twice, ALONE),
    ROW("full_sharded", "constant", "mn->mn", NUMBERS, "s", full_sharded, one, ALONE | REFUSES_NONE),
    ROW("arange_sharded", "iota", "m->m", NUMBERS, "s", arange_sharded, index, ALONE | REFUSES_NONE),
    ROW("broadcast_sharded", "broadcast", "n->2n", ALL, "s", broadcast_sharded, row, 0),
    ROW("broadcast_in_dim_sharded", "broadcast", "n->2n", ALL, "s", broadcast_in_dim_sharded, row, 0),
    ROW("psum", "psum", "mn->1n", ALL, "n", psum, over_devices, ON_MESH),
    ROW("pmean", "psum", "mn->1n", ALL, "f", pmean, over_devices, ON_MESH),
    ROW("pmax", "pmax", "mn->1n", ALL, "s", pmax, over_devices, ON_MESH),
    ROW("pmin", "pmin", "mn->1n", ALL, "s", pmin, over_devices, ON_MESH),
    ROW("all_gather", "all_gather", "mn->mn", ALL, "s", all_gather, same, ON_MESH),
    ROW("psum_scatter", "psum_scatter", "mn->1n", ALL, "s", psum_scatter, over_devices, ON_MESH),
    ROW("all_to_all", "all_to_all", "mn->mn", ALL, "s", all_to_all, same, ON_MESH),
    ROW("ppermute", "ppermute", "mn->mn", ALL, "s", ppermute, shifted, ON_MESH),
    ROW("axis_index", "axis_index", "mn->mn", NUMBERS, "s", axis_index, plus_row, ON_MESH | REFUSES_NONE),
    ROW("pvary", "pvary", "mn->mn", NUMBERS, "s", pvary, one, ON_MESH | REFUSES_NONE),
};
const row_list ops_programs = ROW_LIST(rows);
