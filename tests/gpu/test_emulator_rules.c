/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  The emulated GPU notices each breach of a rule, and fails calls on request: programs in processes of their own. */
#include "check.h"
#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>) && __has_include(<cublasLt.h>)
#include "emulator_session.h"
#include <sys/wait.h>
#include <unistd.h>

/* -- breaches: each in a process of its own --------------------------------------------------------------------------------- */

static void touch_from_host(void)
{
    *(volatile float *)memory(64) = 1;
}

static void read_beyond_the_end(void)
{
    launch("toy_affine", NULL, 1, 32, 0, (toy_task){(float *)memory(64), (float *)numbers(), 16 + 2000, 0, 0, 0, 0});
    cuCtxSynchronize();
}

static void write_behind_the_end(void)
{
    CUdeviceptr p = memory(36);
    launch("toy_affine", NULL, 1, 32, 0, (toy_task){(float *)p, (float *)numbers(), 10, 0, 0, 0, 0});
    cuCtxSynchronize();
    cuMemFree(p);
}

static void use_after_free(void)
{
    CUdeviceptr p = numbers();
    DO(cuMemFree(p));
    launch("toy_affine", NULL, 1, 32, 0, (toy_task){(float *)memory(64), (float *)p, 8, 0, 0, 0, 0});
    cuCtxSynchronize();
}

static void free_in_another_stream(void)
{
    CUstream a = stream(), b = stream();
    for (int k = 0; k < 1; k++) { /* at once, whichever comes first */
        CUdeviceptr p;
        CUevent made;
        DO(cuEventCreate(&made, 0));
        DO(cuMemAllocAsync(&p, 64, a));
        DO(cuMemsetD32Async(p, 0, 16, a));
        DO(cuEventRecord(made, a));
        DO(cuStreamWaitEvent(b, made, 0));
        launch("toy_affine", b, 1, 32, 0, (toy_task){(float *)p, (float *)p, 8, 0, 0, 0, 0});
        DO(cuMemFreeAsync(p, a)); /* without waiting for b */
        DO(cuCtxSynchronize());
    }
}

static void read_without_waiting(void)
{
    CUstream a = stream(), b = stream();
    CUdeviceptr p = memory(64), q = memory(64);
    DO(cuMemsetD32Async(p, 0, 16, a));
    DO(cuCtxSynchronize());
    DO(cuMemcpyDtoDAsync(q, p, 64, b)); /* after what the host has waited for */
    DO(cuMemsetD32Async(q, 0, 16, b));
    launch("toy_affine", a, 1, 32, 0, (toy_task){(float *)p, (float *)q, 8, 0, 0, 0, 0});
    DO(cuCtxSynchronize());
}

static void use_before_it_is_there(void)
{
    CUstream a = stream(), b = stream();
    for (int k = 0; k < 50; k++) {
        CUdeviceptr p;
        DO(cuMemAllocAsync(&p, 64, a));
        DO(cuMemsetD32Async(p, 0, 16, b));
        DO(cuCtxSynchronize());
        DO(cuMemFreeAsync(p, b));
    }
}

static void free_twice(void)
{
    CUdeviceptr p = memory(64);
    cuMemFree(p);
    cuMemFree(p);
}

static void wait_for_nothing(void)
{
    CUevent event;
    DO(cuEventCreate(&event, 0));
    cuStreamWaitEvent(stream(), event, 0);
}

static void copy_the_wrong_way(void)
{
    float host[4];
    cuMemcpyDtoH(host, (CUdeviceptr)host, sizeof host);
}

static void copy_too_much(void)
{
    float host[40];
    cuMemcpyDtoH(host, memory(100), sizeof host);
}

static void launch_toy(const char *name, int flaw)
{
    launch(name, NULL, 2, 256, 0, (toy_task){(float *)memory(4096), (float *)numbers(), N, 0, 0, flaw, 0});
    cuCtxSynchronize();
}

static void diverge(void)
{
    launch_toy("toy_diverges", 0);
}

static void leave(void)
{
    launch_toy("toy_leaves", 0);
}

static void not_declared(void)
{
    launch_toy("toy_undeclared", 0);
}

static void race(void)
{
    launch_toy("toy_sum", 1);
}

static void hosts_memory_in_a_kernel(void)
{
    static float host[8];
    launch("toy_affine", NULL, 1, 32, 0, (toy_task){(float *)memory(64), host, 8, 0, 0, 0, 0});
    cuCtxSynchronize();
}

