/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodings of x86-64 instructions. See encode.h. */
#include "x86/encode.h"
#include <string.h>

void x86_byte(x86_code *c, uint8_t byte)
{
    if (c->used < c->room)
        c->bytes[c->used] = byte;
    c->used++;
}

static void add_number(x86_code *c, uint64_t number, int bytes)
{
    for (int k = 0; k < bytes; k++)
        x86_byte(c, (uint8_t)(number >> 8 * k));
}

/* Displacements always have 32 bits, so that EVEX does not scale them. */
static void add_place(x86_code *c, int reg, const x86_place *p)
{
    int field = (reg & 7) << 3;
    if (!p->memory) {
        x86_byte(c, (uint8_t)(0xc0 | field | (p->reg & 7)));
        return;
    }
    bool sib = p->index != NO_INDEX || (p->reg & 7) == RSP, near = p->displacement == 0 && (p->reg & 7) != RBP;
    x86_byte(c, (uint8_t)((near ? 0 : 0x80) | field | (sib ? RSP : p->reg & 7)));
    if (sib)
        x86_byte(c, (uint8_t)(p->scale << 6 | (p->index & 7) << 3 | (p->reg & 7)));
    if (!near)
        add_number(c, (uint32_t)p->displacement, 4);
}

static int high(int reg) /* the fourth bit, inverted */
{
    return (~reg >> 3) & 1;
}
static int highest(int reg)
{
    return (~reg >> 4) & 1;
}

static void add_vex(x86_code *c, const x86_vector *i)
{
    if (i->mask || i->last.broadcast || i->bytes > 32 || i->reg > 15 || i->first > 15 || i->last.reg > 15) {
        c->used = c->room + 1;
        return;
    }
    int prefix = (int)i->op & 3, map = (int)(i->op >> 2) & 3;
    int x = i->last.memory ? high(i->last.index) : 1;
    x86_byte(c, 0xc4);
    x86_byte(c, (uint8_t)(high(i->reg) << 7 | x << 6 | high(i->last.reg) << 5 | map));
    x86_byte(c, (uint8_t)(i->wide << 7 | (~i->first & 15) << 3 | (i->bytes == 32) << 2 | prefix));
}

static void add_evex(x86_code *c, const x86_vector *i)
{
    int prefix = (int)i->op & 3, map = (int)(i->op >> 2) & 7;
    int x = i->last.memory ? high(i->last.index) : highest(i->last.reg);
    int length = i->bytes == 64 ? 2 : i->bytes == 32 ? 1 : 0;
    x86_byte(c, 0x62);
    x86_byte(c, (uint8_t)(high(i->reg) << 7 | x << 6 | high(i->last.reg) << 5 | highest(i->reg) << 4 | map));
    x86_byte(c, (uint8_t)(i->wide << 7 | (~i->first & 15) << 3 | 4 | prefix));
    x86_byte(c, (uint8_t)(i->zeroing << 7 | length << 5 | i->last.broadcast << 4 | highest(i->first) << 3 | i->mask));
}

void x86_emit(x86_code *c, const x86_vector *i)
{
    if (c->evex && !i->vex)
        add_evex(c, i);
    else
        add_vex(c, i);
    x86_byte(c, (uint8_t)(i->op >> 8));
    add_place(c, i->reg, &i->last);
    if (i->immediate >= 0)
        x86_byte(c, (uint8_t)i->immediate);
}

/* -- general registers -------------------------------------------------------------------------------------------------- */

static void add_general(x86_code *c, bool wide, int opcode, int reg, x86_place p)
{
    int rex = 0x40 | wide << 3 | (reg >> 3 & 1) << 2 | (p.memory ? p.index >> 3 & 1 : 0) << 1 | (p.reg >> 3 & 1);
    x86_byte(c, (uint8_t)rex);
    if (opcode > 0xff)
        x86_byte(c, (uint8_t)(opcode >> 8));
    x86_byte(c, (uint8_t)opcode);
    add_place(c, reg, &p);
}

