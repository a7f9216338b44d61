/* figures.c - a table of figures: which phase and which kills each covers, and its limits. */
#include "bench/recovery/figures.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>

enum of { ALL, EXECUTORS, WORKERS, REPLICAS, NO_REPLICAS };

static const struct row {
    const char *replan, *restart; /* what it is called; NULL: such kills do not have it */
    enum phase phase;
    enum of of;
    const char *unit;
    const char *median_bar, *worst_bar; /* of replans; NULL: none */
} rows[] = {
    {"detect_s", NULL, DETECT, EXECUTORS, "s", NULL, "0.05"},
    {"detect_worker_s", NULL, DETECT, WORKERS, "s", NULL, "1"},
    {"quiesce_s", NULL, QUIESCE, ALL, "s", NULL, NULL},
    {"wait_for_devices_s", NULL, WAIT, ALL, "s", NULL, NULL},
    {"plan_s", NULL, PLAN, ALL, "s", NULL, NULL},
    {"restart_s", NULL, START, ALL, "s", NULL, NULL},
    {"prepare_s", NULL, PREPARE, ALL, "s", NULL, NULL},
    {"move_s", NULL, MOVE, ALL, "s", NULL, NULL},
    {"first_step_s", NULL, FIRST_STEP, ALL, "s", NULL, NULL},
    {"death_to_step_s", "torchrun_style_s", WHOLE, ALL, "s", "0.5", "1.5"},
    {"death_to_step_executor_s", NULL, WHOLE, EXECUTORS, "s", NULL, NULL},
    {"death_to_step_worker_s", NULL, WHOLE, WORKERS, "s", NULL, NULL},
    {"death_to_caught_up_s", "torchrun_style_caught_up_s", CAUGHT_UP, ALL, "s", NULL, NULL},
    {"steps_lost", NULL, LOST, REPLICAS, "steps", NULL, "0"},
    {"steps_lost_copies", NULL, LOST, NO_REPLICAS, "steps", NULL, "1"},
    {NULL, "torchrun_style_steps_lost", LOST, ALL, "steps", NULL, NULL},
    {"usual_step_s", NULL, USUAL_STEP, ALL, "s", NULL, NULL},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool belongs(const struct row *row, const struct kill *kill)
{
    switch (row->of) {
    case EXECUTORS:
    case WORKERS:
        return kill->worker == (row->of == WORKERS);
    case REPLICAS:
    case NO_REPLICAS:
        return kill->replicas == (row->of == REPLICAS);
    default:
        return true;
    }
}

static void print_line(const char *name, const char *which, double value, const struct row *row,
                       const char *bar, size_t count)
{
    printf("bench recovery/%s%s %.4g %s  # of %zu kills", name, which, value, row->unit, count);
    if (bar)
        printf("; the bar is %s", bar);
    printf("\n");
}

static void print_row(const struct row *row, bool replans, double *values, size_t count)
{
    const char *name = replans ? row->replan : row->restart;
    if (count == 0) {
        printf("bench recovery/%s_max - skipped no kill was of this kind\n", name);
        return;
    }
    qsort(values, count, sizeof *values, ascending);
    print_line(name, "", values[count / 2], row, replans ? row->median_bar : NULL, count);
    print_line(name, "_max", values[count - 1], row, replans ? row->worst_bar : NULL, count);
}

void figures_print(bool replans, const struct kill *kills, int count)
{
    double *values = xcalloc((size_t)count, sizeof *values);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        size_t found = 0;
        if (!(replans ? rows[r].replan : rows[r].restart))
            continue;
        for (int i = 0; i < count; i++)
            if (belongs(&rows[r], &kills[i]))
                values[found++] = kills[i].of[rows[r].phase];
        print_row(&rows[r], replans, values, found);
    }
    free(values);
}
