/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that processes must make alike: hashes of calls for the sets of processes that make them
 * (collectives/process_set.c). A call's event is computed when it is issued, from the plan and the identities of its
 * operands; the contents of arrays of which each process has made its own copy are added when the call runs, as they
 * may not be computed before. */
#include "run/together.h"
#include "run/interpret.h"
#include "run/introduction.h"
#include "core/hash.h"
#include "device/queue.h"
#include <string.h>

/* -- sets ------------------------------------------------------------------------------------------------------------ */

/* The set of each combination of meshes met so far: few. */
typedef struct known {
    struct known *next;
    uint64_t key;
    oly_process_set *set;
} known;
static known *all_known;

void oly_together_forget(void)
{
    while (all_known) {
        known *k = all_known;
        all_known = k->next;
        oly_release(k);
    }
}

static void mark_processes(oly_mesh mesh, bool *in)
{
    for (int position = 0; position < mesh->n_devices; position++) {
        int process = oly_mesh_process_of(oly_mesh_device_id(mesh, position)), first;
        in[process] = true;
        if (!mesh->devices) /* positions are ids: skip to the next process */
            position = oly_mesh_devices_of(process, &first) + first - 1; /* no mesh of devices beside */
    }
}

static oly_status set_of(int n_meshes, const oly_mesh *meshes, bool everybody, oly_process_set **set)
{
    int n = oly_mesh_processes(), members = 0;
    bool *in = oly_calloc((size_t)n, sizeof *in);
    int *ranks = oly_malloc(sizeof *ranks * (size_t)n);
    oly_status st = in && ranks ? OLY_OK : oly_out_of_memory(sizeof *ranks * (size_t)n, "the processes of a call");
    for (int k = 0; k < n_meshes && st == OLY_OK; k++)
        mark_processes(meshes[k], in);
    for (int r = 0; r < n && st == OLY_OK; r++)
        if (in[r] || everybody)
            ranks[members++] = r;
    if (st == OLY_OK)
        st = oly_process_set_of(members, ranks, set);
    oly_release(in);
    oly_release(ranks);
    return st;
}

static oly_status find_set(uint64_t key, int n_meshes, const oly_mesh *meshes, bool everybody, oly_process_set **set)
{
    known *k = all_known;
    while (k && k->key != key)
        k = k->next;
    if (!k) {
        OLY_TRY(set_of(n_meshes, meshes, everybody, set));
        k = oly_malloc(sizeof *k);
        if (!k)
            return oly_out_of_memory(sizeof *k, "the processes of a call");
        *k = (known){all_known, key, *set};
        all_known = k;
    }
    *set = k->set;
    return OLY_OK;
}

oly_status oly_together_set(const oly_plan *plan, oly_process_set **set)
{
    *set = NULL;
    if (!plan->distributed || !oly_world_has_peers())
        return OLY_OK;
    return find_set(oly_hash_mix(plan->members_key, plan->everybody), plan->n_meshes, plan->meshes, plan->everybody,
                    set);
}

static oly_status set_of_mesh(oly_mesh mesh, oly_process_set **set)
{
    *set = NULL;
    if (mesh->everywhere || mesh->process >= 0 || !oly_world_has_peers())
        return OLY_OK;
    return find_set(oly_hash_mix(17, mesh->hash), 1, &mesh, false, set);
}

/* -- calls ----------------------------------------------------------------------------------------------------------- */

static uint64_t digest(const oly_identity *x)
{
    return oly_hash_mix(oly_process_set_key(x->set), x->number);
}

uint64_t oly_together_digest_of_all(const oly_identity *x)
{
    return oly_process_set_is_all(x->set) ? digest(x) : 0;
}

uint64_t oly_together_digest_in(oly_mesh mesh, const oly_identity *x)
{
    oly_process_set *set;
    if (!x->set || set_of_mesh(mesh, &set) != OLY_OK || !set)
        return 0;
    return oly_process_set_within(set, x->set) ? digest(x) : 0;
}

/* An operand that only the members of a smaller set know is a call of theirs, too. */
static void share(oly_together *t, const oly_identity *x, uint64_t operand)
{
    int k = 0;
    while (k < t->n_shared && t->shared[k].set != x->set)
        k++;
    if (k == OLY_MOST_SHARED_SETS)
        return;
    if (k == t->n_shared) {
        t->shared[k] = (oly_shared_set){x->set, 0};
        t->shared_event[k] = oly_hash_mix(19, t->event);
        t->n_shared++;
        oly_process_set_next(x->set);
    }
    t->shared_event[k] = oly_hash_mix(t->shared_event[k], operand);
}

static void note_operand(oly_together *t, int k, uint64_t operand, bool copy)
{
    if (k >= OLY_NOTED_OPERANDS)
        return;
    t->called.operand[k] = (uint16_t)(operand ^ operand >> 16 ^ operand >> 32 ^ operand >> 48);
    t->called.by_contents |= (uint8_t)(copy << k);
}

static void issue_input(oly_together *t, int k, const oly_identity *x, oly_mesh mesh)
{
    uint64_t operand = 0;
    t->copies[k] = 0;
    if (x->set && (x->set == t->set || oly_process_set_within(t->set, x->set))) {
        operand = digest(x);
    } else if (mesh->everywhere) {
        t->copies[k] = x->value;
        t->any_copy = true;
    } else {
        if (x->set && oly_process_set_within(x->set, t->set))
            share(t, x, oly_hash_mix((uint64_t)k, digest(x)));
        if (!(x->origin & OLY_ORIGIN_OWN)) /* processes without a part of it know it by that */
            operand = x->origin;
        else
            oly_introduction_add(&t->introduction, &t->acquaintance, oly_process_set_key(t->set), mesh, x->lineage);
    }
    t->event = oly_hash_mix(t->event, operand);
    note_operand(t, k, operand, false);
}

