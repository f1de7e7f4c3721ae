/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors inside the library: functions return oly_status, the first message is kept per thread, and only the public layer
 * (oly_raise) turns one into "end the job" or "null handle". Callable from every layer. */
#ifndef OLY_CORE_ERROR_H
#define OLY_CORE_ERROR_H
#include <olympus/base.h>
#include <stdatomic.h>

/* Keeps the message (unless this thread already holds one) and returns `status`. A message names the values, the rule and
 * the remedy; oly_raise prefixes the caller's function, file and line. */
oly_status oly_fail_at(const char *where, oly_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define OLY_STR_(x) #x
#define OLY_STR(x)  OLY_STR_(x)
/* Returns the status in a form that static analysers can follow. */
static inline oly_status oly_failed_as(oly_status kept, oly_status status)
{
    (void)kept;
    return status;
}
#define oly_fail(status, ...)                                                                                          \
    oly_failed_as(oly_fail_at(__FILE__ ":" OLY_STR(__LINE__), (status), __VA_ARGS__), (status))

#define OLY_TRY(call)                                                                                                  \
    do {                                                                                                               \
        oly_status status_ = (call);                                                                                   \
        if (status_ != OLY_OK)                                                                                         \
            return status_;                                                                                            \
    } while (0)

/* The public layer's exit: reports a failure. Mode ABORT: prints "olympus: rank 2: oly_add (heat.c:41): message" to stderr and
 * calls the abort hook (which does not return). Mode RETURN: keeps the first as oly_last_error. Returns `status`. For OLY_OK
 * does nothing. */
oly_status oly_raise(oly_status status);

/* Message pending on this thread ("" if none), and dropping it. */
const char *oly_pending_message(void);
void oly_drop_message(void);

/* True if an error was kept (OLY_ERRORS_RETURN) and the program has read neither it nor its status. */
bool oly_error_unseen(void);
/* The kept error, without marking it as read. */
oly_status oly_kept_status(void);
const char *oly_kept_message(void); /* the same: its text */
/* Whether a callback of the program failed, whatever it returned: its calls raise errors, which the mode OLY_ERRORS_RETURN
 * keeps. Call the first before the callback, for the number of failures raised by this thread; the second after it returns
 * OLY_OK if there are no more or the program has cleared them (oly_clear_error), else the status of the last. */
unsigned oly_raised_count(void);
oly_status oly_raised_since(unsigned count);

/* Ends the job; set by the layer that started MPI. NULL: exit(1). */
extern void (*oly_abort_hook)(int exit_status);
/* Called with each failure that is returned, while its message is pending; set by the layer that notifies other ranks. NULL: none. */
extern void (*oly_failure_hook)(oly_status status);
/* Prefix of messages; -1 before MPI is initialised; with one process no rank is printed. */
void oly_error_set_rank(int rank, int count);
int oly_error_rank(void);

/* The public call this thread is in; file and call are never NULL ("" outside any call). `call` is the name of the
 * operation, oly_sum also for oly_sum_with. */
typedef struct oly_site {
    const char *file, *call;
    int line;
} oly_site;
oly_site oly_current_site(void);
void oly_restore_site(oly_site site);

/* Every public function begins with one of these. oly_at records each call, and in oly_add(oly_mul(a, b), c) mul last; so a
 * function looks up its own record. Its calls of other public functions have no record and keep its call site.
 *   OLY_ENTER(value)       returns `value` after an error (OLY_STATE) outside of oly_init ... oly_finalize
 *   OLY_ENTER_ANY_TIME()   for the few that may be called at any time
 *   oly_pass(__func__)     for functions that cannot fail: only drops the record */
typedef struct oly_entry {
    oly_site before;
    const char *inside; /* see oly_call_inside */
    unsigned n_outside;
    unsigned float_mode; /* the program's */
} oly_entry;
oly_entry oly_enter(const char *function);
void oly_leave(const oly_entry *entry);
void oly_pass(const char *function);
#define OLY_ENTER_ANY_TIME()                                                                                           \
    __attribute__((cleanup(oly_leave), unused)) const oly_entry oly_entry_here = oly_enter(__func__)
#define OLY_ENTER(...)                                                                                                 \
    OLY_ENTER_ANY_TIME();                                                                                              \
    if (!oly_alive() || __builtin_expect(oly_entry_here.inside && !oly_may_enter_inside(__func__), 0)) {               \
        oly_raise_not_alive();                                                                                         \
        return __VA_ARGS__;                                                                                            \
    }
/* Set when the library starts and ends. */
extern atomic_int oly_life;
enum { OLY_BEFORE_INIT, OLY_ALIVE, OLY_AFTER_FINALIZE, OLY_FORKED };
static inline bool oly_alive(void)
{
    return atomic_load_explicit(&oly_life, memory_order_relaxed) == OLY_ALIVE;
}
void oly_raise_not_alive(void);
/* The function of the program that a plan is calling on this thread, for messages; NULL: none. It may call only what concerns this
 * process alone. */
extern _Thread_local const char *oly_call_inside;
bool oly_may_enter_inside(const char *function);
/* "oly_sum (heat.c:40)"; of a long path only its end: "oly_sum (.../waves/heat.c:40)". */
void oly_site_text(const oly_site *site, char *text, size_t size);

/* oly_malloc and relatives: memory of the library itself; tests can make each allocation fail. NULL on failure without a
 * message; the caller
 * returns oly_out_of_memory(bytes, "what for"). */
void *oly_malloc(size_t bytes);
void *oly_calloc(size_t count, size_t bytes); /* checks count*bytes */
void *oly_realloc(void *old, size_t bytes);
char *oly_strdup(const char *text);
void oly_release(void *memory); /* free; NULL allowed */
oly_status oly_report_memory(size_t bytes, const char *what_for);
static inline oly_status oly_out_of_memory(size_t bytes, const char *what_for)
{
    return oly_failed_as(oly_report_memory(bytes, what_for), OLY_MEMORY);
}
/* Tests: after n more allocations (0: none more) the next one fails, once; negative: all succeed. */
void oly_fail_allocation(long n);
/* Called by every allocator of the library (also pools and arenas): true if this allocation must fail. */
bool oly_allocation_fails(void);
extern atomic_long oly_allocations_left; /* that succeed before one fails; negative: all succeed */
static inline bool oly_some_allocation_fails(void)
{
    return atomic_load_explicit(&oly_allocations_left, memory_order_relaxed) >= 0;
}
#endif
