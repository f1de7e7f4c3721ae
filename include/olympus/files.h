/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays in files: NumPy's .npy and .npz, raw binary volumes, tables of numbers as text. Every process reads and writes only its
 * own parts of one file. Included by <olympus.h>; programs include that one. docs/files.md shows how they are used.
 *
 * What holds for all of them:
 *   ranks    all ranks of the mesh of the array or of the sharding (all ranks, if it is uncommitted, or the sharding NULL), with the
 *            same arguments; a rank without a part takes part. Ranks that the mesh leaves out may call, too. The path must lead all
 *            of them to the same file
 *   fails    the same on all ranks, with the path, the reason and the rank: OLY_IO (what the system says; a file that is damaged,
 *            truncated, changed while it is read, or seen differently by some rank), OLY_DIVERGED (other arguments on some rank),
 *            OLY_TRACE (while a function is being recorded), OLY_MEMORY, OLY_INVALID
 *   writing  a file appears whole or not at all: it is written under another name beside its own, put on the disk, and renamed. After
 *            a failure the file that was there is as before, and nothing else is left
 *   reading  needs a few MiB beside the array, whatever the file's order and the sharding */
#ifndef OLYMPUS_FILES_H
#define OLYMPUS_FILES_H

#include <olympus/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- NumPy: .npy ------------------------------------------------------------------------------------------------------------ */

/* Writes an array as numpy.save does: one file, row-major, in this machine's byte order. bfloat16 and 8-bit floats are written as
 * bytes of their size (NumPy reads void elements, whose .view(ml_dtypes.bfloat16) are the numbers), with their name in the header.
 *   fails    also OLY_SHARDING (unreduced), OLY_DELETED
 *   source   numpy.save */
OLY_API oly_status oly_save_npy(const char *path, oly_array x);
#define oly_save_npy(...) OLY_AT(oly_save_npy)(__VA_ARGS__)

/* The array of a file that NumPy, or oly_save_npy, has written: versions 1 to 3, row-major or Fortran order, any byte order.
 *   sharding  of the result, which is committed; NULL: uncommitted, on the default device of each process, as oly_from_host
 *   fails     also OLY_DTYPE (objects, structures, texts, dates, long double, bytes whose type the file does not say), OLY_SHAPE (more
 *             than OLY_MAX_RANK dimensions), OLY_SHARDING (spec longer than the rank, unreduced), OLY_OVERFLOW
 *   source    numpy.load, and jax.device_put of it */
OLY_API oly_array oly_load_npy(const char *path, oly_sharding sharding);
#define oly_load_npy(...) OLY_AT(oly_load_npy)(__VA_ARGS__)

/* -- NumPy: .npz ------------------------------------------------------------------------------------------------------------- */

#ifndef OLY_NAMES
/* A list of names, and how many: OLY_NAMES("w", "b"). */
#define OLY_NAMES(...) OLY_COUNTED_(const char *, NULL, __VA_ARGS__)
#endif

/* Several arrays in one file, as numpy.savez: oly_save_npz("model.npz", OLY_NAMES("w", "b"), OLY_IN(w, b)). Members are stored, not
 * packed, and have NumPy's names ("w.npy").
 *   names    one for each array, all different
 *   ranks    all ranks of the arrays' mesh; all ranks, if they are on several meshes
 *   fails    also OLY_SHARDING (unreduced), OLY_DELETED, OLY_INVALID (a name NULL, empty, twice, or of more than 1,000 bytes; other
 *            numbers of names and arrays)
 *   source   numpy.savez */
OLY_API oly_status oly_save_npz(const char *path, int n_names, const char *const *names, int n_arrays,
                                const oly_array *arrays);
#define oly_save_npz(...) OLY_AT(oly_save_npz)(__VA_ARGS__)

typedef struct oly_npz_options {
    char first_;                   /* not used: lets the macro begin the list */
    const oly_sharding *shardings; /* one for each array, NULL: as oly_load_npy(path, NULL); NULL: that for all */
} oly_npz_options;

/* Arrays by their names, of a file that numpy.savez, numpy.savez_compressed or oly_save_npz has written; all of them, or none:
 * oly_load_npz("model.npz", OLY_NAMES("w", "b"), OLY_OUT(w, b), .shardings = placed). Checksums are compared.
 *   ranks      all ranks of the shardings' mesh; all ranks, if there are several meshes, or one sharding is NULL
 *   fails      as oly_load_npy, and OLY_INVALID (no such name: the message lists those that are there). The variables are NULL then
 *   source     numpy.load */
OLY_API oly_status oly_load_npz_with(const char *path, int n_names, const char *const *names, int n_out,
                                     oly_array *const *out, oly_npz_options options);
#define oly_load_npz(...) oly_load_npz_(__VA_ARGS__, )
#define oly_load_npz_(path, n_names, names, n_out, out, ...)                                                           \
    OLY_AT_AS(oly_load_npz, oly_load_npz_with)                                                                         \
    (path, n_names, names, n_out, out, OLY_OPTIONS_(oly_npz_options, __VA_ARGS__))

/* The names of the arrays in such a file: "w, b", written into buffer; returns the whole length, -1 on failure. ranks: any rank, alone.
 * fails OLY_IO, OLY_INVALID, OLY_MEMORY */
OLY_API int oly_npz_names(const char *path, char *buffer, size_t size);

/* -- raw binary volumes ------------------------------------------------------------------------------------------------------ */

