/* SPDX-License-Identifier: BSD-3-Clause */
/* A PMIx server for the processes of this node, as srun has one on each of its nodes: MPI_Init of Open MPI finds it by the
 * environment that it makes for each rank. What processes of several nodes exchange goes through the coordinator. See plan.h.
 * PMIx calls from a thread of its own: what it wants sent is queued here for the main loop. */
#define _GNU_SOURCE
#include "plan.h"
#include "guard/job_files.h"
#include <fcntl.h>
#include <ftw.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An answer from other nodes that PMIx waits for. */
typedef struct wait {
    struct wait *next;
    unsigned char *list; /* owned; of a fence: its processes; NULL: all */
    size_t n;
    uint32_t ticket; /* of a fetch; 0: a fence */
    pmix_modex_cbfunc_t then;
    void *data;
} wait_for;
typedef struct item {
    struct item *next;
    oly_wire message;
} item;

static struct {
    const plan *plan;
    char folder[256];
    pmix_nspace_t job;
    int wake[2];
    pthread_mutex_t lock;
    item *first, **last; /* under the lock, as are the waits */
    wait_for *waits;
    uint32_t tickets;
    job_files files;
} host = {.wake = {-1, -1}, .lock = PTHREAD_MUTEX_INITIALIZER};

int host_wake(void)
{
    return host.wake[0];
}

static void queue(oly_wire *message)
{
    item *i = message->failed ? NULL : calloc(1, sizeof *i);
    if (!i)
        return;
    i->message = *message;
    pthread_mutex_lock(&host.lock);
    *host.last = i;
    host.last = &i->next;
    pthread_mutex_unlock(&host.lock);
    if (write(host.wake[1], "", 1) < 0)
        return; /* full: it is awake */
}

bool host_take(oly_wire *message)
{
    char some[64];
    pthread_mutex_lock(&host.lock);
    item *i = host.first;
    if (i && !(host.first = i->next))
        host.last = &host.first;
    pthread_mutex_unlock(&host.lock);
    if (!i) {
        while (read(host.wake[0], some, sizeof some) > 0)
            continue;
        return false;
    }
    *message = i->message;
    free(i);
    return true;
}

/* -- what PMIx asks ------------------------------------------------------------------------------------------------ */

static pmix_status_t client_came(const pmix_proc_t *process, void *object, pmix_op_cbfunc_t then, void *data)
{
    (void)process, (void)object;
    if (then)
        then(PMIX_SUCCESS, data);
    return PMIX_SUCCESS;
}

static pmix_status_t job_aborts(const pmix_proc_t *process, void *object, int status, const char text[],
                                pmix_proc_t others[], size_t n, pmix_op_cbfunc_t then, void *data)
{
    char line[200];
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_ABORT);
    (void)object, (void)others, (void)n, (void)text;
    snprintf(line, sizeof line, "called MPI_Abort with status %d", status);
    oly_wire_text(&w, line);
    oly_wire_u32(&w, process->rank);
    oly_wire_end(&w, place);
    queue(&w);
    if (then)
        then(PMIX_SUCCESS, data);
    return PMIX_SUCCESS;
}

static wait_for *wait_with(pmix_modex_cbfunc_t then, void *data)
{
    wait_for *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->then = then;
    w->data = data;
    return w;
}

