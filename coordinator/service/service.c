/* service.c - the life cycle of the service, and what happens by the clock alone.
 *
 * A coordinator continues where the one before ended. Workers come first, suspect until they are
 * heard from; then jobs, each repeating the actions that its state calls for; then jobs hear which
 * of their workers are gone. Running executors are not disturbed: their workers find this
 * coordinator, and have already done what they are told again. */
#include "coordinator/service/service.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "coordinator/service/calls.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/curves.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/retention.h"
#include "coordinator/turn/turn.h"

#define PUSHERS_MAX 4096

/* ---- what the store has ---- */

static int restore_worker(void *data, const struct worker *worker, struct error *err)
{
    struct state *state = data;
    int rc = membership_restore(state->membership, worker, state_now_ms(state), err);
    if (rc == 0 && !worker->dead)
        assignments_open(state->assignments, worker->instance);
    return rc;
}

static int restore_plan(struct state *state, const struct job *job, struct planning *planning,
                        struct error *err)
{
    struct store_plan stored;
    struct error why;
    int rc = store_read_plan(state->options.store, job, &stored, err);
    if (rc == 0 && stored.json && plan_decode(stored.json, &planning->plan, &why) == 0) {
        planning->json = stored.json;
        planning->candidates = stored.candidates;
        planning->hashes = stored.hashes;
        planning->compute_s = stored.compute_s;
        planning->rank_count = stored.rank_count;
        return 0;
    }
    if (rc == 0 && stored.json)
        log_line(LOG_WARN, "the plan of %s is no longer understood: %s", job->id, why.text);
    store_plan_finish(&stored);
    return rc < 0 ? error_prefix(err, rc, "its plan") : 0;
}

/* A job that was understood when it was submitted may no longer be. It hears of that when it has to
 * be planned, which parses it again. */
static void restore_read_job(const struct job *job, struct dossier *dossier)
{
    struct error err;
    int rc = job_config_parse(job->text, strlen(job->text), "job file", &dossier->config, &err);
    if (rc < 0)
        log_line(LOG_WARN, "%s is no longer understood: %s", job->id, err.text);
}

static int restore_job(void *data, const struct job *stored, struct error *err)
{
    struct state *state = data;
    int rc = jobs_restore(state->jobs, stored, &state->actions, err);
    if (rc < 0)
        return rc;
    struct dossier *dossier = dossier_add(state, stored->id, NULL);
    dossier->told_state = stored->state;
    dossier->told_reason = stored->reason;
    dossier->told_step = stored->step;
    if (!job_ended(stored))
        restore_read_job(stored, dossier);
    rc = curves_restore(state, stored, err);
    if (rc == 0)
        rc = store_read_corpus(state->options.store, stored, &dossier->corpus, err);
    return rc < 0 ? rc : restore_plan(state, stored, &dossier->planning, err);
}

static int restore_value(void *data, const char *job, uint64_t epoch, const char *key,
                         const void *value, size_t size, struct error *err)
{
    struct state *state = data;
    return rendezvous_put(state->rendezvous, job, epoch, key, value, size, err);
}

/* Report the loss of those ranks of the job whose worker did not survive. */
static void restore_lose_ranks(struct state *state, const struct job *job)
{
    for (size_t i = 0; job->holding && i < job->rank_count; i++) {
        const struct device_ref *device = &job->ranks[i].device;
        const struct worker *worker = membership_find(state->membership, device->worker);
        if (worker && !worker->dead && worker->instance == device->instance)
            continue;
        struct job_event event = {.kind = JOB_EVENT_WORKER_LOST,
                                  .words = "it was gone when the coordinator restarted"};
        event.worker.name = device->worker;
        event.worker.instance = device->instance;
        state_apply(state, &event, NULL);
    }
}

/* A job whose current plan is no longer understood is planned again. */
static void restore_lose_plan(struct state *state, const struct job *job)
{
    bool goes = job->state == JOB_STARTING || job->state == JOB_RUNNING ||
                job->state == JOB_PAUSING || job->state == JOB_PAUSED;
    if (!goes || dossier_find(state, job->id)->planning.plan)
        return;
    struct job_event event = {.kind = JOB_EVENT_EXITED,
                              .job = job->id,
                              .epoch = job->epoch,
                              .words = "the restarted coordinator does not understand its plan",
                              .exited = {.status = EXIT_FAILURE}};
    state_apply(state, &event, NULL);
}

/* Events are read in order, so the first one tells where the stream begins: or the first after some
 * that were removed with their job. */
