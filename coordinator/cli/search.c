/* search.c - from a job file and devices to the candidates of a search: with the devices of a file
 * or of this machine, with those of nodes that live, or with whichever the flags ask for. */
#include "coordinator/cli/search.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/graph/graph.h"
#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/inputs.h"
#include "coordinator/cli/progress.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/dump.h"

static int offline_load_plan(const char *path, struct plan **out, struct error *err)
{
    char *text;
    int rc = file_read(path, &text, err);
    if (rc < 0)
        return rc;
    rc = plan_decode(text, out, err);
    if (rc < 0 && !filekind_explain(text, path, FILE_PLAN, err))
        error_prefix(err, rc, "plan '%s'", path);
    free(text);
    return rc;
}

/* A plan for other devices is taken as one for as many devices of this machine. */
static int offline_take_plan(const struct offline_request *request, struct offline *offline,
                             struct error *err)
{
    struct plan *plan;
    int rc = request->plan_text ? plan_decode(request->plan_text, &plan, err)
                                : offline_load_plan(request->plan_path, &plan, err);
    if (rc < 0)
        return rc;
    if (!request->cluster_path)
        plan_forget_devices(plan);
    rc = planner_given(&offline->request, plan, &offline->result, err);
    return rc < 0 ? error_prefix(err, rc, "'%s'", request->plan_path) : 0;
}

static int offline_search(struct offline *offline, bool quiet, struct error *err)
{
    uint64_t begin = clock_ms();
    struct planner_progress progress = {0};
    struct error words;
    struct searching *searching = quiet ? NULL : searching_begin(&progress);
    offline->request.progress = &progress;
    int rc = planner_run(&offline->request, &offline->result, &words);
    offline->request.progress = NULL;
    searching_end(searching);
    double wall_s = (double)(clock_ms() - begin) / 1000;
    for (size_t i = 0; i < offline->result.count; i++)
        offline->result.candidates[i].plan->predicted.wall_s = wall_s;
    if (rc < 0)
        *err = words; /* omit errors that were overcome on the way to an answer */
    return rc;
}

static int offline_dump(const char *path, const struct planner_request *request, struct error *err)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return error_set(err, -errno, "file '%s' cannot be written: %s", path, strerror(errno));
    int rc = planner_dump(request, file, err);
    if (fclose(file) != 0 && rc == 0)
        rc = error_set(err, -EIO, "the costs cannot be written");
    return rc < 0 ? error_prefix(err, rc, "file '%s'", path) : 0;
}

static int offline_read_job(const struct offline_request *request, struct offline *offline,
                            struct error *err)
{
    int code = request->job_text
                   ? jobfile_take(xstrdup(request->job_text), request->job_path, &offline->text,
                                  &offline->job, err)
                   : jobfile_load(request->job_path, &offline->text, &offline->job, err);
    if (code != EXIT_DONE)
        return code;
    if (request->memory)
        offline->job->plan.memory = request->memory;
    if (request->frontier)
        offline->job->plan.objective = JOB_FRONTIER;
    if (request->search) {
        free(offline->job->plan.search);
        offline->job->plan.search = xstrdup(request->search);
        if (planner_check(offline->job, err) < 0)
            return EXIT_INPUT;
    }
    if (planner_graph(offline->job, &offline->graph, err) < 0)
        return EXIT_INPUT;
    if (request->to_train && planner_runs(offline->job, offline->graph, err) < 0)
        return EXIT_CONFIGURATION;
    return EXIT_DONE;
}

/* Choose the devices that the job could have of the cluster. */
static int offline_pick(const struct offline_request *request, struct offline *offline,
                        struct error *err)
{
    const struct inventory *inventory = &offline->inventory;
    const struct job_devices *wanted = &offline->job->devices;
    offline->picked = xcalloc(inventory->view_count, sizeof *offline->picked);
    size_t count = fleet_pick(inventory->views, inventory->view_count, (unsigned)wanted->min,
                              wanted->max ? (unsigned)wanted->max : UINT_MAX, offline->picked);
    if (count == 0)
        return error_set(
            err, EXIT_NO_PLAN,
            "the job needs %lld device%s of one kind, and '%s' has fewer: see devices.min",
            (long long)wanted->min, wanted->min == 1 ? "" : "s", request->cluster_path);
    return exit_of_errno(fleet_open(&offline->fleet, offline->picked, count, request->cost, err));
}

/* The plan of a job is for the devices that the job has. */
static int offline_find(const struct offline_request *request, struct offline *offline,
                        struct error *err)
{
    struct plan *plan;
    int rc = plan_decode(request->plan_text, &plan, err);
    if (rc < 0)
        return exit_of_errno(rc);
    int code = living_fleet(&offline->inventory, plan, request->cost, &offline->fleet, err);
    plan_destroy(plan);
    return code;
}

static int offline_read_cluster(const char *path, struct offline *offline, struct error *err)
{
    char *text;
    int rc = file_read(path, &text, err);
    if (rc < 0)
        return exit_of_errno(rc);
    rc = inventory_parse(text, strlen(text), path, &offline->inventory, err);
    bool is_other = rc < 0 && filekind_explain(text, path, FILE_CLUSTER, err);
    free(text);
    return is_other ? EXIT_USAGE : exit_of_errno(rc);
}

