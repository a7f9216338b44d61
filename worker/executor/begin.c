/* begin.c - from what the ranks hold, from a checkpoint, or from the seed. */
#include "worker/executor/begin.h"

static void *buffer_of(void *context, int buffer)
{
    return interpreter_buffer(context, buffer);
}

static int load(const struct trainer_config *config, struct interpreter *in, struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    const struct manifest_origin expected = {
        .step = config->start_age.step,
        .seed = (uint64_t)config->job->train.seed,
        .batch = (uint64_t)plan_global_batch(config->plan),
    };
    int rc = checkpoint_open(config->start, &checkpoint, err);
    if (rc == 0)
        rc = checkpoint_expect(checkpoint, &expected, config->graph, err);
    if (rc == 0)
        rc = state_load(checkpoint, interpreter_program(in), buffer_of, in, err);
    checkpoint_close(checkpoint);
    return rc < 0 ? error_prefix(err, rc, "load the checkpoint '%s'", config->start) : 0;
}

/* What is armed in one of the states applies its step first. */
static int gather(const struct trainer_config *config, struct interpreter *in,
                  struct beginning *beginning, struct move_age *age, struct error *err)
{
    struct move_held held[KEPT_MAX];
    struct move *move = NULL;
    kept_describe(config->kept, held);
    const struct move_config meeting = {
        .program = interpreter_program(in),
        .collectives = config->collectives,
        .fabric = config->fabric,
        .held = held,
        .held_count = config->kept->count,
        .disk = config->start_age,
        .has_disk = config->start != NULL,
    };
    int rc = move_meet(&meeting, &move, err);
    if (rc < 0)
        return rc;
    beginning->source = move_decided(move)->source;
    *age = move_decided(move)->age;
    kept_apply(config->kept, move);
    if (beginning->source == MOVE_MEMORY)
        rc = move_fill(move, buffer_of, in, &beginning->bytes_arrived, err);
    move_destroy(move);
    return rc;
}

int begin_state(const struct trainer_config *config, struct interpreter *in,
                struct beginning *beginning, struct move_age *age, struct error *err)
{
    int rc = 0;
    beginning->source = config->start ? MOVE_DISK : MOVE_FRESH;
    *age = config->start ? config->start_age : (struct move_age){0};
    if (config->gather)
        rc = gather(config, in, beginning, age, err);
    if (rc == 0 && beginning->source == MOVE_DISK)
        rc = load(config, in, err);
    if (rc == 0 && beginning->source == MOVE_FRESH)
        interpreter_initialize(in, (uint64_t)config->job->train.seed);
    beginning->step = age->step;
    return rc;
}
