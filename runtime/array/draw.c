/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of shardings in text (draw.h). The sizes of cells follow jax/_src/debugging.py: the whole array is 10 lines
 * high, and its width in columns is 2.5 times that by its shape; cells get their share. A table wider than the screen
 * shrinks as those of rich, which JAX draws with: the widest columns first, and labels wrap. Unlike JAX, columns do not
 * shrink below the longest word of their labels, blocks may be uneven, and boxes without elements are left out. */
#include "array/draw.h"
#include "core/error.h"
#include "core/min_max.h"
#include <stdlib.h>
#include <string.h>

enum { WHOLE_LINES = 10, LEAST_WIDTH = 9, LARGEST_WIDTH = 80, SCREEN_WIDTH = 80 };

/* -- the grid ----------------------------------------------------------------------------------------- */

typedef struct band {
    int64_t start;
    int size;  /* columns or lines inside the frame */
    int label; /* columns of the widest label */
} band;

typedef struct grid {
    int rank;
    const int64_t *shape;
    int n[2];   /* rows, columns */
    bool tight; /* columns are as wide as their labels, and no wider than needed */
    band *bands[2];
    const oly_draw_cell **at; /* n[0] x n[1]; NULL: empty */
} grid;

/* 1-D arrays have one row. */
static int64_t cell_start(const oly_draw_cell *cell, int rank, int side)
{
    return rank == 2 ? cell->start[side] : side == 0 ? 0 : cell->start[0];
}

static bool is_empty(const oly_draw_cell *cell, int rank)
{
    return cell->extent[0] <= 0 || (rank == 2 && cell->extent[1] <= 0);
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const band *)a)->start, y = ((const band *)b)->start;
    return (x > y) - (x < y);
}

/* Rows (side 0) or columns (side 1): the starts that occur, ascending. */
static oly_status make_bands(grid *g, int side, int rank, int n_cells, const oly_draw_cell *cells)
{
    band *bands = g->bands[side] = oly_calloc((size_t)n_cells, sizeof *bands);
    if (!bands)
        return oly_out_of_memory((size_t)n_cells * sizeof *bands, "drawing a sharding");
    int n = 0, kept = 0;
    for (int k = 0; k < n_cells; k++)
        if (!is_empty(&cells[k], rank))
            bands[n++].start = cell_start(&cells[k], rank, side);
    qsort(bands, (size_t)n, sizeof *bands, by_start);
    for (int k = 0; k < n; k++)
        if (k == 0 || bands[k].start != bands[kept - 1].start)
            bands[kept++] = bands[k];
    g->n[side] = kept;
    return OLY_OK;
}

static int find_band(const grid *g, int side, int64_t start)
{
    band wanted = {.start = start};
    const band *found = bsearch(&wanted, g->bands[side], (size_t)g->n[side], sizeof wanted, by_start);
    return (int)(found - g->bands[side]);
}

typedef struct padding {
    int left, right, above, below;
} padding;

/* The space that JAX leaves around a cell's label: the cell's share of the picture without label and frame. */
static padding pad_cell(int rank, const int64_t *shape, const oly_draw_cell *cell)
{
    double aspect = (double)(rank == 2 ? shape[1] : 1) / (double)shape[0];
    double whole_width = (double)(int64_t)(WHOLE_LINES * (aspect < 1e6 ? aspect : 1e6));
    double width = (double)cell->extent[rank - 1] / (double)shape[rank - 1] * whole_width * 2.5;
    int columns = width > LARGEST_WIDTH ? LARGEST_WIDTH : oly_larger((int)width, LEAST_WIDTH);
    int lines = rank == 1 ? 1 : (int)((double)cell->extent[0] / (double)shape[0] * WHOLE_LINES);
    int spaces = oly_larger(columns - (int)strlen(cell->label) - 2, 0), blank = oly_larger(lines - 2, 0);
    return (padding){spaces / 2, spaces - spaces / 2, blank / 2, blank - blank / 2};
}

static const oly_draw_cell *cell_at(const grid *g, int i, int j)
{
    return g->at[(size_t)i * (size_t)g->n[1] + (size_t)j];
}

/* -- labels on several lines: as rich wraps text ---------------------------------------------------------- */

/* Length of the word at `text` with trailing spaces; *bare: without. */
static int word_length(const char *text, int *bare)
{
    int n = (int)strcspn(text, " ");
    *bare = n;
    return n + (int)strspn(text + n, " ");
}

