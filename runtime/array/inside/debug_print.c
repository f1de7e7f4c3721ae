/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_debug_print: values printed where a plan computes them. */
#include "array/inside/inside.h"
#include "array/inside/inside_text.h"
#include "array/arguments.h"
#include "core/error.h"
#include <stdio.h>

/* Called by the running plan, on the device that has the values. Operand 0 says whether. */
static oly_status print(const oly_call_frame *frame)
{
    oly_text text = {0};
    oly_shard_part values[OLY_CALL_MOST];
    int n = frame->call->n_in - 1;
    for (int k = 0; k < n; k++)
        values[k] = oly_inside_value(frame, k + 1);
    oly_status st = oly_inside_format(&text, oly_call_text(frame->call), n, values, frame->device);
    if (st == OLY_OK) {
        oly_text_add_chars(&text, "\n", 1);
        fwrite(oly_text_chars(&text), 1, text.length, stdout);
        fflush(stdout);
    } else {
        snprintf(frame->message, frame->room, "%s", oly_pending_message());
    }
    oly_text_free(&text);
    return st;
}

static oly_status record(const oly_inside_request *r, oly_trace *t, oly_node **in, oly_node **out)
{
    bool shards = *(const bool *)r->more, once = !shards && !oly_inside_map(t);
    oly_node *operands[OLY_CALL_MOST];
    OLY_TRY(oly_inside_always(t, &operands[0]));
    for (int k = 0; k < r->n; k++) {
        operands[k + 1] = in[k];
        if (once)
            OLY_TRY(oly_inside_once(t->graph, &operands[k + 1]));
    }
    OLY_TRY(oly_inside_vary(t, r->n, operands + 1));
    if (once && r->n == 0)
        OLY_TRY(oly_inside_once(t->graph, &operands[0]));
    oly_user_call *c = oly_call_new(shards ? "oly_debug_print_shards" : "oly_debug_print", r->format);
    if (!c)
        return OLY_MEMORY;
    c->effect = c->host = true;
    c->locally = once;
    c->run = print;
    oly_inside_operand(c, operands[0], once && r->n == 0 ? OLY_CALL_ONCE : OLY_CALL_WHOLE);
    for (int k = 1; k <= r->n; k++)
        oly_inside_operand(c, operands[k],
                           once                           ? OLY_CALL_ONCE
                           : shards && !oly_inside_map(t) ? OLY_CALL_AS_IT_LIES
                                                          : OLY_CALL_WHOLE);
    oly_status st = oly_graph_call(t->graph, c, r->n + 1, operands, out);
    oly_release(c);
    return st;
}

static void sign(const oly_inside_request *r, oly_key *key)
{
    oly_key_add(key, r->more, sizeof(bool));
}

oly_status oly_debug_print_n(const char *format, bool shards, int n, const oly_operand *values)
{
    OLY_ENTER(OLY_STATE);
    oly_array unused = NULL;
    OLY_TRY(oly_need_operands(n, values));
    if (n > OLY_CALL_MOST - 2)
        return oly_raise(oly_fail(OLY_INVALID, "%d values to print at once; at most %d, so use several calls", n,
                                  OLY_CALL_MOST - 2));
    oly_status st = oly_inside_check_format(format, n);
    const oly_inside_request r = {record, format, n, values, &shards, 1, sign};
    oly_scope_open();
    if (st == OLY_OK)
        st = oly_inside_record(&r, &unused);
    oly_scope_close();
    return oly_raise(st);
}
