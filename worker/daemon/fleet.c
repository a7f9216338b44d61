/* fleet.c - copies of one report, a daemon for each, and one loop for all. */
#include "worker/daemon/fleet.h"

#include "common/base/descriptors.h"
#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>

struct fleet {
    struct hardware_report **reports;
    struct daemon **daemons;
    size_t count;
};

static int add(struct fleet *fleet, const struct daemon_options *model, struct error *err)
{
    struct hardware_report *report = hardware_report_copy(model->report);
    struct daemon_options options = {.report = report,
                                     .coordinator = model->coordinator,
                                     .credentials = model->credentials,
                                     .state = model->state};
    size_t index = fleet->count++;
    free(report->node);
    report->node = xasprintf("%s-%04zu", model->report->node, index + 1);
    free(report->host); /* each is a machine of its own, and shares cores with nobody */
    report->host = xasprintf("%s-%04zu", model->report->host, index + 1);
    fleet->reports[index] = report;
    if (!hardware_name_valid(report->node))
        return error_set(err, -EINVAL, "'%s' is no name for a node: give a shorter --name",
                         report->node);
    return daemon_open(&options, &fleet->daemons[index], err);
}

int fleet_run(const struct daemon_options *options, unsigned count, int signal_fd,
              struct notify *notify, struct error *err)
{
    struct fleet fleet = {
        .reports = xcalloc(count, sizeof(struct hardware_report *)),
        .daemons = xcalloc(count, sizeof(struct daemon *)),
    };
    int rc = 0;
    descriptors_allow_all(); /* each node has two connections */
    while (rc == 0 && fleet.count < count)
        rc = add(&fleet, options, err);
    if (rc == 0)
        rc = daemons_run(fleet.daemons, count, signal_fd, notify);
    for (size_t i = 0; i < fleet.count; i++) {
        daemon_close(fleet.daemons[i]);
        hardware_report_destroy(fleet.reports[i]);
    }
    free(fleet.daemons);
    free(fleet.reports);
    return rc;
}
