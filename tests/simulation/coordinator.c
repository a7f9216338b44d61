/* coordinator.c - the life of a simulated coordinator, as coordinator/main.c leads it: a store, a
 * term, the service, and turns until it dies; and that of one which was started by mistake. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/service/calls.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

#define ADDRESS "tcp://127.0.0.1:7070"
#define LIFE_BITS_MAX 13 /* of the number of its effects: many lives are short */
#define RESTART_MS_MAX 5000
#define OUTAGE_MS 60000
#define CALENDAR_MS 1700000000000
#define JUMP_MS_MAX 7200000
#define IMPOSTOR_MS_MAX 60000

/* Of the one that runs. */
static uint64_t calendar_ms(void)
{
    const struct coordinator *coordinator = (const struct coordinator *)world->current;
    return world_now_ms() + coordinator->calendar_ms;
}

static void start_again(void *data)
{
    struct coordinator *coordinator = data;
    coordinator->start = NULL;
    coordinator_start(coordinator);
}

/* Nothing of it is left; the disk has what was committed. */
static void stop(struct coordinator *coordinator)
{
    struct actor *before = actor_enter(&coordinator->actor);
    actor_forget(&coordinator->actor);
    coordinator->actor.doomed = true;
    service_close(coordinator->service);
    store_close(coordinator->store);
    coordinator->service = NULL;
    coordinator->store = NULL;
    actor_leave(before);
}

static void die(struct actor *actor)
{
    struct coordinator *coordinator = (struct coordinator *)actor;
    world_trace("%s is dead", actor->name);
    stop(coordinator);
    if (coordinator->impostor)
        return;
    world->tally.crashes++;
    coordinator->away_ms = world->now_ms;
    if (!world->calm && cluster->users && world_chance(200))
        users_cancel(cluster->users); /* it is the first thing that the next one hears */
    bool outage = !world->calm && world_chance(world->faults.outage);
    uint64_t pause_ms = outage ? OUTAGE_MS : world_between(1, RESTART_MS_MAX);
    coordinator->start = world_after(pause_ms, start_again, coordinator);
}

static void poll_service(struct actor *actor)
{
    struct coordinator *coordinator = (struct coordinator *)actor;
    struct error err;
    if (!coordinator->service)
        return;
    check_begin(coordinator);
    if (service_poll(coordinator->service, &err) < 0) {
        world_trace("stops: %s", err.text);
        actor_doom(actor);
        return;
    }
    if (actor->doomed)
        return;
    check_turn(coordinator);
    uint64_t busy_until_ms = world_now_ms();
    if (busy_until_ms > world->now_ms) {
        coordinator->slow_until_ms = busy_until_ms;
        uint64_t busy_ms = busy_until_ms - world->now_ms;
        if (busy_ms >= 2 * coordinator->service->state->options.membership.heartbeat_ms)
            nodes_give_up(busy_ms);
    }
    int timeout_ms = service_timeout_ms(coordinator->service);
    actor_wake_at(actor, timeout_ms < 0 ? UINT64_MAX : busy_until_ms + (uint64_t)timeout_ms);
}

void coordinator_init(struct coordinator *coordinator, bool impostor)
{
    *coordinator = (struct coordinator){.impostor = impostor};
    coordinator->actor.name = impostor ? "impostor" : "coordinator";
    coordinator->actor.poll_cb = poll_service;
    coordinator->actor.die_cb = die;
    coordinator->calendar_ms = CALENDAR_MS;
}

static void draw_start(struct coordinator *coordinator)
{
    struct actor *actor = &coordinator->actor;
    actor->doomed = false;
    actor->effects_left = 0;
    actor->busy_until_ms = 0;
    if (world->calm)
        return;
    if (world_chance(world->faults.crash_effect))
        actor->effects_left = 1 + world_draw((uint64_t)1 << world_between(2, LIFE_BITS_MAX));
    if (world_chance(world->faults.calendar))
        coordinator->calendar_ms += world_draw(2 * JUMP_MS_MAX) - JUMP_MS_MAX;
}

