/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_check: an error where a condition does not hold. The number of the first element that fails is a minimum over all devices, so
 * that every process reports the same error; the values there are sums over devices of which one is not zero. */
#include "array/inside/inside.h"
#include "array/inside/first.h"
#include "array/inside/inside_text.h"
#include "array/arguments.h"
#include "core/error.h"
#include "graph/build.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Operands of the call: whether it fails; the number of the first element that does; the values; in maps the number of the first
 * mapped element, for each. The result type in out[0] says the shape of the condition. */
enum { FAILS, WHERE, VALUES };

/* -- the error ----------------------------------------------------------------------------------------------------- */

static oly_status report(const oly_call_frame *f)
{
    const oly_user_call *c = f->call;
    const oly_type *condition = &c->in[WHERE].type; /* its own shape is [] */
    oly_text t = {0};
    if (!*(const bool *)f->in[FAILS].data)
        return OLY_OK;
    oly_status st = oly_inside_format(&t, oly_call_text(c), c->n_in - VALUES, f->in + VALUES, f->device);
    if (st != OLY_OK) {
        snprintf(f->message, f->room, "%s", oly_pending_message());
        oly_text_free(&t);
        return st;
    }
    char place[256];
    oly_text where = {0};
    oly_site_text(&f->site, place, sizeof place);
    oly_first_index(&where, condition, *(const uint64_t *)f->in[WHERE].data);
    for (int k = c->n_in; k < f->n_in; k++)
        oly_text_add(&where, ", element %" PRIu64 " of the map%s", *(const uint64_t *)f->in[k].data,
                     k > c->n_in ? " around" : "");
    snprintf(f->message, f->room, "%s%sthe condition does not hold%s: %s", f->alone ? "" : place, f->alone ? "" : ": ",
             oly_text_chars(&where), oly_text_chars(&t));
    oly_text_free(&t);
    oly_text_free(&where);
    return OLY_CHECK;
}

/* -- recording ----------------------------------------------------------------------------------------------------- */

static oly_status record(const oly_inside_request *r, oly_trace *t, oly_node **in, oly_node **out)
{
    oly_node *operands[OLY_CALL_MOST], *condition = in[0];
    oly_first s = {.g = t->graph};
    OLY_TRY(oly_build_truth(t->graph, condition, &condition));
    OLY_TRY(oly_first_find(&s, condition, &operands[FAILS], &operands[WHERE]));
    for (int k = 1; k < r->n; k++) {
        operands[VALUES + k - 1] = in[k];
        OLY_TRY(oly_first_value(&s, &operands[VALUES + k - 1]));
    }
    oly_user_call *c = oly_call_new("oly_check", r->format);
    if (!c)
        return OLY_MEMORY;
    c->effect = c->host = c->agreed = c->gathers = true;
    c->run = report;
    for (int k = 0; k <= r->n; k++)
        oly_inside_operand(c, operands[k], OLY_CALL_WHOLE);
    c->in[WHERE].type = s.shape;
    oly_type_clear_sharding(&c->in[WHERE].type);
    oly_status st = oly_graph_call(t->graph, c, r->n + 1, operands, out);
    oly_release(c);
    return st;
}

static void sign(const oly_inside_request *r, oly_key *key)
{
    (void)r, (void)key;
}

oly_status oly_check_n(oly_operand condition, const char *format, int n, const oly_operand *values)
{
    OLY_ENTER(OLY_STATE);
    oly_array unused = NULL;
    oly_operand all[OLY_CALL_MOST] = {condition};
    OLY_TRY(oly_need_operand(&condition));
    OLY_TRY(oly_need_operands(n, values));
    if (n > OLY_CALL_MOST - VALUES)
        return oly_raise(
            oly_fail(OLY_INVALID, "%d values for the message of a check; at most %d", n, OLY_CALL_MOST - VALUES));
    if (n > 0)
        memcpy(all + 1, values, sizeof *values * (size_t)n);
    oly_status st = oly_inside_check_format(format, n);
    const oly_inside_request r = {record, format, 1 + n, all, NULL, 1, sign};
    oly_scope_open();
    if (st == OLY_OK)
        st = oly_inside_record(&r, &unused);
    oly_scope_close();
    return oly_raise(st);
}
