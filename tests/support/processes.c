/* processes.c - a pipe to each process, which is closed when it ends, however it ends. */
#include "tests/support/processes.h"

#include "common/base/clock.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(int rank, test_process_cb *body, void *context, int *end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        abort();
    fflush(NULL); /* or it is printed twice */
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int rc = body(rank, context);
        fflush(NULL);
        _exit(rc < 0);
    }
    close(ends[1]);
    *end = ends[0];
    return pid;
}

static int judge(int rank, int status, struct error *err)
{
    if (WIFSIGNALED(status))
        return error_set(err, -ECHILD, "the process of rank %d was ended by signal %d (%s)", rank,
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return error_set(err, -ECHILD, "the process of rank %d ended with status %d", rank,
                         WEXITSTATUS(status));
    return 0;
}

/* Waits for one of those that are left, whose pipes are not -1, and forgets it. */
static int await_one(pid_t *pids, struct pollfd *ends, int count, double deadline,
                     struct error *err)
{
    int status, ready;
    double left_s = deadline - clock_s();
    do
        ready = poll(ends, (nfds_t)count, left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
    while (ready < 0 && errno == EINTR);
    for (int i = 0; i < count; i++) {
        if (ends[i].fd < 0 || !ends[i].revents)
            continue;
        waitpid(pids[i], &status, 0);
        close(ends[i].fd);
        ends[i].fd = -1;
        return judge(i, status, err);
    }
    for (int i = 0; i < count; i++)
        if (ends[i].fd >= 0)
            return error_set(err, -ETIMEDOUT, "the process of rank %d has not ended in time", i);
    abort();
}

int test_processes_run(int count, double limit_s, test_process_cb *body, void *context,
                       struct error *err)
{
    int rc = 0;
    double deadline = clock_s() + limit_s;
    pid_t *pids = xcalloc((size_t)count, sizeof *pids);
    struct pollfd *ends = xcalloc((size_t)count, sizeof *ends);
    for (int i = 0; i < count; i++)
        pids[i] = start(i, body, context, &ends[i].fd);
    for (int i = 0; i < count && rc == 0; i++)
        rc = await_one(pids, ends, count, deadline, err);
    for (int i = 0; i < count; i++) {
        if (ends[i].fd < 0)
            continue;
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        close(ends[i].fd);
    }
    free(ends);
    free(pids);
    return rc;
}
