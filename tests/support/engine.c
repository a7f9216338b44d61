/* engine.c - lower, simulate and run all ranks of a plan, in threads or in processes; and plans to
 * try that with, regular ones and ones drawn from a seed. */
#include "tests/support/engine.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/simulation/simulate.h"
#include "tests/support/counts.h"
#include "tests/support/ranks.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LIMIT_S 60         /* of a job of processes */
#define PEER_LIMIT_S 20    /* for which a rank waits for others */
#define OPENING_LIMIT_S 40 /* until all processes have opened their devices */

/* What the ranks of a run leave, in memory that forked processes share and that is mapped at once
 * for all that may be taken of it: what is not taken costs nothing. Behind it lies what has been
 * taken. */
struct outcome {
    pthread_mutex_t lock;
    int rc; /* the first failure, and its words */
    struct error err;
    size_t size, used;
    struct engine_result result; /* which owns all this: engine_result_finish() */
};

/* Zeros, for one of the arrays of the result; under the lock. */
static void *outcome_take(struct outcome *outcome, size_t count, size_t size)
{
    void *taken = (char *)outcome + outcome->used;
    outcome->used += (count * size + 15) / 16 * 16;
    assert(outcome->used <= outcome->size);
    return taken;
}

static size_t outcome_size(const struct graph *graph, int ranks)
{
    size_t size = sizeof(struct outcome) + 16 + (size_t)ranks * (2 * REGIONS + 3) * 16;
    for (size_t t = 0; t < graph->tensor_count; t++)
        size += 2 * ((size_t)count_tensor(graph, (int)t) * sizeof(float) + sizeof(float *) + 32);
    return size;
}

static struct outcome *outcome_create(const struct graph *graph, int ranks)
{
    size_t size = outcome_size(graph, ranks), count = (size_t)ranks;
    struct outcome *outcome =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (outcome == MAP_FAILED)
        abort();
    outcome->size = size;
    outcome->used = (sizeof *outcome + 15) / 16 * 16;
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&outcome->lock, &shared);
    pthread_mutexattr_destroy(&shared);

    struct engine_result *result = &outcome->result;
    *result = (struct engine_result){.tensor_count = graph->tensor_count,
                                     .ranks = ranks,
                                     .memory = outcome,
                                     .memory_size = size};
    result->gradients = outcome_take(outcome, graph->tensor_count, sizeof *result->gradients);
    result->parameters = outcome_take(outcome, graph->tensor_count, sizeof *result->parameters);
    for (int region = 0; region < REGIONS; region++) {
        result->touched[region] = outcome_take(outcome, count, sizeof(uint64_t));
        result->reserved[region] = outcome_take(outcome, count, sizeof(uint64_t));
    }
    result->sent = outcome_take(outcome, count, sizeof *result->sent);
    result->words = outcome_take(outcome, count, sizeof *result->words);
    result->hashes = outcome_take(outcome, count, sizeof *result->hashes);
    return outcome;
}

void engine_result_finish(struct engine_result *result)
{
    if (result->memory)
        munmap(result->memory, result->memory_size);
    result->memory = NULL;
}

struct engine {
    const struct graph *graph;
    const struct plan *plan;
    const struct engine_options *options;
    const struct device *device;
    struct program **programs;
    struct outcome *outcome;
    const struct rendezvous *rendezvous; /* of processes */
};

/* What the loss reads. */
static const struct tensor *find_logits(const struct graph *graph)
{
    size_t n = graph->node_count - 1;
    while (!graph->nodes[n].operation->is_loss)
        n--;
    return &graph->tensors[graph->nodes[n].operands[0]];
}

