/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts timeout=300  Every operation, for each element type it takes and each instruction set of this machine, on one
 * device and sharded over eight, for sizes that divide, sizes that do not, and empty ones; eager, compiled, in oly_vmap and in
 * oly_shard_map; against values computed in the simplest way (ops_reference_*.c). Operations and functions without a row there
 * make it fail.
 *
 * Every row is combined with every type and instruction set; shardings, sizes and modes take turns. EVERYWHERE=all runs all of
 * them (minutes), EVERYWHERE=sum all of one function. */
#include "check.h"
#include "array/trace.h"
#include "core/error.h"
#include "graph/ops.h"
#include "kernel.h"
#include "ops_reference.h"
#include <inttypes.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const row_list *const topics[] = {&ops_elementwise, &ops_reductions, &ops_products, &ops_windows,
                                         &ops_shapes,      &ops_indexes,    &ops_random,   &ops_programs};
static const char *const instruction_sets[] = {"avx512", "avx2", "base"};
static const int64_t sizes[][3] = {{8, 16, 8}, {7, 11, 5}, {3, 2, 1}, {5, 0, 3}, {5, 3, 0}, {1, 1, 9}};
enum { DIVIDED = 1 }; /* how many sizes divide */

/* Over the mesh x=2, y=4, by rank. */
static const char *const specs[][12] = {
    {""},
    {"", "x", "(x,y)", "y", "(y,x)"},
    {"", "x,y", "(x,y)", "None,y", "y", "None,(x,y)", "y,x", "None,x", "x", "None,(y,x)", "(y,x)"},
    {"", "x,y", "None,None,(x,y)", "y,None,x", "None,y", "(x,y)", "None,x,y", "None,(y,x)", "x,None,y"},
    {"", "x,y", "None,None,x,y", "None,(x,y)"},
};

typedef enum mode { EAGER, COMPILED, MAPPED, ON_EACH_DEVICE, N_MODES } mode;
static const char *const mode_names[] = {"call by call", "compiled", "in oly_vmap", "in oly_shard_map"};
enum { MOST_COPIES = 8 };

typedef struct trial {
    const row *row;
    oly_dtype dtype;
    int n_in, copies, sharding, way;
    tensor in[MOST_COPIES][MOST_OPERANDS], want[MOST_COPIES];
} trial;

static int failures, trials;
static char everything[64]; /* EVERYWHERE */

/* -- messages ------------------------------------------------------------------------------------------------------ */
static void complain(const trial *t, const char *what)
{
    static const row *last;
    static int of_row;
    char shape[100] = "";
    of_row = last == t->row ? of_row + 1 : 0;
    last = t->row;
    for (int d = 0, n = 0; d < t->in[0][0].rank; d++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%" PRId64, d ? "," : "", t->in[0][0].shape[d]);
    failures++;
    if (of_row < 3 && failures < 300)
        print_error("oly_%s \"%s\" of %s[%s], sharding %d, %s, %s%s: %s\n", t->row->name, t->row->shapes,
                    oly_dtype_name(t->dtype), shape, t->sharding, mode_names[t->way], oly_kernels_isa(),
                    oly_x64_enabled() ? ", x64" : "", what);
    oly_clear_error();
}

/* -- operands and values ----------------------------------------------------------------------------------------------- */
static void index_of(const tensor *t, int64_t i, int64_t *at)
{
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = i % t->shape[d];
        i /= t->shape[d];
    }
}

static void compute(trial *t, int copy, const int64_t *size)
{
    static tensor seen[MOST_OPERANDS]; /* operands as the formula takes them */
    const char *text = t->row->shapes;
    int64_t at[OLY_MAX_RANK];
    bool more = true;
    for (t->n_in = 0; more; t->n_in++) {
        tensor *in = &t->in[copy][t->n_in];
        in->dtype = t->dtype;
        text = ops_read_shape(text, size, in);
        ops_fill(t->row, in, t->n_in * 2 + 1 + 5 * copy);
        more = *text == ',';
        text += more;
        seen[t->n_in] = *in;
        char rule = t->row->result[0];
        if (strchr("fRDAc", rule) && in->dtype == t->dtype) {
            seen[t->n_in].dtype = ops_result_type(rule == 'D' || rule == 'A' ? "D" : "f", t->dtype);
            ops_round(&seen[t->n_in]);
        }
    }
    tensor *want = &t->want[copy];
    want->dtype = ops_result_type(t->row->result, t->dtype);
    ops_read_shape(text + 2, size, want);
    for (int64_t i = 0; i < want->size; i++) {
        index_of(want, i, at);
        want->element[i] = t->row->value(t->row, seen, at);
    }
    ops_round(want);
}

