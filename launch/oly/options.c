/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly options`: the table of option.def with the values that the environment sets, as a program started here would read them. */
#include "oly.h"
#include "core/option.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

typedef struct row {
    const char *variable, *help, *fallback; /* of a text */
    bool text;
    int64_t number, low, high; /* else */
} row;

static const row rows[] = {
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help)                                              \
    {variable, help, NULL, false, fallback, low, high},
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help) {variable, help, fallback, true, 0, 0, 0},
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* What a person should not read over another's shoulder. */
static const char *shown(const row *r)
{
    const char *value = getenv(r->variable);
    return value && strstr(r->variable, "SECRET") ? "(set, not shown)" : value;
}

/* Why a program would refuse the value; "" if it would not. */
static void check(const row *r, oly_text *why)
{
    const char *value = getenv(r->variable);
    char *end;
    if (!value || r->text)
        return;
    long long number = strtoll(value, &end, 10);
    if (!*value || *end || *value == ' ')
        oly_text_add(why, "not a whole number");
    else if (number < r->low || number > r->high)
        oly_text_add(why, "not from %" PRId64 " to %" PRId64, r->low, r->high);
}

static bool is_known(const char *name, size_t length)
{
    for (int k = 0; k < N_ROWS; k++)
        if (strlen(rows[k].variable) == length && strncmp(rows[k].variable, name, length) == 0)
            return true;
    return false;
}

static void print_row(const row *r, bool everything, int *wrong)
{
    const char *value = shown(r);
    oly_text why = {0};
    check(r, &why);
    *wrong += why.length > 0;
    if (value || everything) {
        printf("%s=%s%s%s%s\n    %s; default ", r->variable, value ? value : "", why.length ? "   <- " : "",
               oly_text_chars(&why), value ? "" : "   (not set)", r->help);
        if (r->text)
            printf("\"%s\"\n", r->fallback);
        else
            printf("%" PRId64 ", %" PRId64 " to %" PRId64 "\n", r->number, r->low, r->high);
    }
    oly_text_free(&why);
}

static int print_unknown(void)
{
    int n = 0;
    for (char **entry = environ; entry && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "OLYMPUS_", 8) != 0 || is_known(*entry, length) || length > 90)
            continue;
        char name[96];
        memcpy(name, *entry, length);
        name[length] = 0;
        printf("%s   <- unknown, and ignored; did you mean %s?\n", name, oly_option_nearest(name));
        n++;
    }
    return n;
}

static void add_value_json(oly_text *t, bool *first, const row *r)
{
    const char *value = shown(r);
    oly_text why = {0};
    check(r, &why);
    tool_key(t, first, r->variable);
    bool inner = true;
    oly_text_add(t, "{");
    tool_key(t, &inner, "value");
    if (value)
        tool_quote(t, value);
    else
        oly_text_add(t, "null");
    tool_key(t, &inner, "default");
    if (r->text)
        tool_quote(t, r->fallback);
    else
        oly_text_add(t, "%" PRId64, r->number);
    tool_member(t, &inner, "help", r->help);
    if (why.length)
        tool_member(t, &inner, "wrong", oly_text_chars(&why));
    oly_text_add(t, "}");
    oly_text_free(&why);
}

static int print_json(void)
{
    oly_text t = {0};
    bool first = true;
    oly_text_add(&t, "{");
    for (int k = 0; k < N_ROWS; k++)
        add_value_json(&t, &first, &rows[k]);
    oly_text_add(&t, "}\n");
    oly_status st = tool_write("-", &t);
    oly_text_free(&t);
    return st == OLY_OK ? 0 : tool_fail_pending();
}

int options_main(int argc, char **argv)
{
    bool everything = tool_flag(&argc, argv, "--all"), json = tool_flag(&argc, argv, "--json");
    int wrong = 0, set = 0;
    if (argc > 1)
        return tool_usage("unexpected argument %s", argv[1]);
    if (json)
        return print_json();
    for (int k = 0; k < N_ROWS; k++) {
        set += getenv(rows[k].variable) != NULL;
        print_row(&rows[k], everything, &wrong);
    }
    wrong += print_unknown();
    if (!everything)
        printf("%d of %d options are set; oly options --all lists all of them\n", set, (int)N_ROWS);
    return wrong ? TOOL_FAILED : 0;
}
