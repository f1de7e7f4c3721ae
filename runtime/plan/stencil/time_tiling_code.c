/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of loops over fields (time_tiling.h): collects instructions, then assigns registers. Called by
 * time_tiling_form.c, time_tiling_walk.c, time_tiling_fuse.c, time_tiling_group.c and time_tiling_pass.c. */
#include "plan/stencil/time_tiling_code.h"
#include "core/optimisation.h"
#include <string.h>

int oly_tiling_read(oly_tiling_code *c, const oly_tiling_load *load, oly_dtype dtype)
{
    for (int k = 0; k < c->n_loads; k++)
        if (c->loads[k].of.kind == load->of.kind && c->loads[k].of.index == load->of.index &&
            memcmp(c->loads[k].shift, load->shift, sizeof load->shift) == 0)
            return k;
    if (c->n_loads == OLY_TILING_LOADS)
        return -1;
    c->loads[c->n_loads] = *load;
    c->dtype[c->n_loads] = dtype;
    return c->n_loads++;
}

int oly_tiling_add(oly_tiling_code *c, const oly_tile_instruction *i, const oly_node *of)
{
    if (c->n_instructions == OLY_TILING_INSTRUCTIONS)
        return -1;
    c->of[c->n_instructions] = of;
    c->instructions[c->n_instructions] = *i;
    return OLY_TILING_LOADS + c->n_instructions++;
}

int oly_tiling_add_once(oly_tiling_code *c, const oly_tile_instruction *i)
{
    for (int k = 0; k < c->n_instructions; k++)
        if (memcmp(&c->instructions[k], i, sizeof *i) == 0)
            return OLY_TILING_LOADS + k;
    return oly_tiling_add(c, i, NULL);
}

int oly_tiling_splat(oly_tiling_code *c, const oly_node *constant)
{
    oly_tile_instruction i;
    memset(&i, 0, sizeof i);
    oly_splat_instruction(constant, &i);
    return oly_tiling_add(c, &i, constant);
}

int oly_tiling_operate(oly_tiling_code *c, const oly_node *n, const int *in, int dimension)
{
    oly_tile_instruction i;
    memset(&i, 0, sizeof i);
    i.op = (uint16_t)oly_tile_first(oly_ops[n->op].detail);
    i.dtype = (uint8_t)(n->n_in ? n->in[n->n_in == 3 ? 1 : 0]->type.dtype : n->type.dtype);
    i.to = (uint8_t)n->type.dtype;
    i.attribute = dimension;
    for (int k = 0; k < 3; k++)
        i.in[k] = (int16_t)(k < n->n_in ? in[k] : -1);
    int then = oly_tile_then(oly_ops[n->op].detail);
    if (then < 0)
        return oly_tiling_add(c, &i, n);
    oly_tile_instruction next = i; /* combines with the third operand */
    i.in[2] = -1;
    next.op = (uint16_t)then;
    next.in[0] = (int16_t)oly_tiling_add(c, &i, NULL);
    next.in[1] = next.in[2];
    next.in[2] = -1;
    return next.in[0] < 0 ? -1 : oly_tiling_add(c, &next, NULL);
}

/* -- sums of taps -------------------------------------------------------------------------------------------------- */

typedef struct tap_list {
    int n, visits, load[OLY_STENCIL_TAPS];
    double coefficient[OLY_STENCIL_TAPS];
} tap_list;

enum { MOST_VISITS = 256 }; /* bounds the time spent on shared values */

static bool number(const oly_tiling_code *c, int value, double *x)
{
    const oly_node *n = value < OLY_TILING_LOADS ? NULL : c->of[value - OLY_TILING_LOADS];
    if (!n || !oly_is_constant(n) || oly_dtype_kind(n->type.dtype) == OLY_KIND_COMPLEX)
        return false;
    *x = oly_dtype_kind(n->type.dtype) == OLY_KIND_FLOAT ? n->params.value.f : (double)n->params.value.i;
    return true;
}

static bool add_tap(const oly_tiling_code *c, tap_list *l, int load, oly_dtype dtype, double coefficient)
{
    oly_tiling_kind kind = c->loads[load].of.kind;
    if ((kind != OLY_TILING_FIELD && kind != OLY_TILING_STAGE) || c->dtype[load] != dtype)
        return false;
    for (int t = 0; t < l->n; t++)
        if (l->load[t] == load) {
            l->coefficient[t] += coefficient;
            return true;
        }
    if (l->n == OLY_STENCIL_TAPS)
        return false;
    l->load[l->n] = load;
    l->coefficient[l->n++] = coefficient;
    return true;
}

