/* test_simulate.c - what lowering makes never deadlocks, a deadlock that is planted is found and
 * said, and the timeline of textbook pipelines is the textbook's. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/simulation/simulate.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double one_second(const void *context, const struct program *program,
                         const struct instruction *instruction)
{
    (void)context, (void)program, (void)instruction;
    return 1;
}

static const struct timing plain_timing = {NULL, one_second};

static int world_simulate(const struct world *world, enum program_kind kind,
                          const struct timing *timing, const struct simulation_trace *trace,
                          struct simulation *out, struct error *err)
{
    return simulate((const struct program *const *)world->programs, world->ranks, kind, timing,
                    trace, out, err);
}

/* ---- what lowering makes ---- */

struct timeline {
    enum program_kind kind;
    int counts[64];
    double ends[64][QUEUES];
};

static void check_event(void *context, int rank, const struct program_cursor *cursor, double begin,
                        double end)
{
    struct timeline *timeline = context;
    ck_assert(timeline->kind == PROGRAM_TRAIN || cursor->slot == 0);
    double *last = &timeline->ends[rank][cursor->instruction->queue];
    ck_assert(begin >= *last && end >= begin);
    *last = end;
    timeline->counts[rank]++;
}

static int instructions_of_step(const struct program *program, enum program_kind kind)
{
    struct program_cursor cursor = {0};
    int count = 0;
    while (program_next(program, kind, &cursor))
        count++;
    return count;
}

START_TEST(a_random_plan_never_deadlocks)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    for (int kind = PROGRAM_TRAIN; kind <= PROGRAM_EVALUATE; kind++) {
        struct simulation simulation;
        struct error err;
        struct timeline timeline = {.kind = (enum program_kind)kind};
        struct simulation_trace trace = {&timeline, check_event};
        int rc = world_simulate(&world, kind, &plain_timing, &trace, &simulation, &err);
        ck_assert_msg(rc == 0, "seed %lu: %s", (unsigned long)seed, err.text);
        double last = 0;
        for (int rank = 0; rank < world.ranks; rank++) {
            int count = instructions_of_step(world.programs[rank], kind);
            ck_assert_int_eq(timeline.counts[rank], count);
            for (int queue = 0; queue < QUEUES; queue++)
                last = timeline.ends[rank][queue] > last ? timeline.ends[rank][queue] : last;
        }
        ck_assert(simulation.step_s == last);
        ck_assert_double_eq_tol(simulation.busy_s + simulation.exposed_s, simulation.step_s, 1e-9);
    }
    world_destroy(&world);
}
END_TEST

/* ---- ranks that stand for others ---- */

/* By what it works on, so that unlike pieces take unlike times. */
static double by_size(const void *context, const struct program *program,
                      const struct instruction *instruction)
{
    (void)context;
    return 1 + instruction_bytes(program, instruction) + instruction_flops(program, instruction) +
           instruction_most_bytes(program, instruction);
}

static double slowed(const void *context, const struct program *program,
                     const struct instruction *instruction, const struct instruction *beside)
{
    (void)context, (void)program, (void)instruction, (void)beside;
    return 1.25;
}

/* Each rank's program, or that of the one it is like. */
static void stand_in(const struct world *world, const struct program **programs)
{
    const struct mesh *mesh = &world->plan->stages[0].mesh;
    for (int rank = 0; rank < world->ranks; rank++) {
        int like = program_like(world->programs[0], mesh, rank);
        ck_assert_int_eq(program_like(world->programs[rank], mesh, rank), like);
        programs[rank] = world->programs[like];
        ck_assert_uint_eq(program_bytes(programs[rank]), program_bytes(world->programs[rank]));
    }
}

/* A plan of one stage whose devices have equal weights, on several ranks. */
static struct world draw_stage(uint64_t seed)
{
    for (;; seed += 1000003) {
        struct graph *graph = world_graph(1 + (int)random_below(seed, 7, 0, 3));
        struct plan *plan = engine_plan_random(graph, seed, 12, 8);
        if (plan->stage_count == 1 && !plan->stages[0].mesh.weights && plan_ranks(plan) > 1)
            return world_create(graph, plan);
        plan_destroy(plan);
        graph_destroy(graph);
    }
}

START_TEST(a_rank_stands_for_those_like_it)
{
    const struct timing timing = {NULL, by_size, slowed};
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = draw_stage(seed);
    const struct program *programs[12];
    struct simulation all, few;
    struct error err;
    stand_in(&world, programs);
    ck_assert_int_eq(world_simulate(&world, PROGRAM_TRAIN, &timing, NULL, &all, &err), 0);
    int rc = simulate(programs, world.ranks, PROGRAM_TRAIN, &timing, NULL, &few, &err);
    ck_assert_msg(rc == 0, "seed %lu: %s", (unsigned long)seed, err.text);
    ck_assert_msg(all.step_s == few.step_s, "seed %lu: %.17g, all together %.17g",
                  (unsigned long)seed, few.step_s, all.step_s);
    ck_assert_double_eq_tol(all.busy_s, few.busy_s, 1e-12 * all.busy_s);
    world_destroy(&world);
}
END_TEST