static int restore_event(void *data, uint64_t revision, const Gimbal__Event *event)
{
    struct state *state = data;
    size_t size;
    void *bytes = message_pack(&event->base, &size);
    if (revision != stream_revision(state->events) + 1)
        stream_resume(state->events, revision - 1);
    stream_append(state->events, bytes, size);
    free(bytes);
    return 0;
}

/* As many as are kept; older ones in the store are about to be removed. */
static size_t service_ended_max(const struct state *state)
{
    size_t most = state->options.retention.jobs;
    return most > 0 ? most : SIZE_MAX;
}

static int service_restore(struct service *service, struct error *err)

{
    struct state *state = service->state;
    struct store *store = state->options.store;
    struct store_query newest = {"", "", 0, EVENTS_KEPT, NULL, true};
    struct jobs_config config = JOBS_CONFIG_DEFAULT;
    uint64_t number;
    int rc = store_next_number(store, &number, err);
    if (rc < 0)
        return rc;
    state->jobs = jobs_create(&config, number);
    rc = store_read_events(store, &newest, restore_event, state, err);
    if (rc == 0)
        rc = store_read_identity(store, service->identity, err);
    if (rc == 0)
        rc = store_read_workers(store, restore_worker, state, err);
    if (rc == 0)
        rc = store_read_jobs(store, service_ended_max(state), restore_job, state, err);
    if (rc == 0)
        rc = store_read_values(store, restore_value, state, err);
    if (rc < 0)
        return error_prefix(err, rc, "restore what is stored");
    state->turn->events_woken = stream_revision(state->events);
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        restore_lose_ranks(state, jobs_at(state->jobs, i));
        restore_lose_plan(state, jobs_at(state->jobs, i));
    }
    turn_run(state);
    return turn_commit(state, err);
}

/* ---- life ---- */

/* Milliseconds of the state's clock. */
static uint64_t service_now_ms(const struct service *service)
{
    return state_now_ms(service->state);
}

static int service_admit(void *data, unsigned from, const Gimbal__Envelope *envelope,
                         struct error *err)
{
    struct service *service = data;
    return door_admit(&service->door, from, envelope, err);
}

static void service_hear(void *data, unsigned from, const Gimbal__Envelope *envelope)
{
    struct service *service = data;
    workers_hear(service->state, from, envelope);
}

/* The process behind a held connection is gone, and if it was a worker, so are its devices. Where
 * that cannot be stored now, its silence will tell. */
static void service_client_gone(void *data, uint64_t client)
{
    struct service *service = data;
    struct state *state = service->state;
    if (service->door.left == STORE_ROOM_NONE)
        return;
    for (size_t i = 0; i < membership_count(state->membership); i++) {
        const struct worker *worker = membership_at(state->membership, i);
        if (worker->instance == client && !worker->dead) {
            membership_disconnect(state->membership, worker->name, client, state_now_ms(state),
                                  &state->happened);
            turn_run(state);
            return;
        }
    }
}

static void service_install(struct service *service, const struct service_handler *handlers,
                            void *data)
{
    for (; handlers->cb; handlers++) {
        struct door_guarded *guarded = &service->door.guarded[handlers->method];
        *guarded = (struct door_guarded){&service->door, handlers->method, handlers->cb, data};
        rpc_server_handle(service->server, handlers->method, door_guard, guarded);
    }
}

static void service_install_all(struct service *service)
{
    service_install(service, worker_handlers, service->state);
    service_install(service, job_handlers, service->state);
    service_install(service, report_handlers, service);
    service_install(service, submit_handlers, service);
    service_install(service, cluster_handlers, service->state);
    service_install(service, backup_handlers, service);
    service_install(service, identity_handlers, service);
}

int service_open(const struct state_options *options, struct service **out, struct error *err)
{
    int rc = membership_config_check(&options->membership, err);
    if (rc < 0)
        return rc;
    struct service *service = xcalloc(1, sizeof *service);
    struct rpc_server_options server = {
        .service = &service_coordinator,
        .term = options->term,
        .instance = options->instance,
        .cluster = store_cluster(options->store),
        .gather = true,
        .release = options->release,
        .admit_cb = service_admit,
        .heard_cb = service_hear,
        .gone_cb = service_client_gone,
        .data = service,
        .clock_cb = options->clock_cb,
        .calendar_cb = options->clock_cb,
    };
    rc = rpc_server_create(&server, &service->server, err);
    if (rc < 0) {
        free(service);
        return rc;
    }
    service->identity = identity_create();
    service->inboxes = inboxes_create(PUSHERS_MAX);
    rc = turn_open(options, service->server, &service->state, err);
    service->door.state = service->state;
    service->door.identity = service->identity;
    service_install_all(service);
    if (rc == 0)
        rc = service_restore(service, err);
    if (rc < 0) {
        service_close(service);
        return rc;
    }
    *out = service;
    return 0;
}

