/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4  Exchanges between the memories of emulated GPUs through NCCL, and through MPI and pinned memory in chunks and rounds: the
 * right bytes for every order in which work is done. test_gpu_ways.sh runs it with an MPI that takes memory of GPUs. */
#include "check.h"
#if __has_include(<cuda.h>) && __has_include(<nccl.h>) && __has_include(<nvrtc.h>) && __has_include(<cublasLt.h>)
#include "communicator.h"
#include "core/error.h"
#include "core/option.h"
#include "transport.h"
#include <cuda.h>
#include <unistd.h>

enum { GPUS = 2, ROOM = 1000000, MOST_RANKS = 4 };

static int rank, size;

/* -- what the platform provides --------------------------------------------------------------------------------------------- */

static CUcontext context[GPUS];
static CUstream stream_of[GPUS], aside[GPUS];
static CUdeviceptr buffer[GPUS];

#define DO(call) assert_int_equal(call, CUDA_SUCCESS)

static int of_device(int device)
{
    assert_in_range(device, 0, GPUS - 1);
    return device;
}

static bool one_card; /* all ranks say that they use the same two */

static uint64_t identity(int gpu)
{
    CUuuid uuid;
    if (one_card)
        return (uint64_t)gpu;
    uint64_t id = 5;
    DO(cuDeviceGetUuid(&uuid, gpu));
    for (int k = 0; k < 16; k++)
        id = id * 257 + (unsigned char)uuid.bytes[k];
    return id;
}

static oly_status enter(int gpu)
{
    return cuCtxPushCurrent(context[gpu]) == CUDA_SUCCESS ? OLY_OK : oly_fail(OLY_MEMORY, "cuCtxPushCurrent");
}

static void leave(int gpu)
{
    (void)gpu;
    DO(cuCtxPopCurrent(NULL));
}

static void *stream(int gpu)
{
    return stream_of[gpu];
}

static oly_status take(int gpu, size_t bytes, void **memory)
{
    CUresult r = cuMemAllocAsync((CUdeviceptr *)memory, bytes, stream_of[gpu]);
    return r == CUDA_SUCCESS ? OLY_OK : oly_fail(OLY_MEMORY, "packed boxes");
}

static void give(int gpu, void *memory)
{
    DO(cuMemFreeAsync((CUdeviceptr)memory, stream_of[gpu]));
}

/* Bytes begin to end of the box as it is packed, byte run by byte run. */
static oly_status copy_part(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, char *strided, char *packed,
                            bool packing, CUstream s)
{
    (void)gpu;
    for (int64_t at = begin, bytes; at < end; at += bytes) {
        int64_t point = at / box->run, offset = at % box->run;
        bytes = box->run - offset < end - at ? box->run - offset : end - at;
        for (int d = box->loops - 1; d >= 0; point /= box->extent[d--])
            offset += point % box->extent[d] * box->stride[d];
        char *there = strided + offset, *here = packed + (at - begin);
        DO(cuMemcpyAsync((CUdeviceptr)(packing ? here : there), (CUdeviceptr)(packing ? there : here), (size_t)bytes,
                         s));
    }
    return OLY_OK;
}

static oly_status pack(int gpu, int box_gpu, const oly_gpu_box *box, int64_t begin, int64_t end, const void *from,
                       void *packed)
{
    (void)box_gpu;
    return copy_part(gpu, box, begin, end, (void *)(uintptr_t)from, packed, true, stream_of[gpu]);
}

static oly_status unpack(int gpu, int box_gpu, const oly_gpu_box *box, int64_t begin, int64_t end, void *to,
                         const void *packed)
{
    (void)box_gpu;
    return copy_part(gpu, box, begin, end, to, (void *)(uintptr_t)packed, false, stream_of[gpu]);
}

static oly_status pack_now(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, const void *from, void *packed)
{
    return copy_part(gpu, box, begin, end, (void *)(uintptr_t)from, packed, true, aside[gpu]);
}

