/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  What belongs to which process, arrays from functions, one process's value on all, each process's value on all. */
#include "check_session.h"
#include <string.h>

enum { MOST = 4096 };

/* Element at a position of an array of that shape: its row-major number. */
static void number_box(const oly_index_box *box, const int64_t *shape, int32_t *out)
{
    int64_t at[OLY_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < box->rank; d++)
        n *= box->extent[d];
    for (int64_t k = 0; k < n; k++) {
        int64_t number = 0;
        for (int d = 0; d < box->rank; d++)
            number = number * shape[d] + box->start[d] + at[d];
        out[k] = (int32_t)number;
        for (int d = box->rank - 1; d >= 0 && ++at[d] == box->extent[d]; d--)
            at[d] = 0;
    }
}

typedef struct counted {
    const int64_t *shape;
    int calls;
    oly_status fails_with;
    int fails_on;
    bool calls_olympus;
} counted;

static oly_status fill_numbers(const oly_index_box *box, void *memory, void *user)
{
    counted *c = user;
    c->calls++;
    if (c->fails_with != OLY_OK && oly_process_index() == c->fails_on)
        return c->fails_with;
    if (c->calls_olympus) { /* its own devices, its own arrays */
        oly_array zero = oly_scalar(0, OLY_INT32);
        if (oly_item(zero) != 0)
            return OLY_INVALID;
    }
    number_box(box, c->shape, memory);
    return OLY_OK;
}

static void check_numbers(oly_array x)
{
    static int32_t host[MOST];
    assert_int_equal(oly_process_allgather(x, host, sizeof host), OLY_OK);
    for (int64_t k = 0; k < oly_size(x); k++)
        assert_int_equal(host[k], k);
}

static const char *const specs[] = {"", "i", "i, j", "j, i", "None, (i,j)", "(j,i)"};
static const int64_t shapes[][2] = {{8, 4}, {7, 5}, {3, 1}, {1, 9}, {0, 3}, {13, 11}};

static void functions_fill_every_box_once(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    for (int s = 0; s < 6; s++)
        for (int k = 0; k < 6; k++) {
            oly_sharding sharding = oly_named(mesh, specs[s]);
            counted c = {.shape = shapes[k]};
            OLY_SCOPE
            {
                oly_array x = oly_from_callback(sharding, OLY_INT32, 2, shapes[k], fill_numbers, &c);
                assert_non_null(x);
                assert_true(oly_is_committed(x));
                assert_ptr_equal(oly_sharding_of(x), sharding);
                assert_int_equal(c.calls, oly_sharding_boxes(sharding, 2, shapes[k], -1, 0, NULL));
                check_numbers(x);
                oly_array more = oly_add(x, 1);
                CHECK_NEAR(oly_sum(oly_sub(more, x)), (double)oly_size(x));
            }
        }
}

/* Some devices only: the processes outside have the type and the sharding, no shards; what they do with it is harmless. */
static void functions_fill_arrays_on_some_devices(void **state)
{
    (void)state;
    int64_t shape[] = {6, 5};
    oly_mesh mesh = oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){3}, (int[]){6, 1, 7});
    counted c = {.shape = shape, .calls_olympus = true};
    oly_array x = oly_from_callback(oly_named(mesh, "x"), OLY_INT32, 2, shape, fill_numbers, &c);
    assert_non_null(x);
    assert_int_equal(oly_dtype_of(x), OLY_INT32);
    assert_int_equal(oly_dim(x, 1), 5);
    int here = 0;
    for (int k = 0; k < 3; k++)
        here += oly_device_is_local(oly_mesh_device(mesh, k));
    assert_int_equal(oly_shard_count(x), here);
    assert_int_equal(c.calls, here);
    oly_array y = oly_mul(oly_transpose(x), 2);
    assert_int_equal(oly_shard_count(y), here);
    assert_int_equal(oly_dim(y, 0), 5);
    check_numbers(x);
    CHECK_NEAR(oly_sum(y), 29 * 30);
}

