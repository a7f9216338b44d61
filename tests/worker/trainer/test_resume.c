/* test_resume.c - a training that begins from a checkpoint goes on as if it had never stopped:
 * bit by bit under the plan that wrote it, and up to the order of sums under any other. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/saver.h"

#include "tests/support/counts.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define STEPS 8
#define SAVED 3 /* the first of the checkpoints, which follow every SAVED steps */
#define RANKS_MAX 8
#define LOSS_LIMIT 1e-5   /* relative */
#define NARROW_LIMIT 1e-2 /* between f32 and bf16 */

static const struct job_model small = {
    .family = "gpt", .layers = 3, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};

/* What the ranks of a run save to and begin from. */
static struct training {
    struct graph *graph;
    char *root, *start; /* root NULL: nothing is saved; start NULL: fresh */
    char *elsewhere;    /* where the root is for rank 1; NULL: at the same place */
    struct rendezvous *rendezvous;
    struct saver *savers[RANKS_MAX];
    bool threadless;    /* while it saves no thread can be created */
    int staged;         /* checkpoints */
    int nicest;         /* largest niceness of a thread once all is saved */
    const char *listed; /* their names, and which are told to be kept */
    char failure[ERROR_SIZE];
} it;

static void setup(void)
{
    struct error err;
    char folder[] = "/tmp/gimbal-resume-XXXXXX";
    it = (struct training){0};
    ck_assert_int_eq(model_build(&small, ELEMENT_F32, &it.graph, &err), 0);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    it.root = xstrdup(folder);
    it.rendezvous = test_rendezvous_create(10);
}

static void teardown(void)
{
    char *command = xasprintf("rm -rf '%s'", it.root);
    ck_assert_int_eq(system(command), 0);
    free(command);
    free(it.root);
    free(it.elsewhere);
    free(it.start);
    test_rendezvous_destroy(it.rendezvous);
    graph_destroy(it.graph);
}

static void *buffer_of(void *in, int buffer)
{
    return interpreter_buffer(in, buffer);
}

static int staged(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    (void)context, (void)err;
    it.staged++;
    if (report->failure)
        snprintf(it.failure, sizeof it.failure, "%s", report->failure);
    if (it.listed) {
        listed->names = xcalloc(2, sizeof *listed->names);
        listed->names[listed->count++] = xstrdup(report->name);
        listed->names[listed->count++] = xstrdup(it.listed);
    }
    return 0;
}

static int load(struct interpreter *in, int step, struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    int rc = checkpoint_open(it.start, &checkpoint, err);
    if (rc == 0)
        rc = checkpoint_expect(checkpoint, (uint64_t)step, it.graph, err);
    if (rc == 0)
        rc = state_load(checkpoint, interpreter_program(in), STATE_PARTS, buffer_of, in, err);
    checkpoint_close(checkpoint);
    return rc;
}

static int begin(struct interpreter *in, int rank, int step, struct error *err)
{
    const struct saver_config config = {
        .root = rank == 1 && it.elsewhere ? it.elsewhere : it.root,
        .origin = {.job = "j-1", .epoch = 1, .seed = 11, .batch = 8},
        .program = interpreter_program(in),
        .rendezvous = it.rendezvous,
        .staged = staged,
    };
    return it.start ? load(in, step, err) : saver_create(&config, &it.savers[rank], err);
}

/* The largest niceness of this process's threads. */
static int nicest_now(void)
{
    int nicest = -20;
    DIR *threads = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(threads);
    for (struct dirent *entry = readdir(threads); entry; entry = readdir(threads)) {
        int thread = atoi(entry->d_name); /* 0 of . and .. */
        int niceness = thread > 0 ? getpriority(PRIO_PROCESS, (id_t)thread) : -20;
        nicest = niceness > nicest ? niceness : nicest;
    }
    closedir(threads);
    return nicest;
}

/* A thread that was joined is listed until the kernel has taken it down: this long at most. */
static int nicest_thread(void)
{
    int nicest = nicest_now();
    for (int ms = 0; ms < 10000 && nicest > getpriority(PRIO_PROCESS, 0); ms++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        nicest = nicest_now();
    }
    return nicest;
}

