/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Random per-device programs: oly_shard_map against every device computed alone by plain
 * loops. RANDOM_MAPS=n sets how many, RANDOM_MAPS_SEED the first; a failure prints its program. */
#include "check.h"
#include <olympus.h>
#include <math.h>

enum { DEVICES = 8, MOST_STEPS = 12, MOST_SIZE = 4096, MOST_RANK = 4 };

/* -- values of each device ----------------------------------------------------------------------------------------- */
typedef struct value {
    int rank;
    int shape[MOST_RANK];
    float *data[DEVICES]; /* owned */
} value;

typedef enum kind {
    ADD,
    LARGER,
    NEGATE,
    TRANSPOSE,
    SUM,
    PSUM,
    PMAX,
    PMEAN,
    GATHER,
    SCATTER,
    EXCHANGE,
    PERMUTE,
    INDEX,
    FLATTEN,
    SPLIT,
    PART,
    JOIN,
    N_KINDS
} kind;
static const char *const names[] = {"add",        "max",     "neg",        "transpose",    "reduce_sum", "psum",
                                    "pmax",       "pmean",   "all_gather", "psum_scatter", "all_to_all", "ppermute",
                                    "axis_index", "flatten", "split",      "slice",        "concatenate"};

typedef struct step {
    kind kind;
    int a, b;            /* values */
    int axes[3], n_axes; /* of the mesh */
    int d, e;            /* dimensions */
    bool tiled, invariant;
    int order[MOST_RANK];
    int source[DEVICES]; /* -1: none */
} step;

/* May it be in a program whose derivative is checked: is its result an affine function of its operands? */
static bool is_linear(kind k)
{
    return k != LARGER && k != PMAX;
}

/* A program: its inputs are values 0 to 2, each step computes one more. */
typedef struct program {
    unsigned seed, random;
    int n_axes, size[3], n_devices;
    const char *mesh;
    bool explicit_axes; /* the same with Explicit axes */
    char in_spec[3][32];
    int in_axes[3][3], n_in_axes[3]; /* that split dimension 0 */
    int n_steps, n_values;
    step steps[MOST_STEPS];
    value values[3 + MOST_STEPS];
} program;

static int elements(const value *v)
{
    int n = 1;
    for (int d = 0; d < v->rank; d++)
        n *= v->shape[d];
    return n;
}

static int draw(program *p, int n)
{
    p->random = p->random * 1664525u + 1013904223u;
    return (int)((p->random >> 8) % (unsigned)n);
}

static value *new_value(program *p, int rank, const int *shape)
{
    value *v = &p->values[p->n_values++];
    v->rank = rank;
    for (int d = 0; d < rank; d++)
        v->shape[d] = shape[d];
    for (int k = 0; k < p->n_devices; k++)
        v->data[k] = calloc((size_t)elements(v) + 1, sizeof *v->data[k]);
    return v;
}

/* -- the mesh -------------------------------------------------------------------------------------------------------- */
static void coordinates(const program *p, int device, int *c)
{
    for (int a = p->n_axes - 1; a >= 0; a--) {
        c[a] = device % p->size[a];
        device /= p->size[a];
    }
}

static int along(const program *p, int n_axes, const int *axes)
{
    int n = 1;
    for (int k = 0; k < n_axes; k++)
        n *= p->size[axes[k]];
    return n;
}

/* Number of a device along the axes, row-major in their order; the device with another number there. */
static int number(const program *p, const step *s, int device)
{
    int c[3], n = 0;
    coordinates(p, device, c);
    for (int k = 0; k < s->n_axes; k++)
        n = n * p->size[s->axes[k]] + c[s->axes[k]];
    return n;
}

static int other(const program *p, const step *s, int device, int n)
{
    int c[3], at = 0;
    coordinates(p, device, c);
    for (int k = s->n_axes - 1; k >= 0; k--) {
        c[s->axes[k]] = n % p->size[s->axes[k]];
        n /= p->size[s->axes[k]];
    }
    for (int a = 0; a < p->n_axes; a++)
        at = at * p->size[a] + c[a];
    return at;
}

/* -- steps by plain loops -------------------------------------------------------------------------------------------- */

