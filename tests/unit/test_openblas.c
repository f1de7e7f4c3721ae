/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1
 * OpenBLAS uses the kernels that suit the processor, also where it chose older ones when it was loaded; products are right after the
 * change; OPENBLAS_CORETYPE has the last word. */
#include "check.h"
#include "kernel.h"
#include "openblas.h"
#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void test_rule(void **state)
{
    (void)state;
    static const struct {
        const char *core;
        bool avx2, avx512;
        const char *better;
    } rows[] = {
        {"Haswell", true, true, "SkylakeX"},  {"Zen", true, true, "SkylakeX"},     {"Zen", true, false, NULL},
        {"Haswell", true, false, NULL},       {"SkylakeX", true, true, NULL},      {"Cooperlake", true, true, NULL},
        {"Prescott", true, true, "SkylakeX"}, {"Nehalem", true, false, "Haswell"}, {"Core2", false, false, NULL},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const char *better = oly_openblas_better(rows[k].core, rows[k].avx2, rows[k].avx512);
        assert_true((better == NULL) == (rows[k].better == NULL));
        if (better)
            assert_string_equal(better, rows[k].better);
    }
}

enum { N = 160 };

/* Processor seconds of one product of N x N matrices, which is checked. The seconds are for the reader: on a busy machine they decide nothing. */
static double product(void)
{
    static float a[N * N], b[N * N], c[N * N];
    double best = 1;
    for (int k = 0; k < N * N; k++) {
        a[k] = (float)(k % 7);
        b[k] = (float)(k % 5);
    }
    for (int round = 0; round < 5; round++) {
        clock_t begin = clock();
        for (int k = 0; k < 10; k++)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        best = seconds < best ? seconds : best;
    }
    for (int i = 0; i < N; i += 13)
        for (int j = 0; j < N; j += 7) {
            float sum = 0; /* small integers: exact */
            for (int k = 0; k < N; k++)
                sum += a[i * N + k] * b[k * N + j];
            assert_true(c[i * N + j] == sum);
        }
    return best;
}

static void test_choice(void **state)
{
    (void)state;
    char first[64];
    snprintf(first, sizeof first, "%s", openblas_get_corename());
    if (!oly_openblas_use("Zen")) {
        print_message("OpenBLAS cannot change its kernels: skipped\n");
        return;
    }
    assert_string_equal(openblas_get_corename(), "Zen");
    assert_null(getenv("OPENBLAS_CORETYPE"));
    double before = product();
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    double after = product();
    if (strcmp(oly_kernels_isa(), "avx512") == 0)
        assert_string_equal(openblas_get_corename(), "SkylakeX");
    print_message("a product of %d^3 by the kernels for Zen: %.0f us, by those for %s: %.0f us\n", N, before * 1e5,
                  openblas_get_corename(), after * 1e5);
    assert_false(oly_openblas_use("no such core"));
}

static void test_environment_wins(void **state)
{
    (void)state;
    if (!oly_openblas_use("Zen"))
        return;
    setenv("OPENBLAS_CORETYPE", "Zen", 1);
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    assert_string_equal(openblas_get_corename(), "Zen");
    assert_true(oly_openblas_use("Haswell"));
    assert_string_equal(getenv("OPENBLAS_CORETYPE"), "Zen");
    unsetenv("OPENBLAS_CORETYPE");
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_environment_wins),
    };
    return CHECK_MAIN(tests);
}
