/* SPDX-License-Identifier: BSD-3-Clause */
/* See wrong_arguments.h. */
#include "wrong_arguments.h"
#include <limits.h>
#include <string.h>

wrong_values wrong;

/* A handle: valid, NULL, dead, of another kind. */
#define HANDLE(type, fine, gone, other)                                                                                \
    type give_##type(int pick)                                                                                         \
    {                                                                                                                  \
        return pick == FINE ? (fine) : pick == GONE ? (gone) : pick == OTHER_KIND ? (type)(other) : NULL;              \
    }
HANDLE(oly_array, wrong.array, wrong.gone_array, wrong.mesh)
HANDLE(oly_fn, wrong.function, wrong.gone_function, wrong.array)
HANDLE(oly_mesh, wrong.mesh, NULL, wrong.sharding)
HANDLE(oly_sharding, wrong.sharding, NULL, wrong.array)
HANDLE(oly_device, wrong.device, NULL, wrong.mesh)

/* One of five values. */
#define VALUE(type, name, ...)                                                                                         \
    type give_##name(int pick)                                                                                         \
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

const char *give_const_char_p(int pick)
{
    static char lengthy[5000];
    memset(lengthy, 'a', sizeof lengthy - 1);
    return pick == FINE         ? "i=1"
           : pick == NOT_GIVEN  ? NULL
           : pick == GONE       ? ""
           : pick == OTHER_KIND ? "?,;%Q{("
                                : lengthy;
}
char *give_char_p(int pick)
{
    return pick == FINE ? wrong.buffer : NULL;
}
void *give_void_p(int pick)
{
    return pick == FINE ? wrong.buffer : NULL;
}
const void *give_const_void_p(int pick)
{
    return give_void_p(pick);
}
FILE *give_FILE_p(int pick)
{
    return pick == FINE ? wrong.file : NULL;
}
oly_plan_costs *give_oly_plan_costs_p(int pick)
{
    static oly_plan_costs costs;
    return pick == FINE ? &costs : NULL;
}
oly_plan_cache *give_oly_plan_cache_p(int pick)
{
    static oly_plan_cache state;
    return pick == FINE ? &state : NULL;
}

oly_device_counts *give_oly_device_counts_p(int pick)
{
    static oly_device_counts counts;
    return pick == FINE ? &counts : NULL;
}

/* -- lists -------------------------------------------------------------------------------------------------------------- */

#define NUMBERS(type, name, one, another)                                                                              \
    const type *give_const_##name##_p(int pick)                                                                        \
    {                                                                                                                  \
        static type list[LIST];                                                                                        \
        for (int k = 0; k < LIST; k++)                                                                                 \
            list[k] = (type)(pick == FINE ? 1 : pick == GONE ? (one) : (another));                                     \
        return pick == NOT_GIVEN ? NULL : list;                                                                        \
    }
NUMBERS(int64_t, int64_t, INT64_MIN, INT64_MAX)
NUMBERS(int, int, INT_MIN, INT_MAX)
NUMBERS(oly_axis_type, oly_axis_type, -1, 99)

