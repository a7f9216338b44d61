/* fleet.c - turns nodes as written down into views, and views into devices with a name and a
 * profile. */
#include "coordinator/planning/fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "coordinator/planning/alike.h"
#include "coordinator/planning/cluster_file.h"

static struct hardware_link link_from_cluster(const struct cluster_link *link)
{
    return (struct hardware_link){link->latency, link->bandwidth > 0 ? 1 / link->bandwidth : 0};
}

static void node_add_devices(struct hardware_report *report, const struct cluster_devices *devices)
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
static void node_add_profiles(struct inventory *inventory, const struct cluster_node *node,
                              const struct cluster_links *links, size_t *capacity)
{
    for (size_t d = 0; d < node->devices.count; d++) {
        const struct cluster_devices *devices = cluster_devices(node, d);
        for (int64_t i = 0; i < devices->count; i++) {
            inventory->profiles = grow(inventory->profiles, inventory->view_count, capacity,
                                       sizeof *inventory->profiles);
            struct profile *profile = &inventory->profiles[inventory->view_count++];
            *profile = profile_analytic(devices->flops, devices->bandwidth, devices->efficiency,
                                        link_from_cluster(&links->host),
                                        link_from_cluster(&links->network));
            if (devices->flops_bf16 > 0)
                profile->seconds_per_flop_bf16 = 1 / (devices->flops_bf16 * devices->efficiency);
            profile->network_cards = links->network.cards > 0 ? (double)links->network.cards : 1;
        }
    }
}

static void inventory_add_node(struct inventory *inventory, const struct cluster_config *cluster,
                               const struct cluster_node *node, int64_t index, size_t capacities[2])
{
    char *name =
        node->count > 1 ? xasprintf("%s-%" PRId64, node->name, index) : xstrdup(node->name);
    struct hardware_report *report = hardware_report_create(name, name, "", "");
    struct cluster_links links = cluster_node_links(cluster, node);
    for (size_t d = 0; d < node->devices.count; d++)
        node_add_devices(report, cluster_devices(node, d));
    node_add_profiles(inventory, node, &links, &capacities[1]);
    inventory->reports = grow(inventory->reports, inventory->report_count, &capacities[0],
                              sizeof *inventory->reports);
    inventory->reports[inventory->report_count++] = report;
    free(name);
}

static int inventory_read_cluster(const char *text, size_t size, const char *name,
                                  struct inventory *inventory, struct error *err)
{
    struct cluster_config *cluster;
    size_t capacities[2] = {0};
    int rc = cluster_config_parse(text, size, name, &cluster, err);
    if (rc < 0)
        return rc;
    for (size_t n = 0; n < cluster->nodes.count; n++)
        for (int64_t i = 0; i < cluster_node(cluster, n)->count; i++)
            inventory_add_node(inventory, cluster, cluster_node(cluster, n), i, capacities);
    cluster_config_destroy(cluster);
    return 0;
}

static void inventory_count_views(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->report_count; i++)
        inventory->view_count += inventory->reports[i]->device_count;
}

static int inventory_read_recorded(const json_t *json, const char *name,
                                   struct inventory *inventory, struct error *err)
{
    int rc = hardware_reports_from_json(json, &inventory->reports, &inventory->report_count, err);
    if (rc < 0)
        return error_prefix(err, rc, "%s", name);
    inventory_count_views(inventory);
    return 0;
}

/* Called when all reports are complete. */
static void inventory_make_views(struct inventory *inventory)
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
    int rc = kind && strcmp(kind, "NodeList") == 0
                 ? inventory_read_recorded(json, name, out, err)
                 : inventory_read_cluster(text, size, name, out, err);
    json_decref(json);
    if (rc == 0)
        inventory_make_views(out);
    return rc;
}

void inventory_take(struct inventory *inventory, struct hardware_report **reports, size_t count)
{
    *inventory = (struct inventory){.reports = reports, .report_count = count};
    inventory_count_views(inventory);
    inventory_make_views(inventory);
}

void inventory_finish(struct inventory *inventory)
{
    hardware_reports_destroy(inventory->reports, inventory->report_count);
    free(inventory->profiles);
    free(inventory->views);
    *inventory = (struct inventory){0};
}

