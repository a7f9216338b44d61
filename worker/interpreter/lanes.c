/* lanes.c - a lane per queue, a mark per instruction that the other queue waits for, and pinned
 * memory for what a step reads from the host. */
#include "worker/interpreter/lanes.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define STAGE_ALIGNMENT 64

struct lanes {
    const struct program *program;
    const struct accelerator *accelerator;
    struct lane *of[QUEUES];
    struct lane *beside; /* for copies to the host */
    struct mark **marks; /* per instruction; NULL: the other queue never waits for it */
    char *stage;
    size_t stage_bytes, staged;
};

static size_t staged_bytes(size_t bytes)
{
    return (bytes + STAGE_ALIGNMENT - 1) / STAGE_ALIGNMENT * STAGE_ALIGNMENT;
}

/* Bytes of pinned memory for all loads of a step. */
static size_t count_stage(const struct program *program)
{
    size_t bytes = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind != INSTRUCTION_LOAD)
            continue;
        assert(instruction->queue == QUEUE_COMPUTE);
        const struct box *box = &program_pieces(program, instruction)->box;
        bytes +=
            staged_bytes((size_t)box_count(box) * ELEMENT_BYTES) * (size_t)program->micro_batches;
    }
    return bytes;
}

/* Does a queue have kernels to run? */
static bool computes(const struct program *program, enum queue queue)
{
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->queue == queue && (instruction->kind == INSTRUCTION_KERNEL ||
                                            instruction->kind == INSTRUCTION_SQUARE_SUM))
            return true;
    }
    return false;
}

static int make_marks(struct lanes *lanes, struct error *err)
{
    const struct program *program = lanes->program;
    int rc = 0;
    lanes->marks = xcalloc(program->instruction_count, sizeof(struct mark *));
    for (size_t i = 0; i < program->wait_count && rc == 0; i++) {
        struct mark **mark = &lanes->marks[program->waits[i]];
        if (!*mark)
            rc = lanes->accelerator->mark_create(mark, err);
    }
    return rc;
}

int lanes_open(const struct program *program, const struct accelerator *accelerator,
               struct lanes **out, struct error *err)
{
    *out = NULL;
    if (!accelerator)
        return 0;
    struct lanes *lanes = xcalloc(1, sizeof *lanes);
    *lanes = (struct lanes){.program = program, .accelerator = accelerator};
    int rc = accelerator->lane_open(&lanes->of[QUEUE_COMPUTE], true, err);
    assert(!computes(program, QUEUE_COMMUNICATION)); /* only one lane holds memory for libraries */
    if (rc == 0 && program_overlaps(program))
        rc = accelerator->lane_open(&lanes->of[QUEUE_COMMUNICATION], false, err);
    if (rc == 0)
        rc = accelerator->lane_open(&lanes->beside, false, err);
    if (rc == 0)
        rc = make_marks(lanes, err);
    lanes->stage_bytes = count_stage(program);
    void *stage = NULL;
    if (rc == 0)
        rc = accelerator->pin(lanes->stage_bytes, &stage, err);
    lanes->stage = stage;
    if (rc < 0) {
        lanes_close(lanes);
        return rc;
    }
    *out = lanes;
    return 0;
}

void lanes_close(struct lanes *lanes)
{
    if (!lanes)
        return;
    for (int queue = 0; queue < QUEUES; queue++)
        lanes->accelerator->lane_close(lanes->of[queue]);
    lanes->accelerator->lane_close(lanes->beside);
    for (size_t i = 0; lanes->marks && i < lanes->program->instruction_count; i++)
        lanes->accelerator->mark_destroy(lanes->marks[i]);
    lanes->accelerator->unpin(lanes->stage);
    free((void *)lanes->marks);
    free(lanes);
}

void lanes_enter(struct lanes *lanes, enum queue queue)
{
    if (lanes)
        lanes->accelerator->enter(lanes->of[queue]);
}

void lanes_enter_beside(struct lanes *lanes)
{
    if (lanes)
        lanes->accelerator->enter(lanes->beside);
}

void lanes_leave(struct lanes *lanes)
{
    if (lanes)
        lanes->accelerator->enter(NULL);
}

/* A mark may have been set again by a later run of the awaited instruction. The lane then waits for
 * more than it has to, but never for anything that itself waits for this instruction. */
void lanes_await(struct lanes *lanes, const struct program_walk *walk)
{
    const struct instruction *instruction = walk->cursor.instruction;
    for (int i = 0; lanes && i < instruction->wait_count; i++) {
        int awaited = lanes->program->waits[instruction->wait_first + i];
        if (walk->runs[awaited] > 0)
            lanes->accelerator->mark_await(lanes->marks[awaited]);
    }
}

void lanes_pass(struct lanes *lanes, int index)
{
    if (lanes && lanes->marks[index])
        lanes->accelerator->mark_set(lanes->marks[index]);
}

int lanes_finish(struct lanes *lanes, struct error *err)
{
    return lanes ? lanes->accelerator->finish(err) : 0;
}

void lanes_begin(struct lanes *lanes)
{
    if (lanes)
        lanes->staged = 0;
}

void *lanes_stage(struct lanes *lanes, size_t bytes)
{
    void *place = lanes->stage + lanes->staged;
    lanes->staged += staged_bytes(bytes);
    assert(lanes->staged <= lanes->stage_bytes);
    return place;
}
