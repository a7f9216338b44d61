/* planner.c - the frame around every search: checks the request, runs the search, sorts the
 * candidates, and words the answer or the reason why there is none. */
#include "coordinator/planner/planner.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/models/model.h"
#include "coordinator/planner/choose.h"
#include "coordinator/planner/costs/site.h"
#include "coordinator/planner/pins.h"
#include "coordinator/planner/shared_cores.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROVED_GAP 5e-4 /* smaller gaps would print as 0.0 % */

static int check_path(const char *key, const char *path, struct error *err)
{
    if (!path || path[0] == '/')
        return 0;
    return error_set(err, -EINVAL,
                     "%s '%s' must begin with '/': the nodes have no folder in common that it "
                     "could count from",
                     key, path);
}

int planner_graph(const struct job_config *job, struct graph **out, struct error *err)
{
    int rc = check_path("checkpoint.dir", job->checkpoint.dir, err);
    if (rc == 0)
        rc = check_path("model.weights", job->model.weights, err);
    if (rc < 0)
        return rc;
    struct model_config config = model_config_of(job);
    return model_build(&config, out, err);
}

int planner_places(const struct job_config *job, struct error *err)
{
    const struct {
        const char *key;
        const struct texts *paths;
    } data[] = {{"data.text", &job->data.text}, {"data.tokens", &job->data.tokens}};
    int rc = 0;
    for (size_t kind = 0; kind < sizeof data / sizeof *data; kind++)
        for (size_t i = 0; i < data[kind].paths->count && rc == 0; i++)
            rc = check_path(data[kind].key, data[kind].paths->items[i], err);
    if (rc == 0 && job_tokenizer(job) == JOB_FILE)
        rc = check_path("data.tokenizer", job->data.tokenizer, err);
    return rc;
}

int planner_runs(const struct job_config *job, const struct graph *graph, struct error *err)
{
    struct model_config config = model_config_of(job);
    int rc = model_runs(&config, graph, err);
    if (rc == 0 && job->data.images.count > 0)
        rc = error_set(err, -ENOSYS, "data.images can be planned with, not read yet");
    return rc;
}

static int refuse_search(const struct job_config *job, struct error *err)
{
    char known[256] = "";
    int used = 0;
    for (int i = 0; searches[i]; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, i ? ", %s" : "%s",
                         searches[i]->name);
    return error_set(err, -EINVAL, "plan.search '%s' is unknown; known: %s", job->plan.search,
                     known);
}

int planner_search(const struct job_config *job, const struct search **out, struct error *err)
{
    const struct search *chosen = job->plan.search ? search_find(job->plan.search) : searches[0];
    if (!chosen)
        return refuse_search(job, err);
    *out = chosen;
    return 0;
}

/* Every name in the job's plan section must refer to something that exists. */
static int find_names(const struct job_config *job, const struct search **search, struct error *err)
{
    char known[128];
    const struct job_plan *plan = &job->plan;
    int rc = planner_search(job, search, err);
    if (rc < 0)
        return rc;
    const char *schedule = plan->schedule;
    if (schedule && !schedule_find(schedule))
        return error_set(err, -EINVAL, "plan.schedule '%s' is unknown; known: %s", schedule,
                         schedule_list(known, sizeof known));
    for (size_t i = 0; i < plan->forbid.roles.count; i++)
        if (!role_find(plan->forbid.roles.items[i]))
            return error_set(err, -EINVAL, "plan.forbid.roles '%s' is unknown; known: %s",
                             plan->forbid.roles.items[i], role_list(known, sizeof known));
    return 0;
}

int planner_names(const struct job_config *job, struct error *err)
{
    const struct search *search;
    return find_names(job, &search, err);
}

int planner_check(const struct job_config *job, struct error *err)
{
    struct graph *graph;
    int rc = planner_graph(job, &graph, err);
    if (rc < 0)
        return rc;
    graph_destroy(graph);
    return planner_names(job, err);
}

static const struct planner_device *device_of(const struct planner_request *request, int rank)
{
    return &request->devices[rank];
}

/* The first rank of a plan that does not fit whose device is too small. Where the ranks of a stage
 * were not told apart, each is taken to need as much as the stage's largest. */
