/* SPDX-License-Identifier: BSD-3-Clause */
/* Running programs that differ. See check_divergence.h. */
#include "check_divergence.h"
#include "communicator.h"
#include <time.h>
#include <unistd.h>

int line, other;
bool handed_out, used_up;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- setup of every program ---------------------------------------------------------------------------------------- */

static oly_mesh mesh_without(int rank)
{
    int all = oly_device_count(), own = all / oly_process_count(), n = 0,
        *devices = malloc(sizeof *devices * (size_t)all);
    for (int id = all; id-- > 0;) /* in another order than all devices */
        if (oly_process_count() > 2 ? id / own != rank : id > 0 || own == 1)
            devices[n++] = id;
    oly_mesh mesh = oly_mesh_from_devices(1, (const char *[]){"i"}, &n, devices);
    free(devices);
    return mesh;
}

static void prepare(setting *s, int who)
{
    s->n = 2 * oly_device_count();
    char axes[30];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    s->mesh = oly_make_mesh(axes);
    s->part = mesh_without((who + 1) % oly_process_count());
    s->rows = oly_named(s->mesh, "i");
    s->columns = oly_named(s->mesh, "None, i");
    s->whole = oly_named(s->mesh, "");
    s->part_rows = oly_named(s->part, "i");
    s->part_whole = oly_named(s->part, "");
    oly_array numbers = oly_reshape(oly_arange(s->n * s->n, OLY_FLOAT32), s->n, s->n), more = oly_add(numbers, 1);
    s->x = oly_device_put(numbers, s->rows);
    s->y = oly_device_put(more, s->rows);
    s->v = oly_device_put(oly_arange(s->n, OLY_FLOAT32), s->rows);
    s->a = oly_device_put(numbers, s->part_rows);
    s->b = oly_device_put(more, s->part_rows);
}

oly_array own_scalar(const setting *s, oly_dtype type)
{
    return oly_astype(oly_full(s->odd ? 2 : 1, OLY_INT32), type);
}

void doubled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

void tripled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 3);
}

/* -- uses: true if a value was returned ---------------------------------------------------------------------------- */

static bool use_sum(oly_array y)
{
    oly_array sum = y ? oly_sum(y) : NULL;
    if (!sum || oly_shard_count(sum) == 0)
        return false;
    (void)oly_item(sum);
    return oly_last_status() == OLY_OK;
}

static bool use_gather(oly_array y)
{
    size_t bytes = y ? (size_t)oly_size(y) * 8 : 0;
    void *all = malloc(bytes + 1);
    bool given = y && oly_process_allgather(y, all, bytes) == OLY_OK;
    free(all);
    return given;
}

static void sum_of(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sin(in[0]));
}

static bool use_compiled(oly_array y)
{
    oly_array sum = y ? oly_apply(oly_jit(sum_of, 1, 1), y) : NULL;
    if (!sum || oly_shard_count(sum) == 0)
        return false;
    (void)oly_item(sum);
    return oly_last_status() == OLY_OK;
}

static bool use_product(oly_array y)
{
    oly_array flat = y ? oly_reshape(y, -1) : NULL;
    return use_sum(flat ? oly_matmul(flat, flat) : NULL);
}

static bool use_sync(oly_array y)
{
    (void)y;
    oly_sync("here");
    return oly_last_status() == OLY_OK;
}

static bool use_nothing(oly_array y)
{
    (void)y;
    return false;
}

static const struct use {
    const char *name;
    bool (*use)(oly_array y);
} uses[] = {{"sum", use_sum},         {"gather", use_gather}, {"compiled", use_compiled},
            {"product", use_product}, {"sync", use_sync},     {"nothing", use_nothing}};
enum { N_USES = sizeof uses / sizeof *uses };

/* -- running ------------------------------------------------------------------------------------------------------------ */

enum { MOST_SECONDS = 1, SHOWN = 5, MOST_RANKS = 256 };
static double began;
static int n_slow, n_missed;
static struct slow {
    double seconds;
    const char *name, *use;
} slowest[SHOWN + 1]; /* the slowest first, and room for one more */

static void note_seconds(const difference *d, const struct use *u, double seconds)
{
    int at = SHOWN;
    n_slow += seconds > MOST_SECONDS;
    for (; at > 0 && slowest[at - 1].seconds < seconds; at--)
        slowest[at] = slowest[at - 1];
    slowest[at] = (struct slow){seconds, d->name, u->name};
}

