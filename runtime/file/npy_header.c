/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing headers of .npy files. See npy_header.h. The dictionary is a Python literal; what is read of Python is what
 * NumPy writes: texts without escapes, True and False, tuples of integers. */
#include "file/npy_header.h"
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = sizeof magic - 1, LONGEST = 1 << 20, ALIGN = 64 };

static bool little_endian(void)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* -- element types ------------------------------------------------------------------------------------------------------- */

typedef struct type_name {
    oly_dtype dtype;
    char kind; /* of NumPy: bool, int, unsigned, float, complex, void */
    int bytes;
    bool named; /* its name is written behind the dictionary */
} type_name;

static const type_name type_names[] = {
    {OLY_BOOL, 'b', 1, false},         {OLY_INT8, 'i', 1, false},        {OLY_INT16, 'i', 2, false},
    {OLY_INT32, 'i', 4, false},        {OLY_INT64, 'i', 8, false},       {OLY_UINT8, 'u', 1, false},
    {OLY_UINT16, 'u', 2, false},       {OLY_UINT32, 'u', 4, false},      {OLY_UINT64, 'u', 8, false},
    {OLY_FLOAT16, 'f', 2, false},      {OLY_FLOAT32, 'f', 4, false},     {OLY_FLOAT64, 'f', 8, false},
    {OLY_COMPLEX64, 'c', 8, false},    {OLY_COMPLEX128, 'c', 16, false}, {OLY_BFLOAT16, 'V', 2, true},
    {OLY_FLOAT8_E4M3FN, 'V', 1, true}, {OLY_FLOAT8_E5M2, 'V', 1, true},
};
enum { N_TYPES = sizeof type_names / sizeof *type_names };
_Static_assert((int)N_TYPES == (int)OLY_N_DTYPES, "a new element type needs its name in .npy files");

static const type_name *name_of(oly_dtype dtype)
{
    int k = 0;
    while (type_names[k].dtype != dtype)
        k++;
    return &type_names[k];
}

/* -- reading the dictionary ---------------------------------------------------------------------------------------------- */

typedef struct parser {
    const char *at, *end;
    const char *begin; /* of the file */
    const char *path;
    char descr[24]; /* "" : not found yet */
    int rank;       /* -1: not found yet */
    int fortran;    /* -1 */
    int64_t *shape;
} parser;

static oly_status malformed(const parser *p, const char *what)
{
    return oly_fail(OLY_IO, "cannot read %s: its header is malformed at byte %td: %s", p->path, p->at - p->begin, what);
}