void oly_together_issue(oly_together *t, const oly_plan *plan, const oly_identity *inputs, const int *donated,
                        oly_site site)
{
    static const oly_identity unknown;
    int n = plan->n_inputs;
    t->number = oly_process_set_next(t->set);
    t->event = plan->fingerprint;
    t->called = (oly_called){.program = (uint32_t)(plan->fingerprint ^ plan->fingerprint >> 32), .site = site};
    t->called.n_operands = (uint8_t)(n < OLY_NOTED_OPERANDS ? n : OLY_NOTED_OPERANDS);
    t->any_copy = false;
    t->n_shared = 0;
    t->introduction.origin = 0;
    for (int k = 0; donated && k < plan->n_outputs; k++)
        if (donated[k] >= 0)
            t->event = oly_hash_mix(t->event, (uint64_t)(k + 1) << 32 | (uint64_t)donated[k]);
    for (int k = 0; k < n; k++)
        issue_input(t, k, inputs ? &inputs[k] : &unknown, plan->inputs[k].sharding->mesh);
}

oly_status oly_contents_of(oly_buffer *b, uint64_t value, size_t bytes, uint64_t *contents)
{
    void *host;
    if (b->hashed != value) {
        OLY_TRY(oly_buffer_map(b, OLY_ACCESS_READ, bytes, &host));
        b->contents = oly_hash(bytes, host, bytes);
        b->hashed = value;
        OLY_TRY(oly_buffer_unmap(b, OLY_ACCESS_READ, bytes, host));
    }
    *contents = b->contents;
    return OLY_OK;
}

static oly_status count_copies(oly_together *t, const oly_plan *plan, oly_buffer *(*copy)(void *context, int input),
                               void *context)
{
    for (int k = 0; k < plan->n_inputs; k++) {
        oly_buffer *b = t->copies[k] ? copy(context, k) : NULL;
        if (!b)
            continue;
        const oly_type *type = &plan->inputs[k].type;
        size_t bytes = (size_t)oly_type_size(type) * oly_dtype_size(type->dtype);
        uint64_t contents;
        OLY_TRY(oly_contents_of(b, t->copies[k], bytes, &contents));
        t->event = oly_hash_mix(t->event, contents);
        note_operand(t, k, contents, true);
    }
    return OLY_OK;
}

oly_status oly_together_count(oly_together *t, const oly_plan *plan, oly_buffer *(*copy)(void *context, int input),
                              void *context, oly_ticket *ticket)
{
    for (int k = 0; k < t->n_shared; k++) {
        oly_called call = t->called;
        OLY_TRY(oly_process_set_called((oly_process_set *)t->shared[k].set, t->shared_event[k], &call));
        t->shared[k].hash = call.hash;
    }
    if (t->any_copy)
        OLY_TRY(count_copies(t, plan, copy, context));
    OLY_TRY(oly_process_set_called(t->set, t->event, &t->called));
    ticket->fingerprint = t->called.hash;
    ticket->set = oly_process_set_key(t->set);
    ticket->n_shared = t->n_shared;
    ticket->sets = t->shared;
    ticket->introduction = t->introduction;
    ticket->acquaintance = t->acquaintance;
    return OLY_OK;
}

/* -- calls without a plan ------------------------------------------------------------------------------------------ */

typedef struct noted_call {
    oly_job job; /* first member */
    oly_process_set *set;
    uint64_t event;
    oly_called called;
} noted_call;

static void count_noted(oly_job *job)
{
    noted_call *c = (noted_call *)job;
    if (oly_run_failure() != OLY_OK)
        return;
    oly_status st = oly_process_set_called(c->set, c->event, &c->called);
    if (st != OLY_OK)
        oly_run_fail_in(st, c->called.site);
}

static void release_noted(oly_job *job)
{
    oly_release(job);
}

oly_status oly_together_note(oly_mesh mesh, uint64_t event, oly_site site, oly_identity *made)
{
    oly_process_set *set;
    OLY_TRY(set_of_mesh(mesh, &set));
    *made = (oly_identity){.set = set};
    if (!set)
        return OLY_OK;
    noted_call *c = oly_calloc(1, sizeof *c);
    if (!c)
        return oly_out_of_memory(sizeof *c, "a call");
    event = oly_hash_mix(event, mesh->hash);
    c->job = (oly_job){.execute = count_noted, .release = release_noted, .communicates = true, .small = true};
    c->set = set;
    c->event = event;
    c->called.program = (uint32_t)(event ^ event >> 32);
    c->called.site = site;
    made->number = oly_process_set_next(set) << 16;
    oly_status st = oly_queue_submit(&c->job);
    if (st != OLY_OK)
        oly_release(c);
    return st;
}

oly_status oly_together_meet(oly_mesh mesh, const char *call)
{
    oly_process_set *set;
    OLY_TRY(set_of_mesh(mesh, &set));
    if (!set)
        return OLY_OK;
    oly_queue_drain();
    OLY_TRY(oly_run_refused());
    return oly_process_set_meet(set, call);
}
