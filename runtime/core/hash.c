/* SPDX-License-Identifier: BSD-3-Clause */
/* Fingerprints: 8 bytes per step through oly_hash_mix, whose multiplication spreads each bit upward and whose
 * shift brings the upper bits down. Callable from every layer. */
#include "core/hash.h"

/* Each step depends on the multiplication before it: longer memory is hashed in independent lanes. */
enum { LANES = 4 };

static uint64_t hash_lanes(uint64_t h, const unsigned char **at, size_t *n)
{
    uint64_t lane[LANES] = {h, h + 1, h + 2, h + 3}, word[LANES];
    for (; *n >= sizeof word; *n -= sizeof word, *at += sizeof word) {
        memcpy(word, *at, sizeof word);
        for (int k = 0; k < LANES; k++)
            lane[k] = oly_hash_mix(lane[k], word[k]);
    }
    for (int k = 1; k < LANES; k++)
        lane[0] = oly_hash_mix(lane[0], lane[k]);
    return lane[0];
}

uint64_t oly_hash(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t h = oly_hash_mix(seed ^ 0xA0761D6478BD642Full, n);
    if (n >= 4 * LANES * 8)
        h = hash_lanes(h, &at, &n);
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = oly_hash_mix(h, word);
    }
    if (n) {
        uint64_t rest = 0;
        memcpy(&rest, at, n);
        h = oly_hash_mix(h, rest);
    }
    return oly_hash_mix(h, 0x8EBC6AF09C88C6E3ull);
}
