/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory: a range of addresses for each device, mapped twice. At the addresses of the device nothing can be touched; a kernel that
 * does is given the pages of that block until it ends, so every byte outside of live blocks, and every use by the host, is a fault
 * with a message that names the block. Copies use the second mapping. Blocks end at the end of a page, as far as their alignment of
 * 256 bytes allows, and are followed by a page that nobody may touch; the bytes between are checked when a block is freed. Addresses are
 * not used again for as long as there are others. New memory is full of rubbish. */
#define _GNU_SOURCE
#include "driver.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, ALIGN = 256, RUBBISH = 0xd7, EDGE = 0xe9 };
static const size_t RANGE = (size_t)64 << 30;

typedef struct pinned {
    const char *address;
    size_t bytes;
    struct pinned *next;
} pinned;

static struct {
    char *range[MOST_GPUS], *mirror[MOST_GPUS];
    int file[MOST_GPUS];
    size_t next[MOST_GPUS], used[MOST_GPUS];
    emulated_block **block; /* by address */
    int n, room, number;
    pinned *pinned;
    /* The running kernel. */
    CUcontext context;
    pthread_t thread;
    bool running;
    emulated_block **opened;
    int n_opened, room_opened;
    struct sigaction before;
} memory;

static char *mirror_of(int device, const char *address)
{
    return memory.mirror[device] + (address - memory.range[device]);
}

static void map_range(int device)
{
    int file = memfd_create("emulated GPU", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)RANGE) != 0)
        emulated_violation("no file for the memory of device %d", device);
    memory.file[device] = file;
    memory.range[device] = mmap(NULL, RANGE, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    memory.mirror[device] = mmap(NULL, RANGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory.range[device] == MAP_FAILED || memory.mirror[device] == MAP_FAILED)
        emulated_violation("no addresses for the memory of device %d", device);
    madvise(memory.mirror[device], RANGE, MADV_DONTDUMP);
}

static int device_of(const void *address)
{
    for (int d = 0; d < MOST_GPUS; d++)
        if (memory.range[d] && (const char *)address >= memory.range[d] &&
            (const char *)address < memory.range[d] + RANGE)
            return d;
    return -1;
}

bool emulated_memory_is_device(const void *address)
{
    return device_of(address) >= 0;
}

