/* All-gathers and broadcasts between many processes, in stages: with n processes in a line, every one has after stage k what 2^k of
 * them had, so that ceil(log2 n) messages do what would be n - 1.
 *
 *   all-gather of six, from process 0's point of view    broadcast from process 0 of six
 *     has 0              from 1: 1                          0 -> 1
 *     has 0 1            from 2: 2 3                        0 -> 2, 1 -> 3
 *     has 0 1 2 3        from 4: 4 5                        0 -> 4, 1 -> 5
 *
 * Nobody receives anything twice: as many bytes travel as otherwise. A process first copies its own devices' blocks to those of its
 * devices that want them; what then comes from others goes right to its place, of all of them at once. A gather over
 * several axes takes one after the other, those that cut a dimension finest first: so what a process has is one box, or two where the
 * line closes to a ring. All of it is arithmetic, on meshes whose processes are a grid in the mesh. Called by reshard.c. */
#include "plan/cost.h"
#include "plan/pieces.h"
#include "plan/schedule.h"
#include "plan/wires.h"
#include "core/option.h"
#include <string.h>

/* A mesh as a grid of processes. */
typedef struct grid {
    const int *each;        /* coordinates of an axis that a process has */
    int size[OLY_MAX_RANK]; /* processes along an axis */
    int n;                  /* in all */
} grid;

/* Movements over the same axes, which go together. */
typedef struct stager {
    oly_planner *p;
    oly_block *b;
    int n;
    mover **movers;
    oly_mesh mesh;
    grid grid;
    oly_axis_list order; /* axes to gather over, one after the other */
    unsigned gathered;   /* those over which that is done */
    int stage, n_stages;
    int64_t *received; /* [n_devices] bytes, in this step */
    int n_devices;
    int *
        at; /* [n_devices][OLY_MAX_RANK] coordinates of this process's devices; the first is -1 where one is not in the mesh */
    bool begun; /* some step moves something */
} stager;

/* -- which movements ------------------------------------------------------------------------------------------------------ */

static bool grid_of(oly_mesh mesh, grid *g)
{
    *g = (grid){.each = mesh->each, .n = 1};
    for (int a = 0; a < mesh->n_axes; a++) {
        if (mesh->each[a] == 0)
            return false;
        g->size[a] = mesh->size[a] / mesh->each[a];
        g->n *= g->size[a];
    }
    return !mesh->everywhere;
}

/* Row-major place in the grid <-> process; -1: it has no device of the mesh. */
static int number_of(oly_mesh mesh, const grid *g, int process)
{
    int first, n = oly_mesh_devices_of(process, &first), position = -1, at[OLY_MAX_RANK], number = 0;
    for (int id = first; id < first + n && position < 0; id++)
        position = oly_mesh_position_of(mesh, id);
    if (position < 0)
        return -1;
    oly_mesh_coordinates(mesh, position, at);
    for (int a = 0; a < mesh->n_axes; a++)
        number = number * g->size[a] + at[a] / g->each[a];
    return number;
}

static int process_of(oly_mesh mesh, const grid *g, int number)
{
    int at[OLY_MAX_RANK];
    for (int a = mesh->n_axes - 1; a >= 0; a--) {
        at[a] = number % g->size[a] * g->each[a];
        number /= g->size[a];
    }
    return oly_mesh_process_of(oly_mesh_device_id(mesh, oly_mesh_position(mesh, at)));
}

static unsigned axes_of(const oly_axis_list *l)
{
    unsigned axes = 0;
    for (int k = 0; k < l->n; k++)
        axes |= 1u << l->axis[k];
    return axes;
}

static unsigned axes_from(const mover *m)
{
    unsigned axes = 0;
    for (int d = 0; d < m->from->rank; d++)
        axes |= axes_of(&m->from->split[d].axes);
    return axes;
}

static unsigned axes_to(const mover *m)
{
    unsigned axes = 0;
    for (int d = 0; d < m->to->rank; d++)
        axes |= axes_of(&m->to->dim[d].split.axes);
    return axes;
}

/* The dimension without the axes that are gathered over, which must be its last ones. False: its parts do not join to parts. */
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

/* Of the axes that are the last of their dimensions, that along which processes are nearest comes first. */
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

static int log2_of(int n)
{
    int log = 0;
    while (log < 31 && 1 << log < n)
        log++;
    return log;
}

