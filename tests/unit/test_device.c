/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  Devices, their memory, the thread pool and the run queue. */
#include "check.h"
#include "core/error.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/queue.h"
#include "device/workers.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* -- devices ----------------------------------------------------------------------------------- */

static void devices_are_numbered_over_all_processes(void **state)
{
    static const int counts[] = {2, 0, 3};
    char text[16];
    (void)state;
    assert_int_equal(oly_devices_start(3, counts, 2, "cpu"), OLY_OK);
    assert_int_equal(oly_device_count(), 5);
    assert_int_equal(oly_local_device_count(), 3);
    assert_int_equal(oly_device_process(oly_get_device(1)), 0);
    oly_device d = oly_local_device(1);
    assert_ptr_equal(d, oly_get_device(3));
    assert_ptr_equal(d, oly_device_at(3));
    assert_int_equal(oly_device_id(d), 3);
    assert_int_equal(d->local, 1);
    assert_true(oly_device_is_local(d));
    assert_false(oly_device_is_local(oly_get_device(1)));
    assert_string_equal(oly_device_platform(d), "cpu");
    assert_int_equal(oly_device_str(d, text, sizeof text), 5);
    assert_string_equal(text, "CPU_3");
    assert_int_equal(oly_device_str(d, text, 3), 5);
    assert_string_equal(text, "CP");
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_null(oly_get_device(5));
    assert_int_equal(oly_last_status(), OLY_INVALID);
    assert_null(oly_local_device(-1));
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_ABORT);
    oly_devices_stop();
    assert_int_equal(oly_device_count(), 0);
    assert_null(oly_device_at(0));
}

/* -- memory ------------------------------------------------------------------------------------ */

static void buffers_are_aligned_and_reused(void **state)
{
    static const size_t sizes[] = {0,    1,     63,    64,    65,     127,     2049,    4095,          4096,
                                   4097, 10007, 65536, 65537, 999983, 4194303, 4194304, (5 << 20) + 1, 33554433};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        oly_buffer *b = oly_buffer_take(0, sizes[i]);
        assert_non_null(b);
        assert_int_equal(b->bytes, sizes[i]);
        assert_true(b->capacity >= sizes[i]);
        if (sizes[i] > 4096)
            assert_true(b->capacity <= sizes[i] + sizes[i] / 8 + 1);
        assert_int_equal((uintptr_t)b->data % (b->capacity >= 4 << 20 ? 2 << 20 : 64), 0);
        if (sizes[i])
            ((char *)b->data)[0] = ((char *)b->data)[sizes[i] - 1] = 1;
        void *data = b->data;
        oly_buffer_drop(b);
        b = oly_buffer_take(0, b->capacity); /* the largest request of its class */
        assert_ptr_equal(b->data, data);
        oly_buffer_drop(b);
    }
    oly_buffer_drop(NULL);
    oly_pool_stop();
    oly_pool_statistics s = oly_pool_statistics_get();
    assert_int_equal(s.in_use_bytes + s.free_bytes + s.peak_bytes, 0);
}

static void the_last_reference_returns_a_buffer(void **state)
{
    (void)state;
    oly_buffer *b = oly_buffer_take(0, 1000);
    oly_buffer_hold(b);
    assert_int_equal(oly_buffer_references(b), 2);
    oly_buffer_drop(b);
    oly_pool_statistics s = oly_pool_statistics_get();
    assert_int_equal(s.in_use_bytes, 1024);
    assert_int_equal(s.free_bytes, 0);
    oly_buffer_drop(b);
    s = oly_pool_statistics_get();
    assert_int_equal(s.in_use_bytes, 0);
    assert_int_equal(s.free_bytes, 1024);
    assert_int_equal(s.peak_bytes, 1024);
    oly_pool_trim();
    assert_int_equal(oly_pool_statistics_get().free_bytes, 0);
    oly_pool_stop();
}

static void free_blocks_do_not_pile_up(void **state)
{
    (void)state;
    size_t bytes = 4096;
    for (int i = 0; i < 80; i++, bytes += bytes / 8)
        oly_buffer_drop(oly_buffer_take(0, bytes)); /* each of a class of its own */
    oly_pool_statistics s = oly_pool_statistics_get();
    assert_true(s.free_bytes <= 3 * s.peak_bytes);
    oly_pool_stop();
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    assert_null(oly_buffer_take(0, SIZE_MAX));
    assert_null(oly_buffer_take(0, ((size_t)1 << 47) + 1));
    oly_fail_allocation(0);
    assert_null(oly_buffer_take(0, 8));
    oly_buffer *b = oly_buffer_take(0, 8);
    assert_non_null(b);
    assert_int_equal(oly_buffer_fail((size_t)64 << 20, "the sum"), OLY_MEMORY);
    assert_non_null(
        strstr(oly_pending_message(), "64.0 MiB for the sum; the pool holds 64 bytes in use and 0 bytes free"));
    oly_drop_message();
    oly_buffer_drop(b);
    oly_pool_stop();
}

