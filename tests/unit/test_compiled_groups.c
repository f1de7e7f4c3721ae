/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Machine code of tile programs has the interpreter's bits: random programs of every operation and element type that it
 * takes, on boxes of every form, in chunks, in place; programs that have other operations, too, and are computed in parts; each operation on rows of every length that end where memory does; with each instruction set
 * that has code; code is really used; where memory cannot be made executable everything is interpreted; the table of code is
 * bounded.
 *   COMPILED_CASES=first,last   others */
#include "check_kernels.h"
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

enum { MOST_LOADS = 4, MOST_STORES = 3, MOST_OPERATIONS = 24, REGISTERS = 60, ROOM = 1 << 15 };

static const uint8_t types[] = {OLY_BOOL,    OLY_INT32,   OLY_UINT32,   OLY_INT64,     OLY_UINT64,
                                OLY_FLOAT32, OLY_FLOAT64, OLY_INT8,     OLY_INT16,     OLY_UINT8,
                                OLY_UINT16,  OLY_FLOAT16, OLY_BFLOAT16, OLY_COMPLEX64, OLY_COMPLEX128};
/* complex128, the last, has no code: it is among the others of programs that are computed in parts. */
enum { KNOWN_TYPES = COUNT(types) - 1 };
static bool
    is_avx512; /* the instruction set: with code for conversions of 64-bit integers and floats, without that for equal complex numbers */
static bool divided; /* programs have operations without code among the others */
static bool apart;   /* operands are transposed, backwards, with gaps; last dimensions are short */

typedef struct random_case {
    oly_tile_instruction code[MOST_OPERATIONS];
    oly_tile_program program;
    int16_t load_register[MOST_LOADS], store_register[MOST_STORES];
    uint8_t load_dtype[MOST_LOADS], store_dtype[MOST_STORES];
    uint8_t dtype[REGISTERS]; /* of each register; 255: nothing */
    uint8_t types[COUNT(
        types)]; /* of this program: few, so that operations find operands, and vectors of every length occur */
    int n_types;
    int n, registers;
    oly_tile_box box;
    oly_tile_operand loads[MOST_LOADS], stores[MOST_STORES];
    bool in_place; /* the first store is in the memory of the first load */
    bool apart;    /* operands may be transposed, backwards or with gaps */
} random_case;

static char input[MOST_LOADS][ROOM * 16], output[2][MOST_STORES][ROOM * 16];

static int draw(int n)
{
    return (int)(random_bits() % (uint64_t)n);
}

/* A register of this type; -1: there is none. */
static int of_type(const random_case *c, int dtype)
{
    int found = -1, seen = 0;
    for (int k = 0; k < c->registers; k++)
        if (c->dtype[k] == dtype && draw(++seen) == 0)
            found = k;
    return found;
}

static void add(random_case *c, int op, int dtype, int to, int x, int y, int z)
{
    c->code[c->n++] = (oly_tile_instruction){.op = (uint16_t)op,
                                             .dtype = (uint8_t)dtype,
                                             .to = (uint8_t)to,
                                             .in = {(int16_t)x, (int16_t)y, (int16_t)z},
                                             .out = (int16_t)c->registers,
                                             .attribute = c->box.rank ? draw(c->box.rank + 1) - 1 : -1};
    c->dtype[c->registers++] = (uint8_t)to;
}

static void add_splat(random_case *c, int dtype)
{
    char elements[16];
    fill_with_specials(dtype, elements, 1);
    add(c, OLY_TILE_splat, dtype, dtype, -1, -1, -1);
    memcpy(&c->code[c->n - 1].value, elements, oly_dtype_size((oly_dtype)dtype));
}

static int a_type(const random_case *c)
{
    return c->types[draw(c->n_types)];
}

static bool is_complex(int dtype)
{
    return dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128;
}

static bool is_half(int dtype)
{
    return dtype == OLY_FLOAT16 || dtype == OLY_BFLOAT16;
}

/* Is code written for this conversion? */
static bool is_converted(int from, int to)
{
    bool real = is_half(from) || from == OLY_FLOAT32 || from == OLY_FLOAT64;
    bool whole = to >= OLY_INT8 && to <= OLY_UINT64;
    if (is_half(to) && from == OLY_FLOAT64)
        return false;
    if (from == OLY_COMPLEX128 || to == OLY_COMPLEX128)
        return false;
    if (from == OLY_COMPLEX64 || to == OLY_COMPLEX64)
        return from == to || from == OLY_FLOAT32 || to == OLY_FLOAT32;
    bool from_long = from == OLY_INT64 || from == OLY_UINT64;
    if (!is_avx512 && ((real && to == OLY_INT64) || (from_long && (to == OLY_FLOAT32 || is_half(to)))))
        return false;
    return !real || !whole || to == OLY_INT32 || to == OLY_INT64;
}

