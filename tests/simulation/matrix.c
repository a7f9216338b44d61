/* matrix.c - a row per fault; see matrix.h. */
#include "tests/simulation/matrix.h"

#include <signal.h>
#include <string.h>

#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

#define STRUCK 300   /* of a thousand worlds in which other things go wrong, too */
#define OCCASIONS 40 /* the victim is drawn among so many that enter the phase */
#define ENDS 4       /* a job has one end, and many steps */
#define CONTINUE_MS_MAX 8000
#define SECOND_MS_MAX 3000
#define BREAKS 3
#define EFFECTS_MAX 50

static void kill_executor(struct executor *executor)
{
    executor_fail_peers(executor);
    executor_end(executor, 0, SIGKILL);
}

static void starve_executor(struct executor *executor)
{
    executor->starved = true;
    kill_executor(executor);
}

static void fault_executor(struct executor *executor)
{
    executor_break_down(executor);
}

static void stop(struct executor *executor)
{
    executor_stop(executor);
}

static void go_on(void *data)
{
    struct executor *executor = executor_numbered((int)(intptr_t)data);
    if (executor && !executor->ended)
        executor_continue(executor);
}

static void stop_for_a_while(struct executor *executor)
{
    executor_stop(executor);
    world_after(world_between(10, CONTINUE_MS_MAX), go_on, (void *)(intptr_t)executor->id);
}

static void deadlock(struct executor *executor)
{
    executor->stuck = true;
}

static void cut_link(struct executor *executor)
{
    executor->muted = true;
}

static void slow_link(struct executor *executor)
{
    executor->step_ms *= 5;
}

/* Between two epochs it has none whose steps it could spoil. */
static void spoil(struct executor *executor)
{
    if (executor->crew)
        executor->crew->spoiled = true;
}

static void cut_node(struct executor *executor)
{
    node_cut(executor->node, world_between(4000, 60000));
}

static void kill_worker(struct executor *executor)
{
    node_kill(executor->node, false);
}

static void lose_machine(struct executor *executor)
{
    node_kill(executor->node, true);
}

static void kill_coordinator(struct executor *executor)
{
    (void)executor;
    if (cluster->coordinator.service)
        cluster->coordinator.actor.effects_left = 1 + world_draw(EFFECTS_MAX);
}

static void kill_another(void *data)
{
    const char *job = data;
    for (size_t i = executors_count(); i-- > 0;) {
        struct executor *executor = executor_at(i);
        if (!executor || executor->ended || strcmp(executor->job, job) != 0)
            continue;
        check_excuse(job);
        kill_executor(executor);
        return;
    }
}

static void lose_two(struct executor *executor)
{
    static char job[sizeof executor->job];
    memcpy(job, executor->job, sizeof job);
    kill_executor(executor);
    world_after(world_between(1, SECOND_MS_MAX), kill_another, job);
}

static void break_again(void *data)
{
    node_break(data);
}

static void flap(struct executor *executor)
{
    for (uint64_t i = 0; i < BREAKS; i++)
        world_after(1 + i * world_between(500, SECOND_MS_MAX), break_again, executor->node);
}

static const struct row {
    const char *name;
    void (*strike)(struct executor *executor);
} rows[] = {
    {"killed", kill_executor},
    {"faulted", fault_executor},
    {"out-of-memory", starve_executor},
    {"stopped", stop},
    {"stopped-for-a-while", stop_for_a_while},
    {"deadlocked", deadlock},
    {"link-cut", cut_link},
    {"link-slow", slow_link},
    {"node-cut-off", cut_node},
    {"worker-killed", kill_worker},
    {"machine-lost", lose_machine},
    {"coordinator-killed", kill_coordinator},
    {"two-losses", lose_two},
    {"flapping", flap},
    {"spoiled", spoil},
};
#define ROWS (sizeof rows / sizeof *rows)

const char *matrix_row_name(size_t row)
{
    return row < ROWS ? rows[row].name : NULL;
}

const char *phase_name(enum phase phase)
{
    static const char *const names[PHASES] = {
        [PHASE_FORWARD] = "forward",     [PHASE_BACKWARD] = "backward", [PHASE_REDUCE] = "reduce",
        [PHASE_OPTIMIZER] = "optimizer", [PHASE_END] = "end",           [PHASE_REPLAN] = "replan",
    };
    return names[phase];
}

static const struct row *row;
static enum phase column;
static uint64_t occasions; /* that are left until the strike; 0: it was, or there is none */
static enum phase awaited; /* that they are counted in */

void matrix_open(void)
{
    bool any = world->options.cell || (!world->options.measured && world_chance(STRUCK));
    row = &rows[world->options.cell ? world->options.row : world_draw(ROWS)];
    column =
        world->options.cell ? (enum phase)world->options.column : (enum phase)world_draw(PHASES);
    occasions = any ? 1 + world_draw(column == PHASE_END ? ENDS : OCCASIONS) : 0;
    awaited = column == PHASE_REPLAN ? PHASE_FORWARD : column;
}

/* The victim of a strike that is due, as long as it is in this epoch. */
struct due {
    int id;
    uint64_t epoch;
};
static struct due due;

static void strike(void *data)
{
    (void)data;
    struct executor *executor = executor_numbered(due.id);
    if (!executor || executor->ended || executor->told || executor->epoch != due.epoch) {
        occasions = 1; /* something else was faster: the next one */
        return;
    }
    bool first = awaited != column;
    world_trace("%s epoch %llu rank %u: %s, in %s", executor->job,
                (unsigned long long)executor->epoch, executor->rank, first ? "killed" : row->name,
                phase_name(awaited));
    check_excuse_node(executor->node);
    check_excuse(executor->job);
    if (first) {
        kill_executor(executor);
        awaited = PHASE_REPLAN;
        occasions = 1;
        return;
    }
    world->tally.struck++;
    row->strike(executor);
}

void matrix_enter(struct executor *executor, enum phase phase, uint64_t takes_ms)
{
    if (world->calm || occasions == 0 || phase != awaited || !executor->keeps ||
        executor->trainers < 2 || --occasions > 0)
        return;
    due = (struct due){executor->id, executor->epoch};
    world_after(world_draw(takes_ms + 1), strike, NULL);
}
