/* SPDX-License-Identifier: BSD-3-Clause */
/* Submitting work to devices that compute late. See device_order.h. */
#include "run/device_order.h"
#include "run/executor.h"
#include "core/error.h"
#include "device/pending.h"
#include "run/timed_steps.h"
#include <stdatomic.h>
#include <string.h>

/* A copy of a run's base pointers, shared by the work that was submitted with them. */
struct oly_base_copy {
    atomic_int holders; /* queued work, and the run while they are current */
    void *base[];
};

typedef struct queued {
    oly_device_work work; /* first member */
    const oly_work_kind *kind;
    oly_device_set uses;
    struct oly_base_copy *copy;
    int label; /* as the run's when it was submitted */
    int64_t execution;
    max_align_t what[];
} queued;

static void drop(struct oly_base_copy *copy)
{
    if (copy && atomic_fetch_sub(&copy->holders, 1) == 1)
        oly_release(copy);
}

void oly_forget_base(oly_run *r)
{
    drop(r->base_copy);
    r->base_copy = NULL;
}

/* NULL: out of memory. */
static struct oly_base_copy *hold_base(oly_run *r)
{
    size_t bytes = sizeof *r->base * (size_t)r->plan->n_slots * (size_t)r->plan->n_devices;
    if (!r->base_copy && (r->base_copy = oly_malloc(sizeof *r->base_copy + bytes))) {
        atomic_init(&r->base_copy->holders, 1);
        memcpy(r->base_copy->base, r->base, bytes);
    }
    if (r->base_copy)
        atomic_fetch_add(&r->base_copy->holders, 1);
    return r->base_copy;
}

/* -- computing ---------------------------------------------------------------------------------------------------------- */

static bool uses_memory(const oly_run *r, oly_device_set uses, int memory)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        if (uses & oly_one_device(d) && oly_platform_memory(r->plan->devices[d]) == memory)
            return true;
    return false;
}

static void for_memory(const oly_run *r, oly_device_set uses, void (*open_or_close)(void *data))
{
    for (int k = 0; k < r->n_used && open_or_close; k++)
        if (uses_memory(r, uses, r->used[k]->memory))
            open_or_close(r->used[k]->data);
}

oly_status oly_compute_on_host(const oly_device_work *w, const oly_work_kind *kind)
{
    oly_detour d = {.cells = {.plan = w->run->plan, .base = w->base}};
    oly_device_work here = *w;
    void **host;
    kind->cells(w, &d.cells);
    OLY_TRY(oly_detour_begin(&d, &host));
    here.base = host;
    kind->compute(&here);
    return oly_detour_end(&d);
}

/* The first failure is reported by the next drain. */
static void note_failure(oly_run *r, oly_status st)
{
    int none = OLY_OK;
    if (st != OLY_OK)
        atomic_compare_exchange_strong(&r->worked, &none, (int)st);
}

static void compute_now(const oly_device_work *w, oly_device_set uses, const oly_work_kind *kind)
{
    if (oly_platform_is_apart()) {
        note_failure(w->run, oly_compute_on_host(w, kind));
        return;
    }
    for_memory(w->run, uses, oly_platform_get()->open);
    kind->compute(w);
    for_memory(w->run, uses, oly_platform_get()->close);
}

static void compute_queued(void *argument)
{
    queued *q = argument;
    int64_t begin = q->label ? oly_ticks() : 0;
    compute_now(&q->work, q->uses, q->kind);
    if (q->label)
        oly_timeline_part(q->label, q->work.run->plan->devices[q->work.device], q->execution, begin);
    drop(q->copy);
    oly_release(q);
}

/* False: out of memory. */
static bool queue(oly_run *r, int d, oly_device_set uses, const oly_work_kind *kind, const void *what, size_t bytes)
{
    struct oly_base_copy *copy = hold_base(r);
    queued *q = copy ? oly_malloc(sizeof *q + bytes) : NULL;
    if (q) {
        *q = (queued){{r, d, copy->base, q->what, uses}, kind, uses, copy, r->label, r->execution};
        memcpy(q->what, what, bytes);
        if (oly_platform_get()->submit(r->plan->devices[d], compute_queued, q))
            return true;
    }
    oly_release(q);
    drop(copy);
    return false;
}

/* -- order -------------------------------------------------------------------------------------------------------------- */

oly_status oly_drain_device(const oly_run *r, int device)
{
    oly_status st = oly_platform_is_late() ? oly_pending_drain(r->plan->devices[device]) : OLY_OK;
    return st == OLY_OK ? (oly_status)atomic_load(&r->worked) : st;
}

