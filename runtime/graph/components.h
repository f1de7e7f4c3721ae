/* SPDX-License-Identifier: BSD-3-Clause */
/* Components: the parts of a concatenation along its dimension, which need not be put together if what reads the whole reads part by part
 * (components.c, component_carries.c). The parts are named by the concatenation, `whole`. Inside graph/ only. */
#ifndef OLY_GRAPH_COMPONENTS_H
#define OLY_GRAPH_COMPONENTS_H
#include "graph/graph.h"

enum { OLY_MOST_COMPONENTS = 32 };

/* A slice whose placement the planner decides? */
bool oly_is_plain_slice(const oly_node *n);
/* Is it a concatenation that may stay undone? Its parts are few elements wide or alike: what is cut off at one end is no component. Nor are
 * the parts of one array that is shifted. */
bool oly_has_components(const oly_node *n);
/* Where part k begins; k may be the number of parts. */
int64_t oly_component_begin(const oly_node *whole, int k);
/* The part in which all elements of a slice are. -1: it reads from several; -2: all of the dimension, or nothing. */
int oly_component_read(const oly_node *slice, const oly_node *whole);
/* Has every part one element along the dimension, which the parts then do without? */
bool oly_components_are_thin(const oly_node *whole);
/* The type without dimension d, of one element. */
oly_type oly_type_without(oly_type type, int d);

/* Nodes: a part of x; *x without dimension d, of one element, and with it. What is reshaped back becomes what it was. */
oly_status oly_component_slice(oly_graph *g, oly_node *x, int d, int64_t begin, int64_t length, oly_site site,
                               oly_node **made);
oly_status oly_component_thin(oly_graph *g, oly_node **x, int d, oly_site site);
oly_status oly_component_thicken(oly_graph *g, oly_node **x, int d, oly_site site);

/* Makes several of each carry of the loop, a node of g, whose body, already separated, reads it part by part. Leaves g to be sorted. */
oly_status oly_separate_carries(oly_graph *g, oly_node *loop, bool *any);
#endif
