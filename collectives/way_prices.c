/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring the ways of messages between GPUs: a ring of messages, straight by the transport's table, without tickets. See way_prices.h. */
#include "way_prices.h"
#include "staging.h"
#include "transport_gpu.h"
#include "world.h"
#include "core/option.h"
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS = 4, MOST_CHUNKS = OLY_PRICED_LARGE / OLY_STAGED_CHUNK_BYTES };
static const int64_t PATIENCE = 5000000000; /* ns, for a way */

typedef struct ring {
    const oly_transport *transport;
    const oly_gpu_access *gpus;
    oly_way way;
    int next, previous;                       /* ranks */
    int device, next_device, previous_device; /* ids */
    void *base[2];                            /* on the GPU: what is sent, and received */
    char *host;                               /* pinned, for both; NULL: the way needs none */
    int64_t until;                            /* by oly_wait_clock */
    bool lost;                                /* something may still use the memory */
} ring;

/* -- memory -------------------------------------------------------------------------------------------------------------------- */

/* What the stream has been given is done: MPI does not wait for it. */
static oly_status settle(ring *r)
{
    void *event = NULL;
    bool yes = false;
    OLY_TRY(r->gpus->enter(0));
    oly_status st = r->gpus->record(0, &event);
    while (st == OLY_OK && !yes && oly_wait_clock() < r->until) {
        st = r->gpus->reached(0, event, &yes);
        sched_yield();
    }
    if (event)
        r->gpus->forget(0, event);
    r->gpus->leave(0);
    return st == OLY_OK && !yes ? oly_fail(OLY_TIMEOUT, "a GPU's memory was not there in time") : st;
}

static oly_status take(ring *r)
{
    for (int k = 0; k < 2; k++) {
        OLY_TRY(r->gpus->enter(0));
        oly_status st = r->gpus->take(0, OLY_PRICED_LARGE, &r->base[k]);
        r->gpus->leave(0);
        OLY_TRY(st);
    }
    if (r->way == OLY_WAY_STAGED)
        OLY_TRY(oly_staging_take(2 * OLY_PRICED_LARGE, false, &r->host));
    return settle(r);
}

static void give(ring *r)
{
    if (r->host && r->lost)
        oly_staging_abandon(r->host);
    else if (r->host)
        oly_staging_give(r->host);
    if (r->gpus->enter(0) != OLY_OK) {
        oly_drop_message();
        return;
    }
    for (int k = 0; k < 2 && !r->lost; k++)
        if (r->base[k])
            r->gpus->give(0, r->base[k]);
    r->gpus->leave(0);
}

/* -- messages ------------------------------------------------------------------------------------------------------------------- */

typedef struct ring_message {
    oly_payload payload;
    oly_walk box;
    int64_t at;
} ring_message;

static void make_message(const ring *r, bool receives, int64_t bytes, ring_message *m)
{
    m->box = (oly_walk){.buffer = receives,
                        .device = r->device,
                        .peer_device = receives ? r->previous_device : r->next_device,
                        .bytes = bytes,
                        .run = bytes};
    m->at = 0;
    m->payload = (oly_payload){
        .peer = receives ? r->previous : r->next, .n_boxes = 1, .box = &m->box, .at = &m->at, .bytes = bytes};
}

static oly_status post(ring *r, void *requests, int k, const ring_message *m, int64_t begin, int64_t end, bool receives)
{
    oly_chunk c = {.payload = &m->payload,
                   .begin = begin,
                   .end = end,
                   .room = (int)(end - begin),
                   .tag = OLY_TAG_PRICE + (int)r->way,
                   .base = r->base,
                   .host = r->host ? r->host + (receives ? OLY_PRICED_LARGE : 0) + begin : NULL};
    return receives ? r->transport->receive(requests, k, &c) : r->transport->send(requests, k, &c);
}

/* Each rank sends to the next one and receives from the one before. */
static oly_status pass(ring *r, void *requests, int64_t bytes)
{
    ring_message sent, received;
    oly_completion done[2 * MOST_CHUNKS];
    int64_t chunk = r->host ? OLY_STAGED_CHUNK_BYTES : bytes;
    int each = (int)((bytes + chunk - 1) / chunk), n = 2 * each, n_done = 0;
    oly_status st = OLY_OK;
    make_message(r, false, bytes, &sent);
    make_message(r, true, bytes, &received);
    r->transport->make(n, 0, requests);
    for (int k = 0; k < n && st == OLY_OK; k++) {
        bool receives = k < each;
        int64_t begin = (receives ? k : k - each) * chunk;
        st = post(r, requests, k, receives ? &received : &sent, begin, begin + chunk < bytes ? begin + chunk : bytes,
                  receives);
    }
    while (st == OLY_OK && n_done < n) {
        int some = 0;
        st = r->transport->test(requests, n, &some, done);
        n_done += some;
        if (st == OLY_OK && n_done < n && oly_wait_clock() > r->until)
            st = oly_fail(OLY_TIMEOUT, "a message between GPUs did not arrive in time");
        else if (some == 0)
            sched_yield();
    }
    for (int k = 0; k < n && n_done < n; k++)
        r->lost = r->transport->give_up(requests, k) || r->lost;
    if (r->transport->free)
        r->transport->free(requests);
    return st;
}