void difference_begin(setting *s, int who)
{
    line = other = 0;
    handed_out = used_up = false;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_clear_error();
    who %= oly_process_count();
    s->odd = oly_process_index() == who;
    prepare(s, who);
    oly_sync("all are there");
    began = now();
}

int difference_end(double *seconds)
{
    int status = oly_finalize();
    *seconds = now() - began;
    return status;
}

bool difference_is_named(const char *file, const char *text, int number)
{
    char place[100];
    const char *name = strrchr(file, '/');
    snprintf(place, sizeof place, "%s:%d)", name ? name + 1 : file, number);
    return number == 0 || strstr(text, place);
}

/* Checks how the program ended on this rank; `wrong` is "" if as expected. */
static void run(const char *file, const difference *d, const struct use *u, int who, char *wrong, size_t size)
{
    setting s;
    double seconds;
    wrong[0] = 0;
    difference_begin(&s, who);
    oly_array y = d->make(&s);
    if (!used_up && u->use(y))
        handed_out = true;
    int status = difference_end(&seconds);
    note_seconds(d, u, seconds);
    const char *text = oly_last_error();
    if (handed_out)
        snprintf(wrong, size, "a value was handed out");
    else if (oly_last_status() != OLY_DIVERGED || status != 1)
        snprintf(wrong, size, "it got status %d and %s: %s", status, oly_status_name(oly_last_status()), text);
    else if (!difference_is_named(file, text, line) || !difference_is_named(file, text, other))
        snprintf(wrong, size, "the message does not name lines %d and %d: %s", line, other, text);
    oly_clear_error();
}

static void check(const char *file, const difference *d, const struct use *u, int who)
{
    char wrong[2000];
    if (getenv("DIVERGENCE_PRINT"))
        fprintf(stderr, "%s, %s, rank %d differs\n", d->name, u->name, who);
    run(file, d, u, who, wrong, sizeof wrong);
    if (!wrong[0])
        return;
    n_missed++;
    print_message("%s, %s, rank %d differs: %s\n", d->name, u->name, who, wrong);
}

/* Is nothing else using the cores? Then the time limit applies. */
static bool is_idle(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 && load[0] < 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

/* One line that sums up all ranks; the times are those of rank 0. */
static void sum_up(int n_programs, int n_differences)
{
    int mine[2] = {n_missed, n_slow}, all[2 * MOST_RANKS];
    oly_init(NULL, NULL);
    int ranks = oly_process_count(), devices = oly_local_device_count();
    assert_true(ranks <= MOST_RANKS && oly_world_gather(mine, all, sizeof mine) == OLY_OK);
    oly_finalize();
    for (int r = 0; r < ranks; r++) {
        n_missed = all[2 * r] > n_missed ? all[2 * r] : n_missed;
        n_slow = all[2 * r + 1] > n_slow ? all[2 * r + 1] : n_slow;
    }
    print_message("%dx%d: %d programs of %d kinds, %d missed, %d took over %d s; the slowest:", ranks, devices,
                  n_programs, n_differences, n_missed, n_slow, MOST_SECONDS);
    for (int k = 0; k < SHOWN && slowest[k].name; k++)
        print_message(" %s, %s: %.2f s;", slowest[k].name, slowest[k].use, slowest[k].seconds);
    print_message("\n");
}

void differences_are_refused(const char *file, int n_differences, const difference *list)
{
    const char *wanted = getenv("DIVERGENCE");
    int part = 0, parts = 1, n = 0, at = 0;
    bool some = wanted && sscanf(wanted, "%d/%d", &part, &parts) == 2 && parts > 0, idle = is_idle();
    bool all = some || (wanted && strcmp(wanted, "all") == 0);
    for (int d = 0; d < n_differences; d++)
        for (int k = 0; k < (wanted && !some ? N_USES : 2); k++) {
            if ((wanted && !all && !strstr(list[d].name, wanted)) || at++ % parts != part)
                continue;
            check(file, &list[d], &uses[(d + 3 * k + d / N_USES) % N_USES], d + k);
            n++;
        }
    sum_up(n, n_differences);
    if (n_missed > 0)
        fail_msg("%d of %d programs", n_missed, n);
    if (idle && n_slow > 1) /* a single one may have been delayed by something else on this machine */
        fail_msg("%s took %.2f s", slowest[0].name, slowest[0].seconds);
}
