/* SPDX-License-Identifier: BSD-3-Clause */
/* A platform for tests: a CPU whose devices have memories of their own, which the host cannot touch, and compute late
 * (late_streams.h). Every buffer has pages of its own, without access rights but while work of a device that was said to use it or a
 * message uses it (open, close) and inside read, write and copy. Whoever forgets to map a buffer ends with a fault, and a line that
 * names the buffer; whoever forgets to wait gets wrong values. Linked with every test program and with the examples in
 * build/tests/protected; PROTECTED=1 chooses it before main, PROTECTED=at_once the same with devices that compute at once,
 * PROTECTED=apart one whose memory the host's kernels cannot use at all: they compute on copies in host memory, as they do for GPUs
 * (runtime/run/detour.h). */
#include "platform_protected.h"
#include "late_streams.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* On a page before the buffer. */
typedef struct block {
    struct block *next, **link;
    size_t bytes; /* asked for */
    size_t pages; /* in bytes, of the buffer alone */
    int memory, number, open;
} block;

static struct {
    pthread_mutex_t lock;
    block *first;
    int n;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static block *block_of(void *data)
{
    return (block *)((char *)data - PAGE);
}

/* -- faults ---------------------------------------------------------------------------------------------------------- */

/* Of a process that is about to die, so without the lock. */
static void say_whose(const char *address)
{
    char line[200] = "";
    for (const block *b = all.first; b; b = b->next) {
        const char *data = (const char *)b + PAGE;
        if (address >= data && address < data + b->pages)
            snprintf(
                line, sizeof line,
                "protected platform: byte %td of buffer %d (%zu bytes in memory %d) is used outside of work on that "
                "memory and without oly_buffer_map (LATE_SEED=%u)\n",
                address - data, b->number, b->bytes, b->memory, late_seed());
    }
    if (*line && write(STDERR_FILENO, line, strlen(line)) < 0)
        _exit(2);
}

static void fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    say_whose(info->si_addr);
    signal(signal_number, SIG_DFL); /* and the same again */
}

/* MPI and cmocka have handlers of their own. */
static void watch_faults(void)
{
    struct sigaction now, ours = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction != fault)
        sigaction(SIGSEGV, &ours, NULL);
}

/* -- the table --------------------------------------------------------------------------------------------------------- */

static bool allocate(int memory, size_t bytes, void **data)
{
    size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    block *b = mmap(NULL, PAGE + pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return false;
    if (mprotect(b, PAGE, PROT_READ | PROT_WRITE) != 0) {
        munmap(b, PAGE + pages);
        return false;
    }
    madvise((char *)b + PAGE, pages,
            MADV_DONTDUMP); /* unlike the page before, so that opening them divides no mapping */
    pthread_mutex_lock(&all.lock);
    watch_faults();
    *b = (block){.next = all.first, .link = &all.first, .bytes = bytes, .pages = pages, .memory = memory};
    b->number = all.n++;
    if (b->next)
        b->next->link = &b->next;
    all.first = b;
    pthread_mutex_unlock(&all.lock);
    *data = (char *)b + PAGE;
    return true;
}

static void release(int memory, void *data, size_t bytes)
{
    block *b = block_of(data);
    (void)bytes;
    pthread_mutex_lock(&all.lock);
    if (b->memory != memory || b->open != 0)
        abort(); /* still in use, or another's */
    *b->link = b->next;
    if (b->next)
        b->next->link = b->link;
    pthread_mutex_unlock(&all.lock);
    munmap(b, PAGE + b->pages);
}

static void change(void *data, int by, int rights)
{
    block *b = block_of(data);
    pthread_mutex_lock(&all.lock);
    bool first = by > 0 ? b->open == 0 : b->open == 1;
    b->open += by;
    if (b->open < 0 || (first && mprotect(data, b->pages, rights) != 0))
        abort();
    pthread_mutex_unlock(&all.lock);
}

static void open_block(void *data)
{
    change(data, 1, PROT_READ | PROT_WRITE);
}

static void close_block(void *data)
{
    change(data, -1, PROT_NONE);
}

/* The address may be inside of a buffer. */
static void *buffer_at(int memory, const void *address)
{
    void *found = NULL;
    pthread_mutex_lock(&all.lock);
    for (block *b = all.first; b && !found; b = b->next)
        if ((const char *)address >= (char *)b + PAGE && (const char *)address < (char *)b + PAGE + b->pages &&
            b->memory == memory)
            found = (char *)b + PAGE;
    pthread_mutex_unlock(&all.lock);
    if (!found)
        abort(); /* no address of that memory */
    return found;
}

int platform_protected_memory(const void *address)
{
    int memory = -1;
    pthread_mutex_lock(&all.lock);
    for (block *b = all.first; b && memory < 0; b = b->next)
        if ((const char *)address >= (char *)b + PAGE && (const char *)address < (char *)b + PAGE + b->pages)
            memory = b->memory;
    pthread_mutex_unlock(&all.lock);
    return memory;
}

static oly_status read_bytes(void *host, int memory, const void *from, size_t bytes)
{
    void *buffer = buffer_at(memory, from);
    open_block(buffer);
    memcpy(host, from, bytes);
    close_block(buffer);
    return OLY_OK;
}

static oly_status write_bytes(int memory, void *to, const void *host, size_t bytes)
{
    void *buffer = buffer_at(memory, to);
    open_block(buffer);
    memcpy(to, host, bytes);
    close_block(buffer);
    return OLY_OK;
}

static oly_status copy(int to_memory, void *to, int from_memory, const void *from, size_t bytes)
{
    void *buffer = buffer_at(from_memory, from);
    open_block(buffer);
    oly_status st = write_bytes(to_memory, to, from, bytes);
    close_block(buffer);
    return st;
}

static int devices(void)
{
    return oly_platform_cpu.devices();
}

const oly_platform platform_protected = {.name = "protected",
                                         .device_name = "cpu",
                                         .computes = true,
                                         .devices = devices,
                                         .allocate = allocate,
                                         .release = release,
                                         .read = read_bytes,
                                         .write = write_bytes,
                                         .copy = copy,
                                         .open = open_block,
                                         .close = close_block,
                                         .submit = late_submit,
                                         .record = late_record,
                                         .wait = late_wait,
                                         .drain = late_drain};

static void __attribute__((constructor)) choose(void)
{
    static oly_platform at_once;
    const char *which = getenv("PROTECTED");
    if (!which)
        return;
    static oly_platform apart;
    at_once = apart = platform_protected;
    at_once.submit = NULL;
    at_once.record = NULL;
    at_once.wait = NULL;
    at_once.drain = NULL;
    apart.open = apart.close = NULL;
    oly_platform_register(strcmp(which, "at_once") == 0 ? &at_once
                          : strcmp(which, "apart") == 0 ? &apart
                                                        : &platform_protected);
}
