/* trainer.c - the training loop of one rank.
 *
 * The loop itself is run_steps(); around it are preparing, beginning with a state, and leaving the
 * state to the executor when an epoch is over. */
#include "worker/trainer/trainer.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/program/lower.h"
#include "worker/trainer/begin.h"
#include "worker/trainer/times.h"
#include "worker/trainer/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct run {
    const struct trainer_config *config;
    struct program *program;
    uint64_t hash; /* hash of the lowered program */
    struct interpreter *in;
    struct begun begun;
    struct times *times;
    struct saver *saver; /* NULL: the job writes no checkpoints */
    bool due;            /* a checkpoint is due after the next finite step */
    double saved_s;      /* when the newest one was taken, or the epoch began */
    uint64_t skipped;    /* consecutive skipped steps */
    uint64_t pauses;     /* how often the ranks have paused */
};

/* ---- what is due between two steps ----
 *
 * Every rank decides by the same rules from the same numbers, so that collective work (evaluation,
 * saving) starts on all of them. */

/* Whether the instructions of this step, counted from 1, are reported one by one. */
static bool is_traced(uint64_t step)
{
    return step < TRACE_EVERY ? (step & (step - 1)) == 0 : step % TRACE_EVERY == 0;
}

static void report_trace(const struct trainer_config *config, const struct interpreter *in,
                         uint64_t done)
{
    size_t count, total = program_step_count(interpreter_program(in), PROGRAM_TRAIN);
    const struct stamp *stamps = interpreter_stamps(in, &count);
    config->reporter->trace(config->reporter->context, config->rank, done, stamps, count, total);
}

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

/* Only the copy is taken here, while nothing runs; the saver writes it alongside later steps. */
static int run_save(struct run *run, uint64_t done, struct error *err)
{
    if (!run->saver)
        return 0;
    run->saved_s = clock_s();
    int rc = copies_await(run->begun.copies, err); /* it fetches the state, too */
    if (rc == 0)
        rc = interpreter_fetch_state(run->in, err);
    return rc == 0 ? saver_take(run->saver, done, buffer_of, run->in, err) : rc;
}

/* All ranks stop here. Whatever is in flight is waited for: on the network because a peer may be
 * gone before the ranks go on, and on the disk. *saved: whether this step has been saved. */
static int run_settle(struct run *run, uint64_t done, bool *saved, struct error *err)
{
    *saved = false;
    int rc = copies_await(run->begun.copies, err);
    if (rc == 0)
        rc = run_save(run, done, err);
    if (rc == 0)
        rc = interpreter_quiesce(run->in, err);
    return rc == 0 && run->saver ? saver_part(run->saver, done, saved, err) : rc;
}

static int stopped_behind(const struct run *run, uint64_t done, bool saved, struct error *err)
{
    return error_set(err, -ECANCELED, "it was asked to stop, and did behind step %llu%s",
                     (unsigned long long)done,
                     !run->saver ? ""
                     : saved     ? ", which is saved"
                                 : ", which could not be saved");
}

/* Stop after this step with a checkpoint. Returns -ECANCELED with words, or the error that
 * prevented it. */
static int boundary_stop(struct run *run, uint64_t done, struct error *err)
{
    bool saved;
    int rc = run_settle(run, done, &saved, err);
    return rc < 0 ? rc : stopped_behind(run, done, saved, err);
}

/* The last steps were not finite: there is nothing to save. Waits until earlier checkpoints are
 * written, then returns -EDOM with words for the user. */
static int boundary_diverged(const struct run *run, uint64_t done, struct error *err)
{
    uint64_t most = run->config->max_skipped;
    struct error ignored; /* that the steps diverged matters more than a failed checkpoint */
    if (run->saver)
        saver_finish(run->saver, &ignored);
    return error_set(
        err, -EDOM, "no step from %" PRIu64 " to %" PRIu64 " had a finite loss and gradient%s",
        done - run->skipped + 1, done,
        most > 0 && run->skipped >= most ? " (elastic.max_skipped)" : ": nothing was learned");
}

