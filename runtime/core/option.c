/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from the environment, the check for unknown names, and the library's version. Read by launch at
 * start. */
#include "core/option.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/optimisation.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define PREFIX "OLYMPUS_"

oly_options oly_option = {
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help) .name = fallback,
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)           .name = fallback,
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
};

static oly_options
    asked; /* as in the environment, before unavailable platforms are removed from oly_option.platforms */

static const char *const variables[] = {
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help) variable,
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)           variable,
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
};
#define N_VARIABLES ((int)(sizeof variables / sizeof *variables))

const char *oly_version(void)
{
    oly_pass(__func__);
    return OLY_STR(OLY_VERSION_MAJOR) "." OLY_STR(OLY_VERSION_MINOR);
}

/* -- values ------------------------------------------------------------------------------------ */

static oly_status read_int(int64_t *value, int64_t fallback, int64_t low, int64_t high, const char *variable)
{
    const char *text = getenv(variable);
    *value = fallback;
    if (!text)
        return OLY_OK;
    const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
    bool number = *digits != 0 && digits[strspn(digits, "0123456789")] == 0;
    if (!number)
        return oly_fail(OLY_INVALID, "%s=\"%s\" is not a whole number; give one from %" PRId64 " to %" PRId64, variable,
                        text, low, high);
    errno = 0;
    int64_t read = strtoll(text, NULL, 10);
    if (errno == ERANGE || read < low || read > high)
        return oly_fail(OLY_INVALID, "%s=%s is out of range; give a number from %" PRId64 " to %" PRId64, variable,
                        text, low, high);
    *value = read;
    return OLY_OK;
}

static oly_status read_text(char *value, size_t size, const char *fallback, const char *variable)
{
    const char *text = getenv(variable);
    if (!text)
        text = fallback;
    if (strlen(text) >= size)
        return oly_fail(OLY_INVALID, "%s has %zu characters; at most %zu are allowed", variable, strlen(text),
                        size - 1);
    memmove(value, text, strlen(text) + 1);
    return OLY_OK;
}

/* -- platforms --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *is; /* its name here; NULL: no build has it. Whether it is there is found out when it is opened */
} platforms[] = {{"cpu", "cpu"}, {"cuda", "cuda"}, {"gpu", "cuda"}, {"tpu", NULL}};
#define N_PLATFORMS ((int)(sizeof platforms / sizeof *platforms))

static oly_status find_platform(const char *name, size_t length, int *found)
{
    for (*found = 0; *found < N_PLATFORMS; ++*found)
        if (strlen(platforms[*found].name) == length && memcmp(platforms[*found].name, name, length) == 0)
            return OLY_OK;
    return oly_fail(OLY_INVALID,
                    "OLYMPUS_PLATFORMS: unknown platform \"%.*s\" in \"%s\"; known are cpu, cuda, gpu, tpu",
                    (int)length, name, oly_option.platforms);
}

/* Leaves in oly_option.platforms the available ones, in the requested order. */
static oly_status choose_platforms(void)
{
    char available[sizeof oly_option.platforms] = "";
    size_t n = 0;
    for (const char *at = oly_option.platforms;; at++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ", ");
        int platform;
        OLY_TRY(find_platform(at, length, &platform));
        if (platforms[platform].is) /* at most a character longer than its name in the list */
            n += (size_t)snprintf(available + n, n < sizeof available ? sizeof available - n : 0, "%s%s", n ? "," : "",
                                  platforms[platform].is);
        at += length;
        at += strspn(at, " ");
        if (*at == 0)
            break;
        if (*at != ',')
            return oly_fail(OLY_INVALID, "OLYMPUS_PLATFORMS=\"%s\": names are separated by commas",
                            oly_option.platforms);
    }
    if (n == 0)
        return oly_fail(OLY_INVALID, "OLYMPUS_PLATFORMS=\"%s\": no such platform here; there are cuda and cpu",
                        oly_option.platforms);
    if (n >= sizeof available)
        return oly_fail(OLY_INVALID, "OLYMPUS_PLATFORMS: the list is too long");
    memcpy(oly_option.platforms, available, n + 1);
    return OLY_OK;
}

/* -- unknown names ----------------------------------------------------------------------------- */

#define LONGEST_NAME 96

