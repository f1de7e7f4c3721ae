/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares, before anything else, what all processes of a job must have in common. Called by start.c. */
#ifndef OLY_ARRAY_AGREE_H
#define OLY_ARRAY_AGREE_H
#include <olympus/base.h>

/* Called on all ranks. fails OLY_DIVERGED on all of them: versions, builds of the library, programs or shared options
 * differ; the message names rank 0's and the first one that differs. */
oly_status oly_agree_at_start(void);
#endif
