/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches. The threads of a block that meet are fibres: each warp runs, lane after lane in a random order, until all its lanes wait at a
 * barrier of the block or have returned; shuffles and votes are exchanged when all of them are there. See launch.h. */
#define _GNU_SOURCE
#include "launch.h"
#include "fibre.h"
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { READY, AT_BARRIER, AT_WARP, RETURNED };
enum { MOST_ARRAYS = 64, GUARD = 1024 }; /* bytes behind what the launch asked for, and behind all arrays */

typedef struct emulated_thread {
    enum state state;
    const char *where; /* it waits */
    uint64_t value;    /* given, and for ballots 0 or 1 */
    int vote;
    bool orders; /* a barrier of the warp: memory, too */
    bool started;
} emulated_thread;

EMULATED_EXPORT emulated_place emulated_here;
EMULATED_EXPORT void (*emulated_set_condition)(uint64_t handle, unsigned value);
EMULATED_EXPORT void (*emulated_check_address)(const void *address, size_t bytes);

static struct {
    pthread_mutex_t lock;
    const emulated_kernel *kernel; /* NULL: none runs */
    const void *task;
    const char *stack; /* where the launch's frames begin */
    int n;             /* threads of a block */
    emulated_thread thread[EMULATED_MOST_THREADS];
    int result;                                                           /* of the last barrier */
    uint64_t given[EMULATED_MOST_THREADS / EMULATED_WARP][EMULATED_WARP]; /* of the last exchange of each warp */
    /* Shared memory: what the launch asked for, then arrays in the order in which threads come upon them. */
    _Alignas(256) char shared[EMULATED_SHARED + EMULATED_STATIC_SHARED + 2 * GUARD + 512];
    size_t dynamic, used;
    int n_arrays;
    struct {
        const void *key;
        size_t at, bytes;
    } array[MOST_ARRAYS];
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- common ---------------------------------------------------------------------------------------------------------------- */

unsigned emulated_seed(void)
{
    static unsigned seed;
    if (!seed) {
        const char *text = getenv("EMULATED_SEED");
        seed = text && atoi(text) > 0 ? (unsigned)atoi(text) : 1;
    }
    return seed;
}

unsigned emulated_random(unsigned below)
{
    static uint64_t state;
    if (!state)
        state = emulated_seed();
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) * below >> 31);
}

const char *emulated_running(void)
{
    static char text[200];
    const emulated_place *p = &emulated_here;
    if (!now.kernel)
        return NULL;
    snprintf(text, sizeof text, "kernel %s, block %u %u %u of %u %u %u, thread %u %u %u of %u %u %u", now.kernel->name,
             p->block.x, p->block.y, p->block.z, p->blocks.x, p->blocks.y, p->blocks.z, p->thread.x, p->thread.y,
             p->thread.z, p->threads.x, p->threads.y, p->threads.z);
    return text;
}

void emulated_violation(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "emulated GPU: ");
    vfprintf(stderr, format, arguments);
    const char *running = emulated_running();
    fprintf(stderr, "%s%s (EMULATED_SEED=%u)\n", running ? "; in " : "", running ? running : "", emulated_seed());
    va_end(arguments);
    abort();
}

void emulated_condition(uint64_t handle, unsigned value)
{
    if (!emulated_set_condition)
        emulated_violation("a condition is set outside of a graph");
    emulated_set_condition(handle, value);
}

/* -- shared memory ------------------------------------------------------------------------------------------------------------ */

static void check_together(const char *what)
{
    if (now.kernel && !now.kernel->together)
        emulated_violation("%s in a kernel that is not declared with OLY_KERNEL_BLOCK", what);
}

void *emulated_shared(const void *key, size_t bytes, size_t alignment)
{
    check_together("shared memory");
    for (int k = 0; k < now.n_arrays; k++)
        if (now.array[k].key == key)
            return now.shared + now.array[k].at;
    size_t at = (now.used + alignment - 1) / alignment * alignment;
    if (at + bytes - now.dynamic - GUARD > EMULATED_STATIC_SHARED + 256 || now.n_arrays == MOST_ARRAYS)
        emulated_violation("arrays of more than %d bytes, or more than %d, in shared memory", EMULATED_STATIC_SHARED,
                           MOST_ARRAYS);
    now.array[now.n_arrays].key = key;
    now.array[now.n_arrays].at = at;
    now.array[now.n_arrays++].bytes = bytes;
    now.used = at + bytes;
    memset(now.shared + now.used, 0xc5, GUARD);
    return now.shared + at;
}

void *emulated_dynamic_shared(void)
{
    check_together("shared memory");
    return now.shared;
}

/* -- meeting ------------------------------------------------------------------------------------------------------------------- */

int emulated_rank(void)
{
    const emulated_place *p = &emulated_here;
    return (int)((p->thread.z * p->threads.y + p->thread.y) * p->threads.x + p->thread.x);
}

static void wait_in(enum state state, const char *where, uint64_t value)
{
    emulated_thread *t = &now.thread[emulated_rank()];
    t->state = state;
    t->where = where;
    t->value = value;
    fibre_leave();
}

