/* process.h - child processes that die with us and whose end we notice; the programs of this
 * installation, which they run; and the signals that we get meanwhile.
 *
 * fork() is impossible once NNG has threads, and posix_spawn() cannot set the signal that a process
 * gets when its parent dies. Therefore we spawn ourselves as a shim, which requests that signal and
 * then becomes the program. Start children from the main thread only, since the signal is tied to
 * the thread. */
#ifndef COORDINATOR_CLI_PROCESS_H
#define COORDINATOR_CLI_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"

struct process {
    pid_t pid;  /* 0: not started, or its end was noticed */
    int pidfd;  /* readable when it has ended */
    int status; /* as from waitpid() */
};

/* Start argv[0], a path, with empty stdin, stdout and stderr going to output_fd and error_fd, and
 * the descriptors keep[] open under their numbers. It gets a process group of its own, so that
 * keyboard interrupts reach only us. */
int process_start(char *const *argv, const int *keep, size_t keep_count, int output_fd,
                  int error_fd, struct process *out, struct error *err);
/* The same, keeping no descriptors open, and with our environment except for the variables named by
 * `without`, which ends with NULL; NULL: all of it. */
int process_start_without(char *const *argv, const char *const *without, int output_fd,
                          int error_fd, struct process *out, struct error *err);
/* Returns 1 if it has ended, which sets status; 0 if not within timeout_ms (-1: wait forever). */
int process_wait(struct process *child, int timeout_ms);
void process_signal(const struct process *child, int signal);
/* Send SIGTERM, and SIGKILL if it has not ended within patience_ms; waits for the end. Accepts a
 * child that was not started. */
void process_stop(struct process *child, int patience_ms);
/* As in "exit status 3", "killed by signal 9 (Killed)"; returns out. */
char *process_print_end(const struct process *child, char *out, size_t size);

/* To be called early in main(); does not return if this process is the shim. */
void process_shim(int argc, char **argv);

/* The path of a program: as named by the environment (gimbal-executor: GIMBAL_EXECUTOR), else next
 * to our own binary. The caller frees *out. -ENOENT tells where it was looked for. */
int sibling_path(const char *name, char **out, struct error *err);

struct process_answer {
    char *program;         /* its path */
    char *output, *errors; /* what it printed on stdout and on stderr */
    int status;            /* as from waitpid() */
};

/* Run the program, such as "gimbal-worker", with these arguments, which end with NULL, and wait up
 * to two minutes for it. It gets our environment except for the variables named by `without`, which
 * ends with NULL; NULL: all of it. *out is set on success only and has to be finished. -ENOENT:
 * there is no such program; -ETIMEDOUT: it did not end in time; or another errno. */
int process_ask(const char *name, const char *const *words, const char *const *without,
                struct process_answer *out, struct error *err);
/* Accepts a zeroed struct. */
void process_answer_finish(struct process_answer *answer);

/* The same for a program that has to succeed; *out is its stdout, to be freed. -EPROTO: it ended
 * with a status other than 0; the message is from its stderr. */
int process_ask_text(const char *name, const char *const *words, const char *const *without,
                     char **out, struct error *err);

/* Block them, before there are threads, and return a descriptor that is readable when one has
 * arrived; a negative errno. */
int signals_open(struct error *err);
/* The signal that has arrived, or 0; does not wait. */
int signals_take(int fd);

#endif
