/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a failing program smaller while it still fails: statements are removed (their results become constants or other
 * values), loops run less often, carries and results are removed, placements become simpler. */
#include "program.h"
#include "check_element.h"
#include <stdlib.h>
#include <string.h>

/* -- removing what is unused --------------------------------------------------------------------------------------- */
static void need_block(const program *p, const block *b, bool *value, bool *statements);

static bool need_statement(const program *p, const statement *s, bool *value, bool *statements)
{
    bool wanted = false;
    for (int k = 0; k < s->n_out; k++)
        wanted = wanted || value[s->out[k]];
    if (!wanted)
        return false;
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k] != NUMBER)
            value[s->in[k]] = true;
    for (int j = 0; j < s->n_blocks; j++)
        need_block(p, &p->block[s->block[j]], value, statements);
    return true;
}

static void need_block(const program *p, const block *b, bool *value, bool *statements)
{
    for (int k = 0; k < b->n_results; k++)
        value[b->result[k]] = true;
    for (int k = b->n - 1; k >= 0; k--)
        if (need_statement(p, &p->statement[b->statement[k]], value, statements))
            statements[b->statement[k]] = true;
}

void remove_unused(program *p, int keep)
{
    bool value[MOST_VALUES] = {false}, statements[MOST_STATEMENTS] = {false};
    block *main_block = &p->block[0];
    for (int v = 0; v < p->n_values; v++)
        value[v] = keep == NOTHING ? p->home[v] == 0 && !p->dead[v] : v == keep;
    main_block->n_results = 0;
    need_block(p, main_block, value, statements);
    for (int b = 0; b < p->n_blocks; b++) {
        int n = 0;
        block *body = &p->block[b];
        for (int k = 0; k < body->n; k++)
            if (statements[body->statement[k]])
                body->statement[n++] = body->statement[k];
        body->n = n;
    }
    for (int v = 0; v < p->n_values; v++)
        p->dead[v] = p->dead[v] || !value[v] || (keep != NOTHING && p->home[v] == 0 && v != keep);
}

/* -- trying -------------------------------------------------------------------------------------------------------------------------- */
typedef struct shrinking {
    program *best, *next;
    outcome *result;
    attempt *run;
    bool over;
} shrinking;

/* Accepts the changes in `next` if it still fails. */
static bool fails(shrinking *s)
{
    outcome o;
    if (s->over || !evaluate_main(s->next))
        return false;
    s->over = !s->run(s->next, &o);
    if (s->over || !o.failed || o.status != s->result->status)
        return false;
    *s->result = o;
    memcpy(s->best, s->next, sizeof *s->best);
    return true;
}

static void begin(shrinking *s)
{
    memcpy(s->next, s->best, sizeof *s->next);
}

static bool in_program(const program *p, int k)
{
    for (int b = 0; b < p->n_blocks; b++)
        for (int j = 0; j < p->block[b].n; j++)
            if (p->block[b].statement[j] == k)
                return true;
    return false;
}

static bool is_used(const program *p, int v)
{
    for (int b = 0; b < p->n_blocks; b++) {
        for (int k = 0; k < p->block[b].n_results; k++)
            if (p->block[b].result[k] == v)
                return true;
        for (int j = 0; j < p->block[b].n; j++) {
            const statement *t = &p->statement[p->block[b].statement[j]];
            for (int k = 0; k < t->n_in; k++)
                if (t->in[k] == v)
                    return true;
        }
    }
    return v == -2;
}

/* Removes statement k, whose results nobody reads. */
static bool without(shrinking *s, int k)
{
    begin(s);
    program *p = s->next;
    for (int j = 0; j < p->statement[k].n_out; j++) {
        if (is_used(p, p->statement[k].out[j]) || p->statement[k].out[j] == s->result->value)
            return false;
        p->dead[p->statement[k].out[j]] = true;
    }
    for (int b = 0; b < p->n_blocks; b++)
        for (int j = 0; j < p->block[b].n; j++)
            if (p->block[b].statement[j] == k) {
                block *body = &p->block[b];
                memmove(body->statement + j, body->statement + j + 1,
                        sizeof *body->statement * (size_t)(body->n - j - 1));
                body->n--;
            }
    return fails(s);
}

