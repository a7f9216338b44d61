/* ask.c - turns flags into a request for plans. */
#include "coordinator/cli/commands/plan/ask.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/jobfile.h"
#include "coordinator/cli/plans/living.h"

#include "common/base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Refuse a plan that is given as the job file before anybody is asked for devices: read as a job
 * file it would only lack keys. Anything but a regular file, such as a pipe, can be read only once
 * and is not checked. */
static int check_file(const char *path, struct error *err)
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
    return ask->job_text ? EXIT_DONE : check_file(ask->file, err);
}

int ask_run(const struct common *common, const struct ask_values *ask, struct offline *offline,
            struct error *err)
{
    struct offline_request request;
    char *nodes = NULL;
    *offline = (struct offline){0};
    int code = ask_request(ask, &request, err);
    request.quiet = common->quiet;
    if (code == EXIT_DONE && !ask->local && !ask->cluster)
        code = living_nodes(common, &nodes, err);
    if (nodes) {
        request.cluster_path = client_address(common);
        request.cluster_text = nodes;
    }
    if (code == EXIT_DONE)
        code = offline_run(&request, offline, err);
    free(nodes);
    return code;
}
