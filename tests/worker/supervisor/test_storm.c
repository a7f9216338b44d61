/* test_storm.c - a supervisor in a world where everything goes wrong, from a seed.
 *
 * Calls fail or are refused, the coordinator restarts with new terms, executors crash, finish, or
 * do not listen. In every moment no two executors share a device. When the storm is over,
 * every rank that was assigned has ended and been reported, and nothing runs. */
#include "common/base/random.h"
#include "common/message/message.h"
#include "tests/support/suite.h"
#include "tests/worker/supervisor/supervised.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS 4
#define STEPS 400
#define CALLS 256
#define RANKS 1024

enum executor_state { NEVER, LIVES, GONE };

struct call {
    enum supervisor_action_kind kind;
    enum rank_message message;
    uint64_t rank;
    uint64_t term; /* that the worker knew when it was made */
};

struct world {
    struct supervised it;
    uint64_t seed, draws;
    uint64_t term;  /* of the coordinator */
    uint64_t known; /* by the worker */
    bool calm;      /* nothing goes wrong any more */
    struct call calls[CALLS];
    size_t call_count;
    enum executor_state executors[RANKS];
    bool listens[RANKS]; /* to SIGTERM */
    uint64_t epochs[JOBS];
    uint64_t watched_term; /* 0: no watch */
    bool quit;
};

static uint64_t draw(struct world *world, uint64_t bound)
{
    return random_below(world->seed, 0, world->draws++, bound);
}

static void start(struct world *world, uint64_t id)
{
    struct supervisor *supervisor = world->it.supervisor;
    const struct rank *rank = supervisor_rank(supervisor, id);
    ck_assert_uint_lt(id, RANKS);
    ck_assert_int_eq(world->executors[id], NEVER);
    for (size_t i = 0; i < supervisor_rank_count(supervisor); i++) {
        const struct rank *other = supervisor_rank_at(supervisor, i);
        ck_assert_msg(other->device_index != rank->device_index ||
                          world->executors[other->id] != LIVES,
                      "two executors on device %u", rank->device_index);
    }
    message_free(&supervisor_take_assignment(supervisor, id)->base);
    world->executors[id] = LIVES;
    world->listens[id] = draw(world, 3) > 0;
}

static void end_executor(struct world *world, uint64_t id)
{
    if (world->executors[id] != LIVES)
        return;
    world->executors[id] = GONE;
    rank_gone(&world->it, id, "ended");
}

/* One that has stayed is another rank's executor from here on, unless it has ended meanwhile. */
static void adopt(struct world *world, uint64_t id, uint64_t from)
{
    ck_assert_uint_lt(id, RANKS);
    message_free(&supervisor_take_assignment(world->it.supervisor, id)->base);
    world->executors[id] = world->executors[from];
    world->listens[id] = world->listens[from];
    world->executors[from] = GONE;
    if (world->executors[id] != LIVES)
        rank_gone(&world->it, id, "ended between two epochs");
}

/* Do what one action says; it may bring others. */
static void carry_out(struct world *world, const struct supervisor_action *action)
{
    switch (action->kind) {
    case SUPERVISOR_HELLO:
    case SUPERVISOR_REPORT:
    case SUPERVISOR_HEARTBEAT:
    case SUPERVISOR_DELIVER:
        ck_assert_uint_lt(world->call_count, CALLS);
        world->calls[world->call_count++] =
            (struct call){action->kind, action->message, action->rank, world->known};
        break;
    case SUPERVISOR_WATCH:
        world->watched_term = world->known;
        break;
    case SUPERVISOR_RECONNECT:
        world->call_count = 0;
        world->watched_term = 0;
        break;
    case SUPERVISOR_START:
        start(world, action->rank);
        break;
    case SUPERVISOR_ADOPT:
        adopt(world, action->rank, action->from);
        break;
    case SUPERVISOR_SIGNAL:
        if (action->signal == SIGKILL || world->listens[action->rank])
            end_executor(world, action->rank);
        break;
    case SUPERVISOR_QUIT:
        world->quit = true;
        break;
    default:
        break;
    }
}

