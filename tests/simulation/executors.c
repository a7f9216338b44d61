/* executors.c - executors without processes: little state machines.
 *
 * One meets its neighbour through the epoch's rendezvous, says that it is ready, trains step by
 * step once it may go (training.c), and leaves; or it faults, or dies, and then its peers give up
 * on it. Asked to stop it does. A stubborn one does not leave, asked or not, and its worker has to
 * kill it in time. Where its job wants it so it leaves an epoch that breaks and stays, with the
 * steps that it has, until the next one. It dies with its worker; killed by itself it leaves them
 * to the next one on its device (training.c).
 *
 * What an executor does next, and what becomes of that while its process is stopped: nothing, until
 * it goes on; what it is told meanwhile it hears then. Those that are in an epoch together are a
 * crew. Of each job it is kept in mind which executors it may have, and whether they may be
 * stopped. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/message/message.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/matrix.h"
#include "tests/simulation/measured.h"

/* ---- crews ---- */

static struct crew **crews; /* none is empty */
static size_t crew_count, crew_capacity;

void crew_leave(struct executor *executor)
{
    struct crew *crew = executor->crew;
    size_t at = 0;
    executor->crew = NULL;
    if (!crew)
        return;
    while (crew->members[at] != executor)
        at++;
    crew->members[at] = crew->members[--crew->count];
    if (crew->count > 0)
        return;
    for (at = 0; crews[at] != crew;)
        at++;
    crews[at] = crews[--crew_count];
    free(crew->members);
    free(crew);
}

void crew_join(struct executor *executor)
{
    size_t at = 0;
    while (at < crew_count &&
           (crews[at]->epoch != executor->epoch || strcmp(crews[at]->job, executor->job) != 0))
        at++;
    if (at == crew_count) {
        crews = grow(crews, crew_count, &crew_capacity, sizeof *crews);
        crews[crew_count++] = xcalloc(1, sizeof(struct crew));
        crews[at]->epoch = executor->epoch;
        memcpy(crews[at]->job, executor->job, sizeof executor->job);
    }
    struct crew *crew = executor->crew = crews[at];
    crew->members = grow(crew->members, crew->count, &crew->capacity, sizeof executor);
    crew->members[crew->count++] = executor;
}

void crews_close(void)
{
    free(crews);
    crews = NULL;
    crew_count = crew_capacity = 0;
}

/* ---- what it does next ---- */

static void executor_fire(void *data)
{
    struct executor *executor = data;
    executor->next = NULL;
    executor->then(executor);
}

void executor_after(struct executor *executor, uint64_t delay_ms, executor_cb callback)
{
    world_cancel(executor->next);
    executor->next = NULL;
    executor->then = callback;
    executor->frozen = executor->stopped;
    if (!executor->stopped)
        executor->next = world_after(delay_ms, executor_fire, executor);
}

void executor_rest(struct executor *executor)
{
    world_cancel(executor->next);
    executor->next = NULL;
    executor->frozen = false;
}

bool executor_is_busy(const struct executor *executor)
{
    return executor->next || executor->frozen;
}

void executor_stop(struct executor *executor)
{
    if (executor->stopped || executor->ended)
        return;
    executor->frozen = executor->next != NULL;
    world_cancel(executor->next);
    executor->next = NULL;
    executor->stopped = true;
}

void executor_hold(struct executor *executor, const Gimbal__ExecutorCommand *command)
{
    size_t size;
    void *bytes = message_pack(&command->base, &size);
    executor->held = grow(executor->held, executor->held_count, &executor->held_capacity,
                          sizeof *executor->held);
    executor->held[executor->held_count++] =
        protobuf_c_message_unpack(command->base.descriptor, NULL, size, bytes);
    free(bytes);
}

void executor_drop_held(struct executor *executor)
{
    for (size_t i = 0; i < executor->held_count; i++)
        message_free(executor->held[i]);
    free(executor->held);
    executor->held = NULL;
    executor->held_count = executor->held_capacity = 0;
}

