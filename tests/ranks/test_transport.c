/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2,4  What transport.h promises the protocol above it, of MPI's and of the tests' own transport; and that the latter notices
 * messages whose ends name other devices. */
#include "check.h"
#include "communicator.h"
#include "core/error.h"
#include "core/option.h"
#include "transport_shuffled.h"

enum { MOST = 40000 };
static int rank, size;
static char complaint[200];

static void note(const char *line)
{
    snprintf(complaint, sizeof complaint, "%s", line);
}

/* Memory that only these may use. */
static int n_read, n_written, fails_at = -1;

static oly_status read_device(void *host, int device, const void *from, size_t bytes)
{
    assert_int_equal(device, rank);
    memcpy(host, from, bytes);
    return n_read++ == fails_at ? oly_fail(OLY_MEMORY, "no reading") : OLY_OK;
}

static oly_status write_device(int device, void *to, const void *host, size_t bytes)
{
    assert_int_equal(device, rank);
    memcpy(to, host, bytes);
    n_written++;
    return OLY_OK;
}

static const oly_device_access by_functions = {read_device, write_device};

static int start_with(const oly_transport *transport, const oly_device_access *access)
{
    oly_transport_register(transport);
    if (oly_options_read() != OLY_OK || oly_world_start(NULL, NULL) != OLY_OK)
        return -1;
    oly_transport_choose(access);
    rank = oly_world_rank();
    size = oly_world_size();
    oly_option.timeout = 60;
    return 0;
}

static int start_mpi(void **state)
{
    (void)state;
    return start_with(&oly_transport_mpi, NULL);
}

static int start_far(void **state)
{
    (void)state;
    n_read = n_written = 0;
    fails_at = -1;
    return start_with(&oly_transport_mpi, &by_functions);
}

static int start_shuffled(void **state)
{
    (void)state;
    transport_shuffled_seed(5);
    transport_shuffled_complain = note;
    complaint[0] = 0;
    return start_with(&transport_shuffled, NULL);
}

static int stop(void **state)
{
    (void)state;
    oly_transport_register(NULL);
    return oly_world_finish() == OLY_OK ? 0 : -1;
}

static void assert_ok(oly_status status)
{
    if (status != OLY_OK)
        fail_msg("status %d: %s", (int)status, oly_pending_message());
}

static char byte_of(int from, int to, int k)
{
    return (char)(from * 31 + to * 7 + k % 127);
}

static oly_piece run_of(int64_t at, int n, int own, int other)
{
    return (oly_piece){.device = own, .peer_device = other, .offset = at, .rank = 1, .extent = {n}, .stride = {1}};
}

/* From every rank to every other one, n bytes. wrong: the receivers expect them from another device. */
static void all_to_all(int n, uint64_t sequence, bool wrong)
{
    static char from[8 * MOST], to[8 * MOST];
    oly_piece sent[8], received[8];
    oly_message sends[8], receives[8];
    oly_exchange *x;
    int all = -1, peers = 0;
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank)
            continue;
        for (int k = 0; k < n; k++)
            from[(size_t)peer * MOST + (size_t)k] = byte_of(rank, peer, k);
        sent[peers] = run_of((int64_t)peer * MOST, n, rank, peer);
        received[peers] = run_of((int64_t)peer * MOST, n, rank, wrong ? peer + 1 : peer);
        sends[peers] = (oly_message){peer, 1, &sent[peers], &all};
        receives[peers] = (oly_message){peer, 1, &received[peers], &all};
        peers++;
    }
    memset(to, 0, sizeof to);
    oly_ticket ticket = {.sequence = sequence, .fingerprint = 3, .call = "all_to_all"};
    assert_ok(oly_exchange_make(1, peers, sends, peers, receives, &x));
    assert_ok(oly_exchange_start(x, &ticket, (void *[]){from}));
    assert_ok(oly_exchange_finish(x, &ticket, (void *[]){to}));
    oly_exchange_free(x);
    for (int peer = 0; peer < size; peer++)
        for (int k = 0; k < n && peer != rank; k++)
            assert_int_equal(to[(size_t)peer * MOST + (size_t)k], byte_of(peer, rank, k));
}

static void messages_of_all_lengths_arrive(void **state)
{
    static const int lengths[] = {0, 1, 99, 100, 101, 2000, 8192, 8193, MOST};
    (void)state;
    for (uint64_t k = 0; k < 60; k++)
        all_to_all(lengths[k % (sizeof lengths / sizeof *lengths)], k, false);
    assert_string_equal(complaint, "");
}

static void far_memory_is_read_and_written_by_functions(void **state)
{
    (void)state;
    all_to_all(50, 1, false);
    assert_int_equal(n_read, size - 1);
    assert_int_equal(n_written, size - 1);
    all_to_all(MOST, 2, false); /* contiguous, and packed nevertheless */
    assert_int_equal(n_read, 2 * (size - 1));
    assert_int_equal(n_written, 2 * (size - 1));
}

