/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of matrices, a row of pixels at a time. See frame.h.
 *
 *    +-----------------+     ++ -1.25     the bar: `high` on top, `low` at the bottom, and three values between them where
 *    |     matrix      |     ||           there is room
 *    +-----------------+     ++ -3.5
 */
#include "file/frame.h"
#include "core/min_max.h"
#include "core/text.h"
#include "file/digits_font.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GAP = 8, BAR = 16, TICK = 4, LABEL = 10 /* characters of "-1.234e-05" */ };

/* -- size ----------------------------------------------------------------------------------------------- */

static int64_t averaged_side(int64_t side, int64_t longest, int64_t most)
{
    return longest <= most ? side : oly_larger(1, llround((double)side * (double)most / (double)longest));
}

void oly_frame_choose_size(oly_frame *f, int64_t largest, int scale)
{
    int64_t longest = oly_larger(f->height, f->width), most = scale > 0 ? oly_larger(1, largest / scale) : largest;
    f->rows = averaged_side(f->height, longest, most);
    f->columns = averaged_side(f->width, longest, most);
    int64_t wanted = (OLY_FRAME_ENLARGED - 1) / oly_smaller(f->rows, f->columns) + 1;
    int64_t allowed = largest / oly_larger(f->rows, f->columns);
    f->factor = scale > 0 ? scale : (int)oly_larger(1, oly_smaller(wanted, allowed));
}

/* Of the letters: frames of one size have letters of one size. */
static int letter_scale(const oly_frame *f)
{
    return f->rows * f->factor >= 384 ? 2 : 1;
}

static int64_t line_height(const oly_frame *f)
{
    return (int64_t)letter_scale(f) * (OLY_GLYPH_HEIGHT + 2);
}

int64_t oly_frame_picture_width(const oly_frame *f)
{
    return f->columns * f->factor +
           (f->bar ? GAP + BAR + 2 * TICK + (int64_t)letter_scale(f) * LABEL * OLY_GLYPH_STEP : 0);
}

int64_t oly_frame_picture_height(const oly_frame *f)
{
    int64_t matrix = f->rows * f->factor;
    return f->bar ? oly_larger(matrix, 2 * line_height(f)) : matrix;
}

/* -- the range ------------------------------------------------------------------------------------------ */

void oly_frame_automatic_range(double *low, double *high)
{
    if (*low > *high) {
        *low = 0;
        *high = 1;
    } else if (*low == *high) { /* the middle of the colours */
        double aside = fabs(*low) / 2 + (*low == 0 ? 0.5 : 0);
        *low -= aside;
        *high += aside;
    }
    /* a subnormal has no half, and the largest number no greater one */
    if (!(*low < *high)) {
        *low = -1;
        *high = 1;
    }
    if (!isfinite(*low) || !isfinite(*high)) {
        *low = fmax(*low, -1.7e308);
        *high = fmin(*high, 1.7e308);
    }
}

/* -- the matrix ----------------------------------------------------------------------------------------- */

static void matrix_row(const oly_frame *f, int64_t y, unsigned char *rgb)
{
    int64_t block = y / f->factor, row = f->upwards ? f->rows - 1 - block : block;
    for (int64_t j = 0; j < f->columns; j++) {
        unsigned char colour[3];
        oly_colour_of(f->colours, f->mean[row * f->columns + j], f->low, f->high, colour);
        for (int copy = 0; copy < f->factor; copy++, rgb += 3)
            memcpy(rgb, colour, 3);
    }
}

/* -- the bar -------------------------------------------------------------------------------------------- */

static void paint(unsigned char *rgb, int64_t x, int64_t n, unsigned char shade)
{
    memset(rgb + 3 * x, shade, (size_t)(3 * n));
}

/* Of the bar's numbers: label k of n, from the top. */
typedef struct label {
    double value;
    int64_t middle, top; /* the rows of its tick and of its text */
} label;

static label label_at(const oly_frame *f, int k, int n)
{
    int64_t height = oly_frame_picture_height(f), text = (int64_t)letter_scale(f) * OLY_GLYPH_HEIGHT;
    double down = (double)k / (n - 1);
    label l = {.value = f->high * (1 - down) + f->low * down, .middle = llround((double)(height - 1) * down)};
    l.top = oly_smaller(oly_larger(0, l.middle - text / 2), height - text);
    return l;
}

static void label_row(const oly_frame *f, const label *l, int64_t y, int64_t x, unsigned char *rgb)
{
    if (y == l->middle)
        paint(rgb, x, TICK, 0);
    int scale = letter_scale(f);
    if (y < l->top || y >= l->top + (int64_t)scale * OLY_GLYPH_HEIGHT)
        return;
    char text[32];
    locale_t before = oly_numbers_with_point();
    snprintf(text, sizeof text, "%.4g", l->value);
    oly_numbers_as_before(before);
    for (int column = 0; column < LABEL * OLY_GLYPH_STEP; column++)
        if (oly_text_dot(text, (int)(y - l->top) / scale, column))
            paint(rgb, x + 2 * TICK + (int64_t)column * scale, scale, 0);
}

static void bar_row(const oly_frame *f, int64_t y, unsigned char *rgb)
{
    int64_t height = oly_frame_picture_height(f), x = f->columns * f->factor + GAP;
    double up = height > 1 ? 1 - (double)y / (double)(height - 1) : 1;
    unsigned char colour[3];
    oly_colour_of(f->colours, f->low * (1 - up) + f->high * up, f->low, f->high, colour);
    for (int k = 0; k < BAR; k++)
        memcpy(rgb + 3 * (x + k), colour, 3);
    int n = height >= 6 * line_height(f) ? 5 : 2;
    for (int k = 0; k < n; k++) {
        label l = label_at(f, k, n);
        label_row(f, &l, y, x + BAR, rgb);
    }
}

void oly_frame_row(const void *frame, int64_t y, unsigned char *rgb)
{
    const oly_frame *f = frame;
    paint(rgb, 0, oly_frame_picture_width(f), 255);
    if (y < f->rows * f->factor)
        matrix_row(f, y, rgb);
    if (f->bar)
        bar_row(f, y, rgb);
}