int emulated_barrier(const char *where, int vote, bool test)
{
    check_together("a barrier");
    now.thread[emulated_rank()].vote = vote;
    wait_in(AT_BARRIER, where, test);
    return now.result;
}

void emulated_warp_barrier(const char *where)
{
    check_together("a barrier of a warp");
    now.thread[emulated_rank()].orders = true;
    wait_in(AT_WARP, where, 0);
}

uint64_t emulated_shuffle(const char *where, uint64_t value, int lane)
{
    check_together("a shuffle");
    int rank = emulated_rank(), warp = rank / EMULATED_WARP;
    wait_in(AT_WARP, where, value);
    if (lane < 0 || lane >= EMULATED_WARP)
        return value;
    if (warp * EMULATED_WARP + lane >= now.n)
        emulated_violation("a shuffle reads lane %d, which the block's last warp does not have (%s)", lane, where);
    return now.given[warp][lane];
}

uint32_t emulated_ballot(const char *where, bool test)
{
    check_together("a vote");
    int warp = emulated_rank() / EMULATED_WARP;
    uint32_t bits = 0;
    wait_in(AT_WARP, where, test);
    for (int lane = 0; lane < EMULATED_WARP && warp * EMULATED_WARP + lane < now.n; lane++)
        bits |= (uint32_t)(now.given[warp][lane] != 0) << lane;
    return bits;
}

static bool same_place(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

static const char *doing(const emulated_thread *t)
{
    static char text[2][160];
    static int turn;
    char *to = text[turn++ % 2];
    if (t->state == RETURNED)
        snprintf(to, sizeof text[0], "has returned");
    else
        snprintf(to, sizeof text[0], "waits at %s %s",
                 t->state == AT_WARP ? "the shuffle, vote or barrier of a warp at" : "the barrier at", t->where);
    return to;
}

static void check_same(int a, int b)
{
    const emulated_thread *of = now.thread;
    if (of[a].state != of[b].state || (of[a].state != RETURNED && !same_place(of[a].where, of[b].where)))
        emulated_violation("threads of a block diverge: thread %d %s, thread %d %s", a, doing(&of[a]), b,
                           doing(&of[b]));
}

/* A fibre's whole life. */
static void live(void)
{
    now.kernel->run(now.task);
    now.thread[emulated_rank()].state = RETURNED;
}

static void run_thread(int rank)
{
    emulated_thread *t = &now.thread[rank];
    emulated_size n = emulated_here.threads;
    unsigned r = (unsigned)rank;
    emulated_here.thread = r < n.x ? (emulated_size){r, 0, 0} : (emulated_size){r % n.x, r / n.x % n.y, r / n.x / n.y};
    if (t->started) {
        fibre_enter(rank);
        return;
    }
    t->started = true;
    fibre_start(rank, live);
}

/* All lanes wait for each other: they have what each of them gave. */
static void exchange(int warp, int first, int end)
{
    if (now.thread[first].orders)
        emulated_races_warp(warp);
    for (int k = first; k < end; k++) {
        now.given[warp][k - first] = now.thread[k].value;
        now.thread[k].state = READY;
        now.thread[k].orders = false;
    }
}

/* Until each lane waits for the block or has returned. */
static void run_warp(int warp)
{
    int first = warp * EMULATED_WARP, end = first + EMULATED_WARP < now.n ? first + EMULATED_WARP : now.n,
        n = end - first;
    for (bool again = true; again;) {
        int start = (int)emulated_random((unsigned)n), waits = -1;
        bool back = emulated_random(2);
        for (int k = 0, lane = start; k < n; k++, lane = back ? (lane ? lane : n) - 1 : lane + 1 < n ? lane + 1 : 0) {
            int rank = first + lane;
            if (now.thread[rank].state == READY)
                run_thread(rank);
            if (now.thread[rank].state == AT_WARP)
                waits = rank;
        }
        again = waits >= 0;
        for (int k = first; again && k < end; k++)
            check_same(waits, k);
        if (again)
            exchange(warp, first, end);
    }
}

/* All threads that have not returned are at the same barrier: they may go on. False: all have returned. */
static bool pass_barrier(void)
{
    int first = -1, sum = 0, live = 0;
    for (int k = 0; k < now.n; k++) {
        const emulated_thread *t = &now.thread[k];
        if (t->state == RETURNED)
            continue;
        if (first < 0)
            first = k;
        check_same(first, k);
        sum += t->value != 0;
        live++;
    }
    if (first < 0)
        return false;
    for (int k = 0; k < now.n; k++)
        if (now.thread[k].state == AT_BARRIER)
            now.thread[k].state = READY;
    int vote = now.thread[first].vote;
    now.result = vote == EMULATED_COUNT ? sum : vote == EMULATED_AND ? sum == live : sum > 0;
    emulated_races_barrier();
    return true;
}

/* Behind what was asked for nothing may be written. */
static void check_guard(size_t at, const char *what)
{
    for (size_t k = 0; k < GUARD; k++)
        if ((unsigned char)now.shared[at + k] != 0xc5)
            emulated_violation("byte %zu behind %s is written", k, what);
}

static void run_together(void)
{
    int warps = (now.n + EMULATED_WARP - 1) / EMULATED_WARP;
    memset(now.thread, 0, (size_t)now.n * sizeof now.thread[0]);
    memset(now.shared, 0xc5, now.used + GUARD);
    emulated_races_block(now.shared, sizeof now.shared);
    do {
        int start = (int)emulated_random((unsigned)warps);
        bool back = emulated_random(2);
        for (int k = 0; k < warps; k++)
            run_warp((back ? start - k + warps : start + k) % warps);
    } while (pass_barrier());
    emulated_races_end();
    check_guard(now.dynamic, "the shared memory that the launch asked for");
    check_guard(now.used, "the block's arrays in shared memory");
}

static void run_apart(void)
{
    emulated_size n = emulated_here.threads;
    bool back = emulated_random(2);
    for (unsigned z = 0; z < n.z; z++)
        for (unsigned y = 0; y < n.y; y++)
            for (unsigned x = 0; x < n.x; x++) {
                emulated_here.thread =
                    back ? (emulated_size){n.x - 1 - x, n.y - 1 - y, n.z - 1 - z} : (emulated_size){x, y, z};
                now.kernel->run(now.task);
            }
}

/* -- memory of kernels ---------------------------------------------------------------------------------------------- */

/* Of the object that has the kernel: where it is loaded. */
typedef struct extent {
    uintptr_t inside, begin, end;
} extent;

static int find_object(struct dl_phdr_info *info, size_t size, void *data)
{
    extent *e = data, found = {e->inside, UINTPTR_MAX, 0};
    (void)size;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        found.begin = begin < found.begin ? begin : found.begin;
        found.end = begin + p->p_memsz > found.end ? begin + p->p_memsz : found.end;
    }
    if (e->inside < found.begin || e->inside >= found.end)
        return 0;
    *e = found;
    return 1;
}

