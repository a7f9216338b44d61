/* print.c - a report as one row of `gimbal nodes`. */
#include "common/hardware/hardware.h"

#include <string.h>

#include "common/base/units.h"

static const char row_format[] = "%-16s %-9s %6s %10s  %-24s %s\n";

const char *hardware_kind_name(enum hardware_kind kind)
{
    return kind == HARDWARE_GPU ? "gpu" : "cpu";
}

void hardware_print_header(FILE *out)
{
    fprintf(out, row_format, "NODE", "STATE", "CORES", "MEMORY", "DEVICES", "PROCESSOR");
}

/* "2 cpu x 4 cores", "8 gpu"; unequal CPU devices as "3 cpu x 2..4 cores". */
static void print_devices(const struct hardware_report *report, char *out, size_t size)
{
    unsigned cpus = 0, gpus = 0, least = 0, most = 0;
    for (size_t i = 0; i < report->device_count; i++) {
        const struct hardware_device *device = &report->devices[i];
        if (device->kind == HARDWARE_GPU) {
            gpus++;
            continue;
        }
        least = cpus == 0 || device->cores < least ? device->cores : least;
        most = device->cores > most ? device->cores : most;
        cpus++;
    }
    char cores[32] = "";
    if (cpus && least == most)
        snprintf(cores, sizeof cores, " x %u core%s", most, most == 1 ? "" : "s");
    else if (cpus)
        snprintf(cores, sizeof cores, " x %u..%u cores", least, most);
    if (cpus && gpus)
        snprintf(out, size, "%u cpu%s, %u gpu", cpus, cores, gpus);
    else if (cpus)
        snprintf(out, size, "%u cpu%s%s", cpus, cores, report->oversubscribed ? " shared" : "");
    else
        snprintf(out, size, "%u gpu", gpus);
}

void hardware_report_print(const struct hardware_report *report, const char *state, FILE *out)
{
    char cores[16], memory[32], devices[64];
    snprintf(cores, sizeof cores, "%u", report->cores);
    units_print_bytes(memory, sizeof memory, (double)report->memory_bytes);
    print_devices(report, devices, sizeof devices);
    fprintf(out, row_format, report->node, state, cores, memory, devices, report->processor);
}
