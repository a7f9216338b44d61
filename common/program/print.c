/* print.c - prints a program for people, one line per instruction, and names its parts. */
#include "common/program/program.h"

#include <inttypes.h>

static const char *const section_names[SECTIONS] = {"weights", "clear",   "forward", "backward",
                                                    "reduce",  "metrics", "update"};
static const char *const region_names[REGIONS] = {"state", "saved", "transient", "communication"};

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

const char *section_name(enum section section)
{
    return section_names[section];
}

enum section instruction_section(const struct program *program,
                                 const struct instruction *instruction)
{
    int index = (int)(instruction - program->instructions);
    enum section section = 0;
    while (section < SECTIONS - 1 &&
           (index < program->sections[section].first ||
            index >= program->sections[section].first + program->sections[section].count))
        section++;
    return section;
}

static void print_instruction(const struct program *program, const struct instruction *instruction,
                              FILE *out)
{
    fprintf(out, "%5td %s %-10s %-14s", instruction - program->instructions,
            instruction->queue == QUEUE_COMMUNICATION ? "|" : " ",
            instruction->block >= 0 ? program->graph->blocks[instruction->block].name : "",
            instruction_name(program, instruction));
    if (instruction->kind == INSTRUCTION_KERNEL)
        fprintf(out, " %s.%d", instruction->kernel.direction == FORWARD ? "forward" : "backward",
                instruction->kernel.phase);
    if (instruction->kind == INSTRUCTION_COLLECTIVE) {
        const struct group *group = &program->groups[instruction->collective.group];
        for (int i = 0; i < group->count; i++)
            fprintf(out, "%c%d", i ? ',' : ' ', group->ranks[i]);
    }
    if (instruction->kind == INSTRUCTION_SEND || instruction->kind == INSTRUCTION_RECEIVE ||
        instruction->kind == INSTRUCTION_WAIT)
        fprintf(out, " rank %d tag %" PRIu32, instruction->message.peer, instruction->message.tag);
    for (int i = 0; i < instruction->piece_count; i++) {
        const struct piece *piece = &program_pieces(program, instruction)[i];
        if (piece->buffer < 0)
            continue;
        const struct buffer *buffer = &program->buffers[piece->buffer];
        char box[128];
        fprintf(out, "  %s%s+%" PRIu64 "%s", piece->operand >= VIEWS_MAX ? "d:" : "",
                region_names[buffer->region],
                buffer->offset + (uint64_t)piece->offset * (uint64_t)buffer->element_bytes,
                box_print(box, sizeof box, &piece->box));
    }
    for (int i = 0; i < instruction->wait_count; i++)
        fprintf(out, "%s%d", i ? ", " : "  after ", program->waits[instruction->wait_first + i]);
    fputc('\n', out);
}

void program_print(const struct program *program, FILE *out)
{
    fprintf(out, "rank %d of %d, stage %d, %d micro-batches of %lld samples, %d slots\n",
            program->rank, program->ranks, program->stage, program->micro_batches,
            (long long)program->samples, program->slots);
    for (int region = 0; region < REGIONS; region++)
        fprintf(out, "%s %" PRIu64 " bytes\n", region_names[region], program->bytes[region]);
    for (int section = 0; section < SECTIONS; section++) {
        struct range range = program->sections[section];
        fprintf(out, "%s:\n", section_names[section]);
        for (int i = range.first; i < range.first + range.count; i++)
            print_instruction(program, &program->instructions[i], out);
    }
}
