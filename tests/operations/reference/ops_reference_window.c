/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions and pooling: loops over the window at every position of the result. Operands are small integers
 * (quarters for floating-point types), so sums are exact. */
#include "ops_reference.h"

static number wrapped(oly_dtype dtype, number x)
{
    return element_is_inexact(dtype) ? x : (number)(long double)ops_wrapped(dtype, (whole)creall(x));
}

/* -- convolutions ------------------------------------------------------------------------------------------------------ */
typedef struct slide {
    int space;                              /* dimensions, 1 or 2 */
    int64_t low[2], stride[2], dilation[2]; /* low: zeros before */
    int64_t groups;
} slide;

static number value_conv(const row *r, const tensor *in, const int64_t *at)
{
    const slide *s = r->detail;
    const tensor *x = &in[0], *kernels = &in[1];
    int64_t features = kernels->shape[1], first = at[1] / (kernels->shape[0] / s->groups) * features;
    int64_t rows = s->space > 1 ? kernels->shape[2] : 1, columns = kernels->shape[s->space + 1];
    number sum = 0;
    for (int64_t c = 0; c < features; c++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                int last = s->space - 1;
                int64_t w = at[2 + last] * s->stride[last] + j * s->dilation[last] - s->low[last];
                int64_t h = s->space > 1 ? at[2] * s->stride[0] + i * s->dilation[0] - s->low[0] : 0;
                if (w < 0 || w >= x->shape[2 + last] || h < 0 || (s->space > 1 && h >= x->shape[2]))
                    continue;
                sum += s->space > 1 ? ops_get(x, AT(at[0], first + c, h, w)) * ops_get(kernels, AT(at[1], c, i, j))
                                    : ops_get(x, AT(at[0], first + c, w)) * ops_get(kernels, AT(at[1], c, j));
            }
    return wrapped(in->dtype, sum);
}

#define CALL(label, ...)                                                                                               \
    static oly_array call_##label(const oly_array *in)                                                                 \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }
CALL(conv, oly_conv(in[0], in[1], .padding = "SAME"))
CALL(conv_strided, oly_conv(in[0], in[1], .strides = "2", .padding = "(0, 1)"))
CALL(conv_dilated, oly_conv(in[0], in[1], .rhs_dilation = "2", .padding = "1"))
CALL(conv_groups, oly_conv(in[0], in[1], .padding = "SAME", .feature_group_count = 2))
CALL(conv_plane, oly_conv(in[0], in[1], .padding = "SAME"))
static const slide line_same = {1, {1}, {1}, {1}, 1}, line_strided = {1, {0}, {2}, {1}, 1},
                   line_dilated = {1, {1}, {1}, {2}, 1}, line_groups = {1, {1}, {1}, {1}, 2},
                   plane_same = {2, {0, 1}, {1, 1}, {1, 1}, 1};

static number value_convolve(const row *r, const tensor *in, const int64_t *at)
{
    bool turned = r->name[3] == 'r'; /* correlate */
    int64_t n = in[1].shape[0];
    number sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = turned ? at[0] - (n - 1) + i : at[0] - i;
        if (k >= 0 && k < in[0].shape[0])
            sum += in[0].element[k] * (turned ? conjl(in[1].element[i]) : in[1].element[i]);
    }
    return sum;
}
CALL(convolve, oly_convolve(in[0], in[1], "full"))
CALL(correlate, oly_correlate(in[0], in[1], "full"))

/* -- pooling: a window of 2 x 3, as many positions as elements; one row after, a column on either side ------------- */
static number value_window(const row *r, const tensor *x, const int64_t *at)
{
    const char *what = r->detail;
    number result = 0;
    int n = 0;
    for (int64_t i = at[0]; i < at[0] + 2 && i < x->shape[0]; i++)
        for (int64_t j = at[1] - 1; j < at[1] + 2; j++) {
            if (j < 0 || j >= x->shape[1])
                continue;
            number e = ops_get(x, AT(i, j));
            switch (what[0]) {
            case 's':
            case 'a': result = x->dtype == OLY_BOOL ? creall(result) != 0 || creall(e) != 0 : result + e; break;
            case 'p': result = n ? result * e : e; break;
            case '>': result = n && !ops_less(result, e) ? result : e; break;
            default: result = n && !ops_less(e, result) ? result : e; break;
            }
            n++;
        }
    return what[0] == 'a' ? result / 6 : wrapped(x->dtype, result);
}
CALL(window_sum, oly_reduce_window(in[0], "sum", .window = "2, 3", .padding = "SAME"))
CALL(window_prod, oly_reduce_window(in[0], "prod", .window = "2, 3", .padding = "SAME"))
CALL(window_max, oly_reduce_window(in[0], "max", .window = "2, 3", .padding = "SAME"))
CALL(window_min, oly_reduce_window(in[0], "min", .window = "2, 3", .padding = "SAME"))
CALL(avg_pool, oly_avg_pool(in[0], .window = "2, 3", .padding = "SAME"))

#define CONV(shapes, label, how)                                                                                       \
    {                                                                                                                  \
        "conv", "conv", shapes, NUMBERS, "s", call_##label, value_conv, 0, 0, 0, 0, &how                               \
    }
#define WINDOW(op, types, label, letter, flags)                                                                        \
    {                                                                                                                  \
        "reduce_window", op, "mn->mn", types, "s", call_##label, value_window, 0, 0, 0, flags, letter                  \
    }
static const row rows[] = {
    CONV("2mn,3m3->23n", conv, line_same),
    CONV("2mn,3m2->23H", conv_strided, line_strided),
    CONV("2mn,3m2->23n", conv_dilated, line_dilated),
    CONV("24n,423->24n", conv_groups, line_groups),
    CONV("12mn,3223->13mn", conv_plane, plane_same),
    {"convolve", "conv", "m,n->C", ALL, "f", call_convolve, value_convolve, 0, 0, 0, AT_LEAST_ONE, NULL},
    {"correlate", "conv", "m,n->C", ALL, "f", call_correlate, value_convolve, 0, 0, 0, AT_LEAST_ONE, NULL},
    WINDOW("reduce_window_sum", NUMBERS, window_sum, "s", REFUSES_NONE),
    WINDOW("reduce_window_prod", NUMBERS, window_prod, "p", REFUSES_NONE),
    WINDOW("reduce_window_max", REALS, window_max, ">", REFUSES_NONE),
    WINDOW("reduce_window_min", REALS, window_min, "<", REFUSES_NONE),
    {"avg_pool", "reduce_window_sum", "mn->mn", FLOATS, "s", call_avg_pool, value_window, 0, 0, 1, REFUSES_NONE, "a"},
};
const row_list ops_windows = ROW_LIST(rows);
