/* test_arena.c - where a program's buffers lie, and that its hash sees everything executed. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

/* ---- lifetimes, from the instructions alone ---- */

struct life {
    int first, last; /* instructions that touch it; first -1: none does */
};

static void live(struct life *life, int index)
{
    life->first = life->first < 0 ? index : life->first;
    life->last = index;
}

static struct life *lives_of(const struct program *program)
{
    struct life *lives = xcalloc(program->buffer_count, sizeof *lives);
    for (size_t i = 0; i < program->buffer_count; i++)
        lives[i].first = -1;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        const struct piece *pieces = program_pieces(program, instruction);
        for (int j = 0; j < instruction->piece_count; j++)
            if (pieces[j].buffer >= 0)
                live(&lives[pieces[j].buffer], (int)i);
        if (instruction->kind == INSTRUCTION_KERNEL && instruction->kernel.workspace >= 0)
            live(&lives[instruction->kernel.workspace], (int)i);
    }
    return lives;
}

static int section_at(const struct program *program, int index)
{
    for (int section = 0; section < SECTIONS; section++)
        if (index >= program->sections[section].first &&
            index < program->sections[section].first + program->sections[section].count)
            return section;
    return -1;
}

/* What is not in one section must outlive it: saved from forward to backward, else state. */
static void check_region(const struct program *program, const struct buffer *buffer,
                         const struct life *life)
{
    int first = section_at(program, life->first), last = section_at(program, life->last);
    if (buffer->region == REGION_TRANSIENT)
        ck_assert_int_eq(first, last);
    if (buffer->region == REGION_SAVED)
        ck_assert(first == SECTION_FORWARD && last == SECTION_BACKWARD);
    uint64_t room =
        buffer->region == REGION_SAVED ? program->slot_bytes : program->bytes[buffer->region];
    ck_assert_uint_le(buffer->offset + buffer->bytes, room);
}

static bool share_memory(const struct buffer *a, const struct buffer *b)
{
    return a->region == b->region && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static void check_apart(const struct program *program, const struct life *lives, size_t a, size_t b,
                        uint64_t seed)
{
    const struct buffer *first = &program->buffers[a], *second = &program->buffers[b];
    if (!share_memory(first, second))
        return;
    /* Only transients may, and only one after the other; and what is beside computing, if its room
     * is over when the other one begins (test_queues.c: and waited for). */
    bool apart = lives[a].last < lives[b].first || lives[b].last < lives[a].first;
    bool beside = first->beside && second->beside && first->room_first != second->room_first;
    ck_assert_msg((first->region == REGION_TRANSIENT || beside) && apart,
                  "seed %lu, rank %d: buffers %zu (%d to %d) and %zu (%d to %d) lie on each other",
                  (unsigned long)seed, program->rank, a, lives[a].first, lives[a].last, b,
                  lives[b].first, lives[b].last);
}

START_TEST(buffers_that_live_together_lie_apart)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    for (int rank = 0; rank < world.ranks; rank++) {
        const struct program *program = world.programs[rank];
        struct life *lives = lives_of(program);
        for (size_t a = 0; a < program->buffer_count; a++) {
            if (lives[a].first < 0)
                continue;
            check_region(program, &program->buffers[a], &lives[a]);
            for (size_t b = 0; b < a; b++)
                if (lives[b].first >= 0)
                    check_apart(program, lives, a, b, seed);
        }
        ck_assert_uint_eq(program->bytes[REGION_SAVED],
                          program->slot_bytes * (uint64_t)program->slots);
        free(lives);
    }
    world_destroy(&world);
}
END_TEST

START_TEST(every_buffer_is_of_use)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    for (int rank = 0; rank < world.ranks; rank++) {
        const struct program *program = world.programs[rank];
        struct life *lives = lives_of(program);
        for (size_t i = 0; i < program->parameter_count; i++) {
            const struct parameter *parameter = &program->parameters[i];
            live(&lives[parameter->master], 0);
            live(&lives[parameter->first], 0);
            live(&lives[parameter->second], 0);
        }
        for (size_t i = 0; i < program->buffer_count; i++)
            ck_assert_msg(lives[i].first >= 0 || program->buffers[i].bytes == 0,
                          "seed %lu, rank %d: nobody touches buffer %zu of %lu bytes",
                          (unsigned long)seed, rank, i, (unsigned long)program->buffers[i].bytes);
        free(lives);
    }
    world_destroy(&world);
}
END_TEST

START_TEST(a_piece_lies_inside_its_buffer)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world world = world_random(seed);
    for (int rank = 0; rank < world.ranks; rank++) {
        const struct program *program = world.programs[rank];
        for (size_t i = 0; i < program->piece_count; i++) {
            const struct piece *piece = &program->pieces[i];
            if (piece->buffer < 0)
                continue;
            int64_t end = piece->offset + box_count(&piece->box);
            ck_assert(piece->offset >= 0);
            ck_assert_msg((uint64_t)end * ELEMENT_BYTES <= program->buffers[piece->buffer].bytes,
                          "seed %lu, rank %d, piece %zu ends at element %ld of %lu bytes",
                          (unsigned long)seed, rank, i, (long)end,
                          (unsigned long)program->buffers[piece->buffer].bytes);
        }
    }
    world_destroy(&world);
}
END_TEST