/* As linear_form.c for one field: the taps keep the order in which the program adds them. */
static bool add_taps(const oly_tiling_code *c, tap_list *l, int value, oly_dtype dtype, double scale)
{
    double x;
    if (value < 0 || ++l->visits > MOST_VISITS)
        return false;
    if (value < OLY_TILING_LOADS)
        return add_tap(c, l, value, dtype, scale);
    const oly_tile_instruction *i = &c->instructions[value - OLY_TILING_LOADS];
    const oly_node *n = c->of[value - OLY_TILING_LOADS];
    if (!n || i->to != dtype)
        return false;
    switch (oly_linearity_of(n->op)) {
    case OLY_LINEAR_SUM: return add_taps(c, l, i->in[0], dtype, scale) && add_taps(c, l, i->in[1], dtype, scale);
    case OLY_LINEAR_DIFFERENCE:
        return add_taps(c, l, i->in[0], dtype, scale) && add_taps(c, l, i->in[1], dtype, -scale);
    case OLY_LINEAR_NEGATION: return add_taps(c, l, i->in[0], dtype, -scale);
    case OLY_LINEAR_PRODUCT:
        if (number(c, i->in[0], &x))
            return add_taps(c, l, i->in[1], dtype, scale * x);
        return number(c, i->in[1], &x) && add_taps(c, l, i->in[0], dtype, scale * x);
    case OLY_LINEAR_QUOTIENT: return number(c, i->in[1], &x) && x != 0 && add_taps(c, l, i->in[0], dtype, scale / x);
    default: return false;
    }
}

static oly_status find_taps(oly_planner *p, const oly_tiling_code *c, int value, oly_dtype dtype,
                            oly_tiling_piece *piece)
{
    tap_list l = {0};
    if (!oly_enabled(OLY_OPTIMISATION_STENCIL_TAPS) || (dtype != OLY_FLOAT32 && dtype != OLY_FLOAT64) ||
        value < OLY_TILING_LOADS || !add_taps(c, &l, value, dtype, 1))
        return OLY_OK;
    int *tap = OLY_PLAN_NEW(p, int, l.n);
    double *coefficient = OLY_PLAN_NEW(p, double, l.n);
    OLY_PLAN_CHECK(tap ? coefficient : NULL);
    memcpy(tap, l.load, sizeof *tap * (size_t)l.n);
    memcpy(coefficient, l.coefficient, sizeof *coefficient * (size_t)l.n);
    piece->n_taps = l.n;
    piece->tap = tap;
    piece->coefficient = coefficient;
    return OLY_OK;
}

/* -- registers ----------------------------------------------------------------------------------------------------- */

typedef struct registers {
    bool busy[OLY_TILE_REGISTERS];
    int n;
} registers;

static int take(registers *r)
{
    for (int k = 0; k < OLY_TILE_REGISTERS; k++)
        if (!r->busy[k]) {
            r->busy[k] = true;
            r->n = k + 1 > r->n ? k + 1 : r->n;
            return k;
        }
    return -1;
}

/* Loads keep their registers throughout. An operand's register is free after its last use, but never the result's of
 * that instruction: nothing is computed in place. */
static bool give_registers(oly_tiling_code *c, int n, const int *value, int16_t *store, int *n_registers)
{
    registers r = {.n = 0};
    int last[OLY_TILING_INSTRUCTIONS], reg[OLY_TILING_INSTRUCTIONS];
    for (int k = 0; k < c->n_loads; k++)
        take(&r);
    for (int i = 0; i < c->n_instructions; i++) {
        last[i] = i;
        for (int k = 0; k < 3; k++)
            if (c->instructions[i].in[k] >= OLY_TILING_LOADS) {
                int of = c->instructions[i].in[k] - OLY_TILING_LOADS;
                last[of] = last[of] > i ? last[of] : i;
            }
    }
    for (int k = 0; k < n; k++)
        last[value[k] - OLY_TILING_LOADS] = c->n_instructions;
    for (int i = 0; i < c->n_instructions; i++) {
        oly_tile_instruction *t = &c->instructions[i];
        reg[i] = take(&r);
        if (reg[i] < 0)
            return false;
        t->out = (int16_t)reg[i];
        int used[3];
        for (int k = 0; k < 3; k++) {
            used[k] = t->in[k] >= OLY_TILING_LOADS ? t->in[k] - OLY_TILING_LOADS : -1;
            if (used[k] >= 0)
                t->in[k] = (int16_t)reg[used[k]];
        }
        for (int k = 0; k < 3; k++)
            if (used[k] >= 0 && last[used[k]] == i)
                r.busy[reg[used[k]]] = false;
        if (last[i] == i)
            r.busy[reg[i]] = false;
    }
    for (int k = 0; k < n; k++)
        store[k] = (int16_t)reg[value[k] - OLY_TILING_LOADS];
    *n_registers = r.n;
    return true;
}

/* A result is copied that is a load, or another result too. */
static int own_value(oly_tiling_code *c, const int *value, int k, oly_dtype dtype)
{
    bool own = value[k] >= OLY_TILING_LOADS;
    for (int j = 0; j < k && own; j++)
        own = value[j] != value[k];
    if (own || value[k] < 0)
        return value[k];
    oly_tile_instruction copy;
    memset(&copy, 0, sizeof copy);
    copy.op = OLY_TILE_copy;
    copy.dtype = copy.to = (uint8_t)dtype;
    copy.in[0] = (int16_t)value[k];
    copy.in[1] = copy.in[2] = -1;
    return oly_tiling_add(c, &copy, NULL);
}

