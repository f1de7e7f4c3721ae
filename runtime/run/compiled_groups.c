/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of machine code. See compiled_groups.h.
 *
 * A program is found by its instructions without their constants, and by the form of its operands. An entry is used without a
 * lock: a thread first counts itself as a user, then checks that the entry is (still) its program's. Whoever replaces an
 * entry, under the lock, first marks it as changing and leaves it alone if it has users. Memory is writable while code is written
 * and executable afterwards, never both. */
#include "run/compiled_groups.h"
#include "core/option.h"
#include "code_parts.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ENTRIES = 1024, PROBES = 8, LEAST_WORK = 256, CALL = 256, MULTIPLE = 64, SHORT_ROW = 256 };

enum { EMPTY, CHANGING, COUNTING, READY, REFUSED };

typedef struct entry {
    _Atomic(int) state, users;
    _Atomic(int64_t) work;        /* so far */
    _Atomic(uint32_t) used;       /* when: the table's clock */
    _Atomic(uint32_t) generation; /* how often it has got another program */
    uint64_t hash;
    oly_code_form form;
    size_t key_bytes;
    char *key;
    oly_code *code;
    size_t bytes;
    oly_code_outline outline;
    oly_code_parts *parts; /* NULL: one loop computes everything */
} entry;

static entry table[ENTRIES];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(uint32_t) table_clock; /* counts new entries */
static _Atomic(bool) denied;          /* memory cannot be made executable */
static _Atomic(int64_t) n_compiled, n_refused, n_runs, n_bytes, n_ticks;

/* -- keys ------------------------------------------------------------------------------------------------------------------- */

typedef struct key_instruction {
    uint16_t op;
    uint8_t dtype, to;
    int16_t in[3], out;
} key_instruction;

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const oly_tile_program *p, const oly_code_form *form)
{
    uint64_t hash = mix(
        mix((uint64_t)p->n_instructions << 32 | (uint64_t)p->n_loads << 16 | (uint64_t)p->n_stores, form->scalar[0]),
        form->scalar[1]);
    hash = mix(mix(hash, form->strided[0]), form->strided[1]);
    for (int i = 0; i < p->n_instructions; i++) {
        uint64_t words[2];
        const oly_tile_instruction *c = &p->instructions[i];
        memcpy(&words[0], c, sizeof words[0]);
        words[1] = (uint64_t)(uint16_t)c->in[2] << 16 | (uint16_t)c->out;
        hash = mix(mix(hash, words[0]), words[1]);
    }
    for (int k = 0; k < p->n_loads; k++)
        hash = mix(hash, (uint64_t)p->load_dtype[k] << 16 | (uint16_t)p->load_register[k]);
    for (int k = 0; k < p->n_stores; k++)
        hash = mix(hash, (uint64_t)p->store_dtype[k] << 16 | (uint16_t)p->store_register[k]);
    return hash;
}

static size_t key_size(const oly_tile_program *p)
{
    return sizeof(key_instruction) * (size_t)p->n_instructions + 3 * (size_t)(p->n_loads + p->n_stores);
}

/* Writes the key to `to`, or compares it with what is there. */
static bool key(const oly_tile_program *p, char *to, bool compares)
{
    const void *parts[] = {p->load_register, p->load_dtype, p->store_register, p->store_dtype};
    size_t sizes[] = {2 * (size_t)p->n_loads, (size_t)p->n_loads, 2 * (size_t)p->n_stores, (size_t)p->n_stores};
    for (int i = 0; i < p->n_instructions; i++, to += sizeof(key_instruction)) {
        const oly_tile_instruction *c = &p->instructions[i];
        key_instruction k = {c->op, c->dtype, c->to, {c->in[0], c->in[1], c->in[2]}, c->out};
        if (compares && memcmp(to, &k, sizeof k) != 0)
            return false;
        if (!compares)
            memcpy(to, &k, sizeof k);
    }
    for (int k = 0; k < 4; to += sizes[k++]) {
        if (compares && sizes[k] && memcmp(to, parts[k], sizes[k]) != 0)
            return false;
        if (!compares && sizes[k])
            memcpy(to, parts[k], sizes[k]);
    }
    return true;
}

