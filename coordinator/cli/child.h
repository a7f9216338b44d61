/* child.h - child processes that die with us and whose end we notice.
 *
 * fork() is impossible once NNG has threads, and posix_spawn() cannot set the signal that a process
 * gets when its parent dies. Therefore we spawn ourselves as a shim, which requests that signal and
 * then becomes the program. Start children from the main thread only, since the signal is tied to
 * the thread. */
#ifndef COORDINATOR_CLI_CHILD_H
#define COORDINATOR_CLI_CHILD_H

#include "common/base/error.h"

#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;  /* 0: not started, or its end was noticed */
    int pidfd;  /* readable when it has ended */
    int status; /* as from waitpid() */
};

/* Start argv[0], a path, with empty stdin, stdout and stderr going to output_fd and error_fd, and
 * the descriptors keep[] open under their numbers. It gets a process group of its own, so that
 * keyboard interrupts reach only us. */
int child_start(char *const *argv, const int *keep, size_t keep_count, int output_fd, int error_fd,
                struct child *out, struct error *err);
/* The same, keeping no descriptors open, and with our environment except for the variables named by
 * `without`, which ends with NULL; NULL: all of it. */
int child_start_without(char *const *argv, const char *const *without, int output_fd, int error_fd,
                        struct child *out, struct error *err);
/* Returns 1 if it has ended, which sets status; 0 if not within timeout_ms (-1: wait forever). */
int child_wait(struct child *child, int timeout_ms);
void child_signal(const struct child *child, int signal);
/* Send SIGTERM, and SIGKILL if it has not ended within patience_ms; waits for the end. Accepts a
 * child that was not started. */
void child_stop(struct child *child, int patience_ms);
/* As in "exit status 3", "killed by signal 9 (Killed)"; returns out. */
char *child_print_end(const struct child *child, char *out, size_t size);

/* To be called first in main(); does not return if this process is the shim. */
void child_shim(int argc, char **argv);

#endif
