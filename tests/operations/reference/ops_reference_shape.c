/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that rearrange elements: each as a function from an index of the result to an index of an operand. */
#include "ops_reference.h"

/* #define of a call and of the value at `at`; x is operand 0, y operand 1. */
#define MOVE(label, call, ...)                                                                                         \
    static oly_array call_##label(const oly_array *in)                                                                 \
    {                                                                                                                  \
        return call;                                                                                                   \
    }                                                                                                                  \
    static number value_##label(const row *r, const tensor *in, const int64_t *at)                                     \
    {                                                                                                                  \
        const tensor *x = in, *y = in + 1;                                                                             \
        (void)r, (void)x, (void)y, (void)at;                                                                           \
        return __VA_ARGS__;                                                                                            \
    }
#define X(...)   ops_get(x, AT(__VA_ARGS__))
#define Y(...)   ops_get(y, AT(__VA_ARGS__))
#define DIM(d)   oly_dim(in[0], d)
#define PARTS(n) ((const int64_t[]){n})

/* -- reshapes, and operations that are one ------------------------------------------------------------------------- */
MOVE(flatten, oly_reshape(in[0], -1), x->element[at[0]])
MOVE(merge, oly_reshape(in[0], DIM(0) * DIM(1), DIM(2)), x->element[at[0] * x->shape[2] + at[1]])
MOVE(swap_extents, oly_reshape(in[0], DIM(1), DIM(0)), x->element[at[0] * x->shape[0] + at[1]])
MOVE(insert, oly_reshape(in[0], DIM(0), 1, DIM(1)), X(at[0], at[2]))
MOVE(squeeze, oly_squeeze(in[0]), X(at[0], 0, at[1], 0))
MOVE(squeeze_one, oly_squeeze(in[0], -1), X(at[0], at[1], at[2], 0))
MOVE(expand_dims, oly_expand_dims(in[0], 0, -1), X(at[1], at[2]))
MOVE(ravel, oly_ravel(in[0]), x->element[at[0]])
MOVE(atleast, oly_atleast(in[0], 3), X(at[1]))
MOVE(reshape_sharded, oly_reshape_sharded(in[0], NULL, DIM(0) * DIM(1)), x->element[at[0]])

/* -- order of dimensions and elements -------------------------------------------------------------------------------------- */
MOVE(transpose, oly_transpose(in[0]), X(at[1], at[0]))
MOVE(turn, oly_transpose(in[0], 2, 0, 1), X(at[1], at[2], at[0]))
MOVE(moveaxis, oly_moveaxis(in[0], 0, -1), X(at[2], at[0], at[1]))
MOVE(swapaxes, oly_swapaxes(in[0], 0, 2), X(at[2], at[1], at[0]))
MOVE(rev, oly_rev(in[0], 1), X(at[0], x->shape[1] - 1 - at[1]))
MOVE(flip, oly_flip(in[0]), X(x->shape[0] - 1 - at[0], x->shape[1] - 1 - at[1]))
static int64_t cyclic(int64_t i, int64_t n)
{
    return (i % n + n) % n;
}
MOVE(roll, oly_roll(in[0], 3, 0), X(cyclic(at[0] - 3, x->shape[0]), at[1]))
MOVE(roll_flat, oly_roll_axes(in[0], 1, PARTS(-2), NULL), x->element[cyclic(at[0] * x->shape[1] + at[1] + 2, x->size)])

/* -- repeating ----------------------------------------------------------------------------------------------------- */
MOVE(broadcast, oly_broadcast_to(in[0], 5, DIM(0), DIM(1)), X(at[1], at[2]))
MOVE(widen, oly_broadcast_to(in[0], DIM(0), 5), X(at[0], 0))
static const int last_two[] = {1, 2};
MOVE(broadcast_in_dim, oly_broadcast_in_dim(in[0], 3, AT(2, DIM(0), DIM(1)), 2, last_two), X(at[1], at[2]))
MOVE(tile, oly_tile(in[0], 2, 3), X(at[0] % x->shape[0], at[1] % x->shape[1]))
MOVE(tile_front, oly_tile(in[0], 2, 1), X(at[1]))
MOVE(repeat, oly_repeat(in[0], 2, 1), X(at[0], at[1] / 2))

