/* pages.h - what the coordinator tells over HTTP, and where its settings want it. */
#ifndef COORDINATOR_PAGES_H
#define COORDINATOR_PAGES_H

#include "coordinator/service/service.h"
#include "coordinator/settings.h"
#include "coordinator/web/web.h"

/* What is wrong with the settings, without the network. -EINVAL. */
int pages_check(const struct coordinator_settings *settings, struct error *err);
/* Where settings->http says, which was checked; the service is lent until web_close, the bundle
 * until this returns. As web_open, and secret_read for the token. */
int pages_open(const struct coordinator_settings *settings, const struct bundle *bundle,
               struct service *service, struct web **out, struct error *err);

#endif
