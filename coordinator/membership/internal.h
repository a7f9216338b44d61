/* internal.h - shared by the files of membership/; not for others. */
#ifndef COORDINATOR_MEMBERSHIP_INTERNAL_H
#define COORDINATOR_MEMBERSHIP_INTERNAL_H

#include "coordinator/membership/membership.h"

struct membership {
    struct membership_config config;
    struct worker **workers; /* sorted by name */
    size_t count, capacity;
    uint64_t busy_until_ms; /* 0: the coordinator has not been busy for long */
};

/* roster.c: like membership_find(), but writable. */
struct worker *membership_lookup(const struct membership *membership, const char *name);
/* roster.c: membership_insert() adds a record whose name is new and takes ownership;
 * membership_add() adds one without an instance, dead until it is revived. */
void membership_insert(struct membership *membership, struct worker *worker);
struct worker *membership_add(struct membership *membership, const char *name);

/* membership.c: end a worker's life, and append an event. */
void worker_lose(struct worker *worker, uint64_t now_ms, const char *reason,
                 struct membership_events *events);
void membership_announce(struct membership_events *events, enum membership_event_kind kind,
                         const struct worker *worker, const char *reason);

#endif