static oly_status unpack_now(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, void *to, const void *packed)
{
    return copy_part(gpu, box, begin, end, to, (void *)(uintptr_t)packed, false, aside[gpu]);
}

static oly_status finish_now(int gpu)
{
    return cuStreamSynchronize(aside[gpu]) == CUDA_SUCCESS ? OLY_OK : oly_fail(OLY_MEMORY, "the device has failed");
}

static void *pin(int gpu, size_t bytes)
{
    void *memory = NULL;
    (void)gpu;
    return cuMemHostAlloc(&memory, bytes, 0) == CUDA_SUCCESS ? memory : NULL;
}

static void unpin(int gpu, void *memory)
{
    (void)gpu;
    DO(cuMemFreeHost(memory));
}

static oly_status record(int gpu, void **event)
{
    if (!*event)
        DO(cuEventCreate((CUevent *)event, CU_EVENT_DISABLE_TIMING));
    DO(cuEventRecord(*event, stream_of[gpu]));
    return OLY_OK;
}

static oly_status reached(int gpu, void *event, bool *yes)
{
    (void)gpu;
    CUresult r = cuEventQuery(event);
    *yes = r == CUDA_SUCCESS;
    return *yes || r == CUDA_ERROR_NOT_READY ? OLY_OK : oly_fail(OLY_MEMORY, "the device has failed");
}

static void forget(int gpu, void *event)
{
    (void)gpu;
    DO(cuEventDestroy(event));
}

static const oly_gpu_access gpus = {.n = GPUS,
                                    .n_devices = GPUS,
                                    .of_device = of_device,
                                    .identity = identity,
                                    .enter = enter,
                                    .leave = leave,
                                    .stream = stream,
                                    .take = take,
                                    .give = give,
                                    .pack = pack,
                                    .unpack = unpack,
                                    .pack_now = pack_now,
                                    .unpack_now = unpack_now,
                                    .finish_now = finish_now,
                                    .pin = pin,
                                    .unpin = unpin,
                                    .record = record,
                                    .reached = reached,
                                    .forget = forget};

/* Of tickets and small messages. */
static oly_status read_device(void *host, int device, const void *from, size_t bytes)
{
    enter(device - rank * GPUS);
    DO(cuMemcpyDtoH(host, (CUdeviceptr)from, bytes));
    leave(0);
    return OLY_OK;
}

static oly_status write_device(int device, void *to, const void *host, size_t bytes)
{
    enter(device - rank * GPUS);
    DO(cuMemcpyHtoD((CUdeviceptr)to, host, bytes));
    leave(0);
    return OLY_OK;
}

static const oly_device_access by_copies = {read_device, write_device};

static void choose_gpus(void)
{
    char text[32];
    setenv("EMULATED_GPUS", "8", 1);
    snprintf(text, sizeof text, "%d,%d", GPUS * rank, GPUS * rank + 1);
    setenv("CUDA_VISIBLE_DEVICES", text, 1);
    DO(cuInit(0));
    for (int g = 0; g < GPUS; g++) {
        DO(cuDevicePrimaryCtxRetain(&context[g], g));
        enter(g);
        DO(cuStreamCreate(&stream_of[g], CU_STREAM_NON_BLOCKING));
        DO(cuStreamCreate(&aside[g], CU_STREAM_NON_BLOCKING));
        DO(cuMemAlloc(&buffer[g], 2 * ROOM));
        leave(g);
    }
}

