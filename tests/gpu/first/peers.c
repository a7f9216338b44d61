/* peers.c - two processes that share the device and exchange data by the devices' own library, as
 * if each was on a host of its own. */
#include "common/base/clock.h"
#include "tests/gpu/first/first.h"
#include "tests/support/ranks.h"
#include "worker/collectives/collective.h"
#include "worker/kernels/devices.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 2
#define COUNT ((size_t)1 << 20)
#define FEW ((size_t)1 << 12)
#define LIMIT_S 15

/* One of the two. */
struct peer {
    int rank;
    const struct rendezvous *rendezvous;
    const struct device *device;
    const struct collectives *library;
    struct fabric *fabric;
    struct fabric_group *group;
    struct device_stream *stream;
    float *memory; /* of the device: 4 COUNT numbers to exchange, and FEW more */
    double began;
};

/* A line in the log: who, how long it took, what. */
static void note(struct peer *peer, const char *what)
{
    double now = clock_s();
    uint64_t room = 0;
    struct error err;
    (void)peer->device->accelerator->free_bytes(&room, &err);
    if (peer->rank == 0)
        fprintf(stderr, "%s: %.3f s; %llu MiB are free\n", what, now - peer->began,
                (unsigned long long)(room >> 20));
    peer->began = now;
}

static int join(struct peer *peer, struct error *err)
{
    const struct accelerator *accelerator;
    const void *library = NULL;
    void *memory = NULL;
    peer->began = clock_s();
    int rc = device_open(first_name(), &peer->device, err);
    if (rc == 0)
        rc = module_load(peer->device->collectives, "collectives_nccl", &library, err);
    if (rc < 0)
        return rc;
    peer->library = library;
    accelerator = peer->device->accelerator;
    rc = accelerator->stream_open(&peer->stream, true, err);
    if (rc == 0)
        rc = accelerator->reserve((4 * COUNT + FEW) * sizeof(float), &memory, err);
    if (rc < 0)
        return rc;
    peer->memory = memory;
    accelerator->enter(peer->stream);
    peer->device->clear(memory, (4 * COUNT + FEW) * sizeof(float));
    rc = accelerator->finish(err);
    note(peer, "the device");
    const struct fabric_config config = {.rank = peer->rank,
                                         .count = RANKS,
                                         .timeout_s = LIMIT_S,
                                         .rendezvous = peer->rendezvous,
                                         .accelerator = accelerator,
                                         .interface = "127.0.0.1"};
    if (rc == 0)
        rc = peer->library->open(&config, &peer->fabric, err);
    if (rc == 0)
        rc = peer->library->group(peer->fabric, (int[]){0, 1}, RANKS, &peer->group, err);
    note(peer, "the first communicator");
    if (rc == 0)
        rc = peer->library->acquaint(peer->group, err);
    for (int from = 0; from < RANKS && rc == 0; from++)
        rc = peer->library->channel(peer->fabric, from, 1 - from, 0, err);
    note(peer, "two more, for messages");
    return rc;
}

static void leave(struct peer *peer, int rc)
{
    peer->device->accelerator->enter(NULL);
    if (rc < 0)
        peer->library->abort(peer->fabric); /* the other one may wait for this one */
    peer->library->close(peer->fabric);
    note(peer, "closing");
    peer->device->accelerator->stream_close(peer->stream);
    peer->device->accelerator->release(peer->memory);
}

/* Everything that was issued has succeeded, and the number at the end of the memory is this. */
static int settle(struct peer *peer, const float *at, float right, const char *what,
                  struct error *err)
{
    float got = 0;
    peer->device->accelerator->download(&got, at, sizeof got);
    int rc = peer->device->accelerator->finish(err);
    if (rc == 0)
        rc = peer->library->check(peer->fabric, err);
    if (rc == 0)
        rc = first_expect(got == right, err, "%s: rank %d has %g, not %g", what, peer->rank,
                          (double)got, (double)right);
    note(peer, what);
    return rc;
}

static void put_number(struct peer *peer, float *at, float number)
{
    peer->device->accelerator->upload(at, &number, sizeof number);
}

