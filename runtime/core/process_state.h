/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a process according to the kernel. Callable from every layer, and by the guard of launch/, which does not link the
 * library. */
#ifndef OLY_CORE_PROCESS_STATE_H
#define OLY_CORE_PROCESS_STATE_H
#include <stdio.h>
#include <string.h>

/* The letter of /proc/PID/stat, 'T' for a stopped one, and its parent; 0: no such process. */
static inline char oly_process_state(long pid, long *parent)
{
    char path[64], text[512], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = 0;
    const char *end = strrchr(text, ')'); /* of the program's name */
    return end && sscanf(end + 1, " %c %ld", &state, parent) == 2 ? state : 0;
}
#endif
