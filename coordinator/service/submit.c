/* submit.c - a job arrives: it is parsed and stored, and the call is answered once it is known
 * whether there is a plan, or when its caller should not wait any longer. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/planner/check.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/wire.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/turn.h"

#define JOB_FILE "job file"

/* A job as it was submitted, read and checked. */
struct submitted {
    struct job_config *config;
    struct graph *graph;
    char *given;       /* JSON; NULL: no plan came with it */
    struct plan *plan; /* the same, decoded */
    char *named;       /* as in struct job_submission */
};

static void submitted_finish(struct submitted *submitted)
{
    graph_destroy(submitted->graph);
    job_config_destroy(submitted->config);
    plan_destroy(submitted->plan);
    free(submitted->named);
    free(submitted->given);
}

/* The device of every rank, one per line, to be freed; NULL: the plan leaves some of them to us. */
static char *plan_print_devices(const struct plan *plan)
{
    char *lines = xstrdup("");
    for (int rank = 0; rank < plan_ranks(plan) && lines; rank++) {
        const char *name = plan_device(plan, rank);
        char *longer = name ? xasprintf("%s%s\n", lines, name) : NULL;
        free(lines);
        lines = longer;
    }
    return lines;
}

static int submitted_read_given(struct submitted *submitted, const char *json, struct error *err)
{
    int rc = plan_decode(json, &submitted->plan, err);
    if (rc == 0)
        rc = plan_check(submitted->plan, submitted->graph, err);
    if (rc == 0)
        submitted->given = xstrdup(json);
    if (rc == 0)
        submitted->named = plan_print_devices(submitted->plan);
    return rc < 0 ? error_prefix(err, rc, "plan") : 0;
}

/* Parse and check a job. *submitted has to be finished on failure, too. */
static int submitted_read(struct submitted *submitted, const Gimbal__JobSpec *spec,
                          struct error *err)
{
    *submitted = (struct submitted){0};
    if (!spec)
        return error_set(err, -EINVAL, "a submission without a job");
    int rc = job_config_parse(spec->yaml, strlen(spec->yaml), JOB_FILE, &submitted->config, err);
    if (rc == 0)
        rc = planner_graph(submitted->config, &submitted->graph, err);
    if (rc == 0)
        rc = planner_runs(submitted->config, submitted->graph, err);
    if (rc == 0)
        rc = planner_places(submitted->config, err);
    if (rc == 0)
        rc = planner_names(submitted->config, err);
    if (rc == 0 && spec->plan && spec->plan->json[0])
        rc = submitted_read_given(submitted, spec->plan->json, err);
    return rc;
}

static bool views_offer(const struct device_view *views, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        char offered[HARDWARE_NAME_SIZE + 16];
        snprintf(offered, sizeof offered, "%s/%u", views[i].ref.worker, views[i].ref.index);
        if (strcmp(offered, name) == 0)
            return true;
    }
    return false;
}

/* Check that the devices which a submitted plan names are there; -ESTALE: one of them is not. */
static int submitted_check_devices(const struct state *state, const struct plan *plan,
                                   struct error *err)
{
    struct device_view *all;
    size_t count = membership_devices(state->membership, &all);
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        const char *name = plan_device(plan, rank);
        if (name && !views_offer(all, count, name))
            rc = error_set(
                err, -ESTALE,
                "the plan puts rank %d on %s, which no living worker offers: the cluster is "
                "no longer the one that the plan was made for; plan again",
                rank, name);
    }
    free(all);
    return rc;
}

static struct job_submission submitted_describe(const struct submitted *submitted,
                                                struct rpc_call *call, const Gimbal__JobSpec *spec,
                                                const char *user)
{
    const Gimbal__Envelope *envelope = rpc_call_envelope(call);
    const struct job_config *config = submitted->config;
    struct job_submission submission = {
        .key = envelope->idempotency_key,
        .name = config->name,
        .user = user,
        .text = spec->yaml,
        .given = submitted->given,
        .named = submitted->named,
        .devices_min = (unsigned)config->devices.min,
        .devices_max = config->devices.max ? (unsigned)config->devices.max : UINT_MAX,
        .kind = JOB_ANY,
        .steps = (uint64_t)config->train.steps,
        .restarts_max = (unsigned)config->elastic.max_restarts,
        .replans = config->elastic.replan,
    };
    if (submitted->plan)
        submission.devices_min = submission.devices_max = (unsigned)plan_ranks(submitted->plan);
    return submission;
}

/* The key may be that of a job which ended so long ago that only the store has it. Returns whether
 * the call was answered. */
static bool submit_answer_stored(struct rpc_call *call, const struct state *state,
                                 const struct job_submission *submission)
{
    struct job *job;
    struct error err;
    int rc = store_find_key(state->options.store, submission->user, submission->key, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return true;
    }
    if (!job || jobs_find(state->jobs, job->id)) {
        job_destroy(job);
        return false;
    }
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    reply.job = job->id;
    if (job_is_of(job, submission))
        rpc_call_reply(call, &reply.base);
    else
        rpc_call_fail(call, RPC_ALREADY_EXISTS,
                      "the key '%s' was used to submit another job file, as %s", submission->key,
                      job->id);
    job_destroy(job);
    return true;
}

