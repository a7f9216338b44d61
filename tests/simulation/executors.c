/* executors.c - executors without processes: little state machines.
 *
 * One meets its neighbour through the epoch's rendezvous, says that it is ready, trains step by
 * step once it may go (training.c), and leaves; or it faults, or dies, and then its peers give up
 * on it. Asked to stop it does. A stubborn one does not leave, asked or not, and its worker has to
 * kill it in time. Where its job wants it so it leaves an epoch that breaks and stays, with the
 * steps that it has, until the next one. It dies with its worker; killed by itself it leaves them
 * to the next one on its device (estates.c). */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/matrix.h"
#include "tests/simulation/measured.h"

#define STOP_MS_MAX 1500
#define PEER_LOST_MS_MAX 3000
#define SAVING_MS_MAX 10000
/* A worker's timers are that exact; and one that is kept is asked to leave first. */
#define KILL_MS_MAX (SUPERVISOR_PATIENCE_MS + 100)
#define KEPT_MS_MAX (SUPERVISOR_KEEP_MS + 100)
#define SAVE_MS_MAX (SUPERVISOR_SAVING_MS + 100) /* then it is asked once more, and has to go */

void executor_say(struct executor *executor, const Gimbal__ExecutorEvent *event)
{
    size_t size;
    void *bytes = message_pack(&event->base, &size);
    executor->events = grow(executor->events, executor->event_count, &executor->event_capacity,
                            sizeof *executor->events);
    executor->events[executor->event_count++] =
        protobuf_c_message_unpack(event->base.descriptor, NULL, size, bytes);
    free(bytes);
    actor_wake(&executor->node->actor);
}

void executor_end(struct executor *executor, int status, int signal)
{
    executor_rest(executor);
    if (executor->ended)
        return;
    executor->ended = true;
    executor->status = status;
    executor->signal = signal;
    world_trace("%s epoch %" PRIu64 " rank %u ends: %d, signal %d", executor->job, executor->epoch,
                executor->rank, status, signal);
    actor_wake(&executor->node->actor);
}

static void leave(struct executor *executor)
{
    executor_end(executor, executor->status, executor->signal);
}

static void outlive(void *data)
{
    const struct executor *executor = data;
    world_fail("%s epoch %" PRIu64
               " rank %u on %s should have been asked to leave, or killed, by now",
               executor->job, executor->epoch, executor->rank, executor->node->name);
}

/* By itself, unless it is stubborn. */
static void leave_soon(struct executor *executor, uint64_t most_ms)
{
    executor_rest(executor);
    if (executor->stuck || world_chance(world->faults.executor_stubborn))
        executor->next = world_after(KILL_MS_MAX, outlive, executor);
    else
        executor_after(executor, world_between(1, most_ms), leave);
}

static void say_end(struct executor *executor, Gimbal__StoppedRequest__Cause cause,
                    const char *reason, bool keeps)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    stopped.cause = cause;
    stopped.reason = (char *)reason;
    stopped.step = executor->step;
    stopped.keeps = keeps;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED;
    event.stopped = &stopped;
    executor->told = true;
    executor_say(executor, &event);
}

void executor_say_stopped(struct executor *executor, Gimbal__StoppedRequest__Cause cause,
                          const char *reason)
{
    say_end(executor, cause, reason, false);
    executor->status = cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE ? 0 : 1;
    leave_soon(executor, 100);
}

/* Out of its epoch, with all that it has finished. */
static void stay(struct executor *executor, Gimbal__StoppedRequest__Cause cause)
{
    executor_rest(executor);
    executor->kept = true;
    executor->leaving = executor->saving = false;
    crew_leave(executor);
    say_end(executor, cause, "its epoch is over", true);
    executor->next = world_after(KEPT_MS_MAX, outlive, executor);
}

static void leave_epoch(struct executor *executor)
{
    stay(executor, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED);
}

static void give_up(struct executor *executor)
{
    if (executor->keeps)
        stay(executor, GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST);
    else
        executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST,
                             "a peer does not answer");
}

void executor_fail_peers(const struct executor *lost)
{
    check_excuse(lost->job);
    for (size_t i = 0; lost->crew && i < lost->crew->count; i++) {
        struct executor *peer = lost->crew->members[i];
        if (peer == lost || peer->ended || peer->told)
            continue;
        executor_after(peer, world_between(500, PEER_LOST_MS_MAX), give_up);
    }
}

