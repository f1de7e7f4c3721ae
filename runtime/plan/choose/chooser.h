/* What the choice by price is made of: units (nodes or groups that are laid out together), what they read, and the price of a
 * decision. Private to choose.c and its choose_*.c. */
#ifndef OLY_PLAN_CHOOSE_CHOOSER_H
#define OLY_PLAN_CHOOSE_CHOOSER_H
#include "graph/contract.h"
#include "plan/cost/cost.h"
#include "plan/model/planner.h"
#include <limits.h>

enum {
    OLY_CHOOSE_SHARED = 4, /* readers among which prices are shared, at least */
    OLY_CHOOSE_AXES = 8,
    OLY_CHOOSE_UNITS = 8192,  /* of a graph; of larger ones nothing is chosen */
    OLY_CHOOSE_THOROUGH = 24, /* of a graph; up to there all passes are tried */
    OLY_CHOOSE_QUICK = 256,   /* of a graph; larger ones are searched once, by a narrower beam */
    OLY_CHOOSE_WINDOW = 64,   /* units whose decisions are open at a time */
    OLY_CHOOSE_BROUGHT = 256,
    OLY_CHOOSE_WANTS = 4,
    OLY_CHOOSE_PAST = 8, /* units that a sum is put off past */
    OLY_CHOOSE_SAMPLE = 64,
    OLY_CHOOSE_CANDIDATES = 32
};

/* How the dimensions of a value are cut over the axes of the mesh: for each axis a byte, dimension + 1 and, in the low half, its
 * place among the axes of that dimension; 0: cuts nothing. */
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
/* The axes of b behind those of a, as far as a does not use them. */
oly_cuts oly_cuts_merged(oly_mesh mesh, oly_cuts a, oly_cuts b);
/* Without the axes that `used` cuts with, and those behind them. */
oly_cuts oly_cuts_without(oly_mesh mesh, oly_cuts c, oly_cuts used);

typedef enum { OLY_UNIT_GROUP, OLY_UNIT_CONTRACT, OLY_UNIT_REDUCE, OLY_UNIT_LOOKUP } oly_unit_kind;

/* How a unit is worked: cuts of the loop over the result, of the contracting pairs (or, of a reduction, of the operand's reduced
 * dimensions; of a lookup, of those that elements are looked up in), what the sum is scattered to, and where the result lies in the end. */
typedef struct oly_decision {
    oly_cuts work, summed, wanted, lies;
} oly_decision;

/* Decisions for the units from the first on, those of the last few in a ring: those before them are the same whatever else is
 * decided. */
typedef struct oly_decided {
    const oly_decision *settled, *recent;
    int begin; /* of the ring */
} oly_decided;

static inline const oly_decision *oly_decided_at(const oly_decided *d, int unit)
{
    return unit < d->begin ? &d->settled[unit] : &d->recent[unit % OLY_CHOOSE_WINDOW];
}

/* All of them, one after the other. */
static inline oly_decided oly_decided_all(const oly_decision *d)
{
    return (oly_decided){d, NULL, INT_MAX};
}

struct oly_chooser;

typedef struct oly_unit_read {
    int source;                /* the unit that makes it; -1: it lies where it lies */
    oly_cuts fixed;            /* there */
    bool anywhere;             /* a constant, which is never moved */
    const oly_node *root;      /* the value in memory behind views */
    struct oly_chooser *owner; /* of the graph that root is in: this one, or one around it */
    int entry;                 /* index of root, or of the input by which it comes in */
    int unit, previous;        /* who reads; the read before that comes in by the same entry, -1: none */
    int8_t to[OLY_MAX_RANK];   /* of each dimension as the unit sees it, that of the root; -1: none */
    int8_t from[OLY_MAX_RANK]; /* the other way */
    /* Of a product's operand: of each dimension of the result, and of each contracting pair, that of the root; -1: none. Of an
     * operand of a lookup the same; pairs are its dimensions that elements are looked up in. */
    int8_t free[OLY_MAX_RANK], pair[OLY_MAX_RANK];
    int operand;
    int rolled;    /* dimension of root along which elements are read so far on, from the end going on at the start */
    int64_t shift; /* 0: none is */
} oly_unit_read;

