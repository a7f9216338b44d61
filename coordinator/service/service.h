/* service.h - the coordinator: the modules that decide, behind the calls of
 * proto/coordinator.proto.
 *
 * A call becomes an event of membership or jobs; what follows from it is carried out in the same
 * turn, before the next call is looked at: devices are held, plans made, assignments put where
 * their workers wait. One thread; the clock is the caller's. */
#ifndef COORDINATOR_SERVICE_SERVICE_H
#define COORDINATOR_SERVICE_SERVICE_H

#include "common/base/error.h"
#include "coordinator/membership/membership.h"

#include <stdint.h>

struct service;

struct service_options {
    const char *release; /* lent for the service's life */
    struct membership_config membership;
    uint64_t term;              /* of this start: higher than any before */
    uint64_t instance;          /* random number of this start */
    uint64_t (*clock_cb)(void); /* milliseconds that never run backwards; on any thread */
    uint64_t unix_offset_ms;    /* what makes them milliseconds of the calendar */
};

/* *out is yours. -EINVAL for the membership's times; else for want of memory or descriptors. */
int service_open(const struct service_options *options, struct service **out, struct error *err);
/* Accepts NULL. */
void service_close(struct service *service);

/* As rpc_server_listen, for everybody. */
int service_listen(struct service *service, const char *address, struct error *err);
/* With its real port; lent. */
const char *service_address(const struct service *service);

/* Readable when there are calls. */
int service_fd(const struct service *service);
/* Milliseconds until service_poll has something to do of its own accord; -1: never. */
int service_timeout_ms(const struct service *service);
/* Handle what has come and what is due; does not wait. */
void service_poll(struct service *service);

#endif
