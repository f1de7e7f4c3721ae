/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a program through the library, and comparing the results. */
#include "program.h"
#include "check_element.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct runner {
    program *p;
    oly_array env[MOST_VALUES];
    oly_mesh mesh[MOST_MESHES];
    oly_fn fn[MOST_BLOCKS], plain[MOST_BLOCKS]; /* functions of main, with out_shardings; others */
} runner;

/* What a callback needs: the statement and the block it runs. */
typedef struct part {
    runner *r;
    const statement *s;
    const block *b, *other;
} part;

static void run_statement(runner *r, const statement *s, bool in_main);

static void run_block(runner *r, const block *b)
{
    for (int k = 0; k < b->n && oly_last_status() == OLY_OK; k++)
        run_statement(r, &r->p->statement[b->statement[k]], false);
}

static void bind(runner *r, const block *b, int skip, int n, const oly_array *x)
{
    for (int k = 0; k < n; k++)
        r->env[b->param[skip + k]] = x[k];
}

static void results(runner *r, const block *b, int first, int n, oly_array *out)
{
    for (int k = 0; k < n; k++)
        out[k] = r->env[b->result[first + k]];
}

static void fori_body(oly_array i, oly_array *carry, void *user)
{
    part *t = user;
    t->r->env[t->b->param[0]] = i;
    bind(t->r, t->b, 1, t->s->n_in, carry);
    run_block(t->r, t->b);
    results(t->r, t->b, 0, t->s->n_in, carry);
}

static oly_array while_condition(const oly_array *carry, void *user)
{
    part *t = user;
    bind(t->r, t->other, 0, t->s->n_in, carry);
    run_block(t->r, t->other);
    return t->r->env[t->other->result[0]];
}

static void while_body(oly_array *carry, void *user)
{
    part *t = user;
    bind(t->r, t->b, 0, t->s->n_in, carry);
    run_block(t->r, t->b);
    results(t->r, t->b, 0, t->s->n_in, carry);
}

static void scan_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    part *t = user;
    bind(t->r, t->b, 0, t->s->n_carry, carry);
    bind(t->r, t->b, t->s->n_carry, t->s->n_in - t->s->n_carry, x);
    run_block(t->r, t->b);
    results(t->r, t->b, 0, t->s->n_carry, carry);
    results(t->r, t->b, t->s->n_carry, t->s->n_out - t->s->n_carry, y);
}

static void whole_block(const oly_array *in, oly_array *out, void *user)
{
    part *t = user;
    bind(t->r, t->b, 0, t->b->n_params, in);
    run_block(t->r, t->b);
    results(t->r, t->b, 0, t->b->n_results, out);
}

static void branch_of(int k, const oly_array *in, oly_array *out, void *user)
{
    part t = *(part *)user;
    t.b = &t.r->p->block[t.s->block[k]];
    whole_block(in, out, &t);
}
static void branch_0(const oly_array *in, oly_array *out, void *user)
{
    branch_of(0, in, out, user);
}
static void branch_1(const oly_array *in, oly_array *out, void *user)
{
    branch_of(1, in, out, user);
}
static void branch_2(const oly_array *in, oly_array *out, void *user)
{
    branch_of(2, in, out, user);
}
static void branch_3(const oly_array *in, oly_array *out, void *user)
{
    branch_of(3, in, out, user);
}

static void run_map(runner *r, const statement *s, part *t, const oly_array *in, oly_array *const *out)
{
    const char *in_specs[MOST_IN], *out_specs[MOST_OUT];
    for (int k = 0; k < s->n_in; k++)
        in_specs[k] = spec_text(&s->place[k], oly_rank(in[k]));
    for (int k = 0; k < s->n_out; k++)
        out_specs[k] = spec_text(&s->out_place[k], MOST_RANK);
    oly_shard_map_with(whole_block, t, r->mesh[s->k], OLY_MANUAL(.unchecked = s->flag), s->n_in, in, in_specs, s->n_out,
                       out, out_specs);
}