/* Tokens and targets are random numbers of their place in the training. */
static int32_t token_at(const struct engine *engine, enum program_kind kind, uint64_t sample,
                        int64_t place, bool targets)
{
    uint64_t seq = (uint64_t)graph_positions(engine->graph);
    uint64_t vocab = (uint64_t)tensor_size(find_logits(engine->graph), 'v');
    uint64_t index = sample * seq + (uint64_t)place;
    uint64_t stream = kind == PROGRAM_TRAIN || engine->options->same_samples ? 100 : 102;
    if (targets && random_uniform(3, stream, index) < engine->options->ignored)
        return -1;
    /* A target depends on its token, so that there is something to learn. */
    uint64_t token = random_below(5, stream, index, vocab);
    return (int32_t)(targets ? (token * 7 + 3) % vocab : token);
}

static void fill(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out)
{
    for (int64_t sample = box->low[0]; sample < box->high[0]; sample++)
        for (int64_t place = box->low[1]; place < box->high[1]; place++)
            *out++ = token_at(context, kind, first + (uint64_t)sample, place, tensor->targets);
}

static double count_targets(const void *context, enum program_kind kind, uint64_t first,
                            uint64_t samples)
{
    const struct engine *engine = context;
    double count = 0;
    for (uint64_t sample = first; sample < first + samples; sample++)
        for (int64_t place = 0; place < graph_positions(engine->graph); place++)
            count += token_at(engine, kind, sample, place, true) >= 0;
    return count;
}

static void fail(struct engine *engine, int rc, const char *text)
{
    struct outcome *outcome = engine->outcome;
    pthread_mutex_lock(&outcome->lock);
    if (outcome->rc == 0)
        outcome->rc = error_set(&outcome->err, rc, "%s", text);
    pthread_mutex_unlock(&outcome->lock);
}

/* Offset of an element, `at`, in the whole tensor; the next element of the box. */
static int64_t whole_index(const struct box *whole, const int64_t *at)
{
    int64_t index = 0;
    for (int dim = 0; dim < whole->dims; dim++)
        index = index * box_length(whole, dim) + at[dim];
    return index;
}

static void step_on(const struct box *box, int64_t *at)
{
    for (int dim = box->dims - 1; dim >= 0 && ++at[dim] == box->high[dim]; dim--)
        at[dim] = box->low[dim];
}

static bool same_bits(float a, float b)
{
    uint32_t first, second;
    memcpy(&first, &a, sizeof first);
    memcpy(&second, &b, sizeof second);
    return first == second;
}

/* Put a rank's piece where it belongs in the whole; what another replica has put there must be
 * the same bits. */
static void bring(struct engine *engine, float **wholes, int tensor, const struct box *box,
                  const float *data)
{
    const struct tensor *t = &engine->graph->tensors[tensor];
    struct box whole = tensor_box(t, 0);
    int64_t at[DIMS_MAX], count = box_count(box);
    pthread_mutex_lock(&engine->outcome->lock);
    if (!wholes[tensor]) {
        int64_t total = box_count(&whole);
        wholes[tensor] = outcome_take(engine->outcome, (size_t)total, sizeof(float));
        for (int64_t i = 0; i < total; i++)
            wholes[tensor][i] = NAN;
    }
    memcpy(at, box->low, sizeof at);
    bool differs = false;
    for (int64_t i = 0; i < count; i++, step_on(box, at)) {
        float *place = &wholes[tensor][whole_index(&whole, at)];
        differs = differs || (!isnan(*place) && !same_bits(*place, data[i]));
        *place = data[i];
    }
    pthread_mutex_unlock(&engine->outcome->lock);
    if (differs)
        fail(engine, -EILSEQ, t->name);
}

static void fetch(struct engine *engine, struct interpreter *in, int buffer)
{
    struct error err;
    int rc = interpreter_fetch(in, buffer, &err);
    if (rc < 0)
        fail(engine, rc, err.text);
}

