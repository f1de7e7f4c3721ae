/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Transposing copies of elements of any size: every element arrives, no other memory changes, for any extents, gaps and
 * number of chunks, on every instruction set; and one or two operations on transposed operands have the values of plain loops. */
#include "check.h"
#include "core/error.h"
#include "kernel.h"
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20 };
static uint64_t seed = 1;
static unsigned char source[ROOM], target[ROOM], expected[ROOM];

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static void copy_plainly(const oly_copy_task *t)
{
    int64_t size = (int64_t)t->element_bytes;
    memset(expected, 0xee, ROOM);
    for (int64_t i = 0; i < t->extent[0]; i++)
        for (int64_t j = 0; j < t->extent[1]; j++)
            for (int64_t k = 0; k < t->extent[2]; k++)
                memcpy(expected + (i * t->to_stride[0] + j * t->to_stride[1] + k * t->to_stride[2]) * size,
                       source + (i * t->from_stride[0] + j * t->from_stride[1] + k * t->from_stride[2]) * size,
                       (size_t)size);
}

static void check_copy(void)
{
    static const size_t sizes[] = {1, 2, 4, 4, 8, 8, 16};
    oly_copy_task t = {.element_bytes = sizes[draw(7)], .rank = 3};
    t.extent[0] = 1 + draw(3), t.extent[1] = 1 + draw(150), t.extent[2] = 1 + draw(draw(3) ? 80 : 5);
    t.to_stride[2] = 1; /* [i][j][k] from [i][k][j] */
    t.to_stride[1] = t.extent[2] + (draw(2) ? draw(3) : 0);
    t.to_stride[0] = t.to_stride[1] * t.extent[1] + draw(3);
    t.from_stride[1] = 1;
    t.from_stride[2] = t.extent[1] + draw(3);
    t.from_stride[0] = t.from_stride[2] * t.extent[2] + draw(3);
    assert_true((t.extent[0] * (t.to_stride[0] + t.from_stride[0])) * (int64_t)t.element_bytes < 2 * ROOM);
    copy_plainly(&t);
    memset(target, 0xee, ROOM);
    int chunks = 1 + (int)draw(4);
    for (int k = 0; k < chunks; k++)
        oly_copy_run(&t, target, source, k, chunks);
    if (memcmp(target, expected, ROOM) != 0)
        fail_msg("%s: %d x %d x %d elements of %d bytes", oly_kernels_isa(), (int)t.extent[0], (int)t.extent[1],
                 (int)t.extent[2], (int)t.element_bytes);
}

/* -- operations ------------------------------------------------------------------------------------------------------------------- */

/* Strides of [a][i][j] in memory of that order, or of [a][j][i], [j][i][a]; gaps between rows. kind 3: one number, 4: one for each i. */
static int64_t strides_of(int kind, const int64_t *extent, int64_t *stride)
{
    static const int order[3][3] = {{0, 1, 2}, {0, 2, 1}, {2, 1, 0}};
    int64_t dense = 1;
    memset(stride, 0, 3 * sizeof *stride);
    if (kind == 4)
        stride[1] = 1;
    for (int k = 2; k >= 0 && kind < 3; k--) {
        stride[order[kind][k]] = dense;
        dense = dense * extent[order[kind][k]] + (draw(3) ? 0 : draw(3));
    }
    return kind == 3 ? 1 : kind == 4 ? extent[1] : dense;
}

static uint64_t element(const unsigned char *memory, size_t bytes, int64_t at)
{
    uint64_t x = 0;
    memcpy(&x, memory + at * (int64_t)bytes, bytes);
    return x;
}

/* out = x + y, or (x + y) * x: whole numbers that wrap. */
static void check_operations(void)
{
    static const uint8_t types[] = {OLY_UINT8, OLY_UINT16, OLY_UINT32, OLY_UINT32, OLY_UINT64};
    static const int16_t load_register[] = {0, 1};
    static unsigned char other[ROOM];
    const int which = (int)draw(5), n = 1 + (int)draw(2);
    const uint8_t type = types[which], dtypes[] = {type, type};
    const size_t bytes = oly_dtype_size((oly_dtype)type);
    const int16_t store_register[] = {(int16_t)(n + 1)};
    const oly_tile_instruction code[] = {{.op = OLY_TILE_add, .dtype = type, .to = type, .in = {0, 1, -1}, .out = 2},
                                         {.op = OLY_TILE_mul, .dtype = type, .to = type, .in = {2, 0, -1}, .out = 3}};
    const oly_tile_program program = {n, code, 2, 1, load_register, dtypes, store_register, dtypes, 4};
    oly_tile_box box = {3, {1 + draw(3), 1 + draw(150), 1 + draw(draw(3) ? 150 : 400)}, {0}, {0}};
    oly_tile_operand loads[2] = {{(char *)source, {0}}, {(char *)other, {0}}}, store = {(char *)target, {0}};
    int64_t room = strides_of(draw(2) ? 0 : (int)draw(5), box.extent, loads[0].stride);
    room = strides_of(draw(3) ? 1 + (int)draw(2) : (int)draw(5), box.extent, loads[1].stride) + room;
    room = strides_of(draw(4) ? 0 : 1 + (int)draw(2), box.extent, store.stride) + room;
    if (room * (int64_t)bytes > ROOM)
        return;
    for (int k = 0; k < ROOM; k++)
        other[k] = (unsigned char)(source[k] * 7 + k);
    memset(expected, 0xee, ROOM);
    memset(target, 0xee, ROOM);
    for (int64_t i = 0; i < box.extent[0] * box.extent[1] * box.extent[2]; i++) {
        const int64_t at[3] = {i / box.extent[2] / box.extent[1], i / box.extent[2] % box.extent[1], i % box.extent[2]};
        int64_t from[3] = {0};
        for (int d = 0; d < 3; d++)
            for (int k = 0; k < 3; k++)
                from[k] += at[d] * (k < 2 ? loads[k].stride[d] : store.stride[d]);
        const uint64_t x = element(source, bytes, from[0]), sum = x + element(other, bytes, from[1]);
        const uint64_t value = n == 1 ? sum : sum * x;
        memcpy(expected + from[2] * (int64_t)bytes, &value, bytes);
    }
    const int chunks = 1 + (int)draw(4);
    for (int k = 0; k < chunks; k++)
        oly_tile_run(&program, &box, loads, &store, k, chunks);
    if (memcmp(target, expected, ROOM) != 0)
        fail_msg("%s: %d operations, %d x %d x %d elements of %d bytes", oly_kernels_isa(), n, (int)box.extent[0],
                 (int)box.extent[1], (int)box.extent[2], (int)bytes);
}

static void on_each(void (*check)(void))
{
    static const char *const instruction_sets[] = {"base", "avx2", "avx512"};
    for (int k = 0; k < ROOM; k++)
        source[k] = (unsigned char)draw(256);
    for (int isa = 0; isa < 3; isa++) {
        if (oly_kernels_choose(instruction_sets[isa]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        for (int round = 0; round < 120; round++)
            check();
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

static void operations_on_transposed_operands_have_the_values_of_plain_loops(void **unused)
{
    (void)unused, on_each(check_operations);
}

static void transposed_copies_reach_every_element_and_no_other(void **unused)
{
    (void)unused, on_each(check_copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_copies_reach_every_element_and_no_other),
        cmocka_unit_test(operations_on_transposed_operands_have_the_values_of_plain_loops)};
    return CHECK_MAIN(tests);
}
