/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of elementwise operations and of sources, by plain loops over doubles, with tangents; the others: reductions
 * and products in evaluate_reduce.c, rearrangements in evaluate_shape.c, by index and over devices in
 * evaluate_index.c. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const modes[N_MODES] = {"full",      "same", "valid", "edge", "reflect",
                                    "symmetric", "wrap", "clip",  "left", "right"};

void unravel(int rank, const int64_t *shape, int64_t at, int64_t *index)
{
    for (int d = rank - 1; d >= 0; d--) {
        index[d] = at % shape[d];
        at /= shape[d];
    }
}

int64_t ravel(int rank, const int64_t *shape, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < rank; d++)
        at = at * shape[d] + index[d];
    return at;
}

static array *scalar_array(oly_dtype dtype, double x)
{
    array *a = new_array(dtype, 0, NULL);
    a->v[0] = x;
    return a;
}

array *operand_of(const program *p, const statement *s, int k, int member)
{
    if (s->in[k] != NUMBER)
        return p->now[member][s->in[k]];
    for (int j = 0; j < s->n_in; j++)
        if (s->in[j] != NUMBER && !(s->op == OP_where && j == 0))
            return scalar_array(p->now[member][s->in[j]]->dtype, s->number);
    return scalar_array(OLY_INT32, s->number);
}

/* A number that does not change the type of the array. */
static bool number_fits(const statement *s, oly_dtype dtype)
{
    if (dtype == OLY_BOOL)
        return false;
    if (is_integer(dtype))
        return s->number == floor(s->number) && (s->number >= 0 || !element_is_unsigned(dtype));
    return true;
}

array *converted_array(program *p, const array *a, oly_dtype dtype)
{
    array *y = new_array(dtype, a->rank, a->shape);
    bool to_int = is_integer(dtype), from_float = is_float(a->dtype) || is_complex(a->dtype);
    if (a->error > 0 && (to_int || dtype == OLY_BOOL))
        refuse(p, "a step");
    for (int64_t i = 0; i < a->size; i++) {
        double re = a->v[i * a->parts], im = a->parts == 2 ? a->v[2 * i + 1] : 0;
        if (dtype == OLY_BOOL) {
            y->v[i] = re != 0 || im != 0;
            continue;
        }
        if (to_int && from_float) {
            re = trunc(re);
            if (wrapped(dtype, re) != re)
                refuse(p, "saturates");
        }
        y->v[i * y->parts] = re;
        if (y->parts == 2)
            y->v[2 * i + 1] = im;
    }
    if (a->error > 0)
        y->error = a->error + biggest(a) * element_epsilon(dtype);
    if (a->t && is_float(dtype)) {
        memcpy(new_tangent(y), a->t, sizeof *a->t * (size_t)a->size);
        y->t_error = a->t_error;
    }
    if (a->t && (is_complex(dtype) || is_narrow(dtype)))
        refuse(p, "no slopes here");
    finish_array(p, y);
    return y;
}