static void run_axes_region(runner *r, const statement *s, part *t, const oly_array *in, oly_array *const *out)
{
    oly_sharding to[MOST_IN];
    int n = s->flag ? s->n_in : s->n_out;
    for (int k = 0; k < n; k++)
        to[k] = sharding_of(r->p, s->flag ? &s->place[k] : &s->out_place[k],
                            r->p->rank_of[s->flag ? s->in[k] : s->out[k]], r->mesh);
    if (s->flag)
        oly_explicit_axes_with(whole_block, "region", t, s->n_in, in, to, s->n_out, out);
    else
        oly_auto_axes_with(whole_block, "region", t, s->n_in, in, s->n_out, out, to);
}

/* Functions, and what their recording needs, live as long as the run. */
static part *kept_part(runner *r, const statement *s, int b)
{
    static part parts[MOST_STATEMENTS * 2];
    static int turn;
    part *t = &parts[turn++ % (MOST_STATEMENTS * 2)];
    *t = (part){r, s, &r->p->block[b], NULL};
    return t;
}

static oly_fn function_of(runner *r, const statement *s, bool in_main)
{
    int b = s->block[0];
    oly_fn *kept = in_main ? &r->fn[b] : &r->plain[b];
    oly_sharding to[MOST_OUT] = {NULL};
    if (in_main && *kept)
        return *kept;
    for (int k = 0; k < s->n_out && in_main; k++)
        to[k] = sharding_of(r->p, &s->out_place[k], r->p->rank_of[s->out[k]], r->mesh);
    oly_fn f = oly_jit(whole_block, r->p->block[b].n_params, r->p->block[b].n_results, .user = kept_part(r, s, b),
                       .out_shardings = in_main ? to : NULL);
    if (in_main)
        *kept = f;
    return f;
}

/* Explanations have no values to compare: they must succeed. */
static void explain(const runner *r, oly_fn f, const statement *s, const oly_array *in)
{
    FILE *nowhere = fopen("/dev/null", "w");
    oly_plan_costs costs;
    if (!nowhere)
        return;
    if (s->flavour < 4)
        oly_explain_as_n(nowhere, (oly_explain_form)(s->flavour - 1), f, s->n_in, in);
    else {
        oly_array other[MOST_IN];
        memcpy(other, in, sizeof *in * (size_t)s->n_in);
        if (s->flavour == 4 && s->out_place[0].mesh >= 0 && oly_rank(in[0]) > 0) /* elsewhere on the same devices */
            other[0] = oly_device_put(in[0], oly_named(r->mesh[s->out_place[0].mesh], ""));
        oly_explain_diff(nowhere, f, s->n_in, in, f, s->n_in, other);
        oly_costs_n(&costs, f, s->n_in, in);
    }
    fclose(nowhere);
}

static void run_call(runner *r, const statement *s, const oly_array *in, oly_array *const *out, bool in_main)
{
    oly_fn f = function_of(r, s, in_main);
    oly_array *targets[MOST_OUT], given[MOST_IN];
    int target_of[MOST_OUT];
    if (s->checkpoint)
        f = oly_checkpoint(f);
    memcpy(given, in, sizeof *in * (size_t)s->n_in);
    for (int k = 0; k < s->n_out; k++) {
        targets[k] = out[k];
        target_of[k] = NOTHING;
    }
    int next = 0;
    for (int k = 0; k < s->n_in && in_main; k++)
        if (s->donated[k] && next < s->n_out) {
            target_of[next] = k;
            targets[next++] = &given[k];
        }
    if (in_main && s->flavour)
        explain(r, f, s, in);
    oly_call(f, s->n_in, given, s->n_out, targets);
    for (int k = 0; k < s->n_out; k++)
        if (target_of[k] != NOTHING)
            *out[k] = given[target_of[k]];
}

static void run_gradient(runner *r, const statement *s, const oly_array *in, oly_array *const *out)
{
    oly_fn f = function_of(r, s, false), g;
    oly_gradient_options options = {.n_argnum_list = s->n_axes, .argnum_list = s->axes};
    g = s->flavour == 0   ? oly_grad_with(f, options)
        : s->flavour == 1 ? oly_value_and_grad_with(f, options)
        : s->flavour == 2 ? oly_vjp_with(f, options)
                          : oly_jvp_with(f, options);
    oly_call(g, s->n_in, in, s->n_out, out);
}

