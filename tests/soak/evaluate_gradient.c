/* SPDX-License-Identifier: BSD-3-Clause */
/* Derivatives by tangents propagated with the values, one for each element of the argument; derivatives of derivatives
 * by differences of those. Called by evaluate.c. */
#include "program.h"
#include <math.h>
#include <string.h>

/* float64 too: intermediate values may be float32. */
static void slope_error(const program *p, array *y)
{
    y->error = (p->by_differences ? 5e-3 : 2e-4) * (1 + biggest(y));
}

/* -- of functions ------------------------------------------------------------------------------------------------------------- */
static array *gradient_by(program *p, const statement *s, int argument)
{
    const block *b = &p->block[s->block[0]];
    array *x = p->now[0][s->in[argument]];
    array *y = new_array(x->dtype, x->rank, x->shape);
    if (x->dtype != OLY_FLOAT32 && x->dtype != OLY_FLOAT64)
        return refuse(p, "no slope"), NULL;
    if (x->size > 40)
        return refuse(p, "too many slopes"), NULL;
    for (int64_t i = 0; i < x->size; i++) {
        bind_params(p, b, s, 0);
        array unit = *x;
        new_tangent(&unit)[i] = 1;
        array *copy = take(sizeof *copy);
        *copy = unit;
        set_value(p, 0, b->param[argument], copy);
        if (!evaluate_block(p, b))
            return NULL;
        if (s->flavour == 2) {
            for (int k = 0; k < b->n_results; k++) {
                const array *r = p->now[0][b->result[k]], *c = p->now[0][s->in[b->n_params + k]];
                for (int64_t j = 0; r->t && j < r->size; j++)
                    y->v[i] += r->t[j] * c->v[j];
            }
        } else if (p->now[0][b->result[0]]->t)
            y->v[i] = p->now[0][b->result[0]]->t[0];
    }
    slope_error(p, y);
    return y;
}

/* Arguments, tangents and cotangents: the bound of slope_error does not know of their errors, which are large where they come
 * from 16 bits. */
static bool are_precise(const program *p, const statement *s)
{
    for (int k = 0; k < s->n_in; k++) {
        const array *t = p->now[0][s->in[k]];
        if (t->error > 0x1p-18 * (1 + biggest(t)))
            return false;
    }
    return true;
}

static bool derive_function(program *p, const statement *s)
{
    const block *b = &p->block[s->block[0]];
    array *slopes[MOST_IN];
    for (int k = 0; k < b->n_results && s->flavour == 2; k++)
        if (!is_float(p->now[0][s->in[b->n_params + k]]->dtype))
            return refuse(p, "cotangent");
    if (!are_precise(p, s))
        return refuse(p, "imprecise arguments");
    p->dual = true;
    for (int k = 0; k < s->n_axes && s->flavour != 3; k++) {
        slopes[k] = gradient_by(p, s, s->axes[k]);
        if (!slopes[k]) {
            p->dual = false;
            return false;
        }
    }
    bind_params(p, b, s, 0);
    if (s->flavour == 3) /* oly_jvp: the tangents follow the arguments */
        for (int k = 0; k < s->n_axes; k++) {
            array *copy = take(sizeof *copy), *x = p->now[0][s->in[s->axes[k]]];
            *copy = *x;
            copy->t = p->now[0][s->in[b->n_params + k]]->v;
            if (!same_type(x, p->now[0][s->in[b->n_params + k]]) ||
                (x->dtype != OLY_FLOAT32 && x->dtype != OLY_FLOAT64))
                p->dual = refuse(p, "tangent");
            set_value(p, 0, b->param[s->axes[k]], copy);
        }
    p->dual = s->flavour == 3; /* derivatives inside include the tangents */
    bool good = !p->refused && evaluate_block(p, b);
    p->dual = false;
    if (!good)
        return false;
    array *value[MOST_OUT];
    int n = 0;
    for (int k = 0; k < b->n_results; k++) {
        array *r = take(sizeof *r);
        *r = *p->now[0][b->result[k]];
        r->t = NULL;
        value[k] = r;
    }
    switch (s->flavour) {
    case 0:
    case 1:
        if (value[0]->rank != 0 || !is_float(value[0]->dtype))
            return refuse(p, "not a number");
        if (s->flavour == 1)
            set_value(p, 0, s->out[n++], value[0]);
        for (int k = 0; k < s->n_axes; k++)
            set_value(p, 0, s->out[n++], slopes[k]);
        for (int k = 1; k < b->n_results; k++)
            set_value(p, 0, s->out[n++], value[k]);
        break;
    case 2:
        for (int k = 0; k < b->n_results; k++)
            if (!same_type(value[k], p->now[0][s->in[b->n_params + k]]))
                return refuse(p, "cotangent");
        for (int k = 0; k < b->n_results; k++)
            set_value(p, 0, s->out[n++], value[k]);
        for (int k = 0; k < s->n_axes; k++)
            set_value(p, 0, s->out[n++], slopes[k]);
        break;
    default:
        for (int k = 0; k < b->n_results; k++)
            set_value(p, 0, s->out[n++], value[k]);
        for (int k = 0; k < b->n_results; k++) {
            const array *r = p->now[0][b->result[k]];
            array *t = new_array(r->dtype, r->rank, r->shape);
            if (!is_float(r->dtype))
                return refuse(p, "tangent of whole numbers");
            if (r->t)
                memcpy(t->v, r->t, sizeof *t->v * (size_t)t->size);
            slope_error(p, t);
            set_value(p, 0, s->out[n++], t);
        }
    }
    return n == s->n_out || refuse(p, "results");
}

