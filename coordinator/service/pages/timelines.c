/* timelines.c - the timeline of a job's step, predicted and measured, for those who look at it.
 *
 * Lowering and simulating a large plan takes longer than other callers may be kept waiting, so its
 * picture is made on the threads that search plans, once per epoch and only if somebody asks. What
 * was measured is added here, once per step: the number of its times is bounded, and the picture
 * tells what they belong to. The pictures of the jobs that were looked at last are kept. */
#include "coordinator/service/internal.h"
#include "coordinator/service/pages/pages.h"
#include "coordinator/service/plans/plans.h"

#include "common/base/memory.h"
#include "coordinator/resources/resources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WHEN "ranks tell of steps 1, 2, 4 and so on, and of every 256th"

static void empty(struct timeline *timeline)
{
    picture_destroy(timeline->picture);
    picture_side_finish(&timeline->measured);
    *timeline = (struct timeline){0};
}

void service_forget_timelines(struct service *service)
{
    while (service->timeline_count > 0) {
        struct timeline *last = service->timelines[--service->timeline_count];
        empty(last);
        free(last);
    }
}

static struct timeline *find(const struct service *service, const char *job)
{
    for (size_t i = 0; i < service->timeline_count; i++)
        if (strcmp(service->timelines[i]->job, job) == 0)
            return service->timelines[i];
    return NULL;
}

/* Make room for one more job: if all places are taken, that of the job which nobody has looked at
 * for longest. */
static struct timeline *place(struct service *service)
{
    if (service->timeline_count < TIMELINES_MAX)
        return service->timelines[service->timeline_count++] = xcalloc(1, sizeof(struct timeline));
    struct timeline *oldest = service->timelines[0];
    for (size_t i = 1; i < service->timeline_count; i++)
        if (service->timelines[i]->looked < oldest->looked)
            oldest = service->timelines[i];
    return oldest;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Pick the views of the plan's devices. */
static size_t pick_named(const struct plan *plan, const struct device_view *all, size_t count,
                         struct device_view *picked)
{
    size_t ranks = (size_t)plan_ranks(plan), names = 0, found = 0;
    const char **sorted = xcalloc(ranks, sizeof *sorted);
    for (size_t rank = 0; rank < ranks; rank++)
        if (plan_device(plan, (int)rank))
            sorted[names++] = plan_device(plan, (int)rank);
    qsort(sorted, names, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++) {
        char *name = xasprintf("%s/%u", all[i].ref.worker, all[i].ref.index);
        if (bsearch(&name, sorted, names, sizeof *sorted, compare_names))
            picked[found++] = all[i];
        free(name);
    }
    free(sorted);
    return found;
}

/* Ask for a picture on the devices as they are. If the job is no longer understood, err says
 * why. */
static void ask(struct service *service, const struct job *job, const struct planning *planning,
                struct error *err)
{
    struct planning_request request = {
        .given = planning->json, .picture = true, .clock_cb = service->options.clock_cb};
    if (service_read_job(job, &request, err) < 0)
        return;
    struct device_view *all, *picked;
    size_t count = membership_devices(service->membership, &all);
    service_mark_slow(service, all, count);
    request.devices = picked = xcalloc(count, sizeof *picked);
    request.device_count = pick_named(planning->plan, all, count, picked);
    struct asker *asker = asker_add(service, ASKS_PICTURE);
    memcpy(asker->job, job->id, sizeof asker->job);
    asker->epoch = job->epoch;
    planning_queue_add(service->plans, PLANNING_QUESTION, planning_task_create(&request), asker);
    free(picked);
    free(all);
}

bool service_awaits_picture(const struct service *service, const struct asker *asker)
{
    const struct timeline *timeline = find(service, asker->job);
    const struct job *job = jobs_find(service->jobs, asker->job);
    return timeline && job && timeline->epoch == asker->epoch && job->epoch == asker->epoch &&
           !timeline->picture && !timeline->why.text[0];
}

void service_take_picture(struct service *service, const struct asker *asker,
                          struct planning_answer *answer)
{
    struct timeline *timeline = find(service, asker->job);
    if (!service_awaits_picture(service, asker))
        return; /* another answer was faster */
    timeline->picture = answer->planning.picture;
    answer->planning.picture = NULL;
    if (answer->rc < 0)
        timeline->why = answer->err;
}

/* The timeline of the job's epoch. Its picture is asked for if nobody has done so yet. */
static struct timeline *look(struct service *service, const struct job *job,
                             const struct planning *planning)
{
    struct timeline *timeline = find(service, job->id);
    if (!timeline || timeline->epoch != job->epoch) {
        timeline = timeline ? timeline : place(service);
        empty(timeline);
        memcpy(timeline->job, job->id, sizeof timeline->job);
        timeline->epoch = job->epoch;
        ask(service, job, planning, &timeline->why);
    }
    timeline->looked = ++service->timelines_looked;
    return timeline;
}

/* The newest step if it belongs to the picture's plan; otherwise NULL, and why not. */
static const struct trace_step *newest(const struct service *service,
                                       const struct timeline *timeline, struct error *why)
{
    const struct job_telemetry *told = telemetry_find(service->telemetry, timeline->job);
    const struct trace_step *step = told ? &told->traces.newest : NULL;
    if (!step || step->step == 0)
        error_set(why, 0,
                  "no step has been heard of with its instructions yet, by this start of the "
                  "coordinator: " WHEN);
    else if (step->epoch != timeline->epoch ||
             step->rank_count != (size_t)timeline->picture->rank_count)
        error_set(why, 0, "the newest step that was told of, %llu, is not of this plan: " WHEN,
                  (unsigned long long)step->step);
    else
        return step;
    return NULL;
}

/* When the first of the ranks began the step, in Unix time. */
static double began_s(const struct trace_step *step)
{
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < step->rank_count; i++)
        least_ns = step->ranks[i].unix_ns < least_ns ? step->ranks[i].unix_ns : least_ns;
    return 1e-9 * (double)least_ns;
}

static void add_measured(const struct service *service, struct timeline *timeline,
                         struct resource_timeline *out, struct error *why)
{
    const struct trace_step *step = newest(service, timeline, why);
    out->measured_why = step ? "" : why->text;
    if (!step)
        return;
    if (timeline->step != step->step) {
        picture_side_finish(&timeline->measured);
        picture_measure(timeline->picture, step, &timeline->measured);
        timeline->step = step->step;
    }
    out->measured = &timeline->measured;
    out->step = step->step;
    out->unix_s = began_s(step);
}

int service_show_timeline(struct service *service, const char *id, json_t **out, struct error *err)
{
    const struct job *job = jobs_find(service->jobs, id);
    struct resource_timeline of = {.job = id, .plan = "", .measured_why = ""};
    struct error why;
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
    const struct planning *planning = &dossier_find(service, id)->planning;
    of.epoch = job->epoch;
    if (!planning->plan || !planning->json) {
        of.predicted_why = of.measured_why = "it has no plan now";
        *out = resource_timeline(&of);
        return 0;
    }
    struct timeline *timeline = look(service, job, planning);
    of.plan = planning->plan->id;
    of.rank_count = plan_ranks(planning->plan);
    of.picture = timeline->picture;
    of.pending = !timeline->picture && !timeline->why.text[0];
    of.predicted_why = timeline->picture ? timeline->picture->why.text
                       : of.pending      ? "it is being simulated: ask again"
                                         : timeline->why.text;
    if (timeline->picture)
        add_measured(service, timeline, &of, &why);
    else
        of.measured_why = of.predicted_why;
    *out = resource_timeline(&of);
    return 0;
}
