/* Where arrays come from, on meshes that leave processes out. Those that have no part of such an array make the same calls, and so know
 * it by its origin: a number made of the calls that lead to it, the same on all processes. By it they ask for its value (fetch.c).
 * Private to runtime/array. */
#ifndef OLY_ARRAY_ORIGIN_H
#define OLY_ARRAY_ORIGIN_H
#include "array/array.h"
#include "plan/plan.h"

/* Does some process have no device of the meshes of these calls? Not of those on the uncommitted devices, which all have. */
bool oly_plan_leaves_out(const oly_plan *plan);
/* Does some process have no device of the mesh? */
bool oly_mesh_leaves_out(oly_mesh mesh);
/* [processes] which have a device of it; the caller's. NULL: out of memory. */
bool *oly_mesh_has(oly_mesh mesh);
/* Of its processes, the one that keeps values for those that it leaves out. */
int oly_mesh_keeper(oly_mesh mesh);
/* 0: the process alone knows the array. */
uint64_t oly_origin_of(oly_array x);
/* Of an array that each process makes of the same data, of which some may have no part. */
uint64_t oly_origin_of_data(const void *data, size_t bytes);
/* A call of such a plan: mixes the origin of the next operand into that of the call, which begins with the plan's fingerprint. Waits for
 * operands of this process alone: they are known by their contents. */
typedef struct oly_origin {
    uint64_t call;
    bool count;   /* made of a process's own data, which others do not know: told apart by counting */
    bool own;     /* or of what was */
    bool unknown; /* out of memory */
} oly_origin;
void oly_origin_add(oly_origin *o, oly_array operand);
/* When all are added, before the call runs. What was made of a process's own data is told from others by the place of the call, and by
 * how many times it was made there. Then: the origin of result k. */
void oly_origin_end(oly_origin *o);
uint64_t oly_origin_result(const oly_origin *o, int k);
void oly_origins_forget(void); /* at finalize */
#endif
