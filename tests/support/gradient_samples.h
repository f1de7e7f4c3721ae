/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that use each operation of the table, for tests of gradients. */
#ifndef GRADIENT_SAMPLES_H
#define GRADIENT_SAMPLES_H
#include <olympus.h>

enum { GRADIENT_MOST_IN = 4 };

/* A function of arrays that are filled with numbers between low and high, all different. */
typedef struct gradient_sample {
    const char *row; /* the row of ops.def that it uses */
    oly_array (*f)(const oly_array *x);
    int n_in;
    struct {
        int rank;
        int64_t shape[OLY_MAX_RANK];
    } in[GRADIENT_MOST_IN];
    double low, high;
} gradient_sample;

extern const gradient_sample gradient_samples[]; /* ended by one without a row */
extern const gradient_sample gradient_sample_of_reshard, gradient_sample_of_maps;

/* The mesh of samples with a mesh: x=4, y=2. */
oly_mesh gradient_mesh(void);
/* The gradient of gradient_sample_of_maps taken inside the map. An oly_function. */
void gradient_inside_map(const oly_array *in, oly_array *out, void *user);
#endif
