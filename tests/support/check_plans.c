/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_plans.h. */
#include "check_plans.h"
#include "check.h"

/* "test_plans.c:123" becomes "test_plans.c". */
static void drop_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t n = strncmp(from, ".c:", 3) == 0 ? 2 : 1;
        memmove(to, from, n);
        to += n;
        from += n;
        if (n == 2)
            from += 1 + strspn(from + 1, "0123456789");
    }
    *to = 0;
}

static char *told;
static size_t told_size;

FILE *check_plan_begin(void)
{
    FILE *file = open_memstream(&told, &told_size);
    assert_non_null(file);
    return file;
}

char *check_plan_end(FILE *file)
{
    fclose(file);
    drop_lines(told);
    return told;
}

void check_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (file && getdelim(&text, &size, 0, file) < 0) {
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

/* Prints the first line that differs, and the expected one. */
static void show_difference(const char *name, const char *expected, const char *found)
{
    int line = 1;
    const char *a = expected, *b = found;
    for (; *a && *a == *b; a++, b++)
        line += *a == '\n';
    while (a > expected && a[-1] != '\n')
        a--, b--;
    print_error("%s:%d differs\nexpected: %.*s\nfound:    %.*s\n(PLANS=write rewrites it, if this "
                "is intended)\n",
                name, line, (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

bool check_same_as_file(const char *path, const char *found)
{
    const char *mode = getenv("PLANS");
    if (mode && strcmp(mode, "write") == 0)
        check_write_file(path, found);
    char *expected = read_whole(path);
    bool same = expected && strcmp(expected, found) == 0;
    if (!same)
        show_difference(path, expected ? expected : "", found);
    free(expected);
    return same;
}