/* Counts the threads; checked for races, in a process whose library may not be. */
#define COUNTING(barrier)                                                                                              \
    "OLY_KERNEL_BLOCK(generated, task) { OLY_SHARED(int32_t, sum, 1); if (oly_thread() == 0) sum[0] = 0; " barrier     \
    "oly_atomic_add(sum, 1); oly_barrier(); if (oly_thread() == 0) task.to[0] = (float)sum[0]; }"

static void race_of_a_generated_kernel(void)
{
    setenv("EMULATED_RACES", "1", 1);
    launch_generated(generate(COUNTING("")), (generated_task){(float *)memory(4), 1});
    cuCtxSynchronize();
}

/* A product of matrices of 32 x 32 floats, by an algorithm found for `told` bytes and dense ones; D lies `beside` bytes farther, and its
 * columns are `apart`. */
static void product_beside(uint32_t told, size_t beside, int64_t apart)
{
    enum { SIDE = 32 };
    float alpha = 1, beta = 0;
    int n = 0;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t dense, result;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    DO(cublasLtCreate(&handle));
    DO(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    DO(cublasLtMatrixLayoutCreate(&dense, CUDA_R_32F, SIDE, SIDE, SIDE));
    DO(cublasLtMatrixLayoutCreate(&result, CUDA_R_32F, SIDE, SIDE, apart));
    DO(cublasLtMatmulPreferenceCreate(&preference));
    if (told)
        DO(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &told,
                                                sizeof told));
    DO(cublasLtMatmulAlgoGetHeuristic(handle, desc, dense, dense, dense, dense, preference, 1, &found, &n));
    assert_int_equal(n, 1);
    CUdeviceptr A = memory(4 * SIDE * SIDE), D = memory(8 * SIDE * SIDE);
    DO(cuMemsetD32(A, 0, SIDE * SIDE));
    DO(cublasLtMatmul(handle, desc, &alpha, (void *)A, dense, (void *)A, dense, &beta, (void *)A, dense,
                      (void *)(D + beside), result, &found.algo, NULL, 0, NULL));
    DO(cuCtxSynchronize());
}

static void product_beside_its_buffer(void)
{
    product_beside(0, 128, 32);
}

static void product_of_worse_aligned_rows(void)
{
    product_beside(16, 0, 33);
}

static void too_many_threads(void)
{
    launch("toy_sum", NULL, 1, 512, 0, (toy_task){0});
    cuCtxSynchronize();
}

static void too_much_shared(void)
{
    launch("toy_reverse", NULL, 1, 32, 100000, (toy_task){0});
}

static void too_little_shared(void)
{
    launch("toy_reverse", NULL, 1, 32, 64, (toy_task){(float *)memory(128), (float *)memory(128), 32, 0, 0, 0, 0});
    cuCtxSynchronize();
}

static void contract(void)
{
    nvrtcProgram program;
    DO(nvrtcCreateProgram(&program, "", "", 0, NULL, NULL));
    nvrtcCompileProgram(program, 0, NULL);
}

/* Runs it in another process; its last words. */
static void last_words(size_t number, void (*breach)(void), const char *setting, char *text, size_t room)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        alarm(20);
        if (setting)
            putenv((char *)setting);
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        begin();
        breach();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < room && (got = read(ends[0], text + n, room - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("breach %zu: status %#x, not ended by the emulator: %s", number, (unsigned)status, text);
}

/* A loop in a graph whose body is one kernel with the handle of a condition. */
static void count_down(CUgraph graph, CUgraphConditionalHandle loops, CUgraphConditionalHandle sets)
{
    CUgraphExec exec;
    CUgraphNode loop, step;
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    p.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){loops, CU_GRAPH_COND_TYPE_WHILE, 1, NULL, context};
    DO(cuGraphAddNode(&loop, graph, NULL, NULL, 0, &p));
    toy_task task = {(float *)numbers(), NULL, 0, 0, 0, 0, sets};
    void *parameters[] = {&task};
    CUDA_KERNEL_NODE_PARAMS body = {
        .func = function("toy_count_down"), 1, 1, 1, 32, 1, 1, 0, parameters, NULL, NULL, NULL};
    DO(cuGraphAddKernelNode(&step, p.conditional.phGraph_out[0], NULL, 0, &body));
    DO(cuGraphInstantiate(&exec, graph, 0));
    DO(cuGraphLaunch(exec, stream()));
    cuCtxSynchronize();
}

