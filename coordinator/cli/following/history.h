/* history.h - the cluster's events, one by one: what was, and what comes. */
#ifndef COORDINATOR_CLI_FOLLOWING_HISTORY_H
#define COORDINATOR_CLI_FOLLOWING_HISTORY_H

#include "coordinator/cli/client.h"

/* Takes one event, lent, and may make calls; true: enough. */
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

/* Hand over what is kept, of the job or of all (NULL), oldest first, without waiting for more. An
 * enum exit_code. */
int history_read(struct client *client, const char *job, history_cb callback, void *data,
                 struct error *err);
/* The same, and go on with what comes, of all jobs, across restarts of the coordinator: nothing is
 * left out and nothing comes twice. EXIT_DONE when the
 * callback has had enough, EXIT_TIMEOUT, EXIT_SIGNAL + the signal, EXIT_FAILED at end_fd. */
int history_follow(const struct history_options *options, history_cb callback, void *data,
                   struct error *err);

/* An event as a line. */
void history_print(const Gimbal__Event *event, FILE *out);

#endif