/* The index of an element, and back. */
static void unravel(const value *v, int at, int *i)
{
    for (int d = v->rank - 1; d >= 0; d--) {
        i[d] = at % v->shape[d];
        at /= v->shape[d];
    }
}
static int ravel(const value *v, const int *i)
{
    int at = 0;
    for (int d = 0; d < v->rank; d++)
        at = at * v->shape[d] + i[d];
    return at;
}

/* Element `at` of device `me`'s result; i is its index. */
static float element(const program *p, const step *s, const value *y, int me, int at)
{
    const value *a = &p->values[s->a], *b = &p->values[s->b];
    int i[MOST_RANK + 1], j[MOST_RANK + 1], n = along(p, s->n_axes, s->axes);
    float total = 0;
    unravel(y, at, i);
    memcpy(j, i, sizeof j);
    switch (s->kind) {
    case ADD: return a->data[me][at] + b->data[me][at];
    case LARGER: return fmaxf(a->data[me][at], b->data[me][at]);
    case NEGATE: return -a->data[me][at];
    case INDEX: return a->data[me][at] + (float)number(p, s, me);
    case FLATTEN:
    case SPLIT: return a->data[me][at];
    case TRANSPOSE:
        for (int d = 0; d < y->rank; d++)
            j[s->order[d]] = i[d];
        return a->data[me][ravel(a, j)];
    case SUM:
        for (j[s->d] = 0; j[s->d] < a->shape[s->d]; j[s->d]++)
            total += a->data[me][ravel(a, j)];
        return total;
    case PSUM:
    case PMEAN:
        for (int k = 0; k < n; k++)
            total += a->data[other(p, s, me, k)][at];
        return s->kind == PSUM ? total : total / (float)n;
    case PMAX:
        total = a->data[me][at];
        for (int k = 0; k < n; k++)
            total = fmaxf(total, a->data[other(p, s, me, k)][at]);
        return total;
    case GATHER: {
        int from = s->tiled ? i[s->d] / a->shape[s->d] : i[s->d];
        if (s->tiled)
            j[s->d] = i[s->d] % a->shape[s->d];
        else
            memmove(&j[s->d], &i[s->d + 1], sizeof *j * (size_t)(y->rank - s->d - 1));
        return a->data[other(p, s, me, from)][ravel(a, j)];
    }
    case SCATTER:
        if (s->tiled)
            j[s->d] = i[s->d] + number(p, s, me) * y->shape[s->d];
        else {
            memmove(&j[s->d + 1], &i[s->d], sizeof *j * (size_t)(y->rank - s->d));
            j[s->d] = number(p, s, me);
        }
        for (int k = 0; k < n; k++)
            total += a->data[other(p, s, me, k)][ravel(a, j)];
        return total;
    case EXCHANGE: { /* this device's part of dimension d of every device, along dimension e */
        int from;
        if (s->tiled) {
            int extent = y->shape[s->e] / n; /* one device's share, along e */
            from = i[s->e] / extent;
            j[s->e] = i[s->e] % extent;
            j[s->d] += number(p, s, me) * (a->shape[s->d] / n);
        } else {
            int m = 0, rest[MOST_RANK];
            from = i[s->e];
            for (int d = 0; d < y->rank; d++)
                if (d != s->e)
                    rest[m++] = i[d];
            m = 0;
            for (int d = 0; d < a->rank; d++)
                j[d] = d == s->d ? number(p, s, me) : rest[m++];
        }
        return a->data[other(p, s, me, from)][ravel(a, j)];
    }
    case PERMUTE: {
        int from = s->source[number(p, s, me)];
        return from < 0 ? 0 : a->data[other(p, s, me, from)][at];
    }
    case PART: j[s->d] = i[s->d] + s->e; return a->data[me][ravel(a, j)];
    case JOIN:
        j[s->d] = i[s->d] < a->shape[s->d] ? i[s->d] : i[s->d] - a->shape[s->d];
        return i[s->d] < a->shape[s->d] ? a->data[me][ravel(a, j)] : b->data[me][ravel(b, j)];
    case N_KINDS: break;
    }
    return 0;
}

static bool same_shape(const value *a, const value *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, sizeof(int) * (size_t)a->rank) == 0;
}

