/* run: layouts  What the choice by price promises: plans that never move more than those of propagation alone, with the
 * same shardings of results and the values of one device; layouts of matrix products that follow from what moving costs; the
 * same choice every time. */
#include "check.h"
#include "core/option.h"
#include <inttypes.h>
#include <math.h>
#include <olympus.h>
#include <stdlib.h>

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    oly_option.choose = 1;
    return oly_device_count() == 8 ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    return oly_finalize();
}

/* -- random programs ----------------------------------------------------------------------------------------------- */

enum { MOST = 14, MOST_IN = 4 };

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

typedef struct call {
    kind kind;
    int in[2], axis;
    int rank;
    int64_t shape[2];
    const char *spec; /* inputs; others: a constraint, or NULL */
} call;

typedef struct program {
    uint64_t random;
    oly_mesh mesh;
    int n, n_in, n_out;
    call call[MOST];
    int out[3];
    bool alone; /* places nothing */
} program;

static int below(program *p, int n)
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
    const char *spec = specs[mesh][below(p, 10)];
    while (rank < 2 && strchr(strchr(spec, ')') ? strchr(spec, ')') : spec, ',') && !strchr(spec, '('))
        spec = specs[mesh][below(p, 10)];
    if (rank < 2 && (strstr(spec, "),") || strstr(spec, ", (")))
        spec = "None";
    return spec;
}

/* A value of this rank, and, when dimension >= 0, of that extent there; -1: none. */
static int find(program *p, int rank, int dimension, int64_t extent)
{
    for (int tries = 0; tries < 20; tries++) {
        int k = below(p, p->n);
        const call *c = &p->call[k];
        if (c->rank == rank && (dimension < 0 || c->shape[dimension] == extent))
            return k;
    }
    return -1;
}

static bool draw(program *p, call *c)
{
    c->in[0] = below(p, p->n);
    const call *x = &p->call[c->in[0]];
    c->rank = x->rank;
    memcpy(c->shape, x->shape, sizeof c->shape);
    c->kind = (kind)(1 + below(p, KINDS - 1));
    if (below(p, 3) == 0)
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
        c->axis = below(p, 2);
        c->rank = 1;
        c->shape[0] = x->shape[1 - c->axis];
        return x->rank == 2;
    case SCALE_ROWS: c->in[1] = find(p, 1, 0, x->shape[1]); return x->rank == 2 && c->in[1] >= 0;
    case REPEAT:
        c->rank = 2;
        c->shape[1] = x->shape[0];
        c->shape[0] = sizes[below(p, 4)];
        return x->rank == 1;
    case PART: c->shape[0]--; return x->shape[0] > 2;
    case FLATTEN:
        c->rank = 1;
        c->shape[0] *= c->shape[1];
        return x->rank == 2 && c->shape[0] <= 64;
    default: return true;
    }
}

