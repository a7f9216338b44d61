/* askers.c - who waits for a search: a job in a certain epoch, or a caller.
 *
 * Searches run on other threads. An answer that comes after the job has moved to another epoch, or
 * after its caller's patience is over, is of use to nobody; the search is stopped as soon as that
 * is known. */
#include "coordinator/service/internal.h"
#include "coordinator/service/pages/pages.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

struct asker *asker_add(struct service *service, enum asks kind)
{
    struct asker *asker = xcalloc(1, sizeof *asker);
    asker->kind = kind;
    asker->until_ms = UINT64_MAX;
    service->askers = grow(service->askers, service->asker_count, &service->asker_capacity,
                           sizeof(struct asker *));
    service->askers[service->asker_count++] = asker;
    return asker;
}

static void asker_remove(struct service *service, struct asker *asker)
{
    size_t i = 0;
    while (service->askers[i] != asker)
        i++;
    service->askers[i] = service->askers[--service->asker_count];
    free(asker->devices);
    free(asker);
}

/* Whether the answer is still wanted: by a caller, by a job that waits for this very plan, by a
 * running job, or by somebody who looks at its timeline. */
static bool still_asks(const struct service *service, const struct asker *asker)
{
    if (asker->call)
        return asker->until_ms > service_now_ms(service);
    if (asker->kind == ASKS_PICTURE)
        return service_awaits_picture(service, asker);
    const struct job *job = jobs_find(service->jobs, asker->job);
    return job && job->state == (asker->kind == ASKS_JOB ? JOB_PLANNING : JOB_RUNNING) &&
           job->epoch == asker->epoch;
}

/* Allow the next spare plan to be searched. */
static void end_spare(struct service *service, const struct asker *asker)
{
    struct dossier *dossier = dossier_find(service, asker->job);
    if (dossier && dossier->spares.epoch == asker->epoch)
        dossier->spares.asked = false;
}

static void fail(struct rpc_call *call, const struct planning_answer *answer)
{
    if (answer->rc == -ENOSPC)
        rpc_call_fail(call, COORDINATOR_NO_PLAN, "%s", answer->err.text);
    else
        rpc_call_fail_errno(call, answer->rc, &answer->err);
}

static void answer(struct service *service, struct asker *asker, struct planning_answer *answer)
{
    switch (asker->kind) {
    case ASKS_CALL:
        if (answer->rc < 0)
            fail(asker->call, answer);
        else
            asker->answer_cb(asker->call, &answer->planning);
        break;
    case ASKS_JOB:
        service_planned(service, jobs_find(service->jobs, asker->job), answer);
        break;
    case ASKS_TRIAL:
        service_take_trial(service, jobs_find(service->jobs, asker->job), answer);
        service_keep_spare(service, asker, answer);
        break;
    case ASKS_SPARE:
        service_keep_spare(service, asker, answer);
        end_spare(service, asker);
        service_consider_spares(service);
        break;
    case ASKS_PICTURE:
        service_take_picture(service, asker, answer);
        break;
    }
}

static void give_up(struct service *service, struct asker *asker)
{
    planning_queue_withdraw(service->plans, asker);
    if (asker->kind == ASKS_SPARE)
        end_spare(service, asker);
    if (asker->call)
        rpc_call_fail(asker->call, RPC_DEADLINE_EXCEEDED,
                      "no plan was found in time: try a longer --timeout, fewer devices, or "
                      "'search: uniform'");
    asker_remove(service, asker);
}

void service_take_plans(struct service *service)
{
    struct planning_answer found;
    for (size_t i = service->asker_count; i-- > 0;)
        if (!still_asks(service, service->askers[i]))
            give_up(service, service->askers[i]);
    while (planning_queue_take(service->plans, &found)) {
        answer(service, found.asker, &found);
        asker_remove(service, found.asker);
        planning_finish(&found.planning);
    }
}

uint64_t service_plans_next_ms(const struct service *service)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < service->asker_count; i++)
        if (service->askers[i]->until_ms < next_ms)
            next_ms = service->askers[i]->until_ms;
    return next_ms;
}

void service_forget_askers(struct service *service)
{
    while (service->asker_count > 0)
        asker_remove(service, service->askers[0]);
    free(service->askers);
}
