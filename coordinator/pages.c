/* pages.c - the table of pages.
 *
 * /livez and /readyz are the same to be asked for: whoever is answered has a coordinator whose loop
 * goes round, and which has taken up its store, for it listens no earlier. A store that fails ends
 * it. */
#include "coordinator/pages.h"

#include "common/base/memory.h"
#include "common/trust/credential.h"
#include "common/trust/secret.h"
#include "coordinator/metrics/exposition.h"

#include <errno.h>
#include <string.h>

static char *metrics(void *data, size_t *size)
{
    return service_metrics(data, size);
}

static char *well(void *data, size_t *size)
{
    static const char words[] = "ok\n";
    (void)data;
    *size = strlen(words);
    return xstrdup(words);
}

static const struct web_page pages[] = {
    {"/metrics", EXPOSITION_TYPE, false, metrics},
    {"/livez", "text/plain; charset=utf-8", true, well},
    {"/readyz", "text/plain; charset=utf-8", true, well},
    {NULL, NULL, false, NULL},
};

int pages_check(const struct coordinator_settings *settings, struct error *err)
{
    if (!settings->http && settings->http_token)
        return error_set(err, -EINVAL, "http_token: there is no http that would ask for it");
    if (!settings->http)
        return 0;
    int rc = web_check(settings->http, settings->tls != NULL, settings->http_token != NULL, err);
    return rc < 0 ? error_prefix(err, rc, "http") : 0;
}

int pages_open(const struct coordinator_settings *settings, const struct bundle *bundle,
               struct service *service, struct web **out, struct error *err)
{
    struct web_options options = {
        .address = settings->http, .bundle = bundle, .pages = pages, .data = service};
    char *token = NULL;
    int rc = settings->http_token ? credential_read_token(settings->http_token, &token, err) : 0;
    if (rc < 0)
        return error_prefix(err, rc, "http_token");
    options.token = token;
    rc = web_open(&options, out, err);
    secret_free(token);
    return rc < 0 ? error_prefix(err, rc, "http") : 0;
}
