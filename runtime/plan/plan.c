/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner's driver: runs the passes in order and chooses the mesh, the inputs and the outputs of a plan. See
 * plan.h. */
#include "plan/plan.h"
#include "plan/choose/choose.h"
#include "plan/lower/lower.h"
#include "plan/propagate/propagate.h"
#include "plan/rewrite/rewrite.h"
#include "plan/schedule/schedule.h"
#include "core/optimisation.h"
#include "core/hash.h"
#include <stdio.h>
#include <string.h>

/* -- mesh and devices ---------------------------------------------------------------------------------------------- */

/* "[0,1,2,3]"; for many devices "[0,1,...,9]". */
static void list_devices(oly_mesh mesh, char *text, size_t size)
{
    int n = mesh->n_devices, shown = n <= 16 ? n : 8;
    size_t at = 0;
    for (int k = 0; k < shown && at < size; k++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", k ? "," : "[", oly_mesh_device_id(mesh, k));
    if (at < size && shown < n)
        at += (size_t)snprintf(text + at, size - at, ",...,%d", oly_mesh_device_id(mesh, n - 1));
    if (at < size)
        snprintf(text + at, size - at, "]");
}

static oly_status incompatible(const oly_plan_request *r, oly_mesh a, int k, oly_mesh b, int j)
{
    char left[256], right[256], left_ids[96], right_ids[96];
    oly_sharding_str(r->inputs[k].sharding, left, sizeof left);
    oly_sharding_str(r->inputs[j].sharding, right, sizeof right);
    list_devices(a, left_ids, sizeof left_ids);
    list_devices(b, right_ids, sizeof right_ids);
    return oly_fail(
        OLY_DEVICES,
        "received incompatible devices: argument %d, %s, is committed to device%s %s as %s, argument %d, %s, to "
        "device%s %s as %s; all committed operands must be on the same devices in the same order: move one with "
        "oly_device_put",
        k, oly_type_short(&r->inputs[k].type), a->n_devices == 1 ? "" : "s", left_ids, left, j,
        oly_type_short(&r->inputs[j].type), b->n_devices == 1 ? "" : "s", right_ids, right);
}

/* Values over Explicit axes may not be combined with values on another mesh, even one over the same devices. */
static oly_status different_meshes(const oly_plan_request *r, int k, int j)
{
    char left[256], right[256];
    oly_mesh_str(r->inputs[k].sharding->mesh, left, sizeof left);
    oly_mesh_str(r->inputs[j].sharding->mesh, right, sizeof right);
    return oly_fail(
        OLY_SHARDING,
        "argument %d, %s, is on %s, argument %d, %s, on %s; arrays over explicit axes meet only arrays on the "
        "same mesh: move one with oly_device_put [mesh_conflict]",
        k, oly_type_short(&r->inputs[k].type), left, j, oly_type_short(&r->inputs[j].type), right);
}

/* Of two equal grids, the one with more Explicit axes: inside shard_map some of them are Manual. */
static oly_mesh more_explicit(oly_mesh a, oly_mesh b)
{
    bool more = a && b && __builtin_popcount(b->explicit_axes) > __builtin_popcount(a->explicit_axes);
    return !a || (more && oly_mesh_same_grid(a, b)) ? b : a;
}

/* The mesh of the shardings that the program sets inside the function; `manual`: only of those of shard_map. */
static oly_mesh placed_mesh(const oly_graph *g, bool manual)
{
    oly_mesh m = NULL;
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_params *n = &g->nodes[k]->params;
        oly_graph_ahead(g, k, 1);
        oly_graph *const *graphs;
        if (n->sharding && (n->settled || !manual))
            m = more_explicit(m, n->sharding->mesh);
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            m = more_explicit(m, placed_mesh(graphs[j], manual));
    }
    return m;
}

/* The mesh that the function is planned on: that of the committed inputs (preferably of one that is split, when they
 * have several meshes over the same devices), else that of shardings set inside, else each process's own device. */
static oly_status choose_mesh(oly_planner *p)
{
    const oly_plan_request *r = p->request;
    int first = -1;
    for (int k = 0; k < r->graph->n_inputs; k++) {
        if (!r->inputs[k].committed)
            continue;
        oly_mesh m = r->inputs[k].sharding->mesh;
        if (first < 0) {
            first = k;
            p->mesh = m;
        } else if (!oly_mesh_same_devices(p->mesh, m)) {
            return incompatible(r, r->inputs[first].sharding->mesh, first, m, k);
        } else if (p->mesh != m && ((p->mesh->explicit_axes && m->n_axes) || (m->explicit_axes && p->mesh->n_axes))) {
            return different_meshes(r, first, k);
        } else if (oly_sharding_is_replicated(r->inputs[first].sharding) &&
                   !oly_sharding_is_replicated(r->inputs[k].sharding)) {
            first = k;
            p->mesh = m;
        }
    }
    oly_mesh manual = placed_mesh(r->graph, true);
    if (manual && p->mesh && !oly_mesh_same_devices(p->mesh, manual))
        return oly_fail(
            OLY_DEVICES,
            "argument %d, %s, is committed to devices that are not those of the mesh of a shard_map inside, "
            "or in another order; move it with oly_device_put",
            first, oly_type_short(&r->inputs[first].type));
    if (manual && !(p->mesh && oly_mesh_same_grid(p->mesh, manual)))
        p->mesh = manual;
    if (!p->mesh)
        p->mesh = placed_mesh(r->graph, false);
    for (int k = 0; !p->mesh && r->outputs && k < r->graph->n_outputs; k++)
        if (r->outputs[k])
            p->mesh = r->outputs[k]->mesh;
    p->uncommitted = !p->mesh;
    if (!p->mesh)
        p->mesh = oly_mesh_uncommitted();
    return p->mesh ? OLY_OK : OLY_MEMORY;
}

/* Which processes own the devices of a plan's meshes. */
typedef struct owners {
    oly_arena *arena;
    int n_meshes;
    oly_mesh *meshes; /* capacity: the next power of two */
    bool failed;      /* out of memory */
    bool *used;       /* devices of this process */
    uint64_t key;     /* of all meshes */
    int process;      /* the owner of all devices so far; -1: none yet */
    bool several;     /* more than one process owns devices: all of them make this call */
    bool defaults;    /* each process's own first device takes part */
} owners;

static void note_mesh(oly_mesh mesh, owners *o)
{
    for (int k = 0; k < o->n_meshes; k++)
        if (o->meshes[k] == mesh)
            return;
    if ((o->n_meshes & (o->n_meshes - 1)) == 0) {
        oly_mesh *more = OLY_ARENA_NEW(o->arena, oly_mesh, o->n_meshes ? 2 * o->n_meshes : 1);
        o->failed = o->failed || !more;
        if (o->failed)
            return;
        for (int k = 0; k < o->n_meshes; k++)
            more[k] = o->meshes[k];
        o->meshes = more;
    }
    o->meshes[o->n_meshes++] = mesh;
}

static void mark_mesh(oly_mesh mesh, owners *o)
{
    const int *positions;
    int n = oly_mesh_local_positions(mesh, &positions);
    for (int k = 0; k < n; k++)
        o->used[oly_mesh_local_index(oly_mesh_device_id(mesh, positions[k]))] = true;
    o->defaults = o->defaults || mesh->everywhere;
    if (mesh->everywhere)
        return;
    note_mesh(mesh, o);
    o->key = oly_hash_mix(o->key, mesh->hash);
    o->several = o->several || mesh->process < 0 || (o->process >= 0 && mesh->process != o->process);
    o->process = mesh->process;
}

static void mark_placed(const oly_graph *g, owners *o)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        if (g->nodes[k]->params.sharding)
            mark_mesh(g->nodes[k]->params.sharding->mesh, o);
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            mark_placed(graphs[j], o);
    }
}