/* A device known by its peak rates alone: kernels reach half of them, and links are those of
 * a process beside another and of 10 Gbit/s Ethernet. */
#define SHARE_OF_PEAK 0.5
static const struct hardware_link link_host = {20e-6, 1 / 5e9}, link_network = {60e-6, 1 / 1.1e9};

/* How fast a device is: as measured, or estimated from its peak rates. name ("node-a/0") is for
 * messages. -EINVAL: there is neither a profile nor peak rates, or the profile is invalid. */
static int device_profile(const struct hardware_device *device, const char *name, bool measured,
                          struct profile *out, struct error *err)
{
    if (device->profile && measured) {
        int rc = profile_decode(device->profile, out, err);
        return rc < 0 ? error_prefix(err, rc, "%s", name) : 0;
    }
    if (!(device->flops > 0) || !(device->bandwidth > 0))
        return error_set(err, -EINVAL,
                         "%s has neither a measured profile nor peak rates: its worker must probe "
                         "it, or be told its flops and bandwidth",
                         name);
    *out =
        profile_analytic(device->flops, device->bandwidth, SHARE_OF_PEAK, link_host, link_network);
    return 0;
}

const char *const planning_costs[] = {[PLANNING_BEST] = "best",
                                      [PLANNING_MEASURED] = "measured",
                                      [PLANNING_ANALYTIC] = "analytic",
                                      NULL};

int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err)
{
    *cost = PLANNING_BEST;
    for (size_t i = 0; text[0] && planning_costs[i]; i++)
        if (strcmp(planning_costs[i], text) == 0) {
            *cost = (enum planning_cost)i;
            return 0;
        }
    if (!text[0])
        return 0;
    return error_set(
        err, -EINVAL,
        "cost '%.64s' is unknown; known: best, measured, analytic; of 'gimbal plan' with a "
        "cluster file also galvatron",
        text);
}

size_t fleet_pick(const struct device_view *views, size_t count, unsigned least, unsigned most,
                  struct device_view *picked)
{
    for (int kind = HARDWARE_GPU; kind >= HARDWARE_CPU; kind--) {
        size_t taken = 0;
        for (size_t i = 0; i < count && taken < most; i++)
            if (views[i].device->kind == (enum hardware_kind)kind && views[i].grantable)
                picked[taken++] = views[i];
        if (taken > 0 && taken >= least)
            return taken;
    }
    return 0;
}

static int device_find_profile(const struct device_view *view, enum planning_cost cost,
                               struct profile *out, struct error *err)
{
    const struct hardware_device *device = view->device;
    char name[HARDWARE_NAME_SIZE + 16];
    snprintf(name, sizeof name, "%s/%u", view->ref.worker, view->ref.index);
    bool measured = cost != PLANNING_ANALYTIC;
    if (!(device->profile && measured) && view->told && cost != PLANNING_MEASURED) {
        *out = *view->told;
        return 0;
    }
    if (cost == PLANNING_MEASURED && !device->profile)
        return error_set(err, -EINVAL, "%s has no measured profile yet", name);
    return device_profile(device, name, measured, out, err);
}

void fleet_finish(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        free((char *)fleet->devices[i].name);
        free((char *)fleet->devices[i].host);
        free((char *)fleet->devices[i].cores);
    }
    free(fleet->devices);
    free(fleet->refs);
    free(fleet->slowdowns);
    free(fleet->profiles);
    *fleet = (struct fleet){0};
}

/* Equally fast devices share one profile: the planner recognizes like devices by its address. */
static const struct profile *fleet_share_profile(struct fleet *fleet, const struct profile *profile)
{
    for (size_t i = 0; i < fleet->profile_count; i++)
        if (profile_equal(&fleet->profiles[i], profile))
            return &fleet->profiles[i];
    fleet->profiles[fleet->profile_count] = *profile;
    return &fleet->profiles[fleet->profile_count++];
}

/* Ranks on cores meet at one address of their host, so they share the card that has it. */
void fleet_set_network(struct profile *profile, enum hardware_kind kind,
                       const struct hardware_link *link, unsigned cards)
{
    profile->network = *link;
    profile->network_cards = kind == HARDWARE_CPU ? 1 : cards;
}

