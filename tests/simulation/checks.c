/* checks.c - what must hold of a coordinator between two of its turns, and of all at the end. */
#include "tests/simulation/checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/call.h"
#include "coordinator/service/calls.h"
#include "coordinator/turn/asking.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/net.h"

/* A big cluster is not looked at as a whole more often. */
#define BIG_CHECK_MS 500

static bool dirty;
static uint64_t next_ms;

void checks_open(void)
{
    dirty = true;
    next_ms = 0;
}

void checks_close(void)
{
    running_close();
}

void check_dirty(void)
{
    dirty = true;
}

static bool same_device(const struct device_ref *a, const struct device_ref *b)
{
    return a->instance == b->instance && a->index == b->index && strcmp(a->worker, b->worker) == 0;
}

static size_t count_held(const struct membership *membership)
{
    size_t held = 0;
    for (size_t i = 0; i < membership_count(membership); i++) {
        const struct worker *worker = membership_at(membership, i);
        for (size_t k = 0; !worker->dead && k < worker->report->device_count; k++)
            held += worker->holders[k][0] ? 1 : 0;
    }
    return held;
}

/* Membership and jobs agree on who holds what, so no device has two jobs. */
static void check_grants(const struct service *service)
{
    size_t claimed = 0;
    for (size_t j = 0; j < jobs_count(service->state->jobs); j++) {
        const struct job *job = jobs_at(service->state->jobs, j);
        struct device_ref *devices = xcalloc(job->rank_count, sizeof *devices);
        size_t count = job_devices(job, devices);
        for (size_t i = 0; i < count; i++) {
            const struct device_ref *device = &devices[i];
            const struct worker *worker =
                membership_find(service->state->membership, device->worker);
            if (!worker || worker->dead || worker->instance != device->instance)
                world_fail("%s holds %s/%u, which is gone", job->id, device->worker, device->index);
            if (strcmp(worker->holders[device->index], job->id) != 0)
                world_fail("%s/%u is not held by %s but by '%s'", device->worker, device->index,
                           job->id, worker->holders[device->index]);
        }
        claimed += count;
        free(devices);
    }
    if (count_held(service->state->membership) != claimed)
        world_fail("%zu devices are held, jobs claim %zu", count_held(service->state->membership),
                   claimed);
}

/* What the coordinator knows of its jobs is durable. */
static void check_store(const struct service *service, const struct disk *disk)
{
    for (size_t i = 0; i < jobs_count(service->state->jobs); i++) {
        const struct job *job = jobs_at(service->state->jobs, i), *stored = disk_job(disk, job->id);
        bool same = stored && job->state == stored->state && job->epoch == stored->epoch &&
                    job->reason == stored->reason && job->holding == stored->holding &&
                    job->rank_count == stored->rank_count;
        for (size_t r = 0; same && r < job->rank_count; r++)
            same = same_device(&job->ranks[r].device, &stored->ranks[r].device) &&
                   (job->ranks[r].state >= JOB_RANK_EXITED) ==
                       (stored->ranks[r].state >= JOB_RANK_EXITED);
        if (!same)
            world_fail("%s is %s (%s), stored is %s (%s)", job->id, job_state_name(job->state),
                       job_reason_name(job->reason), stored ? job_state_name(stored->state) : "-",
                       stored ? job_reason_name(stored->reason) : "-");
    }
    for (size_t i = 0; i < membership_count(service->state->membership); i++) {
        const struct worker *worker = membership_at(service->state->membership, i);
        const struct worker *stored = disk_worker(disk, worker->name);
        if (!stored || stored->instance != worker->instance || stored->dead != worker->dead ||
            stored->draining != worker->draining)
            world_fail("worker %s is not stored as it is", worker->name);
    }
    if (stream_revision(service->state->events) != disk->event_count)
        world_fail("%zu events are stored of %" PRIu64, disk->event_count,
                   stream_revision(service->state->events));
}

