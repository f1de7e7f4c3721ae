/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Buffers of queued jobs: a million jobs on 1 to 64 devices, some of them slow, that pass buffers on to
 * each other before they have run, read the right data, in the memory that they need one by one. */
#include "check.h"
#include "core/error.h"
#include "core/option.h"
#include "device/memory.h"
#include "device/queue.h"
#include "device/workers.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_DEVICES = 64, MOST_TOGETHER = 4, ARRAYS = 3, WORDS = 16 };

static uint64_t state_of_random;

static unsigned below(unsigned n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_random >> 33) % n;
}

/* -- jobs: each reads an array of its first device, and writes one on each of its devices --------------------------------- */

/* The state of a device: handles, and the values that the jobs queued so far will have written. */
typedef struct array {
    oly_buffer *buffer;
    uint64_t value;
} array;

typedef struct job {
    oly_job job; /* first member */
    int devices[MOST_TOGETHER];
    uint64_t in[MOST_TOGETHER], out[MOST_TOGETHER];
    oly_buffer *read[MOST_TOGETHER], *written[MOST_TOGETHER], *scratch[MOST_TOGETHER];
    int delay; /* 0: none, 1: yields the core, else microseconds */
} job;

static array held[MOST_DEVICES][ARRAYS];
static atomic_long wrong, ran;
static uint64_t calls;

static void fill(const oly_buffer *b, uint64_t value)
{
    uint64_t *word = b->data;
    for (int k = 0; k < WORDS; k++)
        word[k] = value + (uint64_t)k;
}

static void look(const oly_buffer *b, uint64_t value)
{
    const uint64_t *word = b->data;
    for (int k = 0; k < WORDS; k++)
        if (word[k] != value + (uint64_t)k) {
            atomic_fetch_add(&wrong, 1);
            return;
        }
}

static void rest(int delay)
{
    if (delay == 1)
        sched_yield();
    else if (delay > 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000L * delay}, NULL);
}

static void execute(oly_job *base)
{
    const job *j = (const job *)base;
    for (int d = 0; d < base->n_devices; d++)
        fill(j->scratch[d], j->out[d] ^ 0x5555);
    for (int d = 0; d < base->n_devices; d++)
        look(j->read[d], j->in[d]);
    rest(j->delay);
    for (int d = 0; d < base->n_devices; d++)
        fill(j->written[d], j->out[d]);
    for (int d = 0; d < base->n_devices; d++)
        look(j->scratch[d], j->out[d] ^ 0x5555);
    atomic_fetch_add(&ran, 1);
}

static void for_each_buffer(const job *j, void (*act)(oly_buffer *b))
{
    oly_pool_lock();
    for (int d = 0; d < j->job.n_devices; d++) {
        act(j->read[d]);
        act(j->written[d]);
        act(j->scratch[d]);
    }
    oly_pool_unlock();
}

static void entered(oly_job *base)
{
    for_each_buffer((const job *)base, oly_buffer_settle_locked);
}

static void release(oly_job *base)
{
    for_each_buffer((const job *)base, oly_buffer_done_locked);
    free(base);
}

/* Takes an array of device d as operand, and replaces it, donated, or another by a result. */
static void bind(job *j, int d, uint64_t number, size_t bytes)
{
    int device = j->devices[d];
    array *in = &held[device][below(ARRAYS)], *out = &held[device][below(ARRAYS)];
    j->read[d] = in->buffer;
    j->in[d] = in->value;
    j->out[d] = number * 1000003 + (uint64_t)d * 131;
    oly_buffer_use_locked(in->buffer, device, number);
    j->scratch[d] = oly_buffer_take_locked(bytes, device, number);
    bool in_place = in == out && below(2) && oly_buffer_is_sole_locked(in->buffer, device, number);
    if (in_place)
        oly_buffer_use_locked(j->written[d] = in->buffer, device, number);
    else
        j->written[d] = oly_buffer_take_locked(bytes, device, number);
    oly_buffer_hold_locked(j->written[d]);
}

static void submit(int n_devices, size_t bytes, bool delays)
{
    job *j = malloc(sizeof *j);
    assert_non_null(j);
    int together = 1 + (int)below(MOST_TOGETHER < n_devices ? MOST_TOGETHER : (unsigned)n_devices),
        first = (int)below(64);
    j->job = (oly_job){.execute = execute,
                       .release = release,
                       .entered = entered,
                       .n_devices = together,
                       .devices = j->devices,
                       .small = below(16) == 0};
    j->delay = !delays || below(64) ? 0 : below(8) ? 1 : 1 + (int)below(60);
    for (int d = 0; d < together; d++)
        j->devices[d] = (first + d * 7) % n_devices;
    for (int d = 1; d < together; d++) /* distinct */
        for (int e = 0; e < d; e++)
            if (j->devices[d] == j->devices[e]) {
                j->job.n_devices = together = d;
                break;
            }
    array old[MOST_TOGETHER], *place[MOST_TOGETHER];
    uint64_t number = ++calls;
    oly_pool_lock();
    for (int d = 0; d < together; d++) {
        bind(j, d, number, bytes);
        place[d] = &held[j->devices[d]][below(ARRAYS)];
        for (int k = 0; k < ARRAYS; k++) /* a donated array is gone */
            if (held[j->devices[d]][k].buffer == j->written[d])
                place[d] = &held[j->devices[d]][k];
        old[d] = *place[d];
        *place[d] = (array){j->written[d], j->out[d]};
    }
    oly_pool_unlock();
    assert_int_equal(oly_queue_submit(&j->job), OLY_OK);
    for (int d = 0; d < together; d++)
        oly_buffer_drop(old[d].buffer);
}

