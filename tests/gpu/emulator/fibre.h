/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibres: stacks that a thread switches among, for the threads of a block (launch.c). */
#ifndef EMULATED_FIBRE_H
#define EMULATED_FIBRE_H

/* Starts fibre `number`, which runs `entry` until that returns or calls fibre_leave; returns then. */
void fibre_start(int number, void (*entry)(void));
/* Goes on where the fibre left. */
void fibre_enter(int number);
/* In a fibre: back to who entered it. */
void fibre_leave(void);
/* Is the address on a fibre's stack? */
int fibre_has(const void *address);
#endif
