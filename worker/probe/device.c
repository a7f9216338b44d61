/* device.c - measures devices with memory of their own: kernels, memory, copies to and from the
 * host; and the links between them, by all-reduces of two sizes over the library that the devices
 * of a job exchange data with, with one thread per device.
 *
 * The ranks of a job are processes, but the paths between their devices are the same. A thread that
 * fails ends all others: those that have not joined yet wait at the meeting, which is abandoned;
 * the others wait in their fabrics, which are aborted. */
#include "worker/probe/probe.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/collectives/rendezvous.h"
#include "worker/probe/fit.h"
#include "worker/probe/links.h"
#include "worker/probe/steps.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From almost nothing to what fills the largest devices; each has more work than the one before. */
static const struct {
    struct job_model model;
    int64_t samples;
} sizes[] = {
    {{.layers = 1, .hidden = 64, .heads = 2, .seq = 16, .vocab = 256}, 1},
    {{.layers = 1, .hidden = 64, .heads = 2, .seq = 32, .vocab = 256}, 2},
    {{.layers = 1, .hidden = 256, .heads = 8, .seq = 128, .vocab = 256}, 8},
    {{.layers = 1, .hidden = 1024, .heads = 16, .seq = 512, .vocab = 8192}, 8},
    {{.layers = 1, .hidden = 2048, .heads = 32, .seq = 1024, .vocab = 8192}, 16},
};
#define SIZES (sizeof sizes / sizeof *sizes)
#define BUSY_S 0.01 /* a step this long takes much longer than launching it */

#define COPIED ((uint64_t)64 << 20)
#define COPY_ROUNDS 4

static double step_seconds(const struct probe_sums *sums)
{
    double seconds = sums->other_seconds;
    for (size_t i = 0; i < sums->count; i++)
        seconds += sums->rates[i].seconds[FORWARD] + sums->rates[i].seconds[BACKWARD];
    return seconds;
}

static int time_size(const struct device *device, size_t size, enum element element,
                     struct probe_sums *sums, struct error *err)
{
    *sums = (struct probe_sums){0};
    return probe_steps(device, &sizes[size].model, element, sizes[size].samples, sums, err);
}

/* Time models of growing size until one keeps the device busy; the rates are fitted to the last
 * two. */
static int time_models(const struct device *device, enum element element, struct profile *out,
                       struct error *err)
{
    struct probe_sums pair[2];
    int rc = time_size(device, 0, element, &pair[0], err);
    size_t i = 1;
    for (; i < SIZES && rc == 0; i++) {
        rc = time_size(device, i, element, &pair[i % 2], err);
        if (rc == 0 && step_seconds(&pair[i % 2]) >= BUSY_S) {
            i++;
            break;
        }
    }
    if (rc == 0)
        probe_fill_rates(out, element, (struct probe_sums[]){pair[(i - 1) % 2], pair[i % 2]}, 2);
    return rc;
}

enum way { UP, DOWN, INSIDE, WAYS };

struct buffers {
    const struct accelerator *accelerator;
    void *device, *other, *host;
};

static void copy_once(const struct buffers *buffers, enum way way, uint64_t bytes)
{
    if (way == UP)
        buffers->accelerator->upload(buffers->device, buffers->host, bytes);
    else if (way == DOWN)
        buffers->accelerator->download(buffers->host, buffers->device, bytes);
    else
        buffers->accelerator->move(buffers->other, buffers->device, bytes);
}

/* Bytes per second, the best of some rounds. */
static int time_copies(const struct buffers *buffers, uint64_t bytes, double rates[WAYS],
                       struct error *err)
{
    int rc = 0;
    for (int way = UP; way < WAYS; way++) {
        double best = INFINITY;
        for (int round = 0; round <= COPY_ROUNDS && rc == 0; round++) {
            double begin = clock_s();
            copy_once(buffers, (enum way)way, bytes);
            rc = buffers->accelerator->finish(err);
            best = fmin(best, clock_s() - begin);
        }
        rates[way] = (double)bytes / best;
    }
    return rc;
}

