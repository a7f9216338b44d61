/* showing.c - starts the executor, and reads from it until it has ended. A signal ends us, and it
 * with us: it has nothing to clean up. */
#include "coordinator/cli/commands/data/showing.h"

#include "common/base/memory.h"
#include "common/channel/channel.h"
#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_WORDS_MAX 10

static int start(const struct showing_options *options, int channel, struct child *child,
                 struct error *err)
{
    char number[16], *program;
    int rc = sibling_path("gimbal-executor", &program, err);
    if (rc < 0)
        return rc;
    snprintf(number, sizeof number, "%d", channel);
    char **argv = xcalloc(OWN_WORDS_MAX + (size_t)options->file_count + 1, sizeof *argv),
         **word = argv;
    *word++ = program;
    *word++ = (char *)"--channel";
    *word++ = number;
    *word++ = (char *)"--show";
    *word++ = (char *)"--format";
    *word++ = (char *)options->format;
    if (options->tokenizer) {
        *word++ = (char *)"--tokenizer";
        *word++ = (char *)options->tokenizer;
    }
    *word++ = (char *)"--";
    memcpy(word, options->files, (size_t)options->file_count * sizeof *word);
    rc = child_start(argv, (int[]){channel}, 1, STDERR_FILENO, STDERR_FILENO, child, err);
    free(argv);
    free(program);
    return rc;
}

/* Read until the executor closes its side: -EPIPE. *failed is the message with which it failed, for
 * the caller to free; NULL: it has sent none. */
static int read_all(struct channel *channel, showing_cb *cb, void *data,
                    Gimbal__ExecutorEvent **failed, struct error *err)
{
    ProtobufCMessage *message;
    int rc;
    *failed = NULL;
    while ((rc = channel_read(channel, &gimbal__executor_event__descriptor, -1, &message, err)) >
           0) {
        Gimbal__ExecutorEvent *event = (Gimbal__ExecutorEvent *)message;
        bool shown = event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_SHOWN;
        if (shown && event->shown->failed && !*failed) {
            *failed = event;
            continue;
        }
        if (shown && !event->shown->failed)
            cb(data, event->shown);
        message_free(message);
    }
    return rc;
}

/* What it says of itself comes first. */
static int conclude(const struct child *child, const Gimbal__ExecutorEvent *failed, int rc,
                    struct error *err)
{
    char end[64];
    if (failed) {
        int number = (int)failed->shown->failed;
        int code = number == ERANGE ? EXIT_INPUT : exit_of_errno(-number); /* of a token */
        return error_set(err, code, "%s", failed->shown->error);
    }
    if (rc != -EPIPE)
        return exit_of_errno(rc);
    err->text[0] = '\0'; /* that it has closed its side */
    if (WIFEXITED(child->status) && WEXITSTATUS(child->status) == 0)
        return EXIT_DONE;
    return error_set(err, EXIT_FAILED, "the executor ended without a message: %s",
                     child_print_end(child, end, sizeof end));
}

int showing_run(const struct showing_options *options, showing_cb *cb, void *data,
                struct error *err)
{
    int ours, theirs;
    struct channel channel;
    struct child child;
    Gimbal__ExecutorEvent *failed;
    int rc = channel_pair(&ours, &theirs, err);
    if (rc < 0)
        return exit_of_errno(rc);
    channel_open(&channel, ours);
    rc = start(options, theirs, &child, err);
    close(theirs);
    if (rc < 0) {
        channel_close(&channel);
        return exit_of_errno(rc);
    }
    rc = read_all(&channel, cb, data, &failed, err);
    channel_close(&channel);
    child_wait(&child, -1);
    int code = conclude(&child, failed, rc, err);
    if (failed)
        message_free(&failed->base);
    return code;
}
