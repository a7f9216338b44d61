/* galvatron_recorded.h - plans with recorded figures: those of ../../data/galvatron, which are
 * small and made up, and whatever the folder that GIMBAL_TEST_GALVATRON names has, in the same
 * layout: models/NAME, hardware, and recorded/ *.json with "spec", "plan" and "recorded"
 * (iteration_s by the formula, neutral_s by simulation, memory_MB of each stage). The figures of
 * the small ones are by an implementation of that project's accounting that shares no code with
 * ours. */
#ifndef TESTS_COORDINATOR_PLANNER_GALVATRON_RECORDED_H
#define TESTS_COORDINATOR_PLANNER_GALVATRON_RECORDED_H

#include "coordinator/planner/galvatron/plan.h"

struct recorded {
    char *path;
    struct galvatron_problem problem;
    struct galvatron_plan plan;
    json_t *root, *figures; /* the file, and its "recorded" */
};

/* How many there are. */
int recorded_count(void);
/* Read one; to be finished. */
struct recorded recorded_read(int index);
void recorded_finish(struct recorded *recorded);
/* Whether it is of the folder that GIMBAL_TEST_GALVATRON names, and found by that project. */
bool recorded_is_theirs(const struct recorded *recorded);

#endif