/* Saves it enough? Where few processes take part, consumers of a direct message may begin before the others are there. */
static bool worth_stages(const mover *m, oly_mesh mesh, const oly_axis_list *axes, int n_processes, int n_stages)
{
    oly_box box = oly_region_box(m->to, m->shape, 0); /* the largest part, everywhere the same */
    if (n_processes <= oly_option.direct_processes)
        return false;
    if (n_processes > OLY_MOST_PEERS)
        return true;
    oly_level level = oly_axes_level(mesh, axes);
    double bytes = (double)oly_box_count(&box) * (double)m->element, least = 0.1;
    double saved = oly_price_transfer(level, 0, n_processes - 1 - n_stages);
    return saved > least * oly_price_transfer(level, bytes, n_stages);
}

static bool is_plain(const mover *m)
{
    for (int d = 0; d < m->to->rank; d++)
        if (m->to->dim[d].wraps)
            return false;
    return !m->permutation && !m->in_place && m->wanted.n == 0 && !m->from->mesh->everywhere;
}

/* Every device of some lines gets the same, which the devices of its line have. */
static bool is_gather(const mover *m, grid *g, oly_axis_list *order)
{
    oly_mesh mesh = m->from->mesh;
    unsigned dropped = axes_from(m) & ~axes_to(m);
    int n_processes = 1, n_stages = 0;
    if (mesh != m->to->mesh || dropped == 0 || !is_plain(m) || !grid_of(mesh, g))
        return false;
    order_axes(m, dropped, order);
    for (int k = 0; k < order->n; k++) {
        n_processes *= g->size[order->axis[k]];
        n_stages += log2_of(g->size[order->axis[k]]);
    }
    if (n_processes <= oly_option.direct_processes || !worth_stages(m, mesh, order, n_processes, n_stages))
        return false;
    oly_layout joined = *m->from;
    for (int d = 0; d < joined.rank; d++)
        if (!join_parts(mesh, &joined.split[d], dropped))
            return false;
    return oly_region_inside_layout(m->to, &joined);
}

/* Every device gets what one process has. */
static bool is_broadcast(const mover *m, grid *g)
{
    static const oly_axis_list none;
    oly_mesh mesh = m->to->mesh;
    oly_axis_list all = none;
    if (axes_to(m) != 0 || !is_plain(m) || m->from->mesh->process < 0 || !grid_of(mesh, g) ||
        number_of(mesh, g, m->from->mesh->process) < 0)
        return false;
    for (int a = 0; a < mesh->n_axes; a++)
        all.axis[all.n++] = (uint8_t)a;
    return worth_stages(m, mesh, &all, g->n, log2_of(g->n));
}

/* -- steps ------------------------------------------------------------------------------------------------------------------ */

static oly_step *add_step(stager *s, const char *what)
{
    const mover *m = s->movers[0];
    oly_step *step = oly_step_add(s->p, s->b, OLY_STEP_MOVE, m->node, what);
    if (!step)
        return NULL;
    step->out_slot = m->to_slot;
    step->members = s->mesh->n_devices;
    for (int d = 0; d < s->n_devices; d++) {
        step->wire += s->received[d];
        step->bytes = s->received[d] > step->bytes ? s->received[d] : step->bytes;
        s->received[d] = 0;
    }
    step->messages = step->bytes > 0;
    step->goes_on = s->begun;
    s->begun = s->begun || step->bytes > 0;
    for (int j = 0; j < s->n; j++) {
        oly_slot_use(s->p, s->movers[j]->to_slot);
        s->p->plan->slots[s->movers[j]->to_slot].block = s->b;
    }
    return oly_note_transfer(s->n, m, step) == OLY_OK ? step : NULL;
}

/* The copies within this process, which every process has as a step. */
static oly_status add_copies(stager *s, const char *what)
{
    int n = 0;
    const oly_plan *plan = s->p->plan;
    double work = 0;
    for (int j = 0; j < s->n; j++) {
        oly_slot_use(s->p, s->movers[j]->from_slot);
        n += s->movers[j]->n_copies;
    }
    oly_copy_work *copies = OLY_PLAN_NEW(s->p, oly_copy_work, n + 1);
    OLY_PLAN_CHECK(copies);
    n = 0;
    for (int j = 0; j < s->n; j++) {
        const mover *m = s->movers[j];
        for (int k = 0; k < m->n_copies; k++) {
            const oly_copy_work *c = &m->copies[k];
            int64_t elements = 1;
            for (int d = 0; d < c->task.rank; d++)
                elements *= c->task.extent[d];
            int device = oly_cell_device(plan, c->to.base);
            if (oly_cell_device(plan, c->from.base) != device)
                s->received[device] += elements * (int64_t)m->element;
            copies[n++] = *c;
        }
        work += m->work;
    }
    oly_step *step = add_step(s, what);
    OLY_PLAN_CHECK(step);
    step->alone = true;
    step->work = work;
    step->move.copies = copies;
    step->move.n_copies = n;
    step->detail = "within each process";
    return OLY_OK;
}