void service_close(struct service *service)
{
    if (!service)
        return;
    door_tell(&service->door);
    turn_close(service->state);
    rpc_server_destroy(service->server);
    identity_destroy(service->identity);
    inboxes_destroy(service->inboxes);
    free(service->submitters.items);
    free(service->reporters.items);
    store_copy_finish(&service->backup.copy);
    free(service);
}

struct state *service_state(struct service *service)
{
    return service->state;
}

int service_listen(struct service *service, const char *address, const struct bundle *bundle,
                   struct error *err)
{
    return door_listen(&service->door, address, bundle, err);
}

const char *service_address(const struct service *service)
{
    return door_address(&service->door);
}

char *service_address_lines(const struct service *service)
{
    return door_address_lines(&service->door);
}

const struct histogram *service_handling(const struct service *service, unsigned method)
{
    return rpc_server_handling(service->server, method);
}

int service_fd(const struct service *service)
{
    return rpc_server_fd(service->server);
}

int service_plans_fd(const struct service *service)
{
    return planning_queue_fd(service->state->plans);
}

static uint64_t service_next_ms(const struct service *service)
{
    const uint64_t all_ms[] = {
        membership_next_ms(service->state->membership),
        door_next_ms(&service->door),
        asking_next_ms(service->state),
        submitters_next_ms(service),
        curves_next_ms(service->state),
        retention_next_ms(service->state),
        backup_next_ms(service),
        store_room_next_ms(service->state->options.store),
    };
    uint64_t least_ms = UINT64_MAX;
    for (size_t i = 0; i < sizeof all_ms / sizeof *all_ms; i++)
        least_ms = all_ms[i] < least_ms ? all_ms[i] : least_ms;
    return least_ms;
}

int service_timeout_ms(const struct service *service)
{
    int timeout_ms = rpc_server_timeout_ms(service->server);
    bool waits = service->door.left == STORE_ROOM_NONE;
    uint64_t due_ms =
        waits ? store_room_next_ms(service->state->options.store) : service_next_ms(service);
    uint64_t now_ms = service_now_ms(service);
    if (due_ms == UINT64_MAX)
        return timeout_ms;
    uint64_t left_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    if (timeout_ms >= 0 && (uint64_t)timeout_ms < left_ms)
        return timeout_ms;
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static void service_excuse_since(struct service *service, uint64_t began_ms)
{
    uint64_t now_ms = service_now_ms(service);
    membership_excuse(service->state->membership, now_ms - began_ms, now_ms);
}

/* The main loop wakes when the first worker is due. If it is later than that, this process or its
 * machine was stopped meanwhile, and nobody listened to the workers. */
static void service_excuse_lateness(struct service *service)
{
    uint64_t due_ms = membership_next_ms(service->state->membership);
    if (service_now_ms(service) > due_ms)
        service_excuse_since(service, due_ms);
}

/* What has come is answered once all changes are durable. */
static int service_finish_poll(struct service *service, struct error *err)
{
    int rc = turn_commit(service->state, err);
    if (rc < 0)
        rpc_server_withdraw(service->server, err->text);
    else
        rpc_server_release(service->server);
    return rc;
}

/* Handle everything that has come, make all changes durable at once, and only then send the
 * answers. Calls come first, so that workers whose calls have waited are heard before any of them
 * expires. Time that we take ourselves does not count as silence of the workers. */
int service_poll(struct service *service, struct error *err)
{
    struct state *state = service->state;
    service_excuse_lateness(service);
    door_look_at_disk(&service->door);
    uint64_t began_ms = service_now_ms(service);
    rpc_server_poll(service->server, 0);
    if (service->door.left == STORE_ROOM_NONE)
        return service_finish_poll(service, err);
    service_excuse_since(service, began_ms);
    began_ms = service_now_ms(service);
    membership_expire(state->membership, began_ms, &state->happened);
    asking_take(state);
    turn_run(state);
    retention_enforce(state);
    submitters_answer(service);
    reporters_answer(service);
    door_watch(&service->door);
    backup_expire(service);
    int rc = service_finish_poll(service, err);
    service_excuse_since(service, began_ms);
    return rc;
}
