/* jobs.c - what users ask of jobs: to show them, to cancel, pause, resume and move one; and faults
 * on request, if the coordinator was told to allow that: a rank's worker carries them out, and what
 * follows is what would follow from the same fault on any other day. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "coordinator/resources/drills.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/wire.h"
#include "coordinator/turn/checkpoints.h"
#include "coordinator/turn/curves.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/retention.h"
#include "coordinator/turn/turn.h"

#define LINES_STANDARD 1000

/* -ENOENT */
static int job_lookup(const struct state *state, const char *id, const struct job **out,
                      struct error *err)
{
    *out = jobs_find(state->jobs, id);
    return *out ? 0 : retention_explain(state, id, err);
}

/* A job that the caller may change; -EACCES where it is another user's. */
static int job_lookup_own(const struct state *state, const struct rpc_call *call, const char *id,
                          const struct job **out, struct error *err)
{
    int rc = job_lookup(state, id, out, err);
    return rc < 0 ? rc : door_may_change(call, *out, err);
}

/* The caller and the reason it gives, to be freed. */
static char *job_print_caller(const struct rpc_call *call, const char *reason)
{
    const char *caller = rpc_call_envelope(call)->caller;
    return reason[0] ? xasprintf("%s: %s", caller, reason) : xstrdup(caller);
}

/* Do what a user who may change the job orders, and answer. The caller and its reason go with the
 * event; NULL: not with this one. `only_saved` says what else is possible, if the order is only for
 * jobs with checkpoints; NULL: it is for all. */
static void job_order(struct rpc_call *call, struct state *state, struct job_event event,
                      const char *reason, const char *only_saved, const ProtobufCMessage *reply)
{
    const struct job *job;
    struct error err;
    int rc = job_lookup_own(state, call, event.job, &job, &err);
    if (rc == 0 && only_saved && !checkpoints_saves(state, job))
        rc =
            error_set(&err, -EINVAL,
                      "%s has no checkpoint.dir, and the cluster no folder for its checkpoints: it "
                      "can be %s",
                      job->id, only_saved);
    char *words = rc == 0 && reason ? job_print_caller(call, reason) : NULL;
    event.words = words;
    if (rc == 0)
        rc = state_apply(state, &event, &err);
    if (rc == 0) {
        turn_run(state);
        rpc_call_reply(call, reply);
    } else {
        rpc_call_fail_errno(call, rc, &err);
    }
    free(words);
}

static void job_cancel(struct rpc_call *call, void *data)
{
    const Gimbal__CancelRequest *request = rpc_call_request(call);
    Gimbal__CancelReply reply = GIMBAL__CANCEL_REPLY__INIT;
    const struct job_event event = {
        .kind = JOB_EVENT_CANCEL, .job = request->job, .save = request->save};
    job_order(call, data, event, request->reason, request->save ? "cancelled, but not saved" : NULL,
              &reply.base);
}

static void job_pause(struct rpc_call *call, void *data)
{
    const Gimbal__PauseRequest *request = rpc_call_request(call);
    Gimbal__PauseReply reply = GIMBAL__PAUSE_REPLY__INIT;
    const struct job_event event = {
        .kind = JOB_EVENT_PAUSE, .job = request->job, .release = request->release};
    job_order(call, data, event, request->reason,
              request->release ? "paused, but not release its devices, or it would start over"
                               : NULL,
              &reply.base);
}

static void job_let_go(struct rpc_call *call, void *data)
{
    const Gimbal__ResumeRequest *request = rpc_call_request(call);
    Gimbal__ResumeReply reply = GIMBAL__RESUME_REPLY__INIT;
    const struct job_event event = {.kind = JOB_EVENT_RESUME, .job = request->job};
    job_order(call, data, event, NULL, NULL, &reply.base);
}