static int64_t mirrored(int64_t i, int64_t n, int64_t period) /* of a dimension that is reflected back and forth */
{
    i = period ? cyclic(i, period) : 0;
    return i < n ? i : period - i - (period == 2 * n);
}
static int64_t nearest(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}
#define SURROUND(mode) oly_pad_mode(in[0], mode, AT(1, 2), AT(1, 1))
MOVE(pad_edge, SURROUND("edge"), X(nearest(at[0] - 1, x->shape[0]), nearest(at[1] - 2, x->shape[1])))
MOVE(pad_reflect, SURROUND("reflect"),
     X(mirrored(at[0] - 1, x->shape[0], 2 * x->shape[0] - 2), mirrored(at[1] - 2, x->shape[1], 2 * x->shape[1] - 2)))
MOVE(pad_symmetric, SURROUND("symmetric"),
     X(mirrored(at[0] - 1, x->shape[0], 2 * x->shape[0]), mirrored(at[1] - 2, x->shape[1], 2 * x->shape[1])))
MOVE(pad_wrap, SURROUND("wrap"), X(cyclic(at[0] - 1, x->shape[0]), cyclic(at[1] - 2, x->shape[1])))

/* -- slices -------------------------------------------------------------------------------------------------------- */
MOVE(inside, oly_slice(in[0], "1:-1"), X(at[0] + 1, at[1]))
MOVE(every_other, oly_slice(in[0], "..., ::2"), X(at[0], 2 * at[1]))
MOVE(last_row, oly_slice(in[0], "-1"), X(x->shape[0] - 1, at[0]))
MOVE(index_in_dim, oly_index_in_dim(in[0], -1, 0), X(x->shape[0] - 1, at[0]))
MOVE(slice_in_dim, oly_slice_in_dim(in[0], 1, DIM(0), 1, 0), X(at[0] + 1, at[1]))
MOVE(ranges, oly_slice_ranges(in[0], AT(1, 0), AT(DIM(0) - 1, DIM(1)), AT(1, 2)), X(at[0] + 1, 2 * at[1]))
MOVE(update, oly_update(in[0], "1:-1", in[1]),
     at[0] >= 1 && at[0] < x->shape[0] - 1 ? Y(at[0] - 1, at[1]) : X(at[0], at[1]))
MOVE(update_number, oly_update(in[0], ":, ::2", 1), at[1] % 2 == 0 ? 1 : X(at[0], at[1]))
MOVE(update_row, oly_update(in[0], "0", in[1]), at[0] == 0 ? Y(at[1]) : X(at[0], at[1]))

static oly_array call_split(const oly_array *in)
{
    oly_array parts[2] = {NULL, NULL};
    oly_split_evenly(in[0], 2, 0, parts);
    return parts[0] ? oly_concatenate(1, parts[1], parts[0]) : NULL;
}
static number value_split(const row *r, const tensor *x, const int64_t *at)
{
    int64_t half = x->shape[0] / 2, columns = x->shape[1];
    (void)r;
    return at[1] < columns ? X(at[0] + half, at[1]) : X(at[0], at[1] - columns);
}

/* -- padding and joining ------------------------------------------------------------------------------------------- */
MOVE(pad, oly_pad(in[0], in[1], AT(2, 1), AT(0, 2), AT(0, 0)),
     at[0] >= 2 && at[1] >= 1 && at[1] <= x->shape[1] ? X(at[0] - 2, at[1] - 1) : y->element[0])
MOVE(pad_between, oly_pad(in[0], 1, AT(-1, 0), AT(0, 1), AT(0, 1)),
     at[1] % 2 == 0 && at[1] / 2 < x->shape[1] ? X(at[0] + 1, at[1] / 2) : 1)
MOVE(concatenate, oly_concatenate(0, in[0], in[1]),
     at[0] < x->shape[0] ? X(at[0], at[1]) : Y(at[0] - x->shape[0], at[1]))
MOVE(concatenate_last, oly_concatenate(-1, in[0], in[1]),
     at[1] < x->shape[1] ? X(at[0], at[1]) : Y(at[0], at[1] - x->shape[1]))
MOVE(stack, oly_stack(1, in[0], in[1]), at[1] ? Y(at[0], at[2]) : X(at[0], at[2]))

