/* run.c - speed of the CPU's kernels at one layer of GPT 6 x 384, 8 samples of 256 tokens.
 *
 * Usage: run [THREADS]. Prints "bench kernels/NAME VALUE UNIT" lines: first both libraries'
 * matrix products, on which the rule in cpu/sgemm.c rests; then every operation, forward and
 * backward; then the tokens per second of a training step that is nothing but kernels. Every
 * time is the shortest of many. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "worker/kernels/kernels.h"

#include <cblas.h>
#include <dnnl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENOUGH_S 0.3
#define LAYERS 6

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

typedef void work_fn(void *context);

static double shortest(work_fn *work, void *context)
{
    double best = 1e9, begin = now();
    for (int round = 0; round < 3 || now() - begin < ENOUGH_S; round++) {
        double from = now();
        work(context);
        double took = now() - from;
        best = took < best ? took : best;
    }
    return best;
}

static void print(const char *name, double value, const char *unit)
{
    printf("bench kernels/%s %.1f %s\n", name, value, unit);
    fflush(stdout);
}

static float *draw(size_t count, uint64_t stream)
{
    float *data = xcalloc(count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)random_uniform(1, stream, i) - 0.5f;
    return data;
}

struct product {
    int rows, inner, columns;
    char form; /* f: x w, i: dy w', w: x' dy */
    bool onednn;
    float *x, *w, *y;
};

static void multiply(void *context)
{
    struct product *p = context;
    int m = p->rows, k = p->inner, n = p->columns;
    if (p->form == 'f' && p->onednn)
        dnnl_sgemm('N', 'N', m, n, k, 1, p->x, k, p->w, n, 0, p->y, n);
    else if (p->form == 'f')
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, p->x, k, p->w, n, 0,
                    p->y, n);
    else if (p->form == 'i' && p->onednn)
        dnnl_sgemm('N', 'T', m, k, n, 1, p->y, n, p->w, n, 0, p->x, k);
    else if (p->form == 'i')
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, k, n, 1, p->y, n, p->w, n, 0, p->x,
                    k);
    else if (p->onednn)
        dnnl_sgemm('T', 'N', k, n, m, 1, p->x, k, p->y, n, 0, p->w, n);
    else
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, n, m, 1, p->x, k, p->y, n, 0, p->w,
                    n);
}

static double bench_product(int rows, int inner, int columns)
{
    double best = 0;
    struct product p = {.rows = rows, .inner = inner, .columns = columns};
    p.x = draw((size_t)rows * (size_t)inner, 0);
    p.w = draw((size_t)inner * (size_t)columns, 1);
    p.y = draw((size_t)rows * (size_t)columns, 2);
    for (int library = 0; library < 2; library++)
        for (const char *form = "fiw"; *form; form++) {
            char name[64];
            p.onednn = library == 0;
            p.form = *form;
            double rate = 2e-9 * rows * inner * columns / shortest(multiply, &p);
            snprintf(name, sizeof name, "%s_%s_%dx%dx%d", p.onednn ? "onednn" : "openblas",
                     p.form == 'f'   ? "forward"
                     : p.form == 'i' ? "input"
                                     : "weight",
                     rows, inner, columns);
            print(name, rate, "GFLOP/s");
            best = rate > best ? rate : best;
        }
    free(p.x);
    free(p.w);
    free(p.y);
    return best;
}

struct job {
    const struct kernel *kernel;
    struct kernel_call call;
    struct node node;
    enum direction direction;
    void *workspace;
};

static void run_phases(void *context)
{
    struct job *job = context;
    int phases = job->node.operation->phases[job->direction];
    for (job->call.phase = 0; job->call.phase < phases; job->call.phase++)
        job->kernel->run[job->direction][job->call.phase](&job->call);
}

static struct view make_view(const char *dims, const struct sizes *sizes, bool integer, int slot)
{
    struct view view = {.box = box_whole(dims, sizes)};
    size_t count = (size_t)box_count(&view.box);
    view.data = draw(count, (uint64_t)slot);
    for (size_t i = 0; integer && i < count; i++)
        ((int32_t *)view.data)[i] = (int32_t)random_below(1, 0, i, (uint64_t)sizes_get(sizes, 'v'));
    return view;
}

static void job_init(struct job *job, const struct device *device,
                     const struct operation *operation, const struct sizes *sizes)
{
    int operands = operation_operands(operation);
    struct box boxes[OPERANDS_MAX];
    *job = (struct job){.kernel = device_kernel(device, operation, ELEMENT_F32),
                        .node = {.operation = operation, .epsilon = 1e-5f}};
    job->call = (struct kernel_call){.node = &job->node, .sizes = *sizes, .once = true};
    job->call.targets = (double)(sizes_get(sizes, 'b') * sizes_get(sizes, 's'));
    for (int i = 0; i < operands; i++) {
        bool constant = !operation_differentiates(operation, i);
        job->call.operand[i] = make_view(operation->dims[i], sizes, constant, i);
        boxes[i] = job->call.operand[i].box;
        /* What merely passes costs nothing: the program gives it no memory. */
        if (!constant && !(operation->passes >> i & 1))
            job->call.gradient[i] = make_view(operation->dims[i], sizes, false, i);
    }
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++)
        job->call.operand[operands + i] =
            make_view(operation->statistics[FORWARD][i].dims, sizes, false, 0);
    for (int i = 0; i < operation->statistic_count[BACKWARD]; i++)
        job->call.gradient[operands + i] =
            make_view(operation->statistics[BACKWARD][i].dims, sizes, false, 0);
    if (operation->workspace)
        job->call.workspace = xcalloc(1, (size_t)operation->workspace(boxes, BACKWARD));
}

