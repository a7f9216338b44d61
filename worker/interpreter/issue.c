/* issue.c - a stream per queue, a mark per instruction that the other queue waits for, and pinned
 * memory for what a step reads from the host; stretches that are played instead of issued; and
 * instructions that the device takes together. A model has hundreds of parameters, most of which
 * are small: a launch each would take longer than the work. */
#include "worker/interpreter/issue.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/interpreter/internal.h"

#include <assert.h>
#include <stdlib.h>

#define STAGE_ALIGNMENT 64
#define TOGETHER 64

/* ---- streams, and what they wait for ---- */

struct streams {
    const struct program *program;
    const struct accelerator *accelerator;
    struct device_stream *of[QUEUES];
    struct device_stream *beside; /* for copies to the host */
    struct device_event **marks;  /* per instruction; NULL: the other queue never waits for it */
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

static int make_marks(struct streams *streams, struct error *err)
{
    const struct program *program = streams->program;
    int rc = 0;
    streams->marks = xcalloc(program->instruction_count, sizeof(struct device_event *));
    for (size_t i = 0; i < program->wait_count && rc == 0; i++) {
        struct device_event **mark = &streams->marks[program->waits[i]];
        if (!*mark)
            rc = streams->accelerator->event_create(mark, err);
    }
    return rc;
}

int streams_open(const struct program *program, const struct accelerator *accelerator,
                 struct streams **out, struct error *err)
{
    *out = NULL;
    if (!accelerator)
        return 0;
    struct streams *streams = xcalloc(1, sizeof *streams);
    *streams = (struct streams){.program = program, .accelerator = accelerator};
    int rc = accelerator->stream_open(&streams->of[QUEUE_COMPUTE], true, err);
    assert(!computes(program, QUEUE_COMMUNICATION)); /* only one lane holds memory for libraries */
    if (rc == 0 && program_overlaps(program))
        rc = accelerator->stream_open(&streams->of[QUEUE_COMMUNICATION], false, err);
    if (rc == 0)
        rc = accelerator->stream_open(&streams->beside, false, err);
    if (rc == 0)
        rc = make_marks(streams, err);
    streams->stage_bytes = count_stage(program);
    void *stage = NULL;
    if (rc == 0)
        rc = accelerator->pin(streams->stage_bytes, &stage, err);
    streams->stage = stage;
    if (rc < 0) {
        streams_close(streams);
        return rc;
    }
    *out = streams;
    return 0;
}

void streams_close(struct streams *streams)
{
    if (!streams)
        return;
    for (int queue = 0; queue < QUEUES; queue++)
        streams->accelerator->stream_close(streams->of[queue]);
    streams->accelerator->stream_close(streams->beside);
    for (size_t i = 0; streams->marks && i < streams->program->instruction_count; i++)
        streams->accelerator->event_destroy(streams->marks[i]);
    streams->accelerator->unpin(streams->stage);
    free((void *)streams->marks);
    free(streams);
}

void streams_enter(struct streams *streams, enum queue queue)
{
    if (streams)
        streams->accelerator->enter(streams->of[queue]);
}

void streams_enter_beside(struct streams *streams)
{
    if (streams)
        streams->accelerator->enter(streams->beside);
}

void streams_leave(struct streams *streams)
{
    if (streams)
        streams->accelerator->enter(NULL);
}

/* A mark may have been set again by a later run of the awaited instruction. The lane then waits for
 * more than it has to, but never for anything that itself waits for this instruction. */
void streams_await(struct streams *streams, const struct program_walk *walk)
{
    const struct instruction *instruction = walk->cursor.instruction;
    for (int i = 0; streams && i < instruction->wait_count; i++) {
        int awaited = streams->program->waits[instruction->wait_first + i];
        if (walk->runs[awaited] > 0)
            streams->accelerator->event_await(streams->marks[awaited]);
    }
}

void streams_pass(struct streams *streams, int index)
{
    if (streams && streams->marks[index])
        streams->accelerator->event_set(streams->marks[index]);
}

int streams_finish(struct streams *streams, struct error *err)
{
    return streams ? streams->accelerator->finish(err) : 0;
}

void streams_begin(struct streams *streams)
{
    if (streams)
        streams->staged = 0;
}

void *streams_stage(struct streams *streams, size_t bytes)
{
    void *place = streams->stage + streams->staged;
    streams->staged += staged_bytes(bytes);
    assert(streams->staged <= streams->stage_bytes);
    return place;
}

/* ---- stretches that are recorded ---- */

/* One stretch in one slot. */
struct recording {
    bool issued;
    struct device_recording *tape;
};

struct recordings {
    const struct program *program;
    const struct accelerator *accelerator;
    int *lengths; /* per instruction: length of the stretch that begins there, or 0 */
    int *numbers; /* per instruction: index of that stretch */
    int count;
    struct recording *items; /* stretch by stretch, one per slot */
    bool refused;            /* the device has failed to record_stretch one */
};

/* Whether an instruction involves only the device and is the same in every step. */
static bool recurs(const struct program *program, const struct instruction *instruction)
{
    switch (instruction->kind) {
    case INSTRUCTION_KERNEL:
        return !program->graph->nodes[instruction->kernel.node].operation->is_loss;
    case INSTRUCTION_COPY:
    case INSTRUCTION_ADD:
    case INSTRUCTION_CLEAR:
    case INSTRUCTION_SQUARE_SUM:
        return true;
    default:
        return false;
    }
}

/* Per instruction: does the other queue wait for it? The caller frees it. */
static bool *find_awaited(const struct program *program)
{
    bool *awaited = xcalloc(program->instruction_count, sizeof *awaited);
    for (size_t i = 0; i < program->wait_count; i++)
        awaited[program->waits[i]] = true;
    return awaited;
}

/* Count the instructions of each stretch into lengths, at its first instruction. */
static void find_stretches(struct recordings *recordings, const struct range *section,
                           const bool *awaited)
{
    int first = -1;
    for (int i = section->first; i < section->first + section->count; i++) {
        const struct instruction *instruction = &recordings->program->instructions[i];
        if (instruction->queue != QUEUE_COMPUTE)
            continue;
        bool takes_part = recurs(recordings->program, instruction);
        if (!takes_part || instruction->wait_count > 0)
            first = -1;
        if (!takes_part)
            continue;
        if (first < 0)
            first = i;
        recordings->lengths[first]++;
        if (awaited[i])
            first = -1;
    }
}

struct recordings *recordings_open(const struct program *program,
                                   const struct accelerator *accelerator)
{
    if (!accelerator)
        return NULL;
    struct recordings *recordings = xcalloc(1, sizeof *recordings);
    *recordings = (struct recordings){.program = program,
                                      .accelerator = accelerator,
                                      .lengths = xcalloc(program->instruction_count, sizeof(int)),
                                      .numbers = xcalloc(program->instruction_count, sizeof(int))};
    bool *awaited = find_awaited(program);
    for (int section = 0; section < SECTIONS; section++)
        find_stretches(recordings, &program->sections[section], awaited);
    free(awaited);
    for (size_t i = 0; i < program->instruction_count; i++)
        if (recordings->lengths[i] > 1)
            recordings->numbers[i] = recordings->count++;
    recordings->items =
        xcalloc((size_t)recordings->count * (size_t)program->slots, sizeof *recordings->items);
    return recordings;
}

void recordings_close(struct recordings *recordings)
{
    if (!recordings)
        return;
    for (int i = 0; i < recordings->count * recordings->program->slots; i++)
        recordings->accelerator->recording_destroy(recordings->items[i].tape);
    free(recordings->items);
    free(recordings->lengths);
    free(recordings->numbers);
    free(recordings);
}

/* The number of instructions in the stretch that begins at instruction `first`, at least 2; 1 if
 * none begins there. Accepts NULL. */
static int recordings_stretch(const struct recordings *recordings, int first)
{
    return recordings && recordings->lengths[first] > 1 ? recordings->lengths[first] : 1;
}

/* Record a stretch that has been issued before; false if the device cannot. */
static bool record_stretch(struct recordings *recordings, struct recording *recording,
                           void (*issue)(void *context), void *context)
{
    struct error err;
    int rc = recordings->accelerator->record(issue, context, &recording->tape, &err);
    if (rc < 0)
        log_line(LOG_WARN, "kernels are launched one by one: %s", err.text);
    recordings->refused = rc < 0;
    return rc == 0;
}

/* Run the stretch that begins at `first` in a slot, in the calling thread's stream. `issue` is
 * called to issue its instructions when there is no recording to play. If the device cannot record,
 * the reason is logged and all stretches that have no recording are issued one by one from then on.
 */
static void recordings_run(struct recordings *recordings, int first, int slot,
                           void (*issue)(void *context), void *context)
{
    struct recording *recording =
        &recordings->items[recordings->numbers[first] * recordings->program->slots + slot];
    bool again = recording->issued && !recordings->refused;
    recording->issued = true;
    if (recording->tape || (again && record_stretch(recordings, recording, issue, context)))
        recordings->accelerator->play(recording->tape);
    else
        issue(context);
}

/* ---- two operations in one launch ---- */

/* The next instruction of the compute queue. */
static const struct instruction *next_computed(const struct instruction *instruction)
{
    do
        instruction++;
    while (instruction->queue != QUEUE_COMPUTE);
    return instruction;
}

/* The kernel that an instruction starts in forward, or NULL if it is anything else. */
static const struct kernel *forward_kernel(const struct interpreter *in,
                                           const struct instruction *instruction)
{
    bool is_one = instruction->kind == INSTRUCTION_KERNEL &&
                  instruction->kernel.direction == FORWARD && instruction->kernel.phase == 0;
    return is_one ? in->kernels[instruction->kernel.node] : NULL;
}

static const struct kernel_pair *find_pair(const struct interpreter *in, const struct kernel *first,
                                           const struct kernel *second)
{
    const struct kernel_pair *pair = in->config.device->pairs;
    while (pair && pair->first && (pair->first != first || pair->second != second))
        pair++;
    return pair && pair->first ? pair : NULL;
}

/* If the operation that begins here has all its `phases` in consecutive instructions: the last of
 * them. Otherwise NULL. */
static const struct instruction *last_phase(const struct instruction *instruction, int phases)
{
    int node = instruction->kernel.node;
    for (int phase = 1; phase < phases; phase++) {
        instruction = next_computed(instruction);
        if (instruction->kind != INSTRUCTION_KERNEL || instruction->kernel.node != node ||
            instruction->kernel.direction != FORWARD || instruction->kernel.phase != phase)
            return NULL;
    }
    return instruction;
}

/* If the device can compute the instruction at the cursor together with those behind it in this
 * queue, do so. `left` is how many instructions the stretch still has. Returns how many were
 * executed; 0: no such pair, nothing was done. */
static int issue_pair(const struct interpreter *in, const struct program_cursor *cursor, int left)
{
    const struct instruction *first = cursor->instruction;
    if (left < 2 || !forward_kernel(in, first))
        return 0;
    const struct instruction *second = next_computed(first);
    const struct kernel *kernel = forward_kernel(in, second);
    const struct kernel_pair *pair =
        kernel ? find_pair(in, forward_kernel(in, first), kernel) : NULL;
    if (!pair)
        return 0;
    int phases = in->program->graph->nodes[second->kernel.node].operation->phases[FORWARD];
    second = phases < left ? last_phase(second, phases) : NULL;
    if (!second)
        return 0;
    const struct kernel_call calls[] = {interpreter_call(in, first, cursor->slot),
                                        interpreter_call(in, second, cursor->slot)};
    return pair->run(&calls[0], &calls[1]) ? 1 + phases : 0;
}

/* ---- like instructions in few launches ---- */

static bool accesses_overlap(const struct access *a, const struct access *b)
{
    return a->region == b->region && a->low < b->high && b->low < a->high;
}

/* Whether one of two instructions writes what the other touches. */
static bool depend(const struct program *program, const struct instruction *a,
                   const struct instruction *b)
{
    struct access of_a[ACCESSES_MAX], of_b[ACCESSES_MAX];
    int count_a = instruction_accesses(program, a, of_a);
    int count_b = instruction_accesses(program, b, of_b);
    for (int i = 0; i < count_a; i++)
        for (int k = 0; k < count_b; k++)
            if ((of_a[i].writes || of_b[k].writes) && accesses_overlap(&of_a[i], &of_b[k]))
                return true;
    return false;
}

/* The instructions of one kind that follow each other in the compute queue from `first` on, at most
 * `left` of them. Copies have to be independent of each other. */
static int find_alike(const struct program *program, const struct instruction *first, int left,
                      const struct instruction *found[TOGETHER])
{
    int count = 0;
    for (const struct instruction *at = first; count < TOGETHER && count < left; at++) {
        if (at->queue != QUEUE_COMPUTE)
            continue;
        if (at->kind != first->kind)
            break;
        for (int i = 0; i < count && at->kind == INSTRUCTION_COPY; i++)
            if (depend(program, found[i], at))
                return count;
        found[count++] = at;
    }
    return count;
}

static void sum_squares_together(struct interpreter *in, const struct instruction *const *found,
                                 int count, int slot)
{
    struct square_call calls[TOGETHER];
    for (int i = 0; i < count; i++) {
        const struct view view = interpreter_view(in, found[i], 0, slot);
        calls[i] = (struct square_call){view.data, view_elements(&view)};
    }
    in->config.device->square_sum_all(calls, count, interpreter_square_sum(in));
}

static void copy_together(struct interpreter *in, const struct instruction *const *found, int count,
                          int slot)
{
    struct copy_call calls[TOGETHER];
    for (int i = 0; i < count; i++)
        calls[i] = (struct copy_call){.source = interpreter_view(in, found[i], 0, slot),
                                      .destination = interpreter_view(in, found[i], 1, slot),
                                      .part = found[i]->part};
    in->config.device->copy_all(calls, count);
}

/* Likewise for sums of squares, and for copies, that follow each other. */
static int issue_together(struct interpreter *in, const struct program_cursor *cursor, int left)
{
    const struct device *device = in->config.device;
    const struct instruction *first = cursor->instruction, *found[TOGETHER];
    bool sums = first->kind == INSTRUCTION_SQUARE_SUM && device->square_sum_all;
    bool copies = first->kind == INSTRUCTION_COPY && device->copy_all;
    int count = sums || copies ? find_alike(in->program, first, left, found) : 0;
    if (count < 2)
        return 0;
    if (sums)
        sum_squares_together(in, found, count, cursor->slot);
    else
        copy_together(in, found, count, cursor->slot);
    return count;
}

/* ---- what comes next ---- */

/* The stretch that begins at the cursor, for issue_stretch. */
struct stretch {
    struct interpreter *in;
    struct program_cursor cursor;
    int count;
};

/* Kernels, copies and sums cannot fail when they are issued, so errors are ignored. */
static void issue_stretch(void *context)
{
    const struct stretch *stretch = context;
    struct program_cursor cursor = stretch->cursor;
    struct error err;
    int passed = 0; /* instructions that have been executed with one before */
    for (int left = stretch->count; left > 0; cursor.instruction++) {
        if (cursor.instruction->queue != QUEUE_COMPUTE)
            continue;
        if (passed == 0)
            passed = issue_pair(stretch->in, &cursor, left);
        if (passed == 0)
            passed = issue_together(stretch->in, &cursor, left);
        if (passed == 0)
            interpreter_execute(stretch->in, &cursor, &err);
        passed -= passed > 0;
        left--;
    }
}

/* While instructions are timed there are no stretches. */
int issue_next(struct interpreter *in, struct program_walk *walk, struct error *err)
{
    int first = (int)(walk->cursor.instruction - in->program->instructions);
    int count = in->timed ? 1 : recordings_stretch(in->recordings, first);
    if (count == 1)
        return interpreter_execute(in, &walk->cursor, err);
    struct stretch stretch = {in, walk->cursor, count};
    recordings_run(in->recordings, first, walk->cursor.slot, issue_stretch, &stretch);
    for (; count > 1; count--) {
        in->passed[walk->cursor.instruction - in->program->instructions]++;
        program_walk_next(walk);
    }
    return 0;
}
