/* SPDX-License-Identifier: BSD-3-Clause */
/* 64-bit fingerprints of memory; the same on every rank of one architecture. Not cryptographic. */
#ifndef OLY_CORE_HASH_H
#define OLY_CORE_HASH_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t oly_hash(uint64_t seed, const void *bytes, size_t n);
static inline uint64_t oly_hash_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}
static inline uint64_t oly_hash_text(uint64_t seed, const char *text)
{
    return oly_hash(seed, text, strlen(text));
}
#endif
