/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipeline parallelism: the stages of a network on different devices, a batch cut into microbatches that follow one another through
 * the stages, and oly_device_put between them.
 *
 *     forward  every microbatch through the stages, one call after the other: stages overlap, since each device has a queue of its own
 *     gpipe    training: all microbatches forwards, then all backwards (GPipe)
 *     1f1b     training: each stage goes backwards as soon as it can, alternating with forwards (one forward, one backward): stage s of
 *              S holds the inputs of S - s microbatches, and one that has just arrived, instead of all of them
 *
 * Every process makes all calls, in the same order; those on devices of others cost it next to nothing. A stage's mesh has its share of
 * the devices, over which the rows of a microbatch are split. Backwards a stage recomputes itself from its input (oly_vjp); gradients
 * add up over the microbatches. They are compared with those of the whole network as one function.
 *
 * Run:    launch/olyrun -n 4 -d 1 build/examples/pipeline --schedule 1f1b --stages 4 --microbatches 12 --size 512 --time
 * Prints: from process 0, losses, gradients compared, what the stages held; with --time milliseconds, and the ideal ones. */
#include <olympus.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_STAGES = 16, MOST_MICROBATCHES = 64 };

static struct {
    const char *schedule;
    int stages, microbatches, steps;
    int64_t size;
    bool time;
} options = {"gpipe", 4, 8, 3, 32, false};

/* One stage: where it is, its weights, the sum of their gradients, and what it holds. */
typedef struct stage {
    oly_sharding rows, whole;
    oly_fn forward, backward;
    oly_array weights, sum;
    oly_array input[MOST_MICROBATCHES], slope[MOST_MICROBATCHES]; /* slope: of its output, from the stage behind */
    int held, most_held;
} stage;

static stage stages[MOST_STAGES];
static oly_array batch[MOST_MICROBATCHES], target[MOST_MICROBATCHES];

