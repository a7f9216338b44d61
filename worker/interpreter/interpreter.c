/* interpreter.c - the life of an interpreter: memory, kernels, groups and channels are made ready;
 * the state is fetched from the device and stored there; and in the end it can outlive the process.
 */
#include "worker/interpreter/interpreter.h"

#include "common/base/memory.h"
#include "worker/interpreter/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sending *interpreter_sending(struct interpreter *in, const struct instruction *instruction)
{
    for (size_t i = 0; i < in->sending_count; i++)
        if (in->sendings[i].peer == instruction->message.peer &&
            in->sendings[i].tag == instruction->message.tag)
            return &in->sendings[i];
    return NULL;
}

static void find_sendings(struct interpreter *in)
{
    size_t capacity = 0;
    for (size_t i = 0; i < in->program->instruction_count; i++) {
        const struct instruction *instruction = &in->program->instructions[i];
        if (instruction->kind != INSTRUCTION_SEND || interpreter_sending(in, instruction))
            continue;
        in->sendings = grow(in->sendings, in->sending_count, &capacity, sizeof *in->sendings);
        in->sendings[in->sending_count++] =
            (struct sending){.peer = instruction->message.peer, .tag = instruction->message.tag};
    }
}

static int find_kernels(struct interpreter *in, struct error *err)
{
    const struct graph *graph = in->program->graph;
    in->kernels = xcalloc(graph->node_count, sizeof *in->kernels);
    for (size_t n = 0; n < graph->node_count; n++) {
        in->kernels[n] = device_kernel(in->config.device, graph->nodes[n].operation);
        if (!in->kernels[n])
            return error_set(err, -ENOSYS, "device %s has no kernel for operation %s",
                             in->config.device->name, graph->nodes[n].operation->name);
        if (!in->kernels[n]->check)
            continue;
        int rc = in->kernels[n]->check(&graph->nodes[n], err);
        if (rc < 0)
            return error_prefix(err, rc, "%s", graph->nodes[n].name);
    }
    return 0;
}

/* Let kernels prepare every call of the program, in every slot, and await what they issue. */
static int prepare_kernels(struct interpreter *in, struct error *err)
{
    const struct program *p = in->program;
    streams_enter(in->streams, QUEUE_COMPUTE);
    for (size_t i = 0; i < p->instruction_count; i++) {
        const struct instruction *instruction = &p->instructions[i];
        bool computes = instruction->kind == INSTRUCTION_KERNEL;
        const struct kernel *kernel = computes ? in->kernels[instruction->kernel.node] : NULL;
        for (int slot = 0; kernel && kernel->prepare && slot < p->slots; slot++) {
            const struct kernel_call call = interpreter_call(in, instruction, slot);
            kernel->prepare(&call, instruction->kernel.direction);
        }
    }
    int rc = streams_finish(in->streams, err);
    streams_leave(in->streams);
    return rc;
}

/* After the kernels have prepared, because what they left is not to be read either. */
static int poison(struct interpreter *in, struct error *err)
{
    arena_poison(in->arena);
    streams_enter(in->streams, QUEUE_COMPUTE);
    for (int region = 0; region < REGIONS; region++)
        arena_store(in->arena, (enum region)region, 0, in->program->bytes[region]);
    int rc = arena_finish(in->arena, err);
    streams_leave(in->streams);
    return rc;
}

/* ---- groups, and channels of messages ---- */

static int by_members(const void *a, const void *b, void *context)
{
    const struct group *groups = context, *first = &groups[*(const int *)a],
                       *second = &groups[*(const int *)b];
    for (int i = 0; i < first->count && i < second->count; i++)
        if (first->ranks[i] != second->ranks[i])
            return first->ranks[i] < second->ranks[i] ? -1 : 1;
    if (first->count != second->count)
        return first->count - second->count;
    return (int)first->queue - (int)second->queue;
}

/* Whether the program has an all-to-all in the group. */
static bool exchanges_all(const struct program *program, int group)
{
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind == INSTRUCTION_COLLECTIVE && instruction->collective.group == group &&
            instruction->collective.kind == COLLECTIVE_ALL_TO_ALL)
            return true;
    }
    return false;
}

static int form_group(struct interpreter *in, int index, struct error *err)
{
    const struct collectives *c = in->config.collectives;
    const struct group *group = &in->program->groups[index];
    if (group->count < 2)
        return 0;
    int rc = c->group(in->config.fabric, group->ranks, group->count, &in->groups[index], err);
    if (rc == 0 && c->acquaint && exchanges_all(in->program, index))
        rc = c->acquaint(in->groups[index], err);
    return rc;
}

/* Forming a group waits for all its members. All ranks form their groups in the same order, by
 * members and queue, so that no ranks wait for each other in a cycle. */