int64_t *give_int64_t_p(int pick)
{
    static int64_t numbers[LIST];
    return pick == FINE ? numbers : NULL;
}
const int (*give_pairs(int pick))[2]
{
    static int pairs[LIST][2];
    for (int k = 0; k < LIST; k++)
        pairs[k][0] = pairs[k][1] = pick == FINE ? 0 : pick == GONE ? INT_MIN : INT_MAX;
    return pick == NOT_GIVEN ? NULL : (const int(*)[2])pairs;
}
const int *const *give_const_int_p_const_p(int pick)
{
    static const int *lists[LIST];
    static const int end = -1, large[2] = {INT_MAX, -1};
    for (int k = 0; k < LIST; k++)
        lists[k] = pick == FINE ? &end : pick == GONE ? NULL : large;
    return pick == NOT_GIVEN ? NULL : lists;
}
const char *const *give_const_char_p_const_p(int pick)
{
    static const char *texts[LIST];
    for (int k = 0; k < LIST; k++)
        texts[k] = pick == FINE ? "i" : pick == GONE ? NULL : give_const_char_p(pick);
    return pick == NOT_GIVEN ? NULL : texts;
}
oly_array *give_oly_array_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        wrong.carries[k] = give_oly_array(pick == NONSENSE ? NOT_GIVEN : pick);
    return pick == NOT_GIVEN ? NULL : wrong.carries;
}
const oly_array *give_const_oly_array_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        wrong.arrays[k] = give_oly_array(pick == NONSENSE ? NOT_GIVEN : pick);
    return pick == NOT_GIVEN ? NULL : wrong.arrays;
}
oly_array *const *give_oly_array_p_const_p(int pick)
{
    for (int k = 0; k < LIST; k++) {
        wrong.carries[k] = NULL;
        wrong.places[k] = pick == FINE ? &wrong.carries[k] : NULL;
    }
    return pick == NOT_GIVEN ? NULL : wrong.places;
}
const oly_sharding *give_const_oly_sharding_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        wrong.shardings[k] = give_oly_sharding(pick);
    return pick == NOT_GIVEN ? NULL : wrong.shardings;
}
oly_operand give_oly_operand(int pick)
{
    oly_operand nonsense = {.kind = 'z'};
    return pick == NONSENSE ? nonsense : oly_operand_array(give_oly_array(pick));
}
const oly_operand *give_const_oly_operand_p(int pick)
{
    for (int k = 0; k < LIST; k++)
        wrong.operands[k] = pick == FINE ? oly_operand_int(0) : give_oly_operand(pick);
    return pick == NOT_GIVEN ? NULL : wrong.operands;
}

/* -- options ------------------------------------------------------------------------------------------------------------ */

