/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's statements that rearrange elements, and those built on reductions. A table of oracle_statements.c. */
#include "oracle_statements.h"

static oly_array pad(const oracle_call *call)
{
    int64_t low[OLY_MAX_RANK], high[OLY_MAX_RANK], between[OLY_MAX_RANK];
    bool spread = oracle_numbers(call, "interior", between) >= 0;
    oracle_numbers(call, "lo", low);
    oracle_numbers(call, "hi", high);
    return oly_pad(call->arg[0], call->arg[1], low, high, spread ? between : NULL);
}

static oly_array rev(const oracle_call *call)
{
    int axes[OLY_MAX_RANK], n = oracle_small_numbers(call, "dims", axes);
    return oly_rev_n(call->arg[0], n, axes);
}

static oly_array squeeze(const oracle_call *call)
{
    int axes[OLY_MAX_RANK], n = oracle_small_numbers(call, "axes", axes);
    return n < 0 ? oly_squeeze(call->arg[0]) : oly_squeeze_n(call->arg[0], n, axes);
}

static oly_array expand_dims(const oracle_call *call)
{
    int axes[OLY_MAX_RANK], n = oracle_small_numbers(call, "axes", axes);
    return oly_expand_dims_n(call->arg[0], n, axes);
}

static oly_array stack(const oracle_call *call)
{
    return oly_stack_n(call->n, call->arg, oracle_number(call, "axis", 0));
}

static oly_array roll(const oracle_call *call)
{
    int axes[OLY_MAX_RANK], n = oracle_small_numbers(call, "axes", axes);
    int64_t shifts[OLY_MAX_RANK];
    int n_shifts = oracle_numbers(call, "shift", shifts);
    for (int k = n_shifts; n_shifts == 1 && k < n; k++) /* one for all axes */
        shifts[k] = shifts[0];
    for (int k = n; n == 1 && k < n_shifts; k++) /* several along one axis */
        axes[k] = axes[0];
    return oly_roll_axes(call->arg[0], n < n_shifts ? n_shifts : n, shifts, n < 0 ? NULL : axes);
}

static oly_array tile(const oracle_call *call)
{
    int64_t times[OLY_MAX_RANK];
    int n = oracle_numbers(call, "reps", times);
    return oly_tile_n(call->arg[0], n, times);
}

static oly_array repeat(const oracle_call *call)
{
    bool flat = !oracle_attribute(call, "axis");
    return oly_repeat(flat ? oly_ravel(call->arg[0]) : call->arg[0], oracle_number(call, "n", 1),
                      oracle_number(call, "axis", 0));
}

static oly_array broadcast_in_dim(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int dimensions[OLY_MAX_RANK], rank = oracle_numbers(call, "shape", shape);
    int n = oracle_small_numbers(call, "dims", dimensions);
    return oly_broadcast_in_dim_sharded(call->arg[0], oracle_out(call), rank, shape, n, dimensions);
}

static oly_array diag(const oracle_call *call)
{
    return oly_diag(call->arg[0], oracle_number(call, "k", 0));
}

static oly_array trace(const oracle_call *call)
{
    return oly_trace(call->arg[0]);
}

static oly_array eye(const oracle_call *call)
{
    int rows = oracle_number(call, "n", 0);
    return oly_eye(rows, oracle_number(call, "m", rows), oracle_number(call, "k", 0), oracle_dtype_of(call));
}

static oly_array tril(const oracle_call *call)
{
    return oly_tril(call->arg[0], oracle_number(call, "k", 0));
}

static oly_array triu(const oracle_call *call)
{
    return oly_triu(call->arg[0], oracle_number(call, "k", 0));
}

static oly_array diff(const oracle_call *call)
{
    return oly_diff(call->arg[0], oracle_number(call, "n", 1), oracle_number(call, "axis", -1));
}

static oly_array iota(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = oracle_numbers(call, "shape", shape);
    return oly_iota_shape(oracle_dtype_of(call), oracle_number(call, "dim", 0), rank, shape);
}

static oly_array softmax(const oracle_call *call)
{
    return oly_softmax(call->arg[0], oracle_number(call, "axis", -1));
}

static oly_array log_softmax(const oracle_call *call)
{
    return oly_log_softmax(call->arg[0], oracle_number(call, "axis", -1));
}

static oly_array one_hot(const oracle_call *call)
{
    return oly_one_hot(call->arg[0], oracle_number(call, "n", 0), oracle_dtype_of(call),
                       oracle_number(call, "axis", -1));
}

const oracle_statement oracle_statements_shape[] = {
    {"broadcast_in_dim", 1, .other = broadcast_in_dim},
    {"diag", 1, .other = diag},
    {"diff", 1, .other = diff},
    {"expand_dims", 1, .other = expand_dims},
    {"eye", 0, .other = eye},
    {"iota", 0, .other = iota},
    {"log_softmax", 1, .other = log_softmax},
    {"logsumexp", 1, .reduction = oly_logsumexp_with},
    {"one_hot", 1, .other = one_hot},
    {"pad", 2, .other = pad},
    {"reduce_all", 1, .reduction = oly_all_with},
    {"reduce_any", 1, .reduction = oly_any_with},
    {"reduce_std", 1, .reduction = oly_std_with},
    {"reduce_var", 1, .reduction = oly_var_with},
    {"repeat", 1, .other = repeat},
    {"rev", 1, .other = rev},
    {"roll", 1, .other = roll},
    {"softmax", 1, .other = softmax},
    {"squeeze", 1, .other = squeeze},
    {"stack", -1, .other = stack},
    {"tile", 1, .other = tile},
    {"trace", 1, .other = trace},
    {"tril", 1, .other = tril},
    {"triu", 1, .other = triu},
    {NULL},
};
