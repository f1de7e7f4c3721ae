/* SPDX-License-Identifier: BSD-3-Clause */
/* A product of bytes that reads them instead of converted copies (plan/schedule/fused_products.c), on CPUs. Private to the executor for
 * CPUs (prepare_cpu.c, executor_cpu.c). */
#ifndef OLY_RUN_BYTE_PRODUCT_H
#define OLY_RUN_BYTE_PRODUCT_H
#include "gemm_bytes.h"
#include "plan/model/steps.h"

/* How the executor computes the product from bytes; OLY_BYTES_NONE: it does not, the operands are converted. */
oly_byte_way oly_byte_way_of(const oly_step *product);
/* A chunk of such a product on one device, of oly_gemm_bytes_chunks. base: of every buffer. */
void oly_run_byte_product(void *const *base, const oly_step *product, int device, oly_byte_way way, int chunk,
                          int n_chunks);
#endif
