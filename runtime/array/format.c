/* The text of arrays, as NumPy 2 and JAX print them (format.h).
 *
 * Two walks over the elements that will be printed. The first finds out how wide an element is (all get one
 * width, so that columns stand under each other) and whether floats are written with exponents; the second
 * writes lines and brackets. The rules are those of NumPy 2.4's arrayprint: 8 decimals, 75 columns, 3 elements
 * at each end of a summarised dimension. */
#include "array/format.h"
#include "array/digits.h"
#include "core/error.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_WIDTH = 75, EDGE_ITEMS = 3, SUMMARISE_ABOVE = 1000, DECIMALS = 8 };

/* Largest value that is written without exponent, by NumPy 2.4: in arrays and alone. */
static const double array_limit[2] = {1e8, 1e6}; /* [1]: float32 */
static const double alone_limit[2] = {1e16, 1e6};

typedef struct printer {
    oly_text *text;
    oly_dtype dtype;
    int rank;
    const int64_t *shape;
    const char *data;
    bool summarise;
    /* What the first walk finds. */
    bool scientific;
    int left, right;     /* columns before and behind the point; right is 0 for what has no point */
    int exponent_digits; /* of the longest exponent */
    /* The line being written. */
    const char *separator;
    int indent; /* columns in front of the first bracket */
    int column;
    bool wrapped; /* there is more than one line */
    int spaces;   /* held back: dropped where a line ends */
} printer;

/* -- elements ----------------------------------------------------------------------------------------- */

static bool is_float(oly_dtype dtype)
{
    return dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64;
}

