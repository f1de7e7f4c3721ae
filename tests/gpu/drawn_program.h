/* SPDX-License-Identifier: BSD-3-Clause */
/* Every row of the elementwise operations, and random tile programs over random boxes, for tests of kernels. Included by tests/gpu/test_gpu_*.c. */
#ifndef DRAWN_PROGRAM_H
#define DRAWN_PROGRAM_H
#include "kernel_launcher.h"

/* -- every operation on every type ------------------------------------------------------------------------------------------ */

typedef struct row {
    const char *name;
    int op, operands;
    char result; /* s: same, b: bool, p: part, j: joined */
    bool types[OLY_N_DTYPES];
} row;

#define T_BOOLS         [OLY_BOOL] = 1
#define T_INTEGERS      [OLY_INT8... OLY_UINT64] = 1
#define T_FLOATS        [OLY_FLOAT8_E4M3FN... OLY_FLOAT64] = 1
#define T_COMPLEX       [OLY_COMPLEX64... OLY_COMPLEX128] = 1
#define OLY_BOOLS       T_BOOLS
#define OLY_INTEGERS    T_INTEGERS
#define OLY_FLOATS      T_FLOATS
#define OLY_COMPLEX     T_COMPLEX
#define OLY_NUMBERS     T_INTEGERS, T_FLOATS
#define OLY_ANY         T_BOOLS, T_INTEGERS, T_FLOATS
#define OLY_ALL_NUMBERS T_INTEGERS, T_FLOATS, T_COMPLEX
#define OLY_ALL         T_BOOLS, T_INTEGERS, T_FLOATS, T_COMPLEX
#define OLY_INEXACT     T_FLOATS, T_COMPLEX
#define OLY_BITS        T_BOOLS, T_INTEGERS
#define OLY_EVERY_FLOAT T_FLOATS
__attribute__((unused)) static const row rows[] = {
#define OLY_TILE_UNARY(name, types, ...)      {#name, OLY_TILE_##name, 1, 's', {types}},
#define OLY_TILE_PART(name, types, ...)       {#name, OLY_TILE_##name, 1, 'p', {types}},
#define OLY_TILE_TEST(name, types, ...)       {#name, OLY_TILE_##name, 1, 'b', {types}},
#define OLY_TILE_BINARY(name, types, ...)     {#name, OLY_TILE_##name, 2, 's', {types}},
#define OLY_TILE_FAR_BINARY(name, types, ...) {#name, OLY_TILE_##name, 2, 's', {types}},
#define OLY_TILE_COMPARE(name, types, ...)    {#name, OLY_TILE_##name, 2, 'b', {types}},
#define OLY_TILE_JOIN(name, types, ...)       {#name, OLY_TILE_##name, 2, 'j', {types}},
#include "elementwise.def"
#include "elementwise_math.def"
};

static inline oly_dtype result_of(const row *r, oly_dtype d)
{
    switch (r->result) {
    case 'b': return OLY_BOOL;
    case 'p': return d == OLY_COMPLEX64 ? OLY_FLOAT32 : d == OLY_COMPLEX128 ? OLY_FLOAT64 : d;
    case 'j': return d == OLY_FLOAT64 ? OLY_COMPLEX128 : OLY_COMPLEX64;
    default: return d;
    }
}

/* -- random programs over random boxes --------------------------------------------------------------------------------------- */

typedef struct drawn {
    oly_tile_instruction code[24];
    int16_t load_at[4], store_at[2];
    uint8_t load_types[4], store_types[2], type[32];
    oly_tile_program program;
    oly_tile_box box;
    bool short_rows; /* without gaps, and loads that are the same along each */
    oly_tile_operand loads[4], stores[2], others[2];
    void *memory[8];
    int64_t elements[8];
} drawn;