static void begin(int n_devices, int threads, size_t bytes)
{
    oly_pool_stop();
    oly_option.queue_memory = 0;
    assert_int_equal(oly_workers_start(threads), OLY_OK);
    assert_int_equal(oly_queue_start(n_devices, 64), OLY_OK);
    atomic_store(&wrong, 0);
    atomic_store(&ran, 0);
    for (int d = 0; d < n_devices; d++)
        for (int k = 0; k < ARRAYS; k++) {
            held[d][k] = (array){oly_buffer_take(0, bytes), (uint64_t)(1000 * d + k)};
            fill(held[d][k].buffer, held[d][k].value);
        }
}

static void end(int n_devices)
{
    oly_queue_drain();
    for (int d = 0; d < n_devices; d++)
        for (int k = 0; k < ARRAYS; k++) {
            look(held[d][k].buffer, held[d][k].value);
            oly_buffer_drop(held[d][k].buffer);
        }
    assert_int_equal(atomic_load(&wrong), 0);
    oly_pool_statistics s = oly_pool_statistics_get();
    assert_int_equal(s.in_use_bytes, 0);
    assert_int_equal(s.spent_bytes, 0);
    oly_queue_stop();
    oly_workers_stop();
    oly_pool_stop();
}

/* Each device needs its arrays, and a result and scratch memory of the one job that is being bound; other devices can
 * keep two buffers that its jobs have used. */
static void run_many(int n_devices, int threads, int n_jobs, bool delays)
{
    enum { BYTES = 4096 };
    begin(n_devices, threads, BYTES);
    for (int k = 0; k < n_jobs; k++)
        submit(n_devices, BYTES, delays);
    oly_queue_drain();
    assert_int_equal(atomic_load(&ran), n_jobs);
    assert_true(oly_pool_statistics_get().peak_bytes <= (size_t)n_devices * (ARRAYS + 2) * BYTES);
    end(n_devices);
}

static void jobs_pass_buffers_on_before_they_run(void **state)
{
    (void)state;
    const char *asked = getenv("QUEUE_JOBS");
    int total = asked ? atoi(asked) : 1000000;
    state_of_random = 7;
    for (int n = 1; n <= MOST_DEVICES; n *= 2)
        for (int threads = 1; threads <= 4; threads++)
            run_many(n, threads, total / 28, threads > 1);
}

/* -- one rule at a time ------------------------------------------------------------------------------------------------------ */

static void nothing(oly_job *j)
{
    (void)j;
}

static atomic_bool gate;

static void wait_at_gate(oly_job *j)
{
    (void)j;
    while (!atomic_load(&gate))
        sched_yield();
}

/* Device 0 is blocked until the gate opens. */
static oly_job stop_device(const int *device)
{
    atomic_store(&gate, false);
    return (oly_job){.execute = wait_at_gate, .release = nothing, .n_devices = 1, .devices = device};
}

static void a_spent_buffer_is_given_to_its_device_only(void **state)
{
    (void)state;
    static const int zero = 0;
    begin(2, 2, 100);
    oly_job still = stop_device(&zero);
    assert_int_equal(oly_queue_submit(&still), OLY_OK);
    oly_buffer *b = oly_buffer_take(0, 3000);
    oly_pool_lock();
    oly_buffer_use_locked(b, 0, 1001);
    oly_pool_unlock();
    oly_buffer_drop(b); /* a job behind the gate uses it */
    assert_int_equal(oly_pool_statistics_get().spent_bytes, b->capacity);
    oly_option.queue_memory = 1;
    oly_pool_lock();
    oly_buffer *other = oly_buffer_take_locked(3000, 1, 1002), *small = oly_buffer_take_locked(1000, 0, 1003),
               *same = oly_buffer_take_locked(2900, 0, 1003), *next = oly_buffer_take_locked(2900, 0, 1003);
    assert_ptr_equal(same, b);
    assert_int_equal(b->calls, 2);
    assert_ptr_not_equal(other, b);
    assert_ptr_not_equal(small, b);
    assert_ptr_not_equal(next, b);
    oly_buffer_done_locked(b); /* of the first job: the second still has it */
    oly_pool_unlock();
    assert_int_equal(oly_buffer_references(b), 1);
    oly_pool_lock();
    oly_buffer_done_locked(other);
    oly_buffer_done_locked(small);
    oly_buffer_done_locked(same);
    oly_buffer_done_locked(next);
    oly_pool_unlock();
    atomic_store(&gate, true);
    end(2);
}

