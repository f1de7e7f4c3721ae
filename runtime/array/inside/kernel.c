/* SPDX-License-Identifier: BSD-3-Clause */
/* User kernels: C functions over shards with factors, planned like any operation. */
#include "array/inside/custom.h"
#include "array/inside/program.h"
#include "array/arguments.h"
#include "core/error.h"
#include <string.h>

/* -- in the running plan ------------------------------------------------------------------------------------------- */

static oly_status compute(const oly_call_frame *f)
{
    oly_program_call p;
    oly_program_fill(f, 0, f->call->n_out, &p);
    void *function = f->stream ? f->call->gpu_function : f->call->function;
    ((oly_kernel_function)function)(&p.called, p.in, p.out, f->call->user);
    if (!f->stream || !*f->message)
        return OLY_OK;
    return oly_fail(OLY_DEVICE_FAILED, "kernel %s, on device %d: %s", oly_call_name(f->call), f->device, f->message);
}

/* -- description --------------------------------------------------------------------------------------------------- */

static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};

static bool names_dtype(const char *list, oly_dtype dtype)
{
    const char *name = oly_dtype_name(dtype);
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ' || at[-1] == ',') && (!at[n] || at[n] == ' ' || at[n] == ','))
            return true;
    return false;
}

static oly_status describe_halo(const oly_kernel *kernel, int k, const oly_node *x, oly_call_operand *o)
{
    const oly_halo *h = &kernel->halo[k];
    for (int d = 0; d < OLY_MAX_RANK; d++) {
        int64_t size = d < x->type.rank ? x->type.shape[d] : 0;
        if (h->radius[d] < 0 || (h->radius[d] > 0 && h->radius[d] > size) || (unsigned)h->edge[d] > OLY_EDGE_NEAREST)
            return oly_fail(OLY_INVALID,
                            "halo[%d].radius[%d] of kernel %s is %d, with edge %d, but operand %d is %s; a radius is 0 "
                            "up to the size of "
                            "the dimension",
                            k, d, kernel->name, h->radius[d], (int)h->edge[d], k, oly_type_short(&x->type));
        o->before[d] = o->after[d] = h->radius[d];
        o->wraps |= (uint32_t)(h->edge[d] == OLY_EDGE_PERIODIC) << d;
        o->zero |= (uint32_t)(h->edge[d] == OLY_EDGE_ZERO && h->radius[d]) << d;
        o->nearest |= (uint32_t)(h->edge[d] == OLY_EDGE_NEAREST && h->radius[d]) << d;
    }
    o->strided = kernel->strided;
    return OLY_OK;
}

static oly_status describe(const oly_kernel *kernel, oly_user_call *c, int n_in, oly_node *const *in, int n_out)
{
    for (int k = 0; k < n_in; k++) {
        oly_inside_operand(c, in[k], OLY_CALL_WHOLE);
        OLY_TRY(describe_halo(kernel, k, in[k], &c->in[k]));
    }
    c->n_out = n_out;
    OLY_TRY(oly_factors_read(c, kernel->factors, 0, n_in, in, n_out));
    OLY_TRY(oly_factors_whole(c, kernel->whole));
    OLY_TRY(oly_factors_results(c, 0, n_in, in, n_out));
    for (int k = 0; k < n_out; k++) {
        c->out[k].type.dtype = kernel->result_dtypes ? kernel->result_dtypes[k] : in[0]->type.dtype;
        c->out[k].combiner = combiners[kernel->combine];
    }
    return OLY_OK;
}

static oly_status record_call(const oly_kernel *kernel, oly_trace *t, int n_in, oly_node **in, int n_out,
                              oly_node **out)
{
    oly_user_call *c = oly_call_new(kernel->name, kernel->factors ? kernel->factors : "");
    if (!c)
        return OLY_MEMORY;
    c->run = compute;
    c->function = (void *)(uintptr_t)kernel->cpu;
    c->gpu_function = (void *)(uintptr_t)kernel->cuda;
    c->user = kernel->user;
    c->flops = kernel->flops;
    c->moved = kernel->bytes;
    c->scratch = kernel->scratch;
    c->scratch_per_element = kernel->scratch_element;
    oly_status st = describe(kernel, c, n_in, in, n_out);
    if (st == OLY_OK)
        st = oly_graph_call(t->graph, c, n_in, in, out);
    oly_release(c);
    return st;
}

/* -- derivatives --------------------------------------------------------------------------------------------------- */

typedef struct derived {
    const oly_kernel *kernel;
    int n_in, n_out;
} derived;

