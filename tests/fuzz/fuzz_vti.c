/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of VTK's images and collections: what is accepted makes sense. */
#include "fuzz.h"
#include "core/error.h"
#include "file/vti.h"
#include <string.h>

const char *const fuzz_seeds[] = {
    "<VTKFile type=\"ImageData\" byte_order=\"LittleEndian\" header_type=\"UInt64\"><!-- olympus: 2 dimensions -->"
    "<ImageData WholeExtent=\"0 6 0 10 0 0\" Origin=\"0 0 0\" Spacing=\"1 1 1\"><Piece Extent=\"0 6 0 10 0 "
    "0\"><PointData>"
    "<DataArray type=\"Float32\" Name=\"u\" NumberOfComponents=\"1\" format=\"appended\" "
    "offset=\"0\"/></PointData></Piece>"
    "</ImageData><AppendedData encoding=\"raw\">_",
    "<VTKFile type=\"Collection\"><Collection><DataSet timestep=\"1.5\" part=\"0\" "
    "file=\"a.vti\"/></Collection></VTKFile>",
    "<VTKFile type=\"PImageData\"><!-- olympus: 2 dimensions --><PImageData WholeExtent=\"0 6 0 10 0 0\"><Piece "
    "Extent=\"0 6 0 5 0 0\" "
    "Source=\"a_0.vti\"/><Piece Extent=\"0 6 5 10 0 0\" Source=\"a_1.vti\"/></PImageData></VTKFile>",
    NULL};
const char *const fuzz_words[] = {"<",         ">",     "\"",
                                  "'",         "&amp;", "<!--",
                                  "-->",       "_",     "CellData",
                                  "Source=\"", "Int8",  "offset=\"9\"",
                                  "Extent=\"", "-1 ",   "99999999999999999999",
                                  "/>",        NULL};

static void try_image(const char *text)
{
    oly_vti v;
    if (oly_vti_read_head("file", text, strlen(text), 0, &v) != OLY_OK) {
        FUZZ_CHECK(oly_pending_message()[0]);
        oly_drop_message();
        return;
    }
    FUZZ_CHECK(v.rank >= 1 && v.rank <= 3 && v.n >= 1 && v.data > 0 && v.data <= (int64_t)strlen(text));
    for (int k = 0; k < v.n; k++)
        FUZZ_CHECK(v.field[k].offset >= 4 && v.field[k].components >= 0 && oly_vti_type(v.field[k].dtype));
    oly_release(v.field);
}

static void try_pieces(const char *text)
{
    oly_pvti p;
    if (oly_pvti_read("file", text, strlen(text), &p) != OLY_OK) {
        FUZZ_CHECK(oly_pending_message()[0]);
        oly_drop_message();
        return;
    }
    FUZZ_CHECK(p.rank >= 1 && p.rank <= 3 && p.n >= 1);
    for (int k = 0; k < p.n; k++)
        for (int axis = 0; axis < 3; axis++)
            FUZZ_CHECK(p.piece[k].name[0] && p.piece[k].extent[2 * axis] <= p.piece[k].extent[2 * axis + 1]);
    oly_release(p.piece);
}

void fuzz_try(const char *text)
{
    oly_text t = {0};
    try_image(text);
    try_pieces(text);
    if (oly_pvd_text(&t, text, "series", "b.vti", 2) == OLY_OK)
        FUZZ_CHECK(strstr(oly_text_chars(&t), "file=\"b.vti\""));
    else
        oly_drop_message();
    oly_text_free(&t);
}
