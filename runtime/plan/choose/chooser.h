/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of the choice by cost: units (nodes or groups with one layout), their reads, and the cost of a decision.
 * Private to choose.c and choose_*.c. */
#ifndef OLY_PLAN_CHOOSE_CHOOSER_H
#define OLY_PLAN_CHOOSE_CHOOSER_H
#include "graph/contract.h"
#include "plan/cost/cost.h"
#include "plan/model/planner.h"
#include <limits.h>

enum {
    OLY_CHOOSE_SHARED = 4, /* fewest readers among which the cost of a movement is shared */
    OLY_CHOOSE_AXES = 8,
    OLY_CHOOSE_UNITS = 8192,  /* of a graph; in larger ones nothing is chosen */
    OLY_CHOOSE_THOROUGH = 24, /* of a graph; up to here all passes run */
    OLY_CHOOSE_QUICK = 256,   /* of a graph; larger ones are searched once, by a narrower beam */
    OLY_CHOOSE_WINDOW = 64,   /* units whose decisions are open at a time */
    OLY_CHOOSE_BROUGHT = 256,
    OLY_CHOOSE_WANTS = 4,
    OLY_CHOOSE_PAST = 8, /* units that a deferred reduction passes */
    OLY_CHOOSE_SAMPLE = 64,
    OLY_CHOOSE_CANDIDATES = 32
};

/* How the dimensions of a value are split over the axes of the mesh: one byte per axis, dimension + 1 in the high half,
 * and in the low half the position among the axes of that dimension; 0: the axis splits nothing. */
typedef uint64_t oly_cuts;

static inline int oly_cuts_byte(oly_cuts c, int axis)
{
    return (int)(c >> (8 * axis) & 0xff);
}
oly_cuts oly_cuts_of(const oly_axis_list *axes, int rank);
void oly_cuts_axes(oly_mesh mesh, oly_cuts c, oly_axis_list *axes, int rank);
int oly_cuts_parts(oly_mesh mesh, oly_cuts c);
/* Dimension d becomes to[d]; -1: its axes are dropped. */
oly_cuts oly_cuts_mapped(oly_mesh mesh, oly_cuts c, const int8_t *to);
/* Appends the axes of b to those of a, as far as a does not use them. */
oly_cuts oly_cuts_merged(oly_mesh mesh, oly_cuts a, oly_cuts b);
/* Without the axes that `used` has, and those after them in the same dimension. */
oly_cuts oly_cuts_without(oly_mesh mesh, oly_cuts c, oly_cuts used);

typedef enum { OLY_UNIT_GROUP, OLY_UNIT_CONTRACT, OLY_UNIT_REDUCE, OLY_UNIT_LOOKUP } oly_unit_kind;

/* How a unit is computed: the split of the loop over the result, of the contracting pairs (of a reduction: the reduced
 * dimensions of the operand; of a lookup: the dimensions that are indexed), the layout that the sum is reduce-scattered
 * to, and where the result is placed. */
typedef struct oly_decision {
    oly_cuts work, summed, wanted, placed;
} oly_decision;

/* The decisions for all units so far. The last few are in a ring; those before it are settled, the same in every state
 * of the search. */
typedef struct oly_decided {
    const oly_decision *settled, *recent;
    int begin; /* first unit of the ring */
} oly_decided;

static inline const oly_decision *oly_decided_at(const oly_decided *d, int unit)
{
    return unit < d->begin ? &d->settled[unit] : &d->recent[unit % OLY_CHOOSE_WINDOW];
}

/* All decisions in one array. */
static inline oly_decided oly_decided_all(const oly_decision *d)
{
    return (oly_decided){d, NULL, INT_MAX};
}

struct oly_chooser;

typedef struct oly_unit_read {
    int source;                /* the unit that computes it; -1: none, its placement is fixed */
    oly_cuts fixed;            /* that placement */
    bool anywhere;             /* a constant, which is never moved */
    const oly_node *root;      /* the stored value behind views */
    struct oly_chooser *owner; /* of the graph that root is in: this one, or one around it */
    int entry;                 /* index of root, or of the input through which it is captured */
    int unit, previous;        /* the reader; the previous read of the same entry, -1: none */
    int8_t to[OLY_MAX_RANK];   /* for each dimension as the unit sees it, that of the root; -1: none */
    int8_t from[OLY_MAX_RANK]; /* the inverse */
    /* For an operand of a product: for each dimension of the result, and for each contracting pair, that of the root;
     * -1: none. The same for an operand of a lookup, where the pairs are its indexed dimensions. */
    int8_t free[OLY_MAX_RANK], pair[OLY_MAX_RANK];
    int operand;
    int rolled;    /* dimension of root along which the read is cyclically shifted */
    int64_t shift; /* by so many elements; 0: not shifted */
} oly_unit_read;

