/* queues.h - the queues of a step: computing on the thread that runs the step, communication on a
 * thread of its own.
 *
 * Each runs its instructions in the order of the step; where one needs what the other has not
 * done yet, it sleeps until then. */
#ifndef WORKER_INTERPRETER_QUEUES_H
#define WORKER_INTERPRETER_QUEUES_H

#include "common/base/error.h"
#include "common/program/program.h"

struct interpreter;
struct queues;

/* The interpreter is lent; it is all prepared but for this. The thread of a second queue, if the
 * program has one, inherits the processors of the caller's. */
int queues_start(struct interpreter *interpreter, struct queues **out, struct error *err);
/* Not during a run. Accepts NULL. */
void queues_stop(struct queues *queues);
/* A step; when it returns, both queues stand still. The error is that of the instruction that
 * failed first. */
int queues_run(struct queues *queues, enum program_kind kind, struct error *err);

#endif
