/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  oly_device_put between any two meshes, called only by the processes that own a device of either: random pairs of some of
 * the devices, in any order, any shardings, uneven and empty, replicated, single devices. Processes in neither go on to other work of
 * their own. Every shard is compared bit by bit with what this file computes alone.
 *   PUT_SEED=n, PUT_STEPS=n   the first seed, and how many chains */
#include "check_session.h"
#include <inttypes.h>

enum { MOST_AXES = 2, STEPS = 150 };

static uint64_t state_of_random;

static int below(int n)
{
    uint64_t x = state_of_random += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (int)((x ^ (x >> 31)) % (uint64_t)n);
}

typedef struct place {
    oly_sharding sharding;
    char text[200];
    unsigned processes; /* that own a device of it */
} place;

static place draw_place(int rank)
{
    static const char *const one[] = {"", "x", "None, x"}, *const two[] = {"",        "x",          "y",     "x, y",
                                                                           "y, x",    "(x,y)",      "(y,x)", "None, y",
                                                                           "None, x", "None, (x,y)"};
    static const char *const names[] = {"x", "y"};
    int all[8], n = below(6) ? 1 + below(8) : 8, sizes[2] = {n, 1};
    for (int k = 0; k < 8; k++)
        all[k] = k;
    for (int k = 7; k > 0 && below(3); k--) {
        int j = below(k + 1), other = all[j];
        all[j] = all[k];
        all[k] = other;
    }
    int n_axes = n % 2 == 0 && below(2) ? 2 : 1, first = below(8 - n + 1);
    if (n_axes == 2) {
        sizes[0] = n / 2;
        sizes[1] = 2;
    }
    place p = {0};
    const char *spec;
    do
        spec = n_axes == 2 ? two[below(10)] : one[below(3)];
    while (rank < 2 && (strstr(spec, "None") || strstr(spec, "x, y") || strstr(spec, "y, x")));
    if (rank == 0)
        spec = "";
    p.sharding = n == 1 && below(2) ? oly_single_device(oly_get_device(all[first]))
                                    : oly_named(oly_mesh_from_devices(n_axes, names, sizes, all + first), spec);
    for (int k = 0; k < n; k++)
        p.processes |= 1u << oly_device_process(oly_get_device(all[first + k]));
    int length = snprintf(p.text, sizeof p.text, "%s on", spec);
    for (int k = 0; k < n; k++)
        length += snprintf(p.text + length, sizeof p.text - (size_t)length, " %d", all[first + k]);
    return p;
}

static bool is_member(unsigned processes)
{
    return processes >> oly_process_index() & 1;
}

typedef struct contents {
    int64_t shape[3];
    size_t element;
    uint32_t salt;
} contents;

static oly_status fill(const oly_index_box *box, void *memory, void *user)
{
    const contents *c = user;
    int64_t at[OLY_MAX_RANK] = {0}, n = 1;
    unsigned char *out = memory;
    for (int d = 0; d < box->rank; d++)
        n *= box->extent[d];
    for (int64_t k = 0; k < n; k++) {
        uint64_t number = c->salt;
        for (int d = 0; d < box->rank; d++)
            number = number * (uint64_t)c->shape[d] + (uint64_t)(box->start[d] + at[d]);
        for (size_t b = 0; b < c->element; b++)
            *out++ = (unsigned char)((number * 0x9e3779b1 + b * 0x85ebca6b) >> 16);
        for (int d = box->rank - 1; d >= 0 && ++at[d] == box->extent[d]; d--)
            at[d] = 0;
    }
    return OLY_OK;
}

static void check(oly_array x, contents *c, const char *what, const place *from, const place *to, uint64_t seed)
{
    OLY_SCOPE
    {
        OLY_FOR_EACH_SHARD(s, x)
        {
            oly_index_box box = {.rank = s.rank};
            size_t bytes = c->element;
            for (int d = 0; d < s.rank; d++) {
                box.start[d] = s.start[d];
                box.extent[d] = s.extent[d];
                bytes *= (size_t)s.extent[d];
            }
            unsigned char *want = malloc(bytes + 1);
            fill(&box, want, c);
            if (bytes && memcmp(want, s.memory, bytes) != 0)
                fail_msg("PUT_SEED=%" PRIu64 " PUT_STEPS=1: %s from %s to %s: a shard differs", seed, what, from->text,
                         to->text);
            free(want);
        }
    }
}

