/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2 devices=4  Bad input on several ranks: data elsewhere, ranks that differ, ranks that do not arrive.
 *
 * With a word as argument the program is one of the failing programs of test_abort.sh, which end their whole job. */
#include "check.h"
#include "core/error.h"
#include <mpi.h>
#include <olympus.h>
#include <unistd.h>

/* -- data on other processes ------------------------------------------------------------------------------- */
static oly_array spread(void)
{
    oly_array x = oly_reshape(oly_arange(24, OLY_FLOAT32), 6, 4);
    return oly_device_put(x, oly_named(oly_make_mesh("x=4"), "x"));
}

static void start(void)
{
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_int_equal(oly_process_count(), 2);
    assert_int_equal(oly_device_count(), 4);
}

static void data_on_other_processes_is_not_fetched(void **state)
{
    (void)state;
    float all[24];
    start();
    oly_array x = spread();
    assert_false(oly_is_fully_addressable(x));
    assert_int_equal(oly_get(x, all, sizeof all), OLY_NOT_ADDRESSABLE);
    assert_non_null(strstr(oly_last_error(), "oly_process_allgather"));
    assert_non_null(strstr(oly_last_error(), "OLY_FOR_EACH_SHARD"));
    assert_non_null(strstr(oly_last_error(), "float32[6,4]"));
    assert_non_null(strstr(oly_last_error(), "test_errors_ranks.c:"));
    oly_clear_error();
    assert_true(oly_item(oly_slice(x, "0, 0")) == 0); /* a computation, on every rank: its result is everywhere */
    assert_int_equal(oly_process_allgather(x, all, sizeof all), OLY_OK);
    for (int i = 0; i < 24; i++)
        assert_true(all[i] == (float)i);
    int elements = 0;
    OLY_FOR_EACH_SHARD(s, x)
    elements += (int)oly_size(s.data);
    assert_int_equal(elements, oly_process_index() == 0 ? 16 : 8);
    assert_int_equal(oly_finalize(), 0);
}

static void nested(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    assert_int_equal(oly_sync("inside"), OLY_TRACE);
    oly_clear_error();
    out[0] = in[0];
}

static void processes_wait_for_each_other(void **state)
{
    (void)state;
    start();
    for (int k = 0; k < 3; k++)
        assert_int_equal(oly_sync("here"), OLY_OK);
    assert_int_equal(oly_sync(oly_process_index() == 0 ? "here" : "there"), OLY_DIVERGED);
    assert_non_null(strstr(oly_last_error(), oly_process_index() == 0 ? "waits at \"here\"" : "waits at \"there\""));
    oly_clear_error();
    assert_int_equal(oly_sync(NULL), OLY_INVALID);
    oly_clear_error();
    assert_non_null(oly_apply(oly_jit(nested, 1, 1), spread()));
    assert_int_equal(oly_sync("after a difference"), OLY_OK);
    assert_int_equal(oly_finalize(), 0);
}

static void arrays_on_one_rank_have_no_shards_elsewhere(void **state)
{
    (void)state;
    float value;
    start();
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 5), oly_named(oly_make_mesh("x=2"), "x")), sum = oly_sum(x);
    bool mine = oly_process_index() == 0;
    assert_int_equal(oly_shard_count(x), mine ? 2 : 0);
    assert_int_equal(oly_get(sum, &value, sizeof value), mine ? OLY_OK : OLY_NOT_ADDRESSABLE);
    oly_clear_error();
    assert_int_equal(oly_process_allgather(sum, &value, sizeof value), OLY_OK);
    assert_true(value == 5);
    assert_int_equal(oly_finalize(), 0);
}

static void a_rank_alone_may_fail_and_go_on(void **state)
{
    (void)state;
    start();
    oly_array x = spread();
    if (oly_process_index() == 1) {
        assert_null(oly_reshape(x, 5));
        assert_int_equal(oly_last_status(), OLY_SHAPE);
        oly_clear_error();
    }
    assert_true(oly_item(oly_sum(x)) == 276);
    assert_int_equal(oly_finalize(), 0);
}

