/* SPDX-License-Identifier: BSD-3-Clause */
/* A program as C: complete, with every value a global variable, so that captures need nothing else. */
#include "program.h"
#include "check_element.h"
#include "core/dtype_list.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *type_word(oly_dtype dtype)
{
#define WORD(a, number, ...) "OLY_" #number,
    static const char *const words[] = {OLY_EVERY_TYPE(WORD, )};
    return words[dtype];
}

static void print_list(FILE *f, const char *type, int n, const int64_t *list)
{
    fprintf(f, "(%s[]){", type);
    for (int k = 0; k < n; k++)
        fprintf(f, "%s%" PRId64, k ? ", " : "", list[k]);
    fprintf(f, n ? "}" : "0}");
}
static void print_ints(FILE *f, int n, const int *list)
{
    fprintf(f, "(int[]){");
    for (int k = 0; k < n; k++)
        fprintf(f, "%s%d", k ? ", " : "", list[k]);
    fprintf(f, n ? "}" : "0}");
}
static void print_number(FILE *f, double x)
{
    fprintf(f, x == floor(x) ? "%.0f" : "%g", x);
}
static void print_operand(FILE *f, const statement *s, int k)
{
    if (s->in[k] == NUMBER)
        print_number(f, s->number);
    else
        fprintf(f, "v%d", s->in[k]);
}
static void print_sharding(FILE *f, const placement *place, int rank)
{
    fprintf(f, "oly_named(m%d, \"%s\")", place->mesh, spec_text(place, rank));
}
static void print_reduction(FILE *f, const statement *s)
{
    if (!s->other_flag) {
        fprintf(f, ", OLY_AXES(");
        for (int k = 0; k < s->n_axes; k++)
            fprintf(f, "%s%d", k ? ", " : "", s->axes[k]);
        fprintf(f, ")");
    }
    if (s->flag)
        fprintf(f, ", .keepdims = true");
}
static void print_pairs(FILE *f, const program *p, const statement *s)
{
    int pairs[MOST_DEVICES][2], n = ring_pairs(p, s, pairs);
    fprintf(f, "%d, (const int[][2]){", n);
    for (int k = 0; k < n; k++)
        fprintf(f, "%s{%d, %d}", k ? ", " : "", pairs[k][0], pairs[k][1]);
    fprintf(f, "}");
}

/* Prints one letter of a format of operations.def; returns how many letters it took. */
static int print_part(FILE *f, const program *p, const statement *s, const char *at)
{
    int skip = s->op == OP_dynamic_update ? 2 : 1;
    switch (*at) {
    case '0':
    case '1':
    case '2': print_operand(f, s, *at - '0'); return 1;
    case 'A':
        fprintf(f, "%d, (oly_array[]){", s->n_in);
        for (int k = 0; k < s->n_in; k++)
            fprintf(f, "%sv%d", k ? ", " : "", s->in[k]);
        fprintf(f, "}");
        return 1;
    case 'I':
        fprintf(f, "OLY_INDEXES(");
        for (int k = skip; k < s->n_in; k++)
            fprintf(f, "%sv%d", k > skip ? ", " : "", s->in[k]);
        fprintf(f, ")");
        return 1;
    case 's':
        if (at[1] == '0' || at[1] == '1')
            return fprintf(f, "%d", (int)s->shape[at[1] - '0']), 2;
        fprintf(f, "%d, ", s->rank);
        print_list(f, "int64_t", s->rank, s->shape);
        return 1;
    case 'a':
        fprintf(f, "%d, ", s->n_axes);
        print_ints(f, s->n_axes, s->axes);
        return 1;
    case 'l':
    case 'h':
    case 'm':
        if (at[1] == '0')
            return fprintf(f, "%d", (int)(*at == 'l' ? s->low : s->high)[0]), 2;
        print_list(f, "int64_t", s->rank, *at == 'l' ? s->low : *at == 'h' ? s->high : s->step);
        return 1;
    case 'k': fprintf(f, "%d", s->k); return 1;
    case 'n': fprintf(f, "%d", (int)s->shape[0]); return 1;
    case 'N': print_number(f, s->number); return 1;
    case 'f': fprintf(f, s->flag ? "true" : "false"); return 1;
    case 'd': fprintf(f, "%s", type_word(s->dtype)); return 1;
    case 't': fprintf(f, "%s", slices_text(s)); return 1;
    case 'c':
        if (s->op == OP_conv || s->op == OP_conv_many || s->op == OP_window_sum || s->op == OP_window_max)
            fprintf(f, s->mode == SAME ? "SAME" : "VALID");
        else
            fprintf(f, "%s", modes[s->mode]);
        return 1;
    case 'e': fprintf(f, "%s", einsum_text(s)); return 1;
    case 'R': print_reduction(f, s); return 1;
    case 'S': print_sharding(f, &s->place[0], p->rank_of[s->in[0]]); return 1;
    case 'W': print_sharding(f, &s->place[0], MOST_RANK); return 1;
    case 'O':
        if (s->place[0].mesh < 0)
            fprintf(f, "NULL");
        else
            print_sharding(f, &s->place[0], s->rank);
        return 1;
    case 'x': fprintf(f, "%s", axes_text(NULL, s->n_axes, s->axes)); return 1;
    case 'p': print_pairs(f, p, s); return 1;
    default: return 0;
    }
}

