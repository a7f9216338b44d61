/* spin.h - limits how long OpenMP threads of a process about to start spin before they sleep.
 *
 * GNU's OpenMP spins for long at the end of every parallel loop, assuming that all cores are its
 * own. With other processes on the same cores, the thread being waited for does not get to run
 * meanwhile: two small trainings on the same cores took 460 ms a step, where one alone took 7. */
#ifndef COMMON_BASE_SPIN_H
#define COMMON_BASE_SPIN_H

#include <stdlib.h>

/* To be called before exec: the library reads its environment when it is loaded. A user's own
 * setting is respected. */
static inline void spin_briefly(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        setenv("GOMP_SPINCOUNT", "3000", 0);
}

#endif
