/* stalls.c - finds the rank that holds up its job, reports it once, and has its executor ended.
 *
 * What follows is the same as whenever an executor is lost: the others leave the epoch, and the job
 * goes on without it. The verdict is not stored: a coordinator that is restarted before it could
 * act hears the same from the workers again. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include <stdio.h>

/* How many steps a rank may be in one place: a step may take long, and all but one rank of a
 * pipeline wait for most of it. */
#define STEPS_HELD 3
/* Heartbeats that may be missed before a rank's position counts as unknown. */
#define HEARTBEATS_FRESH 3

static struct stall_position position_of(const Gimbal__RankPosition *message)
{
    struct stall_position position = {
        .known = true,
        .inside = message->inside,
        .exchanges = message->exchanges,
        .group = message->group,
        .number = message->number,
        .step = message->step,
        .awaits = (int)(message->awaits - 1),
        .held_ms = message->held_ms,
        .stopped = message->stopped,
        .stopped_ms = message->stopped_ms,
    };
    snprintf(position.call, sizeof position.call, "%s", message->call);
    size_t count = message->n_past_groups < message->n_past_numbers ? message->n_past_groups
                                                                    : message->n_past_numbers;
    for (size_t i = 0; i < count && i < STALL_PAST_MAX; i++) {
        position.past[i].group = message->past_groups[i];
        position.past[i].number = message->past_numbers[i];
        position.past_count++;
    }
    return position;
}

/* The longest that a rank may be in one place: as the job file says, but no less than some steps as
 * they were predicted and as they were measured. */
static uint64_t limit_ms(const struct service *service, const struct job *job,
                         const struct dossier *dossier)
{
    const struct job_telemetry *measured = telemetry_find(service->telemetry, job->id);
    double limit_s = dossier->config->elastic.stall;
    double predicted_s = dossier->planning.plan ? dossier->planning.plan->predicted.step_time_s : 0;
    double measured_s = measured ? steps_time_median_s(&measured->steps) : 0;
    if (STEPS_HELD * predicted_s > limit_s)
        limit_s = STEPS_HELD * predicted_s;
    if (STEPS_HELD * measured_s > limit_s)
        limit_s = STEPS_HELD * measured_s;
    return (uint64_t)(limit_s * 1000);
}

static void act_on(struct service *service, const struct job *job,
                   const struct stall_verdict *verdict)
{
    const struct device_ref *device = &job->ranks[verdict->rank].device;
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:f, s:s, s:I, s:I, s:b}", "verdict", stall_kind_name(verdict->kind),
        "rank", (json_int_t)verdict->rank, "waiting", (json_int_t)verdict->waiting, "held_s",
        (double)verdict->held_ms * 1e-3, "call", verdict->call, "number",
        (json_int_t)verdict->number, "step", (json_int_t)verdict->step, "ended", verdict->ends);
    service_tell(service, "rank-stalled", job->id, device->worker, json,
                 "%s: rank %zu on %s/%u %s%s", job->id, verdict->rank, device->worker,
                 device->index, verdict->words, verdict->ends ? "; its executor is ended" : "");
    if (verdict->ends)
        assignments_end(service->assignments, job, verdict->rank, verdict->words);
}

static void judge(struct service *service, const struct job *job)
{
    struct dossier *dossier = dossier_find(service, job->id);
    bool begins = job->state == JOB_STARTING;
    if (!dossier->config || (!begins && job->state != JOB_RUNNING && job->state != JOB_PAUSING))
        return;
    const struct stall_limits limits = {
        .held_ms = begins ? (uint64_t)(dossier->config->elastic.stall * 1000)
                          : limit_ms(service, job, dossier),
        .fresh_ms = HEARTBEATS_FRESH * service->options.membership.heartbeat_ms,
    };
    struct stall_verdict verdict;
    if (stalls_judge(&dossier->stalls, &limits, begins, service_now_ms(service), &verdict))
        act_on(service, job, &verdict);
}

void service_hear_positions(struct service *service, struct rpc_call *call,
                            const Gimbal__HeartbeatRequest *request)
{
    for (size_t i = 0; i < request->n_ranks; i++) {
        const Gimbal__RankState *state = request->ranks[i];
        const struct job *job;
        struct error err;
        if (service_find_rank(service, call, state->job, state->epoch, &state->rank, &job, &err) <
            0)
            continue; /* of an epoch that is over */
        struct dossier *dossier = dossier_find(service, job->id);
        struct stall_position position;
        if (state->position)
            position = position_of(state->position);
        stalls_hear(&dossier->stalls, job->epoch, job->rank_count, state->rank,
                    state->position ? &position : NULL, service_now_ms(service));
        if (state->position)
            judge(service, job);
    }
}
