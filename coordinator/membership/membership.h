/* membership.h - which workers are alive, what hardware each of them has, and which job holds its
 * devices.
 *
 * A worker is identified by its name and by an instance, a random number drawn when it starts. It
 * is alive as long as it is heard of, suspect after three heartbeats of silence, and lost after
 * `dead_ms` of silence, when its connection closes, or when a newer instance registers. A lost
 * instance never returns; the worker comes back as a new one.
 *
 * Times are milliseconds of the coordinator's clock, passed in and never read here. What happens is
 * appended to a list of events, which the caller acts upon. Not thread-safe. */
#ifndef COORDINATOR_MEMBERSHIP_MEMBERSHIP_H
#define COORDINATOR_MEMBERSHIP_MEMBERSHIP_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"
#include "coordinator/membership/devices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKER_REASON_SIZE 256
#define WORKER_PAST 8 /* replaced instances that are remembered so that they can be refused */

struct membership_config {
    uint64_t heartbeat_ms; /* interval at which workers are expected to be heard of */
    uint64_t dead_ms;      /* silence after which a worker is lost; more than 3 heartbeats */
    uint64_t forget_ms;    /* how long a lost worker stays listed */
};

#define MEMBERSHIP_CONFIG_DEFAULT                                                                  \
    ((struct membership_config){.heartbeat_ms = 1000, .dead_ms = 5000, .forget_ms = 3600000})

enum worker_state { WORKER_ALIVE, WORKER_SUSPECT, WORKER_DRAINING, WORKER_LOST };

/* Lent by the functions below; read-only for callers. */
struct worker {
    char name[HARDWARE_NAME_SIZE];
    uint64_t instance;
    uint64_t past[WORKER_PAST]; /* replaced instances, newest first; 0: none */
    struct hardware_report *report;
    char (*holders)[HOLDER_SIZE]; /* per device of the report: the holding job's id, or "" */
    uint64_t heard_ms;            /* when it was last heard of */
    uint64_t lost_ms;             /* valid while dead */
    char lost_reason[WORKER_REASON_SIZE]; /* of a dead one; "" if it was lost before a restart */
    bool suspect, dead, draining;
    char drain_reason[WORKER_REASON_SIZE];
};

enum membership_event_kind {
    MEMBERSHIP_JOINED,    /* a new instance is alive */
    MEMBERSHIP_CHANGED,   /* the same instance reports different hardware figures */
    MEMBERSHIP_SUSPECTED, /* silent for three heartbeats */
    MEMBERSHIP_RECOVERED, /* a suspect was heard of again */
    MEMBERSHIP_DRAINING,  /* gets no more jobs; repeated if the reason changes */
    MEMBERSHIP_UNDRAINED,
    MEMBERSHIP_LOST,      /* its executors are gone, as far as anyone can know */
    MEMBERSHIP_FORGOTTEN, /* no longer listed, having been lost for long */
};

struct membership_event {
    enum membership_event_kind kind;
    char worker[HARDWARE_NAME_SIZE];
    uint64_t instance;
    /* completes a sentence, such as "silent for 5.00 s"; may be "" */
    char reason[WORKER_REASON_SIZE];
};

/* Initialize to zero; membership_events_finish() leaves it so. */
struct membership_events {
    struct membership_event *items;
    size_t count, capacity;
};
void membership_events_finish(struct membership_events *events);

/* -EINVAL with a message unless 0 < 3 heartbeats < dead_ms. */
int membership_config_check(const struct membership_config *config, struct error *err);

/* The config must have passed membership_config_check(). */
struct membership *membership_create(const struct membership_config *config);
void membership_destroy(struct membership *membership);

/* A worker registers or reports again, which also counts as a heartbeat. The report is copied.
 * -EINVAL: the report is inconsistent, or a living instance reports different devices. -EEXIST: a
 * living worker on another host has this name, or one on this host that is not suspect. -ESTALE:
 * the instance was lost or replaced and has to register as a new one. */
