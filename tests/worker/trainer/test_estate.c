/* test_estate.c - a process is killed anywhere in a step, and what it left is the state before that
 * step or behind it, bit by bit, and nothing in between. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"
#include "worker/trainer/kept.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 3
#define BATCH 4

/* Its vocabulary alone takes more than one piece. */
static const struct job_model small = {
    .family = "gpt", .layers = 1, .hidden = 64, .heads = 4, .seq = 8, .vocab = 300, .ffn = 64};
static const struct optimizer optimizer = {
    .rate = 1e-2, .steps = 100, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 1};

static struct graph *graph;
static struct plan *plan;
static struct program *program;

/* ---- a device that counts its calls, and dies in one of them ---- */

/* Shared with the process that dies. */
static struct fate {
    uint64_t calls, last; /* it dies in call `last`, counted from 1; 0: it does not */
    uint64_t step;
    bool updating; /* what it died in */
} * fate;

static void call(bool updating)
{
    if (++fate->calls != fate->last)
        return;
    fate->updating = updating;
    kill(getpid(), SIGKILL);
}

static void clear(void *data, size_t bytes)
{
    call(false);
    device_plain.clear(data, bytes);
}

static void square_sum(const float *data, size_t count, float *sum)
{
    call(false);
    device_plain.square_sum(data, count, sum);
}

/* In the middle of it. */
static void update(const struct update_call *whole)
{
    struct update_call half = *whole, rest = *whole;
    half.count = whole->count / 2;
    rest.count -= half.count;
    rest.parameter += half.count;
    rest.gradient += half.count;
    rest.first += half.count;
    rest.second += half.count;
    device_plain.update(&half);
    call(true);
    device_plain.update(&rest);
}

static const struct device *mortal(void)
{
    static struct device device;
    device = device_plain;
    device.clear = clear;
    device.square_sum = square_sum;
    device.update = update;
    return &device;
}

static void tokens(const void *context, enum program_kind kind, uint64_t first,
                   const struct tensor *tensor, const struct box *box, int32_t *out)
{
    (void)context, (void)kind;
    for (int64_t i = 0; i < box_count(box); i++)
        out[i] = (int32_t)random_below(1, tensor->targets, first * 8 + (uint64_t)i, 300);
}

static double count_targets(const void *context, enum program_kind kind, uint64_t first,
                            uint64_t samples)
{
    (void)context, (void)kind, (void)first;
    return (double)samples * 8;
}

/* ---- a training in an estate ---- */

static void train(int fd, int steps)
{
    static const struct feed feed = {NULL, tokens, count_targets};
    struct interpreter_config config = {
        .device = mortal(), .feed = &feed, .optimizer = optimizer, .epoch = 1};
    struct estate *estate;
    struct interpreter *in;
    struct step_result result;
    struct error err;
    ck_assert_int_eq(estate_open(fd, &estate, &err), 0);
    config.estate = estate;
    ck_assert_msg(interpreter_prepare(program, &config, &in, &err) == 0, "%s", err.text);
    interpreter_initialize(in, 11);
    interpreter_publish(in, &(struct standing){.epoch = 1});
    for (int step = 0; step < steps; step++) {
        fate->step = (uint64_t)step;
        ck_assert_int_eq(interpreter_run(in, PROGRAM_TRAIN, (uint64_t)step, &result, &err), 0);
    }
    holding_close(interpreter_leave(in));
    interpreter_release(in);
    estate_close(estate);
}

static int new_file(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static int train_and_die(uint64_t last)
{
    int fd = new_file(), status;
    *fate = (struct fate){.last = last};
    pid_t pid = fork();
    if (pid == 0) {
        train(dup(fd), STEPS);
        _exit(EXIT_SUCCESS);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return fd;
}

static void inherit(int fd, struct kept *kept)
{
    const struct update_rule rule = {&device_plain, &optimizer, graph};
    struct error err;
    *kept = (struct kept){0};
    ck_assert_msg(kept_open(kept, fd, &rule, &err) == 0, "%s", err.text);
}

static void check_same(const struct kept *a, const struct kept *b)
{
    ck_assert_uint_eq(a->count, 1);
    ck_assert_uint_eq(b->count, 1);
    for (size_t i = 0; i < a->epochs[0].state.slice_count; i++)
        for (int part = 0; part < STATE_PARTS; part++) {
            const struct state_slice *one = &a->epochs[0].state.slices[i],
                                     *other = &b->epochs[0].state.slices[i];
            size_t bytes = (size_t)box_count(&one->box) * sizeof(float);
            ck_assert_msg(memcmp(one->parts[part], other->parts[part], bytes) == 0,
                          "%s differs in part %d", graph->tensors[one->tensor].name, part);
        }
}

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &graph, &err), 0);
    plan = engine_plan_one(graph, 1, BATCH);
    ck_assert_int_eq(lower(graph, plan, 0, &program, &err), 0);
    fate = mmap(NULL, sizeof *fate, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(fate, MAP_FAILED);
}

