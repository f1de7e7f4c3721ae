/* SPDX-License-Identifier: BSD-3-Clause */
/* Collections of files of a series, for ParaView (.pvd). See vti.h. */
#include "core/error.h"
#include "file/vti.h"
#include "file/xml.h"
#include <stdlib.h>
#include <string.h>

static void entry(oly_text *t, double time, const char *file)
{
    oly_text_add(t, "    <DataSet timestep=\"%.17g\" part=\"0\" file=\"", time);
    oly_xml_escape(t, file);
    oly_text_add(t, "\"/>\n");
}

/* Entries of other files, before this time. */
static bool keep(oly_text *t, const oly_xml_tag *tag, const char *file, double time)
{
    char name[4096], step[64];
    if (!oly_xml_attribute(tag, "file", name, sizeof name) || !oly_xml_attribute(tag, "timestep", step, sizeof step))
        return false;
    locale_t before = oly_numbers_with_point();
    double when = strtod(step, NULL);
    oly_numbers_as_before(before);
    if (strcmp(name, file) != 0 && when < time)
        entry(t, when, name);
    return true;
}

static oly_status keep_entries(oly_text *t, const char *old, const char *path, const char *file, double time)
{
    bool collection = false;
    const char *end = old + strlen(old);
    for (oly_xml_tag tag; oly_xml_next(old, end, &tag); old = tag.next) {
        collection |= oly_xml_is(&tag, "Collection");
        if (oly_xml_is(&tag, "DataSet") && (!collection || !keep(t, &tag, file, time)))
            collection = false;
    }
    return collection ? OLY_OK
                      : oly_fail(OLY_IO, "cannot add to %s: it is there, and no collection of ParaView (.pvd)", path);
}

oly_status oly_pvd_text(oly_text *t, const char *old, const char *path, const char *file, double time)
{
    oly_text_add(t, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n  <Collection>\n");
    if (old)
        OLY_TRY(keep_entries(t, old, path, file, time));
    entry(t, time, file);
    oly_text_add(t, "  </Collection>\n</VTKFile>\n");
    return t->failed ? oly_out_of_memory(t->length, "a collection of files") : OLY_OK;
}
