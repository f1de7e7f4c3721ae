/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts pieces into messages. See messages.h. */
#include "plan/move/messages.h"
#include <stdlib.h>
#include <string.h>

oly_status oly_messages_add(oly_planner *p, oly_message_list *w, const oly_process_message *message)
{
    if (w->capacity == 0) { /* reuse the memory of an earlier exchange */
        w->message = p->spare_messages;
        w->capacity = p->spare_capacity;
        p->spare_messages = NULL;
        p->spare_capacity = 0;
    }
    if (w->n == w->capacity) {
        int capacity = w->capacity ? 2 * w->capacity : 16;
        oly_process_message *more = OLY_PLAN_NEW(p, oly_process_message, capacity);
        OLY_PLAN_CHECK(more);
        if (w->n)
            memcpy(more, w->message, sizeof *more * (size_t)w->n);
        w->message = more;
        w->capacity = capacity;
    }
    w->message[w->n++] = *message;
    return OLY_OK;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int in_order(const void *a, const void *b)
{
    const oly_process_message *x = a, *y = b;
    if (x->sending != y->sending)
        return x->sending ? -1 : 1;
    int c = compare(x->peer, y->peer);
    c = c ? c : compare(x->key[0], y->key[0]);
    c = c ? c : compare(x->key[1], y->key[1]);
    return c ? c : compare(x->piece.buffer, y->piece.buffer);
}

static bool same_message(const oly_process_message *a, const oly_process_message *b)
{
    return a->sending == b->sending && a->peer == b->peer;
}

static bool same_piece(const oly_process_message *a, const oly_process_message *b)
{
    return same_message(a, b) && a->key[0] == b->key[0] && a->key[1] == b->key[1];
}

void oly_messages_drop(oly_planner *p, oly_message_list *w)
{
    if (w->capacity > p->spare_capacity) {
        p->spare_messages = w->message;
        p->spare_capacity = w->capacity;
    }
    *w = (oly_message_list){0};
}

oly_status oly_messages_exchange(oly_planner *p, oly_message_list *w, size_t element_bytes, oly_exchange **exchange)
{
    *exchange = NULL;
    if (w->n == 0)
        return OLY_OK;
    qsort(w->message, (size_t)w->n, sizeof *w->message, in_order);
    oly_message *messages = oly_calloc((size_t)w->n, sizeof *messages);
    oly_piece *pieces = oly_calloc((size_t)w->n, sizeof *pieces);
    int *same = oly_malloc(sizeof *same * (size_t)w->n), n = 0, n_sends = 0, first = 0;
    oly_status st =
        messages && pieces && same ? OLY_OK : oly_out_of_memory(sizeof *pieces * (size_t)w->n, "an exchange");
    for (int k = 0; st == OLY_OK && k < w->n; k++) {
        const oly_process_message *at = &w->message[k];
        if (k == 0 || !same_message(at, at - 1)) {
            messages[n++] = (oly_message){.peer = at->peer, .pieces = pieces + k, .same = same + k};
            n_sends += at->sending;
        }
        oly_message *m = &messages[n - 1];
        bool repeated = k > 0 && same_piece(at, at - 1);
        if (repeated && at->sending)
            continue;
        if (!repeated)
            first = m->n_pieces;
        m->same[m->n_pieces] = repeated ? first : -1;
        m->pieces[m->n_pieces++] = at->piece;
    }
    if (st == OLY_OK)
        st = oly_exchange_make(element_bytes, n_sends, messages, n - n_sends, messages + n_sends, exchange);
    oly_release(messages);
    oly_release(pieces);
    oly_release(same);
    oly_messages_drop(p, w);
    return st;
}
