/* test_move.c - a training whose epoch broke goes on from what is left of it in memory, under
 * whatever plan, as if nothing had happened: no step lost, and none applied twice. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/move/copies.h"
#include "worker/trainer/kept.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS_MAX 8
#define HELD_MAX 128
#define STEPS 7
#define BROKEN 3 /* so many steps are finished when the epoch breaks */
#define BATCH 8
#define LOSS_LIMIT 1e-5 /* relative */

static const struct job_model small = {
    .family = "gpt", .layers = 3, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};

static struct graph *graph;

/* How the metrics of the step behind BROKEN reach the ranks: all of them, only those with even
 * numbers, or none. */
enum ending { ALL_KNOW, SOME_KNOW, NONE_KNOWS };

/* An epoch: its plan, and what its ranks leave. */
struct epoch {
    const struct plan *plan;
    uint64_t number;
    int first, last; /* steps */
    enum ending ending;
    double loss[STEPS];
    struct kept left[RANKS_MAX];
    struct copies *copies[RANKS_MAX];
    const struct epoch *before; /* NULL: it begins from the seed */
    bool gone[RANKS_MAX];       /* ranks of the epoch before that died */
    struct move_decision decision;
    const struct move_age *disk; /* NULL: there is no checkpoint */
    int copy_every;              /* 0: no copies are made */
};

/* As prepared, and as a successor applies what is armed. */
static const struct optimizer optimizer = {
    .rate = 1e-2, .steps = 100, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 1};

static struct update_rule rule(void)
{
    return (struct update_rule){&device_plain, &optimizer, graph};
}

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &graph, &err), 0);
}

static void teardown(void)
{
    graph_destroy(graph);
}

static void fill(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out)
{
    (void)context, (void)kind;
    for (int64_t sample = box->low[0]; sample < box->high[0]; sample++)
        for (int64_t place = box->low[1]; place < box->high[1]; place++)
            *out++ = (int32_t)random_below(1, tensor->targets,
                                           (first + (uint64_t)sample) * 64 + (uint64_t)place, 36);
}

static double targets(const void *context, enum program_kind kind, uint64_t first, uint64_t samples)
{
    (void)context, (void)kind, (void)first;
    return (double)samples * 12;
}

static void *buffer_of(void *in, int buffer)
{
    return interpreter_buffer(in, buffer);
}

/* ---- collectives that break when the metrics are known to some ---- */

static _Thread_local bool breaks;

static int all_reduce(struct fabric_group *group, enum element element, void *data, size_t count,
                      enum reduction reduction, struct error *err)
{
    int rc = collectives_local.all_reduce(group, element, data, count, reduction, err);
    if (rc < 0 || count != METRICS || !breaks)
        return rc;
    memset(data, 0xff, count * element_size(element));
    return error_set(err, -ECONNRESET, "broken by the test");
}

static const struct collectives *breaking(void)
{
    static struct collectives library;
    library = collectives_local;
    library.all_reduce = all_reduce;
    return &library;
}

/* ---- an epoch ---- */

/* What a rank of the new epoch has of the old one: what those of its ranks had that fall to it. */
struct having {
    struct move_held all[HELD_MAX];
    struct holding *holdings[HELD_MAX]; /* NULL: a copy */
    size_t count;
};

static void have(const struct epoch *epoch, int rank, struct having *having)
{
    for (int i = rank; i < plan_ranks(epoch->before->plan); i += plan_ranks(epoch->plan)) {
        const struct kept *left = &epoch->before->left[i];
        size_t count;
        if (epoch->gone[i])
            continue;
        struct move_held *held = kept_describe(left, &count);
        for (size_t j = 0; j < count; j++) {
            having->holdings[having->count] = j == 0 ? left->epochs[0].state.holding : NULL;
            having->all[having->count++] = held[j];
        }
        free(held);
    }
}

/* One rank tells of the decision, which all have come to. */
static int take_over(struct epoch *epoch, const struct test_rank *rank, struct move *move,
                     const struct having *having, struct interpreter *in, struct error *err)
{
    const struct move_decision *decision = move_decided(move);
    const struct update_rule by = rule();
    uint64_t bytes;
    if (rank->rank == 0)
        epoch->decision = *decision;
    for (size_t i = 0; i < having->count; i++)
        if (move_must_apply(move, i))
            update_holding(&by, having->holdings[i], decision->metrics);
    return decision->source == MOVE_MEMORY ? move_fill(move, buffer_of, in, &bytes, err) : 0;
}

