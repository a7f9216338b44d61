/* trial.c - random pieces, and the reductions that a job would make between them. */
#include "tests/worker/kernels/trial.h"
#include "tests/worker/kernels/apart.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/kernels/call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float start = 0.0625f; /* what is there before something is added */

struct sizes trial_sizes(int b, int s, int h, int n, int d, int f, int v)
{
    struct sizes sizes = {0};
    sizes_set(&sizes, 'b', b);
    sizes_set(&sizes, 's', s);
    sizes_set(&sizes, 't', s);
    sizes_set(&sizes, 'h', h);
    sizes_set(&sizes, 'n', n);
    sizes_set(&sizes, 'd', d);
    sizes_set(&sizes, 'f', f);
    sizes_set(&sizes, 'v', v);
    sizes_set(&sizes, 'k', n); /* each with two heads of queries */
    sizes_set(&sizes, 'g', 2);
    sizes_set(&sizes, 'p', 3);
    return sizes;
}

bool trial_has_dim(const struct node *node, char dim)
{
    for (int i = 0; i < operation_operands(node->operation); i++)
        if (strchr(node->dims[i], dim))
            return true;
    return false;
}

/* Uneven pieces: a quarter, nothing (samples only: a micro-batch may have none here), the rest. */
static void cut(struct box *box, int dim, char letter, int piece)
{
    int64_t length = box->high[dim], first = (length + 3) / 4;
    int64_t second = letter == 'b' ? first : (length + first) / 2;
    const int64_t at[PIECES_MAX + 1] = {0, first, second, length};
    box->low[dim] = at[piece];
    box->high[dim] = at[piece + 1];
}

static struct box box_of(const struct trial *trial, bool gradient, int slot, int piece)
{
    const struct operation *operation = trial->node.operation;
    char space[DIMS_MAX + 1];
    const char *dims = slot_dims(&trial->node, gradient, slot, space);
    struct box box = box_along(dims, &trial->config.sizes);
    char split = trial->config.split;
    /* Queries of a piece of the sequence see all keys, or all before. */
    bool keys = split == 's' && operation->causal && strchr(dims, operation->keys);
    const char *found = split ? strchr(dims, keys ? operation->keys : split) : NULL;
    if (!found)
        return box;
    int dim = (int)(found - dims);
    /* A table of positions may be whole where the sequence is not. */
    if (split == 's' && operation == &operation_position && slot == 1 && piece == 1)
        return box;
    cut(&box, dim, split, piece);
    if (keys)
        box.low[dim] = 0;
    return box;
}

/* Where element `index` of the piece lies in the whole tensor. */
static int64_t whole_index(const struct box *whole, const struct box *piece, int64_t index)
{
    int64_t at = 0, stride = 1;
    for (int i = whole->dims - 1; i >= 0; i--) {
        int64_t place = index % box_length(piece, i) + piece->low[i];
        index /= box_length(piece, i);
        at += place * stride;
        stride *= box_length(whole, i);
    }
    return at;
}

/* Does the kernel add to it? */
static bool added(const struct trial *trial, bool gradient, int slot)
{
    const struct operation *operation = trial->node.operation;
    if (!gradient)
        return operation->is_loss && slot == operation_output(operation);
    if (slot >= operation_output(operation))
        return false;
    return slot >= operation->input_count || trial->config.accumulate;
}

/* What has no gradient are token numbers, or pixels. */
static bool numbers_tokens(const struct node *node, int slot)
{
    return slot < node->operation->input_count && node->operation->constant >> slot & 1;
}

static enum element element_of(const struct trial *trial, bool gradient, int slot)
{
    const struct operation *operation = trial->node.operation;
    int output = operation_output(operation);
    if (slot > output || (operation->is_loss && slot == output))
        return ELEMENT_F32;
    if (numbers_tokens(&trial->node, slot))
        return ELEMENT_F32;
    bool weight = slot >= operation->input_count && slot < output;
    return gradient && weight ? trial->config.weight_gradient : trial->config.element;
}

