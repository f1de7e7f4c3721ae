/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Slices of split arrays at computed positions: values for every start, in range and out of range, and no
 * device ever receives the whole array. */
#include "check.h"
#include <olympus.h>

typedef struct placement {
    const char *mesh, *spec;
    int rank;
    int64_t shape[2], part[2];
} placement;

static const placement placements[] = {
    {"x=8", "x", 1, {64}, {8}},
    {"x=8", "x", 1, {61}, {13}}, /* wider than a block */
    {"x=2, y=4", "y", 1, {23}, {1}},
    {"x=8", "x", 1, {5}, {2}}, /* empty blocks */
    {"x=4, y=2", "x, y", 2, {32, 32}, {3, 5}},
    {"x=2, y=4", "x, y", 2, {13, 11}, {13, 4}}, /* the whole of one dimension */
    {"x=2, y=4", "(y,x), None", 2, {40, 6}, {2, 6}},
    {"x=8", "None, x", 2, {6, 83}, {6, 20}},
};

static const oly_dtype types[] = {OLY_FLOAT32, OLY_INT32, OLY_BOOL, OLY_BFLOAT16, OLY_COMPLEX64};
enum { N_TYPES = sizeof types / sizeof *types };

static void cut(const oly_array *in, oly_array *out, void *user)
{
    const placement *p = user;
    oly_operand starts[] = {OLY_ARG(in[1]), OLY_ARG(in[2])};
    out[0] = oly_dynamic_slice(in[0], p->rank, starts, p->rank, p->part);
}

static void write(const oly_array *in, oly_array *out, void *user)
{
    const placement *p = user;
    oly_operand starts[] = {OLY_ARG(in[1]), OLY_ARG(in[2])};
    out[0] = oly_dynamic_update_slice(in[0], in[3], p->rank, starts);
}

/* In a loop, at another position in each step: what was written before is read again. */
static void move_on(oly_array i, oly_array *carry, void *user)
{
    const placement *p = user;
    oly_operand from[] = {OLY_ARG(i), OLY_ARG(0)}, to[] = {OLY_ARG(oly_add(oly_mul(2, i), 1)), OLY_ARG(i)};
    oly_array part = oly_dynamic_slice(carry[0], p->rank, from, p->rank, p->part);
    carry[0] = oly_dynamic_update_slice(carry[0], oly_add(part, part), p->rank, to);
}

static void moves(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 6, move_on, 1, out, user);
}

static int64_t inside(int64_t start, int64_t size, int64_t part)
{
    start += start < 0 ? size : 0;
    return start < 0 ? 0 : start > size - part ? size - part : start;
}

static int64_t size_of(int rank, const int64_t *shape)
{
    return rank == 1 ? shape[0] : shape[0] * shape[1];
}

