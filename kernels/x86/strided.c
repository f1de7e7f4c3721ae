/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands whose elements are apart along rows (generator.h): each element is inserted into its place of a vector, or extracted from it, 16
 * bytes at a time. This takes less time than the processor's own instructions for it (vgatherdps and the like), which most processors
 * divide into more steps than these are, and memory that does not belong to the row is neither read nor written. */
#include "x86/generator.h"
#if defined(__x86_64__)

enum { GROUP = 16, ZEROS = X86_OP(1, 1, 0xef), INSERT_GROUP = X86_OP(1, 3, 0x18), EXTRACT_GROUP = X86_OP(1, 3, 0x19) };

/* RAX: the address of the vector's first element; RBP: the stride. */
static void point_to(generator *g, int operand)
{
    x86_code *c = &g->code;
    x86_place at = g->pointer[operand] >= 0 ? x86_register(g->pointer[operand])
                                            : oly_x86_call_field(offsetof(oly_code_call, at) + 8 * (size_t)operand);
    x86_load(c, RBP, oly_x86_call_field(offsetof(oly_code_call, stride) + 8 * (size_t)operand));
    x86_move(c, RAX, RCX);
    x86_multiply(c, RAX, x86_register(RBP));
    x86_add(c, RAX, at);
}

/* Every other element is at RAX, the others are one stride further. */
static x86_place place_of(int k)
{
    return (x86_place){.memory = true, .reg = RAX, .index = k & 1 ? RBP : NO_INDEX};
}
static void go_on(generator *g, int k)
{
    if (k & 1)
        x86_address(&g->code, RAX, (x86_place){.memory = true, .reg = RAX, .index = RBP, .scale = 1});
}

/* k: in the group. */
static void insert(generator *g, int reg, int element, int k, x86_place from)
{
    switch (element) {
    case 8:
        if (k == 0)
            emit(g, X86_OP(3, 1, 0x10), 1, GROUP, reg, 0, from);
        else
            emit(g, X86_OP(1, 1, 0x16), 1, GROUP, reg, reg, from);
        return;
    case 4:
        if (k == 0)
            emit(g, X86_OP(2, 1, 0x10), 0, GROUP, reg, 0, from);
        else
            emit_immediate(g, X86_OP(1, 3, 0x21), 0, GROUP, reg, reg, from, k << 4);
        return;
    default:
        if (k == 0)
            emit(g, ZEROS, 1, GROUP, reg, reg, x86_register(reg));
        emit_immediate(g, element == 2 ? X86_OP(1, 1, 0xc4) : X86_OP(1, 3, 0x20), 0, GROUP, reg, reg, from, k);
    }
}

static void extract(generator *g, int reg, int element, int k, x86_place to)
{
    if (k == 0 && element >= 4)
        emit(g, element == 8 ? X86_OP(3, 1, 0x11) : X86_OP(2, 1, 0x11), element == 8, GROUP, reg, 0, to);
    else if (element == 8)
        emit(g, X86_OP(1, 1, 0x17), 1, GROUP, reg, 0, to);
    else
        emit_immediate(g, X86_OP(1, 3, element == 4 ? 0x17 : element == 2 ? 0x15 : 0x14), 0, GROUP, reg, 0, to, k);
}

/* A jump from here if the row has no more than k elements after the last whole vector; 0: all elements exist. */
static size_t leave_at(generator *g, int k)
{
    if (!g->rest)
        return 0;
    x86_compare_number(&g->code, oly_x86_call_field(offsetof(oly_code_call, rest)), k);
    return x86_jump(&g->code, X86_NOT_ABOVE);
}

static void land(generator *g, const size_t *jumps, int n)
{
    for (int k = 0; k < n && g->rest; k++)
        x86_land(&g->code, jumps[k]);
}

/* Moves one group, whose first element is number `first` of the vector. */
static void move_group(generator *g, int reg, int element, int first, int n, bool store)
{
    size_t jumps[GROUP];
    for (int k = 0; k < n; k++) {
        if (k > 0)
            jumps[k - 1] = leave_at(g, first + k);
        (store ? extract : insert)(g, reg, element, k, place_of(k));
        go_on(g, k);
    }
    land(g, jumps, n - 1);
}

static void move(generator *g, int reg, int operand, int element, bool store)
{
    size_t jumps[64 / GROUP];
    int groups = vector_bytes(g, element) / GROUP, n = groups == 1 ? g->lanes : GROUP / element;
    int part = groups == 1 ? reg : oly_x86_take(g, VECTORS);
    point_to(g, operand);
    move_group(g, reg, element, 0, n, store);
    for (int k = 1; k < groups; k++) {
        jumps[k - 1] = leave_at(g, k * n);
        if (store)
            emit_immediate(g, EXTRACT_GROUP, 0, vector_bytes(g, element), reg, 0, x86_register(part), k);
        move_group(g, part, element, k * n, n, store);
        if (!store)
            emit_immediate(g, INSERT_GROUP, 0, vector_bytes(g, element), reg, reg, x86_register(part), k);
    }
    land(g, jumps, groups - 1);
}

void oly_x86_load_strided(generator *g, int reg, int operand, int element)
{
    move(g, reg, operand, element, false);
}
void oly_x86_store_strided(generator *g, int reg, int operand, int element)
{
    move(g, reg, operand, element, true);
}
#endif
