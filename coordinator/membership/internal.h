/* internal.h - what the files of membership/ share; nobody else includes it. */
#ifndef COORDINATOR_MEMBERSHIP_INTERNAL_H
#define COORDINATOR_MEMBERSHIP_INTERNAL_H

#include "coordinator/membership/membership.h"

struct membership {
    struct membership_config config;
    struct worker **workers; /* by name */
    size_t count, capacity;
    uint64_t busy_until_ms; /* 0: the coordinator was never busy for long */
};

/* roster.c: as membership_find, to write. */
struct worker *membership_lookup(const struct membership *membership, const char *name);
/* roster.c: take a record whose name is not there yet; and one without an instance, dead until it
 * is revived. */
void membership_insert(struct membership *membership, struct worker *worker);
struct worker *membership_add(struct membership *membership, const char *name);

/* membership.c: the end of a worker's life. */
void worker_lose(struct worker *worker, uint64_t now_ms, const char *reason,
                 struct membership_events *events);
void membership_announce(struct membership_events *events, enum membership_event_kind kind,
                         const struct worker *worker, const char *reason);

#endif
