/* cluster.h - the cluster file: nodes, their devices and links, for planning without machines.
 *
 *     apiVersion: gimbal/v1
 *     kind: Cluster
 *     nodes:
 *       - {name: a100, count: 2, devices: {kind: gpu, count: 8, memory: 40GiB, flops: 19.5TFLOP/s,
 *          bandwidth: 1555GB/s}}
 *     links:
 *       host: {bandwidth: 300GB/s, latency: 5us}
 *       network: {bandwidth: 12.5GB/s, latency: 10us}
 *
 * Rates of devices are peaks, of which kernels reach the share `efficiency`. A link's rate is what
 * one device sends to others at a time: inside a node (host), and between nodes (network). */
#ifndef COMMON_CONFIG_CLUSTER_H
#define COMMON_CONFIG_CLUSTER_H

#include "common/base/error.h"
#include "common/config/fields.h"

#include <stddef.h>
#include <stdint.h>

enum cluster_kind { CLUSTER_CPU, CLUSTER_GPU };

/* Equal devices of a node. */
struct cluster_devices {
    enum cluster_kind kind;
    char *model; /* "RTX TITAN", for people; NULL: not told */
    int64_t count;
    uint64_t memory;   /* bytes of each */
    double flops;      /* peak, operations per second */
    double bandwidth;  /* peak, bytes of its memory per second */
    double efficiency; /* share of the peaks that kernels reach */
};

struct cluster_link {
    double bandwidth; /* bytes per second; 0: not given */
    double latency;   /* seconds of one message */
    int64_t cards;    /* of the network: how many a node has; 0: not given */
};

struct cluster_links {
    struct cluster_link host, network;
};

struct cluster_node {
    char *name;
    int64_t count;              /* nodes like this one: NAME-0, NAME-1, ...; 1: NAME */
    struct sections devices;    /* struct cluster_devices */
    struct cluster_links links; /* its own, in place of the cluster's */
};

struct cluster_config {
    int api_version, kind; /* indices of the only ones there are */
    struct sections nodes; /* struct cluster_node */
    struct cluster_links links;
};

/* Read size bytes of text, which errors call name. -EINVAL with name:line:column, key, value and
 * what would be right. After 0 every link that is needed has a bandwidth, in the node or in the
 * cluster, and names of nodes are unlike. */
int cluster_config_parse(const char *text, size_t size, const char *name,
                         struct cluster_config **out, struct error *err);
/* NULL is fine. */
void cluster_config_destroy(struct cluster_config *cluster);

/* Lent. */
const struct cluster_node *cluster_node(const struct cluster_config *cluster, size_t index);
const struct cluster_devices *cluster_devices(const struct cluster_node *node, size_t index);
/* The node's links where it gives them, else the cluster's. */
struct cluster_links cluster_node_links(const struct cluster_config *cluster,
                                        const struct cluster_node *node);

/* The table behind it all, for help texts and tests. */
extern const struct field cluster_config_fields[];

#endif
