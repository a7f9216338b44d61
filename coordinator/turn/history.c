/* history.c - words and JSON of what happens, a function for each kind of it. */
#include "coordinator/turn/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/message/message.h"
#include "coordinator/turn/dossiers.h"

#define STEP_EVENT_MS 1000
#define STEP_EVENT_SCARCE_MS 60000 /* while the disk is full */

/* A linear search will do: there are a few dozen kinds, all of them ours. */
static void history_count(struct history *history, const char *kind)
{
    size_t i = 0;
    while (i < history->kind_count && strcmp(history->kinds[i].kind, kind) != 0)
        i++;
    if (i == history->kind_count) {
        history->kinds = grow(history->kinds, i, &history->kind_capacity, sizeof *history->kinds);
        snprintf(history->kinds[i].kind, HISTORY_KIND_SIZE, "%s", kind);
        history->kind_count++;
    }
    history->kinds[i].count++;
}

void history_finish(struct history *history)
{
    free(history->kinds);
}

static void history_append(struct state *state, const Gimbal__Event *event)
{
    size_t size;
    void *bytes = message_pack(&event->base, &size);
    store_put_event(state->options.store, stream_append(state->events, bytes, size), event);
    free(bytes);
}

void history_tell(struct state *state, const char *kind, const char *job, const char *node,
                  json_t *json, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    va_end(arguments);
    char *packed = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    Gimbal__Event event = GIMBAL__EVENT__INIT;
    event.unix_ms = state_now_ms(state);
    event.job = (char *)job;
    event.node = (char *)node;
    event.kind = (char *)kind;
    event.text = text;
    event.json = packed ? packed : (char *)"";
    history_append(state, &event);
    history_count(state->history, kind);
    log_line(LOG_INFO, "%s: %.*s", kind, (int)strcspn(text, "\n"), text);
    free(packed);
    free(text);
}

void history_tell_membership(struct state *state, const struct membership_event *event)
{
    char kind[64];
    snprintf(kind, sizeof kind, "node-%s", membership_event_name(event->kind));
    history_tell(state, kind, "", event->worker, NULL, "node %s %s%s%s", event->worker,
                 membership_event_name(event->kind), event->reason[0] ? ": " : "", event->reason);
}

void history_tell_job(struct state *state, const struct job *job)
{
    struct dossier *dossier = dossier_find(state, job->id);
    if (dossier->told_state == job->state && dossier->told_reason == job->reason)
        return;
    if (job->state == JOB_PLANNING)
        dossier->told_step = 0;
    dossier->told_state = job->state;
    dossier->told_reason = job->reason;
    char kind[32] = "job-";
    for (size_t i = strlen(kind), j = 0; job_state_name(job->state)[j]; i++, j++)
        kind[i] = (char)(job_state_name(job->state)[j] | 0x20); /* letters only */
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:I}", "job", job->id, "state",
                  job_state_name(job->state), "reason", job_reason_name(job->reason), "words",
                  job->words, "epoch", (int)job->epoch, "step", (json_int_t)job->step);
    history_tell(state, kind, job->id, "", json, "%s (%s) %s%s%s", job->id, job->name,
                 job_state_name(job->state), job->words[0] ? ": " : "", job->words);
}

void history_tell_replan(struct state *state, const struct job *job)
{
    struct replan *replan = &dossier_find(state, job->id)->replan;
    json_t *json;
    if (!replan->going)
        return;
    char *text = replan_end(replan, job, state_now_ms(state), &json);
    struct history_replans *replans = &state->history->replans[replan->reason];
    replans->count++;
    replans->steps_lost += replan->lost;
    replans->seconds += replan->took_s;
    history_tell(state, job->replans ? "job-replanned" : "job-restarted", job->id, "", json, "%s",
                 text);
    free(text);
}

/* What readiness for a loss costs, and what a loss then costs; "" if that is not known. */
static const char *history_print_safety(const struct safety *safety, char *out, size_t size)
{
    char bytes[32], seconds[32], every[40] = "after every step";
    if (safety->copy_every > 1)
        snprintf(every, sizeof every, "every %" PRIu64 " steps", safety->copy_every);
    out[0] = '\0';
    if (safety->kind == SAFETY_REPLICAS)
        snprintf(out, size, "; all state is on two nodes: losing a node costs no step");
    if (safety->kind == SAFETY_COPIES)
        snprintf(out, size, "; state held by a single %s is copied %s: %s a rank, %s each time",
                 safety->single ? "device" : "node", every,
                 units_print_bytes(bytes, sizeof bytes, (double)safety->copy_bytes),
                 units_print_seconds(seconds, sizeof seconds, safety->copy_s));
    if (safety->no_room)
        snprintf(out, size,
                 "; no room for copies of state, up to %s a rank: losing a node costs all steps "
                 "since the newest checkpoint",
                 units_print_bytes(bytes, sizeof bytes, (double)safety->copy_bytes));
    else if (safety->kind == SAFETY_CHECKPOINT)
        snprintf(out, size, "; losing a node costs all steps since the newest checkpoint");
    return out;
}

