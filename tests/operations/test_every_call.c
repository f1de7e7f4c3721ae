/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=1 timeout=300  Every public function with every kind of wrong argument: NULL, dead handles or
 * handles of another kind, numbers out of range, meaningless texts; before oly_init and after oly_finalize; with errors
 * returned and with errors that end the job. Nothing crashes, and messages name the function and the line. Callers are
 * generated from the headers (every_call.h). */
#include "check.h"
#include "core/error.h"
#include "core/handle.h"
#include <limits.h>
#include <olympus.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- values ------------------------------------------------------------------------------------------------------------
 * give_<type>(pick): with pick 0 a valid one, with others an invalid one. */
enum { FINE, NOT_GIVEN, GONE, OTHER_KIND, NONSENSE, PICKS, LIST = 64 };

static struct {
    oly_array array, gone_array;
    oly_fn function, gone_function;
    oly_mesh mesh;
    oly_sharding sharding;
    oly_device device;
    FILE *file;
    oly_array arrays[LIST], carries[LIST], *places[LIST];
    oly_operand operands[LIST];
    oly_sharding shardings[LIST];
    char buffer[4096];
} v;

/* A handle: valid, NULL, dead, of another kind. */
#define HANDLE(type, fine, gone, other)                                                                                \
    static type give_##type(int pick)                                                                                  \
    {                                                                                                                  \
        return pick == FINE ? (fine) : pick == GONE ? (gone) : pick == OTHER_KIND ? (type)(other) : NULL;              \
    }
HANDLE(oly_array, v.array, v.gone_array, v.mesh)
HANDLE(oly_fn, v.function, v.gone_function, v.array)
HANDLE(oly_mesh, v.mesh, NULL, v.sharding)
HANDLE(oly_sharding, v.sharding, NULL, v.array)
HANDLE(oly_device, v.device, NULL, v.mesh)

/* One of five values. */
#define VALUE(type, name, ...)                                                                                         \
    static type give_##name(int pick)                                                                                  \
    {                                                                                                                  \
        static const type values[PICKS] = {__VA_ARGS__};                                                               \
        return values[pick];                                                                                           \
    }
VALUE(int, int, 1, -1, INT_MIN, INT_MAX, 100)
VALUE(int, count, 1, -1, INT_MIN, 0, 0)
VALUE(int, rank, 1, -1, INT_MIN, INT_MAX, OLY_MAX_RANK + 1)
VALUE(int64_t, int64_t, 1, -1, INT64_MIN, INT64_MAX, INT64_C(1) << 50)
VALUE(size_t, size_t, 64, 0, 1, 0, 63)
VALUE(bool, bool, false, true, true, true, true)
VALUE(double, double, 1, -1e300, 1e300, 0, -0.0)
VALUE(oly_dtype, oly_dtype, OLY_FLOAT32, (oly_dtype)-1, (oly_dtype)99, OLY_N_DTYPES, OLY_COMPLEX64)
VALUE(oly_status, oly_status, OLY_OK, (oly_status)-1, (oly_status)99, OLY_N_STATUS, OLY_IO)
VALUE(oly_error_mode, oly_error_mode, OLY_ERRORS_RETURN, OLY_ERRORS_RETURN, OLY_ERRORS_RETURN, OLY_ERRORS_RETURN,
      OLY_ERRORS_RETURN)
VALUE(oly_explain_form, oly_explain_form, OLY_EXPLAIN_TEXT, (oly_explain_form)-1, (oly_explain_form)99,
      (oly_explain_form)3, OLY_EXPLAIN_JSON)

static const char *give_const_char_p(int pick)
{
    static char lengthy[5000];
    memset(lengthy, 'a', sizeof lengthy - 1);
    return pick == FINE         ? "i=1"
           : pick == NOT_GIVEN  ? NULL
           : pick == GONE       ? ""
           : pick == OTHER_KIND ? "?,;%Q{("
                                : lengthy;
}
static char *give_char_p(int pick)
{
    return pick == FINE ? v.buffer : NULL;
}
static void *give_void_p(int pick)
{
    return pick == FINE ? v.buffer : NULL;
}
static const void *give_const_void_p(int pick)
{
    return give_void_p(pick);
}
static FILE *give_FILE_p(int pick)
{
    return pick == FINE ? v.file : NULL;
}
static oly_plan_costs *give_oly_plan_costs_p(int pick)
{
    static oly_plan_costs costs;
    return pick == FINE ? &costs : NULL;
}
static oly_plan_cache *give_oly_plan_cache_p(int pick)
{
    static oly_plan_cache state;
    return pick == FINE ? &state : NULL;
}

