/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Groups whose results are only copied into parts of larger arrays write them there, and inner parts of blocks are read where they
 * are, without the margins from other devices: drawn programs of updates of slices,
 * concatenations, stacks and padding, of pieces that are computed from neighbours, read once or several times, in loops and outside, have the same
 * bits as with copies, donated or not.
 *
 * DIRECT_PARTS=seed:count runs others. */
#include "check_communication.h"
#include "check_draws.h"
#include "compare_pass.h"
#include "plan/schedule/schedule.h"
#include <stdlib.h>

enum { ROWS = 48, COLUMNS = 40, MOST = 5, USUAL = 60 };
enum {
    INNER,
    ROW,
    TWICE,
    JOINED,
    STACKED,
    PADDED,
    GAPS,
    BRANCHED,
    WIDE,
    SHIFTED,
    FLIPPED,
    SUMMED,
    FRAMED,
    LOPSIDED,
    WRAPPED,
    NORM,
    SPREAD,
    SHAPES
};

typedef struct drawn {
    int n, shape[MOST], number[MOST], loop; /* loop: 0 none, 1 counted, 2 with a condition */
    bool again, donates;                    /* again: a piece is a result, too */
} drawn;

static void draw(drawn *p, int seed)
{
    check_draws(seed);
    *p = (drawn){.n = 1 + below(MOST), .loop = below(3), .again = below(4) == 0, .donates = below(3) == 0};
    for (int k = 0; k < p->n; k++)
        p->shape[k] = below(SHAPES), p->number[k] = below(60);
}

/* Of the inner part, from all neighbours. */
static oly_array inner(oly_array x, double weight)
{
    oly_array across = oly_add(oly_slice(x, ":-2, 1:-1"), oly_slice(x, "2:, 1:-1")),
              along = oly_add(oly_slice(x, "1:-1, :-2"), oly_slice(x, "1:-1, 2:"));
    return oly_add(oly_mul(oly_slice(x, "1:-1, 1:-1"), 0.5), oly_mul(weight, oly_add(across, along)));
}

static oly_array framed(oly_array x, double value)
{
    static const int64_t one[] = {1, 1}, none[] = {0, 0};
    return oly_pad(x, value, one, one, none);
}

static void plus(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_update(in[0], "1:-1, 1:-1", inner(in[0], 0.25));
}

static void minus(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_update(in[0], "2:5, :", oly_mul(oly_slice(in[0], "4:7, :"), -0.5));
}

