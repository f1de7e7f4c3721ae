/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of arrays, as NumPy 2 and JAX print them (format.h).
 *
 * Two walks over the elements that are printed. The first finds the width of an element (one for all, so that columns
 * are aligned; the two parts of complex numbers have their own) and whether floats need exponents; the second writes
 * lines and brackets. The rules are those of NumPy 2.4's arrayprint: 8 decimals, 75 columns, 3 elements at each end of
 * a summarised dimension. */
#include "array/format.h"
#include "array/digits.h"
#include "core/dtype_list.h"
#include "core/element.h"
#include "core/error.h"
#include "graph/type.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_WIDTH = 75, EDGE_ITEMS = 3, SUMMARISE_ABOVE = 1000, DECIMALS = 8 };

/* Smallest value written with an exponent, by NumPy 2.4: in arrays and alone. */
static const double array_limit[] = {1e8, 1e6, 1e3}; /* by oly_precision */
static const double alone_limit[] = {1e16, 1e6, 1e3};

/* Columns of the floats of an array, or of one part of its complex numbers, as found by the first walk. */
typedef struct columns {
    bool scientific;
    bool plus;           /* positive numbers get a sign: imaginary parts */
    int left, right;     /* columns before and after the point; right is 0 where there is no point */
    int exponent_digits; /* of the longest exponent */
} columns;

typedef struct printer {
    oly_text *text;
    oly_dtype dtype;
    int rank;
    const int64_t *shape;
    const char *data;
    bool summarise;
    columns of[2]; /* [1]: of imaginary parts */
    int part;      /* the part that the first walk reads */
    /* The line being written. */
    const char *separator;
    int indent; /* columns before the first bracket */
    int column;
    bool wrapped; /* there is more than one line */
    int spaces;   /* pending: dropped where a line ends */
} printer;

/* -- elements ----------------------------------------------------------------------------------------- */

/* Types formatted with a point, and their parts. The 8-bit floating types are not among them: NumPy does not know them
 * and writes each element with its own text. */
static bool is_float(oly_dtype dtype)
{
    return dtype == OLY_FLOAT16 || dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64;
}
static bool is_own_text(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_FLOAT && !is_float(dtype);
}
static bool is_complex(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_COMPLEX;
}
static oly_precision precision_of(oly_dtype dtype)
{
    oly_dtype part = oly_dtype_real(dtype);
    return part == OLY_FLOAT16 ? OLY_PRECISION_HALF : part == OLY_FLOAT32 ? OLY_PRECISION_SINGLE : OLY_PRECISION_DOUBLE;
}

/* A float, or one part of a complex number. */
static double float_at(const printer *p, int64_t index, int part)
{
    oly_dtype dtype = oly_dtype_real(p->dtype);
    int64_t bytes = (int64_t)oly_dtype_size(dtype);
    return oly_real_at(dtype, p->data + index * (int64_t)oly_dtype_size(p->dtype) + part * bytes);
}

/* A uint64 as its bits. */
static int64_t integer_at(oly_dtype dtype, const void *data, int64_t index)
{
#define INTEGER(a, number, name, s, T, ...)                                                                            \
    case OLY_##number: return (int64_t)((const T *)data)[index];
    switch (dtype) {
        OLY_INTEGER_TYPES(INTEGER, )
    default: return ((const char *)data)[index] != 0; /* bool */
    }
}

/* -- walking the elements that are printed ------------------------------------------------------------ */

typedef void visitor(printer *p, int64_t index, void *found);

static bool has_gap(const printer *p, int axis)
{
    return p->summarise && p->shape[axis] > 2 * EDGE_ITEMS;
}

static void walk(printer *p, int axis, int64_t index, visitor *visit, void *found)
{
    if (axis == p->rank) {
        visit(p, index, found);
        return;
    }
    for (int64_t k = 0; k < p->shape[axis]; k++) {
        if (has_gap(p, axis) && k == EDGE_ITEMS)
            k = p->shape[axis] - EDGE_ITEMS;
        walk(p, axis + 1, index * p->shape[axis] + k, visit, found);
    }
}

/* -- first walk: widths ------------------------------------------------------------------------------- */

typedef struct range {
    double low, high;                    /* magnitudes of non-zero finite values; low > high if there are none */
    bool any_special, negative_infinite; /* nan or inf; -inf */
} range;

static void find_range(printer *p, int64_t index, void *found)
{
    range *r = found;
    double value = float_at(p, index, p->part);
    if (!isfinite(value)) {
        r->any_special = true;
        r->negative_infinite |= value < 0;
        return;
    }
    double size = fabs(value);
    if (size > 0 && size < r->low)
        r->low = size;
    if (size > r->high)
        r->high = size;
}

