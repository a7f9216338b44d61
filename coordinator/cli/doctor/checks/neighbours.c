/* neighbours.c - other workers of this machine that offer the same cores or devices. */
#include "coordinator/cli/doctor/visit.h"

#include <stdlib.h>
#include <string.h>

/* The next span of "0-3,8"; false: there is none. */
static bool next_span(const char **list, unsigned long *first, unsigned long *last)
{
    char *end;
    if (**list == ',')
        ++*list;
    *first = *last = strtoul(*list, &end, 10);
    if (end == *list)
        return false;
    if (*end == '-')
        *last = strtoul(end + 1, &end, 10);
    *list = end;
    return true;
}

static bool overlap(const char *a, const char *b)
{
    unsigned long first, last, low, high;
    while (next_span(&a, &first, &last))
        for (const char *rest = b; next_span(&rest, &low, &high);)
            if (first <= high && low <= last)
                return true;
    return false;
}

/* A device of the report that the other offers as well, or NULL. */
static const struct hardware_device *find_common(const struct hardware_report *report,
                                                 const Gimbal__HardwareReport *other)
{
    for (size_t i = 0; i < report->device_count; i++)
        for (size_t k = 0; report->devices[i].id && k < other->n_devices; k++)
            if (strcmp(report->devices[i].id, other->devices[k]->id) == 0)
                return &report->devices[i];
    return NULL;
}

static bool compare(const struct visit *visit, const Gimbal__NodeStatus *node, struct findings *out)
{
    const struct hardware_device *device = find_common(visit->report, node->hardware);
    if (device)
        finding_block(out, "only one worker per device: set CUDA_VISIBLE_DEVICES for each",
                      "node '%s' on this machine offers %s, too", node->name, device->id);
    else if (overlap(visit->report->cpuset, node->hardware->cpuset))
        finding_warn(out, "cores of its own for each worker: --share K/N or --cpuset",
                     "node '%s' on this machine offers cores %s, and this one %s: ranks wait for "
                     "each other in every step",
                     node->name, node->hardware->cpuset, visit->report->cpuset);
    else
        return false;
    return true;
}

static void look(void *scene, struct findings *out)
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
        found += compare(visit, node, out);
    }
    if (others == 0)
        finding_ok(out, "no other node is on this machine");
    else if (found == 0)
        finding_ok(out, "%zu other node%s on this machine, with cores of their own", others,
                   others == 1 ? " is" : "s are");
}

const struct doctor_check visit_neighbours = {
    .name = "neighbours",
    .about = "other workers on this machine",
    .cb = look,
};