/* -- lists -------------------------------------------------------------------------------------------------------------- */

#define NUMBERS(type, name, one, another)                                                                              \
    static const type *give_const_##name##_p(int pick)                                                                 \
    {                                                                                                                  \
        static type list[LIST];                                                                                        \
        for (int k = 0; k < LIST; k++)                                                                                 \
            list[k] = (type)(pick == FINE ? 1 : pick == GONE ? (one) : (another));                                     \
        return pick == NOT_GIVEN ? NULL : list;                                                                        \
    }
NUMBERS(int64_t, int64_t, INT64_MIN, INT64_MAX)
NUMBERS(int, int, INT_MIN, INT_MAX)
NUMBERS(oly_axis_type, oly_axis_type, -1, 99)

static int64_t *give_int64_t_p(int pick)
{
    static int64_t numbers[LIST];
    return pick == FINE ? numbers : NULL;
}
static const int (*give_pairs(int pick))[2]
{
    static int pairs[LIST][2];
    for (int k = 0; k < LIST; k++)
        pairs[k][0] = pairs[k][1] = pick == FINE ? 0 : pick == GONE ? INT_MIN : INT_MAX;
    return pick == NOT_GIVEN ? NULL : (const int(*)[2])pairs;
}
static const int *const *give_const_int_p_const_p(int pick)
{
    static const int *lists[LIST];
    static const int end = -1, large[2] = {INT_MAX, -1};
    for (int k = 0; k < LIST; k++)
        lists[k] = pick == FINE ? &end : pick == GONE ? NULL : large;
    return pick == NOT_GIVEN ? NULL : lists;
}
static const char *const *give_const_char_p_const_p(int pick)
{
    static const char *texts[LIST];
    for (int k = 0; k < LIST; k++)
        texts[k] = pick == FINE ? "i" : pick == GONE ? NULL : give_const_char_p(pick);
    return pick == NOT_GIVEN ? NULL : texts;
}
static oly_array *give_oly_array_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        v.carries[k] = give_oly_array(pick == NONSENSE ? NOT_GIVEN : pick);
    return pick == NOT_GIVEN ? NULL : v.carries;
}
static const oly_array *give_const_oly_array_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        v.arrays[k] = give_oly_array(pick == NONSENSE ? NOT_GIVEN : pick);
    return pick == NOT_GIVEN ? NULL : v.arrays;
}
static oly_array *const *give_oly_array_p_const_p(int pick)
{
    for (int k = 0; k < LIST; k++) {
        v.carries[k] = NULL;
        v.places[k] = pick == FINE ? &v.carries[k] : NULL;
    }
    return pick == NOT_GIVEN ? NULL : v.places;
}
static const oly_sharding *give_const_oly_sharding_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        v.shardings[k] = give_oly_sharding(pick);
    return pick == NOT_GIVEN ? NULL : v.shardings;
}
static oly_operand give_oly_operand(int pick)
{
    oly_operand wrong = {.kind = 'z'};
    return pick == NONSENSE ? wrong : oly_operand_array(give_oly_array(pick));
}
static const oly_operand *give_const_oly_operand_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        v.operands[k] = pick == FINE ? oly_operand_int(0) : give_oly_operand(pick);
    return pick == NOT_GIVEN ? NULL : v.operands;
}

/* -- options ------------------------------------------------------------------------------------------------------------ */

