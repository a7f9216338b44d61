/* hosted.c - exchanges device memory over a library that knows host memory only: down into pinned
 * memory, through the other library, and up again.
 *
 * The calling thread waits for its stream before others see any data, so a call that has returned
 * has succeeded. Each group has its own stage, which its calls use one after another, and so has
 * each message in progress. Stages grow in the first step, and not in later ones. */
#include "common/base/memory.h"
#include "worker/collectives/collective.h"
#include "worker/collectives/library.h"

#include <pthread.h>
#include <stdlib.h>

/* Pinned host memory, which grows as needed. */
struct stage {
    char *memory; /* pinned */
    size_t bytes;
};

struct fabric_request {
    struct fabric_request *next; /* in the list of all requests */
    bool taken;
    struct stage stage;
    struct fabric_request *inner;
};

struct fabric_group {
    struct fabric_group *next;
    struct fabric *fabric;
    struct fabric_group *inner;
    int count, me;
    struct stage stage;
    struct collective_part *parts; /* of a call: the parts as they lie in the stage */
    size_t part_count, part_capacity;
};

struct fabric {
    const struct accelerator *accelerator;
    const struct collectives *host;
    struct fabric *inner;
    int rank;
    struct fabric_group *groups;
    pthread_mutex_t lock; /* for the requests, because threads may send concurrently */
    struct fabric_request *requests;
};

static int hosted_open(const struct fabric_config *config, struct fabric **out, struct error *err)
{
    (void)err;
    struct fabric *fabric = xcalloc(1, sizeof *fabric);
    *fabric = (struct fabric){.accelerator = config->accelerator,
                              .host = config->host,
                              .inner = config->host_fabric,
                              .rank = config->rank};
    pthread_mutex_init(&fabric->lock, NULL);
    *out = fabric;
    return 0;
}

static void hosted_close(struct fabric *fabric)
{
    if (!fabric)
        return;
    while (fabric->groups) {
        struct fabric_group *next = fabric->groups->next;
        fabric->accelerator->unpin(fabric->groups->stage.memory);
        free(fabric->groups->parts);
        free(fabric->groups);
        fabric->groups = next;
    }
    while (fabric->requests) {
        struct fabric_request *next = fabric->requests->next;
        fabric->accelerator->unpin(fabric->requests->stage.memory);
        free(fabric->requests);
        fabric->requests = next;
    }
    pthread_mutex_destroy(&fabric->lock);
    free(fabric);
}

static void hosted_abort(struct fabric *fabric)
{
    fabric->host->abort(fabric->inner);
}

static int hosted_group(struct fabric *fabric, const int *ranks, int count,
                        struct fabric_group **out, struct error *err)
{
    struct fabric_group *inner;
    int rc = fabric->host->group(fabric->inner, ranks, count, &inner, err);
    if (rc < 0)
        return rc;
    struct fabric_group *group = xcalloc(1, sizeof *group);
    *group = (struct fabric_group){
        .next = fabric->groups, .fabric = fabric, .inner = inner, .count = count};
    while (ranks[group->me] != fabric->rank)
        group->me++;
    fabric->groups = group;
    *out = group;
    return 0;
}

/* ---- down and up ---- */

/* Make room for `bytes`; earlier contents are lost. Errors of the accelerator. */
static int hosted_reserve(const struct fabric *fabric, struct stage *stage, size_t bytes,
                          struct error *err)
{
    void *memory = NULL;
    if (bytes <= stage->bytes)
        return 0;
    int rc = fabric->accelerator->finish(err); /* it may still be read */
    if (rc == 0)
        rc = fabric->accelerator->pin(bytes, &memory, err);
    if (rc < 0)
        return rc;
    fabric->accelerator->unpin(stage->memory);
    *stage = (struct stage){memory, bytes};
    return 0;
}

/* Copy from the device to the stage, which waits for the stream. */
static int hosted_fetch(const struct fabric *fabric, const struct stage *stage, const void *source,
                        size_t bytes, struct error *err)
{
    fabric->accelerator->download(stage->memory, source, bytes);
    return fabric->accelerator->finish(err);
}

/* Copy from host memory to the device, which is only issued. */
static void hosted_store(const struct fabric *fabric, void *destination, const void *source,
                         size_t bytes)
{
    fabric->accelerator->upload(destination, source, bytes);
}

/* Make room for what goes in and, behind it, what comes out; fetch what goes in. */
static int hosted_begin(struct fabric_group *group, const void *source, size_t in, size_t out,
                        struct error *err)
{
    int rc = hosted_reserve(group->fabric, &group->stage, in + out, err);
    return rc == 0 ? hosted_fetch(group->fabric, &group->stage, source, in, err) : rc;
}

/* ---- calls ---- */

static int hosted_all_reduce(struct fabric_group *group, enum element element, void *data,
                             size_t count, enum reduction reduction, struct error *err)
{
    struct fabric *fabric = group->fabric;
    size_t bytes = count * element_size(element);
    int rc = hosted_begin(group, data, bytes, 0, err);
    if (rc == 0)
        rc = fabric->host->all_reduce(group->inner, element, group->stage.memory, count, reduction,
                                      err);
    if (rc == 0)
        hosted_store(fabric, data, group->stage.memory, bytes);
    return rc;
}

/* Elements of a part that go in and that come out. */
typedef void measure_fn(const struct fabric_group *group, const struct collective_part *part,
                        size_t *in, size_t *out);

static void measure_scatter(const struct fabric_group *group, const struct collective_part *part,
                            size_t *in, size_t *out)
{
    *in = collective_total(part->counts, group->count);
    *out = part->counts[group->me];
}

