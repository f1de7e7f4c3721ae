/* SPDX-License-Identifier: BSD-3-Clause */
/* Training a small transformer: one block with causal attention, Adam, gradients clipped by their norm; data and parameters
 * split both ways over a mesh.
 *
 * The batch is split over `data`, and so are the parameters while they are not used; the heads, the hidden layer and the words
 * are split over `model`. The program only gives the placement of parameters and activations (`places`, `rows`): the planner
 * gathers parameters before they are used and reduce-scatters gradients afterwards. Parameters and their two moments are one
 * list, which every step updates in place.
 *
 * The task: of three letters in a row each follows from the two before it.
 *
 * With --checkpoint DIR parameters, moments and the clock are saved from time to time, and when SIGTERM or SIGUSR1 asks the program
 * to stop; with --restart, too, it goes on from the last ones, with the same bits.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/transformer [OPTION...]      (eight devices, on any number of ranks; --help: options)
 * Prints: from process 0, the loss, the norm of the gradient, the fraction of letters predicted correctly.
 * Writes: with --checkpoint, checkpoints.
 * Exit:   0; 75 if it was asked to stop before the last step. */
#include <olympus.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 16, WIDTH = 32, HIDDEN = 64, HEADS = 4, BATCH = 32, LENGTH = 24, STOPPED = 75 };
enum { QUERY, KEY, VALUE, OUT, UP, DOWN, WORDS, PLACES, PARAMETERS };
enum { FIRST = PARAMETERS, SECOND = 2 * PARAMETERS, CLOCK = 3 * PARAMETERS, TEXT, INPUTS };
enum { LOSS = CLOCK + 1, NORM, RIGHT, OUTPUTS };

static const char *const places[PARAMETERS] = {"data, model", "data, model", "data, model", "model, data",
                                               "data, model", "model, data", "model, data", "data, None"};
static const int64_t shapes[PARAMETERS][2] = {{WIDTH, WIDTH},  {WIDTH, WIDTH},  {WIDTH, WIDTH},   {WIDTH, WIDTH},
                                              {WIDTH, HIDDEN}, {HIDDEN, WIDTH}, {LETTERS, WIDTH}, {LENGTH, WIDTH}};
static oly_sharding rows;

static struct {
    int steps;              /* numbers 0 to this one */
    const char *checkpoint; /* folder; NULL: none */
    bool restart;           /* go on from the newest checkpoint */
    int every;              /* steps between two of them */
} settings;

/* -- the model --------------------------------------------------------------------------------------------------------- */
static oly_array normalised(oly_array x)
{
    return oly_mul(x, oly_rsqrt(oly_add(oly_mean(oly_square(x), .axes = "-1", .keepdims = true), 1e-6)));
}

static oly_array heads(oly_array x, oly_array w)
{
    return oly_reshape(oly_matmul(x, w), BATCH, LENGTH, HEADS, WIDTH / HEADS);
}

static oly_array attention(oly_array x, const oly_array *p)
{
    oly_array q = heads(x, p[QUERY]), k = heads(x, p[KEY]), v = heads(x, p[VALUE]);
    oly_array likeness = oly_mul(oly_einsum("bqhd,bkhd->bhqk", q, k), 0.35);
    oly_array earlier = oly_tri(LENGTH, LENGTH, 0, OLY_BOOL); /* no position reads later ones */
    oly_array weights = oly_softmax(oly_where(earlier, likeness, -1e9), -1);
    return oly_matmul(oly_reshape(oly_einsum("bhqk,bkhd->bqhd", weights, v), BATCH, LENGTH, WIDTH), p[OUT]);
}

/* Maps parameters and text to the loss and the fraction of letters predicted correctly. */
static void predict(const oly_array *p, oly_array *out, void *user)
{
    (void)user;
    oly_array text = p[PARAMETERS], now = oly_slice(text, ":, :-1"), next = oly_slice(text, ":, 1:");
    oly_array x = oly_with_sharding_constraint(oly_add(oly_take(p[WORDS], now, 0, "clip"), p[PLACES]), rows);
    x = oly_with_sharding_constraint(oly_add(x, attention(normalised(x), p)), rows);
    oly_array hidden = oly_gelu(oly_matmul(normalised(x), p[UP]), true);
    x = oly_with_sharding_constraint(oly_add(x, oly_matmul(hidden, p[DOWN])), rows);
    oly_array guess = oly_einsum("btw,lw->btl", normalised(x), p[WORDS]);
    oly_array right = oly_one_hot(next, LETTERS, OLY_FLOAT32, -1);
    out[0] = oly_neg(oly_mean(oly_sum(oly_mul(oly_log_softmax(guess, -1), right), .axes = "-1")));
    out[1] = oly_mean(oly_eq(oly_argmax(guess, .axes = "-1"), next));
}

