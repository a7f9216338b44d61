/* api.h - the HTTP API: nodes, jobs and events as JSON in the form of coordinator/resources.
 *
 * All are callbacks of struct web_page, and their data is the service. */
#ifndef COORDINATOR_API_H
#define COORDINATOR_API_H

#include "coordinator/web/web.h"

int api_nodes(void *service, const struct web_request *request, char **out, size_t *size,
              struct error *err);
int api_node(void *service, const struct web_request *request, char **out, size_t *size,
             struct error *err);
int api_jobs(void *service, const struct web_request *request, char **out, size_t *size,
             struct error *err);
/* For "j-1", and beneath it "j-1/timeline". */
int api_job(void *service, const struct web_request *request, char **out, size_t *size,
            struct error *err);
/* The newest ?limit= events, or the oldest after ?after=, optionally of ?job= or ?node=; steps only
 * with ?steps=1. */
int api_events(void *service, const struct web_request *request, char **out, size_t *size,
               struct error *err);
/* Events after ?after=, or after the Last-Event-ID, or otherwise from now on; optionally of ?job=
 * or ?node=; steps only with ?steps=1. */
extern const struct web_stream api_event_stream;

#endif
