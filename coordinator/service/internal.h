/* internal.h - shared by the files of service/; not for others. All of it runs on the service's
 * thread. */
#ifndef COORDINATOR_SERVICE_INTERNAL_H
#define COORDINATOR_SERVICE_INTERNAL_H

#include "common/config/job.h"
#include "common/rpc/inboxes.h"
#include "common/rpc/server.h"
#include "common/rpc/services/coordinator.h"
#include "common/rpc/stream.h"
#include "coordinator/assignments/assignments.h"
#include "coordinator/identity/identity.h"
#include "coordinator/jobs/jobs.h"
#include "coordinator/pace/pace.h"
#include "coordinator/planning/queue.h"
#include "coordinator/rendezvous/rendezvous.h"
#include "coordinator/service/plans/askers.h"
#include "coordinator/service/plans/dossiers.h"
#include "coordinator/service/service.h"
#include "coordinator/service/tally.h"
#include "coordinator/stalls/stalls.h"
#include "coordinator/store/store.h"
#include "coordinator/telemetry/telemetry.h"

#include <jansson.h>

#define TIMELINES_MAX 16 /* jobs whose timelines are kept */

/* The timeline last drawn of a job; see pages/timelines.c. */
struct timeline {
    char job[JOB_ID_SIZE];
    uint64_t epoch;
    uint64_t looked;         /* value of timelines_looked when it was last asked for */
    struct picture *picture; /* NULL: not ready, or impossible */
    struct error why;        /* why it is impossible; "" otherwise */
    uint64_t step;           /* step that `measured` shows; 0: none yet */
    struct picture_side measured;
};

/* A caller waiting to hear what becomes of the job it submitted. */
struct submitter {
    struct rpc_call *call;
    char job[JOB_ID_SIZE];
    uint64_t until_ms;
};

/* What is known of rejected callers, and how much of that was logged. */
struct service_door {
    bool tls;
    uint64_t looked_ms, handshakes_told, unfinished_untold;
    uint64_t refusal_told_ms, refusals_untold;
};

/* The newest copy of the store that somebody fetches, or has ceased to. */
struct service_backup {
    uint64_t number; /* of those that were made; 0: none yet */
    uint64_t copied_ms, asked_ms;
    struct store_copy copy;
};

/* A device that is slower than it should be, by this factor. */
struct slow_device {
    struct device_ref device;
    double factor;
};

/* The link between two hosts, for data in the memory of devices of this kind; a processor's memory
 * is the host's. */
struct host_link {
    char *hosts[2];
    enum hardware_kind kind;
    struct profile_link link;
};

/* What the store's disk had room for when it was last looked at. */
struct service_room {
    enum store_room left;
    struct error words; /* unless there is enough */
    uint64_t none_since_ms;
};

/* The handler of a method, behind service_guard(). */
struct service_guarded {
    struct service *service;
    enum coordinator_method method;
    rpc_handler_cb cb;
};

struct service {
    struct service_options options;
    struct service_room room;
    struct service_guarded guarded[COORDINATOR_METHOD_COUNT];
    struct rpc_server *server;
    struct identity *identity;
    struct service_door door;
    struct membership *membership;
    struct jobs *jobs;
    struct assignments *assignments;
    struct rendezvous *rendezvous;
    struct telemetry *telemetry;
    struct inboxes *inboxes;
    struct stream *events;
    struct planning_queue *plans;
    struct asker **askers;
    size_t asker_count, asker_capacity;
    struct submitter *submitters; /* callers waiting for the fate of their jobs */
    size_t submitter_count, submitter_capacity;
    struct dossier **dossiers;
    size_t dossier_count, dossier_capacity;
    struct slow_device *slow;
    size_t slow_count, slow_capacity;
    struct host_link *links;
    size_t link_count, link_capacity;
    struct timeline *timelines[TIMELINES_MAX];
    size_t timeline_count;
    uint64_t timelines_looked; /* number of timeline questions so far */
    /* What has happened and has not been acted upon yet. */
    struct membership_events happened;
    struct job_actions actions;
    uint64_t hardware;     /* incremented when devices turn out different from before */
    bool growth_due;       /* there may be devices for a running job */
    uint64_t events_woken; /* revision up to which waiting callers were notified */
    char **released;       /* names under which questions of ended epochs are parked */
    size_t released_count, released_capacity;
    struct service_backup backup;
    struct service_tally tally;
    uint64_t started_ms;
};

uint64_t service_now_ms(const struct service *service);

