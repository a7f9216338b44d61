/* world.c - building and lowering. */
#include "tests/common/program/world.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <stdlib.h>

struct graph *world_graph(int layers)
{
    return world_graph_of("gpt", layers);
}

struct graph *world_graph_of(const char *family, int layers)
{
    struct job_model config = {.family = family,
                               .layers = layers,
                               .hidden = 24,
                               .heads = 4,
                               .seq = 12,
                               .vocab = 37,
                               .ffn = 48};
    struct graph *graph;
    struct error err;
    ck_assert_msg(model_build(&config, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    return graph;
}

static void lower_all(struct world *world)
{
    struct error err;
    for (int rank = 0; rank < world->ranks; rank++)
        ck_assert_msg(lower(world->graph, world->plan, rank, &world->programs[rank], &err) == 0,
                      "%s", err.text);
}

struct world world_create(struct graph *graph, struct plan *plan)
{
    struct world world = {graph, plan, NULL, plan_ranks(plan)};
    world.programs = xcalloc((size_t)world.ranks, sizeof *world.programs);
    lower_all(&world);
    return world;
}

void world_in_turn(struct world *world)
{
    for (int rank = 0; rank < world->ranks; rank++)
        program_destroy(world->programs[rank]);
    world->plan->overlap = false;
    lower_all(world);
}

struct world world_random(uint64_t seed)
{
    struct graph *graph = world_graph(1 + (int)random_below(seed, 7, 0, 4));
    return world_create(graph, engine_plan_random(graph, seed, 12, 8));
}

void world_destroy(struct world *world)
{
    for (int rank = 0; rank < world->ranks; rank++)
        program_destroy(world->programs[rank]);
    free(world->programs);
    plan_destroy(world->plan);
    graph_destroy(world->graph);
}
