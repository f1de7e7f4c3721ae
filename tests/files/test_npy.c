/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Arrays saved as .npy and loaded again: every element type, shape and sharding, by any number of ranks; a failure on one
 * rank is the same error on all of them, and leaves nothing. */
#include "check_files.h"
#include "check_session.h"
#include "communicator.h"
#include "core/error.h"
#include "faulty_storage.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that are good elements of any type: bools are 0 or 1, floats small numbers. */
static void fill(oly_dtype dtype, int64_t n, unsigned char *bytes)
{
    size_t size = oly_dtype_size(dtype);
    for (size_t k = 0; k < (size_t)n * size; k++)
        bytes[k] = dtype == OLY_BOOL ? (unsigned char)(k * 7 / 5 % 2) : (unsigned char)(k * 37 % 64 + k / 256);
}

static bool same_everywhere(oly_array x, const void *wanted, size_t bytes)
{
    char *got = malloc(bytes + 1);
    assert_int_equal(oly_process_allgather(x, got, bytes), OLY_OK);
    bool same = memcmp(got, wanted, bytes) == 0;
    free(got);
    return same;
}

static const char *const specs[] = {"i, j", "j, i", "(i,j)", "i", "None, (j,i)", "", "None, i", "j"};
enum { SPECS = sizeof specs / sizeof *specs };

static void every_type_comes_back(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    const int64_t shape[] = {13, 6, 3};
    unsigned char bytes[13 * 6 * 3 * 16];
    for (int dtype = 0; dtype<OLY_N_DTYPES; dtype += oly_process_count()> 2 ? 3 : 1)
        OLY_SCOPE
        {
            size_t n = 13 * 6 * 3 * oly_dtype_size((oly_dtype)dtype);
            fill((oly_dtype)dtype, 13 * 6 * 3, bytes);
            oly_array x =
                oly_device_put(oly_from_host(bytes, (oly_dtype)dtype, 3, shape), oly_named(mesh, specs[dtype % SPECS]));
            assert_int_equal(oly_save_npy(check_files_path("x.npy"), x), OLY_OK);
            oly_array y = oly_load_npy(check_files_path("x.npy"), oly_named(mesh, specs[(dtype + 3) % SPECS]));
            assert_non_null(y);
            assert_int_equal(oly_dtype_of(y), dtype);
            assert_true(same_everywhere(y, bytes, n));
        }
    assert_string_equal(check_files_names(), "x.npy");
}

/* Written with one sharding, read with every other, and again over other meshes. */
static void every_sharding_reads_what_every_other_wrote(void **state)
{
    (void)state;
    oly_mesh meshes[] = {oly_make_mesh("i=4, j=2"), oly_make_mesh("i=2, j=4"), oly_make_mesh("i=1, j=8")};
    const int64_t shape[] = {11, 5};
    oly_array x = oly_reshape(oly_arange(55, OLY_FLOAT32), 11, 5), y;
    float wanted[55];
    for (int k = 0; k < 55; k++)
        wanted[k] = (float)k;
    for (int w = 0; w < SPECS; w++)
        OLY_SCOPE
        {
            assert_int_equal(
                oly_save_npy(check_files_path("x.npy"), oly_device_put(x, oly_named(meshes[w % 3], specs[w]))), OLY_OK);
            for (int r = w % 4; r<SPECS; r += oly_process_count()> 1 ? 4 : 1) {
                y = oly_load_npy(check_files_path("x.npy"), oly_named(meshes[(w + r) % 3], specs[r]));
                assert_true(same_everywhere(y, wanted, sizeof wanted));
                assert_true(oly_is_committed(y));
                assert_float_equal(oly_item(oly_sum(y)), 55 * 54 / 2, 0);
            }
            y = oly_load_npy(check_files_path("x.npy"), NULL);
            assert_false(oly_is_committed(y));
            assert_memory_equal(oly_shape(y), shape, sizeof shape);
            assert_true(same_everywhere(y, wanted, sizeof wanted));
            y = oly_add(y, oly_device_put(x, oly_named(meshes[0], "i"))); /* it combines */
            assert_float_equal(oly_item(oly_sum(y)), 55 * 54, 0);
        }
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), x), OLY_OK); /* uncommitted */
    assert_true(
        same_everywhere(oly_load_npy(check_files_path("x.npy"), oly_named(meshes[1], "i, j")), wanted, sizeof wanted));
}

