/* belonging.c - starts from weights, gradients and moments, and propagates along the instructions
 * that move them. */
#include "coordinator/planner/report/belonging.h"

#include "common/base/memory.h"

#include <stdlib.h>

static void begin(struct belonging *belonging, const struct program *program)
{
    for (size_t i = 0; i < program->buffer_count; i++)
        belonging->buffers[i] = program->buffers[i].block;
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        int block = program->graph->tensors[parameter->tensor].block;
        int *of = belonging->buffers;
        of[parameter->master] = of[parameter->first] = of[parameter->second] = block;
        if (parameter->gradient.buffer >= 0)
            of[parameter->gradient.buffer] = block;
    }
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        bool parameter =
            instruction->kind == INSTRUCTION_UPDATE || instruction->kind == INSTRUCTION_SQUARE_SUM;
        belonging->instructions[i] = instruction->block;
        if (instruction->block < 0 && parameter)
            belonging->instructions[i] =
                program->graph->tensors[program->parameters[instruction->parameter].tensor].block;
    }
}

/* An instruction that touches a block's buffer belongs to the block, and so does everything else
 * that it touches. Returns whether anything new became known. */
static bool spread(struct belonging *belonging, const struct program *program, int index)
{
    const struct instruction *instruction = &program->instructions[index];
    const struct piece *pieces = program_pieces(program, instruction);
    int block = -1;
    bool news = false;
    if (belonging->instructions[index] >= 0)
        return false;
    for (int i = 0; i < instruction->piece_count && block < 0; i++)
        block = pieces[i].buffer < 0 ? -1 : belonging->buffers[pieces[i].buffer];
    if (block < 0)
        return false;
    belonging->instructions[index] = block;
    for (int i = 0; i < instruction->piece_count; i++) {
        if (pieces[i].buffer < 0 || belonging->buffers[pieces[i].buffer] >= 0)
            continue;
        belonging->buffers[pieces[i].buffer] = block;
        news = true;
    }
    return news;
}

void belonging_init(struct belonging *belonging, const struct program *program)
{
    *belonging = (struct belonging){
        .buffers = xcalloc(program->buffer_count, sizeof *belonging->buffers),
        .instructions = xcalloc(program->instruction_count, sizeof *belonging->instructions),
    };
    begin(belonging, program);
    for (bool news = true; news;) {
        news = false;
        for (int i = 0; i < (int)program->instruction_count; i++)
            news = spread(belonging, program, i) || news;
    }
}

void belonging_finish(struct belonging *belonging)
{
    free(belonging->buffers);
    free(belonging->instructions);
    *belonging = (struct belonging){0};
}
