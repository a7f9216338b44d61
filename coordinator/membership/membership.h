/* membership.h - which workers are alive, what each of them has, and who holds its devices.
 *
 * A worker is a name and an instance: a random number that it draws when it starts. It is alive
 * while anything is heard of it, suspect after three silent heartbeats, and lost when it was silent
 * for `dead_ms`, when its connection closes, or when a newer instance of it registers. A lost
 * instance never returns; the worker comes back as a new one.
 *
 * Times are milliseconds of the coordinator's clock, passed in and never read here. What happened
 * is appended to a list of events, which the caller acts on. */
#ifndef COORDINATOR_MEMBERSHIP_MEMBERSHIP_H
#define COORDINATOR_MEMBERSHIP_MEMBERSHIP_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"
#include "coordinator/membership/devices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKER_REASON_SIZE 256
#define WORKER_PAST 8 /* replaced instances that are remembered, to refuse them */

struct membership_config {
    uint64_t heartbeat_ms; /* how often a worker is to be heard of */
    uint64_t dead_ms;      /* lost after so much silence; more than 3 heartbeats */
    uint64_t forget_ms;    /* a lost worker is listed for so long */
};

#define MEMBERSHIP_CONFIG_DEFAULT                                                                  \
    ((struct membership_config){.heartbeat_ms = 1000, .dead_ms = 5000, .forget_ms = 3600000})

enum worker_state { WORKER_ALIVE, WORKER_SUSPECT, WORKER_DRAINING, WORKER_DEAD };

/* Lent by the functions below; read it, never write it. */
struct worker {
    char name[HARDWARE_NAME_SIZE];
    uint64_t instance;
    uint64_t past[WORKER_PAST]; /* replaced instances, newest first; 0 is none */
    struct hardware_report *report;
    char (*holders)[HOLDER_SIZE]; /* of each device of the report: a job's id, or "" */
    uint64_t heard_ms;
    uint64_t lost_ms; /* while dead */
    bool suspect, dead, draining;
    char drain_reason[WORKER_REASON_SIZE];
};

enum membership_event_kind {
    MEMBERSHIP_JOINED,    /* a new instance is alive */
    MEMBERSHIP_CHANGED,   /* the same instance reports other hardware figures */
    MEMBERSHIP_SUSPECTED, /* silent for three heartbeats */
    MEMBERSHIP_RECOVERED, /* a suspect was heard of again */
    MEMBERSHIP_DRAINING,  /* gets no further jobs; again when the reason is another */
    MEMBERSHIP_UNDRAINED,
    MEMBERSHIP_LOST,      /* its executors are gone, as far as anyone can know */
    MEMBERSHIP_FORGOTTEN, /* lost for so long that it is listed no more */
};

struct membership_event {
    enum membership_event_kind kind;
    char worker[HARDWARE_NAME_SIZE];
    uint64_t instance;
    char reason[WORKER_REASON_SIZE]; /* a sentence's end: "silent for 5.00 s"; may be "" */
};

/* Zeroed to begin with, and again by membership_events_finish(). */
struct membership_events {
    struct membership_event *items;
    size_t count, capacity;
};
void membership_events_finish(struct membership_events *events);

/* -EINVAL unless 0 < 3 heartbeats < dead_ms, in words. */
int membership_config_check(const struct membership_config *config, struct error *err);

/* The config has passed its check. */
struct membership *membership_create(const struct membership_config *config);
void membership_destroy(struct membership *membership);

/* A worker registers, or reports again; copies the report. It counts as a heartbeat.
 * -EINVAL: the report does not hold together, or a living instance reports other devices.
 * -EEXIST: a living worker on another host has the name.
 * -ESTALE: the instance was lost or replaced, and has to start anew. */
int membership_report(struct membership *membership, uint64_t instance,
                      const struct hardware_report *report, uint64_t now_ms,
                      struct membership_events *events, struct error *err);

/* Something has come from this instance: it lives, if it is a worker's present one. A suspect is
 * well again if it `follows` this start of the coordinator; one that does not know it yet may turn
 * out to refuse it, and stays one. */
void membership_hear(struct membership *membership, const char *name, uint64_t instance,
                     bool follows, uint64_t now_ms, struct membership_events *events);

/* -ENOENT: no such worker, it has to report first. -ESTALE as above. */
int membership_heartbeat(struct membership *membership, const char *name, uint64_t instance,
                         uint64_t now_ms, struct membership_events *events, struct error *err);

/* The worker's connection is gone: lost at once, unless the coordinator was busy less than a
 * heartbeat ago (membership_excuse): then the worker may have given up on it and connected anew,
 * and only its silence tells. Other instances than the current are ignored. */
void membership_disconnect(struct membership *membership, const char *name, uint64_t instance,
                           uint64_t now_ms, struct membership_events *events);

/* It is put out: lost at once, whatever its connection does. */
void membership_expel(struct membership *membership, const char *name, const char *reason,
                      uint64_t now_ms, struct membership_events *events);

/* The coordinator itself was busy, or stopped, for so long until now and took no calls: what
 * workers said meanwhile waits, so this is not their silence. Less than a heartbeat is passed over.
 */
void membership_excuse(struct membership *membership, uint64_t busy_ms, uint64_t now_ms);

/* Suspect, lose and forget whom it is time for. */
void membership_expire(struct membership *membership, uint64_t now_ms,
                       struct membership_events *events);

/* When membership_expire next has something to do; UINT64_MAX for never. */
uint64_t membership_next_ms(const struct membership *membership);

/* A worker as it was stored when the coordinator last stopped; copied, all but who holds what
 * (the jobs say that again). A living one is suspect from the start, so that nothing new is
 * placed on it, and lost unless it is heard of within dead_ms. A dead one has to be restored as
 * well: else its lost instance could return. So a worker is to be stored on every event but
 * suspicion and recovery. -EEXIST when the name is known already. */
int membership_restore(struct membership *membership, const struct worker *stored, uint64_t now_ms,
                       struct error *err);
struct worker *worker_copy(const struct worker *worker);
void worker_destroy(struct worker *worker);

/* Give a worker no further jobs, until undrained; survives its restarts. Where it is drained
 * already an empty reason leaves the one there is. -ENOENT in words. */
int membership_drain(struct membership *membership, const char *name, const char *reason,
                     struct membership_events *events, struct error *err);
int membership_undrain(struct membership *membership, const char *name,
                       struct membership_events *events, struct error *err);

/* Workers by name, the dead ones too; lent until the next call that is not const. */
size_t membership_count(const struct membership *membership);
const struct worker *membership_at(const struct membership *membership, size_t index);
const struct worker *membership_find(const struct membership *membership, const char *name);

/* What `gimbal nodes` shows: dead, else suspect, else draining, else alive. */
enum worker_state worker_state(const struct worker *worker);
const char *worker_state_name(enum worker_state state);
const char *membership_event_name(enum membership_event_kind kind);

/* All devices of workers that are not dead, by worker's name and index; the caller frees *out. */
size_t membership_devices(const struct membership *membership, struct device_view **out);

/* Make the job hold exactly these devices and no others; none releases all it has. Nothing
 * changes unless all can be held. Whether a device *should* be granted (a draining one not) is
 * the scheduler's rule; here is only: never to two.
 * -EBUSY: another job holds one. -ENOENT: one is gone, or is of another instance.
 * -EINVAL: one is named twice. */
int membership_hold(struct membership *membership, const char *job, const struct device_ref *refs,
                    size_t count, struct error *err);

#endif