/* The shape of the step's result. False: the step is invalid. */
static bool shape_of(const program *p, step *s, int *rank, int *shape)
{
    const value *a = &p->values[s->a], *b = &p->values[s->b];
    int n = along(p, s->n_axes, s->axes), size = elements(a);
    *rank = a->rank;
    memcpy(shape, a->shape, sizeof a->shape);
    if (a->rank > 0) {
        s->d %= a->rank;
        s->e %= a->rank;
    }
    switch (s->kind) {
    case ADD:
    case LARGER: return same_shape(a, b);
    case TRANSPOSE:
        for (int d = 0; d < a->rank; d++)
            shape[d] = a->shape[s->order[d]];
        return a->rank > 1;
    case SUM:
        if (a->rank == 0)
            return false;
        shape[s->d] = 1;
        return true;
    case GATHER:
        if (size * n > MOST_SIZE || a->rank == 0)
            return false;
        if (s->tiled) {
            shape[s->d] *= n;
        } else {
            memmove(&shape[s->d + 1], &a->shape[s->d],
                    sizeof *shape * (size_t)(a->rank < MOST_RANK ? a->rank - s->d : 0));
            shape[s->d] = n;
            ++*rank;
        }
        return *rank <= MOST_RANK;
    case SCATTER:
        if (a->rank == 0 || (s->tiled ? a->shape[s->d] % n != 0 : a->shape[s->d] != n))
            return false;
        if (s->tiled) {
            shape[s->d] /= n;
        } else {
            memmove(&shape[s->d], &a->shape[s->d + 1], sizeof *shape * (size_t)(a->rank - s->d - 1));
            --*rank;
        }
        return true;
    case EXCHANGE:
        if (a->rank == 0 || (s->tiled ? a->shape[s->d] % n != 0 : a->shape[s->d] != n))
            return false;
        if (s->tiled) {
            shape[s->d] /= n;
            shape[s->e] *= n;
            return s->d != s->e;
        }
        memmove(&shape[s->d], &a->shape[s->d + 1], sizeof *shape * (size_t)(a->rank - s->d - 1));
        memmove(&shape[s->e + 1], &shape[s->e], sizeof *shape * (size_t)(a->rank - s->e - 1));
        shape[s->e] = n;
        return true;
    case FLATTEN:
        shape[0] = size;
        *rank = 1;
        return true;
    case SPLIT:
        if (a->rank == 0 || a->rank == MOST_RANK || a->shape[s->d] % 2 != 0)
            return false;
        memmove(&shape[s->d + 2], &a->shape[s->d + 1], sizeof *shape * (size_t)(a->rank - s->d - 1));
        shape[s->d] = 2;
        shape[s->d + 1] = a->shape[s->d] / 2;
        ++*rank;
        return true;
    case PART:
        if (a->rank == 0 || a->shape[s->d] < 2)
            return false;
        s->e = 1;
        shape[s->d]--;
        return true;
    case JOIN: {
        value rest = *b;
        if (a->rank == 0 || b->rank != a->rank || elements(a) + elements(b) > MOST_SIZE)
            return false;
        shape[s->d] += b->shape[s->d];
        rest.shape[s->d] = a->shape[s->d];
        return same_shape(a, &rest);
    }
    default: return true;
    }
}

/* -- drawing a program ----------------------------------------------------------------------------------------------- */
static void draw_axes(program *p, int *axes, int *n)
{
    int order[3] = {0, 1, 2};
    for (int k = p->n_axes - 1; k > 0; k--) {
        int j = draw(p, k + 1), t = order[k];
        order[k] = order[j];
        order[j] = t;
    }
    *n = 1 + draw(p, p->n_axes);
    memcpy(axes, order, sizeof order);
}

