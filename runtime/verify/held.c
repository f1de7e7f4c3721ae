/* SPDX-License-Identifier: BSD-3-Clause */
/* Values without handles. See held.h. */
#include "verify/held.h"
#include "core/optimisation.h"
#include <string.h>

oly_held *oly_held_new(const oly_plan_value *is, int n_shards)
{
    size_t bytes = sizeof(oly_held) + sizeof(oly_buffer *) * (size_t)n_shards;
    oly_held *x = oly_calloc(1, bytes);
    if (!x) {
        oly_out_of_memory(bytes, "a value that is verified");
        return NULL;
    }
    x->references = 1;
    x->is = *is;
    x->n_shards = n_shards;
    return x;
}

oly_held *oly_held_share(oly_held *x)
{
    x->references++;
    return x;
}

oly_status oly_held_map(oly_held *x)
{
    if (x->host || x->n_shards == 0)
        return OLY_OK;
    x->host = oly_calloc((size_t)x->n_shards, sizeof *x->host);
    if (!x->host)
        return oly_out_of_memory(sizeof *x->host * (size_t)x->n_shards, "a value that is verified");
    for (int s = 0; s < x->n_shards; s++)
        OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, x->shard[s]->capacity, &x->host[s]));
    return OLY_OK;
}

static void unmap(oly_held *x)
{
    for (int s = 0; s < x->n_shards; s++)
        if (x->host[s])
            oly_buffer_unmap(x->shard[s], OLY_ACCESS_READ, x->shard[s]->capacity, x->host[s]);
    oly_release(x->host);
}

void oly_held_drop(oly_held *x)
{
    if (!x || --x->references > 0)
        return;
    if (x->host)
        unmap(x);
    for (int s = 0; s < x->n_shards; s++)
        oly_buffer_drop(x->shard[s]);
    oly_release(x);
}

oly_held *oly_held_as_reordered(oly_held *x)
{
    oly_held *y = x->reordered ? oly_held_share(x) : oly_held_new(&x->is, x->n_shards);
    for (int s = 0; y && y != x && s < x->n_shards; s++) {
        oly_buffer_hold(x->shard[s]);
        y->shard[s] = x->shard[s];
    }
    if (y)
        y->reordered = true;
    oly_held_drop(x);
    return y;
}

static oly_status take_shard(oly_buffer *from, bool copied, int device, oly_buffer **shard)
{
    if (!copied) {
        oly_buffer_hold(from);
        *shard = from;
        return OLY_OK;
    }
    if (!(*shard = oly_buffer_take(device, from->bytes)))
        return oly_buffer_fail(from->bytes, "a copy of an operand, to verify a call");
    return oly_buffer_copy(*shard, from, from->bytes);
}

oly_status oly_held_take(const oly_plan_value *is, oly_buffer *const *shards, bool copied, oly_held **made)
{
    const int *positions;
    int n = oly_mesh_local_positions(is->sharding->mesh, &positions);
    oly_held *x = oly_held_new(is, n);
    oly_status st = x ? OLY_OK : OLY_MEMORY;
    for (int s = 0; s < n && st == OLY_OK; s++)
        st = take_shard(shards[s], copied, oly_mesh_local_device(is->sharding->mesh, s), &x->shard[s]);
    if (st != OLY_OK)
        oly_held_drop(x);
    *made = st == OLY_OK ? x : NULL;
    return st;
}

oly_status oly_held_number(int32_t number, oly_held **made)
{
    oly_plan_value is = {.type = {.dtype = OLY_INT32}, .sharding = oly_sharding_uncommitted()};
    const int *positions;
    if (!is.sharding)
        return OLY_MEMORY;
    int n = oly_mesh_local_positions(is.sharding->mesh, &positions);
    oly_held *x = oly_held_new(&is, n);
    if (!x)
        return OLY_MEMORY;
    for (int s = 0; s < n; s++) {
        if (!(x->shard[s] = oly_buffer_take(oly_mesh_local_device(is.sharding->mesh, s), sizeof number))) {
            oly_held_drop(x);
            return oly_buffer_fail(sizeof number, "a counter");
        }
        oly_status st = oly_buffer_write(x->shard[s], sizeof number, &number);
        if (st != OLY_OK) {
            oly_held_drop(x);
            return st;
        }
    }
    *made = x;
    return OLY_OK;
}