static oly_reduce_options give_oly_reduce_options(int pick)
{
    oly_reduce_options o[PICKS] = {[NOT_GIVEN] = {.n_axis_list = 3, .axes_given = true},
                                   [GONE] = {.n_axis_list = INT_MAX},
                                   [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)},
                                   [NONSENSE] = {.axes = "?", .ddof = INT_MIN}};
    return o[pick];
}
static oly_product_options give_oly_product_options(int pick)
{
    oly_product_options o[PICKS] = {[NOT_GIVEN] = {.preferred_element_type = (oly_dtype)-1},
                                    [GONE] = {.preferred_element_type = (oly_dtype)99},
                                    [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)}};
    return o[pick];
}
static oly_dot_options give_oly_dot_options(int pick)
{
    oly_dot_options o[PICKS] = {[NOT_GIVEN] = {.n_contracting = 1},
                                [GONE] = {.n_batch = INT_MAX},
                                [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)},
                                [NONSENSE] = {.contracting = "?;"}};
    return o[pick];
}
static oly_conv_options give_oly_conv_options(int pick)
{
    oly_conv_options o[PICKS] = {[NOT_GIVEN] = {.n_list = INT_MAX, .stride_list = give_const_int64_t_p(FINE)},
                                 [GONE] = {.feature_group_count = INT64_MIN, .batch_group_count = INT64_MAX},
                                 [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)},
                                 [NONSENSE] = {.strides = "?", .dimension_numbers = "?"}};
    return o[pick];
}
static oly_window_options give_oly_window_options(int pick)
{
    oly_window_options o[PICKS] = {[NOT_GIVEN] = {.n_list = INT_MAX, .window_list = give_const_int64_t_p(FINE)},
                                   [GONE] = {.n_list = -1, .window_list = give_const_int64_t_p(GONE)},
                                   [OTHER_KIND] = {.window = "?"},
                                   [NONSENSE] = {.window = "1, 1", .strides = "0, 0", .padding = "?"}};
    return o[pick];
}
static oly_along_options give_oly_along_options(int pick)
{
    return (oly_along_options){.reverse = pick != FINE};
}
static oly_at_options give_oly_at_options(int pick)
{
    oly_at_options o[PICKS] = {
        [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)}, [NONSENSE] = {.mode = "?"}};
    return o[pick];
}
static oly_gather_options give_oly_gather_options(int pick)
{
    return (oly_gather_options){.axis = give_int(pick)};
}
static oly_gradient_options give_oly_gradient_options(int pick)
{
    oly_gradient_options o[PICKS] = {[NOT_GIVEN] = {.n_argnum_list = INT_MAX, .argnum_list = give_const_int_p(FINE)},
                                     [GONE] = {.n_argnum_list = -1, .argnum_list = give_const_int_p(FINE)},
                                     [OTHER_KIND] = {.n_argnum_list = 1, .argnum_list = give_const_int_p(OTHER_KIND)},
                                     [NONSENSE] = {.argnums = "?"}};
    return o[pick];
}
static const double *give_const_double_p(int pick)
{
    static const double values[4096] = {1, 2};
    return pick == FINE ? values : NULL;
}
static double *give_double_p(int pick)
{
    static double values[4096];
    return pick == FINE ? values : NULL;
}
static oly_frame_options give_oly_frame_options(int pick)
{
    oly_frame_options o[PICKS] = {[NOT_GIVEN] = {.number = -1},
                                  [GONE] = {.colours = give_const_char_p(NONSENSE)},
                                  [OTHER_KIND] = {.origin = give_const_char_p(OTHER_KIND), .low = 1},
                                  [NONSENSE] = {.largest = INT_MAX, .scale = -1}};
    return o[pick];
}
static oly_progress_options give_oly_progress_options(int pick)
{
    return (oly_progress_options){.note = give_const_char_p(pick)};
}
static oly_save_options give_oly_save_options(int pick)
{
    oly_save_options o[PICKS] = {[NOT_GIVEN] = {.step = -1},
                                 [GONE] = {.keep = INT_MIN},
                                 [OTHER_KIND] = {.n_values = INT_MAX, .values = give_const_int64_t_p(FINE)},
                                 [NONSENSE] = {.n_values = 2}};
    return o[pick];
}
static oly_restore_options give_oly_restore_options(int pick)
{
    oly_restore_options o[PICKS] = {[NOT_GIVEN] = {.n_values = 2},
                                    [GONE] = {.only_step = give_const_int64_t_p(GONE)},
                                    [OTHER_KIND] = {.shardings = give_const_oly_sharding_p(OTHER_KIND)},
                                    [NONSENSE] = {.n_values = INT_MIN}};
    return o[pick];
}
static oly_hdf5_options give_oly_hdf5_options(int pick)
{
    oly_hdf5_options o[PICKS] = {[NOT_GIVEN] = {.rows = -1},
                                 [GONE] = {.append = true, .rows = INT64_MAX},
                                 [OTHER_KIND] = {.chunks = give_const_int64_t_p(NOT_GIVEN)},
                                 [NONSENSE] = {.rows = 1, .fresh = true}};
    return o[pick];
}
static oly_xdmf_options give_oly_xdmf_options(int pick)
{
    oly_xdmf_options o[PICKS] = {[NOT_GIVEN] = {.dimensions = -1}, [GONE] = {.times = give_const_char_p(NONSENSE)}};
    return o[pick];
}
static oly_vti_options give_oly_vti_options(int pick)
{
    oly_vti_options o[PICKS] = {[NOT_GIVEN] = {.number = -1},
                                [GONE] = {.series = give_const_char_p(NONSENSE)},
                                [OTHER_KIND] = {.dimensions = INT_MAX},
                                [NONSENSE] = {.dimensions = -1, .time = -1e300}};
    return o[pick];
}
static oly_jit_options give_oly_jit_options(int pick)
{
    oly_jit_options o[PICKS] = {[GONE] = {.name = give_const_char_p(NONSENSE)},
                                [OTHER_KIND] = {.in_shardings = give_const_oly_sharding_p(OTHER_KIND)},
                                [NONSENSE] = {.name = ""}};
    return o[pick];
}
static oly_shard_map_options give_oly_shard_map_options(int pick)
{
    return (oly_shard_map_options){.axis_names = pick == NONSENSE ? "?" : NULL};
}
static oly_npz_options give_oly_npz_options(int pick)
{
    return (oly_npz_options){.shardings = pick == FINE ? NULL : give_const_oly_sharding_p(pick)};
}
static oly_csv_options give_oly_csv_options(int pick)
{
    return (oly_csv_options){.delimiter = give_const_char_p(pick == FINE ? NOT_GIVEN : pick),
                             .header_lines = pick == NONSENSE};
}
static oly_raw_options give_oly_raw_options(int pick)
{
    return (oly_raw_options){.big_endian = pick != FINE, .fortran = pick == NONSENSE};
}
static oly_broadcast_options give_oly_broadcast_options(int pick)
{
    return (oly_broadcast_options){.is_source = pick != FINE};
}
static oly_hybrid_options give_oly_hybrid_options(int pick)
{
    return (oly_hybrid_options){.by_process = pick != FINE};
}
static oly_callback_options give_oly_callback_options(int pick)
{
    oly_callback_options o[PICKS] = {
        [GONE] = {.pure = true}, [OTHER_KIND] = {.factors = "?"}, [NONSENSE] = {.whole = "?", .factors = "->"}};
    return o[pick];
}
static oly_custom_options give_oly_custom_options(int pick)
{
    return (oly_custom_options){.name = pick == NONSENSE ? "" : NULL};
}
static int returns(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
    return 1;
}
static oly_callback_function give_oly_callback_function(int pick)
{
    return pick == FINE ? returns : NULL;
}
static void computes_nothing(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
}
static const oly_kernel *give_const_oly_kernel_p(int pick)
{
    static const oly_kernel kernels[PICKS] = {[FINE] = {.name = "nothing", .factors = "i->i", .cpu = computes_nothing},
                                              [GONE] = {.name = "nothing", .factors = "?", .cpu = computes_nothing},
                                              [OTHER_KIND] = {.name = "nothing", .cpu = computes_nothing},
                                              [NONSENSE] = {.factors = "i->i"}};
    return pick == NOT_GIVEN ? NULL : &kernels[pick];
}
static const oly_result_type *give_const_oly_result_type_p(int pick)
{
    static const oly_result_type types[PICKS][20] = {[GONE] = {{OLY_FLOAT32, -1, {0}}},
                                                     [OTHER_KIND] = {{OLY_BOOL, 100, {0}}},
                                                     [NONSENSE] = {{(oly_dtype)1000, 1, {-5}}}};
    return pick == NOT_GIVEN ? NULL : types[pick];
}
static oly_vmap_options give_oly_vmap_options(int pick)
{
    return (oly_vmap_options){.axis_name = pick == NONSENSE ? "?" : pick == GONE ? give_const_char_p(NONSENSE) : NULL};
}

