/* instruction.c - what one instruction is called, what it moves and computes, and which memory it
 * touches. */
#include "common/program/program.h"

const char *instruction_name(const struct program *program, const struct instruction *instruction)
{
    static const char *const collectives[] = {"all_reduce", "reduce_scatter", "all_gather",
                                              "all_to_all"};
    static const char *const names[INSTRUCTION_KINDS] = {
        [INSTRUCTION_LOAD] = "load",       [INSTRUCTION_COPY] = "copy",
        [INSTRUCTION_ADD] = "add",         [INSTRUCTION_CLEAR] = "clear",
        [INSTRUCTION_SEND] = "send",       [INSTRUCTION_WAIT] = "wait",
        [INSTRUCTION_RECEIVE] = "receive", [INSTRUCTION_SQUARE_SUM] = "square_sum",
        [INSTRUCTION_UPDATE] = "update",
    };
    if (instruction->kind == INSTRUCTION_KERNEL)
        return program->graph->nodes[instruction->kernel.node].name;
    if (instruction->kind == INSTRUCTION_COLLECTIVE)
        return collectives[instruction->collective.kind];
    return names[instruction->kind];
}

int collective_parts(const struct instruction *instruction)
{
    return instruction->collective.kind == COLLECTIVE_ALL_REDUCE ? 1 : instruction->piece_count / 2;
}

/* What one member sends: first all chunks but its own, to be added up elsewhere, then its own
 * result to all others. */
static int64_t all_reduce_words(int64_t count, int64_t own, int64_t members)
{
    return count - own + (members - 1) * own;
}

static int64_t collective_words(const struct program *program,
                                const struct instruction *instruction)
{
    const struct group *group = &program->groups[instruction->collective.group];
    const struct piece *pieces = program_pieces(program, instruction);
    const int64_t *counts = &program->counts[instruction->collective.counts_first];
    int64_t count = 0, others = group->count - 1, own = 0;
    for (int part = 0; part < collective_parts(instruction); part++)
        count += box_count(&pieces[(size_t)part * 2].box);
    switch (instruction->collective.kind) {
    case COLLECTIVE_ALL_REDUCE:
        own = count * (group->own + 1) / group->count - count * group->own / group->count;
        return all_reduce_words(count, own, group->count);
    case COLLECTIVE_ALL_GATHER:
        return others * count;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_TO_ALL:
        for (int part = 0; part < collective_parts(instruction); part++)
            own += counts[part * group->count + group->own];
        return count - own;
    }
    return 0;
}

int64_t instruction_words(const struct program *program, const struct instruction *instruction)
{
    if (instruction->kind == INSTRUCTION_SEND)
        return box_count(&program_pieces(program, instruction)[0].box);
    if (instruction->kind == INSTRUCTION_COLLECTIVE)
        return collective_words(program, instruction);
    return 0;
}

static double words_bytes(const struct program *program, const struct instruction *instruction,
                          int64_t words)
{
    if (words == 0)
        return 0;
    int buffer = program_pieces(program, instruction)[0].buffer;
    return (double)words * program->buffers[buffer].element_bytes;
}

double instruction_sent_bytes(const struct program *program, const struct instruction *instruction)
{
    return words_bytes(program, instruction, instruction_words(program, instruction));
}

double instruction_most_bytes(const struct program *program, const struct instruction *instruction)
{
    if (instruction->kind != INSTRUCTION_COLLECTIVE ||
        instruction->collective.kind != COLLECTIVE_ALL_REDUCE)
        return instruction_sent_bytes(program, instruction);
    int64_t members = program->groups[instruction->collective.group].count;
    int64_t count = box_count(&program_pieces(program, instruction)[0].box);
    int64_t largest = (count + members - 1) / members;
    return words_bytes(program, instruction, all_reduce_words(count, largest, members));
}

double instruction_flops(const struct program *program, const struct instruction *instruction)
{
    if (instruction->kind != INSTRUCTION_KERNEL)
        return 0;
    const struct node *node = &program->graph->nodes[instruction->kernel.node];
    int last = operation_output(node->operation);
    struct box boxes[OPERANDS_MAX] = {0};
    for (int i = 0; i < instruction->piece_count; i++) {
        const struct piece *piece = &program_pieces(program, instruction)[i];
        int operand = piece->operand % VIEWS_MAX; /* a gradient has its operand's box */
        if (operand <= last)
            boxes[operand] = piece->box;
    }
    enum direction direction = instruction->kernel.direction;
    return node_flops(node, boxes, direction) / node->operation->phases[direction];
}

/* The bytes of this part of the piece; 0 if it has no data. */
static double piece_bytes(const struct program *program, const struct piece *piece,
                          const struct box *part)
{
    return piece->buffer < 0
               ? 0
               : (double)box_count(part) * program->buffers[piece->buffer].element_bytes;
}

double instruction_bytes(const struct program *program, const struct instruction *instruction)
{
    const struct piece *pieces = program_pieces(program, instruction);
    double bytes = 0;
    bool partly = instruction->kind == INSTRUCTION_COPY;
    for (int i = 0; i < instruction->piece_count; i++)
        bytes += piece_bytes(program, &pieces[i], partly ? &instruction->part : &pieces[i].box);
    if (instruction->kind == INSTRUCTION_ADD) /* the sum is read and written */
        bytes += piece_bytes(program, &pieces[1], &pieces[1].box);
    if (instruction->kind == INSTRUCTION_UPDATE)
        bytes *= 7; /* parameter and moments read and written, the gradient read */
    return bytes;
}

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

static bool access_writes(const struct program *program, const struct instruction *instruction,
                          int index)
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

static struct access access_whole(const struct program *program, int buffer)
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
            out[count++] = access_of(program, piece, access_writes(program, instruction, i));
    }
    if (instruction->kind == INSTRUCTION_KERNEL && instruction->kernel.workspace >= 0)
        out[count++] = access_whole(program, instruction->kernel.workspace);
    if (instruction->kind == INSTRUCTION_SQUARE_SUM)
        out[count++] = access_whole(program, program->metrics);
    if (instruction->kind == INSTRUCTION_UPDATE) {
        const struct parameter *parameter = &program->parameters[instruction->parameter];
        out[count++] = access_whole(program, parameter->master);
        out[count++] = access_whole(program, parameter->first);
        out[count++] = access_whole(program, parameter->second);
    }
    return count;
}
