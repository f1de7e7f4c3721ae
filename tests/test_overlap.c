/* run: layouts  Stencil loops work their inner tiles while margins are on their way: the values are those of one device, bit for bit, and
 * a process has results before its neighbours have begun. */
#include "check.h"
#include <olympus.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "array/array.h"
#include "core/option.h"
#include "plan/cost.h"

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

/* Corners are read. */
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

typedef void body(oly_array i, oly_array *c, void *user);

static void simulate(const oly_array *in, oly_array *out, void *user)
{
    body *const *step = user;
    out[0] = in[0];
    oly_fori(0, steps, *step, 1, out, NULL);
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

static float *fetched(oly_fn f, oly_array in, int64_t n)
{
    oly_array out;
    float *values = malloc(sizeof *values * (size_t)n);
    assert_int_equal(oly_call_n(f, 1, &in, 1, (oly_array *[]){&out}), OLY_OK);
    assert_int_equal(oly_process_allgather(out, values, sizeof *values * (size_t)n), OLY_OK);
    return values;
}

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
                    values[way] = fetched(oly_jit_with(simulate, "f", 1, 1, options), way == 2 ? plain : in, n);
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

/* -- what pays --------------------------------------------------------------------------------------------------------------- */

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

/* Blocks of one tile have nothing to work early. Where messages take long, their borders become tiles of their own; where they
 * take no time, and in one process, nothing changes. Bits never do. */
static void borders_are_cut_off_where_messages_take_long(void **state)
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
        bool early = strstr(text, "worked while messages fly") != NULL;
        values[slow] = fetched(f, in, r.shape[0] * r.shape[1]);
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

/* -- before the neighbours have begun -------------------------------------------------------------------------------------- */

typedef struct meeting {
    volatile int seen; /* process 0 has results that it can only have of a pass that does not wait */
} meeting;

/* Memory that all processes share; the test's are on one node, started by one parent. */
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

enum { MOST_SHARDS = 8 };

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

/* The first process begins alone. What it has worked meanwhile appears in the memory of its result, which is that of the result
 * before, freed. */
static void begin_alone(oly_fn f, oly_array in, oly_array before, meeting *m)
{
    watcher w = {.meeting = m, .n = before->n_shards};
    oly_array out;
    pthread_t thread;
    for (int k = 0; k < w.n; k++) {
        int position;
        oly_box b = oly_array_box(before, k, &position);
        w.memory[k] = before->shard[k]->data;
        w.elements[k] = oly_box_count(&b);
        w.before[k] = malloc(sizeof(float) * (size_t)w.elements[k]);
        memcpy(w.before[k], before->shard[k]->data, sizeof(float) * (size_t)w.elements[k]);
    }
    oly_free(before);
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    assert_int_equal(oly_call_n(f, 1, &in, 1, (oly_array *[]){&out}), OLY_OK);
    oly_block_until_ready(out);
    w.over = true;
    pthread_join(thread, NULL);
    bool same = false;
    for (int k = 0; k < w.n; k++) {
        for (int j = 0; j < w.n; j++)
            same = same || w.memory[k] == out->shard[j]->data;
        free(w.before[k]);
    }
    assert_true(same);
}

static void inner_tiles_come_before_the_wait(void **state)
{
    static const row alone[] = {
        {rod_step, 1, {1 << 20}, "x=8", "x", 0},
        {plate_step, 2, {8 * 1024, 96}, "x=8", "x, None", 0},
        {block_step, 3, {16, 8 * 128, 64}, "x=8", "None, x, None", 0},
    };
    (void)state;
    if (oly_process_count() == 1)
        skip();
    for (size_t k = 0; k < sizeof alone / sizeof *alone; k++) {
        const row *r = &alone[k];
        body *step = r->step;
        int64_t n = r->shape[0] * (r->rank > 1 ? r->shape[1] : 1) * (r->rank > 2 ? r->shape[2] : 1);
        oly_sharding lies = oly_named(oly_make_mesh(r->mesh), r->spec);
        oly_array in[] = {oly_device_put(data(r->rank, r->shape, 0.01), lies),
                          oly_device_put(data(r->rank, r->shape, 0.03), lies)};
        oly_fn f = oly_jit_with(simulate, "f", 1, 1, (oly_jit_options){.user = &step});
        meeting *m = meet();
        steps = 5; /* one pass */
        m->seen = 0;
        free(fetched(f, in[0], n)); /* and everybody has met */
        oly_array before;
        assert_int_equal(oly_call_n(f, 1, in, 1, (oly_array *[]){&before}), OLY_OK);
        oly_block_until_ready(before);
        bool seen = true;
        if (oly_process_index() == 0) {
            begin_alone(f, in[1], before, m);
        } else {
            oly_array out;
            seen = wait_until_seen(m);
            assert_int_equal(oly_call_n(f, 1, &in[1], 1, (oly_array *[]){&out}), OLY_OK);
            oly_block_until_ready(out);
        }
        if (!seen)
            fail_msg("row %zu: nothing came before the neighbours did", k);
        free(fetched(f, in[0], n));
        part(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(overlapped_loops_have_the_bits_of_one_device, setup, teardown),
        cmocka_unit_test_setup_teardown(borders_are_cut_off_where_messages_take_long, setup, teardown),
        cmocka_unit_test_setup_teardown(inner_tiles_come_before_the_wait, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
