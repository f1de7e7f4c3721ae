/* SPDX-License-Identifier: BSD-3-Clause */
/* As much XML as headers of data files need: escaping names, and walking over the tags of a text that may be anything. */
#ifndef OLY_FILE_XML_H
#define OLY_FILE_XML_H
#include "core/text.h"
#include <stddef.h>

/* Adds the text with & < > " and control characters escaped, for a value between quotation marks. */
void oly_xml_escape(oly_text *t, const char *text);

/* A tag: "<name a="b">", "<name/>" or "</name>". It points into the text. */
typedef struct oly_xml_tag {
    const char *name;
    size_t name_length;
    const char *inside; /* the attributes */
    size_t inside_length;
    bool ends;        /* </name> */
    const char *next; /* the character after '>' */
} oly_xml_tag;

/* The next tag at or after `at`; comments, declarations and the text between tags are passed over. False: none is complete before `end`. */
bool oly_xml_next(const char *at, const char *end, oly_xml_tag *tag);
bool oly_xml_is(const oly_xml_tag *tag, const char *name);
/* The value of an attribute, with the five entities resolved; false: it is absent, or longer than the buffer. */
bool oly_xml_attribute(const oly_xml_tag *tag, const char *name, char *value, size_t size);
#endif
