/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of sorting: the order of the CPU's, of every type, of short and of long lines. */
#include "local_tasks.h"

/* Equal elements, so that the order of equal ones is seen. */
static void repeat_elements(drawn *w, int k)
{
    oly_local_operand *x = &w->in[k];
    size_t bytes = oly_element_bytes[x->dtype];
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        n += x->extent[d] > 0 ? (x->extent[d] - 1) * x->stride[d] : 0;
    char *at = w->memory[k];
    for (int64_t i = 0; i < n; i++)
        if (random_below(3) == 0)
            memcpy(at + (size_t)i * bytes, at + (size_t)(random_word() % (uint64_t)(i + 1)) * bytes, bytes);
}

static void one(const char *what, int round, int rank, const int64_t *extent, int dimension)
{
    drawn w = {.t = {.n_in = 1, .dimension = dimension, .reverse = random_below(2)}};
    int op = random_below(3);
    w.t.op = op == 0 ? OLY_LOCAL_SORT : op == 1 ? OLY_LOCAL_ARGSORT : OLY_LOCAL_TOP_K;
    oly_dtype number = random_below(2) ? OLY_INT32 : OLY_INT64;
    if (op == 1)
        w.t.n_in = 1 + random_below(3);
    for (int k = 0; k < w.t.n_in; k++) {
        set_box(&w.in[k], random_dtype(op != 2), rank, extent);
        fill_operand(&w, k);
        repeat_elements(&w, k);
    }
    w.t.out = w.in[0];
    if (op > 0)
        w.t.out.dtype = number;
    if (op == 2) {
        w.t.reverse = false;
        w.t.partial = random_below(2);
        if (w.t.partial)
            take_part(&w.in[0], dimension, random_below(9), random_below(9));
        w.t.out.extent[dimension] = 1 + random_below((int)extent[dimension] + (w.t.partial ? 3 : 0));
        if (!w.t.partial && random_below(2)) { /* the results of parts */
            w.t.n_in = 2;
            set_box(&w.in[1], random_below(2) ? OLY_INT32 : OLY_INT64, rank, extent);
            fill_indexes(&w, 1, -1, 20);
        }
    }
    compare_task(&w, what, round, false, NULL);
}

static void short_lines(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 400; round++) {
        int rank = 1 + random_below(3), dimension = random_below(rank);
        int64_t extent[] = {1 + random_below(9), 1 + random_below(9), 1 + random_below(9)};
        extent[dimension] = 1 + random_below(random_below(2) ? 34 : 12);
        one("short lines", round, rank, extent, dimension);
    }
}

static void lines_of_a_block(void **state)
{
    (void)state;
    need_kernels();
    static const int64_t lengths[] = {33, 64, 100, 257, 1023, 2048};
    for (int round = 0; round < 60; round++) {
        int rank = 1 + random_below(2), dimension = random_below(rank);
        int64_t extent[] = {1 + random_below(3), 1 + random_below(3)};
        extent[dimension] = lengths[random_below(6)];
        one("lines of a block", round, rank, extent, dimension);
    }
}

static void long_lines(void **state)
{
    (void)state;
    need_kernels();
    static const int64_t lengths[] = {2049, 4096, 6000, 9001, 30000};
    for (int round = 0; round < 24; round++) {
        int rank = 1 + random_below(2), dimension = random_below(rank);
        int64_t extent[] = {1 + random_below(2), 1 + random_below(2)};
        extent[dimension] = lengths[random_below(5)];
        one("long lines", round, rank, extent, dimension);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_lines), cmocka_unit_test(lines_of_a_block),
                                       cmocka_unit_test(long_lines)};
    return CHECK_MAIN(tests);
}
