/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs by plain loops: the statements that have blocks. Every value exists once for each member of the team: the
 * devices of a map, or one. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

array *input_array(const statement *s)
{
    array *a = new_array(s->dtype, s->rank, s->shape);
    uint64_t z = s->data;
    for (int64_t i = 0; i < a->size * a->parts; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        int x = (int)(z >> 40) % 7 - 3;
        if (s->k == 1) /* ascending integers: easy to read */
            x = (int)(i % 5);
        a->v[i] = s->dtype == OLY_BOOL ? x > 0 : element_is_unsigned(s->dtype) ? x + 3 : x;
    }
    return a;
}

static bool evaluate_carries(program *p, const block *b, int skip, int n, array *carry[MOST_DEVICES][MOST_OUT])
{
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < n; k++)
            set_value(p, m, b->param[skip + k], carry[m][k]);
    return true;
}

/* Results of the block become carries. False: of another type. */
static bool take_results(program *p, const block *b, int n, array *carry[MOST_DEVICES][MOST_OUT])
{
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < n; k++) {
            array *y = p->now[m][b->result[k]];
            if (!y || !same_type(y, carry[m][k]))
                return refuse(p, "a carry changes");
            carry[m][k] = y;
        }
    return true;
}

static void first_carries(program *p, const statement *s, int n, array *carry[MOST_DEVICES][MOST_OUT])
{
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < n; k++)
            carry[m][k] = p->now[m][s->in[k]];
}

static void last_carries(program *p, const statement *s, int n, array *carry[MOST_DEVICES][MOST_OUT])
{
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < n; k++)
            set_value(p, m, s->out[k], carry[m][k]);
}

static bool fori(program *p, const statement *s)
{
    array *carry[MOST_DEVICES][MOST_OUT];
    const block *b = &p->block[s->block[0]];
    first_carries(p, s, s->n_in, carry);
    for (int i = 0; i < s->times; i++) {
        for (int m = 0; m < p->team; m++) {
            array *counter = new_array(OLY_INT32, 0, NULL);
            counter->v[0] = s->k + i;
            set_value(p, m, b->param[0], counter);
        }
        evaluate_carries(p, b, 1, s->n_in, carry);
        if (!evaluate_block(p, b) || !take_results(p, b, s->n_in, carry))
            return false;
    }
    last_carries(p, s, s->n_in, carry);
    return true;
}

/* A number equal for all members, or refused. */
static int64_t common_number(program *p, int v)
{
    for (int m = 0; m < p->team; m++) {
        const array *a = p->now[m][v];
        if (a->rank != 0 || a->error > 0 || a->parts == 2 || a->v[0] != p->now[0][v]->v[0])
            return refuse(p, "condition"), 0;
    }
    return (int64_t)p->now[0][v]->v[0];
}

static bool whilst(program *p, const statement *s)
{
    array *carry[MOST_DEVICES][MOST_OUT];
    const block *condition = &p->block[s->block[0]], *b = &p->block[s->block[1]];
    if (p->dual)
        return refuse(p, "no way back");
    first_carries(p, s, s->n_in, carry);
    for (int turns = 0;; turns++) {
        evaluate_carries(p, condition, 0, s->n_in, carry);
        if (!evaluate_block(p, condition))
            return false;
        if (p->now[0][condition->result[0]]->dtype != OLY_BOOL)
            return refuse(p, "condition");
        bool more = common_number(p, condition->result[0]) != 0;
        if (p->refused || turns > 12)
            return refuse(p, "condition");
        if (!more)
            break;
        evaluate_carries(p, b, 0, s->n_in, carry);
        if (!evaluate_block(p, b) || !take_results(p, b, s->n_in, carry))
            return false;
    }
    last_carries(p, s, s->n_in, carry);
    return true;
}

static bool scan(program *p, const statement *s)
{
    array *carry[MOST_DEVICES][MOST_OUT], *y[MOST_DEVICES][MOST_OUT][16];
    const block *b = &p->block[s->block[0]];
    int n_x = s->n_in - s->n_carry, n_y = s->n_out - s->n_carry;
    first_carries(p, s, s->n_carry, carry);
    if (s->times > 16 || s->times < 1)
        return refuse(p, "length");
    for (int turn = 0; turn < s->times; turn++) {
        int i = s->flag ? s->times - 1 - turn : turn;
        evaluate_carries(p, b, 0, s->n_carry, carry);
        for (int m = 0; m < p->team; m++)
            for (int k = 0; k < n_x; k++) {
                const array *x = p->now[m][s->in[s->n_carry + k]];
                if (x->rank < 1 || x->shape[0] != s->times)
                    return refuse(p, "length");
                set_value(p, m, b->param[s->n_carry + k], slice_of(x, 0, i));
            }
        if (!evaluate_block(p, b))
            return false;
        for (int m = 0; m < p->team; m++)
            for (int k = 0; k < n_y; k++) {
                y[m][k][i] = p->now[m][b->result[s->n_carry + k]];
                if (y[m][k][i]->rank >= MOST_RANK)
                    return refuse(p, "rank");
            }
        if (!take_results(p, b, s->n_carry, carry))
            return false;
    }
    last_carries(p, s, s->n_carry, carry);
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < n_y; k++)
            set_value(p, m, s->out[s->n_carry + k], stack_of(s->times, y[m][k], 0, y[m][k][0]->dtype));
    return true;
}

