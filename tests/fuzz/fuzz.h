/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzers of the text notations (tests/fuzz/fuzz_*.c, one program each, built by `make fuzz` with the address and
 * undefined behaviour sanitizers). driver.c makes texts from the seeds and words below; every fuzzer checks the
 * properties of the texts that a notation accepts, and that a refused text gets a message. The entry
 * LLVMFuzzerTestOneInput also works with clang's libFuzzer. */
#ifndef FUZZ_H
#define FUZZ_H
#include <olympus.h>
#include <stddef.h>
#include <stdint.h>

/* Provided by each fuzzer: initial texts, and words that mutations insert, each list ended by NULL. */
extern const char *const fuzz_seeds[];
extern const char *const fuzz_words[];
/* Tries one text. */
void fuzz_try(const char *text);

/* Ends the program with the text and the reason if a check fails. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __LINE__))
void fuzz_broken(const char *condition, int line) __attribute__((noreturn));
/* After a refusal: checks that there is a status and a message that is not empty; clears it. */
void fuzz_check_refusal(void);
#endif
