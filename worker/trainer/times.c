/* times.c - differences of the interpreter's totals since the last report, summed by class. */
#include "worker/trainer/times.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "worker/trainer/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct class
{
    const char *block_type; /* name of the first block of that type */
    char instruction[32];
};

struct times {
    const struct program *program;
    struct class *classes;
    size_t count, capacity;
    int *class_of;   /* index of the class, per instruction */
    double *seconds; /* per instruction, as of the last report */
    uint64_t *runs;
    double waited;     /* by the compute queue, as of the last report */
    double compute_s;  /* predicted time of a step's kernels */
    double reported_s; /* time of the last report */
};

static struct class class_make(const struct program *program, const struct instruction *instruction)
{
    const struct graph *graph = program->graph;
    struct class class = {.block_type = "step"};
    for (size_t b = 0; b < graph->block_count && instruction->block >= 0; b++) {
        if (graph->blocks[b].type == graph->blocks[instruction->block].type) {
            class.block_type = graph->blocks[b].name;
            break;
        }
    }
    const char *direction = "";
    if (instruction->kind == INSTRUCTION_KERNEL)
        direction = instruction->kernel.direction == FORWARD ? ".forward" : ".backward";
    snprintf(class.instruction, sizeof class.instruction, "%s%s",
             instruction_name(program, instruction), direction);
    return class;
}

struct times *times_create(const struct program *program, double compute_s)
{
    struct times *times = xcalloc(1, sizeof *times);
    times->program = program;
    times->compute_s = compute_s;
    times->reported_s = clock_s();
    times->class_of = xcalloc(program->instruction_count, sizeof *times->class_of);
    times->seconds = xcalloc(program->instruction_count, sizeof *times->seconds);
    times->runs = xcalloc(program->instruction_count, sizeof *times->runs);
    for (size_t i = 0; i < program->instruction_count; i++) {
        struct class class = class_make(program, &program->instructions[i]);
        size_t c = 0;
        while (c < times->count && (strcmp(times->classes[c].block_type, class.block_type) != 0 ||
                                    strcmp(times->classes[c].instruction, class.instruction) != 0))
            c++;
        if (c == times->count) {
            times->classes =
                grow(times->classes, times->count, &times->capacity, sizeof *times->classes);
            times->classes[times->count++] = class;
        }
        times->class_of[i] = (int)c;
    }
    return times;
}

void times_destroy(struct times *times)
{
    if (!times)
        return;
    free(times->classes);
    free(times->class_of);
    free(times->seconds);
    free(times->runs);
    free(times);
}

/* Timed steps since the last report: an instruction of the update section runs once in each. */
static uint64_t steps_since(const struct times *times, const struct interpreter *in)
{
    struct range update = times->program->sections[SECTION_UPDATE];
    return update.count ? interpreter_runs(in)[update.first] - times->runs[update.first] : 0;
}

/* Total seconds for which the compute queue has waited for the other one. */
static double waited(const struct interpreter *in)
{
    const struct program *program = interpreter_program(in);
    double seconds = 0;
    for (size_t i = 0; i < program->instruction_count; i++)
        if (program->instructions[i].queue == QUEUE_COMPUTE)
            seconds += interpreter_waited(in)[i];
    return seconds;
}

static double seconds_of_kernels(const struct times *times, const struct interpreter *in)
{
    double seconds = 0;
    for (size_t i = 0; i < times->program->instruction_count; i++)
        if (times->program->instructions[i].kind == INSTRUCTION_KERNEL)
            seconds += interpreter_seconds(in)[i] - times->seconds[i];
    return seconds;
}

bool times_due(const struct times *times)
{
    return clock_s() >= times->reported_s + TIMES_EVERY_S;
}

void times_report(struct times *times, const struct interpreter *in, int rank,
                  const struct reporter *reporter)
{
    times->reported_s = clock_s();
    if (steps_since(times, in) == 0)
        return;
    double *sums = xcalloc(times->count, sizeof *sums);
    for (size_t i = 0; i < times->program->instruction_count; i++)
        sums[times->class_of[i]] += interpreter_seconds(in)[i] - times->seconds[i];
    uint64_t steps = steps_since(times, in);
    if (program_overlaps(times->program))
        reporter->times(reporter->context, rank, "step", "waiting", steps,
                        waited(in) - times->waited, 0);
    if (times->compute_s > 0)
        reporter->times(reporter->context, rank, "step", "compute", steps,
                        seconds_of_kernels(times, in), times->compute_s * (double)steps);
    for (size_t c = 0; c < times->count; c++)
        reporter->times(reporter->context, rank, times->classes[c].block_type,
                        times->classes[c].instruction, steps, sums[c], 0);
    free(sums);
    times_forget(times, in);
}

void times_forget(struct times *times, const struct interpreter *in)
{
    size_t count = times->program->instruction_count;
    memcpy(times->seconds, interpreter_seconds(in), count * sizeof *times->seconds);
    times->waited = waited(in);
    memcpy(times->runs, interpreter_runs(in), count * sizeof *times->runs);
}