static void *take_and_drop(void *shared)
{
    for (int i = 0; i < 2000; i++) {
        oly_buffer *b = oly_buffer_take(0, (size_t)(i * 37 % 9001));
        *(volatile char *)b->data = 1;
        oly_buffer_hold(shared);
        oly_buffer_drop(b);
        oly_buffer_drop(shared);
    }
    return NULL;
}

static void threads_share_the_pool(void **state)
{
    pthread_t threads[3];
    (void)state;
    oly_buffer *shared = oly_buffer_take(0, 8);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_drop, shared), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(oly_buffer_references(shared), 1);
    oly_buffer_drop(shared);
    assert_int_equal(oly_pool_statistics_get().in_use_bytes, 0);
    oly_pool_stop();
}

/* -- workers ----------------------------------------------------------------------------------- */

static atomic_int visits[1000];

static void visit(void *context, int i)
{
    assert_ptr_equal(context, visits);
    assert_in_range(oly_workers_slot(), 0, oly_workers_slots() - 1);
    atomic_fetch_add(&visits[i], 1);
}

static void expect_visits(int n, int each)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(atomic_exchange(&visits[i], 0), each);
}

static void visit_rows(void *context, int i)
{
    (void)i;
    oly_parallel(13, visit, context);
}

static void every_index_runs_once(void **state)
{
    static const int threads[] = {1, 2, 3, 7};
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        assert_int_equal(oly_workers_start(threads[t]), OLY_OK);
        assert_int_equal(oly_workers_count(), threads[t]);
        for (int n = 0; n <= 1000; n = n * 3 + 1) {
            oly_parallel(n, visit, visits);
            expect_visits(n, 1);
        }
        for (int again = 0; again < 500; again++)
            oly_parallel(5, visit, visits);
        expect_visits(5, 500);
        oly_parallel(17, visit_rows, visits); /* nested regions */
        expect_visits(13, 17);
        if (threads[t] > 1)
            assert_int_equal(oly_workers_start(2), OLY_STATE);
        oly_drop_message();
        oly_workers_stop();
        assert_int_equal(oly_workers_count(), 1);
    }
}

static atomic_int inside, most_inside;

/* Counts how many threads are inside at once; returns when two have been, or after a second. */
static void meet(void *context, int i)
{
    (void)context, (void)i;
    int n = atomic_fetch_add(&inside, 1) + 1;
    if (n > atomic_load(&most_inside))
        atomic_store(&most_inside, n);
    for (int wait = 0; wait < 10000 && atomic_load(&most_inside) < 2; wait++)
        usleep(100);
    atomic_fetch_sub(&inside, 1);
}

static void a_region_uses_sleeping_workers(void **state)
{
    (void)state;
    assert_int_equal(oly_workers_start(2), OLY_OK);
    usleep(20000); /* long enough for workers to sleep */
    atomic_store(&most_inside, 0);
    oly_parallel(2, meet, NULL);
    assert_int_equal(atomic_load(&most_inside), 2);
    oly_workers_stop();
}

static void *open_regions(void *unused)
{
    for (int i = 0; i < 300; i++)
        oly_parallel(7, visit, visits);
    return unused;
}

static void any_thread_may_open_a_region(void **state)
{
    pthread_t threads[3];
    (void)state;
    assert_int_equal(oly_workers_start(3), OLY_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_regions, NULL), 0);
    open_regions(NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    expect_visits(7, 4 * 300);
    oly_workers_stop();
}

static void *own_slot(void *slot)
{
    *(int *)slot = oly_workers_slot();
    return NULL;
}

static void slots_of_ended_threads_are_given_again(void **state)
{
    (void)state;
    int mine = oly_workers_slot(), theirs = -1;
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, own_slot, &theirs), 0);
        pthread_join(thread, NULL);
        assert_int_not_equal(theirs, mine);
        assert_in_range(theirs, 0, oly_workers_slots() - 1);
    }
    assert_int_equal(oly_workers_slot(), mine);
}

/* -- the queue --------------------------------------------------------------------------------- */

enum { N_DEVICES = 4, COMMUNICATION = N_DEVICES };

typedef struct note {
    oly_job job;
    int devices[N_DEVICES];
    int number;
    bool in_parallel;
} note;

/* The last job seen on each queue; numbers must increase. */
static struct {
    int last[N_DEVICES + 1];
    atomic_int users[N_DEVICES + 1]; /* jobs on the queue now */
    atomic_int wrong, executed, released, pending, most_pending;
} seen;