/* -- matrices ---------------------------------------------------------------------------------------------------------------- */
MOVE(tril, oly_tril(in[0], 1), at[1] <= at[0] + 1 ? X(at[0], at[1]) : 0)
MOVE(triu, oly_triu(in[0], -1), at[1] >= at[0] - 1 ? X(at[0], at[1]) : 0)
MOVE(diag, oly_diag(in[0], 0), at[0] == at[1] ? X(at[0]) : 0)
MOVE(diag_of, oly_diag(in[0], 0), X(at[0], at[0]))
MOVE(diagonal, oly_diagonal(in[0]), X(at[0], at[0]))
MOVE(diagonal_of, oly_diagonal_of(in[0], 0, 0, 2), X(at[1], at[0], at[1]))
static number sum_of_diagonal(const tensor *x)
{
    oly_dtype sums = ops_result_type("t", x->dtype);
    number sum = 0;
    for (int64_t i = 0; i < x->shape[0]; i++)
        sum += X(i, i);
    return element_is_inexact(sums) ? sum : (number)(long double)ops_wrapped(sums, (whole)creall(sum));
}
MOVE(trace, oly_trace(in[0]), sum_of_diagonal(x))
MOVE(diff, oly_diff(in[0], 1, 0),
     x->dtype == OLY_BOOL ? X(at[0] + 1, at[1]) != X(at[0], at[1]) : X(at[0] + 1, at[1]) - X(at[0], at[1]))

/* -- without operands ---------------------------------------------------------------------------------------------- */
MOVE(full_like, oly_full_like(in[0], 3), 3)
MOVE(zeros_like, oly_zeros_like(in[0]), 0)
MOVE(ones_like, oly_ones_like(in[0]), 1)
MOVE(eye, oly_eye(DIM(0), DIM(1), 1, oly_dtype_of(in[0])), at[1] == at[0] + 1)
MOVE(tri, oly_tri(DIM(0), DIM(1), 0, oly_dtype_of(in[0])), at[1] <= at[0])
MOVE(iota, oly_iota(oly_dtype_of(in[0]), 1, DIM(0), DIM(1)), at[1])
MOVE(arange, oly_arange(DIM(0), oly_dtype_of(in[0])), at[0])
MOVE(arange_range, oly_arange_range(3, 3 + 2 * (double)DIM(0), 2, oly_dtype_of(in[0])), 3 + 2 * at[0])
MOVE(linspace, oly_linspace(-1, 1, 9, oly_dtype_of(in[0])), -1 + at[0] / 4.0L)
MOVE(zeros, oly_zeros(oly_dtype_of(in[0]), DIM(0), 2), 0)
MOVE(ones, oly_ones(oly_dtype_of(in[0]), DIM(0), 2), 1)
MOVE(full, oly_full(7, oly_dtype_of(in[0]), DIM(0), 2), 7)
MOVE(scalar, oly_scalar(5, oly_dtype_of(in[0])), 5)

#define ROW(name, op, shapes, types, label, flags)                                                                     \
    {                                                                                                                  \
        name, op, shapes, types, "s", call_##label, value_##label, 0, 0, 0, flags, NULL                                \
    }
