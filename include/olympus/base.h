/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting, ending, errors and scopes: what every Olympus program uses. Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_BASE_H
#define OLYMPUS_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <olympus/calls.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OLY_VERSION_MAJOR 0
#define OLY_VERSION_MINOR 1

/* -- handles ------------------------------------------------------------------------------------------------------
 * A handle is an opaque pointer. Arrays and functions belong to the innermost open scope and are freed with it; meshes,
 * shardings and devices live until oly_finalize. */
typedef struct oly_array_impl *oly_array;
typedef struct oly_fn_impl *oly_fn;
typedef const struct oly_mesh_impl *oly_mesh;
typedef const struct oly_sharding_impl *oly_sharding;
typedef const struct oly_device_impl *oly_device;

/* -- limits ------------------------------------------------------------------------------------------------------ */
#define OLY_MAX_RANK 12 /* dimensions of an array, and axes of a mesh */

/* -- status ------------------------------------------------------------------------------------------------------
 * The only list of codes, their names and their texts. */
#define OLY_STATUS_LIST(X)                                                                                             \
    X(OK, "success")                                                                                                   \
    X(INVALID, "invalid argument")                                                                                     \
    X(PARSE, "malformed notation")                                                                                     \
    X(SHAPE, "shapes do not fit")                                                                                      \
    X(DTYPE, "element types do not fit")                                                                               \
    X(SHARDING, "shardings do not fit")                                                                                \
    X(DEVICES, "incompatible devices")                                                                                 \
    X(NOT_ADDRESSABLE, "data is on other processes")                                                                   \
    X(DELETED, "array has been deleted")                                                                               \
    X(TRACE, "not possible while tracing")                                                                             \
    X(STATE, "called at the wrong time")                                                                               \
    X(MEMORY, "out of memory")                                                                                         \
    X(OVERFLOW, "a size or number overflows")                                                                          \
    X(IO, "input or output failed")                                                                                    \
    X(DIVERGED, "processes issued different programs")                                                                 \
    X(TIMEOUT, "a process did not come")                                                                               \
    X(MPI, "an MPI call failed")                                                                                       \
    X(NO_KERNEL, "no kernel for these types")                                                                          \
    X(VERIFY, "a plan differs from its program")                                                                       \
    X(CHECK, "a check of the program failed")                                                                          \
    X(CALLBACK, "a function called inside a plan failed")                                                              \
    X(DEVICE_FAILED, "a device failed")

typedef enum oly_status {
#define OLY_STATUS_ENUM(name, text) OLY_##name,
    OLY_STATUS_LIST(OLY_STATUS_ENUM)
#undef OLY_STATUS_ENUM
        OLY_N_STATUS
} oly_status;

/* Name of a status ("OLY_SHAPE") and its one-line text ("shapes do not fit"). Static; ranks: any rank, alone. */
OLY_API const char *oly_status_name(oly_status status);
OLY_API const char *oly_status_text(oly_status status);

/* -- start and end ------------------------------------------------------------------------------------------------ */

/* Starts Olympus: MPI (unless the program has started it), the devices of this rank, the worker threads, the program's
 * scope. Works under mpirun, srun, or alone; by hand and in Kubernetes where the variables of oly_distributed_initialize are set.
 *   argc, argv  main's, or NULL
 *   ranks       all ranks. A child process made by fork() may not call Olympus (OLY_STATE); threads may, one at a time
 *   fails       OLY_STATE if already started; OLY_INVALID for a bad OLYMPUS_* option; OLY_DIVERGED if ranks differ in library
 *               version, device count or the options that plans depend on (docs/options.md). With OLY_ERRORS_RETURN the error is
 *               kept, and the library has not started. */
OLY_API void oly_init(int *argc, char ***argv);

/* Ends Olympus: waits for all work, frees every handle, and ends MPI if oly_init started it.
 *   ranks    all ranks
 *   returns  the exit status for main: 0, or 1 if an error was kept (OLY_ERRORS_RETURN) and never read */
OLY_API int oly_finalize(void);

/* Number of this process among the processes of the job, and how many there are. ranks: any rank, alone. */
OLY_API int oly_process_index(void);
OLY_API int oly_process_count(void);

/* True if OLYMPUS_SIMULATE requests the plans of a machine that does not exist: meshes have its devices, arrays have types and
 * shardings but no values, calls are planned but not run, and this process acts as rank 0. Reading values fails with
 * OLY_STATE. ranks: any rank, alone; before oly_init: false. */
