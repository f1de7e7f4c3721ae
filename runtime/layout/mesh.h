/* SPDX-License-Identifier: BSD-3-Clause */
/* Meshes: grids of devices with named axes. Interned: equal meshes are one object, which lives until oly_layout_stop. */
#ifndef OLY_LAYOUT_MESH_H
#define OLY_LAYOUT_MESH_H
#include "core/handle.h"
#include <olympus/mesh.h>

#define OLY_AXIS_NAME 32

struct oly_mesh_impl {
    oly_tag tag;
    int n_axes;
    char name[OLY_MAX_RANK][OLY_AXIS_NAME];
    int size[OLY_MAX_RANK];
    unsigned explicit_axes, manual_axes; /* bit k: the type of axis k; the others are Auto */
    int n_devices;                       /* product of the sizes */
    /* Largest power of two such that aligned runs of that many positions along the axis belong to one process. */
    int together[OLY_MAX_RANK];
    /* Number of coordinates of each axis that a process has, if the processes are boxes of one size that fill the grid; else 0. */
    int each[OLY_MAX_RANK];
    _Atomic unsigned level[OLY_MAX_RANK]; /* node.c's record of the level along each axis */
    const int *devices; /* global ids in row-major order; NULL: the first n_devices. Owned; equal lists are shared */
    uint64_t list_hash; /* of devices */
    int process;        /* the one all devices belong to; -1: several */
    bool everywhere;    /* the default device of each process: one position, which every process has a copy of */
    uint64_t hash;      /* the same on all ranks */
};

/* -- processes.c: which process owns which device ---------------------------------------------------------------------------- */
/* Sets the devices: counts[r] of process r, ids dense in process order. At start. */
oly_status oly_mesh_set_devices(int n_processes, const int *counts, int my_process);
/* The same if all processes have equally many; needs no memory for a list of processes. */
oly_status oly_mesh_set_devices_alike(int n_processes, int count, int my_process);
void oly_mesh_forget_devices(void); /* at finalize */
int oly_mesh_total_devices(void);
int oly_mesh_processes(void);
int oly_mesh_my_process(void);
int oly_mesh_process_of(int device_id);
/* How many devices a process has, and the id of the first; the others follow. */
int oly_mesh_devices_of(int process, int *first);
int oly_mesh_devices_each(void);  /* devices of every process; 0: the numbers differ */
int oly_mesh_first_local(void);   /* id of this process's first device */
int oly_mesh_local_devices(void); /* of this process, those beside included */
/* The id of local device k, and back; -1: it is another process's. */
int oly_mesh_local_id(int local);
int oly_mesh_local_index(int device_id);

/* CPU devices beside GPUs: equally many of each process. Their ids follow those of all GPUs, in the order of the processes; as local
 * devices they follow the GPUs. All counts above but oly_mesh_local_devices are of the others. A mesh is of one kind. */
void oly_mesh_set_beside(int of_each_process); /* after oly_mesh_set_devices */
int oly_mesh_all_ids(void);                    /* of both kinds: ids are less than this */
bool oly_mesh_is_beside(oly_mesh mesh);
/* oly_mesh_devices_of and _each among devices of the mesh's kind. */
int oly_mesh_devices_in(oly_mesh mesh, int process, int *first);
int oly_mesh_devices_each_in(oly_mesh mesh);

/* -- mesh.c -------------------------------------------------------------------------------------------------------- */
/* The mesh of uncommitted arrays: each process's own first device. */
oly_mesh oly_mesh_default(void);
/* The mesh on which uncommitted work runs: the device of oly_set_default_device, else oly_mesh_default. id -1: unset. */
oly_mesh oly_mesh_uncommitted(void);
int oly_mesh_default_device(void);
oly_status oly_mesh_set_default_device(int id);
/* Reads names, sizes and types of axes in the notation of oly_make_mesh; *unknown: the axis of size -1, which counts as 1; -1: none. */
oly_status oly_mesh_parse(struct oly_mesh_impl *m, const char *axes, int *unknown);
/* Global device id at a row-major position. */
int oly_mesh_device_id(oly_mesh mesh, int position);
/* Its number among those of its platform, for people. */
int oly_mesh_device_number(oly_mesh mesh, int position);
/* Which of this process's devices has the local shard s, counted as oly_mesh_local_positions does. */
int oly_mesh_local_device(oly_mesh mesh, int s);
/* Row-major position of a device, -1 if it is not in the mesh. Not for the mesh of uncommitted arrays. */
int oly_mesh_position_of(oly_mesh mesh, int device_id);
/* The same grid with other types of its axes (bit masks). NULL on failure (message pending). */
oly_mesh oly_mesh_retyped(oly_mesh mesh, unsigned explicit_axes, unsigned manual_axes);
/* The same devices in the same order on another grid, all Auto. NULL on failure (message pending). */
oly_mesh oly_mesh_regrouped(oly_mesh mesh, int n_axes, const int *size, const char (*name)[OLY_AXIS_NAME]);
/* True if both have the same axes over the same devices, whatever the types of the axes. */
bool oly_mesh_same_grid(oly_mesh a, oly_mesh b);
/* The mesh of oly_set_mesh; NULL: none. */
oly_mesh oly_mesh_context(void);
void oly_mesh_set_context(oly_mesh mesh);
/* Axis number by name, -1 if there is none. */
int oly_mesh_find_axis(oly_mesh mesh, const char *name);
/* Row-major position <-> coordinates along the axes. */
void oly_mesh_coordinates(oly_mesh mesh, int position, int *coordinates);
int oly_mesh_position(oly_mesh mesh, const int *coordinates);
/* The positions whose devices this process owns: how many, and a list in mesh order (cached with the mesh). */
int oly_mesh_local_positions(oly_mesh mesh, const int **positions);
/* True if both have the same devices in the same order (whatever the axes). */
bool oly_mesh_same_devices(oly_mesh a, oly_mesh b);
/* Frees meshes and shardings; at finalize. */
void oly_layout_stop(void);
#endif