static void print_operation(FILE *f, const program *p, const statement *s)
{
    for (const char *at = operations[s->op].format; *at;) {
        if (*at == '%')
            at += 1 + print_part(f, p, s, at + 1);
        else
            fputc(*at++, f);
    }
}

/* -- inputs -------------------------------------------------------------------------------------------------------------------- */
static void print_input(FILE *f, const statement *s)
{
#define C_TYPE(a, number, name, s, T, ...) #T,
    static const char *const c_types[] = {OLY_EVERY_TYPE(C_TYPE, )};
    bool placed = s->place[0].mesh >= 0, half = is_narrow(s->dtype);
    array *a = input_array(s);
    fprintf(f, "    v%d = ", s->out[0]);
    if (placed)
        fprintf(f, "oly_device_put(");
    if (half)
        fprintf(f, "oly_astype(");
    fprintf(f, "oly_from_host((%s[]){", half ? "float" : c_types[s->dtype]);
    for (int64_t i = 0; i < a->size; i++) {
        fprintf(f, "%s%g", i ? ", " : "", a->v[i * a->parts]);
        if (a->parts == 2)
            fprintf(f, "+%gi", a->v[2 * i + 1]);
    }
    fprintf(f, a->size ? "}, %s, %d, " : "0}, %s, %d, ", half ? "OLY_FLOAT32" : type_word(s->dtype), s->rank);
    print_list(f, "int64_t", s->rank, s->shape);
    fprintf(f, ")");
    if (half)
        fprintf(f, ", %s)", type_word(s->dtype));
    if (placed) {
        fprintf(f, ", ");
        print_sharding(f, &s->place[0], s->rank);
        fprintf(f, ")");
    }
    fprintf(f, ";\n");
}

/* -- statements with blocks ------------------------------------------------------------------------------------------------------- */
static void print_values(FILE *f, const char *before, int n, const int *v)
{
    for (int k = 0; k < n; k++)
        fprintf(f, "%s%sv%d", k ? ", " : "", before, v[k]);
}

static void print_carries(FILE *f, const statement *s, int n)
{
    fprintf(f, "    {\n        oly_array c[] = {");
    print_values(f, "", n, s->in);
    fprintf(f, "};\n        ");
}
static void print_taken(FILE *f, const int *out, int n, const char *list)
{
    fprintf(f, ";\n       ");
    for (int k = 0; k < n; k++)
        fprintf(f, " v%d = %s[%d];", out[k], list, k);
    fprintf(f, "\n    }\n");
}

