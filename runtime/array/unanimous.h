/* One status for all processes of a call, where one of them may fail alone. Called by runtime/array. */
#ifndef OLY_ARRAY_UNANIMOUS_H
#define OLY_ARRAY_UNANIMOUS_H
#include "array/array.h"

/* The worst status of the processes that have devices in the mesh, all of which call this; those that were fine get a message that
 * names one that was not; a process without devices in it keeps its own. Communicates, if there are others. */
oly_status oly_unanimous(oly_mesh mesh, oly_status mine, const char *what);
#endif
