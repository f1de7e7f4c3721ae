/* SPDX-License-Identifier: BSD-3-Clause */
/* Rearranging elements along a dimension, for sorting lines that are distributed over devices
 * (plan/lower/lower_sort.c): extends a part by elements that sort last, numbers a part's elements within the whole
 * line, takes elements in a computed order. Compiled once per instruction set; gives oly_arrange_run_<isa>, called
 * through local.c. */
#include "local_table.h"
#include "special_values.h"
#include <math.h>
#include <string.h>

/* Elements [first, first + n) of a line of the result; `to` is where the first of them goes. */
typedef struct segment {
    const oly_local_task *t;
    const char *in[2]; /* the lines */
    char *to;
    int64_t first, n;
} segment;

static void copy_one(int64_t bytes, char *to, const char *from)
{
    switch (bytes) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, 16); break;
    }
}

static void lengthen(const segment *s)
{
    const oly_local_operand *x = &s->t->in[0];
    int d = s->t->dimension;
    int64_t bytes = oly_element_bytes[x->dtype], step = s->t->out.stride[d] * bytes, have = x->extent[d] - s->first;
    char last[16];
    oly_last_value(x->dtype, last);
    for (int64_t i = 0; i < s->n; i++)
        copy_one(bytes, s->to + i * step, i < have ? s->in[0] + (s->first + i) * x->stride[d] * bytes : last);
}

static int64_t index_at(const void *index, oly_dtype dtype, int64_t at)
{
    return dtype == OLY_INT64 ? ((const int64_t *)index)[at] : ((const int32_t *)index)[at];
}

static void number(const segment *s)
{
    const oly_local_operand *x = &s->t->in[0];
    int d = s->t->dimension;
    int64_t stride = s->t->out.stride[d], size = x->size[d];
    for (int64_t i = 0; i < s->n; i++) {
        int64_t at = s->first + i, number = x->origin[d] + at;
        number = at >= x->extent[d] ? size : s->t->reverse ? size - 1 - number : number;
        if (s->t->out.dtype == OLY_INT64)
            ((int64_t *)s->to)[i * stride] = number;
        else
            ((int32_t *)s->to)[i * stride] = (int32_t)number;
    }
}

/* Converts numbers counted from the end of the whole line to numbers from its beginning. */
static void count_from_start(const segment *s)
{
    int64_t stride = s->t->out.stride[s->t->dimension], last = s->t->out.size[s->t->dimension] - 1;
    for (int64_t i = 0; i < s->n; i++)
        if (s->t->out.dtype == OLY_INT64)
            ((int64_t *)s->to)[i * stride] = last - ((const int64_t *)s->to)[i * stride];
        else
            ((int32_t *)s->to)[i * stride] = (int32_t)last - ((const int32_t *)s->to)[i * stride];
}

static void take(const segment *s)
{
    const oly_local_operand *x = &s->t->in[0], *index = &s->t->in[1];
    int d = s->t->dimension;
    int64_t bytes = oly_element_bytes[x->dtype], step = s->t->out.stride[d] * bytes, stride = x->stride[d] * bytes;
    for (int64_t i = 0; i < s->n; i++)
        copy_one(bytes, s->to + i * step,
                 s->in[0] + index_at(s->in[1], index->dtype, (s->first + i) * index->stride[d]) * stride);
    if (s->t->reverse)
        count_from_start(s);
}

void OLY_ISA_NAME(oly_arrange_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                   int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    int d = t->dimension;
    int64_t length = t->out.extent[d], n = oly_local_count(&t->out, -1), end = n * (chunk + 1) / n_chunks;
    for (int64_t k = n * chunk / n_chunks; k < end;) {
        int64_t line = k / length;
        segment s = {.t = t, .in = {in[0], in[0]}, .first = k % length};
        s.n = length - s.first < end - k ? length - s.first : end - k;
        for (int j = 0; j < t->n_in; j++)
            s.in[j] = (const char *)in[j] + oly_local_offset(t->out.rank, t->out.extent, t->in[j].stride, d, line) *
                                                oly_element_bytes[t->in[j].dtype];
        int64_t to = oly_local_offset(t->out.rank, t->out.extent, t->out.stride, d, line) + s.first * t->out.stride[d];
        s.to = (char *)out + to * oly_element_bytes[t->out.dtype];
        if (t->op == OLY_LOCAL_LENGTHEN)
            lengthen(&s);
        else if (t->op == OLY_LOCAL_NUMBER)
            number(&s);
        else
            take(&s);
        k += s.n;
    }
}
