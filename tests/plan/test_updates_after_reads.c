/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Updates of values that others read, too (plan/lower/in_place_updates.c): those that run after all other readers write into
 * the memory of what they update. Drawn programs, whose updates are computed from parts, rows, columns, sums, shifts, transposes and products
 * of the value, while other such readers come later, or are results, have the same bits as with copies; so do loops over them.
 *
 * UPDATES_AFTER_READS=seed:count runs others. */
#include "check_communication.h"
#include "check_draws.h"
#include "compare_pass.h"
#include <stdlib.h>

enum { ROWS = 48, COLUMNS = 40, MOST = 4, USUAL = 120 };

typedef struct drawn {
    int n, reader[MOST][2], writer[MOST], number[MOST],
        late[MOST]; /* late: a reader that the update does not depend on; -1: none */
    bool loops, nested;
} drawn;

enum { PART, ROW, COLUMN, SUM, LARGEST, SHIFT, TRANSPOSED, PRODUCT, LOOKED_UP, RAVELLED, WAVES, READERS };
enum { SLICE, DYNAMIC, SET_ROW, ADD_ROWS, ADD_COLUMN, WRITERS };

static void draw(drawn *p, int seed)
{
    check_draws(seed);
    *p = (drawn){.n = 1 + below(MOST), .loops = below(3) == 0, .nested = below(3) == 0};
    for (int k = 0; k < p->n; k++) {
        p->reader[k][0] = below(READERS);
        p->reader[k][1] = below(READERS);
        p->writer[k] = below(WRITERS);
        p->number[k] = below(30);
        p->late[k] = below(3) ? -1 : below(READERS);
    }
}

/* A row of COLUMNS elements that is computed from x. */
static oly_array read_from(int reader, int number, oly_array x)
{
    switch (reader) {
    case PART: return oly_ravel(oly_slice_in_dim(x, number, number + 1, 1, 0));
    case ROW: return oly_take(x, oly_mod(oly_astype(oly_sum(x), OLY_INT32), ROWS), 0, "clip");
    case COLUMN: return oly_slice_in_dim(oly_take(x, number, 1, "clip"), 4, 4 + COLUMNS, 1, 0);
    case SUM: return oly_sum(x, .axes = "0");
    case LARGEST: return oly_max(x, .axes = "0");
    case SHIFT: return oly_ravel(oly_slice_in_dim(oly_roll(x, 1, 0), number, number + 1, 1, 0));
    case TRANSPOSED: return oly_ravel(oly_slice_in_dim(oly_transpose(x, 1, 0), number, number + 1, 1, 0));
    case PRODUCT: return oly_matmul(oly_slice_in_dim(oly_take(x, number, 1, "clip"), 0, ROWS, 1, 0), x);
    case LOOKED_UP: return oly_take(oly_ravel(x), oly_arange(COLUMNS, OLY_INT32), 0, "clip");
    case RAVELLED: return oly_slice_in_dim(oly_ravel(x), 7 * number, 7 * number + COLUMNS, 1, 0);
    default: return oly_sum(oly_sin(oly_mul(x, 3)), .axes = "0");
    }
}

static oly_array row_of(int reader, int number, oly_array x)
{
    oly_array row = read_from(reader, number, x);
    if (oly_size(row) > COLUMNS)
        row = oly_slice_in_dim(row, 0, COLUMNS, 1, 0);
    return oly_sin(row); /* so that numbers stay small */
}

static oly_array write_into(int writer, int number, oly_array x, oly_array row)
{
    oly_array one = oly_expand_dims(row, 0);
    switch (writer) {
    case SLICE: return oly_update(x, "3:5", oly_broadcast_to(row, 2, COLUMNS));
    case DYNAMIC: return oly_dynamic_update_slice(x, one, OLY_INDEXES(number, 0));
    case SET_ROW: return oly_at_set(x, OLY_INDEXES(number), row);
    case ADD_ROWS: {
        oly_array rows = oly_mod(oly_mul(oly_arange(3, OLY_INT32), 1 + number), ROWS);
        return oly_at_add(x, OLY_INDEXES(rows), one);
    }
    default:
        return oly_dynamic_update_slice(x, oly_slice(oly_expand_dims(row, 1), ":30"), OLY_INDEXES(number % 10, number));
    }
}

static void iterate(oly_array *c, const drawn *p)
{
    oly_array x = oly_add(oly_mul(c[0], 0.5), 0.25), kept = c[1];
    for (int k = 0; k < p->n; k++) {
        int number = p->number[k];
        oly_array row = oly_add(row_of(p->reader[k][0], number, x), row_of(p->reader[k][1], number / 2, x)), old = x;
        x = write_into(p->writer[k], number, x, row);
        if (p->late[k] >= 0)
            kept = oly_add(kept, oly_mul(row_of(p->late[k], number, old), oly_sum(oly_slice(x, "3:5"))));
        if (k % 2)
            x = oly_sub(x, 0.125); /* computed again, and not the result of an update */
    }
    c[0] = x, c[1] = kept;
}

static void body(oly_array i, oly_array *c, void *user)
{
    (void)i;
    iterate(c, user);
}

static void around(oly_array i, oly_array *c, void *user)
{
    (void)i;
    oly_fori(0, 2, body, 2, c, user);
    iterate(c, user);
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const drawn *p = user;
    oly_array c[] = {in[0], in[1]};
    if (p->loops)
        oly_fori(0, 3, p->nested ? around : body, 2, c, user);
    else
        iterate(c, p);
    out[0] = c[0], out[1] = c[1];
}

static void drawn_programs(void **state)
{
    (void)state;
    int count = USUAL, seed = check_draws_wanted("UPDATES_AFTER_READS", 1, &count), less = 0;
    static pass_outcome with, without;
    static const char *const specs[] = {"x,y", "x", "None,x", "", "(x,y)", "y"};
    oly_init(NULL, NULL);
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    for (int k = 0; k < count; k++)
        OLY_SCOPE
        {
            drawn p;
            draw(&p, seed + k);
            oly_array all = oly_reshape(oly_arange(ROWS * COLUMNS, OLY_FLOAT32), ROWS, COLUMNS);
            oly_array in[] = {oly_device_put(oly_sin(all), oly_named(mesh, specs[k % 6])),
                              oly_zeros(OLY_FLOAT32, COLUMNS)};
            compare_pass(OLY_OPTIMISATION_IN_PLACE_UPDATE, run, &p, in, 2, 2, &with, &without);
            less += with.costs.scratch_bytes < without.costs.scratch_bytes;
        }
    assert_true(oly_process_count() > 1 || less * 5 > count);
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_programs)};
    return CHECK_MAIN(tests);
}
