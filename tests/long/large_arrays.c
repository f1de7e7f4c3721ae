/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays and messages of more than 2^31 elements: int8, values of a formula, so that any element can be checked. Moves between
 * shardings (one message of more than 2^31 bytes), halos, sums, a running maximum, positions, a file. Not part of `make test`.
 *
 * Run:    make long && launch/olyrun -n 2 -d 1 build/tests/long/large_arrays [FOLDER]     (15 GB of memory; the file: 2.2 GB)
 * Prints: a line for each check; exit status 1 when a value is wrong. */
#include <olympus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t n = (INT64_C(1) << 31) + 12345;
static int wrong;

static int8_t value_of(int64_t i)
{
    return (int8_t)(i % 101 - 50);
}

static oly_status fill(const oly_index_box *box, void *data, void *user)
{
    (void)user;
    int8_t *x = data;
    for (int64_t i = 0; i < box->extent[0]; i++)
        x[i] = value_of(box->start[0] + i);
    return OLY_OK;
}

static void check(const char *what, bool right)
{
    wrong += !right;
    if (oly_process_index() == 0 || !right)
        printf("%-8s %s (process %d)\n", right ? "ok" : "WRONG", what, oly_process_index());
    fflush(stdout);
}

/* Is element i of each shard here value_of(i - shift)? */
static bool shifted(oly_array x, int64_t shift)
{
    bool right = true;
    OLY_FOR_EACH_SHARD(s, x)
    {
        const int8_t *v = s.memory;
        for (int64_t i = 0; i < s.extent[0]; i++) {
            int64_t from = (s.start[0] + i - shift + n) % n;
            right = right && v[i] == value_of(from);
        }
    }
    return right;
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    char mesh_text[32], path[4096];
    snprintf(mesh_text, sizeof mesh_text, "i=%d", oly_device_count());
    snprintf(path, sizeof path, "%s/large.npy", argc > 1 ? argv[1] : "/tmp");
    oly_mesh mesh = oly_make_mesh(mesh_text);
    oly_sharding split = oly_named(mesh, "i"), whole = oly_named(mesh, "");
    oly_array x = oly_from_callback(split, OLY_INT8, 1, (int64_t[]){n}, fill, NULL);
    check("an array from a function", shifted(x, 0));
    OLY_SCOPE
    {
        check("a halo of 5 elements", shifted(oly_roll(x, 5, 0), 5));
        check("a shift by half of it", shifted(oly_roll(x, n / 2, 0), n / 2));
    }
    OLY_SCOPE
    {
        oly_array all = oly_device_put(x, whole);
        check("all of it on every device", shifted(all, 0));
        check("and split again", shifted(oly_device_put(all, split), 0));
    }
    int64_t tail = n % 101;
    OLY_SCOPE
    {
        check("a sum", (int64_t)oly_item(oly_sum(oly_astype(oly_ne(x, 0), OLY_INT32))) == n - n / 101 - (tail > 50));
        check("a largest element", oly_item(oly_max(x)) == 50);
        oly_array last = oly_slice(x, "-1:");
        check("the last element", oly_item(last) == value_of(n - 1));
        check("a running maximum", oly_item(oly_slice(oly_cummax(x, 0), "-1:")) == 50);
    }
    OLY_SCOPE
    {
        check("a file", oly_save_npy(path, x) == OLY_OK && shifted(oly_load_npy(path, split), 0));
        if (oly_process_index() == 0)
            remove(path);
    }
    int status = oly_finalize();
    return status ? status : wrong != 0;
}
