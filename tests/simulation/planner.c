/* planner.c - coordinator/planning without a search: which plan a job gets is drawn, and how long
 * that takes the coordinator, for whom time passes meanwhile.
 *
 * A plan divides the batch over all or some of the devices, in another order than they came. A
 * job may need more devices than it has, or be refused; its name decides, so that it is the same
 * when it is asked again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/planning/planning.h"
#include "tests/simulation/world.h"

#define SLOW_MS_MAX 6000
#define TEMPLATES 4096 /* more ranks than any cluster has devices */

/* By number of ranks; made once, for all jobs have the same model. */
static struct {
    struct plan *plan;
    char *json;
} templates[TEMPLATES];

static void make_template(size_t ranks, const struct planning_request *request)
{
    struct plan *plan = plan_create(1, (int)request->graph->block_count);
    plan->stages[0].block_count = plan->block_count;
    plan->stages[0].mesh.axes = ranks > 1 ? 1 : 0;
    plan->stages[0].mesh.size[0] = (int)ranks;
    for (int block = 0; block < plan->block_count && ranks > 1; block++)
        plan->blocks[block].roles[0] = role_find("batch");
    plan->micro_batches = 1;
    plan->micro_batch_samples = request->job->train.global_batch;
    plan->schedule = schedule_find("1f1b");
    plan->predicted.step_time_s = 1;
    plan_name(plan);
    templates[ranks].plan = plan;
    templates[ranks].json = plan_encode(plan, request->graph);
}

/* What the job's name says, for one question about it. */
static uint64_t trait(const struct job_config *job, uint64_t question, uint64_t bound)
{
    return random_below(world->options.seed, hash_text(HASH_START, job->name), question, bound);
}

enum { TRAIT_REFUSED, TRAIT_UNFIT, TRAIT_NEEDS };

static unsigned needed(const struct job_config *job)
{
    unsigned least = (unsigned)job->devices.min;
    bool more = trait(job, TRAIT_UNFIT, 1000) < world->faults.planner_unfit;
    return more ? least + 1 + (unsigned)trait(job, TRAIT_NEEDS, 4) : least;
}

static void shuffle(struct device_ref *devices, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = world_draw(i);
        struct device_ref moved = devices[i - 1];
        devices[i - 1] = devices[other];
        devices[other] = moved;
    }
}

static void fill(struct planning *out, const struct planning_request *request, size_t count)
{
    if (!templates[count].plan)
        make_template(count, request);
    out->plan = plan_copy(templates[count].plan);
    out->json = xstrdup(templates[count].json);
    out->candidates = xstrdup("");
    out->rank_count = count;
    out->hashes = xcalloc(count, sizeof *out->hashes);
    out->devices = xcalloc(request->device_count, sizeof *out->devices);
    for (size_t i = 0; i < request->device_count; i++)
        out->devices[i] = request->devices[i].ref;
    shuffle(out->devices, request->device_count);
    for (size_t i = 0; i < count; i++)
        out->hashes[i] = world_draw(UINT64_MAX);
}

int planning_run(const struct planning_request *request, struct planning *out, struct error *err)
{
    const struct job_config *job = request->job;
    *out = (struct planning){0};
    if (!world->calm && world_chance(world->faults.planner_slow))
        world->busy_ms += world_between(1, SLOW_MS_MAX);
    if (trait(job, TRAIT_REFUSED, 1000) < world->faults.planner_refused)
        return error_set(err, -EINVAL, "model.heads 3 does not divide anything");
    size_t least = needed(job), count = request->device_count;
    if (count < least) {
        out->devices_needed = least <= request->devices_max ? (unsigned)least : 0;
        return error_set(err, -ENOSPC, "%zu devices are too few, %zu would do", count, least);
    }
    if (count > least && world_chance(300))
        count = world_between(least, count);
    if (count >= TEMPLATES)
        count = TEMPLATES - 1;
    fill(out, request, count);
    return 0;
}

void planning_finish(struct planning *planning)
{
    plan_destroy(planning->plan);
    free(planning->json);
    free(planning->candidates);
    free(planning->hashes);
    free(planning->devices);
    *planning = (struct planning){0};
}

int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err)
{
    *cost = PLANNING_ANALYTIC;
    return !text[0] || strcmp(text, "analytic") == 0
               ? 0
               : error_set(err, -EINVAL, "no cost '%s'", text);
}
