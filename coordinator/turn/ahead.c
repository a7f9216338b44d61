/* ahead.c - plans beside a running job: on more devices, on those that it has as they are now, and
 * for the loss of some.
 *
 * Whether a running job should move is decided by a plan, too. Moving costs time, and machines come
 * and go. So a plan for the job's devices and the free ones is searched while the job trains, and
 * the job moves only if that plan is faster by more than a little and the remaining steps save many
 * times what a move costs. Nothing is taken from a job that waits, and the same number of devices
 * is considered once per epoch.
 *
 * A search that begins after the loss of a node is downtime. So once an epoch has finished a step,
 * the plans that its job would need without any one of its nodes are searched while it trains, one
 * after the other and behind all other searches. Such a plan is for exactly the devices that it was
 * searched for, as they were then; in all other cases a search follows as usual. What was searched
 * for more devices is kept as well, for the move that it leads to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/plans.h"

#define FASTER 0.95    /* move only to steps shorter than this share of the present one */
#define MOVE_S 2.0     /* assumed cost of a move until one was measured */
#define WORTH_MOVES 10 /* how many times the cost of a move has to be saved */
/* Jobs with more ranks get no spare plans: for them the question would be what to search first. */
#define SPARE_NODES_MAX 64

static struct device_ref *views_refs(const struct device_view *views, size_t count)
{
    struct device_ref *refs = xcalloc(count, sizeof *refs);
    for (size_t i = 0; i < count; i++)
        refs[i] = views[i].ref;
    return refs;
}

/* While a job trains, search for a plan of it on these devices. present: as in the request. */
static void ahead_plan(struct state *state, const struct asking_kind *kind, const struct job *job,
                       const char *present, const struct device_view *devices, size_t count)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    struct planning_request request = {
        .present = present,
        .device_count = count,
        .devices_max = job->devices_max,
        .clock_cb = state->options.clock_cb,
    };
    if (epoch_read_job(job, &request, NULL) < 0)
        return; /* it goes on with its present plan */
    struct device_view *marked = xcalloc(count, sizeof *marked);
    memcpy(marked, devices, count * sizeof *marked);
    conditions_limit_memory(dossier, marked, count);
    request.devices = marked;
    struct asker asker = asking_for(kind, job);
    asker.devices = views_refs(devices, count);
    asker.device_count = count;
    asker.hardware = state->hardware;
    asking_add(state, &asker, &request);
    free(marked);
}

static bool ahead_wanted(const struct state *state, const struct asker *asker)
{
    return asking_is_in(state, asker, JOB_RUNNING);
}

/* Keep what was found for the asker's devices. A failed search is kept as well, so that it is not
 * repeated. */
static void ahead_keep(struct state *state, struct asker *asker, struct planning_answer *answer)
{
    struct spares *spares = &dossier_find(state, asker->job)->spares;
    if (asker->hardware != state->hardware)
        return;
    spares_keep(spares, asker->devices, asker->device_count, &answer->planning);
    asker->devices = NULL;
    answer->planning = (struct planning){0};
}

/* ---- moves ---- */

/* Seconds of a step with the present plan: as priced along with the new plan, or else as predicted,
 * times the slowdown of its slowest rank, which all others wait for. Copies, which are made as
 * often as before, are included. */
static double trial_step_now_s(const struct state *state, const struct job *job,
                               const struct planning *planning, const struct planning *beside)
{
    struct safety safety = planning->safety;
    safety.copy_s = beside->present_s > 0 ? beside->present_copy_s : safety.copy_s;
    if (beside->present_s > 0)
        return beside->present_s + safety_seconds(&safety);
    double slower = 0;
    for (size_t i = 0; i < job_trainers(job); i++) {
        double planned = planning->slowdowns ? planning->slowdowns[i] : 1;
        double here = conditions_slowdown(state, &job->ranks[i].device) / planned;
        slower = here > slower ? here : slower;
    }
    return planning->plan->predicted.step_time_s * slower + safety_seconds(&safety);
}

/* The answer may be worth a move. */
static void trial_weigh(struct state *state, const struct job *job,
                        const struct planning_answer *answer)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    if (answer->rc < 0 || !dossier->planning.plan)
        return;
    double now_s = trial_step_now_s(state, job, &dossier->planning, &answer->planning);
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
        history_tell(state, "job-stays", job->id, "", NULL,
                     "%s could use %s: not worth a move of %.1f s for %.0f steps", job->id, words,
                     move_s, left);
        return;
    }
    struct job_event event = {.kind = JOB_EVENT_GROW, .job = job->id, .words = words};
    state_apply(state, &event, NULL);
}

static void trial_take(struct state *state, struct asker *asker, struct planning_answer *answer)
{
    trial_weigh(state, jobs_find(state->jobs, asker->job), answer);
    ahead_keep(state, asker, answer);
}

static const struct asking_kind asks_trial = {
    .queue = PLANNING_QUESTION,
    .wanted_cb = ahead_wanted,
    .take_cb = trial_take,
};

/* Would the job be better off on these devices? */
static void trial_begin(struct state *state, const struct job *job,
                        const struct device_view *devices, size_t count)
{
    const char *present = dossier_find(state, job->id)->planning.json;
    ahead_plan(state, &asks_trial, job, present, devices, count);
}

static bool growth_somebody_waits(const struct state *state)
{
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        const struct job *job = jobs_at(state->jobs, i);
        if (job->state == JOB_PENDING && !job->held[0])
            return true;
    }
    return false;
}

/* Pick the job's own devices and free ones of their kind, as many as it may have. Returns their
 * number; 0: the job cannot grow. */
