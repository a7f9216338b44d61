/* begin.c - a state from what the ranks hold, a checkpoint, other weights, or the seed. */
#include "worker/trainer/begin.h"

#include "common/base/log.h"
#include "common/checkpoint/ancestor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

/* Any defect of the checkpoint is -EBADMSG: there is no state in it to begin from. */
static int begin_fault(const char *folder, int rc, struct error *err)
{
    if (rc < 0 && rc != -ENOBUFS)
        rc = -EBADMSG;
    return rc < 0 ? error_prefix(err, rc, "load the checkpoint '%s'", folder) : 0;
}

/* Other data are followed, and told of. */
static void begin_compare_data(const struct trainer_config *config,
                               const struct checkpoint *checkpoint)
{
    struct texts differences = {0};
    if (config->rank == 0)
        ancestor_compare_files(checkpoint_manifest(checkpoint), config->files, config->file_count,
                               &differences);
    for (size_t i = 0; i < differences.count; i++)
        log_line(LOG_WARN, "not as in the checkpoint: %s", differences.items[i]);
    ancestor_forget(&differences);
}

static int begin_load(const struct trainer_config *config, struct interpreter *in,
                      struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    int rc = checkpoint_open(config->start, &checkpoint, err);
    if (rc == 0)
        rc = checkpoint_expect(checkpoint, config->start_age.step, config->graph, err);
    if (rc == 0)
        rc = state_load(checkpoint, interpreter_program(in), STATE_PARTS, buffer_of, in, err);
    if (rc == 0)
        begin_compare_data(config, checkpoint);
    checkpoint_close(checkpoint);
    return begin_fault(config->start, rc, err);
}

/* The weights of a checkpoint of any step; moments stay as a new job has them. */
static int begin_weights(const struct trainer_config *config, struct interpreter *in,
                         struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    int rc = checkpoint_open(config->weights, &checkpoint, err);
    if (rc == 0)
        rc = manifest_compare(checkpoint_manifest(checkpoint), config->graph, err);
    if (rc == 0)
        rc = state_load(checkpoint, interpreter_program(in), STATE_WEIGHT + 1, buffer_of, in, err);
    checkpoint_close(checkpoint);
    if (rc == 0 && config->rank == 0)
        log_line(LOG_INFO, "training starts with the weights in '%s'", config->weights);
    return begin_fault(config->weights, rc, err);
}

static void apply_kept(const struct trainer_config *config, const struct move *move)
{
    const struct optimizer optimizer = trainer_optimizer(config->job);
    /* The kept state is in host memory. */
    const struct update_rule rule = {&device_cpu, &optimizer, config->graph};
    kept_apply(config->kept, move, &rule);
}

/* Do what the ranks have decided: apply an armed step first, then move states if they come from
 * memory. */
static int begin_take_over(const struct trainer_config *config, struct interpreter *in,
                           struct move *move, struct begun *begun, struct error *err)
{
    const struct move_decision *decision = move_decided(move);
    begun->told.source = decision->source;
    begun->told.inherited = config->kept->inherited;
    begun->age = decision->age;
    if (decision->has_metrics)
        begun->told.loss = (double)decision->metrics[METRIC_LOSS];
    begun->skipped = decision->has_metrics && !(isfinite(decision->metrics[METRIC_LOSS]) &&
                                                isfinite(decision->metrics[METRIC_SQUARE_SUM]));
    apply_kept(config, move);
    if (decision->source != MOVE_MEMORY)
        return 0;
    return move_fill(move, buffer_of, in, &begun->told.bytes_arrived, err);
}

static int begin_anew(const struct trainer_config *config, struct interpreter *in,
                      struct error *err)
{
    interpreter_initialize(in, (uint64_t)config->job->train.seed);
    if (config->weights)
        return begin_weights(config, in, err);
    if (!config->pretrained)
        return 0;
    pretrained_fill(config->pretrained, interpreter_program(in), buffer_of, in);
    if (config->rank != 0)
        return 0;
    const char *folder = config->job->model.weights, *remark;
    log_line(LOG_INFO, "training starts with the weights in '%s'", folder);
    for (size_t i = 0; (remark = pretrained_remark(config->pretrained, i)); i++)
        log_line(LOG_WARN, "model.weights '%s': %s", folder, remark);
    return 0;
}

