/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Transposing copies of elements of any size: every element arrives, no other memory changes, for any extents, gaps and
 * number of chunks, on every instruction set. */
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

static void transposed_copies_reach_every_element_and_no_other(void **unused)
{
    static const char *const instruction_sets[] = {"base", "avx2", "avx512"};
    (void)unused;
    for (int k = 0; k < ROOM; k++)
        source[k] = (unsigned char)draw(256);
    for (int isa = 0; isa < 3; isa++) {
        if (oly_kernels_choose(instruction_sets[isa]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        for (int round = 0; round < 120; round++)
            check_copy();
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(transposed_copies_reach_every_element_and_no_other)};
    return CHECK_MAIN(tests);
}