static void carry_out_all(struct world *world)
{
    for (size_t i = 0; i < world->it.actions.count; i++) {
        struct supervisor_action action = world->it.actions.items[i];
        carry_out(world, &action);
    }
    done(&world->it);
}

static enum rpc_status fate(struct world *world, const struct call *call)
{
    static const enum rpc_status fates[] = {RPC_UNAVAILABLE, RPC_DEADLINE_EXCEEDED,
                                            RPC_FAILED_PRECONDITION, RPC_NOT_FOUND, RPC_INTERNAL};
    if (call->kind != SUPERVISOR_HELLO && call->term != world->term)
        return RPC_FAILED_PRECONDITION;
    bool fails = !world->calm && draw(world, 4) == 0;
    return fails ? fates[draw(world, sizeof fates / sizeof *fates)] : RPC_OK;
}

/* Some call that is under way ends. */
static void answer(struct world *world)
{
    if (world->call_count == 0)
        return;
    size_t at = draw(world, world->call_count);
    struct call call = world->calls[at];
    struct supervised *it = &world->it;
    enum rpc_status status = fate(world, &call);
    world->calls[at] = world->calls[--world->call_count];
    if (call.kind == SUPERVISOR_HELLO && status == RPC_OK)
        world->known = world->term;
    if (call.kind == SUPERVISOR_HELLO)
        supervisor_hello_answered(it->supervisor, status, "x", world->term, it->now_ms,
                                  &it->actions);
    else if (call.kind == SUPERVISOR_REPORT)
        supervisor_report_answered(it->supervisor, status, "x", HEARTBEAT_MS, it->now_ms,
                                   &it->actions);
    else if (call.kind == SUPERVISOR_HEARTBEAT)
        supervisor_heartbeat_answered(it->supervisor, status, "x", 0, it->now_ms, &it->actions);
    else
        supervisor_rank_answered(it->supervisor, call.rank, call.message, status, "x", it->now_ms,
                                 &it->actions);
}

/* What a coordinator writes: anything, at any time, but only to who watches it. */
static void write_record(struct world *world)
{
    char job[16];
    uint64_t number = draw(world, JOBS);
    if (world->watched_term != world->term)
        return;
    snprintf(job, sizeof job, "job-%u", (unsigned)number);
    switch (draw(world, 7)) {
    case 5:
        pause_job(&world->it, job, world->epochs[number], 1 + draw(world, 3));
        break;
    case 6:
        resume_job(&world->it, job, world->epochs[number], 1 + draw(world, 3));
        break;
    case 0:
        cancel(&world->it, job, world->epochs[number]);
        break;
    case 1:
        go(&world->it, job, world->epochs[number]);
        break;
    case 2: /* again */
        assign(&world->it, job, world->epochs[number], 0, (uint32_t)draw(world, DEVICES));
        break;
    default:
        world->epochs[number] += draw(world, 2);
        assign(&world->it, job, world->epochs[number], (uint32_t)draw(world, 2),
               (uint32_t)draw(world, DEVICES));
    }
}

/* Some executor gets ready, says that it stops, or just ends. */
static void live(struct world *world)
{
    struct supervised *it = &world->it;
    size_t count = supervisor_rank_count(it->supervisor);
    if (count == 0)
        return;
    uint64_t id = supervisor_rank_at(it->supervisor, draw(world, count))->id;
    if (world->executors[id] != LIVES)
        return;
    switch (draw(world, 6)) {
    case 5:
        executor_staged(it, id, 1 + draw(world, 9));
        break;
    case 0:
        end_executor(world, id);
        break;
    case 4:
        supervisor_executor_paused(it->supervisor, id, 1 + draw(world, 3), 1, &it->actions);
        break;
    case 1:
        executor_stopped(it, id, GIMBAL__STOPPED_REQUEST__CAUSE__DONE, "", 1, draw(world, 2) > 0);
        break;
    default:
        executor_ready(it, id);
    }
}