/* This process's devices in all meshes that the plan uses. */
static oly_status choose_devices(oly_planner *p)
{
    const oly_plan_request *r = p->request;
    oly_plan *plan = p->plan;
    int n_local = oly_mesh_local_devices();
    bool *used = OLY_PLAN_NEW(p, bool, n_local);
    OLY_PLAN_CHECK(used);
    owners o = {.arena = &plan->arena, .used = used, .key = 11, .process = -1};
    mark_mesh(p->mesh, &o);
    for (int k = 0; k < r->graph->n_inputs; k++)
        if (r->inputs[k].sharding->mesh != p->mesh) {
            mark_mesh(r->inputs[k].sharding->mesh, &o);
            plan->everybody =
                plan->everybody || (p->mesh->everywhere && oly_mesh_processes() > 1); /* each process gets a copy */
        }
    for (int k = 0; r->outputs && k < r->graph->n_outputs; k++)
        if (r->outputs[k] && r->outputs[k]->mesh != p->mesh)
            mark_mesh(r->outputs[k]->mesh, &o);
    mark_placed(r->graph, &o);
    if (o.failed)
        return oly_out_of_memory(sizeof *o.meshes * (size_t)o.n_meshes, "a plan");
    plan->members_key = o.key;
    plan->n_meshes = o.n_meshes;
    plan->meshes = o.meshes;
    plan->default_devices = o.defaults;
    plan->distributed = o.several || plan->everybody;
    int *devices = OLY_PLAN_NEW(p, int, n_local), *position = OLY_PLAN_NEW(p, int, n_local);
    OLY_PLAN_CHECK(devices);
    OLY_PLAN_CHECK(position);
    for (int d = 0; d < n_local; d++)
        if (used[d])
            devices[plan->n_devices++] = d;
    plan->devices = devices;
    plan->mesh = p->mesh;
    for (int d = 0; d < plan->n_devices; d++)
        position[d] = p->mesh->everywhere ? (devices[d] == 0 ? 0 : -1)
                                          : oly_mesh_position_of(p->mesh, oly_mesh_local_id(devices[d]));
    p->position = position;
    return OLY_OK;
}