static oly_array make(const placement *p, const int64_t *shape, int first)
{
    int64_t n = size_of(p->rank, shape);
    float *data = malloc(sizeof *data * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((i * 37 + first) % 101 - 50);
    oly_array x = oly_from_host(data, OLY_FLOAT32, p->rank, shape);
    free(data);
    return x;
}

/* As float32, which represents what make() makes, of any type. */
static float *values_of(oly_array x)
{
    size_t bytes = sizeof(float) * (size_t)oly_size(x);
    float *data = malloc(bytes + 1);
    oly_array real = oly_dtype_of(x) == OLY_COMPLEX64 ? oly_real(x) : x;
    assert_int_equal(oly_process_allgather(oly_astype(real, OLY_FLOAT32), data, bytes), OLY_OK);
    return data;
}

static void check_starts(const placement *p, oly_dtype type, int64_t row, int64_t column)
{
    oly_array whole = oly_astype(make(p, p->shape, 3), type), small = oly_astype(make(p, p->part, 70), type);
    oly_array x = oly_device_put(whole, oly_named(oly_make_mesh(p->mesh), p->spec));
    oly_array in[] = {x, oly_scalar(row, OLY_INT32), oly_scalar(column, OLY_INT32), small}, part = NULL, next = NULL;
    oly_fn cutting = oly_jit(cut, 3, 1, .user = (void *)p), writing = oly_jit(write, 4, 1, .user = (void *)p);
    assert_int_equal(oly_call_n(cutting, 3, in, 1, (oly_array *[]){&part}), OLY_OK);
    assert_int_equal(oly_call_n(writing, 4, in, 1, (oly_array *[]){&next}), OLY_OK);
    float *all = values_of(whole), *little = values_of(small), *found = values_of(part), *written = values_of(next);
    int64_t columns = p->rank == 2 ? p->shape[1] : 1, part_columns = p->rank == 2 ? p->part[1] : 1;
    int64_t i0 = inside(row, p->shape[0], p->part[0]), j0 = p->rank == 2 ? inside(column, p->shape[1], p->part[1]) : 0;
    for (int64_t i = 0; i < p->shape[0]; i++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t k = (i - i0) * part_columns + j - j0;
            bool in_part = i >= i0 && i < i0 + p->part[0] && j >= j0 && j < j0 + part_columns;
            if (in_part)
                assert_float_equal(found[k], all[i * columns + j], 0);
            assert_float_equal(written[i * columns + j], in_part ? little[k] : all[i * columns + j], 0);
        }
    free(all);
    free(little);
    free(found);
    free(written);
}

static void values_for_every_start(void **state)
{
    static const int64_t starts[] = {0, 1, 7, 20, 55, 100, -1, -9, -70};
    (void)state;
    for (size_t k = 0; k < sizeof placements / sizeof *placements; k++)
        for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
            OLY_SCOPE
            {
                check_starts(&placements[k], types[(k + s) % N_TYPES], starts[s], starts[(s * 4 + k) % 9]);
            }
}

static void loops_read_what_they_have_written(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof placements / sizeof *placements; k++)
        OLY_SCOPE
        {
            const placement *p = &placements[k];
            oly_fn f = oly_jit(moves, 1, 1, .user = (void *)p);
            oly_array alone = make(p, p->shape, 3), one = oly_apply(f, alone);
            oly_array many = oly_apply(f, oly_device_put(alone, oly_named(oly_make_mesh(p->mesh), p->spec)));
            float *a = values_of(one), *b = values_of(many);
            assert_memory_equal(a, b, sizeof *a * (size_t)oly_size(one));
            free(a);
            free(b);
        }
}

/* No device receives more than two copies of the slice: nothing like the array. */
static void no_device_gets_the_array(void **state)
{
    (void)state;
    oly_array s = oly_scalar(100, OLY_INT32), none = oly_scalar(0, OLY_INT32);
    const placement line = {"x=8", "x", 1, {4096}, {16}}, plate = {"x=4, y=2", "x, y", 2, {256, 256}, {1, 256}};
    const placement *const of[] = {&line, &plate};
    for (int k = 0; k < 2; k++) {
        const placement *p = of[k];
        oly_array x = oly_device_put(make(p, p->shape, 1), oly_named(oly_make_mesh(p->mesh), p->spec));
        oly_array in[] = {x, s, none, make(p, p->part, 2)};
        oly_plan_costs costs;
        assert_int_equal(oly_costs_n(&costs, oly_jit(cut, 3, 1, .user = (void *)p), 3, in), OLY_OK);
        assert_in_range(costs.collectives, 1, 1);
        assert_in_range(costs.wire_bytes, 1, 2 * 4 * size_of(p->rank, p->part) * oly_local_device_count());
        assert_int_equal(oly_costs_n(&costs, oly_jit(write, 4, 1, .user = (void *)p), 4, in), OLY_OK);
        assert_int_equal(costs.wire_bytes, 0);
    }
}

static int begin(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return oly_finalize();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(values_for_every_start, begin, end),
    cmocka_unit_test_setup_teardown(loops_read_what_they_have_written, begin, end),
    cmocka_unit_test_setup_teardown(no_device_gets_the_array, begin, end),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
