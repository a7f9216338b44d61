/* plan.c - creating, copying, comparing, naming and describing plans. */
#include "common/plan/plan.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const recompute_names[RECOMPUTES] = {"none", "selective", "full"};

struct plan *plan_create(int stages, int blocks)
{
    struct plan *plan = xcalloc(1, sizeof *plan);
    plan->stages = xcalloc((size_t)stages, sizeof *plan->stages);
    plan->blocks = xcalloc((size_t)blocks, sizeof *plan->blocks);
    plan->stage_count = stages;
    plan->block_count = blocks;
    plan->micro_batches = 1;
    plan->micro_batch_samples = 1;
    plan->schedule = schedules[0];
    plan->overlap = true;
    return plan;
}

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        for (int rank = 0; stage->devices && rank < mesh_count(&stage->mesh); rank++)
            free(stage->devices[rank]);
        free(stage->devices);
        free(stage->weights);
    }
    free(plan->stages);
    free(plan->blocks);
    free(plan);
}

struct plan *plan_copy(const struct plan *plan)
{
    struct plan *copy = plan_create(plan->stage_count, plan->block_count);
    struct plan_stage *stages = copy->stages;
    struct plan_block *blocks = copy->blocks;
    memcpy(stages, plan->stages, (size_t)plan->stage_count * sizeof *stages);
    memcpy(blocks, plan->blocks, (size_t)plan->block_count * sizeof *blocks);
    *copy = *plan;
    copy->stages = stages;
    copy->blocks = blocks;
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *from = &plan->stages[i];
        size_t count = (size_t)mesh_count(&from->mesh);
        if (from->weights) {
            stages[i].weights = xcalloc(count, sizeof *from->weights);
            memcpy(stages[i].weights, from->weights, count * sizeof *from->weights);
            stages[i].mesh.weights = stages[i].weights;
        }
        if (from->devices) {
            stages[i].devices = xcalloc(count, sizeof *from->devices);
            for (size_t rank = 0; rank < count; rank++)
                stages[i].devices[rank] = xstrdup(from->devices[rank]);
        }
    }
    return copy;
}

int plan_ranks(const struct plan *plan)
{
    return plan_stage_rank(plan, plan->stage_count);
}

int64_t plan_global_batch(const struct plan *plan)
{
    return plan->micro_batches * plan->micro_batch_samples;
}

int plan_stage_rank(const struct plan *plan, int stage)
{
    int rank = 0;
    for (int i = 0; i < stage; i++)
        rank += mesh_count(&plan->stages[i].mesh);
    return rank;
}

int plan_rank_stage(const struct plan *plan, int rank, int *inside)
{
    int stage = 0;
    while (rank >= mesh_count(&plan->stages[stage].mesh))
        rank -= mesh_count(&plan->stages[stage++].mesh);
    *inside = rank;
    return stage;
}

const char *plan_device(const struct plan *plan, int rank)
{
    int inside, stage = plan_rank_stage(plan, rank, &inside);
    return plan->stages[stage].devices ? plan->stages[stage].devices[inside] : NULL;
}

void plan_forget_devices(struct plan *plan)
{
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        for (int rank = 0; stage->devices && rank < mesh_count(&stage->mesh); rank++)
            free(stage->devices[rank]);
        free(stage->devices);
        stage->devices = NULL;
    }
}

int plan_degree(const struct plan *plan, int block, const char *const *names)
{
    const struct mesh *mesh = &plan->stages[plan->blocks[block].stage].mesh;
    int degree = 1;
    for (int axis = 0; axis < mesh->axes; axis++)
        for (int i = 0; names[i]; i++)
            if (strcmp(plan->blocks[block].roles[axis]->name, names[i]) == 0)
                degree *= mesh->size[axis];
    return degree;
}