static void bring_gradients(struct engine *engine, const struct program *program,
                            struct interpreter *in)
{
    for (size_t i = 0; i < program->parameter_count; i++) {
        const struct parameter *parameter = &program->parameters[i];
        fetch(engine, in, parameter->gradient.buffer);
        const float *data = interpreter_buffer(in, parameter->gradient.buffer);
        bring(engine, engine->outcome->result.gradients, parameter->tensor, &parameter->box,
              data + parameter->gradient.offset);
    }
}

static void add_offsets(const struct engine *engine, const struct program *program,
                        struct interpreter *in)
{
    for (size_t i = 0; i < program->parameter_count && engine->options->offsets; i++) {
        const struct parameter *parameter = &program->parameters[i];
        const float *offsets = engine->options->offsets[parameter->tensor];
        const struct box *box = &parameter->box;
        struct box whole = tensor_box(&engine->graph->tensors[parameter->tensor], 0);
        float *data = interpreter_buffer(in, parameter->master);
        int64_t at[DIMS_MAX], count = box_count(box);
        memcpy(at, box->low, sizeof at);
        for (int64_t j = 0; j < count && offsets; j++, step_on(box, at))
            data[j] += offsets[whole_index(&whole, at)];
    }
}

static void before_step(const struct engine *engine, int rank, int step)
{
    if (engine->options->before_step)
        engine->options->before_step(engine->options->context, rank, step);
}

static int call_hook(const struct engine *engine, struct interpreter *in, int rank, int done,
                     struct error *err)
{
    const struct engine_options *options = engine->options;
    return options->hook ? options->hook(options->context, rank, in, done, err) : 0;
}

static int train(struct engine *engine, struct interpreter *in, const struct program *program,
                 struct error *err)
{
    struct step_result step;
    int first = engine->options->first_step,
        hooked = call_hook(engine, in, program->rank, first, err);
    if (hooked < 0)
        return hooked;
    for (int i = first; i < engine->options->steps; i++) {
        before_step(engine, program->rank, i);
        int rc = interpreter_run(in, PROGRAM_TRAIN, (uint64_t)i, &step, err);
        if (rc < 0)
            return rc;
        if (program->rank == 0) {
            engine->outcome->result.loss[i] = step.loss;
            engine->outcome->result.norm[i] = step.norm;
        }
        if (i == first)
            bring_gradients(engine, program, in);
        rc = call_hook(engine, in, program->rank, i + 1, err);
        if (rc < 0)
            return rc;
    }
    before_step(engine, program->rank, engine->options->steps);
    return 0;
}

static void run_rank(struct test_rank *rank)
{
    struct engine *engine = rank->argument;
    struct engine_result *result = &engine->outcome->result;
    const struct program *program = engine->programs[rank->rank];
    struct feed feed = {engine, fill, count_targets};
    struct interpreter_config config = {
        .device = engine->device,
        .collectives = rank->library,
        .fabric = rank->fabric,
        .feed = &feed,
        .optimizer = {.rate = 1e-2,
                      .steps = 1000,
                      .beta1 = 0.9,
                      .beta2 = 0.95,
                      .epsilon = 1e-8,
                      .decay = 0.1,
                      .clip = 1},
        .poison = engine->options->poison,
    };
    struct interpreter *in = NULL;
    struct step_result step;
    struct error err = {""};
    int rc = interpreter_prepare(program, &config, &in, &err);
    if (rc == 0) {
        interpreter_initialize(in, 11);
        add_offsets(engine, program, in);
        rc = interpreter_store_state(in, &err);
    }
    if (rc == 0)
        rc = train(engine, in, program, &err);
    if (rc == 0)
        rc = interpreter_fetch_state(in, &err);
    if (rc == 0)
        rc = interpreter_quiesce(in, &err);
    if (rc == 0 && rank->library->sent)
        result->sent[rank->rank] = rank->library->sent(rank->fabric);
    if (rc == 0) {
        for (size_t i = 0; i < program->parameter_count; i++)
            bring(engine, result->parameters, program->parameters[i].tensor,
                  &program->parameters[i].box,
                  interpreter_buffer(in, program->parameters[i].master));
        for (int region = 0; region < REGIONS; region++) {
            result->touched[region][rank->rank] = arena_touched(interpreter_arena(in), region);
            result->reserved[region][rank->rank] = program->bytes[region];
        }
        rc = interpreter_run(in, PROGRAM_EVALUATE, 0, &step, &err);
    }
    if (rc == 0)
        rc = interpreter_quiesce(in, &err);
    if (rc == 0 && rank->rank == 0)
        result->evaluation = step.loss;
    int ended =
        call_hook(engine, NULL, program->rank, engine->options->steps, rc < 0 ? NULL : &err);
    rc = rc < 0 ? rc : ended;
    if (rc < 0) {
        fail(engine, rc, err.text);
        rank->library->abort(rank->fabric);
    }
    interpreter_release(in);
}