/* Results of a block become those of the statement. */
static void hand_out(program *p, const block *b, const statement *s, int first)
{
    array *y[MOST_DEVICES][MOST_OUT];
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < b->n_results; k++)
            y[m][k] = p->now[m][b->result[k]];
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < b->n_results; k++)
            set_value(p, m, s->out[first + k], y[m][k]);
}

void bind_params(program *p, const block *b, const statement *s, int skip)
{
    array *x[MOST_DEVICES][MOST_IN];
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < b->n_params; k++)
            x[m][k] = p->now[m][s->in[skip + k]];
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < b->n_params; k++)
            set_value(p, m, b->param[k], x[m][k]);
}

static bool branch(program *p, const statement *s)
{
    int64_t which = common_number(p, s->in[0]);
    if (p->refused)
        return false;
    if (s->by_predicate)
        which = which == 0;
    which = which < 0 ? 0 : which >= s->n_blocks ? s->n_blocks - 1 : which;
    const block *b = &p->block[s->block[which]];
    bind_params(p, b, s, 1);
    if (!evaluate_block(p, b))
        return false;
    hand_out(p, b, s, 0);
    return true;
}

static bool call(program *p, const statement *s)
{
    const block *b = &p->block[s->block[0]];
    for (int k = 0; k < b->n_params; k++) {
        const array *x = p->now[0][s->in[k]];
        if (x->dtype != p->dtype_of[b->param[k]] || x->rank != p->rank_of[b->param[k]] ||
            memcmp(x->shape, p->shape_of[b->param[k]], sizeof *x->shape * (size_t)x->rank) != 0)
            return refuse(p, "argument");
    }
    bind_params(p, b, s, 0);
    if (!evaluate_block(p, b))
        return false;
    hand_out(p, b, s, 0);
    return true;
}

static bool vmap(program *p, const statement *s)
{
    const block *b = &p->block[s->block[0]];
    array *y[MOST_DEVICES][MOST_OUT][32], *x[MOST_DEVICES][MOST_IN];
    int64_t n = -1;
    for (int k = 0; k < s->n_in; k++) {
        for (int m = 0; m < p->team; m++)
            x[m][k] = p->now[m][s->in[k]];
        if (s->axes[k] == UNMAPPED)
            continue;
        if (s->axes[k] >= x[0][k]->rank || (n >= 0 && x[0][k]->shape[s->axes[k]] != n))
            return refuse(p, "batch");
        n = x[0][k]->shape[s->axes[k]];
    }
    if (n < 1 || n > 32)
        return refuse(p, "batch");
    for (int64_t i = 0; i < n; i++) {
        for (int m = 0; m < p->team; m++)
            for (int k = 0; k < s->n_in; k++)
                set_value(p, m, b->param[k], s->axes[k] == UNMAPPED ? x[m][k] : slice_of(x[m][k], s->axes[k], i));
        if (!evaluate_block(p, b))
            return false;
        for (int m = 0; m < p->team; m++)
            for (int k = 0; k < s->n_out; k++)
                if ((y[m][k][i] = p->now[m][b->result[k]])->rank >= MOST_RANK || s->out_axes[k] > y[m][k][i]->rank)
                    return refuse(p, "rank");
    }
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < s->n_out; k++)
            set_value(p, m, s->out[k], stack_of((int)n, y[m][k], s->out_axes[k], y[m][k][0]->dtype));
    return true;
}

/* -- maps over devices ------------------------------------------------------------------------------------------------------- */
typedef struct shard {
    int rank;
    int64_t begin[MOST_RANK];
} shard;
static bool shard_source(const void *context, const int64_t *to, int64_t *from)
{
    const shard *s = context;
    for (int d = 0; d < s->rank; d++)
        from[d] = to[d] + s->begin[d];
    return true;
}

static int part_number(const mesh_text *m, const placement *place, int d, int device, int *n)
{
    int at = 0;
    *n = 1;
    for (int k = 0; k < place->n[d]; k++) {
        at = at * m->size[place->axis[d][k]] + device_coordinate(m, device, place->axis[d][k]);
        *n *= m->size[place->axis[d][k]];
    }
    return at;
}

