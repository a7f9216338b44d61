/* stage_frontier.c - the table of frontiers, each computed on first use and shared by all stages
 * and runs of blocks that are alike; and the nodes that record how labels are composed. */
#include "coordinator/planner/exact/stage_frontier.h"

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "coordinator/planner/exact/frontier_fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void frontiers_init(struct frontiers *frontiers, struct instance *instance)
{
    *frontiers = (struct frontiers){.instance = instance,
                                    .upper_s = INFINITY,
                                    .omitted_s = INFINITY,
                                    .most = SIZE_MAX,
                                    .pairs = SIZE_MAX,
                                    .one_stage = instance->point.stages == 1};
}

static void destroy(struct frontier *frontier)
{
    free(frontier->labels);
    free(frontier->ranks);
    free(frontier);
}

/* Remove all frontiers, or only those that include the first or the last block. */
static void forget(struct frontiers *frontiers, bool all)
{
    for (size_t i = 0; i < FRONTIER_BUCKETS; i++) {
        struct frontier **at = &frontiers->buckets[i];
        while (*at) {
            struct frontier *frontier = *at;
            if (!all && frontier->first > 0 && frontier->end < frontiers->instance->blocks) {
                at = &frontier->next;
                continue;
            }
            *at = frontier->next;
            destroy(frontier);
        }
    }
}

void frontiers_finish(struct frontiers *frontiers)
{
    forget(frontiers, true);
    free(frontiers->nodes);
}

void frontiers_forget_ends(struct frontiers *frontiers)
{
    forget(frontiers, false);
}

int frontiers_add_node(struct frontiers *frontiers, struct frontier_node node)
{
    frontiers->nodes = grow(frontiers->nodes, frontiers->node_count, &frontiers->node_capacity,
                            sizeof *frontiers->nodes);
    frontiers->nodes[frontiers->node_count] = node;
    return (int)frontiers->node_count++;
}

/* The first block of a run of equal blocks. */
static int run_begin(const struct frontiers *frontiers, int block)
{
    const int *place = frontiers->instance->costs->model.place;
    while (block > 1 && place[block - 1] == place[block])
        block--;
    return block;
}

/* For sites of the same kind. */
static bool same_memory(const struct site *a, const struct site *b)
{
    return memcmp(a->limits, b->limits, (size_t)a->ranks * sizeof *a->limits) == 0;
}

static bool same_frontier(const struct frontiers *frontiers, const struct frontier *a,
                          const struct frontier *b)
{
    return a->kind == b->kind && a->slots == b->slots && a->limit == b->limit &&
           a->first == b->first && a->end == b->end &&
           (frontiers->instance->relaxed || same_memory(a->site, b->site));
}

static struct frontier **bucket_of(struct frontiers *frontiers, const struct frontier *key)
{
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
    uint64_t hash = hash_word(HASH_START, (uint64_t)key->first << 32 | (uint64_t)key->end);
    hash = hash_word(hash, (uint64_t)key->kind << 32 | (uint64_t)key->slots);
    return &frontiers->buckets[hash_word(hash, key->limit) % FRONTIER_BUCKETS];
}

const struct frontier *frontiers_get(struct frontiers *frontiers, int stage, int first, int end)
{
    const struct instance *instance = frontiers->instance;
    const int *place = instance->costs->model.place;
    uint64_t base = instance->bases[stage].bytes.state;
    uint64_t memory = instance_memory(instance, stage);
    struct frontier key = {.kind = instance->sites[stage]->kind,
                           .site = instance->sites[stage],
                           .slots = instance->slots[stage],
                           .limit = memory > base ? memory - base : 0};
    if (place[first] == place[end - 1] && end < instance->blocks && first > 0) {
        end -= first - run_begin(frontiers, first);
        first = run_begin(frontiers, first);
    }
    key.first = first;
    key.end = end;
    struct frontier **bucket = bucket_of(frontiers, &key);
    for (const struct frontier *known = *bucket; known; known = known->next)
        if (same_frontier(frontiers, known, &key))
            return known;
    struct frontier *frontier = xcalloc(1, sizeof *frontier);
    *frontier = key;
    frontier_fill(frontiers, frontier, stage);
    frontier->next = *bucket;
    *bucket = frontier;
    return frontier;
}

struct strategy *frontiers_choices(const struct frontiers *frontiers, int node,
                                   struct strategy *out)
{
    const struct frontier_node *of = &frontiers->nodes[node];
    if (of->left < 0) {
        *out = of->strategy;
        return out + 1;
    }
    return frontiers_choices(frontiers, of->right, frontiers_choices(frontiers, of->left, out));
}
