/* test_copies.c - a process is killed anywhere while ranks copy their states, and what it leaves of
 * the copies is whole or not there at all: with it any one rank that is lost is done without, the
 * newest step that all have copied is the least that is gone on from, and every bit is right. */
#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/move/copies.h"
#include "worker/trainer/kept.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3
#define STEPS 4
#define EPOCH 7

static const struct job_model small = {
    .family = "gpt", .layers = 3, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};

/* A state of several messages; with the last tensor's, stages have different numbers of them. */
static const struct job_model larger = {
    .family = "gpt", .layers = 3, .hidden = 144, .heads = 4, .seq = 12, .vocab = 2400, .ffn = 288};

static struct graph *graph;
static struct plan *plan;
static int files[RANKS]; /* of the estates */

/* ---- who dies, and where ---- */

enum place { OWN, SENDING, RECEIVING, ARRIVED, PLACES };

static struct fate {
    enum place place;
    int rank, step;
    uint64_t page;           /* OWN: at this one of the state's memory */
    int message;             /* elsewhere: of those of this step */
    atomic_int taken[RANKS]; /* the newest step that a rank has copied */
} * fate;

static _Thread_local bool doomed;
static _Thread_local int messages; /* of this step, sent or received */

static void die_in(enum place place)
{
    if (doomed && fate->place == place && messages++ == fate->message)
        kill(getpid(), SIGKILL);
}

static int send_copy(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                     const void *source, size_t count, struct fabric_request **out,
                     struct error *err)
{
    die_in(SENDING);
    return collectives_local.send(fabric, peer, tag, element, source, count, out, err);
}

static int receive_copy(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                        void *destination, size_t count, struct error *err)
{
    if (doomed && fate->place == RECEIVING && messages == fate->message)
        memset(destination, 0xff, count * element_size(element) / 2);
    die_in(RECEIVING);
    int rc = collectives_local.receive(fabric, peer, tag, element, destination, count, err);
    die_in(ARRIVED);
    return rc;
}

static const struct collectives *mortal(void)
{
    static struct collectives library;
    library = collectives_local;
    library.send = send_copy;
    library.receive = receive_copy;
    return &library;
}

/* ---- states whose every element says what it is ---- */

/* Exact in an f32. */
static float element_of(uint64_t step, int tensor, int part, int64_t index)
{
    uint64_t mixed = hash_number(hash_number(HASH_START, step), (uint64_t)(tensor * 3 + part));
    return (float)((mixed + (uint64_t)index) % (1 << 24));
}

/* Of a slice's elements, in its whole tensor; yours. */
static int64_t *numbers_of(const struct state_slice *slice)
{
    const struct box *box = &slice->box, whole = tensor_box(&graph->tensors[slice->tensor], 0);
    int64_t *numbers = xcalloc((size_t)box_count(box), sizeof *numbers);
    for (int64_t i = 0; i < box_count(box); i++) {
        int64_t stride = 1, rest = i;
        for (int dim = box->dims - 1; dim >= 0; dim--) {
            int64_t size = box->high[dim] - box->low[dim];
            numbers[i] += (box->low[dim] + rest % size) * stride;
            rest /= size;
            stride *= whole.high[dim];
        }
    }
    return numbers;
}

static void write_state(const struct state_slice *slices, size_t count, uint64_t step)
{
    for (size_t i = 0; i < count; i++) {
        int64_t *numbers = numbers_of(&slices[i]);
        for (int part = 0; part < STATE_PARTS; part++)
            for (int64_t j = 0; j < box_count(&slices[i].box); j++)
                slices[i].parts[part][j] = element_of(step, slices[i].tensor, part, numbers[j]);
        free(numbers);
    }
}

/* How many of its elements are not as they were behind that step. */
static int64_t count_wrong(const struct state_slice *slice, uint64_t step)
{
    int64_t wrong = 0, *numbers = numbers_of(slice);
    for (int part = 0; part < STATE_PARTS; part++)
        for (int64_t i = 0; i < box_count(&slice->box); i++)
            wrong += slice->parts[part][i] != element_of(step, slice->tensor, part, numbers[i]);
    free(numbers);
    return wrong;
}

static void check_state(const struct state_slice *slices, size_t count, uint64_t step)
{
    for (size_t i = 0; i < count; i++) {
        int64_t wrong = count_wrong(&slices[i], step);
        ck_assert_msg(wrong == 0, "%ld elements of %s are not of step %lu", (long)wrong,
                      graph->tensors[slices[i].tensor].name, (unsigned long)step);
    }
}

/* ---- the ranks of a process that dies ---- */

struct state {
    struct program *program;
    char *memory;
    size_t bytes;
    struct state_slice *slices;
};

static void *buffer_of(void *context, int buffer)
{
    struct state *state = context;
    return state->memory + state->program->buffers[buffer].offset;
}

