/* SPDX-License-Identifier: BSD-3-Clause */
/* Races in shared memory. Kernels compiled with -fsanitize=thread call __tsan_read4 and its like before every access; these here note, for
 * each byte of shared memory, who read and who wrote it since the last barrier, and end the process when two threads that nothing
 * orders use a byte and one of them writes it, or when a byte is read that no thread of the block has written. Threads of a warp
 * are ordered by the barriers of the warp. Memory outside of shared memory is not looked at.
 *
 * A process may run kernels that tell of their accesses and others that do not, one of the library's after a generated one: of the
 * others nothing is noted, not even their atomic accesses, which are told in any case. */
#include "launch.h"
#include <stdlib.h>
#include <string.h>

enum { PLAIN, ATOMIC };

/* Uses of one byte: by a thread, in an interval between barriers of the block and one between those of its warp. */
typedef struct byte_uses {
    uint32_t write_interval, read_interval; /* 0: never in this block */
    uint32_t write_step, read_step;
    uint16_t writer, reader;
    uint8_t write_kind, many_lanes,
        many_warps; /* others of the same warp and step; of other warps, read it in that interval */
} byte_uses;

static struct {
    bool told;          /* the running kernel tells */
    const char *shared; /* NULL: no block runs */
    size_t bytes;
    uint32_t interval, first; /* of the block */
    uint32_t step[EMULATED_MOST_THREADS / EMULATED_WARP];
    byte_uses *of;
} races;

void emulated_races_launch(bool tells)
{
    races.told = tells;
}

void emulated_races_block(const char *shared, size_t bytes)
{
    races.shared = shared;
    races.bytes = bytes;
    races.first = ++races.interval;
}

void emulated_races_barrier(void)
{
    races.interval++;
}

void emulated_races_warp(int warp)
{
    races.step[warp]++;
}

void emulated_races_end(void)
{
    races.shared = NULL;
    races.interval++;
}

static void race(const char *what, const char *address, int other)
{
    emulated_violation("race in shared memory, byte %td: thread %d %s, and no barrier is between",
                       address - races.shared, other, what);
}

static bool ordered(int me, int other, uint32_t step)
{
    return me == other || (me / EMULATED_WARP == other / EMULATED_WARP && step != races.step[me / EMULATED_WARP]);
}

static void note_read(byte_uses *u, int me)
{
    uint32_t step = races.step[me / EMULATED_WARP];
    if (u->read_interval == races.interval && u->reader != me) {
        if (u->reader / EMULATED_WARP != me / EMULATED_WARP)
            u->many_warps = 1;
        else if (u->read_step == step)
            u->many_lanes = 1;
        else
            u->many_lanes = 0;
    } else if (u->read_interval != races.interval)
        u->many_warps = u->many_lanes = 0;
    u->read_interval = races.interval;
    u->read_step = step;
    u->reader = (uint16_t)me;
}

static void check_read(const char *address, byte_uses *u, int me, int kind)
{
    if (u->write_interval < races.first)
        emulated_violation("byte %td of shared memory is read, which no thread of the block has written",
                           address - races.shared);
    if (u->write_interval == races.interval && !ordered(me, u->writer, u->write_step) &&
        !(kind == ATOMIC && u->write_kind == ATOMIC))
        race("wrote what is read here", address, u->writer);
}

static void check_write(const char *address, byte_uses *u, int me, int kind)
{
    if (u->write_interval == races.interval && !ordered(me, u->writer, u->write_step) &&
        !(kind == ATOMIC && u->write_kind == ATOMIC))
        race("wrote what is written here", address, u->writer);
    if (u->read_interval == races.interval && (u->many_warps || !ordered(me, u->reader, u->read_step) ||
                                               (u->many_lanes && u->read_step == races.step[me / EMULATED_WARP])))
        race("read what is written here", address, u->reader);
}

static void use(const void *at, size_t bytes, bool writes, int kind)
{
    const char *address = at;
    if (!races.told)
        return;
    if (!races.shared || address < races.shared || address >= races.shared + races.bytes) {
        if (emulated_check_address)
            emulated_check_address(address, bytes);
        return;
    }
    if (!races.of && !(races.of = calloc(races.bytes, sizeof *races.of)))
        return;
    int me = emulated_rank();
    for (size_t k = 0; k < bytes; k++) {
        byte_uses *u = &races.of[address + k - races.shared];
        if (!writes || kind == ATOMIC)
            check_read(address + k, u, me, kind);
        if (writes) {
            check_write(address + k, u, me, kind);
            u->write_interval = races.interval;
            u->write_step = races.step[me / EMULATED_WARP];
            u->writer = (uint16_t)me;
            u->write_kind = (uint8_t)kind;
        } else
            note_read(u, me);
    }
}

void emulated_atomic(const void *address, size_t bytes)
{
    use(address, bytes, true, ATOMIC);
}

/* -- what the compiler calls --------------------------------------------------------------------------------------------------- */
#define ACCESS(name, bytes, writes)                                                                                    \
    EMULATED_EXPORT void name(void *address);                                                                          \
    void name(void *address)                                                                                           \
    {                                                                                                                  \
        use(address, bytes, writes, PLAIN);                                                                            \
    }
ACCESS(__tsan_read1, 1, false)
ACCESS(__tsan_read2, 2, false)
ACCESS(__tsan_read4, 4, false)
ACCESS(__tsan_read8, 8, false)
ACCESS(__tsan_read16, 16, false)
ACCESS(__tsan_write1, 1, true)
ACCESS(__tsan_write2, 2, true)
ACCESS(__tsan_write4, 4, true)
ACCESS(__tsan_write8, 8, true)
ACCESS(__tsan_write16, 16, true)
ACCESS(__tsan_unaligned_read2, 2, false)
ACCESS(__tsan_unaligned_read4, 4, false)
ACCESS(__tsan_unaligned_read8, 8, false)
ACCESS(__tsan_unaligned_read16, 16, false)
ACCESS(__tsan_unaligned_write2, 2, true)
ACCESS(__tsan_unaligned_write4, 4, true)
ACCESS(__tsan_unaligned_write8, 8, true)
ACCESS(__tsan_unaligned_write16, 16, true)

EMULATED_EXPORT void __tsan_read_range(void *address, long bytes);
void __tsan_read_range(void *address, long bytes)
{
    use(address, (size_t)(bytes), false, PLAIN);
}

EMULATED_EXPORT void __tsan_write_range(void *address, long bytes);
void __tsan_write_range(void *address, long bytes)
{
    use(address, (size_t)(bytes), true, PLAIN);
}

EMULATED_EXPORT void __tsan_init(void);
void __tsan_init(void) {}

EMULATED_EXPORT void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}

EMULATED_EXPORT void __tsan_func_exit(void *unused);
void __tsan_func_exit(void *unused)
{
    (void)unused;
}

EMULATED_EXPORT void __tsan_vptr_update(void *place, void *value);
void __tsan_vptr_update(void *place, void *value)
{
    (void)place;
    (void)value;
}
