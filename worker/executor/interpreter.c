/* interpreter.c - walks a step's instructions in order: kernels on this thread, collectives as
 * blocking calls, sends that go on at once and are waited for where their buffer is needed. */
#include "worker/executor/interpreter.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The last send of one (peer, tag). */
struct sending {
    int peer;
    uint32_t tag;
    struct fabric_request *request;
};

struct interpreter {
    const struct program *program;
    struct interpreter_config config;
    struct arena *arena;
    struct fabric_group **groups;
    size_t *counts;                /* the program's, as the fabric wants them */
    const struct kernel **kernels; /* per node */
    struct sending *sendings;
    size_t sending_count;
    double *seconds;
    uint64_t *runs;
    /* Of the step at hand. */
    enum program_kind kind;
    uint64_t step;
    double targets, rate, scale;
    bool skipped;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static char *address(const struct interpreter *in, int buffer, int slot)
{
    const struct buffer *b = &in->program->buffers[buffer];
    char *base = arena_region(in->arena, b->region) + b->offset;
    return b->region == REGION_SAVED ? base + (uint64_t)slot * in->program->slot_bytes : base;
}

static struct view view_of(const struct interpreter *in, const struct piece *piece, int slot)
{
    struct view view = {.box = piece->box};
    if (piece->buffer >= 0)
        view.data = address(in, piece->buffer, slot) + piece->offset * ELEMENT_BYTES;
    return view;
}

static float *floats(const struct interpreter *in, const struct instruction *instruction, int index,
                     int slot)
{
    return view_of(in, &program_pieces(in->program, instruction)[index], slot).data;
}

static size_t count_of(const struct interpreter *in, const struct instruction *instruction,
                       int index)
{
    return (size_t)box_count(&program_pieces(in->program, instruction)[index].box);
}

static void run_kernel(struct interpreter *in, const struct instruction *instruction, int slot)
{
    const struct node *node = &in->program->graph->nodes[instruction->kernel.node];
    struct kernel_call call = {
        .node = node,
        .sizes = in->program->sizes,
        .accumulate = instruction->kernel.accumulate,
        .once = instruction->kernel.once,
        .targets = in->targets,
        .phase = instruction->kernel.phase,
    };
    if (instruction->kernel.workspace >= 0)
        call.workspace = address(in, instruction->kernel.workspace, slot);
    const struct piece *pieces = program_pieces(in->program, instruction);
    for (int i = 0; i < instruction->piece_count; i++) {
        int operand = pieces[i].operand;
        struct view view = view_of(in, &pieces[i], slot);
        if (operand < VIEWS_MAX)
            call.operand[operand] = view;
        else
            call.gradient[operand - VIEWS_MAX] = view;
    }
    const struct kernel *kernel = in->kernels[instruction->kernel.node];
    kernel->run[instruction->kernel.direction][instruction->kernel.phase](&call);
}

static int run_collective(struct interpreter *in, const struct instruction *instruction, int slot,
                          struct error *err)
{
    const struct collectives *c = in->config.collectives;
    struct fabric_group *group = in->groups[instruction->collective.group];
    const size_t *counts = &in->counts[instruction->collective.counts_first];
    float *source = floats(in, instruction, 0, slot);
    switch (instruction->collective.kind) {
    case COLLECTIVE_ALL_REDUCE:
        return c->all_reduce(group, source, count_of(in, instruction, 0),
                             instruction->collective.reduction, err);
    case COLLECTIVE_REDUCE_SCATTER:
        return c->reduce_scatter(group, source, floats(in, instruction, 1, slot), counts, err);
    case COLLECTIVE_ALL_GATHER:
        return c->all_gather(group, source, floats(in, instruction, 1, slot), counts, err);
    case COLLECTIVE_ALL_TO_ALL:
        return c->all_to_all(group, source, counts, floats(in, instruction, 1, slot),
                             counts + in->program->groups[instruction->collective.group].count,
                             err);
    }
    return 0;
}

/* The entry of a (peer, tag): made when the program was prepared. */
static struct sending *find_sending(struct interpreter *in, const struct instruction *instruction)
{
    for (size_t i = 0; i < in->sending_count; i++)
        if (in->sendings[i].peer == instruction->message.peer &&
            in->sendings[i].tag == instruction->message.tag)
            return &in->sendings[i];
    return NULL;
}

static int wait_for(struct interpreter *in, struct sending *sending, struct error *err)
{
    struct fabric_request *request = sending->request;
    sending->request = NULL;
    return request ? in->config.collectives->wait(in->config.fabric, request, err) : 0;
}

static int run_message(struct interpreter *in, const struct instruction *instruction, int slot,
                       struct error *err)
{
    const struct collectives *c = in->config.collectives;
    float *data = floats(in, instruction, 0, slot);
    size_t count = count_of(in, instruction, 0);
    if (instruction->kind == INSTRUCTION_RECEIVE)
        return c->receive(in->config.fabric, instruction->message.peer, instruction->message.tag,
                          data, count, err);
    struct sending *sending = find_sending(in, instruction);
    if (instruction->kind == INSTRUCTION_WAIT)
        return wait_for(in, sending, err);
    return c->send(in->config.fabric, sending->peer, sending->tag, data, count, &sending->request,
                   err);
}

static void load(struct interpreter *in, const struct instruction *instruction, int micro_batch,
                 int slot)
{
    const struct program *p = in->program;
    const struct piece *piece = program_pieces(p, instruction);
    uint64_t global = (uint64_t)(p->samples * p->micro_batches);
    uint64_t first = in->step * global + (uint64_t)(p->samples * micro_batch);
    bool targets = p->graph->tensors[p->buffers[piece->buffer].tensor].targets;
    in->config.feed->fill(in->config.feed->context, in->kind, first, &piece->box, targets,
                          view_of(in, piece, slot).data);
}

static void update(struct interpreter *in, const struct instruction *instruction)
{
    const struct parameter *parameter = &in->program->parameters[instruction->parameter];
    const struct optimizer *optimizer = &in->config.optimizer;
    const struct tensor *tensor = &in->program->graph->tensors[parameter->tensor];
    if (in->skipped)
        return;
    struct update_call call = {
        .parameter = (float *)(void *)address(in, parameter->master, 0),
        .gradient = floats(in, instruction, 0, 0),
        .first = (float *)(void *)address(in, parameter->first, 0),
        .second = (float *)(void *)address(in, parameter->second, 0),
        .count = (size_t)box_count(&parameter->box),
        .rate = (float)in->rate,
        .beta1 = (float)optimizer->beta1,
        .beta2 = (float)optimizer->beta2,
        .epsilon = (float)optimizer->epsilon,
        .decay = tensor->decays ? (float)optimizer->decay : 0,
        .clip = (float)in->scale,
        .step = in->step + 1,
    };
    in->config.device->update(&call);
}

static int run_instruction(struct interpreter *in, const struct program_cursor *cursor,
                           struct error *err)
{
    const struct instruction *instruction = cursor->instruction;
    const struct device *device = in->config.device;
    const struct piece *pieces = program_pieces(in->program, instruction);
    int slot = cursor->slot;
    struct view source, destination;
    switch (instruction->kind) {
    case INSTRUCTION_LOAD:
        load(in, instruction, cursor->micro_batch, slot);
        return 0;
    case INSTRUCTION_KERNEL:
        run_kernel(in, instruction, slot);
        return 0;
    case INSTRUCTION_COPY:
        source = view_of(in, &pieces[0], slot);
        destination = view_of(in, &pieces[1], slot);
        device->copy(&destination, &source, &instruction->part);
        return 0;
    case INSTRUCTION_ADD:
        device->add(floats(in, instruction, 1, slot), floats(in, instruction, 0, slot),
                    count_of(in, instruction, 0));
        return 0;
    case INSTRUCTION_CLEAR:
        device->fill(floats(in, instruction, 0, slot), count_of(in, instruction, 0), 0);
        return 0;
    case INSTRUCTION_COLLECTIVE:
        return run_collective(in, instruction, slot, err);
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
    case INSTRUCTION_RECEIVE:
        return run_message(in, instruction, slot, err);
    case INSTRUCTION_SQUARE_SUM:
        ((float *)(void *)address(in, in->program->metrics, 0))[METRIC_SQUARE_SUM] +=
            (float)device->square_sum(floats(in, instruction, 0, slot),
                                      count_of(in, instruction, 0));
        return 0;
    case INSTRUCTION_UPDATE:
        update(in, instruction);
        return 0;
    case INSTRUCTION_KINDS:
        break;
    }
    return 0;
}

/* After the metrics' all-reduce all ranks know the same sums. */
static void read_metrics(struct interpreter *in, struct step_result *out)
{
    const float *metrics = (const float *)(const void *)address(in, in->program->metrics, 0);
    out->loss = (double)metrics[METRIC_LOSS];
    out->norm = sqrt((double)metrics[METRIC_SQUARE_SUM]);
    out->skipped = in->kind == PROGRAM_TRAIN && !(isfinite(out->loss) && isfinite(out->norm));
    in->skipped = out->skipped;
    in->scale = optimizer_scale(&in->config.optimizer, out->norm);
}

int interpreter_run(struct interpreter *in, enum program_kind kind, uint64_t step,
                    struct step_result *out, struct error *err)
{
    const struct program *p = in->program;
    uint64_t global = (uint64_t)(p->samples * p->micro_batches);
    in->kind = kind;
    in->step = step;
    in->targets = in->config.feed->targets(in->config.feed->context, kind, step * global, global);
    in->rate = optimizer_rate(&in->config.optimizer, step);

