/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages with which processes started by hand meet (docs/start.md): their kinds, their limits, and how fields are written
 * and read. A message is a length, a kind and its fields; numbers are little-endian. Everything read is checked against what has
 * arrived and against the limits below before it is used or memory is taken for it. Used by meeting.c and the program olymeet. */
#ifndef OLY_LAUNCH_WIRE_H
#define OLY_LAUNCH_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OLY_WIRE_VERSION = 1,
    OLY_WIRE_HEAD = 5,             /* bytes of length and kind */
    OLY_WIRE_MOST = 64 << 20,      /* bytes of a message of a process that has joined */
    OLY_WIRE_MOST_JOIN = 16 << 10, /* of one that has shown that it knows the secret, and no more */
    OLY_WIRE_MOST_TEXT = 4 << 10,  /* bytes of a text */
    OLY_WIRE_MOST_PROCESSES = 1 << 20,
};

/* Kinds. The comment says who sends it to whom: P a process, A its olymeet, C the coordinator. */
typedef enum oly_wire_kind {
    OLY_WIRE_START = 1, /* P to A: a request */
    OLY_WIRE_READY,     /* A to P: the environment of its rank */
    OLY_WIRE_FAILED,    /* C to A to P: a text; nobody starts; to A also: did it come later than that? */
    OLY_WIRE_JOIN,      /* A to C: a card */
    OLY_WIRE_PLAN,      /* C to A: the nodes */
    OLY_WIRE_RANK,      /* A to C to A: the environment of a rank, from the first process of its node */
    OLY_WIRE_FENCE,     /* A to C and back: data that all processes of a list exchange */
    OLY_WIRE_FETCH,     /* A to C to A: data of a rank is wanted */
    OLY_WIRE_FETCHED,
    OLY_WIRE_PUT,     /* A to C: a pair of PMI-1 */
    OLY_WIRE_GET,     /* A to C and back */
    OLY_WIRE_BARRIER, /* A to C and back */
    OLY_WIRE_ABORT,   /* A to C: its process ends the job */
    OLY_WIRE_BYE,     /* P to A to C: it has finished */
    OLY_WIRE_RELEASE, /* C to A to P: and may leave */
    OLY_WIRE_END,     /* C to A: the job is over; a text that says why, and who prints it */
    OLY_WIRE_KINDS
} oly_wire_kind;

/* -- writing ------------------------------------------------------------------------------------------------------
 * Failing allocations are kept in `failed`: look once, at the end. */
typedef struct oly_wire {
    unsigned char *bytes; /* owned */
    size_t n, room;
    bool failed;
} oly_wire;
void oly_wire_u8(oly_wire *w, uint8_t value);
void oly_wire_u32(oly_wire *w, uint32_t value);
void oly_wire_u64(oly_wire *w, uint64_t value);
void oly_wire_text(oly_wire *w, const char *text); /* longer ones are cut */
void oly_wire_blob(oly_wire *w, const void *bytes, size_t n);
/* Begins a message; _end fills its length in. Several messages may follow each other. Returns its place for _end. */
size_t oly_wire_begin(oly_wire *w, oly_wire_kind kind);
void oly_wire_end(oly_wire *w, size_t place);
void oly_wire_free(oly_wire *w);

/* -- reading ------------------------------------------------------------------------------------------------------
 * After a field that is not there, too long or malformed, `bad` is true and all fields are 0 or "". */
typedef struct oly_read {
    const unsigned char *at, *end;
    bool bad;
} oly_read;
oly_read oly_read_of(const void *bytes, size_t n);
uint8_t oly_read_u8(oly_read *r);
uint32_t oly_read_u32(oly_read *r);
uint64_t oly_read_u64(oly_read *r);
/* Copies a text without control characters (a newline becomes a space). */
void oly_read_text(oly_read *r, char *text, size_t size);
/* The rest of a blob stays where it is. */
const void *oly_read_blob(oly_read *r, size_t *n);
bool oly_read_done(const oly_read *r); /* all read, and nothing bad */

/* Looks at the first message of n bytes. Returns its whole length, 0: not all there, -1: longer than `most` or of no known kind. */
long oly_wire_first(const unsigned char *bytes, size_t n, size_t most, oly_wire_kind *kind);

/* -- the card that a process hands in ------------------------------------------------------------------------------------ */
typedef enum { OLY_MPI_OTHER, OLY_MPI_OPEN, OLY_MPI_MPICH } oly_mpi_kind;
typedef struct oly_card {
    uint32_t version;           /* of Olympus, major * 1000 + minor */
    int32_t processes, process; /* processes -1: as many as process 0 says */
    uint32_t pid;
    uint8_t mpi, mixed;        /* oly_mpi_kind; OLYMPUS_MIXED_PROGRAMS */
    uint64_t program, library; /* builds */
    char path[512];            /* of the program */
    char host[256], node[512]; /* its host's name; processes with equal `node` share memory */
} oly_card;
void oly_wire_card(oly_wire *w, const oly_card *card);
bool oly_read_card(oly_read *r, oly_card *card);

/* -- the request of a process to its olymeet ---------------------------------------------------------------------------- */
typedef struct oly_request {
    oly_card card;
    char coordinator[512], bind[256]; /* HOST:PORT; "": listen at the coordinator's address */
    uint32_t timeout;                 /* seconds */
} oly_request;
void oly_wire_request(oly_wire *w, const oly_request *request);
bool oly_read_request(oly_read *r, oly_request *request);

/* HOST, HOST:PORT or [IPv6]:PORT; the port is 10000 where none is given. False: malformed. */
bool oly_read_address(const char *text, char *host, size_t size, char port[6]);
#endif
