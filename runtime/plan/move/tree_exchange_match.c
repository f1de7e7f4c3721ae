/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognises the transfers that are all-gathers along lines of processes, or broadcasts, and are worth doing in
 * stages. Arithmetic only, with the same answer on every process, on meshes whose processes form a grid. Called by
 * tree_exchange.c. */
#include "plan/move/move.h"
#include "plan/cost/cost.h"
#include "plan/move/tree_exchange.h"
#include "core/optimisation.h"
#include "core/option.h"

bool oly_process_grid_of(oly_mesh mesh, oly_process_grid *g)
{
    *g = (oly_process_grid){.each = mesh->each, .n = 1};
    for (int a = 0; a < mesh->n_axes; a++) {
        if (mesh->each[a] == 0)
            return false;
        g->size[a] = mesh->size[a] / mesh->each[a];
        g->n *= g->size[a];
    }
    return !mesh->everywhere;
}

int oly_grid_number(oly_mesh mesh, const oly_process_grid *g, int process)
{
    int first, n = oly_mesh_devices_in(mesh, process, &first), position = -1, at[OLY_MAX_RANK], number = 0;
    for (int id = first; id < first + n && position < 0; id++)
        position = oly_mesh_position_of(mesh, id);
    if (position < 0)
        return -1;
    oly_mesh_coordinates(mesh, position, at);
    for (int a = 0; a < mesh->n_axes; a++)
        number = number * g->size[a] + at[a] / g->each[a];
    return number;
}

void oly_grid_corner(oly_mesh mesh, const oly_process_grid *g, int number, int *at)
{
    for (int a = mesh->n_axes - 1; a >= 0; a--) {
        at[a] = number % g->size[a] * g->each[a];
        number /= g->size[a];
    }
}

int oly_grid_process(oly_mesh mesh, const oly_process_grid *g, int number)
{
    int at[OLY_MAX_RANK];
    oly_grid_corner(mesh, g, number, at);
    return oly_mesh_process_of(oly_mesh_device_id(mesh, oly_mesh_position(mesh, at)));
}

static unsigned axes_of(const oly_axis_list *l)
{
    unsigned axes = 0;
    for (int k = 0; k < l->n; k++)
        axes |= 1u << l->axis[k];
    return axes;
}

unsigned oly_axes_from(const mover *m)
{
    unsigned axes = 0;
    for (int d = 0; d < m->from->rank; d++)
        axes |= axes_of(&m->from->split[d].axes);
    return axes;
}

unsigned oly_axes_to(const mover *m)
{
    unsigned axes = 0;
    for (int d = 0; d < m->to->rank; d++)
        axes |= axes_of(&m->to->dim[d].split.axes);
    return axes;
}

/* Removes the gathered axes from a split, of which they must be the last. False: its parts do not form whole parts
 * then. */
static bool join_parts(oly_mesh mesh, oly_split *s, unsigned dropped)
{
    int n = 0, parts = 1;
    for (int k = 0; k < s->axes.n; k++) {
        if (dropped >> s->axes.axis[k] & 1)
            continue;
        if (k > n)
            return false;
        parts *= mesh->size[s->axes.axis[n++]];
    }
    if (n < s->axes.n && parts > 1 && s->base % (s->unit * s->parts) != 0)
        return false;
    s->axes.n = (uint8_t)n;
    s->parts = parts;
    return true;
}

static bool is_last(const mover *m, int axis, unsigned gathered)
{
    for (int d = 0; d < m->from->rank; d++) {
        const oly_axis_list *l = &m->from->split[d].axes;
        int k = l->n - 1;
        while (k >= 0 && (gathered >> l->axis[k] & 1))
            k--;
        if (k >= 0 && l->axis[k] == axis)
            return true;
    }
    return false;
}

/* Orders the gathered axes: always the most minor one of those that are now the last of their dimension, as its
 * processes are the nearest. */
static void order_axes(const mover *m, unsigned dropped, oly_axis_list *order)
{
    unsigned gathered = 0;
    *order = (oly_axis_list){0};
    for (int a = m->from->mesh->n_axes - 1; a >= 0; a--)
        if ((dropped & ~gathered) >> a & 1 && is_last(m, a, gathered)) {
            order->axis[order->n++] = (uint8_t)a;
            gathered |= 1u << a;
            a = m->from->mesh->n_axes;
        }
}