static oly_array apply(int shape, int number, oly_array x, oly_array y, oly_array *piece)
{
    double weight = number / 240.;
    oly_array out = NULL;
    switch (shape) {
    case INNER: return oly_update(x, "1:-1, 1:-1", *piece = inner(x, weight));
    case ROW: return oly_update(x, number % 2 ? "0, :" : ":, -1", oly_sin(oly_slice(x, number % 2 ? "3, :" : ":, 2")));
    case TWICE: /* the piece is read again */
        *piece = inner(y, weight);
        return oly_update(oly_add(x, framed(*piece, 0)), "1:-1, 1:-1", *piece);
    case JOINED:
        return oly_concatenate(0, oly_sin(oly_slice(x, ":9, :")), oly_mul(oly_slice(y, "9:40, :"), weight),
                               oly_slice(x, "40:, :"));
    case STACKED: return oly_sum(oly_stack(0, oly_cos(x), oly_mul(oly_roll(y, number, 1), 0.5)), OLY_AXES(0));
    case PADDED: return framed(inner(x, weight), 0.75);
    case GAPS: return oly_update(x, "::3, 1::2", oly_cos(oly_slice(y, "::3, 1::2")));
    case WIDE: return oly_update(x, "2:-2, :", oly_mul(oly_add(oly_slice(x, ":-4, :"), oly_slice(y, "4:, :")), 0.5));
    case SHIFTED:
        return oly_add(oly_mul(oly_roll(x, 1 + number % 3, 0), 0.5), oly_mul(oly_roll(y, -number % 5, 1), weight));
    case FLIPPED: return oly_add(oly_flip(x, number % 2), oly_mul(oly_roll(x, 1, 0), weight));
    case FRAMED: return oly_add(x, oly_mul(0.5, inner(framed(y, weight), weight)));
    case LOPSIDED: { /* more on one side, less than nothing on another */
        const int64_t lo[] = {2, 0}, hi[] = {1, 3}, away[] = {0, -1}, nothing[] = {0, 0};
        oly_array p = oly_pad(oly_pad(y, weight, lo, hi, NULL), 0.5, nothing, away, NULL);
        return oly_sub(oly_mul(oly_slice(p, "3:, 2:"), 0.5), oly_mul(oly_slice(p, ":-3, :-2"), weight));
    }
    case WRAPPED: { /* periodic along the first dimension, the second one between its ends */
        oly_array rows = oly_concatenate(0, oly_slice(y, "-1:, :"), y, oly_slice(y, ":1, :"));
        oly_array all = oly_concatenate(1, oly_slice(rows, ":, :1"), rows, oly_slice(rows, ":, -1:"));
        oly_array moved = oly_add(x, oly_mul(weight, inner(all, 0.125)));
        *piece = oly_slice(moved, "1:-1, 1:-1");
        return moved;
    }
    case NORM: { /* the product is reduced, what it is made of is read again */
        oly_array w = inner(framed(x, 0), weight);
        oly_array less = oly_sub(y, oly_mul(w, oly_div(1, oly_add(1000, oly_sum(oly_mul(x, w))))));
        *piece = oly_slice(less, "1:-1, 1:-1");
        return oly_add(x, oly_mul(less, 0.25));
    }
    case SPREAD: { /* elements between which there are gaps */
        const int64_t none[] = {0, 0}, between[] = {1, 0};
        oly_array p = oly_pad(oly_slice(y, "::2, :"), weight, none, none, between);
        return oly_add(x, oly_mul(0.5, oly_concatenate(0, oly_slice(p, "1:, :"), oly_slice(p, ":2, :"))));
    }
    case SUMMED: return oly_add(x, oly_mul(oly_mean(inner(y, weight)), 0.5));
    default: /* BRANCHED */ oly_cond(oly_gt(oly_sum(x), number), plus, minus, 1, &x, 1, &out, NULL); return out;
    }
}

static void iterate(oly_array *c, const drawn *p)
{
    oly_array piece = NULL, x = c[0];
    for (int k = 0; k < p->n; k++)
        x = apply(p->shape[k], p->number[k], x, c[1], &piece);
    c[1] = oly_mul(p->again && piece ? framed(piece, 0) : oly_sub(c[1], c[0]), 0.5);
    c[0] = x;
}

static void counted(oly_array i, oly_array *c, void *user)
{
    (void)i;
    iterate(c, user);
}

static oly_array goes_on(const oly_array *c, void *user)
{
    (void)user;
    return oly_lt(c[2], 3);
}

static void until(oly_array *c, void *user)
{
    iterate(c, user);
    c[2] = oly_add(c[2], 1);
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const drawn *p = user;
    oly_array c[] = {in[0], in[1], oly_astype(0, OLY_INT32)};
    if (p->loop == 0)
        iterate(c, p);
    else if (p->loop == 1)
        oly_fori(0, 3, counted, 2, c, user);
    else
        oly_while(goes_on, until, 3, c, user);
    out[0] = c[0], out[1] = c[1];
}

/* The values after a call whose results take the place of its inputs, if there are such. */
static void call_donated(drawn *p, const oly_array *in, float values[2][ROWS * COLUMNS])
{
    oly_array x = oly_mul(in[0], 1), y = oly_mul(in[1], 1);
    oly_fn f = oly_jit(run, 2, 2, .user = p);
    for (int times = 0; times < 2; times++)
        assert_int_equal(oly_call(f, OLY_IN(x, y), OLY_OUT(x, y)), OLY_OK);
    assert_int_equal(oly_process_allgather(x, values[0], sizeof values[0]), OLY_OK);
    assert_int_equal(oly_process_allgather(y, values[1], sizeof values[1]), OLY_OK);
}

/* Of the plan without this optimisation; -1: with all. */
static int count_of(const char *word, int optimisation, drawn *p, const oly_array *in)
{
    oly_optimisations before = oly_disable(optimisation < 0 ? 0 : (oly_optimisations)1 << optimisation);
    char *steps = check_steps(oly_jit(run, 2, 2, .user = p), 2, in);
    int n = check_count(steps, word);
    oly_disable(before);
    free(steps);
    return n;
}

