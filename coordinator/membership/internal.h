/* internal.h - what membership.c and its views share; nobody else includes it. */
#ifndef COORDINATOR_MEMBERSHIP_INTERNAL_H
#define COORDINATOR_MEMBERSHIP_INTERNAL_H

#include "coordinator/membership/membership.h"

struct membership {
    struct membership_config config;
    struct worker **workers; /* by name */
    size_t count, capacity;
    uint64_t busy_until_ms; /* 0: the coordinator was never busy for long */
};

/* As membership_find, to write. */
struct worker *membership_lookup(const struct membership *membership, const char *name);

#endif