static void draw_step(program *p)
{
    step s = {.kind = (kind)draw(p, N_KINDS), .a = draw(p, p->n_values), .b = draw(p, p->n_values)};
    int rank, shape[MOST_RANK + 1];
    if (draw(p, 2))
        s.a = p->n_values - 1;
    draw_axes(p, s.axes, &s.n_axes);
    s.d = draw(p, 12);
    s.e = draw(p, 12);
    s.tiled = draw(p, 2);
    s.invariant = draw(p, 2);
    for (int d = 0; d < p->values[s.a].rank; d++)
        s.order[d] = d;
    for (int d = p->values[s.a].rank - 1; d > 0; d--) {
        int j = draw(p, d + 1), t = s.order[d];
        s.order[d] = s.order[j];
        s.order[j] = t;
    }
    int n = along(p, s.n_axes, s.axes), shift = draw(p, n);
    for (int k = 0; k < n; k++)
        s.source[k] = draw(p, 5) == 0 ? -1 : s.invariant ? (k + shift) % n : (n - 1 - k + shift) % n;
    if (!shape_of(p, &s, &rank, shape))
        return;
    p->steps[p->n_steps++] = s;
    value *y = new_value(p, rank, shape);
    for (int me = 0; me < p->n_devices; me++)
        for (int at = 0; at < elements(y); at++)
            y->data[me][at] = element(p, &s, y, me, at);
}

static void draw_inputs(program *p)
{
    for (int k = 0; k < 3; k++) {
        int shape[2] = {1 << draw(p, 4), 1 + draw(p, 4)};
        value *v = new_value(p, 2, shape);
        step s = {0};
        draw_axes(p, s.axes, &s.n_axes);
        s.n_axes -= draw(p, 3) == 0 ? s.n_axes : 0; /* some are equal everywhere */
        memcpy(p->in_axes[k], s.axes, sizeof s.axes);
        p->n_in_axes[k] = s.n_axes;
        strcpy(p->in_spec[k], s.n_axes ? "(" : "");
        for (int j = 0; j < s.n_axes; j++)
            snprintf(p->in_spec[k] + strlen(p->in_spec[k]), 8, "%s%c", j ? ", " : "", "xyz"[s.axes[j]]);
        strcat(p->in_spec[k], s.n_axes ? ")" : "");
        for (int me = 0; me < p->n_devices; me++)
            for (int at = 0; at < elements(v); at++)
                v->data[me][at] = (float)((number(p, &s, me) * 31 + at * 7 + k) % 11 - 5);
    }
}

static void draw_program(program *p, unsigned seed)
{
    static const struct {
        const char *text;
        int n, size[3];
    } meshes[] = {
        {"x=8", 1, {8}},         {"x=2, y=4", 2, {2, 4}}, {"x=4, y=2", 2, {4, 2}}, {"x=2, y=2, z=2", 3, {2, 2, 2}},
        {"x=3, y=2", 2, {3, 2}}, {"x=4", 1, {4}},         {"x=1, y=8", 2, {1, 8}}};
    *p = (program){.seed = seed, .random = seed * 2654435761u + 17};
    p->explicit_axes = draw(p, 3) == 0;
    int m = draw(p, (int)(sizeof meshes / sizeof meshes[0]));
    p->mesh = meshes[m].text;
    p->n_axes = meshes[m].n;
    memcpy(p->size, meshes[m].size, sizeof p->size);
    p->n_devices = 1;
    for (int a = 0; a < p->n_axes; a++)
        p->n_devices *= p->size[a];
    draw_inputs(p);
    for (int tries = 0; tries < 60 && p->n_steps < MOST_STEPS; tries++)
        draw_step(p);
}

/* -- the same on Olympus ------------------------------------------------------------------------------------------- */
static oly_array shaped(oly_array x, int rank, const int *shape)
{
    int64_t wide[MOST_RANK + 3];
    for (int d = 0; d < rank; d++)
        wide[d] = shape[d];
    return oly_reshape_shape(x, rank, wide);
}

