/* internal.h - what the files of service/ share. */
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

#define TIMELINES_MAX 16 /* jobs whose steps are drawn */

/* What was last drawn of a job's steps; see timelines.c. */
struct timeline {
    char job[JOB_ID_SIZE];
    uint64_t epoch;
    uint64_t looked;         /* the number of the question that was the last one for it */
    struct picture *picture; /* NULL: it is being made, or cannot be */
    struct error why;        /* it cannot be; "" before that is known */
    uint64_t step;           /* that `measured` is of; 0: none yet */
    struct picture_side measured;
};

/* Who waits to hear what becomes of the job that it submitted. */
struct submitter {
    struct rpc_call *call;
    char job[JOB_ID_SIZE];
    uint64_t until_ms;
};

/* What is known of those who were turned away, and what of it was logged. */
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

/* A device that takes so many times as long as it should. */
struct slow_device {
    struct device_ref device;
    double factor;
};

/* What is between two hosts, for data in the memory of devices of this kind: a processor's is the
 * host's. */
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
    struct submitter *submitters; /* callers who hear what becomes of their jobs */
    size_t submitter_count, submitter_capacity;
    struct dossier **dossiers;
    size_t dossier_count, dossier_capacity;
    struct slow_device *slow;
    size_t slow_count, slow_capacity;
    struct host_link *links;
    size_t link_count, link_capacity;
    struct timeline *timelines[TIMELINES_MAX];
    size_t timeline_count;
    uint64_t timelines_looked; /* questions so far */
    /* What has happened and was not yet acted upon. */
    struct membership_events happened;
    struct job_actions actions;
    uint64_t hardware;     /* counts reports of devices that are not what they were */
    bool growth_due;       /* there may be devices for a job that runs */
    uint64_t events_woken; /* revision that those who wait have heard of */
    char **released;       /* names that the questions of ended epochs wait under */
    size_t released_count, released_capacity;
    struct service_backup backup;
    struct service_tally tally;
    uint64_t started_ms;
};

/* One row per method; a table ends with NULL. */
struct service_handler {
    enum coordinator_method method;
    rpc_handler_cb cb; /* its data is the service */
};
extern const struct service_handler worker_handlers[], rank_handlers[], telemetry_handlers[],
    submit_handlers[], user_handlers[], pause_handlers[], checkpoint_handlers[], cluster_handlers[],
    drill_handlers[], history_handlers[], identity_handlers[], trace_handlers[], backup_handlers[];

uint64_t service_now_ms(const struct service *service);

/* ranks.c: the job in this epoch, if the caller has that rank of it, or any where rank is NULL;
 * also when it has ended. -ENOENT, -ESTALE. */
int service_find_rank(const struct service *service, struct rpc_call *call, const char *id,
                      uint64_t epoch, const uint32_t *rank, const struct job **out,
                      struct error *err);

/* workers.c: a call is a sign of its caller's life; the server's rpc_heard_cb. */
void service_hear(void *service, unsigned roles, const Gimbal__Envelope *envelope);

/* stalls.c: where the ranks of a worker are, with its heartbeat. */
void service_hear_positions(struct service *service, struct rpc_call *call,
                            const Gimbal__HeartbeatRequest *request);

/* pace.c: what a rank's kernels took, and were predicted to take. */
void service_hear_pace(struct service *service, const struct job *job, size_t rank,
                       double measured_s, double predicted_s);
/* How many times as long as it should a device takes; and the same into views of devices. */
double service_slowdown(const struct service *service, const struct device_ref *ref);
void service_mark_slow(const struct service *service, struct device_view *views, size_t count);
void service_forget_slow(struct service *service, uint64_t instance);

/* links.c: from a rank; -EINVAL: of no link. */
int service_hear_link(struct service *service, struct rpc_call *call,
                      const Gimbal__LinkRecord *record, struct error *err);
/* Has anybody measured how far other hosts are from this one, for data of devices of this kind? And
 * the same into views of devices. */
bool service_network(const struct service *service, const char *host, enum hardware_kind kind,
                     struct profile_link *out);