/* -- inside a function ----------------------------------------------------------------------------------------------------------- */
static int made_by(const program *p, const block *b, int n, int v)
{
    for (int k = 0; k < n; k++)
        for (int j = 0; j < p->statement[b->statement[k]].n_out; j++)
            if (p->statement[b->statement[k]].out[j] == v)
                return k;
    return -1; /* a parameter */
}

/* oly_gradients of in[0] with respect to values of the same block: what follows each is computed again, with its
 * tangent. */
static array *slopes_by(program *p, const statement *s, const block *b, int n, int v)
{
    array *saved[MOST_VALUES], *x = p->now[0][v], *y = new_array(x->dtype, x->rank, x->shape);
    if ((x->dtype != OLY_FLOAT32 && x->dtype != OLY_FLOAT64) || x->size > 40)
        return refuse(p, "slopes"), NULL;
    /* In a derivative of a derivative the value of the outer one has been moved: it stays, also where it is made after v. */
    int before = p->varied, outer = before ? made_by(p, b, n, before - 1) : -1;
    memcpy(saved, p->now[0], sizeof saved);
    p->varied = v + 1;
    for (int64_t i = 0; (i < x->size || i == 0) && !p->refused;
         i++) { /* once without elements, too: for values without a derivative */
        array *copy = take(sizeof *copy);
        *copy = *x;
        new_tangent(copy);
        if (x->size > 0)
            copy->t[i] = 1;
        set_value(p, 0, v, copy);
        p->dual = true;
        for (int k = made_by(p, b, n, v) + 1; k < n && !p->refused; k++) {
            if (k == outer)
                continue;
            p->at_block = b;
            p->at_statement = k;
            if (p->work > p->most_work || !evaluate_statement(p, &p->statement[b->statement[k]]))
                refuse(p, "too much work");
        }
        p->dual = false;
        const array *r = p->now[0][s->in[0]];
        if (x->size > 0)
            y->v[i] = r->t ? r->t[0] : 0;
        memcpy(p->now[0], saved, sizeof saved);
    }
    p->varied = before;
    if (p->refused)
        return NULL;
    slope_error(p, y);
    return y;
}

static bool reads(const program *p, const block *b, int v)
{
    for (int k = 0; k < b->n; k++)
        for (int j = 0; j < p->statement[b->statement[k]].n_in; j++)
            if (p->statement[b->statement[k]].in[j] == v)
                return true;
    return false;
}

/* An operation that changes nothing returns its operand, and arguments passed twice are one value: then the derivatives
 * with respect to both are the same. */
