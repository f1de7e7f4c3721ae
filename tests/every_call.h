/* A caller of every public function: what test_every_call.c goes through. Made by tests/make-every-call; do not edit. */
/* clang-format off */
static void call_oly_dtype_name(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dtype_name)(give_oly_dtype(pick[0]));
}
static void call_oly_dtype_size(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dtype_size)(give_oly_dtype(pick[0]));
}
static void call_oly_enable_x64(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_enable_x64)(give_bool(pick[0]));
}
static void call_oly_x64_enabled(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_x64_enabled)();
}
static void call_oly_promote_types(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_promote_types)(give_oly_dtype(pick[0]), give_oly_dtype(pick[1]));
}
static void call_oly_rank(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_rank)(give_oly_array(pick[0]));
}
static void call_oly_dim(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dim)(give_oly_array(pick[0]), give_int(pick[1]));
}
static void call_oly_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_shape)(give_oly_array(pick[0]));
}
static void call_oly_size(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_size)(give_oly_array(pick[0]));
}
static void call_oly_dtype_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dtype_of)(give_oly_array(pick[0]));
}
static void call_oly_sharding_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sharding_of)(give_oly_array(pick[0]));
}
static void call_oly_is_committed(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_is_committed)(give_oly_array(pick[0]));
}
static void call_oly_is_fully_addressable(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_is_fully_addressable)(give_oly_array(pick[0]));
}
static void call_oly_typeof(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_typeof)(give_oly_array(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_from_host(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_from_host)(give_const_void_p(pick[0]), give_oly_dtype(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_device_put(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_put)(give_oly_array(pick[0]), give_oly_sharding(pick[1]));
}
static void call_oly_from_local(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_from_local)(give_oly_sharding(pick[0]), give_oly_dtype(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]), give_const_void_p(pick[4]), give_const_int64_t_p(pick[5]));
}
static void call_oly_from_shards(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_from_shards)(give_oly_sharding(pick[0]), give_oly_dtype(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]), give_count(pick[4]), give_const_oly_array_p(pick[5]));
}
static void call_oly_block_until_ready(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_block_until_ready)(give_oly_array(pick[0]));
}
static void call_oly_get(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_get)(give_oly_array(pick[0]), give_void_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_item(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_item)(give_oly_array(pick[0]));
}
static void call_oly_process_allgather(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_process_allgather)(give_oly_array(pick[0]), give_void_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_sync(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sync)(give_const_char_p(pick[0]));
}
static void call_oly_shard_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_shard_count)(give_oly_array(pick[0]));
}
static void call_oly_get_shard(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_get_shard)(give_oly_array(pick[0]), give_int(pick[1]));
}
static void call_oly_printf(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_printf)(give_const_char_p(pick[0]));
}
static void call_oly_fprintf(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_fprintf)(give_FILE_p(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_array_str(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_array_str)(give_oly_array(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_array_repr(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_array_repr)(give_oly_array(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_visualize(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_visualize)(give_FILE_p(pick[0]), give_oly_array(pick[1]));
}
static void call_oly_visualize_sharding(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_visualize_sharding)(give_FILE_p(pick[0]), give_oly_sharding(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_write_png(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_write_png)(give_const_char_p(pick[0]), give_oly_array(pick[1]), give_double(pick[2]), give_double(pick[3]));
}
static void call_oly_status_name(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_status_name)(give_oly_status(pick[0]));
}
static void call_oly_status_text(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_status_text)(give_oly_status(pick[0]));
}
static void call_oly_init(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_init)(give_int_p(pick[0]), give_char_p_p_p(pick[1]));
}
static void call_oly_finalize(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_finalize)();
}
static void call_oly_process_index(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_process_index)();
}
static void call_oly_process_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_process_count)();
}
static void call_oly_simulated(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_simulated)();
}
static void call_oly_version(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_version)();
}
static void call_oly_print_options(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_print_options)();
}
static void call_oly_set_error_mode(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_set_error_mode)(give_oly_error_mode(pick[0]));
}
static void call_oly_last_status(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_last_status)();
}
static void call_oly_last_error(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_last_error)();
}
static void call_oly_clear_error(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_clear_error)();
}
static void call_oly_scope_open(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_scope_open)();
}
static void call_oly_scope_close(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_scope_close)();
}
static void call_oly_keep(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_keep)(give_oly_array(pick[0]));
}
static void call_oly_assign(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_assign)(give_oly_array_p(pick[0]), give_oly_array(pick[1]));
}
static void call_oly_free(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_free)(give_oly_array(pick[0]));
}
static void call_oly_matmul_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_matmul_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_product_options(pick[2]));
}
static void call_oly_dot_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dot_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_product_options(pick[2]));
}
static void call_oly_inner_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_inner_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_product_options(pick[2]));
}
static void call_oly_outer_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_outer_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_product_options(pick[2]));
}
static void call_oly_vdot_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_vdot_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_product_options(pick[2]));
}
static void call_oly_tensordot_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_tensordot_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_int(pick[2]), give_oly_product_options(pick[3]));
}
static void call_oly_dot_general_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dot_general_with)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_dot_options(pick[2]));
}
static void call_oly_einsum_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_einsum_with)(give_const_char_p(pick[0]), give_count(pick[1]), give_const_oly_array_p(pick[2]), give_oly_product_options(pick[3]));
}
static void call_oly_conv_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_conv_with)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_oly_conv_options(pick[2]));
}
static void call_oly_convolve_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_convolve_with)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_const_char_p(pick[2]), give_oly_product_options(pick[3]));
}
static void call_oly_correlate_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_correlate_with)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_const_char_p(pick[2]), give_oly_product_options(pick[3]));
}
static void call_oly_reduce_window_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_reduce_window_with)(give_oly_array(pick[0]), give_const_char_p(pick[1]), give_oly_window_options(pick[2]));
}
static void call_oly_avg_pool_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_avg_pool_with)(give_oly_array(pick[0]), give_oly_window_options(pick[1]));
}
static void call_oly_grad_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_grad_with)(give_oly_fn(pick[0]), give_oly_gradient_options(pick[1]));
}
static void call_oly_value_and_grad_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_value_and_grad_with)(give_oly_fn(pick[0]), give_oly_gradient_options(pick[1]));
}
static void call_oly_vjp_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_vjp_with)(give_oly_fn(pick[0]), give_oly_gradient_options(pick[1]));
}
static void call_oly_jvp_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_jvp_with)(give_oly_fn(pick[0]), give_oly_gradient_options(pick[1]));
}
static void call_oly_gradients_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_gradients_n)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_array_p(pick[2]), give_count(pick[3]), give_oly_array_p_const_p(pick[4]));
}
static void call_oly_stop_gradient(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_stop_gradient)(give_oly_operand(pick[0]));
}
static void call_oly_checkpoint(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_checkpoint)(give_oly_fn(pick[0]));
}
static void call_oly_sort_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sort_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_argsort_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_argsort_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_sort_together(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sort_together)(give_count(pick[0]), give_const_oly_array_p(pick[1]), give_int(pick[2]), give_int(pick[3]), give_oly_array_p(pick[4]));
}
static void call_oly_top_k(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_top_k)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_oly_array_p(pick[2]), give_oly_array_p(pick[3]));
}
static void call_oly_searchsorted(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_searchsorted)(give_oly_array(pick[0]), give_oly_operand(pick[1]), give_const_char_p(pick[2]));
}
static void call_oly_cumsum_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cumsum_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_cumprod_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cumprod_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_cummax_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cummax_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_cummin_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cummin_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_cumlogsumexp_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cumlogsumexp_with)(give_oly_operand(pick[0]), give_int(pick[1]), give_oly_along_options(pick[2]));
}
static void call_oly_argmax_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_argmax_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_argmin_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_argmin_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_take(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_take)(give_oly_array(pick[0]), give_oly_operand(pick[1]), give_int(pick[2]), give_const_char_p(pick[3]));
}
static void call_oly_take_along_axis(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_take_along_axis)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_int(pick[2]), give_const_char_p(pick[3]));
}
static void call_oly_at_get_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_at_get_with)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_oly_at_options(pick[3]));
}
static void call_oly_at_set_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_at_set_with)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_oly_operand(pick[3]), give_oly_at_options(pick[4]));
}
static void call_oly_at_add_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_at_add_with)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_oly_operand(pick[3]), give_oly_at_options(pick[4]));
}
static void call_oly_at_mul_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_at_mul_with)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_oly_operand(pick[3]), give_oly_at_options(pick[4]));
}
static void call_oly_at_min_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_at_min_with)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_oly_operand(pick[3]), give_oly_at_options(pick[4]));
}
static void call_oly_at_max_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_at_max_with)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_oly_operand(pick[3]), give_oly_at_options(pick[4]));
}
static void call_oly_segment_sum(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_segment_sum)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_int64_t(pick[2]));
}
static void call_oly_bincount(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_bincount)(give_oly_array(pick[0]), give_int64_t(pick[1]));
}
static void call_oly_dynamic_slice(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dynamic_slice)(give_oly_array(pick[0]), give_count(pick[1]), give_const_oly_operand_p(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_dynamic_update_slice(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_dynamic_update_slice)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_count(pick[2]), give_const_oly_operand_p(pick[3]));
}
static void call_oly_shard_map_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_shard_map_with)(give_oly_function(pick[0]), give_const_char_p(pick[1]), give_void_p(pick[2]), give_oly_mesh(pick[3]), give_oly_shard_map_options(pick[4]), give_count(pick[5]), give_const_oly_array_p(pick[6]), give_const_char_p_const_p(pick[7]), give_count(pick[8]), give_oly_array_p_const_p(pick[9]), give_const_char_p_const_p(pick[10]));
}
static void call_oly_psum(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_psum)(give_oly_operand(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_pmean(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pmean)(give_oly_operand(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_pmax(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pmax)(give_oly_operand(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_pmin(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pmin)(give_oly_operand(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_all_gather_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_all_gather_with)(give_oly_array(pick[0]), give_const_char_p(pick[1]), give_oly_gather_options(pick[2]));
}
static void call_oly_psum_scatter_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_psum_scatter_with)(give_oly_array(pick[0]), give_const_char_p(pick[1]), give_oly_gather_options(pick[2]));
}
static void call_oly_all_to_all(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_all_to_all)(give_oly_array(pick[0]), give_const_char_p(pick[1]), give_int(pick[2]), give_int(pick[3]), give_bool(pick[4]));
}
static void call_oly_ppermute(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_ppermute)(give_oly_array(pick[0]), give_const_char_p(pick[1]), give_count(pick[2]), give_pairs(pick[3]));
}
static void call_oly_axis_index(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_axis_index)(give_const_char_p(pick[0]));
}
static void call_oly_axis_size(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_axis_size)(give_const_char_p(pick[0]));
}
static void call_oly_pvary(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pvary)(give_oly_array(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_vmap_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_vmap_with)(give_oly_function(pick[0]), give_const_char_p(pick[1]), give_void_p(pick[2]), give_oly_vmap_options(pick[3]), give_count(pick[4]), give_const_oly_array_p(pick[5]), give_const_int_p(pick[6]), give_count(pick[7]), give_oly_array_p_const_p(pick[8]), give_const_int_p(pick[9]));
}
static void call_oly_tan(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_tan)(give_oly_operand(pick[0]));
}
static void call_oly_asin(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_asin)(give_oly_operand(pick[0]));
}
static void call_oly_acos(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_acos)(give_oly_operand(pick[0]));
}
static void call_oly_atan(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_atan)(give_oly_operand(pick[0]));
}
static void call_oly_sinh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sinh)(give_oly_operand(pick[0]));
}
static void call_oly_cosh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cosh)(give_oly_operand(pick[0]));
}
static void call_oly_asinh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_asinh)(give_oly_operand(pick[0]));
}
static void call_oly_acosh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_acosh)(give_oly_operand(pick[0]));
}
static void call_oly_atanh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_atanh)(give_oly_operand(pick[0]));
}
static void call_oly_exp2(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_exp2)(give_oly_operand(pick[0]));
}
static void call_oly_expm1(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_expm1)(give_oly_operand(pick[0]));
}
static void call_oly_log1p(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_log1p)(give_oly_operand(pick[0]));
}
static void call_oly_log2(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_log2)(give_oly_operand(pick[0]));
}
static void call_oly_log10(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_log10)(give_oly_operand(pick[0]));
}
static void call_oly_rsqrt(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_rsqrt)(give_oly_operand(pick[0]));
}
static void call_oly_cbrt(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cbrt)(give_oly_operand(pick[0]));
}
static void call_oly_square(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_square)(give_oly_operand(pick[0]));
}
static void call_oly_reciprocal(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_reciprocal)(give_oly_operand(pick[0]));
}
static void call_oly_erf(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_erf)(give_oly_operand(pick[0]));
}
static void call_oly_erfc(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_erfc)(give_oly_operand(pick[0]));
}
static void call_oly_erf_inv(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_erf_inv)(give_oly_operand(pick[0]));
}
static void call_oly_lgamma(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_lgamma)(give_oly_operand(pick[0]));
}
static void call_oly_digamma(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_digamma)(give_oly_operand(pick[0]));
}
static void call_oly_sinc(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sinc)(give_oly_operand(pick[0]));
}
static void call_oly_angle(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_angle)(give_oly_operand(pick[0]));
}
static void call_oly_deg2rad(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_deg2rad)(give_oly_operand(pick[0]));
}
static void call_oly_rad2deg(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_rad2deg)(give_oly_operand(pick[0]));
}
static void call_oly_integer_pow(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_integer_pow)(give_oly_operand(pick[0]), give_int(pick[1]));
}
static void call_oly_floor(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_floor)(give_oly_operand(pick[0]));
}
static void call_oly_ceil(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_ceil)(give_oly_operand(pick[0]));
}
static void call_oly_trunc(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_trunc)(give_oly_operand(pick[0]));
}
static void call_oly_round_away(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_round_away)(give_oly_operand(pick[0]));
}
static void call_oly_round_decimals(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_round_decimals)(give_oly_operand(pick[0]), give_int(pick[1]));
}
static void call_oly_isfinite(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_isfinite)(give_oly_operand(pick[0]));
}
static void call_oly_isinf(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_isinf)(give_oly_operand(pick[0]));
}
static void call_oly_isnan(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_isnan)(give_oly_operand(pick[0]));
}
static void call_oly_isposinf(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_isposinf)(give_oly_operand(pick[0]));
}
static void call_oly_isneginf(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_isneginf)(give_oly_operand(pick[0]));
}
static void call_oly_signbit(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_signbit)(give_oly_operand(pick[0]));
}
static void call_oly_nan_to_num(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_nan_to_num)(give_oly_operand(pick[0]));
}
static void call_oly_atan2(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_atan2)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_hypot(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_hypot)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_logaddexp(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_logaddexp)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_copysign(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_copysign)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_nextafter(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_nextafter)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_truncate_divide(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_truncate_divide)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_floor_divide(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_floor_divide)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_mod(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mod)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_rem(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_rem)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_fmod(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_fmod)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_fmax(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_fmax)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_fmin(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_fmin)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_clamp(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_clamp)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_operand(pick[2]));
}
static void call_oly_clip(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_clip)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_operand(pick[2]));
}
static void call_oly_select_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_select_n)(give_oly_operand(pick[0]), give_count(pick[1]), give_const_oly_array_p(pick[2]));
}
static void call_oly_logical_and(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_logical_and)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_logical_or(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_logical_or)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_logical_xor(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_logical_xor)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_bitwise_and(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_bitwise_and)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_bitwise_or(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_bitwise_or)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_bitwise_xor(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_bitwise_xor)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_bitwise_not(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_bitwise_not)(give_oly_operand(pick[0]));
}
static void call_oly_left_shift(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_left_shift)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_right_shift(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_right_shift)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_shift_right_logical(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_shift_right_logical)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_shift_right_arithmetic(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_shift_right_arithmetic)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_population_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_population_count)(give_oly_operand(pick[0]));
}
static void call_oly_clz(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_clz)(give_oly_operand(pick[0]));
}
static void call_oly_bitcast_convert_type(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_bitcast_convert_type)(give_oly_operand(pick[0]), give_oly_dtype(pick[1]));
}
static void call_oly_relu6(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_relu6)(give_oly_operand(pick[0]));
}
static void call_oly_silu(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_silu)(give_oly_operand(pick[0]));
}
static void call_oly_softplus(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_softplus)(give_oly_operand(pick[0]));
}
static void call_oly_log_sigmoid(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_log_sigmoid)(give_oly_operand(pick[0]));
}
static void call_oly_elu(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_elu)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_leaky_relu(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_leaky_relu)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_gelu(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_gelu)(give_oly_operand(pick[0]), give_bool(pick[1]));
}
static void call_oly_device_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_count)();
}
static void call_oly_local_device_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_local_device_count)();
}
static void call_oly_get_device(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_get_device)(give_int(pick[0]));
}
static void call_oly_local_device(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_local_device)(give_int(pick[0]));
}
static void call_oly_device_id(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_id)(give_oly_device(pick[0]));
}
static void call_oly_device_process(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_process)(give_oly_device(pick[0]));
}
static void call_oly_device_platform(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_platform)(give_oly_device(pick[0]));
}
static void call_oly_device_is_local(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_is_local)(give_oly_device(pick[0]));
}
static void call_oly_device_str(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_device_str)(give_oly_device(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_set_default_device(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_set_default_device)(give_oly_device(pick[0]));
}
static void call_oly_make_mesh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_make_mesh)(give_const_char_p(pick[0]));
}
static void call_oly_mesh_from_devices(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_from_devices)(give_count(pick[0]), give_const_char_p_const_p(pick[1]), give_const_int_p(pick[2]), give_const_int_p(pick[3]));
}
static void call_oly_mesh_with_types(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_with_types)(give_oly_mesh(pick[0]), give_const_oly_axis_type_p(pick[1]));
}
static void call_oly_set_mesh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_set_mesh)(give_oly_mesh(pick[0]));
}
static void call_oly_mesh_axis_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_axis_count)(give_oly_mesh(pick[0]));
}
static void call_oly_mesh_axis_name(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_axis_name)(give_oly_mesh(pick[0]), give_int(pick[1]));
}
static void call_oly_mesh_axis_size(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_axis_size)(give_oly_mesh(pick[0]), give_int(pick[1]));
}
static void call_oly_mesh_axis_type(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_axis_type)(give_oly_mesh(pick[0]), give_int(pick[1]));
}
static void call_oly_mesh_device_count(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_device_count)(give_oly_mesh(pick[0]));
}
static void call_oly_mesh_device(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_device)(give_oly_mesh(pick[0]), give_int(pick[1]));
}
static void call_oly_mesh_str(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mesh_str)(give_oly_mesh(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_named(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_named)(give_oly_mesh(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_named_axes(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_named_axes)(give_oly_mesh(pick[0]), give_count(pick[1]), give_const_int_p_const_p(pick[2]));
}
static void call_oly_single_device(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_single_device)(give_oly_device(pick[0]));
}
static void call_oly_sharding_mesh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sharding_mesh)(give_oly_sharding(pick[0]));
}
static void call_oly_sharding_is_replicated(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sharding_is_replicated)(give_oly_sharding(pick[0]));
}
static void call_oly_sharding_equivalent(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sharding_equivalent)(give_oly_sharding(pick[0]), give_oly_sharding(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_sharding_shard(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sharding_shard)(give_oly_sharding(pick[0]), give_rank(pick[1]), give_const_int64_t_p(pick[2]), give_int(pick[3]), give_int64_t_p(pick[4]), give_int64_t_p(pick[5]));
}
static void call_oly_sharding_str(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sharding_str)(give_oly_sharding(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_spec_str(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_spec_str)(give_oly_sharding(pick[0]), give_char_p(pick[1]), give_size_t(pick[2]));
}
static void call_oly_arange(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_arange)(give_int64_t(pick[0]), give_oly_dtype(pick[1]));
}
static void call_oly_arange_sharded(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_arange_sharded)(give_int64_t(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]));
}
static void call_oly_zeros_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_zeros_shape)(give_oly_dtype(pick[0]), give_rank(pick[1]), give_const_int64_t_p(pick[2]));
}
static void call_oly_ones_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_ones_shape)(give_oly_dtype(pick[0]), give_rank(pick[1]), give_const_int64_t_p(pick[2]));
}
static void call_oly_full_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_full_shape)(give_oly_operand(pick[0]), give_oly_dtype(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_full_sharded(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_full_sharded)(give_oly_operand(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_scalar_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_scalar_of)(give_oly_operand(pick[0]), give_oly_dtype(pick[1]));
}
static void call_oly_neg(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_neg)(give_oly_operand(pick[0]));
}
static void call_oly_abs(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_abs)(give_oly_operand(pick[0]));
}
static void call_oly_sign(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sign)(give_oly_operand(pick[0]));
}
static void call_oly_exp(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_exp)(give_oly_operand(pick[0]));
}
static void call_oly_log(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_log)(give_oly_operand(pick[0]));
}
static void call_oly_sqrt(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sqrt)(give_oly_operand(pick[0]));
}
static void call_oly_sin(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sin)(give_oly_operand(pick[0]));
}
static void call_oly_cos(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cos)(give_oly_operand(pick[0]));
}
static void call_oly_tanh(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_tanh)(give_oly_operand(pick[0]));
}
static void call_oly_sigmoid(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sigmoid)(give_oly_operand(pick[0]));
}
static void call_oly_relu(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_relu)(give_oly_operand(pick[0]));
}
static void call_oly_logical_not(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_logical_not)(give_oly_operand(pick[0]));
}
static void call_oly_add(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_add)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_sub(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sub)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_mul(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mul)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_div(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_div)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_pow(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pow)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_max2(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_max2)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_min2(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_min2)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_eq(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_eq)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_ne(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_ne)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_lt(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_lt)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_le(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_le)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_gt(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_gt)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_ge(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_ge)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_where(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_where)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_oly_operand(pick[2]));
}
static void call_oly_astype(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_astype)(give_oly_operand(pick[0]), give_oly_dtype(pick[1]));
}
static void call_oly_convert_element_type(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_convert_element_type)(give_oly_operand(pick[0]), give_oly_dtype(pick[1]));
}
static void call_oly_real(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_real)(give_oly_operand(pick[0]));
}
static void call_oly_imag(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_imag)(give_oly_operand(pick[0]));
}
static void call_oly_conj(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_conj)(give_oly_operand(pick[0]));
}
static void call_oly_complex(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_complex)(give_oly_operand(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_sum_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_sum_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_prod_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_prod_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_max_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_max_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_min_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_min_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_mean_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_mean_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_reshape_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_reshape_shape)(give_oly_array(pick[0]), give_rank(pick[1]), give_const_int64_t_p(pick[2]));
}
static void call_oly_reshape_sharded_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_reshape_sharded_shape)(give_oly_array(pick[0]), give_oly_sharding(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_transpose_axes(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_transpose_axes)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int_p(pick[2]));
}
static void call_oly_broadcast_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_broadcast_shape)(give_oly_operand(pick[0]), give_rank(pick[1]), give_const_int64_t_p(pick[2]));
}
static void call_oly_broadcast_sharded_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_broadcast_sharded_shape)(give_oly_operand(pick[0]), give_oly_sharding(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_slice(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_slice)(give_oly_array(pick[0]), give_const_char_p(pick[1]));
}
static void call_oly_slice_ranges(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_slice_ranges)(give_oly_array(pick[0]), give_const_int64_t_p(pick[1]), give_const_int64_t_p(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_slice_in_dim(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_slice_in_dim)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int64_t(pick[2]), give_int64_t(pick[3]), give_int(pick[4]));
}
static void call_oly_index_in_dim(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_index_in_dim)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int(pick[2]));
}
static void call_oly_update(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_update)(give_oly_array(pick[0]), give_const_char_p(pick[1]), give_oly_operand(pick[2]));
}
static void call_oly_concatenate_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_concatenate_n)(give_count(pick[0]), give_const_oly_array_p(pick[1]), give_int(pick[2]));
}
static void call_oly_with_sharding_constraint(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_with_sharding_constraint)(give_oly_array(pick[0]), give_oly_sharding(pick[1]));
}
static void call_oly_reshard(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_reshard)(give_oly_array(pick[0]), give_oly_sharding(pick[1]));
}
static void call_oly_random_key(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_key)(give_int64_t(pick[0]));
}
static void call_oly_random_split(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_split)(give_oly_array(pick[0]), give_int64_t(pick[1]));
}
static void call_oly_random_fold_in(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_fold_in)(give_oly_array(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_threefry2x32(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_threefry2x32)(give_oly_array(pick[0]), give_oly_array(pick[1]));
}
static void call_oly_random_bits_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_bits_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_uniform_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_uniform_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_operand(pick[2]), give_oly_operand(pick[3]), give_oly_sharding(pick[4]), give_rank(pick[5]), give_const_int64_t_p(pick[6]));
}
static void call_oly_random_normal_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_normal_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_truncated_normal_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_truncated_normal_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_operand(pick[2]), give_oly_operand(pick[3]), give_oly_sharding(pick[4]), give_rank(pick[5]), give_const_int64_t_p(pick[6]));
}
static void call_oly_random_randint_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_randint_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_operand(pick[2]), give_oly_operand(pick[3]), give_oly_sharding(pick[4]), give_rank(pick[5]), give_const_int64_t_p(pick[6]));
}
static void call_oly_random_bernoulli_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_bernoulli_shape)(give_oly_array(pick[0]), give_oly_operand(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_gumbel_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_gumbel_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_exponential_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_exponential_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_laplace_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_laplace_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_logistic_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_logistic_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_cauchy_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_cauchy_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_rademacher_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_rademacher_shape)(give_oly_array(pick[0]), give_oly_dtype(pick[1]), give_oly_sharding(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_random_permutation(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_permutation)(give_oly_array(pick[0]), give_int64_t(pick[1]));
}
static void call_oly_random_permutation_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_permutation_of)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_int(pick[2]));
}
static void call_oly_random_choice_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_choice_shape)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_bool(pick[2]), give_oly_array(pick[3]), give_rank(pick[4]), give_const_int64_t_p(pick[5]));
}
static void call_oly_random_choice_of_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_choice_of_shape)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_int(pick[2]), give_bool(pick[3]), give_oly_array(pick[4]), give_rank(pick[5]), give_const_int64_t_p(pick[6]));
}
static void call_oly_random_categorical_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_random_categorical_shape)(give_oly_array(pick[0]), give_oly_array(pick[1]), give_int(pick[2]), give_rank(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_auto_axes_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_auto_axes_with)(give_oly_function(pick[0]), give_const_char_p(pick[1]), give_void_p(pick[2]), give_count(pick[3]), give_const_oly_array_p(pick[4]), give_count(pick[5]), give_oly_array_p_const_p(pick[6]), give_const_oly_sharding_p(pick[7]));
}
static void call_oly_explicit_axes_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_explicit_axes_with)(give_oly_function(pick[0]), give_const_char_p(pick[1]), give_void_p(pick[2]), give_count(pick[3]), give_const_oly_array_p(pick[4]), give_const_oly_sharding_p(pick[5]), give_count(pick[6]), give_oly_array_p_const_p(pick[7]));
}
static void call_oly_squeeze_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_squeeze_n)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int_p(pick[2]));
}
static void call_oly_expand_dims_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_expand_dims_n)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int_p(pick[2]));
}
static void call_oly_ravel(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_ravel)(give_oly_array(pick[0]));
}
static void call_oly_atleast(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_atleast)(give_oly_array(pick[0]), give_rank(pick[1]));
}
static void call_oly_moveaxis(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_moveaxis)(give_oly_array(pick[0]), give_int(pick[1]), give_int(pick[2]));
}
static void call_oly_swapaxes(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_swapaxes)(give_oly_array(pick[0]), give_int(pick[1]), give_int(pick[2]));
}
static void call_oly_broadcast_in_dim(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_broadcast_in_dim)(give_oly_operand(pick[0]), give_rank(pick[1]), give_const_int64_t_p(pick[2]), give_count(pick[3]), give_const_int_p(pick[4]));
}
static void call_oly_broadcast_in_dim_sharded(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_broadcast_in_dim_sharded)(give_oly_operand(pick[0]), give_oly_sharding(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]), give_count(pick[4]), give_const_int_p(pick[5]));
}
static void call_oly_pad(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pad)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_const_int64_t_p(pick[2]), give_const_int64_t_p(pick[3]), give_const_int64_t_p(pick[4]));
}
static void call_oly_pad_mode(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_pad_mode)(give_oly_operand(pick[0]), give_const_char_p(pick[1]), give_const_int64_t_p(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_tile_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_tile_n)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int64_t_p(pick[2]));
}
static void call_oly_repeat(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_repeat)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int(pick[2]));
}
static void call_oly_rev_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_rev_n)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int_p(pick[2]));
}
static void call_oly_flip_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_flip_n)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int_p(pick[2]));
}
static void call_oly_roll_axes(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_roll_axes)(give_oly_array(pick[0]), give_count(pick[1]), give_const_int64_t_p(pick[2]), give_const_int_p(pick[3]));
}
static void call_oly_roll(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_roll)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int(pick[2]));
}
static void call_oly_stack_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_stack_n)(give_count(pick[0]), give_const_oly_array_p(pick[1]), give_int(pick[2]));
}
static void call_oly_split_evenly(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_split_evenly)(give_oly_array(pick[0]), give_count(pick[1]), give_int(pick[2]), give_oly_array_p(pick[3]));
}
static void call_oly_eye(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_eye)(give_int64_t(pick[0]), give_int64_t(pick[1]), give_int64_t(pick[2]), give_oly_dtype(pick[3]));
}
static void call_oly_tri(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_tri)(give_int64_t(pick[0]), give_int64_t(pick[1]), give_int64_t(pick[2]), give_oly_dtype(pick[3]));
}
static void call_oly_tril(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_tril)(give_oly_array(pick[0]), give_int64_t(pick[1]));
}
static void call_oly_triu(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_triu)(give_oly_array(pick[0]), give_int64_t(pick[1]));
}
static void call_oly_diag(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_diag)(give_oly_array(pick[0]), give_int64_t(pick[1]));
}
static void call_oly_diagonal_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_diagonal_of)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int(pick[2]), give_int(pick[3]));
}
static void call_oly_trace_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_trace_of)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int(pick[2]), give_int(pick[3]));
}
static void call_oly_iota_shape(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_iota_shape)(give_oly_dtype(pick[0]), give_int(pick[1]), give_rank(pick[2]), give_const_int64_t_p(pick[3]));
}
static void call_oly_arange_range(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_arange_range)(give_double(pick[0]), give_double(pick[1]), give_double(pick[2]), give_oly_dtype(pick[3]));
}
static void call_oly_linspace(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_linspace)(give_oly_operand(pick[0]), give_oly_operand(pick[1]), give_int64_t(pick[2]), give_oly_dtype(pick[3]));
}
static void call_oly_full_like_of(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_full_like_of)(give_oly_array(pick[0]), give_oly_operand(pick[1]));
}
static void call_oly_diff(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_diff)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_int(pick[2]));
}
static void call_oly_any_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_any_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_all_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_all_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_var_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_var_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_std_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_std_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_logsumexp_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_logsumexp_with)(give_oly_operand(pick[0]), give_oly_reduce_options(pick[1]));
}
static void call_oly_softmax(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_softmax)(give_oly_operand(pick[0]), give_int(pick[1]));
}
static void call_oly_log_softmax(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_log_softmax)(give_oly_operand(pick[0]), give_int(pick[1]));
}
static void call_oly_one_hot(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_one_hot)(give_oly_array(pick[0]), give_int64_t(pick[1]), give_oly_dtype(pick[2]), give_int(pick[3]));
}
static void call_oly_jit_with(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_jit_with)(give_oly_function(pick[0]), give_const_char_p(pick[1]), give_count(pick[2]), give_count(pick[3]), give_oly_jit_options(pick[4]));
}
static void call_oly_call_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_call_n)(give_oly_fn(pick[0]), give_count(pick[1]), give_const_oly_array_p(pick[2]), give_count(pick[3]), give_oly_array_p_const_p(pick[4]));
}
static void call_oly_call_arrays(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_call_arrays)(give_oly_fn(pick[0]), give_count(pick[1]), give_const_oly_array_p(pick[2]), give_count(pick[3]), give_oly_array_p(pick[4]));
}
static void call_oly_apply_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_apply_n)(give_oly_fn(pick[0]), give_count(pick[1]), give_const_oly_array_p(pick[2]));
}
static void call_oly_fori(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_fori)(give_int64_t(pick[0]), give_int64_t(pick[1]), give_oly_loop_body(pick[2]), give_count(pick[3]), give_oly_array_p(pick[4]), give_void_p(pick[5]));
}
static void call_oly_while(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_while)(give_oly_while_condition(pick[0]), give_oly_while_body(pick[1]), give_count(pick[2]), give_oly_array_p(pick[3]), give_void_p(pick[4]));
}
static void call_oly_scan(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_scan)(give_int64_t(pick[0]), give_bool(pick[1]), give_oly_scan_body(pick[2]), give_count(pick[3]), give_oly_array_p(pick[4]), give_count(pick[5]), give_const_oly_array_p(pick[6]), give_count(pick[7]), give_oly_array_p(pick[8]), give_void_p(pick[9]));
}
static void call_oly_switch(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_switch)(give_oly_operand(pick[0]), give_count(pick[1]), give_const_oly_function_p(pick[2]), give_count(pick[3]), give_const_oly_array_p(pick[4]), give_count(pick[5]), give_oly_array_p(pick[6]), give_void_p(pick[7]));
}
static void call_oly_cond(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_cond)(give_oly_operand(pick[0]), give_oly_function(pick[1]), give_oly_function(pick[2]), give_count(pick[3]), give_const_oly_array_p(pick[4]), give_count(pick[5]), give_oly_array_p(pick[6]), give_void_p(pick[7]));
}
static void call_oly_explain_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_explain_n)(give_FILE_p(pick[0]), give_oly_fn(pick[1]), give_count(pick[2]), give_const_oly_array_p(pick[3]));
}
static void call_oly_explain_as_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_explain_as_n)(give_FILE_p(pick[0]), give_oly_explain_form(pick[1]), give_oly_fn(pick[2]), give_count(pick[3]), give_const_oly_array_p(pick[4]));
}
static void call_oly_explain_names(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_explain_names)(give_const_char_p(pick[0]), give_int(pick[1]));
}
static void call_oly_explain_diff(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_explain_diff)(give_FILE_p(pick[0]), give_oly_fn(pick[1]), give_count(pick[2]), give_const_oly_array_p(pick[3]), give_oly_fn(pick[4]), give_count(pick[5]), give_const_oly_array_p(pick[6]));
}
static void call_oly_costs_n(const int *pick)
{
    (void)pick;
    (void)OLY_AT(oly_costs_n)(give_oly_plan_costs_p(pick[0]), give_oly_fn(pick[1]), give_count(pick[2]), give_const_oly_array_p(pick[3]));
}
static const caller callers[] = {
    {"oly_dtype_name", call_oly_dtype_name, 1, {"oly_dtype"}},
    {"oly_dtype_size", call_oly_dtype_size, 1, {"oly_dtype"}},
    {"oly_enable_x64", call_oly_enable_x64, 1, {"bool"}},
    {"oly_x64_enabled", call_oly_x64_enabled, 0, {NULL}},
    {"oly_promote_types", call_oly_promote_types, 2, {"oly_dtype", "oly_dtype"}},
    {"oly_rank", call_oly_rank, 1, {"oly_array"}},
    {"oly_dim", call_oly_dim, 2, {"oly_array", "int"}},
    {"oly_shape", call_oly_shape, 1, {"oly_array"}},
    {"oly_size", call_oly_size, 1, {"oly_array"}},
    {"oly_dtype_of", call_oly_dtype_of, 1, {"oly_array"}},
    {"oly_sharding_of", call_oly_sharding_of, 1, {"oly_array"}},
    {"oly_is_committed", call_oly_is_committed, 1, {"oly_array"}},
    {"oly_is_fully_addressable", call_oly_is_fully_addressable, 1, {"oly_array"}},
    {"oly_typeof", call_oly_typeof, 3, {"oly_array", "char_p", "size_t"}},
    {"oly_from_host", call_oly_from_host, 4, {"const_void_p", "oly_dtype", "rank", "const_int64_t_p"}},
    {"oly_device_put", call_oly_device_put, 2, {"oly_array", "oly_sharding"}},
    {"oly_from_local", call_oly_from_local, 6, {"oly_sharding", "oly_dtype", "rank", "const_int64_t_p", "const_void_p", "const_int64_t_p"}},
    {"oly_from_shards", call_oly_from_shards, 6, {"oly_sharding", "oly_dtype", "rank", "const_int64_t_p", "count", "const_oly_array_p"}},
    {"oly_block_until_ready", call_oly_block_until_ready, 1, {"oly_array"}},
    {"oly_get", call_oly_get, 3, {"oly_array", "void_p", "size_t"}},
    {"oly_item", call_oly_item, 1, {"oly_array"}},
    {"oly_process_allgather", call_oly_process_allgather, 3, {"oly_array", "void_p", "size_t"}},
    {"oly_sync", call_oly_sync, 1, {"const_char_p"}},
    {"oly_shard_count", call_oly_shard_count, 1, {"oly_array"}},
    {"oly_get_shard", call_oly_get_shard, 2, {"oly_array", "int"}},
    {"oly_printf", call_oly_printf, 1, {"const_char_p"}},
    {"oly_fprintf", call_oly_fprintf, 2, {"FILE_p", "const_char_p"}},
    {"oly_array_str", call_oly_array_str, 3, {"oly_array", "char_p", "size_t"}},
    {"oly_array_repr", call_oly_array_repr, 3, {"oly_array", "char_p", "size_t"}},
    {"oly_visualize", call_oly_visualize, 2, {"FILE_p", "oly_array"}},
    {"oly_visualize_sharding", call_oly_visualize_sharding, 4, {"FILE_p", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_write_png", call_oly_write_png, 4, {"const_char_p", "oly_array", "double", "double"}},
    {"oly_status_name", call_oly_status_name, 1, {"oly_status"}},
    {"oly_status_text", call_oly_status_text, 1, {"oly_status"}},
    {"oly_init", call_oly_init, 2, {"int_p", "char_p_p_p"}},
    {"oly_finalize", call_oly_finalize, 0, {NULL}},
    {"oly_process_index", call_oly_process_index, 0, {NULL}},
    {"oly_process_count", call_oly_process_count, 0, {NULL}},
    {"oly_simulated", call_oly_simulated, 0, {NULL}},
    {"oly_version", call_oly_version, 0, {NULL}},
    {"oly_print_options", call_oly_print_options, 0, {NULL}},
    {"oly_set_error_mode", call_oly_set_error_mode, 1, {"oly_error_mode"}},
    {"oly_last_status", call_oly_last_status, 0, {NULL}},
    {"oly_last_error", call_oly_last_error, 0, {NULL}},
    {"oly_clear_error", call_oly_clear_error, 0, {NULL}},
    {"oly_scope_open", call_oly_scope_open, 0, {NULL}},
    {"oly_scope_close", call_oly_scope_close, 0, {NULL}},
    {"oly_keep", call_oly_keep, 1, {"oly_array"}},
    {"oly_assign", call_oly_assign, 2, {"oly_array_p", "oly_array"}},
    {"oly_free", call_oly_free, 1, {"oly_array"}},
    {"oly_matmul_with", call_oly_matmul_with, 3, {"oly_operand", "oly_operand", "oly_product_options"}},
    {"oly_dot_with", call_oly_dot_with, 3, {"oly_operand", "oly_operand", "oly_product_options"}},
    {"oly_inner_with", call_oly_inner_with, 3, {"oly_operand", "oly_operand", "oly_product_options"}},
    {"oly_outer_with", call_oly_outer_with, 3, {"oly_operand", "oly_operand", "oly_product_options"}},
    {"oly_vdot_with", call_oly_vdot_with, 3, {"oly_operand", "oly_operand", "oly_product_options"}},
    {"oly_tensordot_with", call_oly_tensordot_with, 4, {"oly_operand", "oly_operand", "int", "oly_product_options"}},
    {"oly_dot_general_with", call_oly_dot_general_with, 3, {"oly_operand", "oly_operand", "oly_dot_options"}},
    {"oly_einsum_with", call_oly_einsum_with, 4, {"const_char_p", "count", "const_oly_array_p", "oly_product_options"}},
    {"oly_conv_with", call_oly_conv_with, 3, {"oly_array", "oly_array", "oly_conv_options"}},
    {"oly_convolve_with", call_oly_convolve_with, 4, {"oly_array", "oly_array", "const_char_p", "oly_product_options"}},
    {"oly_correlate_with", call_oly_correlate_with, 4, {"oly_array", "oly_array", "const_char_p", "oly_product_options"}},
    {"oly_reduce_window_with", call_oly_reduce_window_with, 3, {"oly_array", "const_char_p", "oly_window_options"}},
    {"oly_avg_pool_with", call_oly_avg_pool_with, 2, {"oly_array", "oly_window_options"}},
    {"oly_grad_with", call_oly_grad_with, 2, {"oly_fn", "oly_gradient_options"}},
    {"oly_value_and_grad_with", call_oly_value_and_grad_with, 2, {"oly_fn", "oly_gradient_options"}},
    {"oly_vjp_with", call_oly_vjp_with, 2, {"oly_fn", "oly_gradient_options"}},
    {"oly_jvp_with", call_oly_jvp_with, 2, {"oly_fn", "oly_gradient_options"}},
    {"oly_gradients_n", call_oly_gradients_n, 5, {"oly_array", "count", "const_oly_array_p", "count", "oly_array_p_const_p"}},
    {"oly_stop_gradient", call_oly_stop_gradient, 1, {"oly_operand"}},
    {"oly_checkpoint", call_oly_checkpoint, 1, {"oly_fn"}},
    {"oly_sort_with", call_oly_sort_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_argsort_with", call_oly_argsort_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_sort_together", call_oly_sort_together, 5, {"count", "const_oly_array_p", "int", "int", "oly_array_p"}},
    {"oly_top_k", call_oly_top_k, 4, {"oly_array", "int64_t", "oly_array_p", "oly_array_p"}},
    {"oly_searchsorted", call_oly_searchsorted, 3, {"oly_array", "oly_operand", "const_char_p"}},
    {"oly_cumsum_with", call_oly_cumsum_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_cumprod_with", call_oly_cumprod_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_cummax_with", call_oly_cummax_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_cummin_with", call_oly_cummin_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_cumlogsumexp_with", call_oly_cumlogsumexp_with, 3, {"oly_operand", "int", "oly_along_options"}},
    {"oly_argmax_with", call_oly_argmax_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_argmin_with", call_oly_argmin_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_take", call_oly_take, 4, {"oly_array", "oly_operand", "int", "const_char_p"}},
    {"oly_take_along_axis", call_oly_take_along_axis, 4, {"oly_array", "oly_array", "int", "const_char_p"}},
    {"oly_at_get_with", call_oly_at_get_with, 4, {"oly_array", "count", "const_oly_operand_p", "oly_at_options"}},
    {"oly_at_set_with", call_oly_at_set_with, 5, {"oly_array", "count", "const_oly_operand_p", "oly_operand", "oly_at_options"}},
    {"oly_at_add_with", call_oly_at_add_with, 5, {"oly_array", "count", "const_oly_operand_p", "oly_operand", "oly_at_options"}},
    {"oly_at_mul_with", call_oly_at_mul_with, 5, {"oly_array", "count", "const_oly_operand_p", "oly_operand", "oly_at_options"}},
    {"oly_at_min_with", call_oly_at_min_with, 5, {"oly_array", "count", "const_oly_operand_p", "oly_operand", "oly_at_options"}},
    {"oly_at_max_with", call_oly_at_max_with, 5, {"oly_array", "count", "const_oly_operand_p", "oly_operand", "oly_at_options"}},
    {"oly_segment_sum", call_oly_segment_sum, 3, {"oly_array", "oly_array", "int64_t"}},
    {"oly_bincount", call_oly_bincount, 2, {"oly_array", "int64_t"}},
    {"oly_dynamic_slice", call_oly_dynamic_slice, 5, {"oly_array", "count", "const_oly_operand_p", "rank", "const_int64_t_p"}},
    {"oly_dynamic_update_slice", call_oly_dynamic_update_slice, 4, {"oly_array", "oly_array", "count", "const_oly_operand_p"}},
    {"oly_shard_map_with", call_oly_shard_map_with, 11, {"oly_function", "const_char_p", "void_p", "oly_mesh", "oly_shard_map_options", "count", "const_oly_array_p", "const_char_p_const_p", "count", "oly_array_p_const_p", "const_char_p_const_p"}},
    {"oly_psum", call_oly_psum, 2, {"oly_operand", "const_char_p"}},
    {"oly_pmean", call_oly_pmean, 2, {"oly_operand", "const_char_p"}},
    {"oly_pmax", call_oly_pmax, 2, {"oly_operand", "const_char_p"}},
    {"oly_pmin", call_oly_pmin, 2, {"oly_operand", "const_char_p"}},
    {"oly_all_gather_with", call_oly_all_gather_with, 3, {"oly_array", "const_char_p", "oly_gather_options"}},
    {"oly_psum_scatter_with", call_oly_psum_scatter_with, 3, {"oly_array", "const_char_p", "oly_gather_options"}},
    {"oly_all_to_all", call_oly_all_to_all, 5, {"oly_array", "const_char_p", "int", "int", "bool"}},
    {"oly_ppermute", call_oly_ppermute, 4, {"oly_array", "const_char_p", "count", "pairs"}},
    {"oly_axis_index", call_oly_axis_index, 1, {"const_char_p"}},
    {"oly_axis_size", call_oly_axis_size, 1, {"const_char_p"}},
    {"oly_pvary", call_oly_pvary, 2, {"oly_array", "const_char_p"}},
    {"oly_vmap_with", call_oly_vmap_with, 10, {"oly_function", "const_char_p", "void_p", "oly_vmap_options", "count", "const_oly_array_p", "const_int_p", "count", "oly_array_p_const_p", "const_int_p"}},
    {"oly_tan", call_oly_tan, 1, {"oly_operand"}},
    {"oly_asin", call_oly_asin, 1, {"oly_operand"}},
    {"oly_acos", call_oly_acos, 1, {"oly_operand"}},
    {"oly_atan", call_oly_atan, 1, {"oly_operand"}},
    {"oly_sinh", call_oly_sinh, 1, {"oly_operand"}},
    {"oly_cosh", call_oly_cosh, 1, {"oly_operand"}},
    {"oly_asinh", call_oly_asinh, 1, {"oly_operand"}},
    {"oly_acosh", call_oly_acosh, 1, {"oly_operand"}},
    {"oly_atanh", call_oly_atanh, 1, {"oly_operand"}},
    {"oly_exp2", call_oly_exp2, 1, {"oly_operand"}},
    {"oly_expm1", call_oly_expm1, 1, {"oly_operand"}},
    {"oly_log1p", call_oly_log1p, 1, {"oly_operand"}},
    {"oly_log2", call_oly_log2, 1, {"oly_operand"}},
    {"oly_log10", call_oly_log10, 1, {"oly_operand"}},
    {"oly_rsqrt", call_oly_rsqrt, 1, {"oly_operand"}},
    {"oly_cbrt", call_oly_cbrt, 1, {"oly_operand"}},
    {"oly_square", call_oly_square, 1, {"oly_operand"}},
    {"oly_reciprocal", call_oly_reciprocal, 1, {"oly_operand"}},
    {"oly_erf", call_oly_erf, 1, {"oly_operand"}},
    {"oly_erfc", call_oly_erfc, 1, {"oly_operand"}},
    {"oly_erf_inv", call_oly_erf_inv, 1, {"oly_operand"}},
    {"oly_lgamma", call_oly_lgamma, 1, {"oly_operand"}},
    {"oly_digamma", call_oly_digamma, 1, {"oly_operand"}},
    {"oly_sinc", call_oly_sinc, 1, {"oly_operand"}},
    {"oly_angle", call_oly_angle, 1, {"oly_operand"}},
    {"oly_deg2rad", call_oly_deg2rad, 1, {"oly_operand"}},
    {"oly_rad2deg", call_oly_rad2deg, 1, {"oly_operand"}},
    {"oly_integer_pow", call_oly_integer_pow, 2, {"oly_operand", "int"}},
    {"oly_floor", call_oly_floor, 1, {"oly_operand"}},
    {"oly_ceil", call_oly_ceil, 1, {"oly_operand"}},
    {"oly_trunc", call_oly_trunc, 1, {"oly_operand"}},
    {"oly_round_away", call_oly_round_away, 1, {"oly_operand"}},
    {"oly_round_decimals", call_oly_round_decimals, 2, {"oly_operand", "int"}},
    {"oly_isfinite", call_oly_isfinite, 1, {"oly_operand"}},
    {"oly_isinf", call_oly_isinf, 1, {"oly_operand"}},
    {"oly_isnan", call_oly_isnan, 1, {"oly_operand"}},
    {"oly_isposinf", call_oly_isposinf, 1, {"oly_operand"}},
    {"oly_isneginf", call_oly_isneginf, 1, {"oly_operand"}},
    {"oly_signbit", call_oly_signbit, 1, {"oly_operand"}},
    {"oly_nan_to_num", call_oly_nan_to_num, 1, {"oly_operand"}},
    {"oly_atan2", call_oly_atan2, 2, {"oly_operand", "oly_operand"}},
    {"oly_hypot", call_oly_hypot, 2, {"oly_operand", "oly_operand"}},
    {"oly_logaddexp", call_oly_logaddexp, 2, {"oly_operand", "oly_operand"}},
    {"oly_copysign", call_oly_copysign, 2, {"oly_operand", "oly_operand"}},
    {"oly_nextafter", call_oly_nextafter, 2, {"oly_operand", "oly_operand"}},
    {"oly_truncate_divide", call_oly_truncate_divide, 2, {"oly_operand", "oly_operand"}},
    {"oly_floor_divide", call_oly_floor_divide, 2, {"oly_operand", "oly_operand"}},
    {"oly_mod", call_oly_mod, 2, {"oly_operand", "oly_operand"}},
    {"oly_rem", call_oly_rem, 2, {"oly_operand", "oly_operand"}},
    {"oly_fmod", call_oly_fmod, 2, {"oly_operand", "oly_operand"}},
    {"oly_fmax", call_oly_fmax, 2, {"oly_operand", "oly_operand"}},
    {"oly_fmin", call_oly_fmin, 2, {"oly_operand", "oly_operand"}},
    {"oly_clamp", call_oly_clamp, 3, {"oly_operand", "oly_operand", "oly_operand"}},
    {"oly_clip", call_oly_clip, 3, {"oly_operand", "oly_operand", "oly_operand"}},
    {"oly_select_n", call_oly_select_n, 3, {"oly_operand", "count", "const_oly_array_p"}},
    {"oly_logical_and", call_oly_logical_and, 2, {"oly_operand", "oly_operand"}},
    {"oly_logical_or", call_oly_logical_or, 2, {"oly_operand", "oly_operand"}},
    {"oly_logical_xor", call_oly_logical_xor, 2, {"oly_operand", "oly_operand"}},
    {"oly_bitwise_and", call_oly_bitwise_and, 2, {"oly_operand", "oly_operand"}},
    {"oly_bitwise_or", call_oly_bitwise_or, 2, {"oly_operand", "oly_operand"}},
    {"oly_bitwise_xor", call_oly_bitwise_xor, 2, {"oly_operand", "oly_operand"}},
    {"oly_bitwise_not", call_oly_bitwise_not, 1, {"oly_operand"}},
    {"oly_left_shift", call_oly_left_shift, 2, {"oly_operand", "oly_operand"}},
    {"oly_right_shift", call_oly_right_shift, 2, {"oly_operand", "oly_operand"}},
    {"oly_shift_right_logical", call_oly_shift_right_logical, 2, {"oly_operand", "oly_operand"}},
    {"oly_shift_right_arithmetic", call_oly_shift_right_arithmetic, 2, {"oly_operand", "oly_operand"}},
    {"oly_population_count", call_oly_population_count, 1, {"oly_operand"}},
    {"oly_clz", call_oly_clz, 1, {"oly_operand"}},
    {"oly_bitcast_convert_type", call_oly_bitcast_convert_type, 2, {"oly_operand", "oly_dtype"}},
    {"oly_relu6", call_oly_relu6, 1, {"oly_operand"}},
    {"oly_silu", call_oly_silu, 1, {"oly_operand"}},
    {"oly_softplus", call_oly_softplus, 1, {"oly_operand"}},
    {"oly_log_sigmoid", call_oly_log_sigmoid, 1, {"oly_operand"}},
    {"oly_elu", call_oly_elu, 2, {"oly_operand", "oly_operand"}},
    {"oly_leaky_relu", call_oly_leaky_relu, 2, {"oly_operand", "oly_operand"}},
    {"oly_gelu", call_oly_gelu, 2, {"oly_operand", "bool"}},
    {"oly_device_count", call_oly_device_count, 0, {NULL}},
    {"oly_local_device_count", call_oly_local_device_count, 0, {NULL}},
    {"oly_get_device", call_oly_get_device, 1, {"int"}},
    {"oly_local_device", call_oly_local_device, 1, {"int"}},
    {"oly_device_id", call_oly_device_id, 1, {"oly_device"}},
    {"oly_device_process", call_oly_device_process, 1, {"oly_device"}},
    {"oly_device_platform", call_oly_device_platform, 1, {"oly_device"}},
    {"oly_device_is_local", call_oly_device_is_local, 1, {"oly_device"}},
    {"oly_device_str", call_oly_device_str, 3, {"oly_device", "char_p", "size_t"}},
    {"oly_set_default_device", call_oly_set_default_device, 1, {"oly_device"}},
    {"oly_make_mesh", call_oly_make_mesh, 1, {"const_char_p"}},
    {"oly_mesh_from_devices", call_oly_mesh_from_devices, 4, {"count", "const_char_p_const_p", "const_int_p", "const_int_p"}},
    {"oly_mesh_with_types", call_oly_mesh_with_types, 2, {"oly_mesh", "const_oly_axis_type_p"}},
    {"oly_set_mesh", call_oly_set_mesh, 1, {"oly_mesh"}},
    {"oly_mesh_axis_count", call_oly_mesh_axis_count, 1, {"oly_mesh"}},
    {"oly_mesh_axis_name", call_oly_mesh_axis_name, 2, {"oly_mesh", "int"}},
    {"oly_mesh_axis_size", call_oly_mesh_axis_size, 2, {"oly_mesh", "int"}},
    {"oly_mesh_axis_type", call_oly_mesh_axis_type, 2, {"oly_mesh", "int"}},
    {"oly_mesh_device_count", call_oly_mesh_device_count, 1, {"oly_mesh"}},
    {"oly_mesh_device", call_oly_mesh_device, 2, {"oly_mesh", "int"}},
    {"oly_mesh_str", call_oly_mesh_str, 3, {"oly_mesh", "char_p", "size_t"}},
    {"oly_named", call_oly_named, 2, {"oly_mesh", "const_char_p"}},
    {"oly_named_axes", call_oly_named_axes, 3, {"oly_mesh", "count", "const_int_p_const_p"}},
    {"oly_single_device", call_oly_single_device, 1, {"oly_device"}},
    {"oly_sharding_mesh", call_oly_sharding_mesh, 1, {"oly_sharding"}},
    {"oly_sharding_is_replicated", call_oly_sharding_is_replicated, 1, {"oly_sharding"}},
    {"oly_sharding_equivalent", call_oly_sharding_equivalent, 4, {"oly_sharding", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_sharding_shard", call_oly_sharding_shard, 6, {"oly_sharding", "rank", "const_int64_t_p", "int", "int64_t_p", "int64_t_p"}},
    {"oly_sharding_str", call_oly_sharding_str, 3, {"oly_sharding", "char_p", "size_t"}},
    {"oly_spec_str", call_oly_spec_str, 3, {"oly_sharding", "char_p", "size_t"}},
    {"oly_arange", call_oly_arange, 2, {"int64_t", "oly_dtype"}},
    {"oly_arange_sharded", call_oly_arange_sharded, 3, {"int64_t", "oly_dtype", "oly_sharding"}},
    {"oly_zeros_shape", call_oly_zeros_shape, 3, {"oly_dtype", "rank", "const_int64_t_p"}},
    {"oly_ones_shape", call_oly_ones_shape, 3, {"oly_dtype", "rank", "const_int64_t_p"}},
    {"oly_full_shape", call_oly_full_shape, 4, {"oly_operand", "oly_dtype", "rank", "const_int64_t_p"}},
    {"oly_full_sharded", call_oly_full_sharded, 5, {"oly_operand", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_scalar_of", call_oly_scalar_of, 2, {"oly_operand", "oly_dtype"}},
    {"oly_neg", call_oly_neg, 1, {"oly_operand"}},
    {"oly_abs", call_oly_abs, 1, {"oly_operand"}},
    {"oly_sign", call_oly_sign, 1, {"oly_operand"}},
    {"oly_exp", call_oly_exp, 1, {"oly_operand"}},
    {"oly_log", call_oly_log, 1, {"oly_operand"}},
    {"oly_sqrt", call_oly_sqrt, 1, {"oly_operand"}},
    {"oly_sin", call_oly_sin, 1, {"oly_operand"}},
    {"oly_cos", call_oly_cos, 1, {"oly_operand"}},
    {"oly_tanh", call_oly_tanh, 1, {"oly_operand"}},
    {"oly_sigmoid", call_oly_sigmoid, 1, {"oly_operand"}},
    {"oly_relu", call_oly_relu, 1, {"oly_operand"}},
    {"oly_logical_not", call_oly_logical_not, 1, {"oly_operand"}},
    {"oly_add", call_oly_add, 2, {"oly_operand", "oly_operand"}},
    {"oly_sub", call_oly_sub, 2, {"oly_operand", "oly_operand"}},
    {"oly_mul", call_oly_mul, 2, {"oly_operand", "oly_operand"}},
    {"oly_div", call_oly_div, 2, {"oly_operand", "oly_operand"}},
    {"oly_pow", call_oly_pow, 2, {"oly_operand", "oly_operand"}},
    {"oly_max2", call_oly_max2, 2, {"oly_operand", "oly_operand"}},
    {"oly_min2", call_oly_min2, 2, {"oly_operand", "oly_operand"}},
    {"oly_eq", call_oly_eq, 2, {"oly_operand", "oly_operand"}},
    {"oly_ne", call_oly_ne, 2, {"oly_operand", "oly_operand"}},
    {"oly_lt", call_oly_lt, 2, {"oly_operand", "oly_operand"}},
    {"oly_le", call_oly_le, 2, {"oly_operand", "oly_operand"}},
    {"oly_gt", call_oly_gt, 2, {"oly_operand", "oly_operand"}},
    {"oly_ge", call_oly_ge, 2, {"oly_operand", "oly_operand"}},
    {"oly_where", call_oly_where, 3, {"oly_operand", "oly_operand", "oly_operand"}},
    {"oly_astype", call_oly_astype, 2, {"oly_operand", "oly_dtype"}},
    {"oly_convert_element_type", call_oly_convert_element_type, 2, {"oly_operand", "oly_dtype"}},
    {"oly_real", call_oly_real, 1, {"oly_operand"}},
    {"oly_imag", call_oly_imag, 1, {"oly_operand"}},
    {"oly_conj", call_oly_conj, 1, {"oly_operand"}},
    {"oly_complex", call_oly_complex, 2, {"oly_operand", "oly_operand"}},
    {"oly_sum_with", call_oly_sum_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_prod_with", call_oly_prod_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_max_with", call_oly_max_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_min_with", call_oly_min_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_mean_with", call_oly_mean_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_reshape_shape", call_oly_reshape_shape, 3, {"oly_array", "rank", "const_int64_t_p"}},
    {"oly_reshape_sharded_shape", call_oly_reshape_sharded_shape, 4, {"oly_array", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_transpose_axes", call_oly_transpose_axes, 3, {"oly_array", "count", "const_int_p"}},
    {"oly_broadcast_shape", call_oly_broadcast_shape, 3, {"oly_operand", "rank", "const_int64_t_p"}},
    {"oly_broadcast_sharded_shape", call_oly_broadcast_sharded_shape, 4, {"oly_operand", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_slice", call_oly_slice, 2, {"oly_array", "const_char_p"}},
    {"oly_slice_ranges", call_oly_slice_ranges, 4, {"oly_array", "const_int64_t_p", "const_int64_t_p", "const_int64_t_p"}},
    {"oly_slice_in_dim", call_oly_slice_in_dim, 5, {"oly_array", "int64_t", "int64_t", "int64_t", "int"}},
    {"oly_index_in_dim", call_oly_index_in_dim, 3, {"oly_array", "int64_t", "int"}},
    {"oly_update", call_oly_update, 3, {"oly_array", "const_char_p", "oly_operand"}},
    {"oly_concatenate_n", call_oly_concatenate_n, 3, {"count", "const_oly_array_p", "int"}},
    {"oly_with_sharding_constraint", call_oly_with_sharding_constraint, 2, {"oly_array", "oly_sharding"}},
    {"oly_reshard", call_oly_reshard, 2, {"oly_array", "oly_sharding"}},
    {"oly_random_key", call_oly_random_key, 1, {"int64_t"}},
    {"oly_random_split", call_oly_random_split, 2, {"oly_array", "int64_t"}},
    {"oly_random_fold_in", call_oly_random_fold_in, 2, {"oly_array", "oly_operand"}},
    {"oly_threefry2x32", call_oly_threefry2x32, 2, {"oly_array", "oly_array"}},
    {"oly_random_bits_shape", call_oly_random_bits_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_uniform_shape", call_oly_random_uniform_shape, 7, {"oly_array", "oly_dtype", "oly_operand", "oly_operand", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_normal_shape", call_oly_random_normal_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_truncated_normal_shape", call_oly_random_truncated_normal_shape, 7, {"oly_array", "oly_dtype", "oly_operand", "oly_operand", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_randint_shape", call_oly_random_randint_shape, 7, {"oly_array", "oly_dtype", "oly_operand", "oly_operand", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_bernoulli_shape", call_oly_random_bernoulli_shape, 5, {"oly_array", "oly_operand", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_gumbel_shape", call_oly_random_gumbel_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_exponential_shape", call_oly_random_exponential_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_laplace_shape", call_oly_random_laplace_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_logistic_shape", call_oly_random_logistic_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_cauchy_shape", call_oly_random_cauchy_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_rademacher_shape", call_oly_random_rademacher_shape, 5, {"oly_array", "oly_dtype", "oly_sharding", "rank", "const_int64_t_p"}},
    {"oly_random_permutation", call_oly_random_permutation, 2, {"oly_array", "int64_t"}},
    {"oly_random_permutation_of", call_oly_random_permutation_of, 3, {"oly_array", "oly_array", "int"}},
    {"oly_random_choice_shape", call_oly_random_choice_shape, 6, {"oly_array", "int64_t", "bool", "oly_array", "rank", "const_int64_t_p"}},
    {"oly_random_choice_of_shape", call_oly_random_choice_of_shape, 7, {"oly_array", "oly_array", "int", "bool", "oly_array", "rank", "const_int64_t_p"}},
    {"oly_random_categorical_shape", call_oly_random_categorical_shape, 5, {"oly_array", "oly_array", "int", "rank", "const_int64_t_p"}},
    {"oly_auto_axes_with", call_oly_auto_axes_with, 8, {"oly_function", "const_char_p", "void_p", "count", "const_oly_array_p", "count", "oly_array_p_const_p", "const_oly_sharding_p"}},
    {"oly_explicit_axes_with", call_oly_explicit_axes_with, 8, {"oly_function", "const_char_p", "void_p", "count", "const_oly_array_p", "const_oly_sharding_p", "count", "oly_array_p_const_p"}},
    {"oly_squeeze_n", call_oly_squeeze_n, 3, {"oly_array", "count", "const_int_p"}},
    {"oly_expand_dims_n", call_oly_expand_dims_n, 3, {"oly_array", "count", "const_int_p"}},
    {"oly_ravel", call_oly_ravel, 1, {"oly_array"}},
    {"oly_atleast", call_oly_atleast, 2, {"oly_array", "rank"}},
    {"oly_moveaxis", call_oly_moveaxis, 3, {"oly_array", "int", "int"}},
    {"oly_swapaxes", call_oly_swapaxes, 3, {"oly_array", "int", "int"}},
    {"oly_broadcast_in_dim", call_oly_broadcast_in_dim, 5, {"oly_operand", "rank", "const_int64_t_p", "count", "const_int_p"}},
    {"oly_broadcast_in_dim_sharded", call_oly_broadcast_in_dim_sharded, 6, {"oly_operand", "oly_sharding", "rank", "const_int64_t_p", "count", "const_int_p"}},
    {"oly_pad", call_oly_pad, 5, {"oly_operand", "oly_operand", "const_int64_t_p", "const_int64_t_p", "const_int64_t_p"}},
    {"oly_pad_mode", call_oly_pad_mode, 4, {"oly_operand", "const_char_p", "const_int64_t_p", "const_int64_t_p"}},
    {"oly_tile_n", call_oly_tile_n, 3, {"oly_array", "count", "const_int64_t_p"}},
    {"oly_repeat", call_oly_repeat, 3, {"oly_array", "int64_t", "int"}},
    {"oly_rev_n", call_oly_rev_n, 3, {"oly_array", "count", "const_int_p"}},
    {"oly_flip_n", call_oly_flip_n, 3, {"oly_array", "count", "const_int_p"}},
    {"oly_roll_axes", call_oly_roll_axes, 4, {"oly_array", "count", "const_int64_t_p", "const_int_p"}},
    {"oly_roll", call_oly_roll, 3, {"oly_array", "int64_t", "int"}},
    {"oly_stack_n", call_oly_stack_n, 3, {"count", "const_oly_array_p", "int"}},
    {"oly_split_evenly", call_oly_split_evenly, 4, {"oly_array", "count", "int", "oly_array_p"}},
    {"oly_eye", call_oly_eye, 4, {"int64_t", "int64_t", "int64_t", "oly_dtype"}},
    {"oly_tri", call_oly_tri, 4, {"int64_t", "int64_t", "int64_t", "oly_dtype"}},
    {"oly_tril", call_oly_tril, 2, {"oly_array", "int64_t"}},
    {"oly_triu", call_oly_triu, 2, {"oly_array", "int64_t"}},
    {"oly_diag", call_oly_diag, 2, {"oly_array", "int64_t"}},
    {"oly_diagonal_of", call_oly_diagonal_of, 4, {"oly_array", "int64_t", "int", "int"}},
    {"oly_trace_of", call_oly_trace_of, 4, {"oly_array", "int64_t", "int", "int"}},
    {"oly_iota_shape", call_oly_iota_shape, 4, {"oly_dtype", "int", "rank", "const_int64_t_p"}},
    {"oly_arange_range", call_oly_arange_range, 4, {"double", "double", "double", "oly_dtype"}},
    {"oly_linspace", call_oly_linspace, 4, {"oly_operand", "oly_operand", "int64_t", "oly_dtype"}},
    {"oly_full_like_of", call_oly_full_like_of, 2, {"oly_array", "oly_operand"}},
    {"oly_diff", call_oly_diff, 3, {"oly_array", "int64_t", "int"}},
    {"oly_any_with", call_oly_any_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_all_with", call_oly_all_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_var_with", call_oly_var_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_std_with", call_oly_std_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_logsumexp_with", call_oly_logsumexp_with, 2, {"oly_operand", "oly_reduce_options"}},
    {"oly_softmax", call_oly_softmax, 2, {"oly_operand", "int"}},
    {"oly_log_softmax", call_oly_log_softmax, 2, {"oly_operand", "int"}},
    {"oly_one_hot", call_oly_one_hot, 4, {"oly_array", "int64_t", "oly_dtype", "int"}},
    {"oly_jit_with", call_oly_jit_with, 5, {"oly_function", "const_char_p", "count", "count", "oly_jit_options"}},
    {"oly_call_n", call_oly_call_n, 5, {"oly_fn", "count", "const_oly_array_p", "count", "oly_array_p_const_p"}},
    {"oly_call_arrays", call_oly_call_arrays, 5, {"oly_fn", "count", "const_oly_array_p", "count", "oly_array_p"}},
    {"oly_apply_n", call_oly_apply_n, 3, {"oly_fn", "count", "const_oly_array_p"}},
    {"oly_fori", call_oly_fori, 6, {"int64_t", "int64_t", "oly_loop_body", "count", "oly_array_p", "void_p"}},
    {"oly_while", call_oly_while, 5, {"oly_while_condition", "oly_while_body", "count", "oly_array_p", "void_p"}},
    {"oly_scan", call_oly_scan, 10, {"int64_t", "bool", "oly_scan_body", "count", "oly_array_p", "count", "const_oly_array_p", "count", "oly_array_p", "void_p"}},
    {"oly_switch", call_oly_switch, 8, {"oly_operand", "count", "const_oly_function_p", "count", "const_oly_array_p", "count", "oly_array_p", "void_p"}},
    {"oly_cond", call_oly_cond, 8, {"oly_operand", "oly_function", "oly_function", "count", "const_oly_array_p", "count", "oly_array_p", "void_p"}},
    {"oly_explain_n", call_oly_explain_n, 4, {"FILE_p", "oly_fn", "count", "const_oly_array_p"}},
    {"oly_explain_as_n", call_oly_explain_as_n, 5, {"FILE_p", "oly_explain_form", "oly_fn", "count", "const_oly_array_p"}},
    {"oly_explain_names", call_oly_explain_names, 2, {"const_char_p", "int"}},
    {"oly_explain_diff", call_oly_explain_diff, 7, {"FILE_p", "oly_fn", "count", "const_oly_array_p", "oly_fn", "count", "const_oly_array_p"}},
    {"oly_costs_n", call_oly_costs_n, 4, {"oly_plan_costs_p", "oly_fn", "count", "const_oly_array_p"}},
};