static void add_wait(wait_for *w)
{
    w->next = host.waits;
    host.waits = w;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The processes of a fence as the coordinator wants them: sorted numbers; none stands for all. */
static bool list_of(const pmix_proc_t *processes, size_t n, oly_wire *list)
{
    uint32_t *ranks = calloc(n + 1, sizeof *ranks);
    bool all = false;
    if (!ranks)
        return false;
    for (size_t k = 0; k < n; k++) {
        ranks[k] = processes[k].rank;
        all = all || processes[k].rank == PMIX_RANK_WILDCARD;
    }
    qsort(ranks, n, sizeof *ranks, by_number);
    for (size_t k = 0; k < n && !all; k++)
        oly_wire_u32(list, ranks[k]);
    free(ranks);
    return !list->failed;
}

static pmix_status_t fence(const pmix_proc_t processes[], size_t n, const pmix_info_t info[], size_t n_info,
                           char *bytes, size_t n_bytes, pmix_modex_cbfunc_t then, void *data)
{
    (void)info, (void)n_info;
    oly_wire list = {0}, w = {0};
    wait_for *waiting = wait_with(then, data);
    if (!waiting || !list_of(processes, n, &list)) {
        free(waiting);
        free(bytes);
        return PMIX_ERR_NOMEM;
    }
    waiting->list = list.bytes;
    waiting->n = list.n;
    pthread_mutex_lock(&host.lock);
    add_wait(waiting);
    pthread_mutex_unlock(&host.lock);
    size_t place = oly_wire_begin(&w, OLY_WIRE_FENCE);
    oly_wire_blob(&w, list.bytes, list.n);
    oly_wire_blob(&w, bytes, n_bytes);
    oly_wire_end(&w, place);
    free(bytes);
    queue(&w);
    return PMIX_SUCCESS;
}

static pmix_status_t fetch(const pmix_proc_t *process, const pmix_info_t info[], size_t n_info,
                           pmix_modex_cbfunc_t then, void *data)
{
    (void)info, (void)n_info;
    oly_wire w = {0};
    wait_for *waiting = wait_with(then, data);
    if (!waiting)
        return PMIX_ERR_NOMEM;
    pthread_mutex_lock(&host.lock);
    waiting->ticket = ++host.tickets;
    add_wait(waiting);
    pthread_mutex_unlock(&host.lock);
    size_t place = oly_wire_begin(&w, OLY_WIRE_FETCH);
    oly_wire_u32(&w, process->rank);
    oly_wire_u32(&w, (uint32_t)host.plan->me);
    oly_wire_u32(&w, waiting->ticket);
    oly_wire_end(&w, place);
    queue(&w);
    return PMIX_SUCCESS;
}

/* -- answers of other nodes --------------------------------------------------------------------------------------------- */

static wait_for *find_wait(uint32_t ticket, const void *list, size_t n)
{
    wait_for *found = NULL;
    pthread_mutex_lock(&host.lock);
    for (wait_for **at = &host.waits; *at; at = &(*at)->next) {
        wait_for *w = *at;
        if (ticket ? w->ticket == ticket : !w->ticket && w->n == n && (n == 0 || memcmp(w->list, list, n) == 0)) {
            found = w;
            *at = w->next;
            break;
        }
    }
    pthread_mutex_unlock(&host.lock);
    return found;
}

static void answer(wait_for *w, pmix_status_t status, const void *bytes, size_t n)
{
    char *copy = w && n ? malloc(n) : NULL;
    if (!w)
        return;
    if (copy)
        memcpy(copy, bytes, n);
    w->then(n && !copy ? PMIX_ERR_NOMEM : status, copy, copy ? n : 0, w->data, free, copy);
    free(w->list);
    free(w);
}

typedef struct query {
    uint32_t origin, ticket;
} query;

static void fetched(pmix_status_t status, char *bytes, size_t n, void *data)
{
    query *q = data;
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_FETCHED);
    oly_wire_u32(&w, q->origin);
    oly_wire_u32(&w, q->ticket);
    oly_wire_u32(&w, (uint32_t)status);
    oly_wire_blob(&w, bytes, status == PMIX_SUCCESS ? n : 0);
    oly_wire_end(&w, place);
    queue(&w);
    free(q);
}

static void serve_fetch(oly_read *fields)
{
    pmix_proc_t process;
    query *q = calloc(1, sizeof *q);
    uint32_t rank = oly_read_u32(fields);
    if (!q)
        return;
    *q = (query){oly_read_u32(fields), oly_read_u32(fields)};
    PMIX_LOAD_PROCID(&process, host.job, rank);
    pmix_status_t status =
        oly_read_done(fields) ? PMIx_server_dmodex_request(&process, fetched, q) : PMIX_ERR_BAD_PARAM;
    if (status != PMIX_SUCCESS)
        fetched(status, NULL, 0, q);
}

