/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4  Ranks that communicate: boxes arrive where they belong, and ranks that diverge are told so. */
#include "check.h"
#include "communicator.h"
#include "core/error.h"
#include "core/option.h"

static int rank, size;

static oly_ticket ticket(uint64_t sequence, uint64_t fingerprint, const char *call)
{
    oly_ticket t = {.sequence = sequence, .fingerprint = fingerprint};
    snprintf(t.call, sizeof t.call, "%s", call);
    return t;
}

static void assert_ok(oly_status status)
{
    if (status != OLY_OK)
        fail_msg("status %d: %s", (int)status, oly_pending_message());
}

static oly_exchange *make(size_t element, int n_sends, const oly_message *sends, int n_receives,
                          const oly_message *receives)
{
    oly_exchange *x = NULL;
    assert_ok(oly_exchange_make(element, n_sends, sends, n_receives, receives, &x));
    assert_non_null(x);
    return x;
}

static void replay(oly_exchange *x, uint64_t sequence, void *from, void *to)
{
    oly_ticket t = ticket(sequence, 7, "test");
    assert_ok(oly_exchange_start(x, &t, &from));
    assert_ok(oly_exchange_finish(x, &t, &to));
}

/* A run of n consecutive elements. */
static oly_piece run(int64_t offset, int64_t n)
{
    return (oly_piece){.offset = offset, .rank = 1, .extent = {n}, .stride = {1}};
}

/* Every rank has reached this point. */
static void all_arrive(void)
{
    char mine = 1, all[64];
    assert_ok(oly_world_gather(&mine, all, 1));
}

static int start_world(void **state)
{
    (void)state;
    if (oly_options_read() != OLY_OK || oly_world_start(NULL, NULL) != OLY_OK)
        return -1;
    oly_transport_choose(NULL);
    rank = oly_world_rank();
    size = oly_world_size();
    oly_option.timeout = 20;
    oly_set_error_mode(OLY_ERRORS_RETURN); /* ranks that wait for a rank that has given up are told so at the end */
    oly_clear_error();
    return 0;
}

static int finish_world(void **state)
{
    (void)state;
    oly_fail_allocation(-1);
    oly_drop_message();
    oly_world_finish();
    return 0;
}

static void world_counts_ranks(void **state)
{
    (void)state;
    const char *told = getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("PMI_SIZE");
    assert_int_equal(size, told ? atoi(told) : 1);
    assert_in_range(rank, 0, size - 1);
    assert_int_equal(oly_world_node_ranks(), size);
    assert_in_range(oly_world_node_rank(), 0, size - 1);
    assert_int_equal(oly_world_start(NULL, NULL), OLY_STATE);
}

static void gather_is_in_rank_order(void **state)
{
    (void)state;
    int64_t mine[3] = {rank, rank * 10, -rank}, all[64][3];
    assert_ok(oly_world_gather(mine, all, sizeof mine));
    for (int r = 0; r < size; r++) {
        assert_int_equal(all[r][0], r);
        assert_int_equal(all[r][1], r * 10);
        assert_int_equal(all[r][2], -r);
    }
}

static void vote_names_the_rank_that_failed(void **state)
{
    (void)state;
    assert_ok(oly_world_vote(OLY_OK, "nothing"));
    int last = size - 1;
    oly_status mine = rank == last ? oly_fail(OLY_MEMORY, "mine") : OLY_OK;
    assert_int_equal(oly_world_vote(mine, "making buffers"), OLY_MEMORY);
    if (rank == last) {
        assert_non_null(strstr(oly_pending_message(), "mine"));
        return;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "making buffers failed on rank %d", last);
    assert_non_null(strstr(oly_pending_message(), expected));
}