static void make(program *p, uint64_t seed)
{
    *p = (program){.random = seed * 77 + 5};
    int mesh = below(p, 4), n_in = 2 + below(p, MOST_IN - 1);
    p->mesh = oly_make_mesh(meshes[mesh]);
    for (; p->n < n_in; p->n++)
        p->call[p->n] = (call){
            .kind = INPUT,
            .rank = below(p, 5) ? 2 : 1,
            .shape = {sizes[below(p, 8)], p->n && below(p, 2) ? p->call[p->n - 1].shape[0] : sizes[below(p, 8)]}};
    for (int k = 0; k < n_in; k++)
        p->call[k].spec = random_spec(p, mesh, p->call[k].rank);
    p->n_in = n_in;
    int wanted = n_in + 2 + below(p, MOST - MOST_IN - 2);
    for (int tries = 0; p->n < wanted && tries < 200; tries++) {
        call c = {0};
        if (!draw(p, &c))
            continue;
        if (below(p, 6) == 0)
            c.spec = random_spec(p, mesh, c.rank);
        p->call[p->n++] = c;
    }
    p->n_out = 1 + below(p, 3);
    for (int k = 0; k < p->n_out; k++)
        p->out[k] = k == 0 ? p->n - 1 : below(p, p->n);
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

static void run(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array v[MOST];
    for (int k = 0; k < p->n; k++) {
        v[k] = k < p->n_in ? in[k] : apply(p, &p->call[k], v);
        if (k >= p->n_in && p->call[k].spec && !p->alone)
            v[k] = oly_with_sharding_constraint(v[k], oly_named(p->mesh, p->call[k].spec));
    }
    for (int k = 0; k < p->n_out; k++)
        out[k] = v[p->out[k]];
}

static void print(const program *p)
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

typedef struct outcome {
    oly_plan_costs costs;
    oly_array out[3];
} outcome;

static void plan(program *p, const oly_array *in, bool choose, outcome *o)
{
    oly_array *wanted[3] = {&o->out[0], &o->out[1], &o->out[2]};
    oly_option.choose = choose;
    oly_fn f = oly_jit(run, p->n_in, p->n_out, .user = p);
    assert_int_equal(oly_call(f, p->n_in, in, p->n_out, wanted), OLY_OK);
    assert_int_equal(oly_costs_n(&o->costs, f, p->n_in, in), OLY_OK);
    if (getenv("PRINT_PLANS"))
        oly_explain_n(stderr, f, p->n_in, in);
    oly_option.choose = 1;
}

static double largest(const double *x, int64_t n)
{
    double most = 1e-300;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

static void compare_values(const program *p, oly_array x, oly_array expected, uint64_t seed)
{
    size_t bytes = sizeof(double) * (size_t)oly_size(expected);
    double *a = malloc(bytes), *b = malloc(bytes);
    assert_int_equal(oly_process_allgather(x, a, bytes), OLY_OK);
    assert_int_equal(oly_get(expected, b, bytes), OLY_OK);
    double scale = largest(b, oly_size(expected));
    for (int64_t i = 0; i < oly_size(expected); i++)
        if (!(fabs(a[i] - b[i]) <= 1e-11 * scale)) {
            print(p);
            fail_msg("seed %" PRIu64 ": element %" PRId64 " is %g instead of %g", seed, i, a[i], b[i]);
        }
    free(a);
    free(b);
}

static void random_programs_never_move_more(void **state)
{
    (void)state;
    int most = oly_process_count() > 1 ? 60 : 300; /* a job of many processes takes long */
    int programs = getenv("PROGRAMS") ? atoi(getenv("PROGRAMS")) : most,
        first = getenv("SEED") ? atoi(getenv("SEED")) : 0;
    int cheaper = 0, moving = 0;
    int64_t saved = 0, all = 0;
    for (int seed = first; seed < first + programs; seed++)
        OLY_SCOPE
        {
            program p;
            oly_array in[MOST_IN], alone[MOST_IN], expected[3] = {NULL};
            outcome greedy = {0}, chosen = {0};
            make(&p, (uint64_t)seed);
            for (int k = 0; k < p.n_in; k++) {
                const call *c = &p.call[k];
                oly_array flat =
                    oly_sin(oly_add(oly_arange(c->shape[0] * (c->rank == 2 ? c->shape[1] : 1), OLY_FLOAT64), 0.5 * k));
                alone[k] = c->rank == 2 ? oly_reshape(flat, c->shape[0], c->shape[1]) : flat;
                in[k] = oly_device_put(alone[k], oly_named(p.mesh, c->spec));
            }
            plan(&p, in, false, &greedy);
            plan(&p, in, true, &chosen);
            p.alone = true;
            run(alone, expected, &p);
            p.alone = false;
            moving += greedy.costs.wire_bytes > 0;
            all += greedy.costs.wire_bytes;
            saved += greedy.costs.wire_bytes - chosen.costs.wire_bytes;
            cheaper += chosen.costs.wire_bytes < greedy.costs.wire_bytes;
            if (getenv("VERBOSE"))
                fprintf(stderr, "seed %d: %" PRId64 " bytes in %" PRId64 ", chosen %" PRId64 " in %" PRId64 "\n", seed,
                        greedy.costs.wire_bytes, greedy.costs.collectives, chosen.costs.wire_bytes,
                        chosen.costs.collectives);
            if (oly_process_count() > 1) {
                /* each counts its own devices */
            } else if (chosen.costs.wire_bytes > greedy.costs.wire_bytes ||
                       (chosen.costs.wire_bytes == greedy.costs.wire_bytes &&
                        chosen.costs.collectives > greedy.costs.collectives)) {
                print(&p);
                if (getenv("GO_ON"))
                    fprintf(stderr, "WORSE seed %d\n", seed);
                else
                    fail_msg("seed %d: %" PRId64 " bytes in %" PRId64 " collectives, %" PRId64 " in %" PRId64
                             " without the choice",
                             seed, chosen.costs.wire_bytes, chosen.costs.collectives, greedy.costs.wire_bytes,
                             greedy.costs.collectives);
            }
            for (int k = 0; k < p.n_out; k++) {
                assert_true(oly_sharding_equivalent(oly_sharding_of(greedy.out[k]), oly_sharding_of(chosen.out[k]),
                                                    oly_rank(chosen.out[k]), oly_shape(chosen.out[k])));
                compare_values(&p, chosen.out[k], expected[k], (uint64_t)seed);
            }
        }
    print_message("%d of %d programs that move data move less: %" PRId64 " of %" PRId64 " bytes saved\n", cheaper,
                  moving, saved, all);
    if (programs >= 300 && oly_process_count() == 1)
        assert_true(cheaper > 10);
}

/* -- layouts that fall out of the prices --------------------------------------------------------------------------- */

typedef struct product {
    oly_mesh mesh;
    const char *x, *w, *out; /* specs; out NULL: open */
    int64_t m, k, n;
} product;

static void multiply(const oly_array *in, oly_array *out, void *user)
{
    const product *p = user;
    out[0] = oly_matmul(in[0], in[1]);
    if (p->out)
        out[0] = oly_with_sharding_constraint(out[0], oly_named(p->mesh, p->out));
}

static oly_array numbers(oly_mesh mesh, int64_t m, int64_t n, const char *spec)
{
    return oly_device_put(oly_reshape(oly_arange(m * n, OLY_FLOAT32), m, n), oly_named(mesh, spec));
}

static const char *explained(oly_fn f, int n_in, const oly_array *in)
{
    static char text[20000];
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, n_in, in), OLY_OK);
    fclose(file);
    return text;
}

