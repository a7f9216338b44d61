/* json.c - reports as JSON, for `gimbal nodes -o json` and recorded clusters. */
#include "common/hardware/hardware.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

/* json_pack gives NULL for a text that is no UTF-8, which hardware_report_check excludes. */
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
    return packed(json_pack("{s:s, s:s, s:s, s:I, s:s, s:s*, s:b, s:I, s:o, s:o, s:o}", "name",
                            report->node, "host", report->host, "processor", report->processor,
                            "cores", (json_int_t)report->cores, "cpuset", report->cpuset, "address",
                            report->address, "oversubscribed", report->oversubscribed,
                            "memory_bytes", (json_int_t)report->memory_bytes, "caches", caches,
                            "numa", numa, "devices", devices));
}

static int read_text(const json_t *object, const char *key, const char **out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a text", key,
                         value ? "something else" : "missing");
    *out = json_string_value(value);
    if (strlen(*out) != json_string_length(value))
        return error_set(err, -EINVAL, "'%s' has a NUL character", key);
    return 0;
}

/* A text that may be missing: *out is NULL then. */
static int read_optional(const json_t *object, const char *key, const char **out, struct error *err)
{
    *out = NULL;
    return json_object_get(object, key) ? read_text(object, key, out, err) : 0;
}

static int read_size(const json_t *object, const char *key, uint64_t most, uint64_t *out,
                     struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a whole number", key,
                         value ? "something else" : "missing");
    json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number > most)
        return error_set(err, -EINVAL, "'%s' is %lld, it must be 0 to %llu", key, (long long)number,
                         (unsigned long long)most);
    *out = (uint64_t)number;
    return 0;
}

/* As read_size, but it may be missing. */
static int read_optional_size(const json_t *object, const char *key, uint64_t most, uint64_t *out,
                              struct error *err)
{
    return json_object_get(object, key) ? read_size(object, key, most, out, err) : 0;
}

static int read_count(const json_t *object, const char *key, unsigned *out, struct error *err)
{
    uint64_t number;
    int rc = read_size(object, key, INT_MAX, &number, err);
    if (rc == 0)
        *out = (unsigned)number;
    return rc;
}

static int read_rate(const json_t *object, const char *key, double *out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a number", key,
                         value ? "something else" : "missing");
    *out = json_number_value(value);
    return 0;
}

/* As read_rate, but it may be missing. */
static int read_optional_rate(const json_t *object, const char *key, double *out, struct error *err)
{
    return json_object_get(object, key) ? read_rate(object, key, out, err) : 0;
}

static int read_cache(struct hardware_report *report, const json_t *json, struct error *err)
{
    struct hardware_cache cache;
    int rc = read_count(json, "level", &cache.level, err);
    if (rc == 0)
        rc = read_size(json, "size_bytes", INT64_MAX, &cache.size_bytes, err);
    if (rc == 0)
        rc = read_count(json, "count", &cache.count, err);
    if (rc == 0)
        hardware_report_add_cache(report, cache);
    return rc;
}

static int read_numa(struct hardware_report *report, const json_t *json, struct error *err)
{
    struct hardware_numa numa;
    int rc = read_count(json, "index", &numa.index, err);
    if (rc == 0)
        rc = read_count(json, "cores", &numa.cores, err);
    if (rc == 0)
        rc = read_size(json, "memory_bytes", INT64_MAX, &numa.memory_bytes, err);
    if (rc == 0)
        hardware_report_add_numa(report, numa);
    return rc;
}