static void empty_and_scalar_arrays(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=8");
    const int64_t shape[] = {3, 0, 2};
    oly_array empty = oly_device_put(oly_from_host("", OLY_INT16, 3, shape), oly_named(mesh, "i"));
    assert_int_equal(oly_save_npy(check_files_path("empty.npy"), empty), OLY_OK);
    oly_array y = oly_load_npy(check_files_path("empty.npy"), oly_named(mesh, "None, i"));
    assert_int_equal(oly_rank(y), 3);
    assert_memory_equal(oly_shape(y), shape, sizeof shape);
    assert_int_equal(oly_save_npy(check_files_path("scalar.npy"), oly_full(2.5, OLY_FLOAT64)), OLY_OK);
    assert_float_equal(oly_item(oly_load_npy(check_files_path("scalar.npy"), oly_named(mesh, ""))), 2.5, 0);
    assert_float_equal(oly_item(oly_load_npy(check_files_path("scalar.npy"), NULL)), 2.5, 0);
    oly_array few = oly_device_put(oly_arange(3, OLY_INT32), oly_named(mesh, "i")); /* five devices have nothing */
    assert_int_equal(oly_save_npy(check_files_path("few.npy"), few), OLY_OK);
    assert_float_equal(oly_item(oly_sum(oly_load_npy(check_files_path("few.npy"), oly_named(mesh, "i")))), 3, 0);
}

/* -- failures -------------------------------------------------------------------------------------------------------------------- */

static void refused(oly_array got, oly_status wanted, const char *part)
{
    assert_null(got);
    CHECK_FAILS(oly_last_status(), wanted, part);
}

static void every_failing_call_leaves_everything_as_it_was(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    oly_array x = oly_device_put(oly_reshape(oly_arange(60, OLY_FLOAT32), 12, 5), oly_named(mesh, "i, j"));
    oly_array old = oly_device_put(oly_arange(7, OLY_INT32), oly_named(mesh, "i"));
    int64_t calls = 0, here, most = 0;
    static int64_t all[64];
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), old), OLY_OK);
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_ANY});
    assert_int_equal(oly_save_npy(check_files_path("y.npy"), x), OLY_OK);
    here = faulty_storage_calls();
    faulty_storage_end();
    oly_block_until_ready(x);
    assert_int_equal(oly_world_gather(&here, all, sizeof here), OLY_OK);
    for (int r = 0; r < oly_process_count(); r++)
        most = all[r] > most ? all[r] : most;
    for (int guilty = 0; guilty<oly_process_count(); guilty += oly_process_count()> 1 ? oly_process_count() - 1 : 1)
        for (calls = 1; calls <= all[guilty]; calls += oly_process_count() > 2 && calls + 3 < all[guilty] ? 3 : 1) {
            bool mine = oly_process_index() == guilty;
            faulty_storage_begin(&(faulty_disk){.calls = FAULTY_ANY, .fail_at = mine ? calls : 0, .error = ENOSPC});
            oly_status st = oly_save_npy(check_files_path("x.npy"), x);
            faulty_storage_end();
            bool renamed =
                guilty == 0 && calls == all[0]; /* the folder's synchronisation fails: the file is there already */
            CHECK_FAILS(st, OLY_IO, "No space left on device");
            if (!renamed) {
                assert_string_equal(check_files_names(), "x.npy y.npy");
                assert_float_equal(oly_item(oly_sum(oly_load_npy(check_files_path("x.npy"), oly_named(mesh, "i")))), 21,
                                   0);
            }
            assert_int_equal(oly_save_npy(check_files_path("x.npy"), old), OLY_OK);
        }
    CHECK_FAILS(oly_save_npy(check_files_path("no/where.npy"), x), OLY_IO, "no/where.npy: No such file or directory");
    CHECK_FAILS(oly_save_npy(check_files_folder(), x), OLY_IO, "a folder");
    CHECK_FAILS(oly_save_npy("/dev/null", x), OLY_IO, "no regular file");
    CHECK_FAILS(oly_save_npy("/proc/x.npy", x), OLY_IO, "cannot write /proc/x.npy");
    assert_string_equal(check_files_names(), "x.npy y.npy");
}

