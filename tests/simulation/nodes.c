/* nodes.c - nodes and their workers: the daemon's loop in virtual time, what befalls them, and the
 * one thing that they keep on disk. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/measured.h"
#include "worker/node/credentials.h"
#include "worker/node/state_folder.h"

#define ADDRESS "tcp://127.0.0.1:7070"
/* A lost connection may be noticed so late. */
#define AFTERMATH_MS 45000

uint64_t node_term(const struct sim_node *node)
{
    uint64_t now = node->up && node->daemon->client ? rpc_client_term(node->daemon->client) : 0;
    return now > node->fence.term ? now : node->fence.term;
}

/* worker/node/state_folder.h: the node's own disk; the path is its name. */

char *fence_path(const char *state, const char *node)
{
    (void)state;
    return xstrdup(node);
}

int fence_read(const char *path, struct rpc_fence *out, struct error *err)
{
    (void)err;
    *out = node_named(path)->fence;
    return 0;
}

int fence_write(const char *path, const struct rpc_fence *fence, struct error *err)
{
    (void)err;
    struct sim_node *node = node_named(path);
    if (actor_effect(&node->actor))
        node->fence = *fence;
    return 0;
}

/* worker/node/credentials.h: on loopback nobody is asked who he is. */
void credentials_apply(const struct credentials *credentials, struct rpc_client_options *options)
{
    (void)credentials, (void)options;
}

static void start_again(void *data)
{
    struct sim_node *node = data;
    node->start = NULL;
    node_start(node);
}

/* Nothing of the worker is left. */
static void stop(struct sim_node *node)
{
    struct actor *before = actor_enter(&node->actor);
    node->up = false;
    node->actor.doomed = true;
    actor_forget(&node->actor);
    executors_kill_node(node->name);
    daemon_close(node->daemon);
    node->daemon = NULL;
    actor_leave(before);
    if (!node->over)
        node->start = world_after(duration_ms(DURATION_RETURN), start_again, node);
}

static void die(struct actor *actor)
{
    struct sim_node *node = (struct sim_node *)actor;
    if (!node->up)
        return;
    if (node->trouble_ms != UINT64_MAX)
        node->trouble_ms = world->now_ms;
    check_excuse_node(node);
    stop(node);
}

/* As daemons_run() does it. */
static void turn(struct actor *actor)
{
    struct sim_node *node = (struct sim_node *)actor;
    struct daemon *daemon = node->daemon;
    struct pollfd *fds = xcalloc(daemon_fd_count(daemon), sizeof *fds);
    daemon_list_fds(daemon, fds);
    fds[0].revents = POLLIN; /* the client's */
    for (size_t i = 1; i < daemon_fd_count(daemon); i++)
        fds[i].revents = executor_says(fds[i].fd) ? POLLIN : 0;
    daemon_turn(daemon, fds);
    free(fds);
    if (actor->doomed)
        return;
    check_node(node);
    if (daemon->quit) {
        node->trouble_ms = world->now_ms;
        stop(node);
        return;
    }
    actor_wake_at(actor, daemon_next_ms(daemon));
    if (daemon->actions.count > 0)
        actor_wake(actor);
}

void node_start(struct sim_node *node)
{
    struct error err;
    node->actor.doomed = false;
    node->actor.effects_left = 0;
    node->up = true;
    static const struct credentials nothing;
    struct daemon_options options = {.report = node->report,
                                     .coordinator = ADDRESS,
                                     .credentials = &nothing,
                                     .state = "/",
                                     .shim = "shim",
                                     .executor = "executor"};
    world_trace("%s starts", node->name);
    struct actor *before = actor_enter(&node->actor);
    if (daemon_open(&options, &node->daemon, &err) < 0)
        world_fail("%s cannot begin: %s", node->name, err.text);
    actor_leave(before);
    actor_wake(&node->actor);
}