/* -- functions ---------------------------------------------------------------------------------------------------------- */

static void same(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}
static void stores_nothing(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)out, (void)user;
}
static void stores_what_is_gone(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    out[0] = v.gone_array;
}
static void stores_a_mesh(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    out[0] = (oly_array)v.mesh;
}
static oly_function give_oly_function(int pick)
{
    return pick == FINE         ? same
           : pick == NOT_GIVEN  ? NULL
           : pick == GONE       ? stores_what_is_gone
           : pick == OTHER_KIND ? stores_a_mesh
                                : stores_nothing;
}
static const oly_function *give_const_oly_function_p(int pick)
{
    static oly_function list[LIST];
    for (int k = 0; k < LIST; k++)
        list[k] = give_oly_function(pick == NONSENSE ? NOT_GIVEN : pick);
    return pick == NOT_GIVEN ? NULL : list;
}
static void keep_carry(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)carry, (void)user;
}
static void lose_carry(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = v.gone_array;
}
static oly_loop_body give_oly_loop_body(int pick)
{
    return pick == FINE ? keep_carry : pick == GONE ? lose_carry : NULL;
}
static oly_array never(const oly_array *carry, void *user)
{
    (void)carry, (void)user;
    return oly_scalar(false, OLY_BOOL);
}
static oly_array no_condition(const oly_array *carry, void *user)
{
    (void)carry, (void)user;
    return (oly_array)v.mesh;
}
static oly_while_condition give_oly_while_condition(int pick)
{
    return pick == FINE ? never : pick == OTHER_KIND ? no_condition : NULL;
}
static void keep_while(oly_array *carry, void *user)
{
    (void)carry, (void)user;
}
static oly_while_body give_oly_while_body(int pick)
{
    return pick == FINE ? keep_while : NULL;
}
static void keep_scan(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)carry, (void)user;
    y[0] = x[0];
}
static oly_scan_body give_oly_scan_body(int pick)
{
    return pick == FINE ? keep_scan : NULL;
}