/* Rank r has r + 1 in the last place of what it gives. */
static int exchange(struct peer *peer, struct error *err)
{
    const struct collectives *library = peer->library;
    const size_t equal[] = {COUNT, COUNT}, uneven[] = {COUNT - 1, COUNT + 1};
    float *here = peer->memory, *there = here + 2 * COUNT, mine = (float)peer->rank + 1;
    struct fabric_request *request;
    int rc = 0;
    for (int round = 0; round < 3 && rc == 0; round++) {
        put_number(peer, here + COUNT - 1, mine);
        rc = library->all_reduce(peer->group, ELEMENT_F32, here, COUNT, REDUCTION_SUM, err);
        if (rc == 0)
            rc = settle(peer, here + COUNT - 1, 3, "all-reduce of 4 MiB", err);
    }
    for (int way = 0; way < 2 && rc == 0; way++) {
        const size_t *counts = way == 0 ? equal : uneven;
        size_t own = counts[peer->rank];
        put_number(peer, here + own - 1, mine);
        const struct collective_part gather = {here, there, counts};
        rc = library->all_gather(peer->group, ELEMENT_F32, &gather, 1, err);
        if (rc == 0)
            rc = settle(peer, there + 2 * COUNT - 1, 2, "all-gather", err);
        const struct collective_part scatter = {there, here, counts};
        if (rc == 0)
            rc = library->reduce_scatter(peer->group, ELEMENT_F32, &scatter, 1, err);
        if (rc == 0)
            rc = settle(peer, here + own - 1, 2 * mine, "reduce-scatter", err);
    }
    put_number(peer, here, mine);
    if (rc == 0)
        rc =
            library->send(peer->fabric, 1 - peer->rank, 0, ELEMENT_F32, here, COUNT, &request, err);
    if (rc == 0)
        rc = library->receive(peer->fabric, 1 - peer->rank, 0, ELEMENT_F32, there, COUNT, err);
    if (rc == 0)
        rc = library->wait(peer->fabric, request, err);
    return rc == 0 ? settle(peer, there, 3 - mine, "crossing messages", err) : rc;
}

static int run_exchange(struct peer *peer, struct error *err)
{
    int rc = join(peer, err);
    if (rc < 0)
        return rc;
    rc = exchange(peer, err);
    leave(peer, rc);
    return rc;
}

/* Rank 1 is gone while rank 0 waits for it on the device. */
static int run_lost(struct peer *peer, struct error *err)
{
    struct error cause = {""};
    int rc = join(peer, err);
    if (rc < 0)
        return rc;
    if (peer->rank == 1)
        kill(getpid(), SIGKILL);
    rc = peer->library->all_reduce(peer->group, ELEMENT_F32, peer->memory, COUNT, REDUCTION_SUM,
                                   &cause);
    if (rc == 0)
        rc = peer->device->accelerator->finish(&cause);
    if (rc == 0)
        rc = peer->library->check(peer->fabric, &cause);
    note(peer, "a lost peer is noticed");
    rc = first_expect(rc == -ECONNRESET || rc == -ETIMEDOUT, err, "a peer was lost: %d, %s", rc,
                      cause.text);
    first_say("%s; ", cause.text);
    leave(peer, rc);
    return rc;
}

/* ---- recording while data is exchanged ---- */

static void issue_sum(void *context)
{
    const struct peer *peer = context;
    const struct view one = {peer->memory + 4 * COUNT, {.dims = 1, .high = {FEW}}, ELEMENT_F32};
    for (int i = 0; i < 4; i++)
        peer->device->add(&one, &one);
}

struct recorder {
    struct peer *peer;
    pthread_t thread;
    atomic_bool stop;
    int recorded, rc;
    struct error err;
};

static void *record(void *context)
{
    struct recorder *recorder = context;
    const struct accelerator *accelerator = recorder->peer->device->accelerator;
    struct device_stream *stream;
    int rc = accelerator->stream_open(&stream, true, &recorder->err);
    if (rc == 0) {
        accelerator->enter(stream);
        issue_sum(recorder->peer);
    }
    for (; rc == 0 && !recorder->stop; recorder->recorded++) {
        struct device_recording *recording = NULL;
        rc = accelerator->record(issue_sum, recorder->peer, &recording, &recorder->err);
        if (rc == 0) {
            accelerator->play(recording);
            rc = accelerator->finish(&recorder->err);
        }
        accelerator->recording_destroy(recording);
    }
    accelerator->enter(NULL);
    recorder->rc = rc;
    return NULL;
}

static int run_recording(struct peer *peer, struct error *err)
{
    struct recorder recorder = {.peer = peer};
    int rc = join(peer, err);
    if (rc < 0)
        return rc;
    pthread_create(&recorder.thread, NULL, record, &recorder);
    rc = exchange(peer, err);
    recorder.stop = true;
    pthread_join(recorder.thread, NULL);
    if (rc == 0)
        rc = first_expect(recorder.rc == 0, err, "recording: %s", recorder.err.text);
    if (peer->rank == 0)
        first_say("%d recordings meanwhile; ", recorder.recorded);
    leave(peer, rc);
    return rc;
}

/* ---- products while an exchange waits ---- */

/* In the stream that the thread has entered. */
static int prepare_products(struct peer *peer, const struct first_call *call, struct error *err)
{
    double begin = clock_s();
    for (int direction = FORWARD; direction < DIRECTIONS; direction++)
        first_call_prepare(call, (enum direction)direction);
    int rc = peer->device->accelerator->finish(err);
    if (peer->rank == 0)
        first_say("to prepare products took %.3f s; ", clock_s() - begin);
    return rc;
}

/* Products that were run before find their code loaded. To load it would wait until the device is
 * idle, but the exchange waits there for a peer that waits for these products. */