/* -- one operand ------------------------------------------------------------------------------------------------------------ */
static array *one(program *p, const statement *s, const array *a)
{
    oly_dtype d = a->dtype;
    bool numeric = d != OLY_BOOL, real = is_float(d);
    array *y;
    switch ((int)s->op) {
    case OP_convert: return converted_array(p, a, s->dtype);
    case OP_constraint:
    case OP_reshard:
    case OP_pvary:
    case OP_stop_gradient:
        y = new_array(d, a->rank, a->shape);
        memcpy(y->v, a->v, sizeof *a->v * (size_t)(a->size * a->parts));
        y->error = a->error;
        if (a->t && s->op != OP_stop_gradient) {
            memcpy(new_tangent(y), a->t, sizeof *a->t * (size_t)a->size);
            y->t_error = a->t_error;
        }
        finish_array(p, y);
        return y;
    case OP_logical_not:
        if (a->error > 0)
            refuse(p, "a step");
        y = new_array(OLY_BOOL, a->rank, a->shape);
        for (int64_t i = 0; i < a->size; i++)
            y->v[i] = a->v[i * a->parts] == 0 && (a->parts == 1 || a->v[2 * i + 1] == 0);
        finish_array(p, y);
        return y;
    case OP_real:
    case OP_imag:
        if (!is_complex(d))
            return refuse(p, "not complex"), NULL;
        y = new_array(d == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64, a->rank, a->shape);
        for (int64_t i = 0; i < a->size; i++)
            y->v[i] = a->v[2 * i + (s->op == OP_imag)];
        y->error = a->error;
        finish_array(p, y);
        return y;
    default: break;
    }
    y = new_array(d, a->rank, a->shape);
    y->error = a->error;
    if (is_complex(d)) {
        if (s->op != OP_neg && s->op != OP_conj && s->op != OP_square)
            return refuse(p, "complex"), NULL;
        for (int64_t i = 0; i < a->size; i++) {
            double re = a->v[2 * i], im = a->v[2 * i + 1];
            y->v[2 * i] = s->op == OP_neg ? -re : s->op == OP_conj ? re : re * re - im * im;
            y->v[2 * i + 1] = s->op == OP_neg || s->op == OP_conj ? -im : 2 * re * im;
        }
        if (s->op == OP_square)
            y->error = a->error > 0 ? 4 * a->error * (biggest(a) + 1) + element_epsilon(d) * biggest(y) * 4 : 0;
        finish_array(p, y);
        return y;
    }
    if (!numeric && s->op != OP_bitwise_not)
        return refuse(p, "bool"), NULL;
    if (s->op >= OP_sin && s->op <= OP_log1p && !real)
        return refuse(p, "not floating"), NULL;
    if ((s->op == OP_floor || s->op == OP_ceil) && !real)
        return refuse(p, "not floating"), NULL;
    if (s->op == OP_bitwise_not && real)
        return refuse(p, "floating"), NULL;
    if (s->op == OP_conj)
        return refuse(p, "real"), NULL;
    if (a->error > 0 && (s->op == OP_sign || s->op == OP_floor || s->op == OP_ceil || s->op == OP_sqrt))
        return refuse(p, "a step"), NULL;
    double *t = a->t && s->op != OP_sign && s->op != OP_floor && s->op != OP_ceil ? new_tangent(y) : NULL;
    for (int64_t i = 0; i < a->size; i++) {
        double x = a->v[i], slope = 0, r = 0;
        switch ((int)s->op) {
        case OP_neg: r = -x, slope = -1; break;
        case OP_abs: r = fabs(x), slope = x < 0 ? -1 : 1; break;
        case OP_sign: r = x > 0 ? 1 : x < 0 ? -1 : 0; break;
        case OP_square: r = x * x, slope = 2 * x; break;
        case OP_relu: r = x > 0 ? x : 0, slope = x > 0; break;
        case OP_floor: r = floor(x); break;
        case OP_ceil: r = ceil(x); break;
        case OP_bitwise_not: r = d == OLY_BOOL ? x == 0 : -x - 1; break;
        case OP_sin: r = sin(x), slope = cos(x); break;
        case OP_cos: r = cos(x), slope = -sin(x); break;
        case OP_tanh: r = tanh(x), slope = 1 - r * r; break;
        case OP_sigmoid: r = 1 / (1 + exp(-x)), slope = r * (1 - r); break;
        case OP_exp: r = slope = x > 5 ? 1e9 : exp(x); break;
        case OP_sqrt: r = x < 0 ? NAN : sqrt(x), slope = 0.5 / r; break;
        default: r = x < 0 ? NAN : log1p(x), slope = 1 / (1 + x); break;
        }
        if (s->op == OP_sqrt && x == 0 && a->t)
            refuse(p, "no slope there"); /* infinite: times zero it is NaN, also in JAX */
        y->v[i] = r;
        if (t)
            t[i] = a->t[i] == 0 ? 0 : a->t[i] * slope;
    }
    if (s->op >= OP_sin && s->op <= OP_log1p)
        y->error = (s->op == OP_exp ? exp(fmin(biggest(a), 6)) * 1.1 : 1) * a->error +
                   8 * element_epsilon(d) * (1 + biggest(y));
    if (s->op == OP_square && a->error > 0)
        y->error = 3 * a->error * (biggest(a) + 1) + element_epsilon(d) * biggest(y);
    finish_array(p, y);
    return y;
}

