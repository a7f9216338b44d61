/* history.h - the cluster's events one by one: those of the past and those to come. */
#ifndef COORDINATOR_CLI_FOLLOWING_HISTORY_H
#define COORDINATOR_CLI_FOLLOWING_HISTORY_H

#include "coordinator/cli/client.h"

/* Receives one event, lent, and may make calls. Returns true to stop. */
typedef bool (*history_cb)(void *data, const Gimbal__Event *event);

struct history_options {
    struct client *client;
    const char *job;  /* only its past is asked for; NULL: everybody's */
    int signals;      /* of signals_open, or -1 */
    int end_fd;       /* readable: give up; or -1 */
    bool prints;      /* all that is done with events: it ends with who reads stdout */
    double timeout_s; /* 0: none */
    uint64_t from_ms; /* of rpc_clock_ms(), when that time began; 0: with the following */
};

/* Pass on all stored events, of a job or of all (NULL), oldest first, without waiting for more. An
 * enum exit_code. */
int history_read(struct client *client, const char *job, history_cb callback, void *data,
                 struct error *err);
/* The same, and go on with new events of all jobs, across restarts of the coordinator; none is lost
 * or repeated. EXIT_DONE: the callback has stopped it. EXIT_TIMEOUT; EXIT_SIGNAL + the signal;
 * EXIT_FAILED: end_fd. */
int history_follow(const struct history_options *options, history_cb callback, void *data,
                   struct error *err);

/* Print an event as a line. */
void history_print(const Gimbal__Event *event, FILE *out);

#endif
