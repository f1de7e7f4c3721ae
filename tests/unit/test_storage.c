/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  Files: whole reads and writes or an error that names path and reason, whatever the disk does; and the disk with faults
 * that other tests use loses exactly what was not synchronised. */
#include "check.h"
#include "faulty_storage.h"
#include "file/file.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/olympus-storage-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_entry(void *context, const char *name)
{
    (void)context;
    const char *path = in_folder(name);
    return unlink(path) == 0 || rmdir(path) == 0 ? 0 : -errno;
}

static int tear_down(void **state)
{
    (void)state;
    faulty_storage_end();
    oly_storage_kernel.list(folder, remove_entry, NULL);
    return rmdir(folder);
}

static void expect_failure(oly_status got, const char *part)
{
    assert_int_equal(got, OLY_IO);
    if (!strstr(oly_pending_message(), part))
        fail_msg("\"%s\" is not in the message \"%s\"", part, oly_pending_message());
    oly_drop_message();
}

/* Creates or opens the file, writes the text at the start, and maybe synchronises. */
static oly_status put(const char *name, const char *text, bool sync)
{
    const char *path = in_folder(name);
    int file = oly_storage_get()->open(path, O_RDWR | O_CREAT, 0666);
    if (file < 0)
        return oly_file_fail("open", path, file);
    oly_status st = oly_file_write(file, path, text, strlen(text), 0);
    if (st == OLY_OK && sync)
        st = oly_file_sync(file, path);
    oly_status closed = oly_file_close(file, path);
    return st == OLY_OK ? closed : st;
}

/* "" for an empty file, NULL if there is none. */
static const char *contents(const char *name)
{
    static char text[64];
    char *bytes;
    size_t n;
    oly_file_facts facts;
    if (oly_storage_get()->lstat(in_folder(name), &facts) == -ENOENT)
        return NULL;
    assert_int_equal(oly_file_read_all(in_folder(name), sizeof text - 1, &bytes, &n), OLY_OK);
    memcpy(text, bytes, n + 1);
    oly_release(bytes);
    return text;
}

static void whole_reads_and_writes(void **state)
{
    (void)state;
    assert_int_equal(put("a", "0123456789", true), OLY_OK);
    faulty_storage_begin(&(faulty_disk){.longest_write = 3, .calls = FAULTY_WRITE | FAULTY_READ});
    assert_string_equal(contents("a"), "0123456789");
    assert_int_equal(faulty_storage_calls(), 4);
    assert_int_equal(put("b", "9876543210", false), OLY_OK);
    assert_string_equal(contents("b"), "9876543210");
    int file;
    oly_file_facts facts;
    char bytes[16];
    assert_int_equal(oly_file_open(in_folder("a"), &file, &facts), OLY_OK);
    assert_int_equal(facts.size, 10);
    expect_failure(oly_file_read(file, in_folder("a"), bytes, 4, 8), "it ends at byte 10, 2 bytes too early");
    assert_int_equal(oly_file_close(file, "a"), OLY_OK);
}

static void failures_name_path_and_reason(void **state)
{
    (void)state;
    int file;
    oly_file_facts facts;
    bool exists;
    expect_failure(oly_file_open(in_folder("none"), &file, &facts), "none: No such file or directory");
    expect_failure(oly_file_open(folder, &file, &facts), "it is a folder, not a regular file");
    expect_failure(oly_file_open("/dev/null", &file, &facts), "/dev/null: it is a device");
    assert_int_equal(put("a", "x", false), OLY_OK);
    expect_failure(oly_file_create(in_folder("a"), in_folder("a"), 0666, &file), "File exists");
    assert_int_equal(oly_file_may_replace(in_folder("a"), &exists), OLY_OK);
    assert_true(exists);
    assert_int_equal(oly_file_may_replace(in_folder("b"), &exists), OLY_OK);
    assert_false(exists);
    expect_failure(oly_file_may_replace(folder, &exists), "it is there, and a folder");
    expect_failure(oly_file_may_replace("/dev/null", &exists), "no regular file");
    char *bytes;
    size_t n;
    assert_int_equal(put("a", "0123456789", false), OLY_OK);
    expect_failure(oly_file_read_all(in_folder("a"), 9, &bytes, &n), "it has 10 bytes, and such a file at most 9");
    assert_null(bytes);
    oly_fail_allocation(0);
    assert_int_equal(oly_file_read_all(in_folder("a"), 10, &bytes, &n), OLY_MEMORY);
    oly_drop_message();
    oly_fail_allocation(-1);
}

