/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibres on stacks with a guard page each. On x86-64 a switch saves the registers that a call preserves; elsewhere it is swapcontext, which
 * costs two system calls. The address sanitizer is told of every switch. See fibre.h. */
#include "fibre.h"
#include "launch.h"
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { STACK = 512 << 10 };
#else
enum { STACK = 128 << 10 };
#endif
enum { GUARD = 4096 };

#ifdef __x86_64__
typedef void *saved;
/* Saves the caller's registers and stack pointer, and takes up those at `to`. */
void emulated_switch(saved *from, saved to);
__asm__(".text\n"
        ".type emulated_switch, @function\n"
        ".hidden emulated_switch\n"
        "emulated_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size emulated_switch, . - emulated_switch\n");
#else
typedef ucontext_t saved;
#define emulated_switch(from, to) swapcontext(from, &(to))
#endif

static struct {
    char *stacks;
    saved caller, of[EMULATED_MOST_THREADS];
    void (*entry)(void);
    int current;
#ifdef __SANITIZE_ADDRESS__
    void *fake[EMULATED_MOST_THREADS];
    const void *caller_stack;
    size_t caller_bytes;
#endif
} fibres;

static char *stack_of(int number)
{
    if (!fibres.stacks) {
        size_t bytes = (size_t)EMULATED_MOST_THREADS * (STACK + GUARD);
        fibres.stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fibres.stacks == MAP_FAILED)
            emulated_violation("no memory for the stacks of a block's threads");
        for (int k = 0; k < EMULATED_MOST_THREADS; k++)
            mprotect(fibres.stacks + (size_t)k * (STACK + GUARD), GUARD, PROT_NONE);
    }
    return fibres.stacks + (size_t)number * (STACK + GUARD) + GUARD;
}

/* In the fibre: the switch has happened. `fake` NULL: for the first time. */
static void arrived(void *fake)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, &fibres.caller_stack, &fibres.caller_bytes);
#else
    (void)fake;
#endif
}

static void begin(void)
{
    arrived(NULL);
    fibres.entry();
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(NULL, fibres.caller_stack, fibres.caller_bytes);
#endif
    saved ended;
    emulated_switch(&ended, fibres.caller);
    abort(); /* nobody enters a fibre that has ended */
}

void fibre_enter(int number)
{
    fibres.current = number;
#ifdef __SANITIZE_ADDRESS__
    void *fake;
    __sanitizer_start_switch_fiber(&fake, stack_of(number), STACK);
#endif
    emulated_switch(&fibres.caller, fibres.of[number]);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

void fibre_start(int number, void (*entry)(void))
{
    char *stack = stack_of(number);
    fibres.entry = entry;
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(stack, STACK); /* what an earlier fibre left there */
#endif
#ifdef __x86_64__
    /* As a call would leave the stack at the first instruction: a multiple of 16 bytes, less a return address. */
    void **top = (void **)(stack + STACK - 16);
    *--top = NULL;
    *--top = (void *)begin;
    for (int k = 0; k < 6; k++)
        *--top = NULL;
    fibres.of[number] = top;
#else
    getcontext(&fibres.of[number]);
    fibres.of[number].uc_stack.ss_sp = stack;
    fibres.of[number].uc_stack.ss_size = STACK;
    fibres.of[number].uc_link = NULL;
    makecontext(&fibres.of[number], begin, 0);
#endif
    fibre_enter(number);
}

void fibre_leave(void)
{
    int number = fibres.current;
    void *fake = NULL;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake, fibres.caller_stack, fibres.caller_bytes);
#endif
    emulated_switch(&fibres.of[number], fibres.caller);
    arrived(fake);
}

int fibre_has(const void *address)
{
    const char *at = address;
    return fibres.stacks && at >= fibres.stacks && at < fibres.stacks + (size_t)EMULATED_MOST_THREADS * (STACK + GUARD);
}
