/* examples.h - every search on every job of examples/, on a cluster of examples/ that it is of a
 * size with: plan, step by both referees, memory, balance, and what the search took. */
#ifndef BENCH_PLANNER_EXAMPLES_H
#define BENCH_PLANNER_EXAMPLES_H

/* job and search (optional): only these, by name. 0, or 1 where something could not be read. */
int examples_run(const char *job, const char *search);

#endif
