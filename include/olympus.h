/* SPDX-License-Identifier: BSD-3-Clause */
/* Olympus: one global-view program over sharded arrays on many devices. The whole public interface.
 * Sections: base.h start, errors, scopes; start.h starting on a cluster; mesh.h devices, meshes, shardings; array.h arrays; processes.h arrays across processes; ops.h operations; math.h more
 * elementwise operations; shape.h rearranging elements; statistics.h operations made of reductions; index.h sorting, running
 * results and indexing; contract.h products; random.h random numbers; transform.h jit, loops, explanations; gradient.h
 * derivatives; map.h shard_map, collectives, vmap; regions.h other Explicit axes in a part of a program; formats.h files of other programs;
 * checkpoint.h saving and restoring arrays, stopping in time.
 * inside.h the program's own code inside functions.
 * files.h arrays in files.
 * timeline.h where time goes.
 * The rules are in docs/semantics.md. */
#ifndef OLYMPUS_H
#define OLYMPUS_H
#include <olympus/base.h>
#include <olympus/start.h>
#include <olympus/mesh.h>
#include <olympus/array.h>
#include <olympus/ops.h>
#include <olympus/processes.h>
#include <olympus/shape.h>
#include <olympus/statistics.h>
#include <olympus/index.h>
#include <olympus/contract.h>
#include <olympus/math.h>
#include <olympus/random.h>
#include <olympus/transform.h>
#include <olympus/gradient.h>
#include <olympus/map.h>
#include <olympus/regions.h>
#include <olympus/files.h>
#include <olympus/timeline.h>
#include <olympus/formats.h>
#include <olympus/checkpoint.h>
#include <olympus/inside.h>
#endif
