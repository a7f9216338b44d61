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

#include "common/base/histogram.h"
#include "common/trust/bundle.h"
#include "coordinator/turn/state.h"

struct service;

/* Create the service and restore what the store has; the caller owns *out. -EINVAL: the
 * membership's times are invalid; otherwise errors of the store, or for lack of memory or
 * descriptors. */
int service_open(const struct state_options *options, struct service **out, struct error *err);
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

/* How long calls of a method (its number in common/rpc/coordinator_service.h) took; as
 * rpc_server_handling(). */
const struct histogram *service_handling(const struct service *service, unsigned method);

/* What it knows, lent for its life: for pages, which do not change it. */
struct state *service_state(struct service *service);

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