oly_status oly_drain_late(const oly_run *r)
{
    oly_status st = OLY_OK;
    for (int d = 0; d < r->plan->n_devices; d++) {
        oly_status own = oly_pending_drain(r->plan->devices[d]);
        st = st == OLY_OK ? own : st;
    }
    return st == OLY_OK ? (oly_status)atomic_load(&r->worked) : st;
}

/* Messages are of memory that others wait for; CPU devices beside GPUs compute in an order of their own. */
static bool may_stay_pending(const oly_run *r)
{
    if (!r->may_stay_pending || r->submitted || oly_run_is_timed(r))
        return false;
    for (int d = 0; d < r->plan->n_devices; d++)
        if (r->plan->devices[d] >= oly_platform_first_beside)
            return false;
    return true;
}

oly_status oly_end_late(oly_run *r, bool fine)
{
    if (fine && may_stay_pending(r))
        return oly_pending_add(r->plan->n_devices, r->plan->devices, r->site, oly_run_fail_in);
    return oly_drain_late(r);
}

/* What device d is given next comes after what every device of `of` was given so far. */
static oly_status follow(oly_run *r, int d, oly_device_set of, const oly_event *given)
{
    for (int e = 0; e < r->plan->n_devices; e++)
        if (of & oly_one_device(e) && !oly_platform_get()->wait(r->plan->devices[d], given[e]))
            OLY_TRY(oly_drain_device(r, e));
    return OLY_OK;
}

static oly_status record(oly_run *r, int d, oly_event *given)
{
    *given = (oly_event){.device = r->plan->devices[d]};
    return oly_platform_get()->record(r->plan->devices[d], given) ? OLY_OK : oly_drain_device(r, d);
}

static oly_device_set others(const oly_device_set *uses, int d)
{
    return uses[d] & ~oly_one_device(d);
}

/* Each device that has work comes after the devices whose memory it uses. */
static oly_status follow_used(oly_run *r, const oly_device_set *uses)
{
    oly_event given[OLY_MOST_LATE_DEVICES];
    oly_device_set used = 0;
    for (int d = 0; d < r->plan->n_devices; d++)
        used |= others(uses, d);
    for (int e = 0; e < r->plan->n_devices; e++)
        if (used & oly_one_device(e))
            OLY_TRY(record(r, e, &given[e]));
    for (int d = 0; d < r->plan->n_devices; d++)
        OLY_TRY(follow(r, d, others(uses, d), given));
    return OLY_OK;
}

/* And the devices whose memory was used come after it. */
static oly_status follow_users(oly_run *r, const oly_device_set *uses)
{
    oly_event given[OLY_MOST_LATE_DEVICES];
    for (int d = 0; d < r->plan->n_devices; d++)
        if (others(uses, d))
            OLY_TRY(record(r, d, &given[d]));
    for (int d = 0; d < r->plan->n_devices; d++)
        for (int e = 0; e < r->plan->n_devices; e++)
            if (others(uses, d) & oly_one_device(e))
                OLY_TRY(follow(r, e, oly_one_device(d), given));
    return OLY_OK;
}

/* A device with kernels of its own launches them, in its order; what it has none for is computed on the host, when it has done all
 * that was launched before. */
static oly_status launch(oly_run *r, int d, oly_device_set uses, const oly_work_kind *kind, const void *what)
{
    const oly_device_work w = {r, d, r->base, what, uses};
    oly_status st = OLY_OK;
    if (oly_executor_get()->launch && oly_executor_get()->launch(&w, kind->of, &st))
        return st;
    OLY_TRY(oly_drain_device(r, d));
    return oly_compute_on_host(&w, kind);
}

static oly_status submit_or_compute(oly_run *r, int d, oly_device_set uses, const oly_work_kind *kind, const void *what,
                                    size_t bytes)
{
    if (!oly_platform_get()->submit)
        return launch(r, d, uses, kind, what);
    if (queue(r, d, uses, kind, what, bytes))
        return OLY_OK;
    OLY_TRY(oly_drain_device(r, d)); /* and with it the devices it comes after */
    compute_now(&(oly_device_work){r, d, r->base, what, uses}, uses, kind);
    return OLY_OK;
}

oly_status oly_submit(oly_run *r, const oly_device_set *uses, const oly_work_kind *kind, const void *what, size_t bytes)
{
    OLY_TRY(follow_used(r, uses));
    for (int d = 0; d < r->plan->n_devices; d++)
        if (uses[d])
            OLY_TRY(submit_or_compute(r, d, uses[d], kind, what, bytes));
    return follow_users(r, uses);
}