static void job_replan(struct rpc_call *call, void *data)
{
    const Gimbal__ReplanRequest *request = rpc_call_request(call);
    Gimbal__ReplanReply reply = GIMBAL__REPLAN_REPLY__INIT;
    const struct job_event event = {.kind = JOB_EVENT_REPLAN, .job = request->job};
    job_order(call, data, event, request->reason, NULL, &reply.base);
}

static void job_get(struct rpc_call *call, void *data)
{
    const struct state *state = data;
    const Gimbal__GetJobRequest *request = rpc_call_request(call);
    const struct job *job;
    struct job_details details;
    struct error err;
    int rc = job_lookup(state, request->job, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    job_details_begin(&details, state, job);
    rpc_call_reply(call, &details.reply.base);
    job_details_finish(&details);
}

static void job_list(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__ListJobsRequest *request = rpc_call_request(call);
    Gimbal__ListJobsReply reply = GIMBAL__LIST_JOBS_REPLY__INIT;
    reply.jobs = xcalloc(jobs_count(state->jobs), sizeof(Gimbal__JobStatus *));
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        const struct job *job = jobs_at(state->jobs, i);
        if ((!request->all && job_ended(job)) ||
            (request->user[0] && strcmp(request->user, job->user) != 0))
            continue;
        reply.jobs[reply.n_jobs++] = job_to_wire(state, job);
    }
    rpc_call_reply(call, &reply.base);
    for (size_t i = 0; i < reply.n_jobs; i++)
        gimbal__job_status__free_unpacked(reply.jobs[i], NULL);
    free(reply.jobs);
}

/* Pick the lines that the request wants, at most `most`. Returns their number; *last: revision of
 * the last line that was looked at. */
static size_t logs_pick(const Gimbal__GetLogsRequest *request, const struct log_line *from,
                        size_t from_count, size_t most, Gimbal__LogLine *lines, uint64_t *last)
{
    size_t count = 0;
    for (size_t i = 0; i < from_count && count < most; i++) {
        *last = from[i].revision;
        if (request->rank >= 0 && request->rank != from[i].rank)
            continue;
        gimbal__log_line__init(&lines[count]);
        lines[count].job = request->job;
        lines[count].rank = (uint32_t)from[i].rank;
        lines[count].epoch = from[i].epoch;
        lines[count].level = (char *)from[i].level;
        lines[count].unix_us = from[i].time_ms * 1000;
        lines[count].text = from[i].text;
        count++;
    }
    return count;
}

