/* executor.c - the executor that `gimbal train --local` starts: its arguments, its job and its
 * plan, and what is open in it. */
#include "coordinator/cli/local/executor.h"

#include "coordinator/cli/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARGUMENTS_MAX 22

/* What it is started with; texts are lent until then. */
struct command_line {
    char *argv[ARGUMENTS_MAX + 1]; /* ends with NULL */
    size_t count;
    char channel[16], ranks[16], job[32], plan[32];
};

static void add(struct command_line *line, const char *word)
{
    assert(line->count < ARGUMENTS_MAX);
    line->argv[line->count++] = (char *)word;
}

static void add_pair(struct command_line *line, const char *flag, const char *value)
{
    add(line, flag);
    add(line, value);
}

static void write_line(struct command_line *line, const char *program, int channel, int job,
                       int plan, const struct training_options *options)
{
    const struct machine *local = &options->offline->local;
    snprintf(line->channel, sizeof line->channel, "%d", channel);
    snprintf(line->ranks, sizeof line->ranks, "%d", local->count);
    snprintf(line->job, sizeof line->job, "/proc/self/fd/%d", job);
    snprintf(line->plan, sizeof line->plan, "/proc/self/fd/%d", plan);
    add(line, program);
    add_pair(line, "--channel", line->channel);
    add_pair(line, "--local", line->ranks);
    add_pair(line, "--job", line->job);
    add_pair(line, "--plan", line->plan);
    add_pair(line, "--devices", local->cpusets);
    if (local->device)
        add_pair(line, "--device", local->device);
    if (options->resume)
        add(line, "--resume");
    if (options->checkpoint)
        add_pair(line, "--checkpoint", options->checkpoint);
    add_pair(line, "--sentences", options->verbose ? "info" : "warn");
}

/* A text as a file that no crash can leave behind. */
static int text_file(const char *name, const char *text, int *out, struct error *err)
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
    *out = fd;
    return 0;
}

/* The job as it was read: what it came from may be a pipe, which has it once. */
static int text_files(const struct offline *offline, int *job, int *plan, struct error *err)
{
    char *text = plan_encode(offline->best, offline->graph);
    int rc = text_file("plan.json", text, plan, err);
    if (rc == 0)
        rc = text_file("job.yaml", offline->text, job, err);
    free(text);
    return rc;
}

/* Start it with a pipe as its stderr; *lines is our end. */
static int start(const struct command_line *line, const int *keep, size_t keep_count,
                 struct child *child, int *lines, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, -errno, "a pipe for what the executor says: %s", strerror(errno));
    int rc = child_start(line->argv, keep, keep_count, ends[1], ends[1], child, err);
    close(ends[1]);
    *lines = ends[0];
    return rc;
}

int executor_start(const struct training_options *options, struct child *child,
                   struct channel *channel, int *lines, struct error *err)
{
    struct command_line line = {.count = 0};
    char *program = NULL;
    int ours, theirs, job = -1, plan = -1;
    int rc = sibling_path("gimbal-executor", &program, err);
    if (rc == 0)
        rc = text_files(options->offline, &job, &plan, err);
    if (rc == 0)
        rc = channel_pair(&ours, &theirs, err);
    if (rc == 0) {
        write_line(&line, program, theirs, job, plan, options);
        rc = start(&line, (int[]){theirs, job, plan}, 3, child, lines, err);
        close(theirs);
        channel_open(channel, ours);
    }
    if (job >= 0)
        close(job);
    if (plan >= 0)
        close(plan);
    free(program);
    return rc;
}