    struct program_cursor cursor = {0};
    bool measured = false;
    double begin = now();
    while (program_next(p, kind, &cursor)) {
        int index = (int)(cursor.instruction - p->instructions);
        if (!measured && index >= p->sections[SECTION_UPDATE].first) {
            read_metrics(in, out);
            measured = true;
        }
        int rc = run_instruction(in, &cursor, err);
        if (rc < 0)
            return error_prefix(err, rc, "rank %d, step %llu, %s", p->rank,
                                (unsigned long long)step, instruction_name(p, cursor.instruction));
        double end = now();
        in->seconds[index] += end - begin;
        in->runs[index]++;
        begin = end;
    }
    if (!measured)
        read_metrics(in, out);
    return 0;
}

int interpreter_quiesce(struct interpreter *in, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < in->sending_count && rc == 0; i++)
        rc = wait_for(in, &in->sendings[i], err);
    return rc;
}

static void find_sendings(struct interpreter *in)
{
    size_t capacity = 0;
    for (size_t i = 0; i < in->program->instruction_count; i++) {
        const struct instruction *instruction = &in->program->instructions[i];
        if (instruction->kind != INSTRUCTION_SEND || find_sending(in, instruction))
            continue;
        in->sendings = grow(in->sendings, in->sending_count, &capacity, sizeof *in->sendings);
        in->sendings[in->sending_count++] =
            (struct sending){.peer = instruction->message.peer, .tag = instruction->message.tag};
    }
}