static void state_init(struct state *state, int rank)
{
    struct error err;
    ck_assert_int_eq(lower(graph, plan, rank, &state->program, &err), 0);
    state->bytes = state->program->bytes[REGION_STATE];
    state->memory =
        mmap(NULL, state->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(state->memory, MAP_FAILED);
    state->slices = state_slices(state->program, buffer_of, state);
}

static void state_finish(struct state *state)
{
    free(state->slices);
    munmap(state->memory, state->bytes);
    program_destroy(state->program);
}

static struct move_config meeting_of(const struct test_rank *rank, const struct state *state)
{
    return (struct move_config){
        .graph = graph,
        .program = state->program,
        .collectives = rank->library,
        .fabric = rank->fabric,
        .rank = rank->rank,
        .ranks = rank->count,
    };
}

/* Reading it from there on ends the process. */
static void take_away(const struct state *state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (state->bytes + page - 1) / page;
    mprotect(state->memory + fate->page % pages * page, page, PROT_NONE);
}

static void take(struct copies *copies, struct state *state, const struct test_rank *rank, int step)
{
    const struct standing standing = {.epoch = EPOCH, .step = (uint64_t)step};
    struct error err;
    write_state(state->slices, state->program->parameter_count, (uint64_t)step);
    doomed = rank->rank == fate->rank && step == fate->step;
    messages = 0;
    if (doomed && fate->place == OWN)
        take_away(state);
    pthread_barrier_wait(rank->barrier); /* as the sum that all wait for before they apply */
    ck_assert_int_eq(copies_take(copies, state->slices, &standing, &err), 0);
    atomic_store(&fate->taken[rank->rank], step);
}

/* Where ranks are, and what comes of it. */
struct housing {
    const char *nodes[RANKS];
    bool outlived;
    uint64_t bytes[RANKS]; /* out: of copies; 0: none are made */
};

/* A rank that has met the others. */
struct met {
    struct state state;
    struct estate *estate;
    struct move *move;
    struct copies *copies;
};

static void meet(struct met *met, const struct test_rank *rank, const struct housing *housing,
                 int file)
{
    struct error err;
    state_init(&met->state, rank->rank);
    const struct move_config meeting = meeting_of(rank, &met->state);
    ck_assert_int_eq(estate_open(file, &met->estate, &err), 0);
    ck_assert_int_eq(move_meet(&meeting, &met->move, &err), 0);
    const struct copies_config config = {.fabric = rank->fabric,
                                         .plan = plan,
                                         .nodes = housing->nodes,
                                         .outlived = housing->outlived,
                                         .estate = met->estate,
                                         .epoch = EPOCH};
    ck_assert_int_eq(copies_create(met->move, &config, &met->copies, &err), 0);
}

static void copy_as_rank(struct test_rank *rank)
{
    const struct housing apart = {.nodes = {"a", "b", "c"}};
    struct met met;
    meet(&met, rank, &apart, dup(files[rank->rank]));
    ck_assert_ptr_nonnull(met.copies);
    for (int step = 0; step < STEPS; step++)
        take(met.copies, &met.state, rank, step);
    pthread_barrier_wait(rank->barrier);
    raise(SIGKILL); /* whoever was not hit before */
}

static void copy_and_die(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        test_ranks_run(mortal(), RANKS, 20, copy_as_rank, NULL);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}

/* ---- their successors ---- */

static void check_held(const struct move_held *held, size_t count)
{
    uint64_t ages[STEPS] = {0}, differ = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(held[i].age.epoch, EPOCH);
        ck_assert_uint_lt(held[i].age.step, STEPS);
        differ += ages[held[i].age.step]++ == 0;
        check_state(held[i].slices, held[i].slice_count, held[i].age.step);
    }
    ck_assert_uint_ge(differ, 1);
    ck_assert_uint_le(differ, COPIES_SLOTS);
}

static uint64_t least_taken(void)
{
    int least = fate->taken[0];
    for (int i = 1; i < RANKS; i++)
        least = fate->taken[i] < least ? fate->taken[i] : least;
    return (uint64_t)least;
}

/* The rank that is lost has nothing any more, and wants as much as before. */
static void go_on_as_rank(struct test_rank *rank)
{
    const int *lost = rank->argument;
    const struct update_rule rule = {.graph = graph};
    struct kept kept = {0};
    struct state state;
    struct move *move;
    struct error err;
    uint64_t bytes;
    size_t count;
    ck_assert_int_eq(kept_open(&kept, dup(files[rank->rank]), &rule, &err), 0);
    struct move_held *held = kept_describe(&kept, &count);
    check_held(held, count);
    state_init(&state, rank->rank);
    struct move_config meeting = meeting_of(rank, &state);
    meeting.held = held;
    meeting.held_count = rank->rank == *lost ? 0 : count;
    ck_assert_int_eq(move_meet(&meeting, &move, &err), 0);
    const struct move_decision *decision = move_decided(move);
    ck_assert_int_eq(decision->source, MOVE_MEMORY);
    ck_assert_uint_ge(decision->age.step, least_taken());
    ck_assert_int_eq(move_fill(move, buffer_of, &state, &bytes, &err), 0);
    check_state(state.slices, state.program->parameter_count, decision->age.step);
    move_destroy(move);
    state_finish(&state);
    free(held);
    kept_close(&kept);
}

