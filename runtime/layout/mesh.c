/* Meshes: making, interning, looking up. See mesh.h. */
#include "layout/mesh.h"
#include "layout/intern.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/scan.h"
#include "core/text.h"
#include <string.h>

typedef struct mesh_entry {
    struct oly_mesh_impl mesh; /* first member: handles point here */
    struct mesh_entry *next;
    int n_local;
    int *local; /* owned; positions of this process's devices */
} mesh_entry;

static mesh_entry *meshes;
static mesh_entry *default_mesh;
static int total_devices, first_local, n_local_devices, n_processes, my_process;
static oly_mesh context;     /* of oly_set_mesh */
static oly_mesh uncommitted; /* of oly_set_default_device; NULL: unset */
static int *first_of;        /* owned; first id of each process, and the total */

oly_status oly_mesh_set_devices(int processes, const int *counts, int me)
{
    first_of = oly_malloc(sizeof(int) * (size_t)(processes + 1));
    if (!first_of)
        return oly_out_of_memory(sizeof(int) * (size_t)processes, "the devices of the job");
    total_devices = 0;
    for (int r = 0; r < processes; r++) {
        first_of[r] = total_devices;
        total_devices += counts[r];
    }
    first_of[processes] = total_devices;
    n_processes = processes;
    my_process = me;
    first_local = first_of[me];
    n_local_devices = counts[me];
    return OLY_OK;
}

int oly_mesh_total_devices(void)
{
    return total_devices;
}
int oly_mesh_processes(void)
{
    return n_processes;
}
int oly_mesh_my_process(void)
{
    return my_process;
}
int oly_mesh_first_local(void)
{
    return first_local;
}
int oly_mesh_local_devices(void)
{
    return n_local_devices;
}