static int run_products(struct peer *peer, const struct first_call *call, struct error *err)
{
    const struct rendezvous *rendezvous = peer->rendezvous;
    double begin = clock_s();
    for (int direction = FORWARD; direction < DIRECTIONS; direction++)
        first_call_run(call, (enum direction)direction);
    int rc = peer->device->accelerator->finish(err);
    first_say("to run them took %.3f s while an exchange waited; ", clock_s() - begin);
    return rc == 0 ? rendezvous->put(rendezvous->context, "multiplied", "", 1, err) : rc;
}

static int await_products(struct peer *peer, struct error *err)
{
    char nothing;
    size_t size = 1;
    const struct rendezvous *rendezvous = peer->rendezvous;
    int rc = rendezvous->get(rendezvous->context, "multiplied", &nothing, &size, err);
    return rc < 0 ? error_prefix(err, rc, "products of the other rank") : 0;
}

static int run_multiplying(struct peer *peer, struct error *err)
{
    const struct accelerator *accelerator;
    struct sizes sizes = {0};
    struct first_call call;
    struct device_stream *stream;
    sizes_set(&sizes, 'b', 1);
    for (const char *dim = "shf"; *dim; dim++)
        sizes_set(&sizes, *dim, 256); /* worth measuring: choice.cu */
    int rc = join(peer, err);
    if (rc < 0)
        return rc;
    accelerator = peer->device->accelerator;
    rc = accelerator->stream_open(&stream, true, err);
    if (rc == 0)
        rc = first_call_open(&call, peer->device, "fc1", &sizes, ELEMENT_BF16, false, err);
    if (rc < 0)
        return rc;
    accelerator->enter(stream);
    rc = prepare_products(peer, &call, err);
    accelerator->enter(peer->stream);
    if (rc == 0 && peer->rank == 1)
        rc = await_products(peer, err);
    if (rc == 0)
        rc = peer->library->all_reduce(peer->group, ELEMENT_F32, peer->memory, COUNT, REDUCTION_SUM,
                                       err);
    accelerator->enter(stream);
    if (rc == 0 && peer->rank == 0)
        rc = run_products(peer, &call, err);
    accelerator->enter(peer->stream);
    if (rc == 0)
        rc = settle(peer, peer->memory, 0, "the exchange", err);
    first_call_close(&call);
    accelerator->stream_close(stream);
    leave(peer, rc);
    return rc;
}

/* ---- two processes ---- */

typedef int peer_fn(struct peer *peer, struct error *err);

static pid_t start(int rank, const struct rendezvous *rendezvous, peer_fn *body)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct peer peer = {.rank = rank, .rendezvous = rendezvous};
    struct error err = {""};
    setenv("NCCL_HOSTID", rank == 0 ? "host-0" : "host-1", 1);
    setenv("NCCL_DEBUG", "WARN", 0);
    int rc = body(&peer, &err);
    if (rc < 0)
        first_say("\nrank %d: %s", rank, err.text);
    _exit(rc < 0);
}

static int run_both(peer_fn *body, bool loses, struct error *err)
{
    int status[RANKS];
    pid_t pids[RANKS];
    struct rendezvous *rendezvous = test_rendezvous_create(LIMIT_S);
    for (int rank = 0; rank < RANKS; rank++)
        pids[rank] = start(rank, rendezvous, body);
    for (int rank = 0; rank < RANKS; rank++)
        waitpid(pids[rank], &status[rank], 0);
    test_rendezvous_destroy(rendezvous);
    bool lost = loses && WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGKILL;
    return first_expect(status[0] == 0 && (lost || status[1] == 0), err,
                        "the ranks ended with %#x and %#x", (unsigned)status[0],
                        (unsigned)status[1]);
}

static int pair(const struct device *none, struct error *err)
{
    (void)none;
    return run_both(run_exchange, false, err);
}

static int lost(const struct device *none, struct error *err)
{
    (void)none;
    return run_both(run_lost, true, err);
}

static int pair_recording(const struct device *none, struct error *err)
{
    (void)none;
    return run_both(run_recording, false, err);
}

static int pair_loading(const struct device *none, struct error *err)
{
    (void)none;
    return run_both(run_multiplying, false, err);
}

const struct first_check first_peers[] = {
    {"pair", "two processes that share the device exchange data by NCCL", 90,
     "CUDA_MODULE_LOADING=EAGER", pair, true},
    {"pair-recording", "what NCCL does meanwhile does not spoil a recording", 90,
     "CUDA_MODULE_LOADING=EAGER", pair_recording, true},
    {"pair-loading", "products that were run before run while an exchange waits", 90,
     "CUDA_MODULE_LOADING=EAGER", pair_loading, true},
    {"pair-lost", "a lost peer is noticed, and its communicators can be closed", 90,
     "CUDA_MODULE_LOADING=EAGER", lost, true},
    {0},
};