static bool is_constant(const void *address)
{
    static extent last;
    uintptr_t kernel = (uintptr_t)now.kernel->run;
    if (last.inside != kernel) {
        last = (extent){.inside = kernel};
        dl_iterate_phdr(find_object, &last);
    }
    return (uintptr_t)address >= last.begin && (uintptr_t)address < last.end;
}

bool emulated_is_kernels_own(const void *address)
{
    const char *at = address, *frame = __builtin_frame_address(0);
    return !now.kernel || (at >= (const char *)&emulated_here && at < (const char *)(&emulated_here + 1)) ||
           fibre_has(address) || (at >= frame && at <= now.stack) ||
           (at >= (const char *)now.task && at < (const char *)now.task + now.kernel->task_bytes) ||
           is_constant(address);
}

/* -- launches ------------------------------------------------------------------------------------------------------------------ */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static void check_launch(const emulated_kernel *kernel, emulated_size blocks, emulated_size threads, size_t dynamic)
{
    uint64_t n = (uint64_t)threads.x * threads.y * threads.z;
    if (n == 0 || n > (uint64_t)kernel->most_threads || (uint64_t)blocks.x * blocks.y * blocks.z == 0 ||
        blocks.x > INT32_MAX || blocks.y > 65535 || blocks.z > 65535 || threads.z > 64 || dynamic > EMULATED_SHARED)
        emulated_violation("kernel %s: a launch of %u x %u x %u blocks of %u x %u x %u threads with %zu bytes of "
                           "shared memory (at most "
                           "%d threads, %d bytes)",
                           kernel->name, blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z, dynamic,
                           kernel->most_threads, EMULATED_SHARED);
}

void emulated_launch(const emulated_kernel *kernel, const void *task, emulated_size blocks, emulated_size threads,
                     size_t dynamic)
{
    uint64_t n = (uint64_t)blocks.x * blocks.y * blocks.z, step;
    check_launch(kernel, blocks, threads, dynamic);
    pthread_mutex_lock(&now.lock);
    now.kernel = kernel;
    now.task = task;
    now.stack = __builtin_frame_address(0);
    now.n = (int)(threads.x * threads.y * threads.z);
    now.dynamic = dynamic;
    now.used = dynamic + GUARD;
    now.n_arrays = 0;
    emulated_races_launch(kernel->tells);
    emulated_here.threads = threads;
    emulated_here.blocks = blocks;
    do
        step = 1 + emulated_random(n < 1 << 20 ? (unsigned)n : 1 << 20);
    while (common_divisor(step, n) != 1);
    uint64_t at = emulated_random(n < 1 << 30 ? (unsigned)n : 1 << 30);
    for (uint64_t k = 0; k < n; k++, at = (at + step) % n) {
        emulated_here.block = (emulated_size){(unsigned)(at % blocks.x), (unsigned)(at / blocks.x % blocks.y),
                                              (unsigned)(at / blocks.x / blocks.y)};
        if (kernel->together)
            run_together();
        else
            run_apart();
    }
    emulated_races_launch(false);
    now.kernel = NULL;
    pthread_mutex_unlock(&now.lock);
}
