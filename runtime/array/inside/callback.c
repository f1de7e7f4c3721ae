/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_callback: functions of the host in the middle of a plan. What a function that fails says is one more result, which goes to all
 * devices like the others; a check that reads it is the error of the call on all ranks. */
#include "array/inside/program.h"
#include "array/arguments.h"
#include "core/error.h"
#include "graph/build.h"
#include <stdio.h>
#include <string.h>

/* The message: a text for each device that may fail at the same time, of which the reader takes the first. */
enum { TEXT = 160, MOST_TEXTS = 64 };

typedef struct request {
    oly_callback_function function;
    const char *name;
    void *user;
    oly_callback_options options;
    const oly_result_type *types;
    int n_in, n_out;
} request;

/* -- in the running plan ------------------------------------------------------------------------------------------- */

static bool are_empty(int n, const oly_shard_part *parts)
{
    bool all = n > 0;
    for (int k = 0; k < n; k++) {
        bool empty = false;
        for (int d = 0; d < parts[k].rank; d++)
            empty = empty || parts[k].shape[d] == 0;
        all = all && empty;
    }
    return all;
}

/* By factors a device without elements has no shard to call it for. */
static bool has_shard(const oly_user_call *c, const oly_program_call *p, int n_in, int n_out)
{
    return !*oly_call_text(c) || !(n_out > 0 ? are_empty(n_out, p->out) : are_empty(n_in, p->in));
}

static oly_status call_program(const oly_call_frame *f)
{
    const oly_user_call *c = f->call;
    int n_out = c->n_out - 1, first = c->effect; /* operand 0 says whether it happens */
    oly_program_call p;
    oly_shard_part *text = &f->out[n_out];
    int64_t row = text->rank > 1 ? text->shape[text->rank - 2] : 1;
    char *place = (char *)text->data + f->device % row * TEXT;
    unsigned before = oly_raised_count();
    memset(text->data, 0, (size_t)(row * TEXT));
    oly_program_fill(f, first, n_out, &p);
    if (!has_shard(c, &p, c->n_in - first, n_out))
        return OLY_OK;
    int failed = ((oly_callback_function)c->function)(&p.called, p.in, p.out, c->user);
    if (oly_raised_since(before) != OLY_OK)
        snprintf(place, TEXT, "it called Olympus: %s", oly_kept_message());
    else if (failed && *f->message)
        snprintf(place, TEXT, "%s", f->message);
    else if (failed)
        snprintf(place, TEXT, "it returned %d", failed);
    return OLY_OK;
}

/* Operands: whether one has failed, a number that nobody reads (check.c), the texts. */
static oly_status report(const oly_call_frame *f)
{
    const oly_shard_part *text = &f->in[2];
    const char *said = "";
    if (!*(const bool *)f->in[0].data)
        return OLY_OK;
    for (int64_t k = 0; k < text->shape[0] && !*said; k++)
        said = (const char *)text->data + k * TEXT;
    char place[256];
    oly_site_text(&f->site, place, sizeof place);
    snprintf(f->message, f->room, "%s%s%s failed: %.*s", f->alone ? "" : place, f->alone ? "" : ": ",
             oly_call_text(f->call), TEXT, said);
    return OLY_CALLBACK;
}

/* -- recording ----------------------------------------------------------------------------------------------------- */

static void describe_text(oly_user_call *c, bool once)
{
    oly_call_operand *x = &c->out[c->n_out++];
    int64_t rows = c->in[c->n_in - 1].rank || c->n_in > 1 ? (oly_device_count)() : 1;
    memset(x->letter, OLY_CALL_WHOLE, sizeof x->letter);
    x->rank = 2;
    x->letter[0] = once ? OLY_CALL_ONCE : OLY_CALL_WHOLE;
    x->combiner = OLY_COMBINE_MAX;
    x->type = (oly_type){.dtype = OLY_UINT8,
                         .rank = 2,
                         .shape = {once                ? 1
                                   : rows < MOST_TEXTS ? rows
                                                       : MOST_TEXTS,
                                   TEXT}};
}

