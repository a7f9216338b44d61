/* explain.c - prices the instructions of a step and attributes them to their blocks. */
#include "coordinator/planner/report/explain.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/report/belonging.h"
#include "coordinator/planner/report/matmul_bound.h"

#include <stdlib.h>

static struct explain_seconds *part_of(struct explained *explained, int section)
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
    struct explain_seconds *seconds = part_of(to, section);
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

static double micro_batch_seconds(const struct pricing *pricing, const struct program *program)
{
    double seconds = 0;
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            seconds += pricing_seconds(pricing, program, &program->instructions[i]);
    }
    return seconds;
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
        double seconds = micro_batch_seconds(pricing, program);
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
            matmul_bound_block(request->graph, b, plan_global_batch(plan),
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
