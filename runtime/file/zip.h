/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of a zip file, as .npz files are: reading one, with zip64, and the records that a file with stored members is made of.
 * Callable by runtime/file and above. */
#ifndef OLY_FILE_ZIP_H
#define OLY_FILE_ZIP_H
#include "core/error.h"

enum { OLY_ZIP_STORED = 0, OLY_ZIP_DEFLATED = 8, OLY_ZIP_NAME_MOST = 1024 };

typedef struct oly_zip_member {
    char *name; /* owned by the list */
    int method, flags;
    uint32_t crc;
    int64_t packed, size; /* bytes in the file, and unpacked */
    int64_t header;       /* where its local header begins */
} oly_zip_member;

typedef struct oly_zip {
    int n;
    oly_zip_member *member; /* owned */
    int64_t directory;      /* where the directory begins: members end before */
    uint64_t hash;          /* of its bytes */
} oly_zip;

/* -- reading ------------------------------------------------------------------------------------------------------------------ */

/* Where the directory is, by the last n bytes of a file of `size` bytes; OLY_ZIP_TAIL suffice. fails OLY_IO. */
enum { OLY_ZIP_TAIL = 65535 + 22 + 20 + 56 };
oly_status oly_zip_find(const void *tail, size_t n, int64_t size, const char *path, int64_t *begin, int64_t *bytes,
                        int64_t *count);
/* Its entries. The members lie before the directory. fails OLY_IO, OLY_MEMORY; the list is released then. */
oly_status oly_zip_parse(const void *directory, size_t n, int64_t begin, int64_t count, const char *path, oly_zip *zip);
/* Both, from an open file. */
oly_status oly_zip_read(int file, int64_t size, const char *path, oly_zip *zip);
void oly_zip_free(oly_zip *zip);
/* The member of this name; NULL: none. */
const oly_zip_member *oly_zip_member_named(const oly_zip *zip, const char *name);
/* Where its data begins. fails OLY_IO: damaged, encrypted, or packed in another way than stored or deflated. */
oly_status oly_zip_data(int file, const oly_zip *zip, const oly_zip_member *m, const char *path, int64_t *begin);

/* -- writing: stored members one after the other, then the directory --------------------------------------------------------- */

/* The local header of a member whose size is known; its crc may be written later, at OLY_ZIP_CRC_AT in it. Returns its length, which
 * depends on name and size. bytes NULL: only that. */
enum { OLY_ZIP_CRC_AT = 14, OLY_ZIP_HEADER_MOST = 30 + OLY_ZIP_NAME_MOST + 20 };
size_t oly_zip_write_header(const oly_zip_member *m, unsigned char *bytes);
/* The directory of all members, and the records at the end of the file. Returns the length; bytes NULL: only that. */
size_t oly_zip_write_directory(const oly_zip *zip, unsigned char *bytes);
#endif
