/* submit.c - a job arrives: it is parsed and stored, and the call is answered once it is known
 * whether there is a plan, or when its caller should not wait any longer. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/checkpoint/ancestor.h"
#include "common/config/paths.h"
#include "coordinator/planner/check.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/wire.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/checkpoints.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/turn.h"

#define JOB_FILE "job file"

/* A job as it was submitted, read and checked. */
struct submitted {
    struct job_config *config;
    struct graph *graph;
    char *given;              /* JSON; NULL: no plan came with it */
    struct plan *plan;        /* the same, decoded */
    char *named;              /* as in struct job_submission */
    char *saves_in;           /* as in struct job_submission */
    struct ancestor origin;   /* folder NULL: it begins anew */
    struct texts differences; /* between its job file and that of the origin */
};

static void submitted_finish(struct submitted *submitted)
{
    graph_destroy(submitted->graph);
    job_config_destroy(submitted->config);
    plan_destroy(submitted->plan);
    ancestor_finish(&submitted->origin);
    ancestor_forget(&submitted->differences);
    free(submitted->saves_in);
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

/* A checkpoint that is listed here, or one of which the caller has read the manifest. */
static int submitted_find_origin(const struct state *state, const Gimbal__Origin *given,
                                 struct ancestor *out, struct error *err)
{
    if (given->job[0]) {
        const struct job *job = jobs_find(state->jobs, given->job);
        return job ? checkpoints_origin(state, job, given->step, out, err)
                   : error_set(err, -ENOENT, "there is no job '%.64s'", given->job);
    }
    char *folder;
    int rc = path_resolve("--from", given->folder, PATH_NODES, &folder, err);
    if (rc == 0)
        *out = (struct ancestor){
            .folder = folder,
            .spec = given->job_yaml[0] ? xstrdup(given->job_yaml) : NULL,
            .step = given->step,
            .samples = given->samples,
        };
    return rc;
}

/* Find what the job is to go on from, and compare the two; nothing to do if that is nothing. */
static int submitted_read_origin(struct submitted *submitted, const struct state *state,
                                 const Gimbal__Origin *given, struct error *err)
{
    struct ancestor *origin = &submitted->origin;
    if (!given)
        return 0;
    int rc = submitted_find_origin(state, given, origin, err);
    if (rc == 0 && given->weights_only) {
        origin->weights_only = true;
        origin->step = origin->samples = 0;
    }
    if (rc == 0)
        rc = ancestor_compare(origin, NULL, submitted->config, submitted->graph,
                              &submitted->differences, err);
    return rc == 0 ? ancestor_leaves(origin, submitted->config, err) : rc;
}

/* What differs is told before anything is done. */
static void submitted_tell_origin(struct state *state, const struct submitted *submitted,
                                  const char *id)
{
    const struct ancestor *origin = &submitted->origin;
    char *text = xstrdup("");
    json_t *list = json_array();
    for (size_t i = 0; i < submitted->differences.count; i++) {
        const char *line = submitted->differences.items[i];
        char *longer = xasprintf("%s; %s", text, line);
        free(text);
        text = longer;
        json_array_append_new(list, json_string(line));
    }
    json_t *json = json_pack("{s:s, s:I, s:b, s:o}", "folder", origin->folder, "step",
                             (json_int_t)origin->step, "weights_only", (int)origin->weights_only,
                             "differences", list);
    if (origin->weights_only)
        history_tell(state, "job-origin", id, "", json, "%s begins with the weights in '%s'%s", id,
                     origin->folder, text);
    else
        history_tell(state, "job-origin", id, "", json, "%s goes on after step %llu of '%s'%s", id,
                     (unsigned long long)origin->step, origin->folder, text);
    free(text);
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
        .saves_in = submitted->saves_in,
        .origin = submitted->origin.folder,
        .origin_step = submitted->origin.step,
        .origin_samples = submitted->origin.samples,
        .origin_weights = submitted->origin.weights_only,
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
    reply.checkpoint_folder = status->checkpoint_folder;
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

/* Put a job into the queue that is not there yet. Its dossier takes ownership of the config. */
static int submit_keep_new(struct service *service, struct submitted *submitted,
                           const struct job_submission *submission, char id[JOB_ID_SIZE],
                           struct error *err)
{
    struct state *state = service->state;
    const struct job *job;
    int rc = door_check_disk(&service->door, err);
    if (rc == 0 && submitted->plan)
        rc = submitted_check_devices(state, submitted->plan, err);
    if (rc == 0)
        rc = jobs_submit(state->jobs, submission, state_now_ms(state), &job, &state->actions, err);
    if (rc < 0)
        return rc;
    memcpy(id, job->id, JOB_ID_SIZE);
    dossier_add(state, id, submitted->config);
    submitted->config = NULL;
    if (submitted->origin.folder)
        submitted_tell_origin(state, submitted, id);
    return 0;
}

/* The same submission again finds the same job. */
static int submit_keep_again(const struct service *service, const struct job_submission *submission,
                             char id[JOB_ID_SIZE], struct error *err)
{
    struct state *state = service->state;
    const struct job *job;
    int rc = jobs_submit(state->jobs, submission, state_now_ms(state), &job, &state->actions, err);
    if (rc == 0)
        memcpy(id, job->id, JOB_ID_SIZE);
    return rc;
}

/* What it goes on from is looked for once: a checkpoint that was there then may be gone now. */
static int submit_keep(struct service *service, struct submitted *submitted, struct rpc_call *call,
                       const char *user, char id[JOB_ID_SIZE], struct error *err)
{
    const Gimbal__SubmitRequest *request = rpc_call_request(call);
    struct job_submission submission = submitted_describe(submitted, call, request->spec, user);
    if (jobs_knows(service->state->jobs, &submission))
        return submit_keep_again(service, &submission, id, err);
    int rc = submitted_read_origin(submitted, service->state, request->origin, err);
    const char *root = service->state->options.checkpoints;
    if (root && !submitted->config->checkpoint.dir)
        submitted->saves_in = xasprintf("%s/%s", root, submitted->config->name);
    submission = submitted_describe(submitted, call, request->spec, user);
    return rc == 0 ? submit_keep_new(service, submitted, &submission, id, err) : rc;
}

/* The call is answered here, at the end of this poll, or later. */
static int submit_read(struct service *service, struct rpc_call *call, struct submitted *submitted,
                       struct error *err)
{
    const Gimbal__SubmitRequest *request = rpc_call_request(call);
    const char *user = NULL;
    int rc = door_submits_as(call, request->spec->user, &user, err);
    if (rc == 0 && request->dry_run)
        rc = submitted_read_origin(submitted, service->state, request->origin, err);
    if (rc < 0)
        return rc;
    if (request->dry_run) {
        submit_try(service, call, submitted);
        return 0;
    }
    const struct job_submission asked = submitted_describe(submitted, call, request->spec, user);
    if (submit_answer_stored(call, service->state, &asked))
        return 0;
    char id[JOB_ID_SIZE];
    rc = submit_keep(service, submitted, call, user, id, err);
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