static oly_status add_exchange(stager *s, const char *what, oly_wires *wires, const char *detail)
{
    oly_exchange *exchange;
    OLY_TRY(oly_wires_exchange(s->p, wires, s->movers[0]->element, &exchange));
    oly_step *step = add_step(s, what);
    if (!step) {
        oly_exchange_free(exchange);
        return oly_out_of_memory(0, "a plan");
    }
    step->exchange = exchange;
    step->detail = detail;
    return OLY_OK;
}

static const int *coordinates_of(const stager *s, int device)
{
    return s->at + (ptrdiff_t)device * OLY_MAX_RANK;
}

static bool is_here(const stager *s, int device)
{
    return *coordinates_of(s, device) >= 0;
}

static bool agree(const stager *s, int device, int other, unsigned axes)
{
    const int *x = coordinates_of(s, device), *y = coordinates_of(s, other);
    for (int a = 0; a < s->mesh->n_axes; a++)
        if ((axes >> a & 1) && x[a] != y[a])
            return false;
    return true;
}

/* The first device here that agrees with `device` along the axes. */
static int first_alike(const stager *s, int device, unsigned axes)
{
    int d = 0;
    while (d < device && !(is_here(s, d) && agree(s, d, device, axes)))
        d++;
    return d;
}

/* -- gathers ---------------------------------------------------------------------------------------------------------------- */

/* Every device gets the blocks of the devices here that it wants. */
static oly_status copy_own(stager *s, mover *m)
{
    unsigned from = axes_from(m), to = axes_to(m);
    OLY_TRY(oly_keep_boxes(m));
    for (int d = 0; d < s->n_devices; d++)
        for (int e = 0; e < s->n_devices && is_here(s, d); e++) {
            if (!is_here(s, e) || !agree(s, d, e, to & from) || first_alike(s, e, from) != e)
                continue; /* not wanted, or another here has the same */
            int source = agree(s, d, e, from) ? d : e;
            oly_box box = oly_box_intersect(&m->held[source], &m->target[d]);
            if (oly_box_count(&box) > 0)
                OLY_TRY(oly_add_copy(m, source, d, &m->target[d], &box));
        }
    return OLY_OK;
}

/* What the devices have that lie where `device` does, but for the axes gathered over, and at [first, end) along `axis`. */
static oly_box gathered_box(const stager *s, const mover *m, int device, int axis, int first, int end)
{
    const oly_layout *l = m->from;
    const int *at = coordinates_of(s, device);
    oly_box box = {.rank = l->rank};
    for (int d = 0; d < l->rank; d++) {
        int64_t lo = 0, hi = 1;
        for (int k = 0; k < l->split[d].axes.n; k++) {
            int a = l->split[d].axes.axis[k], size = s->mesh->size[a];
            bool all = s->gathered >> a & 1;
            lo = lo * size + (a == axis ? first : all ? 0 : at[a]);
            hi = (hi - 1) * size + (a == axis ? end : all ? size : at[a] + 1);
        }
        box.lo[d] = oly_split_cut(&l->split[d], l->shape[d], lo);
        box.hi[d] = oly_split_cut(&l->split[d], l->shape[d], hi);
    }
    return box;
}

/* What `count` processes from `first` on have of an axis of `size`, as far as it goes on at coordinates that ascend: one or two runs. */
static int runs_of(const grid *g, int axis, int first, int count, int *begin, int *end)
{
    int size = g->size[axis], each = g->each[axis], n = 0;
    first = (first % size + size) % size;
    int straight = first + count > size ? size - first : count;
    begin[n] = first * each;
    end[n++] = (first + straight) * each;
    if (straight < count) {
        begin[n] = 0;
        end[n++] = (count - straight) * each;
    }
    return n;
}

/* A number for a device's coordinates along some axes among those that a process has: the same on every process. */
static int lane_of(const stager *s, int device, unsigned axes)
{
    const int *at = coordinates_of(s, device);
    int lane = 0;
    for (int a = 0; a < s->mesh->n_axes; a++)
        lane = lane * s->grid.each[a] + ((axes >> a & 1) ? at[a] % s->grid.each[a] : 0);
    return lane;
}

