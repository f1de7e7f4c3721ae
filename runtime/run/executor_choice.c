/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the executor. See executor_choice.h. */
#include "run/executor_choice.h"
#include "run/cuda/executor_cuda.h"
#include "run/executor.h"
#include <string.h>

const oly_executor *oly_executor_chosen = &oly_executor_cpu;

void oly_executor_choose(void)
{
    oly_executor_chosen = strcmp(oly_platform_get()->name, "cuda") == 0 ? oly_executor_cuda() : &oly_executor_cpu;
}
