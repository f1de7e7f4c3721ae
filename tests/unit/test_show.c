/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  The texts and pictures of arrays and shardings: those of NumPy and JAX, and no partial files. */
#include "check.h"
#include "check_oracle.h"
#include "array/draw.h"
#include "array/format.h"
#include "array/printf.h"
#include "core/error.h"
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

/* Compares the text and frees it. */
static void expect_text(oly_text *text, const char *wanted)
{
    assert_false(text->failed);
    assert_string_equal(oly_text_chars(text), wanted);
    oly_text_free(text);
}

/* Fails unless the call failed with this status and a message that contains `part`. */
static void expect_failure(oly_status got, oly_status wanted, const char *part)
{
    assert_int_equal(got, wanted);
    if (!strstr(oly_pending_message(), part))
        fail_msg("\"%s\" is not in the message \"%s\"", part, oly_pending_message());
    oly_drop_message();
}

/* -- values --------------------------------------------------------------------------------------------- */

/* Text lines of the oracle end in a newline, ours do not. */
static void expect_oracle_text(oly_text *text, const oracle_case *c, const char *keyword)
{
    const oracle_line *line = check_oracle_line(c, keyword, 0);
    assert_non_null(line);
    oly_text_add_chars(text, "\n", 1);
    if (strcmp(oly_text_chars(text), line->text) != 0)
        fail_msg("%s %s: got\n%swanted\n%s", c->id, keyword, oly_text_chars(text), line->text);
    oly_text_free(text);
}

static oly_status repr_of(oly_text *text, oly_dtype dtype, int rank, const int64_t *shape, const void *data)
{
    return oly_format_repr(text, dtype, false, rank, shape, data);
}

static void str_and_repr_are_those_of_jax(void **state)
{
    (void)state;
    oracle_family *family = check_oracle_open("print");
    assert_non_null(family);
    int n_checked = 0;
    for (int k = 0; k < family->n_cases; k++) {
        const oracle_case *c = &family->cases[k];
        oracle_array a;
        oly_text text = {.chars = NULL};
        assert_true(check_oracle_array(family, check_oracle_line(c, "in", 0), &a));
        if (a.known_dtype >= 0) {
            oly_dtype dtype = (oly_dtype)a.known_dtype;
            assert_int_equal(oly_format_str(&text, dtype, a.rank, a.shape, a.data), OLY_OK);
            expect_oracle_text(&text, c, "str");
            assert_int_equal(oly_format_repr(&text, dtype, false, a.rank, a.shape, a.data), OLY_OK);
            expect_oracle_text(&text, c, "repr");
            n_checked++;
        }
        check_oracle_array_free(&a);
    }
    assert_int_equal(family->n_cases, 24);
    assert_int_equal(n_checked, 24);
    check_oracle_close(family);
}

static void weak_types_are_named(void **state)
{
    const int32_t three = 3;
    oly_text text = {.chars = NULL};
    (void)state;
    assert_int_equal(oly_format_repr(&text, OLY_INT32, true, 0, NULL, &three), OLY_OK);
    assert_string_equal(oly_text_chars(&text), "Array(3, dtype=int32, weak_type=True)");
    oly_text_free(&text);
}

#define EXPECT_STR(dtype, wanted, ...)                                                                                 \
    expect_array(oly_format_str, dtype, (int64_t)(sizeof(__VA_ARGS__) / oly_dtype_size(dtype)), __VA_ARGS__, wanted)
#define EXPECT_REPR(dtype, wanted, ...)                                                                                \
    expect_array(repr_of, dtype, (int64_t)(sizeof(__VA_ARGS__) / oly_dtype_size(dtype)), __VA_ARGS__, wanted)

typedef oly_status array_printer(oly_text *, oly_dtype, int, const int64_t *, const void *);

static void expect_array(array_printer *print, oly_dtype dtype, int64_t n, const void *data, const char *wanted)
{
    oly_text text = {.chars = NULL};
    assert_int_equal(print(&text, dtype, 1, &n, data), OLY_OK);
    expect_text(&text, wanted);
}

