/* SPDX-License-Identifier: BSD-3-Clause */
/* Which transport a job has, and packing by the host for transports through its memory. See transport.h. */
#include "transport.h"
#include "device_trial.h"
#include "transport_gpu.h"
#include "transport_nccl.h"
#include "way_prices.h"
#include "core/option.h"
#include <stdio.h>
#include <string.h>

static const oly_transport *chosen = &oly_transport_mpi, *registered;
static const oly_device_access *device_access; /* NULL: host memory */
static char why_chosen[300];
static oly_way way = OLY_WAY_HOST;
static oly_way_price price; /* of the way; not measured: it does not work */
bool oly_transport_tries;
static oly_transport between_gpus; /* the table in use, with numbers of this job */

void oly_transport_register(const oly_transport *transport)
{
    registered = transport;
}

void oly_transport_choose(const oly_device_access *access)
{
    chosen = registered ? registered : &oly_transport_mpi;
    device_access = access;
    way = OLY_WAY_HOST;
    snprintf(why_chosen, sizeof why_chosen, "%s", access ? "through host memory" : "");
}

static void use(const oly_transport *transport, oly_way chosen_way)
{
    way = chosen_way;
    between_gpus = *transport;
    between_gpus.small_bytes = (int)oly_option.nccl_bytes;
    if (way == OLY_WAY_STAGED)
        between_gpus.chunk_bytes = OLY_STAGED_CHUNK_BYTES;
    chosen = &between_gpus;
}

/* What one rank of each node has found out. */
typedef struct found_aware {
    int yes;
    char why[160];
} found_aware;

/* Does MPI take memory of GPUs on all nodes? `why`: the first reason against it. The same on all ranks. Beside NCCL an MPI that does not even
 * claim to is not tried, as a trial takes as long as a start of MPI. */
static oly_status find_aware(bool beside_nccl, bool *yes, char *why, size_t room)
{
    found_aware mine = {.yes = oly_option.cuda_aware != 0};
    size_t bytes = sizeof mine * (size_t)oly_world_size();
    *yes = false;
    if (!mine.yes)
        snprintf(mine.why, sizeof mine.why, "OLYMPUS_CUDA_AWARE=0");
    else if (oly_option.cuda_aware == 1 && beside_nccl && !oly_device_claim())
        mine.yes = false;
    else if (oly_option.cuda_aware == 1 && oly_world_node_rank() == 0)
        mine.yes = oly_device_trial(mine.why, sizeof mine.why);
    found_aware *all = oly_malloc(bytes);
    OLY_TRY(oly_world_vote(all ? OLY_OK : oly_out_of_memory(bytes, "messages between GPUs"),
                           "trying MPI with memory of GPUs"));
    oly_status st = oly_world_gather(&mine, all, sizeof mine);
    int no = 0;
    while (st == OLY_OK && no < oly_world_size() && all[no].yes)
        no++;
    *yes = st == OLY_OK && no == oly_world_size();
    if (st == OLY_OK && !*yes)
        snprintf(why, room, "%s", all[no].why);
    oly_release(all);
    return st;
}

/* -- choosing a way --------------------------------------------------------------------------------------------------------- */

/* The ways that all ranks can use, in the order in which they are taken where nothing is measured. */
static const oly_way order[] = {OLY_WAY_NCCL, OLY_WAY_AWARE, OLY_WAY_STAGED};
enum { N_ORDER = sizeof order / sizeof *order };
static const char *const words[OLY_N_WAYS] = {
    [OLY_WAY_NCCL] = "nccl", [OLY_WAY_AWARE] = "aware", [OLY_WAY_STAGED] = "staged"};

typedef struct ways {
    bool can[OLY_N_WAYS], measured;
    oly_way_price price[OLY_N_WAYS];
    char nccl[120]; /* its version, or why it is not there */
    char aware[160];
} ways;

static const oly_transport *transport_of(oly_way of)
{
    return of == OLY_WAY_NCCL ? &oly_transport_nccl : &oly_transport_gpu;
}

/* OLYMPUS_GPU_MESSAGES: a way; OLY_N_WAYS: the first; OLY_WAY_HOST: the cheapest. Sums of NCCL's own need NCCL. */
static oly_status way_wanted(oly_way *wanted)
{
    const char *text = oly_option.gpu_messages;
    *wanted = oly_option.nccl_allreduce || strcmp(text, "first") == 0 ? OLY_N_WAYS : OLY_WAY_HOST;
    for (int k = 0; k < N_ORDER; k++)
        if (strcmp(text, words[order[k]]) == 0)
            *wanted = order[k];
    if (*wanted == OLY_WAY_HOST && *text && strcmp(text, "measured") != 0)
        return oly_fail(OLY_INVALID,
                        "OLYMPUS_GPU_MESSAGES=\"%s\": give measured, first, nccl, aware or staged (docs/gpu.md)", text);
    return OLY_OK;
}

