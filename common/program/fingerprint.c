/* fingerprint.c - the hash of a program, over everything that affects how it is executed.
 *
 * Buffers are hashed by where they lie and groups by their ranks, since their numbers alone would
 * not tell two programs apart. Structs are hashed field by field because padding is undefined. */
#include "common/program/program.h"

#include "common/base/hash.h"

static uint64_t hash_box(uint64_t hash, const struct box *box)
{
    hash = hash_word(hash, (uint64_t)box->dims);
    for (int dim = 0; dim < box->dims; dim++) {
        hash = hash_word(hash, (uint64_t)box->low[dim]);
        hash = hash_word(hash, (uint64_t)box->high[dim]);
    }
    return hash;
}

static uint64_t hash_buffer(uint64_t hash, const struct program *program, int buffer)
{
    if (buffer < 0)
        return hash_text(hash, "none");
    hash = hash_word(hash, (uint64_t)program->buffers[buffer].region);
    return hash_word(hash, program->buffers[buffer].offset);
}

static uint64_t hash_piece(uint64_t hash, const struct program *program, const struct piece *piece)
{
    hash = hash_word(hash, piece->operand);
    hash = hash_buffer(hash, program, piece->buffer);
    hash = hash_word(hash, (uint64_t)piece->offset);
    return hash_box(hash, &piece->box);
}

static uint64_t hash_collective(uint64_t hash, const struct program *program,
                                const struct instruction *instruction)
{
    static const int lists[] = {[COLLECTIVE_ALL_REDUCE] = 0,
                                [COLLECTIVE_REDUCE_SCATTER] = 1,
                                [COLLECTIVE_ALL_GATHER] = 1,
                                [COLLECTIVE_ALL_TO_ALL] = 2};
    const struct group *group = &program->groups[instruction->collective.group];
    hash = hash_word(hash, (uint64_t)instruction->collective.kind);
    hash = hash_word(hash, (uint64_t)instruction->collective.reduction);
    hash = hash_word(hash, (uint64_t)group->own);
    for (int i = 0; i < group->count; i++)
        hash = hash_word(hash, (uint64_t)group->ranks[i]);
    int counts = lists[instruction->collective.kind] * collective_parts(instruction) * group->count;
    for (int i = 0; i < counts; i++)
        hash = hash_word(hash, (uint64_t)program->counts[instruction->collective.counts_first + i]);
    return hash;
}

static uint64_t hash_kernel(uint64_t hash, const struct program *program,
                            const struct instruction *instruction)
{
    hash = hash_word(hash, (uint64_t)instruction->kernel.node);
    hash = hash_word(hash, (uint64_t)instruction->kernel.phase);
    hash = hash_word(hash, (uint64_t)instruction->kernel.direction);
    hash = hash_word(hash, instruction->kernel.accumulate);
    hash = hash_word(hash, instruction->kernel.once);
    return hash_buffer(hash, program, instruction->kernel.workspace);
}

static uint64_t hash_instruction(uint64_t hash, const struct program *program,
                                 const struct instruction *instruction)
{
    hash = hash_word(hash, (uint64_t)instruction->kind);
    hash = hash_word(hash, (uint64_t)instruction->queue);
    for (int i = 0; i < instruction->wait_count; i++)
        hash = hash_word(hash, (uint64_t)program->waits[instruction->wait_first + i]);
    switch (instruction->kind) {
    case INSTRUCTION_KERNEL:
        hash = hash_kernel(hash, program, instruction);
        break;
    case INSTRUCTION_COPY:
        hash = hash_box(hash, &instruction->part);
        break;
    case INSTRUCTION_COLLECTIVE:
        hash = hash_collective(hash, program, instruction);
        break;
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
    case INSTRUCTION_RECEIVE:
        hash = hash_word(hash, (uint64_t)instruction->message.peer);
        hash = hash_word(hash, instruction->message.tag);
        break;
    case INSTRUCTION_SQUARE_SUM:
    case INSTRUCTION_UPDATE:
        hash = hash_word(hash, (uint64_t)instruction->parameter);
        break;
    case INSTRUCTION_LOAD:
    case INSTRUCTION_ADD:
    case INSTRUCTION_CLEAR:
    case INSTRUCTION_KINDS:
        break;
    }
    hash = hash_word(hash, (uint64_t)instruction->piece_count);
    for (int i = 0; i < instruction->piece_count; i++)
        hash = hash_piece(hash, program, &program_pieces(program, instruction)[i]);
    return hash;
}

static uint64_t hash_parameter(uint64_t hash, const struct program *program,
                               const struct parameter *parameter)
{
    hash = hash_word(hash, (uint64_t)parameter->tensor);
    hash = hash_box(hash, &parameter->box);
    hash = hash_buffer(hash, program, parameter->master);
    hash = hash_buffer(hash, program, parameter->first);
    hash = hash_buffer(hash, program, parameter->second);
    return hash_piece(hash, program, &parameter->gradient);
}

static uint64_t hash_layout(uint64_t hash, const struct program *program)
{
    hash = hash_word(hash, (uint64_t)program->rank);
    hash = hash_word(hash, (uint64_t)program->ranks);
    hash = hash_word(hash, (uint64_t)program->samples);
    hash = hash_word(hash, program->slot_bytes);
    hash = hash_buffer(hash, program, program->metrics);
    for (int i = 0; i < REGIONS; i++)
        hash = hash_word(hash, program->bytes[i]);
    for (int i = 0; i < SECTIONS; i++) {
        hash = hash_word(hash, (uint64_t)program->sections[i].first);
        hash = hash_word(hash, (uint64_t)program->sections[i].count);
    }
    return hash;
}

uint64_t program_hash(const struct program *program)
{
    uint64_t hash = hash_layout(graph_hash(program->graph, HASH_START), program);
    for (size_t i = 0; i < program->instruction_count; i++)
        hash = hash_instruction(hash, program, &program->instructions[i]);
    for (size_t i = 0; i < program->parameter_count; i++)
        hash = hash_parameter(hash, program, &program->parameters[i]);
    for (int i = 0; i < program->event_count; i++) {
        hash = hash_word(hash, (uint64_t)program->events[i].direction);
        hash = hash_word(hash, (uint64_t)program->events[i].micro_batch);
        hash = hash_word(hash, (uint64_t)program->events[i].slot);
    }
    return hash;
}
