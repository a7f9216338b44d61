/* pages.c - the table of pages.
 *
 * /livez and /readyz are equivalent: whoever gets an answer has a coordinator whose loop runs and
 * which has restored its store, since it does not listen before that. A failing store ends it. */
#include "coordinator/pages.h"

#include "common/trust/credential.h"
#include "common/trust/secret.h"
#include "coordinator/api.h"
#include "coordinator/dashboard/dashboard.h" /* made by embed.py */
#include "coordinator/metrics/exposition.h"

#include <errno.h>

#define JSON "application/json"
#define VERSION "{\"apiVersion\":\"gimbal/v1\",\"kind\":\"Version\",\"release\":\"" RELEASE "\"}\n"

static int metrics(void *service, const struct web_request *request, char **out, size_t *size,
                   struct error *err)
{
    (void)request, (void)err;
    *out = service_metrics(service, size);
    return 0;
}

#define FIXED(text) .bytes = (text), .size = sizeof(text) - 1

static const struct web_page pages[] = {
    {"/metrics", EXPOSITION_TYPE, .make_cb = metrics},
    {"/livez", "text/plain; charset=utf-8", .open = true, FIXED("ok\n")},
    {"/readyz", "text/plain; charset=utf-8", .open = true, FIXED("ok\n")},
    {"/version", JSON, .open = true, FIXED(VERSION)},
    {"/api/v1/nodes", JSON, .make_cb = api_nodes},
    {"/api/v1/nodes/", JSON, .make_cb = api_node},
    {"/api/v1/jobs", JSON, .make_cb = api_jobs},
    {"/api/v1/jobs/", JSON, .make_cb = api_job},
    {"/api/v1/events", JSON, .make_cb = api_events},
    {"/api/v1/events/stream", "text/event-stream", .stream = &api_event_stream},
    DASHBOARD,
    {.path = NULL},
};

/* The caller frees *token with secret_free(); NULL if none is required. */
static int read_token(const struct coordinator_settings *settings, char **token, struct error *err)
{
    *token = NULL;
    int rc = settings->http_token ? credential_read_token(settings->http_token, token, err) : 0;
    return rc < 0 ? error_prefix(err, rc, "http_token") : 0;
}

int pages_check(const struct coordinator_settings *settings, struct error *err)
{
    char *token;
    if (!settings->http && settings->http_token)
        return error_set(err, -EINVAL, "http_token: there is no http that would ask for it");
    if (!settings->http)
        return 0;
    int rc = web_check(settings->http, settings->tls != NULL, settings->http_token != NULL, err);
    if (rc < 0)
        return error_prefix(err, rc, "http");
    rc = read_token(settings, &token, err);
    secret_free(token);
    return rc;
}

int pages_open(const struct coordinator_settings *settings, const struct bundle *bundle,
               struct service *service, struct web **out, struct error *err)
{
    struct web_options options = {
        .address = settings->http, .bundle = bundle, .pages = pages, .data = service};
    char *token;
    int rc = read_token(settings, &token, err);
    if (rc < 0)
        return rc;
    options.token = token;
    rc = web_open(&options, out, err);
    secret_free(token);
    return rc < 0 ? error_prefix(err, rc, "http") : 0;
}
