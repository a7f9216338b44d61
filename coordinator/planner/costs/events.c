/* events.c - list scheduling: every stage goes on as far as its neighbours let it. */
#include "coordinator/planner/costs/events.h"

#include "common/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* With more ranks, or more blocks run by them in a step, simulating the programs of all ranks takes
 * too long. */
#define PROGRAMS_MAX 16
#define BLOCK_RUNS_MAX 16384

/* When each micro-batch left the stage in each direction; below zero: not yet. */
struct line {
    struct event *events;
    double *done_s[DIRECTIONS];
    double now_s;
    int next;
};

/* Run the stage's next event if its input is there; returns whether it did. */
static bool advance(struct line *lines, int index, int count, int micro_batches,
                    const struct stage_cost *stages)
{
    struct line *line = &lines[index];
    if (line->next == 2 * micro_batches)
        return false;
    const struct event *event = &line->events[line->next];
    bool forward = event->direction == FORWARD;
    int neighbour = forward ? index - 1 : index + 1;
    double ready_s = 0;
    if (neighbour >= 0 && neighbour < count)
        ready_s = lines[neighbour].done_s[event->direction][event->micro_batch];
    if (ready_s < 0)
        return false;
    line->now_s =
        fmax(line->now_s, ready_s) + (forward ? stages[index].forward_s : stages[index].backward_s);
    line->done_s[event->direction][event->micro_batch] = line->now_s;
    line->next++;
    return true;
}

double events_seconds(const struct stage_cost *stages, int count, int micro_batches,
                      const struct schedule *schedule, double *busy_s)
{
    struct line *lines = xcalloc((size_t)count, sizeof *lines);
    for (int i = 0; i < count; i++) {
        lines[i].events = xcalloc(2 * (size_t)micro_batches, sizeof *lines[i].events);
        schedule->order(i, count, micro_batches, lines[i].events);
        for (int d = 0; d < DIRECTIONS; d++) {
            lines[i].done_s[d] = xcalloc((size_t)micro_batches, sizeof(double));
            for (int m = 0; m < micro_batches; m++)
                lines[i].done_s[d][m] = -1;
        }
    }
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < count; i++)
            while (advance(lines, i, count, micro_batches, stages))
                progress = true;
    }
    double step_s = 0, busy = 0;
    for (int i = 0; i < count; i++) {
        assert(lines[i].next == 2 * micro_batches && "schedules do not deadlock");
        step_s = fmax(step_s, lines[i].now_s + stages[i].once_s);
        busy += (micro_batches * (stages[i].forward_s + stages[i].backward_s) + stages[i].once_s) /
                count;
        free(lines[i].events);
        free(lines[i].done_s[FORWARD]);
        free(lines[i].done_s[BACKWARD]);
    }
    free(lines);
    if (busy_s)
        *busy_s = busy;
    return step_s;
}

int64_t events_block_runs(int ranks, int blocks, int stages, int micro_batches)
{
    return (int64_t)ranks * blocks * micro_batches / stages;
}

bool events_judge(int ranks, int blocks, int stages, int micro_batches)
{
    return ranks > PROGRAMS_MAX ||
           events_block_runs(ranks, blocks, stages, micro_batches) > BLOCK_RUNS_MAX;
}

double events_share(const struct schedule *schedule, int stages, int micro_batches)
{
    if (stages == 1)
        return 1;
    int ahead = schedule->in_flight(0, stages, micro_batches) - 1;
    return (double)micro_batches / (micro_batches + ahead);
}

int events_ahead(const struct schedule *schedule, int stages, int micro_batches)
{
    int most = 0;
    if (schedule->in_flight(stages - 1, stages, micro_batches) == micro_batches)
        return 0;
    for (int stage = 0; stage < stages; stage++) {
        int here = schedule->in_flight(stage, stages, micro_batches);
        most = here > most ? here : most;
    }
    return most - 1;
}
