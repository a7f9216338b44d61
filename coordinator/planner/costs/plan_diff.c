/* plan_diff.c - compares two plans by formatting the same thing of both and comparing the texts. */
#include "coordinator/planner/costs/plan_diff.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SIZE 256

struct differ {
    const struct plan *plans[2];
    plan_diff_cb *cb;
    void *context;
    int count;
};

static void tell(struct differ *differ, const char *what, const char *first, const char *second)
{
    if (strcmp(first, second) == 0)
        return;
    differ->cb(what, first, second, differ->context);
    differ->count++;
}

static void tell_numbers(struct differ *differ, const char *what, int64_t first, int64_t second)
{
    char texts[2][32];
    snprintf(texts[0], sizeof texts[0], "%lld", (long long)first);
    snprintf(texts[1], sizeof texts[1], "%lld", (long long)second);
    tell(differ, what, texts[0], texts[1]);
}

char *plan_print_block(char *out, size_t size, const struct plan *plan, int block)
{
    const struct plan_block *it = &plan->blocks[block];
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; roles[i] && used < size; i++) {
        int degree = plan_degree(plan, block, (const char *[]){roles[i]->name, NULL});
        if (degree > 1)
            used += (size_t)snprintf(out + used, size - used, "%s%s%d", used ? "·" : "",
                                     roles[i]->short_name, degree);
    }
    if (used == 0)
        used = (size_t)snprintf(out, size, "one device");
    if (it->zero && used < size)
        used += (size_t)snprintf(out + used, size - used, " zero%d", it->zero);
    if (it->recompute && used < size)
        snprintf(out + used, size - used, " recompute %s", recompute_names[it->recompute]);
    return out;
}

/* The devices of a stage: "2: node-a/0, node-a/1", "8: node-a/0, node-a/1 to node-a/7". */
static char *print_devices(char *out, size_t size, const struct plan_stage *stage)
{
    int count = mesh_count(&stage->mesh), shown = count > 3 ? 2 : count;
    size_t used = (size_t)snprintf(out, size, "%d", count);
    for (int i = 0; stage->devices && i < shown && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : ": ", stage->devices[i]);
    if (stage->devices && shown < count && used < size)
        snprintf(out + used, size - used, " to %s", stage->devices[count - 1]);
    return out;
}

/* The axes of its mesh, fastest link first: "2x4". */
static char *print_axes(char *out, size_t size, const struct mesh *mesh)
{
    size_t used = (size_t)snprintf(out, size, "%d", mesh->axes > 0 ? mesh->size[0] : 1);
    for (int axis = 1; axis < mesh->axes && used < size; axis++)
        used += (size_t)snprintf(out + used, size - used, "x%d", mesh->size[axis]);
    return out;
}

static void diff_stages(struct differ *differ)
{
    const struct plan *a = differ->plans[0], *b = differ->plans[1];
    for (int i = 0; i < a->stage_count || i < b->stage_count; i++) {
        char what[32], texts[2][TEXT_SIZE];
        for (int side = 0; side < 2; side++) {
            const struct plan *plan = differ->plans[side];
            if (i < plan->stage_count)
                snprintf(texts[side], TEXT_SIZE, "%d", plan->stages[i].block_count);
            else
                snprintf(texts[side], TEXT_SIZE, "none");
        }
        snprintf(what, sizeof what, "stage %d: blocks", i);
        tell(differ, what, texts[0], texts[1]);
        if (i >= a->stage_count || i >= b->stage_count)
            continue;
        snprintf(what, sizeof what, "stage %d: devices", i);
        tell(differ, what, print_devices(texts[0], TEXT_SIZE, &a->stages[i]),
             print_devices(texts[1], TEXT_SIZE, &b->stages[i]));
        snprintf(what, sizeof what, "stage %d: axes", i);
        tell(differ, what, print_axes(texts[0], TEXT_SIZE, &a->stages[i].mesh),
             print_axes(texts[1], TEXT_SIZE, &b->stages[i].mesh));
    }
}

/* Names blocks first to end - 1. Block 0 is "embed", the last "head", the others layers. */
static char *print_run(char *out, size_t size, int first, int end, int count)
{
    if (first == 0)
        snprintf(out, size, end > 1 ? "embed to layer %d" : "embed", end - 2);
    else if (end == count)
        snprintf(out, size, end - first > 1 ? "layer %d to head" : "head", first - 1);
    else
        snprintf(out, size, end - first > 1 ? "layers %d to %d" : "layer %d", first - 1, end - 2);
    return out;
}

static void diff_blocks(struct differ *differ)
{
    int count = differ->plans[0]->block_count;
    char what[64], run[2][TEXT_SIZE], texts[2][TEXT_SIZE];
    for (int first = 0, end; first < count; first = end) {
        for (int side = 0; side < 2; side++)
            plan_print_block(run[side], TEXT_SIZE, differ->plans[side], first);
        for (end = first + 1; end < count; end++) {
            for (int side = 0; side < 2; side++)
                plan_print_block(texts[side], TEXT_SIZE, differ->plans[side], end);
            if (strcmp(texts[0], run[0]) != 0 || strcmp(texts[1], run[1]) != 0)
                break;
        }
        tell(differ, print_run(what, sizeof what, first, end, count), run[0], run[1]);
    }
}

int plan_diff(const struct plan *first, const struct plan *second, plan_diff_cb *cb, void *context,
              struct error *err)
{
    struct differ differ = {{first, second}, cb, context, 0};
    if (first->block_count != second->block_count)
        return error_set(err, -EINVAL,
                         "one plan has %d blocks, the other %d: they divide different models",
                         first->block_count, second->block_count);
    tell_numbers(&differ, "devices", plan_ranks(first), plan_ranks(second));
    tell_numbers(&differ, "pipeline stages", first->stage_count, second->stage_count);
    tell_numbers(&differ, "micro-batches", first->micro_batches, second->micro_batches);
    tell_numbers(&differ, "samples of a micro-batch", first->micro_batch_samples,
                 second->micro_batch_samples);
    tell(&differ, "schedule", first->schedule->name, second->schedule->name);
    diff_stages(&differ);
    diff_blocks(&differ);
    return differ.count;
}