/* -- several, broadcast --------------------------------------------------------------------------------------------------------- */
static bool broadcast_shape(int n, array *const *a, int *rank, int64_t *shape)
{
    *rank = 0;
    for (int k = 0; k < n; k++)
        if (a[k]->rank > *rank)
            *rank = a[k]->rank;
    for (int d = 0; d < *rank; d++) {
        shape[d] = 1;
        for (int k = 0; k < n; k++) {
            int e = d - (*rank - a[k]->rank);
            int64_t have = e < 0 ? 1 : a[k]->shape[e];
            if (have != 1 && shape[d] != 1 && have != shape[d])
                return false;
            if (have != 1)
                shape[d] = have;
        }
    }
    return true;
}

static int64_t place_in(const array *a, int rank, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < a->rank; d++)
        at = at * a->shape[d] + (a->shape[d] == 1 ? 0 : index[d + rank - a->rank]);
    return at;
}

static double two_real(op o, oly_dtype d, double x, double y, double *by_x, double *by_y)
{
    bool b = d == OLY_BOOL;
    *by_x = *by_y = 0;
    switch ((int)o) {
    case OP_add: *by_x = *by_y = 1; return b ? x != 0 || y != 0 : x + y;
    case OP_sub: *by_x = 1, *by_y = -1; return x - y;
    case OP_mul: *by_x = y, *by_y = x; return x * y;
    case OP_max2: *by_x = x == y ? 0.5 : x > y, *by_y = 1 - *by_x; return fmax(x, y);
    case OP_min2: *by_x = x == y ? 0.5 : x < y, *by_y = 1 - *by_x; return fmin(x, y);
    case OP_eq: return x == y;
    case OP_ne: return x != y;
    case OP_lt: return x < y;
    case OP_le: return x <= y;
    case OP_gt: return x > y;
    case OP_ge: return x >= y;
    case OP_logical_and: return x != 0 && y != 0;
    case OP_logical_or: return x != 0 || y != 0;
    case OP_logical_xor: return (x != 0) != (y != 0);
    case OP_bitwise_and: return (double)((int64_t)x & (int64_t)y);
    case OP_bitwise_or: return (double)((int64_t)x | (int64_t)y);
    case OP_bitwise_xor: return (double)((int64_t)x ^ (int64_t)y);
    case OP_fmod: *by_x = 1; return y == 0 ? NAN : fmod(x, y);
    default: *by_x = 1 / y, *by_y = -x / (y * y); return y == 0 ? NAN : x / y;
    }
}

/* Is the operation defined for elements of this type? */
static bool two_takes(op o, oly_dtype d, bool error)
{
    bool compares = o >= OP_eq && o <= OP_ge, logical = o >= OP_logical_and && o <= OP_logical_xor;
    if (error && (compares || logical || o == OP_fmod || o == OP_div))
        return false;
    if (o >= OP_bitwise_and && o <= OP_bitwise_xor)
        return d == OLY_BOOL || is_integer(d);
    if (o == OP_div)
        return is_float(d);
    if (o == OP_sub || o == OP_fmod)
        return d != OLY_BOOL && !(o == OP_fmod && is_complex(d));
    if (is_complex(d))
        return o == OP_add || o == OP_mul || o == OP_eq || o == OP_ne;
    return true;
}

