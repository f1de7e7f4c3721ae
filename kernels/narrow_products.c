/* SPDX-License-Identifier: BSD-3-Clause */
/* Which instructions for products of bytes and of bfloat16 this processor has: see gemm_bytes.h and gemm_bfloat.h. */
#include "gemm_bfloat.h"
#include "gemm_bytes.h"
#include "table.h"
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_byte_tiles, has_bfloat_tiles;

/* The system saves the registers only for processes that ask, which has to be once. It refuses where the stack of a signal handler is too
 * small for them, and from then on such stacks: so only programs with such products ask. */
static void ask_for_tiles(void)
{
#ifdef OLY_HAS_MATRIX_REGISTERS
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, AMX_BF16 = 1 << 22, AVX512_BF16 = 1 << 5 };
    unsigned a = 0, b = 0, c = 0, d = 0, more = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_TILE) || syscall(SYS_arch_prctl, REQUEST, TILE_DATA) != 0)
        return;
    const unsigned has = d;
    has_byte_tiles = has & AMX_INT8;
    if (__get_cpuid_count(7, 1, &more, &b, &c, &d)) /* which has the instruction that rounds to bfloat16, too */
        has_bfloat_tiles = (has & AMX_BF16) && (more & AVX512_BF16);
#endif
}

static void find_tiles(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_for_tiles);
}

oly_byte_way oly_byte_products(bool with_tiles)
{
    if (strcmp(oly_kernels_isa(), "avx512") != 0)
        return OLY_BYTES_NONE;
    if (with_tiles) {
        find_tiles();
        if (has_byte_tiles)
            return OLY_BYTES_TILES;
    }
    return __builtin_cpu_supports("avx512vnni") ? OLY_BYTES_QUADS : OLY_BYTES_NONE;
}

bool oly_bfloat_products(void)
{
    if (strcmp(oly_kernels_isa(), "avx512") != 0)
        return false;
    find_tiles();
    return has_bfloat_tiles;
}
#else
oly_byte_way oly_byte_products(bool with_tiles)
{
    (void)with_tiles;
    return OLY_BYTES_NONE;
}

bool oly_bfloat_products(void)
{
    return false;
}
#endif