static void a_function_that_fails_fails_on_all(void **state)
{
    (void)state;
    int64_t shape[] = {8, 3};
    oly_mesh mesh = oly_make_mesh("i=8");
    int last = oly_process_count() - 1;
    counted c = {.shape = shape, .fails_with = OLY_IO, .fails_on = last};
    oly_array x = oly_from_callback(oly_named(mesh, "i"), OLY_INT32, 2, shape, fill_numbers, &c);
    assert_null(x);
    assert_int_equal(oly_last_status(), OLY_IO);
    char where[40];
    snprintf(where, sizeof where, oly_process_index() == last ? "" : "(on rank %d)", last);
    assert_non_null(strstr(oly_last_error(), "failed with OLY_IO for ["));
    assert_non_null(strstr(oly_last_error(), where));
    assert_non_null(strstr(oly_last_error(), "test_processes.c"));
    oly_clear_error();
    c = (counted){.shape = shape, .fails_with = (oly_status)99, .fails_on = 0};
    CHECK_REFUSED(oly_from_callback(oly_named(mesh, "i"), OLY_INT32, 2, shape, fill_numbers, &c), OLY_INVALID, "");
    c = (counted){.shape = shape}; /* and goes on */
    check_numbers(oly_from_callback(oly_named(mesh, "i"), OLY_INT32, 2, shape, fill_numbers, &c));
    CHECK_REFUSED(oly_from_callback(oly_named(mesh, "i"), OLY_INT32, 2, shape, NULL, &c), OLY_INVALID, "is NULL");
    CHECK_REFUSED(oly_from_callback(oly_named(mesh, "None, i"), OLY_INT32, 1, shape, fill_numbers, &c), OLY_SHARDING,
                  "");
    CHECK_REFUSED(oly_from_callback(oly_named(mesh, "i"), (oly_dtype)77, 2, shape, fill_numbers, &c), OLY_INVALID, "");
}

/* The boxes of all processes cover the array, and every device's is among its process's. */
static void boxes_say_which_part_is_whose(void **state)
{
    (void)state;
    oly_mesh mesh =
        oly_mesh_from_devices(2, (const char *[]){"i", "j"}, (int[]){4, 2}, (int[]){3, 0, 7, 1, 2, 6, 5, 4});
    for (int s = 0; s < 6; s++)
        for (int k = 0; k < 6; k++) {
            oly_sharding sharding = oly_named(mesh, specs[s]);
            for (int p = 0; p < oly_process_count(); p++) {
                oly_index_box boxes[8], of_device;
                int n = oly_sharding_boxes(sharding, 2, shapes[k], p, 8, boxes), ids[8];
                int n_ids = oly_local_devices(p, 8, ids);
                int64_t elements = 0;
                assert_int_equal(n_ids, 8 / oly_process_count());
                for (int d = 0; d < n_ids; d++) {
                    bool found = false;
                    assert_int_equal(oly_device_process(oly_get_device(ids[d])), p);
                    assert_int_equal(
                        oly_sharding_device_box(sharding, 2, shapes[k], oly_get_device(ids[d]), &of_device), OLY_OK);
                    for (int b = 0; b < n; b++)
                        found = found || memcmp(&boxes[b], &of_device, sizeof of_device) == 0;
                    assert_true(found || of_device.extent[0] * of_device.extent[1] == 0);
                }
                for (int b = 0; b < n; b++)
                    elements += boxes[b].extent[0] * boxes[b].extent[1];
                oly_index_box all;
                if (oly_sharding_box(sharding, 2, shapes[k], p, &all) == OLY_OK) {
                    assert_int_equal(all.extent[0] * all.extent[1], elements);
                } else {
                    assert_int_equal(oly_last_status(), OLY_SHARDING);
                    assert_non_null(strstr(oly_last_error(), "oly_sharding_boxes"));
                    oly_clear_error();
                    assert_true(n > 1);
                }
            }
        }
}

