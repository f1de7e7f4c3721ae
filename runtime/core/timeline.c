/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline in memory. See timeline.h. A thread's buffer is a list of chunks, to which only that thread adds; its count is
 * published after the span, so that the writer may read while the thread goes on. Buffers outlive their threads. Labels are in a
 * table of blocks, found by hash under a lock; a small cache of each thread knows those of call sites. */
#include "core/timeline.h"
#include "core/hash.h"
#include <pthread.h>
#include <string.h>

enum { CHUNK_SPANS = 1360, BUCKETS = 4096, BLOCK = 1024, BLOCKS = 1024, SITES = 64, MOST_THREADS = 1024 };

int oly_timeline_mode;
_Atomic int64_t oly_timeline_left_out;
void (*oly_timeline_rescue)(void);
_Thread_local int oly_timeline_quiet;

typedef struct chunk {
    _Atomic(struct chunk *) next;
    oly_span spans[CHUNK_SPANS];
} chunk;

typedef struct buffer {
    chunk *first, *last; /* owned */
    _Atomic int64_t n;
    _Atomic(const char *) name;
    /* of the reader */
    chunk *reading;
    int64_t reading_from;
} buffer;

static struct {
    pthread_mutex_t lock;
    int session; /* counts starts: buffers and labels of earlier ones are gone */
    _Atomic int64_t left;
    _Atomic int64_t dropped;
    atomic_int n_threads;
    buffer *threads[MOST_THREADS]; /* owned */
    oly_label *bucket[BUCKETS];
    oly_label *blocks[BLOCKS]; /* owned; [BLOCK] each */
    atomic_int n_labels;
} timeline = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    int session;
    buffer *buffer; /* NULL: no room */
    const char *name;
    struct {
        oly_site site;
        int label;
    } sites[SITES];
} own;

/* -- room ------------------------------------------------------------------------------------------------------------------ */

static void *take(size_t bytes)
{
    if (atomic_fetch_sub(&timeline.left, (int64_t)bytes) >= (int64_t)bytes) {
        void *memory = oly_calloc(1, bytes);
        if (memory)
            return memory;
    }
    atomic_fetch_add(&timeline.left, (int64_t)bytes);
    return NULL;
}

/* -- spans ----------------------------------------------------------------------------------------------------------------- */

static buffer *new_buffer(void)
{
    buffer *b = NULL;
    pthread_mutex_lock(&timeline.lock);
    int n = atomic_load(&timeline.n_threads);
    if (n < MOST_THREADS && (b = take(sizeof *b))) {
        atomic_store(&b->name, own.name);
        timeline.threads[n] = b;
        atomic_store(&timeline.n_threads, n + 1);
    }
    pthread_mutex_unlock(&timeline.lock);
    return b;
}

/* Of the current session. */
static void settle(void)
{
    if (own.session == timeline.session)
        return;
    memset(own.sites, 0, sizeof own.sites);
    own.session = timeline.session;
    own.buffer = new_buffer();
}

static bool add_chunk(buffer *b)
{
    chunk *c = take(sizeof *c);
    if (!c)
        return false;
    if (b->last)
        atomic_store_explicit(&b->last->next, c, memory_order_release);
    else
        b->first = c;
    b->last = c;
    return true;
}

void oly_timeline_add(oly_span span)
{
    if (!oly_timeline_spans())
        return;
    settle();
    buffer *b = own.buffer;
    int64_t n = b ? atomic_load_explicit(&b->n, memory_order_relaxed) : 0;
    if (!b || (n % CHUNK_SPANS == 0 && !add_chunk(b))) {
        atomic_fetch_add(&timeline.dropped, 1);
        return;
    }
    b->last->spans[n % CHUNK_SPANS] = span;
    atomic_store_explicit(&b->n, n + 1, memory_order_release);
}