static void job_finish(struct job *job)
{
    for (int i = 0; i < VIEWS_MAX; i++) {
        free(job->call.operand[i].data);
        free(job->call.gradient[i].data);
    }
    free(job->call.workspace);
}

/* Bytes that the call must read or write once. */
static double job_bytes(const struct job *job)
{
    int64_t count = 0;
    for (int i = 0; i < operation_operands(job->node.operation); i++) {
        const struct view *operand = &job->call.operand[i], *gradient = &job->call.gradient[i];
        bool output = i == operation_output(job->node.operation);
        if (operand->data && (job->direction == FORWARD || !output))
            count += box_count(&operand->box);
        if (gradient->data && job->direction == BACKWARD)
            count += box_count(&gradient->box);
    }
    return (double)count * sizeof(float);
}

/* Seconds of both directions. */
static double bench_operation(const struct device *device, const char *name,
                              const struct sizes *sizes)
{
    struct job job;
    double sum = 0;
    job_init(&job, device, operation_find(name), sizes);
    for (int direction = FORWARD; direction < DIRECTIONS; direction++) {
        const struct operation *operation = job.node.operation;
        struct box boxes[OPERANDS_MAX];
        char line[64];
        for (int i = 0; i < operation_operands(operation); i++)
            boxes[i] = job.call.operand[i].box;
        job.direction = (enum direction)direction;
        if (direction == BACKWARD && operation->backward_flops == 0)
            continue;
        double seconds = shortest(run_phases, &job);
        double flops = operation->flops(operation, boxes) *
                       (direction == FORWARD ? 1 : operation->backward_flops);
        bool product = strcmp(job.kernel->name, "linear") == 0 || strcmp(name, "core") == 0;
        snprintf(line, sizeof line, "%s_%s", name, direction == FORWARD ? "forward" : "backward");
        if (product)
            print(line, 1e-9 * flops / seconds, "GFLOP/s");
        else
            print(line, 1e-9 * job_bytes(&job) / seconds, "GB/s");
        sum += seconds;
    }
    job_finish(&job);
    return sum;
}

struct updating {
    const struct device *device;
    struct update_call call;
    float loss, square_sum;
};

static void update(void *context)
{
    struct updating *updating = context;
    updating->call.step++;
    updating->device->update(&updating->call);
}

static void square(void *context)
{
    struct updating *updating = context;
    updating->square_sum = 0;
    updating->device->square_sum(updating->call.gradient, updating->call.count,
                                 &updating->square_sum);
}

static double bench_update(const struct device *device, size_t count)
{
    struct updating u = {.device = device,
                         .call = {.parameter = draw(count, 0),
                                  .gradient = draw(count, 1),
                                  .first = draw(count, 2),
                                  .second = xcalloc(count, sizeof(float)),
                                  .count = count,
                                  .rate = 1e-3f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .epsilon = 1e-8f,
                                  .decay = 0.1f,
                                  .clip = 1}};
    u.call.loss = &u.loss;
    u.call.square_sum = &u.square_sum;
    double norm = shortest(square, &u), step = shortest(update, &u);
    print("square_sum", 4e-9 * (double)count / norm, "GB/s");
    print("update", 28e-9 * (double)count / step, "GB/s");
    free(u.call.parameter);
    free(u.call.gradient);
    free(u.call.first);
    free(u.call.second);
    return norm + step;
}

static double bench_step(const struct device *device, const struct sizes *sizes)
{
    const struct {
        const char *name;
        int times;
    } parts[] = {{"embed", 1},        {"position", 1},  {"norm", 2 * LAYERS + 1},
                 {"qkv", 3 * LAYERS}, {"core", LAYERS}, {"out", LAYERS},
                 {"add", 2 * LAYERS}, {"fc1", LAYERS},  {"gelu", LAYERS},
                 {"fc2", LAYERS},     {"logits", 1},    {"loss", 1}};
    double seconds = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        seconds += parts[i].times * bench_operation(device, parts[i].name, sizes);
    int64_t h = sizes_get(sizes, 'h');
    int64_t count =
        (int64_t)LAYERS * 12 * h * h + (sizes_get(sizes, 'v') + sizes_get(sizes, 's')) * h;
    return seconds + bench_update(device, (size_t)count);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    long threads = argc > 1 ? strtol(argv[1], &end, 10) : 1;
    if (argc > 2 || threads < 1 || threads > 1024 || (end && *end)) {
        fprintf(stderr, "usage: %s [THREADS]\n", argv[0]);
        return EXIT_FAILURE;
    }
    const int b = 8, s = 256, h = 384, f = 4 * h;
    struct sizes sizes = {0};
    sizes_set(&sizes, 'b', b);
    sizes_set(&sizes, 's', s);
    sizes_set(&sizes, 'h', h);
    sizes_set(&sizes, 'n', 6);
    sizes_set(&sizes, 'd', h / 6);
    sizes_set(&sizes, 'f', f);
    sizes_set(&sizes, 'v', 256);
    device_cpu.threads((int)threads);

    const int shapes[][2] = {{h, h}, {h, 3 * h}, {h, f}, {f, h}};
    double peak = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double rate = bench_product(b * s, shapes[i][0], shapes[i][1]);
        peak = rate > peak ? rate : peak;
    }
    print("matmul_peak", peak, "GFLOP/s");
    double seconds = bench_step(&device_cpu, &sizes);
    /* 6 operations per weight and token; attention is left out. */
    double tokens = b * s / seconds;
    print("gpt_6x384_tokens", tokens, "tokens/s");
    print("gpt_6x384_matmul_share", 100 * 6e-9 * (12.0 * h * h * LAYERS + 256 * h) * tokens / peak,
          "%");
    puts("bench kernels done");
    return EXIT_SUCCESS;
}
