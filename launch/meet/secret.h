/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared secret of a meeting, and what is computed from it. Used by olymeet; HMAC-SHA256 is libcrypto's. */
#ifndef OLYMEET_SECRET_H
#define OLYMEET_SECRET_H
#include <stdbool.h>
#include <stddef.h>

enum { PROOF = 32, NONCE = 32 };

/* Takes the secret from OLYMPUS_SECRET, else from the file OLYMPUS_SECRET_FILE (regular, of this user or root, mode 600 or less),
 * else, with `loopback`, from a file of this user in its cache folder, which is made. False: `why` says what to do. */
bool secret_read(bool loopback, char *why, size_t size);
/* HMAC-SHA256 with the secret, or with another key, over parts that each come with their length. */
typedef struct part {
    const void *bytes;
    size_t n;
} part;
void secret_proof(unsigned char proof[PROOF], const unsigned char *key, const part *parts, int n);
bool secret_equal(const unsigned char *a, const unsigned char *b, size_t n); /* in constant time */
bool secret_random(void *bytes, size_t n);
#endif
