/* Element types and global types of values. Callable from graph and above. */
#ifndef OLY_GRAPH_TYPE_H
#define OLY_GRAPH_TYPE_H
#include <olympus/array.h>
#include "core/text.h"

typedef struct oly_type {
    oly_dtype dtype;
    bool weak; /* the element type came from a C number and gives way to others (JAX's weak types) */
    int rank;
    int64_t shape[OLY_MAX_RANK];
} oly_type;

typedef enum { OLY_KIND_BOOL, OLY_KIND_INTEGER, OLY_KIND_FLOAT, OLY_KIND_COMPLEX } oly_kind;
oly_kind oly_dtype_kind(oly_dtype d);
const char *oly_dtype_short(oly_dtype d); /* "f32" */
bool oly_dtype_is_signed(oly_dtype d);    /* int8 to int64 */
oly_dtype oly_dtype_real(oly_dtype d);    /* of the parts of a complex number; else d */
oly_dtype oly_default_int(void);          /* int32, with 64-bit types enabled int64 */
oly_dtype oly_default_float(void);        /* float32, with 64-bit types enabled float64 */
/* What a floating function makes of these: floating and complex types stay, the others become the default float. */
oly_dtype oly_dtype_inexact(oly_dtype d);
int64_t oly_type_size(const oly_type *t);                  /* elements */
bool oly_type_equal(const oly_type *a, const oly_type *b); /* weakness does not count */
void oly_type_text(oly_text *t, const oly_type *type);     /* "float32[4,8]", weak: "~float32[]" */
/* Short text in a rotating static buffer, for messages: "float32[4,8]". */
const char *oly_type_short(const oly_type *t);
/* Result type of an operation on these (jnp's lattice, weak types included). */
oly_dtype oly_promote(const oly_type *a, const oly_type *b, bool *weak);
/* Checks extents (none negative, product fits int64 and memory). fails OLY_INVALID, OLY_OVERFLOW. */
oly_status oly_type_check(const oly_type *t);
#endif
