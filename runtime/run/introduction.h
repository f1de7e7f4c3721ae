/* SPDX-License-Identifier: BSD-3-Clause */
/* Introductions of arrays that processes make of their own data to processes that hold no part of them: what the latter compare with
 * what they know (collectives/introduction.c). For runtime/run; oly_introduction_made also for runtime/array. By the thread that
 * issues calls. */
#ifndef OLY_RUN_INTRODUCTION_H
#define OLY_RUN_INTRODUCTION_H
#include "communicator.h"
#include "layout/mesh.h"

/* An array has been made on the mesh, which leaves processes out. kind: digest of its type and sharding; stand_in: without the calls
 * that the processes of the mesh make. */
void oly_introduction_made(oly_mesh mesh, uint64_t kind, uint64_t origin, bool stand_in);
/* An operand of that origin goes into a call of this set: adds it to what the call introduces. */
void oly_introduction_add(oly_introduction *i, oly_acquaintance *a, uint64_t set, oly_mesh mesh, uint64_t origin);
void oly_introductions_end(void); /* at finalize */
#endif
