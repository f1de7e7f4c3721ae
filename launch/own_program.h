/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the programs are that belong to the library: olymeet, olyaware. For launch/ and collectives/. */
#ifndef OLY_OWN_PROGRAM_H
#define OLY_OWN_PROGRAM_H
#include <stdbool.h>

enum { OLY_PROGRAM_PATH_BYTES = 1200 };
/* Beside the library, the program, or an olyrun in PATH; or where the library was built. folder: of the build folder, in which it is made.
 * False: nowhere. Files that others may write are not taken. */
bool oly_find_own_program(const char *name, const char *folder, char path[OLY_PROGRAM_PATH_BYTES]);
#endif
