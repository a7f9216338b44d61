/* json.c - converts a report to and from JSON, as in `gimbal nodes -o json`; nodelist.c does so for
 * all reports of a cluster. */
#include "common/hardware/hardware.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/hardware/fields.h"

/* json_pack() only fails for texts that are not UTF-8, which hardware_report_check() excludes. */
static json_t *packed(json_t *json)
{
    assert(json);
    return json;
}

static json_t *device_to_json(const struct hardware_device *device)
{
    return packed(json_pack(
        "{s:s, s:I, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:s*, s:s*, s:f, s:f, s:s*}", "kind",
        hardware_kind_name(device->kind), "index", (json_int_t)device->index, "name", device->name,
        "cpuset", device->cpuset, "cores", (json_int_t)device->cores, "memory_bytes",
        (json_int_t)device->memory_bytes, "library_bytes", (json_int_t)device->library_bytes,
        "flops", device->flops, "bandwidth", device->bandwidth, "id", device->id, "place",
        device->place, "upload", device->upload, "download", device->download, "profile",
        device->profile));
}

json_t *hardware_report_to_json(const struct hardware_report *report)
{
    json_t *caches = json_array(), *numa = json_array(), *devices = json_array();
    for (size_t i = 0; i < report->cache_count; i++)
        json_array_append_new(
            caches,
            packed(json_pack("{s:I, s:I, s:I}", "level", (json_int_t)report->caches[i].level,
                             "size_bytes", (json_int_t)report->caches[i].size_bytes, "count",
                             (json_int_t)report->caches[i].count)));
    for (size_t i = 0; i < report->numa_count; i++)
        json_array_append_new(
            numa, packed(json_pack("{s:I, s:I, s:I}", "index", (json_int_t)report->numa[i].index,
                                   "cores", (json_int_t)report->numa[i].cores, "memory_bytes",
                                   (json_int_t)report->numa[i].memory_bytes)));
    for (size_t i = 0; i < report->device_count; i++)
        json_array_append_new(devices, device_to_json(&report->devices[i]));
    return packed(json_pack(
        "{s:s, s:s, s:s, s:I, s:s, s:s*, s:s*, s:b, s:I, s:I, s:I, s:o, s:o, s:o}", "name",
        report->node, "host", report->host, "processor", report->processor, "cores",
        (json_int_t)report->cores, "cpuset", report->cpuset, "address", report->address, "release",
        report->release, "oversubscribed", report->oversubscribed, "measured_unix_ms",
        (json_int_t)report->measured_unix_ms, "network_cards", (json_int_t)report->network_cards,
        "memory_bytes", (json_int_t)report->memory_bytes, "caches", caches, "numa", numa, "devices",
        devices));
}

static int read_cache(struct hardware_report *report, const json_t *json, struct error *err)
{
    struct hardware_cache cache;
    int rc = field_count(json, "level", &cache.level, err);
    if (rc == 0)
        rc = field_size(json, "size_bytes", INT64_MAX, &cache.size_bytes, err);
    if (rc == 0)
        rc = field_count(json, "count", &cache.count, err);
    if (rc == 0)
        hardware_report_add_cache(report, cache);
    return rc;
}

static int read_numa(struct hardware_report *report, const json_t *json, struct error *err)
{
    struct hardware_numa numa;
    int rc = field_count(json, "index", &numa.index, err);
    if (rc == 0)
        rc = field_count(json, "cores", &numa.cores, err);
    if (rc == 0)
        rc = field_size(json, "memory_bytes", INT64_MAX, &numa.memory_bytes, err);
    if (rc == 0)
        hardware_report_add_numa(report, numa);
    return rc;
}