static double rounded_to_half(double value)
{
    return oly_real_rounded(OLY_FLOAT16, value);
}

/* One float that needs an exponent gives all of them one. NumPy compares in the array's own type. */
static bool needs_exponents(oly_precision of, const range *r)
{
    if (r->low > r->high)
        return false;
    if (r->high >= array_limit[of])
        return true;
    if (of == OLY_PRECISION_HALF)
        return r->low < rounded_to_half(0.0001) || rounded_to_half(r->high / r->low) > 1000;
    if (of == OLY_PRECISION_SINGLE)
        return (float)r->low < 0.0001f || (float)r->high / (float)r->low > 1000.0f;
    return r->low < 0.0001 || r->high / r->low > 1000.0;
}

static void widen(int *width, long n)
{
    if (n > *width)
        *width = (int)n;
}

static bool has_sign(const columns *c, double value)
{
    return c->plus && !signbit(value);
}

static void measure_float(printer *p, int64_t index, void *found)
{
    (void)found;
    char word[OLY_DIGITS_TEXT];
    columns *c = &p->of[p->part];
    double value = float_at(p, index, p->part);
    if (!isfinite(value))
        return;
    if (c->scientific)
        oly_digits_scientific(word, value, precision_of(p->dtype), 0, DECIMALS, 2);
    else
        oly_digits_positional(word, value, precision_of(p->dtype), DECIMALS);
    const char *point = strchr(word, '.'), *letter = strchr(word, 'e');
    widen(&c->left, point - word + has_sign(c, value));
    widen(&c->right, (letter ? letter - point : (long)strlen(point)) - 1);
    if (letter)
        widen(&c->exponent_digits, (long)strlen(letter) - 2);
}

/* Columns after the integer part of a float: point, decimals, exponent with letter and sign. */
static int columns_behind(const columns *c)
{
    return 1 + c->right + (c->scientific ? 2 + c->exponent_digits : 0);
}

static void measure_floats(printer *p, int part)
{
    range r = {.low = INFINITY};
    columns *c = &p->of[part];
    p->part = part;
    c->plus = part == 1;
    walk(p, 0, 0, find_range, &r);
    c->scientific = needs_exponents(precision_of(p->dtype), &r);
    walk(p, 0, 0, measure_float, NULL);
    if (r.any_special)
        widen(&c->left, (r.negative_infinite || c->plus ? 4 : 3) - columns_behind(c));
}

static int write_integer(char *word, size_t size, oly_dtype dtype, int64_t value)
{
    if (dtype == OLY_BOOL)
        return snprintf(word, size, "%s", value ? "True" : "False");
    if (dtype == OLY_UINT64)
        return snprintf(word, size, "%" PRIu64, (uint64_t)value);
    return snprintf(word, size, "%" PRId64, value);
}

static void measure_integer(printer *p, int64_t index, void *found)
{
    (void)found;
    char word[32];
    widen(&p->of[0].left, write_integer(word, sizeof word, p->dtype, integer_at(p->dtype, p->data, index)));
}

static void measure(printer *p)
{
    if (is_float(p->dtype) || is_complex(p->dtype))
        measure_floats(p, 0);
    else if (!is_own_text(p->dtype))
        walk(p, 0, 0, measure_integer, NULL);
    if (is_complex(p->dtype))
        measure_floats(p, 1);
    if (p->dtype == OLY_BOOL && p->rank > 0)
        widen(&p->of[0].left, 5); /* as NumPy: the width of False even where all are True */
}

/* -- second walk: lines and brackets ------------------------------------------------------------------ */

static void put_spaces(printer *p, int n)
{
    p->spaces += n;
    p->column += n;
}

static void flush_spaces(printer *p)
{
    oly_text_repeat(p->text, " ", p->spaces);
    p->spaces = 0;
}

static void put(printer *p, const char *word)
{
    flush_spaces(p);
    oly_text_add_chars(p->text, word, strlen(word));
    p->column += (int)strlen(word);
}

static void new_lines(printer *p, int n, int indent)
{
    p->spaces = 0;
    p->column = 0;
    p->wrapped = true;
    oly_text_repeat(p->text, "\n", n);
    put_spaces(p, indent);
}

typedef struct word {
    char chars[2 * OLY_DIGITS_TEXT];
    int before, length, behind; /* spaces, characters, spaces */
} word;

