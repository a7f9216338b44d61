/* figures.c - median and worst. */
#include "bench/recovery/figures.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>

enum of { ALL, EXECUTORS, WORKERS, REPLICAS, NO_REPLICAS };

static const struct row {
    const char *name;
    enum phase phase;
    enum of of;
    const char *unit;
    double scale;
    const char *median_bar, *worst_bar; /* of replans; NULL: none */
} rows[] = {
    {"detect_executor", DETECT, EXECUTORS, "ms", 1e3, NULL, "50"},
    {"detect_worker", DETECT, WORKERS, "ms", 1e3, NULL, "1000"},
    {"quiesce", QUIESCE, ALL, "ms", 1e3, NULL, NULL},
    {"wait_for_devices", WAIT, ALL, "ms", 1e3, NULL, NULL},
    {"plan", PLAN, ALL, "ms", 1e3, NULL, NULL},
    {"start", START, ALL, "ms", 1e3, NULL, NULL},
    {"of_start_prepare", PREPARE, ALL, "ms", 1e3, NULL, NULL},
    {"of_start_move", MOVE, ALL, "ms", 1e3, NULL, NULL},
    {"first_step", FIRST_STEP, ALL, "ms", 1e3, NULL, NULL},
    {"death_to_step", WHOLE, ALL, "ms", 1e3, "500", "1500"},
    {"death_to_step_executor", WHOLE, EXECUTORS, "ms", 1e3, NULL, NULL},
    {"death_to_step_worker", WHOLE, WORKERS, "ms", 1e3, NULL, NULL},
    {"death_to_caught_up", CAUGHT_UP, ALL, "ms", 1e3, NULL, NULL},
    {"steps_lost", LOST, ALL, "steps", 1, NULL, NULL},
    {"steps_lost_of_replicas", LOST, REPLICAS, "steps", 1, NULL, "0"},
    {"steps_lost_without_replicas", LOST, NO_REPLICAS, "steps", 1, NULL, NULL},
    {"usual_step", USUAL_STEP, ALL, "ms", 1e3, NULL, NULL},
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

static void print_line(const char *what, const struct row *row, const char *which, double value,
                       const char *bar, size_t count)
{
    printf("bench recovery/%s_%s_%s %.1f %s  # of %zu kills", what, row->name, which,
           value * row->scale, row->unit, count);
    if (bar)
        printf("; the bar is %s", bar);
    printf("\n");
}

void figures_print(const char *what, bool bars, const struct kill *kills, int count)
{
    double *values = xcalloc((size_t)count, sizeof *values);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        size_t found = 0;
        for (int i = 0; i < count; i++)
            if (belongs(&rows[r], &kills[i]))
                values[found++] = kills[i].of[rows[r].phase];
        if (found == 0)
            continue;
        qsort(values, found, sizeof *values, ascending);
        print_line(what, &rows[r], "median", values[found / 2], bars ? rows[r].median_bar : NULL,
                   found);
        print_line(what, &rows[r], "worst", values[found - 1], bars ? rows[r].worst_bar : NULL,
                   found);
    }
    free(values);
}
