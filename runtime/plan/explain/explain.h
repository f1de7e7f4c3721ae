/* SPDX-License-Identifier: BSD-3-Clause */
/* What an explanation says of a plan: gathered once by explain.c; written as text, JSON, a graph or the difference
 * of two plans by explain_<form>.c; hints.c plans again with other layouts. Private to this room. */
#ifndef OLY_PLAN_EXPLAIN_EXPLAIN_H
#define OLY_PLAN_EXPLAIN_EXPLAIN_H
#include "plan/model/planner.h"
#include "plan/plan.h"
#include "core/text.h"
#include "core/timeline.h"

/* A value: a node of the function's graph, or of a graph inside it. */
typedef struct oly_told_value {
    oly_frame *frame;
    const oly_node *node;
    const char *name; /* "%5"; in the body of %7's loop "%7.2" */
    oly_mesh mesh;
    oly_spec spec;  /* its placement */
    bool aligned;   /* has the cuts of the array it is part of, not balanced blocks of its own */
    bool in_memory; /* has a slot; otherwise it is read through others, or exists only within a step */
    int slot;
} oly_told_value;

/* Who takes part in a collective: groups of devices whose coordinates along the axes differ. */
typedef struct oly_told_group {
    oly_mesh mesh;
    oly_axis_list axes; /* of the mesh */
    int members, groups;
} oly_told_group;

typedef struct oly_told_step {
    const oly_step *step;
    int parent; /* told step whose block contains this one; -1 */
    int branch; /* which block of the parent */
    int depth;
    int64_t times; /* in one run of the plan */
    bool communicates;
    bool on_host;    /* a device's share of it */
    int served;      /* devices that get copies of what another one computes */
    const char *way; /* by which data moves, where devices are GPUs; else NULL */
    double way_rate; /* bytes per second, as measured; 0: not measured */
    oly_told_group group;
    int n_reads, n_writes;
    const int *reads, *writes; /* slots, ascending */
    double seconds;            /* predicted, once; a loop or branch with the steps inside */
    int64_t live;              /* bytes in use on a device during the step */
} oly_told_step;

/* A change of one layout that would make the plan cheaper. */
typedef struct oly_hint {
    const char *subject; /* which input, result or constraint: each has one hint */
    const char *change;  /* "replicating input 1 (P() instead of P('x',))" */
    const bool *removes; /* [told steps] the changed plan has no such transfer */
    const char *saves;   /* "3 all-gathers of 64.0 MiB" */
    int64_t bytes, wire; /* so many fewer received by a device; by all devices of this process */
    int64_t collectives; /* so many fewer */
    int64_t memory;      /* more bytes on a device, at the peak */
    double seconds;      /* fewer, predicted */
} oly_hint;

typedef struct oly_told {
    oly_arena arena;
    const oly_plan *plan;
    bool failed;              /* out of memory: something is missing */
    const char *const *names; /* [n_inputs] as the caller wrote them, NULL entries: unknown; or NULL */
    int n_values, n_steps;
    oly_told_value *values;
    oly_told_step *steps; /* a loop or branch comes before the steps inside */
    int *owner;           /* [n_slots] told value stored there, -1 */
    bool *is_copy;        /* [n_slots] a copy, or more than each device's own part */
    int *writer;          /* [n_slots] first told step that writes it, -1 */
    /* totals */
    oly_plan_costs costs;
    int64_t bytes; /* received by a device */
    double seconds;
    /* bytes on a device */
    int64_t input_bytes, kept_bytes, scratch_bytes, peak;
    int peak_step; /* told step; -1: no steps */
    int n_hints;
    oly_hint *hints;
} oly_told;

/* Loops and branches have results instead. */
static inline bool oly_has_value(const oly_node *n)
{
    return oly_graph_results(n) < 0;
}

/* -- explain.c -- */
oly_status oly_tell(const oly_plan *plan, const char *const *names, oly_told *told);
void oly_told_free(oly_told *told);
/* What a step has taken on this process, and the whole plan: only of functions that have run while steps were timed. */
oly_measured oly_tell_measured(const oly_told *told, const oly_step *s);
oly_measured oly_tell_measured_run(const oly_told *told);
/* The told value of a node; NULL: none (a node made by the planner). */
const oly_told_value *oly_told_value_of(const oly_told *told, const oly_node *node);
/* "%5", or "" */
const char *oly_told_name(const oly_told *told, const oly_node *node);
/* "w, input 1"; without a name "input 1" */
const char *oly_told_input(oly_told *told, int k);
const char *oly_told_say(oly_told *told, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Does the step move data between devices? */
bool oly_step_communicates(const oly_step *s);
int64_t oly_step_repeats(const oly_step *s); /* exchanges in one execution: one for each later pass of a stencil */

/* -- reasons.c -- */
/* Calls tell(user, dimension, kind, text) for each dimension that is split, or that the user keeps whole; -1: the
 * value as a whole. */
typedef void oly_reason_teller(void *user, int dimension, const char *kind, const char *text);
void oly_tell_reasons(oly_told *told, const oly_told_value *v, oly_reason_teller *tell, void *user);
/* Why a step moves data: "%3 is placed as P('x',); exp (heat.c:12) needs it as P(None, 'x')". Only for steps that
 * communicate. */
const char *oly_tell_transfer(oly_told *told, const oly_told_step *s);
/* "x", "x and y", "" */
const char *oly_tell_axes(oly_told *told, oly_mesh mesh, const oly_axis_list *axes);
/* "heat.c:12"; "" if unknown */
const char *oly_tell_line(oly_told *told, const oly_node *node);

/* -- phrases for all forms (explain_text.c) -- */
void oly_bytes_text(oly_text *t, int64_t bytes);
void oly_seconds_text(oly_text *t, double seconds);
const char *oly_step_kind_name(oly_step_kind kind);
const char *oly_slot_kind_name(oly_slot_kind kind);
/* "%5", "a copy of %5", "a buffer of step 3 (what it does)", "workspace" */
const char *oly_tell_slot(oly_told *told, int slot);
/* One line without the step's number: "halo exchange: ... -> float32[102]   [8 bytes to a device ...]   heat.c:12". */
void oly_step_words(oly_text *t, oly_told *told, const oly_told_step *ts);
const char *oly_tell_spec(oly_told *told, oly_mesh mesh, const oly_spec *spec);

/* -- the forms -- */
void oly_told_text(oly_text *t, oly_told *told);
void oly_told_json(oly_text *t, oly_told *told);
void oly_told_dot(oly_text *t, oly_told *told);
void oly_told_diff(oly_text *t, oly_told *before, oly_told *after);

/* -- hints.c -- */
oly_status oly_find_hints(oly_told *told);
#endif