static int gather(struct epoch *epoch, const struct test_rank *rank, struct interpreter *in,
                  struct error *err)
{
    struct having *having = xcalloc(1, sizeof *having);
    const char *const *nodes = (const char *const[]){"a", "b", "c", "d", "e", "f", "g", "h"};
    struct move *move = NULL;
    if (epoch->before)
        have(epoch, rank->rank, having);
    struct move_config config = {
        .graph = graph,
        .program = interpreter_program(in),
        .rank = rank->rank,
        .ranks = rank->count,
        .collectives = rank->library,
        .fabric = rank->count > 1 ? rank->fabric : NULL,
        .held = having->all,
        .held_count = having->count,
        .has_disk = epoch->disk != NULL,
    };
    if (epoch->disk)
        config.disk = *epoch->disk;
    int rc = move_meet(&config, &move, err);
    if (rc == 0)
        rc = take_over(epoch, rank, move, having, in, err);
    if (rc == 0 && epoch->copy_every)
        rc = copies_create(move,
                           &(struct copies_config){.fabric = rank->fabric,
                                                   .plan = epoch->plan,
                                                   .nodes = nodes,
                                                   .outlived = true,
                                                   .estate = epoch->left[rank->rank].estate,
                                                   .epoch = epoch->number},
                           &epoch->copies[rank->rank], err);
    move_destroy(move);
    free(having);
    return rc;
}

static int copy(struct epoch *epoch, int rank, struct interpreter *in, struct error *err)
{
    struct copies *copies = epoch->copies[rank];
    const struct standing *standing = interpreter_standing(in);
    if (!copies || standing->step % (uint64_t)epoch->copy_every != 0)
        return 0;
    struct state_slice *slices = state_slices(interpreter_program(in), buffer_of, in);
    int rc = copies_take(copies, slices, standing, err);
    free(slices);
    return rc;
}

static int train(struct epoch *epoch, const struct test_rank *rank, struct interpreter *in,
                 struct error *err)
{
    const struct move_decision *decision = &epoch->decision;
    struct standing standing = {.epoch = decision->age.epoch,
                                .step = decision->age.step,
                                .has_metrics = decision->has_metrics};
    struct step_result result;
    memcpy(standing.metrics, decision->metrics, sizeof standing.metrics);
    interpreter_publish(in, &standing);
    int rc = copy(epoch, rank->rank, in, err);
    for (int step = (int)standing.step; step < epoch->last && rc == 0; step++) {
        bool last = step == epoch->last - 1;
        breaks = last && (epoch->ending == NONE_KNOWS ||
                          (epoch->ending == SOME_KNOW && rank->rank % 2 == 1));
        rc = interpreter_run(in, PROGRAM_TRAIN, (uint64_t)step, &result, err);
        if (rc < 0)
            return breaks ? 0 : rc;
        if (rank->rank == 0)
            epoch->loss[step] = result.loss;
        rc = copy(epoch, rank->rank, in, err);
    }
    return interpreter_quiesce(in, err);
}

/* As if its process had ended: a successor opens the same file. */
static int inherit(struct kept *kept, int fd, struct error *err)
{
    const struct update_rule by = rule();
    kept_close(kept);
    int rc = kept_open(kept, fd, &by, err);
    ck_assert(kept->inherited);
    return rc;
}

/* What it was, is left; those with odd numbers die, and only their files are left. */
static int leave(struct epoch *epoch, int rank, struct interpreter *in, int fd, struct error *err)
{
    struct kept *kept = &epoch->left[rank];
    struct holding *holding = interpreter_leave(in), *copies[COPIES_SLOTS];
    int count = copies_leave(epoch->copies[rank], copies);
    interpreter_release(in);
    if (holding)
        kept_add(kept, holding);
    for (int i = 0; i < count; i++)
        kept_add(kept, copies[i]);
    if (holding && rank % 2 == 1)
        return inherit(kept, fd, err);
    close(fd);
    return 0;
}

static void run_rank(struct test_rank *rank)
{
    struct epoch *epoch = rank->argument;
    struct kept *kept = &epoch->left[rank->rank];
    struct program *program = NULL;
    struct interpreter *in = NULL;
    struct error err = {""};
    int fd = memfd_create("test", MFD_CLOEXEC), again = dup(fd);
    static const struct feed feed = {NULL, fill, targets};
    const struct update_rule by = rule();
    struct interpreter_config config = {
        .device = &device_plain,
        .collectives = rank->library,
        .fabric = rank->fabric,
        .feed = &feed,
        .optimizer = optimizer,
        .epoch = epoch->number,
    };
    int rc = kept_open(kept, fd, &by, &err);
    config.estate = kept->estate;
    if (rc == 0)
        rc = lower(graph, epoch->plan, rank->rank, &program, &err);
    if (rc == 0)
        rc = interpreter_prepare(program, &config, &in, &err);
    if (rc == 0)
        rc = gather(epoch, rank, in, &err);
    pthread_barrier_wait(rank->barrier); /* the decision is told */
    if (!epoch->before && rc == 0)
        interpreter_initialize(in, 11);
    if (rc == 0 && (!epoch->before || epoch->decision.source == MOVE_MEMORY))
        rc = train(epoch, rank, in, &err);
    if (rc == 0)
        rc = leave(epoch, rank->rank, in, again, &err);
    program_destroy(program);
    if (rc < 0) {
        fprintf(stderr, "rank %d of epoch %lu: %s\n", rank->rank, (unsigned long)epoch->number,
                err.text);
        abort();
    }
    pthread_barrier_wait(rank->barrier); /* nobody closes while others finish */
}

