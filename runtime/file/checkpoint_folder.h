/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of a program's checkpoints: which there are, how one appears in it, and which are removed. Called by one rank for all.
 * Callable by runtime/file and above.
 *
 *   DIR/step-00000100/              a checkpoint: whole, since it gets this name when everything in it is on the disk
 *       manifest                    manifest.h
 *       000000-w-00000.npy ...      parts
 *   DIR/.step-00000200.1f3a.tmp/    one that is being written, or whose writer was killed
 *   DIR/.step-00000100.old/         one that another of the same step is taking the place of
 *   DIR/.step-00000050.77c0.gone/   one that is being removed
 *
 * A name appears or disappears by one rename, and files are removed only after the rename is on the disk, so that after a kill or a
 * loss of power at any moment every name without a dot is a whole checkpoint. One job at a time writes into a folder; any number may
 * read it meanwhile. */
#ifndef OLY_FILE_CHECKPOINT_FOLDER_H
#define OLY_FILE_CHECKPOINT_FOLDER_H
#include "core/error.h"

enum { OLY_CHECKPOINT_PATH = 4096 }; /* bytes of a path, with its end */

/* A checkpoint that is there. */
typedef struct oly_checkpoint_found {
    int64_t step;
    bool replaced; /* .step-00000100.old, the last resort of its step */
} oly_checkpoint_found;

/* The checkpoints of a folder, the newest (highest step) first; *found is released by the caller. A folder that does not exist has
 * none. fails OLY_IO, OLY_MEMORY. */
oly_status oly_checkpoint_scan(const char *folder, int *n, oly_checkpoint_found **found);
/* DIR/step-00000100, or the place of a replaced one. fails OLY_IO if it is too long. */
oly_status oly_checkpoint_path(const char *folder, const oly_checkpoint_found *which, char path[OLY_CHECKPOINT_PATH]);
/* PATH/NAME. fails OLY_IO if it is too long. */
oly_status oly_checkpoint_file(const char *path, const char *name, char file[OLY_CHECKPOINT_PATH]);

/* Makes the folder (with those above it) if it is not there (*made), clears what killed writers have left, and makes an empty folder for a
 * new checkpoint. fails OLY_IO, OLY_MEMORY; then a folder that it has made is gone again. */
oly_status oly_checkpoint_begin(const char *folder, int64_t step, char path[OLY_CHECKPOINT_PATH], bool *made);
/* After a failure: removes what was written, and an empty folder that was made for it. */
void oly_checkpoint_abandon(const char *folder, const char *path, bool made);
/* After all files in it are on the disk: gives it its name, in place of one of the same step. fails OLY_IO; then the folder has the
 * old one, or the new one, whole. */
oly_status oly_checkpoint_commit(const char *folder, int64_t step, const char *path);
/* Removes all but the newest `keep` of the checkpoints up to this step; later ones, of another run, stay. *later: the highest of
 * those, -1: none. fails OLY_IO. */
oly_status oly_checkpoint_prune(const char *folder, int64_t step, int keep, int64_t *later);
/* Removes a folder and the files in it, as far as possible. */
void oly_checkpoint_remove(const char *path);
#endif
