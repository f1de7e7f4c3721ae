/* SPDX-License-Identifier: BSD-3-Clause */
#include "random_fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 64 };

int random_case_draw(random_case *c, int64_t n)
{
    c->state = c->state * 1664525u + 1013904223u;
    return (int)((c->state >> 8) % (unsigned)n);
}

static void name_part(const random_case *c, int d, int64_t from, int64_t to, char *text)
{
    sprintf(text, "%s%d:%d%s", d == 1 ? ":, " : "", (int)from, (int)to, c->rank == 2 && d == 0 ? ", :" : "");
}

static oly_array part(const random_case *c, oly_array x, int d, int64_t from, int64_t to)
{
    char text[64];
    name_part(c, d, from, to, text);
    return oly_slice(x, text);
}

static oly_array updated(random_case *c, oly_array x, oly_array y, int d)
{
    int64_t size = oly_dim(x, d), from = random_case_draw(c, size - 1),
            to = from + 1 + random_case_draw(c, size - from);
    int64_t other = random_case_draw(c, size - (to - from) + 1);
    char text[64];
    other = llabs(other - from) > 4 ? from : other;
    name_part(c, d, from, to, text);
    return oly_update(x, text, oly_mul(0.5, part(c, y, d, other, other + to - from)));
}

static oly_array padded(random_case *c, oly_array x, int d)
{
    int64_t size = oly_dim(x, d), below = random_case_draw(c, 4), above = random_case_draw(c, 4),
            from = random_case_draw(c, below + above + 1);
    int64_t low[2] = {0, 0}, high[2] = {0, 0};
    low[d] = below;
    high[d] = above;
    return oly_pad(part(c, x, d, from, from + size - below - above), 0.25, low, high, NULL);
}

static oly_array joined(random_case *c, oly_array x, oly_array y, oly_array z, int d)
{
    int64_t size = oly_dim(x, d), width = 1 + random_case_draw(c, 3), from = random_case_draw(c, 2) ? 0 : size - width;
    return oly_concatenate(d, part(c, x, d, from, from + width),
                           oly_add(part(c, y, d, 0, size - width), part(c, z, d, width, size)));
}

static oly_array slope(random_case *c, oly_array x, int d)
{
    int64_t one[2] = {0, 0}, size = oly_dim(x, d);
    one[d] = 1;
    oly_array p = oly_pad(x, 0, one, one, NULL);
    return oly_mul(0.5, oly_sub(part(c, p, d, 0, size), part(c, p, d, 2, size + 2)));
}

static oly_array spread(oly_array x, oly_array y, oly_array z, int d)
{
    return oly_add(oly_mul(0.3, x), oly_mul(0.2, oly_add(oly_roll(y, 1, d), oly_roll(z, -1, d))));
}

/* A slice of x, or x padded, of these extents. */
static oly_array fitted(random_case *c, oly_array x, const int64_t *shape)
{
    for (int d = 0; d < c->rank; d++) {
        int64_t low[2] = {0, 0}, high[2] = {0, 0}, more = shape[d] - oly_dim(x, d);
        if (more > 0) {
            low[d] = random_case_draw(c, more + 1);
            high[d] = more - low[d];
            x = oly_pad(x, 0.25, low, high, NULL);
        } else if (more < 0) {
            int64_t from = random_case_draw(c, 1 - more);
            x = part(c, x, d, from, from + shape[d]);
        }
    }
    return x;
}

static oly_array difference(const random_case *c, oly_array x, int d)
{
    int64_t size = oly_dim(x, d);
    return oly_mul(0.5, oly_sub(part(c, x, d, 1, size), part(c, x, d, 0, size - 1)));
}

/* x times a factor that depends on the position. */
static oly_array tilted(const random_case *c, oly_array x, int d)
{
    int64_t shape[2] = {oly_dim(x, 0), c->rank == 2 ? oly_dim(x, 1) : 1};
    oly_array at = oly_iota_shape(OLY_INT32, d, c->rank, shape);
    return oly_mul(x, oly_sub(1, oly_mul(0.01, oly_astype(oly_bitwise_and(at, 15), OLY_FLOAT32))));
}

