/* users.c - people at a real client: they submit, cancel, drain, look, and follow the events.
 *
 * Whoever does not get an answer asks again, with the same key; what was answered must be true
 * ever after. Each follows the events across all coordinators, from revision 0 on, and compares
 * them with what is durable. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/rpc/streams.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

#define ADDRESS "tcp://127.0.0.1:7070"
#define DEADLINE_MS 10000
#define REFUSALS_MAX 3

/* One call until it has an answer. */
struct wish {
    struct user *user;
    struct wish *next;
    enum coordinator_method method;
    ProtobufCMessage *request;
    char key[32], job[32]; /* of a submission, and what it was answered */
    bool sent, answered, acknowledged;
    unsigned refusals;
    uint64_t due_ms;
};

struct user {
    struct actor actor; /* first */
    char name[16];
    struct rpc_client *client;
    struct rpc_watch *watch;
    bool greeting, greeted, watching;
    uint64_t hello_ms, revision, term;
    uint64_t followed_in; /* the term that the watch asks in */
    struct wish *wishes;  /* newest first */
    unsigned submitted;
};

static void answered(void *data, const struct rpc_result *result);

static void hello_answered(void *data, const struct rpc_result *result)
{
    struct user *user = data;
    user->greeting = false;
    user->greeted = result->status == RPC_OK;
    user->hello_ms = world_now_ms() + world_between(50, 1000);
    if (user->greeted && rpc_client_term(user->client) < user->term)
        world_fail("%s has gone back to term %llu", user->name,
                   (unsigned long long)rpc_client_term(user->client));
    user->term = rpc_client_term(user->client);
}

static void greet(struct user *user)
{
    Gimbal__HelloRequest request = GIMBAL__HELLO_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = 2000};
    user->greeting = true;
    rpc_client_start(user->client, COORDINATOR_HELLO, &request.base, &options, hello_answered,
                     user);
}

/* Records are those that are durable, one by one. */
static void compare(struct user *user, const Gimbal__StreamRecord *record)
{
    const struct disk *disk = cluster->coordinator.disk;
    if (record->revision != ++user->revision || record->revision > disk->event_count)
        world_fail("%s is told revision %llu, durable are %zu", user->name,
                   (unsigned long long)record->revision, disk->event_count);
    const struct disk_event *event = &disk->events[record->revision - 1];
    if (event->size != record->data.len ||
        memcmp(event->bytes, record->data.data, event->size) != 0)
        world_fail("%s is told another revision %llu than is durable", user->name,
                   (unsigned long long)record->revision);
    world->tally.watched++;
}

static void watched(void *data, const struct rpc_watch_event *event)
{
    struct user *user = data;
    for (size_t i = 0; i < event->count; i++)
        compare(user, event->records[i]);
    if (event->status == RPC_OK)
        return;
    if (event->status == RPC_OUT_OF_RANGE && user->followed_in == cluster->coordinator.term)
        world_fail("%s cannot follow the events: %s", user->name, event->text);
    user->watching = user->greeted = false;
}

static void send(struct wish *wish)
{
    struct rpc_call_options options = {.deadline_ms = DEADLINE_MS,
                                       .idempotency_key = wish->key[0] ? wish->key : NULL};
    wish->sent = true;
    rpc_client_start(wish->user->client, wish->method, wish->request, &options, answered, wish);
}

static bool will_pass(enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_CANCELLED || status == RPC_ABORTED;
}

static void keep_answer(struct wish *wish, const Gimbal__SubmitReply *reply)
{
    snprintf(wish->job, sizeof wish->job, "%s", reply->job);
    wish->acknowledged = true;
    world->tally.submitted++;
    const struct job *job = disk_job(cluster->coordinator.disk, reply->job);
    if (!job || strcmp(job->key, wish->key) != 0)
        world_fail("%s was told that '%s' is %s, and that is not durable", wish->user->name,
                   wish->key, reply->job);
}

static void answered(void *data, const struct rpc_result *result)
{
    struct wish *wish = data;
    struct user *user = wish->user;
    bool stale = result->status == RPC_FAILED_PRECONDITION;
    wish->sent = false;
    if (result->status == RPC_OK) {
        wish->answered = true;
        if (wish->method == COORDINATOR_SUBMIT)
            keep_answer(wish, result->reply);
        return;
    }
    world_trace("%s is refused %s: %s", user->name, service_coordinator.methods[wish->method].name,
                result->text);
    if (stale)
        user->greeted = false;
    if (!will_pass(result->status) && ++wish->refusals >= REFUSALS_MAX)
        wish->answered = true;
    wish->due_ms = world_now_ms() + world_between(50, 3000);
}

static void follow(struct user *user)
{
    user->watching = true;
    user->followed_in = rpc_client_term(user->client);
    if (user->watch)
        rpc_watch_resume(user->watch, user->revision);
    else
        user->watch =
            rpc_watch_start(user->client, COORDINATOR_WATCH_EVENTS, "events", 0, watched, user);
}

