/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise programs on a handful of contiguous elements: no tiles, just the instructions one after the other. A call
 * on four elements is all overhead, and the general interpreter (tile.c) spends most of it on deciding how to split the
 * box. Compiled once per instruction set; tile.c calls it first. */
#include "tile_small.h"
#include <string.h>

enum { MOST_ELEMENTS = 64, MOST_RESULTS = 1024 /* elements of all instructions */, LARGEST = 16 /* bytes of one */ };

/* Is the operand one element for the whole box? If not, it must be dense (is_dense). */
static bool is_one_element(const oly_tile_box *box, const oly_tile_operand *o)
{
    for (int d = 0; d < box->rank; d++)
        if (o->stride[d] != 0 && box->extent[d] > 1)
            return false;
    return true;
}

static bool is_dense(const oly_tile_box *box, const oly_tile_operand *o)
{
    int64_t stride = 1;
    for (int d = box->rank - 1; d >= 0; d--) {
        if (o->stride[d] != stride && box->extent[d] > 1)
            return false;
        stride *= box->extent[d];
    }
    return true;
}

bool OLY_ISA_NAME(oly_tile_run_small)(const oly_tile_program *program, const oly_tile_box *box,
                                      const oly_tile_operand *loads, const oly_tile_operand *stores)
{
    int64_t n = 1;
    const char *at[OLY_TILE_REGISTERS];
    bool one[OLY_TILE_REGISTERS]; /* one element stands for all */
    char memory[(MOST_RESULTS + MOST_ELEMENTS) * LARGEST] __attribute__((aligned(16))), *to = memory;
    for (int d = 0; d < box->rank; d++)
        n *= box->extent[d];
    if (n > MOST_ELEMENTS || n * program->n_instructions > MOST_RESULTS)
        return false;
    for (int s = 0; s < program->n_stores; s++)
        if (!is_dense(box, &stores[s]))
            return false;
    for (int l = 0; l < program->n_loads; l++) {
        int reg = program->load_register[l];
        at[reg] = loads[l].base;
        one[reg] = is_one_element(box, &loads[l]);
        if (!one[reg] && !is_dense(box, &loads[l]))
            return false;
        for (int s = program->n_stores > 1 ? 0 : 1; s < program->n_stores; s++)
            if (program->store_register[s] == reg) /* it may be in memory that another store writes */
                return false;
    }
    for (int i = 0; i < program->n_instructions; i++, to += n * LARGEST) {
        const oly_tile_instruction *c = &program->instructions[i];
        const char *in[3] = {NULL, NULL, NULL};
        unsigned scalars = 0, vectors = 0;
        if (c->op == OLY_TILE_iota)
            return false;
        for (int k = 0; k < 3 && c->in[k] >= 0; k++) {
            in[k] = at[c->in[k]];
            scalars |= (unsigned)one[c->in[k]] << k;
            vectors += !one[c->in[k]];
        }
        if (c->op == OLY_TILE_splat) {
            memcpy(to, &c->value, sizeof c->value);
        } else {
            oly_tile_call call = oly_tile_call_of(c, scalars);
            oly_tile_apply(&call, vectors ? (int)n : 1, to, in[0], in[1], in[2]);
        }
        at[c->out] = to;
        one[c->out] = vectors == 0;
    }
    for (int s = 0; s < program->n_stores; s++) {
        int reg = program->store_register[s], bytes = oly_element_bytes[program->store_dtype[s]];
        if (one[reg])
            OLY_ISA_NAME(oly_convert).fill[bytes](n, stores[s].base, at[reg]);
        else
            memmove(stores[s].base, at[reg], (size_t)n * (size_t)bytes);
    }
    return true;
}
