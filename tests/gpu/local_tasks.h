/* SPDX-License-Identifier: BSD-3-Clause */
/* Random tasks of kernels/local.h, computed by the CPU's kernels and by those of kernels/cuda. Included by tests/gpu/test_gpu_local*.c. */
#ifndef LOCAL_TASKS_H
#define LOCAL_TASKS_H
#include "kernel_launcher.h"
#include "local_table.h"

/* A task under construction: operands with memory of their own. */
typedef struct drawn {
    oly_local_task t;
    oly_local_operand in[OLY_LOCAL_MOST];
    void *memory[OLY_LOCAL_MOST];
    oly_sliding_window window;
} drawn;

static inline oly_dtype random_dtype(bool complex)
{
    static const oly_dtype usual[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_BFLOAT16, OLY_INT32, OLY_INT64, OLY_BOOL};
    if (random_below(2))
        return usual[random_below(6)];
    return (oly_dtype)random_below(complex ? OLY_N_DTYPES : OLY_COMPLEX64);
}

/* The whole of an array of these extents; dense, or with dimensions in another order and gaps. Returns the elements it spans. */
static inline int64_t place_box(oly_local_operand *x, bool dense)
{
    int order[OLY_MAX_RANK];
    int64_t span = 1;
    for (int d = 0; d < x->rank; d++)
        order[d] = d;
    for (int k = 0; k < x->rank && !dense && random_below(2); k++) {
        int i = random_below(x->rank), j = order[i];
        order[i] = order[k], order[k] = j;
    }
    for (int k = x->rank - 1; k >= 0; k--) {
        int d = order[k];
        x->stride[d] = span;
        span *= x->extent[d] + (!dense && random_below(6) == 0);
    }
    return span;
}
/* A dimension of which only a part is here. */
static inline void take_part(oly_local_operand *x, int d, int64_t before, int64_t after)
{
    x->origin[d] = before;
    x->size[d] = before + x->extent[d] + after;
}
static inline void set_box(oly_local_operand *x, oly_dtype dtype, int rank, const int64_t *extent)
{
    *x = (oly_local_operand){.dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        x->size[d] = x->extent[d] = extent[d];
}

/* Gives operand k random elements, or indexes in [least, most] along a dimension. */
static inline void fill_operand(drawn *w, int k)
{
    oly_local_operand *x = &w->in[k];
    w->memory[k] = random_array(x->dtype, place_box(x, random_below(2)));
}
static inline void fill_indexes(drawn *w, int k, int64_t least, int64_t most)
{
    oly_local_operand *x = &w->in[k];
    int64_t n = place_box(x, random_below(2)) + 8;
    w->memory[k] = malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) {
        int64_t value = least + (int64_t)(random_word() % (uint64_t)(most - least + 1));
        if (x->dtype == OLY_INT64)
            ((int64_t *)w->memory[k])[i] = value;
        else
            ((int32_t *)w->memory[k])[i] = (int32_t)value;
    }
}

static inline void run_on_cpu(const drawn *w, void *out, void *scratch)
{
    for (int phase = 0; phase < oly_local_phases(&w->t); phase++)
        for (int c = 0, n = oly_local_chunks(&w->t, phase); c < n; c++)
            oly_local_run(&w->t, (const void *const *)w->memory, out, scratch, phase, c, n);
}

/* How far results may be from the CPU's; NULL: the same bits. */
typedef bool close_enough(const drawn *w, int64_t n, const void *cpu, const void *gpu);

/* Computes the task on both and compares; `in_place`: the result is where operand 0 is. Frees the operands. */
static inline void compare_task(drawn *w, const char *what, int round, bool in_place, close_enough *close)
{
    w->t.in = w->in;
    w->t.window = &w->window;
    place_box(&w->t.out, true);
    int64_t n = oly_local_count(&w->t.out, -1);
    size_t bytes = oly_element_bytes[w->t.out.dtype], scratch_bytes = oly_local_scratch(&w->t) + 64;
    size_t partial = oly_element_bytes[w->in[0].dtype];
    void *cpu = random_array(w->t.out.dtype, n), *gpu = random_array(w->t.out.dtype, n);
    void *cpu_scratch = calloc(1, scratch_bytes), *gpu_scratch = calloc(1, scratch_bytes);
    run_on_cpu(w, cpu, cpu_scratch);
    const void *in[OLY_LOCAL_MOST];
    for (int k = 0; k < w->t.n_in; k++)
        in[k] = w->memory[k];
    if (in_place) {
        memcpy(gpu, in[0], (size_t)n * bytes);
        in[0] = gpu;
    }
    assert_true(oly_cuda_has_local(&w->t));
    assert_int_equal(oly_cuda_local(&launcher, &w->t, in, gpu, gpu_scratch), OLY_OK);
    int64_t k = close ? (close(w, n, cpu, gpu) ? -1 : 0) : first_difference(w->t.out.dtype, n, cpu, gpu);
    if (k < 0 && close && !in_place) { /* the same bits for every order of blocks */
        void *again = random_array(w->t.out.dtype, n);
        assert_int_equal(oly_cuda_local(&launcher, &w->t, in, again, gpu_scratch), OLY_OK);
        assert_memory_equal(again, gpu, (size_t)n * bytes);
        free(again);
    }
    if (k < 0 && w->t.partial && (w->t.op == OLY_LOCAL_TOP_K || oly_local_way_of(w->t.op) == OLY_LOCAL_FINDS))
        k = first_difference(w->in[0].dtype, n, cpu_scratch, gpu_scratch);
    if (k >= 0)
        fail_msg("%s, round %d: operation %d of %s, rank %d, %d elements%s: differs at %d (element of %d bytes)", what,
                 round, w->t.op, oly_dtype_name(w->in[0].dtype), w->in[0].rank, (int)n, w->t.partial ? ", a part" : "",
                 (int)k, (int)partial);
    for (int j = 0; j < w->t.n_in; j++)
        free(w->memory[j]);
    free(cpu), free(gpu), free(cpu_scratch), free(gpu_scratch);
    free_kept();
}
#endif
