/* SPDX-License-Identifier: BSD-3-Clause */
/* Running functions of the program. See call_run.h. */
#include "run/call_run.h"
#include "run/device_order.h"
#include "run/executor.h"
#include "device/platform.h"
#include "core/error.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* -- failures of checks -------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    oly_status status;
    char text[3000];
} failure = {.lock = PTHREAD_MUTEX_INITIALIZER};

void oly_effect_forget(void)
{
    pthread_mutex_lock(&failure.lock);
    failure.status = OLY_OK;
    pthread_mutex_unlock(&failure.lock);
}

static void keep_failure(oly_status status, const char *text)
{
    pthread_mutex_lock(&failure.lock);
    if (failure.status == OLY_OK) {
        failure.status = status;
        snprintf(failure.text, sizeof failure.text, "%s", text);
    }
    pthread_mutex_unlock(&failure.lock);
}

oly_status oly_effect_failure(void)
{
    pthread_mutex_lock(&failure.lock);
    oly_status st = failure.status == OLY_OK ? OLY_OK : oly_fail(failure.status, "%s", failure.text);
    pthread_mutex_unlock(&failure.lock);
    return st;
}

/* -- one device ---------------------------------------------------------------------------------------------------- */

/* One element of the batch: its parts have no batch dimensions. */
typedef struct element {
    const oly_call_work *work;
    const oly_user_call *call;
    int64_t fill[2][OLY_MAX_RANK];
    oly_shard_part in[OLY_CALL_MOST + OLY_MAX_RANK], out[OLY_CALL_MOST];
    int n_in, n_out, n_lead;
    int64_t lead[OLY_MAX_RANK], lead_shape[OLY_MAX_RANK], at[OLY_MAX_RANK];
    const oly_call_gpu *gpu; /* whose memory the parts are in; NULL: the host's */
} element;

static void drop_lead(oly_shard_part *to, const oly_shard_part *from, int lead, const int64_t *at, void *base)
{
    int own = from->rank - lead;
    size_t n = sizeof *from->shape * (size_t)own;
    int64_t offset = 0;
    for (int b = 0; b < lead; b++)
        offset += at[b] * from->stride[b];
    *to = (oly_shard_part){.dtype = from->dtype, .rank = own};
    to->data = base ? (char *)base + offset * (int64_t)oly_dtype_size(from->dtype) : NULL;
    memcpy(to->shape, from->shape + lead, n);
    memcpy(to->stride, from->stride + lead, n);
    memcpy(to->origin, from->origin + lead, n);
    memcpy(to->whole, from->whole + lead, n);
    memcpy(to->before, from->before + lead, n);
    memcpy(to->after, from->after + lead, n);
}

static oly_status copy_box(const oly_call_gpu *gpu, const oly_copy_task *t, void *to, const void *from)
{
    if (gpu)
        return gpu->copy(gpu->context, t, to, from);
    for (int chunk = 0, n = oly_copy_chunks(t); chunk < n; chunk++)
        oly_copy_run(t, to, from, chunk, n);
    return OLY_OK;
}

static oly_status clear_bytes(const oly_call_gpu *gpu, void *to, size_t bytes)
{
    if (gpu)
        return gpu->clear(gpu->context, to, bytes);
    memset(to, 0, bytes);
    return OLY_OK;
}

/* Repeats the first or last element of what is there in dimension d, in the lines that are complete so far. */
static oly_status extend(const oly_call_gpu *gpu, const oly_shard_part *part, const int64_t *first,
                         const int64_t *extent, int d, int64_t count, bool at_end)
{
    oly_copy_task t = {.element_bytes = oly_dtype_size(part->dtype), .rank = part->rank};
    int64_t from = 0, to = 0;
    for (int e = 0; e < part->rank; e++) {
        t.extent[e] = e == d ? count : extent[e];
        t.to_stride[e] = part->stride[e];
        t.from_stride[e] = e == d ? 0 : part->stride[e];
        from += (e == d && at_end ? first[e] + extent[e] - 1 : first[e]) * part->stride[e];
        to += (e == d ? (at_end ? first[e] + extent[e] : 0) : first[e]) * part->stride[e];
    }
    char *data = part->data;
    return count > 0 ? copy_box(gpu, &t, data + to * (int64_t)t.element_bytes, data + from * (int64_t)t.element_bytes)
                     : OLY_OK;
}

