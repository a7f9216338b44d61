/* executor.h - gimbal-executor as our child, which does what needs tensors or devices: it measures,
 * trains, packs texts and reads checkpoints.
 *
 * Commands add its words and what stays open in it, start it, and hear how it ends in one of two
 * ways: by events on a channel, or, for those that print their result themselves, by an error in a
 * pipe. */
#ifndef COORDINATOR_CLI_EXECUTOR_H
#define COORDINATOR_CLI_EXECUTOR_H

#include <stdbool.h>

#include "common/message/channel.h"
#include "coordinator/cli/process.h"
#include "proto/executor.pb-c.h"

#define EXECUTOR_KEPT_MAX 4

struct executor {
    struct process process;
    struct channel channel; /* its events; fd -1: none */
    int report;             /* a pipe with its error; -1: none */
    int said;               /* a pipe with what it prints, by executor_listen(); -1: none */
    char line[4096];        /* what was said since the last newline */
    size_t used;            /* of line */
    /* Until it is started: its words, and the descriptors that it keeps. */
    char **words;
    size_t count, capacity;
    struct {
        int fd;
        bool lent;
    } kept[EXECUTOR_KEPT_MAX];
    size_t kept_count;
};

/* Find the program and make a channel for its events, or a pipe for its error. The caller finishes
 * *executor in any case. A negative errno. */
int executor_begin(struct executor *executor, struct error *err);
int executor_begin_report(struct executor *executor, struct error *err);
/* Add words, which are copied and end with NULL. */
void executor_words(struct executor *executor, const char *const *words);
void executor_word(struct executor *executor, const char *word);
/* Add a flag with its value, or neither if the value is NULL. */
void executor_flag(struct executor *executor, const char *flag, const char *value);
/* Add a flag whose value is a descriptor, lent, that stays open in it. */
void executor_fd(struct executor *executor, const char *flag, int fd);
/* Add a flag whose value is the path of a file with this text, which no crash can leave behind.
 * `name` is for messages. */
int executor_text(struct executor *executor, const char *flag, const char *name, const char *text,
                  struct error *err);
/* Start it: it prints to these descriptors. */
int executor_start(struct executor *executor, int output_fd, int error_fd, struct error *err);
/* Start it, and have what it prints for executor_take_lines(). */
int executor_listen(struct executor *executor, struct error *err);

/* The next event, waiting at most timeout_ms; as channel_read(). */
int executor_read(struct executor *executor, int timeout_ms, Gimbal__ExecutorEvent **out,
                  struct error *err);
/* Pass on each complete line that it has printed, without its newline, and without waiting for
 * more. A line that is longer than the buffer is passed on in pieces. */
void executor_take_lines(struct executor *executor, void (*line_cb)(void *data, const char *line),
                         void *data);
/* The same, and what has no newline yet; there will be no more. */
void executor_last_lines(struct executor *executor, void (*line_cb)(void *data, const char *line),
                         void *data);
/* Nothing is said to it any more. Wait for its end, and kill it after patience_ms (-1: never). */
void executor_end(struct executor *executor, int patience_ms);
/* That it has ended, and how, but not why; returns rc. */
int executor_explain_end(const struct executor *executor, int rc, struct error *err);
/* After its end: its error in the pipe, an enum exit_code. `what` it was is told if it ended
 * without one. */
int executor_read_report(const struct executor *executor, const char *what, struct error *err);
/* Closes all; it must have ended, or not have been started. */
void executor_finish(struct executor *executor);

#endif
