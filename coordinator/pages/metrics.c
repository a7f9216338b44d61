/* metrics.c - figures of the cluster and its jobs, for Prometheus.
 *
 * The values of labels are bounded: nodes, devices and jobs that exist at the moment, and closed
 * lists of words. Jobs that have ended are only counted. The label of a job is `job_id`, because
 * `job` is Prometheus's own label for what it scrapes. Counters begin when the coordinator
 * starts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/memory.h"
#include "common/rpc/coordinator_service.h"
#include "coordinator/pages/exposition.h"
#include "coordinator/pages/pages.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"

#define GAUGE EXPOSITION_GAUGE
#define COUNTER EXPOSITION_COUNTER
#define SUMMARY EXPOSITION_SUMMARY

static void metrics_add_nodes(struct exposition *out, const struct state *state)
{
    size_t counts[WORKER_LOST + 1] = {0};
    uint64_t now_ms = state_now_ms(state);
    for (size_t i = 0; i < membership_count(state->membership); i++)
        counts[worker_state(membership_at(state->membership, i))]++;
    exposition_family(out, "gimbal_nodes", GAUGE, "Nodes by state.");
    for (int at = 0; at <= WORKER_LOST; at++)
        exposition_add(out, (double)counts[at], "state", worker_state_name((enum worker_state)at),
                       NULL);
    exposition_family(out, "gimbal_node_silence_seconds", GAUGE,
                      "Since anything was last heard of a node that is not lost.");
    for (size_t i = 0; i < membership_count(state->membership); i++) {
        const struct worker *worker = membership_at(state->membership, i);
        uint64_t silence_ms = now_ms > worker->heard_ms ? now_ms - worker->heard_ms : 0;
        if (!worker->dead)
            exposition_add(out, 1e-3 * (double)silence_ms, "node", worker->name, NULL);
    }
}

/* DEVICE_FREE: can be granted. DEVICE_KEPT: cannot, because its node is suspect or draining. */
enum device_state { DEVICE_BUSY, DEVICE_FREE, DEVICE_KEPT, DEVICE_STATES };

static enum device_state device_state(const struct device_view *view)
{
    if (view->holder[0])
        return DEVICE_BUSY;
    return view->grantable ? DEVICE_FREE : DEVICE_KEPT;
}

static void metrics_add_devices(struct exposition *out, const struct state *state)
{
    static const char *const words[DEVICE_STATES] = {"busy", "free", "unavailable"};
    size_t counts[HARDWARE_GPU + 1][DEVICE_STATES] = {{0}};
    struct device_view *views;
    size_t count = membership_devices(state->membership, &views);
    for (size_t i = 0; i < count; i++)
        counts[views[i].device->kind][device_state(&views[i])]++;
    free(views);
    exposition_family(out, "gimbal_devices", GAUGE,
                      "Devices of nodes that are not lost, by kind and state.");
    for (int kind = 0; kind <= HARDWARE_GPU; kind++)
        for (int at = 0; at < DEVICE_STATES; at++)
            exposition_add(out, (double)counts[kind][at], "kind",
                           hardware_kind_name((enum hardware_kind)kind), "state", words[at], NULL);
    exposition_family(out, "gimbal_device_slowdown_ratio", GAUGE,
                      "How many times as long as it should a slow device computes.");
    for (size_t i = 0; i < state->conditions->slow_count; i++) {
        char index[16];
        const struct slow_device *slow = &state->conditions->slow[i];
        snprintf(index, sizeof index, "%u", slow->device.index);
        exposition_add(out, slow->factor, "node", slow->device.worker, "device", index, NULL);
    }
}

/* A job that has not ended. plan and steps: of a job that has devices, as far as there are any;
 * otherwise NULL. */
struct metrics_subject {
    const struct job *job;
    const struct plan *plan;
    const struct steps *steps;
};

static bool job_metric_devices(const struct metrics_subject *of, double *value)
{
    *value = of->job->holding ? (double)job_trainers(of->job) : 0;
    return true;
}

static bool job_metric_step(const struct metrics_subject *of, double *value)
{
    *value = (double)of->job->step;
    return true;
}

static bool job_metric_steps(const struct metrics_subject *of, double *value)
{
    *value = (double)of->job->steps;
    return true;
}

static bool job_metric_loss(const struct metrics_subject *of, double *value)
{
    *value = of->job->loss;
    return of->job->step > 0 && of->job->holding && !isnan(of->job->loss);
}

static bool job_metric_tokens(const struct metrics_subject *of, double *value)
{
    *value = of->steps && of->job->state == JOB_RUNNING ? steps_tokens_per_s(of->steps) : 0;
    return true;
}

