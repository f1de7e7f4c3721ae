/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanging numbers among the processes of a call on a file, by arrays with a row for each device. See crew.h. */
#include "array/files/crew.h"
#include "array/origin.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/hash.h"
#include "device/platform.h"
#include <olympus.h>
#include <string.h>

enum { TEXT = 512, WORDS = TEXT / sizeof(int64_t) }; /* of a message */

/* -- members --------------------------------------------------------------------------------------------------------------- */

/* Fills in the members from the devices, in ascending order. */
static void find_members(oly_crew *crew, const int *devices)
{
    crew->n = crew->here = 0;
    crew->me = -1;
    for (int k = 0; k < crew->devices; k++) {
        int process = oly_mesh_process_of(devices[k]);
        crew->here += process == oly_process_index();
        if (crew->n > 0 && crew->process[crew->n - 1] == process)
            continue;
        if (process == oly_process_index())
            crew->me = crew->n;
        crew->process[crew->n] = process;
        crew->first[crew->n++] = k;
    }
}

/* The devices of the mesh, or all, in ascending order, which is that of processes. Returns how many. */
static int list_devices(oly_mesh mesh, bool *in, int *devices)
{
    int total = mesh ? oly_mesh_all_ids() : oly_mesh_total_devices(), n = 0;
    for (int k = 0; mesh && k < mesh->n_devices; k++)
        in[oly_mesh_device_id(mesh, k)] = true;
    for (int id = 0; id < total; id++)
        if (!mesh || in[id])
            devices[n++] = id;
    return n;
}

static oly_status make_line(oly_crew *crew, oly_mesh mesh)
{
    int total = oly_mesh_all_ids(), *devices = oly_malloc(sizeof *devices * (size_t)total);
    bool *in = oly_calloc((size_t)total, sizeof *in);
    crew->process = oly_malloc(sizeof *crew->process * (size_t)oly_mesh_processes());
    crew->first = oly_malloc(sizeof *crew->first * (size_t)oly_mesh_processes());
    oly_status st = devices && in && crew->process && crew->first
                        ? OLY_OK
                        : oly_out_of_memory(sizeof *devices * (size_t)total, "the processes of a file");
    if (st == OLY_OK) {
        crew->devices = list_devices(mesh, in, devices);
        find_members(crew, devices);
        crew->leaves_out = crew->n < oly_mesh_processes();
    }
    if (st == OLY_OK && crew->n > 1) {
        crew->line = (oly_mesh_from_devices)(1, (const char *[]){"device"}, &crew->devices, devices);
        st = crew->line ? OLY_OK : OLY_MEMORY;
    }
    oly_release(devices);
    oly_release(in);
    return st;
}

oly_status oly_crew_begin(oly_mesh mesh, uint64_t what, oly_crew *crew)
{
    *crew = (oly_crew){.n = 1};
    if (!oly_platform_get()->computes || !oly_world_has_peers())
        return OLY_OK;
    oly_status st = make_line(crew, mesh && !mesh->everywhere ? mesh : NULL);
    oly_origin origin = {.call = what, .count = true};
    oly_origin_end(&origin);
    oly_identity id;
    oly_origin_result(&origin, 0, &id);
    crew->id = id.origin;
    if (st != OLY_OK)
        oly_world_tell(st);
    return st;
}

void oly_crew_end(oly_crew *crew)
{
    oly_release(crew->process);
    oly_release(crew->first);
    crew->process = crew->first = NULL;
}

/* -- numbers --------------------------------------------------------------------------------------------------------------- */

/* k numbers on each of this process's devices, as rows of an array over the line. */
static oly_array spread(const oly_crew *crew, int k, const int64_t *mine)
{
    int64_t shape[2] = {crew->devices, k}, local[2] = {crew->here, k};
    int64_t *rows = oly_malloc(sizeof *rows * (size_t)(crew->here * (int64_t)k + 1));
    for (int row = 0; rows && row < crew->here; row++)
        memcpy(rows + row * (int64_t)k, mine, sizeof *rows * (size_t)k);
    oly_array x = rows ? (oly_from_local)((oly_named)(crew->line, "device"), OLY_INT64, 2, shape, rows, local) : NULL;
    oly_release(rows);
    return x;
}

oly_status oly_crew_gather(const oly_crew *crew, int k, const int64_t *mine, int64_t *all)
{
    if (crew->me < 0)
        return OLY_OK;
    if (!crew->line) {
        memcpy(all, mine, sizeof *all * (size_t)k);
        return OLY_OK;
    }
    size_t bytes = sizeof *all * (size_t)crew->devices * (size_t)k;
    int64_t *rows = oly_malloc(bytes);
    oly_status st = rows ? OLY_OK : oly_out_of_memory(bytes, "numbers of the processes of a file");
    oly_scope_open();
    oly_array x = rows ? spread(crew, k, mine) : NULL;
    oly_array here = x ? (oly_device_put)(x, (oly_named)(crew->line, "")) : NULL;
    if (rows)
        st = here ? oly_array_fetch(here, rows) : oly_kept_status() != OLY_OK ? oly_kept_status() : OLY_MEMORY;
    oly_scope_close();
    for (int m = 0; m < crew->n && st == OLY_OK; m++)
        memcpy(all + m * (int64_t)k, rows + crew->first[m] * (int64_t)k, sizeof *all * (size_t)k);
    oly_release(rows);
    return st;
}

