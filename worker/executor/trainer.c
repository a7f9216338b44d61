/* trainer.c - the training loop of one rank. */
#include "worker/executor/trainer.h"

#include "common/program/lower.h"
#include "worker/executor/begin.h"
#include "worker/executor/sample.h"
#include "worker/executor/times.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct run {
    const struct trainer_config *config;
    struct kept_state state; /* the one that is trained */
    struct begun begun;
    bool filled; /* it is complete */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

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

static int evaluate(const struct trainer_config *config, struct interpreter *in, uint64_t step,
                    struct error *err)
{
    uint64_t batch = (uint64_t)plan_global_batch(config->plan);
    uint64_t batches = (data_samples(config->data, DATA_HOLDOUT) + batch - 1) / batch;
    batches = batches > EVALUATION_BATCHES_MAX ? EVALUATION_BATCHES_MAX : batches;
    double sum = 0, count = 0;
    for (uint64_t i = 0; i < batches; i++) {
        struct step_result result;
        int rc = interpreter_run(in, PROGRAM_EVALUATE, i, &result, err);
        if (rc < 0)
            return rc;
        double here = targets(config->data, PROGRAM_EVALUATE, i * batch, batch);
        sum += result.loss * here;
        count += here;
    }
    if (count > 0 && config->reporter->evaluation)
        config->reporter->evaluation(config->reporter->context, config->rank, step, sum / count,
                                     count);
    return 0;
}

/* What is on its way arrives first: a peer may be gone before the ranks go on. */
static int pause_behind(const struct trainer_config *config, struct interpreter *in, uint64_t step,
                        uint64_t number, struct error *err)
{
    const struct reporter *reporter = config->reporter;
    int rc = interpreter_quiesce(in, err);
    if (rc == 0 && reporter->paused)
        rc = reporter->paused(reporter->context, config->rank, step, number, err);
    return rc;
}

static bool is_traced(uint64_t step)
{
    return step < TRACE_EVERY ? (step & (step - 1)) == 0 : step % TRACE_EVERY == 0;
}

static void trace(const struct trainer_config *config, const struct interpreter *in, uint64_t done)
{
    size_t count, total = program_step_count(interpreter_program(in), PROGRAM_TRAIN);
    const struct stamp *stamps = interpreter_stamps(in, &count);
    config->reporter->trace(config->reporter->context, config->rank, done, stamps, count, total);
}

/* What is due behind a step; `done` steps are. */
static int follow_step(const struct trainer_config *config, struct interpreter *in,
                       struct times *times, uint64_t done, struct error *err)
{
    const struct reporter *reporter = config->reporter;
    uint64_t every = (uint64_t)config->job->eval.every;
    bool last = done == (uint64_t)config->job->train.steps;
    if (is_traced(done) && reporter->trace)
        trace(config, in, done);
    if ((done % TIMES_EVERY == 0 || last || times_due(times, now())) && reporter->times)
        times_report(times, in, config->rank, now(), reporter);
    if (!every || (done % every != 0 && !last))
        return 0;
    int rc = evaluate(config, in, done, err);
    times_forget(times, in);
    return rc;
}

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

/* The copy is taken while nothing runs; writing it goes on beside the steps. */
static int save_behind(const struct trainer_config *config, struct interpreter *in,
                       struct saver *saver, uint64_t done, bool last, struct error *err)
{
    uint64_t every = (uint64_t)config->job->checkpoint.every;
    if (!saver || (!last && (!every || done % every != 0)))
        return 0;
    return saver_take(saver, done, buffer_of, in, err);
}

/* All ranks stop here: what is on its way is waited for, on the network and on the disk. */
static int stop_behind(struct interpreter *in, struct saver *saver, uint64_t done,
                       struct error *err)
{
    int rc = interpreter_quiesce(in, err);
    if (rc == 0 && saver)
        rc = saver_part(saver, done, err);
    return rc < 0 ? rc
                  : error_set(err, -ECANCELED, "it was asked to stop, and did behind step %llu%s",
                              (unsigned long long)done, saver ? ", which is saved" : "");
}

/* Both are due again where an epoch takes up a step that another one has finished: it may have
 * broken off between. */
static int finish_step(const struct trainer_config *config, struct interpreter *in,
                       struct times *times, struct saver *saver, uint64_t done, struct error *err)
{
    bool last = done == (uint64_t)config->job->train.steps;
    int rc = save_behind(config, in, saver, done, last, err);
    return rc == 0 ? follow_step(config, in, times, done, err) : rc;
}

static int copy_behind(struct run *run, uint64_t done, struct error *err)
{
    if (!run->begun.copies || done % (uint64_t)run->config->job->elastic.copy_every != 0)
        return 0;
    return copies_take(run->begun.copies, run->begun.slices, &run->state.age,
                       interpreter_applied(run->state.in), err);
}

