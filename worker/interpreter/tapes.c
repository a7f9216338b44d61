/* tapes.c - finds the stretches of a program, and holds the recording of each in each slot. */
#include "worker/interpreter/tapes.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <stdlib.h>

/* One stretch in one slot. */
struct take {
    bool issued;
    struct tape *tape;
};

struct tapes {
    const struct program *program;
    const struct accelerator *accelerator;
    int *lengths; /* per instruction: length of the stretch that begins there, or 0 */
    int *numbers; /* per instruction: index of that stretch */
    int count;
    struct take *takes; /* stretch by stretch, one per slot */
    bool refused;       /* the device has failed to record one */
};

/* Whether an instruction involves only the device and is the same in every step. */
static bool recurs(const struct program *program, const struct instruction *instruction)
{
    switch (instruction->kind) {
    case INSTRUCTION_KERNEL:
        return !program->graph->nodes[instruction->kernel.node].operation->is_loss;
    case INSTRUCTION_COPY:
    case INSTRUCTION_ADD:
    case INSTRUCTION_CLEAR:
    case INSTRUCTION_SQUARE_SUM:
        return true;
    default:
        return false;
    }
}

/* Per instruction: does the other queue wait for it? The caller frees it. */
static bool *find_awaited(const struct program *program)
{
    bool *awaited = xcalloc(program->instruction_count, sizeof *awaited);
    for (size_t i = 0; i < program->wait_count; i++)
        awaited[program->waits[i]] = true;
    return awaited;
}

/* Count the instructions of each stretch into lengths, at its first instruction. */
static void find_stretches(struct tapes *tapes, const struct range *section, const bool *awaited)
{
    int first = -1;
    for (int i = section->first; i < section->first + section->count; i++) {
        const struct instruction *instruction = &tapes->program->instructions[i];
        if (instruction->queue != QUEUE_COMPUTE)
            continue;
        bool takes_part = recurs(tapes->program, instruction);
        if (!takes_part || instruction->wait_count > 0)
            first = -1;
        if (!takes_part)
            continue;
        if (first < 0)
            first = i;
        tapes->lengths[first]++;
        if (awaited[i])
            first = -1;
    }
}

struct tapes *tapes_open(const struct program *program, const struct accelerator *accelerator)
{
    if (!accelerator)
        return NULL;
    struct tapes *tapes = xcalloc(1, sizeof *tapes);
    *tapes = (struct tapes){.program = program,
                            .accelerator = accelerator,
                            .lengths = xcalloc(program->instruction_count, sizeof(int)),
                            .numbers = xcalloc(program->instruction_count, sizeof(int))};
    bool *awaited = find_awaited(program);
    for (int section = 0; section < SECTIONS; section++)
        find_stretches(tapes, &program->sections[section], awaited);
    free(awaited);
    for (size_t i = 0; i < program->instruction_count; i++)
        if (tapes->lengths[i] > 1)
            tapes->numbers[i] = tapes->count++;
    tapes->takes = xcalloc((size_t)tapes->count * (size_t)program->slots, sizeof *tapes->takes);
    return tapes;
}

void tapes_close(struct tapes *tapes)
{
    if (!tapes)
        return;
    for (int i = 0; i < tapes->count * tapes->program->slots; i++)
        tapes->accelerator->tape_destroy(tapes->takes[i].tape);
    free(tapes->takes);
    free(tapes->lengths);
    free(tapes->numbers);
    free(tapes);
}

int tapes_stretch(const struct tapes *tapes, int first)
{
    return tapes && tapes->lengths[first] > 1 ? tapes->lengths[first] : 1;
}

/* Record a stretch that has been issued before; false if the device cannot. */
static bool record(struct tapes *tapes, struct take *take, void (*issue)(void *context),
                   void *context)
{
    struct error err;
    int rc = tapes->accelerator->record(issue, context, &take->tape, &err);
    if (rc < 0)
        log_line(LOG_WARN, "kernels are launched one by one: %s", err.text);
    tapes->refused = rc < 0;
    return rc == 0;
}

void tapes_run(struct tapes *tapes, int first, int slot, void (*issue)(void *context),
               void *context)
{
    struct take *take = &tapes->takes[tapes->numbers[first] * tapes->program->slots + slot];
    bool again = take->issued && !tapes->refused;
    take->issued = true;
    if (take->tape || (again && record(tapes, take, issue, context)))
        tapes->accelerator->play(take->tape);
    else
        issue(context);
}
