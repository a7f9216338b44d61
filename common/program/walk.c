/* walk.c - takes one queue through a step, and numbers the instructions of both. */
#include "common/program/walk.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

void walk_init(struct program_walk *walk, const struct program *program, enum queue queue)
{
    *walk = (struct program_walk){.program = program, .queue = queue};
    if (program_overlaps(program))
        walk->runs = xcalloc(program->instruction_count, sizeof *walk->runs);
}

void walk_finish(struct program_walk *walk)
{
    free(walk->runs);
}

void walk_begin(struct program_walk *walk, enum program_kind kind)
{
    walk->kind = kind;
    walk->cursor = (struct program_cursor){0};
    walk->number = 0;
    if (walk->runs)
        memset(walk->runs, 0, walk->program->instruction_count * sizeof *walk->runs);
}

bool walk_next(struct program_walk *walk)
{
    while (program_next(walk->program, walk->kind, &walk->cursor)) {
        const struct instruction *instruction = walk->cursor.instruction;
        walk->number++;
        if (instruction->queue == walk->queue)
            return true;
        walk->runs[instruction - walk->program->instructions] = walk->number;
    }
    return false;
}

uint64_t walk_awaits(const struct program_walk *walk)
{
    const struct instruction *instruction = walk->cursor.instruction;
    uint64_t number = 0;
    for (int i = 0; i < instruction->wait_count; i++) {
        uint64_t run = walk->runs[walk->program->waits[instruction->wait_first + i]];
        number = run > number ? run : number;
    }
    return number;
}
