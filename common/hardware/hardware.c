/* hardware.c - builds, copies, compares and checks hardware reports. */
#include "common/hardware/hardware.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

struct hardware_report *hardware_report_create(const char *node, const char *host,
                                               const char *processor, const char *cpuset)
{
    struct hardware_report *report = xcalloc(1, sizeof *report);
    report->node = xstrdup(node);
    report->host = xstrdup(host);
    report->processor = xstrdup(processor);
    report->cpuset = xstrdup(cpuset);
    return report;
}

void hardware_report_destroy(struct hardware_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->device_count; i++) {
        free(report->devices[i].name);
        free(report->devices[i].cpuset);
        free(report->devices[i].id);
        free(report->devices[i].place);
        free(report->devices[i].profile);
    }
    free(report->devices);
    free(report->numa);
    free(report->caches);
    free(report->address);
    free(report->release);
    free(report->cpuset);
    free(report->processor);
    free(report->host);
    free(report->node);
    free(report);
}

void hardware_set_text(char **field, const char *text)
{
    free(*field);
    *field = text && text[0] ? xstrdup(text) : NULL;
}

void hardware_report_add_cache(struct hardware_report *report, struct hardware_cache cache)
{
    report->caches =
        grow(report->caches, report->cache_count, &report->cache_capacity, sizeof *report->caches);
    report->caches[report->cache_count++] = cache;
}

void hardware_report_add_numa(struct hardware_report *report, struct hardware_numa numa)
{
    report->numa =
        grow(report->numa, report->numa_count, &report->numa_capacity, sizeof *report->numa);
    report->numa[report->numa_count++] = numa;
}

struct hardware_device *hardware_report_add_device(struct hardware_report *report,
                                                   const struct hardware_device *device)
{
    report->devices = grow(report->devices, report->device_count, &report->device_capacity,
                           sizeof *report->devices);
    struct hardware_device *added = &report->devices[report->device_count];
    *added = *device;
    added->index = (unsigned)report->device_count++;
    added->name = xstrdup(device->name);
    added->cpuset = xstrdup(device->cpuset);
    added->id = added->place = added->profile = NULL;
    hardware_set_text(&added->id, device->id);
    hardware_set_text(&added->place, device->place);
    hardware_set_text(&added->profile, device->profile);
    return added;
}

struct hardware_report *hardware_report_copy(const struct hardware_report *report)
{
    struct hardware_report *copy =
        hardware_report_create(report->node, report->host, report->processor, report->cpuset);
    hardware_set_text(&copy->address, report->address);
    hardware_set_text(&copy->release, report->release);
    copy->cores = report->cores;
    copy->oversubscribed = report->oversubscribed;
    copy->measured_unix_ms = report->measured_unix_ms;
    copy->network_cards = report->network_cards;
    copy->memory_bytes = report->memory_bytes;
    for (size_t i = 0; i < report->cache_count; i++)
        hardware_report_add_cache(copy, report->caches[i]);
    for (size_t i = 0; i < report->numa_count; i++)
        hardware_report_add_numa(copy, report->numa[i]);
    for (size_t i = 0; i < report->device_count; i++)
        hardware_report_add_device(copy, &report->devices[i]);
    return copy;
}

/* Equal texts, or both NULL. */
static bool text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool device_equal(const struct hardware_device *a, const struct hardware_device *b)
{
    return a->kind == b->kind && a->index == b->index && strcmp(a->name, b->name) == 0 &&
           strcmp(a->cpuset, b->cpuset) == 0 && a->cores == b->cores &&
           a->memory_bytes == b->memory_bytes && a->library_bytes == b->library_bytes &&
           a->flops == b->flops && a->bandwidth == b->bandwidth && text_equal(a->id, b->id) &&
           text_equal(a->place, b->place) && a->upload == b->upload && a->download == b->download &&
           text_equal(a->profile, b->profile);
}

bool hardware_report_equal(const struct hardware_report *a, const struct hardware_report *b)
{
    bool equal = strcmp(a->node, b->node) == 0 && strcmp(a->host, b->host) == 0 &&
                 strcmp(a->processor, b->processor) == 0 && strcmp(a->cpuset, b->cpuset) == 0 &&
                 a->cores == b->cores && a->oversubscribed == b->oversubscribed &&
                 a->measured_unix_ms == b->measured_unix_ms &&
                 a->network_cards == b->network_cards && a->memory_bytes == b->memory_bytes &&
                 a->cache_count == b->cache_count && a->numa_count == b->numa_count &&
                 a->device_count == b->device_count && text_equal(a->address, b->address) &&
                 text_equal(a->release, b->release);
    for (size_t i = 0; equal && i < a->cache_count; i++)
        equal = a->caches[i].level == b->caches[i].level &&
                a->caches[i].size_bytes == b->caches[i].size_bytes &&
                a->caches[i].count == b->caches[i].count;
    for (size_t i = 0; equal && i < a->numa_count; i++)
        equal = a->numa[i].index == b->numa[i].index && a->numa[i].cores == b->numa[i].cores &&
                a->numa[i].memory_bytes == b->numa[i].memory_bytes;
    for (size_t i = 0; equal && i < a->device_count; i++)
        equal = device_equal(&a->devices[i], &b->devices[i]);
    return equal;
}