static void drawn_programs(void **state)
{
    (void)state;
    int count = USUAL, seed = check_draws_wanted("DIRECT_PARTS", 1, &count), fewer = 0, split = 0;
    static const int passes[] = {OLY_OPTIMISATION_IN_PLACE_UPDATE, OLY_OPTIMISATION_STEP_SPLITTING};
    static pass_outcome with, without;
    static float taken[2][ROWS * COLUMNS], plain[2][ROWS * COLUMNS];
    static const char *const specs[] = {"x,y", "x", "None,x", "", "(x,y)", "y"};
    oly_init(NULL, NULL);
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    oly_direct_reads_least = 1;
    for (int k = 0; k < count; k++)
        OLY_SCOPE
        {
            drawn p;
            draw(&p, seed + k);
            oly_array all = oly_reshape(oly_arange(ROWS * COLUMNS, OLY_FLOAT32), ROWS, COLUMNS);
            oly_array in[] = {oly_device_put(oly_sin(all), oly_named(mesh, specs[k % 6])),
                              oly_device_put(oly_cos(all), oly_named(mesh, specs[k / 6 % 6]))};
            for (int o = 0; o < 2; o++) {
                compare_pass(passes[o], run, &p, in, 2, 2, &with, &without);
                if (!p.donates)
                    continue;
                call_donated(&p, in, taken);
                oly_optimisations before = oly_disable((oly_optimisations)1 << passes[o]);
                call_donated(&p, in, plain);
                oly_disable(before);
                assert_memory_equal(taken, plain, sizeof taken);
            }
            fewer += count_of(" copy ", -1, &p, in) < count_of(" copy ", OLY_OPTIMISATION_IN_PLACE_UPDATE, &p, in);
            split +=
                count_of("elementwise", -1, &p, in) > count_of("elementwise", OLY_OPTIMISATION_STEP_SPLITTING, &p, in);
        }
    assert_true(oly_process_count() > 1 || (fewer * 20 > count && split * 5 > count));
    oly_finalize();
}

/* What only steps inside a branch read, after a group that reads the block where it is, is still copied. */
typedef struct branching {
    oly_sharding whole;
    oly_array wide; /* the value that the branch reads */
} branching;

static void nothing(const oly_array *in, oly_array *out, void *user)
{
    const branching *b = user;
    (void)in;
    out[0] = oly_zeros_like(b->wide);
}

static void the_value(const oly_array *in, oly_array *out, void *user)
{
    const branching *b = user;
    (void)in;
    out[0] = b->wide;
}

static void branch_on_sum(const oly_array *in, oly_array *out, void *user)
{
    branching *b = user;
    oly_array part = oly_reshard(oly_slice(in[0], "1:, :, :"), b->whole);
    b->wide = oly_broadcast_to(part, oly_dim(part, 0), oly_dim(part, 1), 3);
    oly_array sum = oly_astype(oly_fmod(oly_sum(oly_astype(b->wide, OLY_FLOAT32)), 1), OLY_INT32);
    oly_cond(sum, nothing, the_value, OLY_IN(sum), 1, out, user);
}

/* Each device's block is one row; a column of all of them, and the rows of another value backwards, are put together. */
static void turn_all_but_one(const oly_array *in, oly_array *out, void *user)
{
    oly_sharding whole = *(const oly_sharding *)user;
    oly_array part = oly_reshard(oly_slice(oly_clip(in[0], 0, 99), "0:7, 0:3"), whole);
    out[0] = oly_update(oly_reshard(in[0], whole), "0:7, 2::-1", part);
}

static void columns_of_blocks_of_a_row_are_copied(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_direct_reads_least = 1;
    OLY_SCOPE
    {
        static int32_t got[7 * 4];
        int devices[] = {0, 4, 1, 5, 2, 6, 3, 7}, n = 8;
        const char *name = "x";
        oly_mesh mesh =
            oly_mesh_with_types(oly_mesh_from_devices(1, &name, &n, devices), (oly_axis_type[]){OLY_AXIS_EXPLICIT});
        oly_sharding whole = oly_named(mesh, "");
        oly_array x = oly_device_put(oly_reshape(oly_arange(7 * 4, OLY_INT32), 7, 4), oly_named(mesh, "x"));
        oly_array y = oly_apply(oly_jit(turn_all_but_one, 1, 1, .user = &whole), x);
        assert_int_equal(oly_process_allgather(y, got, sizeof got), OLY_OK);
        for (int k = 0; k < 7 * 4; k++)
            assert_int_equal(got[k], k % 4 == 3 ? k : k / 4 * 4 + 2 - k % 4);
    }
    oly_finalize();
}

