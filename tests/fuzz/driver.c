/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes texts and passes them to a fuzzer:   fuzz_NAME [SECONDS [SEED]]     (default 10 seconds). See fuzz.h. Texts are
 * seeds and earlier accepted texts, mutated: characters and words inserted, removed, repeated, exchanged. */
#include "fuzz.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 400, POOL = 512 };

static char current[LONGEST + 1];
static char pool[POOL][LONGEST + 1];
static int n_pool;
static uint64_t state = 1;
static bool accepted;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void fuzz_broken(const char *condition, int line)
{
    fprintf(stderr, "fuzz: \"%s\" breaks line %d: %s\n", current, line, condition);
    abort();
}

/* Sanitizers that end by abort (abort_on_error=1) show the text too. */
static void show_text(int signal_number)
{
    static const char before[] = "fuzz: the text was \"", after[] = "\"\n";
    if (write(STDERR_FILENO, before, sizeof before - 1) > 0 && write(STDERR_FILENO, current, strlen(current)) >= 0 &&
        write(STDERR_FILENO, after, sizeof after - 1) > 0)
        signal(signal_number, SIG_DFL);
}

void fuzz_check_refusal(void)
{
    accepted = false;
    FUZZ_CHECK(oly_last_status() != OLY_OK);
    FUZZ_CHECK(oly_last_error()[0] != '\0');
    oly_clear_error();
}

static uint64_t next_random(void) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static size_t below(size_t n)
{
    return n ? (size_t)(next_random() % n) : 0;
}

static int count(const char *const *list)
{
    int n = 0;
    while (list[n])
        n++;
    return n;
}

static void try_text(const char *text)
{
    snprintf(current, sizeof current, "%s", text);
    accepted = true;
    OLY_SCOPE
    {
        fuzz_try(current);
    }
    if (accepted && strlen(text) < LONGEST / 2)
        memcpy(pool[n_pool < POOL ? n_pool++ : (int)below(POOL)], current, sizeof current);
}

/* Replaces `taken` characters at `at` by `more`. */
static void splice(char *text, size_t at, size_t taken, const char *more, size_t n_more)
{
    size_t length = strlen(text);
    taken = taken < length - at ? taken : length - at;
    if (length - taken + n_more > LONGEST)
        return;
    memmove(text + at + n_more, text + at + taken, length - at - taken + 1);
    memcpy(text + at, more, n_more);
}

static void mutate(char *text)
{
    size_t length = strlen(text), at = below(length + 1);
    const char *word = fuzz_words[below((size_t)count(fuzz_words))];
    char letter = (char)(1 + below(below(8) ? 126 : 255)), piece[LONGEST];
    switch (below(6)) {
    case 0: splice(text, at, 0, &letter, 1); break;
    case 1: splice(text, at, 1 + below(3), "", 0); break;
    case 2: splice(text, at, below(3), word, strlen(word)); break;
    case 3: splice(text, at, 1, &letter, 1); break;
    case 4: /* repeats a part */
        length = below(length - at + 1);
        memcpy(piece, text + at, length);
        splice(text, below(at + 1), 0, piece, length);
        break;
    default: splice(text, at, 0, word, strlen(word)); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[LONGEST + 1];
    size_t length = size < LONGEST ? size : LONGEST;
    memcpy(text, data, length);
    text[length] = '\0';
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    try_text(text);
    oly_finalize();
    return 0;
}

#ifndef FUZZ_WITH_LIBFUZZER
int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct timespec begin, now;
    long tried = 0, good = 0;
    setenv("OLYMPUS_NUM_CPU_DEVICES", "8", 1);
    signal(SIGABRT, show_text);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        oly_init(NULL, NULL); /* restarts sometimes: meshes and shardings live until the end */
        oly_set_error_mode(OLY_ERRORS_RETURN);
        for (int k = 0; fuzz_seeds[k]; k++)
            try_text(fuzz_seeds[k]);
        for (int k = 0; k < 2000; k++) {
            char text[LONGEST + 1];
            memcpy(text, pool[below((size_t)n_pool)], sizeof text);
            for (size_t m = 1 + below(4); m > 0; m--)
                mutate(text);
            try_text(text);
            tried++;
            good += accepted;
        }
        oly_finalize();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) < seconds);
    printf("%ld texts, %ld accepted, nothing found\n", tried, good);
    return 0;
}
#endif
