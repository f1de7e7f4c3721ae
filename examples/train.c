/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributed training: logistic regression by gradient descent, the data split over eight devices, the parameters replicated.
 *
 * A step is one function: the loss's gradient and the update. Every device computes on its part of the data, and the planner
 * inserts the sum of the gradients over the devices. First like the original of this example, which never feeds the new
 * parameters back, so that a hundred steps give the result of one; then with the parameters fed back, updated in place. The
 * hundred steps are queued without waiting for any of them.
 *
 * With --checkpoint DIR the parameters of the second training are saved from time to time, and when SIGTERM or SIGUSR1 asks the
 * program to stop; with --restart, too, it goes on from the last ones, with the same bits. Then the first training has one step, as
 * the others give the same.
 *
 * Run:    launch/olyrun -n 1 -d 8 build/examples/train [OPTION...]     (any ranks x devices that make 8 or more; --help: the options)
 * Prints: from process 0, labels, parameters and losses.
 * Writes: with --checkpoint, checkpoints.
 * Exit:   0; 75 if it was asked to stop before the last step. */
#include <olympus.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum { DEVICES = 8, EXAMPLES = 128 * DEVICES, FEATURES = 32, STOPPED = 75 };

static struct {
    int steps;              /* of each training */
    const char *checkpoint; /* folder; NULL: none */
    bool restart;           /* go on from the newest checkpoint */
    int every;              /* steps between two of them */
} settings;

static void say(const char *what, oly_array x)
{
    if (oly_process_index() == 0)
        oly_printf("%s: %A\n", what, x);
}

static void mean_square(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array predicted = oly_sigmoid(oly_add(oly_matmul(in[2], in[0]), in[1]));
    out[0] = oly_mean(oly_square(oly_sub(predicted, in[3])));
}

/* w, b, x, y to the next w and b. */
static void step(const oly_array *in, oly_array *out, void *user)
{
    oly_array w_slope = NULL, b_slope = NULL;
    oly_call(*(oly_fn *)user, 4, in, OLY_OUT(w_slope, b_slope));
    out[0] = oly_sub(in[0], oly_mul(0.01, w_slope));
    out[1] = oly_sub(in[1], oly_mul(0.01, b_slope));
}

/* -- checkpoints ------------------------------------------------------------------------------------------ */

/* Is there something to go on from? */
static bool goes_on(void)
{
    if (!settings.restart)
        return false;
    bool found = oly_latest_step(settings.checkpoint) >= 0;
    if (!found && oly_process_index() == 0)
        fprintf(stderr, "train: no checkpoint in %s: starting at step 0\n", settings.checkpoint);
    return found;
}

/* Replaces the parameters by the newest ones that were saved; returns their step. */
static int restore(oly_array *w, oly_array *b)
{
    int64_t step = 0;
    oly_restore(settings.checkpoint, OLY_NAMES("w", "b"), OLY_OUT(*w, *b), .step = &step);
    if (step > settings.steps) {
        if (oly_process_index() == 0)
            fprintf(stderr, "train: the newest checkpoint is of step %" PRId64 ", beyond --steps %d\n", step,
                    settings.steps);
        oly_finalize();
        exit(2);
    }
    if (oly_process_index() == 0)
        fprintf(stderr, "train: going on from step %" PRId64 "\n", step);
    return (int)step;
}

/* After `done` steps. False: the program is asked to stop, and what it has is saved. */
static bool save(oly_array w, oly_array b, int done)
{
    if (!settings.checkpoint)
        return true;
    bool stop = oly_should_stop(), over = done == settings.steps;
    if (stop || over || done % settings.every == 0)
        oly_save(settings.checkpoint, OLY_NAMES("w", "b"), OLY_IN(w, b), .step = done, .async = true);
    if (stop && !over && oly_process_index() == 0)
        fprintf(stderr, "train: stopping at step %d of %d; --restart goes on from there\n", done, settings.steps);
    return !stop || over;
}

/* -- training --------------------------------------------------------------------------------------------- */

/* False: it was asked to stop. */
static bool train(oly_mesh mesh)
{
    oly_sharding whole = oly_named(mesh, ""), rows = oly_named(mesh, "X, None");
    oly_array key = oly_random_key(1701);
    oly_array x = oly_random_normal(key, OLY_FLOAT32, EXAMPLES, FEATURES);
    oly_array truth = oly_random_normal(key, OLY_FLOAT32, FEATURES, 1);
    oly_array y = oly_astype(oly_gt(oly_matmul(x, truth), 0), OLY_FLOAT32);
    say("labels that are one", oly_sum(y));

    x = oly_device_put(x, rows);
    y = oly_device_put(y, rows);
    oly_array w = oly_device_put(oly_zeros(OLY_FLOAT32, FEATURES, 1), whole);
    oly_array b = oly_device_put(oly_zeros(OLY_FLOAT32, 1), whole), new_w = NULL, new_b = NULL;

    oly_fn loss = oly_jit(mean_square, 4, 1), slope = oly_grad(loss, .argnums = "0, 1");
    oly_sharding in[] = {whole, whole, rows, rows}, out[] = {whole, whole};
    oly_fn train_step = oly_jit(step, 4, 2, .user = &slope, .in_shardings = in, .out_shardings = out);
    say("loss at zero", oly_apply(loss, w, b, x, y));

    bool restarted = goes_on();
    for (int k = 0; k < (restarted ? 1 : settings.steps); k++) {
        oly_call(train_step, OLY_IN(w, b, x, y), OLY_OUT(new_w, new_b));
        if (settings.checkpoint && oly_should_stop() && !restarted)
            return save(w, b, 0);
    }
    say("a hundred times the first step: w begins", oly_slice(new_w, ":4, 0"));
    say("b", new_b);
    say("loss", oly_apply(loss, new_w, new_b, x, y));

    for (int k = restarted ? restore(&w, &b) : 0; k < settings.steps; k++) {
        oly_call(train_step, OLY_IN(w, b, x, y), OLY_OUT(w, b)); /* the old parameters are gone */
        oly_progress("training", k + 1, settings.steps); /* a line on a terminal, if it takes more than two seconds */
        if (!save(w, b, k + 1))
            return false;
    }
    say("a hundred steps: w begins", oly_slice(w, ":4, 0"));
    say("b", b);
    say("loss", oly_apply(loss, w, b, x, y));
    return true;
}

static void usage(FILE *file)
{
    fprintf(file, "usage: train [OPTION...]\n"
                  "  --steps S             steps of each training (default 100)\n"
                  "  --checkpoint DIR      save the parameters in DIR, also when SIGTERM or SIGUSR1 asks to stop\n"
                  "  --checkpoint-every N  steps from one to the next (default 10)\n"
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
    settings.steps = 100;
    settings.every = 10;
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
    if (bad || settings.steps < 1 || settings.every < 1 || optind < argc ||
        (settings.restart && !settings.checkpoint)) {
        if (settings.restart && !settings.checkpoint)
            fprintf(stderr, "train: --restart needs --checkpoint DIR\n");
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
    if (oly_device_count() < DEVICES) {
        if (oly_process_index() == 0)
            fprintf(stderr, "train needs %d devices, there are %d: try launch/olyrun -n 1 -d 8 %s\n", DEVICES,
                    oly_device_count(), argv[0]);
        oly_finalize();
        return 1;
    }
    bool whole = train(oly_make_mesh("X=8"));
    return oly_finalize() ? 1 : whole ? 0 : STOPPED;
}
