/* pages.h - the pages that the coordinator serves over HTTP, at the address in its settings.
 *
 * They are made on the thread that answers calls, from what is true at that moment, and change
 * nothing: a page reads the state. */
#ifndef COORDINATOR_PAGES_PAGES_H
#define COORDINATOR_PAGES_PAGES_H

#include "coordinator/turn/state.h"
#include "coordinator/web/web.h"

#include <jansson.h>

struct pages {
    struct state *state;         /* lent */
    struct timelines *timelines; /* those drawn last */
    struct web *web;
};

/* Where pages are served, and what whoever reads them has to show. */
struct pages_options {
    const char *http;            /* HOST:PORT; NULL: nowhere */
    const char *http_token;      /* (optional) file with the token */
    const struct bundle *bundle; /* (optional) our certificate, lent until pages_open() returns */
    bool tls;                    /* there is one */
};

/* Check the options without using the network; the bundle is not looked at. -EINVAL. */
int pages_check(const struct pages_options *options, struct error *err);
/* Serve as the options, which were checked, say. The state is lent until pages_close(). Errors of
 * web_open(), and of secret_read() for the token. */
int pages_open(const struct pages_options *options, struct state *state, struct pages **out,
               struct error *err);
/* Before the state is closed, with no turn in between. Accepts NULL. */
void pages_close(struct pages *pages);

/* Makers of pages, as of struct web_page; their data is struct pages. For pages.c and tests. */

/* metrics.c: figures in the format of exposition.h. */
int pages_metrics(void *pages, const struct web_request *request, char **out, size_t *size,
                  struct error *err);

/* api.c: nodes, jobs and events as JSON in the form of coordinator/resources. Lists of nodes omit
 * the profiles of devices; a job includes its plan, loss curve, checkpoints and times. */
int api_nodes(void *pages, const struct web_request *request, char **out, size_t *size,
              struct error *err);
int api_node(void *pages, const struct web_request *request, char **out, size_t *size,
             struct error *err);
int api_jobs(void *pages, const struct web_request *request, char **out, size_t *size,
             struct error *err);
/* For "j-1", and beneath it "j-1/timeline". */
int api_job(void *pages, const struct web_request *request, char **out, size_t *size,
            struct error *err);
/* The newest ?limit= events, or the oldest after ?after=, optionally of ?job= or ?node=; steps only
 * with ?steps=1. */
int api_events(void *pages, const struct web_request *request, char **out, size_t *size,
               struct error *err);
/* Events after ?after=, or after the Last-Event-ID, or otherwise from now on; optionally of ?job=
 * or ?node=; steps only with ?steps=1. */
extern const struct web_stream api_event_stream;

/* timelines.c: the timeline of a step of the job, as predicted for its plan, and as measured in the
 * newest step its ranks have reported. It is drawn in the background when first asked for; until
 * then it is reported as pending. -ENOENT: unknown. */
struct timelines *timelines_create(struct state *state);
void timelines_destroy(struct timelines *timelines);
int timelines_show(struct timelines *timelines, const char *job, json_t **out, struct error *err);

#endif
