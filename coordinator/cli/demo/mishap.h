/* mishap.h - the demo's mishap: half-way a worker is killed, and what comes of that is told. */
#ifndef COORDINATOR_CLI_DEMO_MISHAP_H
#define COORDINATOR_CLI_DEMO_MISHAP_H

#include "coordinator/cli/client.h"
#include "coordinator/cli/demo/cluster.h"

#include <stdbool.h>
#include <stdio.h>

/* Zeroed to begin with; the first three are lent by the caller. */
struct mishap {
    struct cluster *cluster;
    struct client *client;
    const char *job;
    char victim[32];                            /* its node; "": nobody was killed (yet) */
    uint64_t killed_ms, noticed_ms, went_on_ms; /* since 1970; 0: not (yet) */
    json_t *replan;                             /* of the event that it went on; NULL: none */
};

/* Each event of the job. Kills, once, when half of the steps are done: the worker of its last
 * rank. */
void mishap_watch(struct mishap *mishap, const Gimbal__Event *event);
/* What came of it, as lines for people, and for programs; NULL where nobody was killed. */
void mishap_print(const struct mishap *mishap, FILE *out);
json_t *mishap_json(const struct mishap *mishap);
void mishap_finish(struct mishap *mishap);

#endif
