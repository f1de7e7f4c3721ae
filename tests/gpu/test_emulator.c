/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  The emulated GPU computes what kernels, libraries and graphs say, in any order that events allow. */
#include "check.h"
#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>) && __has_include(<cublasLt.h>)
#include "emulator_session.h"

/* -- what it computes ----------------------------------------------------------------------------------------------------- */

static void kernels_compute(void **state)
{
    float host[N];
    (void)state;
    begin();
    CUdeviceptr from = numbers(), to = memory(sizeof host);
    CUstream s = stream();
    launch("toy_affine", s, 3, 64, 0, (toy_task){(float *)to, (float *)from, N, 2, 1, 0, 0});
    DO(cuMemcpyDtoHAsync(host, to, sizeof host, s));
    DO(cuStreamSynchronize(s));
    for (int i = 0; i < N; i++)
        assert_true(host[i] == 2 * (float)i + 1);
    launch("toy_sum", s, 4, 256, 0, (toy_task){(float *)to, (float *)from, N, 0, 0, 0, 0});
    launch("toy_votes", s, 1, 64, 0, (toy_task){(float *)to + 4, NULL, 0, 0, 0, 0, 0});
    DO(cuMemcpyDtoHAsync(host, to, 8 * sizeof *host, s));
    DO(cuStreamSynchronize(s));
    assert_true(host[0] + host[1] + host[2] + host[3] == N * (N - 1) / 2);
    assert_true(host[4] == 32 && host[5] == 1 && host[6] == 1 && host[7] == 64);
    launch("toy_reverse", s, 5, 100, 400, (toy_task){(float *)to, (float *)from, N, 0, 0, 0, 0});
    DO(cuMemcpyDtoHAsync(host, to, 500 * sizeof *host, s));
    DO(cuStreamSynchronize(s));
    for (int i = 0; i < 500; i++)
        assert_true(host[i] == (float)(i / 100 * 100 + 99 - i % 100));
    DO(cuMemFree(from));
    DO(cuMemFree(to));
    DO(cuStreamDestroy(s));
    end();
}

/* Two streams, one of which reads what the other writes: 1 with an event between; otherwise both values turn up. */
static int read_beside(bool wait, CUstream a, CUstream b, CUdeviceptr p, CUdeviceptr q)
{
    float got = -1;
    CUevent event;
    DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    DO(cuMemsetD32(p, 0, 1));
    DO(cuCtxSynchronize());
    DO(cuMemsetD32Async(p, 0x3f800000, 1, a)); /* 1 */
    DO(cuEventRecord(event, a));
    if (wait)
        DO(cuStreamWaitEvent(b, event, 0));
    DO(cuMemcpyDtoDAsync(q, p, sizeof got, b));
    DO(cuStreamSynchronize(b));
    DO(cuMemcpyDtoH(&got, q, sizeof got));
    DO(cuCtxSynchronize());
    DO(cuEventDestroy(event));
    return (int)got;
}

static void streams_keep_to_events_only(void **state)
{
    int ones = 0, ones_without = 0;
    (void)state;
    begin();
    CUstream a = stream(), b = stream();
    CUdeviceptr p = memory(64), q = memory(64);
    for (int k = 0; k < 200; k++) {
        ones += read_beside(true, a, b, p, q);
        ones_without += read_beside(false, a, b, p, q);
    }
    assert_int_equal(ones, 200);
    assert_in_range(ones_without, 1, 199);
    DO(cuMemFree(p));
    DO(cuMemFree(q));
    DO(cuStreamDestroy(a));
    DO(cuStreamDestroy(b));
    end();
}

static void pinned_memory_is_written_late(void **state)
{
    float *host, other[4];
    (void)state;
    begin();
    CUstream s = stream();
    CUdeviceptr p = memory(16);
    DO(cuMemHostAlloc((void **)&host, 16, 0));
    host[0] = -1;
    DO(cuMemsetD32Async(p, 0x3f800000, 4, s));
    DO(cuMemcpyDtoHAsync(host, p, 16, s));
    assert_true(host[0] == -1);
    for (CUresult r = CUDA_ERROR_NOT_READY; r != CUDA_SUCCESS;) { /* asking is enough */
        r = cuStreamQuery(s);
        assert_true(r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY);
    }
    assert_true(host[0] == 1);
    DO(cuMemsetD32Async(p, 0x40000000, 4, s));
    DO(cuMemcpyDtoHAsync(other, p, 16, s));
    assert_true(other[3] == 2); /* pageable: there when the call returns */
    DO(cuMemFreeHost(host));
    DO(cuMemFree(p));
    DO(cuStreamDestroy(s));
    end();
}

