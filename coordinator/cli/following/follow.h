/* follow.h - one job of a cluster, from its events: the live line, and how it ended. */
#ifndef COORDINATOR_CLI_FOLLOWING_FOLLOW_H
#define COORDINATOR_CLI_FOLLOWING_FOLLOW_H

#include "common/plan/plan.h"
#include "coordinator/cli/following/history.h"
#include "coordinator/cli/following/progress.h"

struct follow {
    const char *job;
    struct progress *progress;
    bool events_as_json; /* every event of the job as an object on stdout */
    /* Called with each event of the job, may be NULL. */
    void (*event_cb)(void *data, const Gimbal__Event *event);
    void *data;

    /* What came of it. */
    struct progress_state state; /* its plan is lent from plan_text */
    char plan_text[96];
    bool over;
    char *sample; /* text from the trained model, or NULL */
};

/* job and progress are lent. */
void follow_init(struct follow *follow, const char *job, const char *name,
                 struct progress *progress);
void follow_finish(struct follow *follow);
/* Until the job is over: EXIT_DONE, EXIT_FAILED with its reason when it failed or was cancelled;
 * else as history_follow. */
int follow_run(struct follow *follow, const struct history_options *options, struct error *err);

#endif