void history_tell_plan(struct state *state, const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    const struct planning *planning = &dossier->planning;
    const struct plan *plan = planning->plan;
    const struct safety *safety = &planning->safety;
    char division[64], step[32], memory[32], loss[160];
    plan_print(division, sizeof division, plan);
    units_print_seconds(step, sizeof step, plan->predicted.step_time_s);
    units_print_bytes(memory, sizeof memory, (double)plan->predicted.memory_bytes_max);
    json_t *json =
        json_pack("{s:s, s:o, s:s, s:b, s:s, s:I, s:f, s:I}", "plan", plan->id, "content",
                  json_loads(planning->json, 0, NULL), "candidates", planning->candidates,
                  "planned_before", (int)dossier->planned_before, "safety",
                  safety_name(safety->kind), "copy_bytes", (json_int_t)safety->copy_bytes, "copy_s",
                  safety->copy_s, "copy_every", (json_int_t)safety->copy_every);
    history_tell(state, "plan-chosen", job->id, "", json,
                 "%s: plan %s, %s on %zu device%s: %s a step, %.0f tok/s, %s predicted%s", job->id,
                 plan->id, division, planning->rank_count, planning->rank_count == 1 ? "" : "s",
                 step, plan->predicted.tokens_per_s, memory,
                 history_print_safety(safety, loss, sizeof loss));
}

/* A loss that has diverged is not a number that JSON can express. */
static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void history_write_step(struct state *state, const struct job *job)
{
    struct dossier *dossier = dossier_find(state, job->id);
    const struct job_telemetry *measured = telemetry_find(state->telemetry, job->id);
    dossier->told_step = job->step;
    dossier->told_ms = state_now_ms(state);
    double seconds = steps_time_median_s(&measured->steps);
    double predicted = dossier->planning.plan->predicted.step_time_s;
    char took[32], expected[32];
    units_print_seconds(took, sizeof took, seconds);
    units_print_seconds(expected, sizeof expected, predicted);
    json_t *json = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)job->step,
                             "steps", (json_int_t)job->steps, "loss", json_number(job->loss),
                             "tokens_per_s", json_number(job->tokens_per_s), "step_time_s",
                             json_number(seconds), "predicted_step_time_s", json_number(predicted));
    history_tell(state, "step", job->id, "", json,
                 "%s step %llu/%llu loss %.3f %.0f tok/s, %s a step (predicted %s)", job->id,
                 (unsigned long long)job->step, (unsigned long long)job->steps, job->loss,
                 job->tokens_per_s, took, expected);
}

void history_tell_step(struct state *state, const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    uint64_t now_ms = state_now_ms(state);
    uint64_t every_ms = state->disk_scarce ? STEP_EVENT_SCARCE_MS : STEP_EVENT_MS;
    bool last = job->step >= job->steps && dossier->told_step < job->step;
    if (!last && (dossier->told_step == job->step || now_ms < dossier->told_ms + every_ms))
        return;
    store_put_job(state->options.store, job);
    history_write_step(state, job);
}

void history_tell_evaluation(struct state *state, const Gimbal__EvaluationRecord *record)
{
    if (record->targets > 0) {
        json_t *json = json_pack("{s:I, s:o, s:I}", "step", (json_int_t)record->step, "loss",
                                 json_number(record->loss), "targets", (json_int_t)record->targets);
        history_tell(state, "evaluation", record->job, "", json,
                     "%s step %llu held-out loss %.3f over %llu targets", record->job,
                     (unsigned long long)record->step, record->loss,
                     (unsigned long long)record->targets);
    }
    if (record->text.len > 0) {
        char *text = text_clean(record->text.data, record->text.len);
        history_tell(state, "sample", record->job, "", NULL, "%s", text);
        free(text);
    }
}

bool history_knows_evaluation(const struct state *state, const struct job *job, uint64_t step)
{
    const struct job_telemetry *measured = telemetry_find(state->telemetry, job->id);
    const struct evaluations *all = measured ? &measured->evaluations : NULL;
    return all && all->count > 0 && all->items[all->count - 1].step >= step;
}

void history_tell_last(struct state *state, const struct job *job, const Gimbal__LastStep *last)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    if (dossier->replan.ready_ms > 0) /* and there was nothing left to train behind it */
        history_tell_replan(state, job);
    if (dossier->told_step < job->step && telemetry_find(state->telemetry, job->id))
        history_write_step(state, job);
    if (last->held_out_targets == 0 || history_knows_evaluation(state, job, job->steps))
        return;
    Gimbal__EvaluationRecord record = GIMBAL__EVALUATION_RECORD__INIT;
    record.job = (char *)job->id;
    record.step = job->steps;
    record.loss = last->held_out_loss;
    record.targets = last->held_out_targets;
    const struct evaluation_record evaluation = {
        .step = record.step, .loss = record.loss, .targets = record.targets};
    telemetry_evaluation(state->telemetry, job->id, &evaluation);
    history_tell_evaluation(state, &record);
}
