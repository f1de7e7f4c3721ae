/* SPDX-License-Identifier: BSD-3-Clause */
/* Meshes: oly_make_mesh. An accepted text gives as many devices as its axes say, and prints. */
#include "fuzz.h"
#include <string.h>

const char *const fuzz_seeds[] = {"x=8", "i=4, j=2", "a=1,b=2 , c=4", "x=2:explicit, y=4:auto", "_long_name_1=3",
                                  "",    NULL};
const char *const fuzz_words[] = {"x",          "=",        "8",      ",", "2",  "4", ":",
                                  "auto",       "explicit", "manual", "0", "-1", " ", "99999999999999999999",
                                  "2147483648", "y=1",      NULL};

void fuzz_try(const char *text)
{
    oly_mesh mesh = oly_make_mesh(text);
    char name[2048];
    if (!mesh) {
        fuzz_check_refusal();
        return;
    }
    int devices = 1;
    for (int a = 0; a < oly_mesh_axis_count(mesh); a++) {
        FUZZ_CHECK(oly_mesh_axis_size(mesh, a) >= 1 && strlen(oly_mesh_axis_name(mesh, a)) > 0);
        devices *= oly_mesh_axis_size(mesh, a);
    }
    FUZZ_CHECK(devices == oly_mesh_device_count(mesh) && devices <= oly_device_count());
    FUZZ_CHECK(oly_make_mesh(text) == mesh);
    FUZZ_CHECK(oly_mesh_str(mesh, name, sizeof name) > 0);
}