/* Replaces statement k by a constant, ascending integers, or another value of its type. */
static bool simpler_statement(shrinking *s, int k, int how)
{
    begin(s);
    program *p = s->next;
    statement *t = &p->statement[k];
    if (t->n_out != 1 && how < 3)
        return false;
    int v = t->out[0];
    if (how == 0 && t->n_in > 0 && t->in[0] != NUMBER && p->dtype_of[t->in[0]] == p->dtype_of[v] &&
        p->rank_of[t->in[0]] == p->rank_of[v] &&
        memcmp(p->shape_of[t->in[0]], p->shape_of[v], sizeof(int64_t) * (size_t)p->rank_of[v]) == 0) {
        for (int j = 0; j < p->n_statements; j++)
            for (int i = 0; i < p->statement[j].n_in; i++)
                if (p->statement[j].in[i] == v)
                    p->statement[j].in[i] = t->in[0];
        for (int b = 0; b < p->n_blocks; b++)
            for (int i = 0; i < p->block[b].n_results; i++)
                if (p->block[b].result[i] == v)
                    p->block[b].result[i] = t->in[0];
        if (s->result->value >= 0)
            remove_unused(p, s->result->value);
        return fails(s);
    }
    if (how == 1 || how == 2) {
        if (t->kind == INPUT || (t->kind == OPERATION && operations[t->op].family == SOURCE))
            return false;
        statement c = operation_of(how == 1 ? OP_full : OP_iota, 0, NULL);
        c.dtype = p->dtype_of[v];
        c.rank = p->rank_of[v];
        memcpy(c.shape, p->shape_of[v], sizeof c.shape);
        c.number = 1;
        if (how == 2 && (c.rank == 0 || c.dtype == OLY_BOOL))
            return false;
        c.out[0] = v;
        *t = c;
        if (s->result->value >= 0)
            remove_unused(p, s->result->value);
        return fails(s);
    }
    return false;
}

static bool smaller_statement(shrinking *s, int k)
{
    bool any = false;
    statement *t = &s->best->statement[k];
    for (int way = 0; way < 12; way++) {
        begin(s);
        program *p = s->next;
        statement *n = &p->statement[k];
        switch (way) {
        case 0:
            if (t->kind != FORI || t->times <= 1)
                continue;
            n->times = 1;
            break;
        case 1:
            if (t->kind != FORI || t->times <= 2)
                continue;
            n->times--;
            break;
        case 2:
            if (t->kind != FORI || t->k == 0)
                continue;
            n->k = 0;
            break;
        case 3:
            if (t->kind != INPUT || t->place[0].mesh < 0)
                continue;
            memset(n->place[0].n, 0, sizeof n->place[0].n);
            break;
        case 4:
            if (t->kind != INPUT || t->place[0].mesh < 0)
                continue;
            n->place[0].mesh = NOTHING;
            break;
        case 5:
            if (t->kind != INPUT || t->k == 1)
                continue;
            n->k = 1;
            break;
        case 6:
            if (t->kind != CALL)
                continue;
            for (int j = 0; j < t->n_in; j++) {
                n->donated[j] = false;
                if (t->donated[j] && s->result->value == NOTHING)
                    p->dead[t->in[j]] = false;
            }
            n->checkpoint = false;
            if (memcmp(n, t, sizeof *n) == 0)
                continue;
            break;
        case 7:
            if (t->kind != CALL)
                continue;
            for (int j = 0; j < t->n_out; j++)
                n->out_place[j].mesh = NOTHING;
            if (memcmp(n, t, sizeof *n) == 0)
                continue;
            break;
        default: { /* unused carries and results */
            int drop = way - 8;
            block *b = t->n_blocks ? &p->block[t->block[0]] : NULL;
            int last = t->n_out - 1;
            if (!b || drop > last || t->n_out < 2)
                continue;
            if (t->kind == FORI) {
                memmove(n->in + drop, n->in + drop + 1, sizeof *n->in * (size_t)(last - drop));
                memmove(n->out + drop, n->out + drop + 1, sizeof *n->out * (size_t)(last - drop));
                memmove(b->param + 1 + drop, b->param + 2 + drop, sizeof *b->param * (size_t)(last - drop));
                memmove(b->result + drop, b->result + drop + 1, sizeof *b->result * (size_t)(last - drop));
                n->n_in--;
                b->n_params--;
            } else if (t->kind == CALL || t->kind == VMAP || t->kind == MAP) {
                int users = 0;
                for (int j = 0; j < p->n_statements; j++)
                    users +=
                        p->statement[j].kind == CALL && p->statement[j].block[0] == t->block[0] && in_program(p, j);
                if (t->kind == CALL && users > 1)
                    continue;
                memmove(n->out + drop, n->out + drop + 1, sizeof *n->out * (size_t)(last - drop));
                memmove(n->out_axes + drop, n->out_axes + drop + 1, sizeof *n->out_axes * (size_t)(last - drop));
                memmove(n->out_place + drop, n->out_place + drop + 1, sizeof *n->out_place * (size_t)(last - drop));
                memmove(b->result + drop, b->result + drop + 1, sizeof *b->result * (size_t)(last - drop));
            } else
                continue;
            n->n_out--;
            b->n_results--;
            if (s->result->value >= 0)
                remove_unused(p, s->result->value);
        }
        }
        if (fails(s)) {
            any = true;
            t = &s->best->statement[k];
        }
    }
    return any;
}