static void print_call(FILE *f, const program *p, const statement *s, bool in_main)
{
    int b = s->block[0], next = 0;
    const char *prefix = s->checkpoint ? "oly_checkpoint(" : "";
    fprintf(f, "    {\n        oly_array in[] = {");
    print_values(f, "", s->n_in, s->in);
    fprintf(f, "}, out[%d] = {NULL};\n        oly_array *to[] = {", s->n_out);
    for (int k = 0; k < s->n_out; k++) {
        while (next < s->n_in && !(in_main && s->donated[next]))
            next++;
        if (next < s->n_in)
            fprintf(f, "%s&in[%d]", k ? ", " : "", next++);
        else
            fprintf(f, "%s&out[%d]", k ? ", " : "", k);
    }
    fprintf(f, "};\n");
    if (in_main) {
        fprintf(f, "        if (!f%d)\n            f%d = oly_jit(b%d, %d, %d", b, b, b, p->block[b].n_params,
                p->block[b].n_results);
        bool any = false;
        for (int k = 0; k < s->n_out; k++)
            any = any || s->out_place[k].mesh >= 0;
        if (any) {
            fprintf(f, ", .out_shardings = (oly_sharding[]){");
            for (int k = 0; k < s->n_out; k++) {
                fprintf(f, k ? ", " : "");
                if (s->out_place[k].mesh < 0)
                    fprintf(f, "NULL");
                else
                    print_sharding(f, &s->out_place[k], p->rank_of[s->out[k]]);
            }
            fprintf(f, "}");
        }
        fprintf(f, ");\n        oly_call_n(%sf%d%s, ", prefix, b, s->checkpoint ? ")" : "");
    } else
        fprintf(f, "        oly_call_n(%soly_jit(b%d, %d, %d)%s, ", prefix, b, p->block[b].n_params,
                p->block[b].n_results, s->checkpoint ? ")" : "");
    fprintf(f, "%d, in, %d, to);\n       ", s->n_in, s->n_out);
    for (int k = 0; k < s->n_out; k++)
        fprintf(f, " v%d = *to[%d];", s->out[k], k);
    fprintf(f, "\n    }\n");
}

static void print_gradient(FILE *f, const program *p, const statement *s)
{
    static const char *const names[] = {"oly_grad", "oly_value_and_grad", "oly_vjp", "oly_jvp"};
    int b = s->block[0];
    fprintf(f, "    oly_call_n(%s(oly_jit(b%d, %d, %d), OLY_ARGNUMS(", names[s->flavour], b, p->block[b].n_params,
            p->block[b].n_results);
    for (int k = 0; k < s->n_axes; k++)
        fprintf(f, "%s%d", k ? ", " : "", s->axes[k]);
    fprintf(f, ")), %d, (oly_array[]){", s->n_in);
    print_values(f, "", s->n_in, s->in);
    fprintf(f, "}, %d, (oly_array *[]){", s->n_out);
    print_values(f, "&", s->n_out, s->out);
    fprintf(f, "});\n");
}

static void print_mapped(FILE *f, const statement *s)
{
    if (s->kind == VMAP)
        fprintf(f, "    oly_vmap(b%d, NULL, ", s->block[0]);
    else
        fprintf(f, "    oly_shard_map_with(b%d, NULL, m%d, OLY_MANUAL(.unchecked = %s), ", s->block[0], s->k,
                s->flag ? "true" : "false");
    fprintf(f, "%d, (oly_array[]){", s->n_in);
    print_values(f, "", s->n_in, s->in);
    fprintf(f, "}, ");
    if (s->kind == VMAP) {
        fprintf(f, "OLY_AXES_OF(");
        for (int k = 0; k < s->n_in; k++)
            if (s->axes[k] == UNMAPPED)
                fprintf(f, "%sOLY_UNMAPPED", k ? ", " : "");
            else
                fprintf(f, "%s%d", k ? ", " : "", s->axes[k]);
    } else {
        fprintf(f, "OLY_SPECS(");
        for (int k = 0; k < s->n_in; k++)
            fprintf(f, "%s\"%s\"", k ? ", " : "", spec_text(&s->place[k], MOST_RANK));
    }
    fprintf(f, "), %d, (oly_array *[]){", s->n_out);
    print_values(f, "&", s->n_out, s->out);
    fprintf(f, s->kind == VMAP ? "}, OLY_AXES_OF(" : "}, OLY_SPECS(");
    for (int k = 0; k < s->n_out; k++)
        if (s->kind == VMAP)
            fprintf(f, "%s%d", k ? ", " : "", s->out_axes[k]);
        else
            fprintf(f, "%s\"%s\"", k ? ", " : "", spec_text(&s->out_place[k], MOST_RANK));
    fprintf(f, "));\n");
}

