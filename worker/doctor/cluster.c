/* cluster.c - checks of what makes this host a node of its cluster: the folder that survives the
 * worker, what lets it in, where other nodes reach it, and its coordinator. */
#include "worker/doctor/examination.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/doctor/reach.h"
#include "common/message/message.h"
#include "common/rpc/address.h"
#include "common/rpc/coordinator_service.h"
#include "common/trust/certificate.h"
#include "worker/hardware/network.h"
#include "worker/node/credentials.h"
#include "worker/node/offer.h"
#include "worker/node/state_folder.h"

#include <errno.h>
#include <linux/magic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* state: the folder for what must survive a worker, its credential and which coordinator it obeys.
 */

/* Whether a running worker holds the lock on NAME.lock there. The kernel lists it as "1: FLOCK
 * ADVISORY WRITE 4711 08:01:1234 0 EOF". Trying the lock instead could keep out a worker that is
 * just starting. */
static bool is_claimed(const struct examination *examination)
{
    char *path = xasprintf("%s/%s.lock", examination->settings->state, examination->settings->name);
    char *locks = xasprintf("%s/locks", examination->proc), line[256], inode[32];
    struct stat status;
    bool claimed = false;
    FILE *file = stat(path, &status) == 0 ? fopen(locks, "re") : NULL;
    snprintf(inode, sizeof inode, ":%llu ", file ? (unsigned long long)status.st_ino : 0);
    while (file && !claimed && fgets(line, sizeof line, file))
        claimed = strstr(line, " FLOCK ") && strstr(line, inode);
    if (file)
        fclose(file);
    free(locks);
    free(path);
    return claimed;
}

/* The nearest ancestor that exists; a check does not create folders. The caller frees it. */
static char *nearest_above(const char *path)
{
    char *above = xstrdup(path), *slash;
    struct stat stat_of;
    while ((slash = strrchr(above, '/')) && stat(above, &stat_of) < 0)
        slash[slash == above] = '\0';
    if (slash)
        return above;
    free(above);
    return xstrdup(".");
}

static void look_above(const char *state, struct findings *out)
{
    char *above = nearest_above(state);
    if (access(above, W_OK | X_OK) == 0)
        finding_ok(out, "%s does not exist yet; the worker will create it in %s", state, above);
    else
        finding_block(out, "a folder of the worker's user, or --state DIR",
                      "%s does not exist, and cannot be created in %s: %s", state, above,
                      strerror(errno));
    free(above);
}

/* Write as the worker does: durably, with a rename over the old file. */
static int try_file(const char *state, double *seconds, struct error *err)
{
    char *path = xasprintf("%s/doctor-%d", state, (int)getpid());
    double begin = clock_s();
    int rc = file_write(path, "this file may go\n", 0600, err);
    *seconds = clock_s() - begin;
    unlink(path);
    free(path);
    return rc;
}