static int train(struct run *run, struct times *times, struct saver *saver, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    struct interpreter *in = run->state.in;
    uint64_t steps = (uint64_t)config->job->train.steps, pauses = 0;
    int rc = 0;
    if (run->begun.told.source == MOVE_MEMORY && run->begun.told.step > 0)
        rc = finish_step(config, in, times, saver, run->begun.told.step, err);
    for (uint64_t step = run->begun.told.step; step < steps && rc == 0; step++) {
        struct step_result result;
        bool wish = reporter->wants_pause && reporter->wants_pause(reporter->context, pauses);
        interpreter_wish(in, wish, reporter->wants_stop && reporter->wants_stop(reporter->context));
        double begin = now();
        rc = interpreter_run(in, PROGRAM_TRAIN, step, &result, err);
        if (rc < 0)
            return rc;
        run->state.age = (struct move_age){config->epoch, step + 1};
        if (config->kept) /* all ranks have their new state, and have used it */
            kept_finish(config->kept);
        rc = copy_behind(run, step + 1, err);
        if (reporter->step)
            reporter->step(reporter->context, config->rank, step + 1, &result, now() - begin);
        bool last = step + 1 == steps, stop = result.stop && !last;
        if (rc == 0)
            rc = stop ? save_behind(config, in, saver, step + 1, true, err)
                      : finish_step(config, in, times, saver, step + 1, err);
        if (rc == 0 && !stop && result.pause && !last) {
            rc = pause_behind(config, in, step + 1, ++pauses, err);
            stop = rc > 0;
            if (stop)
                rc = save_behind(config, in, saver, step + 1, true, err);
        }
        if (rc == 0 && stop)
            return stop_behind(in, saver, step + 1, err);
    }
    return rc;
}

static struct optimizer optimizer_of(const struct job_train *train)
{
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
    double started = now();
    int rc = begin_state(run->config, run->state.in, &run->begun, err);
    if (rc < 0)
        return rc;
    run->filled = true;
    run->state.age = run->begun.age;
    run->begun.told.fill_s = now() - started;
    if (reporter->begun)
        reporter->begun(reporter->context, run->config->rank, &run->begun.told);
    return 0;
}

static int run_prepared(struct run *run, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    struct interpreter *in = run->state.in;
    struct times *times = times_create(run->state.program, config->compute_s, now());
    struct saver *saver = NULL;
    int rc = begin(run, err);
    if (rc == 0)
        rc = open_saver(config, in, &saver, err);
    if (rc == 0 && reporter->ready)
        rc = reporter->ready(reporter->context, config->rank, run->state.program->hash, err);
    if (rc == 0)
        rc = train(run, times, saver, err);
    if (rc == 0)
        rc = interpreter_quiesce(in, err);
    if (rc == 0 && config->job->eval.sample > 0)
        rc = sample_run(config, in, err);
    if (rc == 0 && saver)
        rc = saver_finish(saver, err);
    saver_destroy(saver);
    times_destroy(times);
    return rc;
}

static int prepare(struct run *run, const struct feed *feed, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct interpreter_config prepare = {
        .device = config->device,
        .collectives = config->collectives,
        .fabric = config->fabric,
        .feed = feed,
        .optimizer = optimizer_of(&config->job->train),
        .trail = config->trail,
    };
    double started = now();
    int rc = lower(config->graph, config->plan, config->rank, &run->state.program, err);
    if (rc < 0)
        return rc;
    uint64_t hash = run->state.program->hash;
    if (config->hash && config->hash != hash)
        return error_set(err, -EPROTO,
                         "rank %d lowered program %016llx where the planner has %016llx: "
                         "coordinator and worker are of different versions; install the same one "
                         "on all nodes",
                         config->rank, (unsigned long long)hash, (unsigned long long)config->hash);
    rc = interpreter_prepare(run->state.program, &prepare, &run->state.in, err);
    run->begun.told.prepare_s = now() - started;
    return rc;
}

/* What an epoch ends with when it breaks off. While the states that it was moved from are still
 * here, no step has been applied: then the new one is worth something only if it may have to apply
 * that step, and its copies are no newer than those there are. */
static void keep(struct run *run, bool broken)
{
    struct kept *kept = run->config->kept;
    bool first = kept && kept->count == 0, worth = kept && broken && run->filled;
    free(run->begun.slices);
    if (worth && (first || !kept->copies)) {
        copies_destroy(kept->copies);
        kept->copies = run->begun.copies;
    } else {
        copies_destroy(run->begun.copies);
    }
    if (worth && (first || interpreter_armed(run->state.in))) {
        kept_add(kept, &run->state);
        return;
    }
    interpreter_release(run->state.in);
    program_destroy(run->state.program);
}

int trainer_run(const struct trainer_config *config, struct error *err)
{
    struct run run = {.config = config, .state.ran_in = config->epoch};
    const struct feed feed = {config->data, fill, targets};
    int rc = prepare(&run, &feed, err);
    if (rc == 0)
        rc = run_prepared(&run, err);
    keep(&run, rc < 0);
    return rc;
}

int trainer_give(const struct trainer_config *config, struct error *err)
{
    const struct reporter *reporter = config->reporter;
    struct beginning beginning = {0};
    double started = now();
    int rc = begin_give(config, &beginning, err);
    beginning.fill_s = now() - started;
    if (rc == 0 && reporter->begun)
        reporter->begun(reporter->context, config->rank, &beginning);
    if (rc == 0 && reporter->ready)
        rc = reporter->ready(reporter->context, config->rank, 0, err);
    return rc;
}