static bool same(long double x, long double y)
{
    return x == y || (isnan(x) && isnan(y));
}

static bool agrees(const trial *t, number want, number got)
{
    oly_dtype dtype = t->want[0].dtype;
    if (same(creall(want), creall(got)) && same(cimagl(want), cimagl(got)))
        return true;
    if (element_parts(dtype) > 1 && isnan(cabsl(want)) && isnan(cabsl(got)))
        return true;
    if (!element_is_inexact(dtype) || t->row->ulps == 0)
        return false;
    long double size = cabsl(want), least = oly_dtype_smallest_normal(dtype);
    least = t->row->flags & NEAR_ONE ? 1 : least < 0x1p-126L ? 0x1p-126L : least;
    return cabsl(want - got) <= (long double)(t->row->ulps * element_epsilon(dtype)) * (size > least ? size : least);
}

/* `batch`: the result has the copies along a first dimension. */
static void check_result(const trial *t, oly_array x, bool batch)
{
    static char data[MOST_COPIES * MOST_ELEMENTS * 16];
    static tensor got;
    char text[300];
    const tensor *want = &t->want[0];
    trials++;
    if (!x) {
        complain(t, oly_last_error());
        return;
    }
    if (oly_dtype_of(x) != want->dtype || oly_rank(x) != want->rank + batch ||
        memcmp(oly_shape(x) + batch, want->shape, sizeof(int64_t) * (size_t)want->rank) != 0) {
        oly_typeof(x, text, sizeof text);
        complain(t, text);
        return;
    }
    size_t bytes = (size_t)want->size * oly_dtype_size(want->dtype);
    memset(data, 0xa5, sizeof data);
    if (oly_process_allgather(x, data, bytes * (size_t)(batch ? t->copies : 1)) != OLY_OK) {
        complain(t, oly_last_error());
        return;
    }
    for (int copy = 0; copy < (batch ? t->copies : 1); copy++) {
        got = *want;
        ops_load(&got, data + bytes * (size_t)copy);
        for (int64_t i = 0; i < want->size; i++) {
            number w = t->want[copy].element[i], g = got.element[i];
            if (agrees(t, w, g))
                continue;
            snprintf(text, sizeof text, "copy %d: element %" PRId64 " is %.20Lg%+.20Lgi, should be %.20Lg%+.20Lgi",
                     copy, i, creall(g), cimagl(g), creall(w), cimagl(w));
            complain(t, text);
            return;
        }
    }
}

/* -- modes --------------------------------------------------------------------------------------------------------------- */
static void traced(const oly_array *in, oly_array *out, void *user)
{
    const row *r = user;
    out[0] = r->call(in);
}

/* Each device has one copy: its first dimension is 1 there. */
static void traced_on_device(const oly_array *in, oly_array *out, void *user)
{
    const trial *t = user;
    oly_array own[MOST_OPERANDS], result;
    for (int k = 0; k < t->n_in; k++)
        own[k] = oly_reshape_shape(in[k], t->in[0][k].rank, t->in[0][k].shape);
    if ((result = t->row->call(own)))
        out[0] = oly_expand_dims(result, 0);
}

static oly_array operand_of(const trial *t, int k, int copies)
{
    static char data[MOST_COPIES * MOST_ELEMENTS * 16];
    const tensor *first = &t->in[0][k];
    int64_t shape[OLY_MAX_RANK] = {copies};
    for (int copy = 0; copy < copies; copy++)
        ops_store(&t->in[copy][k], data + (size_t)copy * (size_t)first->size * oly_dtype_size(first->dtype));
    if (copies == 1)
        return oly_from_host(data, first->dtype, first->rank, first->shape);
    memcpy(shape + 1, first->shape, sizeof(int64_t) * (size_t)first->rank);
    return oly_from_host(data, first->dtype, first->rank + 1, shape);
}

/* Sharding k of the first operand; the others take other ones, and sometimes stay uncommitted. 0: all stay. */
static oly_array placed(const trial *t, int k, oly_array x, oly_mesh mesh, bool batch)
{
    char spec[64];
    int rank = t->in[0][k].rank, n = 0, choice = t->sharding + k * (1 + (int)t->dtype);
    while (n < COUNT(specs[0]) && specs[rank][n])
        n++;
    if (t->sharding == 0 || (k > 0 && choice % 5 == 4))
        return x;
    snprintf(spec, sizeof spec, "%s%s", batch ? "None," : "", specs[rank][choice % n]);
    return oly_device_put(x, oly_named(mesh, spec));
}

