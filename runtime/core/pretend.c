/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads OLYMPUS_NODES. See pretend.h. */
#include "core/pretend.h"
#include "core/error.h"
#include "core/option.h"
#include "core/scan.h"

enum { MOST = 1 << 20 };

/* Entry number `wanted`, or how many there are (wanted -1). */
static oly_status read_list(int wanted, int *count, int *node, int *socket)
{
    oly_scanner s = oly_scan_begin(oly_option.nodes);
    *node = *socket = -1;
    for (*count = 0; !oly_scan_end(&s); ++*count) {
        int64_t n, m = -1;
        if (*count > 0 && !oly_scan_take(&s, ','))
            return oly_scan_expected(&s, "','");
        if (!oly_scan_integer(&s, &n) || n < 0 || n > MOST)
            return oly_scan_expected(&s, "the number of a node");
        if (oly_scan_take(&s, '/') && (!oly_scan_integer(&s, &m) || m < 0 || m > MOST))
            return oly_scan_expected(&s, "the number of a socket");
        if (*count == wanted) {
            *node = (int)n;
            *socket = (int)m;
        }
    }
    return OLY_OK;
}

oly_status oly_pretend_check(void)
{
    int count, node, socket;
    if (read_list(-1, &count, &node, &socket) == OLY_OK)
        return OLY_OK;
    oly_drop_message(); /* it does not name the variable */
    return oly_fail(
        OLY_PARSE,
        "OLYMPUS_NODES=\"%s\" is not a list of nodes, or of nodes and sockets, one for each rank: \"0,1,0,1\" "
        "or \"0/0,0/1\"",
        oly_option.nodes);
}

int oly_pretend_node(int rank)
{
    int count, node, socket;
    return read_list(rank, &count, &node, &socket) == OLY_OK ? node : -1;
}

int oly_pretend_socket(int rank)
{
    int count, node, socket;
    return read_list(rank, &count, &node, &socket) == OLY_OK ? socket : -1;
}