/* Over the rank's own fabric, whose library knows the host's memory. */
static void run_staged(struct test_rank *rank)
{
    const struct engine *engine = rank->argument;
    const struct fabric_config config = {.rank = rank->rank,
                                         .count = rank->count,
                                         .accelerator = engine->options->device->accelerator,
                                         .host = rank->library,
                                         .host_fabric = rank->fabric};
    struct test_rank staged = *rank;
    staged.library = &collectives_hosted;
    collectives_hosted.open(&config, &staged.fabric, NULL);
    run_rank(&staged);
    collectives_hosted.close(staged.fabric);
}

static double no_time(const void *context, const struct program *program,
                      const struct instruction *instruction)
{
    (void)context;
    return instruction_flops(program, instruction) * 1e-9;
}

/* In a process of its own. */
static int run_process(int rank, void *context)
{
    struct engine *engine = context;
    const struct engine_options *options = engine->options;
    struct test_rank self = {.rank = rank, .count = plan_ranks(engine->plan), .argument = engine};
    struct fabric_config config = {.rank = rank,
                                   .count = self.count,
                                   .timeout_s = PEER_LIMIT_S,
                                   .rendezvous = engine->rendezvous,
                                   .interface = "127.0.0.1"};
    struct error err = {""};
    int rc = options->open(rank, &engine->device, &self.library, &err);
    if (rc == 0) {
        config.accelerator = engine->device->accelerator;
        rc = self.library->open(&config, &self.fabric, &err);
    }
    if (rc < 0) {
        fail(engine, rc, err.text);
        return rc;
    }
    run_rank(&self);
    self.library->close(self.fabric);
    return 0;
}

static void run_processes(struct engine *engine, int ranks)
{
    struct outcome *outcome = engine->outcome;
    struct rendezvous *rendezvous = test_rendezvous_create(OPENING_LIMIT_S);
    struct error err = {""};
    engine->rendezvous = rendezvous;
    int rc = test_processes_run(ranks, LIMIT_S, run_process, engine, &err);
    if (rc < 0 && outcome->rc == 0) /* whose lock may have died with a process */
        outcome->rc = error_set(&outcome->err, rc, "%s", err.text);
    test_rendezvous_destroy(rendezvous);
}

static void run_threads(struct engine *engine, int ranks)
{
    const struct engine_options *options = engine->options;
    test_ranks_run_on(options->device ? options->device->accelerator : NULL,
                      options->collectives ? options->collectives : &collectives_local, ranks,
                      PEER_LIMIT_S, options->staged ? run_staged : run_rank, engine);
}