/* Edit distance (Levenshtein), one row of the table at a time. */
static int distance(const char *a, const char *b)
{
    int row[LONGEST_NAME + 1];
    int n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

static bool is_known(const char *name)
{
    for (int i = 0; i < N_VARIABLES; i++)
        if (strcmp(name, variables[i]) == 0)
            return true;
    return strcmp(name, "OLYMPUS_SECRET") == 0; /* read by olymeet; no option, since options are printed and compared */
}

const char *oly_option_nearest(const char *name)
{
    int best = 0, best_distance = LONGEST_NAME;
    for (int i = 0; i < N_VARIABLES; i++) {
        int d = distance(name, variables[i]);
        if (d < best_distance) {
            best = i;
            best_distance = d;
        }
    }
    return variables[best];
}

/* All ranks usually have the same environment: only one of them prints, once. */
void oly_options_report_unknown(void)
{
    static bool reported;
    if (reported || oly_error_rank() > 0)
        return;
    reported = true;
    for (char **entry = environ; entry && *entry; entry++) {
        char name[LONGEST_NAME];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || length >= sizeof name)
            continue;
        memcpy(name, *entry, length);
        name[length] = 0;
        if (!is_known(name))
            fprintf(stderr, "olympus: unknown option %s ignored; did you mean %s?\n", name, oly_option_nearest(name));
    }
}

/* -- all of them ------------------------------------------------------------------------------- */

oly_status oly_options_read(void)
{
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help)                                              \
    OLY_TRY(read_int(&oly_option.name, fallback, low, high, variable));
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)                                                        \
    OLY_TRY(read_text(oly_option.name, sizeof oly_option.name, fallback, variable));
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
    OLY_TRY(oly_optimisations_parse(oly_option.disable, &oly_disabled_by_option));
    asked = oly_option;
    return choose_platforms();
}

/* -- what ranks must share --------------------------------------------------------------------- */

enum { OPTION_OWN = false, OPTION_SAME = true };

const oly_options *oly_options_asked(void)
{
    return &asked;
}

uint64_t oly_options_fingerprint(void)
{
    uint64_t h = 0;
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help)                                              \
    if (OPTION_##shared)                                                                                               \
        h = oly_hash_mix(h, (uint64_t)asked.name);
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)                                                        \
    if (OPTION_##shared)                                                                                               \
        h = oly_hash_text(h, asked.name);
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
    return h;
}

static oly_status ints_differ(const char *variable, int64_t zero, int rank, int64_t other)
{
    return oly_fail(OLY_DIVERGED,
                    "%s is %" PRId64 " on rank 0, but %" PRId64
                    " on rank %d; all ranks must have the same (with mpirun: "
                    "-x %s)",
                    variable, zero, other, rank, variable);
}

static oly_status texts_differ(const char *variable, const char *zero, int rank, const char *other)
{
    return oly_fail(OLY_DIVERGED,
                    "%s is \"%s\" on rank 0, but \"%s\" on rank %d; all ranks must have the same (with mpirun: -x %s)",
                    variable, zero, other, rank, variable);
}

oly_status oly_options_compare(const oly_options *zero, int rank, const oly_options *other)
{
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help)                                              \
    if (OPTION_##shared && zero->name != other->name)                                                                  \
        return ints_differ(variable, zero->name, rank, other->name);
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)                                                        \
    if (OPTION_##shared && strcmp(zero->name, other->name) != 0)                                                       \
        return texts_differ(variable, zero->name, rank, other->name);
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
    return OLY_OK;
}

void oly_print_options(void)
{
    OLY_ENTER_ANY_TIME();
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help)                                              \
    printf("%s=%" PRId64 "\n    %s; %d to %d, default %d\n", variable, oly_option.name, help, low, high, fallback);
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)                                                        \
    printf("%s=%s\n    %s; default \"%s\"\n", variable, oly_option.name, help, fallback);
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
    printf("Optimisations that OLYMPUS_DISABLE turns off:\n");
    for (int k = 0; k < OLY_N_OPTIMISATIONS; k++)
        printf("    %s%s: %s\n", oly_optimisation_name((oly_optimisation)k),
               oly_enabled((oly_optimisation)k) ? "" : " (off)", oly_optimisation_text((oly_optimisation)k));
}