static void graphs_repeat_with_new_tasks(void **state)
{
    float host[N];
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[2];
    size_t n = 2;
    (void)state;
    begin();
    CUdeviceptr from = numbers(), to = memory(sizeof host);
    CUstream s = stream();
    DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch("toy_affine", s, 3, 64, 0, (toy_task){(float *)to, (float *)from, N, 2, 1, 0, 0});
    launch("toy_affine", s, 3, 64, 0, (toy_task){(float *)to, (float *)to, N, 1, 1, 0, 0});
    DO(cuStreamEndCapture(s, &graph));
    DO(cuGraphGetNodes(graph, nodes, &n));
    assert_int_equal(n, 2);
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphLaunch(exec, s));
    DO(cuMemcpyDtoHAsync(host, to, sizeof host, s));
    assert_true(host[10] == 22);
    toy_task other = {(float *)to, (float *)from, N, 3, 0, 0, 0};
    void *parameters[] = {&other};
    CUDA_KERNEL_NODE_PARAMS p = {.func = function("toy_affine"), 3, 1, 1, 64, 1, 1, 0, parameters, NULL, NULL, NULL};
    DO(cuGraphLaunch(exec, s)); /* as it was */
    DO(cuMemcpyDtoDAsync(from, to, 4, s));
    DO(cuGraphExecKernelNodeSetParams(exec, nodes[0], &p));
    DO(cuGraphLaunch(exec, s));
    DO(cuMemcpyDtoHAsync(host, to, sizeof host, s));
    assert_true(host[0] == 3 * 2 + 1 && host[10] == 31);
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    DO(cuMemFree(from));
    DO(cuMemFree(to));
    DO(cuStreamDestroy(s));
    end();
}

static void loops_in_graphs_need_no_host(void **state)
{
    float host[2] = {0, 7};
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode loop, step;
    CUgraphConditionalHandle handle;
    (void)state;
    begin();
    CUdeviceptr p = memory(sizeof host);
    CUstream s = stream();
    DO(cuMemcpyHtoD(p, host, sizeof host));
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphConditionalHandleCreate(&handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams conditional = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    conditional.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){handle, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, context};
    DO(cuGraphAddNode(&loop, graph, NULL, NULL, 0, &conditional));
    toy_task task = {(float *)p, NULL, 0, 0, 0, 0, handle};
    void *parameters[] = {&task};
    CUDA_KERNEL_NODE_PARAMS body = {
        .func = function("toy_count_down"), 1, 1, 1, 32, 1, 1, 0, parameters, NULL, NULL, NULL};
    DO(cuGraphAddKernelNode(&step, conditional.conditional.phGraph_out[0], NULL, 0, &body));
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphLaunch(exec, s));
    DO(cuMemcpyDtoHAsync(host, p, sizeof host, s));
    assert_true(host[0] == 7 && host[1] == 0);
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
    DO(cuMemFree(p));
    DO(cuStreamDestroy(s));
    end();
}

static void generated_kernels_run(void **state)
{
    nvrtcProgram program;
    size_t bytes;
    float host[3];
    (void)state;
    begin();
    CUmodule made = generate("OLY_KERNEL(generated, task) { if (oly_index() < task.n) task.to[oly_index()] = WHAT; }");
    generated_task task = {(float *)memory(sizeof host), 3};
    launch_generated(made, task);
    DO(cuMemcpyDtoH(host, (CUdeviceptr)task.to, sizeof host));
    assert_true(host[0] == 5 && host[2] == 5);
    DO(nvrtcCreateProgram(&program, "this is no program", "wrong.cu", 0, NULL, NULL));
    assert_int_equal(nvrtcCompileProgram(program, 2, options), NVRTC_ERROR_COMPILATION);
    DO(nvrtcGetProgramLogSize(program, &bytes));
    assert_true(bytes > 20);
    DO(nvrtcDestroyProgram(&program));
    DO(cuMemFree((CUdeviceptr)task.to));
    DO(cuModuleUnload(made));
    end();
}

