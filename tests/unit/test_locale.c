/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=2  Programs that have called setlocale: numbers in the texts of arrays, plans, messages and
 * settings have a decimal point, as in Python; printf's own conversions in oly_printf follow the program's locale. */
#include "check_session.h"
#include <locale.h>
#include <unistd.h>

/* A locale with a decimal comma, created for this test where the machine can. */
static bool take_comma(void)
{
    char folder[] = "/tmp/olympus-locale-XXXXXX", command[200];
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    setenv("LOCPATH", folder, 1);
    bool taken = system(command) >= 0 && setlocale(LC_ALL, "de_DE.UTF-8") && localeconv()->decimal_point[0] == ',';
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && taken;
}

static void sum_of(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], 0.125));
}

static void numbers_have_a_point(void **state)
{
    (void)state;
    setenv("OLYMPUS_COSTS", "process=0.5us,2.5GB/s", 1);
    if (!take_comma())
        skip();
    check_start(NULL);
    float host[] = {0.1f, 1.5f, -2.25e10f, 1e-7f};
    char text[400], *plan = NULL;
    size_t size;
    oly_array x = oly_from_host(host, OLY_FLOAT32, 1, (int64_t[]){4});
    oly_array_str(x, text, sizeof text);
    assert_string_equal(text, "[ 1.00e-01  1.50e+00 -2.25e+10  1.00e-07]");
    oly_array_repr(oly_slice(x, ":2"), text, sizeof text);
    assert_string_equal(text, "Array([0.1, 1.5], dtype=float32)");
    oly_array_str(oly_complex(oly_slice(x, "1:2"), 0.25), text, sizeof text);
    assert_string_equal(text, "[1.5+0.25j]");
    oly_array_str(oly_astype(oly_slice(x, "1:2"), OLY_BFLOAT16), text, sizeof text);
    assert_string_equal(text, "[1.5]");
    FILE *file = open_memstream(&plan, &size);
    assert_int_equal(oly_explain_as(file, OLY_EXPLAIN_TEXT, oly_jit(sum_of, 1, 1), x), OLY_OK);
    fclose(file);
    assert_null(strstr(plan, ",0 ")); /* as in "1,0 us" */
    free(plan);
    file = open_memstream(&plan, &size);
    oly_fprintf(file, "%g %.2f %A", 1.5, 2.5, oly_index_in_dim(x, 0, 0));
    fclose(file);
    assert_string_equal(plan, "1,5 2,50 0.10000000149011612");
    free(plan);
    check_finish(NULL);
    setlocale(LC_ALL, "C");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_have_a_point),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