/* -- inputs and outputs -------------------------------------------------------------------------------------------- */

static oly_status take_inputs(oly_planner *p, oly_frame *f)
{
    oly_plan *plan = p->plan;
    plan->n_inputs = f->graph->n_inputs;
    plan->inputs = OLY_PLAN_NEW(p, oly_plan_value, plan->n_inputs + 1);
    int *slot = OLY_PLAN_NEW(p, int, plan->n_inputs + 1);
    OLY_PLAN_CHECK(plan->inputs);
    OLY_PLAN_CHECK(slot);
    plan->input_slot = slot;
    for (int k = 0; k < plan->n_inputs; k++) {
        const oly_plan_value *in = &p->request->inputs[k];
        oly_value *v = oly_value_of(f, f->graph->inputs[k]);
        plan->inputs[k] = *in;
        oly_sharding s = oly_on_common_mesh(p, in->sharding);
        if (!s)
            return OLY_MEMORY;
        oly_layout l = oly_layout_canonical(s, in->type.rank, in->type.shape);
        OLY_TRY(oly_set_layout(p, v, &l));
        v->block = plan->main;
        v->closed = in->committed ? ~0u : 0;
        if (s->mesh == p->mesh)
            for (int d = 0; d < in->type.rank; d++)
                v->axes[d] = v->layout->split[d].axes;
        oly_region r = oly_region_of_layout(v->layout);
        v->slot = slot[k] = oly_slot_new(p, &r, oly_dtype_size(in->type.dtype));
        if (v->slot < 0)
            return oly_out_of_memory(0, "a plan");
        plan->slots[v->slot].kind = OLY_SLOT_INPUT;
        plan->slots[v->slot].index = k;
    }
    return OLY_OK;
}

/* A result is split over the Explicit axes that its type names; if the type names none (it was made without a mesh),
 * over none. */
static void split_by_type(oly_spec *spec, oly_mesh mesh, const oly_type *t)
{
    for (int d = 0; d < spec->n_dims && mesh->explicit_axes; d++) {
        oly_axis_list kept = t->axes[d];
        for (int k = 0; k < spec->dim[d].n; k++)
            if (!(mesh->explicit_axes >> spec->dim[d].axis[k] & 1))
                kept.axis[kept.n++] = spec->dim[d].axis[k];
        spec->dim[d] = kept;
    }
    spec->unreduced = t->unreduced;
    spec->reduced = t->reduced;
}