static double float_at(const printer *p, int64_t index)
{
    if (p->dtype == OLY_FLOAT32) {
        float value;
        memcpy(&value, p->data + index * (int64_t)sizeof value, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, p->data + index * (int64_t)sizeof value, sizeof value);
    return value;
}

static int64_t integer_at(oly_dtype dtype, const char *data, int64_t index)
{
    if (dtype == OLY_BOOL)
        return data[index] != 0;
    if (dtype == OLY_INT64) {
        int64_t value;
        memcpy(&value, data + index * (int64_t)sizeof value, sizeof value);
        return value;
    }
    uint32_t bits;
    memcpy(&bits, data + index * (int64_t)sizeof bits, sizeof bits);
    return dtype == OLY_INT32 ? (int64_t)(int32_t)bits : (int64_t)bits;
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
    double low, high;                    /* of the sizes of non-zero finite values; low > high when there are none */
    bool any_special, negative_infinite; /* nan or inf; -inf */
} range;

static void find_range(printer *p, int64_t index, void *found)
{
    range *r = found;
    double value = float_at(p, index);
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

/* One float with exponents needed makes all of them have one. NumPy compares in the array's own type. */
static bool needs_exponents(oly_dtype dtype, const range *r)
{
    if (r->low > r->high)
        return false;
    if (dtype == OLY_FLOAT32)
        return r->high >= array_limit[1] || (float)r->low < 0.0001f || (float)r->high / (float)r->low > 1000.0f;
    return r->high >= array_limit[0] || r->low < 0.0001 || r->high / r->low > 1000.0;
}

static void widen(int *width, long columns)
{
    if (columns > *width)
        *width = (int)columns;
}

static void measure_float(printer *p, int64_t index, void *found)
{
    (void)found;
    char word[OLY_DIGITS_TEXT];
    double value = float_at(p, index);
    if (!isfinite(value))
        return;
    if (p->scientific)
        oly_digits_scientific(word, value, p->dtype == OLY_FLOAT32, 0, DECIMALS, 2);
    else
        oly_digits_positional(word, value, p->dtype == OLY_FLOAT32, DECIMALS);
    const char *point = strchr(word, '.'), *letter = strchr(word, 'e');
    widen(&p->left, point - word);
    widen(&p->right, (letter ? letter - point : (long)strlen(point)) - 1);
    if (letter)
        widen(&p->exponent_digits, (long)strlen(letter) - 2);
}

/* Columns behind the integer part of a float: point, decimals, exponent with letter and sign. */
static int columns_behind(const printer *p)
{
    return 1 + p->right + (p->scientific ? 2 + p->exponent_digits : 0);
}

static void measure_floats(printer *p)
{
    range r = {.low = INFINITY};
    walk(p, 0, 0, find_range, &r);
    p->scientific = needs_exponents(p->dtype, &r);
    walk(p, 0, 0, measure_float, NULL);
    if (r.any_special)
        widen(&p->left, (r.negative_infinite ? 4 : 3) - columns_behind(p));
}

static int write_integer(char *word, size_t size, oly_dtype dtype, int64_t value)
{
    if (dtype == OLY_BOOL)
        return snprintf(word, size, "%s", value ? "True" : "False");
    return snprintf(word, size, "%" PRId64, value);
}

static void measure_integer(printer *p, int64_t index, void *found)
{
    (void)found;
    char word[32];
    widen(&p->left, write_integer(word, sizeof word, p->dtype, integer_at(p->dtype, p->data, index)));
}

static void measure(printer *p)
{
    if (is_float(p->dtype))
        measure_floats(p);
    else
        walk(p, 0, 0, measure_integer, NULL);
    if (p->dtype == OLY_BOOL && p->rank > 0)
        widen(&p->left, 5); /* NumPy gives True the width of False even where there is no False */
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
    char chars[OLY_DIGITS_TEXT];
    int before, length, behind; /* spaces, characters, spaces */
} word;

static word float_word(const printer *p, int64_t index)
{
    word w = {.before = 0};
    double value = float_at(p, index);
    int width = p->left + columns_behind(p);
    if (!isfinite(value)) {
        w.length = snprintf(w.chars, sizeof w.chars, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        w.before = width - w.length;
        return w;
    }
    if (p->scientific) {
        oly_digits_scientific(w.chars, value, p->dtype == OLY_FLOAT32, p->right, p->right, p->exponent_digits);
        w.length = (int)strlen(w.chars);
        w.before = width - w.length;
        return w;
    }
    oly_digits_positional(w.chars, value, p->dtype == OLY_FLOAT32, DECIMALS);
    w.length = (int)strlen(w.chars);
    w.before = p->left - (int)(strchr(w.chars, '.') - w.chars);
    w.behind = width - w.before - w.length;
    return w;
}

static word element_word(const printer *p, int64_t index)
{
    if (is_float(p->dtype))
        return float_word(p, index);
    word w = {.before = 0};
    w.length = write_integer(w.chars, sizeof w.chars, p->dtype, integer_at(p->dtype, p->data, index));
    w.before = p->left - w.length;
    return w;
}

/* Puts a word on the line, or on a new one where it does not fit (unless the line is empty: that would not
 * help). */
static void put_word(printer *p, const word *w, int axis)
{
    int indent = p->indent + axis + 1;
    /* Room for the separator or the bracket that follows; the brackets further out need theirs too. */
    int limit = LINE_WIDTH - (p->separator[0] == ',' ? 1 : 0) - axis - 1;
    if (p->column > indent && p->column + w->before + w->length + w->behind > limit)
        new_lines(p, 1, indent);
    put_spaces(p, w->before);
    put(p, w->chars);
    put_spaces(p, w->behind);
}

/* Between two rows of the dimension `axis`, or two elements of the last one. */
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

/* -- the whole ---------------------------------------------------------------------------------------- */

static oly_status begin(printer *p, oly_dtype dtype, int rank, const int64_t *shape, const void *data, bool *empty)
{
    if (rank < 0 || rank > OLY_MAX_RANK || (unsigned)dtype >= OLY_N_DTYPES)
        return oly_fail(OLY_INVALID,
                        "text of an array: rank %d and element type %d; rank is 0 to %d and the type one of %d", rank,
                        (int)dtype, OLY_MAX_RANK, OLY_N_DTYPES);
    double size = 1; /* as a double: only compared, and shapes may be larger than memory */
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
    } else if (rank == 0 && is_float(dtype)) {
        char number[OLY_DIGITS_TEXT];
        bool single = dtype == OLY_FLOAT32;
        oly_digits_alone(number, float_at(&p, 0), single, alone_limit[single]);
        put(&p, number);
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

oly_status oly_format_repr(oly_text *text, oly_dtype dtype, int rank, const int64_t *shape, const void *data)
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
    /* JAX counts the last line without "Array(" when it is the only one; where the type does not fit it writes
     * as many spaces as "Array(" is long, but no newline. */
    char type[32];
    snprintf(type, sizeof type, "dtype=%s)", oly_dtype_name(dtype));
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
    if (is_float(dtype))
        oly_digits_alone(number, float_at(&p, 0), false, alone_limit[0]);
    else
        write_integer(number, sizeof number, dtype, integer_at(dtype, element, 0));
    put(&p, number);
    return ending(text);
}