static oly_array take_step(const program *p, const step *s, const oly_array *v, const value *y)
{
    char axes[16] = "";
    int pairs[DEVICES][2], n = along(p, s->n_axes, s->axes), n_pairs = 0;
    for (int k = 0; k < s->n_axes; k++)
        snprintf(axes + strlen(axes), 6, "%s%c", k ? ", " : "", "xyz"[s->axes[k]]);
    oly_array a = v[s->a], b = v[s->b];
    switch (s->kind) {
    case ADD: return oly_add(a, b);
    case LARGER: return oly_max2(a, b);
    case NEGATE: return oly_neg(a);
    case TRANSPOSE: return oly_transpose_axes(a, y->rank, s->order);
    case SUM: return oly_sum(a, OLY_AXES(s->d), .keepdims = true);
    case PSUM: return oly_psum(a, axes);
    case PMAX: return oly_pmax(a, axes);
    case PMEAN: return oly_pmean(a, axes);
    case GATHER: return oly_all_gather(a, axes, .axis = s->d, .tiled = s->tiled, .invariant = s->invariant);
    case SCATTER: return oly_psum_scatter(a, axes, .axis = s->d, .tiled = s->tiled);
    case EXCHANGE: return oly_all_to_all(a, axes, s->d, s->e, s->tiled);
    case PERMUTE:
        for (int k = 0; k < n; k++)
            if (s->source[k] >= 0) {
                pairs[n_pairs][0] = s->source[k];
                pairs[n_pairs++][1] = k;
            }
        return oly_ppermute(a, axes, n_pairs, (const int(*)[2])pairs);
    case INDEX: return oly_add(a, oly_astype(oly_axis_index(axes), OLY_FLOAT32));
    case FLATTEN:
    case SPLIT: return shaped(a, y->rank, y->shape);
    case PART: {
        int64_t start[MOST_RANK] = {0}, limit[MOST_RANK];
        for (int d = 0; d < y->rank; d++)
            limit[d] = p->values[s->a].shape[d];
        start[s->d] = s->e;
        return oly_slice_ranges(a, start, limit, NULL);
    }
    case JOIN: return oly_concatenate(s->d, a, b);
    case N_KINDS: break;
    }
    return NULL;
}

static oly_mesh mesh_of(const program *p)
{
    static const oly_axis_type types[3] = {OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT};
    oly_mesh mesh = oly_make_mesh(p->mesh);
    return p->explicit_axes ? oly_mesh_with_types(mesh, types) : mesh;
}

static const char *axes_of(const program *p)
{
    return p->n_axes == 1 ? "x" : p->n_axes == 2 ? "x, y" : "x, y, z";
}

/* Every value of the program, each device's at its position along a leading dimension per mesh axis. */
static void body(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array v[3 + MOST_STEPS] = {in[0], in[1], in[2]};
    for (int k = 0; k < p->n_steps; k++)
        v[3 + k] = take_step(p, &p->steps[k], v, &p->values[3 + k]);
    for (int k = 0; k < p->n_steps; k++) {
        const value *y = &p->values[3 + k];
        int shape[MOST_RANK + 3] = {1, 1, 1};
        memcpy(shape + p->n_axes, y->shape, sizeof(int) * (size_t)y->rank);
        out[k] = v[3 + k] ? shaped(v[3 + k], p->n_axes + y->rank, shape) : NULL;
    }
}

static void map(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    const char *in_specs[3], *out_specs[MOST_STEPS];
    oly_array *results[MOST_STEPS];
    for (int k = 0; k < 3; k++)
        in_specs[k] = p->in_spec[k];
    for (int k = 0; k < p->n_steps; k++) {
        out_specs[k] = axes_of(p);
        results[k] = &out[k];
    }
    oly_shard_map(body, user, mesh_of(p), 3, in, in_specs, p->n_steps, results, out_specs);
}

/* The whole input: the parts of the devices along its axes, one after another. */
static oly_array whole(const program *p, int k)
{
    static float all[MOST_SIZE];
    const value *v = &p->values[k];
    step s = {.n_axes = p->n_in_axes[k]};
    memcpy(s.axes, p->in_axes[k], sizeof s.axes);
    int n = along(p, s.n_axes, s.axes), size = elements(v);
    for (int j = 0; j < n; j++)
        memcpy(all + j * size, v->data[other(p, &s, 0, j)], sizeof *all * (size_t)size);
    oly_array x = oly_from_host(all, OLY_FLOAT32, 2, (int64_t[]){(int64_t)n * v->shape[0], v->shape[1]});
    return p->explicit_axes ? oly_device_put(x, oly_named(mesh_of(p), p->in_spec[k])) : x;
}

