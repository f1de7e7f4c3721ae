/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of other programs: pictures (PNG), images of VTK and ParaView, HDF5 with XDMF. docs/formats.md is the guide.
 * Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_FORMATS_H
#define OLYMPUS_FORMATS_H

#include <olympus/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- series ---------------------------------------------------------------------------------------------------------
 * A path may have one place for the number of the file in a series, %d, %5d or %05d, which .number takes: "frame-%05d.png". A % of
 * the name itself is written %%. */

/* -- pictures ------------------------------------------------------------------------------------------------------- */
typedef struct oly_frame_options {
    char first_;         /* not used: lets the macro begin the list */
    int64_t number;      /* in a series; 0 or more */
    const char *colours; /* "magma" (the default), "viridis", "coolwarm" (for values around a middle) or "grey" */
    double low,
        high; /* the values of the first and the last colour; both 0: the smallest and the largest finite element */
    const char *origin; /* row 0 is at the top: "upper" (the default), or at the bottom: "lower" */
    int scale;          /* pixels per element along each side; 0: so many that small matrices have 256 pixels a side */
    int largest;        /* longest side of the matrix in pixels; 0: 1024. Larger matrices are averaged down */
    bool bar;           /* a colour bar with numbers, to the right of the matrix */
} oly_frame_options;

/* Writes a matrix as a PNG image: oly_write_frame("frame-%05d.png", u, .number = step, .low = 0, .high = 1, .bar = true). Element (i, j)
 * is in row i, counted from the side of the origin, and column j, counted from the left. A pixel shows the mean of the elements that fall
 * on it. Values outside the range, infinities included, have the first or the last colour; NaN, and a mean with a NaN, is grey
 * (128, 128, 128), among the colours "grey" red (255, 0, 0). With the same options all frames of a series have the same size, so that
 *      ffmpeg -framerate 25 -i frame-%05d.png -vf "pad=ceil(iw/2)*2:ceil(ih/2)*2" -c:v libx264 -pix_fmt yuv420p film.mp4
 * makes a film of them. The file appears complete or not at all; it may replace a regular file, nothing else. Every device averages its
 * part, and only the picture travels: memory does not grow with the matrix.
 *   ranks    all ranks of the array's mesh (of an uncommitted array: all) with the same options; process 0 writes, or, if the mesh leaves
 *            ranks out, the process of its first device. Ranks that are left out may call, too
 *   fails    OLY_SHAPE (not 2-D, or empty), OLY_DTYPE (complex), OLY_INVALID (options), OLY_PARSE (the path), OLY_IO (path and reason),
 *            OLY_MEMORY; on all of these ranks */
OLY_API oly_status oly_write_frame_with(const char *path, oly_array x, oly_frame_options options);
#define oly_write_frame(...) oly_write_frame_(__VA_ARGS__, )
#define oly_write_frame_(path, x, ...)                                                                                 \
    OLY_AT_AS(oly_write_frame, oly_write_frame_with)(path, x, OLY_OPTIONS_(oly_frame_options, __VA_ARGS__))

/* -- images of VTK and ParaView ------------------------------------------------------------------------------------- */
typedef struct oly_vti_options {
    char first_;    /* not used: lets the macro begin the list */
    int64_t number; /* in a series; 0 or more */
    const double *
        origin; /* position of the first point, a number for each dimension of the grid, in the array's order; NULL: 0 */
    const double *spacing; /* distance between points, likewise; NULL: 1 */
    int dimensions;        /* of the grid, 1 to 3; 0: of the array that has the fewest */
    bool cells;            /* the elements are values of cells, not of points */
    double time;           /* of the data, in the file and in the series */
    const char *series;    /* path of a collection (.pvd), to which the file is added with its time; NULL: none */
} oly_vti_options;

/* Writes arrays as fields of one image of VTK, raw and in parallel:
 * oly_save_vti("wave-%05d.vti", "u, velocity", OLY_IN(u, v), .number = step, .spacing = h, .time = t, .series = "wave.pvd").
 * A path that ends in .vti is one file; one that ends in .pvti has a .vti beside it for each shard of the first array, NAME_0.vti and so
 * on, in which neighbours share their points. VTK's x is the last dimension of the array, y the one before, z the third from the end: row
 * 0 of a matrix is at the bottom. An array with one more dimension than the grid holds vectors: its last dimension has their components, x
 * first. Bools are written as bytes, 0 or 1. A series keeps its entries of earlier times, so that a restarted program goes on with it.
 *   names    of the arrays, with commas
 *   n        arrays, which have the same shape (but for components); types: integers, float32, float64, bool
 *   ranks    all ranks of the arrays' mesh; if they are on several, or uncommitted, all ranks. A rank without a part takes part. The
 *            path must lead all of them to the same file
 *   fails    OLY_INVALID (names, options), OLY_SHAPE, OLY_DTYPE (complex, 16-bit and 8-bit floats), OLY_SHARDING (unreduced), OLY_PARSE
 *            (the path), OLY_IO (path and reason), OLY_DIVERGED (other arguments), OLY_TRACE, OLY_MEMORY; on all of these ranks. A file
 *            appears whole or not at all; of a .pvti that fails no piece is left */