/* ---- additivity ---- */

/* On one stage of 2 x 2, four micro-batches; layers have one of two vectors of roles. */
static void measure(const char *family, const char *kinds, const struct role *const vectors[2][2],
                    uint64_t bytes[REGIONS])
{
    static const char *const plain[] = {"batch", "batch"};
    int layers = (int)strlen(kinds);
    struct graph *graph = world_graph_of(family, layers);
    struct plan *plan = engine_plan(graph, 1, (int[]){2, 2}, 2, plain, 2, 4, "gpipe");
    for (int i = 0; i < layers; i++)
        for (int axis = 0; axis < 2; axis++)
            plan->blocks[1 + i].roles[axis] = vectors[kinds[i] - 'A'][axis];
    struct world world = world_create(graph, plan);
    memcpy(bytes, world.programs[1]->bytes, REGIONS * sizeof *bytes);
    world_destroy(&world);
}

/* Blocks of gpt pass on one tensor in backward, of bert two. */
static void check_sums(const char *family, const struct role *const vectors[2][2])
{
    uint64_t two[REGIONS], three[REGIONS], four[REGIONS], mixed[REGIONS], longer[REGIONS];
    measure(family, "AA", vectors, two);
    measure(family, "AAA", vectors, three);
    measure(family, "AAAA", vectors, four);
    measure(family, "AABB", vectors, mixed);
    measure(family, "AAABB", vectors, longer);
    for (int region = 0; region < REGIONS; region++) {
        uint64_t layer = region == REGION_TRANSIENT ? 0 : three[region] - two[region];
        ck_assert_uint_eq(four[region] - three[region], layer);
        ck_assert_uint_eq(longer[region] - mixed[region], layer);
    }
}

START_TEST(a_region_is_the_sum_over_its_blocks)
{
    /* 36 vectors for A, and for each another one for B. */
    const struct role *vectors[2][2] = {{roles[_i % 6], roles[_i / 6]},
                                        {roles[(_i + 1 + _i / 6) % 6], roles[(_i / 6 + _i) % 6]}};
    check_sums("gpt", vectors);
    check_sums("bert", vectors);
}
END_TEST

/* ---- the hash ---- */

static uint64_t unchanged; /* of the program that fields are changed of */

/* Flip the lowest bit of a field: the hash must see it. */
static void check_seen(struct program *program, void *field, const char *what, int index)
{
    unsigned char *byte = field;
    *byte ^= 1;
    uint64_t changed = program_hash(program);
    *byte ^= 1;
    ck_assert_msg(changed != unchanged, "another %s of %d is not seen", what, index);
}

static void check_instruction_seen(struct program *program, int index)
{
    struct instruction *instruction = &program->instructions[index];
    struct group *group;
    check_seen(program, &instruction->queue, "queue", index);
    if (instruction->wait_count > 0)
        check_seen(program, &program->waits[instruction->wait_first], "wait", index);
    switch (instruction->kind) {
    case INSTRUCTION_KERNEL:
        check_seen(program, &instruction->kernel.node, "node", index);
        check_seen(program, &instruction->kernel.phase, "phase", index);
        check_seen(program, &instruction->kernel.direction, "direction", index);
        check_seen(program, &instruction->kernel.accumulate, "accumulate", index);
        check_seen(program, &instruction->kernel.once, "once", index);
        if (instruction->kernel.workspace >= 0)
            check_seen(program, &program->buffers[instruction->kernel.workspace].offset,
                       "workspace", index);
        break;
    case INSTRUCTION_COPY:
        check_seen(program, &instruction->part.low[0], "part", index);
        break;
    case INSTRUCTION_COLLECTIVE:
        group = &program->groups[instruction->collective.group];
        /* Only to a kind with fewer counts: the program has no more. */
        if (instruction->collective.kind == COLLECTIVE_REDUCE_SCATTER ||
            instruction->collective.kind == COLLECTIVE_ALL_TO_ALL)
            check_seen(program, &instruction->collective.kind, "collective", index);
        check_seen(program, &instruction->collective.reduction, "reduction", index);
        check_seen(program, &group->ranks[group->count - 1], "group", index);
        if (instruction->collective.kind != COLLECTIVE_ALL_REDUCE)
            check_seen(program, &program->counts[instruction->collective.counts_first], "count",
                       index);
        break;
    case INSTRUCTION_SEND:
    case INSTRUCTION_WAIT:
    case INSTRUCTION_RECEIVE:
        check_seen(program, &instruction->message.peer, "peer", index);
        check_seen(program, &instruction->message.tag, "tag", index);
        break;
    case INSTRUCTION_SQUARE_SUM:
    case INSTRUCTION_UPDATE:
        check_seen(program, &instruction->parameter, "parameter", index);
        break;
    default:
        break;
    }
}

