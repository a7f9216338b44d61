/* measured.c - see measured.h. */
#include "tests/simulation/measured.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

#define SUBMIT_MS 5000 /* all nodes have come by then */
#define DRAWS ((uint64_t)1 << 32)

uint64_t duration_ms(enum duration what)
{
    static const uint64_t most_ms[DURATIONS] = {
        [DURATION_QUIESCE] = 1500, [DURATION_PLAN] = 20,  [DURATION_PREPARE] = 3000,
        [DURATION_REDUCE] = 40,    [DURATION_APPLY] = 20, [DURATION_END] = 2000,
        [DURATION_RETURN] = 20000,
    };
    const struct measured *measured = world->options.measured;
    return measured ? measured->of_ms[what] : world_between(1, most_ms[what]);
}

uint64_t duration_step_ms(const char *job_yaml, unsigned devices)
{
    const struct measured *measured = world->options.measured;
    return measured ? measured->step_ms * measured->nodes / devices
                    : 500 + strlen(job_yaml) % 7 * 400;
}

uint64_t duration_first_ms(const struct executor *executor)
{
    const struct measured *measured = world->options.measured;
    bool first = measured && executor->step_epoch != executor->epoch;
    return first ? measured->first_step_ms - measured->step_ms : 0;
}

/* Of those that run; NULL: none does. */
static struct executor *draw_victim(void)
{
    struct executor *victim = NULL;
    uint64_t running = 0;
    for (size_t i = 0; i < executors_count(); i++) {
        struct executor *executor = executor_at(i);
        if (executor && !executor->ended && world_draw(++running) == 0)
            victim = executor;
    }
    return victim;
}

static void lose(void *data);

static void await_loss(void)
{
    double share = (double)(world_draw(DRAWS) + 1) / (double)DRAWS;
    double gap_s = -log(share) * world->options.measured->between_s;
    if (isfinite(gap_s))
        world_after((uint64_t)(gap_s * 1000), lose, NULL);
}

static void lose(void *data)
{
    (void)data;
    struct executor *victim = draw_victim();
    if (world->calm)
        return;
    await_loss();
    if (!victim)
        return;
    world_trace("rank %u on %s dies", victim->rank, victim->node->name);
    if (world->tally.struck++ % 2 == 0) {
        executor_fail_peers(victim);
        executor_end(victim, 0, SIGKILL);
    } else {
        node_die(victim->node);
    }
}

static void submit(void *data)
{
    (void)data;
    users_submit_endless(cluster->users, world->options.measured->nodes);
}

void measured_begin(void)
{
    world_after(SUBMIT_MS, submit, NULL);
    await_loss();
}