bool oly_held_scalar(const oly_held *x, size_t bytes, void *value)
{
    oly_queue_drain();
    if (x->n_shards == 0)
        return false;
    oly_status st = oly_buffer_read(x->shard[0], bytes, value);
    if (st != OLY_OK)
        oly_run_fail(st);
    return st == OLY_OK;
}

static oly_status run(oly_program *p, oly_held *const *in, oly_held **out, void **room)
{
    const oly_plan *plan = oly_program_plan(p);
    oly_buffer *const **inputs = (oly_buffer *const **)room;
    oly_buffer ***outputs = (oly_buffer ***)(room + plan->n_inputs);
    int device;
    uint64_t moment;
    for (int k = 0; k < plan->n_inputs; k++)
        inputs[k] = in[k]->shard;
    for (int k = 0; k < plan->n_outputs; k++) {
        if (!(out[k] = oly_held_new(&plan->outputs[k], oly_program_output_shards(p, k))))
            return OLY_MEMORY;
        outputs[k] = out[k]->shard;
    }
    oly_identity made;
    return oly_program_run(p, inputs, NULL, NULL, outputs, oly_current_site(), &device, &moment, &made);
}

oly_status oly_held_run(oly_program *p, oly_held *const *in, oly_held **out)
{
    const oly_plan *plan = oly_program_plan(p);
    size_t n = (size_t)plan->n_inputs + (size_t)plan->n_outputs + 1;
    void **room = oly_calloc(n, sizeof *room);
    for (int k = 0; k < plan->n_outputs; k++)
        out[k] = NULL;
    oly_status st = room ? run(p, in, out, room) : oly_out_of_memory(n * sizeof *room, "a run");
    for (int k = 0; k < plan->n_outputs && st != OLY_OK; k++) {
        oly_held_drop(out[k]);
        out[k] = NULL;
    }
    oly_release(room);
    return st;
}

oly_status oly_held_plan(oly_graph *g, oly_held *const *in, const oly_sharding *outputs, oly_program **program)
{
    oly_plan *plan;
    oly_plan_value *values = oly_calloc((size_t)g->n_inputs + 1, sizeof *values);
    if (!values) {
        oly_graph_free(g);
        return oly_out_of_memory(sizeof *values, "a plan");
    }
    for (int k = 0; k < g->n_inputs; k++)
        values[k] = in[k]->is;
    oly_optimisations before = oly_disable(OLY_ALL_OPTIMISATIONS);
    oly_status st = oly_plan_make(&(oly_plan_request){g, values, outputs}, &plan);
    oly_disable(before);
    oly_release(values);
    return st == OLY_OK ? oly_program_new(plan, program) : st;
}

oly_status oly_reduced_sharding(const oly_type *t, oly_sharding *wanted)
{
    oly_type done = *t;
    *wanted = NULL;
    if (!t->unreduced)
        return OLY_OK;
    done.unreduced = 0;
    *wanted = oly_type_sharding(&done);
    return *wanted ? OLY_OK : OLY_MEMORY;
}

oly_status oly_held_move(oly_held *x, oly_sharding to, oly_held **moved)
{
    oly_program *p;
    oly_node *node;
    if (x->is.sharding == to) {
        *moved = oly_held_share(x);
        return OLY_OK;
    }
    oly_graph *g = oly_graph_new("a value that is compared");
    if (!g)
        return OLY_MEMORY;
    oly_type type = x->is.type;
    oly_type_set_sharding(&type, x->is.sharding);
    oly_status st = oly_graph_input(g, &type, &node);
    if (st == OLY_OK)
        st = oly_graph_output(g, node);
    if (st != OLY_OK) {
        oly_graph_free(g);
        return st;
    }
    OLY_TRY(oly_held_plan(g, &x, &to, &p));
    st = oly_held_run(p, &x, moved);
    oly_program_free(p);
    if (st == OLY_OK && *moved)
        (*moved)->reordered = x->reordered;
    return st;
}
