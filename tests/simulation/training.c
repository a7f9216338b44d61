/* training.c - the steps of a simulated executor: forward, backward, a reduction with the others,
 * and the optimizer, and after the last one what is left to do; each takes its time, and in each
 * something may happen.
 *
 * A reduction needs all ranks of the epoch; then each of them applies the step for itself, a little
 * apart. Each tells its way in a trail, as real executors do.
 *
 * What executors leave in the files that their workers hold: the newest step, who has finished it,
 * and its ledger. The worker's own code hands them on. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/matrix.h"
#include "tests/simulation/measured.h"
#include "tests/simulation/world.h"

#define SAMPLES 64 /* of a step */

uint64_t ledger_share(uint64_t step, uint32_t rank, uint32_t ranks)
{
    uint64_t share = 0;
    for (uint64_t i = (uint64_t)SAMPLES * rank / ranks; i < (uint64_t)SAMPLES * (rank + 1) / ranks;
         i++)
        share += hash_number(HASH_START, step * SAMPLES + i);
    return share;
}

uint64_t ledger_add(uint64_t ledger, uint64_t step, uint64_t shares)
{
    return hash_number(hash_number(hash_number(HASH_START, ledger), step), shares);
}

/* The same for all jobs: after each number of steps, as far as anybody has asked. */
uint64_t ledger_right(uint64_t steps)
{
    static uint64_t *right;
    static size_t count, capacity;
    while (count <= steps) {
        uint64_t next =
            count == 0 ? LEDGER_START
                       : ledger_add(right[count - 1], count - 1, ledger_share(count - 1, 0, 1));
        right = grow(right, count, &capacity, sizeof *right);
        right[count++] = next;
    }
    return right[steps];
}

/* ---- steps ---- */

#define NOBODY_YET INT_MIN /* whom an executor awaits that has just arrived */

static void training_leave_trail(const struct executor *executor, enum trail_kind kind,
                                 const char *name, int awaits)
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

static void training_enter(struct executor *executor, enum phase phase, uint64_t takes_ms,
                           executor_cb next)
{
    executor->phase_ms = world_now_ms();
    training_leave_trail(executor, TRAIL_COMPUTES, phase_name(phase), -1);
    executor_after(executor, takes_ms, next);
    matrix_enter(executor, phase, takes_ms);
}

static void training_tell(struct executor *executor, Gimbal__TelemetryRecord *record)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY;
    event.telemetry = record;
    executor_say(executor, &event);
}

static void training_tell_step(struct executor *executor)
{
    Gimbal__StepRecord step = GIMBAL__STEP_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    step.step = executor->step;
    step.skipped = executor->crew->spoiled;
    step.loss = step.skipped ? NAN : 1.0 / (double)executor->step;
    step.seconds = (double)executor->step_ms / 1000;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    record.step = &step;
    training_tell(executor, &record);
}

/* Of one rank, as the others have the same. */
static void training_tell_evaluation(struct executor *executor)
{
    Gimbal__EvaluationRecord evaluation = GIMBAL__EVALUATION_RECORD__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    evaluation.step = executor->step;
    evaluation.loss = 1.0 / (double)executor->step;
    evaluation.targets = HELD_OUT_TARGETS;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION;
    record.evaluation = &evaluation;
    if (executor->rank == 0)
        training_tell(executor, &record);
}

static void training_say_paused(struct executor *executor)
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
static void training_apply(struct executor *executor)
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
    training_tell_step(executor);
    if (executor->step >= executor->steps) {
        training_begin(executor);
        return;
    }
    if (executor->wish) {
        executor->pauses++;
        training_say_paused(executor);
    }
    executor->paused = executor->resumed < executor->pauses;
    if (!executor->paused)
        training_begin(executor);
}

static void training_arm(struct executor *executor)
{
    training_enter(executor, PHASE_OPTIMIZER, duration_ms(DURATION_APPLY), training_apply);
}

