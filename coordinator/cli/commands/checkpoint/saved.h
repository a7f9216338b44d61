/* saved.h - the checkpoints that a command is about: those that are listed of a job, or a folder by
 * its path. Reading tensors is the executor's: it runs as a child. */
#ifndef COORDINATOR_CLI_COMMANDS_CHECKPOINT_SAVED_H
#define COORDINATOR_CLI_COMMANDS_CHECKPOINT_SAVED_H

#include "common/rpc/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/options.h"

/* What a coordinator knows of the job; the reply is the caller's. An enum exit_code, as of all. */
int saved_ask(const struct common *common, const char *job, Gimbal__GetJobReply **out,
              struct error *err);
/* Is the folder, of this step, in reach and one of a checkpoint? EXIT_INPUT in words. */
int saved_find(const char *folder, struct error *err);
/* Have the executor read a checkpoint: words[] behind its own name, ended by NULL, and a descriptor
 * that is open in it, or -1. What it finds it prints itself; `what` is for how it ended. */
int saved_read(const char *const *words, int keep, const char *what, struct error *err);

#endif
