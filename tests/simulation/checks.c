/* checks.c - what must hold of a coordinator between two of its turns, and of all at the end; and
 * every answer of a coordinator, at the moment when it leaves: what it says has to be durable,
 * because the coordinator may be dead in the next. */
#include "tests/simulation/checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/server_internal.h"
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

/* Every call that is kept is parked, by somebody whose connection is there, or waits for a plan, or
 * until what it reported is stored. */
static void check_held(const struct service *service)
{
    const struct rpc_server *server = service->server;
    size_t waiting = service->submitters.count + service->reporters.count;
    bool owes = telemetry_owes(service->state->telemetry);
    if (service->reporters.count > 0 && !owes)
        world_fail("%zu reports are stored and not answered", service->reporters.count);
    if (service->reporters.count == 0 && owes && !service->state->disk_scarce)
        world_fail("what was reported is answered, and not stored");
    for (size_t i = 0; i < service->state->asking->count; i++)
        waiting += service->state->asking->items[i]->call != NULL;
    if (server->held.kept_count != rpc_server_held_count(server) ||
        server->unary.kept_count != waiting)
        world_fail("%zu calls are parked, %zu wait otherwise, and %zu are not answered",
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

/* ---- answers ---- */

struct ask {
    enum coordinator_method method;
    Gimbal__Envelope *envelope;
};

/* The method's name lies behind four numbers (proto/envelope.proto); finding it there spares
 * unpacking what is not checked. */
static int find_method(const unsigned char *frame, size_t size)
{
    size_t at = 0;
    while (at + 1 < size && frame[at] != 0x2a) {
        at++;
        while (at < size && frame[at] & 0x80)
            at++;
        at++;
    }
    if (at + 2 >= size)
        return -1;
    char name[64];
    size_t length = frame[at + 1];
    if (length >= sizeof name || at + 2 + length > size)
        return -1;
    memcpy(name, frame + at + 2, length);
    name[length] = '\0';
    return rpc_service_find(&service_coordinator, name);
}

/* Of how many workers hellos come at once: after a long outage, in which their pauses have grown
 * to seconds, they must be spread. A bucket of 10 ms may draw a third of a few by chance. Those
 * that a slow turn kept waiting are heard together, however well they are spread. */
static void count_hello(void)
{
    if (world->now_ms <= cluster->coordinator.slow_until_ms + 10)
        return;
    if (cluster->storm_ms / 10 != world->now_ms / 10)
        cluster->storm_hellos = 0;
    cluster->storm_ms = world->now_ms;
    cluster->storm_hellos++;
    if (cluster->storm_hellos > world->tally.storm_worst)
        world->tally.storm_worst = cluster->storm_hellos;
    unsigned most = 12 + (unsigned)cluster->node_count / 20;
    if (cluster->coordinator.outage_ms >= 30000 && cluster->storm_hellos > most)
        world_fail("%u of %zu workers say Hello within 10 ms", cluster->storm_hellos,
                   cluster->node_count);
}

struct ask *check_ask(const void *frame, size_t size)
{
    int method = find_method(frame, size);
    switch (method) {
    case COORDINATOR_HELLO:
        count_hello();
        break;
    case COORDINATOR_HEARTBEAT:
        if (!world->faults.echo) /* there are many, and nobody's comes late */
            return NULL;
        break;
    case COORDINATOR_SUBMIT:
    case COORDINATOR_CANCEL:
    case COORDINATOR_PAUSE:
    case COORDINATOR_RESUME:
    case COORDINATOR_DRAIN:
    case COORDINATOR_REPORT_HARDWARE:
    case COORDINATOR_READY:
    case COORDINATOR_STOPPED:
    case COORDINATOR_PUSH_TELEMETRY:
        break;
    default:
        return NULL;
    }
    struct ask *ask = xcalloc(1, sizeof *ask);
    ask->method = (enum coordinator_method)method;
    ask->envelope = gimbal__envelope__unpack(NULL, size, frame);
    return ask;
}

void ask_free(struct ask *ask)
{
    if (!ask)
        return;
    gimbal__envelope__free_unpacked(ask->envelope, NULL);
    free(ask);
}

/* Yours. */
static void *request_of(const struct ask *ask)
{
    return protobuf_c_message_unpack(service_coordinator.descriptor->methods[ask->method].input,
                                     NULL, ask->envelope->payload.len, ask->envelope->payload.data);
}

static void check_submitted(const struct disk *disk, const struct ask *ask,
                            const Gimbal__Envelope *answer)
{
    Gimbal__SubmitReply *reply =
        gimbal__submit_reply__unpack(NULL, answer->payload.len, answer->payload.data);
    const struct job *job = disk_job(disk, reply->job);
    if (!job || strcmp(job->key, ask->envelope->idempotency_key) != 0)
        world_fail("%s is acknowledged for '%s' and not durable", reply->job,
                   ask->envelope->idempotency_key);
    for (size_t i = 0; i < disk->job_count; i++)
        if (disk->jobs[i] != job && strcmp(disk->jobs[i]->key, job->key) == 0 &&
            strcmp(disk->jobs[i]->user, job->user) == 0)
            world_fail("%s and %s are of one submission", job->id, disk->jobs[i]->id);
    gimbal__submit_reply__free_unpacked(reply, NULL);
}

static void check_cancelled(const struct disk *disk, const struct ask *ask)
{
    Gimbal__CancelRequest *request = request_of(ask);
    const struct job *job = disk_job(disk, request->job);
    if (!job || (!job_ended(job) && job->state != JOB_CANCELLING))
        world_fail("that %s is cancelled is acknowledged and not durable", request->job);
    gimbal__cancel_request__free_unpacked(request, NULL);
}

static void check_paused(const struct coordinator *coordinator, const struct ask *ask)
{
    Gimbal__PauseRequest *request = request_of(ask);
    const struct job *job = disk_job(coordinator->disk, request->job);
    const struct job *now = jobs_find(coordinator->service->state->jobs, request->job);
    bool let_go = now && !now->held[0]; /* by somebody whose call came together with this one */
    if (!job || (!job->held[0] && !let_go && !job_ended(job) && job->state != JOB_CANCELLING))
        world_fail("that %s is held is acknowledged and not durable", request->job);
    gimbal__pause_request__free_unpacked(request, NULL);
}

static void check_drained(const struct coordinator *coordinator, const struct ask *ask)
{
    Gimbal__DrainRequest *request = request_of(ask);
    const struct worker *worker = disk_worker(coordinator->disk, request->node);
    const struct worker *now =
        membership_find(coordinator->service->state->membership, request->node);
    bool undone = now && now->draining == (bool)request->undo;
    if (!undone && (!worker || worker->draining == (bool)request->undo))
        world_fail("that %s is drained is acknowledged and not durable", request->node);
    gimbal__drain_request__free_unpacked(request, NULL);
}

static void check_registered(const struct coordinator *coordinator, const struct ask *ask)
{
    const char *name = ask->envelope->caller;
    const struct worker *worker = disk_worker(coordinator->disk, name);
    const struct worker *now = membership_find(coordinator->service->state->membership, name);
    if (now && now->dead && now->lost_ms >= coordinator->polled_ms)
        return; /* lost by what came together with this call */
    if (!worker || worker->dead || worker->instance != ask->envelope->client)
        world_fail("%s is taken for alive, and that instance of it is not", ask->envelope->caller);
}

static void check_stopped(const struct disk *disk, const struct ask *ask)
{
    Gimbal__StoppedRequest *request = request_of(ask);
    const struct job *job = disk_job(disk, request->job);
    bool good = job && job->epoch >= request->epoch;
    if (good && job->epoch == request->epoch && job->holding)
        good = request->rank < job->rank_count &&
               (job->ranks[request->rank].state == JOB_RANK_EXITED ||
                job->ranks[request->rank].state == JOB_RANK_LOST);
    if (!good)
        world_fail("the end of %s epoch %llu rank %u is acknowledged and not durable", request->job,
                   (unsigned long long)request->epoch, request->rank);
    if (request->last)
        check_finished(request->job);
    gimbal__stopped_request__free_unpacked(request, NULL);
}

/* Unless what came together with this call was the end of the epoch. */
static void check_ready(const struct coordinator *coordinator, const struct ask *ask)
{
    Gimbal__ReadyRequest *request = request_of(ask);
    const struct job *job = disk_job(coordinator->disk, request->job);
    bool its = job && job->epoch == request->epoch && request->rank < job->rank_count &&
               job->ranks[request->rank].device.instance == ask->envelope->client;
    if (!its && !check_epoch_ended(request->job, request->epoch, coordinator->polled_ms))
        world_fail("%s epoch %llu rank %u of %s is taken as ready, and it is not its", request->job,
                   (unsigned long long)request->epoch, request->rank, ask->envelope->caller);
    gimbal__ready_request__free_unpacked(request, NULL);
}

/* Steps of a job that runs: they have been taken where they are acknowledged. */
static void check_step(const struct service *service, const Gimbal__StepRecord *step,
                       uint64_t client)
{
    const struct job *job = jobs_find(service->state->jobs, step->job);
    if (!job || job->state != JOB_RUNNING || job->epoch != step->epoch ||
        step->rank >= job->rank_count || job->ranks[step->rank].device.instance != client)
        return;
    const struct job_telemetry *measured = telemetry_find(service->state->telemetry, step->job);
    const struct step_point *last = measured ? steps_last(&measured->steps) : NULL;
    if (!last || last->step < step->step)
        world_fail("step %llu of %s is acknowledged and was not taken",
                   (unsigned long long)step->step, step->job);
}

static void check_pushed(const struct service *service, const struct ask *ask,
                         const Gimbal__Envelope *answer)
{
    Gimbal__PushBatch *batch = request_of(ask);
    Gimbal__PushAck *ack =
        gimbal__push_ack__unpack(NULL, answer->payload.len, answer->payload.data);
    for (size_t i = 0; i < batch->n_records && service; i++) {
        Gimbal__TelemetryRecord *record =
            gimbal__telemetry_record__unpack(NULL, batch->records[i].len, batch->records[i].data);
        if (batch->first_sequence + i <= ack->acknowledged &&
            record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_STEP)
            check_step(service, record->step, ask->envelope->client);
        gimbal__telemetry_record__free_unpacked(record, NULL);
    }
    gimbal__push_ack__free_unpacked(ack, NULL);
    gimbal__push_batch__free_unpacked(batch, NULL);
}

/* Of whoever is answered something has come. */
static void check_heard(const struct service *service, const Gimbal__Envelope *call)
{
    const struct worker *worker =
        service ? membership_find(service->state->membership, call->caller) : NULL;
    if (worker && worker->instance == call->client && worker->suspect)
        world_fail("%s is answered %s, and is suspected", worker->name, call->method);
}

static void check_granted(const struct coordinator *coordinator, const struct ask *ask,
                          const Gimbal__Envelope *answer)
{
    const struct disk *disk = coordinator->disk;
    switch (ask->method) {
    case COORDINATOR_SUBMIT:
        check_submitted(disk, ask, answer);
        break;
    case COORDINATOR_CANCEL:
        check_cancelled(disk, ask);
        break;
    case COORDINATOR_PAUSE:
        check_paused(coordinator, ask);
        break;
    case COORDINATOR_DRAIN:
        check_drained(coordinator, ask);
        break;
    case COORDINATOR_HEARTBEAT:
    case COORDINATOR_REPORT_HARDWARE:
        check_registered(coordinator, ask);
        break;
    case COORDINATOR_STOPPED:
        check_stopped(disk, ask);
        break;
    case COORDINATOR_READY:
        check_ready(coordinator, ask);
        break;
    case COORDINATOR_PUSH_TELEMETRY:
        check_pushed(coordinator->service, ask, answer);
        break;
    default:
        break;
    }
}

/* Once the store has failed nothing is told but that; a Hello says only what is durable, and a
 * poll may hear that there is nothing. */
static void check_apology(const struct actor *server, const struct ask *ask, const void *frame,
                          size_t size)
{
    Gimbal__Envelope *answer = gimbal__envelope__unpack(NULL, size, frame);
    bool empty = ask ? ask->method == COORDINATOR_HELLO : answer->payload.len == 0;
    if (answer->status == RPC_OK && !empty)
        world_fail("%s answers %s when its store has failed", server->name,
                   ask ? service_coordinator.methods[ask->method].name : "a call");
    gimbal__envelope__free_unpacked(answer, NULL);
}

void check_answer(struct actor *server, const struct ask *ask, const void *frame, size_t size)
{
    const struct coordinator *coordinator = (const struct coordinator *)server;
    if (coordinator->store && store_failed(coordinator->store)) {
        check_apology(server, ask, frame, size);
        return;
    }
    if (coordinator->store && store_pending(coordinator->store) > 0)
        world_fail("%s answers while %zu changes are not durable", server->name,
                   store_pending(coordinator->store));
    if (!ask || ask->method == COORDINATOR_HELLO)
        return;
    Gimbal__Envelope *answer = gimbal__envelope__unpack(NULL, size, frame);
    bool late = ask->envelope->term != coordinator->term;
    if (late && answer->status == RPC_OK)
        world_fail("%s of term %llu is taken in term %llu", ask->envelope->method,
                   (unsigned long long)ask->envelope->term, (unsigned long long)coordinator->term);
    if (answer->status == RPC_OK) {
        check_granted(coordinator, ask, answer);
        check_heard(coordinator->service, ask->envelope);
    }
    if (answer->status == RPC_FAILED_PRECONDITION)
        world->tally.stale++;
    gimbal__envelope__free_unpacked(answer, NULL);
}
