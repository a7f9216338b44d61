/* kills.c - measures the time from a death to the next finished step. A coordinator and four
 * workers on this machine train the demo's model. While a rank computes a randomly drawn
 * instruction, by turns its executor is killed, or its worker with the executor; workers are
 * started again. Times are those of the coordinator's events; detection counts from the kill.
 * The second half of them are those of a job that may have no replicas, so that it makes copies.
 * Restarting everything from the newest checkpoint, one every 20 steps, is measured in the same way
 * but at random times, because its executors keep nothing that says where they are.
 *
 * A kill must hit a job that trains again, so the next victim is chosen only after the job has
 * reported further steps. */
#include "bench/recovery/figures.h"
#include "bench/recovery/recovery.h"

#include "bench/victims.h"
#include "common/base/memory.h"
#include "coordinator/cli/events.h"
#include "coordinator/cli/exit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELAY_MS_MOST 500 /* of a kill, once training goes on */
#define NAP_MS 10
#define START_S 60 /* that a cluster may take until its job trains */
#define KILL_S 20  /* that one kill may take, with all that follows */
#define KILL_MS 20000

/* Keys of the event's own figures, in seconds but for the steps. */
static const char *const keys[PHASES] = {
    [QUIESCE] = "quiesce_s", [WAIT] = "wait_s", [PLAN] = "plan_s",       [START] = "start_s",
    [PREPARE] = "prepare_s", [MOVE] = "move_s", [FIRST_STEP] = "step_s", [LOST] = "steps_lost",
};

struct kills {
    struct victims victims;
    bool replans;
    int wanted, count;
    bool worker;                     /* the newest victim is a worker */
    bool planned_replicas, replicas; /* the newest plan's class; of the one that was struck */
    uint64_t killed_ms, noticed_ms;
    struct kill *kills;
};

/* Every other victim is a worker. The job may have moved meanwhile, onto devices that came back. */
static void strike(struct kills *kills)
{
    struct victims *victims = &kills->victims;
    pid_t executor = 0;
    uint64_t behind = victims->step + 1, until_ms = victims_now_unix_ms() + KILL_MS;
    while (executor <= 0) {
        while (!victims_choose(victims, behind)) {
            victims_nap(NAP_MS);
            if (victims_now_unix_ms() > until_ms)
                victims_give_up(victims);
        }
        victims_nap(victims_draw(victims, DELAY_MS_MOST));
        executor = victims_choose(victims, behind) ? victims_executor(victims) : 0;
        if (kills->replans && executor > 0 &&
            !bench_await_moment(executor, victims_draw_share(victims)))
            executor = 0;
    }
    kills->worker = kills->count % 2 == 1;
    kills->replicas = kills->planned_replicas;
    kills->noticed_ms = 0;
    kills->killed_ms = victims_now_unix_ms();
    if (kills->worker)
        demo_cluster_kill(&victims->cluster, victims->node);
    else
        kill(executor, SIGKILL);
}

static double since_kill(const struct kills *kills, uint64_t unix_ms)
{
    return unix_ms > kills->killed_ms ? (double)(unix_ms - kills->killed_ms) * 1e-3 : 0;
}

static void measure(struct kills *kills, const Gimbal__Event *event)
{
    struct kill *kill = &kills->kills[kills->count++];
    json_t *json = json_loads(event->json, 0, NULL);
    *kill = (struct kill){.worker = kills->worker, .replicas = kills->replicas};
    for (int phase = 0; phase < PHASES; phase++)
        if (keys[phase])
            kill->of[phase] = json_number_value(json_object_get(json, keys[phase]));
    kill->of[DETECT] = since_kill(kills, kills->noticed_ms);
    kill->of[WHOLE] = since_kill(kills, event->unix_ms);
    kill->of[USUAL_STEP] = kills->victims.usual_s;
    kill->of[CAUGHT_UP] = kill->of[WHOLE] + kill->of[LOST] * kills->victims.usual_s;
    json_decref(json);
}

static bool is(const Gimbal__Event *event, const char *kind)
{
    return strcmp(event->kind, kind) == 0;
}

/* Whether the plan has every slice on two nodes. */
static bool has_replicas(const Gimbal__Event *event)
{
    json_t *json = json_loads(event->json, 0, NULL);
    const char *safety = json_string_value(json_object_get(json, "safety"));
    bool has = safety && strcmp(safety, "replicas") == 0;
    json_decref(json);
    return has;
}

/* A worker that was killed comes back before anything else happens. What the coordinator told
 * before it had heard of the kill is of something else, as a move to a node that came back. */
static bool take(void *data, const Gimbal__Event *event)
{
    struct kills *kills = data;
    bool killed = kills->victims.node[0] && event->unix_ms >= kills->killed_ms;
    if (is(event, "job-failed") || is(event, "job-cancelled")) {
        fprintf(stderr, "%s\n", event->text);
        exit(EXIT_FAILURE);
    }
    if (is(event, "plan-chosen"))
        kills->planned_replicas = has_replicas(event);
    if (killed && !kills->noticed_ms &&
        (is(event, "job-replanning") || is(event, "job-failing") || is(event, "node-lost")))
        kills->noticed_ms = event->unix_ms;
    bool next = !kills->victims.node[0] && is(event, "job-running");
    if (killed && (is(event, "job-replanned") || is(event, "job-restarted"))) {
        if (kills->noticed_ms) /* else it fell into a move that was under way, as part of it */
            measure(kills, event);
        kills->killed_ms = UINT64_MAX;
        next = !kills->worker;
        if (kills->worker)
            demo_cluster_revive(&kills->victims.cluster, kills->victims.node);
    }
    if (kills->killed_ms == UINT64_MAX && kills->worker && is(event, "node-joined"))
        next = true;
    if (next && kills->count < kills->wanted)
        strike(kills);
    return kills->count == kills->wanted;
}

/* Add `more` kills, with a cluster of its own. */
static void run(struct kills *kills, enum way way, int more)
{
    struct victims *victims = &kills->victims;
    struct error err;
    if (more == 0)
        return;
    kills->replans = way != WAY_RESTARTS;
    kills->wanted += more;
    kills->killed_ms = kills->noticed_ms = 0;
    kills->kills = xrealloc(kills->kills, (size_t)kills->wanted * sizeof *kills->kills);
    victims_start(victims, way);
    const struct history_options options = {
        .client = &victims->client,
        .signals = -1,
        .end_fd = victims->cluster.ended,
        .timeout_s = START_S + KILL_S * more,
    };
    int code = history_follow(&options, take, kills, &err);
    if (code == EXIT_TIMEOUT)
        victims_give_up(victims);
    victims_need(code, &err);
    victims_stop(victims);
}

void bench_kills(int replans, int restarts)
{
    struct kills live = {0}, again = {0};
    run(&live, WAY_REPLANS, replans - replans / 2);
    run(&live, WAY_COPIES, replans / 2);
    if (live.count > 0)
        figures_print(true, live.kills, live.count);
    run(&again, WAY_RESTARTS, restarts);
    if (again.count > 0)
        figures_print(false, again.kills, again.count);
    free(live.kills);
    free(again.kills);
}
