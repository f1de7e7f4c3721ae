/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_should_stop: signals become a decision of all ranks in the same call. A handler notes the signal; the ranks agree on the largest
 * note of all by a small reduction of their own. Its result is used in the call in which it began, where steps are long, or `lag`
 * calls later, where waiting for others in each step would cost: which of the two is decided by the longest step of any rank, which
 * travels with the notes, so that all ranks use it in the same call. The first two calls agree at once, as no step is known yet. A rank
 * without others stops at its own note.
 *
 *   call        1      ...     17      ...     33          short steps: lag 16
 *   begin       a               b               c
 *   end                         a               b          a signal before call 17 is known in call 33
 *
 * See checkpoint.h. */
#include "array/checkpoint/checkpoint.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/fatal_signals.h"
#include "core/option.h"
#include "device/platform.h"
#include "device/queue.h"
#include "run/execute.h"
#include <signal.h>
#include <string.h>
#include <time.h>

enum { LONG_STEP_NS = 5000000, MOST_LAG = 16, LISTENED = 6 };

static const struct {
    const char *name;
    int number;
} signals[LISTENED] = {{"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
                       {"INT", SIGINT},   {"HUP", SIGHUP},   {"QUIT", SIGQUIT}};

static volatile sig_atomic_t noted; /* the signal that has come; 0: none */

static struct {
    bool listening, began, decided, pending;
    unsigned installed; /* bit k: signals[k] */
    struct sigaction before[LISTENED];
    int64_t call, due;            /* number of this call; of the call that ends the agreement in flight */
    int64_t lag;                  /* calls; agreed */
    int64_t began_at, began_call; /* ns, when the last agreement began, and in which call */
    uint64_t *moment;             /* owned; of each local device, when it began */
} stop;

/* -- signals ------------------------------------------------------------------------------------------------------------- */

static void note_signal(int number)
{
    noted = number;
}

/* Which of them a text like "TERM, USR1" names; -1: another word. */
static int parse_signals(const char *text)
{
    static const char blanks[] = " ,\t";
    int mask = 0;
    for (const char *at = text + strspn(text, blanks); *at; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);
        const char *word = strncmp(at, "SIG", 3) == 0 ? at + 3 : at;
        size_t length = n - (size_t)(word - at);
        int found = -1;
        for (int k = 0; k < LISTENED; k++)
            if (strlen(signals[k].name) == length && memcmp(word, signals[k].name, length) == 0)
                found = k;
        if (found < 0)
            return -1;
        mask |= 1 << found;
        at += n;
    }
    return mask;
}

static bool ends_program(const struct sigaction *action)
{
    return oly_fatal_signals_is(action) || (!(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL);
}

/* What oly_stop_end has left to an earlier session. */
static void forget_kept(void)
{
    struct sigaction now;
    for (int k = 0; k < LISTENED; k++)
        if (sigaction(signals[k].number, NULL, &now) == 0 && now.sa_handler == note_signal)
            signal(signals[k].number, SIG_DFL);
    noted = 0;
}

static void listen_to(int mask)
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int k = 0; k < LISTENED; k++)
        if (mask & 1 << k && sigaction(signals[k].number, &action, &stop.before[k]) == 0)
            stop.installed |= 1u << k;
    stop.listening = true;
}

oly_status oly_stop_begin(void)
{
    const char *text = oly_option.stop_signals;
    int mask = strcmp(text, "none") == 0 ? 0 : parse_signals(text);
    if (mask < 0)
        return oly_fail(OLY_INVALID,
                        "OLYMPUS_STOP_SIGNALS=%s: give names among TERM, USR1, USR2, INT, HUP and QUIT, separated by "
                        "commas, or none",
                        text);
    forget_kept();
    if (text[0])
        listen_to(mask);
    return OLY_OK;
}

/* A program that has been told to stop is not to die of the next such signal on its last steps: launchers send a second one, and Open MPI's
 * ends the other ranks by SIGTERM as soon as one has left with a status, as that of a program to be queued again. So where a signal would
 * end the program, it stays noted. */
