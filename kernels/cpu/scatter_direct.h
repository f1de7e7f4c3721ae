/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums, smallest and largest of single elements straight from their indexes: one dimension is indexed, indexes and updates are side by side, and all are in this part. Each
 * update reads and writes its element, in order, with nothing before it that the processor would have to wait for. For scatter.c alone, after
 * its COMBINE. */
#ifndef OLY_CPU_SCATTER_DIRECT_H
#define OLY_CPU_SCATTER_DIRECT_H

/* The n indexes from `index` on, of elements of `to` from `low` on, which are `stride` apart. far: they are far apart in much memory,
 * so that the elements are fetched ahead. */
typedef void combine_directly(const void *index, int64_t n, int64_t low, int64_t stride, bool far, void *to,
                              const void *from);

#define DIRECT(name, d, I, T, A, op, of, to_element)                                                                   \
    static void name##_##I##_##d(const void *indexes, int64_t n, int64_t low, int64_t stride, bool far, void *to,      \
                                 const void *from)                                                                     \
    {                                                                                                                  \
        const I *index = indexes;                                                                                      \
        const T *x = from;                                                                                             \
        T *y = (T *)to - low * stride;                                                                                 \
        for (int64_t k = 0; far && k < n; k++) {                                                                       \
            __builtin_prefetch(y + index[k + ELEMENTS_AHEAD < n ? k + ELEMENTS_AHEAD : n - 1] * stride, 1);            \
            y[index[k] * stride] = (T)to_element(op(A, of(y[index[k] * stride]), of(x[k])));                           \
        }                                                                                                              \
        for (int64_t k = 0; !far && stride == 1 && k < n; k++)                                                         \
            y[index[k]] = (T)to_element(op(A, of(y[index[k]]), of(x[k])));                                             \
        for (int64_t k = 0; !far && stride != 1 && k < n; k++)                                                         \
            y[index[k] * stride] = (T)to_element(op(A, of(y[index[k] * stride]), of(x[k])));                           \
    }
#define DIRECT_BOTH(name, d, T, A, op, of, to_element)                                                                 \
    DIRECT(name, d, int32_t, T, A, op, of, to_element) DIRECT(name, d, int64_t, T, A, op, of, to_element)