/* A layout that a value will be needed in, whatever is chosen. */
typedef struct oly_unit_want {
    const oly_node *node;
    oly_cuts cuts;
} oly_unit_want;

typedef struct oly_unit {
    oly_unit_kind kind;
    oly_node *node;   /* the last one of the group */
    oly_group *group; /* NULL: the node alone */
    bool trusted;     /* all its operands are where the model assumes */
    bool pinned;      /* its result must stay where propagation placed it */
    oly_decision greedy;
    int n_reads, first_read, n_demands, n_wants;
    oly_unit_want demand[OLY_CHOOSE_WANTS];
    oly_cuts wants[OLY_CHOOSE_WANTS]; /* what its readers would read without a choice */
    const oly_contraction_dims *dims; /* of products, and of convolutions as products over the features */
    const oly_contraction *product;
    /* fraction of the bytes of its sum that remains if the reduction is deferred: see choose_deferred.c */
    double deferred;
    int n_past, past[OLY_CHOOSE_PAST];
    int allowed, least; /* devices that must divide its work if bytes decide: see choose_ceiling.c */
    double work;        /* seconds, undivided */
    double bytes;       /* per element */
} oly_unit;

/* How a body reads a value of a graph around it. */
typedef struct oly_outer_need {
    struct oly_chooser *owner;
    const oly_node *root;
    bool known; /* false: read in a way that the model does not describe */
    oly_cuts cuts;
} oly_outer_need;

typedef struct oly_cost_sum {
    double seconds, wire; /* wire: bytes that all devices receive */
    double excess;        /* part of the seconds: work beyond the ceiling */
    double collectives;
    double sums;      /* those of the collectives that may be merged with others */
    double movements; /* collectives that move what is read */
} oly_cost_sum;

static inline void oly_cost_add(oly_cost_sum *to, const oly_cost_sum *more)
{
    to->seconds += more->seconds;
    to->wire += more->wire;
    to->excess += more->excess;
    to->collectives += more->collectives;
    to->sums += more->sums;
    to->movements += more->movements;
}

/* Multiplies the cost of a body by the number of times it runs. */
static inline void oly_cost_repeat(oly_cost_sum *cost, const oly_cost_sum *times)
{
    cost->seconds *= times->seconds;
    cost->excess *= times->seconds;
    cost->wire *= times->wire;
    cost->collectives *= times->wire;
    cost->sums *= times->wire;
    cost->movements *= times->wire;
}

/* The choices of one graph: the function, or the body of a loop or branch. */
typedef struct oly_chooser {
    struct oly_chooser *outer, *first_child,
        *next; /* the graph around; the bodies inside; the next body of the same graph */
    /* How often it runs each time the graph around it does: factors for its seconds and its bytes. */
    oly_cost_sum times;
    oly_cuts *carries;    /* [n_carry] of a loop: layouts at the start and the end of an iteration */
    oly_cuts *propagated; /* [n_carry] the same after propagation */
    int n_needs, need_capacity, n_fixed_needs; /* fixed: independent of the decisions */
    oly_outer_need *needs;
    bool as_propagated; /* no carry is placed elsewhere than propagation placed it */
    bool too_large;     /* nothing is chosen */
    bool has_rolls;     /* here or inside: some cyclic shifts are read through (cyclic_shift.c) */
    bool fresh;         /* the units match the current carries */
    bool scattering;    /* sums may also be reduce-scattered where no reader wants them so */
    bool too_dear;      /* the solution of the last pass with the fewest bytes exceeds the ceiling */
    /* Products may be split over axes that split neither operand so: pairs over idle axes, or the result over the axes
     * of pairs. could_recut: there is such a product. */
    bool recutting, could_recut;
    bool turning;                /* groups may be split along other dimensions than their operands */
    bool sharing;                /* the cost of a movement is shared by all possible readers: see oly_unit_cost */
    bool without_outer;          /* costs exclude what is moved from graphs around */
    bool without_rolls;          /* costs exclude the elements that cyclic shifts read from neighbours */
    const oly_decision *whole;   /* while costs are those of these decisions */
    const oly_decision *decided; /* final; NULL: as propagated */
    oly_planner *p;
    oly_frame *f;
    oly_mesh mesh;
    int n_units, n_reads, read_capacity;
    bool *split;          /* [n_groups] groups whose nodes are separate units; NULL: none */
    oly_unit *units;      /* in the order of lowering */
    oly_unit_read *reads; /* unit u: from first_read */
    int *last_read;       /* [n_nodes] latest read of that entry; -1: none */
    int *n_readers;       /* [n_nodes] number of reads */
    int *unit_of;         /* [n_nodes] -1: none */
    bool *elsewhere;      /* [n_nodes] read in ways that the model does not describe: copies may exist */
    int n_brought;        /* layouts needed, whatever is chosen, of values that no unit computes */
    int brought_capacity;
    oly_unit_want *brought;
    oly_level level[OLY_CHOOSE_AXES];
    int n_sample;           /* positions examined: all of a small mesh, a sample of a large one */
    double scale;           /* positions that each of them stands for */
    const int *coordinates; /* [n_sample][OLY_CHOOSE_AXES] */
    oly_arena *arena;
    struct {
        const oly_node *node;
        oly_cuts from, to;
        int64_t way; /* which cyclic shift; 0: none */
        double elements;
    } memory[256];
} oly_chooser;

