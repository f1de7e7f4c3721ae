/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own code inside functions: values printed in the middle of a plan, conditions checked, host functions called,
 * derivatives and kernels of its own. Included by <olympus.h>; programs include that one. docs/inside.md is the guide. */
#ifndef OLYMPUS_INSIDE_H
#define OLYMPUS_INSIDE_H

#include <olympus/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- printing values ----------------------------------------------------------------------------------------------
 * oly_debug_print("step {}: u = {}", i, u) prints values where they are computed: at once outside of functions; inside oly_jit,
 * loops, branches, derivatives, oly_vmap and oly_shard_map whenever the call is reached in the running plan, in the order of the
 * program, and never dropped because nobody needs the result. The line ends with a newline.
 *
 * In the format {} or %A stands for the next array, as oly_printf's %A prints it (NumPy's print); {name} too; {:.3f} formats a
 * single number as printf's %.3f does; %R its repr, %T its type, %D the device that prints. {{ and }} and %% stand for {, } and %.
 *
 * oly_debug_print prints the whole arrays, once, on the process that owns the first device of the mesh, to which they are sent
 * (values that each process has for itself: on process 0). Inside oly_shard_map every device prints its own shards, inside
 * oly_vmap every element, in order. oly_debug_print_shards prints without sending anything: every device its parts.
 *
 * A function that prints returns from oly_call when everything is printed on this process (oly_call otherwise returns at once), so
 * its lines come before those that the program prints next.
 *   values   arrays or C numbers; up to 14
 *   returns  OLY_OK or the error (OLY_ERRORS_RETURN)
 *   ranks    all ranks of the arrays' mesh
 *   fails    OLY_INVALID (as many {} as values; an unknown letter), when the function is traced
 *   source   jax.debug.print */
OLY_API oly_status oly_debug_print_n(const char *format, bool shards, int n, const oly_operand *values);
#define oly_debug_print(...)                                                                                           \
    OLY_AT_AS(oly_debug_print, oly_debug_print_n)(OLY_FIRST_(__VA_ARGS__, ), false, OLY_VALUES_(__VA_ARGS__))
#define oly_debug_print_shards(...)                                                                                    \
    OLY_AT_AS(oly_debug_print_shards, oly_debug_print_n)(OLY_FIRST_(__VA_ARGS__, ), true, OLY_VALUES_(__VA_ARGS__))
/* The first argument; the number and the list of the others. */
#define OLY_FIRST_(first, ...)      first
#define OLY_VALUES_(...)            OLY_VALUES_OF_(OLY_HAS_COMMA_(__VA_ARGS__), __VA_ARGS__)
#define OLY_VALUES_OF_(more, ...)   OLY_VALUES_OF_N_(more, __VA_ARGS__)
#define OLY_VALUES_OF_N_(more, ...) OLY_VALUES_##more##_(__VA_ARGS__)
#define OLY_VALUES_0_(first)        OLY_INDEXES()
#define OLY_VALUES_1_(first, ...)   OLY_INDEXES(__VA_ARGS__)

/* -- checking conditions ------------------------------------------------------------------------------------------
 * oly_check(oly_gt(u, 0), "u must be positive, but is {}", u): an error (OLY_CHECK) unless the condition holds everywhere. The call
 * that runs the check fails - oly_call, oly_fori, ... or this one, outside of functions -, on all ranks with the same message: the line
 * of the check, the index of the first element that fails (in row-major order over the whole array, wherever it is), and the values
 * there. Works inside oly_jit, loops, branches (only of those that are taken), derivatives, oly_vmap (the first element of the batch)
 * and oly_shard_map (the first device). It is never dropped. After a check that fails the results of the call do not exist, its other
 * prints, checks and callbacks do not happen any more, and loops end with the iteration.
 *   condition  bool (or a number other than 0) of any shape
 *   values     for the format, as oly_debug_print's; arrays that broadcast to the condition's shape: their element there; others
 *              whole; up to 14
 *   returns    OLY_OK, or the error (OLY_ERRORS_RETURN); of a check recorded in a function, an error of the recording
 *   ranks      all ranks of the arrays' mesh
 *   fails      OLY_CHECK; OLY_INVALID (the format)
 *   source     jax.experimental.checkify.check */
OLY_API oly_status oly_check_n(oly_operand condition, const char *format, int n, const oly_operand *values);
#define oly_check(condition, ...)                                                                                      \
    OLY_AT_AS(oly_check, oly_check_n)(OLY_ARG(condition), OLY_FIRST_(__VA_ARGS__, ), OLY_VALUES_(__VA_ARGS__))

