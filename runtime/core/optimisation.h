/* SPDX-License-Identifier: BSD-3-Clause */
/* Optimisations that can be turned off: one row each in optimisation.def gives name and description.
 * OLYMPUS_DISABLE names those that are off (all: every one); a pass checks oly_enabled where it begins. Results have the same
 * bits with and without, except where docs/semantics.md says that rounding changes (reductions that are deferred or split
 * differently, stencil taps). A pass without which an operation cannot be lowered has no row. Callable from every layer. */
#ifndef OLY_CORE_OPTIMISATION_H
#define OLY_CORE_OPTIMISATION_H
#include <olympus/base.h>

typedef enum oly_optimisation {
#define OLY_OPTIMISATION(id, name, what, where) OLY_OPTIMISATION_##id,
#include "core/optimisation.def"
#undef OLY_OPTIMISATION
    OLY_N_OPTIMISATIONS
} oly_optimisation;

typedef unsigned __int128 oly_optimisations; /* a set: bits by number */
_Static_assert(OLY_N_OPTIMISATIONS <= 128, "a set of optimisations has 128 bits");
#define OLY_ALL_OPTIMISATIONS ((oly_optimisations)-1 >> (128 - OLY_N_OPTIMISATIONS))

/* Those that OLYMPUS_DISABLE turns off, and those that are off on this thread in addition (oly_disable). */
extern oly_optimisations oly_disabled_by_option;
extern _Thread_local oly_optimisations oly_disabled_here;

static inline bool oly_enabled(oly_optimisation x)
{
    return !((oly_disabled_by_option | oly_disabled_here) >> x & 1u);
}

/* Turns further ones off for plans that this thread makes from now on; returns those that were off before, for the call that ends it. */
oly_optimisations oly_disable(oly_optimisations some);
const char *oly_optimisation_name(oly_optimisation x);
const char *oly_optimisation_text(oly_optimisation x); /* its description */
/* Reads a list of names, "fusion,overlap" or "all". fails OLY_INVALID: unknown name (with all names). */
oly_status oly_optimisations_parse(const char *list, oly_optimisations *some);
#endif