/* The wires of one movement to or from one peer: of devices that have the same the first sends, and all that want it receive. */
static oly_status add_wires(stager *s, oly_wires *wires, int item, int axis, int peer, bool sending, int first,
                            int count)
{
    const mover *m = s->movers[item];
    int begin[2], end[2], n_runs = runs_of(&s->grid, axis, first, count, begin, end);
    unsigned to = axes_to(m), differ = to | (axes_from(m) & ~s->gathered & ~(1u << axis));
    for (int d = 0; d < s->n_devices; d++) {
        if (!is_here(s, d) || first_alike(s, d, differ) != d)
            continue;
        for (int k = 0; k < n_runs; k++) {
            oly_box box = gathered_box(s, m, d, axis, begin[k], end[k]);
            box = oly_box_intersect(&box, &m->target[d]);
            if (oly_box_count(&box) == 0)
                continue;
            oly_wire wire = {peer,
                             sending,
                             {(int64_t)item << 32 | lane_of(s, d, differ), k},
                             oly_piece_in(m, d, m->to_slot, &m->target[d], &box)};
            if (sending)
                OLY_TRY(oly_wires_add(s->p, wires, &wire));
            for (int e = 0; e < s->n_devices && !sending; e++)
                if (is_here(s, e) && agree(s, e, d, to)) {
                    wire.piece.buffer = oly_cell(s->p->plan, e, m->to_slot);
                    s->received[e] += oly_box_count(&box) * (int64_t)m->element;
                    OLY_TRY(oly_wires_add(s->p, wires, &wire));
                }
        }
    }
    return OLY_OK;
}

/* This process's place in the grid. False: it has no device of the mesh. */
static bool place_of(const stager *s, int *place)
{
    for (int d = 0; d < s->n_devices; d++)
        if (is_here(s, d)) {
            for (int a = 0; a < s->mesh->n_axes; a++)
                place[a] = coordinates_of(s, d)[a] / s->grid.each[a];
            return true;
        }
    return false;
}

/* The process `distance` further along the axis, round its end. */
static int further(const stager *s, const int *place, int axis, int distance)
{
    int number = 0, size = s->grid.size[axis];
    for (int a = 0; a < s->mesh->n_axes; a++)
        number = number * s->grid.size[a] + (a == axis ? ((place[a] + distance) % size + size) % size : place[a]);
    return process_of(s->mesh, &s->grid, number);
}

static oly_status gather_along(stager *s, int axis)
{
    int place[OLY_MAX_RANK], size = s->grid.size[axis];
    bool here = place_of(s, place);
    for (int distance = 1; distance < size; distance *= 2) {
        oly_wires wires = {0};
        int count = distance < size - distance ? distance : size - distance;
        for (int j = 0; j < s->n && here; j++) {
            OLY_TRY(add_wires(s, &wires, j, axis, further(s, place, axis, -distance), true, place[axis], count));
            OLY_TRY(
                add_wires(s, &wires, j, axis, further(s, place, axis, distance), false, place[axis] + distance, count));
        }
        const char *detail =
            oly_plan_say(s->p, "stage %d of %d between %d processes, what %d had from the one %d further along %s",
                         ++s->stage, s->n_stages, size, count, distance, s->mesh->name[axis]);
        OLY_TRY(add_exchange(s, "all-gather", &wires, detail));
    }
    s->gathered |= 1u << axis;
    return OLY_OK;
}

static oly_status add_gather(stager *s)
{
    for (int j = 0; j < s->n; j++)
        OLY_TRY(copy_own(s, s->movers[j]));
    OLY_TRY(add_copies(s, "all-gather"));
    for (int k = 0; k < s->order.n; k++)
        s->n_stages += log2_of(s->grid.size[s->order.axis[k]]);
    for (int k = 0; k < s->order.n; k++)
        OLY_TRY(gather_along(s, s->order.axis[k]));
    return OLY_OK;
}

/* -- broadcasts -------------------------------------------------------------------------------------------------------------- */

static oly_status add_whole(stager *s, oly_wires *wires, int item, int peer, bool sending)
{
    const mover *m = s->movers[item];
    int first = 0;
    while (!is_here(s, first))
        first++;
    const oly_box *box = &m->target[first];
    oly_wire wire = {peer, sending, {item, 0}, oly_piece_in(m, first, m->to_slot, box, box)};
    if (oly_box_count(box) == 0)
        return OLY_OK;
    for (int d = first; d < (sending ? first + 1 : s->n_devices); d++)
        if (is_here(s, d)) {
            wire.piece.buffer = oly_cell(s->p->plan, d, m->to_slot);
            s->received[d] += sending ? 0 : oly_box_count(box) * (int64_t)m->element;
            OLY_TRY(oly_wires_add(s->p, wires, &wire));
        }
    return OLY_OK;
}

