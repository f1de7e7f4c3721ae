/* SPDX-License-Identifier: BSD-3-Clause */
/* Explicit sharding: over such axes the sharding of a value is part of its type. It can be queried at any time, also while a
 * function is traced; it follows from the operands' types, and nothing moves unless the program says so.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/explicit      (eight devices, on any number of ranks)
 * Prints: from process 0, types. */
#include <olympus.h>

/* Only process 0 prints. */
static FILE *audience;

static void doubled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_fprintf(audience, "type of x during tracing: %T\n", in[0]);
    out[0] = oly_add(in[0], in[0]);
}

static void add_arrays(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], in[1]);
    oly_fprintf(audience, "x sharding: %T\ny sharding: %T\nans sharding: %T\n", in[0], in[1], out[0]);
}

/* Rows of one times columns of the other: the type of the product shows it. */
static void multiply(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[0], in[1]);
    oly_fprintf(audience, "%T times %T is %T\n", in[0], in[1], out[0]);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    audience = oly_process_index() == 0 ? stdout : fopen("/dev/null", "w");
    if (oly_device_count() < 8) {
        fprintf(stderr,
                "explicit: %d devices; at least 8 are needed: launch/olyrun -n 2 -d 4 build/examples/explicit\n",
                oly_device_count());
        oly_finalize();
        return 1;
    }

    oly_array some_array = oly_arange(8, OLY_INT32);
    oly_fprintf(audience, "type of some_array: %T\n", some_array);
    oly_apply(oly_jit(doubled, 1, 1), some_array);

    oly_mesh mesh = oly_make_mesh("X=2:explicit, Y=4:explicit");
    oly_array replicated = oly_reshape(oly_arange(8, OLY_INT32), 4, 2);
    oly_array sharded = oly_device_put(replicated, oly_named(mesh, "X, None"));
    oly_fprintf(audience, "replicated_array type: %T\nsharded_array type: %T\n", replicated, sharded);

    oly_mesh before = oly_set_mesh(mesh); /* bare specs are over this mesh now */
    oly_array column = oly_device_put(oly_reshape(oly_arange(4, OLY_INT32), 4, 1), oly_P("X, None"));
    oly_array row = oly_device_put(oly_reshape(oly_arange(8, OLY_INT32), 1, 8), oly_P("None, Y"));
    oly_array sum = oly_apply(oly_jit(add_arrays, 2, 1), column, row);
    oly_fprintf(audience, "%A\n", oly_device_put(sum, oly_P("")));

    oly_array product =
        oly_apply(oly_jit(multiply, 2, 1), oly_astype(column, OLY_FLOAT32), oly_astype(row, OLY_FLOAT32));
    oly_fprintf(audience, "resharded: %T\n", oly_reshard(product, oly_P("Y, X")));

    /* Where JAX's rules are ambiguous, an error says what to do. */
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_add(sum, oly_reshard(sum, oly_P("Y, X")));
    oly_fprintf(audience, "%s\n", oly_last_status() == OLY_SHARDING ? "x + y.T: refused" : "x + y.T: accepted");
    oly_clear_error();
    oly_set_mesh(before);
    return oly_finalize();
}