/* A layout that a value will be wanted in, whatever is chosen. */
typedef struct oly_unit_want {
    const oly_node *node;
    oly_cuts cuts;
} oly_unit_want;

typedef struct oly_unit {
    oly_unit_kind kind;
    oly_node *node;   /* the group's last */
    oly_group *group; /* NULL: the node alone */
    bool trusted;     /* all it reads lies as the model says */
    bool pinned;      /* its result must lie where it would without a choice */
    oly_decision greedy;
    int n_reads, first_read, n_demands, n_wants;
    oly_unit_want demand[OLY_CHOOSE_WANTS];
    oly_cuts wants[OLY_CHOOSE_WANTS]; /* what those who read it would read without a choice */
    const oly_contraction_dims *dims; /* of products, and of convolutions: one over the features */
    const oly_contraction *product;
    double waiting; /* of the bytes of its sum over devices, should that be put off: see choose_wait.c */
    int n_past, past[OLY_CHOOSE_PAST];
    int allowed, least; /* devices that divide its work where bytes decide: see choose_ceiling.c */
    double work;        /* seconds, undivided */
    double bytes;       /* of an element */
} oly_unit;

/* What a value of a graph around is read like by a body. */
typedef struct oly_outer_need {
    struct oly_chooser *owner;
    const oly_node *root;
    bool known; /* else it is read in a way the model does not know */
    oly_cuts cuts;
} oly_outer_need;

typedef struct oly_cost_sum {
    double seconds, wire; /* wire: bytes that all devices receive */
    double excess;        /* of the seconds, those of work beyond the ceiling */
    double collectives;
    double sums;      /* of these those that may yet become one with others */
    double movements; /* collectives that bring what is read */
} oly_cost_sum;

static inline void oly_bill_add(oly_cost_sum *to, const oly_cost_sum *more)
{
    to->seconds += more->seconds;
    to->wire += more->wire;
    to->excess += more->excess;
    to->collectives += more->collectives;
    to->sums += more->sums;
    to->movements += more->movements;
}

/* Of what is worked so often. */
static inline void oly_bill_repeat(oly_cost_sum *bill, const oly_cost_sum *times)
{
    bill->seconds *= times->seconds;
    bill->excess *= times->seconds;
    bill->wire *= times->wire;
    bill->collectives *= times->wire;
    bill->sums *= times->wire;
    bill->movements *= times->wire;
}

/* One graph's choices: the function's, or those of a loop's body or a branch. */
typedef struct oly_chooser {
    struct oly_chooser *outer, *first_child,
        *next; /* of the graph around; of those inside nodes; that of the same graph around */
    /* How often it is worked when the graph around is worked once; by which its seconds and its bytes are multiplied. */
    oly_cost_sum times;
    oly_cuts *carries;    /* [n_carry] of a loop: where they lie at the start and the end of an iteration */
    oly_cuts *propagated; /* [n_carry] the same as propagation has it */
    int n_needs, need_capacity, n_fixed_needs; /* fixed: whatever is decided */
    oly_outer_need *needs;
    bool as_propagated; /* what propagation proposes is what it would do, no carry lies elsewhere */
    bool too_large;     /* nothing is chosen */
    bool has_rolls;     /* here or inside: some values are looked through (cyclic_shift.c) */
    bool fresh;         /* the units are found, for the carries as they are */
    bool scattering;    /* sums may also be scattered where nobody has said to want them so */
    bool too_dear;      /* what the last pass has found with the fewest bytes goes beyond the ceiling */
    /* Products may be worked over axes that cut neither operand so: pairs over idle ones, the result over those of pairs; there is
     * one to try. */
    bool recutting, could_recut;
    bool turning;                /* groups may be worked cut along other dimensions than their operands */
    bool sharing;                /* prices share what is brought among all that might read it: see oly_unit_price */
    bool without_outer;          /* prices are without what comes from graphs around */
    bool without_rolls;          /* and without what rolls bring of neighbours */
    const oly_decision *whole;   /* while prices are of these decisions */
    const oly_decision *decided; /* in the end; NULL: as propagated */
    oly_planner *p;
    oly_frame *f;
    oly_mesh mesh;
    int n_units, n_reads, read_capacity;
    bool *split;          /* [n_groups] whose nodes are units of their own; NULL: none */
    oly_unit *units;      /* in the order of lowering */
    oly_unit_read *reads; /* of unit u: from first_read */
    int *last_read;       /* [n_nodes] of what comes in there, so far; -1: none */
    int *n_readers;       /* [n_nodes] how many reads */
    int *unit_of;         /* [n_nodes] -1: none */
    bool *elsewhere;      /* [n_nodes] read in ways the model does not know: there may be copies */
    int n_brought;        /* values that no unit makes are wanted like this, whatever is chosen */
    int brought_capacity;
    oly_unit_want *brought;
    oly_level level[OLY_CHOOSE_AXES];
    int n_sample;           /* positions looked at: all of a small mesh, of a large one some here and there */
    double scale;           /* positions each stands for */
    const int *coordinates; /* [n_sample][OLY_CHOOSE_AXES] */
    oly_arena *arena;
    struct {
        const oly_node *node;
        oly_cuts from, to;
        int64_t way; /* which roll; 0: none */
        double elements;
    } memory[256];
} oly_chooser;

