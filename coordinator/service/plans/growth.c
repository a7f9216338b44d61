/* growth.c - decides whether a running job should move to more devices when there are free ones.
 *
 * Moving costs time, and machines come and go. So a plan for the job's devices and the free ones is
 * searched while the job trains, and the job moves only if that plan is faster by more than a
 * little and the remaining steps save many times what a move costs. Nothing is taken from a job
 * that waits, and the same number of devices is considered once per epoch. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"
#include "common/base/units.h"

#include <stdio.h>
#include <stdlib.h>

#define FASTER 0.95    /* move only to steps shorter than this share of the present one */
#define MOVE_S 2.0     /* assumed cost of a move until one was measured */
#define WORTH_MOVES 10 /* how many times the cost of a move has to be saved */

static bool somebody_waits(const struct service *service)
{
    for (size_t i = 0; i < jobs_count(service->jobs); i++) {
        const struct job *job = jobs_at(service->jobs, i);
        if (job->state == JOB_PENDING && !job->held[0])
            return true;
    }
    return false;
}

/* Pick the job's own devices and free ones of their kind, as many as it may have. Returns their
 * number; 0: the job cannot grow. */
static size_t pick(const struct job *job, const struct device_view *all, size_t count,
                   struct device_view *picked)
{
    size_t own = service_own_devices(job, all, count, picked);
    if (own == 0 || own >= job->devices_max)
        return 0;
    size_t sum = own + service_free_devices(all, count, picked[0].device->kind, picked + own);
    if (sum > job->devices_max)
        sum = job->devices_max;
    return sum > own ? sum : 0;
}

void service_consider_growth(struct service *service)
{
    struct device_view *all;
    size_t count = membership_devices(service->membership, &all);
    service_mark_slow(service, all, count);
    struct device_view *picked = xcalloc(count, sizeof *picked);
    bool waits = somebody_waits(service);
    for (size_t i = 0; i < jobs_count(service->jobs) && !waits; i++) {
        const struct job *job = jobs_at(service->jobs, i);
        struct dossier *dossier = dossier_find(service, job->id);
        bool may = job->state == JOB_RUNNING && job->replans && !job->given[0];
        size_t sum = may ? pick(job, all, count, picked) : 0;
        if (sum == 0 || (dossier->growth_epoch == job->epoch && dossier->growth_devices == sum))
            continue;
        dossier->growth_epoch = job->epoch;
        dossier->growth_devices = sum;
        service_plan_beside(service, ASKS_TRIAL, job, picked, sum);
    }
    free(picked);
    free(all);
}

void service_plan_again(struct service *service, const struct job *job)
{
    struct device_view *all;
    size_t count = membership_devices(service->membership, &all);
    struct device_view *picked = xcalloc(count, sizeof *picked);
    service_mark_slow(service, all, count);
    size_t own = service_own_devices(job, all, count, picked);
    service_plan_beside(service, ASKS_TRIAL, job, picked, own);
    free(picked);
    free(all);
}

/* Seconds of a step with the present plan: as priced along with the new plan, or else as predicted,
 * times the slowdown of its slowest rank, which all others wait for. Copies, which are made as
 * often as before, are included. */
static double step_now_s(const struct service *service, const struct job *job,
                         const struct planning *planning, const struct planning *beside)
{
    struct safety safety = planning->safety;
    safety.copy_s = beside->present_s > 0 ? beside->present_copy_s : safety.copy_s;
    if (beside->present_s > 0)
        return beside->present_s + safety_seconds(&safety);
    double slower = 0;
    for (size_t i = 0; i < job_trainers(job); i++) {
        double planned = planning->slowdowns ? planning->slowdowns[i] : 1;
        double here = service_slowdown(service, &job->ranks[i].device) / planned;
        slower = here > slower ? here : slower;
    }
    return planning->plan->predicted.step_time_s * slower + safety_seconds(&safety);
}

void service_take_trial(struct service *service, const struct job *job,
                        const struct planning_answer *answer)
{
    const struct dossier *dossier = dossier_find(service, job->id);
    if (answer->rc < 0 || !dossier->planning.plan)
        return;
    double now_s = step_now_s(service, job, &dossier->planning, &answer->planning);
    double then_s =
        answer->planning.plan->predicted.step_time_s + safety_seconds(&answer->planning.safety);
    /* The same plan may still be faster by making its copies less often. */
    if (plan_same(answer->planning.plan, dossier->planning.plan) && then_s >= FASTER * now_s)
        return;
    double left = job->steps > job->step ? (double)(job->steps - job->step) : 0;
    double move_s = dossier->replan.took_s > 0 ? dossier->replan.took_s : MOVE_S;
    bool pays = then_s < FASTER * now_s && (now_s - then_s) * left > WORTH_MOVES * move_s;
    char before[32], after[32], words[160];
    units_print_seconds(before, sizeof before, now_s);
    units_print_seconds(after, sizeof after, then_s);
    snprintf(words, sizeof words, "%zu device%s instead of %zu, %s a step instead of %s",
             answer->planning.rank_count, answer->planning.rank_count == 1 ? "" : "s",
             job_trainers(job), after, before);
    if (!pays) {
        service_tell(service, "job-stays", job->id, "", NULL,
                     "%s could use %s: not worth a move of %.1f s for %.0f steps", job->id, words,
                     move_s, left);
        return;
    }
    struct job_event event = {.kind = JOB_EVENT_GROW, .job = job->id, .words = words};
    service_apply(service, &event, NULL);
}