static bool may_be_another(const program *p, int v)
{
    const array *x = p->now[0][v];
    for (int u = 0; u < p->n_values; u++) {
        const array *y = p->now[0][u];
        bool near = p->home[u] == p->home[v] || reads(p, p->at_block, u);
        if (u != v && near && y && same_type(x, y) && memcmp(x->v, y->v, sizeof *x->v * (size_t)x->size) == 0)
            return true;
    }
    return false;
}

static bool derive_inside(program *p, const statement *s)
{
    const block *b = p->at_block;
    int n = p->at_statement;
    const array *y = p->now[0][s->in[0]];
    if (!b || b == p->block || y->rank != 0 || !is_float(y->dtype))
        return refuse(p, "gradients");
    for (int k = 1; k < s->n_in; k++) {
        bool here = made_by(p, b, n, s->in[k]) >= 0;
        for (int j = 0; j < b->n_params; j++)
            here = here || b->param[j] == s->in[k];
        if (!here || may_be_another(p, s->in[k]))
            return refuse(p, "made elsewhere");
        array *slopes = slopes_by(p, s, b, n, s->in[k]);
        if (!slopes)
            return false;
        set_value(p, 0, s->out[k - 1], slopes);
    }
    p->at_block = b;
    p->at_statement = n;
    return true;
}

/* -- derivatives of derivatives ----------------------------------------------------------------------------------------------------- */
static bool derive(program *p, const statement *s)
{
    return s->kind == GRADIENT ? derive_function(p, s) : derive_inside(p, s);
}

/* Everything that has a tangent, moved by this step along it. */
static void move_along(program *p, array *const *from, double step)
{
    for (int v = 0; v < p->n_values; v++) {
        if (!from[v] || !from[v]->t)
            continue;
        array *x = new_array(from[v]->dtype, from[v]->rank, from[v]->shape);
        for (int64_t i = 0; i < x->size; i++)
            x->v[i] = from[v]->v[i] + step * from[v]->t[i];
        x->error = step == 0 ? from[v]->error : fmax(from[v]->error, 1e-7);
        set_value(p, 0, v, x);
    }
}

/* Tangents of the results, from their values at four points along the tangents: those must agree, or there is a
 * corner. */
static bool derive_again(program *p, const statement *s)
{
    static const double steps[] = {0, 1, -1, 0.5, -0.5};
    array *before[MOST_VALUES], *at[5][MOST_OUT];
    const block *b = p->at_block;
    int n = p->at_statement;
    double most = 1, h;
    memcpy(before, p->now[0], sizeof before);
    for (int v = 0; v < p->n_values; v++)
        for (int64_t i = 0; before[v] && before[v]->t && i < before[v]->size; i++)
            most = fmax(most, fabs(before[v]->t[i]));
    h = 1 / (32 * most);
    p->dual = false;
    p->by_differences = true;
    for (int k = 0; k < 5 && !p->refused; k++) {
        move_along(p, before, steps[k] * h);
        p->at_block = b;
        p->at_statement = n;
        if (!derive(p, s))
            refuse(p, "derivative");
        for (int j = 0; j < s->n_out && !p->refused; j++)
            at[k][j] = p->now[0][s->out[j]];
        memcpy(p->now[0], before, sizeof before);
    }
    p->dual = true;
    for (int j = 0; j < s->n_out && !p->refused; j++) {
        array *y = at[0][j];
        if (is_float(y->dtype))
            new_tangent(y);
        for (int64_t i = 0; y->t && i < y->size; i++) {
            double far = (at[1][j]->v[i] - at[2][j]->v[i]) / (2 * h), near = (at[3][j]->v[i] - at[4][j]->v[i]) / h;
            y->t[i] = (4 * near - far) / 3;
            if (fabs(near - far) > 2e-3 * (1 + fabs(y->t[i])))
                refuse(p, "a corner");
        }
        set_value(p, 0, s->out[j], y);
    }
    return !p->refused;
}

bool evaluate_derivative(program *p, const statement *s)
{
    if (p->team != 1)
        return refuse(p, "a gradient in a map");
    return p->dual ? derive_again(p, s) : derive(p, s);
}
