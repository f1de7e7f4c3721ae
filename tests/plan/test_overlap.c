/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Stencil loops and loops over several fields compute their inner tiles during the halo exchange: the
 * values are those of one device, bit for bit, and a process has results before its neighbours have started. */
#include "check_communication.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "array/array.h"
#include "core/option.h"
#include "device/platform.h"
#include "plan/cost/cost.h"

static int setup(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    oly_option.overlap = 1;
    oly_option.halo_steps = 0;
    return oly_finalize();
}

typedef void body(oly_array i, oly_array *c, void *user);

static int steps;

static void rod_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = *c;
    *c = oly_update(u, "1:-1",
                    oly_add(oly_mul(0.5, oly_slice(u, "1:-1")),
                            oly_add(oly_mul(0.25, oly_slice(u, ":-2")), oly_mul(0.25, oly_slice(u, "2:")))));
}

static void ring_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = *c;
    *c = oly_add(oly_mul(0.3, u), oly_add(oly_mul(0.5, oly_roll(u, 1, 0)), oly_mul(0.2, oly_roll(u, -2, 0))));
}

static void plate_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = *c, rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    *c = oly_update(u, "1:-1, 1:-1",
                    oly_add(oly_mul(0.5, oly_slice(u, "1:-1, 1:-1")), oly_mul(0.125, oly_add(rows, columns))));
}

/* Reads corners. */
static void diagonal_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = *c, down = oly_add(oly_slice(u, ":-2, :-2"), oly_slice(u, "2:, 2:"));
    oly_array up = oly_add(oly_slice(u, ":-2, 2:"), oly_slice(u, "2:, :-2"));
    *c =
        oly_update(u, "1:-1, 1:-1", oly_add(oly_mul(0.6, oly_slice(u, "1:-1, 1:-1")), oly_mul(0.1, oly_add(down, up))));
}

static void block_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = *c;
    oly_array x = oly_add(oly_slice(u, ":-2, 1:-1, 1:-1"), oly_slice(u, "2:, 1:-1, 1:-1"));
    oly_array y = oly_add(oly_slice(u, "1:-1, :-2, 1:-1"), oly_slice(u, "1:-1, 2:, 1:-1"));
    oly_array z = oly_add(oly_slice(u, "1:-1, 1:-1, :-2"), oly_slice(u, "1:-1, 1:-1, 2:"));
    *c = oly_update(u, "1:-1, 1:-1, 1:-1",
                    oly_add(oly_mul(0.4, oly_slice(u, "1:-1, 1:-1, 1:-1")), oly_mul(0.1, oly_add(x, oly_add(y, z)))));
}

static void simulate(const oly_array *in, oly_array *out, void *user)
{
    body *const *step = user;
    out[0] = in[0];
    oly_fori(0, steps, *step, 1, out, NULL);
}

/* Two fields, neither a linear form of the other: a wave in a medium that it warms. */
static void pair_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = c[0], v = c[1], mid = oly_slice(v, "1:-1, 1:-1"), inner = oly_slice(u, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    oly_array force = oly_mul(0.05, oly_sub(oly_add(rows, columns), oly_mul(4, inner)));
    c[0] = oly_update(u, "1:-1, 1:-1", oly_add(inner, oly_mul(force, mid)));
    c[1] = oly_update(v, "1:-1, 1:-1", oly_add(mid, oly_mul(0.01, oly_mul(inner, inner))));
}

/* Periodic; its fields swap. */
static void exchange_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = c[0], v = c[1];
    c[0] = oly_add(oly_mul(0.5, v), oly_mul(0.25, oly_mul(oly_roll(u, 2, 0), oly_roll(v, -1, 1))));
    c[1] = u;
}

static void simulate_pair(const oly_array *in, oly_array *out, void *user)
{
    body *const *step = user;
    out[0] = in[0];
    out[1] = in[1];
    oly_fori(0, steps, *step, 2, out, NULL);
}

static oly_array data(int rank, const int64_t *shape, double factor)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    return oly_reshape_shape(oly_sin(oly_mul(factor, oly_arange(n, OLY_FLOAT32))), rank, shape);
}

