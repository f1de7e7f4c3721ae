/* SPDX-License-Identifier: BSD-3-Clause */
/* What saving and loading .npz share. Private to runtime/array/files. */
#ifndef OLY_ARRAY_FILES_NPZ_H
#define OLY_ARRAY_FILES_NPZ_H
#include "array/files/crew.h"

/* "NAME.npy". fails OLY_INVALID: no name, or longer than a member's. */
oly_status oly_npz_member_name(const char *name, char member[]);
oly_status oly_npz_other_count(int names, int arrays); /* fails OLY_INVALID */
/* Hash of the path and of n names, NULLs allowed. */
uint64_t oly_npz_arguments(uint64_t seed, const char *path, int n, const char *const *names);
/* This member's share of the crc of a range of bytes: that of [n*me/crew, n*(me+1)/crew), read from the file; and the crc of all from
 * the shares, in order. */
oly_status oly_npz_share_of_crc(const oly_crew *crew, int file, const char *path, int64_t begin, int64_t n,
                                int64_t *share);
uint32_t oly_npz_crc_of_shares(const oly_crew *crew, int64_t n, const int64_t *shares, int stride);
#endif
