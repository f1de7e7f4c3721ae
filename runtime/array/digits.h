/* SPDX-License-Identifier: BSD-3-Clause */
/* The decimal digits of floating-point values, as NumPy chooses them: the fewest that read back as the same value or,
 * beyond a given number of decimals, the exact value rounded there. Used by format.c and files/csv_save.c. */
#ifndef OLY_ARRAY_DIGITS_H
#define OLY_ARRAY_DIGITS_H
#include <stdbool.h>

/* Longest text written: sign, 309 integer digits or 17 decimals, point, exponent. */
#define OLY_DIGITS_TEXT 352

/* The type of the value: a float32 needs fewer digits, a float16 still fewer. */
typedef enum oly_precision { OLY_PRECISION_DOUBLE, OLY_PRECISION_SINGLE, OLY_PRECISION_HALF } oly_precision;

/* All write a terminated text of a finite value into `out` (OLY_DIGITS_TEXT bytes). */

/* d.ddde+XX with at least `least` and at most `most` decimals and `exponent_digits` digits (2 or more) of the
 * exponent; the point stays when no decimal follows ("1.e+07"). */
void oly_digits_scientific(char *out, double value, oly_precision of, int least, int most, int exponent_digits);
/* ddd.ddd with at most `most` decimals; the point stays. */
void oly_digits_positional(char *out, double value, oly_precision of, int most);
/* One number in a sentence, as Python's repr(float): "0.5", "3.0", "1e-05"; scientific from `large` on and below 1e-4.
 * nan and inf are allowed here. */
void oly_digits_alone(char *out, double value, oly_precision of, double large);
#endif
