/* SPDX-License-Identifier: BSD-3-Clause */
/* Boxes of arrays as programs see them. Private to runtime/array. */
#ifndef OLY_ARRAY_PROCESSES_BOXES_H
#define OLY_ARRAY_PROCESSES_BOXES_H
#include "layout/layout.h"
#include <olympus/processes.h>

oly_index_box oly_index_box_of(const oly_box *b);
#endif
