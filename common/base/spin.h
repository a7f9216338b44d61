/* spin.h - how long the threads of a process that is started now spin before they sleep.
 *
 * GNU's OpenMP spins long at the end of every loop where it takes all cores for its own. Beside
 * anybody else the one that is waited for does not run meanwhile: two small trainings on the same
 * cores took 460 ms a step, where one alone took 7. */
#ifndef COMMON_BASE_SPIN_H
#define COMMON_BASE_SPIN_H

#include <stdlib.h>

/* In a process that is about to become the program: the library reads it while it is loaded. What a
 * user has said stays. */
static inline void spin_briefly(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        setenv("GOMP_SPINCOUNT", "3000", 0);
}

#endif