static array *two(program *p, const statement *s, array *const *a)
{
    int rank;
    int64_t shape[MOST_RANK], index[MOST_RANK];
    oly_dtype common = common_type(p, a[0]->dtype, a[1]->dtype), result = common;
    op o = (op)s->op;
    for (int k = 0; k < 2; k++)
        if (s->in[k] == NUMBER && !number_fits(s, a[1 - k]->dtype))
            return refuse(p, "number"), NULL;
    if (!broadcast_shape(2, a, &rank, shape) || elements_of(rank, shape) > 5 * p->most_elements)
        return refuse(p, "shapes"), NULL;
    if (o == OP_complex) {
        if (a[0]->dtype != a[1]->dtype || (common != OLY_FLOAT32 && common != OLY_FLOAT64))
            return refuse(p, "type"), NULL;
        result = common == OLY_FLOAT32 ? OLY_COMPLEX64 : OLY_COMPLEX128;
    } else if (!two_takes(o, common, a[0]->error > 0 || a[1]->error > 0))
        return refuse(p, "type"), NULL;
    if (o >= OP_eq && o <= OP_logical_xor)
        result = OLY_BOOL;
    array *x = o >= OP_logical_and && o <= OP_logical_xor ? a[0] : converted_array(p, a[0], common);
    array *z = o >= OP_logical_and && o <= OP_logical_xor ? a[1] : converted_array(p, a[1], common);
    if (o >= OP_logical_and && o <= OP_logical_xor && (x->parts == 2 || z->parts == 2))
        return refuse(p, "complex"), NULL;
    array *y = new_array(result, rank, shape);
    double *t = (x->t || z->t) && result != OLY_BOOL ? new_tangent(y) : NULL;
    if (t && y->parts == 2)
        return refuse(p, "no slopes of complex numbers"), NULL; /* tangents are real here */
    for (int64_t i = 0; i < y->size; i++) {
        double by_x, by_z;
        unravel(rank, shape, i, index);
        int64_t j = place_in(x, rank, index), k = place_in(z, rank, index);
        if (o == OP_complex) {
            y->v[2 * i] = x->v[j];
            y->v[2 * i + 1] = z->v[k];
        } else if (x->parts == 2) {
            double a_ = x->v[2 * j], b_ = x->v[2 * j + 1], c_ = z->v[2 * k], d_ = z->v[2 * k + 1];
            if (o == OP_eq || o == OP_ne) {
                y->v[i] = (a_ == c_ && b_ == d_) == (o == OP_eq);
                continue;
            }
            y->v[2 * i] = o == OP_add ? a_ + c_ : o == OP_sub ? a_ - c_ : a_ * c_ - b_ * d_;
            y->v[2 * i + 1] = o == OP_add ? b_ + d_ : o == OP_sub ? b_ - d_ : a_ * d_ + b_ * c_;
        } else {
            y->v[i] = two_real(o, common, x->v[j], z->v[k], &by_x, &by_z);
            if (o == OP_div && t && z->t)
                refuse(p, "slope of a quotient");
            if (t)
                t[i] = (x->t ? x->t[j] * by_x : 0) + (z->t && o != OP_fmod ? z->t[k] * by_z : 0);
        }
    }
    double e = element_epsilon(result);
    if (x->error > 0 || z->error > 0)
        y->error =
            (o == OP_mul ? 2 * (x->error * (biggest(z) + z->error) + z->error * biggest(x)) : x->error + z->error) +
            2 * e * biggest(y);
    if (o == OP_div) {
        bool exact = true;
        for (int64_t i = 0; i < y->size; i++)
            exact = exact && exact_in(result, y->v[i]);
        if (!exact)
            y->error = 2 * e * biggest(y);
    }
    if (o == OP_add || o == OP_sub)
        join_sums(p, y, a[0], a[1]);
    finish_array(p, y);
    return y;
}