static bool job_metric_measured(const struct metrics_subject *of, double *value)
{
    *value = of->steps ? steps_time_median_s(of->steps) : 0;
    return *value > 0;
}

static bool job_metric_predicted(const struct metrics_subject *of, double *value)
{
    *value = of->plan ? of->plan->predicted.step_time_s : 0;
    return *value > 0;
}

static bool job_metric_memory(const struct metrics_subject *of, double *value)
{
    *value = of->plan ? (double)of->plan->predicted.memory_bytes_max : 0;
    return *value > 0;
}

static bool job_metric_bubble(const struct metrics_subject *of, double *value)
{
    *value = of->plan ? of->plan->predicted.bubble : 0;
    return of->plan != NULL;
}

static bool job_metric_newest(const struct metrics_subject *of, double *value)
{
    const struct step_point *last = of->steps ? steps_last(of->steps) : NULL;
    *value = last ? 1e-3 * (double)last->end_ms : 0;
    return last != NULL;
}

static bool job_metric_checkpoint(const struct metrics_subject *of, double *value)
{
    *value = (double)of->job->checkpoint_step;
    return true;
}

static bool job_metric_restarts(const struct metrics_subject *of, double *value)
{
    *value = (double)of->job->restarts;
    return true;
}

static bool job_metric_epoch(const struct metrics_subject *of, double *value)
{
    *value = (double)of->job->epoch;
    return true;
}

/* Figures of each job that has not ended; what is not known is left out. */
static const struct job_family {
    const char *name, *help;
    bool (*read)(const struct metrics_subject *of, double *value);
} job_families[] = {
    {"gimbal_job_devices", "Devices that a job trains on.", job_metric_devices},
    {"gimbal_job_step", "Steps that a job has finished.", job_metric_step},
    {"gimbal_job_steps", "Steps that it is to train.", job_metric_steps},
    {"gimbal_job_loss", "Loss of its newest step.", job_metric_loss},
    {"gimbal_job_tokens_per_second", "Tokens it learns from, over its newest steps.",
     job_metric_tokens},
    {"gimbal_job_step_seconds", "Median time of its newest steps.", job_metric_measured},
    {"gimbal_job_step_predicted_seconds", "What its plan predicts a step to take.",
     job_metric_predicted},
    {"gimbal_job_memory_predicted_bytes", "What its plan predicts its largest rank to take.",
     job_metric_memory},
    {"gimbal_job_bubble_predicted_ratio", "Share of a step in which its stages wait.",
     job_metric_bubble},
    {"gimbal_job_last_step_timestamp_seconds", "When it finished its newest step, since 1970.",
     job_metric_newest},
    {"gimbal_job_checkpoint_step", "Step of its newest checkpoint; 0: it has none.",
     job_metric_checkpoint},
    {"gimbal_job_restarts", "Times it began again without getting further.", job_metric_restarts},
    {"gimbal_job_epoch", "Plans that it has had.", job_metric_epoch},
};

static void metrics_add_jobs(struct exposition *out, const struct state *state)
{
    size_t counts[JOB_STATES] = {0};
    for (size_t i = 0; i < jobs_count(state->jobs); i++)
        counts[jobs_at(state->jobs, i)->state]++;
    exposition_family(out, "gimbal_jobs", GAUGE,
                      "Jobs by state; of those that have ended the newest.");
    for (int at = JOB_NEW + 1; at < JOB_STATES; at++)
        exposition_add(out, (double)counts[at], "state", job_state_name((enum job_state)at), NULL);
    exposition_family(out, "gimbal_job_info", GAUGE, "A job that has not ended, always 1.");
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        const struct job *job = jobs_at(state->jobs, i);
        if (!job_ended(job))
            exposition_add(out, 1, "job_id", job->id, "name", job->name, "user", job->user, "state",
                           job_state_name(job->state), "reason", job_reason_name(job->reason),
                           "plan", job->plan, NULL);
    }
}

/* Nothing is looked up for jobs without devices, of which thousands may be waiting. */
static struct metrics_subject *metrics_find_subjects(const struct state *state, size_t *count)
{
    struct metrics_subject *subjects = xcalloc(jobs_count(state->jobs), sizeof *subjects);
    *count = 0;
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        const struct job *job = jobs_at(state->jobs, i);
        if (job_ended(job))
            continue;
        struct metrics_subject *subject = &subjects[(*count)++];
        subject->job = job;
        if (!job->holding)
            continue;
        const struct job_telemetry *measured = telemetry_find(state->telemetry, job->id);
        subject->plan = dossier_find(state, job->id)->planning.plan;
        subject->steps = measured ? &measured->steps : NULL;
    }
    return subjects;
}