/* ---- planted deadlocks ---- */

/* Whoever waits for the instruction waits for itself, which is nothing: both are of one queue. */
static void forget(struct program *program, int index)
{
    for (size_t i = 0; i < program->instruction_count; i++) {
        struct instruction *instruction = &program->instructions[i];
        for (int w = 0; w < instruction->wait_count; w++) {
            int *wait = &program->waits[instruction->wait_first + w];
            *wait = *wait == index ? (int)i : *wait;
            *wait -= *wait > index;
        }
    }
}

/* Take an instruction out of a program. */
static void drop(struct program *program, int index)
{
    forget(program, index);
    size_t after = program->instruction_count - (size_t)index - 1;
    memmove(&program->instructions[index], &program->instructions[index + 1],
            after * sizeof *program->instructions);
    program->instruction_count--;
    for (int section = 0; section < SECTIONS; section++) {
        struct range *range = &program->sections[section];
        if (range->first > index)
            range->first--;
        else if (index < range->first + range->count)
            range->count--;
    }
}

/* Draw one of all ranks' instructions that do, each as likely as another; false: there is none. */
static bool pick(const struct world *world, uint64_t seed,
                 bool (*wanted)(const struct program *, const struct instruction *), int *rank,
                 int *index)
{
    uint64_t found = 0;
    for (int r = 0; r < world->ranks; r++) {
        for (size_t i = 0; i < world->programs[r]->instruction_count; i++) {
            if (!wanted(world->programs[r], &world->programs[r]->instructions[i]))
                continue;
            found++;
            if (random_below(seed, 8, found, found) == 0) {
                *rank = r;
                *index = (int)i;
            }
        }
    }
    return found > 0;
}

static bool is_send(const struct program *program, const struct instruction *instruction)
{
    (void)program;
    return instruction->kind == INSTRUCTION_SEND;
}

static bool is_receive(const struct program *program, const struct instruction *instruction)
{
    (void)program;
    return instruction->kind == INSTRUCTION_RECEIVE;
}

static bool is_collective(const struct program *program, const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE &&
           program->groups[instruction->collective.group].count > 1;
}

static void check_deadlock(const struct world *world, uint64_t seed, const char *expected)
{
    struct simulation simulation;
    struct error err = {""};
    int rc = world_simulate(world, PROGRAM_TRAIN, &plain_timing, NULL, &simulation, &err);
    ck_assert_msg(rc == -EDEADLK, "seed %lu: not found", (unsigned long)seed);
    ck_assert_msg(strstr(err.text, expected) != NULL, "seed %lu: '%s' does not say '%s'",
                  (unsigned long)seed, err.text, expected);
}

START_TEST(a_send_that_is_dropped_is_missed_by_its_receiver)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    int rank = 0, index = 0;
    char text[96];
    if (pick(&world, seed, is_send, &rank, &index)) {
        int peer = world.programs[rank]->instructions[index].message.peer;
        drop(world.programs[rank], index);
        snprintf(text, sizeof text, "rank %d in receive waits for rank %d", peer, rank);
        check_deadlock(&world, seed, text);
    }
    world_destroy(&world);
}
END_TEST

START_TEST(a_receive_that_is_dropped_is_missed_by_its_sender)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    int rank = 0, index = 0;
    char text[96];
    if (pick(&world, seed, is_receive, &rank, &index)) {
        struct program *program = world.programs[rank];
        int peer = program->instructions[index].message.peer;
        bool again = index >= program->sections[SECTION_FORWARD].first &&
                     index < program->sections[SECTION_REDUCE].first && program->micro_batches > 1;
        drop(program, index);
        if (again)
            snprintf(text, sizeof text, "rank %d in wait waits for rank %d", peer, rank);
        else
            snprintf(text, sizeof text, "rank %d never takes what rank %d sends it", rank, peer);
        check_deadlock(&world, seed, text);
    }
    world_destroy(&world);
}
END_TEST

START_TEST(a_collective_that_is_dropped_is_missed_by_its_group)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    int rank = 0, index = 0;
    char text[32];
    if (pick(&world, seed, is_collective, &rank, &index)) {
        drop(world.programs[rank], index);
        snprintf(text, sizeof text, "rank %d", rank);
        check_deadlock(&world, seed, text);
    }
    world_destroy(&world);
}
END_TEST

/* ---- planted deadlocks of known shape ---- */

