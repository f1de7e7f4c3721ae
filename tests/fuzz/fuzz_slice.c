/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices and axes: oly_slice and the axes of oly_sum. A slice is inside its array and has the shape its type says. */
#include "fuzz.h"

const char *const fuzz_seeds[] = {"1:-1", ":", "::2, 1:3", "0, -1, 2", "..., 3",       "-3:, :2, ...",
                                  "0,-1", "",  "7",        "5:2",      "::-1, 3:0:-2", NULL};
const char *const fuzz_words[] = {":",
                                  "::",
                                  ",",
                                  "...",
                                  "-",
                                  "0",
                                  "1",
                                  "-1",
                                  "7",
                                  "99999999999999999999",
                                  " ",
                                  "9223372036854775807",
                                  "-9223372036854775808",
                                  "None",
                                  NULL};

void fuzz_try(const char *text)
{
    oly_array x = oly_reshape(oly_arange(5 * 4 * 3, OLY_INT32), 5, 4, 3), y = oly_slice(x, text);
    if (y) {
        FUZZ_CHECK(oly_rank(y) >= 0 && oly_rank(y) <= 3 && oly_size(y) >= 0 && oly_size(y) <= 60);
        for (int d = 0; d < oly_rank(y); d++)
            FUZZ_CHECK(oly_dim(y, d) >= 0 && oly_dim(y, d) <= 5);
        int32_t part[60];
        FUZZ_CHECK(oly_get(y, part, sizeof part) == OLY_OK);
        bool seen[60] = {false};
        for (int64_t i = 0; i < oly_size(y); i++) {
            FUZZ_CHECK(part[i] >= 0 && part[i] < 60 && !seen[part[i]]);
            seen[part[i]] = true;
        }
        return;
    }
    fuzz_check_refusal();
    oly_array sum = oly_sum(x, .axes = text);
    if (sum)
        FUZZ_CHECK(oly_item(oly_sum(sum)) == 60 * 59 / 2);
    else
        fuzz_check_refusal();
}