static int find_tight(const struct planner_request *request, const struct candidate *candidate,
                      uint64_t *bytes)
{
    const struct plan *plan = candidate->plan;
    int rank = 0, inside;
    *bytes = candidate->tight_bytes;
    if (candidate->tight_rank >= 0)
        return candidate->tight_rank;
    for (;; rank++) {
        *bytes = plan->stages[plan_rank_stage(plan, rank, &inside)].memory_bytes;
        if (*bytes > site_memory_limit(request, rank) || rank + 1 == plan_ranks(plan))
            return rank;
    }
}

/* Writes ", 260 MiB of it for its libraries", or the empty string. */
static const char *print_libraries(char *out, size_t size, const struct planner_device *device)
{
    char bytes[32];
    out[0] = '\0';
    if (device->library_bytes > 0)
        snprintf(out, size, ", %s of it for its libraries",
                 units_print_bytes(bytes, sizeof bytes, (double)device->library_bytes));
    return out;
}

/* Why the limit is below the device's size, or the empty string. */
static const char *name_limit(const struct planner_request *request, int rank)
{
    const struct planner_device *device = device_of(request, rank);
    if (site_memory_limit(request, rank) < device->memory_bytes)
        return " (plan.memory)";
    return device->ran_out ? " (a rank of the job ran out of memory there)" : "";
}

char *planner_print_tight(const struct planner_request *request, const struct candidate *candidate,
                          char *out, size_t size)
{
    char need[32], have[32], libraries[64];
    uint64_t bytes;
    int rank = find_tight(request, candidate, &bytes);
    snprintf(out, size, "%s on %s%s, where %s may be used%s",
             units_print_bytes(need, sizeof need, (double)bytes), device_of(request, rank)->name,
             print_libraries(libraries, sizeof libraries, device_of(request, rank)),
             units_print_bytes(have, sizeof have, (double)site_memory_limit(request, rank)),
             name_limit(request, rank));
    return out;
}

/* No candidate fits; candidates[0] needs the least. Raising plan.memory is suggested only where
 * every device is large enough for it. */
static int explain_memory(const struct planner_request *request,
                          const struct planner_result *result, struct error *err)
{
    char tight[PLANNER_TIGHT_SIZE], text[96], size[32];
    const struct plan *least = result->candidates[0].plan;
    uint64_t most = least->predicted.memory_bytes_max;
    bool allowable = true;
    for (int i = 0; i < plan_ranks(least); i++)
        allowable = allowable && most <= device_of(request, i)->memory_bytes;
    return error_set(err, -ENOSPC,
                     "no plan fits: the smallest of %zu, %s on %d devices, needs %s; it would run "
                     "with %s of at least %llu bytes (%s), more devices, or a smaller "
                     "train.global_batch or model",
                     result->count, plan_print(text, sizeof text, least), plan_ranks(least),
                     planner_print_tight(request, &result->candidates[0], tight, sizeof tight),
                     allowable ? "plan.memory" : "devices", (unsigned long long)most,
                     units_print_bytes(size, sizeof size, (double)most));
}

void planner_limits(const struct planner_request *request, int *least, int *most)
{
    int64_t min = request->job->devices.min, max = request->job->devices.max;
    int count = request->device_count;
    *least = min > 0 ? (int)min : 1;
    *most = max > 0 && max < count ? (int)max : count;
}

bool planner_stopped(const struct planner_request *request)
{
    return request->stop && atomic_load_explicit(request->stop, memory_order_relaxed);
}

void planner_tell_work(const struct planner_request *request)
{
    if (request->progress)
        atomic_fetch_add_explicit(&request->progress->work, 1, memory_order_relaxed);
}

void planner_tell_best(const struct planner_request *request, double best_s)
{
    if (!request->progress)
        return;
    double so_far = atomic_load_explicit(&request->progress->best_s, memory_order_relaxed);
    if (so_far == 0 || best_s < so_far)
        atomic_store_explicit(&request->progress->best_s, best_s, memory_order_relaxed);
}

