/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection of the job's platform. See platform.h. */
#include "device/platform.h"
#include "core/error.h"
#include "core/option.h"
#include "device/cuda/cuda.h"
#include <stdio.h>
#include <string.h>

const oly_platform *oly_platform_chosen = &oly_platform_cpu;
int oly_platform_first_beside = INT32_MAX;
static const oly_platform *registered;
static char given_up[120]; /* why GPUs that are there are not used */

void oly_platform_register(const oly_platform *platform)
{
    registered = platform;
}

/* The first of the list that is there. */
static oly_status choose_listed(const oly_platform **found)
{
    const char *why = "";
    for (const char *at = oly_option.platforms; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        *found = &oly_platform_cpu;
        if (length == 4 && memcmp(at, "cuda", 4) == 0)
            OLY_TRY(oly_cuda_platform(found, &why));
        if (*found)
            return OLY_OK;
    }
    return oly_fail(OLY_INVALID,
                    "OLYMPUS_PLATFORMS=%s: no GPU can be used, because %s; with OLYMPUS_PLATFORMS=cuda,cpu the program "
                    "runs on the CPU "
                    "then",
                    oly_option.platforms, why);
}

oly_status oly_platform_choose(bool simulated)
{
    const oly_platform *p = simulated ? &oly_platform_simulated : registered;
    if (!p)
        OLY_TRY(choose_listed(&p));
    if (!p->one_memory && !p->share && p->devices() > OLY_MOST_APART)
        return oly_fail(OLY_INVALID, "platform %s has %d devices with a memory each; a process has at most %d memories",
                        p->name, p->devices(), OLY_MOST_APART);
    if (p->drain && !p->share && p->devices() > OLY_MOST_LATE_DEVICES)
        return oly_fail(OLY_INVALID, "platform %s has %d devices that compute late; a process has at most %d", p->name,
                        p->devices(), OLY_MOST_LATE_DEVICES);
    oly_platform_chosen = p;
    oly_facts_use(p->facts ? p->facts() : NULL);
    oly_facts facts = *oly_facts_now();
    facts.one_memory = facts.one_memory && p->one_memory;
    oly_facts_use(&facts);
    return OLY_OK;
}

int oly_platform_count_beside(void)
{
    int n = oly_platform_chosen->beside ? oly_platform_chosen->beside() : 0;
    oly_platform_first_beside = n > 0 ? oly_platform_chosen->devices() : INT32_MAX;
    return n;
}

static const oly_platform_name *name_at(const oly_platform_name *of, size_t stride, int r)
{
    return (const oly_platform_name *)((const char *)of + (size_t)r * stride);
}

bool oly_platform_fall_back(int n, const oly_platform_name *of, size_t stride)
{
    int gpus = 0, lacking = -1;
    for (int r = 0; r < n; r++) {
        const char *name = name_at(of, stride, r)->chars;
        if (strcmp(name, "cuda") == 0)
            gpus++;
        else if (strcmp(name, "cpu") == 0)
            lacking = r;
        else
            return false;
    }
    if (gpus == 0 || lacking < 0)
        return false;
    oly_platform_chosen = &oly_platform_cpu;
    oly_facts_use(NULL);
    snprintf(given_up, sizeof given_up, "rank %d has none, and the devices of a job are of one platform", lacking);
    return true;
}

const char *oly_platform_given_up(void)
{
    return given_up;
}

void oly_platform_forget(void)
{
    *given_up = 0;
    oly_platform_first_beside = INT32_MAX;
    if (oly_platform_chosen->stop)
        oly_platform_chosen->stop();
    oly_platform_chosen = &oly_platform_cpu;
    oly_facts_use(NULL);
}

oly_platform_name oly_platform_my_name(void)
{
    oly_platform_name name = {.facts = *oly_facts_now()};
    snprintf(name.chars, sizeof name.chars, "%s", oly_platform_get()->name);
    return name;
}

oly_status oly_platform_agree(int n, const oly_platform_name *of, size_t stride)
{
    for (int r = 1; r < n; r++) {
        const oly_platform_name *name = (const oly_platform_name *)((const char *)of + (size_t)r * stride);
        if (strcmp(name->chars, of->chars) != 0)
            return oly_fail(
                OLY_DIVERGED,
                "the devices of rank 0 are of platform \"%s\", those of rank %d of \"%s\"; the devices of a "
                "job are of one platform",
                of->chars, r, name->chars);
        if (memcmp(&name->facts, &of->facts, sizeof of->facts) != 0)
            return oly_fail(
                OLY_DIVERGED,
                "the devices of ranks 0 and %d are of platform \"%s\", but its rates or cache sizes differ; "
                "plans depend on them, so they must be the same on every rank",
                r, of->chars);
    }
    return OLY_OK;
}