/* -- functions of the program ------------------------------------------------------------------------------------- */

typedef struct oly_user_call oly_user_call;

/* A block of an array, as functions called inside plans see it. */
typedef struct oly_shard_part {
    void *data; /* its first element, that of the halo included */
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK];  /* of the block, with its halo */
    int64_t stride[OLY_MAX_RANK]; /* in elements; row by row unless the operand is declared strided */
    int64_t origin
        [OLY_MAX_RANK]; /* where the first element is in the whole array; in a halo that wraps around it may be negative */
    int64_t whole[OLY_MAX_RANK]; /* extents of the whole array */
    int64_t
        before[OLY_MAX_RANK]; /* elements of the halo in front of the device's own, and after them; fewer at an edge */
    int64_t after[OLY_MAX_RANK];
} oly_shard_part;

/* What such a function knows of its call. */
typedef struct oly_inside {
    oly_device device; /* on which, or for which, it is called */
    int process;
    int n_maps;                /* maps around (oly_vmap, oly_shard_map), the outer ones first */
    const int64_t *element;    /* [n_maps] the number of this element or device in each */
    const int64_t *n_elements; /* [n_maps] how many there are */
    void *scratch;             /* memory for this call (kernels that ask for it); not initialised */
    size_t scratch_bytes;
    void *stream;  /* of a kernel's .cuda: where it launches, a cudaStream_t or CUstream; otherwise NULL */
    char *message; /* of a failing callback or .cuda: what to say, at most message_size bytes with the terminating 0 */
    size_t message_size;
} oly_inside;

/* The type of a result: OLY_TYPE(OLY_FLOAT32, 4, 8), OLY_TYPE_LIKE(x). */
typedef struct oly_result_type {
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK];
} oly_result_type;
static inline oly_result_type oly_result_type_of(oly_dtype dtype, int rank, const int64_t *shape)
{
    oly_result_type type = {dtype, rank, {0}};
    for (int d = 0; d < rank && d < OLY_MAX_RANK && shape; d++)
        type.shape[d] = shape[d];
    return type;
}
static inline oly_result_type oly_result_type_like(oly_array x)
{
    return oly_result_type_of((oly_dtype_of)(x), (oly_rank)(x), (oly_shape)(x));
}
#define OLY_TYPE(dtype, ...) oly_result_type_of(dtype, OLY_EXTENTS(__VA_ARGS__))
#define OLY_TYPE_LIKE(x)     oly_result_type_like(x)
#ifdef __cplusplus
#define OLY_TYPES(...) OLY_LIST_(oly_result_type, {}, __VA_ARGS__)
#else
#define OLY_TYPES(...) OLY_LIST_(oly_result_type, oly_result_type_of(OLY_BOOL, 0, NULL), __VA_ARGS__)
#endif
#define OLY_NOTHING 0, NULL /* instead of OLY_OUT(...): no results */

/* -- callbacks ----------------------------------------------------------------------------------------------------
 * oly_callback(f, user, OLY_IN(x, y), OLY_TYPES(OLY_TYPE(OLY_FLOAT32, 3)), OLY_OUT(z));
 * calls a C function with values in the middle of a plan: in[k] the arrays, out[k].data room for the results, whose types are given.
 * It returns 0, or another number after an error, which ends the call like other errors on all ranks (OLY_CALLBACK), with the text
 * that it has written to called->message.
 *
 * The function gets whole arrays, on the process that owns the first device of the mesh, and is called once; its results are sent
 * to all devices. (Where each process has its own arrays, on no mesh, it is called on every process.) Inside oly_shard_map it is called
 * for every device with its shards, inside oly_vmap for every element in order. With .factors it is called for every shard without
 * communication: "ij,j->i" says which dimensions of operands and results belong together, as in oly_einsum; they may be split in any way, except
 * along letters in .whole.
 *
 * Callbacks happen exactly once, in the order of the program, also among other callbacks, prints and checks, and across calls; a call
 * that has some returns when they have happened on this process. With .pure they have no effect but their results: they may be dropped,
 * repeated and called earlier.
 *
 * A callback may not call Olympus, since other processes do not make that call at that moment (OLY_STATE); allowed are oly_printf and
 * what concerns this process and devices alone (oly_process_index, oly_device_id, oly_dtype_size, ...). It may run on any thread of the
 * library, but never at the same time as another callback of this process. It has no derivative: give one with oly_custom_vjp, or use
 * oly_stop_gradient.
 *   types    one for each result (per element, in maps; with .factors of the whole arrays)
 *   returns  OLY_OK, or the error, with the outputs set to NULL
 *   ranks    all ranks of the arrays' mesh
 *   fails    OLY_CALLBACK (the function failed), OLY_INVALID, OLY_PARSE and OLY_SHAPE (factors)
 *   source   jax.pure_callback, jax.experimental.io_callback */
