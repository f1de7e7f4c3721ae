/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8 timeout=300  Checkpoints on disks that fail, are full, or lose power: after every failure, at every call, on
 * any rank, all ranks return the same, and what is read is whole: the checkpoint of before, or the new one, never a mix. Damaged files
 * are refused, byte by byte. */
#include "check_session.h"
#include "checkpoint_folder.h"
#include "core/error.h"
#include "faulty_storage.h"
#include "array/checkpoint/checkpoint.h"
#include "file/storage.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char folder[256];
static int steps;       /* a value is saved as the checkpoint of this step at most: 100 and 200 have the same */
static int silent = -1; /* standard error, while refusals are expected */

static void hush(void)
{
    fflush(stderr);
    silent = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

static void speak(void)
{
    fflush(stderr);
    if (silent >= 0) {
        dup2(silent, STDERR_FILENO);
        close(silent);
    }
    silent = -1;
}

static int open_folder(void **state)
{
    steps = 1000000;
    check_folder_make(folder, sizeof folder);
    return check_start(state);
}

static int close_folder(void **state)
{
    speak();
    oly_checkpoint_chunk = 1 << 20;
    faulty_storage_end();
    check_finish(state);
    check_folder_remove(folder);
    return 0;
}

/* -- two arrays whose values tell the step --------------------------------------------------------------------------------- */

typedef struct saved {
    oly_array x, y;
} saved;

static saved make(int step)
{
    oly_mesh mesh = oly_make_mesh("a=4, b=2");
    oly_array x = oly_device_put(oly_full(step, OLY_INT32, 30, 11), oly_named(mesh, "a, b"));
    oly_array y = oly_device_put(oly_full(step, OLY_INT64, 5), oly_named(mesh, ""));
    return (saved){x, y};
}

static oly_status save(int step, bool async, int keep)
{
    saved s = make(step);
    oly_status st =
        oly_save(folder, OLY_NAMES("x", "y"), OLY_IN(s.x, s.y), .step = step % steps, .async = async, .keep = keep);
    return st == OLY_OK && async ? oly_save_wait() : st;
}

static int value_of(oly_array x)
{
    oly_array low = oly_min(x), high = oly_max(x);
    assert_true(oly_item(low) == oly_item(high)); /* no mix */
    return (int)oly_item(low);
}

/* What is read now; -1: nothing can be. */
static int restored(void)
{
    int value = -1;
    OLY_SCOPE
    {
        saved s = make(0);
        oly_status st = oly_restore(folder, OLY_NAMES("x", "y"), OLY_OUT(s.x, s.y));
        if (st == OLY_OK) {
            value = value_of(s.x);
            assert_int_equal(value, value_of(s.y));
        } else {
            assert_int_equal(st, OLY_IO);
            oly_clear_error();
        }
    }
    return value;
}

/* All ranks got the same status. */
static void check_alike(oly_status st)
{
    int32_t mine = (int32_t)st, first = mine;
    assert_int_equal(oly_broadcast_host(&first, sizeof first, .is_source = oly_process_index() == 0), OLY_OK);
    assert_int_equal(mine, first);
}

static bool anywhere(bool here)
{
    int32_t all[64], mine = here;
    assert_int_equal(oly_allgather_host(&mine, sizeof mine, all), OLY_OK);
    for (int r = 0; r < oly_process_count(); r++)
        here = here || all[r];
    return here;
}

/* -- failing calls ------------------------------------------------------------------------------------------------------------ */

/* Call n fails on one rank, once or from then on. Afterwards everything works again. */
static bool fail_at(long n, bool for_ever, int error)
{
    int rank = (int)(n % oly_process_count());
    faulty_disk disk = {.calls = FAULTY_ANY,
                        .fail_at = oly_process_index() == rank ? n / oly_process_count() + 1 : 0,
                        .fail_count = for_ever ? -1 : 0,
                        .error = error};
    int before = restored();
    int next = before + 1;
    bool hit = false;
    oly_status st = OLY_OK;
    faulty_storage_begin(&disk);
    OLY_SCOPE
    {
        st = save(next, n & 1, 2);
        hit = anywhere(disk.fail_at > 0 && faulty_storage_calls() >= disk.fail_at);
    }
    faulty_storage_end();
    check_alike(st);
    if (st != OLY_OK)
        assert_true(oly_last_error()[0] != '\0');
    oly_clear_error();
    int now = restored();
    assert_true(st == OLY_OK ? now == next : now == before || now == next);
    return hit;
}

static void every_call_fails_once(void **state)
{
    (void)state;
    hush();
    assert_int_equal(save(1, false, 2), OLY_OK);
    long n = 0, missed = 0;
    for (; missed<2 * oly_process_count(); n += oly_process_count()> 1 ? 3 : 1)
        missed = fail_at(n, false, EIO) ? 0 : missed + 1;
    assert_true(n > 30 * oly_process_count());
    for (n = 0, missed = 0; missed<2 * oly_process_count(); n += oly_process_count()> 1 ? 5 : 2)
        missed = fail_at(n, true, ENOSPC) ? 0 : missed + 1;
    assert_int_equal(save(5000, false, 1), OLY_OK); /* clears what is left of all of them */
    assert_int_equal(check_folder_count(folder, ""), 1);
}

/* A disk with little room on one rank: the message says which, and why; the others do not wait. */
static void a_full_disk(void **state)
{
    (void)state;
    int rank = oly_process_count() - 1;
    assert_int_equal(save(1, false, 2), OLY_OK);
    for (int64_t room = 64; room < 300; room += 77) {
        faulty_storage_begin(&(faulty_disk){.room = oly_process_index() == rank ? room : 0});
        oly_status st = save(2, room % 2, 2);
        faulty_storage_end();
        assert_int_equal(st, OLY_IO);
        assert_non_null(strstr(oly_last_error(), "No space left on device"));
        assert_non_null(strstr(oly_last_error(), oly_process_count() > 1 ? "rank 1: " : "step-"));
        oly_clear_error();
        assert_int_equal(check_folder_count(folder, ""), 1); /* nothing is left of it */
    }
    char other[sizeof folder + 8]; /* nor of a folder made for it */
    snprintf(other, sizeof other, "%s/other", folder);
    faulty_storage_begin(&(faulty_disk){.room = oly_process_index() == rank ? 64 : 0});
    assert_int_equal(oly_save(other, OLY_NAMES("x"), OLY_IN(make(1).x), .step = 1), OLY_IO);
    faulty_storage_end();
    oly_clear_error();
    oly_sync("saved");
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(restored(), 1);
}

/* Writes that take only some of the bytes are continued. */
static void short_writes_and_reads(void **state)
{
    (void)state;
    faulty_storage_begin(&(faulty_disk){.longest_write = 7});
    assert_int_equal(save(5, false, 2), OLY_OK);
    assert_int_equal(restored(), 5);
    faulty_storage_end();
    assert_int_equal(restored(), 5);
}

/* The failure of a background save is reported by the next one, on all ranks, once; then saving works again. */
static void a_background_failure_is_reported_next(void **state)
{
    (void)state;
    saved s = make(1);
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_SYNC, .fail_at = 1, .fail_count = -1, .only = ".npy"});
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(s.x), .async = true, .step = 3), OLY_OK);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(s.x), .async = true, .step = 4), OLY_IO);
    faulty_storage_end();
    assert_non_null(strstr(oly_last_error(), "the checkpoint of step 3 in"));
    assert_non_null(strstr(oly_last_error(), "Input/output error"));
    oly_clear_error();
    assert_int_equal(check_folder_count(folder, ""), 0);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(s.x), .async = true, .step = 4), OLY_OK);
    assert_int_equal(oly_save_wait(), OLY_OK);
    assert_int_equal(oly_latest_step(folder), 4);
}