/* Of complex numbers x and y, or of floats that are parts of one; k: a bool, if there is one. */
static void add_complex(random_case *c, bool known, int x, int y, int k)
{
    static const uint16_t binary[] = {OLY_TILE_add, OLY_TILE_sub, OLY_TILE_mul},
                          part[] = {OLY_TILE_real, OLY_TILE_imag, OLY_TILE_abs};
    static const uint16_t unary[] = {OLY_TILE_neg, OLY_TILE_conj, OLY_TILE_square},
                          unknown[] = {OLY_TILE_exp, OLY_TILE_sin, OLY_TILE_sqrt};
    const bool doubles = c->dtype[x] == OLY_FLOAT64 || c->dtype[x] == OLY_COMPLEX128;
    const int number = doubles ? OLY_COMPLEX128 : OLY_COMPLEX64, real = doubles ? OLY_FLOAT64 : OLY_FLOAT32;
    if (c->dtype[x] == real)
        add(c, OLY_TILE_complex, real, number, x, y, -1);
    else if (!known && draw(2))
        add(c, OLY_TILE_div, number, number, x, y, -1);
    else if (!known)
        add(c, unknown[draw(COUNT(unknown))], number, number, x, -1, -1);
    else
        switch (draw(6)) {
        case 0: add(c, part[draw(COUNT(part))], number, real, x, -1, -1); break;
        case 1: add(c, unary[draw(COUNT(unary))], number, number, x, -1, -1); break;
        case 2:
            if (k >= 0)
                add(c, OLY_TILE_select, number, number, k, x, y);
            break;
        case 3:
            if (!is_avx512)
                add(c, draw(2) ? OLY_TILE_eq : OLY_TILE_ne, number, OLY_BOOL, x, y, -1);
            break;
        default: add(c, binary[draw(COUNT(binary))], number, number, x, y, -1);
        }
}

/* An operation that the generator does not know. */
static void add_unknown(random_case *c)
{
    static const uint16_t real[] = {OLY_TILE_exp, OLY_TILE_log,   OLY_TILE_sin, OLY_TILE_tanh,      OLY_TILE_sigmoid,
                                    OLY_TILE_tan, OLY_TILE_expm1, OLY_TILE_erf, OLY_TILE_round_away};
    static const uint16_t real_pair[] = {OLY_TILE_pow, OLY_TILE_atan2, OLY_TILE_rem, OLY_TILE_logaddexp};
    static const uint16_t whole_pair[] = {OLY_TILE_rem, OLY_TILE_shift_left,
                                          OLY_TILE_shift_right_arithmetic}; /* of short types */
    int dtype = a_type(c), x = of_type(c, dtype), y = of_type(c, dtype);
    bool wide = dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64, pair = draw(3) == 0;
    if (x < 0 || dtype == OLY_BOOL || (is_half(dtype) && pair))
        return;
    if (is_complex(dtype)) {
        add_complex(c, false, x, y, -1);
        return;
    }
    if (wide || is_half(dtype))
        add(c, pair ? real_pair[draw(COUNT(real_pair))] : real[draw(is_half(dtype) ? 5 : COUNT(real))], dtype, dtype, x,
            pair ? y : -1, -1);
    else if (pair)
        add(c, whole_pair[draw(oly_dtype_size((oly_dtype)dtype) < 4 ? COUNT(whole_pair) : 1)], dtype, dtype, x, y, -1);
    else
        add(c, OLY_TILE_population_count, dtype, dtype, x, -1, -1);
}