/* Expected texts from NumPy 2.4.6. */
static void other_arrays_are_those_of_numpy(void **state)
{
    (void)state;
    EXPECT_STR(OLY_INT64, "[-9223372036854775808                    7]", ((int64_t[]){INT64_MIN, 7}));
    EXPECT_STR(OLY_UINT32, "[4294967295          0]", ((uint32_t[]){UINT32_MAX, 0}));
    EXPECT_STR(OLY_BOOL, "[ True  True]", ((bool[]){true, true}));
    EXPECT_STR(OLY_FLOAT64, "[1.e+100 1.e-003]", ((double[]){1e100, 1e-3}));
    EXPECT_STR(OLY_FLOAT64, "[0.33333333 1.        ]", ((double[]){1.0 / 3, 1}));
    EXPECT_STR(OLY_FLOAT64, "[12345678.125   123456.   ]", ((double[]){12345678.125, 123456}));
    EXPECT_STR(OLY_FLOAT32, "[999999.]", ((float[]){999999}));
    EXPECT_STR(OLY_FLOAT32, "[1.e+06]", ((float[]){1e6f}));
    EXPECT_STR(OLY_FLOAT32, "[1.00000001e-01 1.00000006e+03]", ((float[]){0.1f, 1000.00006f}));
    EXPECT_STR(OLY_FLOAT32, "[1.2621775e-29]", ((float[]){0x1p-96f}));
    EXPECT_STR(OLY_FLOAT32, "[nan nan]", ((float[]){NAN, NAN}));
    EXPECT_STR(OLY_FLOAT32, "[ inf -inf]", ((float[]){INFINITY, -INFINITY}));
    EXPECT_STR(OLY_FLOAT32, "[-0.  0.]", ((float[]){-0.0f, 0.0f}));
    EXPECT_STR(OLY_INT8, "[-128    7]", ((int8_t[]){-128, 7}));
    EXPECT_STR(OLY_UINT64, "[18446744073709551615                    0]", ((uint64_t[]){UINT64_MAX, 0}));
    EXPECT_STR(OLY_FLOAT16, "[  1.   -2.5 999.5]", ((uint16_t[]){0x3c00, 0xc100, 0x63cf}));
    EXPECT_STR(OLY_FLOAT16, "[0.1    0.3333]", ((uint16_t[]){0x2e66, 0x3555}));
    EXPECT_STR(OLY_FLOAT16, "[6.e-08 1.e+00]", ((uint16_t[]){1, 0x3c00}));
    EXPECT_STR(OLY_BFLOAT16, "[1 -0.5 3.38953e+38 nan -inf]", ((uint16_t[]){0x3f80, 0xbf00, 0x7f7f, 0x7fc0, 0xff80}));
    EXPECT_STR(OLY_COMPLEX64, "[1.+2.j 1.-2.j]",
               ((float _Complex[]){__builtin_complex(1.0f, 2.0f), __builtin_complex(1.0f, -2.0f)}));
    EXPECT_STR(OLY_COMPLEX128, "[1.        +1.e-05j 0.33333333-2.e+00j]",
               ((double _Complex[]){__builtin_complex(1.0, 1e-5), __builtin_complex(1.0 / 3, -2.0)}));
    EXPECT_STR(OLY_COMPLEX128, "[nan +0.j  0.+infj]",
               ((double _Complex[]){__builtin_complex((double)NAN, 0.0), __builtin_complex(0.0, (double)INFINITY)}));
    EXPECT_REPR(OLY_COMPLEX64, "Array([0.5-0.j], dtype=complex64)",
                ((float _Complex[]){__builtin_complex(0.5f, -0.0f)}));
    EXPECT_REPR(OLY_BOOL, "Array([ True], dtype=bool)", ((bool[]){true}));
    EXPECT_REPR(OLY_FLOAT64, "Array([1.5], dtype=float64)", ((double[]){1.5}));
}

static void empty_arrays_tell_their_shape(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    assert_int_equal(oly_format_repr(&text, OLY_INT32, false, 1, (int64_t[]){0}, NULL), OLY_OK);
    expect_text(&text, "Array([], shape=(0,), dtype=int32)");
    assert_int_equal(oly_format_repr(&text, OLY_FLOAT64, false, 3, (int64_t[]){2, 0, 1000000000000}, NULL), OLY_OK);
    expect_text(&text, "Array([], shape=(2, 0, 1000000000000), dtype=float64)");
    assert_int_equal(oly_format_str(&text, OLY_FLOAT64, 2, (int64_t[]){0, 5}, NULL), OLY_OK);
    expect_text(&text, "[]");
}