static bool is_same(const entry *e, uint64_t hash, const oly_tile_program *p, const oly_code_form *form)
{
    return e->hash == hash && memcmp(&e->form, form, sizeof *form) == 0 && e->key_bytes == key_size(p) &&
           key(p, e->key, true);
}

/* -- entries ---------------------------------------------------------------------------------------------------------------- */

/* Counts the caller as a user. */
static entry *find(uint64_t hash, const oly_tile_program *p, const oly_code_form *form)
{
    for (int k = 0; k < PROBES; k++) {
        entry *e = &table[(hash + (uint64_t)k) % ENTRIES];
        if (atomic_load(&e->state) == EMPTY)
            continue;
        atomic_fetch_add(&e->users, 1);
        if (atomic_load(&e->state) >= COUNTING && is_same(e, hash, p, form))
            return e;
        atomic_fetch_sub(&e->users, 1);
    }
    return NULL;
}

/* Frees an entry nobody uses; false: somebody does. Under the lock. */
static bool clear(entry *e)
{
    int before = atomic_exchange(&e->state, CHANGING);
    if (atomic_load(&e->users) > 0) {
        atomic_store(&e->state, before);
        return false;
    }
    free(e->key);
    if (e->code) {
        munmap((void *)(uintptr_t)e->code, e->bytes);
        atomic_fetch_sub(&n_bytes, (int64_t)e->bytes);
    }
    free(e->parts);
    e->key = NULL;
    e->code = NULL;
    e->parts = NULL;
    return true;
}

/* A new entry in place of an empty one, or of the one used least recently. */
static void insert(uint64_t hash, const oly_tile_program *p, const oly_code_form *form)
{
    entry *chosen = NULL;
    for (int k = 0; k < PROBES; k++) {
        entry *e = &table[(hash + (uint64_t)k) % ENTRIES];
        if (atomic_load(&e->state) == EMPTY) {
            chosen = e;
            break;
        }
        if (!chosen || (int32_t)(atomic_load(&e->used) - atomic_load(&chosen->used)) < 0)
            chosen = e;
    }
    char *made = malloc(key_size(p) + 1);
    if (!made || !clear(chosen)) {
        free(made);
        return;
    }
    key(p, made, false);
    chosen->key = made;
    chosen->key_bytes = key_size(p);
    chosen->hash = hash;
    chosen->form = *form;
    atomic_store(&chosen->work, 0);
    atomic_store(&chosen->used, atomic_fetch_add(&table_clock, 1) + 1);
    atomic_fetch_add(&chosen->generation, 1);
    atomic_store(&chosen->state, COUNTING);
}

/* -- making code ------------------------------------------------------------------------------------------------------------ */

static bool make_executable(entry *e, const uint8_t *code, size_t length)
{
    size_t bytes = (length + 4095) / 4096 * 4096;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    memcpy(memory, code, length);
    if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
        munmap(memory, bytes);
        atomic_store(&denied, true);
        return false;
    }
    e->code = (oly_code *)(uintptr_t)memory;
    e->bytes = bytes;
    atomic_fetch_add(&n_bytes, (int64_t)bytes);
    return true;
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Writes the program's code, as one loop or else in parts. */
static bool make_code(entry *e, const oly_tile_program *p, const oly_code_form *form)
{
    static uint8_t bytes[OLY_CODE_BYTES]; /* under the lock */
    size_t length = oly_code_write(p, form, &e->outline, bytes, OLY_CODE_BYTES);
    if (length > 0)
        return make_executable(e, bytes, length);
    oly_code_parts *parts = malloc(sizeof *parts);
    length = parts ? oly_code_parts_write(p, form, parts, bytes, OLY_CODE_BYTES) : 0;
    if (length == 0 || !make_executable(e, bytes, length)) {
        free(parts);
        return false;
    }
    e->parts = parts;
    return true;
}

