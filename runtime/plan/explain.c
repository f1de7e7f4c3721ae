/* Plans as text for people: values with types and shardings, steps in order, collectives with bytes and members. */
#include "plan/planner.h"
#include <string.h>

static void type_text(oly_text *t, const oly_plan_value *v)
{
    oly_type_text(t, &v->type);
    if (v->sharding->mesh->everywhere) {
        oly_text_add(t, "  on each process");
        return;
    }
    oly_text_add(t, "  ");
    oly_spec_text(t, v->sharding->mesh, &v->sharding->spec, 0);
}

static void bytes_text(oly_text *t, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    oly_text_add(t, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static const char *file_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

static void site_text(oly_text *t, const oly_node *n)
{
    if (n && n->site.file && n->site.line)
        oly_text_add(t, "   %s:%d", file_of(n->site.file), n->site.line);
}

static bool communicates(const oly_step *s)
{
    return s->bytes > 0 && s->messages > 0;
}

static void block_text(oly_text *t, const oly_block *b, int depth);

static void step_text(oly_text *t, const oly_step *s, int depth)
{
    oly_text_add(t, "%*s%-3d %s", 2 * depth, "", s->number, s->what);
    if (s->detail)
        oly_text_add(t, ": %s", s->detail);
    if (s->node && s->node->type.dtype < OLY_N_DTYPES && s->kind != OLY_STEP_LOOP && s->kind != OLY_STEP_STENCIL) {
        oly_text_add(t, " -> ");
        oly_type_text(t, &s->node->type);
    }
    if (communicates(s)) {
        oly_text_add(t, "   [");
        bytes_text(t, s->bytes);
        oly_text_add(t, " to a device in %d message%s, %d members]", s->messages, s->messages == 1 ? "" : "s",
                     s->members);
    }
    site_text(t, s->node);
    oly_text_add(t, "\n");
    if (s->kind == OLY_STEP_LOOP) {
        if (s->loop.predicate < 0)
            oly_text_add(t, "%*s%lld times:\n", 2 * depth + 4, "", (long long)s->loop.count);
        else
            oly_text_add(t, "%*swhile its condition holds:\n", 2 * depth + 4, "");
        block_text(t, s->loop.body, depth + 3);
    }
    for (int k = 0; s->kind == OLY_STEP_BRANCH && k < s->branch.n; k++) {
        oly_text_add(t, "%*sbranch %d:\n", 2 * depth + 4, "", k);
        block_text(t, s->branch.blocks[k], depth + 3);
    }
}

static void block_text(oly_text *t, const oly_block *b, int depth)
{
    for (int k = 0; k < b->n_steps; k++)
        step_text(t, &b->steps[k], depth);
}

static void count(const oly_block *b, int64_t times, oly_plan_costs *costs, int64_t *bytes)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        int64_t repeat = times;
        costs->steps++;
        if (s->kind == OLY_STEP_LOOP)
            count(s->loop.body, times * (s->loop.predicate < 0 ? s->loop.count : 1), costs, bytes);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            count(s->branch.blocks[j], times, costs, bytes);
        if (s->kind == OLY_STEP_STENCIL)
            repeat = times * ((s->stencil.count + s->stencil.pass - 1) / s->stencil.pass);
        if (communicates(s)) {
            costs->collectives += repeat;
            costs->wire_bytes += repeat * s->wire;
            *bytes += repeat * s->bytes;
        }
    }
}

void oly_plan_count(const oly_plan *plan, oly_plan_costs *costs)
{
    int64_t bytes = 0;
    *costs = (oly_plan_costs){.scratch_bytes = (int64_t)plan->scratch_bytes};
    count(plan->main, 1, costs, &bytes);
}

void oly_plan_text(oly_text *t, const oly_plan *plan)
{
    char mesh[512];
    oly_plan_costs costs = {0};
    int64_t bytes = 0;
    oly_mesh_str(plan->mesh, mesh, sizeof mesh);
    oly_text_add(t, "plan %s on %s, %d device%s\n", plan->graph->name, plan->mesh->n_axes ? mesh : "one device",
                 plan->mesh->n_devices, plan->mesh->n_devices == 1 ? "" : "s");
    for (int k = 0; k < plan->n_inputs; k++) {
        oly_text_add(t, "  input %d   ", k);
        type_text(t, &plan->inputs[k]);
        oly_text_add(t, "\n");
    }
    block_text(t, plan->main, 1);
    for (int k = 0; k < plan->n_outputs; k++) {
        oly_text_add(t, "  output %d  ", k);
        type_text(t, &plan->outputs[k]);
        oly_text_add(t, "\n");
    }
    count(plan->main, 1, &costs, &bytes);
    oly_text_add(t, "  in all: %lld collective%s, ", (long long)costs.collectives, costs.collectives == 1 ? "" : "s");
    bytes_text(t, bytes);
    oly_text_add(t, " received by a device; scratch memory ");
    bytes_text(t, (int64_t)plan->scratch_bytes);
    oly_text_add(t, " a device\n");
}