static void add_operation(random_case *c)
{
    static const uint16_t binary[] = {OLY_TILE_add, OLY_TILE_sub, OLY_TILE_mul, OLY_TILE_div, OLY_TILE_max,
                                      OLY_TILE_min, OLY_TILE_and, OLY_TILE_or,  OLY_TILE_xor};
    static const uint16_t shift[] = {OLY_TILE_shift_left, OLY_TILE_shift_right_logical,
                                     OLY_TILE_shift_right_arithmetic};
    static const uint16_t test[] = {OLY_TILE_eq, OLY_TILE_ne, OLY_TILE_lt, OLY_TILE_le, OLY_TILE_gt, OLY_TILE_ge};
    static const uint16_t unary[] = {OLY_TILE_neg,   OLY_TILE_abs,  OLY_TILE_sign,  OLY_TILE_sqrt,
                                     OLY_TILE_floor, OLY_TILE_ceil, OLY_TILE_round, OLY_TILE_square};
    int dtype = a_type(c), x = of_type(c, dtype), y = of_type(c, dtype), z = of_type(c, dtype);
    bool wide = dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64, real = wide || is_half(dtype), truth = dtype == OLY_BOOL;
    int to = a_type(c), op, k = of_type(c, OLY_BOOL);
    if (x < 0) {
        add_splat(c, dtype);
        return;
    }
    if (divided && draw(5) == 0)
        add_unknown(c);
    bool of_parts = to == (dtype == OLY_FLOAT32 ? OLY_COMPLEX64 : OLY_COMPLEX128) && wide && draw(2);
    if (of_parts || (is_complex(dtype) && draw(4))) {
        add_complex(c, true, x, y, k);
        return;
    }
    switch (is_complex(dtype) ? 6 : draw(9)) {
    case 0:
    case 1:
    case 2:
        op = binary[draw(COUNT(binary))];
        if ((op == OLY_TILE_div && !real) || (op >= OLY_TILE_and && real) || (op == OLY_TILE_sub && truth))
            op = OLY_TILE_add;
        if (!real && !truth && oly_dtype_size((oly_dtype)dtype) >= 4 && draw(3) == 0)
            op = shift[draw(oly_dtype_size((oly_dtype)dtype) < 8 ? COUNT(shift) : 2)]; /* AVX2 has not the last */
        add(c, op, dtype, dtype, x, y, -1);
        break;
    case 3: add(c, test[draw(COUNT(test))], dtype, OLY_BOOL, x, y, -1); break;
    case 4:
        op = truth ? OLY_TILE_logical_not : unary[draw(COUNT(unary))];
        if (!truth && !real)
            op = draw(3) ? draw(2) ? OLY_TILE_neg : OLY_TILE_square : OLY_TILE_abs;
        add(c, op, dtype, dtype, x, -1, -1);
        break;
    case 5:
        if (k >= 0)
            add(c, OLY_TILE_select, dtype, dtype, k, x, y);
        break;
    case 6: add(c, OLY_TILE_convert, dtype, is_converted(dtype, to) ? to : dtype, x, -1, -1); break;
    case 7:
        if (wide)
            add(c, OLY_TILE_fma, dtype, dtype, x, y, z);
        break;
    default:
        if (oly_dtype_size((oly_dtype)dtype) >= 4 && c->box.rank)
            add(c, OLY_TILE_iota, dtype, dtype, -1, -1, -1);
    }
}

static void draw_box(random_case *c)
{
    static const int64_t rows[] = {8, 13, 16, 31, 64, 65, 200, 1000};
    int64_t n = 1;
    bool is_short = (c->apart || divided) && draw(2) == 0; /* the last dimension is, and another is not */
    bool one = draw(10) == 0;                              /* element */
    c->box = (oly_tile_box){.rank = one ? draw(3) : is_short ? 2 + draw(2) : 1 + draw(3)};
    int longest = is_short && c->box.rank > 1 ? draw(c->box.rank - 1) : c->box.rank - 1;
    for (int d = c->box.rank - 1; d >= 0; d--) {
        c->box.extent[d] = one            ? 1
                           : d == longest ? rows[draw(n > 9 ? 5 : COUNT(rows))] + draw(9)
                                          : 1 + draw(n > 500 ? 3 : 9);
        c->box.origin[d] = draw(20) - 5;
        c->box.whole[d] = c->box.extent[d] + 30;
        n *= c->box.extent[d];
    }
}

static int n_known; /* programs that were run again */

