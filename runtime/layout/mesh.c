/* SPDX-License-Identifier: BSD-3-Clause */
/* Meshes: making, interning, looking up. See mesh.h. Nothing here is linear in the number of devices, except for meshes that
 * list theirs. */
#define _GNU_SOURCE /* qsort_r */
#include "layout/mesh.h"
#include "layout/intern.h"
#include "layout/topology.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/scan.h"
#include "core/text.h"
#include <stdlib.h>
#include <string.h>

typedef struct mesh_entry {
    struct oly_mesh_impl mesh; /* first member: handles point here */
    struct mesh_entry *next;
    int n_local;
    int *local;   /* owned; positions of this process's devices */
    int *by_id;   /* owned; positions in the order of their devices' ids; NULL when positions are ids */
    int first_id; /* the least of a list without gaps; -1: there are gaps */
} mesh_entry;

static mesh_entry *meshes;
static mesh_entry *default_mesh;
static oly_mesh context;     /* of oly_set_mesh */
static oly_mesh uncommitted; /* of oly_set_default_device; NULL: unset */

static int compare_ids(const void *a, const void *b, void *devices)
{
    const int *ids = devices;
    return ids[*(const int *)a] - ids[*(const int *)b];
}

static oly_status sort_devices(mesh_entry *e)
{
    int n = e->mesh.n_devices;
    e->by_id = oly_malloc(sizeof(int) * (size_t)n);
    if (!e->by_id)
        return oly_out_of_memory(sizeof(int) * (size_t)n, "the positions of a mesh");
    for (int p = 0; p < n; p++)
        e->by_id[p] = p;
    qsort_r(e->by_id, (size_t)n, sizeof(int), compare_ids, (void *)e->mesh.devices);
    e->first_id = e->mesh.devices[e->by_id[0]];
    if (e->mesh.devices[e->by_id[n - 1]] - e->first_id != n - 1)
        e->first_id = -1;
    return OLY_OK;
}