typedef struct row {
    body *step;
    int rank;
    int64_t shape[3];
    const char *mesh, *spec;
    int halo_steps; /* 0: as planned */
} row;

static const row rows[] = {
    {rod_step, 1, {1 << 18}, "x=8", "x", 0},
    {rod_step, 1, {100003}, "x=8", "x", 20},
    {ring_step, 1, {60000}, "x=8", "x", 0},
    {plate_step, 2, {1700, 130}, "x=8", "x, None", 0},
    {plate_step, 2, {1700, 2100}, "x=4, y=2", "x, y", 12},
    {diagonal_step, 2, {1501, 3001}, "x=2, y=4", "x, y", 12},
    {diagonal_step, 2, {1200, 1200}, "x=2, y=4", "y, x", 1},
    {block_step, 3, {20, 700, 30}, "x=8", "None, x, None", 0},
    {block_step, 3, {60, 300, 70}, "x=2, y=4", "x, y, None", 0},
};

static void overlapped_loops_have_the_bits_of_one_device(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        OLY_SCOPE
        {
            const row *r = &rows[k];
            body *step = r->step;
            int64_t n = 1;
            for (int d = 0; d < r->rank; d++)
                n *= r->shape[d];
            oly_array plain = data(r->rank, r->shape, 0.01);
            oly_array in = oly_device_put(plain, oly_named(oly_make_mesh(r->mesh), r->spec));
            oly_option.halo_steps = r->halo_steps;
            for (steps = 7; steps <= 150; steps += 143) { /* one pass or a few, and many */
                if (steps > 7 && n > 300000)
                    continue;
                float *values[3];
                for (int way = 0; way < 3; way++) {
                    oly_option.overlap = way > 0;
                    oly_jit_options options = {.user = &step};
                    oly_fn f = oly_jit_with(simulate, "f", 1, 1, options);
                    values[way] = check_values(f, 1, way == 2 ? &plain : &in, n);
                }
                for (int way = 1; way < 3; way++)
                    if (memcmp(values[0], values[way], sizeof(float) * (size_t)n))
                        fail_msg("row %zu, %d steps, way %d", k, steps, way);
                for (int way = 0; way < 3; way++)
                    free(values[way]);
            }
        }
    }
}

/* Both fields, one after the other. */
static float *fetched_pair(oly_fn f, const oly_array *in, int64_t n)
{
    oly_array out[2] = {NULL, NULL};
    float *values = malloc(2 * sizeof *values * (size_t)n);
    assert_int_equal(oly_call_n(f, 2, in, 2, (oly_array *[]){&out[0], &out[1]}), OLY_OK);
    for (int k = 0; k < 2; k++)
        assert_int_equal(oly_process_allgather(out[k], values + k * n, sizeof *values * (size_t)n), OLY_OK);
    return values;
}

static void overlapped_fields_have_the_bits_of_one_device(void **state)
{
    static const row pairs[] = {
        {pair_step, 2, {1700, 130}, "x=8", "x, None", 0},
        {pair_step, 2, {1200, 1300}, "x=4, y=2", "x, y", 4},
        {exchange_step, 2, {1600, 1000}, "x=2, y=4", "x, y", 1},
        {exchange_step, 2, {1700, 900}, "x=2, y=4", "y, x", 3},
    };
    (void)state;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        OLY_SCOPE
        {
            const row *r = &pairs[k];
            body *step = r->step;
            int64_t n = r->shape[0] * r->shape[1];
            oly_sharding placed = oly_named(oly_make_mesh(r->mesh), r->spec);
            oly_array plain[] = {data(r->rank, r->shape, 0.01), data(r->rank, r->shape, 0.03)};
            oly_array in[] = {oly_device_put(plain[0], placed), oly_device_put(plain[1], placed)};
            float *values[3];
            oly_option.halo_steps = r->halo_steps;
            steps = 11; /* and a pass of the remaining steps */
            for (int way = 0; way < 3; way++) {
                oly_option.overlap = way > 0;
                oly_jit_options options = {.user = &step};
                values[way] = fetched_pair(oly_jit_with(simulate_pair, "f", 2, 2, options), way == 2 ? plain : in, n);
            }
            for (int way = 1; way < 3; way++)
                if (memcmp(values[0], values[way], 2 * sizeof(float) * (size_t)n))
                    fail_msg("pair %zu, way %d", k, way);
            for (int way = 0; way < 3; way++)
                free(values[way]);
        }
    }
}

