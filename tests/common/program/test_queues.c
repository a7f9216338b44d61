/* test_queues.c - two queues of a rank: whatever both touch is touched in the order of the step,
 * and what can go beside computing does. */
#include "common/base/memory.h"
#include "common/program/program.h"
#include "coordinator/simulation/simulate.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- order ---- */

/* A run of an instruction in a step. `awaited`: of the other queue, how far it is known to be when
 * the run begins. */
struct run {
    const struct instruction *instruction;
    uint64_t number, awaited;
    struct access accesses[ACCESSES_MAX];
    int count;
};

struct runs {
    struct run *items;
    size_t count, capacity;
};

static struct runs runs_of(const struct program *program, enum queue queue, enum program_kind kind)
{
    struct program_walk walk;
    struct runs runs = {0};
    uint64_t awaited = 0;
    program_walk_init(&walk, program, queue);
    program_walk_begin(&walk, kind);
    while (program_walk_next(&walk)) {
        uint64_t number = program_walk_awaits(&walk);
        awaited = number > awaited ? number : awaited;
        ck_assert_uint_lt(awaited, walk.number);
        runs.items = grow(runs.items, runs.count, &runs.capacity, sizeof *runs.items);
        struct run *run = &runs.items[runs.count++];
        *run = (struct run){walk.cursor.instruction, walk.number, awaited, {{0}}, 0};
        run->count = instruction_accesses(program, run->instruction, run->accesses);
        for (int a = 0; a < run->count; a++)
            if (run->accesses[a].region == REGION_SAVED) {
                run->accesses[a].low += (uint64_t)walk.cursor.slot * program->slot_bytes;
                run->accesses[a].high += (uint64_t)walk.cursor.slot * program->slot_bytes;
            }
    }
    program_walk_finish(&walk);
    return runs;
}

static bool conflict(const struct run *a, const struct run *b)
{
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++) {
            const struct access *x = &a->accesses[i], *y = &b->accesses[j];
            if (x->region == y->region && (x->writes || y->writes) && x->low < y->high &&
                y->low < x->high)
                return true;
        }
    return false;
}

/* Returns how many pairs of runs have no order; tells of the first. */
static int count_races(const struct program *program, enum program_kind kind, char *text,
                       size_t size)
{
    int races = 0;
    struct runs compute = runs_of(program, QUEUE_COMPUTE, kind);
    struct runs beside = runs_of(program, QUEUE_COMMUNICATION, kind);
    for (size_t i = 0; i < beside.count; i++)
        for (size_t j = 0; j < compute.count; j++) {
            const struct run *a = &beside.items[i], *b = &compute.items[j];
            const struct run *first = a->number < b->number ? a : b, *second = first == a ? b : a;
            if (second->awaited >= first->number || !conflict(a, b))
                continue;
            if (races++ == 0)
                snprintf(text, size, "rank %d: instruction %td does not wait for %td",
                         program->rank, second->instruction - program->instructions,
                         first->instruction - program->instructions);
        }
    free(compute.items);
    free(beside.items);
    return races;
}

static void check_order(const struct program *program, enum program_kind kind, uint64_t seed)
{
    char text[128] = "";
    int races = count_races(program, kind, text, sizeof text);
    ck_assert_msg(races == 0, "seed %lu, %s", (unsigned long)seed, text);
}

START_TEST(what_two_queues_touch_is_touched_in_order)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    for (int rank = 0; rank < world.ranks; rank++)
        if (program_overlaps(world.programs[rank]))
            for (int kind = PROGRAM_TRAIN; kind <= PROGRAM_EVALUATE; kind++)
                check_order(world.programs[rank], (enum program_kind)kind, seed);
    world_destroy(&world);
}
END_TEST

START_TEST(a_wait_that_is_missing_is_found)
{
    struct graph *graph = world_graph(2);
    struct plan *plan =
        engine_plan(graph, 1, (int[]){2}, 1, (const char *[]){"batch"}, 1, 4, "1f1b");
    struct world world = world_create(graph, plan);
    struct program *program = world.programs[0];
    ck_assert_uint_gt(program->wait_count, 0);
    char text[128];
    int found = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        int count = program->instructions[i].wait_count;
        program->instructions[i].wait_count = 0;
        found += count > 0 && count_races(program, PROGRAM_TRAIN, text, sizeof text) > 0;
        program->instructions[i].wait_count = count;
    }
    ck_assert_int_gt(found, 0);
    world_destroy(&world);
}
END_TEST

START_TEST(a_plan_without_overlap_has_one_queue)
{
    struct world world = world_random(test_seed() + (uint64_t)_i);
    world_in_turn(&world);
    for (int rank = 0; rank < world.ranks; rank++) {
        const struct program *program = world.programs[rank];
        ck_assert(!program_overlaps(program));
        ck_assert_uint_eq(program->wait_count, 0);
        ck_assert_uint_eq(program->beside_bytes, 0);
    }
    world_destroy(&world);
}
END_TEST

/* ---- time ---- */

static bool moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

/* Kernels take a second; so does what is moved. */
static double a_second_each(const void *context, const struct program *program,
                            const struct instruction *instruction)
{
    (void)context, (void)program;
    return moves(instruction) || instruction->kind == INSTRUCTION_KERNEL;
}

