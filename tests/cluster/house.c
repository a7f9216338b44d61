/* house.c - see house.h. */
#include "tests/cluster/house.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/program/lower.h"
#include "tests/support/engine.h"

#include <check.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void command(struct house *house, int rank, Gimbal__ExecutorCommand *message)
{
    channel_write(&house->executors[rank].channel, &message->base, NULL);
}

static void answer(struct house *house, int rank, uint64_t id, const struct house_entry *entry)
{
    Gimbal__ExecutorRendezvous reply = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    reply.id = id;
    if (entry)
        reply.value = (ProtobufCBinaryData){.len = entry->size, .data = entry->value};
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS;
    message.rendezvous = &reply;
    command(house, rank, &message);
}

static const struct house_entry *find(const struct house *house, const char *key)
{
    for (size_t i = 0; i < house->entry_count; i++)
        if (strcmp(house->entries[i].key, key) == 0)
            return &house->entries[i];
    return NULL;
}

static void put(struct house *house, const Gimbal__ExecutorRendezvous *request)
{
    ck_assert_uint_lt(house->entry_count, HOUSE_KEYS_MAX);
    struct house_entry *entry = &house->entries[house->entry_count++];
    entry->key = xstrdup(request->key);
    entry->size = request->value.len;
    entry->value = xcalloc(1, entry->size);
    memcpy(entry->value, request->value.data, entry->size);
    for (size_t i = 0; i < house->waiting_count;) {
        struct house_waiting *waiting = &house->waiting[i];
        if (strcmp(waiting->key, entry->key) != 0) {
            i++;
            continue;
        }
        answer(house, waiting->rank, waiting->id, entry);
        free(waiting->key);
        *waiting = house->waiting[--house->waiting_count];
    }
}

static void rendezvous(struct house *house, int rank, const Gimbal__ExecutorRendezvous *request)
{
    const struct house_entry *entry = find(house, request->key);
    if (request->put) {
        put(house, request);
        answer(house, rank, request->id, NULL);
    } else if (entry) {
        answer(house, rank, request->id, entry);
    } else {
        ck_assert_uint_lt(house->waiting_count, HOUSE_KEYS_MAX);
        house->waiting[house->waiting_count++] =
            (struct house_waiting){rank, request->id, xstrdup(request->key)};
    }
}

static void go(struct house *house)
{
    for (int rank = 0; rank < house->count; rank++) {
        Gimbal__Go go = GIMBAL__GO__INIT;
        Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
        message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_GO;
        message.go = &go;
        command(house, rank, &message);
    }
}

static void pause_rank(struct house *house, int rank)
{
    Gimbal__PauseJob pause = GIMBAL__PAUSE_JOB__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    pause.number = (uint64_t)house->asked;
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE;
    message.pause = &pause;
    command(house, rank, &message);
}

static void resume_rank(struct house *house, int rank)
{
    Gimbal__ResumeJob resume = GIMBAL__RESUME_JOB__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    resume.number = (uint64_t)house->asked;
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME;
    message.resume = &resume;
    command(house, rank, &message);
}

/* One rank hears of a pause, another one each time; the others learn of it from each other. */
static void ask_to_pause(struct house *house)
{
    if (!house->to_pause || house->pausing || house->asked == HOUSE_PAUSES ||
        house->seen.steps < (int)house->paused_step + 2)
        return;
    house->pausing = true;
    house->asked++;
    pause_rank(house, (house->count - house->asked % house->count) % house->count);
}

/* All behind the same step, and none goes on before the last one is there. */
static void take_paused(struct house *house, const Gimbal__PausedRequest *paused)
{
    ck_assert_uint_eq(paused->number, (uint64_t)house->asked);
    ck_assert(house->paused == 0 || paused->step == house->paused_step);
    house->paused_step = paused->step;
    ck_assert_int_le(house->seen.steps, (int)paused->step);
    if (++house->paused < house->count)
        return;
    house->paused = 0;
    house->pausing = false;
    for (int rank = 0; rank < house->count; rank++) {
        pause_rank(house, rank); /* those who have not heard hear of it late */
        resume_rank(house, rank);
    }
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    return text;
}

/* One of the cores that this process may use: a rank on each core, not one rank on all. */
static const char *one_core(int rank)
{
    static char text[16];
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    int skip = rank % CPU_COUNT(&all), core = 0;
    while (!CPU_ISSET((size_t)core, &all) || skip-- > 0)
        core++;
    snprintf(text, sizeof text, "%d", core);
    return text;
}