static void describe(const program *p)
{
    fprintf(stderr, "RANDOM_MAPS_SEED=%u on %s%s\n", p->seed, p->mesh, p->explicit_axes ? ", Explicit" : "");
    for (int k = 0; k < 3; k++)
        fprintf(stderr, "  v%d = input [%d,%d] \"%s\"\n", k, p->values[k].shape[0], p->values[k].shape[1],
                p->in_spec[k]);
    for (int k = 0; k < p->n_steps; k++) {
        const step *s = &p->steps[k];
        fprintf(stderr, "  v%d = %s v%d v%d d=%d e=%d%s%s axes", 3 + k, names[s->kind], s->a, s->b, s->d, s->e,
                s->tiled ? " tiled" : "", s->invariant ? " invariant" : "");
        for (int j = 0; j < s->n_axes; j++)
            fprintf(stderr, " %c", "xyz"[s->axes[j]]);
        fprintf(stderr, " -> [");
        for (int d = 0; d < p->values[3 + k].rank; d++)
            fprintf(stderr, "%s%d", d ? "," : "", p->values[3 + k].shape[d]);
        fprintf(stderr, "]\n");
    }
}

/* False: prints the difference. */
static bool compare(const program *p, int k, oly_array got, const char *how)
{
    static float all[DEVICES * MOST_SIZE];
    const value *y = &p->values[3 + k];
    int size = elements(y), bad = -1;
    if (!got) {
        fprintf(stderr, "%s: v%d: %s\n", how, 3 + k, oly_last_error());
        return false;
    }
    /* a mesh of fewer devices may leave out a process: then it has a copy of the others' */
    if (oly_process_allgather(got, all, sizeof *all * (size_t)(size * p->n_devices)) != OLY_OK)
        return false;
    for (int me = 0; me < p->n_devices; me++)
        for (int at = 0; at < size; at++)
            if (fabsf(all[me * size + at] - y->data[me][at]) > 1e-4F * (1 + fabsf(y->data[me][at])))
                bad = bad < 0 ? me * size + at : bad;
    if (bad < 0)
        return true;
    fprintf(stderr, "%s: v%d on device %d element %d is %g, expected %g\n", how, 3 + k, bad / size, bad % size,
            (double)all[bad], (double)y->data[bad / size][bad % size]);
    return false;
}

/* -- derivatives ----------------------------------------------------------------------------------------------------- */
static float weight(int at)
{
    return (float)(at * 5 % 7 - 3);
}

/* For the last value of all devices: each device's at its position along a leading dimension per mesh axis. */
static oly_array weights_of(const program *p)
{
    static float weights[DEVICES * MOST_SIZE];
    const value *y = &p->values[2 + p->n_steps];
    int64_t shape[MOST_RANK + 3];
    for (int at = 0; at < p->n_devices * elements(y); at++)
        weights[at] = weight(at);
    for (int a = 0; a < p->n_axes; a++)
        shape[a] = p->size[a];
    for (int d = 0; d < y->rank; d++)
        shape[p->n_axes + d] = y->shape[d];
    oly_array w = oly_from_host(weights, OLY_FLOAT32, p->n_axes + y->rank, shape);
    return p->explicit_axes ? oly_device_put(w, oly_named(mesh_of(p), axes_of(p))) : w;
}

/* The weighted sum of the last value of all devices. */
static void weighted(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array all[MOST_STEPS];
    map(in, all, user);
    oly_array last = all[p->n_steps - 1];
    out[0] = last ? oly_sum(oly_mul(last, in[3])) : NULL;
}

static double weighted_by_loops(const program *p)
{
    const value *y = &p->values[2 + p->n_steps];
    double total = 0;
    for (int me = 0; me < p->n_devices; me++)
        for (int at = 0; at < elements(y); at++)
            total += (double)weight(me * elements(y) + at) * (double)y->data[me][at];
    return total;
}

/* The program again, with inputs of zero. */
static void again_on_zeros(program *p)
{
    for (int k = 0; k < 3; k++)
        for (int me = 0; me < p->n_devices; me++)
            memset(p->values[k].data[me], 0, sizeof(float) * (size_t)elements(&p->values[k]));
    for (int k = 0; k < p->n_steps; k++)
        for (int me = 0; me < p->n_devices; me++)
            for (int at = 0; at < elements(&p->values[3 + k]); at++)
                p->values[3 + k].data[me][at] = element(p, &p->steps[k], &p->values[3 + k], me, at);
}

/* The gradients inside the map: of the sum over all devices, by the shards. The fourth input has each device's
 * weights. */
