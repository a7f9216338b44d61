/* examples.h - runs every search on the jobs of examples/, each with a cluster of examples/ of
 * fitting size, and prints the plan, its step time by simulation and by formula, memory, balance,
 * and what the search took. */
#ifndef BENCH_PLANNER_EXAMPLES_H
#define BENCH_PLANNER_EXAMPLES_H

/* `job` and `search` limit the run to one of each, by name; NULL: all. Returns 0, or 1 when
 * something failed. */
int examples_run(const char *job, const char *search);

#endif