/* Rows of a 2-D block with a border of one: the ring's neighbours get the edge columns, four bytes with a stride. */
static void halo_of_columns(void **state)
{
    (void)state;
    enum { ROWS = 7, WIDTH = 11 };
    float block[ROWS][WIDTH];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDTH; j++)
            block[i][j] = (float)(rank * 1000 + i * WIDTH + j);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    oly_piece column[4];
    const int at[4] = {1, WIDTH - 2, 0, WIDTH - 1};
    for (int k = 0; k < 4; k++)
        column[k] = (oly_piece){.offset = at[k] * 4, .rank = 2, .extent = {ROWS, 1}, .stride = {WIDTH, 1}};
    int all = -1;
    /* With two ranks both neighbours are the same: both columns in one message. Alone, there is none. */
    oly_piece both_sent[2] = {column[0], column[1]}, both_received[2] = {column[3], column[2]};
    oly_message sends[2] = {{left, 1, &column[0], NULL}, {right, 1, &column[1], NULL}};
    oly_message receives[2] = {{left, 1, &column[2], &all}, {right, 1, &column[3], &all}};
    int n = size == 1 ? 0 : size == 2 ? 1 : 2;
    if (n == 1) {
        sends[0] = (oly_message){left, 2, both_sent, NULL};
        receives[0] = (oly_message){left, 2, both_received, NULL};
    }
    oly_exchange *x = make(4, n, sends, n, receives);
    assert_int_equal(oly_exchange_peers(x), n);
    assert_int_equal(oly_exchange_bytes_sent(x), n ? 2 * ROWS * 4 : 0);
    assert_int_equal(oly_exchange_bytes_received(x), n ? 2 * ROWS * 4 : 0);
    replay(x, 1, block, block);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDTH; j++) {
            int owner = n == 0 ? rank : j == 0 ? left : j == WIDTH - 1 ? right : rank;
            int column_there = n == 0 ? j : j == 0 ? WIDTH - 2 : j == WIDTH - 1 ? 1 : j;
            assert_float_equal(block[i][j], owner * 1000 + i * WIDTH + column_there, 0);
        }
    oly_exchange_free(x);
}

enum { DEPTH = 3, HEIGHT = 5, BREADTH = 7 }; /* of the box in the next test */

/* Element e of the box from one rank to another, in bytes that differ at every position of the element. */
static void expected_element(unsigned char *element, size_t bytes, int from, int to, int e)
{
    for (size_t b = 0; b < bytes; b++)
        element[b] = (unsigned char)(from * 31 + to * 17 + e * 5 + (int)b * 3);
}

/* Every rank sends every other a 3-D box of a larger buffer and receives one with other strides. */
static void boxes_with_element(size_t bytes)
{
    enum { OUTER = (DEPTH + 1) * (HEIGHT + 2) * (BREADTH + 3) };
    int64_t room = OUTER * (int64_t)bytes;
    unsigned char *from = calloc((size_t)size, (size_t)room), *to = calloc((size_t)size, (size_t)room);
    oly_piece pieces[2][8];
    oly_message sends[8], receives[8];
    int n = 0;
    for (int r = 0; r < size; r++) {
        if (r == rank)
            continue;
        pieces[0][n] = (oly_piece){.offset = r * room + (int64_t)bytes,
                                   .rank = 3,
                                   .extent = {DEPTH, HEIGHT, BREADTH},
                                   .stride = {(HEIGHT + 2) * (BREADTH + 3), BREADTH + 3, 1}};
        pieces[1][n] = (oly_piece){
            .offset = r * room, .rank = 3, .extent = {DEPTH, HEIGHT, BREADTH}, .stride = {1, DEPTH, DEPTH * HEIGHT}};
        for (int e = 0; e < DEPTH * HEIGHT * BREADTH; e++) {
            int i = e / (HEIGHT * BREADTH), j = e / BREADTH % HEIGHT, k = e % BREADTH;
            int at = (i * (HEIGHT + 2) + j) * (BREADTH + 3) + k + 1;
            expected_element(from + r * room + at * (int64_t)bytes, bytes, rank, r, e);
        }
        sends[n] = (oly_message){r, 1, &pieces[0][n], NULL};
        receives[n] = (oly_message){r, 1, &pieces[1][n], NULL};
        n++;
    }
    oly_exchange *x = make(bytes, n, sends, n, receives);
    replay(x, 2, from, to);
    for (int r = 0; r < size; r++)
        for (int e = 0; e < DEPTH * HEIGHT * BREADTH && r != rank; e++) {
            int i = e / (HEIGHT * BREADTH), j = e / BREADTH % HEIGHT, k = e % BREADTH;
            unsigned char element[16];
            expected_element(element, bytes, r, rank, e);
            assert_memory_equal(to + r * room + (i + DEPTH * j + DEPTH * HEIGHT * k) * (int64_t)bytes, element, bytes);
        }
    oly_exchange_free(x);
    free(from);
    free(to);
}

static void boxes_of_all_element_sizes(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 2, 3, 4, 8, 16};
    for (int i = 0; i < 6; i++)
        boxes_with_element(sizes[i]);
}