static void turn(struct actor *actor)
{
    struct user *user = (struct user *)actor;
    uint64_t next_ms = UINT64_MAX;
    rpc_client_poll(user->client, 0);
    if (!user->greeted && !user->greeting) {
        if (world_now_ms() >= user->hello_ms)
            greet(user);
        else
            next_ms = user->hello_ms;
    }
    if (user->greeted && !user->watching)
        follow(user);
    for (struct wish *wish = user->wishes; user->greeted && wish; wish = wish->next) {
        if (wish->sent || wish->answered)
            continue;
        if (world_now_ms() >= wish->due_ms)
            send(wish);
        else if (wish->due_ms < next_ms)
            next_ms = wish->due_ms;
    }
    actor_wake_at(actor, next_ms);
}

static void never_die(struct actor *actor)
{
    (void)actor;
}

struct user *users_create(size_t count)
{
    struct user *users = xcalloc(count, sizeof *users);
    for (size_t i = 0; i < count; i++) {
        struct user *user = &users[i];
        snprintf(user->name, sizeof user->name, "user%zu", i);
        user->actor = (struct actor){.name = user->name,
                                     .poll_cb = turn,
                                     .die_cb = never_die,
                                     .delay_ms_min = 1,
                                     .delay_ms_most = 20,
                                     .server = &cluster->coordinator.actor};
        struct rpc_client_options options = {
            .service = &service_coordinator, .address = ADDRESS, .caller = user->name};
        struct error err;
        struct actor *before = actor_enter(&user->actor);
        if (rpc_client_open(&options, &user->client, &err) < 0)
            world_fail("%s: %s", user->name, err.text);
        actor_leave(before);
        actor_wake(&user->actor);
    }
    return users;
}

void users_destroy(struct user *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct user *user = &users[i];
        struct actor *before = actor_enter(&user->actor);
        rpc_watch_stop(user->watch);
        rpc_client_close(user->client);
        actor_leave(before);
        for (struct wish *wish = user->wishes, *next; wish; wish = next) {
            next = wish->next;
            protobuf_c_message_free_unpacked(wish->request, NULL);
            free(wish);
        }
    }
    free(users);
}

/* The request is copied. */
static struct wish *add(struct user *user, enum coordinator_method method,
                        const ProtobufCMessage *request)
{
    struct wish *wish = xcalloc(1, sizeof *wish);
    size_t size = protobuf_c_message_get_packed_size(request);
    uint8_t *bytes = xcalloc(1, size + 1);
    protobuf_c_message_pack(request, bytes);
    wish->user = user;
    wish->method = method;
    wish->request = protobuf_c_message_unpack(request->descriptor, NULL, size, bytes);
    free(bytes);
    wish->next = user->wishes;
    user->wishes = wish;
    actor_wake(&user->actor);
    return wish;
}

static char *draw_job(const struct user *user)
{
    uint64_t most = world->options.big ? 64 : 8, least = world_between(1, most);
    if (world_chance(300))
        least = 1;
    char upper[32] = "";
    if (!world_chance(200))
        snprintf(upper, sizeof upper, ", max: %llu",
                 (unsigned long long)(least + world_draw(least + 2)));
    return xasprintf("apiVersion: gimbal/v1\n"
                     "name: %s-%u\n"
                     "model: {family: gpt, layers: 1, hidden: 8, heads: 1, seq: 8}\n"
                     "data: {text: [/data/text]}\n"
                     "train: {steps: %llu, global_batch: 64, lr: 1.0e-3}\n"
                     "devices: {min: %llu%s}\n"
                     "elastic: {replan: %s}\n"
                     "%s",
                     user->name, user->submitted,
                     (unsigned long long)world_between(2, world->options.big ? 200 : 20),
                     (unsigned long long)least, upper, world_chance(600) ? "true" : "false",
                     world_chance(500) ? "checkpoint: {dir: /checkpoints}\n" : "");
}

/* Takes the job. */
static void submit(struct user *user, char *yaml)
{
    Gimbal__JobSpec spec = GIMBAL__JOB_SPEC__INIT;
    Gimbal__SubmitRequest request = GIMBAL__SUBMIT_REQUEST__INIT;
    user->submitted++;
    spec.name = user->name;
    spec.yaml = yaml;
    request.spec = &spec;
    struct wish *wish = add(user, COORDINATOR_SUBMIT, &request.base);
    snprintf(wish->key, sizeof wish->key, "%s-%u", user->name, user->submitted);
    free(yaml);
}

void users_submit_endless(struct user *users, unsigned devices)
{
    submit(&users[0], xasprintf("apiVersion: gimbal/v1\n"
                                "name: endless\n"
                                "model: {family: gpt, layers: 1, hidden: 8, heads: 1, seq: 8}\n"
                                "data: {text: [/data/text]}\n"
                                "train: {steps: 1000000000, global_batch: 64, lr: 1.0e-3}\n"
                                "devices: {min: 1, max: %u}\n",
                                devices));
}