/* -- where it pays ------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) char *explained(oly_fn f, oly_array in)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, 1, &in), OLY_OK);
    fclose(file);
    return text;
}

/* Blocks of one tile have nothing to compute early. Where messages are slow, their borders become tiles of their own;
 * where they are free, and in one process, nothing changes. Bits never do. */
static void borders_become_tiles_where_messages_are_slow(void **state)
{
    static const row r = {plate_step, 2, {1700, 130}, "x=8", "x, None", 0};
    (void)state;
    body *step = r.step;
    oly_jit_options options = {.user = &step};
    oly_array in = oly_device_put(data(r.rank, r.shape, 0.01), oly_named(oly_make_mesh(r.mesh), r.spec));
    oly_rates before = *oly_rates_now();
    float *values[2];
    steps = 60;
    for (int slow = 0; slow < 2; slow++) {
        oly_rates rates = before;
        for (int level = OLY_LEVEL_PROCESS + 1; level < OLY_N_LEVELS; level++)
            rates.link[level] = slow ? (oly_link){1e-3, 1e8} : (oly_link){1e-9, 1e13};
        oly_rates_use(&rates);
        oly_fn f = oly_jit_with(simulate, "f", 1, 1, options);
        char *text = explained(f, in);
        bool early = strstr(text, "overlaps communication") != NULL;
        values[slow] = check_values(f, 1, &in, r.shape[0] * r.shape[1]);
        free(text);
        oly_rates_use(&before);
        if (slow || oly_process_count() == 1)
            assert_int_equal(early, oly_process_count() > 1);
        else if (oly_process_count() == 8)
            assert_false(early);
    }
    assert_memory_equal(values[0], values[1], sizeof(float) * (size_t)(r.shape[0] * r.shape[1]));
    free(values[0]);
    free(values[1]);
}

/* -- before the neighbours have started ---------------------------------------------------------------------------- */

typedef struct meeting {
    volatile int seen; /* process 0 has results that only a pass that does not wait can have produced */
} meeting;

/* Memory shared by all processes; the test's are on one node, started by one parent. */
static meeting *meet(void)
{
    char name[64];
    snprintf(name, sizeof name, "/olympus-overlap-%ld", (long)getppid());
    int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    assert_true(file >= 0 && ftruncate(file, sizeof(meeting)) == 0);
    meeting *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(m != MAP_FAILED);
    close(file);
    return m;
}

static void part(meeting *m)
{
    char name[64];
    snprintf(name, sizeof name, "/olympus-overlap-%ld", (long)getppid());
    munmap(m, sizeof *m);
    if (oly_process_index() == 0)
        shm_unlink(name);
}

enum { MOST_SHARDS = 16 }; /* of two results */

typedef struct watcher {
    meeting *meeting;
    int n;
    const volatile float *memory[MOST_SHARDS];
    int64_t elements[MOST_SHARDS];
    float *before[MOST_SHARDS];
    volatile bool over;
} watcher;

__attribute__((no_sanitize("thread"))) static void *watch(void *context)
{
    watcher *w = context;
    while (!w->over && !w->meeting->seen) {
        for (int k = 0; k < w->n; k++)
            for (int64_t j = 0; j < w->elements[k]; j++)
                if (w->memory[k][j] != w->before[k][j]) {
                    w->meeting->seen = 1;
                    return NULL;
                }
        usleep(500);
    }
    return NULL;
}

static bool wait_until_seen(const meeting *m)
{
    for (int k = 0; k < 20000 && !m->seen; k++)
        usleep(500);
    return m->seen;
}

/* The first process starts alone. What it computes meanwhile appears in the memory of its result, which is that of the
 * previous result, freed. */
