/* SPDX-License-Identifier: BSD-3-Clause */
/* Origins of arrays. See origin.h. */
#include "array/origin.h"
#include "core/error.h"
#include "core/hash.h"

/* -- which processes a mesh leaves out --------------------------------------------------------------------- */

static void mark(oly_mesh mesh, bool *in)
{
    for (int position = 0; position < mesh->n_devices; position++)
        in[oly_mesh_process_of(oly_mesh_device_id(mesh, position))] = true;
}

/* Is it all devices, in order? */
static bool is_everyone(oly_mesh mesh)
{
    return !mesh->devices && oly_mesh_process_of(mesh->n_devices - 1) == oly_mesh_processes() - 1;
}

/* Does some process own no device of these meshes? Out of memory: no. Others may then ask for values in vain, which
 * they are told. */
static bool leave_out(int n_meshes, const oly_mesh *meshes)
{
    int n = oly_mesh_processes(), covered = 0;
    if (!oly_world_has_peers() || n_meshes == 0)
        return false;
    for (int k = 0; k < n_meshes; k++)
        if (is_everyone(meshes[k]))
            return false;
    bool *in = oly_calloc((size_t)n, sizeof *in);
    for (int k = 0; in && k < n_meshes; k++)
        mark(meshes[k], in);
    for (int r = 0; in && r < n; r++)
        covered += in[r];
    bool out = in && covered < n;
    oly_release(in);
    return out;
}

bool oly_plan_leaves_out(const oly_plan *plan)
{
    return !plan->everybody && leave_out(plan->n_meshes, plan->meshes);
}

bool oly_mesh_leaves_out(oly_mesh mesh)
{
    return !mesh->everywhere && leave_out(1, &mesh);
}

bool *oly_mesh_has(oly_mesh mesh)
{
    bool *in = oly_calloc((size_t)oly_mesh_processes(), sizeof *in);
    if (in)
        mark(mesh, in);
    return in;
}

int oly_mesh_keeper(oly_mesh mesh)
{
    return oly_mesh_process_of(oly_mesh_device_id(mesh, 0));
}

/* -- calls that make arrays of a process's own data -------------------------------------------------------- */

typedef struct made {
    struct made *next;
    uint64_t call; /* with its source line */
    uint64_t times;
} made;

enum { BUCKETS = 1024 };
static made *buckets[BUCKETS]; /* owned; one entry for each such call in the program text */

/* How many arrays this call has made, this one included; 0: out of memory. */
static uint64_t count(uint64_t call)
{
    made **at = &buckets[call % BUCKETS], *m = *at;
    while (m && m->call != call)
        m = m->next;
    if (!m && (m = oly_calloc(1, sizeof *m))) {
        m->call = call;
        m->next = *at;
        *at = m;
    }
    return m ? ++m->times : 0;
}

void oly_origins_forget(void)
{
    for (int b = 0; b < BUCKETS; b++)
        while (buckets[b]) {
            made *m = buckets[b];
            buckets[b] = m->next;
            oly_release(m);
        }
}

/* -- origins ------------------------------------------------------------------------------------------------------------- */

/* Marks an origin that all processes compute alike; never 0. */
static uint64_t shared(uint64_t origin)
{
    origin &= ~(uint64_t)OLY_ORIGIN_OWN;
    return origin ? origin : 2;
}

uint64_t oly_origin_of(oly_array x)
{
    if (x->identity.origin)
        return x->identity.origin;
    uint64_t digest = oly_together_digest_of_all(&x->identity);
    return digest ? shared(digest) : 0;
}

uint64_t oly_origin_of_data(const void *data, size_t bytes)
{
    return shared(oly_hash(bytes, data, bytes));
}

/* An array of this process alone is identified by its contents: other processes have copies of it. The hash is cached
 * with its buffer, which the thread that runs calls owns. */
static uint64_t contents_of(oly_array x)
{
    if (x->n_shards != 1 || x->deleted)
        return 0;
    oly_array_wait(x);
    size_t bytes = (size_t)oly_type_size(&x->type) * oly_dtype_size(x->type.dtype);
    void *host;
    if (oly_buffer_map(x->shard[0], OLY_ACCESS_READ, bytes, &host) != OLY_OK)
        return 0;
    uint64_t origin = oly_origin_of_data(host, bytes);
    return oly_buffer_unmap(x->shard[0], OLY_ACCESS_READ, bytes, host) == OLY_OK ? origin : 0;
}

void oly_origin_add(oly_origin *o, oly_array operand)
{
    if (!oly_origin_of(operand))
        operand->identity.origin = contents_of(operand);
    uint64_t origin = oly_origin_of(operand);
    o->own = o->own || (origin & OLY_ORIGIN_OWN);
    o->count = o->count || !origin;
    o->call = oly_hash_mix(o->call, origin);
    o->lineage = oly_hash_mix(o->lineage, operand->identity.lineage ? operand->identity.lineage : origin);
}

void oly_origin_end(oly_origin *o)
{
    oly_site site = oly_current_site();
    if (!o->count)
        return;
    o->own = true;
    uint64_t place = oly_hash_text(oly_hash_text((uint64_t)site.line, site.file ? site.file : ""), site.call);
    o->call = oly_hash_mix(o->call, place);
    uint64_t times = count(o->call);
    o->unknown = times == 0;
    o->call = oly_hash_mix(o->call, times);
    o->lineage = oly_hash_mix(oly_hash_mix(o->lineage, place), times);
}

uint64_t oly_origin_number(uint64_t kind)
{
    return count(oly_hash_mix(kind, 37));
}

void oly_origin_result(const oly_origin *o, int k, oly_identity *x)
{
    uint64_t origin = oly_hash_mix(o->call, (uint64_t)k);
    x->origin = o->unknown ? 0 : o->own ? origin | OLY_ORIGIN_OWN : shared(origin);
    x->lineage = o->own ? oly_hash_mix(o->lineage, (uint64_t)k) : 0;
}