/* Opens as the kernel does, after another program's next save has removed what it takes for the remains of a killed one. */
static int open_in_vain(const char *path, int flags, unsigned mode)
{
    const char *end = strstr(path, ".tmp/");
    if (end) {
        char beginning[OLY_CHECKPOINT_PATH];
        snprintf(beginning, sizeof beginning, "%.*s", (int)(end + 4 - path), path);
        oly_checkpoint_remove(beginning);
    }
    return oly_storage_kernel.open(path, flags, mode);
}

static void two_programs_in_one_folder(void **state)
{
    (void)state;
    saved s = make(1);
    oly_storage other = oly_storage_kernel;
    other.open = open_in_vain;
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(s.x), .step = 3), OLY_OK);
    oly_storage_set(&other);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(s.x), .step = 4), OLY_IO);
    oly_storage_set(NULL);
    assert_non_null(strstr(oly_last_error(), "No such file or directory"));
    assert_non_null(strstr(oly_last_error(), "does another program save into this folder?"));
    oly_clear_error();
    assert_int_equal(oly_latest_step(folder), 3);
}

/* -- losses of power ------------------------------------------------------------------------------------------------------------ */

/* The power fails before call n of one rank, and with it all lose what was not synchronised. False: n is beyond the last call. */
static bool cut_at(long n, uint64_t which, int next, int keep, oly_status *status)
{
    bool here = oly_process_index() == n % oly_process_count(), hit;
    faulty_disk disk = {.calls = FAULTY_CHANGES, .cut_at = here ? n / oly_process_count() + 1 : 0, .log = true};
    faulty_storage_begin(&disk);
    oly_status st = save(next, false, keep);
    hit = anywhere(here && faulty_storage_calls() >= disk.cut_at);
    oly_sync("the power fails");
    for (int r = 0; r < oly_process_count(); r++) { /* the last rank's changes came last */
        if (r == oly_process_count() - 1 - oly_process_index())
            faulty_storage_reboot(which);
        oly_sync("on");
    }
    oly_clear_error();
    check_alike(st);
    *status = st;
    return hit;
}

