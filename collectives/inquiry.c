/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks of other nodes are doing. A rank that has been waiting for a while asks; a rank that is asked looks it up in the
 * memory that its node shares (peers.c) and answers: during its own waits, or from the watching thread (watch.c), if MPI may be
 * called by several threads. So a rank that computes, is stopped or has ended is described by itself or by another rank of its
 * node. An answer that names another late rank is followed. Of a rank that nobody answers for, the last message is known.
 * Called by the files of collectives/.
 *
 * Nothing here runs in normal operation except oly_hear, two stores per message; so it may allocate. */
#include "process_set.h"
#include "core/error.h"
#include "core/option.h"
#include "core/progress.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_DIRECTLY = 64, MOST_NEIGHBOURS = 4, NOBODY = -1 };

/* A question or its answer. */
typedef struct inquiry {
    int32_t answers;   /* 0: a question */
    int32_t about;     /* a rank, or NOBODY: which ranks of the node have not reached a meeting of all ranks */
    uint64_t meetings; /* the number of that meeting */
    /* of an answer: */
    int32_t described, waits_for; /* the rank that the text is about, or NOBODY; see core/progress.h */
    int32_t n_late, late[OLY_LATE_NAMED];
    char text[360];
} inquiry;

typedef struct sent {
    struct sent *next;
    MPI_Request request;
    inquiry inquiry;
} sent;

/* Knowledge about a rank since this rank began to wait. */
typedef struct known {
    int round; /* of inquiries, in which it was last asked about; 0: none */
    bool answered;
    int waits_for;
    char *text; /* owned; NULL: none */
    /* of the node whose first rank it is: */
    bool node_asked, node_answered;
    uint64_t meetings;
    int n_late, late[OLY_LATE_NAMED];
} known;

static struct {
    pthread_mutex_t lock;
    bool at_exit;    /* close is registered to be called at exit */
    bool open;       /* the communicator exists */
    bool threads;    /* that watch may call MPI */
    bool quiet;      /* nothing is sent any more */
    int64_t balance; /* messages sent less those received */
    sent *sent;      /* owned: MPI may still read them */
    known *known;    /* owned, by rank; NULL: nothing was asked yet */
    int round;
    char met[160]; /* the last meeting of all ranks */
} inquiries = {.lock = PTHREAD_MUTEX_INITIALIZER};

oly_hearing oly_heard;

/* -- beginning and end ----------------------------------------------------------------------------------------- */

/* MPI_Finalize follows: no thread may be inside MPI. */
static void close_at_exit(void)
{
    pthread_mutex_lock(&inquiries.lock);
    inquiries.open = false;
    pthread_mutex_unlock(&inquiries.lock);
}

void oly_inquiry_begin(void)
{
    int level;
    MPI_Query_thread(&level);
    inquiries.at_exit = inquiries.at_exit || atexit(close_at_exit) == 0;
    oly_heard.of = oly_calloc((size_t)oly_world_size(), sizeof *oly_heard.of); /* without it messages say less */
    pthread_mutex_lock(&inquiries.lock);
    inquiries.open = true;
    inquiries.quiet = false;
    inquiries.balance = 0;
    inquiries.threads = level == MPI_THREAD_MULTIPLE && inquiries.at_exit;
    pthread_mutex_unlock(&inquiries.lock);
}

static void forget_known_locked(void)
{
    for (int r = 0; inquiries.known && r < oly_world_size(); r++)
        oly_release(inquiries.known[r].text);
    oly_release(inquiries.known);
    inquiries.known = NULL;
    inquiries.round = 0;
}

static void free_sent_locked(void)
{
    for (sent **at = &inquiries.sent; *at;) {
        int done = 0;
        sent *s = *at;
        MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
        if (done) {
            *at = s->next;
            oly_release(s);
        } else {
            at = &s->next;
        }
    }
}

void oly_inquiry_end(void)
{
    pthread_mutex_lock(&inquiries.lock);
    if (inquiries.open)
        free_sent_locked();
    forget_known_locked();
    inquiries.open = false;
    inquiries.sent = NULL; /* what MPI has not finished with is left to it */
    inquiries.met[0] = 0;
    pthread_mutex_unlock(&inquiries.lock);
    oly_release(oly_heard.of);
    oly_heard = (oly_hearing){0};
}

void oly_inquiry_quiet(void)
{
    pthread_mutex_lock(&inquiries.lock);
    inquiries.quiet = true;
    pthread_mutex_unlock(&inquiries.lock);
}

int64_t oly_inquiry_balance(void)
{
    pthread_mutex_lock(&inquiries.lock);
    int64_t balance = inquiries.balance;
    pthread_mutex_unlock(&inquiries.lock);
    return balance;
}

