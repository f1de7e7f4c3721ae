/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the work of planning in calls of the arithmetic functions and in allocated memory, which, unlike time, are
 * reproducible. Scratch memory that is neither cleared nor kept is not counted. For tests for which the Makefile has
 * the linker wrap these calls (`counted` there). */
#ifndef OLY_TESTS_COUNT_WORK_H
#define OLY_TESTS_COUNT_WORK_H
#include "check.h"
#include "plan/model/planner.h"

/* Checks that nothing grew beyond its limit. Sanitizers prevent inlining, so the limits of ordinary builds do not apply
 * there. */
static inline void check_growth(int complaints)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (complaints) {
        print_message("skipped: with sanitizers other calls are counted than those the limits are of\n");
        skip();
    }
#endif
    assert_int_equal(complaints, 0);
}

static struct {
    long calls, bytes;
} done;

#define COUNTED(type, name, parameters, arguments)                                                                     \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        done.calls++;                                                                                                  \
        return __real_##name arguments;                                                                                \
    }

#define COUNTED_MEMORY(name, parameters, arguments, taken)                                                             \
    void *__real_##name parameters;                                                                                    \
    void *__wrap_##name parameters;                                                                                    \
    void *__wrap_##name parameters                                                                                     \
    {                                                                                                                  \
        done.calls++;                                                                                                  \
        done.bytes += (long)(taken);                                                                                   \
        return __real_##name arguments;                                                                                \
    }

COUNTED(int64_t, oly_split_cut, (const oly_split *s, int64_t n, int64_t k), (s, n, k))
COUNTED(int, oly_split_part_of, (const oly_split *s, int64_t n, int64_t i), (s, n, i))
COUNTED(int, oly_split_part_at, (const oly_split *s, oly_mesh mesh, const int *coordinates), (s, mesh, coordinates))
COUNTED(oly_box, oly_layout_box, (const oly_layout *l, int position), (l, position))
COUNTED(oly_box, oly_region_box, (const oly_region *r, const int64_t *shape, int position), (r, shape, position))
COUNTED(oly_box, oly_box_intersect, (const oly_box *a, const oly_box *b), (a, b))
COUNTED(int64_t, oly_box_count, (const oly_box *b), (b))
COUNTED(bool, oly_box_contains, (const oly_box *outer, const oly_box *inner), (outer, inner))
COUNTED(bool, oly_box_equal, (const oly_box *a, const oly_box *b), (a, b))
COUNTED(void, oly_mesh_coordinates, (oly_mesh mesh, int position, int *coordinates), (mesh, position, coordinates))
COUNTED(int, oly_mesh_position, (oly_mesh mesh, const int *coordinates), (mesh, coordinates))
COUNTED(int, oly_mesh_process_of, (int device_id), (device_id))
COUNTED_MEMORY(oly_malloc, (size_t bytes), (bytes), bytes)
COUNTED_MEMORY(oly_calloc, (size_t count, size_t bytes), (count, bytes), count *bytes)
COUNTED_MEMORY(oly_arena_take, (oly_arena * a, size_t bytes), (a, bytes), bytes)

/* Memory counts in lines of 64 bytes. */
static long work_done(void)
{
    long work = done.calls + done.bytes / 64;
    done.calls = done.bytes = 0;
    return work;
}
#endif
