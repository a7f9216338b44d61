/* inventory.c - turns nodes as written down into devices as the scheduler sees them. */
#include "coordinator/planning/inventory.h"

#include "common/base/memory.h"
#include "common/config/cluster.h"
#include "common/hardware/hardware.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static struct profile_link link_of(const struct cluster_link *link)
{
    return (struct profile_link){link->latency, link->bandwidth > 0 ? 1 / link->bandwidth : 0};
}

static void add_devices(struct hardware_report *report, const struct cluster_devices *devices)
{
    const struct hardware_device device = {
        .kind = devices->kind == CLUSTER_GPU ? HARDWARE_GPU : HARDWARE_CPU,
        .name = devices->model ? devices->model : (char *)"",
        .cpuset = (char *)"",
        .cores = 1,
        .memory_bytes = devices->memory,
        .flops = devices->flops,
        .bandwidth = devices->bandwidth,
    };
    for (int64_t i = 0; i < devices->count; i++)
        hardware_report_add_device(report, &device);
}

/* For all devices of a node, in the order of its report. */
static void add_profiles(struct inventory *inventory, const struct cluster_node *node,
                         const struct cluster_links *links, size_t *capacity)
{
    for (size_t d = 0; d < node->devices.count; d++) {
        const struct cluster_devices *devices = cluster_devices(node, d);
        for (int64_t i = 0; i < devices->count; i++) {
            inventory->profiles = grow(inventory->profiles, inventory->view_count, capacity,
                                       sizeof *inventory->profiles);
            struct profile *profile = &inventory->profiles[inventory->view_count++];
            *profile = profile_analytic(devices->flops, devices->bandwidth, devices->efficiency,
                                        link_of(&links->host), link_of(&links->network));
            profile->network_cards = links->network.cards > 0 ? (double)links->network.cards : 1;
        }
    }
}

static void add_node(struct inventory *inventory, const struct cluster_config *cluster,
                     const struct cluster_node *node, int64_t index, size_t capacities[2])
{
    char *name =
        node->count > 1 ? xasprintf("%s-%" PRId64, node->name, index) : xstrdup(node->name);
    struct hardware_report *report = hardware_report_create(name, name, "", "");
    struct cluster_links links = cluster_node_links(cluster, node);
    for (size_t d = 0; d < node->devices.count; d++)
        add_devices(report, cluster_devices(node, d));
    add_profiles(inventory, node, &links, &capacities[1]);
    inventory->reports = grow(inventory->reports, inventory->report_count, &capacities[0],
                              sizeof *inventory->reports);
    inventory->reports[inventory->report_count++] = report;
    free(name);
}

static int read_cluster(const char *text, size_t size, const char *name,
                        struct inventory *inventory, struct error *err)
{
    struct cluster_config *cluster;
    size_t capacities[2] = {0};
    int rc = cluster_config_parse(text, size, name, &cluster, err);
    if (rc < 0)
        return rc;
    for (size_t n = 0; n < cluster->nodes.count; n++)
        for (int64_t i = 0; i < cluster_node(cluster, n)->count; i++)
            add_node(inventory, cluster, cluster_node(cluster, n), i, capacities);
    cluster_config_destroy(cluster);
    return 0;
}

static void count_views(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->report_count; i++)
        inventory->view_count += inventory->reports[i]->device_count;
}

static int read_recorded(const json_t *json, const char *name, struct inventory *inventory,
                         struct error *err)
{
    int rc = hardware_reports_from_json(json, &inventory->reports, &inventory->report_count, err);
    if (rc < 0)
        return error_prefix(err, rc, "%s", name);
    count_views(inventory);
    return 0;
}

/* Called when all reports are complete. */
static void make_views(struct inventory *inventory)
{
    inventory->views = xcalloc(inventory->view_count, sizeof *inventory->views);
    size_t next = 0;
    for (size_t n = 0; n < inventory->report_count; n++) {
        const struct hardware_report *report = inventory->reports[n];
        for (size_t i = 0; i < report->device_count; i++, next++) {
            struct device_view *view = &inventory->views[next];
            *view = (struct device_view){
                .ref = {.index = report->devices[i].index},
                .host = report->host,
                .device = &report->devices[i],
                .told = inventory->profiles ? &inventory->profiles[next] : NULL,
                .crowded = report->oversubscribed,
                .holder = "",
                .grantable = true,
            };
            memcpy(view->ref.worker, report->node, strlen(report->node) + 1);
        }
    }
}

int inventory_parse(const char *text, size_t size, const char *name, struct inventory *out,
                    struct error *err)
{
    *out = (struct inventory){0};
    json_t *json = json_loadb(text, size, 0, NULL);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    int rc = kind && strcmp(kind, "NodeList") == 0 ? read_recorded(json, name, out, err)
                                                   : read_cluster(text, size, name, out, err);
    json_decref(json);
    if (rc == 0)
        make_views(out);
    return rc;
}

void inventory_take(struct inventory *inventory, struct hardware_report **reports, size_t count)
{
    *inventory = (struct inventory){.reports = reports, .report_count = count};
    count_views(inventory);
    make_views(inventory);
}

void inventory_finish(struct inventory *inventory)
{
    hardware_reports_destroy(inventory->reports, inventory->report_count);
    free(inventory->profiles);
    free(inventory->views);
    *inventory = (struct inventory){0};
}