void oly_inquiry_met(const char *call)
{
    pthread_mutex_lock(&inquiries.lock);
    oly_heard.meetings++;
    snprintf(inquiries.met, sizeof inquiries.met, "%s", call);
    pthread_mutex_unlock(&inquiries.lock);
}

/* -- asking ------------------------------------------------------------------------------------------------------ */

static void send_locked(const inquiry *what, int rank)
{
    sent *s = inquiries.quiet ? NULL : oly_malloc(sizeof *s);
    if (!s)
        return;
    s->inquiry = *what;
    if (MPI_Isend(&s->inquiry, sizeof s->inquiry, MPI_BYTE, rank, OLY_TAG_INQUIRY, oly_world_comm(), &s->request) !=
        MPI_SUCCESS) {
        oly_release(s);
        return;
    }
    s->next = inquiries.sent;
    inquiries.sent = s;
    inquiries.balance++;
}

/* The rank itself and some ranks of its node, which see it if it does not answer. */
static void ask_about_locked(int rank)
{
    inquiry question = {.about = rank};
    known *k = &inquiries.known[rank];
    if (k->round == inquiries.round)
        return;
    k->round = inquiries.round;
    send_locked(&question, rank);
    int leader = oly_world_node_leader_of(rank), asked = 0;
    for (int r = leader; r < oly_world_size() && asked < MOST_NEIGHBOURS; r++)
        if (r != rank && r != oly_world_rank() && oly_world_node_leader_of(r) == leader) {
            send_locked(&question, r);
            asked++;
        }
}

/* All ranks; in large jobs some: other ranks ask others. */
static void ask_who_is_late_locked(uint64_t meetings)
{
    inquiry question = {.about = NOBODY, .meetings = meetings};
    int n = oly_world_size(), me = oly_world_rank(), here = oly_world_node_leader_of(me);
    for (int step = 1; step < n; step = n <= ALL_DIRECTLY ? step + 1 : 2 * step) {
        int r = (me + step) % n, leader = oly_world_node_leader_of(r);
        if (leader == here)
            continue;
        inquiries.known[leader].node_asked = true;
        send_locked(&question, r);
    }
}

int64_t oly_inquiry_interval(void)
{
    int64_t notice = oly_option.wait_notice, limit = oly_option.timeout;
    return (notice < limit ? notice : limit) * 1000000000 / 4;
}

void oly_inquiry_ask(const oly_late *late, bool first)
{
    pthread_mutex_lock(&inquiries.lock);
    if (inquiries.open && first)
        forget_known_locked();
    if (inquiries.open && !inquiries.known)
        inquiries.known = oly_calloc((size_t)oly_world_size(), sizeof *inquiries.known);
    if (inquiries.open && inquiries.known) {
        inquiries.round++;
        free_sent_locked();
        for (int k = 0; k < late->n && k < OLY_LATE_NAMED; k++)
            if (!oly_peers_see(late->rank[k]))
                ask_about_locked(late->rank[k]);
        if (late->meetings > 0)
            ask_who_is_late_locked(late->meetings);
    }
    pthread_mutex_unlock(&inquiries.lock);
}

/* -- answering ----------------------------------------------------------------------------------------------- */

static void answer_locked(const inquiry *question, int to)
{
    inquiry answer = {.answers = 1, .about = question->about, .meetings = question->meetings};
    answer.described = question->about;
    answer.waits_for = OLY_WAITS_FOR_NOBODY;
    if (question->about == NOBODY) {
        oly_late late = {0};
        oly_peers_late_here(question->meetings, &late);
        answer.n_late = late.n < OLY_LATE_NAMED ? late.n : OLY_LATE_NAMED;
        for (int k = 0; k < answer.n_late; k++)
            answer.late[k] = late.rank[k];
        answer.described = late.n > 0 ? late.rank[0] : NOBODY;
    }
    oly_text text = {0};
    if (answer.described >= 0 && oly_peers_see(answer.described))
        answer.waits_for = oly_peers_describe_seen(&text, answer.described);
    if (answer.about != NOBODY && !text.chars)
        return; /* it cannot be seen from here */
    snprintf(answer.text, sizeof answer.text, "%s", oly_text_chars(&text));
    oly_text_free(&text);
    send_locked(&answer, to);
}

static bool is_rank(int rank)
{
    return rank >= 0 && rank < oly_world_size();
}

static void note_description_locked(const inquiry *answer)
{
    known *k = &inquiries.known[answer->described];
    char *text = oly_malloc(sizeof answer->text);
    if (!text)
        return;
    memcpy(text, answer->text, sizeof answer->text);
    text[sizeof answer->text - 1] = 0;
    oly_release(k->text);
    k->text = text;
    k->answered = true;
    k->waits_for = answer->waits_for;
    if (is_rank(answer->waits_for) && answer->waits_for != oly_world_rank() && !oly_peers_see(answer->waits_for))
        ask_about_locked(answer->waits_for);
}