static struct world plan_world(int stages, int axis, const char *role, int micro_batches,
                               const char *schedule)
{
    struct graph *graph = world_graph(4);
    return world_create(
        graph, engine_plan(graph, stages, &axis, axis > 1, &role, micro_batches, 2, schedule));
}

static int find_first(const struct program *program,
                      bool (*wanted)(const struct program *, const struct instruction *))
{
    int index = 0;
    while (!wanted(program, &program->instructions[index]))
        index++;
    return index;
}

static void swap_instructions(struct program *program, int a, int b)
{
    struct instruction kept = program->instructions[a];
    program->instructions[a] = program->instructions[b];
    program->instructions[b] = kept;
}

START_TEST(two_collectives_in_another_order_are_a_mismatch)
{
    struct world world = plan_world(1, 2, "tensor_seq", 1, "1f1b");
    struct program *program = world.programs[1];
    struct simulation simulation;
    struct error err;
    int first = find_first(program, is_collective), second = first;
    /* The next one of another kind. */
    do
        second++;
    while (!is_collective(program, &program->instructions[second]) ||
           program->instructions[second].collective.kind ==
               program->instructions[first].collective.kind);
    swap_instructions(program, first, second);
    ck_assert_int_eq(world_simulate(&world, PROGRAM_TRAIN, &plain_timing, NULL, &simulation, &err),
                     -EDEADLK);
    ck_assert_msg(strstr(err.text, "rank 1 comes to all_gather of"), "%s", err.text);
    ck_assert_msg(strstr(err.text, "rank 0 came to reduce_scatter of"), "%s", err.text);
    world_destroy(&world);
}
END_TEST

START_TEST(an_all_reduce_of_another_length_is_a_mismatch)
{
    struct world world = plan_world(1, 2, "tensor", 1, "1f1b");
    struct program *program = world.programs[1];
    int sum = program->sections[SECTION_FORWARD].first;
    while (!is_collective(program, &program->instructions[sum]))
        sum++;
    program->pieces[program->instructions[sum].piece_first].box.high[0]--;
    check_deadlock(&world, 0,
                   "rank 1 comes to all_reduce of 288 elements where rank 0 came to "
                   "all_reduce of 576");
    program->pieces[program->instructions[sum].piece_first].box.high[0]++;
    program->instructions[sum].collective.reduction = REDUCTION_MAX;
    check_deadlock(&world, 0, "rank 1 comes to all_reduce of 576");
    world_destroy(&world);
}
END_TEST

START_TEST(groups_met_in_another_order_wait_for_each_other)
{
    /* The all-reduce of both ranks' gradients, and the metrics' of all four ranks. */
    struct world world = plan_world(2, 2, "batch", 1, "1f1b");
    world_in_turn(&world);
    struct program *program = world.programs[3];
    int metrics = program->sections[SECTION_METRICS].first, gradients = metrics;
    while (!is_collective(program, &program->instructions[gradients]) || gradients == metrics)
        gradients--;
    swap_instructions(program, metrics, gradients);
    check_deadlock(&world, 0, "rank 2 in all_reduce waits for rank 3");
    check_deadlock(&world, 0, "rank 3 in all_reduce waits for rank 0, 1, 2");
    world_destroy(&world);
}
END_TEST

START_TEST(a_backward_before_its_forward_waits_for_itself_around_the_pipeline)
{
    struct world world = plan_world(2, 1, "batch", 2, "gpipe");
    struct event *events = world.programs[0]->events;
    struct event kept = events[0];
    events[0] = events[2];
    events[2] = kept;
    check_deadlock(&world, 0,
                   "rank 0 in receive waits for rank 1; rank 1 in receive waits for rank 0");
    world_destroy(&world);
}
END_TEST

START_TEST(a_send_without_its_wait_is_found)
{
    /* The buffer of the first micro-batch is written while the receiver has not taken it. */
    struct world world = plan_world(3, 1, "batch", 4, "gpipe");
    struct program *program = world.programs[0];
    int wait = program->sections[SECTION_FORWARD].first;
    while (program->instructions[wait].kind != INSTRUCTION_WAIT)
        wait++;
    drop(program, wait);
    check_deadlock(&world, 0, "rank 0 comes to send");
    world_destroy(&world);
}
END_TEST

START_TEST(a_message_of_another_length_is_found)
{
    struct world world = plan_world(2, 1, "batch", 1, "1f1b");
    struct program *program = world.programs[1];
    int receive = find_first(program, is_receive);
    program->pieces[program->instructions[receive].piece_first].box.high[0]--;
    check_deadlock(&world, 0, "rank 1 receives 864 elements where rank 0 sends it 888");
    world_destroy(&world);
}
END_TEST

/* ---- schedules ---- */

