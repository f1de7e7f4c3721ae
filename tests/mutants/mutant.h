/* SPDX-License-Identifier: BSD-3-Clause */
/* Included before every source that has mutants (plant.py); nothing else includes it. A mutant is a small change of the
 * source that is active when the environment gives its number. */
#ifndef OLY_MUTANT_H
#define OLY_MUTANT_H
extern int oly_mutant_active;
extern unsigned char *oly_mutant_reached;

static inline __attribute__((unused)) _Bool oly_mutant_is(int number)
{
    oly_mutant_reached[number] = 1;
    return oly_mutant_active == number;
}
#endif