/* The first block whose end is beyond the address. */
static int position(const char *address)
{
    int low = 0, high = memory.n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (memory.block[middle]->address + memory.block[middle]->bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

emulated_block *emulated_memory_find(const void *address)
{
    int k = position(address);
    return k < memory.n && memory.block[k]->address <= (const char *)address ? memory.block[k] : NULL;
}

/* -- faults ------------------------------------------------------------------------------------------------------------------------ */

/* For a message: every kernel faults for every block that it uses, so only those that are wrong are described. */
static const char *describe(const char *address)
{
    static char text[200];
    const emulated_block *b = emulated_memory_find(address);
    int k = position(address);
    static const char *const state[] = {"that is not allocated yet in stream order", "", "that has been freed"};
    if (b)
        snprintf(text, sizeof text, "byte %td of block %d (%zu bytes on GPU %d) %s", address - b->address, b->number,
                 b->bytes, b->device, state[b->state]);
    else if (k > 0 && memory.block[k - 1]->device == device_of(address))
        snprintf(text, sizeof text, "%td bytes beyond the end of block %d (%zu bytes on GPU %d)",
                 address - memory.block[k - 1]->address - (ptrdiff_t)memory.block[k - 1]->bytes,
                 memory.block[k - 1]->number, memory.block[k - 1]->bytes, memory.block[k - 1]->device);
    else
        snprintf(text, sizeof text, "no block");
    return text;
}

static bool may_use(const emulated_block *b)
{
    return b->device == memory.context->device || (memory.context->peers >> b->device & 1) ||
           (b->peers >> memory.context->device & 1);
}

static void open_block(emulated_block *b, int rights)
{
    char *pages = (char *)((uintptr_t)b->address / PAGE * PAGE);
    if (!b->open) {
        if (memory.n_opened == memory.room_opened) {
            memory.room_opened = 2 * memory.room_opened + 64;
            memory.opened = realloc(memory.opened, (size_t)memory.room_opened * sizeof *memory.opened);
        }
        memory.opened[memory.n_opened++] = b;
    }
    b->open = rights;
    if (mprotect(pages, b->pages, rights) != 0)
        emulated_violation("mprotect failed");
}

static void fault(int number, siginfo_t *info, void *context)
{
    const char *address = info->si_addr;
    int device = device_of(address);
    if (device < 0 || info->si_code <= 0) { /* not ours */
        sigaction(number, &memory.before, NULL);
        return;
    }
    emulated_block *b = emulated_memory_find(address);
    if (!memory.running || !pthread_equal(memory.thread, pthread_self())) {
        memory.running = false;
        emulated_violation("the host touches device memory: %s", describe(address));
    }
    if (!b || b->state != LIVE)
        emulated_violation("a kernel touches %s", describe(address));
    if (!may_use(b))
        emulated_violation("a kernel of GPU %d touches %s, and peer access is not enabled", memory.context->device,
                           describe(address));
    bool writes = b->open != 0;
#if defined __x86_64__
    writes = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    (void)context;
#endif
    emulated_order_use(b, writes);
    open_block(b, writes ? PROT_READ | PROT_WRITE : PROT_READ);
}

/* MPI, the library and test programs have handlers of their own: ours comes first, and passes on what is not its. */
static void watch(void)
{
    struct sigaction now, ours = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction != fault) {
        memory.before = now;
        sigaction(SIGSEGV, &ours, NULL);
    }
    /* The library's threads block all signals, and a fault that is blocked ends the process. */
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

void emulated_memory_open(CUcontext context)
{
    watch();
    memory.context = context;
    memory.thread = pthread_self();
    memory.running = true;
}

void emulated_memory_close(void)
{
    for (int k = 0; k < memory.n_opened; k++) {
        emulated_block *b = memory.opened[k];
        mprotect((char *)((uintptr_t)b->address / PAGE * PAGE), b->pages, PROT_NONE);
        b->open = 0;
    }
    memory.n_opened = 0;
    memory.running = false;
}

/* -- blocks ------------------------------------------------------------------------------------------------------------------------ */

static void forget(int k)
{
    free(memory.block[k]);
    memmove(&memory.block[k], &memory.block[k + 1], (size_t)(--memory.n - k) * sizeof *memory.block);
}

/* Records of freed blocks are kept for messages, but not for ever. */
static void forget_freed(int device)
{
    for (int k = memory.n - 1; k >= 0; k--)
        if (memory.block[k]->state == FREED && (device < 0 || memory.block[k]->device == device))
            forget(k);
}

/* Pages at addresses that were not used before; once all were, any that are free. */
static char *take_pages(int device, size_t bytes)
{
    if (memory.next[device] + bytes > RANGE) {
        forget_freed(device);
        memory.next[device] = 0;
    }
    for (int k = position(memory.range[device] + memory.next[device]);
         k < memory.n && memory.block[k]->device == device; k++) {
        emulated_block *b = memory.block[k];
        char *first = (char *)((uintptr_t)b->address / PAGE * PAGE);
        if (first >= memory.range[device] + memory.next[device] + bytes)
            break;
        memory.next[device] = (size_t)(first - memory.range[device]) + b->pages + PAGE;
    }
    if (memory.next[device] + bytes > RANGE)
        return NULL;
    char *pages = memory.range[device] + memory.next[device];
    memory.next[device] += bytes + PAGE;
    return pages;
}

static void insert(emulated_block *b)
{
    if (memory.n > 60000)
        forget_freed(-1);
    if (memory.n == memory.room) {
        memory.room = 2 * memory.room + 256;
        memory.block = realloc(memory.block, (size_t)memory.room * sizeof(*memory.block));
    }
    int k = position(b->address);
    memmove(&memory.block[k + 1], &memory.block[k], (size_t)(memory.n++ - k) * sizeof *memory.block);
    memory.block[k] = b;
}

emulated_block *emulated_memory_take(int device, size_t bytes, enum block_state state)
{
    size_t end = (bytes + ALIGN - 1) / ALIGN * ALIGN, pages = (bytes + PAGE - 1) / PAGE * PAGE;
    if (!memory.range[device])
        map_range(device);
    watch();
    if (bytes == 0 || memory.used[device] + pages > emulated_device_memory())
        return NULL;
    char *first = take_pages(device, pages);
    emulated_block *b = first ? malloc(sizeof *b) : NULL;
    if (!b)
        return NULL;
    *b = (emulated_block){.address = first + (pages - end),
                          .bytes = bytes,
                          .pages = pages,
                          .device = device,
                          .number = memory.number++,
                          .state = state};
    memset(mirror_of(device, first), EDGE, pages - end);
    memset(mirror_of(device, b->address), RUBBISH, bytes);
    memset(mirror_of(device, b->address + bytes), EDGE, end - bytes);
    /* Pages of blocks differ from those between, so that opening and closing them divides and joins no mappings. */
    madvise(first, pages, MADV_DONTDUMP);
    memory.used[device] += pages;
    insert(b);
    return b;
}

static void check_edge(const emulated_block *b, const char *from, const char *end, const char *where)
{
    for (const char *at = from; at < end; at++)
        if ((unsigned char)*mirror_of(b->device, at) != EDGE)
            emulated_violation("a byte %s block %d (%zu bytes on GPU %d) was written, at %td", where, b->number,
                               b->bytes, b->device, at - b->address);
}

void emulated_memory_free(emulated_block *b)
{
    char *first = (char *)((uintptr_t)b->address / PAGE * PAGE);
    if (b->state == FREED)
        emulated_violation("block %d (%zu bytes on GPU %d) is freed twice", b->number, b->bytes, b->device);
    check_edge(b, first, b->address, "before");
    check_edge(b, b->address + b->bytes, first + b->pages, "behind");
    if (!emulated_has_failed(b->device))
        emulated_order_free(b);
    free(b->uses);
    b->uses = NULL;
    b->state = FREED;
    memory.used[b->device] -= b->pages;
    madvise(first, b->pages, MADV_DODUMP);
    fallocate(memory.file[b->device], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first - memory.range[b->device],
              (off_t)b->pages);
}

void *emulated_memory_at(const char *what, const void *address, size_t bytes, bool writes)
{
    if (!emulated_memory_is_device(address) || bytes == 0)
        return (void *)(uintptr_t)address;
    emulated_block *b = emulated_memory_find(address);
    if (!b || b->state != LIVE)
        emulated_violation("%s touches %s", what, describe(address));
    if ((const char *)address + bytes > b->address + b->bytes)
        emulated_violation("%s of %zu bytes at byte %td of block %d, which has %zu", what, bytes,
                           (const char *)address - b->address, b->number, b->bytes);
    emulated_order_use(b, writes);
    return mirror_of(b->device, address);
}

size_t emulated_memory_used(int device)
{
    return memory.used[device];
}

void emulated_memory_leaks(int *blocks, size_t *bytes)
{
    *blocks = 0;
    *bytes = 0;
    for (int k = 0; k < memory.n; k++)
        if (memory.block[k]->state != FREED) {
            ++*blocks;
            *bytes += memory.block[k]->bytes;
        }
    for (const pinned *p = memory.pinned; p; p = p->next) {
        ++*blocks;
        *bytes += p->bytes;
    }
}

/* Memory of a device faults by itself. */
void emulated_memory_check(const void *address, size_t bytes)
{
    if (!emulated_memory_is_device(address) && !emulated_is_kernels_own(address) && !emulated_pinned_has(address))
        emulated_violation("a kernel uses %zu bytes at %p, which are neither a device's nor pinned", bytes, address);
}

/* -- pinned memory ------------------------------------------------------------------------------------------------------------------ */

void emulated_pinned_add(const void *address, size_t bytes)
{
    pinned *p = malloc(sizeof *p);
    if (!p)
        emulated_violation("no memory");
    *p = (pinned){address, bytes, memory.pinned};
    memory.pinned = p;
}

bool emulated_pinned_remove(const void *address)
{
    for (pinned **p = &memory.pinned; *p; p = &(*p)->next)
        if ((*p)->address == address) {
            pinned *gone = *p;
            *p = gone->next;
            free(gone);
            return true;
        }
    return false;
}

bool emulated_pinned_has(const void *address)
{
    for (const pinned *p = memory.pinned; p; p = p->next)
        if ((const char *)address >= p->address && (const char *)address < p->address + p->bytes)
            return true;
    return false;
}