/* SMALLER and LARGER in a vector of which one lane is used: of scalars compilers make branches, which random numbers take at random. */
#define CHOICES(s, T, U)                                                                                               \
    typedef T chosen_##s __attribute__((vector_size(16)));                                                             \
    typedef U choice_##s __attribute__((vector_size(16)));                                                             \
    static inline T smaller_##s(T a, T b)                                                                              \
    {                                                                                                                  \
        const chosen_##s x = {a}, y = {b};                                                                             \
        const choice_##s first = (choice_##s)(x < y) | (choice_##s)(x != x);                                           \
        return ((chosen_##s)((first & (choice_##s)x) | (~first & (choice_##s)y)))[0];                                  \
    }                                                                                                                  \
    static inline T larger_##s(T a, T b)                                                                               \
    {                                                                                                                  \
        const chosen_##s x = {a}, y = {b};                                                                             \
        const choice_##s first = (choice_##s)(x > y) | (choice_##s)(x != x);                                           \
        return ((chosen_##s)((first & (choice_##s)x) | (~first & (choice_##s)y)))[0];                                  \
    }
CHOICES(f32, float, int32_t)
CHOICES(f64, double, int64_t)
#define CHOOSE_SMALLER(A, x, y) _Generic((A)0, float : smaller_f32, double : smaller_f64)(x, y)
#define CHOOSE_LARGER(A, x, y)  _Generic((A)0, float : larger_f32, double : larger_f64)(x, y)

#define DIRECT_INTEGERS(a, number, name, s, T, U, ...)                                                                 \
    DIRECT_BOTH(sum, s, U, U, ADD, SAME, SAME)                                                                         \
    DIRECT_BOTH(smallest, s, T, T, SMALLER, SAME, SAME)                                                                \
    DIRECT_BOTH(largest, s, T, T, LARGER, SAME, SAME)
#define DIRECT_FLOATS(s, T, A, of, to)                                                                                 \
    DIRECT_BOTH(sum, s, T, A, ADD, of, to)                                                                             \
    DIRECT_BOTH(smallest, s, T, A, CHOOSE_SMALLER, of, to)                                                             \
    DIRECT_BOTH(largest, s, T, A, CHOOSE_LARGER, of, to)
#define DIRECT_NARROW(a, number, name, s, T, of, to, ...) DIRECT_FLOATS(s, T, float, of, to)
#define DIRECT_WIDE(a, number, name, s, T, ...)           DIRECT_FLOATS(s, T, T, SAME, SAME)
#define DIRECT_COMPLEX(a, number, name, s, T, ...)        DIRECT_BOTH(sum, s, T, T, ADD, SAME, SAME)
OLY_INTEGER_TYPES(DIRECT_INTEGERS, )
OLY_NARROW_TYPES(DIRECT_NARROW, )
OLY_WIDE_TYPES(DIRECT_WIDE, )
OLY_COMPLEX_TYPES(DIRECT_COMPLEX, )
enum { SUMS, SMALLEST, LARGEST, DIRECT_OPERATIONS };
/* By the operation, the size of the indexes and the type. */
static combine_directly *const combine_directly_of[DIRECT_OPERATIONS][2][OLY_N_DTYPES] = {
    {{OLY_REAL_TYPES(OLY_CELL, sum_int32_t) OLY_COMPLEX_TYPES(OLY_CELL, sum_int32_t)},
     {OLY_REAL_TYPES(OLY_CELL, sum_int64_t) OLY_COMPLEX_TYPES(OLY_CELL, sum_int64_t)}},
    {{OLY_REAL_TYPES(OLY_CELL, smallest_int32_t)}, {OLY_REAL_TYPES(OLY_CELL, smallest_int64_t)}},
    {{OLY_REAL_TYPES(OLY_CELL, largest_int32_t)}, {OLY_REAL_TYPES(OLY_CELL, largest_int64_t)}}};
static int direct_operation(oly_local_op op) /* -1: none */
{
    return op == OLY_LOCAL_SCATTER_ADD   ? SUMS
           : op == OLY_LOCAL_SCATTER_MIN ? SMALLEST
           : op == OLY_LOCAL_SCATTER_MAX ? LARGEST
                                         : -1;
}

enum { LOOKED_AT_DIRECTLY = 33, FETCHED_BYTES = 1 << 23, FAR_APART = 1 << 16 };

/* Are all in this part, and not nearly all of the first ones that of the one before, whose sums are faster in registers? far: in a part that does not
 * stay in cache they are neither ascending nor close. */
#define SUITS(I)                                                                                                       \
    static bool suits_##I(const oly_index_axis *x, const I *index, int64_t n, bool *far)                               \
    {                                                                                                                  \
        int64_t same = 0, first = index[0], middle = index[n / 2], last = index[n - 1];                                \
        int64_t looked_at = n < LOOKED_AT_DIRECTLY ? n : LOOKED_AT_DIRECTLY;                                           \
        for (int64_t k = 1; k < looked_at; k++)                                                                        \
            same += index[k] == index[k - 1];                                                                          \
        *far = *far && (middle - first > FAR_APART || first - middle > FAR_APART || last - middle > FAR_APART ||       \
                        middle - last > FAR_APART);                                                                    \
        return 8 * same < 7 * (looked_at - 1) && oly_all_inside_##I(n, index, x->low, x->high);                        \
    }
SUITS(int32_t)
SUITS(int64_t)

/* Positions k to k + n; to: the part, whose element p->axis[0].low is at its offset from `origin`; from: the first update. False: nothing is done. */
static bool combine_from_indexes(const oly_positions *p, int64_t k, int64_t n, oly_local_op op, oly_dtype dtype,
                                 void *to, const void *from)
{
    if (direct_operation(op) < 0)
        return false;
    const oly_index_axis *x = &p->axis[0];
    const bool wide = x->at->dtype == OLY_INT64;
    const int64_t bytes = (int64_t)oly_element_bytes[dtype];
    int64_t room[OLY_POSITIONS], first = oly_positions_batch(p, k) + (x->low - x->origin) * x->stride;
    const void *index = oly_positions_read(p, x, k, n, room);
    bool far = (x->high - x->low) * x->stride * bytes > FETCHED_BYTES;
    combine_directly *combines = combine_directly_of[direct_operation(op)][wide][dtype];
    if (!combines || !(wide ? suits_int64_t(x, index, n, &far) : suits_int32_t(x, index, n, &far)))
        return false;
    combines(index, n, x->low, x->stride, far, (char *)to + first * bytes, from);
    return true;
}
#endif