static void print_axes_region(FILE *f, const program *p, const statement *s)
{
    int b = s->block[0], n = s->flag ? s->n_in : s->n_out;
    fprintf(f, "    oly_%s_axes_with(b%d, \"b%d\", NULL, %d, (oly_array[]){", s->flag ? "explicit" : "auto", b, b,
            s->n_in);
    print_values(f, "", s->n_in, s->in);
    for (int pass = 0; pass < 2; pass++) /* shardings come with the inputs or after the outputs */
        if (pass == !s->flag) {
            fprintf(f, "}, (oly_sharding[]){");
            for (int k = 0; k < n; k++) {
                fprintf(f, k ? ", " : "");
                print_sharding(f, s->flag ? &s->place[k] : &s->out_place[k],
                               p->rank_of[s->flag ? s->in[k] : s->out[k]]);
            }
        } else {
            fprintf(f, "}, %d, (oly_array *[]){", s->n_out);
            print_values(f, "&", s->n_out, s->out);
        }
    fprintf(f, "});\n");
}

static void print_statement(FILE *f, const program *p, const statement *s, bool in_main)
{
    switch (s->kind) {
    case OPERATION:
        fprintf(f, "    v%d = ", s->out[0]);
        print_operation(f, p, s);
        fprintf(f, ";\n");
        break;
    case INPUT: print_input(f, s); break;
    case MOVE:
        fprintf(f, "    v%d = oly_device_put(v%d, ", s->out[0], s->in[0]);
        if (s->place[0].mesh < 0)
            fprintf(f, "NULL");
        else
            print_sharding(f, &s->place[0], p->rank_of[s->in[0]]);
        fprintf(f, ");\n");
        break;
    case FORI:
        print_carries(f, s, s->n_in);
        fprintf(f, "oly_fori(%d, %d, b%d, %d, c, NULL)", s->k, s->k + s->times, s->block[0], s->n_in);
        print_taken(f, s->out, s->n_out, "c");
        break;
    case WHILE:
        print_carries(f, s, s->n_in);
        fprintf(f, "oly_while(b%d, b%d, %d, c, NULL)", s->block[0], s->block[1], s->n_in);
        print_taken(f, s->out, s->n_out, "c");
        break;
    case SCAN:
        print_carries(f, s, s->n_in);
        fprintf(f, "oly_array y[%d];\n        oly_scan(%d, %s, b%d, %d, c, %d, c + %d, %d, y, NULL)",
                s->n_out > s->n_carry ? s->n_out - s->n_carry : 1, s->times, s->flag ? "true" : "false", s->block[0],
                s->n_carry, s->n_in - s->n_carry, s->n_carry, s->n_out - s->n_carry);
        fprintf(f, ";\n       ");
        for (int k = 0; k < s->n_out; k++)
            fprintf(f, " v%d = %s[%d];", s->out[k], k < s->n_carry ? "c" : "y", k < s->n_carry ? k : k - s->n_carry);
        fprintf(f, "\n    }\n");
        break;
    case BRANCH:
        fprintf(f, "    {\n        oly_array y[%d] = {NULL};\n        ", s->n_out);
        if (s->by_predicate)
            fprintf(f, "oly_cond(v%d, b%d, b%d", s->in[0], s->block[0], s->block[1]);
        else {
            fprintf(f, "oly_switch(v%d, %d, (oly_function[]){", s->in[0], s->n_blocks);
            for (int k = 0; k < s->n_blocks; k++)
                fprintf(f, "%sb%d", k ? ", " : "", s->block[k]);
            fprintf(f, "}");
        }
        fprintf(f, ", OLY_IN(");
        print_values(f, "", s->n_in - 1, s->in + 1);
        fprintf(f, "), %d, y, NULL)", s->n_out);
        print_taken(f, s->out, s->n_out, "y");
        break;
    case VMAP:
    case MAP: print_mapped(f, s); break;
    case CALL: print_call(f, p, s, in_main); break;
    case REGION: print_axes_region(f, p, s); break;
    case GRADIENTS:
        fprintf(f, "    oly_gradients_n(v%d, %d, (oly_array[]){", s->in[0], s->n_in - 1);
        print_values(f, "", s->n_in - 1, s->in + 1);
        fprintf(f, "}, %d, (oly_array *[]){", s->n_out);
        print_values(f, "&", s->n_out, s->out);
        fprintf(f, "});\n");
        break;
    default: print_gradient(f, p, s);
    }
}