/* A state is consistent in itself. */
static void check_job(const struct job *job)
{
    bool good = job->state > JOB_NEW && job->state < JOB_STATES;
    if (job->restarts > job->restarts_max || job->epoch < job->restarts)
        world_fail("%s began again %u times of %u", job->id, job->restarts, job->restarts_max);
    switch (job->state) {
    case JOB_PENDING:
        good = !job->holding && (job->rank_count == 0 || job->replans) &&
               job->reason != JOB_REASON_NONE && (!job->held[0] || job->reason == JOB_REASON_HELD);
        break;
    case JOB_PAUSING:
    case JOB_PAUSED:
        good = job->holding && job->reason == JOB_REASON_HELD && job->pauses == job->resumes + 1 &&
               (job->state == JOB_PAUSING || job->held[0]);
        break;
    case JOB_PLANNING:
    case JOB_STARTING:
    case JOB_RUNNING:
        good = job->holding && job_trainers(job) >= job->devices_min &&
               job_trainers(job) <= job->devices_max && job->reason == JOB_REASON_NONE &&
               job->epoch > 0 && job->pauses == job->resumes;
        break;
    case JOB_RELEASING:
    case JOB_CANCELLING:
    case JOB_FAILING:
    case JOB_REPLANNING:
        good = job->holding && job->reason != JOB_REASON_NONE;
        break;
    default:
        good = good && job_ended(job) != job->holding;
    }
    if (!good)
        world_fail("%s cannot be %s with reason %s, %zu ranks and holding %d", job->id,
                   job_state_name(job->state), job_reason_name(job->reason), job->rank_count,
                   job->holding);
}

/* Of the plans that are searched, those for this job as it is now. */
static size_t searches_for(const struct service *service, const struct job *job)
{
    size_t count = 0;
    for (size_t i = 0; i < service->state->asking->count; i++)
        count += !service->state->asking->items[i]->call &&
                 service->state->asking->items[i]->epoch == job->epoch &&
                 strcmp(service->state->asking->items[i]->job, job->id) == 0;
    return count;
}

/* A job is planned once, and who submitted it waits no longer than that. */
static void check_searches(const struct service *service)
{
    for (size_t i = 0; i < jobs_count(service->state->jobs); i++) {
        const struct job *job = jobs_at(service->state->jobs, i);
        size_t count = searches_for(service, job);
        if (job->state == JOB_PLANNING && count != 1)
            world_fail("%s is PLANNING, and %zu plans are searched for it", job->id, count);
    }
    for (size_t i = 0; i < service->submitters.count; i++) {
        const struct job *job = jobs_find(service->state->jobs, service->submitters.items[i].job);
        if (!job || job->state != JOB_PLANNING)
            world_fail("the submitter of %s is not answered", service->submitters.items[i].job);
    }
}

/* Every call that is kept is parked, by somebody whose connection is there, or waits for a plan. */
static void check_held(const struct service *service)
{
    const struct rpc_server *server = service->server;
    size_t waiting = service->submitters.count;
    for (size_t i = 0; i < service->state->asking->count; i++)
        waiting += service->state->asking->items[i]->call != NULL;
    if (server->held.kept_count != rpc_server_held_count(server) ||
        server->unary.kept_count != waiting)
        world_fail("%zu calls are parked, %zu wait for a plan, and %zu are not answered",
                   rpc_server_held_count(server), waiting,
                   server->held.kept_count + server->unary.kept_count);
    for (size_t i = 0; i < server->parked_count; i++) {
        const struct pipe *pipe = pipe_of((uint32_t)nng_pipe_id(server->parked[i]->pipe));
        if (!pipe->open[SERVER])
            world_fail("a call on '%s' is parked whose connection has closed",
                       server->parked[i]->stream);
    }
}

static void check_service(const struct coordinator *coordinator)
{
    const struct service *service = coordinator->service;
    for (size_t i = 0; i < jobs_count(service->state->jobs); i++)
        check_job(jobs_at(service->state->jobs, i));
    check_grants(service);
    check_store(service, coordinator->disk);
    check_held(service);
    check_searches(service);
}

void check_turn(const struct coordinator *coordinator)
{
    if (store_pending(coordinator->store) > 0)
        world_fail("a turn leaves %zu changes behind", store_pending(coordinator->store));
    if (!dirty || coordinator->impostor || (world->options.big && world->now_ms < next_ms))
        return;
    dirty = false;
    next_ms = world->now_ms + BIG_CHECK_MS;
    check_service(coordinator);
}

void check_restart(const struct coordinator *coordinator)
{
    check_service(coordinator);
    if (coordinator->impostor || world->tally.coordinators == 1)
        return;
    const struct disk *disk = coordinator->disk;
    for (size_t i = 0; i < disk->worker_count; i++)
        if (!membership_find(coordinator->service->state->membership, disk->workers[i]->name))
            world_fail("worker %s is forgotten by a restart", disk->workers[i]->name);
}

/* Whoever came to it knew a higher term, or another coordinator of this one. */
void check_impostor(const struct coordinator *impostor)
{
    const struct service *service = impostor->service;
    const struct rpc_counters *counters = rpc_server_counters(service->server);
    for (size_t i = 0; i < membership_count(service->state->membership); i++) {
        const struct worker *worker = membership_at(service->state->membership, i);
        if (!worker->dead && !worker->suspect)
            world_fail("%s has registered with a coordinator of old", worker->name);
    }
    world->tally.refused_impostors += counters->answered[RPC_OK] > 0 ? 1 : 0;
}

