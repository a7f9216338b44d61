/* devices.c - what the worker would offer, found in the same way as the worker does. */
#include "worker/doctor/machine.h"

#include "common/base/units.h"
#include "worker/daemon/offer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void look(void *scene, struct findings *out)
{
    struct machine *machine = scene;
    struct error err;
    char memory[32];
    if (access(machine->shim, X_OK) < 0) {
        finding_block(out, "install it beside gimbal-worker", "%s: %s", machine->shim,
                      strerror(errno));
        return;
    }
    if (offer_look(machine->settings, machine->shim, machine->executor, machine->stop_fd,
                   &machine->report, &err) < 0) {
        finding_block(out,
                      "settings that fit this machine; try them with 'gimbal-worker --dry-run'",
                      "%s", err.text);
        return;
    }
    const struct hardware_report *report = machine->report;
    finding_ok(out, "%zu device%s, %s%s, on %u core%s (%s) with %s", report->device_count,
               report->device_count == 1 ? "" : "s", report->device_count == 1 ? "" : "the first ",
               report->devices[0].name, report->cores, report->cores == 1 ? "" : "s",
               report->cpuset,
               units_print_bytes(memory, sizeof memory, (double)report->memory_bytes));
}

const struct doctor_check check_devices = {
    .name = "devices",
    .about = "what the worker would offer",
    .cb = look,
};