static bool speaks(void)
{
    return oly_process_index() == 0;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- the network: stages f, g, f, g, ... ------------------------------------------------------------------------------------------ */

static oly_array run_stage(int number, oly_array w, oly_array x)
{
    oly_array product = oly_matmul(x, w);
    return number % 2 == 0 ? oly_tanh(product) : oly_add(x, oly_sin(product));
}

/* w, x to y. user: the stage's number. */
static void forward(const oly_array *in, oly_array *out, void *user)
{
    out[0] = run_stage((int)(intptr_t)user, in[0], in[1]);
}

/* w, x, target to the loss: a microbatch's share of the mean square. */
static void last_loss(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = run_stage((int)(intptr_t)user, in[0], in[1]);
    out[0] = oly_div(oly_mean(oly_square(oly_sub(y, in[2]))), options.microbatches);
}

/* w, x, slope of y, sum of gradients to the new sum and the slope of x. user: the stage's vjp. */
static void backward(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL, of_w = NULL, of_x = NULL;
    oly_call(*(oly_fn *)user, OLY_IN(in[0], in[1], in[2]), OLY_OUT(y, of_w, of_x));
    out[0] = oly_add(in[3], of_w);
    out[1] = of_x;
}

/* w, x, target, sum of gradients, sum of losses to the new sums and the slope of x. */
static void backward_from_loss(const oly_array *in, oly_array *out, void *user)
{
    oly_array loss = NULL, of_w = NULL, of_x = NULL;
    oly_call(*(oly_fn *)user, OLY_IN(in[0], in[1], in[2]), OLY_OUT(loss, of_w, of_x));
    out[0] = oly_add(in[3], of_w);
    out[1] = oly_add(in[4], loss);
    out[2] = of_x;
}

/* All weights, the whole batch and targets to the loss: the network as one function. */
static void whole_loss(const oly_array *in, oly_array *out, void *user)
{
    int n = options.stages;
    oly_array y = in[n];
    (void)user;
    for (int s = 0; s < n; s++)
        y = run_stage(s, in[s], y);
    out[0] = oly_mean(oly_square(oly_sub(y, in[n + 1])));
}

/* -- stages and data ---------------------------------------------------------------------------------------------------------------- */

/* Equal shares of the devices; where there are fewer than stages, they take turns. */
static oly_mesh mesh_of_stage(int s)
{
    int all = oly_device_count(), share = all >= options.stages ? all / options.stages : 1, devices[1024];
    for (int k = 0; k < share; k++)
        devices[k] = (s * share + k) % all;
    return oly_mesh_from_devices(1, (const char *[]){"data"}, &share, devices);
}

static oly_array random_weights(int s)
{
    oly_array key = oly_random_fold_in(oly_random_key(7), s);
    oly_array w = oly_random_normal(key, OLY_FLOAT32, options.size, options.size);
    return oly_mul(w, 1 / sqrt((double)options.size));
}

static void make_stages(void)
{
    static oly_fn slopes[MOST_STAGES];
    for (int s = 0; s < options.stages; s++) {
        stage *at = &stages[s];
        void *number = (void *)(intptr_t)s;
        bool last = s == options.stages - 1;
        oly_mesh mesh = mesh_of_stage(s);
        at->rows = oly_named(mesh, "data");
        at->whole = oly_named(mesh, "");
        at->forward = oly_jit(forward, 2, 1, .user = number);
        slopes[s] = last ? oly_value_and_grad(oly_jit(last_loss, 3, 1, .user = number), .argnums = "0, 1")
                         : oly_vjp(at->forward);
        at->backward =
            last ? oly_jit(backward_from_loss, 5, 3, .user = &slopes[s]) : oly_jit(backward, 4, 2, .user = &slopes[s]);
        at->weights = oly_device_put(random_weights(s), at->whole);
    }
}

static void make_data(void)
{
    for (int m = 0; m < options.microbatches; m++) {
        oly_array key = oly_random_fold_in(oly_random_key(3), m);
        batch[m] = oly_random_normal(key, OLY_FLOAT32, options.size, options.size);
        target[m] = oly_sin(batch[m]);
    }
}

/* -- one step of one stage ------------------------------------------------------------------------------------------------------- */

/* What a stage does next; its result travels when all stages have computed, so that no stage waits for another's computation. */
typedef struct work {
    bool backwards;
    int microbatch;
    oly_array result; /* to be sent on; NULL: nothing */
} work;

static void hold(stage *at, int m, oly_array x)
{
    at->input[m] = x;
    at->held++;
    at->most_held = at->held > at->most_held ? at->held : at->most_held;
}

static void compute(int s, work *w, oly_array *loss)
{
    stage *at = &stages[s];
    int m = w->microbatch;
    bool last = s == options.stages - 1;
    w->result = NULL;
    if (!w->backwards) {
        if (s == 0)
            hold(at, m, oly_device_put(batch[m], at->rows));
        if (!last)
            w->result = oly_apply(at->forward, at->weights, at->input[m]);
        return;
    }
    if (last) {
        oly_array wanted = oly_device_put(target[m], at->rows);
        oly_call(at->backward, OLY_IN(at->weights, at->input[m], wanted, at->sum, *loss),
                 OLY_OUT(at->sum, *loss, w->result));
        oly_free(wanted);
    } else {
        oly_call(at->backward, OLY_IN(at->weights, at->input[m], at->slope[m], at->sum), OLY_OUT(at->sum, w->result));
        oly_free(at->slope[m]);
    }
    oly_free(at->input[m]);
    at->held--;
}

static void send_on(int s, const work *w)
{
    int to = w->backwards ? s - 1 : s + 1;
    if (w->result && to >= 0) {
        oly_array there = oly_device_put(w->result, stages[to].rows);
        if (w->backwards)
            stages[to].slope[w->microbatch] = there;
        else
            hold(&stages[to], w->microbatch, there);
    }
    oly_free(w->result);
}

/* -- schedules --------------------------------------------------------------------------------------------------------------------- */

/* What stage s does as number k of its 2 M steps. */
static work step_of(int s, int k)
{
    int all = options.microbatches, ahead = strcmp(options.schedule, "gpipe") == 0 ? all : options.stages - s;
    if (ahead > all)
        ahead = all;
    if (k < ahead)
        return (work){false, k, NULL};
    int turn = (k - ahead) / 2;
    if (ahead + turn < all) /* in turns, beginning backwards */
        return (k - ahead) % 2 == 0 ? (work){true, turn, NULL} : (work){false, ahead + turn, NULL};
    return (work){true, k - all, NULL}; /* the last ones */
}

/* Is what the step needs there? done: steps forwards and backwards that each stage has made before. */
static bool is_ready(int s, const work *w, int (*done)[2])
{
    if (!w->backwards)
        return s == 0 || done[s - 1][0] > w->microbatch;
    return s == options.stages - 1 ? done[s][0] > w->microbatch : done[s + 1][1] > w->microbatch;
}

/* One turn: every stage that can makes its next step; then the results travel, first those of even stages. */
static bool take_turn(int (*done)[2], oly_array *loss)
{
    work now[MOST_STAGES];
    bool busy[MOST_STAGES], any = false;
    for (int s = 0; s < options.stages; s++) {
        int k = done[s][0] + done[s][1];
        busy[s] = k < 2 * options.microbatches;
        if (busy[s]) {
            now[s] = step_of(s, k);
            busy[s] = is_ready(s, &now[s], done);
        }
        any = any || busy[s];
    }
    for (int s = 0; s < options.stages; s++)
        if (busy[s]) {
            compute(s, &now[s], loss);
            done[s][now[s].backwards]++;
        }
    for (int odd = 0; odd < 2; odd++)
        for (int s = odd; s < options.stages; s += 2)
            if (busy[s])
                send_on(s, &now[s]);
    return any;
}

/* The gradients of all stages, in their sums; returns the loss, on the devices of the last stage. */
static oly_array compute_gradients(void)
{
    int done[MOST_STAGES][2] = {{0}};
    oly_array loss = oly_device_put(oly_zeros(OLY_FLOAT32), stages[options.stages - 1].whole);
    for (int s = 0; s < options.stages; s++)
        stages[s].sum = oly_device_put(oly_zeros(OLY_FLOAT32, options.size, options.size), stages[s].whole);
    while (take_turn(done, &loss))
        continue;
    return loss;
}

/* -- training ------------------------------------------------------------------------------------------------------------------------ */

/* The largest difference between the gradients and those of the network as one function, relative to the largest. */
static double difference_from_whole(void)
{
    int n = options.stages, by[MOST_STAGES];
    int64_t elements = options.size * options.size;
    float *one = malloc(sizeof *one * (size_t)elements), *other = malloc(sizeof *other * (size_t)elements);
    double most = 0, largest = 0;
    OLY_SCOPE
    {
        oly_mesh mesh = oly_make_mesh("data=-1");
        oly_array in[MOST_STAGES + 2], slopes[MOST_STAGES] = {NULL};
        for (int s = 0; s < n; s++) {
            in[s] = oly_device_put(random_weights(s), oly_named(mesh, ""));
            by[s] = s;
        }
        in[n] = oly_device_put(oly_concatenate_n(options.microbatches, batch, 0), oly_named(mesh, "data"));
        in[n + 1] = oly_device_put(oly_concatenate_n(options.microbatches, target, 0), oly_named(mesh, "data"));
        oly_fn whole = oly_grad(oly_jit(whole_loss, n + 2, 1), .n_argnum_list = n, .argnum_list = by);
        oly_call_arrays(whole, n + 2, in, n, slopes);
        for (int s = 0; s < n; s++) {
            oly_process_allgather(slopes[s], one, sizeof *one * (size_t)elements);
            oly_process_allgather(stages[s].sum, other, sizeof *other * (size_t)elements);
            for (int64_t k = 0; k < elements; k++) {
                most = fmax(most, fabs((double)one[k] - (double)other[k]));
                largest = fmax(largest, fabs((double)one[k]));
            }
        }
    }
    free(one);
    free(other);
    return most / largest;
}

/* A number by which gradients can be compared bit by bit. */
static unsigned long long digest_of_gradients(void)
{
    unsigned long long digest = 14695981039346656037u;
    size_t bytes = sizeof(float) * (size_t)(options.size * options.size);
    unsigned char *host = malloc(bytes);
    for (int s = 0; s < options.stages; s++) {
        oly_process_allgather(stages[s].sum, host, bytes);
        for (size_t k = 0; k < bytes; k++)
            digest = (digest ^ host[k]) * 1099511628211u;
    }
    free(host);
    return digest;
}

static void say_loss(int step, oly_array loss)
{
    float value = 0;
    oly_process_allgather(loss, &value, sizeof value);
    if (speaks())
        printf("step %d: loss %.5f\n", step, (double)value);
}

static void train(void)
{
    for (int k = 0; k < options.steps; k++)
        OLY_SCOPE
        {
            double begin = seconds();
            oly_array loss = compute_gradients();
            for (int s = 0; s < options.stages; s++)
                oly_block_until_ready(stages[s].sum);
            double took = seconds() - begin;
            say_loss(k, loss);
            if (k == 0) {
                double difference = difference_from_whole();
                unsigned long long digest = digest_of_gradients();
                if (speaks())
                    printf("gradients %016llx, those of the whole network differ by %s\n", digest,
                           difference < 1e-5 ? "less than 1e-5" : "MORE THAN 1e-5");
            }
            if (options.time && speaks())
                printf("%.1f ms\n", 1e3 * took);
            for (int s = 0; s < options.stages; s++)
                oly_assign(&stages[s].weights, oly_sub(stages[s].weights, oly_mul(0.5, stages[s].sum)));
        }
    if (speaks()) {
        printf("%s: microbatches held by stage:", options.schedule);
        for (int s = 0; s < options.stages; s++)
            printf(" %d", stages[s].most_held);
        printf("\n");
    }
}

/* -- forwards only ------------------------------------------------------------------------------------------------------------------- */

/* Seconds that M calls of one stage take where nothing else is computed; on every process the longest. */
static double time_alone(int s)
{
    double mine = 0, *all = malloc(sizeof *all * (size_t)oly_process_count()), most = 0;
    OLY_SCOPE
    {
        oly_array x = oly_device_put(batch[0], stages[s].rows), y = NULL;
        oly_block_until_ready(oly_apply(stages[s].forward, stages[s].weights, x));
        oly_sync("stage");
        double begin = seconds();
        for (int m = 0; m < options.microbatches; m++)
            y = oly_apply(stages[s].forward, stages[s].weights, x);
        oly_block_until_ready(y);
        mine = seconds() - begin;
    }
    oly_allgather_host(&mine, sizeof mine, all);
    for (int r = 0; r < oly_process_count(); r++)
        most = fmax(most, all[r]);
    free(all);
    return most;
}

static void stream(oly_array *result)
{
    for (int m = 0; m < options.microbatches; m++) {
        oly_array x = batch[m];
        for (int s = 0; s < options.stages; s++) {
            x = oly_device_put(x, stages[s].rows);
            x = oly_apply(stages[s].forward, stages[s].weights, x);
        }
        result[m] = x;
    }
    for (int m = 0; m < options.microbatches; m++)
        oly_block_until_ready(result[m]);
}

/* The stages one after the other, the longest of them once for each further microbatch. */
static double ideal_time(void)
{
    double sum = 0, longest = 0;
    for (int s = 0; s < options.stages; s++) {
        double one = time_alone(s) / options.microbatches;
        sum += one;
        longest = fmax(longest, one);
    }
    return sum + (options.microbatches - 1) * longest;
}

static void run_forwards(void)
{
    for (int k = 0; k < options.steps; k++)
        OLY_SCOPE
        {
            oly_array result[MOST_MICROBATCHES], total = NULL;
            double ideal = options.time ? ideal_time() : 0;
            oly_sync("begin");
            double begin = seconds();
            stream(result);
            oly_sync("end");
            double took = seconds() - begin;
            for (int m = 0; m < options.microbatches; m++)
                total = total ? oly_add(total, oly_mean(oly_square(result[m]))) : oly_mean(oly_square(result[m]));
            say_loss(k, total);
            if (options.time && speaks())
                printf("%.1f ms, ideal with a core for each device %.1f ms\n", 1e3 * took, 1e3 * ideal);
        }
}

/* -- options ------------------------------------------------------------------------------------------------------------------------- */

static int stop(const char *why)
{
    FILE *to = *why ? stderr : stdout;
    fprintf(to,
            "%s%susage: pipeline [--schedule forward|gpipe|1f1b] [--stages N] [--microbatches N] [--size N] [--steps "
            "N] [--time]\n"
            "  --stages        1 to %d (4): equal shares of the devices, in turn\n"
            "  --microbatches  1 to %d (8), each of size x size elements\n"
            "  --size          elements along each dimension (32)\n"
            "  --steps         how often (3)\n"
            "  --time          print milliseconds\n",
            why, *why ? "\n" : "", MOST_STAGES, MOST_MICROBATCHES);
    return *why ? 2 : 0;
}

static bool read_number(const char *text, long least, long most, long *number)
{
    char *end;
    *number = strtol(text, &end, 10);
    return *text && !*end && *number >= least && *number <= most;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        long n = 0;
        if (strcmp(argv[k], "--help") == 0)
            return stop("");
        if (strcmp(argv[k], "--time") == 0) {
            options.time = true;
            continue;
        }
        if (k + 1 == argc)
            return stop("pipeline: an option without its value, or an unknown one");
        const char *name = argv[k], *value = argv[++k];
        if (strcmp(name, "--schedule") == 0 &&
            (strcmp(value, "forward") == 0 || strcmp(value, "gpipe") == 0 || strcmp(value, "1f1b") == 0))
            options.schedule = value;
        else if (strcmp(name, "--stages") == 0 && read_number(value, 1, MOST_STAGES, &n))
            options.stages = (int)n;
        else if (strcmp(name, "--microbatches") == 0 && read_number(value, 1, MOST_MICROBATCHES, &n))
            options.microbatches = (int)n;
        else if (strcmp(name, "--size") == 0 && read_number(value, 1, 1 << 15, &n))
            options.size = n;
        else if (strcmp(name, "--steps") == 0 && read_number(value, 0, 1 << 30, &n))
            options.steps = (int)n;
        else
            return stop("pipeline: an unknown option, or a value that it does not take");
    }
    return -1;
}

int main(int argc, char **argv)
{
    int status = read_options(argc, argv);
    if (status >= 0)
        return status;
    oly_init(&argc, &argv);
    make_stages();
    make_data();
    if (strcmp(options.schedule, "forward") == 0)
        run_forwards();
    else
        train();
    return oly_finalize();
}
