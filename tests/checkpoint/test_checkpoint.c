/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Checkpoints: what is saved comes back with the same bits, on any mesh and sharding, of any type and shape, with its
 * step, text and numbers; the newest are kept; what is asked for wrongly is refused, naming what differs. */
#include "check_session.h"
#include "checkpoint_folder.h"
#include "array/checkpoint/checkpoint.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static int open_folder(void **state)
{
    check_folder_make(folder, sizeof folder);
    return check_start(state);
}

static int close_folder(void **state)
{
    oly_checkpoint_chunk = 1 << 20;
    check_finish(state);
    check_folder_remove(folder);
    return 0;
}

/* -- the same bits everywhere ---------------------------------------------------------------------------------------------- */

static const char *const meshes[] = {"x=8", "x=4, y=2", "x=2, y=4", "x=2, y=2, z=2", "x=7",
                                     "x=5", "x=3",      "x=6",      "x=2",           "x=1"};
enum { MESHES = sizeof meshes / sizeof *meshes };

/* The k-th sharding for arrays of two dimensions. */
static oly_sharding sharding_of(int k)
{
    static const char *const specs[][4] = {{"x, None", "None, x", "x", ""},
                                           {"x, y", "y, x", "(x,y), None", "None, (y,x)"},
                                           {"x, y", "None, y", "(y,x), None", "y"},
                                           {"(x,y), z", "z, (y,x)", "y", "None, z"}};
    int mesh = k % MESHES, spec = k / MESHES % 4;
    return oly_named(oly_make_mesh(meshes[mesh]), specs[mesh < 4 ? mesh : 0][spec]);
}

static void check_same(oly_array got, oly_array wanted)
{
    oly_array there = oly_device_put(got, oly_sharding_of(wanted));
    assert_non_null(there);
    assert_true(oly_item(oly_sum(oly_ne(there, wanted))) == 0);
}

static void every_mesh_reads_what_every_mesh_wrote(void **state)
{
    (void)state;
    oly_checkpoint_chunk = 4096; /* several chunks in each file */
    for (int from = 0; from < 4 * MESHES; from += 3) {
        OLY_SCOPE
        {
            oly_array x = oly_random_normal_sharded(oly_random_key(from), OLY_FLOAT32, sharding_of(from), 101, 37);
            assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = from), OLY_OK);
            for (int to = from % 5; to < 4 * MESHES; to += 5) {
                oly_array y = NULL;
                oly_sharding wanted[] = {sharding_of(to)};
                int64_t step = -1;
                assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .shardings = wanted, .step = &step),
                                 OLY_OK);
                assert_int_equal(step, from);
                assert_ptr_equal(oly_sharding_of(y), wanted[0]);
                assert_true(oly_is_committed(y));
                check_same(y, x);
            }
        }
    }
}

static void every_type_and_shape(void **state)
{
    enum { MOST = 40 };
    static const int64_t shapes[][3] = {{0}, {5}, {0}, {3, 0}, {2, 3, 7}, {17, 1, 1}};
    static const int ranks[] = {0, 1, 1, 2, 3, 3};
    (void)state;
    oly_array saved[MOST], got[MOST] = {NULL};
    const char *names[MOST];
    static char name[MOST][48];
    int n = 0;
    oly_sharding split = oly_named(oly_make_mesh("x=8"), "x");
    for (int d = 0; d < OLY_N_DTYPES; d++)
        for (int s = d % 2; s < 6; s += 3, n++) {
            snprintf(name[n], sizeof name[n], "%s/%d %% .é", oly_dtype_name((oly_dtype)d), s); /* any bytes */
            names[n] = name[n];
            oly_array ones = oly_ones_shape(OLY_INT32, ranks[s], shapes[s]);
            oly_array x = oly_astype(oly_add(oly_cumsum(oly_reshape(ones, -1), 0), d), (oly_dtype)d);
            x = oly_reshape_shape(x, ranks[s], shapes[s]);
            saved[n] = ranks[s] > 0 && s % 2 ? oly_device_put(x, split) : x;
            assert_non_null(saved[n]);
        }
    assert_int_equal(oly_save(folder, n, names, n, saved), OLY_OK);
    assert_int_equal(oly_restore_arrays(folder, n, names, n, got), OLY_OK);
    for (int k = 0; k < n; k++) {
        assert_int_equal(oly_dtype_of(got[k]), oly_dtype_of(saved[k]));
        assert_int_equal(oly_rank(got[k]), oly_rank(saved[k]));
        assert_false(oly_is_committed(got[k])); /* nothing was asked for: a whole copy on each process */
        if (oly_size(saved[k]) > 0)
            check_same(oly_device_put(got[k], oly_sharding_of(saved[k])), saved[k]);
    }
}