int engine_run(const struct graph *graph, const struct plan *plan,
               const struct engine_options *options, struct engine_result *out, struct error *err)
{
    int ranks = plan_ranks(plan), rc = 0;
    assert(options->steps <= ENGINE_STEPS_MAX);
    struct outcome *outcome = outcome_create(graph, ranks);
    struct engine engine = {.graph = graph,
                            .plan = plan,
                            .options = options,
                            .device = options->device ? options->device : &device_plain,
                            .outcome = outcome};
    engine.programs = xcalloc((size_t)ranks, sizeof *engine.programs);
    for (int i = 0; i < ranks && rc == 0; i++)
        rc = lower(graph, plan, i, &engine.programs[i], err);
    struct timing timing = {NULL, no_time};
    struct simulation simulation;
    for (int kind = PROGRAM_TRAIN; kind <= PROGRAM_EVALUATE && rc == 0; kind++)
        rc = simulate((const struct program *const *)engine.programs, ranks, kind, &timing, NULL,
                      &simulation, err);
    if (rc == 0) {
        for (int i = 0; i < ranks; i++) {
            outcome->result.words[i] = (uint64_t)(count_words(engine.programs[i]) * options->steps);
            outcome->result.hashes[i] = program_hash(engine.programs[i]);
        }
        (options->open ? run_processes : run_threads)(&engine, ranks);
        if (outcome->rc < 0)
            rc = error_set(err, outcome->rc, "%s", outcome->err.text);
    }
    for (int i = 0; i < ranks; i++)
        program_destroy(engine.programs[i]);
    free(engine.programs);
    *out = outcome->result;
    return rc;
}

const char *engine_differs(const struct engine_result *a, const struct engine_result *b,
                           const struct graph *graph, int steps)
{
    size_t bytes = (size_t)steps * sizeof(double);
    if (memcmp(a->loss, b->loss, bytes) != 0)
        return "loss";
    if (memcmp(a->norm, b->norm, bytes) != 0)
        return "norm";
    if (a->evaluation != b->evaluation)
        return "evaluation";
    for (size_t t = 0; t < graph->tensor_count; t++) {
        bytes = (size_t)count_tensor(graph, (int)t) * sizeof(float);
        if (a->gradients[t] && (memcmp(a->gradients[t], b->gradients[t], bytes) != 0 ||
                                memcmp(a->parameters[t], b->parameters[t], bytes) != 0))
            return graph->tensors[t].name;
    }
    return NULL;
}

double engine_loss_difference(const struct engine_result *a, const struct engine_result *b,
                              int steps)
{
    double worst = fabs(a->evaluation - b->evaluation) / fabs(b->evaluation);
    for (int i = 0; i < steps; i++) {
        double difference = fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]);
        worst = isnan(difference) || difference > worst ? difference : worst;
    }
    return worst;
}

double engine_gradient_difference(const struct engine_result *a, const struct engine_result *b,
                                  const struct graph *graph, const char **worst)
{
    double most = 0, weights = 0;
    for (size_t t = 0; t < graph->tensor_count; t++)
        weights += b->gradients[t] != NULL;
    for (size_t t = 0; t < graph->tensor_count; t++) {
        if (!b->gradients[t])
            continue;
        double difference = 0, norm = 0, floor = 1e-3 * b->norm[0] / sqrt(weights);
        for (int64_t i = 0; i < count_tensor(graph, (int)t); i++) {
            double x = (double)a->gradients[t][i], y = (double)b->gradients[t][i];
            difference += (x - y) * (x - y);
            norm += y * y;
        }
        double ratio = sqrt(difference) / fmax(sqrt(norm), floor);
        if (isnan(ratio) || ratio > most) {
            most = ratio;
            *worst = graph->tensors[t].name;
        }
    }
    return most;
}

static void plan_divide_layers(struct plan *plan)
{
    int layers = plan->block_count - 2, next = 0;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        int end = 1 + layers * (i + 1) / plan->stage_count;
        if (i == plan->stage_count - 1)
            end = plan->block_count;
        stage->block_first = next;
        stage->block_count = end - next;
        for (int b = next; b < end; b++)
            plan->blocks[b].stage = i;
        next = end;
    }
}

