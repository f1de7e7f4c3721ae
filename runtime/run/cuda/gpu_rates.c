/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates of GPUs from facts of the driver. See gpu_rates.h. */
#include "run/cuda/gpu_rates.h"
#include <ctype.h>
#include <stdio.h>

/* What a multiprocessor of a generation has: lanes for float32; floating-point operations of products in a clock, in float64 and, on
 * tensor units, in float16; and bytes per second of NVLink in one direction. */
typedef struct generation {
    int from; /* compute capability: 10 * major + minor */
    double lanes32, flops64, flops16, link;
} generation;
static const generation generations[] = {
    {0, 128, 8, 256, 20e9},      {70, 64, 64, 1024, 150e9},    {75, 64, 4, 1024, 50e9},
    {80, 64, 128, 2048, 300e9},  {86, 128, 4, 1024, 56e9},     {89, 128, 4, 1024, 56e9},
    {90, 128, 256, 4096, 450e9}, {100, 128, 128, 8192, 900e9}, {120, 128, 4, 1024, 56e9}};

static generation generation_of(const oly_gpu *g)
{
    size_t k = sizeof generations / sizeof *generations - 1;
    while (k > 0 && generations[k].from > 10 * g->major + g->minor)
        k--;
    return generations[k];
}

/* A number at the start of a file of the kernel's about a device on the PCI bus; 0: it does not say. */
static double pci_fact(const oly_gpu *g, const char *what)
{
    char path[96], id[sizeof g->pci];
    double value = 0;
    size_t n = 0;
    for (; g->pci[n]; n++)
        id[n] = (char)tolower((unsigned char)g->pci[n]);
    id[n] = 0;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", id, what);
    FILE *file = *id ? fopen(path, "r") : NULL;
    if (file && fscanf(file, "%lf", &value) != 1) /* "32.0 GT/s PCIe" */
        value = 0;
    if (file)
        fclose(file);
    return value;
}

/* At most, as an idle card slows its link down; about 0.86 of it are bytes of copies. */
static double pci_rate(const oly_gpu *g)
{
    double transfers = pci_fact(g, "max_link_speed"), width = pci_fact(g, "max_link_width");
    return transfers > 0 && width > 0 && width <= 32 ? transfers * 1e9 * width / 8 * 0.86 : 12e9;
}

oly_gpu_rates oly_gpu_rates_of(const oly_gpu *g)
{
    generation of = generation_of(g);
    double clock = g->clock > 0 ? g->clock * 1e3 : OLY_GPU_CLOCK, n = g->processors > 0 ? g->processors : 1;
    double nominal = 2.0 * g->memory_clock * 1e3 * g->bus / 8; /* two transfers in a clock */
    double float32 = n * of.lanes32 * 2 * clock, tensor = n * of.flops16 * clock * OLY_GPU_TENSOR_PRODUCT;
    oly_gpu_rates r = {.start = OLY_GPU_KERNEL,
                       .ramp = OLY_GPU_RAMP,
                       .memory = nominal > 0 ? nominal * OLY_GPU_COPIES : OLY_GPU_MEMORY,
                       .cache = g->cache / 2.0,
                       .lanes = n * 128 * clock,
                       .processors = n,
                       .flops32 = float32,
                       .flops64 = n * of.flops64 * clock,
                       .pci = pci_rate(g),
                       .link = of.link * 0.8};
    r.product[OLY_FLOAT32] = r.product[OLY_COMPLEX64] = float32 * OLY_GPU_PRODUCT;
    r.product[OLY_FLOAT64] = r.product[OLY_COMPLEX128] = r.flops64 * OLY_GPU_PRODUCT;
    r.product[OLY_FLOAT16] = r.product[OLY_BFLOAT16] = tensor;
    return r;
}

void oly_gpu_rates_text(oly_text *t, const oly_gpu *g, const oly_gpu_rates *r)
{
    oly_text_add(
        t,
        "%s: copies %.0f GB/s, products %.3g Tflop/s in float32, %.3g in float64, %.3g in bfloat16, PCI %.0f GB/s, "
        "a kernel %.1f us, a call %.1f us (%.1f us if nothing waits for it)",
        g->name, r->memory / 1e9, r->product[OLY_FLOAT32] / 1e12, r->product[OLY_FLOAT64] / 1e12,
        r->product[OLY_BFLOAT16] / 1e12, r->pci / 1e9, OLY_GPU_KERNEL * 1e6, OLY_GPU_CALL * 1e6, OLY_GPU_PENDING * 1e6);
}

/* -- instructions ---------------------------------------------------------------------------------------------------------- */

static double clocks_in_float32(int op)
{
    switch (op) {
    case OLY_TILE_splat:
    case OLY_TILE_iota:
    case OLY_TILE_copy: return 0.5;
    case OLY_TILE_div:
    case OLY_TILE_sqrt:
    case OLY_TILE_rsqrt: return 10;
    case OLY_TILE_exp:
    case OLY_TILE_exp2:
    case OLY_TILE_log:
    case OLY_TILE_rough_log:
    case OLY_TILE_sigmoid: return 15;
    case OLY_TILE_sin:
    case OLY_TILE_cos:
    case OLY_TILE_tanh:
    case OLY_TILE_erf:
    case OLY_TILE_expm1:
    case OLY_TILE_rem: return 30;
    case OLY_TILE_asin:
    case OLY_TILE_acos:
    case OLY_TILE_atan:
    case OLY_TILE_sinh:
    case OLY_TILE_cosh:
    case OLY_TILE_cbrt: return 45;
    case OLY_TILE_log1p:
    case OLY_TILE_asinh:
    case OLY_TILE_acosh:
    case OLY_TILE_atanh: return 60;
    case OLY_TILE_tan:
    case OLY_TILE_atan2:
    case OLY_TILE_erf_inv: return 100;
    case OLY_TILE_erfc:
    case OLY_TILE_pow: return 130;
    case OLY_TILE_logaddexp: return 280;
    case OLY_TILE_digamma: return 390;
    case OLY_TILE_lgamma: return 500;
    case OLY_TILE_threefry2x32:
    case OLY_TILE_random_bits: return 50;
    default: return 1.5;
    }
}

/* Narrow floating-point types are widened and rounded by every instruction; float64 has half the lanes or fewer; complex numbers have
 * two parts. */
double oly_gpu_clocks(const oly_tile_instruction *c)
{
    double clocks = clocks_in_float32(c->op);
    if (c->op == OLY_TILE_splat || c->op == OLY_TILE_iota || c->op == OLY_TILE_copy)
        return clocks;
    switch (c->dtype) {
    case OLY_FLOAT8_E4M3FN:
    case OLY_FLOAT8_E5M2: return clocks + 20;
    case OLY_FLOAT16: return clocks + 3;
    case OLY_BFLOAT16: return clocks + 5;
    case OLY_BOOL:
    case OLY_INT8:
    case OLY_UINT8: return clocks + 1.5;
    case OLY_INT64:
    case OLY_UINT64: return 2 * clocks;
    case OLY_FLOAT64: return clocks > 2 ? 4 * clocks : 2 * clocks;
    case OLY_COMPLEX64: return clocks > 2 ? 15 * clocks : 3 * clocks;
    case OLY_COMPLEX128: return clocks > 2 ? 20 * clocks : 6 * clocks;
    default: return clocks;
    }
}
