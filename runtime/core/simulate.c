/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses OLYMPUS_SIMULATE and OLYMPUS_SIMULATE_NODE. See simulate.h. */
#include "core/simulate.h"
#include "core/error.h"
#include "core/option.h"
#include "core/scan.h"
#include <hwloc.h>
#include <string.h>

oly_simulation oly_simulation_asked;

bool oly_simulated(void)
{
    oly_pass(__func__);
    return oly_is_simulated();
}

void oly_simulation_forget(void)
{
    oly_simulation_asked = (oly_simulation){0};
}

oly_status oly_simulation_has_no_values(const char *what)
{
    return oly_fail(OLY_STATE,
                    "%s has no values: OLYMPUS_SIMULATE=%s plans for a machine that is not there and computes nothing; "
                    "unset it to run, or ask oly_simulated() before reading",
                    what, oly_option.simulate);
}

static oly_status read_number(oly_scanner *s, const char *expected, int *number)
{
    int64_t value;
    if (!oly_scan_integer(s, &value) || value < 1 || value > INT32_MAX)
        return oly_scan_expected(s, expected);
    *number = (int)value;
    return OLY_OK;
}

/* "12500x8" */
static oly_status read_size(oly_simulation *m)
{
    oly_scanner s = oly_scan_begin(oly_option.simulate);
    OLY_TRY(read_number(&s, "a number of ranks, as in OLYMPUS_SIMULATE=12500x8", &m->ranks));
    if (!oly_scan_take(&s, 'x'))
        return oly_scan_expected(&s, "'x' and a number of devices for each rank, as in OLYMPUS_SIMULATE=12500x8");
    OLY_TRY(read_number(&s, "a number of devices for each rank, as in OLYMPUS_SIMULATE=12500x8", &m->devices));
    if (!oly_scan_end(&s))
        return oly_scan_expected(&s, "the end of OLYMPUS_SIMULATE");
    if ((int64_t)m->ranks * m->devices > INT32_MAX)
        return oly_fail(OLY_OVERFLOW, "OLYMPUS_SIMULATE=%s has more than %d devices", oly_option.simulate, INT32_MAX);
    return OLY_OK;
}

/* A node as hwloc describes it has a rank for each of its NUMA domains. */
static oly_status count_domains(const char *synthetic, int *n)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return oly_out_of_memory(0, "a topology");
    bool good = hwloc_topology_set_synthetic(topology, synthetic) == 0 && hwloc_topology_load(topology) == 0;
    *n = good ? hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) : 0;
    hwloc_topology_destroy(topology);
    if (*n > 0)
        return OLY_OK;
    return oly_fail(OLY_PARSE,
                    "OLYMPUS_SIMULATE_NODE=\"%s\" is neither a number of ranks on each node nor a node in hwloc's "
                    "synthetic notation, such as \"numa:2 l3:1 core:12 l2:1 pu:1\" (man hwloc, lstopo -i)",
                    synthetic);
}

static oly_status read_node(oly_simulation *m)
{
    const char *text = oly_option.simulate_node;
    m->node_ranks = 1;
    if (!*text)
        return OLY_OK;
    if (text[strspn(text, "0123456789")] == 0) {
        oly_scanner s = oly_scan_begin(text);
        return read_number(&s, "a number of ranks on each node", &m->node_ranks);
    }
    m->node = text;
    return count_domains(text, &m->node_ranks);
}

oly_status oly_simulation_read(void)
{
    oly_simulation m = {0};
    oly_simulation_asked = m;
    if (!*oly_option.simulate)
        return OLY_OK;
    OLY_TRY(read_size(&m));
    OLY_TRY(read_node(&m));
    oly_simulation_asked = m;
    return OLY_OK;
}
