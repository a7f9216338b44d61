/* limited.h - an executor that begins under a limit, once a test has set one. */
#ifndef TESTS_CLUSTER_LIMITED_H
#define TESTS_CLUSTER_LIMITED_H

#include <stdint.h>

/* Its path. What the shell says before the number, which it keeps for the executor: "ulimit -d ",
 * "export VARIABLE=". There is one at a time. */
const char *limited_begin(const char *words);
/* Of executors that begin from now on. */
void limited_set(uint64_t number);
void limited_end(void);

#endif