static double run_world(const struct world *world, const struct timing *timing,
                        const struct simulation_trace *trace)
{
    struct simulation simulation;
    struct error err;
    int rc = simulate((const struct program *const *)world->programs, world->ranks, PROGRAM_TRAIN,
                      timing, trace, &simulation, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return simulation.step_s;
}

START_TEST(two_queues_are_never_slower_than_one)
{
    struct world world = world_random(test_seed() + (uint64_t)_i);
    struct timing timing = {NULL, a_second_each, NULL};
    double two = run_world(&world, &timing, NULL);
    world_in_turn(&world);
    ck_assert_double_le(two, run_world(&world, &timing, NULL));
    world_destroy(&world);
}
END_TEST

/* Of rank 0: when kernels of a block's backward, and what is moved for its weights, end. */
struct timeline {
    const struct program *program;
    double backward_begins[8], backward_ends[8], gathered[2][8], forward_ends[8];
    double first_reduced;
};

static void note(void *context, int rank, const struct program_cursor *cursor, double begin,
                 double end)
{
    struct timeline *timeline = context;
    const struct instruction *instruction = cursor->instruction;
    int index = (int)(instruction - timeline->program->instructions), block = instruction->block;
    bool backward = index >= timeline->program->sections[SECTION_BACKWARD].first;
    if (rank != 0)
        return;
    if (instruction->kind == INSTRUCTION_KERNEL && !backward)
        timeline->forward_ends[block] = end;
    if (instruction->kind == INSTRUCTION_KERNEL && backward) {
        timeline->backward_ends[block] = end;
        if (timeline->backward_begins[block] == 0)
            timeline->backward_begins[block] = begin;
    }
    if (instruction->queue == QUEUE_COMMUNICATION && moves(instruction)) {
        if (block >= 0 && instruction->collective.kind == COLLECTIVE_ALL_GATHER)
            timeline->gathered[backward][block] = end;
        if (index >= timeline->program->sections[SECTION_REDUCE].first &&
            timeline->first_reduced == 0)
            timeline->first_reduced = end;
    }
}

static struct timeline trace_plan(int zero)
{
    struct graph *graph = world_graph(4);
    struct plan *plan =
        engine_plan(graph, 1, (int[]){2}, 1, (const char *[]){"batch"}, 1, 4, "1f1b");
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].zero = zero;
    struct world world = world_create(graph, plan);
    struct timeline timeline = {.program = world.programs[0]};
    struct simulation_trace trace = {&timeline, note};
    /* What is moved takes no time: it comes when the program lets it. */
    struct timing timing = {NULL, a_second_each, NULL};
    run_world(&world, &timing, &trace);
    world_destroy(&world);
    return timeline;
}

START_TEST(gradients_leave_while_backward_goes_on)
{
    struct timeline timeline = trace_plan(0);
    ck_assert_double_gt(timeline.first_reduced, 0);
    ck_assert_double_lt(timeline.first_reduced, timeline.backward_ends[4]);
}
END_TEST

START_TEST(weights_are_gathered_one_block_ahead)
{
    /* Twelve weights of a layer take as long as its eleven kernels, or less. */
    struct timeline timeline = trace_plan(3);
    for (int block = 2; block <= 4; block++)
        ck_assert_double_lt(timeline.gathered[0][block], timeline.forward_ends[block]);
    for (int block = 3; block >= 1; block--)
        ck_assert_double_gt(timeline.backward_begins[block], 0);
}
END_TEST

/* ---- who slows whom ---- */

#define FACTOR 1.5

/* The last kernel of backward takes 4 s, the first bucket's all-reduce 2 s, all else nothing. */
static double kernel_and_bucket(const void *context, const struct program *program,
                                const struct instruction *instruction)
{
    const struct instruction *reduce =
        &program->instructions[program->sections[SECTION_REDUCE].first];
    const struct instruction *kernel = reduce;
    (void)context;
    while (kernel->kind != INSTRUCTION_KERNEL)
        kernel--;
    return instruction == kernel ? 4 : instruction == reduce ? 2 : 0;
}

static double by_factor(const void *context, const struct program *program,
                        const struct instruction *instruction, const struct instruction *beside)
{
    (void)context, (void)program, (void)instruction, (void)beside;
    return FACTOR;
}

START_TEST(queues_slow_each_other_while_both_run)
{
    /* The all-reduce takes 2 x 1.5 s, in which the kernel does 2 s of its 4. */
    struct graph *graph = world_graph(2);
    struct world world = world_create(
        graph, engine_plan(graph, 1, (int[]){2}, 1, (const char *[]){"batch"}, 1, 4, "1f1b"));
    struct timing timing = {NULL, kernel_and_bucket, by_factor};
    ck_assert_double_eq_tol(run_world(&world, &timing, NULL), 2 * FACTOR + 2, 1e-9);
    timing.slowdown = NULL;
    ck_assert_double_eq_tol(run_world(&world, &timing, NULL), 4, 1e-9);
    world_in_turn(&world);
    ck_assert_double_eq_tol(run_world(&world, &timing, NULL), 6, 1e-9);
    world_destroy(&world);
}
END_TEST

SUITE(queues)
{
    TCase *order = tcase_create("order");
    tcase_set_timeout(order, 120);
    tcase_add_loop_test(order, what_two_queues_touch_is_touched_in_order, 0, test_share(25));
    tcase_add_test(order, a_wait_that_is_missing_is_found);
    tcase_add_loop_test(order, a_plan_without_overlap_has_one_queue, 0, test_share(10));
    TCase *time = tcase_create("time");
    tcase_set_timeout(time, 60);
    tcase_add_loop_test(time, two_queues_are_never_slower_than_one, 0, test_share(25));
    tcase_add_test(time, gradients_leave_while_backward_goes_on);
    tcase_add_test(time, weights_are_gathered_one_block_ahead);
    tcase_add_test(time, queues_slow_each_other_while_both_run);
    return suite_run("queues", order, time, NULL);
}
