/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk that fails (a table of runtime/file/storage.h over the kernel's): it is full or broken at a call, writes less than asked
 * for, or loses power and with it what was not synchronised. Everything is done in real files; what a loss of power takes back is
 * logged. Each process has its own: after a loss of power on several, each calls faulty_storage_reboot. */
#ifndef FAULTY_STORAGE_H
#define FAULTY_STORAGE_H
#include "file/storage.h"

/* Which calls count, and fail. Bits. */
enum {
    FAULTY_OPEN = 1,
    FAULTY_READ = 2,
    FAULTY_WRITE = 4,
    FAULTY_SIZE = 8,
    FAULTY_SYNC = 16, /* of files and of folders */
    FAULTY_RENAME = 32,
    FAULTY_REMOVE = 64, /* of files and of folders */
    FAULTY_MKDIR = 128,
    FAULTY_LOOK = 256, /* lstat, fstat, list */
    FAULTY_CLOSE = 512,
    FAULTY_CHANGES = FAULTY_WRITE | FAULTY_SIZE | FAULTY_SYNC | FAULTY_RENAME | FAULTY_REMOVE | FAULTY_MKDIR,
    FAULTY_ANY = 1023
};

/* All zero: a disk without faults, which counts calls. */
typedef struct faulty_disk {
    unsigned calls;       /* which count */
    long fail_at;         /* the call that fails, from 1; 0: none */
    long fail_count;      /* how many fail from there; 0: one; -1: all */
    int error;            /* the errno of failed calls, ENOSPC, EIO, ...; 0: EIO */
    size_t longest_write; /* bytes that one write, or read, moves at most; 0: any */
    int64_t room;         /* bytes beyond which no file can be written: ENOSPC; 0: any */
    const char
        *only; /* only paths that contain this text fail; NULL: all. (Calls on open files: by the path they were opened
                              with.) */
    long cut_at; /* the call before which the power fails: it and all later calls fail with EIO; 0: none */
    bool log;    /* what is not synchronised is logged, for faulty_storage_reboot; set if cut_at is */
} faulty_disk;

/* Uses such a disk from now on; calls are counted from 1. */
void faulty_storage_begin(const faulty_disk *disk);
/* Calls counted since. */
long faulty_storage_calls(void);
/* After the power failed (at cut_at, or here): takes back what was not synchronised, in the files themselves, and uses the kernel's
 * disk again. which 0: everything of it is lost; 1: the names of files are kept, their contents lost; other numbers: each change is
 * kept or lost at random, names in the order in which they were changed. Descriptors that were open stay open. */
void faulty_storage_reboot(uint64_t which);
/* Uses the kernel's disk again; everything stays as it is. */
void faulty_storage_end(void);
#endif