void check_node(struct sim_node *node)
{
    uint64_t term = node_term(node);
    bool back = node->daemon->client && rpc_client_term(node->daemon->client) < node->seen_term;
    if (back || term < node->seen_term)
        world_fail("%s has gone back from term %" PRIu64, node->name, node->seen_term);
    node->seen_term = term;
}

/* How many devices of each kind could be free one day. */
static void count_devices(const struct membership *membership, unsigned *by_kind)
{
    by_kind[HARDWARE_CPU] = by_kind[HARDWARE_GPU] = 0;
    for (size_t i = 0; i < membership_count(membership); i++) {
        const struct worker *worker = membership_at(membership, i);
        for (size_t k = 0; !worker->dead && !worker->draining && k < worker->report->device_count;
             k++)
            by_kind[worker->report->devices[k].kind]++;
    }
}

void check_begin(struct coordinator *coordinator)
{
    const struct membership *membership = coordinator->service->state->membership;
    coordinator->polled_before_ms = coordinator->polled_ms;
    coordinator->polled_ms = state_now_ms(coordinator->service->state);
    count_devices(membership, coordinator->polled_devices);
}

static enum job_kind kind_of(enum hardware_kind kind)
{
    return kind == HARDWARE_GPU ? JOB_GPU : JOB_CPU;
}

/* Grants are seen when they are committed, after all that has come was handled: who was granted
 * first, and lost or drained then, was heard of when that began. Who is suspected has been silent
 * for too long only since the turn before: what has come, and may be from it, is handled first. */
static bool may_be_granted(const struct coordinator *coordinator, const struct worker *worker)
{
    uint64_t patience_ms = 3 * coordinator->service->state->options.membership.heartbeat_ms;
    if (!worker)
        return false;
    if (worker->dead)
        return worker->lost_ms >= coordinator->polled_ms;
    if (worker->draining) { /* what was put becomes durable in its order */
        const struct worker *stored = disk_worker(coordinator->disk, worker->name);
        return stored && !stored->draining;
    }
    return worker_state(worker) == WORKER_ALIVE ||
           (worker->suspect && worker->heard_ms + patience_ms >= coordinator->polled_before_ms);
}

/* A job was granted devices of one kind, of workers that are heard of; an earlier one that was
 * waiting for that kind, and could have it one day, comes first, unless this one's executors have
 * stayed. */
static void check_grant(const struct coordinator *coordinator, const struct job *granted,
                        bool had_executors)
{
    const struct service *service = coordinator->service;
    const struct worker *worker = NULL;
    for (size_t i = 0; i < job_trainers(granted); i++) {
        worker = membership_find(service->state->membership, granted->ranks[i].device.worker);
        if (!may_be_granted(coordinator, worker))
            world_fail("%s is granted a device of %s, which is %s", granted->id,
                       granted->ranks[i].device.worker,
                       worker ? worker_state_name(worker_state(worker)) : "unknown");
    }
    enum hardware_kind kind = worker->report->devices[0].kind; /* each worker has one */
    unsigned there[2];
    count_devices(service->state->membership, there);
    unsigned most = there[kind];
    for (size_t i = 0; i < jobs_count(service->state->jobs) && !had_executors; i++) {
        const struct job *job = jobs_at(service->state->jobs, i);
        const struct job *stored = disk_job(coordinator->disk, job->id);
        if (job->number >= granted->number)
            return;
        if (job->state == JOB_PENDING && stored && stored->state == JOB_PENDING &&
            stored->devices_needed == job->devices_needed && !job->held[0] && !stored->held[0] &&
            job->epoch == stored->epoch && (job->kind == JOB_ANY || job->kind == kind_of(kind)) &&
            job->devices_needed <= most && job->devices_needed <= coordinator->polled_devices[kind])
            world_fail("%s, granted %zu of %u devices of kind %d, overtook %s, which needs %u",
                       granted->id, granted->rank_count, most, (int)kind, job->id,
                       job->devices_needed);
    }
}