/* -- Adam ----------------------------------------------------------------------------------------------------------------- */

/* In: parameters, first and second moments, the number of the step, text. Out: the same again, and the values to print. */
static void step(const oly_array *in, oly_array *out, void *user)
{
    oly_array arguments[PARAMETERS + 1], slopes[PARAMETERS + 2] = {NULL}, squares = NULL;
    memcpy(arguments, in, PARAMETERS * sizeof *in);
    arguments[PARAMETERS] = in[TEXT];
    oly_call_arrays(*(oly_fn *)user, PARAMETERS + 1, arguments, PARAMETERS + 2, slopes); /* loss, slopes, right */
    for (int k = 0; k < PARAMETERS; k++) {
        oly_array s = oly_sum(oly_square(slopes[1 + k]));
        squares = squares ? oly_add(squares, s) : s;
    }
    oly_array norm = oly_sqrt(squares), scale = oly_min2(1, oly_div(1, norm)), t = oly_add(in[CLOCK], 1);
    for (int k = 0; k < PARAMETERS; k++) {
        oly_array slope = oly_mul(slopes[1 + k], scale);
        oly_array first = oly_add(oly_mul(0.9, in[FIRST + k]), oly_mul(0.1, slope));
        oly_array second = oly_add(oly_mul(0.99, in[SECOND + k]), oly_mul(0.01, oly_square(slope)));
        oly_array m = oly_div(first, oly_sub(1, oly_pow(0.9, t))), v = oly_div(second, oly_sub(1, oly_pow(0.99, t)));
        out[k] = oly_sub(in[k], oly_mul(0.01, oly_div(m, oly_add(oly_sqrt(v), 1e-8))));
        out[FIRST + k] = first;
        out[SECOND + k] = second;
    }
    out[CLOCK] = t;
    out[LOSS] = slopes[0];
    out[NORM] = norm;
    out[RIGHT] = slopes[PARAMETERS + 1];
}

/* Each letter is the sum of the two before it. */
static oly_array text_of(oly_sharding data)
{
    oly_array letters[LENGTH + 1], key = oly_random_key(5);
    for (int k = 0; k <= LENGTH; k++)
        letters[k] = k < 2 ? oly_random_randint(oly_random_fold_in(key, k), OLY_INT32, 0, LETTERS, BATCH)
                           : oly_mod(oly_add(letters[k - 1], letters[k - 2]), LETTERS);
    return oly_device_put(oly_stack_n(LENGTH + 1, letters, 1), data);
}

/* -- checkpoints ------------------------------------------------------------------------------------------------------------ */

/* Of everything that a step changes, in the order of the state. */
static const char *const names[TEXT] = {"query",        "key",          "value",        "out",           "up",
                                        "down",         "words",        "places",       "query.first",   "key.first",
                                        "value.first",  "out.first",    "up.first",     "down.first",    "words.first",
                                        "places.first", "query.second", "key.second",   "value.second",  "out.second",
                                        "up.second",    "down.second",  "words.second", "places.second", "clock"};

/* Replaces the state by the newest one that was saved; returns the number of the next step, 0: there is none. */
static int restore(oly_array *state)
{
    int64_t step = 0;
    if (!settings.checkpoint || !settings.restart)
        return 0;
    if (oly_latest_step(settings.checkpoint) < 0) {
        if (oly_process_index() == 0)
            fprintf(stderr, "transformer: no checkpoint in %s: starting at step 0\n", settings.checkpoint);
        return 0;
    }
    oly_restore_arrays(settings.checkpoint, TEXT, names, TEXT, state, .step = &step);
    if (step > settings.steps + 1) {
        if (oly_process_index() == 0)
            fprintf(stderr, "transformer: the newest checkpoint is of step %" PRId64 ", beyond --steps %d\n", step,
                    settings.steps);
        oly_finalize();
        exit(2);
    }
    if (oly_process_index() == 0)
        fprintf(stderr, "transformer: going on from step %" PRId64 "\n", step);
    return (int)step;
}