static CUgraph graph_with(CUgraphConditionalHandle *handle)
{
    CUgraph graph;
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphConditionalHandleCreate(handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    return graph;
}

static void condition_of_another_graph(void)
{
    CUgraphConditionalHandle own, other;
    CUgraph graph = graph_with(&own);
    graph_with(&other);
    count_down(graph, own, other);
}

static void loop_of_another_graph(void)
{
    CUgraphConditionalHandle own, other;
    CUgraph graph = graph_with(&own);
    graph_with(&other);
    count_down(graph, other, other);
}

static void condition_of_two_loops(void)
{
    CUgraphConditionalHandle own;
    CUgraph graph = graph_with(&own);
    count_down(graph, own, own);
    count_down(graph, own, own);
}

static void condition_outside_of_graphs(void)
{
    CUgraphConditionalHandle own;
    graph_with(&own);
    launch("toy_count_down", NULL, 1, 32, 0, (toy_task){(float *)numbers(), NULL, 0, 0, 0, 0, own});
    cuCtxSynchronize();
}

static void breaches_end_the_process(void **state)
{
    static char races[] = "EMULATED_RACES=1", unchecked[] = "EMULATED_RACES=0", order[] = "EMULATED_ORDER=1";
    static const struct {
        void (*breach)(void);
        char *setting;
        const char *says;
    } all[] = {{touch_from_host, NULL, "the host touches device memory: byte 0 of block"},
               {read_beyond_the_end, NULL, "in kernel toy_affine"},
               {write_behind_the_end, NULL, "block 0 (36 bytes"},
               {use_after_free, NULL, "that has been freed; in kernel toy_affine"},
               {free_in_another_stream, NULL, " freed"},
               {read_without_waiting, order, "nothing orders this with what another stream does"},
               {use_before_it_is_there, NULL, "not allocated yet in stream order"},
               {free_twice, NULL, "is freed twice"},
               {wait_for_nothing, NULL, "the event was never recorded"},
               {copy_the_wrong_way, NULL, "is not memory of a device"},
               {copy_too_much, NULL, "a copy of 160 bytes at byte 0 of block"},
               {diverge, NULL, "threads of a block diverge"},
               {leave, NULL, "has returned"},
               {not_declared, NULL, "OLY_KERNEL_BLOCK"},
               {race, races, "shared memory"},
               {race_of_a_generated_kernel, unchecked, "shared memory"},
               {product_beside_its_buffer, NULL, "aligned worse"},
               {product_of_worse_aligned_rows, NULL, "aligned worse"},
               {hosts_memory_in_a_kernel, races, "neither a device's nor pinned"},
               {too_many_threads, NULL, "at most 256 threads"},
               {too_much_shared, NULL, "cuFuncSetAttribute"},
               {too_little_shared, NULL, "behind the shared memory that the launch asked for is written"},
               {condition_of_another_graph, NULL, "a condition is set outside of its graph; in kernel toy_count_down"},
               {condition_outside_of_graphs, NULL, "a condition is set outside of its graph; in kernel toy_count_down"},
               {loop_of_another_graph, NULL, "a conditional node has the condition of another graph"},
               {condition_of_two_loops, NULL, "a conditional node has the condition of another node"},
               {contract, NULL, "-fmad=false"}};
    char text[4096];
    (void)state;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        last_words(k, all[k].breach, all[k].setting, text, sizeof text);
        if (!strstr(text, all[k].says) || !strstr(text, "EMULATED_SEED="))
            fail_msg("breach %zu: '%s' does not say '%s'", k, text, all[k].says);
    }
}

/* -- faults on request: in processes of their own, too ------------------------------------------------------------------------ */

static int status_of(int (*program)(void), const char *setting)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        putenv((char *)setting);
        _exit(program());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int second_allocation(void)
{
    CUdeviceptr p;
    begin();
    return cuMemAlloc(&p, 8) == CUDA_SUCCESS && cuMemAlloc(&p, 8) == CUDA_ERROR_OUT_OF_MEMORY &&
           cuMemAlloc(&p, 8) == CUDA_SUCCESS;
}

static int all_from_the_second(void)
{
    CUdeviceptr p;
    begin();
    return cuMemAlloc(&p, 8) == CUDA_SUCCESS && cuMemAlloc(&p, 8) == CUDA_ERROR_OUT_OF_MEMORY &&
           cuMemAlloc(&p, 8) == CUDA_ERROR_OUT_OF_MEMORY;
}

/* The call succeeds, the device fails, and stays so. */
static int first_launch(void)
{
    begin();
    launch("toy_affine", NULL, 1, 32, 0, (toy_task){0});
    return cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED && cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED;
}

