/* job_fixture.h - a queue of jobs and the devices that it sees, for tests to play with. */
#ifndef TESTS_COORDINATOR_JOB_FIXTURE_H
#define TESTS_COORDINATOR_JOB_FIXTURE_H

#include "coordinator/jobs/jobs.h"
#include "tests/support/suite.h"

#define DEVICES_MAX 16

extern struct jobs *jobs;
extern struct job_actions actions;
extern struct error err;

/* The devices of the workers so far, instance 1, held as the actions said. */
extern struct device_view views[DEVICES_MAX];
extern size_t view_count;

void jobs_setup(void);
void jobs_teardown(void);

/* Of the jobs that are submitted from here on; 0 to begin with. */
extern unsigned restarts_max;
extern bool replans;         /* false to begin with */
extern uint64_t origin_step; /* of the checkpoint that they go on from; 0 to begin with: none */

void add_worker(const char *name, enum hardware_kind kind, unsigned devices);
/* Of each of its devices. */
void set_speed(const char *worker, double flops);
const struct job *submit(unsigned min, unsigned max, enum job_kind kind);
/* With a plan for these devices, a line each. */
const struct job *submit_for(const char *named, unsigned count);

/* Hold and release on the views, as main would with membership. */
void carry_out(void);

/* The actions since the last call, as "store j-1, hold j-1"; carries them out. */
void actions_are(const char *expected);

/* Carry out what there is, then schedule. */
void schedule(void);

/* Apply an event; it must be taken. */
int apply(struct job_event event);
void must(struct job_event event);

/* The state, the reason and its words; the devices by rank, as "a/0 b/1". */
void stands(const struct job *job, const char *state, const char *reason, const char *words);
void ranks_are(const struct job *job, const char *expected);

/* Events of the job's own epoch. */
struct job_event of(enum job_event_kind kind, const struct job *job);
struct job_event planned(const struct job *job, const struct device_ref *refs, size_t count);
struct job_event ready(const struct job *job, unsigned rank);
struct job_event exited(const struct job *job, unsigned rank, int status, const char *words);
struct job_event cancelled(const struct job *job);
struct job_event lost(const char *worker);

/* The job has finished so many steps. */
void reach(const struct job *job, uint64_t step);

/* A job on workers a and b, a device each, brought to the state; actions so far are done. */
const struct job *job_in(enum job_state state);

#endif