/* What was due is late, what was said is heard, in this order; and a signal is taken last. */
void executor_continue(struct executor *executor)
{
    if (!executor->stopped)
        return;
    executor->stopped = false;
    if (executor->frozen)
        executor_after(executor, 1, executor->then);
    else if (executor->arrived && executor->crew)
        training_meet(executor->crew);
    for (size_t i = 0; i < executor->held_count && !executor->ended; i++)
        executor_take(executor, (const Gimbal__ExecutorCommand *)executor->held[i]);
    executor_drop_held(executor);
    if (executor->terminated && !executor->ended)
        executor_terminate(executor);
}

/* ---- its life ---- */

#define STOP_MS_MAX 1500
#define PEER_LOST_MS_MAX 3000
#define SAVING_MS_MAX 10000
/* A worker's timers are that exact; and one that is kept is asked to leave first. */
#define KILL_MS_MAX (SUPERVISOR_PATIENCE_MS + 100)
#define ORPHAN_MS 600000 /* elastic.orphan: a coordinator that is away longer is not waited for */
#define KEPT_MS_MAX (ORPHAN_MS + SUPERVISOR_KEEP_MS + 60000)
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

static void executor_leave(struct executor *executor)
{
    executor_end(executor, executor->status, executor->signal);
}

static void executor_outlive(void *data)
{
    const struct executor *executor = data;
    world_fail("%s epoch %" PRIu64
               " rank %u on %s should have been asked to leave, or killed, by now",
               executor->job, executor->epoch, executor->rank, executor->node->name);
}

/* By itself, unless it is stubborn. */
static void executor_leave_soon(struct executor *executor, uint64_t most_ms)
{
    executor_rest(executor);
    if (executor->stuck || world_chance(world->faults.executor_stubborn))
        executor->next = world_after(KILL_MS_MAX, executor_outlive, executor);
    else
        executor_after(executor, world_between(1, most_ms), executor_leave);
}

static void executor_say_end(struct executor *executor, Gimbal__StoppedRequest__Cause cause,
                             const char *reason, bool keeps)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    Gimbal__LastStep last = GIMBAL__LAST_STEP__INIT;
    stopped.cause = cause;
    stopped.reason = (char *)reason;
    stopped.step = executor->step;
    stopped.keeps = keeps;
    last.loss = last.held_out_loss = 1.0 / (double)executor->step;
    last.held_out_targets = HELD_OUT_TARGETS;
    if (cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE && executor->rank < executor->trainers)
        stopped.last = &last;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED;
    event.stopped = &stopped;
    executor->told = true;
    executor_say(executor, &event);
}

void executor_say_stopped(struct executor *executor, Gimbal__StoppedRequest__Cause cause,
                          const char *reason)
{
    executor_say_end(executor, cause, reason, false);
    executor->status = cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE ? 0 : 1;
    executor_leave_soon(executor, 100);
}

/* Out of its epoch, with all that it has finished. */
static void executor_stay(struct executor *executor, Gimbal__StoppedRequest__Cause cause)
{
    executor_rest(executor);
    executor->kept = true;
    executor->kept_ms = world->now_ms;
    executor->leaving = executor->saving = false;
    crew_leave(executor);
    executor_say_end(executor, cause, "its epoch is over", true);
    executor->next = world_after(KEPT_MS_MAX, executor_outlive, executor);
}

void executor_finish(struct executor *executor)
{
    if (executor->keeps)
        executor_stay(executor, GIMBAL__STOPPED_REQUEST__CAUSE__DONE);
    else
        executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__DONE, "");
}

static void executor_leave_epoch(struct executor *executor)
{
    executor_stay(executor, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED);
}

