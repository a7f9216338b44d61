/* hardware.c - reports as tables: a row per member says how it is kept, written as JSON and carried
 * by its protobuf message.
 *
 * Destroying, copying, comparing and both outward forms follow the rows, so what a report has more
 * is a member here, a field in cluster.proto and a row. What a report must satisfy is written out
 * in hardware_report_check(). */
#include "common/hardware/hardware.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "proto/cluster.pb-c.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a member is kept here, and on the wire. */
enum member_kind {
    MEMBER_TEXT,   /* char *; on the wire, too, where "" is none */
    MEMBER_COUNT,  /* unsigned; uint32_t */
    MEMBER_SIZE,   /* uint64_t, at most INT64_MAX in JSON; uint64_t */
    MEMBER_RATE,   /* double; double */
    MEMBER_FLAG,   /* bool; protobuf_c_boolean */
    MEMBER_DEVICE, /* enum hardware_kind; Gimbal__Device__Kind */
    MEMBER_LIST,   /* an array of parts, its count and capacity; their messages */
};

/* The plain kinds: those that copying bytes copies. */
static const size_t plain_sizes[] = {
    [MEMBER_COUNT] = sizeof(unsigned),
    [MEMBER_SIZE] = sizeof(uint64_t),
    [MEMBER_RATE] = sizeof(double),
    [MEMBER_FLAG] = sizeof(bool),
    [MEMBER_DEVICE] = sizeof(enum hardware_kind),
};
static_assert(sizeof(unsigned) == sizeof(uint32_t), "counts are the same here and on the wire");

struct member {
    const char *key; /* in JSON; NULL ends the table */
    enum member_kind kind;
    size_t at, message_at; /* offsets */
    bool optional;         /* may be missing in JSON; texts are then NULL, others unchanged */
    const struct part *part;
    size_t count_at, capacity_at, message_count_at; /* of a list */
};

/* What a list has items of. */
struct part {
    const struct member *members;
    size_t size;
    const ProtobufCMessageDescriptor *message;
};

#define MEMBER(name, member, what, type, message_type, message_member)                             \
    .key = name, .kind = what, .at = offsetof(type, member),                                       \
    .message_at = offsetof(message_type, message_member)

#define CACHE(name, member, what, message_member)                                                  \
    MEMBER(name, member, what, struct hardware_cache, Gimbal__Cache, message_member)
static const struct member cache_members[] = {
    {CACHE("level", level, MEMBER_COUNT, level)},
    {CACHE("size_bytes", size_bytes, MEMBER_SIZE, size_bytes)},
    {CACHE("count", count, MEMBER_COUNT, count)},
    {.key = NULL},
};

#define NUMA(name, member, what, message_member)                                                   \
    MEMBER(name, member, what, struct hardware_numa, Gimbal__NumaNode, message_member)
static const struct member numa_members[] = {
    {NUMA("index", index, MEMBER_COUNT, index)},
    {NUMA("cores", cores, MEMBER_COUNT, core_count)},
    {NUMA("memory_bytes", memory_bytes, MEMBER_SIZE, memory_bytes)},
    {.key = NULL},
};

#define DEVICE(name, member, what, message_member)                                                 \
    MEMBER(name, member, what, struct hardware_device, Gimbal__Device, message_member)
static const struct member device_members[] = {
    {DEVICE("kind", kind, MEMBER_DEVICE, kind)},
    {DEVICE("index", index, MEMBER_COUNT, index)},
    {DEVICE("name", name, MEMBER_TEXT, name)},
    {DEVICE("cpuset", cpuset, MEMBER_TEXT, cpuset)},
    {DEVICE("cores", cores, MEMBER_COUNT, core_count)},
    {DEVICE("memory_bytes", memory_bytes, MEMBER_SIZE, memory_bytes)},
    {DEVICE("library_bytes", library_bytes, MEMBER_SIZE, library_bytes), .optional = true},
    {DEVICE("flops", flops, MEMBER_RATE, flops)},
    {DEVICE("bandwidth", bandwidth, MEMBER_RATE, bandwidth_bytes_per_s)},
    {DEVICE("id", id, MEMBER_TEXT, id), .optional = true},
    {DEVICE("place", place, MEMBER_TEXT, place), .optional = true},
    {DEVICE("upload", upload, MEMBER_RATE, upload_bytes_per_s), .optional = true},
    {DEVICE("download", download, MEMBER_RATE, download_bytes_per_s), .optional = true},
    {DEVICE("profile", profile, MEMBER_TEXT, profile_json), .optional = true},
    {.key = NULL},
};

