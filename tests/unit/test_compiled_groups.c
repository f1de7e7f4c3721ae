/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Machine code of tile programs has the interpreter's bits: random programs of every operation and element type that it
 * takes, on boxes of every form, in chunks, in place; programs that have other operations, too, and are computed in parts; each operation on rows of every length that end where memory does; with each instruction set
 * that has code; code is really used; where memory cannot be made executable everything is interpreted; the table of code is
 * bounded.
 *   COMPILED_CASES=first,last   others */
#include "check_kernels.h"
#include "random_group.h"
#include "code_parts.h"
#include "run/compiled_groups.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int n_known; /* programs that were run again */

/* NaN of any sign and payload are one value. */
static bool same(int dtype, const char *a, const char *b, size_t i)
{
    if (dtype == OLY_FLOAT32) {
        float x, y;
        memcpy(&x, a + 4 * i, 4), memcpy(&y, b + 4 * i, 4);
        return memcmp(&x, &y, 4) == 0 || (isnan(x) && isnan(y));
    }
    if (dtype == OLY_COMPLEX64)
        return same(OLY_FLOAT32, a, b, 2 * i) && same(OLY_FLOAT32, a, b, 2 * i + 1);
    if (dtype == OLY_COMPLEX128)
        return same(OLY_FLOAT64, a, b, 2 * i) && same(OLY_FLOAT64, a, b, 2 * i + 1);
    if (dtype == OLY_FLOAT64) {
        double x, y;
        memcpy(&x, a + 8 * i, 8), memcpy(&y, b + 8 * i, 8);
        return memcmp(&x, &y, 8) == 0 || (isnan(x) && isnan(y));
    }
    if (random_group_is_half(dtype)) {
        const int infinity = dtype == OLY_FLOAT16 ? 0x7c00 : 0x7f80;
        uint16_t x, y;
        memcpy(&x, a + 2 * i, 2), memcpy(&y, b + 2 * i, 2);
        return x == y || ((x & 0x7fff) > infinity && (y & 0x7fff) > infinity);
    }
    size_t size = (oly_dtype_size)((oly_dtype)dtype); /* without noting the place of the call, for every element */
    return memcmp(a + size * i, b + size * i, size) == 0;
}

/* As steps run that are small: the second time without a search. */
static void run_noting(random_group *c)
{
    oly_group_known known = {.program = &c->program};
    char *first[MOST_LOADS + MOST_STORES];
    oly_group_run_noting(&c->program, &c->box, c->loads, c->stores, &known);
    if (c->in_place) /* what it read is gone */
        return;
    for (int k = 0; k < c->program.n_loads; k++)
        first[k] = c->loads[k].base;
    for (int k = 0; k < c->program.n_stores; k++)
        first[c->program.n_loads + k] = c->stores[k].base;
    if (!known.code)
        return;
    memset(random_group_output[1], 0xee, sizeof random_group_output[1]);
    assert_true(oly_group_run_known(&known, first));
    n_known++;
}

static void compare_case(random_group *c, uint64_t seed)
{
    int chunks = c->chunks;
    memset(random_group_output, 0xee, sizeof random_group_output);
    for (int way = 0; way < 2 && c->in_place; way++)
        memcpy(random_group_output[way][0], random_group_input[0], sizeof random_group_input[0]);
    oly_tile_run(&c->program, &c->box, c->loads, c->stores, 0, 1);
    for (int s = 0; s < c->program.n_stores; s++)
        c->stores[s].base += random_group_output[1][s] - random_group_output[0][s];
    if (c->in_place)
        c->loads[0].base = c->stores[0].base;
    if (chunks == 1)
        run_noting(c);
    for (int k = 0; k < chunks && chunks > 1; k++)
        oly_group_run(&c->program, &c->box, c->loads, c->stores, k, chunks);
    for (int s = 0; s < c->program.n_stores; s++) {
        if (memcmp(random_group_output[0][s], random_group_output[1][s], sizeof random_group_output[0][s]) == 0)
            continue;
        for (size_t i = 0, n = (size_t)ROOM * 16 / oly_dtype_size((oly_dtype)c->store_dtype[s]); i < n; i++)
            if (!same(c->store_dtype[s], random_group_output[0][s], random_group_output[1][s], i)) {
                for (int k = 0; k < c->n; k++)
                    fprintf(stderr, "%d: op %d type %d to %d of %d %d %d\n", c->code[k].out, c->code[k].op,
                            c->code[k].dtype, c->code[k].to, c->code[k].in[0], c->code[k].in[1], c->code[k].in[2]);
                fail_msg("case %" PRIu64 ": store %d (register %d) differs at %zu", seed, s, c->store_register[s], i);
            }
    }
}

