/* SPDX-License-Identifier: BSD-3-Clause */
/* One status for all processes of a call, where one of them may fail alone. Called by runtime/array. */
#ifndef OLY_ARRAY_UNANIMOUS_H
#define OLY_ARRAY_UNANIMOUS_H
#include "array/array.h"

/* The worst status of the processes that own devices of the mesh, all of which call this. Those without an error get the
 * message of one that has, with its rank; a process without devices of it keeps its own status. Communicates if there are
 * others. */
oly_status oly_unanimous(oly_mesh mesh, oly_status mine);
#endif
