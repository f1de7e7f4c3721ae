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
#include "plan/stages.h"
#include "plan/wires.h"
#include <string.h>

/* Movements over the same axes, which go together. */
typedef struct stager {
    oly_planner *p;
    oly_block *b;
    int n;
    mover **movers;
    oly_mesh mesh;
    oly_process_grid grid;
    oly_axis_list order; /* axes to gather over, one after the other */
    unsigned gathered;   /* those over which that is done */
    int stage, n_stages;
    bool at_once;      /* all with all, in one stage */
    int64_t *received; /* [n_devices] bytes, in this step */
    int n_devices;
    int *
        at; /* [n_devices][OLY_MAX_RANK] coordinates of this process's devices; the first is -1 where one is not in the mesh */
    bool begun; /* some step moves something */
} stager;

/* -- steps ------------------------------------------------------------------------------------------------------------------ */

/* messages 0: what has been received so far is told by the next one. */
static oly_step *add_step(stager *s, const char *what, int messages)
{
    const mover *m = s->movers[0];
    oly_step *step = oly_step_add(s->p, s->b, OLY_STEP_MOVE, m->node, what);
    if (!step)
        return NULL;
    step->out_slot = m->to_slot;
    step->members = s->mesh->n_devices;
    for (int d = 0; d < s->n_devices && messages > 0; d++) {
        step->wire += s->received[d];
        step->bytes = s->received[d] > step->bytes ? s->received[d] : step->bytes;
        s->received[d] = 0;
    }
    step->messages = step->bytes > 0 ? messages : 0;
    step->goes_on = s->begun;
    s->begun = s->begun || step->bytes > 0;
    for (int j = 0; j < s->n; j++) {
        oly_slot_use(s->p, s->movers[j]->to_slot);
        s->p->plan->slots[s->movers[j]->to_slot].block = s->b;
    }
    return oly_note_transfer(s->n, m, step) == OLY_OK ? step : NULL;
}

/* The copies that were found for the movements go with a step. */
typedef struct copies {
    int n;
    oly_copy_work *copy;
    double work;
} copies;

static oly_status take_copies(stager *s, copies *c)
{
    const oly_plan *plan = s->p->plan;
    *c = (copies){0};
    for (int j = 0; j < s->n; j++)
        c->n += s->movers[j]->n_copies;
    c->copy = OLY_PLAN_NEW(s->p, oly_copy_work, c->n + 1);
    OLY_PLAN_CHECK(c->copy);
    c->n = 0;
    for (int j = 0; j < s->n; j++) {
        mover *m = s->movers[j];
        for (int k = 0; k < m->n_copies; k++) {
            const oly_copy_work *copy = &m->copies[k];
            int64_t elements = 1;
            for (int d = 0; d < copy->task.rank; d++)
                elements *= copy->task.extent[d];
            int device = oly_cell_device(plan, copy->to.base);
            if (oly_cell_device(plan, copy->from.base) != device)
                s->received[device] += elements * (int64_t)m->element;
            c->copy[c->n++] = *copy;
        }
        c->work += m->work;
        m->n_copies = 0;
        m->work = 0;
    }
    return OLY_OK;
}

/* Copies within each process, which every process has as a step. */
static oly_status add_copies(stager *s)
{
    copies c;
    for (int j = 0; j < s->n; j++)
        oly_slot_use(s->p, s->movers[j]->from_slot);
    OLY_TRY(take_copies(s, &c));
    oly_step *step = add_step(s, "copy", 0);
    OLY_PLAN_CHECK(step);
    step->alone = true;
    step->work = c.work;
    step->move.copies = c.copy;
    step->move.n_copies = c.n;
    step->detail = "within each process";
    return OLY_OK;
}

/* What comes last, for overlap.c. */
static oly_status note_arrivals(stager *s, const oly_wires *wires, oly_step *step)
{
    oly_arrival *arrivals = OLY_PLAN_NEW(s->p, oly_arrival, wires->n + 1);
    OLY_PLAN_CHECK(arrivals);
    for (int k = 0; k < wires->n; k++)
        if (!wires->wire[k].sending)
            arrivals[step->move.n_arrivals++] = (oly_arrival){wires->wire[k].peer, wires->wire[k].piece};
    step->move.arrivals = arrivals;
    return OLY_OK;
}