void oly_timeline_part(int label, int device, int64_t execution, int64_t begin)
{
    settle();
    buffer *b = own.buffer;
    int64_t n = b ? atomic_load_explicit(&b->n, memory_order_relaxed) : 0, now = oly_ticks();
    oly_span *last = n > 0 ? &b->last->spans[(n - 1) % CHUNK_SPANS] : NULL;
    if (last && last->kind == OLY_EVENT_PART && last->a == execution && last->device == device) {
        __atomic_store_n(&last->end, now, __ATOMIC_RELAXED); /* it may be read meanwhile */
        __atomic_store_n(&last->b, last->b + 1, __ATOMIC_RELAXED);
        return;
    }
    oly_timeline_add((oly_span){.begin = begin,
                                .end = now,
                                .kind = OLY_EVENT_PART,
                                .device = (int16_t)device,
                                .label = label,
                                .a = execution,
                                .b = 1});
}

/* -- labels ---------------------------------------------------------------------------------------------------------------- */

const oly_label *oly_label_get(int label)
{
    return label > 0 ? &timeline.blocks[(label - 1) / BLOCK][(label - 1) % BLOCK] : NULL;
}

int oly_labels(void)
{
    return atomic_load_explicit(&timeline.n_labels, memory_order_acquire);
}

void oly_label_ran(int label, int64_t ticks)
{
    if (label <= 0)
        return;
    oly_label *l = (oly_label *)(uintptr_t)oly_label_get(label);
    atomic_fetch_add_explicit(&l->runs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->ticks, ticks, memory_order_relaxed);
    int64_t most = atomic_load_explicit(&l->most, memory_order_relaxed);
    while (ticks > most && !atomic_compare_exchange_weak(&l->most, &most, ticks))
        ;
}

oly_measured oly_label_measured(int label)
{
    const oly_label *l = oly_label_get(label);
    int64_t runs = l ? atomic_load(&l->runs) : 0;
    if (runs == 0)
        return (oly_measured){0};
    double second = oly_ticks_line().ns_per_tick * 1e-9;
    int64_t ticks = atomic_load(&l->ticks), most = atomic_load(&l->most);
    oly_measured m = {.runs = runs};
    m.mean = (double)ticks * second / (double)runs;
    m.most = (double)most * second;
    return m;
}

