/* saved.h - the checkpoints that a command works on: those listed for a job, or a directory given
 * by its path. Tensors are read by the executor, which runs as a child. */
#ifndef COORDINATOR_CLI_COMMANDS_CHECKPOINT_SAVED_H
#define COORDINATOR_CLI_COMMANDS_CHECKPOINT_SAVED_H

#include "common/rpc/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/options.h"

/* Selects a checkpoint of a JOB, or tells the job file that belongs to a DIRECTORY. */
struct saved_flags {
    const char *file;
    int64_t step; /* -1: not given */
};
#define SAVED_FLAGS(type, member)                                                                  \
    {"file",    'f',                                                                               \
     FLAG_TEXT, offsetof(type, member.file),                                                       \
     "FILE",    "with a DIRECTORY: the job file that it was trained by"},                          \
    {                                                                                              \
        "step", 0, FLAG_NUMBER, offsetof(type, member.step), "N",                                  \
            "with a JOB: the checkpoint of this step (the newest undamaged one)", .standard = -1   \
    }

/* A checkpoint that is accessible here. */
struct saved {
    char *folder; /* of one step */
    char *job;    /* path of its job file */
    int keep;     /* descriptor that this path refers to */
};
/* what: a JOB or a DIRECTORY. The caller closes *out. An enum exit_code. */
int saved_open(const struct common *common, const struct saved_flags *flags, const char *what,
               struct saved *out, struct error *err);
void saved_close(struct saved *saved);

/* Ask the coordinator about the job; the caller owns the reply. An enum exit_code. */
int saved_ask(const struct common *common, const char *job, Gimbal__GetJobReply **out,
              struct error *err);
/* Check that the directory, of one step, is accessible and a checkpoint. EXIT_INPUT with a
 * message. */
int saved_find(const char *folder, struct error *err);
/* Have the executor read a checkpoint: words[] are its arguments, ending with NULL; keep is a
 * descriptor that stays open in it, or -1. It prints the result itself, and an error is its own;
 * `what` is used if it ended without one. */
int saved_read(const char *const *words, int keep, const char *what, struct error *err);

#endif