/* Answer with what has become of the job so far. */
static void submitter_answer(const struct state *state, const struct submitter *submitter,
                             const struct job *job)
{
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    bool unfit = job->reason == JOB_REASON_INFEASIBLE_MEMORY;
    if (job->state == JOB_FAILED && (unfit || job->reason == JOB_REASON_PLAN_REFUSED)) {
        rpc_call_fail(submitter->call, unfit ? COORDINATOR_NO_PLAN : RPC_INVALID_ARGUMENT,
                      "%s (%s): %s", job->id, job->name, job->words);
        return;
    }
    Gimbal__JobStatus *status = job_to_wire(state, job);
    reply.job = status->job;
    if (job->state == JOB_PENDING)
        reply.waiting_reason = status->reason;
    rpc_call_reply(submitter->call, &reply.base);
    gimbal__job_status__free_unpacked(status, NULL);
}

/* The job ended so long ago that it was forgotten. */
static void submitter_answer_forgotten(const struct submitter *submitter)
{
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    reply.job = (char *)submitter->job;
    rpc_call_reply(submitter->call, &reply.base);
}

static void submitters_add(struct service *service, struct rpc_call *call, const char *id)
{
    service->submitters.items =
        grow(service->submitters.items, service->submitters.count, &service->submitters.capacity,
             sizeof *service->submitters.items);
    struct submitter *submitter = &service->submitters.items[service->submitters.count++];
    submitter->call = call;
    submitter->until_ms = state_patience_ms(service->state, call);
    snprintf(submitter->job, sizeof submitter->job, "%s", id);
}

void submitters_answer(struct service *service)
{
    size_t kept = 0;
    for (size_t i = 0; i < service->submitters.count; i++) {
        const struct submitter *submitter = &service->submitters.items[i];
        const struct job *job = jobs_find(service->state->jobs, submitter->job);
        if (!job)
            submitter_answer_forgotten(submitter);
        else if (job->state == JOB_PLANNING && submitter->until_ms > state_now_ms(service->state))
            service->submitters.items[kept++] = *submitter;
        else
            submitter_answer(service->state, submitter, job);
    }
    service->submitters.count = kept;
}

uint64_t submitters_next_ms(const struct service *service)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < service->submitters.count; i++)
        if (service->submitters.items[i].until_ms < next_ms)
            next_ms = service->submitters.items[i].until_ms;
    return next_ms;
}

static void submit_answer_dry(struct rpc_call *call, const struct planning *planning)
{
    (void)planning;
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    rpc_call_reply(call, &reply.base);
}

/* Only plan the job, without keeping it. Takes ownership of its config and graph. */
static void submit_try(struct service *service, struct rpc_call *call, struct submitted *submitted)
{
    struct dry_plan ask = {.config = submitted->config,
                           .graph = submitted->graph,
                           .given = submitted->given,
                           .answer_cb = submit_answer_dry};
    submitted->config = NULL;
    submitted->graph = NULL;
    asking_dry(service->state, call, &ask);
}

/* Put the job into the queue, once: the same submission again finds the same job. The dossier of a
 * new job takes ownership of its config. */
static int submit_keep(struct service *service, struct submitted *submitted,
                       const struct job_submission *submission, char id[JOB_ID_SIZE],
                       struct error *err)
{
    const struct job *job;
    bool again = jobs_knows(service->state->jobs, submission);
    int rc = again ? 0 : door_check_disk(&service->door, err);
    if (rc == 0 && submitted->plan && !again)
        rc = submitted_check_devices(service->state, submitted->plan, err);
    if (rc < 0)
        return rc;
    rc = jobs_submit(service->state->jobs, submission, state_now_ms(service->state), &job,
                     &service->state->actions, err);
    if (rc < 0)
        return rc;
    memcpy(id, job->id, JOB_ID_SIZE);
    if (dossier_find(service->state, id))
        return 0;
    dossier_add(service->state, id, submitted->config);
    submitted->config = NULL;
    return 0;
}

/* The call is answered here, at the end of this poll, or later. */
static int submit_read(struct service *service, struct rpc_call *call, struct submitted *submitted,
                       struct error *err)
{
    const Gimbal__SubmitRequest *request = rpc_call_request(call);
    const char *user = NULL;
    int rc = door_submits_as(call, request->spec->user, &user, err);
    if (rc < 0)
        return rc;
    if (request->dry_run) {
        submit_try(service, call, submitted);
        return 0;
    }
    struct job_submission submission = submitted_describe(submitted, call, request->spec, user);
    if (submit_answer_stored(call, service->state, &submission))
        return 0;
    char id[JOB_ID_SIZE];
    rc = submit_keep(service, submitted, &submission, id, err);
    if (rc < 0)
        return rc;
    turn_run(service->state);
    submitters_add(service, call, id);
    return 0;
}

static void submit_job(struct rpc_call *call, void *data)
{
    const Gimbal__SubmitRequest *request = rpc_call_request(call);
    struct submitted submitted;
    struct error err;
    int rc = submitted_read(&submitted, request->spec, &err);
    if (rc == 0)
        rc = submit_read(data, call, &submitted, &err);
    submitted_finish(&submitted);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
}

const struct service_handler submit_handlers[] = {{COORDINATOR_SUBMIT, submit_job}, {0, NULL}};
