/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers: keys, distributions, permutations and choice.
 *
 * A key is an array, and there is no hidden state: the same key gives the same numbers, wherever they are made, and each device
 * generates its own part without communication.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/random_numbers      (any ranks, any devices)
 * Prints: from process 0, expressions and their values. */
#include <olympus.h>

static oly_mesh mesh;

/* Prints an expression and its value, gathered on every process. */
#define SHOW(...) show(#__VA_ARGS__, __VA_ARGS__)
static void show(const char *what, oly_array x)
{
    oly_array whole = oly_device_put(x, oly_named(mesh, ""));
    if (oly_process_index() == 0)
        oly_printf(oly_rank(x) > 1 ? "%s =\n%A\n" : "%s = %A\n", what, whole);
}

static void title(const char *text)
{
    if (oly_process_index() == 0)
        printf("-- %s\n", text);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    char axis[32];
    snprintf(axis, sizeof axis, "x=%d", oly_device_count());
    mesh = oly_make_mesh(axis);
    oly_sharding split = oly_named(mesh, "x");

    title("keys: one for each use");
    oly_array key = oly_random_key(1701);
    SHOW(key);
    SHOW(oly_random_split(key, 2));
    SHOW(oly_random_fold_in(key, 7));                                              /* for example the key of step 7 */
    SHOW(oly_threefry2x32(key, oly_astype(oly_arange(4, OLY_INT32), OLY_UINT32))); /* the generator of all numbers */

    title("the same numbers, on one device and on all");
    SHOW(oly_random_uniform(key, OLY_FLOAT32, 5));
    SHOW(oly_random_uniform_sharded(key, OLY_FLOAT32, split, 5));

    title("distributions");
    SHOW(oly_random_bits(key, OLY_UINT32, 3));
    SHOW(oly_random_uniform_between(key, OLY_FLOAT32, -1, 1, 3));
    SHOW(oly_random_normal(key, OLY_FLOAT32, 3));
    SHOW(oly_random_truncated_normal(key, OLY_FLOAT32, -0.5, 0.5, 3));
    SHOW(oly_random_randint(key, OLY_INT32, 1, 7, 10)); /* ten throws of a die */
    SHOW(oly_random_bernoulli(key, 0.25, 6));
    SHOW(oly_random_rademacher(key, OLY_INT32, 6));
    SHOW(oly_random_exponential(key, OLY_FLOAT32, 3));
    SHOW(oly_random_laplace(key, OLY_FLOAT32, 3));
    SHOW(oly_random_logistic(key, OLY_FLOAT32, 3));
    SHOW(oly_random_cauchy(key, OLY_FLOAT32, 3));
    SHOW(oly_random_gumbel(key, OLY_FLOAT32, 3));

    title("order and choice");
    oly_array squares = oly_square(oly_arange(6, OLY_INT32));
    SHOW(oly_random_permutation(key, 6));
    SHOW(oly_random_permutation_of(key, squares, 0));
    SHOW(oly_random_choice(key, 100, false, NULL, 5)); /* five different ones of 0 to 99 */
    SHOW(oly_random_choice_of(key, squares, 0, true, NULL, 5));
    oly_array logits = oly_from_host((const float[]){0, 0, 5, 5, 0, 0}, OLY_FLOAT32, 2, (const int64_t[]){2, 3});
    SHOW(oly_random_categorical(key, logits, 1)); /* for each row the index of a column */
    return oly_finalize();
}
