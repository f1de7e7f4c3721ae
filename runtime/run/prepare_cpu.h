/* SPDX-License-Identifier: BSD-3-Clause */
/* What the executor for CPUs prepares for each step: its division into chunks that threads compute one by one. Chunks
 * follow from shapes alone (kernel.h). Private to the executor (executor_cpu.c). */
#ifndef OLY_RUN_PREPARE_CPU_H
#define OLY_RUN_PREPARE_CPU_H
#include "plan/model/steps.h"

enum { OLY_MOST_PHASES = 8 }; /* of a step: a long line that is sorted has the most */

typedef struct oly_prepared {
    int phases;                         /* in sequence, of steps that compute */
    const int *chunks[OLY_MOST_PHASES]; /* [n_devices] in each phase */
    int total[OLY_MOST_PHASES];         /* over all devices */
    bool reads_narrow;                  /* a product that reads narrow operands; its conversions have no chunks then */
    int bytes;                          /* oly_byte_way: it reads bytes */
    bool bfloats;                       /* a product of bfloat16 in matrix registers */
    bool fused; /* a reduction that computes its operand (fused_reduction.h); its group has no chunks then */
    const struct oly_row_blocks
        *blocks; /* of the last step of a chain of rows (row_blocks.h), which is run by them; NULL: each step is */
    /* Products of which only some parts are computed: the numbers of their chunks, and out of how many. NULL: all
     * chunks. */
    const int *const *only; /* [n_devices][chunks] */
    const int *of;          /* [n_devices] */
    struct oly_group_known
        *known;        /* [n_devices] of a group that may become machine code (compiled_groups.h); NULL: none */
    const int *copies; /* [n_copies] chunks of each copy of the step or level */
    int total_copied;
    const struct oly_prepared *parts; /* [n_phases] of a product whose result is sent in parts */
    struct oly_segment *segment;      /* that begins with the step (replay.h); NULL: none */
    bool left_out;                    /* a group that GPUs do not launch: a product reads its bytes (cuda/bytes.h) */
    /* GPUs launch the step with the one after it: a product (cuda/epilogues.h), a convolution (cuda/features_last.h), or a step of a
     * row chain */
    bool with_next;
    /* GPUs make the copies of the step with those after it, if at all: a padded array of a row chain */
    bool copied_later;
    const struct oly_row_steps *rows;    /* of the last step of a row chain (cuda/row_chains.h); NULL: none */
    const struct oly_epilogue *epilogue; /* of that step; NULL: none */
    const struct oly_step *convolution;  /* of the copies that GPUs launch with it (cuda/features_last.h); NULL: none */
    const struct oly_repeats
        *repeats; /* of a step that one device computes for several (repeated_work.h); NULL: none does */
    const struct oly_prepared
        *once;       /* for runs in which its results are held once (held_once.h); NULL: there are none */
    int once_slot;   /* one of these */
    bool first_only; /* chunks and copies are those of the first device alone */
    const struct oly_loop_once
        *loop_once;                 /* of a loop that the first device runs for all (loop_once.h); NULL: each runs it */
    bool by_device;                 /* a loop that each device may run by itself (loop_by_device.h) */
    struct oly_loop_replay *replay; /* of a loop whose iterations may be recorded (loop_replay.h); NULL: they may not */
    struct oly_speculation
        *speculation; /* of a loop whose iterations may begin early (speculation.h); NULL: none may */
} oly_prepared;

/* Element-operations of a step, about 10 us, from which on several threads share it. */
enum { OLY_WORTH_SHARING = 40000 };
/* Those of a step: of products several multiply-adds are one. */
static inline double oly_operations_of(const oly_step *s)
{
    return s->kind == OLY_STEP_GEMM ? s->work / 8 : s->work;
}

/* Makes what is prepared for a step, of which `first` is a copy, that of the first device alone: its chunks, and its copies, which come
 * first. fails OLY_MEMORY. */
oly_status oly_prepare_first(oly_plan *plan, const oly_step *s, oly_prepared *first);
/* The chunks of a device's share of a step that computes, in one phase, where so many devices compute at once. */
int oly_chunks_of_share(const oly_step *s, int device, int phase, int computing);
#endif
