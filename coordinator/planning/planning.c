/* planning.c - from granted devices to a plan in the form that workers need. */
#include "coordinator/planning/planning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/shared_cores.h"

/* To tell how many devices would do, up to this many times those granted are tried. */
#define MORE_FACTOR_MAX 4
#define ROWS_MAX 200

static int task_search(const struct planning_task *task, struct planner_result *result,
                       struct error *err)
{
    struct planner_request ask = {task->graph,         task->job,
                                  task->fleet.devices, (int)task->fleet.count,
                                  &task->stop,         .hurry = task->hurry};
    if (task->given) {
        struct plan *plan;
        int rc = plan_decode(task->given, &plan, err);
        return rc < 0 ? rc : planner_given(&ask, plan, result, err);
    }
    return planner_run(&ask, result, err);
}

/* Price the present plan on the devices as they are now; no result if it no longer suits them. */
static void task_price_present(const struct planning_task *task, struct planning *out)
{
    const struct planner_request ask = {task->graph, task->job, task->fleet.devices,
                                        (int)task->fleet.count, &task->stop};
    struct planner_result result = {0};
    struct plan *plan;
    if (plan_decode(task->present, &plan, NULL) < 0)
        return;
    if (planner_given(&ask, plan, &result, NULL) == 0) {
        out->present_s = result.best->predicted.step_time_s;
        out->present_copy_s = result.safety.copy_s;
    }
    candidates_finish(&result);
}

/* Whether this many devices would do, with more than half of them used. */
static bool task_would_fit(const struct planning_task *task, const struct planner_device *devices,
                           size_t count)
{
    struct job_config job = *task->job;
    struct planner_request ask = {task->graph, &job, devices, (int)count, &task->stop, .any = true};
    struct planner_result result;
    job.devices.min = (int64_t)count / 2 + 1; /* some number in this range can be divided */
    job.devices.max = (int64_t)count;
    bool fits = planner_run(&ask, &result, NULL) == 0;
    candidates_finish(&result);
    return fits;
}

/* The number of devices that would do if there were more like the last one; 0 if not even the most
 * that are tried would. If some number would do, larger ones would too. */
static unsigned task_count_needed(const struct planning_task *task)
{
    size_t count = task->fleet.count, most = count * MORE_FACTOR_MAX;
    most = task->devices_max < most ? task->devices_max : most;
    if (task->given || most <= count)
        return 0;
    struct planner_device *devices = xcalloc(most, sizeof *devices);
    for (size_t i = 0; i < most; i++) {
        devices[i] = task->fleet.devices[i < count ? i : count - 1];
        devices[i].cores = i < count ? devices[i].cores : NULL; /* of those there are no more */
    }
    size_t low = count, needed = task_would_fit(task, devices, most) ? most : 0;
    while (needed > low + 1) {
        size_t middle = (low + needed) / 2;
        if (task_would_fit(task, devices, middle))
            needed = middle;
        else
            low = middle;
    }
    free(devices);
    return (unsigned)needed;
}

static char *task_print_candidates(const struct planner_result *result)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    candidates_print(result, ROWS_MAX, out);
    fclose(out);
    return text;
}

/* Find the workers' devices by the names that the planner gave to ranks. */
static void planning_name_ranks(struct planning *planning, const struct planning_task *task)
{
    planning->rank_count = (size_t)plan_ranks(planning->plan);
    planning->devices = xcalloc(planning->rank_count, sizeof *planning->devices);
    planning->slowdowns = xcalloc(planning->rank_count, sizeof *planning->slowdowns);
    planning->networks = xcalloc(planning->rank_count, sizeof *planning->networks);
    for (size_t rank = 0; rank < planning->rank_count; rank++) {
        size_t index = fleet_find(&task->fleet, plan_device(planning->plan, (int)rank));
        planning->devices[rank] = task->fleet.refs[index];
        planning->slowdowns[rank] = task->fleet.slowdowns[index];
        planning->networks[rank] = task->fleet.devices[index].profile->network.seconds_per_byte;
    }
}

/* Draw the plan on the devices it names, as they are now; without a prediction if some are gone or
 * of unknown speed. */
