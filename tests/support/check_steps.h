/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of single passes that look into plans: a program whose one test sees every new plan, and counts of steps. */
#ifndef CHECK_STEPS_H
#define CHECK_STEPS_H
#include "check.h"
#include "check_session.h"
#include "plan/plan.h"

/* Steps of the plan for which counts() is true, in loops, too. */
int check_count_steps(const oly_plan *plan, bool (*counts)(const oly_step *));

/* main, with one test, in a session in which look(plan) is called with every new plan. */
#define CHECK_MAIN_LOOKING(test, look)                                                                                 \
    static int open_looking(void **state)                                                                              \
    {                                                                                                                  \
        oly_plan_damage = look;                                                                                        \
        return check_open(state);                                                                                      \
    }                                                                                                                  \
    static int close_looking(void **state)                                                                             \
    {                                                                                                                  \
        oly_plan_damage = NULL;                                                                                        \
        return check_close(state);                                                                                     \
    }                                                                                                                  \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        static const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test, open_looking, close_looking)}; \
        return CHECK_MAIN(tests);                                                                                      \
    }                                                                                                                  \
    int main(void)
#endif
