/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=4  Checkpoints of arrays of several types and uneven sizes, restored with other shardings: here in one session, and
 * for test_restore_ranks.sh, by which jobs of any number of ranks and devices read what jobs of any other wrote:
 *
 *     test_restore_ranks save FOLDER SEED          the seed chooses the shardings
 *     test_restore_ranks restore SEEDS FOLDER...   with SEEDS shardings each */
#include "check_files.h"
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

typedef struct kind {
    const char *name;
    oly_dtype dtype;
    int rank;
    int64_t shape[3];
    const char *specs[6]; /* over one axis, then over two */
} kind;
static const kind kinds[] = {
    {"matrix", OLY_FLOAT32, 2, {101, 37}, {"x, None", "None, x", "", "x, y", "(y,x), None", "None, y"}},
    {"volume",
     OLY_INT16,
     3,
     {3, 64, 17},
     {"None, x, None", "None, None, x", "x", "None, x, y", "y, (x)", "None, (x,y)"}},
    {"row", OLY_BFLOAT16, 1, {1031}, {"x", "", "x", "(x,y)", "y", "(y,x)"}},
    {"few", OLY_COMPLEX64, 2, {2, 3}, {"None, x", "x", "", "y, x", "x, y", ""}},
    {"none", OLY_UINT8, 2, {0, 5}, {"None, x", "x", "", "y, x", "x, y", ""}},
    {"scalar", OLY_INT32, 0, {0}, {"", "", "", "", "", ""}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint32_t mixed(uint32_t k)
{
    k = (k ^ k >> 16) * 0x45d9f3bu;
    return (k ^ k >> 16) * 0x45d9f3bu;
}

/* Every byte follows from the element's place in the array. */
static oly_status fill(const oly_index_box *box, void *memory, void *user)
{
    const kind *a = user;
    unsigned char *to = memory;
    size_t size = oly_dtype_size(a->dtype);
    int64_t n = 1;
    for (int d = 0; d < a->rank; d++)
        n *= box->extent[d];
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0, rest = k, weight = 1, place[3] = {0};
        for (int d = a->rank - 1; d >= 0; d--) {
            place[d] = box->start[d] + rest % box->extent[d];
            rest /= box->extent[d];
        }
        for (int d = a->rank - 1; d >= 0; d--) {
            at += place[d] * weight;
            weight *= a->shape[d];
        }
        for (size_t b = 0; b < size; b++)
            *to++ = (unsigned char)mixed((uint32_t)(at * 8 + (int64_t)b) + (uint32_t)(a - kinds) * 77777u);
    }
    return OLY_OK;
}

/* Over all devices, some of them, or a mesh of two axes. */
static oly_sharding sharding_of(int a, int seed)
{
    int n = oly_device_count(), way = (a + seed) % 3, some = n - seed % n;
    char axes[64];
    bool two = way == 1 && n % 2 == 0;
    if (two)
        snprintf(axes, sizeof axes, "x=%d, y=2", n / 2);
    else
        snprintf(axes, sizeof axes, "x=%d", way == 2 ? some : n);
    return oly_named(oly_make_mesh(axes), kinds[a].specs[3 * two + (a + seed / 3) % 3]);
}

static oly_status save(const char *folder, int seed)
{
    oly_array x[KINDS];
    const char *names[KINDS];
    for (int a = 0; a < KINDS; a++) {
        x[a] = oly_from_callback(sharding_of(a, seed), kinds[a].dtype, kinds[a].rank, kinds[a].shape, fill,
                                 (void *)(uintptr_t)&kinds[a]);
        names[a] = kinds[a].name;
    }
    return oly_save(folder, KINDS, names, KINDS, x, .step = 3);
}

static int wrong_shards(oly_array x, const kind *a)
{
    int wrong = 0;
    OLY_FOR_EACH_SHARD(s, x)
    {
        oly_index_box box = {.rank = a->rank};
        size_t bytes = oly_dtype_size(a->dtype);
        for (int d = 0; d < a->rank; d++) {
            box.start[d] = s.start[d];
            box.extent[d] = s.extent[d];
            bytes *= (size_t)s.extent[d];
        }
        unsigned char *wanted = malloc(bytes + 1);
        fill(&box, wanted, (void *)(uintptr_t)a);
        wrong += bytes > 0 && memcmp(wanted, s.memory, bytes) != 0;
        free(wanted);
    }
    return wrong;
}

/* Shards that are not what was saved. */
static int restore(const char *folder, int seed)
{
    oly_array x[KINDS] = {0}, *out[KINDS];
    oly_sharding wanted[KINDS];
    const char *names[KINDS];
    int wrong = 0;
    for (int a = 0; a < KINDS; a++) {
        wanted[a] = sharding_of(a, seed);
        names[a] = kinds[a].name;
        out[a] = &x[a];
    }
    if (oly_restore(folder, KINDS, names, KINDS, out, .shardings = wanted) != OLY_OK)
        return 1;
    for (int a = 0; a < KINDS; a++) {
        if (oly_sharding_of(x[a]) != wanted[a] || oly_dtype_of(x[a]) != kinds[a].dtype)
            wrong++;
        wrong += wrong_shards(x[a], &kinds[a]);
    }
    if (wrong)
        fprintf(stderr, "rank %d: %s, seed %d: %d shards are not what was saved\n", oly_process_index(), folder, seed,
                wrong);
    return wrong;
}

static void every_sharding_reads_every_other(void **state)
{
    (void)state;
    for (int from = 0; from < 6; from++) {
        assert_int_equal(save(check_files_folder(), from), OLY_OK);
        for (int to = 0; to < 6; to++)
            assert_int_equal(restore(check_files_folder(), to), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sharding_reads_every_other, check_files_set_up, check_files_tear_down)};
    if (argc < 4)
        return CHECK_MAIN(tests);
    int wrong = 0;
    oly_init(&argc, &argv);
    if (strcmp(argv[1], "save") == 0)
        wrong = save(argv[2], atoi(argv[3])) != OLY_OK;
    for (int k = 3; k < argc && strcmp(argv[1], "restore") == 0; k++)
        for (int seed = 0; seed < atoi(argv[2]); seed++)
            OLY_SCOPE
            {
                wrong += restore(argv[k], seed + 5 * k);
            }
    return oly_finalize() || wrong;
}