/* Go through pause `number`: save and settle everything, then report the pause and wait until it is
 * over. The checkpoint is complete before anybody hears of the pause, so a rank that is stopped
 * during it has nothing left to do. -ECANCELED, with words, if it was stopped. */
static int boundary_pause(struct run *run, uint64_t done, uint64_t number, struct error *err)
{
    const struct reporter *reporter = run->config->reporter;
    bool saved;
    int rc = run_settle(run, done, &saved, err);
    if (rc == 0 && reporter->paused)
        rc = reporter->paused(reporter->context, run->config->rank, done, number, err);
    return rc > 0 ? stopped_behind(run, done, saved, err) : rc;
}

static int check_wanted(const struct reporter *reporter, uint64_t done, struct error *err)
{
    if (!reporter->is_over || !reporter->is_over(reporter->context))
        return 0;
    return error_set(err, -ECANCELED, "cancelled behind step %llu", (unsigned long long)done);
}

/* What this rank would have all of them do, for all to hear of with the metrics of what it runs
 * next. */
static int run_ask(const struct run *run, uint64_t done, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    bool timed = run->saver && config->job->checkpoint.every == 0 && config->save_every_s > 0;
    const struct step_wishes wishes = {
        .pause = reporter->wants_pause && reporter->wants_pause(reporter->context, run->pauses),
        .stop = reporter->wants_stop && reporter->wants_stop(reporter->context),
        .save = timed && clock_s() >= run->saved_s + config->save_every_s,
    };
    interpreter_wish(run->in, &wishes);
    return check_wanted(reporter, done, err);
}

/* The loss over all held-out samples, in the order of the data; the last batch is filled up with
 * ignored ones. So it is that of the same targets with batches of any size. Ranks pause and stop
 * between two batches as between two steps. */
static int run_evaluation(struct run *run, uint64_t done, struct error *err)
{
    const struct trainer_config *config = run->config;
    uint64_t batch = (uint64_t)plan_global_batch(config->plan);
    uint64_t samples = data_samples(config->data, DATA_HOLDOUT);
    bool last = done == (uint64_t)config->job->train.steps;
    double sum = 0, count = 0;
    for (uint64_t first = 0; first < samples; first += batch) {
        struct step_result result;
        int rc = run_ask(run, done, err);
        if (rc == 0)
            rc = interpreter_run(run->in, PROGRAM_EVALUATE, first / batch, &result, err);
        if (rc == 0 && !last && result.stop)
            rc = boundary_stop(run, done, err);
        if (rc == 0 && !last && result.pause)
            rc = boundary_pause(run, done, ++run->pauses, err);
        if (rc < 0)
            return rc;
        double here = (double)data_targets(config->data, DATA_HOLDOUT, first, batch);
        sum += result.loss * here;
        count += here;
    }
    if (count > 0 && config->reporter->evaluation)
        config->reporter->evaluation(config->reporter->context, config->rank, done, sum / count,
                                     count);
    times_forget(run->times, run->in);
    return 0;
}

/* Whether held-out data are evaluated after this step. */
static bool is_evaluated(const struct run *run, uint64_t done)
{
    const struct job_config *job = run->config->job;
    uint64_t every = (uint64_t)job->eval.every;
    return every > 0 && (done % every == 0 || done == (uint64_t)job->train.steps);
}

/* Trace and instruction times after step number `done`. */
static void report_step(const struct run *run, uint64_t done)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    bool last = done == (uint64_t)config->job->train.steps;
    if (is_traced(done) && reporter->trace)
        report_trace(config, run->in, done);
    if ((done % TIMES_EVERY == 0 || last || times_due(run->times)) && reporter->times)
        times_report(run->times, run->in, config->rank, reporter);
}

/* Do what is due after step number `done`. May be repeated for a step that an earlier epoch has
 * finished, since that epoch may have broken off before all of this was done. A checkpoint due
 * after a skipped step waits for the next finite one, unless the step is the last of the job: the
 * state that made a step diverge is not one to go back to. */