START_TEST(a_schedule_keeps_its_order_and_slots)
{
    const struct schedule *schedule = schedules[_i % 2];
    int stages = 1 + _i / 2 % 8, micro_batches = 1 + _i / 16;
    bool one = strcmp(schedule->name, "1f1b") == 0;
    struct event *events = xcalloc(2 * (size_t)micro_batches, sizeof *events);
    for (int stage = 0; stage < stages; stage++) {
        int holder[32], next[DIRECTIONS] = {0, 0}, flying = 0, most = 0;
        memset(holder, -1, sizeof holder);
        int slots = schedule_events(schedule, stage, stages, micro_batches, events);
        for (int i = 0; i < 2 * micro_batches; i++) {
            const struct event *event = &events[i];
            ck_assert_int_eq(event->micro_batch, next[event->direction]++);
            ck_assert_int_lt(event->slot, slots);
            if (event->direction == FORWARD) {
                ck_assert_int_eq(holder[event->slot], -1);
                holder[event->slot] = event->micro_batch;
                flying++;
            } else {
                ck_assert_int_eq(holder[event->slot], event->micro_batch);
                holder[event->slot] = -1;
                flying--;
            }
            most = flying > most ? flying : most;
        }
        int left = stages - stage;
        ck_assert_int_eq(flying, 0);
        ck_assert_int_eq(most, slots);
        ck_assert_int_eq(slots, one && left < micro_batches ? left : micro_batches);
    }
    free(events);
}
END_TEST

/* The first kernel of a stage's forward takes 1 s, that of its backward 2 s, all else nothing. */
#define FORWARD_S 1.0
#define BACKWARD_S 2.0

static double textbook_seconds(const void *context, const struct program *program,
                               const struct instruction *instruction)
{
    (void)context;
    if (instruction->kind != INSTRUCTION_KERNEL)
        return 0;
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        const struct instruction *at = &program->instructions[program->sections[section].first];
        while (at->kind != INSTRUCTION_KERNEL)
            at++;
        if (at == instruction)
            return section == SECTION_FORWARD ? FORWARD_S : BACKWARD_S;
    }
    return 0;
}

START_TEST(equal_stages_take_the_time_of_the_textbook)
{
    static const int stage_counts[] = {1, 2, 3, 4}, micro_batch_counts[] = {1, 2, 4, 8};
    int stages = stage_counts[_i % 4], micro_batches = micro_batch_counts[_i / 4 % 4];
    struct world world = plan_world(stages, 1, "batch", micro_batches, schedules[_i / 16]->name);
    struct timing timing = {NULL, textbook_seconds};
    struct simulation simulation;
    struct error err;
    double rounds = stages - 1 + micro_batches;
    ck_assert_int_eq(world_simulate(&world, PROGRAM_TRAIN, &timing, NULL, &simulation, &err), 0);
    ck_assert_double_eq_tol(simulation.step_s, rounds * (FORWARD_S + BACKWARD_S), 1e-9);
    /* The bubble: (P - 1) / (P - 1 + m). */
    ck_assert_double_eq_tol(simulation.exposed_s / simulation.step_s, (stages - 1) / rounds, 1e-9);
    ck_assert_int_eq(world_simulate(&world, PROGRAM_EVALUATE, &timing, NULL, &simulation, &err), 0);
    ck_assert_double_eq_tol(simulation.step_s, rounds * FORWARD_S, 1e-9);
    world_destroy(&world);
}
END_TEST

SUITE(simulate)
{
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 60);
    tcase_add_loop_test(random, a_random_plan_never_deadlocks, 0, test_share(25));
    tcase_add_loop_test(random, a_rank_stands_for_those_like_it, 0, test_share(120));
    TCase *planted = tcase_create("planted");
    tcase_set_timeout(planted, 60);
    tcase_add_loop_test(planted, a_send_that_is_dropped_is_missed_by_its_receiver, 0,
                        test_share(12));
    tcase_add_loop_test(planted, a_receive_that_is_dropped_is_missed_by_its_sender, 0,
                        test_share(12));
    tcase_add_loop_test(planted, a_collective_that_is_dropped_is_missed_by_its_group, 0,
                        test_share(12));
    tcase_add_test(planted, two_collectives_in_another_order_are_a_mismatch);
    tcase_add_test(planted, an_all_reduce_of_another_length_is_a_mismatch);
    tcase_add_test(planted, groups_met_in_another_order_wait_for_each_other);
    tcase_add_test(planted, a_backward_before_its_forward_waits_for_itself_around_the_pipeline);
    tcase_add_test(planted, a_send_without_its_wait_is_found);
    tcase_add_test(planted, a_message_of_another_length_is_found);
    TCase *order = tcase_create("schedules");
    tcase_add_loop_test(order, a_schedule_keeps_its_order_and_slots, 0, 2 * 8 * 16);
    tcase_add_loop_test(order, equal_stages_take_the_time_of_the_textbook, 0, 32);
    return suite_run("simulate", random, planted, order, NULL);
}
