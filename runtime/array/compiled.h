/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled calls: a program and its captures. plan_cache.h finds them by signature. Private to runtime/array. */
#ifndef OLY_ARRAY_COMPILED_H
#define OLY_ARRAY_COMPILED_H
#include "array/number_operands.h"
#include "array/plan_cache.h"
#include "array/trace.h"
#include "run/execute.h"
#include "verify/verify.h"

struct oly_compiled {
    oly_cached cached;
    uint64_t fixed;                 /* operands (bits) whose numbers belong to the signature, too */
    oly_program *program;           /* owned; NULL: only `fixed` is known */
    oly_verification *verification; /* of the first run; owned; NULL: none */
    int n_captures;
    bool leaves_out; /* some process has no part in it: results have origins */
    /* All in the allocation that this struct begins: */
    oly_array *captured;        /* [n_captures] held; inputs after the call's own */
    oly_sharding *shown;        /* [outputs] */
    oly_buffer *const **inputs; /* [inputs], **outputs[]: of the run being submitted */
    oly_buffer ***outputs;
    oly_identity *known; /* [inputs] */
    int n_numbers;
    oly_number_operand *numbers; /* inputs after the arrays of the call */
};

/* Around everything that finds, plans and runs: plans and their caches are used by one thread at a time. Nested calls
 * of the same thread pass. Fails (OLY_STATE) while another thread is inside; two that enter at the same instant may
 * both pass. End only after OLY_OK. */
typedef struct oly_turn {
    bool outermost;
} oly_turn;
oly_status oly_turn_begin(oly_turn *turn);
void oly_turn_end(const oly_turn *turn);

void oly_compiled_free(oly_compiled *c);

/* Plans a finished trace: graph (taken over) and first its input arrays; captures are moved out of the trace. */
oly_status oly_compile(oly_trace *t, int n_in, const oly_array *in, const oly_sharding *outputs,
                       oly_compiled **compiled);
/* Runs it and makes handles for the results. donated[k]: the input that output k replaces, -1; or NULL. */
oly_status oly_compiled_run(oly_compiled *c, int n_in, const oly_array *in, const int *donated, int n_out,
                            oly_array *out);
/* A call on these arrays has failed, perhaps before it ran. If this process is out of memory, the others that have
 * parts of the arrays, and so make the same call, are told. Returns the status. */
oly_status oly_call_failed(oly_status status, int n, const oly_array *arrays);
#endif
