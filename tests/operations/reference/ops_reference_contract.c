/* SPDX-License-Identifier: BSD-3-Clause */
/* Products: each written as a sum over an index, in letters of its own. Operands are small integers (quarters for
 * floating-point types), so sums are exact in any order. */
#include "ops_reference.h"

/* "ij,jk->ik": the value of an element by looping over every index that the result does not name. */
static number value_einsum(const row *r, const tensor *in, const int64_t *at)
{
    const char *text = r->detail, *result = strchr(text, '>') + 1;
    int64_t extent[128] = {0}, index[128] = {0};
    char operand[MOST_OPERANDS][8] = {{0}}, free_letters[16] = "";
    int n_in = 1, n_free = 0;
    for (int d = 0, k = 0; text[0] != '-'; text++)
        if (*text == ',')
            k++, n_in++, d = 0;
        else
            operand[k][d] = *text,
            extent[(int)*text] = in[k].shape[d] > extent[(int)*text] ? in[k].shape[d] : extent[(int)*text], d++;
    for (int d = 0; result[d]; d++)
        index[(int)result[d]] = at[d];
    for (int k = 0; k < n_in; k++)
        for (int d = 0; operand[k][d]; d++)
            if (!strchr(result, operand[k][d]) && !strchr(free_letters, operand[k][d]))
                free_letters[n_free++] = operand[k][d];
    for (int f = 0; f < n_free; f++)
        if (extent[(int)free_letters[f]] == 0)
            return 0;
    number sum = 0;
    for (int f = 0; f >= 0;) {
        number product = 1;
        for (int k = 0; k < n_in; k++) {
            int64_t where[8];
            for (int d = 0; operand[k][d]; d++)
                where[d] = in[k].shape[d] == 1 ? 0 : index[(int)operand[k][d]];
            number x = ops_get(&in[k], where);
            product *= k == 0 && r->name[0] == 'v' ? conjl(x) : x;
        }
        sum += product;
        for (f = n_free - 1; f >= 0 && ++index[(int)free_letters[f]] == extent[(int)free_letters[f]]; f--)
            index[(int)free_letters[f]] = 0;
    }
    if (element_is_inexact(in->dtype))
        return sum;
    return (long double)ops_wrapped(in->dtype, (whole)creall(sum));
}

#define PRODUCT(label, ...)                                                                                            \
    static oly_array call_##label(const oly_array *in)                                                                 \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }
PRODUCT(matmul, oly_matmul(in[0], in[1]))
PRODUCT(matmul_turned, oly_matmul(oly_transpose(in[0]), oly_transpose(in[1])))
PRODUCT(dot, oly_dot(in[0], in[1]))
PRODUCT(inner, oly_inner(in[0], in[1]))
PRODUCT(outer, oly_outer(in[0], in[1]))
PRODUCT(vdot, oly_vdot(in[0], in[1]))
PRODUCT(tensordot, oly_tensordot(in[0], in[1], 2))
PRODUCT(dot_general, oly_dot_general(in[0], in[1], .contracting = "2; 1", .batch = "0; 2"))
PRODUCT(einsum_three, oly_einsum("ij,jk,k->ik", in[0], in[1], in[2]))
PRODUCT(einsum_diagonal, oly_einsum("ii->i", in[0]))
PRODUCT(einsum_batch, oly_einsum("bij,bjk->bki", in[0], in[1]))
PRODUCT(einsum_sum, oly_einsum("ijk->j", in[0]))

#define ROW(name, op, shapes, types, call, indexes)                                                                    \
    {                                                                                                                  \
        name, op, shapes, types, "s", call, value_einsum, 0, 0, 0, 0, indexes                                          \
    }
static const row rows[] = {
    ROW("matmul", "dot_general", "mk,kn->mn", ALL, call_matmul, "ij,jk->ik"),
    ROW("matmul", "dot_general", "km,nk->mn", ALL, call_matmul_turned, "ji,kj->ik"),
    ROW("matmul", "dot_general", "mnk,mkH->mnH", ALL, call_matmul, "bij,bjk->bik"),
    ROW("matmul", "dot_general", "mnk,kH->mnH", ALL, call_matmul, "bij,jk->bik"),
    ROW("matmul", "dot_general", "mk,k->m", ALL, call_matmul, "ij,j->i"),
    ROW("dot", "dot_general", "mk,k->m", ALL, call_dot, "ij,j->i"),
    ROW("dot", "dot_general", "k,k->", ALL, call_dot, "i,i->"),
    ROW("dot", "dot_general", "mk,nkH->mnH", ALL, call_dot, "ij,kjl->ikl"),
    ROW("dot", NULL, "mk,->mk", ALL, call_dot, "ij,->ij"),
    ROW("inner", "dot_general", "mk,nk->mn", ALL, call_inner, "ij,kj->ik"),
    ROW("outer", NULL, "m,n->mn", ALL, call_outer, "i,j->ij"),
    ROW("vdot", "dot_general", "mk,mk->", ALL, call_vdot, "ij,ij->"),
    ROW("tensordot", "dot_general", "Hmk,mkn->Hn", ALL, call_tensordot, "ijk,jkl->il"),
    ROW("dot_general", "dot_general", "mnk,Hkm->mnH", ALL, call_dot_general, "bij,kjb->bik"),
    ROW("einsum", "dot_general", "mn,nk,k->mk", ALL, call_einsum_three, "ij,jk,k->ik"),
    ROW("einsum", NULL, "mm->m", ALL, call_einsum_diagonal, "ii->i"),
    ROW("einsum", "dot_general", "mnk,mkH->mHn", ALL, call_einsum_batch, "bij,bjk->bki"),
    ROW("einsum", "reduce_sum", "mnk->n", NUMBERS, call_einsum_sum, "ijk->j"),
};
const row_list ops_products = ROW_LIST(rows);
