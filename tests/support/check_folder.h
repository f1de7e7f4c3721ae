/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder of their own for tests that write files on several ranks. */
#ifndef CHECK_FOLDER_H
#define CHECK_FOLDER_H
#include "check_session.h"

/* Setup and teardown of cmocka: one session of Olympus for all tests of a program, as check_start; an empty folder for each. The last
 * test has check_folder_last. */
int check_folder_start(void **state);
int check_folder_finish(void **state);
int check_folder_last(void **state);
#define CHECK_IN_FOLDER(test)   cmocka_unit_test_setup_teardown(test, check_folder_start, check_folder_finish)
#define CHECK_LAST_FOLDER(test) cmocka_unit_test_setup_teardown(test, check_folder_start, check_folder_last)

/* A path in the folder; the last eight are kept. */
const char *check_path(const char *name);
/* Files in the folder, hidden ones included. */
int check_files_there(void);

/* Checks the status, and that the message has this text; clears the error. */
#define CHECK_FAILS(call, status, text) check_fails((call), (status), (text), #call)
void check_fails(oly_status got, oly_status status, const char *text, const char *call);
#endif