/* Large replicated boxes are written in pieces by several ranks, each piece once. */
static void replicas_are_written_together(void **state)
{
    (void)state;
    enum { ROWS = 3001, COLUMNS = 1024 };
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_array x = oly_random_normal_sharded(oly_random_key(5), OLY_FLOAT32, oly_named(mesh, ""), ROWS, COLUMNS),
              y = NULL;
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x)), OLY_OK);
    assert_int_equal(check_folder_count(folder, "step-00000000"), 3); /* 12 MiB in two pieces, and the manifest */
    oly_sharding split[] = {oly_named(mesh, "(y,x)")};
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .shardings = split), OLY_OK);
    check_same(y, x);
}

/* -- what comes along ------------------------------------------------------------------------------------------------------ */

static void step_text_and_numbers_come_along(void **state)
{
    (void)state;
    oly_array x = oly_arange(10, OLY_INT32), y = NULL;
    const int64_t values[] = {INT64_MIN, -1, 0, INT64_MAX};
    int64_t got[4], step;
    char text[64];
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 123456789012, .text = "a line\nand 50 %",
                              .n_values = 4, .values = values),
                     OLY_OK);
    assert_int_equal(oly_latest_step(folder), 123456789012);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .step = &step, .text = text,
                                 .text_size = sizeof text, .n_values = 4, .values = got),
                     OLY_OK);
    assert_string_equal(text, "a line\nand 50 %");
    assert_memory_equal(got, values, sizeof got);
    assert_int_equal(step, 123456789012);
    assert_int_equal(oly_restore(folder, 0, NULL, 0, NULL), OLY_OK); /* no array at all */
    oly_assign(&y, NULL);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .text = text, .text_size = 4), OLY_INVALID);
    oly_clear_error();
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .n_values = 3, .values = got), OLY_INVALID);
    oly_clear_error();
}

static void the_newest_are_kept(void **state)
{
    (void)state;
    oly_array x = oly_arange(10, OLY_INT32), y = NULL;
    assert_int_equal(oly_latest_step(folder), -1);
    for (int k = 1; k <= 5; k++)
        assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 10 * k, .keep = 3), OLY_OK);
    assert_int_equal(check_folder_count(folder, ""), 3);
    assert_int_equal(oly_latest_step(folder), 50);
    for (int64_t k = 30; k <= 50; k += 10)
        assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .only_step = &k), OLY_OK);
    int64_t gone = 20;
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .only_step = &gone), OLY_IO);
    assert_non_null(strstr(oly_last_error(), "no checkpoint of step 20"));
    oly_clear_error();
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 60), OLY_OK); /* two */
    assert_int_equal(check_folder_count(folder, ""), 2);
    for (int k = 1; k <= 3; k++)
        assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 60 + k, .keep = -1), OLY_OK);
    assert_int_equal(check_folder_count(folder, ""), 5);
}

/* A run that begins again in a folder with later checkpoints removes none of those. */
static void later_ones_of_another_run_stay(void **state)
{
    (void)state;
    oly_array x = oly_arange(10, OLY_INT32);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 1000), OLY_OK);
    for (int k = 1; k < 5; k++)
        assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = k, .keep = 1), OLY_OK);
    assert_int_equal(oly_latest_step(folder), 1000);
    assert_int_equal(check_folder_count(folder, ""), 2);
}

