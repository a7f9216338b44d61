/* child.h - programs that we start: they die with us, and we see how they end.
 *
 * fork is out of the question once NNG has threads, and posix_spawn cannot set the signal that
 * a process gets when its parent dies. So what is spawned is ourselves, as a shim: it asks for
 * that signal and becomes the program. Start children from the main thread only, since the
 * signal follows the thread. */
#ifndef COORDINATOR_CLI_CHILD_H
#define COORDINATOR_CLI_CHILD_H

#include "common/base/error.h"

#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;  /* 0: not started, or its end was seen */
    int pidfd;  /* readable when it has ended */
    int status; /* as of waitpid */
};

/* Start argv[0], a path, with nothing on stdin, stdout and stderr going to output_fd and error_fd,
 * and the descriptors keep[] open under their numbers; in a process group of its own, so that keys
 * that interrupt us are ours to pass on. */
int child_start(char *const *argv, const int *keep, size_t keep_count, int output_fd, int error_fd,
                struct child *out, struct error *err);
/* 1: it has ended, and status says how; 0: not within timeout_ms (-1: for ever). */
int child_wait(struct child *child, int timeout_ms);
void child_signal(const struct child *child, int signal);
/* SIGTERM, then SIGKILL where that has not helped within patience_ms; waits. Accepts one that
 * was not started. */
void child_stop(struct child *child, int patience_ms);
/* "exit status 3", "killed by signal 9 (Killed)"; returns out. */
char *child_print_end(const struct child *child, char *out, size_t size);

/* What main() does first: does not return where this process is to be the shim. */
void child_shim(int argc, char **argv);

#endif