/* Bytes that all devices receive in one product, and how it is explained. */
static int64_t bytes_of(product p, const char **text)
{
    static product kept;
    oly_plan_costs costs;
    kept = p;
    oly_array in[2] = {numbers(p.mesh, p.m, p.k, p.x), numbers(p.mesh, p.k, p.n, p.w)};
    oly_fn f = oly_jit(multiply, 2, 1, .user = &kept);
    assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
    *text = explained(f, 2, in);
    return costs.wire_bytes;
}

static void products_follow_the_prices(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return; /* each counts its own devices */
    oly_mesh mesh = oly_make_mesh("x=8");
    const char *text;
    /* a large W, cut by columns: x comes to it, 7/8 of it to each of the 8 devices */
    assert_int_equal(bytes_of((product){mesh, "x", "None, x", NULL, 16, 64, 512}, &text), 7 * 16 * 64 * 4);
    /* a large x, cut by rows: W comes to it */
    assert_int_equal(bytes_of((product){mesh, "x", "None, x", NULL, 512, 64, 16}, &text), 7 * 16 * 64 * 4);
    /* a long contraction, cut: sums of partial products are the cheapest, 2 * 7/8 of the result each */
    assert_int_equal(bytes_of((product){mesh, "None, x", "x", "None", 16, 4096, 16}, &text), 2 * 7 * 16 * 16 * 4);
    /* the same wanted in parts: scattered, half of that */
    assert_int_equal(bytes_of((product){mesh, "None, x", "x", "x", 16, 4096, 16}, &text), 7 * 16 * 16 * 4);
    /* a short contraction and a large result on every device: both operands go everywhere, no sums */
    assert_int_equal(bytes_of((product){mesh, "None, x", "x", "None", 128, 8, 128}, &text), 2 * 7 * 8 * 128 * 4);
    assert_non_null(strstr(text, "by price: result P(None, None)"));
    assert_non_null(strstr(text, "layouts chosen by price: "));
    /* in two dimensions: rows of x and columns of W over one axis each, both gathered over the other (SUMMA) */
    oly_mesh grid = oly_make_mesh("x=2, y=4");
    assert_int_equal(bytes_of((product){grid, "x, y", "x, y", "x, y", 256, 256, 256}, &text),
                     8 * (128 * 192 + 128 * 64) * 4);
    /* with few rows partial products of them are summed and the large W stays */
    assert_true(bytes_of((product){grid, "x, y", "y, x", "x, y", 8, 1024, 1024}, &text) < 8 * 1024 * 1024);
}