/* Replaces a function called once, or a loop that runs once, by its statements. */
static bool unwrapped(shrinking *s, int at)
{
    begin(s);
    program *p = s->next;
    int owner = -1, place = 0;
    statement *t = &p->statement[at];
    if (t->kind != CALL && !(t->kind == FORI && t->times == 1) && t->kind != BRANCH)
        return false;
    for (int b = 0; b < p->n_blocks; b++)
        for (int j = 0; j < p->block[b].n; j++)
            if (p->block[b].statement[j] == at)
                owner = b, place = j;
    int users = 0;
    for (int j = 0; j < p->n_statements; j++)
        users += p->statement[j].n_blocks > 0 && p->statement[j].block[0] == t->block[0] && in_program(p, j);
    block *b = owner < 0 ? NULL : &p->block[owner], inner = p->block[t->block[0]];
    if (!b || users > 1 || b->n + inner.n > 60)
        return false;
    memmove(b->statement + place + inner.n, b->statement + place + 1,
            sizeof *b->statement * (size_t)(b->n - place - 1));
    memcpy(b->statement + place, inner.statement, sizeof *b->statement * (size_t)inner.n);
    b->n += inner.n - 1;
    for (int pass = 0; pass < 2; pass++) {
        int n = pass ? t->n_out : inner.n_params;
        for (int k = 0; k < n; k++) {
            int skip = t->kind == BRANCH ? 1 : 0;
            if (!pass && t->kind == FORI && k == 0)
                continue;
            int from = pass ? t->out[k] : inner.param[k],
                to = pass ? inner.result[k] : t->in[k + skip - (t->kind == FORI)];
            for (int round = 0; round < 2 && pass; round++) /* a result that is a parameter */
                for (int j = 0; j < inner.n_params; j++)
                    if (to == inner.param[j] && !(t->kind == FORI && j == 0))
                        to = t->in[j + skip - (t->kind == FORI)];
            for (int j = 0; j < p->n_statements; j++)
                for (int i = 0; i < p->statement[j].n_in; i++)
                    if (p->statement[j].in[i] == from)
                        p->statement[j].in[i] = to;
            for (int j = 0; j < p->n_blocks; j++)
                for (int i = 0; i < p->block[j].n_results; i++)
                    if (p->block[j].result[i] == from)
                        p->block[j].result[i] = to;
            if (s->result->value == from && pass)
                return false;
        }
    }
    for (int j = 0; j < inner.n; j++)
        for (int i = 0; i < p->statement[inner.statement[j]].n_out; i++) {
            p->home[p->statement[inner.statement[j]].out[i]] = owner;
            if (owner == 0)
                p->dead[p->statement[inner.statement[j]].out[i]] = true;
        }
    return fails(s);
}

void shrink_program(program *p, outcome *result, attempt *run)
{
    static program next;
    shrinking s = {p, &next, result, run, false};
    if (result->value >= 0) {
        begin(&s);
        remove_unused(&next, result->value);
        fails(&s);
    }
    for (bool any = true; any && !s.over;) {
        any = false;
        for (int k = p->n_statements - 1; k >= 0 && !s.over; k--) {
            if (!in_program(p, k))
                continue;
            if (without(&s, k)) {
                any = true;
                continue;
            }
            for (int how = 0; how < 3; how++)
                if (in_program(p, k) && simpler_statement(&s, k, how)) {
                    any = true;
                    break;
                }
            if (in_program(p, k))
                any = smaller_statement(&s, k) || any;
            if (in_program(p, k))
                any = unwrapped(&s, k) || any;
        }
    }
    evaluate_main(p);
}
