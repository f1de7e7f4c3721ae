/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of work on devices that compute late (oly_platform_is_late). The executor submits the work of a step to the
 * device that does it; where that uses the memory of other devices, it comes after what those were given before, and what
 * they are given next comes after it:
 *
 *      device 0   ... writes a |---------------------> wait, writes a
 *                              record       record
 *      device 1   ............. wait, reads a |.......
 *
 * The host waits (oly_drain) before it reads or writes a slot, before messages are packed, and at the end of every run that may
 * not leave its work pending. On other platforms only oly_drain is called, which has nothing to do. Private to runtime/run. */
#ifndef OLY_RUN_DEVICE_ORDER_H
#define OLY_RUN_DEVICE_ORDER_H
#include "device/platform.h"
#include "run/detour.h"
#include "run/interpret.h"

/* A set of devices of the plan, by their bits: at most OLY_MOST_LATE_DEVICES. */
typedef uint64_t oly_device_set;
static inline oly_device_set oly_one_device(int device)
{
    return (oly_device_set)1 << device;
}
/* The device whose memory a place is in; none if it has no memory here. */
static inline oly_device_set oly_device_with(const oly_run *r, int cell)
{
    return cell < 0 ? 0 : oly_one_device(oly_cell_device(r->plan, cell));
}

/* A device's share of a step. */
typedef struct oly_device_work {
    oly_run *run;      /* outlives the work, which is submitted or, in queues of the platform, done when the run ends */
    int device;        /* of the plan */
    void *const *base; /* the run's at submission: loops swap buffers meanwhile */
    const void *what;  /* the caller's, copied */
    oly_device_set uses; /* the devices whose memory it uses */
} oly_device_work;

/* What `what` is. */
typedef enum oly_work_of {
    OLY_WORK_STEP,   /* oly_step: TILE, REDUCE, LOCAL, CALL, GEMM */
    OLY_WORK_COPIES, /* oly_copies, those to the device */
    OLY_WORK_SUMS,   /* oly_sums, those of which the device gets the first result */
    OLY_WORK_TILES,  /* oly_passes: tiles of a pass of a stencil loop */
} oly_work_of;

typedef struct oly_copies {
    const oly_copy_work *copies; /* [n] */
    const int *chunks;           /* [n] of the CPU's kernel */
    int n;
    const struct oly_prepared *prepared; /* of their step or level */
} oly_copies;

typedef struct oly_sums {
    const oly_reduction_work *groups; /* [n] */
    int n;
    oly_combiner combiner;
    oly_dtype dtype;
} oly_sums;
/* The device that reduces a group: the first that gets the result. */
static inline int oly_summing_device(const oly_plan *plan, const oly_reduction_work *g)
{
    return oly_cell_device(plan, g->out_base[0]);
}

typedef struct oly_work_kind {
    oly_work_of of;
    void (*compute)(const oly_device_work *w);              /* with the kernels of the CPU */
    void (*cells)(const oly_device_work *w, oly_cells *to); /* names the cells that it uses */
} oly_work_kind;

/* Submits the work to every device d with uses[d], the devices whose memory it uses there (itself included); what:
 * `bytes` bytes, which are copied. The devices' shares are independent of each other. Computes at once where there is
 * no memory to queue it. fails as a device does. */
oly_status oly_submit(oly_run *r, const oly_device_set *uses, const oly_work_kind *kind, const void *what,
                      size_t bytes);
/* Computes now, on copies of the cells in host memory (detour.h). fails OLY_MEMORY, or as a device does. */
oly_status oly_compute_on_host(const oly_device_work *w, const oly_work_kind *kind);
oly_status oly_drain_device(const oly_run *r, int device);
oly_status
oly_drain_late(const oly_run *r); /* every device of the plan, also after one has failed; fails, too, as work did */
static inline oly_status oly_drain(const oly_run *r)
{
    return oly_platform_is_late() ? oly_drain_late(r) : OLY_OK;
}
/* At the end of a run, fine: so far nothing has failed. Waits, or leaves the devices' work pending (device/pending.h). */
oly_status oly_end_late(oly_run *r, bool fine);
/* The table of base pointers has changed: later submissions use the new one. */
void oly_forget_base(oly_run *r);
static inline void oly_base_changes(oly_run *r)
{
    if (r->base_copy)
        oly_forget_base(r);
}
#endif