/* Between the first and last three rows is memory that must not be read: a read would end the program. */
static void summaries_read_only_what_they_print(void **state)
{
    (void)state;
    const int64_t shape[2] = {1 << 20, 1 << 16};
    const size_t bytes = (size_t)shape[0] * (size_t)shape[1], edge = 3 * (size_t)shape[1];
    char *data = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(data != MAP_FAILED);
    assert_int_equal(mprotect(data, edge, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(mprotect(data + bytes - edge, edge, PROT_READ | PROT_WRITE), 0);
    data[bytes - 1] = 1;
    oly_text text = {.chars = NULL};
    assert_int_equal(oly_format_repr(&text, OLY_BOOL, false, 2, shape, data), OLY_OK);
    expect_text(&text, "Array([[False, False, False, ..., False, False, False],\n"
                       "       [False, False, False, ..., False, False, False],\n"
                       "       [False, False, False, ..., False, False, False],\n"
                       "       ...,\n"
                       "       [False, False, False, ..., False, False, False],\n"
                       "       [False, False, False, ..., False, False, False],\n"
                       "       [False, False, False, ..., False, False,  True]], dtype=bool)");
    munmap(data, bytes);
}

static void expect_scalar(oly_dtype dtype, const void *element, const char *wanted)
{
    oly_text text = {.chars = NULL};
    assert_int_equal(oly_format_scalar(&text, dtype, element), OLY_OK);
    expect_text(&text, wanted);
}

#define EXPECT_SCALAR(dtype, type, value, wanted) expect_scalar(dtype, &(type){value}, wanted)

static void scalars_are_the_shortest_doubles(void **state)
{
    (void)state;
    EXPECT_SCALAR(OLY_FLOAT32, float, -0.12398731708526611f, "-0.12398731708526611");
    EXPECT_SCALAR(OLY_FLOAT32, float, 3.14159f, "3.141590118408203");
    EXPECT_SCALAR(OLY_FLOAT32, float, 3, "3.0");
    EXPECT_SCALAR(OLY_FLOAT32, float, 0x1p-140f, "7.174648137343064e-43");
    EXPECT_SCALAR(OLY_FLOAT16, uint16_t, 0x2e66, "0.0999755859375");
    EXPECT_SCALAR(OLY_BFLOAT16, uint16_t, 0x3dcd, "0.10009765625");
    EXPECT_SCALAR(OLY_COMPLEX64, float _Complex, __builtin_complex(1.0f, 2.0f), "(1+2j)");
    EXPECT_SCALAR(OLY_COMPLEX64, float _Complex, __builtin_complex(0.0f, 2.5f), "2.5j");
    EXPECT_SCALAR(OLY_COMPLEX128, double _Complex, __builtin_complex(-0.0, -0.0), "(-0-0j)");
    EXPECT_SCALAR(OLY_COMPLEX128, double _Complex, __builtin_complex(1e16, (double)NAN), "(1e+16+nanj)");
    EXPECT_SCALAR(OLY_UINT64, uint64_t, UINT64_MAX, "18446744073709551615");
    EXPECT_SCALAR(OLY_INT8, int8_t, -5, "-5");
    EXPECT_SCALAR(OLY_FLOAT64, double, 0.1, "0.1");
    EXPECT_SCALAR(OLY_FLOAT64, double, -0.0, "-0.0");
    EXPECT_SCALAR(OLY_FLOAT64, double, 1e15, "1000000000000000.0");
    EXPECT_SCALAR(OLY_FLOAT64, double, 1e16, "1e+16");
    EXPECT_SCALAR(OLY_FLOAT64, double, 1e-5, "1e-05");
    EXPECT_SCALAR(OLY_FLOAT64, double, 1.5e300, "1.5e+300");
    EXPECT_SCALAR(OLY_FLOAT64, double, 5e-324, "5e-324");
    EXPECT_SCALAR(OLY_FLOAT64, double, NAN, "nan");
    EXPECT_SCALAR(OLY_FLOAT64, double, -INFINITY, "-inf");
    EXPECT_SCALAR(OLY_INT64, int64_t, INT64_MIN, "-9223372036854775808");
    EXPECT_SCALAR(OLY_UINT32, uint32_t, UINT32_MAX, "4294967295");
    EXPECT_SCALAR(OLY_INT32, int32_t, -7, "-7");
    EXPECT_SCALAR(OLY_BOOL, bool, true, "True");
    EXPECT_SCALAR(OLY_BOOL, bool, false, "False");
}

/* Every float32 of a sweep over all bit patterns, and doubles made of the same bits, must read back. */
static void shortest_texts_read_back(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    for (uint64_t bits = 0; bits < UINT32_MAX; bits += 86028121) {
        float single;
        double wide;
        memcpy(&single, &(uint32_t){(uint32_t)bits}, sizeof single);
        memcpy(&wide, &(uint64_t){bits * 4294967311u}, sizeof wide);
        assert_int_equal(oly_format_str(&text, OLY_FLOAT32, 0, NULL, &single), OLY_OK);
        assert_true(isnan(single) || strtof(oly_text_chars(&text), NULL) == single);
        oly_text_free(&text);
        assert_int_equal(oly_format_scalar(&text, OLY_FLOAT64, &wide), OLY_OK);
        assert_true(isnan(wide) || strtod(oly_text_chars(&text), NULL) == wide);
        oly_text_free(&text);
    }
}

static void bad_arrays_are_refused(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    const int64_t shape[OLY_MAX_RANK + 1] = {1, -3};
    expect_failure(oly_format_str(&text, OLY_BOOL, 2, shape, ""), OLY_INVALID, "dimension 1 has the extent -3");
    expect_failure(oly_format_repr(&text, OLY_BOOL, false, OLY_MAX_RANK + 1, shape, ""), OLY_INVALID, "rank 13");
    expect_failure(oly_format_scalar(&text, OLY_N_DTYPES, ""), OLY_INVALID, "element type");
    expect_text(&text, "");
}

/* -- shardings ------------------------------------------------------------------------------------------ */

enum { MOST_DEVICES = 64 };

typedef struct placed {
    int rank, n_devices;
    int64_t shape[2];
    int64_t starts[2 * MOST_DEVICES], extents[2 * MOST_DEVICES];
    int ids[MOST_DEVICES];
} placed;

/* The position of device `id` along the mesh axis `name` of the line "mesh x=2 y=4" (last axis fastest), and its
 * size. */
static void find_axis(const oracle_line *mesh, const char *name, int id, int *position, int *size)
{
    int inner = 1;
    for (int k = mesh->n_words - 1; k > 0; k--) {
        int n = atoi(strchr(mesh->words[k], '=') + 1);
        size_t length = strcspn(mesh->words[k], "=");
        if (strlen(name) == length && strncmp(mesh->words[k], name, length) == 0) {
            *position = id / inner % n;
            *size = n;
            return;
        }
        inner *= n;
    }
    fail_msg("no axis %s", name);
}

/* Gives device `id` its block: parses the spec "P(x,None,(y,z))"; names are adjacent. */
static void place_device(placed *p, const oracle_line *mesh, const char *spec, int id)
{
    int part[2] = {0, 0}, parts[2] = {1, 1}, axis = 0, depth = 0;
    for (const char *at = spec + 2; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        axis += *at == ',' && depth == 0;
        size_t length = strcspn(at, "(,)");
        if (length == 0)
            continue;
        char name[16];
        int position = 0, size = 1;
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        at += length - 1;
        if (strcmp(name, "None") == 0)
            continue;
        find_axis(mesh, name, id, &position, &size);
        part[axis] = part[axis] * size + position;
        parts[axis] *= size;
    }
    for (int k = 0; k < p->rank; k++) {
        p->extents[id * p->rank + k] = p->shape[k] / parts[k];
        p->starts[id * p->rank + k] = p->shape[k] / parts[k] * part[k];
    }
    p->ids[id] = id;
}

static placed place_case(const oracle_case *c)
{
    const oracle_line *in = check_oracle_line(c, "in", 0), *mesh = check_oracle_line(c, "mesh", 0);
    placed p = {.n_devices = 1};
    assert_non_null(in);
    assert_non_null(mesh);
    p.rank = check_oracle_list(in->words[3], p.shape, 2);
    for (int k = 1; k < mesh->n_words; k++)
        p.n_devices *= atoi(strchr(mesh->words[k], '=') + 1);
    assert_true(p.rank > 0 && p.n_devices <= MOST_DEVICES);
    for (int id = 0; id < p.n_devices; id++)
        place_device(&p, mesh, in->words[4], id);
    return p;
}

static void shardings_are_drawn_as_jax_does(void **state)
{
    (void)state;
    oracle_family *family = check_oracle_open("viz");
    assert_non_null(family);
    for (int k = 0; k < family->n_cases; k++) {
        const oracle_case *c = &family->cases[k];
        const char *wanted = check_oracle_line(c, "text", 0)->text;
        placed p = place_case(c);
        oly_text text = {.chars = NULL};
        assert_int_equal(oly_draw_sharding(&text, "CPU", p.rank, p.shape, p.n_devices, p.starts, p.extents, p.ids),
                         OLY_OK);
        if (strcmp(oly_text_chars(&text), wanted) != 0)
            fail_msg("%s: got\n%swanted\n%s", c->id, oly_text_chars(&text), wanted);
        oly_text_free(&text);
    }
    assert_int_equal(family->n_cases, 22);
    check_oracle_close(family);
}

static void uneven_blocks_have_their_share(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    const int64_t shape[2] = {5, 12}, starts[] = {0, 0, 3, 0}, extents[] = {3, 12, 2, 12};
    assert_int_equal(oly_draw_sharding(&text, "GPU", 2, shape, 2, starts, extents, (int[]){5, 4}), OLY_OK);
    expect_text(&text, "┌──────────────────────────────────────────────────────────┐\n"
                       "│                                                          │\n"
                       "│                                                          │\n"
                       "│                          GPU 5                           │\n"
                       "│                                                          │\n"
                       "│                                                          │\n"
                       "├──────────────────────────────────────────────────────────┤\n"
                       "│                                                          │\n"
                       "│                          GPU 4                           │\n"
                       "│                                                          │\n"
                       "└──────────────────────────────────────────────────────────┘\n");
}

static void empty_blocks_are_left_out(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    const int64_t two[1] = {2}, starts[] = {0, 1, 2, 2}, extents[] = {1, 1, 0, 0};
    assert_int_equal(oly_draw_sharding(&text, "CPU", 1, two, 4, starts, extents, (int[]){0, 1, 2, 3}), OLY_OK);
    expect_text(&text, "┌───────┬───────┐\n│ CPU 0 │ CPU 1 │\n└───────┴───────┘\n");
    const int64_t none[2] = {0, 3}, zeros[4] = {0};
    assert_int_equal(oly_draw_sharding(&text, "CPU", 2, none, 2, zeros, zeros, (int[]){0, 1}), OLY_OK);
    expect_text(&text, "┌───────────────────────┐\n"
                       "│      no elements      │\n"
                       "└───────────────────────┘\n");
}

/* Columns of the widest line; every character of a table is one column. */
static int columns_of(const char *text)
{
    int widest = 0, columns = 0;
    for (; *text; text++) {
        columns = *text == '\n' ? 0 : columns + ((*text & 0xC0) != 0x80);
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

/* JAX prints empty cells for both. */
static void wide_tables_keep_their_labels(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    int64_t starts[16], extents[16];
    for (int k = 0; k < 8; k++) {
        memcpy(&starts[2 * k], (int64_t[]){0, 8 * k}, 2 * sizeof *starts);
        memcpy(&extents[2 * k], (int64_t[]){8, 8}, 2 * sizeof *extents);
    }
    const int ids[8] = {0, 1, 2, 3, 4, 5, 6, 7}, large[8] = {1000000, 1000001, 1000002, 1000003, 10, 11, 12, 13};
    assert_int_equal(oly_draw_sharding(&text, "CPU", 2, (int64_t[]){8, 64}, 8, starts, extents, ids), OLY_OK);
    assert_non_null(
        strstr(oly_text_chars(&text), "│ CPU 0  │ CPU 1  │ CPU 2  │ CPU 3  │ CPU 4  │ CPU 5  │ CPU 6  │ CPU 7  │\n"));
    assert_int_equal(columns_of(oly_text_chars(&text)), 73);
    oly_text_free(&text);
    assert_int_equal(oly_draw_sharding(&text, "CPU", 2, (int64_t[]){8, 64}, 8, starts, extents, large), OLY_OK);
    assert_non_null(strstr(oly_text_chars(&text), "│CPU 1000000│CPU 1000001│CPU 1000002│CPU 1000003│ CPU 10 │"));
    oly_text_free(&text);
    char label[200];
    memset(label, '7', sizeof label - 1);
    label[sizeof label - 1] = 0;
    const oly_draw_cell cell = {.extent = {8}, .label = label};
    assert_int_equal(oly_draw_cells(&text, 1, (int64_t[]){8}, 1, &cell), OLY_OK);
    assert_non_null(strstr(oly_text_chars(&text), label));
    oly_text_free(&text);
}

static void only_one_and_two_dimensions_are_drawn(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    const int64_t three[3] = {1, 1, 1};
    expect_failure(oly_draw_sharding(&text, "CPU", 3, three, 1, three, three, (int[]){0}), OLY_SHAPE, "has 3");
    expect_failure(oly_draw_cells(&text, 0, NULL, 0, NULL), OLY_SHAPE, "1 or 2 dimensions");
    expect_text(&text, "");
}

/* -- oly_printf's engine -------------------------------------------------------------------------------- */

static oly_status handle(oly_text *text, char letter, void *object)
{
    if (!object)
        return oly_fail(OLY_INVALID, "no object for %c", letter);
    oly_text_add(text, "<%c %s>", letter, (const char *)object);
    return OLY_OK;
}

static oly_status format_text(oly_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    oly_status status = oly_text_format(text, format, arguments, handle);
    va_end(arguments);
    return status;
}

/* Against the C library's own printf. */
#define EXPECT_AS_PRINTF(...)                                                                                          \
    do {                                                                                                               \
        char wanted[512];                                                                                              \
        oly_text text = {.chars = NULL};                                                                               \
        snprintf(wanted, sizeof wanted, __VA_ARGS__);                                                                  \
        assert_int_equal(format_text(&text, __VA_ARGS__), OLY_OK);                                                     \
        expect_text(&text, wanted);                                                                                    \
    } while (0)

static void printf_conversions_are_those_of_c(void **state)
{
    (void)state;
    EXPECT_AS_PRINTF("plain %% text\n");
    EXPECT_AS_PRINTF("%d|%5d|%-5d|%05d|%+d|% d|%i", 1, 2, 3, 4, 5, 6, -7);
    EXPECT_AS_PRINTF("%hhd %hd %ld %lld %zd %jd %td", 300, 70000, -1L, INT64_MIN + 0LL, (ssize_t)-3, (intmax_t)-4,
                     (ptrdiff_t)-5);
    EXPECT_AS_PRINTF("%hhu %hu %u %lu %llu %zu %ju", 255, 65535, UINT32_MAX, 1ul << 60, UINT64_MAX + 0ull, SIZE_MAX,
                     UINTMAX_MAX);
    EXPECT_AS_PRINTF("%x %X %#x %o %#o %#lX %08llx", 255u, 255u, 255u, 8u, 8u, 255ul, 255ull);
    EXPECT_AS_PRINTF("%f %.2f %10.3f %-10.1f| %+.0f %#.0f", 1.5, 2.345, 3.14159, 4.25, 5.0, 6.0);
    EXPECT_AS_PRINTF("%e %.3E %g %G %a %F %Lg %.3Lf", 12345.678, 0.00012, 1e-7, 1e20, 1.0, 2.0, 1.25L, 0.5L);
    EXPECT_AS_PRINTF("%s|%10s|%-10s|%.2s|%c|%5c", "abc", "right", "left", "cut", 'x', 'y');
    EXPECT_AS_PRINTF("%ls %lc", L"wide", (wint_t)L'w');
    EXPECT_AS_PRINTF("%*d|%*d|%.*f|%*.*f|%-*s|", 6, 42, -6, 42, 2, 1.0 / 3, 9, 4, 2.0 / 3, 5, "ab");
    EXPECT_AS_PRINTF("%.*f %.*s", -1, 0.1, -1, "whole");
    EXPECT_AS_PRINTF("%p %d", (void *)&state, 7);
}

static void letters_go_to_the_handler(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    assert_int_equal(format_text(&text, "%d %A and %R, %T%D %M%S%%A %.1f", 1, "a", "r", "t", "d", "m", "s", 2.0),
                     OLY_OK);
    expect_text(&text, "1 <A a> and <R r>, <T t><D d> <M m><S s>%A 2.0");
    expect_failure(format_text(&text, "before %A after", NULL), OLY_INVALID, "no object for A");
    expect_text(&text, "before ");
}

static void unknown_conversions_are_refused(void **state)
{
    (void)state;
    oly_text text = {.chars = NULL};
    static const char *const bad[] = {
        "ab%y",  "ab%n",  "ab%m",  "ab%",   "ab%5",  "ab%l",  "ab%1$d",          "ab%5A",
        "ab%-D", "ab%lA", "ab%Ld", "ab%hf", "ab%hs", "ab%5%", "ab%99999999999d", "ab%.99999999999d",
        "ab%C"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        expect_failure(format_text(&text, bad[k], 1, 2), OLY_INVALID, "column 3");
        expect_text(&text, "ab");
    }
}

/* -- out of memory -------------------------------------------------------------------------------------- */

static oly_status draw_two(oly_text *text)
{
    const int64_t shape[1] = {2}, starts[2] = {0, 1}, extents[2] = {1, 1};
    return oly_draw_sharding(text, "CPU", 1, shape, 2, starts, extents, (int[]){0, 1});
}

static oly_status show_array(oly_text *text)
{
    return oly_format_repr(text, OLY_FLOAT32, false, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4});
}

static oly_status show_number(oly_text *text)
{
    return oly_format_scalar(text, OLY_FLOAT32, &(float){1});
}

static oly_status print_numbers(oly_text *text)
{
    return format_text(text, "%d and %200s", 1, "two");
}

/* The first, second, ... allocation fails, until none is left: each time the status says so and nothing leaks. */
static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    oly_status (*const calls[])(oly_text *) = {draw_two, show_array, show_number, print_numbers};
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
        int n_failures = 0;
        oly_status status = OLY_MEMORY;
        for (int n = 0; status != OLY_OK || n < 2; n++) {
            oly_text text = {.chars = NULL};
            assert_true(n < 100);
            oly_fail_allocation(n);
            status = calls[k](&text);
            oly_fail_allocation(-1);
            if (status != OLY_OK) {
                expect_failure(status, OLY_MEMORY, "memory");
                n_failures++;
            }
            oly_text_free(&text);
        }
        assert_true(n_failures > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(str_and_repr_are_those_of_jax),
        cmocka_unit_test(weak_types_are_named),
        cmocka_unit_test(other_arrays_are_those_of_numpy),
        cmocka_unit_test(empty_arrays_tell_their_shape),
        cmocka_unit_test(summaries_read_only_what_they_print),
        cmocka_unit_test(scalars_are_the_shortest_doubles),
        cmocka_unit_test(shortest_texts_read_back),
        cmocka_unit_test(bad_arrays_are_refused),
        cmocka_unit_test(shardings_are_drawn_as_jax_does),
        cmocka_unit_test(uneven_blocks_have_their_share),
        cmocka_unit_test(empty_blocks_are_left_out),
        cmocka_unit_test(wide_tables_keep_their_labels),
        cmocka_unit_test(only_one_and_two_dimensions_are_drawn),
        cmocka_unit_test(printf_conversions_are_those_of_c),
        cmocka_unit_test(letters_go_to_the_handler),
        cmocka_unit_test(unknown_conversions_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return CHECK_MAIN(tests);
}
