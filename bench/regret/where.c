/* where.c - sums the simulated and the measured time of every instruction by class and kind. */
#include "bench/regret/where.h"

#include "bench/bench.h"
#include "common/base/memory.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/simulation/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const where_names[WHERE_KINDS] = {"kernels", "memory", "moves"};

static enum where_kind kind_of(const struct instruction *instruction)
{
    switch (instruction->kind) {
    case INSTRUCTION_KERNEL:
        return WHERE_KERNELS;
    case INSTRUCTION_COLLECTIVE:
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
    case INSTRUCTION_RECEIVE:
        return WHERE_MOVES;
    default:
        return WHERE_MEMORY;
    }
}

static struct where_class *find(struct where *where, const struct program *program,
                                const struct instruction *instruction)
{
    char name[sizeof where->classes->name];
    const char *direction = "";
    if (instruction->kind == INSTRUCTION_KERNEL)
        direction = instruction->kernel.direction == FORWARD ? ".forward" : ".backward";
    snprintf(name, sizeof name, "%s%s", instruction_name(program, instruction), direction);
    for (size_t i = 0; i < where->count; i++)
        if (strcmp(where->classes[i].name, name) == 0)
            return &where->classes[i];
    where->classes = grow(where->classes, where->count, &where->capacity, sizeof *where->classes);
    struct where_class *class = &where->classes[where->count++];
    *class = (struct where_class){.kind = kind_of(instruction)};
    strcpy(class->name, name);
    return class;
}

/* What is being added: the share of one rank. */
struct adding {
    struct where *where;
    const struct trial *trial;
    struct where_times *kinds;
    double share;
};

static void simulated(void *context, int rank, const struct program_cursor *cursor, double begin,
                      double end)
{
    struct adding *adding = context;
    const struct instruction *instruction = cursor->instruction;
    double seconds = (end - begin) * adding->share;
    find(adding->where, adding->trial->programs[rank], instruction)->times.predicted += seconds;
    adding->kinds[kind_of(instruction)].predicted += seconds;
}

void where_add(struct where *where, const struct planner_request *request,
               const struct trial *trial, struct where_times kinds[WHERE_KINDS])
{
    int ranks = plan_ranks(trial->plan);
    struct adding adding = {where, trial, kinds, 1.0 / ranks};
    struct shared_cores used;
    shared_cores_init(&used, request->devices, ranks);
    struct planner_request ask = shared_cores_ask(request, &used);
    struct pricing pricing = pricing_plain(&ask);
    struct timing timing = pricing_timing(&pricing);
    struct simulation_trace trace = {&adding, simulated};
    struct simulation simulation;
    struct error err;
    bench_need(simulate((const struct program *const *)trial->programs, ranks, PROGRAM_TRAIN,
                        &timing, &trace, &simulation, &err),
               &err);
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < trial->programs[rank]->instruction_count; i++) {
            const struct instruction *instruction = &trial->programs[rank]->instructions[i];
            double seconds = trial->seconds[rank][i] / ranks;
            find(where, trial->programs[rank], instruction)->times.measured += seconds;
            kinds[kind_of(instruction)].measured += seconds;
        }
    shared_cores_finish(&used);
}

static int furthest_first(const void *a, const void *b)
{
    const struct where_class *x = a, *y = b;
    double p = fabs(x->times.predicted - x->times.measured),
           q = fabs(y->times.predicted - y->times.measured);
    return (p < q) - (p > q);
}

void where_print(struct where *where, size_t rows)
{
    qsort(where->classes, where->count, sizeof *where->classes, furthest_first);
    for (size_t i = 0; i < where->count && i < rows; i++) {
        const struct where_class *class = &where->classes[i];
        printf("#   %-28s %9.3f ms predicted %9.3f measured, in all plans together\n", class->name,
               class->times.predicted * 1e3, class->times.measured * 1e3);
    }
}

void where_finish(struct where *where)
{
    free(where->classes);
}