static void a_picture_that_cannot_be_written_is_an_error_on_all_ranks(void **state)
{
    (void)state;
    start();
    oly_array x = spread();
    for (int k = 0; k < 2; k++) {
        assert_int_equal(oly_write_png("/nowhere/at/all.png", x, 0, 24), OLY_IO);
        assert_non_null(strstr(oly_last_error(), "/nowhere/at/all.png: No such file"));
        oly_clear_error();
    }
    assert_int_equal(oly_write_png("/nowhere/at/all.png", x, 24, 0), OLY_INVALID);
    oly_clear_error();
    assert_true(oly_item(oly_sum(spread())) == 276);
    assert_int_equal(oly_finalize(), 0);
}

/* One of the allocations of rank 1 in a sum fails: the n-th. */
static oly_status sum_with_failure(long n)
{
    start();
    oly_array x = spread();
    if (oly_process_index() == 1)
        oly_fail_allocation(n);
    oly_array sum = oly_sum(x);
    oly_status st = sum ? oly_block_until_ready(sum) : oly_last_status();
    oly_fail_allocation(-1);
    if (st != OLY_OK) {
        assert_non_null(
            strstr(oly_last_error(), oly_process_index() == 1 ? "out of memory" : "rank 1 has failed in oly_sum"));
        assert_null(oly_sum(x)); /* no more exchanges are possible */
    }
    oly_clear_error();
    oly_finalize();
    return st;
}

