/* plantable.c - see plantable.h; the bytes are summed over the buffers of a lowered program. */
#include "coordinator/cli/tables/plantable.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/program/lower.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_SIZE 256

/* Sizes of the mesh's axes, the fastest first: "2x4". */
static const char *print_axes(char *out, const struct mesh *mesh)
{
    int used = snprintf(out, WORDS_SIZE, "%s", mesh->axes ? "" : "1");
    for (int i = 0; i < mesh->axes; i++)
        used +=
            snprintf(out + used, WORDS_SIZE - (size_t)used, "%s%d", i ? "x" : "", mesh->size[i]);
    return out;
}

static char *print_devices(const struct plan_stage *stage)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; stage->devices && i < mesh_count(&stage->mesh); i++)
        fprintf(out, "%s%s", i ? " " : "", stage->devices[i]);
    fclose(out);
    return text;
}

static void print_stages(const struct common *common, const struct planned *planned, FILE *out)
{
    static const struct column columns[] = {{"STAGE", .right = true},
                                            {"RANKS", .right = true},
                                            {"AXES"},
                                            {"BLOCKS"},
                                            {"TIME", .right = true},
                                            {"MEMORY", .right = true},
                                            {"DEVICES", .wide = true}};
    const struct plan *plan = planned->plan;
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    char words[WORDS_SIZE];
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        int first = plan_stage_rank(plan, i), last = first + mesh_count(&stage->mesh) - 1;
        const struct block *blocks = &planned->graph->blocks[stage->block_first];
        char *devices = print_devices(stage);
        table_add(table, "%d", i);
        table_add(table, last > first ? "%d-%d" : "%d", first, last);
        table_add(table, "%s", print_axes(words, &stage->mesh));
        table_add(table, stage->block_count > 1 ? "%s..%s" : "%s", blocks[0].name,
                  blocks[stage->block_count - 1].name);
        if (stage->time_s > 0)
            table_add(table, "%.2f ms", stage->time_s * 1e3);
        else
            table_add(table, "%s", "");
        table_add(table, "%s",
                  stage->memory_bytes
                      ? units_print_bytes(words, sizeof words, (double)stage->memory_bytes)
                      : "");
        table_add(table, "%s", devices);
        free(devices);
    }
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}

/* What a rank keeps of a block between steps, and between a micro-batch's passes. */
struct block_bytes {
    uint64_t stored, saved;
};

static void sum_blocks(const struct program *program, struct block_bytes *blocks)
{
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        int64_t own = box_count(&parameter->box), gradient = box_count(&parameter->gradient.box);
        blocks[program->graph->tensors[parameter->tensor].block].stored +=
            (uint64_t)(3 * own + gradient) * ELEMENT_BYTES;
    }
    for (size_t i = 0; i < program->buffer_count; i++) {
        const struct buffer *buffer = &program->buffers[i];
        if (buffer->block >= 0 && buffer->region == REGION_SAVED)
            blocks[buffer->block].saved += buffer->bytes * (uint64_t)program->slots;
    }
}

static const char *print_roles(char *out, const struct plan *plan, int block)
{
    const struct plan_block *chosen = &plan->blocks[block];
    int axes = plan->stages[chosen->stage].mesh.axes, used = 0;
    out[0] = '\0';
    for (int i = 0; i < axes; i++)
        used += snprintf(out + used, WORDS_SIZE - (size_t)used, "%s%s", i ? " " : "",
                         chosen->roles[i]->name);
    return out;
}

static void print_blocks(const struct common *common, const struct planned *planned,
                         const struct block_bytes *blocks, FILE *out)
{
    static const struct column columns[] = {{"BLOCK"},
                                            {"STAGE", .right = true},
                                            {"ROLES"},
                                            {"ZERO", .right = true},
                                            {"RECOMPUTE"},
                                            {"STORED", .right = true},
                                            {"SAVED", .right = true}};
    const struct plan *plan = planned->plan;
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    char words[WORDS_SIZE];
    for (int i = 0; i < plan->block_count; i++) {
        table_add(table, "%s", planned->graph->blocks[i].name);
        table_add(table, "%d", plan->blocks[i].stage);
        table_add(table, "%s", print_roles(words, plan, i));
        table_add(table, "%d", plan->blocks[i].zero);
        table_add(table, "%s", recompute_names[plan->blocks[i].recompute]);
        table_add(table, "%s", units_print_bytes(words, sizeof words, (double)blocks[i].stored));
        table_add(table, "%s", units_print_bytes(words, sizeof words, (double)blocks[i].saved));
    }
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}

static int sum_stages(const struct planned *planned, struct block_bytes *blocks, struct error *err)
{
    for (int i = 0; i < planned->plan->stage_count; i++) {
        struct program *program;
        int rc =
            lower(planned->graph, planned->plan, plan_stage_rank(planned->plan, i), &program, err);
        if (rc < 0)
            return rc;
        sum_blocks(program, blocks);
        program_destroy(program);
    }
    return 0;
}

int plantable_print(const struct common *common, const struct planned *planned, FILE *out,
                    struct error *err)
{
    const struct plan *plan = planned->plan;
    struct block_bytes *blocks = xcalloc((size_t)plan->block_count, sizeof *blocks);
    char words[WORDS_SIZE], size[32];
    int rc = sum_stages(planned, blocks, err);
    if (rc == 0) {
        fprintf(out, "%s: %s, %lld samples a step", plan->id, plan_print(words, sizeof words, plan),
                (long long)plan_global_batch(plan));
        if (plan->predicted.step_time_s > 0)
            fprintf(out, "; predicted %.2f ms a step, %.0f tok/s, %s",
                    plan->predicted.step_time_s * 1e3, plan->predicted.tokens_per_s,
                    units_print_bytes(size, sizeof size, (double)plan->predicted.memory_bytes_max));
        fputs("\n\n", out);
        print_stages(common, planned, out);
        fputc('\n', out);
        print_blocks(common, planned, blocks, out);
    }
    free(blocks);
    return rc;
}
