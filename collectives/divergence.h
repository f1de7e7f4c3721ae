/* Ranks whose programs have come apart tell each other so, whatever each of them waits for: notices, beside all other messages, with
 * the calls a rank has made, or with the verdict. Shared by the files of collectives/; nobody else includes this.
 *
 *   a message with another ticket     both sides send each other their calls; who finds the first that differs tells all others
 *   a wait that takes a while         the rank sends its calls to those it waits for, who compare them with theirs, at once or when
 *                                     they have come that far
 *   a meeting that does not balance   every rank sends its calls to the first member of each set
 *
 * Whoever knows the verdict sends it on once and fails with it wherever it waits: no data goes out any more. */
#ifndef OLY_COLLECTIVES_DIVERGENCE_H
#define OLY_COLLECTIVES_DIVERGENCE_H
#include "process_set.h"
#include <stdatomic.h>

/* Are there calls of others to compare with? */
extern atomic_int oly_divergence_claims;
static inline bool oly_divergence_any(void)
{
    return atomic_load_explicit(&oly_divergence_claims, memory_order_relaxed) > 0;
}
/* Compares what others have said with the calls of this set. fails OLY_DIVERGED. */
oly_status oly_divergence_compare(const oly_process_set *s);
/* Receives notices; for every wait. fails OLY_DIVERGED with the verdict, once there is one. */
oly_status oly_divergence_look(void);
/* The verdict, if there is none yet: all ranks fail with it. */
void oly_divergence_decide(oly_status status, const char *text);
/* A call has failed on this rank, with the pending message: maybe on this one alone. */
void oly_divergence_failed(oly_status status);
/* Is there a verdict? */
bool oly_divergence_known(void);
/* Sends what this rank has called together with that one. */
void oly_divergence_ask(int rank);
/* A wait goes on since `began` (ns, 0: unknown yet): has it come to the next moment at which those waited for should be asked? */
bool oly_divergence_is_time(int64_t began);
/* A ticket of `peer` that is not this rank's. Waits for a moment for the verdict; always fails OLY_DIVERGED. */
oly_status oly_divergence_met(int peer, const oly_ticket *mine, const oly_ticket *theirs);
/* The hashes of all ranks do not balance. Finds out why; always fails OLY_DIVERGED. */
oly_status oly_divergence_search(const char *call);
/* After a failure: waits for a moment until all ranks have come to their end, so that each reports it itself. */
void oly_divergence_await_reports(void);
int64_t oly_divergence_balance(void); /* notices sent less those received; over all ranks 0 when none is on its way */
void oly_divergence_forget(void);
#endif