/* Does a region with Explicit axes end here? The operand's type has a mesh, the result's has none. */
static bool leaves_region(const oly_node *n)
{
    return n->n_in > 0 && n->in[0]->type.mesh && !n->type.mesh;
}

static bool has_region(const oly_graph *g)
{
    bool any = false;
    for (int k = 0; k < g->n_nodes && !any; k++) {
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, 1);
        any = leaves_region(g->nodes[k]);
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0 && !any; j--)
            any = has_region(graphs[j]);
    }
    return any;
}

/* Are shardings part of the types outside the function? */
static bool is_explicit_outside(const oly_planner *p, const oly_frame *f)
{
    bool typed = false;
    for (int k = 0; k < p->plan->n_inputs; k++)
        typed = typed || (p->plan->inputs[k].committed && p->plan->inputs[k].sharding->mesh->explicit_axes);
    for (int k = 0; k < f->graph->n_outputs; k++)
        typed = typed || f->graph->outputs[k]->type.mesh;
    return typed || !has_region(f->graph);
}

/* A result that leaves a region with Explicit axes gets the same grid without them, because types outside do not
 * have them. */
static oly_sharding as_typed(const oly_planner *p, const oly_frame *f, const oly_node *n, oly_sharding s)
{
    if (!s || !s->mesh->explicit_axes || (!leaves_region(n) && is_explicit_outside(p, f)))
        return s;
    oly_mesh plain = oly_mesh_retyped(s->mesh, 0, s->mesh->manual_axes);
    return plain ? oly_sharding_intern(plain, &s->spec, 0) : NULL;
}

/* A result whose type is on another mesh than the plan's (oly_reshard moved it there) is split as its type says, over that one's axes. */
static oly_sharding on_mesh_of_type(const oly_type *t)
{
    oly_spec spec = {.n_dims = t->rank, .unreduced = t->unreduced, .reduced = t->reduced};
    memcpy(spec.dim, t->axes, sizeof *spec.dim * (size_t)t->rank);
    return oly_sharding_intern(t->mesh, &spec, 0);
}

static oly_sharding output_sharding(oly_planner *p, oly_frame *f, int k)
{
    oly_node *n = f->graph->outputs[k];
    if (p->request->outputs && p->request->outputs[k])
        return p->request->outputs[k];
    if (oly_is_placed(n) && oly_settles_all(&n->params) && !n->params.sharding->spec.open)
        return p->placed ? p->placed[k] : n->params.sharding;
    for (int j = 0; oly_ops[n->op].lowering == OLY_LOWER_INPUT && j < p->plan->n_inputs; j++)
        if (f->graph->inputs[j] == n)
            return p->uncommitted ? oly_sharding_intern(p->mesh, &(oly_spec){0}, 0) : p->plan->inputs[j].sharding;
    if (n->type.mesh && !oly_mesh_same_grid(n->type.mesh, p->mesh))
        return on_mesh_of_type(&n->type);
    oly_layout l = oly_node_layout(p, f, n);
    oly_spec spec = oly_layout_spec(&l);
    split_by_type(&spec, p->mesh, &n->type);
    oly_sharding s = oly_sharding_intern(p->mesh, &spec, 0);
    return s ? as_typed(p, f, n, oly_off_common_mesh(p, s)) : NULL;
}

/* Results are committed, unless no sharding was given anywhere or they are uncommitted inputs that are returned. */
static bool is_committed(oly_planner *p, oly_frame *f, int k, oly_sharding s)
{
    bool asked = p->request->outputs && p->request->outputs[k];
    for (int j = 0; !asked && j < p->plan->n_inputs; j++)
        if (f->graph->inputs[j] == f->graph->outputs[k])
            return p->plan->inputs[j].committed;
    return !p->uncommitted && !s->mesh->everywhere;
}

