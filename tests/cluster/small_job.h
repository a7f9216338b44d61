/* small_job.h - a small job for the real cluster: submitting it, asking after it, and what its
 * ranks say. */
#ifndef TESTS_CLUSTER_SMALL_JOB_H
#define TESTS_CLUSTER_SMALL_JOB_H

#include "tests/cluster/real_cluster.h"

#define GIB ((uint64_t)1 << 30)

/* Arguments of a coordinator whose workers, clients of the test, call only when the test does: what
 * is silent meanwhile is not suspected. */
extern const char *const patient[];

/* "family: gpt, ...": the model of most cases. */
extern const char small[];

/* A job file with this model, and these lines after the rest; yours. */
char *job_yaml(const char *model, const char *more);

/* Submit; the reply is yours, NULL where status and words say why not. */
Gimbal__SubmitReply *ask_submit(struct party *user, const char *model, const char *more,
                                enum rpc_status *status, struct error *words);
/* The same where it has to go well. */
Gimbal__SubmitReply *submit(struct party *user, const char *model, const char *more);
Gimbal__GetJobReply *get_job(struct party *user, const char *job);
/* Its state, and words that its reason has. */
void assert_job(struct party *user, const char *job, Gimbal__JobStatus__State state,
                const char *reason);

/* The next record of the worker, which is an assignment; lent. */
const Gimbal__Assignment *await_assignment(struct cluster *cluster, struct party *worker);
/* Hash of the program that an executor would lower from what the assignment says. */
uint64_t lowered_hash(const Gimbal__Assignment *assignment);
Gimbal__ReadyRequest ready_request(const Gimbal__Assignment *assignment);
void tell_ready(struct party *worker, const Gimbal__Assignment *assignment);
void tell_stopped(struct party *worker, const Gimbal__Assignment *assignment,
                  Gimbal__StoppedRequest__Cause cause, const char *reason);

#endif
