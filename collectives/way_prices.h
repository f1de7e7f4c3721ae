/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages between GPUs of different processes take by each way that this job could use, for transport.c only. */
#ifndef OLY_COLLECTIVES_WAY_PRICES_H
#define OLY_COLLECTIVES_WAY_PRICES_H
#include "transport.h"
#include "core/gpu_access.h"

/* Seconds of a message by its bytes; of the slowest rank. */
enum { OLY_PRICED_SMALL = 64 << 10, OLY_PRICED_LARGE = 4 << 20 };
typedef struct oly_way_price {
    bool works; /* on all ranks, in time */
    double small, large;
} oly_way_price;

/* Sends messages of both sizes around the ring of all ranks, from the first GPU of each, by a transport that has been started. Collective; ends
 * in about five seconds where a message does not arrive or a call fails, and then `works` is false on all ranks. fails OLY_MEMORY, or
 * as the ranks do that compare what they measured. */
oly_status oly_way_measure(const oly_transport *transport, oly_way way, const oly_gpu_access *gpus,
                           oly_way_price *price);
/* One number to compare ways by: both sizes count the same. */
double oly_way_compare(const oly_way_price *price);
/* "24.1 GB/s, 15 us" */
void oly_way_price_text(const oly_way_price *price, char *text, size_t room);
double oly_way_latency(const oly_way_price *price);   /* seconds */
double oly_way_bandwidth(const oly_way_price *price); /* bytes per second */
#endif