static void run_region(runner *r, const statement *s, bool in_main)
{
    static const oly_function branches[] = {branch_0, branch_1, branch_2, branch_3};
    oly_array in[MOST_IN + 1], ys[MOST_OUT] = {NULL}, *out[MOST_OUT];
    part t = {r, s, &r->p->block[s->n_blocks ? s->block[0] : 0], NULL};
    for (int k = 0; k < s->n_in; k++)
        in[k] = r->env[s->in[k]];
    for (int k = 0; k < s->n_out; k++)
        out[k] = &ys[k];
    switch (s->kind) {
    case FORI:
        oly_fori(s->k, s->k + s->times, fori_body, s->n_in, in, &t);
        memcpy(ys, in, sizeof *in * (size_t)s->n_in);
        break;
    case WHILE:
        t.other = t.b;
        t.b = &r->p->block[s->block[1]];
        oly_while(while_condition, while_body, s->n_in, in, &t);
        memcpy(ys, in, sizeof *in * (size_t)s->n_in);
        break;
    case SCAN:
        oly_scan(s->times, s->flag, scan_body, s->n_carry, in, s->n_in - s->n_carry, in + s->n_carry,
                 s->n_out - s->n_carry, ys + s->n_carry, &t);
        memcpy(ys, in, sizeof *in * (size_t)s->n_carry);
        break;
    case BRANCH:
        if (s->by_predicate)
            oly_cond(in[0], branch_0, branch_1, s->n_in - 1, in + 1, s->n_out, ys, &t);
        else
            oly_switch(in[0], s->n_blocks, branches, s->n_in - 1, in + 1, s->n_out, ys, &t);
        break;
    case VMAP: oly_vmap(whole_block, &t, s->n_in, in, s->axes, s->n_out, out, s->out_axes); break;
    case MAP: run_map(r, s, &t, in, out); break;
    case REGION: run_axes_region(r, s, &t, in, out); break;
    case CALL: run_call(r, s, in, out, in_main); break;
    case GRADIENT: run_gradient(r, s, in, out); break;
    case GRADIENTS: oly_gradients_n(in[0], s->n_in - 1, in + 1, s->n_out, out); break;
    default: break;
    }
    for (int k = 0; k < s->n_out; k++)
        r->env[s->out[k]] = ys[k];
}

static oly_array run_input(runner *r, const statement *s)
{
    array *a = input_array(s);
    char *data = malloc((size_t)a->size * oly_dtype_size(s->dtype) + 16);
    for (int64_t i = 0; i < a->size; i++)
        for (int e = 0; e < a->parts; e++)
            set_element_part(s->dtype, data, i, e, a->v[i * a->parts + e]);
    oly_array x = oly_from_host(data, s->dtype, s->rank, s->shape);
    free(data);
    return s->place[0].mesh < 0 ? x : oly_device_put(x, sharding_of(r->p, &s->place[0], s->rank, r->mesh));
}

static void run_statement(runner *r, const statement *s, bool in_main)
{
    switch (s->kind) {
    case OPERATION: r->env[s->out[0]] = call_operation(r->p, s, r->env, r->mesh); break;
    case INPUT: r->env[s->out[0]] = run_input(r, s); break;
    case MOVE:
        r->env[s->out[0]] =
            oly_device_put(r->env[s->in[0]], sharding_of(r->p, &s->place[0], r->p->rank_of[s->out[0]], r->mesh));
        break;
    default: run_region(r, s, in_main);
    }
}

static void make_meshes(runner *r)
{
    static const char *const names[] = {"x", "y", "z"};
    const program *p = r->p;
    for (int k = 0; k < p->n_meshes; k++) {
        const mesh_text *m = &p->mesh[k];
        r->mesh[k] = oly_mesh_from_devices(m->n_axes, names, m->size, p->group_device[m->group]);
        oly_axis_type types[MOST_AXES];
        for (int a = 0; a < m->n_axes; a++)
            types[a] = m->automatic[a] ? OLY_AXIS_AUTO : OLY_AXIS_EXPLICIT;
        if (m->explicit_axes)
            r->mesh[k] = oly_mesh_with_types(r->mesh[k], types);
    }
}

static void note_error(const program *p, const statement *s, outcome *o)
{
    o->failed = true;
    o->value = NOTHING;
    o->status = oly_last_status();
    snprintf(o->text, sizeof o->text, "%s, statement of v%d: %s", oly_status_name(o->status),
             s && s->n_out ? s->out[0] : -1, oly_last_error());
    (void)p;
}

