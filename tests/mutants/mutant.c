/* SPDX-License-Identifier: BSD-3-Clause */
/* Which mutant is active (OLY_MUTANT), and which ones the program has reached: a byte for each in the file that
 * OLY_MUTANT_REACHED names, mapped, so that all processes of a job write to it, even those that crash. */
#include "mutant.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 100000 };
int oly_mutant_active;
static unsigned char nobody_reads_it[MOST];
unsigned char *oly_mutant_reached = nobody_reads_it;

static __attribute__((constructor(101))) void begin(void)
{
    const char *number = getenv("OLY_MUTANT"), *path = getenv("OLY_MUTANT_REACHED");
    oly_mutant_active = number ? atoi(number) : 0;
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (file < 0)
        return;
    void *bytes =
        ftruncate(file, MOST) == 0 ? mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (bytes != MAP_FAILED)
        oly_mutant_reached = bytes;
    close(file);
}