static void empty_pieces_and_messages(void **state)
{
    (void)state;
    if (size == 1)
        skip();
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    oly_piece nothing = {.buffer = 0, .rank = 2, .extent = {0, 5}, .stride = {5, 1}};
    oly_message send = {right, 1, &nothing, NULL}, receive = {left, 1, &nothing, NULL};
    oly_exchange *x = make(8, 1, &send, 1, &receive);
    replay(x, 3, NULL, NULL);
    oly_exchange_free(x);
    send.n_pieces = receive.n_pieces = 0;
    x = make(8, 1, &send, 1, &receive);
    assert_int_equal(oly_exchange_bytes_sent(x), 0);
    replay(x, 4, NULL, NULL);
    oly_exchange_free(x);
}

/* Three buffers need the same row: it is sent once. */
static void shared_pieces_travel_once(void **state)
{
    (void)state;
    if (size == 1)
        skip();
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int32_t row[5], tail[2], a[5] = {0}, b[10] = {0}, c[5] = {0}, d[2] = {0};
    for (int i = 0; i < 5; i++)
        row[i] = rank * 100 + i;
    tail[0] = rank * 100 + 50, tail[1] = rank * 100 + 51;
    oly_piece sent[2] = {run(0, 5), run(0, 2)};
    sent[1].buffer = 1;
    oly_piece received[4] = {run(0, 5), run(0, 5), run(0, 2), run(0, 5)};
    received[1].buffer = 1, received[1].stride[0] = 2;
    received[2].buffer = 3, received[3].buffer = 2;
    int same[4] = {-1, 0, -1, 1};
    oly_message send = {right, 2, sent, NULL}, receive = {left, 4, received, same};
    oly_exchange *x = make(4, 1, &send, 1, &receive);
    assert_int_equal(oly_exchange_bytes_sent(x), 28);
    assert_int_equal(oly_exchange_bytes_received(x), 28);
    oly_ticket t = ticket(5, 1, "shared");
    assert_ok(oly_exchange_start(x, &t, (void *[]){row, tail}));
    assert_ok(oly_exchange_finish(x, &t, (void *[]){a, b, c, d}));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(a[i], left * 100 + i);
        assert_int_equal(b[2 * i], left * 100 + i);
        assert_int_equal(b[2 * i + 1], 0);
        assert_int_equal(c[i], left * 100 + i);
    }
    assert_int_equal(d[1], left * 100 + 51);
    oly_exchange_free(x);
}

/* Two big exchanges in flight, completed in the other order; one side contiguous, the other not. */
static void big_messages_find_their_receives(void **state)
{
    (void)state;
    if (size == 1)
        skip();
    const int64_t n = (65 << 20) / 8 + 3, m = 30011;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int64_t *from = malloc((size_t)n * 8), *to = calloc((size_t)n, 8), *spread = calloc((size_t)m * 2, 8);
    for (int64_t i = 0; i < n; i++)
        from[i] = i * size + rank;
    oly_piece sent[2] = {run(0, n), run(8, m)}, received[2] = {run(0, n), run(0, m)};
    received[1].stride[0] = 2;
    oly_exchange *x[2];
    for (int k = 0; k < 2; k++) {
        oly_message send = {right, 1, &sent[k], NULL}, receive = {left, 1, &received[k], NULL};
        x[k] = make(8, 1, &send, 1, &receive);
    }
    oly_ticket first = ticket(6, 1, "first"), second = ticket(7, 1, "second");
    assert_ok(oly_exchange_start(x[0], &first, (void *[]){from}));
    assert_ok(oly_exchange_start(x[1], &second, (void *[]){from}));
    assert_ok(oly_exchange_finish(x[1], &second, (void *[]){spread}));
    assert_ok(oly_exchange_finish(x[0], &first, (void *[]){to}));
    for (int64_t i = 0; i < n; i++)
        if (to[i] != i * size + left)
            fail_msg("element %lld is %lld", (long long)i, (long long)to[i]);
    for (int64_t i = 0; i < m; i++)
        if (spread[2 * i] != (i + 1) * size + left || spread[2 * i + 1] != 0)
            fail_msg("spread element %lld is %lld", (long long)i, (long long)spread[2 * i]);
    oly_exchange_free(x[0]);
    oly_exchange_free(x[1]);
    free(from);
    free(to);
    free(spread);
}

/* To and from every other rank more than may be packed at once: boxes with gaps, of odd sizes, one of them twice on the
 * receiver's side; the same in reverse, in flight at the same time; and without free memory. */