/* Measure free memory, and copies of COPIED bytes or at most a quarter of what is free. */
static int time_memory(const struct device *device, double rates[WAYS],
                       struct probe_figures *figures, struct error *err)
{
    struct buffers buffers = {.accelerator = device->accelerator};
    struct device_stream *lanes[2] = {NULL,
                                      NULL}; /* a rank opens these too, and they take memory */
    int rc = device->accelerator->stream_open(&lanes[0], true, err);
    if (rc == 0)
        rc = device->accelerator->stream_open(&lanes[1], false, err);
    uint64_t room = 0;
    if (rc == 0)
        rc = device->accelerator->free_bytes(&room, err);
    if (rc == 0)
        rc = device->accelerator->libraries(&figures->library_bytes, err);
    figures->memory_bytes = room + figures->library_bytes;
    uint64_t bytes = room / 4 < COPIED ? room / 4 : COPIED;
    if (rc == 0)
        rc = device->accelerator->reserve(bytes, &buffers.device, err);
    if (rc == 0)
        rc = device->accelerator->reserve(bytes, &buffers.other, err);
    if (rc == 0)
        rc = device->accelerator->pin(bytes, &buffers.host, err);
    if (rc == 0) {
        device->accelerator->enter(lanes[0]);
        rc = time_copies(&buffers, bytes, rates, err);
        device->accelerator->enter(NULL);
    }
    device->accelerator->stream_close(lanes[0]);
    device->accelerator->stream_close(lanes[1]);
    device->accelerator->unpin(buffers.host);
    device->accelerator->release(buffers.other);
    device->accelerator->release(buffers.device);
    return rc;
}

int probe_device(const struct device *device, double crowd, struct hardware_link host,
                 struct profile *out, struct probe_figures *figures, struct error *err)
{
    double rates[WAYS] = {0};
    struct error why;
    *out = (struct profile){.overlap = PROFILE_OVERLAP};
    int rc = time_models(device, ELEMENT_F32, out, err);
    if (rc == 0 && time_models(device, ELEMENT_BF16, out, &why) < 0)
        probe_warn_of_bf16(&why);
    if (rc == 0)
        rc = time_memory(device, rates, figures, err);
    if (rc < 0)
        return rc;
    figures->flops = out->seconds_per_flop > 0 ? 1 / out->seconds_per_flop : 0;
    profile_slow_down(out, crowd);
    figures->upload = rates[UP];
    figures->download = rates[DOWN];
    figures->bandwidth = 2 * rates[INSIDE]; /* it is read and written */
    out->host = host;
    out->host.seconds_per_byte += crowd / rates[UP] + crowd / rates[DOWN];
    out->network = out->host;
    return 0;
}

/* ---- links ---- */

#define SMALL_ELEMENTS 16
/* Enough to measure links of hundreds of GB/s in spite of the latency; less if there is less
 * memory, down to the minimum. */
#define LARGE_BYTES (UINT64_C(64) << 20)
#define LARGE_BYTES_MIN (UINT64_C(1) << 18)
#define PEER_ROUNDS 8
#define TIMEOUT_S 60 /* for a member to come: joining many devices takes seconds */
#define KEY_SIZE 32

struct peers {
    const struct device *device;
    const struct collectives *library;
    int count;
    struct local_rendezvous *meeting;
    struct rendezvous rendezvous;
    pthread_mutex_t lock;
    struct peer *all; /* `count`; with a fabric while they have one open */
    int rc;
    struct error *err;
};

struct peer {
    struct peers *peers;
    int index;
    pthread_t thread;
    struct fabric *fabric;
    struct device_stream *lane;
    void *data;
    struct hardware_link link;
};

/* End all peers with this error, unless there was one before. */
static void peers_end(struct peers *peers, int index, int rc, const struct error *err)
{
    pthread_mutex_lock(&peers->lock);
    if (peers->rc == 0) {
        peers->rc =
            error_set(peers->err, rc, "device %d of %d: %s", index + 1, peers->count, err->text);
        local_rendezvous_abandon(peers->meeting);
        for (int i = 0; i < peers->count; i++)
            if (peers->all[i].fabric)
                peers->library->abort(peers->all[i].fabric);
    }
    pthread_mutex_unlock(&peers->lock);
}

/* Reduce *bytes to that of the peer with the least room; -ENOMEM if that is too little. */
static int peer_agree(struct peer *peer, uint64_t *bytes, struct error *err)
{
    const struct rendezvous *rendezvous = &peer->peers->rendezvous;
    char key[KEY_SIZE], size[32];
    snprintf(key, sizeof key, "bytes/%d", peer->index);
    int rc = rendezvous->put(rendezvous->context, key, bytes, sizeof *bytes, err);
    for (int i = 0; i < peer->peers->count && rc == 0; i++) {
        uint64_t other = 0;
        size_t other_size = sizeof other;
        snprintf(key, sizeof key, "bytes/%d", i);
        rc = rendezvous->get(rendezvous->context, key, &other, &other_size, err);
        *bytes = other < *bytes ? other : *bytes;
    }
    if (rc == 0 && *bytes < LARGE_BYTES_MIN)
        rc = error_set(err, -ENOMEM, "there is room for all-reduces of %s only",
                       units_print_bytes(size, sizeof size, (double)*bytes));
    return rc;
}

/* Done before anyone exchanges data, because a reservation may wait for work of other devices of
 * this process. */
