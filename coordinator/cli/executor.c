/* executor.c - collects the words of an executor, starts it, and cuts what it prints into lines. */
#include "coordinator/cli/executor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "coordinator/cli/exit.h"

void executor_word(struct executor *executor, const char *word)
{
    executor->words =
        grow(executor->words, executor->count + 1, &executor->capacity, sizeof *executor->words);
    executor->words[executor->count++] = xstrdup(word);
    executor->words[executor->count] = NULL;
}

void executor_words(struct executor *executor, const char *const *words)
{
    for (; *words; words++)
        executor_word(executor, *words);
}

void executor_flag(struct executor *executor, const char *flag, const char *value)
{
    if (!value)
        return;
    executor_word(executor, flag);
    executor_word(executor, value);
}

static void executor_keep(struct executor *executor, const char *flag, const char *folder, int fd,
                          bool lent)
{
    char value[32];
    assert(executor->kept_count < EXECUTOR_KEPT_MAX);
    executor->kept[executor->kept_count].fd = fd;
    executor->kept[executor->kept_count++].lent = lent;
    snprintf(value, sizeof value, "%s%d", folder, fd);
    executor_flag(executor, flag, value);
}

void executor_fd(struct executor *executor, const char *flag, int fd)
{
    executor_keep(executor, flag, "", fd, true);
}

int executor_text(struct executor *executor, const char *flag, const char *name, const char *text,
                  struct error *err)
{
    size_t size = strlen(text);
    int fd = memfd_create(name, MFD_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, text, size);
    int rc = written < 0 ? -errno : (size_t)written < size ? -ENOSPC : 0;
    if (rc < 0) {
        if (fd >= 0)
            close(fd);
        return error_set(err, rc, "keep %s in memory: %s", name, strerror(-rc));
    }
    executor_keep(executor, flag, "/proc/self/fd/", fd, false);
    return 0;
}

static int executor_find(struct executor *executor, struct error *err)
{
    char *program;
    *executor = (struct executor){.channel.fd = -1, .report = -1, .said = -1};
    int rc = sibling_path("gimbal-executor", &program, err);
    if (rc < 0)
        return rc;
    executor_word(executor, program);
    free(program);
    return 0;
}

int executor_begin(struct executor *executor, struct error *err)
{
    int ours, theirs, rc = executor_find(executor, err);
    if (rc == 0)
        rc = channel_pair(&ours, &theirs, err);
    if (rc < 0)
        return rc;
    channel_open(&executor->channel, ours);
    executor_keep(executor, "--channel", "", theirs, false);
    return 0;
}

int executor_begin_report(struct executor *executor, struct error *err)
{
    int ends[2], rc = executor_find(executor, err);
    if (rc < 0)
        return rc;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, -errno, "make a pipe: %s", strerror(errno));
    executor->report = ends[0];
    executor_keep(executor, "--report", "", ends[1], false);
    return 0;
}

/* What only it needs is closed here, or else its end would not show. */
static void executor_let_go(struct executor *executor)
{
    for (size_t i = 0; i < executor->kept_count; i++)
        if (!executor->kept[i].lent)
            close(executor->kept[i].fd);
    executor->kept_count = 0;
}

int executor_start(struct executor *executor, int output_fd, int error_fd, struct error *err)
{
    int keep[EXECUTOR_KEPT_MAX];
    for (size_t i = 0; i < executor->kept_count; i++)
        keep[i] = executor->kept[i].fd;
    int rc = process_start(executor->words, keep, executor->kept_count, output_fd, error_fd,
                           &executor->process, err);
    executor_let_go(executor);
    return rc;
}

int executor_listen(struct executor *executor, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, -errno, "a pipe for what the executor says: %s", strerror(errno));
    int rc = executor_start(executor, ends[1], ends[1], err);
    close(ends[1]);
    executor->said = ends[0];
    return rc;
}

int executor_read(struct executor *executor, int timeout_ms, Gimbal__ExecutorEvent **out,
                  struct error *err)
{
    ProtobufCMessage *message;
    int rc = channel_read(&executor->channel, &gimbal__executor_event__descriptor, timeout_ms,
                          &message, err);
    if (rc > 0)
        *out = (Gimbal__ExecutorEvent *)message;
    return rc;
}

/* Pass on the complete lines of the buffer; all of it, if it is full or `all`. */
static void executor_pass_lines(struct executor *executor, bool all,
                                void (*line_cb)(void *data, const char *line), void *data)
{
    char *start = executor->line, *end;
    executor->line[executor->used] = '\0';
    while ((end = strchr(start, '\n'))) {
        *end = '\0';
        line_cb(data, start);
        start = end + 1;
    }
    size_t left = strlen(start);
    if (left > 0 && (all || (start == executor->line && left + 1 == sizeof executor->line))) {
        line_cb(data, start);
        left = 0;
    }
    memmove(executor->line, start, left);
    executor->used = left;
}

void executor_take_lines(struct executor *executor, void (*line_cb)(void *data, const char *line),
                         void *data)
{
    struct pollfd there = {.fd = executor->said, .events = POLLIN};
    while (executor->said >= 0 && poll(&there, 1, 0) > 0) {
        ssize_t got = read(executor->said, executor->line + executor->used,
                           sizeof executor->line - executor->used - 1);
        if (got <= 0) {
            executor_last_lines(executor, line_cb, data);
            return;
        }
        executor->used += (size_t)got;
        executor_pass_lines(executor, false, line_cb, data);
    }
}

void executor_last_lines(struct executor *executor, void (*line_cb)(void *data, const char *line),
                         void *data)
{
    executor_pass_lines(executor, true, line_cb, data);
    if (executor->said >= 0)
        close(executor->said);
    executor->said = -1;
}

void executor_end(struct executor *executor, int patience_ms)
{
    channel_close(&executor->channel);
    if (!process_wait(&executor->process, patience_ms))
        process_stop(&executor->process, 0);
}

int executor_explain_end(const struct executor *executor, int rc, struct error *err)
{
    char end[64];
    return error_set(err, rc, "the executor ended without a message: %s",
                     process_print_end(&executor->process, end, sizeof end));
}

int executor_read_report(const struct executor *executor, const char *what, struct error *err)
{
    char text[sizeof err->text + 16], *words;
    int status = executor->process.status;
    ssize_t size = read(executor->report, text, sizeof text - 1);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_DONE;
    if (size > 0) {
        text[size] = '\0';
        int number = (int)strtol(text, &words, 10);
        return error_set(err, exit_of_errno(-number), "%s", words + strspn(words, " "));
    }
    return error_set(err, EXIT_FAILED, "%s ended with %s", what,
                     process_print_end(&executor->process, text, sizeof text));
}

void executor_finish(struct executor *executor)
{
    assert(executor->process.pid == 0);
    executor_let_go(executor);
    channel_close(&executor->channel);
    if (executor->report >= 0)
        close(executor->report);
    if (executor->said >= 0)
        close(executor->said);
    for (size_t i = 0; i < executor->count; i++)
        free(executor->words[i]);
    free(executor->words);
    *executor = (struct executor){.channel.fd = -1, .report = -1, .said = -1};
}
