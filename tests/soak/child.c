/* See child.h. */
#include "child.h"
#include <signal.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shared {
    outcome o;
    long at;
    bool done;
} shared;

void begin_session(void)
{
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

outcome run_child(child_function *f, const void *context, long from, long to, long *reached)
{
    static shared *s;
    int status = 0;
    if (!s) {
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (s == MAP_FAILED)
            abort();
    }
    memset(s, 0, sizeof *s);
    s->at = from;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        f(context, from, to, &s->o, &s->at);
        s->done = true;
        fflush(NULL);
        exit(0); /* not _exit: coverage is written at the end */
    }
    if (child < 0)
        abort();
    while (waitpid(child, &status, 0) < 0)
        ;
    *reached = s->at;
    outcome o = s->o;
    if (!s->done && !o.failed) {
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
        memset(&o, 0, sizeof o);
        o.failed = true;
        o.value = NOTHING;
        o.status = (oly_status)-number;
        snprintf(o.text, sizeof o.text,
                 number == SIGALRM ? "does not end"
                 : number < 1000   ? "ended by signal %d (%s)"
                                   : "ended with status %d%s",
                 number < 1000 ? number : number - 1000, number < 1000 ? strsignal(number) : "");
    }
    return o;
}