static void messages_go_in_rounds(void **state)
{
    (void)state;
    enum { ROWS = 301, COLUMNS = 333, STRIDE = COLUMNS + 2, TAIL = 100001, BOX = ROWS * STRIDE, ALL = BOX + 2 * TAIL };
    if (size == 1)
        skip();
    oly_option.exchange_memory = 1;
    oly_message sends[2][4], receives[2][4];
    oly_piece sent[4][2], received[4][3];
    int n = 0;
    typedef struct element {
        int32_t row, column, rank;
    } element;
    element *from = malloc(sizeof *from * ALL), *to[2];
    for (int k = 0; k < 2; k++)
        to[k] = calloc((size_t)(size * 2) * ALL, sizeof **to);
    for (int i = 0; i < ALL; i++)
        from[i] = (element){i / STRIDE, i % STRIDE, rank};
    static int same[3] = {-1, -1, 1};
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank)
            continue;
        oly_piece box = {.rank = 2, .extent = {ROWS, COLUMNS}, .stride = {STRIDE, 1}};
        oly_piece tail = {.offset = BOX * sizeof *from, .rank = 1, .extent = {TAIL}, .stride = {2}};
        sent[n][0] = received[n][0] = box;
        sent[n][1] = received[n][1] = received[n][2] = tail;
        for (int k = 0; k < 3; k++)
            received[n][k].offset += (int64_t)(2 * peer + (k == 2)) * ALL * (int64_t)sizeof *from;
        for (int k = 0; k < 2; k++) {
            int at = k ? size - 2 - n : n;
            sends[k][at] = (oly_message){peer, 2, sent[n], NULL};
            receives[k][at] = (oly_message){peer, 3, received[n], same};
        }
        n++;
    }
    oly_exchange *x[2];
    for (int k = 0; k < 2; k++) {
        x[k] = make(sizeof *from, n, sends[k], n, receives[k]);
        assert_in_range(oly_exchange_memory(x[k]), 1 << 19, 1 << 20);
    }
    assert_true(oly_exchange_bytes_sent(x[0]) > 2 << 20);
    for (int again = 0; again < 3; again++) {
        oly_ticket t = ticket(6, 1, "first"), second = ticket(7, 1, "second");
        if (again == 1) {
            oly_fail_allocation(0);
            replay(x[0], 6, from, to[0]);
            oly_fail_allocation(-1);
            replay(x[1], 7, from, to[1]);
        } else {
            assert_ok(oly_exchange_start(x[0], &t, (void *[]){from}));
            oly_exchange_leave(x[0], &t, (void *[]){to[0]});
            assert_ok(oly_exchange_start(x[1], &second, (void *[]){from}));
            assert_ok(oly_exchange_finish(x[1], &second, (void *[]){to[1]}));
            assert_ok(oly_exchange_join(x[0]));
        }
        for (int k = 0; k < 2; k++) {
            for (int peer = 0; peer < size; peer++)
                for (int i = 0; i < 2 * ALL && peer != rank; i++) {
                    element e = to[k][(int64_t)(2 * peer) * ALL + i];
                    int j = i % ALL;
                    bool moved = j < BOX ? i < ALL && j % STRIDE < COLUMNS : (j - BOX) % 2 == 0;
                    if (moved ? e.row != j / STRIDE || e.column != j % STRIDE || e.rank != peer
                              : e.row || e.column || e.rank)
                        fail_msg("exchange %d, element %d of rank %d is %d, %d of %d", k, i, peer, e.row, e.column,
                                 e.rank);
                }
            memset(to[k], 0, (size_t)(size * 2) * ALL * sizeof **to);
        }
    }
    for (int k = 0; k < 2; k++) {
        oly_exchange_free(x[k]);
        free(to[k]);
    }
    free(from);
    oly_option.exchange_memory = 256;
}

/* More than 2^31 bytes in one message: a row that is sent, and received, repeatedly, and the data after it. */
static void messages_are_longer_than_an_int_counts(void **state)
{
    (void)state;
    if (size != 2)
        skip();
    enum { ROW = 1 << 20, TAIL = 1000 };
    oly_option.exchange_memory = 32;
    char *bytes = calloc(ROW + TAIL, 1);
    for (int i = 0; i < ROW + TAIL && rank == 0; i++)
        bytes[i] = (char)(i % 101);
    oly_piece pieces[2] = {{.rank = 2, .extent = {2049, ROW}, .stride = {0, 1}}, run(ROW, TAIL)};
    oly_message message = {1 - rank, 2, pieces, NULL};
    oly_exchange *x = rank ? make(1, 0, NULL, 1, &message) : make(1, 1, &message, 0, NULL);
    assert_true(oly_exchange_bytes_sent(x) + oly_exchange_bytes_received(x) == 2049 * (int64_t)ROW + TAIL);
    assert_true(oly_exchange_memory(x) <= 32 << 20);
    replay(x, 1, bytes, bytes);
    for (int i = 0; i < ROW + TAIL; i++)
        if (bytes[i] != (char)(i % 101))
            fail_msg("byte %d is %d", i, bytes[i]);
    oly_exchange_free(x);
    free(bytes);
    oly_option.exchange_memory = 256;
}