/* Runs a check with each instruction set of this CPU that has code. */
static void on_each_with_code(void (*check)(void))
{
    for (int k = 0; k < COUNT(instruction_sets); k++) {
        if (oly_kernels_choose(instruction_sets[k]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        random_group_draws.avx512 = strcmp(instruction_sets[k], "avx512") == 0;
        oly_group_forget();
        if (oly_code_available())
            check();
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    random_group_draws.avx512 = strcmp(oly_kernels_isa(), "avx512") == 0;
    oly_group_forget();
}

/* How many programs were compiled, refused and run; COMPILED_CASES=first,last: others. */
static oly_group_counts compare_cases(unsigned long last)
{
    oly_code_may_decline = false;
    static random_group c;
    unsigned long first = 1;
    const char *cases = getenv("COMPILED_CASES");
    if (cases)
        sscanf(cases, "%lu,%lu", &first, &last);
    int64_t before = oly_group_compile_after(0);
    oly_group_counts start = oly_group_counted();
    for (uint64_t seed = first; seed <= last; seed++) {
        random_group_draw(&c, seed);
        compare_case(&c, seed);
    }
    oly_group_counts end = oly_group_counted();
    oly_group_compile_after(before);
    oly_code_may_decline = true;
    assert_true(end.bytes <= (int64_t)1024 * 65536);
    end.compiled -= start.compiled;
    end.refused -= start.refused;
    end.runs -= start.runs;
    printf("%s: %d programs, %d refused, %d runs, %.1f us each to compile\n", oly_kernels_isa(), (int)end.compiled,
           (int)end.refused, (int)end.runs, (double)(end.ticks - start.ticks) / 1e3 / (double)end.compiled);
    return end;
}

static void check_random_programs(void)
{
    oly_group_counts n = compare_cases(250);
    assert_true(n.compiled > 0 && n.refused == 0);
    assert_true(n.runs > n.compiled / 2);
    assert_true(n_known > 0);
}

static void check_operands_apart(void)
{
    random_group_draws.apart = true;
    oly_group_counts n = compare_cases(1200);
    random_group_draws.apart = false;
    assert_true(n.compiled > 0 && n.refused == 0);
    assert_true(n.runs > n.compiled / 2);
    assert_true(n.compiled > 1000 ||
                getenv("COMPILED_CASES")); /* half of the programs if rows had to be of adjacent elements */
}

/* Rows along other dimensions than the last, of elements that are not beside each other. */
static void operands_may_be_apart(void **unused)
{
    (void)unused;
    on_each_with_code(check_operands_apart);
}

/* Where the processor computes float16, as it is where it does not. */
static void float16_may_be_computed_as_float32(void **unused)
{
    (void)unused;
    static random_group c;
    int64_t before = oly_group_compile_after(0);
    bool used = oly_code_use_fp16(false);
    oly_group_forget();
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_group_draw(&c, seed);
        compare_case(&c, seed);
    }
    oly_code_use_fp16(used);
    oly_group_forget();
    oly_group_compile_after(before);
}

static void code_has_the_interpreters_bits(void **unused)
{
    (void)unused;
    on_each_with_code(check_random_programs);
}

/* -- in parts ---------------------------------------------------------------------------------------------------------------- */

static void check_divided_programs(void)
{
    random_group_draws.divided = true;
    oly_group_counts n = compare_cases(600);
    random_group_draws.apart = true; /* of which some have operands that kernels cannot read */
    compare_cases(400);
    random_group_draws.divided = random_group_draws.apart = false;
    assert_true(n.compiled > 3 * n.refused && n.runs > n.compiled / 2);
}

static void parts_have_the_interpreters_bits(void **unused)
{
    (void)unused;
    on_each_with_code(check_divided_programs);
}

/* 0.5 x (1 + tanh(x + 0.04 x^3)): one kernel between two loops, what both need is computed where it is used. */
static void an_operation_divides_a_program_in_two(void **unused)
{
    (void)unused;
    enum { ELEMENTS = 5000 };
    static float x[ELEMENTS], y[2][ELEMENTS];
    const oly_tile_instruction code[] = {{OLY_TILE_splat, OLY_FLOAT32, OLY_FLOAT32, {-1, -1, -1}, 1, 0, {.f32 = 0.04f}},
                                         {OLY_TILE_splat, OLY_FLOAT32, OLY_FLOAT32, {-1, -1, -1}, 2, 0, {.f32 = 0.5f}},
                                         {OLY_TILE_splat, OLY_FLOAT32, OLY_FLOAT32, {-1, -1, -1}, 3, 0, {.f32 = 1.0f}},
                                         {OLY_TILE_mul, OLY_FLOAT32, OLY_FLOAT32, {0, 2, -1}, 4, 0, {0}},
                                         {OLY_TILE_mul, OLY_FLOAT32, OLY_FLOAT32, {0, 0, -1}, 5, 0, {0}},
                                         {OLY_TILE_mul, OLY_FLOAT32, OLY_FLOAT32, {5, 0, -1}, 5, 0, {0}},
                                         {OLY_TILE_mul, OLY_FLOAT32, OLY_FLOAT32, {5, 1, -1}, 5, 0, {0}},
                                         {OLY_TILE_add, OLY_FLOAT32, OLY_FLOAT32, {0, 5, -1}, 5, 0, {0}},
                                         {OLY_TILE_tanh, OLY_FLOAT32, OLY_FLOAT32, {5, -1, -1}, 5, 0, {0}},
                                         {OLY_TILE_add, OLY_FLOAT32, OLY_FLOAT32, {5, 3, -1}, 5, 0, {0}},
                                         {OLY_TILE_mul, OLY_FLOAT32, OLY_FLOAT32, {4, 5, -1}, 5, 0, {0}}};
    const int16_t load_register = 0, store_register = 5;
    const uint8_t dtype = OLY_FLOAT32;
    const oly_tile_program p = {COUNT(code), code, 1, 1, &load_register, &dtype, &store_register, &dtype, 6};
    const oly_tile_box box = {1, {ELEMENTS}, {0}, {ELEMENTS}};
    const oly_code_form form = {{0, 0}, {0, 0}};
    static oly_code_parts parts;
    static uint8_t bytes[OLY_CODE_BYTES];
    if (!oly_code_available())
        skip();
    assert_true(oly_code_parts_write(&p, &form, &parts, bytes, sizeof bytes) > 0);
    assert_int_equal(parts.n_parts, 3);
    assert_int_equal(parts.n_slots, 2); /* tanh's operand and its result */
    assert_true(parts.part[0].is_code && !parts.part[1].is_code && parts.part[2].is_code);
    assert_int_equal(parts.last_read[0], 2);
    assert_int_equal(parts.written[1], 2);
    assert_int_equal(oly_code_parts_write(&p, &form, &parts, bytes, 100), 0); /* no room */
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = 0.01f * (float)i - 25;
    for (int way = 0; way < 2; way++) {
        const oly_tile_operand load = {(char *)x, {1}}, store = {(char *)y[way], {1}};
        int64_t before = oly_group_compile_after(0);
        (way ? oly_group_run : oly_tile_run)(&p, &box, &load, &store, 0, 1);
        oly_group_compile_after(before);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

/* A load is stored as it is, after another store has written its memory. */
static void check_taking_over(void)
{
    enum { MOST_ROW = 100 };
    const oly_tile_instruction code[] = {
        {OLY_TILE_add, OLY_FLOAT32, OLY_FLOAT32, {0, 0, -1}, 1, 0, {0}},
        {OLY_TILE_mul, OLY_FLOAT32, OLY_FLOAT32, {1, 0, -1}, 1, 0, {0}},
    };
    const int16_t load_register = 0, store_register[] = {1, 0};
    const uint8_t dtype[] = {OLY_FLOAT32, OLY_FLOAT32};
    const oly_tile_program p = {COUNT(code), code, 1, 2, &load_register, dtype, store_register, dtype, 2};
    int64_t before = oly_group_compile_after(0);
    for (int n = 1; n <= MOST_ROW; n++) {
        float u[MOST_ROW], v[MOST_ROW];
        const oly_tile_operand load = {(char *)u, {1}}, stores[] = {{(char *)u, {1}}, {(char *)v, {1}}};
        const oly_tile_box box = {1, {n}, {0}, {n}};
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < n; i++)
                u[i] = (float)i;
            (way ? oly_group_run : oly_tile_run)(&p, &box, &load, stores, 0, 1);
            for (int i = 0; i < n; i++)
                assert_true(u[i] == 2 * (float)i * (float)i && v[i] == (float)i);
        }
    }
    oly_group_compile_after(before);
}

static void a_load_outlives_its_memory(void **unused)
{
    (void)unused;
    on_each_with_code(check_taking_over);
}

/* -- one operation ------------------------------------------------------------------------------------------------------------ */

enum { LONGEST = 70, PAGE = 4096 };

/* Memory of which the last byte is in front of a page that must not be touched. */
static char *before_the_end(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    return pages + PAGE;
}

typedef struct single {
    char *in[3], *out[2]; /* where their memory ends */
    int op, from, to, n_in;
} single;

/* The operation, and perhaps one of a wider type beside it, so that vectors have fewer elements than its type needs. */
static void check_single(const single *s, int n, int scalars, int beside)
{
    oly_tile_instruction code[2] = {
        {.op = (uint16_t)s->op,
         .dtype = (uint8_t)s->from,
         .to = (uint8_t)s->to,
         .in = {0, s->n_in > 1 ? 1 : -1, s->n_in > 2 ? 2 : -1},
         .out = 3},
        {.op = OLY_TILE_splat, .dtype = (uint8_t)beside, .to = (uint8_t)beside, .in = {-1, -1, -1}, .out = 4}};
    int16_t load_register[] = {0, 1, 2}, store_register = 3;
    uint8_t load_dtype[3], store_dtype = (uint8_t)s->to;
    oly_tile_operand loads[3], store[2];
    size_t size = oly_dtype_size((oly_dtype)s->to);
    for (int k = 0; k < s->n_in; k++) {
        bool scalar = scalars >> k & 1;
        load_dtype[k] = (uint8_t)(s->op == OLY_TILE_select && k == 0 ? OLY_BOOL : s->from);
        loads[k] = (oly_tile_operand){s->in[k] - (scalar ? 1 : n) * (int64_t)oly_dtype_size((oly_dtype)load_dtype[k]),
                                      {!scalar}};
    }
    oly_tile_program p = {1 + (beside != OLY_BOOL), code,         s->n_in, 1, load_register, load_dtype,
                          &store_register,          &store_dtype, 5};
    oly_tile_box box = {1, {n}, {3}, {100}};
    for (int way = 0; way < 2; way++) {
        store[way] = (oly_tile_operand){s->out[way] - (size_t)n * size, {1}};
        memset(s->out[way] - (LONGEST + 1) * size, 0xee, (LONGEST + 1) * size);
    }
    oly_tile_run(&p, &box, loads, &store[0], 0, 1);
    oly_group_run_rows(&p, &box, loads, &store[1]);
    for (int i = 0; i <= LONGEST; i++)
        if (!same(s->to, s->out[0] - (LONGEST + 1) * size, s->out[1] - (LONGEST + 1) * size, (size_t)i))
            fail_msg("%s: operation %d from type %d to %d: %d elements, scalars %d, beside %d: element %d differs",
                     oly_kernels_isa(), s->op, s->from, s->to, n, scalars, beside, i - (LONGEST + 1 - n));
}

static void check_lengths(single *s)
{
    static const uint8_t beside[] = {OLY_BOOL, OLY_FLOAT64, OLY_BOOL, OLY_FLOAT32, OLY_INT16}; /* bool: none */
    for (int k = 0; k < s->n_in; k++) {
        int dtype = s->op == OLY_TILE_select && k == 0 ? OLY_BOOL : s->from;
        fill_with_specials(dtype, s->in[k] - LONGEST * oly_dtype_size((oly_dtype)dtype), LONGEST);
    }
    for (int n = 1; n <= LONGEST; n++)
        for (int scalars = 0; scalars < 1 << s->n_in; scalars++)
            check_single(s, n, scalars, beside[(n + scalars) % COUNT(beside)]);
}

/* Complex numbers to and from floats and bools. */
static void check_parts_of(single *s, int type)
{
    static const uint16_t part[] = {OLY_TILE_real, OLY_TILE_imag, OLY_TILE_abs}, test[] = {OLY_TILE_eq, OLY_TILE_ne};
    s->n_in = 1;
    s->to = OLY_FLOAT32;
    for (int k = 0; k < COUNT(part) && type == OLY_COMPLEX64; k++) {
        s->op = part[k];
        check_lengths(s);
    }
    s->n_in = 2;
    s->to = OLY_BOOL;
    for (int k = 0; k < COUNT(test) && type == OLY_COMPLEX64 && !random_group_draws.avx512; k++) {
        s->op = test[k];
        check_lengths(s);
    }
    s->op = OLY_TILE_complex;
    s->to = OLY_COMPLEX64;
    if (type == OLY_FLOAT32)
        check_lengths(s);
}

static void check_operations_of(single *s, int type)
{
    static const struct {
        uint16_t op;
        uint8_t operands, on; /* on: 1 bools, 2 integers, 4 floats, 8 halves, 16 complex numbers */
        bool to_bool;
    } known[] = {
        {OLY_TILE_add, 2, 31, false},        {OLY_TILE_sub, 2, 30, false},    {OLY_TILE_mul, 2, 31, false},
        {OLY_TILE_div, 2, 12, false},        {OLY_TILE_max, 2, 15, false},    {OLY_TILE_min, 2, 15, false},
        {OLY_TILE_and, 2, 3, false},         {OLY_TILE_or, 2, 3, false},      {OLY_TILE_xor, 2, 3, false},
        {OLY_TILE_eq, 2, 15, true},          {OLY_TILE_ne, 2, 15, true},      {OLY_TILE_lt, 2, 15, true},
        {OLY_TILE_le, 2, 15, true},          {OLY_TILE_gt, 2, 15, true},      {OLY_TILE_ge, 2, 15, true},
        {OLY_TILE_neg, 1, 30, false},        {OLY_TILE_abs, 1, 14, false},    {OLY_TILE_square, 1, 30, false},
        {OLY_TILE_sign, 1, 12, false},       {OLY_TILE_sqrt, 1, 12, false},   {OLY_TILE_floor, 1, 12, false},
        {OLY_TILE_ceil, 1, 12, false},       {OLY_TILE_round, 1, 12, false},  {OLY_TILE_is_finite, 1, 12, true},
        {OLY_TILE_fma, 3, 4, false},         {OLY_TILE_select, 3, 31, false}, {OLY_TILE_not, 1, 1, false},
        {OLY_TILE_logical_not, 1, 1, false}, {OLY_TILE_conj, 1, 16, false},
    };
    bool wide = type == OLY_FLOAT32 || type == OLY_FLOAT64;
    int kind = type == OLY_BOOL ? 1 : type == OLY_COMPLEX64 ? 16 : random_group_is_half(type) ? 8 : wide ? 4 : 2;
    s->from = type;
    for (int k = 0; k < COUNT(known); k++)
        if (known[k].on & kind) {
            s->op = known[k].op;
            s->n_in = known[k].operands;
            s->to = known[k].to_bool ? OLY_BOOL : type;
            check_lengths(s);
        }
    check_parts_of(s, type);
    s->op = OLY_TILE_convert;
    s->n_in = 1;
    for (int k = 0; k < GROUP_TYPES_WITH_CODE; k++) {
        s->to = random_group_types[k];
        if (random_group_is_converted(type, s->to))
            check_lengths(s);
    }
}

static void check_operations(void)
{
    single s = {
        {before_the_end(), before_the_end(), before_the_end()}, {before_the_end(), before_the_end()}, 0, 0, 0, 0};
    int64_t before = oly_group_compile_after(0);
    oly_group_counts start = oly_group_counted();
    for (int k = 0; k < GROUP_TYPES_WITH_CODE; k++)
        check_operations_of(&s, random_group_types[k]);
    oly_group_counts end = oly_group_counted();
    oly_group_compile_after(before);
    assert_true(end.compiled - start.compiled > 500 && end.refused == start.refused);
    assert_true(end.runs - start.runs > LONGEST * (end.compiled - start.compiled) / 8);
    printf("%s: %d programs, %d runs\n", oly_kernels_isa(), (int)(end.compiled - start.compiled),
           (int)(end.runs - start.runs));
}

static void operations_of_every_length(void **unused)
{
    (void)unused;
    on_each_with_code(check_operations);
}

/* Threads compute the chunks of one step, and code becomes ready while they do. */
static void check_chunks(void)
{
    static random_group c;
    int64_t before = oly_group_compile_after(0);
    for (uint64_t seed = 1; seed <= 150; seed++) {
        random_group_draw(&c, seed);
        double work = c.n;
        for (int d = 0; d < c.box.rank; d++)
            work *= (double)c.box.extent[d];
        oly_group_forget();
        oly_group_compile_after(1 + (int64_t)(work * random_group_number(100) / 100));
        compare_case(&c, seed);
    }
    oly_group_compile_after(before);
}

static void chunks_fit_whenever_code_is_ready(void **unused)
{
    (void)unused;
    on_each_with_code(check_chunks);
}

/* The rows of a box of which chunk k of n computes some elements, but not all. */
static int rows_in_part(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *x, int k, int n)
{
    static float out[1 << 18];
    int64_t rows = 1, length = box->extent[box->rank - 1];
    oly_tile_operand y = *x;
    int found = 0;
    for (int d = 0; d < box->rank - 1; d++)
        rows *= box->extent[d];
    assert_true(rows * length <= (int64_t)COUNT(out));
    memset(out, 0, sizeof out);
    y.base = (char *)out;
    oly_group_run(p, box, x, &y, k, n);
    for (int64_t r = 0; r < rows; r++) {
        int64_t written = 0;
        for (int64_t i = 0; i < length; i++)
            written += out[r * length + i] != 0;
        found += written != 0 && written != length;
    }
    return found;
}

/* Rows of images with channels last, and of blocks of 3-D fields, are short: those that two threads share are computed at several times the cost. */
static void chunks_have_whole_rows(void **unused)
{
    static const int64_t boxes[][4] = {{28, 58, 118, 0}, {30, 62, 128, 0}, {2, 28, 28, 64}, {100, 100, 0, 0}};
    static float ones[1 << 18];
    const oly_tile_instruction sum = {OLY_TILE_add, OLY_FLOAT32, OLY_FLOAT32, {0, 0, -1}, 1, 0, {0}};
    const int16_t from = 0, to = 1;
    const uint8_t dtype = OLY_FLOAT32;
    const oly_tile_program p = {1, &sum, 1, 1, &from, &dtype, &to, &dtype, 2};
    int64_t before = oly_group_compile_after(0);
    (void)unused;
    for (size_t i = 0; i < COUNT(ones); i++)
        ones[i] = 1;
    for (size_t b = 0; b < COUNT(boxes); b++) {
        oly_tile_box box = {0};
        oly_tile_operand x = {.base = (char *)ones};
        while (box.rank < 4 && boxes[b][box.rank]) {
            box.extent[box.rank] = box.whole[box.rank] = boxes[b][box.rank];
            box.rank++;
        }
        for (int64_t d = box.rank - 1, stride = 1; d >= 0; stride *= box.extent[d--])
            x.stride[d] = stride;
        for (int n = 1; n <= 64; n += n < 8 ? 1 : 28)
            for (int k = 0; k < n; k++)
                assert_int_equal(rows_in_part(&p, &box, &x, k, n), 0);
    }
    oly_group_compile_after(before);
}

/* x = 2 x + 1 in place, in a process that may not make memory executable. */
static int run_denied(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {COUNT(filter), filter};
    static random_group c;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    oly_group_forget();
    oly_group_compile_after(0);
    oly_group_counts start = oly_group_counted();
    for (uint64_t seed = 1; seed <= 50; seed++) {
        random_group_draw(&c, seed);
        compare_case(&c, seed);
    }
    oly_group_counts end = oly_group_counted();
    return end.runs == start.runs && end.compiled == start.compiled ? 0 : 1;
}

static void denied_memory_is_no_error(void **unused)
{
    (void)unused;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(run_denied());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_has_the_interpreters_bits),     cmocka_unit_test(operands_may_be_apart),
        cmocka_unit_test(float16_may_be_computed_as_float32), cmocka_unit_test(code_has_the_interpreters_bits),
        cmocka_unit_test(parts_have_the_interpreters_bits),   cmocka_unit_test(an_operation_divides_a_program_in_two),
        cmocka_unit_test(a_load_outlives_its_memory),         cmocka_unit_test(operations_of_every_length),
        cmocka_unit_test(chunks_fit_whenever_code_is_ready),  cmocka_unit_test(chunks_have_whole_rows),
        cmocka_unit_test(denied_memory_is_no_error)};
    if (oly_kernels_choose("") != OLY_OK)
        return 1;
    return CHECK_MAIN(tests);
}
