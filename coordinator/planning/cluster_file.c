/* cluster_file.c - the table of the cluster file's keys, and the checks that span several keys. */
#include "coordinator/planning/cluster_file.h"

#include "common/base/memory.h"
#include "common/config/document.h"
#include "common/hardware/hardware.h"
#include "common/plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 64

static const char *const versions[] = {"gimbal/v1", NULL};
static const char *const kinds[] = {"Cluster", NULL};
static const char *const device_kinds[] = {"cpu", "gpu", NULL};

static const struct field link_fields[] = {
    {FIELD(cluster_link, bandwidth, FIELD_BANDWIDTH), .required = true, .least = 1e3,
     .greatest = 1e15, .about = "how fast one device can send to the others"},
    {FIELD(cluster_link, latency, FIELD_DURATION), .required = true, .above = true, .greatest = 60,
     .about = "how long a message takes, however short"},
    {.key = NULL},
};

static const struct field network_fields[] = {
    {FIELD(cluster_link, bandwidth, FIELD_BANDWIDTH), .required = true, .least = 1e3,
     .greatest = 1e15, .about = "of one network card"},
    {FIELD(cluster_link, latency, FIELD_DURATION), .required = true, .above = true, .greatest = 60,
     .about = "of one message"},
    {FIELD(cluster_link, cards, FIELD_INTEGER), .least = 1, .greatest = HARDWARE_DEVICES_MAX,
     .unit = "cards",
     .about = "of each node, shared by the transfers of its devices; 1 unless given"},
    {.key = NULL},
};

static const struct field links_fields[] = {
    {FIELD(cluster_links, host, FIELD_SECTION), .fields = link_fields,
     .about = "links between the devices of a node"},
    {FIELD(cluster_links, network, FIELD_SECTION), .fields = network_fields,
     .about = "links between nodes"},
    {.key = NULL},
};

static const struct field devices_fields[] = {
    {FIELD(cluster_devices, kind, FIELD_CHOICE), .required = true, .words = device_kinds,
     .about = "what its kernels are priced as"},
    {FIELD(cluster_devices, model, FIELD_TEXT), .about = "its name, for readers"},
    {FIELD(cluster_devices, count, FIELD_INTEGER), .standard = "1", .least = 1,
     .greatest = HARDWARE_DEVICES_MAX, .unit = "devices",
     .about = "how many there are like this one"},
    {FIELD(cluster_devices, memory, FIELD_SIZE), .required = true, .least = 0x1p20,
     .greatest = 0x1p50, .about = "the memory of each"},
    {FIELD(cluster_devices, flops, FIELD_FLOPS), .required = true, .least = 1e6, .greatest = 1e18,
     .about = "the peak speed of each, in f32"},
    {FIELD(cluster_devices, flops_bf16, FIELD_FLOPS), .least = 1e6, .greatest = 1e18,
     .about = "the peak speed of each in bf16; unless given, bf16 is priced as f32"},
    {FIELD(cluster_devices, bandwidth, FIELD_BANDWIDTH), .required = true, .least = 1e6,
     .greatest = 1e15, .about = "the peak memory bandwidth of each"},
    {FIELD(cluster_devices, efficiency, FIELD_REAL), .standard = "0.5", .above = true,
     .greatest = 1, .unit = FIELD_NO_UNIT, .about = "the share of both peaks that kernels reach"},
    {.key = NULL},
};

static const struct field node_fields[] = {
    {FIELD(cluster_node, name, FIELD_TEXT), .required = true,
     .about = "the node's name; if there are several, NAME-0, NAME-1 and so on"},
    {FIELD(cluster_node, count, FIELD_INTEGER), .standard = "1", .least = 1,
     .greatest = PLAN_RANKS_MAX, .unit = "nodes", .about = "how many there are like this one"},
    {FIELD(cluster_node, devices, FIELD_SECTIONS), .required = true, .fields = devices_fields,
     .size = sizeof(struct cluster_devices), .greatest = 16,
     .about = "the devices of one node, of one kind or several"},
    {FIELD(cluster_node, links, FIELD_SECTION), .fields = links_fields,
     .about = "the links of this node, instead of the cluster's"},
    {.key = NULL},
};

const struct field cluster_config_fields[] = {
    {.key = "apiVersion",
     .kind = FIELD_CHOICE,
     .required = true,
     .words = versions,
     .about = "the version of this file's format",
     .offset = offsetof(struct cluster_config, api_version)},
    {FIELD(cluster_config, kind, FIELD_CHOICE), .required = true, .words = kinds,
     .about = "what the file describes"},
    {FIELD(cluster_config, nodes, FIELD_SECTIONS), .required = true, .fields = node_fields,
     .size = sizeof(struct cluster_node), .greatest = 1024,
     .about = "the machines, with their devices"},
    {FIELD(cluster_config, links, FIELD_SECTION), .fields = links_fields,
     .about = "how fast devices send to each other"},
    {.key = NULL},
};

const struct cluster_node *cluster_node(const struct cluster_config *cluster, size_t index)
{
    return (const struct cluster_node *)cluster->nodes.items + index;
}

const struct cluster_devices *cluster_devices(const struct cluster_node *node, size_t index)
{
    return (const struct cluster_devices *)node->devices.items + index;
}

