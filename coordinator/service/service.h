/* service.h - the coordinator: the deciding modules behind the calls of proto/coordinator.proto.
 *
 * A call becomes an event of membership or jobs, and its consequences are carried out in the same
 * turn, before the next call is looked at: devices are held, searches started, assignments left
 * where their workers poll for them. All changes of a turn become durable together before anybody
 * hears of them: before the call is answered and before a record leaves. So a coordinator may die
 * at any instruction, and the next one continues from the store.
 *
 * It runs on one thread, besides those that search for plans; the caller provides the clock. */
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
    bool drills;         /* faults may be ordered from it, for tests */
    struct store *store; /* lent for the service's life */
    uint64_t term;       /* of this start: higher than any before */
    uint64_t instance;   /* random number drawn at this start */
    /* Milliseconds of the calendar that never run backwards while the service lives; called on any
     * thread. */
    uint64_t (*clock_cb)(void);
};

/* Create the service and restore what the store has; the caller owns *out. -EINVAL: the
 * membership's times are invalid; otherwise errors of the store, or for lack of memory or
 * descriptors. */
int service_open(const struct service_options *options, struct service **out, struct error *err);
/* Accepts NULL. */
void service_close(struct service *service);

/* Start listening. Without a bundle: one listener on loopback for all roles, as
 * rpc_server_listen(). With a bundle: TLS, one listener per role, on PORT and the ports above it.
 * Port 0 chooses free ones. */
int service_listen(struct service *service, const char *address, const struct bundle *bundle,
                   struct error *err);
/* The address with its actual port, that of workers if there are several; lent. */
const char *service_address(const struct service *service);
/* For an address file: one line with the address or, with TLS, a line "ROLE ADDRESS" per role. The
 * caller frees it. */
char *service_address_lines(const struct service *service);

/* Register pre-arranged tokens from a file, one per line: worker or user, ID.SECRET, validity,
 * number of uses. Tokens known already stay as they are, with what is left of them. -EINVAL with
 * file and line, or errors of the store. */
int service_register_tokens(struct service *service, const char *path, struct error *err);

/* How long calls of a method (its number in common/rpc/services) took; as rpc_server_handling(). */
const struct histogram *service_handling(const struct service *service, unsigned method);

/* All metrics in the format of coordinator/metrics/exposition.h; the caller frees them. */
char *service_metrics(const struct service *service, size_t *size);

/* What programs are told over HTTP, as written by coordinator/resources; the caller owns *out.
 * Lists of nodes omit the profiles of devices; a job includes its plan, loss curve, checkpoints and
 * times. -ENOENT: unknown; for events, errors of the store. */
void service_list_nodes(const struct service *service, json_t **out);
int service_show_node(const struct service *service, const char *name, json_t **out,
                      struct error *err);
void service_list_jobs(const struct service *service, json_t **out);
int service_show_job(const struct service *service, const char *id, json_t **out,
                     struct error *err);
/* The timeline of a step of the job: as predicted for its plan, and as measured in the newest step
 * its ranks have reported. It is drawn in the background when first asked for; until then it is
 * reported as pending. */
int service_show_timeline(struct service *service, const char *id, json_t **out, struct error *err);
/* Events, each with its revision; the list has the revision of the newest event. */
int service_list_events(const struct service *service, const struct store_query *query,
                        json_t **out, struct error *err);
/* The revision of the newest event. */
uint64_t service_events_revision(const struct service *service);

/* Readable when there are calls. */
int service_fd(const struct service *service);
/* Readable when a plan was found. */
int service_plans_fd(const struct service *service);
/* Milliseconds until service_poll() has something to do without a call; -1: never. */
int service_timeout_ms(const struct service *service);
/* Handle what has arrived and what is due, without waiting. An error comes from the store and is
 * final: nobody has heard of what could not be stored, and nobody is answered any more. */
int service_poll(struct service *service, struct error *err);

#endif