/* choose_trace.c */
/* Follows views, and captures into graphs around, to the value in memory: root, owner, entry and dimensions of r. False: some view
 * shows only a part, or is pinned. */
bool oly_trace_read(oly_chooser *c, const oly_node *n, oly_unit_read *r);
/* Does a reshape only add or drop dimensions of one element? Then it lies as its operand does; from[d]: dimension there, or -1. */
bool oly_is_thin(const oly_node *n, int8_t *from);
/* Where a value lies that has been traced, without choices; false: nobody knows. */
bool oly_lies_now(const oly_chooser *c, const oly_node *n, oly_cuts *cuts);
/* Does the value look at its operand? Which dimension is which: from[d]. And does that show all elements, saying nothing of its own
 * about where it lies? */
bool oly_looks_through(const oly_node *n, int8_t *from);
bool oly_is_clear(const oly_node *n);
/* Where a value lies that no unit makes; false: nobody knows. */
bool oly_lies_fixed(const oly_chooser *c, const oly_node *n, oly_cuts *cuts);

/* choose_units.c: what can be chosen; the reads' layouts and greedy decisions are filled in order. */
oly_status oly_find_units(oly_chooser *c);
/* A unit in the making, and one operand more of it. False: it is read in a way the model does not know. */
oly_unit *oly_new_unit(oly_chooser *c, oly_unit_kind kind, oly_node *n);
bool oly_add_unit_read(oly_chooser *c, oly_unit *u, const oly_node *in, int operand);
/* Where what is read lies without choices. */
oly_cuts oly_greedy_lies(const oly_chooser *c, const oly_unit_read *r);
/* What a reduction does with an operand placed like this. */
void oly_reduction_cuts(const oly_chooser *c, const oly_unit *u, oly_cuts operand, oly_decision *d);
/* Notes what a body reads of values around under these decisions. */
void oly_note_needs(oly_chooser *c, const oly_decision *decided);
/* The loop's or branch's result number k in the graph around; NULL: nobody wants it. */
const oly_node *oly_result_node(const oly_frame *f, const oly_node *n, int k);

/* choose_window.c: convolutions as products over the features of operand and kernel. */
bool oly_is_convolution(const oly_node *n);
/* Sets dims and product, greedy decision and work of a unit whose operands lie so without choices. */
oly_status oly_convolution_unit(oly_chooser *c, oly_unit *u, const oly_cuts *lies);
/* What devices get of their neighbours' places where places are cut. */
void oly_add_margins(oly_chooser *c, const oly_unit *u, const oly_decision *d, oly_cost_sum *bill);
/* The layout of a value that is cut so. */
oly_layout oly_cuts_layout(const oly_chooser *c, const oly_type *type, oly_cuts cuts);
oly_cuts oly_layout_cuts(const oly_layout *l);

/* choose_lookup.c: operations that look elements up, take slices that begin anywhere, or write such. */
bool oly_is_lookup(const oly_chooser *c, const oly_node *n);
/* Adds the unit, unless its operands are read in ways the model does not know. */
oly_status oly_add_lookup(oly_chooser *c, oly_node *n);
/* How the dimensions that elements are looked up in are cut, where the array lies so; and the cuts of the result that go with those
 * of an operand. */
