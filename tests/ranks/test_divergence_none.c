/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Programs that make the same calls are never refused, whatever each rank does alone in between: random programs
 * with local work that depends on the rank, uncommitted arrays, and meshes over some of the devices, of which some ranks have
 * none: those that have some fetch, others do or do not. Fetched values are compared with plain loops.
 *   NONE_SEED=n NONE_PROGRAMS=n    the first seed, and how many */
#include "check_session.h"
#include <stdlib.h>
#include <unistd.h>

enum { ARRAYS = 6, SIZE = 24, CALLS = 12 };

typedef struct generator {
    uint64_t state;
} generator;

static int below(generator *r, int n)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((r->state >> 33) % (uint64_t)n);
}

typedef struct program {
    generator together, alone; /* the same on all ranks; each rank's own */
    oly_mesh mesh[4];
    oly_array x[ARRAYS];
    int where[ARRAYS]; /* mesh; -1: uncommitted */
    float value[ARRAYS][SIZE];
} program;

static void doubled(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_mul(in[0], *(const double *)user);
}

/* Calls that concern this rank alone. */
static void work_alone(program *p)
{
    for (int k = below(&p->alone, 4); k > 0; k--)
        OLY_SCOPE
        {
            oly_array local = oly_add(oly_arange(SIZE, OLY_FLOAT32), below(&p->alone, 100));
            if (below(&p->alone, 2))
                local = oly_device_put(local,
                                       oly_single_device(oly_local_device(below(&p->alone, oly_local_device_count()))));
            double factor = below(&p->alone, 5);
            if (below(&p->alone, 3) == 0)
                local = oly_apply(oly_jit(doubled, 1, 1, .user = &factor), local);
            oly_array sum = oly_sum(oly_sin(local));
            if (below(&p->alone, 2))
                (void)oly_item(sum);
        }
}

static void put(program *p, int to, oly_array x, int where, const float *value)
{
    oly_assign(&p->x[to], x);
    p->where[to] = where;
    memcpy(p->value[to], value, sizeof p->value[to]);
}

/* Ranks that have a part of it fetch, and some of the others. */
static void fetch(program *p, int k)
{
    float all[SIZE];
    bool part = p->where[k] < 0 || oly_shard_count(p->x[k]) > 0;
    if (!part && below(&p->alone, 2))
        return;
    if (oly_process_allgather(p->x[k], all, sizeof all) != OLY_OK)
        return; /* reported at the end */
    for (int i = 0; i < SIZE; i++)
        if (all[i] != p->value[k][i])
            fail_msg("element %d is %g, not %g", i, (double)all[i], (double)p->value[k][i]);
}

static void copy_to(const float *x, float *to)
{
    memcpy(to, x, sizeof *to * SIZE);
}
static void roll_to(const float *x, float factor, float *to)
{
    for (int i = 0; i < SIZE; i++)
        to[i] = x[(i + SIZE - 1) % SIZE] * factor;
}
static void less_largest_to(const float *x, float *to)
{
    float most = x[0];
    for (int i = 0; i < SIZE; i++)
        most = x[i] > most ? x[i] : most;
    for (int i = 0; i < SIZE; i++)
        to[i] = x[i] - most;
}

static oly_sharding placed(program *p, int mesh)
{
    return oly_named(p->mesh[mesh], below(&p->together, 3) ? "i" : "");
}

/* Another array that may be combined with x[k]: uncommitted, or on the same devices. */
static int partner(const program *p, int k, int from)
{
    for (int j = 0; j < ARRAYS; j++) {
        int other = (from + j) % ARRAYS;
        if (p->where[other] < 0 || p->where[other] == p->where[k])
            return other;
    }
    return k;
}

static void call(program *p)
{
    int k = below(&p->together, ARRAYS), to = below(&p->together, ARRAYS), from = below(&p->together, ARRAYS);
    int kind = below(&p->together, 8), mesh = below(&p->together, 4), number = below(&p->together, 9);
    float v[SIZE];
    double factor = number;
    OLY_SCOPE
    {
        int other = partner(p, k, from);
        bool committed = p->where[k] >= 0;
        copy_to(p->value[k], v);
        switch (kind) {
        case 0:
            for (int i = 0; i < SIZE; i++)
                v[i] = (float)(i + number);
            put(p, to, oly_add(oly_arange(SIZE, OLY_FLOAT32), number), -1, v);
            break;
        case 1: put(p, to, oly_device_put(p->x[k], placed(p, mesh)), mesh, v); break;
        case 2:
            for (int i = 0; i < SIZE; i++)
                v[i] += p->value[other][i];
            put(p, to, oly_add(p->x[k], p->x[other]), committed ? p->where[k] : p->where[other], v);
            break;
        case 3:
            roll_to(p->value[k], (float)number, v);
            put(p, to, oly_mul(oly_roll(p->x[k], 1, 0), number), p->where[k], v);
            break;
        case 4:
            less_largest_to(p->value[k], v);
            put(p, to, oly_sub(p->x[k], oly_max(p->x[k])), p->where[k], v);
            break;
        case 5:
            oly_call(oly_jit(doubled, 1, 1, .user = &factor), OLY_IN(p->x[k]), OLY_OUT(p->x[k]));
            for (int i = 0; i < SIZE; i++)
                p->value[k][i] *= (float)factor;
            break;
        case 6: fetch(p, k); break;
        default: oly_sync("all");
        }
    }
}