static int count_ways(const ways *w)
{
    int n = 0;
    for (int k = 0; k < N_ORDER; k++)
        n += w->can[order[k]];
    return n;
}

/* One that fails is not taken; the last one stays, as there must be one. */
static oly_status measure_ways(const oly_gpu_access *gpus, ways *w)
{
    for (int k = 0; k < N_ORDER; k++) {
        oly_way of = order[k];
        if (!w->can[of])
            continue;
        oly_gpu_messages_aware(of == OLY_WAY_AWARE);
        OLY_TRY(oly_way_measure(transport_of(of), of, gpus, &w->price[of]));
        w->can[of] = w->price[of].works || of == OLY_WAY_STAGED;
        w->measured = w->measured || w->price[of].works;
        if (of == OLY_WAY_NCCL && !w->can[of]) {
            oly_nccl_give_up();
            snprintf(w->nccl, sizeof w->nccl, "it failed when it was tried");
        }
        if (of == OLY_WAY_AWARE && !w->can[of])
            snprintf(w->aware, sizeof w->aware, "MPI with memory of GPUs failed when it was tried");
    }
    return OLY_OK;
}

/* The first of those that are about as cheap as the cheapest, so that runs of a job choose alike. */
static oly_way cheapest(const ways *w)
{
    const double ALIKE = 1.2;
    double least = 0;
    for (int k = 0; k < N_ORDER; k++)
        if (w->price[order[k]].works && (least == 0 || oly_way_compare(&w->price[order[k]]) < least))
            least = oly_way_compare(&w->price[order[k]]);
    for (int k = 0; k < N_ORDER; k++)
        if (w->price[order[k]].works && oly_way_compare(&w->price[order[k]]) <= ALIKE * least)
            return order[k];
    return OLY_WAY_STAGED;
}

static oly_way first_way(const ways *w, oly_way wanted)
{
    if (wanted < OLY_N_WAYS && w->can[wanted])
        return wanted;
    for (int k = 0; k < N_ORDER; k++)
        if (w->can[order[k]])
            return order[k];
    return OLY_WAY_STAGED;
}

static const char *name_of(const ways *w, oly_way of)
{
    return of == OLY_WAY_NCCL ? w->nccl : of == OLY_WAY_AWARE ? "CUDA-aware MPI" : "MPI and pinned memory";
}

/* "NCCL 2.28.9 (measured 24 GB/s, 15 us; MPI and pinned memory 9 GB/s, 30 us)"; what is not there, and why. */
static void say_why(const ways *w, oly_way chosen_way)
{
    char told[60];
    int n = snprintf(why_chosen, sizeof why_chosen, "%s", name_of(w, chosen_way));
    const char *opens = " (";
    if (w->price[chosen_way].works) {
        oly_way_price_text(&w->price[chosen_way], told, sizeof told);
        n += snprintf(why_chosen + n, sizeof why_chosen - (size_t)n, "%smeasured %s", opens, told);
        opens = "; ";
    }
    for (int k = 0; k < N_ORDER && n < (int)sizeof why_chosen; k++) {
        oly_way of = order[k];
        if (of == chosen_way || !w->price[of].works)
            continue;
        oly_way_price_text(&w->price[of], told, sizeof told);
        n += snprintf(why_chosen + n, sizeof why_chosen - (size_t)n, "%s%s %s", opens, name_of(w, of), told);
        opens = "; ";
    }
    if (!w->can[OLY_WAY_NCCL] && n < (int)sizeof why_chosen) {
        n += snprintf(why_chosen + n, sizeof why_chosen - (size_t)n, "%sno NCCL: %s", opens, w->nccl);
        opens = "; ";
    }
    if (!w->can[OLY_WAY_NCCL] && !w->can[OLY_WAY_AWARE] && *w->aware && n < (int)sizeof why_chosen) {
        n += snprintf(why_chosen + n, sizeof why_chosen - (size_t)n, "%s%s", opens, w->aware);
        opens = "; ";
    }
    if (opens[0] == ';' && n < (int)sizeof why_chosen)
        snprintf(why_chosen + n, sizeof why_chosen - (size_t)n, ")");
}

