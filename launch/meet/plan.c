/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of a meeting. See plan.h. */
#include "plan.h"
#include <stdlib.h>

bool plan_read(plan *p, oly_read *fields, int me)
{
    *p = (plan){.me = me};
    oly_read_text(fields, p->job, sizeof p->job);
    uint32_t n = oly_read_u32(fields), nodes = oly_read_u32(fields);
    if (fields->bad || n == 0 || n > OLY_WIRE_MOST_PROCESSES || nodes == 0 || nodes > n || (uint32_t)me >= n)
        return false;
    p->n = (int)n;
    p->n_nodes = (int)nodes;
    p->name = calloc(nodes, sizeof *p->name);
    p->node = calloc(n, sizeof *p->node);
    for (uint32_t k = 0; p->name && p->node && k < nodes; k++)
        oly_read_text(fields, p->name[k], NODE_NAME);
    for (uint32_t k = 0; p->name && p->node && k < n; k++) {
        uint32_t node = oly_read_u32(fields);
        fields->bad = fields->bad || node >= nodes;
        p->node[k] = (int)node;
    }
    return p->name && p->node && oly_read_done(fields);
}

int plan_leader(const plan *p, int node)
{
    int k = 0;
    while (k < p->n - 1 && p->node[k] != node)
        k++;
    return k;
}

int plan_node_rank(const plan *p, int process)
{
    int count = 0;
    for (int k = 0; k < process; k++)
        count += p->node[k] == p->node[process];
    return count;
}

int plan_node_ranks(const plan *p, int process)
{
    int count = 0;
    for (int k = 0; k < p->n; k++)
        count += p->node[k] == p->node[process];
    return count;
}
