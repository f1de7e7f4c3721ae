/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the secret and computes proofs of knowing it. See secret.h. */
#define _GNU_SOURCE
#include "secret.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 4096 };

static struct {
    unsigned char bytes[LONGEST];
    size_t n;
} secret;

#define REMEDY                                                                                                         \
    "set OLYMPUS_SECRET, or OLYMPUS_SECRET_FILE to a file of mode 600, to the same on all hosts (to make one: "        \
    "(umask 077; openssl rand -hex 32 >olympus.secret))"

static bool take(const char *text, size_t n, const char *from, char *why, size_t size)
{
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
        n--;
    if (n == 0 || n > LONGEST) {
        snprintf(why, size, "%s %s; " REMEDY, from, n ? "holds more than 4096 bytes" : "is empty");
        return false;
    }
    memcpy(secret.bytes, text, n);
    secret.n = n;
    return true;
}

/* Opened first and looked at afterwards, so that it cannot be exchanged in between. */
static bool take_file(const char *path, char *why, size_t size)
{
    struct stat s;
    char text[LONGEST + 2];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0 || fstat(file, &s) != 0) {
        snprintf(why, size, "the secret's file %s cannot be read: %s", path, strerror(errno));
        if (file >= 0)
            close(file);
        return false;
    }
    ssize_t n = -1;
    if (!S_ISREG(s.st_mode))
        snprintf(why, size, "the secret's file %s is no regular file", path);
    else if (s.st_uid != geteuid() && s.st_uid != 0)
        snprintf(why, size, "the secret's file %s belongs to another user (%u)", path, (unsigned)s.st_uid);
    else if (s.st_mode & 077)
        snprintf(why, size, "the secret's file %s has mode %o: others may read or write it; chmod 600 it", path,
                 (unsigned)s.st_mode & 07777);
    else if ((n = read(file, text, sizeof text)) < 0)
        snprintf(why, size, "the secret's file %s cannot be read: %s", path, strerror(errno));
    close(file);
    return n >= 0 && take(text, (size_t)n, path, why, size);
}

bool secret_random(void *bytes, size_t n)
{
    return getrandom(bytes, n, 0) == (ssize_t)n;
}

/* A file that appears whole: several processes may make it at once, and one of them wins. */
static void make_file(const char *path)
{
    char other[600], text[65];
    unsigned char random[32];
    snprintf(other, sizeof other, "%s.%ld", path, (long)getpid());
    int file = secret_random(random, sizeof random) ? open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    for (int k = 0; k < 32; k++)
        snprintf(text + 2 * k, 3, "%02x", random[k]);
    if (file < 0)
        return;
    bool whole = write(file, text, 64) == 64;
    if (close(file) == 0 && whole && link(other, path) != 0 && errno != EEXIST)
        rename(other, path); /* a file system without links */
    unlink(other);
}

/* The secret's file in this folder, which is made if it can be. False: it can neither be made nor read. */
static bool find_in(char *folder, char *path, size_t size)
{
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0700);
        *slash = '/';
    }
    mkdir(folder, 0700);
    snprintf(path, size, "%s/secret", folder);
    if (access(path, F_OK) != 0)
        make_file(path);
    return access(path, R_OK) == 0;
}

/* In the user's cache folder; in the temporary folder where users of containers have no home. */
static bool take_own(char *why, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[512], path[560];
    int n = cache && cache[0] == '/' ? snprintf(folder, sizeof folder, "%s/olympus", cache)
            : home && home[0] == '/' ? snprintf(folder, sizeof folder, "%s/.cache/olympus", home)
                                     : (int)sizeof folder;
    if (n < 0 || (size_t)n >= sizeof folder || !find_in(folder, path, sizeof path)) {
        snprintf(folder, sizeof folder, "/tmp/olympus-%u", (unsigned)geteuid());
        find_in(folder, path, sizeof path);
    }
    return take_file(path, why, size);
}

bool secret_read(bool loopback, char *why, size_t size)
{
    const char *text = getenv("OLYMPUS_SECRET"), *file = getenv("OLYMPUS_SECRET_FILE");
    if (text)
        return take(text, strnlen(text, LONGEST + 1), "OLYMPUS_SECRET", why, size);
    if (file && *file)
        return take_file(file, why, size);
    if (loopback)
        return take_own(why, size);
    snprintf(why, size, "processes of several hosts need a shared secret: " REMEDY);
    return false;
}

void secret_proof(unsigned char proof[PROOF], const unsigned char *key, const part *parts, int n)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    bool ok = hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    for (int k = 0; k < n && ok; k++) {
        uint64_t bytes = parts[k].n;
        ok = EVP_DigestUpdate(hash, &bytes, sizeof bytes) && EVP_DigestUpdate(hash, parts[k].bytes, parts[k].n);
    }
    ok = ok && EVP_DigestFinal_ex(hash, digest, &length);
    EVP_MD_CTX_free(hash);
    if (ok)
        ok =
            HMAC(EVP_sha256(), key ? key : secret.bytes, key ? PROOF : (int)secret.n, digest, length, proof, &length) &&
            length == PROOF;
    if (!ok) {
        fprintf(stderr, "olymeet: libcrypto fails\n");
        _exit(1);
    }
}

bool secret_equal(const unsigned char *a, const unsigned char *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
