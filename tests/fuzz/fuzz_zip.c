/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of zip files: the text is the end of a file ('~' for a byte of 0, '^' for 0xff). What is accepted lies inside the file,
 * and is the same when it is written and read again. */
#include "file/zip.h"
#include "fuzz.h"
#include <string.h>

/* An entry with a name of 5 bytes and no extra; the end of a file with one entry of 51 bytes. */
#define ENTRY "PK\1\2\24\3\24~~~~~~~!~abcd\1~~~\1~~~\5~~~~~~~~~~~~~~~~~~~a.npy"
#define ONE   "PK\5\6~~~~\1~\1~\63~~~~~~~~~"
const char *const fuzz_seeds[] = {ENTRY ONE, "PK\5\6~~~~~~~~~~~~~~~~~~", "PK\5\6~~~~~~~~~~~~~~~~\4~abcd", NULL};
const char *const fuzz_words[] = {"PK\5\6", "PK\1\2",  "PK\6\6", "PK\6\7", "~~~~", "^^^^",
                                  "^^",     "\1~\20~", "~",      ENTRY,    ONE,    NULL};

static void check_again(const oly_zip *zip)
{
    unsigned char bytes[4096];
    oly_zip again;
    if (oly_zip_write_directory(zip, NULL) > sizeof bytes)
        return;
    size_t n = oly_zip_write_directory(zip, bytes);
    int64_t begin, length, count;
    FUZZ_CHECK(oly_zip_find(bytes, n, zip->directory + (int64_t)n, "fuzz.npz", &begin, &length, &count) == OLY_OK);
    FUZZ_CHECK(begin == zip->directory && count == zip->n);
    FUZZ_CHECK(oly_zip_parse(bytes, (size_t)length, begin, count, "fuzz.npz", &again) == OLY_OK);
    for (int k = 0; k < zip->n; k++)
        FUZZ_CHECK(strcmp(again.member[k].name, zip->member[k].name) == 0 &&
                   again.member[k].size == zip->member[k].size && again.member[k].header == zip->member[k].header);
    oly_zip_free(&again);
}

void fuzz_try(const char *text)
{
    size_t n = strlen(text);
    int64_t begin, length, count;
    oly_zip zip;
    char *bytes = oly_malloc(n + (n == 0)); /* exactly, so that a sanitizer sees a read beyond them */
    for (size_t k = 0; k < n; k++)
        bytes[k] = (char)(text[k] == '~' ? '\0' : text[k] == '^' ? '\xff' : text[k]);
    oly_status st = oly_zip_find(bytes, n, (int64_t)n, "fuzz.npz", &begin, &length, &count);
    if (st == OLY_OK) {
        FUZZ_CHECK(begin >= 0 && length >= 0 && begin + length <= (int64_t)n && count <= length / 46);
        st = oly_zip_parse(bytes + begin, (size_t)length, begin, count, "fuzz.npz", &zip);
    }
    if (st == OLY_OK) {
        for (int k = 0; k < zip.n; k++)
            FUZZ_CHECK(zip.member[k].header >= 0 && zip.member[k].packed >= 0 &&
                       zip.member[k].header + zip.member[k].packed <= begin);
        bool plain = true;
        for (int k = 0; k < zip.n; k++) /* written are stored members only */
            plain = plain && zip.member[k].packed == zip.member[k].size;
        if (plain)
            check_again(&zip);
        oly_zip_free(&zip);
    } else {
        oly_raise(st);
        fuzz_check_refusal();
    }
    oly_release(bytes);
}
