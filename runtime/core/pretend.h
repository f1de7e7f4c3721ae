/* SPDX-License-Identifier: BSD-3-Clause */
/* OLYMPUS_NODES: nodes and sockets that ranks of one machine pretend to be on, so that several can be tried on one. Called by
 * collectives/ and at start. */
#ifndef OLY_CORE_PRETEND_H
#define OLY_CORE_PRETEND_H
#include <olympus/base.h>

/* fails OLY_PARSE unless the option is empty or a list such as "0,1,0,1" or "0/0,0/1,1/0,1/1". */
oly_status oly_pretend_check(void);
/* Of this rank: number of its node, and of its socket there; -1: nothing is said of it. */
int oly_pretend_node(int rank);
int oly_pretend_socket(int rank);
#endif
