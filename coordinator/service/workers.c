/* workers.c - what workers ask, on their own behalf and for the ranks that they run: what they
 * have, that they are alive, what they are to do; where the other ranks are; and that a rank is
 * ready, has paused, has saved a checkpoint, or has ended.
 *
 * A worker's instance is the random number of its RPC client, so that a closed connection, a
 * heartbeat and a report of a rank all name the same life of the worker. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/config/folders.h"
#include "common/hardware/hardware.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/wire.h"
#include "coordinator/turn/checkpoints.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/turn.h"

static uint64_t call_instance(struct rpc_call *call)
{
    return rpc_call_envelope(call)->client;
}

/* Every call shows that its worker is alive: a busy node sends its heartbeats late while its ranks
 * still call, and after a restart of the coordinator Hello comes first, over a slow network long
 * before a heartbeat. */
void workers_hear(struct state *state, unsigned from, const Gimbal__Envelope *envelope)
{
    const struct state_options *options = &state->options;
    bool follows = envelope->term == options->term && envelope->instance == options->instance;
    if (from & RPC_WORKER)
        membership_hear(state->membership, envelope->caller, envelope->client, follows,
                        state_now_ms(state), &state->happened);
}

static void worker_report_hardware(struct rpc_call *call, void *data)
{
    struct state *state = data;
    struct error err;
    struct hardware_report *report;
    const Gimbal__HardwareReport *request = rpc_call_request(call);
    int rc = door_speaks_for(call, request->node, &err);
    if (rc == 0)
        rc = hardware_report_from_wire(request, &report, &err);
    if (rc == 0) {
        rc = membership_report(state->membership, call_instance(call), report, state_now_ms(state),
                               &state->happened, &err);
        hardware_report_destroy(report);
    }
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__ReportHardwareReply reply = GIMBAL__REPORT_HARDWARE_REPLY__INIT;
    reply.heartbeat_ms = (uint32_t)state->options.membership.heartbeat_ms;
    reply.lease_ms = (uint32_t)state->options.membership.dead_ms;
    char mark[WORKER_MARK_SIZE];
    if (state->options.checkpoints) {
        reply.checkpoints = (char *)state->options.checkpoints;
        reply.mark = worker_print_mark(call_instance(call), mark);
    }
    turn_run(state);
    rpc_call_reply(call, &reply.base);
}

/* Disown ranks that a worker still has of epochs that are over, of jobs that have ended while it
 * was away, or of jobs that do not exist: a store restored from a backup does not know what was
 * begun since. */
static void worker_disown(struct state *state, uint64_t instance,
                          const Gimbal__HeartbeatRequest *request)
{
    for (size_t i = 0; i < request->n_ranks; i++) {
        const Gimbal__RankState *told = request->ranks[i];
        const struct job *job = jobs_find(state->jobs, told->job);
        if (!job)
            assignments_disown(state->assignments, instance, told->job, told->epoch, false,
                               "the coordinator does not know this job");
        else if (job_ended(job))
            assignments_disown(state->assignments, instance, told->job, told->epoch, false,
                               "the job has ended");
        else if (told->epoch < job->epoch)
            assignments_disown(state->assignments, instance, told->job, told->epoch, true,
                               "the job is in a later epoch");
    }
}