static void a_full_disk_on_one_rank_is_an_error_on_all(void **state)
{
    (void)state;
    int last = oly_process_count() - 1;
    char rank[32];
    snprintf(rank, sizeof rank, "(on rank %d)", last);
    oly_array x = oly_device_put(oly_arange(4000, OLY_FLOAT32), oly_named(oly_make_mesh("i=8"), "i"));
    faulty_storage_begin(&(faulty_disk){.room = oly_process_index() == last ? 15000 : 0});
    CHECK_FAILS(oly_save_npy(check_files_path("x.npy"), x), OLY_IO, oly_process_count() > 1 ? rank : "No space left");
    faulty_storage_end();
    assert_string_equal(check_files_names(), "");
    faulty_storage_begin(&(faulty_disk){.longest_write = 100, .calls = FAULTY_WRITE}); /* short writes are no failure */
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), x), OLY_OK);
    faulty_storage_end();
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_READ, .fail_at = oly_process_index() == last ? 3 : 0});
    refused(oly_load_npy(check_files_path("x.npy"), oly_named(oly_make_mesh("i=8"), "i")), OLY_IO,
            "Input/output error");
    faulty_storage_end();
    assert_float_equal(oly_item(oly_sum(oly_load_npy(check_files_path("x.npy"), NULL))), 4000.0 * 3999 / 2, 0);
}

/* As another program that saves the same path does with what it takes for the remains of a killed one. */
static int rename_what_is_gone(const char *from, const char *to)
{
    oly_storage_kernel.unlink(from);
    return oly_storage_kernel.rename(from, to);
}

static void two_programs_that_save_one_path_are_told(void **state)
{
    (void)state;
    oly_storage storage = oly_storage_kernel;
    storage.rename = rename_what_is_gone;
    oly_array x = oly_device_put(oly_arange(64, OLY_INT32), oly_named(oly_make_mesh("i=8"), "i"));
    oly_storage_set(&storage);
    CHECK_FAILS(oly_save_npy(check_files_path("x.npy"), x), OLY_IO, "does another program save this file?");
    oly_storage_set(NULL);
    assert_string_equal(check_files_names(), "");
}

static void put(const char *name, const void *bytes, size_t n)
{
    if (oly_process_index() == 0) {
        int file = open(check_files_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        assert_int_equal(write(file, bytes, n), n);
        close(file);
    }
    assert_int_equal(oly_sync(name), OLY_OK);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    char bytes[400];
    oly_sharding split = oly_named(oly_make_mesh("i=8"), "i");
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), oly_device_put(oly_arange(64, OLY_INT32), split)), OLY_OK);
    int file = open(check_files_path("x.npy"), O_RDONLY);
    assert_int_equal(read(file, bytes, sizeof bytes), 384);
    close(file);
    for (size_t n = 0; n < 384; n += n < 16 && oly_process_count() == 1 ? 5 : 77) {
        put("t.npy", bytes, n);
        refused(oly_load_npy(check_files_path("t.npy"), split), OLY_IO, "t.npy");
    }
    put("t.npy", "PK\3\4.................................", 30);
    refused(oly_load_npy(check_files_path("t.npy"), split), OLY_IO, "oly_load_npz");
    refused(oly_load_npy(check_files_path("none.npy"), split), OLY_IO, "none.npy: No such file or directory");
    refused(oly_load_npy(check_files_folder(), split), OLY_IO, "a folder");
    refused(oly_load_npy(NULL, split), OLY_INVALID, "the path is NULL");
    refused(oly_load_npy(check_files_path("x.npy"), oly_named(oly_make_mesh("i=8"), "None, i")), OLY_SHARDING, "");
    put("t.npy", bytes, 384); /* one that ranks see differently: by a path of their own */
    put("u.npy", bytes, 383);
    if (oly_process_count() > 1) {
        refused(oly_load_npy(check_files_path(oly_process_index() ? "t.npy" : "x.npy"), split), OLY_DIVERGED,
                "different arguments");
        CHECK_FAILS(oly_save_npy(check_files_path(oly_process_index() ? "t.npy" : "x.npy"), oly_arange(3, OLY_INT32)),
                    OLY_DIVERGED, "different arguments");
    }
}

