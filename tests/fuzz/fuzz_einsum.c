/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscripts of oly_einsum. For an accepted one the sum over the result is the sum by plain loops over the letters. */
#include "fuzz.h"
#include <ctype.h>
#include <string.h>

const char *const fuzz_seeds[] = {
    "ij,jk->ik",        "ii->i",        "ii",   "ij->ji", "ij,ij->", "i...,j...->ij...", "ij,kl->ijkl", "ij,jk",
    " ij , jk -> k i ", "...,...->...", "ij->", NULL};
const char *const fuzz_words[] = {"i", "j", "k", "->", ",", "...", " ", "ij", "ii", "-", ">", ".", "A", "->i", NULL};

/* Names for every subscript: a letter, or a position within "..." (numbers from 200 on, counted from the end). */
static int read_term(const char **text, int rank, int *names)
{
    int n = 0, letters = 0;
    for (const char *at = *text; *at && *at != ',' && *at != '-'; at++)
        letters += isalpha((unsigned char)*at) != 0;
    for (; **text && **text != ',' && **text != '-'; ++*text) {
        if (isalpha((unsigned char)**text)) {
            names[n++] = (unsigned char)**text;
        } else if (**text == '.') {
            for (int k = rank - letters; k > 0; k--)
                names[n++] = 200 + k;
            *text += 2;
        }
    }
    return n;
}

/* Sum over all letters of the product of the two 3x3 operands: the sum of all elements of any result. */
static double total(const char *text, const double *x, const double *y, int n_operands)
{
    int names[2][2], seen[4], n_seen = 0, at[2][2];
    for (int o = 0; o < n_operands; o++) {
        read_term(&text, 2, names[o]);
        text += *text == ',';
        for (int d = 0; d < 2; d++) {
            int k = 0;
            while (k < n_seen && seen[k] != names[o][d])
                k++;
            if (k == n_seen)
                seen[n_seen++] = names[o][d];
            at[o][d] = k;
        }
    }
    double sum = 0;
    int index[4] = {0}, count = 1;
    for (int k = 0; k < n_seen; k++)
        count *= 3;
    for (int i = 0; i < count; i++) {
        for (int k = 0, rest = i; k < n_seen; k++, rest /= 3)
            index[k] = rest % 3;
        double product = x[3 * index[at[0][0]] + index[at[0][1]]];
        if (n_operands == 2)
            product *= y[3 * index[at[1][0]] + index[at[1][1]]];
        sum += product;
    }
    return sum;
}

static void check(const char *text, oly_array result, int n_operands)
{
    static const double x[9] = {1, 2, 3, 5, 7, 11, 13, 17, 19}, y[9] = {2, 3, 1, 1, 4, 1, 5, 2, 6};
    if (!result) {
        fuzz_check_refusal();
        return;
    }
    FUZZ_CHECK(oly_item(oly_sum(result)) == total(text, x, y, n_operands));
}

void fuzz_try(const char *text)
{
    static const int32_t x[9] = {1, 2, 3, 5, 7, 11, 13, 17, 19}, y[9] = {2, 3, 1, 1, 4, 1, 5, 2, 6};
    const int64_t shape[2] = {3, 3};
    oly_array a = oly_from_host(x, OLY_INT32, 2, shape), b = oly_from_host(y, OLY_INT32, 2, shape);
    if (strchr(text, ','))
        check(text, oly_einsum(text, a, b), 2);
    else
        check(text, oly_einsum(text, a), 1);
}
