/* SPDX-License-Identifier: BSD-3-Clause */
/* Origins identify arrays on meshes that leave processes out. A process without a part of such an array makes the same
 * calls, and so knows the array by its origin: a hash of the calls that led to it, the same on all processes, by which
 * it asks for the array's value (fetch.c). Private to runtime/array. */
#ifndef OLY_ARRAY_ORIGIN_H
#define OLY_ARRAY_ORIGIN_H
#include "array/array.h"
#include "plan/plan.h"

/* Does some process own no device of the plan's meshes? Meshes of uncommitted devices do not count: all processes have
 * those. */
bool oly_plan_leaves_out(const oly_plan *plan);
/* Does some process own no device of the mesh? */
bool oly_mesh_leaves_out(oly_mesh mesh);
/* [processes] which of them own a device of it; owned by the caller. NULL: out of memory. */
bool *oly_mesh_has(oly_mesh mesh);
/* The process of the mesh that keeps values for those it leaves out. */
int oly_mesh_keeper(oly_mesh mesh);
/* 0: only this process knows the array. */
uint64_t oly_origin_of(oly_array x);
/* The origin of an array that each process makes of the same data, and of which some may have no part. */
uint64_t oly_origin_of_data(const void *data, size_t bytes);
/* The origin of a call, which starts as the plan's fingerprint: mixes in the origin of the next operand. Waits for
 * operands of this process alone: they are known by their contents. */
typedef struct oly_origin {
    uint64_t call;
    uint64_t lineage; /* that of oly_identity; starts likewise */
    bool count;       /* made of a process's own data, unknown to others: told apart by a count */
    bool own;         /* or made of such arrays */
    bool unknown;     /* out of memory */
} oly_origin;
void oly_origin_add(oly_origin *o, oly_array operand);
/* After the last operand and before the call runs. Results of a process's own data are told apart by the source line of
 * the call and a count of its executions. Then: the origin of result k. */
void oly_origin_end(oly_origin *o);
void oly_origin_result(const oly_origin *o, int k, oly_identity *x);
/* The number, from 1, of the array among those of its kind that have been made of a process's own data; 0: out of memory. */
uint64_t oly_origin_number(uint64_t kind);
void oly_origins_forget(void); /* at finalize */
#endif
