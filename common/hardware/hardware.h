/* hardware.h - the hardware of one worker: cores, caches, memory, and the devices it offers; as
 * JSON, as in `gimbal nodes -o json`, and as the message between worker and coordinator.
 *
 * A device is the unit that the coordinator assigns and a rank runs on: a GPU, or a set of cores.
 * `memory_bytes`, of a report and of a device, is what this worker may use and not what the machine
 * has: workers on the same host divide its memory as they divide its cores. Rates are per second
 * and 0 while unmeasured. */
#ifndef COMMON_HARDWARE_HARDWARE_H
#define COMMON_HARDWARE_HARDWARE_H

#include "common/base/error.h"
#include "common/base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HARDWARE_NAME_SIZE TEXT_NAME_SIZE /* of a node's name */
#define HARDWARE_TEXT_SIZE 1024           /* of any other text in a report */
#define HARDWARE_PROFILE_SIZE 8192        /* of a device's profile */
#define HARDWARE_DEVICES_MAX 1024u        /* per worker */
#define HARDWARE_PIECES_MAX 64 /* sets of cores per worker: one process measures all of them */

struct Gimbal__HardwareReport; /* proto/cluster.pb-c.h */

enum hardware_kind { HARDWARE_CPU, HARDWARE_GPU };

struct hardware_cache {
    unsigned level;
    uint64_t size_bytes; /* of each */
    unsigned count;      /* how many of them this worker's cores use */
};

struct hardware_numa {
    unsigned index; /* the operating system's number */
    unsigned cores; /* this worker's cores on this NUMA node */
    uint64_t memory_bytes;
};

struct hardware_device {
    enum hardware_kind kind;
    unsigned index; /* in the report; device 0 of node-a is called "node-a/0" in a cluster */
    char *name;
    char *cpuset; /* "0-3,8": its cores, or those near a GPU */
    unsigned cores;
    uint64_t memory_bytes;
    uint64_t library_bytes; /* the part of memory_bytes that libraries take in every rank */
    double flops;           /* floating-point operations per second */
    double bandwidth;       /* of its memory, bytes per second */
    /* GPUs only, else NULL and 0: the id by which an executor opens it, "cuda:GPU-6f0c..."; its
     * place on the bus; bytes per second from host memory and back. */
    char *id, *place;
    double upload, download;
    char *profile; /* what a probe measured, in the form of profile_encode(); NULL: nothing yet */
};

/* The speed of a link between devices: a transfer takes latency + bytes x seconds per byte. */
struct hardware_link {
    double latency_s;        /* per message */
    double seconds_per_byte; /* of a long message */
};

struct hardware_report {
    char *node; /* the worker's name */
    char *host; /* identifies the running machine: equal for all of its workers */
    char *processor;
    unsigned cores;
    char *cpuset;
    char *address;       /* where other machines reach this one for collectives; NULL: nowhere */
    char *release;       /* of the worker's program; NULL: unknown */
    bool oversubscribed; /* cores are shared, as there are more devices or workers than cores */
    uint64_t measured_unix_ms; /* when its devices were measured, by its own clock; 0: unknown */
    /* By which ranks on devices exchange data with other hosts, of the whole host; 0: unknown. */
    unsigned network_cards;
    uint64_t memory_bytes;
    struct hardware_cache *caches;
    size_t cache_count, cache_capacity;
    struct hardware_numa *numa;
    size_t numa_count, numa_capacity;
    struct hardware_device *devices;
    size_t device_count, device_capacity;
};

/* A report without caches, NUMA nodes and devices. Copies the texts. */
struct hardware_report *hardware_report_create(const char *node, const char *host,
                                               const char *processor, const char *cpuset);
void hardware_report_destroy(struct hardware_report *report);
struct hardware_report *hardware_report_copy(const struct hardware_report *report);
/* The part of the cores in `of` that are in `with` too, from 0 to 1; both are lists as in
 * "0-3,8". What is no such list counts as no cores. */
double hardware_overlap(const char *of, const char *with);
bool hardware_report_equal(const struct hardware_report *a, const struct hardware_report *b);

/* Append an entry. The texts of a device are copied and its index is set; the result is valid until
 * the next device is added. */
void hardware_report_add_cache(struct hardware_report *report, struct hardware_cache cache);
void hardware_report_add_numa(struct hardware_report *report, struct hardware_numa numa);
struct hardware_device *hardware_report_add_device(struct hardware_report *report,
                                                   const struct hardware_device *device);

/* Replace a text of a report or device, such as the address or profile, by a copy; "" and NULL mean
 * none. */
void hardware_set_text(char **field, const char *text);

/* Check that a report is consistent, since reports come from the network and from files. -EINVAL
 * with the field and what would be right. */
int hardware_report_check(const struct hardware_report *report, struct error *err);

/* "cpu", "gpu". */
const char *hardware_kind_name(enum hardware_kind kind);

/* A report as JSON, in base units, owned by the caller. Reading ignores unknown members and checks
 * the report; *out is set on success only and owned by the caller. */
json_t *hardware_report_to_json(const struct hardware_report *report);
int hardware_report_from_json(const json_t *json, struct hardware_report **out, struct error *err);

/* A report as a message, to be freed with gimbal__hardware_report__free_unpacked(message, NULL). */
struct Gimbal__HardwareReport *hardware_report_to_wire(const struct hardware_report *report);
/* Convert and check a message. *out is set on success only and owned by the caller. -EINVAL as
 * hardware_report_check(). */
int hardware_report_from_wire(const struct Gimbal__HardwareReport *message,
                              struct hardware_report **out, struct error *err);

/* A whole cluster: {"apiVersion": "gimbal/v1", "kind": "NodeList", "nodes": [...]}. Nodes must have
 * distinct names. The caller frees the reports with hardware_reports_destroy(). */
int hardware_reports_from_json(const json_t *json, struct hardware_report ***out, size_t *count,
                               struct error *err);
void hardware_reports_destroy(struct hardware_report **reports, size_t count);

#endif
