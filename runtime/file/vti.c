/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the headers of VTK's image files. See vti.h; vti_read.c reads them. */
#include "file/vti.h"
#include "core/error.h"
#include "file/xml.h"
#include <inttypes.h>
#include <string.h>

static const struct {
    oly_dtype dtype;
    const char *name;
} types[] = {
    {OLY_INT8, "Int8"},   {OLY_INT16, "Int16"},     {OLY_INT32, "Int32"},     {OLY_INT64, "Int64"},
    {OLY_UINT8, "UInt8"}, {OLY_UINT16, "UInt16"},   {OLY_UINT32, "UInt32"},   {OLY_UINT64, "UInt64"},
    {OLY_BOOL, "UInt8"},  {OLY_FLOAT32, "Float32"}, {OLY_FLOAT64, "Float64"},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *oly_vti_type(oly_dtype dtype)
{
    for (int k = 0; k < TYPES; k++)
        if (types[k].dtype == dtype)
            return types[k].name;
    return NULL;
}

int64_t oly_vti_field_bytes(const oly_vti *v, const oly_vti_field *f)
{
    int64_t bytes = (int64_t)oly_dtype_size(f->dtype) * (f->components ? f->components : 1);
    for (int d = 0; d < v->rank; d++)
        bytes *= v->shape[d];
    return bytes;
}

int64_t oly_vti_place(oly_vti *v)
{
    int64_t at = 0;
    for (int k = 0; k < v->n; k++) {
        v->field[k].offset = at + (int64_t)sizeof(uint64_t);
        at = v->field[k].offset + oly_vti_field_bytes(v, &v->field[k]);
    }
    return at;
}

/* -- parts of headers ---------------------------------------------------------------------------------------- */

static const char *byte_order(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first ? "LittleEndian" : "BigEndian";
}

static void file_element(oly_text *t, const char *type)
{
    oly_text_add(
        t, "<?xml version=\"1.0\"?>\n<VTKFile type=\"%s\" version=\"1.0\" byte_order=\"%s\" header_type=\"UInt64\">\n",
        type, byte_order());
}

/* " Extent="0 9 0 4 0 0"": points from the first to the last along x, y and z. */
static void extent(oly_text *t, const char *name, const oly_vti *v, const int64_t *lo, const int64_t *hi)
{
    oly_text_add(t, " %s=\"", name);
    for (int axis = 0; axis < OLY_VTI_DIMENSIONS; axis++) {
        int d = v->rank - 1 - axis;
        oly_text_add(t, "%s%" PRId64 " %" PRId64, axis ? " " : "", d < 0 ? 0 : lo[d],
                     d < 0      ? 0
                     : v->cells ? hi[d]
                                : hi[d] - 1);
    }
    oly_text_add(t, "\"");
}

static void numbers(oly_text *t, const char *name, const oly_vti *v, const double *of, double otherwise)
{
    oly_text_add(t, " %s=\"", name);
    for (int axis = 0; axis < OLY_VTI_DIMENSIONS; axis++) {
        int d = v->rank - 1 - axis;
        oly_text_add(t, "%s%.17g", axis ? " " : "", d < 0 ? otherwise : of[d]);
    }
    oly_text_add(t, "\"");
}

/* The element of the grid; name: ImageData or PImageData. */
static void image_element(oly_text *t, const char *name, const oly_vti *v)
{
    int64_t hi[OLY_VTI_DIMENSIONS];
    for (int d = 0; d < v->rank; d++)
        hi[d] = v->start[d] + v->shape[d];
    oly_text_add(t, "  <%s", name);
    extent(t, "WholeExtent", v, v->start, hi);
    numbers(t, "Origin", v, v->origin, 0);
    numbers(t, "Spacing", v, v->spacing, 1);
    oly_text_add(t, " Direction=\"1 0 0 0 1 0 0 0 1\"");
}

static void time_element(oly_text *t, const oly_vti *v)
{
    if (v->timed)
        oly_text_add(t,
                     "    <FieldData>\n      <DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" "
                     "format=\"ascii\">%.17g</DataArray>\n    </FieldData>\n",
                     v->time);
}

/* The first scalars and vectors are those that viewers begin with; vectors are of three components. */
static const char *first_field(const oly_vti *v, bool vectors)
{
    for (int k = 0; k < v->n; k++)
        if (vectors ? v->field[k].components == OLY_VTI_DIMENSIONS : v->field[k].components <= 1)
            return v->field[k].name;
    return NULL;
}

static void begin_fields(oly_text *t, const char *prefix, const oly_vti *v)
{
    oly_text_add(t, "<%s%s", prefix, v->cells ? "CellData" : "PointData");
    for (int vectors = 0; vectors < 2; vectors++) {
        const char *name = first_field(v, vectors);
        if (!name)
            continue;
        oly_text_add(t, vectors ? " Vectors=\"" : " Scalars=\"");
        oly_xml_escape(t, name);
        oly_text_add(t, "\"");
    }
    oly_text_add(t, ">\n");
}

static void end_fields(oly_text *t, const char *prefix, const oly_vti *v)
{
    oly_text_add(t, "</%s%s>\n", prefix, v->cells ? "CellData" : "PointData");
}

static void field_element(oly_text *t, const char *element, const oly_vti_field *f)
{
    oly_text_add(t, "<%s type=\"%s\" Name=\"", element, oly_vti_type(f->dtype));
    oly_xml_escape(t, f->name);
    oly_text_add(t, "\" NumberOfComponents=\"%d\"", f->components ? f->components : 1);
}

/* -- whole headers ---------------------------------------------------------------------------------------------- */

void oly_vti_head(oly_text *t, const oly_vti *v)
{
    int64_t hi[OLY_VTI_DIMENSIONS];
    for (int d = 0; d < v->rank; d++)
        hi[d] = v->start[d] + v->shape[d];
    file_element(t, "ImageData");
    oly_text_add(t, "  <!-- olympus: %d dimensions -->\n", v->rank);
    image_element(t, "ImageData", v);
    oly_text_add(t, ">\n");
    time_element(t, v);
    oly_text_add(t, "    <Piece");
    extent(t, "Extent", v, v->start, hi);
    oly_text_add(t, ">\n      ");
    begin_fields(t, "", v);
    for (int k = 0; k < v->n; k++) {
        const oly_vti_field *f = &v->field[k];
        oly_text_add(t, "        ");
        field_element(t, "DataArray", f);
        /* a field without a dimension of components and one with a single component differ for oly_load_vti only */
        oly_text_add(t, "%s format=\"appended\" offset=\"%" PRId64 "\"/>\n",
                     f->components == 1 ? " ComponentName0=\"0\"" : "", f->offset - (int64_t)sizeof(uint64_t));
    }
    oly_text_add(t, "      ");
    end_fields(t, "", v);
    oly_text_add(t, "    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n   _");
}

const char *oly_vti_tail(void)
{
    return "\n  </AppendedData>\n</VTKFile>\n";
}

void oly_pvti_text(oly_text *t, const oly_vti *whole, int n, const oly_vti_piece *pieces)
{
    file_element(t, "PImageData");
    oly_text_add(t, "  <!-- olympus: %d dimensions -->\n", whole->rank);
    image_element(t, "PImageData", whole);
    oly_text_add(t, " GhostLevel=\"0\">\n");
    time_element(t, whole);
    oly_text_add(t, "    ");
    begin_fields(t, "P", whole);
    for (int k = 0; k < whole->n; k++) {
        oly_text_add(t, "      ");
        field_element(t, "PDataArray", &whole->field[k]);
        oly_text_add(t, "/>\n");
    }
    oly_text_add(t, "    ");
    end_fields(t, "P", whole);
    for (int k = 0; k < n; k++) {
        oly_text_add(t, "    <Piece");
        extent(t, "Extent", whole, pieces[k].box.lo, pieces[k].box.hi);
        oly_text_add(t, " Source=\"");
        oly_xml_escape(t, pieces[k].name);
        oly_text_add(t, "\"/>\n");
    }
    oly_text_add(t, "  </PImageData>\n</VTKFile>\n");
}