/* Copies an operand row by row into scratch memory; fill: elements beyond the edges of the array, in front of and after the others. */
static oly_status pack(const oly_call_gpu *gpu, oly_shard_part *part, const oly_call_operand *x,
                       const int64_t (*fill)[OLY_MAX_RANK], void *to)
{
    oly_copy_task t = {.element_bytes = oly_dtype_size(part->dtype), .rank = part->rank};
    int64_t stride = 1, offset = 0, first[OLY_MAX_RANK], extent[OLY_MAX_RANK];
    for (int d = part->rank - 1; d >= 0; d--) {
        first[d] = fill[0][d];
        t.extent[d] = extent[d] = part->shape[d] - fill[0][d] - fill[1][d];
        t.from_stride[d] = part->stride[d];
        t.to_stride[d] = part->stride[d] = stride;
        offset += first[d] * stride;
        stride *= part->shape[d];
    }
    if (x && x->zero)
        OLY_TRY(clear_bytes(gpu, to, (size_t)stride * t.element_bytes));
    OLY_TRY(copy_box(gpu, &t, (char *)to + offset * (int64_t)t.element_bytes, part->data));
    part->data = to;
    for (int d = 0; d < part->rank; d++) {
        if (!x || !(x->nearest >> d & 1))
            continue;
        OLY_TRY(extend(gpu, part, first, extent, d, fill[0][d], false));
        OLY_TRY(extend(gpu, part, first, extent, d, fill[1][d], true));
        first[d] = 0;
        extent[d] = part->shape[d];
    }
    return OLY_OK;
}

/* Without batch dimensions. */
static const int64_t (*own_fill(element *e, const int64_t (*fill)[OLY_MAX_RANK]))[OLY_MAX_RANK]
{
    for (int side = 0; side < 2; side++)
        for (int d = 0; d < OLY_MAX_RANK; d++)
            e->fill[side][d] = d + e->n_lead < OLY_MAX_RANK ? fill[side][d + e->n_lead] : 0;
    return (const int64_t(*)[OLY_MAX_RANK])e->fill;
}

static oly_status fill_element(element *e, void *const *base)
{
    const oly_call_work *w = e->work;
    char *scratch = w->scratch_base >= 0 ? base[w->scratch_base] : NULL;
    for (int k = 0; k < e->n_in; k++) {
        const oly_place *p = &w->in_place[k];
        drop_lead(&e->in[k], &w->in[k], e->n_lead, e->at, p->base < 0 ? NULL : (char *)base[p->base] + p->offset);
        if (w->packed[k] && e->in[k].data)
            OLY_TRY(pack(e->gpu, &e->in[k], k < e->call->n_in ? &e->call->in[k] : NULL, own_fill(e, w->fill[k]),
                         scratch + w->packed[k] - 1));
    }
    for (int k = 0; k < e->n_out; k++)
        drop_lead(&e->out[k], &w->out[k], e->n_lead, e->at, base[w->out_base[k]]);
    for (int b = 0; b < e->n_lead; b++)
        e->lead[b] = w->in[0].origin[b] + e->at[b];
    return OLY_OK;
}

static bool next_element(element *e)
{
    for (int b = e->n_lead - 1; b >= 0; b--) {
        if (++e->at[b] < e->work->in[0].shape[b])
            return true;
        e->at[b] = 0;
    }
    return false;
}

static bool has_elements(const element *e)
{
    for (int b = 0; b < e->n_lead; b++)
        if (e->work->in[0].shape[b] == 0)
            return false;
    return true;
}

static void clear_results(const element *e)
{
    for (int k = 0; k < e->n_out; k++) {
        size_t n = oly_dtype_size(e->out[k].dtype);
        for (int d = 0; d < e->out[k].rank; d++)
            n *= (size_t)e->out[k].shape[d];
        if (n)
            memset(e->out[k].data, 0, n);
    }
}

static _Thread_local int calls_open;

bool oly_is_in_call(void)
{
    return calls_open > 0;
}

static bool is_same(oly_site a, oly_site b)
{
    return a.file == b.file && a.line == b.line && a.call == b.call;
}