/* One or several devices; every fourth node shares its host with the one before it. */
void node_init(struct sim_node *node, size_t index)
{
    char host[HARDWARE_NAME_SIZE];
    *node = (struct sim_node){0};
    snprintf(node->name, sizeof node->name, "w%03zu", index);
    snprintf(host, sizeof host, "host%03zu", index - (index % 4 == 3 ? 1 : 0));
    node->actor.name = node->name;
    node->actor.poll_cb = turn;
    node->actor.die_cb = die;
    node->actor.server = &cluster->coordinator.actor;
    node->slow = world_chance(world->faults.slow_network);
    node->actor.delay_ms_min = node->slow ? 50 : 1;
    node->actor.delay_ms_most = node->slow ? 900 : 5;
    node->report = hardware_report_create(node->name, host, "CPU", "0-3");
    node->report->cores = 4;
    node->report->memory_bytes = (uint64_t)4 << 30;
    enum hardware_kind kind = index % 5 == 4 ? HARDWARE_GPU : HARDWARE_CPU;
    uint64_t devices = world->options.measured ? 1 : 1 + world_draw(3);
    /* of two workers of a host, too, no devices share cores */
    static char *const cores[] = {"0", "1", "2", "3", "4", "5"};
    const uint64_t first = index % 4 == 3 ? 3 : 0;
    for (uint64_t i = 0; i < devices; i++)
        hardware_report_add_device(node->report,
                                   &(struct hardware_device){.kind = kind,
                                                             .name = "d",
                                                             .cpuset = cores[first + i],
                                                             .cores = 1,
                                                             .memory_bytes = 1 << 30,
                                                             .flops = 1e12,
                                                             .bandwidth = 1e11});
    node->start = world_after(world_draw(3000), start_again, node);
}

void node_kill(struct sim_node *node, bool machine)
{
    if (!node->up)
        return;
    world->tally.workers_killed++;
    node->trouble_ms = world->now_ms;
    check_excuse_node(node);
    if (machine) {
        world_trace("%s loses power", node->name);
        network_vanish(&node->actor);
        actor_doom(&node->actor);
    } else {
        world_trace("%s is killed soon", node->name);
        node->actor.effects_left = world_between(1, 6);
    }
}

void node_die(struct sim_node *node)
{
    if (!node->up)
        return;
    world->tally.workers_killed++;
    node->trouble_ms = world->now_ms;
    check_excuse_node(node);
    actor_doom(&node->actor);
}

void node_terminate(struct sim_node *node)
{
    if (!node->up)
        return;
    struct actor *before = actor_enter(&node->actor);
    world_trace("%s is asked to stop", node->name);
    node->trouble_ms = world->now_ms;
    check_excuse_node(node);
    daemon_terminate(node->daemon);
    actor_leave(before);
    actor_wake(&node->actor);
}

static void heal(void *data)
{
    struct sim_node *node = data;
    node->heal = NULL;
    node->trouble_ms = world->now_ms;
    world_trace("%s is in reach again", node->name);
    network_heal(&node->actor);
}

void node_cut(struct sim_node *node, uint64_t time_ms)
{
    if (node->actor.cut)
        return;
    world_trace("%s is cut off", node->name);
    world->tally.cuts++;
    node->actor.cut = true;
    node->trouble_ms = UINT64_MAX;
    check_excuse_node(node);
    node->heal = world_after(time_ms, heal, node);
}

void node_break(struct sim_node *node)
{
    if (node->actor.cut)
        return;
    if (node->trouble_ms != UINT64_MAX)
        node->trouble_ms = world->now_ms;
    check_excuse_node(node);
    network_break(&node->actor);
}

/* A connection that closes while the coordinator takes no calls is the coordinator's doing, as far
 * as that can know: the node is in no trouble for it, and nothing of it may be taken for lost. */
static void give_up(void *data)
{
    struct sim_node *node = data;
    if (node->up && !node->slow && !node->actor.cut)
        network_break(&node->actor);
}

void nodes_give_up(uint64_t busy_ms)
{
    for (size_t i = 0; i < cluster->node_count && !world->calm; i++)
        if (world_chance(500))
            world_after(world_between(1, busy_ms / 2), give_up, &cluster->nodes[i]);
}

bool node_lives_as(const struct sim_node *node, uint64_t instance)
{
    return node->up && node->daemon && node->daemon->client &&
           rpc_client_id(node->daemon->client) == instance;
}

bool node_in_trouble(const struct sim_node *node, uint64_t since_ms)
{
    return node->slow || node->trouble_ms == UINT64_MAX ||
           (node->trouble_ms > 0 && node->trouble_ms + AFTERMATH_MS >= since_ms);
}

void node_finish(struct sim_node *node)
{
    node->over = true;
    if (node->up)
        stop(node);
    hardware_report_destroy(node->report);
}

struct sim_node *node_named(const char *name)
{
    for (size_t i = 0; i < cluster->node_count; i++)
        if (strcmp(cluster->nodes[i].name, name) == 0)
            return &cluster->nodes[i];
    world_fail("there is no node %s", name);
}