oly_reduce_options give_oly_reduce_options(int pick)
{
    oly_reduce_options o[PICKS] = {[NOT_GIVEN] = {.n_axis_list = 3, .axes_given = true},
                                   [GONE] = {.n_axis_list = INT_MAX},
                                   [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)},
                                   [NONSENSE] = {.axes = "?", .ddof = INT_MIN}};
    return o[pick];
}
oly_product_options give_oly_product_options(int pick)
{
    oly_product_options o[PICKS] = {[NOT_GIVEN] = {.preferred_element_type = (oly_dtype)-1},
                                    [GONE] = {.preferred_element_type = (oly_dtype)99},
                                    [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)}};
    return o[pick];
}
oly_dot_options give_oly_dot_options(int pick)
{
    oly_dot_options o[PICKS] = {[NOT_GIVEN] = {.n_contracting = 1},
                                [GONE] = {.n_batch = INT_MAX},
                                [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)},
                                [NONSENSE] = {.contracting = "?;"}};
    return o[pick];
}
oly_conv_options give_oly_conv_options(int pick)
{
    oly_conv_options o[PICKS] = {[NOT_GIVEN] = {.n_list = INT_MAX, .stride_list = give_const_int64_t_p(FINE)},
                                 [GONE] = {.feature_group_count = INT64_MIN, .batch_group_count = INT64_MAX},
                                 [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)},
                                 [NONSENSE] = {.strides = "?", .dimension_numbers = "?"}};
    return o[pick];
}
oly_window_options give_oly_window_options(int pick)
{
    oly_window_options o[PICKS] = {[NOT_GIVEN] = {.n_list = INT_MAX, .window_list = give_const_int64_t_p(FINE)},
                                   [GONE] = {.n_list = -1, .window_list = give_const_int64_t_p(GONE)},
                                   [OTHER_KIND] = {.window = "?"},
                                   [NONSENSE] = {.window = "1, 1", .strides = "0, 0", .padding = "?"}};
    return o[pick];
}
oly_along_options give_oly_along_options(int pick)
{
    return (oly_along_options){.reverse = pick != FINE};
}
oly_at_options give_oly_at_options(int pick)
{
    oly_at_options o[PICKS] = {
        [OTHER_KIND] = {.out_sharding = give_oly_sharding(OTHER_KIND)}, [NONSENSE] = {.mode = "?"}};
    return o[pick];
}
oly_gather_options give_oly_gather_options(int pick)
{
    return (oly_gather_options){.axis = give_int(pick)};
}
oly_gradient_options give_oly_gradient_options(int pick)
{
    oly_gradient_options o[PICKS] = {[NOT_GIVEN] = {.n_argnum_list = INT_MAX, .argnum_list = give_const_int_p(FINE)},
                                     [GONE] = {.n_argnum_list = -1, .argnum_list = give_const_int_p(FINE)},
                                     [OTHER_KIND] = {.n_argnum_list = 1, .argnum_list = give_const_int_p(OTHER_KIND)},
                                     [NONSENSE] = {.argnums = "?"}};
    return o[pick];
}
const double *give_const_double_p(int pick)
{
    static const double values[4096] = {1, 2};
    return pick == FINE ? values : NULL;
}
double *give_double_p(int pick)
{
    static double values[4096];
    return pick == FINE ? values : NULL;
}
oly_frame_options give_oly_frame_options(int pick)
{
    oly_frame_options o[PICKS] = {[NOT_GIVEN] = {.number = -1},
                                  [GONE] = {.colours = give_const_char_p(NONSENSE)},
                                  [OTHER_KIND] = {.origin = give_const_char_p(OTHER_KIND), .low = 1},
                                  [NONSENSE] = {.largest = INT_MAX, .scale = -1}};
    return o[pick];
}
oly_progress_options give_oly_progress_options(int pick)
{
    return (oly_progress_options){.note = give_const_char_p(pick)};
}
oly_save_options give_oly_save_options(int pick)
{
    oly_save_options o[PICKS] = {[NOT_GIVEN] = {.step = -1},
                                 [GONE] = {.keep = INT_MIN},
                                 [OTHER_KIND] = {.n_values = INT_MAX, .values = give_const_int64_t_p(FINE)},
                                 [NONSENSE] = {.n_values = 2}};
    return o[pick];
}
oly_restore_options give_oly_restore_options(int pick)
{
    oly_restore_options o[PICKS] = {[NOT_GIVEN] = {.n_values = 2},
                                    [GONE] = {.only_step = give_const_int64_t_p(GONE)},
                                    [OTHER_KIND] = {.shardings = give_const_oly_sharding_p(OTHER_KIND)},
                                    [NONSENSE] = {.n_values = INT_MIN}};
    return o[pick];
}
oly_hdf5_options give_oly_hdf5_options(int pick)
{
    oly_hdf5_options o[PICKS] = {[NOT_GIVEN] = {.rows = -1},
                                 [GONE] = {.append = true, .rows = INT64_MAX},
                                 [OTHER_KIND] = {.chunks = give_const_int64_t_p(NOT_GIVEN)},
                                 [NONSENSE] = {.rows = 1, .fresh = true}};
    return o[pick];
}
oly_xdmf_options give_oly_xdmf_options(int pick)
{
    oly_xdmf_options o[PICKS] = {[NOT_GIVEN] = {.dimensions = -1}, [GONE] = {.times = give_const_char_p(NONSENSE)}};
    return o[pick];
}
oly_vti_options give_oly_vti_options(int pick)
{
    oly_vti_options o[PICKS] = {[NOT_GIVEN] = {.number = -1},
                                [GONE] = {.series = give_const_char_p(NONSENSE)},
                                [OTHER_KIND] = {.dimensions = INT_MAX},
                                [NONSENSE] = {.dimensions = -1, .time = -1e300}};
    return o[pick];
}
oly_jit_options give_oly_jit_options(int pick)
{
    oly_jit_options o[PICKS] = {[GONE] = {.name = give_const_char_p(NONSENSE)},
                                [OTHER_KIND] = {.in_shardings = give_const_oly_sharding_p(OTHER_KIND)},
                                [NONSENSE] = {.name = ""}};
    return o[pick];
}
oly_shard_map_options give_oly_shard_map_options(int pick)
{
    return (oly_shard_map_options){.axis_names = pick == NONSENSE ? "?" : NULL};
}
oly_npz_options give_oly_npz_options(int pick)
{
    return (oly_npz_options){.shardings = pick == FINE ? NULL : give_const_oly_sharding_p(pick)};
}
oly_csv_options give_oly_csv_options(int pick)
{
    return (oly_csv_options){.delimiter = give_const_char_p(pick == FINE ? NOT_GIVEN : pick),
                             .header_lines = pick == NONSENSE};
}
oly_raw_options give_oly_raw_options(int pick)
{
    return (oly_raw_options){.big_endian = pick != FINE, .fortran = pick == NONSENSE};
}
oly_broadcast_options give_oly_broadcast_options(int pick)
{
    return (oly_broadcast_options){.is_source = pick != FINE};
}
oly_hybrid_options give_oly_hybrid_options(int pick)
{
    return (oly_hybrid_options){.by_process = pick != FINE};
}
oly_callback_options give_oly_callback_options(int pick)
{
    oly_callback_options o[PICKS] = {
        [GONE] = {.pure = true}, [OTHER_KIND] = {.factors = "?"}, [NONSENSE] = {.whole = "?", .factors = "->"}};
    return o[pick];
}
oly_custom_options give_oly_custom_options(int pick)
{
    return (oly_custom_options){.name = pick == NONSENSE ? "" : NULL};
}
static int returns(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
    return 1;
}
oly_callback_function give_oly_callback_function(int pick)
{
    return pick == FINE ? returns : NULL;
}
static void computes_nothing(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
}
const oly_kernel *give_const_oly_kernel_p(int pick)
{
    static const oly_kernel kernels[PICKS] = {[FINE] = {.name = "nothing", .factors = "i->i", .cpu = computes_nothing},
                                              [GONE] = {.name = "nothing", .factors = "?", .cpu = computes_nothing},
                                              [OTHER_KIND] = {.name = "nothing", .cpu = computes_nothing},
                                              [NONSENSE] = {.factors = "i->i"}};
    return pick == NOT_GIVEN ? NULL : &kernels[pick];
}
const oly_result_type *give_const_oly_result_type_p(int pick)
{
    static const oly_result_type types[PICKS][20] = {[GONE] = {{OLY_FLOAT32, -1, {0}}},
                                                     [OTHER_KIND] = {{OLY_BOOL, 100, {0}}},
                                                     [NONSENSE] = {{(oly_dtype)1000, 1, {-5}}}};
    return pick == NOT_GIVEN ? NULL : types[pick];
}
oly_vmap_options give_oly_vmap_options(int pick)
{
    return (oly_vmap_options){.axis_name = pick == NONSENSE ? "?" : pick == GONE ? give_const_char_p(NONSENSE) : NULL};
}

