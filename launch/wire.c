/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing and reading the messages of a meeting. See wire.h. Nothing here trusts what it reads; tests/fuzz/fuzz_meeting.c tries. */
#include "wire.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- writing ------------------------------------------------------------------------------------------------------ */

static void add(oly_wire *w, const void *bytes, size_t n)
{
    if (w->failed || n == 0)
        return;
    if (w->room - w->n < n) {
        size_t room = 2 * (w->n + n) + 64;
        unsigned char *larger = realloc(w->bytes, room);
        w->failed = !larger;
        if (!larger)
            return;
        w->bytes = larger;
        w->room = room;
    }
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

static void number(oly_wire *w, uint64_t value, int bytes)
{
    unsigned char b[8];
    for (int k = 0; k < bytes; k++)
        b[k] = (unsigned char)(value >> 8 * k);
    add(w, b, (size_t)bytes);
}

void oly_wire_u8(oly_wire *w, uint8_t value)
{
    number(w, value, 1);
}
void oly_wire_u32(oly_wire *w, uint32_t value)
{
    number(w, value, 4);
}
void oly_wire_u64(oly_wire *w, uint64_t value)
{
    number(w, value, 8);
}

void oly_wire_blob(oly_wire *w, const void *bytes, size_t n)
{
    number(w, n, 4);
    add(w, bytes, n);
}

void oly_wire_text(oly_wire *w, const char *text)
{
    size_t n = strlen(text);
    oly_wire_blob(w, text, n < OLY_WIRE_MOST_TEXT ? n : OLY_WIRE_MOST_TEXT - 1);
}

size_t oly_wire_begin(oly_wire *w, oly_wire_kind kind)
{
    size_t place = w->n;
    number(w, 0, 4);
    number(w, kind, 1);
    return place;
}

void oly_wire_end(oly_wire *w, size_t place)
{
    if (w->failed)
        return;
    size_t n = w->n - place - OLY_WIRE_HEAD;
    for (int k = 0; k < 4; k++)
        w->bytes[place + (size_t)k] = (unsigned char)(n >> 8 * k);
}

void oly_wire_free(oly_wire *w)
{
    free(w->bytes);
    *w = (oly_wire){0};
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

oly_read oly_read_of(const void *bytes, size_t n)
{
    return (oly_read){bytes, (const unsigned char *)bytes + n, false};
}

static uint64_t read_number(oly_read *r, int bytes)
{
    uint64_t value = 0;
    r->bad = r->bad || r->end - r->at < bytes;
    if (r->bad)
        return 0;
    for (int k = 0; k < bytes; k++)
        value |= (uint64_t)*r->at++ << 8 * k;
    return value;
}

uint8_t oly_read_u8(oly_read *r)
{
    return (uint8_t)read_number(r, 1);
}
uint32_t oly_read_u32(oly_read *r)
{
    return (uint32_t)read_number(r, 4);
}
uint64_t oly_read_u64(oly_read *r)
{
    return read_number(r, 8);
}

const void *oly_read_blob(oly_read *r, size_t *n)
{
    *n = oly_read_u32(r);
    r->bad = r->bad || (size_t)(r->end - r->at) < *n;
    if (r->bad)
        *n = 0;
    const void *bytes = r->at;
    r->at += *n;
    return bytes;
}

void oly_read_text(oly_read *r, char *text, size_t size)
{
    size_t n;
    const char *bytes = oly_read_blob(r, &n);
    r->bad = r->bad || n >= size || n >= OLY_WIRE_MOST_TEXT;
    text[0] = 0;
    if (r->bad)
        return;
    for (size_t k = 0; k < n; k++)
        text[k] = (unsigned char)bytes[k] < 32 || bytes[k] == 127 ? ' ' : bytes[k];
    text[n] = 0;
}

bool oly_read_done(const oly_read *r)
{
    return !r->bad && r->at == r->end;
}

long oly_wire_first(const unsigned char *bytes, size_t n, size_t most, oly_wire_kind *kind)
{
    if (n < OLY_WIRE_HEAD)
        return 0;
    oly_read r = oly_read_of(bytes, n);
    size_t length = oly_read_u32(&r);
    uint8_t k = oly_read_u8(&r);
    if (length > most || k < OLY_WIRE_START || k >= OLY_WIRE_KINDS)
        return -1;
    *kind = (oly_wire_kind)k;
    return n - OLY_WIRE_HEAD < length ? 0 : (long)(length + OLY_WIRE_HEAD);
}

/* -- cards and requests ------------------------------------------------------------------------------------------------ */

void oly_wire_card(oly_wire *w, const oly_card *card)
{
    oly_wire_u32(w, OLY_WIRE_VERSION);
    oly_wire_u32(w, card->version);
    oly_wire_u32(w, (uint32_t)card->processes);
    oly_wire_u32(w, (uint32_t)card->process);
    oly_wire_u32(w, card->pid);
    oly_wire_u8(w, card->mpi);
    oly_wire_u8(w, card->mixed);
    oly_wire_u64(w, card->program);
    oly_wire_u64(w, card->library);
    oly_wire_text(w, card->path);
    oly_wire_text(w, card->host);
    oly_wire_text(w, card->node);
}

bool oly_read_card(oly_read *r, oly_card *card)
{
    r->bad = r->bad || oly_read_u32(r) != OLY_WIRE_VERSION;
    card->version = oly_read_u32(r);
    card->processes = (int32_t)oly_read_u32(r);
    card->process = (int32_t)oly_read_u32(r);
    card->pid = oly_read_u32(r);
    card->mpi = oly_read_u8(r);
    card->mixed = oly_read_u8(r);
    card->program = oly_read_u64(r);
    card->library = oly_read_u64(r);
    oly_read_text(r, card->path, sizeof card->path);
    oly_read_text(r, card->host, sizeof card->host);
    oly_read_text(r, card->node, sizeof card->node);
    r->bad = r->bad || card->process < 0 || card->process >= OLY_WIRE_MOST_PROCESSES || card->processes < -1 ||
             card->processes == 0 || card->processes > OLY_WIRE_MOST_PROCESSES || !card->host[0];
    return !r->bad;
}

void oly_wire_request(oly_wire *w, const oly_request *request)
{
    oly_wire_card(w, &request->card);
    oly_wire_text(w, request->coordinator);
    oly_wire_text(w, request->bind);
    oly_wire_u32(w, request->timeout);
}

bool oly_read_request(oly_read *r, oly_request *request)
{
    oly_read_card(r, &request->card);
    oly_read_text(r, request->coordinator, sizeof request->coordinator);
    oly_read_text(r, request->bind, sizeof request->bind);
    request->timeout = oly_read_u32(r);
    return oly_read_done(r);
}

bool oly_read_address(const char *text, char *host, size_t size, char port[6])
{
    const char *close = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = close ? close + 1 : strchr(text, ':');
    const char *begin = close ? text + 1 : text;
    size_t n = close ? (size_t)(close - begin) : colon ? (size_t)(colon - begin) : strlen(text);
    if ((text[0] == '[' && !close) || n == 0 || n >= size || (close && *colon && *colon != ':'))
        return false;
    if (!close && colon && strchr(colon + 1, ':')) /* an IPv6 address without brackets: no port */
        return false;
    memcpy(host, begin, n);
    host[n] = 0;
    for (size_t k = 0; k < n; k++)
        if (isspace((unsigned char)host[k]) || iscntrl((unsigned char)host[k]) || host[k] == '/')
            return false;
    if (!colon || !*colon) {
        snprintf(port, 6, "10000");
        return true;
    }
    long number = 0;
    for (const char *at = colon + 1; *at; at++) {
        if (!isdigit((unsigned char)*at) || (number = 10 * number + (*at - '0')) > 65535)
            return false;
    }
    snprintf(port, 6, "%u", (unsigned)number & 0xffff);
    return number > 0;
}
