/* links.c - with --pairs: the links that workers have measured between their own devices, as the
 * coordinator has them, and the round trips from here to every other node. Each is compared with
 * the median of its level, and outliers are reported.
 *
 * No worker listens while it has no job, so the bandwidth between nodes is known only once a job
 * has measured it. But a node's kernel answers, and tells whether ranks could be reached there. */
#include "coordinator/cli/commands/doctor/links.h"
#include "coordinator/cli/commands/doctor/doctor.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/doctor/reach.h"
#include "common/profile/profile.h"
#include "coordinator/telemetry/measured.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAR 2.0
#define LATENCY_NOISE_S 100e-6 /* variation of any round trip on a busy processor */

static bool links_is_peer(const struct link_figure *a, const struct link_figure *b)
{
    return strcmp(a->level, b->level) == 0 && strcmp(a->like, b->like) == 0;
}

static double links_latency_of(const struct link_figure *figure)
{
    return figure->latency_s;
}

static double links_bandwidth_of(const struct link_figure *figure)
{
    return figure->bytes_per_s;
}

/* The median of a value over the links of this level and model that have it. */
static double links_median_of(const struct link_figure *figures, size_t count,
                              const struct link_figure *of,
                              double (*value)(const struct link_figure *figure))
{
    double *values = xcalloc(count + 1, sizeof *values);
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (links_is_peer(&figures[i], of) && value(&figures[i]) > 0)
            values[known++] = value(&figures[i]);
    double middle = median(values, known);
    free(values);
    return middle;
}

double links_median_latency(const struct link_figure *figures, size_t count,
                            const struct link_figure *of)
{
    return links_median_of(figures, count, of, links_latency_of);
}

double links_median_bandwidth(const struct link_figure *figures, size_t count,
                              const struct link_figure *of)
{
    return links_median_of(figures, count, of, links_bandwidth_of);
}

static const char *links_print_link(char *out, size_t size, const struct link_figure *figure)
{
    if (strcmp(figure->from, figure->to) == 0)
        snprintf(out, size, "between the devices of %s", figure->from);
    else
        snprintf(out, size, "from %s to %s", figure->from, figure->to);
    return out;
}

static bool links_judge_one(const struct link_figure *figures, size_t count,
                            const struct link_figure *figure, struct findings *out)
{
    char where[160], own[32], others[32];
    double bandwidth = links_median_bandwidth(figures, count, figure);
    double latency = links_median_latency(figures, count, figure);
    bool slow = figure->bytes_per_s > 0 && figure->bytes_per_s * FAR < bandwidth;
    bool late = figure->latency_s > FAR * latency + LATENCY_NOISE_S;
    if (slow)
        finding_warn(out,
                     "check what else sends data there and how slots and ports are wired, then "
                     "restart the worker to measure again",
                     "%s/s %s, while half of such links have %s/s or more",
                     units_print_bytes(own, sizeof own, figure->bytes_per_s),
                     links_print_link(where, sizeof where, figure),
                     units_print_bytes(others, sizeof others, bandwidth));
    if (late)
        finding_warn(out, "check what else runs on that node, and the route to it",
                     "a message takes %s %s, while half of such links take %s or less",
                     units_print_seconds(own, sizeof own, figure->latency_s),
                     links_print_link(where, sizeof where, figure),
                     units_print_seconds(others, sizeof others, latency));
    return slow || late;
}

/* Whether no earlier link has its level and model. */
static bool links_is_first(const struct link_figure *figures, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (links_is_peer(&figures[i], &figures[index]))
            return false;
    return true;
}

static void links_judge_level(const struct link_figure *figures, size_t count, size_t first,
                              struct findings *out)
{
    const struct link_figure *of = &figures[first];
    size_t links = 0, found = 0;
    for (size_t i = first; i < count; i++)
        if (links_is_peer(&figures[i], of)) {
            links++;
            found += links_judge_one(figures, count, &figures[i], out);
        }
    if (found == 0)
        finding_ok(out, "%zu link%s %s nodes%s%s, none much slower than the others", links,
                   links == 1 ? "" : "s", of->level, *of->like ? " of " : "", of->like);
}

void links_judge(const struct link_figure *figures, size_t count, struct findings *out)
{
    for (size_t i = 0; i < count; i++)
        if (links_is_first(figures, i))
            links_judge_level(figures, count, i, out);
}

#define ROUNDS 5
#define TIMEOUT_MS 2000
#define PORT_STANDARD 60999

struct link_list {
    struct link_figure *items;
    size_t count, capacity;
};

static void links_add(struct link_list *list, struct link_figure figure)
{
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = figure;
}

/* The slowest link among the node's devices: all report the same, unless one was measured alone. */
static void links_add_within(struct link_list *list, const Gimbal__NodeStatus *node)
{
    struct link_figure figure = {.level = "within",
                                 .from = node->name,
                                 .to = node->name,
                                 .measured_unix_ms = node->hardware->measured_unix_ms};
    for (size_t i = 0; i < node->hardware->n_devices; i++) {
        const Gimbal__Device *device = node->hardware->devices[i];
        struct profile profile;
        if (!*device->profile_json || profile_decode(device->profile_json, &profile, NULL) < 0 ||
            !(profile.host.seconds_per_byte > 0))
            continue;
        double bandwidth = 1 / profile.host.seconds_per_byte;
        if (figure.bytes_per_s > 0 && bandwidth >= figure.bytes_per_s)
            continue;
        figure.like = device->name;
        figure.bytes_per_s = bandwidth;
        figure.latency_s = profile.host.latency_s;
    }
    if (figure.bytes_per_s > 0)
        links_add(list, figure);
}

