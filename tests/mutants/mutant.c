/* Which mutant is there (OLY_MUTANT), and at the end which ones the program came by (a file for each process, OLY_MUTANT_REACHED). */
#include "mutant.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 100000 };
int oly_mutant_active;
unsigned char oly_mutant_reached[MOST];

static __attribute__((constructor)) void begin(void)
{
    const char *number = getenv("OLY_MUTANT");
    oly_mutant_active = number ? atoi(number) : 0;
}

static __attribute__((destructor)) void end(void)
{
    const char *path = getenv("OLY_MUTANT_REACHED");
    char name[4096];
    if (!path)
        return;
    snprintf(name, sizeof name, "%s.%d", path, (int)getpid());
    FILE *file = fopen(name, "w");
    for (int k = 0; file && k < MOST; k++)
        if (oly_mutant_reached[k])
            fprintf(file, "%d\n", k);
    if (file)
        fclose(file);
}
