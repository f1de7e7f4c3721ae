/* What the choice by price is made of: units (nodes or groups that are laid out together), what they read, and the price of a
 * decision. Private to choose.c, choose_units.c and choose_price.c. */
#ifndef OLY_PLAN_CHOOSE_H
#define OLY_PLAN_CHOOSE_H
#include "graph/contract.h"
#include "plan/cost.h"
#include "plan/planner.h"

enum {
    OLY_CHOOSE_AXES = 8,
    OLY_CHOOSE_UNITS = 96,
    OLY_CHOOSE_READS = 32,
    OLY_CHOOSE_WANTS = 4,
    OLY_CHOOSE_SAMPLE = 64
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

typedef enum { OLY_UNIT_GROUP, OLY_UNIT_CONTRACT, OLY_UNIT_REDUCE } oly_unit_kind;

/* How a unit is worked: cuts of the loop over the result, of the contracting pairs (or, of a reduction, of the operand's reduced
 * dimensions), what the sum is scattered to, and where the result lies in the end. */
typedef struct oly_decision {
    oly_cuts work, summed, wanted, lies;
} oly_decision;

typedef struct oly_unit_read {
    int source;                /* the unit that makes it; -1: it lies where it lies */
    oly_cuts fixed;            /* there */
    const oly_node *root;      /* the value in memory behind views */
    int8_t to[OLY_MAX_RANK];   /* of each dimension as the unit sees it, that of the root; -1: none */
    int8_t from[OLY_MAX_RANK]; /* the other way */
    int operand;
} oly_unit_read;

/* A layout that a value will be wanted in, whatever is chosen. */
typedef struct oly_unit_demand {
    const oly_node *node;
    oly_cuts cuts;
} oly_unit_demand;

typedef struct oly_unit {
    oly_unit_kind kind;
    oly_node *node;   /* the group's last */
    oly_group *group; /* NULL: the node alone */
    bool trusted;     /* all it reads lies as the model says */
    bool pinned;      /* its result must lie where it would without a choice */
    oly_decision greedy;
    int n_reads, first_read, n_demands, n_wants;
    oly_unit_demand demand[OLY_CHOOSE_WANTS];
    oly_cuts wants[OLY_CHOOSE_WANTS]; /* what those who read it would read without a choice */
    const oly_contraction_dims *dims;
    double work;  /* seconds, undivided */
    double bytes; /* of an element */
} oly_unit;

typedef struct oly_chooser {
    oly_planner *p;
    oly_frame *f;
    oly_mesh mesh;
    int n_units, n_reads, read_capacity;
    bool *split;          /* [n_groups] whose nodes are units of their own; NULL: none */
    oly_unit *units;      /* in the order of lowering */
    oly_unit_read *reads; /* of unit u: from first_read */
    int *unit_of;         /* [n_nodes] -1: none */
    bool *elsewhere;      /* [n_nodes] read in ways the model does not know: there may be copies */
    int n_brought;        /* values that no unit makes are wanted like this, whatever is chosen */
    oly_unit_demand brought[OLY_CHOOSE_READS];
    oly_level level[OLY_CHOOSE_AXES];
    int n_sample;     /* positions looked at: all of a small mesh, of a large one some here and there */
    double scale;     /* positions each stands for */
    int *coordinates; /* [n_sample][OLY_CHOOSE_AXES] */
    oly_arena *arena;
    struct {
        const oly_node *node;
        oly_cuts from, to;
        double elements;
    } memory[128];
} oly_chooser;

/* choose_units.c: what can be chosen; the reads' layouts and greedy decisions are filled in order. */
oly_status oly_find_units(oly_chooser *c);

/* What a reduction does with an operand that lies so. */
void oly_reduction_cuts(const oly_chooser *c, const oly_unit *u, oly_cuts operand, oly_decision *d);

/* choose_price.c */
typedef struct oly_bill {
    double seconds, wire; /* wire: bytes that all devices receive */
} oly_bill;
void oly_chooser_sample(oly_chooser *c);
/* Elements that all devices receive when a value goes from one layout to another. */
double oly_elements_moved(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to);
/* Sets where the result of a decision lies: scattered as wanted, where the plan can do that. */
void oly_settle_sum(oly_chooser *c, const oly_unit *u, oly_decision *d);
/* Where a read's value lies, under the decisions so far; and where it must for the decision `d` of its reader. */
oly_cuts oly_read_lies(const oly_unit_read *r, const oly_decision *decided);
oly_cuts oly_read_needs(const oly_chooser *c, const oly_unit *u, const oly_unit_read *r, const oly_decision *d);
/* A unit's share under decision d, those of the units before being in `decided`. */
oly_bill oly_unit_price(oly_chooser *c, int unit, const oly_decision *decided, const oly_decision *d);
#endif