/* The caller is a user of the entry. */
static void compile(entry *e, const oly_tile_program *p, const oly_code_form *form)
{
    pthread_mutex_lock(&changing);
    if (atomic_load(&e->state) == COUNTING) {
        int64_t begin = nanoseconds();
        bool made = make_code(e, p, form);
        atomic_fetch_add(&n_ticks, nanoseconds() - begin);
        atomic_fetch_add(made ? &n_compiled : &n_refused, 1);
        atomic_store(&e->state, made ? READY : REFUSED);
    }
    pthread_mutex_unlock(&changing);
}

static double elements_of(const oly_tile_box *box)
{
    double n = 1;
    for (int d = 0; d < box->rank; d++)
        n *= (double)box->extent[d];
    return n;
}

/* To the interpreter from now on, without a search. */
static void leave(oly_group_known *known)
{
    atomic_store_explicit(&known->is_left, true, memory_order_relaxed);
}

/* The program's entry, whose user the caller becomes, if it has code. known: NULL allowed. */
static entry *ready(const oly_tile_program *p, const oly_code_form *form, double work, oly_group_known *known)
{
    uint64_t hash = hash_of(p, form);
    entry *e = find(hash, p, form);
    if (!e) {
        pthread_mutex_lock(&changing);
        e = find(hash, p, form);
        if (!e) {
            insert(hash, p, form);
            e = find(hash, p, form);
        }
        pthread_mutex_unlock(&changing);
    }
    if (!e)
        return NULL;
    if (atomic_load(&e->state) == COUNTING &&
        atomic_fetch_add(&e->work, (int64_t)work) + (int64_t)work >= oly_option.compile_after)
        compile(e, p, form);
    if (atomic_load(&e->state) == READY)
        return e;
    if (known && atomic_load(&e->state) == REFUSED)
        leave(known);
    atomic_fetch_sub(&e->users, 1);
    return NULL;
}

/* One operation gains nothing, its kernel is such a loop already, unless rows are so short that calling it takes longer; a lone one is found
 * quickly if it is known. */
static bool may_gain(const oly_tile_program *p, const oly_tile_box *box, const oly_group_known *known)
{
    bool short_rows = (known || box->rank > 1) && (box->rank == 0 || box->extent[box->rank - 1] <= SHORT_ROW);
    int operations = 0;
    for (int i = 0; i < p->n_instructions && operations < 2; i++)
        operations += p->instructions[i].op != OLY_TILE_splat && p->instructions[i].op != OLY_TILE_iota;
    return operations + short_rows >= 2;
}

/* -- chunks ----------------------------------------------------------------------------------------------------------------- */

/* How a box is divided: into ranges of dimension d, at each index of those before it. */
typedef struct division {
    int d;
    int64_t units; /* indexes of these dimensions and d */
} division;

/* Dimensions from the first on until there is a part for every chunk: rows stay whole as long as there are enough. */
static division division_of(const oly_tile_box *box, int n_chunks)
{
    division v = {.units = box->extent[0]};
    while (v.units < n_chunks && v.d + 1 < box->rank)
        v.units *= box->extent[++v.d];
    return v;
}

/* The first unit of a chunk. Long rows are divided at multiples of vectors. */
static int64_t boundary(const oly_tile_box *box, const division *v, int chunk, int n_chunks)
{
    int64_t at = (int64_t)((__int128)v->units * chunk / n_chunks), in_row = at % box->extent[v->d];
    bool rounds = v->d == box->rank - 1 && v->units >= (int64_t)n_chunks * MULTIPLE && chunk < n_chunks;
    return rounds ? at - in_row % MULTIPLE : at;
}

static void move_operands(int n, oly_tile_operand *operands, const uint8_t *dtype, int d, int64_t by)
{
    for (int k = 0; k < n; k++)
        operands[k].base += by * operands[k].stride[d] * (int64_t)oly_dtype_size((oly_dtype)dtype[k]);
}

