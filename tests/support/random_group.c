/* SPDX-License-Identifier: BSD-3-Clause */
/* See random_group.h. */
#include "random_group.h"
#include "check_kernels.h"

const uint8_t random_group_types[GROUP_TYPES] = {OLY_BOOL,    OLY_INT32,   OLY_UINT32,   OLY_INT64,     OLY_UINT64,
                                                 OLY_FLOAT32, OLY_FLOAT64, OLY_INT8,     OLY_INT16,     OLY_UINT8,
                                                 OLY_UINT16,  OLY_FLOAT16, OLY_BFLOAT16, OLY_COMPLEX64, OLY_COMPLEX128};

struct random_group_draws random_group_draws;
char random_group_input[MOST_LOADS][ROOM * 16], random_group_output[2][MOST_STORES][ROOM * 16];

int random_group_number(int n)
{
    return (int)(random_bits() % (uint64_t)n);
}

/* A register of this type; -1: there is none. */
static int of_type(const random_group *c, int dtype)
{
    int found = -1, seen = 0;
    for (int k = 0; k < c->registers; k++)
        if (c->dtype[k] == dtype && random_group_number(++seen) == 0)
            found = k;
    return found;
}

static void add(random_group *c, int op, int dtype, int to, int x, int y, int z)
{
    c->code[c->n++] = (oly_tile_instruction){.op = (uint16_t)op,
                                             .dtype = (uint8_t)dtype,
                                             .to = (uint8_t)to,
                                             .in = {(int16_t)x, (int16_t)y, (int16_t)z},
                                             .out = (int16_t)c->registers,
                                             .attribute = c->box.rank ? random_group_number(c->box.rank + 1) - 1 : -1};
    c->dtype[c->registers++] = (uint8_t)to;
}

static void add_splat(random_group *c, int dtype)
{
    char elements[16];
    fill_with_specials(dtype, elements, 1);
    add(c, OLY_TILE_splat, dtype, dtype, -1, -1, -1);
    memcpy(&c->code[c->n - 1].value, elements, oly_dtype_size((oly_dtype)dtype));
}

static int a_type(const random_group *c)
{
    return c->types[random_group_number(c->n_types)];
}

static bool is_complex(int dtype)
{
    return dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128;
}

bool random_group_is_half(int dtype)
{
    return dtype == OLY_FLOAT16 || dtype == OLY_BFLOAT16;
}

/* Is code written for this conversion? */
bool random_group_is_converted(int from, int to)
{
    bool real = random_group_is_half(from) || from == OLY_FLOAT32 || from == OLY_FLOAT64;
    bool whole = to >= OLY_INT8 && to <= OLY_UINT64;
    if (random_group_is_half(to) && from == OLY_FLOAT64)
        return false;
    if (from == OLY_COMPLEX128 || to == OLY_COMPLEX128)
        return false;
    if (from == OLY_COMPLEX64 || to == OLY_COMPLEX64)
        return from == to || from == OLY_FLOAT32 || to == OLY_FLOAT32;
    bool from_long = from == OLY_INT64 || from == OLY_UINT64;
    if (!random_group_draws.avx512 &&
        ((real && to == OLY_INT64) || (from_long && (to == OLY_FLOAT32 || random_group_is_half(to)))))
        return false;
    return !real || !whole || to == OLY_INT32 || to == OLY_INT64;
}