static oly_array operation(random_case *c, oly_array x, oly_array y, oly_array z)
{
    int d = random_case_draw(c, c->rank), which = c->is_long && random_case_draw(c, 3)
                                                      ? 4 + random_case_draw(c, 4)
                                                      : random_case_draw(c, 10 + c->is_long);
    int64_t shape[2] = {oly_dim(x, 0), c->rank == 2 ? oly_dim(x, 1) : 1};
    if (c->staggered) { /* not periodic */
        y = fitted(c, y, shape);
        z = fitted(c, z, shape);
        if (which == 0 || which == 8)
            return difference(c, x, d);
    }
    switch (which) {
    case 0: return oly_roll(x, random_case_draw(c, 7) - 3, d);
    case 1: return updated(c, x, y, d);
    case 2: return padded(c, x, d);
    case 3: return joined(c, x, y, z, d);
    case 4: return oly_where(oly_gt(x, 0.3), y, z);
    case 5: return oly_mul(x, c->is_long ? oly_sin(y) : y); /* many squares would grow, and differences with them */
    case 6: return oly_sub(oly_mul(c->is_long ? 0.6 : 0.7, x), oly_mul(0.4, y));
    case 7: return oly_max2(x, oly_sin(y));
    case 8: return spread(x, y, z, d);
    case 10: return tilted(c, x, d);
    default: return slope(c, x, d);
    }
}

void random_case_body(oly_array i, oly_array *carry, void *user)
{
    random_case *c = user;
    oly_array values[MOST_VALUES];
    int n = c->n_fields;
    (void)i;
    memcpy(values, carry, sizeof *carry * (size_t)n);
    c->state = c->seed;
    for (int k = 0; k < c->n_operations; k++, n++) {
        int x = random_case_draw(c, n), y = random_case_draw(c, n), z = random_case_draw(c, n);
        if (c->is_long && random_case_draw(c, 4))
            x = n - 1 - random_case_draw(c, n < 5 ? n : 5);
        values[n] = operation(c, values[x], values[y], values[z]);
    }
    for (int k = 0; k < c->n_fields; k++) {
        oly_array result = values[n - 1 - random_case_draw(c, 3)];
        carry[k] = random_case_draw(c, 4) ? oly_mul(0.9, result) : result;
        if (c->staggered)
            carry[k] = fitted(c, carry[k], c->shape[k]);
    }
}

size_t random_case_count(const random_case *c, int field)
{
    return (size_t)(c->shape[field][0] * (c->rank == 2 ? c->shape[field][1] : 1));
}

random_case random_case_of(int number, bool staggered)
{
    random_case c = {.state = (unsigned)number * 7919u + 1, .staggered = staggered};
    c.n_fields = 1 + random_case_draw(&c, MOST_FIELDS);
    c.n_operations = 3 + random_case_draw(&c, 7);
    c.rank = 1 + random_case_draw(&c, 2);
    c.steps = 2 + random_case_draw(&c, 6);
    c.shape[0][0] = 9 + random_case_draw(&c, 40);
    c.shape[0][1] = 8 + random_case_draw(&c, 12);
    c.n_fields += staggered && c.n_fields == 1;
    for (int k = 1; k < c.n_fields; k++)
        for (int d = 0; d < 2; d++)
            c.shape[k][d] = c.shape[0][d] + (staggered ? random_case_draw(&c, 4) - 1 : 0);
    return c;
}

/* Bodies whose machine code computes several values together (time_tiling_group.c). */
random_case random_case_long(int number)
{
    random_case c = random_case_of(number, number % 2);
    c.is_long = true;
    c.n_operations = 10 + random_case_draw(&c, MOST_VALUES - MOST_FIELDS - 10);
    return c;
}

oly_array random_case_start(const random_case *c, int field)
{
    size_t count = random_case_count(c, field);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)((i * 7919 + (size_t)field * 31 + 13) % 1009) / 1009;
    oly_array x = oly_from_host(data, OLY_FLOAT32, c->rank, c->shape[field]);
    free(data);
    return x;
}