/* The library's allocations fail: a replay that made one would report it. */
static void replays_without_allocation(void **state)
{
    (void)state;
    if (size == 1)
        skip();
    int right = (rank + 1) % size, left = (rank + size - 1) % size, value = 0, got = -1;
    oly_piece piece = run(0, 1);
    oly_message send = {right, 1, &piece, NULL}, receive = {left, 1, &piece, NULL};
    oly_exchange *x = make(4, 1, &send, 1, &receive);
    oly_fail_allocation(0);
    for (uint64_t i = 0; i < 10000; i++) {
        value = rank + (int)i;
        replay(x, i, &value, &got);
        assert_int_equal(got, left + (int)i);
    }
    bool untouched = oly_allocation_fails(); /* the requested failure is still to come */
    oly_fail_allocation(-1);
    assert_true(untouched);
    oly_exchange_free(x);
}

/* -- ranks that diverge: pairs of ranks, the lower one doing something else than the higher ------------------------ */

static void diverge(oly_ticket lower, int64_t lower_length, oly_ticket higher, int64_t higher_length,
                    const char *expected)
{
    if (size == 1)
        skip();
    bool low = rank % 2 == 0;
    int64_t n = low ? lower_length : higher_length;
    char *from = calloc(1, (size_t)n), *to = calloc(1, (size_t)n);
    oly_piece piece = run(0, n);
    oly_message message = {rank ^ 1, 1, &piece, NULL};
    oly_exchange *x = make(1, 1, &message, 1, &message);
    oly_ticket t = low ? lower : higher;
    assert_ok(oly_exchange_start(x, &t, (void *[]){from}));
    assert_int_equal(oly_exchange_finish(x, &t, (void *[]){to}), OLY_DIVERGED);
    const char *message_text = oly_pending_message();
    if (!strstr(message_text, expected) || !strstr(message_text, t.call))
        fail_msg("message is: %s", message_text);
    if (!strstr(message_text, low ? higher.call : lower.call))
        fail_msg("message does not name the other call: %s", message_text);
    oly_drop_message();
    all_arrive(); /* nobody frees before its message has been received */
    oly_exchange_free(x);
    free(from);
    free(to);
}

static void other_calls_are_named(void **state)
{
    (void)state;
    diverge(ticket(3, 1, "oly_sum (a.c:3)"), 8, ticket(3, 2, "oly_matmul (b.c:9)"), 8,
            "the same operations in the same order");
}

static void other_arguments_are_told(void **state)
{
    (void)state;
    diverge(ticket(3, 1, "oly_sum (a.c:3)"), 8, ticket(3, 2, "oly_sum (a.c:3)"), 8, "other shapes");
}

static void skipped_calls_are_counted(void **state)
{
    (void)state;
    const uint64_t call = UINT64_C(1) << OLY_TICKET_STEP_BITS;
    diverge(ticket(12 * call, 1, "oly_sum (a.c:3)"), 8, ticket(13 * call, 1, "oly_sum (a.c:3)"), 8, "its call 13");
}

static void other_lengths_are_told(void **state)
{
    (void)state;
    diverge(ticket(3, 1, "oly_sum (a.c:3)"), 8, ticket(3, 2, "oly_matmul (b.c:9)"), 24, "rank");
    diverge(ticket(3, 1, "oly_sum (a.c:3)"), 5000, ticket(3, 2, "oly_matmul (b.c:9)"), 60000, "rank");
}

static void small_against_big_is_told(void **state)
{
    (void)state;
    diverge(ticket(3, 1, "oly_sum (a.c:3)"), 8, ticket(3, 2, "oly_matmul (b.c:9)"), 100000, "rank");
}