static int read_device(struct hardware_report *report, const json_t *json, struct error *err)
{
    struct hardware_device device = {0};
    const char *kind = "", *name = "", *cpuset = "", *id = NULL, *place = NULL, *profile = NULL;
    unsigned index = 0;
    int rc = field_text(json, "kind", &kind, err);
    if (rc == 0)
        rc = field_count(json, "index", &index, err);
    if (rc == 0)
        rc = field_text(json, "name", &name, err);
    if (rc == 0)
        rc = field_text(json, "cpuset", &cpuset, err);
    if (rc == 0)
        rc = field_count(json, "cores", &device.cores, err);
    if (rc == 0)
        rc = field_size(json, "memory_bytes", INT64_MAX, &device.memory_bytes, err);
    if (rc == 0)
        rc = field_size_if(json, "library_bytes", INT64_MAX, &device.library_bytes, err);
    if (rc == 0)
        rc = field_rate(json, "flops", &device.flops, err);
    if (rc == 0)
        rc = field_rate(json, "bandwidth", &device.bandwidth, err);
    if (rc == 0)
        rc = field_text_if(json, "id", &id, err);
    if (rc == 0)
        rc = field_text_if(json, "place", &place, err);
    if (rc == 0)
        rc = field_rate_if(json, "upload", &device.upload, err);
    if (rc == 0)
        rc = field_rate_if(json, "download", &device.download, err);
    if (rc == 0)
        rc = field_text_if(json, "profile", &profile, err);
    if (rc < 0)
        return rc;
    if (strcmp(kind, "cpu") != 0 && strcmp(kind, "gpu") != 0)
        return error_set(err, -EINVAL, "'kind' is '%s', it must be 'cpu' or 'gpu'", kind);
    device.kind = strcmp(kind, "gpu") == 0 ? HARDWARE_GPU : HARDWARE_CPU;
    device.name = (char *)name; /* borrowed: adding the device copies the texts */
    device.cpuset = (char *)cpuset;
    device.id = (char *)id;
    device.place = (char *)place;
    device.profile = (char *)profile;
    /* The index as given, because hardware_report_check() compares it with the place. */
    hardware_report_add_device(report, &device)->index = index;
    return 0;
}

typedef int read_cb(struct hardware_report *report, const json_t *json, struct error *err);

static int read_list(struct hardware_report *report, const json_t *object, const char *key,
                     read_cb *read, struct error *err)
{
    const json_t *list = json_object_get(object, key);
    if (!json_is_array(list))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a list", key,
                         list ? "something else" : "missing");
    for (size_t i = 0; i < json_array_size(list); i++) {
        int rc = read(report, json_array_get(list, i), err);
        if (rc < 0)
            return error_prefix(err, rc, "%s[%zu]", key, i);
    }
    return 0;
}

int hardware_report_from_json(const json_t *json, struct hardware_report **out, struct error *err)
{
    const char *node = "", *host = "", *processor = "", *cpuset = "", *address = NULL,
               *release = NULL;
    int rc = field_text(json, "name", &node, err);
    if (rc == 0)
        rc = field_text(json, "host", &host, err);
    if (rc == 0)
        rc = field_text(json, "processor", &processor, err);
    if (rc == 0)
        rc = field_text(json, "cpuset", &cpuset, err);
    if (rc == 0)
        rc = field_text_if(json, "address", &address, err);
    if (rc == 0)
        rc = field_text_if(json, "release", &release, err);
    if (rc < 0)
        return rc;

    struct hardware_report *report = hardware_report_create(node, host, processor, cpuset);
    hardware_set_text(&report->address, address);
    hardware_set_text(&report->release, release);
    rc = field_flag_if(json, "oversubscribed", &report->oversubscribed, err);
    if (rc == 0)
        rc = field_size_if(json, "measured_unix_ms", INT64_MAX, &report->measured_unix_ms, err);
    if (rc == 0)
        rc = field_count_if(json, "network_cards", &report->network_cards, err);
    if (rc == 0)
        rc = field_count(json, "cores", &report->cores, err);
    if (rc == 0)
        rc = field_size(json, "memory_bytes", INT64_MAX, &report->memory_bytes, err);
    if (rc == 0)
        rc = read_list(report, json, "caches", read_cache, err);
    if (rc == 0)
        rc = read_list(report, json, "numa", read_numa, err);
    if (rc == 0)
        rc = read_list(report, json, "devices", read_device, err);
    if (rc == 0)
        rc = hardware_report_check(report, err);
    if (rc < 0) {
        hardware_report_destroy(report);
        return rc;
    }
    *out = report;
    return 0;
}
