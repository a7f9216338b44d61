/* submit.c - the call that submits a job: the job is parsed and stored, and the call is answered
 * once it is known whether there is a plan, or when its caller should not wait any longer. */
#include "coordinator/planner/check.h"
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static char *print_devices(const struct plan *plan)
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

static int read_given(struct submitted *submitted, const char *json, struct error *err)
{
    int rc = plan_decode(json, &submitted->plan, err);
    if (rc == 0)
        rc = plan_check(submitted->plan, submitted->graph, err);
    if (rc == 0)
        submitted->given = xstrdup(json);
    if (rc == 0)
        submitted->named = print_devices(submitted->plan);
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
        rc = read_given(submitted, spec->plan->json, err);
    return rc;
}

static bool offers(const struct device_view *views, size_t count, const char *name)
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
static int check_devices(const struct service *service, const struct plan *plan, struct error *err)
{
    struct device_view *all;
    size_t count = membership_devices(service->membership, &all);
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        const char *name = plan_device(plan, rank);
        if (name && !offers(all, count, name))
            rc = error_set(
                err, -ESTALE,
                "the plan puts rank %d on %s, which no living worker offers: the cluster is "
                "no longer the one that the plan was made for; plan again",
                rank, name);
    }
    free(all);
    return rc;
}

static struct job_submission describe(const struct submitted *submitted, struct rpc_call *call,
                                      const Gimbal__JobSpec *spec, const char *user)
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
static bool answer_stored(struct rpc_call *call, const struct service *service,
                          const struct job_submission *submission)
{
    struct job *job;
    struct error err;
    int rc = store_find_key(service->options.store, submission->user, submission->key, &job, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return true;
    }
    if (!job || jobs_find(service->jobs, job->id)) {
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
static void answer(const struct service *service, const struct submitter *submitter,
                   const struct job *job)
{
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    bool unfit = job->reason == JOB_REASON_INFEASIBLE_MEMORY;
    if (job->state == JOB_FAILED && (unfit || job->reason == JOB_REASON_PLAN_REFUSED)) {
        rpc_call_fail(submitter->call, unfit ? COORDINATOR_NO_PLAN : RPC_INVALID_ARGUMENT,
                      "%s (%s): %s", job->id, job->name, job->words);
        return;
    }
    Gimbal__JobStatus *status = job_to_wire(service, job);
    reply.job = status->job;
    if (job->state == JOB_PENDING)
        reply.waiting_reason = status->reason;
    rpc_call_reply(submitter->call, &reply.base);
    gimbal__job_status__free_unpacked(status, NULL);
}

/* The job ended so long ago that it was forgotten. */
static void answer_forgotten(const struct submitter *submitter)
{
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    reply.job = (char *)submitter->job;
    rpc_call_reply(submitter->call, &reply.base);
}

static void add_submitter(struct service *service, struct rpc_call *call, const char *id)
{
    service->submitters = grow(service->submitters, service->submitter_count,
                               &service->submitter_capacity, sizeof *service->submitters);
    struct submitter *submitter = &service->submitters[service->submitter_count++];
    submitter->call = call;
    submitter->until_ms = service_patience_ms(service, call);
    snprintf(submitter->job, sizeof submitter->job, "%s", id);
}

void service_answer_submitters(struct service *service)
{
    size_t kept = 0;
    for (size_t i = 0; i < service->submitter_count; i++) {
        const struct submitter *submitter = &service->submitters[i];
        const struct job *job = jobs_find(service->jobs, submitter->job);
        if (!job)
            answer_forgotten(submitter);
        else if (job->state == JOB_PLANNING && submitter->until_ms > service_now_ms(service))
            service->submitters[kept++] = *submitter;
        else
            answer(service, submitter, job);
    }
    service->submitter_count = kept;
}

uint64_t service_submitters_next_ms(const struct service *service)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < service->submitter_count; i++)
        if (service->submitters[i].until_ms < next_ms)
            next_ms = service->submitters[i].until_ms;
    return next_ms;
}

static void answer_dry(struct rpc_call *call, const struct planning *planning)
{
    (void)planning;
    Gimbal__SubmitReply reply = GIMBAL__SUBMIT_REPLY__INIT;
    rpc_call_reply(call, &reply.base);
}

/* Only plan the job, without keeping it. Takes ownership of its config and graph. */
static void try_only(struct service *service, struct rpc_call *call, struct submitted *submitted)
{
    struct question question = {.config = submitted->config,
                                .graph = submitted->graph,
                                .given = submitted->given,
                                .answer_cb = answer_dry};
    submitted->config = NULL;
    submitted->graph = NULL;
    service_plan_dry(service, call, &question);
}

/* Put the job into the queue, once: the same submission again finds the same job. The dossier of a
 * new job takes ownership of its config. */
static int keep(struct service *service, struct submitted *submitted,
                const struct job_submission *submission, char id[JOB_ID_SIZE], struct error *err)
{
    const struct job *job;
    bool again = jobs_knows(service->jobs, submission);
    int rc = again ? 0 : service_check_room(service, err);
    if (rc == 0 && submitted->plan && !again)
        rc = check_devices(service, submitted->plan, err);
    if (rc < 0)
        return rc;
    rc = jobs_submit(service->jobs, submission, service_now_ms(service), &job, &service->actions,
                     err);
    if (rc < 0)
        return rc;
    memcpy(id, job->id, JOB_ID_SIZE);
    if (dossier_find(service, id))
        return 0;
    dossiers_prune(service);
    dossier_add(service, id, submitted->config);
    submitted->config = NULL;
    return 0;
}

/* The call is answered here, at the end of this poll, or later. */
static int submit_read(struct service *service, struct rpc_call *call, struct submitted *submitted,
                       struct error *err)
{
    const Gimbal__SubmitRequest *request = rpc_call_request(call);
    const char *user = NULL;
    int rc = service_submits_as(call, request->spec->user, &user, err);
    if (rc < 0)
        return rc;
    if (request->dry_run) {
        try_only(service, call, submitted);
        return 0;
    }
    struct job_submission submission = describe(submitted, call, request->spec, user);
    if (answer_stored(call, service, &submission))
        return 0;
    char id[JOB_ID_SIZE];
    rc = keep(service, submitted, &submission, id, err);
    if (rc < 0)
        return rc;
    service_turn(service);
    add_submitter(service, call, id);
    return 0;
}

static void submit(struct rpc_call *call, void *data)
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

const struct service_handler submit_handlers[] = {{COORDINATOR_SUBMIT, submit}, {0, NULL}};
