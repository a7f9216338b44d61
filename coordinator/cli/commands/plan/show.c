/* show.c - `gimbal plan show`: a plan as tables, its stages and what each block occupies; as it is
 * saved; or the program that it gives to a rank. And `gimbal plan trace`: a step as the plan's
 * simulation sees it, for a viewer. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/perfetto.h"
#include "coordinator/cli/planned.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/program/lower.h"
#include "coordinator/planner/explain.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_SIZE 256

/* Sizes of the mesh's axes, the fastest first: "2x4". */
static const char *plantable_print_axes(char *out, const struct mesh *mesh)
{
    int used = snprintf(out, WORDS_SIZE, "%s", mesh->axes ? "" : "1");
    for (int i = 0; i < mesh->axes; i++)
        used +=
            snprintf(out + used, WORDS_SIZE - (size_t)used, "%s%d", i ? "x" : "", mesh->size[i]);
    return out;
}

static char *plantable_print_devices(const struct plan_stage *stage)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; stage->devices && i < mesh_count(&stage->mesh); i++)
        fprintf(out, "%s%s", i ? " " : "", stage->devices[i]);
    fclose(out);
    return text;
}

static void plantable_print_stages(const struct common *common, const struct planned *planned,
                                   FILE *out)
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
        char *devices = plantable_print_devices(stage);
        table_add(table, "%d", i);
        table_add(table, last > first ? "%d-%d" : "%d", first, last);
        table_add(table, "%s", plantable_print_axes(words, &stage->mesh));
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

static const char *plantable_print_roles(char *out, const struct plan *plan, int block)
{
    const struct plan_block *chosen = &plan->blocks[block];
    int axes = plan->stages[chosen->stage].mesh.axes, used = 0;
    out[0] = '\0';
    for (int i = 0; i < axes; i++)
        used += snprintf(out + used, WORDS_SIZE - (size_t)used, "%s%s", i ? " " : "",
                         chosen->roles[i]->name);
    return out;
}

/* Whether rows of the two blocks would read alike but for their names. */
static bool plantable_alike(const struct plan *plan, const struct explained *blocks, int first,
                            int second)
{
    const struct plan_block *a = &plan->blocks[first], *b = &plan->blocks[second];
    bool same = a->stage == b->stage && a->zero == b->zero && a->recompute == b->recompute &&
                blocks[first].state_bytes == blocks[second].state_bytes &&
                blocks[first].saved_bytes == blocks[second].saved_bytes;
    for (int axis = 0; same && axis < plan->stages[a->stage].mesh.axes; axis++)
        same = a->roles[axis] == b->roles[axis];
    return same;
}

/* Blocks that follow each other and are treated alike share a row, which says what each of them
 * occupies; -o wide has one for each. */
static void plantable_print_blocks(const struct common *common, const struct planned *planned,
                                   const struct explained *blocks, FILE *out)
{
    static const struct column columns[] = {{"BLOCKS"},
                                            {"STAGE", .right = true},
                                            {"ROLES"},
                                            {"ZERO", .right = true},
                                            {"RECOMPUTE"},
                                            {"STORED EACH", .right = true},
                                            {"SAVED EACH", .right = true}};
    const struct plan *plan = planned->plan;
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    char words[WORDS_SIZE];
    for (int i = 0, end; i < plan->block_count; i = end) {
        for (end = i + 1; common->output != OUTPUT_WIDE && end < plan->block_count &&
                          plantable_alike(plan, blocks, i, end);)
            end++;
        table_add(table, end > i + 1 ? "%s..%s" : "%s", planned->graph->blocks[i].name,
                  planned->graph->blocks[end - 1].name);
        table_add(table, "%d", plan->blocks[i].stage);
        table_add(table, "%s", plantable_print_roles(words, plan, i));
        table_add(table, "%d", plan->blocks[i].zero);
        table_add(table, "%s", recompute_names[plan->blocks[i].recompute]);
        table_add(table, "%s",
                  units_print_bytes(words, sizeof words, (double)blocks[i].state_bytes));
        table_add(table, "%s",
                  units_print_bytes(words, sizeof words, (double)blocks[i].saved_bytes));
    }
    table_print(table, (enum output)common->output, !common->no_headers, out);
    table_destroy(table);
}

static int plantable_sum_stages(const struct planned *planned, struct explained *blocks,
                                struct error *err)
{
    struct explained rest = {0}; /* what belongs to no block is not shown */
    for (int i = 0; i < planned->plan->stage_count; i++) {
        struct program *program;
        int rc =
            lower(planned->graph, planned->plan, plan_stage_rank(planned->plan, i), &program, err);
        if (rc < 0)
            return rc;
        explain_bytes(program, blocks, &rest);
        program_destroy(program);
    }
    return 0;
}

/* Bytes of a block are those of the first rank of its stage: what it stores of weights, moments and
 * gradients, and what all micro-batches in flight save for the backward pass. A negative errno as
 * of lower(). */