/* The least of some; the first one opens connections. */
static oly_status time_pass(ring *r, void *requests, int64_t bytes, double *seconds)
{
    *seconds = 1e9;
    for (int k = 0; k <= REPEATS; k++) {
        int64_t begun = oly_wait_clock();
        OLY_TRY(pass(r, requests, bytes));
        double took = (double)(oly_wait_clock() - begun) * 1e-9;
        *seconds = k > 0 && took < *seconds ? took : *seconds;
    }
    return OLY_OK;
}

static oly_status measure(ring *r, oly_way_price *price)
{
    void *requests = oly_calloc(1, r->transport->make(2 * MOST_CHUNKS, 0, NULL));
    if (!requests)
        return oly_out_of_memory(0, "measuring messages between GPUs");
    oly_status st = take(r);
    if (st == OLY_OK)
        st = time_pass(r, requests, OLY_PRICED_SMALL, &price->small);
    if (st == OLY_OK)
        st = time_pass(r, requests, OLY_PRICED_LARGE, &price->large);
    give(r);
    if (!r->lost)
        oly_release(requests);
    return st;
}

/* -- on all ranks ------------------------------------------------------------------------------------------------------------------ */

static oly_status find_ring(ring *r)
{
    int n = oly_world_size(), me = oly_world_rank(), mine = r->gpus->n_devices, id = 0;
    int *devices = oly_calloc((size_t)n, sizeof *devices);
    OLY_TRY(oly_world_vote(devices ? OLY_OK : oly_out_of_memory((size_t)n * sizeof *devices, "the GPUs of the job"),
                           "measuring messages between GPUs"));
    oly_status st = oly_world_gather(&mine, devices, sizeof mine);
    r->next = (me + 1) % n;
    r->previous = (me + n - 1) % n;
    for (int k = 0; k < n; id += devices[k++]) {
        r->device = k == me ? id : r->device;
        r->next_device = k == r->next ? id : r->next_device;
        r->previous_device = k == r->previous ? id : r->previous_device;
    }
    oly_release(devices);
    return st;
}

oly_status oly_way_measure(const oly_transport *transport, oly_way way, const oly_gpu_access *gpus,
                           oly_way_price *price)
{
    ring r = {.transport = transport, .gpus = gpus, .way = way};
    oly_way_price mine = {0};
    size_t bytes = sizeof mine * (size_t)oly_world_size();
    *price = (oly_way_price){0};
    OLY_TRY(find_ring(&r));
    r.until =
        oly_wait_clock() + (PATIENCE < oly_option.timeout * 1000000000 ? PATIENCE : oly_option.timeout * 1000000000);
    oly_transport_tries = true;
    mine.works = measure(&r, &mine) == OLY_OK;
    oly_transport_tries = false;
    if (!mine.works)
        oly_drop_message();
    oly_way_price *all = oly_malloc(bytes);
    OLY_TRY(oly_world_vote(all ? OLY_OK : oly_out_of_memory(bytes, "prices of messages"),
                           "measuring messages between GPUs"));
    oly_status st = oly_world_gather(&mine, all, sizeof mine);
    price->works = st == OLY_OK;
    for (int k = 0; k < oly_world_size() && price->works; k++) {
        price->works = all[k].works;
        price->small = fmax(price->small, all[k].small);
        price->large = fmax(price->large, all[k].large);
    }
    oly_release(all);
    return st;
}

/* -- what they say --------------------------------------------------------------------------------------------------------------------- */

double oly_way_compare(const oly_way_price *price)
{
    return sqrt(price->small * price->large);
}

double oly_way_bandwidth(const oly_way_price *price)
{
    double more = price->large - price->small;
    return more > 0 ? (OLY_PRICED_LARGE - OLY_PRICED_SMALL) / more : OLY_PRICED_LARGE / price->large;
}

double oly_way_latency(const oly_way_price *price)
{
    return fmax(price->small - OLY_PRICED_SMALL / oly_way_bandwidth(price), 1e-6);
}

void oly_way_price_text(const oly_way_price *price, char *text, size_t room)
{
    double latency = oly_way_latency(price) * 1e6;
    snprintf(text, room, "%.3g GB/s, %.*f us", oly_way_bandwidth(price) / 1e9, latency < 10, latency);
}