/* No thread has so large a stack: pthread_create(3) fails as it does at a limit of processes. */
static int take_threadless(struct saver *saver, int done, struct interpreter *in, struct error *err)
{
    pthread_attr_t usual, vast;
    ck_assert_int_eq(pthread_getattr_default_np(&usual), 0);
    ck_assert_int_eq(pthread_attr_init(&vast), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&vast, (size_t)1 << 56), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&vast), 0);
    int rc = saver_take(saver, (uint64_t)done, buffer_of, in, err);
    if (rc == 0)
        rc = saver_finish(saver, err);
    ck_assert_int_eq(pthread_setattr_default_np(&usual), 0);
    pthread_attr_destroy(&vast);
    pthread_attr_destroy(&usual);
    return rc;
}

/* Called by all ranks: the run at its beginning, behind each step, and at its end. */
static int hook(void *context, int rank, struct interpreter *in, int done, struct error *err)
{
    struct saver *saver = it.savers[rank];
    int rc = 0, *first = context;
    if (in && done == *first)
        return begin(in, rank, done, err);
    if (in && saver && done % SAVED == 0 && it.threadless)
        return take_threadless(saver, done, in, err);
    if (in && saver && done % SAVED == 0)
        return saver_take(saver, (uint64_t)done, buffer_of, in, err);
    if (!in && saver) {
        rc = err ? saver_finish(saver, err) : 0;
        it.nicest = nicest_thread();
        saver_destroy(saver);
        it.savers[rank] = NULL;
    }
    return rc;
}

static void run(const struct plan *plan, int first, struct engine_result *out)
{
    const struct engine_options options = {
        .steps = STEPS, .ignored = 0.2, .first_step = first, .hook = hook, .context = &first};
    struct error err = {""};
    char text[128];
    int rc = engine_run(it.graph, plan, &options, out, &err);
    ck_assert_msg(rc == 0, "%s: %s", plan_print(text, sizeof text, plan), err.text);
}

/* From the checkpoint of SAVED steps, under a plan; the largest relative difference of the losses
 * to those of the run that did not stop. */
static double resume(const struct plan *plan, const struct engine_result *whole, bool *same_bits)
{
    struct engine_result result;
    double worst = fabs(whole->evaluation);
    free(it.start);
    it.start = xasprintf("%s/step-%d.epoch-1", it.root, SAVED);
    run(plan, SAVED, &result);
    worst = fabs(result.evaluation - whole->evaluation) / worst;
    *same_bits = result.evaluation == whole->evaluation;
    for (int i = SAVED; i < STEPS; i++) {
        double difference = fabs(result.loss[i] - whole->loss[i]) / fabs(whole->loss[i]);
        worst = difference > worst || isnan(difference) ? difference : worst;
        *same_bits =
            *same_bits && result.loss[i] == whole->loss[i] && result.norm[i] == whole->norm[i];
    }
    for (size_t t = 0; t < it.graph->tensor_count && *same_bits; t++)
        if (result.parameters[t])
            *same_bits = memcmp(result.parameters[t], whole->parameters[t],
                                (size_t)count_tensor(it.graph, (int)t) * 4) == 0;
    engine_result_finish(&result);
    return worst;
}

START_TEST(a_checkpoint_goes_on_under_its_plan_and_any_other)
{
    uint64_t seed = test_seed() + 2 * (uint64_t)_i;
    struct plan *plan = engine_plan_random(it.graph, seed, RANKS_MAX, 8);
    struct plan *other = engine_plan_random(it.graph, seed + 1, RANKS_MAX, 8);
    struct engine_result whole;
    bool same;
    run(plan, 0, &whole);
    ck_assert_int_eq(it.staged, 2);
    ck_assert_str_eq(it.failure, "");
    double difference = resume(plan, &whole, &same);
    ck_assert_msg(same, "seed %lu: under the same plan it differs by %g", (unsigned long)seed,
                  difference);
    difference = resume(other, &whole, &same);
    ck_assert_msg(difference <= LOSS_LIMIT, "seed %lu: under another plan it differs by %g",
                  (unsigned long)seed, difference);
    engine_result_finish(&whole);
    plan_destroy(plan);
    plan_destroy(other);
}
END_TEST

/* A checkpoint holds masters, which are f32 in any case. */
START_TEST(a_checkpoint_goes_on_in_f32_and_in_bf16)
{
    struct engine_result whole;
    bool same;
    it.graph->element_bytes = _i == 0 ? 4 : 2;
    struct plan *plan = engine_plan_random(it.graph, test_seed(), RANKS_MAX, 8);
    run(plan, 0, &whole);
    double difference = resume(plan, &whole, &same);
    ck_assert_msg(same, "as it was it differs by %g", difference);
    it.graph->element_bytes = _i == 0 ? 2 : 4;
    difference = resume(plan, &whole, &same);
    ck_assert_msg(difference <= NARROW_LIMIT, "in the other it differs by %g", difference);
    ck_assert(!same);
    engine_result_finish(&whole);
    plan_destroy(plan);
}
END_TEST

