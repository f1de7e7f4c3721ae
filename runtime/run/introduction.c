/* SPDX-License-Identifier: BSD-3-Clause */
/* Which arrays have been made of a process's own data, and which of them have moved. See introduction.h. Memory is fixed: of more
 * arrays, or meshes, less is known, and less compared. */
#include "run/introduction.h"
#include "core/hash.h"
#include <string.h>

enum { ARRAYS = 256, MESHES = 64, SETS = 3 };

typedef struct made {
    uint64_t origin, kind;
    uint64_t when;
    uint64_t moved[SETS]; /* keys of the sets in which it has moved; 0: none */
} made;

typedef struct count {
    uint64_t mesh; /* hash */
    uint32_t made; /* stand-ins included */
    bool stand_ins;
} count;

static struct {
    made ring[ARRAYS];
    uint64_t n;    /* ever */
    bool lost;     /* one that had not moved */
    uint64_t time; /* counts arrays and calls */
    count meshes[MESHES];
    int n_meshes;
} all;

void oly_introductions_end(void)
{
    memset(&all, 0, sizeof all);
}

static count *count_of(oly_mesh mesh)
{
    int k = 0;
    while (k < all.n_meshes && all.meshes[k].mesh != mesh->hash)
        k++;
    if (k == MESHES)
        return NULL;
    if (k == all.n_meshes)
        all.meshes[all.n_meshes++] = (count){.mesh = mesh->hash};
    return &all.meshes[k];
}

void oly_introduction_made(oly_mesh mesh, uint64_t kind, uint64_t origin, bool stand_in)
{
    count *c = count_of(mesh);
    made *m = &all.ring[all.n % ARRAYS];
    all.lost = all.lost || (all.n >= ARRAYS && !m->moved[0]);
    *m = (made){.origin = origin, .kind = kind, .when = ++all.time};
    all.n++;
    if (c) {
        c->made++;
        c->stand_ins = c->stand_ins || stand_in;
    }
}

static made *find(uint64_t origin)
{
    for (uint64_t k = all.n; k > 0 && k + ARRAYS > all.n; k--)
        if (all.ring[(k - 1) % ARRAYS].origin == origin)
            return &all.ring[(k - 1) % ARRAYS];
    return NULL;
}

static bool has_moved(const made *m, uint64_t set)
{
    bool found = m->moved[SETS - 1] != 0; /* in that many that not all are known */
    for (int k = 0; k < SETS; k++)
        found = found || m->moved[k] == set;
    return found;
}

static void note_move(made *m, uint64_t set)
{
    int k = 0;
    while (k < SETS && m->moved[k])
        k++;
    if (k < SETS)
        m->moved[k] = set;
}

static void find_place(oly_introduction *i, const made *m, uint64_t set)
{
    if (all.lost || has_moved(m, set))
        return;
    for (uint64_t k = 0; k < ARRAYS && k < all.n; k++) {
        const made *other = &all.ring[k];
        if (other->kind != m->kind || has_moved(other, set))
            continue;
        i->of++;
        i->place = (uint16_t)(i->place + (other->when <= m->when));
    }
}

void oly_introduction_add(oly_introduction *i, oly_acquaintance *a, uint64_t set, oly_mesh mesh, uint64_t origin)
{
    const int *positions;
    bool several = i->origin != 0;
    count *c = count_of(mesh);
    made *m = find(origin);
    i->origin = oly_hash_mix(i->origin, origin) | 1;
    i->made = c && !c->stand_ins && (!several || i->made) ? i->made + c->made : 0;
    i->holds = oly_mesh_local_positions(mesh, &positions) > 0;
    i->number = 0;
    i->place = i->of = 0;
    *a = (oly_acquaintance){.issued = ++all.time};
    if (m && !several) {
        find_place(i, m, set);
        i->number = (uint32_t)m->when;
        a->kind = m->kind;
        a->made = m->when;
    }
    if (m && !has_moved(m, set))
        note_move(m, set);
}