void x86_push(x86_code *c, int reg)
{
    x86_byte(c, (uint8_t)(0x40 | reg >> 3));
    x86_byte(c, (uint8_t)(0x50 | (reg & 7)));
}
void x86_pop(x86_code *c, int reg)
{
    x86_byte(c, (uint8_t)(0x40 | reg >> 3));
    x86_byte(c, (uint8_t)(0x58 | (reg & 7)));
}
void x86_move(x86_code *c, int to, int from)
{
    add_general(c, true, 0x89, from, x86_register(to));
}
void x86_load(x86_code *c, int to, x86_place from)
{
    add_general(c, true, 0x8b, to, from);
}
void x86_load_part(x86_code *c, int to, x86_place from, int bytes)
{
    add_general(c, bytes == 8, bytes == 1 ? 0x0fb6 : bytes == 2 ? 0x0fb7 : 0x8b, to, from);
}
void x86_store(x86_code *c, x86_place to, int from)
{
    add_general(c, true, 0x89, from, to);
}
void x86_store_part(x86_code *c, x86_place to, int from, int bytes)
{
    if (bytes == 2)
        x86_byte(c, 0x66);
    add_general(c, bytes == 8, bytes == 1 ? 0x88 : 0x89, from, to);
}
void x86_add_number(x86_code *c, int reg, int32_t number)
{
    add_general(c, true, 0x81, 0, x86_register(reg));
    add_number(c, (uint32_t)number, 4);
}
void x86_and_number(x86_code *c, int reg, int32_t number)
{
    add_general(c, true, 0x81, 4, x86_register(reg));
    add_number(c, (uint32_t)number, 4);
}
void x86_add_to_memory(x86_code *c, x86_place to, int from)
{
    add_general(c, true, 0x01, from, to);
}
void x86_clear(x86_code *c, int reg)
{
    add_general(c, false, 0x31, reg, x86_register(reg));
}
void x86_subtract(x86_code *c, int reg, x86_place from)
{
    add_general(c, true, 0x2b, reg, from);
}
void x86_add(x86_code *c, int reg, x86_place from)
{
    add_general(c, true, 0x03, reg, from);
}
void x86_multiply(x86_code *c, int reg, x86_place by)
{
    add_general(c, true, 0x0faf, reg, by);
}
void x86_address(x86_code *c, int reg, x86_place of)
{
    add_general(c, true, 0x8d, reg, of);
}
void x86_shift(x86_code *c, int reg, int bits)
{
    add_general(c, true, 0xc1, bits < 0 ? 5 : 4, x86_register(reg));
    x86_byte(c, (uint8_t)(bits < 0 ? -bits : bits));
}
void x86_set(x86_code *c, int reg, uint64_t number)
{
    x86_byte(c, (uint8_t)(0x48 | reg >> 3));
    x86_byte(c, (uint8_t)(0xb8 | (reg & 7)));
    add_number(c, number, 8);
}
void x86_test(x86_code *c, int reg)
{
    add_general(c, true, 0x85, reg, x86_register(reg));
}
void x86_test_bits(x86_code *c, x86_place memory, uint8_t bits)
{
    add_general(c, false, 0xf6, 0, memory);
    x86_byte(c, bits);
}
void x86_compare(x86_code *c, int reg, x86_place with)
{
    add_general(c, true, 0x3b, reg, with);
}
void x86_compare_number(x86_code *c, x86_place memory, int32_t with)
{
    add_general(c, true, 0x81, 7, memory);
    add_number(c, (uint32_t)with, 4);
}
void x86_count_down(x86_code *c, x86_place memory)
{
    add_general(c, true, 0xff, 1, memory);
}
void x86_return(x86_code *c)
{
    x86_byte(c, 0xc5); /* vzeroupper */
    x86_byte(c, 0xf8);
    x86_byte(c, 0x77);
    x86_byte(c, 0xc3);
}

/* -- jumps ----------------------------------------------------------------------------------------------------------------- */

size_t x86_jump(x86_code *c, x86_condition condition)
{
    x86_byte(c, 0x0f);
    x86_byte(c, (uint8_t)(0x80 | condition));
    add_number(c, 0, 4);
    return c->used;
}

static void set_distance(x86_code *c, size_t after, size_t target)
{
    uint32_t distance = (uint32_t)(target - after);
    if (after <= c->room)
        memcpy(c->bytes + after - 4, &distance, 4);
}

void x86_land(x86_code *c, size_t jump)
{
    set_distance(c, jump, c->used);
}

void x86_jump_back(x86_code *c, x86_condition condition, size_t to)
{
    set_distance(c, x86_jump(c, condition), to);
}
