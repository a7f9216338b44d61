/* asking.h - runs another program of this installation and collects what it prints. */
#ifndef COORDINATOR_CLI_ASKING_H
#define COORDINATOR_CLI_ASKING_H

#include "common/base/error.h"

struct answer {
    char *output, *errors; /* what it printed on stdout and on stderr */
    int status;            /* as from waitpid() */
};

/* Run the program, such as "gimbal-worker", with these arguments, which end with NULL, and wait up
 * to two minutes for it. It gets our environment except for the variables named by `without`, which
 * ends with NULL; NULL: all of it. *out is set on success only and has to be finished. -ENOENT:
 * there is no such program; -ETIMEDOUT: it did not end in time; or another errno. */
int ask(const char *name, const char *const *words, const char *const *without, struct answer *out,
        struct error *err);
/* Accepts a zeroed struct. */
void answer_finish(struct answer *answer);

/* The same for a program that has to succeed; *out is its stdout, to be freed. -EPROTO: it ended
 * with a status other than 0; the message is from its stderr. */
int ask_program(const char *name, const char *const *words, const char *const *without, char **out,
                struct error *err);

#endif