/* The profiles of all views as they were measured, or told, those of like devices as one. The
 * caller frees *out in any case. */
static int fleet_find_profiles(const struct device_view *views, size_t count,
                               enum planning_cost cost, struct profile **out, struct error *err)
{
    const char **names = xcalloc(count, sizeof *names);
    int rc = 0;
    *out = xcalloc(count, sizeof **out);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct hardware_device *device = views[i].device;
        if (device->profile && cost != PLANNING_ANALYTIC)
            names[i] = device->name ? device->name : "";
        rc = device_find_profile(&views[i], cost, &(*out)[i], err);
    }
    if (rc == 0)
        profiles_level(*out, names, count);
    free(names);
    return rc;
}

static void fleet_add(struct fleet *fleet, const struct device_view *view, struct profile profile)
{
    size_t index = fleet->count++;
    struct planner_device *device = &fleet->devices[index];
    fleet->refs[index] = view->ref;
    device->name = xasprintf("%s/%u", view->ref.worker, view->ref.index);
    device->host = xstrdup(view->host);
    device->ran_out = view->memory_max > 0 && view->memory_max < view->device->memory_bytes;
    device->memory_bytes = device->ran_out ? view->memory_max : view->device->memory_bytes;
    device->library_bytes = view->device->library_bytes;
    device->own_memory = view->device->kind == HARDWARE_GPU;
    device->host_bytes = device->own_memory ? view->host_bytes : device->memory_bytes;
    fleet->slowdowns[index] = view->slowdown > 0 ? view->slowdown : 1;
    if (view->crowded && view->device->kind == HARDWARE_CPU && view->device->cpuset)
        device->cores = xstrdup(view->device->cpuset);
    profile_slow_down(&profile, fleet->slowdowns[index]);
    if (view->network.seconds_per_byte > 0)
        fleet_set_network(&profile, view->device->kind, &view->network, view->network_cards);
    device->host_network = view->host_network;
    device->profile = fleet_share_profile(fleet, &profile);
}

/* How many ranks of other jobs compute on the view's cores. Of a free one, those that have another
 * device of the fleet are of the job itself. A measured slowdown includes them. */
static double device_count_others(const struct device_view *views, size_t count, size_t at)
{
    double others = views[at].busy;
    if (views[at].slowdown > 1 || !(others > 0))
        return 0;
    for (size_t i = 0; i < count && !views[at].holder[0]; i++)
        if (i != at && views[i].holder[0] && strcmp(views[i].host, views[at].host) == 0)
            others -= hardware_overlap(views[at].device->cpuset, views[i].device->cpuset);
    return others > 0 ? others : 0;
}

/* Adjacent devices of a fleet, which are a host's. */
struct fleet_host {
    size_t first, count;
    double pace; /* seconds per flop, the mean over its devices */
    const struct planner_device *devices;
};

/* By what devices are: memory, speed, links; never by their names or places. */
static int compare_devices(const struct planner_device *a, const struct planner_device *b)
{
    const struct profile *pa = a->profile, *pb = b->profile;
    const double figures[][2] = {{(double)b->memory_bytes, (double)a->memory_bytes},
                                 {pa->seconds_per_flop, pb->seconds_per_flop},
                                 {pa->seconds_per_byte, pb->seconds_per_byte},
                                 {pa->host.seconds_per_byte, pb->host.seconds_per_byte},
                                 {pa->network.seconds_per_byte, pb->network.seconds_per_byte},
                                 {pa->network.latency_s, pb->network.latency_s}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (figures[i][0] != figures[i][1])
            return figures[i][0] < figures[i][1] ? -1 : 1;
    return 0;
}

/* Equal devices of a host stay in its own order, in which neighbours are close. */
static int order_devices(const void *left, const void *right, void *devices)
{
    const struct planner_device *all = devices;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int order = compare_devices(&all[a], &all[b]);
    return order ? order : a < b ? -1 : 1;
}

/* Fast ones first, then those that have more; of equal ones, names decide, or plans of one cluster
 * would change with the order in which its nodes are told. */
static int order_hosts(const void *left, const void *right)
{
    const struct fleet_host *a = left, *b = right;
    if (a->pace != b->pace)
        return a->pace < b->pace ? -1 : 1;
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = compare_devices(&a->devices[i], &b->devices[i]);
        if (order)
            return order;
    }
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->devices->host, b->devices->host);
}