OLY_API oly_status oly_save_vti_with(const char *path, const char *names, int n, const oly_array *arrays,
                                     oly_vti_options options);
#define oly_save_vti(...) oly_save_vti_(__VA_ARGS__, )
#define oly_save_vti_(path, names, n, arrays, ...)                                                                     \
    OLY_AT_AS(oly_save_vti, oly_save_vti_with)(path, names, n, arrays, OLY_OPTIONS_(oly_vti_options, __VA_ARGS__))

/* A field of a .vti or .pvti that oly_save_vti, or VTK without encoding and compression, has written: raw appended data. An array
 * with the grid's dimensions (those of one point are dropped in other programs' files), and one more for the components of vectors.
 *   name      of the field; NULL: the first. Fields of points, or, if there are none, of cells
 *   sharding  of the result, which is committed; NULL: uncommitted, on the default device of each process
 *   ranks     all ranks of the sharding's mesh (sharding NULL: all ranks)
 *   fails     OLY_IO (not there, not of this form, truncated), OLY_INVALID (no such field), OLY_SHARDING, OLY_DIVERGED, OLY_TRACE,
 *             OLY_MEMORY; on all of these ranks */
OLY_API oly_array oly_load_vti(const char *path, const char *name, oly_sharding sharding);
#define oly_load_vti(...) OLY_AT(oly_load_vti)(__VA_ARGS__)

/* -- HDF5 ------------------------------------------------------------------------------------------------------------
 * Where the library is built with HDF5 (make says so; HDF5=0 leaves it out); elsewhere these calls fail with OLY_IO. Names of data
 * sets may have groups, "fields/u", which are made. Failures have the text of HDF5's error stack. */
typedef struct oly_hdf5_options {
    char first_; /* not used: lets the macro begin the list */
    const int64_t
        *chunks;  /* extents of a chunk, a number for each dimension of the array; NULL: those of the largest shard */
    bool append;  /* the array becomes one more row of a data set with one more dimension, the first, for time */
    int64_t rows; /* with .append: the number of rows to keep, behind which it goes (after a restart); 0: all */
    bool fresh;   /* begin a new file, in place of one that is there */
} oly_hdf5_options;

/* Was the library built with HDF5? ranks: any rank, alone; at any time. */
OLY_API bool oly_hdf5_available(void);
#define oly_hdf5_available(...) OLY_AT(oly_hdf5_available)(__VA_ARGS__)

/* Writes an array as a data set, to which every rank writes its boxes: oly_save_hdf5("run.h5", "fields/u", u, .append = true). A data set of that name is
 * replaced (or, with .append, extended), a group never. The path of a new file leads to a file that appears whole or not at all. A file that is there is
 * changed in place: after a failure the data set is removed again, or has as many rows as before; a program that is killed meanwhile may
 * leave a file that HDF5 cannot read.
 *   types    all but 8-bit floats; bools and complex numbers as h5py has them
 *   ranks    all ranks of the array's mesh (of an uncommitted array: all), with the same arguments; a rank without a part takes part.
 *            The path must lead all of them to the same file
 *   fails    OLY_IO (path and HDF5's reasons), OLY_INVALID (names, chunks, rows), OLY_SHAPE (rows of another shape or
 *            type), OLY_DTYPE, OLY_SHARDING (unreduced), OLY_DIVERGED (other arguments), OLY_TRACE, OLY_MEMORY; on all of these ranks */
OLY_API oly_status oly_save_hdf5_with(const char *path, const char *name, oly_array x, oly_hdf5_options options);
#define oly_save_hdf5(...) oly_save_hdf5_(__VA_ARGS__, )
#define oly_save_hdf5_(path, name, x, ...)                                                                             \
    OLY_AT_AS(oly_save_hdf5, oly_save_hdf5_with)(path, name, x, OLY_OPTIONS_(oly_hdf5_options, __VA_ARGS__))

