/* cluster_file.h - the cluster file: nodes, their devices and links, for planning without machines.
 *
 *     apiVersion: gimbal/v1
 *     kind: Cluster
 *     nodes:
 *       - {name: a100, count: 2, devices: {kind: gpu, count: 8, memory: 40GiB, flops: 19.5TFLOP/s,
 *          flops_bf16: 312TFLOP/s, bandwidth: 1555GB/s}}
 *     links:
 *       host: {bandwidth: 300GB/s, latency: 5us}
 *       network: {bandwidth: 12.5GB/s, latency: 10us}
 *
 * Rates of devices are peaks; kernels reach the share `efficiency` of them. The bandwidth of a link
 * is what one device can send to others: inside a node (host), and between nodes (network). */
#ifndef COORDINATOR_PLANNING_CLUSTER_FILE_H
#define COORDINATOR_PLANNING_CLUSTER_FILE_H

#include "common/base/error.h"
#include "common/config/fields.h"

#include <stddef.h>
#include <stdint.h>

enum cluster_kind { CLUSTER_CPU, CLUSTER_GPU };

/* A number of equal devices in a node. */
struct cluster_devices {
    enum cluster_kind kind;
    char *model; /* "RTX TITAN", for people; NULL: not given */
    int64_t count;
    uint64_t memory;   /* bytes per device */
    double flops;      /* peak in f32, operations per second */
    double flops_bf16; /* the same in bf16; 0: not given */
    double bandwidth;  /* peak of its memory, bytes per second */
    double efficiency; /* the share of the peaks that kernels reach */
};

struct cluster_link {
    double bandwidth; /* bytes per second; 0: not given */
    double latency;   /* seconds per message */
    int64_t cards;    /* network only: network cards per node; 0: not given */
};

struct cluster_links {
    struct cluster_link host, network;
};

struct cluster_node {
    char *name;
    int64_t count;              /* equal nodes: NAME-0, NAME-1, ...; with 1 just NAME */
    struct sections devices;    /* of struct cluster_devices */
    struct cluster_links links; /* where given, these replace the cluster's */
};

struct cluster_config {
    int api_version, kind; /* always 0: there is one version and one kind */
    struct sections nodes; /* of struct cluster_node */
    struct cluster_links links;
};

/* Parse `size` bytes of text; errors call it `name`. -EINVAL with name:line:column, key, value and
 * what would be right. On success every link that is needed has a bandwidth, from the node or the
 * cluster, and the names of nodes are distinct. */
int cluster_config_parse(const char *text, size_t size, const char *name,
                         struct cluster_config **out, struct error *err);
/* Accepts NULL. */
void cluster_config_destroy(struct cluster_config *cluster);

/* Borrowed from the configuration. */
const struct cluster_node *cluster_node(const struct cluster_config *cluster, size_t index);
const struct cluster_devices *cluster_devices(const struct cluster_node *node, size_t index);
/* The links of a node: its own where given, else the cluster's. */
struct cluster_links cluster_node_links(const struct cluster_config *cluster,
                                        const struct cluster_node *node);

/* The table of all keys, for help texts and tests. */
extern const struct field cluster_config_fields[];

#endif