/* `from`: the index of each device in the order to have. */
static void fleet_reorder(struct fleet *fleet, const size_t *from)
{
    struct fleet sorted = {
        .devices = xcalloc(fleet->count, sizeof *sorted.devices),
        .refs = xcalloc(fleet->count, sizeof *sorted.refs),
        .slowdowns = xcalloc(fleet->count, sizeof *sorted.slowdowns),
    };
    for (size_t i = 0; i < fleet->count; i++) {
        sorted.devices[i] = fleet->devices[from[i]];
        sorted.refs[i] = fleet->refs[from[i]];
        sorted.slowdowns[i] = fleet->slowdowns[from[i]];
    }
    free(fleet->devices);
    free(fleet->refs);
    free(fleet->slowdowns);
    fleet->devices = sorted.devices;
    fleet->refs = sorted.refs;
    fleet->slowdowns = sorted.slowdowns;
}

/* The hosts of the fleet, whose devices are adjacent; to be freed. */
static struct fleet_host *fleet_hosts(const struct fleet *fleet, size_t *count)
{
    struct fleet_host *hosts = xcalloc(fleet->count, sizeof *hosts);
    *count = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct planner_device *device = &fleet->devices[i];
        if (i == 0 || strcmp(device->host, fleet->devices[i - 1].host) != 0)
            hosts[(*count)++] = (struct fleet_host){.first = i, .devices = device};
        hosts[*count - 1].count++;
        hosts[*count - 1].pace += device->profile->seconds_per_flop;
    }
    for (size_t h = 0; h < *count; h++)
        hosts[h].pace /= (double)hosts[h].count;
    return hosts;
}

/* A plan on fewer devices uses the first of them, and its stages follow their order, so fast hosts
 * come first. Where nodes stand in a file, or when they joined, changes nothing. */
static void fleet_sort(struct fleet *fleet)
{
    size_t *from = xcalloc(fleet->count, sizeof *from), count, used = 0;
    struct fleet_host *hosts = fleet_hosts(fleet, &count);
    for (size_t i = 0; i < fleet->count; i++)
        from[i] = i;
    for (size_t h = 0; h < count; h++)
        qsort_r(&from[hosts[h].first], hosts[h].count, sizeof *from, order_devices, fleet->devices);
    fleet_reorder(fleet, from);
    for (size_t h = 0; h < count; h++)
        hosts[h].devices = &fleet->devices[hosts[h].first];
    qsort(hosts, count, sizeof *hosts, order_hosts);
    for (size_t h = 0; h < count; h++)
        for (size_t i = 0; i < hosts[h].count; i++)
            from[used++] = hosts[h].first + i;
    fleet_reorder(fleet, from);
    free(hosts);
    free(from);
}

/* Devices of a host become adjacent, whatever is between them. */
int fleet_open(struct fleet *fleet, const struct device_view *views, size_t count,
               enum planning_cost cost, struct error *err)
{
    *fleet = (struct fleet){
        .devices = xcalloc(count, sizeof *fleet->devices),
        .refs = xcalloc(count, sizeof *fleet->refs),
        .slowdowns = xcalloc(count, sizeof *fleet->slowdowns),
        .profiles = xcalloc(count, sizeof *fleet->profiles),
    };
    bool *taken = xcalloc(count, sizeof *taken);
    struct profile *profiles;
    int rc = fleet_find_profiles(views, count, cost, &profiles, err);
    for (size_t first = 0; first < count && rc == 0; first++) {
        if (taken[first])
            continue;
        for (size_t i = first; i < count; i++) {
            if (strcmp(views[i].host, views[first].host) != 0)
                continue;
            taken[i] = true;
            fleet_add(fleet, &views[i], profiles[i]);
            fleet->devices[fleet->count - 1].others = device_count_others(views, count, i);
        }
    }
    free(taken);
    free(profiles);
    if (rc == 0)
        fleet_sort(fleet);
    return rc;
}

size_t fleet_find(const struct fleet *fleet, const char *name)
{
    size_t i = 0;
    while (i < fleet->count && strcmp(fleet->devices[i].name, name) != 0)
        i++;
    return i;
}
