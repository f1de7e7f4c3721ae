/* Fingerprints: 8 bytes a step through oly_hash_mix, whose multiplication spreads each bit upward and whose
 * shift brings the upper bits down. Callable from every layer. */
#include "core/hash.h"

uint64_t oly_hash(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t h = oly_hash_mix(seed ^ 0xA0761D6478BD642Full, n);
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