static struct plan *two_ranks(void)
{
    return engine_plan(it.graph, 1, (int[]){2}, 1, (const char *[]){"tensor"}, 1, 8, "1f1b");
}

static bool exists(const char *name)
{
    char *path = xasprintf("%s/%s", it.root, name);
    bool is_there = access(path, F_OK) == 0;
    free(path);
    return is_there;
}

START_TEST(what_is_not_listed_any_more_is_deleted)
{
    struct plan *plan = two_ranks();
    struct engine_result result;
    it.listed = "step-1.epoch-1";
    run(plan, 0, &result);
    ck_assert(exists("step-6.epoch-1/manifest.json"));
    ck_assert(!exists("step-3.epoch-1"));
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

/* A file is in the place of what would be written. */
START_TEST(a_checkpoint_that_cannot_be_written_stops_no_training)
{
    struct plan *plan = two_ranks();
    struct engine_result result, undisturbed;
    char *path = xasprintf("%s/step-3.epoch-1", it.root);
    FILE *file = fopen(path, "we");
    ck_assert_int_eq(fclose(file), 0);
    run(plan, 0, &result);
    ck_assert_int_eq(it.staged, 2);
    ck_assert_msg(strstr(it.failure, "step-3.epoch-1' is no folder"), "%s", it.failure);
    ck_assert(exists("step-6.epoch-1/manifest.json"));
    run(plan, 0, &undisturbed); /* nothing else has changed by it */
    ck_assert_ptr_null(engine_differs(&result, &undisturbed, it.graph, STEPS));
    engine_result_finish(&result);
    engine_result_finish(&undisturbed);
    free(path);
    plan_destroy(plan);
}
END_TEST

/* As where a node's file system was unmounted: what one rank cannot see none could load. */
START_TEST(a_checkpoint_of_which_rank_0_does_not_see_all_does_not_come_about)
{
    struct plan *plan = two_ranks();
    struct engine_result result;
    it.elsewhere = xasprintf("%s/elsewhere", it.root);
    run(plan, 0, &result);
    ck_assert_int_eq(it.staged, 2);
    ck_assert_msg(strstr(it.failure, "rank 1: its shard '") != NULL, "%s", it.failure);
    ck_assert(exists("elsewhere/step-6.epoch-1/rank-00001.safetensors"));
    ck_assert(!exists("step-6.epoch-1"));
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

/* A thread that gets little of a core would be the last to end when the process is killed, and
 * nobody sees that it died before. */
START_TEST(what_saves_is_nice_for_no_longer_than_it_saves)
{
    struct plan *plan = engine_plan(it.graph, 1, (int[]){1}, 0, NULL, 1, 8, "1f1b");
    struct engine_result result;
    run(plan, 0, &result);
    ck_assert_int_eq(it.staged, 2);
    ck_assert_int_eq(it.nicest, getpriority(PRIO_PROCESS, 0));
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

START_TEST(where_no_thread_is_to_be_had_a_checkpoint_is_written)
{
    struct plan *plan = engine_plan(it.graph, 1, (int[]){1}, 0, NULL, 1, 8, "1f1b");
    struct engine_result result;
    it.threadless = true;
    run(plan, 0, &result);
    ck_assert_int_eq(it.staged, 2);
    ck_assert_msg(!*it.failure && exists("step-6.epoch-1/manifest.json"), "%s", it.failure);
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

SUITE(resume)
{
    TCase *tcase = tcase_create("resume");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, a_checkpoint_goes_on_under_its_plan_and_any_other, 0,
                        test_share(20));
    tcase_add_loop_test(tcase, a_checkpoint_goes_on_in_f32_and_in_bf16, 0, 2);
    tcase_add_test(tcase, what_is_not_listed_any_more_is_deleted);
    tcase_add_test(tcase, a_checkpoint_that_cannot_be_written_stops_no_training);
    tcase_add_test(tcase, a_checkpoint_of_which_rank_0_does_not_see_all_does_not_come_about);
    tcase_add_test(tcase, what_saves_is_nice_for_no_longer_than_it_saves);
    tcase_add_test(tcase, where_no_thread_is_to_be_had_a_checkpoint_is_written);
    return suite_run("resume", tcase, NULL);
}