/* ---- tests ---- */

/* Stages, or one that shards all of its state. */
static struct plan *division(bool shards)
{
    struct plan *made = shards ? engine_plan(graph, 1, (int[]){RANKS}, 1, (const char *[]){"batch"},
                                             1, 2 * RANKS, "1f1b")
                               : engine_plan(graph, RANKS, (int[]){1}, 0, NULL, 1, 2, "1f1b");
    for (size_t i = 0; shards && i < graph->block_count; i++)
        made->blocks[i].zero = 3;
    return made;
}

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &graph, &err), 0);
    fate = mmap(NULL, sizeof *fate, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(fate, MAP_FAILED);
    for (int i = 0; i < RANKS; i++)
        ck_assert_int_ge(files[i] = memfd_create("test", MFD_CLOEXEC), 0);
}

static void teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        close(files[i]);
    munmap(fate, sizeof *fate);
    plan_destroy(plan);
    graph_destroy(graph);
}

START_TEST(a_killed_process_leaves_copies_that_are_whole)
{
    struct error err;
    uint64_t seed = test_seed() + (uint64_t)_i;
    bool several = _i % 4 == 0;
    if (several) {
        graph_destroy(graph);
        ck_assert_int_eq(model_build(&larger, ELEMENT_F32, &graph, &err), 0);
    }
    plan = division(random_below(seed, 0, 0, 2) == 1);
    *fate = (struct fate){
        .place = (enum place)random_below(seed, 0, 1, PLACES),
        .rank = (int)random_below(seed, 0, 2, RANKS),
        .step = 1 + (int)random_below(seed, 0, 3, STEPS - 1),
        .page = random_below(seed, 0, 4, 1 << 20),
        .message = several ? (int)random_below(seed, 0, 5, 2) : 0,
    };
    copy_and_die();
    for (int lost = 0; lost < RANKS; lost++)
        test_ranks_run(&collectives_local, RANKS, 20, go_on_as_rank, &lost);
}
END_TEST

static void weigh_as_rank(struct test_rank *rank)
{
    struct housing *housing = rank->argument;
    struct met met;
    meet(&met, rank, housing, -1);
    housing->bytes[rank->rank] = met.copies ? copies_bytes(met.copies) : 0;
    copies_destroy(met.copies);
    move_destroy(met.move);
    estate_close(met.estate);
    state_finish(&met.state);
}

/* With the node all is lost, whoever has copies on it; and a state that the worker has needs none
 * when a process dies. */
START_TEST(ranks_on_one_node_copy_only_what_dies_with_one_of_them)
{
    struct housing apart = {.nodes = {"a", "b", "c"}, .outlived = true};
    struct housing mortal_ranks = {.nodes = {"a", "a", "a"}, .outlived = false};
    struct housing together = {.nodes = {"a", "a", "a"}, .outlived = true};
    plan = division(_i == 1);
    test_ranks_run(&collectives_local, RANKS, 20, weigh_as_rank, &apart);
    test_ranks_run(&collectives_local, RANKS, 20, weigh_as_rank, &mortal_ranks);
    test_ranks_run(&collectives_local, RANKS, 20, weigh_as_rank, &together);
    for (int rank = 0; rank < RANKS; rank++) {
        ck_assert_uint_gt(apart.bytes[rank], 0);
        ck_assert_uint_eq(mortal_ranks.bytes[rank], apart.bytes[rank]);
        ck_assert_uint_eq(together.bytes[rank], 0);
    }
}
END_TEST

/* A shard is on one node only, also where its node has another rank. */
START_TEST(only_what_a_single_node_has_is_copied)
{
    struct housing housing = {.nodes = {"a", "a", "b"}, .outlived = true};
    plan =
        engine_plan(graph, 1, (int[]){RANKS}, 1, (const char *[]){"batch"}, 1, 2 * RANKS, "1f1b");
    test_ranks_run(&collectives_local, RANKS, 20, weigh_as_rank, &housing);
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert_uint_eq(housing.bytes[rank], 0);
    plan_destroy(plan);
    plan = division(true);
    test_ranks_run(&collectives_local, RANKS, 20, weigh_as_rank, &housing);
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert_uint_gt(housing.bytes[rank], 0);
}
END_TEST

SUITE(copies)
{
    TCase *tcase = tcase_create("copies");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_killed_process_leaves_copies_that_are_whole, 0, test_share(60));
    tcase_add_loop_test(tcase, ranks_on_one_node_copy_only_what_dies_with_one_of_them, 0, 2);
    tcase_add_test(tcase, only_what_a_single_node_has_is_copied);
    return suite_run("copies", tcase, NULL);
}