static void teardown(void)
{
    munmap(fate, sizeof *fate);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}

START_TEST(a_process_that_is_killed_leaves_its_state_before_the_step_or_behind_it)
{
    struct kept left, undisturbed;
    int fd = new_file();
    *fate = (struct fate){0};
    train(dup(fd), STEPS);
    close(fd);
    uint64_t last = 1 + random_below(test_seed(), 0, (uint64_t)_i, fate->calls);
    inherit(train_and_die(last), &left);
    const struct standing *standing = holding_standing(left.epochs[0].state.holding);
    ck_assert_uint_eq(standing->step, fate->step + (fate->updating ? 1 : 0));
    ck_assert(!standing->applying);
    uint64_t step = standing->step;
    *fate = (struct fate){0};
    fd = new_file();
    train(dup(fd), (int)step);
    inherit(fd, &undisturbed);
    check_same(&left, &undisturbed);
    kept_close(&left);
    kept_close(&undisturbed);
}
END_TEST

START_TEST(what_is_not_whole_is_not_left)
{
    struct estate *estate;
    struct holding *holding;
    struct kept kept;
    struct error err;
    int fd = new_file();
    ck_assert_int_eq(estate_open(dup(fd), &estate, &err), 0);
    ck_assert_int_eq(holding_create(estate, HOLDING_STATE, 4096, 1, &holding, &err), 0);
    memset(holding_memory(holding), 1, 4096);
    holding_close(holding);
    estate_close(estate);
    inherit(fd, &kept);
    ck_assert(!kept.inherited);
    ck_assert_int_eq(holding_create(kept.estate, HOLDING_STATE, 4096, 1, &holding, &err), 0);
    for (int i = 0; i < 4096; i++)
        ck_assert_int_eq(holding_memory(holding)[i], 0);
    holding_release(holding);
    kept_close(&kept);
}
END_TEST

/* Moved from the state of epoch 1. */
static void add_state(struct kept *kept, uint64_t epoch, bool armed)
{
    const struct share share = {.tensor = 0};
    const struct standing standing = {.epoch = 1, .step = 5, .armed = armed};
    struct holding *holding;
    struct error err;
    ck_assert_int_eq(holding_create(kept->estate, HOLDING_STATE, 4096, 1, &holding, &err), 0);
    holding_describe(holding, &share, epoch);
    holding_publish(holding, &standing);
    kept_add(kept, holding);
}

static void check_epochs(const struct kept *kept, uint64_t first, uint64_t second, uint64_t third)
{
    ck_assert_uint_eq(kept->count, 3);
    ck_assert_uint_eq(kept->epochs[0].number, first);
    ck_assert_uint_eq(kept->epochs[1].number, second);
    ck_assert_uint_eq(kept->epochs[2].number, third);
}

/* What may have to apply a step stays, and what all were moved from. */
START_TEST(where_there_is_no_room_what_was_only_moved_goes_first)
{
    struct kept kept;
    inherit(new_file(), &kept);
    add_state(&kept, 1, false);
    add_state(&kept, 2, true);
    add_state(&kept, 3, false);
    check_epochs(&kept, 1, 2, 3);
    add_state(&kept, 4, false);
    check_epochs(&kept, 1, 2, 4);
    add_state(&kept, 5, true);
    check_epochs(&kept, 1, 2, 5);
    add_state(&kept, 6, false);
    check_epochs(&kept, 2, 5, 6);
    kept_close(&kept);
}
END_TEST

START_TEST(a_file_of_another_version_is_emptied)
{
    struct kept kept;
    char byte = 'x';
    int fd = new_file();
    *fate = (struct fate){0};
    train(dup(fd), 1);
    ck_assert_int_eq(pwrite(fd, &byte, 1, 0), 1);
    inherit(fd, &kept);
    ck_assert(!kept.inherited);
    kept_close(&kept);
}
END_TEST

START_TEST(a_state_that_does_not_fit_is_refused_with_its_size)
{
    struct estate *estate;
    struct holding *holding;
    struct error err;
    ck_assert_int_eq(estate_open(-1, &estate, &err), 0);
    ck_assert_int_lt(holding_create(estate, HOLDING_STATE, 1ull << 62, 1, &holding, &err), 0);
    ck_assert_msg(strstr(err.text, "cannot reserve memory: state ") != NULL, "%s", err.text);
    estate_close(estate);
}
END_TEST

SUITE(estate)
{
    TCase *tcase = tcase_create("estate");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase,
                        a_process_that_is_killed_leaves_its_state_before_the_step_or_behind_it, 0,
                        test_share(40));
    tcase_add_test(tcase, what_is_not_whole_is_not_left);
    tcase_add_test(tcase, where_there_is_no_room_what_was_only_moved_goes_first);
    tcase_add_test(tcase, a_file_of_another_version_is_emptied);
    tcase_add_test(tcase, a_state_that_does_not_fit_is_refused_with_its_size);
    return suite_run("estate", tcase, NULL);
}