static void metrics_add_job_families(struct exposition *out, const struct state *state)
{
    size_t count;
    struct metrics_subject *subjects = metrics_find_subjects(state, &count);
    for (size_t i = 0; i < sizeof job_families / sizeof *job_families; i++) {
        exposition_family(out, job_families[i].name, GAUGE, job_families[i].help);
        for (size_t k = 0; k < count; k++) {
            const struct job *job = subjects[k].job;
            double value;
            if (job_families[i].read(&subjects[k], &value))
                exposition_add(out, value, "job_id", job->id, "name", job->name, NULL);
        }
    }
    free(subjects);
}

static void metrics_add_events(struct exposition *out, const struct history *history)
{
    exposition_family(out, "gimbal_events_total", COUNTER, "Events, as of 'gimbal events'.");
    for (size_t i = 0; i < history->kind_count; i++)
        exposition_add(out, (double)history->kinds[i].count, "kind", history->kinds[i].kind, NULL);
}

static double replans_count(const struct history_replans *replans)
{
    return (double)replans->count;
}

static double replans_seconds(const struct history_replans *replans)
{
    return replans->seconds;
}

static double replans_lost(const struct history_replans *replans)
{
    return (double)replans->steps_lost;
}

static void metrics_add_replans(struct exposition *out, const struct history *history)
{
    static const struct {
        const char *name, *help;
        double (*read)(const struct history_replans *replans);
    } families[] = {
        {"gimbal_replans_total", "Times a job went on after it broke or moved, by reason.",
         replans_count},
        {"gimbal_replan_seconds_total", "From what broke to the next finished step.",
         replans_seconds},
        {"gimbal_replan_steps_lost_total", "Finished steps that were trained again.", replans_lost},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        exposition_family(out, families[i].name, COUNTER, families[i].help);
        for (int reason = 0; reason < JOB_REASONS; reason++)
            if (history->replans[reason].count > 0)
                exposition_add(out, families[i].read(&history->replans[reason]), "reason",
                               job_reason_name((enum job_reason)reason), NULL);
    }
}

static void metrics_add_calls(struct exposition *out, const struct state *state)
{
    const struct rpc_counters *counters = rpc_server_counters(state->server);
    exposition_family(out, "gimbal_rpc_answered_total", COUNTER, "Calls answered, by status.");
    for (int status = 0; status < RPC_STATUS_COUNT; status++)
        exposition_add(out, (double)counters->answered[status], "status",
                       rpc_status_name((enum rpc_status)status), NULL);
    exposition_family(out, "gimbal_rpc_malformed_total", COUNTER, "Frames that were no request.");
    exposition_add(out, (double)counters->malformed, NULL);
    exposition_family(out, "gimbal_rpc_parked", GAUGE, "Calls that wait for news.");
    exposition_add(out, (double)rpc_server_held_count(state->server), NULL);
    exposition_family(out, "gimbal_rpc_handling_seconds", SUMMARY,
                      "From a call's arrival until it was handled, by method.");
    for (unsigned method = 0; method < COORDINATOR_METHOD_COUNT; method++) {
        const struct histogram *handling = rpc_server_handling(state->server, method);
        if (handling->count > 0)
            exposition_add_summary(out, handling, 1e-9, "method",
                                   service_coordinator.methods[method].name);
    }
}

static void metrics_add_own(struct exposition *out, const struct state *state)
{
    exposition_family(out, "gimbal_build_info", GAUGE, "The coordinator's release, always 1.");
    exposition_add(out, 1, "version", state->options.release, NULL);
    exposition_family(out, "gimbal_term", GAUGE, "Starts of the coordinator on this store.");
    exposition_add(out, (double)state->options.term, NULL);
    exposition_family(out, "gimbal_store_commit_seconds", SUMMARY,
                      "What it took to make a turn's changes durable.");
    exposition_add_summary(out, store_commit_ns(state->options.store), 1e-9, NULL, NULL);
    exposition_family(out, "gimbal_plan_search_seconds", SUMMARY,
                      "What the search for a job's plan took.");
    exposition_add_summary(out, &state->history->search_us, 1e-6, NULL, NULL);
    exposition_add_process(out, 1e-3 * (double)state->started_ms);
}

int pages_metrics(void *data, const struct web_request *request, char **out, size_t *size,
                  struct error *err)
{
    const struct state *state = ((struct pages *)data)->state;
    struct exposition *exposition = exposition_create();
    (void)request, (void)err;
    metrics_add_own(exposition, state);
    metrics_add_nodes(exposition, state);
    metrics_add_devices(exposition, state);
    metrics_add_jobs(exposition, state);
    metrics_add_job_families(exposition, state);
    metrics_add_events(exposition, state->history);
    metrics_add_replans(exposition, state->history);
    metrics_add_calls(exposition, state);
    *out = exposition_finish(exposition, size);
    return 0;
}