static const struct part cache_part = {cache_members, sizeof(struct hardware_cache),
                                       &gimbal__cache__descriptor};
static const struct part numa_part = {numa_members, sizeof(struct hardware_numa),
                                      &gimbal__numa_node__descriptor};
static const struct part device_part = {device_members, sizeof(struct hardware_device),
                                        &gimbal__device__descriptor};

#define REPORT(name, member, what, message_member)                                                 \
    MEMBER(name, member, what, struct hardware_report, Gimbal__HardwareReport, message_member)
#define LIST(name, member, item, message_member)                                                   \
    REPORT(name, member, MEMBER_LIST, message_member),                                             \
        .part = &item##_part, .count_at = offsetof(struct hardware_report, item##_count),          \
        .capacity_at = offsetof(struct hardware_report, item##_capacity),                          \
        .message_count_at = offsetof(Gimbal__HardwareReport, n_##message_member)
static const struct member report_members[] = {
    {REPORT("name", node, MEMBER_TEXT, node)},
    {REPORT("host", host, MEMBER_TEXT, host_id)},
    {REPORT("processor", processor, MEMBER_TEXT, cpu_model)},
    {REPORT("cores", cores, MEMBER_COUNT, core_count)},
    {REPORT("cpuset", cpuset, MEMBER_TEXT, cpuset)},
    {REPORT("address", address, MEMBER_TEXT, host_address), .optional = true},
    {REPORT("release", release, MEMBER_TEXT, release), .optional = true},
    {REPORT("oversubscribed", oversubscribed, MEMBER_FLAG, oversubscribed), .optional = true},
    {REPORT("measured_unix_ms", measured_unix_ms, MEMBER_SIZE, measured_unix_ms), .optional = true},
    {REPORT("network_cards", network_cards, MEMBER_COUNT, network_cards), .optional = true},
    {REPORT("memory_bytes", memory_bytes, MEMBER_SIZE, memory_bytes)},
    {LIST("caches", caches, cache, caches)},
    {LIST("numa", numa, numa, numa_nodes)},
    {LIST("devices", devices, device, devices)},
    {.key = NULL},
};

static const struct part report_part = {report_members, sizeof(struct hardware_report),
                                        &gimbal__hardware_report__descriptor};

/* Pointers to items are read and written without regard to what they point to. */
static char *items_of(const void *at)
{
    char *items;
    memcpy(&items, at, sizeof items);
    return items;
}

static size_t count_of(const struct member *member, const void *values)
{
    return *(const size_t *)((const char *)values + member->count_at);
}

static void *item_of(const struct member *member, const void *values, size_t index)
{
    return items_of((const char *)values + member->at) + index * member->part->size;
}

/* Append an item of zeros to a list, and count it. */
static void *list_append(const struct member *member, void *values)
{
    char *at = (char *)values + member->at;
    size_t *count = (size_t *)((char *)values + member->count_at);
    char *items = grow(items_of(at), *count, (size_t *)((char *)values + member->capacity_at),
                       member->part->size);
    memcpy(at, &items, sizeof items);
    return items + (*count)++ * member->part->size;
}

/* Free what a part owns. */
static void part_finish(const struct part *part, void *values)
{
    for (const struct member *member = part->members; member->key; member++) {
        char *at = (char *)values + member->at;
        if (member->kind == MEMBER_TEXT)
            free(*(char **)at);
        if (member->kind != MEMBER_LIST)
            continue;
        for (size_t i = 0; i < count_of(member, values); i++)
            part_finish(member->part, item_of(member, values, i));
        free(items_of(at));
    }
}

void hardware_set_text(char **field, const char *text)
{
    free(*field);
    *field = text && text[0] ? xstrdup(text) : NULL;
}

static void text_copy(const struct member *member, char **to, const char *from)
{
    *to = NULL;
    if (member->optional)
        hardware_set_text(to, from);
    else
        *to = xstrdup(from);
}

/* Copy into zeros. */
static void part_copy(const struct part *part, void *to, const void *from)
{
    for (const struct member *member = part->members; member->key; member++) {
        char *into = (char *)to + member->at;
        const char *of = (const char *)from + member->at;
        if (member->kind == MEMBER_TEXT)
            text_copy(member, (char **)into, *(char *const *)of);
        else if (member->kind != MEMBER_LIST)
            memcpy(into, of, plain_sizes[member->kind]);
        else
            for (size_t i = 0; i < count_of(member, from); i++)
                part_copy(member->part, list_append(member, to), item_of(member, from, i));
    }
}

static bool part_equal(const struct part *part, const void *a, const void *b);

static bool list_equal(const struct member *member, const void *a, const void *b)
{
    if (count_of(member, a) != count_of(member, b))
        return false;
    for (size_t i = 0; i < count_of(member, a); i++)
        if (!part_equal(member->part, item_of(member, a, i), item_of(member, b, i)))
            return false;
    return true;
}

/* Equal texts, or both NULL. */
static bool text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool part_equal(const struct part *part, const void *a, const void *b)
{
    for (const struct member *member = part->members; member->key; member++) {
        const char *one = (const char *)a + member->at, *other = (const char *)b + member->at;
        if (!(member->kind == MEMBER_TEXT   ? text_equal(*(char *const *)one, *(char *const *)other)
              : member->kind == MEMBER_RATE ? *(const double *)one == *(const double *)other
              : member->kind == MEMBER_LIST ? list_equal(member, a, b)
                                            : memcmp(one, other, plain_sizes[member->kind]) == 0))
            return false;
    }
    return true;
}

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
    if (report)
        part_finish(&report_part, report);
    free(report);
}

struct hardware_report *hardware_report_copy(const struct hardware_report *report)
{
    struct hardware_report *copy = xcalloc(1, sizeof *copy);
    part_copy(&report_part, copy, report);
    return copy;
}

bool hardware_report_equal(const struct hardware_report *a, const struct hardware_report *b)
{
    return part_equal(&report_part, a, b);
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
    part_copy(&device_part, added, device);
    added->index = (unsigned)report->device_count++;
    return added;
}

const char *hardware_kind_name(enum hardware_kind kind)
{
    return kind == HARDWARE_GPU ? "gpu" : "cpu";
}

static json_t *part_to_json(const struct part *part, const void *values);

static json_t *list_to_json(const struct member *member, const void *values)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count_of(member, values); i++)
        json_array_append_new(list, part_to_json(member->part, item_of(member, values, i)));
    return list;
}