/* Characters of the next line of at most `width` columns, trailing spaces included; a line has at least one word. */
static int next_line(const char *from, int width)
{
    int n = 0, bare;
    while (from[n]) {
        int word = word_length(from + n, &bare);
        if (n > 0 && bare > width - n)
            return n;
        n += word;
    }
    return n;
}

static int longest_word(const char *label)
{
    int most = 0, bare;
    for (const char *at = label; *at; at += word_length(at, &bare), most = oly_larger(most, bare))
        continue;
    return most;
}

/* Lines of the wrapped label; *widest: columns of the longest. */
static int count_lines(const char *label, int width, int *widest)
{
    int n = 0;
    *widest = 0;
    for (const char *at = label; *at; n++) {
        int length = next_line(at, width);
        *widest = oly_larger(*widest, length < width ? length : width);
        at += length;
    }
    return n;
}

/* -- widths --------------------------------------------------------------------------------------------- */

/* Takes `excess` columns from the bands that are `size` wide, in equal shares of at most `most`. */
static void reduce(grid *g, int size, int excess, int most)
{
    int left = 0;
    for (int j = 0; j < g->n[1]; j++)
        left += g->bands[1][j].size == size;
    for (int j = 0; j < g->n[1]; j++) {
        band *column = &g->bands[1][j];
        if (column->size != size)
            continue;
        int share = excess / left, more = excess % left * 2; /* rounded to the nearest, ties to even */
        share += more > left || (more == left && share % 2);
        share = share < most ? share : most;
        column->size -= share;
        excess -= share;
        left--;
    }
}

/* Shrinks the widest columns first. */
static void collapse_columns(grid *g, int room)
{
    for (;;) {
        int total = 0, most = 0, second = 0;
        for (int j = 0; j < g->n[1]; j++) {
            total += g->bands[1][j].size;
            most = oly_larger(most, g->bands[1][j].size);
        }
        for (int j = 0; j < g->n[1]; j++)
            if (g->bands[1][j].size != most)
                second = oly_larger(second, g->bands[1][j].size);
        if (total <= room || most == 0)
            return;
        reduce(g, most, total - room, total - room < most - second ? total - room : most - second);
    }
}

/* Columns in proportion to their sizes, but not narrower than their labels. */
static void tighten_columns(grid *g, int64_t total, int64_t room)
{
    for (int j = 0; j < g->n[1]; j++) {
        band *column = &g->bands[1][j];
        int share = room > 0 ? (int)(column->size * room / total) : 0;
        column->size = oly_larger(share, column->label);
    }
}

/* Is every word of the labels visible, with the space around it? */
static bool shows_labels(const grid *g)
{
    for (int i = 0; i < g->n[0]; i++)
        for (int j = 0; j < g->n[1]; j++) {
            const oly_draw_cell *cell = cell_at(g, i, j);
            padding pad = cell ? pad_cell(g->rank, g->shape, cell) : (padding){0};
            if (cell && g->bands[1][j].size - pad.left - pad.right < longest_word(cell->label))
                return false;
        }
    return true;
}

static void widen_columns(grid *g)
{
    for (int i = 0; i < g->n[0]; i++)
        for (int j = 0; j < g->n[1]; j++) {
            const oly_draw_cell *cell = cell_at(g, i, j);
            if (!cell)
                continue;
            padding pad = pad_cell(g->rank, g->shape, cell);
            int label = (int)strlen(cell->label);
            band *column = &g->bands[1][j];
            column->size = oly_larger(column->size, pad.left + label + pad.right);
            column->label = oly_larger(column->label, label);
        }
}

/* Shrinks a table that is wider than the screen. */
static void shrink_columns(grid *g)
{
    int room = SCREEN_WIDTH - 1 - g->n[1];
    int64_t total = 0;
    for (int j = 0; j < g->n[1]; j++)
        total += g->bands[1][j].size;
    if (total <= room)
        return;
    for (int j = 0; j < g->n[1] && room > 0; j++)
        if (g->bands[1][j].size > room)
            g->bands[1][j].size = room;
    if (room > 0)
        collapse_columns(g, room);
    if (room > 0 && shows_labels(g))
        return;
    g->tight = true;
    for (int j = 0; j < g->n[1]; j++)
        g->bands[1][j].size = 0;
    widen_columns(g);
    tighten_columns(g, total, room);
}

/* -- a cell in its column ------------------------------------------------------------------------------------- */