/* A link to a checkpoint that the user has put elsewhere is read through, and neither counted nor followed when old ones are removed. */
static void links_are_the_users(void **state)
{
    (void)state;
    char elsewhere[300], link[320], to[320];
    oly_array x = oly_arange(10, OLY_INT32), y = NULL;
    snprintf(elsewhere, sizeof elsewhere, "%s-archive", folder);
    snprintf(to, sizeof to, "%s/step-00000001", elsewhere);
    snprintf(link, sizeof link, "%s/step-00000001", folder);
    check_folder_remove(elsewhere);
    assert_int_equal(oly_save(elsewhere, OLY_NAMES("x"), OLY_IN(x), .step = 1), OLY_OK);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 0), OLY_OK);
    if (oly_process_index() == 0)
        assert_int_equal(symlink(to, link), 0);
    assert_int_equal(oly_sync("linked"), OLY_OK);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .only_step = &(int64_t){1}), OLY_OK);
    for (int step = 2; step < 5; step++)
        assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = step, .keep = 1), OLY_OK);
    assert_int_equal(check_folder_count(folder, ""), 2); /* the link and the newest */
    assert_int_equal(oly_restore(elsewhere, OLY_NAMES("x"), OLY_OUT(y)), OLY_OK);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 1), OLY_OK); /* takes the link's place */
    struct stat found;
    assert_int_equal(lstat(link, &found), 0);
    assert_true(S_ISDIR(found.st_mode));
    assert_int_equal(oly_restore(elsewhere, OLY_NAMES("x"), OLY_OUT(y)), OLY_OK);
    check_same(y, x);
    assert_int_equal(oly_sync("read"), OLY_OK);
    check_folder_remove(elsewhere);
}

static void the_same_step_is_replaced(void **state)
{
    (void)state;
    oly_array x = oly_arange(10, OLY_INT32), y = NULL;
    for (int k = 0; k < 3; k++)
        assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(oly_add(x, k))), OLY_OK);
    assert_int_equal(check_folder_count(folder, ""), 1);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y)), OLY_OK);
    check_same(y, oly_add(x, 2));
}

/* -- variables ------------------------------------------------------------------------------------------------------------- */

static void a_variable_says_what_is_wanted(void **state)
{
    (void)state;
    oly_sharding split = oly_named(oly_make_mesh("x=8"), "x");
    oly_array x = oly_device_put(oly_arange(10, OLY_INT32), split), y = oly_mul(x, 0), other;
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x)), OLY_OK);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y)), OLY_OK);
    assert_ptr_equal(oly_sharding_of(y), split);
    check_same(y, x);
    oly_array kept = other = oly_ones(OLY_FLOAT32, 10);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(other)), OLY_DTYPE);
    assert_non_null(strstr(oly_last_error(), "\"x\" is int32[10] in the checkpoint and float32[10] in the program"));
    oly_clear_error();
    assert_ptr_equal(other, kept);
    other = oly_ones(OLY_INT32, 5, 2);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(other)), OLY_SHAPE);
    assert_non_null(strstr(oly_last_error(), "int32[5,2]"));
    oly_clear_error();
    other = NULL;
    assert_int_equal(oly_restore(folder, OLY_NAMES("z"), OLY_OUT(other)), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "no array \"z\"; it has \"x\""));
    oly_clear_error();
    oly_sharding deep[] = {oly_named(oly_make_mesh("x=8"), "None, x")};
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(other), .shardings = deep), OLY_SHARDING);
    oly_clear_error();
    assert_null(other);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    oly_array x = oly_arange(10, OLY_INT32), none = NULL, y = NULL;
    char lengthy[300];
    memset(lengthy, 'a', sizeof lengthy);
    lengthy[sizeof lengthy - 1] = '\0';