static void count_runs(entry *e, int64_t runs)
{
    atomic_store_explicit(&e->used, atomic_load_explicit(&table_clock, memory_order_relaxed), memory_order_relaxed);
    /* not exact where threads run code at once: counting so would take longer than small groups */
    atomic_store_explicit(&n_runs, atomic_load_explicit(&n_runs, memory_order_relaxed) + runs, memory_order_relaxed);
}

/* One row, without counters and strides? */
static bool is_plain_row(const oly_code_box *b, const oly_code_form *form)
{
    return b->rank <= 1 && b->n_operands <= b->n_memory && !form->strided[0] && !form->strided[1];
}

static void note(oly_group_known *known, const entry *e, const oly_code_box *b)
{
    atomic_store_explicit(&known->n, b->extent[0], memory_order_relaxed);
    atomic_store_explicit(&known->code, (uint64_t)atomic_load(&e->generation) << 32 | (uint64_t)(e - table + 1),
                          memory_order_release);
}

/* Runs a whole box by machine code or, as long as there is none, interpreted. known: NULL allowed. */
static void run_box(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                    const oly_tile_operand *stores, double work, oly_group_known *known)
{
    oly_code_box b;
    oly_code_form form;
    entry *e = NULL;
    bool prepared = oly_code_prepare(p, box, loads, stores, &b, &form),
         small = elements_of(box) * p->n_instructions < LEAST_WORK;
    if (known && small &&
        !(prepared &&
          is_plain_row(&b, &form))) /* it would be searched for each time, which takes longer than it does */
        leave(known);
    else if (prepared && !atomic_load(&denied))
        e = ready(p, &form, work, known);
    if (!e) {
        oly_tile_run(p, box, loads, stores, 0, 1);
        return;
    }
    bool runs = true;
    if (e->parts)
        runs = oly_code_parts_run(e->parts, (const uint8_t *)(uintptr_t)e->code, p, &b);
    else
        oly_code_run(e->code, &e->outline, p, &b, 0, 1);
    if (runs)
        count_runs(e, 1);
    if (runs && known && is_plain_row(&b, &form))
        note(known, e, &b);
    atomic_fetch_sub(&e->users, 1);
    if (!runs)
        oly_tile_run(p, box, loads, stores, 0, 1);
}

/* The entry of known code, with the caller as a user; NULL: it is not known, or not any more. */
static entry *use_known(oly_group_known *known)
{
    uint64_t code = atomic_load_explicit(&known->code, memory_order_acquire);
    if (!code)
        return NULL;
    entry *e = &table[(uint32_t)code - 1];
    atomic_fetch_add(&e->users, 1);
    if (atomic_load(&e->state) == READY && atomic_load(&e->generation) == code >> 32)
        return e;
    atomic_fetch_sub(&e->users, 1);
    return NULL;
}

bool oly_group_run_known(oly_group_known *known, char *const *first)
{
    entry *e = use_known(known);
    if (!e)
        return false;
    int64_t n = atomic_load_explicit(&known->n, memory_order_relaxed);
    bool runs = true;
    if (e->parts)
        runs = oly_code_parts_run_row(e->parts, (const uint8_t *)(uintptr_t)e->code, known->program, first, n);
    else
        oly_code_run_row(e->code, &e->outline, known->program, first, n);
    if (runs)
        count_runs(e, 1);
    atomic_fetch_sub(&e->users, 1);
    return runs;
}

bool oly_group_hold(oly_group_known *known, oly_group_held *held, oly_code_call *call)
{
    entry *e = use_known(known);
    if (e && e->parts) {
        atomic_fetch_sub(&e->users, 1);
        e = NULL;
    }
    if (!e)
        return false;
    call->common = oly_code_table();
    oly_code_set_constants(call, &e->outline, known->program);
    oly_code_set_length(call, &e->outline, atomic_load_explicit(&known->n, memory_order_relaxed));
    *held = (oly_group_held){e->code, e};
    return true;
}

void oly_group_let_go(oly_group_held *held, int64_t runs)
{
    entry *e = held->entry;
    count_runs(e, runs);
    atomic_fetch_sub(&e->users, 1);
}

