/* command.h - the programs of a test's cluster as people start them, and what they print.
 *
 * Nothing sleeps: waiting is for output or for the end of a process, by a deadline. Check kills
 * what a failed test leaves. */
#ifndef TESTS_CLUSTER_COMMAND_H
#define TESTS_CLUSTER_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#define COMMAND_PATIENCE_MS 60000

/* A program that runs; what it prints to stderr comes when it has ended, or when
 * what was waited for does not come. */
struct command {
    pid_t pid;
    int out_fd, err_fd;
    char out[1 << 16]; /* of stdout the newest, at least a quarter of this */
    char err[1 << 14]; /* of stderr the oldest */
    size_t out_size;
};

/* Words end with NULL; the first is the path. */
void command_start(struct command *command, const char *const *words);
/* Read stdout until it has these words; false when it ends before. */
bool command_await(struct command *command, const char *words);
/* The same, and forget what came up to these words and with them. */
bool command_pass(struct command *command, const char *words);
/* Read all, wait for the end: the exit status, or 128 + the signal. */
int command_finish(struct command *command);

/* The end of what it has printed, short enough for a failure's message: stdout, then stderr. Lent
 * until the next call. */
const char *command_last(const struct command *command);

/* The first child of a process that has not ended, from /proc; 0 when there is none. */
pid_t command_child(pid_t parent);
/* Until the process is gone; it is no child of ours. */
void command_await_gone(pid_t pid);

/* What is learned from: 400 lines, in the file `text` of the folder. */
void command_write_text(const char *folder);

#endif
