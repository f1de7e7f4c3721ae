/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases about text: the toy program, drawings of shardings, and printed arrays. Called by the oracle runner. */
#include "oracle.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- captured output ----------------------------------------------------------------------------------------------- */
typedef struct captured {
    FILE *file;
    char *text; /* after finish */
    size_t size;
} captured;

static void start(captured *c)
{
    c->text = NULL;
    c->file = open_memstream(&c->text, &c->size);
    if (!c->file) {
        perror("oracle");
        exit(1);
    }
}

static const char *finish(captured *c)
{
    fclose(c->file);
    return c->text;
}

/* The `in` line as a shape, a dtype and a sharding. */
typedef struct operand {
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK], size;
    oly_sharding sharding;
} operand;

static bool read_operand(oracle_run *run, operand *o)
{
    oly_mesh mesh;
    oracle_array host;
    const oracle_line *in = check_oracle_line(run->c, "in", 0);
    if (!oracle_mesh(run, &mesh))
        return false;
    if (!in || !check_oracle_array(run->family, in, &host))
        return oracle_fail(run, "no operand");
    check_oracle_array_free(&host);
    if (host.known_dtype < 0)
        return oracle_skip(run, "dtype %s is not there yet", host.dtype);
    *o = (operand){.dtype = (oly_dtype)host.known_dtype, .rank = host.rank, .size = host.size};
    memcpy(o->shape, host.shape, sizeof o->shape);
    o->sharding = oracle_sharding(mesh, in->words[4]);
    return o->sharding ? true : oracle_fail_call(run, "making the sharding");
}

/* -- toy ------------------------------------------------------------------------------------------------------------- */

/* Checks that every shard of this process prints as expected, and that there is one for each of its devices in the
 * mesh. */
static void check_shards(oracle_run *run, oly_array global)
{
    int expected = 0;
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "dev", k)); k++)
        expected += oly_device_is_local(oly_get_device(atoi(line->words[1])));
    if (oly_shard_count(global) != expected)
        oracle_fail(run, "expected %d shards on this process, got %d", expected, oly_shard_count(global));
    OLY_FOR_EACH_SHARD(s, global)
    {
        char what[32];
        captured c;
        int device = oly_device_id(s.device);
        for (int k = 0; (line = check_oracle_line(run->c, "dev", k)) && atoi(line->words[1]) != device;)
            k++;
        snprintf(what, sizeof what, "device %d", device);
        start(&c);
        oly_fprintf(c.file, "%A\n", s.data);
        oracle_compare_text(run, what, line ? line->text : "", finish(&c));
        free(c.text);
    }
}

static oly_array apply(const char *expression, oly_array x)
{
    static const struct {
        const char *name;
        oly_array (*inner)(oly_operand), (*outer)(oly_operand, oly_reduce_options);
    } known[] = {
        {"sum_sin", oly_sin, oly_sum_with}, {"sum_cos", oly_cos, oly_sum_with}, {"sum", NULL, oly_sum_with},
        {"max", NULL, oly_max_with},        {"min", NULL, oly_min_with},        {"mean", NULL, oly_mean_with},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (strcmp(known[k].name, expression) == 0) {
            if (known[k].inner)
                x = known[k].inner(oly_operand_array(x));
            return known[k].outer(oly_operand_array(x), (oly_reduce_options){0});
        }
    return NULL;
}

static const char *result_word(const oracle_run *run, const char *variant)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "result", k)); k++)
        if (line->n_words > 2 && strcmp(line->words[1], variant) == 0)
            return line->words[2];
    return NULL;
}

/* The sum is correct if it is as near to the exact value as JAX's sums; without an exact value there is a single
 * correct text. */
