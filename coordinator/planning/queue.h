/* queue.h - plan searches on background threads: tasks go in, plans come out.
 *
 * There are two threads. Jobs come before questions, each in the order in which they were added,
 * and only one question is searched at a time: however long it takes, no job has to wait for it.
 * All functions must be called from one thread. */
#ifndef COORDINATOR_PLANNING_QUEUE_H
#define COORDINATOR_PLANNING_QUEUE_H

#include "coordinator/planning/planning.h"

struct planning_queue;

enum planning_kind {
    PLANNING_JOB,      /* for a job, whose devices are held meanwhile */
    PLANNING_QUESTION, /* for somebody who asks */
};

struct planning_answer {
    void *asker; /* as passed to planning_queue_add() */
    int rc;      /* this and the rest as from planning_run() */
    struct error err;
    struct planning planning; /* to be finished by the caller */
};

/* The caller owns *out. Fails for lack of threads or descriptors. */
int planning_queue_create(struct planning_queue **out, struct error *err);
/* Stops running searches and waits for them. Accepts NULL. */
void planning_queue_destroy(struct planning_queue *queue);

/* Readable when there is an answer. */
int planning_queue_fd(const struct planning_queue *queue);
/* Takes ownership of the task. The asker identifies the answer. */
void planning_queue_add(struct planning_queue *queue, enum planning_kind kind,
                        struct planning_task *task, void *asker);
/* The asker no longer wants an answer and gets none; its search is stopped. */
void planning_queue_withdraw(struct planning_queue *queue, const void *asker);
/* Take the next answer; false if there is none yet. */
bool planning_queue_take(struct planning_queue *queue, struct planning_answer *answer);

#endif
