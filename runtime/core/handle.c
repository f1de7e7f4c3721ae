/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for invalid handles. See handle.h. */
#include "core/handle.h"
#include "core/error.h"
#include <pthread.h>
#include <string.h>

static const struct {
    const char *a, *maker;
} kinds[] = {
    [OLY_HANDLE_ARRAY] = {"an array", "an operation or oly_from_host"},
    [OLY_HANDLE_FUNCTION] = {"a function", "oly_jit"},
    [OLY_HANDLE_MESH] = {"a mesh", "oly_make_mesh"},
    [OLY_HANDLE_SHARDING] = {"a sharding", "oly_named"},
    [OLY_HANDLE_DEVICE] = {"a device", "oly_get_device"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* -- what is gone ------------------------------------------------------------------------------ */

enum { GRAVES = 4096 };
static void *grave[GRAVES]; /* a ring */
static unsigned n_buried;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void oly_bury(void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&lock);
    void **place = &grave[n_buried++ % GRAVES], *oldest = *place;
    *place = memory;
    pthread_mutex_unlock(&lock);
    oly_release(oldest);
}

/* -- what is wrong ----------------------------------------------------------------------------- */

/* The kind according to the pointer's first bytes, and whether it is alive; 0: none. Reads only as long as the bytes match a tag. */
static int kind_there(const void *pointer, bool *alive)
{
    const unsigned char *byte = pointer;
    uintptr_t address = (uintptr_t)pointer;
    if (address < 4096 || address % _Alignof(oly_tag) != 0)
        return 0;
    int kind = byte[0] & 0x7f;
    *alive = !(byte[0] & 0x80);
    if (kind < 1 || kind >= KINDS)
        return 0;
    for (int k = 1; k < (int)sizeof(oly_tag); k++)
        if (byte[k] != (unsigned char)(OLY_TAG_BASE_ >> (8 * k)))
            return 0;
    return kind;
}

bool oly_lives_there(const void *pointer, oly_handle kind)
{
    bool alive = false;
    return kind_there(pointer, &alive) == (int)kind && alive;
}

bool oly_died_there(const void *pointer, oly_handle kind)
{
    bool alive = true;
    return kind_there(pointer, &alive) == (int)kind && !alive;
}

oly_status oly_wrong_handle(const void *handle, oly_handle kind)
{
    bool alive = false;
    if (!handle)
        return oly_fail(OLY_INVALID, "the %s is NULL; take one from %s", strchr(kinds[kind].a, ' ') + 1,
                        kinds[kind].maker);
    int found = kind_there(handle, &alive);
    if (found == (int)kind)
        return oly_fail(OLY_DELETED, "%s is used after its end%s", kinds[kind].a,
                        kind == OLY_HANDLE_ARRAY || kind == OLY_HANDLE_FUNCTION
                            ? ": it was freed, or its scope has ended"
                            : ", which was that of Olympus");
    if (found)
        return oly_fail(OLY_INVALID, "%s is expected, %s was given", kinds[kind].a, kinds[found].a);
    return oly_fail(OLY_INVALID, "%s is expected; what was given is not a handle, or its memory has been reused",
                    kinds[kind].a);
}

oly_status oly_refuse(const void *handle, oly_handle kind)
{
    if (!handle && oly_kept_status() != OLY_OK)
        return oly_kept_status();
    return oly_raise(oly_wrong_handle(handle, kind));
}