static void body_of_gradients(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array all[MOST_STEPS], loss;
    body(in, all, user);
    oly_array last = all[p->n_steps - 1];
    loss = last ? oly_psum(oly_sum(oly_mul(last, in[3])), axes_of(p)) : NULL;
    oly_gradients(loss, 3, in, 3, (oly_array *[]){&out[0], &out[1], &out[2]});
}

static void gradients_inside(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    const char *specs[4] = {p->in_spec[0], p->in_spec[1], p->in_spec[2], axes_of(p)};
    oly_shard_map(body_of_gradients, user, mesh_of(p), 4, in, specs, 3, (oly_array *[]){&out[0], &out[1], &out[2]},
                  specs);
}

/* What an affine function gains from zero to x is the product of x and its gradient. */
static bool check_product(const oly_array *in, const oly_array *gradient, double gain, const char *where)
{
    double product = 0, scale = 1;
    float part;
    for (int k = 0; k < 3; k++) {
        if (!gradient[k]) {
            fprintf(stderr, "gradient %s: %s\n", where, oly_last_error());
            return false;
        }
        oly_array products = oly_mul(gradient[k], in[k]);
        if (oly_process_allgather(oly_sum(products), &part, sizeof part) != OLY_OK)
            return false;
        product += (double)part;
        if (oly_process_allgather(oly_sum(oly_abs(products)), &part, sizeof part) != OLY_OK)
            return false;
        scale += (double)part;
    }
    if (getenv("RANDOM_MAPS_SHOW"))
        fprintf(stderr, "gradient %s times inputs %g, gain %g\n", where, product, gain);
    if (fabs(product - gain) <= 1e-4 * scale)
        return true;
    fprintf(stderr, "gradient %s times inputs is %g, expected %g\n", where, product, gain);
    return false;
}

static bool check_gradient(program *p, const oly_array *in)
{
    double gain = weighted_by_loops(p);
    oly_array gradient[3] = {NULL}, *wanted[3] = {&gradient[0], &gradient[1], &gradient[2]};
    for (int k = 0; k < p->n_steps; k++)
        if (!is_linear(p->steps[k].kind))
            return true;
    again_on_zeros(p);
    gain -= weighted_by_loops(p);
    oly_array with_weights[4] = {in[0], in[1], in[2], weights_of(p)};
    oly_call(oly_grad(oly_jit(weighted, 4, 1, .user = p), .argnums = "0, 1, 2"), 4, with_weights, 3, wanted);
    if (!check_product(in, gradient, gain, "around"))
        return false;
    gradient[0] = gradient[1] = gradient[2] = NULL;
    oly_call(oly_jit(gradients_inside, 4, 3, .user = p), 4, with_weights, 3, wanted);
    return check_product(in, gradient, gain, "inside");
}

static void check(unsigned seed)
{
    static program p;
    draw_program(&p, seed);
    oly_array in[3], out[MOST_STEPS] = {NULL}, *results[MOST_STEPS];
    bool good = true;
    OLY_SCOPE
    {
        for (int k = 0; k < 3; k++)
            in[k] = whole(&p, k);
        map(in, out, &p);
        for (int k = 0; k < p.n_steps && good; k++)
            good = compare(&p, k, out[k], "by itself");
        for (int k = 0; k < p.n_steps; k++) {
            out[k] = NULL;
            results[k] = &out[k];
        }
        if (good && p.n_steps)
            oly_call(oly_jit(map, 3, p.n_steps, .user = &p), 3, in, p.n_steps, results);
        for (int k = 0; k < p.n_steps && good; k++)
            good = compare(&p, k, out[k], "compiled");
        if (good && p.n_steps)
            good = check_gradient(&p, in);
    }
    if (!good || getenv("RANDOM_MAPS_SHOW"))
        describe(&p);
    for (int k = 0; k < p.n_values; k++)
        for (int me = 0; me < p.n_devices; me++)
            free(p.values[k].data[me]);
    assert_true(good);
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void maps_give_what_each_device_would(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    int n = setting("RANDOM_MAPS", 60), first = setting("RANDOM_MAPS_SEED", 1);
    for (int k = 0; k < n; k++)
        check((unsigned)(first + k));
    assert_string_equal(oly_last_error(), "");
    assert_int_equal(oly_finalize(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_give_what_each_device_would)};
    return CHECK_MAIN(tests);
}