/* The union of a process's boxes is what oly_from_local takes. */
static void a_process_reads_its_part(void **state)
{
    (void)state;
    static int32_t part[MOST];
    int64_t shape[] = {13, 6};
    oly_sharding sharding = oly_named(oly_make_mesh("i=4, j=2"), "i, j");
    oly_index_box mine;
    assert_int_equal(oly_sharding_box(sharding, 2, shape, -1, &mine), OLY_OK);
    number_box(&mine, shape, part);
    check_numbers(oly_from_local(sharding, OLY_INT32, 2, shape, part, mine.extent));
    /* fewer columns than devices: the box of a process without any is empty in all dimensions */
    oly_sharding thin = oly_named(oly_make_mesh("i=8"), "None, i");
    int64_t few[] = {13, 3};
    assert_int_equal(oly_sharding_box(thin, 2, few, -1, &mine), OLY_OK);
    number_box(&mine, few, part);
    check_numbers(oly_from_local(thin, OLY_INT32, 2, few, part, mine.extent));
}

static void wrong_questions_are_refused(void **state)
{
    (void)state;
    oly_mesh three = oly_make_mesh("x=3");
    oly_sharding s = oly_named(three, "x");
    oly_index_box box;
    int64_t shape[] = {4, 4}, negative[] = {-1};
    assert_int_equal(oly_local_devices(oly_process_count(), 0, NULL), -1);
    assert_int_equal(oly_last_status(), OLY_INVALID);
    oly_clear_error();
    assert_int_equal(oly_local_devices(-1, 2, NULL), -1);
    oly_clear_error();
    assert_int_equal(oly_sharding_device_box(s, 2, shape, oly_get_device(5), &box), OLY_DEVICES);
    assert_non_null(strstr(oly_last_error(), "device 5 is not in"));
    oly_clear_error();
    assert_int_equal(oly_sharding_box(oly_named(three, "None, x"), 1, shape, -1, &box), OLY_SHARDING);
    oly_clear_error();
    assert_int_equal(oly_sharding_boxes(s, 1, negative, -1, 0, NULL), -1);
    oly_clear_error();
    assert_int_equal(oly_sharding_boxes(s, 1, shape, -2, 0, NULL), -1);
    oly_clear_error();
    if (oly_process_count() == 8) { /* process 7 has no device of the mesh */
        assert_int_equal(oly_sharding_boxes(s, 1, shape, 7, 0, NULL), 0);
        assert_int_equal(oly_sharding_box(s, 1, shape, 7, &box), OLY_OK);
        assert_int_equal(box.extent[0], 0);
    }
}

/* -- one to all, each to all ------------------------------------------------------------------------------------------------ */

static void one_value_comes_to_all(void **state)
{
    (void)state;
    int me = oly_process_index(), last = oly_process_count() - 1;
    float mine[6];
    for (int k = 0; k < 6; k++)
        mine[k] = (float)(100 * me + k);
    oly_array x = oly_from_host(mine, OLY_FLOAT32, 2, (int64_t[]){2, 3});
    oly_array first = oly_broadcast_one_to_all(x), of_last = oly_broadcast_one_to_all(x, .is_source = me == last);
    assert_false(oly_is_committed(first));
    CHECK_NEAR(first, 0, 1, 2, 3, 4, 5);
    CHECK_NEAR(of_last, 100. * last, 100. * last + 1, 100. * last + 2, 100. * last + 3, 100. * last + 4,
               100. * last + 5);
    assert_int_equal(oly_dim(of_last, 1), 3);
    /* equal copies can be split over all devices */
    CHECK_NEAR(oly_device_put(of_last, oly_named(oly_make_mesh("i=8"), "None, i")), 100. * last, 100. * last + 1,
               100. * last + 2, 100. * last + 3, 100. * last + 4, 100. * last + 5);
    char text[12] = "";
    snprintf(text, sizeof text, "from %d", me);
    assert_int_equal(oly_broadcast_host(text, sizeof text), OLY_OK);
    assert_string_equal(text, "from 0");
    snprintf(text, sizeof text, "from %d", me);
    assert_int_equal(oly_broadcast_host(text, sizeof text, .is_source = me == last), OLY_OK);
    assert_int_equal(atoi(text + 5), last);
    assert_int_equal(oly_broadcast_host(NULL, 0), OLY_OK);
    oly_array empty = oly_broadcast_one_to_all(oly_zeros(OLY_FLOAT32, 0, 3));
    assert_int_equal(oly_size(empty), 0);
    bool yes = me == 0;
    CHECK_NEAR(oly_broadcast_one_to_all(oly_scalar(yes, OLY_BOOL)), 1);
}