/* -- callers ------------------------------------------------------------------------------------------------------------ */

typedef struct caller {
    const char *name;
    void (*call)(const int *pick);
    int n;
    const char *kind[14]; /* of its parameters */
} caller;

static int *give_int_p(int pick)
{
    (void)pick;
    return NULL;
}
static oly_index_box *give_oly_index_box_p(int pick)
{
    static oly_index_box boxes[LIST];
    return pick == FINE ? boxes : NULL;
}
static oly_status fill_nothing(const oly_index_box *box, void *memory, void *user)
{
    (void)box, (void)memory, (void)user;
    return OLY_OK;
}
static oly_status fill_badly(const oly_index_box *box, void *memory, void *user)
{
    (void)box, (void)memory, (void)user;
    oly_add(v.gone_array, 1);
    return (oly_status)-1;
}
static oly_shard_function give_oly_shard_function(int pick)
{
    return pick == FINE ? fill_nothing : pick == GONE ? fill_badly : NULL;
}
static char ***give_char_p_p_p(int pick)
{
    (void)pick;
    return NULL;
}
#include "every_call.h"
enum { CALLERS = sizeof callers / sizeof *callers };

static bool among(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static const char *const at_any_time[] = {"oly_hdf5_available", "oly_range_push",
                                          "oly_range_pop",      "oly_progress_with",
                                          "oly_status_name",    "oly_status_text",
                                          "oly_simulated",      "oly_version",
                                          "oly_print_options",  "oly_set_error_mode",
                                          "oly_last_status",    "oly_last_error",
                                          "oly_clear_error",    "oly_dtype_name",
                                          "oly_dtype_size",     "oly_x64_enabled",
                                          "oly_promote_types",  "oly_explain_names",
                                          "oly_init",           "oly_distributed_initialize",
                                          "oly_init_comm",      NULL};
/* They start or end what this test needs, or read the error that it reads. */
static const char *const not_here[] = {"oly_init",
                                       "oly_distributed_initialize",
                                       "oly_init_comm",
                                       "oly_finalize",
                                       "oly_range_push",
                                       "oly_range_pop",
                                       "oly_progress_with",
                                       "oly_print_options",
                                       "oly_print_devices",
                                       "oly_last_status",
                                       "oly_last_error",
                                       "oly_clear_error",
                                       NULL};
/* "function parameter" where NULL is allowed. */
static const char *const null_is_fine[] = {"oly_keep 0",
                                           "oly_assign 1",
                                           "oly_free 0",
                                           "oly_set_default_device 0",
                                           "oly_set_mesh 0",
                                           "oly_typeof 0",
                                           "oly_device_str 0",
                                           "oly_mesh_str 0",
                                           "oly_sharding_str 0",
                                           "oly_spec_str 0",
                                           "oly_device_put 1",
                                           "oly_load_npy 1",
                                           "oly_load_raw_with 5",
                                           "oly_load_csv_with 2",
                                           "oly_arange_sharded 2",
                                           "oly_full_sharded 2",
                                           "oly_reshape_sharded_shape 1",
                                           "oly_broadcast_sharded_shape 1",
                                           "oly_broadcast_in_dim_sharded 1",
                                           "oly_random_choice_shape 3",
                                           "oly_random_choice_of_shape 4",
                                           NULL};

/* -- in a process of its own: crashes are detected, and all calls are tried ---------------------------------------- */

static const caller *now;
static char what[64];
static int complaints;

static void complain(const char *text)
{
    fprintf(stderr, "%s, %s: %s\n", now->name, what, text);
    complaints++;
}

/* The message begins with the function's name and a line of every_call.h; of functions recorded there, with one of this
 * file. */
static void check_message(void)
{
    const char *text = oly_last_error();
    char begin[96];
    snprintf(begin, sizeof begin, "%s (tests/every_call.h:", now->name);
    if (strncmp(text, begin, strlen(begin)) != 0 && !strstr(text, "(tests/operations/test_every_call.c:"))
        complain(text);
}

static void begin_call(void)
{
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_scope_open();
    v.array = oly_ones(OLY_FLOAT32, 4, 4);
    v.function = oly_jit(same, 1, 1);
    OLY_SCOPE
    {
        v.gone_array = oly_zeros(OLY_FLOAT32, 4);
        v.gone_function = oly_jit(same, 1, 1);
    }
    rewind(v.file);
    if (oly_kept_status() != OLY_OK)
        complain(oly_last_error());
}

static void end_call(void)
{
    oly_set_mesh(NULL);
    oly_set_default_device(NULL);
    oly_enable_x64(false);
    oly_scope_close();
    oly_clear_error();
}

static void start(void)
{
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    v.mesh = oly_make_mesh("i=1");
    v.sharding = oly_named(v.mesh, "i");
    v.device = oly_get_device(0);
}

static bool is_handle(const char *kind)
{
    return among(kind, (const char *const[]){"oly_array", "oly_fn", "oly_mesh", "oly_sharding", "oly_device",
                                             "oly_operand", NULL});
}

/* Is that an error whatever the other arguments? */
static bool must_fail(int parameter, int pick)
{
    char place[80];
    snprintf(place, sizeof place, "%s %d", now->name, parameter);
    return is_handle(now->kind[parameter]) &&
           (pick == OTHER_KIND || (pick == NOT_GIVEN && !among(place, null_is_fine)));
}

/* One wrong argument at a time; the first that crashes stays in failing[]. */
static bool go_through(int *failing)
{
    bool found = false;
    for (int k = 0; k < now->n; k++)
        for (int pick = 0; pick < PICKS; pick++) {
            int picks[14] = {0};
            if (pick == FINE && k > 0)
                continue;
            picks[k] = pick;
            snprintf(what, sizeof what, "parameter %d (%s), pick %d", k, now->kind[k], pick);
            begin_call();
            now->call(picks);
            oly_status st = oly_kept_status();
            if (st != OLY_OK)
                check_message();
            else if (must_fail(k, pick))
                complain("no error");
            if (st != OLY_OK && !found) {
                memcpy(failing, picks, sizeof picks);
                found = true;
            }
            end_call();
        }
    return found;
}

/* Checks the error while the library is not initialised. */
static void check_state(const char *text)
{
    int picks[14] = {0};
    snprintf(what, sizeof what, "%s", text);
    now->call(picks);
    if (oly_kept_status() != OLY_STATE)
        complain(oly_kept_status() == OLY_OK ? "no error" : oly_last_error());
    else
        check_message();
    oly_clear_error();
}

static int with_errors_returned(void)
{
    int failing[14];
    bool guarded = !among(now->name, at_any_time);
    atomic_store(&oly_life, OLY_BEFORE_INIT);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    if (guarded)
        check_state("before oly_init");
    start();
    if (!among(now->name, not_here))
        go_through(failing);
    begin_call();
    oly_finalize();
    if (guarded)
        check_state("after oly_finalize");
    return complaints > 0;
}

static int with_the_job_ended(void)
{
    int failing[14];
    start();
    if (among(now->name, not_here) || !go_through(failing))
        return 1; /* no error; that is fine here */
    begin_call();
    fprintf(stderr, "HERE ");
    oly_set_error_mode(OLY_ERRORS_ABORT);
    now->call(failing);
    fprintf(stderr, "went on\n");
    return 2;
}

static int before_init_with_the_job_ended(void)
{
    int picks[14] = {0};
    atomic_store(&oly_life, OLY_BEFORE_INIT);
    fprintf(stderr, "HERE ");
    now->call(picks);
    return 2;
}

/* -- the parent ---------------------------------------------------------------------------------------------------- */

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
static void crash(int number)
{
    dprintf(2, "%s, %s: signal %d\n", now->name, what, number);
    _exit(99);
}

/* Exit status of the function in a process of its own, and what it wrote to standard error. */
static int in_child(int (*function)(void), char *text, size_t size)
{
    int ends[2], status;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        dup2(ends[1], 1);
        close(ends[0]);
        for (int k = 0; k < (int)(sizeof fatal / sizeof *fatal); k++)
            signal(fatal[k], crash); /* replaces cmocka's handler, which continues with the next test */
        alarm(20);
        int result = function();
        fflush(NULL);
        _exit(result);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + n, size - 1 - n)) > 0 && n < size - 1;)
        n += (size_t)got;
    close(ends[0]);
    text[n] = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static bool wanted(const caller *c)
{
    const char *only = getenv("EVERY_CALL"); /* the name of a single function */
    return !only || strcmp(only, c->name) == 0;
}

