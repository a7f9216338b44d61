/* events.h - what happens in the cluster, one event after another: those of the past and those to
 * come; one job followed by its events, from the live line to the outcome; and, for lists, which
 * have no events, the same print again when it has changed. */
#ifndef COORDINATOR_CLI_EVENTS_H
#define COORDINATOR_CLI_EVENTS_H

#include <stdio.h>

#include "common/plan/plan.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/progress.h"

/* Receives one event, lent, and may make calls. Returns true to stop. */
typedef bool (*history_cb)(void *data, const Gimbal__Event *event);

struct history_options {
    struct client *client;
    const char *job;  /* only its past is asked for; NULL: everybody's */
    int signals;      /* of signals_open, or -1 */
    int end_fd;       /* readable: give up; or -1 */
    bool prints;      /* all that is done with events: it ends with who reads stdout */
    double timeout_s; /* 0: none */
    uint64_t from_ms; /* of clock_ms(), when that time began; 0: with the following */
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

/* Whether events of this kind are a job's last. */
bool history_is_end(const char *kind);
/* Print an event as a line. */
void history_print(const Gimbal__Event *event, FILE *out);

struct follow {
    const char *job;
    struct progress *progress;
    bool events_as_json; /* print every event of the job as an object on stdout */
    /* (optional) called with each event of the job */
    void (*event_cb)(void *data, const Gimbal__Event *event);
    void *data;

    /* The outcome. */
    struct progress_state state; /* its plan refers to plan_text */
    char plan_text[96];
    bool over;
    char *sample; /* text from the trained model; NULL: none */
};

/* job and progress are lent. */
void follow_init(struct follow *follow, const char *job, const char *name,
                 struct progress *progress);
void follow_finish(struct follow *follow);
/* Follow until the job is over: EXIT_DONE; EXIT_FAILED with the reason if it failed or was
 * cancelled; otherwise as history_follow(). */
int follow_run(struct follow *follow, const struct history_options *options, struct error *err);

/* Ask the coordinator, and print the answer to `out`. */
typedef int (*repeat_print_cb)(const struct invocation *invocation, struct client *client,
                               FILE *out, struct error *err);

/* Connect and print. With -w, ask every second and print again if something has changed, until a
 * signal or the end of --timeout. An enum exit_code. */
int repeat_run(const struct invocation *invocation, repeat_print_cb print, struct error *err);

#endif