/* Ranks whose path leads to files of their own, as on disks that hosts do not share. */
static void ranks_that_see_different_files(void **state)
{
    (void)state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    bool own = oly_process_index() > 0;
    oly_array x = oly_device_put(oly_arange(64, OLY_INT32), oly_named(oly_make_mesh("i=8"), "i"));
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), x), OLY_OK);
    assert_int_equal(oly_save_npy(check_files_path("other"), oly_arange(65, OLY_INT32)), OLY_OK);
    if (oly_process_index() == 0) {
        assert_int_equal(mkdir(check_files_path("own"), 0777), 0);
        assert_int_equal(rename(check_files_path("other"), check_files_path("own/x.npy")), 0);
    }
    oly_sync("moved");
    assert_int_equal(chdir(own ? check_files_path("own") : check_files_folder()), 0);
    if (oly_process_count() > 1) {
        refused(oly_load_npy("x.npy", oly_named(oly_make_mesh("i=8"), "i")), OLY_IO, "not the same file everywhere");
        CHECK_FAILS(oly_save_npy("y.npy", x), OLY_IO, "a file system that all hosts share");
    }
    assert_int_equal(chdir(before), 0);
    assert_string_equal(check_files_names(), "own x.npy");
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    if (user)
        oly_save_npy("/tmp/never.npy", in[0]);
    else
        oly_load_npy("/tmp/never.npy", NULL);
}

static void not_while_tracing(void **state)
{
    (void)state;
    for (int saves = 0; saves < 2; saves++) {
        oly_array y = NULL, x = oly_arange(3, OLY_FLOAT32);
        oly_fn f = oly_jit(traced, 1, 1, .user = saves ? &saves : NULL);
        assert_int_not_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
        CHECK_FAILS(oly_last_status(), OLY_TRACE, "recorded");
    }
}

static void ranks_that_the_mesh_leaves_out_may_call(void **state)
{
    (void)state;
    int devices[] = {5, 4};
    oly_mesh part = oly_mesh_from_devices(1, (const char *[]){"i"}, (int[]){2}, devices);
    oly_array x = oly_device_put(oly_arange(9, OLY_FLOAT32), oly_named(part, "i"));
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), x), OLY_OK);
    oly_array y = oly_load_npy(check_files_path("x.npy"), oly_named(part, "i"));
    assert_non_null(y);
    assert_int_equal(oly_dim(y, 0), 9);
    float all[9];
    assert_int_equal(oly_process_allgather(y, all, sizeof all), OLY_OK);
    assert_float_equal(all[8], 8, 0);
    CHECK_FAILS(oly_save_npy(check_files_path("no/x.npy"), x), OLY_IO, "No such file");
    refused(oly_load_npy(check_files_path("no/x.npy"), oly_named(part, "i")), OLY_IO, "No such file");
    if (x && oly_shard_count(x) > 0) /* members alone */
        assert_int_equal(oly_save_npy(check_files_path("y.npy"), x), OLY_OK);
    assert_string_equal(check_files_names(), "x.npy y.npy");
}

/* -- size ------------------------------------------------------------------------------------------------------------------------ */

/* Bytes that this process has had in memory at most. */
static long peak(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss * 1024;
}