/* A price that is not the device's own is not used without a word. */
static void offline_tell_rates(const struct offline *offline)
{
    const char *name = NULL;
    size_t count = 0;
    if (offline->job->train.dtype != ELEMENT_BF16)
        return;
    for (size_t i = 0; i < offline->fleet.count; i++)
        if (offline->fleet.devices[i].profile->seconds_per_flop_bf16 <= 0 && count++ == 0)
            name = offline->fleet.devices[i].name;
    if (count > 0)
        fprintf(stderr,
                "how fast %s%s in bf16 is not known: planned as in f32; a cluster file says it as "
                "flops_bf16\n",
                name, count > 1 ? " and others are" : " is");
}

static int offline_open_cluster(const struct offline_request *request, struct offline *offline,
                                struct error *err)
{
    int code = EXIT_DONE;
    if (request->nodes) {
        offline->inventory = *request->nodes;
        *request->nodes = (struct inventory){0};
    } else {
        code = offline_read_cluster(request->cluster_path, offline, err);
    }
    if (code == EXIT_DONE)
        code = request->plan_text ? offline_find(request, offline, err)
                                  : offline_pick(request, offline, err);
    if (code == EXIT_DONE && !request->quiet)
        offline_tell_rates(offline);
    offline->request.devices = offline->fleet.devices;
    offline->request.device_count = (int)offline->fleet.count;
    return code;
}

static int offline_open_machine(const struct offline_request *request, struct offline *offline,
                                struct error *err)
{
    int rc = machine_open(request->device_count, request->device, request->measure,
                          &offline->machine, err);
    if (rc == 0 && !request->quiet)
        machine_tell(&offline->machine);
    offline->request.devices = offline->machine.devices;
    offline->request.device_count = offline->machine.count;
    return rc == -ENOENT ? EXIT_CONFIGURATION : exit_of_errno(rc);
}

int offline_open(const struct offline_request *request, struct offline *offline, struct error *err)
{
    *offline = (struct offline){0};
    int code = offline_read_job(request, offline, err);
    offline->request.graph = offline->graph;
    offline->request.job = offline->job;
    if (code == EXIT_DONE)
        code = request->cluster_path ? offline_open_cluster(request, offline, err)
                                     : offline_open_machine(request, offline, err);
    return code;
}

int offline_run(const struct offline_request *request, struct offline *offline, struct error *err)
{
    int code = offline_open(request, offline, err);
    if (code != EXIT_DONE)
        return code;
    int rc = request->dump_path ? offline_dump(request->dump_path, &offline->request, err) : 0;
    if (rc < 0)
        return exit_of_errno(rc);
    rc = request->plan_path ? offline_take_plan(request, offline, err)
                            : offline_search(offline, request->quiet, err);
    offline->best = offline->result.best;
    /* No legal plan is as infeasible as none that fits. */
    if (rc == -ENOSPC || (rc == -EINVAL && !request->plan_path))
        return EXIT_NO_PLAN;
    return exit_of_errno(rc);
}

void offline_finish(struct offline *offline)
{
    candidates_finish(&offline->result);
    machine_finish(&offline->machine);
    fleet_finish(&offline->fleet);
    free(offline->picked);
    inventory_finish(&offline->inventory);
    graph_destroy(offline->graph);
    job_config_destroy(offline->job);
    free(offline->text);
    *offline = (struct offline){0};
}

int living_suggest(int code, struct error *err)
{
    struct error why = *err;
    if (code == EXIT_UNAVAILABLE || code == EXIT_AGAIN)
        error_set(err, code, "%s; or plan for --cluster FILE, or for this machine with --local N",
                  why.text);
    return code;
}

/* No node is alive. */
static int living_refuse_none(const struct common *common, const Gimbal__ListNodesReply *reply,
                              struct error *err)
{
    unsigned drained = 0;
    for (size_t i = 0; i < reply->n_nodes; i++)
        drained += reply->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__DRAINING ||
                   reply->nodes[i]->state == GIMBAL__NODE_STATUS__STATE__DRAINED;
    if (drained > 0)
        return error_set(err, EXIT_AGAIN,
                         "no node of the coordinator at %s gets jobs now: %u %s drained, and "
                         "'gimbal undrain NODE' gives one back",
                         client_address(common), drained, drained == 1 ? "is" : "are");
    return error_set(err, EXIT_AGAIN,
                     "no node of the coordinator at %s is alive: start one with 'gimbal-worker'",
                     client_address(common));
}

static bool living_is_wanted(const Gimbal__NodeStatus *node, bool all)
{
    return node->hardware && (all || node->state == GIMBAL__NODE_STATUS__STATE__ALIVE);
}