static void in_line(const note *n, int line)
{
    if (atomic_fetch_add(&seen.users[line], 1) != 0 || seen.last[line] >= n->number)
        atomic_fetch_add(&seen.wrong, 1);
    seen.last[line] = n->number; /* no lock: the order of jobs on a queue must suffice */
}

static void execute_note(oly_job *job)
{
    note *n = (note *)job;
    for (int i = 0; i < job->n_devices; i++)
        in_line(n, n->devices[i]);
    if (job->communicates)
        in_line(n, COMMUNICATION);
    if (n->in_parallel)
        oly_parallel(3, visit, visits);
    for (int i = 0; i < job->n_devices; i++)
        atomic_fetch_sub(&seen.users[n->devices[i]], 1);
    if (job->communicates)
        atomic_fetch_sub(&seen.users[COMMUNICATION], 1);
    atomic_fetch_add(&seen.executed, 1);
}

static void release_note(oly_job *job)
{
    atomic_fetch_add(&seen.released, 1);
    atomic_fetch_sub(&seen.pending, 1);
    free(job);
}

/* devices: one bit each. */
static oly_status submit_note(int number, unsigned devices, bool communicates, bool small, bool in_parallel)
{
    note *n = malloc(sizeof *n);
    assert_non_null(n);
    *n = (note){.number = number, .in_parallel = in_parallel};
    n->job = (oly_job){.execute = execute_note,
                       .release = release_note,
                       .devices = n->devices,
                       .communicates = communicates,
                       .small = small};
    for (int d = 0; d < N_DEVICES; d++)
        if (devices >> d & 1)
            n->devices[n->job.n_devices++] = d;
    int pending = atomic_fetch_add(&seen.pending, 1) + 1;
    if (pending > atomic_load(&seen.most_pending))
        atomic_store(&seen.most_pending, pending);
    oly_status status = oly_queue_submit(&n->job);
    if (status != OLY_OK) {
        atomic_fetch_sub(&seen.pending, 1);
        free(n);
    }
    return status;
}

static void begin(int threads, int depth)
{
    memset(&seen, 0, sizeof seen);
    for (int line = 0; line <= COMMUNICATION; line++)
        seen.last[line] = -1;
    assert_int_equal(oly_workers_start(threads), OLY_OK);
    assert_int_equal(oly_queue_start(N_DEVICES, depth), OLY_OK);
}

static void end(void)
{
    oly_queue_stop();
    oly_workers_stop();
}

static void jobs_keep_order_on_devices_and_communication_queue(void **state)
{
    static const int threads[] = {1, 2, 3};
    enum { JOBS = 5000 };
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        begin(threads[t], 17);
        uint32_t random = 12345;
        for (int i = 0; i < JOBS; i++) {
            random = random * 1664525u + 1013904223u;
            submit_note(i, random >> 20 & 15, random >> 24 & 1, (random >> 25 & 3) == 0, (random >> 27 & 7) == 0);
        }
        oly_queue_drain();
        assert_int_equal(atomic_load(&seen.released), JOBS); /* drained means released too */
        assert_int_equal(atomic_load(&seen.executed), JOBS);
        assert_int_equal(atomic_load(&seen.wrong), 0);
        assert_in_range(atomic_load(&seen.most_pending), 1, 18); /* the one that waits is not counted yet */
        end();
        for (int i = 0; i < 3; i++)
            atomic_store(&visits[i], 0);
    }
}

static void a_hundred_thousand_tiny_jobs(void **state)
{
    static const int threads[] = {1, 2};
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        begin(threads[t], 64);
        for (int i = 0; i < 100000; i++)
            submit_note(i, 1u << i % N_DEVICES, false, i % 3 == 0, false);
        for (int d = 0; d < N_DEVICES; d++) {
            oly_queue_wait(d, oly_queue_now(d));
            assert_int_equal(seen.last[d], 99996 + d);
        }
        assert_int_equal(atomic_load(&seen.executed), 100000);
        assert_int_equal(atomic_load(&seen.wrong), 0);
        end();
    }
}

static void execute_meet(oly_job *job)
{
    (void)job;
    meet(NULL, 0);
}

static void release_nothing(oly_job *job)
{
    (void)job;
}

static void different_devices_overlap(void **state)
{
    static const int devices[] = {0, 1};
    oly_job jobs[2];
    (void)state;
    begin(2, 64);
    atomic_store(&most_inside, 0);
    for (int i = 0; i < 2; i++) {
        jobs[i] = (oly_job){.execute = execute_meet,
                            .release = release_nothing,
                            .n_devices = 1,
                            .devices = &devices[i],
                            .communicates = i == 0};
        assert_int_equal(oly_queue_submit(&jobs[i]), OLY_OK);
    }
    uint64_t moment = oly_queue_now(1);
    oly_queue_wait(1, moment);
    assert_true(oly_queue_reached(1, moment));
    assert_false(oly_queue_reached(1, moment + 1));
    oly_queue_drain();
    assert_int_equal(atomic_load(&most_inside), 2);
    end();
}

