/* main.c - gimbal-coordinator: connects the service with its settings, socket, clock and signals;
 * contains no rules of its own. */
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/process.h"
#include "common/config/folders.h"
#include "common/config/paths.h"
#include "common/rpc/address.h"
#include "common/rpc/coordinator_service.h"
#include "coordinator/identity/identity.h"
#include "coordinator/pages/pages.h"
#include "coordinator/service/service.h"
#include "coordinator/settings.h"
#include "coordinator/store/store.h"

#include <errno.h>
#include <inttypes.h>
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

/* The calendar is read once; from then on time comes from the monotonic clock. */
static uint64_t calendar_offset_ms;

static void calendar_set(void)
{
    calendar_offset_ms = clock_unix_ms() - clock_ms();
}

static uint64_t calendar_ms(void)
{
    return clock_ms() + calendar_offset_ms;
}

/* Written atomically, since readers wait for the name to appear. */
static int coordinator_write_address(const char *path, const struct service *service,
                                     const struct pages *pages, struct error *err)
{
    char *own = service_address_lines(service);
    char *lines = pages ? xasprintf("%shttp %s\n", own, web_url(pages->web)) : xasprintf("%s", own);
    int rc = file_write(path, lines, 0644, err);
    free(lines);
    free(own);
    return rc < 0 ? error_prefix(err, rc, "address") : 0;
}

