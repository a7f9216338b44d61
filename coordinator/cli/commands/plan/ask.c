/* ask.c - flags to a request. */
#include "coordinator/cli/commands/plan/ask.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/living.h"

#include <stdlib.h>
#include <string.h>

int ask_request(const struct ask_values *ask, struct offline_request *request, struct error *err)
{
    if (ask->local && (ask->cluster || ask->cost))
        return error_set(err, EXIT_USAGE,
                         "--local is for this machine as it is measured: leave out --cluster and "
                         "--cost");
    if (ask->cost && strcmp(ask->cost, GALVATRON_COST) == 0)
        return error_set(err, EXIT_USAGE,
                         "--cost " GALVATRON_COST " goes with 'gimbal plan' itself, which compares "
                         "plans by that formula: here write measured or analytic");
    *request = (struct offline_request){.job_path = ask->file,
                                        .search = ask->search,
                                        .memory = ask->memory,
                                        .plan_path = ask->plan,
                                        .cluster_path = ask->cluster,
                                        .dump_path = ask->dump,
                                        .device_count = (int)ask->local,
                                        .frontier = ask->frontier};
    if (planning_cost_parse(ask->cost ? ask->cost : "", &request->cost, err) < 0)
        return EXIT_USAGE;
    return EXIT_DONE;
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
