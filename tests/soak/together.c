/* SPDX-License-Identifier: BSD-3-Clause */
/* See child.h: programs run by the ranks of a job. */
#include "child.h"
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void agree_on_value(outcome *o)
{
    int rank, first, ranks, started, ended;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (!started || ended)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mine = o->failed ? rank : ranks;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < ranks)
        MPI_Bcast(o, (int)sizeof *o, MPI_BYTE, first, MPI_COMM_WORLD);
}

void agree(outcome *o)
{
    if (!o->failed && oly_sync("compared") != OLY_OK) { /* others may be requesting values from this rank */
        o->failed = true;
        o->value = NOTHING;
        o->status = oly_last_status();
        snprintf(o->text, sizeof o->text, "oly_sync: %s", oly_last_error());
    }
    agree_on_value(o);
}

bool attempt_together(program *p, outcome *o)
{
    int over = time_is_over();
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (over)
        return false;
    alarm(30);
    *o = run_program(p);
    alarm(0);
    agree(o);
    if (o->failed) {
        oly_finalize();
        begin_session();
    }
    return true;
}

/* -- a job for each program ---------------------------------------------------------------------------------------------------------- */
static bool read_file(const char *name, void *to, size_t size)
{
    FILE *f = fopen(name, "rb");
    bool good = f && fread(to, 1, size, f) == size;
    if (f)
        fclose(f);
    return good;
}

static bool write_file(const char *name, const void *from, size_t size)
{
    FILE *f = fopen(name, "wb");
    bool good = f && fwrite(from, 1, size, f) == size;
    return f && fclose(f) == 0 && good;
}

static const char *result_name(const char *file)
{
    static char name[300];
    snprintf(name, sizeof name, "%s.result", file);
    return name;
}

bool attempt_job(program *p, outcome *o)
{
    static char file[] = "/tmp/soak-XXXXXX", self[300];
    const char *launcher = getenv("MPIRUN"), *ranks = getenv("SOAK_RANKS");
    char command[800];
    if (time_is_over())
        return false;
    if (file[10] == 'X') {
        int made = mkstemp(file);
        if (made < 0 || readlink("/proc/self/exe", self, sizeof self - 1) < 0)
            return false;
        close(made);
    }
    unlink(result_name(file));
    if (!write_file(file, p, sizeof *p))
        return false;
    snprintf(command, sizeof command, "timeout -k 2 20 %s -n %s %s -x %s </dev/null >/dev/null 2>&1",
             launcher ? launcher : "mpirun", ranks ? ranks : "2", self, file);
    int status = system(command);
    memset(o, 0, sizeof *o);
    if (!read_file(result_name(file), o, sizeof *o)) { /* the job ended before */
        o->failed = true;
        o->value = NOTHING;
        o->status = (oly_status)-1000;
        snprintf(o->text, sizeof o->text, "the job ended with status %d", WEXITSTATUS(status));
    }
    unlink(result_name(file));
    unlink(file);
    return true;
}

bool run_for_job(const char *file)
{
    static program p;
    begin_session();
    if (!read_file(file, &p, sizeof p) || !evaluate_main(&p))
        return false;
    outcome o = run_program(&p);
    agree(&o);
    return oly_process_index() != 0 || write_file(result_name(file), &o, sizeof o);
}