void plan_name(struct plan *plan)
{
    uint64_t hash = hash_number(HASH_START, (uint64_t)plan->micro_batches);
    hash = hash_number(hash, (uint64_t)plan->micro_batch_samples);
    hash = hash_text(hash, plan->schedule->name);
    if (!plan->overlap)
        hash = hash_text(hash, "one queue");
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        hash = hash_number(hash, (uint64_t)stage->block_count);
        for (int axis = 0; axis < stage->mesh.axes; axis++)
            hash = hash_number(hash, (uint64_t)stage->mesh.size[axis]);
        for (int rank = 0; rank < mesh_count(&stage->mesh); rank++) {
            hash = hash_number(hash, stage->weights ? (uint64_t)stage->weights[rank] : 1);
            hash = hash_text(hash, stage->devices ? stage->devices[rank] : "");
        }
    }
    for (int i = 0; i < plan->block_count; i++) {
        const struct plan_block *block = &plan->blocks[i];
        hash = hash_number(hash, (uint64_t)block->zero);
        hash = hash_number(hash, (uint64_t)block->recompute);
        for (int axis = 0; axis < plan->stages[block->stage].mesh.axes; axis++)
            hash = hash_text(hash, block->roles[axis]->name);
    }
    snprintf(plan->id, sizeof plan->id, "p-%06llx",
             (unsigned long long)(hash ^ hash >> 32) & 0xffffff);
}

static bool same_stage(const struct plan_stage *a, const struct plan_stage *b)
{
    if (a->block_count != b->block_count || a->mesh.axes != b->mesh.axes)
        return false;
    for (int axis = 0; axis < a->mesh.axes; axis++)
        if (a->mesh.size[axis] != b->mesh.size[axis])
            return false;
    for (int rank = 0; rank < mesh_count(&a->mesh); rank++) {
        if ((a->weights ? a->weights[rank] : 1) != (b->weights ? b->weights[rank] : 1))
            return false;
        if (strcmp(a->devices ? a->devices[rank] : "", b->devices ? b->devices[rank] : "") != 0)
            return false;
    }
    return true;
}

static bool same_block(const struct plan_block *a, const struct plan_block *b, int axes)
{
    bool same = a->zero == b->zero && a->recompute == b->recompute;
    for (int axis = 0; axis < axes && same; axis++)
        same = a->roles[axis] == b->roles[axis];
    return same;
}

bool plan_same(const struct plan *a, const struct plan *b)
{
    bool same = a->micro_batches == b->micro_batches &&
                a->micro_batch_samples == b->micro_batch_samples && a->schedule == b->schedule &&
                a->overlap == b->overlap && a->stage_count == b->stage_count &&
                a->block_count == b->block_count;
    for (int i = 0; same && i < a->stage_count; i++)
        same = same_stage(&a->stages[i], &b->stages[i]);
    for (int i = 0; same && i < a->block_count; i++)
        same = same_block(&a->blocks[i], &b->blocks[i], a->stages[a->blocks[i].stage].mesh.axes);
    return same;
}

char *plan_print(char *out, size_t size, const struct plan *plan)
{
    /* The middle block stands for all layers. */
    int block = plan->block_count / 2, used = 0;
    const struct mesh *mesh = &plan->stages[plan->blocks[block].stage].mesh;
    used += snprintf(out, size, "pp%d", plan->stage_count);
    for (int i = 0; roles[i] && used >= 0 && (size_t)used < size; i++) {
        int degree = 1;
        for (int axis = 0; axis < mesh->axes; axis++)
            if (plan->blocks[block].roles[axis] == roles[i])
                degree *= mesh->size[axis];
        if (degree > 1)
            used +=
                snprintf(out + used, size - (size_t)used, "·%s%d", roles[i]->short_name, degree);
    }
    static const char *const zeros[] = {"", " zero1", " zero2", " zero3"};
    static const char *const recomputes[] = {"", " selective", " recompute"};
    if ((size_t)used < size)
        snprintf(out + used, size - (size_t)used, "%s%s m%d %s%s", zeros[plan->blocks[block].zero],
                 recomputes[plan->blocks[block].recompute], plan->micro_batches,
                 plan->schedule->name, plan->overlap ? "" : " one queue");
    return out;
}
