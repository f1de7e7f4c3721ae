/* SPDX-License-Identifier: BSD-3-Clause */
/* Colour maps of pictures: from a number to red, green and blue. Called by frame.c. */
#ifndef OLY_FILE_COLOURS_H
#define OLY_FILE_COLOURS_H

typedef struct oly_colours {
    const char *name;
    unsigned char nan[3];             /* the colour of NaN, which is none of the map's */
    int n;                            /* equally spaced points; colours in between are interpolated */
    const unsigned char (*points)[3]; /* from the lowest to the highest value */
} oly_colours;

/* The map of that name; NULL: there is none. */
const oly_colours *oly_colours_named(const char *name);
/* All names with commas, for messages. */
const char *oly_colours_names(void);
/* Values below the range, and -infinity, have the colour of `low`; those above, and infinity, that of `high`. */
void oly_colour_of(const oly_colours *colours, double value, double low, double high, unsigned char *rgb);
#endif