void oly_crew_wait(const oly_crew *crew)
{
    int64_t here = 0, *all = crew->line ? oly_malloc(sizeof *all * (size_t)crew->n) : NULL;
    if (all)
        oly_crew_gather(crew, 1, &here, all);
    oly_release(all);
}

/* -- agreement ------------------------------------------------------------------------------------------------------------- */

/* The error of member `failed` on all. */
static oly_status share_error(const oly_crew *crew, int failed, oly_status status)
{
    int64_t mine[WORDS] = {0}, *all = oly_malloc(sizeof mine * (size_t)crew->n);
    char text[TEXT];
    if (!all)
        return oly_out_of_memory(sizeof mine * (size_t)crew->n, "the message of another process");
    if (crew->me == failed)
        snprintf((char *)mine, sizeof mine, "%s", oly_pending_message());
    oly_drop_message();
    oly_status st = oly_crew_gather(crew, WORDS, mine, all);
    if (st == OLY_OK) {
        memcpy(text, all + (int64_t)failed * WORDS, sizeof text);
        text[TEXT - 1] = '\0';
        if (strstr(text, "(on rank ")) /* an agreement inside this one has said so */
            st = oly_fail(status, "%s", text);
        else
            st = oly_fail(status, "%s (on rank %d)", text, crew->process[failed]);
    }
    oly_release(all);
    return st;
}

oly_status oly_crew_agree_on(const oly_crew *crew, oly_status mine, int k, const int64_t *numbers, int64_t *all)
{
    if (crew->me < 0)
        return mine;
    if (!crew->line) {
        if (mine == OLY_OK && k)
            memcpy(all, numbers, sizeof *all * (size_t)k);
        return mine;
    }
    int64_t *rows = oly_malloc(sizeof *rows * (size_t)(crew->n + 1) * (size_t)(k + 1)), *row = rows;
    if (!rows) {
        oly_status st = oly_out_of_memory(sizeof *rows * (size_t)(crew->n + 1) * (size_t)(k + 1), "agreeing on a file");
        oly_world_tell(st);
        return st;
    }
    row[0] = mine;
    memcpy(row + 1, numbers, sizeof *row * (size_t)k);
    oly_status st = oly_crew_gather(crew, k + 1, row, rows + k + 1);
    for (int m = 0; m < crew->n && st == OLY_OK; m++) {
        const int64_t *theirs = rows + (m + 1) * (int64_t)(k + 1);
        if (theirs[0] != OLY_OK)
            st = share_error(crew, m, (oly_status)theirs[0]);
        else if (k)
            memcpy(all + m * (int64_t)k, theirs + 1, sizeof *all * (size_t)k);
    }
    oly_release(rows);
    return st;
}

oly_status oly_crew_agree(const oly_crew *crew, oly_status mine)
{
    int64_t nothing = 0;
    return oly_crew_agree_on(crew, mine, 0, &nothing, &nothing);
}

oly_status oly_crew_agree_same(const oly_crew *crew, oly_status mine, uint64_t arguments)
{
    int64_t number = (int64_t)arguments, *all = oly_malloc(sizeof *all * (size_t)crew->n);
    if (!all && mine == OLY_OK)
        mine = oly_out_of_memory(sizeof *all * (size_t)crew->n, "agreeing on a file");
    oly_status st = oly_crew_agree_on(crew, mine, 1, &number, all ? all : &number);
    for (int m = 1; m < crew->n && st == OLY_OK && crew->me >= 0 && all; m++)
        if (all[m] != all[0])
            st =
                oly_fail(OLY_DIVERGED,
                         "ranks %d and %d call with different arguments; all ranks name the same file, and the same of "
                         "everything else",
                         crew->process[0], crew->process[m]);
    oly_release(all);
    return st;
}

/* -- those who are left out ---------------------------------------------------------------------------------------------------- */

typedef struct outcome {
    int32_t status;
    char text[TEXT];
    char record[256];
} outcome;

oly_status oly_crew_tell(const oly_crew *crew, oly_status status, void *record, size_t bytes)
{
    if (!crew->leaves_out || !crew->process || crew->n == 0)
        return status;
    outcome o = {.status = (int32_t)status};
    if (oly_crew_leads(crew)) {
        if (status != OLY_OK)
            snprintf(o.text, sizeof o.text, "%s", oly_pending_message());
        if (bytes)
            memcpy(o.record, record, bytes);
        oly_values_keep(crew->id, &o, sizeof o, NULL);
    }
    if (crew->me >= 0)
        return status;
    OLY_TRY(status);
    OLY_TRY(oly_values_ask(crew->process[0], crew->id, &o, sizeof o, "what became of a file"));
    if (bytes)
        memcpy(record, o.record, bytes);
    return o.status == OLY_OK ? OLY_OK : oly_fail((oly_status)o.status, "%s", o.text);
}

oly_status oly_files_need_no_trace(void)
{
    if (!oly_trace_current())
        return OLY_OK;
    return oly_fail(OLY_TRACE,
                    "a function is being recorded, and files are not read or written by plans; load before it "
                    "is called, save what it returns");
}