/* relu(2 A B' + bias) of two batches; row i of D has bias[i]. */
static void products_are_sums_from_the_front(void **state)
{
    enum { M = 3, INNER = 5, COLUMNS = 2, BATCHES = 2 };
    float a[BATCHES][INNER][M], b[BATCHES][INNER][COLUMNS], bias[M] = {-30, 1, 2}, got[BATCHES][COLUMNS][M];
    for (int i = 0; i < BATCHES * INNER * M; i++)
        (&a[0][0][0])[i] = 0.1f * (float)(i + 1);
    for (int i = 0; i < BATCHES * INNER * COLUMNS; i++)
        (&b[0][0][0])[i] = (float)(3 - i) / 7;
    (void)state;
    begin();
    CUdeviceptr A = memory(sizeof a), B = memory(sizeof b), D = memory(sizeof got), V = memory(sizeof bias);
    DO(cuMemcpyHtoD(A, a, sizeof a));
    DO(cuMemcpyHtoD(B, b, sizeof b));
    DO(cuMemcpyHtoD(V, bias, sizeof bias));
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t la, lb, ld;
    float alpha = 2, beta = 0;
    int transposed = CUBLAS_OP_T, epilogue = CUBLASLT_EPILOGUE_RELU_BIAS, batches = BATCHES, row = CUBLASLT_ORDER_ROW;
    DO(cublasLtCreate(&handle));
    DO(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    DO(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    DO(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &V, sizeof V));
    DO(cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, M, INNER, M));
    DO(cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, INNER, COLUMNS, COLUMNS));
    DO(cublasLtMatrixLayoutCreate(&ld, CUDA_R_32F, M, COLUMNS, M));
    DO(cublasLtMatrixLayoutSetAttribute(lb, CUBLASLT_MATRIX_LAYOUT_ORDER, &row, sizeof row));
    const cublasLtMatrixLayout_t all[] = {la, lb, ld};
    const int64_t strides[] = {M * INNER, INNER * COLUMNS, M * COLUMNS};
    for (int k = 0; k < 3; k++) {
        DO(cublasLtMatrixLayoutSetAttribute(all[k], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches));
        DO(cublasLtMatrixLayoutSetAttribute(all[k], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides[k], 8));
    }
    DO(cublasLtMatmul(handle, desc, &alpha, (void *)A, la, (void *)B, lb, &beta, (void *)D, ld, (void *)D, ld, NULL,
                      NULL, 0, NULL));
    DO(cuMemcpyDtoH(got, D, sizeof got));
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < COLUMNS; j++) {
                volatile float sum = 0;
                for (int n = 0; n < INNER; n++) {
                    volatile float product = a[k][n][i] * b[k][n][j];
                    sum = sum + product;
                }
                sum = 2 * sum;
                sum = sum + bias[i];
                assert_true(got[k][j][i] == (sum > 0 ? sum : 0));
            }
    DO(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    assert_int_equal(cublasLtMatmul(handle, desc, &alpha, (void *)A, la, (void *)B, lb, &beta, (void *)D, ld, (void *)D,
                                    ld, NULL, NULL, 0, NULL),
                     CUBLAS_STATUS_INVALID_VALUE);
    for (int k = 0; k < 3; k++)
        DO(cublasLtMatrixLayoutDestroy(all[k]));
    DO(cublasLtMatmulDescDestroy(desc));
    DO(cublasLtDestroy(handle));
    DO(cuMemFree(A));
    DO(cuMemFree(B));
    DO(cuMemFree(D));
    DO(cuMemFree(V));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_compute),
                                       cmocka_unit_test(streams_keep_to_events_only),
                                       cmocka_unit_test(pinned_memory_is_written_late),
                                       cmocka_unit_test(graphs_repeat_with_new_tasks),
                                       cmocka_unit_test(loops_in_graphs_need_no_host),
                                       cmocka_unit_test(generated_kernels_run),
                                       cmocka_unit_test(products_are_sums_from_the_front)};
    return CHECK_MAIN(tests);
}
#else
static void needs_headers(void **state)
{
    (void)state;
    print_message("skipped: built without CUDA's headers\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needs_headers)};
    return CHECK_MAIN(tests);
}
#endif