static const row rows[] = {
    ROW("reshape", "reshape", "mn->P", ALL, flatten, 0),
    ROW("reshape", "reshape", "mnk->Pk", ALL, merge, 0),
    ROW("reshape", "reshape", "mn->nm", ALL, swap_extents, 0),
    ROW("reshape", "reshape", "mn->m1n", ALL, insert, 0),
    ROW("reshape_sharded", "reshape", "mn->P", ALL, reshape_sharded, 0),
    ROW("squeeze", "reshape", "m1n1->mn", ALL, squeeze, DIVIDES),
    ROW("squeeze", "reshape", "m1n1->m1n", ALL, squeeze_one, 0),
    ROW("expand_dims", "reshape", "mn->1mn1", ALL, expand_dims, 0),
    ROW("ravel", "reshape", "mn->P", ALL, ravel, 0),
    ROW("atleast", "reshape", "n->1n1", ALL, atleast, 0),
    ROW("transpose", "transpose", "mn->nm", ALL, transpose, 0),
    ROW("transpose", "transpose", "mnk->kmn", ALL, turn, 0),
    ROW("moveaxis", "transpose", "mnk->nkm", ALL, moveaxis, 0),
    ROW("swapaxes", "transpose", "mnk->knm", ALL, swapaxes, 0),
    ROW("rev", "rev", "mn->mn", ALL, rev, 0),
    ROW("flip", "rev", "mn->mn", ALL, flip, 0),
    ROW("roll", "concatenate", "mn->mn", ALL, roll, AT_LEAST_ONE),
    ROW("roll_axes", NULL, "mn->mn", ALL, roll_flat, AT_LEAST_ONE),
    ROW("broadcast_to", "broadcast", "mn->5mn", ALL, broadcast, 0),
    ROW("broadcast_to", "broadcast", "m1->m5", ALL, widen, 0),
    ROW("broadcast_in_dim", "broadcast", "mn->2mn", ALL, broadcast_in_dim, 0),
    ROW("tile", NULL, "mH->DT", ALL, tile, 0),
    ROW("tile", NULL, "n->2n", ALL, tile_front, 0),
    ROW("repeat", NULL, "mn->mE", ALL, repeat, 0),
    ROW("slice", "slice", "mn->Mn", ALL, inside, 0),
    ROW("slice", "slice", "mn->mH", ALL, every_other, 0),
    ROW("slice", "slice", "mn->n", ALL, last_row, 0),
    ROW("index_in_dim", "slice", "mn->n", ALL, index_in_dim, 0),
    ROW("slice_in_dim", "slice", "mn->Ln", ALL, slice_in_dim, 0),
    ROW("slice_ranges", "slice", "mn->MH", ALL, ranges, 0),
    ROW("update", "update", "mn,Mn->mn", ALL, update, 0),
    ROW("update", "update", "mn->mn", ALL, update_number, 0),
    ROW("update", "update", "mn,n->mn", ALL, update_row, 0),
    ROW("split_evenly", "slice", "Dn->mE", ALL, split, 0),
    ROW("pad", "pad", "mn,->AB", ALL, pad, 0),
    ROW("pad", "pad", "mn->LE", ALL, pad_between, AT_LEAST_ONE),
    ROW("pad_mode", "concatenate", "mn->AB", ALL, pad_edge, AT_LEAST_ONE),
    ROW("pad_mode", "concatenate", "mn->AB", ALL, pad_reflect, AT_LEAST_ONE),
    ROW("pad_mode", "concatenate", "mn->AB", ALL, pad_symmetric, AT_LEAST_ONE),
    ROW("pad_mode", "concatenate", "mn->AB", ALL, pad_wrap, AT_LEAST_ONE),
    ROW("concatenate", "concatenate", "mn,nn->Sn", ALL, concatenate, 0),
    ROW("concatenate", "concatenate", "nm,nm->nD", ALL, concatenate_last, 0),
    ROW("stack", "concatenate", "mn,mn->m2n", ALL, stack, 0),
    ROW("tril", "select", "mn->mn", ALL, tril, 0),
    ROW("triu", "select", "mn->mn", ALL, triu, 0),
    ROW("diag", NULL, "n->nn", ALL, diag, 0),
    ROW("diag", NULL, "nn->n", ALL, diag_of, 0),
    ROW("diagonal", NULL, "mm->m", ALL, diagonal, 0),
    ROW("diagonal_of", NULL, "mnm->nm", ALL, diagonal_of, 0),
    {"trace", NULL, "mm->", ALL, "t", call_trace, value_trace, 0, 0, 0, 0, NULL},
    {"diff", NULL, "mn->Ln", ALL, "s", call_diff, value_diff, 0, 0, 1, 0, NULL},
    ROW("full_like", "constant", "mn->mn", NUMBERS, full_like, REFUSES_NONE),
    ROW("zeros_like", "constant", "mn->mn", ALL, zeros_like, 0),
    ROW("ones_like", "constant", "mn->mn", ALL, ones_like, 0),
    ROW("eye", "iota", "mn->mn", ALL, eye, 0),
    ROW("tri", "iota", "mn->mn", ALL, tri, 0),
    ROW("iota", "iota", "mn->mn", NUMBERS, iota, REFUSES_NONE),
    ROW("arange", "iota", "m->m", NUMBERS, arange, REFUSES_NONE),
    ROW("arange_range", "iota", "m->m", NUMBERS, arange_range, REFUSES_NONE),
    {"linspace", "iota", "m->9", FLOATS, "s", call_linspace, value_linspace, 0, 0, 1, REFUSES_NONE, NULL},
    ROW("zeros", "constant", "m->m2", ALL, zeros, 0),
    ROW("ones", "constant", "m->m2", ALL, ones, 0),
    ROW("full", "constant", "m->m2", NUMBERS, full, REFUSES_NONE),
    ROW("scalar", "constant", "m->", NUMBERS, scalar, REFUSES_NONE),
};
const row_list ops_shapes = ROW_LIST(rows);
