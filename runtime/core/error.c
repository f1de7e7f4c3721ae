/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors: the status names, the message pending on each thread, what a failing public call does, and the
 * library's own memory allocation, which tests can make fail. Callable from every layer.
 *
 * The pending message and the site belong to a thread. The last error (OLY_ERRORS_RETURN) belongs to the
 * process: it is written once under a lock, published by its status, and stays as it is until oly_clear_error.
 */
#include "core/error.h"
#include "core/events.h"
#include "core/timeline.h"
#include "core/progress.h"
#include "core/progress_line.h"
#include "core/recorder.h"
#include "core/float_mode.h"
#include "core/text.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- names ------------------------------------------------------------------------------------- */

const char *oly_status_name(oly_status status)
{
    oly_pass(__func__);
    static const char *const names[] = {
#define NAME(name, text) "OLY_" #name,
        OLY_STATUS_LIST(NAME)
#undef NAME
    };
    return (unsigned)status < OLY_N_STATUS ? names[status] : "OLY_UNKNOWN";
}

const char *oly_status_text(oly_status status)
{
    oly_pass(__func__);
    static const char *const texts[] = {
#define TEXT(name, text) text,
        OLY_STATUS_LIST(TEXT)
#undef TEXT
    };
    return (unsigned)status < OLY_N_STATUS ? texts[status] : "unknown status";
}

/* -- where a call stands ----------------------------------------------------------------------- */

/* Recorded calls that have not been entered, newest last: as many as expressions nest; older ones are overwritten. Uses the
 * default TLS model: static TLS is not available to a library that is loaded later (dlopen). */
#define NOTED_CALLS 64 /* power of two */
typedef struct note {
    oly_site site;
    const char *function;
} note;
typedef struct calls_of_thread {
    oly_site site;           /* the current one */
    note noted[NOTED_CALLS]; /* by number modulo NOTED_CALLS */
    unsigned n_noted;
    unsigned n_outside; /* of these belong to calls enclosing the open one */
} calls_of_thread;
static _Thread_local calls_of_thread calls;

void oly_at(const char *file, int line, const char *written, const char *function)
{
    calls_of_thread *c = &calls;
    c->noted[c->n_noted++ % NOTED_CALLS] = (note){{.file = file, .call = written, .line = line}, function};
}

/* The record of this function; later records are finished arguments. NULL: none. */
static inline const note *find_note(calls_of_thread *c, const char *function)
{
    unsigned most = c->n_noted - c->n_outside;
    for (unsigned back = 1; back <= most && back <= NOTED_CALLS; back++) {
        const note *n = &c->noted[(c->n_noted - back) % NOTED_CALLS];
        if (strcmp(n->function, function) != 0)
            continue;
        c->n_noted -= back;
        if (oly_progress_is_read)
            oly_progress_note(&n->site);
        return n;
    }
    return NULL;
}

oly_entry oly_enter(const char *function)
{
    calls_of_thread *c = &calls;
    oly_entry entry = {c->site, oly_call_inside, c->n_outside, oly_float_mode()};
    if (entry.float_mode != OLY_FLOAT_MODE_OF_C)
        oly_set_float_mode(OLY_FLOAT_MODE_OF_C);
    const note *n = find_note(c, function);
    if (n)
        c->site = n->site;
    else if (!c->site.call) /* called without its macro, as by the library itself */
        c->site = (oly_site){.file = "", .call = function};
    c->n_outside = c->n_noted;
    return entry;
}

void oly_pass(const char *function)
{
    calls_of_thread *c = &calls;
    if (c->n_noted != c->n_outside)
        find_note(c, function);
}

void oly_leave(const oly_entry *entry)
{
    calls_of_thread *c = &calls;
    c->site = entry->before;
    c->n_noted = c->n_outside;
    c->n_outside = entry->n_outside;
    if (entry->float_mode != OLY_FLOAT_MODE_OF_C)
        oly_set_float_mode(entry->float_mode);
}

oly_site oly_current_site(void)
{
    oly_site site = calls.site;
    if (!site.call)
        site = (oly_site){.file = "", .call = "", .line = 0};
    return site;
}

void oly_restore_site(oly_site site)
{
    calls.site = site;
}

/* -- between oly_init and oly_finalize --------------------------------------------------------- */

atomic_int oly_life = OLY_BEFORE_INIT;
_Thread_local const char *oly_call_inside;

/* Those that need no other process and no device. */
bool oly_may_enter_inside(const char *function)
{
    static const char *const allowed[] = {"oly_process_index",      "oly_process_count",  "oly_device_count",
                                          "oly_local_device_count", "oly_get_device",     "oly_local_device",
                                          "oly_device_id",          "oly_device_process", "oly_device_is_local",
                                          "oly_device_platform",    "oly_device_str",     "oly_dtype_name",
                                          "oly_dtype_size",         "oly_printf",         "oly_fprintf"};
    for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++)
        if (strcmp(allowed[k], function) == 0)
            return true;
    return false;
}

