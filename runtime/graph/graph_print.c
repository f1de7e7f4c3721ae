/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs as text, for people and for tests that compare plans. Of the parameters those that are set are shown, whatever
 * the operation. */
#include "graph/graph.h"
#include <inttypes.h>
#include <string.h>

static void add_axes(oly_text *t, const oly_params *p)
{
    oly_text_add(t, " (");
    for (int k = 0; k < p->n_axes; k++)
        oly_text_add(t, "%s%d", k ? "," : "", p->axes[k]);
    oly_text_add(t, ")");
}

/* "[1:7, 0:9:2]" */
static void add_part(oly_text *t, const oly_params *p)
{
    oly_text_add(t, " [");
    for (int d = 0; d < p->rank; d++) {
        int64_t last = p->shape[d] > 0 ? p->start[d] + (p->shape[d] - 1) * p->step[d] + 1 : p->start[d];
        oly_text_add(t, "%s%" PRId64 ":%" PRId64, d ? ", " : "", p->start[d], last);
        if (p->step[d] != 1)
            oly_text_add(t, ":%" PRId64, p->step[d]);
    }
    oly_text_add(t, "]");
}

static bool has_part(const oly_params *p)
{
    for (int d = 0; d < p->rank; d++)
        if (p->step[d] != 0)
            return true;
    return false;
}

static void add_params(oly_text *t, const oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_op_row *row = &oly_ops[node->op];
    if (row->lowering == OLY_LOWER_TILE && row->detail == OLY_TILE_splat) {
        if (oly_dtype_kind(p->dtype) >= OLY_KIND_FLOAT)
            oly_text_add(t, " %.17g", p->value.f);
        else
            oly_text_add(t, " %" PRId64, p->value.i);
    }
    if (p->n_axes > 0)
        add_axes(t, p);
    if (has_part(p))
        add_part(t, p);
    if (p->dimension > 0 || row->lowering == OLY_LOWER_RESULT || row->n_operands < 0)
        if (!p->body)
            oly_text_add(t, " dimension %d", p->dimension);
    if (p->sharding) {
        oly_text_add(t, " ");
        oly_spec_text(t, p->sharding->mesh, &p->sharding->spec, p->sharding->written_dims);
    }
    if (p->body)
        oly_text_add(t, " %" PRId64 "..%" PRId64 " carries %d", p->lower, p->upper, p->n_carry);
}

static void add_graph(oly_text *t, const oly_graph *g, int indent);

static void add_node(oly_text *t, const oly_node *node, int indent)
{
    const char *file = node->site.file ? node->site.file : "";
    const char *slash = strrchr(file, '/');
    oly_text_repeat(t, " ", indent);
    oly_text_add(t, "%%%d = %s", node->index, oly_ops[node->op].name);
    for (int k = 0; k < node->n_in; k++)
        oly_text_add(t, " %%%d", node->in[k]->index);
    add_params(t, node);
    oly_graph *const *graphs;
    int n_graphs = oly_node_graphs(node, &graphs);
    if (n_graphs == 0) {
        oly_text_add(t, " : ");
        oly_type_text(t, &node->type);
    }
    if (*file)
        oly_text_add(t, "   %s:%d", slash ? slash + 1 : file, node->site.line);
    oly_text_add(t, "\n");
    for (int k = 0; k < n_graphs; k++)
        add_graph(t, graphs[k], indent + 4);
}

static void add_graph(oly_text *t, const oly_graph *g, int indent)
{
    for (int k = 0; k < g->n_nodes; k++)
        add_node(t, g->nodes[k], indent);
    oly_text_repeat(t, " ", indent);
    oly_text_add(t, "return");
    for (int k = 0; k < g->n_outputs; k++)
        oly_text_add(t, " %%%d", g->outputs[k]->index);
    oly_text_add(t, "\n");
}

void oly_graph_text(oly_text *t, const oly_graph *g)
{
    add_graph(t, g, 0);
}