oly_status oly_transport_open(const oly_gpu_access *gpus)
{
    ways w = {.can = {[OLY_WAY_STAGED] = true}};
    oly_way wanted;
    if (!gpus || registered || !oly_world_has_peers())
        return OLY_OK;
    OLY_TRY(way_wanted(&wanted));
    OLY_TRY(oly_gpu_messages_start(gpus));
    oly_status st = oly_nccl_start(gpus, &w.can[OLY_WAY_NCCL], w.nccl, sizeof w.nccl);
    if (!w.can[OLY_WAY_NCCL])
        oly_nccl_end();
    way = w.can[OLY_WAY_NCCL] ? OLY_WAY_NCCL : OLY_WAY_HOST; /* what is to be given back */
    OLY_TRY(st);
    bool settled = w.can[OLY_WAY_NCCL] && (wanted == OLY_N_WAYS || wanted == OLY_WAY_NCCL);
    if (!settled)
        OLY_TRY(find_aware(w.can[OLY_WAY_NCCL], &w.can[OLY_WAY_AWARE], w.aware, sizeof w.aware));
    bool measures = wanted == OLY_WAY_HOST && count_ways(&w) > 1;
    if (measures)
        OLY_TRY(measure_ways(gpus, &w));
    oly_way chosen_way = measures ? cheapest(&w) : first_way(&w, wanted);
    if (way == OLY_WAY_NCCL && chosen_way != OLY_WAY_NCCL)
        oly_nccl_end();
    oly_gpu_messages_aware(chosen_way == OLY_WAY_AWARE);
    use(transport_of(chosen_way), chosen_way);
    price = w.price[chosen_way];
    say_why(&w, chosen_way);
    return OLY_OK;
}

void oly_transport_close(void)
{
    if (way == OLY_WAY_NCCL)
        oly_nccl_end();
    oly_gpu_messages_end();
    way = OLY_WAY_HOST;
    price = (oly_way_price){0};
    chosen = &oly_transport_mpi;
}

bool oly_transport_price(double *latency, double *bandwidth)
{
    if (!price.works)
        return false;
    *latency = oly_way_latency(&price);
    *bandwidth = oly_way_bandwidth(&price);
    return true;
}

bool oly_transport_adds(oly_dtype dtype)
{
    return oly_option.nccl_allreduce && chosen->adds && chosen->adds(dtype);
}

oly_way oly_transport_way(void)
{
    return way;
}

const char *oly_transport_why(void)
{
    return why_chosen;
}

oly_transport_name oly_transport_my_name(void)
{
    oly_transport_name name = {{0}};
    snprintf(name.chars, sizeof name.chars, "%s", chosen->name);
    return name;
}

oly_status oly_transport_agree(int n, const oly_transport_name *of, size_t stride)
{
    for (int r = 1; r < n; r++) {
        const oly_transport_name *name = (const oly_transport_name *)((const char *)of + (size_t)r * stride);
        if (strcmp(name->chars, of->chars) != 0)
            return oly_fail(
                OLY_DIVERGED,
                "rank 0 sends over the transport \"%s\", rank %d over \"%s\"; all ranks of a job use the same",
                of->chars, r, name->chars);
    }
    return OLY_OK;
}

const oly_transport *oly_transport_get(void)
{
    return chosen;
}

bool oly_transport_in_host_memory(void)
{
    return !device_access;
}

bool oly_chunk_part(const oly_chunk *c, int k, int64_t *begin, int64_t *end)
{
    const oly_payload *p = c->payload;
    int64_t first = c->begin - p->at[k], last = c->end - p->at[k];
    *begin = first > 0 ? first : 0;
    *end = last < p->box[k].bytes ? last : p->box[k].bytes;
    return *begin < *end;
}

/* Of byte `begin` of box k. */
static char *packed_at(const oly_chunk *c, int k, int64_t begin)
{
    return c->host + c->head + (c->payload->at[k] + begin - c->begin);
}

static oly_status read_run(const oly_walk *box, void *device, char *packed, int64_t bytes)
{
    return device_access->read(packed, box->device, device, (size_t)bytes);
}

static oly_status write_run(const oly_walk *box, void *device, char *packed, int64_t bytes)
{
    return device_access->write(box->device, device, packed, (size_t)bytes);
}

/* The part of box k that is in the chunk, by the host or run by run. */
oly_status oly_host_copy_box(const oly_chunk *c, int k, bool packing)
{
    const oly_walk *box = &c->payload->box[k];
    int64_t begin, end;
    if (!oly_chunk_part(c, k, &begin, &end))
        return OLY_OK;
    char *packed = packed_at(c, k, begin);
    if (device_access && box->device >= 0)
        return oly_walk_runs(box, begin, end, oly_chunk_buffer(c, k), packed, packing ? read_run : write_run);
    if (packing)
        oly_walk_pack(box, begin, end, oly_chunk_buffer(c, k), packed);
    else
        oly_walk_unpack(box, begin, end, oly_chunk_buffer(c, k), packed);
    return OLY_OK;
}

oly_status oly_host_pack(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        OLY_TRY(oly_host_copy_box(c, k, true));
    return OLY_OK;
}

oly_status oly_host_unpack(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        OLY_TRY(oly_host_copy_box(c, k, false));
    return OLY_OK;
}