static int form_groups(struct interpreter *in, struct error *err)
{
    const struct program *p = in->program;
    int *order = xcalloc(p->group_count, sizeof *order), rc = 0;
    for (size_t i = 0; i < p->group_count; i++)
        order[i] = (int)i;
    qsort_r(order, p->group_count, sizeof *order, by_members, p->groups);
    in->groups = xcalloc(p->group_count, sizeof *in->groups);
    for (size_t i = 0; i < p->group_count && rc == 0; i++)
        rc = form_group(in, order[i], err);
    free(order);
    return rc;
}

static int by_ends(const void *a, const void *b)
{
    const struct message_ends *first = a, *second = b;
    if (first->from != second->from)
        return first->from - second->from;
    if (first->to != second->to)
        return first->to - second->to;
    return (first->tag > second->tag) - (first->tag < second->tag);
}

/* Opens each channel once, in the order of ends and tag, so that, as with groups, ranks cannot wait
 * in a cycle. */
static int open_channels(struct interpreter *in, struct error *err)
{
    const struct program *p = in->program;
    const struct collectives *c = in->config.collectives;
    if (!in->config.fabric || !c->channel)
        return 0;
    struct message_ends *ends = xcalloc(p->instruction_count, sizeof *ends);
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; i < p->instruction_count; i++) {
        const struct instruction *instruction = &p->instructions[i];
        int peer = instruction->message.peer;
        uint32_t tag = instruction->message.tag;
        if (instruction->kind == INSTRUCTION_SEND)
            ends[count++] = (struct message_ends){p->rank, peer, tag};
        else if (instruction->kind == INSTRUCTION_RECEIVE)
            ends[count++] = (struct message_ends){peer, p->rank, tag};
    }
    qsort(ends, count, sizeof *ends, by_ends);
    for (size_t i = 0; i < count && rc == 0; i++)
        if (i == 0 || by_ends(&ends[i - 1], &ends[i]) != 0)
            rc = c->channel(in->config.fabric, ends[i].from, ends[i].to, ends[i].tag, err);
    free(ends);
    return rc;
}

/* All are created before the first step, when no rank waits for anything else. */
static int form_groups_and_channels(struct interpreter *in, struct error *err)
{
    int rc = form_groups(in, err);
    return rc == 0 ? open_channels(in, err) : rc;
}

/* ---- beginning and end ---- */

int interpreter_prepare(const struct program *program, const struct interpreter_config *config,
                        struct interpreter **out, struct error *err)
{
    struct interpreter *in = xcalloc(1, sizeof *in);
    in->program = program;
    in->config = *config;
    in->seconds = xcalloc(program->instruction_count, sizeof *in->seconds);
    in->waited = xcalloc(program->instruction_count, sizeof *in->waited);
    in->runs = xcalloc(program->instruction_count, sizeof *in->runs);
    in->passed = xcalloc(program->instruction_count, sizeof *in->passed);
    in->stamp_count = program_step_count(program, PROGRAM_TRAIN);
    if (in->stamp_count > STAMPS_MAX)
        in->stamp_count = STAMPS_MAX;
    in->stamps = xcalloc(in->stamp_count, sizeof *in->stamps);
    in->counts = xcalloc(program->counts_count, sizeof *in->counts);
    for (size_t i = 0; i < program->counts_count; i++)
        in->counts[i] = (size_t)program->counts[i];
    in->slices = xcalloc(program->parameter_count, sizeof *in->slices);
    find_sendings(in);
    in->footprints = footprints_create(program, config->trail);
    int rc = find_kernels(in, err);
    if (rc == 0 && config->estate)
        rc = holding_create(config->estate, HOLDING_STATE, program->bytes[REGION_STATE],
                            program->parameter_count, &in->holding, err);
    if (rc == 0)
        rc = arena_reserve(program->bytes, in->holding ? holding_memory(in->holding) : NULL,
                           config->device->accelerator, &in->arena, err);
    if (rc == 0)
        rc = streams_open(program, config->device->accelerator, &in->streams, err);
    if (!config->one_by_one)
        in->recordings = recordings_open(program, config->device->accelerator);
    in->timed = !in->streams;
    if (rc == 0)
        rc = prepare_kernels(in, err);
    if (rc == 0 && config->poison)
        rc = poison(in, err);
    if (rc == 0)
        rc = form_groups_and_channels(in, err);
    if (rc == 0)
        rc = queues_start(in, &in->queues, err);
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
    queues_stop(in->queues);
    recordings_close(in->recordings);
    streams_close(in->streams);
    arena_release(in->arena);
    footprints_destroy(in->footprints);
    holding_release(in->holding);
    free(in->groups);
    free(in->counts);
    free(in->kernels);
    free(in->sendings);
    free(in->seconds);
    free(in->waited);
    free(in->runs);
    free(in->passed);
    free(in->stamps);
    free(in->slices);
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
    const struct buffer *b = &in->program->buffers[buffer];
    return arena_image(in->arena, b->region) + b->offset;
}