int oly_mesh_process_of(int device_id)
{
    int low = 0, high = n_processes - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (first_of[middle + 1] > device_id)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool is_local(int id)
{
    return id >= first_local && id < first_local + n_local_devices;
}

static oly_status find_local(mesh_entry *e)
{
    const struct oly_mesh_impl *m = &e->mesh;
    int n = 0;
    for (int p = 0; p < m->n_devices; p++)
        n += is_local(oly_mesh_device_id(m, p));
    e->local = oly_malloc(sizeof(int) * (size_t)(n ? n : 1));
    if (!e->local)
        return oly_out_of_memory(sizeof(int) * (size_t)n, "the positions of a mesh");
    for (int p = 0; p < m->n_devices; p++)
        if (is_local(oly_mesh_device_id(m, p)))
            e->local[e->n_local++] = p;
    return OLY_OK;
}

/* Where the process changes between two neighbours along an axis, no run may go across. */
static void find_together(struct oly_mesh_impl *m)
{
    for (int a = m->n_axes - 1, stride = 1; a >= 0; stride *= m->size[a--]) {
        m->together[a] = 1;
        while (m->together[a] < m->size[a])
            m->together[a] *= 2;
        for (int p = 0; p < m->n_devices; p++) {
            int c = p / stride % m->size[a];
            if (c % m->together[a] != 0 &&
                oly_mesh_process_of(oly_mesh_device_id(m, p)) != oly_mesh_process_of(oly_mesh_device_id(m, p - stride)))
                m->together[a] = c & -c;
        }
    }
}

static bool same_mesh(const struct oly_mesh_impl *a, const struct oly_mesh_impl *b)
{
    return a->hash == b->hash && a->explicit_axes == b->explicit_axes && a->manual_axes == b->manual_axes &&
           oly_mesh_same_grid(a, b);
}

/* Takes mesh->devices over, whatever comes. */
static oly_mesh intern(struct oly_mesh_impl *mesh)
{
    uint64_t h = oly_hash(1, mesh->size, sizeof(int) * (size_t)mesh->n_axes);
    for (int k = 0; k < mesh->n_axes; k++)
        h = oly_hash_text(h, mesh->name[k]);
    if (mesh->devices)
        h = oly_hash(h, mesh->devices, sizeof(int) * (size_t)mesh->n_devices);
    if (mesh->explicit_axes | mesh->manual_axes)
        h = oly_hash_mix(h, (uint64_t)mesh->explicit_axes << 32 | mesh->manual_axes);
    mesh->hash = oly_hash_mix(h, mesh->everywhere ? 7 : 3);
    oly_intern_lock();
    mesh_entry *e;
    for (e = meshes; e; e = e->next)
        if (same_mesh(&e->mesh, mesh))
            break;
    if (e) {
        oly_release((void *)mesh->devices);
    } else if (!(e = oly_calloc(1, sizeof *e))) {
        oly_out_of_memory(sizeof *e, "a mesh");
        oly_release((void *)mesh->devices);
    } else {
        e->mesh = *mesh;
        find_together(&e->mesh);
        if (find_local(e) != OLY_OK) {
            oly_release((void *)mesh->devices);
            oly_release(e);
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
        return first_local;
    return mesh->devices ? mesh->devices[position] : position;
}

oly_device oly_mesh_device(oly_mesh mesh, int position)
{
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
    if (!a->devices && !b->devices)
        return true;
    for (int p = 0; p < a->n_devices; p++)
        if (oly_mesh_device_id(a, p) != oly_mesh_device_id(b, p))
            return false;
    return true;
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
        oly_release((void *)e->mesh.devices);
        oly_release(e->local);
        oly_release(e);
    }
    default_mesh = NULL;
    oly_release(first_of);
    first_of = NULL;
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
        return oly_fail(OLY_INVALID, "the mesh needs more than %d devices, but there are %d", INT32_MAX, total_devices);
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

static oly_status check_devices(const struct oly_mesh_impl *m)
{
    if (m->n_devices <= total_devices)
        return OLY_OK;
    return oly_fail(OLY_INVALID,
                    "the mesh needs %d devices, but there are %d; make the axes smaller, start more processes, or set "
                    "OLYMPUS_NUM_CPU_DEVICES",
                    m->n_devices, total_devices);
}

static oly_status parse_axes(struct oly_mesh_impl *m, const char *axes)
{
    oly_scanner s = oly_scan_begin(axes);
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
        OLY_TRY(add_axis(m, name, size));
        OLY_TRY(parse_axis_type(m, &s));
    }
    return check_devices(m);
}

oly_mesh(oly_make_mesh)(const char *axes)
{
    oly_enter(__func__);
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
    unsigned char *seen = oly_calloc((size_t)total_devices, 1);
    oly_status st = OLY_OK;
    bool in_order = true;
    if (!copy || !seen)
        st = oly_out_of_memory(sizeof(int) * (size_t)n, "the devices of a mesh");
    for (int p = 0; st == OLY_OK && p < n; p++) {
        int id = devices[p];
        if (id < 0 || id >= total_devices)
            st = oly_fail(OLY_INVALID, "device %d does not exist; ids are 0 to %d", id, total_devices - 1);
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
    oly_enter(__func__);
    struct oly_mesh_impl m = {.n_devices = 1};
    oly_status st = OLY_OK;
    for (int k = 0; k < n_axes && st == OLY_OK; k++) {
        if (strlen(names[k]) >= OLY_AXIS_NAME)
            st = oly_fail(OLY_INVALID, "the axis name '%s' is longer than %d characters", names[k], OLY_AXIS_NAME - 1);
        else
            st = add_axis(&m, names[k], sizes[k]);
    }
    if (st == OLY_OK)
        st = check_devices(&m);
    if (st == OLY_OK && devices)
        st = copy_devices(&m, devices);
    oly_mesh mesh = st == OLY_OK ? intern(&m) : NULL;
    if (!mesh)
        oly_raise(st == OLY_OK ? OLY_MEMORY : st);
    return mesh;
}

/* -- types of axes --------------------------------------------------------------------------------------------------- */

oly_mesh oly_mesh_retyped(oly_mesh mesh, unsigned explicit_axes, unsigned manual_axes)
{
    struct oly_mesh_impl m = *mesh;
    m.explicit_axes = explicit_axes;
    m.manual_axes = manual_axes;
    if (mesh->devices) { /* each mesh owns its list */
        size_t bytes = sizeof(int) * (size_t)mesh->n_devices;
        int *copy = oly_malloc(bytes);
        if (!copy) {
            oly_out_of_memory(bytes, "the devices of a mesh");
            return NULL;
        }
        m.devices = memcpy(copy, mesh->devices, bytes);
    }
    return intern(&m);
}

oly_mesh(oly_mesh_with_types)(oly_mesh mesh, const oly_axis_type *types)
{
    oly_enter(__func__);
    unsigned explicit_axes = 0;
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
    return mesh ? mesh->n_axes : 0;
}
const char *oly_mesh_axis_name(oly_mesh mesh, int axis)
{
    return mesh && axis >= 0 && axis < mesh->n_axes ? mesh->name[axis] : NULL;
}
int oly_mesh_axis_size(oly_mesh mesh, int axis)
{
    return mesh && axis >= 0 && axis < mesh->n_axes ? mesh->size[axis] : 0;
}
int oly_mesh_device_count(oly_mesh mesh)
{
    return mesh ? mesh->n_devices : 0;
}

int oly_mesh_str(oly_mesh mesh, char *buffer, size_t size)
{
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