/* Every name without a dot is a whole checkpoint. */
static bool all_are_whole(void)
{
    int n;
    bool whole = true;
    oly_checkpoint_found *found;
    assert_int_equal(oly_checkpoint_scan(folder, &n, &found), OLY_OK);
    for (int k = 0; k < n; k++)
        if (!found[k].replaced)
            OLY_SCOPE
            {
                saved s = make(0);
                whole = oly_restore(folder, OLY_NAMES("x", "y"), OLY_OUT(s.x, s.y), .only_step = &found[k].step) ==
                            OLY_OK &&
                        whole;
            }
    oly_release(found);
    oly_clear_error();
    return whole;
}

static void power_fails_anywhere(void **state)
{
    (void)state;
    hush();
    for (int way = 0; way < 3; way++) { /* another step; the same step again; one that removes the one before */
        long missed = 0;
        steps = way == 1 ? 100 : 1000000;
        check_folder_make(folder, sizeof folder);
        oly_sync("made");
        assert_int_equal(save(1, false, 2), OLY_OK);
        for (long n = 0; missed<oly_process_count(); n += oly_process_count()> 1 ? 5 : 1) /* both ranks' */
            for (uint64_t which = 0; which < 4; which++) {
                int before = restored(), next = way == 1 ? before + 100 : before + 1;
                assert_true(before > 0);
                oly_status st;
                bool hit = cut_at(n, which + 10 * (uint64_t)n * (which > 1), next, way == 2 ? 1 : 2, &st);
                bool whole = all_are_whole();
                int now = restored();
                if (!whole || (now != next && (now != before || st == OLY_OK)))
                    fail_msg("way %d, call %ld, loss %d: %d instead of %d or %d", way, n, (int)which, now, before,
                             next);
                missed = hit ? 0 : missed + (which == 3);
            }
    }
}

