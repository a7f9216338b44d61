/* service.h - the coordinator: the modules that decide, behind the calls of
 * proto/coordinator.proto.
 *
 * A call becomes an event of membership or jobs; what follows from it is carried out in the same
 * turn, before the next call is looked at: devices are held, searches begun, assignments put where
 * their workers wait. What a turn has changed becomes durable as a whole before anybody hears of
 * any of it: before the call is answered and before a record leaves. So a coordinator may die at
 * any instruction, and the next one goes on from the store. One thread,
 * and beside it those that search plans; the clock is the caller's. */
#ifndef COORDINATOR_SERVICE_SERVICE_H
#define COORDINATOR_SERVICE_SERVICE_H

#include "common/base/error.h"
#include "common/base/histogram.h"
#include "common/trust/bundle.h"
#include "coordinator/membership/membership.h"
#include "coordinator/store/store.h"

#include <jansson.h>
#include <stdint.h>

struct service;

struct service_options {
    const char *release; /* lent for the service's life */
    struct membership_config membership;
    bool drills;         /* faults may be ordered of it */
    struct store *store; /* lent for the service's life */
    uint64_t term;       /* of this start: higher than any before */
    uint64_t instance;   /* random number of this start */
    /* Milliseconds of the calendar that never run backwards while the service lives; called on
     * any thread. */
    uint64_t (*clock_cb)(void);
};

/* Take up what the store has. *out is yours. -EINVAL for the membership's times; else what the
 * store says, or for want of memory or descriptors. */
int service_open(const struct service_options *options, struct service **out, struct error *err);
/* Accepts NULL. */
void service_close(struct service *service);

/* Without a bundle, on loopback and for everybody, as rpc_server_listen; with one, with TLS and
 * once for each role, at PORT and those above it. Port 0 takes free ones. */
int service_listen(struct service *service, const char *address, const struct bundle *bundle,
                   struct error *err);
/* With its real port, of the workers where there are more; lent. */
const char *service_address(const struct service *service);
/* For a file: a line with the address, or with TLS a line "ROLE ADDRESS" for each role; yours. */
char *service_address_lines(const struct service *service);

/* Tokens that were agreed upon beforehand, a line each: worker or user, ID.SECRET, how long it
 * lasts, uses. Those that are known already stay as they are, with what is left of them. -EINVAL
 * with file and line, or what the store says. */
int service_register_tokens(struct service *service, const char *path, struct error *err);

/* How long calls took, by number of method of common/rpc/services: as rpc_server_handling. */
const struct histogram *service_handling(const struct service *service, unsigned method);

/* All that Prometheus is to know, as coordinator/metrics/exposition.h has it; yours. */
char *service_metrics(const struct service *service, size_t *size);

/* What programs are told over HTTP, as coordinator/resources writes it; *out is yours. Lists of
 * nodes are without the profiles of their devices; a job is with its plan, its curve, its
 * checkpoints and its times. -ENOENT in words; events: what the store says. */
void service_list_nodes(const struct service *service, json_t **out);
int service_show_node(const struct service *service, const char *name, json_t **out,
                      struct error *err);
void service_list_jobs(const struct service *service, json_t **out);
int service_show_job(const struct service *service, const char *id, json_t **out,
                     struct error *err);
/* A step of the job in two colours: what was predicted of its plan, and the newest step that its
 * ranks told of. It is drawn beside us when somebody first asks; until then it is said to be
 * pending. */
int service_show_timeline(struct service *service, const char *id, json_t **out, struct error *err);
/* Each with its revision, and the list with that of the newest event that there is. */
int service_list_events(const struct service *service, const struct store_query *query,
                        json_t **out, struct error *err);
/* That of the newest event that there is. */
uint64_t service_events_revision(const struct service *service);

/* Readable when there are calls. */
int service_fd(const struct service *service);
/* Readable when a plan was found. */
int service_plans_fd(const struct service *service);
/* Milliseconds until service_poll has something to do of its own accord; -1: never. */
int service_timeout_ms(const struct service *service);
/* Handle what has come and what is due; does not wait. An error is the store's and final: nobody
 * has heard of what could not be stored, and nobody is answered any more. */
int service_poll(struct service *service, struct error *err);

#endif