#define REFUSED(call, status, text)                                                                                    \
    do {                                                                                                               \
        assert_int_equal((call), (status));                                                                            \
        assert_non_null(strstr(oly_last_error(), (text)));                                                             \
        oly_clear_error();                                                                                             \
    } while (0)
    REFUSED(oly_save(NULL, OLY_NAMES("x"), OLY_IN(x)), OLY_INVALID, "the directory is NULL");
    REFUSED(oly_save("", OLY_NAMES("x"), OLY_IN(x)), OLY_INVALID, "the directory is empty");
    REFUSED(oly_save(folder, OLY_NAMES("x", "y"), OLY_IN(x)), OLY_INVALID, "2 names for 1 arrays");
    REFUSED(oly_save(folder, OLY_NAMES("x", "x"), OLY_IN(x, x)), OLY_INVALID, "two arrays have the name \"x\"");
    REFUSED(oly_save(folder, OLY_NAMES(""), OLY_IN(x)), OLY_INVALID, "name 0 is empty");
    REFUSED(oly_save(folder, OLY_NAMES(lengthy), OLY_IN(x)), OLY_INVALID, "name 0 is longer");
    REFUSED(oly_save(folder, OLY_NAMES("x"), OLY_IN(none)), OLY_INVALID, "is NULL");
    REFUSED(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = -1), OLY_INVALID, "step -1");
    REFUSED(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .keep = -2), OLY_INVALID, "keep -2");
    REFUSED(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .n_values = 1), OLY_INVALID, "values at NULL");
    REFUSED(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y)), OLY_IO, "there is no checkpoint in");
    oly_mesh mesh = oly_mesh_with_types(oly_make_mesh("x=8"), (oly_axis_type[]){OLY_AXIS_EXPLICIT});
    oly_sharding terms = oly_named(mesh, "unreduced={x}");
    oly_array sum = oly_device_put(oly_arange(3, OLY_INT32), terms);
    assert_non_null(sum);
    REFUSED(oly_save(folder, OLY_NAMES("x"), OLY_IN(sum)), OLY_SHARDING, "unreduced sum");
    REFUSED(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(sum)), OLY_SHARDING,
            "the sharding of \"x\" has unreduced axes");
    REFUSED(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .shardings = &terms), OLY_SHARDING, "unreduced axes");
    REFUSED(oly_save("/proc/no/such", OLY_NAMES("x"), OLY_IN(x)), OLY_IO, "/proc/no");
    assert_int_equal(check_folder_count(folder, ""), 0);
#undef REFUSED
}

/* -- in the background ----------------------------------------------------------------------------------------------------- */

static void double_it(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

/* The program goes on, donates and frees while a thread writes; each save waits for the one before. */
static void the_program_goes_on(void **state)
{
    (void)state;
    enum { ROUNDS = 6 };
    oly_array y = NULL,
              x = oly_device_put(oly_add(oly_arange(100000, OLY_INT32), 1), oly_named(oly_make_mesh("x=8"), "x"));
    oly_fn f = oly_jit(double_it, 1, 1);
    for (int k = 0; k < ROUNDS; k++) {
        assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = k, .keep = -1, .async = true), OLY_OK);
        oly_call(f, OLY_IN(x), OLY_OUT(x));
        oly_call(f, OLY_IN(x), OLY_OUT(x));
    }
    assert_int_equal(oly_save_wait(), OLY_OK);
    assert_int_equal(oly_save_wait(), OLY_OK); /* nothing to wait for */
    for (int64_t k = 0, factor = 1; k < ROUNDS; k++, factor *= 4) {
        assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(y), .only_step = &k), OLY_OK);
        check_same(y, oly_mul(oly_add(oly_arange(100000, OLY_INT32), 1), factor));
    }
}

/* oly_finalize waits for it. */
static void the_end_waits(void **state)
{
    (void)state;
    oly_array x =
        oly_random_normal_sharded(oly_random_key(5), OLY_FLOAT32, oly_named(oly_make_mesh("x=8"), "x"), 1000, 1000);
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 7, .async = true), OLY_OK);
    assert_int_equal(oly_finalize(), 0);
    assert_int_equal(check_folder_count(folder, ""), 1);
    assert_int_not_equal(check_folder_count(folder, "step-00000007"), 0);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, close_folder)
    const struct CMUnitTest tests[] = {TEST(every_mesh_reads_what_every_mesh_wrote),
                                       TEST(every_type_and_shape),
                                       TEST(replicas_are_written_together),
                                       TEST(step_text_and_numbers_come_along),
                                       TEST(the_newest_are_kept),
                                       TEST(later_ones_of_another_run_stay),
                                       TEST(links_are_the_users),
                                       TEST(the_same_step_is_replaced),
                                       TEST(a_variable_says_what_is_wanted),
                                       TEST(wrong_arguments_are_refused),
                                       TEST(the_program_goes_on),
                                       TEST(the_end_waits)};
    return CHECK_MAIN(tests);
}