static void job_logs(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__GetLogsRequest *request = rpc_call_request(call);
    const struct job *job;
    struct error err;
    int rc = job_lookup(state, request->job, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    const struct job_telemetry *measured = telemetry_find(state->telemetry, request->job);
    const struct log_line *from = NULL;
    size_t count = 0, most = request->count_max ? request->count_max : LINES_STANDARD;
    if (measured)
        rc = lines_after(measured->lines,
                         request->after ? request->after : lines_first(measured->lines), &from,
                         &count, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    most = most < count ? most : count;
    Gimbal__LogLine *lines = xcalloc(most, sizeof *lines);
    Gimbal__GetLogsReply reply = GIMBAL__GET_LOGS_REPLY__INIT;
    reply.last = request->after;
    reply.n_lines = logs_pick(request, from, count, most, lines, &reply.last);
    reply.lines = xcalloc(reply.n_lines, sizeof(Gimbal__LogLine *));
    for (size_t i = 0; i < reply.n_lines; i++)
        reply.lines[i] = &lines[i];
    rpc_call_reply(call, &reply.base);
    free(reply.lines);
    free(lines);
}

/* Find the rank that is meant: a request counts from 1, and 0 means the last, of its node if it
 * names one. -EINVAL. */
static int drill_find_rank(const struct job *job, const Gimbal__DrillRequest *request, size_t *rank,
                           struct error *err)
{
    size_t count = job_trainers(job);
    if (request->rank > count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", job->id,
                         request->rank - 1, count - 1);
    *rank = request->rank > 0 ? request->rank - 1 : count - 1;
    if (!request->node[0])
        return 0;
    for (size_t i = count; i-- > 0;)
        if (strcmp(job->ranks[i].device.worker, request->node) == 0) {
            *rank = i;
            return 0;
        }
    return error_set(err, -EINVAL, "%s has no rank on node '%.64s'", job->id, request->node);
}

/* Check the request and find its job and rank. Returns 0 or a negative errno with a message. */
static int drill_check(const struct state *state, const Gimbal__DrillRequest *request,
                       const struct job **job, size_t *rank, struct error *err)
{
    if (!state->options.drills)
        return error_set(
            err, -EACCES,
            "this coordinator does not allow drills: start it with 'drills: true' in its "
            "settings, or with --drills true");
    int rc = job_lookup(state, request->job, job, err);
    if (rc < 0)
        return rc;
    if ((*job)->state != JOB_RUNNING)
        return error_set(err, -ESTALE, "%s is %s: a drill is for a job that is RUNNING", (*job)->id,
                         job_state_name((*job)->state));
    const struct drill_fault *fault = drill_fault(request->fault);
    if (!fault)
        return error_set(err, -EINVAL, "there is no fault number %d in this release",
                         (int)request->fault);
    rc = drill_check_times(fault, request->for_ms, request->delay_ms, err);
    return rc == 0 ? drill_find_rank(*job, request, rank, err) : rc;
}

static void job_drill(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__DrillRequest *request = rpc_call_request(call);
    Gimbal__DrillReply reply = GIMBAL__DRILL_REPLY__INIT;
    const struct job *job = NULL;
    struct error err;
    char words[128];
    size_t rank = 0;
    int rc = drill_check(state, request, &job, &rank, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    const struct device_ref *device = &job->ranks[rank].device;
    reply.rank = (uint32_t)rank;
    reply.node = (char *)device->worker;
    reply.unix_ms = state_now_ms(state);
    history_tell(state, "drill", job->id, device->worker, NULL,
                 "%s: %s ordered %s of rank %zu on %s/%u%s", job->id,
                 rpc_call_envelope(call)->caller, drill_fault(request->fault)->name, rank,
                 device->worker, device->index, drill_print_times(request, words, sizeof words));
    assignments_drill(state->assignments, job, rank, request);
    turn_run(state);
    rpc_call_reply(call, &reply.base);
}

/* Find the rank's part of the newest complete step. */
static int trace_find(const struct state *state, const Gimbal__GetTraceRequest *request,
                      const struct trace_step **out, struct error *err)
{
    const struct job *job;
    *out = NULL;
    int rc = job_lookup(state, request->job, &job, err);
    if (rc < 0)
        return rc;
    const struct job_telemetry *measured = telemetry_find(state->telemetry, request->job);
    if (!measured || measured->traces.newest.step == 0)
        return error_set(
            err, -ESTALE,
            "no trace of a step of %s has arrived since the coordinator started: ranks send "
            "one now and then",
            request->job);
    const struct trace_step *step = &measured->traces.newest;
    if (request->step > 0 && request->step != step->step)
        return error_set(err, -ERANGE, "step %llu is no longer kept: step %llu is",
                         (unsigned long long)request->step, (unsigned long long)step->step);
    if (request->rank >= step->rank_count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", request->job,
                         request->rank, step->rank_count - 1);
    *out = step;
    return 0;
}

static void job_trace(struct rpc_call *call, void *data)
{
    const Gimbal__GetTraceRequest *request = rpc_call_request(call);
    Gimbal__GetTraceReply reply = GIMBAL__GET_TRACE_REPLY__INIT;
    const struct trace_step *step;
    struct error err;
    int rc = trace_find(data, request, &step, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    const struct trace *trace = &step->ranks[request->rank];
    reply.epoch = step->epoch;
    reply.step = step->step;
    reply.rank_count = (uint32_t)step->rank_count;
    reply.unix_ns = trace->unix_ns;
    reply.total = trace->total;
    reply.n_begin_ns = reply.n_end_ns = trace->count;
    reply.begin_ns = trace->begin_ns;
    reply.end_ns = trace->end_ns;
    rpc_call_reply(call, &reply.base);
}

/* The lists of a curve, which the caller frees with curve_finish(). */
static void curve_fill(Gimbal__GetCurveReply *reply, const struct job_telemetry *measured)
{
    const struct steps *steps = &measured->steps;
    const struct evaluations *evaluations = &measured->evaluations;
    size_t count = steps->count;
    reply->n_step = reply->n_epoch = reply->n_loss = reply->n_gradient_norm = count;
    reply->n_seconds = reply->n_tokens = reply->n_unix_ms = count;
    reply->step = xcalloc(count, sizeof *reply->step);
    reply->epoch = xcalloc(count, sizeof *reply->epoch);
    reply->loss = xcalloc(count, sizeof *reply->loss);
    reply->gradient_norm = xcalloc(count, sizeof *reply->gradient_norm);
    reply->seconds = xcalloc(count, sizeof *reply->seconds);
    reply->tokens = xcalloc(count, sizeof *reply->tokens);
    reply->unix_ms = xcalloc(count, sizeof *reply->unix_ms);
    for (size_t i = 0; i < count; i++) {
        reply->step[i] = steps->points[i].step;
        reply->epoch[i] = steps->points[i].epoch;
        reply->loss[i] = steps->points[i].loss;
        reply->gradient_norm[i] = steps->points[i].gradient_norm;
        reply->seconds[i] = steps->points[i].time_s;
        reply->tokens[i] = steps->points[i].tokens;
        reply->unix_ms[i] = steps->points[i].end_ms;
    }
    reply->n_evaluation_step = reply->n_evaluation_loss = evaluations->count;
    reply->evaluation_step = xcalloc(evaluations->count, sizeof *reply->evaluation_step);
    reply->evaluation_loss = xcalloc(evaluations->count, sizeof *reply->evaluation_loss);
    for (size_t i = 0; i < evaluations->count; i++) {
        reply->evaluation_step[i] = evaluations->items[i].step;
        reply->evaluation_loss[i] = evaluations->items[i].loss;
    }
}

static void curve_finish(Gimbal__GetCurveReply *reply)
{
    free(reply->step);
    free(reply->epoch);
    free(reply->loss);
    free(reply->gradient_norm);
    free(reply->seconds);
    free(reply->tokens);
    free(reply->unix_ms);
    free(reply->evaluation_step);
    free(reply->evaluation_loss);
}

static void job_curve(struct rpc_call *call, void *data)
{
    const struct state *state = data;
    const Gimbal__GetCurveRequest *request = rpc_call_request(call);
    Gimbal__GetCurveReply reply = GIMBAL__GET_CURVE_REPLY__INIT;
    const struct job *job;
    struct error err;
    int rc = job_lookup(state, request->job, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    const struct job_telemetry *measured = curves_whole(state, job);
    reply.name = job->name;
    if (measured)
        curve_fill(&reply, measured);
    rpc_call_reply(call, &reply.base);
    curve_finish(&reply);
}

const struct service_handler job_handlers[] = {
    {COORDINATOR_CANCEL, job_cancel},
    {COORDINATOR_PAUSE, job_pause},
    {COORDINATOR_RESUME, job_let_go},
    {COORDINATOR_REPLAN, job_replan},
    {COORDINATOR_GET_JOB, job_get},
    {COORDINATOR_LIST_JOBS, job_list},
    {COORDINATOR_GET_LOGS, job_logs},
    {COORDINATOR_GET_TRACE, job_trace},
    {COORDINATOR_DRILL, job_drill},
    {COORDINATOR_GET_CURVE, job_curve},
    {0, NULL},
};