/* And again while the next save clears up. */
static void power_fails_twice(void **state)
{
    (void)state;
    hush();
    uint64_t seed = 7;
    steps = 100;
    assert_int_equal(save(1, false, 2), OLY_OK);
    for (int round = 0; round < (oly_process_count() > 1 ? 15 : 60); round++) {
        int before = restored(), next = before + 100, after = before + 200; /* the same step: the most renames */
        assert_true(before > 0);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        long n = (long)(seed >> 33) % 40, m = (long)(seed >> 48) % 40;
        oly_status st, again;
        cut_at(n, seed >> 8 & 3, next, 2, &st);
        cut_at(m, seed >> 10 & 3, after, 2, &again);
        int now = restored();
        assert_true(all_are_whole());
        assert_true(now == after || (again != OLY_OK && (now == next || (st != OLY_OK && now == before))));
    }
}

/* -- damage ----------------------------------------------------------------------------------------------------------------------- */

/* Changes one byte of a file (rank 0), or cuts the file there; returns what it takes to mend that. */
static char change(const char *file, long at, char by, bool cut)
{
    char path[512], byte = 0;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (oly_process_index() == 0) {
        int f = open(path, O_RDWR | O_CLOEXEC);
        assert_true(f >= 0);
        assert_int_equal(pread(f, &byte, 1, at), 1);
        char changed = (char)(byte ^ by);
        if (cut)
            assert_int_equal(ftruncate(f, at), 0);
        else
            assert_int_equal(pwrite(f, &changed, 1, at), 1);
        close(f);
    }
    return byte;
}

static long size_of(const char *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    fclose(f);
    return size;
}

static void damage_every(const char *file, long step)
{
    long size = size_of(file);
    assert_true(size > 0);
    for (long at = oly_process_count() > 1 ? step / 2 : 0; at < size; at += step) {
        char by = (char)(1 << at % 8);
        change(file, at, by, false);
        oly_sync("damaged");
        assert_int_equal(restored(), 1);
        oly_sync("read");
        change(file, at, by, false);
        oly_sync("whole again");
    }
    assert_int_equal(restored(), 2);
}

/* A flipped bit in any byte of any file, and files cut anywhere: the checkpoint before is taken. */
static void every_byte_is_guarded(void **state)
{
    (void)state;
    hush();
    long step = oly_process_count() > 1 ? 151 : 1;
    assert_int_equal(save(1, false, 2), OLY_OK);
    assert_int_equal(save(2, false, 2), OLY_OK);
    damage_every("step-00000002/manifest", step);
    damage_every("step-00000002/000000-x-00003.npy", step);
    damage_every("step-00000002/000001-y-00000.npy", step);
}

static void cut_every(const char *file, long step)
{
    char kept[300];
    snprintf(kept, sizeof kept, "%s.kept", folder);
    check_folder_copy(folder, kept);
    oly_sync("kept");
    for (long at = size_of(file) - 1; at >= 0; at -= step) {
        change(file, at, 0, true);
        oly_sync("cut");
        assert_int_equal(restored(), 1);
        oly_sync("read");
    }
    check_folder_copy(kept, folder);
    check_folder_remove(kept);
    oly_sync("back");
    assert_int_equal(restored(), 2);
}

static void every_truncation_is_seen(void **state)
{
    (void)state;
    hush();
    long step = oly_process_count() > 1 ? 151 : 1;
    assert_int_equal(save(1, false, 2), OLY_OK);
    assert_int_equal(save(2, false, 2), OLY_OK);
    cut_every("step-00000002/manifest", step);
    cut_every("step-00000002/000000-x-00007.npy", step);
}

static void shell(const char *command)
{
    char full[1024];
    oly_sync("before the command");
    if (oly_process_index() == 0) {
        snprintf(full, sizeof full, "cd '%s' && %s", folder, command);
        assert_int_equal(system(full), 0);
    }
    oly_sync("after the command");
}

