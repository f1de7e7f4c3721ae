/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_communication.h. */
#include "check_communication.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/option.h"

char *check_steps(oly_fn f, int n, const oly_array *in)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, n, in), OLY_OK);
    fclose(file);
    char *steps_end = strstr(text, "  total:");
    if (steps_end)
        *steps_end = 0;
    return text;
}

int check_count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

oly_array check_matrix(int64_t rows, int64_t columns)
{
    return oly_sin(oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns));
}

float *check_values(oly_fn f, int n_in, const oly_array *in, int64_t n)
{
    oly_array out = NULL;
    float *values = malloc(sizeof *values * (size_t)n);
    assert_int_equal(oly_call_n(f, n_in, in, 1, (oly_array *[]){&out}), OLY_OK);
    assert_int_equal(oly_process_allgather(out, values, sizeof *values * (size_t)n), OLY_OK);
    return values;
}

static oly_fn compiled(oly_function function, int n_in)
{
    return oly_jit_with(function, "f", n_in, 1, (oly_jit_options){.user = NULL});
}

void check_same_values(oly_function function, int n_in, const oly_array *plain, const oly_array *sharded, int64_t n,
                       double tolerance)
{
    oly_fn f = compiled(function, n_in);
    float *one = check_values(f, n_in, plain, n), *other = check_values(f, n_in, sharded, n);
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)one[k] - (double)other[k]) <= tolerance * (1 + fabs((double)one[k]))))
            fail_msg("element %lld is %.9g, not %.9g", (long long)k, (double)other[k], (double)one[k]);
    free(one);
    free(other);
}

int check_steps_with(const char *word, oly_function function, const char *mesh, const char *spec, int64_t rows,
                     int64_t columns)
{
    oly_array plain = check_matrix(rows, columns);
    oly_array split = oly_device_put(plain, oly_named(oly_make_mesh(mesh), spec));
    char *text = check_steps(compiled(function, 1), 1, &split);
    int n = check_count(text, word);
    free(text);
    check_same_values(function, 1, &plain, &split, rows * columns, 1e-5);
    return n;
}

void check_same_bits(oly_function function, int n_in, const oly_array *in, int64_t n)
{
    float *bits[2];
    for (int overlap = 0; overlap < 2; overlap++) {
        oly_option.overlap = overlap;
        bits[overlap] = check_values(compiled(function, n_in), n_in, in, n);
    }
    assert_memory_equal(bits[0], bits[1], sizeof *bits[0] * (size_t)n);
    free(bits[0]);
    free(bits[1]);
}