static void calls_fail_in_turn(void **state)
{
    (void)state;
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_ANY});
    assert_int_equal(put("a", "text", true), OLY_OK);
    long n = faulty_storage_calls();
    assert_int_equal(n, 4); /* open, write, fsync, close */
    for (long k = 1; k <= n; k++) {
        faulty_storage_begin(&(faulty_disk){.calls = FAULTY_ANY, .fail_at = k, .error = ENOSPC});
        expect_failure(put("a", "text", true), "a: No space left on device");
        assert_int_equal(put("b", "text", true), OLY_OK);
    }
    faulty_storage_begin(&(faulty_disk){.room = 6});
    expect_failure(put("c", "01234567", true), "c: No space left on device");
    assert_string_equal(contents("c"), "012345");
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_WRITE, .fail_at = 1, .only = "/d"});
    assert_int_equal(put("c", "c", false), OLY_OK);
    expect_failure(put("d", "d", false), "d: Input/output error");
}

static void what_is_not_synchronised_is_lost(void **state)
{
    (void)state;
    assert_int_equal(put("old", "old", true), OLY_OK);
    for (int synced = 0; synced < 3; synced++) {
        faulty_storage_begin(&(faulty_disk){.log = true});
        assert_int_equal(put("new", "new", synced >= 1), OLY_OK);
        assert_int_equal(oly_storage_get()->rename(in_folder("new"), in_folder("old")), 0);
        assert_int_equal(oly_storage_get()->mkdir(in_folder("made"), 0777), 0);
        if (synced >= 2)
            assert_int_equal(oly_file_sync_folder_of(in_folder("old")), OLY_OK);
        assert_string_equal(contents("old"), "new");
        faulty_storage_reboot(0);
        assert_null(contents("new"));
        assert_string_equal(contents("old"), synced >= 2 ? "new" : "old");
        assert_int_equal(access(in_folder("made"), F_OK), synced >= 2 ? 0 : -1);
    }
    faulty_storage_begin(&(faulty_disk){.log = true}); /* names are kept, contents not */
    assert_int_equal(put("next", "next", false), OLY_OK);
    assert_int_equal(oly_storage_get()->rename(in_folder("next"), in_folder("old")), 0);
    faulty_storage_reboot(1);
    assert_string_equal(contents("old"), "");
}

static void the_power_fails_at_a_call(void **state)
{
    (void)state;
    assert_int_equal(put("a", "before", true), OLY_OK);
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_CHANGES, .cut_at = 2});
    expect_failure(put("a", "AFTER", true), "a: Input/output error");
    expect_failure(put("b", "b", true), "b: Input/output error");
    faulty_storage_reboot(0);
    assert_string_equal(contents("a"), "before");
    int lost = 0;
    for (uint64_t which = 2; which < 34; which++) {
        faulty_storage_begin(&(faulty_disk){.log = true});
        assert_int_equal(put("a", "second", false), OLY_OK);
        assert_int_equal(oly_storage_get()->unlink(in_folder("a")), 0);
        faulty_storage_reboot(which);
        lost += contents("a") == NULL;
        assert_int_equal(put("a", "before", true), OLY_OK);
    }
    assert_in_range(lost, 4, 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole_reads_and_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_name_path_and_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calls_fail_in_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_synchronised_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_power_fails_at_a_call, set_up, tear_down),
    };
    return CHECK_MAIN(tests);
}
