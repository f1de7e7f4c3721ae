/* SPDX-License-Identifier: BSD-3-Clause */
/* Manifests of checkpoints: each text gets the right checksum at its end, so that everything before it is reached. An accepted one has
 * parts that lie in their arrays, and file names that lead nowhere else. */
#include "fuzz.h"
#include "core/error.h"
#include "file/manifest.h"
#include <stdio.h>
#include <string.h>

const char *const fuzz_seeds[] = {"olympus-checkpoint 1\nstep 7\nchunk 4096\ntext a%20line\nvalues 2 -5 9\narrays "
                                  "1\narray w float32 2 4 6 x\npart 0 a.npy 176 0 0 2 "
                                  "6 00000001\npart 0 b.npy 176 2 0 2 6 00000002\n",
                                  "olympus-checkpoint 1\nstep 0\nchunk 4096\ntext -\nvalues 0\narrays 2\narray w int8 "
                                  "0 -\narray v bool 1 0 -\npart 0 c.npy 129 "
                                  "ffffffff\n",
                                  "olympus-checkpoint 1\nstep 0\nchunk 4096\ntext -\nvalues 0\narrays 0\n", NULL};
const char *const fuzz_words[] = {
    "part 0 ", "array ",    " 0",       " 1", " 9223372036854775807", " -1", "..", "/", "%2f", "\n", " ", "00000001",
    "float64", "values 1 ", "arrays 2", NULL};

static void check(const oly_manifest *m)
{
    for (int k = 0; k < m->n_parts; k++) {
        const oly_manifest_part *p = &m->part[k];
        const oly_manifest_array *a = &m->array[p->array];
        FUZZ_CHECK(p->file[0] != '.' && !strchr(p->file, '/'));
        for (int d = 0; d < a->rank; d++)
            FUZZ_CHECK(p->start[d] >= 0 && p->extent[d] > 0 && p->extent[d] <= a->shape[d] - p->start[d]);
    }
}

void fuzz_try(const char *text)
{
    char whole[512];
    oly_manifest m;
    size_t n = (size_t)snprintf(whole, sizeof whole - 16, "%s", text);
    n = n < sizeof whole - 17 ? n : sizeof whole - 17;
    n += (size_t)snprintf(whole + n, 16, "end %08x\n", oly_checksum(0, whole, n));
    if (oly_manifest_read(whole, n, &m) == OLY_OK) {
        check(&m);
        oly_manifest_free(&m);
        return;
    }
    oly_raise(OLY_IO);
    fuzz_check_refusal();
}
