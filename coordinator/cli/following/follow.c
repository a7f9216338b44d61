/* follow.c - turns events of a job into the state of its live line. */
#include "coordinator/cli/following/follow.h"

#include "common/base/memory.h"
#include "common/base/utf8.h"
#include "common/rpc/clock.h"
#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/tables/jobtable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void follow_init(struct follow *follow, const char *job, const char *name,
                 struct progress *progress)
{
    *follow = (struct follow){.job = job, .progress = progress};
    follow->state = (struct progress_state){.name = name, .loss = NAN, .heldout_loss = NAN};
}

void follow_finish(struct follow *follow)
{
    free(follow->sample);
    follow->sample = NULL;
}

static double number(const json_t *json, const char *key, double otherwise)
{
    const json_t *value = json_object_get(json, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void take_step(struct follow *follow, const json_t *json)
{
    struct progress_state *state = &follow->state;
    state->step = (uint64_t)number(json, "step", (double)state->step);
    state->step_count = (uint64_t)number(json, "steps", (double)state->step_count);
    state->loss = number(json, "loss", state->loss);
    state->tokens_per_s = number(json, "tokens_per_s", state->tokens_per_s);
    state->step_time_s = number(json, "step_time_s", state->step_time_s);
}

static void take_evaluation(struct follow *follow, const json_t *json)
{
    follow->state.heldout_loss = number(json, "loss", follow->state.heldout_loss);
}

/* From the plan itself, as in "p-7f3a pp2·tp2·dp2". */
static void take_plan(struct follow *follow, const json_t *json)
{
    char division[64] = "";
    struct plan *plan;
    json_t *content = json_object_get(json, "content");
    char *text = content ? json_dumps(content, 0) : NULL;
    const char *id = json_string_value(json_object_get(json, "plan"));
    if (text && plan_decode(text, &plan, NULL) == 0) {
        plan_print(division, sizeof division, plan);
        plan_destroy(plan);
    }
    snprintf(follow->plan_text, sizeof follow->plan_text, "%s %s", id ? id : "", division);
    follow->state.plan = follow->plan_text;
    free(text);
}

static void take_text(char **out, const char *text)
{
    free(*out);
    *out = utf8_clean(text, strlen(text));
}

static bool is_end(const char *kind)
{
    return strcmp(kind, "job-done") == 0 || strcmp(kind, "job-failed") == 0 ||
           strcmp(kind, "job-cancelled") == 0;
}

static bool take(void *data, const Gimbal__Event *event)
{
    struct follow *follow = data;
    if (strcmp(event->job, follow->job) != 0)
        return false;
    if (follow->events_as_json)
        output_print_object(OUTPUT_JSONL, resource_event(event), stdout);
    if (follow->event_cb)
        follow->event_cb(follow->data, event);
    json_t *json = *event->json ? json_loads(event->json, 0, NULL) : NULL;
    if (strcmp(event->kind, "step") == 0)
        take_step(follow, json);
    else if (strcmp(event->kind, "evaluation") == 0)
        take_evaluation(follow, json);
    else if (strcmp(event->kind, "sample") == 0)
        take_text(&follow->sample, event->text);
    else
        progress_note(follow->progress, "%s", event->text);
    if (strcmp(event->kind, "plan-chosen") == 0)
        take_plan(follow, json);
    json_decref(json);
    if (follow->state.step)
        progress_update(follow->progress, &follow->state, (double)rpc_clock_ms() / 1000);
    follow->over = is_end(event->kind);
    return follow->over;
}

/* A job without a feasible plan ends with the exit code that its submission would have had. */
static int exit_of_cause(const char *cause)
{
    if (strcmp(cause, "InfeasibleMemory") == 0)
        return EXIT_NO_PLAN;
    return strcmp(cause, "PlanRefused") == 0 ? EXIT_INPUT : EXIT_FAILED;
}

/* Ask the job itself how it ended. */
static int conclude(const struct follow *follow, struct client *client, struct error *err)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    request.job = (char *)follow->job;
    int code = client_call(client, COORDINATOR_GET_JOB, &request.base, 0, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__JobStatus *status = ((const Gimbal__GetJobReply *)message)->status;
    if (status && status->state != GIMBAL__JOB_STATUS__STATE__DONE)
        code = error_set(err, exit_of_cause(status->cause), "%s %s: %s", follow->job,
                         resource_job_state(status->state), status->reason);
    message_free(message);
    return code;
}

int follow_run(struct follow *follow, const struct history_options *options, struct error *err)
{
    struct history_options of_job = *options;
    of_job.job = follow->job;
    int code = history_follow(&of_job, take, follow, err);
    progress_close(follow->progress);
    return code == EXIT_DONE ? conclude(follow, options->client, err) : code;
}
