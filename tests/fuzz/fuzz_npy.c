/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of .npy files: once the text is the dictionary of a file of each version, once it is the whole file ('~' for a byte of
 * 0). An accepted header describes an array that can be, and writing it gives a header that says the same. */
#include "file/npy_header.h"
#include "fuzz.h"
#include <string.h>

const char *const fuzz_seeds[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n",
                                  "{'descr': '>i8', 'fortran_order': True, 'shape': (5,), }\n",
                                  "{\"shape\": (), \"descr\": \"|b1\", 'fortran_order': False}",
                                  "{'descr': '|V1', 'fortran_order': False, 'shape': (0, 7, 2), } # float8_e5m2 \n",
                                  "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2L,), }",
                                  "\x93NUMPY\x01~,~{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
                                  "\x93NUMPY\x03~,~~~{'descr': '<u2', 'fortran_order': True, 'shape': (1,2), }",
                                  NULL};
const char *const fuzz_words[] = {"'descr': ",
                                  "'fortran_order': ",
                                  "'shape': ",
                                  "True",
                                  "False",
                                  "(",
                                  ")",
                                  ",",
                                  "{",
                                  "}",
                                  "'<f2'",
                                  "'|V2'",
                                  "'<c16'",
                                  "'|O'",
                                  "#",
                                  " ",
                                  "9223372036854775808",
                                  "9223372036854775807",
                                  "4294967296",
                                  "0",
                                  "-1",
                                  "L",
                                  "'",
                                  "\"",
                                  "\\",
                                  "\n",
                                  "bfloat16",
                                  "~",
                                  "\x93NUMPY",
                                  "[",
                                  "]",
                                  NULL};

/* Was it accepted? */
static bool try_bytes(const char *bytes, size_t n)
{
    oly_npy_header h, again;
    char written[OLY_NPY_WRITTEN_MOST];
    /* Exactly the bytes, so that a sanitizer sees a read beyond them. */
    char *exact = oly_malloc(n + (n == 0));
    memcpy(exact, bytes, n);
    oly_status st = oly_npy_header_read(exact, n, "fuzz.npy", &h);
    oly_release(exact);
    if (st != OLY_OK) {
        FUZZ_CHECK(oly_pending_message()[0] != '\0');
        oly_drop_message();
        return false;
    }
    FUZZ_CHECK(h.rank >= 0 && h.rank <= OLY_MAX_RANK && h.dtype < OLY_N_DTYPES && h.data <= (int64_t)n);
    FUZZ_CHECK(oly_npy_count(&h) >= 0 && oly_npy_bytes(&h) == oly_npy_count(&h) * (int64_t)oly_dtype_size(h.dtype));
    again = h;
    size_t length = oly_npy_header_write(&again, 1 + (int)(n % 2), written);
    FUZZ_CHECK(length % 64 == 0);
    FUZZ_CHECK(oly_npy_header_read(written, length, "fuzz.npy", &again) == OLY_OK);
    FUZZ_CHECK(again.dtype == h.dtype && again.rank == h.rank && !again.fortran && !again.swapped);
    FUZZ_CHECK(memcmp(again.shape, h.shape, sizeof h.shape) == 0 && again.data == (int64_t)length);
    return true;
}

void fuzz_try(const char *text)
{
    char bytes[1024];
    size_t n = strlen(text);
    bool accepted = false;
    for (int version = 1; version <= 3; version++) {
        size_t prefix = version == 1 ? 10 : 12;
        memcpy(bytes, "\x93NUMPY", 6);
        bytes[6] = (char)version;
        memset(bytes + 7, 0, 5);
        bytes[8] = (char)n;
        bytes[9] = (char)(n >> 8);
        memcpy(bytes + prefix, text, n);
        accepted |= try_bytes(bytes, prefix + n);
        try_bytes(bytes, n);
    }
    for (size_t k = 0; k < n; k++)
        bytes[k] = (char)(text[k] == '~' ? '\0' : text[k]);
    if (!try_bytes(bytes, n) && !accepted) {
        oly_raise(oly_fail(OLY_IO, "refused"));
        fuzz_check_refusal();
    }
}