static int by_members(const void *a, const void *b, void *context)
{
    const struct group *groups = context, *first = &groups[*(const int *)a],
                       *second = &groups[*(const int *)b];
    for (int i = 0; i < first->count && i < second->count; i++)
        if (first->ranks[i] != second->ranks[i])
            return first->ranks[i] < second->ranks[i] ? -1 : 1;
    return first->count - second->count;
}

/* In the order of their members, which is the same on all ranks: forming a group waits for all
 * of them, and nobody may wait in a circle. */
static int form_groups(struct interpreter *in, struct error *err)
{
    const struct program *p = in->program;
    int *order = xcalloc(p->group_count, sizeof *order), rc = 0;
    for (size_t i = 0; i < p->group_count; i++)
        order[i] = (int)i;
    qsort_r(order, p->group_count, sizeof *order, by_members, p->groups);
    in->groups = xcalloc(p->group_count, sizeof *in->groups);
    for (size_t i = 0; i < p->group_count && rc == 0; i++) {
        const struct group *group = &p->groups[order[i]];
        if (group->count > 1)
            rc = in->config.collectives->group(in->config.fabric, group->ranks, group->count,
                                               &in->groups[order[i]], err);
    }
    free(order);
    return rc;
}

int interpreter_prepare(const struct program *program, const struct interpreter_config *config,
                        struct interpreter **out, struct error *err)
{
    struct interpreter *in = xcalloc(1, sizeof *in);
    in->program = program;
    in->config = *config;
    in->seconds = xcalloc(program->instruction_count, sizeof *in->seconds);
    in->runs = xcalloc(program->instruction_count, sizeof *in->runs);
    in->counts = xcalloc(program->counts_count, sizeof *in->counts);
    for (size_t i = 0; i < program->counts_count; i++)
        in->counts[i] = (size_t)program->counts[i];
    in->kernels = xcalloc(program->graph->node_count, sizeof *in->kernels);
    for (size_t n = 0; n < program->graph->node_count; n++)
        in->kernels[n] = device_kernel(config->device, program->graph->nodes[n].operation);
    find_sendings(in);
    int rc = arena_reserve(program->bytes, &in->arena, err);
    if (rc == 0 && config->poison)
        arena_poison(in->arena);
    if (rc == 0)
        rc = form_groups(in, err);
    if (rc < 0) {
        interpreter_release(in);
        return error_prefix(err, rc, "prepare rank %d", program->rank);
    }
    *out = in;
    return 0;
}

void interpreter_release(struct interpreter *in)
{
    if (!in)
        return;
    arena_release(in->arena);
    free(in->groups);
    free(in->counts);
    free(in->kernels);
    free(in->sendings);
    free(in->seconds);
    free(in->runs);
    free(in);
}

const struct program *interpreter_program(const struct interpreter *in)
{
    return in->program;
}

struct arena *interpreter_arena(struct interpreter *in)
{
    return in->arena;
}

void *interpreter_buffer(struct interpreter *in, int buffer)
{
    return address(in, buffer, 0);
}

const double *interpreter_seconds(const struct interpreter *in)
{
    return in->seconds;
}

const uint64_t *interpreter_runs(const struct interpreter *in)
{
    return in->runs;
}