typedef struct fitted {
    int above, lines, below; /* lines: of the label */
    int width;               /* of a line of the label, at most */
    int before;              /* columns in front of it */
} fitted;

/* JAX centres a label between its padding, so an odd space goes to the right. */
static fitted fit(const grid *g, const oly_draw_cell *cell, int columns)
{
    padding pad = pad_cell(g->rank, g->shape, cell);
    fitted f = {.above = pad.above, .below = pad.below, .lines = 1, .width = columns - pad.left - pad.right};
    int widest = (int)strlen(cell->label);
    if (!g->tight)
        f.lines = count_lines(cell->label, f.width, &widest);
    f.before = f.width < widest ? (columns - widest) / 2 : pad.left + (f.width - widest) / 2;
    f.width = oly_larger(f.width, widest);
    return f;
}

static oly_status make_grid(grid *g, int n_cells, const oly_draw_cell *cells)
{
    int rank = g->rank;
    for (int side = 0; side < 2; side++)
        OLY_TRY(make_bands(g, side, rank, n_cells, cells));
    size_t count = (size_t)g->n[0] * (size_t)g->n[1];
    g->at = oly_calloc(count, sizeof *g->at);
    if (!g->at)
        return oly_out_of_memory(count * sizeof *g->at, "drawing a sharding");
    for (int k = 0; k < n_cells; k++) {
        if (is_empty(&cells[k], rank))
            continue;
        int i = find_band(g, 0, cell_start(&cells[k], rank, 0)), j = find_band(g, 1, cell_start(&cells[k], rank, 1));
        g->at[(size_t)i * (size_t)g->n[1] + (size_t)j] = &cells[k];
    }
    widen_columns(g);
    shrink_columns(g);
    for (int i = 0; i < g->n[0]; i++)
        for (int j = 0; j < g->n[1]; j++)
            if (cell_at(g, i, j)) {
                fitted f = fit(g, cell_at(g, i, j), g->bands[1][j].size);
                g->bands[0][i].size = oly_larger(g->bands[0][i].size, f.above + f.lines + f.below);
            }
    return OLY_OK;
}

static void free_grid(grid *g)
{
    oly_release(g->bands[0]);
    oly_release(g->bands[1]);
    oly_release(g->at);
}

/* -- drawing ------------------------------------------------------------------------------------------ */

static void draw_rule(oly_text *text, const grid *g, const char *left, const char *middle, const char *right)
{
    for (int j = 0; j < g->n[1]; j++) {
        oly_text_add(text, "%s", j ? middle : left);
        oly_text_repeat(text, "─", g->bands[1][j].size);
    }
    oly_text_add(text, "%s\n", right);
}

/* One line of a cell; *at: the rest of its label. */
static void draw_cell(oly_text *text, const oly_draw_cell *cell, const fitted *f, int line, int columns,
                      const char **at)
{
    if (!cell || line < f->above || !**at) {
        oly_text_add(text, "│%*s", columns, "");
        return;
    }
    int length = next_line(*at, f->width), shown = length < f->width ? length : f->width;
    oly_text_add(text, "│%*s%.*s%*s", f->before, "", shown, *at, columns - f->before - shown, "");
    *at += length;
}

static oly_status draw_row(oly_text *text, const grid *g, int i)
{
    size_t n = (size_t)g->n[1];
    fitted *fits = oly_calloc(n, sizeof *fits);
    const char **at = oly_calloc(n, sizeof *at);
    for (int j = 0; j < g->n[1] && fits && at; j++)
        if (cell_at(g, i, j)) {
            fits[j] = fit(g, cell_at(g, i, j), g->bands[1][j].size);
            at[j] = cell_at(g, i, j)->label;
        }
    for (int line = 0; line < g->bands[0][i].size && fits && at; line++) {
        for (int j = 0; j < g->n[1]; j++)
            draw_cell(text, cell_at(g, i, j), &fits[j], line, g->bands[1][j].size, &at[j]);
        oly_text_add(text, "│\n");
    }
    oly_status status = fits && at ? OLY_OK : oly_out_of_memory(n * sizeof *fits, "drawing a sharding");
    oly_release(at);
    oly_release(fits);
    return status;
}