/* Of the disk as it is before this start, or before one of those before it. */
static void keep_backup(const struct disk *disk)
{
    if (!world->faults.impostor || (cluster->backup && world_chance(500)))
        return;
    disk_destroy(cluster->backup);
    cluster->backup = disk_copy(disk);
}

void coordinator_start(struct coordinator *coordinator)
{
    struct actor *before = actor_enter(&coordinator->actor);
    struct error err;
    draw_start(coordinator);
    if (!coordinator->impostor) {
        keep_backup(coordinator->disk);
        world->tally.coordinators++;
        coordinator->outage_ms = world->now_ms - coordinator->away_ms;
    }
    struct state_options options = {
        .release = "0.1.0",
        .membership = MEMBERSHIP_CONFIG_DEFAULT,
        .instance = world_draw(UINT64_MAX),
        .clock_cb = calendar_ms,
    };
    if (world->faults.calm_hearts) {
        options.membership.heartbeat_ms = 4000;
        options.membership.dead_ms = 16000;
    }
    options.store = coordinator->store = store_on(coordinator->disk, &coordinator->actor);
    store_begin_term(options.store, &options.term, &err);
    if (options.term <= coordinator->term && !coordinator->actor.doomed)
        world_fail("term %llu begins after term %llu", (unsigned long long)options.term,
                   (unsigned long long)coordinator->term);
    if (!coordinator->actor.doomed)
        coordinator->term = options.term;
    int rc = service_open(&options, &coordinator->service, &err);
    if (rc == 0)
        rc = service_listen(coordinator->service, ADDRESS, NULL, &err);
    world_trace("starts in term %llu", (unsigned long long)options.term);
    actor_leave(before);
    if (rc < 0 && !coordinator->actor.doomed)
        actor_doom(&coordinator->actor); /* its store has failed already */
    if (coordinator->actor.doomed)
        return;
    check_restart(coordinator);
    actor_wake(&coordinator->actor);
    if (!coordinator->impostor)
        impostor_maybe();
}

static void route(struct sim_node *node, struct actor *server)
{
    node->trouble_ms = server == &cluster->impostor.actor ? UINT64_MAX : world->now_ms;
    if (node->actor.server == server)
        return;
    node->actor.server = server;
    network_break(&node->actor);
    network_break(&node->actor);
}

static void end_impostor(void *data)
{
    struct coordinator *impostor = data;
    impostor->start = NULL;
    if (impostor->service) {
        check_impostor(impostor);
        stop(impostor);
    }
    disk_destroy(impostor->disk);
    impostor->disk = NULL;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].actor.server == &impostor->actor)
            route(&cluster->nodes[i], &cluster->coordinator.actor);
}

/* From an older disk, and where some nodes reach it in place of ours; those that know no term at
 * all cannot tell the two apart. */
void impostor_maybe(void)
{
    struct coordinator *impostor = &cluster->impostor;
    if (world->calm || impostor->disk || !cluster->backup || cluster->backup->term == 0 ||
        !world_chance(world->faults.impostor))
        return;
    coordinator_init(impostor, true);
    impostor->disk = disk_copy(cluster->backup);
    impostor->term = cluster->backup->term;
    coordinator_start(impostor);
    world->tally.impostors++;
    for (size_t i = 0; i < cluster->node_count; i++)
        if (cluster->nodes[i].up && node_term(&cluster->nodes[i]) >= impostor->term &&
            world_chance(400))
            route(&cluster->nodes[i], &impostor->actor);
    impostor->start = world_after(world_between(2000, IMPOSTOR_MS_MAX), end_impostor, impostor);
}

void coordinator_finish(struct coordinator *coordinator)
{
    if (coordinator->service)
        stop(coordinator);
    disk_destroy(coordinator->disk);
}
