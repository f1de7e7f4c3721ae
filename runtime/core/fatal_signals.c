/* SPDX-License-Identifier: BSD-3-Clause */
/* See fatal_signals.h. Handlers run on a stack of their own, so that a stack overflow is recorded, too. */
#define _GNU_SOURCE /* sigaltstack */
#include "core/fatal_signals.h"
#include "core/events.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "core/status_socket.h"
#include "core/timeline.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { STACK_BYTES = 128 * 1024, STUCK_NS = 500000000, MOST_PAUSES = 200 };

typedef struct handled {
    int number;
    const char *name;
    bool always; /* also if the program has a handler, which is then called afterwards */
    bool installed;
    struct sigaction before;
} handled;

static handled all[] = {
    {.number = SIGSEGV, .name = "SIGSEGV", .always = true},
    {.number = SIGBUS, .name = "SIGBUS", .always = true},
    {.number = SIGFPE, .name = "SIGFPE", .always = true},
    {.number = SIGILL, .name = "SIGILL", .always = true},
    {.number = SIGABRT, .name = "SIGABRT", .always = true},
    {.number = SIGTERM, .name = "SIGTERM"},
    {.number = SIGQUIT, .name = "SIGQUIT"},
};
enum { N_SIGNALS = sizeof all / sizeof *all };

static _Thread_local void *stack; /* that handlers of this thread run on */
static atomic_flag crashed = ATOMIC_FLAG_INIT;
static atomic_bool recorded; /* by the thread that has crashed first */
static bool size_limit_ignored;

static void on_signal(int number, siginfo_t *info, void *context);

static handled *find(int number)
{
    for (int k = 0; k < N_SIGNALS; k++)
        if (all[k].number == number)
            return &all[k];
    return &all[0];
}