static void a_local_committed_value_comes_to_all(void **state)
{
    (void)state;
    int me = oly_process_index(), ids[8], n = oly_local_devices(-1, 8, ids);
    oly_mesh mine = oly_mesh_from_devices(1, (const char *[]){"d"}, &n, ids);
    oly_array x = oly_add(oly_device_put(oly_arange(9, OLY_INT32), oly_named(mine, "d")), me);
    CHECK_NEAR(oly_broadcast_one_to_all(x), 0, 1, 2, 3, 4, 5, 6, 7, 8);
}

static void every_value_comes_to_all(void **state)
{
    (void)state;
    int me = oly_process_index(), n = oly_process_count();
    int16_t mine[] = {(int16_t)(10 * me), (int16_t)(10 * me + 1)}, all[16] = {0};
    oly_array x = oly_from_host(mine, OLY_INT16, 1, (int64_t[]){2});
    assert_int_equal(oly_process_allgather_stacked(x, all, sizeof *all * 2 * (size_t)n), OLY_OK);
    for (int r = 0; r < n; r++)
        assert_true(all[2 * r] == 10 * r && all[2 * r + 1] == 10 * r + 1);
    memset(all, 0, sizeof all);
    assert_int_equal(oly_process_allgather_tiled(x, all, sizeof all), OLY_OK);
    for (int r = 0; r < n; r++)
        assert_true(all[2 * r] == 10 * r && all[2 * r + 1] == 10 * r + 1);
    /* of a global array: its value, as JAX; stacked there is nothing to stack */
    int32_t whole[8] = {0};
    oly_array global = oly_device_put(oly_arange(8, OLY_INT32), oly_named(oly_make_mesh("i=8"), "i"));
    assert_int_equal(oly_process_allgather_tiled(global, whole, sizeof whole), OLY_OK);
    for (int k = 0; k < 8; k++)
        assert_int_equal(whole[k], k);
    if (n > 1) {
        assert_int_equal(oly_process_allgather_stacked(global, whole, sizeof whole), OLY_NOT_ADDRESSABLE);
        oly_clear_error();
    }
    double numbers[8];
    assert_int_equal(oly_allgather_host(&(double){me * .5}, sizeof(double), numbers), OLY_OK);
    for (int r = 0; r < n; r++)
        assert_true(numbers[r] == r * .5);
}

static void what_differs_is_an_error_on_all(void **state)
{
    (void)state;
    int me = oly_process_index(), n = oly_process_count(), last = n - 1;
    char buffer[256];
    oly_array x = oly_arange(4, OLY_INT32), longer = oly_arange(me == last ? 5 : 4, OLY_INT32);
    assert_int_equal(oly_assert_equal(x, "the same"), OLY_OK);
    assert_int_equal(oly_process_allgather_stacked(x, buffer, 15), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "too small"));
    oly_clear_error();
    assert_int_equal(oly_process_allgather_stacked(x, buffer, me == last ? 15 : sizeof buffer), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "too small")); /* on all */
    oly_clear_error();
    if (n == 1)
        return;
    assert_int_equal(oly_assert_equal(oly_add(x, me == last), "weights"), OLY_DIVERGED);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "(ranks 0 and %d differ)", last);
    assert_non_null(strstr(oly_last_error(), wanted));
    assert_non_null(strstr(oly_last_error(), "weights"));
    oly_clear_error();
    assert_int_equal(oly_process_allgather_tiled(longer, buffer, sizeof buffer), OLY_DIVERGED);
    assert_non_null(strstr(oly_last_error(), "int32[5]"));
    oly_clear_error();
    CHECK_REFUSED(oly_broadcast_one_to_all(longer), OLY_DIVERGED, "int32[4]");
    CHECK_REFUSED(oly_broadcast_one_to_all(x, .is_source = true), OLY_INVALID, "both say that they are the source");
    assert_int_equal(oly_broadcast_host(buffer, me == last ? 3 : 4), OLY_DIVERGED);
    oly_clear_error();
    /* one rank fails before anything is sent: all fail alike */
    CHECK_REFUSED(me == last ? oly_broadcast_one_to_all(oly_device_put(x, oly_single_device(oly_get_device(0))))
                             : oly_broadcast_one_to_all(x),
                  OLY_NOT_ADDRESSABLE, "");
    CHECK_NEAR(oly_broadcast_one_to_all(x), 0, 1, 2, 3);
}