static oly_status give_outputs(oly_planner *p, oly_frame *f)
{
    oly_plan *plan = p->plan;
    plan->n_outputs = f->graph->n_outputs;
    p->reader = NULL;
    plan->outputs = OLY_PLAN_NEW(p, oly_plan_value, plan->n_outputs + 1);
    int *slot = OLY_PLAN_NEW(p, int, plan->n_outputs + 1);
    OLY_PLAN_CHECK(plan->outputs);
    OLY_PLAN_CHECK(slot);
    plan->output_slot = slot;
    for (int k = 0; k < plan->n_outputs; k++) {
        oly_node *n = f->graph->outputs[k];
        oly_sharding s = output_sharding(p, f, k);
        if (!s)
            return OLY_MEMORY;
        OLY_TRY(oly_sharding_check_rank(s, n->type.rank));
        oly_sharding on_grid = oly_on_common_mesh(p, s);
        if (!on_grid)
            return OLY_MEMORY;
        oly_layout l = oly_layout_canonical(on_grid, n->type.rank, n->type.shape);
        OLY_TRY(oly_copy_value(p, f, n, &l, &slot[k]));
        if (plan->slots[slot[k]].kind == OLY_SLOT_SCRATCH)
            plan->slots[slot[k]].kind = OLY_SLOT_POOL;
        oly_slot_use(p, slot[k]);
        plan->outputs[k] = (oly_plan_value){n->type, s, is_committed(p, f, k, s)};
    }
    return OLY_OK;
}

/* -- the passes ---------------------------------------------------------------------------------------------------- */

static oly_status keep_wanted(oly_planner *p)
{
    int n = p->plan->graph->n_outputs;
    if (!p->request->outputs)
        return OLY_OK;
    oly_sharding *wanted = OLY_PLAN_NEW(p, oly_sharding, n);
    OLY_PLAN_CHECK(wanted);
    memcpy(wanted, p->request->outputs, sizeof *wanted * (size_t)n);
    p->plan->wanted = wanted;
    return OLY_OK;
}

/* Makes the frames and propagates mesh axes; once more after the graph has changed. */
static oly_status lay_out(oly_planner *p, oly_frame **made)
{
    oly_frame *f;
    p->plan->n_slots = 0;
    OLY_TRY(oly_frame_new(p, NULL, NULL, p->plan->graph, &f));
    p->plan->frame = *made = f;
    f->block = p->plan->main = oly_block_new(p);
    OLY_PLAN_CHECK(f->block);
    OLY_TRY(take_inputs(p, f));
    return oly_propagate(p, f);
}

static oly_status run_passes(oly_planner *p)
{
    enum { MOST_SWEEPS = 8 };
    oly_frame *f;
    bool changed;
    OLY_TRY(choose_mesh(p));
    OLY_TRY(oly_find_common_mesh(p));
    OLY_TRY(choose_devices(p));
    OLY_TRY(keep_wanted(p));
    OLY_TRY(lay_out(p, &f));
    OLY_TRY(oly_reduce_unravelled(p, f, &changed));
    if (changed)
        OLY_TRY(lay_out(p, &f));
    changed = true;
    for (int times = 0; times < MOST_SWEEPS && changed; times++) {
        OLY_TRY(oly_place_scanned(p, f, &changed)); /* what one sweep leaves split may be swept again */
        if (changed)
            OLY_TRY(lay_out(p, &f));
    }
    oly_squeeze_views(f);
    OLY_TRY(oly_expand_late(p, f));
    OLY_TRY(oly_choose(p, f));
    OLY_TRY(oly_lower_frame(p, f));
    OLY_TRY(give_outputs(p, f));
    f->block->end = p->next_number;
    p->plan->n_steps = p->next_number;
    OLY_TRY(oly_write_directly(p));
    OLY_TRY(oly_write_counted(p));
    OLY_TRY(oly_read_directly(p));
    OLY_TRY(oly_schedule(p));
    oly_fuse_reductions(p->plan);
    oly_fuse_products(p->plan);
    oly_chain_rows(p->plan);
    return oly_assign_memory(p);
}

static double block_work(const oly_block *b)
{
    double work = 0;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        double inside = s->work;
        if (s->kind == OLY_STEP_LOOP)
            inside = (double)s->loop.count * block_work(s->loop.body);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            inside += block_work(s->branch.blocks[j]);
        work += inside;
    }
    return work;
}

