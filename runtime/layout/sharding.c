/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition specs and shardings: reading, checking, interning, printing. See sharding.h. */
#include "layout/sharding.h"
#include "layout/intern.h"
#include "layout/layout.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/scan.h"
#include "core/text.h"
#include <pthread.h>
#include <string.h>

typedef struct sharding_entry {
    struct oly_sharding_impl sharding; /* first member: handles point here */
    struct sharding_entry *next;
} sharding_entry;

enum { SHARDING_LISTS = 512 };
static sharding_entry *shardings[SHARDING_LISTS]; /* by hash */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void oly_intern_lock(void)
{
    pthread_mutex_lock(&lock);
}
void oly_intern_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void oly_layout_stop(void)
{
    for (int k = 0; k < SHARDING_LISTS; k++)
        while (shardings[k]) {
            sharding_entry *e = shardings[k];
            shardings[k] = e->next;
            e->sharding.tag = OLY_DEAD_TAG(OLY_HANDLE_SHARDING);
            oly_bury(e);
        }
    oly_permutations_forget();
    oly_meshes_forget();
}

static bool same_spec(const oly_spec *a, const oly_spec *b)
{
    if (a->n_dims != b->n_dims || a->unreduced != b->unreduced || a->reduced != b->reduced || a->open != b->open)
        return false;
    for (int d = 0; d < a->n_dims; d++)
        if (a->dim[d].n != b->dim[d].n || memcmp(a->dim[d].axis, b->dim[d].axis, a->dim[d].n) != 0)
            return false;
    return true;
}

oly_sharding oly_sharding_intern(oly_mesh mesh, const oly_spec *spec, int written_dims)
{
    oly_spec s = *spec;
    while (s.n_dims > 0 && s.dim[s.n_dims - 1].n == 0 && !(s.open >> (s.n_dims - 1) & 1))
        s.n_dims--;
    uint64_t h = oly_hash_mix(mesh->hash, (uint64_t)s.n_dims);
    for (int d = 0; d < s.n_dims; d++)
        h = oly_hash(oly_hash_mix(h, s.dim[d].n), s.dim[d].axis, s.dim[d].n);
    if (s.unreduced | s.reduced)
        h = oly_hash_mix(h, (uint64_t)s.unreduced << 32 | s.reduced);
    if (s.open)
        h = oly_hash_mix(h, s.open);
    oly_intern_lock();
    sharding_entry **list = &shardings[h % SHARDING_LISTS], *e = *list;
    while (e && !(e->sharding.hash == h && e->sharding.mesh == mesh && same_spec(&e->sharding.spec, &s)))
        e = e->next;
    if (!e && (e = oly_calloc(1, sizeof *e))) {
        e->sharding = (struct oly_sharding_impl){OLY_TAG(OLY_HANDLE_SHARDING), mesh, s, written_dims, h};
        e->next = *list;
        *list = e;
    }
    oly_intern_unlock();
    if (!e)
        oly_out_of_memory(sizeof *e, "a sharding");
    return e ? &e->sharding : NULL;
}

oly_sharding oly_sharding_uncommitted(void)
{
    oly_mesh m = oly_mesh_uncommitted();
    return m ? oly_sharding_intern(m, &(oly_spec){0}, 0) : NULL;
}

oly_sharding oly_sharding_default(void)
{
    oly_mesh m = oly_mesh_default();
    return m ? oly_sharding_intern(m, &(oly_spec){0}, 0) : NULL;
}

bool oly_axis_list_equal(const oly_axis_list *a, const oly_axis_list *b)
{
    return a->n == b->n && memcmp(a->axis, b->axis, a->n) == 0; /* entries beyond n have no meaning */
}

int oly_axis_list_parts(oly_mesh mesh, const oly_axis_list *list)
{
    int parts = 1;
    for (int k = 0; k < list->n; k++)
        parts *= mesh->size[list->axis[k]];
    return parts;
}