void service_mark_network(const struct service *service, struct device_view *views, size_t count);
void service_forget_network(struct service *service, const char *worker);
void service_finish_network(struct service *service);
/* Shall the ranks of this epoch measure it? And, once it trains: is there a better plan, now that
 * it is known? */
bool service_wants_links(const struct service *service, const struct job *job);
void service_weigh_links(struct service *service, const struct job *job);

/* memory.c: is the host's memory all that the rank's device has? */
bool service_has_host_memory(const struct service *service, const struct job *job, size_t rank);
/* A rank of the job ran out of memory: how many bytes of its device are planned at most
 * from now on; 0: as many as it has. */
uint64_t service_lower_memory(struct service *service, const struct job *job, size_t rank);
/* May the rank's device have as much of the job as the plan says? And what may be planned for it,
 * into views of devices. */
bool service_memory_serves(const struct dossier *dossier, const struct plan *plan, int rank,
                           const struct device_ref *device);
void service_mark_scarce(const struct dossier *dossier, struct device_view *views, size_t count);

/* How long a caller may be kept waiting for what takes long: its answer is to be back before its
 * deadline. */
uint64_t service_patience_ms(const struct service *service, const struct rpc_call *call);

/* traces.c: of a rank; -errno as service_find_rank and traces_add. */
int service_take_trace(struct service *service, struct rpc_call *call,
                       const Gimbal__TraceRecord *record, struct error *err);

/* timelines.c: is the answer still wanted, and what to make of it; and the end of all. */
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
/* service.c: make it durable. */
int service_commit(struct service *service, struct error *err);
/* An event into jobs; what follows waits for the turn. */
int service_apply(struct service *service, const struct job_event *event, struct error *err);
/* One of our own making, refused only where the job has moved on meanwhile. */
void service_apply_own(struct service *service, const struct job_event *event);
/* actions.c: carry out what is to be done; true when there was something. */
bool service_carry_out(struct service *service);

/* access.c: whether callers of these roles are believed whatever they say; and the server's
 * rpc_admit_cb. */
bool service_trusts_all(unsigned roles);
int service_admit(void *service, unsigned roles, const Gimbal__Envelope *envelope,
                  struct error *err);
/* May the caller cancel, pause, resume the job? -EACCES in words. */
int service_may_change(const struct rpc_call *call, const struct job *job, struct error *err);
/* Whose job it is that the caller submits for `wanted`, "" for itself: *user is lent. -EACCES. */
int service_submits_as(const struct rpc_call *call, const char *wanted, const char **user,
                       struct error *err);
/* -EACCES unless the caller is that node. */
int service_speaks_for(const struct rpc_call *call, const char *node, struct error *err);
/* Log that a caller was refused: the first of many, and then how many there were. */
void service_note_refusal(struct service *service, const Gimbal__Envelope *envelope,
                          const struct error *err);
/* Log whom the door has turned away and nobody was told of: now, or if it is time to. */
void service_tell_door(struct service *service);
void service_watch_door(struct service *service);
/* When service_watch_door has something to look at; UINT64_MAX for never. */
uint64_t service_door_next_ms(const struct service *service);

/* checkpoints.c: a rank cannot load the checkpoint of this step, in these words. */
void service_damage_checkpoint(struct service *service, const struct job *job, uint64_t step,
                               const char *words);
/* Does the job save checkpoints? */
bool service_saves(const struct service *service, const struct job *job);
/* Where the job's checkpoints go, NULL for nowhere; the folder of the newest that is
 * listed and undamaged, NULL where there is none; both yours. All that are listed, for their
 * free_unpacked. */
char *service_checkpoint_root(const struct service *service, const struct job *job);
char *service_newest_checkpoint(const struct service *service, const struct job *job);
Gimbal__Checkpoint **checkpoints_to_wire(const struct service *service, const struct job *job,
                                         size_t *count);

/* restore.c: take up what the store has, at the start. */
int service_restore(struct service *service, struct error *err);

/* plan.c: the job and its graph, from its text, into the request; -EINVAL where it is understood no
 * more. */
