/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments for every parameter type of the public functions: a valid one and four invalid ones. test_every_call.c draws them by the
 * names that its generated callers use: give_<type>(pick). */
#ifndef WRONG_ARGUMENTS_H
#define WRONG_ARGUMENTS_H
#include <olympus.h>
#include <stdio.h>

/* Which: a valid one; NULL; a dead handle; a handle of another kind; nonsense. Lists have LIST entries. */
enum { FINE, NOT_GIVEN, GONE, OTHER_KIND, NONSENSE, PICKS, LIST = 64 };

/* What arguments are drawn from; the caller fills the handles and the file. */
typedef struct wrong_values {
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
} wrong_values;
extern wrong_values wrong;

/* A function that returns its argument: a valid one to record. */
void wrong_same(const oly_array *in, oly_array *out, void *user);

const char *give_const_char_p(int pick);
char *give_char_p(int pick);
void *give_void_p(int pick);
const void *give_const_void_p(int pick);
FILE *give_FILE_p(int pick);
oly_plan_costs *give_oly_plan_costs_p(int pick);
oly_plan_cache *give_oly_plan_cache_p(int pick);
oly_device_counts *give_oly_device_counts_p(int pick);
int64_t *give_int64_t_p(int pick);
const int (*give_pairs(int pick))[2];
const int *const *give_const_int_p_const_p(int pick);
const char *const *give_const_char_p_const_p(int pick);
oly_array *give_oly_array_p(int pick);
const oly_array *give_const_oly_array_p(int pick);
oly_array *const *give_oly_array_p_const_p(int pick);
const oly_sharding *give_const_oly_sharding_p(int pick);
oly_operand give_oly_operand(int pick);
const oly_operand *give_const_oly_operand_p(int pick);
oly_reduce_options give_oly_reduce_options(int pick);
oly_product_options give_oly_product_options(int pick);
oly_dot_options give_oly_dot_options(int pick);
oly_conv_options give_oly_conv_options(int pick);
oly_window_options give_oly_window_options(int pick);
oly_along_options give_oly_along_options(int pick);
oly_at_options give_oly_at_options(int pick);
oly_gather_options give_oly_gather_options(int pick);
oly_gradient_options give_oly_gradient_options(int pick);
const double *give_const_double_p(int pick);
double *give_double_p(int pick);
oly_frame_options give_oly_frame_options(int pick);
oly_progress_options give_oly_progress_options(int pick);
oly_save_options give_oly_save_options(int pick);
oly_restore_options give_oly_restore_options(int pick);
oly_hdf5_options give_oly_hdf5_options(int pick);
oly_xdmf_options give_oly_xdmf_options(int pick);
oly_vti_options give_oly_vti_options(int pick);
oly_jit_options give_oly_jit_options(int pick);
oly_shard_map_options give_oly_shard_map_options(int pick);
oly_npz_options give_oly_npz_options(int pick);
oly_csv_options give_oly_csv_options(int pick);
oly_raw_options give_oly_raw_options(int pick);
oly_broadcast_options give_oly_broadcast_options(int pick);
oly_hybrid_options give_oly_hybrid_options(int pick);
oly_callback_options give_oly_callback_options(int pick);
oly_custom_options give_oly_custom_options(int pick);
oly_callback_function give_oly_callback_function(int pick);
const oly_kernel *give_const_oly_kernel_p(int pick);
const oly_result_type *give_const_oly_result_type_p(int pick);
oly_vmap_options give_oly_vmap_options(int pick);
oly_function give_oly_function(int pick);
const oly_function *give_const_oly_function_p(int pick);
oly_loop_body give_oly_loop_body(int pick);
oly_while_condition give_oly_while_condition(int pick);
oly_while_body give_oly_while_body(int pick);
oly_scan_body give_oly_scan_body(int pick);
int *give_int_p(int pick);
oly_index_box *give_oly_index_box_p(int pick);
oly_shard_function give_oly_shard_function(int pick);
char ***give_char_p_p_p(int pick);
oly_array give_oly_array(int pick);
oly_fn give_oly_fn(int pick);
oly_mesh give_oly_mesh(int pick);
oly_sharding give_oly_sharding(int pick);
oly_device give_oly_device(int pick);
int give_int(int pick);
int give_count(int pick);
int give_rank(int pick);
int64_t give_int64_t(int pick);
size_t give_size_t(int pick);
bool give_bool(int pick);
double give_double(int pick);
oly_dtype give_oly_dtype(int pick);
oly_status give_oly_status(int pick);
oly_error_mode give_oly_error_mode(int pick);
oly_explain_form give_oly_explain_form(int pick);
const int64_t *give_const_int64_t_p(int pick);
const int *give_const_int_p(int pick);
const oly_axis_type *give_const_oly_axis_type_p(int pick);

#endif