static void executor_give_up(struct executor *executor)
{
    if (executor->keeps)
        executor_stay(executor, GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST);
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
        executor_after(peer, world_between(500, PEER_LOST_MS_MAX), executor_give_up);
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

static void executor_ask(struct executor *executor, bool put, uint32_t rank)
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

static void executor_meet(struct executor *executor)
{
    if (!world->calm && world_chance(world->faults.executor_fault * 4)) {
        executor_break_down(executor);
        return;
    }
    executor_ask(executor, true, executor->rank);
    executor_ask(executor, false, (executor->rank + 1) % executor->rank_count);
}

/* Every rank of this world has the whole state, so the newest that one of them has is the job's. */
static void executor_gather(struct executor *executor)
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

static void executor_say_ready(struct executor *executor)
{
    Gimbal__ReadyRequest ready = GIMBAL__READY_REQUEST__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    Gimbal__DataFile file = GIMBAL__DATA_FILE__INIT, *files[] = {&file};
    file.path = (char *)"/data/text";
    file.size = file.hash = 4096;
    ready.files = files;
    ready.n_files = 1;
    ready.program_hash = executor->hash;
    executor_gather(executor);
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
static uint64_t executor_steps(const char *yaml)
{
    const char *at = strstr(yaml, "steps: ");
    return at ? strtoull(at + 7, NULL, 10) : 1;
}

/* The next epoch of its job finds it as it was started, but for what it has finished. */
static void executor_renew(struct executor *executor, const Gimbal__Assignment *assignment)
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

static void executor_take_assignment(struct executor *executor,
                                     const Gimbal__Assignment *assignment)
{
    bool fresh = !executor->job[0];
    if (!fresh)
        executor_renew(executor, assignment);
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
    executor->steps = executor_steps(assignment->job_yaml);
    executor->step_ms = duration_step_ms(assignment->job_yaml, executor->trainers);
    uint64_t prepare_ms = duration_ms(DURATION_PREPARE);
    executor_after(executor, prepare_ms, executor_meet);
    crew_join(executor);
    check_executor_start(executor);
    if (executor->epoch > 1)
        matrix_enter(executor, PHASE_REPLAN, prepare_ms);
}

static void executor_go(struct executor *executor)
{
    check_go(executor);
    executor_gather(executor);
    executor->going = true;
    if (executor->rank >= executor->trainers && !executor->told) {
        executor_finish(executor); /* it has given what it had */
        world->tally.gave++;
        return;
    }
    if (!executor->told && !executor_is_busy(executor))
        training_begin(executor);
}

static void executor_resume(struct executor *executor, uint64_t number)
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
static void executor_quiesce(struct executor *executor, bool executor_save)
{
    if (executor->told && (!executor->saving || executor_save))
        return;
    if (!executor->keeps)
        world_fail("%s rank %u cannot stay and is asked to", executor->job, executor->rank);
    if (executor_save && !executor->going)
        world_fail("%s rank %u is to save what it has not begun", executor->job, executor->rank);
    check_executor_stop(executor);
    executor->told = executor->leaving = true;
    executor->saving = executor_save;
    world->tally.saved += executor_save;
    executor_rest(executor);
    if (executor->stuck || world_chance(world->faults.executor_stubborn))
        executor->next =
            world_after(executor_save ? SAVE_MS_MAX : KILL_MS_MAX, executor_outlive, executor);
    else
        executor_after(executor,
                       executor_save ? world_between(1, SAVING_MS_MAX)
                                     : duration_ms(DURATION_QUIESCE),
                       executor_leave_epoch);
}

static void executor_end_saved(struct executor *executor)
{
    executor_fail_peers(executor); /* they have stopped behind the same step */
    executor_say_stopped(executor, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "behind a step");
}

/* Asked to save and stop. */
static void executor_save(struct executor *executor)
{
    if (executor->told && !executor->saving)
        return;
    check_executor_stop(executor);
    executor->told = executor->saving = true;
    executor->leaving = false;
    world->tally.saved++;
    executor_rest(executor);
    if (executor->stuck)
        executor->next = world_after(SAVE_MS_MAX, executor_outlive, executor);
    else
        executor_after(executor, world_between(1, SAVING_MS_MAX), executor_end_saved);
}

static void executor_take_answer(struct executor *executor,
                                 const Gimbal__ExecutorRendezvous *answer)
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
        executor_say_ready(executor);
}

void executor_take(struct executor *executor, const Gimbal__ExecutorCommand *command)
{
    if (executor->stopped) {
        executor_hold(executor, command);
        return;
    }
    switch (command->command_case) {
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT:
        executor_take_assignment(executor, command->assignment);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_GO:
        executor_go(executor);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS:
        executor_take_answer(executor, command->rendezvous);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE:
        if (command->pause->number > executor->pause)
            executor->pause = command->pause->number;
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME:
        executor_resume(executor, command->resume->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_QUIESCE:
        executor_quiesce(executor, command->quiesce->save);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL:
        executor_save(executor);
        break;
    default:
        break;
    }
}

void executor_terminate(struct executor *executor)
{
    if (executor->kept && !executor->terminated)
        check_let_go(executor);
    executor->terminated = true;
    if (executor->stopped)
        return;
    if (executor->killed ||
        (executor->told && !executor->kept && !executor->leaving && !executor->saving))
        return;
    executor->killed = executor->told = true;
    executor->signal = SIGTERM;
    executor_leave_soon(executor, STOP_MS_MAX);
}

/* ---- on their devices, in their epochs, and left alone ---- */

/* What has happened to a job. */
struct story {
    bool excused, condemned;
    bool finished; /* a rank has said that nothing is left to do, and that was acknowledged */
    uint64_t epoch;
    uint64_t began_ms;        /* the newest epoch */
    uint64_t ended, ended_ms; /* the epoch that ended last */
    struct begun {
        uint64_t epoch;
        uint32_t rank;
    } * begun;
    size_t count, capacity;
};

static struct story *stories; /* by number */
static size_t story_count;

void running_close(void)
{
    for (size_t i = 0; i < story_count; i++)
        free(stories[i].begun);
    free(stories);
    stories = NULL;
    story_count = 0;
}

static struct story *story_find(const char *job)
{
    size_t number = strtoull(job + 2, NULL, 10);
    if (number >= story_count) {
        size_t wanted = number * 2 + 16;
        stories = xrealloc(stories, wanted * sizeof *stories);
        memset(stories + story_count, 0, (wanted - story_count) * sizeof *stories);
        story_count = wanted;
    }
    return &stories[number];
}

void check_excuse(const char *job)
{
    if (job[0])
        story_find(job)->excused = true;
}

void check_condemn(const char *job)
{
    story_find(job)->condemned = story_find(job)->excused = true;
}

void check_finished(const char *job)
{
    story_find(job)->finished = true;
}

void check_epoch_end(const char *job, uint64_t epoch, uint64_t now_ms)
{
    story_find(job)->ended = epoch;
    story_find(job)->ended_ms = now_ms;
}

bool check_epoch_ended(const char *job, uint64_t epoch, uint64_t since_ms)
{
    const struct story *story = story_find(job);
    return epoch > 0 && story->ended == epoch && story->ended_ms >= since_ms;
}

void check_excuse_node(const struct sim_node *node)
{
    const struct disk *disk = cluster->coordinator.disk;
    for (size_t i = 0; i < disk->job_count; i++)
        for (size_t r = 0; !job_ended(disk->jobs[i]) && r < disk->jobs[i]->rank_count; r++)
            if (strcmp(disk->jobs[i]->ranks[r].device.worker, node->name) == 0)
                check_excuse(disk->jobs[i]->id);
}

/* One executor for each rank of an epoch, ever; and one for each device at a time. */
void check_executor_start(const struct executor *executor)
{
    struct story *story = story_find(executor->job);
    const struct job *job = disk_job(cluster->coordinator.disk, executor->job);
    if (story->finished)
        world_fail("%s epoch %" PRIu64 " rank %u starts, and the job was finished", executor->job,
                   executor->epoch, executor->rank);
    if (!job || job->epoch < executor->epoch)
        world_fail("%s epoch %" PRIu64 " rank %u starts and is not durable", executor->job,
                   executor->epoch, executor->rank);
    for (size_t i = 0; i < story->count; i++)
        if (story->begun[i].epoch == executor->epoch && story->begun[i].rank == executor->rank)
            world_fail("%s epoch %" PRIu64 " rank %u starts a second time, on %s", executor->job,
                       executor->epoch, executor->rank, executor->node->name);
    story->begun = grow(story->begun, story->count, &story->capacity, sizeof *story->begun);
    if (executor->epoch > story->epoch) { /* what befell the one before is over */
        story->epoch = executor->epoch;
        story->excused = story->condemned;
    }
    story->begun[story->count++] = (struct begun){executor->epoch, executor->rank};
    story->began_ms = world->now_ms;
    for (size_t i = 0; i < executors_count(); i++) {
        const struct executor *other = executor_at(i);
        if (other && other != executor && !other->ended && other->node == executor->node &&
            other->device == executor->device)
            world_fail("%s epoch %" PRIu64 " starts on %s/%u, where %s epoch %" PRIu64 " runs",
                       executor->job, executor->epoch, executor->node->name, executor->device,
                       other->job, other->epoch);
    }
}

/* Training does not pause: whoever stops an executor has a reason. */
void check_executor_stop(const struct executor *executor)
{
    const struct job *job = disk_job(cluster->coordinator.disk, executor->job);
    const struct story *story = story_find(executor->job);
    bool excused = story->excused || (job && job->reason == JOB_REASON_REPLAN);
    for (size_t i = 0; job && i < job->rank_count && !excused; i++) {
        const struct device_ref *device = &job->ranks[i].device;
        const struct sim_node *node = node_named(device->worker);
        /* It may have died after it was granted and before any of the epoch began. */
        excused = node_in_trouble(node, story->began_ms) || !node_lives_as(node, device->instance);
    }
    if (!excused && executor->node->trouble_ms == 0 && !executor->node->slow)
        world_fail("%s epoch %" PRIu64 " rank %u on %s is stopped for no reason: %s", executor->job,
                   executor->epoch, executor->rank, executor->node->name, job ? job->words : "");
    world->tally.excused_stops++;
}

/* Whether another job has the executor's device, as far as the disk knows. */
static bool device_is_given(const struct executor *executor)
{
    const struct disk *disk = cluster->coordinator.disk;
    for (size_t i = 0; i < disk->job_count; i++) {
        const struct job *job = disk->jobs[i];
        for (size_t r = 0; strcmp(job->id, executor->job) != 0 && r < job->rank_count; r++)
            if (job->ranks[r].device.index == executor->device &&
                strcmp(job->ranks[r].device.worker, executor->node->name) == 0)
                return true;
    }
    return false;
}

/* What a job has is kept until it ends, unless its device is needed. */
void check_let_go(const struct executor *executor)
{
    const struct job *job = disk_job(cluster->coordinator.disk, executor->job);
    bool expired = world->now_ms >= executor->kept_ms + SUPERVISOR_KEEP_MS;
    bool ends = !job || job_ended(job) || job->state == JOB_CANCELLING ||
                job->state == JOB_FAILING || job->state == JOB_RELEASING;
    if (!ends && !expired && !device_is_given(executor) &&
        !node_in_trouble(executor->node, executor->kept_ms))
        world_fail("%s epoch %" PRIu64 " rank %u on %s lets go of step %" PRIu64
                   ", and the job has not ended",
                   executor->job, executor->epoch, executor->rank, executor->node->name,
                   executor->step);
}

void check_go(const struct executor *executor)
{
    unsigned begun = 0;
    const struct story *story = story_find(executor->job);
    for (size_t i = 0; i < story->count; i++)
        begun += story->begun[i].epoch == executor->epoch ? 1 : 0;
    if (begun != executor->rank_count)
        world_fail("%s epoch %" PRIu64 " goes when %u of %u ranks have started", executor->job,
                   executor->epoch, begun, executor->rank_count);
    for (size_t i = 0; i < executor->crew->count; i++) {
        const struct executor *peer = executor->crew->members[i];
        if (!peer->ready && !peer->told && !peer->ended)
            world_fail("%s epoch %" PRIu64 " goes before its rank %u is ready", executor->job,
                       executor->epoch, peer->rank);
    }
}

/* No executor runs that no job wants: nobody would ever stop it. */
void check_executors(void)
{
    for (size_t i = 0; i < executors_count(); i++) {
        const struct executor *executor = executor_at(i);
        if (executor)
            world_fail("%s epoch %" PRIu64 " rank %u still runs on %s", executor->job,
                       executor->epoch, executor->rank, executor->node->name);
    }
}
