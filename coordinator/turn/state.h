/* state.h - what the coordinator knows: the one record that a turn reads and changes.
 *
 * Whatever is heard becomes an event of membership or jobs, and turn.h draws the consequences.
 * Files of turn/ take this record and nothing else, so that what decides cannot touch a door. The
 * last parts belong to the modules that they are named after, and are changed there only. All of it
 * is on one thread. */
#ifndef COORDINATOR_TURN_STATE_H
#define COORDINATOR_TURN_STATE_H

#include "common/base/error.h"
#include "common/rpc/records.h"
#include "common/rpc/server.h"
#include "coordinator/assignments/assignments.h"
#include "coordinator/jobs/jobs.h"
#include "coordinator/membership/membership.h"
#include "coordinator/planning/queue.h"
#include "coordinator/rendezvous/rendezvous.h"
#include "coordinator/store/store.h"
#include "coordinator/telemetry/telemetry.h"

/* Which jobs that have ended are known; zero: all. */
struct retention_limits {
    size_t jobs;     /* the newest so many */
    uint64_t age_ms; /* since they ended */
};

struct state_options {
    const char *release; /* lent for the state's life */
    struct membership_config membership;
    bool drills;             /* faults may be ordered from it, for tests */
    const char *checkpoints; /* below it jobs are saved that name no folder; NULL: they are not */
    struct retention_limits retention;
    struct store *store; /* lent for the state's life */
    uint64_t term;       /* of this start: higher than any before */
    uint64_t instance;   /* random number drawn at this start */
    /* Milliseconds of the calendar that never run backwards while the state lives; called on any
     * thread. */
    uint64_t (*clock_cb)(void);
};

struct state {
    struct state_options options;
    uint64_t started_ms;
    struct rpc_server *server; /* lent; its parked calls are woken by a turn */
    struct membership *membership;
    struct jobs *jobs;
    struct assignments *assignments;
    struct rendezvous *rendezvous;
    struct telemetry *telemetry;
    struct stream *events;
    struct planning_queue *plans;
    /* What has happened and has not been acted upon yet. */
    struct membership_events happened;
    struct job_actions actions;
    uint64_t hardware; /* incremented when devices turn out different from before */
    bool growth_due;   /* there may be devices for a running job */
    bool disk_scarce;  /* the store's disk has little room, or none */
    struct history *history;
    struct dossiers *dossiers;
    struct conditions *conditions;
    struct curves *curves;
    struct retention *retention;
    struct asking *asking;
    struct turn *turn;
};

uint64_t state_now_ms(const struct state *state);
/* How long a caller may be kept waiting so that the answer arrives before its deadline. */
uint64_t state_patience_ms(const struct state *state, const struct rpc_call *call);

/* Apply an event to jobs; its consequences wait for the turn. */
int state_apply(struct state *state, const struct job_event *event, struct error *err);
/* Apply an event made by the coordinator itself, which is refused only if the job has moved on. */
void state_apply_own(struct state *state, const struct job_event *event);

#endif