static const char *copy_of(const char *text, char **room)
{
    char *to = *room;
    size_t n = strlen(text) + 1;
    memcpy(to, text, n);
    *room += n;
    return to;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static bool is(const oly_label *l, const oly_label_texts *t, uint64_t hash)
{
    return l->hash == hash && l->plan == t->plan && l->step == t->step && l->line == t->site.line &&
           strcmp(l->name, t->name) == 0 && strcmp(l->detail, or_empty(t->detail)) == 0 &&
           strcmp(l->call, or_empty(t->site.call)) == 0 && strcmp(l->file, or_empty(t->site.file)) == 0;
}

/* Appends a label, under the lock. */
static int new_label(const oly_label_texts *t, uint64_t hash)
{
    int n = atomic_load(&timeline.n_labels);
    size_t bytes = strlen(t->name) + strlen(or_empty(t->detail)) + strlen(or_empty(t->site.call)) +
                   strlen(or_empty(t->site.file)) + 4;
    if (n == BLOCK * BLOCKS)
        return 0;
    oly_label **block = &timeline.blocks[n / BLOCK]; /* may be there already, from a time without room for texts */
    if (!*block && !(*block = take(BLOCK * sizeof **block)))
        return 0;
    char *texts = take(bytes), *room = texts;
    if (!texts)
        return 0;
    oly_label *l = &timeline.blocks[n / BLOCK][n % BLOCK];
    l->name = copy_of(t->name, &room);
    l->detail = copy_of(or_empty(t->detail), &room);
    l->call = copy_of(or_empty(t->site.call), &room);
    l->file = copy_of(or_empty(t->site.file), &room);
    l->line = t->site.line;
    l->step = t->step;
    l->plan = t->plan;
    l->hash = hash;
    l->predicted = t->predicted;
    l->next = timeline.bucket[hash % BUCKETS];
    timeline.bucket[hash % BUCKETS] = l;
    atomic_store_explicit(&timeline.n_labels, n + 1, memory_order_release);
    return n + 1;
}

static int number_of(const oly_label *l)
{
    for (int b = 0; b < BLOCKS && timeline.blocks[b]; b++)
        if (l >= timeline.blocks[b] && l < timeline.blocks[b] + BLOCK)
            return b * BLOCK + (int)(l - timeline.blocks[b]) + 1;
    return 0;
}

int oly_label_of(const oly_label_texts *t)
{
    uint64_t h = oly_hash_text(oly_hash_mix(t->plan, (uint64_t)t->step << 32 | (uint32_t)t->site.line), t->name);
    h = oly_hash_text(oly_hash_text(h, or_empty(t->detail)), or_empty(t->site.file));
    pthread_mutex_lock(&timeline.lock);
    const oly_label *l = timeline.bucket[h % BUCKETS];
    while (l && !is(l, t, h))
        l = l->next;
    int label = l ? number_of(l) : new_label(t, h);
    pthread_mutex_unlock(&timeline.lock);
    return label;
}

int oly_label_of_text(const char *name)
{
    return oly_label_of(&(oly_label_texts){.name = name, .site = oly_current_site()});
}

int oly_label_of_site(oly_site site)
{
    settle();
    uint64_t mix = ((uintptr_t)site.call >> 3) + ((uintptr_t)site.file >> 3) + (unsigned)site.line;
    typeof(&own.sites[0]) known = &own.sites[mix % SITES];
    if (known->label && known->site.call == site.call && known->site.file == site.file && known->site.line == site.line)
        return known->label;
    known->site = site;
    return known->label = oly_label_of(&(oly_label_texts){.name = or_empty(site.call), .site = site});
}

/* -- start, reading, end --------------------------------------------------------------------------------------------------- */

oly_status oly_timeline_begin(int mode, int64_t limit)
{
    own.name = "program";
    timeline.session++;
    atomic_store(&timeline.left, limit);
    atomic_store(&timeline.dropped, 0);
    atomic_store(&oly_timeline_left_out, 0);
    oly_timeline_mode = mode;
    settle(); /* the first thread is the program's */
    return OLY_OK;
}

static void free_buffer(buffer *b)
{
    while (b->first) {
        chunk *c = b->first;
        b->first = atomic_load(&c->next);
        oly_release(c);
    }
    oly_release(b);
}

void oly_timeline_end(void)
{
    oly_timeline_mode = OLY_TIMELINE_OFF;
    timeline.session++;
    for (int k = 0; k < atomic_load(&timeline.n_threads); k++) {
        free_buffer(timeline.threads[k]);
        timeline.threads[k] = NULL;
    }
    for (int k = 0; k < oly_labels(); k++)
        oly_release((void *)(uintptr_t)oly_label_get(k + 1)->name); /* the first of its texts */
    for (int k = 0; k < BLOCKS; k++) {
        oly_release(timeline.blocks[k]);
        timeline.blocks[k] = NULL;
    }
    memset(timeline.bucket, 0, sizeof timeline.bucket);
    atomic_store(&timeline.n_threads, 0);
    atomic_store(&timeline.n_labels, 0);
}

int oly_timeline_threads(void)
{
    return atomic_load(&timeline.n_threads);
}

const char *oly_timeline_thread_name(int thread)
{
    return atomic_load(&timeline.threads[thread]->name);
}

void oly_timeline_name_thread(const char *name)
{
    own.name = name;
    if (own.session == timeline.session && own.buffer)
        atomic_store(&own.buffer->name, name);
}

int64_t oly_timeline_dropped(void)
{
    return atomic_load(&timeline.dropped);
}

oly_span *oly_timeline_next(int thread, int64_t *at)
{
    buffer *b = timeline.threads[thread];
    if (*at >= atomic_load_explicit(&b->n, memory_order_acquire))
        return NULL;
    if (*at == 0)
        b->reading = b->first;
    else if (*at % CHUNK_SPANS == 0)
        b->reading = atomic_load_explicit(&b->reading->next, memory_order_acquire);
    return &b->reading->spans[(*at)++ % CHUNK_SPANS];
}
