/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of which one process writes all bytes while the others wait for how it ends. Called by runtime/array. */
#ifndef OLY_ARRAY_FILES_ONE_WRITER_H
#define OLY_ARRAY_FILES_ONE_WRITER_H
#include "array/array.h"

typedef struct oly_one_writer {
    oly_mesh
        agreeing; /* the processes that agree on the status: those of the array's mesh; of an uncommitted array, all */
    int process;  /* the one that writes: 0, or, if the mesh leaves processes out, that of its first device */
    bool takes_part; /* does this process belong to them? */
    bool leaves_out; /* does another one not? */
} oly_one_writer;

oly_status oly_one_writer_of(oly_array x, oly_one_writer *w);
/* Processes without a part of the array learn the status of the call from one that has. Returns it. */
oly_status oly_tell_outsiders(oly_array x, const oly_one_writer *w, const char *path, oly_status st, const char *what);
/* fails like oly_array_readable, and if the array has no values: it is simulated, or an unreduced sum. */
oly_status oly_array_has_value(oly_array x);
/* Writes a file, which appears whole or not at all, as `make` passes its bytes to the sink; it may replace a regular file, nothing
 * else. fails OLY_IO (path and reason), like make. */
oly_status oly_write_whole_file(const char *path,
                                oly_status (*make)(void *what,
                                                   oly_status (*sink)(void *to, const void *bytes, size_t n), void *to),
                                void *what);
#endif
