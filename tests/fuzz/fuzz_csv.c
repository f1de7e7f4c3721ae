/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of numbers as text: the text is a file, cut in two at every place, read by each delimiter. The lines of both parts are those of the
 * whole, each once; a line has as many fields as are cut off it; a number that is accepted comes back from its digits. */
#define _GNU_SOURCE /* memfd_create */
#include "core/text.h"
#include "file/csv.h"
#include "fuzz.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const fuzz_seeds[] = {"1,2,3\n4,5,6\n",
                                  "1.5e3, -2 ,nan\r\n\r\ninf,-inf,0x1p3\r\n",
                                  "# a comment\n1 2\t 3 # more\n 4 5 6",
                                  "a,b\n1,2\n,\n",
                                  "True,False\n1,0\n",
                                  "18446744073709551615,-9223372036854775808\n",
                                  NULL};
const char *const fuzz_words[] = {",",
                                  "\n",
                                  "\r\n",
                                  " ",
                                  "\t",
                                  "#",
                                  "//",
                                  "-",
                                  "+",
                                  "1e400",
                                  "1e-400",
                                  "nan(7)",
                                  "0x",
                                  "infinity",
                                  "18446744073709551616",
                                  "9223372036854775808",
                                  "256",
                                  "-129",
                                  "true",
                                  ".",
                                  "1.",
                                  ".5",
                                  NULL};

static int file_of(const char *text)
{
    int file = memfd_create("fuzz.csv", MFD_CLOEXEC);
    size_t n = strlen(text);
    FUZZ_CHECK(file >= 0 && write(file, text, n) == (ssize_t)n);
    return file;
}

static void check_number(const char *field)
{
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++) {
        char element[16], again[16], digits[64];
        memset(element, 0, sizeof element);
        memset(again, 0, sizeof again);
        if (dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128 || !oly_csv_number(field, (oly_dtype)dtype, element))
            continue;
        int64_t whole = 0;
        memcpy(&whole, element, oly_dtype_size((oly_dtype)dtype));
        if (dtype == OLY_INT64 || dtype == OLY_UINT64) {
            snprintf(digits, sizeof digits, dtype == OLY_INT64 ? "%lld" : "%llu", (long long)whole);
            FUZZ_CHECK(oly_csv_number(digits, (oly_dtype)dtype, again) && memcmp(element, again, 8) == 0);
        }
        if (dtype == OLY_FLOAT64) {
            double value, back;
            memcpy(&value, element, sizeof value);
            snprintf(digits, sizeof digits, "%.17g", value);
            FUZZ_CHECK(oly_csv_number(digits, OLY_FLOAT64, again));
            memcpy(&back, again, sizeof back);
            FUZZ_CHECK(back == value || value != value);
        }
    }
}

static void check_line(const oly_csv_form *form, char *line)
{
    char *content = oly_csv_content(form, line), *rest = content;
    if (!content[0])
        return;
    int64_t n = oly_csv_fields(form, content), cut = 0;
    for (; rest && cut <= n; cut++)
        check_number(oly_csv_field(form, rest, &rest));
    FUZZ_CHECK(cut == n && !rest);
}

/* Appends the lines of a part to `lines`, each with a newline. */
static void read_part(const char *text, int64_t at, int64_t end, char *lines)
{
    oly_csv_lines l = {0};
    char *line;
    int file = file_of(text);
    FUZZ_CHECK(oly_csv_open(file, "fuzz.csv", at, end, (int64_t)strlen(text), at == 0, &l) == OLY_OK);
    while (oly_csv_next(&l, &line) == OLY_OK && line) {
        strcat(lines, line);
        strcat(lines, "\n");
    }
    oly_csv_close(&l);
    close(file);
}

void fuzz_try(const char *text)
{
    static const oly_csv_form forms[] = {{',', "#"}, {' ', "#"}, {'\t', ""}, {';', "//"}};
    char whole[4096] = "", parts[4096];
    size_t n = strlen(text);
    if (n > 1000)
        return;
    read_part(text, 0, (int64_t)n, whole);
    for (size_t cut = 0; cut <= n; cut += 1 + n / 7) {
        parts[0] = '\0';
        read_part(text, 0, (int64_t)cut, parts);
        read_part(text, (int64_t)cut, (int64_t)n, parts);
        FUZZ_CHECK(strcmp(parts, whole) == 0);
    }
    locale_t before = oly_numbers_with_point();
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        char copy[4096];
        strcpy(copy, whole);
        for (char *line = copy, *next; *line; line = next) {
            next = strchr(line, '\n');
            *next++ = '\0';
            check_line(&forms[k], line);
        }
    }
    oly_numbers_as_before(before);
}