static void chain(uint64_t seed)
{
    static const oly_dtype types[] = {OLY_UINT8, OLY_INT16, OLY_FLOAT32, OLY_COMPLEX64, OLY_COMPLEX128};
    state_of_random = seed;
    int rank = below(10) ? 1 + below(3) : 0;
    oly_dtype dtype = types[below(5)];
    contents c = {.element = oly_dtype_size(dtype), .salt = (uint32_t)seed};
    for (int d = 0; d < rank; d++)
        c.shape[d] = below(20) ? 1 + below(rank == 1 ? 500 : 40) : 0;
    place a = draw_place(rank), b = draw_place(rank), last = draw_place(rank);
    unsigned members = a.processes | b.processes | last.processes;
    oly_scope_open();
    if (!is_member(members)) { /* something of its own meanwhile */
        assert_true(oly_item(oly_sum(oly_arange(5, OLY_INT32))) == 10);
        oly_scope_close();
        return;
    }
    oly_array x = oly_from_callback(a.sharding, dtype, rank, c.shape, fill, &c);
    oly_array y = oly_device_put(x, b.sharding), z = oly_device_put(y, last.sharding);
    if (!x || !y || !z)
        fail_msg("PUT_SEED=%" PRIu64 " PUT_STEPS=1: %s, %s, %s: %s", seed, a.text, b.text, last.text, oly_last_error());
    check(x, &c, "made", &a, &a, seed);
    check(z, &c, "put again", &b, &last, seed);
    check(y, &c, "put", &a, &b, seed);
    oly_scope_close();
}

static void any_mesh_to_any_other(void **state)
{
    (void)state;
    uint64_t seed = getenv("PUT_SEED") ? strtoull(getenv("PUT_SEED"), NULL, 10) : 1;
    int steps = getenv("PUT_STEPS") ? atoi(getenv("PUT_STEPS")) : STEPS;
    for (int k = 0; k < steps; k++)
        chain(seed + (uint64_t)k);
    oly_sync("done"); /* and nobody has missed a call that matters */
}

/* Each process runs its own stage only. Of the array that comes it has a stand-in, which holds nothing. */
static void a_stand_in_receives_what_others_computed(void **state)
{
    (void)state;
    int n = oly_process_count(), me = oly_process_index(), each = 8 / n;
    int64_t shape[] = {9, 7};
    contents c = {.element = 4, .shape = {9, 7}};
    for (int k = 0; k < 3 * n; k++)
        OLY_SCOPE
        {
            int from = k % n, to = (k + 1) % n;
            oly_sharding source = oly_single_device(oly_get_device(from * each));
            oly_sharding target = oly_single_device(oly_get_device(to * each + each - 1));
            if (me != from && me != to)
                continue;
            oly_array x = NULL;
            if (me == from)
                x = oly_mul(oly_from_callback(source, OLY_INT32, 2, shape, fill, &c), 3);
            else
                x = oly_from_shards(source, OLY_INT32, 2, shape, 0, NULL);
            oly_array y = oly_device_put(x, target);
            OLY_FOR_EACH_SHARD(s, y)
            {
                int32_t want[63];
                oly_index_box all = {.rank = 2, .extent = {9, 7}};
                fill(&all, want, &c);
                for (int j = 0; j < 63; j++)
                    assert_int_equal(((const int32_t *)s.memory)[j], (int32_t)(3u * (uint32_t)want[j]));
            }
            assert_int_equal(oly_shard_count(y), me == to);
        }
    oly_sync("done");
}

/* Arrays of the first process's own data go to the last one, which makes stand-ins, each as it needs it: in another order than that in
 * which the arrays were made, and not for all of them. */
static void stand_ins_are_made_when_they_are_needed(void **state)
{
    (void)state;
    int last = oly_process_count() - 1, me = oly_process_index(), each = 8 / (last + 1);
    int64_t shape[] = {9, 7};
    oly_sharding source = oly_single_device(oly_get_device(0)), target = oly_single_device(oly_get_device(last * each));
    static const int order[] = {2, 0, 3, 2, 0};
    oly_array made[4] = {0};
    contents c[4];
    if (last == 0 || (me != 0 && me != last))
        return;
    for (int k = 0; k < 4; k++) {
        c[k] = (contents){.element = 4, .shape = {9, 7}, .salt = (uint32_t)k};
        if (me == 0)
            made[k] = oly_from_callback(source, OLY_INT32, 2, shape, fill, &c[k]);
    }
    for (int k = 0; k < 5; k++) {
        int which = order[k];
        if (!made[which])
            made[which] = oly_from_shards(source, OLY_INT32, 2, shape, 0, NULL);
        oly_array y = oly_device_put(made[which], target);
        OLY_FOR_EACH_SHARD(s, y)
        {
            int32_t want[63];
            oly_index_box all = {.rank = 2, .extent = {9, 7}};
            fill(&all, want, &c[which]);
            assert_memory_equal(s.memory, want, sizeof want);
        }
    }
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_start, check_finish)
static const struct CMUnitTest tests[] = {
    STARTED(any_mesh_to_any_other),
    STARTED(a_stand_in_receives_what_others_computed),
    STARTED(stand_ins_are_made_when_they_are_needed),
};

