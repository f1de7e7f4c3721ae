/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a reduction over devices on this process, whatever is reduced: made once for a mesh and some of its
 * axes, and kept (reduction_pattern.c). Each reduction fills in its slots and lengths (reduction_steps.c). Private to
 * these. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_PATTERN_H
#define OLY_PLAN_REDUCE_REDUCTION_PATTERN_H
#include "plan/reduce/reduce.h"
#include "plan/reduce/reduction_steps.h"

/* Devices of this process that reduce one list of partial results. */
typedef struct oly_reduction_team {
    int n_sources, n_outs;
    const int *sources; /* device number; for other processes -1 - the number among the staged partial results */
    const int *outs;    /* devices that get the result */
    int slice, slices;  /* which slice of the elements this process reduces, of how many; 0 of 1: all */
    int first_source;   /* mesh position */
    int counts[4];
} oly_reduction_team;

/* Elements in a message: a slice of what a group reduces. */
typedef struct oly_reduction_piece {
    int group, slice;
    int at;          /* the device whose slot holds it; of received partial results their number among the staged */
    int peer_device; /* id of the device at the other end; of sent partial results -1: the peer's first of the plan */
    bool repeated;   /* the same bytes as the piece before */
} oly_reduction_piece;

typedef struct oly_reduction_message {
    int peer, n_pieces;
    const oly_reduction_piece *pieces;
} oly_reduction_message;

typedef struct oly_reduction_messages {
    int n, n_pieces;                      /* n_pieces: total */
    const oly_reduction_message *message; /* one for each peer, sorted */
} oly_reduction_messages;

typedef struct oly_reduction_part {
    oly_reduction_stage stage;
    bool sliced;                     /* each process reduces a slice and sends it to the others */
    int members;                     /* partial results that are combined */
    int n_groups, n_sources, n_outs; /* n_sources, n_outs: totals over groups */
    const oly_reduction_team *groups;
    int n_staged;
    const int *staged;                  /* [n_staged] the group for which each is received */
    oly_reduction_messages partials[2]; /* received, sent */
    oly_reduction_messages results[2];  /* the same for reduced slices */
} oly_reduction_part;

typedef struct oly_reduction_pattern {
    int n_stages;
    const oly_reduction_part *stages; /* in order */
} oly_reduction_pattern;

/* large: use slices where all members of a group reduce the same list. Lives at least as long as the plan. */
oly_status oly_reduction_pattern_of(oly_planner *p, const oly_axis_list *axes, const oly_reduction_rule *rule,
                                    bool large, const oly_reduction_pattern **pattern);
/* The bounds of a slice of [first, last). */
void oly_reduction_slice(int64_t first, int64_t last, int slice, int slices, int64_t *begin, int64_t *end);
/* The processes of a list of sources, in order of first occurrence. */
int oly_reduction_processes(oly_mesh mesh, const int *sources, int n, int *processes);
#endif
