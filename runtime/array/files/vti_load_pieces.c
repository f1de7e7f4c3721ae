/* SPDX-License-Identifier: BSD-3-Clause */
/* See vti_load_pieces.h. All processes read the .pvti and the header of its first piece, which say what the array is; then each opens the
 * pieces that have elements of its shards. Pieces of points share those between them; whichever is read last counts. */
#include "array/files/vti_load_pieces.h"
#include "array/files/load.h"
#include "array/files/parts.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "device/platform.h"
#include "file/file.h"
#include <stdlib.h>
#include <string.h>

enum { LARGEST_TEXT = 1 << 28 /* bytes of a .pvti */, MOST_CELLS = 1 << 24 };

typedef struct loading {
    oly_vti_source *l; /* the first piece */
    char *folder;      /* of the .pvti, with its '/'; owned */
    oly_pvti pvti;
    oly_type type; /* of the whole */
} loading;

bool oly_names_pieces(const char *path)
{
    size_t n = path ? strlen(path) : 0;
    return n >= 5 && strcmp(path + n - 5, ".pvti") == 0;
}

/* -- pieces ---------------------------------------------------------------------------------------------------------------- */

/* What a piece holds of the whole, in the array's order, with all components. */
static oly_box piece_box(const loading *g, int k)
{
    const int64_t *extent = g->pvti.piece[k].extent, *whole = g->pvti.whole;
    oly_box box = {.rank = g->type.rank};
    for (int d = 0; d < box.rank; d++) {
        int axis = g->pvti.rank - 1 - d;
        box.lo[d] = axis < 0 ? 0 : extent[2 * axis] - whole[2 * axis];
        box.hi[d] = axis < 0 ? g->type.shape[d] : extent[2 * axis + 1] - whole[2 * axis] + (g->l->vti.cells ? 0 : 1);
    }
    return box;
}

static char *piece_path(const loading *g, int k)
{
    const char *name = g->pvti.piece[k].name;
    size_t n = *name == '/' ? 0 : strlen(g->folder), m = strlen(name) + 1;
    char *path = oly_malloc(n + m);
    if (path) {
        memcpy(path, g->folder, n);
        memcpy(path + n, name, m);
    }
    return path;
}

/* Is a piece what the .pvti says, with the same kind of elements as the first? */
static oly_status check_piece(const loading *g, int k, const oly_vti_source *l, const oly_box *box)
{
    oly_type type = oly_vti_source_type(l);
    bool same = type.dtype == g->type.dtype && type.rank == g->type.rank && l->vti.cells == g->l->vti.cells;
    for (int d = 0; d < type.rank && same; d++)
        same = type.shape[d] == box->hi[d] - box->lo[d];
    for (int d = 0; d < g->pvti.rank && same; d++)
        same = l->vti.start[d] == g->pvti.piece[k].extent[2 * (g->pvti.rank - 1 - d)];
    return same ? OLY_OK
                : oly_fail(OLY_IO,
                           "cannot read %s: its \"%s\" has another extent or type than %s and the first piece say",
                           l->path, l->field->name, g->l->path);
}

/* Opens piece k; the first one, whose field says what the array is, before the type is known. The caller closes the file and frees path
 * and fields. */
static oly_status open_piece(const loading *g, int k, oly_vti_source *l, int *file)
{
    oly_file_facts facts;
    *file = -1;
    *l = (oly_vti_source){.path = piece_path(g, k), .name = g->l->name};
    if (!l->path)
        return oly_out_of_memory(OLY_VTI_NAME, "a path");
    OLY_TRY(oly_file_open(l->path, file, &facts));
    return oly_vti_source_read(l, *file, facts.size, g->pvti.rank);
}

static void close_piece(oly_vti_source *l, int file)
{
    if (file >= 0)
        oly_storage_get()->close(file);
    oly_release(l->vti.field);
    oly_release((char *)(uintptr_t)l->path);
}

static bool meets(const oly_box *a, const oly_box *b)
{
    oly_box both = oly_box_intersect(a, b);
    return oly_box_count(&both) > 0;
}

/* The elements of `held` that the piece has, into memory for these. */
static oly_status read_part(const oly_file_array *from, const oly_box *piece, const oly_box *held, void *memory)
{
    oly_box part = oly_box_intersect(piece, held), all = *held;
    for (int d = 0; d < part.rank; d++) {
        part.lo[d] -= piece->lo[d];
        part.hi[d] -= piece->lo[d];
        all.lo[d] -= piece->lo[d];
        all.hi[d] -= piece->lo[d];
    }
    return oly_box_count(&part) > 0 ? oly_file_read_box(from, &part, &all, memory) : OLY_OK;
}