oly_status oly_draw_cells(oly_text *text, int rank, const int64_t *shape, int n_cells, const oly_draw_cell *cells)
{
    if (rank != 1 && rank != 2)
        return oly_fail(OLY_SHAPE, "a sharding can be drawn for arrays of 1 or 2 dimensions; this one has %d", rank);
    const oly_draw_cell nothing = {.extent = {1, 1}, .label = "no elements"};
    const int64_t one[2] = {1, 1};
    int n_filled = 0;
    for (int k = 0; k < n_cells; k++)
        n_filled += !is_empty(&cells[k], rank);
    if (n_filled == 0) {
        rank = 1;
        shape = one;
        n_cells = 1;
        cells = &nothing;
    }
    grid g = {.rank = rank, .shape = shape};
    oly_status status = make_grid(&g, n_cells, cells);
    if (status == OLY_OK) {
        draw_rule(text, &g, "┌", "┬", "┐");
        for (int i = 0; i < g.n[0] && status == OLY_OK; i++) {
            if (i > 0)
                draw_rule(text, &g, "├", "┼", "┤");
            status = draw_row(text, &g, i);
        }
        draw_rule(text, &g, "└", "┴", "┘");
        if (text->failed)
            status = oly_out_of_memory(text->length, "drawing a sharding");
    }
    free_grid(&g);
    return status;
}

/* -- devices to cells --------------------------------------------------------------------------------- */

typedef struct holder {
    int64_t start[2], extent[2];
    int id;
} holder;

static int by_box(const holder *a, const holder *b)
{
    for (int side = 0; side < 2; side++) {
        if (a->start[side] != b->start[side])
            return a->start[side] < b->start[side] ? -1 : 1;
        if (a->extent[side] != b->extent[side])
            return a->extent[side] < b->extent[side] ? -1 : 1;
    }
    return 0;
}

static int by_box_and_id(const void *a, const void *b)
{
    const holder *x = a, *y = b;
    int order = by_box(x, y);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* Merges the sorted holders into cells; each label is a terminated string in `labels` at the offset in `offsets`. */
static int group_holders(const char *platform, int n, const holder *holders, oly_draw_cell *cells, size_t *offsets,
                         oly_text *labels)
{
    int n_cells = 0;
    for (int k = 0; k < n; k++) {
        if (k > 0 && by_box(&holders[k - 1], &holders[k]) == 0) {
            oly_text_add(labels, ",%d", holders[k].id);
            continue;
        }
        if (k > 0)
            oly_text_add_chars(labels, "", 1);
        offsets[n_cells] = labels->length;
        memcpy(cells[n_cells].start, holders[k].start, sizeof holders[k].start);
        memcpy(cells[n_cells].extent, holders[k].extent, sizeof holders[k].extent);
        oly_text_add(labels, "%s %d", platform, holders[k].id);
        n_cells++;
    }
    return n_cells;
}

oly_status oly_draw_sharding(oly_text *text, const char *platform, int rank, const int64_t *shape, int n_devices,
                             const int64_t *starts, const int64_t *extents, const int *ids)
{
    if (rank != 1 && rank != 2)
        return oly_draw_cells(text, rank, shape, 0, NULL); /* which reports what is wrong */
    size_t n = (size_t)n_devices;
    oly_text labels = {.chars = NULL};
    holder *holders = oly_calloc(n + 1, sizeof *holders);
    oly_draw_cell *cells = oly_calloc(n + 1, sizeof *cells);
    size_t *offsets = oly_calloc(n + 1, sizeof *offsets);
    oly_status status = OLY_OK;
    if (holders && cells && offsets) {
        for (size_t k = 0; k < n; k++) {
            memcpy(holders[k].start, starts + k * (size_t)rank, (size_t)rank * sizeof *starts);
            memcpy(holders[k].extent, extents + k * (size_t)rank, (size_t)rank * sizeof *extents);
            holders[k].id = ids[k];
        }
        qsort(holders, n, sizeof *holders, by_box_and_id);
        int n_cells = group_holders(platform, n_devices, holders, cells, offsets, &labels);
        for (int k = 0; k < n_cells; k++)
            cells[k].label = oly_text_chars(&labels) + offsets[k];
        if (!labels.failed)
            status = oly_draw_cells(text, rank, shape, n_cells, cells);
    }
    if (!holders || !cells || !offsets || labels.failed)
        status = oly_out_of_memory(n * (sizeof *holders + sizeof *cells + sizeof *offsets), "drawing a sharding");
    oly_text_free(&labels);
    oly_release(offsets);
    oly_release(cells);
    oly_release(holders);
    return status;
}