/* Of complex numbers x and y, or of floats that are parts of one; k: a bool, if there is one. */
static void add_complex(random_group *c, bool known, int x, int y, int k)
{
    static const uint16_t binary[] = {OLY_TILE_add, OLY_TILE_sub, OLY_TILE_mul},
                          part[] = {OLY_TILE_real, OLY_TILE_imag, OLY_TILE_abs};
    static const uint16_t unary[] = {OLY_TILE_neg, OLY_TILE_conj, OLY_TILE_square},
                          unknown[] = {OLY_TILE_exp, OLY_TILE_sin, OLY_TILE_sqrt};
    const bool doubles = c->dtype[x] == OLY_FLOAT64 || c->dtype[x] == OLY_COMPLEX128;
    const int number = doubles ? OLY_COMPLEX128 : OLY_COMPLEX64, real = doubles ? OLY_FLOAT64 : OLY_FLOAT32;
    if (c->dtype[x] == real)
        add(c, OLY_TILE_complex, real, number, x, y, -1);
    else if (!known && random_group_number(2))
        add(c, OLY_TILE_div, number, number, x, y, -1);
    else if (!known)
        add(c, unknown[random_group_number(COUNT(unknown))], number, number, x, -1, -1);
    else
        switch (random_group_number(6)) {
        case 0: add(c, part[random_group_number(COUNT(part))], number, real, x, -1, -1); break;
        case 1: add(c, unary[random_group_number(COUNT(unary))], number, number, x, -1, -1); break;
        case 2:
            if (k >= 0)
                add(c, OLY_TILE_select, number, number, k, x, y);
            break;
        case 3:
            if (!random_group_draws.avx512)
                add(c, random_group_number(2) ? OLY_TILE_eq : OLY_TILE_ne, number, OLY_BOOL, x, y, -1);
            break;
        default: add(c, binary[random_group_number(COUNT(binary))], number, number, x, y, -1);
        }
}

/* An operation that the generator does not know. */
static void add_unknown(random_group *c)
{
    static const uint16_t real[] = {OLY_TILE_exp, OLY_TILE_log,   OLY_TILE_sin, OLY_TILE_tanh,      OLY_TILE_sigmoid,
                                    OLY_TILE_tan, OLY_TILE_expm1, OLY_TILE_erf, OLY_TILE_round_away};
    static const uint16_t real_pair[] = {OLY_TILE_pow, OLY_TILE_atan2, OLY_TILE_rem, OLY_TILE_logaddexp};
    static const uint16_t whole_pair[] = {OLY_TILE_rem, OLY_TILE_shift_left,
                                          OLY_TILE_shift_right_arithmetic}; /* of short types */
    int dtype = a_type(c), x = of_type(c, dtype), y = of_type(c, dtype);
    bool wide = dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64, pair = random_group_number(3) == 0;
    if (x < 0 || dtype == OLY_BOOL || (random_group_is_half(dtype) && pair))
        return;
    if (is_complex(dtype)) {
        add_complex(c, false, x, y, -1);
        return;
    }
    if (wide || random_group_is_half(dtype))
        add(c,
            pair ? real_pair[random_group_number(COUNT(real_pair))]
                 : real[random_group_number(random_group_is_half(dtype) ? 5 : COUNT(real))],
            dtype, dtype, x, pair ? y : -1, -1);
    else if (pair)
        add(c, whole_pair[random_group_number(oly_dtype_size((oly_dtype)dtype) < 4 ? COUNT(whole_pair) : 1)], dtype,
            dtype, x, y, -1);
    else
        add(c, OLY_TILE_population_count, dtype, dtype, x, -1, -1);
}