static void run(uint64_t seed)
{
    program p = {.together = {seed * 7919 + 1}, .alone = {seed * 104729 + (uint64_t)oly_process_index()}};
    char axes[20];
    OLY_SCOPE
    {
        for (int k = 0; k < 4; k++) {
            snprintf(axes, sizeof axes, "i=%d",
                     k == 0 ? oly_device_count() : 1 + below(&p.together, oly_device_count()));
            p.mesh[k] = oly_make_mesh(axes);
        }
        for (int k = 0; k < ARRAYS; k++) {
            p.x[k] = oly_add(oly_arange(SIZE, OLY_FLOAT32), k);
            p.where[k] = -1;
            for (int i = 0; i < SIZE; i++)
                p.value[k][i] = (float)(i + k);
        }
        for (int k = 0; k < CALLS; k++) {
            call(&p);
            work_alone(&p);
        }
    }
    if (oly_last_status() != OLY_OK)
        fail_msg("NONE_SEED=%llu NONE_PROGRAMS=1: %s", (unsigned long long)seed, oly_last_error());
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void correct_programs_are_not_refused(void **state)
{
    (void)state;
    int seed = setting("NONE_SEED", 1), n = setting("NONE_PROGRAMS", 60);
    for (int k = 0; k < n; k++)
        run((uint64_t)(seed + k));
}

/* An operand of which each process has its own copy is compared when the call runs. On rank 0 its memory has by then
 * been assigned to a later, larger result: the call is queued behind one that waits for the others. They wait for each
 * call and have no such history. */
static void memory_that_later_calls_get_is_no_difference(void **state)
{
    (void)state;
    enum { FEW = 25, MORE = 28 }; /* float32: blocks of the same class */
    bool first = oly_process_index() == 0;
    char axes[20];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    oly_sharding rows = oly_named(oly_make_mesh(axes), "i"), here = oly_single_device(oly_local_device(0));
    int64_t n = FEW, many = 1 << 18; /* large enough to be summed by another thread */
    oly_array x = oly_full_sharded(oly_operand_int(1), OLY_FLOAT32, rows, 1, &n);
    oly_array much = oly_full_sharded(oly_operand_int(1), OLY_FLOAT32, rows, 1, &many);
    oly_array local = oly_device_put(oly_arange(MORE, OLY_FLOAT32), here);
    for (int round = 0; round < 4; round++) /* the first makes the plans */
        OLY_SCOPE
        {
            oly_array own = oly_add(oly_arange(FEW, OLY_FLOAT32), round);
            oly_block_until_ready(own);
            oly_sync("all have one");
            if (!first)
                usleep(20000);
            oly_array sum = oly_sum(much), both = oly_add(x, own);
            if (!first)
                oly_block_until_ready(both);
            oly_free(own);
            oly_array larger = oly_mul(local, round);
            assert_true(oly_item(oly_sum(larger)) == round * MORE * (MORE - 1) / 2);
            assert_true(oly_item(sum) == (double)many);
            assert_true(oly_item(oly_sum(both)) == FEW * (FEW - 1) / 2 + FEW * (1 + round));
        }
    assert_int_equal(oly_last_status(), OLY_OK);
}

/* On any number of devices: tests/long/many_ranks.sh has 128. */
static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    return oly_device_count() > 0 ? 0 : -1;
}

static int start_with_threads(void **state)
{
    setenv("OLYMPUS_NUM_THREADS", "2", 1); /* with one thread calls run at once */
    return start(state);
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, start, check_finish)
static const struct CMUnitTest tests[] = {
    STARTED(correct_programs_are_not_refused),
    cmocka_unit_test_setup_teardown(memory_that_later_calls_get_is_no_difference, start_with_threads, check_finish),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
