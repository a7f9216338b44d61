/* asking.h - what another program of this installation says when it is run. */
#ifndef COORDINATOR_CLI_ASKING_H
#define COORDINATOR_CLI_ASKING_H

#include "common/base/error.h"

struct answer {
    char *output, *errors; /* what it said on stdout and on stderr */
    int status;            /* as of waitpid */
};

/* Run the program, "gimbal-worker", with these words, of which the last is NULL. *out is yours to
 * finish; -ENOENT where there is no such program; -ETIMEDOUT. */
int ask(const char *name, const char *const *words, struct answer *out, struct error *err);
/* Accepts a zeroed one. */
void answer_finish(struct answer *answer);

/* The same, for what it says on stdout, yours. Where it ends with another status than 0, -EPROTO
 * with what it said on stderr. */
int ask_program(const char *name, const char *const *words, char **out, struct error *err);

#endif