static void measure_gather(const struct fabric_group *group, const struct collective_part *part,
                           size_t *in, size_t *out)
{
    *in = part->counts[group->me];
    *out = collective_total(part->counts, group->count);
}

/* Give each part a place in the stage, and fetch what goes in. */
static int hosted_lay_out(struct fabric_group *group, enum element element,
                          const struct collective_part *parts, int count, measure_fn *measure,
                          struct error *err)
{
    struct fabric *fabric = group->fabric;
    size_t in, out, whole = 0, size = element_size(element);
    for (int p = 0; p < count; p++, whole += in + out)
        measure(group, &parts[p], &in, &out);
    int rc = hosted_reserve(fabric, &group->stage, whole * size, err);
    while (group->part_count < (size_t)count) {
        group->parts =
            grow(group->parts, group->part_count, &group->part_capacity, sizeof *group->parts);
        group->part_count++;
    }
    char *place = group->stage.memory;
    for (int p = 0; p < count && rc == 0; p++, place += (in + out) * size) {
        measure(group, &parts[p], &in, &out);
        group->parts[p] = (struct collective_part){place, place + in * size, parts[p].counts};
        fabric->accelerator->download(place, parts[p].source, in * size);
    }
    return rc == 0 ? fabric->accelerator->finish(err) : rc;
}

static void hosted_bring_back(const struct fabric_group *group, enum element element,
                              const struct collective_part *parts, int count, measure_fn *measure)
{
    for (int p = 0; p < count; p++) {
        size_t in, out;
        measure(group, &parts[p], &in, &out);
        hosted_store(group->fabric, parts[p].destination, group->parts[p].destination,
                     out * element_size(element));
    }
}

static int hosted_reduce_scatter(struct fabric_group *group, enum element element,
                                 const struct collective_part *parts, int count, struct error *err)
{
    int rc = hosted_lay_out(group, element, parts, count, measure_scatter, err);
    if (rc == 0)
        rc = group->fabric->host->reduce_scatter(group->inner, element, group->parts, count, err);
    if (rc == 0)
        hosted_bring_back(group, element, parts, count, measure_scatter);
    return rc;
}

static int hosted_all_gather(struct fabric_group *group, enum element element,
                             const struct collective_part *parts, int count, struct error *err)
{
    int rc = hosted_lay_out(group, element, parts, count, measure_gather, err);
    if (rc == 0)
        rc = group->fabric->host->all_gather(group->inner, element, group->parts, count, err);
    if (rc == 0)
        hosted_bring_back(group, element, parts, count, measure_gather);
    return rc;
}

static int hosted_all_to_all(struct fabric_group *group, enum element element, const void *source,
                             const size_t *sends, void *destination, const size_t *receives,
                             struct error *err)
{
    struct fabric *fabric = group->fabric;
    size_t in = collective_total(sends, group->count) * element_size(element);
    size_t out = collective_total(receives, group->count) * element_size(element);
    int rc = hosted_begin(group, source, in, out, err);
    char *result = group->stage.memory + in;
    if (rc == 0)
        rc = fabric->host->all_to_all(group->inner, element, group->stage.memory, sends, result,
                                      receives, err);
    if (rc == 0)
        hosted_store(fabric, destination, result, out);
    return rc;
}

/* ---- messages: each in progress has its own stage ---- */

static struct fabric_request *request_take(struct fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    struct fabric_request *request = fabric->requests;
    while (request && request->taken)
        request = request->next;
    if (!request) {
        request = xcalloc(1, sizeof *request);
        request->next = fabric->requests;
        fabric->requests = request;
    }
    request->taken = true;
    pthread_mutex_unlock(&fabric->lock);
    return request;
}

static void request_release(struct fabric *fabric, struct fabric_request *request)
{
    pthread_mutex_lock(&fabric->lock);
    request->taken = false;
    pthread_mutex_unlock(&fabric->lock);
}

static int hosted_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                       const void *source, size_t count, struct fabric_request **out,
                       struct error *err)
{
    struct fabric_request *request = request_take(fabric);
    size_t bytes = count * element_size(element);
    int rc = hosted_reserve(fabric, &request->stage, bytes, err);
    if (rc == 0)
        rc = hosted_fetch(fabric, &request->stage, source, bytes, err);
    if (rc == 0)
        rc = fabric->host->send(fabric->inner, peer, tag, element, request->stage.memory, count,
                                &request->inner, err);
    if (rc < 0)
        request_release(fabric, request);
    else
        *out = request;
    return rc;
}

static int hosted_wait(struct fabric *fabric, struct fabric_request *request, struct error *err)
{
    int rc = fabric->host->wait(fabric->inner, request->inner, err);
    request_release(fabric, request);
    return rc;
}

static int hosted_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                          void *destination, size_t count, struct error *err)
{
    struct fabric_request *request = request_take(fabric);
    size_t bytes = count * element_size(element);
    int rc = hosted_reserve(fabric, &request->stage, bytes, err);
    if (rc == 0)
        rc = fabric->host->receive(fabric->inner, peer, tag, element, request->stage.memory, count,
                                   err);
    if (rc == 0) {
        hosted_store(fabric, destination, request->stage.memory, bytes);
        rc = fabric->accelerator->finish(err);
    }
    request_release(fabric, request);
    return rc;
}

const struct collectives collectives_hosted = {
    .name = "hosted",
    .in_streams = true,
    .open = hosted_open,
    .close = hosted_close,
    .abort = hosted_abort,
    .group = hosted_group,
    .all_reduce = hosted_all_reduce,
    .reduce_scatter = hosted_reduce_scatter,
    .all_gather = hosted_all_gather,
    .all_to_all = hosted_all_to_all,
    .send = hosted_send,
    .wait = hosted_wait,
    .receive = hosted_receive,
};
