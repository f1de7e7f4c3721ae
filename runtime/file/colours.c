/* SPDX-License-Identifier: BSD-3-Clause */
/* The colour maps. See colours.h. Their points are numbers published by others; the interpolation between them is linear. */
#include "file/colours.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

/* S. van der Walt, N. Smith: "A Better Default Colormap for Matplotlib", 2015 (public domain): every eighth of the map magma. Its
 * lightness carries the value (CIE L*: 0 to 98, in nearly equal steps), so the picture reads the same in grey. */
static const unsigned char magma[][3] = {
    {0, 0, 4},      {28, 16, 68},   {80, 18, 123},   {130, 37, 129},  {181, 54, 122},
    {229, 80, 100}, {251, 135, 97}, {254, 194, 135}, {252, 253, 191},
};

/* The same source: every eighth of the map viridis. */
static const unsigned char viridis[][3] = {
    {68, 1, 84},    {71, 45, 123}, {59, 82, 139},  {44, 114, 142}, {33, 145, 140},
    {40, 174, 128}, {94, 201, 98}, {173, 220, 48}, {253, 231, 37},
};

/* K. Moreland: "Diverging Color Maps for Scientific Visualization", 2009: every fourth of the 33 points of the cool-warm map. */
static const unsigned char coolwarm[][3] = {
    {59, 76, 192},   {98, 130, 234},  {141, 176, 254}, {184, 208, 249}, {221, 221, 221},
    {245, 196, 173}, {244, 154, 123}, {222, 96, 77},   {180, 4, 38},
};

static const unsigned char grey[][3] = {{0, 0, 0}, {255, 255, 255}};

#define MIDDLE_GREY                                                                                                    \
    {                                                                                                                  \
        128, 128, 128                                                                                                  \
    }
#define MAP(points) (int)(sizeof(points) / sizeof(points)[0]), points
static const oly_colours maps[] = {
    {"magma", MIDDLE_GREY, MAP(magma)},
    {"viridis", MIDDLE_GREY, MAP(viridis)},
    {"coolwarm", MIDDLE_GREY, MAP(coolwarm)},
    {"grey", {255, 0, 0}, MAP(grey)},
};
enum { MAPS = sizeof maps / sizeof maps[0] };

const oly_colours *oly_colours_named(const char *name)
{
    for (int k = 0; k < MAPS; k++)
        if (strcmp(maps[k].name, name) == 0)
            return &maps[k];
    return NULL;
}

const char *oly_colours_names(void)
{
    return "magma, viridis, coolwarm, grey";
}

void oly_colour_of(const oly_colours *colours, double value, double low, double high, unsigned char *rgb)
{
    if (isnan(value)) {
        memcpy(rgb, colours->nan, 3);
        return;
    }
    int steps = colours->n - 1;
    double place = value <= low    ? 0
                   : value >= high ? steps
                                   : (value / 2 - low / 2) / (high / 2 - low / 2) * steps; /* halves do not overflow */
    int step = place >= steps ? steps - 1 : (int)place;
    const unsigned char *from = colours->points[step], *to = colours->points[step + 1];
    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned char)lround(from[c] + (place - step) * (to[c] - from[c]));
}