/* Steps inside a loop may be numbered before those in front of it. */
static oly_array is_low(const oly_array *c, void *user)
{
    (void)user;
    return oly_lt(c[0], 3);
}

static void square_and_more(oly_array *c, void *user)
{
    oly_array x = *(const oly_array *)user;
    c[1] = oly_add(oly_mul(x, x), x);
    c[2] = c[0] = oly_add(c[0], 1);
}

static void loops_read_copies(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_direct_reads_least = 1;
    OLY_SCOPE
    {
        static float got[10];
        oly_array x = oly_device_put(oly_arange(10, OLY_FLOAT32), oly_named(oly_make_mesh("x=8,y=1"), "(y, x)"));
        oly_array y = oly_device_put(oly_zeros(OLY_FLOAT32, 10), oly_named(oly_make_mesh("x=4,y=2"), "x"));
        oly_array zero = oly_scalar(0, OLY_INT32), c[] = {zero, y, zero};
        oly_while(is_low, square_and_more, 3, c, &x);
        assert_int_equal(oly_process_allgather(c[1], got, sizeof got), OLY_OK);
        for (int k = 0; k < 10; k++)
            assert_true(got[k] == (float)(k * k + k));
    }
    oly_finalize();
}

static void branches_read_copies(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_direct_reads_least = 1;
    OLY_SCOPE
    {
        static int32_t got[9 * 13 * 3];
        oly_mesh mesh = oly_mesh_with_types(oly_make_mesh("x=8"), (oly_axis_type[]){OLY_AXIS_EXPLICIT});
        branching b = {.whole = oly_named(mesh, "")};
        oly_array x = oly_device_put(oly_reshape(oly_arange(10 * 13, OLY_INT32), 10, 13, 1), oly_named(mesh, "x"));
        oly_array y = oly_apply(oly_jit(branch_on_sum, 1, 1, .user = &b), x);
        assert_int_equal(oly_process_allgather(y, got, sizeof got), OLY_OK);
        for (int k = 0; k < 9 * 13 * 3; k++)
            assert_int_equal(got[k], 13 + k / 3);
    }
    oly_finalize();
}

/* A part of a reshaped array begins in one row of the array's copy and ends in another. */
static void part_of_reshaped(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = *(const oly_array *)user, part = oly_slice(oly_reshape(x, 4, 11, 1), "0, 0:11, 0:1");
    out[0] = oly_argmax(oly_ne(in[1], x), OLY_AXES(0));
    out[1] = oly_pad(part, 0, (int64_t[]){0, 2}, (int64_t[]){0, 1}, NULL);
}

static void parts_of_reshaped_copies_are_copied(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_direct_reads_least = 1;
    OLY_SCOPE
    {
        static int32_t got[11 * 4];
        oly_array zero = oly_device_put(oly_scalar(0, OLY_INT32), oly_named(oly_make_mesh("x=4,y=2"), ""));
        oly_array x = oly_reshape(oly_arange(11 * 4, OLY_INT32), 11, 4), out[2] = {NULL};
        x = oly_device_put(x, oly_named(oly_make_mesh("x=8,y=1"), ""));
        oly_call(oly_jit(part_of_reshaped, 2, 2, .user = &x), OLY_IN(zero, x), OLY_OUT(out[0], out[1]));
        assert_int_equal(oly_process_allgather(out[1], got, sizeof got), OLY_OK);
        for (int k = 0; k < 11 * 4; k++)
            assert_int_equal(got[k], k % 4 == 2 ? k / 4 : 0);
    }
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_reshaped_copies_are_copied),
                                       cmocka_unit_test(drawn_programs), cmocka_unit_test(branches_read_copies),
                                       cmocka_unit_test(columns_of_blocks_of_a_row_are_copied),
                                       cmocka_unit_test(loops_read_copies)};
    return CHECK_MAIN(tests);
}