int oly_stages_between(int n)
{
    int log = 0;
    while (log < 31 && 1 << log < n)
        log++;
    return log;
}

/* Are stages worth it? With few processes direct messages are better: readers can start on each as it arrives. */
static bool worth_stages(const mover *m, oly_mesh mesh, const oly_axis_list *axes, int n_processes, int n_stages)
{
    oly_box box = oly_region_box(m->to, m->shape, 0); /* the largest box, the same on every process */
    if (n_processes <= oly_option.direct_processes)
        return false;
    if (n_processes > OLY_MOST_PEERS)
        return true;
    oly_level level = oly_axes_level(mesh, axes);
    double bytes = (double)oly_box_count(&box) * (double)m->element, least = 0.1;
    double saved = oly_cost_transfer(level, 0, n_processes - 1 - n_stages);
    return saved > least * oly_cost_transfer(level, bytes, n_stages);
}

static bool is_plain(const mover *m)
{
    for (int d = 0; d < m->to->rank; d++)
        if (m->to->dim[d].wraps)
            return false;
    return !m->permutation && !m->in_place && m->wanted.n == 0 && !m->from->mesh->everywhere;
}

/* Are a process's blocks contiguous together, or small? Then copying them together before sending costs nothing. */
static bool is_together(const mover *m, int axis, int n_processes)
{
    enum { LITTLE = 1 << 18 };
    oly_box box = oly_region_box(m->to, m->shape, 0);
    if (oly_box_count(&box) * (int64_t)m->element / n_processes <= LITTLE)
        return true;
    for (int d = 0; d < box.rank; d++) {
        if (axes_of(&m->from->split[d].axes) >> axis & 1)
            return true;
        if (box.hi[d] - box.lo[d] > 1)
            return false;
    }
    return false;
}

/* All devices of a line receive what the line's devices have. At once: few processes along one axis exchange directly
 * if what each one's devices have is one box rather than one per device. */
bool oly_is_gather(const mover *m, oly_process_grid *g, oly_axis_list *order, bool *at_once)
{
    oly_mesh mesh = m->from->mesh;
    unsigned dropped = oly_axes_from(m) & ~oly_axes_to(m);
    int n_processes = 1, n_stages = 0, n_long = 0, along = -1;
    if (!oly_enabled(OLY_OPTIMISATION_STAGED_GATHER) || mesh != m->to->mesh || dropped == 0 || !is_plain(m) ||
        !oly_process_grid_of(mesh, g))
        return false;
    order_axes(m, dropped, order);
    for (int k = 0; k < order->n; k++) {
        int a = order->axis[k];
        n_processes *= g->size[a];
        n_stages += oly_stages_between(g->size[a]);
        n_long += g->size[a] > 1;
        along = g->size[a] > 1 ? a : along;
    }
    *at_once = !worth_stages(m, mesh, order, n_processes, n_stages);
    if (n_processes == 1 || (*at_once && (n_long > 1 || g->each[along] == 1 || !is_together(m, along, n_processes))))
        return false;
    oly_layout joined = *m->from;
    for (int d = 0; d < joined.rank; d++)
        if (!join_parts(mesh, &joined.split[d], dropped))
            return false;
    return oly_region_inside_layout(m->to, &joined);
}

/* Every device receives what one process has. */
bool oly_is_broadcast(const mover *m, oly_process_grid *g)
{
    static const oly_axis_list none;
    oly_mesh mesh = m->to->mesh;
    oly_axis_list all = none;
    if (oly_axes_to(m) != 0 || !is_plain(m) || m->from->mesh->process < 0 || !oly_process_grid_of(mesh, g) ||
        oly_grid_number(mesh, g, m->from->mesh->process) < 0)
        return false;
    for (int a = 0; a < mesh->n_axes; a++)
        all.axis[all.n++] = (uint8_t)a;
    return worth_stages(m, mesh, &all, g->n, oly_stages_between(g->n));
}
