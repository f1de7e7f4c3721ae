/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of elementwise groups: interpreted (tile.cu), or by a kernel of their own (fused_text.c). */
#include "cuda/launching.h"
#include "cuda/fused_text.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "iota.h"
#include <stdlib.h>
#include <string.h>

bool oly_cuda_has_tile(const oly_tile_program *program)
{
    return program->n_loads + program->n_stores <= OLY_CUDA_OPERANDS;
}

/* -- the box, with dimensions merged along which every operand is evenly spaced ------------------------------------------------- */

static void take_dimension(oly_cuda_group *g, const int64_t *stride, int64_t extent)
{
    bool merges = g->rank > 0;
    for (int k = 0; merges && k < g->n_operands; k++)
        merges = g->stride[k * OLY_MAX_RANK + g->rank - 1] == stride[k] * extent;
    if (merges)
        g->extent[g->rank - 1] *= extent;
    else
        g->extent[g->rank++] = extent;
    for (int k = 0; k < g->n_operands; k++)
        g->stride[k * OLY_MAX_RANK + g->rank - 1] = stride[k];
}

static void merge(oly_cuda_group *g, const oly_tile_box *box, const oly_tile_operand *loads,
                  const oly_tile_operand *stores)
{
    const oly_tile_program *p = g->program;
    int64_t stride[g->n_operands + 1];
    g->rank = 0;
    g->n = 1;
    for (int d = 0; d < box->rank; d++) {
        int k = 0;
        g->n *= box->extent[d];
        if (box->extent[d] == 1)
            continue;
        for (int i = 0; i < p->n_loads; i++)
            stride[k++] = loads[i].stride[d];
        for (int i = 0; i < p->n_stores; i++)
            stride[k++] = stores[i].stride[d];
        for (int i = 0; i < p->n_instructions; i++)
            if (p->instructions[i].op == OLY_TILE_iota)
                stride[k++] = oly_iota_stride(&p->instructions[i], box, d);
        take_dimension(g, stride, box->extent[d]);
    }
    if (g->rank == 0) { /* one element: any stride is fine */
        g->rank = 1;
        g->extent[0] = 1;
        for (int k = 0; k < g->n_operands; k++)
            g->stride[k * OLY_MAX_RANK] = 1;
    }
}

/* -- interpreted ------------------------------------------------------------------------------------------------------------------ */

static oly_status interpret(const oly_cuda_launcher *l, const oly_cuda_group *g)
{
    const oly_tile_program *p = g->program;
    size_t codes = (size_t)p->n_instructions * sizeof(oly_cuda_instruction);
    size_t bytes = sizeof(oly_cuda_program) + codes + sizeof(int64_t) * (size_t)(g->n_operands * g->rank);
    char *image = calloc(1, bytes);
    if (!image)
        return oly_fail(OLY_MEMORY, "out of memory: %zu bytes for the program of a kernel", bytes);
    oly_cuda_program *head = (void *)image;
    oly_cuda_instruction *code = (void *)(head + 1);
    int64_t *strides = (void *)(code + p->n_instructions);
    head->rank = g->rank;
    head->n_loads = p->n_loads;
    head->n_stores = p->n_stores;
    head->n_instructions = p->n_instructions;
    head->n = g->n;
    memcpy(head->extent, g->extent, sizeof head->extent);
    for (int k = 0; k < p->n_loads + p->n_stores; k++) {
        bool load = k < p->n_loads;
        head->reg[k] = load ? p->load_register[k] : p->store_register[k - p->n_loads];
        head->dtype[k] = load ? p->load_dtype[k] : p->store_dtype[k - p->n_loads];
    }
    for (int i = 0, iota = 0; i < p->n_instructions; i++) {
        const oly_tile_instruction *c = &p->instructions[i];
        code[i] = (oly_cuda_instruction){c->op, c->dtype, c->to, {c->in[0], c->in[1], c->in[2]}, c->out, 0, 0, {0}};
        if (c->op == OLY_TILE_splat)
            memcpy(code[i].value, &c->value, oly_dtype_size((oly_dtype)c->to));
        if (c->op == OLY_TILE_iota) {
            code[i].attribute = p->n_loads + p->n_stores + iota;
            code[i].value[0] = (uint64_t)g->origin[iota++];
        }
    }
    for (int k = 0; k < g->n_operands; k++)
        memcpy(strides + k * g->rank, g->stride + k * OLY_MAX_RANK, sizeof(int64_t) * (size_t)g->rank);
    oly_cuda_tile_task task = {0};
    memcpy(task.base, g->base, sizeof(char *) * (size_t)(p->n_loads + p->n_stores));
    oly_status st = l->constant(l->context, image, bytes, (const void **)&task.program);
    free(image);
    OLY_TRY(st);
    return oly_cuda_start(l, "tile", "oly_tile_interpret", oly_cuda_blocks(l, g->n, OLY_CUDA_THREADS), OLY_CUDA_THREADS,
                          &task, sizeof task);
}

/* A number that is written everywhere. */
static bool is_fill(const oly_cuda_group *g)
{
    const oly_tile_program *p = g->program;
    return p->n_loads == 0 && p->n_instructions == 1 && p->n_stores == 1 && p->instructions[0].op == OLY_TILE_splat &&
           p->store_register[0] == p->instructions[0].out && g->rank == 1 && g->stride[0] == 1;
}

oly_status oly_cuda_tile(const oly_cuda_launcher *l, const oly_tile_program *program, const oly_tile_box *box,
                         const oly_tile_operand *loads, const oly_tile_operand *stores)
{
    int n_iotas = 0;
    for (int i = 0; i < program->n_instructions; i++)
        n_iotas += program->instructions[i].op == OLY_TILE_iota;
    int n = program->n_loads + program->n_stores + n_iotas;
    int64_t stride[(size_t)(n + 1) * OLY_MAX_RANK], origin[n_iotas + 1];
    char *base[n + 1];
    oly_cuda_group g = {.program = program, .n_operands = n, .stride = stride, .origin = origin, .base = base};
    for (int d = 0; d < box->rank; d++)
        if (box->extent[d] == 0)
            return OLY_OK;
    merge(&g, box, loads, stores);
    for (int i = 0; i < program->n_loads; i++)
        base[i] = loads[i].base;
    for (int i = 0; i < program->n_stores; i++)
        base[program->n_loads + i] = stores[i].base;
    for (int i = 0, iota = 0; i < program->n_instructions; i++)
        if (program->instructions[i].op == OLY_TILE_iota)
            origin[iota++] = oly_iota_origin(&program->instructions[i], box);
    if (is_fill(&g))
        return oly_cuda_fill(l, oly_dtype_size((oly_dtype)program->store_dtype[0]), g.n, base[0],
                             &program->instructions[0].value);
    bool launched = false;
    if (l->generated)
        OLY_TRY(oly_cuda_fused(l, &g, &launched));
    return launched ? OLY_OK : interpret(l, &g);
}
