/* real_cluster.c - starting and stopping the coordinator, and pumping its clients. */
#include "tests/cluster/real_cluster.h"

#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "tests/support/port.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000
#define ARGUMENTS_MAX 20

extern char **environ;

static pid_t spawn(const char *const *arguments, int err_fd)
{
    const char *line[ARGUMENTS_MAX] = {COORDINATOR};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    for (size_t i = 0; arguments[i]; i++)
        line[i + 1] = arguments[i];
    posix_spawn_file_actions_init(&actions);
    if (err_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
    int rc = posix_spawn(&pid, line[0], &actions, NULL, (char *const *)line, environ);
    ck_assert_msg(rc == 0, "%s: %s", line[0], strerror(rc));
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* The coordinator writes the address once it listens, under another name, and renames. */
static bool await_address(struct cluster *cluster, int watch)
{
    char path[128], bytes[4096];
    struct pollfd fds[] = {{.fd = watch, .events = POLLIN},
                           {.fd = pidfd_open(cluster->coordinator, 0), .events = POLLIN}};
    snprintf(path, sizeof path, "%s/address", cluster->directory);
    while (access(path, R_OK) < 0 && !fds[1].revents) {
        ck_assert_msg(poll(fds, 2, test_patience_ms(PATIENCE_MS)) > 0,
                      "the coordinator does not listen");
        if (fds[0].revents)
            ck_assert_int_gt(read(watch, bytes, sizeof bytes), 0);
    }
    close(fds[1].fd);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    ck_assert_ptr_nonnull(fgets(cluster->address, sizeof cluster->address, file));
    cluster->address[strcspn(cluster->address, "\n")] = '\0';
    fclose(file);
    return true;
}

/* False when it died before it listened. */
static bool start(struct cluster *cluster, const char *address, const char *const *arguments)
{
    char path[128], state[128];
    /* Jobs save where they say, if a test does not ask for more. */
    const char *line[ARGUMENTS_MAX] = {"--address", address, "--address-file", path,
                                       "--state",   state,   "--checkpoints",  "none"};
    snprintf(path, sizeof path, "%s/address", cluster->directory);
    snprintf(state, sizeof state, "%s/state", cluster->directory);
    for (size_t i = 0; arguments && arguments[i]; i++)
        line[8 + i] = arguments[i];
    int watch = inotify_init1(IN_CLOEXEC);
    ck_assert_int_ge(inotify_add_watch(watch, cluster->directory, IN_MOVED_TO), 0);
    cluster->coordinator = spawn(line, -1);
    bool listens = await_address(cluster, watch);
    close(watch);
    return listens;
}

void cluster_start(struct cluster *cluster, const char *const *arguments)
{
    *cluster = (struct cluster){.directory = "/tmp/gimbal-cluster-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(cluster->directory));
    char address[64];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", (unsigned)port_choose(2));
    ck_assert_msg(start(cluster, address, arguments), "the coordinator has died");
}

void cluster_kill(struct cluster *cluster)
{
    char path[128];
    kill(cluster->coordinator, SIGKILL);
    ck_assert_int_eq(waitpid(cluster->coordinator, NULL, 0), cluster->coordinator);
    snprintf(path, sizeof path, "%s/address", cluster->directory);
    ck_assert(unlink(path) == 0 || errno == ENOENT);
}

void cluster_restart(struct cluster *cluster, const char *const *arguments)
{
    ck_assert_msg(cluster_try_restart(cluster, arguments), "the coordinator has died");
}

bool cluster_try_restart(struct cluster *cluster, const char *const *arguments)
{
    char address[sizeof cluster->address];
    memcpy(address, cluster->address, sizeof address);
    bool listens = start(cluster, address, arguments);
    ck_assert_str_eq(address, cluster->address);
    return listens;
}

static int exit_code(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "the coordinator died of signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* A closed store is one file; workers keep two each. */
static void remove_state(const char *directory)
{
    char path[128];
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/state", directory);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && (strcmp(entry->d_name, "store.db") == 0 || strcmp(end, ".coordinator") == 0 ||
                    strcmp(end, ".lock") == 0))
            ck_assert_int_eq(unlinkat(dirfd(folder), entry->d_name, 0), 0);
    }
    if (folder)
        closedir(folder);
    ck_assert_msg(rmdir(path) == 0 || errno == ENOENT, "%s: %s", path, strerror(errno));
}

void cluster_stop(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->party_count; i++)
        party_leave(cluster, &cluster->parties[i]);
    ck_assert_int_eq(kill(cluster->coordinator, SIGTERM), 0);
    ck_assert_int_eq(exit_code(cluster->coordinator), 0);
    /* It leaves nothing behind but its state. */
    remove_state(cluster->directory);
    ck_assert_msg(rmdir(cluster->directory) == 0, "%s: %s", cluster->directory, strerror(errno));
}

