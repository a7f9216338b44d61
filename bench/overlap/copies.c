/* copies.c - runs a rank's program without copies of its state, with copies between two steps, and
 * with copies beside the next step, some steps of each in every round. */
#include "worker/move/copies.h"
#include "bench/bench.h"
#include "bench/overlap/rank.h"
#include "common/program/lower.h"

#include <stdlib.h>

#define RANKS 2
#define STEPS 3

struct copying_rank {
    struct program *program;
    struct interpreter *in;
    struct estate *estate;
    struct move *move;
    struct copies *copies;
    struct state_slice *state;
    uint64_t steps; /* done */
};

static int await_copies(void *context, struct error *err)
{
    const struct copying_rank *rank = context;
    return copies_await(rank->copies, err);
}

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

static int fetch_beside(void *in, struct error *err)
{
    return interpreter_fetch_state_beside(in, err);
}

static void prepare(struct copying_rank *rank, const struct training *training)
{
    const struct optimizer optimizer = bench_optimizer;
    struct error err;
    bench_need(lower(training->graph, training->plan, training->rank, &rank->program, &err), &err);
    bench_need(estate_open(-1, &rank->estate, &err), &err);
    const struct interpreter_config config = {.device = &device_cpu,
                                              .collectives = collectives_find("gloo"),
                                              .fabric = training->fabric,
                                              .feed = &bench_feed,
                                              .optimizer = optimizer,
                                              .estate = rank->estate,
                                              .epoch = 1,
                                              .commits_cb = await_copies,
                                              .commits_context = rank};
    bench_need(interpreter_prepare(rank->program, &config, &rank->in, &err), &err);
    interpreter_initialize(rank->in, 1);
    interpreter_publish(rank->in, &(struct standing){.epoch = 1});
}

/* As if each rank were on a node of its own. */
static void prepare_copies(struct copying_rank *rank, const struct training *training)
{
    static const char *const nodes[RANKS] = {"a", "b"};
    const struct move_config meeting = {.graph = training->graph,
                                        .program = rank->program,
                                        .collectives = collectives_find("gloo"),
                                        .fabric = training->fabric,
                                        .rank = training->rank,
                                        .ranks = RANKS};
    const struct copies_config config = {.fabric = training->fabric,
                                         .plan = training->plan,
                                         .nodes = nodes,
                                         .outlived = true,
                                         .estate = rank->estate,
                                         .epoch = 1};
    struct error err;
    bench_need(move_meet(&meeting, &rank->move, &err), &err);
    bench_need(copies_create(rank->move, &config, &rank->copies, &err), &err);
    rank->state = state_slices(rank->program, buffer_of, rank->in);
    const struct copies_source source = {
        .state = rank->state, .fetch_cb = fetch_beside, .context = rank->in};
    bench_need(copies_start(rank->copies, &source, &err), &err);
}

/* Copies of a step's state are made beside the next step, or at once. */
static void run_turn(struct copying_rank *rank, enum copying copying, double *step_s)
{
    struct step_result result;
    struct error err;
    double begin = bench_now_s();
    for (int step = 0; step < STEPS; step++) {
        if (copying == COPYING_BESIDE)
            copies_begin(rank->copies, interpreter_standing(rank->in));
        bench_need(interpreter_run(rank->in, PROGRAM_TRAIN, rank->steps++, &result, &err), &err);
        if (copying == COPYING_BETWEEN)
            copies_begin(rank->copies, interpreter_standing(rank->in));
        bench_need(copies_await(rank->copies, &err), &err);
    }
    bench_need(interpreter_quiesce(rank->in, &err), &err);
    *step_s = (bench_now_s() - begin) / STEPS;
}

void rank_measure_copies(const struct training *training, struct figures out[COPYINGS])
{
    struct copying_rank rank = {0};
    double ignored;
    prepare(&rank, training);
    prepare_copies(&rank, training);
    run_turn(&rank, COPYING_BETWEEN, &ignored);
    for (int round = 0; round < ROUNDS; round++)
        for (int copying = 0; copying < COPYINGS; copying++)
            run_turn(&rank, (enum copying)copying, &out[copying].step_s[round]);
    copies_destroy(rank.copies);
    move_destroy(rank.move);
    free(rank.state);
    interpreter_release(rank.in);
    estate_close(rank.estate);
    program_destroy(rank.program);
}
