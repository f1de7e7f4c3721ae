/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the instruction set at start and forwards calls of kernel.h to its functions. Before oly_kernels_choose the
 * baseline is used. */
#include "gemm_bfloat.h"
#include "gemm_bytes.h"
#include "reduce_computed.h"
#include "table.h"
#include "core/error.h"
#include "local_table.h"
#include "openblas.h"
#include "stencil_table.h"
#include <string.h>

#define DECLARE(type, name, parameters) type DECLARE_AS(name) parameters;
#define DECLARE_AS(name)                OLY_PASTE(oly_##name, DECLARED_ISA)
#define DECLARED_ISA                    base
OLY_ISA_FUNCTIONS(DECLARE)
#undef DECLARED_ISA
#if defined(__x86_64__)
#define DECLARED_ISA avx2
OLY_ISA_FUNCTIONS(DECLARE)
#undef DECLARED_ISA
#define DECLARED_ISA avx512
OLY_ISA_FUNCTIONS(DECLARE)
#undef DECLARED_ISA

static bool runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2");
}
static bool runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
#endif
static bool runs_base(void)
{
    return true;
}

#define TABLE(isa)                                                                                                     \
    {#isa,                                                                                                             \
     oly_tile_run_##isa,                                                                                               \
     oly_tile_instruction_run_##isa,                                                                                   \
     oly_reduce_run_##isa,                                                                                             \
     oly_reduce_computed_##isa,                                                                                        \
     oly_reduce_results_##isa,                                                                                         \
     oly_reduce_finish_##isa,                                                                                          \
     oly_combine_##isa,                                                                                                \
     oly_gemm_run_##isa,                                                                                               \
     oly_gemm_bytes_run_##isa,                                                                                         \
     oly_gemm_bfloat_run_##isa,                                                                                        \
     oly_copy_run_##isa},
static const oly_isa_table tables[] = {OLY_FOR_EACH_ISA(TABLE)};
#define RUNS(isa) runs_##isa,
static bool (*const runs[])(void) = {OLY_FOR_EACH_ISA(RUNS)};
#define N_TABLES ((int)(sizeof tables / sizeof *tables))

static const oly_isa_table *chosen = &tables[N_TABLES - 1];

oly_status oly_kernels_choose(const char *isa)
{
    char known[64] = "";
    oly_openblas_choose();
    oly_openblas_end_threads();
    for (int i = 0; i < N_TABLES; i++) {
        if (!runs[i]())
            continue;
        if (isa[0] == '\0' || strcmp(isa, tables[i].name) == 0) {
            chosen = &tables[i];
            oly_stencil_choose(chosen->name);
            oly_local_choose(chosen->name);
            return OLY_OK;
        }
        strcat(known, known[0] == '\0' ? "" : ", ");
        strcat(known, tables[i].name);
    }
    return oly_fail(OLY_INVALID, "instruction set \"%s\" is not one this processor has; choose one of: %s", isa, known);
}

const char *oly_kernels_isa(void)
{
    return chosen->name;
}

/* -- forwarding ---------------------------------------------------------------------------------------------------- */

void oly_tile_run(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                  const oly_tile_operand *stores, int chunk, int n_chunks)
{
    chosen->tile_run(program, box, loads, stores, chunk, n_chunks);
}
void oly_tile_instruction_run(const oly_tile_instruction *c, unsigned scalars, int n, void *out, const char *const *in)
{
    chosen->tile_instruction_run(c, scalars, n, out, in);
}
void oly_reduce_run(const oly_reduce_task *t, const void *in, void *out, void *scratch, int chunk, int n_chunks)
{
    chosen->reduce_run(t, in, out, scratch, chunk, n_chunks);
}
void oly_reduce_computed(const oly_reduce_task *t, const oly_reduce_source *source, void *out, void *scratch, int chunk,
                         int n_chunks)
{
    chosen->reduce_computed(t, source, out, scratch, chunk, n_chunks);
}
void oly_reduce_results(const oly_reduce_task *t, const void *in, void *out, int64_t begin, int64_t end)
{
    chosen->reduce_results(t, in, out, begin, end);
}
void oly_reduce_finish(const oly_reduce_task *t, void *out, void *scratch)
{
    chosen->reduce_finish(t, out, scratch);
}
void oly_combine(oly_combiner c, oly_dtype dtype, bool in_pairs, int n_counts, const int *counts,
                 const void *const *sources, void *out, int64_t begin, int64_t end)
{
    chosen->combine(c, dtype, in_pairs, n_counts, counts, sources, out, begin, end);
}
void oly_gemm_run(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk, int n_chunks)
{
    chosen->gemm_run(t, a, b, c, chunk, n_chunks);
}
void oly_gemm_bytes_run(oly_byte_way way, const oly_gemm_task *t, bool a_signed, bool b_signed, const void *a,
                        const void *b, void *c, int chunk, int n_chunks)
{
    chosen->gemm_bytes_run(way, t, a_signed, b_signed, a, b, c, chunk, n_chunks);
}
void oly_gemm_bfloat_run(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk, int n_chunks)
{
    chosen->gemm_bfloat_run(t, a, b, c, chunk, n_chunks);
}
void oly_copy_run(const oly_copy_task *t, void *to, const void *from, int chunk, int n_chunks)
{
    chosen->copy_run(t, to, from, chunk, n_chunks);
}
