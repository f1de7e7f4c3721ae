/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of bytes and of bfloat16 with the instructions that processors have for them, on CPUs. Those of bytes, and those of bfloat16 with
 * results of float32, read their operands instead of converted copies (plan/schedule/fused_products.c). Private to the executors
 * (prepare_cpu.c, executor_cpu.c, repeated_work.c, measure_local.c, cuda/bytes.c). */
#ifndef OLY_RUN_NARROW_PRODUCT_H
#define OLY_RUN_NARROW_PRODUCT_H
#include "gemm_bytes.h"
#include "plan/model/steps.h"

/* Has the product conversions of bytes, which it could read instead? */
bool oly_has_bytes(const oly_step *product);
/* How the executor computes the product from bytes; OLY_BYTES_NONE: it does not, the operands are converted. */
oly_byte_way oly_byte_way_of(const oly_step *product);
/* Does the executor compute products of bfloat16 in matrix registers? */
bool oly_has_bfloat_products(void);
/* Does it compute this one so? Of its conversions, if it has some, it needs nothing then. */
bool oly_multiplies_bfloats(const oly_plan *plan, const oly_step *product);
/* Where the narrow elements of operand o of a product with conversions begin, and their type. *task, the product's, is given their strides. */
const char *oly_narrow_operand(void *const *base, const oly_step *product, int o, int device, oly_gemm_task *task,
                               oly_dtype *type);
/* A chunk of such a product on one device, of oly_gemm_bytes_chunks or oly_gemm_bfloat_chunks. base: of every buffer. */
void oly_run_byte_product(void *const *base, const oly_step *product, int device, oly_byte_way way, int chunk,
                          int n_chunks);
void oly_run_converted_bfloats(void *const *base, const oly_step *product, int device, int chunk, int n_chunks);
#endif