const char *hardware_kind_name(enum hardware_kind kind)
{
    return kind == HARDWARE_GPU ? "gpu" : "cpu";
}

/* An ASCII letter or digit, whatever the locale. */
static bool alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool hardware_name_valid(const char *name)
{
    if (!alphanumeric(name[0]))
        return false;
    size_t length = 0;
    for (; name[length]; length++)
        if (!alphanumeric(name[length]) && !strchr(".-_", name[length]))
            return false;
    return length < HARDWARE_NAME_SIZE;
}

/* Texts must be printable ASCII and shorter than `size`: they go to terminals, JSON and labels. */
static int check_length(const char *field, const char *text, size_t size, struct error *err)
{
    size_t length = 0;
    for (; text[length]; length++)
        if (text[length] < ' ' || text[length] > '~')
            return error_set(err, -EINVAL, "%s has a character that is not printable ASCII", field);
    if (length >= size)
        return error_set(err, -EINVAL, "%s is %zu characters long; the most is %zu", field, length,
                         size - 1);
    return 0;
}

static int check_text(const char *field, const char *text, struct error *err)
{
    return check_length(field, text, HARDWARE_TEXT_SIZE, err);
}

static int check_rate(const char *field, double rate, struct error *err)
{
    if (!isfinite(rate) || rate < 0)
        return error_set(err, -EINVAL, "%s is %g: write a rate per second, or 0 while unmeasured",
                         field, rate);
    return 0;
}

static int check_device(const struct hardware_device *device, size_t index, struct error *err)
{
    int rc = 0;
    if (device->kind != HARDWARE_CPU && device->kind != HARDWARE_GPU)
        return error_set(err, -EINVAL, "kind %d is neither cpu nor gpu", (int)device->kind);
    if (device->index != index)
        return error_set(err, -EINVAL, "index is %u, its place is %zu", device->index, index);
    if (device->memory_bytes == 0 || device->memory_bytes > INT64_MAX)
        return error_set(err, -EINVAL, "memory_bytes is %llu: a device has 1 byte to 8 EiB",
                         (unsigned long long)device->memory_bytes);
    if (device->library_bytes >= device->memory_bytes)
        return error_set(
            err, -EINVAL, "library_bytes is %llu: libraries leave something of %llu bytes",
            (unsigned long long)device->library_bytes, (unsigned long long)device->memory_bytes);
    if (device->kind == HARDWARE_CPU && device->cores == 0)
        return error_set(err, -EINVAL, "cores is 0: a CPU device is at least one core");
    rc = check_text("name", device->name, err);
    if (rc == 0)
        rc = check_text("cpuset", device->cpuset, err);
    if (rc == 0)
        rc = check_rate("flops", device->flops, err);
    if (rc == 0)
        rc = check_rate("bandwidth", device->bandwidth, err);
    if (rc == 0)
        rc = check_rate("upload", device->upload, err);
    if (rc == 0)
        rc = check_rate("download", device->download, err);
    if (rc == 0 && device->id)
        rc = check_text("id", device->id, err);
    if (rc == 0 && device->place)
        rc = check_text("place", device->place, err);
    if (rc == 0 && device->profile)
        rc = check_length("profile", device->profile, HARDWARE_PROFILE_SIZE, err);
    return rc;
}

int hardware_report_check(const struct hardware_report *report, struct error *err)
{
    if (!hardware_name_valid(report->node))
        return error_set(err, -EINVAL,
                         "a node's name is 1 to %d letters, digits, '.', '-' or '_', and begins "
                         "with a letter or digit",
                         HARDWARE_NAME_SIZE - 1);
    if (report->host[0] == '\0')
        return error_set(err, -EINVAL, "node '%s' names no host", report->node);
    if (report->memory_bytes > INT64_MAX)
        return error_set(err, -EINVAL, "node '%s' has more than 8 EiB of memory", report->node);
    if (report->measured_unix_ms > INT64_MAX)
        return error_set(err, -EINVAL, "node '%s' was measured beyond all calendars", report->node);
    int rc = check_text("host", report->host, err);
    if (rc == 0)
        rc = check_text("processor", report->processor, err);
    if (rc == 0)
        rc = check_text("cpuset", report->cpuset, err);
    if (rc == 0 && report->address)
        rc = check_text("address", report->address, err);
    if (rc == 0 && report->release)
        rc = check_text("release", report->release, err);
    if (rc < 0)
        return error_prefix(err, rc, "node '%s'", report->node);
    if (report->device_count == 0 || report->device_count > HARDWARE_DEVICES_MAX)
        return error_set(err, -EINVAL, "node '%s' has %zu devices: a worker offers 1 to %u",
                         report->node, report->device_count, HARDWARE_DEVICES_MAX);
    for (size_t i = 0; i < report->device_count; i++) {
        rc = check_device(&report->devices[i], i, err);
        if (rc < 0)
            return error_prefix(err, rc, "node '%s', device %zu", report->node, i);
    }
    return 0;
}
