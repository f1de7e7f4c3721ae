/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition specs: oly_named. An accepted text prints as a sharding, splits any array into parts that cover it, and is
 * the same handle when parsed again. */
#include "fuzz.h"
#include <string.h>

const char *const fuzz_seeds[] = {"x",
                                  "x, y",
                                  "(x,y), None",
                                  "None, (y, x)",
                                  "P(x, None)",
                                  "P()",
                                  "y, None, z",
                                  "(x, z), (y)",
                                  "",
                                  "None, x, unreduced={y}",
                                  NULL};
const char *const fuzz_words[] = {"x",  "y",           "z",         "(", ")", ",", "None",
                                  "P(", "unreduced={", "reduced={", "}", " ", "P", NULL};

static void check(oly_mesh mesh, const char *text)
{
    oly_sharding s = oly_named(mesh, text);
    char name[1024];
    if (!s) {
        fuzz_check_refusal();
        return;
    }
    FUZZ_CHECK(oly_named(mesh, text) == s);
    FUZZ_CHECK(oly_sharding_str(s, name, sizeof name) > 0 && strlen(name) > 0);
    oly_array x = oly_device_put(oly_reshape(oly_arange(5 * 7 * 3, OLY_INT32), 5, 7, 3), s);
    double sum = x ? oly_item(oly_sum(x)) : 0;
    if (oly_last_status() == OLY_OK)
        FUZZ_CHECK(sum == 105 * 104 / 2);
    else
        fuzz_check_refusal(); /* more dimensions, or an unreduced value */
}

void fuzz_try(const char *text)
{
    check(oly_make_mesh("x=2, y=2, z=2"), text);
    check(oly_make_mesh("x=4:explicit, y=2"), text);
}