static oly_status add_broadcast(stager *s)
{
    int process = s->movers[0]->from->mesh->process, n = s->grid.n;
    int root = number_of(s->mesh, &s->grid, process), me = number_of(s->mesh, &s->grid, oly_mesh_my_process());
    int distance = (me - root + n) % n;
    for (int j = 0; j < s->n; j++)
        OLY_TRY(oly_mesh_my_process() == process ? oly_find_copies(s->movers[j]) : oly_keep_boxes(s->movers[j]));
    OLY_TRY(add_copies(s, "broadcast"));
    s->n_stages = log2_of(n);
    for (int have = 1; have < n; have *= 2) {
        oly_wires wires = {0};
        for (int j = 0; j < s->n && me >= 0; j++) {
            if (distance < have && distance + have < n)
                OLY_TRY(add_whole(s, &wires, j, process_of(s->mesh, &s->grid, (me + have) % n), true));
            else if (distance >= have && distance < 2 * have)
                OLY_TRY(add_whole(s, &wires, j, process_of(s->mesh, &s->grid, (me - have + n) % n), false));
        }
        const char *detail = oly_plan_say(s->p, "stage %d of %d between %d processes, %d have it and send it on",
                                          ++s->stage, s->n_stages, n, have);
        OLY_TRY(add_exchange(s, "broadcast", &wires, detail));
    }
    return OLY_OK;
}

/* -- all of them ------------------------------------------------------------------------------------------------------------- */

/* Where the devices here are in the mesh. */
static oly_status find_coordinates(stager *s)
{
    s->n_devices = s->p->plan->n_devices;
    s->at = OLY_PLAN_NEW(s->p, int, (s->n_devices + 1) * OLY_MAX_RANK);
    s->received = OLY_PLAN_NEW(s->p, int64_t, s->n_devices + 1);
    OLY_PLAN_CHECK(s->at ? s->received : NULL);
    for (int d = 0; d < s->n_devices; d++) {
        int position = oly_position_in(s->p, s->mesh, d);
        s->at[d * OLY_MAX_RANK] = -1;
        if (position >= 0 && s->mesh->n_axes > 0)
            oly_mesh_coordinates(s->mesh, position, s->at + (ptrdiff_t)d * OLY_MAX_RANK);
    }
    return OLY_OK;
}

/* Takes those off the list that go with `key`, the first of them. */
static oly_status take_alike(stager *s, int *n, mover *movers, const mover *key, bool gather)
{
    int left = 0;
    mover *taken = OLY_PLAN_NEW(s->p, mover, *n);
    s->movers = OLY_PLAN_NEW(s->p, mover *, *n);
    OLY_PLAN_CHECK(taken ? s->movers : NULL);
    oly_mesh from = key->from->mesh, to = key->to->mesh;
    for (int k = 0; k < *n; k++) {
        const mover *m = &movers[k];
        oly_axis_list order;
        grid g;
        if (m->from->mesh == from && m->to->mesh == to &&
            (gather ? is_gather(m, &g, &order) && oly_axis_list_equal(&order, &s->order) : is_broadcast(m, &g))) {
            taken[s->n] = *m;
            s->movers[s->n] = &taken[s->n];
            s->n++;
        } else {
            movers[left++] = *m;
        }
    }
    *n = left;
    return OLY_OK;
}

oly_status oly_plan_stages(int *n, mover *movers, oly_block *b)
{
    if (oly_mesh_processes() <= oly_option.direct_processes)
        return OLY_OK;
    for (int k = 0; k < *n;) {
        stager s = {.p = movers[k].p, .b = b, .mesh = movers[k].to->mesh};
        bool gather = is_gather(&movers[k], &s.grid, &s.order);
        if (!gather && !is_broadcast(&movers[k], &s.grid)) {
            k++;
            continue;
        }
        mover key = movers[k];
        OLY_TRY(find_coordinates(&s));
        OLY_TRY(take_alike(&s, n, movers, &key, gather));
        OLY_TRY(gather ? add_gather(&s) : add_broadcast(&s));
    }
    return OLY_OK;
}
