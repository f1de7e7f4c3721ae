/* SPDX-License-Identifier: BSD-3-Clause */
/* Decimal digits of floating-point values (digits.h). The shortest text is found by asking printf for more and more
 * digits until strtof or strtod reads the value back; glibc rounds exactly, so texts with fewer digits are exact
 * too. */
#include "digits.h"
#include "core/element.h"
#include "core/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Significant digits that suffice for any value. */
enum { DOUBLE_DIGITS = 17 };
static const int most_digits[] = {
    [OLY_PRECISION_DOUBLE] = DOUBLE_DIGITS, [OLY_PRECISION_SINGLE] = 9, [OLY_PRECISION_HALF] = 5};

typedef struct decimal {
    char digits[DOUBLE_DIGITS + 1]; /* significant digits without sign and point */
    int n_digits;
    int exponent; /* of the first digit: 1 <= d.ddd < 10 times 10^exponent */
    bool negative;
} decimal;

static bool reads_back(const char *text, double value, oly_precision of)
{
    if (of == OLY_PRECISION_SINGLE)
        return strtof(text, NULL) == (float)value;
    double read = strtod(text, NULL);
    return (of == OLY_PRECISION_HALF ? oly_real_rounded(OLY_FLOAT16, read) : read) == value;
}

/* Parses printf's "-d.ddde+XX". */
static decimal split(const char *text)
{
    decimal d = {.negative = text[0] == '-'};
    const char *at = text + d.negative;
    for (; *at && *at != 'e'; at++)
        if (*at != '.')
            d.digits[d.n_digits++] = *at;
    d.exponent = (int)strtol(at + 1, NULL, 10);
    return d;
}

/* Increments the last digit of "-d.ddde+XX"; false where that carries beyond the first digit. */
static bool step_up(char *text)
{
    for (char *at = strchr(text, 'e') - 1; at >= text && *at != '-'; at--) {
        if (*at == '.')
            continue;
        if (*at < '9') {
            ++*at;
            return true;
        }
        *at = '0';
    }
    return false;
}

/* At a power of two the next number above is twice as far away as the one below, so a text above may read back where
 * the nearest one, below, does not. */
static bool is_power_of_two(double value)
{
    int exponent;
    return fabs(frexp(value, &exponent)) == 0.5;
}

static decimal shortest(double value, oly_precision of)
{
    char text[64];
    int last = most_digits[of] - 1;
    for (int decimals = 0;; decimals++) {
        snprintf(text, sizeof text, "%.*e", decimals, value);
        if (decimals == last || reads_back(text, value, of))
            return split(text);
        if (is_power_of_two(value) && step_up(text) && reads_back(text, value, of))
            return split(text);
    }
}

/* Of the shortest digits, or of the exact value rounded there. */
static decimal with_decimals(double value, oly_precision of, int least, int most)
{
    decimal d = shortest(value, of);
    int decimals = d.n_digits - 1;
    if (decimals >= least && decimals <= most)
        return d;
    char text[64];
    snprintf(text, sizeof text, "%.*e", decimals < least ? least : most, value);
    d = split(text);
    while (d.n_digits - 1 > least && d.digits[d.n_digits - 1] == '0')
        d.n_digits--;
    return d;
}

/* Removes trailing zeros of the decimals; the point stays. */
static void trim_zeros(char *text)
{
    char *end = text + strlen(text);
    while (end[-1] == '0')
        *--end = 0;
}

/* Digits with the point after the first, and an exponent. */
static void place_exponent(char *out, const decimal *d, bool keep_point, int exponent_digits)
{
    const char *point = keep_point || d->n_digits > 1 ? "." : "";
    snprintf(out, OLY_DIGITS_TEXT, "%s%c%s%.*se%c%0*d", d->negative ? "-" : "", d->digits[0], point, d->n_digits - 1,
             d->digits + 1, d->exponent < 0 ? '-' : '+', exponent_digits, abs(d->exponent));
}

void oly_digits_scientific(char *out, double value, oly_precision of, int least, int most, int exponent_digits)
{
    locale_t before = oly_numbers_with_point();
    decimal d = with_decimals(value, of, least, most);
    oly_numbers_as_before(before);
    place_exponent(out, &d, true, exponent_digits);
}

/* Digits with the point where the exponent puts it: 12345 and exponent 1 give 12.345. */
static void place_point(char *out, const decimal *d)
{
    int n = 0;
    if (d->negative)
        out[n++] = '-';
    for (int position = d->exponent < 0 ? 0 : d->exponent; position >= 0 || d->exponent - position < d->n_digits;
         position--) {
        int k = d->exponent - position;
        out[n++] = k >= 0 && k < d->n_digits ? d->digits[k] : '0';
        if (position == 0)
            out[n++] = '.';
    }
    out[n] = 0;
}

void oly_digits_positional(char *out, double value, oly_precision of, int most)
{
    locale_t before = oly_numbers_with_point();
    decimal d = shortest(value, of);
    if (d.n_digits - 1 - d.exponent <= most)
        place_point(out, &d);
    else
        snprintf(out, OLY_DIGITS_TEXT, "%#.*f", most, value);
    oly_numbers_as_before(before);
    trim_zeros(out);
}

void oly_digits_alone(char *out, double value, oly_precision of, double large)
{
    if (isnan(value) || isinf(value)) {
        snprintf(out, OLY_DIGITS_TEXT, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    double size = fabs(value);
    if (size == 0 || (size >= 1e-4 && size < large)) {
        oly_digits_positional(out, value, of, DOUBLE_DIGITS + 4);
        if (out[strlen(out) - 1] == '.')
            strcat(out, "0");
        return;
    }
    locale_t before = oly_numbers_with_point();
    decimal d = shortest(value, of);
    oly_numbers_as_before(before);
    place_exponent(out, &d, false, 2);
}
