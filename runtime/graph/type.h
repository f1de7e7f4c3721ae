/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types and global types of values. Callable from graph and above. */
#ifndef OLY_GRAPH_TYPE_H
#define OLY_GRAPH_TYPE_H
#include <olympus/array.h>
#include "core/text.h"
#include "layout/sharding.h"

/* The last members are the sharding part: what Explicit axes (and, inside oly_shard_map, Manual ones) add to a type.
 * Zero where the planner alone decides. */
typedef struct oly_type {
    oly_dtype dtype;
    bool weak; /* the element type came from a C number and gives way to others (JAX's weak types) */
    int rank;
    int64_t shape[OLY_MAX_RANK];
    oly_mesh mesh;                    /* the mesh of the axes below; NULL: nothing is explicit, the value adapts */
    oly_axis_list axes[OLY_MAX_RANK]; /* Explicit axes that split each dimension, major first */
    unsigned unreduced;               /* sets of mesh axes (bit k: axis k): the value is the sum over these */
    unsigned reduced;                 /* equal along these, with a gradient that is unreduced along them */
    unsigned varying;                 /* Manual axes along which it may differ */
} oly_type;

typedef enum { OLY_KIND_BOOL, OLY_KIND_INTEGER, OLY_KIND_FLOAT, OLY_KIND_COMPLEX } oly_kind;
oly_kind oly_dtype_kind(oly_dtype d);
const char *oly_dtype_short(oly_dtype d); /* "f32" */
bool oly_dtype_is_signed(oly_dtype d);    /* int8 to int64 */
oly_dtype oly_dtype_real(oly_dtype d);    /* of the parts of a complex number; else d */
bool oly_types_are_wide(void);            /* are 64-bit types enabled? */
oly_dtype oly_default_int(void);          /* int32, with 64-bit types enabled int64 */
oly_dtype oly_default_float(void);        /* float32, with 64-bit types enabled float64 */
oly_dtype oly_default_complex(void);      /* complex64, with 64-bit types enabled complex128 */
/* The type of a sum of such elements: bools and integers narrower than the default integer become that, signed or
 * not. */
oly_dtype oly_dtype_summed(oly_dtype d);
/* The type in which reductions compute: float32 for narrower floating types, else d. */
oly_dtype oly_dtype_computed(oly_dtype d);
/* The type of a floating-point function of such elements: floating and complex types stay, others become the default
 * float. */
oly_dtype oly_dtype_inexact(oly_dtype d);
/* Of floating types and of the parts of complex ones: the distance from 1 to the next number, the smallest normal
 * number, the largest finite one. */
double oly_dtype_epsilon(oly_dtype d);
double oly_dtype_smallest_normal(oly_dtype d);
double oly_dtype_largest(oly_dtype d);
int64_t oly_type_size(const oly_type *t);                  /* elements */
bool oly_type_equal(const oly_type *a, const oly_type *b); /* weakness and the sharding part do not count */
/* -- the sharding part (sharding_type.c) ---- */
bool oly_type_same_sharding(const oly_type *a, const oly_type *b);
void oly_type_clear_sharding(oly_type *t);
/* Takes the sharding part from `s`: nothing unless its mesh has Explicit axes, and those only. Shape and rank of t
 * stay. */
void oly_type_set_sharding(oly_type *t, oly_sharding s);
/* Splits dimensions that s leaves open over Explicit axes as those of `before` are. */
void oly_type_keep_open(oly_type *t, const oly_type *before, oly_sharding s);
/* The sharding that a type with a mesh stands for: Explicit axes as given, all others replicate. NULL: message
 * pending. */
oly_sharding oly_type_sharding(const oly_type *t);
/* Writes "{V:x, U:(y,z)}" or "" as snprintf does. */
int oly_type_marks(char *text, size_t size, const oly_type *t);
void oly_type_text(oly_text *t, const oly_type *type); /* "float32[4,8@x]{U:y}", weak: "~float32[]" */
/* The same in a rotating static buffer, for messages. */
const char *oly_type_short(const oly_type *t);
/* Result type of an operation on these (jnp's lattice, weak types included); OLY_N_DTYPES if there is none. */
oly_dtype oly_promote(const oly_type *a, const oly_type *b, bool *weak);
/* Promotion of two element types without weakness, and the error where there is none. */
oly_dtype oly_dtype_meet(oly_dtype a, oly_dtype b);
oly_status oly_dtypes_do_not_meet(oly_dtype a, oly_dtype b);
/* Checks extents: none negative, the product fits int64 and memory. fails OLY_INVALID, OLY_OVERFLOW. */
oly_status oly_type_check(const oly_type *t);
#endif