static json_t *member_to_json(const struct member *member, const void *values)
{
    const char *at = (const char *)values + member->at;
    switch (member->kind) {
    case MEMBER_TEXT:
        return json_string(*(char *const *)at);
    case MEMBER_COUNT:
        return json_integer(*(const unsigned *)at);
    case MEMBER_SIZE:
        return json_integer((json_int_t) * (const uint64_t *)at);
    case MEMBER_RATE:
        return json_real(*(const double *)at);
    case MEMBER_FLAG:
        return json_boolean(*(const bool *)at);
    case MEMBER_DEVICE:
        return json_string(hardware_kind_name(*(const enum hardware_kind *)at));
    case MEMBER_LIST:
        return list_to_json(member, values);
    }
    return NULL;
}

static json_t *part_to_json(const struct part *part, const void *values)
{
    json_t *json = json_object();
    for (const struct member *member = part->members; member->key; member++) {
        bool is_text = member->kind == MEMBER_TEXT;
        if (is_text && member->optional && !*(char *const *)((const char *)values + member->at))
            continue;
        /* Fails only for what hardware_report_check() excludes: texts that are not UTF-8, and rates
         * that are not finite. */
        int rc = json_object_set_new(json, member->key, member_to_json(member, values));
        assert(rc == 0);
        (void)rc;
    }
    return json;
}

json_t *hardware_report_to_json(const struct hardware_report *report)
{
    return part_to_json(&report_part, report);
}

/* A text without a NUL in it, borrowed from the object. */
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

/* An integer from 0 to `most`. */
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

static int read_rate(const json_t *object, const char *key, double *out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a number", key,
                         value ? "something else" : "missing");
    *out = json_number_value(value);
    return 0;
}

static int read_flag(const json_t *object, const char *key, bool *out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        return error_set(err, -EINVAL, "'%s' is something else, it must be true or false", key);
    *out = json_is_true(value);
    return 0;
}

static int read_device_kind(const json_t *object, const char *key, enum hardware_kind *out,
                            struct error *err)
{
    const char *kind = "";
    int rc = read_text(object, key, &kind, err);
    if (rc < 0)
        return rc;
    if (strcmp(kind, "cpu") != 0 && strcmp(kind, "gpu") != 0)
        return error_set(err, -EINVAL, "'%s' is '%s', it must be 'cpu' or 'gpu'", key, kind);
    *out = strcmp(kind, "gpu") == 0 ? HARDWARE_GPU : HARDWARE_CPU;
    return 0;
}

