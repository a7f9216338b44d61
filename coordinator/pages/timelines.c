/* timelines.c - the timeline of a job's step, predicted and measured, for those who look at it.
 *
 * Lowering and simulating a large plan takes longer than other callers may be kept waiting, so its
 * picture is made on the threads that search plans, once per epoch and only if somebody asks. What
 * was measured is added here, once per step: the number of its times is bounded, and the picture
 * tells what they belong to. The pictures of the jobs that were looked at last are kept. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/pages/pages.h"
#include "coordinator/resources/resources.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/dossiers.h"
#include "coordinator/turn/plans.h"
#include "coordinator/turn/retention.h"

#define TIMELINES_MAX 16 /* jobs whose timelines are kept */
#define WHEN "ranks tell of steps 1, 2, 4 and so on, and of every 256th"

/* The timeline last drawn of a job. */
struct timeline {
    char job[JOB_ID_SIZE];
    uint64_t epoch;
    uint64_t looked;         /* value of `looked` when it was last asked for */
    struct picture *picture; /* NULL: not ready, or impossible */
    struct error why;        /* why it is impossible; "" otherwise */
    uint64_t step;           /* step that `measured` shows; 0: none yet */
    struct picture_side measured;
};

struct timelines {
    struct state *state;
    struct timeline *items[TIMELINES_MAX];
    size_t count;
    uint64_t looked; /* number of questions so far */
};

static void timeline_empty(struct timeline *timeline)
{
    picture_destroy(timeline->picture);
    picture_side_finish(&timeline->measured);
    *timeline = (struct timeline){0};
}

struct timelines *timelines_create(struct state *state)
{
    struct timelines *timelines = xcalloc(1, sizeof *timelines);
    timelines->state = state;
    return timelines;
}

void timelines_destroy(struct timelines *timelines)
{
    while (timelines->count > 0) {
        struct timeline *last = timelines->items[--timelines->count];
        timeline_empty(last);
        free(last);
    }
    free(timelines);
}

static struct timeline *timelines_find(const struct timelines *timelines, const char *job)
{
    for (size_t i = 0; i < timelines->count; i++)
        if (strcmp(timelines->items[i]->job, job) == 0)
            return timelines->items[i];
    return NULL;
}

/* Make room for one more job: if all places are taken, that of the job which nobody has looked at
 * for longest. */
static struct timeline *timelines_place(struct timelines *timelines)
{
    if (timelines->count < TIMELINES_MAX)
        return timelines->items[timelines->count++] = xcalloc(1, sizeof(struct timeline));
    struct timeline *oldest = timelines->items[0];
    for (size_t i = 1; i < timelines->count; i++)
        if (timelines->items[i]->looked < oldest->looked)
            oldest = timelines->items[i];
    return oldest;
}

static bool picture_wanted(const struct state *state, const struct asker *asker)
{
    const struct timeline *timeline = timelines_find(asker->data, asker->job);
    const struct job *job = jobs_find(state->jobs, asker->job);
    return timeline && job && timeline->epoch == asker->epoch && job->epoch == asker->epoch &&
           !timeline->picture && !timeline->why.text[0];
}

static void picture_take(struct state *state, struct asker *asker, struct planning_answer *answer)
{
    struct timeline *timeline = timelines_find(asker->data, asker->job);
    if (!picture_wanted(state, asker))
        return; /* another answer was faster */
    timeline->picture = answer->planning.picture;
    answer->planning.picture = NULL;
    if (answer->rc < 0)
        timeline->why = answer->err;
}

static const struct asking_kind asks_picture = {
    .queue = PLANNING_QUESTION,
    .wanted_cb = picture_wanted,
    .take_cb = picture_take,
};

