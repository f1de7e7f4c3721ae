/* SPDX-License-Identifier: BSD-3-Clause */
/* Detection of diverged ranks, whatever each of them waits for: notices, separate from all other messages, with the calls that
 * a rank has made, or with the verdict. For the files of collectives/ only.
 *
 *   a message with another ticket     both sides send each other their calls; the one that finds the first difference notifies all
 *   a wait that takes a while         the rank sends its calls to those it waits for, which compare them with theirs, at once or when
 *                                     they have made as many
 *   a meeting that does not balance   every rank sends its calls to the first member of each set
 *
 * A rank that knows the verdict forwards it once and fails with it wherever it waits: it sends no more data. */
#ifndef OLY_COLLECTIVES_DIVERGENCE_H
#define OLY_COLLECTIVES_DIVERGENCE_H
#include "process_set.h"
#include <stdatomic.h>

/* Whether there are calls of others to compare with. */
extern atomic_int oly_divergence_claims;
static inline bool oly_divergence_any(void)
{
    return atomic_load_explicit(&oly_divergence_claims, memory_order_relaxed) > 0;
}
/* Compares the calls that others have sent with those of this set. fails OLY_DIVERGED. */
oly_status oly_divergence_compare(const oly_process_set *s);
/* Receives notices; called by every wait. fails OLY_DIVERGED with the verdict, once there is one. */
oly_status oly_divergence_look(void);
/* The verdict, if there is none yet: all ranks fail with it. */
void oly_divergence_decide(oly_status status, const char *text);
/* A call has failed on this rank, perhaps on this rank alone; its message is pending. */
void oly_divergence_failed(oly_status status);
/* Whether there is a verdict. */
bool oly_divergence_known(void);
/* Sends the calls that this rank has made together with that one. */
void oly_divergence_ask(int rank);
/* Whether a wait that began at `began` (ns, 0: not known yet) should ask the ranks it waits for now. */
bool oly_divergence_is_time(int64_t began);
/* Handles a ticket of `peer` that differs from this rank's: waits for a moment for the verdict; always fails OLY_DIVERGED. */
oly_status oly_divergence_met(int peer, const oly_ticket *mine, const oly_ticket *theirs);
/* Is what `peer` introduces in its message the array that this rank has given to the call? Else fails OLY_DIVERGED, everywhere
 * (introduction.c). */
oly_status oly_introduction_met(int peer, const oly_ticket *mine, const oly_ticket *theirs);
void oly_introductions_forget(void);
/* Fails like any rank with the verdict. */
oly_status oly_divergence_fail(void);
/* Called if the hashes of all ranks do not balance: finds out why; always fails OLY_DIVERGED. */
oly_status oly_divergence_search(const char *call);
/* After a failure: waits for a moment until all ranks end, so that each reports it itself. */
void oly_divergence_await_reports(void);
int64_t oly_divergence_balance(void); /* notices sent less those received; over all ranks 0 if none is in flight */
void oly_divergence_forget(void);
#endif
