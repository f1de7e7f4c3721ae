/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: one row each in option.def gives the variable, the parser, the default, the help text and the check for unknown
 * OLYMPUS_* names. Read once by oly_options_read at start. */
#ifndef OLY_CORE_OPTION_H
#define OLY_CORE_OPTION_H
#include <olympus/base.h>

typedef struct oly_options {
#define OLY_OPTION_INT(name, fallback, low, high, shared, variable, help) int64_t name;
#define OLY_OPTION_TEXT(name, fallback, shared, variable, help)           char name[1024];
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
} oly_options;

extern oly_options oly_option;
/* Reads the environment. fails OLY_INVALID: not a number, out of range (variable, value, range in the message),
 * an unknown platform, or none that is available. Afterwards oly_option.platforms lists only available ones, so that its first is
 * the default. */
oly_status oly_options_read(void);
/* Reports unknown OLYMPUS_* names, which are ignored, on stderr with the nearest known name: once, and only on rank 0, so
 * it is called when the ranks are known. */
void oly_options_report_unknown(void);
/* The known name that is most like this one, which has at most 96 characters. */
const char *oly_option_nearest(const char *name);
/* As they were in the environment when read. */
const oly_options *oly_options_asked(void);
uint64_t oly_options_fingerprint(void); /* of the options that all ranks must share: SAME in option.def */
/* fails OLY_DIVERGED: names the first of these that differs between rank 0 and another rank, with both values. */
oly_status oly_options_compare(const oly_options *zero, int rank, const oly_options *other);
#endif
