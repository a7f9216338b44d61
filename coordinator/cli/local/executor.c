/* executor.c - starts the executor of `gimbal train --local`: its arguments, its plan, and its
 * descriptors. */
#include "coordinator/cli/local/executor.h"

#include "coordinator/cli/sibling.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARGUMENTS_MAX 20

/* What it is started with; texts are lent until then. */
struct command_line {
    char *argv[ARGUMENTS_MAX + 1]; /* ends with NULL */
    size_t count;
    char channel[16], ranks[16], plan[32];
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

static void write_line(struct command_line *line, const char *program, int channel, int plan,
                       const struct training_options *options)
{
    const struct local *local = &options->offline->local;
    snprintf(line->channel, sizeof line->channel, "%d", channel);
    snprintf(line->ranks, sizeof line->ranks, "%d", local->count);
    snprintf(line->plan, sizeof line->plan, "/proc/self/fd/%d", plan);
    add(line, program);
    add_pair(line, "--channel", line->channel);
    add_pair(line, "--local", line->ranks);
    add_pair(line, "--job", options->job_path);
    add_pair(line, "--plan", line->plan);
    add_pair(line, "--devices", local->cpusets);
    if (local->device)
        add_pair(line, "--device", local->device);
    if (options->resume)
        add(line, "--resume");
    if (options->checkpoint)
        add_pair(line, "--checkpoint", options->checkpoint);
}

/* Put the plan into a file that no crash can leave behind. */
static int plan_file(const struct offline *offline, int *out, struct error *err)
{
    char *text = plan_encode(offline->best, offline->graph);
    size_t size = strlen(text);
    int fd = memfd_create("plan.json", MFD_CLOEXEC);
    ssize_t written = fd < 0 ? -1 : write(fd, text, size);
    int rc = written < 0 ? -errno : (size_t)written < size ? -ENOSPC : 0;
    free(text);
    if (rc < 0) {
        if (fd >= 0)
            close(fd);
        return error_set(err, rc, "keep the plan in memory: %s", strerror(-rc));
    }
    *out = fd;
    return 0;
}

int executor_start(const struct training_options *options, struct child *child,
                   struct channel *channel, struct error *err)
{
    struct command_line line = {.count = 0};
    char *program = NULL;
    int ours, theirs, plan = -1;
    int rc = sibling_path("gimbal-executor", &program, err);
    if (rc == 0)
        rc = plan_file(options->offline, &plan, err);
    if (rc == 0)
        rc = channel_pair(&ours, &theirs, err);
    if (rc == 0) {
        write_line(&line, program, theirs, plan, options);
        rc = child_start(line.argv, (int[]){theirs, plan}, 2, STDERR_FILENO, STDERR_FILENO, child,
                         err);
        close(theirs);
        channel_open(channel, ours);
    }
    if (plan >= 0)
        close(plan);
    free(program);
    return rc;
}
