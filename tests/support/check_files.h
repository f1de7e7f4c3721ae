/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder for the files of a test, the same on all ranks: process 0 makes it and removes it with what is in it. For tests with a session of
 * their own each, which inject faults; check_folder.h has one session for all tests of a program. */
#ifndef CHECK_FILES_H
#define CHECK_FILES_H
#include "check_folder.h"

/* Setup and teardown of cmocka: a session with 64-bit types and a folder; teardown also ends injected faults. */
int check_files_set_up(void **state);
int check_files_tear_down(void **state);

/* Between oly_init and oly_finalize. */
void check_files_begin(void);
/* After all ranks have come. */
void check_files_end(void);
const char *check_files_folder(void);
/* The path of a file in it; valid for some calls. */
const char *check_files_path(const char *name);
/* Names in it, "a.npy b.npy" in order, after all ranks have come; the same on all. */
const char *check_files_names(void);
#endif
