/* rendezvous.h - a rendezvous for ranks that are threads of this process. */
#ifndef WORKER_COLLECTIVES_RENDEZVOUS_H
#define WORKER_COLLECTIVES_RENDEZVOUS_H

#include "worker/collectives/collective.h"

struct local_rendezvous;

/* STAYING: a value stays for everybody who asks. TAKEN: the get that finds a value removes it, so
 * there is one get for each put. */
enum rendezvous_values { RENDEZVOUS_STAYING, RENDEZVOUS_TAKEN };

struct local_rendezvous *local_rendezvous_create(enum rendezvous_values values);
/* No thread may be waiting in it. Accepts NULL. */
void local_rendezvous_destroy(struct local_rendezvous *store);
/* Its rendezvous; lent. get blocks until the key exists; -ECANCELED once it is
 * abandoned. */
struct rendezvous local_rendezvous_lend(struct local_rendezvous *store);
/* Make current and later waits fail. Any thread. */
void local_rendezvous_abandon(struct local_rendezvous *store);

#endif
