/* service.c - the life cycle of the service, and what happens by the clock alone. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"
#include "coordinator/service/pages/pages.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define PUSHERS_MAX 4096

uint64_t service_now_ms(const struct service *service)
{
    return service->options.clock_cb();
}

const char *assignments_parked(char *out, uint64_t instance)
{
    snprintf(out, PARKED_SIZE, "assignments %016" PRIx64, instance);
    return out;
}

const char *rendezvous_parked(char *out, const char *job, uint64_t epoch)
{
    snprintf(out, PARKED_SIZE, "rendezvous %.*s %" PRIu64, JOB_ID_SIZE, job, epoch);
    return out;
}

/* The process behind a held connection is gone, and if it was a worker, so are its devices. Where
 * that cannot be stored now, its silence will tell. */
static void client_gone(void *data, uint64_t client)
{
    struct service *service = data;
    if (service->room.left == STORE_ROOM_NONE)
        return;
    for (size_t i = 0; i < membership_count(service->membership); i++) {
        const struct worker *worker = membership_at(service->membership, i);
        if (worker->instance == client && !worker->dead) {
            membership_disconnect(service->membership, worker->name, client,
                                  service_now_ms(service), &service->happened);
            service_turn(service);
            return;
        }
    }
}

static void install(struct service *service, const struct service_handler *handlers)
{
    for (; handlers->cb; handlers++) {
        struct service_guarded *guarded = &service->guarded[handlers->method];
        *guarded = (struct service_guarded){service, handlers->method, handlers->cb};
        rpc_server_handle(service->server, handlers->method, service_guard, guarded);
    }
}

int service_open(const struct service_options *options, struct service **out, struct error *err)
{
    int rc = membership_config_check(&options->membership, err);
    if (rc < 0)
        return rc;
    struct service *service = xcalloc(1, sizeof *service);
    service->options = *options;
    service->started_ms = service_now_ms(service);
    struct rpc_server_options server = {
        .service = &service_coordinator,
        .term = options->term,
        .instance = options->instance,
        .cluster = store_cluster(options->store),
        .gather = true,
        .release = options->release,
        .admit_cb = service_admit,
        .heard_cb = service_hear,
        .gone_cb = client_gone,
        .data = service,
        .clock_cb = options->clock_cb,
        .calendar_cb = options->clock_cb,
    };
    rc = rpc_server_create(&server, &service->server, err);
    if (rc < 0) {
        free(service);
        return rc;
    }
    install(service, worker_handlers);
    install(service, rank_handlers);
    install(service, telemetry_handlers);
    install(service, submit_handlers);
    install(service, user_handlers);
    install(service, pause_handlers);
    install(service, checkpoint_handlers);
    install(service, cluster_handlers);
    install(service, drill_handlers);
    install(service, history_handlers);
    install(service, identity_handlers);
    install(service, trace_handlers);
    install(service, backup_handlers);
    service->identity = identity_create();
    service->membership = membership_create(&options->membership);
    service->assignments = assignments_create(options->term);
    service->rendezvous = rendezvous_create();
    service->telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    service->inboxes = inboxes_create(PUSHERS_MAX);
    service->events = stream_create(options->term, EVENTS_KEPT);
    rc = planning_queue_create(&service->plans, err);
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
    service_tell_door(service);
    planning_queue_destroy(service->plans);
    service_forget_askers(service);
    service_forget_timelines(service);
    free(service->submitters);
    free(service->slow);
    service_finish_network(service);
    rpc_server_destroy(service->server);
    dossiers_finish(service);
    identity_destroy(service->identity);
    membership_destroy(service->membership);
    jobs_destroy(service->jobs);
    assignments_destroy(service->assignments);
    rendezvous_destroy(service->rendezvous);
    telemetry_destroy(service->telemetry);
    inboxes_destroy(service->inboxes);
    stream_destroy(service->events);
    membership_events_finish(&service->happened);
    jobs_actions_finish(&service->actions);
    for (size_t i = 0; i < service->released_count; i++)
        free(service->released[i]);
    free(service->released);
    store_copy_finish(&service->backup.copy);
    tally_finish(&service->tally);
    free(service);
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
    return planning_queue_fd(service->plans);
}

uint64_t service_patience_ms(const struct service *service, const struct rpc_call *call)
{
    uint32_t deadline_ms = rpc_call_envelope(call)->deadline_ms;
    return service_now_ms(service) + deadline_ms - deadline_ms / 4;
}

static uint64_t next_ms(const struct service *service)
{
    const uint64_t all_ms[] = {
        membership_next_ms(service->membership), service_door_next_ms(service),
        service_plans_next_ms(service),          service_submitters_next_ms(service),
        service_backup_next_ms(service),         store_room_next_ms(service->options.store),
    };
    uint64_t least_ms = UINT64_MAX;
    for (size_t i = 0; i < sizeof all_ms / sizeof *all_ms; i++)
        least_ms = all_ms[i] < least_ms ? all_ms[i] : least_ms;
    return least_ms;
}

int service_timeout_ms(const struct service *service)
{
    int timeout_ms = rpc_server_timeout_ms(service->server);
    bool waits = service->room.left == STORE_ROOM_NONE;
    uint64_t due_ms = waits ? store_room_next_ms(service->options.store) : next_ms(service);
    uint64_t now_ms = service_now_ms(service);
    if (due_ms == UINT64_MAX)
        return timeout_ms;
    uint64_t left_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    if (timeout_ms >= 0 && (uint64_t)timeout_ms < left_ms)
        return timeout_ms;
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static void excuse_since(struct service *service, uint64_t began_ms)
{
    uint64_t now_ms = service_now_ms(service);
    membership_excuse(service->membership, now_ms - began_ms, now_ms);
}

/* The main loop wakes when the first worker is due. If it is later than that, this process or its
 * machine was stopped meanwhile, and nobody listened to the workers. */
static void excuse_lateness(struct service *service)
{
    uint64_t due_ms = membership_next_ms(service->membership);
    if (service_now_ms(service) > due_ms)
        excuse_since(service, due_ms);
}

int service_commit(struct service *service, struct error *err)
{
    int rc = store_commit(service->options.store, err);
    if (rc < 0)
        return error_prefix(err, rc, "the store has failed, and nothing more is accepted");
    return 0;
}

/* What has come is answered once all changes are durable. */
static int finish_poll(struct service *service, struct error *err)
{
    int rc = service_commit(service, err);
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
    excuse_lateness(service);
    service_look_for_room(service);
    uint64_t began_ms = service_now_ms(service);
    rpc_server_poll(service->server, 0);
    if (service->room.left == STORE_ROOM_NONE)
        return finish_poll(service, err);
    excuse_since(service, began_ms);
    began_ms = service_now_ms(service);
    membership_expire(service->membership, began_ms, &service->happened);
    service_take_plans(service);
    service_turn(service);
    service_answer_submitters(service);
    service_watch_door(service);
    service_expire_backup(service);
    int rc = finish_poll(service, err);
    excuse_since(service, began_ms);
    return rc;
}
