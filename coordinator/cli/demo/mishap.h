/* mishap.h - the demo's mishap: half-way a worker is killed, and the consequences are reported. */
#ifndef COORDINATOR_CLI_DEMO_MISHAP_H
#define COORDINATOR_CLI_DEMO_MISHAP_H

#include "coordinator/cli/client.h"
#include "coordinator/cli/demo/cluster.h"

#include <stdbool.h>
#include <stdio.h>

/* Initialize to zero; the first three members are lent by the caller. */
struct mishap {
    struct cluster *cluster;
    struct client *client;
    const char *job;
    char victim[32];                            /* its node; "": nobody was killed (yet) */
    uint64_t killed_ms, noticed_ms, went_on_ms; /* milliseconds since 1970; 0: not (yet) */
    json_t *replan; /* from the event that the job went on; NULL: none */
};

/* To be called with each event of the job. Once half of the steps are done, kills the worker of its
 * last rank. */
void mishap_watch(struct mishap *mishap, const Gimbal__Event *event);
/* The consequences, as lines for people and as JSON; NULL if nobody was killed. */
void mishap_print(const struct mishap *mishap, FILE *out);
json_t *mishap_json(const struct mishap *mishap);
void mishap_finish(struct mishap *mishap);

#endif