/* Where a part of a box begins, and its operands there. */
typedef struct box_part {
    oly_tile_box box;
    oly_tile_operand *loads, *stores;
} box_part;

static void move_to(const oly_tile_program *p, box_part *part, int d, int64_t by, int64_t extent)
{
    part->box.origin[d] += by;
    part->box.extent[d] = extent;
    move_operands(p->n_loads, part->loads, p->load_dtype, d, by);
    move_operands(p->n_stores, part->stores, p->store_dtype, d, by);
}

/* A chunk is the same part of the box whether it is run by machine code or interpreted: code may become ready, or be dropped, between two
 * chunks of one step. */
static void run_chunk(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                      const oly_tile_operand *stores, int chunk, int n_chunks, double work)
{
    division v = division_of(box, n_chunks);
    oly_tile_operand in[p->n_loads + 1], out[p->n_stores + 1];
    int64_t end = boundary(box, &v, chunk + 1, n_chunks), extent = box->extent[v.d], n;
    for (int64_t at = boundary(box, &v, chunk, n_chunks); at < end; at += n) {
        box_part part = {*box, in, out};
        int64_t outer = at / extent, low = at % extent;
        n = extent - low < end - at ? extent - low : end - at;
        memcpy(in, loads, sizeof *in * (size_t)p->n_loads);
        memcpy(out, stores, sizeof *out * (size_t)p->n_stores);
        move_to(p, &part, v.d, low, n);
        for (int d = v.d - 1; d >= 0; outer /= box->extent[d--])
            move_to(p, &part, d, outer % box->extent[d], 1);
        run_box(p, &part.box, in, out, work, NULL);
    }
}

static void run(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                const oly_tile_operand *stores, int chunk, int n_chunks, oly_group_known *known)
{
    double work = elements_of(box) * p->n_instructions / n_chunks;
    if (work < LEAST_WORK && known && !atomic_load_explicit(&known->is_left, memory_order_relaxed))
        work += (double)CALL * p->n_instructions; /* what interpreting an instruction costs */
    if (work < (oly_option.compile_after ? LEAST_WORK : 1) || !may_gain(p, box, known) || !oly_code_available())
        oly_tile_run(p, box, loads, stores, chunk, n_chunks);
    else if (n_chunks == 1)
        run_box(p, box, loads, stores, work, known);
    else if (box->rank > 0)
        run_chunk(p, box, loads, stores, chunk, n_chunks, work);
    else if (chunk == 0)
        run_box(p, box, loads, stores, work, NULL);
}

void oly_group_run(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                   const oly_tile_operand *stores, int chunk, int n_chunks)
{
    run(p, box, loads, stores, chunk, n_chunks, NULL);
}

void oly_group_run_noting(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                          const oly_tile_operand *stores, oly_group_known *known)
{
    run(p, box, loads, stores, 0, 1, known);
}

void oly_group_run_rows(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                        const oly_tile_operand *stores)
{
    double work = elements_of(box) * p->n_instructions;
    if (work < (oly_option.compile_after ? LEAST_WORK : 1) || !oly_code_available())
        oly_tile_run(p, box, loads, stores, 0, 1);
    else
        run_box(p, box, loads, stores, work, NULL);
}

/* -- for tests -------------------------------------------------------------------------------------------------------------- */

oly_group_counts oly_group_counted(void)
{
    return (oly_group_counts){atomic_load(&n_compiled), atomic_load(&n_refused), atomic_load(&n_runs),
                              atomic_load(&n_bytes), atomic_load(&n_ticks)};
}

int64_t oly_group_compile_after(int64_t work)
{
    int64_t before = oly_option.compile_after;
    oly_option.compile_after = work;
    return before;
}

void oly_group_forget(void)
{
    pthread_mutex_lock(&changing);
    for (int k = 0; k < ENTRIES; k++)
        if (atomic_load(&table[k].state) != EMPTY && clear(&table[k]))
            atomic_store(&table[k].state, EMPTY);
    atomic_store(&denied, false);
    pthread_mutex_unlock(&changing);
}
