/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Loops over several fields on GPUs have the CPU's bits and do not go through the host: known equations and random bodies, one to
 * three dimensions, any number of steps in a pass, kernels interpreted and generated, borders computed after messages. Where there is no
 * GPU, CPUs are compared with themselves. tests/gpu/test_field_loops.sh runs it on emulated GPUs.
 *   FIELD_LOOPS=first,last   other random bodies      FIELD_LOOPS_SHORT=1   fewer models and variants, as where no GPU is asked for */
#include "check.h"
#include <math.h>
#include <olympus.h>
#include <string.h>

enum { MOST_FIELDS = 4, MOST_VALUES = 16, MOST_MODELS = 64, MOST_RANK = 3, LARGE = 6 };

typedef struct model {
    const char *name;
    int n_fields, rank, steps;
    int64_t shape[MOST_FIELDS][MOST_RANK];
    oly_dtype dtype;
    const char *mesh, *spec;
    void (*body)(oly_array i, oly_array *carry, void *user);
    oly_array outside; /* a value from outside the loop, of the first field's shape; set while the loop is traced */
    bool uses_outside;
    unsigned seed, state; /* of random bodies */
    int n_operations;
} model;

/* -- known equations ------------------------------------------------------------------------------------------------------ */

static oly_array around(oly_array x)
{
    return oly_sub(
        oly_add(oly_add(oly_roll(x, 1, 0), oly_roll(x, -1, 0)), oly_add(oly_roll(x, 1, 1), oly_roll(x, -1, 1))),
        oly_mul(4, x));
}

static void gray_scott(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = c[0], v = c[1], meet = oly_mul(oly_mul(u, v), v);
    c[0] = oly_add(oly_sub(oly_add(u, oly_mul(0.16, around(u))), meet), oly_mul(0.037, oly_sub(1, u)));
    c[1] = oly_sub(oly_add(oly_add(v, oly_mul(0.08, around(v))), meet), oly_mul(0.097, v));
}

/* On a staggered grid: ez [n][m], hx [n][m - 1], hy [n - 1][m]. */
static void maxwell(oly_array i, oly_array *c, void *user)
{
    (void)user;
    oly_array ez = c[0], hx = c[1], hy = c[2];
    hx = oly_sub(hx, oly_mul(0.5, oly_sub(oly_slice(ez, ":, 1:"), oly_slice(ez, ":, :-1"))));
    hy = oly_add(hy, oly_mul(0.5, oly_sub(oly_slice(ez, "1:, :"), oly_slice(ez, ":-1, :"))));
    oly_array curl = oly_sub(oly_sub(oly_slice(hy, "1:, 1:-1"), oly_slice(hy, ":-1, 1:-1")),
                             oly_sub(oly_slice(hx, "1:-1, 1:"), oly_slice(hx, "1:-1, :-1")));
    c[0] = oly_update(ez, "1:-1, 1:-1", oly_add(oly_slice(ez, "1:-1, 1:-1"), oly_mul(0.5, curl)));
    c[0] =
        oly_update(c[0], "5:6, 5:6", oly_add(oly_slice(c[0], "5:6, 5:6"), oly_mul(0.01, oly_astype(i, OLY_FLOAT32))));
    c[1] = hx;
    c[2] = hy;
}

static oly_array centred(oly_array x, int d)
{
    return oly_mul(0.5, oly_sub(oly_roll(x, -1, d), oly_roll(x, 1, d)));
}

/* Height and velocities, the nonlinear equations. */
static void shallow_water(oly_array i, oly_array *c, void *user)
{
    const model *m = user;
    (void)i;
    oly_array h = c[0], u = c[1], v = c[2], dt = m->outside;
    oly_array flow = oly_add(centred(oly_mul(h, u), 0), centred(oly_mul(h, v), 1));
    c[0] = oly_sub(h, oly_mul(dt, flow));
    c[1] = oly_sub(
        u, oly_mul(dt, oly_add(oly_add(oly_mul(u, centred(u, 0)), oly_mul(v, centred(u, 1))), centred(c[0], 0))));
    c[2] = oly_div(oly_sub(v, oly_mul(dt, oly_add(oly_add(oly_mul(u, centred(v, 0)), oly_mul(v, centred(v, 1))),
                                                  centred(c[0], 1)))),
                   oly_add(1, oly_mul(0.01, oly_mul(h, h))));
}