/* -- functions ---------------------------------------------------------------------------------------------------------- */

void wrong_same(const oly_array *in, oly_array *out, void *user)
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
    out[0] = wrong.gone_array;
}
static void stores_a_mesh(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    out[0] = (oly_array)wrong.mesh;
}
oly_function give_oly_function(int pick)
{
    return pick == FINE         ? wrong_same
           : pick == NOT_GIVEN  ? NULL
           : pick == GONE       ? stores_what_is_gone
           : pick == OTHER_KIND ? stores_a_mesh
                                : stores_nothing;
}
const oly_function *give_const_oly_function_p(int pick)
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
    carry[0] = wrong.gone_array;
}
oly_loop_body give_oly_loop_body(int pick)
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
    return (oly_array)wrong.mesh;
}
oly_while_condition give_oly_while_condition(int pick)
{
    return pick == FINE ? never : pick == OTHER_KIND ? no_condition : NULL;
}
static void keep_while(oly_array *carry, void *user)
{
    (void)carry, (void)user;
}
oly_while_body give_oly_while_body(int pick)
{
    return pick == FINE ? keep_while : NULL;
}
static void keep_scan(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)carry, (void)user;
    y[0] = x[0];
}
oly_scan_body give_oly_scan_body(int pick)
{
    return pick == FINE ? keep_scan : NULL;
}
int *give_int_p(int pick)
{
    (void)pick;
    return NULL;
}
oly_index_box *give_oly_index_box_p(int pick)
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
    oly_add(wrong.gone_array, 1);
    return (oly_status)-1;
}
oly_shard_function give_oly_shard_function(int pick)
{
    return pick == FINE ? fill_nothing : pick == GONE ? fill_badly : NULL;
}
char ***give_char_p_p_p(int pick)
{
    (void)pick;
    return NULL;
}