static void records(const oly_array *in, oly_array *out, void *user)
{
    int64_t shape[] = {4};
    char byte = 0;
    (void)user;
    out[0] = in[0];
    assert_null(oly_broadcast_one_to_all(in[0]));
    assert_int_equal(oly_last_status(), OLY_TRACE);
    oly_clear_error();
    assert_int_equal(oly_broadcast_host(&byte, 1), OLY_TRACE);
    oly_clear_error();
    assert_int_equal(oly_assert_equal(in[0], ""), OLY_TRACE);
    oly_clear_error();
    counted c = {.shape = shape};
    assert_null(oly_from_callback(oly_named(oly_make_mesh("i=8"), "i"), OLY_INT32, 1, shape, fill_numbers, &c));
    assert_int_equal(oly_last_status(), OLY_TRACE);
    oly_clear_error();
}

static void nothing_of_this_is_recorded(void **state)
{
    (void)state;
    oly_array x = oly_arange(4, OLY_INT32), y;
    assert_int_equal(oly_call(oly_jit(records, 1, 1), OLY_IN(x), OLY_OUT(y)), OLY_OK);
    CHECK_NEAR(y, 0, 1, 2, 3);
}

/* Plans of a job that does not exist: nothing is called, nothing has values, types are those of a real one. */
static void a_simulated_job_has_the_same_types(void **state)
{
    (void)state;
    int64_t shape[] = {1000, 64};
    counted c = {.shape = shape};
    oly_index_box box;
    oly_init(NULL, NULL);
    int ranks = oly_process_count();
    oly_finalize();
    if (ranks > 1)
        return;
    check_simulate("12500x8");
    oly_sharding rows = oly_named(oly_make_mesh("i=-1"), "i");
    oly_array x = oly_from_callback(rows, OLY_INT32, 2, shape, fill_numbers, &c);
    assert_int_equal(c.calls, 0);
    assert_int_equal(oly_shard_count(x), 8);
    assert_int_equal(oly_sharding_box(rows, 2, shape, 5, &box), OLY_OK);
    assert_int_equal(box.start[0], 40);
    assert_int_equal(oly_sharding_boxes(rows, 2, shape, 12499, 0, NULL), 0);
    assert_int_equal(oly_dim(oly_broadcast_one_to_all(oly_zeros(OLY_FLOAT32, 3)), 0), 3);
    assert_int_equal(oly_broadcast_host(&c, sizeof c), OLY_OK);
    assert_int_equal(oly_assert_equal(oly_zeros(OLY_FLOAT32, 3), "zeros"), OLY_OK);
    assert_int_equal(oly_mesh_axis_size(oly_make_hybrid_mesh("node=-1", "d=-1"), 0), 12500);
    check_simulate_end();
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_start, check_finish)
static const struct CMUnitTest tests[] = {
    STARTED(functions_fill_every_box_once),
    STARTED(functions_fill_arrays_on_some_devices),
    STARTED(a_function_that_fails_fails_on_all),
    STARTED(boxes_say_which_part_is_whose),
    STARTED(a_process_reads_its_part),
    STARTED(wrong_questions_are_refused),
    STARTED(one_value_comes_to_all),
    STARTED(a_local_committed_value_comes_to_all),
    STARTED(every_value_comes_to_all),
    STARTED(what_differs_is_an_error_on_all),
    STARTED(nothing_of_this_is_recorded),
    cmocka_unit_test(a_simulated_job_has_the_same_types),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
