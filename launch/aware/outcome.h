/* SPDX-License-Identifier: BSD-3-Clause */
/* How the program olyaware ends, for itself and collectives/device_trial.c. */
#ifndef OLY_AWARE_OUTCOME_H
#define OLY_AWARE_OUTCOME_H

/* Its exit status. Anything else, and a signal: MPI does not take memory of GPUs. */
#define OLY_AWARE_OUTCOMES(X)                                                                                          \
    X(WORKS, 40, "MPI takes memory of GPUs")                                                                           \
    X(CLAIMS_NOT, 41, "MPI says that it does not take memory of GPUs (MPIX_Query_cuda_support)")                       \
    X(NO_GPU, 42, "the trial of MPI with memory of a GPU got no GPU")                                                  \
    X(NO_MPI, 43, "MPI did not start for the trial with memory of a GPU")                                              \
    X(FAILS, 44, "MPI fails with memory of a GPU")                                                                     \
    X(OTHER_BYTES, 45, "MPI delivers other bytes from memory of a GPU")

#define OLY_AWARE_NUMBER(name, number, text) OLY_AWARE_##name = number,
enum { OLY_AWARE_OUTCOMES(OLY_AWARE_NUMBER) OLY_AWARE_SECONDS = 20 };
#undef OLY_AWARE_NUMBER
#endif