static void note_answer_locked(const inquiry *answer, int from)
{
    if (!inquiries.known)
        return; /* the wait is over */
    if (is_rank(answer->described))
        note_description_locked(answer);
    if (answer->about != NOBODY)
        return;
    known *node = &inquiries.known[oly_world_node_leader_of(from)];
    node->node_answered = true;
    node->meetings = answer->meetings;
    node->n_late = 0;
    for (int k = 0; k < answer->n_late && k < OLY_LATE_NAMED; k++)
        if (is_rank(answer->late[k]))
            node->late[node->n_late++] = answer->late[k];
}

static void look_locked(void)
{
    MPI_Message message;
    MPI_Status status;
    int found = 0, finalized = 0;
    MPI_Finalized(&finalized);
    while (inquiries.open && !finalized) {
        inquiry come;
        if (MPI_Improbe(MPI_ANY_SOURCE, OLY_TAG_INQUIRY, oly_world_comm(), &found, &message, &status) != MPI_SUCCESS ||
            !found || MPI_Mrecv(&come, sizeof come, MPI_BYTE, &message, &status) != MPI_SUCCESS)
            return;
        inquiries.balance--;
        if (come.answers)
            note_answer_locked(&come, status.MPI_SOURCE);
        else
            answer_locked(&come, status.MPI_SOURCE);
    }
}

void oly_inquiry_look(void)
{
    pthread_mutex_lock(&inquiries.lock);
    look_locked();
    pthread_mutex_unlock(&inquiries.lock);
}

bool oly_inquiry_watch(void)
{
    if (pthread_mutex_trylock(&inquiries.lock) != 0) /* the watching thread must not wait */
        return true;
    bool threads = inquiries.open && inquiries.threads;
    if (threads)
        look_locked();
    pthread_mutex_unlock(&inquiries.lock);
    return threads;
}

/* -- what is known ----------------------------------------------------------------------------------------------- */

static void add_ranks_of_node(int leader, oly_late *late)
{
    for (int r = leader; r < oly_world_size(); r++)
        if (oly_world_node_leader_of(r) == leader)
            oly_late_add(late, r);
}

void oly_inquiry_late(uint64_t meetings, oly_late *late)
{
    pthread_mutex_lock(&inquiries.lock);
    const known *of = inquiries.known;
    int n = of ? oly_world_size() : 0;
    for (int r = 0; r < n; r++)
        for (int k = 0; of[r].node_answered && of[r].meetings == meetings && k < of[r].n_late; k++)
            oly_late_add(late, of[r].late[k]);
    /* if all others have arrived, it is those that do not answer: asked again, they had time to */
    bool silent = late->n == 0 && inquiries.round > 2;
    for (int r = 0; r < n && silent; r++)
        if (of[r].node_asked && !of[r].node_answered)
            add_ranks_of_node(r, late);
    pthread_mutex_unlock(&inquiries.lock);
}

static void add_last_heard(oly_text *text, int rank)
{
    const oly_hearing_of *h = oly_heard.of ? &oly_heard.of[rank] : NULL;
    if (h && h->sequence > 0 && h->meetings == oly_heard.meetings) {
        const oly_process_set *s = oly_process_set_find(h->set);
        uint64_t call = h->sequence >> OLY_TICKET_STEP_BITS;
        char place[128];
        if (!s || call > s->calls || call < oly_process_set_oldest(s))
            return;
        oly_site_text(&oly_process_set_call(s, call)->site, place, sizeof place);
        oly_text_add(text, ", its last call known here is %s", place);
    } else if (inquiries.met[0]) {
        oly_text_add(text, ", its last call known here is %s", inquiries.met);
    }
}

bool oly_inquiry_waits(int rank)
{
    pthread_mutex_lock(&inquiries.lock);
    const known *k = inquiries.known ? &inquiries.known[rank] : NULL;
    bool waits = k && k->answered && k->waits_for != OLY_WAITS_FOR_NOBODY;
    pthread_mutex_unlock(&inquiries.lock);
    return waits;
}

int oly_inquiry_describe(oly_text *text, int rank)
{
    int waits_for = OLY_WAITS_FOR_NOBODY;
    pthread_mutex_lock(&inquiries.lock);
    const known *k = inquiries.known && is_rank(rank) ? &inquiries.known[rank] : NULL;
    if (k && k->answered) {
        oly_text_add(text, "%s", k->text);
        waits_for = k->waits_for;
    } else {
        bool asked = k && (k->round > 0 || inquiries.known[oly_world_node_leader_of(rank)].node_asked);
        oly_text_add(text, "rank %d is on another node%s", rank, asked ? " and does not answer" : "");
        if (inquiries.open && is_rank(rank))
            add_last_heard(text, rank);
    }
    pthread_mutex_unlock(&inquiries.lock);
    return waits_for;
}