void check_job_commit(const struct job *old, const struct job *new)
{
    const struct coordinator *coordinator = (const struct coordinator *)world->current;
    if (old && job_ended(old) &&
        (new->state != old->state || new->reason != old->reason || new->ended_ms != old->ended_ms))
        world_fail("%s was %s and becomes %s", old->id, job_state_name(old->state),
                   job_state_name(new->state));
    if (old && (new->epoch < old->epoch || strcmp(new->key, old->key) != 0 ||
                strcmp(new->text, old->text) != 0))
        world_fail("%s of epoch %u becomes another of epoch %u", old->id, old->epoch, new->epoch);
    if (coordinator->service && old && old->rank_count > 0 &&
        (new->rank_count == 0 || new->epoch != old->epoch))
        check_epoch_end(old->id, old->epoch, state_now_ms(coordinator->service->state));
    if (coordinator->service && old && old->state == JOB_PENDING && new->state == JOB_PLANNING)
        check_grant(coordinator, new, job_left_executors(old));
}

/* Who follows a job hears of its end last. */
void check_event_commit(const struct disk *disk, const struct disk_event *stored)
{
    Gimbal__Event *event = gimbal__event__unpack(NULL, stored->size, stored->bytes);
    const struct job *job = disk_job(disk, event->job);
    if (job && job->state == JOB_DONE && strcmp(event->kind, "evaluation") == 0)
        world_fail("%s is DONE, and then evaluated: %s", job->id, event->text);
    gimbal__event__free_unpacked(event, NULL);
}

/* It waits for devices, and there really are too few of them. */
static bool waits_truly(const struct service *service, const struct job *job)
{
    unsigned there[2], most = 0;
    count_devices(service->state->membership, there);
    for (int kind = HARDWARE_CPU; kind <= HARDWARE_GPU; kind++)
        if ((job->kind == JOB_ANY || job->kind == kind_of((enum hardware_kind)kind)) &&
            there[kind] > most)
            most = there[kind];
    if (job->state != JOB_PENDING)
        return false;
    return (job->reason == JOB_REASON_NO_DEVICES && most == 0) ||
           ((job->reason == JOB_REASON_TOO_FEW_DEVICES ||
             job->reason == JOB_REASON_INFEASIBLE_MEMORY) &&
            job->devices_needed > most);
}

/* Workers that jobs could be placed on. */
static size_t alive_count(void)
{
    const struct membership *membership = cluster->coordinator.service->state->membership;
    size_t alive = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        const struct worker *worker = membership_find(membership, cluster->nodes[i].name);
        alive += worker && worker_state(worker) == WORKER_ALIVE ? 1 : 0;
    }
    return alive;
}

bool check_settled(void)
{
    const struct coordinator *coordinator = &cluster->coordinator;
    if (!coordinator->service || !users_settled(cluster->users, cluster->user_count))
        return false;
    for (size_t i = 0; i < jobs_count(coordinator->service->state->jobs); i++) {
        const struct job *job = jobs_at(coordinator->service->state->jobs, i);
        if (!job_ended(job) && !waits_truly(coordinator->service, job))
            return false;
    }
    if (alive_count() < cluster->node_count)
        return false;
    for (size_t i = 0; i < executors_count(); i++)
        if (executor_at(i))
            return false;
    return true;
}

static void explain_unsettled(void)
{
    const struct service *service = cluster->coordinator.service;
    for (size_t i = 0; service && i < jobs_count(service->state->jobs); i++) {
        const struct job *job = jobs_at(service->state->jobs, i);
        if (!job_ended(job) && !waits_truly(service, job))
            world_fail("%s neither ends nor waits for what is not there: %s (%s) %s", job->id,
                       job_state_name(job->state), job_reason_name(job->reason), job->words);
    }
    check_executors();
    if (!users_settled(cluster->users, cluster->user_count))
        world_fail("a user waits for an answer, or for an event");
    if (service && alive_count() < cluster->node_count)
        world_fail("%zu of %zu workers are alive", alive_count(), cluster->node_count);
    world_fail("the cluster does not come to rest");
}

void check_end(void)
{
    if (!check_settled())
        explain_unsettled();
    const struct coordinator *coordinator = &cluster->coordinator;
    check_service(coordinator);
    users_check(cluster->users, cluster->user_count);
    if (rpc_server_held_count(coordinator->service->server) >
        cluster->node_count + cluster->user_count)
        world_fail("%zu calls are parked", rpc_server_held_count(coordinator->service->server));
    for (size_t i = 0; i < coordinator->disk->job_count; i++) {
        enum job_state state = coordinator->disk->jobs[i]->state;
        world->tally.done += state == JOB_DONE ? 1 : 0;
        world->tally.failed += state == JOB_FAILED ? 1 : 0;
        world->tally.cancelled += state == JOB_CANCELLED ? 1 : 0;
        world->tally.waiting += state == JOB_PENDING ? 1 : 0;
    }
}
