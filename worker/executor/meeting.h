/* meeting.h - a rendezvous of ranks that are threads of one process. */
#ifndef WORKER_EXECUTOR_MEETING_H
#define WORKER_EXECUTOR_MEETING_H

#include "worker/collectives/collective.h"

struct meeting;

struct meeting *meeting_create(void);
/* Nobody waits any more. Accepts NULL. */
void meeting_destroy(struct meeting *meeting);
/* Lent; get waits until the key is there, or -ECANCELED when the meeting is abandoned. A key is
 * taken by the get that finds it: there is one for each put. */
struct rendezvous meeting_rendezvous(struct meeting *meeting);
/* Whoever waits gives up, and whoever comes later. Any thread. */
void meeting_abandon(struct meeting *meeting);

#endif