static void add_operation(random_group *c)
{
    static const uint16_t binary[] = {OLY_TILE_add, OLY_TILE_sub, OLY_TILE_mul, OLY_TILE_div, OLY_TILE_max,
                                      OLY_TILE_min, OLY_TILE_and, OLY_TILE_or,  OLY_TILE_xor};
    static const uint16_t shift[] = {OLY_TILE_shift_left, OLY_TILE_shift_right_logical,
                                     OLY_TILE_shift_right_arithmetic};
    static const uint16_t test[] = {OLY_TILE_eq, OLY_TILE_ne, OLY_TILE_lt, OLY_TILE_le, OLY_TILE_gt, OLY_TILE_ge};
    static const uint16_t unary[] = {OLY_TILE_neg,   OLY_TILE_abs,  OLY_TILE_sign,  OLY_TILE_sqrt,
                                     OLY_TILE_floor, OLY_TILE_ceil, OLY_TILE_round, OLY_TILE_square};
    int dtype = a_type(c), x = of_type(c, dtype), y = of_type(c, dtype), z = of_type(c, dtype);
    bool wide = dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64, real = wide || random_group_is_half(dtype),
         truth = dtype == OLY_BOOL;
    int to = a_type(c), op, k = of_type(c, OLY_BOOL);
    if (x < 0) {
        add_splat(c, dtype);
        return;
    }
    if (random_group_draws.divided && random_group_number(5) == 0)
        add_unknown(c);
    bool of_parts = to == (dtype == OLY_FLOAT32 ? OLY_COMPLEX64 : OLY_COMPLEX128) && wide && random_group_number(2);
    if (of_parts || (is_complex(dtype) && random_group_number(4))) {
        add_complex(c, true, x, y, k);
        return;
    }
    switch (is_complex(dtype) ? 6 : random_group_number(9)) {
    case 0:
    case 1:
    case 2:
        op = binary[random_group_number(COUNT(binary))];
        if ((op == OLY_TILE_div && !real) || (op >= OLY_TILE_and && real) || (op == OLY_TILE_sub && truth))
            op = OLY_TILE_add;
        if (!real && !truth && oly_dtype_size((oly_dtype)dtype) >= 4 && random_group_number(3) == 0)
            op = shift[random_group_number(oly_dtype_size((oly_dtype)dtype) < 8 ? COUNT(shift)
                                                                                : 2)]; /* AVX2 has not the last */
        add(c, op, dtype, dtype, x, y, -1);
        break;
    case 3: add(c, test[random_group_number(COUNT(test))], dtype, OLY_BOOL, x, y, -1); break;
    case 4:
        op = truth ? OLY_TILE_logical_not : unary[random_group_number(COUNT(unary))];
        if (!truth && !real)
            op = random_group_number(3) ? random_group_number(2) ? OLY_TILE_neg : OLY_TILE_square : OLY_TILE_abs;
        add(c, op, dtype, dtype, x, -1, -1);
        break;
    case 5:
        if (k >= 0)
            add(c, OLY_TILE_select, dtype, dtype, k, x, y);
        break;
    case 6: add(c, OLY_TILE_convert, dtype, random_group_is_converted(dtype, to) ? to : dtype, x, -1, -1); break;
    case 7:
        if (wide)
            add(c, OLY_TILE_fma, dtype, dtype, x, y, z);
        break;
    default:
        if (oly_dtype_size((oly_dtype)dtype) >= 4 && c->box.rank)
            add(c, OLY_TILE_iota, dtype, dtype, -1, -1, -1);
    }
}

static void draw_box(random_group *c)
{
    static const int64_t rows[] = {8, 13, 16, 31, 64, 65, 200, 1000};
    int64_t n = 1;
    bool is_short = (c->apart || random_group_draws.divided) &&
                    random_group_number(2) == 0; /* the last dimension is, and another is not */
    bool one = random_group_number(10) == 0;     /* element */
    c->box = (oly_tile_box){.rank = one        ? random_group_number(3)
                                    : is_short ? 2 + random_group_number(2)
                                               : 1 + random_group_number(3)};
    int longest = is_short && c->box.rank > 1 ? random_group_number(c->box.rank - 1) : c->box.rank - 1;
    for (int d = c->box.rank - 1; d >= 0; d--) {
        c->box.extent[d] = one            ? 1
                           : d == longest ? rows[random_group_number(n > 9 ? 5 : COUNT(rows))] + random_group_number(9)
                                          : 1 + random_group_number(n > 500 ? 3 : 9);
        c->box.origin[d] = random_group_number(20) - 5;
        c->box.whole[d] = c->box.extent[d] + 30;
        n *= c->box.extent[d];
    }
}