static void nothing_wrong_crashes(void **state)
{
    static char text[1 << 16];
    int bad = 0;
    (void)state;
    for (int k = 0; k < CALLERS; k++) {
        now = &callers[k];
        int status = wanted(now) ? in_child(with_errors_returned, text, sizeof text) : 0;
        if (status != 0)
            print_message("%s: status %d\n%.4000s\n", now->name, status, text);
        bad += status != 0;
    }
    assert_int_equal(bad, 0);
}

static void ends_the_job(int (*function)(void), bool guarded_only)
{
    static char text[1 << 16];
    int bad = 0;
    for (int k = 0; k < CALLERS; k++) {
        char begin[96];
        now = &callers[k];
        if (!wanted(now) || (guarded_only && among(now->name, at_any_time)))
            continue;
        int status = in_child(function, text, sizeof text);
        const char *here = strstr(text, "HERE ");
        snprintf(begin, sizeof begin, "olympus: %s (tests/every_call.h:", now->name);
        bool fine = status == 1 &&
                    (!here || strncmp(here + 5, begin, strlen(begin)) == 0 || strstr(here, "test_every_call.c:"));
        if (!fine)
            print_message("%s: status %d\n%.2000s\n", now->name, status, text);
        bad += !fine;
    }
    assert_int_equal(bad, 0);
}

static void errors_end_the_job(void **state)
{
    (void)state;
    ends_the_job(with_the_job_ended, false);
}

static void calls_before_init_end_the_job(void **state)
{
    (void)state;
    ends_the_job(before_init_with_the_job_ended, true);
}

static int open_file(void **state)
{
    (void)state;
    setenv("OLYMPUS_NUM_THREADS", "1", 1);
    v.file = tmpfile();
    return v.file ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_wrong_crashes, open_file),
        cmocka_unit_test(errors_end_the_job),
        cmocka_unit_test(calls_before_init_end_the_job),
    };
    char folder[] = "/tmp/every_call.XXXXXX"; /* some calls write a file with the name they are passed */
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    int failed = CHECK_MAIN(tests);
    char command[64]; /* files and folders of checkpoints, all in this one */
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? failed : 1;
}