static oly_status describe_results(const request *q, oly_user_call *c, bool once)
{
    for (int k = 0; k < q->n_out; k++) {
        const oly_result_type *t = &q->types[k];
        oly_call_operand *x = &c->out[c->n_out++];
        if (t->rank < 0 || t->rank > OLY_MAX_RANK - once || (unsigned)t->dtype >= OLY_N_DTYPES)
            return oly_fail(OLY_INVALID,
                            "the type of result %d has %d dimensions of element type %d; there are 0 to %d", k, t->rank,
                            (int)t->dtype, OLY_MAX_RANK - once);
        x->type = (oly_type){.dtype = t->dtype, .rank = t->rank + once, .shape = {1}};
        memcpy(x->type.shape + once, t->shape, sizeof *t->shape * (size_t)t->rank);
        OLY_TRY(oly_type_check(&x->type));
        if (q->options.factors)
            continue;
        x->rank = x->type.rank;
        memset(x->letter, OLY_CALL_WHOLE, sizeof x->letter);
        x->letter[0] = once ? OLY_CALL_ONCE : OLY_CALL_WHOLE;
    }
    return OLY_OK;
}

/* By factors the sizes follow from the operands; they must be those of the types. */
static oly_status describe_factors(const request *q, oly_user_call *c, int first, oly_node *const *in)
{
    oly_type given[OLY_CALL_MOST];
    for (int k = 0; k < q->n_out; k++)
        given[k] = c->out[k].type;
    OLY_TRY(oly_factors_read(c, q->options.factors, first, q->n_in, in, q->n_out));
    OLY_TRY(oly_factors_whole(c, q->options.whole));
    OLY_TRY(oly_factors_results(c, first, q->n_in, in, q->n_out));
    for (int k = 0; k < q->n_out; k++)
        if (!oly_type_equal(&given[k], &c->out[k].type))
            return oly_fail(OLY_SHAPE, "the type of result %d is %s, but factors \"%s\" make it %s", k,
                            oly_type_short(&given[k]), q->options.factors, oly_type_short(&c->out[k].type));
    return OLY_OK;
}

static oly_status describe(const request *q, oly_user_call *c, bool once, oly_node *const *operands)
{
    int first = c->effect;
    if (c->effect)
        oly_inside_operand(c, operands[0], once && q->n_in == 0 ? OLY_CALL_ONCE : OLY_CALL_WHOLE);
    for (int k = 0; k < q->n_in; k++)
        oly_inside_operand(c, operands[first + k], once ? OLY_CALL_ONCE : OLY_CALL_WHOLE);
    OLY_TRY(describe_results(q, c, once));
    if (q->options.factors)
        OLY_TRY(describe_factors(q, c, first, operands + first));
    describe_text(c, once);
    return OLY_OK;
}

static oly_status reduce_all(oly_graph *g, oly_node *x, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    for (int d = 0; d < x->type.rank; d++)
        p.axes[p.n_axes++] = d;
    return oly_graph_add(g, OLY_OP_reduce_or, 1, &x, &p, out);
}

/* The error of the call, where the texts say so. */
static oly_status add_check(oly_trace *t, const char *name, oly_node *text, bool pure)
{
    oly_node *in[3] = {NULL, NULL, text}, *unused;
    OLY_TRY(oly_build_truth(t->graph, text, &in[0]));
    OLY_TRY(reduce_all(t->graph, in[0], &in[0]));
    OLY_TRY(oly_build_number(t->graph, OLY_UINT64, 0, &in[1]));
    oly_user_call *c = oly_call_new("oly_callback", name);
    if (!c)
        return OLY_MEMORY;
    c->effect = c->host = c->agreed = c->gathers = true;
    c->locally = pure; /* dropped with the callback: oly_graph_prune */
    c->run = report;
    for (int k = 0; k < 3; k++)
        oly_inside_operand(c, in[k], OLY_CALL_WHOLE);
    oly_status st = oly_graph_call(t->graph, c, 3, in, &unused);
    oly_release(c);
    if (st == OLY_OK)
        unused->params.call_number = text->params.call_number;
    return st;
}

static oly_status take_results(oly_trace *t, const request *q, bool once, oly_node **made, oly_node **out)
{
    for (int k = 0; k < q->n_out; k++) {
        out[k] = made[k];
        int64_t shape[OLY_MAX_RANK];
        memcpy(shape, made[k]->type.shape + once, sizeof shape - sizeof *shape * once);
        if (once)
            OLY_TRY(oly_build_reshape(t->graph, made[k], made[k]->type.rank - 1, shape, &out[k]));
    }
    return OLY_OK;
}

