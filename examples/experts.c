/* SPDX-License-Identifier: BSD-3-Clause */
/* A mixture of experts: each device has one expert, tokens go to the expert they choose and come back, by two all-to-alls.
 *
 * A per-device program (oly_shard_map) with collectives, inside a training step that the planner makes: oly_value_and_grad
 * differentiates the loss through the map, so the backward pass consists of two all-to-alls again; the gate's gradient is
 * summed over the devices, each expert's stays where the expert is. The task: tokens of eight kinds, each with its own
 * rotation, which one expert alone cannot learn. Every token goes to the expert with the highest gate value, at most CAPACITY
 * from each device; the rest pass unchanged. A second loss keeps the experts equally busy.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/experts      (eight devices, on any number of ranks)
 * Prints: from process 0, the loss, and how many of the tokens found room at their expert; then the placement of the experts. */
#include <olympus.h>

enum { EXPERTS = 8, KINDS = 8, WIDTH = 16, HIDDEN = 32, TOKENS = 512, CAPACITY = 16, STEPS = 200 };

static oly_mesh mesh;

/* -- one device: its tokens, its expert ------------------------------------------------------------------------------ */

/* For each token, expert and position in the expert's queue: 1 where the token goes. */
static oly_array queue(oly_array chosen)
{
    oly_array before = oly_sub(oly_cumsum(chosen, 0), 1); /* tokens of this device that chose the same expert earlier */
    oly_array room = oly_mul(oly_lt(before, CAPACITY), chosen);
    oly_array place =
        oly_one_hot(oly_astype(oly_sum(oly_mul(before, chosen), .axes = "-1"), OLY_INT32), CAPACITY, OLY_FLOAT32, -1);
    return oly_mul(oly_expand_dims(room, 2), oly_expand_dims(place, 1));
}

static void layer(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array gate = in[0], up = in[1], down = in[2], x = in[3];
    oly_array liking = oly_softmax(oly_matmul(x, gate), -1);
    oly_array chosen = oly_one_hot(oly_argmax(liking, .axes = "-1"), EXPERTS, OLY_FLOAT32, -1), goes = queue(chosen);

    oly_array sent = oly_einsum("tec,tw->ecw", goes, x);
    oly_array work =
        oly_all_to_all(sent, "x", 0, 1, true); /* [1, 8 CAPACITY, WIDTH]: what all devices sent this expert */
    oly_array hidden = oly_tanh(oly_einsum("ecw,ewh->ech", work, up));
    oly_array done = oly_all_to_all(oly_einsum("ech,ehw->ecw", hidden, down), "x", 1, 0, true);

    oly_array weight = oly_sum(oly_mul(liking, chosen), .axes = "-1", .keepdims = true);
    out[0] = oly_add(x, oly_mul(oly_einsum("tec,ecw->tw", goes, done), weight));
    oly_array busy = oly_pmean(oly_mean(chosen, .axes = "0"), "x");
    oly_array liked = oly_pmean(oly_mean(liking, .axes = "0"), "x");
    out[1] = oly_mul(EXPERTS, oly_sum(oly_mul(busy, liked))); /* 1 if all are equally busy */
    out[2] = oly_pmean(oly_div(oly_sum(goes), oly_dim(x, 0)), "x");
}

/* -- training --------------------------------------------------------------------------------------------------------- */
static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = NULL, balance = NULL;
    oly_shard_map(layer, NULL, mesh, OLY_IN(in[0], in[1], in[2], in[3]), OLY_SPECS("", "x", "x", "x"),
                  OLY_OUT(y, balance, out[1]), OLY_SPECS("x", "", ""));
    out[0] = oly_add(oly_mean(oly_square(oly_sub(y, in[4]))), oly_mul(0.01, balance));
}

static void step(const oly_array *in, oly_array *out, void *user)
{
    oly_array slope[3] = {NULL};
    oly_call(*(oly_fn *)user, 5, in, OLY_OUT(out[3], slope[0], slope[1], slope[2], out[4]));
    for (int k = 0; k < 3; k++)
        out[k] = oly_sub(in[k], oly_mul(3, slope[k]));
}

/* Tokens around eight centres, each rotated by the matrix of its kind. */
static void make_task(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    oly_array key = oly_random_split(oly_random_key(1), 4);
    oly_array kind = oly_random_randint(oly_slice(key, "0"), OLY_INT32, 0, KINDS, TOKENS);
    oly_array centre = oly_random_normal(oly_slice(key, "1"), OLY_FLOAT32, KINDS, WIDTH);
    oly_array turn = oly_random_normal(oly_slice(key, "2"), OLY_FLOAT32, KINDS, WIDTH, WIDTH);
    out[0] = oly_add(oly_take(centre, kind, 0, "clip"),
                     oly_mul(0.3, oly_random_normal(oly_slice(key, "3"), OLY_FLOAT32, TOKENS, WIDTH)));
    oly_array turned = oly_einsum("tw,twv->tv", out[0], oly_take(turn, kind, 0, "clip"));
    out[1] = oly_add(out[0], oly_mul(0.2, oly_tanh(turned)));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() != EXPERTS) {
        fprintf(stderr, "experts: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 %s\n", oly_device_count(),
                argv[0]);
        oly_finalize();
        return 1;
    }
    mesh = oly_make_mesh("x=8");
    oly_sharding rows = oly_named(mesh, "x"), whole = oly_named(mesh, ""), task[] = {rows, rows};
    oly_array x = NULL, y = NULL, value = NULL, room = NULL;
    oly_call(oly_jit(make_task, 0, 2, .out_shardings = task), 0, NULL, OLY_OUT(x, y));
    oly_array key = oly_random_key(2);
    oly_array gate = oly_random_normal_sharded(oly_random_fold_in(key, 0), OLY_FLOAT32, whole, WIDTH, EXPERTS);
    oly_array up = oly_random_normal_sharded(oly_random_fold_in(key, 1), OLY_FLOAT32, rows, EXPERTS, WIDTH, HIDDEN);
    oly_array down = oly_random_normal_sharded(oly_random_fold_in(key, 2), OLY_FLOAT32, rows, EXPERTS, HIDDEN, WIDTH);
    oly_assign(&gate, oly_mul(0.1, gate));
    oly_assign(&up, oly_mul(0.2, up));
    oly_assign(&down, oly_mul(0.1, down));

    oly_fn slopes = oly_value_and_grad(oly_jit(loss, 5, 2), .argnums = "0, 1, 2");
    oly_fn train = oly_jit(step, 5, 5, .user = &slopes);
    for (int k = 0; k <= STEPS; k++) {
        oly_call(train, OLY_IN(gate, up, down, x, y), OLY_OUT(gate, up, down, value, room)); /* parameters in place */
        if (k % 50 == 0 && oly_process_index() == 0)
            oly_printf("step %3d: loss %.3f, %3.0f %% of the tokens at an expert\n", k, oly_item(value),
                       100 * oly_item(room));
    }
    if (oly_process_index() == 0)
        oly_printf("an expert on each device still: %S\n", oly_sharding_of(up));
    return oly_finalize();
}