static void begin_alone(oly_fn f, int n, const oly_array *in, oly_array *before, meeting *m)
{
    watcher w = {.meeting = m};
    oly_array out[2] = {NULL, NULL};
    pthread_t thread;
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < before[j]->n_shards; k++, w.n++) {
            int position;
            oly_box b = oly_array_box(before[j], k, &position);
            w.memory[w.n] = before[j]->shard[k]->data;
            w.elements[w.n] = oly_box_count(&b);
            w.before[w.n] = malloc(sizeof(float) * (size_t)w.elements[w.n]);
            memcpy(w.before[w.n], before[j]->shard[k]->data, sizeof(float) * (size_t)w.elements[w.n]);
        }
        oly_free(before[j]);
    }
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    assert_int_equal(oly_call_n(f, n, in, n, (oly_array *[]){&out[0], &out[1]}), OLY_OK);
    oly_block_until_ready(out[0]);
    w.over = true;
    pthread_join(thread, NULL);
    bool same = false;
    for (int k = 0; k < w.n; k++) {
        for (int j = 0; j < n * out[0]->n_shards; j++)
            same = same || w.memory[k] == out[j % n]->shard[j / n]->data;
        free(w.before[k]);
    }
    assert_true(same);
}

static void everybody_meets(oly_array x, int64_t n)
{
    float *values = malloc(sizeof *values * (size_t)n);
    assert_int_equal(oly_process_allgather(x, values, sizeof *values * (size_t)n), OLY_OK);
    free(values);
}

static void check_alone(size_t k, const row *r, int n_fields)
{
    body *step = r->step;
    int64_t n = r->shape[0] * (r->rank > 1 ? r->shape[1] : 1) * (r->rank > 2 ? r->shape[2] : 1);
    oly_sharding placed = oly_named(oly_make_mesh(r->mesh), r->spec);
    oly_array one = oly_device_put(data(r->rank, r->shape, 0.01), placed);
    oly_array other = oly_device_put(data(r->rank, r->shape, 0.03), placed);
    const oly_array first[] = {one, other}, second[] = {other, one};
    oly_jit_options options = {.user = &step};
    oly_fn f = oly_jit_with(n_fields == 2 ? simulate_pair : simulate, "f", n_fields, n_fields, options);
    meeting *m = meet();
    steps = 5; /* one pass */
    oly_option.halo_steps = r->halo_steps;
    m->seen = 0;
    everybody_meets(one, n);
    oly_array before[2], out[2];
    oly_array *results[] = {&before[0], &before[1]}, *others[] = {&out[0], &out[1]};
    assert_int_equal(oly_call_n(f, n_fields, first, n_fields, results), OLY_OK);
    oly_block_until_ready(before[0]);
    bool seen = true;
    if (oly_process_index() == 0) {
        begin_alone(f, n_fields, second, before, m);
    } else {
        seen = wait_until_seen(m);
        assert_int_equal(oly_call_n(f, n_fields, second, n_fields, others), OLY_OK);
        oly_block_until_ready(out[0]);
    }
    if (!seen)
        fail_msg("row %zu, %d fields: nothing came before the neighbours did", k, n_fields);
    everybody_meets(one, n);
    part(m);
}

static void inner_tiles_come_before_the_wait(void **state)
{
    static const row alone[] = {
        {rod_step, 1, {1 << 20}, "x=8", "x", 0},
        {plate_step, 2, {8 * 1024, 96}, "x=8", "x, None", 0},
        {block_step, 3, {16, 8 * 128, 64}, "x=8", "None, x, None", 0},
    };
    static const row pairs[] = {
        {pair_step, 2, {8 * 1024, 96}, "x=8", "x, None", 5},
        {exchange_step, 2, {8 * 512, 128}, "x=8", "x, None", 5},
    };
    (void)state;
    if (oly_process_count() == 1 || !oly_platform_get()->host_memory) /* it looks into memory while devices compute */
        skip();
    for (size_t k = 0; k < sizeof alone / sizeof *alone; k++)
        check_alone(k, &alone[k], 1);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        check_alone(k, &pairs[k], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(overlapped_loops_have_the_bits_of_one_device, setup, teardown),
        cmocka_unit_test_setup_teardown(overlapped_fields_have_the_bits_of_one_device, setup, teardown),
        cmocka_unit_test_setup_teardown(borders_become_tiles_where_messages_are_slow, setup, teardown),
        cmocka_unit_test_setup_teardown(inner_tiles_come_before_the_wait, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
