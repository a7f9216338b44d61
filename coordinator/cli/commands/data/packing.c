/* packing.c - starts the executor, follows it to its end, and on a signal closes the channel to it:
 * then it removes what it has written. */
#include "coordinator/cli/commands/data/packing.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/channel/channel.h"
#include "common/rpc/message.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"
#include "coordinator/cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWN_WORDS_MAX 14
#define PATIENCE_MS 10000 /* for its end, once it has closed the channel */

struct packing {
    const struct packing_options *options;
    struct progress progress;
    struct child child;
    struct channel channel;
    int signals;
    int signal;                 /* that has ended it; 0: none */
    bool insists;               /* a second one has come */
    Gimbal__ExecutorEvent *end; /* NULL: it has not said how it ended */
};

/* Our standard input under a number that the child does not use otherwise; -1: it is not read. */
static int open_input(const struct packing_options *options, int *out, struct error *err)
{
    int count = 0;
    *out = -1;
    for (int i = 0; i < options->text_count; i++)
        count += strcmp(options->texts[i], "-") == 0;
    if (count == 0)
        return 0;
    if (count > 1)
        return error_set(err, -EINVAL, "'-' is given %d times: standard input can be read once",
                         count);
    if (isatty(STDIN_FILENO))
        return error_set(err, -EINVAL,
                         "'-' is standard input, which is a terminal: pipe a text into it");
    *out = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return *out >= 0 ? 0 : error_set(err, -errno, "read standard input: %s", strerror(errno));
}

static int start(struct packing *packing, int channel, int input, struct error *err)
{
    const struct packing_options *options = packing->options;
    char channel_number[16], input_number[16], *program;
    int rc = sibling_path("gimbal-executor", &program, err);
    if (rc < 0)
        return rc;
    snprintf(channel_number, sizeof channel_number, "%d", channel);
    snprintf(input_number, sizeof input_number, "%d", input);
    char **argv = xcalloc(OWN_WORDS_MAX + (size_t)options->text_count + 1, sizeof *argv),
         **word = argv;
    *word++ = program;
    *word++ = (char *)"--channel";
    *word++ = channel_number;
    *word++ = (char *)"--pack";
    *word++ = (char *)options->out;
    if (input >= 0) {
        *word++ = (char *)"--stdin";
        *word++ = input_number;
    }
    if (options->tokenizer) {
        *word++ = (char *)"--tokenizer";
        *word++ = (char *)options->tokenizer;
    }
    if (options->end_of_text)
        *word++ = (char *)"--end-of-text";
    if (options->force)
        *word++ = (char *)"--force";
    *word++ = (char *)"--";
    memcpy(word, options->texts, (size_t)options->text_count * sizeof *word);
    rc = child_start(argv, (int[]){channel, input}, input >= 0 ? 2 : 1, STDERR_FILENO,
                     STDERR_FILENO, &packing->child, err);
    free(argv);
    free(program);
    return rc;
}

static void show(struct packing *packing, const Gimbal__ExecutorPacking *state)
{
    char line[PROGRESS_TEXT_SIZE], done[32], total[32];
    double bytes = (double)state->bytes, all = (double)state->bytes_total;
    units_print_bytes(done, sizeof done, bytes);
    if (all > 0) /* a file may grow while it is read */
        snprintf(line, sizeof line, "packed %s of %s  %.1f%%", done,
                 units_print_bytes(total, sizeof total, all),
                 bytes < all ? 100 * bytes / all : 100);
    else
        snprintf(line, sizeof line, "packed %s", done);
    progress_show(&packing->progress, line, clock_now_s());
}

/* Read everything that has arrived; -EPIPE: it has closed its side. */
static int read_events(struct packing *packing, struct error *err)
{
    ProtobufCMessage *message;
    int rc;
    while ((rc = channel_read(&packing->channel, &gimbal__executor_event__descriptor, 0, &message,
                              err)) > 0) {
        Gimbal__ExecutorEvent *event = (Gimbal__ExecutorEvent *)message;
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PACKING)
            show(packing, event->packing);
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PACKED && !packing->end)
            packing->end = event;
        else
            message_free(message);
    }
    return rc;
}

/* Once nothing can be said to it any more, the executor ends, and says how. */
static void take_signal(struct packing *packing, int signal)
{
    packing->insists = packing->signal != 0;
    packing->signal = signal;
    shutdown(packing->channel.fd, SHUT_WR);
}

/* Follow until the executor closes its side, or until a second signal. */
static int follow(struct packing *packing, struct error *err)
{
    int rc = 0;
    while (rc == 0 && !packing->insists) {
        struct pollfd fds[] = {{packing->channel.fd, POLLIN, 0}, {packing->signals, POLLIN, 0}};
        poll(fds, 2, -1);
        int signal = signals_take(packing->signals);
        if (signal)
            take_signal(packing, signal);
        rc = read_events(packing, err);
    }
    if (rc != -EPIPE)
        return rc;
    err->text[0] = '\0';
    return 0;
}

static int conclude(struct packing *packing, int rc, Gimbal__ExecutorPacked **out,
                    struct error *err)
{
    char end[64];
    if (rc < 0)
        return exit_of_errno(rc);
    bool packed = packing->end && !packing->end->packed->failed;
    if (!packed && packing->signal)
        return error_set(err, EXIT_SIGNAL + packing->signal, "interrupted: '%s' is not written",
                         packing->options->out);
    if (!packing->end)
        return error_set(err, EXIT_FAILED, "the executor ended without a message: %s",
                         child_print_end(&packing->child, end, sizeof end));
    if (!packed)
        return error_set(err, exit_of_errno(-(int)packing->end->packed->failed), "%s",
                         packing->end->packed->error);
    *out = packing->end->packed;
    packing->end->event_case = GIMBAL__EXECUTOR_EVENT__EVENT__NOT_SET; /* the caller has it now */
    return EXIT_DONE;
}

static int run(struct packing *packing, int input, struct error *err)
{
    int ours, theirs;
    packing->signals = signals_open(err);
    if (packing->signals < 0)
        return packing->signals;
    int rc = channel_pair(&ours, &theirs, err);
    if (rc < 0)
        return rc;
    channel_open(&packing->channel, ours);
    rc = start(packing, theirs, input, err);
    close(theirs);
    if (rc == 0)
        rc = follow(packing, err);
    channel_close(&packing->channel);
    if (packing->insists || !child_wait(&packing->child, PATIENCE_MS))
        child_stop(&packing->child, 0);
    return rc;
}

int packing_run(const struct packing_options *options, Gimbal__ExecutorPacked **out,
                struct error *err)
{
    struct packing packing = {.options = options, .signals = -1, .channel.fd = -1};
    int input;
    if (open_input(options, &input, err) < 0)
        return EXIT_USAGE;
    progress_open(&packing.progress, stderr, options->quiet);
    int rc = run(&packing, input, err);
    progress_clear(&packing.progress);
    if (input >= 0)
        close(input);
    if (packing.signals >= 0)
        close(packing.signals);
    int code = conclude(&packing, rc, out, err);
    if (packing.end)
        message_free(&packing.end->base);
    return code;
}