/* choose_trace.c */
/* Follows views, and captures into the graphs around, to the stored value: sets root, owner, entry and the dimensions
 * of r. False: some view shows only a part, or is pinned. */
bool oly_trace_read(oly_chooser *c, const oly_node *n, oly_unit_read *r);
/* Where a traced value is placed without choices; false: unknown. */
bool oly_placed_now(const oly_chooser *c, const oly_node *n, oly_cuts *cuts);
/* oly_looks_through: is the value a view of its operand? from[d]: the corresponding dimension. oly_is_clear: does it
 * show all elements, without a placement of its own? */
bool oly_looks_through(const oly_node *n, int8_t *from);
bool oly_is_clear(const oly_node *n);
/* Where a value that no unit computes is placed; false: unknown. */
bool oly_placed_fixed(const oly_chooser *c, const oly_node *n, oly_cuts *cuts);

/* choose_units.c: finds what can be chosen. The layouts of reads and the decisions of propagation are filled in
 * order. */
oly_status oly_find_units(oly_chooser *c);
/* A new unit; and one more operand of it. False: it is read in a way that the model does not describe. */
oly_unit *oly_new_unit(oly_chooser *c, oly_unit_kind kind, oly_node *n);
bool oly_add_unit_read(oly_chooser *c, oly_unit *u, const oly_node *in, int operand);
/* Where a read value is placed without choices. */
oly_cuts oly_greedy_placement(const oly_chooser *c, const oly_unit_read *r);
/* What a reduction does with an operand placed like this. */
void oly_reduction_cuts(const oly_chooser *c, const oly_unit *u, oly_cuts operand, oly_decision *d);
/* Notes what a body reads of the graphs around it under these decisions. */
void oly_note_needs(oly_chooser *c, const oly_decision *decided);
/* The node of result k of a loop or branch in the graph around; NULL: unused. */
const oly_node *oly_result_node(const oly_frame *f, const oly_node *n, int k);

/* choose_window.c: convolutions as products over the features of operand and kernel. */
bool oly_is_convolution(const oly_node *n);
/* Sets dims, product, decision of propagation and work of a unit whose operands are placed like this without
 * choices. */
oly_status oly_convolution_unit(oly_chooser *c, oly_unit *u, const oly_cuts *placed);
/* Adds what devices receive of their neighbours' positions where positions are split. */
void oly_add_margins(oly_chooser *c, const oly_unit *u, const oly_decision *d, oly_cost_sum *cost);
/* The layout of a value that is split like this, and the inverse. */
oly_layout oly_cuts_layout(const oly_chooser *c, const oly_type *type, oly_cuts cuts);
oly_cuts oly_layout_cuts(const oly_layout *l);

/* choose_lookup.c: operations that read or write at computed indexes, and slices at computed positions. */
bool oly_is_lookup(const oly_chooser *c, const oly_node *n);
/* Adds the unit, unless its operands are read in ways that the model does not describe. */
oly_status oly_add_lookup(oly_chooser *c, oly_node *n);
/* The split of the indexed dimensions if the array is placed like this; and the split of the result that matches that
 * of an operand. */