static void check_parts_seen(struct program *program)
{
    for (size_t i = 0; i < program->piece_count; i++) {
        struct piece *piece = &program->pieces[i];
        check_seen(program, &piece->operand, "operand", (int)i);
        if (piece->buffer >= 0)
            check_seen(program, &piece->offset, "offset", (int)i);
        if (piece->box.dims > 0)
            check_seen(program, &piece->box.high[piece->box.dims - 1], "box", (int)i);
    }
    for (int i = 0; i < program->event_count; i++) {
        check_seen(program, &program->events[i].direction, "event's direction", i);
        check_seen(program, &program->events[i].micro_batch, "event's micro-batch", i);
        check_seen(program, &program->events[i].slot, "event's slot", i);
    }
    for (size_t i = 0; i < program->parameter_count; i++) {
        struct parameter *parameter = &program->parameters[i];
        check_seen(program, &parameter->tensor, "tensor", (int)i);
        check_seen(program, &parameter->box.high[0], "parameter's box", (int)i);
        check_seen(program, &program->buffers[parameter->master].offset, "master", (int)i);
        check_seen(program, &program->buffers[parameter->first].offset, "first moment", (int)i);
        check_seen(program, &program->buffers[parameter->second].offset, "second moment", (int)i);
    }
    for (int i = 0; i < SECTIONS; i++)
        check_seen(program, &program->sections[i].count, "length", i);
    for (int i = 0; i < REGIONS; i++)
        check_seen(program, &program->bytes[i], "region", i);
    check_seen(program, &program->slot_bytes, "slot", 0);
    check_seen(program, &program->samples, "samples", 0);
    check_seen(program, &program->buffers[program->metrics].offset, "metrics", 0);
}

START_TEST(the_hash_sees_whatever_is_executed)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct graph *graph = world_graph(1);
    struct world world = world_create(graph, engine_plan_random(graph, seed, 12, 8));
    struct program *program = world.programs[random_below(seed, 9, 0, (uint64_t)world.ranks)];
    unchanged = program_hash(program);
    for (size_t i = 0; i < program->instruction_count; i++)
        check_instruction_seen(program, (int)i);
    check_parts_seen(program);
    world_destroy(&world);
}
END_TEST

START_TEST(the_hash_sees_the_model)
{
    struct world world = world_random(test_seed());
    struct program *program = world.programs[0];
    struct graph *graph = world.graph;
    unchanged = program_hash(program);
    for (size_t n = 0; n < graph->node_count; n++) {
        check_seen(program, &graph->nodes[n].epsilon, "epsilon", (int)n);
        struct rotation *rotation = &graph->nodes[n].rotation;
        check_seen(program, &rotation->base, "base", (int)n);
        check_seen(program, &rotation->factor, "factor", (int)n);
        check_seen(program, &rotation->low, "low", (int)n);
        check_seen(program, &rotation->high, "high", (int)n);
        check_seen(program, &rotation->places, "places", (int)n);
    }
    for (size_t t = 0; t < graph->tensor_count; t++) {
        check_seen(program, &graph->tensors[t].decays, "decay", (int)t);
        check_seen(program, &graph->tensors[t].targets, "target", (int)t);
        check_seen(program, &graph->tensors[t].kind, "kind", (int)t);
        check_seen(program, &graph->tensors[t].initializer.mean, "mean", (int)t);
        check_seen(program, &graph->tensors[t].initializer.deviation, "deviation", (int)t);
    }
    world_destroy(&world);
}
END_TEST

START_TEST(a_plan_lowered_twice_has_the_same_hash_and_no_rank_anothers)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct world first = world_random(seed), second = world_random(seed);
    for (int a = 0; a < first.ranks; a++) {
        uint64_t hash = program_hash(first.programs[a]);
        ck_assert_uint_eq(hash, program_hash(second.programs[a]));
        for (int b = 0; b < a; b++)
            ck_assert_uint_ne(hash, program_hash(first.programs[b]));
    }
    world_destroy(&first);
    world_destroy(&second);
}
END_TEST

SUITE(arena)
{
    TCase *layout = tcase_create("layout");
    tcase_set_timeout(layout, 60);
    tcase_add_loop_test(layout, buffers_that_live_together_lie_apart, 0, test_share(20));
    tcase_add_loop_test(layout, a_piece_lies_inside_its_buffer, 0, test_share(10));
    tcase_add_loop_test(layout, every_buffer_is_of_use, 0, test_share(10));
    tcase_add_loop_test(layout, a_region_is_the_sum_over_its_blocks, 0, 36);
    TCase *hash = tcase_create("hash");
    tcase_set_timeout(hash, 60);
    tcase_add_loop_test(hash, the_hash_sees_whatever_is_executed, 0, test_share(3));
    tcase_add_test(hash, the_hash_sees_the_model);
    tcase_add_loop_test(hash, a_plan_lowered_twice_has_the_same_hash_and_no_rank_anothers, 0,
                        test_share(6));
    return suite_run("arena", layout, hash, NULL);
}