static void axis_list_text(oly_text *t, oly_mesh mesh, const oly_axis_list *l)
{
    if (l->n == 0)
        oly_text_add(t, "None");
    if (l->n > 1)
        oly_text_add(t, "(");
    for (int k = 0; k < l->n; k++)
        oly_text_add(t, "%s'%s'", k ? ", " : "", mesh->name[l->axis[k]]);
    if (l->n > 1)
        oly_text_add(t, ")");
}

/* ", unreduced={'x', 'y'}" */
static void axis_set_text(oly_text *t, oly_mesh mesh, unsigned set, const char *name, bool comma)
{
    if (!set)
        return;
    oly_text_add(t, "%s%s={", comma ? ", " : "", name);
    for (int k = 0, n = 0; k < mesh->n_axes; k++)
        if (set >> k & 1)
            oly_text_add(t, "%s'%s'", n++ ? ", " : "", mesh->name[k]);
    oly_text_add(t, "}");
}

void oly_spec_text(struct oly_text *t, oly_mesh mesh, const oly_spec *spec, int written_dims)
{
    static const oly_axis_list none;
    int n = written_dims > spec->n_dims ? written_dims : spec->n_dims;
    oly_text_add(t, "P(");
    for (int d = 0; d < n; d++) {
        oly_text_add(t, d ? ", " : "");
        if (spec->open >> d & 1)
            oly_text_add(t, "UNCONSTRAINED");
        else
            axis_list_text(t, mesh, d < spec->n_dims ? &spec->dim[d] : &none);
    }
    axis_set_text(t, mesh, spec->unreduced, "unreduced", n > 0);
    axis_set_text(t, mesh, spec->reduced, "reduced", n > 0 || spec->unreduced);
    oly_text_add(t, n == 1 && !(spec->unreduced | spec->reduced) ? ",)" : ")");
}

oly_status oly_sharding_check_closed(oly_sharding s)
{
    if (!s->spec.open)
        return OLY_OK;
    oly_text t = {0};
    oly_spec_text(&t, s->mesh, &s->spec, s->written_dims);
    oly_status st =
        oly_fail(OLY_SHARDING,
                 "the spec %s leaves a dimension UNCONSTRAINED, which only a constraint on a value inside a "
                 "program may (oly_with_sharding_constraint): say here how it is split, or None",
                 oly_text_chars(&t));
    oly_text_free(&t);
    return st;
}

oly_status oly_sharding_check_rank(oly_sharding s, int rank)
{
    OLY_TRY(oly_sharding_check_closed(s));
    return oly_sharding_check_constraint(s, rank);
}