static oly_status call_element(const oly_plan *plan, const oly_step *step, int device, const element *e, void *scratch,
                               oly_run *host)
{
    const oly_user_call *c = step->call.call;
    char message[2048] = "";
    const oly_call_frame frame = {
        .call = c,
        .site = step->node->site,
        .alone = host && is_same(host->site, step->node->site),
        .in = e->in,
        .out = (oly_shard_part *)(uintptr_t)e->out,
        .n_in = e->n_in,
        .scratch = scratch,
        .scratch_bytes =
            scratch ? plan->slots[oly_cell_slot(plan, e->work->scratch_base)].device_bytes[device] - e->work->scratch
                    : 0,
        .stream = e->gpu ? e->gpu->stream : NULL,
        .device = oly_mesh_local_id(plan->devices[device]),
        .n_lead = e->n_lead,
        .lead = e->lead,
        .lead_shape = e->lead_shape,
        .message = message,
        .room = sizeof message};
    if (c->effect && !*(const bool *)e->in[0].data && !c->gathers) {
        clear_results(e); /* in a branch that was not taken */
        return OLY_OK;
    }
    calls_open++;
    oly_call_inside = c->host ? oly_call_name(c) : oly_call_inside;
    oly_status st = c->run(&frame);
    oly_call_inside = NULL;
    calls_open--;
    if (st != OLY_OK && host) {
        host->failed = true;
        keep_failure(st, message);
        oly_drop_message();
    }
    return st;
}

static oly_status call_elements(void *const *base, const oly_plan *plan, const oly_step *step, int device,
                                const oly_call_gpu *gpu, oly_run *host)
{
    const oly_call_work *w = &step->call.device[device];
    if (!w->has_work)
        return OLY_OK;
    element e = {.work = w,
                 .gpu = gpu,
                 .call = step->call.call,
                 .n_in = step->call.n_in,
                 .n_out = step->call.call->n_out,
                 .n_lead = step->call.n_lead};
    for (int b = 0; b < e.n_lead; b++)
        e.lead_shape[b] = w->in[0].whole[b];
    void *scratch = w->scratch_base >= 0 ? (char *)base[w->scratch_base] + w->scratch : NULL;
    for (bool more = has_elements(&e); more; more = next_element(&e)) {
        OLY_TRY(fill_element(&e, base));
        oly_status st = OLY_OK;
        if (host && host->failed)
            clear_results(&e);
        else
            st = call_element(plan, step, device, &e, scratch, host);
        if (gpu)
            OLY_TRY(st);
    }
    return OLY_OK;
}

void oly_call_on_device(void *const *base, const oly_plan *plan, const oly_step *step, int device, oly_run *host)
{
    call_elements(base, plan, step, device, NULL, host);
}

oly_status oly_call_on_gpu(void *const *base, const oly_plan *plan, const oly_step *step, int device,
                           const oly_call_gpu *gpu)
{
    return call_elements(base, plan, step, device, gpu, NULL);
}

/* -- steps of the host --------------------------------------------------------------------------------------------- */

bool oly_is_host_call(const oly_step *step)
{
    return step->kind == OLY_STEP_CALL && step->call.call->host;
}

static oly_status call_apart(oly_run *r, const oly_step *step, int device)
{
    oly_detour d = {.cells = {.plan = r->plan, .base = r->base}};
    void **host;
    if (!step->call.device[device].has_work)
        return OLY_OK;
    oly_cells_of_step(&d.cells, step, device);
    OLY_TRY(oly_detour_begin(&d, &host));
    oly_call_on_device(host, r->plan, step, device, r);
    return oly_detour_end(&d);
}

oly_status oly_run_host_call(oly_run *r, const oly_step *step)
{
    OLY_TRY(oly_drain(r));
    for (int d = 0; oly_platform_is_apart() && d < r->plan->n_devices; d++)
        OLY_TRY(call_apart(r, step, d));
    if (oly_platform_is_apart())
        return OLY_OK;
    bool opens = oly_platform_is_late() && oly_platform_get()->open; /* otherwise the step has opened it */
    if (opens)
        oly_executor_open(r);
    for (int d = 0; d < r->plan->n_devices; d++)
        oly_call_on_device(r->base, r->plan, step, d, r);
    if (opens && oly_platform_get()->close)
        oly_executor_close(r);
    return OLY_OK;
}