/* The last port that ranks may get here: they listen where the kernel says. */
static uint16_t links_rank_port(void)
{
    unsigned first, last = PORT_STANDARD;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file && fscanf(file, "%u %u", &first, &last) != 2)
        last = PORT_STANDARD;
    if (file)
        fclose(file);
    return (uint16_t)last;
}

/* The best of some rounds: disturbances only make one slower. */
static int links_time_way(const char *address, uint16_t port, double *seconds, struct error *err)
{
    int rc = 0;
    *seconds = INFINITY;
    for (int round = 0; round < ROUNDS && rc == 0; round++) {
        struct reach reach;
        rc = reach_port(address, port, TIMEOUT_MS, &reach, err);
        if (rc == 0)
            *seconds = fmin(*seconds, reach.seconds);
    }
    return rc;
}

/* Bandwidth to other nodes as measured by jobs; 0: none has, so that the profile repeats what is
 * within the host. *like: the model of devices with memory of their own, which are compared only
 * with their like. */
static double links_bandwidth_between(const Gimbal__NodeStatus *node, const char **like)
{
    *like = "";
    for (size_t i = 0; i < node->hardware->n_devices; i++) {
        const Gimbal__Device *device = node->hardware->devices[i];
        struct profile profile;
        const char *text = device->profile_json;
        if (*text && profile_decode(text, &profile, NULL) == 0 &&
            profile.network.seconds_per_byte > 0 &&
            profile.network.seconds_per_byte != profile.host.seconds_per_byte) {
            *like = device->kind == GIMBAL__DEVICE__KIND__GPU ? device->name : "";
            return 1 / profile.network.seconds_per_byte;
        }
    }
    return 0;
}

static void links_add_between(const struct visit *visit, struct link_list *list,
                              const Gimbal__NodeStatus *node, struct findings *out)
{
    static uint16_t port;
    struct error err;
    double seconds;
    port = port ? port : links_rank_port();
    const char *here = visit->node ? visit->node : "here", *like;
    double bandwidth = links_bandwidth_between(node, &like);
    if (links_time_way(node->hardware->host_address, port, &seconds, &err) < 0)
        finding_block(out,
                      "a firewall that lets nodes reach each other's ports, or --host-address on "
                      "that node",
                      "ranks here could not reach node '%s': %s", node->name, err.text);
    else
        links_add(list, (struct link_figure){.level = "between",
                                             .like = like,
                                             .from = here,
                                             .to = node->name,
                                             .latency_s = seconds / 2,
                                             .bytes_per_s = bandwidth});
}

/* Workers of one machine reach each other over loopback, which says nothing about links. */
static bool links_is_elsewhere(const struct visit *visit, const Gimbal__NodeStatus *node)
{
    return !visit->report || strcmp(visit->report->host, node->hardware->host_id) != 0;
}

static json_t *links_list_to_json(const struct link_list *list)
{
    json_t *links = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct link_figure *figure = &list->items[i];
        double bandwidth = links_median_bandwidth(list->items, list->count, figure);
        json_array_append_new(
            links,
            json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:o, s:o, s:o}", "level", figure->level,
                      "like", figure->like, "from", figure->from, "to", figure->to, "latency_s",
                      figure->latency_s, "median_latency_s",
                      links_median_latency(list->items, list->count, figure), "bandwidth",
                      figure->bytes_per_s > 0 ? json_real(figure->bytes_per_s) : json_null(),
                      "median_bandwidth", bandwidth > 0 ? json_real(bandwidth) : json_null(),
                      "measured_unix_ms",
                      figure->measured_unix_ms ? json_integer((json_int_t)figure->measured_unix_ms)
                                               : json_null()));
    }
    return links;
}

static void check_links(void *scene, struct findings *out)
{
    struct visit *visit = scene;
    struct link_list list = {0};
    if (!visit->pairs || !visit->nodes)
        return;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++)
        if (visit_is_alive(visit->nodes->nodes[i]))
            links_add_within(&list, visit->nodes->nodes[i]);
    for (size_t i = 0; i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        if (visit_is_alive(node) && *node->hardware->host_address &&
            links_is_elsewhere(visit, node))
            links_add_between(visit, &list, node, out);
    }
    links_judge(list.items, list.count, out);
    if (list.count > 0 && list.items[list.count - 1].bytes_per_s == 0)
        finding_ok(out,
                   "the bandwidth to node '%s' is measured by the first job on it and another; "
                   "until then jobs are planned as if both were one machine",
                   list.items[list.count - 1].to);
    visit->links = links_list_to_json(&list);
    free(list.items);
}

const struct doctor_check doctor_links = {
    .name = "links",
    .about = "the links inside nodes, and from here to each node",
    .cb = check_links,
};
