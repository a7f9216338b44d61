/* access.c - which memory an instruction reads and writes. */
#include "common/program/program.h"

static struct access access_of(const struct program *program, const struct piece *piece,
                               bool writes)
{
    const struct buffer *at = &program->buffers[piece->buffer];
    uint64_t element = (uint64_t)at->element_bytes;
    uint64_t low = at->offset + (uint64_t)piece->offset * element;
    return (struct access){at->region, low, low + (uint64_t)box_count(&piece->box) * element,
                           writes};
}

/* Forward writes the output and the statistics, backward the gradients. */
static bool kernel_writes(const struct program *program, const struct instruction *instruction,
                          const struct piece *piece)
{
    const struct operation *operation = program->graph->nodes[instruction->kernel.node].operation;
    if (instruction->kernel.direction == BACKWARD)
        return piece->operand >= VIEWS_MAX;
    return piece->operand >= operation_output(operation);
}

static bool writes(const struct program *program, const struct instruction *instruction, int index)
{
    switch (instruction->kind) {
    case INSTRUCTION_LOAD:
    case INSTRUCTION_CLEAR:
    case INSTRUCTION_RECEIVE:
        return true;
    case INSTRUCTION_KERNEL:
        return kernel_writes(program, instruction, &program_pieces(program, instruction)[index]);
    case INSTRUCTION_COPY:
    case INSTRUCTION_ADD:
        return index == 1;
    case INSTRUCTION_COLLECTIVE:
        return index % 2 == 1 || instruction->collective.kind == COLLECTIVE_ALL_REDUCE;
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
    case INSTRUCTION_SQUARE_SUM:
    case INSTRUCTION_UPDATE:
    case INSTRUCTION_KINDS:
        break;
    }
    return false;
}

static struct access whole(const struct program *program, int buffer)
{
    const struct buffer *at = &program->buffers[buffer];
    return (struct access){at->region, at->offset, at->offset + at->bytes, true};
}

int instruction_accesses(const struct program *program, const struct instruction *instruction,
                         struct access *out)
{
    int count = 0;
    for (int i = 0; i < instruction->piece_count; i++) {
        const struct piece *piece = &program_pieces(program, instruction)[i];
        if (piece->buffer >= 0 && box_count(&piece->box) > 0)
            out[count++] = access_of(program, piece, writes(program, instruction, i));
    }
    if (instruction->kind == INSTRUCTION_KERNEL && instruction->kernel.workspace >= 0)
        out[count++] = whole(program, instruction->kernel.workspace);
    if (instruction->kind == INSTRUCTION_SQUARE_SUM)
        out[count++] = whole(program, program->metrics);
    if (instruction->kind == INSTRUCTION_UPDATE) {
        const struct parameter *parameter = &program->parameters[instruction->parameter];
        out[count++] = whole(program, parameter->master);
        out[count++] = whole(program, parameter->first);
        out[count++] = whole(program, parameter->second);
    }
    return count;
}
