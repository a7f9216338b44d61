/* step.c - executes a step, instruction by instruction. Kernels run on the calling thread or in its
 * stream. Of what needs other ranks collectives and receives block; a send returns at once, and its
 * WAIT instruction comes where its buffer is needed again. */
#include "worker/interpreter/internal.h"

#include "common/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* Where a buffer lies in device memory, in a slot. */
static char *address_of(const struct interpreter *in, int buffer, int slot)
{
    const struct buffer *b = &in->program->buffers[buffer];
    char *base = arena_region(in->arena, b->region) + b->offset;
    return b->region == REGION_SAVED ? base + (uint64_t)slot * in->program->slot_bytes : base;
}

static struct view view_of(const struct interpreter *in, const struct piece *piece, int slot)
{
    struct view view = {.box = piece->box};
    if (piece->buffer < 0)
        return view;
    const struct buffer *buffer = &in->program->buffers[piece->buffer];
    view.element = element_of_size(buffer->element_bytes);
    view.data = address_of(in, piece->buffer, slot) + piece->offset * buffer->element_bytes;
    return view;
}

struct view interpreter_view(const struct interpreter *in, const struct instruction *instruction,
                             int index, int slot)
{
    return view_of(in, &program_pieces(in->program, instruction)[index], slot);
}

struct kernel_call interpreter_call(const struct interpreter *in,
                                    const struct instruction *instruction, int slot)
{
    const struct node *node = &in->program->graph->nodes[instruction->kernel.node];
    struct kernel_call call = {
        .node = node,
        .element = element_of_size(in->program->graph->element_bytes),
        .accumulate = instruction->kernel.accumulate,
        .once = instruction->kernel.once,
        .targets = in->targets,
        .phase = instruction->kernel.phase,
    };
    if (instruction->kernel.workspace >= 0)
        call.workspace = address_of(in, instruction->kernel.workspace, slot);
    const struct piece *pieces = program_pieces(in->program, instruction);
    for (int i = 0; i < instruction->piece_count; i++) {
        int operand = pieces[i].operand;
        struct view view = view_of(in, &pieces[i], slot);
        if (operand < VIEWS_MAX)
            call.operand[operand] = view;
        else
            call.gradient[operand - VIEWS_MAX] = view;
    }
    return call;
}

static void step_kernel(struct interpreter *in, const struct instruction *instruction, int slot)
{
    const struct kernel_call call = interpreter_call(in, instruction, slot);
    const struct kernel *kernel = in->kernels[instruction->kernel.node];
    kernel->run[instruction->kernel.direction][instruction->kernel.phase](&call);
}

/* Read the samples of a micro-batch. With streams they go through staging memory, so that the host
 * need not wait for the copy. */
static void step_load(struct interpreter *in, const struct instruction *instruction,
                      int micro_batch, int slot)
{
    const struct program *p = in->program;
    const struct piece *piece = program_pieces(p, instruction);
    uint64_t global = (uint64_t)(p->samples * p->micro_batches);
    uint64_t first = in->step * global + (uint64_t)(p->samples * micro_batch);
    const struct tensor *tensor = &p->graph->tensors[p->buffers[piece->buffer].tensor];
    size_t bytes = (size_t)box_count(&piece->box) * ELEMENT_BYTES;
    void *place = view_of(in, piece, slot).data;
    void *stage = in->streams ? streams_stage(in->streams, bytes) : place;
    in->config.feed->fill(in->config.feed->context, in->kind, first, tensor, &piece->box, stage);
    if (in->streams)
        in->config.device->accelerator->upload(place, stage, bytes);
}

/* Without streams, a published share is updated piece by piece, under its journal. With streams all
 * updates of a step are collected and given to the device with the last one, since nothing else in
 * the step waits for them. */
static void step_update(struct interpreter *in, const struct instruction *instruction)
{
    const struct parameter *parameter = &in->program->parameters[instruction->parameter];
    const struct update_rule rule = {in->config.device, &in->config.optimizer, in->program->graph};
    if (in->holding && !in->streams) {
        update_share(&rule, &in->update, in->holding, (size_t)instruction->parameter);
        return;
    }
    const struct update_slice slice = {
        .tensor = parameter->tensor,
        .parameter = (float *)(void *)address_of(in, parameter->master, 0),
        .gradient = interpreter_view(in, instruction, 0, 0).data,
        .first = (float *)(void *)address_of(in, parameter->first, 0),
        .second = (float *)(void *)address_of(in, parameter->second, 0),
        .count = (size_t)box_count(&parameter->box),
    };
    bool last = (size_t)instruction->parameter + 1 == in->program->parameter_count;
    in->slices[in->slice_count++] = slice;
    if (in->streams && !last)
        return;
    update_slices(&rule, &in->update, in->slices, in->slice_count);
    in->slice_count = 0;
    if (in->holding && in->measured)
        holding_end_share(in->holding, (size_t)instruction->parameter);
}