static int read_device(struct hardware_report *report, const json_t *json, struct error *err)
{
    struct hardware_device device = {0};
    const char *kind = "", *name = "", *cpuset = "", *id = NULL, *place = NULL, *profile = NULL;
    unsigned index = 0;
    int rc = read_text(json, "kind", &kind, err);
    if (rc == 0)
        rc = read_count(json, "index", &index, err);
    if (rc == 0)
        rc = read_text(json, "name", &name, err);
    if (rc == 0)
        rc = read_text(json, "cpuset", &cpuset, err);
    if (rc == 0)
        rc = read_count(json, "cores", &device.cores, err);
    if (rc == 0)
        rc = read_size(json, "memory_bytes", INT64_MAX, &device.memory_bytes, err);
    if (rc == 0)
        rc = read_optional_size(json, "library_bytes", INT64_MAX, &device.library_bytes, err);
    if (rc == 0)
        rc = read_rate(json, "flops", &device.flops, err);
    if (rc == 0)
        rc = read_rate(json, "bandwidth", &device.bandwidth, err);
    if (rc == 0)
        rc = read_optional(json, "id", &id, err);
    if (rc == 0)
        rc = read_optional(json, "place", &place, err);
    if (rc == 0)
        rc = read_optional_rate(json, "upload", &device.upload, err);
    if (rc == 0)
        rc = read_optional_rate(json, "download", &device.download, err);
    if (rc == 0)
        rc = read_optional(json, "profile", &profile, err);
    if (rc < 0)
        return rc;
    if (strcmp(kind, "cpu") != 0 && strcmp(kind, "gpu") != 0)
        return error_set(err, -EINVAL, "'kind' is '%s', it must be 'cpu' or 'gpu'", kind);
    device.kind = strcmp(kind, "gpu") == 0 ? HARDWARE_GPU : HARDWARE_CPU;
    device.name = (char *)name; /* lent: adding the device copies them */
    device.cpuset = (char *)cpuset;
    device.id = (char *)id;
    device.place = (char *)place;
    device.profile = (char *)profile;
    hardware_report_add_device(report, &device)->index = index; /* for the check */
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
    const char *node, *host, *processor, *cpuset, *address = NULL;
    int rc = read_text(json, "name", &node, err);
    if (rc == 0)
        rc = read_text(json, "host", &host, err);
    if (rc == 0)
        rc = read_text(json, "processor", &processor, err);
    if (rc == 0)
        rc = read_text(json, "cpuset", &cpuset, err);
    if (rc == 0)
        rc = read_optional(json, "address", &address, err);
    if (rc < 0)
        return rc;

    struct hardware_report *report = hardware_report_create(node, host, processor, cpuset);
    hardware_set_text(&report->address, address);
    report->oversubscribed = json_is_true(json_object_get(json, "oversubscribed"));
    rc = read_count(json, "cores", &report->cores, err);
    if (rc == 0)
        rc = read_size(json, "memory_bytes", INT64_MAX, &report->memory_bytes, err);
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

json_t *hardware_reports_to_json(struct hardware_report *const *reports, size_t count)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(nodes, hardware_report_to_json(reports[i]));
    return packed(json_pack("{s:s, s:s, s:o}", "apiVersion", "gimbal/v1", "kind", "NodeList",
                            "nodes", nodes));
}

void hardware_reports_destroy(struct hardware_report **reports, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hardware_report_destroy(reports[i]);
    free(reports);
}

/* -EINVAL when the last of the reports has the name of an earlier one. */
static int check_last_name(struct hardware_report *const *reports, size_t count, struct error *err)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(reports[i]->node, reports[count - 1]->node) == 0)
            return error_set(err, -EINVAL, "'name' is '%s', which nodes[%zu] has too",
                             reports[i]->node, i);
    return 0;
}

int hardware_reports_from_json(const json_t *json, struct hardware_report ***out, size_t *count,
                               struct error *err)
{
    const char *version, *kind;
    int rc = read_text(json, "apiVersion", &version, err);
    if (rc == 0)
        rc = read_text(json, "kind", &kind, err);
    if (rc < 0)
        return rc;
    if (strcmp(version, "gimbal/v1") != 0 || strcmp(kind, "NodeList") != 0)
        return error_set(err, -EINVAL, "this is '%s' of '%s', it must be 'NodeList' of 'gimbal/v1'",
                         kind, version);
    const json_t *nodes = json_object_get(json, "nodes");
    if (!json_is_array(nodes))
        return error_set(err, -EINVAL, "'nodes' must be a list");

    struct hardware_report **reports = xcalloc(json_array_size(nodes), sizeof *reports);
    size_t done = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(nodes); i++) {
        rc = hardware_report_from_json(json_array_get(nodes, i), &reports[done], err);
        if (rc == 0)
            rc = check_last_name(reports, ++done, err);
        if (rc < 0)
            error_prefix(err, rc, "nodes[%zu]", i);
    }
    if (rc < 0) {
        hardware_reports_destroy(reports, done);
        return rc;
    }
    *out = reports;
    *count = done;
    return 0;
}
