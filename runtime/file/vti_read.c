/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the headers of VTK's image files. See vti.h. */
#define _GNU_SOURCE /* memmem */
#include "core/error.h"
#include "file/vti.h"
#include "file/xml.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    const char *path;
    oly_vti *v;
    bool in_piece, in_points, in_cells;
    int pieces;
    int cell_fields;
    int64_t extent[2 * OLY_VTI_DIMENSIONS], whole[2 * OLY_VTI_DIMENSIONS]; /* of the piece, and of the image: x, y, z */
    double origin[OLY_VTI_DIMENSIONS], spacing[OLY_VTI_DIMENSIONS];
    bool extent_known, whole_known;
    bool cells[64]; /* of field k: does it belong to cells? */
} reading;
enum { MOST_FIELDS = sizeof(((reading *)0)->cells) };

static oly_status refuse(const reading *r, const char *why)
{
    return oly_fail(
        OLY_IO, "cannot read %s: %s; VTK images of one piece with raw appended data that is not compressed are read",
        r->path, why);
}

/* n numbers of a text. */
static bool parse_integers(const char *text, int n, int64_t *to)
{
    for (int k = 0; k < n; k++) {
        char *end;
        to[k] = strtoll(text, &end, 10);
        if (end == text || to[k] < -(INT64_C(1) << 40) || to[k] > INT64_C(1) << 40)
            return false;
        text = end;
    }
    return true;
}

static bool parse_reals(const char *text, int n, double *to)
{
    locale_t before = oly_numbers_with_point();
    int k = 0;
    for (char *end; k < n; k++, text = end) {
        to[k] = strtod(text, &end);
        if (end == text)
            break;
    }
    oly_numbers_as_before(before);
    return k == n;
}

/* -- tags -------------------------------------------------------------------------------------------------------- */

/* An extent: first and last point along x, y, z; NULL, or what is wrong with it. */
static const char *read_extent(const oly_xml_tag *tag, const char *name, int64_t extent[2 * OLY_VTI_DIMENSIONS])
{
    char value[256];
    if (!oly_xml_attribute(tag, name, value, sizeof value) || !parse_integers(value, 2 * OLY_VTI_DIMENSIONS, extent))
        return "not six numbers";
    for (int axis = 0; axis < OLY_VTI_DIMENSIONS; axis++)
        if (extent[2 * axis + 1] < extent[2 * axis] || extent[2 * axis + 1] - extent[2 * axis] > INT64_C(1) << 40)
            return "empty";
    return NULL;
}

static oly_status read_file_tag(reading *r, const oly_xml_tag *tag)
{
    char value[64];
    const uint16_t one = 1;
    unsigned char little;
    memcpy(&little, &one, 1);
    if (!oly_xml_attribute(tag, "type", value, sizeof value) || strcmp(value, "ImageData") != 0)
        return refuse(r, "it is no VTK image");
    if (oly_xml_attribute(tag, "byte_order", value, sizeof value))
        r->v->swapped = (strcmp(value, "LittleEndian") == 0) != little;
    r->v->header_bytes = 4;
    if (oly_xml_attribute(tag, "header_type", value, sizeof value) && strcmp(value, "UInt64") == 0)
        r->v->header_bytes = 8;
    if (oly_xml_attribute(tag, "compressor", value, sizeof value) && value[0])
        return refuse(r, "its data is compressed");
    return OLY_OK;
}

static oly_status refuse_extent(const reading *r, const char *which, const char *wrong)
{
    char why[80];
    snprintf(why, sizeof why, "%s is %s", which, wrong);
    return refuse(r, why);
}

static oly_status read_image_tag(reading *r, const oly_xml_tag *tag)
{
    char value[256];
    if (oly_xml_attribute(tag, "Origin", value, sizeof value) && !parse_reals(value, OLY_VTI_DIMENSIONS, r->origin))
        return refuse(r, "its Origin is not three numbers");
    if (oly_xml_attribute(tag, "Spacing", value, sizeof value) && !parse_reals(value, OLY_VTI_DIMENSIONS, r->spacing))
        return refuse(r, "its Spacing is not three numbers");
    r->whole_known = oly_xml_attribute(tag, "WholeExtent", value, sizeof value);
    const char *wrong = r->whole_known ? read_extent(tag, "WholeExtent", r->whole) : NULL;
    return wrong ? refuse_extent(r, "its WholeExtent", wrong) : OLY_OK;
}

static oly_status read_piece_tag(reading *r, const oly_xml_tag *tag)
{
    if (r->pieces++)
        return refuse(r, "it has several pieces");
    const char *wrong = read_extent(tag, "Extent", r->extent);
    r->extent_known = true;
    return wrong ? refuse_extent(r, "the Extent of its piece", wrong) : OLY_OK;
}

