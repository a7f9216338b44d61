/* checkpoints.c - state that is known element by element, written and read. */
#include "tests/worker/checkpoint/checkpoints.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/checkpoint/checkpoint.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct job_model checkpoints_model = {
    .family = "gpt", .layers = 4, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};
const struct manifest_origin checkpoints_origin = {
    .job = "j-7", .epoch = 2, .step = CHECKPOINTS_STEP, .seed = 11, .batch = 8};

char *checkpoints_make_folder(void)
{
    char *folder = xstrdup("/tmp/gimbal-checkpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    return folder;
}

void checkpoints_delete_folder(char *folder)
{
    char *command = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
    free(folder);
}

/* Bits at random, so that NaNs and denormals are among them. */
static uint32_t value_at(int tensor, int part, uint64_t index)
{
    return (uint32_t)random_bits(3, (uint64_t)tensor * STATE_PARTS + (uint64_t)part, index);
}

/* Of an element of a box, counted through it, its place in the whole. */
static uint64_t whole_index(const struct box *whole, const struct box *box, int64_t i)
{
    uint64_t index = 0, stride = 1;
    for (int dim = box->dims - 1; dim >= 0; dim--) {
        int64_t length = box_length(box, dim);
        index += (uint64_t)(box->low[dim] + i % length) * stride;
        stride *= (uint64_t)box_length(whole, dim);
        i /= length;
    }
    return index;
}

/* A rank's buffers, without an arena. */
struct state {
    const struct program *program;
    uint32_t **buffers;
};

static void *buffer_of(void *context, int buffer)
{
    return ((struct state *)context)->buffers[buffer];
}

static void state_init(struct state *state, const struct program *program)
{
    *state = (struct state){program, xcalloc(program->buffer_count, sizeof(uint32_t *))};
    for (size_t i = 0; i < program->buffer_count; i++)
        state->buffers[i] = xcalloc(1, program->buffers[i].bytes);
}

static void state_finish(struct state *state)
{
    for (size_t i = 0; i < state->program->buffer_count; i++)
        free(state->buffers[i]);
    free(state->buffers);
}

/* Fill the parameters, or compare them. */
static int walk(const struct state *state, bool fill, struct error *err)
{
    const struct graph *graph = state->program->graph;
    for (size_t p = 0; p < state->program->parameter_count; p++) {
        const struct parameter *parameter = &state->program->parameters[p];
        struct box whole = tensor_box(&graph->tensors[parameter->tensor], 0);
        const int buffers[] = {parameter->master, parameter->first, parameter->second};
        for (int part = 0; part < STATE_PARTS; part++)
            for (int64_t i = 0; i < box_count(&parameter->box); i++) {
                uint32_t *element = &state->buffers[buffers[part]][i];
                uint32_t value =
                    value_at(parameter->tensor, part, whole_index(&whole, &parameter->box, i));
                if (fill)
                    *element = value;
                else if (*element != value)
                    return error_set(
                        err, -EILSEQ, "rank %d: element %ld of %s is %08x, not %08x",
                        state->program->rank, (long)i,
                        slice_name(graph->tensors[parameter->tensor].name, (enum state_part)part)
                            .text,
                        *element, value);
            }
    }
    return 0;
}

static int write_rank(const struct program *program, const char *folder, struct manifest *manifest,
                      struct error *err)
{
    struct state state;
    struct state_list slices;
    struct manifest_shard shard;
    state_init(&state, program);
    state_list_init(&slices, program);
    walk(&state, true, err);
    void *data = xcalloc(1, slices.bytes);
    state_copy(&slices, buffer_of, &state, data);
    int rc = 0;
    if (slices.count > 0) {
        rc = shard_write(folder, program->rank, slices.slices, slices.count, data, &shard, err);
        if (rc == 0) {
            manifest_add(manifest, &shard);
            free(shard.file);
        }
    }
    free(data);
    state_list_finish(&slices);
    state_finish(&state);
    return rc;
}

int checkpoints_write(const struct graph *graph, const struct plan *plan, const char *folder,
                      struct error *err)
{
    struct manifest manifest;
    manifest_init(&manifest, &checkpoints_origin, graph);
    mkdir(folder, 0700);
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        struct program *program;
        rc = lower(graph, plan, rank, &program, err);
        if (rc == 0) {
            rc = write_rank(program, folder, &manifest, err);
            program_destroy(program);
        }
    }
    if (rc == 0)
        rc = manifest_write(&manifest, folder, err);
    manifest_finish(&manifest);
    return rc;
}

int checkpoints_read(const struct graph *graph, const struct plan *plan, const char *folder,
                     struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    int rc = checkpoint_open(folder, &checkpoint, err);
    if (rc == 0)
        rc = checkpoint_expect(checkpoint, checkpoints_origin.step, graph, err);
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        struct program *program;
        struct state state;
        rc = lower(graph, plan, rank, &program, err);
        if (rc < 0)
            break;
        state_init(&state, program);
        rc = state_load(checkpoint, program, STATE_PARTS, buffer_of, &state, err);
        if (rc == 0)
            rc = walk(&state, false, err);
        state_finish(&state);
        program_destroy(program);
    }
    checkpoint_close(checkpoint);
    return rc;
}

int checkpoints_begin(const struct graph *graph, const struct plan *plan,
                      const struct pretrained *pretrained, struct error *err)
{
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        struct program *program;
        struct state state;
        rc = lower(graph, plan, rank, &program, err);
        if (rc < 0)
            break;
        state_init(&state, program);
        walk(&state, true, err);
        for (size_t p = 0; p < program->parameter_count; p++) {
            int master = program->parameters[p].master;
            memset(state.buffers[master], 0, program->buffers[master].bytes);
        }
        pretrained_fill(pretrained, program, buffer_of, &state);
        rc = walk(&state, false, err);
        state_finish(&state);
        program_destroy(program);
    }
    return rc;
}

void checkpoints_flip(const char *folder, const char *file, long offset)
{
    char *path = xasprintf("%s/%s", folder, file);
    FILE *stream = fopen(path, "r+e");
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fseek(stream, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
    int byte = fgetc(stream);
    ck_assert_int_eq(fseek(stream, -1, SEEK_CUR), 0);
    fputc(byte ^ 1, stream);
    ck_assert_int_eq(fclose(stream), 0);
    free(path);
}
