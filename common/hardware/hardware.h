/* hardware.h - what one worker has: cores, caches, memory, and the devices that it offers.
 *
 * A device is what the coordinator grants whole and a rank runs on: a GPU, or a set of cores.
 * `memory_bytes` of a report and of its devices is what this worker may use, not what the
 * machine holds: workers that share a host divide its memory as they divide its cores.
 * Rates are per second and 0 while unmeasured. */
#ifndef COMMON_HARDWARE_HARDWARE_H
#define COMMON_HARDWARE_HARDWARE_H

#include "common/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HARDWARE_NAME_SIZE 64      /* of a node's name, with its final NUL */
#define HARDWARE_TEXT_SIZE 1024    /* of any other text in a report */
#define HARDWARE_PROFILE_SIZE 8192 /* of a device's profile */
#define HARDWARE_DEVICES_MAX 1024u /* of one worker */
#define HARDWARE_PIECES_MAX 64     /* of its cores: one process measures them all */

enum hardware_kind { HARDWARE_CPU, HARDWARE_GPU };

struct hardware_cache {
    unsigned level;
    uint64_t size_bytes; /* of one */
    unsigned count;      /* how many this worker's cores touch */
};

struct hardware_numa {
    unsigned index; /* the operating system's number */
    unsigned cores; /* of this worker, on this node */
    uint64_t memory_bytes;
};

struct hardware_device {
    enum hardware_kind kind;
    unsigned index; /* its place in the report; "node-a/0" names it in a cluster */
    char *name;
    char *cpuset; /* "0-3,8": its cores, or those next to a GPU */
    unsigned cores;
    uint64_t memory_bytes;
    uint64_t library_bytes; /* of those: what its libraries take in every rank */
    double flops;           /* floating-point operations per second */
    double bandwidth;       /* bytes of its memory per second */
    /* Of a GPU: "cuda:GPU-6f0c...", by which an executor opens it; its place on the bus; bytes per
     * second from the host's memory, and back. NULL and 0 otherwise. */
    char *id, *place;
    double upload, download;
    char *profile; /* what a probe measured, as profile_encode() writes it; NULL: nothing yet */
};

struct hardware_report {
    char *node; /* the worker's name */
    char *host; /* the same for all workers of one running machine */
    char *processor;
    unsigned cores;
    char *cpuset;
    char *address;       /* where other machines reach this one for collectives; NULL: none does */
    char *release;       /* of the worker's program; NULL: it does not say */
    bool oversubscribed; /* some core is shared: more devices or workers than cores */
    uint64_t measured_unix_ms; /* when its devices were, by its own calendar; 0: not told */
    uint64_t memory_bytes;
    struct hardware_cache *caches;
    size_t cache_count, cache_capacity;
    struct hardware_numa *numa;
    size_t numa_count, numa_capacity;
    struct hardware_device *devices;
    size_t device_count, device_capacity;
};

/* Copies the texts; no caches, memory nodes or devices yet. */
struct hardware_report *hardware_report_create(const char *node, const char *host,
                                               const char *processor, const char *cpuset);
void hardware_report_destroy(struct hardware_report *report);
struct hardware_report *hardware_report_copy(const struct hardware_report *report);
bool hardware_report_equal(const struct hardware_report *a, const struct hardware_report *b);

/* Append one. A device's texts are copied and its index is set; the result is lent until the
 * next device is added. */
void hardware_report_add_cache(struct hardware_report *report, struct hardware_cache cache);
void hardware_report_add_numa(struct hardware_report *report, struct hardware_numa numa);
struct hardware_device *hardware_report_add_device(struct hardware_report *report,
                                                   const struct hardware_device *device);

/* Sets the report's address, or a device's profile, to a copy of text; "" and NULL are none. */
void hardware_set_text(char **field, const char *text);

/* Does the report hold together? Reports come from the network and from files, so whoever takes
 * one in asks. -EINVAL with the field and what would be right. */
int hardware_report_check(const struct hardware_report *report, struct error *err);

/* 1 to 63 letters, digits, '.', '-' and '_', of which the first is a letter or digit. */
bool hardware_name_valid(const char *name);

/* "cpu", "gpu". */
const char *hardware_kind_name(enum hardware_kind kind);

/* JSON in base units; the caller owns the result. Reading ignores members that it does not know
 * and checks what it read; *out is written on success only, and the caller's. */
json_t *hardware_report_to_json(const struct hardware_report *report);
int hardware_report_from_json(const json_t *json, struct hardware_report **out, struct error *err);

/* A whole recorded cluster: {"apiVersion": "gimbal/v1", "kind": "NodeList", "nodes": [...]}.
 * Two nodes with one name are refused. The caller frees the reports and the array. */
json_t *hardware_reports_to_json(struct hardware_report *const *reports, size_t count);
int hardware_reports_from_json(const json_t *json, struct hardware_report ***out, size_t *count,
                               struct error *err);
void hardware_reports_destroy(struct hardware_report **reports, size_t count);

#endif