static bool type_named(const char *name, oly_dtype *dtype)
{
    for (int k = OLY_INT8; k < OLY_N_DTYPES; k++) {
        const char *type = oly_vti_type((oly_dtype)k);
        if (type && strcmp(type, name) == 0) {
            *dtype = (oly_dtype)k;
            return true;
        }
    }
    return false;
}

static oly_status read_array_tag(reading *r, const oly_xml_tag *tag)
{
    char value[64];
    oly_vti *v = r->v;
    if (v->n == MOST_FIELDS)
        return refuse(r, "it has more than 64 arrays");
    oly_vti_field *f = &v->field[v->n], none = {.components = 0};
    *f = none;
    int64_t components = 1, offset;
    if (!oly_xml_attribute(tag, "Name", f->name, sizeof f->name))
        return refuse(r, "an array has no name, or a long one");
    if (!oly_xml_attribute(tag, "format", value, sizeof value) || strcmp(value, "appended") != 0)
        return refuse(r, "the data of an array is not appended");
    if (!oly_xml_attribute(tag, "type", value, sizeof value) || !type_named(value, &f->dtype))
        return refuse(r, "an array's type is not known");
    if (oly_xml_attribute(tag, "NumberOfComponents", value, sizeof value) &&
        (!parse_integers(value, 1, &components) || components < 1 || components > 1000000))
        return refuse(r, "the number of components of an array makes no sense");
    if (!oly_xml_attribute(tag, "offset", value, sizeof value) || !parse_integers(value, 1, &offset) || offset < 0)
        return refuse(r, "an array has no offset");
    bool marked = oly_xml_attribute(tag, "ComponentName0", value, sizeof value);
    f->components = components == 1 && !marked ? 0 : (int)components;
    f->offset = offset + r->v->header_bytes;
    r->cells[v->n++] = r->in_cells;
    r->cell_fields += r->in_cells;
    return OLY_OK;
}

static oly_status read_tag(reading *r, const oly_xml_tag *tag)
{
    if (oly_xml_is(tag, "PointData"))
        r->in_points = !tag->ends && r->in_piece;
    else if (oly_xml_is(tag, "CellData"))
        r->in_cells = !tag->ends && r->in_piece;
    else if (oly_xml_is(tag, "Piece")) {
        r->in_piece = !tag->ends;
        return tag->ends ? OLY_OK : read_piece_tag(r, tag);
    }
    if (tag->ends)
        return OLY_OK;
    if (oly_xml_is(tag, "VTKFile"))
        return read_file_tag(r, tag);
    if (oly_xml_is(tag, "ImageData"))
        return read_image_tag(r, tag);
    return oly_xml_is(tag, "DataArray") && (r->in_points || r->in_cells) ? read_array_tag(r, tag) : OLY_OK;
}

/* -- the whole ----------------------------------------------------------------------------------------------------- */

/* The dimensions that the writer noted, or those that have more than one point, or cell. */
static int grid_rank(const char *bytes, size_t n, const int64_t *extent)
{
    static const char mark[] = "<!-- olympus: ";
    const char *at = memmem(bytes, n, mark, sizeof mark - 1);
    if (at && (size_t)(at - bytes) + sizeof mark < n && at[sizeof mark - 1] >= '1' && at[sizeof mark - 1] <= '3')
        return at[sizeof mark - 1] - '0';
    int rank = OLY_VTI_DIMENSIONS;
    while (rank > 1 && extent[2 * rank - 1] == extent[2 * rank - 2])
        rank--;
    return rank;
}

/* Keeps the fields of points, if there are any, else those of cells; sets shape and origin, in the array's order. */
static void settle(reading *r, int rank)
{
    oly_vti *v = r->v;
    v->cells = r->cell_fields == v->n;
    int kept = 0;
    for (int k = 0; k < v->n; k++)
        if (r->cells[k] == v->cells)
            v->field[kept++] = v->field[k];
    v->n = kept;
    v->rank = rank;
    v->part = r->whole_known && memcmp(r->whole, r->extent, sizeof r->whole) != 0;
    for (int d = 0; d < rank; d++) {
        int axis = rank - 1 - d;
        v->start[d] = r->extent[2 * axis];
        v->shape[d] = r->extent[2 * axis + 1] - r->extent[2 * axis] + (v->cells ? 0 : 1);
        v->origin[d] = r->origin[axis];
        v->spacing[d] = r->spacing[axis];
    }
}