oly_cuts oly_lookup_summed(const oly_chooser *c, const oly_unit *u, oly_cuts placed);
oly_cuts oly_lookup_seen(const oly_chooser *c, const oly_unit_read *r, oly_cuts placed);

/* choose_candidates.c */
typedef struct oly_candidates {
    int n;
    oly_decision d[OLY_CHOOSE_CANDIDATES];
    int n_tried;
    oly_cuts tried[OLY_CHOOSE_CANDIDATES][2]; /* of products: the split of the pairs, and of the loop */
} oly_candidates;

bool oly_same_decision(const oly_decision *a, const oly_decision *b);
/* With `greedy`, the decision of propagation comes first. */
void oly_find_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, bool greedy,
                         oly_candidates *list);

/* choose_search.c */
/* Finds the units and searches for decisions that cost less than propagation's; *best is NULL if there are none. The
 * costs are of this graph alone, without movements for the bodies inside it. */
oly_status oly_search(oly_chooser *c, oly_decision **best, oly_cost_sum *greedy, oly_cost_sum *chosen);
oly_cost_sum oly_cost_of_decisions(oly_chooser *c, const oly_decision *decided);

/* choose_ceiling.c */
typedef enum oly_objective {
    OLY_LEAST_BYTES = 1, /* then time; the work of a device has a ceiling */
    OLY_LEAST_TIME,      /* with no more bytes than propagation's */
    OLY_LEAST_TIME_ONLY  /* where costs differ by level, so that bytes are not comparable */
} oly_objective;
oly_objective oly_choose_objective(void);
/* Is a better than b for this objective? */
bool oly_is_cheaper(oly_objective objective, const oly_cost_sum *a, const oly_cost_sum *b);
/* The most work beyond the ceiling, in seconds. */
double oly_most_excess(const oly_cost_sum *greedy);
/* May it replace `greedy`, the cost of propagation? And is it clearly better: by a larger margin if bytes are estimated
 * from a sample of devices. */
bool oly_may_take(const oly_cost_sum *chosen, const oly_cost_sum *greedy);
bool oly_is_better(const oly_chooser *c, const oly_cost_sum *chosen, const oly_cost_sum *greedy);
/* Sets the ceilings of all units. */
oly_status oly_note_ceilings(oly_chooser *c);
/* The number of devices that divide the work of a decision. */
int oly_decision_parts(oly_mesh mesh, const oly_decision *d);

/* choose_loop.c */
/* Searches for other layouts of a loop's carries with which it costs less. */
oly_status oly_choose_carries(oly_chooser *c, bool *changed);

/* choose_deferred.c */
oly_status oly_note_deferred(oly_chooser *c);
/* Is this the decision of propagation, under which the reduction may be deferred? */
bool oly_may_defer(const oly_chooser *c, const oly_unit *u, const oly_decision *d);

/* choose_cost.c */
void oly_chooser_sample(oly_chooser *c, int *coordinates);
/* Elements that all devices receive when a value moves from one layout to another. */
double oly_elements_moved(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to);
/* Adds the cost of that. */
void oly_add_movement(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to, oly_cost_sum *cost);
/* Adds a transfer of bytes that all devices receive along the axes `over`, `times` in sequence. */
void oly_add_transfer(const oly_chooser *c, double bytes, oly_cuts over, int times, oly_cost_sum *cost);
/* Sets where the result of a decision is placed: reduce-scattered as wanted, where the plan can do that. */
void oly_settle_sum(oly_chooser *c, const oly_unit *u, oly_decision *d);
/* Where a read value is placed under the decisions so far; and where the decision `d` of its reader needs it. */
oly_cuts oly_read_placement(const oly_unit_read *r, const oly_decided *decided);
oly_cuts oly_read_needs(const oly_chooser *c, const oly_unit *u, const oly_unit_read *r, const oly_decision *d);
/* The cost of a unit under decision d, given the decisions for the units before it. With `sharing`, each of several
 * readers pays a share of a movement, as if all read the value so: the search then sees the worth of movements that pay
 * only in the end. */
oly_cost_sum oly_unit_cost(oly_chooser *c, int unit, const oly_decided *decided, const oly_decision *d);
/* The cost of moving values that no unit computes. */
oly_cost_sum oly_brought_cost(oly_chooser *c);
#endif
