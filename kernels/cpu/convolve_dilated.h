/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions of dilated operands, as of transposed convolutions and of derivatives of those with steps: places that are as far apart as the
 * operand's elements read the same taps of the window, the others' zeros are left out. Each class of such places is a convolution by strips
 * (convolve_planes.h) of the operand as it is, a quarter of the products for a dilation of 2 in two dimensions. Sums are added in the same
 * groups as with the zeros, so bits are the same. For convolve.c alone; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_CONVOLVE_DILATED_H
#define OLY_CPU_CONVOLVE_DILATED_H
#include "cpu/convolve_planes.h"

#ifdef OLY_HAS_TILES
enum {
    MOST_CLASSES = 64,
    CLASS_DEPTH = 4 /* products of an element, at least */
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The number of classes; 0: the operand is not dilated, or steps over it are not of one. */
static int64_t classes_of(const oly_slide *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) {
        if (s->base_dilation[d] > 1 && s->stride[d] != 1)
            return 0;
        n *= s->base_dilation[d];
        if (n > MOST_CLASSES)
            return 0;
    }
    return n > 1 ? n : 0;
}

/* Places first + k * dilation of dimension d, and the taps that they read. */
static void find_class_along(const oly_slide *s, int d, int64_t first, place_class *c)
{
    const int64_t dilation = s->base_dilation[d], by = dilation / common_divisor(s->dilation[d], dilation);
    const int64_t from = s->origin[d] + first - s->lo[d];
    int64_t tap = 0;
    while (tap < by && (from + tap * s->dilation[d]) % dilation != 0)
        tap++;
    const bool meets = tap < by && tap < s->size[d];
    c->slide.extent[d] = first < s->extent[d] ? (s->extent[d] - first + dilation - 1) / dilation : 0;
    c->slide.origin[d] = 0;
    c->slide.lo[d] = meets ? -((from + tap * s->dilation[d]) / dilation) : 0;
    c->slide.size[d] = meets ? (s->size[d] - tap + by - 1) / by : 0;
    c->slide.dilation[d] = by * s->dilation[d] / dilation;
    c->slide.base_dilation[d] = 1;
    c->taps.first[d] = tap;
    c->taps.by[d] = by;
    c->first[d] = first;
    c->by[d] = dilation;
}

static place_class find_class(const oly_slide *s, int64_t number)
{
    place_class c = {.slide = *s, .taps = all_taps(s), .places = s->places};
    int64_t first[OLY_MAX_WINDOW] = {0}, pitch = 1;
    oly_slide_indexes(s, s->base_dilation, number, first);
    c.slide.places = c.slide.taps = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        c.pitch[d] = pitch;
        pitch *= s->extent[d];
        c.by[d] = 1;
        if (s->base_dilation[d] > 1)
            find_class_along(s, d, first[d], &c);
        c.slide.places *= c.slide.extent[d];
        c.slide.taps *= c.slide.size[d];
    }
    return c;
}

/* The block over the class's places. */
static block of_class(const block *b, const place_class *c)
{
    block of = *b;
    of.slide = c->slide;
    of.depth = b->t->in[1].extent[1] * c->slide.taps;
    return of;
}

/* Fills p for the places of a class, which are computed elsewhere first. false: as are_planes. */
static bool are_planes_of_class(const block *of, planes *p)
{
    p->most_places = CLASS_PLACES;
    p->fewest_features = 1;
    if (of->depth < CLASS_DEPTH || !are_planes(of, p))
        return false;
    p->out_row = p->rows * (of->slide.places / of->slide.extent[0]);
    return true;
}

/* Can all classes be computed so? */
static bool are_classes(const block *b, planes *p)
{
    const oly_dtype dtype = b->t->out.dtype; /* classes without taps do not ask are_planes */
    const bool real = dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64;
    const int64_t n = real && b->depth > 0 ? classes_of(&b->slide) : 0;
    for (int64_t k = 0; k < n; k++) {
        const place_class c = find_class(&b->slide, k);
        const block of = of_class(b, &c);
        if (c.slide.places > 0 && c.slide.taps > 0 && !are_planes_of_class(&of, p))
            return false;
    }
    return n > 0;
}
#endif
#endif
