/* rates.c - see rates.h. */
#include "coordinator/cli/plans/rates.h"

#include "common/base/memory.h"
#include "common/hardware/wire.h"
#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"
#include "coordinator/planner/costs/device_profile.h"

#include <stdlib.h>
#include <string.h>

static void begin(struct rates *rates, int count)
{
    *rates = (struct rates){.devices = xcalloc((size_t)count, sizeof *rates->devices),
                            .profiles = xcalloc((size_t)count, sizeof *rates->profiles),
                            .count = count};
}

/* Set the next device, whose profile is filled in already. */
static void set(struct rates *rates, int index, const char *name, const char *host,
                const char *cores, uint64_t memory_bytes, uint64_t library_bytes)
{
    rates->devices[index] = (struct planner_device){.name = xstrdup(name),
                                                    .host = xstrdup(host),
                                                    .cores = cores ? xstrdup(cores) : NULL,
                                                    .memory_bytes = memory_bytes,
                                                    .profile = &rates->profiles[index],
                                                    .library_bytes = library_bytes};
}

void rates_copy(const struct planner_device *devices, int count, struct rates *out)
{
    begin(out, count);
    for (int i = 0; i < count; i++) {
        out->profiles[i] = *devices[i].profile;
        set(out, i, devices[i].name, devices[i].host, devices[i].cores, devices[i].memory_bytes,
            devices[i].library_bytes);
    }
}

void rates_finish(struct rates *rates)
{
    for (int i = 0; i < rates->count; i++) {
        free((char *)rates->devices[i].name);
        free((char *)rates->devices[i].host);
        free((char *)rates->devices[i].cores);
    }
    free(rates->devices);
    free(rates->profiles);
    *rates = (struct rates){0};
}

/* Find the node of a device ("node-a/0") in the coordinator's list; NULL if it is missing. */
static const Gimbal__HardwareReport *find_node(const Gimbal__ListNodesReply *nodes,
                                               const char *device)
{
    const char *slash = strrchr(device, '/');
    size_t length = slash ? (size_t)(slash - device) : strlen(device);
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = nodes->nodes[i];
        if (node->hardware && strlen(node->name) == length &&
            strncmp(node->name, device, length) == 0)
            return node->hardware;
    }
    return NULL;
}

static int add(struct rates *rates, int rank, const char *name, const Gimbal__HardwareReport *node,
               struct error *err)
{
    struct hardware_report *report;
    const char *slash = strrchr(name, '/');
    size_t index = slash ? strtoul(slash + 1, NULL, 10) : 0;
    int rc = hardware_report_from_wire(node, &report, err);
    if (rc < 0)
        return rc;
    if (index >= report->device_count)
        rc = error_set(err, -1, "node '%s' no longer has a device %zu", report->node, index);
    else
        rc = device_profile(&report->devices[index], name, true, &rates->profiles[rank], err);
    if (rc == 0) {
        const struct hardware_device *device = &report->devices[index];
        bool crowded = report->oversubscribed && device->kind == HARDWARE_CPU;
        set(rates, rank, name, report->host, crowded ? device->cpuset : NULL, device->memory_bytes,
            device->library_bytes);
    }
    hardware_report_destroy(report);
    return rc;
}

static int fill(struct rates *rates, const struct plan *plan, const Gimbal__ListNodesReply *nodes,
                struct error *err)
{
    for (int rank = 0; rank < rates->count; rank++) {
        const char *name = plan_device(plan, rank);
        if (!name)
            return error_set(err, EXIT_PRECONDITION, "the plan does not say where rank %d runs",
                             rank);
        const Gimbal__HardwareReport *node = find_node(nodes, name);
        if (!node)
            return error_set(err, EXIT_PRECONDITION,
                             "rank %d runs on %s, a node that the coordinator no longer knows",
                             rank, name);
        if (add(rates, rank, name, node, err) < 0)
            return EXIT_PRECONDITION;
    }
    return EXIT_DONE;
}

int rates_ask(struct client *client, const struct plan *plan, struct rates *out, struct error *err)
{
    Gimbal__ListNodesRequest request = GIMBAL__LIST_NODES_REQUEST__INIT;
    ProtobufCMessage *reply;
    *out = (struct rates){0};
    int code = client_call(client, COORDINATOR_LIST_NODES, &request.base, 0, &reply, err);
    if (code != EXIT_DONE)
        return code;
    begin(out, plan_ranks(plan));
    code = fill(out, plan, (const Gimbal__ListNodesReply *)reply, err);
    message_free(reply);
    if (code != EXIT_DONE)
        rates_finish(out);
    return code;
}
