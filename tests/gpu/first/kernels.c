/* kernels.c - what libraries compute: how precisely, for which shapes, and with how much memory;
 * and our own kernels where numbers do not fit 32 bits. */
#include "common/base/clock.h"
#include "tests/gpu/first/first.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct sizes sizes_of(const char *dims, const int64_t *lengths)
{
    struct sizes sizes = {0};
    for (size_t i = 0; i < strlen(dims); i++)
        sizes_set(&sizes, dims[i], lengths[i]);
    return sizes;
}

/* Run both directions of an operation; its results may be this far from those of plain C. */
static int compare(const struct device *device, const char *operation, const struct sizes *sizes,
                   enum element element, double limit, double *worst, struct error *err)
{
    struct first_call call;
    int rc = first_call_open(&call, device, operation, sizes, element, false, err);
    if (rc < 0)
        return rc;
    for (int direction = FORWARD; direction < DIRECTIONS; direction++) {
        first_call_run(&call, (enum direction)direction);
        first_call_plain(&call, (enum direction)direction);
    }
    int output = operation_output(call.node.operation);
    for (int slot = 0; slot <= output && rc == 0; slot++) {
        double distance;
        bool gradient = slot < output;
        rc = first_call_distance(&call, gradient, slot, &distance, err);
        *worst = fmax(*worst, distance);
        if (rc == 0)
            rc = first_expect(distance <= limit, err, "%s, %s: %s %d is off by %.2g", operation,
                              element == ELEMENT_BF16 ? "bf16" : "f32",
                              gradient ? "gradient" : "operand", slot, distance);
    }
    first_call_close(&call);
    return rc;
}

/* With TF32, whose numbers have 11 bits, it would be 1e-4 and more. */
static int precise(const struct device *device, struct error *err)
{
    const struct sizes sizes = sizes_of("bshf", (const int64_t[]){2, 128, 512, 384});
    double worst = 0;
    int rc = compare(device, "fc1", &sizes, ELEMENT_F32, 1e-5, &worst, err);
    first_say("off by %.2g at most", worst);
    return rc;
}

/* One row, one column, odd leading dimensions. */
static int shapes(const struct device *device, struct error *err)
{
    static const int64_t lengths[][4] = {{1, 1, 7, 5},   {1, 3, 1, 9},     {1, 5, 13, 1},
                                         {1, 33, 17, 3}, {2, 65, 129, 31}, {1, 16, 64, 8}};
    double worst[ELEMENTS] = {0};
    int rc = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && rc == 0; i++) {
        const struct sizes sizes = sizes_of("bshf", lengths[i]);
        rc = compare(device, "fc1", &sizes, ELEMENT_F32, 1e-5, &worst[ELEMENT_F32], err);
        if (rc == 0)
            rc = compare(device, "fc1", &sizes, ELEMENT_BF16, 1e-2, &worst[ELEMENT_BF16], err);
    }
    first_say("off by %.2g in f32, %.2g in bf16", worst[ELEMENT_F32], worst[ELEMENT_BF16]);
    return rc;
}

/* The log says if cuDNN is not there or refuses; the second of two equal calls is timed. */
static int attend(const struct device *device, struct error *err)
{
    static const int64_t lengths[][6] = {
        {2, 128, 4, 64, 4, 1}, {1, 512, 2, 64, 2, 2}, {1, 200, 2, 128, 2, 2}};
    double worst = 0;
    int rc = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && rc == 0; i++) {
        const struct sizes sizes = sizes_of("bsndkg", lengths[i]);
        rc = compare(device, "causal_attention", &sizes, ELEMENT_BF16, 1e-2, &worst, err);
        if (rc == 0)
            rc = compare(device, "grouped_attention", &sizes, ELEMENT_BF16, 1e-2, &worst, err);
    }
    first_say("off by %.2g at most", worst);
    return rc;
}

/* Time both directions: the second round, of which the first has made plans and chosen products. */
static int time_operation(const struct device *device, const char *operation,
                          const struct sizes *sizes, double flops, struct error *err)
{
    struct first_call call;
    double begin = 0, middle = 0, end = 0;
    int rc = first_call_open(&call, device, operation, sizes, ELEMENT_BF16, true, err);
    if (rc == 0)
        first_call_fill(&call);
    for (int round = 0; round < 2 && rc == 0; round++) {
        begin = clock_s();
        first_call_run(&call, FORWARD);
        rc = device->accelerator->finish(err);
        middle = clock_s();
        first_call_run(&call, BACKWARD);
        if (rc == 0)
            rc = device->accelerator->finish(err);
        end = clock_s();
        if (round == 0)
            first_say("%s: %.0f ms at first, then ", operation, 1e3 * (end - begin));
    }
    double backward = flops * call.node.operation->backward_flops;
    first_say("%.2f and %.2f ms (%.0f and %.0f TFLOP/s); ", 1e3 * (middle - begin),
              1e3 * (end - middle), flops / (middle - begin) / 1e12,
              backward / (end - middle) / 1e12);
    first_call_close(&call);
    return rc;
}

/* As in GPT-2 124M with 32 samples. */
static int speed(const struct device *device, struct error *err)
{
    const struct sizes sizes = sizes_of("bshfnd", (const int64_t[]){32, 1024, 768, 3072, 12, 64});
    const double tokens = 32 * 1024.0;
    int rc = time_operation(device, "fc1", &sizes, 2 * tokens * 768 * 3072, err);
    if (rc == 0)
        rc = time_operation(device, "causal_attention", &sizes, 2 * tokens * 1024 * 768, err);
    return rc;
}

/* ---- more than 2^31 numbers ---- */

