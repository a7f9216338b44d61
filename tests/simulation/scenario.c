/* scenario.c - what befalls a cluster: its size, its faults and its users, drawn from the seed;
 * then calm, in which everything has to come to its end. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/memory.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/matrix.h"
#include "tests/simulation/measured.h"

#define SETTLE_MS ((uint64_t)3 * 3600 * 1000)
#define SETTLE_CHECK_MS 1000
#define CELL_S 240 /* of a world of the fault matrix */

struct cluster *cluster;

/* A worker is unlucky. */
static void strike(struct sim_node *node)
{
    switch (world_draw(6)) {
    case 0:
        node_kill(node, false);
        break;
    case 1:
        node_kill(node, true);
        break;
    case 2:
        node_terminate(node);
        break;
    case 3:
        node_cut(node, world_between(100, 4000));
        break;
    case 4:
        node_cut(node, world_between(4000, 60000));
        break;
    default:
        node_break(node);
        break;
    }
}

static void misfortune(void *data)
{
    (void)data;
    if (world->calm)
        return;
    strike(&cluster->nodes[world_draw(cluster->node_count)]);
    world_after(1 + world_draw(2 * world->faults.worker_every_ms), misfortune, NULL);
}

/* Of the jobs that are starting one that is new; NULL: none is. */
static const struct job *starting_job(void)
{
    const struct disk *disk = cluster->coordinator.disk;
    for (size_t i = disk->job_count; i > 0; i--)
        if (disk->jobs[i - 1]->state == JOB_STARTING)
            return disk->jobs[i - 1];
    return NULL;
}

/* What is assigned and has not come yet is taken back, does not come, and is not remembered. */
static void strike_start(void *data)
{
    (void)data;
    const struct job *job = starting_job();
    if (world->calm || !job)
        return;
    if (world->faults.worker_every_ms && world_chance(500)) {
        const struct job_rank *unlucky = &job->ranks[world_draw(job->rank_count)];
        node_cut(node_named(unlucky->device.worker), world_between(100, 6000));
    }
    if (world_chance(500))
        users_cancel(cluster->users);
    if (world->faults.crash_effect && world_chance(500) && cluster->coordinator.service)
        cluster->coordinator.actor.effects_left = 1 + world_draw(50);
}

void scenario_job_starts(void)
{
    if (!world->calm && world_chance(world->faults.start))
        world_after(world_draw(10), strike_start, NULL);
}

static void act(void *data)
{
    (void)data;
    if (world->calm)
        return;
    users_act(cluster->users, cluster->user_count);
    world_after(1 + world_draw(world->options.big ? 8000 : 14000), act, NULL);
}

/* Some worlds are bad in one way only, so that what that way must not do is seen. */
static void draw_faults(struct faults *faults)
{
    uint64_t kind = world_draw(10);
    bool all = kind >= 5;
    faults->calm_hearts = !world_chance(150);
    if (kind <= 1 || all) {
        faults->crash_effect = 700;
        faults->outage = 100;
        faults->calendar = 300;
        faults->commit = world_chance(300) ? 3 : 0;
        faults->commit_slow = world_chance(300) ? 6 : 0;
        faults->full = world_chance(300) ? 3 : 0;
    }
    if (kind == 2 || all) {
        faults->planner_slow = 100;
        faults->planner_unfit = 150;
        faults->planner_refused = 50;
    }
    if (kind == 3 || all) {
        faults->worker_every_ms = world->options.big ? 3000 : world_between(4000, 60000);
        faults->slow_network = world_chance(300) ? 100 : 0;
        faults->echo = 5;
    }
    if (kind == 4 || all) {
        faults->executor_fault = 4;
        faults->executor_stubborn = 200;
        faults->executor_wrong_hash = 5;
    }
    faults->start = all ? 100 : 20;
    if (all && world_chance(500))
        faults->impostor = 400;
}

static void begin_bad_things(void)
{
    world_after(1000, act, NULL);
    if (world->faults.worker_every_ms)
        world_after(world->faults.worker_every_ms, misfortune, NULL);
}

static void begin(void)
{
    const struct measured *measured = world->options.measured;
    cluster = xcalloc(1, sizeof *cluster);
    if (!world->options.cell && !measured)
        draw_faults(&world->faults);
    matrix_open();
    coordinator_init(&cluster->coordinator, false);
    cluster->coordinator.disk = disk_create();
    coordinator_start(&cluster->coordinator);
    cluster->node_count = measured             ? measured->nodes
                          : world->options.big ? 1000
                                               : world_between(8, 32);
    cluster->nodes = xcalloc(cluster->node_count, sizeof *cluster->nodes);
    for (size_t i = 0; i < cluster->node_count; i++)
        node_init(&cluster->nodes[i], i);
    world->echoes_of = cluster->nodes[0].actor.poll_cb;
    cluster->user_count = 2;
    cluster->users = users_create(cluster->user_count);
    if (measured)
        measured_begin();
    else
        begin_bad_things();
}

static void run_until(uint64_t time_ms)
{
    while (world_step(time_ms))
        ;
    world->now_ms = time_ms;
}

/* From here on all is well. */
static void calm_down(void)
{
    world_trace("calm");
    world->calm = true;
    if (world->options.measured)
        users_cancel(cluster->users);
    cluster->coordinator.actor.effects_left = 0;
    uint64_t until_ms = world->now_ms + SETTLE_MS;
    while (!users_settled(cluster->users, cluster->user_count) && world->now_ms < until_ms)
        run_until(world->now_ms +
                  SETTLE_CHECK_MS); /* some may still want a node drained, or a job paused */
    users_free_all(cluster->users);
    while (!check_settled() && world->now_ms < until_ms)
        run_until(world->now_ms + SETTLE_CHECK_MS);
}

static void end(void)
{
    coordinator_finish(&cluster->impostor);
    coordinator_finish(&cluster->coordinator);
    for (size_t i = 0; i < cluster->node_count; i++)
        node_finish(&cluster->nodes[i]);
    users_destroy(cluster->users, cluster->user_count);
    executors_close();
    checks_close();
    disk_destroy(cluster->backup);
    world_drop_events();
    network_close();
    free(cluster->nodes);
    free(cluster);
    cluster = NULL;
}

void simulate(const struct world_options *options, struct tally *tally)
{
    struct world made = {.options = *options};
    world = &made;
    world->end_ms = (uint64_t)(options->big ? 7200 : options->cell ? CELL_S : 600) * 1000;
    if (options->measured)
        world->end_ms = options->measured->time_ms;
    network_open();
    executors_open();
    checks_open();
    begin();
    run_until(world->end_ms);
    calm_down();
    check_end();
    *tally = world->tally;
    end();
    world = NULL;
}