static int task_draw(const struct planning_task *task, struct picture **out, struct error *err)
{
    struct planner_request ask = {.graph = task->graph,
                                  .job = task->job,
                                  .devices = task->fleet.devices,
                                  .device_count = (int)task->fleet.count,
                                  .stop = &task->stop};
    struct error why = task->refusal_words;
    struct plan *plan;
    int rc = plan_decode(task->given, &plan, err);
    if (rc < 0)
        return rc;
    struct shared_cores used = {0};
    rc = plan_check(plan, task->graph, err);
    bool there = rc == 0 && task->refusal == 0 && shared_cores_order(&ask, plan, &used, &why) == 0;
    ask.devices = used.devices;
    ask.device_count = there ? used.count : 0;
    if (rc == 0)
        rc = picture_make(&ask, plan, &why, out, err);
    shared_cores_finish(&used);
    plan_destroy(plan);
    return rc;
}

/* Predicted time of the kernels in a step. */
static double program_price_kernels(const struct profile *profile, const struct program *program)
{
    struct program_cursor cursor = {0};
    double seconds = 0;
    while (program_next(program, PROGRAM_TRAIN, &cursor))
        if (cursor.instruction->kind == INSTRUCTION_KERNEL)
            seconds += profile_seconds(profile, NULL, program, cursor.instruction);
    return seconds;
}

/* Lower every rank's program exactly as its executor will, so that both sides can compare hashes
 * and a slow rank can be recognized by the predicted time of its kernels. -EINVAL as lower(), with
 * the rank in front. */
static int planning_lower(const struct planning_task *task, struct planning *planning,
                          struct error *err)
{
    const struct fleet *fleet = &task->fleet;
    const struct planner_request ask = {.devices = fleet->devices,
                                        .device_count = (int)fleet->count};
    struct shared_cores used;
    int ranks = plan_ranks(planning->plan),
        rc = shared_cores_order(&ask, planning->plan, &used, err);
    planning->hashes = xcalloc((size_t)ranks, sizeof *planning->hashes);
    planning->compute_s = xcalloc((size_t)ranks, sizeof *planning->compute_s);
    struct lower_cache *ways = lower_cache_create();
    for (int rank = 0; rank < ranks && rc == 0; rank++) {
        struct program *program;
        if (atomic_load(&task->stop)) {
            rc = error_set(err, -ECANCELED, "nobody wants the plan any more");
            break;
        }
        rc = lower_with(ways, task->graph, planning->plan, rank, &program, err);
        if (rc < 0) {
            error_prefix(err, rc, "rank %d", rank);
            break;
        }
        planning->hashes[rank] = program_hash(program);
        /* at the speed that the device should have */
        size_t device = fleet_find(fleet, plan_device(planning->plan, rank));
        planning->compute_s[rank] =
            program_price_kernels(used.devices[rank].profile, program) / fleet->slowdowns[device];
        program_destroy(program);
    }
    lower_cache_destroy(ways);
    shared_cores_finish(&used);
    return rc;
}

int planning_run(const struct planning_task *task, struct planning *out, struct error *err)
{
    struct planner_result result = {0};
    uint64_t began_ms = task->clock_cb();
    *out = (struct planning){0};
    if (task->picture)
        return task_draw(task, &out->picture, err);
    if (task->refusal < 0)
        return error_set(err, task->refusal, "%s", task->refusal_words.text);
    int rc = task_search(task, &result, err);
    if (result.count > 0)
        out->candidates = task_print_candidates(&result);
    if (rc == 0) {
        result.best->predicted.wall_s = (double)(task->clock_cb() - began_ms) / 1000;
        out->plan = plan_copy(result.best);
        out->safety = result.safety;
        planning_name_ranks(out, task);
        rc = planning_lower(task, out, err);
    } else if (rc == -ENOSPC) {
        out->devices_needed = task_count_needed(task);
    }
    if (rc == 0)
        out->json = plan_encode(out->plan, task->graph);
    if (rc == 0 && task->present)
        task_price_present(task, out);
    candidates_finish(&result);
    return rc;
}

void planning_finish(struct planning *planning)
{
    plan_destroy(planning->plan);
    free(planning->json);
    free(planning->candidates);
    free(planning->hashes);
    free(planning->devices);
    free(planning->compute_s);
    free(planning->slowdowns);
    free(planning->networks);
    picture_destroy(planning->picture);
    *planning = (struct planning){0};
}