int oly_mesh_position_of(oly_mesh mesh, int device_id)
{
    const mesh_entry *e = (const mesh_entry *)mesh;
    if (!mesh->devices)
        return device_id < mesh->n_devices ? device_id : -1;
    int low = 0, high = mesh->n_devices;
    if (e->first_id >= 0) /* the ids are consecutive */
        return device_id >= e->first_id && device_id - e->first_id < high ? e->by_id[device_id - e->first_id] : -1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (mesh->devices[e->by_id[middle]] < device_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < mesh->n_devices && mesh->devices[e->by_id[low]] == device_id ? e->by_id[low] : -1;
}

static int compare_positions(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Positions of this process's devices, ascending. */
static oly_status find_local(mesh_entry *e)
{
    const struct oly_mesh_impl *m = &e->mesh;
    e->local = oly_malloc(sizeof(int) * (size_t)(oly_mesh_local_devices() + 1));
    if (!e->local)
        return oly_out_of_memory(sizeof(int) * (size_t)oly_mesh_local_devices(), "the positions of a mesh");
    if (m->everywhere)
        e->local[e->n_local++] = 0;
    for (int d = 0; d < oly_mesh_local_devices() && !m->everywhere; d++) {
        int position = oly_mesh_position_of(m, oly_mesh_local_id(d));
        if (position >= 0)
            e->local[e->n_local++] = position;
    }
    qsort(e->local, (size_t)e->n_local, sizeof(int), compare_positions);
    return OLY_OK;
}

/* The process that all devices belong to; -1: several. */
static int only_process(const struct oly_mesh_impl *m)
{
    const mesh_entry *e = (const mesh_entry *)m;
    if (m->everywhere)
        return oly_mesh_my_process();
    int first = m->devices ? m->devices[e->by_id[0]] : 0;
    int last = m->devices ? m->devices[e->by_id[m->n_devices - 1]] : m->n_devices - 1;
    return oly_mesh_process_of(first) == oly_mesh_process_of(last) ? oly_mesh_process_of(first) : -1;
}

/* -- runs of one process ------------------------------------------------------------------------------------------- */

/* Coordinate c of an axis is on another process than its predecessor: no run may cross it. */
static void cut_run(struct oly_mesh_impl *m, int axis, int64_t c)
{
    if (c > 0 && c < m->size[axis] && c % m->together[axis] != 0)
        m->together[axis] = (int)(c & -c);
}

/* The mesh lists its devices: compares all neighbours. */
static void find_runs_in_list(struct oly_mesh_impl *m, int axis, int stride)
{
    for (int p = 0; p < m->n_devices; p++) {
        int c = p / stride % m->size[axis];
        if (c != 0 && oly_mesh_process_of(m->devices[p]) != oly_mesh_process_of(m->devices[p - stride]))
            cut_run(m, axis, c);
    }
}

/* Positions are ids: examines the positions where a process begins, until no other can shorten the runs. Two positions
 * `stride` apart with one of these between them differ in one or two coordinates. */
static void find_runs(struct oly_mesh_impl *m, int axis, int stride)
{
    int64_t around = (int64_t)stride * m->size[axis];
    int64_t least = 1;
    int count = oly_mesh_devices_each();
    if (count && count % stride == 0) { /* coordinates between processes are multiples of this, modulo the size */
        int64_t apart = count / stride, all = around < m->n_devices ? apart | m->size[axis] : apart;
        least = all & -all;
    }
    for (int r = 1, first; r < oly_mesh_processes() && m->together[axis] > least; r++) {
        if (oly_mesh_devices_of(r, &first) == 0)
            continue;
        if (first >= m->n_devices)
            break;
        int64_t at = first % around, c = at / stride;
        cut_run(m, axis, c);
        if (at % stride != 0)
            cut_run(m, axis, c + 1);
    }
}

static void find_together(struct oly_mesh_impl *m)
{
    for (int a = m->n_axes - 1, stride = 1; a >= 0; stride *= m->size[a--]) {
        m->together[a] = 1;
        while (m->together[a] < m->size[a])
            m->together[a] *= 2;
        if (m->devices)
            find_runs_in_list(m, a, stride);
        else if (!m->everywhere)
            find_runs(m, a, stride);
    }
}

/* -- processes as boxes -------------------------------------------------------------------------------------------- */

static int process_at(const struct oly_mesh_impl *m, int position)
{
    return oly_mesh_process_of(m->devices ? m->devices[position] : position);
}

/* Positions are ids, and all processes have equally many: runs of positions are boxes if they end where axes do. */
static bool runs_are_boxes(struct oly_mesh_impl *m)
{
    int left = m->process >= 0 ? m->n_devices : oly_mesh_devices_each();
    if (left == 0 || m->n_devices % left != 0)
        return false;
    for (int a = m->n_axes - 1; a >= 0; left /= m->each[a--]) {
        m->each[a] = left < m->size[a] ? left : m->size[a];
        if (left % m->each[a] != 0 || m->size[a] % m->each[a] != 0)
            return false;
    }
    return true;
}

/* The mesh lists its devices: the box of the first process, then whether each box of that size has a process of its own. */
static bool lists_are_boxes(struct oly_mesh_impl *m)
{
    const mesh_entry *e = (const mesh_entry *)m;
    int n_processes = 1, volume = 1, at[OLY_MAX_RANK];
    for (int a = m->n_axes - 1, stride = 1; a >= 0; stride *= m->size[a--]) {
        m->each[a] = 1;
        while (m->each[a] < m->size[a] && process_at(m, m->each[a] * stride) == process_at(m, 0))
            m->each[a]++;
        if (m->size[a] % m->each[a] != 0)
            return false;
        volume *= m->each[a];
    }
    for (int p = 0; p < m->n_devices; p++) {
        oly_mesh_coordinates(m, p, at);
        for (int a = 0; a < m->n_axes; a++)
            at[a] -= at[a] % m->each[a];
        if (process_at(m, p) != process_at(m, oly_mesh_position(m, at)))
            return false;
        n_processes += p > 0 && process_at(m, e->by_id[p]) != process_at(m, e->by_id[p - 1]);
    }
    return n_processes * volume == m->n_devices;
}

static void find_boxes(struct oly_mesh_impl *m)
{
    if (m->everywhere || (m->devices ? lists_are_boxes(m) : runs_are_boxes(m)))
        return;
    for (int a = 0; a < m->n_axes; a++)
        m->each[a] = 0;
}

/* Equal lists are shared, so that comparing meshes never compares lists. */
static const int *known_list(const struct oly_mesh_impl *m)
{
    for (const mesh_entry *e = meshes; e; e = e->next)
        if (e->mesh.devices && e->mesh.n_devices == m->n_devices && e->mesh.list_hash == m->list_hash &&
            memcmp(e->mesh.devices, m->devices, sizeof(int) * (size_t)m->n_devices) == 0)
            return e->mesh.devices;
    return NULL;
}

static void forget_mesh(mesh_entry *e)
{
    bool shared = false;
    for (const mesh_entry *other = meshes; other && !shared; other = other->next)
        shared = other != e && other->mesh.devices == e->mesh.devices;
    if (!shared)
        oly_release((void *)e->mesh.devices);
    oly_release(e->local);
    oly_release(e->by_id);
    e->mesh.tag = OLY_DEAD_TAG(OLY_HANDLE_MESH);
    oly_bury(e);
}

static oly_status complete(mesh_entry *e)
{
    if (e->mesh.devices)
        OLY_TRY(sort_devices(e));
    OLY_TRY(find_local(e));
    e->mesh.process = only_process(&e->mesh);
    find_together(&e->mesh);
    find_boxes(&e->mesh);
    return OLY_OK;
}

static bool same_mesh(const struct oly_mesh_impl *a, const struct oly_mesh_impl *b)
{
    return a->hash == b->hash && a->explicit_axes == b->explicit_axes && a->manual_axes == b->manual_axes &&
           oly_mesh_same_grid(a, b);
}

/* Takes ownership of mesh->devices, also on failure. */
static oly_mesh intern(struct oly_mesh_impl *mesh)
{
    uint64_t h = oly_hash(1, mesh->size, sizeof(int) * (size_t)mesh->n_axes);
    for (int k = 0; k < mesh->n_axes; k++)
        h = oly_hash_text(h, mesh->name[k]);
    if (mesh->devices)
        h = oly_hash_mix(h, mesh->list_hash = oly_hash(1, mesh->devices, sizeof(int) * (size_t)mesh->n_devices));
    if (mesh->explicit_axes | mesh->manual_axes)
        h = oly_hash_mix(h, (uint64_t)mesh->explicit_axes << 32 | mesh->manual_axes);
    mesh->hash = oly_hash_mix(h, mesh->everywhere ? 7 : 3);
    oly_intern_lock();
    const int *known = mesh->devices ? known_list(mesh) : NULL;
    if (known) {
        oly_release((void *)mesh->devices);
        mesh->devices = known;
    }
    mesh_entry *e;
    for (e = meshes; e; e = e->next)
        if (same_mesh(&e->mesh, mesh))
            break;
    if (!e && !(e = oly_calloc(1, sizeof *e))) {
        oly_out_of_memory(sizeof *e, "a mesh");
        if (!known)
            oly_release((void *)mesh->devices);
    } else if (e->mesh.n_devices == 0) { /* a new one */
        e->mesh = *mesh;
        e->mesh.tag = OLY_TAG(OLY_HANDLE_MESH);
        if (complete(e) != OLY_OK) {
            forget_mesh(e);
            e = NULL;
        } else {
            e->next = meshes;
            meshes = e;
        }
    }
    oly_intern_unlock();
    return e ? &e->mesh : NULL;
}

oly_mesh oly_mesh_default(void)
{
    if (!default_mesh) {
        struct oly_mesh_impl m = {.n_axes = 0, .n_devices = 1, .everywhere = true};
        default_mesh = (mesh_entry *)intern(&m);
    }
    return default_mesh ? &default_mesh->mesh : NULL;
}

oly_mesh oly_mesh_uncommitted(void)
{
    return uncommitted ? uncommitted : oly_mesh_default();
}

int oly_mesh_default_device(void)
{
    return uncommitted ? oly_mesh_device_id(uncommitted, 0) : -1;
}

oly_status oly_mesh_set_default_device(int id)
{
    oly_mesh mesh = id < 0 ? NULL : (oly_mesh_from_devices)(0, NULL, NULL, &id);
    if (id >= 0 && !mesh)
        return OLY_MEMORY;
    uncommitted = mesh;
    return OLY_OK;
}

int oly_mesh_device_id(oly_mesh mesh, int position)
{
    if (mesh->everywhere)
        return oly_mesh_first_local();
    return mesh->devices ? mesh->devices[position] : position;
}

int oly_mesh_device_number(oly_mesh mesh, int position)
{
    return oly_mesh_device_id(mesh, position) - (oly_mesh_is_beside(mesh) ? oly_mesh_total_devices() : 0);
}

int oly_mesh_local_device(oly_mesh mesh, int s)
{
    const mesh_entry *e = (const mesh_entry *)mesh;
    return oly_mesh_local_index(oly_mesh_device_id(mesh, e->local[s]));
}

oly_device oly_mesh_device(oly_mesh mesh, int position)
{
    OLY_ENTER(NULL);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return NULL;
    if (!mesh)
        return NULL;
    if (position < 0 || position >= mesh->n_devices) {
        oly_raise(
            oly_fail(OLY_INVALID, "position %d does not exist; the mesh has %d devices", position, mesh->n_devices));
        return NULL;
    }
    return oly_get_device(oly_mesh_device_id(mesh, position));
}

int oly_mesh_find_axis(oly_mesh mesh, const char *name)
{
    for (int k = 0; k < mesh->n_axes; k++)
        if (strcmp(mesh->name[k], name) == 0)
            return k;
    return -1;
}

void oly_mesh_coordinates(oly_mesh mesh, int position, int *coordinates)
{
    for (int k = mesh->n_axes - 1; k >= 0; k--) {
        coordinates[k] = position % mesh->size[k];
        position /= mesh->size[k];
    }
}

int oly_mesh_position(oly_mesh mesh, const int *coordinates)
{
    int p = 0;
    for (int k = 0; k < mesh->n_axes; k++)
        p = p * mesh->size[k] + coordinates[k];
    return p;
}

int oly_mesh_local_positions(oly_mesh mesh, const int **positions)
{
    const mesh_entry *e = (const mesh_entry *)mesh;
    *positions = e->local;
    return e->n_local;
}

bool oly_mesh_same_devices(oly_mesh a, oly_mesh b)
{
    if (a == b)
        return true;
    if (a->n_devices != b->n_devices || a->everywhere != b->everywhere)
        return false;
    return a->devices == b->devices;
}

bool oly_mesh_same_grid(oly_mesh a, oly_mesh b)
{
    if (a == b)
        return true;
    if (a->n_axes != b->n_axes)
        return false;
    for (int k = 0; k < a->n_axes; k++)
        if (a->size[k] != b->size[k] || strcmp(a->name[k], b->name[k]) != 0)
            return false;
    return oly_mesh_same_devices(a, b);
}

void oly_meshes_forget(void)
{
    context = uncommitted = NULL;
    while (meshes) {
        mesh_entry *e = meshes;
        meshes = e->next;
        forget_mesh(e);
    }
    default_mesh = NULL;
    oly_mesh_forget_devices();
}

/* -- making ------------------------------------------------------------------------------------------------------- */

static oly_status add_axis(struct oly_mesh_impl *m, const char *name, int64_t size)
{
    if (m->n_axes == OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "a mesh has at most %d axes", OLY_MAX_RANK);
    if (size < 1 || size > INT32_MAX)
        return oly_fail(OLY_INVALID, "mesh axis '%s' has size %lld; sizes must be at least 1", name, (long long)size);
    if (oly_mesh_find_axis(m, name) >= 0)
        return oly_fail(OLY_INVALID, "mesh axis '%s' is named twice; every axis needs a name of its own", name);
    int64_t product = (int64_t)m->n_devices * size;
    if (product > INT32_MAX)
        return oly_fail(OLY_INVALID, "the mesh needs more than %d devices, but there are %d", INT32_MAX,
                        oly_mesh_total_devices());
    strncpy(m->name[m->n_axes], name, OLY_AXIS_NAME - 1);
    m->size[m->n_axes++] = (int)size;
    m->n_devices = (int)product;
    return OLY_OK;
}

/* What may follow a size: ":explicit". */
static oly_status parse_axis_type(struct oly_mesh_impl *m, oly_scanner *s)
{
    char word[OLY_AXIS_NAME];
    if (!oly_scan_take(s, ':'))
        return OLY_OK;
    bool read = oly_scan_word(s, word, sizeof word), is_explicit = read && strcmp(word, "explicit") == 0;
    if (!is_explicit && !(read && strcmp(word, "auto") == 0))
        return oly_scan_expected(s, "the type of an axis, auto or explicit (axes are manual inside oly_shard_map)");
    if (is_explicit)
        m->explicit_axes |= 1u << (m->n_axes - 1);
    return OLY_OK;
}

static oly_status check_devices(const struct oly_mesh_impl *m, bool listed)
{
    if (m->n_devices <= (listed ? oly_mesh_all_ids() : oly_mesh_total_devices()))
        return OLY_OK;
    return oly_fail(OLY_INVALID,
                    "the mesh needs %d devices, but there are %d; make the axes smaller, start more processes, or set "
                    "OLYMPUS_NUM_CPU_DEVICES",
                    m->n_devices, oly_mesh_total_devices());
}

/* The size of an axis written as -1: the number of devices divided by the other sizes. */
static oly_status fill_axis(struct oly_mesh_impl *m, int axis)
{
    int all = oly_mesh_total_devices();
    if (axis < 0)
        return OLY_OK;
    if (all == 0 || all % m->n_devices != 0)
        return oly_fail(
            OLY_INVALID,
            "the size of mesh axis '%s' is -1, but the other axes have %d devices, which does not divide all %d",
            m->name[axis], m->n_devices, all);
    m->size[axis] = all / m->n_devices;
    m->n_devices = all;
    return OLY_OK;
}

oly_status oly_mesh_parse(struct oly_mesh_impl *m, const char *axes, int *unknown)
{
    oly_scanner s = oly_scan_begin(axes);
    int open = -1;
    m->n_devices = 1;
    while (!oly_scan_end(&s)) {
        char name[OLY_AXIS_NAME];
        int64_t size;
        if (m->n_axes && !oly_scan_take(&s, ','))
            return oly_scan_expected(&s, "','");
        if (!oly_scan_word(&s, name, sizeof name))
            return oly_scan_expected(&s, "an axis name (at most 31 letters, digits and '_')");
        if (!oly_scan_take(&s, '='))
            return oly_scan_expected(&s, "'=' and a size");
        if (!oly_scan_integer(&s, &size))
            return oly_scan_expected(&s, "a size");
        if (size == -1 && open >= 0)
            return oly_fail(OLY_INVALID, "the sizes of mesh axes '%s' and '%s' are -1; only one can be inferred",
                            m->name[open], name);
        if (size == -1)
            open = m->n_axes;
        OLY_TRY(add_axis(m, name, size == -1 ? 1 : size));
        OLY_TRY(parse_axis_type(m, &s));
    }
    *unknown = open;
    return OLY_OK;
}

/* Neighbours of the mesh are close: the same devices node by node. */
static oly_status order_devices(struct oly_mesh_impl *m)
{
    const int *order = oly_topology_order();
    int n = m->n_devices, k = 0;
    bool as_ids = true;
    if (!order)
        return OLY_OK;
    int *devices = oly_malloc(sizeof *devices * (size_t)n);
    if (!devices)
        return oly_out_of_memory(sizeof *devices * (size_t)n, "the devices of a mesh");
    for (int j = 0; k < n; j++)
        if (order[j] < n) {
            as_ids = as_ids && order[j] == k;
            devices[k++] = order[j];
        }
    if (as_ids)
        oly_release(devices);
    m->devices = as_ids ? NULL : devices;
    return OLY_OK;
}

static oly_status parse_axes(struct oly_mesh_impl *m, const char *axes)
{
    int open;
    OLY_TRY(oly_mesh_parse(m, axes, &open));
    OLY_TRY(fill_axis(m, open));
    OLY_TRY(check_devices(m, false));
    return order_devices(m);
}

oly_mesh(oly_make_mesh)(const char *axes)
{
    OLY_ENTER(NULL);
    struct oly_mesh_impl m = {.n_devices = 1};
    if (!axes) {
        oly_raise(oly_fail(OLY_INVALID, "the axes are NULL; give a notation such as \"i=4, j=2\""));
        return NULL;
    }
    oly_status st = parse_axes(&m, axes);
    oly_mesh mesh = st == OLY_OK ? intern(&m) : NULL;
    if (!mesh)
        oly_raise(st == OLY_OK ? OLY_MEMORY : st);
    return mesh;
}

static oly_status copy_devices(struct oly_mesh_impl *m, const int *devices)
{
    int n = m->n_devices;
    int *copy = oly_malloc(sizeof(int) * (size_t)n);
    unsigned char *seen = oly_calloc((size_t)oly_mesh_all_ids() + 1, 1);
    oly_status st = OLY_OK;
    bool in_order = true;
    if (!copy || !seen)
        st = oly_out_of_memory(sizeof(int) * (size_t)n, "the devices of a mesh");
    for (int p = 0; st == OLY_OK && p < n; p++) {
        int id = devices[p];
        if (id < 0 || id >= oly_mesh_all_ids())
            st = oly_fail(OLY_INVALID, "device %d does not exist; ids are 0 to %d", id, oly_mesh_all_ids() - 1);
        else if ((id < oly_mesh_total_devices()) != (devices[0] < oly_mesh_total_devices()))
            st = oly_fail(OLY_DEVICES,
                          "devices %d and %d are of different platforms, a GPU and a CPU; a mesh is of one platform "
                          "(oly_device_put moves arrays between meshes)",
                          devices[0], id);
        else if (seen[id]++)
            st = oly_fail(OLY_INVALID, "device %d is in the mesh twice; its devices must be distinct", id);
        copy[p] = id;
        in_order = in_order && id == p;
    }
    oly_release(seen);
    if (st != OLY_OK || in_order) {
        oly_release(copy);
        copy = NULL;
    }
    m->devices = copy;
    return st;
}

oly_mesh(oly_mesh_from_devices)(int n_axes, const char *const *names, const int *sizes, const int *devices)
{
    OLY_ENTER(NULL);
    struct oly_mesh_impl m = {.n_devices = 1};
    oly_status st = OLY_OK;
    if (n_axes < 0 || n_axes > OLY_MAX_RANK)
        st = oly_fail(OLY_INVALID, "a mesh of %d axes; it has 0 to %d", n_axes, OLY_MAX_RANK);
    else if (n_axes > 0 && (!names || !sizes))
        st = oly_fail(OLY_INVALID, "the list of %s is NULL", names ? "sizes" : "names");
    for (int k = 0; k < n_axes && st == OLY_OK; k++) {
        if (!names[k])
            st = oly_fail(OLY_INVALID, "the name of axis %d is NULL", k);
        else if (strlen(names[k]) >= OLY_AXIS_NAME)
            st = oly_fail(OLY_INVALID, "the axis name '%s' is longer than %d characters", names[k], OLY_AXIS_NAME - 1);
        else
            st = add_axis(&m, names[k], sizes[k]);
    }
    if (st == OLY_OK)
        st = check_devices(&m, devices != NULL);
    if (st == OLY_OK && devices)
        st = copy_devices(&m, devices);
    oly_mesh mesh = st == OLY_OK ? intern(&m) : NULL;
    if (!mesh)
        oly_raise(st == OLY_OK ? OLY_MEMORY : st);
    return mesh;
}

/* -- types of axes --------------------------------------------------------------------------------------------------- */

/* Interns m with the devices of `mesh`. */
static oly_mesh over_devices_of(oly_mesh mesh, struct oly_mesh_impl *m)
{
    if (mesh->devices) { /* each mesh owns its list */
        size_t bytes = sizeof(int) * (size_t)mesh->n_devices;
        int *copy = oly_malloc(bytes);
        if (!copy) {
            oly_out_of_memory(bytes, "the devices of a mesh");
            return NULL;
        }
        m->devices = memcpy(copy, mesh->devices, bytes);
    }
    return intern(m);
}

oly_mesh oly_mesh_retyped(oly_mesh mesh, unsigned explicit_axes, unsigned manual_axes)
{
    struct oly_mesh_impl m = *mesh;
    m.explicit_axes = explicit_axes;
    m.manual_axes = manual_axes;
    return over_devices_of(mesh, &m);
}

oly_mesh oly_mesh_regrouped(oly_mesh mesh, int n_axes, const int *size, const char (*name)[OLY_AXIS_NAME])
{
    struct oly_mesh_impl m = {.n_axes = n_axes, .n_devices = mesh->n_devices, .everywhere = mesh->everywhere};
    for (int k = 0; k < n_axes; k++) {
        m.size[k] = size[k];
        memcpy(m.name[k], name[k], sizeof m.name[k]);
    }
    return over_devices_of(mesh, &m);
}

oly_mesh(oly_mesh_with_types)(oly_mesh mesh, const oly_axis_type *types)
{
    OLY_ENTER(NULL);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return NULL;
    unsigned explicit_axes = 0;
    if (!types) {
        oly_raise(oly_fail(OLY_INVALID, "the list of types is NULL"));
        return NULL;
    }
    for (int k = 0; mesh && k < mesh->n_axes; k++) {
        if (types[k] != OLY_AXIS_AUTO && types[k] != OLY_AXIS_EXPLICIT) {
            oly_raise(oly_fail(OLY_INVALID,
                               "axis '%s' cannot be of type %d: programs make Auto and Explicit axes; axes are Manual "
                               "inside oly_shard_map",
                               mesh->name[k], (int)types[k]));
            return NULL;
        }
        explicit_axes |= types[k] == OLY_AXIS_EXPLICIT ? 1u << k : 0;
    }
    oly_mesh made = mesh ? oly_mesh_retyped(mesh, explicit_axes, 0) : NULL;
    if (mesh && !made)
        oly_raise(OLY_MEMORY);
    return made;
}

oly_axis_type oly_mesh_axis_type(oly_mesh mesh, int axis)
{
    OLY_ENTER(OLY_AXIS_AUTO);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return OLY_AXIS_AUTO;
    if (!mesh || axis < 0 || axis >= mesh->n_axes)
        return OLY_AXIS_AUTO;
    return mesh->manual_axes >> axis & 1     ? OLY_AXIS_MANUAL
           : mesh->explicit_axes >> axis & 1 ? OLY_AXIS_EXPLICIT
                                             : OLY_AXIS_AUTO;
}

oly_mesh oly_mesh_context(void)
{
    return context;
}

void oly_mesh_set_context(oly_mesh mesh)
{
    context = mesh;
}

/* -- asking -------------------------------------------------------------------------------------------------------------- */

int oly_mesh_axis_count(oly_mesh mesh)
{
    OLY_ENTER(0);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return 0;
    return mesh ? mesh->n_axes : 0;
}
const char *oly_mesh_axis_name(oly_mesh mesh, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return NULL;
    return mesh && axis >= 0 && axis < mesh->n_axes ? mesh->name[axis] : NULL;
}
int oly_mesh_axis_size(oly_mesh mesh, int axis)
{
    OLY_ENTER(0);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return 0;
    return mesh && axis >= 0 && axis < mesh->n_axes ? mesh->size[axis] : 0;
}
int oly_mesh_device_count(oly_mesh mesh)
{
    OLY_ENTER(0);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return 0;
    return mesh ? mesh->n_devices : 0;
}

int oly_mesh_str(oly_mesh mesh, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_or_null(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return -1;
    oly_text t = {0};
    oly_text_add(&t, "Mesh(");
    for (int k = 0; mesh && k < mesh->n_axes; k++)
        oly_text_add(&t, "%s'%s': %d", k ? ", " : "", mesh->name[k], mesh->size[k]);
    bool typed = mesh && (mesh->explicit_axes | mesh->manual_axes); /* all Auto: no types, as the seeds print */
    for (int k = 0; typed && k < mesh->n_axes; k++) {
        static const char *const names[] = {"Auto", "Explicit", "Manual"};
        oly_text_add(&t, "%s%s", k ? ", " : ", axis_types=(", names[oly_mesh_axis_type(mesh, k)]);
    }
    oly_text_add(&t, typed ? mesh->n_axes == 1 ? ",))" : "))" : ")");
    return oly_text_take(&t, buffer, size);
}