static word float_word(const printer *p, int64_t index, int part)
{
    word w = {.before = 0};
    const columns *c = &p->of[part];
    double value = float_at(p, index, part);
    int width = c->left + columns_behind(c), sign = has_sign(c, value) || (c->plus && isnan(value));
    char *digits = w.chars + sign;
    if (sign)
        w.chars[0] = '+';
    if (!isfinite(value))
        snprintf(digits, OLY_DIGITS_TEXT, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    else if (c->scientific)
        oly_digits_scientific(digits, value, precision_of(p->dtype), c->right, c->right, c->exponent_digits);
    else
        oly_digits_positional(digits, value, precision_of(p->dtype), DECIMALS);
    w.length = (int)strlen(w.chars);
    w.before = isfinite(value) && !c->scientific ? c->left - (int)(strchr(w.chars, '.') - w.chars) : width - w.length;
    w.behind = width - w.before - w.length;
    return w;
}

/* Both parts; the spaces between them stay. */
static word complex_word(const printer *p, int64_t index)
{
    word w = float_word(p, index, 0), imaginary = float_word(p, index, 1);
    w.length += snprintf(w.chars + w.length, sizeof w.chars - (size_t)w.length, "%*s%sj", w.behind + imaginary.before,
                         "", imaginary.chars);
    w.behind = imaginary.behind;
    return w;
}

/* As C++ writes it: six significant digits. */
static int write_own_text(char *text, size_t size, double value)
{
    locale_t before = oly_numbers_with_point();
    int length = snprintf(text, size, "%g", value);
    oly_numbers_as_before(before);
    return length;
}

static word element_word(const printer *p, int64_t index)
{
    word w = {.before = 0};
    if (is_float(p->dtype))
        return float_word(p, index, 0);
    if (is_complex(p->dtype))
        return complex_word(p, index);
    if (is_own_text(p->dtype)) {
        w.length = write_own_text(w.chars, sizeof w.chars, float_at(p, index, 0));
        return w;
    }
    w.length = write_integer(w.chars, sizeof w.chars, p->dtype, integer_at(p->dtype, p->data, index));
    w.before = p->of[0].left - w.length;
    return w;
}

/* Appends a word to the line, or to a new one where it does not fit (unless the line is empty). */
static void put_word(printer *p, const word *w, int axis)
{
    int indent = p->indent + axis + 1;
    /* Leave room for the separator or closing bracket that follows, and for the outer brackets. */
    int limit = LINE_WIDTH - (p->separator[0] == ',' ? 1 : 0) - axis - 1;
    if (p->column > indent && p->column + w->before + w->length + w->behind > limit)
        new_lines(p, 1, indent);
    put_spaces(p, w->before);
    put(p, w->chars);
    put_spaces(p, w->behind);
}

/* Between two rows of dimension `axis`, or two elements of the last one. */
static void put_separator(printer *p, int axis)
{
    if (axis == p->rank - 1) {
        if (p->separator[0] == ',')
            put(p, ",");
        put_spaces(p, 1);
        return;
    }
    if (p->separator[0] == ',')
        put(p, ",");
    new_lines(p, p->rank - 1 - axis, p->indent + axis + 1);
}

static void put_gap(printer *p, int axis)
{
    word dots = {.chars = "...", .length = 3};
    if (axis == p->rank - 1)
        put_word(p, &dots, axis);
    else
        put(p, dots.chars);
    put_separator(p, axis);
}

static void put_rows(printer *p, int axis, int64_t index)
{
    int64_t n = p->shape[axis];
    put(p, "[");
    for (int64_t k = 0; k < n; k++) {
        if (has_gap(p, axis) && k == EDGE_ITEMS) {
            put_gap(p, axis);
            k = n - EDGE_ITEMS;
        }
        if (axis == p->rank - 1) {
            word w = element_word(p, index * n + k);
            put_word(p, &w, axis);
        } else {
            put_rows(p, axis + 1, index * n + k);
        }
        if (k < n - 1)
            put_separator(p, axis);
    }
    put(p, "]");
}

static void put_array(printer *p)
{
    if (p->rank > 0) {
        put_rows(p, 0, 0);
        return;
    }
    word w = element_word(p, 0);
    put_spaces(p, w.before);
    put(p, w.chars);
    put_spaces(p, w.behind);
    flush_spaces(p);
}

/* -- one number ---------------------------------------------------------------------------------------- */

/* A part of a complex number, without the zero after a whole number's point. */
static void put_part(printer *p, oly_precision of, int part, bool plus)
{
    char number[OLY_DIGITS_TEXT];
    double value = float_at(p, 0, part);
    oly_digits_alone(number, value, of, alone_limit[of]);
    size_t length = strlen(number);
    if (length > 2 && strcmp(number + length - 2, ".0") == 0)
        number[length - 2] = 0;
    if (plus && (isnan(value) || !signbit(value)))
        put(p, "+");
    put(p, number);
}

/* As Python writes a number: "0.5", "(1+2j)", "2j". */
static void put_alone(printer *p, oly_precision of)
{
    if (is_complex(p->dtype)) {
        double real = float_at(p, 0, 0);
        bool imaginary = real == 0 && !signbit(real);
        if (!imaginary) {
            put(p, "(");
            put_part(p, of, 0, false);
        }
        put_part(p, of, 1, !imaginary);
        put(p, imaginary ? "j" : "j)");
        return;
    }
    char number[OLY_DIGITS_TEXT];
    oly_digits_alone(number, float_at(p, 0, 0), of, alone_limit[of]);
    put(p, number);
}

/* -- the whole text ------------------------------------------------------------------------------------ */

static oly_status begin(printer *p, oly_dtype dtype, int rank, const int64_t *shape, const void *data, bool *empty)
{
    if (rank < 0 || rank > OLY_MAX_RANK || (unsigned)dtype >= OLY_N_DTYPES)
        return oly_fail(OLY_INVALID,
                        "text of an array: rank %d and element type %d; rank is 0 to %d and the type one of %d", rank,
                        (int)dtype, OLY_MAX_RANK, OLY_N_DTYPES);
    double size = 1; /* as a double: only compared, and shapes may exceed memory */
    for (int axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0)
            return oly_fail(OLY_INVALID, "text of an array: dimension %d has the extent %" PRId64 ", which is negative",
                            axis, shape[axis]);
        size *= (double)shape[axis];
    }
    *p = (printer){.dtype = dtype, .rank = rank, .shape = shape, .data = data};
    p->summarise = size > SUMMARISE_ABOVE;
    *empty = size == 0;
    return OLY_OK;
}

