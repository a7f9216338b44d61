/* queues.h - runs the queues of a step: computation on the calling thread, communication on a
 * thread of its own.
 *
 * Each queue executes its instructions in the order of the step, and sleeps when the next one needs
 * something that the other queue has not done yet. */
#ifndef WORKER_INTERPRETER_QUEUES_H
#define WORKER_INTERPRETER_QUEUES_H

#include "common/base/error.h"
#include "common/program/program.h"

struct interpreter;
struct queues;

/* Start the thread of the second queue, if the program has one. It inherits the caller's CPU
 * affinity. The interpreter is lent and must be prepared in every other respect. Fails if there is
 * no thread. */
int queues_start(struct interpreter *interpreter, struct queues **out, struct error *err);
/* Stop that thread and free the queues; not during a run. Accepts NULL. */
void queues_stop(struct queues *queues);
/* Run one step; when this returns, both queues are idle. The error is that of the instruction that
 * failed first. */
int queues_run(struct queues *queues, enum program_kind kind, struct error *err);

#endif
