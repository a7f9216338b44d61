/* explain.c - prices the instructions of a step and attributes them to their blocks.
 *
 * Which block an instruction or a buffer belongs to is known of forward and backward. From weights,
 * gradients and moments on it is propagated along the instructions that move them: the reduction of
 * a gradient belongs to the block that owns the weight, and so does what carries a weight to where
 * it is used. */
#include "coordinator/planner/explain.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double matmul_bound(double first, double second, double third, int devices)
{
    double m = fmax(first, fmax(second, third)), k = fmin(first, fmin(second, third));
    double n = first + second + third - m - k, p = devices, touched;
    if (p <= m / n)
        touched = (m * n + m * k) / p + n * k;
    else if (p <= m * n / (k * k))
        touched = m * n / p + 2 * sqrt(m * n * k * k / p);
    else
        touched = 3 * pow(m * n * k / p, 2.0 / 3);
    return fmax(0, touched - (m * n + m * k + n * k) / p);
}

struct product {
    int input; /* tensor */
    double rows, inner, columns;
};

/* false: the node is not a product with one of the block's own weights. */
static bool find_product(const struct graph *graph, const struct node *node, int64_t samples,
                         struct product *out)
{
    const struct operation *operation = node->operation;
    int owned = node->operands[operation->input_count];
    if (operation->flops != operation_matmul_flops || operation->weight_count == 0 ||
        graph->tensors[owned].block != node->block)
        return false;
    struct sizes sizes = node->sizes;
    sizes_set(&sizes, 'b', samples);
    const char *input = node->dims[0], *weight = node->dims[operation->input_count];
    *out = (struct product){node->operands[0], 1, 1, 1};
    for (const char *dim = input; *dim; dim++)
        *(strchr(weight, *dim) ? &out->inner : &out->rows) *= (double)sizes_get(&sizes, *dim);
    for (const char *dim = weight; *dim; dim++)
        if (!strchr(input, *dim))
            out->columns *= (double)sizes_get(&sizes, *dim);
    return true;
}

/* Words for a block in a step of this many samples: of each of its products the forward one and
 * that of the weight's gradient, each counted separately. Products that read the same input count
 * as one; the product of the input's gradient needs no more than what the other two have brought. A
 * product with another block's weight is left out, since that block moves it. 0: it has no
 * product. */
static double matmul_least(const struct graph *graph, int block, int64_t samples, int devices)
{
    const struct block *of = &graph->blocks[block];
    struct product joined = {.input = -1}, one;
    double words = 0;
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        if (!find_product(graph, &graph->nodes[n], samples, &one))
            continue;
        if (one.input == joined.input) {
            joined.columns += one.columns;
            continue;
        }
        if (joined.input >= 0)
            words += matmul_bound(joined.rows, joined.inner, joined.columns, devices);
        joined = one;
    }
    if (joined.input >= 0)
        words += matmul_bound(joined.rows, joined.inner, joined.columns, devices);
    return 2 * words;
}

/* The block of each buffer and instruction; -1: it belongs to none in particular. */
struct belonging {
    int *buffers, *instructions;
};

static void belonging_begin(struct belonging *belonging, const struct program *program)
{
    for (size_t i = 0; i < program->buffer_count; i++)
        belonging->buffers[i] = program->buffers[i].block;
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        int block = program->graph->tensors[parameter->tensor].block;
        int *of = belonging->buffers;
        of[parameter->master] = of[parameter->first] = of[parameter->second] = block;
        if (parameter->gradient.buffer >= 0)
            of[parameter->gradient.buffer] = block;
    }
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        bool parameter =
            instruction->kind == INSTRUCTION_UPDATE || instruction->kind == INSTRUCTION_SQUARE_SUM;
        belonging->instructions[i] = instruction->block;
        if (instruction->block < 0 && parameter)
            belonging->instructions[i] =
                program->graph->tensors[program->parameters[instruction->parameter].tensor].block;
    }
}

/* An instruction that touches a block's buffer belongs to the block, and so does everything else
 * that it touches. Returns whether anything new became known. */