static oly_status read_piece(const loading *g, int k, const oly_parts_mapped *m)
{
    oly_vti_source l;
    oly_box box = piece_box(g, k);
    int file;
    oly_status st = open_piece(g, k, &l, &file);
    if (st == OLY_OK)
        st = check_piece(g, k, &l, &box);
    if (st == OLY_OK) {
        oly_file_array from = oly_vti_source_region(&l, file);
        for (int s = 0; s < m->n && st == OLY_OK; s++)
            if (m->memory[s])
                st = read_part(&from, &box, &m->box[s], m->memory[s]);
    }
    close_piece(&l, file);
    return st;
}

/* -- is everything there? -------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Where pieces begin or end inside a box along dimension d, and its ends: ascending, each once. Returns how many. */
static int find_cuts(const loading *g, const oly_box *box, int d, int64_t *cuts)
{
    int n = 0, kept = 1;
    cuts[n++] = box->lo[d];
    cuts[n++] = box->hi[d];
    for (int k = 0; k < g->pvti.n; k++) {
        oly_box piece = piece_box(g, k);
        if (!meets(&piece, box))
            continue;
        cuts[n++] = oly_larger(piece.lo[d], box->lo[d]);
        cuts[n++] = oly_smaller(piece.hi[d], box->hi[d]);
    }
    qsort(cuts, (size_t)n, sizeof *cuts, ascending);
    for (int k = 1; k < n; k++)
        if (cuts[k] != cuts[kept - 1])
            cuts[kept++] = cuts[k];
    return kept;
}

static int find(const int64_t *cuts, int n, int64_t value)
{
    const int64_t *at = bsearch(&value, cuts, (size_t)n, sizeof *cuts, ascending);
    return at ? (int)(at - cuts) : 0;
}

/* Between the cuts the box is a grid of cells, each of which is in a piece or is not. */
typedef struct cover {
    int64_t *cuts[OLY_MAX_RANK]; /* owned */
    int n[OLY_MAX_RANK];
    int64_t cells;
    bool *covered; /* owned; [cells] */
} cover;

static void mark_piece(cover *c, const oly_box *part)
{
    int at[OLY_MAX_RANK], lo[OLY_MAX_RANK], hi[OLY_MAX_RANK] = {0};
    for (int d = 0; d < part->rank; d++) {
        at[d] = lo[d] = find(c->cuts[d], c->n[d], part->lo[d]);
        hi[d] = find(c->cuts[d], c->n[d], part->hi[d]);
    }
    for (int d = 0; d >= 0;) {
        int64_t cell = 0;
        for (int e = 0; e < part->rank; e++)
            cell = cell * (c->n[e] - 1) + at[e];
        c->covered[cell] = true;
        for (d = part->rank - 1; d >= 0; d--) {
            if (++at[d] < hi[d])
                break;
            at[d] = lo[d];
        }
    }
}

static oly_status find_cells(const loading *g, const oly_box *box, cover *c)
{
    c->cells = 1;
    for (int d = 0; d < box->rank; d++) {
        size_t bytes = sizeof *c->cuts[d] * (2 * (size_t)g->pvti.n + 2);
        c->cuts[d] = oly_malloc(bytes);
        if (!c->cuts[d])
            return oly_out_of_memory(bytes, "the pieces of a file");
        c->n[d] = find_cuts(g, box, d, c->cuts[d]);
        c->cells *= c->n[d] - 1;
        if (c->cells > MOST_CELLS)
            return oly_fail(OLY_IO, "cannot read %s: its pieces are too many, or too irregular", g->l->path);
    }
    c->covered = oly_calloc((size_t)c->cells, sizeof *c->covered);
    return c->covered ? OLY_OK : oly_out_of_memory((size_t)c->cells, "the pieces of a file");
}