static void worker_heartbeat(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__HeartbeatRequest *request = rpc_call_request(call);
    struct error err;
    uint64_t instance = call_instance(call);
    int rc = door_speaks_for(call, request->node, &err);
    if (rc == 0)
        rc = membership_heartbeat(state->membership, request->node, instance, state_now_ms(state),
                                  &state->happened, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    reports_hear_positions(state, call, request);
    worker_disown(state, instance, request);
    turn_run(state);
    const struct stream *stream = assignments_stream(state->assignments, instance);
    Gimbal__HeartbeatReply reply = GIMBAL__HEARTBEAT_REPLY__INIT;
    reply.revision = stream ? stream_revision(stream) : 0;
    rpc_call_reply(call, &reply.base);
}

static void worker_watch_assignments(struct rpc_call *call, void *data)
{
    struct state *state = data;
    char parked[PARKED_SIZE];
    uint64_t instance = call_instance(call);
    const struct worker *worker =
        membership_find(state->membership, rpc_call_envelope(call)->caller);
    const struct stream *stream = assignments_stream(state->assignments, instance);
    if (!stream || !worker || worker->instance != instance) {
        rpc_call_fail(call, RPC_FAILED_PRECONDITION,
                      "this instance of worker '%s' has not registered, or was lost",
                      rpc_call_envelope(call)->caller);
        return;
    }
    const Gimbal__StreamPoll *poll = rpc_call_request(call);
    if (poll->term == stream_term(stream))
        assignments_taken(state->assignments, instance, poll->revision);
    rpc_call_reply_stream(call, stream, parked_assignments(parked, instance));
}

/* ---- ranks ---- */

/* Find the job in this epoch, provided that it holds its devices and the caller has that rank of
 * it. */
static int rank_find_job(const struct state *state, struct rpc_call *call, const char *id,
                         uint64_t epoch, const uint32_t *rank, const struct job **out,
                         struct error *err)
{
    int rc = door_find_rank(state, call, id, epoch, rank, out, err);
    if (rc == 0 && !(*out)->holding)
        return error_set(err, -ESTALE, "%s is %s: a message of epoch %" PRIu64 " comes too late",
                         id, job_state_name((*out)->state), epoch);
    return rc;
}

static void rendezvous_put_value(struct rpc_call *call, struct state *state,
                                 const Gimbal__RendezvousRequest *request)
{
    struct error err;
    char parked[PARKED_SIZE];
    int rc = rendezvous_put(state->rendezvous, request->job, request->epoch, request->key,
                            request->value.data, request->value.len, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    if (strncmp(request->key, RENDEZVOUS_KEPT, strlen(RENDEZVOUS_KEPT)) == 0)
        store_put_value(state->options.store, request->job, request->epoch, request->key,
                        request->value.data, request->value.len);
    parked_rendezvous(parked, request->job, request->epoch);
    Gimbal__RendezvousReply reply = GIMBAL__RENDEZVOUS_REPLY__INIT;
    rpc_call_reply(call, &reply.base); /* this frees the request */
    rpc_server_wake(state->server, parked);
}

/* Two ranks of one worker may wait for the same key: the call's own number tells them apart. */
static void rendezvous_get_value(struct rpc_call *call, struct state *state,
                                 const Gimbal__RendezvousRequest *request)
{
    Gimbal__RendezvousReply reply = GIMBAL__RENDEZVOUS_REPLY__INIT;
    const void *value;
    char parked[PARKED_SIZE];
    if (!rendezvous_get(state->rendezvous, request->job, request->epoch, request->key, &value,
                        &reply.value.len)) {
        rpc_call_park(call, parked_rendezvous(parked, request->job, request->epoch),
                      rpc_call_envelope(call)->call_id);
        return;
    }
    reply.there = true;
    reply.value.data = (uint8_t *)value;
    rpc_call_reply(call, &reply.base);
}

static void rank_meet(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__RendezvousRequest *request = rpc_call_request(call);
    const struct job *job;
    struct error err;
    int rc = rank_find_job(state, call, request->job, request->epoch, NULL, &job, &err);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
    else if (request->put)
        rendezvous_put_value(call, state, request);
    else
        rendezvous_get_value(call, state, request);
}

/* Fail the job for good with the message in err, since no other try would help. Returns -ESTALE. */
static int rank_refuse(struct state *state, const struct job *job,
                       const Gimbal__ReadyRequest *request, enum job_reason reason,
                       const struct error *err)
{
    struct job_event event = {.kind = JOB_EVENT_EXITED,
                              .job = job->id,
                              .epoch = job->epoch,
                              .rank = request->rank,
                              .words = err->text,
                              .exited = {.status = EXIT_FAILURE, .refused = reason}};
    state_apply(state, &event, NULL);
    return -ESTALE;
}

/* Worker and coordinator have lowered the same plan, so a different program means a different
 * release. */
static int rank_check_hash(struct state *state, const struct job *job,
                           const Gimbal__ReadyRequest *request, struct error *err)
{
    if (request->rank >= job_trainers(job))
        return 0; /* it runs no program */
    uint64_t right = dossier_find(state, job->id)->planning.hashes[request->rank];
    if (request->program_hash == right)
        return 0;
    error_set(err, -ESTALE,
              "it lowered the plan to program %016" PRIx64 ", the coordinator to %016" PRIx64
              ": worker '%s' runs another release",
              request->program_hash, right, job->ranks[request->rank].device.worker);
    return rank_refuse(state, job, request, JOB_REASON_PROGRAM_REFUSED, err);
}

/* All ranks have to read the same files, in this epoch and in later ones. */
static int rank_check_data(struct state *state, const struct job *job,
                           const Gimbal__ReadyRequest *request, struct error *err)
{
    struct dossier *dossier = dossier_find(state, job->id);
    struct corpus *corpus =
        corpus_create(job->ranks[request->rank].device.worker, (uint32_t)request->epoch);
    for (size_t i = 0; i < request->n_files; i++)
        corpus_add(corpus, request->files[i]->path, request->files[i]->size,
                   request->files[i]->hash);
    if (!dossier->corpus) {
        dossier->corpus = corpus;
        store_put_corpus(state->options.store, job, corpus);
        return 0;
    }
    int rc = corpus_compare(dossier->corpus, corpus, err);
    corpus_destroy(corpus);
    if (rc == 0)
        return 0;
    error_prefix(err, rc, "the data are not the same on all nodes");
    return rank_refuse(state, job, request, JOB_REASON_DATA_REFUSED, err);
}

static void rank_ready(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__ReadyRequest *request = rpc_call_request(call);
    const struct job *job;
    struct error err;
    int rc = rank_find_job(state, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc == 0 && job->state == JOB_STARTING)
        rc = rank_check_hash(state, job, request, &err);
    if (rc == 0 && job->state == JOB_STARTING)
        rc = rank_check_data(state, job, request, &err);
    if (rc == 0) {
        if (job->ranks[request->rank].state == JOB_RANK_WAITING)
            replan_ready(&dossier_find(state, job->id)->replan, request);
        struct job_event event = {.kind = JOB_EVENT_READY,
                                  .job = request->job,
                                  .epoch = (uint32_t)request->epoch,
                                  .rank = request->rank,
                                  .step = request->step};
        rc = state_apply(state, &event, &err);
    }
    turn_run(state);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__ReadyReply reply = GIMBAL__READY_REPLY__INIT;
    rpc_call_reply(call, &reply.base);
}

/* Data that could not be read by a job without any progress will not be readable on another try. If
 * the job has trained before, the fault is a node's. Steps of which none was finite will not be on
 * another try either. */
static enum job_reason stop_refusal(const struct job *job, const Gimbal__StoppedRequest *request)
{
    bool data = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA;
    bool fresh = job->step <= job->origin_step && job->reached_step <= job->origin_step &&
                 job->checkpoint_step == 0;
    if (request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_FINITE)
        return JOB_REASON_NOT_FINITE;
    return data && fresh ? JOB_REASON_DATA_REFUSED : JOB_REASON_NONE;
}

/* How a rank has ended, as an event. */
static struct job_event stop_event(const Gimbal__StoppedRequest *request)
{
    bool done = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
    bool damaged = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DAMAGED;
    bool stalled = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__STALLED;
    bool memory = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY;
    bool unsaved = request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_SAVED;
    bool fault = damaged || stalled || memory || unsaved ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DATA ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__NOT_FINITE ||
                 request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
    return (struct job_event){.kind = JOB_EVENT_EXITED,
                              .job = request->job,
                              .epoch = (uint32_t)request->epoch,
                              .rank = request->rank,
                              .words = request->reason,
                              .exited = {.status = done ? EXIT_SUCCESS : EXIT_FAILURE,
                                         .step = request->step,
                                         .by_others = !done && !fault,
                                         .damaged = damaged,
                                         .unsaved = unsaved,
                                         .stalled = stalled,
                                         .out_of_memory = memory,
                                         .finished = done && request->last,
                                         .loss = request->last ? request->last->loss : NAN}};
}

/* Act on what the exit means beyond this job, once: a worker repeats its report until it hears an
 * answer. */
static void stop_judge(struct state *state, const struct job *job,
                       const Gimbal__StoppedRequest *request, struct job_event *event)
{
    if (job->ranks[request->rank].state >= JOB_RANK_EXITED)
        return;
    if (event->exited.damaged)
        checkpoints_damage(state, job, request->step, request->reason);
    if (request->cause == GIMBAL__STOPPED_REQUEST__CAUSE__HOST_MEMORY)
        event->exited.out_of_memory = conditions_has_host_memory(state, job, request->rank);
    if (event->exited.out_of_memory)
        event->exited.memory_max = conditions_lower_memory(state, job, request->rank);
    event->exited.refused = stop_refusal(job, request);
}

/* A report about a job that has ended is neither news nor a mistake. */
static void rank_stopped(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__StoppedRequest *request = rpc_call_request(call);
    struct job_event event = stop_event(request);
    const struct job *job;
    struct error err;
    int rc = door_find_rank(state, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc == 0)
        stop_judge(state, job, request, &event);
    bool open = rc == 0 && !job_ended(job);
    if (rc == 0)
        rc = state_apply(state, &event, &err);
    if (rc == 0 && open && event.exited.finished)
        history_tell_last(state, job, request->last);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__StoppedReply reply = GIMBAL__STOPPED_REPLY__INIT;
    turn_run(state);
    rpc_call_reply(call, &reply.base);
}

static void rank_paused(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__PausedRequest *request = rpc_call_request(call);
    Gimbal__PausedReply reply = GIMBAL__PAUSED_REPLY__INIT;
    const struct job *job;
    struct error err;
    int rc = door_find_rank(state, call, request->job, request->epoch, &request->rank, &job, &err);
    if (rc == 0) {
        struct job_event event = {.kind = JOB_EVENT_PAUSED,
                                  .job = job->id,
                                  .epoch = job->epoch,
                                  .rank = request->rank,
                                  .paused = {(uint32_t)request->number, request->step}};
        rc = state_apply(state, &event, &err);
    }
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    turn_run(state);
    rpc_call_reply(call, &reply.base);
}

/* Drop what the ranks told each other about this checkpoint; it is of no more use. */
static void staged_forget_values(struct state *state, const Gimbal__StagedRequest *request)
{
    char *prefix = xasprintf(RENDEZVOUS_KEPT "checkpoint/%" PRIu64 "/", request->step);
    rendezvous_forget_prefix(state->rendezvous, request->job, prefix);
    store_delete_values(state->options.store, request->job, prefix);
    free(prefix);
}

static void staged_list(struct state *state, const struct job *job,
                        const Gimbal__StagedRequest *request)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    char *root = checkpoints_root(state, job);
    char *name = checkpoint_name(request->step, request->epoch), size[32];
    char *folder = xasprintf("%s/%s", root, name);
    struct store_checkpoint checkpoint = {request->step, job->epoch, folder, request->bytes,
                                          state_now_ms(state)};
    struct job_event event = {
        .kind = JOB_EVENT_STAGED, .job = job->id, .epoch = job->epoch, .step = request->step};
    store_put_checkpoint(state->options.store, job, &checkpoint,
                         (size_t)dossier->config->checkpoint.keep);
    state_apply(state, &event, NULL);
    json_t *json =
        json_pack("{s:I, s:s, s:I, s:i}", "step", (json_int_t)request->step, "folder", folder,
                  "bytes", (json_int_t)request->bytes, "shards", (int)request->shards);
    history_tell(state, "checkpoint", job->id, "", json,
                 "%s checkpoint of step %" PRIu64 ", %s: %s", job->id, request->step,
                 units_print_bytes(size, sizeof size, (double)request->bytes), folder);
    free(folder);
    free(name);
    free(root);
}

/* Check that the report comes from rank 0 of the job's current epoch and that the job saves
 * checkpoints. */
static int staged_check(const struct state *state, struct rpc_call *call, const struct job **out,
                        struct error *err)
{
    const Gimbal__StagedRequest *request = rpc_call_request(call);
    int rc = door_find_rank(state, call, request->job, request->epoch, &request->rank, out, err);
    if (rc == 0 && !(*out)->holding)
        rc = error_set(err, -ESTALE, "%s is %s: a checkpoint of epoch %" PRIu64 " comes too late",
                       request->job, job_state_name((*out)->state), request->epoch);
    const struct dossier *dossier = rc == 0 ? dossier_find(state, request->job) : NULL;
    if (rc == 0 && (!dossier->config || !checkpoints_saves(state, *out)))
        rc = error_set(err, -EINVAL, "%s has no checkpoint.dir that this release understands",
                       request->job);
    if (rc == 0 && request->rank != 0)
        rc = error_set(err, -EINVAL, "rank %u reports a checkpoint, which only rank 0 does",
                       request->rank);
    return rc;
}

/* Fill in the names of all listed checkpoints, to be freed by the caller. */
static void staged_fill(const struct state *state, const struct job *job,
                        Gimbal__StagedReply *reply)
{
    struct store_checkpoint *listed = NULL;
    size_t count = 0;
    store_read_checkpoints(state->options.store, job, &listed, &count, NULL);
    reply->listed = xcalloc(count, sizeof(char *));
    for (size_t i = 0; i < count; i++)
        reply->listed[reply->n_listed++] = checkpoint_name(listed[i].step, listed[i].epoch);
    store_checkpoints_free(listed, count);
}

/* Without the checkpoint of a step there is the next one; behind the last there is none, so the job
 * keeps its devices until it can be saved. */
static void staged_fail(struct state *state, const struct job *job,
                        const Gimbal__StagedRequest *request)
{
    struct dossier *dossier = dossier_find(state, job->id);
    bool last = request->step >= job->steps;
    if (dossier->unsaved_step < request->step)
        history_tell(state, "checkpoint-failed", job->id, "", NULL,
                     "%s has no checkpoint of step %" PRIu64 ": %s; %s", job->id, request->step,
                     request->failure,
                     last ? "its state stays in memory, and it is tried again"
                          : "training continues");
    dossier->unsaved_step = request->step;
    if (!last)
        return;
    char *root = checkpoints_root(state, job);
    enum job_reason reason = request->no_space ? JOB_REASON_NO_SPACE : JOB_REASON_NOT_SAVED;
    char *words = xasprintf("%s: the last step cannot be saved in %s: %s", job_reason_name(reason),
                            root, request->failure);
    struct job_event event = {.kind = JOB_EVENT_UNSAVED,
                              .job = job->id,
                              .epoch = job->epoch,
                              .words = words,
                              .unsaved = {reason}};
    state_apply(state, &event, NULL);
    free(words);
    free(root);
}

static void rank_staged(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__StagedRequest *request = rpc_call_request(call);
    struct error err;
    const struct job *job;
    int rc = staged_check(state, call, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    if (request->failure[0]) {
        staged_fail(state, job, request);
    } else if (!request->failure[0] && job->checkpoint_step < request->step) {
        staged_list(state, job, request);
    }
    staged_forget_values(state, request);
    turn_run(state);
    Gimbal__StagedReply reply = GIMBAL__STAGED_REPLY__INIT;
    staged_fill(state, job, &reply);
    rpc_call_reply(call, &reply.base);
    for (size_t i = 0; i < reply.n_listed; i++)
        free(reply.listed[i]);
    free(reply.listed);
}

const struct service_handler worker_handlers[] = {
    {COORDINATOR_HELLO, rpc_hello},
    {COORDINATOR_REPORT_HARDWARE, worker_report_hardware},
    {COORDINATOR_HEARTBEAT, worker_heartbeat},
    {COORDINATOR_WATCH_ASSIGNMENTS, worker_watch_assignments},
    {COORDINATOR_RENDEZVOUS, rank_meet},
    {COORDINATOR_READY, rank_ready},
    {COORDINATOR_PAUSED, rank_paused},
    {COORDINATOR_STAGED, rank_staged},
    {COORDINATOR_STOPPED, rank_stopped},
    {0, NULL},
};
