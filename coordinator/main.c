/* main.c - gimbal-coordinator: wires the service to its settings, its socket, the clock and
 * signals; holds no rule. */
#include "common/base/log.h"
#include "common/rpc/clock.h"
#include "coordinator/service/service.h"
#include "coordinator/settings.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "common/base/memory.h"

static const char usage_text[] =
    "usage: gimbal-coordinator [FLAG...]\n"
    "Keeps the workers' register, plans jobs and tells workers what to run.\n\n"
    "  --address tcp://HOST:PORT  where to listen, and at PORT + 1 (tcp://127.0.0.1:7070); port 0\n"
    "                             takes free ones; only loopback\n"
    "  --address-file PATH        write the address there once it listens\n"
    "  --heartbeat DURATION       how often workers are to be heard of (1s)\n"
    "  --dead-after DURATION      a worker silent for so long is lost (5s); over 3 heartbeats\n"
    "  --log-level LEVEL          debug, info, warn or error (info)\n"
    "  --config FILE              settings (/etc/gimbal/coordinator.yaml, if there is one)\n"
    "  -V, --version, -h, --help\n\n"
    "Each setting may also be a key of the file (dead_after: 5s) or a variable\n"
    "(GIMBAL_DEAD_AFTER=5s); a flag goes over a variable, a variable over the file.\n";

static uint64_t unix_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Whole or not at all: readers wait for the name to appear. */
static int write_address(const char *path, const char *address, struct error *err)
{
    char *draft = xasprintf("%s.%ld", path, (long)getpid());
    FILE *file = fopen(draft, "we");
    int rc = file ? 0 : -errno;
    if (file && (fprintf(file, "%s\n", address) < 0 || fflush(file) != 0))
        rc = -EIO;
    if (file && fclose(file) != 0 && rc == 0)
        rc = -EIO;
    if (rc == 0 && rename(draft, path) < 0)
        rc = -errno;
    if (rc < 0) {
        unlink(draft);
        error_set(err, rc, "write the address to %s: %s", path, strerror(-rc));
    }
    free(draft);
    return rc;
}

/* Until one of the signals comes. */
static int serve(struct service *service, int signals, struct error *err)
{
    struct pollfd fds[] = {{.fd = service_fd(service), .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    for (;;) {
        if (poll(fds, 2, service_timeout_ms(service)) < 0 && errno != EINTR)
            return error_set(err, -errno, "poll: %s", strerror(errno));
        if (fds[1].revents)
            return 0;
        service_poll(service);
    }
}

/* The signals are blocked before any thread is there, so that all threads have them blocked. */
static int open_signals(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd >= 0 ? fd : error_set(err, -errno, "signalfd: %s", strerror(errno));
}

static int run(const struct coordinator_settings *settings, struct error *err)
{
    struct service_options options = {
        .release = RELEASE,
        .membership = MEMBERSHIP_CONFIG_DEFAULT,
        .term = unix_now_ms(), /* higher than that of any start before */
        .clock_cb = rpc_clock_ms,
        .unix_offset_ms = unix_now_ms() - rpc_clock_ms(),
    };
    options.membership.heartbeat_ms = (uint64_t)(settings->heartbeat * 1000);
    options.membership.dead_ms = (uint64_t)(settings->dead_after * 1000);
    struct service *service = NULL;
    int signals = open_signals(err), rc = signals < 0 ? signals : 0;
    if (rc == 0 && getrandom(&options.instance, sizeof options.instance, 0) < 0)
        rc = error_set(err, -errno, "getrandom: %s", strerror(errno));
    if (rc == 0)
        rc = service_open(&options, &service, err);
    if (rc == 0)
        rc = service_listen(service, settings->address, err);
    if (rc == 0 && settings->address_file)
        rc = write_address(settings->address_file, service_address(service), err);
    if (rc == 0) {
        log_line(LOG_INFO, "gimbal-coordinator " RELEASE " listens at %s",
                 service_address(service));
        rc = serve(service, signals, err);
        if (rc == 0)
            log_line(LOG_INFO, "stopped by a signal");
        if (settings->address_file)
            unlink(settings->address_file);
    }
    service_close(service);
    if (signals >= 0)
        close(signals);
    return rc;
}

/* PRODUCT: 74 I/O, 78 configuration. */
static int exit_code(int rc)
{
    if (rc == 0)
        return EXIT_SUCCESS;
    return rc == -EINVAL || rc == -EACCES ? EX_CONFIG : EX_IOERR;
}

int main(int argc, char **argv)
{
    struct coordinator_settings values = {0};
    struct settings *settings = settings_create(coordinator_fields, &values);
    enum coordinator_command command;
    struct error err = {""};
    bool usage;
    log_open("coordinator", LOG_INFO);
    int rc = coordinator_settings_read(settings, argc, argv, &command, &usage, &err);
    int code = rc < 0 && usage ? EX_USAGE : exit_code(rc);
    if (rc == 0 && command == COORDINATOR_HELP) {
        fputs(usage_text, stdout);
    } else if (rc == 0 && command == COORDINATOR_VERSION) {
        puts("gimbal-coordinator " RELEASE);
    } else if (rc == 0) {
        log_open("coordinator", values.log_level);
        rc = run(&values, &err);
        code = exit_code(rc);
    }
    if (rc < 0)
        log_line(LOG_ERROR, "%s", err.text);
    settings_destroy(settings);
    return code;
}
