/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing XDMF. See xdmf.h. Its dimensions are in the order of C arrays, z y x; grids of fewer than three get leading ones. */
#include "file/xdmf.h"
#include "file/xml.h"
#include <inttypes.h>

/* NumberType and Precision. */
static void number_type(oly_text *t, oly_dtype dtype)
{
    const char *type = "Int";
    size_t bytes = oly_dtype_size(dtype);
    if (dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64)
        type = "Float";
    else if (dtype >= OLY_UINT8 && dtype <= OLY_UINT64)
        type = bytes == 1 ? "UChar" : "UInt";
    else if (bytes == 1)
        type = "Char";
    oly_text_add(t, "NumberType=\"%s\" Precision=\"%zu\"", type, bytes);
}

/* " 1 4 5", of points or of elements. */
static void three(oly_text *t, const oly_vti *g, int64_t more)
{
    for (int axis = OLY_VTI_DIMENSIONS; axis > 0; axis--) {
        int d = g->rank - axis;
        oly_text_add(t, "%s%" PRId64, axis < OLY_VTI_DIMENSIONS ? " " : "", d < 0 ? 1 : g->shape[d] + more);
    }
}

static void three_reals(oly_text *t, const oly_vti *g, const double *of, double otherwise)
{
    oly_text_add(t, "          <DataItem Dimensions=\"3\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">");
    for (int axis = OLY_VTI_DIMENSIONS; axis > 0; axis--) {
        int d = g->rank - axis;
        oly_text_add(t, "%s%.17g", axis < OLY_VTI_DIMENSIONS ? " " : "", d < 0 ? otherwise : of[d]);
    }
    oly_text_add(t, "</DataItem>\n");
}

static void grid(oly_text *t, const oly_vti *g)
{
    oly_text_add(t, "        <Topology TopologyType=\"3DCoRectMesh\" Dimensions=\"");
    three(t, g, g->cells ? 1 : 0);
    oly_text_add(t, "\"/>\n        <Geometry GeometryType=\"ORIGIN_DXDYDZ\">\n");
    three_reals(t, g, g->origin, 0);
    three_reals(t, g, g->spacing, 1);
    oly_text_add(t, "        </Geometry>\n");
}

/* The extents of the data set, without the time. */
static void extents(oly_text *t, const oly_vti *g, const oly_vti_field *f)
{
    for (int d = 0; d < g->rank; d++)
        oly_text_add(t, "%s%" PRId64, d ? " " : "", g->shape[d]);
    if (f->components)
        oly_text_add(t, " %d", f->components);
}

static void data_set(oly_text *t, const oly_xdmf *x, int k, const char *indent)
{
    const oly_vti_field *f = &x->grid.field[k];
    oly_text_add(t, "%s<DataItem Format=\"HDF\" ", indent);
    number_type(t, f->dtype);
    oly_text_add(t, " Dimensions=\"");
    if (x->has_rows[k])
        oly_text_add(t, "%" PRId64 " ", x->rows[k]);
    extents(t, &x->grid, f);
    oly_text_add(t, "\">");
    oly_xml_escape(t, x->hdf5);
    oly_text_add(t, ":%s", f->name[0] == '/' ? "" : "/");
    oly_xml_escape(t, f->name);
    oly_text_add(t, "</DataItem>\n");
}

/* Row `step`: start, stride and count along each dimension. */
static void slab(oly_text *t, const oly_xdmf *x, int k, int64_t step)
{
    const oly_vti_field *f = &x->grid.field[k];
    int rank = 1 + x->grid.rank + (f->components > 0);
    oly_text_add(t, "          <DataItem ItemType=\"HyperSlab\" Dimensions=\"");
    three(t, &x->grid, 0);
    if (f->components)
        oly_text_add(t, " %d", f->components);
    oly_text_add(t, "\">\n            <DataItem Dimensions=\"3 %d\" Format=\"XML\">%" PRId64, rank, step);
    for (int d = 1; d < rank; d++)
        oly_text_add(t, " 0");
    for (int d = 0; d < rank; d++)
        oly_text_add(t, " 1");
    oly_text_add(t, " 1 ");
    extents(t, &x->grid, f);
    oly_text_add(t, "</DataItem>\n");
    data_set(t, x, k, "            ");
    oly_text_add(t, "          </DataItem>\n");
}

static void attribute(oly_text *t, const oly_xdmf *x, int k, int64_t step)
{
    const oly_vti_field *f = &x->grid.field[k];
    oly_text_add(t, "        <Attribute Name=\"");
    oly_xml_escape(t, f->name);
    oly_text_add(t, "\" AttributeType=\"%s\" Center=\"%s\">\n",
                 f->components == 3  ? "Vector"
                 : f->components > 1 ? "Matrix"
                                     : "Scalar",
                 x->grid.cells ? "Cell" : "Node");
    if (x->has_rows[k])
        slab(t, x, k, step);
    else
        data_set(t, x, k, "          ");
    oly_text_add(t, "        </Attribute>\n");
}

void oly_xdmf_text(oly_text *t, const oly_xdmf *x)
{
    oly_text_add(t, "<?xml version=\"1.0\"?>\n<Xdmf Version=\"3.0\">\n  <Domain>\n"
                    "    <Grid Name=\"series\" GridType=\"Collection\" CollectionType=\"Temporal\">\n");
    for (int64_t step = 0; step < x->steps; step++) {
        oly_text_add(t,
                     "      <Grid Name=\"step %" PRId64 "\" GridType=\"Uniform\">\n        <Time Value=\"%.17g\"/>\n",
                     step, x->times ? x->times[step] : (double)step);
        grid(t, &x->grid);
        for (int k = 0; k < x->grid.n; k++)
            attribute(t, x, k, step);
        oly_text_add(t, "      </Grid>\n");
    }
    oly_text_add(t, "    </Grid>\n  </Domain>\n</Xdmf>\n");
}
