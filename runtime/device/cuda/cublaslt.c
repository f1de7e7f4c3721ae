/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening cuBLASLt. See cublaslt.h. */
#include "device/cuda/cublaslt.h"
#include "core/late_library.h"

#if OLY_HAS_CUBLASLT
oly_cublaslt_functions oly_cublaslt;

#define NAME(name) #name,
static const char *const symbols[] = {OLY_CUBLASLT_FUNCTIONS(NAME)};
_Static_assert(sizeof oly_cublaslt == sizeof symbols, "one pointer for each name");

bool oly_cublaslt_open(const char **why)
{
    /* Where the toolkit is installed without telling the loader, its usual folder. */
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
    static oly_late_library library = {
        .files = files, .symbols = symbols, .addresses = (void **)&oly_cublaslt, .n = sizeof symbols / sizeof *symbols};
    bool there = oly_late_library_open(&library);
    *why = library.reason;
    return there;
}
#else
bool oly_cublaslt_open(const char **why)
{
    *why = "this library was built without cublasLt.h";
    return false;
}
#endif
