/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of its kernels OpenBLAS uses. It chooses them when it is loaded, by the processor's model, and takes older ones for models it
 * does not know: kernels of AVX2 on processors that have AVX-512. Inside kernels/ and its tests only. */
#ifndef OLY_OPENBLAS_H
#define OLY_OPENBLAS_H
#include <stdbool.h>

/* The core type that suits a processor with these instructions better than `core`, which OpenBLAS chose; NULL: none does. A rule, not a
 * measurement: ranks on equal processors must compute the same bits. */
const char *oly_openblas_better(const char *core, bool has_avx2, bool has_avx512);

/* Makes OpenBLAS use these kernels from now on. No product may be running. False: this OpenBLAS has none of that name, or cannot
 * change; nothing happens. */
bool oly_openblas_use(const char *core);

/* At start: the kernels for this processor, unless the environment variable OPENBLAS_CORETYPE names some. */
void oly_openblas_choose(void);

/* At start: each product is computed by the thread that asks for it, since our own threads compute the chunks; OpenBLAS's are ended. No product may be
 * running. */
void oly_openblas_end_threads(void);
#endif
