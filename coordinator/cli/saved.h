/* saved.h - a checkpoint that the command line names: as a JOB, whose newest undamaged one it is,
 * as JOB@STEP, or as a DIRECTORY, of one step or with several, of which it is the newest. */
#ifndef COORDINATOR_CLI_SAVED_H
#define COORDINATOR_CLI_SAVED_H

#include "common/checkpoint/ancestor.h"
#include "coordinator/cli/options.h"

struct saved {
    char *folder;  /* absolute */
    char *spec;    /* text of the job file it was trained by; NULL: an older release wrote it */
    char *job;     /* the job's id; NULL: it was named by its folder */
    uint64_t step; /* that were finished */
};

/* Find it, which for a DIRECTORY reads its manifest, and for a JOB asks the coordinator. step:
 * instead of a JOB@STEP; -1: none. The caller closes *out. An enum exit_code. */
int saved_find(const struct common *common, const char *what, int64_t step, struct saved *out,
               struct error *err);
/* Check that a checkpoint is accessible here: that of a JOB lies where the job's nodes have it.
 * EXIT_INPUT with a message. */
int saved_reach(const struct saved *saved, struct error *err);
/* Check that a folder, of one step, is accessible and a checkpoint. EXIT_INPUT with a message. */
int saved_is_one(const char *folder, struct error *err);
/* What a job has of it that goes on from there, and how it differs. The caller finishes *out and
 * *differences in any case. EXIT_INPUT: it is another model, or nothing is left to train. */
int saved_origin(const struct saved *saved, bool weights_only, const struct job_config *job,
                 struct ancestor *out, struct texts *differences, struct error *err);
/* Accepts a zeroed struct. */
void saved_close(struct saved *saved);

#endif
