/* The decimal digits of floating-point values, as NumPy chooses them: the fewest that read back as the same
 * value, or, past a given number of decimals, the exact value rounded there. Used by format.c only. */
#ifndef OLY_ARRAY_DIGITS_H
#define OLY_ARRAY_DIGITS_H
#include <stdbool.h>

/* Longest text written: sign, 309 integer digits or 17 decimals, point, exponent. */
#define OLY_DIGITS_TEXT 352

/* All write a terminated text of a finite value into `out` (OLY_DIGITS_TEXT bytes). `single`: the value is a
 * float32, so that fewer digits identify it. */

/* d.ddde+XX with at least `least` and at most `most` decimals and `exponent_digits` digits (2 or more) of the
 * exponent; the point stays when no decimal follows ("1.e+07"). */
void oly_digits_scientific(char *out, double value, bool single, int least, int most, int exponent_digits);
/* ddd.ddd with at most `most` decimals; the point stays. */
void oly_digits_positional(char *out, double value, bool single, int most);
/* How one number stands in a sentence, as Python's repr(float): "0.5", "3.0", "1e-05"; scientific from `large`
 * on and below 1e-4. nan and inf are allowed here. */
void oly_digits_alone(char *out, double value, bool single, double large);
#endif