/* -- blocks as functions -------------------------------------------------------------------------------------------------------------- */
static void print_block(FILE *f, const program *p, int b, const statement *s, int which)
{
    const block *body = &p->block[b];
    const char *results = "out";
    int n_y = 0;
    if (s->kind == FORI) {
        fprintf(f, "static void b%d(oly_array i, oly_array *c, void *user)\n{\n    v%d = i;", b, body->param[0]);
        results = "c";
    } else if (s->kind == WHILE && which == 0)
        fprintf(f, "static oly_array b%d(const oly_array *c, void *user)\n{\n   ", b);
    else if (s->kind == WHILE) {
        fprintf(f, "static void b%d(oly_array *c, void *user)\n{\n   ", b);
        results = "c";
    } else if (s->kind == SCAN) {
        fprintf(f, "static void b%d(oly_array *c, const oly_array *x, oly_array *y, void *user)\n{\n   ", b);
        results = "c";
        n_y = body->n_results - s->n_carry;
    } else
        fprintf(f, "static void b%d(const oly_array *in, oly_array *out, void *user)\n{\n   ", b);
    for (int k = s->kind == FORI; k < body->n_params; k++) {
        const char *list = s->kind == FORI || s->kind == WHILE || (s->kind == SCAN && k < s->n_carry) ? "c"
                           : s->kind == SCAN                                                          ? "x"
                                                                                                      : "in";
        fprintf(f, " v%d = %s[%d];", body->param[k], list,
                s->kind == FORI                      ? k - 1
                : s->kind == SCAN && k >= s->n_carry ? k - s->n_carry
                                                     : k);
    }
    fprintf(f, "\n");
    for (int k = 0; k < body->n; k++)
        print_statement(f, p, &p->statement[body->statement[k]], false);
    fprintf(f, "   ");
    if (s->kind == WHILE && which == 0)
        fprintf(f, " return v%d;", body->result[0]);
    else
        for (int k = 0; k < body->n_results; k++)
            if (k >= body->n_results - n_y)
                fprintf(f, " y[%d] = v%d;", k - (body->n_results - n_y), body->result[k]);
            else
                fprintf(f, " %s[%d] = v%d;", results, k, body->result[k]);
    fprintf(f, "\n}\n");
}

static bool made_in(const program *p, int v)
{
    for (int b = 0; b < p->n_blocks; b++) {
        for (int k = 0; k < p->block[b].n_params; k++)
            if (p->block[b].param[k] == v)
                return true;
        for (int k = 0; k < p->block[b].n; k++)
            for (int j = 0; j < p->statement[p->block[b].statement[k]].n_out; j++)
                if (p->statement[p->block[b].statement[k]].out[j] == v)
                    return true;
    }
    return false;
}

static void print_blocks_of(FILE *f, const program *p, const block *b, bool *printed)
{
    for (int k = 0; k < b->n; k++) {
        const statement *s = &p->statement[b->statement[k]];
        for (int j = 0; j < s->n_blocks; j++) {
            if (printed[s->block[j]])
                continue;
            printed[s->block[j]] = true;
            print_blocks_of(f, p, &p->block[s->block[j]], printed);
            print_block(f, p, s->block[j], s, j);
        }
    }
}

static bool uses_mesh(const program *p, int m)
{
    for (int k = 0; k < p->n_statements; k++) {
        const statement *s = &p->statement[k];
        if (s->kind == MAP && s->k == m)
            return true;
        if ((s->kind == INPUT || s->kind == MOVE ||
             (s->kind == OPERATION && (s->op == OP_constraint || s->op == OP_reshard || s->op == OP_sum_unreduced ||
                                       s->op == OP_product_unreduced || operations[s->op].family == RANDOM))) &&
            s->place[0].mesh == m)
            return true;
        for (int j = 0; j < s->n_out && (s->kind == CALL || s->kind == REGION); j++)
            if (s->out_place[j].mesh == m)
                return true;
        for (int j = 0; j < s->n_in && s->kind == REGION && s->flag; j++)
            if (s->place[j].mesh == m)
                return true;
    }
    return false;
}