/* fails unless the pieces have all elements of the box. */
static oly_status check_cover(const loading *g, const char *path, const oly_box *box)
{
    cover c = {.cells = 0};
    oly_status st = find_cells(g, box, &c);
    for (int k = 0; k < g->pvti.n && st == OLY_OK; k++) {
        oly_box piece = piece_box(g, k), part = oly_box_intersect(&piece, box);
        if (oly_box_count(&part) > 0)
            mark_piece(&c, &part);
    }
    for (int64_t cell = 0; cell < c.cells && st == OLY_OK; cell++)
        if (!c.covered[cell])
            st = oly_fail(OLY_IO, "cannot read %s: its pieces leave out a part of the whole", path);
    for (int d = 0; d < box->rank; d++)
        oly_release(c.cuts[d]);
    oly_release(c.covered);
    return st;
}

/* -- the whole ------------------------------------------------------------------------------------------------------------- */

static oly_status read_text(const oly_shared_file *f, loading *g, uint64_t *contents)
{
    if (f->facts.size > LARGEST_TEXT)
        return oly_fail(OLY_IO, "cannot read %s: it is too long for a list of pieces", f->path);
    size_t n = (size_t)f->facts.size;
    char *bytes = oly_malloc(n + 1);
    if (!bytes)
        return oly_out_of_memory(n + 1, "the pieces of a file");
    oly_status st = oly_file_read(f->file, f->path, bytes, n, 0);
    if (st == OLY_OK)
        st = oly_pvti_read(f->path, bytes, n, &g->pvti);
    *contents = oly_hash(35, bytes, n);
    oly_release(bytes);
    return st;
}

/* The type of the whole, from the first piece's field. */
static oly_status find_type(loading *g, const char *path)
{
    int file;
    oly_vti_source first;
    oly_status st = open_piece(g, 0, &first, &file);
    if (st == OLY_OK) {
        *g->l = (oly_vti_source){
            .path = path, .name = g->l->name, .vti = first.vti, .field = first.field, .contents = first.contents};
        g->type = oly_vti_source_type(&first);
        for (int d = 0; d < g->pvti.rank; d++) {
            int axis = g->pvti.rank - 1 - d;
            g->type.shape[d] = g->pvti.whole[2 * axis + 1] - g->pvti.whole[2 * axis] + (first.vti.cells ? 0 : 1);
        }
        first.vti.field = NULL; /* kept: of g->l */
    }
    close_piece(&first, file);
    return st;
}

static oly_status read_all(const loading *g, oly_array x)
{
    oly_parts_mapped m;
    OLY_TRY(oly_parts_map(x, &m));
    oly_status st = OLY_OK;
    for (int s = 0; s < m.n && st == OLY_OK; s++)
        if (m.memory[s])
            st = check_cover(g, g->l->path, &m.box[s]);
    for (int k = 0; k < g->pvti.n && st == OLY_OK; k++) {
        oly_box piece = piece_box(g, k);
        bool needed = false;
        for (int s = 0; s < m.n; s++)
            needed = needed || (m.memory[s] && meets(&piece, &m.box[s]));
        if (needed)
            st = read_piece(g, k, &m);
    }
    oly_status unmapped = oly_parts_unmap(x, &m);
    return st == OLY_OK ? unmapped : st;
}

oly_status oly_vti_load_pieces(const oly_crew *crew, oly_status mine, oly_vti_source *l, oly_sharding sharding,
                               oly_type *type, oly_array *x)
{
    oly_shared_file f;
    loading g = {.l = l};
    uint64_t contents = 0;
    const char *path = l->path, *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash + 1 - path) : 0;
    oly_status st = oly_shared_open(mine, path, &f);
    if (st == OLY_OK)
        st = read_text(&f, &g, &contents);
    g.folder = oly_malloc(length + 1);
    if (st == OLY_OK && !g.folder)
        st = oly_out_of_memory(length + 1, "a path");
    if (st == OLY_OK) {
        memcpy(g.folder, path, length);
        g.folder[length] = 0;
        st = find_type(&g, path);
    }
    uint64_t arguments = oly_hash_mix(oly_hash_text(36, path), sharding ? sharding->hash : 0);
    st = oly_shared_agree(crew, st, oly_hash_text(arguments, l->name ? l->name : ""),
                          oly_hash_mix(contents, l->contents), &f);
    if (st == OLY_OK) {
        *type = g.type;
        st = oly_parts_make(type, sharding, x);
        if (st == OLY_OK && oly_platform_get()->computes)
            st = read_all(&g, *x);
        st = oly_shared_end(crew, st, &f);
    }
    oly_release(g.folder);
    oly_release(g.pvti.piece);
    return st;
}