static void run(struct epoch *epoch)
{
    test_ranks_run(breaking(), plan_ranks(epoch->plan), 20, run_rank, epoch);
}

static void finish(struct epoch *epoch)
{
    for (int i = 0; i < plan_ranks(epoch->plan); i++)
        kept_close(&epoch->left[i]);
}

/* ---- tests ---- */

/* An epoch breaks in the step behind BROKEN, another one goes on; the worst relative difference of
 * its losses to those of a run that did not break. */
static double go_on(uint64_t seed, enum ending ending, uint64_t *step)
{
    struct plan *plan = engine_plan_random(graph, seed, RANKS_MAX, BATCH);
    struct plan *other = engine_plan_random(graph, seed + 1, RANKS_MAX, BATCH);
    struct epoch whole = {.plan = plan, .number = 1, .last = STEPS};
    struct epoch first = {.plan = plan, .number = 1, .last = BROKEN + 1, .ending = ending};
    struct epoch second = {.plan = other, .number = 2, .last = STEPS, .before = &first};
    double worst = 0;
    run(&whole);
    run(&first);
    run(&second);
    ck_assert_int_eq(second.decision.source, MOVE_MEMORY);
    *step = second.decision.age.step;
    for (int i = (int)*step; i < STEPS; i++) {
        double difference = fabs(second.loss[i] - whole.loss[i]) / whole.loss[i];
        worst = difference > worst || isnan(difference) ? difference : worst;
    }
    finish(&whole);
    finish(&first);
    finish(&second);
    plan_destroy(plan);
    plan_destroy(other);
    return worst;
}

static void goes_on(uint64_t seed, enum ending ending, uint64_t step)
{
    uint64_t decided;
    double difference = go_on(seed, ending, &decided);
    ck_assert_uint_eq(decided, step);
    ck_assert_msg(difference <= LOSS_LIMIT, "seed %lu: it differs by %g", (unsigned long)seed,
                  difference);
}

START_TEST(any_plan_goes_on_from_the_memory_of_any_other)
{
    goes_on(test_seed() + 2 * (uint64_t)_i, ALL_KNOW, BROKEN + 1);
}
END_TEST

/* One rank alone knows what it needs to know, and has no others to lose. */
START_TEST(a_step_that_some_ranks_have_applied_is_applied_by_the_others)
{
    goes_on(test_seed() + 1000 + 2 * (uint64_t)_i, SOME_KNOW, BROKEN + 1);
}
END_TEST

static struct plan *stages(int count, int micro_batches)
{
    return engine_plan(graph, count, (int[]){1}, 0, NULL, micro_batches, BATCH, "1f1b");
}

static struct plan *replicas(int count)
{
    return engine_plan(graph, 1, (int[]){count}, 1, (const char *[]){"batch"}, 1, BATCH, "1f1b");
}

START_TEST(a_step_that_no_rank_has_applied_is_done_again)
{
    struct plan *plan = replicas(2);
    struct epoch first = {.plan = plan, .number = 1, .last = BROKEN + 1, .ending = NONE_KNOWS};
    struct epoch second = {.plan = plan, .number = 2, .last = STEPS, .before = &first};
    run(&first);
    run(&second);
    ck_assert_int_eq(second.decision.source, MOVE_MEMORY);
    ck_assert_uint_eq(second.decision.age.step, BROKEN);
    ck_assert_uint_eq(second.decision.age.epoch, 1);
    finish(&first);
    finish(&second);
    plan_destroy(plan);
}
END_TEST

/* The rank that is armed needs the metrics of one that has applied the step, and that one died. */
START_TEST(a_step_that_only_the_dead_have_applied_is_done_again)
{
    struct plan *plan = replicas(2);
    struct epoch first = {.plan = plan, .number = 1, .last = BROKEN + 1, .ending = SOME_KNOW};
    struct epoch second = {
        .plan = plan, .number = 2, .last = STEPS, .before = &first, .gone = {true}};
    run(&first);
    run(&second);
    ck_assert_int_eq(second.decision.source, MOVE_MEMORY);
    ck_assert_uint_eq(second.decision.age.step, BROKEN);
    finish(&first);
    finish(&second);
    plan_destroy(plan);
}
END_TEST