struct plan *engine_plan(const struct graph *graph, int stages, const int *axes, int axis_count,
                         const char *const *names, int micro_batches, int64_t samples,
                         const char *schedule)
{
    struct plan *plan = plan_create(stages, (int)graph->block_count);
    plan_divide_layers(plan);
    for (int i = 0; i < stages; i++) {
        plan->stages[i].mesh.axes = axis_count;
        for (int axis = 0; axis < axis_count; axis++)
            plan->stages[i].mesh.size[axis] = axes[axis];
    }
    for (int b = 0; b < plan->block_count; b++)
        for (int axis = 0; axis < axis_count; axis++)
            plan->blocks[b].roles[axis] = role_find(names[axis]);
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    plan->schedule = schedule_find(schedule);
    return plan;
}

struct plan *engine_plan_one(const struct graph *graph, int micro_batches, int64_t samples)
{
    return engine_plan(graph, 1, NULL, 0, NULL, micro_batches, samples, "1f1b");
}

struct draw {
    uint64_t seed, next;
};

static int draw_below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 42, draw->next++, (uint64_t)bound);
}

static void draw_stages(struct draw *draw, struct plan *plan, int ranks_max)
{
    int layers = plan->block_count - 2, next = 0, ranks = ranks_max / plan->stage_count;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        int left = plan->stage_count - 1 - i;
        int last = plan->block_count - left; /* at least one block for each stage after this */
        int end = left == 0 ? plan->block_count : next + 1 + draw_below(draw, layers);
        end = left > 0 && end > last ? last : end;
        stage->block_first = next;
        stage->block_count = end - next;
        for (int b = next; b < end; b++)
            plan->blocks[b].stage = i;
        next = end;

        int count = 1;
        while (stage->mesh.axes < 3) {
            int size = 2 + (draw_below(draw, 3) == 0);
            if (count * size > ranks || draw_below(draw, 5) == 0)
                break;
            stage->mesh.size[stage->mesh.axes++] = size;
            count *= size;
        }
        if (draw_below(draw, 2)) {
            stage->weights = xcalloc((size_t)count, sizeof *stage->weights);
            for (int rank = 0; rank < count; rank++)
                stage->weights[rank] = 1 + draw_below(draw, 3);
            stage->mesh.weights = stage->weights;
        }
    }
}

static void draw_roles(struct draw *draw, struct plan *plan, int block)
{
    int count = 0;
    while (roles[count])
        count++;
    plan->blocks[block].zero = draw_below(draw, 4);
    plan->blocks[block].recompute = (enum recompute)draw_below(draw, RECOMPUTES);
    for (int axis = 0; axis < plan->stages[plan->blocks[block].stage].mesh.axes; axis++)
        plan->blocks[block].roles[axis] = roles[draw_below(draw, count)];
}

struct plan *engine_plan_random(const struct graph *graph, uint64_t seed, int ranks_max,
                                int64_t batch)
{
    struct draw draw = {seed, 0};
    int stages = 1 + draw_below(&draw, 3);
    stages = stages > (int)graph->block_count - 1 ? (int)graph->block_count - 1 : stages;
    stages = stages > ranks_max ? ranks_max : stages;
    struct plan *plan = plan_create(stages, (int)graph->block_count);
    draw_stages(&draw, plan, ranks_max);
    int micro_batches = 1 + draw_below(&draw, 4);
    while (batch % micro_batches != 0)
        micro_batches--;
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = batch / micro_batches;
    plan->schedule = schedules[draw_below(&draw, 2)];

    /* Vectors of roles until lowering accepts the block: the plan with all others plain. */
    for (int b = 0; b < plan->block_count; b++)
        for (int axis = 0; axis < AXES_MAX; axis++)
            plan->blocks[b].roles[axis] = role_find("batch");
    for (int b = 0; b < plan->block_count; b++) {
        do
            draw_roles(&draw, plan, b);
        while (plan_check(plan, graph, NULL) < 0);
    }
    plan->overlap = draw_below(&draw, 4) > 0;
    return plan;
}
