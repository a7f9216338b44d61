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
#include "coordinator/service/askers.h"
#include "coordinator/service/dossiers.h"
#include "coordinator/service/service.h"
#include "coordinator/service/tally.h"
#include "coordinator/stalls/stalls.h"
#include "coordinator/store/store.h"
#include "coordinator/telemetry/telemetry.h"

#include <jansson.h>

#define TIMELINES_MAX 16 /* jobs whose timelines are kept */

/* The timeline last drawn of a job; see timelines.c. */
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

struct service {
    struct service_options options;
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

/* One row per method; tables end with an empty row. */
struct service_handler {
    enum coordinator_method method;
    rpc_handler_cb cb; /* its data argument is the service */
};
extern const struct service_handler worker_handlers[], rank_handlers[], telemetry_handlers[],
    submit_handlers[], user_handlers[], pause_handlers[], checkpoint_handlers[], cluster_handlers[],
    drill_handlers[], history_handlers[], identity_handlers[], trace_handlers[], backup_handlers[];

uint64_t service_now_ms(const struct service *service);

/* ranks.c: find the job in this epoch, also if it has ended, provided that the caller has that rank
 * of it, or any rank if `rank` is NULL. -ENOENT, -ESTALE. */
int service_find_rank(const struct service *service, struct rpc_call *call, const char *id,
                      uint64_t epoch, const uint32_t *rank, const struct job **out,
                      struct error *err);

/* workers.c: the server's rpc_heard_cb; every call shows that its caller is alive. */
void service_hear(void *service, unsigned roles, const Gimbal__Envelope *envelope);

/* stalls.c: where the ranks of a worker are, as told with its heartbeat. */
void service_hear_positions(struct service *service, struct rpc_call *call,
                            const Gimbal__HeartbeatRequest *request);

/* pace.c: how long a rank's kernels took, and how long they were predicted to take. */
void service_hear_pace(struct service *service, const struct job *job, size_t rank,
                       double measured_s, double predicted_s);
/* A device's slowdown factor; write the factors to views of devices; drop those of a worker's
 * instance. */
double service_slowdown(const struct service *service, const struct device_ref *ref);
void service_mark_slow(const struct service *service, struct device_view *views, size_t count);
void service_forget_slow(struct service *service, uint64_t instance);

/* links.c: a measurement by a rank; -EINVAL: it is of no link of its plan. */
int service_hear_link(struct service *service, struct rpc_call *call,
                      const Gimbal__LinkRecord *record, struct error *err);
/* Whether the link of this host to others has been measured, for data of devices of this kind; and
 * write such links to views of devices. */
bool service_network(const struct service *service, const char *host, enum hardware_kind kind,
                     struct profile_link *out);
void service_mark_network(const struct service *service, struct device_view *views, size_t count);
void service_forget_network(struct service *service, const char *worker);
void service_finish_network(struct service *service);
/* Whether the ranks of this epoch shall measure their links; and, once it trains, ask whether there
 * is a better plan now that they are known. */
bool service_wants_links(const struct service *service, const struct job *job);
void service_weigh_links(struct service *service, const struct job *job);

/* memory.c: whether the memory of the rank's device is the host's memory. */
bool service_has_host_memory(const struct service *service, const struct job *job, size_t rank);
/* A rank of the job ran out of memory. Returns how many bytes of its device plans may use from now
 * on; 0: all. */
uint64_t service_lower_memory(struct service *service, const struct job *job, size_t rank);
/* Whether the rank's device has as much memory for the job as the plan needs; and write the limits
 * to views of devices. */
bool service_memory_serves(const struct dossier *dossier, const struct plan *plan, int rank,
                           const struct device_ref *device);
void service_mark_scarce(const struct dossier *dossier, struct device_view *views, size_t count);

/* How long a caller may be kept waiting so that the answer arrives before its deadline. */
uint64_t service_patience_ms(const struct service *service, const struct rpc_call *call);

/* traces.c: take a rank's trace; errors of service_find_rank() and traces_add(). */
int service_take_trace(struct service *service, struct rpc_call *call,
                       const Gimbal__TraceRecord *record, struct error *err);

/* timelines.c: whether the answer is still wanted; take it; and free all timelines. */
bool service_awaits_picture(const struct service *service, const struct asker *asker);
void service_take_picture(struct service *service, const struct asker *asker,
                          struct planning_answer *answer);
void service_forget_timelines(struct service *service);

/* backups.c: a copy of the store that nobody has asked for in a while is let go; when it is to be
 * looked at, UINT64_MAX for never. */
void service_expire_backup(struct service *service);
uint64_t service_backup_next_ms(const struct service *service);

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

/* checkpoints.c: a rank cannot load the checkpoint of this step, for the reason in `words`. */
void service_damage_checkpoint(struct service *service, const struct job *job, uint64_t step,
                               const char *words);
/* Whether the job saves checkpoints. */
bool service_saves(const struct service *service, const struct job *job);
/* The directory of the job's checkpoints, NULL if it has none; that of its newest listed and
 * undamaged checkpoint, NULL if there is none (the caller frees both); and all listed checkpoints,
 * each released by its free_unpacked(). */
char *service_checkpoint_root(const struct service *service, const struct job *job);
char *service_newest_checkpoint(const struct service *service, const struct job *job);
Gimbal__Checkpoint **checkpoints_to_wire(const struct service *service, const struct job *job,
                                         size_t *count);

/* restore.c: restore everything from the store, at the start. */
int service_restore(struct service *service, struct error *err);

/* plan.c: parse the job's text and build its graph into the request; -EINVAL: it is no longer
 * understood. */
int service_read_job(const struct job *job, struct planning_request *request, struct error *err);
/* Have the job's epoch planned. The answer is an event of this turn or, when a search has found
 * what service_planned() takes, of a later one. */
void service_plan_job(struct service *service, const struct job *job);
void service_planned(struct service *service, const struct job *job,
                     struct planning_answer *answer);
/* While a job trains, search for a plan of it on these devices; service_take_trial() or
 * service_keep_spare() gets the result. */
void service_plan_beside(struct service *service, enum asks kind, const struct job *job,
                         const struct device_view *devices, size_t count);
/* owned by the caller */
struct device_ref *service_refs(const struct device_view *views, size_t count);

/* spares.c: the job's epoch has finished a step; and devices may have changed. */
void service_begin_spares(struct service *service, const struct job *job);
void service_consider_spares(struct service *service);
/* Devices are not what they were, so plans for them are void. */
void service_forget_spares(struct service *service);
void spares_clear(struct spares *spares);
/* Keep the answer, and take over the asker's devices. */
void service_keep_spare(struct service *service, struct asker *asker,
                        struct planning_answer *answer);
/* Take a prepared plan for exactly the devices granted to the job, owned by the caller; false:
 * there is none. */
bool service_take_spare(struct service *service, const struct job *job, struct planning *out);
/* devices.c: the devices of `all` that the job trains on, and those of a kind that are free, in the
 * order of `all`. Return their number; `out` has room for count. */
size_t service_own_devices(const struct job *job, const struct device_view *all, size_t count,
                           struct device_view *out);
size_t service_free_devices(const struct device_view *all, size_t count, enum hardware_kind kind,
                            struct device_view *out);

/* growth.c: at the end of a turn, if growth_due is set; for a job whose devices have become slower
 * or faster since it was planned; and take the result. */
void service_consider_growth(struct service *service);
void service_plan_again(struct service *service, const struct job *job);
void service_take_trial(struct service *service, const struct job *job,
                        const struct planning_answer *answer);

/* questions.c: answer a call by a search on all devices that are alive. On success answer_cb is
 * called with the plan; on failure the caller gets the error. Takes ownership of config and
 * graph. */
struct question {
    struct job_config *config;
    struct graph *graph;
    const char *given;   /* (optional) */
    const char *cluster; /* (optional) a cluster file, used instead of the workers that are alive */
    enum planning_cost cost;
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
};
void service_plan_dry(struct service *service, struct rpc_call *call, const struct question *ask);

/* submit.c: answer those whose job was planned or whose patience is over. */
void service_answer_submitters(struct service *service);
uint64_t service_submitters_next_ms(const struct service *service);

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
/* At most one per second for each job, but always the last. */
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