oly_cuts oly_lookup_summed(const oly_chooser *c, const oly_unit *u, oly_cuts lies);
oly_cuts oly_lookup_seen(const oly_chooser *c, const oly_unit_read *r, oly_cuts lies);

/* choose_candidates.c */
typedef struct oly_candidates {
    int n;
    oly_decision d[OLY_CHOOSE_CANDIDATES];
    int n_tried;
    oly_cuts tried[OLY_CHOOSE_CANDIDATES][2]; /* of products: what is summed, and how the loop is cut */
} oly_candidates;

bool oly_same_decision(const oly_decision *a, const oly_decision *b);
/* With `greedy`, what propagation has comes first. */
void oly_find_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, bool greedy,
                         oly_candidates *list);

/* choose_search.c */
/* Finds the units and looks for decisions that are cheaper than those of propagation; *best is NULL where there are none. The bills
 * are of this graph alone, without what is brought for bodies inside it. */
oly_status oly_search(oly_chooser *c, oly_decision **best, oly_cost_sum *greedy, oly_cost_sum *chosen);
oly_cost_sum oly_bill_of(oly_chooser *c, const oly_decision *decided);

/* choose_ceiling.c */
typedef enum oly_objective {
    OLY_LEAST_BYTES = 1, /* then time; the work of a device has a ceiling */
    OLY_LEAST_TIME,      /* with no more bytes than propagation's */
    OLY_LEAST_TIME_ONLY  /* where levels are seen: a byte is not what another one is */
} oly_objective;
oly_objective oly_choose_objective(void);
/* Is the first better than the second by what is looked for? */
bool oly_is_cheaper(oly_objective objective, const oly_cost_sum *a, const oly_cost_sum *b);
/* May it be taken instead of the second, which is that of propagation, and is it clearly better; by more where bytes are estimated
 * from some of the devices. */
bool oly_may_take(const oly_cost_sum *chosen, const oly_cost_sum *greedy);
bool oly_is_better(const oly_chooser *c, const oly_cost_sum *chosen, const oly_cost_sum *greedy);
/* Sets the ceilings of all units. */
oly_status oly_note_ceilings(oly_chooser *c);
/* How many devices divide the work of a decision. */
int oly_decision_parts(oly_mesh mesh, const oly_decision *d);

/* choose_loop.c */
/* Looks for other layouts of a loop's carries, with which it is cheaper. */
oly_status oly_choose_carries(oly_chooser *c, bool *changed);

/* choose_wait.c */
oly_status oly_note_waits(oly_chooser *c);
/* May the sum be put off, as it is without choices? */
bool oly_may_wait(const oly_chooser *c, const oly_unit *u, const oly_decision *d);

/* choose_price.c */
void oly_chooser_sample(oly_chooser *c, int *coordinates);
/* Elements that all devices receive when a value goes from one layout to another. */
double oly_elements_moved(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to);
/* Adds what that costs. */
void oly_add_movement(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to, oly_cost_sum *bill);
/* Bytes that all devices receive from others along the axes `over`, so many times one after the other. */
void oly_add_transfer(const oly_chooser *c, double bytes, oly_cuts over, int times, oly_cost_sum *bill);
/* Sets where the result of a decision lies: scattered as wanted, where the plan can do that. */
void oly_settle_sum(oly_chooser *c, const oly_unit *u, oly_decision *d);
/* Where a read's value lies, under the decisions so far; and where it must for the decision `d` of its reader. */
oly_cuts oly_read_lies(const oly_unit_read *r, const oly_decided *decided);
oly_cuts oly_read_needs(const oly_chooser *c, const oly_unit *u, const oly_unit_read *r, const oly_decision *d);
/* A unit's share under decision d, those of the units before being in `decided`. With `sharing` what is brought for one of several
 * readers costs each its part of that, as if all would read it so: how a search sees the worth of what only pays in the end. */
oly_cost_sum oly_unit_price(oly_chooser *c, int unit, const oly_decided *decided, const oly_decision *d);
/* What is brought of values that no unit makes. */
oly_cost_sum oly_brought_price(oly_chooser *c);
#endif