int service_read_job(const struct job *job, struct planning_request *request, struct error *err);
/* Have the job's epoch planned: answered by an event of this turn, or of a later one, when
 * a search has found what service_planned takes. */
void service_plan_job(struct service *service, const struct job *job);
void service_planned(struct service *service, const struct job *job,
                     struct planning_answer *answer);
/* Search beside the training for a plan of a running job on these devices; service_take_trial
 * follows, or service_keep_spare. */
void service_plan_beside(struct service *service, enum asks kind, const struct job *job,
                         const struct device_view *devices, size_t count);
struct device_ref *service_refs(const struct device_view *views, size_t count); /* yours */

/* spares.c: the job's epoch has finished a step; and there may be other devices. */
void service_begin_spares(struct service *service, const struct job *job);
void service_consider_spares(struct service *service);
/* Devices are not what they were: nor are plans for them. */
void service_forget_spares(struct service *service);
void spares_clear(struct spares *spares);
/* Takes what the asker was told, of its devices. */
void service_keep_spare(struct service *service, struct asker *asker,
                        struct planning_answer *answer);
/* A plan that is ready for just the devices that the job was granted, yours; false: none is. */
bool service_take_spare(struct service *service, const struct job *job, struct planning *out);
/* devices.c: those that the job trains on, and all that are free, of a kind; of `all`, in its
 * order. How many; out has room for count. */
size_t service_own_devices(const struct job *job, const struct device_view *all, size_t count,
                           struct device_view *out);
size_t service_free_devices(const struct device_view *all, size_t count, enum hardware_kind kind,
                            struct device_view *out);

/* growth.c: at the end of a turn, where growth_due says so; for a job whose devices are slower or
 * faster than when it was planned; and what to make of the answer. */
void service_consider_growth(struct service *service);
void service_plan_again(struct service *service, const struct job *job);
void service_take_trial(struct service *service, const struct job *job,
                        const struct planning_answer *answer);

/* questions.c: search on all devices that are alive, to answer a call: answer_cb is called with the
 * plan, and a failure is told the caller. Takes config and graph. */
struct question {
    struct job_config *config;
    struct graph *graph;
    const char *given;   /* (optional) */
    const char *cluster; /* (optional) a cluster file, in place of the workers that are alive */
    enum planning_cost cost;
    void (*answer_cb)(struct rpc_call *call, const struct planning *planning);
};
void service_plan_dry(struct service *service, struct rpc_call *call, const struct question *ask);

/* submit.c: answer those whose job has been planned, or whose patience is over. */
void service_answer_submitters(struct service *service);
uint64_t service_submitters_next_ms(const struct service *service);

/* events.c: append to the stream of events. json is taken, and may be NULL; job and node may be
 * "". */
void service_tell(struct service *service, const char *kind, const char *job, const char *node,
                  json_t *json, const char *format, ...) __attribute__((format(printf, 6, 7)));
void service_tell_membership(struct service *service, const struct membership_event *event);
/* If its state or reason is another than was last told. */
void service_tell_job(struct service *service, const struct job *job);
/* That a job which broke goes on, when it has finished a step. */
void service_tell_replan(struct service *service, const struct job *job);
void service_tell_plan(struct service *service, const struct job *job);
/* At most one a second for each job, but always the last. */
void service_tell_step(struct service *service, const struct job *job);
void service_tell_evaluation(struct service *service, const Gimbal__EvaluationRecord *record);

/* wire.c: messages that are yours, for their free_unpacked. */
Gimbal__JobStatus *job_to_wire(const struct service *service, const struct job *job);
Gimbal__NodeStatus *worker_to_wire(const struct service *service, const struct worker *worker);

/* details.c: all that users are told of one job; lent by what the service knows until it goes on.
 */
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
/* Under which the polls for a worker's assignments, and the questions of an epoch, wait. */
#define PARKED_SIZE 96
const char *assignments_parked(char *out, uint64_t instance);
const char *rendezvous_parked(char *out, const char *job, uint64_t epoch);

#endif
