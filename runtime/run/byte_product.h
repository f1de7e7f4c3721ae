/* SPDX-License-Identifier: BSD-3-Clause */
/* A product of bytes that reads them instead of converted copies (plan/schedule/fused_products.c), on CPUs. Private to the executors
 * (prepare_cpu.c, executor_cpu.c, cuda/bytes.c). */
#ifndef OLY_RUN_BYTE_PRODUCT_H
#define OLY_RUN_BYTE_PRODUCT_H
#include "gemm_bytes.h"
#include "plan/model/steps.h"

/* How the executor computes the product from bytes; OLY_BYTES_NONE: it does not, the operands are converted. */
oly_byte_way oly_byte_way_of(const oly_step *product);
/* Where the bytes of operand o of such a product begin, and whether they have a sign. */
const char *oly_bytes_of(void *const *base, const oly_step *product, int o, int device, bool *has_sign);
/* A chunk of such a product on one device, of oly_gemm_bytes_chunks. base: of every buffer. */
void oly_run_byte_product(void *const *base, const oly_step *product, int device, oly_byte_way way, int chunk,
                          int n_chunks);
#endif