static oly_status read_tags(reading *r, const char *bytes, size_t n)
{
    const char *at = bytes, *end = bytes + n;
    for (oly_xml_tag tag; oly_xml_next(at, end, &tag); at = tag.next) {
        char encoding[16];
        if (!oly_xml_is(&tag, "AppendedData")) {
            OLY_TRY(read_tag(r, &tag));
            continue;
        }
        if (!oly_xml_attribute(&tag, "encoding", encoding, sizeof encoding) || strcmp(encoding, "raw") != 0)
            return refuse(r, "its data is encoded in base64");
        const char *mark = memchr(tag.next, '_', (size_t)(end - tag.next));
        if (!mark)
            return refuse(r, "its data does not begin with '_'");
        r->v->data = mark + 1 - bytes;
        return OLY_OK;
    }
    return refuse(r, "it has no appended data");
}

oly_status oly_vti_read_head(const char *path, const char *bytes, size_t n, int rank, oly_vti *v)
{
    *v = (oly_vti){.field = oly_malloc(MOST_FIELDS * sizeof *v->field)};
    if (!v->field)
        return oly_out_of_memory(MOST_FIELDS * sizeof *v->field, "the header of a file");
    reading r = {.path = path, .v = v, .spacing = {1, 1, 1}};
    oly_status st = read_tags(&r, bytes, n);
    if (st == OLY_OK && v->header_bytes == 0)
        st = refuse(&r, "it is no VTK image");
    if (st == OLY_OK && !r.extent_known)
        st = refuse(&r, "it has no piece");
    if (st == OLY_OK && v->n == 0)
        st = refuse(&r, "it has no arrays");
    if (st == OLY_OK)
        settle(&r, rank ? rank : grid_rank(bytes, (size_t)v->data, r.extent));
    if (st != OLY_OK) {
        oly_release(v->field);
        v->field = NULL;
    }
    return st;
}

/* -- pieces -------------------------------------------------------------------------------------------------------- */

enum { MOST_PIECES = 1 << 20 };

static oly_status refuse_pieces(const char *path, const char *what, const char *why)
{
    return oly_fail(OLY_IO, "cannot read %s: %s%s%s", path, what, why ? " is " : "", why ? why : "");
}

static oly_status add_piece(const char *path, const oly_xml_tag *tag, oly_pvti *p)
{
    if (p->n == MOST_PIECES)
        return refuse_pieces(path, "it has more than 2^20 pieces", NULL);
    if ((p->n & (p->n - 1)) == 0) { /* no room: doubled */
        size_t bytes = sizeof *p->piece * (p->n ? 2 * (size_t)p->n : 1);
        oly_pvti_piece *larger = oly_realloc(p->piece, bytes);
        if (!larger)
            return oly_out_of_memory(bytes, "the pieces of a file");
        p->piece = larger;
    }
    oly_pvti_piece *piece = &p->piece[p->n];
    const char *wrong = read_extent(tag, "Extent", piece->extent);
    if (wrong)
        return refuse_pieces(path, "the Extent of a piece", wrong);
    if (!oly_xml_attribute(tag, "Source", piece->name, sizeof piece->name) || !piece->name[0])
        return refuse_pieces(path, "a piece has no Source, or a long one", NULL);
    p->n++;
    return OLY_OK;
}

static oly_status read_pieces(const char *path, const char *bytes, size_t n, oly_pvti *p)
{
    const char *at = bytes, *end = bytes + n, *wrong = "missing";
    char type[64];
    bool image = false;
    for (oly_xml_tag tag; oly_xml_next(at, end, &tag); at = tag.next) {
        if (tag.ends)
            continue;
        if (oly_xml_is(&tag, "VTKFile"))
            image = oly_xml_attribute(&tag, "type", type, sizeof type) && strcmp(type, "PImageData") == 0;
        else if (oly_xml_is(&tag, "PImageData"))
            wrong = read_extent(&tag, "WholeExtent", p->whole);
        else if (oly_xml_is(&tag, "Piece"))
            OLY_TRY(add_piece(path, &tag, p));
    }
    if (!image)
        return refuse_pieces(path, "it is no VTK image of several pieces (.pvti)", NULL);
    if (wrong)
        return refuse_pieces(path, "its WholeExtent", wrong);
    p->rank = grid_rank(bytes, n, p->whole);
    return p->n ? OLY_OK : refuse_pieces(path, "it has no pieces", NULL);
}

oly_status oly_pvti_read(const char *path, const char *bytes, size_t n, oly_pvti *p)
{
    *p = (oly_pvti){.n = 0};
    oly_status st = read_pieces(path, bytes, n, p);
    if (st != OLY_OK) {
        oly_release(p->piece);
        *p = (oly_pvti){.n = 0};
    }
    return st;
}