struct cluster_links cluster_node_links(const struct cluster_config *cluster,
                                        const struct cluster_node *node)
{
    struct cluster_links links = cluster->links;
    if (node->links.host.bandwidth > 0)
        links.host = node->links.host;
    if (node->links.network.bandwidth > 0)
        links.network = node->links.network;
    return links;
}

static int64_t count_devices(const struct cluster_node *node)
{
    int64_t count = 0;
    for (size_t i = 0; i < node->devices.count; i++)
        count += cluster_devices(node, i)->count;
    return count;
}

/* Is b named like one of the nodes that a stands for, as "titan-1" when a is 4 nodes "titan"? */
static bool is_numbered(const struct cluster_node *a, const struct cluster_node *b)
{
    size_t length = strlen(a->name);
    if (a->count == 1 || b->count > 1 || strncmp(a->name, b->name, length) != 0 ||
        b->name[length] != '-')
        return false;
    char number[32];
    long long index = strtoll(b->name + length + 1, NULL, 10);
    snprintf(number, sizeof number, "%lld", index);
    return strcmp(number, b->name + length + 1) == 0 && index >= 0 && index < a->count;
}

static bool clash(const struct cluster_node *a, const struct cluster_node *b)
{
    return strcmp(a->name, b->name) == 0 || is_numbered(a, b) || is_numbered(b, a);
}

static int check_name(const struct cluster_config *cluster, size_t index, const char *path,
                      const struct document *document, struct error *err)
{
    const struct cluster_node *node = cluster_node(cluster, index);
    char longest[2 * HARDWARE_NAME_SIZE];
    snprintf(longest, sizeof longest, "%.64s-%" PRId64, node->name, node->count - 1);
    if (!text_is_name(node->count > 1 ? longest : node->name))
        return document_fail_at(document, path, err,
                                "'%.100s' cannot be a name: write at most %d letters, digits, '-', "
                                "'_' and '.', the first a letter or digit, and the number of the "
                                "node among them",
                                node->name, HARDWARE_NAME_SIZE - 1);
    for (size_t i = 0; i < index; i++)
        if (clash(cluster_node(cluster, i), node))
            return document_fail_at(document, path, err,
                                    "'%s' is the name of a node of nodes[%zu] too: write another, "
                                    "or count there",
                                    node->name, i);
    return 0;
}

/* Check that every link that messages may use is given. */
static int check_links(const struct cluster_config *cluster, size_t index, bool alone,
                       const struct document *document, struct error *err)
{
    const struct cluster_node *node = cluster_node(cluster, index);
    struct cluster_links links = cluster_node_links(cluster, node);
    if (count_devices(node) > 1 && links.host.bandwidth == 0)
        return document_fail_at(document, "links.host", err,
                                "missing: node '%s' has several devices: write their {bandwidth, "
                                "latency} here or in nodes[%zu].links",
                                node->name, index);
    if (!alone && links.network.bandwidth == 0)
        return document_fail_at(document, "links.network", err,
                                "missing: there are several nodes: write the {bandwidth, latency} "
                                "of '%s' here or in nodes[%zu].links",
                                node->name, index);
    return 0;
}

static int check(const struct cluster_config *cluster, const struct document *document,
                 struct error *err)
{
    int64_t devices = 0;
    if (cluster->nodes.count == 0)
        return document_fail_at(document, "nodes", err, "names no node: write at least one");
    bool alone = cluster->nodes.count == 1 && cluster_node(cluster, 0)->count == 1;
    for (size_t i = 0; i < cluster->nodes.count; i++) {
        const struct cluster_node *node = cluster_node(cluster, i);
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "nodes[%zu].devices", i);
        devices += node->count * count_devices(node);
        if (count_devices(node) < 1 || count_devices(node) > HARDWARE_DEVICES_MAX)
            return document_fail_at(document, path, err, "%" PRId64 " devices: a node has 1 to %u",
                                    count_devices(node), HARDWARE_DEVICES_MAX);
        if (devices > PLAN_RANKS_MAX)
            return document_fail_at(document, path, err,
                                    "with these there are %" PRId64 " devices, at most %d are "
                                    "planned for",
                                    devices, PLAN_RANKS_MAX);
        snprintf(path, sizeof path, "nodes[%zu].name", i);
        int rc = check_name(cluster, i, path, document, err);
        if (rc == 0)
            rc = check_links(cluster, i, alone, document, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int cluster_config_parse(const char *text, size_t size, const char *name,
                         struct cluster_config **out, struct error *err)
{
    struct document *document;
    int rc = document_parse(text, size, name, &document, err);
    if (rc < 0)
        return rc;
    struct cluster_config *cluster = xcalloc(1, sizeof *cluster);
    rc = fields_read(cluster_config_fields, document, cluster, err);
    if (rc == 0)
        rc = check(cluster, document, err);
    document_destroy(document);
    if (rc < 0) {
        cluster_config_destroy(cluster);
        return rc;
    }
    *out = cluster;
    return 0;
}

void cluster_config_destroy(struct cluster_config *cluster)
{
    if (!cluster)
        return;
    fields_clear(cluster_config_fields, cluster);
    free(cluster);
}
