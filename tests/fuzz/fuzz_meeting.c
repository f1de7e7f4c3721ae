/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of processes that meet (launch/wire.h), as hexadecimal digits, and addresses. What is accepted is within its limits and
 * is read again from what it is written as. */
#include "fuzz.h"
#include "meeting.h"
#include "wire.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CARD                                                                                                           \
    "01000000"                                                                                                         \
    "01000000"                                                                                                         \
    "04000000"                                                                                                         \
    "02000000"                                                                                                         \
    "2a000000"                                                                                                         \
    "01"                                                                                                               \
    "00"                                                                                                               \
    "1111111111111111"                                                                                                 \
    "2222222222222222"                                                                                                 \
    "04000000"                                                                                                         \
    "2f746f79"                                                                                                         \
    "02000000"                                                                                                         \
    "6831"                                                                                                             \
    "03000000"                                                                                                         \
    "682078"
const char *const fuzz_seeds[] = {"5600000004" CARD,
                                  CARD,
                                  CARD "0a000000"
                                       "68313a31303030300a00"
                                       "00000000"
                                       "1e000000",
                                  "0000000001",
                                  "ffffffff04",
                                  "127.0.0.1:10000",
                                  "[::1]:80",
                                  "h1",
                                  "jobs-workers-0-3",
                                  "",
                                  NULL};
const char *const fuzz_words[] = {"00000000", "ffffffff", "00000080", "01", "00", "04",    "0f", "10000000",
                                  "7f",       "0a",       ":",        "]",  "[",  "65536", NULL};

enum { MOST = 1 << 16 };

/* Hexadecimal digits as bytes, other characters as they are. */
static size_t bytes_of(const char *text, unsigned char *bytes)
{
    size_t n = 0;
    for (const char *at = text; *at && n < MOST; at++) {
        if (isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1])) {
            char pair[3] = {at[0], at[1], 0};
            bytes[n++] = (unsigned char)strtol(pair, NULL, 16);
            at++;
        } else {
            bytes[n++] = (unsigned char)*at;
        }
    }
    return n;
}

static void try_card(const unsigned char *bytes, size_t n)
{
    oly_card card, again;
    memset(&card, 0, sizeof card);
    memset(&again, 0, sizeof again);
    oly_read r = oly_read_of(bytes, n);
    if (!oly_read_card(&r, &card))
        return;
    FUZZ_CHECK(card.process >= 0 && card.process < OLY_WIRE_MOST_PROCESSES && strlen(card.host) < sizeof card.host);
    oly_wire w = {0};
    oly_wire_card(&w, &card);
    r = oly_read_of(w.bytes, w.n);
    FUZZ_CHECK(oly_read_card(&r, &again) && oly_read_done(&r));
    FUZZ_CHECK(strcmp(card.path, again.path) == 0 && strcmp(card.node, again.node) == 0 &&
               card.process == again.process);
    oly_wire_free(&w);
}

static void try_request(const unsigned char *bytes, size_t n)
{
    oly_request request;
    oly_read r = oly_read_of(bytes, n);
    if (oly_read_request(&r, &request))
        FUZZ_CHECK(strlen(request.coordinator) < sizeof request.coordinator &&
                   strlen(request.bind) < sizeof request.bind);
}

static void try_address(const char *text)
{
    char host[64], port[6], first[300];
    if (oly_read_address(text, host, sizeof host, port))
        FUZZ_CHECK(host[0] && atoi(port) > 0 && atoi(port) < 65536);
    if (oly_meeting_first_pod(text, "3", text, first, sizeof first))
        FUZZ_CHECK(strstr(first, "-0") != NULL);
}

void fuzz_try(const char *text)
{
    unsigned char *bytes = malloc(MOST);
    if (!bytes)
        return;
    size_t n = bytes_of(text, bytes);
    unsigned char *exact = malloc(n ? n : 1); /* so that reading past the end is seen */
    if (exact) {
        memcpy(exact, bytes, n);
        oly_wire_kind kind = OLY_WIRE_START;
        long whole = oly_wire_first(exact, n, OLY_WIRE_MOST_JOIN, &kind);
        FUZZ_CHECK(whole >= -1 && whole <= (long)n && whole <= OLY_WIRE_MOST_JOIN + OLY_WIRE_HEAD);
        if (whole > 0)
            try_card(exact + OLY_WIRE_HEAD, (size_t)whole - OLY_WIRE_HEAD);
        try_card(exact, n);
        try_request(exact, n);
    }
    try_address(text);
    free(exact);
    free(bytes);
}