OLY_API bool oly_simulated(void);

/* Library version as text, "0.1". Static. */
OLY_API const char *oly_version(void);

/* Prints every OLYMPUS_* option with its value, default and meaning to standard output (before oly_init: the defaults).
 * ranks: any rank, alone. */
OLY_API void oly_print_options(void);

/* -- errors ------------------------------------------------------------------------------------------------------- */
typedef enum { OLY_ERRORS_ABORT, OLY_ERRORS_RETURN } oly_error_mode;

/* What a failing call does. OLY_ERRORS_ABORT (the default): print the message to standard error from the rank that detected
 * it and end the whole job. OLY_ERRORS_RETURN: return a null handle (or a status); calls on null handles return null; the first
 * message is kept until oly_clear_error. A call that fails while a function is traced (of oly_jit, the body of a loop, a branch,
 * ...) fails the call that traces it, even if the function continues with other values, unless it calls oly_clear_error. Returns
 * the previous mode. ranks: any rank, alone. */
OLY_API oly_error_mode oly_set_error_mode(oly_error_mode mode);

/* The first error since the last oly_clear_error: its status, and its message (never NULL, "" if there is none). */
OLY_API oly_status oly_last_status(void);
OLY_API const char *oly_last_error(void);
OLY_API void oly_clear_error(void);

/* -- scopes ------------------------------------------------------------------------------------------------------- */

/* OLY_SCOPE { ... } frees every handle made inside and not kept, on leaving by its end or by `continue` (not by `break`,
 * `return` or `goto`). Scopes nest; ranks: any rank, alone. */
#define OLY_SCOPE              OLY_SCOPE_NAMED_(__LINE__)
#define OLY_SCOPE_NAMED_(line) OLY_SCOPE_FOR_(line)
#define OLY_SCOPE_FOR_(line)                                                                                           \
    for (int oly_scope_##line = (oly_scope_open(), 1); oly_scope_##line; oly_scope_##line = (oly_scope_close(), 0))
OLY_API void oly_scope_open(void);
OLY_API void oly_scope_close(void);

/* Moves a handle to the enclosing scope and returns it; in the outermost scope it stays. NULL stays NULL. */
OLY_API oly_array oly_keep(oly_array x);

/* Replaces the contents of a long-lived variable: frees the array that `*variable` holds (if not NULL) and moves `x` to the scope
 * of the old one (or, if there was none, to the scope enclosing its own). `x` may be NULL, or the same. */
OLY_API void oly_assign(oly_array *variable, oly_array x);

/* Frees an array now instead of at the end of its scope; the handle must not be used again. NULL is allowed. The data is
 * released when pending work is done. */
OLY_API void oly_free(oly_array x);

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_status_name(...)    OLY_AT(oly_status_name)(__VA_ARGS__)
#define oly_status_text(...)    OLY_AT(oly_status_text)(__VA_ARGS__)
#define oly_init(...)           OLY_AT(oly_init)(__VA_ARGS__)
#define oly_finalize(...)       OLY_AT(oly_finalize)(__VA_ARGS__)
#define oly_process_index(...)  OLY_AT(oly_process_index)(__VA_ARGS__)
#define oly_process_count(...)  OLY_AT(oly_process_count)(__VA_ARGS__)
#define oly_simulated(...)      OLY_AT(oly_simulated)(__VA_ARGS__)
#define oly_version(...)        OLY_AT(oly_version)(__VA_ARGS__)
#define oly_print_options(...)  OLY_AT(oly_print_options)(__VA_ARGS__)
#define oly_set_error_mode(...) OLY_AT(oly_set_error_mode)(__VA_ARGS__)
#define oly_last_status(...)    OLY_AT(oly_last_status)(__VA_ARGS__)
#define oly_last_error(...)     OLY_AT(oly_last_error)(__VA_ARGS__)
#define oly_clear_error(...)    OLY_AT(oly_clear_error)(__VA_ARGS__)
#define oly_scope_open(...)     OLY_AT(oly_scope_open)(__VA_ARGS__)
#define oly_scope_close(...)    OLY_AT(oly_scope_close)(__VA_ARGS__)
#define oly_keep(...)           OLY_AT(oly_keep)(__VA_ARGS__)
#define oly_assign(...)         OLY_AT(oly_assign)(__VA_ARGS__)
#define oly_free(...)           OLY_AT(oly_free)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