static float *metrics_of(const struct interpreter *in)
{
    return (float *)(void *)address_of(in, in->program->metrics, 0);
}

float *interpreter_square_sum(const struct interpreter *in)
{
    return &metrics_of(in)[METRIC_SQUARE_SUM];
}

/* The buffers that a reduce-scatter or all-gather moves, in the order that all members use. */
static void collect_parts(const struct interpreter *in, const struct instruction *instruction,
                          int slot, struct collective_part *parts)
{
    const struct group *group = &in->program->groups[instruction->collective.group];
    const size_t *counts = &in->counts[instruction->collective.counts_first];
    for (int i = 0; i < collective_parts(instruction); i++)
        parts[i] = (struct collective_part){
            .source = interpreter_view(in, instruction, 2 * i, slot).data,
            .destination = interpreter_view(in, instruction, 2 * i + 1, slot).data,
            .counts = counts + (size_t)i * (size_t)group->count,
        };
}

static int step_collective(struct interpreter *in, const struct instruction *instruction, int slot,
                           struct error *err)
{
    const struct collectives *c = in->config.collectives;
    struct fabric_group *group = in->groups[instruction->collective.group];
    const size_t *counts = &in->counts[instruction->collective.counts_first];
    struct view source = interpreter_view(in, instruction, 0, slot);
    struct collective_part parts[COLLECTIVE_PARTS_MAX] = {0};
    if (instruction->collective.kind != COLLECTIVE_ALL_REDUCE)
        collect_parts(in, instruction, slot, parts);
    switch (instruction->collective.kind) {
    case COLLECTIVE_ALL_REDUCE:
        return c->all_reduce(group, source.element, source.data, view_elements(&source),
                             instruction->collective.reduction, err);
    case COLLECTIVE_REDUCE_SCATTER:
        return c->reduce_scatter(group, source.element, parts, collective_parts(instruction), err);
    case COLLECTIVE_ALL_GATHER:
        return c->all_gather(group, source.element, parts, collective_parts(instruction), err);
    case COLLECTIVE_ALL_TO_ALL:
        return c->all_to_all(group, source.element, source.data, counts, parts[0].destination,
                             counts + in->program->groups[instruction->collective.group].count,
                             err);
    }
    return 0;
}

static int wait_for_sent(struct interpreter *in, struct sending *sending, struct error *err)
{
    struct fabric_request *request = sending->request;
    sending->request = NULL;
    return request ? in->config.collectives->wait(in->config.fabric, request, err) : 0;
}

static int step_message(struct interpreter *in, const struct instruction *instruction, int slot,
                        struct error *err)
{
    const struct collectives *c = in->config.collectives;
    struct view view = interpreter_view(in, instruction, 0, slot);
    if (instruction->kind == INSTRUCTION_RECEIVE)
        return c->receive(in->config.fabric, instruction->message.peer, instruction->message.tag,
                          view.element, view.data, view_elements(&view), err);
    struct sending *sending = interpreter_sending(in, instruction);
    if (instruction->kind == INSTRUCTION_WAIT)
        return wait_for_sent(in, sending, err);
    return c->send(in->config.fabric, sending->peer, sending->tag, view.element, view.data,
                   view_elements(&view), &sending->request, err);
}

int interpreter_check(const struct interpreter *in, struct error *err)
{
    const struct collectives *c = in->config.collectives;
    return in->config.fabric && c->check ? c->check(in->config.fabric, err) : 0;
}

int interpreter_quiesce(struct interpreter *in, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < in->sending_count && rc == 0; i++)
        rc = wait_for_sent(in, &in->sendings[i], err);
    return rc;
}

int interpreter_execute(struct interpreter *in, const struct program_cursor *cursor,
                        struct error *err)
{
    const struct instruction *instruction = cursor->instruction;
    const struct device *device = in->config.device;
    const struct piece *pieces = program_pieces(in->program, instruction);
    int slot = cursor->slot;
    struct view source, destination;
    switch (instruction->kind) {
    case INSTRUCTION_LOAD:
        step_load(in, instruction, cursor->micro_batch, slot);
        return 0;
    case INSTRUCTION_KERNEL:
        step_kernel(in, instruction, slot);
        return 0;
    case INSTRUCTION_COPY:
        source = view_of(in, &pieces[0], slot);
        destination = view_of(in, &pieces[1], slot);
        device->copy(&destination, &source, &instruction->part);
        return 0;
    case INSTRUCTION_ADD:
        source = view_of(in, &pieces[0], slot);
        destination = view_of(in, &pieces[1], slot);
        device->add(&destination, &source);
        return 0;
    case INSTRUCTION_CLEAR:
        destination = view_of(in, &pieces[0], slot);
        device->clear(destination.data,
                      view_elements(&destination) * element_size(destination.element));
        return 0;
    case INSTRUCTION_COLLECTIVE:
        return step_collective(in, instruction, slot, err);
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
    case INSTRUCTION_RECEIVE:
        return step_message(in, instruction, slot, err);
    case INSTRUCTION_SQUARE_SUM:
        source = view_of(in, &pieces[0], slot);
        device->square_sum(source.data, view_elements(&source), interpreter_square_sum(in));
        return 0;
    case INSTRUCTION_UPDATE:
        step_update(in, instruction);
        return 0;
    case INSTRUCTION_KINDS:
        break;
    }
    return 0;
}