static void run(trial *t, oly_mesh mesh, oly_mesh line)
{
    static const char *const first[] = {"d", "d", "d", "d"};
    static const int zero[MOST_OPERANDS];
    OLY_SCOPE
    {
        oly_array in[MOST_OPERANDS], out = NULL, *wanted[] = {&out};
        int copies = t->way == MAPPED ? 2 : t->way == ON_EACH_DEVICE ? MOST_COPIES : 1;
        for (int k = 0; k < t->n_in; k++) {
            in[k] = operand_of(t, k, copies);
            if (t->way != ON_EACH_DEVICE)
                in[k] = placed(t, k, in[k], mesh, t->way == MAPPED);
        }
        t->copies = copies;
        switch ((mode)t->way) {
        case COMPILED:
            out = oly_apply_n(oly_jit(traced, t->n_in, 1, .user = (void *)t->row, .name = t->row->name), t->n_in, in);
            break;
        case MAPPED: oly_vmap(traced, (void *)t->row, t->n_in, in, zero, 1, wanted, zero); break;
        case ON_EACH_DEVICE: oly_shard_map(traced_on_device, t, line, t->n_in, in, first, 1, wanted, first); break;
        default: out = t->row->call(in); break;
        }
        check_result(t, out, copies > 1);
    }
}

/* -- which trials are run ------------------------------------------------------------------------------------------------ */
static bool fits(const row *r, int size)
{
    bool empty = sizes[size][1] == 0 || sizes[size][2] == 0;
    return !((r->flags & AT_LEAST_ONE && empty) || (r->flags & DIVIDES && size >= DIVIDED));
}

static void try(trial *t, int size, int sharding, int way, oly_mesh mesh, oly_mesh line)
{
    static int made_size = -1;
    static const row *made_row;
    static oly_dtype made_dtype;
    static bool made_x64;
    static int made_copies;
    int copies = way == MAPPED ? 2 : way == ON_EACH_DEVICE ? MOST_COPIES : 1;
    if (!fits(t->row, size) || (way >= MAPPED && t->row->flags & ALONE))
        return;
    if (made_size != size || made_row != t->row || made_dtype != t->dtype || made_x64 != oly_x64_enabled())
        made_copies = 0;
    for (; made_copies < copies; made_copies++)
        compute(t, made_copies, sizes[size]);
    made_size = size, made_row = t->row, made_dtype = t->dtype, made_x64 = oly_x64_enabled();
    t->sharding = sharding;
    t->way = way;
    run(t, mesh, line);
}

static void all_of(trial *t, oly_mesh mesh, oly_mesh line)
{
    for (int size = 0; size < COUNT(sizes); size++)
        for (int way = 0; way < N_MODES; way++)
            for (int sharding = 0; sharding < (way == ON_EACH_DEVICE ? 1 : COUNT(specs[0]) - 1); sharding++)
                try(t, size, sharding, way, mesh, line);
}

/* A few of them, others for every row, type and instruction set. */
static void some_of(trial *t, int turn, oly_mesh mesh, oly_mesh line)
{
    static unsigned count;
    int most = oly_process_count() > 1 ? 1 : turn == 0 ? 3 : 2;
    for (int k = 0; k < most; k++) {
        unsigned c = count++;
        int size = t->row->flags & DIVIDES ? 0 : (int)(c % COUNT(sizes));
        try(t, fits(t->row, size) ? size : (int)(c % 3), (int)(c * 7 / 3 % 11),
            (int)(c % 9 == 8   ? ON_EACH_DEVICE
                  : c % 9 == 4 ? MAPPED
                               : c % 2),
            mesh, line);
    }
}

static void refused(trial *t)
{
    bool taken = false;
    for (int k = 0; k < COUNT(topics) && !taken; k++)
        for (int i = 0; i < topics[k]->count; i++)
            taken = taken || (strcmp(topics[k]->rows[i].name, t->row->name) == 0 &&
                              strchr(topics[k]->rows[i].types, ops_type_letters[t->dtype]));
    if (taken || t->row->flags & REFUSES_NONE)
        return;
    oly_array in[MOST_OPERANDS];
    t->row->flags &DIVIDES ? compute(t, 0, sizes[0]) : compute(t, 0, sizes[2]);
    for (int k = 0; k < t->n_in; k++)
        in[k] = operand_of(t, k, 1);
    t->sharding = t->way = 0;
    oly_array out = t->row->call(in);
    trials++;
    if (out || oly_last_status() != OLY_DTYPE)
        complain(t, out ? "is accepted, but the table does not name the type" : oly_last_error());
    oly_clear_error();
}

static void walk(const row *r, int turn, oly_mesh mesh, oly_mesh line)
{
    static trial t;
    bool all = strcmp(everything, "all") == 0 || strcmp(everything, r->name) == 0;
    if (everything[0] && !all)
        return;
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
        OLY_SCOPE
        {
            t.row = r;
            t.dtype = (oly_dtype)dtype;
            if (!ops_type_letters[dtype])
                continue;
            if (!strchr(r->types, ops_type_letters[dtype])) {
                if (turn == 0)
                    refused(&t);
            } else if (all) {
                all_of(&t, mesh, line);
            } else if ((dtype + turn) % oly_process_count() == 0) { /* gathering from many processes takes time */
                some_of(&t, turn, mesh, line);
            }
        }
}

