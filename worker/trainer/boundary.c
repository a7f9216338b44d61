/* boundary.c - work between steps. Every rank decides by the same rules from the same numbers, so
 * that collective work (evaluation, saving) starts on all of them. */
#include "worker/trainer/boundary.h"

#include <errno.h>
#include <inttypes.h>

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
        double here = (double)data_targets(config->data, DATA_HOLDOUT, i * batch, batch);
        sum += result.loss * here;
        count += here;
    }
    if (count > 0 && config->reporter->evaluation)
        config->reporter->evaluation(config->reporter->context, config->rank, step, sum / count,
                                     count);
    return 0;
}

bool boundary_traces(uint64_t step)
{
    return step < TRACE_EVERY ? (step & (step - 1)) == 0 : step % TRACE_EVERY == 0;
}

static void trace(const struct trainer_config *config, const struct interpreter *in, uint64_t done)
{
    size_t count, total = program_step_count(interpreter_program(in), PROGRAM_TRAIN);
    const struct stamp *stamps = interpreter_stamps(in, &count);
    config->reporter->trace(config->reporter->context, config->rank, done, stamps, count, total);
}

/* Trace, instruction times and evaluation after step number `done`. */
static int tell_step(const struct boundary *boundary, uint64_t done, struct error *err)
{
    const struct trainer_config *config = boundary->config;
    const struct reporter *reporter = config->reporter;
    struct interpreter *in = boundary->in;
    uint64_t every = (uint64_t)config->job->eval.every;
    bool last = done == (uint64_t)config->job->train.steps;
    if (boundary_traces(done) && reporter->trace)
        trace(config, in, done);
    if ((done % TIMES_EVERY == 0 || last || times_due(boundary->times)) && reporter->times)
        times_report(boundary->times, in, config->rank, reporter);
    if (!every || (done % every != 0 && !last))
        return 0;
    int rc = evaluate(config, in, done, err);
    times_forget(boundary->times, in);
    return rc;
}

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

/* Only the copy is taken here, while nothing runs; the saver writes it alongside later steps. */
static int save(const struct boundary *boundary, uint64_t done, struct error *err)
{
    if (!boundary->saver)
        return 0;
    int rc = copies_await(boundary->copies, err); /* it fetches the state, too */
    if (rc == 0)
        rc = interpreter_fetch_state(boundary->in, err);
    return rc == 0 ? saver_take(boundary->saver, done, buffer_of, boundary->in, err) : rc;
}

int boundary_step(struct boundary *boundary, uint64_t done, bool skipped, struct error *err)
{
    const struct job_config *job = boundary->config->job;
    uint64_t every = (uint64_t)job->checkpoint.every;
    bool last = done == (uint64_t)job->train.steps;
    boundary->due = boundary->due || (every && done % every == 0);
    bool saves = last || (boundary->due && !skipped);
    int rc = saves ? save(boundary, done, err) : 0;
    boundary->due = boundary->due && !saves;
    return rc == 0 ? tell_step(boundary, done, err) : rc;
}

/* All ranks stop here. Whatever is in flight is waited for: on the network because a peer may be
 * gone before the ranks go on, and on the disk. *saved: whether this step has been saved. */
static int settle(const struct boundary *boundary, uint64_t done, bool *saved, struct error *err)
{
    *saved = false;
    int rc = copies_await(boundary->copies, err);
    if (rc == 0)
        rc = save(boundary, done, err);
    if (rc == 0)
        rc = interpreter_quiesce(boundary->in, err);
    return rc == 0 && boundary->saver ? saver_part(boundary->saver, done, saved, err) : rc;
}

static int ended(const struct boundary *boundary, uint64_t done, bool saved, struct error *err)
{
    return error_set(err, -ECANCELED, "it was asked to stop, and did behind step %llu%s",
                     (unsigned long long)done,
                     !boundary->saver ? ""
                     : saved          ? ", which is saved"
                                      : ", which could not be saved");
}

int boundary_stop(const struct boundary *boundary, uint64_t done, struct error *err)
{
    bool saved;
    int rc = settle(boundary, done, &saved, err);
    return rc < 0 ? rc : ended(boundary, done, saved, err);
}

int boundary_diverged(const struct boundary *boundary, uint64_t done, uint64_t skipped,
                      struct error *err)
{
    struct error ignored; /* that the steps diverged matters more than a failed checkpoint */
    if (boundary->saver)
        saver_finish(boundary->saver, &ignored);
    return error_set(err, -EDOM,
                     "no step from %" PRIu64 " to %" PRIu64 " had a finite loss and gradient "
                     "(elastic.max_skipped)",
                     done - skipped + 1, done);
}

int boundary_pause(const struct boundary *boundary, uint64_t done, uint64_t number,
                   struct error *err)
{
    const struct reporter *reporter = boundary->config->reporter;
    bool saved;
    int rc = settle(boundary, done, &saved, err);
    if (rc == 0 && reporter->paused)
        rc = reporter->paused(reporter->context, boundary->config->rank, done, number, err);
    return rc > 0 ? ended(boundary, done, saved, err) : rc;
}
