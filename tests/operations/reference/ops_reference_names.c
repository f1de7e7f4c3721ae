/* SPDX-License-Identifier: BSD-3-Clause */
/* Which public operations have no row: the prototypes of the headers, and the macros that programs use for them. */
#include "ops_reference.h"
#include <stdlib.h>

/* Headers of other things than operations on arrays; their functions have tests of their own. */
static const char *const other_headers[] = {"base",  "mesh",    "array",    "transform", "gradient",
                                            "map",   "regions", "start",    "processes", "checkpoint",
                                            "files", "formats", "timeline", "inside"};

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = file ? calloc(1, 1 << 20) : NULL;
    if (text)
        text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
    if (file)
        fclose(file);
    return text;
}

/* Copies the identifier after "oly_". */
static void read_name(const char *text, char *name, size_t size)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    snprintf(name, size, "%.*s", (int)n, text);
}

/* A row with the function's name, or with the name that programs write, the first of OLY_AT_AS(oly_..., function). */
static bool is_tested(const char *header, const char *function, bool (*has_row)(const char *name))
{
    static const char as[] = "OLY_AT_AS(oly_";
    char written[80], called[80];
    if (has_row(function))
        return true;
    for (const char *at = strstr(header, as); at; at = strstr(at + 1, as)) {
        read_name(at + strlen(as), written, sizeof written);
        const char *call = at + strlen(as) + strlen(written);
        if (strncmp(call, ", oly_", strlen(", oly_")) != 0)
            continue;
        read_name(call + strlen(", oly_"), called, sizeof called);
        if (strcmp(called, function) == 0 && has_row(written))
            return true;
    }
    return false;
}

/* Operations that only place: tested by tests/operations/test_explicit.c. */
static const char *const of_shardings[] = {"reshard"};

static int missing_in(const char *header, const char *path, bool (*has_row)(const char *name))
{
    static const char *const kinds[] = {"OLY_API oly_array oly_", "OLY_API oly_status oly_"};
    int missing = 0;
    for (int k = 0; k < 2; k++)
        for (const char *at = strstr(header, kinds[k]); at; at = strstr(at + 1, kinds[k])) {
            char function[80];
            read_name(at + strlen(kinds[k]), function, sizeof function);
            bool excused = false;
            for (size_t i = 0; i < sizeof of_shardings / sizeof *of_shardings; i++)
                excused = excused || strcmp(of_shardings[i], function) == 0;
            if (excused || is_tested(header, function, has_row))
                continue;
            fprintf(stderr, "no row of tests/operations/reference tests oly_%s of %s\n", function, path);
            missing++;
        }
    return missing;
}

int ops_untested_functions(bool (*has_row)(const char *name))
{
    static const char include[] = "#include <olympus/";
    char *all = text_of("include/olympus.h"), name[80], path[120];
    int missing = all == NULL;
    for (const char *at = all ? strstr(all, include) : NULL; at; at = strstr(at + 1, include)) {
        bool other = false;
        read_name(at + strlen(include), name, sizeof name);
        for (size_t k = 0; k < sizeof other_headers / sizeof *other_headers; k++)
            other = other || strcmp(name, other_headers[k]) == 0;
        snprintf(path, sizeof path, "include/olympus/%s.h", name);
        char *header = other ? NULL : text_of(path);
        missing += header ? missing_in(header, path, has_row) : !other;
        free(header);
    }
    free(all);
    return missing;
}
