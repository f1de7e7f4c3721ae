/* SPDX-License-Identifier: BSD-3-Clause */
/* Files under temporary names that a killed process has left: "folder/.NAME-0123456789abcdef.part". Callable by runtime/file and
 * above. */
#ifndef OLY_FILE_LEFTOVERS_H
#define OLY_FILE_LEFTOVERS_H
#include <stddef.h>
#include <stdint.h>

/* Writes the temporary name of the file `path`, by a number that no other has; as snprintf. */
int oly_temporary_name(char *to, size_t room, const char *path, uint64_t number);
/* Before such a file is made: removes those that an earlier process has left of this path. A folder is read once for all the files that
 * this process saves in it one after the other. */
void oly_leftovers_remove(const char *path);
#endif
