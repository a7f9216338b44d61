/* training.c - the steps of a simulated executor: forward, backward, a reduction with the others,
 * and the optimizer, each of which takes its time, and in each of which something may happen.
 *
 * A reduction needs all ranks of the epoch; then each of them applies the step for itself, a
 * little apart. Each tells its way in a trail, as real executors do. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hash.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/matrix.h"
#include "tests/simulation/measured.h"

#define NOBODY_YET INT_MIN /* whom an executor awaits that has just arrived */

static void leave_trail(const struct executor *executor, enum trail_kind kind, const char *name,
                        int awaits)
{
    struct trail_call call = {.kind = kind,
                              .group = hash_number(HASH_START, executor->epoch),
                              .number = executor->step + 1,
                              .step = executor->step,
                              .entered_ms = executor->phase_ms};
    snprintf(call.name, sizeof call.name, "%s", name);
    trail_enter(executor->trail, 0, &call);
    trail_await(awaits);
}

static void enter(struct executor *executor, enum phase phase, uint64_t takes_ms, executor_cb next)
{
    executor->phase_ms = world_now_ms();
    leave_trail(executor, TRAIL_COMPUTES, phase_name(phase), -1);
    executor_after(executor, takes_ms, next);
    matrix_enter(executor, phase, takes_ms);
}

static void tell(struct executor *executor, Gimbal__TelemetryRecord *record)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY;
    event.telemetry = record;
    executor_say(executor, &event);
}

static void tell_step(struct executor *executor)
{
    Gimbal__StepRecord step = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    step.step = executor->step;
    step.skipped = executor->crew->spoiled;
    step.loss = step.skipped ? NAN : 1.0 / (double)executor->step;
    step.seconds = (double)executor->step_ms / 1000;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    record.step = &step;
    tell(executor, &record);
}

/* Of one rank, as the others have the same. */
static void tell_evaluation(struct executor *executor)
{
    Gimbal__EvaluationRecord evaluation = GIMBAL__EVALUATION_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    evaluation.step = executor->step;
    evaluation.loss = 1.0 / (double)executor->step;
    evaluation.targets = 64;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION;
    record.evaluation = &evaluation;
    if (executor->rank == 0)
        tell(executor, &record);
}

static void say_paused(struct executor *executor)
{
    Gimbal__PausedRequest paused = GIMBAL__PAUSED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    paused.number = executor->pauses;
    paused.step = executor->step;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PAUSED;
    event.paused = &paused;
    executor_say(executor, &event);
}

/* The step is done to this rank's state. */
static void apply(struct executor *executor)
{
    executor->ledger = ledger_add(executor->ledger, executor->step, executor->reduced);
    executor->step++;
    executor->step_epoch = executor->epoch;
    executor_persist(executor);
    trail_leave(executor->trail, 0, world_now_ms());
    if (executor->ledger != ledger_right(executor->step))
        world_fail("%s rank %u: samples or steps are missing, or were taken twice, by step %llu",
                   executor->job, executor->rank, (unsigned long long)executor->step);
    world->tally.applied++;
    if (executor->step > world->tally.reached)
        world->tally.reached = executor->step;
    tell_step(executor);
    if (executor->step >= executor->steps) {
        tell_evaluation(executor);
        executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__DONE, "");
        return;
    }
    if (executor->wish) {
        executor->pauses++;
        say_paused(executor);
    }
    executor->paused = executor->resumed < executor->pauses;
    if (!executor->paused)
        training_begin(executor);
}

static void arm(struct executor *executor)
{
    enter(executor, PHASE_OPTIMIZER, duration_ms(DURATION_APPLY), apply);
}

static bool takes_part(const struct executor *executor)
{
    return executor->arrived && !executor->told && !executor->ended && !executor->stopped &&
           !executor->muted;
}

/* The first that has not come, or is not heard; the executor itself does not count. */
static int find_missing(const struct executor *executor)
{
    const struct crew *crew = executor->crew;
    int other = -1;
    for (size_t i = 0; i < crew->count; i++) {
        const struct executor *peer = crew->members[i];
        if (peer == executor || peer->rank >= executor->trainers)
            continue;
        if (!takes_part(peer))
            return (int)peer->rank;
        other = (int)peer->rank;
    }
    return executor->muted ? other : -1;
}

/* All have come: each has the sum, and whether one of them wishes to pause. */
static void reduce(const struct crew *crew, uint64_t sum, bool pause)
{
    for (size_t i = 0; i < crew->count; i++) {
        struct executor *executor = crew->members[i];
        if (executor->rank >= executor->trainers || executor_is_busy(executor))
            continue; /* it only gives its state, or it is about to give up */
        executor->arrived = false;
        executor->reduced = sum;
        executor->wish = pause;
        enter(executor, PHASE_REDUCE, duration_ms(DURATION_REDUCE), arm);
    }
}

static void await_peer(struct executor *executor)
{
    int missing = find_missing(executor);
    if (missing != executor->awaits)
        leave_trail(executor, TRAIL_EXCHANGES, "all_reduce", missing);
    executor->awaits = missing;
}

void training_meet(const struct crew *crew)
{
    unsigned arrived = 0;
    uint64_t sum = 0;
    bool pause = false;
    for (size_t i = 0; i < crew->count; i++) {
        const struct executor *peer = crew->members[i];
        arrived += takes_part(peer) ? 1 : 0;
        sum += takes_part(peer) ? peer->share : 0;
        pause = pause || peer->pause > peer->pauses;
    }
    if (crew->count > 0 && arrived == crew->members[0]->trainers) {
        reduce(crew, sum, pause);
        return;
    }
    for (size_t i = 0; i < crew->count; i++)
        if (crew->members[i]->arrived && !crew->members[i]->stopped)
            await_peer(crew->members[i]);
}

static void arrive(struct executor *executor)
{
    if (executor->stuck)
        return;
    if (!world->calm && world_chance(world->faults.executor_fault)) {
        executor_break_down(executor);
        return;
    }
    executor->arrived = true;
    executor->awaits = NOBODY_YET;
    executor->share = ledger_share(executor->step, executor->rank, executor->trainers);
    executor->phase_ms = world_now_ms();
    training_meet(executor->crew);
}

static void go_back(struct executor *executor)
{
    if (!executor->stuck)
        enter(executor, PHASE_BACKWARD, executor->step_ms - executor->step_ms / 3, arrive);
}

void training_begin(struct executor *executor)
{
    enter(executor, PHASE_FORWARD, executor->step_ms / 3 + duration_first_ms(executor), go_back);
}
