/* wire.h - jobs and nodes as users see them. */
#ifndef COORDINATOR_SERVICE_WIRE_H
#define COORDINATOR_SERVICE_WIRE_H

#include "coordinator/turn/state.h"

/* Messages owned by the caller and released by their free_unpacked(). */
Gimbal__JobStatus *job_to_wire(const struct state *state, const struct job *job);
Gimbal__NodeStatus *worker_to_wire(const struct state *state, const struct worker *worker);

/* What an instance of a worker is told to leave in the folder that all nodes share; returns `out`.
 */
#define WORKER_MARK_SIZE 24
char *worker_print_mark(uint64_t instance, char out[WORKER_MARK_SIZE]);

/* Everything that users are told of one job; it borrows from the state and is valid until that
 * changes. */
struct job_details {
    Gimbal__GetJobReply reply;
    Gimbal__JobSpec spec;
    Gimbal__Plan plan;
    Gimbal__EvaluationRecord *evaluations;
    Gimbal__InstructionTimes *times;
};
void job_details_begin(struct job_details *details, const struct state *state,
                       const struct job *job);
void job_details_finish(struct job_details *details);

#endif