/* What could be, without a job. */
static void plan(struct user *user)
{
    Gimbal__PlanRequest request = GIMBAL__PLAN_REQUEST__INIT;
    request.job_yaml = draw_job(user);
    add(user, COORDINATOR_PLAN, &request.base);
    free(request.job_yaml);
}

static void cancel(struct user *user)
{
    const struct disk *disk = cluster->coordinator.disk;
    Gimbal__CancelRequest request = GIMBAL__CANCEL_REQUEST__INIT;
    if (disk->job_count == 0)
        return;
    size_t newest = disk->job_count < 10 ? disk->job_count : 10;
    const struct job *job = disk->jobs[disk->job_count - 1 - world_draw(newest)];
    for (size_t i = 1; i <= newest && world_chance(500); i++)
        if (disk->jobs[disk->job_count - i]->state == JOB_STARTING)
            job = disk->jobs[disk->job_count - i]; /* the moment at which most is under way */
    request.job = (char *)job->id;
    check_condemn(job->id);
    add(user, COORDINATOR_CANCEL, &request.base);
}

static void pause(struct user *user, const char *job, bool resume)
{
    Gimbal__PauseRequest pause = GIMBAL__PAUSE_REQUEST__INIT;
    Gimbal__ResumeRequest again = GIMBAL__RESUME_REQUEST__INIT;
    pause.job = again.job = (char *)job;
    pause.reason = (char *)"later";
    pause.release = world_chance(300);
    if (resume)
        add(user, COORDINATOR_RESUME, &again.base);
    else
        add(user, COORDINATOR_PAUSE, &pause.base);
}

static void pause_any(struct user *user)
{
    const struct disk *disk = cluster->coordinator.disk;
    for (size_t i = 0; i < disk->job_count; i++)
        if (disk->jobs[i]->held[0] && world_chance(500))
            pause(user, disk->jobs[i]->id, true);
    if (disk->job_count > 0)
        pause(user, disk->jobs[disk->job_count - 1 - world_draw(disk->job_count)]->id, false);
}

static void drain(struct user *user, const char *node, bool undo)
{
    Gimbal__DrainRequest request = GIMBAL__DRAIN_REQUEST__INIT;
    request.node = (char *)node;
    request.reason = (char *)"repair";
    request.undo = undo;
    add(user, COORDINATOR_DRAIN, &request.base);
}

static void look(struct user *user)
{
    Gimbal__ListJobsRequest jobs = GIMBAL__LIST_JOBS_REQUEST__INIT;
    Gimbal__ListNodesRequest nodes = GIMBAL__LIST_NODES_REQUEST__INIT;
    Gimbal__GetJobRequest job = GIMBAL__GET_JOB_REQUEST__INIT;
    job.job = (char *)"j-1";
    switch (world_draw(4)) {
    case 0:
        plan(user);
        break;
    case 1:
        add(user, COORDINATOR_LIST_JOBS, &jobs.base);
        break;
    case 2:
        add(user, COORDINATOR_LIST_NODES, &nodes.base);
        break;
    default:
        add(user, COORDINATOR_GET_JOB, &job.base);
        break;
    }
}

void users_cancel(struct user *users)
{
    cancel(&users[0]);
}

void users_act(struct user *users, size_t count)
{
    struct user *user = &users[world_draw(count)];
    uint64_t draw = world_draw(100);
    if (draw < 60)
        submit(user, draw_job(user));
    else if (draw < 70)
        cancel(user);
    else if (draw < 78)
        pause_any(user);
    else if (draw < 86)
        drain(user, cluster->nodes[world_draw(cluster->node_count)].name, world_chance(600));
    else
        look(user);
}

void users_free_all(struct user *users)
{
    const struct disk *disk = cluster->coordinator.disk;
    for (size_t i = 0; i < disk->job_count; i++)
        if (disk->jobs[i]->held[0] && !job_ended(disk->jobs[i]))
            pause(&users[0], disk->jobs[i]->id, true);
    for (size_t i = 0; i < cluster->node_count; i++)
        drain(&users[0], cluster->nodes[i].name, true);
}

bool users_settled(const struct user *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!users[i].watching || users[i].revision < cluster->coordinator.disk->event_count)
            return false;
        for (const struct wish *wish = users[i].wishes; wish; wish = wish->next)
            if (!wish->answered)
                return false;
    }
    return true;
}

void users_check(const struct user *users, size_t count)
{
    const struct disk *disk = cluster->coordinator.disk;
    for (size_t i = 0; i < count; i++)
        for (const struct wish *wish = users[i].wishes; wish; wish = wish->next) {
            const struct job *job = wish->acknowledged ? disk_job(disk, wish->job) : NULL;
            if (wish->acknowledged && (!job || strcmp(job->key, wish->key) != 0))
                world_fail("%s, acknowledged for '%s', is lost", wish->job, wish->key);
        }
}
