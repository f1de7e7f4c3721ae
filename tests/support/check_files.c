/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders of tests. See check_files.h. */
#include "check_files.h"
#include "check.h"
#include "communicator.h"
#include "faulty_storage.h"
#include <dirent.h>
#include <olympus.h>
#include <unistd.h>

static char folder[64];

static void make_on_first(void)
{
    snprintf(folder, sizeof folder, "/tmp/olympus-test-XXXXXX");
    if (oly_process_index() == 0)
        assert_non_null(mkdtemp(folder));
}

void check_files_begin(void)
{
    make_on_first();
    oly_block_until_ready(oly_zeros(1, OLY_FLOAT32));
    assert_int_equal(oly_world_share(folder, sizeof folder, 0), OLY_OK);
}

const char *check_files_folder(void)
{
    return folder;
}

const char *check_files_path(const char *name)
{
    static char paths[8][192];
    static int k;
    k = (k + 1) % 8;
    snprintf(paths[k], sizeof paths[k], "%s/%s", folder, name);
    return paths[k];
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

const char *check_files_names(void)
{
    static char text[1024];
    struct dirent **entries;
    assert_int_equal(oly_sync("names"), OLY_OK);
    int n = scandir(folder, &entries, is_entry, by_name);
    text[0] = '\0';
    for (int k = 0; k < n; k++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", k ? " " : "", entries[k]->d_name);
        free(entries[k]);
    }
    if (n >= 0)
        free(entries);
    assert_int_equal(oly_sync("names read"), OLY_OK);
    return text;
}

void check_files_end(void)
{
    assert_int_equal(oly_sync("remove"), OLY_OK);
    if (oly_process_index() == 0) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        assert_int_equal(system(command), 0);
    }
}

int check_files_set_up(void **state)
{
    (void)state;
    check_begin();
    oly_enable_x64(true);
    check_files_begin();
    return 0;
}

int check_files_tear_down(void **state)
{
    (void)state;
    faulty_storage_end();
    check_files_end();
    check_end();
    return 0;
}