static int plantable_print(const struct common *common, const struct planned *planned, FILE *out,
                           struct error *err)
{
    const struct plan *plan = planned->plan;
    struct explained *blocks = xcalloc((size_t)plan->block_count, sizeof *blocks);
    char words[WORDS_SIZE], size[32];
    int rc = plantable_sum_stages(planned, blocks, err);
    if (rc == 0) {
        fprintf(out, "%s: %s, %lld samples a step", plan->id, plan_print(words, sizeof words, plan),
                (long long)plan_global_batch(plan));
        if (plan->predicted.step_time_s > 0)
            fprintf(out, "; predicted %.2f ms a step, %.0f tok/s, %s",
                    plan->predicted.step_time_s * 1e3, plan->predicted.tokens_per_s,
                    units_print_bytes(size, sizeof size, (double)plan->predicted.memory_bytes_max));
        fputs("\n\n", out);
        plantable_print_stages(common, planned, out);
        fputc('\n', out);
        plantable_print_blocks(common, planned, blocks, out);
    }
    free(blocks);
    return rc;
}

struct plan_show_values {
    struct planned_flags from;
    bool program;
    int64_t rank; /* -1: not given */
};

static const struct flag plan_show_flags[] = {
    PLANNED_FLAGS(struct plan_show_values, from),
    {"program", 0, FLAG_SWITCH, offsetof(struct plan_show_values, program), NULL,
     "show what a rank does in a step: its instructions and their buffers"},
    {"rank", 0, FLAG_NUMBER, offsetof(struct plan_show_values, rank), "N", "the rank (0)",
     .standard = -1},
    {.name = NULL},
};

static int plan_show_program(const struct planned *planned, int64_t rank, struct error *err)
{
    struct program *program;
    int code = planned_lower(planned, rank, &program, err);
    if (code == EXIT_DONE) {
        program_print(program, stdout);
        program_destroy(program);
    }
    return code;
}

static int plan_show_run(const struct invocation *invocation, struct error *err)
{
    const struct plan_show_values *values = invocation->values;
    const char *job;
    enum output output = (enum output)invocation->common.output;
    struct planned planned = {0};
    if (values->rank >= 0 && !values->program)
        return error_set(err, EXIT_USAGE, "--rank needs --program");
    if (values->program && output >= OUTPUT_JSON)
        return error_set(err, EXIT_USAGE, "a program is printed as text: leave out --output");
    int code = planned_job(invocation, &job, err);
    if (code == EXIT_DONE)
        code = planned_open(&invocation->common, &values->from, job, &planned, err);
    if (code == EXIT_DONE && values->program)
        code = plan_show_program(&planned, values->rank < 0 ? 0 : values->rank, err);
    else if (code == EXIT_DONE && output >= OUTPUT_JSON)
        output_print_text(output, planned.json, stdout); /* the text that it was decoded from */
    else if (code == EXIT_DONE)
        code = exit_of_errno(plantable_print(&invocation->common, &planned, stdout, err));
    planned_finish(&planned);
    return code;
}

const struct command command_plan_show = {
    .name = "plan show",
    .summary = "Show a plan block by block, or what a rank does in a step",
    .arguments = "[JOB]",
    .arguments_max = 1,
    .flags = plan_show_flags,
    .values_size = sizeof(struct plan_show_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = plan_show_run,
};

struct plan_trace_values {
    struct planned_flags from;
    const char *to;
};

static const struct flag plan_trace_flags[] = {
    PLANNED_FLAGS(struct plan_trace_values, from),
    PERFETTO_FLAG(struct plan_trace_values, to),
    {.name = NULL},
};

static int plan_trace_write(const struct planned *planned, const char *path, struct error *err)
{
    struct perfetto perfetto;
    int rc = perfetto_begin(&perfetto, planned, err);
    if (rc == 0)
        rc = perfetto_predict(&perfetto, planned, err);
    if (rc == 0)
        rc = perfetto_write(&perfetto, path, err);
    perfetto_finish(&perfetto);
    return exit_of_errno(rc);
}

static int plan_trace_run(const struct invocation *invocation, struct error *err)
{
    const struct plan_trace_values *values = invocation->values;
    const char *job;
    struct planned planned = {0};
    int code = planned_job(invocation, &job, err);
    if (code == EXIT_DONE)
        code = planned_open(&invocation->common, &values->from, job, &planned, err);
    if (code == EXIT_DONE)
        code = planned_rate(&invocation->common, &planned, err);
    if (code == EXIT_DONE)
        code = plan_trace_write(&planned, values->to, err);
    planned_finish(&planned);
    return code;
}

const struct command command_plan_trace = {
    .name = "plan trace",
    .summary = "Write the predicted timeline of a step, for Perfetto or Chrome",
    .arguments = "[JOB]",
    .arguments_max = 1,
    .flags = plan_trace_flags,
    .values_size = sizeof(struct plan_trace_values),
    .takes = TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = plan_trace_run,
};
