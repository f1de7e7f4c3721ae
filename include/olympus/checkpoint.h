/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints: saving named arrays so that they are on the disk whole or not at all, reading them back onto any devices, and
 * stopping in time when the scheduler asks for it. Included by <olympus.h>; programs include that one. docs/checkpoints.md shows how
 * to use them, the format, and recipes for Slurm. */
#ifndef OLYMPUS_CHECKPOINT_H
#define OLYMPUS_CHECKPOINT_H

#include <olympus/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- saving ------------------------------------------------------------------------------------------------------- */

typedef struct oly_save_options {
    char first_;           /* not used: lets the macro begin the list */
    int64_t step;          /* number of the checkpoint, 0 or more; one of the same number is replaced */
    int keep;              /* the newest so many stay, older ones are removed; 0: 2; -1: all */
    bool async;            /* write in a thread of its own while the program goes on */
    const char *text;      /* the program's own, up to 1 MiB; NULL: none */
    int n_values;          /* the program's own numbers, up to 65536 */
    const int64_t *values; /* n_values of them */
} oly_save_options;

/* Saves arrays under names: oly_save("run7", OLY_NAMES("w", "b"), OLY_IN(w, b), .step = k) writes the folder run7/step-00000100 with
 * a manifest and the parts of the arrays as .npy files, each box once, by a process that holds it. The folder appears when all of it
 * is on the disk, and before older ones are removed: after a kill or a loss of power at any moment every step-... is whole.
 *   directory   made if it is not there; on a file system that all ranks share; one job at a time writes into it
 *   names       each once; 1 to 255 bytes
 *   arrays      as many; of any type, sharding and mesh
 *   async       returns when the arrays are computed; the program may change, donate or free its variables at once. (Arrays never
 *               change: the memory stays until it is written. Where the host cannot read the devices' memory it is copied.) The
 *               next oly_save waits for the one before. Without MPI_THREAD_MULTIPLE as if it were false
 *   returns     OLY_OK, or the error (OLY_ERRORS_RETURN), the same on all ranks; of an async one at the next oly_save (which then
 *               saves nothing), oly_save_wait or oly_finalize. After an error the checkpoints that were there are still there, and
 *               nothing else is
 *   ranks       all ranks, with the same arguments
 *   fails       OLY_INVALID (names, counts, text, step), OLY_IO (rank, path and reason), OLY_MEMORY, OLY_SHARDING (an unreduced sum),
 *               OLY_DELETED, OLY_TRACE, OLY_DIVERGED (ranks save different things), OLY_TIMEOUT (a rank is silent for
 *               OLYMPUS_TIMEOUT seconds) */
OLY_API oly_status oly_save_with(const char *directory, int n_names, const char *const *names, int n_arrays,
                                 const oly_array *arrays, oly_save_options options);
#define oly_save(...) oly_save_(__VA_ARGS__, )
#define oly_save_(directory, n_names, names, n_arrays, arrays, ...)                                                    \
    OLY_AT_AS(oly_save, oly_save_with)                                                                                 \
    (directory, n_names, names, n_arrays, arrays, OLY_OPTIONS_(oly_save_options, __VA_ARGS__))
/* A list of names, and how many: OLY_NAMES("w", "b"). */
#define OLY_NAMES(...) OLY_COUNTED_(const char *, NULL, __VA_ARGS__)

/* Waits until the checkpoint that oly_save began with .async is on the disk. Without one: nothing.
 *   returns  OLY_OK, or the error with which it failed (OLY_ERRORS_RETURN), once; the same on all ranks
 *   ranks    all ranks
 *   fails    as oly_save */
OLY_API oly_status oly_save_wait(void);
#define oly_save_wait(...) OLY_AT(oly_save_wait)(__VA_ARGS__)

/* -- restoring ---------------------------------------------------------------------------------------------------- */

typedef struct oly_restore_options {
    char first_;                   /* not used: lets the macro begin the list */
    const oly_sharding *shardings; /* one for each array or NULL; a NULL entry: as the variable's array */
    const int64_t *only_step;      /* this step and no other; NULL: the newest that is whole */
    int64_t *step;                 /* set to the step that was read; NULL: not wanted */
    char *text;                    /* receives the program's text; NULL: not wanted */
    size_t text_size;              /* room at text; a longer text is an error */
    int n_values;                  /* room at values; the checkpoint must have as many */
    int64_t *values;               /* receives the program's numbers */
} oly_restore_options;