/* What the program prints while it runs is not compared; the results of this one are on standard output, too. */
static int hush(void)
{
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDOUT_FILENO);
        close(nowhere);
    }
    return kept;
}

static void speak(int kept)
{
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

static bool prints(const program *p)
{
    for (int k = 0; k < p->n_statements; k++)
        if (p->statement[k].kind == OPERATION && p->statement[k].op == OP_printed)
            return true;
    return false;
}

/* Runs the statements of main, then `then` on the values that are left. */
static outcome run_main(program *p, void (*then)(runner *r, outcome *o))
{
    static runner r;
    outcome o = {.value = NOTHING};
    int output = prints(p) ? hush() : -1;
    OLY_SCOPE
    {
        memset(&r, 0, sizeof r);
        r.p = p;
        oly_clear_error();
        oly_enable_x64(p->wide);
        make_meshes(&r);
        const block *b = &p->block[0];
        for (int k = 0; k < b->n && !o.failed; k++) {
            run_statement(&r, &p->statement[b->statement[k]], true);
            if (oly_last_status() != OLY_OK)
                note_error(p, &p->statement[b->statement[k]], &o);
        }
        if (!o.failed)
            then(&r, &o);
    }
    if (!o.failed && oly_last_status() != OLY_OK)
        note_error(p, NULL, &o);
    if (output >= 0)
        speak(output);
    return o;
}

static void compare_values(runner *r, outcome *o)
{
    const program *p = r->p;
    const block *b = &p->block[0];
    for (int k = 0; k < b->n && !o->failed; k++) {
        const statement *s = &p->statement[b->statement[k]];
        for (int j = 0; j < s->n_out && !o->failed; j++)
            if (!p->dead[s->out[j]] && !p->placed[s->out[j]].unreduced)
                compare_value(p, s->out[j], r->env[s->out[j]], o);
    }
}

outcome run_program(program *p)
{
    return run_main(p, compare_values);
}

static void want_nothing(runner *r, outcome *o)
{
    (void)r, (void)o;
}

outcome plan_program(program *p)
{
    return run_main(p, want_nothing);
}

/* -- comparing ----------------------------------------------------------------------------------------------------------------- */
static void print_values(char *text, size_t size, const array *a, const void *data)
{
    size_t at = 0;
    for (int64_t i = 0; i < a->size && at + 40 < size; i++)
        for (int e = 0; e < a->parts; e++)
            at += (size_t)snprintf(text + at, size - at, e ? "%+.9gi" : " %.9g",
                                   data ? element_part(a->dtype, data, i, e) : a->v[i * a->parts + e]);
    if (a->size == 0)
        text[0] = 0;
}

void compare_value(const program *p, int v, oly_array x, outcome *o)
{
    const array *want = p->now[0][v];
    char has[200];
    if (!x || oly_rank(x) != want->rank || oly_dtype_of(x) != want->dtype ||
        memcmp(oly_shape(x), want->shape, sizeof *want->shape * (size_t)want->rank) != 0) {
        o->failed = true;
        o->value = v;
        if (x)
            oly_typeof(x, has, sizeof has);
        snprintf(o->text, sizeof o->text, "v%d has the type %s, should be %s of rank %d", v, x ? has : "(none)",
                 oly_dtype_name(want->dtype), want->rank);
        return;
    }
    size_t bytes = (size_t)want->size * oly_dtype_size(want->dtype);
    char *data = malloc(bytes + 16);
    memset(data, 0xa5, bytes);
    if (oly_process_allgather(x, data, bytes) != OLY_OK) {
        note_error(p, NULL, o);
        o->value = v;
    }
    for (int64_t i = 0; i < want->size * want->parts && !o->failed; i++) {
        double got = element_part(want->dtype, data, i / want->parts, (int)(i % want->parts)), right = want->v[i];
        if (got == right || (want->error > 0 && fabs(got - right) <= want->error))
            continue;
        o->failed = true;
        o->value = v;
        snprintf(o->text, sizeof o->text, "element %d of v%d is %.9g and should be %.9g", (int)(i / want->parts), v,
                 got, right);
        print_values(o->got, sizeof o->got, want, data);
        print_values(o->right, sizeof o->right, want, NULL);
    }
    free(data);
    agree_on_value(o); /* each rank has looked at its own copy */
}
