/* streams.c - the order of work in streams, what issuing it costs, and recordings of it. */
#include "common/base/clock.h"
#include "tests/gpu/first/first.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1024
#define ROUNDS test_share(200)
#define LONG_BYTES ((uint64_t)1 << 28)

struct two_streams {
    const struct accelerator *accelerator;
    struct device_stream *of[2];
    char *memory; /* twice LONG_BYTES */
};

static int two_streams_open(struct two_streams *two, const struct device *device, struct error *err)
{
    void *memory = NULL;
    *two = (struct two_streams){.accelerator = device->accelerator};
    int rc = device->accelerator->reserve(2 * LONG_BYTES, &memory, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = device->accelerator->stream_open(&two->of[i], i == 0, err);
    two->memory = memory;
    return rc;
}

static void two_streams_close(struct two_streams *two)
{
    two->accelerator->enter(NULL);
    two->accelerator->stream_close(two->of[0]);
    two->accelerator->stream_close(two->of[1]);
    two->accelerator->release(two->memory);
}

/* The first stream fills memory several times, the last time with 0; the second one copies it once
 * an event has come. */
static int follow(const struct device *device, struct error *err)
{
    struct two_streams two;
    struct device_event *event = NULL;
    float ones[COUNT], got[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = got[i] = 1;
    int rc = two_streams_open(&two, device, err);
    if (rc == 0)
        rc = two.accelerator->event_create(&event, err);
    if (rc < 0)
        return rc;
    float *end = (float *)(void *)(two.memory + LONG_BYTES) - COUNT;
    two.accelerator->enter(two.of[0]);
    for (int i = 0; i < 8; i++)
        two.accelerator->move(two.memory, two.memory + LONG_BYTES, LONG_BYTES);
    two.accelerator->upload(end, ones, sizeof ones);
    device->clear(end, sizeof ones);
    two.accelerator->event_set(event);
    bool early = two.accelerator->event_passed(event);
    two.accelerator->enter(two.of[1]);
    two.accelerator->event_await(event);
    two.accelerator->download(got, end, sizeof got);
    rc = two.accelerator->finish(err);
    if (rc == 0)
        rc = first_expect(got[0] == 0 && got[COUNT - 1] == 0, err, "work came before its event");
    if (rc == 0)
        rc = first_expect(two.accelerator->event_passed(event), err, "an event has not passed");
    first_say("the event %s when it was set", early ? "had passed" : "was still to come");
    two_streams_close(&two);
    two.accelerator->event_destroy(event);
    return rc;
}

static int launch(const struct device *device, struct error *err)
{
    struct two_streams two;
    int rc = two_streams_open(&two, device, err);
    if (rc < 0)
        return rc;
    const struct view one = {two.memory, {.dims = 1, .high = {COUNT}}, ELEMENT_F32};
    two.accelerator->enter(two.of[0]);
    device->clear(two.memory, COUNT * sizeof(float));
    device->add(&one, &one);
    rc = two.accelerator->finish(err);
    double begin = clock_s();
    for (int i = 0; i < ROUNDS; i++)
        device->add(&one, &one);
    double issued = clock_s();
    if (rc == 0)
        rc = two.accelerator->finish(err);
    double done = clock_s();
    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        device->add(&one, &one);
        rc = two.accelerator->finish(err);
    }
    double waited = clock_s();
    first_say("%.1f us to issue a kernel, %.1f us from one to the next, %.1f us with a wait",
              1e6 * (issued - begin) / ROUNDS, 1e6 * (done - begin) / ROUNDS,
              1e6 * (waited - done) / ROUNDS);
    two_streams_close(&two);
    return rc;
}

/* ---- recordings ---- */

/* What recurs in a step: products in f32 and bf16, attention, a clear, a copy, a sum. */
enum { F32, BF16, ATTENTION, CALLS };

struct work {
    const struct device *device;
    struct first_call calls[CALLS];
    float *square;
    int issued;
};

static void issue(void *context)
{
    struct work *work = context;
    const struct view *x = &work->calls[F32].there.operand[0];
    work->issued++;
    for (int i = 0; i < CALLS; i++)
        first_call_run(&work->calls[i], FORWARD);
    first_call_run(&work->calls[ATTENTION], BACKWARD);
    work->device->clear(work->square, sizeof *work->square);
    work->device->square_sum(x->data, view_elements(x), work->square);
    work->device->copy(&work->calls[BF16].there.gradient[0], x, &x->box);
}

static int work_open(struct work *work, const struct device *device, struct error *err)
{
    struct sizes sizes = {0};
    void *square = NULL;
    sizes_set(&sizes, 'b', 2);
    sizes_set(&sizes, 's', 32);
    sizes_set(&sizes, 'h', 64);
    sizes_set(&sizes, 'f', 64);
    sizes_set(&sizes, 'n', 2);
    sizes_set(&sizes, 'd', 32);
    *work = (struct work){.device = device};
    int rc = device->accelerator->reserve(sizeof(float), &square, err);
    work->square = square;
    if (rc == 0)
        rc = first_call_open(&work->calls[F32], device, "fc1", &sizes, ELEMENT_F32, false, err);
    if (rc == 0)
        rc = first_call_open(&work->calls[BF16], device, "fc1", &sizes, ELEMENT_BF16, false, err);
    if (rc == 0)
        rc = first_call_open(&work->calls[ATTENTION], device, "causal_attention", &sizes,
                             ELEMENT_BF16, false, err);
    return rc;
}

static void work_close(struct work *work)
{
    for (int i = 0; i < CALLS; i++)
        if (work->calls[i].device)
            first_call_close(&work->calls[i]);
    work->device->accelerator->release(work->square);
}

/* The results of one round, all in one hash. */
static int results(const struct work *work, uint64_t *out, struct error *err)
{
    const struct view *views[] = {
        &work->calls[F32].there.operand[3], &work->calls[BF16].there.operand[3],
        &work->calls[ATTENTION].there.operand[3], &work->calls[ATTENTION].there.gradient[1]};
    int rc = 0;
    *out = 0;
    for (size_t i = 0; i < sizeof views / sizeof *views && rc == 0; i++) {
        size_t bytes = view_elements(views[i]) * element_size(views[i]->element);
        uint32_t *words = malloc(bytes);
        work->device->accelerator->download(words, views[i]->data, bytes);
        rc = work->device->accelerator->finish(err);
        for (size_t word = 0; word < bytes / sizeof *words; word++)
            *out = *out * 31 + words[word];
        free(words);
    }
    return rc;
}

static double time_rounds(const struct work *work, struct device_recording *recording,
                          struct error *err, int *rc)
{
    double begin = clock_s();
    for (int i = 0; i < ROUNDS; i++)
        if (recording)
            work->device->accelerator->play(recording);
        else
            issue((void *)work);
    if (*rc == 0)
        *rc = work->device->accelerator->finish(err);
    return (clock_s() - begin) / ROUNDS;
}

static int record(const struct device *device, struct error *err)
{
    const struct accelerator *accelerator = device->accelerator;
    struct work work;
    struct device_stream *stream = NULL;
    struct device_recording *recording = NULL;
    uint64_t first = 0, second = 0;
    int rc = accelerator->stream_open(&stream, true, err);
    accelerator->enter(stream);
    if (rc == 0)
        rc = work_open(&work, device, err);
    if (rc < 0)
        return rc;
    issue(&work);
    rc = results(&work, &first, err);
    if (rc == 0)
        rc = accelerator->record(issue, &work, &recording, err);
    if (rc == 0) {
        double alone = time_rounds(&work, NULL, err, &rc),
               played = time_rounds(&work, recording, err, &rc);
        first_say("11 calls take %.1f us one by one, %.1f us played", 1e6 * alone, 1e6 * played);
    }
    if (rc == 0)
        rc = results(&work, &second, err);
    if (rc == 0)
        rc = first_expect(first == second, err, "what was played has other bits");
    accelerator->recording_destroy(recording);
    work_close(&work);
    accelerator->enter(NULL);
    accelerator->stream_close(stream);
    return rc;
}

struct disturber {
    const struct device *device;
    pthread_t thread;
    atomic_bool stop;
    int rounds, rc;
    struct error err;
};

/* All that other threads of a rank may do meanwhile. */
static int disturb_once(const struct device *device, struct error *err)
{
    const struct accelerator *accelerator = device->accelerator;
    struct device_stream *stream = NULL;
    struct device_event *event = NULL;
    void *memory = NULL, *pinned = NULL, *host = NULL;
    bool registered = false;
    int rc = accelerator->stream_open(&stream, false, err);
    if (rc == 0)
        rc = accelerator->reserve(1 << 20, &memory, err);
    if (rc == 0)
        rc = accelerator->pin(1 << 16, &pinned, err);
    if (rc == 0)
        rc = accelerator->event_create(&event, err);
    if (rc == 0 && posix_memalign(&host, 4096, 1 << 16) == 0) {
        rc = accelerator->host_register(host, 1 << 16, err);
        registered = rc == 0;
    }
    if (rc == 0) {
        accelerator->enter(stream);
        accelerator->upload(memory, pinned, 1 << 16);
        accelerator->event_set(event);
        (void)accelerator->event_passed(event);
        rc = accelerator->finish(err);
        accelerator->enter(NULL);
    }
    if (registered)
        accelerator->host_unregister(host);
    free(host);
    accelerator->unpin(pinned);
    accelerator->release(memory);
    accelerator->event_destroy(event);
    accelerator->stream_close(stream);
    return rc;
}

static void *disturb(void *context)
{
    struct disturber *disturber = context;
    while (!disturber->stop && disturber->rc == 0) {
        disturber->rc = disturb_once(disturber->device, &disturber->err);
        disturber->rounds++;
    }
    return NULL;
}

static int record_beside(const struct device *device, struct error *err)
{
    const struct accelerator *accelerator = device->accelerator;
    struct disturber disturber = {.device = device};
    struct work work;
    struct device_stream *stream = NULL;
    int recorded = 0, rc = accelerator->stream_open(&stream, true, err);
    accelerator->enter(stream);
    if (rc == 0)
        rc = work_open(&work, device, err);
    if (rc < 0)
        return rc;
    issue(&work);
    rc = accelerator->finish(err);
    pthread_create(&disturber.thread, NULL, disturb, &disturber);
    for (; recorded < ROUNDS && rc == 0; recorded++) {
        struct device_recording *recording = NULL;
        rc = accelerator->record(issue, &work, &recording, err);
        if (rc == 0) {
            accelerator->play(recording);
            rc = accelerator->finish(err);
        }
        accelerator->recording_destroy(recording);
    }
    disturber.stop = true;
    pthread_join(disturber.thread, NULL);
    if (rc == 0)
        rc = first_expect(disturber.rc == 0, err, "the other thread: %s", disturber.err.text);
    first_say("%d recordings beside %d rounds of another thread", recorded, disturber.rounds);
    work_close(&work);
    accelerator->enter(NULL);
    accelerator->stream_close(stream);
    return rc;
}

const struct first_check first_streams[] = {
    {"follow", "a stream that awaits an event sees all work before it", 60, NULL, follow, false},
    {"launch", "a kernel is issued in microseconds", 60, NULL, launch, false},
    {"record", "products, attention, sums and copies can be recorded, with the same bits", 90, NULL,
     record, false},
    {"record-beside", "what other threads reserve, pin and wait for does not spoil a recording", 90,
     NULL, record_beside, false},
    {0},
};
