/* SPDX-License-Identifier: BSD-3-Clause */
/* The explanations of a program's plans in a few figures and a digest: soak -e. */
#include "program.h"
#include <stdlib.h>
#include <string.h>

static double nanoseconds_of(const char *text)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double number = strtod(text, &end);
    for (int k = 0; k < 4; k++)
        if (strncmp(end + 1, units[k].name, strlen(units[k].name)) == 0)
            return number * units[k].factor;
    return number;
}

/* FNV-1a; of "run.c:248" the number is left out. */
static uint32_t digest_line(uint32_t digest, const char *line)
{
    for (const char *c = line; *c; c++) {
        digest = (digest ^ (uint8_t)*c) * 16777619u;
        if (strncmp(c, ".c:", 3) == 0)
            c += 2 + strspn(c + 3, "0123456789");
    }
    return digest;
}

/* What follows a word at the start of a line, or NULL. */
static const char *after(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 ? line + n : NULL;
}

/* Text and JSON. */
static void read_line(planned *is, const char *line)
{
    const char *predicted = strstr(line, "; predicted time "), *number;
    is->digest = digest_line(is->digest, line);
    is->plans += after(line, "plan ") || after(line, "  \"plan\": ");
    is->steps += after(line, "    step ") != NULL;
    if ((number = after(line, "  total: ")) || (number = after(line, "    \"collectives\": ")))
        is->collectives += atoi(number);
    if ((number = after(line, "    \"steps\": ")))
        is->steps += atoi(number);
    if ((number = after(line, "    \"seconds\": ")))
        is->nanoseconds += 1e9 * atof(number);
    if (predicted)
        is->nanoseconds += nanoseconds_of(predicted + 17);
}

uint32_t program_digest(const program *p)
{
    char *text = NULL;
    size_t size = 0;
    uint32_t digest = 2166136261u;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return 0;
    print_program(file, p, NULL);
    fclose(file);
    digest = digest_line(digest, text);
    free(text);
    return digest;
}

planned read_plans(FILE *file)
{
    planned is = {.digest = 2166136261u};
    char *line = NULL;
    size_t size = 0;
    clearerr(file);
    while (getline(&line, &size, file) > 0)
        read_line(&is, line);
    free(line);
    return is;
}