/* -- programs that do it wrong, for test_put_wrong.sh: 4 ranks of 2 devices; the first two have x and y ---------------------------- */

static oly_array two[3];
static oly_array own(oly_sharding s, contents *c)
{
    return oly_from_callback(s, OLY_FLOAT32, 2, c->shape, fill, c);
}

/* Own data of the first process, which the last one, without a part of it, asks for in another order. */
static int swap_own_data(const char *how)
{
    bool has = oly_process_index() == 0, odd = oly_process_index() == 3;
    contents c = {.element = 4, .shape = {64, 33}};
    oly_sharding from = oly_single_device(oly_get_device(0)), to = oly_single_device(oly_get_device(7));
    int n = 2, first = odd;
    if (strcmp(how, "own: calls") == 0) {
        for (int k = 0; k < n; k++)
            two[k] = own(from, &c);
    } else if (strcmp(how, "own: lines") == 0) {
        two[0] = oly_from_callback(from, OLY_FLOAT32, 2, c.shape, fill, &c);
        two[1] = oly_from_callback(from, OLY_FLOAT32, 2, c.shape, fill, &c);
    } else if (strcmp(how, "own: computed") == 0) {
        two[0] = oly_sin(own(from, &c));
        two[1] = oly_sin(own(from, &c));
    } else if (strcmp(how, "own: stand-ins") == 0) {
        for (int k = 0; k < n; k++)
            two[k] = has ? own(from, &c) : oly_from_shards(from, OLY_FLOAT32, 2, c.shape, 0, NULL);
    } else { /* of three, stand-ins for two */
        for (int k = 0; k < (has ? 3 : n); k++)
            two[k] = has ? own(from, &c) : oly_from_shards(from, OLY_FLOAT32, 2, c.shape, 0, NULL);
    }
    for (int k = 0; k < n && (has || odd); k++)
        oly_block_until_ready(oly_device_put(two[first ? n - 1 - k : k], to));
    return oly_finalize();
}

static int do_it_wrong(const char *how)
{
    int64_t shape[] = {64, 33}, other[] = {64, 34};
    int n = 4, me = oly_process_index();
    contents c = {.element = 4, .shape = {64, 33}};
    bool odd = me == 3;
    oly_sharding from = oly_named(oly_mesh_from_devices(1, (const char *[]){"x"}, &n, (int[]){0, 1, 2, 3}), "x");
    oly_sharding to = oly_named(oly_mesh_from_devices(1, (const char *[]){"x"}, &n, (int[]){4, 5, 6, 7}), "None, x");
    bool shape_differs = odd && strcmp(how, "shape") == 0;
    oly_array x = oly_from_callback(from, OLY_FLOAT32, 2, shape_differs ? other : shape, fill, &c);
    oly_array y = oly_from_callback(from, OLY_FLOAT32, 2, shape, fill, &c);
    if (strcmp(how, "order") == 0) { /* known to all by what they were made of */
        x = oly_device_put(oly_full(1, OLY_FLOAT32, 64, 33), from);
        y = oly_device_put(oly_full(2, OLY_FLOAT32, 64, 33), from);
    }
    if (strcmp(how, "missing") == 0 && odd) {
        oly_sync("end");
    } else if (strcmp(how, "alone") == 0 && me != 0) {
        /* nothing */
    } else if (strcmp(how, "order") == 0 && odd) {
        oly_device_put(y, to);
        oly_device_put(oly_transpose(x), to);
    } else {
        oly_device_put(x, to);
        oly_device_put(oly_transpose(y), to);
    }
    return oly_finalize();
}

int main(int argc, char **argv)
{
    const char *how = getenv("PUT_WRONG");
    if (!how)
        return CHECK_MAIN(tests);
    oly_init(&argc, &argv);
    return strncmp(how, "own", 3) == 0 ? swap_own_data(how) : do_it_wrong(how);
}