static int boundary_step(struct run *run, uint64_t done, bool skipped, struct error *err)
{
    const struct job_config *job = run->config->job;
    uint64_t every = (uint64_t)job->checkpoint.every;
    bool last = done == (uint64_t)job->train.steps;
    run->due = run->due || (every && done % every == 0);
    bool saves = last || (run->due && !skipped);
    int rc = saves ? run_save(run, done, err) : 0;
    run->due = run->due && !saves;
    if (rc < 0)
        return rc;
    report_step(run, done);
    return is_evaluated(run, done) ? run_evaluation(run, done, err) : 0;
}

/* ---- the loop ---- */

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
static int real_cause(struct run *run, int rc, struct error *err)
{
    int cause = rc == -ECANCELED ? copies_failed(run->begun.copies, err) : 0;
    return cause < 0 ? cause : rc;
}

/* Too many steps in a row were skipped, or all of a training that ends here. All ranks come to the
 * same result, because they see the same metrics. */
static bool diverges(struct run *run, uint64_t done, bool skipped)
{
    const struct trainer_config *config = run->config;
    run->skipped = skipped ? run->skipped + 1 : 0;
    if (config->max_skipped > 0 && run->skipped >= config->max_skipped)
        return true;
    return done == (uint64_t)config->job->train.steps && run->skipped == done;
}

/* What an earlier epoch left undone after its last step: all of it, or, if that step was saved, at
 * least its evaluation. A checkpoint that should have been listed by now, and was not because the
 * epoch broke, is due at once. */
static int boundary_begin(struct run *run, struct error *err)
{
    const struct trainer_config *config = run->config;
    uint64_t step = run->begun.told.step, saved = config->start ? config->start_age.step : 0;
    uint64_t every = (uint64_t)config->job->checkpoint.every;
    if (step > 0 && run->begun.told.source == MOVE_MEMORY) {
        run->due = every && step / every > saved / every;
        return boundary_step(run, step, run->begun.skipped, err);
    }
    return step > 0 && is_evaluated(run, step) ? run_evaluation(run, step, err) : 0;
}

static int run_steps(struct run *run, struct error *err)
{
    const struct trainer_config *config = run->config;
    const struct reporter *reporter = config->reporter;
    struct interpreter *in = run->in;
    uint64_t steps = (uint64_t)config->job->train.steps;
    int rc = boundary_begin(run, err);
    for (uint64_t step = run->begun.told.step; step < steps && rc == 0; step++) {
        struct step_result result;
        uint64_t pauses = run->pauses;
        interpreter_time(in, is_traced(step + 1));
        double begin = clock_s();
        rc = run_ask(run, step, err);
        if (rc == 0)
            rc = interpreter_run(in, PROGRAM_TRAIN, step, &result, err);
        if (rc < 0)
            return real_cause(run, rc, err);
        if (config->kept) /* all ranks have their new state and have used it */
            kept_clear(config->kept);
        copy_behind(run, step + 1);
        if (reporter->step)
            reporter->step(reporter->context, config->rank, step + 1, &result, clock_s() - begin);
        run->due = run->due || result.save;
        bool last = step + 1 == steps, stop = result.stop && !last;
        rc = diverges(run, step + 1, result.skipped) ? boundary_diverged(run, step + 1, err)
             : stop                                  ? boundary_stop(run, step + 1, err)
                    : boundary_step(run, step + 1, result.skipped, err);
        if (rc == 0 && result.pause && !last && run->pauses == pauses)
            rc = boundary_pause(run, step + 1, ++run->pauses, err);
    }
    return rc;
}

/* ---- around it ---- */

static enum data_split split_of(enum program_kind kind)
{
    return kind == PROGRAM_TRAIN ? DATA_TRAIN : DATA_HOLDOUT;
}

static void feed_fill(const void *context, enum program_kind kind, uint64_t first,
                      const struct tensor *tensor, const struct box *box, int32_t *out)
{
    const struct trainer_config *config = context;
    uint64_t shift = kind == PROGRAM_TRAIN ? config->shift : 0;
    data_fill(config->data, split_of(kind), first + shift, box->low[0], box->high[0], box->low[1],
              box->high[1], tensor->targets, out);
}