/* Reads arrays of the newest checkpoint: oly_restore("run7", OLY_NAMES("w", "b"), OLY_OUT(w, b), .step = &k). Any number of ranks
 * and devices, any mesh and sharding, whatever it was saved from: each rank reads the parts of files that it will hold, and little
 * more memory than for those.
 *   arrays     A variable that holds an array says how the new one must be: its shape and type are compared, its sharding is used,
 *              and the array is replaced. A variable that is NULL takes whatever shape and type there is. Without a sharding: whole,
 *              uncommitted, on the default device of each process
 *   damage     A checkpoint that is incomplete, damaged, of another kind or of a newer version is refused, with a line on standard
 *              error that names it and the reason, and the one before is read
 *   returns    OLY_OK, or the error (OLY_ERRORS_RETURN), the same on all ranks; then the variables are as before
 *   ranks      all ranks, with the same arguments
 *   fails      OLY_IO (no checkpoint there, none that is whole), OLY_INVALID (an array of that name is not in it; the number of
 *              values), OLY_SHAPE, OLY_DTYPE (another than the variable's), OLY_SHARDING, OLY_MEMORY, OLY_TRACE, OLY_DIVERGED */
OLY_API oly_status oly_restore_with(const char *directory, int n_names, const char *const *names, int n_out,
                                    oly_array *const *out, oly_restore_options options);
#define oly_restore(...) oly_restore_(__VA_ARGS__, )
#define oly_restore_(directory, n_names, names, n_out, out, ...)                                                       \
    OLY_AT_AS(oly_restore, oly_restore_with)                                                                           \
    (directory, n_names, names, n_out, out, OLY_OPTIONS_(oly_restore_options, __VA_ARGS__))
/* The same with a list of handles: oly_restore_arrays("run7", n, names, n, parameters, .step = &k). */
OLY_API oly_status oly_restore_arrays_with(const char *directory, int n_names, const char *const *names, int n_arrays,
                                           oly_array *arrays, oly_restore_options options);
#define oly_restore_arrays(...) oly_restore_arrays_(__VA_ARGS__, )
#define oly_restore_arrays_(directory, n_names, names, n_arrays, arrays, ...)                                          \
    OLY_AT_AS(oly_restore_arrays, oly_restore_arrays_with)                                                             \
    (directory, n_names, names, n_arrays, arrays, OLY_OPTIONS_(oly_restore_options, __VA_ARGS__))

/* The step of the newest checkpoint in the folder, by its name; -1 if there is none, or no folder. Says nothing about damage.
 *   ranks   all ranks; rank 0 looks
 *   fails   OLY_IO (the folder cannot be read), OLY_INVALID, OLY_MEMORY; returns -1 then */
OLY_API int64_t oly_latest_step(const char *directory);
#define oly_latest_step(...) OLY_AT(oly_latest_step)(__VA_ARGS__)

/* -- stopping in time --------------------------------------------------------------------------------------------- */

/* Has somebody asked the program to stop? True on all ranks from the same call on, soon after SIGTERM or SIGUSR1 has reached any of
 * them: save, and end. Schedulers send these before they kill (docs/checkpoints.md). The first call installs handlers for both;
 * OLYMPUS_STOP_SIGNALS names others, and then oly_init installs them. oly_finalize restores those of before; but after a stop, a
 * signal that would end the program stays without effect, so that a second one does not change the exit status.
 *
 * Call it once per step. Where steps take 5 ms or more, the ranks agree in each call; between shorter steps in every 16th at most,
 * without waiting for it (a job of one process has nobody to wait for). Work queued two agreements ago is waited for, so that a program does not run far ahead of its devices.
 *   ranks    all ranks, equally often
 *   fails    OLY_TRACE, OLY_DIVERGED, OLY_TIMEOUT; returns true then, so that loops end */
OLY_API bool oly_should_stop(void);
#define oly_should_stop(...) OLY_AT(oly_should_stop)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_save_with(...)           OLY_AT_AS(oly_save, oly_save_with)(__VA_ARGS__)
#define oly_restore_with(...)        OLY_AT_AS(oly_restore, oly_restore_with)(__VA_ARGS__)
#define oly_restore_arrays_with(...) OLY_AT_AS(oly_restore_arrays, oly_restore_arrays_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
