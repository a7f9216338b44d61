/* queue.h - searches beside the thread that asks for them: tasks go in, plans come out.
 *
 * Two threads search. Jobs come before questions, each in the order in which they were added, and
 * only one question is looked at at a time: however long it takes, a job is not kept waiting by it.
 * All functions are for one thread. */
#ifndef COORDINATOR_PLANNING_QUEUE_H
#define COORDINATOR_PLANNING_QUEUE_H

#include "coordinator/planning/planning.h"

struct planning_queue;

enum planning_kind {
    PLANNING_JOB,      /* whose devices are held meanwhile */
    PLANNING_QUESTION, /* somebody would like to know */
};

struct planning_answer {
    void *asker; /* as planning_queue_add was told */
    int rc;      /* and the rest as of planning_run */
    struct error err;
    struct planning planning; /* yours to finish */
};

/* *out is yours. Fails for want of threads or descriptors. */
int planning_queue_create(struct planning_queue **out, struct error *err);
/* Stops what is searched. Accepts NULL. */
void planning_queue_destroy(struct planning_queue *queue);

/* Readable when there is an answer. */
int planning_queue_fd(const struct planning_queue *queue);
/* Takes the task. */
void planning_queue_add(struct planning_queue *queue, enum planning_kind kind,
                        struct planning_task *task, void *asker);
/* The asker wants no answer any more: none comes. */
void planning_queue_withdraw(struct planning_queue *queue, const void *asker);
/* The next answer; false when there is none yet. */
bool planning_queue_take(struct planning_queue *queue, struct planning_answer *answer);

#endif
