/* Fuzzers of the text notations (tests/fuzz/fuzz_*.c, one program each, built by `make fuzz` with the address and undefined
 * behaviour sanitizers). driver.c makes texts from the seeds and words below and hands them over; every fuzzer checks what a
 * notation promises of the texts it accepts, and that a text it refuses gets a message. With clang's libFuzzer the entry
 * LLVMFuzzerTestOneInput serves as well. */
#ifndef FUZZ_H
#define FUZZ_H
#include <olympus.h>
#include <stddef.h>
#include <stdint.h>

/* What a fuzzer gives: texts to begin with and words that mutations put in, each list ended by NULL. */
extern const char *const fuzz_seeds[];
extern const char *const fuzz_words[];
/* Tries one text. */
void fuzz_try(const char *text);

/* Ends the program with the text and the reason when a promise is broken. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __LINE__))
void fuzz_broken(const char *condition, int line) __attribute__((noreturn));
/* After a refusal: a status and a message that is not empty; clears it. */
void fuzz_check_refusal(void);
#endif
