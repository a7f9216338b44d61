/* program.c - what can be read off a program: sizes, the order of instructions in a step and what
 * each queue waits for in it, a listing for people, and a fingerprint. */
#include "common/program/program.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

bool program_overlaps(const struct program *program)
{
    for (size_t i = 0; i < program->instruction_count; i++)
        if (program->instructions[i].queue == QUEUE_COMMUNICATION)
            return true;
    return false;
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
static bool program_event_section(const struct program *program, enum program_kind kind,
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
        if (in_events && !program_event_section(program, kind, cursor, &section)) {
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

void program_walk_init(struct program_walk *walk, const struct program *program, enum queue queue)
{
    *walk = (struct program_walk){.program = program, .queue = queue};
    if (program_overlaps(program))
        walk->runs = xcalloc(program->instruction_count, sizeof *walk->runs);
}

void program_walk_finish(struct program_walk *walk)
{
    free(walk->runs);
}

void program_walk_begin(struct program_walk *walk, enum program_kind kind)
{
    walk->kind = kind;
    walk->cursor = (struct program_cursor){0};
    walk->number = 0;
    if (walk->runs)
        memset(walk->runs, 0, walk->program->instruction_count * sizeof *walk->runs);
}

bool program_walk_next(struct program_walk *walk)
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

uint64_t program_walk_awaits(const struct program_walk *walk)
{
    const struct instruction *instruction = walk->cursor.instruction;
    uint64_t number = 0;
    for (int i = 0; i < instruction->wait_count; i++) {
        uint64_t run = walk->runs[walk->program->waits[instruction->wait_first + i]];
        number = run > number ? run : number;
    }
    return number;
}

static const char *const section_names[SECTIONS] = {"weights", "clear",   "forward", "backward",
                                                    "reduce",  "metrics", "update"};
static const char *const region_names[REGIONS] = {"state", "saved", "transient", "communication"};

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

static void instruction_print(const struct program *program, const struct instruction *instruction,
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
            instruction_print(program, &program->instructions[i], out);
    }
}

/* The hash of a program covers everything that affects how it is executed. Buffers are hashed by
 * where they lie and groups by their ranks, since their numbers alone would not tell two programs
 * apart. Structs are hashed field by field because padding is undefined. */

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