/* Before step `next`. False: the program is asked to stop, and what it has is saved. */
static bool save(const oly_array *state, int next)
{
    if (!settings.checkpoint)
        return true;
    bool stop = oly_should_stop(), over = next > settings.steps;
    if (stop || over || next % settings.every == 0)
        oly_save(settings.checkpoint, TEXT, names, TEXT, state, .step = next, .async = true);
    if (stop && !over && oly_process_index() == 0)
        fprintf(stderr, "transformer: stopping before step %d of %d; --restart goes on from there\n", next,
                settings.steps);
    return !stop || over;
}

/* -- starting ----------------------------------------------------------------------------------------------------------------- */
static void usage(FILE *file)
{
    fprintf(file,
            "usage: transformer [OPTION...]\n"
            "  --steps S             the number of the last step (default 150)\n"
            "  --checkpoint DIR      save parameters and moments in DIR, also when SIGTERM or SIGUSR1 asks to stop\n"
            "  --checkpoint-every N  steps from one to the next (default 25)\n"
            "  --restart             go on from the newest checkpoint in DIR, if there is one\n");
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static void options(int argc, char **argv)
{
    static const struct option known[] = {{"steps", required_argument, NULL, 's'},
                                          {"checkpoint", required_argument, NULL, 'c'},
                                          {"checkpoint-every", required_argument, NULL, 'e'},
                                          {"restart", no_argument, NULL, 'r'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    settings.steps = 150;
    settings.every = 25;
    bool bad = false;
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 's': settings.steps = (int)number(optarg, INT_MAX); break;
        case 'c': settings.checkpoint = optarg; break;
        case 'e': settings.every = (int)number(optarg, INT_MAX); break;
        case 'r': settings.restart = true; break;
        case 'h': usage(stdout); exit(0);
        default: bad = true;
        }
    }
    if (bad || settings.steps < 0 || settings.every < 1 || optind < argc ||
        (settings.restart && !settings.checkpoint)) {
        if (settings.restart && !settings.checkpoint)
            fprintf(stderr, "transformer: --restart needs --checkpoint DIR\n");
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    options(argc, argv);
    oly_init(&argc, &argv);
    if (settings.checkpoint)
        oly_should_stop(); /* from here on, signals that ask for it do not kill the program */
    if (oly_device_count() != 8) {
        fprintf(stderr, "transformer: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 %s\n",
                oly_device_count(), argv[0]);
        oly_finalize();
        return 1;
    }
    oly_mesh mesh = oly_make_mesh("data=4, model=2");
    oly_array state[INPUTS], out[OUTPUTS] = {NULL};
    oly_sharding shardings[OUTPUTS] = {NULL};
    rows = oly_named(mesh, "data");
    for (int k = 0; k < PARAMETERS; k++) {
        oly_sharding place = oly_named(mesh, places[k]);
        oly_array w =
            oly_random_normal_shape(oly_random_fold_in(oly_random_key(1), k), OLY_FLOAT32, place, 2, shapes[k]);
        state[k] = oly_mul(0.18, w);
        state[FIRST + k] = oly_zeros_like(w);
        state[SECOND + k] = oly_zeros_like(w);
        shardings[k] = shardings[FIRST + k] = shardings[SECOND + k] = place;
    }
    state[CLOCK] = oly_device_put(oly_scalar(0, OLY_FLOAT32), oly_named(mesh, ""));
    state[TEXT] = text_of(rows);

    oly_fn slopes = oly_value_and_grad(oly_jit(predict, PARAMETERS + 1, 2), OLY_ARGNUMS(0, 1, 2, 3, 4, 5, 6, 7));
    oly_fn train = oly_jit(step, INPUTS, OUTPUTS, .user = &slopes, .out_shardings = shardings);
    bool more = true;
    for (int k = restore(state); k <= settings.steps && more; k++) {
        memcpy(out, state, TEXT * sizeof *out); /* outputs that are inputs are updated in place */
        oly_call_arrays(train, INPUTS, state, OUTPUTS, out);
        memcpy(state, out, TEXT * sizeof *out);
        if (k % 50 == 0 && oly_process_index() == 0)
            oly_printf("step %3d: loss %.2f, norm of the gradient %.1f, %3.0f %% right\n", k, oly_item(out[LOSS]),
                       oly_item(out[NORM]), 100 * oly_item(out[RIGHT]));
        oly_progress("training", k, settings.steps);
        more = save(state, k + 1);
    }
    return oly_finalize() ? 1 : more ? 0 : STOPPED;
}
