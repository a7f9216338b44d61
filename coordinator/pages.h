/* pages.h - the pages that the coordinator serves over HTTP, at the address in its settings. */
#ifndef COORDINATOR_PAGES_H
#define COORDINATOR_PAGES_H

#include "coordinator/service/service.h"
#include "coordinator/settings.h"
#include "coordinator/web/web.h"

/* Check the settings without using the network. -EINVAL. */
int pages_check(const struct coordinator_settings *settings, struct error *err);
/* Serve at settings->http, which was checked. The service is lent until web_close(), the bundle
 * until this returns. Errors of web_open(), and of secret_read() for the token. */
int pages_open(const struct coordinator_settings *settings, const struct bundle *bundle,
               struct service *service, struct web **out, struct error *err);

#endif