static oly_status call_in_trace(const oly_kernel *kernel, oly_trace *t, int n_in, const oly_array *in, int n_out,
                                oly_array *out)
{
    oly_node *nodes[OLY_KERNEL_OPERANDS], *made[OLY_KERNEL_OPERANDS];
    for (int k = 0; k < n_in; k++)
        OLY_TRY(oly_trace_node(t, in[k], &nodes[k]));
    OLY_TRY(record_call(kernel, t, n_in, nodes, n_out, made));
    for (int k = 0; k < n_out; k++)
        if (!(out[k] = oly_array_traced(t->graph, made[k])))
            return OLY_MEMORY;
    return OLY_OK;
}

/* Residuals: the operands and the results. */
static void forward(const oly_array *in, oly_array *out, void *user)
{
    const derived *d = user;
    if (oly_raise(call_in_trace(d->kernel, oly_trace_current(), d->n_in, in, d->n_out, out)) != OLY_OK)
        return;
    memcpy(out + d->n_out, in, sizeof *in * (size_t)d->n_in);
    memcpy(out + d->n_out + d->n_in, out, sizeof *out * (size_t)d->n_out);
}

static void backward(const oly_array *in, oly_array *out, void *user)
{
    const derived *d = user;
    d->kernel->vjp(in, out, d->kernel->user);
}

/* -- recording ----------------------------------------------------------------------------------------------------- */

static oly_status record(const oly_inside_request *r, oly_trace *t, oly_node **in, oly_node **out)
{
    derived d = *(const derived *)r->more;
    OLY_TRY(record_call(d.kernel, t, d.n_in, in, d.n_out, out));
    if (!d.kernel->vjp)
        return OLY_OK;
    oly_array from[OLY_KERNEL_OPERANDS], made[OLY_KERNEL_OPERANDS];
    for (int k = 0; k < d.n_in; k++)
        if (!(from[k] = oly_array_traced(t->graph, in[k])))
            return OLY_MEMORY;
    for (int k = 0; k < d.n_out; k++)
        if (!(made[k] = oly_array_traced(t->graph, out[k])))
            return OLY_MEMORY;
    const oly_custom c = {NULL, forward, backward, d.n_in, d.n_out, d.n_in + d.n_out, &d};
    OLY_TRY(oly_custom_attach(&c, from, made));
    for (int k = 0; k < d.n_out; k++)
        OLY_TRY(oly_trace_node(t, made[k], &out[k]));
    return OLY_OK;
}

static oly_status check(const oly_kernel *kernel, int n_in, const oly_array *in, int n_out)
{
    if (!kernel || !kernel->name)
        return oly_fail(OLY_INVALID, "the kernel, or its name, is NULL");
    if (!kernel->cpu)
        return oly_fail(OLY_INVALID, "kernel %s has no function for CPU devices%s; give it in .cpu", kernel->name,
                        kernel->cuda ? ", which there are beside GPUs, too" : "");
    if (n_in < 1 || n_in > OLY_KERNEL_OPERANDS || n_out < 1 || n_out > OLY_KERNEL_OPERANDS)
        return oly_fail(OLY_INVALID, "kernel %s is called with %d arrays and %d results; it takes 1 to %d of each",
                        kernel->name, n_in, n_out, OLY_KERNEL_OPERANDS);
    if ((unsigned)kernel->combine > OLY_BY_MIN || kernel->flops < 0 || kernel->bytes < 0)
        return oly_fail(
            OLY_INVALID,
            "kernel %s: combine is %d, flops %g, bytes %g; combine is one of OLY_BY_..., the others are not negative",
            kernel->name, (int)kernel->combine, kernel->flops, kernel->bytes);
    oly_dtype dtype = (oly_dtype_of)(in[0]);
    if (kernel->dtypes && !names_dtype(kernel->dtypes, dtype))
        return oly_fail(OLY_DTYPE, "kernel %s is for elements of %s, but operand 0 is %s; convert it with oly_astype",
                        kernel->name, kernel->dtypes, oly_type_short(&in[0]->type));
    return OLY_OK;
}

static oly_status call_kernel(const oly_kernel *kernel, int n_in, const oly_array *in, int n_out, oly_array *results)
{
    oly_operand operands[OLY_KERNEL_OPERANDS];
    OLY_TRY(check(kernel, n_in, in, n_out));
    const derived d = {.kernel = kernel, .n_in = n_in, .n_out = n_out};
    for (int k = 0; k < n_in; k++)
        operands[k] = oly_operand_array(in[k]);
    const oly_inside_request r = {record, NULL, n_in, operands, &d, n_out, NULL};
    return oly_inside_record(&r, results);
}

oly_status oly_kernel_call_n(const oly_kernel *kernel, int n_in, const oly_array *in, int n_out, oly_array *const *out)
{
    OLY_ENTER(OLY_STATE);
    oly_array results[OLY_KERNEL_OPERANDS] = {NULL};
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    oly_status st = call_kernel(kernel, n_in, in, n_out, results);
    for (int k = 0; k < n_out; k++)
        *out[k] = st == OLY_OK ? results[k] : NULL;
    return oly_raise(st);
}