static void values_everywhere(void **state)
{
    (void)state;
    const char *setting = getenv("EVERYWHERE");
    int turn = 0;
    snprintf(everything, sizeof everything, "%s", setting ? setting : "");
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_mesh mesh = oly_make_mesh("x=2, y=4"), line = oly_make_mesh("d=8");
    for (int k = 0; k < COUNT(instruction_sets); k++) {
        if (oly_kernels_choose(instruction_sets[k]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        oly_enable_x64(turn % 2);
        for (int topic = 0; topic < COUNT(topics); topic++)
            for (int i = 0; i < topics[topic]->count; i++)
                walk(&topics[topic]->rows[i], turn, mesh, line);
        turn++;
    }
    oly_enable_x64(false);
    assert_int_equal(oly_finalize(), 0);
    if (failures)
        fail_msg("%d of %d trials failed", failures, trials);
}

/* -- completeness -------------------------------------------------------------------------------------------------- */

/* Rows of ops.def without a value here. */
static const char *const not_here[] = {
    "input",     /* every trial has some */
    "result",    /* with every loop and branch */
    "reshard",   /* of types: tests/operations/test_explicit.c, the oracle's family "types" */
    "permute",   /* what ppermute is replaced by, as the other collectives are by rows above */
    "auto_axes", /* the oracle's family "types" */
    "own_slice", /* made by gradients of oly_all_gather */
    "squeeze",   /* made by the planner, from reshape */
    "call",      /* the program's own functions: tests/inside */
    "custom",    /* and derivatives */
};

static bool uses(const row *r, const char *op)
{
    static trial t;
    static const int64_t size[] = {8, 16, 8};
    oly_trace trace;
    oly_array in[MOST_OPERANDS];
    bool found = false;
    t.row = r;
    t.dtype = ops_type_of(r->types[strlen(r->types) - 1]);
    compute(&t, 0, size);
    assert_int_equal(oly_trace_open(&trace, "row"), OLY_OK);
    oly_graph *g = trace.graph;
    for (int k = 0; k < t.n_in; k++) {
        oly_node *node;
        oly_type type = {.dtype = t.in[0][k].dtype, .rank = t.in[0][k].rank};
        memcpy(type.shape, t.in[0][k].shape, sizeof type.shape);
        assert_int_equal(oly_graph_input(g, &type, &node), OLY_OK);
        in[k] = oly_array_traced(g, node);
    }
    oly_array out = r->call(in);
    for (int k = 0; k < g->n_nodes; k++)
        found = found || strcmp(oly_ops[g->nodes[k]->op].name, op) == 0;
    oly_trace_close(&trace);
    oly_trace_release(&trace);
    oly_graph_free(g);
    return out && found;
}

static void every_row_of_the_table_is_here(void **state)
{
    (void)state;
    int missing = 0;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (int op = 0; op < OLY_N_OPS; op++) {
        const char *name = oly_ops[op].name;
        bool found = false;
        for (int k = 0; k < COUNT(not_here); k++)
            found = found || strcmp(not_here[k], name) == 0;
        for (int k = 0; k < COUNT(topics); k++)
            for (int i = 0; i < topics[k]->count; i++) {
                const row *r = &topics[k]->rows[i];
                if (!r->op || strcmp(r->op, name) != 0)
                    continue;
                found = true;
                OLY_SCOPE
                {
                    if (!(r->flags & DIVIDES) && !uses(r, name))
                        missing++, print_error("oly_%s \"%s\" does not use %s: %s\n", r->name, r->shapes, name,
                                               oly_last_error());
                }
            }
        if (!found)
            missing++, print_error("no row of tests/operations/reference tests %s of runtime/graph/ops.def\n", name);
    }
    oly_clear_error();
    oly_finalize();
    assert_int_equal(missing, 0);
}

static bool has_row(const char *name)
{
    for (int k = 0; k < COUNT(topics); k++)
        for (int i = 0; i < topics[k]->count; i++)
            if (strcmp(topics[k]->rows[i].name, name) == 0)
                return true;
    return false;
}

static void every_public_operation_is_here(void **state)
{
    (void)state;
    assert_int_equal(ops_untested_functions(has_row), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_of_the_table_is_here),
                                       cmocka_unit_test(every_public_operation_is_here),
                                       cmocka_unit_test(values_everywhere)};
    return CHECK_MAIN(tests);
}