/* Dimensions in any order in memory, some backwards, with gaps. */
static oly_tile_operand apart_in(const random_group *c, char *memory, int dtype, bool store)
{
    oly_tile_operand o = {.base = memory};
    int order[OLY_MAX_RANK], rank = c->box.rank;
    int64_t room = ROOM, stride = random_group_number(3) ? 1 : 1 + random_group_number(3), first = 0;
    for (int d = 0; d < rank; d++)
        room /= c->box.extent[d] + 1;
    stride = stride < room ? stride : 1;
    for (int d = 0; d < rank; d++) {
        int k = random_group_number(d + 1);
        order[d] = order[k];
        order[k] = d;
    }
    for (int k = 0; k < rank; k++) {
        int d = order[k];
        o.stride[d] = random_group_number(4) ? stride : -stride;
        first += o.stride[d] < 0 ? (c->box.extent[d] - 1) * stride : 0;
        stride *= c->box.extent[d] + (room > 0 ? random_group_number(2) : 0);
        if (!store && random_group_number(5) == 0 && o.stride[d] > 0)
            o.stride[d] = 0;
    }
    assert_true(stride <= ROOM);
    o.base += first * (int64_t)oly_dtype_size((oly_dtype)dtype);
    return o;
}

/* Padded rows, or one element for all of a dimension. */
static oly_tile_operand operand_in(const random_group *c, char *memory, int dtype, bool store)
{
    if (c->apart && random_group_number(3) == 0)
        return apart_in(c, memory, dtype, store);
    oly_tile_operand o = {.base = memory};
    int64_t stride = 1;
    int padding = (c->apart || random_group_draws.divided) && random_group_number(3)
                      ? 0
                      : random_group_number(3); /* without, rows may go along several dimensions */
    for (int d = c->box.rank - 1; d >= 0; d--) {
        o.stride[d] = stride;
        stride *= c->box.extent[d] + padding;
        if (!store && random_group_number(c->apart || random_group_draws.divided ? 3 : 5) == 0)
            o.stride[d] = 0;
    }
    o.base += (size_t)random_group_number(4) * oly_dtype_size((oly_dtype)dtype);
    return o;
}

void random_group_draw(random_group *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    state = seed * 0x9e3779b97f4a7c15u + 1;
    random_bits();
    c->apart = random_group_draws.apart;
    draw_box(c);
    const int n_types = random_group_draws.divided ? GROUP_TYPES : GROUP_TYPES_WITH_CODE;
    c->n_types = 1 + random_group_number(random_group_number(4) ? 4 : n_types);
    for (int k = 0; k < c->n_types; k++)
        c->types[k] = random_group_types[random_group_number(n_types)];
    if (random_group_draws.divided && random_group_number(4) == 0) {
        c->n_types = 2;
        c->types[0] = OLY_COMPLEX128;
        c->types[1] = OLY_FLOAT64;
    }
    int loads = 1 + random_group_number(MOST_LOADS), stores = 1 + random_group_number(MOST_STORES),
        operations = 2 + random_group_number(MOST_OPERATIONS - 2);
    for (int l = 0; l < loads; l++) {
        int dtype = a_type(c);
        c->load_dtype[l] = c->dtype[c->registers] = (uint8_t)dtype;
        c->load_register[l] = (int16_t)c->registers++;
        fill_with_specials(dtype, random_group_input[l], ROOM);
        c->loads[l] = operand_in(c, random_group_input[l], dtype, false);
    }
    while (c->n < operations)
        add_operation(c);
    for (int s = 0; s < stores; s++) {
        c->store_register[s] = (int16_t)(c->registers - 1 - random_group_number(c->registers < 6 ? c->registers : 6));
        c->store_dtype[s] = c->dtype[c->store_register[s]];
        c->stores[s] = operand_in(c, random_group_output[0][s], c->store_dtype[s], true);
    }
    c->in_place = random_group_number(3) == 0 && c->store_dtype[0] == c->load_dtype[0];
    if (c->in_place)
        c->loads[0] = c->stores[0]; /* which may not overlap itself: stores have no stride of 0 */
    c->chunks = 1 + (random_group_number(4) ? random_group_number(4) : random_group_number(70));
    c->program = (oly_tile_program){c->n,          c->code,           loads,          stores,      c->load_register,
                                    c->load_dtype, c->store_register, c->store_dtype, c->registers};
}