/* A file of 64 MiB, also in Fortran order and by columns: no process needs much more than its part. */
static void memory_is_bounded(void **state)
{
    (void)state;
    enum { N = 4096 };
    static const char *const header =
        "\x93NUMPY\x01\x00v\x00{'descr': '>i4', 'fortran_order': True, 'shape': (4096, 4096), }";
    char bytes[128];
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00v\x00", 10);
    memcpy(bytes + 10, header + 10, strlen(header + 10));
    put("large.npy", bytes, sizeof bytes);
    if (oly_process_index() == 0) {
        static int32_t column[N];
        int file = open(check_files_path("large.npy"), O_WRONLY);
        for (int j = 0; j < N; j++) {
            for (int i = 0; i < N; i++)
                column[i] = (int32_t)__builtin_bswap32((uint32_t)(i * N + j));
            assert_int_equal(pwrite(file, column, sizeof column, 128 + (off_t)j * (off_t)sizeof column), sizeof column);
        }
        close(file);
    }
    oly_sync("large");
    oly_mesh mesh = oly_make_mesh("i=8");
    long part = (long)N * N * 4 / oly_process_count(), before = peak();
    (void)part, (void)before;
    for (int k = 0; k < 2; k++)
        OLY_SCOPE
        {
            oly_array x = oly_load_npy(check_files_path("large.npy"), oly_named(mesh, k ? "i" : "None, i"));
            assert_non_null(x);
            assert_int_equal(oly_save_npy(check_files_path("back.npy"), x), OLY_OK);
            OLY_FOR_EACH_SHARD(s, x)
            {
                const int32_t *values = s.memory;
                for (int64_t i = 0; i < s.extent[0]; i += 97)
                    for (int64_t j = 0; j < s.extent[1]; j += 89)
                        if (values[i * s.extent[1] + j] != (s.start[0] + i) * N + s.start[1] + j)
                            fail_msg("element %ld, %ld", (long)(s.start[0] + i), (long)(s.start[1] + j));
            }
        }
#ifndef __SANITIZE_ADDRESS__
    bool copies = getenv("PROTECTED") || strcmp(oly_device_platform(oly_get_device(0)), "cpu") != 0; /* of all shards */
    if (!copies)
        assert_in_range(peak() - before, 0, part + part / 2 + (24 << 20));
#endif
    oly_array back = oly_load_npy(check_files_path("back.npy"), oly_named(mesh, "i"));
    OLY_FOR_EACH_SHARD(s, back)
    assert_int_equal(((const int32_t *)s.memory)[N + 5], (s.start[0] + 1) * N + 5);
}