int membership_report(struct membership *membership, uint64_t instance,
                      const struct hardware_report *report, uint64_t now_ms,
                      struct membership_events *events, struct error *err);

/* Something was received from this instance: if it is the worker's current one, the worker is
 * alive. A suspect recovers only if it `follows` this start of the coordinator; one that does not
 * know of this start may turn out to refuse it. */
void membership_hear(struct membership *membership, const char *name, uint64_t instance,
                     bool follows, uint64_t now_ms, struct membership_events *events);

/* A heartbeat. -ENOENT: the worker, or this instance, has not reported yet. -ESTALE as above. */
int membership_heartbeat(struct membership *membership, const char *name, uint64_t instance,
                         uint64_t now_ms, struct membership_events *events, struct error *err);

/* The worker's connection closed: it is lost at once, unless the coordinator was busy less than a
 * heartbeat ago (membership_excuse()). In that case the worker may have given up on the connection
 * and made a new one, so only its silence counts. Instances other than the current one are
 * ignored. */
void membership_disconnect(struct membership *membership, const char *name, uint64_t instance,
                           uint64_t now_ms, struct membership_events *events);

/* Expel a worker: it is lost at once, whatever its connection does. */
void membership_expel(struct membership *membership, const char *name, const char *reason,
                      uint64_t now_ms, struct membership_events *events);

/* The coordinator itself was busy or stopped for busy_ms until now and received nothing. What
 * workers sent meanwhile is still queued, so this does not count as their silence. Less than a
 * heartbeat is ignored. */
void membership_excuse(struct membership *membership, uint64_t busy_ms, uint64_t now_ms);

/* Suspect, lose and forget the workers whose time has come. */
void membership_expire(struct membership *membership, uint64_t now_ms,
                       struct membership_events *events);

/* When membership_expire() next has something to do; UINT64_MAX: never. */
uint64_t membership_next_ms(const struct membership *membership);

/* Add a worker as it was stored when the coordinator last ran; copied except for the holders, which
 * the jobs restore. A living worker starts as suspect, so nothing new is placed on it, and is lost
 * unless heard of within dead_ms. Dead workers must be restored too, or their lost instances could
 * return. So workers have to be stored on every event except suspicion and recovery. -EEXIST if the
 * name is known already; -EINVAL if its report is inconsistent. */
int membership_restore(struct membership *membership, const struct worker *stored, uint64_t now_ms,
                       struct error *err);
struct worker *worker_copy(const struct worker *worker);
void worker_destroy(struct worker *worker);

/* Give a worker no more jobs until it is undrained; this survives its restarts. If it is draining
 * already, an empty reason keeps the previous one. -ENOENT: no such worker. */
int membership_drain(struct membership *membership, const char *name, const char *reason,
                     struct membership_events *events, struct error *err);
int membership_undrain(struct membership *membership, const char *name,
                       struct membership_events *events, struct error *err);

/* Workers in order of name, including dead ones; lent until the next non-const call.
 * membership_find() returns NULL if the name is unknown. */
size_t membership_count(const struct membership *membership);
const struct worker *membership_at(const struct membership *membership, size_t index);
const struct worker *membership_find(const struct membership *membership, const char *name);

/* The state that `gimbal nodes` shows: dead, else suspect, else draining, else alive. */
enum worker_state worker_state(const struct worker *worker);
const char *worker_state_name(enum worker_state state);
const char *membership_event_name(enum membership_event_kind kind);

/* All devices of workers that are not dead, ordered by worker name and index. Returns their number;
 * the caller frees *out. */
size_t membership_devices(const struct membership *membership, struct device_view **out);

/* Make the job hold exactly these devices; none releases all it has. Nothing changes unless all of
 * them can be held. Whether a device should be granted is the scheduler's decision; this only
 * ensures that no device is held twice. -EBUSY: another job holds one. -ENOENT: one is gone or
 * belongs to another instance. -EINVAL: one is named twice, or the job's id is invalid. */
int membership_hold(struct membership *membership, const char *job, const struct device_ref *refs,
                    size_t count, struct error *err);

#endif
