/* SPDX-License-Identifier: BSD-3-Clause */
/* Which executor computes: the platform's. Called at start by runtime/array/start.c. */
#ifndef OLY_RUN_EXECUTOR_CHOICE_H
#define OLY_RUN_EXECUTOR_CHOICE_H
void oly_executor_choose(void); /* after the platform has been chosen */
#endif
