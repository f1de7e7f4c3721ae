/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the boxes of an array's parts cover it, each element once? For manifest.c only. */
#ifndef OLY_FILE_MANIFEST_BOXES_H
#define OLY_FILE_MANIFEST_BOXES_H
#include "file/manifest.h"

typedef enum oly_boxes { OLY_BOXES_COVER, OLY_BOXES_OVERLAP, OLY_BOXES_MISS, OLY_BOXES_TOO_MANY } oly_boxes;

/* Sorts the array's parts; *first and *second overlap (OLY_BOXES_OVERLAP). Every box lies in the array and is not empty. */
oly_boxes oly_manifest_check_boxes(oly_manifest_array *a, const oly_manifest_part **first,
                                   const oly_manifest_part **second);
#endif
