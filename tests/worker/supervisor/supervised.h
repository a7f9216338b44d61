/* supervised.h - a supervisor in virtual time, and what it wants done. */
#ifndef TESTS_WORKER_SUPERVISOR_SUPERVISED_H
#define TESTS_WORKER_SUPERVISOR_SUPERVISED_H

#include "worker/supervisor/supervisor.h"

#include <stddef.h>

#define HEARTBEAT_MS 1000
#define DEVICES 2

struct supervised {
    struct supervisor *supervisor;
    struct supervisor_actions actions; /* since they were last cleared */
    uint64_t now_ms;
    uint64_t revision;
    uint64_t orphan_ms; /* of the ranks that are assigned */
    bool saves;         /* of the jobs that are assigned: they have checkpoints */
    bool afar;          /* their ranks compute on devices with memory of their own */
};

void supervised_open(struct supervised *supervised, uint64_t seed);
/* The same, and registered in term 1; no actions are left. */
void supervised_open_up(struct supervised *supervised);
void supervised_close(struct supervised *supervised);

/* How many actions of this kind there are; forget them all. */
size_t wanted(const struct supervised *supervised, enum supervisor_action_kind kind);
/* The last of the kind; fails the test when there is none. */
const struct supervisor_action *want(const struct supervised *supervised,
                                     enum supervisor_action_kind kind);
/* Of messages to the coordinator: how many of this kind; the rank of the last. */
size_t told(const struct supervised *supervised, enum rank_message message);
uint64_t want_told(const struct supervised *supervised, enum rank_message message);
void done(struct supervised *supervised);
/* Let it do what it is time for until then, step by step. */
void advance(struct supervised *supervised, uint64_t milliseconds);
/* ... until it wants such a thing; returns the milliseconds that took. */
uint64_t advance_to(struct supervised *supervised, enum supervisor_action_kind kind);

/* Answer Hello and the report. */
void answer_hello(struct supervised *supervised, uint64_t term);
void answer_report(struct supervised *supervised, enum rpc_status status);
void lose_heartbeat(struct supervised *supervised);
/* Answer what was told of a rank. */
void answer_told(struct supervised *supervised, enum rank_message message, uint64_t rank,
                 enum rpc_status status);
/* Through Hello and report again, which are answered. */
void come_back(struct supervised *supervised, uint64_t term);

/* Records. */
void assign(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank,
            uint32_t device);
/* To an executor that can leave an epoch and stay. */
void assign_staying(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank,
                    uint32_t device);
void quiesce(struct supervised *supervised, const char *job, uint64_t epoch);
void quiesce_saving(struct supervised *supervised, const char *job, uint64_t epoch);
void drop(struct supervised *supervised, const char *job);
void go(struct supervised *supervised, const char *job, uint64_t epoch);
void pause_job(struct supervised *supervised, const char *job, uint64_t epoch, uint64_t number);
void resume_job(struct supervised *supervised, const char *job, uint64_t epoch, uint64_t number);
void cancel(struct supervised *supervised, const char *job, uint64_t epoch);
void cancel_saving(struct supervised *supervised, const char *job, uint64_t epoch);
/* The end of this rank is waited for. */
void cancel_rank(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank);

/* This rank holds up others: "holds up 3 ranks". */
void end_stalled(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank);

/* Assign a rank on device 0 and take its assignment, as who starts it does; its id. */
uint64_t start_rank(struct supervised *supervised, const char *job, uint64_t epoch);
/* Lent; fails the test when it is not known. */
const struct rank *rank_of(const struct supervised *supervised, uint64_t id);
/* Its executor has a checkpoint; is ready for step 0. */
void executor_staged(struct supervised *supervised, uint64_t rank, uint64_t step);
void executor_ready(struct supervised *supervised, uint64_t rank);
/* It is out of its epoch after step `step`, and stays or goes. */
void executor_stopped(struct supervised *supervised, uint64_t rank,
                      Gimbal__StoppedRequest__Cause cause, const char *reason, uint64_t step,
                      bool keeps);
void rank_gone(struct supervised *supervised, uint64_t rank, const char *how);

#endif
