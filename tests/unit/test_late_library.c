/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Libraries opened at their first use: what is there is found once; what is not, has a reason. */
#include "check.h"
#include "core/late_library.h"
#include <string.h>

static void functions_of_a_library_are_found(void **state)
{
    (void)state;
    static const char *const files[] = {"no such library.so", "libz.so.1", NULL}, *const symbols[] = {"zlibVersion",
                                                                                                      "crc32"};
    struct {
        const char *(*zlibVersion)(void);
        unsigned long (*crc32)(unsigned long, const unsigned char *, unsigned);
    } zlib = {0};
    oly_late_library l = {.files = files, .symbols = symbols, .addresses = (void **)&zlib, .n = 2};
    assert_true(oly_late_library_open(&l));
    assert_int_equal(zlib.zlibVersion()[0], '1');
    assert_int_equal(zlib.crc32(0, (const unsigned char *)"123456789", 9),
                     0xcbf43926); /* the value of every description of CRC-32 */
    l.n = 1000;                   /* not looked at again */
    assert_true(oly_late_library_open(&l));
}

static void a_missing_library_has_a_reason(void **state)
{
    (void)state;
    static const char *const files[] = {"libnone_here.so.7", NULL}, *const symbols[] = {"none_here"};
    void *address = NULL;
    oly_late_library l = {.files = files, .symbols = symbols, .addresses = &address, .n = 1};
    assert_false(oly_late_library_open(&l));
    assert_non_null(strstr(l.reason, "libnone_here.so.7"));
    assert_false(oly_late_library_open(&l));
}

static void a_library_without_a_function_has_a_reason(void **state)
{
    (void)state;
    static const char *const files[] = {"libz.so.1", NULL}, *const symbols[] = {"crc32", "crc64_of_tomorrow"};
    void *address[2] = {NULL};
    oly_late_library l = {.files = files, .symbols = symbols, .addresses = address, .n = 2};
    assert_false(oly_late_library_open(&l));
    assert_string_equal(l.reason, "libz.so.1 has no crc64_of_tomorrow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_of_a_library_are_found),
                                       cmocka_unit_test(a_missing_library_has_a_reason),
                                       cmocka_unit_test(a_library_without_a_function_has_a_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