/* A small value is needed whole: every device works it out, nothing moves. */
static void small(const oly_array *in, oly_array *out, void *user)
{
    oly_array v = oly_sin(oly_mul(in[0], 2.0));
    out[0] = oly_add(in[1], v);
    out[1] = oly_with_sharding_constraint(oly_mul(v, 3.0), oly_named((oly_mesh)user, "None"));
}

static void small_work_is_done_everywhere(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[2] = {oly_device_put(oly_ones(OLY_FLOAT32, 16), oly_named(mesh, "None")),
                       oly_device_put(oly_ones(OLY_FLOAT32, 16), oly_named(mesh, "x"))};
    oly_plan_costs costs;
    oly_option.choose = 0;
    assert_int_equal(oly_costs_n(&costs, oly_jit(small, 2, 2, .user = (void *)mesh), 2, in), OLY_OK);
    int64_t before = costs.wire_bytes;
    oly_option.choose = 1;
    assert_int_equal(oly_costs_n(&costs, oly_jit(small, 2, 2, .user = (void *)mesh), 2, in), OLY_OK);
    print_message("small work: %" PRId64 " bytes as propagated, %" PRId64 " as chosen\n", before, costs.wire_bytes);
    assert_int_equal(costs.wire_bytes, 0);
}

/* The same plan again and again, */
static void choices_are_the_same_every_time(void **state)
{
    (void)state;
    for (int seed = 0; seed < 40; seed++)
        OLY_SCOPE
        {
            program p;
            oly_array in[MOST_IN];
            static char first[20000];
            make(&p, (uint64_t)seed);
            for (int k = 0; k < p.n_in; k++)
                in[k] =
                    oly_device_put(p.call[k].rank == 2 ? oly_zeros(OLY_FLOAT32, p.call[k].shape[0], p.call[k].shape[1])
                                                       : oly_zeros(OLY_FLOAT32, p.call[k].shape[0]),
                                   oly_named(p.mesh, p.call[k].spec));
            for (int time = 0; time < 2; time++) {
                const char *text = explained(oly_jit(run, p.n_in, p.n_out, .user = &p), p.n_in, in);
                if (time == 0)
                    strcpy(first, text);
                assert_string_equal(first, text);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_programs_never_move_more, start, finish),
        cmocka_unit_test_setup_teardown(products_follow_the_prices, start, finish),
        cmocka_unit_test_setup_teardown(small_work_is_done_everywhere, start, finish),
        cmocka_unit_test_setup_teardown(choices_are_the_same_every_time, start, finish),
    };
    return CHECK_MAIN(tests);
}