void executor_break_down(struct executor *executor)
{
    executor_fail_peers(executor);
    uint64_t how = world_draw(1000);
    if (how < 400)
        executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT,
                             "the loss is not finite");
    else if (how < 500)
        executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__OUT_OF_MEMORY,
                             "cannot reserve memory");
    else
        executor_end(executor, 0, SIGSEGV);
}

static void ask(struct executor *executor, bool put, uint32_t rank)
{
    char key[32];
    Gimbal__ExecutorRendezvous question = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    snprintf(key, sizeof key, "rank-%u", rank);
    question.id = ++executor->questions;
    question.key = key;
    question.put = put;
    if (put)
        question.value = (ProtobufCBinaryData){strlen(key), (uint8_t *)key};
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS;
    event.rendezvous = &question;
    executor_say(executor, &event);
}

static void meet(struct executor *executor)
{
    if (!world->calm && world_chance(world->faults.executor_fault * 4)) {
        executor_break_down(executor);
        return;
    }
    ask(executor, true, executor->rank);
    ask(executor, false, (executor->rank + 1) % executor->rank_count);
}

/* Every rank of this world has the whole state, so the newest that one of them has is the job's. */
static void gather(struct executor *executor)
{
    const struct crew *crew = executor->crew;
    for (size_t i = 0; i < crew->count; i++) {
        const struct executor *peer = crew->members[i];
        if (peer->step_epoch > executor->step_epoch ||
            (peer->step_epoch == executor->step_epoch && peer->step > executor->step)) {
            executor->step = peer->step;
            executor->ledger = peer->ledger;
            executor->step_epoch = peer->step_epoch;
        }
    }
    executor_persist(executor);
}

static void say_ready(struct executor *executor)
{
    Gimbal__ReadyRequest ready = GIMBAL__READY_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    Gimbal__DataFile file = GIMBAL__DATA_FILE__INIT, *files[] = {&file};
    file.path = (char *)"/data/text";
    file.size = file.hash = 4096;
    ready.files = files;
    ready.n_files = 1;
    ready.program_hash = executor->hash;
    gather(executor);
    ready.step = executor->step;
    if (!world->calm && world_chance(world->faults.executor_wrong_hash)) {
        file.hash++;
        check_condemn(executor->job); /* where it is the first, the next epochs differ from it */
    }
    if (!world->calm && world_chance(world->faults.executor_wrong_hash)) {
        ready.program_hash++;
        check_excuse(executor->job);
    }
    executor->ready = true;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_READY;
    event.ready = &ready;
    executor_say(executor, &event);
}

/* The job file's own line; how long a step takes follows from the job. */
static uint64_t steps_of(const char *yaml)
{
    const char *at = strstr(yaml, "steps: ");
    return at ? strtoull(at + 7, NULL, 10) : 1;
}

/* The next epoch of its job finds it as it was started, but for what it has finished. */
static void renew(struct executor *executor, const Gimbal__Assignment *assignment)
{
    if (!executor->kept || strcmp(executor->job, assignment->job) != 0)
        world_fail("%s epoch %" PRIu64
                   " is given to an executor of %s that has not left epoch %" PRIu64,
                   assignment->job, assignment->epoch, executor->job, executor->epoch);
    executor_rest(executor);
    executor->kept = executor->told = executor->ready = executor->going = false;
    executor->arrived = executor->paused = executor->muted = false;
    executor->pause = executor->resumed = executor->pauses = 0;
    world->tally.stayed++;
}

static void take_assignment(struct executor *executor, const Gimbal__Assignment *assignment)
{
    bool fresh = !executor->job[0];
    if (!fresh)
        renew(executor, assignment);
    executor->keeps = assignment->keeps;
    snprintf(executor->job, sizeof executor->job, "%s", assignment->job);
    executor->epoch = assignment->epoch;
    executor->rank = assignment->rank;
    executor->rank_count = assignment->rank_count;
    executor->trainers = assignment->rank_count - assignment->givers;
    executor->device = assignment->device_index;
    executor->hash = assignment->program_hash;
    if (fresh) {
        executor->ledger = LEDGER_START;
        executor_inherit(executor);
    }
    if (executor->rank < executor->trainers && !(assignment->compute_s > 0))
        world_fail("%s epoch %" PRIu64 " rank %u is not told what it is predicted to take",
                   executor->job, executor->epoch, executor->rank);
    executor->steps = steps_of(assignment->job_yaml);
    executor->step_ms = duration_step_ms(assignment->job_yaml, executor->trainers);
    uint64_t prepare_ms = duration_ms(DURATION_PREPARE);
    executor_after(executor, prepare_ms, meet);
    crew_join(executor);
    check_executor_start(executor);
    if (executor->epoch > 1)
        matrix_enter(executor, PHASE_REPLAN, prepare_ms);
}

