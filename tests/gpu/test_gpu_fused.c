/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Generated kernels of elementwise groups give the CPU's bits; the real NVRTC, where it is, compiles them for every GPU. FUSED=all:
 * every operation of every type (minutes), and more random programs. */
#include "drawn_program.h"
#include "collected_kernels.h"
#include "device/cuda/embedded.h"

/* A library built without CUDA has none. */
extern const oly_embedded oly_cuda_headers[] __attribute__((weak));

enum { N = 300 };

/* -- random programs ---------------------------------------------------------------------------------------------------------------- */

static void random_programs(void **state)
{
    (void)state;
    need_kernels();
    static drawn g[150];
    int n = getenv("FUSED") ? 150 : 40;
    collected_begin();
    for (int k = 0; k < n; k++) {
        draw(&g[k]);
        for (int c = 0, chunks = oly_tile_chunks(&g[k].program, &g[k].box); c < chunks; c++)
            oly_tile_run(&g[k].program, &g[k].box, g[k].loads, g[k].stores, c, chunks);
        assert_int_equal(oly_cuda_tile(&collecting, &g[k].program, &g[k].box, g[k].loads, g[k].others), OLY_OK);
    }
    assert_true(collected.n_kernels > n * 9 / 10);
    collected_run();
    for (int k = 0; k < n; k++) {
        for (int s = 0; s < g[k].program.n_stores; s++) {
            int64_t at = first_difference((oly_dtype)g[k].store_types[s], g[k].elements[4 + s], g[k].stores[s].base,
                                          g[k].others[s].base);
            if (at >= 0)
                fail_msg("program %d, store %d differs at %d", k, s, (int)at);
        }
        free_drawn(&g[k]);
    }
    free_kept();
}

/* -- operations: several of a type in a program, whose results are all stored --------------------------------------------------------- */

enum { OPERATIONS = 12 };
typedef struct sample {
    oly_tile_instruction code[OPERATIONS];
    int16_t load_at[2], store_at[OPERATIONS];
    uint8_t load_types[2], store_types[OPERATIONS];
    oly_tile_program program;
    oly_tile_operand loads[2], cpu[OPERATIONS], gpu[OPERATIONS];
} sample;

static sample *begin_sample(oly_dtype d)
{
    sample *s = calloc(1, sizeof *s);
    for (int k = 0; k < 2; k++) {
        s->load_at[k] = (int16_t)k;
        s->load_types[k] = (uint8_t)d;
        s->loads[k] = (oly_tile_operand){random_array(d, N), {1}};
    }
    s->program = (oly_tile_program){0, s->code, 2, 0, s->load_at, s->load_types, s->store_at, s->store_types, 2};
    return s;
}

static void add_operation(sample *s, const row *r, oly_dtype d)
{
    int k = s->program.n_instructions++;
    oly_dtype to = result_of(r, d);
    s->code[k] = (oly_tile_instruction){
        .op = (uint16_t)r->op, .dtype = d, .to = to, .in = {0, r->operands > 1 ? 1 : -1, -1}, .out = (int16_t)(2 + k)};
    s->store_at[k] = (int16_t)(2 + k);
    s->store_types[k] = (uint8_t)to;
    s->cpu[k] = (oly_tile_operand){random_array(to, N), {1}};
    s->gpu[k] = (oly_tile_operand){random_array(to, N), {1}};
    s->program.n_stores++;
    s->program.n_registers = 3 + k;
}

/* Functions of complex numbers may differ in the last bits; a test of the interpreter compares them. */
static void compare_sample(const sample *s)
{
    for (int k = 0; k < s->program.n_stores; k++) {
        oly_dtype to = (oly_dtype)s->store_types[k];
        int64_t at = first_difference(to, N, s->cpu[k].base, s->gpu[k].base);
        if (at >= 0 && s->load_types[0] < OLY_COMPLEX64)
            fail_msg("operation %d of %s differs at %d", s->code[k].op, oly_dtype_name((oly_dtype)s->load_types[0]),
                     (int)at);
    }
}