static void what_jobs_of_several_devices_use_is_given_to_nobody(void **state)
{
    (void)state;
    begin(2, 1, 100);
    oly_buffer *b = oly_buffer_take(0, 3000);
    oly_pool_lock();
    oly_buffer_use_locked(b, 0, 1001);
    assert_true(oly_buffer_is_sole_locked(b, 0, 1001));
    assert_false(oly_buffer_is_sole_locked(b, 1, 1001));
    assert_false(oly_buffer_is_sole_locked(b, 0, 1000));
    oly_buffer_use_locked(b, 1, 1002);
    assert_false(oly_buffer_is_sole_locked(b, 1, 1002));
    oly_pool_unlock();
    oly_buffer_drop(b);
    assert_int_equal(oly_pool_statistics_get().spent_bytes, b->capacity);
    oly_option.queue_memory = 1;
    oly_pool_lock();
    for (int device = 0; device < 2; device++) {
        oly_buffer *other = oly_buffer_take_locked(3000, device, 1003);
        assert_ptr_not_equal(other, b);
        oly_buffer_done_locked(other);
    }
    oly_buffer_done_locked(b);
    assert_int_equal(b->calls, 1);
    oly_buffer_done_locked(b); /* free for all devices */
    assert_ptr_equal(oly_buffer_take_locked(3000, 1, 1004), b);
    oly_buffer_done_locked(b);
    oly_pool_unlock();
    end(2);
}

static void an_operand_named_twice_is_not_overwritten(void **state)
{
    (void)state;
    begin(1, 1, 100);
    oly_buffer *b = held[0][0].buffer;
    oly_pool_lock();
    oly_buffer_use_locked(b, 0, 2001);
    assert_true(oly_buffer_is_sole_locked(b, 0, 2001));
    oly_buffer_hold_locked(b); /* another handle */
    assert_false(oly_buffer_is_sole_locked(b, 0, 2001));
    oly_pool_unlock();
    oly_buffer_drop(b);
    oly_pool_lock();
    oly_buffer_use_locked(b, 0, 2001);
    assert_false(oly_buffer_is_sole_locked(b, 0, 2001));
    oly_buffer_use_locked(b, 0, 2002); /* the next call uses it once */
    assert_true(oly_buffer_is_sole_locked(b, 0, 2002));
    for (int k = 0; k < 3; k++)
        oly_buffer_done_locked(b);
    oly_pool_unlock();
    end(1);
}

static void *open_gate_later(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&gate, true);
    return NULL;
}

static void done_with_one(oly_job *base)
{
    job *j = (job *)base;
    oly_pool_lock();
    oly_buffer_done_locked(j->read[0]);
    oly_pool_unlock();
}

/* Memory from the host: with many buffers that queued jobs still read, callers wait. */
static void who_needs_a_block_waits_while_much_is_spent(void **state)
{
    static const int zero = 0;
    enum { BIG = 8 << 20 };
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        pthread_t opener;
        begin(1, 2, 100);
        oly_option.queue_memory = waits ? 1 : 100;
        job j = {.job = stop_device(&zero), .read = {oly_buffer_take(0, BIG)}};
        j.job.release = done_with_one;
        oly_pool_lock();
        oly_buffer_use_locked(j.read[0], 0, 3001);
        oly_pool_unlock();
        assert_int_equal(oly_queue_submit(&j.job), OLY_OK);
        oly_buffer_drop(j.read[0]);
        assert_int_equal(pthread_create(&opener, NULL, open_gate_later, NULL), 0);
        oly_buffer *at_once = oly_buffer_take_at_once(0, 1 << 20), *b = oly_buffer_take(0, BIG);
        assert_non_null(b);
        if (waits) {
            assert_true(atomic_load(&gate));
            assert_ptr_equal(b, j.read[0]);
        } else {
            assert_ptr_not_equal(b, j.read[0]);
        }
        pthread_join(opener, NULL);
        oly_buffer_drop(b);
        oly_buffer_drop(at_once);
        end(1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spent_buffer_is_given_to_its_device_only),
        cmocka_unit_test(what_jobs_of_several_devices_use_is_given_to_nobody),
        cmocka_unit_test(an_operand_named_twice_is_not_overwritten),
        cmocka_unit_test(who_needs_a_block_waits_while_much_is_spent),
        cmocka_unit_test(jobs_pass_buffers_on_before_they_run),
    };
    return CHECK_MAIN(tests);
}
