/* footprints.c - turns instructions into calls of the trail. An exchange gets an id that is the
 * same on all ranks that take part in it, so that the coordinator can see who waits for whom. */
#include "worker/interpreter/footprints.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>

#define MEMBERS_NAMED 6 /* of a group, in the name of a call */

struct footprints {
    const struct program *program;
    struct trail *trail;
    struct trail_call *calls; /* per instruction, without the fields that change from run to run */
    uint64_t *begun; /* per group: number of calls so far; written by its queue's thread only */
};

static bool is_message(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_SEND || instruction->kind == INSTRUCTION_WAIT ||
           instruction->kind == INSTRUCTION_RECEIVE;
}

/* Such as "0,1,2,3,4,5,...,15". */
static void name_members(const struct group *group, char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < group->count && used < size; i++) {
        bool last = i + 1 == group->count;
        if (i == MEMBERS_NAMED && !last) {
            snprintf(out + used, size - used, ",...,%d", group->ranks[group->count - 1]);
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", group->ranks[i]);
    }
}

static void describe_collective(const struct program *program,
                                const struct instruction *instruction, struct trail_call *call)
{
    const struct group *group = &program->groups[instruction->collective.group];
    char members[48];
    uint64_t id = hash_number(HASH_START, (uint64_t)group->queue);
    for (int i = 0; i < group->count; i++)
        id = hash_number(id, (uint64_t)group->ranks[i]);
    name_members(group, members, sizeof members);
    call->kind = TRAIL_EXCHANGES;
    call->group = id;
    snprintf(call->name, sizeof call->name, "%s of {%s}", instruction_name(program, instruction),
             members);
}

static void describe_message(const struct program *program, const struct instruction *instruction,
                             struct trail_call *call)
{
    bool receives = instruction->kind == INSTRUCTION_RECEIVE;
    int peer = instruction->message.peer;
    uint64_t id = hash_number(HASH_START, instruction->message.tag);
    id = hash_number(id, (uint64_t)(receives ? peer : program->rank));
    id = hash_number(id, (uint64_t)(receives ? program->rank : peer));
    call->kind = TRAIL_EXCHANGES;
    call->group = id;
    snprintf(call->name, sizeof call->name, "%s %s rank %d", receives ? "receive" : "send",
             receives ? "from" : "to", peer);
}

static void describe_own(const struct program *program, const struct instruction *instruction,
                         struct trail_call *call)
{
    const char *block =
        instruction->block >= 0 ? program->graph->blocks[instruction->block].name : "";
    call->kind = TRAIL_COMPUTES;
    snprintf(call->name, sizeof call->name, "%s%s%s", instruction_name(program, instruction),
             block[0] ? " of " : "", block);
}

struct footprints *footprints_create(const struct program *program, struct trail *trail)
{
    if (!trail)
        return NULL;
    struct footprints *footprints = xcalloc(1, sizeof *footprints);
    footprints->program = program;
    footprints->trail = trail;
    footprints->begun = xcalloc(program->group_count, sizeof *footprints->begun);
    footprints->calls = xcalloc(program->instruction_count, sizeof *footprints->calls);
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind == INSTRUCTION_COLLECTIVE)
            describe_collective(program, instruction, &footprints->calls[i]);
        else if (is_message(instruction))
            describe_message(program, instruction, &footprints->calls[i]);
        else
            describe_own(program, instruction, &footprints->calls[i]);
        footprints->calls[i].instruction = (uint32_t)i;
        footprints->calls[i].instructions = (uint32_t)program->instruction_count;
    }
    return footprints;
}

void footprints_destroy(struct footprints *footprints)
{
    if (!footprints)
        return;
    free(footprints->calls);
    free(footprints->begun);
    free(footprints);
}

static uint64_t milliseconds(double seconds)
{
    return (uint64_t)(seconds * 1e3);
}

void footprints_begin(struct footprints *footprints, int index, uint64_t step, uint64_t runs,
                      double now_s)
{
    if (!footprints)
        return;
    const struct instruction *instruction = &footprints->program->instructions[index];
    struct trail_call *call = &footprints->calls[index];
    call->step = step;
    call->entered_ms = milliseconds(now_s);
    call->number = instruction->kind == INSTRUCTION_COLLECTIVE
                       ? ++footprints->begun[instruction->collective.group]
                       : runs + 1;
    trail_enter(footprints->trail, instruction->queue, call);
}

void footprints_await(struct footprints *footprints, enum queue queue, unsigned awaited,
                      uint64_t step, double now_s)
{
    struct trail_call call = {
        .kind = TRAIL_AWAITS, .step = step, .entered_ms = milliseconds(now_s), .awaited = awaited};
    snprintf(call.name, sizeof call.name, "%s",
             awaited == TRAIL_COPIES ? "the copies of its state" : "what it does beside computing");
    if (footprints)
        trail_enter(footprints->trail, queue, &call);
}

void footprints_end(struct footprints *footprints, enum queue queue, double now_s)
{
    if (footprints)
        trail_leave(footprints->trail, queue, milliseconds(now_s));
}