void house_assign(struct house *house, const struct executor_job *job, const struct plan *plan,
                  uint64_t hash_offset)
{
    struct graph *graph = executor_job_graph(job);
    house->count = plan_ranks(plan);
    house->seen.steps = house->start_step;
    char *yaml = read_whole(job->job), *json = plan_encode(plan, graph);
    for (int rank = 0; rank < house->count; rank++) {
        Gimbal__Plan wire = GIMBAL__PLAN__INIT;
        Gimbal__Assignment assignment = GIMBAL__ASSIGNMENT__INIT;
        Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
        struct program *program;
        ck_assert_int_eq(lower(graph, plan, rank, &program, NULL), 0);
        wire.json = json;
        assignment.job = (char *)"j-1";
        assignment.epoch = (uint64_t)house->epoch;
        assignment.rank = (uint32_t)rank;
        assignment.rank_count = (uint32_t)house->count;
        assignment.job_yaml = yaml;
        assignment.plan = &wire;
        assignment.program_hash = program_hash(program) + hash_offset;
        if (house->folder)
            assignment.checkpoint_folder = (char *)house->folder;
        if (house->start) {
            assignment.checkpoint = (char *)house->start;
            assignment.checkpoint_epoch = 1;
            assignment.start_step = (uint64_t)house->start_step;
        }
        message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT;
        message.assignment = &assignment;
        executor_start(&house->executors[rank], EXECUTOR,
                       (const char *[]){"--devices", one_core(rank), NULL});
        house->open[rank] = true;
        command(house, rank, &message);
        program_destroy(program);
    }
    free(yaml);
    free(json);
    graph_destroy(graph);
}

/* It is listed, and nothing else has to go. */
static void list(struct house *house, int rank, const Gimbal__StagedRequest *staged)
{
    Gimbal__CheckpointListed listed = GIMBAL__CHECKPOINT_LISTED__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    ck_assert_str_eq(staged->failure, "");
    listed.step = staged->step;
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_LISTED;
    message.listed = &listed;
    command(house, rank, &message);
}

static uint64_t resident_bytes(pid_t pid)
{
    char path[64], line[256];
    unsigned long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (kib == 0 && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %lu", &kib);
    fclose(file);
    return (uint64_t)kib * 1024;
}

/* Rank 0 tells of a step when all have finished it. */
static void look(struct house *house)
{
    for (int i = 0; i < house->count; i++)
        house->resident_bytes[i] = resident_bytes(house->executors[i].pid);
    house->looked = 0;
}

static void take_event(struct house *house, int rank, const Gimbal__ExecutorEvent *event)
{
    executor_see(&house->seen, event);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS)
        rendezvous(house, rank, event->rendezvous);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_READY &&
        house->seen.ready == house->count)
        go(house);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PAUSED)
        take_paused(house, event->paused);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STAGED)
        list(house, rank, event->staged);
    ask_to_pause(house);
    if (house->looked > 0 && house->seen.steps == house->looked)
        look(house);
    if (house->victim >= 0 && house->seen.steps == house->after) {
        kill(house->executors[house->victim].pid, SIGKILL);
        house->victim = -1;
    }
}

/* All that has come; false when there will not be more. */
static bool take_events(struct house *house, int rank)
{
    ProtobufCMessage *message;
    int rc;
    while ((rc = channel_read(&house->executors[rank].channel, &gimbal__executor_event__descriptor,
                              0, &message, NULL)) > 0) {
        take_event(house, rank, (const Gimbal__ExecutorEvent *)message);
        message_free(message);
    }
    return rc == 0;
}

void house_serve(struct house *house, int victim, int after)
{
    house->victim = victim;
    house->after = after;
    for (int open = house->count; open > 0;) {
        struct pollfd fds[HOUSE_RANKS_MAX];
        for (int i = 0; i < house->count; i++)
            fds[i] = (struct pollfd){.fd = house->open[i] ? house->executors[i].channel.fd : -1,
                                     .events = POLLIN};
        ck_assert_int_gt(poll(fds, (nfds_t)house->count, EXECUTOR_DEADLINE_MS), 0);
        for (int i = 0; i < house->count; i++) {
            if (!fds[i].revents || take_events(house, i))
                continue;
            house->open[i] = false;
            open--;
        }
    }
}

void house_finish(struct house *house, bool clean)
{
    for (int i = 0; i < house->count; i++) {
        int status = executor_finish(&house->executors[i]);
        ck_assert(!clean || status == 0);
    }
    for (size_t i = 0; i < house->entry_count; i++) {
        free(house->entries[i].key);
        free(house->entries[i].value);
    }
    for (size_t i = 0; i < house->waiting_count; i++)
        free(house->waiting[i].key);
}

struct executor_seen house_alone(const struct executor_job *job)
{
    struct executor executor;
    struct executor_seen seen = {0};
    struct graph *graph = executor_job_graph(job);
    struct plan *plan = engine_plan_one(graph, 1, 8);
    executor_job_plan(job, plan);
    executor_start(&executor, EXECUTOR,
                   (const char *[]){"--local", "1", "--job", job->job, "--plan", job->plan,
                                    "--devices", one_core(0), NULL});
    executor_see_all(&executor, &seen);
    ck_assert_int_eq(executor_finish(&executor), 0);
    plan_destroy(plan);
    graph_destroy(graph);
    return seen;
}
