/* fleet.c - the resources that a coordinator needs for a thousand workers: the real program with
 * eight processes of gimbal-worker --fleet. Figures are from the coordinator's log and /proc. */
#include "bench/rpc/rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESS_COUNT 8
#define NODE_COUNT 1000
#define JOIN_S 120
#define PATIENCE_S 30

struct fleet {
    pid_t coordinator, workers[PROCESS_COUNT];
    int log_fd;
    char line[1024];
    size_t line_size;
    bool ended;                                              /* the log has */
    char state[32], coordinator_state[48], worker_state[48]; /* folders */

    char address[96];
    unsigned joined, lost, suspected;
    char heartbeat[128], report[128]; /* what the coordinator says of these calls */
};

/* log_fd, unless negative, takes its stderr. */
static pid_t start(const char *const *words, int log_fd)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log_fd >= 0)
        dup2(log_fd, STDERR_FILENO);
    execv(words[0], (char *const *)words);
    _exit(127);
}

static void copy_after(const char *line, const char *words, char *out, size_t size)
{
    const char *found = strstr(line, words);
    if (found)
        snprintf(out, size, "%.*s", (int)strcspn(found + strlen(words), "\"\n"),
                 found + strlen(words));
}

static void take_line(struct fleet *fleet)
{
    const char *line = fleet->line;
    copy_after(line, " listens at ", fleet->address, sizeof fleet->address);
    fleet->address[strcspn(fleet->address, ",")] = '\0';
    copy_after(line, "Heartbeat: ", fleet->heartbeat, sizeof fleet->heartbeat);
    copy_after(line, "ReportHardware: ", fleet->report, sizeof fleet->report);
    fleet->joined += strstr(line, "\"node-joined: ") != NULL;
    fleet->lost += strstr(line, "\"node-lost: ") != NULL;
    fleet->suspected += strstr(line, "\"node-suspected: ") != NULL;
}

static void take_log(struct fleet *fleet)
{
    char bytes[4096];
    ssize_t count = read(fleet->log_fd, bytes, sizeof bytes);
    fleet->ended = count <= 0;
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] != '\n') {
            if (fleet->line_size < sizeof fleet->line - 1)
                fleet->line[fleet->line_size++] = bytes[i];
            continue;
        }
        fleet->line[fleet->line_size] = '\0';
        take_line(fleet);
        fleet->line_size = 0;
    }
}

/* Read the log until *count is least, until it ends, or for so long. */
static void follow(struct fleet *fleet, const unsigned *count, unsigned least, double for_s)
{
    double until_s = now_s() + for_s, left_s;
    struct pollfd fd = {.fd = fleet->log_fd, .events = POLLIN};
    while ((!count || *count < least) && !fleet->ended && (left_s = until_s - now_s()) > 0)
        if (poll(&fd, 1, (int)(left_s * 1000) + 1) > 0)
            take_log(fleet);
}