static int begin(void **state)
{
    (void)state;
    oly_transport_register(NULL);
    setenv("OLYMPUS_GPU_MESSAGES", "first", 0); /* faults are counted from the first message on */
    if (oly_options_read() != OLY_OK || oly_world_start(NULL, NULL) != OLY_OK)
        return -1;
    rank = oly_world_rank();
    size = oly_world_size();
    oly_option.timeout = 30;
    choose_gpus();
    oly_transport_choose(&by_copies);
    return oly_transport_open(&gpus) == OLY_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    oly_transport_close();
    for (int g = 0; g < GPUS; g++) {
        DO(cuMemFree(buffer[g]));
        DO(cuStreamDestroy(stream_of[g]));
        DO(cuStreamDestroy(aside[g]));
        DO(cuDevicePrimaryCtxRelease(g));
    }
    return oly_world_finish() == OLY_OK ? 0 : -1;
}

/* -- what is sent ------------------------------------------------------------------------------------------------------------- */

/* Each buffer: ROOM bytes to send, ROOM bytes to receive. */
static unsigned char byte_of(int device, int64_t k, int round)
{
    return (unsigned char)(device * 57 + k * 3 + k / 256 + round * 11);
}

static void fill(int round)
{
    static unsigned char host[2 * ROOM];
    for (int g = 0; g < GPUS; g++) {
        for (int64_t k = 0; k < ROOM; k++)
            host[k] = byte_of(rank * GPUS + g, k, round);
        memset(host + ROOM, 0xee, ROOM);
        enter(g);
        DO(cuMemcpyHtoD(buffer[g], host, sizeof host));
        leave(g);
    }
}

static void fetch(int gpu, unsigned char *host)
{
    enter(gpu);
    DO(cuMemcpyDtoH(host, buffer[gpu] + ROOM, ROOM));
    leave(gpu);
}

/* The part of a device's buffer that goes to a rank: `rows` of `run` bytes, `pitch` apart. */
typedef struct shape {
    int64_t rows, run, pitch;
} shape;

static oly_piece piece(shape s, int own, int other, int64_t at)
{
    return (oly_piece){.buffer = own % GPUS,
                       .device = own,
                       .peer_device = other,
                       .offset = at,
                       .rank = 2,
                       .extent = {s.rows, s.run},
                       .stride = {s.pitch, 1}};
}

enum { PART = ROOM / MOST_RANKS / 2 };

/* Device g of a rank sends to device (g + shift) % GPUS of every other one, and that to its neighbour on the same rank, too. */
typedef struct traffic {
    oly_piece sent[MOST_RANKS][GPUS], received[MOST_RANKS][2 * GPUS];
    oly_message sends[MOST_RANKS], receives[MOST_RANKS];
    oly_exchange *x;
} traffic;

static int64_t place_in(int from, int copy)
{
    return ROOM + (2 * from + copy) * (int64_t)PART;
}

static void make(traffic *t, shape s, shape to, int shift)
{
    static int none[GPUS] = {-1, -1}, second[2 * GPUS] = {-1, 0, -1, 2};
    int n = 0;
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank)
            continue;
        for (int g = 0; g < GPUS; g++) {
            int target = (g + shift) % GPUS;
            t->sent[n][g] = piece(s, rank * GPUS + g, peer * GPUS + target, peer * (int64_t)PART);
            t->received[n][2 * g] = piece(to, rank * GPUS + target, peer * GPUS + g, place_in(peer, 0));
            t->received[n][2 * g + 1] =
                piece(to, rank * GPUS + (target + 1) % GPUS, peer * GPUS + g, place_in(peer, 1));
        }
        t->sends[n] = (oly_message){peer, GPUS, t->sent[n], none};
        t->receives[n] = (oly_message){peer, 2 * GPUS, t->received[n], second};
        n++;
    }
    assert_int_equal(oly_exchange_make(1, n, t->sends, n, t->receives, &t->x), OLY_OK);
}

static void check_part(const unsigned char *host, int gpu, int peer, int copy, shape s, shape to, int shift, int round)
{
    int sender = peer * GPUS + (gpu - shift - copy + 2 * GPUS) % GPUS;
    for (int64_t k = 0; k < s.rows * s.run; k++) {
        int64_t from = rank * (int64_t)PART + k / s.run * s.pitch + k % s.run,
                at = place_in(peer, copy) - ROOM + k / to.run * to.pitch + k % to.run;
        if (host[at] != byte_of(sender, from, round))
            fail_msg("rank %d, GPU %d, from rank %d, copy %d: byte %lld", rank, gpu, peer, copy, (long long)k);
    }
}

