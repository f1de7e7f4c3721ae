/* Settings: one row each in option.def gives the variable, the parser, the default, the help text and the check for unknown
 * OLYMPUS_* names. Read once by oly_options_read at start. */
#ifndef OLY_CORE_OPTION_H
#define OLY_CORE_OPTION_H
#include <olympus/base.h>

typedef struct oly_options {
#define OLY_OPTION_INT(name, fallback, low, high, variable, help) int64_t name;
#define OLY_OPTION_TEXT(name, fallback, variable, help)           char name[256];
#include "core/option.def"
#undef OLY_OPTION_INT
#undef OLY_OPTION_TEXT
} oly_options;

extern oly_options oly_option;
/* Reads the environment. fails OLY_INVALID: not a number, out of range (variable, value, range in the message),
 * a platform that is unknown, or none that is there. Afterwards oly_option.platforms lists only those that are there, so that
 * its first is the default. */
oly_status oly_options_read(void);
/* Reports unknown OLYMPUS_* names, which are ignored, on stderr with the nearest known name: once, and not on rank 1 and up, so
 * called when the ranks are known. */
void oly_options_report_unknown(void);
uint64_t oly_options_fingerprint(void); /* of those that must agree on all ranks */
#endif