/* The earlier of two timeouts; -1: never. */
static int earlier_ms(int a_ms, int b_ms)
{
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

/* Run until a signal arrives. pages NULL: there are none. */
static int coordinator_serve(struct service *service, struct pages *pages, int signals,
                             struct notify *notify, struct error *err)
{
    enum { CALLS, PLANS, SIGNALS, PAGES, FDS };
    struct pollfd fds[FDS] = {
        [CALLS] = {.fd = service_fd(service), .events = POLLIN},
        [PLANS] = {.fd = service_plans_fd(service), .events = POLLIN},
        [SIGNALS] = {.fd = signals, .events = POLLIN},
        [PAGES] = {.fd = pages ? web_fd(pages->web) : -1, .events = POLLIN},
    };
    for (;;) {
        int own_ms =
            earlier_ms(service_timeout_ms(service), pages ? web_timeout_ms(pages->web) : -1);
        int timeout_ms = notify_timeout_ms(notify, own_ms, clock_ms());
        if (poll(fds, FDS, timeout_ms) < 0 && errno != EINTR)
            return error_set(err, -errno, "poll: %s", strerror(errno));
        if (fds[SIGNALS].revents)
            return 0;
        int rc = service_poll(service, err);
        if (rc < 0)
            return rc;
        if (pages)
            web_run(pages->web);
        notify_alive(notify, clock_ms());
    }
}

/* Signals are blocked before there are any threads, so all threads have them blocked. */
static int signals_open(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* hitting a file size limit is an ordinary error */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd >= 0 ? fd : error_set(err, -errno, "signalfd: %s", strerror(errno));
}

/* Log one line per method that was called. */
static void coordinator_log_calls(const struct service *service)
{
    for (unsigned i = 0; i < COORDINATOR_METHOD_COUNT; i++) {
        const struct histogram *handling = service_handling(service, i);
        if (handling->count == 0)
            continue;
        log_line(LOG_INFO, "%s: %" PRIu64 " calls, took %.3f ms p50, %.3f ms p99, %.3f ms at most",
                 service_coordinator.methods[i].name, handling->count,
                 1e-6 * (double)histogram_quantile(handling, 0.5),
                 1e-6 * (double)histogram_quantile(handling, 0.99),
                 1e-6 * (double)handling->greatest);
    }
}

static struct membership_config settings_membership(const struct coordinator_settings *settings)
{
    struct membership_config config = MEMBERSHIP_CONFIG_DEFAULT;
    config.heartbeat_ms = (uint64_t)(settings->heartbeat * 1000);
    config.dead_ms = (uint64_t)(settings->dead_after * 1000);
    return config;
}

static struct pages_options settings_pages(const struct coordinator_settings *settings,
                                           const struct bundle *bundle)
{
    return (struct pages_options){settings->http, settings->http_token, bundle,
                                  settings->tls != NULL};
}

static int settings_check_address(const struct coordinator_settings *settings, struct error *err)
{
    struct rpc_address address;
    int rc = rpc_address_parse(settings->address, &address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(&address, settings->tls != NULL, err);
    return rc < 0 ? error_prefix(err, rc, "address") : 0;
}

/* Check settings as far as neither network nor store is needed. *bundle: their certificates, owned
 * by the caller; NULL if they want no TLS. */
static int settings_check_all(const struct coordinator_settings *settings, struct bundle **bundle,
                              struct error *err)
{
    struct membership_config membership = settings_membership(settings);
    const struct pages_options pages = settings_pages(settings, NULL);
    *bundle = NULL;
    int rc = settings_check_address(settings, err);
    if (rc == 0)
        rc = membership_config_check(&membership, err);
    if (rc == 0 && settings->join_tokens && !settings->tls)
        rc = error_set(err, -EINVAL, "join_tokens: without tls nobody needs a token: leave it out");
    if (rc == 0 && settings->tls)
        rc = bundle_load(settings->tls, 1u << BUNDLE_COORDINATOR, (int64_t)time(NULL), bundle, err);
    if (rc == 0 && settings->join_tokens)
        rc = identity_check_agreed(settings->join_tokens, err);
    if (rc == 0)
        rc = pages_check(&pages, err);
    return rc;
}

/* Listen as the settings, which were checked, demand; the key is kept no longer than necessary.
 * *pages stays NULL if there are to be none. */
static int coordinator_listen(const struct coordinator_settings *settings, struct bundle **bundle,
                              struct service *service, struct pages **pages, struct error *err)
{
    const struct pages_options options = settings_pages(settings, *bundle);
    int rc = 0;
    if (settings->join_tokens)
        rc = service_register_tokens(service, settings->join_tokens, err);
    if (rc == 0)
        rc = service_listen(service, settings->address, *bundle, err);
    if (rc == 0 && settings->http)
        rc = pages_open(&options, service_state(service), pages, err);
    bundle_destroy(*bundle);
    *bundle = NULL;
    return rc;
}

/* The folder of the store; *out has to be freed. -EINVAL: the settings name none, and HOME is not
 * set. */
static int coordinator_state(const struct coordinator_settings *settings, char **out,
                             struct error *err)
{
    *out = settings->state ? xstrdup(settings->state) : state_folder("coordinator");
    if (*out)
        return 0;
    return error_set(err, -EINVAL, "HOME is not set: name a folder for the store with --state DIR");
}

/* The folder below which jobs are saved that name none, owned by the caller; NULL: they are not.
 * Without TLS all nodes are on this machine, so that a folder of ours will do, unless a service
 * manager gave it to us: then workers are somebody else. */
static int coordinator_checkpoints(const struct coordinator_settings *settings, const char *state,
                                   char **out, struct error *err)
{
    const char *given = settings->checkpoints;
    *out = NULL;
    if (given && strcmp(given, "none") != 0)
        return path_resolve("checkpoints", given, PATH_HERE, out, err);
    if (given || settings->tls || getenv("STATE_DIRECTORY"))
        return 0;
    char *own = xasprintf("%s/checkpoints", state);
    int rc = path_resolve("checkpoints", own, PATH_HERE, out, err);
    free(own);
    return rc;
}

static int coordinator_run(const struct coordinator_settings *settings, struct bundle **bundle,
                           struct notify *notify, struct error *err)
{
    struct state_options options = {
        .release = RELEASE,
        .membership = settings_membership(settings),
        .drills = settings->drills,
        .retention = {(size_t)settings->retention.jobs, (uint64_t)(settings->retention.age * 1000)},
        .clock_cb = calendar_ms,
    };
    calendar_set();
    struct service *service = NULL;
    struct pages *pages = NULL;
    process_allow_descriptors(); /* two for each worker */
    int signals = signals_open(err), rc = signals < 0 ? signals : 0;
    if (rc == 0 && getrandom(&options.instance, sizeof options.instance, 0) < 0)
        rc = error_set(err, -errno, "getrandom: %s", strerror(errno));
    char *state = NULL, *checkpoints = NULL;
    if (rc == 0)
        rc = coordinator_state(settings, &state, err);
    if (rc == 0)
        rc = coordinator_checkpoints(settings, state, &checkpoints, err);
    options.checkpoints = checkpoints;
    if (rc == 0)
        rc = store_open(state, &options.store, err);
    free(state);
    if (rc == 0)
        rc = store_begin_term(options.store, &options.term, err);
    if (rc == 0)
        rc = service_open(&options, &service, err);
    if (rc == 0)
        rc = coordinator_listen(settings, bundle, service, &pages, err);
    if (rc == 0 && settings->address_file)
        rc = coordinator_write_address(settings->address_file, service, pages, err);
    if (rc == 0) {
        if (pages)
            log_line(LOG_INFO, "serves pages at %s", web_url(pages->web));
        log_line(LOG_INFO, "gimbal-coordinator " RELEASE " listens at %s, term %llu",
                 service_address(service), (unsigned long long)options.term);
        notify_status(notify, "listens at %s, term %llu", service_address(service),
                      (unsigned long long)options.term);
        notify_ready(notify);
        rc = coordinator_serve(service, pages, signals, notify, err);
        notify_stopping(notify);
        coordinator_log_calls(service);
        if (rc == 0)
            log_line(LOG_INFO, "stopped by a signal");
        if (settings->address_file)
            unlink(settings->address_file);
    }
    pages_close(pages);
    service_close(service);
    store_close(options.store);
    free(checkpoints);
    if (signals >= 0)
        close(signals);
    return rc;
}

static int coordinator_check_and_run(const struct coordinator_settings *settings, struct error *err)
{
    struct bundle *bundle;
    struct notify notify;
    log_open("coordinator", settings->log_level);
    if (notify_open(&notify, err) < 0)
        log_line(LOG_WARN, "no service manager is told of this daemon: %s", err->text);
    int rc = settings_check_all(settings, &bundle, err);
    if (rc == 0)
        rc = coordinator_run(settings, &bundle, &notify, err);
    bundle_destroy(bundle);
    notify_close(&notify);
    return rc;
}

static void restore_tell(const char *state, const struct store_restored *restored)
{
    time_t copied = (time_t)(restored->copied_ms / 1000);
    struct tm parts;
    char when[32];
    strftime(when, sizeof when, "%F %T UTC", gmtime_r(&copied, &parts));
    printf("restored %s as of %s, %" PRIu64 " job%s that had not ended\n", state, when,
           restored->jobs_open, restored->jobs_open == 1 ? "" : "s");
    if (restored->aside)
        printf("the store that was there is now %s\n", restored->aside);
    puts(
        "start gimbal-coordinator on it: workers come back by themselves, and jobs go on from the\n"
        "memory of their executors, from a checkpoint, or from their first step");
    puts("not known any more: jobs, nodes and users since then; who was revoked since then has to "
         "be\n"
         "revoked again, and join tokens have to be issued anew");
}

/* `gimbal-coordinator --restore FILE`: restore the store from a backup, and report on stdout what
 * was done. Errors as of store_restore(). */
static int coordinator_restore(const struct coordinator_settings *settings, const char *file,
                               struct error *err)
{
    struct store_restored restored = {0};
    char *state;
    int rc = coordinator_state(settings, &state, err);
    if (rc < 0)
        return rc;
    rc = store_restore(state, file, clock_unix_ms(), &restored, err);
    if (rc == 0)
        restore_tell(state, &restored);
    free(restored.aside);
    free(state);
    return rc < 0 ? error_prefix(err, rc, "restore") : 0;
}

static int coordinator_check(const struct coordinator_settings *settings, struct error *err)
{
    struct bundle *bundle;
    int rc = settings_check_all(settings, &bundle, err);
    bundle_destroy(bundle);
    return rc;
}

/* Show the settings, including the folders that are used if none were named. */
static int coordinator_show(const struct settings *settings, struct coordinator_settings *values,
                            struct error *err)
{
    char *state;
    int rc = coordinator_state(values, &state, err);
    if (rc < 0)
        return rc;
    free(values->state);
    values->state = state;
    char *checkpoints;
    rc = coordinator_checkpoints(values, state, &checkpoints, err);
    if (rc < 0)
        return rc;
    free(values->checkpoints);
    values->checkpoints = checkpoints;
    settings_show(settings, stdout);
    return 0;
}

static int coordinator_act(const struct settings *settings, struct coordinator_settings *values,
                           const struct coordinator_line *asked, struct error *err)
{
    if (asked->command == COORDINATOR_CHECK)
        return coordinator_check(values, err);
    if (asked->command == COORDINATOR_SHOW)
        return coordinator_show(settings, values, err);
    if (asked->command == COORDINATOR_RESTORE)
        return coordinator_restore(values, asked->backup, err);
    return coordinator_check_and_run(values, err);
}

/* Chosen by what has to be mended: the configuration, or else something that the machine lacks or
 * has in use. */
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
    struct coordinator_line asked;
    struct error err = {""};
    bool usage;
    process_hold_standard();
    process_keep_memory();
    log_open("coordinator", LOG_INFO);
    int rc = coordinator_settings_read(settings, argc, argv, &asked, &usage, &err);
    int code = rc < 0 && usage ? EX_USAGE : exit_code(rc);
    if (rc == 0 && asked.command == COORDINATOR_HELP) {
        coordinator_print_help(settings, stdout);
    } else if (rc == 0 && asked.command == COORDINATOR_VERSION) {
        puts("gimbal-coordinator " RELEASE);
    } else if (rc == 0 && asked.command == COORDINATOR_VERSIONS) {
        process_print_libraries(RELEASE, stdout);
    } else if (rc == 0) {
        rc = coordinator_act(settings, &values, &asked, &err);
        code = exit_code(rc);
        if (asked.command == COORDINATOR_RESTORE && (rc == -EINVAL || rc == -ENOENT))
            code = EX_DATAERR; /* the backup's file is wrong */
    }
    if (rc < 0)
        log_line(LOG_ERROR, "%s", err.text);
    settings_destroy(settings);
    return code;
}
