/* program.c - what can be read off a program: sizes, words moved, work done, and the order of
 * instructions in a step. */
#include "common/program/program.h"

#include <stdlib.h>

void program_destroy(struct program *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->group_count; i++)
        free(program->groups[i].ranks);
    free(program->buffers);
    free(program->pieces);
    free(program->instructions);
    free(program->groups);
    free(program->parameters);
    free(program->counts);
    free(program->waits);
    free(program->events);
    free(program);
}

int program_like(const struct program *program, const struct mesh *mesh, int inside)
{
    int at[AXES_MAX], like = 0, stride = 1;
    mesh_coordinates(mesh, inside, at);
    for (int axis = 0; axis < mesh->axes; stride *= mesh->size[axis++])
        if (program->uneven_axes >> axis & 1)
            like += at[axis] * stride;
        else if (program->first_axes >> axis & 1 && at[axis] > 0)
            like += stride;
    return like;
}

uint64_t program_bytes(const struct program *program)
{
    uint64_t bytes = 0;
    for (int region = 0; region < REGIONS; region++)
        bytes += program->bytes[region];
    return bytes;
}

const struct piece *program_pieces(const struct program *program,
                                   const struct instruction *instruction)
{
    return &program->pieces[instruction->piece_first];
}

int program_find_output(const struct program *program, int tensor, struct box *box)
{
    struct range range = program->sections[SECTION_FORWARD];
    for (int i = range.first; i < range.first + range.count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind != INSTRUCTION_KERNEL)
            continue;
        const struct node *node = &program->graph->nodes[instruction->kernel.node];
        int last = operation_output(node->operation);
        if (node->operands[last] != tensor)
            continue;
        *box = program_pieces(program, instruction)[last].box;
        return program_pieces(program, instruction)[last].buffer;
    }
    return -1;
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

bool program_overlaps(const struct program *program)
{
    for (size_t i = 0; i < program->instruction_count; i++)
        if (program->instructions[i].queue == QUEUE_COMMUNICATION)
            return true;
    return false;
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

/* The sections of each kind of step, in order; EVENTS stands for the schedule's events. */
enum { EVENTS = SECTIONS, END };
static const int steps_of[][8] = {
    [PROGRAM_TRAIN] = {SECTION_WEIGHTS, SECTION_CLEAR, EVENTS, SECTION_REDUCE, SECTION_METRICS,
                       SECTION_UPDATE, END},
    [PROGRAM_EVALUATE] = {SECTION_WEIGHTS, EVENTS, SECTION_METRICS, END},
};

/* Sets *section and the cursor's micro-batch and slot to those of its event; false when there are
 * no more events. Evaluation skips backwards. */
static bool event_section(const struct program *program, enum program_kind kind,
                          struct program_cursor *cursor, int *section)
{
    while (kind == PROGRAM_EVALUATE && cursor->event < program->event_count &&
           program->events[cursor->event].direction == BACKWARD)
        cursor->event++;
    if (cursor->event == program->event_count)
        return false;
    const struct event *event = &program->events[cursor->event];
    *section = event->direction == FORWARD ? SECTION_FORWARD : SECTION_BACKWARD;
    cursor->micro_batch = event->micro_batch;
    cursor->slot = kind == PROGRAM_EVALUATE ? 0 : event->slot;
    return true;
}

bool program_next(const struct program *program, enum program_kind kind,
                  struct program_cursor *cursor)
{
    for (;;) {
        int section = steps_of[kind][cursor->section];
        bool in_events = section == EVENTS;
        if (section == END)
            return false;
        if (in_events && !event_section(program, kind, cursor, &section)) {
            cursor->section++;
            cursor->index = 0;
            continue;
        }
        if (cursor->index < program->sections[section].count) {
            int index = program->sections[section].first + cursor->index++;
            cursor->instruction = &program->instructions[index];
            return true;
        }
        cursor->index = 0;
        if (in_events)
            cursor->event++;
        else
            cursor->section++;
    }
}

size_t program_step_count(const struct program *program, enum program_kind kind)
{
    struct program_cursor cursor = {0};
    size_t count = 0;
    while (program_next(program, kind, &cursor))
        count++;
    return count;
}
