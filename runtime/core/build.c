/* SPDX-License-Identifier: BSD-3-Clause */
/* Fingerprints of the running program and of the library in it. See build.h. */
#define _GNU_SOURCE /* dl_iterate_phdr, dladdr */
#include "core/build.h"
#include "core/hash.h"
#include <dlfcn.h>
#include <link.h>
#include <olympus/base.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

typedef struct search {
    oly_build build;
    uintptr_t inside; /* an address in the library */
    bool any;
} search;

/* The note "GNU", type NT_GNU_BUILD_ID, of a segment of notes; its length in *bytes. NULL: none. */
static const char *find_build_id(const char *note, size_t left, size_t *bytes)
{
    while (left >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, note, sizeof head);
        size_t name = (head.n_namesz + 3ul) & ~3ul, whole = sizeof head + name + ((head.n_descsz + 3ul) & ~3ul);
        if (whole > left)
            return NULL;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(note + sizeof head, "GNU", 4) == 0) {
            *bytes = head.n_descsz;
            return note + sizeof head + name;
        }
        note += whole;
        left -= whole;
    }
    return NULL;
}

static uint64_t hash_object(const struct dl_phdr_info *object)
{
    uint64_t code = 1;
    for (int k = 0; k < object->dlpi_phnum; k++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[k];
        const char *memory = (const char *)(object->dlpi_addr + segment->p_vaddr);
        size_t bytes;
        const char *id = segment->p_type == PT_NOTE ? find_build_id(memory, segment->p_memsz, &bytes) : NULL;
        if (id)
            return oly_hash(2, id, bytes);
    }
    for (int k = 0; k < object->dlpi_phnum; k++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[k];
        bool read = segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && (segment->p_flags & PF_R);
        if (read)
            code = oly_hash(code, (const char *)(object->dlpi_addr + segment->p_vaddr), segment->p_filesz);
    }
    return code;
}

static bool is_inside(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int k = 0; k < object->dlpi_phnum; k++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[k];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= begin && address - begin < segment->p_memsz)
            return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    search *s = context;
    bool library = is_inside(object, s->inside);
    if (s->any && !library)
        return 0;
    uint64_t h = hash_object(object);
    if (!s->any) /* the program is listed first */
        s->build.program = h;
    if (library)
        s->build.library = h;
    s->any = true;
    return library;
}

oly_build oly_build_get(void)
{
    search s = {.inside = (uintptr_t)(void *)oly_version};
    dl_iterate_phdr(look_at, &s);
    return s.build;
}

void oly_build_paths(char *program, char *library, size_t size)
{
    Dl_info info;
    ssize_t length = readlink("/proc/self/exe", program, size - 1);
    snprintf(program + (length > 0 ? length : 0), length > 0 ? 1 : size, "%s", length > 0 ? "" : "an unknown program");
    bool found = dladdr((void *)oly_version, &info) != 0 && info.dli_fname;
    snprintf(library, size, "%s", found ? info.dli_fname : "an unknown library");
}