START_TEST(what_no_rank_holds_comes_from_the_newest_checkpoint)
{
    static const struct move_age disk = {1, 2};
    struct plan *plan = stages(2, 1), *one = stages(1, 1);
    struct epoch first = {.plan = plan, .number = 1, .last = BROKEN};
    struct epoch alone = {.plan = one, .number = 2, .before = &first, .disk = &disk};
    run(&first);
    alone.gone[1] = true; /* with the second stage */
    run(&alone);
    ck_assert_int_eq(alone.decision.source, MOVE_DISK);
    ck_assert_uint_eq(alone.decision.age.step, disk.step);
    finish(&alone);
    alone.disk = NULL;
    run(&alone);
    ck_assert_int_eq(alone.decision.source, MOVE_FRESH);
    ck_assert_uint_eq(alone.decision.age.step, 0);
    finish(&alone);
    finish(&first);
    plan_destroy(plan);
    plan_destroy(one);
}
END_TEST

/* An executor that was left out of an epoch has an old state, and a checkpoint is newer. */
START_TEST(a_checkpoint_that_is_newer_than_what_is_held_is_taken)
{
    static const struct move_age newer = {1, BROKEN + 1}, older = {1, BROKEN - 1};
    struct plan *plan = replicas(2);
    struct epoch first = {.plan = plan, .number = 1, .last = BROKEN};
    struct epoch second = {.plan = plan, .number = 2, .before = &first, .disk = &newer};
    run(&first);
    run(&second);
    ck_assert_int_eq(second.decision.source, MOVE_DISK);
    finish(&second);
    second.disk = &older;
    run(&second);
    ck_assert_int_eq(second.decision.source, MOVE_MEMORY);
    finish(&second);
    finish(&first);
    plan_destroy(plan);
}
END_TEST

/* Any one rank dies with what it alone has; its neighbour has that as it was behind the newest
 * step that was copied, and the others go back to it. */
START_TEST(what_a_rank_alone_holds_is_copied_to_its_neighbour)
{
    uint64_t seed = test_seed() + 3000 + 2 * (uint64_t)_i;
    int every = 1 + _i % 2;
    struct plan *plan = engine_plan_random(graph, seed, RANKS_MAX, BATCH);
    struct plan *other = engine_plan_random(graph, seed + 1, RANKS_MAX, BATCH);
    struct epoch whole = {.plan = plan, .number = 1, .last = STEPS};
    struct epoch first = {.plan = plan, .number = 1, .last = BROKEN, .copy_every = every};
    struct epoch second = {.plan = other, .number = 2, .last = STEPS, .before = &first};
    run(&whole);
    run(&first);
    int dead = plan_ranks(plan) > 1 ? (int)(seed % (uint64_t)plan_ranks(plan)) : -1;
    if (dead >= 0)
        second.gone[dead] = true;
    run(&second);
    ck_assert_int_eq(second.decision.source, MOVE_MEMORY);
    ck_assert_uint_ge(second.decision.age.step, (uint64_t)(BROKEN / every * every));
    for (int i = (int)second.decision.age.step; i < STEPS; i++)
        ck_assert_msg(fabs(second.loss[i] - whole.loss[i]) <= LOSS_LIMIT * whole.loss[i],
                      "seed %lu: step %d has loss %g for %g", (unsigned long)seed, i,
                      second.loss[i], whole.loss[i]);
    finish(&whole);
    finish(&first);
    finish(&second);
    plan_destroy(plan);
    plan_destroy(other);
}
END_TEST

SUITE(move)
{
    TCase *tcase = tcase_create("move");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, any_plan_goes_on_from_the_memory_of_any_other, 0, test_share(20));
    tcase_add_loop_test(tcase, a_step_that_some_ranks_have_applied_is_applied_by_the_others, 0,
                        test_share(20));
    tcase_add_loop_test(tcase, what_a_rank_alone_holds_is_copied_to_its_neighbour, 0,
                        test_share(20));
    tcase_add_test(tcase, a_step_that_no_rank_has_applied_is_done_again);
    tcase_add_test(tcase, a_step_that_only_the_dead_have_applied_is_done_again);
    tcase_add_test(tcase, what_no_rank_holds_comes_from_the_newest_checkpoint);
    tcase_add_test(tcase, a_checkpoint_that_is_newer_than_what_is_held_is_taken);
    return suite_run("move", tcase, NULL);
}
