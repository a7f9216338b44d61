/* running.c - executors as they are: on their devices, in their epochs, and left alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

/* What has happened to a job. */
struct story {
    bool excused, condemned;
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

static struct story *story_of(const char *job)
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
        story_of(job)->excused = true;
}

void check_condemn(const char *job)
{
    story_of(job)->condemned = story_of(job)->excused = true;
}

void check_epoch_end(const char *job, uint64_t epoch, uint64_t now_ms)
{
    story_of(job)->ended = epoch;
    story_of(job)->ended_ms = now_ms;
}

bool check_epoch_ended(const char *job, uint64_t epoch, uint64_t since_ms)
{
    const struct story *story = story_of(job);
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
    struct story *story = story_of(executor->job);
    const struct job *job = disk_job(cluster->coordinator.disk, executor->job);
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
    const struct story *story = story_of(executor->job);
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

void check_go(const struct executor *executor)
{
    unsigned begun = 0;
    const struct story *story = story_of(executor->job);
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
