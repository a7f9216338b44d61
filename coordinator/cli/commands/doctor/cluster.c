/* cluster.c - checks of what the coordinator tells a user: its nodes, their releases, and the state
 * of this one; other workers of this machine that offer the same cores or devices; and devices that
 * offer less memory than others of their model, because something else was holding the rest when
 * their worker measured them. */
#include "coordinator/cli/commands/doctor/doctor.h"
#include "coordinator/cli/exit.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/config/folders.h"
#include "common/message/message.h"

#include <stdlib.h>
#include <string.h>

/* Whether the caller was told where the cluster is; if not, there need not be one. */
static bool cluster_is_told(const struct visit *visit)
{
    const struct common *common = &visit->invocation->common;
    return common->address || common->tls || getenv("GIMBAL_ADDRESS") || getenv("GIMBAL_TLS") ||
           visit->pairs;
}

static void cluster_look_at_own(const struct visit *visit, struct findings *out)
{
    const Gimbal__NodeStatus *own = visit_own(visit);
    if (!visit->node)
        return;
    if (!own)
        finding_ok(out, "node '%s' is not in the cluster yet", visit->node);
    else if (own->state == GIMBAL__NODE_STATUS__STATE__ALIVE)
        finding_ok(out, "node '%s' is in the cluster and alive", own->name);
    else if (own->state == GIMBAL__NODE_STATUS__STATE__DRAINING ||
             own->state == GIMBAL__NODE_STATUS__STATE__DRAINED)
        finding_warn(out, "'gimbal undrain' if it is to get jobs again",
                     "node '%s' was drained, and gets no jobs: %s", own->name, own->reason);
    else
        finding_warn(out, "start its worker, and read its log",
                     "the coordinator has not heard of node '%s' for %.0f s%s%s", own->name,
                     (double)own->heartbeat_age_ms / 1000, *own->reason ? ": " : "", own->reason);
}

static void cluster_look_at_releases(const struct visit *visit, struct findings *out)
{
    size_t others = 0;
    const Gimbal__NodeStatus *first = NULL;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        if (!visit_is_alive(node) || strcmp(node->hardware->release, GIMBAL_VERSION) == 0)
            continue;
        first = first ? first : node;
        others++;
    }
    if (first)
        finding_warn(
            out, "the same release on every machine",
            "%zu node%s not of this release, %s, such as '%s' of %s: a rank refuses a plan "
            "that it lowers to another program",
            others, others == 1 ? " is" : "s are", GIMBAL_VERSION, first->name,
            *first->hardware->release ? first->hardware->release : "none that it names");
}

static void cluster_tell(const struct visit *visit, struct findings *out)
{
    size_t alive = 0;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++)
        alive += visit_is_alive(visit->nodes->nodes[i]);
    finding_ok(out, "%s answers; of %zu node%s %zu %s alive",
               client_address(&visit->invocation->common), visit->nodes->n_nodes,
               visit->nodes->n_nodes == 1 ? "" : "s", alive, alive == 1 ? "is" : "are");
    cluster_look_at_releases(visit, out);
    cluster_look_at_own(visit, out);
}

static void check_cluster(void *scene, struct findings *out)
{
    struct visit *visit = scene;
    const struct common *common = &visit->invocation->common;
    Gimbal__ListNodesReply *reply;
    struct error err = {""};
    if (client_role(common) == CLIENT_WORKER)
        return; /* not a user, and only users may ask */
    int code = client_list_nodes_once(common, &reply, &err);
    if (code == EXIT_DONE) {
        visit->nodes = reply;
        cluster_tell(visit, out);
    } else if (cluster_is_told(visit)) {
        finding_block(out, "a user's --address and --tls, or GIMBAL_ADDRESS and GIMBAL_TLS", "%s",
                      err.text);
    }
}

const struct doctor_check doctor_cluster = {
    .name = "cluster",
    .about = "the coordinator and its nodes, as a user sees them",
    .cb = check_cluster,
};

/* Whether what a node was told to leave in the folder is here. */
static bool saving_has_mark(const char *root, const Gimbal__NodeStatus *node)
{
    char *path = node_mark_path(root, node->name), *text = NULL;
    bool there = file_read(path, &text, NULL) == 0 && strcmp(text, node->mark) == 0;
    free(text);
    free(path);
    return there;
}

/* What one node writes the others have to read. */
static void saving_compare(const struct visit *visit, struct findings *out)
{
    const Gimbal__ListNodesReply *nodes = visit->nodes;
    const Gimbal__NodeStatus *first = NULL;
    size_t alive = 0, missing = 0;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        if (!visit_is_alive(nodes->nodes[i]))
            continue;
        alive++;
        if (saving_has_mark(nodes->checkpoints, nodes->nodes[i]))
            continue;
        missing++;
        first = first ? first : nodes->nodes[i];
    }
    if (first)
        finding_block(out, "one folder that all nodes share, such as on a network file system",
                      "%s: what %zu of %zu nodes have written there is not here, such as what "
                      "'%s' has: a job on several of them cannot be saved",
                      nodes->checkpoints, missing, alive, first->name);
    else
        finding_ok(out, "%s: what %zu node%s written there is here", nodes->checkpoints, alive,
                   alive == 1 ? " has" : "s have");
}

