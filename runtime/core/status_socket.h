/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket at which this process tells its state (`oly status`): FOLDER/olympus-USER/JOB/RANK of mode 600 in folders of mode 700, where
 * FOLDER is XDG_RUNTIME_DIR or /tmp. One thread, which sleeps in poll until somebody asks; it touches neither MPI nor any lock, so it
 * answers also while the program hangs. It answers this user only, to two requests of one line:
 *
 *     status\n    the lines of recorder.h, with the last events
 *     dump\n      the same, and writes the recorder file first
 *
 * Called by collectives/world.c. */
#ifndef OLY_CORE_STATUS_SOCKET_H
#define OLY_CORE_STATUS_SOCKET_H
#include <stdbool.h>
#include <stddef.h>

/* After oly_recorder_begin. Without a socket (no place for it, OLYMPUS_STATUS=0) everything else works. Again, with another job
 * or rank: moves it. */
void oly_status_socket_begin(void);
void oly_status_socket_end(void);
/* Of a process that ends at once: removes the socket's file. Async-signal-safe. */
void oly_status_socket_unlink(void);
/* In a child made by fork: closes what it inherited, so that the socket is gone with its process. */
void oly_status_socket_forget(void);
/* FOLDER/olympus-USER into path; false: it does not fit. */
bool oly_status_folder(char *path, size_t size);
#endif
