/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays made as a text describes them (families.h), and the measurement of a function of them. */
#include "families.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    oly_dtype dtype;
    char kind; /* b bool, i integer, f floating, c complex */
} types[] = {{"bool", OLY_BOOL, 'b'},     {"i8", OLY_INT8, 'i'},       {"i16", OLY_INT16, 'i'},
             {"i32", OLY_INT32, 'i'},     {"i64", OLY_INT64, 'i'},     {"u8", OLY_UINT8, 'i'},
             {"u16", OLY_UINT16, 'i'},    {"u32", OLY_UINT32, 'i'},    {"u64", OLY_UINT64, 'i'},
             {"bf16", OLY_BFLOAT16, 'f'}, {"f16", OLY_FLOAT16, 'f'},   {"f32", OLY_FLOAT32, 'f'},
             {"f64", OLY_FLOAT64, 'f'},   {"c64", OLY_COMPLEX64, 'c'}, {"c128", OLY_COMPLEX128, 'c'}};

enum { RANK = 4 };
typedef struct described {
    int type, rank;
    int64_t shape[RANK], below; /* below: 0 where nothing was said */
    char drawn[16];
    bool whole;
} described;

static void wrong(const char *text)
{
    fprintf(stderr, "bench: cannot read the description of inputs at '%s'\n", text);
    exit(2);
}

/* "n", "n*2", "n/2", "64" */
static int64_t read_extent(const char **at, int64_t n)
{
    char *end;
    int64_t value = n;
    if (**at == 'n') {
        ++*at;
        char how = **at;
        if (how == '*' || how == '/') {
            int64_t by = strtoll(*at + 1, &end, 10);
            if (by < 1)
                wrong(*at);
            value = how == '*' ? n * by : n / by > 0 ? n / by : 1;
            *at = end;
        }
        return value;
    }
    value = strtoll(*at, &end, 10);
    if (end == *at)
        wrong(*at);
    *at = end;
    return value;
}

static described read_one(const char **at, int64_t n)
{
    described d = {.type = -1};
    size_t length = strcspn(*at, "[");
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (strlen(types[k].name) == length && strncmp(types[k].name, *at, length) == 0)
            d.type = (int)k;
    if (d.type < 0)
        wrong(*at);
    *at += length + 1;
    while (**at != ']') {
        if (d.rank == RANK)
            wrong(*at);
        d.shape[d.rank++] = read_extent(at, n);
        if (**at == ',')
            ++*at;
    }
    ++*at;
    length = strspn(*at, "abcdefghijklmnopqrstuvwxyz");
    snprintf(d.drawn, sizeof d.drawn, "%.*s", (int)length, *at);
    *at += length;
    if (**at == '<')
        ++*at, d.below = read_extent(at, n);
    if (**at == '!')
        ++*at, d.whole = true;
    return d;
}

static bool is(const described *d, const char *drawn)
{
    return strcmp(d->drawn, drawn) == 0;
}

static oly_array uniform(const described *d, oly_array key, double low, double high)
{
    return oly_random_uniform_shape(key, OLY_FLOAT32, OLY_ARG(low), OLY_ARG(high), NULL, d->rank, d->shape);
}

static oly_array floating(const described *d, oly_array key)
{
    if (is(d, "unit"))
        return uniform(d, key, -0.9, 0.9);
    if (is(d, "positive"))
        return uniform(d, key, 0.5, 1.5);
    if (is(d, "above"))
        return uniform(d, key, 1, 2);
    return oly_random_normal_shape(key, OLY_FLOAT32, NULL, d->rank, d->shape);
}

static oly_array integers(const described *d, oly_array key)
{
    oly_dtype dtype = types[d->type].dtype;
    if (is(d, "any"))
        return oly_bitcast_convert_type(oly_random_bits_shape(key,
                                                              oly_dtype_size(dtype) == 8   ? OLY_UINT64
                                                              : oly_dtype_size(dtype) == 4 ? OLY_UINT32
                                                              : oly_dtype_size(dtype) == 2 ? OLY_UINT16
                                                                                           : OLY_UINT8,
                                                              NULL, d->rank, d->shape),
                                        dtype);
    int64_t low = d->below ? 0 : 1, high = d->below ? d->below : 100;
    return oly_random_randint_shape(key, dtype, OLY_ARG(low), OLY_ARG(high), NULL, d->rank, d->shape);
}

static oly_array bools(const described *d, oly_array key)
{
    if (is(d, "none") || is(d, "every"))
        return oly_full_shape(OLY_ARG(is(d, "every")), OLY_BOOL, d->rank, d->shape);
    return oly_random_bernoulli_shape(key, OLY_ARG(0.5), NULL, d->rank, d->shape);
}

static oly_array make(const described *d, int seed)
{
    oly_array key = oly_random_key(seed), x = NULL;
    oly_dtype dtype = types[d->type].dtype;
    switch (types[d->type].kind) {
    case 'b': x = bools(d, key); break;
    case 'i': x = integers(d, key); break;
    case 'f': x = oly_astype(floating(d, key), dtype); break;
    default: x = oly_astype(oly_complex(floating(d, key), floating(d, oly_random_key(seed + 100))), dtype);
    }
    if (is(d, "sorted"))
        x = oly_sort(x, d->rank - 1);
    bool split = !d->whole && d->rank > 0;
    return oly_device_put(x, oly_named(bench_mesh(), !split ? "" : is(d, "columns") ? "None, x" : "x"));
}

int bench_inputs(const char *text, int64_t n, oly_array *in)
{
    int count = 0;
    for (const char *at = text; *at; count++) {
        if (count == BENCH_INPUTS)
            wrong(at);
        described d = read_one(&at, n);
        in[count] = make(&d, count + 1);
        oly_block_until_ready(in[count]);
        if (*at && *at != ' ')
            wrong(at);
        at += *at == ' ';
    }
    return count;
}

/* -- measuring ----------------------------------------------------------------------------------------------------- */

typedef struct application {
    oly_fn f;
    int n_in, times;
    oly_array in[BENCH_INPUTS];
} application;

static void apply(void *data)
{
    application *a = data;
    for (int k = 0; k < a->times; k++)
        OLY_SCOPE
        {
            oly_block_until_ready(oly_apply_n(a->f, a->n_in, a->in));
        }
}

/* Short work is repeated, so that the clock and the barrier around it do not count. All ranks do what rank 0 measured. */
static int how_often(application *a)
{
    enum { MOST = 1000 };
    a->times = 1;
    apply(a);
    double begin = bench_now();
    apply(a);
    double seconds = bench_now() - begin;
    double often = bench_options.quick ? 1 : 2e-3 / (seconds + 1e-9);
    int times = often < 1 ? 1 : often > MOST ? MOST : (int)often;
    if (oly_process_count() > 1)
        oly_broadcast_host(&times, sizeof times);
    return times;
}

void bench_measure(const bench_row *row, oly_function body, const char *name, double amount)
{
    int64_t n = bench_size(row);
    application a = {0};
    a.n_in = bench_inputs(row->inputs, n, a.in);
    a.f = oly_jit_with(body, name, a.n_in, 1, (oly_jit_options){.user = &n});
    a.times = how_often(&a);
    bool operations = strcmp(row->limit, "sgemm") == 0 || strcmp(row->limit, "fma") == 0;
    bench_report(row->name, bench_best(apply, &a) / a.times, amount, operations ? "GFLOP/s" : "GB/s");
}