/* A data set of any HDF5 file, in any layout: integers and floats of any byte order (long double as float64), bools and complex numbers
 * of h5py. Each rank reads its own boxes, with a few MiB beside the array.
 *   sharding  of the result, which is committed; NULL: uncommitted, on the default device of each process
 *   ranks     all ranks of the sharding's mesh (sharding NULL: all ranks)
 *   fails     OLY_IO, OLY_DTYPE (texts, structures, ...), OLY_SHAPE (more than OLY_MAX_RANK dimensions), OLY_SHARDING,
 *             OLY_INVALID, OLY_DIVERGED, OLY_TRACE, OLY_MEMORY; on all of these ranks */
OLY_API oly_array oly_load_hdf5(const char *path, const char *name, oly_sharding sharding);
#define oly_load_hdf5(...) OLY_AT(oly_load_hdf5)(__VA_ARGS__)

/* Attributes of a data set or group ("": of the file): a text, or 1 to 4096 numbers, in place of one of that name. The file is there, and
 * is changed in place.
 *   ranks    all ranks, with the same arguments
 *   fails    OLY_IO (no such file or data set), OLY_INVALID, OLY_DIVERGED, OLY_TRACE, OLY_MEMORY; on all ranks */
OLY_API oly_status oly_hdf5_set_text(const char *path, const char *name, const char *attribute, const char *text);
#define oly_hdf5_set_text(...) OLY_AT(oly_hdf5_set_text)(__VA_ARGS__)
OLY_API oly_status oly_hdf5_set_numbers(const char *path, const char *name, const char *attribute, int n,
                                        const double *numbers);
#define oly_hdf5_set_numbers(...) OLY_AT(oly_hdf5_set_numbers)(__VA_ARGS__)

/* Their values: a text is written into buffer as by snprintf, and its whole length returned; of numbers the first n are stored, and how
 * many there are is returned; -1 on failure. ranks: any rank, alone. fails OLY_IO, OLY_DTYPE (no text, no numbers),
 * OLY_INVALID, OLY_MEMORY */
OLY_API int oly_hdf5_get_text(const char *path, const char *name, const char *attribute, char *buffer, size_t size);
#define oly_hdf5_get_text(...) OLY_AT(oly_hdf5_get_text)(__VA_ARGS__)
OLY_API int oly_hdf5_get_numbers(const char *path, const char *name, const char *attribute, int n, double *numbers);
#define oly_hdf5_get_numbers(...) OLY_AT(oly_hdf5_get_numbers)(__VA_ARGS__)

/* -- XDMF ----------------------------------------------------------------------------------------------------------- */
typedef struct oly_xdmf_options {
    char first_; /* not used: lets the macro begin the list */
    const double *
        origin; /* position of the first point, a number for each dimension of the grid, in the array's order; NULL: 0 */
    const double *spacing; /* distance between points, likewise; NULL: 1 */
    int dimensions;        /* of the grid, 1 to 3; 0: of the data set that has the fewest */
    bool cells;            /* the elements are values of cells, not of points */
    const char
        *times; /* name of a data set with the time of each row; NULL: "time", where it is there, else 0, 1, ... */
} oly_xdmf_options;

/* Describes data sets of an HDF5 file, as oly_save_hdf5 writes them, to ParaView and others:
 * oly_save_xdmf("run.xdmf", "run.h5", "u, velocity", .spacing = h). Those that grow have a row for each time step, others are the same at
 * all; of data sets with different numbers of rows the steps that all have. Order of dimensions, points, cells and vectors: as oly_save_vti.
 *   hdf5    path of the file; the description names it relative to its own folder
 *   names   of the data sets, with commas
 *   ranks   all ranks, with the same arguments; process 0 reads and writes
 *   fails   OLY_IO, OLY_INVALID, OLY_SHAPE (no common grid), OLY_DTYPE (complex numbers, 16-bit floats), OLY_DIVERGED, OLY_TRACE, OLY_MEMORY; on all ranks. The file appears whole or not at all */
OLY_API oly_status oly_save_xdmf_with(const char *path, const char *hdf5, const char *names, oly_xdmf_options options);
#define oly_save_xdmf(...) oly_save_xdmf_(__VA_ARGS__, )
#define oly_save_xdmf_(path, hdf5, names, ...)                                                                         \
    OLY_AT_AS(oly_save_xdmf, oly_save_xdmf_with)(path, hdf5, names, OLY_OPTIONS_(oly_xdmf_options, __VA_ARGS__))

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_write_frame_with(...) OLY_AT_AS(oly_write_frame, oly_write_frame_with)(__VA_ARGS__)
#define oly_save_vti_with(...)    OLY_AT_AS(oly_save_vti, oly_save_vti_with)(__VA_ARGS__)
#define oly_save_hdf5_with(...)   OLY_AT_AS(oly_save_hdf5, oly_save_hdf5_with)(__VA_ARGS__)
#define oly_save_xdmf_with(...)   OLY_AT_AS(oly_save_xdmf, oly_save_xdmf_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