bool oly_fatal_signals_is(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

static bool is_ours(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && oly_fatal_signals_is(&now);
}

/* -- texts ---------------------------------------------------------------------------------------------------------- */

typedef struct cause {
    char text[200];
    size_t n;
} cause;

static void add(cause *c, const char *text)
{
    while (*text && c->n + 1 < sizeof c->text)
        c->text[c->n++] = *text++;
    c->text[c->n] = 0;
}

static void add_address(cause *c, uint64_t address)
{
    char digits[20];
    int n = 0;
    for (int shift = 60; shift >= 0; shift -= 4)
        if (address >> shift || shift == 0)
            digits[n++] = "0123456789abcdef"[address >> shift & 15];
    digits[n] = 0;
    add(c, "0x");
    add(c, digits);
}

static cause cause_of(const handled *h, const siginfo_t *info)
{
    cause c = {.n = 0};
    char digits[24];
    add(&c, h->name);
    if (info->si_code <= 0) { /* by kill, or raise */
        oly_raw_digits(digits, info->si_pid);
        add(&c, ", sent by process ");
        add(&c, digits);
    } else if (h->number != SIGABRT) {
        add(&c, h->number == SIGSEGV || h->number == SIGBUS ? ", access to address " : ", instruction at ");
        add_address(&c, (uint64_t)(uintptr_t)info->si_addr);
    }
    return c;
}

/* -- passing it on -------------------------------------------------------------------------------------------------- */

/* To whom it was before. The default action follows when the handler returns: the fault happens again, or the signal that is
 * raised here arrives. */
static void pass_on(const handled *h, siginfo_t *info, void *context)
{
    if ((h->before.sa_flags & SA_SIGINFO) && h->before.sa_sigaction) {
        h->before.sa_sigaction(h->number, info, context);
        return;
    }
    if (h->before.sa_handler != SIG_DFL && h->before.sa_handler != SIG_IGN) {
        h->before.sa_handler(h->number);
        return;
    }
    if (!is_ours(h->number))
        return; /* another handler has called this one, and decides */
    struct sigaction by_system = {.sa_handler = SIG_DFL};
    sigaction(h->number, &by_system, NULL);
    oly_status_socket_unlink();
    if (info->si_code <= 0)
        raise(h->number);
}

/* Is this the end of a job that hangs or in which a rank has failed? Not of one that was simply cancelled, nor of one that ends with
 * an error of the program: however long this rank has waited for the one that met it. */
static bool worth_a_record(void)
{
    switch (oly_recorder_peers_state ? oly_recorder_peers_state() : OLY_PEERS_STAY) {
    case OLY_PEERS_FAILURE: return true;
    case OLY_PEERS_ERROR: return false;
    case OLY_PEERS_STAY: break;
    }
    return oly_recorder_is_stuck(STUCK_NS);
}

/* Another thread has crashed before and is writing down why: what this one does next would end the process. */
static void await_record(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int k = 0; k < MOST_PAUSES && !atomic_load(&recorded); k++)
        nanosleep(&pause, NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const handled *h = find(number);
    cause c = cause_of(h, info);
    int before = errno;
    if (number == SIGQUIT) {
        oly_recorder_dump(OLY_RECORDER_ASKED, c.text);
    } else if (number == SIGTERM) {
        /* Open MPI's mpirun follows SIGTERM by SIGKILL as soon as the first rank has ended: others are writing, too. */
        const struct timespec patience = {.tv_nsec = 200000000};
        const char *reason = OLY_RECORDER_ENDED, *because = c.text;
        oly_recorder_why(&reason, &because);
        if (is_ours(number) && oly_timeline_rescue)
            oly_timeline_rescue();
        if (worth_a_record()) {
            if (!oly_recorder_has_recorded())
                oly_recorder_dump(reason, because);
            nanosleep(&patience, NULL);
        }
        int stays = OLY_STAYS;
        if (is_ours(number)) /* otherwise the handler that has called this one decides */
            atomic_compare_exchange_strong(&oly_progress_here->leaving, &stays, OLY_LEAVES_BY_SIGTERM);
        oly_recorder_finish();
        pass_on(h, info, context);
    } else {
        if (!atomic_flag_test_and_set(&crashed)) {
            atomic_store(&oly_progress_here->leaving, OLY_LEAVES_BY_FAILURE);
            oly_event_text(OLY_EVENT_SIGNAL, OLY_EVENT_INSTANT, c.text, number, 0);
            oly_recorder_dump(OLY_RECORDER_SIGNAL, c.text);
            if (oly_timeline_rescue)
                oly_timeline_rescue();
            atomic_store(&recorded, true);
        } else {
            await_record();
        }
        pass_on(h, info, context);
    }
    errno = before;
}

/* -- begin and end -------------------------------------------------------------------------------------------------- */

static void use_stack(void)
{
    stack_t now;
    if (stack || sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return;
    void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    stack_t own = {.ss_sp = memory, .ss_size = STACK_BYTES};
    if (memory == MAP_FAILED)
        return;
    if (sigaltstack(&own, NULL) == 0)
        stack = memory;
    else
        munmap(memory, STACK_BYTES);
}

/* Only by the thread that uses it, and if the program has not set another. */
static void leave_stack(void)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (!stack || sigaltstack(NULL, &now) != 0 || now.ss_sp != stack || sigaltstack(&none, NULL) != 0)
        return;
    munmap(stack, STACK_BYTES);
    stack = NULL;
}

static void install(handled *h)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (h->installed || sigaction(h->number, NULL, &h->before) != 0)
        return;
    bool free_to_take = !(h->before.sa_flags & SA_SIGINFO) && h->before.sa_handler == SIG_DFL;
    if (h->always || free_to_take)
        h->installed = sigaction(h->number, &action, NULL) == 0;
}

/* A write beyond the limit of file sizes is an error of the call, as on a full disk, and not the end of the process. */
static void ignore_size_limit(bool ignore)
{
    struct sigaction now, action = {.sa_handler = ignore ? SIG_IGN : SIG_DFL};
    bool plain = sigaction(SIGXFSZ, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO);
    if (plain && now.sa_handler == (ignore ? SIG_DFL : SIG_IGN) && (ignore || size_limit_ignored))
        size_limit_ignored = sigaction(SIGXFSZ, &action, NULL) == 0 && ignore;
}

void oly_fatal_signals_begin(void)
{
    use_stack();
    ignore_size_limit(true);
    for (int k = 0; k < N_SIGNALS; k++)
        install(&all[k]);
}

void oly_fatal_signals_thread_begin(void)
{
    sigset_t own;
    sigemptyset(&own);
    for (int k = 0; k < N_SIGNALS; k++)
        if (all[k].always)
            sigaddset(&own, all[k].number);
    use_stack();
    pthread_sigmask(SIG_UNBLOCK, &own, NULL);
}

void oly_fatal_signals_thread_end(void)
{
    leave_stack();
}

void oly_fatal_signals_end(void)
{
    for (int k = 0; k < N_SIGNALS; k++) {
        if (all[k].installed && is_ours(all[k].number))
            sigaction(all[k].number, &all[k].before, NULL);
        all[k].installed = false;
    }
    ignore_size_limit(false);
    leave_stack();
}