static void check_checkpoints(void *scene, struct findings *out)
{
    const struct visit *visit = scene;
    if (!visit->nodes)
        return;
    if (!*visit->nodes->checkpoints)
        finding_warn(out, "'checkpoints' in the coordinator's settings: a folder that they share",
                     "jobs whose file names no checkpoint.dir are not saved, and their models are "
                     "lost when they end");
    else if (visit_own(visit) && visit_folder("checkpoints", visit->nodes->checkpoints, out))
        saving_compare(visit, out);
}

const struct doctor_check doctor_checkpoints = {
    .name = "checkpoints",
    .about = "the folder that jobs are saved in which name none, and whether nodes share it",
    .cb = check_checkpoints,
};

/* A device of the report that the other offers as well, or NULL. */
static const struct hardware_device *neighbours_find_common(const struct hardware_report *report,
                                                            const Gimbal__HardwareReport *other)
{
    for (size_t i = 0; i < report->device_count; i++)
        for (size_t k = 0; report->devices[i].id && k < other->n_devices; k++)
            if (strcmp(report->devices[i].id, other->devices[k]->id) == 0)
                return &report->devices[i];
    return NULL;
}

static bool neighbours_compare(const struct visit *visit, const Gimbal__NodeStatus *node,
                               struct findings *out)
{
    const struct hardware_device *device = neighbours_find_common(visit->report, node->hardware);
    if (device)
        finding_block(out, "only one worker per device: set CUDA_VISIBLE_DEVICES for each",
                      "node '%s' on this machine offers %s, too", node->name, device->id);
    else if (hardware_overlap(visit->report->cpuset, node->hardware->cpuset) > 0)
        finding_warn(out, "cores of its own for each worker: --share K/N or --cpuset",
                     "node '%s' on this machine offers cores %s, and this one %s: ranks wait for "
                     "each other in every step",
                     node->name, node->hardware->cpuset, visit->report->cpuset);
    else
        return false;
    return true;
}

static void check_neighbours(void *scene, struct findings *out)
{
    const struct visit *visit = scene;
    size_t others = 0, found = 0;
    if (!visit->nodes || !visit->report)
        return;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        if (!visit_is_alive(node) || strcmp(node->name, visit->report->node) == 0 ||
            strcmp(node->hardware->host_id, visit->report->host) != 0)
            continue;
        others++;
        found += neighbours_compare(visit, node, out);
    }
    if (others == 0)
        finding_ok(out, "no other node is on this machine");
    else if (found == 0)
        finding_ok(out, "%zu other node%s on this machine, with cores of their own", others,
                   others == 1 ? " is" : "s are");
}

const struct doctor_check doctor_neighbours = {
    .name = "neighbours",
    .about = "other workers on this machine",
    .cb = check_neighbours,
};

#define SHARE_LEAST 0.9

static bool devices_is_like(const Gimbal__Device *a, const Gimbal__Device *b)
{
    return a->kind == GIMBAL__DEVICE__KIND__GPU && b->kind == a->kind &&
           strcmp(a->name, b->name) == 0;
}

/* The most that any device of its model offers in the cluster. */
static uint64_t devices_most_of(const struct visit *visit, const Gimbal__Device *device)
{
    uint64_t most = 0;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        for (size_t k = 0; visit_is_alive(node) && k < node->hardware->n_devices; k++) {
            const Gimbal__Device *other = node->hardware->devices[k];
            if (devices_is_like(device, other) && other->memory_bytes > most)
                most = other->memory_bytes;
        }
    }
    return most;
}

static void check_devices(void *scene, struct findings *out)
{
    const struct visit *visit = scene;
    char here[32], there[32];
    for (size_t i = 0; visit->nodes && i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        for (size_t k = 0; visit_is_alive(node) && k < node->hardware->n_devices; k++) {
            const Gimbal__Device *device = node->hardware->devices[k];
            uint64_t most = devices_most_of(visit, device);
            if ((double)device->memory_bytes >= SHARE_LEAST * (double)most)
                continue;
            finding_warn(
                out, "end what holds it (nvidia-smi on that node shows it), and restart its worker",
                "%s/%u, %s, offers %s, while others of its model offer %s", node->name,
                device->index, device->name,
                units_print_bytes(here, sizeof here, (double)device->memory_bytes),
                units_print_bytes(there, sizeof there, (double)most));
        }
    }
}

const struct doctor_check doctor_devices = {
    .name = "held",
    .about = "device memory that other programs hold",
    .cb = check_devices,
};
