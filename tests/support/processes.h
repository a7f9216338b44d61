/* processes.h - a job of processes: one for each rank, and what becomes of it. */
#ifndef TESTS_SUPPORT_PROCESSES_H
#define TESTS_SUPPORT_PROCESSES_H

#include "common/base/error.h"

/* A negative result ends the job. */
typedef int test_process_cb(int rank, void *context);

/* Fork a process for each rank, in which body is called, and wait until all have ended. Once one
 * has failed (-ECHILD), or after the limit (-ETIMEDOUT), the others are killed. A process that has
 * threads, or has spoken to a device, must not call this. */
int test_processes_run(int count, double limit_s, test_process_cb *body, void *context,
                       struct error *err);

#endif