/* stalls.c: where the ranks of a worker are, as told with its heartbeat. */
void service_hear_positions(struct service *service, struct rpc_call *call,
                            const Gimbal__HeartbeatRequest *request);

/* How long a caller may be kept waiting so that the answer arrives before its deadline. */
uint64_t service_patience_ms(const struct service *service, const struct rpc_call *call);

/* turn.c: act upon what has happened until nothing follows from it, and wake who waits. Answers
 * are sent when all of it is durable, whenever they are given. */
void service_turn(struct service *service);
/* service.c: make everything durable. */
int service_commit(struct service *service, struct error *err);
/* Apply an event to jobs; its consequences wait for the turn. */
int service_apply(struct service *service, const struct job_event *event, struct error *err);
/* Apply an event made by the service itself, which is refused only if the job has moved on. */
void service_apply_own(struct service *service, const struct job_event *event);
/* actions.c: carry out pending actions; returns true if there were any. */
bool service_carry_out(struct service *service);

/* room.c: look for room before a turn. */
void service_look_for_room(struct service *service);
/* -ENOSPC, with words, if nothing new may be accepted. */
int service_check_room(const struct service *service, struct error *err);
/* Handle a call if there is room for what it may change; data is its struct service_guarded. */
void service_guard(struct rpc_call *call, void *data);

/* access.c: whether callers in these roles are trusted in everything they say; and the server's
 * rpc_admit_cb. */
bool service_trusts_all(unsigned roles);
int service_admit(void *service, unsigned roles, const Gimbal__Envelope *envelope,
                  struct error *err);
/* Whether the caller may cancel, pause or resume the job; -EACCES with a message. */
int service_may_change(const struct rpc_call *call, const struct job *job, struct error *err);
/* Whose job it is if the caller submits on behalf of `wanted` ("": of itself); *user is lent.
 * -EACCES: it may not. */
int service_submits_as(const struct rpc_call *call, const char *wanted, const char **user,
                       struct error *err);
/* -EACCES unless the caller is that node. */
int service_speaks_for(const struct rpc_call *call, const char *node, struct error *err);
/* Log that a caller was refused: the first refusal at once, later ones as a count. */
void service_note_refusal(struct service *service, const Gimbal__Envelope *envelope,
                          const struct error *err);
/* Log rejected connections that were not reported yet: at once, or when it is time. */
void service_tell_door(struct service *service);
void service_watch_door(struct service *service);
/* When service_watch_door() next has something to do; UINT64_MAX: never. */
uint64_t service_door_next_ms(const struct service *service);

/* restore.c: restore everything from the store, at the start. */
int service_restore(struct service *service, struct error *err);

/* events.c: append to the stream of events. Takes ownership of json, which may be NULL; job and
 * node may be "". */
void service_tell(struct service *service, const char *kind, const char *job, const char *node,
                  json_t *json, const char *format, ...) __attribute__((format(printf, 6, 7)));
void service_tell_membership(struct service *service, const struct membership_event *event);
/* Only if its state or reason differs from what was last told. */
void service_tell_job(struct service *service, const struct job *job);
/* Tell that a job which broke goes on, once it has finished a step. */
void service_tell_replan(struct service *service, const struct job *job);
void service_tell_plan(struct service *service, const struct job *job);
/* At most one per second for each job, one per minute while the disk is full, but always the last.
 */
void service_tell_step(struct service *service, const struct job *job);
void service_tell_evaluation(struct service *service, const Gimbal__EvaluationRecord *record);

/* wire.c: messages owned by the caller and released by their free_unpacked(). */
Gimbal__JobStatus *job_to_wire(const struct service *service, const struct job *job);
Gimbal__NodeStatus *worker_to_wire(const struct service *service, const struct worker *worker);

/* details.c: everything that users are told of one job; it borrows from the service and is valid
 * until the service goes on. */
struct job_details {
    Gimbal__GetJobReply reply;
    Gimbal__JobSpec spec;
    Gimbal__Plan plan;
    Gimbal__EvaluationRecord *evaluations;
    Gimbal__InstructionTimes *times;
};
void job_details_begin(struct job_details *details, const struct service *service,
                       const struct job *job);
void job_details_finish(struct job_details *details);

#define EVENTS_STREAM "events"
#define EVENTS_KEPT 10000 /* in memory; the store has more */
/* Names under which polls for a worker's assignments, and questions of an epoch, are parked. */
#define PARKED_SIZE 96
const char *assignments_parked(char *out, uint64_t instance);
const char *rendezvous_parked(char *out, const char *job, uint64_t epoch);

#endif