static bool map(program *p, const statement *s)
{
    const block *b = &p->block[s->block[0]];
    const mesh_text *m = &p->mesh[s->k], *before = p->map;
    array *x[MOST_IN], *y[MOST_OUT];
    if (p->team != 1 || before)
        return refuse(p, "maps in maps");
    int devices = 1;
    for (int k = 0; k < m->n_axes; k++)
        devices *= m->size[k];
    for (int k = 0; k < s->n_in; k++)
        x[k] = p->now[0][s->in[k]];
    for (int device = 1; device < devices; device++)
        memcpy(p->now[device], p->now[0], sizeof p->now[0]);
    for (int device = 0; device < devices; device++)
        for (int k = 0; k < s->n_in; k++) {
            shard part = {.rank = x[k]->rank};
            int64_t shape[MOST_RANK];
            for (int d = 0; d < x[k]->rank; d++) {
                int n, at = part_number(m, &s->place[k], d, device, &n);
                if (x[k]->shape[d] % n != 0)
                    return refuse(p, "not divisible");
                shape[d] = x[k]->shape[d] / n;
                part.begin[d] = at * shape[d];
            }
            set_value(p, device, b->param[k], mapped(x[k], x[k]->dtype, x[k]->rank, shape, 0, shard_source, &part));
        }
    p->team = devices;
    p->map = m;
    bool good = evaluate_block(p, b);
    p->team = 1;
    p->map = before;
    for (int k = 0; k < s->n_out && good; k++) {
        const array *one = p->now[0][b->result[k]];
        int64_t shape[MOST_RANK], index[MOST_RANK];
        for (int d = 0; d < one->rank; d++) {
            int n;
            part_number(m, &s->out_place[k], d, 0, &n);
            shape[d] = one->shape[d] * n;
        }
        y[k] = new_array(one->dtype, one->rank, shape);
        if (y[k]->size > 5 * p->most_elements)
            return refuse(p, "too large");
        for (int device = devices - 1; device >= 0; device--) {
            const array *part = p->now[device][b->result[k]];
            if (!same_type(part, one))
                return refuse(p, "types differ");
            y[k]->error = fmax(y[k]->error, part->error);
            if (part->t && !y[k]->t)
                new_tangent(y[k]);
            for (int64_t i = 0; i < part->size; i++) {
                unravel(part->rank, part->shape, i, index);
                for (int d = 0; d < part->rank; d++) {
                    int n;
                    index[d] += part_number(m, &s->out_place[k], d, device, &n) * part->shape[d];
                }
                int64_t to = ravel(part->rank, shape, index);
                for (int e = 0; e < part->parts; e++)
                    y[k]->v[to * part->parts + e] = part->v[i * part->parts + e];
                if (y[k]->t)
                    y[k]->t[to] = part->t ? part->t[i] : 0;
            }
        }
    }
    for (int k = 0; k < s->n_out && good; k++)
        set_value(p, 0, s->out[k], y[k]);
    return good;
}

/* -- all statements ------------------------------------------------------------------------------------------------ */
bool evaluate_statement(program *p, const statement *s)
{
    array *y[MOST_DEVICES];
    if (much_taken())
        return refuse(p, "too much memory");
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k] != NUMBER && !p->now[m][s->in[k]])
                return refuse(p, "not there"); /* shrinking tries such programs */
    switch (s->kind) {
    case FORI: return fori(p, s) && !p->refused;
    case WHILE: return whilst(p, s) && !p->refused;
    case SCAN: return scan(p, s) && !p->refused;
    case BRANCH: return branch(p, s) && !p->refused;
    case VMAP: return vmap(p, s) && !p->refused;
    case MAP: return map(p, s) && !p->refused;
    case REGION:
    case CALL: return call(p, s) && !p->refused;
    case GRADIENT:
    case GRADIENTS: return evaluate_derivative(p, s) && !p->refused;
    case INPUT: set_value(p, 0, s->out[0], input_array(s)); return !p->refused;
    case MOVE: set_value(p, 0, s->out[0], p->now[0][s->in[0]]); return !p->refused;
    default: break;
    }
    for (int m = 0; m < p->team; m++)
        if (!(y[m] = evaluate_operation(p, s, m)) || p->refused)
            return refuse(p, "operation");
    journal_write(p, s, y[0]);
    for (int m = 0; m < p->team; m++)
        set_value(p, m, s->out[0], y[m]);
    return true;
}

bool evaluate_block(program *p, const block *b)
{
    const block *around = p->at_block;
    int at = p->at_statement;
    for (int k = 0; k < b->n; k++) {
        p->at_block = b;
        p->at_statement = k;
        if (p->work > p->most_work || !evaluate_statement(p, &p->statement[b->statement[k]]))
            return refuse(p, "too much work");
    }
    p->at_block = around;
    p->at_statement = at;
    for (int m = 0; m < p->team; m++)
        for (int k = 0; k < b->n_results; k++)
            if (!p->now[m][b->result[k]])
                return refuse(p, "not there");
    return !p->refused;
}

bool evaluate_main(program *p)
{
    forget_all();
    memset(p->now, 0, sizeof p->now);
    p->refused = false;
    p->work = 0;
    p->team = 1;
    p->map = NULL;
    p->dual = p->by_differences = false;
    p->at_block = NULL;
    return evaluate_block(p, &p->block[0]);
}