/* Either arena_fetch or arena_store. */
typedef void carry_fn(const struct arena *arena, enum region region, uint64_t offset,
                      uint64_t bytes);

/* In the lane that the thread has entered, which it leaves. */
static int carry(struct interpreter *in, carry_fn *way, const int *buffers, size_t count,
                 struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct buffer *b = &in->program->buffers[buffers[i]];
        way(in->arena, b->region, b->offset, b->bytes);
    }
    int rc = arena_finish(in->arena, err);
    streams_leave(in->streams);
    return rc;
}

int interpreter_fetch(struct interpreter *in, int buffer, struct error *err)
{
    streams_enter(in->streams, QUEUE_COMPUTE);
    return carry(in, arena_fetch, &buffer, 1, err);
}

static int carry_state(struct interpreter *in, carry_fn *way, struct error *err)
{
    size_t count = 0;
    int *buffers = xcalloc(3 * in->program->parameter_count, sizeof *buffers);
    for (size_t i = 0; i < in->program->parameter_count; i++) {
        const struct parameter *parameter = &in->program->parameters[i];
        buffers[count++] = parameter->master;
        buffers[count++] = parameter->first;
        buffers[count++] = parameter->second;
    }
    int rc = carry(in, way, buffers, count, err);
    free(buffers);
    return rc;
}

int interpreter_fetch_state(struct interpreter *in, struct error *err)
{
    streams_enter(in->streams, QUEUE_COMPUTE);
    return carry_state(in, arena_fetch, err);
}

int interpreter_store_state(struct interpreter *in, struct error *err)
{
    streams_enter(in->streams, QUEUE_COMPUTE);
    return carry_state(in, arena_store, err);
}

int interpreter_fetch_state_beside(struct interpreter *in, struct error *err)
{
    streams_enter_beside(in->streams);
    return carry_state(in, arena_fetch, err);
}

int interpreter_pin_state(struct interpreter *in, struct error *err)
{
    return arena_pin_state(in->arena, err);
}

const double *interpreter_seconds(const struct interpreter *in)
{
    return in->seconds;
}

const double *interpreter_waited(const struct interpreter *in)
{
    return in->waited;
}

const uint64_t *interpreter_runs(const struct interpreter *in)
{
    return in->runs;
}

const struct stamp *interpreter_stamps(const struct interpreter *in, size_t *count)
{
    *count = in->stamp_count;
    return in->stamps;
}

/* ---- what outlives the process ---- */

/* Offset of a buffer in the state region, where finished gradients lie too. */
static uint64_t place_of(const struct program *program, int buffer)
{
    assert(program->buffers[buffer].region == REGION_STATE);
    return program->buffers[buffer].offset;
}

/* With streams the image is stale as soon as the device runs, so it is withdrawn until it is
 * fetched. */
void interpreter_publish(struct interpreter *in, const struct standing *standing)
{
    const struct program *p = in->program;
    struct share *shares = xcalloc(p->parameter_count, sizeof *shares);
    for (size_t i = 0; i < p->parameter_count; i++) {
        const struct parameter *parameter = &p->parameters[i];
        const struct piece *gradient = &parameter->gradient;
        shares[i] = (struct share){
            .tensor = parameter->tensor,
            .box = parameter->box,
            .master = place_of(p, parameter->master),
            .first = place_of(p, parameter->first),
            .second = place_of(p, parameter->second),
            .gradient = place_of(p, gradient->buffer) + (uint64_t)gradient->offset * ELEMENT_BYTES,
        };
    }
    holding_describe(in->holding, shares, in->config.epoch);
    holding_publish(in->holding, standing);
    in->published = true;
    if (in->streams)
        holding_withdraw(in->holding);
    free(shares);
}

const struct standing *interpreter_standing(const struct interpreter *in)
{
    return holding_standing(in->holding);
}

/* Fetch the state from the device and offer it again; false if the device is lost, and the state
 * with it. */
static bool bring_state(struct interpreter *in)
{
    struct error ignored;
    if (!in->streams)
        return true;
    streams_enter(in->streams, QUEUE_COMPUTE);
    arena_fetch(in->arena, REGION_STATE, 0, in->program->bytes[REGION_STATE]);
    int rc = arena_finish(in->arena, &ignored);
    streams_leave(in->streams);
    if (rc == 0)
        holding_republish(in->holding);
    return rc == 0;
}

struct holding *interpreter_leave(struct interpreter *in)
{
    struct holding *holding = in->holding;
    if (!holding || !in->published || !bring_state(in))
        return NULL;
    in->holding = NULL;
    return holding;
}
