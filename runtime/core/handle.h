/* SPDX-License-Identifier: BSD-3-Clause */
/* Tags: the first word of a handle's object gives its kind, and whether it is alive. So a handle of the wrong kind, or of a freed
 * object, gets a message. Included by the makers of handles and by public functions. */
#ifndef OLY_CORE_HANDLE_H
#define OLY_CORE_HANDLE_H
#include <olympus/base.h>

typedef enum oly_handle {
    OLY_HANDLE_ARRAY = 1,
    OLY_HANDLE_FUNCTION,
    OLY_HANDLE_MESH,
    OLY_HANDLE_SHARDING,
    OLY_HANDLE_DEVICE,
} oly_handle;

typedef uint64_t oly_tag;
#define OLY_TAG_BASE_      UINT64_C(0x7375706d796c4f00) /* "Olympus" after the kind */
#define OLY_TAG_DEAD_      UINT64_C(0x80)
#define OLY_TAG(kind)      (OLY_TAG_BASE_ | (oly_tag)(kind))
#define OLY_DEAD_TAG(kind) (OLY_TAG_BASE_ | OLY_TAG_DEAD_ | (oly_tag)(kind))

/* Is it alive and of this kind? NULL is not. */
static inline bool oly_lives(const void *handle, oly_handle kind)
{
    return handle && *(const oly_tag *)handle == OLY_TAG(kind);
}
/* Is it dead and of this kind? */
static inline bool oly_is_dead(const void *handle, oly_handle kind)
{
    return handle && *(const oly_tag *)handle == OLY_DEAD_TAG(kind);
}
/* The error after oly_lives returned false: OLY_INVALID, OLY_DELETED. Also for a pointer to anything (arguments of printing),
 * of which no more is read than matches a tag. */
oly_status oly_wrong_handle(const void *handle, oly_handle kind);
/* The same tests for such a pointer. */
bool oly_lives_there(const void *pointer, oly_handle kind);
bool oly_died_there(const void *pointer, oly_handle kind);

/* Keeps a freed object for a while, so that its tag can be read; the maker has set it to the dead one. */
void oly_bury(void *memory);

/* For the start of a public function: raises an error unless the handle is valid. A NULL left by an earlier error
 * (OLY_ERRORS_RETURN) gives that error. */
oly_status oly_refuse(const void *handle, oly_handle kind);
static inline oly_status oly_need(const void *handle, oly_handle kind)
{
    return __builtin_expect(oly_lives(handle, kind), 1) ? OLY_OK : oly_refuse(handle, kind);
}
/* The same for arguments that may be NULL. */
static inline oly_status oly_need_or_null(const void *handle, oly_handle kind)
{
    return handle ? oly_need(handle, kind) : OLY_OK;
}
#endif
