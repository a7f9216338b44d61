/* api.h - the pages for programs: nodes, jobs and events as JSON, as coordinator/resources has it.
 *
 * All are callbacks of struct web_page, and their data is the service. */
#ifndef COORDINATOR_API_H
#define COORDINATOR_API_H

#include "coordinator/web/web.h"

int api_nodes(void *service, const struct web_question *question, char **out, size_t *size,
              struct error *err);
int api_node(void *service, const struct web_question *question, char **out, size_t *size,
             struct error *err);
int api_jobs(void *service, const struct web_question *question, char **out, size_t *size,
             struct error *err);
/* "j-1", and beneath it "j-1/timeline". */
int api_job(void *service, const struct web_question *question, char **out, size_t *size,
            struct error *err);
/* The newest ?limit=, or the oldest behind ?after=, of ?job= or ?node=; steps only with ?steps=1.
 */
int api_events(void *service, const struct web_question *question, char **out, size_t *size,
               struct error *err);
/* What comes behind ?after=, or behind the Last-Event-ID, else from now on; of ?job= or ?node=,
 * steps only with ?steps=1. */
extern const struct web_stream api_event_stream;

#endif
