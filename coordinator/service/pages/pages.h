/* pages.h - what pages over HTTP show, besides what service.h declares; for service/. */
#ifndef COORDINATOR_SERVICE_PAGES_PAGES_H
#define COORDINATOR_SERVICE_PAGES_PAGES_H

#include "coordinator/service/internal.h"

/* timelines.c: whether the answer is still wanted; take it; and free all timelines. */
bool service_awaits_picture(const struct service *service, const struct asker *asker);
void service_take_picture(struct service *service, const struct asker *asker,
                          struct planning_answer *answer);
void service_forget_timelines(struct service *service);

#endif
