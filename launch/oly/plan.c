/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly plan`: runs a program as rank 0 of a simulated job and prints the plans it makes. */
#define _GNU_SOURCE
#include "oly.h"
#include "page.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 512 << 20 };

typedef struct temporary {
    char folder[64], plans[96], errors[96];
} temporary;

static bool make_temporary(temporary *t)
{
    const char *folder = getenv("TMPDIR");
    snprintf(t->folder, sizeof t->folder, "%s/oly-plan-XXXXXX",
             folder && folder[0] == '/' && strlen(folder) < sizeof t->folder - 20 ? folder : "/tmp");
    if (!mkdtemp(t->folder))
        return false;
    snprintf(t->plans, sizeof t->plans, "%s/plans", t->folder);
    snprintf(t->errors, sizeof t->errors, "%s/errors", t->folder);
    return true;
}

static void remove_temporary(const temporary *t)
{
    unlink(t->plans);
    unlink(t->errors);
    rmdir(t->folder);
}

/* What the program has printed on standard error, except for how a simulation ends. */
static void show_errors(const char *path)
{
    char *text;
    size_t length;
    if (tool_read(path, MOST_BYTES, &text, &length) != OLY_OK) {
        oly_drop_message();
        return;
    }
    fwrite(text, 1, length, stderr);
    free(text);
}

static oly_status print_plans(const temporary *t, bool json, const char *html, const char *source)
{
    page_parts parts = {0};
    oly_text out = {0};
    char *text;
    size_t length;
    OLY_TRY(tool_read(t->plans, MOST_BYTES, &text, &length));
    oly_status st = OLY_OK;
    if (!json && !html) {
        oly_text_add_chars(&out, text, length);
        st = tool_write("-", &out);
    } else {
        st = page_add_plans(&parts.plans, "plans", text, length);
        oly_text_add(&out, "[");
        oly_text_add_chars(&out, oly_text_chars(&parts.plans), parts.plans.length);
        oly_text_add(&out, "]\n");
        if (st == OLY_OK && json)
            st = tool_write("-", &out);
        if (st == OLY_OK && html)
            st = page_write(html, &parts, source);
    }
    free(text);
    oly_text_free(&out);
    page_free(&parts);
    return st;
}

static int run_simulated(char **command, const temporary *t, bool json)
{
    char explain[128];
    snprintf(explain, sizeof explain, "%s:%s", json ? "json" : "text", t->plans);
    setenv("OLYMPUS_EXPLAIN", explain, 1);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int errors = open(t->errors, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int status = tool_run(command, nowhere, errors);
    close(nowhere);
    close(errors);
    return status;
}

static int show(char **command, bool json, const char *html, const char *source)
{
    temporary t = {"", "", ""};
    if (!make_temporary(&t))
        return tool_fail("no temporary folder can be made (TMPDIR)");
    int status = run_simulated(command, &t, json || html);
    bool made = access(t.plans, F_OK) == 0;
    if (status != 0 || !made)
        show_errors(t.errors);
    int result = 0;
    if (made && print_plans(&t, json, html, source) != OLY_OK)
        result = tool_fail_pending();
    if (made && html && result == 0)
        fprintf(stderr, "oly plan: wrote %s\n", html);
    if (!made)
        result = tool_fail("%s made no plan (status %d); is it a program of Olympus?", command[0], status);
    else if (status != 0)
        tool_fail("the program ended with status %d, as those do that read values, which a simulation has not; these "
                  "are the plans "
                  "made until then",
                  status);
    remove_temporary(&t);
    return result;
}

int plan_main(int argc, char **argv)
{
    const char *mesh = tool_option(&argc, argv, "--mesh"), *node = tool_option(&argc, argv, "--node");
    const char *html = tool_option(&argc, argv, "--html"), *source = tool_option(&argc, argv, "--source");
    bool json = tool_flag(&argc, argv, "--json");
    int ranks, devices;
    char rest;
    if (mesh && (sscanf(mesh, "%dx%d%c", &ranks, &devices, &rest) != 2 || ranks < 1 || devices < 1))
        return tool_usage("--mesh %s: ranks and devices of each, as --mesh 16x8", mesh);
    if ((html && !*html) || (node && !*node) || (source && !*source))
        return tool_usage("--html, --node and --source need a value");
    if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "--") != 0)
        return tool_usage("unknown option %s", argv[1]);
    tool_end_of_options(&argc, argv);
    if (argc < 2)
        return tool_usage("which program?");
    if (!mesh && !getenv("OLYMPUS_SIMULATE"))
        return tool_usage("for which machine? --mesh RANKSxDEVICES, as --mesh 16x8");
    if (mesh)
        setenv("OLYMPUS_SIMULATE", mesh, 1);
    if (node)
        setenv("OLYMPUS_SIMULATE_NODE", node, 1);
    argv[argc] = NULL;
    return show(argv + 1, json, html, source);
}
