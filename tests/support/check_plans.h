/* Plans compared with those of the last commit (test_plans.c, test_plans_large.c): PLANS=write writes them anew. */
#ifndef CHECK_PLANS_H
#define CHECK_PLANS_H
#include <olympus.h>
#include <stdbool.h>
#include <stdio.h>

/* A file to explain a plan into, and what it holds then, without the numbers of source lines; free() it. */
FILE *check_plan_begin(void);
char *check_plan_end(FILE *file);
/* Does the file hold this text? If not, the first line that differs is printed. */
bool check_same_as_file(const char *path, const char *found);
void check_write_file(const char *path, const char *text);
#endif