static void fill(const struct trial *trial, bool gradient, int slot, struct view *view)
{
    const struct operation *operation = trial->node.operation;
    char space[DIMS_MAX + 1];
    struct box whole =
        box_along(slot_dims(&trial->node, gradient, slot, space), &trial->config.sizes);
    bool integer = !gradient && numbers_tokens(&trial->node, slot);
    uint64_t stream = (uint64_t)slot + (gradient ? 100 : 0);
    for (int64_t i = 0; i < box_count(&view->box); i++) {
        uint64_t index = (uint64_t)whole_index(&whole, &view->box, i);
        if (integer) {
            uint64_t vocab = (uint64_t)sizes_get(&trial->config.sizes, 'v');
            int32_t token = (int32_t)random_below(7, stream, index, vocab);
            ((int32_t *)view->data)[i] = operation->is_loss && index % 5 == 3 ? -100 : token;
        } else if (slot_is_given(operation, gradient, slot)) {
            float number = (float)random_normal(7, stream, index);
            put(view, i, false, trial->config.rounded ? bf16_widen(bf16_narrow(number)) : number);
        } else {
            put(view, i, false, added(trial, gradient, slot) ? start : NAN);
        }
    }
}

static void make_views(struct trial *trial, bool gradient, int piece)
{
    const struct operation *operation = trial->node.operation;
    struct kernel_call *call = &trial->calls[piece];
    for (int slot = 0; slot < slot_count(operation, gradient); slot++) {
        struct view *view = gradient ? &call->gradient[slot] : &call->operand[slot];
        view->box = box_of(trial, gradient, slot, piece);
        view->element = element_of(trial, gradient, slot);
        bool operand = slot < operation_output(operation);
        if (gradient && operand && !(trial->config.wanted >> slot & 1))
            continue;
        if (gradient && operand && !node_differentiates(&trial->node, slot))
            continue;
        if (gradient && operation->is_loss && slot == operation_output(operation))
            continue; /* it is 1 */
        /* Exactly as many: the address sanitizer sees one element too far. */
        view->data = xcalloc((size_t)box_count(&view->box), element_size(view->element));
        fill(trial, gradient, slot, view);
    }
}

/* Fast pairs, slow ones, and what is between them. */
static const struct rotation slowed = {.base = 500, .factor = 8, .low = 1, .high = 4, .places = 40};

struct trial *trial_create(const struct trial_config *config)
{
    struct trial *trial = xcalloc(1, sizeof *trial);
    const struct operation *operation = config->like->operation;
    trial->config = *config;
    trial->node = *config->like;
    trial->node.sizes = config->sizes;
    trial->node.epsilon = 1e-3f;
    trial->node.rotation = slowed;
    trial->pieces = config->split ? PIECES_MAX : 1;
    bool partial =
        config->split && !strchr(config->like->dims[operation_output(operation)], config->split);
    for (int piece = 0; piece < trial->pieces; piece++) {
        struct kernel_call *call = &trial->calls[piece];
        call->node = &trial->node;
        call->element = config->element;
        call->accumulate = config->accumulate ? (1u << operation->input_count) - 1 : 0;
        call->once = !partial || piece == 0;
        call->targets = 7;
        make_views(trial, false, piece);
        make_views(trial, true, piece);
    }
    return trial;
}

void trial_destroy(struct trial *trial)
{
    for (int piece = 0; trial && piece < trial->pieces; piece++)
        for (int slot = 0; slot < VIEWS_MAX; slot++) {
            free(trial->calls[piece].operand[slot].data);
            free(trial->calls[piece].gradient[slot].data);
        }
    free(trial);
}

static void reduce(struct trial *trial, bool gradient, int slot, enum reduction reduction)
{
    struct view *views[PIECES_MAX];
    for (int piece = 0; piece < trial->pieces; piece++)
        views[piece] =
            gradient ? &trial->calls[piece].gradient[slot] : &trial->calls[piece].operand[slot];
    for (int64_t i = 0; i < box_count(&views[0]->box); i++) {
        float result = ((float *)views[0]->data)[i];
        for (int piece = 1; piece < trial->pieces; piece++) {
            float other = ((float *)views[piece]->data)[i];
            result = reduction == REDUCTION_SUM ? result + other : fmaxf(result, other);
        }
        for (int piece = 0; piece < trial->pieces; piece++)
            ((float *)views[piece]->data)[i] = result;
    }
}