static void disturb(struct world *world)
{
    if (draw(world, 4) == 0) {
        world->term++;
        world->watched_term = 0;
    } else {
        world->watched_term = 0;
        supervisor_watch_broken(world->it.supervisor,
                                draw(world, 8) ? RPC_FAILED_PRECONDITION : RPC_OUT_OF_RANGE, "x",
                                world->it.now_ms, &world->it.actions);
    }
}

static void storm(struct world *world)
{
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = draw(world, 16);
        if (what < 6)
            answer(world);
        else if (what < 9)
            write_record(world);
        else if (what < 12)
            live(world);
        else if (what < 15)
            advance(&world->it, draw(world, 800));
        else
            disturb(world);
        carry_out_all(world);
    }
}

/* Nothing goes wrong, calls end, time goes by. */
static void calm_down(struct world *world, int rounds)
{
    world->calm = true;
    for (int i = 0; i < rounds; i++) {
        while (world->call_count > 0 && !world->quit) {
            answer(world);
            carry_out_all(world);
        }
        advance(&world->it, 100);
        carry_out_all(world);
    }
}

static void check_all_ended(const struct world *world)
{
    for (size_t i = 0; i < supervisor_rank_count(world->it.supervisor); i++) {
        const struct rank *rank = supervisor_rank_at(world->it.supervisor, i);
        ck_assert_int_eq(rank->state, RANK_ENDED);
        ck_assert_int_ne(rank->delivery[MESSAGE_PAUSED], DELIVERY_DUE);
        ck_assert_int_ne(rank->delivery[MESSAGE_PAUSED], DELIVERY_SENT);
        ck_assert_int_ne(rank->delivery[MESSAGE_STAGED], DELIVERY_DUE);
        ck_assert_int_ne(rank->delivery[MESSAGE_STAGED], DELIVERY_SENT);
        ck_assert_msg(rank->delivery[MESSAGE_STOPPED] == DELIVERY_DONE,
                      "rank %u of %s was not reported", rank->rank, rank->job);
    }
    for (size_t i = 0; i < RANKS; i++)
        ck_assert_int_ne(world->executors[i], LIVES);
}

START_TEST(every_rank_ends_and_is_reported_whatever_goes_wrong)
{
    static struct world world;
    world = (struct world){.seed = test_seed() + (uint64_t)_i, .term = 1};
    supervised_open(&world.it, world.seed);
    carry_out_all(&world);
    storm(&world);
    calm_down(&world, 100);
    ck_assert_uint_eq(world.watched_term, world.term);
    for (unsigned number = 0; number < JOBS; number++) {
        char job[16];
        snprintf(job, sizeof job, "job-%u", number);
        cancel(&world.it, job, world.epochs[number]);
        carry_out_all(&world);
    }
    calm_down(&world, 100);
    check_all_ended(&world);
    supervisor_terminate(world.it.supervisor, world.it.now_ms, &world.it.actions);
    carry_out_all(&world);
    ck_assert(world.quit);
    supervised_close(&world.it);
}
END_TEST

START_TEST(a_worker_that_is_stopped_in_the_storm_quits_with_nothing_left)
{
    static struct world world;
    world = (struct world){.seed = test_seed() + 5000 + (uint64_t)_i, .term = 1};
    supervised_open(&world.it, world.seed);
    carry_out_all(&world);
    storm(&world);
    supervisor_terminate(world.it.supervisor, world.it.now_ms, &world.it.actions);
    carry_out_all(&world);
    for (int i = 0; i < 100 && !world.quit; i++) { /* no call is ever answered */
        advance(&world.it, 100);
        carry_out_all(&world);
    }
    ck_assert(world.quit);
    for (size_t i = 0; i < RANKS; i++)
        ck_assert_int_ne(world.executors[i], LIVES);
    supervised_close(&world.it);
}
END_TEST

SUITE(supervisor_storm)
{
    TCase *storms = tcase_create("storms");
    tcase_add_loop_test(storms, every_rank_ends_and_is_reported_whatever_goes_wrong, 0,
                        test_share(200));
    tcase_add_loop_test(storms, a_worker_that_is_stopped_in_the_storm_quits_with_nothing_left, 0,
                        test_share(100));
    return suite_run("supervisor storm", storms, NULL);
}
