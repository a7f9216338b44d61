/* wire.c - converts each part of a report to its protobuf message and back. */
#include "common/hardware/wire.h"

#include "common/base/memory.h"

#include <errno.h>

static Gimbal__Cache *cache_to_wire(const struct hardware_cache *cache)
{
    Gimbal__Cache *message = xcalloc(1, sizeof *message);
    gimbal__cache__init(message);
    message->level = cache->level;
    message->size_bytes = cache->size_bytes;
    message->count = cache->count;
    return message;
}

static Gimbal__NumaNode *numa_to_wire(const struct hardware_numa *numa)
{
    Gimbal__NumaNode *message = xcalloc(1, sizeof *message);
    gimbal__numa_node__init(message);
    message->index = numa->index;
    message->core_count = numa->cores;
    message->memory_bytes = numa->memory_bytes;
    return message;
}

static Gimbal__Device *device_to_wire(const struct hardware_device *device)
{
    Gimbal__Device *message = xcalloc(1, sizeof *message);
    gimbal__device__init(message);
    message->kind =
        device->kind == HARDWARE_GPU ? GIMBAL__DEVICE__KIND__GPU : GIMBAL__DEVICE__KIND__CPU;
    message->index = device->index;
    message->name = xstrdup(device->name);
    message->cpuset = xstrdup(device->cpuset);
    message->core_count = device->cores;
    message->memory_bytes = device->memory_bytes;
    message->library_bytes = device->library_bytes;
    message->flops = device->flops;
    message->bandwidth_bytes_per_s = device->bandwidth;
    message->id = xstrdup(device->id ? device->id : "");
    message->place = xstrdup(device->place ? device->place : "");
    message->upload_bytes_per_s = device->upload;
    message->download_bytes_per_s = device->download;
    message->profile_json = xstrdup(device->profile ? device->profile : "");
    return message;
}

Gimbal__HardwareReport *hardware_report_to_wire(const struct hardware_report *report)
{
    Gimbal__HardwareReport *message = xcalloc(1, sizeof *message);
    gimbal__hardware_report__init(message);
    message->node = xstrdup(report->node);
    message->host_id = xstrdup(report->host);
    message->cpu_model = xstrdup(report->processor);
    message->core_count = report->cores;
    message->cpuset = xstrdup(report->cpuset);
    message->host_address = xstrdup(report->address ? report->address : "");
    message->release = xstrdup(report->release ? report->release : "");
    message->oversubscribed = report->oversubscribed;
    message->measured_unix_ms = report->measured_unix_ms;
    message->network_cards = report->network_cards;
    message->memory_bytes = report->memory_bytes;
    message->caches = xcalloc(report->cache_count, sizeof *message->caches);
    for (; message->n_caches < report->cache_count; message->n_caches++)
        message->caches[message->n_caches] = cache_to_wire(&report->caches[message->n_caches]);
    message->numa_nodes = xcalloc(report->numa_count, sizeof *message->numa_nodes);
    for (; message->n_numa_nodes < report->numa_count; message->n_numa_nodes++)
        message->numa_nodes[message->n_numa_nodes] =
            numa_to_wire(&report->numa[message->n_numa_nodes]);
    message->devices = xcalloc(report->device_count, sizeof *message->devices);
    for (; message->n_devices < report->device_count; message->n_devices++)
        message->devices[message->n_devices] = device_to_wire(&report->devices[message->n_devices]);
    return message;
}

static int device_from_wire(const Gimbal__Device *message, struct hardware_report *report,
                            struct error *err)
{
    if (message->kind != GIMBAL__DEVICE__KIND__CPU && message->kind != GIMBAL__DEVICE__KIND__GPU)
        return error_set(err, -EINVAL, "node '%s', device %zu: kind %d is neither CPU nor GPU",
                         report->node, report->device_count, (int)message->kind);
    struct hardware_device device = {
        .kind = message->kind == GIMBAL__DEVICE__KIND__GPU ? HARDWARE_GPU : HARDWARE_CPU,
        .name = message->name, /* borrowed: adding the device copies the texts */
        .cpuset = message->cpuset,
        .cores = message->core_count,
        .memory_bytes = message->memory_bytes,
        .library_bytes = message->library_bytes,
        .flops = message->flops,
        .bandwidth = message->bandwidth_bytes_per_s,
        .id = message->id,
        .place = message->place,
        .upload = message->upload_bytes_per_s,
        .download = message->download_bytes_per_s,
        .profile = message->profile_json,
    };
    /* The index as given, because hardware_report_check() compares it with the place. */
    hardware_report_add_device(report, &device)->index = message->index;
    return 0;
}

int hardware_report_from_wire(const Gimbal__HardwareReport *message, struct hardware_report **out,
                              struct error *err)
{
    struct hardware_report *report = hardware_report_create(message->node, message->host_id,
                                                            message->cpu_model, message->cpuset);
    hardware_set_text(&report->address, message->host_address);
    hardware_set_text(&report->release, message->release);
    report->cores = message->core_count;
    report->oversubscribed = message->oversubscribed;
    report->measured_unix_ms = message->measured_unix_ms;
    report->network_cards = message->network_cards;
    report->memory_bytes = message->memory_bytes;
    for (size_t i = 0; i < message->n_caches; i++)
        hardware_report_add_cache(
            report, (struct hardware_cache){.level = message->caches[i]->level,
                                            .size_bytes = message->caches[i]->size_bytes,
                                            .count = message->caches[i]->count});
    for (size_t i = 0; i < message->n_numa_nodes; i++)
        hardware_report_add_numa(
            report, (struct hardware_numa){.index = message->numa_nodes[i]->index,
                                           .cores = message->numa_nodes[i]->core_count,
                                           .memory_bytes = message->numa_nodes[i]->memory_bytes});
    int rc = 0;
    for (size_t i = 0; i < message->n_devices && rc == 0; i++)
        rc = device_from_wire(message->devices[i], report, err);
    if (rc == 0)
        rc = hardware_report_check(report, err);
    if (rc < 0) {
        hardware_report_destroy(report);
        return rc;
    }
    *out = report;
    return 0;
}