/* 2^32 elements and more: sparse files, of which a few parts are read. */
static void beyond_four_gigabytes(void **state)
{
    (void)state;
    char bytes[128];
    const char *text = "{'descr': '|i1', 'fortran_order': False, 'shape': (5, 1073741824, 1), }";
    memset(bytes, ' ', sizeof bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00v\x00", 10);
    memcpy(bytes + 10, text, strlen(text));
    put("sparse.npy", bytes, sizeof bytes);
    int64_t at = INT64_C(4) << 30;
    if (oly_process_index() == 0) {
        int file = open(check_files_path("sparse.npy"), O_WRONLY);
        assert_int_equal(ftruncate(file, 128 + (INT64_C(5) << 30)), 0);
        assert_int_equal(pwrite(file, "\7", 1, 128 + at + 12345), 1);
        close(file);
    }
    oly_sync("sparse");
    refused(oly_load_raw(check_files_path("sparse.npy"), 129, OLY_INT8, 1, ((int64_t[]){INT64_C(5) << 30}), NULL),
            OLY_IO, "ends at byte 5368709249");
    const int64_t shape[] = {20000};
    oly_array x = oly_load_raw(check_files_path("sparse.npy"), 128 + at, OLY_INT8, 1, shape,
                               oly_named(oly_make_mesh("i=8"), "i"));
    assert_float_equal(oly_item(oly_argmax(x)), 12345, 0);
    assert_int_equal(oly_save_raw(check_files_path("sparse.npy"), 128 + at + 30000, x), OLY_OK);
    x = oly_load_raw(check_files_path("sparse.npy"), 128 + at + 40000, OLY_INT8, 1, shape, NULL);
    assert_float_equal(oly_item(oly_argmax(x)), 2345, 0);
}

static void raw_volumes(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    const int64_t shape[] = {5, 4, 3};
    oly_array x = oly_device_put(oly_reshape(oly_arange(60, OLY_INT32), 5, 4, 3), oly_named(mesh, "j, i"));
    int32_t wanted[60], transposed[60], swapped[60];
    for (int i = 0, k = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            for (int l = 0; l < 3; l++, k++) {
                wanted[k] = k;
                swapped[k] = (int32_t)__builtin_bswap32((uint32_t)k);
                transposed[(l * 4 + j) * 5 + i] = swapped[k];
            }
    assert_int_equal(oly_save_raw(check_files_path("x.raw"), 7, x), OLY_OK);
    assert_true(
        same_everywhere(oly_load_raw(check_files_path("x.raw"), 7, OLY_INT32, 3, shape, oly_named(mesh, "i, None, j")),
                        wanted, sizeof wanted));
    assert_int_equal(oly_save_raw(check_files_path("x.raw"), 247, x, .big_endian = true), OLY_OK); /* extends it */
    assert_true(same_everywhere(oly_load_raw(check_files_path("x.raw"), 247, OLY_INT32, 3, shape, NULL), swapped,
                                sizeof swapped));
    assert_true(same_everywhere(
        oly_load_raw(check_files_path("x.raw"), 247, OLY_INT32, 3, shape, oly_named(mesh, "j"), .big_endian = true),
        wanted, sizeof wanted));
    assert_true(
        same_everywhere(oly_load_raw(check_files_path("x.raw"), 7, OLY_INT32, 3, shape, NULL), wanted, sizeof wanted));
    assert_int_equal(oly_save_raw(check_files_path("f.raw"), 0, x, .big_endian = true, .fortran = true), OLY_OK);
    assert_true(same_everywhere(oly_load_raw(check_files_path("f.raw"), 0, OLY_INT32, 3, shape, oly_named(mesh, "i")),
                                transposed, sizeof transposed));
    assert_true(same_everywhere(oly_load_raw(check_files_path("f.raw"), 0, OLY_INT32, 3, shape,
                                             oly_named(mesh, "None, j, i"), .big_endian = true, .fortran = true),
                                wanted, sizeof wanted));
    /* a failure: the file is as before, in place, too, as of files with many other bytes, where only the length is */
    int last = oly_process_count() - 1;
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_WRITE, .fail_at = oly_process_index() == last ? 1 : 0});
    CHECK_FAILS(oly_save_raw(check_files_path("x.raw"), 1000, x), OLY_IO, "Input/output error");
    faulty_storage_end();
    struct stat found;
    assert_int_equal(stat(check_files_path("x.raw"), &found), 0);
    assert_int_equal(found.st_size, 487);
    assert_true(
        same_everywhere(oly_load_raw(check_files_path("x.raw"), 7, OLY_INT32, 3, shape, NULL), wanted, sizeof wanted));
    assert_string_equal(check_files_names(), "f.raw x.raw");
    enum { LARGE = 5 << 20 };
    if (oly_process_index() == 0)
        assert_int_equal(truncate(check_files_path("f.raw"), LARGE), 0);
    oly_sync("the file is large");
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_WRITE, .fail_at = oly_process_index() == last ? 1 : 0});
    CHECK_FAILS(oly_save_raw(check_files_path("f.raw"), LARGE, x), OLY_IO, "Input/output error");
    faulty_storage_end();
    assert_int_equal(stat(check_files_path("f.raw"), &found), 0);
    assert_int_equal(found.st_size, LARGE);
    assert_int_equal(oly_save_raw(check_files_path("f.raw"), LARGE - 240, x), OLY_OK);
    assert_true(same_everywhere(oly_load_raw(check_files_path("f.raw"), LARGE - 240, OLY_INT32, 3, shape, NULL), wanted,
                                sizeof wanted));
    CHECK_FAILS(oly_save_raw(check_files_path("x.raw"), -1, x), OLY_INVALID, "the offset is -1");
    CHECK_FAILS(oly_save_raw(check_files_path("x.raw"), INT64_MAX, x), OLY_OVERFLOW, "2^63");
    refused(oly_load_raw(check_files_path("x.raw"), 248, OLY_INT32, 3, shape, NULL), OLY_IO, "the file has 487");
    refused(oly_load_raw(check_files_path("x.raw"), 0, (oly_dtype)77, 3, shape, NULL), OLY_INVALID, "");
}