static bool belonging_spread(struct belonging *belonging, const struct program *program, int index)
{
    const struct instruction *instruction = &program->instructions[index];
    const struct piece *pieces = program_pieces(program, instruction);
    int block = -1;
    bool news = false;
    if (belonging->instructions[index] >= 0)
        return false;
    for (int i = 0; i < instruction->piece_count && block < 0; i++)
        block = pieces[i].buffer < 0 ? -1 : belonging->buffers[pieces[i].buffer];
    if (block < 0)
        return false;
    belonging->instructions[index] = block;
    for (int i = 0; i < instruction->piece_count; i++) {
        if (pieces[i].buffer < 0 || belonging->buffers[pieces[i].buffer] >= 0)
            continue;
        belonging->buffers[pieces[i].buffer] = block;
        news = true;
    }
    return news;
}

static void belonging_init(struct belonging *belonging, const struct program *program)
{
    *belonging = (struct belonging){
        .buffers = xcalloc(program->buffer_count, sizeof *belonging->buffers),
        .instructions = xcalloc(program->instruction_count, sizeof *belonging->instructions),
    };
    belonging_begin(belonging, program);
    for (bool news = true; news;) {
        news = false;
        for (int i = 0; i < (int)program->instruction_count; i++)
            news = belonging_spread(belonging, program, i) || news;
    }
}

static void belonging_finish(struct belonging *belonging)
{
    free(belonging->buffers);
    free(belonging->instructions);
    *belonging = (struct belonging){0};
}

static struct explain_seconds *explain_part(struct explained *explained, int section)
{
    return section == SECTION_FORWARD    ? &explained->forward
           : section == SECTION_BACKWARD ? &explained->backward
                                         : &explained->once;
}

/* The time of a message counts for its receiver, the bytes for its sender. */
static void add_instruction(const struct pricing *pricing, const struct program *program,
                            const struct instruction *instruction, int section,
                            struct explained *to)
{
    struct explain_seconds *seconds = explain_part(to, section);
    bool collective = instruction->kind == INSTRUCTION_COLLECTIVE;
    bool message =
        instruction->kind == INSTRUCTION_SEND || instruction->kind == INSTRUCTION_RECEIVE;
    bool far = (collective || message) && !pricing_on_one_host(pricing, program, instruction);
    double price = pricing_seconds(pricing, program, instruction);
    if (!collective && !message)
        seconds->compute += price;
    else
        *(far ? &seconds->network : &seconds->host) += price;
    bool repeats = section == SECTION_FORWARD || section == SECTION_BACKWARD;
    *(far ? &to->network_bytes : &to->host_bytes) +=
        instruction_sent_bytes(program, instruction) * (repeats ? program->micro_batches : 1);
}

static void add_bytes(const struct program *program, const int *of, struct explained *blocks,
                      struct explained *rest)
{
    for (size_t i = 0; i < program->buffer_count; i++) {
        const struct buffer *buffer = &program->buffers[i];
        struct explained *to = of[i] < 0 ? rest : &blocks[of[i]];
        if (buffer->region == REGION_STATE)
            to->state_bytes += buffer->bytes;
        if (buffer->region == REGION_SAVED)
            to->saved_bytes += buffer->bytes * (uint64_t)program->slots;
    }
}

void explain_bytes(const struct program *program, struct explained *blocks, struct explained *rest)
{
    struct belonging belonging;
    belonging_init(&belonging, program);
    add_bytes(program, belonging.buffers, blocks, rest);
    belonging_finish(&belonging);
}

static void add_program(const struct pricing *pricing, const struct program *program,
                        struct explained *blocks, struct explained *rest)
{
    struct belonging belonging;
    belonging_init(&belonging, program);
    for (int section = 0; section < SECTIONS; section++) {
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++) {
            const struct instruction *instruction = &program->instructions[i];
            int block = belonging.instructions[i];
            add_instruction(pricing, program, instruction, section,
                            block < 0 ? rest : &blocks[block]);
        }
    }
    add_bytes(program, belonging.buffers, blocks, rest);
    belonging_finish(&belonging);
}