/* Pressure now and before, a Laplacian that reaches four points far. */
static void acoustic(oly_array i, oly_array *c, void *user)
{
    static const double weight[] = {-2.847222, 1.6, -0.2, 0.02539683, -0.001785714};
    static const char *const ends[] = {"0:-8", "1:-7", "2:-6", "3:-5", "4:-4", "5:-3", "6:-2", "7:-1", "8:"};
    (void)i, (void)user;
    oly_array now = c[0], before = c[1], sum = NULL;
    for (int d = 0; d < 3; d++)
        for (int k = -4; k <= 4; k++) {
            char part[64];
            snprintf(part, sizeof part, "%s, %s, %s", d == 0 ? ends[4 + k] : "4:-4", d == 1 ? ends[4 + k] : "4:-4",
                     d == 2 ? ends[4 + k] : "4:-4");
            oly_array tap = oly_mul(weight[abs(k)], oly_slice(now, part));
            sum = sum ? oly_add(sum, tap) : tap;
        }
    oly_array next = oly_sub(oly_mul(2, now), before);
    c[0] = oly_update(next, "4:-4, 4:-4, 4:-4", oly_add(oly_slice(next, "4:-4, 4:-4, 4:-4"), oly_mul(0.05, sum)));
    c[1] = now;
}

/* Integers and a mask of positions: neither fused additions nor floats. */
static void automaton(oly_array i, oly_array *c, void *user)
{
    (void)user;
    oly_array alive = c[0], age = c[1];
    oly_array n = oly_add(oly_add(oly_roll(alive, 1, 0), oly_roll(alive, -1, 0)), oly_roll(age, 2, 0));
    oly_array even = oly_eq(oly_rem(oly_add(oly_arange(oly_dim(alive, 0), OLY_INT32), i), 2), 0);
    c[0] = oly_where(oly_logical_and(even, oly_gt(n, 1)), oly_sub(n, age), alive);
    c[1] = oly_rem(oly_add(age, alive), 5);
}

/* Two that react and spread, in any number of dimensions. */
static void reaction(oly_array i, oly_array *c, void *user)
{
    const model *m = user;
    oly_array u = c[0], v = c[1], spread_u = oly_mul(u, u), spread_v = v;
    (void)i;
    for (int d = 0; d < m->rank; d++) {
        spread_u = oly_add(spread_u, oly_mul(0.1, oly_add(oly_roll(u, 1, d), oly_roll(u, -1, d))));
        spread_v = oly_sub(spread_v, oly_mul(0.05, oly_sub(oly_roll(v, 2, d), oly_mul(v, oly_roll(u, -1, d)))));
    }
    c[0] = oly_mul(0.4, oly_add(spread_u, oly_mul(u, v)));
    c[1] = oly_mul(0.7, oly_sub(spread_v, oly_mul(0.1, c[0])));
}

/* Two steps are kept, and the one before them. */
static void three_levels(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array next = oly_mul(0.45, oly_add(oly_mul(c[0], oly_roll(c[0], 1, 0)), oly_add(c[2], oly_roll(c[1], -3, 1))));
    c[2] = c[1];
    c[1] = c[0];
    c[0] = next;
}

/* Bytes, in stages that read each other. */
static void life(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array x = c[0], rows = oly_add(oly_add(oly_roll(x, 1, 0), x), oly_roll(x, -1, 0));
    oly_array n = oly_sub(oly_add(oly_add(oly_roll(rows, 1, 1), rows), oly_roll(rows, -1, 1)), x);
    oly_array stays = oly_logical_and(oly_eq(n, 2), oly_eq(x, 1));
    c[0] = oly_astype(oly_logical_or(oly_eq(n, 3), stays), OLY_INT8);
}