static void bring(struct apart *apart, struct view *views)
{
    for (int slot = 0; slot < VIEWS_MAX; slot++)
        views[slot].data =
            apart_bring(apart, views[slot].data,
                        (size_t)box_count(&views[slot].box) * element_size(views[slot].element));
}

/* Scratch is there for the call only, and holds nothing of use; statistics of later phases are
 * not there yet. */
static void run(const struct trial *trial, const struct kernel_call *call, enum direction direction,
                int phase)
{
    const struct operation *operation = trial->node.operation;
    const struct kernel *kernel = device_kernel(trial->config.device, operation);
    struct box boxes[OPERANDS_MAX];
    for (int i = 0; i < operation_operands(operation); i++)
        boxes[i] = call->operand[i].box;
    size_t size = operation->workspace ? (size_t)operation->workspace(boxes, direction) : 0;
    float *workspace = size > 0 ? xcalloc(1, size) : NULL;
    for (size_t i = 0; i < size / sizeof(float); i++)
        workspace[i] = NAN;
    struct kernel_call now = *call;
    now.phase = phase;
    for (int i = 0; i < operation->statistic_count[direction]; i++)
        if (operation->statistics[direction][i].phase > phase)
            (direction == FORWARD ? now.operand : now.gradient)[operation_operands(operation) + i]
                .data = NULL;
    struct apart *apart = apart_begin(trial->config.device);
    if (trial->config.aligned)
        apart_round(apart);
    now.workspace = apart_bring(apart, workspace, size);
    bring(apart, now.operand);
    bring(apart, now.gradient);
    kernel->run[direction][phase](&now);
    apart_end(apart);
    free(workspace);
}

/* Are statistics reduced over the pieces? */
static bool exchanges(const struct trial *trial)
{
    const char *letters = trial->node.operation->exchange;
    return letters && trial->config.split && strchr(letters, trial->config.split) &&
           strchr(trial->node.dims[0], trial->config.split);
}

static void run_phases(struct trial *trial, enum direction direction)
{
    const struct operation *operation = trial->node.operation;
    for (int phase = 0; phase < operation->phases[direction]; phase++) {
        for (int piece = 0; piece < trial->pieces; piece++)
            run(trial, &trial->calls[piece], direction, phase);
        for (int i = 0; i < operation->statistic_count[direction]; i++) {
            const struct statistic *statistic = &operation->statistics[direction][i];
            if (statistic->phase == phase && exchanges(trial))
                reduce(trial, direction == BACKWARD, operation_operands(operation) + i,
                       statistic->reduction);
        }
    }
}

void trial_forward(struct trial *trial)
{
    int output = operation_output(trial->node.operation);
    for (int piece = 0; piece < trial->pieces; piece++)
        fill(trial, false, output, &trial->calls[piece].operand[output]);
    run_phases(trial, FORWARD);
}

void trial_backward(struct trial *trial)
{
    run_phases(trial, BACKWARD);
}

/* Do all pieces hold the same whole? Else they hold pieces of it, or parts of a sum. */
static bool replicated(const struct trial *trial, bool gradient, int slot)
{
    const struct operation *operation = trial->node.operation;
    char split = trial->config.split, space[DIMS_MAX + 1];
    if (!split || strchr(slot_dims(&trial->node, gradient, slot, space), split))
        return false;
    if (exchanges(trial))
        return true;
    return gradient && !strchr(trial->node.dims[operation_output(operation)], split);
}

double *trial_gather(const struct trial *trial, bool gradient, int slot, struct box *box)
{
    char space[DIMS_MAX + 1];
    *box = box_along(slot_dims(&trial->node, gradient, slot, space), &trial->config.sizes);
    double *whole = xcalloc((size_t)box_count(box), sizeof *whole);
    double share = replicated(trial, gradient, slot) ? 1.0 / trial->pieces : 1;
    double before = added(trial, gradient, slot) ? start : 0;
    for (int piece = 0; piece < trial->pieces; piece++) {
        const struct view *view =
            gradient ? &trial->calls[piece].gradient[slot] : &trial->calls[piece].operand[slot];
        for (int64_t i = 0; i < box_count(&view->box); i++)
            whole[whole_index(box, &view->box, i)] += share * (get(view, i) - before);
    }
    return whole;
}
