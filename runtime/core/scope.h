/* SPDX-License-Identifier: BSD-3-Clause */
/* Scopes: the owners of handles. Each thread has a stack of open scopes; a handle is in the list of one. */
#ifndef OLY_CORE_SCOPE_H
#define OLY_CORE_SCOPE_H
#include "core/handle.h"

/* First member of every owned object. */
typedef struct oly_owned {
    oly_tag tag; /* set by the maker, see handle.h */
    struct oly_owned *next, *previous;
    struct oly_scope *scope;                   /* NULL: not owned */
    void (*destroy)(struct oly_owned *object); /* frees the object; it is already out of the list */
} oly_owned;

/* Opens a scope; oly_scope_close closes it. After a failure there is none to close. */
oly_status oly_scope_begin(void);
struct oly_scope *oly_scope_innermost(void);
/* Adds an object to the innermost scope (opens the thread's outermost one if none is open). */
oly_status oly_scope_adopt(oly_owned *object, void (*destroy)(oly_owned *object));
void oly_scope_move(oly_owned *object, struct oly_scope *to);
struct oly_scope *oly_scope_outer(struct oly_scope *scope); /* the enclosing scope; itself at the bottom */
void oly_scope_drop(oly_owned *object);                     /* removes it from its scope and destroys it */
void oly_scope_close_all(void);                             /* at finalize */
#endif