static void operations(void **state)
{
    static sample *samples[MOST_COLLECTED];
    int n = 0;
    oly_tile_box box = {.rank = 1, .extent = {N}, .whole = {N}};
    (void)state;
    need_kernels();
    collected_begin();
    for (int d = 0; d < OLY_N_DTYPES; d++) {
        int in_sample = OPERATIONS;
        bool some = d == OLY_FLOAT32 || d == OLY_INT16 || d == OLY_BOOL || d == OLY_BFLOAT16;
        if (!some && !getenv("FUSED"))
            continue;
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            if (!rows[k].types[d] || (rows[k].op == OLY_TILE_complex && d != OLY_FLOAT32 && d != OLY_FLOAT64))
                continue;
            if (in_sample == OPERATIONS) {
                samples[n++] = begin_sample((oly_dtype)d);
                in_sample = 0;
            }
            add_operation(samples[n - 1], &rows[k], (oly_dtype)d);
            in_sample++;
        }
    }
    for (int k = 0; k < n; k++) {
        oly_tile_run(&samples[k]->program, &box, samples[k]->loads, samples[k]->cpu, 0, 1);
        assert_int_equal(oly_cuda_tile(&collecting, &samples[k]->program, &box, samples[k]->loads, samples[k]->gpu),
                         OLY_OK);
    }
    collected_run();
    for (int k = 0; k < n; k++) {
        compare_sample(samples[k]);
        for (int i = 0; i < samples[k]->program.n_stores; i++)
            free(samples[k]->cpu[i].base), free(samples[k]->gpu[i].base);
        free(samples[k]->loads[0].base), free(samples[k]->loads[1].base), free(samples[k]);
    }
}

/* -- the real compiler ------------------------------------------------------------------------------------------------------------------ */

static void *real_nvrtc(void)
{
    static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
    const char *home = getenv("CUDA_HOME");
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/libnvrtc.so.13", home ? home : "/usr/local/cuda", folders[k]);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

typedef struct _nvrtcProgram *program;
static void compile_for(void *library, const char *arch)
{
    int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(program, int, const char *const *), (*log_of)(program, char *), (*destroy)(program *);
    *(void **)&create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&log_of = dlsym(library, "nvrtcGetProgramLog");
    *(void **)&destroy = dlsym(library, "nvrtcDestroyProgram");
    const char *text[32], *name[32],
        *options[] = {arch, "-fmad=false", "--std=c++17", "--device-int128", "-default-device"};
    static char log[1 << 20];
    int n = 0;
    for (const oly_embedded *e = oly_cuda_headers; e->name; e++, n++) {
        text[n] = (const char *)e->begin;
        name[n] = e->name;
    }
    program p;
    assert_int_equal(create(&p, collected.text.chars, "group.cu", n, text, name), 0);
    if (compile(p, sizeof options / sizeof *options, options) != 0) {
        log_of(p, log);
        fail_msg("%s: %.2000s", arch, log);
    }
    destroy(&p);
}

static void real_compiler(void **state)
{
    (void)state;
    void *library = oly_nvrtc_compile ? real_nvrtc() : NULL;
    if (!library) {
        printf("skipped: no NVRTC in CUDA_HOME\n");
        skip();
    }
    collected_begin();
    random_state = 77;
    for (int k = 0; k < 6; k++) {
        drawn g;
        draw(&g);
        assert_int_equal(oly_cuda_tile(&collecting, &g.program, &g.box, g.loads, g.others), OLY_OK);
        free_drawn(&g);
    }
    compile_for(library, "--gpu-architecture=sm_75");
    compile_for(library, "--gpu-architecture=sm_90");
    compile_for(library, "--gpu-architecture=sm_120");
    collected_begin();
}

int main(void)
{
    /* The real one first: its functions have the names of the emulated ones. */
    const struct CMUnitTest tests[] = {cmocka_unit_test(real_compiler), cmocka_unit_test(random_programs),
                                       cmocka_unit_test(operations)};
    return CHECK_MAIN(tests);
}