static uint64_t fingerprint(const oly_planner *p)
{
    uint64_t h = oly_hash_mix(oly_graph_hash(p->plan->graph), p->plan->members_key);
    for (int k = 0; k < p->plan->n_inputs; k++)
        h = oly_hash_mix(h, p->plan->inputs[k].sharding->hash);
    for (int k = 0; k < p->plan->n_outputs; k++)
        h = oly_hash_mix(h, p->plan->outputs[k].sharding->hash);
    return h;
}

void (*oly_plan_damage)(oly_plan *plan);

/* The passes that change the graph. */
static oly_status rewrite(oly_planner *p)
{
    oly_graph *g = p->plan->graph;
    if (oly_enabled(OLY_OPTIMISATION_COMPONENTS))
        OLY_TRY(oly_graph_separate(g));
    if (oly_enabled(OLY_OPTIMISATION_CANCEL_REARRANGEMENTS))
        OLY_TRY(oly_graph_cancel_rearrangements(g));
    if (oly_enabled(OLY_OPTIMISATION_FLIP_PROPAGATION))
        OLY_TRY(oly_graph_flip(g));
    if (oly_enabled(OLY_OPTIMISATION_COMMON_SUBEXPRESSIONS))
        OLY_TRY(oly_graph_share(g));
    if (oly_enabled(OLY_OPTIMISATION_DEMAND))
        OLY_TRY(oly_graph_narrow(g));
    if (oly_enabled(OLY_OPTIMISATION_LOOP_ROWS))
        OLY_TRY(oly_graph_settle_counters(g));
    if (oly_enabled(OLY_OPTIMISATION_REMATERIALISATION))
        OLY_TRY(oly_graph_rematerialise(g));
    if (oly_enabled(OLY_OPTIMISATION_HOISTING))
        OLY_TRY(oly_hoist(g));
    if (oly_enabled(OLY_OPTIMISATION_LOOP_FISSION))
        OLY_TRY(oly_split_loops(p));
    return oly_enabled(OLY_OPTIMISATION_FIELD_REGIONS) ? oly_make_field_regions(p) : OLY_OK;
}

oly_status oly_plan_make(const oly_plan_request *request, oly_plan **out)
{
    oly_plan *plan = oly_calloc(1, sizeof *plan);
    if (!plan) {
        oly_graph_free(request->graph);
        return oly_out_of_memory(sizeof *plan, "a plan");
    }
    oly_planner p = {.plan = plan, .request = request};
    plan->graph = request->graph;
    oly_graph_bypass(plan->graph);
    oly_graph_prune(plan->graph);
    oly_status st = rewrite(&p);
    if (st == OLY_OK)
        st = run_passes(&p);
    if (st != OLY_OK) {
        oly_plan_free(plan);
        return st;
    }
    if (oly_plan_damage)
        oly_plan_damage(plan);
    plan->fingerprint = fingerprint(&p);
    plan->small = oly_enabled(OLY_OPTIMISATION_INLINE_RUNS) && block_work(plan->main) < 30000;
    *out = plan;
    return OLY_OK;
}

static void free_exchanges(oly_block *b)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        oly_exchange_free(s->exchange);
        oly_exchange_free(s->second);
        for (int j = 0; s->kind == OLY_STEP_REDUCTION && s->reduction.levels && j < s->reduction.levels->n_listed;
             j++) {
            oly_exchange_free(s->reduction.levels->level[j].exchange);
            oly_exchange_free(s->reduction.levels->level[j].second);
        }
        if (s->kind == OLY_STEP_LOOP)
            free_exchanges(s->loop.body);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            free_exchanges(s->branch.blocks[j]);
        if (s->kind == OLY_STEP_STENCIL) {
            free_exchanges(s->stencil.margins[0]);
            free_exchanges(s->stencil.margins[1]);
        }
    }
}

void oly_plan_free(oly_plan *plan)
{
    if (!plan)
        return;
    free_exchanges(plan->main);
    oly_graph_free(plan->graph);
    oly_arena_free(&plan->arena);
    oly_release(plan);
}

bool oly_plan_may_take(const oly_plan *plan, int input, int output)
{
    return oly_output_may_take(plan, input, output);
}

void oly_plan_forget(void)
{
    oly_reduction_forget();
}
