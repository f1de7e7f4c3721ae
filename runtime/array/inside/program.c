/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors of functions of the program, and what these are told when they are called. See program.h. */
#include "array/inside/program.h"
#include "array/inside/inside_text.h"
#include "core/error.h"
#include <inttypes.h>
#include <string.h>

/* -- factors ------------------------------------------------------------------------------------------------------- */

static oly_status malformed(const char *factors, const char *at, const char *expected)
{
    return oly_fail(OLY_PARSE,
                    "factors \"%s\", column %d: expected %s; a letter a to z names each dimension, as in \"ij,jk->ik\"",
                    factors, (int)(at - factors) + 1, expected);
}

static const char *skip_spaces(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

static oly_status read_term(const char *factors, const char **at, oly_call_operand *x)
{
    x->rank = 0;
    for (*at = skip_spaces(*at); **at >= 'a' && **at <= 'z'; *at = skip_spaces(*at + 1)) {
        if (x->rank == OLY_MAX_RANK)
            return malformed(factors, *at, "at most 12 letters");
        if (memchr(x->letter, **at, (size_t)x->rank))
            return malformed(factors, *at, "another letter: no array has one twice");
        x->letter[x->rank++] = **at;
    }
    return OLY_OK;
}

static oly_status read_terms(const char *factors, const char **at, int n, oly_call_operand *list, const char *what)
{
    for (int k = 0; k < n; k++) {
        OLY_TRY(read_term(factors, at, &list[k]));
        if (k + 1 < n && *(*at)++ != ',')
            return oly_fail(OLY_PARSE, "factors \"%s\" have %d %s, but there are %d", factors, k + 1, what, n);
    }
    if (**at == ',')
        return oly_fail(OLY_PARSE, "factors \"%s\" have more than the %d %s given", factors, n, what);
    return OLY_OK;
}

oly_status oly_factors_read(oly_user_call *c, const char *factors, int first, int n_in, oly_node *const *in, int n_out)
{
    const char *at = factors;
    if (!factors)
        return oly_fail(OLY_PARSE, "the factors are NULL; give a letter for each dimension, as in \"ij,jk->ik\"");
    OLY_TRY(read_terms(factors, &at, n_in, c->in + first, "operands"));
    if (at[0] != '-' || at[1] != '>')
        return malformed(factors, at, "\",\" or \"->\"");
    at += 2;
    OLY_TRY(read_terms(factors, &at, n_out, c->out, "results"));
    if (*at)
        return malformed(factors, at, "\",\" or the end");
    for (int k = 0; k < n_in; k++)
        if (c->in[first + k].rank != in[k]->type.rank)
            return oly_fail(OLY_SHAPE, "operand %d is %s, but factors \"%s\" name %d dimensions of it", k,
                            oly_type_short(&in[k]->type), factors, c->in[first + k].rank);
    return OLY_OK;
}

oly_status oly_factors_whole(oly_user_call *c, const char *letters)
{
    for (const char *at = letters ? letters : ""; *at; at++) {
        if (*at == ' ' || *at == ',')
            continue;
        if (*at < 'a' || *at > 'z')
            return oly_fail(OLY_PARSE, "whole \"%s\": '%c' is not a letter of the factors", letters, *at);
        c->whole |= 1u << (*at - 'a');
    }
    return OLY_OK;
}

oly_status oly_factors_results(oly_user_call *c, int first, int n_in, oly_node *const *in, int n_out)
{
    int64_t size[26];
    int from[26];
    memset(from, -1, sizeof from);
    for (int k = 0; k < n_in; k++)
        for (int d = 0; d < c->in[first + k].rank; d++) {
            int letter = c->in[first + k].letter[d] - 'a';
            if (from[letter] >= 0 && size[letter] != in[k]->type.shape[d])
                return oly_fail(OLY_SHAPE,
                                "dimension '%c' has %" PRId64 " elements in operand %d, %s, and %" PRId64
                                " in operand %d, %s; they must be "
                                "equal",
                                'a' + letter, size[letter], from[letter], oly_type_short(&in[from[letter]]->type),
                                in[k]->type.shape[d], k, oly_type_short(&in[k]->type));
            size[letter] = in[k]->type.shape[d];
            from[letter] = k;
        }
    for (int k = 0; k < n_out; k++)
        for (int d = 0; d < c->out[k].rank; d++) {
            int letter = c->out[k].letter[d] - 'a';
            if (from[letter] < 0)
                return oly_fail(
                    OLY_SHAPE,
                    "dimension '%c' of result %d is in no operand, so its size is not known; take it from an operand",
                    'a' + letter, k);
            c->out[k].type.shape[d] = size[letter];
            c->out[k].type.rank = c->out[k].rank;
        }
    return OLY_OK;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

void oly_program_fill(const oly_call_frame *f, int first, int n_out, oly_program_call *p)
{
    p->called = (oly_inside){.device = (oly_get_device)(f->device),
                             .process = (oly_process_index)(),
                             .n_maps = f->n_lead,
                             .element = f->lead,
                             .n_elements = f->lead_shape,
                             .scratch = f->scratch,
                             .scratch_bytes = f->scratch_bytes,
                             .stream = f->stream,
                             .message = f->message,
                             .message_size = f->room};
    for (int k = first; k < f->call->n_in; k++)
        p->in[k - first] = oly_inside_value(f, k);
    for (int k = 0; k < n_out; k++) {
        p->out[k] = f->out[k];
        if (oly_call_letter(&f->call->out[k], 0) == OLY_CALL_ONCE)
            oly_inside_drop_first(&p->out[k]);
    }
}