static oly_status add_exchange(stager *s, const char *what, oly_wires *wires, int messages, const char *detail)
{
    copies c;
    OLY_TRY(take_copies(s, &c));
    for (int j = 0; j < s->n && c.n > 0; j++)
        oly_slot_use(s->p, s->movers[j]->from_slot);
    oly_step *step = add_step(s, what, messages);
    OLY_PLAN_CHECK(step);
    step->move.copies = c.copy;
    step->move.n_copies = c.n;
    step->work = c.work;
    step->detail = detail;
    if (s->stage == s->n_stages)
        OLY_TRY(note_arrivals(s, wires, step));
    return oly_wires_exchange(s->p, wires, s->movers[0]->element, &step->exchange);
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

/* The axes that tell devices apart which send something else along `axis`. */
static unsigned senders_differ(const stager *s, const mover *m, int axis)
{
    return oly_axes_to(m) | (oly_axes_from(m) & ~s->gathered & ~(1u << axis));
}

/* Devices get the blocks of the devices here that they want: those that send along `axis`, or the others. */
static oly_status copy_own(stager *s, mover *m, int axis, bool senders)
{
    unsigned from = oly_axes_from(m), to = oly_axes_to(m), differ = senders_differ(s, m, axis);
    OLY_TRY(oly_keep_boxes(m));
    for (int d = 0; d < s->n_devices; d++)
        for (int e = 0; e < s->n_devices && is_here(s, d) && (first_alike(s, d, differ) == d) == senders; e++) {
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
static int runs_of(const oly_process_grid *g, int axis, int first, int count, int *begin, int *end)
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
    unsigned to = oly_axes_to(m), differ = senders_differ(s, m, axis);
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
    return oly_grid_process(s->mesh, &s->grid, number);
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
        OLY_TRY(add_exchange(s, "all-gather", &wires, 1, detail));
    }
    s->gathered |= 1u << axis;
    return OLY_OK;
}

static oly_status gather_at_once(stager *s, int axis)
{
    int place[OLY_MAX_RANK], size = s->grid.size[axis];
    oly_wires wires = {0};
    bool here = place_of(s, place);
    for (int distance = 1; distance < size && here; distance++)
        for (int j = 0; j < s->n; j++) {
            OLY_TRY(add_wires(s, &wires, j, axis, further(s, place, axis, -distance), true, place[axis], 1));
            OLY_TRY(add_wires(s, &wires, j, axis, further(s, place, axis, distance), false, place[axis] + distance, 1));
        }
    s->gathered |= 1u << axis;
    return add_exchange(s, "all-gather", &wires, size - 1,
                        oly_plan_say(s->p, "between %d processes along %s", size, s->mesh->name[axis]));
}

static oly_status add_gather(stager *s)
{
    int first = 0; /* before it, nothing needs sending */
    for (; s->grid.size[s->order.axis[first]] == 1; first++)
        s->gathered |= 1u << s->order.axis[first];
    for (int senders = 1; senders >= 0; senders--) {
        for (int j = 0; j < s->n; j++)
            OLY_TRY(copy_own(s, s->movers[j], s->order.axis[first], senders));
        if (senders)
            OLY_TRY(add_copies(s)); /* the others go with the first exchange */
    }
    for (int k = 0; k < s->order.n && !s->at_once; k++)
        s->n_stages += oly_stages_between(s->grid.size[s->order.axis[k]]);
    for (int k = first; k < s->order.n; k++)
        OLY_TRY(s->at_once && k == first ? gather_at_once(s, s->order.axis[k]) : gather_along(s, s->order.axis[k]));
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
    int root = oly_grid_number(s->mesh, &s->grid, process),
        me = oly_grid_number(s->mesh, &s->grid, oly_mesh_my_process());
    int distance = (me - root + n) % n;
    for (int j = 0; j < s->n; j++)
        OLY_TRY(oly_mesh_my_process() == process ? oly_find_copies(s->movers[j]) : oly_keep_boxes(s->movers[j]));
    OLY_TRY(add_copies(s));
    s->n_stages = oly_stages_between(n);
    for (int have = 1; have < n; have *= 2) {
        oly_wires wires = {0};
        for (int j = 0; j < s->n && me >= 0; j++) {
            if (distance < have && distance + have < n)
                OLY_TRY(add_whole(s, &wires, j, oly_grid_process(s->mesh, &s->grid, (me + have) % n), true));
            else if (distance >= have && distance < 2 * have)
                OLY_TRY(add_whole(s, &wires, j, oly_grid_process(s->mesh, &s->grid, (me - have + n) % n), false));
        }
        const char *detail = oly_plan_say(s->p, "stage %d of %d between %d processes, %d have it and send it on",
                                          ++s->stage, s->n_stages, n, have);
        OLY_TRY(add_exchange(s, "broadcast", &wires, 1, detail));
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
        oly_process_grid g;
        bool at_once;
        if (m->from->mesh == from && m->to->mesh == to &&
            (gather ? oly_is_gather(m, &g, &order, &at_once) && at_once == s->at_once &&
                          oly_axis_list_equal(&order, &s->order)
                    : oly_is_broadcast(m, &g))) {
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
    if (oly_mesh_processes() == 1)
        return OLY_OK;
    for (int k = 0; k < *n;) {
        stager s = {.p = movers[k].p, .b = b, .mesh = movers[k].to->mesh};
        bool gather = oly_is_gather(&movers[k], &s.grid, &s.order, &s.at_once);
        if (!gather && !oly_is_broadcast(&movers[k], &s.grid)) {
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