static double feed_targets(const void *context, enum program_kind kind, uint64_t first,
                           uint64_t samples)
{
    const struct trainer_config *config = context;
    return (double)data_targets(config->data, split_of(kind), first, samples);
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

/* All ranks wait for the last checkpoint: none of them says that it is done before it is listed. */
static int run_save_last(const struct run *run, struct error *err)
{
    uint64_t steps = (uint64_t)run->config->job->train.steps;
    bool before = run->begun.told.source == MOVE_DISK && run->begun.told.step == steps;
    int rc = before ? 0 : saver_last(run->saver, steps, err);
    return rc > 0 ? stopped_behind(run, steps, false, err) : rc;
}

static int run_open_saver(struct run *run, struct error *err)
{
    const struct trainer_config *config = run->config;
    if (!config->saving)
        return 0;
    struct saver_config saving = *config->saving;
    saving.program = run->program;
    saving.last_step = (uint64_t)config->job->train.steps;
    saving.origin.seed = (uint64_t)config->job->train.seed;
    saving.origin.batch = (uint64_t)plan_global_batch(config->plan);
    saving.origin.files = config->files;
    saving.origin.file_count = config->file_count;
    saving.shift = config->shift;
    int rc = saver_create(&saving, &run->saver, err);
    run->saved_s = clock_s();
    if (rc == 0 && config->reporter->reserved)
        config->reporter->reserved(config->reporter->context, config->rank,
                                   saver_bytes(run->saver));
    return rc;
}

static int run_begin(struct run *run, struct error *err)
{
    const struct reporter *reporter = run->config->reporter;
    double started = clock_s();
    int rc = begin_state(run->config, run->in, &run->begun, err);
    if (rc < 0)
        return rc;
    run->begun.told.fill_s = clock_s() - started;
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
    run->times = times_create(run->program, config->compute_s);
    int rc = run_begin(run, err);
    if (rc == 0)
        rc = run_open_saver(run, err);
    if (rc == 0 && (run->begun.copies || run->saver))
        pin_state(in);
    if (rc == 0 && reporter->ready)
        rc = reporter->ready(reporter->context, config->rank, run->hash, err);
    if (rc == 0)
        rc = run_steps(run, err);
    if (rc == 0)
        rc = copies_await(run->begun.copies, err);
    if (rc == 0)
        rc = interpreter_quiesce(in, err);
    if (rc == 0 && run->saver)
        rc = run_save_last(run, err);
    if (rc == 0 && config->job->eval.sample > 0)
        rc = writer_sample(config, in, err);
    saver_destroy(run->saver);
    times_destroy(run->times);
    return rc;
}

static int run_prepare(struct run *run, const struct feed *feed, struct error *err)
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
    double started = clock_s();
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
    run->begun.told.prepare_s = clock_s() - started;
    return rc;
}

/* Keep what is left of an epoch that is over. If the device is lost, its state is lost too, but
 * the copies are in host memory. */
static void run_leave(struct run *run)
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

static void run_finish(struct run *run)
{
    if (run->config->kept)
        run_leave(run);
    copies_destroy(run->begun.copies);
    free(run->begun.slices);
    interpreter_release(run->in);
    program_destroy(run->program);
}

int trainer_run(const struct trainer_config *config, struct error *err)
{
    struct run run = {.config = config};
    const struct feed feed = {config, feed_fill, feed_targets};
    int rc = run_prepare(&run, &feed, err);
    if (rc == 0)
        rc = run_prepared(&run, err);
    run_finish(&run);
    return rc;
}

int trainer_give(const struct trainer_config *config, struct error *err)
{
    const struct reporter *reporter = config->reporter;
    struct beginning beginning = {.loss = NAN};
    double started = clock_s();
    int rc = begin_give(config, &beginning, err);
    beginning.fill_s = clock_s() - started;
    if (rc == 0 && reporter->begun)
        reporter->begun(reporter->context, config->rank, &beginning);
    if (rc == 0 && reporter->ready)
        rc = reporter->ready(reporter->context, config->rank, 0, err);
    return rc;
}