void oly_raise_not_alive(void)
{
    static const char *const why[] = {
        [OLY_BEFORE_INIT] = "Olympus is not started; call oly_init first",
        [OLY_AFTER_FINALIZE] = "Olympus has ended; no call may come after oly_finalize",
        [OLY_FORKED] =
            "this process was forked from one that had called oly_init, and has none of its threads and devices; "
            "only its parent may call Olympus",
    };
    int life = atomic_load(&oly_life);
    if (life == OLY_ALIVE && oly_call_inside) {
        oly_raise(oly_fail(
            OLY_STATE,
            "called from %s, which a running plan calls: other processes do not make this call, and devices are busy; "
            "compute with C, or before or after the function that has the callback",
            oly_call_inside));
        return;
    }
    oly_raise(oly_fail(OLY_STATE, "%s", why[life == OLY_ALIVE ? OLY_BEFORE_INIT : life]));
}

void oly_site_text(const oly_site *site, char *text, size_t size)
{
    if (!site->line) {
        snprintf(text, size, "%s", site->call);
        return;
    }
    int length = snprintf(text, size, "%s (%s:%d)", site->call, site->file, site->line);
    size_t file = strlen(site->file), most = file + size - 1;
    if (length < 0 || (size_t)length < size || most < (size_t)length + 3)
        return; /* it fits, or there is no room for the path */
    most -= (size_t)length + 3;
    const char *end = site->file + file - (most < file ? most : file), *folder = strchr(end, '/');
    snprintf(text, size, "%s (...%s:%d)", site->call, folder ? folder : end, site->line);
}

/* -- the message pending on a thread ----------------------------------------------------------- */

#define MESSAGE_SIZE 4096

static _Thread_local struct {
    oly_status status; /* OLY_OK: no message */
    const char *where; /* line of ours */
    char text[MESSAGE_SIZE];
} pending;

static _Thread_local struct {
    unsigned count;
    oly_status latest; /* OLY_OK: cleared */
} raised;

oly_status oly_fail_at(const char *where, oly_status status, const char *format, ...)
{
    if (pending.status != OLY_OK)
        return status;
    va_list arguments;
    va_start(arguments, format);
    locale_t before = oly_numbers_with_point();
    int length = vsnprintf(pending.text, sizeof pending.text, format, arguments);
    oly_numbers_as_before(before);
    va_end(arguments);
    if (length >= (int)sizeof pending.text)
        memcpy(pending.text + sizeof pending.text - 4, "...", 4);
    pending.status = status;
    pending.where = where;
    return status;
}

const char *oly_pending_message(void)
{
    return pending.status == OLY_OK ? "" : pending.text;
}

void oly_drop_message(void)
{
    pending.status = OLY_OK;
}

/* -- what the public layer does with a failure ------------------------------------------------- */

void (*oly_abort_hook)(int exit_status);
void (*oly_failure_hook)(oly_status status);

static atomic_int mode = OLY_ERRORS_ABORT;
static atomic_int this_rank = -1, rank_count = 1;

