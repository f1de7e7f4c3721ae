/* SPDX-License-Identifier: BSD-3-Clause */
/* The soak's programs driven by libFuzzer: bytes are choices. Built with clang and the library instrumented: make
 * soak-fuzzer. A failure prints the program and aborts, so that the fuzzer keeps its bytes; build/tests/soak/soak -f
 * FILE shrinks it. */
#include "child.h"
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static program p;
    static int turn;
    if (turn++ % 300 == 0) {
        if (turn > 1)
            oly_finalize();
        setenv("OLYMPUS_NUM_CPU_DEVICES", "8", 0);
        begin_session();
    }
    choices_from_bytes(&p.choices, data, (int)(size < MOST_CHOICES ? size : MOST_CHOICES));
    draw_program(&p, oly_device_count());
    if (!evaluate_main(&p))
        return 0;
    outcome o = run_program(&p);
    if (o.failed) {
        print_program(stderr, &p, &o);
        abort();
    }
    return 0;
}