/* Files that are gone, longer, links, pipes, or those of another checkpoint. */
static void foreign_files_are_refused(void **state)
{
    static const char *const tricks[] = {
        "rm step-00000002/000001-y-00000.npy",
        "echo >>step-00000002/000001-y-00000.npy",
        "rm step-00000002/manifest",
        "rm step-00000002/manifest && mkfifo step-00000002/manifest",
        "rm step-00000002/manifest && mkdir step-00000002/manifest",
        "rm step-00000002/000000-x-00000.npy && mkfifo step-00000002/000000-x-00000.npy",
        "mv step-00000002/000000-x-00000.npy /dev/shm/o.npy$$ && ln -s /dev/shm/o.npy$$ "
        "step-00000002/000000-x-00000.npy; rm /dev/shm/o.npy$$",
        "cp step-00000001/000000-x-00000.npy step-00000002/000000-x-00000.npy",
        "cp step-00000001/manifest step-00000002/manifest",
        "mv step-00000001 a && mv step-00000002 step-00000001 && mv a step-00000002; touch -d "
        "@0 step-00000001",
        ": >step-00000002/manifest",
        "head -c 100000 /dev/urandom >step-00000002/manifest",
        "sed -i 's/^olympus-checkpoint 1/olympus-checkpoint 2/' step-00000002/manifest",
        "truncate -s 300M step-00000002/manifest"};
    (void)state;
    char kept[300];
    snprintf(kept, sizeof kept, "%s.kept", folder);
    hush();
    assert_int_equal(save(1, false, 2), OLY_OK);
    assert_int_equal(save(2, false, 2), OLY_OK);
    check_folder_copy(folder, kept);
    for (size_t k = 0; k < sizeof tricks / sizeof *tricks; k++) {
        shell(tricks[k]);
        int got = restored();
        if (got != (k == 9 ? -1 : 1))
            fail_msg("%s: %d", tricks[k], got);
        oly_sync("read");
        check_folder_copy(kept, folder);
    }
    shell("touch file step-1 step-0000000a step-00000003 && mkdir step-4 step-00000005 step--0000001 "
          ".step-00000006.1234.tmp");
    assert_int_equal(restored(), 2); /* names that are none, and an empty one */
    check_folder_remove(kept);
}

/* -- memory ----------------------------------------------------------------------------------------------------------------------- */

/* Every allocation of oly_save and oly_restore fails once: an error, and everything works afterwards. */
static void every_allocation_fails_once(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return; /* operations around them, which are not agreed upon, would end the job */
    hush();
    saved s = make(1), t = make(0);
    assert_int_equal(oly_save(folder, OLY_NAMES("x", "y"), OLY_IN(s.x, s.y), .step = 1), OLY_OK);
    for (int what = 0; what < 2; what++) {
        oly_status st = OLY_MEMORY;
        for (long n = 0; st != OLY_OK; n++) {
            assert_true(n < 5000);
            oly_fail_allocation(n);
            st = what == 0 ? oly_save(folder, OLY_NAMES("x", "y"), OLY_IN(s.x, s.y), .step = 2, .keep = -1)
                           : oly_restore(folder, OLY_NAMES("x", "y"), OLY_OUT(t.x, t.y));
            oly_fail_allocation(-1);
            assert_true(st == OLY_OK || st == OLY_MEMORY);
            oly_clear_error();
            assert_int_equal(value_of(t.x), what == 1 && st == OLY_OK);
        }
    }
    assert_int_equal(restored(), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)
    const struct CMUnitTest tests[] = {TEST(every_call_fails_once),      TEST(a_full_disk),
                                       TEST(short_writes_and_reads),     TEST(a_background_failure_is_reported_next),
                                       TEST(two_programs_in_one_folder), TEST(power_fails_anywhere),
                                       TEST(power_fails_twice),          TEST(every_byte_is_guarded),
                                       TEST(every_truncation_is_seen),   TEST(foreign_files_are_refused),
                                       TEST(every_allocation_fails_once)};
    return CHECK_MAIN(tests);
}
