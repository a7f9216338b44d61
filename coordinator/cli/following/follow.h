/* follow.h - follows one job of a cluster by its events: the live line, and the outcome. */
#ifndef COORDINATOR_CLI_FOLLOWING_FOLLOW_H
#define COORDINATOR_CLI_FOLLOWING_FOLLOW_H

#include "common/plan/plan.h"
#include "coordinator/cli/following/history.h"
#include "coordinator/cli/following/progress.h"

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

#endif