/* What a killed process has left of the same file goes, nothing else. */
static void leftovers_are_removed_by_the_next_save(void **state)
{
    (void)state;
    static const char *const names[] = {".a.npy-0123456789abcdef.part", ".a.npy-00000000000000ff.part",
                                        ".b.npy-0123456789abcdef.part", ".a.npy-0123456789abcdeg.part", "a.npy.part"};
    for (int k = 0; k < 5 && oly_process_index() == 0; k++) {
        FILE *f = fopen(check_files_path(names[k]), "w");
        assert_non_null(f);
        fclose(f);
    }
    oly_sync("the files are there");
    assert_int_equal(oly_save_npy(check_files_path("a.npy"), oly_arange(6, OLY_INT32)), OLY_OK);
    assert_string_equal(check_files_names(),
                        ".a.npy-0123456789abcdeg.part .b.npy-0123456789abcdef.part a.npy a.npy.part");
    assert_int_equal(oly_save_npy(check_files_path("b.npy"), oly_arange(6, OLY_INT32)), OLY_OK);
    assert_string_equal(check_files_names(), ".a.npy-0123456789abcdeg.part a.npy a.npy.part b.npy");
}

/* -- memory -------------------------------------------------------------------------------------------------------------------- */

static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    if (oly_process_count() > 1) /* what one rank's means for others is tested by test_out_of_memory */
        return;
    oly_sharding split = oly_named(oly_make_mesh("i=8"), "i");
    oly_array x = oly_device_put(oly_arange(64, OLY_INT32), split);
    assert_int_equal(oly_save_npy(check_files_path("x.npy"), x), OLY_OK);
    bool failed = true;
    for (long n = 0; failed; n++) {
        oly_fail_allocation(n);
        failed = oly_save_npy(check_files_path("y.npy"), x) != OLY_OK;
        oly_fail_allocation(-1);
        if (failed)
            CHECK_FAILS(oly_last_status(), OLY_MEMORY, "out of memory");
        assert_string_equal(check_files_names(), failed ? "x.npy" : "x.npy y.npy");
    }
    failed = true;
    for (long n = 0; failed; n++) {
        oly_fail_allocation(n);
        oly_array y = oly_load_npy(check_files_path("x.npy"), split);
        oly_fail_allocation(-1);
        if ((failed = !y))
            CHECK_FAILS(oly_last_status(), OLY_MEMORY, "out of memory");
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, check_files_set_up, check_files_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_comes_back),
        TEST(every_sharding_reads_what_every_other_wrote),
        TEST(empty_and_scalar_arrays),
        TEST(every_failing_call_leaves_everything_as_it_was),
        TEST(a_full_disk_on_one_rank_is_an_error_on_all),
        TEST(two_programs_that_save_one_path_are_told),
        TEST(damaged_files_are_refused),
        TEST(ranks_that_see_different_files),
        TEST(not_while_tracing),
        TEST(ranks_that_the_mesh_leaves_out_may_call),
        TEST(memory_is_bounded),
        TEST(beyond_four_gigabytes),
        TEST(raw_volumes),
        TEST(leftovers_are_removed_by_the_next_save),
        TEST(lack_of_memory_is_reported),
    };
    return CHECK_MAIN(tests);
}