/* Dimensions in any order in memory, some backwards, with gaps. */
static oly_tile_operand apart_in(const random_case *c, char *memory, int dtype, bool store)
{
    oly_tile_operand o = {.base = memory};
    int order[OLY_MAX_RANK], rank = c->box.rank;
    int64_t room = ROOM, stride = draw(3) ? 1 : 1 + draw(3), first = 0;
    for (int d = 0; d < rank; d++)
        room /= c->box.extent[d] + 1;
    stride = stride < room ? stride : 1;
    for (int d = 0; d < rank; d++) {
        int k = draw(d + 1);
        order[d] = order[k];
        order[k] = d;
    }
    for (int k = 0; k < rank; k++) {
        int d = order[k];
        o.stride[d] = draw(4) ? stride : -stride;
        first += o.stride[d] < 0 ? (c->box.extent[d] - 1) * stride : 0;
        stride *= c->box.extent[d] + (room > 0 ? draw(2) : 0);
        if (!store && draw(5) == 0 && o.stride[d] > 0)
            o.stride[d] = 0;
    }
    assert_true(stride <= ROOM);
    o.base += first * (int64_t)oly_dtype_size((oly_dtype)dtype);
    return o;
}

/* Padded rows, or one element for all of a dimension. */
static oly_tile_operand operand_in(const random_case *c, char *memory, int dtype, bool store)
{
    if (c->apart && draw(3) == 0)
        return apart_in(c, memory, dtype, store);
    oly_tile_operand o = {.base = memory};
    int64_t stride = 1;
    int padding = (c->apart || divided) && draw(3) ? 0 : draw(3); /* without, rows may go along several dimensions */
    for (int d = c->box.rank - 1; d >= 0; d--) {
        o.stride[d] = stride;
        stride *= c->box.extent[d] + padding;
        if (!store && draw(c->apart || divided ? 3 : 5) == 0)
            o.stride[d] = 0;
    }
    o.base += (size_t)draw(4) * oly_dtype_size((oly_dtype)dtype);
    return o;
}

static void draw_case(random_case *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    state = seed * 0x9e3779b97f4a7c15u + 1;
    random_bits();
    c->apart = apart;
    draw_box(c);
    const int n_types = divided ? COUNT(types) : KNOWN_TYPES;
    c->n_types = 1 + draw(draw(4) ? 4 : n_types);
    for (int k = 0; k < c->n_types; k++)
        c->types[k] = types[draw(n_types)];
    if (divided && draw(4) == 0) {
        c->n_types = 2;
        c->types[0] = OLY_COMPLEX128;
        c->types[1] = OLY_FLOAT64;
    }
    int loads = 1 + draw(MOST_LOADS), stores = 1 + draw(MOST_STORES), operations = 2 + draw(MOST_OPERATIONS - 2);
    for (int l = 0; l < loads; l++) {
        int dtype = a_type(c);
        c->load_dtype[l] = c->dtype[c->registers] = (uint8_t)dtype;
        c->load_register[l] = (int16_t)c->registers++;
        fill_with_specials(dtype, input[l], ROOM);
        c->loads[l] = operand_in(c, input[l], dtype, false);
    }
    while (c->n < operations)
        add_operation(c);
    for (int s = 0; s < stores; s++) {
        c->store_register[s] = (int16_t)(c->registers - 1 - draw(c->registers < 6 ? c->registers : 6));
        c->store_dtype[s] = c->dtype[c->store_register[s]];
        c->stores[s] = operand_in(c, output[0][s], c->store_dtype[s], true);
    }
    c->in_place = draw(3) == 0 && c->store_dtype[0] == c->load_dtype[0];
    if (c->in_place)
        c->loads[0] = c->stores[0]; /* which may not overlap itself: stores have no stride of 0 */
    c->program = (oly_tile_program){c->n,          c->code,           loads,          stores,      c->load_register,
                                    c->load_dtype, c->store_register, c->store_dtype, c->registers};
}

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
    if (is_half(dtype)) {
        const int infinity = dtype == OLY_FLOAT16 ? 0x7c00 : 0x7f80;
        uint16_t x, y;
        memcpy(&x, a + 2 * i, 2), memcpy(&y, b + 2 * i, 2);
        return x == y || ((x & 0x7fff) > infinity && (y & 0x7fff) > infinity);
    }
    size_t size = (oly_dtype_size)((oly_dtype)dtype); /* without noting the place of the call, for every element */
    return memcmp(a + size * i, b + size * i, size) == 0;
}

/* As steps run that are small: the second time without a search. */
static void run_noting(random_case *c)
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
    memset(output[1], 0xee, sizeof output[1]);
    assert_true(oly_group_run_known(&known, first));
    n_known++;
}

