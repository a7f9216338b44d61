/* peers.c - measures the links between devices with memory of their own: all-reduces of two sizes
 * over the library that the devices of a job exchange data with, with one thread per device.
 *
 * The ranks of a job are processes, but the paths between their devices are the same. A thread that
 * fails ends all others: those that have not joined yet wait at the meeting, which is abandoned;
 * the others wait in their fabrics, which are aborted. */
#include "worker/probe/internal.h"

#include "common/base/memory.h"
#include "common/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_ELEMENTS 16
/* Enough to measure links of hundreds of GB/s in spite of the latency; less if there is less
 * memory, down to the minimum. */
#define LARGE_BYTES (UINT64_C(64) << 20)
#define LARGE_BYTES_MIN (UINT64_C(1) << 18)
#define ROUNDS 8
#define TIMEOUT_S 60 /* for a member to come: joining many devices takes seconds */
#define KEY_SIZE 32

struct peers {
    const struct device *device;
    const struct collectives *library;
    int count;
    struct meeting *meeting;
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
    struct lane *lane;
    void *data;
    struct profile_link link;
};

/* End all peers with this error, unless there was one before. */
static void end_all(struct peers *peers, int index, int rc, const struct error *err)
{
    pthread_mutex_lock(&peers->lock);
    if (peers->rc == 0) {
        peers->rc =
            error_set(peers->err, rc, "device %d of %d: %s", index + 1, peers->count, err->text);
        meeting_abandon(peers->meeting);
        for (int i = 0; i < peers->count; i++)
            if (peers->all[i].fabric)
                peers->library->abort(peers->all[i].fabric);
    }
    pthread_mutex_unlock(&peers->lock);
}

/* Reduce *bytes to that of the peer with the least room; -ENOMEM if that is too little. */
static int agree(struct peer *peer, uint64_t *bytes, struct error *err)
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
static int reserve(struct peer *peer, uint64_t *bytes, struct error *err)
{
    const struct device *device = peer->peers->device;
    uint64_t room = 0;
    int rc = device->accelerator->lane_open(&peer->lane, false, err);
    if (rc == 0)
        rc = device->accelerator->room(&room, err);
    *bytes = room / 4 < LARGE_BYTES ? room / 4 : LARGE_BYTES;
    if (rc == 0)
        rc = agree(peer, bytes, err);
    if (rc == 0)
        rc = device->accelerator->reserve(*bytes, &peer->data, err);
    if (rc < 0)
        return rc;
    device->accelerator->enter(peer->lane);
    device->clear(peer->data, *bytes);
    return 0;
}

static int join(struct peer *peer, struct fabric_group **out, struct error *err)
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

/* The least time of all rounds, of which the first may have to load code and choose algorithms. */
static int time_all_reduce(struct peer *peer, struct fabric_group *group, size_t count, double *out,
                           struct error *err)
{
    const struct peers *peers = peer->peers;
    int rc = 0;
    *out = INFINITY;
    for (int round = 0; round < ROUNDS && rc == 0; round++) {
        double begin = probe_now();
        rc = peers->library->all_reduce(group, ELEMENT_F32, peer->data, count, REDUCTION_SUM, err);
        if (rc == 0)
            rc = peers->device->accelerator->finish(err);
        *out = fmin(*out, probe_now() - begin);
        if (rc == 0 && peers->library->check)
            rc = peers->library->check(peer->fabric, err);
    }
    return rc;
}

static int measure(struct peer *peer, struct error *err)
{
    uint64_t bytes = 0;
    double little = 0, much = 0;
    struct fabric_group *group;
    int rc = peer->peers->device->accelerator->bind(peer->index, err);
    if (rc == 0)
        rc = reserve(peer, &bytes, err);
    if (rc == 0)
        rc = join(peer, &group, err);
    if (rc == 0)
        rc = time_all_reduce(peer, group, SMALL_ELEMENTS, &little, err);
    if (rc == 0)
        rc = time_all_reduce(peer, group, bytes / sizeof(float), &much, err);
    if (rc == 0)
        peer->link = fit_link(peer->peers->count, (double)bytes, little, much);
    return rc;
}

static void leave(struct peer *peer)
{
    struct peers *peers = peer->peers;
    const struct accelerator *accelerator = peers->device->accelerator;
    pthread_mutex_lock(&peers->lock);
    struct fabric *fabric = peer->fabric;
    peer->fabric = NULL;
    pthread_mutex_unlock(&peers->lock);
    accelerator->enter(NULL);
    peers->library->close(fabric);
    accelerator->lane_close(peer->lane);
    accelerator->release(peer->data);
}

static void *peer_run(void *context)
{
    struct peer *peer = context;
    struct error err = {""};
    int rc = measure(peer, &err);
    if (rc < 0)
        end_all(peer->peers, peer->index, rc, &err);
    leave(peer);
    return NULL;
}

int probe_peers(const struct device *device, const struct collectives *library, int count,
                struct profile_link *out, struct error *err)
{
    struct peers peers = {.device = device,
                          .library = library,
                          .count = count,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .err = err};
    struct error why;
    int started = 0, rc = 0;
    peers.meeting = meeting_create(MEETING_STAYING);
    peers.rendezvous = meeting_rendezvous(peers.meeting);
    peers.all = xcalloc((size_t)count, sizeof *peers.all);
    for (int i = 0; i < count; i++)
        peers.all[i] = (struct peer){.peers = &peers, .index = i};
    for (; started < count && rc == 0; started += rc == 0)
        rc = -pthread_create(&peers.all[started].thread, NULL, peer_run, &peers.all[started]);
    if (rc < 0)
        end_all(&peers, started, error_set(&why, rc, "no thread for it: %s", strerror(-rc)), &why);
    for (int i = 0; i < started; i++)
        pthread_join(peers.all[i].thread, NULL);
    *out = (struct profile_link){0};
    for (int i = 0; i < count; i++) {
        out->latency_s = fmax(out->latency_s, peers.all[i].link.latency_s);
        out->seconds_per_byte = fmax(out->seconds_per_byte, peers.all[i].link.seconds_per_byte);
    }
    free(peers.all);
    pthread_mutex_destroy(&peers.lock);
    meeting_destroy(peers.meeting);
    return peers.rc;
}