/* 3 of 8 columns of 5 rows. */
static void far_boxes_with_gaps_arrive(void **state)
{
    (void)state;
    char from[40], to[40] = {0};
    int own = -1;
    oly_piece piece = {
        .device = rank, .peer_device = rank ^ 1, .offset = 2, .rank = 2, .extent = {5, 3}, .stride = {8, 1}};
    oly_message message = {rank ^ 1, 1, &piece, &own};
    oly_exchange *x;
    oly_ticket ticket = {.sequence = 1, .fingerprint = 3, .call = "gaps"};
    for (int k = 0; k < 40; k++)
        from[k] = byte_of(rank, rank ^ 1, k);
    assert_ok(oly_exchange_make(1, 1, &message, 1, &message, &x));
    assert_ok(oly_exchange_start(x, &ticket, (void *[]){from}));
    assert_ok(oly_exchange_finish(x, &ticket, (void *[]){to}));
    oly_exchange_free(x);
    assert_int_equal(n_read, 5);
    for (int k = 0; k < 40; k++)
        assert_int_equal(to[k], k % 8 >= 2 && k % 8 < 5 ? byte_of(rank ^ 1, rank, k) : 0);
}

static void failures_of_devices_are_told(void **state)
{
    (void)state;
    char byte = 1;
    int own = -1;
    oly_piece piece = run_of(0, 1, rank, rank ^ 1);
    oly_message message = {rank ^ 1, 1, &piece, &own};
    oly_exchange *x;
    oly_ticket ticket = {.sequence = 1, .fingerprint = 3, .call = "fails"};
    oly_set_error_mode(OLY_ERRORS_RETURN);
    fails_at = 0;
    assert_ok(oly_exchange_make(1, 1, &message, 0, NULL, &x));
    assert_int_equal(oly_exchange_start(x, &ticket, (void *[]){&byte}), OLY_MEMORY);
    assert_string_equal(oly_pending_message(), "no reading");
    oly_drop_message();
    oly_exchange_free(x);
}

static void requests_complete_once(void **state)
{
    (void)state;
    const oly_transport *t = oly_transport_get();
    char sent[2][3000], received[2][3000];
    oly_payload payload = {.peer = rank ^ 1};
    void *requests = calloc(1, t->make(4, 4, NULL));
    assert_non_null(requests);
    t->make(4, 4, requests);
    for (int k = 0; k < 2; k++) {
        memset(sent[k], 10 * rank + k, sizeof sent[k]);
        oly_chunk in = {.payload = &payload, .host = received[k], .room = sizeof received[k], .tag = 7};
        oly_chunk out = {.payload = &payload, .host = sent[k], .room = sizeof sent[k], .tag = 7};
        assert_ok(t->receive(requests, k, &in));
        assert_ok(t->send(requests, 2 + k, &out));
    }
    int times[4] = {0}, n;
    for (int total = 0; total < 4; total += n) {
        oly_completion done[4];
        assert_ok(t->test(requests, 4, &n, done));
        for (int k = 0; k < n; k++) {
            times[done[k].request]++;
            if (done[k].request < 2)
                assert_int_equal(done[k].bytes, sizeof received[0]);
        }
    }
    for (int k = 0; k < 4; k++)
        assert_int_equal(times[k], 1);
    for (int k = 0; k < 2; k++) /* in the order in which they were sent */
        assert_int_equal(received[k][2999], 10 * (rank ^ 1) + k);
    free(requests);
}

static void strays_are_found(void **state)
{
    (void)state;
    const oly_transport *t = oly_transport_get();
    char sent[OLY_FIRST_MESSAGE_BYTES] = {0}, found[OLY_FIRST_MESSAGE_BYTES];
    oly_payload payload = {.peer = rank ^ 1};
    oly_chunk out = {.payload = &payload, .host = sent, .room = 200, .tag = 0 /* tickets */};
    void *requests = calloc(1, t->make(1, 1, NULL));
    assert_non_null(requests);
    t->make(1, 1, requests);
    sent[199] = (char)(rank + 1);
    assert_ok(t->send(requests, 0, &out));
    oly_completion done;
    int from = -1;
    for (int n = 0, completed = 0; from < 0 || !completed; completed += n) {
        assert_ok(t->test(requests, 1, &n, &done));
        from = from < 0 ? t->stray(found) : from;
    }
    assert_int_equal(from, rank ^ 1);
    assert_int_equal(found[199], (rank ^ 1) + 1);
    assert_false(t->give_up(requests, 0)); /* it is complete */
    free(requests);
}

static void other_devices_are_noticed(void **state)
{
    (void)state;
    all_to_all(50, 1, true);
    if (!strstr(complaint, "it was sent from device"))
        fail_msg("the complaint is: %s", complaint);
    complaint[0] = 0;
    all_to_all(5000, 2, true);
    if (!strstr(complaint, "it was sent from device"))
        fail_msg("the complaint of a large message is: %s", complaint);
}

int main(void)
{
#define OF(test, start) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        OF(messages_of_all_lengths_arrive, start_mpi),
        OF(requests_complete_once, start_mpi),
        OF(strays_are_found, start_mpi),
        OF(messages_of_all_lengths_arrive, start_far),
        OF(far_memory_is_read_and_written_by_functions, start_far),
        OF(far_boxes_with_gaps_arrive, start_far),
        OF(failures_of_devices_are_told, start_far),
        OF(messages_of_all_lengths_arrive, start_shuffled),
        OF(requests_complete_once, start_shuffled),
        OF(strays_are_found, start_shuffled),
        OF(other_devices_are_noticed, start_shuffled),
    };
    return CHECK_MAIN(tests);
}
