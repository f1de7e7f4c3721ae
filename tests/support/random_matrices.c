/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs of matrices. See random_matrices.h. */
#include "random_matrices.h"
#include "check.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef enum kind {
    INPUT,
    PRODUCT,
    ADD,
    MULTIPLY,
    SINE,
    TURN,
    SUM,
    SCALE_ROWS,
    REPEAT,
    PART,
    FLATTEN,
    RUNNING,
    KINDS
} kind;

typedef matrices_call call;
typedef matrices program;

int matrices_below(matrices *p, int n)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((p->random >> 33) % (uint64_t)n);
}

static const char *const meshes[] = {"x=2, y=4", "x=8", "x=2, y=2, z=2", "x=4, y=2"};
static const char *const specs[4][10] = {
    {"None", "x", "y", "None, x", "None, y", "x, y", "y, x", "(x,y)", "None, (x,y)", "(y,x)"},
    {"None", "x", "x", "None, x", "None, x", "x", "None, x", "None", "x", "x"},
    {"None", "x", "y", "z, x", "None, z", "x, y", "y, z", "(x,y)", "(x,z), y", "x, (y,z)"},
    {"None", "x", "y", "None, x", "None, y", "x, y", "y, x", "(x,y)", "None, (x,y)", "x"}};
static const int64_t sizes[] = {4, 8, 16, 64, 12, 8, 16, 30};

static const char *random_spec(program *p, int mesh, int rank)
{
    const char *spec = specs[mesh][matrices_below(p, 10)];
    while (rank < 2 && strchr(strchr(spec, ')') ? strchr(spec, ')') : spec, ',') && !strchr(spec, '('))
        spec = specs[mesh][matrices_below(p, 10)];
    if (rank < 2 && (strstr(spec, "),") || strstr(spec, ", (")))
        spec = "None";
    return spec;
}

/* A value of this rank and, if dimension >= 0, of that extent there; -1: none. */
static int find(program *p, int rank, int dimension, int64_t extent)
{
    for (int tries = 0; tries < 20; tries++) {
        int k = matrices_below(p, p->n);
        const call *c = &p->call[k];
        if (c->rank == rank && (dimension < 0 || c->shape[dimension] == extent))
            return k;
    }
    return -1;
}

static bool draw(program *p, call *c)
{
    c->in[0] = matrices_below(p, p->n);
    const call *x = &p->call[c->in[0]];
    c->rank = x->rank;
    memcpy(c->shape, x->shape, sizeof c->shape);
    c->kind = (1 + matrices_below(p, KINDS - 1));
    if (matrices_below(p, 3) == 0)
        c->kind = PRODUCT;
    switch (c->kind) {
    case PRODUCT:
        c->in[1] = x->rank == 2 ? find(p, 2, 0, x->shape[1]) : -1;
        if (c->in[1] >= 0)
            c->shape[1] = p->call[c->in[1]].shape[1];
        return c->in[1] >= 0;
    case ADD:
    case MULTIPLY:
        c->in[1] = find(p, x->rank, 0, x->shape[0]);
        return c->in[1] >= 0 && (x->rank == 1 || p->call[c->in[1]].shape[1] == x->shape[1]);
    case TURN:
        c->shape[0] = x->shape[1];
        c->shape[1] = x->shape[0];
        return x->rank == 2;
    case SUM:
        c->axis = matrices_below(p, 2);
        c->rank = 1;
        c->shape[0] = x->shape[1 - c->axis];
        return x->rank == 2;
    case SCALE_ROWS: c->in[1] = find(p, 1, 0, x->shape[1]); return x->rank == 2 && c->in[1] >= 0;
    case REPEAT:
        c->rank = 2;
        c->shape[1] = x->shape[0];
        c->shape[0] = sizes[matrices_below(p, 4)];
        return x->rank == 1;
    case PART: c->shape[0]--; return x->shape[0] > 2;
    case FLATTEN:
        c->rank = 1;
        c->shape[0] *= c->shape[1];
        return x->rank == 2 && c->shape[0] <= 64;
    default: return true;
    }
}

