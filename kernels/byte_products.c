/* SPDX-License-Identifier: BSD-3-Clause */
/* Which instructions for products of bytes this processor has: see gemm_bytes.h. */
#include "gemm_bytes.h"
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool granted;

static bool has_byte_tiles(void)
{
    enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_TILE) && (d & AMX_INT8);
}

/* The system saves the registers only for processes that ask, which has to be once. It refuses where the stack of a signal handler is too
 * small for them, and from then on such stacks: so only programs with such products ask. */
static void ask_for_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    granted = has_byte_tiles() && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

oly_byte_way oly_byte_products(bool with_tiles)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (strcmp(oly_kernels_isa(), "avx512") != 0)
        return OLY_BYTES_NONE;
    if (with_tiles) {
        pthread_once(&once, ask_for_tiles);
        if (granted)
            return OLY_BYTES_TILES;
    }
    return __builtin_cpu_supports("avx512vnni") ? OLY_BYTES_QUADS : OLY_BYTES_NONE;
}
#else
oly_byte_way oly_byte_products(bool with_tiles)
{
    (void)with_tiles;
    return OLY_BYTES_NONE;
}
#endif
