/* trainer.c - the training loop of one rank.
 *
 * The loop itself is train(); around it are preparing, beginning with a state, and leaving the
 * state to the executor when an epoch breaks off. */
#include "worker/trainer/trainer.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/program/lower.h"
#include "worker/trainer/begin.h"
#include "worker/trainer/boundary.h"
#include "worker/trainer/sample.h"
#include "worker/trainer/times.h"

#include <errno.h>
#include <stdlib.h>

struct run {
    const struct trainer_config *config;
    struct program *program;
    uint64_t hash; /* hash of the lowered program */
    struct interpreter *in;
    struct begun begun;
    uint64_t skipped; /* consecutive skipped steps */
};

static enum data_split split_of(enum program_kind kind)
{
    return kind == PROGRAM_TRAIN ? DATA_TRAIN : DATA_HOLDOUT;
}

static void fill(const void *context, enum program_kind kind, uint64_t first, const struct box *box,
                 bool targets, int32_t *out)
{
    data_fill(context, split_of(kind), first, box->low[0], box->high[0], box->low[1], box->high[1],
              targets, out);
}

static double targets(const void *context, enum program_kind kind, uint64_t first, uint64_t samples)
{
    return (double)data_targets(context, split_of(kind), first, samples);
}

/* Begin to refresh the copies of this rank's state, every copy_every steps. */
static void copy_behind(struct run *run, uint64_t done)
{
    if (run->begun.copies && done % run->config->copy_every == 0)
        copies_begin(run->begun.copies, interpreter_standing(run->in));
}

/* Before a step is applied. */
static int await_copies(void *context, struct error *err)
{
    const struct run *run = context;
    return copies_await(run->begun.copies, err);
}

/* Copies that fail abort the fabric, on which the step may wait at that time. */
static int cause_of(struct run *run, int rc, struct error *err)
{
    int cause = rc == -ECANCELED ? copies_failed(run->begun.copies, err) : 0;
    return cause < 0 ? cause : rc;
}

static int check_wanted(const struct reporter *reporter, uint64_t done, struct error *err)
{
    if (!reporter->is_over || !reporter->is_over(reporter->context))
        return 0;
    return error_set(err, -ECANCELED, "cancelled behind step %llu", (unsigned long long)done);
}

/* All ranks come to the same result, because they see the same metrics. */
static bool diverges(struct run *run, bool skipped)
{
    uint64_t most = run->config->max_skipped;
    run->skipped = skipped ? run->skipped + 1 : 0;
    return most > 0 && run->skipped >= most;
}

static int train(struct run *run, struct boundary *boundary, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    struct interpreter *in = run->in;
    uint64_t steps = (uint64_t)config->job->train.steps, pauses = 0;
    int rc = 0;
    if (run->begun.told.source == MOVE_MEMORY && run->begun.told.step > 0)
        rc = boundary_step(boundary, run->begun.told.step, run->begun.skipped, err);
    for (uint64_t step = run->begun.told.step; step < steps && rc == 0; step++) {
        struct step_result result;
        bool wish = reporter->wants_pause && reporter->wants_pause(reporter->context, pauses);
        interpreter_wish(in, wish, reporter->wants_stop && reporter->wants_stop(reporter->context));
        interpreter_time(in, boundary_traces(step + 1));
        double begin = clock_now_s();
        rc = check_wanted(reporter, step, err);
        if (rc == 0)
            rc = interpreter_run(in, PROGRAM_TRAIN, step, &result, err);
        if (rc < 0)
            return cause_of(run, rc, err);
        if (config->kept) /* all ranks have their new state and have used it */
            kept_clear(config->kept);
        copy_behind(run, step + 1);
        if (reporter->step)
            reporter->step(reporter->context, config->rank, step + 1, &result,
                           clock_now_s() - begin);
        bool last = step + 1 == steps, stop = result.stop && !last;
        rc = diverges(run, result.skipped)
                 ? boundary_diverged(boundary, step + 1, run->skipped, err)
             : stop ? boundary_stop(boundary, step + 1, err)
                    : boundary_step(boundary, step + 1, result.skipped, err);
        if (rc == 0 && result.pause && !last)
            rc = boundary_pause(boundary, step + 1, ++pauses, err);
    }
    return rc;
}

struct optimizer trainer_optimizer(const struct job_config *job)
{
    const struct job_train *train = &job->train;
    return (struct optimizer){
        .rate = train->lr,
        .warmup = (uint64_t)train->warmup,
        .steps = (uint64_t)train->steps,
        .beta1 = train->beta1,
        .beta2 = train->beta2,
        .epsilon = train->epsilon,
        .decay = train->weight_decay,
        .clip = train->clip,
    };
}

