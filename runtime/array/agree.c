/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparing versions, builds and options of all ranks at start. A few numbers of each rank are always exchanged; what a
 * message needs beyond them only when they differ. See agree.h. */
#include "array/agree.h"
#include "communicator.h"
#include "core/build.h"
#include "core/error.h"
#include "core/option.h"

/* The same bytes in every version, so that versions can tell each other apart. */
typedef struct greeting {
    uint32_t version, option_bytes, mixed, unused;
    uint64_t program, library, options;
} greeting;

typedef struct card {
    oly_options options;
    char program[512], library[512];
} card;

static greeting own_greeting(void)
{
    oly_build build = oly_build_get();
    return (greeting){.version = OLY_VERSION_MAJOR * 1000 + OLY_VERSION_MINOR,
                      .option_bytes = sizeof(oly_options),
                      .mixed = oly_option.mixed_programs != 0,
                      .program = build.program,
                      .library = build.library,
                      .options = oly_options_fingerprint()};
}

/* Differences for which two ranks have to describe themselves. */
typedef enum difference { NONE, VERSION, LIBRARY, PROGRAM, OPTIONS } difference;

static difference compare(const greeting *zero, const greeting *other)
{
    bool mixed = zero->mixed && other->mixed;
    if (zero->version != other->version)
        return VERSION;
    if (zero->option_bytes != other->option_bytes)
        return LIBRARY;
    if (zero->options != other->options)
        return OPTIONS;
    if (!mixed && zero->program != other->program)
        return PROGRAM;
    return !mixed && zero->library != other->library ? LIBRARY : NONE;
}

static oly_status describe_builds(const char *what, const char *zero, uint64_t zero_build, int rank, const char *other,
                                  uint64_t other_build)
{
    return oly_fail(
        OLY_DIVERGED,
        "rank 0 runs the %s %s (build %016llx), rank %d %s (build %016llx); all ranks must run the same, or "
        "have OLYMPUS_MIXED_PROGRAMS=1",
        what, zero, (unsigned long long)zero_build, rank, other, (unsigned long long)other_build);
}

/* The two ranks send their descriptions to all. */
static oly_status describe(difference d, const greeting *all, int rank)
{
    if (d == VERSION)
        return oly_fail(OLY_DIVERGED, "rank 0 runs Olympus %u.%u, rank %d %u.%u; all ranks must use one version",
                        all[0].version / 1000, all[0].version % 1000, rank, all[rank].version / 1000,
                        all[rank].version % 1000);
    if (all[0].option_bytes != all[rank].option_bytes)
        return describe_builds("library", "of one build", all[0].library, rank, "of another", all[rank].library);
    card zero = {.options = *oly_options_asked()}, other;
    oly_build_paths(zero.program, zero.library, sizeof zero.program);
    other = zero;
    OLY_TRY(oly_world_share(&zero, sizeof zero, 0));
    OLY_TRY(oly_world_share(&other, sizeof other, rank));
    if (d == OPTIONS)
        return oly_options_compare(&zero.options, rank, &other.options);
    if (d == PROGRAM)
        return describe_builds("program", zero.program, all[0].program, rank, other.program, all[rank].program);
    return describe_builds("library", zero.library, all[0].library, rank, other.library, all[rank].library);
}

oly_status oly_agree_at_start(void)
{
    int n = oly_world_size();
    greeting mine = own_greeting(), *all = oly_calloc((size_t)n, sizeof *all);
    if (!all)
        return oly_out_of_memory(sizeof *all * (size_t)n, "the processes of the job");
    oly_status st = oly_world_gather(&mine, all, sizeof mine);
    for (int r = 1; r < n && st == OLY_OK; r++) {
        difference d = compare(&all[0], &all[r]);
        if (d != NONE)
            st = describe(d, all, r);
    }
    oly_release(all);
    return st;
}
