/* SPDX-License-Identifier: BSD-3-Clause */
/* A deflated part of a file as a stream of its bytes. Callable by runtime/file and above. */
#ifndef OLY_FILE_DEFLATED_H
#define OLY_FILE_DEFLATED_H
#include "core/error.h"

typedef struct oly_deflated oly_deflated;
/* The stream of `packed` bytes from byte `begin` on. */
oly_status oly_deflated_open(int file, const char *path, int64_t begin, int64_t packed, oly_deflated **stream);
/* The next n bytes. fails OLY_IO: damaged, or the stream ends before. */
oly_status oly_deflated_read(oly_deflated *stream, void *bytes, size_t n);
/* Is this the end? fails OLY_IO if there is more. */
oly_status oly_deflated_end(oly_deflated *stream);
void oly_deflated_close(oly_deflated *stream);
#endif