static bool training_takes_part(const struct executor *executor)
{
    return executor->arrived && !executor->told && !executor->ended && !executor->stopped &&
           !executor->muted;
}

/* The first that has not come, or is not heard; the executor itself does not count. */
static int training_find_missing(const struct executor *executor)
{
    const struct crew *crew = executor->crew;
    int other = -1;
    for (size_t i = 0; i < crew->count; i++) {
        const struct executor *peer = crew->members[i];
        if (peer == executor || peer->rank >= executor->trainers)
            continue;
        if (!training_takes_part(peer))
            return (int)peer->rank;
        other = (int)peer->rank;
    }
    return executor->muted ? other : -1;
}

/* All have come: each has the sum, and whether one of them wishes to pause. */
static void training_reduce(const struct crew *crew, uint64_t sum, bool pause)
{
    for (size_t i = 0; i < crew->count; i++) {
        struct executor *executor = crew->members[i];
        if (executor->rank >= executor->trainers || executor_is_busy(executor))
            continue; /* it only gives its state, or it is about to give up */
        executor->arrived = false;
        executor->reduced = sum;
        executor->wish = pause;
        training_enter(executor, PHASE_REDUCE, duration_ms(DURATION_REDUCE), training_arm);
    }
}

static void training_await_peer(struct executor *executor)
{
    int missing = training_find_missing(executor);
    if (missing != executor->awaits)
        training_leave_trail(executor, TRAIL_EXCHANGES, "all_reduce", missing);
    executor->awaits = missing;
}

void training_meet(const struct crew *crew)
{
    unsigned arrived = 0;
    uint64_t sum = 0;
    bool pause = false;
    for (size_t i = 0; i < crew->count; i++) {
        const struct executor *peer = crew->members[i];
        arrived += training_takes_part(peer) ? 1 : 0;
        sum += training_takes_part(peer) ? peer->share : 0;
        pause = pause || peer->pause > peer->pauses;
    }
    if (crew->count > 0 && arrived == crew->members[0]->trainers) {
        training_reduce(crew, sum, pause);
        return;
    }
    for (size_t i = 0; i < crew->count; i++)
        if (crew->members[i]->arrived && !crew->members[i]->stopped)
            training_await_peer(crew->members[i]);
}

static void training_arrive(struct executor *executor)
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

static void training_go_back(struct executor *executor)
{
    if (!executor->stuck)
        training_enter(executor, PHASE_BACKWARD, executor->step_ms - executor->step_ms / 3,
                       training_arrive);
}

static void training_finish(struct executor *executor)
{
    training_tell_evaluation(executor);
    executor_finish(executor);
}

void training_begin(struct executor *executor)
{
    if (executor->step >= executor->steps) {
        training_enter(executor, PHASE_END, duration_ms(DURATION_END), training_finish);
        return;
    }
    training_enter(executor, PHASE_FORWARD, executor->step_ms / 3 + duration_first_ms(executor),
                   training_go_back);
}

/* ---- what outlives an executor ---- */

struct estate {
    char job[32];
    uint64_t step, step_epoch, ledger;
};

void executor_inherit(struct executor *executor)
{
    struct estate left;
    if (executor->state_fd < 0 || pread(executor->state_fd, &left, sizeof left, 0) != sizeof left)
        return;
    if (strcmp(left.job, executor->job) != 0)
        world_fail("%s rank %u on %s is given what an executor of %s has left", executor->job,
                   executor->rank, executor->node->name, left.job);
    executor->step = left.step;
    executor->step_epoch = left.step_epoch;
    executor->ledger = left.ledger;
    world->tally.inherited++;
}

void executor_persist(const struct executor *executor)
{
    struct estate estate = {
        .step = executor->step, .step_epoch = executor->step_epoch, .ledger = executor->ledger};
    memcpy(estate.job, executor->job, sizeof estate.job);
    if (executor->state_fd >= 0 &&
        pwrite(executor->state_fd, &estate, sizeof estate, 0) != sizeof estate)
        world_fail("no memory for the state of %s", executor->job);
}
