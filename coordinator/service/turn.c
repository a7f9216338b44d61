/* turn.c - draws the consequences of what has happened.
 *
 * Events of membership go to jobs, actions of jobs are carried out (actions.c), and what that
 * brings about goes the same way, until nothing is left; only then are free devices granted. So
 * whoever is answered after a turn sees everything that followed from the call. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/log.h"

#include <errno.h>
#include <stdlib.h>

int service_apply(struct service *service, const struct job_event *event, struct error *err)
{
    return jobs_apply(service->jobs, event, service_now_ms(service), &service->actions, err);
}

void service_apply_own(struct service *service, const struct job_event *event)
{
    struct error err;
    int rc = service_apply(service, event, &err);
    if (rc < 0 && rc != -ESTALE)
        log_line(LOG_ERROR, "%s", err.text);
}

/* Store the worker as it is. Suspicion is not stored, since a restarted coordinator suspects every
 * worker. */
static void put_worker(struct service *service, const struct membership_event *happened)
{
    if (happened->kind == MEMBERSHIP_SUSPECTED || happened->kind == MEMBERSHIP_RECOVERED)
        return;
    const struct worker *worker = membership_find(service->membership, happened->worker);
    if (worker)
        store_put_worker(service->options.store, worker);
    else
        store_delete_worker(service->options.store, happened->worker);
}

static void act_on_membership(struct service *service, const struct membership_event *happened)
{
    struct job_event event = {.words = happened->reason};
    event.worker.name = happened->worker;
    event.worker.instance = happened->instance;
    switch (happened->kind) {
    case MEMBERSHIP_LOST:
        event.kind = JOB_EVENT_WORKER_LOST;
        assignments_close(service->assignments, happened->instance);
        service_forget_slow(service, happened->instance);
        service_forget_network(service, happened->worker);
        break;
    case MEMBERSHIP_DRAINING:
        event.kind = JOB_EVENT_WORKER_DRAINS;
        break;
    case MEMBERSHIP_JOINED:
        assignments_open(service->assignments, happened->instance);
        service->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    case MEMBERSHIP_CHANGED:
        service_forget_spares(service);
        service->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    case MEMBERSHIP_RECOVERED:
    case MEMBERSHIP_UNDRAINED: /* its devices can be had again */
        service->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    default:
        return;
    }
    service_apply_own(service, &event);
}

/* Returns true if anything had happened. */
static bool act_on_happened(struct service *service)
{
    struct membership_events happened = service->happened;
    service->happened = (struct membership_events){0};
    for (size_t i = 0; i < happened.count; i++) {
        put_worker(service, &happened.items[i]);
        service_tell_membership(service, &happened.items[i]);
        act_on_membership(service, &happened.items[i]);
    }
    bool any = happened.count > 0;
    membership_events_finish(&happened);
    return any;
}

static void schedule(struct service *service)
{
    struct device_view *devices;
    size_t count = membership_devices(service->membership, &devices);
    service_mark_slow(service, devices, count);
    jobs_schedule(service->jobs, devices, count, service_now_ms(service), &service->actions);
    free(devices);
}

static void wake(struct service *service)
{
    char parked[PARKED_SIZE];
    uint64_t instance;
    while (assignments_changed(service->assignments, &instance))
        rpc_server_wake(service->server, assignments_parked(parked, instance));
    while (service->released_count > 0) {
        char *name = service->released[--service->released_count];
        rpc_server_wake(service->server, name);
        free(name);
    }
    if (stream_revision(service->events) != service->events_woken) {
        service->events_woken = stream_revision(service->events);
        rpc_server_wake(service->server, EVENTS_STREAM);
    }
}

void service_turn(struct service *service)
{
    bool any = true;
    while (any) {
        any = false;
        while (act_on_happened(service) || service_carry_out(service))
            any = true;
        if (any)
            schedule(service);
    }
    if (service->growth_due) {
        service->growth_due = false;
        service_consider_growth(service);
        service_consider_spares(service);
    }
    wake(service);
}
