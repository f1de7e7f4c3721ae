/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Operands of products as what they are converted from: for random groups and products every element is found where the group would
 * have read it, or none is. */
#include "check.h"
#include "plan/schedule/narrow_reads.h"
#include <olympus.h>
#include <string.h>

enum { PROGRAMS = 20000, MOST = 4096, RANK = 5 };

static uint64_t seed = 1;

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Which element of the load is at each one of the store; -1: none. */
static int64_t source[MOST];

/* A box with a dense store, now and then with gaps, dimensions merged as far as the load's strides allow, or not. */
static void draw_group(oly_tile_box *box, oly_place *load, oly_place *store)
{
    int64_t next = 1, strides[RANK], taken = 0, to = 1;
    memset(box, 0, sizeof *box);
    box->rank = 1 + (int)draw(RANK);
    for (int d = box->rank - 1; d >= 0; d--) {
        box->extent[d] = 1 + draw(4);
        store->stride[d] = next;
        next *= box->extent[d] + (draw(6) == 0);
    }
    for (int d = 0; d < box->rank; d++) { /* in random order */
        int at;
        do
            at = (int)draw(box->rank);
        while (taken >> at & 1);
        taken |= 1 << at;
        strides[at] = draw(8) ? to : 0;
        to *= box->extent[at];
        load->stride[at] = draw(8) ? strides[at] : -strides[at];
    }
    for (int64_t x = 0; x < MOST; x++)
        source[x] = INT64_MIN;
    int64_t index[RANK] = {0};
    for (;;) {
        int64_t from = 0, at = 0;
        for (int d = 0; d < box->rank; d++)
            from += index[d] * load->stride[d], at += index[d] * store->stride[d];
        assert_true(at < MOST);
        source[at] = from;
        int d = box->rank - 1;
        while (d >= 0 && ++index[d] == box->extent[d])
            index[d--] = 0;
        if (d < 0)
            return;
    }
}

/* The loops of the product over an operand: batch, rows or columns, terms, outer ones. */
typedef struct loops {
    int n;
    int64_t extent[4 + RANK], stride[4 + RANK];
} loops;

static int64_t some_stride(const oly_tile_box *box, const oly_place *store)
{
    const int64_t s = store->stride[draw(box->rank)];
    return draw(10) == 0 ? 0 : draw(6) == 0 ? s * (1 + draw(3)) : s;
}

static loops loops_of(const oly_gemm_task *t, int o)
{
    loops l = {3,
               {t->batch, o == 0 ? t->m : t->n, t->k},
               {o == 0 ? t->a_batch : t->b_batch, o == 0 ? t->a_row : t->b_column, o == 0 ? t->a_column : t->b_row}};
    for (int k = 0; k < t->n_outer; k++, l.n++)
        l.extent[l.n] = t->outer[k], l.stride[l.n] = o == 0 ? t->a_outer[k] : t->b_outer[k];
    return l;
}

/* Are all elements of the product's loops where the store has what the load's loops read? */
static bool reads_the_same(const loops *wide, int64_t wide_offset, const loops *narrow, int64_t narrow_offset)
{
    int64_t index[4 + RANK] = {0};
    for (;;) {
        int64_t x = wide_offset, y = narrow_offset;
        for (int k = 0; k < wide->n; k++)
            x += index[k] * wide->stride[k], y += index[k] * narrow->stride[k];
        if (x < 0 || x >= MOST || source[x] != y)
            return false;
        int k = wide->n - 1;
        while (k >= 0 && ++index[k] == wide->extent[k])
            index[k--] = 0;
        if (k < 0)
            return true;
    }
}

static void elements_are_found(void **state)
{
    (void)state;
    int found = 0, displaced = 0, outer = 0;
    for (int n = 0; n < PROGRAMS; n++) {
        oly_place loads[2] = {{.base = 7}, {.base = 8}}, stores[2] = {{.base = 1, .offset = 64}, {.base = 2}};
        oly_tile_instruction convert[2] = {{.op = OLY_TILE_convert, .dtype = OLY_BFLOAT16, .to = OLY_FLOAT32},
                                           {.op = OLY_TILE_convert, .dtype = OLY_BFLOAT16, .to = OLY_FLOAT32}};
        const int which = (int)draw(2), o = (int)draw(2);
        oly_tile_work group = {.loads = loads, .stores = stores, .has_work = true};
        draw_group(&group.box, &loads[1 - which], &stores[which]);
        for (int k = 0; k < 2; k++) { /* store k is converted from load 1 - k */
            convert[k].out = 2 + k;
            convert[k].in[0] = 1 - k;
        }
        const oly_tile_program p = {.n_instructions = 2,
                                    .instructions = convert,
                                    .n_loads = 2,
                                    .n_stores = 2,
                                    .load_register = (const int16_t[]){0, 1},
                                    .load_dtype = (const uint8_t[]){OLY_BFLOAT16, OLY_BFLOAT16},
                                    .store_register = (const int16_t[]){2, 3},
                                    .store_dtype = (const uint8_t[]){OLY_FLOAT32, OLY_FLOAT32}};
        oly_gemm_work product = {.has_work = true};
        oly_gemm_task *t = &product.task;
        t->batch = 1 + draw(2), t->m = 1 + draw(4), t->n = 1 + draw(4), t->k = 1 + draw(4);
        t->n_outer = (int)draw(3);
        t->a_batch = some_stride(&group.box, &stores[which]);
        t->b_batch = some_stride(&group.box, &stores[which]);
        t->a_row = some_stride(&group.box, &stores[which]), t->b_column = some_stride(&group.box, &stores[which]);
        t->a_column = some_stride(&group.box, &stores[which]), t->b_row = some_stride(&group.box, &stores[which]);
        for (int k = 0; k < t->n_outer; k++) {
            t->outer[k] = 1 + draw(3);
            t->a_outer[k] = some_stride(&group.box, &stores[which]);
            t->b_outer[k] = some_stride(&group.box, &stores[which]);
        }
        const int64_t offset = draw(3) ? 0 : draw(20);
        *(o == 0 ? &product.a : &product.b) =
            (oly_place){.base = stores[which].base, .offset = stores[which].offset + 4 * offset};
        (o == 0 ? &product.b : &product.a)->base = 99;
        oly_gemm_task mapped = *t;
        oly_narrow_read read;
        if (!oly_read_narrow(&product, o, &p, &group, &mapped, &read))
            continue;
        const loops wide = loops_of(t, o), narrow = loops_of(&mapped, o);
        found++, displaced += offset > 0, outer += t->n_outer > 0;
        assert_int_equal(read.load, 1 - which);
        if (!reads_the_same(&wide, offset, &narrow, read.offset))
            fail_msg("program %d: other elements", n);
    }
    printf("%d of %d found, %d of them displaced, %d in outer loops\n", found, PROGRAMS, displaced, outer);
    assert_true(found > PROGRAMS / 20 && displaced > 100 && outer > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements_are_found)};
    return CHECK_MAIN(tests);
}