int living_nodes(const struct common *common, bool all, struct inventory *out, struct error *err)
{
    Gimbal__ListNodesReply *list;
    *out = (struct inventory){0};
    int code = client_list_nodes_once(common, &list, err);
    if (code != EXIT_DONE)
        return code;
    struct hardware_report **reports = xcalloc(list->n_nodes + 1, sizeof *reports);
    size_t count = 0;
    for (size_t i = 0; i < list->n_nodes && code == EXIT_DONE; i++) {
        if (!living_is_wanted(list->nodes[i], all))
            continue;
        if (hardware_report_from_wire(list->nodes[i]->hardware, &reports[count], err) < 0)
            code = EXIT_INTERNAL;
        else
            count++;
    }
    if (code == EXIT_DONE && count == 0 && !all)
        code = living_refuse_none(common, list, err);
    inventory_take(out, reports, count);
    message_free(&list->base);
    return code;
}

/* The view of the device with this name, as in "node-a/0". */
static int living_find(const struct inventory *inventory, int rank, const char *name,
                       struct device_view *out, struct error *err)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    bool node_known = false;
    if (!name)
        return error_set(err, EXIT_PRECONDITION, "the plan does not say where rank %d runs", rank);
    size_t length = slash ? (size_t)(slash - name) : strlen(name);
    unsigned long index = slash ? strtoul(slash + 1, NULL, 10) : 0;
    for (size_t i = 0; i < inventory->view_count; i++) {
        const struct device_ref *ref = &inventory->views[i].ref;
        if (strlen(ref->worker) != length || strncmp(ref->worker, name, length) != 0)
            continue;
        node_known = true;
        if (ref->index != index)
            continue;
        *out = inventory->views[i];
        return EXIT_DONE;
    }
    if (node_known)
        return error_set(err, EXIT_PRECONDITION, "node '%.*s' no longer has a device %lu",
                         (int)length, name, index);
    return error_set(err, EXIT_PRECONDITION,
                     "rank %d runs on %s, a node that the coordinator no longer knows", rank, name);
}

int living_fleet(const struct inventory *inventory, const struct plan *plan,
                 enum planning_cost cost, struct fleet *out, struct error *err)
{
    int ranks = plan_ranks(plan), code = EXIT_DONE;
    struct device_view *views = xcalloc((size_t)ranks, sizeof *views);
    for (int rank = 0; rank < ranks && code == EXIT_DONE; rank++)
        code = living_find(inventory, rank, plan_device(plan, rank), &views[rank], err);
    if (code == EXIT_DONE && fleet_open(out, views, (size_t)ranks, cost, err) < 0)
        code = EXIT_PRECONDITION;
    free(views);
    return code;
}

/* Refuse a plan that is given as the job file before anybody is asked for devices: read as a job
 * file it would only lack keys. Anything but a regular file, such as a pipe, can be read only once
 * and is not checked. */
static int ask_check_file(const char *path, struct error *err)
{
    char *text;
    struct error ignored;
    struct stat status;
    if (!path || stat(path, &status) < 0 || !S_ISREG(status.st_mode) ||
        file_read(path, &text, &ignored) < 0)
        return EXIT_DONE;
    int code = jobfile_refuse_plan(text, path, err);
    free(text);
    return code;
}

int ask_request(const struct ask_values *ask, struct offline_request *request, struct error *err)
{
    if (ask->local && (ask->cluster || ask->cost))
        return error_set(
            err, EXIT_USAGE,
            "--local plans for this machine as measured: leave out --cluster and --cost");
    if (ask->measure && !ask->local)
        return error_set(err, EXIT_USAGE, "--measure needs --local");
    if (ask->cost && strcmp(ask->cost, GALVATRON_COST) == 0)
        return error_set(err, EXIT_USAGE,
                         "--cost " GALVATRON_COST
                         " is for 'gimbal plan' itself, which compares plans by "
                         "that formula: write measured or analytic here");
    *request = (struct offline_request){.job_path = ask->file,
                                        .job_text = ask->job_text,
                                        .search = ask->search,
                                        .memory = ask->memory,
                                        .plan_path = ask->plan,
                                        .plan_text = ask->plan_text,
                                        .cluster_path = ask->cluster,
                                        .dump_path = ask->dump,
                                        .device_count = (int)ask->local,
                                        .measure = ask->measure,
                                        .frontier = ask->frontier};
    if (planning_cost_parse(ask->cost ? ask->cost : "", &request->cost, err) < 0)
        return EXIT_USAGE;
    return ask->job_text ? EXIT_DONE : ask_check_file(ask->file, err);
}

int ask_run(const struct common *common, const struct ask_values *ask, struct offline *offline,
            struct error *err)
{
    struct offline_request request;
    struct inventory nodes = {0};
    *offline = (struct offline){0};
    int code = ask_request(ask, &request, err);
    request.quiet = common->quiet;
    if (code == EXIT_DONE && !ask->local && !ask->cluster)
        code = living_suggest(living_nodes(common, ask->plan_text, &nodes, err), err);
    if (nodes.report_count > 0) {
        request.cluster_path = client_address(common);
        request.nodes = &nodes;
    }
    if (code == EXIT_DONE)
        code = offline_run(&request, offline, err);
    inventory_finish(&nodes); /* if nobody has taken them */
    return code;
}