/* CPU seconds of the process so far. */
static double cpu_s(pid_t pid)
{
    char path[64], text[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(text, sizeof text, file)) {
        const char *rest = strrchr(text, ')');
        if (rest)
            sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    }
    if (file)
        fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* The most memory that it ever had resident. */
static double peak_bytes(pid_t pid)
{
    char path[64], line[256];
    unsigned long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmHWM: %lu kB", &kib);
    if (file)
        fclose(file);
    return (double)kib * 1024;
}

static int start_coordinator(struct fleet *fleet)
{
    const char *const words[] = {
        COORDINATOR, "--address", "tcp://127.0.0.1:0", "--state", fleet->coordinator_state, NULL};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return fail("no pipe");
    fleet->coordinator = start(words, fds[1]);
    close(fds[1]);
    fleet->log_fd = fds[0];
    for (double until_s = now_s() + PATIENCE_S; !fleet->address[0] && !fleet->ended;) {
        if (now_s() > until_s)
            break;
        struct pollfd fd = {.fd = fleet->log_fd, .events = POLLIN};
        if (poll(&fd, 1, 1000) > 0)
            take_log(fleet);
    }
    return fleet->address[0] ? EXIT_SUCCESS : fail("the coordinator does not listen");
}

static void start_workers(struct fleet *fleet)
{
    char name[16], share[16], count[16];
    snprintf(count, sizeof count, "%d", NODE_COUNT / PROCESS_COUNT);
    for (int i = 0; i < PROCESS_COUNT; i++) {
        snprintf(name, sizeof name, "fleet-%d", i);
        snprintf(share, sizeof share, "%d/%d", i, PROCESS_COUNT);
        const char *const words[] = {WORKER,
                                     "--fleet",
                                     count,
                                     "--name",
                                     name,
                                     "--coordinator",
                                     fleet->address,
                                     "--share",
                                     share,
                                     "--state",
                                     fleet->worker_state,
                                     "--log-level",
                                     "error",
                                     NULL};
        fleet->workers[i] = start(words, -1);
    }
}

static void stop(pid_t pid, int signal)
{
    if (pid <= 0)
        return;
    kill(pid, signal);
    waitpid(pid, NULL, 0);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    return remove(path);
}

static void print_handling(const char *name, const char *words, const char *comment)
{
    unsigned long count;
    double p50_ms, p99_ms, most_ms;
    char figure[64];
    if (sscanf(words, "%lu calls, took %lf ms p50, %lf ms p99, %lf ms", &count, &p50_ms, &p99_ms,
               &most_ms) != 4)
        return;
    snprintf(figure, sizeof figure, "workers1000_%s_p50_s", name);
    print_figure(figure, p50_ms / 1000, "s", "of %lu calls, arrival to answer; %s", count, comment);
    snprintf(figure, sizeof figure, "workers1000_%s_p99_s", name);
    print_figure(figure, p99_ms / 1000, "s", "at most %.4g s", most_ms / 1000);
}

static int measure(struct fleet *fleet, unsigned seconds)
{
    double start_s = now_s();
    follow(fleet, &fleet->joined, NODE_COUNT, JOIN_S);
    if (fleet->joined < NODE_COUNT)
        return fail("not all nodes have joined");
    print_figure("workers1000_join_s", now_s() - start_s, "s",
                 "%d nodes in %d processes, with their processes' start and probes", NODE_COUNT,
                 PROCESS_COUNT);
    double cpu_before_s = cpu_s(fleet->coordinator);
    start_s = now_s();
    follow(fleet, NULL, 0, seconds);
    double cores = (cpu_s(fleet->coordinator) - cpu_before_s) / (now_s() - start_s);
    unsigned lost = fleet->lost, suspected = fleet->suspected;
    double rss_bytes = peak_bytes(fleet->coordinator);
    kill(fleet->coordinator, SIGTERM); /* before the workers go: it then tells of its calls */
    follow(fleet, NULL, 0, PATIENCE_S);
    print_handling("heartbeat", fleet->heartbeat, "1 Hz each");
    print_handling("report", fleet->report, "all at once, when they join");
    print_figure("workers1000_false_deaths", lost, "nodes", "in %u s; %u were suspected", seconds,
                 suspected);
    print_figure("workers1000_cpu_cores", cores, "cores", "of CPU time, while it is measured");
    print_figure("workers1000_rss_bytes", rss_bytes, "bytes", "at most, of the coordinator");
    return fleet->heartbeat[0] ? EXIT_SUCCESS : fail("the coordinator told nothing of its calls");
}

int figure_fleet(unsigned seconds)
{
    struct fleet fleet = {.state = "/tmp/gimbal-bench-XXXXXX"};
    if (!mkdtemp(fleet.state))
        return fail("no folder in /tmp");
    snprintf(fleet.coordinator_state, sizeof fleet.coordinator_state, "%s/coordinator",
             fleet.state);
    snprintf(fleet.worker_state, sizeof fleet.worker_state, "%s/workers", fleet.state);
    int status = start_coordinator(&fleet);
    if (status == EXIT_SUCCESS) {
        start_workers(&fleet);
        status = measure(&fleet, seconds);
    }
    for (size_t i = 0; i < PROCESS_COUNT; i++)
        stop(fleet.workers[i], SIGTERM);
    stop(fleet.coordinator, SIGTERM);
    nftw(fleet.state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}