static void print_types(FILE *f, const mesh_text *m, int k)
{
    fprintf(f, "    m%d = oly_mesh_with_types(m%d, (oly_axis_type[]){", k, k);
    for (int a = 0; a < m->n_axes; a++)
        fprintf(f, "%sOLY_AXIS_%s", a ? ", " : "", m->automatic[a] ? "AUTO" : "EXPLICIT");
    fprintf(f, "});\n");
}

void print_program(FILE *f, const program *p, const outcome *result)
{
    bool printed[MOST_BLOCKS] = {false};
    static const char *const names[] = {"\"x\"", "\"y\"", "\"z\""};
    bool picks = false, inside = false;
    fprintf(f, "#include <olympus.h>\nstatic oly_array v0");
    for (int k = 1; k < p->n_values; k++)
        if (made_in(p, k))
            fprintf(f, ", v%d", k);
    fprintf(f, ";\n");
    for (int k = 0; k < p->n_meshes; k++)
        if (uses_mesh(p, k))
            fprintf(f, "static oly_mesh m%d;\n", k);
    for (int k = 0; k < p->n_statements; k++)
        picks = picks || (p->statement[k].kind == OPERATION && p->statement[k].op == OP_top_k);
    if (picks)
        fprintf(
            f,
            "static oly_array top_k(oly_array x, int n)\n{\n    oly_array y = NULL;\n    oly_top_k(x, n, &y, NULL);\n"
            "    return y;\n}\n");
    for (int k = 0; k < p->n_statements; k++)
        inside = inside || (p->statement[k].kind == OPERATION && operations[p->statement[k].op].family == INSIDE);
    if (inside)
        fprintf(f, "#include \"inside_functions.h\" /* cc -Itests/soak */\n");
    print_blocks_of(f, p, &p->block[0], printed);
    fprintf(f, "int main(int argc, char **argv)\n{\n    oly_init(&argc, &argv);\n");
    if (p->wide)
        fprintf(f, "    oly_enable_x64(true);\n");
    for (int k = 0; k < p->n_meshes; k++) {
        const mesh_text *m = &p->mesh[k];
        if (!uses_mesh(p, k))
            continue;
        fprintf(f, "    m%d = oly_mesh_from_devices(%d, (const char *[]){", k, m->n_axes);
        for (int a = 0; a < m->n_axes; a++)
            fprintf(f, "%s%s", a ? ", " : "", names[a]);
        fprintf(f, "}, ");
        print_ints(f, m->n_axes, m->size);
        fprintf(f, ", ");
        print_ints(f, p->group_size[m->group], p->group_device[m->group]);
        fprintf(f, ");\n");
        if (m->explicit_axes)
            print_types(f, m, k);
    }
    const block *b = &p->block[0];
    for (int k = 0; k < p->n_statements; k++) /* functions of main are made once */
        for (int j = 0; j < b->n; j++)
            if (b->statement[j] == k && p->statement[k].kind == CALL) {
                bool first = true;
                for (int i = 0; i < j; i++)
                    first = first && !(p->statement[b->statement[i]].kind == CALL &&
                                       p->statement[b->statement[i]].block[0] == p->statement[k].block[0]);
                if (first)
                    fprintf(f, "    oly_fn f%d = NULL;\n", p->statement[k].block[0]);
            }
    for (int k = 0; k < b->n; k++)
        print_statement(f, p, &p->statement[b->statement[k]], true);
    if (result && result->value >= 0) {
        int rank = p->rank_of[result->value];
        fprintf(f, "    %s got[%d];\n    oly_process_allgather(v%d, got, sizeof got);\n", "char", 1 << 14,
                result->value);
        fprintf(f, "    oly_printf(\"got   %%A\\n\", oly_from_host(got, oly_dtype_of(v%d), %d, oly_shape(v%d)));\n",
                result->value, rank, result->value);
        fprintf(f, "    oly_printf(\"right%s\\n\");\n", result->right);
    }
    fprintf(f, "    return oly_finalize();\n}\n");
    if (result)
        fprintf(f, "/* %s */\n", result->text);
}
