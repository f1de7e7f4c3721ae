/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport of transport_shuffled.c, for tests that choose it themselves. */
#ifndef TRANSPORT_SHUFFLED_H
#define TRANSPORT_SHUFFLED_H
#include "transport.h"

extern const oly_transport transport_shuffled;
void transport_shuffled_seed(unsigned seed);
/* Called with a line about a box whose ends are wrong: prints it and aborts, unless a test sets another function. */
extern void (*transport_shuffled_complain)(const char *line);
#endif