static struct {
    pthread_mutex_t lock;
    atomic_int status; /* OLY_OK: none; else `text` is complete */
    atomic_bool seen;
    char text[MESSAGE_SIZE + 512];
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

void oly_error_set_rank(int rank, int count)
{
    atomic_store(&this_rank, rank);
    atomic_store(&rank_count, count);
}

int oly_error_rank(void)
{
    return atomic_load(&this_rank);
}

/* "oly_add (heat.c:41): add: f32[4] and f32[5] differ [OLY_SHAPE: shapes do not fit]". Outside any public call it has a
 * line of the library. */
static void compose(char *text, size_t size, oly_status status)
{
    const char *call = calls.site.call ? calls.site.call : "";
    char place[512] = "";
    if (*call && calls.site.file[0])
        snprintf(place, sizeof place, "%s (%s:%d): ", call, calls.site.file, calls.site.line);
    else if (*call)
        snprintf(place, sizeof place, "%s: ", call);
    else if (pending.status != OLY_OK)
        snprintf(place, sizeof place, "%s: ", pending.where);
    const char *message = oly_pending_message();
    snprintf(text, size, "%s%s%s[%s: %s]", place, message, *message ? " " : "", oly_status_name(status),
             oly_status_text(status));
}

static void __attribute__((noreturn)) end_job(oly_status status, const char *text)
{
    static atomic_bool ending;
    static _Thread_local bool ending_here;
    if (ending_here)
        _exit(1); /* the hook failed, too */
    ending_here = true;
    if (atomic_exchange(&ending, true))
        for (;;)
            pause(); /* another thread is ending the process */
    oly_progress_line_end();
    if (atomic_load(&rank_count) > 1 && atomic_load(&this_rank) >= 0)
        fprintf(stderr, "olympus: rank %d: %s\n", atomic_load(&this_rank), text);
    else
        fprintf(stderr, "olympus: %s\n", text);
    fflush(NULL);
    oly_recorder_failed(status, text);
    if (oly_timeline_rescue)
        oly_timeline_rescue();
    if (oly_abort_hook)
        oly_abort_hook(1);
    exit(1);
}

static void keep_first(oly_status status, const char *text)
{
    pthread_mutex_lock(&last.lock);
    if (atomic_load(&last.status) == OLY_OK) {
        snprintf(last.text, sizeof last.text, "%s", text);
        atomic_store(&last.seen, false);
        atomic_store(&last.status, (int)status);
    }
    pthread_mutex_unlock(&last.lock);
}

oly_status oly_raise(oly_status status)
{
    if (status == OLY_OK)
        return OLY_OK;
    char text[sizeof last.text];
    compose(text, sizeof text, status);
    oly_event_text(OLY_EVENT_FAILURE, OLY_EVENT_INSTANT, oly_pending_message(), status, 0);
    if (oly_failure_hook && atomic_load(&mode) != OLY_ERRORS_ABORT)
        oly_failure_hook(status);
    oly_drop_message();
    if (atomic_load(&mode) == OLY_ERRORS_ABORT) {
        oly_recorder_ends(status, text);
        end_job(status, text);
    }
    oly_recorder_failed(status, text);
    keep_first(status, text);
    raised.count++;
    raised.latest = status;
    return status;
}

unsigned oly_raised_count(void)
{
    return raised.count;
}

oly_status oly_raised_since(unsigned count)
{
    return raised.count == count ? OLY_OK : raised.latest;
}

const char *oly_kept_message(void)
{
    return oly_kept_status() == OLY_OK ? "" : last.text;
}

oly_error_mode oly_set_error_mode(oly_error_mode new_mode)
{
    OLY_ENTER_ANY_TIME();
    return (oly_error_mode)atomic_exchange(&mode, (int)new_mode);
}

oly_status oly_kept_status(void)
{
    return (oly_status)atomic_load(&last.status);
}

oly_status oly_last_status(void)
{
    OLY_ENTER_ANY_TIME();
    atomic_store(&last.seen, true);
    return (oly_status)atomic_load(&last.status);
}

const char *oly_last_error(void)
{
    OLY_ENTER_ANY_TIME();
    return oly_last_status() == OLY_OK ? "" : last.text;
}

void oly_clear_error(void)
{
    OLY_ENTER_ANY_TIME();
    pthread_mutex_lock(&last.lock);
    atomic_store(&last.status, OLY_OK);
    pthread_mutex_unlock(&last.lock);
    raised.latest = OLY_OK;
    oly_drop_message();
}

bool oly_error_unseen(void)
{
    return atomic_load(&last.status) != OLY_OK && !atomic_load(&last.seen);
}

/* At the end of the process: prints a kept error that the program never read. */
static void __attribute__((destructor)) tell_unseen(void)
{
    if (!oly_error_unseen())
        return;
    if (atomic_load(&rank_count) > 1 && atomic_load(&this_rank) >= 0)
        fprintf(stderr, "olympus: rank %d: the program never read this error: %s\n", atomic_load(&this_rank),
                last.text);
    else
        fprintf(stderr, "olympus: the program never read this error: %s\n", last.text);
}

/* -- memory of the library --------------------------------------------------------------------- */

atomic_long oly_allocations_left = -1;

void oly_fail_allocation(long n)
{
    atomic_store(&oly_allocations_left, n);
}

bool oly_allocation_fails(void)
{
    long left = atomic_load_explicit(&oly_allocations_left, memory_order_relaxed);
    while (left >= 0)
        if (atomic_compare_exchange_weak(&oly_allocations_left, &left, left - 1))
            return left == 0;
    return false;
}

void *oly_malloc(size_t bytes)
{
    return oly_allocation_fails() ? NULL : malloc(bytes ? bytes : 1);
}

void *oly_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (oly_allocation_fails() || __builtin_mul_overflow(count, bytes, &total))
        return NULL;
    return calloc(1, total ? total : 1);
}

void *oly_realloc(void *old, size_t bytes)
{
    return oly_allocation_fails() ? NULL : realloc(old, bytes ? bytes : 1);
}

char *oly_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = oly_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void oly_release(void *memory)
{
    free(memory);
}

oly_status oly_report_memory(size_t bytes, const char *what_for)
{
    return oly_fail(OLY_MEMORY, "no memory for %s of %s", oly_size_text_of(bytes).chars, what_for);
}
