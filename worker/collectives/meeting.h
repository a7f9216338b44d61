/* meeting.h - a rendezvous for ranks that are threads of this process. */
#ifndef WORKER_COLLECTIVES_MEETING_H
#define WORKER_COLLECTIVES_MEETING_H

#include "worker/collectives/collective.h"

struct meeting;

/* STAYING: a value stays for everybody who asks. TAKEN: the get that finds a value removes it, so
 * there is one get for each put. */
enum meeting_values { MEETING_STAYING, MEETING_TAKEN };

struct meeting *meeting_create(enum meeting_values values);
/* No thread may be waiting in it. Accepts NULL. */
void meeting_destroy(struct meeting *meeting);
/* Its rendezvous; lent. get blocks until the key exists; -ECANCELED once the meeting is
 * abandoned. */
struct rendezvous meeting_rendezvous(struct meeting *meeting);
/* Make current and later waits fail. Any thread. */
void meeting_abandon(struct meeting *meeting);

#endif