oly_status oly_tiling_program(oly_planner *p, oly_tiling_code *c, int n, const int *value, const oly_dtype *dtype,
                              oly_tile_program *program, const oly_tiling_load **loads_of, bool *fits)
{
    int own[OLY_TILE_REGISTERS], n_registers;
    *fits = n <= OLY_TILE_REGISTERS;
    for (int k = 0; k < n && *fits; k++) {
        own[k] = own_value(c, value, k, dtype[k]);
        *fits = own[k] >= 0;
    }
    if (!*fits)
        return OLY_OK;
    int16_t *store = OLY_PLAN_NEW(p, int16_t, n), *load = OLY_PLAN_NEW(p, int16_t, c->n_loads + 1);
    uint8_t *dtypes = OLY_PLAN_NEW(p, uint8_t, c->n_loads + n + 1);
    oly_tiling_load *loads = OLY_PLAN_NEW(p, oly_tiling_load, c->n_loads + 1);
    oly_tile_instruction *instructions = OLY_PLAN_NEW(p, oly_tile_instruction, c->n_instructions + 1);
    OLY_PLAN_CHECK(store && load && dtypes && loads ? instructions : NULL);
    *fits = give_registers(c, n, own, store, &n_registers);
    if (!*fits)
        return OLY_OK;
    memcpy(instructions, c->instructions, sizeof *instructions * (size_t)c->n_instructions);
    memcpy(loads, c->loads, sizeof *loads * (size_t)c->n_loads);
    for (int k = 0; k < c->n_loads; k++) {
        load[k] = (int16_t)k;
        dtypes[k] = (uint8_t)c->dtype[k];
    }
    for (int k = 0; k < n; k++)
        dtypes[c->n_loads + k] = (uint8_t)dtype[k];
    *loads_of = loads;
    *program = (oly_tile_program){.n_instructions = c->n_instructions,
                                  .instructions = instructions,
                                  .n_loads = c->n_loads,
                                  .n_stores = n,
                                  .load_register = load,
                                  .load_dtype = dtypes,
                                  .store_register = store,
                                  .store_dtype = dtypes + c->n_loads,
                                  .n_registers = n_registers};
    return OLY_OK;
}

oly_status oly_tiling_finish(oly_planner *p, oly_tiling_code *c, int value, oly_dtype dtype, bool taps,
                             oly_tiling_piece *piece, bool *fits)
{
    piece->n_taps = 0;
    if (taps)
        OLY_TRY(find_taps(p, c, value, dtype, piece));
    return oly_tiling_program(p, c, 1, &value, &dtype, &piece->program, &piece->loads, fits);
}

bool oly_tiling_same_program(const oly_tiling_piece *a, const oly_tiling_piece *b, int rank)
{
    const oly_tile_program *x = &a->program, *y = &b->program;
    if (x->n_loads != y->n_loads || x->n_instructions != y->n_instructions ||
        x->store_register[0] != y->store_register[0] ||
        memcmp(x->instructions, y->instructions, sizeof *x->instructions * (size_t)x->n_instructions) != 0)
        return false;
    for (int k = 0; k < x->n_loads; k++) {
        const oly_tiling_load *m = &a->loads[k], *n = &b->loads[k];
        if (m->of.kind != n->of.kind || m->of.index != n->of.index ||
            memcmp(m->shift, n->shift, sizeof m->shift[0] * (size_t)rank) != 0)
            return false;
    }
    return true;
}

/* -- of programs and stages that are finished ------------------------------------------------------------------------------ */

int oly_tiling_operations(const oly_tile_program *p)
{
    int n = 0;
    for (int k = 0; k < p->n_instructions; k++)
        n += p->instructions[k].op != OLY_TILE_splat;
    return n;
}

bool oly_tiling_counts(const oly_tiling_stage *s)
{
    for (int k = 0; k < s->n_pieces; k++)
        for (int j = 0; j < s->pieces[k].machine.n_instructions; j++)
            if (s->pieces[k].machine.instructions[j].op == OLY_TILE_iota)
                return true;
    return false;
}

bool oly_tiling_is_result(const oly_tiling_form *form, int stage)
{
    for (int j = 0; j < form->n_fields; j++)
        if (form->out[j].kind == OLY_TILING_STAGE && form->out[j].index == stage)
            return true;
    return false;
}

bool oly_tiling_covers(const oly_tiling_form *form, const oly_tiling_piece *piece, const oly_tiling_piece *at,
                       const int64_t *shift)
{
    bool all = true;
    for (int d = 0; d < form->rank && all; d++)
        all = form->wraps[d] ? piece->lo[d] == 0 && piece->hi[d] == form->shape[d]
                             : at->lo[d] + shift[d] >= piece->lo[d] && at->hi[d] + shift[d] <= piece->hi[d];
    return all;
}
