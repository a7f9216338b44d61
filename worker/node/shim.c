/* shim.c - gimbal-shim: sets up the process of an executor, then becomes the executor.
 *
 * The worker cannot do this between fork and exec, because it must not fork once NNG runs. So it
 * spawns this small program, which has one thread, and which in this order: dies with the worker,
 * leads a process group of its own, leaves no core file, takes its niceness, keeps to its cores,
 * closes what it should not have, and calls exec. Failures are printed on stderr. Exit statuses are
 * those of a shell: 127 if the program does not exist, 126 for anything else. */
#include "common/base/flags.h"
#include "common/base/process.h"
#include "worker/hardware/cpuset.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#define STATUS_FAILED 126
#define STATUS_NO_PROGRAM 127

static const char usage[] =
    "usage: gimbal-shim --parent PID [OPTION...] -- PROGRAM [ARGUMENT...]\n"
    "\n"
    "  --parent PID     the process that starts this one; the program dies with it\n"
    "  --channel FD     a descriptor that the program keeps, besides 0 to 2\n"
    "  --trail FD       another descriptor, which becomes the next one\n"
    "  --state FD       another descriptor, which becomes the next one\n"
    "  --cpuset CORES   run on these cores, such as 0-3,8\n"
    "  --nice N         run at this niceness, -20 to 19\n"
    "  -h, --help       print this text\n";

#define NICE_AS_IS INT_MIN

struct shim {
    int parent;
    int channel, trail, state; /* -1: none */
    const char *cpuset;
    int nice;
    bool help;
};

#define AT(member, what) .kind = what, .offset = offsetof(struct shim, member)
#define DESCRIPTOR(member) AT(member, FLAG_INTEGER), .least = 3, .greatest = INT32_MAX - 1

static const struct flag flags[] = {
    {"parent", 0, AT(parent, FLAG_INTEGER), .least = 1},
    {"channel", 0, DESCRIPTOR(channel)},
    {"trail", 0, DESCRIPTOR(trail)},
    {"state", 0, DESCRIPTOR(state)},
    {"cpuset", 0, AT(cpuset, FLAG_TEXT)},
    {"nice", 0, AT(nice, FLAG_INTEGER), .least = -20, .greatest = 19},
    {"help", 'h', AT(help, FLAG_SWITCH)},
    {.name = NULL},
};

/* *program becomes the index of the program in argv. */
static int parse(int argc, char **argv, struct shim *shim, int *program, struct error *err)
{
    *shim = (struct shim){.channel = -1, .trail = -1, .state = -1, .nice = NICE_AS_IS};
    struct flag_table table = {flags, shim};
    int rc = flags_read(&table, 1, "see --help", true, argc, argv, program, err);
    if (rc < 0)
        return rc;
    if (shim->help) {
        fputs(usage, stdout);
        exit(EXIT_SUCCESS);
    }
    int last = shim->channel;
    if ((shim->trail >= 0 && shim->trail != ++last) || (shim->state >= 0 && shim->state != ++last))
        return error_set(err, -EINVAL, "the kept descriptors are not consecutive");
    if (shim->parent == 0 || *program == argc)
        return error_set(err, -EINVAL, "needs --parent PID and a program");
    return 0;
}

static int failed(const char *what, struct error *err)
{
    int rc = -errno;
    return error_set(err, rc, "%s: %s", what, strerror(-rc));
}

/* The signal comes when the thread that spawned this process dies; the parent may have died before
 * it was set up. */
static int die_with(int parent, struct error *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return failed("parent-death signal", err);
    if (getppid() != parent)
        return error_set(err, -ESRCH, "the worker, process %d, has already ended", parent);
    return 0;
}

static int keep_to(const char *cpuset, struct error *err)
{
    cpu_set_t set;
    int threads;
    int rc = cpuset_parse(cpuset, strlen(cpuset), &set, err);
    return rc < 0 ? rc : cpuset_bind(&set, &threads, err);
}

/* Close everything except 0, 1, 2, the channel, the trail and the state, which are kept across
 * exec. */
static int close_others(const struct shim *shim, struct error *err)
{
    unsigned first = 3;
    if (shim->channel >= 0) {
        if (fcntl(shim->channel, F_SETFD, 0) < 0)
            return failed("channel", err);
        if (shim->channel > 3 && close_range(3, (unsigned)shim->channel - 1, 0) < 0)
            return failed("close_range", err);
        first = (unsigned)shim->channel + 1;
    }
    if (shim->trail >= 0) {
        if (fcntl(shim->trail, F_SETFD, 0) < 0)
            return failed("trail", err);
        first = (unsigned)shim->trail + 1;
    }
    if (shim->state >= 0) {
        if (fcntl(shim->state, F_SETFD, 0) < 0)
            return failed("state", err);
        first = (unsigned)shim->state + 1;
    }
    return close_range(first, ~0u, 0) < 0 ? failed("close_range", err) : 0;
}

static int prepare(const struct shim *shim, struct error *err)
{
    int rc = die_with(shim->parent, err);
    if (rc == 0 && setpgid(0, 0) < 0)
        rc = failed("setpgid", err);
    if (rc == 0 && setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) < 0)
        rc = failed("setrlimit", err);
    if (rc == 0 && shim->nice != NICE_AS_IS && setpriority(PRIO_PROCESS, 0, shim->nice) < 0)
        rc = failed("nice", err);
    if (rc == 0 && shim->cpuset)
        rc = keep_to(shim->cpuset, err);
    if (rc == 0)
        rc = close_others(shim, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct shim shim;
    struct error err;
    int program;
    process_hold_standard();
    if (parse(argc, argv, &shim, &program, &err) < 0) {
        fprintf(stderr, "gimbal-shim: %s\n", err.text);
        fputs(usage, stderr);
        return EX_USAGE;
    }
    if (prepare(&shim, &err) < 0) {
        fprintf(stderr, "gimbal-shim: %s\n", err.text);
        return STATUS_FAILED;
    }
    process_spin_briefly();
    execv(argv[program], argv + program);
    int status = errno == ENOENT ? STATUS_NO_PROGRAM : STATUS_FAILED;
    fprintf(stderr, "gimbal-shim: %s: %s\n", argv[program], strerror(errno));
    return status;
}
