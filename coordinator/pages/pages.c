/* pages.c - the table of pages.
 *
 * /livez and /readyz are equivalent: whoever gets an answer has a coordinator whose loop runs and
 * which has restored its store, since it does not listen before that. A failing store ends it. */
#include "coordinator/pages/pages.h"

#include "common/base/memory.h"
#include "common/trust/secret.h"
#include "coordinator/dashboard/dashboard.h" /* made by embed.py */
#include "coordinator/pages/exposition.h"

#include <errno.h>
#include <stdlib.h>

#define JSON "application/json"
#define VERSION "{\"apiVersion\":\"gimbal/v1\",\"kind\":\"Version\",\"release\":\"" RELEASE "\"}\n"

#define FIXED(text) .bytes = (text), .size = sizeof(text) - 1

static const struct web_page table[] = {
    {"/metrics", EXPOSITION_TYPE, .make_cb = pages_metrics},
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
static int pages_read_token(const struct pages_options *options, char **token, struct error *err)
{
    *token = NULL;
    int rc = options->http_token ? credential_read_token(options->http_token, token, err) : 0;
    return rc < 0 ? error_prefix(err, rc, "http_token") : 0;
}

int pages_check(const struct pages_options *options, struct error *err)
{
    char *token;
    if (!options->http && options->http_token)
        return error_set(err, -EINVAL, "http_token: there is no http that would ask for it");
    if (!options->http)
        return 0;
    int rc = web_check(options->http, options->tls, options->http_token != NULL, err);
    if (rc < 0)
        return error_prefix(err, rc, "http");
    rc = pages_read_token(options, &token, err);
    secret_free(token);
    return rc;
}

int pages_open(const struct pages_options *options, struct state *state, struct pages **out,
               struct error *err)
{
    struct web_options web = {.address = options->http, .bundle = options->bundle, .pages = table};
    char *token;
    int rc = pages_read_token(options, &token, err);
    if (rc < 0)
        return rc;
    struct pages *pages = xcalloc(1, sizeof *pages);
    pages->state = state;
    pages->timelines = timelines_create(state);
    web.token = token;
    web.data = pages;
    rc = web_open(&web, &pages->web, err);
    secret_free(token);
    if (rc < 0) {
        pages_close(pages);
        return error_prefix(err, rc, "http");
    }
    *out = pages;
    return 0;
}

void pages_close(struct pages *pages)
{
    if (!pages)
        return;
    web_close(pages->web);
    timelines_destroy(pages->timelines);
    free(pages);
}