static int part_from_json(const struct part *part, const json_t *json, void *values,
                          struct error *err);

static int read_list(const struct member *member, const json_t *object, void *values,
                     struct error *err)
{
    const json_t *list = json_object_get(object, member->key);
    if (!json_is_array(list))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a list", member->key,
                         list ? "something else" : "missing");
    for (size_t i = 0; i < json_array_size(list); i++) {
        int rc =
            part_from_json(member->part, json_array_get(list, i), list_append(member, values), err);
        if (rc < 0)
            return error_prefix(err, rc, "%s[%zu]", member->key, i);
    }
    return 0;
}

static int member_from_json(const struct member *member, const json_t *json, void *values,
                            struct error *err)
{
    char *at = (char *)values + member->at;
    const char *text;
    uint64_t number;
    int rc;
    switch (member->kind) {
    case MEMBER_TEXT:
        rc = read_text(json, member->key, &text, err);
        if (rc == 0)
            text_copy(member, (char **)at, text);
        return rc;
    case MEMBER_COUNT:
        rc = read_size(json, member->key, INT_MAX, &number, err);
        if (rc == 0)
            *(unsigned *)at = (unsigned)number;
        return rc;
    case MEMBER_SIZE:
        return read_size(json, member->key, INT64_MAX, (uint64_t *)at, err);
    case MEMBER_RATE:
        return read_rate(json, member->key, (double *)at, err);
    case MEMBER_FLAG:
        return read_flag(json, member->key, (bool *)at, err);
    case MEMBER_DEVICE:
        return read_device_kind(json, member->key, (enum hardware_kind *)at, err);
    case MEMBER_LIST:
        return read_list(member, json, values, err);
    }
    return 0;
}

/* Read into zeros. What is left after an error has to be finished all the same. */
static int part_from_json(const struct part *part, const json_t *json, void *values,
                          struct error *err)
{
    int rc = 0;
    for (const struct member *member = part->members; member->key && rc == 0; member++)
        if (!member->optional || json_object_get(json, member->key))
            rc = member_from_json(member, json, values, err);
    return rc;
}

/* Ends the reading of a report, from JSON or from a message, that had this result. */
static int report_accept(struct hardware_report *report, int rc, struct hardware_report **out,
                         struct error *err)
{
    if (rc == 0)
        rc = hardware_report_check(report, err);
    if (rc < 0) {
        hardware_report_destroy(report);
        return rc;
    }
    *out = report;
    return 0;
}

int hardware_report_from_json(const json_t *json, struct hardware_report **out, struct error *err)
{
    struct hardware_report *report = xcalloc(1, sizeof *report);
    return report_accept(report, part_from_json(&report_part, json, report, err), out, err);
}

void hardware_reports_destroy(struct hardware_report **reports, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hardware_report_destroy(reports[i]);
    free(reports);
}

/* -EINVAL when the last report has the same name as an earlier one. */
static int check_name_is_new(struct hardware_report *const *reports, size_t count,
                             struct error *err)
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
    const char *version = "", *kind = "";
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
            rc = check_name_is_new(reports, ++done, err);
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

static ProtobufCMessage *part_to_wire(const struct part *part, const void *values);

static void list_to_wire(const struct member *member, const void *values, char *message)
{
    size_t count = count_of(member, values);
    ProtobufCMessage **messages = xcalloc(count, sizeof(ProtobufCMessage *));
    for (size_t i = 0; i < count; i++)
        messages[i] = part_to_wire(member->part, item_of(member, values, i));
    memcpy(message + member->message_at, &messages, sizeof messages);
    *(size_t *)(message + member->message_count_at) = count;
}

static void member_to_wire(const struct member *member, const void *values, char *message)
{
    const char *at = (const char *)values + member->at;
    char *to = message + member->message_at;
    const char *text;
    switch (member->kind) {
    case MEMBER_TEXT:
        text = *(char *const *)at;
        *(char **)to = xstrdup(text ? text : "");
        break;
    case MEMBER_COUNT:
    case MEMBER_SIZE:
    case MEMBER_RATE:
        memcpy(to, at, plain_sizes[member->kind]);
        break;
    case MEMBER_FLAG:
        *(protobuf_c_boolean *)to = *(const bool *)at;
        break;
    case MEMBER_DEVICE:
        *(Gimbal__Device__Kind *)to = *(const enum hardware_kind *)at == HARDWARE_GPU
                                          ? GIMBAL__DEVICE__KIND__GPU
                                          : GIMBAL__DEVICE__KIND__CPU;
        break;
    case MEMBER_LIST:
        list_to_wire(member, values, message);
        break;
    }
}