int planner_run(const struct planner_request *request, struct planner_result *out,
                struct error *err)
{
    *out = (struct planner_result){0};
    const struct search *search = NULL;
    int rc = find_names(request->job, &search, err);
    if (rc < 0)
        return rc;
    assert(search);
    if (request->job->devices.min > request->device_count)
        return error_set(err, -EINVAL, "devices.min is %lld, and there are %d devices",
                         (long long)request->job->devices.min, request->device_count);
    rc = pins_check(request, err);
    if (rc < 0)
        return rc;
    rc = shared_cores_search(search, request, out, err);
    if (planner_stopped(request))
        return error_set(err, -ECANCELED, "the search %s was stopped before it had an answer",
                         search->name);
    if (rc < 0)
        return rc;
    choose_best(request, out);
    for (size_t i = 0; i < out->count; i++) {
        struct plan *plan = out->candidates[i].plan;
        snprintf(plan->predicted.search, sizeof plan->predicted.search, "%s", search->name);
        plan->predicted.candidates = (int)(out->looked_at ? out->looked_at : out->count);
    }
    if (!out->candidates[0].fits)
        return explain_memory(request, out, err);
    out->best = out->candidates[0].plan;
    if (err)
        *err = (struct error){0}; /* of what was refused on the way */
    return 0;
}

void planner_result_finish(struct planner_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        plan_destroy(result->candidates[i].plan);
    free(result->candidates);
    *result = (struct planner_result){0};
}

/* What the search proved of the chosen plan, as in "chosen, at most 4.9 % from the best". */
static char *print_proof(char *out, size_t size, const struct plan *plan)
{
    const char *of = plan->predicted.roles;
    if (plan->predicted.lower_bound_s <= 0)
        snprintf(out, size, "chosen");
    else if (plan->predicted.gap < PROVED_GAP)
        snprintf(out, size, "chosen, proved the best%s%s", of[0] ? " of " : "", of);
    else
        snprintf(out, size, "chosen, at most %.1f %% from the best%s%s", 100 * plan->predicted.gap,
                 of[0] ? " of " : "", of);
    return out;
}

/* What there is to say of a candidate behind its figures; may be empty. */
static char *print_remark(char *out, size_t size, const struct planner_result *result,
                          const struct candidate *candidate)
{
    char proof[128] = "", copies[64] = "", seconds[32];
    const struct plan *plan = candidate->plan;
    if (!candidate->fits)
        snprintf(proof, sizeof proof, "does not fit");
    else if (plan == result->best)
        print_proof(proof, sizeof proof, plan);
    if (plan->predicted.copies_time_s > 0)
        snprintf(copies, sizeof copies, "%s%s more for copies of state", proof[0] ? "; " : "",
                 units_print_seconds(seconds, sizeof seconds, plan->predicted.copies_time_s));
    snprintf(out, size, "%s%s%s", proof[0] || copies[0] ? "  " : "", proof, copies);
    return out;
}

void planner_print(const struct planner_result *result, size_t rows, FILE *out)
{
    fprintf(out, "%-10s %-40s %7s %12s %12s %11s\n", "PLAN", "DIVISION", "DEVICES", "STEP", "TOK/S",
            "MEMORY");
    for (size_t i = 0; i < result->count && (rows == 0 || i < rows); i++) {
        const struct plan *plan = result->candidates[i].plan;
        char division[96], step[32], memory[32], remark[256];
        plan_print(division, sizeof division, plan);
        /* The middle dot is two bytes and one column. */
        int dots = 0;
        for (const char *c = division; *c; c++)
            dots += (unsigned char)*c == 0xc2;
        fprintf(out, "%-10s %-*s %7d %12s %12.0f %11s%s\n", plan->id, 40 + dots, division,
                plan_ranks(plan),
                units_print_seconds(step, sizeof step, plan->predicted.step_time_s),
                plan->predicted.tokens_per_s,
                units_print_bytes(memory, sizeof memory, (double)plan->predicted.memory_bytes_max),
                print_remark(remark, sizeof remark, result, &result->candidates[i]));
    }
    if (rows && result->count > rows)
        fprintf(out, "and %zu more\n", result->count - rows);
}