static size_t growth_pick(const struct job *job, const struct device_view *all, size_t count,
                          struct device_view *picked)
{
    size_t own = conditions_own_devices(job, all, count, picked);
    if (own == 0 || own >= job->devices_max)
        return 0;
    size_t sum = own + conditions_free_devices(all, count, picked[0].device->kind, picked + own);
    if (sum > job->devices_max)
        sum = job->devices_max;
    return sum > own ? sum : 0;
}

void ahead_consider_growth(struct state *state)
{
    struct device_view *all;
    size_t count = conditions_views(state, &all);
    struct device_view *picked = xcalloc(count, sizeof *picked);
    bool waits = growth_somebody_waits(state);
    for (size_t i = 0; i < jobs_count(state->jobs) && !waits; i++) {
        const struct job *job = jobs_at(state->jobs, i);
        struct dossier *dossier = dossier_find(state, job->id);
        bool may = job->state == JOB_RUNNING && job->replans && !job->given[0];
        size_t sum = may ? growth_pick(job, all, count, picked) : 0;
        if (sum == 0 || (dossier->growth_epoch == job->epoch && dossier->growth_devices == sum))
            continue;
        dossier->growth_epoch = job->epoch;
        dossier->growth_devices = sum;
        trial_begin(state, job, picked, sum);
    }
    free(picked);
    free(all);
}

void ahead_plan_again(struct state *state, const struct job *job)
{
    struct device_view *all;
    size_t count = conditions_views(state, &all);
    struct device_view *picked = xcalloc(count, sizeof *picked);
    size_t own = conditions_own_devices(job, all, count, picked);
    trial_begin(state, job, picked, own);
    free(picked);
    free(all);
}

void ahead_weigh_links(struct state *state, const struct job *job)
{
    struct dossier *dossier = dossier_find(state, job->id);
    if (!dossier->links_due || job->state != JOB_RUNNING)
        return;
    dossier->links_due = false;
    if (job->replans && !job->given[0])
        ahead_plan_again(state, job);
}

/* ---- losses ---- */

/* Allow the next spare plan to be searched. */
static void spare_end(struct state *state, struct asker *asker)
{
    struct dossier *dossier = dossier_find(state, asker->job);
    if (dossier && dossier->spares.epoch == asker->epoch)
        dossier->spares.asked = false;
}

static void spare_take(struct state *state, struct asker *asker, struct planning_answer *answer)
{
    ahead_keep(state, asker, answer);
    spare_end(state, asker);
    ahead_consider_spares(state);
}

static const struct asking_kind asks_spare = {
    .queue = PLANNING_QUESTION,
    .wanted_cb = ahead_wanted,
    .take_cb = spare_take,
    .give_up_cb = spare_end,
};

/* The devices that a job trains on, and free devices of that kind, each in the order of
 * membership. */
struct spares_choice {
    struct device_view *own, *others;
    size_t own_count, other_count;
};

/* Pick what the job would be granted without this node: its other devices, and free ones. Returns
 * their number; 0: it has no other device, or there are too few. */
static size_t spares_pick(const struct job *job, const char *lost,
                          const struct spares_choice *choice, struct device_view *picked)
{
    size_t own = 0, sum;
    for (size_t i = 0; i < choice->own_count; i++)
        if (strcmp(choice->own[i].ref.worker, lost) != 0)
            picked[own++] = choice->own[i];
    sum = own;
    for (size_t i = 0; i < choice->other_count && own > 0 && sum < job->devices_max; i++)
        if (strcmp(choice->others[i].ref.worker, lost) != 0)
            picked[sum++] = choice->others[i];
    return own > 0 && sum >= job->devices_needed ? sum : 0;
}

/* Begin a search for the first of the job's nodes without which there is no plan yet. */
static void spares_consider(struct state *state, const struct job *job, struct spares *spares,
                            const struct device_view *all, size_t count)
{
    struct device_view *picked = xcalloc(count, sizeof *picked);
    struct spares_choice choice = {.own = xcalloc(count, sizeof *all),
                                   .others = xcalloc(count, sizeof *all)};
    choice.own_count = conditions_own_devices(job, all, count, choice.own);
    if (choice.own_count > 0)
        choice.other_count =
            conditions_free_devices(all, count, choice.own[0].device->kind, choice.others);
    size_t trainers = job_trainers(job);
    for (size_t rank = 0; rank < trainers && !spares->asked; rank++) {
        size_t sum = spares_pick(job, job->ranks[rank].device.worker, &choice, picked);
        struct device_ref *refs = views_refs(picked, sum);
        spares->asked = sum > 0 && !spares_find(spares, refs, sum);
        if (spares->asked)
            ahead_plan(state, &asks_spare, job, NULL, picked, sum);
        free(refs);
    }
    free(choice.own);
    free(choice.others);
    free(picked);
}

void ahead_consider_spares(struct state *state)
{
    struct device_view *all;
    size_t count = conditions_views(state, &all);
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        const struct job *job = jobs_at(state->jobs, i);
        struct spares *spares = &dossier_find(state, job->id)->spares;
        bool may = job->state == JOB_RUNNING && job->replans && !job->given[0] &&
                   job_trainers(job) <= SPARE_NODES_MAX;
        if (may && spares->epoch == job->epoch && !spares->asked)
            spares_consider(state, job, spares, all, count);
    }
    free(all);
}

void ahead_begin_spares(struct state *state, const struct job *job)
{
    struct spares *spares = &dossier_find(state, job->id)->spares;
    if (spares->epoch == job->epoch)
        return;
    spares_clear(spares);
    spares->epoch = job->epoch;
    ahead_consider_spares(state);
}

void ahead_forget_spares(struct state *state)
{
    state->hardware++;
    for (size_t i = 0; i < state->dossiers->count; i++)
        spares_drop(&state->dossiers->items[i]->spares);
}