static void skip_spaces(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_spaces(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static char next(parser *p)
{
    skip_spaces(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool take_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_spaces(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0 ||
        (p->at + n < p->end && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')))
        return false;
    p->at += n;
    return true;
}

/* 'text' or "text". Longer ones than the buffer are none of ours. */
static oly_status take_text(parser *p, char *text, size_t size)
{
    char quote = next(p);
    if (quote != '\'' && quote != '"')
        return malformed(p, "a text in quotes is expected");
    const char *from = ++p->at;
    while (p->at < p->end && *p->at != quote && *p->at != '\\' && *p->at != '\n' && *p->at != '\0')
        p->at++;
    size_t n = (size_t)(p->at - from);
    if (p->at == p->end || *p->at != quote)
        return malformed(p, "a text does not end, or has an escape");
    if (n >= size)
        return malformed(p, "the text is longer than any that NumPy writes here");
    memcpy(text, from, n);
    text[n] = '\0';
    p->at++;
    return OLY_OK;
}

static oly_status take_extent(parser *p, int64_t *extent)
{
    char c = next(p);
    if (c == '-')
        return malformed(p, "an extent is negative");
    if (!isdigit((unsigned char)c))
        return malformed(p, "an extent is expected, a number of digits");
    int64_t value = 0;
    for (; p->at < p->end && isdigit((unsigned char)*p->at); p->at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *p->at - '0', &value))
            return oly_fail(OLY_OVERFLOW, "cannot read %s: its header has an extent of 2^63 or more", p->path);
    if (p->at < p->end && *p->at == 'L') /* written by Python 2 */
        p->at++;
    *extent = value;
    return OLY_OK;
}

static oly_status take_shape(parser *p)
{
    if (!take(p, '('))
        return malformed(p, "the shape is expected, a tuple such as (3, 4)");
    int rank = 0;
    bool comma = true;
    while (next(p) != ')') {
        int64_t extent;
        if (!comma)
            return malformed(p, "a comma is expected between extents");
        OLY_TRY(take_extent(p, &extent));
        if (rank == OLY_MAX_RANK)
            return oly_fail(OLY_SHAPE, "cannot read %s: it has more than %d dimensions; reshape it in NumPy first",
                            p->path, OLY_MAX_RANK);
        p->shape[rank++] = extent;
        comma = take(p, ',');
    }
    p->at++;
    if (rank == 1 && !comma)
        return malformed(p, "a tuple of one extent has a comma: (3,)");
    p->rank = rank;
    return OLY_OK;
}

static oly_status take_descr(parser *p)
{
    char c = next(p);
    if (c == '[' || c == '(')
        return oly_fail(OLY_DTYPE,
                        "cannot read %s: its elements are structures of several fields; save each field as an array of "
                        "its own: numpy.save(path, x['field'])",
                        p->path);
    OLY_TRY(take_text(p, p->descr, sizeof p->descr));
    return p->descr[0] ? OLY_OK : malformed(p, "the element type is empty");
}

static oly_status take_value(parser *p, const char *key)
{
    if (strcmp(key, "descr") == 0)
        return p->descr[0] ? malformed(p, "'descr' is there twice") : take_descr(p);
    if (strcmp(key, "shape") == 0)
        return p->rank >= 0 ? malformed(p, "'shape' is there twice") : take_shape(p);
    if (strcmp(key, "fortran_order") != 0)
        return malformed(p, "the keys are 'descr', 'fortran_order' and 'shape', no others");
    if (p->fortran >= 0)
        return malformed(p, "'fortran_order' is there twice");
    p->fortran = take_word(p, "True") ? 1 : take_word(p, "False") ? 0 : -1;
    return p->fortran >= 0 ? OLY_OK : malformed(p, "True or False is expected");
}

static oly_status take_dictionary(parser *p)
{
    bool comma = true;
    if (!take(p, '{'))
        return malformed(p, "a dictionary is expected: {'descr': ...");
    while (!take(p, '}')) {
        char key[16];
        if (!comma)
            return malformed(p, "a comma or } is expected");
        OLY_TRY(take_text(p, key, sizeof key));
        if (!take(p, ':'))
            return malformed(p, "a colon is expected after the key");
        OLY_TRY(take_value(p, key));
        comma = take(p, ',');
    }
    if (!p->descr[0] || p->rank < 0 || p->fortran < 0)
        return malformed(p, "'descr', 'fortran_order' and 'shape' must all be there");
    return OLY_OK;
}

/* Spaces, and maybe a comment, whose first word is copied. */
static oly_status take_rest(parser *p, char *word, size_t size)
{
    size_t n = 0;
    if (next(p) == '#') {
        p->at++;
        skip_spaces(p);
        for (; p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_'); p->at++)
            if (n + 1 < size)
                word[n++] = *p->at;
        while (p->at < p->end && *p->at != '\n')
            p->at++;
    }
    word[n] = '\0';
    skip_spaces(p);
    return p->at == p->end ? OLY_OK : malformed(p, "nothing but spaces is expected after the dictionary");
}

/* -- element types of files ---------------------------------------------------------------------------------------------- */

static const char *kind_in_words(char kind)
{
    switch (kind) {
    case 'O': return "Python objects (pickled), which may run any program when they are read";
    case 'S':
    case 'a':
    case 'U':
    case 'T': return "texts";
    case 'M':
    case 'm': return "dates or times; save x.view('int64')";
    case 'f':
    case 'c':
        return "floating numbers of a size that other machines do not have; save x.astype('float64') or 'complex128'";
    default:
        return "of a type that Olympus does not have; save x.astype(...) of one of these: bool, int8 to int64, uint8 "
               "to "
               "uint64, float16 to float64, complex64, complex128";
    }
}

/* What follows the byte order: is it a name such as 'float64', which NumPy understands but never writes? */
static bool is_other_form(const char *type)
{
    return !type[0] || (!strchr("OSaUTMm", type[0]) && !isdigit((unsigned char)type[1]));
}

static oly_status refuse_type(const parser *p)
{
    const char *type = p->descr + strspn(p->descr, "<>|=");
    if (is_other_form(type))
        return oly_fail(
            OLY_DTYPE,
            "cannot read %s: its element type is given as '%s'; read is what NumPy writes: the byte order, a "
            "letter and the bytes of an element, as '<f8', '>i4', '|u1' or '<c16'",
            p->path, p->descr);
    return oly_fail(OLY_DTYPE, "cannot read %s: its elements ('%s') are %s", p->path, p->descr, kind_in_words(*type));
}

static oly_status no_byte_order(const parser *p)
{
    return oly_fail(OLY_DTYPE, "cannot read %s: its elements ('%s') have no byte order", p->path, p->descr);
}

/* Bytes without a type of NumPy: the word after the dictionary names it; two bytes are bfloat16 by convention. */
static oly_status type_of_bytes(const parser *p, char kind, int64_t bytes, const char *word, oly_dtype *dtype)
{
    for (int k = 0; k < N_TYPES; k++)
        if (type_names[k].named && type_names[k].bytes == bytes &&
            strcmp(word, oly_dtype_name(type_names[k].dtype)) == 0) {
            *dtype = type_names[k].dtype;
            return OLY_OK;
        }
    if (word[0])
        return oly_fail(OLY_DTYPE, "cannot read %s: its elements ('%s', \"%s\") have no type that Olympus knows",
                        p->path, p->descr, word);
    if (kind == 'f' || bytes == 2) {
        *dtype = kind == 'f' ? OLY_FLOAT8_E5M2 : OLY_BFLOAT16;
        return OLY_OK;
    }
    if (bytes == 1)
        return oly_fail(
            OLY_DTYPE,
            "cannot read %s: its elements ('%s') are bytes, of which the file does not say what numbers they "
            "are; if they are 8-bit floats, oly_load_raw reads them with a type that you give",
            p->path, p->descr);
    return refuse_type(p);
}

/* '<f4': byte order, kind, bytes. */
static oly_status read_type(const parser *p, const char *word, oly_npy_header *h)
{
    const char *at = p->descr;
    char order = *at == '<' || *at == '>' || *at == '|' || *at == '=' ? *at++ : '=', kind = *at ? *at++ : '\0';
    if (kind == '?' && !*at) {
        kind = 'b';
        at = "1";
    }
    int64_t bytes = 0;
    const char *digits = at;
    for (; isdigit((unsigned char)*at) && at - digits < 4; at++)
        bytes = bytes * 10 + (*at - '0');
    if (*at || at == digits || *digits == '0')
        return refuse_type(p);
    bool little = order == '=' || order == '|' ? little_endian() : order == '<';
    h->swapped = little != little_endian() && bytes > 1;
    if (kind == 'V' || (kind == 'f' && bytes == 1)) /* ml_dtypes writes '<f1' for float8_e5m2 */
        return type_of_bytes(p, kind, bytes, word, &h->dtype);
    for (int k = 0; k < N_TYPES; k++)
        if (type_names[k].kind == kind && type_names[k].bytes == bytes) {
            h->dtype = type_names[k].dtype;
            return order == '|' && bytes > 1 ? no_byte_order(p) : OLY_OK;
        }
    return refuse_type(p);
}

/* -- the file ------------------------------------------------------------------------------------------------------------ */

static uint64_t little_endian_number(const unsigned char *bytes, int n)
{
    uint64_t value = 0;
    for (int k = n - 1; k >= 0; k--)
        value = value << 8 | bytes[k];
    return value;
}

oly_status oly_npy_header_length(const void *bytes, size_t n, const char *path, size_t *length)
{
    const unsigned char *b = bytes;
    if (memcmp(b, magic, n < MAGIC ? n : MAGIC) != 0 || n == 0)
        return oly_fail(OLY_IO, "cannot read %s: it is not a .npy file%s", path,
                        n >= 4 && memcmp(b, "PK\3\4", 4) == 0 ? "; it is a zip file: oly_load_npz reads .npz"
                        : n >= 2 && b[0] == 0x80              ? "; it is a pickle, which may run any program"
                        : n == 0                              ? "; it is empty"
                                                              : "");
    if (n < OLY_NPY_PREFIX)
        return oly_fail(OLY_IO, "cannot read %s: it ends within the header, after %zu bytes", path, n);
    if (b[MAGIC] < 1 || b[MAGIC] > 3 || b[MAGIC + 1] != 0)
        return oly_fail(OLY_IO, "cannot read %s: version %d.%d of the format; 1.0, 2.0 and 3.0 are known", path,
                        b[MAGIC], b[MAGIC + 1]);
    int width = b[MAGIC] == 1 ? 2 : 4;
    uint64_t text = little_endian_number(b + MAGIC + 2, width);
    if (text > LONGEST)
        return oly_fail(OLY_IO,
                        "cannot read %s: its header claims %" PRIu64 " bytes; that of an array of numbers has a few "
                        "hundred",
                        path, text);
    *length = (size_t)(MAGIC + 2 + width) + text;
    return OLY_OK;
}

static oly_status check_size(const oly_npy_header *h, const char *path)
{
    int64_t bytes = (int64_t)oly_dtype_size(h->dtype), end;
    for (int d = 0; d < h->rank; d++)
        if (h->shape[d] > 0 && __builtin_mul_overflow(bytes, h->shape[d], &bytes))
            return oly_fail(OLY_OVERFLOW, "cannot read %s: its shape has 2^63 bytes or more", path);
    if (__builtin_add_overflow(bytes, h->data, &end))
        return oly_fail(OLY_OVERFLOW, "cannot read %s: its shape has 2^63 bytes or more", path);
    return OLY_OK;
}

oly_status oly_npy_header_read(const void *bytes, size_t n, const char *path, oly_npy_header *header)
{
    size_t length;
    char word[24];
    memset(header, 0, sizeof *header);
    OLY_TRY(oly_npy_header_length(bytes, n, path, &length));
    if (n < length)
        return oly_fail(OLY_IO, "cannot read %s: it ends within the header, after %zu of its %zu bytes", path, n,
                        length);
    const char *begin = bytes;
    parser p = {.begin = begin,
                .at = begin + MAGIC + 2 + (begin[MAGIC] == 1 ? 2 : 4),
                .end = begin + length,
                .path = path,
                .rank = -1,
                .fortran = -1,
                .shape = header->shape};
    OLY_TRY(take_dictionary(&p));
    OLY_TRY(take_rest(&p, word, sizeof word));
    header->rank = p.rank;
    header->fortran = p.fortran == 1;
    header->data = (int64_t)length;
    OLY_TRY(read_type(&p, word, header));
    return check_size(header, path);
}

static void write_prefix(char *bytes, int version, size_t text)
{
    memcpy(bytes, magic, MAGIC);
    bytes[MAGIC] = (char)version;
    bytes[MAGIC + 1] = 0;
    for (int k = 0; k < (version == 1 ? 2 : 4); k++)
        bytes[MAGIC + 2 + k] = (char)(text >> 8 * k);
}

size_t oly_npy_header_write(oly_npy_header *header, int version, char bytes[OLY_NPY_WRITTEN_MOST])
{
    const type_name *type = name_of(header->dtype);
    size_t prefix = version == 1 ? MAGIC + 4 : MAGIC + 6, n = prefix;
    char order = type->bytes == 1 || type->kind == 'b' ? '|' : little_endian() ? '<' : '>';
    n += (size_t)snprintf(bytes + n, OLY_NPY_WRITTEN_MOST - n, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                          order, type->kind, type->bytes);
    for (int d = 0; d < header->rank; d++)
        n += (size_t)snprintf(bytes + n, OLY_NPY_WRITTEN_MOST - n, "%s%" PRId64 "%s", d ? ", " : "", header->shape[d],
                              header->rank == 1 ? "," : "");
    n += (size_t)snprintf(bytes + n, OLY_NPY_WRITTEN_MOST - n, "), }%s%s", type->named ? " # " : "",
                          type->named ? oly_dtype_name(type->dtype) : "");
    size_t length = (n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    memset(bytes + n, ' ', length - n);
    bytes[length - 1] = '\n';
    write_prefix(bytes, version, length - prefix);
    header->fortran = header->swapped = false;
    header->data = (int64_t)length;
    return length;
}

int64_t oly_npy_count(const oly_npy_header *header)
{
    int64_t count = 1;
    for (int d = 0; d < header->rank; d++)
        count = header->shape[d] == 0 || count == 0 ? 0 : count * header->shape[d];
    return count;
}

int64_t oly_npy_bytes(const oly_npy_header *header)
{
    return oly_npy_count(header) * (int64_t)oly_dtype_size(header->dtype);
}