/* After the all-reduce of the metrics all ranks know the same sums. */
static void read_metrics(struct interpreter *in)
{
    const float *metrics = interpreter_buffer(in, in->program->metrics);
    struct step_result *out = &in->result;
    in->update = update_step_of(&in->config.optimizer, in->step, metrics);
    out->loss = in->update.loss;
    out->norm = in->update.norm;
    out->skipped = in->kind == PROGRAM_TRAIN && in->update.skipped;
    out->pause = metrics[METRIC_PAUSE] > 0;
    out->stop = metrics[METRIC_STOP] > 0;
    out->save = metrics[METRIC_SAVE] > 0;
    in->measured = true;
    if (in->kind == PROGRAM_TRAIN && in->holding)
        holding_apply(in->holding, metrics);
}

/* Add this rank's wishes to the metrics, which were cleared when the step began. */
static void tell_wishes(struct interpreter *in)
{
    float *wishes = (float *)interpreter_buffer(in, in->program->metrics) + METRIC_PAUSE;
    wishes[0] = in->wishes.pause ? 1 : 0;
    wishes[METRIC_STOP - METRIC_PAUSE] = in->wishes.stop ? 1 : 0;
    wishes[METRIC_SAVE - METRIC_PAUSE] = in->wishes.save ? 1 : 0;
    if (in->streams)
        in->config.device->accelerator->upload(metrics_of(in) + METRIC_PAUSE, wishes,
                                               (METRIC_SAVE - METRIC_PAUSE + 1) * sizeof *wishes);
    in->wished = true;
}

/* Before the update. A rank without peers lets the device read the metrics in place. With peers the
 * lane is waited for, because an exchange that was broken off leaves invalid metrics, and an update
 * from those would corrupt the state. */
static int step_measure(struct interpreter *in, struct error *err)
{
    const struct buffer *metrics = &in->program->buffers[in->program->metrics];
    if (in->streams && !in->config.fabric) {
        in->update = update_step_unseen(&in->config.optimizer, in->step, metrics_of(in));
        return 0;
    }
    arena_fetch(in->arena, metrics->region, metrics->offset, metrics->bytes);
    int rc = arena_finish(in->arena, err);
    if (rc == 0)
        rc = interpreter_check(in, err);
    if (rc < 0)
        return rc;
    read_metrics(in);
    in->update.metrics = metrics_of(in);
    return 0;
}

/* Before the exchange of the metrics. */
static int let_commit(struct interpreter *in, bool *held, struct error *err)
{
    const struct interpreter_config *config = &in->config;
    if (!config->commits_cb)
        return 0;
    footprints_await(in->footprints, QUEUE_COMPUTE, TRAIL_COPIES, in->step, clock_s());
    *held = true;
    return config->commits_cb(config->commits_context, err);
}

int interpreter_reach(struct interpreter *in, int index, bool *held, struct error *err)
{
    bool metrics = index >= in->program->sections[SECTION_METRICS].first;
    if (!in->armed && metrics) {
        int rc = let_commit(in, held, err);
        if (rc < 0)
            return rc;
    }
    if (!in->wished && metrics)
        tell_wishes(in);
    if (!in->armed && metrics) {
        if (in->holding)
            holding_arm(in->holding);
        in->armed = true;
    }
    if (in->measured || index < in->program->sections[SECTION_UPDATE].first)
        return 0;
    return step_measure(in, err);
}

int interpreter_run(struct interpreter *in, enum program_kind kind, uint64_t step,
                    struct step_result *out, struct error *err)
{
    const struct program *p = in->program;
    uint64_t global = (uint64_t)(p->samples * p->micro_batches);
    in->kind = kind;
    in->step = step;
    in->targets = in->config.feed->targets(in->config.feed->context, kind, step * global, global);
    in->wished = false;
    in->armed = kind != PROGRAM_TRAIN;
    in->measured = false;
    in->slice_count = 0;
    streams_begin(in->streams);
    int rc = queues_run(in->queues, kind, err);
    if (rc == 0)
        rc = interpreter_fetch(in, p->metrics, err);
    if (rc < 0)
        return rc;
    if (!in->measured)
        read_metrics(in);
    if (kind == PROGRAM_TRAIN && in->holding)
        holding_applied(in->holding);
    *out = in->result;
    return 0;
}

void interpreter_time(struct interpreter *in, bool timed)
{
    in->timed = timed || !in->streams;
}

void interpreter_wish(struct interpreter *in, const struct step_wishes *wishes)
{
    in->wishes = *wishes;
}
