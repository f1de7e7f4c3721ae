/* SPDX-License-Identifier: BSD-3-Clause */
/* Combining two elements: shared by kernels that combine elements in order (scan.c, scatter.c). A: the type of the
 * computation. */
#ifndef OLY_TWO_ELEMENTS_H
#define OLY_TWO_ELEMENTS_H
#include <complex.h>

#define ADD(A, x, y)      ((A)((x) + (y)))
#define MULTIPLY(A, x, y) ((A)((x) * (y)))
#define OR(A, x, y)       ((A)((x) | (y)))
#define AND(A, x, y)      ((A)((x) & (y)))
#define LARGER(A, x, y)   (((x) > (y)) | ((x) != (x)) ? (x) : (y)) /* without branches */
#define SMALLER(A, x, y)  (((x) < (y)) | ((x) != (x)) ? (x) : (y))
#define SAME(x)           (x)
#endif