static void a_rank_without_memory_tells_the_others(void **state)
{
    (void)state;
    int failed = 0;
    for (long n = 0; n < 400; n = n < 20 ? n + 1 : n * 5 / 4) {
        int st = (int)sum_with_failure(n), most = st, least = st;
        MPI_Allreduce(&st, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&st, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        assert_int_equal(least, most);
        assert_true(st == OLY_OK || st == OLY_MEMORY);
        failed += st != OLY_OK;
    }
    assert_in_range(failed, 5, 40);
}

static void different_host_data_is_told(void **state)
{
    (void)state;
    float data[8] = {0, 1, 2, 3, 4, 5, 6};
    start();
    data[7] = (float)oly_process_index();
    oly_array x = oly_from_host(data, OLY_FLOAT32, 1, (int64_t[]){8});
    assert_null(oly_device_put(x, oly_named(oly_make_mesh("x=4"), "x")));
    assert_int_equal(oly_last_status(), OLY_DIVERGED);
    assert_non_null(strstr(oly_last_error(), "not the same on each process"));
    oly_clear_error();
    assert_true(oly_item(oly_sum(spread())) == 276);
    assert_int_equal(oly_finalize(), 0);
}

/* Of many small arrays copies are compared with the next message; a difference is told before a value is seen. */
static void different_data_of_many_arrays_is_told(void **state)
{
    (void)state;
    float data[8] = {0, 1, 2, 3, 4, 5, 6};
    oly_array x = NULL;
    start();
    oly_sharding over = oly_named(oly_make_mesh("x=4"), "x");
    for (int k = 0; k < 200; k++) {
        data[7] = (float)(k == 195 ? oly_process_index() : k);
        oly_array y = oly_device_put(oly_from_host(data, OLY_FLOAT32, 1, (int64_t[]){8}), over);
        assert_non_null(y);
        x = k == 194 ? y : x;
    }
    oly_item(oly_sum(x)); /* also of an array whose copies were equal */
    assert_int_equal(oly_last_status(), OLY_DIVERGED);
    assert_non_null(strstr(oly_last_error(), "is oly_device_put (tests/ranks/test_errors_ranks.c:"));
    assert_non_null(
        strstr(oly_last_error(), "each process made its own copy, has different values; give the same data"));
    assert_int_equal(oly_finalize(), 1);
    oly_clear_error();
}

/* The status of a rank's earlier call is not the status of later ones. */
static void a_kept_error_keeps_nobody_waiting(void **state)
{
    (void)state;
    start();
    bool odd = oly_process_index() == 1;
    if (odd)
        assert_null(oly_reshape(oly_ones(OLY_FLOAT32, 4), 5));
    assert_int_equal(oly_sync("one has an error"), OLY_OK);
    assert_true(oly_item(oly_sum(spread())) == 276);
    assert_int_equal(oly_last_status(), odd ? OLY_SHAPE : OLY_OK);
    assert_int_equal(oly_finalize(), 0);
    oly_clear_error();
}

/* Also after the first message has been cleared. */
static void nothing_is_computed_after_a_difference(void **state)
{
    (void)state;
    start();
    oly_array x = spread();
    oly_array y = oly_mul(x, oly_process_index() ? 2 : 3);
    oly_item(oly_sum(y));
    for (int k = 0; k < 2; k++) {
        oly_clear_error();
        assert_null(oly_sum(x));
        assert_int_equal(oly_last_status(), OLY_DIVERGED);
        assert_non_null(strstr(oly_last_error(), "nothing more is computed until oly_finalize, because oly_sum ("));
        assert_non_null(strstr(oly_last_error(), "run different programs"));
    }
    assert_int_equal(oly_finalize(), 1);
    oly_clear_error();
}

/* -- programs that fail ------------------------------------------------------------------------------------ */
static void print_last_error(void)
{
    fprintf(stderr, "rank %d got %s: %s\n", oly_process_index(), oly_status_name(oly_last_status()), oly_last_error());
}

static int shapes(void)
{
    oly_array bad = oly_add(oly_ones(OLY_FLOAT32, 4), oly_ones(OLY_FLOAT32, 5));
    fprintf(stderr, "still here with %p\n", (void *)bad);
    return 0;
}

/* One rank fails while the other waits for it in a sum. */
static int one_fails(void)
{
    oly_array x = spread();
    if (oly_process_index() == 1)
        oly_reshape(x, 5);
    return (int)oly_item(oly_sum(x));
}

static int fetch(void)
{
    float all[24];
    return oly_get(spread(), all, sizeof all);
}

static int diverge(void)
{
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_array x = spread();
    oly_array y = oly_process_index() == 0 ? oly_sum(x) : oly_matmul(oly_transpose(x), x);
    oly_block_until_ready(y);
    print_last_error();
    return 3;
}

static int same_call_other_order(void)
{
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_array x = spread(), y = NULL;
    if (oly_process_index() == 0) {
        y = oly_sum(x);
        y = oly_max(x);
    } else {
        y = oly_max(x);
        y = oly_sum(x);
    }
    oly_block_until_ready(y);
    print_last_error();
    return 3;
}

static int absent(void)
{
    oly_array x = spread();
    if (oly_process_index() == 1)
        sleep(60);
    return (int)oly_item(oly_sum(x));
}

/* Ends without oly_finalize, like a crash. */
static int gone(void)
{
    oly_array x = spread();
    if (oly_process_index() == 1)
        _exit(0);
    return (int)oly_item(oly_sum(x));
}

static int unseen(void)
{
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_reshape(oly_ones(OLY_FLOAT32, 4), 5);
    return 0;
}

static int nothing(void)
{
    return 0;
}

static int run_program(const char *name, int *argc, char ***argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } programs[] = {{"shapes", shapes},
                    {"one_fails", one_fails},
                    {"fetch", fetch},
                    {"diverge", diverge},
                    {"order", same_call_other_order},
                    {"absent", absent},
                    {"gone", gone},
                    {"unseen", unseen},
                    {"nothing", nothing}};
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++)
        if (strcmp(programs[k].name, name) == 0) {
            oly_init(argc, argv);
            int status = programs[k].run();
            int kept = oly_finalize();
            return status ? status : kept;
        }
    fprintf(stderr, "no program is called %s\n", name);
    return 99;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(data_on_other_processes_is_not_fetched),
    cmocka_unit_test(processes_wait_for_each_other),
    cmocka_unit_test(arrays_on_one_rank_have_no_shards_elsewhere),
    cmocka_unit_test(a_rank_alone_may_fail_and_go_on),
    cmocka_unit_test(a_picture_that_cannot_be_written_is_an_error_on_all_ranks),
    cmocka_unit_test(a_rank_without_memory_tells_the_others),
    cmocka_unit_test(different_host_data_is_told),
    cmocka_unit_test(different_data_of_many_arrays_is_told),
    cmocka_unit_test(a_kept_error_keeps_nobody_waiting),
    cmocka_unit_test(nothing_is_computed_after_a_difference),
};

int main(int argc, char **argv)
{
    return argc > 1 ? run_program(argv[1], &argc, &argv) : CHECK_MAIN(tests);
}
