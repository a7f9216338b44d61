/* saved.h - the checkpoints that a command is about: those that are listed of a job, or a folder by
 * its path. Reading tensors is the executor's: it runs as a child. */
#ifndef COORDINATOR_CLI_COMMANDS_CHECKPOINT_SAVED_H
#define COORDINATOR_CLI_COMMANDS_CHECKPOINT_SAVED_H

#include "common/rpc/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/options.h"

/* Which one is meant: of a JOB, or a DIRECTORY and the job file of what it is a checkpoint of. */
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

/* A checkpoint that is in reach here. */
struct saved {
    char *folder; /* of one step */
    char *job;    /* path of its job file... */
    int keep;     /* ... where this descriptor is open */
};
/* what: JOB or DIRECTORY. *out is yours to close. */
int saved_open(const struct common *common, const struct saved_flags *flags, const char *what,
               struct saved *out, struct error *err);
void saved_close(struct saved *saved);

/* What a coordinator knows of the job; the reply is the caller's. An enum exit_code, as of all. */
int saved_ask(const struct common *common, const char *job, Gimbal__GetJobReply **out,
              struct error *err);
/* Is the folder, of this step, in reach and one of a checkpoint? EXIT_INPUT in words. */
int saved_find(const char *folder, struct error *err);
/* Have the executor read a checkpoint: words[] behind its own name, ended by NULL, and a descriptor
 * that is open in it, or -1. What it finds it prints itself; `what` is for how it ended. */
int saved_read(const char *const *words, int keep, const char *what, struct error *err);

#endif