static pthread_t submitter;
static atomic_int elsewhere;
static void execute_where(oly_job *job)
{
    (void)job;
    if (!pthread_equal(pthread_self(), submitter))
        atomic_fetch_add(&elsewhere, 1);
}

static void small_jobs_run_on_the_caller(void **state)
{
    static const int device = 2;
    oly_job job = {
        .execute = execute_where, .release = release_nothing, .n_devices = 1, .devices = &device, .small = true};
    (void)state;
    begin(2, 64);
    submitter = pthread_self();
    atomic_store(&elsewhere, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(oly_queue_submit(&job), OLY_OK);
        assert_true(oly_queue_reached(device, oly_queue_now(device))); /* already done, so the job may be reused */
    }
    job.small = false;
    oly_queue_inline(true);
    for (int i = 0; i < 1000; i++) {
        submit_note(i, 1, false, false, false);
        assert_int_equal(oly_queue_submit(&job), OLY_OK);
        assert_int_equal(atomic_load(&seen.executed), i + 1);
    }
    assert_int_equal(atomic_load(&elsewhere), 0);
    end();
}

static void *submit_many(void *first)
{
    for (int i = 0; i < 2000; i++)
        submit_note((int)(intptr_t)first + i, (intptr_t)first ? 3 : 12, false, i % 2, false);
    return NULL;
}

static void several_threads_may_submit(void **state)
{
    static const int threads[] = {1, 3};
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        pthread_t other;
        begin(threads[t], 8);
        assert_int_equal(pthread_create(&other, NULL, submit_many, (void *)10000), 0);
        submit_many(NULL);
        pthread_join(other, NULL);
        oly_queue_drain();
        assert_int_equal(atomic_load(&seen.executed), 4000);
        assert_int_equal(atomic_load(&seen.wrong), 0);
        end();
    }
}

static void execute_regions(oly_job *job)
{
    (void)job;
    oly_parallel(2, meet, NULL);
}

/* The thread that waits for a job helps with its regions, also after it has slept. */
static void waiting_threads_help_with_regions(void **state)
{
    static const int device = 0;
    oly_job job = {.execute = execute_regions, .release = release_nothing, .n_devices = 1, .devices = &device};
    (void)state;
    begin(2, 64);
    atomic_store(&most_inside, 0);
    assert_int_equal(oly_queue_submit(&job), OLY_OK);
    oly_queue_drain();
    assert_int_equal(atomic_load(&most_inside), 2);
    end();
}

static void failures_of_submit_leave_the_queue_usable(void **state)
{
    static const int device = N_DEVICES;
    oly_job wrong = {.execute = execute_meet, .release = release_nothing, .n_devices = 1, .devices = &device};
    (void)state;
    begin(1, 64);
    assert_int_equal(oly_queue_submit(&wrong), OLY_INVALID);
    oly_drop_message();
    oly_fail_allocation(0);
    assert_int_equal(submit_note(0, 1, false, false, false), OLY_MEMORY);
    oly_drop_message();
    assert_int_equal(submit_note(1, 15, true, false, false), OLY_OK);
    assert_int_equal(submit_note(2, 0, false, false, false), OLY_OK);
    assert_int_equal(atomic_load(&seen.executed), 2);
    assert_int_equal(oly_queue_now(0), 1);
    end();
    oly_fail_allocation(0);
    assert_int_equal(oly_queue_start(1, 1), OLY_MEMORY);
    oly_drop_message();
    oly_fail_allocation(0);
    assert_int_equal(oly_workers_start(2), OLY_MEMORY);
    oly_drop_message();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_numbered_over_all_processes),
        cmocka_unit_test(buffers_are_aligned_and_reused),
        cmocka_unit_test(the_last_reference_returns_a_buffer),
        cmocka_unit_test(free_blocks_do_not_pile_up),
        cmocka_unit_test(running_out_of_memory_is_told),
        cmocka_unit_test(threads_share_the_pool),
        cmocka_unit_test(every_index_runs_once),
        cmocka_unit_test(a_region_uses_sleeping_workers),
        cmocka_unit_test(any_thread_may_open_a_region),
        cmocka_unit_test(slots_of_ended_threads_are_given_again),
        cmocka_unit_test(jobs_keep_order_on_devices_and_communication_queue),
        cmocka_unit_test(a_hundred_thousand_tiny_jobs),
        cmocka_unit_test(different_devices_overlap),
        cmocka_unit_test(small_jobs_run_on_the_caller),
        cmocka_unit_test(several_threads_may_submit),
        cmocka_unit_test(waiting_threads_help_with_regions),
        cmocka_unit_test(failures_of_submit_leave_the_queue_usable),
    };
    return CHECK_MAIN(tests);
}