void matrices_make(matrices *p, uint64_t seed)
{
    *p = (program){.random = seed * 77 + 5};
    int mesh = matrices_below(p, 4), n_in = 2 + matrices_below(p, MOST_MATRICES_IN - 1);
    p->mesh = oly_make_mesh(meshes[mesh]);
    for (; p->n < n_in; p->n++)
        p->call[p->n] =
            (call){.kind = INPUT,
                   .rank = matrices_below(p, 5) ? 2 : 1,
                   .shape = {sizes[matrices_below(p, 8)],
                             p->n && matrices_below(p, 2) ? p->call[p->n - 1].shape[0] : sizes[matrices_below(p, 8)]}};
    for (int k = 0; k < n_in; k++)
        p->call[k].spec = random_spec(p, mesh, p->call[k].rank);
    p->n_in = n_in;
    int wanted = n_in + 2 + matrices_below(p, MOST_MATRICES - MOST_MATRICES_IN - 2);
    for (int tries = 0; p->n < wanted && tries < 200; tries++) {
        call c = {0};
        if (!draw(p, &c))
            continue;
        if (matrices_below(p, 6) == 0)
            c.spec = random_spec(p, mesh, c.rank);
        p->call[p->n++] = c;
    }
    p->n_out = 1 + matrices_below(p, 3);
    for (int k = 0; k < p->n_out; k++)
        p->out[k] = k == 0 ? p->n - 1 : matrices_below(p, p->n);
}

static oly_array apply(const program *p, const call *c, const oly_array *v)
{
    oly_array x = v[c->in[0]], y = v[c->in[1]];
    switch (c->kind) {
    case PRODUCT: return oly_mul(oly_matmul(x, y), 1.0 / 16);
    case ADD: return oly_add(x, y);
    case MULTIPLY: return oly_mul(x, y);
    case SINE: return oly_sin(x);
    case TURN: return oly_transpose(x);
    case SUM: return oly_sum(x, OLY_AXES(c->axis));
    case SCALE_ROWS: return oly_mul(x, y);
    case REPEAT: return oly_broadcast_to(x, c->shape[0], c->shape[1]);
    case PART: return oly_slice(x, "1:");
    case FLATTEN: return oly_reshape(x, c->shape[0]);
    case RUNNING: return oly_cumsum(x, 0);
    default: (void)p; return x;
    }
}

void matrices_apply(const matrices *p, oly_array *v)
{
    for (int k = p->n_in; k < p->n; k++) {
        v[k] = apply(p, &p->call[k], v);
        if (p->call[k].spec && !p->alone)
            v[k] = oly_with_sharding_constraint(v[k], oly_named(p->mesh, p->call[k].spec));
    }
}

void matrices_print(const matrices *p)
{
    static const char *const names[] = {"input", "product", "add",    "multiply", "sin",     "transpose",
                                        "sum",   "scale",   "repeat", "part",     "flatten", "cumsum"};
    char mesh[100];
    oly_mesh_str(p->mesh, mesh, sizeof mesh);
    fprintf(stderr, "on %s\n", mesh);
    for (int k = 0; k < p->n; k++) {
        const call *c = &p->call[k];
        fprintf(stderr, "  v%d = %s", k, names[c->kind]);
        if (k >= p->n_in)
            fprintf(stderr, " v%d v%d", c->in[0], c->in[1]);
        if (c->kind == SUM)
            fprintf(stderr, " over %d", c->axis);
        fprintf(stderr, " : [%" PRId64, c->shape[0]);
        if (c->rank == 2)
            fprintf(stderr, ",%" PRId64, c->shape[1]);
        fprintf(stderr, "] %s\n", c->spec ? c->spec : "");
    }
    for (int k = 0; k < p->n_out; k++)
        fprintf(stderr, "  result v%d\n", p->out[k]);
}

void matrices_inputs(const matrices *p, oly_array *alone, oly_array *in)
{
    for (int k = 0; k < p->n_in; k++) {
        const call *c = &p->call[k];
        oly_array flat =
            oly_sin(oly_add(oly_arange(c->shape[0] * (c->rank == 2 ? c->shape[1] : 1), OLY_FLOAT64), 0.5 * k));
        alone[k] = c->rank == 2 ? oly_reshape(flat, c->shape[0], c->shape[1]) : flat;
        in[k] = oly_device_put(alone[k], oly_named(p->mesh, c->spec));
    }
}

static double largest(const double *x, int64_t n)
{
    double most = 1e-300;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

void matrices_compare(const matrices *p, oly_array x, oly_array expected, uint64_t seed)
{
    size_t bytes = sizeof(double) * (size_t)oly_size(expected);
    double *a = malloc(bytes), *b = malloc(bytes);
    assert_int_equal(oly_process_allgather(x, a, bytes), OLY_OK);
    assert_int_equal(oly_get(expected, b, bytes), OLY_OK);
    double scale = largest(b, oly_size(expected));
    for (int64_t i = 0; i < oly_size(expected); i++)
        if (!(fabs(a[i] - b[i]) <= 1e-11 * scale)) {
            matrices_print(p);
            fail_msg("seed %" PRIu64 ": element %" PRId64 " is %g instead of %g", seed, i, a[i], b[i]);
        }
    free(a);
    free(b);
}