static void check(shape s, shape to, int shift, int round)
{
    static unsigned char host[ROOM];
    for (int g = 0; g < GPUS; g++) {
        fetch(g, host);
        for (int peer = 0; peer < size; peer++)
            for (int copy = 0; copy < 2 && peer != rank; copy++)
                check_part(host, g, peer, copy, s, to, shift, round);
    }
}

static void *base[GPUS];

static oly_status run(traffic *t, uint64_t sequence)
{
    oly_ticket ticket = {.sequence = sequence, .fingerprint = 3, .call = "run"};
    for (int g = 0; g < GPUS; g++)
        base[g] = (void *)buffer[g];
    OLY_TRY(oly_exchange_start(t->x, &ticket, base));
    return oly_exchange_finish(t->x, &ticket, base);
}

static void boxes_arrive(void **state)
{
    static const shape all[][2] = {{{1, 20000, 20000}, {1, 20000, 20000}}, {{90, 100, 200}, {90, 100, 200}},
                                   {{1, 9000, 9000}, {45, 200, 500}},      {{120, 100, 180}, {1, 12000, 12000}},
                                   {{1, 100, 100}, {1, 100, 100}},         {{10, 10, 30}, {50, 2, 7}},
                                   {{200, 550, 600}, {1, 110000, 110000}}, {{1, 110000, 110000}, {10000, 11, 12}}};
    enum { SHAPES = sizeof all / sizeof *all };
    (void)state;
    for (int round = 0; round < 2 * SHAPES; round++) {
        traffic t;
        if (round % SHAPES >= SHAPES - 2 && oly_transport_way() == OLY_WAY_NCCL) /* chunks, and rounds on 4 ranks */
            continue;
        const shape *s = all[round % SHAPES];
        make(&t, s[0], s[1], round & 1);
        for (int again = 0; again < 2; again++) {
            fill(round + again);
            assert_int_equal(oly_world_meet("fill"), OLY_OK);
            if (run(&t, (uint64_t)(2 * round + again)) != OLY_OK)
                fail_msg("%s", oly_pending_message());
            check(s[0], s[1], round & 1, round + again);
        }
        oly_exchange_free(t.x);
    }
}

/* Started one after the other, finished in another order on every rank. */
static void many_may_be_pending(void **state)
{
    enum { PENDING = 3 };
    static const shape s[PENDING][2] = {
        {{1, 9000, 9000}, {1, 9000, 9000}}, {{1, 90, 90}, {1, 90, 90}}, {{100, 100, 110}, {100, 100, 110}}};
    traffic t[PENDING];
    (void)state;
    for (int round = 0; round < 6; round++) {
        fill(round);
        assert_int_equal(oly_world_meet("fill"), OLY_OK);
        for (int g = 0; g < GPUS; g++)
            base[g] = (void *)buffer[g];
        for (int k = 0; k < PENDING; k++) {
            oly_ticket ticket = {.sequence = (uint64_t)(1000 + 10 * round + k), .fingerprint = 3, .call = "pending"};
            make(&t[k], s[k][0], s[k][1], 0);
            assert_int_equal(oly_exchange_start(t[k].x, &ticket, base), OLY_OK);
            oly_exchange_leave(t[k].x, &ticket, base);
        }
        for (int k = 0; k < PENDING; k++)
            if (oly_exchange_join(t[(k + rank) % PENDING].x) != OLY_OK)
                fail_msg("%s", oly_pending_message());
        for (int k = 0; k < PENDING; k++)
            oly_exchange_free(t[k].x);
    }
}

