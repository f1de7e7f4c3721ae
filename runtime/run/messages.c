/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges, ordered with the computation of devices. See messages.h. */
#include "run/messages.h"
#include "run/device_order.h"
#include "run/executor.h"
#include "core/events.h"

const oly_ticket *oly_next_ticket(oly_run *r)
{
    if (r->ticket.call[0] == 0)
        oly_site_text(&r->site, r->ticket.call, sizeof r->ticket.call);
    r->ticket.sequence++;
    return &r->ticket;
}

/* Late devices open buffers for their own work only. */
static oly_status leave(const oly_run *r, oly_status st)
{
    if (oly_platform_is_late() && oly_platform_get()->close)
        oly_executor_close(r);
    return st;
}

static void enter(const oly_run *r)
{
    if (oly_platform_is_late() && oly_platform_get()->open)
        oly_executor_open(r);
}

static void record_start(const oly_run *r, const oly_exchange *x, const oly_ticket *ticket)
{
    oly_event_at(OLY_EVENT_EXCHANGE, OLY_EVENT_BEGIN, r->site, oly_exchange_partner(x), oly_exchange_bytes_sent(x),
                 (int64_t)ticket->sequence);
}

/* Those that fail stay open. */
static oly_status record_end(const oly_run *r, const oly_exchange *x, oly_status st)
{
    if (st == OLY_OK)
        oly_event_at(OLY_EVENT_EXCHANGE, OLY_EVENT_FINISH, r->site, oly_exchange_partner(x),
                     oly_exchange_bytes_received(x), (int64_t)oly_exchange_sequence(x));
    return st;
}

oly_status oly_messages_start(oly_run *r, oly_exchange *x, const oly_ticket *ticket)
{
    OLY_TRY(oly_drain(r));
    enter(r);
    record_start(r, x, ticket);
    return leave(r, oly_exchange_start(x, ticket, r->base));
}

oly_status oly_messages_leave_pending(oly_run *r, oly_exchange *x, const oly_ticket *ticket)
{
    OLY_TRY(oly_messages_start(r, x, ticket));
    oly_exchange_leave(x, ticket, r->base);
    return OLY_OK;
}

oly_status oly_messages_finish(oly_run *r, oly_exchange *x, const oly_ticket *ticket)
{
    enter(r);
    return record_end(r, x, leave(r, oly_exchange_finish(x, ticket, r->base)));
}

oly_status oly_messages_begin_pending(oly_run *r, oly_exchange *x, const oly_ticket *ticket)
{
    OLY_TRY(oly_drain(r));
    enter(r);
    record_start(r, x, ticket);
    OLY_TRY(leave(r, oly_exchange_begin(x, ticket, r->base)));
    oly_exchange_leave(x, ticket, r->base);
    return OLY_OK;
}

oly_status oly_messages_send(oly_run *r, oly_exchange *x, int peer)
{
    OLY_TRY(oly_drain(r));
    enter(r);
    return leave(r, oly_exchange_send(x, peer));
}

oly_status oly_messages_join(oly_run *r, oly_exchange *x)
{
    enter(r);
    return record_end(r, x, leave(r, oly_exchange_join(x)));
}

oly_status oly_messages_await(oly_run *r, oly_exchange *x, int peer)
{
    enter(r);
    return leave(r, oly_exchange_await(x, peer));
}

bool oly_is_under_way(const oly_run *r)
{
    return r->plan->distributed && oly_exchange_any_left();
}

void oly_advance_exchanges(oly_run *r)
{
    if (r->advance != OLY_OK)
        return;
    oly_executor_enter(r);
    enter(r);
    r->advance = leave(r, oly_exchange_advance());
    oly_executor_leave(r);
}