int coordinator_run(const char *const *arguments, char *words, size_t size)
{
    int ends[2];
    size_t used = 0;
    char directory[] = "/tmp/gimbal-coordinator-XXXXXX", state[64];
    const char *line[ARGUMENTS_MAX] = {"--state", state};
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(state, sizeof state, "%s/state", directory);
    for (size_t i = 0; arguments[i]; i++)
        line[2 + i] = arguments[i];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = spawn(line, ends[1]);
    close(ends[1]);
    for (ssize_t got = 1; got > 0 && used + 1 < size; used += (size_t)got)
        got = read(ends[0], words + used, size - 1 - used);
    words[used] = '\0';
    close(ends[0]);
    int code = exit_code(pid);
    remove_state(directory);
    ck_assert_int_eq(rmdir(directory), 0);
    return code;
}

static void say_hello(struct party *party)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    party_tell(party, COORDINATOR_HELLO, &hello);
}

static struct party *add_party(struct cluster *cluster, const char *name)
{
    struct error err = {""};
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = cluster->address,
                                         .caller = name,
                                         .fail_fast = true};
    ck_assert_uint_lt(cluster->party_count, PARTIES_MAX);
    struct party *party = &cluster->parties[cluster->party_count++];
    *party = (struct party){.name = name};
    ck_assert_msg(rpc_client_open(&options, &party->client, &err) == 0, "%s", err.text);
    say_hello(party);
    return party;
}

static void take_records(void *data, const struct rpc_watch_event *event)
{
    struct party *party = data;
    struct error err = {""};
    party->status = event->status;
    for (size_t i = 0; i < event->count; i++) {
        const ProtobufCBinaryData *bytes = &event->records[i]->data;
        ck_assert_uint_lt(party->count, RECORDS_MAX);
        int rc = message_unpack(party->type, bytes->data, bytes->len, message_quota(bytes->len),
                                &party->records[party->count++], &err);
        ck_assert_msg(rc == 0, "%s", err.text);
    }
}

struct party *cluster_user(struct cluster *cluster)
{
    struct party *party = add_party(cluster, "ada");
    party->type = &gimbal__event__descriptor;
    party->watch =
        rpc_watch_start(party->client, COORDINATOR_WATCH_EVENTS, "events", 0, take_records, party);
    return party;
}

struct party *cluster_worker(struct cluster *cluster, const char *name, unsigned devices,
                             uint64_t memory_bytes)
{
    const struct hardware_device device = {.kind = HARDWARE_CPU,
                                           .name = "EPYC",
                                           .cpuset = "0-3",
                                           .cores = 4,
                                           .memory_bytes = memory_bytes,
                                           .flops = 1e11,
                                           .bandwidth = 2e10};
    return cluster_worker_of(cluster, name, &device, devices);
}

struct party *cluster_worker_of(struct cluster *cluster, const char *name,
                                const struct hardware_device *device, unsigned count)
{
    struct hardware_report *report = hardware_report_create(name, "boot-1", "EPYC", "0-63");
    hardware_set_text(&report->address, "127.0.0.1");
    report->cores = device->cores * count;
    report->memory_bytes = device->memory_bytes * count;
    for (unsigned i = 0; i < count; i++)
        hardware_report_add_device(report, device);
    struct party *party = cluster_worker_with(cluster, report);
    hardware_report_destroy(report);
    party->name = name;
    return party;
}