static int begin_fill(const struct trainer_config *config, struct interpreter *in,
                      struct begun *begun, struct error *err)
{
    if (begun->told.source == MOVE_DISK)
        return begin_load(config, in, err);
    return begun->told.source == MOVE_FRESH ? begin_anew(config, in, err) : 0;
}

/* From here on the state survives this process. */
static void begin_publish(struct interpreter *in, const struct move *move,
                          const struct begun *begun)
{
    const struct move_decision *decision = move_decided(move);
    struct standing standing = {
        .epoch = begun->age.epoch, .step = begun->age.step, .has_metrics = decision->has_metrics};
    memcpy(standing.metrics, decision->metrics, sizeof standing.metrics);
    interpreter_publish(in, &standing);
}

static int fetch_beside(void *in, struct error *err)
{
    return interpreter_fetch_state_beside(in, err);
}

/* Take the first copies before any rank starts a step. */
static int begin_copies(const struct trainer_config *config, struct interpreter *in,
                        const struct move *move, struct begun *begun, struct error *err)
{
    const struct copies_config copies = {
        .fabric = config->fabric,
        .plan = config->plan,
        .nodes = config->nodes,
        .outlived = !config->device->accelerator,
        .estate = config->kept->estate,
        .epoch = config->epoch,
    };
    if (config->copy_every == 0)
        return 0;
    int rc = copies_create(move, &copies, &begun->copies, err);
    if (rc < 0 || !begun->copies)
        return rc;
    begun->told.bytes_copied = copies_bytes(begun->copies);
    begun->slices = state_slices(interpreter_program(in), buffer_of, in);
    rc = copies_take(begun->copies, begun->slices, interpreter_standing(in), err);
    const struct copies_source source = {
        .state = begun->slices,
        .fetch_cb = fetch_beside,
        .context = in,
        .trail = config->trail,
    };
    return rc == 0 ? copies_start(begun->copies, &source, err) : rc;
}

static struct move_config meeting_of(const struct trainer_config *config,
                                     const struct program *program, const struct move_held *held,
                                     size_t held_count)
{
    return (struct move_config){
        .graph = config->graph,
        .program = program,
        .collectives = config->collectives,
        .fabric = config->givers > 0 ? config->meeting : config->fabric,
        .rank = config->rank,
        .ranks = plan_ranks(config->plan) + config->givers,
        .held = held,
        .held_count = held_count,
        .disk = config->start_age,
        .has_disk = config->start != NULL,
    };
}

int begin_give(const struct trainer_config *config, struct beginning *beginning, struct error *err)
{
    size_t count;
    struct move_held *held = kept_describe(config->kept, &count);
    const struct move_config meeting = meeting_of(config, NULL, held, count);
    struct move *move = NULL;
    int rc = move_meet(&meeting, &move, err);
    if (rc == 0) {
        beginning->source = move_decided(move)->source;
        beginning->inherited = config->kept->inherited;
        beginning->step = move_decided(move)->age.step;
        apply_kept(config, move);
    }
    if (rc == 0 && beginning->source == MOVE_MEMORY)
        rc = move_fill(move, NULL, NULL, &beginning->bytes_arrived, err);
    move_destroy(move);
    free(held);
    return rc;
}

int begin_state(const struct trainer_config *config, struct interpreter *in, struct begun *begun,
                struct error *err)
{
    struct move *move = NULL;
    int rc = 0;
    begun->told.loss = NAN;
    begun->told.source = config->start ? MOVE_DISK : MOVE_FRESH;
    begun->age = config->start ? config->start_age : (struct move_age){0};
    if (!config->kept) {
        begun->told.step = begun->age.step;
        rc = begin_fill(config, in, begun, err);
        return rc == 0 ? interpreter_store_state(in, err) : rc;
    }
    size_t count;
    struct move_held *held = kept_describe(config->kept, &count);
    const struct move_config meeting = meeting_of(config, interpreter_program(in), held, count);
    rc = move_meet(&meeting, &move, err);
    if (rc == 0)
        rc = begin_take_over(config, in, move, begun, err);
    if (rc == 0)
        rc = begin_fill(config, in, begun, err);
    if (rc == 0)
        rc = interpreter_store_state(in, err);
    if (rc == 0)
        begin_publish(in, move, begun);
    if (rc == 0)
        rc = begin_copies(config, in, move, begun, err);
    begun->told.step = begun->age.step;
    move_destroy(move);
    free(held);
    return rc;
}