static int begin_apart(void **state)
{
    one_card = false;
    return begin(state);
}

/* Chunks of 64 KiB, and at most 384 KiB of them at a time. */
static int begin_staged(void **state)
{
    setenv("OLYMPUS_NCCL", "0", 1);
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    return begin_apart(state);
}

static int end_staged(void **state)
{
    unsetenv("OLYMPUS_NCCL");
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
    return end(state);
}

static void it_is_mpi(void **state)
{
    const char *wanted = getenv("EMULATED_CUDA_AWARE");
    bool aware = wanted && *wanted == '1';
    (void)state;
    if (size == 1)
        return;
    assert_string_equal(oly_transport_get()->name, "mpi");
    assert_int_equal(oly_transport_way(), aware ? OLY_WAY_AWARE : OLY_WAY_STAGED);
    assert_non_null(strstr(oly_transport_why(), aware ? "CUDA-aware MPI" : "pinned memory"));
    assert_non_null(strstr(oly_transport_why(), aware    ? "OLYMPUS_NCCL=0"
                                                : wanted ? "crashed"
                                                         : "MPIX_Query_cuda_support"));
}

static void it_is_nccl(void **state)
{
    (void)state;
    if (size > 1)
        assert_string_equal(oly_transport_get()->name, "nccl");
    assert_true(size == 1 || strncmp(oly_transport_why(), "NCCL 2.", 7) == 0);
}

static int begin_on_one_card(void **state)
{
    one_card = true;
    return begin(state);
}

static void shared_gpus_are_left_to_mpi(void **state)
{
    (void)state;
    assert_string_equal(oly_transport_get()->name, "mpi");
    assert_true(size == 1 || strstr(oly_transport_why(), "share a GPU"));
}

/* The last rank has sent its tickets and does nothing more: the others' groups wait for it on the GPU. */
static void a_silent_rank_ends_the_wait(void **state)
{
    traffic t;
    shape s = {1, 20000, 20000};
    oly_ticket ticket = {.sequence = 1, .fingerprint = 3, .call = "silent"};
    (void)state;
    if (size == 1)
        return;
    oly_option.timeout = 1;
    make(&t, s, s, 0);
    assert_int_equal(oly_world_meet("silent"), OLY_OK);
    for (int g = 0; g < GPUS; g++)
        base[g] = (void *)buffer[g];
    if (rank == size - 1) {
        assert_int_equal(oly_exchange_start(t.x, &ticket, base), OLY_OK);
        sleep(2);
        return;
    }
    assert_int_equal(run(&t, 1), OLY_TIMEOUT);
    assert_non_null(strstr(oly_pending_message(), "waited 1 s in "));
    oly_exchange_free(t.x);
    for (int g = 0; g < GPUS; g++) {
        enter(g);
        DO(cuStreamSynchronize(stream_of[g])); /* no kernel waits any more */
        leave(g);
    }
    oly_drop_message();
}

static int end_broken(void **state)
{
    if (size == 1)
        return end(state);
    fflush(NULL);
    if (rank < size - 1)
        sleep(2);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_is_nccl, begin),
        cmocka_unit_test(boxes_arrive),
        cmocka_unit_test_teardown(many_may_be_pending, end),
        cmocka_unit_test_setup(shared_gpus_are_left_to_mpi, begin_on_one_card),
        cmocka_unit_test_teardown(boxes_arrive, end),
        cmocka_unit_test_setup(it_is_mpi, begin_staged),
        cmocka_unit_test(boxes_arrive),
        cmocka_unit_test_teardown(many_may_be_pending, end_staged),
        cmocka_unit_test_setup_teardown(a_silent_rank_ends_the_wait, begin_apart, end_broken),
    };
    return CHECK_MAIN(tests);
}
#else
static void needs_headers(void **state)
{
    (void)state;
    print_message("skipped: built without CUDA's headers\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needs_headers)};
    return CHECK_MAIN(tests);
}
#endif