void host_hear(oly_wire_kind kind, oly_read *fields)
{
    size_t n, bytes;
    if (kind == OLY_WIRE_FETCH) {
        serve_fetch(fields);
    } else if (kind == OLY_WIRE_FENCE) {
        const void *list = oly_read_blob(fields, &n), *data = oly_read_blob(fields, &bytes);
        if (oly_read_done(fields))
            answer(find_wait(0, list, n), PMIX_SUCCESS, data, bytes);
    } else {
        oly_read_u32(fields);
        uint32_t ticket = oly_read_u32(fields);
        pmix_status_t status = (pmix_status_t)oly_read_u32(fields);
        const void *data = oly_read_blob(fields, &bytes);
        if (oly_read_done(fields) && ticket)
            answer(find_wait(ticket, NULL, 0), status, data, bytes);
    }
}

/* -- starting ------------------------------------------------------------------------------------------------------- */

static void done(pmix_status_t status, void *data)
{
    *(_Atomic int *)data = status == PMIX_SUCCESS ? 1 : -1;
}

/* Of a call that is over at once, or calls `done` later. */
static bool wait_done(pmix_status_t status, _Atomic int *finished)
{
    for (int tries = 0; status == PMIX_SUCCESS && !*finished && tries < 10000; tries++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return status == PMIX_OPERATION_SUCCEEDED || (status == PMIX_SUCCESS && *finished == 1);
}

/* "0,2;1,3": the processes of each node. Owned by the caller. */
static char *processes_of_nodes(const plan *p, int only)
{
    size_t room = (size_t)p->n * 8 + (size_t)p->n_nodes + 2, n = 0;
    char *text = calloc(room, 1);
    for (int node = 0; text && node < p->n_nodes; node++) {
        bool first = true;
        if (only >= 0 && node != only)
            continue;
        for (int k = 0; k < p->n; k++)
            if (p->node[k] == node) {
                n += (size_t)snprintf(text + n, room - n, "%s%d", first ? (n ? ";" : "") : ",", k);
                first = false;
            }
    }
    return text;
}

static char *names_of_nodes(const plan *p)
{
    size_t room = (size_t)p->n_nodes * NODE_NAME, n = 0;
    char *text = calloc(room, 1);
    for (int node = 0; text && node < p->n_nodes; node++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", node ? "," : "", p->name[node]);
    return text;
}

static bool describe_job(const plan *p)
{
    uint32_t size = (uint32_t)p->n, here = (uint32_t)plan_node_ranks(p, p->me), nodes = (uint32_t)p->n_nodes;
    uint32_t node = (uint32_t)p->node[p->me], zero = 0;
    pmix_rank_t first = (pmix_rank_t)p->me;
    char *names = names_of_nodes(p), *lists = processes_of_nodes(p, -1), *mine = processes_of_nodes(p, p->node[p->me]);
    char *node_map = NULL, *process_map = NULL;
    pmix_info_t *info = NULL;
    _Atomic int finished = 0;
    bool ok = names && lists && mine && PMIx_generate_regex(names, &node_map) == PMIX_SUCCESS &&
              PMIx_generate_ppn(lists, &process_map) == PMIX_SUCCESS;
    const struct {
        const char *key;
        const void *value;
        pmix_data_type_t type;
    } facts[] = {
        {PMIX_NODE_MAP, node_map, PMIX_STRING},  {PMIX_PROC_MAP, process_map, PMIX_STRING},
        {PMIX_JOB_SIZE, &size, PMIX_UINT32},     {PMIX_UNIV_SIZE, &size, PMIX_UINT32},
        {PMIX_MAX_PROCS, &size, PMIX_UINT32},    {PMIX_LOCAL_SIZE, &here, PMIX_UINT32},
        {PMIX_NODE_SIZE, &here, PMIX_UINT32},    {PMIX_LOCAL_PEERS, mine, PMIX_STRING},
        {PMIX_LOCALLDR, &first, PMIX_PROC_RANK}, {PMIX_NUM_NODES, &nodes, PMIX_UINT32},
        {PMIX_NODEID, &node, PMIX_UINT32},       {PMIX_APPNUM, &zero, PMIX_UINT32},
        {PMIX_TMPDIR, host.folder, PMIX_STRING}, {PMIX_NSDIR, host.folder, PMIX_STRING},
    };
    size_t n = sizeof facts / sizeof *facts;
    if (ok) {
        PMIX_INFO_CREATE(info, n);
        for (size_t k = 0; k < n; k++)
            PMIX_INFO_LOAD(&info[k], facts[k].key, facts[k].value, facts[k].type);
        ok = wait_done(PMIx_server_register_nspace(host.job, (int)here, info, n, done, &finished), &finished);
        PMIX_INFO_FREE(info, n);
    }
    free(names);
    free(lists);
    free(mine);
    free(node_map);
    free(process_map);
    return ok;
}

static bool prepare_rank(const plan *p, int rank)
{
    pmix_proc_t process;
    char **environment = NULL;
    _Atomic int finished = 0;
    PMIX_LOAD_PROCID(&process, host.job, (pmix_rank_t)rank);
    if (!wait_done(PMIx_server_register_client(&process, getuid(), getgid(), NULL, done, &finished), &finished) ||
        PMIx_server_setup_fork(&process, &environment) != PMIX_SUCCESS)
        return false;
    uint32_t n = 0;
    while (environment[n])
        n++;
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_RANK);
    oly_wire_u32(&w, (uint32_t)rank);
    oly_wire_u32(&w, (uint32_t)plan_node_rank(p, rank));
    oly_wire_u32(&w, (uint32_t)plan_node_ranks(p, rank));
    oly_wire_u32(&w, n + 1);
    for (uint32_t k = 0; k < n; k++)
        oly_wire_text(&w, environment[k]);
    oly_wire_text(
        &w,
        "JSM_JSRUN_PORT=olympus"); /* a direct launcher: otherwise Open MPI 4 takes the rank for one started alone */
    oly_wire_end(&w, place);
    queue(&w);
    return true;
}

static pmix_server_module_t functions = {.client_connected = client_came,
                                         .client_finalized = client_came,
                                         .abort = job_aborts,
                                         .fence_nb = fence,
                                         .direct_modex = fetch};

bool host_start(const plan *p, char *why, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    pmix_info_t *info;
    host.plan = p;
    host.last = &host.first;
    job_files_begin(&host.files);
    snprintf(host.folder, sizeof host.folder, "%s/olympus-%u-XXXXXX", tmp && strlen(tmp) < 200 ? tmp : "/tmp",
             (unsigned)getuid());
    PMIX_LOAD_NSPACE(host.job, p->job);
    if (!mkdtemp(host.folder) || pipe2(host.wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        snprintf(why, size, "no folder can be made in %s", tmp ? tmp : "/tmp");
        return false;
    }
    PMIX_INFO_CREATE(info, 3);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, host.folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, host.folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, p->name[p->node[p->me]], PMIX_STRING);
    pmix_status_t status = PMIx_server_init(&functions, info, 3);
    PMIX_INFO_FREE(info, 3);
    if (status != PMIX_SUCCESS) {
        snprintf(why, size, "PMIx does not start (error %d)", (int)status);
        return false;
    }
    bool ok = describe_job(p);
    for (int k = 0; k < p->n && ok; k++)
        ok = p->node[k] != p->node[p->me] || prepare_rank(p, k);
    if (!ok)
        snprintf(why, size, "PMIx does not accept the job");
    return ok;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

void host_stop(bool clean)
{
    if (host.wake[0] < 0)
        return;
    if (clean)
        PMIx_server_finalize();
    else
        job_files_remove(&host.files, 0);
    nftw(host.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