static int lost(void)
{
    begin();
    CUdeviceptr p;
    for (int k = 0; k < 30; k++)
        if (cuMemAlloc(&p, 8) == CUDA_ERROR_DEVICE_UNAVAILABLE)
            return k > 10 && cuCtxSynchronize() == CUDA_ERROR_DEVICE_UNAVAILABLE;
    return 0;
}

static int small(void)
{
    CUdeviceptr p;
    begin();
    return cuMemAlloc(&p, 60000) == CUDA_SUCCESS && cuMemAlloc(&p, 60000) == CUDA_ERROR_OUT_OF_MEMORY;
}

static int devices(void)
{
    int n = 0;
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&n) == CUDA_SUCCESS
               ? n
               : 100 + (cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

static int visible(void)
{
    setenv("EMULATED_GPUS", "4", 1);
    return devices();
}

static void faults_come_on_request(void **state)
{
    (void)state;
    assert_int_equal(status_of(second_allocation, "EMULATED_FAIL=alloc:2"), 1);
    assert_int_equal(status_of(all_from_the_second, "EMULATED_FAIL=alloc:2+"), 1);
    assert_int_equal(status_of(second_allocation, "EMULATED_FAIL=alloc:2@3"), 0);
    assert_int_equal(status_of(first_launch, "EMULATED_FAIL=launch:1"), 1);
    assert_int_equal(status_of(lost, "EMULATED_FAIL=lost:20"), 1);
    assert_int_equal(status_of(small, "EMULATED_MEMORY=100000"), 1);
    assert_int_equal(status_of(devices, "EMULATED_GPUS=3"), 3);
    assert_int_equal(status_of(devices, "EMULATED_GPUS=0"), 101);
    assert_int_equal(status_of(visible, "CUDA_VISIBLE_DEVICES=2,0"), 2);
    assert_int_equal(status_of(visible, "CUDA_VISIBLE_DEVICES="), 101);
    assert_int_equal(status_of(visible, "CUDA_VISIBLE_DEVICES=1,7,2"), 1);
}

/* -- in processes of their own, since what is loaded stays ---------------------------------------------------------------- */

/* A kernel of the library and a generated one, both with plain and atomic accesses to the same bytes of shared memory, of which only one
 * tells of the plain ones: that one was loaded does not make the other's bytes look as if nobody had written them. */
static int checked_beside_unchecked(const char *generated_races)
{
    float host[5];
    begin();
    setenv("EMULATED_RACES", generated_races, 1);
    CUmodule made = generate(COUNTING("oly_barrier();"));
    CUdeviceptr to = memory(sizeof host);
    for (int k = 0; k < 2; k++) {
        launch("toy_votes", NULL, 1, 64, 0, (toy_task){(float *)to, NULL, 0, 0, 0, 0, 0});
        launch_generated(made, (generated_task){(float *)to + 4, 1});
    }
    DO(cuMemcpyDtoH(host, to, sizeof host));
    return host[0] == 32 && host[3] == 64 && host[4] == 32;
}

static int generated_is_checked(void)
{
    return checked_beside_unchecked("1");
}

static int library_is_checked(void)
{
    return checked_beside_unchecked("0");
}

/* What the program keeps on disk is kept by NVRTC's version: images of both kinds, side by side. */
static int versions_differ(void)
{
    int major, minor, other;
    DO(nvrtcVersion(&major, &minor));
    setenv("EMULATED_RACES", "0", 1);
    DO(nvrtcVersion(&major, &other));
    return minor != other;
}

static void checked_kernels_run_beside_unchecked_ones(void **state)
{
    (void)state;
    assert_int_equal(status_of(generated_is_checked, "EMULATED_RACES=0"), 1);
    assert_int_equal(status_of(library_is_checked, "EMULATED_RACES=1"), 1);
    assert_int_equal(status_of(versions_differ, "EMULATED_RACES=1"), 1);
}

static int product_of_small_rows(void)
{
    begin();
    product_beside(0, 0, 32); /* of 128 bytes: what is told, 256 bytes, is of buffers */
    product_beside(16, 48, 36);
    return 1;
}

static void products_need_aligned_buffers_only(void **state)
{
    (void)state;
    assert_int_equal(status_of(product_of_small_rows, "EMULATED_RACES=0"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(breaches_end_the_process),
                                       cmocka_unit_test(faults_come_on_request),
                                       cmocka_unit_test(checked_kernels_run_beside_unchecked_ones),
                                       cmocka_unit_test(products_need_aligned_buffers_only)};
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