static int open_saver(const struct trainer_config *config, struct interpreter *in,
                      struct saver **out, struct error *err)
{
    if (!config->saving)
        return 0;
    struct saver_config saving = *config->saving;
    saving.program = interpreter_program(in);
    saving.origin.seed = (uint64_t)config->job->train.seed;
    saving.origin.batch = (uint64_t)plan_global_batch(config->plan);
    int rc = saver_create(&saving, out, err);
    if (rc == 0 && config->reporter->reserved)
        config->reporter->reserved(config->reporter->context, config->rank, saver_bytes(*out));
    return rc;
}

static int begin(struct run *run, struct error *err)
{
    const struct reporter *reporter = run->config->reporter;
    double started = clock_now_s();
    int rc = begin_state(run->config, run->in, &run->begun, err);
    if (rc < 0)
        return rc;
    run->begun.told.fill_s = clock_now_s() - started;
    if (reporter->begun)
        reporter->begun(reporter->context, run->config->rank, &run->begun.told);
    return 0;
}

static void pin_state(struct interpreter *in)
{
    struct error why;
    if (interpreter_pin_state(in, &why) < 0)
        log_line(LOG_WARN, "copies and checkpoints leave the device more slowly: %s", why.text);
}

static int run_prepared(struct run *run, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    struct interpreter *in = run->in;
    struct times *times = times_create(run->program, config->compute_s);
    struct saver *saver = NULL;
    int rc = begin(run, err);
    if (rc == 0)
        rc = open_saver(config, in, &saver, err);
    if (rc == 0 && (run->begun.copies || saver))
        pin_state(in);
    if (rc == 0 && reporter->ready)
        rc = reporter->ready(reporter->context, config->rank, run->hash, err);
    if (rc == 0)
        rc = train(run,
                   &(struct boundary){.config = config,
                                      .in = in,
                                      .times = times,
                                      .saver = saver,
                                      .copies = run->begun.copies},
                   err);
    if (rc == 0)
        rc = copies_await(run->begun.copies, err);
    if (rc == 0)
        rc = interpreter_quiesce(in, err);
    if (rc == 0 && saver)
        rc = saver_finish(saver, err);
    if (rc == 0 && config->job->eval.sample > 0)
        rc = sample_run(config, in, err);
    saver_destroy(saver);
    times_destroy(times);
    return rc;
}

static int prepare(struct run *run, const struct feed *feed, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct interpreter_config prepare = {
        .device = config->device,
        .collectives = config->program_collectives,
        .fabric = config->program_fabric,
        .feed = feed,
        .optimizer = trainer_optimizer(config->job),
        .trail = config->trail,
        .estate = config->kept ? config->kept->estate : NULL,
        .epoch = config->epoch,
        .commits_cb = await_copies,
        .commits_context = run,
    };
    double started = clock_now_s();
    int rc = lower(config->graph, config->plan, config->rank, &run->program, err);
    if (rc < 0)
        return rc;
    run->hash = program_hash(run->program);
    if (config->hash && config->hash != run->hash)
        return error_set(err, -EPROTO,
                         "rank %d lowered program %016llx where the planner has %016llx: "
                         "coordinator and worker are of different versions; install the same one "
                         "on all nodes",
                         config->rank, (unsigned long long)run->hash,
                         (unsigned long long)config->hash);
    rc = interpreter_prepare(run->program, &prepare, &run->in, err);
    run->begun.told.prepare_s = clock_now_s() - started;
    return rc;
}

/* Keep what is left of an epoch that breaks off. If the device is lost, its state is lost too, but
 * the copies are in host memory. */
static void leave(struct run *run)
{
    struct holding *copies[COPIES_SLOTS];
    int count = copies_leave(run->begun.copies, copies); /* their thread uses the interpreter */
    struct holding *state = run->in ? interpreter_leave(run->in) : NULL;
    if (state)
        kept_add(run->config->kept, state);
    for (int i = 0; i < count; i++)
        kept_add(run->config->kept, copies[i]);
    run->begun.copies = NULL;
}

static void finish(struct run *run, bool broken)
{
    if (broken && run->config->kept)
        leave(run);
    copies_destroy(run->begun.copies);
    free(run->begun.slices);
    interpreter_release(run->in);
    program_destroy(run->program);
}

int trainer_run(const struct trainer_config *config, struct error *err)
{
    struct run run = {.config = config};
    const struct feed feed = {config->data, fill, targets};
    int rc = prepare(&run, &feed, err);
    if (rc == 0)
        rc = run_prepared(&run, err);
    finish(&run, rc < 0);
    return rc;
}

int trainer_give(const struct trainer_config *config, struct error *err)
{
    const struct reporter *reporter = config->reporter;
    struct beginning beginning = {0};
    double started = clock_now_s();
    int rc = begin_give(config, &beginning, err);
    beginning.fill_s = clock_now_s() - started;
    if (rc == 0 && reporter->begun)
        reporter->begun(reporter->context, config->rank, &beginning);
    if (rc == 0 && reporter->ready)
        rc = reporter->ready(reporter->context, config->rank, 0, err);
    return rc;
}