typedef struct oly_raw_options {
    char first_;     /* not used: lets the macro begin the list */
    bool big_endian; /* the most significant byte of each number comes first; else the least */
    bool fortran;    /* the first index varies fastest; else the last */
} oly_raw_options;
#define OLY_RAW_OPTIONS(...) OLY_OPTIONS_(oly_raw_options, __VA_ARGS__)

/* The array whose elements follow each other in a file from byte `offset` on:
 * oly_load_raw("ct.raw", 512, OLY_UINT16, 3, shape, oly_named(mesh, "z"), .big_endian = true). The file may be longer.
 *   sharding  as oly_load_npy
 *   fails     also OLY_INVALID (negative offset, ...), OLY_SHARDING, OLY_OVERFLOW */
OLY_API oly_array oly_load_raw_with(const char *path, int64_t offset, oly_dtype dtype, int rank, const int64_t *shape,
                                    oly_sharding sharding, oly_raw_options options);
#define oly_load_raw(...) oly_load_raw_(__VA_ARGS__, )
#define oly_load_raw_(path, offset, dtype, rank, shape, sharding, ...)                                                 \
    OLY_AT_AS(oly_load_raw, oly_load_raw_with)(path, offset, dtype, rank, shape, sharding, OLY_RAW_OPTIONS(__VA_ARGS__))

/* Writes the elements from byte `offset` of a file on: oly_save_raw("ct.raw", 0, x).
 *   A file that is not there is created, with zeros before the offset. One that is there keeps its other bytes, and is extended where
 *   it is too short. Both whole or not at all; but a file with more than 4 MiB of other bytes is written in place, so a failure may
 *   leave some of the array's bytes in its own range (a file that was extended gets its old length back). */
OLY_API oly_status oly_save_raw_with(const char *path, int64_t offset, oly_array x, oly_raw_options options);
#define oly_save_raw(...) oly_save_raw_(__VA_ARGS__, )
#define oly_save_raw_(path, offset, x, ...)                                                                            \
    OLY_AT_AS(oly_save_raw, oly_save_raw_with)(path, offset, x, OLY_RAW_OPTIONS(__VA_ARGS__))

/* -- tables of numbers as text ------------------------------------------------------------------------------------------------ */

typedef struct oly_csv_options {
    char first_;           /* not used: lets the macro begin the list */
    const char *delimiter; /* one character between numbers; NULL: a comma; " ": any number of spaces and tabs */
    const char *header;    /* saving: the first line; NULL: none */
    int header_lines;      /* loading: lines at the beginning that are not read */
    const char *comments;  /* loading: text after which the rest of a line is not read; NULL: "#"; "": none */
} oly_csv_options;
#define OLY_CSV_OPTIONS(...) OLY_OPTIONS_(oly_csv_options, __VA_ARGS__)

/* Writes a matrix row by row, or a vector with one number a line, each with the fewest digits that give the same number again:
 * oly_save_csv("table.csv", x, .header = "time,height"). Takes memory for the rows of each process once more.
 *   fails    also OLY_SHAPE (neither 1 nor 2 dimensions), OLY_DTYPE (complex), OLY_INVALID (delimiter), OLY_SHARDING, OLY_DELETED
 *   source   numpy.savetxt */
OLY_API oly_status oly_save_csv_with(const char *path, oly_array x, oly_csv_options options);
#define oly_save_csv(...)           oly_save_csv_(__VA_ARGS__, )
#define oly_save_csv_(path, x, ...) OLY_AT_AS(oly_save_csv, oly_save_csv_with)(path, x, OLY_CSV_OPTIONS(__VA_ARGS__))

/* A matrix from such a file: oly_load_csv("table.csv", OLY_FLOAT32, oly_named(mesh, "i"), .header_lines = 1). Every process reads its
 * rows. Lines that are empty, or only comments, are no rows, and at least one row must be there, as it tells the columns; spaces around numbers are skipped, "nan" and "inf" are numbers.
 *   dtype     of the result, real; the numbers must be of it: "2.5" is no int32, 300 no uint8
 *   sharding  as oly_load_npy
 *   returns   [rows, columns], also where there is one column
 *   fails     also OLY_PARSE with line and column (no number, another number of columns than the first row), OLY_DTYPE (complex),
 *             OLY_INVALID, OLY_SHARDING
 *   source    numpy.loadtxt(ndmin=2) */
OLY_API oly_array oly_load_csv_with(const char *path, oly_dtype dtype, oly_sharding sharding, oly_csv_options options);
#define oly_load_csv(...) oly_load_csv_(__VA_ARGS__, )
#define oly_load_csv_(path, dtype, sharding, ...)                                                                      \
    OLY_AT_AS(oly_load_csv, oly_load_csv_with)(path, dtype, sharding, OLY_CSV_OPTIONS(__VA_ARGS__))

#ifndef OLYMPUS_LIBRARY
#define oly_load_csv_with(...) OLY_AT_AS(oly_load_csv, oly_load_csv_with)(__VA_ARGS__)
#define oly_save_csv_with(...) OLY_AT_AS(oly_save_csv, oly_save_csv_with)(__VA_ARGS__)
#define oly_load_npz_with(...) OLY_AT_AS(oly_load_npz, oly_load_npz_with)(__VA_ARGS__)
#define oly_npz_names(...)     OLY_AT(oly_npz_names)(__VA_ARGS__)
#define oly_load_raw_with(...) OLY_AT_AS(oly_load_raw, oly_load_raw_with)(__VA_ARGS__)
#define oly_save_raw_with(...) OLY_AT_AS(oly_save_raw, oly_save_raw_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
