/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of local.h for one instruction set: oly_local_<isa>. */
#include "local_table.h"

#define SORT    OLY_ISA_NAME(oly_sort_run)
#define SCAN    OLY_ISA_NAME(oly_scan_run)
#define ARG     OLY_ISA_NAME(oly_argreduce_run)
#define SCATTER OLY_ISA_NAME(oly_scatter_run)

const oly_local_table OLY_ISA_NAME(oly_local) = {{
    [OLY_LOCAL_SORT] = SORT,
    [OLY_LOCAL_ARGSORT] = SORT,
    [OLY_LOCAL_TOP_K] = SORT,
    [OLY_LOCAL_CUMSUM] = SCAN,
    [OLY_LOCAL_CUMPROD] = SCAN,
    [OLY_LOCAL_CUMMAX] = SCAN,
    [OLY_LOCAL_CUMMIN] = SCAN,
    [OLY_LOCAL_CUMLOGSUMEXP] = SCAN,
    [OLY_LOCAL_ARGMAX] = ARG,
    [OLY_LOCAL_ARGMIN] = ARG,
    [OLY_LOCAL_SEARCHSORTED] = OLY_ISA_NAME(oly_search_run),
    [OLY_LOCAL_GATHER] = OLY_ISA_NAME(oly_gather_run),
    [OLY_LOCAL_SCATTER] = SCATTER,
    [OLY_LOCAL_SCATTER_ADD] = SCATTER,
    [OLY_LOCAL_SCATTER_MUL] = SCATTER,
    [OLY_LOCAL_SCATTER_MIN] = SCATTER,
    [OLY_LOCAL_SCATTER_MAX] = SCATTER,
    [OLY_LOCAL_DYNAMIC_SLICE] = OLY_ISA_NAME(oly_dynamic_slice_run),
    [OLY_LOCAL_DYNAMIC_UPDATE] = OLY_ISA_NAME(oly_dynamic_update_run),
    [OLY_LOCAL_PICK] = OLY_ISA_NAME(oly_pick_run),
    [OLY_LOCAL_LENGTHEN] = OLY_ISA_NAME(oly_arrange_run),
    [OLY_LOCAL_NUMBER] = OLY_ISA_NAME(oly_arrange_run),
    [OLY_LOCAL_TAKE] = OLY_ISA_NAME(oly_arrange_run),
    [OLY_LOCAL_CONVOLVE] = OLY_ISA_NAME(oly_convolve_run),
    [OLY_LOCAL_WINDOW_SUM] = OLY_ISA_NAME(oly_window_run),
    [OLY_LOCAL_WINDOW_PROD] = OLY_ISA_NAME(oly_window_run),
    [OLY_LOCAL_WINDOW_MAX] = OLY_ISA_NAME(oly_window_run),
    [OLY_LOCAL_WINDOW_MIN] = OLY_ISA_NAME(oly_window_run),
}};
