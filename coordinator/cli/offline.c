/* offline.c - job file and measured cores in, candidates out. */
#include "coordinator/cli/offline.h"

#include "common/base/memory.h"
#include "common/graph/graph.h"
#include "common/rpc/clock.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/jobfile.h"
#include "coordinator/planner/dump.h"
#include "coordinator/cli/planfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The plan of a file in place of a search: it is priced like any other. */
static int take_plan(const char *path, const struct planner_request *request,
                     struct planner_result *result, struct error *err)
{
    struct plan *plan;
    int rc = planfile_load(path, &plan, err);
    if (rc < 0)
        return rc;
    rc = plan_check(plan, request->graph, err);
    if (rc == 0 && plan_ranks(plan) > request->device_count)
        rc = error_set(err, -EINVAL, "it is for %d devices, and there are %d: see --local",
                       plan_ranks(plan), request->device_count);
    if (rc < 0) {
        plan_destroy(plan);
        return error_prefix(err, rc, "plan '%s'", path);
    }
    rc = planner_consider(request, plan, result, err);
    if (rc == 0 && !result->candidates[0].fits)
        rc = error_set(err, -ENOSPC, "plan '%s' needs %llu bytes on a device", path,
                       (unsigned long long)plan->predicted.memory_bytes_max);
    if (rc == 0)
        result->best = result->candidates[0].plan;
    return rc;
}

static int search(const struct planner_request *request, struct planner_result *result,
                  struct error *err)
{
    uint64_t begin = rpc_clock_ms();
    int rc = planner_run(request, result, err);
    double wall_s = (double)(rpc_clock_ms() - begin) / 1000;
    for (size_t i = 0; i < result->count; i++)
        result->candidates[i].plan->predicted.wall_s = wall_s;
    return rc;
}

static int dump(const char *path, const struct planner_request *request, struct error *err)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return error_set(err, -errno, "file '%s' cannot be written: %s", path, strerror(errno));
    int rc = planner_dump(request, file, err);
    if (fclose(file) != 0 && rc == 0)
        rc = error_set(err, -EIO, "the costs cannot be written");
    return rc < 0 ? error_prefix(err, rc, "file '%s'", path) : 0;
}

int offline_run(const struct offline_request *request, struct offline *offline, struct error *err)
{
    *offline = (struct offline){0};
    int code = jobfile_load(request->job_path, &offline->text, &offline->job, err);
    if (code != EXIT_DONE)
        return code;
    if (request->search) {
        free(offline->job->plan.search);
        offline->job->plan.search = xstrdup(request->search);
        if (planner_check(offline->job, err) < 0)
            return EXIT_INPUT;
    }
    int rc = planner_graph(offline->job, &offline->graph, err);
    if (rc < 0)
        return EXIT_INPUT;
    rc = local_open(request->device_count, &offline->local, err);
    if (rc < 0)
        return rc == -ENOENT ? EXIT_CONFIGURATION : exit_of_errno(rc);
    struct planner_request wish = {.graph = offline->graph,
                                   .job = offline->job,
                                   .devices = offline->local.devices,
                                   .device_count = offline->local.count};
    if (request->dump_path && dump(request->dump_path, &wish, err) < 0)
        return EXIT_INPUT;
    rc = request->plan_path ? take_plan(request->plan_path, &wish, &offline->result, err)
                            : search(&wish, &offline->result, err);
    offline->best = offline->result.best;
    /* Nothing legal at all is as infeasible as nothing that fits. */
    if (rc == -ENOSPC || (rc == -EINVAL && !request->plan_path))
        return EXIT_NO_PLAN;
    return exit_of_errno(rc);
}

void offline_finish(struct offline *offline)
{
    planner_result_finish(&offline->result);
    local_finish(&offline->local);
    graph_destroy(offline->graph);
    job_config_destroy(offline->job);
    free(offline->text);
    *offline = (struct offline){0};
}