static array *where(program *p, const statement *s, array *const *a)
{
    int rank;
    int64_t shape[MOST_RANK], index[MOST_RANK];
    oly_dtype common = common_type(p, a[1]->dtype, a[2]->dtype);
    if (!broadcast_shape(3, a, &rank, shape) || elements_of(rank, shape) > 5 * p->most_elements || a[0]->error > 0 ||
        a[0]->parts == 2)
        return refuse(p, "shapes"), NULL;
    for (int k = 1; k < 3; k++)
        if (s->in[k] == NUMBER && !number_fits(s, a[3 - k]->dtype))
            return refuse(p, "number"), NULL;
    array *x = converted_array(p, a[1], common), *z = converted_array(p, a[2], common);
    array *y = new_array(common, rank, shape);
    double *t = x->t || z->t ? new_tangent(y) : NULL;
    for (int64_t i = 0; i < y->size; i++) {
        unravel(rank, shape, i, index);
        const array *from = a[0]->v[place_in(a[0], rank, index)] != 0 ? x : z;
        int64_t j = place_in(from, rank, index);
        for (int part = 0; part < y->parts; part++)
            y->v[i * y->parts + part] = from->v[j * y->parts + part];
        if (t)
            t[i] = from->t ? from->t[j] : 0;
    }
    y->error = fmax(x->error, z->error);
    finish_array(p, y);
    return y;
}

static array *clamp(program *p, const statement *s, const array *a)
{
    double low = (double)s->low[0], high = (double)s->high[0];
    if (a->dtype == OLY_BOOL || is_complex(a->dtype) || (element_is_unsigned(a->dtype) && low < 0))
        return refuse(p, "type"), NULL;
    array *y = new_array(a->dtype, a->rank, a->shape);
    double *t = a->t ? new_tangent(y) : NULL;
    for (int64_t i = 0; i < a->size; i++) {
        y->v[i] = fmin(fmax(a->v[i], low), high);
        if (t && a->t[i] != 0 && (a->v[i] == low || a->v[i] == high))
            refuse(p, "a corner"); /* oly_clip is made of max and min */
        if (t)
            t[i] = a->v[i] > low && a->v[i] < high ? a->t[i] : 0;
    }
    y->error = a->error;
    finish_array(p, y);
    return y;
}

/* -- sources ---------------------------------------------------------------------------------------------------------------------------- */
static array *source(program *p, const statement *s)
{
    if (elements_of(s->rank, s->shape) > 5 * p->most_elements)
        return refuse(p, "too large"), NULL;
    array *y = new_array(s->dtype, s->rank, s->shape);
    int64_t index[MOST_RANK];
    for (int64_t i = 0; i < y->size; i++) {
        unravel(y->rank, y->shape, i, index);
        y->v[i * y->parts] = s->op == OP_full   ? s->number
                             : s->op == OP_iota ? (double)index[s->k]
                                                : (double)(index[1] == index[0] + s->k);
        if (s->dtype == OLY_BOOL)
            y->v[i] = y->v[i] != 0;
    }
    finish_array(p, y);
    return y;
}

array *evaluate_operation(program *p, const statement *s, int member)
{
    array *a[MOST_IN];
    for (int k = 0; k < s->n_in; k++)
        if (!(a[k] = operand_of(p, s, k, member)))
            return refuse(p, "missing"), NULL;
    switch (operations[s->op].family) {
    case ONE: return one(p, s, a[0]);
    case TWO: return two(p, s, a);
    case THREE: return s->op == OP_where ? where(p, s, a) : clamp(p, s, a[0]);
    case REDUCTION: {
        statement plain = *s;
        plain.op = s->op == OP_sum_unreduced ? OP_sum : s->op;
        return evaluate_reduction(p, &plain, a[0]);
    }
    case RUNNING: return evaluate_running(p, s, a[0]);
    case PRODUCT: return evaluate_product(p, s, a);
    case REARRANGE: return evaluate_rearrangement(p, s, member);
    case INDEXING: return evaluate_indexing(p, s, member);
    case RANDOM: return evaluate_random(p, s, a);
    case INSIDE: {
        statement itself = *s;
        itself.op = OP_constraint;
        return s->op == OP_printed || s->op == OP_checked ? one(p, &itself, a[0]) : evaluate_inside(p, s, a);
    }
    case COLLECTIVE: return evaluate_collective(p, s, member);
    case SOURCE: return source(p, s);
    }
    return NULL;
}