static void check_result_text(oracle_run *run, const char *got)
{
    const char *exact = result_word(run, "exact"), *doubling = result_word(run, "doubling");
    const char *only = exact ? NULL : result_word(run, "single_device");
    if (strcmp(run->c->id, "toy.00") == 0)
        only = doubling;
    if (only) {
        if (strcmp(only, got) != 0)
            oracle_fail(run, "result expected %s, got %s", only, got);
        return;
    }
    double right = exact ? strtod(exact, NULL) : NAN, farthest = 0;
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "result", k)); k++)
        farthest = fmax(farthest, fabs(strtod(line->words[2], NULL) - right));
    if (!(fabs(strtod(got, NULL) - right) <= farthest))
        oracle_fail(run, "result expected %s within %.3g, got %s", exact ? exact : "some value", farthest, got);
}

static void check_toy_result(oracle_run *run, oly_array global)
{
    const oracle_line *expression = check_oracle_line(run->c, "expr", 0);
    oly_array result = apply(expression->words[1], global);
    captured c;
    if (!result) {
        oracle_fail_call(run, expression->words[1]);
        return;
    }
    start(&c);
    oly_fprintf(c.file, "%A", result);
    check_result_text(run, finish(&c));
    if (!run->failed)
        snprintf(run->reason, sizeof run->reason, "result %s", c.text);
    free(c.text);
}

void oracle_check_toy(oracle_run *run)
{
    operand o;
    if (!read_operand(run, &o))
        return;
    oly_array data = oly_reshape_shape(oly_arange(o.size, o.dtype), o.rank, o.shape);
    oly_array global = oly_device_put(data, o.sharding);
    if (!global) {
        oracle_fail_call(run, "placing the operand");
        return;
    }
    check_shards(run, global);
    check_toy_result(run, global);
}

/* -- viz ------------------------------------------------------------------------------------------------------------- */
/* The answers are of CPUs; drawings name the platform's devices. Owned by the caller. */
static char *drawn_here(const char *text)
{
    char *copy = strdup(text);
    if (copy && strcmp(oly_device_platform(oly_get_device(0)), "cuda") == 0)
        for (char *at = copy; (at = strstr(at, "CPU"));)
            *at = 'G';
    return copy;
}

void oracle_check_viz(oracle_run *run)
{
    operand o;
    captured c;
    if (!read_operand(run, &o))
        return;
    char *expected = drawn_here(check_oracle_line(run->c, "text", 0)->text);
    start(&c);
    oly_status status = oly_visualize_sharding(c.file, o.sharding, o.rank, o.shape);
    finish(&c);
    if (status == OLY_OK)
        oracle_compare_text(run, "the drawing of the sharding", expected, c.text);
    else
        oracle_fail_call(run, "drawing the sharding");
    free(c.text);

    oly_array x = oly_device_put(oly_zeros_shape(o.dtype, o.rank, o.shape), o.sharding);
    start(&c);
    status = x ? oly_visualize(c.file, x) : OLY_INVALID;
    finish(&c);
    if (status == OLY_OK)
        oracle_compare_text(run, "the drawing of an array", expected, c.text);
    else
        oracle_fail_call(run, "drawing an array");
    free(c.text);
    free(expected);
}

/* -- print ----------------------------------------------------------------------------------------------------------- */
static void check_print(oracle_run *run, oly_array x, const char *keyword, int (*text_of)(oly_array, char *, size_t))
{
    const oracle_line *line = check_oracle_line(run->c, keyword, 0);
    if (!line)
        return;
    int length = text_of(x, NULL, 0);
    char *text = length < 0 ? NULL : malloc((size_t)length + 2);
    if (!text) {
        oracle_fail_call(run, keyword);
        return;
    }
    text_of(x, text, (size_t)length + 1);
    strcat(text, "\n");
    oracle_compare_text(run, keyword, line->text, text);
    free(text);
}

void oracle_check_print(oracle_run *run)
{
    oly_array x;
    if (oracle_inputs(run, NULL, &x, 1) != 1)
        return;
    check_print(run, x, "str", oly_array_str);
    check_print(run, x, "repr", oly_array_repr);
}
