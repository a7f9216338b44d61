/* coordinator.c - whether the coordinator answers this node, is the one that the node belongs to,
 * and has the same release and time. */
#include "worker/doctor/machine.h"

#include "common/base/units.h"
#include "common/rpc/address.h"
#include "common/rpc/message.h"
#include "common/rpc/reach.h"
#include "common/rpc/services/coordinator.h"
#include "worker/daemon/fence.h"
#include "worker/daemon/pass.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void tell(const struct machine *machine, const Gimbal__HelloReply *reply, double begin,
                 double end, struct findings *out)
{
    size_t before = out->count;
    char text[32];
    compare_release(reply->release, out);
    compare_clock(reply, begin, end, out);
    look_at_held(machine->settings->coordinator, reply, out);
    if (out->count == before)
        finding_ok(out, "%s, release %s, answers in %s", machine->settings->coordinator,
                   reply->release, units_print_seconds(text, sizeof text, end - begin));
}

static void call(const struct machine *machine, struct rpc_client *client, struct findings *out)
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
        tell(machine, (const Gimbal__HelloReply *)reply, begin, calendar_s(), out);
        message_free(reply);
    } else {
        finding_block(
            out,
            "a coordinator of this release that knows this node, at that address; a "
            "node that was revoked joins again: remove its credential, and give it a token",
            "%s: %s", machine->settings->coordinator, err.text);
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

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    const struct worker_settings *settings = machine->settings;
    struct pass pass = {0};
    struct rpc_client *client = NULL;
    struct rpc_client_options options = {.service = &service_coordinator,
                                         .address = settings->coordinator,
                                         .caller = settings->name,
                                         .fail_fast = true};
    struct error err;
    bool joined = false;
    if (pass_open_kept(settings, &pass, &joined, &err) < 0)
        return; /* the check before this one has reported it */
    pass_apply(&pass, &options);
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
        call(machine, client, out);
    rpc_client_close(client);
    pass_finish(&pass);
}

const struct doctor_check check_coordinator = {
    .name = "coordinator",
    .about = "the coordinator of this node",
    .cb = look,
};