struct party *cluster_worker_with(struct cluster *cluster, const struct hardware_report *report)
{
    struct party *party = add_party(cluster, report->node);
    Gimbal__HardwareReport *message = hardware_report_to_wire(report);
    party_tell(party, COORDINATOR_REPORT_HARDWARE, message);
    gimbal__hardware_report__free_unpacked(message, NULL);
    party->type = &gimbal__worker_record__descriptor;
    party->watch = rpc_watch_start(party->client, COORDINATOR_WATCH_ASSIGNMENTS, "assignments", 0,
                                   take_records, party);
    return party;
}

void party_leave(struct cluster *cluster, struct party *party)
{
    (void)cluster;
    rpc_watch_stop(party->watch);
    rpc_client_close(party->client);
    for (size_t i = 0; i < party->count; i++)
        message_free(party->records[i]);
    *party = (struct party){.name = party->name};
}

void *party_ask(struct party *party, unsigned method, const void *request, enum rpc_status *status,
                struct error *words)
{
    const struct rpc_call_options options = {.deadline_ms =
                                                 (uint32_t)test_patience_ms(PATIENCE_MS)};
    ProtobufCMessage *reply = NULL;
    words->text[0] = '\0';
    *status = rpc_client_call(party->client, method, request, &options, &reply, words);
    return reply;
}

void *party_call(struct party *party, unsigned method, const void *request)
{
    enum rpc_status status;
    struct error words;
    void *reply = party_ask(party, method, request, &status, &words);
    ck_assert_msg(status == RPC_OK, "%s of %s: %s: %s", service_coordinator.methods[method].name,
                  party->name, rpc_status_name(status), words.text);
    return reply;
}

void party_tell(struct party *party, unsigned method, const void *request)
{
    message_free(party_call(party, method, request));
}

/* Wait until a client has something to run, and let all run it. */
static void pump_once(struct cluster *cluster)
{
    struct pollfd fds[PARTIES_MAX];
    for (size_t i = 0; i < cluster->party_count; i++) {
        struct rpc_client *client = cluster->parties[i].client;
        fds[i] = (struct pollfd){.fd = client ? rpc_client_fd(client) : -1, .events = POLLIN};
    }
    ck_assert_msg(poll(fds, cluster->party_count, test_patience_ms(PATIENCE_MS)) > 0,
                  "nothing comes any more");
    for (size_t i = 0; i < cluster->party_count; i++)
        if (cluster->parties[i].client)
            rpc_client_poll(cluster->parties[i].client, 0);
}

void cluster_pump(struct cluster *cluster, const bool *flag)
{
    while (!*flag)
        pump_once(cluster);
}

/* Until the party has a record that was not seen, and that. */
static const ProtobufCMessage *next_record(struct cluster *cluster, struct party *party)
{
    while (party->seen == party->count) {
        ck_assert_msg(party->status == RPC_OK, "the stream of %s ended: %s", party->name,
                      rpc_status_name(party->status));
        pump_once(cluster);
    }
    return party->records[party->seen++];
}

const Gimbal__WorkerRecord *cluster_record(struct cluster *cluster, struct party *worker,
                                           Gimbal__WorkerRecord__RecordCase wanted)
{
    const Gimbal__WorkerRecord *record = (const Gimbal__WorkerRecord *)next_record(cluster, worker);
    ck_assert_msg(record->record_case == wanted, "%s got record %d, not %d", worker->name,
                  (int)record->record_case, (int)wanted);
    return record;
}

const Gimbal__Event *cluster_event(struct cluster *cluster, struct party *user, const char *kind)
{
    for (;;) {
        const Gimbal__Event *event = (const Gimbal__Event *)next_record(cluster, user);
        if (!kind || strcmp(event->kind, kind) == 0)
            return event;
    }
}
