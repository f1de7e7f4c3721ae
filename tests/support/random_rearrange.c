/* SPDX-License-Identifier: BSD-3-Clause */
/* The instructions of random programs that rearrange elements, see random_program.h: drawing, running, printing. Each
 * row reads shape, axes, times, dimension. */
#include "random_program.h"
#include <inttypes.h>

enum {
    PAD,
    REV,
    ROLL,
    ROLL_LINE,
    TILE,
    REPEAT,
    DIAGONAL,
    TRIANGLE,
    DIFFERENCE,
    STACK,
    DIAGONAL_MATRIX,
    SPREAD,
    N_ROWS
};

static int below(program *p, uint64_t n)
{
    return (int)random_below(p, n);
}

static bool draw_pad(program *p, instruction *s, const value *x)
{
    s->times = below(p, 3) == 0 ? below(p, 3) : 0; /* gaps */
    s->number = below(p, 5) - 2;
    for (int d = 0; d < x->rank; d++) {
        s->shape[d] = below(p, 3) ? below(p, 6) - 2 : below(p, 2) * 11;
        s->axes[d] = below(p, 3) ? below(p, 6) - 2 : 0;
    }
    return true;
}

static bool draw_matrix(program *p, instruction *s, const value *x)
{
    s->times = below(p, 7) - 3;
    s->axes[0] = x->rank - 2;
    s->axes[1] = x->rank - 1;
    if (s->row == DIAGONAL && x->rank > 1)
        while ((s->axes[0] = below(p, (uint64_t)x->rank)) == (s->axes[1] = below(p, (uint64_t)x->rank)))
            ;
    s->dimension = below(p, 2); /* lower or upper */
    return x->rank > 1;
}

bool draw_rearrange(program *p, instruction *s, const value *x)
{
    s->row = below(p, N_ROWS);
    s->n_in = 1;
    if (x->rank > 4)
        return false;
    s->dimension = x->rank ? below(p, (uint64_t)x->rank) : 0;
    switch (s->row) {
    case PAD: return draw_pad(p, s, x);
    case REV:
        for (int d = 0; d < x->rank; d++)
            if (below(p, 2))
                s->axes[s->n_axes++] = d;
        return true;
    case ROLL:
        for (int d = 0; d < x->rank; d++)
            if (below(p, 2)) {
                s->axes[s->n_axes] = d;
                s->shape[s->n_axes++] = below(p, 15) - 7;
            }
        return true;
    case ROLL_LINE: s->shape[0] = below(p, 30) - 15; return true;
    case TILE:
        s->rank = below(p, (uint64_t)x->rank + 2);
        for (int d = 0; d < s->rank; d++)
            s->shape[d] = below(p, 12) ? 1 + below(p, 3) : 19;
        return true;
    case REPEAT: s->times = below(p, 4); return x->rank > 0;
    case DIAGONAL:
    case TRIANGLE: return draw_matrix(p, s, x);
    case DIFFERENCE: s->times = below(p, 3); return x->rank > 0;
    case STACK: s->dimension = below(p, (uint64_t)x->rank + 1); return true;
    case DIAGONAL_MATRIX: s->times = below(p, 7) - 3; return x->rank == 1 && x->size < 60;
    case SPREAD: /* broadcast_in_dim with a new dimension anywhere */
        s->dimension = below(p, (uint64_t)x->rank + 1);
        s->rank = x->rank + 1;
        for (int d = 0, e = 0; e < s->rank; e++) {
            if (e == s->dimension)
                s->shape[e] = below(p, 5);
            else {
                s->axes[s->n_axes++] = e;
                s->shape[e] = x->shape[d++];
            }
        }
        return true;
    default: return false;
    }
}

static oly_array pad(const instruction *s, oly_array x)
{
    int64_t high[OLY_MAX_RANK], between[OLY_MAX_RANK];
    for (int d = 0; d < OLY_MAX_RANK; d++) {
        high[d] = s->axes[d];
        between[d] = s->times;
    }
    return oly_pad(x, s->number, s->shape, high, between);
}

oly_array run_rearrange(const instruction *s, oly_array x)
{
    switch (s->row) {
    case PAD: return pad(s, x);
    case REV: return oly_rev_n(x, s->n_axes, s->axes);
    case ROLL: return oly_roll_axes(x, s->n_axes, s->shape, s->axes);
    case ROLL_LINE: return oly_roll_axes(x, 1, s->shape, NULL);
    case TILE: return oly_tile_n(x, s->rank, s->shape);
    case REPEAT: return oly_repeat(x, s->times, s->dimension);
    case DIAGONAL: return oly_diagonal_of(x, s->times, s->axes[0], s->axes[1]);
    case TRIANGLE: return s->dimension ? oly_triu(x, s->times) : oly_tril(x, s->times);
    case DIFFERENCE: return oly_diff(x, s->times, s->dimension);
    case STACK: return oly_stack(s->dimension, x, x);
    case DIAGONAL_MATRIX: return oly_diag(x, s->times);
    case SPREAD: return oly_broadcast_in_dim(x, s->rank, s->shape, s->n_axes, s->axes);
    default: return NULL;
    }
}

/* How far apart two runs may be, given the same of their operands. */
double error_of_rearrange(const instruction *s, const value *x, double epsilon)
{
    double most = x->error;
    for (int k = 0; s->row == DIFFERENCE && k < s->times && x->error > 0; k++)
        most = 2 * most + epsilon * x->biggest * (2 << k);
    return most;
}

void print_rearrange(FILE *file, const instruction *s)
{
    static const char *const names[] = {"pad",      "rev",  "roll", "roll_line", "tile",        "repeat",
                                        "diagonal", "tri?", "diff", "stack",     "diag matrix", "broadcast_in_dim"};
    fprintf(file, "%s(v%d; numbers", names[s->row], s->in[0]);
    for (int d = 0; d < 5; d++)
        fprintf(file, " %" PRId64, s->shape[d]);
    fprintf(file, "; axes");
    for (int d = 0; d < 5; d++)
        fprintf(file, " %d", s->axes[d]);
    fprintf(file, "; times %d, dimension %d, rank %d, n_axes %d, value %g)", s->times, s->dimension, s->rank, s->n_axes,
            s->number);
}