static bool is_in_memory(const char *state)
{
    struct statfs fs;
    return statfs(state, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static void examine_state(void *scene, struct findings *out)
{
    struct examination *examination = scene;
    const struct worker_settings *settings = examination->settings;
    const char *state = settings->state;
    struct error err;
    double seconds;
    char text[32];
    if (access(state, F_OK) < 0 && errno == ENOENT) {
        look_above(state, out);
        return;
    }
    if (try_file(state, &seconds, &err) < 0) {
        finding_block(out,
                      "a folder that the worker's user may write, on a disk with room: --state DIR",
                      "%s", err.text);
        return;
    }
    examination->works = is_claimed(examination);
    units_print_seconds(text, sizeof text, seconds);
    if (settings->tls && is_in_memory(state))
        finding_warn(out, "a folder on a disk: --state DIR",
                     "%s is in memory: when the machine restarts, this node's credential is lost, "
                     "and it has to join again",
                     state);
    else
        finding_ok(out, "%s stores a file durably in %s%s", state, text,
                   examination->works ? "; a worker of this name is running there" : "");
}

const struct doctor_check check_state = {"state", "the folder for what must survive the worker",
                                         examine_state};

/* certificates: what lets this node in, and for how long. */
#define DAY_S 86400
#define DAYS_SOON 30

/* Whole days until a certificate expires. */
static long days_left(const char *text)
{
    struct certificate_facts facts;
    if (certificate_read(text, &facts, NULL) < 0)
        return 0;
    return (long)((facts.not_after_s - (int64_t)time(NULL)) / DAY_S);
}

static void report_days(const struct examination *examination,
                        const struct credentials *credentials, bool joined, struct findings *out)
{
    long own = days_left(credentials->bundle->certificate);
    long authority = days_left(credentials->bundle->authority);
    long least = own < authority ? own : authority;
    const char *which = own <= authority ? "tls.crt" : "ca.crt";
    const char *folder = credentials->bundle->directory;
    if (least < DAYS_SOON)
        finding_warn(out, "'gimbal cluster init DIR --renew', and the new folder on every node",
                     "%s/%s expires in %ld day%s, and nobody is let in after that", folder, which,
                     least, least == 1 ? "" : "s");
    else if (joined)
        finding_ok(out, "%s/%s is valid for %ld days; node '%s' has joined", folder, which, least,
                   examination->settings->name);
    else
        finding_ok(out, "%s/%s is valid for %ld days; node '%s' will join with %s", folder, which,
                   least, examination->settings->name, examination->settings->join);
}

static void examine_certificates(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    struct credentials credentials;
    struct error err;
    bool joined;
    if (!examination->settings->tls) {
        finding_ok(out, "none are needed: the coordinator is on this machine");
        return;
    }
    int rc = credentials_open_kept(examination->settings, &credentials, &joined, &err);
    if (rc < 0) {
        finding_block(out,
                      "the folder certs/worker from 'gimbal cluster init', readable only by the "
                      "worker's user, and a token from 'gimbal cluster token worker'",
                      "%s", err.text);
        return;
    }
    report_days(examination, &credentials, joined, out);
    credentials_finish(&credentials);
}

const struct doctor_check check_certificates = {"certificates", "what this node joins with",
                                                examine_certificates};

/* address: where ranks of other nodes reach those of this one. */

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* Whether the coordinator is on another machine. */
static bool is_away(const char *coordinator)
{
    char source[NETWORK_ADDRESS_SIZE];
    struct error err;
    return offer_source(coordinator, source, &err) == 0 && !is_loopback(source);
}

static void examine_address(void *scene, struct findings *out)
{
    static const char right[] = "--host-address IP, one of this machine's on the nodes' network";
    const struct examination *examination = scene;
    const struct worker_settings *settings = examination->settings;
    struct rpc_address coordinator;
    struct error err;
    if (!examination->report)
        return;
    if (offer_address(settings, examination->report, &err) < 0) {
        finding_block(out, right, "%s", err.text);
        return;
    }
    const char *address = examination->report->address;
    if (!is_loopback(address))
        finding_ok(out, "other nodes are given %s, and ranks can listen there", address);
    else if (is_away(settings->coordinator))
        finding_block(
            out, right,
            "other nodes are given %s, which is their own address, too: jobs on this node "
            "and others cannot start",
            address);
    else if (rpc_address_parse(settings->coordinator, &coordinator, &err) == 0 && coordinator.tls)
        finding_warn(out, right,
                     "other nodes are given %s, which is their own address, too: jobs on this "
                     "machine and others cannot start",
                     address);
    else
        finding_ok(out, "%s: without TLS, only workers on this machine can join a coordinator",
                   address);
}

const struct doctor_check check_address = {"address", "how other nodes reach this one",
                                           examine_address};

/* coordinator: whether it answers this node, is the one that the node belongs to, and has the same
 * release and time. */
#define DEADLINE_MS 5000
#define SKEW_S 5.0 /* traces and logs of several nodes are aligned by their clocks */

static double calendar_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void compare_release(const char *release, struct findings *out)
{
    if (strcmp(release, GIMBAL_RELEASE) != 0)
        finding_warn(
            out, "the same release on every machine",
            "the coordinator is of release %s, and this worker of %s: a rank refuses a plan "
            "that it lowers to another program",
            release, GIMBAL_RELEASE);
}

/* `begin` and `end` are the times of the call by our clock. */
static void compare_clock(const Gimbal__HelloReply *reply, double begin, double end,
                          struct findings *out)
{
    char text[32];
    double skew = (double)reply->unix_ms / 1000 - (begin + end) / 2;
    if (reply->unix_ms == 0 || fabs(skew) < SKEW_S + (end - begin) / 2)
        return;
    finding_warn(out, "the same time on all machines: chrony or systemd-timesyncd",
                 "the coordinator's clock is %s %s of this machine's: certificates and tokens may "
                 "be refused, and traces do not line up",
                 units_print_duration(text, sizeof text, fabs(skew)),
                 skew > 0 ? "ahead" : "behind");
}

static void look_at_held(const char *coordinator, const Gimbal__HelloReply *reply,
                         struct findings *out)
{
    struct rpc_address address;
    struct reach reach = {0};
    struct error err;
    int rc = rpc_address_parse(coordinator, &address, &err);
    if (rc == 0)
        rc = reach_port(address.host, (uint16_t)reply->held_port, DEADLINE_MS, &reach, &err);
    if (rc == 0 && reach.listens)
        return;
    finding_block(out, "a firewall that lets nodes reach PORT and PORT + 1",
                  "calls that wait for news go to port %u, which cannot be reached: %s",
                  reply->held_port, rc < 0 ? err.text : "nobody listens there");
}

static void report_coordinator(const struct examination *examination,
                               const Gimbal__HelloReply *reply, double begin, double end,
                               struct findings *out)
{
    size_t before = out->count;
    char text[32];
    compare_release(reply->release, out);
    compare_clock(reply, begin, end, out);
    look_at_held(examination->settings->coordinator, reply, out);
    if (out->count == before)
        finding_ok(out, "%s, release %s, answers in %s", examination->settings->coordinator,
                   reply->release, units_print_seconds(text, sizeof text, end - begin));
}

static void call_coordinator(const struct examination *examination, struct rpc_client *client,
                             struct findings *out)
{
    Gimbal__HelloRequest hello = GIMBAL__HELLO_REQUEST__INIT;
    struct rpc_call_options options = {.deadline_ms = DEADLINE_MS};
    ProtobufCMessage *reply;
    struct error err;
    hello.release = (char *)GIMBAL_RELEASE;
    double begin = calendar_s();
    enum rpc_status status =
        rpc_client_call(client, COORDINATOR_HELLO, &hello.base, &options, &reply, &err);
    if (status == RPC_OK) {
        report_coordinator(examination, (const Gimbal__HelloReply *)reply, begin, calendar_s(),
                           out);
        message_free(reply);
    } else {
        finding_block(
            out,
            "a coordinator of this release that knows this node, at that address; a "
            "node that was revoked joins again: remove its credential, and give it a token",
            "%s: %s", examination->settings->coordinator, err.text);
    }
}

static int read_fence(const struct worker_settings *settings, struct rpc_fence *out,
                      struct error *err)
{
    char *path = fence_path(settings->state, settings->name);
    int rc = fence_read(path, out, err);
    free(path);
    return rc;
}

static void examine_coordinator(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    const struct worker_settings *settings = examination->settings;
    struct credentials credentials = {0};
    struct rpc_client *client = NULL;
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = settings->coordinator,
                                         .caller = settings->name,
                                         .fail_fast = true};
    struct error err;
    bool joined = false;
    if (credentials_open_kept(settings, &credentials, &joined, &err) < 0)
        return; /* the check before this one has reported it */
    credentials_apply(&credentials, &options);
    if (!joined)
        options.credential = NULL;
    int rc = read_fence(settings, &options.fence, &err);
    if (rc == 0)
        rc = rpc_client_open(&options, &client, &err);
    if (rc < 0)
        finding_block(out,
                      rc == -EACCES
                          ? "certificates of one 'gimbal cluster init', whose --host has "
                            "the name in --coordinator"
                          : "a coordinator at that address (--coordinator), started before "
                            "its nodes, and a firewall that lets them through",
                      "%s", err.text);
    else
        call_coordinator(examination, client, out);
    rpc_client_close(client);
    credentials_finish(&credentials);
}

const struct doctor_check check_coordinator = {"coordinator", "the coordinator of this node",
                                               examine_coordinator};