static inline void draw_program(drawn *g)
{
    static const uint8_t kinds[] = {OLY_FLOAT32, OLY_FLOAT32, OLY_BFLOAT16,  OLY_FLOAT64,
                                    OLY_INT32,   OLY_INT8,    OLY_COMPLEX64, OLY_BOOL};
    int reg = 0, n_loads = 1 + random_below(3), n = 2 + random_below(18);
    uint8_t kind = kinds[random_below(sizeof kinds)];
    for (int k = 0; k < n_loads; k++, reg++) {
        g->load_at[k] = (int16_t)reg;
        g->load_types[k] = g->type[reg] = random_below(4) ? kind : kinds[random_below(sizeof kinds)];
    }
    for (int k = 0; k < n; k++, reg++) {
        oly_tile_instruction *c = &g->code[k];
        *c = (oly_tile_instruction){.in = {-1, -1, -1}, .out = (int16_t)reg, .to = kind, .dtype = kind};
        int x = random_below(reg), y = random_below(reg), choice = random_below(8);
        if (choice == 0) {
            c->op = OLY_TILE_splat;
            random_element((oly_dtype)kind, &c->value);
        } else if (choice == 1 && kind != OLY_BOOL) {
            c->op = OLY_TILE_iota;
            c->attribute = random_below(g->box.rank + 1) - 1;
        } else if (choice == 2 && g->type[x] != OLY_BOOL && g->type[x] == g->type[y]) {
            *c = (oly_tile_instruction){.op = OLY_TILE_lt,
                                        .dtype = g->type[x],
                                        .to = OLY_BOOL,
                                        .in = {(int16_t)x, (int16_t)y, -1},
                                        .out = (int16_t)reg};
        } else if (choice == 3 && g->type[x] == OLY_BOOL && g->type[y] == g->type[0]) {
            *c = (oly_tile_instruction){.op = OLY_TILE_select,
                                        .dtype = g->type[0],
                                        .to = g->type[0],
                                        .in = {(int16_t)x, (int16_t)y, 0},
                                        .out = (int16_t)reg};
        } else if (choice < 6 && g->type[x] == g->type[y]) {
            static const uint16_t ops[] = {OLY_TILE_add, OLY_TILE_mul, OLY_TILE_max, OLY_TILE_min};
            *c = (oly_tile_instruction){.op = ops[random_below(4)],
                                        .dtype = g->type[x],
                                        .to = g->type[x],
                                        .in = {(int16_t)x, (int16_t)y, -1},
                                        .out = (int16_t)reg};
        } else {
            *c = (oly_tile_instruction){.op = OLY_TILE_convert,
                                        .dtype = g->type[x],
                                        .to = kind,
                                        .in = {(int16_t)x, -1, -1},
                                        .out = (int16_t)reg};
        }
        g->type[reg] = c->to;
    }
    int n_stores = 1 + random_below(2);
    for (int k = 0; k < n_stores; k++) {
        g->store_at[k] = (int16_t)(reg - 1 - k);
        g->store_types[k] = g->type[reg - 1 - k];
    }
    g->program =
        (oly_tile_program){n, g->code, n_loads, n_stores, g->load_at, g->load_types, g->store_at, g->store_types, reg};
}

/* An operand of the box: dense in some order of its dimensions, with gaps, or repeated along some. */
static inline void draw_operand(drawn *g, int k, oly_dtype dtype, bool store, oly_tile_operand *o,
                                oly_tile_operand *other)
{
    int64_t span = 1;
    int order[3] = {0, 1, 2}, rank = g->box.rank;
    if (random_below(3) == 0 && !g->short_rows)
        for (int i = 0; i < rank; i++) {
            int j = random_below(rank), t = order[i];
            order[i] = order[j], order[j] = t;
        }
    memset(o, 0, sizeof *o);
    bool gaps = random_below(4) == 0 && !g->short_rows;
    for (int i = rank - 1; i >= 0; i--) {
        bool repeated = !store && (g->short_rows ? k % 2 && i == rank - 1 : random_below(5) == 0);
        o->stride[order[i]] = repeated ? 0 : span;
        if (!repeated)
            span *= g->box.extent[order[i]] + (gaps ? random_below(3) : 0);
    }
    g->elements[k] = span;
    o->base = g->memory[k] = random_array(dtype, span);
    if (store) {
        *other = *o;
        other->base = g->memory[k + 2] = malloc((size_t)(span + 8) * oly_dtype_size(dtype));
        memcpy(other->base, o->base, (size_t)span * oly_dtype_size(dtype));
    }
}

static inline void draw(drawn *g)
{
    memset(g, 0, sizeof *g);
    g->box.rank = 1 + random_below(3);
    g->short_rows = random_below(5) == 0;
    bool whole = random_below(4) == 0 &&
                 !g->short_rows; /* extents that threads can divide: of vectors, and of transposed operands */
    for (int d = 0; d < g->box.rank; d++) {
        g->box.extent[d] = 1 + random_below(d == g->box.rank - 1 ? (g->short_rows ? 13 : 200) : 12);
        if (whole)
            g->box.extent[d] = 8 * (1 + random_below(2)) + (d == g->box.rank - 1 ? 24 : 0);
        g->box.origin[d] = random_below(5);
        g->box.whole[d] = g->box.extent[d] + 10;
    }
    draw_program(g);
    for (int k = 0; k < g->program.n_loads; k++)
        draw_operand(g, k, (oly_dtype)g->load_types[k], false, &g->loads[k], NULL);
    for (int k = 0; k < g->program.n_stores; k++)
        draw_operand(g, 4 + k, (oly_dtype)g->store_types[k], true, &g->stores[k], &g->others[k]);
}

static inline void free_drawn(drawn *g)
{
    for (int k = 0; k < 8; k++)
        free(g->memory[k]);
}
#endif