static float fetch(const struct first_call *call, const struct view *view, int64_t at,
                   struct error *err, int *rc)
{
    uint16_t narrow = 0;
    float wide = 0;
    bool is_narrow = view->element == ELEMENT_BF16;
    void *to = is_narrow ? (void *)&narrow : (void *)&wide;
    const char *from = (const char *)view->data + (size_t)at * element_size(view->element);
    call->device->accelerator->download(to, from, element_size(view->element));
    if (*rc == 0)
        *rc = call->device->accelerator->finish(err);
    return is_narrow ? bf16_widen(narrow) : wide;
}

/* Of logits that are all 0 every column is as likely as any other; all targets are column 0. */
static int check_large_loss(const struct device *device, const struct sizes *sizes,
                            struct error *err)
{
    struct first_call call;
    double columns = (double)sizes_get(sizes, 'v'), rows = (double)sizes_get(sizes, 's');
    int rc = first_call_open(&call, device, "loss", sizes, ELEMENT_BF16, true, err);
    if (rc < 0)
        return rc;
    call.there.targets = rows * (double)sizes_get(sizes, 'b');
    int64_t count = box_count(&call.there.operand[0].box);
    first_call_run(&call, FORWARD);
    rc = device->accelerator->finish(err);
    double begin = clock_s();
    first_call_run(&call, BACKWARD);
    if (rc == 0)
        rc = device->accelerator->finish(err);
    double passed = clock_s() - begin;
    double loss = (double)fetch(&call, &call.there.operand[2], 0, err, &rc);
    const struct view *slope = &call.there.gradient[0];
    double last = (double)fetch(&call, slope, count - 1, err, &rc) * call.there.targets;
    double target = (double)fetch(&call, slope, count - (int64_t)columns, err, &rc);
    if (rc == 0)
        rc = first_expect(fabs(loss / log(columns) - 1) < 1e-4 && fabs(last * columns - 1) < 1e-2 &&
                              fabs(target * call.there.targets + 1) < 1e-2,
                          err, "loss %g, the last gradient %g, that of its target %g", loss, last,
                          target);
    first_say("loss %.6f, backward %.2f ms = %.0f GB/s; ", loss, 1e3 * passed,
              4 * (double)count / passed / 1e9);
    first_call_close(&call);
    return rc;
}

/* y = x w' where only the first columns of the last rows of x and w are not 0. */
static int check_large_product(const struct device *device, const struct sizes *sizes,
                               struct error *err)
{
    const uint16_t three = bf16_narrow(3), five = bf16_narrow(5);
    int64_t hidden = sizes_get(sizes, 'h');
    struct first_call call;
    int rc = first_call_open(&call, device, "logits", sizes, ELEMENT_BF16, true, err);
    if (rc < 0)
        return rc;
    const struct view *x = &call.there.operand[0], *w = &call.there.operand[1];
    const struct view *y = &call.there.operand[2];
    int64_t x_at = box_count(&x->box) - hidden, w_at = box_count(&w->box) - hidden;
    device->accelerator->upload((uint16_t *)x->data + x_at, &three, sizeof three);
    device->accelerator->upload((uint16_t *)w->data + w_at, &five, sizeof five);
    first_call_run(&call, FORWARD);
    rc = device->accelerator->finish(err);
    double last = (double)fetch(&call, y, box_count(&y->box) - 1, err, &rc);
    double before = (double)fetch(&call, y, box_count(&y->box) - 2, err, &rc);
    if (rc == 0)
        rc = first_expect(last == 15 && before == 0, err, "the last of %lld products are %g and %g",
                          (long long)box_count(&y->box), before, last);
    first_call_close(&call);
    return rc;
}

/* The logits of GPT-2 with 64 samples of 1024 tokens: 3.3e9 numbers. */
static int large(const struct device *device, struct error *err)
{
    uint64_t room = 0;
    struct sizes sizes = sizes_of("bshv", (const int64_t[]){64, 1024, 64, 50304});
    int rc = device->accelerator->free_bytes(&room, err);
    for (int64_t b = 64; b > 1 && room / 4 < (uint64_t)(b * 1024 * 50304 * 2); b /= 2)
        sizes_set(&sizes, 'b', b / 2);
    if (room / 4 < UINT64_C(1024) * 50304 * 2)
        sizes_set(&sizes, 's', 16);
    if (rc == 0)
        rc = check_large_product(device, &sizes, err);
    if (rc == 0)
        rc = check_large_loss(device, &sizes, err);
    first_say("%lld samples", (long long)sizes_get(&sizes, 'b'));
    return rc;
}

/* ---- in a stream ---- */

static int in_stream(const struct device *device,
                     int (*check)(const struct device *device, struct error *err),
                     struct error *err)
{
    struct device_stream *stream;
    int rc = device->accelerator->stream_open(&stream, true, err);
    if (rc < 0)
        return rc;
    device->accelerator->enter(stream);
    rc = check(device, err);
    device->accelerator->enter(NULL);
    device->accelerator->stream_close(stream);
    return rc;
}

#define IN_LANE(check)                                                                             \
    static int check##_in_stream(const struct device *device, struct error *err)                   \
    {                                                                                              \
        return in_stream(device, check, err);                                                      \
    }
IN_LANE(precise)
IN_LANE(shapes)
IN_LANE(attend)
IN_LANE(speed)
IN_LANE(large)

const struct first_check first_kernels[] = {
    {"precise", "products in f32 are not made in TF32", 60, NULL, precise_in_stream, false},
    {"shapes", "the library multiplies any shape", 60, NULL, shapes_in_stream, false},
    {"attend", "cuDNN recognises the graphs of attention", 120, NULL, attend_in_stream, false},
    {"speed", "products and attention of a real size are made", 90, NULL, speed_in_stream, false},
    {"large", "more than 2^31 numbers are counted right", 90, NULL, large_in_stream, false},
    {0},
};
