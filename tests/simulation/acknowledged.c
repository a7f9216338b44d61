/* acknowledged.c - every answer of a coordinator, at the moment when it leaves: what it says has
 * to be durable, because the coordinator may be dead in the next. */
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/call.h"
#include "common/rpc/services/coordinator.h"
#include "coordinator/service/calls.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

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