oly_status oly_sharding_check_constraint(oly_sharding s, int rank)
{
    if (s->spec.n_dims <= rank)
        return OLY_OK;
    oly_text t = {0};
    oly_spec_text(&t, s->mesh, &s->spec, s->written_dims);
    oly_status st =
        oly_fail(OLY_SHARDING,
                 "the spec %s has %d entries, but the array has %d dimension%s; a spec may not be longer than "
                 "the array's rank [spec_rank]",
                 oly_text_chars(&t), s->spec.n_dims, rank, rank == 1 ? "" : "s");
    oly_text_free(&t);
    return st;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

/* Axis number by name; each may be used once in a spec. */
static oly_status use_axis(oly_mesh mesh, const char *name, unsigned *used, int *axis)
{
    *axis = oly_mesh_find_axis(mesh, name);
    if (*axis < 0) {
        char text[256];
        oly_mesh_str(mesh, text, sizeof text);
        return oly_fail(OLY_SHARDING,
                        "axis '%s' is not found in %s; a spec may only name axes of its mesh "
                        "[unknown_axis]",
                        name, text);
    }
    if (*used >> *axis & 1)
        return oly_fail(OLY_SHARDING,
                        "the spec has duplicate entries for '%s'; a mesh axis can split only one dimension "
                        "[duplicate_axis]",
                        name);
    *used |= 1u << *axis;
    return OLY_OK;
}

static oly_status add_axis(oly_mesh mesh, oly_axis_list *list, const char *name, unsigned *used)
{
    int axis;
    OLY_TRY(use_axis(mesh, name, used, &axis));
    list->axis[list->n++] = (uint8_t)axis;
    return OLY_OK;
}

static bool is_none(const char *word)
{
    return strcmp(word, "None") == 0;
}

/* An axis name, with or without quotes. */
static bool scan_name(oly_scanner *s, char *word, size_t size)
{
    bool quoted = oly_scan_take(s, '\'');
    return oly_scan_word(s, word, size) && (!quoted || oly_scan_take(s, '\''));
}

/* A dimension is left to the planner, which splits over Auto axes only. */
static oly_status leave_open(oly_mesh mesh, bool *open)
{
    unsigned all = (1u << mesh->n_axes) - 1;
    *open = (mesh->explicit_axes | mesh->manual_axes) != all;
    if (*open)
        return OLY_OK;
    char text[256];
    oly_mesh_str(mesh, text, sizeof text);
    return oly_fail(OLY_SHARDING,
                    "UNCONSTRAINED leaves a dimension to the planner, which splits over Auto axes, and %s has none; "
                    "say how the dimension is split, or None",
                    text);
}

static oly_status parse_entry(oly_mesh mesh, oly_scanner *s, oly_axis_list *list, unsigned *used, bool *open)
{
    char word[OLY_AXIS_NAME];
    if (!oly_scan_take(s, '(')) {
        if (!scan_name(s, word, sizeof word))
            return oly_scan_expected(s, "an axis name, None, UNCONSTRAINED, or '('");
        if (strcmp(word, "UNCONSTRAINED") == 0 && oly_mesh_find_axis(mesh, word) < 0)
            return leave_open(mesh, open);
        return is_none(word) ? OLY_OK : add_axis(mesh, list, word, used);
    }
    while (!oly_scan_take(s, ')')) {
        if (!scan_name(s, word, sizeof word))
            return oly_scan_expected(s, "an axis name or ')'");
        OLY_TRY(add_axis(mesh, list, word, used));
        if (!oly_scan_take(s, ',') && oly_scan_peek(s) != ')')
            return oly_scan_expected(s, "',' or ')'");
    }
    return OLY_OK;
}

/* Whether "unreduced=" or "reduced=" comes next; consumes it. */
static bool scan_set(oly_scanner *s, const char *which)
{
    char word[OLY_AXIS_NAME];
    oly_scanner ahead = *s;
    if (!oly_scan_word(&ahead, word, sizeof word) || strcmp(word, which) != 0 || !oly_scan_take(&ahead, '='))
        return false;
    *s = ahead;
    return true;
}

/* "{x, y}", or one name. */
static oly_status parse_set(oly_mesh mesh, oly_scanner *s, const char *which, unsigned *set, unsigned *used)
{
    char word[OLY_AXIS_NAME];
    int axis;
    bool braces = oly_scan_take(s, '{');
    do {
        if (!scan_name(s, word, sizeof word))
            return oly_scan_expected(s, "an axis name");
        OLY_TRY(use_axis(mesh, word, used, &axis));
        if (!(mesh->explicit_axes >> axis & 1))
            return oly_fail(OLY_SHARDING, "axis '%s' cannot be %s: only Explicit axes can (\"%s=%d:explicit\")", word,
                            which, word, mesh->size[axis]);
        *set |= 1u << axis;
    } while (braces && oly_scan_take(s, ','));
    return braces && !oly_scan_take(s, '}') ? oly_scan_expected(s, "',' or '}'") : OLY_OK;
}

oly_status oly_spec_parse(oly_mesh mesh, const char *text, oly_spec *spec)
{
    unsigned used = 0;
    *spec = (oly_spec){0};
    oly_scanner s = oly_scan_begin(text);
    oly_scanner ahead = s;
    bool wrapped = oly_scan_take(&ahead, 'P') && oly_scan_take(&ahead, '(');
    if (wrapped)
        s = ahead;
    while (!oly_scan_end(&s) && !(wrapped && oly_scan_peek(&s) == ')')) {
        bool unreduced = scan_set(&s, "unreduced");
        if (unreduced || scan_set(&s, "reduced")) {
            OLY_TRY(parse_set(mesh, &s, unreduced ? "unreduced" : "reduced",
                              unreduced ? &spec->unreduced : &spec->reduced, &used));
            if (!oly_scan_take(&s, ','))
                break;
            continue;
        }
        if (spec->n_dims == OLY_MAX_RANK)
            return oly_fail(OLY_SHARDING, "the spec \"%s\" has more than %d entries", text, OLY_MAX_RANK);
        bool open = false;
        OLY_TRY(parse_entry(mesh, &s, &spec->dim[spec->n_dims], &used, &open));
        spec->open |= (unsigned)open << spec->n_dims++;
        if (!oly_scan_take(&s, ','))
            break;
    }
    if (wrapped && !oly_scan_take(&s, ')'))
        return oly_scan_expected(&s, "',' or ')'");
    return oly_scan_end(&s) ? OLY_OK : oly_scan_expected(&s, "',' or the end");
}

static oly_sharding finish(oly_status st, oly_mesh mesh, const oly_spec *spec)
{
    oly_sharding s = st == OLY_OK ? oly_sharding_intern(mesh, spec, spec->n_dims) : NULL;
    if (!s)
        oly_raise(st == OLY_OK ? OLY_MEMORY : st);
    return s;
}

/* A handle that is NULL without an earlier error. */
static oly_sharding missing(const char *what, const char *maker)
{
    if (oly_kept_status() == OLY_OK)
        oly_raise(oly_fail(OLY_INVALID, "the %s is NULL; take one from %s", what, maker));
    return NULL;
}

oly_sharding(oly_named)(oly_mesh mesh, const char *text)
{
    OLY_ENTER(NULL);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return NULL;
    oly_spec spec = {0};
    if (!mesh)
        return missing("mesh", "oly_make_mesh");
    if (!text)
        return finish(oly_fail(OLY_INVALID, "the spec is NULL; give a notation such as \"i, None\""), mesh, &spec);
    return finish(oly_spec_parse(mesh, text, &spec), mesh, &spec);
}

oly_sharding(oly_named_axes)(oly_mesh mesh, int n_dims, const int *const *axes)
{
    OLY_ENTER(NULL);
    if (oly_need(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return NULL;
    oly_spec spec = {0};
    unsigned used = 0;
    oly_status st = OLY_OK;
    if (!mesh)
        return missing("mesh", "oly_make_mesh");
    if (n_dims < 0 || n_dims > OLY_MAX_RANK)
        st = oly_fail(OLY_SHARDING, "the spec has %d entries; 0 to %d are possible", n_dims, OLY_MAX_RANK);
    else if (n_dims > 0 && !axes)
        st = oly_fail(OLY_INVALID, "the list of axes is NULL");
    for (int d = 0; d < n_dims && st == OLY_OK; d++) {
        spec.n_dims = d + 1;
        for (const int *a = axes[d]; st == OLY_OK && a && *a >= 0; a++)
            st = *a < mesh->n_axes
                     ? add_axis(mesh, &spec.dim[d], mesh->name[*a], &used)
                     : oly_fail(OLY_SHARDING, "axis number %d is not in the mesh, which has %d axes", *a, mesh->n_axes);
    }
    return finish(st, mesh, &spec);
}

/* -- asking ------------------------------------------------------------------------------------------------------- */

oly_mesh oly_sharding_mesh(oly_sharding s)
{
    OLY_ENTER(NULL);
    if (oly_need(s, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    return s ? s->mesh : NULL;
}

bool oly_sharding_is_replicated(oly_sharding s)
{
    OLY_ENTER(false);
    if (oly_need(s, OLY_HANDLE_SHARDING) != OLY_OK)
        return false;
    for (int d = 0; s && d < s->spec.n_dims; d++)
        if (oly_axis_list_parts(s->mesh, &s->spec.dim[d]) > 1)
            return false;
    return true;
}

static oly_status check_shape(int rank, const int64_t *shape)
{
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "an array has 0 to %d dimensions, not %d", OLY_MAX_RANK, rank);
    return rank == 0 || shape ? OLY_OK : oly_fail(OLY_INVALID, "the shape of %d dimensions is NULL", rank);
}

bool oly_sharding_equivalent(oly_sharding a, oly_sharding b, int rank, const int64_t *shape)
{
    OLY_ENTER(false);
    if (oly_need(a, OLY_HANDLE_SHARDING) != OLY_OK || oly_need(b, OLY_HANDLE_SHARDING) != OLY_OK)
        return false;
    if (oly_raise(check_shape(rank, shape)) != OLY_OK)
        return false;
    if (a == b)
        return true;
    if (!a || !b || !oly_mesh_same_devices(a->mesh, b->mesh) || a->spec.n_dims > rank || b->spec.n_dims > rank)
        return false;
    oly_layout la = oly_layout_canonical(a, rank, shape), lb = oly_layout_canonical(b, rank, shape);
    for (int p = 0; p < a->mesh->n_devices; p++) {
        oly_box x = oly_layout_box(&la, p), y = oly_layout_box(&lb, p);
        if (!oly_box_contains(&x, &y) || !oly_box_contains(&y, &x))
            return false;
    }
    return true;
}

oly_status oly_sharding_shard(oly_sharding s, int rank, const int64_t *shape, int position, int64_t *start,
                              int64_t *extent)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(s, OLY_HANDLE_SHARDING));
    if (!s)
        return OLY_INVALID;
    oly_status st = check_shape(rank, shape);
    if (st == OLY_OK && rank > 0 && (!start || !extent))
        st = oly_fail(OLY_INVALID, "the room for the start, or the extent, of the shard is NULL");
    if (st == OLY_OK)
        st = oly_sharding_check_rank(s, rank);
    if (st == OLY_OK && (position < 0 || position >= s->mesh->n_devices))
        st =
            oly_fail(OLY_INVALID, "position %d is not in the mesh, which has %d devices", position, s->mesh->n_devices);
    if (st != OLY_OK)
        return oly_raise(st);
    oly_layout l = oly_layout_canonical(s, rank, shape);
    oly_box b = oly_layout_shard(&l, position);
    for (int d = 0; d < rank; d++) {
        start[d] = b.lo[d];
        extent[d] = b.hi[d] - b.lo[d];
    }
    return OLY_OK;
}

int oly_spec_str(oly_sharding s, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_or_null(s, OLY_HANDLE_SHARDING) != OLY_OK)
        return -1;
    oly_text t = {0};
    if (s)
        oly_spec_text(&t, s->mesh, &s->spec, s->written_dims);
    return oly_text_take(&t, buffer, size);
}

int oly_sharding_str(oly_sharding s, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_or_null(s, OLY_HANDLE_SHARDING) != OLY_OK)
        return -1;
    oly_text t = {0};
    if (!s) {
        oly_text_add(&t, "None");
    } else if (s->mesh->n_axes == 0) {
        const char *platform = oly_device_platform(oly_mesh_device(s->mesh, 0));
        oly_text_add(&t, "SingleDeviceSharding(device=%s(id=%d))",
                     platform && strcmp(platform, "cuda") == 0 ? "CudaDevice" : "CpuDevice",
                     oly_mesh_device_number(s->mesh, 0));
    } else {
        char mesh[512];
        oly_mesh_str(s->mesh, mesh, sizeof mesh);
        oly_text_add(&t, "NamedSharding(mesh=%s, spec=", mesh);
        oly_spec_text(&t, s->mesh, &s->spec, s->written_dims);
        oly_text_add(&t, ")");
    }
    return oly_text_take(&t, buffer, size);
}

oly_sharding(oly_single_device)(oly_device device)
{
    OLY_ENTER(NULL);
    if (oly_need(device, OLY_HANDLE_DEVICE) != OLY_OK)
        return NULL;
    if (!device)
        return missing("device", "oly_get_device");
    int id = oly_device_id(device);
    oly_mesh mesh = (oly_mesh_from_devices)(0, NULL, NULL, &id);
    return mesh ? finish(OLY_OK, mesh, &(oly_spec){0}) : NULL;
}
