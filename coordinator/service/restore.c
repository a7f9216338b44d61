/* restore.c - continues where the previous coordinator ended.
 *
 * Workers come first, suspect until they are heard from; then jobs, each repeating the actions that
 * its state calls for; then jobs hear which of their workers are gone. Running executors are not
 * disturbed: their workers find this coordinator, and have already done what they are told
 * again. */
#include "coordinator/service/internal.h"

#include "common/base/log.h"
#include "common/rpc/message.h"

#include <stdlib.h>
#include <string.h>

static int restore_worker(void *data, const struct worker *worker, struct error *err)
{
    struct service *service = data;
    int rc = membership_restore(service->membership, worker, service_now_ms(service), err);
    if (rc == 0 && !worker->dead)
        assignments_open(service->assignments, worker->instance);
    return rc;
}

static int restore_plan(struct service *service, const struct job *job, struct planning *planning,
                        struct error *err)
{
    struct store_plan stored;
    struct error why;
    int rc = store_read_plan(service->options.store, job, &stored, err);
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
static void read_job(const struct job *job, struct dossier *dossier)
{
    struct error err;
    int rc = job_config_parse(job->text, strlen(job->text), "job file", &dossier->config, &err);
    if (rc < 0)
        log_line(LOG_WARN, "%s is no longer understood: %s", job->id, err.text);
}

static int restore_job(void *data, const struct job *stored, struct error *err)
{
    struct service *service = data;
    int rc = jobs_restore(service->jobs, stored, &service->actions, err);
    if (rc < 0)
        return rc;
    struct dossier *dossier = dossier_add(service, stored->id, NULL);
    dossier->told_state = stored->state;
    dossier->told_reason = stored->reason;
    dossier->told_step = stored->step;
    if (!job_ended(stored))
        read_job(stored, dossier);
    rc = store_read_corpus(service->options.store, stored, &dossier->corpus, err);
    return rc < 0 ? rc : restore_plan(service, stored, &dossier->planning, err);
}

static int restore_value(void *data, const char *job, uint64_t epoch, const char *key,
                         const void *value, size_t size, struct error *err)
{
    struct service *service = data;
    return rendezvous_put(service->rendezvous, job, epoch, key, value, size, err);
}

/* Report the loss of those ranks of the job whose worker did not survive. */
static void lose_ranks(struct service *service, const struct job *job)
{
    for (size_t i = 0; job->holding && i < job->rank_count; i++) {
        const struct device_ref *device = &job->ranks[i].device;
        const struct worker *worker = membership_find(service->membership, device->worker);
        if (worker && !worker->dead && worker->instance == device->instance)
            continue;
        struct job_event event = {.kind = JOB_EVENT_WORKER_LOST,
                                  .words = "it was gone when the coordinator restarted"};
        event.worker.name = device->worker;
        event.worker.instance = device->instance;
        service_apply(service, &event, NULL);
    }
}

/* A job whose current plan is no longer understood is planned again. */
static void lose_plan(struct service *service, const struct job *job)
{
    bool goes = job->state == JOB_STARTING || job->state == JOB_RUNNING ||
                job->state == JOB_PAUSING || job->state == JOB_PAUSED;
    if (!goes || dossier_find(service, job->id)->planning.plan)
        return;
    struct job_event event = {.kind = JOB_EVENT_EXITED,
                              .job = job->id,
                              .epoch = job->epoch,
                              .words = "the restarted coordinator does not understand its plan",
                              .exited = {.status = EXIT_FAILURE}};
    service_apply(service, &event, NULL);
}

/* Events are read in order, so the first one tells where the stream begins. */
static int restore_event(void *data, uint64_t revision, const Gimbal__Event *event)
{
    struct service *service = data;
    size_t size;
    void *bytes = message_pack(&event->base, &size);
    if (stream_revision(service->events) == 0)
        stream_resume(service->events, revision - 1);
    stream_append(service->events, bytes, size);
    free(bytes);
    return 0;
}

int service_restore(struct service *service, struct error *err)
{
    struct store *store = service->options.store;
    struct store_query newest = {"", "", 0, EVENTS_KEPT, NULL, true};
    struct jobs_config config = JOBS_CONFIG_DEFAULT;
    uint64_t number;
    int rc = store_next_number(store, &number, err);
    if (rc < 0)
        return rc;
    service->jobs = jobs_create(&config, number);
    rc = store_read_events(store, &newest, restore_event, service, err);
    if (rc == 0)
        rc = store_read_identity(store, service->identity, err);
    if (rc == 0)
        rc = store_read_workers(store, restore_worker, service, err);
    if (rc == 0)
        rc = store_read_jobs(store, config.ended_max, restore_job, service, err);
    if (rc == 0)
        rc = store_read_values(store, restore_value, service, err);
    if (rc < 0)
        return error_prefix(err, rc, "restore what is stored");
    service->events_woken = stream_revision(service->events);
    for (size_t i = 0; i < jobs_count(service->jobs); i++) {
        lose_ranks(service, jobs_at(service->jobs, i));
        lose_plan(service, jobs_at(service->jobs, i));
    }
    service_turn(service);
    return service_commit(service, err);
}