static oly_status ending(const oly_text *text)
{
    return text->failed ? oly_out_of_memory(text->length, "the text of an array") : OLY_OK;
}

oly_status oly_format_str(oly_text *text, oly_dtype dtype, int rank, const int64_t *shape, const void *data)
{
    printer p;
    bool empty;
    OLY_TRY(begin(&p, dtype, rank, shape, data, &empty));
    p.text = text;
    p.separator = " ";
    if (empty) {
        put(&p, "[]");
    } else if (rank == 0 && (is_float(dtype) || is_complex(dtype))) {
        put_alone(&p, precision_of(dtype));
    } else {
        measure(&p);
        put_array(&p);
    }
    return ending(text);
}

static void put_shape(printer *p)
{
    put(p, "[], shape=(");
    for (int axis = 0; axis < p->rank; axis++) {
        char extent[32];
        snprintf(extent, sizeof extent, "%s%" PRId64, axis ? ", " : "", p->shape[axis]);
        put(p, extent);
    }
    put(p, p->rank == 1 ? ",)" : ")");
}

oly_status oly_format_repr(oly_text *text, oly_dtype dtype, bool weak, int rank, const int64_t *shape, const void *data)
{
    printer p;
    bool empty;
    OLY_TRY(begin(&p, dtype, rank, shape, data, &empty));
    p.text = text;
    p.separator = ", ";
    put(&p, "Array(");
    p.indent = p.column;
    if (empty) {
        put_shape(&p);
    } else {
        measure(&p);
        put_array(&p);
    }
    /* JAX counts the last line without "Array(" when it is the only one; where the type does not fit, it writes as many
     * spaces as "Array(" is long, but no newline. */
    char type[64];
    snprintf(type, sizeof type, "dtype=%s%s)", oly_dtype_name(dtype), weak ? ", weak_type=True" : "");
    int last_line = p.column - (p.wrapped ? 0 : p.indent) + 2;
    put(&p, ",");
    put_spaces(&p, last_line + (int)strlen(type) + 1 > LINE_WIDTH ? p.indent : 1);
    put(&p, type);
    return ending(text);
}

oly_status oly_format_scalar(oly_text *text, oly_dtype dtype, const void *element)
{
    printer p;
    bool empty;
    OLY_TRY(begin(&p, dtype, 0, NULL, element, &empty));
    p.text = text;
    char number[OLY_DIGITS_TEXT];
    if (oly_dtype_kind(dtype) >= OLY_KIND_FLOAT) {
        put_alone(&p, OLY_PRECISION_DOUBLE);
        return ending(text);
    }
    write_integer(number, sizeof number, dtype, integer_at(dtype, element, 0));
    put(&p, number);
    return ending(text);
}
