/* SPDX-License-Identifier: BSD-3-Clause */
/* The string of choices that a program is drawn from; see program.h. */
#include "program.h"
#include <string.h>

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void choices_from_seed(choices *c, uint64_t seed)
{
    c->n = c->at = 0;
    c->growing = true;
    c->random = seed * 0x2545f4914f6cdd1du;
}

void choices_from_bytes(choices *c, const uint8_t *byte, int n)
{
    c->n = n < MOST_CHOICES ? n : MOST_CHOICES;
    c->at = 0;
    c->growing = false;
    memcpy(c->byte, byte, (size_t)c->n);
}

static int next_byte(choices *c)
{
    if (c->at < c->n)
        return c->byte[c->at++];
    if (!c->growing || c->n == MOST_CHOICES)
        return 0;
    c->byte[c->n++] = (uint8_t)(next_random(&c->random) >> 24);
    return c->byte[c->at++];
}

int below(choices *c, int n)
{
    if (n <= 1)
        return 0;
    int b = next_byte(c);
    if (n > 256)
        b = b << 8 | next_byte(c);
    return b % n;
}

bool one_in(choices *c, int n)
{
    return n <= 1 || below(c, n) == n - 1;
}

bool often(choices *c, int of_256)
{
    return next_byte(c) >= 256 - of_256;
}

int weighted(choices *c, int n, const int *weight)
{
    int total = 0;
    for (int k = 0; k < n; k++)
        total += weight[k];
    int at = below(c, total);
    for (int k = 0; k < n; k++) {
        if (at < weight[k])
            return k;
        at -= weight[k];
    }
    return 0;
}
