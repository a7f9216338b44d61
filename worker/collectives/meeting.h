/* meeting.h - a rendezvous of ranks that are threads of this process. */
#ifndef WORKER_COLLECTIVES_MEETING_H
#define WORKER_COLLECTIVES_MEETING_H

#include "worker/collectives/collective.h"

struct meeting;

/* A value stays for all who ask for it, or is taken by the get that finds it: there is one for each
 * put. */
enum meeting_values { MEETING_STAYING, MEETING_TAKEN };

struct meeting *meeting_create(enum meeting_values values);
/* Nobody waits any more. Accepts NULL. */
void meeting_destroy(struct meeting *meeting);
/* Lent; get waits until the key is there, or -ECANCELED when the meeting is abandoned. */
struct rendezvous meeting_rendezvous(struct meeting *meeting);
/* Whoever waits gives up, and whoever comes later. Any thread. */
void meeting_abandon(struct meeting *meeting);

#endif
