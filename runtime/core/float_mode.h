/* SPDX-License-Identifier: BSD-3-Clause */
/* The floating-point mode of a thread: rounding, subnormal numbers, trapping exceptions. Programs change it (fesetround,
 * feenableexcept, -ffast-math); Olympus computes on every thread in C's initial mode, so that results do not depend on it.
 * Public calls switch to it and back (oly_enter), and the library's threads use it. */
#ifndef OLY_CORE_FLOAT_MODE_H
#define OLY_CORE_FLOAT_MODE_H

#if defined __x86_64__
enum { OLY_FLOAT_MODE_OF_C = 0x1f80, OLY_FLOAT_FLAGS = 0x3f };
static inline unsigned oly_float_mode(void)
{
    return __builtin_ia32_stmxcsr() & ~(unsigned)OLY_FLOAT_FLAGS;
}
static inline void oly_set_float_mode(unsigned mode)
{
    __builtin_ia32_ldmxcsr(mode);
}
#elif defined __aarch64__
enum { OLY_FLOAT_MODE_OF_C = 0 };
static inline unsigned oly_float_mode(void)
{
    unsigned long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (unsigned)mode;
}
static inline void oly_set_float_mode(unsigned mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)mode));
}
#else
enum { OLY_FLOAT_MODE_OF_C = 0 };
static inline unsigned oly_float_mode(void)
{
    return OLY_FLOAT_MODE_OF_C;
}
static inline void oly_set_float_mode(unsigned mode)
{
    (void)mode;
}
#endif
#endif