void oly_stop_end(void)
{
    for (int k = 0; k < LISTENED; k++) {
        struct sigaction now;
        bool ours =
            stop.installed & 1u << k && sigaction(signals[k].number, NULL, &now) == 0 && now.sa_handler == note_signal;
        if (ours && !(stop.decided &&
                      ends_program(&stop.before[k]))) /* not if the program has taken the signal over meanwhile */
            sigaction(signals[k].number, &stop.before[k], NULL);
    }
    oly_release(stop.moment);
    memset(&stop, 0, sizeof stop);
    noted = 0;
}

/* -- agreeing ------------------------------------------------------------------------------------------------------------ */

static int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The work that was queued when the last agreement began is complete before the next one: programs queue steps far faster than devices
 * compute them, and what is queued cannot be stopped. */
static void keep_pace(void)
{
    for (int d = 0; d < oly_mesh_local_devices(); d++) {
        if (stop.began_call > 0)
            oly_queue_wait(d, stop.moment[d]);
        stop.moment[d] = oly_queue_now(d);
    }
}

/* While an agreement of short steps is in flight and steps have become long: waits for this rank's own work of the call before, as the
 * program may have queued dozens of them. */
static void keep_up(void)
{
    if (stop.pending && clock_now() - stop.began_at > 4 * LONG_STEP_NS)
        keep_pace();
}

static oly_status begin_agreement(void)
{
    keep_pace();
    int64_t now = clock_now(), calls = stop.call - stop.began_call;
    int64_t step = stop.began_call > 0 ? (now - stop.began_at) / calls : 0;
    OLY_TRY(oly_numbers_begin((int64_t[OLY_AGREED_NUMBERS]){noted, step}));
    stop.began_at = now;
    stop.began_call = stop.call;
    stop.due = stop.call + stop.lag;
    stop.pending = true;
    return OLY_OK;
}

static oly_status end_agreement(void)
{
    int64_t all[OLY_AGREED_NUMBERS];
    if (!oly_numbers_are_here())
        oly_queue_drain(); /* the waits of two threads must not mix */
    OLY_TRY(oly_numbers_end(all));
    stop.pending = false;
    stop.decided = all[0] != 0;
    stop.lag = all[1] >= LONG_STEP_NS || all[1] == 0 ? 0
               : all[1] * MOST_LAG < LONG_STEP_NS    ? MOST_LAG
                                                     : LONG_STEP_NS / all[1];
    return OLY_OK;
}

/* All ranks, in the first call. */
static oly_status begin(void)
{
    if (!stop.listening)
        listen_to(parse_signals("TERM, USR1"));
    OLY_TRY(oly_checkpoint_meet("oly_should_stop"));
    if (!stop.moment)
        stop.moment = oly_calloc((size_t)oly_mesh_local_devices() + 1, sizeof *stop.moment);
    oly_status st = stop.moment ? OLY_OK : oly_out_of_memory(sizeof *stop.moment, "oly_should_stop");
    OLY_TRY(oly_world_vote(st, "oly_should_stop"));
    OLY_TRY(oly_side_open("oly_should_stop"));
    stop.began = true;
    return OLY_OK;
}

static oly_status should_stop(void)
{
    if (oly_trace_current())
        return oly_fail(OLY_TRACE, "a function is being recorded; ask between calls of it");
    if (!oly_platform_get()->computes)
        return OLY_OK;
    OLY_TRY(oly_run_refused());
    if (!stop.began)
        OLY_TRY(begin());
    stop.call++;
    keep_up();
    if (stop.pending && (stop.call >= stop.due || (noted && !oly_world_has_peers())))
        OLY_TRY(end_agreement());
    if (noted && !oly_world_has_peers())
        stop.decided = true;
    if (!stop.pending && !stop.decided) {
        OLY_TRY(begin_agreement());
        if (stop.lag == 0)
            OLY_TRY(end_agreement());
    }
    return OLY_OK;
}

bool(oly_should_stop)(void)
{
    OLY_ENTER(true);
    if (stop.decided)
        return true;
    return oly_raise(should_stop()) != OLY_OK || stop.decided;
}