typedef int (*oly_callback_function)(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out,
                                     void *user);
typedef struct oly_callback_options {
    char first_;         /* not used: lets the macro begin the list */
    bool pure;           /* no effects */
    const char *factors; /* call it for every shard; NULL: once, with whole arrays */
    const char *whole;   /* with .factors: letters of dimensions that are never split */
    const char *name;    /* for messages and explanations; default the C name */
} oly_callback_options;
OLY_API oly_status oly_callback_with(oly_callback_function function, const char *c_name, void *user,
                                     oly_callback_options options, int n_in, const oly_array *in,
                                     const oly_result_type *types, int n_out, oly_array *const *out);
#define oly_callback(function, user, ...)                                                                              \
    OLY_AT_AS(oly_callback, oly_callback_with)                                                                         \
    (function, #function, user, OLY_OPTIONS_(oly_callback_options, ), __VA_ARGS__)
/* The same with options: oly_callback_with(f, user, OLY_CALLBACK_OF(.pure = true), OLY_IN(x), ...). */
#define oly_callback_with(function, user, options, ...)                                                                \
    OLY_AT_AS(oly_callback, oly_callback_with)(function, #function, user, options, __VA_ARGS__)
#define OLY_CALLBACK_OF(...) OLY_OPTIONS_(oly_callback_options, __VA_ARGS__)

/* -- derivatives of your own --------------------------------------------------------------------------------------
 * f = oly_custom_vjp(function, forward, backward, n_in, n_out, n_residuals) makes a function of n_in arrays with n_out results that
 * computes `function`, but is differentiated by the two others: where a derivative passes through a call of f, forward(in, out) is
 * computed instead, which stores the results in out[0..n_out-1] and what the backward pass needs in the n_residuals entries after
 * them; backward(in, out) gets these residuals in in[0..n_residuals-1], then the cotangents of the results, and stores those of the
 * n_in arguments in out[] (NULL: zero). All three get the same `user`. f can be called, compiled, mapped and used in loops like any
 * function; second derivatives differentiate the three functions again. They are recorded when f is called while a function is
 * traced. What `function` prints and checks happens once; what forward prints does not.
 *   returns  handle owned by the open scope
 *   ranks    any rank, alone
 *   fails    OLY_INVALID; when called, OLY_SHAPE and OLY_DTYPE: forward's results or backward's cotangents have other types than
 *            the results and arguments
 *   source   jax.custom_vjp */
typedef struct oly_custom_options {
    char first_;      /* not used: lets the macro begin the list */
    void *user;       /* passed to all of them */
    const char *name; /* for messages and explanations; default the C name */
} oly_custom_options;
OLY_API oly_fn oly_custom_vjp_with(oly_function function, const char *c_name, oly_function forward,
                                   oly_function backward, int n_in, int n_out, int n_residuals,
                                   oly_custom_options options);
#define oly_custom_vjp(...) OLY_CUSTOM_VJP_(__VA_ARGS__, )
#define OLY_CUSTOM_VJP_(function, forward, backward, n_in, n_out, n_residuals, ...)                                    \
    OLY_AT_AS(oly_custom_vjp, oly_custom_vjp_with)                                                                     \
    (function, #function, forward, backward, n_in, n_out, n_residuals, OLY_OPTIONS_(oly_custom_options, __VA_ARGS__))

/* -- user kernels -------------------------------------------------------------------------------------------------
 * oly_kernel_call(&kernel, OLY_IN(a, b), OLY_OUT(c)) computes arrays with a C function over shards:
 *
 *     static void product(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user) { ... }
 *     static const oly_kernel kernel = {.name = "product", .factors = "ij,jk->ik", .cpu = product, .flops = 2};
 *
 * `factors` names every dimension of the operands and results by a letter, as oly_einsum does. The planner may split the dimensions of
 * any letter over devices, except those in `whole`; the function is called on each device with the parts that belong together. Where a
 * letter that no result has (j above) is split, the function computes partial results, which are combined by `combine`. Several results
 * are separated by commas: "ij->i,i". Dimensions with the same letter have the same size.
 *
 * halo[k] extends the blocks of operand k by `radius` elements of the neighbours in each dimension: then in[k].shape is larger than the
 * part of the device by in[k].before and in[k].after, and in[k].origin says where its first element is in the whole array, so that a
 * function can treat the edges of the array. What is beyond those edges: see oly_edge.
 *
 * The function may be called for several devices at the same time, on any thread, so it writes nothing but its results and scratch, and
 * reads nothing that changes. It may not call Olympus. Operands are read only, without gaps between rows (or as they lie, with any
 * strides, if .strided). Results are contiguous and not initialised. Inside maps it is called for each element.
 *
 * On GPUs .cuda is called on the host and launches what computes the results in called->stream, without waiting for it: the parts' data
 * and scratch are memory of the device, complete in the order of the stream, and the device's (primary) context is current. What cannot
 * be launched is written to called->message, and the call fails with it (OLY_DEVICE_FAILED). docs/gpu.md has an example.
 *
 * The call is part of plans like any operation: explained, planned for simulated machines (the function is then not called), in
 * loops, branches and maps. With `vjp` it can be differentiated: vjp(in, out, user) gets the operands, the results and the cotangents of the
 * results, and computes the cotangents of the operands with operations of Olympus, kernels among them.
 *   returns  OLY_OK, or the error, with the outputs set to NULL
 *   ranks    all ranks of the arrays' mesh
 *   fails    OLY_PARSE (factors), OLY_SHAPE (ranks or sizes that do not fit), OLY_DTYPE (an element type that is not declared),
 *            OLY_INVALID (a radius that is negative or larger than a dimension; no .cpu, which CPU devices beside GPUs need, too)
 *   source   jax.ffi with custom_partitioning; Pallas */
typedef void (*oly_kernel_function)(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out,
                                    void *user);

enum { OLY_KERNEL_OPERANDS = 12 }; /* most operands, and most results */

/* Beyond the edges of the array a halo has ... */
typedef enum oly_edge {
    OLY_EDGE_ENDS,     /* nothing: the block ends there, before or after are smaller */
    OLY_EDGE_PERIODIC, /* the elements of the other end */
    OLY_EDGE_ZERO,     /* zeros */
    OLY_EDGE_NEAREST   /* copies of the last element */
} oly_edge;

typedef struct oly_halo {
    int radius[OLY_MAX_RANK];    /* elements on either side, by dimension */
    oly_edge edge[OLY_MAX_RANK]; /* by dimension */
} oly_halo;

typedef enum oly_kernel_combine { OLY_BY_SUM, OLY_BY_PRODUCT, OLY_BY_MAX, OLY_BY_MIN } oly_kernel_combine;

typedef struct oly_kernel {
    const char *name;
    const char *factors;            /* "ij,jk->ik" */
    const char *whole;              /* letters that are never split; NULL: none */
    oly_kernel_function cpu;        /* for CPU devices */
    oly_kernel_function cuda;       /* for GPUs; NULL: .cpu computes on copies in host memory */
    void *user;                     /* passed to the function, which may be called at any time until oly_finalize */
    const char *dtypes;             /* element types of operand 0: "float32, float64"; NULL: any */
    const oly_dtype *result_dtypes; /* one for each result; NULL: that of operand 0 */
    oly_kernel_combine combine;     /* of partial results */
    bool strided;                   /* operands may have any strides */
    double flops,
        bytes; /* per element of the index space (i x j x k), for the planner; bytes besides operands and results */
    size_t scratch,
        scratch_element; /* bytes of scratch memory for a call, and more for each element of its index space */
    oly_function vjp;    /* NULL: no derivative */
    oly_halo halo[OLY_KERNEL_OPERANDS];
} oly_kernel;
OLY_API oly_status oly_kernel_call_n(const oly_kernel *kernel, int n_in, const oly_array *in, int n_out,
                                     oly_array *const *out);
#define oly_kernel_call(...) OLY_AT_AS(oly_kernel_call, oly_kernel_call_n)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_debug_print_n(...)   OLY_AT_AS(oly_debug_print, oly_debug_print_n)(__VA_ARGS__)
#define oly_check_n(...)         OLY_AT_AS(oly_check, oly_check_n)(__VA_ARGS__)
#define oly_custom_vjp_with(...) OLY_AT_AS(oly_custom_vjp, oly_custom_vjp_with)(__VA_ARGS__)
#define oly_kernel_call_n(...)   OLY_AT_AS(oly_kernel_call, oly_kernel_call_n)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
