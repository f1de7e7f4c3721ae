/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans compared with those of the last commit (test_plans.c, test_plans_large.c): PLANS=write rewrites them. */
#ifndef CHECK_PLANS_H
#define CHECK_PLANS_H
#include <olympus.h>
#include <stdbool.h>
#include <stdio.h>

/* A file to explain a plan to, and its contents, without the numbers of source lines; free() it. */
FILE *check_plan_begin(void);
char *check_plan_end(FILE *file);
/* Does the file contain exactly this text? If not, prints the first line that differs. */
bool check_same_as_file(const char *path, const char *found);
void check_write_file(const char *path, const char *text);
#endif