static oly_status record(const oly_inside_request *r, oly_trace *t, oly_node **in, oly_node **out)
{
    const request *q = r->more;
    bool once = !q->options.factors && !oly_inside_map(t);
    oly_node *operands[OLY_CALL_MOST], *made[OLY_CALL_MOST];
    int n = 0;
    if (!q->options.pure || q->n_in == 0)
        OLY_TRY(oly_inside_always(t, &operands[n++]));
    for (int k = 0; k < q->n_in; k++) {
        operands[n] = in[k];
        if (once)
            OLY_TRY(oly_inside_once(t->graph, &operands[n]));
        n++;
    }
    if (once && q->n_in == 0)
        OLY_TRY(oly_inside_once(t->graph, &operands[0]));
    OLY_TRY(oly_inside_vary(t, n, operands));
    oly_user_call *c = oly_call_new(q->name, q->options.factors ? q->options.factors : "");
    if (!c)
        return OLY_MEMORY;
    c->effect = !q->options.pure || q->n_in == 0;
    c->host = true;
    c->run = call_program;
    c->function = (void *)(uintptr_t)q->function;
    c->user = q->user;
    oly_status st = describe(q, c, once, operands);
    if (st == OLY_OK)
        st = oly_graph_call(t->graph, c, n, operands, made);
    oly_release(c);
    OLY_TRY(st);
    OLY_TRY(add_check(t, q->name, made[q->n_out], q->options.pure));
    OLY_TRY(take_results(t, q, once, made, out));
    if (q->n_out == 0)
        out[0] = made[0]; /* something for a function that runs at once to return */
    return OLY_OK;
}

static oly_status check(const request *q)
{
    int most = OLY_CALL_MOST - 2;
    if (!q->function)
        return oly_fail(OLY_INVALID, "the callback is NULL; give a function");
    if (q->n_in > most || q->n_out < 0 || q->n_out > most)
        return oly_fail(OLY_INVALID, "a callback with %d arrays and %d results; at most %d each", q->n_in, q->n_out,
                        most);
    return q->n_out == 0 || q->types
               ? OLY_OK
               : oly_fail(OLY_INVALID, "the types of the results are NULL; give one for each (OLY_TYPES)");
}

static void sign_text(oly_key *key, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;
    oly_key_add(key, &n, sizeof n);
    if (n)
        oly_key_add(key, text, n);
}

static void sign(const oly_inside_request *r, oly_key *key)
{
    const request *q = r->more;
    oly_key_add(key, &q->function, sizeof q->function);
    oly_key_add(key, &q->user, sizeof q->user);
    oly_key_add(key, &q->options.pure, sizeof q->options.pure);
    oly_key_add(key, &q->n_out, sizeof q->n_out);
    sign_text(key, q->name);
    sign_text(key, q->options.factors);
    sign_text(key, q->options.whole);
    sign_text(key, q->options.name);
    for (int k = 0; k < q->n_out; k++) {
        oly_key_add(key, &q->types[k].dtype, sizeof q->types[k].dtype);
        oly_key_add(key, &q->types[k].rank, sizeof q->types[k].rank);
        oly_key_add(key, q->types[k].shape, sizeof q->types[k].shape);
    }
}

static oly_status call_back(const request *q, const oly_array *in, oly_array *results)
{
    oly_operand operands[OLY_CALL_MOST];
    OLY_TRY(check(q));
    for (int k = 0; k < q->n_in; k++)
        operands[k] = oly_operand_array(in[k]);
    const oly_inside_request r = {record, NULL, q->n_in, operands, q, q->n_out ? q->n_out : 1, sign};
    return oly_inside_record(&r, results);
}

oly_status(oly_callback_with)(oly_callback_function function, const char *c_name, void *user,
                              oly_callback_options options, int n_in, const oly_array *in, const oly_result_type *types,
                              int n_out, oly_array *const *out)
{
    OLY_ENTER(OLY_STATE);
    oly_array results[OLY_CALL_MOST] = {NULL};
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    const request q = {function, options.name ? options.name : c_name ? c_name : "callback", user, options, types, n_in,
                       n_out};
    oly_status st = call_back(&q, in, results);
    for (int k = 0; k < n_out; k++)
        *out[k] = st == OLY_OK ? results[k] : NULL;
    return oly_raise(st);
}
