/* cluster_check.c - what must hold in a simulated cluster at all times. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cluster_internal.h"

static bool same_device(const struct device_ref *a, const struct device_ref *b)
{
    return a->instance == b->instance && a->index == b->index && strcmp(a->worker, b->worker) == 0;
}

/* Membership and jobs agree on who holds what, so no device has two jobs. */
static void check_grants(const struct cluster *cluster)
{
    struct device_view *views;
    size_t count = membership_devices(cluster->membership, &views), held = 0, claimed = 0;
    for (size_t i = 0; i < count; i++)
        held += views[i].holder[0] ? 1 : 0;
    for (size_t j = 0; j < jobs_count(cluster->jobs); j++) {
        const struct job *job = jobs_at(cluster->jobs, j);
        struct device_ref refs[SIM_DEVICES];
        size_t claims = job_devices(job, refs);
        claimed += claims;
        for (size_t r = 0; r < claims; r++) {
            size_t i = 0;
            while (i < count && !same_device(&views[i].ref, &refs[r]))
                i++;
            ck_assert_msg(i < count, SIM_AT "%s holds %s/%u, which is gone", SIM_WHERE(cluster),
                          job->id, refs[r].worker, refs[r].index);
            ck_assert_msg(strcmp(views[i].holder, job->id) == 0, SIM_AT "%s/%u is %s's, not %s's",
                          SIM_WHERE(cluster), refs[r].worker, refs[r].index, views[i].holder,
                          job->id);
        }
    }
    ck_assert_msg(held == claimed, SIM_AT "%zu devices are held, jobs claim %zu",
                  SIM_WHERE(cluster), held, claimed);
    free(views);
}

/* Executors run on devices that their job holds, and one at a time on each. */
static void check_executors(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->executor_count; i++) {
        const struct sim_executor *executor = &cluster->executors[i];
        if (executor->exited)
            continue;
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(cluster->executors[k].exited ||
                              !same_device(&executor->device, &cluster->executors[k].device),
                          SIM_AT "%s and %s both run on %s/%u", SIM_WHERE(cluster), executor->job,
                          cluster->executors[k].job, executor->device.worker,
                          executor->device.index);
        const struct job *job = jobs_find(cluster->jobs, executor->job);
        const struct worker *worker = membership_find(cluster->membership, executor->device.worker);
        bool known = worker && !worker->dead && worker->instance == executor->device.instance;
        ck_assert_msg(!known || (job->holding && job->epoch == executor->epoch),
                      SIM_AT "%s rank %u still runs, but the job is %s", SIM_WHERE(cluster),
                      executor->job, executor->rank, job_state_name(job->state));
    }
}

/* A job that is in the list is stored as it is; nothing stored is missing. */
static void check_store(const struct cluster *cluster)
{
    ck_assert_uint_eq(jobs_count(cluster->jobs), cluster->stored_count);
    for (size_t i = 0; i < cluster->stored_count; i++) {
        const struct job *job = jobs_at(cluster->jobs, i), *stored = cluster->stored[i];
        bool same = strcmp(job->id, stored->id) == 0 && job->state == stored->state &&
                    job->epoch == stored->epoch && job->reason == stored->reason &&
                    job->holding == stored->holding && job->rank_count == stored->rank_count;
        for (size_t r = 0; same && r < job->rank_count; r++)
            same = same_device(&job->ranks[r].device, &stored->ranks[r].device) &&
                   (job->ranks[r].state >= JOB_RANK_EXITED) ==
                       (stored->ranks[r].state >= JOB_RANK_EXITED);
        ck_assert_msg(same, SIM_AT "%s is %s (%s), stored is %s as %s (%s)", SIM_WHERE(cluster),
                      job->id, job_state_name(job->state), job_reason_name(job->reason), stored->id,
                      job_state_name(stored->state), job_reason_name(stored->reason));
    }
}

/* A state is consistent in itself. */
static void check_job(const struct cluster *cluster, const struct job *job)
{
    bool good = job->state > JOB_NEW && job->state < JOB_STATES;
    switch (job->state) {
    case JOB_PENDING:
        good = !job->holding && job->rank_count == 0 && job->reason != JOB_REASON_NONE;
        break;
    case JOB_PLANNING:
    case JOB_STARTING:
    case JOB_RUNNING:
        good = job->holding && job->rank_count >= job->devices_min &&
               job->rank_count <= job->devices_max && job->reason == JOB_REASON_NONE &&
               job->epoch > 0;
        break;
    case JOB_CANCELLING:
    case JOB_FAILING:
        good = job->holding && job->reason != JOB_REASON_NONE;
        break;
    default:
        good = good && !job->holding && job->ended_ms >= job->submitted_ms;
    }
    ck_assert_msg(good, SIM_AT "%s cannot be %s with reason %s, %zu ranks and holding %d",
                  SIM_WHERE(cluster), job->id, job_state_name(job->state),
                  job_reason_name(job->reason), job->rank_count, job->holding);
}

static void check_workers(const struct cluster *cluster)
{
    const struct membership *membership = cluster->membership;
    for (size_t i = 1; i < membership_count(membership); i++)
        ck_assert_str_lt(membership_at(membership, i - 1)->name,
                         membership_at(membership, i)->name);
}

void sim_check(const struct cluster *cluster)
{
    for (size_t i = 0; i < jobs_count(cluster->jobs); i++)
        check_job(cluster, jobs_at(cluster->jobs, i));
    check_workers(cluster);
    check_grants(cluster);
    check_executors(cluster);
    check_store(cluster);
}

static enum hardware_kind kind_of(const struct job *job, const struct device_view *views,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_device(&views[i].ref, &job->ranks[0].device))
            return views[i].device->kind;
    ck_abort_msg("%s was granted a device that is not there", job->id);
    return HARDWARE_CPU;
}

void sim_check_fifo(const struct cluster *cluster, const struct device_view *views, size_t count)
{
    unsigned totals[2] = {0, 0};
    for (size_t i = 0; i < count; i++)
        totals[views[i].device->kind] += views[i].draining ? 0 : 1;
    for (size_t a = 0; a < cluster->actions.count; a++) {
        if (cluster->actions.items[a].kind != JOB_ACTION_PLAN)
            continue;
        const struct job *granted = jobs_find(cluster->jobs, cluster->actions.items[a].job);
        enum hardware_kind kind = kind_of(granted, views, count);
        for (size_t i = 0; i < jobs_count(cluster->jobs); i++) {
            const struct job *job = jobs_at(cluster->jobs, i);
            bool wants =
                job->kind == JOB_ANY || job->kind == (kind == HARDWARE_GPU ? JOB_GPU : JOB_CPU);
            ck_assert_msg(job->number >= granted->number || job->state != JOB_PENDING || !wants ||
                              job->devices_needed > totals[kind],
                          SIM_AT "%s overtook %s", SIM_WHERE(cluster), granted->id, job->id);
        }
    }
}
