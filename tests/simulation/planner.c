/* planner.c - coordinator/planning without a search and without threads: which plan a job gets is
 * drawn, and how long it takes until it is there.
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
#include "coordinator/planning/queue.h"
#include "tests/simulation/measured.h"
#include "tests/simulation/world.h"

#define SLOW_MS_MAX 60000
#define TEMPLATES 4096 /* more ranks than any cluster has devices */

/* By number of ranks; made once, for all jobs have the same model. */
static struct {
    struct plan *plan;
    char *json;
} templates[TEMPLATES];

static void make_template(size_t ranks, const struct planning_task *task)
{
    struct plan *plan = plan_create(1, (int)task->graph->block_count);
    plan->stages[0].block_count = plan->block_count;
    plan->stages[0].mesh.axes = ranks > 1 ? 1 : 0;
    plan->stages[0].mesh.size[0] = (int)ranks;
    for (int block = 0; block < plan->block_count && ranks > 1; block++)
        plan->blocks[block].roles[0] = role_find("batch");
    plan->micro_batches = 1;
    plan->micro_batch_samples = task->job->train.global_batch;
    plan->schedule = schedule_find("1f1b");
    plan->predicted.step_time_s = 10.0 / (double)ranks;
    plan_name(plan);
    templates[ranks].plan = plan;
    templates[ranks].json = plan_encode(plan, task->graph);
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

/* A plan takes all that there is: so it is another one when a device has less than it says. */
static uint64_t least_memory(const struct fleet *fleet)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < fleet->count; i++)
        least = fleet->devices[i].memory_bytes < least ? fleet->devices[i].memory_bytes : least;
    return least;
}

static void fill(struct planning *out, const struct planning_task *task, size_t count)
{
    if (!templates[count].plan)
        make_template(count, task);
    out->plan = plan_copy(templates[count].plan);
    out->json = xstrdup(templates[count].json);
    out->candidates = xstrdup("");
    out->rank_count = count;
    out->hashes = xcalloc(count, sizeof *out->hashes);
    out->compute_s = xcalloc(count, sizeof *out->compute_s);
    out->devices = xcalloc(task->fleet.count, sizeof *out->devices);
    out->slowdowns = xcalloc(task->fleet.count, sizeof *out->slowdowns);
    out->networks = xcalloc(task->fleet.count, sizeof *out->networks);
    for (size_t i = 0; i < task->fleet.count; i++) {
        out->devices[i] = task->fleet.refs[i];
        out->slowdowns[i] = 1; /* nothing is measured here */
    }
    shuffle(out->devices, task->fleet.count);
    out->plan->stages[0].memory_bytes = least_memory(&task->fleet);
    for (size_t i = 0; i < count; i++) {
        out->hashes[i] = world_draw(UINT64_MAX);
        out->compute_s[i] = 1;
    }
}

int planning_run(const struct planning_task *task, struct planning *out, struct error *err)
{
    const struct job_config *job = task->job;
    *out = (struct planning){0};
    if (task->refusal < 0)
        world_fail("a plan is asked for of what cannot be planned: %s", task->refusal_words.text);
    if (trait(job, TRAIT_REFUSED, 1000) < world->faults.planner_refused)
        return error_set(err, -EINVAL, "model.heads 3 does not divide anything");
    size_t least = needed(job), count = task->fleet.count;
    if (count < least) {
        out->devices_needed = least <= task->devices_max ? (unsigned)least : 0;
        return error_set(err, -ENOSPC, "%zu devices are too few, %zu would do", count, least);
    }
    if (count > least && !world->options.measured && world_chance(300))
        count = world_between(least, count);
    if (count >= TEMPLATES)
        count = TEMPLATES - 1;
    fill(out, task, count);
    return 0;
}

void planning_finish(struct planning *planning)
{
    plan_destroy(planning->plan);
    free(planning->json);
    free(planning->candidates);
    free(planning->hashes);
    free(planning->compute_s);
    free(planning->devices);
    free(planning->slowdowns);
    free(planning->networks);
    *planning = (struct planning){0};
}

/* Of one coordinator's life. */
struct planning_queue {
    struct actor *actor;
    struct search_run *searches;
};

struct search_run {
    struct planning_queue *queue;
    struct search_run *next;
    struct event *end; /* NULL: the answer is there */
    struct planning_answer answer;
};

int planning_queue_create(struct planning_queue **out, struct error *err)
{
    (void)err;
    *out = xcalloc(1, sizeof **out);
    (*out)->actor = world->current;
    return 0;
}

static void search_destroy(struct search_run *search)
{
    world_cancel(search->end);
    planning_finish(&search->answer.planning);
    free(search);
}

void planning_queue_destroy(struct planning_queue *queue)
{
    while (queue && queue->searches) {
        struct search_run *search = queue->searches;
        queue->searches = search->next;
        search_destroy(search);
    }
    free(queue);
}

int planning_queue_fd(const struct planning_queue *queue)
{
    (void)queue;
    return -1; /* nobody polls: the actor is woken */
}

static void search_end(void *data)
{
    struct search_run *search = data;
    search->end = NULL;
    actor_wake(search->queue->actor);
}

void planning_queue_add(struct planning_queue *queue, enum planning_kind kind,
                        struct planning_task *task, void *asker)
{
    (void)kind;
    struct search_run *search = xcalloc(1, sizeof *search);
    bool slow = !world->calm && world_chance(world->faults.planner_slow);
    search->queue = queue;
    search->answer.asker = asker;
    search->answer.rc = planning_run(task, &search->answer.planning, &search->answer.err);
    uint64_t takes_ms = slow ? world_between(1, SLOW_MS_MAX) : duration_ms(DURATION_PLAN);
    search->end = world_after(takes_ms, search_end, search);
    search->next = queue->searches;
    queue->searches = search;
    planning_task_destroy(task);
}

/* The first of the list for which it holds that it is this asker's, or that its answer is there. */
static struct search_run *unlink_search(struct planning_queue *queue, const void *asker)
{
    for (struct search_run **at = &queue->searches; *at; at = &(*at)->next) {
        struct search_run *search = *at;
        if (asker ? search->answer.asker != asker : search->end != NULL)
            continue;
        *at = search->next;
        return search;
    }
    return NULL;
}

void planning_queue_withdraw(struct planning_queue *queue, const void *asker)
{
    struct search_run *search = unlink_search(queue, asker);
    if (search)
        search_destroy(search);
}

bool planning_queue_take(struct planning_queue *queue, struct planning_answer *answer)
{
    struct search_run *search = unlink_search(queue, NULL);
    if (!search)
        return false;
    *answer = search->answer;
    free(search);
    return true;
}