static int peer_reserve(struct peer *peer, uint64_t *bytes, struct error *err)
{
    const struct device *device = peer->peers->device;
    uint64_t room = 0;
    int rc = device->accelerator->stream_open(&peer->lane, false, err);
    if (rc == 0)
        rc = device->accelerator->free_bytes(&room, err);
    *bytes = room / 4 < LARGE_BYTES ? room / 4 : LARGE_BYTES;
    if (rc == 0)
        rc = peer_agree(peer, bytes, err);
    if (rc == 0)
        rc = device->accelerator->reserve(*bytes, &peer->data, err);
    if (rc < 0)
        return rc;
    device->accelerator->enter(peer->lane);
    device->clear(peer->data, *bytes);
    return 0;
}

static int peer_join(struct peer *peer, struct fabric_group **out, struct error *err)
{
    struct peers *peers = peer->peers;
    struct fabric_config config = {.rank = peer->index,
                                   .count = peers->count,
                                   .timeout_s = TIMEOUT_S,
                                   .rendezvous = &peers->rendezvous,
                                   .accelerator = peers->device->accelerator};
    struct fabric *fabric;
    int rc = peers->library->open(&config, &fabric, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&peers->lock);
    peer->fabric = fabric;
    bool over = peers->rc < 0;
    pthread_mutex_unlock(&peers->lock);
    if (over)
        return error_set(err, -ECANCELED, "another device has failed");
    int *ranks = xcalloc((size_t)peers->count, sizeof *ranks);
    for (int i = 0; i < peers->count; i++)
        ranks[i] = i;
    rc = peers->library->group(fabric, ranks, peers->count, out, err);
    free(ranks);
    return rc;
}

static int peer_measure(struct peer *peer, struct error *err)
{
    uint64_t bytes = 0;
    double little = INFINITY, much = INFINITY;
    struct links_exchange exchange = {.library = peer->peers->library,
                                      .accelerator = peer->peers->device->accelerator};
    int rc = peer->peers->device->accelerator->bind(peer->index, err);
    if (rc == 0)
        rc = peer_reserve(peer, &bytes, err);
    if (rc == 0)
        rc = peer_join(peer, &exchange.group, err);
    exchange.fabric = peer->fabric;
    exchange.data = peer->data;
    /* Of the rounds the first may have to load code and choose algorithms. */
    if (rc == 0)
        rc = links_time(&exchange, SMALL_ELEMENTS, PEER_ROUNDS, &little, err);
    if (rc == 0)
        rc = links_time(&exchange, bytes / sizeof(float), PEER_ROUNDS, &much, err);
    if (rc == 0)
        peer->link = fit_link(peer->peers->count, (double)bytes, little, much);
    return rc;
}

static void peer_leave(struct peer *peer)
{
    struct peers *peers = peer->peers;
    const struct accelerator *accelerator = peers->device->accelerator;
    pthread_mutex_lock(&peers->lock);
    struct fabric *fabric = peer->fabric;
    peer->fabric = NULL;
    pthread_mutex_unlock(&peers->lock);
    accelerator->enter(NULL);
    peers->library->close(fabric);
    accelerator->stream_close(peer->lane);
    accelerator->release(peer->data);
}

static void *peer_run(void *context)
{
    struct peer *peer = context;
    struct error err = {""};
    int rc = peer_measure(peer, &err);
    if (rc < 0)
        peers_end(peer->peers, peer->index, rc, &err);
    peer_leave(peer);
    return NULL;
}

int probe_peers(const struct device *device, const struct collectives *library, int count,
                struct hardware_link *out, struct error *err)
{
    struct peers peers = {.device = device,
                          .library = library,
                          .count = count,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .err = err};
    struct error why;
    int started = 0, rc = 0;
    peers.meeting = local_rendezvous_create(RENDEZVOUS_STAYING);
    peers.rendezvous = local_rendezvous_lend(peers.meeting);
    peers.all = xcalloc((size_t)count, sizeof *peers.all);
    for (int i = 0; i < count; i++)
        peers.all[i] = (struct peer){.peers = &peers, .index = i};
    for (; started < count && rc == 0; started += rc == 0)
        rc = -pthread_create(&peers.all[started].thread, NULL, peer_run, &peers.all[started]);
    if (rc < 0)
        peers_end(&peers, started, error_set(&why, rc, "no thread for it: %s", strerror(-rc)),
                  &why);
    for (int i = 0; i < started; i++)
        pthread_join(peers.all[i].thread, NULL);
    *out = (struct hardware_link){0};
    for (int i = 0; i < count; i++) {
        out->latency_s = fmax(out->latency_s, peers.all[i].link.latency_s);
        out->seconds_per_byte = fmax(out->seconds_per_byte, peers.all[i].link.seconds_per_byte);
    }
    free(peers.all);
    pthread_mutex_destroy(&peers.lock);
    local_rendezvous_destroy(peers.meeting);
    return peers.rc;
}