/* Borders stay, and one field is the other of the step before. */
static void wave(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = c[0], mid = oly_slice(u, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    oly_array force = oly_mul(0.2, oly_sub(oly_add(rows, columns), oly_mul(4, mid)));
    oly_array next = oly_add(oly_sub(oly_mul(2, mid), oly_slice(c[1], "1:-1, 1:-1")), force);
    c[0] = oly_update(u, "1:-1, 1:-1", next);
    c[1] = u;
}

/* -- random bodies -------------------------------------------------------------------------------------------------------- */

static int draw(model *m, int64_t n)
{
    m->state = m->state * 1664525u + 1013904223u;
    return (int)((m->state >> 8) % (unsigned)n);
}

static oly_array part(const model *m, oly_array x, int d, int64_t from, int64_t to)
{
    char text[64], *at = text;
    for (int e = 0; e < m->rank; e++)
        at += e == d ? sprintf(at, "%s%d:%d", e ? ", " : "", (int)from, (int)to) : sprintf(at, "%s:", e ? ", " : "");
    return oly_slice(x, text);
}

static oly_array operation(model *m, oly_array i, oly_array x, oly_array y, oly_array z)
{
    int d = draw(m, m->rank);
    int64_t size = oly_dim(x, d), from = draw(m, size - 2), to = from + 1 + draw(m, 2), one[MOST_RANK] = {0};
    char text[64], *at = text;
    one[d] = 1;
    for (int e = 0; e < m->rank; e++)
        at += e == d ? sprintf(at, "%s%d:%d", e ? ", " : "", (int)from, (int)to) : sprintf(at, "%s:", e ? ", " : "");
    switch (draw(m, 9)) {
    case 0: return oly_roll(x, draw(m, 5) - 2, d);
    case 1: return oly_update(x, text, oly_mul(0.5, part(m, y, d, from, to)));
    case 2: return oly_where(oly_gt(x, 0.3), y, z);
    case 3: return oly_mul(x, y);
    case 4: return oly_sub(oly_mul(0.7, x), oly_mul(0.4, y));
    case 5: return oly_max2(x, oly_sin(y));
    case 6: return oly_add(oly_mul(0.3, x), oly_mul(0.2, oly_add(oly_roll(y, 1, d), oly_roll(z, -1, d))));
    case 7: return m->uses_outside ? oly_mul(x, m->outside) : oly_add(x, oly_mul(0.01, oly_astype(i, m->dtype)));
    default: {
        oly_array p = oly_pad(x, 0, one, one, NULL);
        return oly_mul(0.5, oly_sub(part(m, p, d, 0, size), part(m, p, d, 2, size + 2)));
    }
    }
}

static void random_body(oly_array i, oly_array *carry, void *user)
{
    model *m = user;
    oly_array values[MOST_VALUES];
    int n = m->n_fields;
    memcpy(values, carry, sizeof *carry * (size_t)n);
    m->state = m->seed;
    for (int k = 0; k < m->n_operations; k++, n++) {
        int x = draw(m, n), y = draw(m, n), z = draw(m, n);
        values[n] = operation(m, i, values[x], values[y], values[z]);
    }
    for (int k = 0; k < m->n_fields; k++) {
        oly_array result = values[n - 1 - draw(m, 3)];
        carry[k] = draw(m, 4) ? oly_mul(0.9, result) : result;
    }
}

static model random_model(int number)
{
    static char name[MOST_MODELS][32];
    static int named;
    static const char *const meshes[][2] = {
        {"x=8", "x"}, {"x=4, y=2", "x, y"}, {"x=2, y=4", "y, x"}, {"x=4, y=2", "None, y"}};
    static const int64_t longest[] = {0, 70, 18, 9};
    model m = {.state = (unsigned)number * 7919u + 1, .body = random_body};
    snprintf(name[named % MOST_MODELS], sizeof *name, "random body %d", number);
    m.name = name[named++ % MOST_MODELS];
    m.rank = 1 + draw(&m, MOST_RANK);
    m.n_fields = 1 + draw(&m, 3);
    m.n_operations = 3 + draw(&m, 6);
    m.steps = 2 + draw(&m, 6);
    m.dtype = draw(&m, 3) ? OLY_FLOAT32 : draw(&m, 2) ? OLY_FLOAT64 : OLY_BFLOAT16;
    m.uses_outside = draw(&m, 2);
    int place = m.rank == 1 ? 0 : draw(&m, 4);
    m.mesh = meshes[place][0];
    m.spec = meshes[place][1];
    for (int d = 0; d < m.rank; d++) {
        m.shape[0][d] = 8 + draw(&m, longest[m.rank]);
        for (int k = 1; k < m.n_fields; k++)
            m.shape[k][d] = m.shape[0][d];
    }
    m.seed = m.state;
    return m;
}

/* Large enough for several tiles of a block, with passes of more steps than a launch takes. */
static int make_deep_models(model *models)
{
    static const model deep[] = {
        {"Gray-Scott", 2, 2, 15, {{150, 130}, {150, 130}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = gray_scott},
        {"a line", 2, 1, 60, {{4000}, {4000}}, OLY_FLOAT32, "x=8", "x", .body = reaction},
        {"a cube", 2, 3, 9, {{40, 44, 36}, {40, 44, 36}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = reaction},
        {"three levels",
         3,
         3,
         7,
         {{24, 28, 36}, {24, 28, 36}, {24, 28, 36}},
         OLY_FLOAT64,
         "x=4, y=2",
         "x, y",
         .body = three_levels},
        {"Life", 1, 2, 14, {{160, 150}}, OLY_INT8, "x=4, y=2", "x, y", .body = life},
        {"a wave", 2, 2, 17, {{170, 140}, {170, 140}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = wave},
        {"Maxwell", 3, 2, 13, {{100, 90}, {100, 89}, {99, 90}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = maxwell},
    };
    memcpy(models, deep, sizeof deep);
    return sizeof deep / sizeof *deep;
}

static int make_models(model *models)
{
    static const model known[] = {
        {"Gray-Scott", 2, 2, 11, {{40, 36}, {40, 36}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = gray_scott},
        {"Gray-Scott in float64", 2, 2, 6, {{33, 20}, {33, 20}}, OLY_FLOAT64, "x=2, y=4", "y, x", .body = gray_scott},
        {"Maxwell", 3, 2, 9, {{40, 36}, {40, 35}, {39, 36}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = maxwell},
        {"shallow water",
         3,
         2,
         7,
         {{32, 36}, {32, 36}, {32, 36}},
         OLY_FLOAT32,
         "x=4, y=2",
         "x, y",
         .body = shallow_water,
         .uses_outside = true},
        {"acoustic wave", 2, 3, 5, {{24, 22, 20}, {24, 22, 20}}, OLY_FLOAT32, "x=4, y=2", "x, y", .body = acoustic},
        {"automaton", 2, 1, 9, {{300}, {300}}, OLY_INT32, "x=8", "x", .body = automaton},
        {"large Gray-Scott", 2, 2, 4, {{400, 300}, {400, 300}}, OLY_FLOAT32, "x=8", "x", .body = gray_scott},
    };
    int n = sizeof known / sizeof *known, first = 0, last = 11;
    memcpy(models, known, sizeof known);
    if (getenv("FIELD_LOOPS"))
        sscanf(getenv("FIELD_LOOPS"), "%d,%d", &first, &last);
    for (int k = first; k <= last && n < MOST_MODELS; k++)
        models[n++] = random_model(k);
    return n;
}

/* -- running -------------------------------------------------------------------------------------------------------------- */

static void many(const oly_array *in, oly_array *out, void *user)
{
    model *m = user;
    memcpy(out, in, sizeof *in * (size_t)m->n_fields);
    m->outside = in[m->n_fields];
    oly_fori(1, 1 + m->steps, m->body, m->n_fields, out, user);
}

static size_t count_of(const model *m, int field)
{
    size_t n = 1;
    for (int d = 0; d < m->rank; d++)
        n *= (size_t)m->shape[field][d];
    return n;
}

static oly_array start_of(const model *m, int field)
{
    size_t n = count_of(m, field);
    double *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++)
        data[i] = m->dtype == OLY_INT32 || m->dtype == OLY_INT8
                      ? (double)((i * 7 + (size_t)field) % 3)
                      : (double)((i * 7919 + (size_t)field * 31 + 13) % 1009) / 1009;
    oly_array x = oly_astype(oly_from_host(data, OLY_FLOAT64, m->rank, m->shape[field]), m->dtype);
    free(data);
    return oly_device_put(x, oly_named(oly_make_mesh(m->mesh), m->spec));
}

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

static oly_device_counts counted(void)
{
    oly_device_counts c;
    assert_int_equal(oly_get_device_counts(&c), OLY_OK);
    return c;
}

/* The results of the model's fields one after the other; *bytes in all. *launches: on devices. */
static char *run(model *m, size_t *bytes, int64_t *launches)
{
    oly_array in[MOST_FIELDS + 1], out[MOST_FIELDS], *wanted[MOST_FIELDS];
    int n = m->n_fields;
    *bytes = 0;
    for (int k = 0; k < n; k++) {
        in[k] = start_of(m, k);
        out[k] = NULL;
        wanted[k] = &out[k];
        *bytes += count_of(m, k) * oly_dtype_size(m->dtype);
    }
    in[n] = oly_mul(start_of(m, 0), m->dtype == OLY_INT32 || m->dtype == OLY_INT8 ? 1 : 0.1);
    oly_fn f = oly_jit(many, n + 1, n, .user = m);
    oly_device_counts before = counted();
    assert_int_equal(oly_call_n(f, n + 1, in, n, wanted), OLY_OK);
    char *all = malloc(*bytes), *at = all;
    for (int k = 0; k < n; k++) {
        size_t own = count_of(m, k) * oly_dtype_size(m->dtype);
        assert_int_equal(oly_process_allgather(out[k], at, own), OLY_OK);
        at += own;
    }
    oly_device_counts after = counted();
    *launches = after.launches - before.launches;
    if (after.on_host != before.on_host)
        fail_msg("%s: %d shares are computed on the host", m->name, (int)(after.on_host - before.on_host));
    return all;
}

static char *explained(model *m)
{
    char *text = NULL;
    size_t size;
    oly_array in[MOST_FIELDS + 1];
    for (int k = 0; k <= m->n_fields; k++)
        in[k] = start_of(m, k % m->n_fields);
    FILE *file = open_memstream(&text, &size);
    oly_explain_n(file, oly_jit(many, m->n_fields + 1, m->n_fields, .user = m), m->n_fields + 1, in);
    fclose(file);
    return text;
}

static bool is_short(void)
{
    static int yes = -1; /* as the program was started */
    const char *platforms = getenv("OLYMPUS_PLATFORMS");
    if (yes < 0)
        yes = getenv("FIELD_LOOPS_SHORT") || !platforms || !strstr(platforms, "cuda");
    return yes;
}

typedef struct variant {
    const char *name, *platforms, *disabled, *compile_after, *halo_steps;
} variant;

static void begin(const variant *v)
{
    static char platforms[64];
    if (!*platforms)
        snprintf(platforms, sizeof platforms, "%s",
                 getenv("OLYMPUS_PLATFORMS") ? getenv("OLYMPUS_PLATFORMS") : "cuda,cpu");
    setenv("OLYMPUS_PLATFORMS", v->platforms ? v->platforms : platforms, 1);
    setenv("OLYMPUS_DISABLE", v->disabled, 1);
    setenv("OLYMPUS_COMPILE_AFTER", v->compile_after, 1);
    setenv("OLYMPUS_HALO_STEPS", v->halo_steps, 1);
    oly_init(NULL, NULL);
}

static void check_variants(int (*make)(model *), const variant *variants, int n_variants, int first, int every)
{
    static model models[MOST_MODELS];
    static char *bits[MOST_MODELS];
    int n = make(models);
    for (int v = 0; v < n_variants; v++) {
        begin(&variants[v]);
        for (int k = first; k < n; k += every)
            OLY_SCOPE
            {
                size_t bytes;
                int64_t launches;
                char *now = run(&models[k], &bytes, &launches);
                if (bits[k] && memcmp(bits[k], now, bytes) != 0)
                    fail_msg("%s: other bits with %s (OLYMPUS_HALO_STEPS=%s) than on CPUs", models[k].name,
                             variants[v].name, variants[v].halo_steps);
                if (on_gpu() && launches == 0)
                    fail_msg("%s: nothing is launched", models[k].name);
                if (bits[k])
                    free(now);
                else
                    bits[k] = now;
            }
        assert_int_equal(oly_finalize(), 0);
    }
    for (int k = 0; k < n; k++) {
        free(bits[k]);
        bits[k] = NULL;
    }
}

static void interpreted_loops_have_the_bits_of_cpus(void **state)
{
    static const variant variants[] = {
        {"CPUs", "cpu", "", "100000000", "0"},
        {"the interpreter", NULL, "", "100000000", "0"},
        {"the interpreter, no taps of machine code", NULL, "compiled-groups", "100000000", "3"},
        {"the interpreter", NULL, "", "100000000", "1"},
        {"everything at once", NULL, "tile-overlap", "100000000", "2"},
    };
    (void)state;
    check_variants(make_models, variants, is_short() ? 3 : sizeof variants / sizeof *variants, 0, is_short() ? 2 : 1);
}

/* Kernels of the test programs are compiled by the host's compiler, a second each: every third model. */
static void blocks_have_the_bits_of_cpus(void **state)
{
    static const variant variants[] = {
        {"CPUs", "cpu", "", "100000000", "0"},
        {"blocks", NULL, "", "0", "3"},
        {"blocks", NULL, "", "0", "0"},
        {"blocks", NULL, "", "0", "1"},
    };
    static const variant alone[] = {
        {"CPUs", "cpu", "", "100000000", "0"},
        {"kernels for each stage", NULL, "blocked-passes", "0", "2"},
        {"blocks, element by element", NULL, "field-strips", "0", "3"},
    };
    int first = getenv("FIELD_LOOPS_FIRST") ? atoi(getenv("FIELD_LOOPS_FIRST")) : 0;
    (void)state;
    check_variants(make_models, variants, is_short() ? 2 : sizeof variants / sizeof *variants, first, 3);
    if (!is_short())
        check_variants(make_models, alone, sizeof alone / sizeof *alone, first, 9);
}

static void deep_passes_have_the_bits_of_cpus(void **state)
{
    static const variant variants[] = {
        {"CPUs", "cpu", "", "100000000", "2"},
        {"blocks", NULL, "", "0", "40"},
        {"blocks", NULL, "", "0", "9"},
    };
    (void)state;
    check_variants(make_deep_models, variants, is_short() ? 2 : sizeof variants / sizeof *variants, 0,
                   is_short() ? 3 : 1);
}

/* Steps of a pass are one launch of each device. */
static void blocks_take_fewer_launches(void **state)
{
    static const variant variants[] = {{"stages", NULL, "blocked-passes", "100000000", "2"},
                                       {"blocks", NULL, "", "0", "2"}};
    int64_t launches[2];
    (void)state;
    for (int v = 0; v < 2; v++) {
        model models[MOST_MODELS];
        size_t bytes;
        make_models(models);
        begin(&variants[v]);
        OLY_SCOPE
        {
            free(run(&models[0], &bytes, &launches[v]));
            free(run(&models[0], &bytes, &launches[v]));
        }
        assert_int_equal(oly_finalize(), 0);
    }
    if (launches[0] && launches[1] >= launches[0])
        fail_msg("%d launches stage by stage, %d in blocks", (int)launches[0], (int)launches[1]);
}

static void explanations_say_that_loops_are_on_the_device(void **state)
{
    static const variant here = {"GPUs", NULL, "", "100000000", "0"};
    model models[MOST_MODELS];
    (void)state;
    make_models(models);
    begin(&here);
    for (int k = 0; k <= LARGE; k++)
        OLY_SCOPE
        {
            char *text = explained(&models[k]);
            if (strstr(text, "[on the host]") || !strstr(text, "steps"))
                fail_msg("%s:\n%s", models[k].name, text);
            if (k == LARGE && oly_process_count() == 2 && !strstr(text, "of a pass overlaps"))
                fail_msg("nothing of a pass is computed while messages are under way:\n%s", text);
            free(text);
        }
    assert_int_equal(oly_finalize(), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpreted_loops_have_the_bits_of_cpus),
        cmocka_unit_test(blocks_have_the_bits_of_cpus),
        cmocka_unit_test(deep_passes_have_the_bits_of_cpus),
        cmocka_unit_test(blocks_take_fewer_launches),
        cmocka_unit_test(explanations_say_that_loops_are_on_the_device),
    };
    return CHECK_MAIN(tests);
}
