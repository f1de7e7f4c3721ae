/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Functions of float32 computed in single precision: errors, ends of the range and NaN, and the same bits
 * on every instruction set. A sample of the 2^32 arguments; EVERY_FLOAT=1 tests all of them (minutes), EVERY_FLOAT=16
 * every 16th, and prints the results. EVERY_FLOAT_OF=tanh: one function. */
#include "check_kernels.h"
#include <stdlib.h>

enum { PIECE = 4096, SAMPLE = 509 };

/* The largest errors in units in the last place, over all arguments, as docs/performance.md gives them. */
static const struct single {
    const char *name;
    int op;
    double most;
} singles[] = {
    {"exp", OLY_TILE_exp, 0.9095},    {"sigmoid", OLY_TILE_sigmoid, 2.481}, {"tanh", OLY_TILE_tanh, 0.999},
    {"log", OLY_TILE_log, 0.88},      {"erf", OLY_TILE_erf, 0.986},         {"sinh", OLY_TILE_sinh, 1.5},
    {"cosh", OLY_TILE_cosh, 1.9},     {"asin", OLY_TILE_asin, 0.643},       {"acos", OLY_TILE_acos, 0.615},
    {"atan", OLY_TILE_atan, 0.711},   {"asinh", OLY_TILE_asinh, 0.731},     {"acosh", OLY_TILE_acosh, 0.909},
    {"atanh", OLY_TILE_atanh, 0.636}, {"cbrt", OLY_TILE_cbrt, 0.505},       {"erfc", OLY_TILE_erfc, 3.67},
};

/* Statistics of a range of arguments. */
typedef struct finding {
    double worst;
    float at;
    int64_t wrong; /* not the nearest float */
} finding;

/* The reference is the float64 kernel, whose own error of about 2^-52 does not matter. */
static void compare(const float *x, const float *got, const double *truth, finding *f)
{
    for (int i = 0; i < PIECE; i++) {
        float nearest = (float)truth[i];
        if (memcmp(&nearest, &got[i], sizeof nearest) == 0 || (isnan(nearest) && isnan(got[i])))
            continue;
        double unit = ldexp(1, fmax(ilogb(truth[i]), -126) - 23), off = fabs((double)got[i] - truth[i]) / unit;
        bool zero = nearest == 0 && got[i] == 0; /* of the other sign */
        off = isnan(nearest) || isnan(got[i]) || zero ? INFINITY : off;
        f->wrong++;
        if (off > f->worst)
            f->worst = off, f->at = x[i];
    }
}

static void check_single(const struct single *s, int64_t step, finding *f)
{
    static float x[PIECE], y[PIECE], first[PIECE];
    static double wide[PIECE], truth[PIECE];
    const void *in[1] = {x}, *in_wide[1] = {wide};
    for (int64_t piece = 0; piece < (INT64_C(1) << 32); piece += PIECE * step) {
        for (int i = 0; i < PIECE; i++) {
            uint32_t bits = (uint32_t)(piece + i * step);
            memcpy(&x[i], &bits, sizeof bits);
            wide[i] = (double)x[i];
        }
        assert_int_equal(oly_kernels_choose(""), OLY_OK);
        apply(s->op, OLY_FLOAT64, OLY_FLOAT64, PIECE, in_wide, 1, 0, truth);
        apply(s->op, OLY_FLOAT32, OLY_FLOAT32, PIECE, in, 1, 0, first);
        compare(x, first, truth, f);
        for (int i = 0; i < COUNT(instruction_sets); i++) {
            if (oly_kernels_choose(instruction_sets[i]) != OLY_OK) {
                oly_drop_message();
                continue;
            }
            apply(s->op, OLY_FLOAT32, OLY_FLOAT32, PIECE, in, 1, 0, y);
            for (int k = 0; k < PIECE; k++)
                if (memcmp(&first[k], &y[k], sizeof *y) != 0 && !(isnan(first[k]) && isnan(y[k])))
                    fail_msg("%s(%a) is %a with %s, else %a", s->name, (double)x[k], (double)y[k], instruction_sets[i],
                             (double)first[k]);
        }
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

static void errors_and_bits(void **unused)
{
    (void)unused;
    const char *setting = getenv("EVERY_FLOAT"), *only = getenv("EVERY_FLOAT_OF");
    int64_t step = setting ? strtoll(setting, NULL, 10) : SAMPLE;
    bool right = true;
    assert_true(step > 0);
    for (int k = 0; k < COUNT(singles); k++) {
        finding f = {0};
        if (only && strcmp(only, singles[k].name) != 0)
            continue;
        check_single(&singles[k], step, &f);
        bool good = f.worst <= singles[k].most;
        if (setting || !good)
            printf("%s%s: %.4f ulp off at %a; %.3f%% of the results are not the nearest float\n", good ? "" : "FAILED ",
                   singles[k].name, f.worst, (double)f.at, 100. * (double)f.wrong * (double)step * 0x1p-32);
        right = right && good;
    }
    assert_true(right);
}

/* Tiles of ordinary arguments use other code than tiles with arguments beyond a formula's bound: the same bits. */
static void tiles_do_not_show(void **unused)
{
    (void)unused;
    static float x[N], y[N], alone[N];
    static const float far[] = {88.5f, -87.5f, 16.7f, -104, 200, INFINITY, -INFINITY, NAN};
    const void *in[1] = {x}, *in_alone[1];
    for (int i = 0; i < COUNT(instruction_sets); i++)
        for (int k = 0; k < COUNT(singles) * COUNT(far); k++) {
            if (oly_kernels_choose(instruction_sets[i]) != OLY_OK) {
                oly_drop_message();
                break;
            }
            const struct single *s = &singles[k / COUNT(far)];
            for (int e = 0; e < N; e++)
                x[e] = (float)random_between(-90, 90);
            x[k] = far[k % COUNT(far)];
            apply(s->op, OLY_FLOAT32, OLY_FLOAT32, N, in, 1, 0, y);
            for (int e = 0; e < N; e++) {
                in_alone[0] = &x[e];
                apply(s->op, OLY_FLOAT32, OLY_FLOAT32, 1, in_alone, 1, 0, &alone[e]);
                if (memcmp(&y[e], &alone[e], sizeof *y) != 0 && !(isnan(y[e]) && isnan(alone[e])))
                    fail_msg("%s(%a) is %a in a tile with %g, alone %a with %s", s->name, (double)x[e], (double)y[e],
                             (double)x[k], (double)alone[e], instruction_sets[i]);
            }
        }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_and_bits),
        cmocka_unit_test(tiles_do_not_show),
    };
    return CHECK_MAIN(tests);
}
