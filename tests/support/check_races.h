/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects steps whose parts may run at the same time but access the same memory. See check_races.c. */
#ifndef CHECK_RACES_H
#define CHECK_RACES_H

/* From now on every plan is checked when it is made; a race ends the process (abort), and the step is named. */
void check_races(void);
#endif
