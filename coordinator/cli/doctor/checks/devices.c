/* devices.c - devices that offer less memory than others of their model, because something else was
 * holding the rest when their worker measured them. */
#include "coordinator/cli/doctor/visit.h"

#include "common/base/units.h"

#include <string.h>

#define SHARE_LEAST 0.9

static bool is_like(const Gimbal__Device *a, const Gimbal__Device *b)
{
    return a->kind == GIMBAL__DEVICE__KIND__GPU && b->kind == a->kind &&
           strcmp(a->name, b->name) == 0;
}

/* The most that any device of its model offers in the cluster. */
static uint64_t most_of(const struct visit *visit, const Gimbal__Device *device)
{
    uint64_t most = 0;
    for (size_t i = 0; i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        for (size_t k = 0; visit_is_alive(node) && k < node->hardware->n_devices; k++) {
            const Gimbal__Device *other = node->hardware->devices[k];
            if (is_like(device, other) && other->memory_bytes > most)
                most = other->memory_bytes;
        }
    }
    return most;
}

static void look(void *scene, struct findings *out)
{
    const struct visit *visit = scene;
    char here[32], there[32];
    for (size_t i = 0; visit->nodes && i < visit->nodes->n_nodes; i++) {
        const Gimbal__NodeStatus *node = visit->nodes->nodes[i];
        for (size_t k = 0; visit_is_alive(node) && k < node->hardware->n_devices; k++) {
            const Gimbal__Device *device = node->hardware->devices[k];
            uint64_t most = most_of(visit, device);
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

const struct doctor_check visit_devices = {
    .name = "held",
    .about = "device memory that other programs hold",
    .cb = look,
};
