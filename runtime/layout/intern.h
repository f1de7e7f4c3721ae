/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by mesh.c, sharding.c and permutation.c: the lock of the interned objects, and their release. */
#ifndef OLY_LAYOUT_INTERN_H
#define OLY_LAYOUT_INTERN_H
void oly_intern_lock(void);
void oly_intern_unlock(void);
void oly_meshes_forget(void);
void oly_permutations_forget(void);
#endif