static int names_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Pick the views of the plan's devices. */
static size_t plan_pick_devices(const struct plan *plan, const struct device_view *all,
                                size_t count, struct device_view *picked)
{
    size_t ranks = (size_t)plan_ranks(plan), names = 0, found = 0;
    const char **sorted = xcalloc(ranks, sizeof *sorted);
    for (size_t rank = 0; rank < ranks; rank++)
        if (plan_device(plan, (int)rank))
            sorted[names++] = plan_device(plan, (int)rank);
    qsort(sorted, names, sizeof *sorted, names_compare);
    for (size_t i = 0; i < count; i++) {
        char *name = xasprintf("%s/%u", all[i].ref.worker, all[i].ref.index);
        if (bsearch(&name, sorted, names, sizeof *sorted, names_compare))
            picked[found++] = all[i];
        free(name);
    }
    free(sorted);
    return found;
}

/* Ask for a picture on the devices as they are. If the job is no longer understood, err says
 * why. */
static void timeline_ask(struct timelines *timelines, const struct job *job,
                         const struct planning *planning, struct error *err)
{
    struct state *state = timelines->state;
    struct planning_request request = {
        .given = planning->json, .picture = true, .clock_cb = state->options.clock_cb};
    if (epoch_read_job(job, &request, err) < 0)
        return;
    struct device_view *all, *picked;
    size_t count = conditions_views(state, &all);
    request.devices = picked = xcalloc(count, sizeof *picked);
    request.device_count = plan_pick_devices(planning->plan, all, count, picked);
    struct asker asker = asking_for(&asks_picture, job);
    asker.data = timelines;
    asking_add(state, &asker, &request);
    free(picked);
    free(all);
}

/* The timeline of the job's epoch. Its picture is asked for if nobody has done so yet. */
static struct timeline *timelines_look(struct timelines *timelines, const struct job *job,
                                       const struct planning *planning)
{
    struct timeline *timeline = timelines_find(timelines, job->id);
    if (!timeline || timeline->epoch != job->epoch) {
        timeline = timeline ? timeline : timelines_place(timelines);
        timeline_empty(timeline);
        memcpy(timeline->job, job->id, sizeof timeline->job);
        timeline->epoch = job->epoch;
        timeline_ask(timelines, job, planning, &timeline->why);
    }
    timeline->looked = ++timelines->looked;
    return timeline;
}

/* The newest step if it belongs to the picture's plan; otherwise NULL, and why not. */
static const struct trace_step *timeline_newest(const struct state *state,
                                                const struct timeline *timeline, struct error *why)
{
    const struct job_telemetry *told = telemetry_find(state->telemetry, timeline->job);
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
static double step_began_s(const struct trace_step *step)
{
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < step->rank_count; i++)
        least_ns = step->ranks[i].unix_ns < least_ns ? step->ranks[i].unix_ns : least_ns;
    return 1e-9 * (double)least_ns;
}

static void timeline_add_measured(const struct state *state, struct timeline *timeline,
                                  struct resource_timeline *out, struct error *why)
{
    const struct trace_step *step = timeline_newest(state, timeline, why);
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
    out->unix_s = step_began_s(step);
}

int timelines_show(struct timelines *timelines, const char *id, json_t **out, struct error *err)
{
    struct state *state = timelines->state;
    const struct job *job = jobs_find(state->jobs, id);
    struct resource_timeline of = {.job = id, .plan = "", .measured_why = ""};
    struct error why;
    if (!job)
        return retention_explain(state, id, err);
    const struct planning *planning = &dossier_find(state, id)->planning;
    of.epoch = job->epoch;
    if (!planning->plan || !planning->json) {
        of.predicted_why = of.measured_why = "it has no plan now";
        *out = resource_timeline(&of);
        return 0;
    }
    struct timeline *timeline = timelines_look(timelines, job, planning);
    of.plan = planning->plan->id;
    of.rank_count = plan_ranks(planning->plan);
    of.picture = timeline->picture;
    of.pending = !timeline->picture && !timeline->why.text[0];
    of.predicted_why = timeline->picture ? timeline->picture->why.text
                       : of.pending      ? "it is being simulated: ask again"
                                         : timeline->why.text;
    if (timeline->picture)
        timeline_add_measured(state, timeline, &of, &why);
    else
        of.measured_why = of.predicted_why;
    *out = resource_timeline(&of);
    return 0;
}