/* The program of the stage's slowest rank, owned by the caller. */
static int find_slowest(const struct planner_request *request, const struct plan *plan, int stage,
                        const struct pricing *pricing, struct program **out, struct error *err)
{
    int first = plan_stage_rank(plan, stage), rc = 0;
    int end = first + mesh_count(&plan->stages[stage].mesh);
    double longest = -1;
    *out = NULL;
    for (int rank = first; rank < end && rc == 0; rank++) {
        struct program *program;
        rc = lower(request->graph, plan, rank, &program, err);
        if (rc < 0)
            break;
        double seconds = pricing_micro_batch(pricing, program);
        if (seconds > longest) {
            struct program *shorter = *out;
            *out = program;
            program = shorter;
            longest = seconds;
        }
        program_destroy(program);
    }
    return rc;
}

int explain_plan(const struct planner_request *request, const struct plan *plan,
                 struct explanation *out, struct error *err)
{
    struct pricing pricing = pricing_plain(request);
    size_t stages = (size_t)plan->stage_count;
    int rc = 0;
    *out = (struct explanation){
        .blocks = xcalloc((size_t)plan->block_count, sizeof *out->blocks),
        .rest = xcalloc(stages, sizeof *out->rest),
        .other_bytes = xcalloc(stages, sizeof *out->other_bytes),
        .ranks = xcalloc(stages, sizeof *out->ranks),
        .block_count = plan->block_count,
        .stage_count = plan->stage_count,
    };
    for (int stage = 0; stage < plan->stage_count && rc == 0; stage++) {
        struct program *program;
        rc = find_slowest(request, plan, stage, &pricing, &program, err);
        if (program) {
            add_program(&pricing, program, out->blocks, &out->rest[stage]);
            out->ranks[stage] = program->rank;
            out->other_bytes[stage] =
                program->bytes[REGION_TRANSIENT] + program->bytes[REGION_COMMUNICATION];
        }
        program_destroy(program);
    }
    for (int b = 0; b < plan->block_count && rc == 0; b++)
        out->blocks[b].least_bytes =
            request->graph->element_bytes *
            matmul_least(request->graph, b, plan_global_batch(plan),
                         mesh_count(&plan->stages[plan->blocks[b].stage].mesh));
    return rc;
}

void explanation_finish(struct explanation *explanation)
{
    free(explanation->blocks);
    free(explanation->rest);
    free(explanation->other_bytes);
    free(explanation->ranks);
    *explanation = (struct explanation){0};
}

struct explain_seconds explained_step(const struct explained *explained, int micro_batches)
{
    const struct explain_seconds *forward = &explained->forward, *backward = &explained->backward;
    const struct explain_seconds *once = &explained->once;
    return (struct explain_seconds){
        .compute = micro_batches * (forward->compute + backward->compute) + once->compute,
        .host = micro_batches * (forward->host + backward->host) + once->host,
        .network = micro_batches * (forward->network + backward->network) + once->network,
    };
}

double explained_distance(const struct explained *explained)
{
    double sent = explained->host_bytes + explained->network_bytes;
    return explained->least_bytes > 0 ? sent / explained->least_bytes : 0;
}

struct explain_seconds explanation_stage(const struct explanation *explanation,
                                         const struct plan *plan, int stage)
{
    struct explain_seconds sum = explained_step(&explanation->rest[stage], plan->micro_batches);
    for (int b = 0; b < explanation->block_count; b++) {
        if (plan->blocks[b].stage != stage)
            continue;
        struct explain_seconds more = explained_step(&explanation->blocks[b], plan->micro_batches);
        sum.compute += more.compute;
        sum.host += more.host;
        sum.network += more.network;
    }
    return sum;
}

const char *explain_bound(const struct explain_seconds *seconds)
{
    if (seconds->compute >= seconds->host && seconds->compute >= seconds->network)
        return "compute";
    return seconds->host >= seconds->network ? "host links" : "network";
}