static void compare_case(random_case *c, uint64_t seed)
{
    int chunks = 1 + (draw(4) ? draw(4) : draw(70));
    memset(output, 0xee, sizeof output);
    for (int way = 0; way < 2 && c->in_place; way++)
        memcpy(output[way][0], input[0], sizeof input[0]);
    oly_tile_run(&c->program, &c->box, c->loads, c->stores, 0, 1);
    for (int s = 0; s < c->program.n_stores; s++)
        c->stores[s].base += output[1][s] - output[0][s];
    if (c->in_place)
        c->loads[0].base = c->stores[0].base;
    if (chunks == 1)
        run_noting(c);
    for (int k = 0; k < chunks && chunks > 1; k++)
        oly_group_run(&c->program, &c->box, c->loads, c->stores, k, chunks);
    for (int s = 0; s < c->program.n_stores; s++) {
        if (memcmp(output[0][s], output[1][s], sizeof output[0][s]) == 0)
            continue;
        for (size_t i = 0, n = (size_t)ROOM * 16 / oly_dtype_size((oly_dtype)c->store_dtype[s]); i < n; i++)
            if (!same(c->store_dtype[s], output[0][s], output[1][s], i)) {
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
        is_avx512 = strcmp(instruction_sets[k], "avx512") == 0;
        oly_group_forget();
        if (oly_code_available())
            check();
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    is_avx512 = strcmp(oly_kernels_isa(), "avx512") == 0;
    oly_group_forget();
}

/* How many programs were compiled, refused and run; COMPILED_CASES=first,last: others. */
static oly_group_counts compare_cases(unsigned long last)
{
    oly_code_may_decline = false;
    static random_case c;
    unsigned long first = 1;
    const char *cases = getenv("COMPILED_CASES");
    if (cases)
        sscanf(cases, "%lu,%lu", &first, &last);
    int64_t before = oly_group_compile_after(0);
    oly_group_counts start = oly_group_counted();
    for (uint64_t seed = first; seed <= last; seed++) {
        draw_case(&c, seed);
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
    apart = true;
    oly_group_counts n = compare_cases(1200);
    apart = false;
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
    static random_case c;
    int64_t before = oly_group_compile_after(0);
    bool used = oly_code_use_fp16(false);
    oly_group_forget();
    for (uint64_t seed = 1; seed <= 200; seed++) {
        draw_case(&c, seed);
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
    divided = true;
    oly_group_counts n = compare_cases(600);
    apart = true; /* of which some have operands that kernels cannot read */
    compare_cases(400);
    divided = apart = false;
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
        x[i] = (float)(i - ELEMENTS / 2) * 0.01f;
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
    for (int k = 0; k < COUNT(test) && type == OLY_COMPLEX64 && !is_avx512; k++) {
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
    int kind = type == OLY_BOOL ? 1 : type == OLY_COMPLEX64 ? 16 : is_half(type) ? 8 : wide ? 4 : 2;
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
    for (int k = 0; k < KNOWN_TYPES; k++) {
        s->to = types[k];
        if (is_converted(type, s->to))
            check_lengths(s);
    }
}

static void check_operations(void)
{
    single s = {
        {before_the_end(), before_the_end(), before_the_end()}, {before_the_end(), before_the_end()}, 0, 0, 0, 0};
    int64_t before = oly_group_compile_after(0);
    oly_group_counts start = oly_group_counted();
    for (int k = 0; k < KNOWN_TYPES; k++)
        check_operations_of(&s, types[k]);
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
    static random_case c;
    int64_t before = oly_group_compile_after(0);
    for (uint64_t seed = 1; seed <= 150; seed++) {
        draw_case(&c, seed);
        double work = c.n;
        for (int d = 0; d < c.box.rank; d++)
            work *= (double)c.box.extent[d];
        oly_group_forget();
        oly_group_compile_after(1 + (int64_t)(work * draw(100) / 100));
        compare_case(&c, seed);
    }
    oly_group_compile_after(before);
}

static void chunks_fit_whenever_code_is_ready(void **unused)
{
    (void)unused;
    on_each_with_code(check_chunks);
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
    static random_case c;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    oly_group_forget();
    oly_group_compile_after(0);
    oly_group_counts start = oly_group_counted();
    for (uint64_t seed = 1; seed <= 50; seed++) {
        draw_case(&c, seed);
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
        cmocka_unit_test(chunks_fit_whenever_code_is_ready),  cmocka_unit_test(denied_memory_is_no_error)};
    if (oly_kernels_choose("") != OLY_OK)
        return 1;
    return CHECK_MAIN(tests);
}