static void late_ranks_are_named(void **state)
{
    (void)state;
    if (size == 1)
        skip();
    int last = size - 1, value = 1;
    oly_option.timeout = 1;
    if (rank == 0) {
        oly_piece piece = run(0, 1);
        oly_message message = {last, 1, &piece, NULL};
        oly_exchange *x = make(4, 0, NULL, 1, &message);
        oly_ticket t = ticket(9, 9, "oly_sum (late.c:1)");
        assert_ok(oly_exchange_start(x, &t, (void *[]){&value}));
        assert_int_equal(oly_exchange_finish(x, &t, (void *[]){&value}), OLY_TIMEOUT);
        char expected[32];
        snprintf(expected, sizeof expected, "for rank %d;", last);
        assert_non_null(strstr(oly_pending_message(), expected));
        assert_non_null(strstr(oly_pending_message(), "oly_sum (late.c:1)"));
        oly_drop_message();
        oly_exchange_free(x);
    }
    oly_option.timeout = 20;
    all_arrive();
    /* the rank that gave up leaves alone; those that wait for it then are told so, long before their time is up */
    assert_int_equal(oly_world_finish(), OLY_TIMEOUT);
    if (rank > 0)
        assert_non_null(strstr(oly_last_error(), "rank 0 has failed"));
    oly_clear_error();
}

static void misuse_is_told(void **state)
{
    (void)state;
    oly_exchange *x = NULL;
    oly_piece piece = run(0, 1);
    oly_message bad_peers[] = {{-1, 1, &piece, NULL}, {size, 1, &piece, NULL}, {rank, 1, &piece, NULL}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(oly_exchange_make(4, 1, &bad_peers[i], 0, NULL, &x), OLY_INVALID);
        assert_null(x);
        oly_drop_message();
    }
    x = make(4, 0, NULL, 0, NULL);
    oly_ticket t = ticket(1, 1, "oly_sum (x.c:1)");
    assert_int_equal(oly_exchange_finish(x, &t, NULL), OLY_STATE);
    oly_drop_message();
    assert_ok(oly_exchange_start(x, &t, NULL));
    assert_int_equal(oly_exchange_start(x, &t, NULL), OLY_STATE);
    oly_drop_message();
    assert_ok(oly_exchange_finish(x, &t, NULL));
    oly_exchange_free(x);
    if (size == 1)
        return;
    oly_piece huge = {.rank = 2, .extent = {INT64_MAX / 2, 3}, .stride = {3, 1}};
    oly_message message = {(rank + 1) % size, 1, &huge, NULL};
    assert_int_equal(oly_exchange_make(4, 1, &message, 0, NULL, &x), OLY_OVERFLOW);
}

static void running_out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    int right = (rank + 1) % size;
    oly_piece piece = run(0, 3);
    oly_message message = {right, 1, &piece, NULL};
    int n = size > 1, failures = 0;
    for (long nth = 0;; nth++, failures++) {
        oly_exchange *x = NULL;
        oly_fail_allocation(nth);
        oly_status status = oly_exchange_make(4, n, &message, n, &message, &x);
        oly_fail_allocation(-1);
        if (status == OLY_OK) {
            oly_exchange_free(x);
            break;
        }
        assert_int_equal(status, OLY_MEMORY);
        assert_null(x);
        oly_drop_message();
    }
    assert_true(failures >= (size > 1 ? 4 : 1));
}

static void starts_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        oly_world_finish();
        assert_int_equal(oly_world_size(), 1);
        assert_ok(oly_world_start(NULL, NULL));
        assert_int_equal(oly_world_size(), size);
        all_arrive();
    }
}

#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, start_world, finish_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(world_counts_ranks),
        WORLD_TEST(gather_is_in_rank_order),
        WORLD_TEST(vote_names_the_rank_that_failed),
        WORLD_TEST(halo_of_columns),
        WORLD_TEST(boxes_of_all_element_sizes),
        WORLD_TEST(empty_pieces_and_messages),
        WORLD_TEST(shared_pieces_travel_once),
        WORLD_TEST(big_messages_find_their_receives),
        WORLD_TEST(messages_go_in_rounds),
        WORLD_TEST(messages_are_longer_than_an_int_counts),
        WORLD_TEST(replays_without_allocation),
        WORLD_TEST(misuse_is_told),
        WORLD_TEST(running_out_of_memory_leaves_nothing),
        WORLD_TEST(starts_again),
        WORLD_TEST(other_calls_are_named),
        WORLD_TEST(other_arguments_are_told),
        WORLD_TEST(skipped_calls_are_counted),
        WORLD_TEST(other_lengths_are_told),
        WORLD_TEST(small_against_big_is_told),
        WORLD_TEST(late_ranks_are_named),
    };
    return CHECK_MAIN(tests);
}
