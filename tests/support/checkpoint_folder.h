/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder for the checkpoints of a test, the same on all ranks of one machine. Between tests ranks are in step: each test begins with
 * oly_init and ends with oly_finalize. */
#ifndef CHECK_CHECKPOINT_FOLDER_H
#define CHECK_CHECKPOINT_FOLDER_H
#include <stddef.h>

/* Names a folder that does not exist (rank 0 removes one that does); before oly_init. */
void check_folder_make(char *path, size_t size);
/* With everything in it, by rank 0; after oly_finalize. */
void check_folder_remove(const char *path);
/* Names in path/name, also those with a dot; 0: it is not there. All ranks may look; nobody writes meanwhile. */
int check_folder_count(const char *path, const char *name);
/* Copies path/name to the same place in another folder (rank 0), with everything in it. */
void check_folder_copy(const char *from, const char *to);
#endif