static void go(struct executor *executor)
{
    check_go(executor);
    gather(executor);
    executor->going = true;
    if (executor->rank >= executor->trainers && !executor->told) {
        executor->kept = true; /* it has given what it had */
        crew_leave(executor);
        say_end(executor, GIMBAL__STOPPED_REQUEST__CAUSE__DONE, "", true);
        world->tally.gave++;
        return;
    }
    if (!executor->told && !executor_is_busy(executor))
        training_begin(executor);
}

static void resume(struct executor *executor, uint64_t number)
{
    if (number > executor->resumed)
        executor->resumed = number;
    if (!executor->paused || executor->pauses > executor->resumed || executor->told)
        return;
    executor->paused = false;
    if (!executor_is_busy(executor))
        training_begin(executor);
}

/* Asked to leave its epoch, it does, or it hangs. One that saves before takes longer, and does at
 * once when it is asked again. */
static void quiesce(struct executor *executor, bool save)
{
    if (executor->told && (!executor->saving || save))
        return;
    if (!executor->keeps)
        world_fail("%s rank %u cannot stay and is asked to", executor->job, executor->rank);
    if (save && !executor->going)
        world_fail("%s rank %u is to save what it has not begun", executor->job, executor->rank);
    check_executor_stop(executor);
    executor->told = executor->leaving = true;
    executor->saving = save;
    world->tally.saved += save;
    executor_rest(executor);
    if (executor->stuck || world_chance(world->faults.executor_stubborn))
        executor->next = world_after(save ? SAVE_MS_MAX : KILL_MS_MAX, outlive, executor);
    else
        executor_after(executor,
                       save ? world_between(1, SAVING_MS_MAX) : duration_ms(DURATION_QUIESCE),
                       leave_epoch);
}

static void end_saved(struct executor *executor)
{
    executor_fail_peers(executor); /* they have stopped behind the same step */
    executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "behind a step");
}

/* Asked to save and stop. */
static void save(struct executor *executor)
{
    if (executor->told && !executor->saving)
        return;
    check_executor_stop(executor);
    executor->told = executor->saving = true;
    executor->leaving = false;
    world->tally.saved++;
    executor_rest(executor);
    if (executor->stuck)
        executor->next = world_after(SAVE_MS_MAX, outlive, executor);
    else
        executor_after(executor, world_between(1, SAVING_MS_MAX), end_saved);
}

static void take_answer(struct executor *executor, const Gimbal__ExecutorRendezvous *answer)
{
    char key[32];
    snprintf(key, sizeof key, "rank-%u", (executor->rank + 1) % executor->rank_count);
    if (answer->put)
        return;
    if (strcmp(answer->key, key) != 0 || answer->value.len != strlen(key) ||
        memcmp(answer->value.data, key, strlen(key)) != 0)
        world_fail("%s rank %u asked for %s and was told %s", executor->job, executor->rank, key,
                   answer->key);
    if (!executor->told && !executor_is_busy(executor))
        say_ready(executor);
}

void executor_take(struct executor *executor, const Gimbal__ExecutorCommand *command)
{
    if (executor->stopped) {
        executor_hold(executor, command);
        return;
    }
    switch (command->command_case) {
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT:
        take_assignment(executor, command->assignment);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_GO:
        go(executor);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS:
        take_answer(executor, command->rendezvous);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE:
        if (command->pause->number > executor->pause)
            executor->pause = command->pause->number;
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME:
        resume(executor, command->resume->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_QUIESCE:
        quiesce(executor, command->quiesce->save);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL:
        save(executor);
        break;
    default:
        break;
    }
}

void executor_terminate(struct executor *executor)
{
    executor->terminated = true;
    if (executor->stopped)
        return;
    if (executor->killed ||
        (executor->told && !executor->kept && !executor->leaving && !executor->saving))
        return;
    executor->killed = executor->told = true;
    executor->signal = SIGTERM;
    leave_soon(executor, STOP_MS_MAX);
}