static ProtobufCMessage *part_to_wire(const struct part *part, const void *values)
{
    ProtobufCMessage *message = xcalloc(1, part->message->sizeof_message);
    protobuf_c_message_init(part->message, message);
    for (const struct member *member = part->members; member->key; member++)
        member_to_wire(member, values, (char *)message);
    return message;
}

Gimbal__HardwareReport *hardware_report_to_wire(const struct hardware_report *report)
{
    return (Gimbal__HardwareReport *)part_to_wire(&report_part, report);
}

static int part_from_wire(const struct part *part, const char *message, void *values,
                          struct error *err);

static int list_from_wire(const struct member *member, const char *message, void *values,
                          struct error *err)
{
    size_t count = *(const size_t *)(message + member->message_count_at);
    const char *messages = items_of(message + member->message_at);
    for (size_t i = 0; i < count; i++) {
        int rc = part_from_wire(member->part, items_of(messages + i * sizeof(ProtobufCMessage *)),
                                list_append(member, values), err);
        if (rc < 0) /* only devices can be wrong in themselves */
            return error_prefix(err, rc, "device %zu", i);
    }
    return 0;
}

static int device_kind_from_wire(Gimbal__Device__Kind kind, enum hardware_kind *out,
                                 struct error *err)
{
    if (kind != GIMBAL__DEVICE__KIND__CPU && kind != GIMBAL__DEVICE__KIND__GPU)
        return error_set(err, -EINVAL, "kind %d is neither CPU nor GPU", (int)kind);
    *out = kind == GIMBAL__DEVICE__KIND__GPU ? HARDWARE_GPU : HARDWARE_CPU;
    return 0;
}

static int member_from_wire(const struct member *member, const char *message, void *values,
                            struct error *err)
{
    char *at = (char *)values + member->at;
    const char *from = message + member->message_at;
    switch (member->kind) {
    case MEMBER_TEXT:
        text_copy(member, (char **)at, *(char *const *)from);
        break;
    case MEMBER_COUNT:
    case MEMBER_SIZE:
    case MEMBER_RATE:
        memcpy(at, from, plain_sizes[member->kind]);
        break;
    case MEMBER_FLAG:
        *(bool *)at = *(const protobuf_c_boolean *)from;
        break;
    case MEMBER_DEVICE:
        return device_kind_from_wire(*(const Gimbal__Device__Kind *)from, (enum hardware_kind *)at,
                                     err);
    case MEMBER_LIST:
        return list_from_wire(member, message, values, err);
    }
    return 0;
}

/* Read into zeros, as part_from_json(). */
static int part_from_wire(const struct part *part, const char *message, void *values,
                          struct error *err)
{
    int rc = 0;
    for (const struct member *member = part->members; member->key && rc == 0; member++)
        rc = member_from_wire(member, message, values, err);
    return rc;
}

int hardware_report_from_wire(const Gimbal__HardwareReport *message, struct hardware_report **out,
                              struct error *err)
{
    struct hardware_report *report = xcalloc(1, sizeof *report);
    int rc = part_from_wire(&report_part, (const char *)message, report, err);
    if (rc < 0)
        error_prefix(err, rc, "node '%s'", message->node);
    return report_accept(report, rc, out, err);
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
    if (!text_is_name(report->node))
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

struct cores {
    unsigned long first, last;
};

/* Read the next range of a list, "8" or "0-3". Returns what follows it, or NULL: there is none. */
static const char *next_range(const char *list, struct cores *range)
{
    char *end;
    if (!list || *list < '0' || *list > '9')
        return NULL;
    range->first = range->last = strtoul(list, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        range->last = strtoul(end + 1, &end, 10);
    if (range->last < range->first)
        return NULL;
    return *end == ',' ? end + 1 : end;
}

static double count_common(const struct cores *range, const char *list)
{
    struct cores other;
    double count = 0;
    while ((list = next_range(list, &other))) {
        unsigned long first = range->first > other.first ? range->first : other.first;
        unsigned long last = range->last < other.last ? range->last : other.last;
        count += first <= last ? (double)(last - first) + 1 : 0;
    }
    return count;
}

double hardware_overlap(const char *of, const char *with)
{
    struct cores range;
    double all = 0, common = 0;
    while ((of = next_range(of, &range))) {
        all += (double)(range.last - range.first) + 1;
        common += count_common(&range, with);
    }
    return all > 0 ? common / all : 0;
}
