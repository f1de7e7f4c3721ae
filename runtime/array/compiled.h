/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled calls: a program, its captures, and the cache that finds it by signature. Private to runtime/array. */
#ifndef OLY_ARRAY_COMPILED_H
#define OLY_ARRAY_COMPILED_H
#include "array/trace.h"
#include "run/execute.h"
#include "verify/verify.h"

typedef struct oly_compiled {
    struct oly_compiled *next;
    uint64_t hash;
    size_t key_bytes;
    char *key;                      /* owned */
    oly_program *program;           /* owned */
    oly_verification *verification; /* of the first run; owned; NULL: none */
    int n_captures;
    bool leaves_out; /* some process has no part in it: results have origins */
    /* All in the allocation that this struct begins: */
    oly_array *captured;        /* [n_captures] held; inputs after the call's own */
    oly_sharding *shown;        /* [outputs] */
    oly_buffer *const **inputs; /* [inputs], **outputs[]: of the run being submitted */
    oly_buffer ***outputs;
    oly_identity *known; /* [inputs] */
} oly_compiled;

typedef struct oly_compiled_cache {
    int count, buckets;
    oly_compiled **bucket;
    oly_compiled *latest; /* tried first, without hashing: most calls repeat the last one */
} oly_compiled_cache;

/* A signature under construction; small ones are on the stack. Always ends with oly_key_end. */
typedef struct oly_key {
    size_t bytes, room;
    bool overflow; /* out of memory: matches nothing */
    char *data, few[2048];
} oly_key;
void oly_key_begin(oly_key *k); /* begins with the modes that types depend on */
void oly_key_add(oly_key *k, const void *data, size_t bytes);
void oly_key_add_array(oly_key *k, oly_array x);
void oly_key_end(oly_key *k);

/* Around everything that finds, plans and runs: plans and their caches are used by one thread at a time. Nested calls
 * of the same thread pass. Fails (OLY_STATE) while another thread is inside; two that enter at the same instant may
 * both pass. End only after OLY_OK. */
typedef struct oly_turn {
    bool outermost;
} oly_turn;
oly_status oly_turn_begin(oly_turn *turn);
void oly_turn_end(const oly_turn *turn);

oly_compiled *oly_cache_find(oly_compiled_cache *c, const oly_key *k);
/* Adds it (taken over). A cache beyond its limit is emptied first. */
oly_status oly_cache_add(oly_compiled_cache *c, const oly_key *k, oly_compiled *compiled);
void oly_cache_free(oly_compiled_cache *c);
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
