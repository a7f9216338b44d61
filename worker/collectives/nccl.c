/* nccl.c - collectives between NVIDIA devices by NCCL, issued to the calling thread's stream.
 *
 * A call returns when it is issued, without waiting for the exchange; errors show in check(). Each
 * group has a communicator, and so has each channel of messages (one tag, from one rank to
 * another), so that no exchange queues behind another one that it does not depend on. A message is
 * sent in a stream of its own, which waits for the data in the sender's stream and then for the
 * receiver, while the sender's stream goes on.
 *
 * NCCL sums in an order of its own. It is the same on all members and in every run with the same
 * ranks, because summing inside switches is disabled (nccl_ways_use()). NCCL's maximum ignores NaN.
 * Only data in device memory is exchanged; data in host memory needs another library. */
#include "common/base/hash.h"
#include "common/base/memory.h"
#include "worker/collectives/nccl_comm.h"
#include "worker/collectives/nccl_network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NCCL_KEY_SIZE 64 /* of a key in the rendezvous */

struct fabric_group {
    struct comm comm;
    struct fabric_group *next;
    struct fabric *fabric;
    uint64_t members; /* a hash of its ranks, in order */
};

/* A channel, which carries the messages of one tag from one rank to another; and, as a request, the
 * message that was sent last on it. */
struct fabric_request {
    struct comm comm;
    struct fabric_request *next;
    int from, to;
    uint32_t tag;
    /* At the sender's end only: */
    struct device_stream *stream; /* in which messages wait for the receiver */
    struct device_event *filled,
        *sent; /* the data is ready in the sender's stream; the message was sent */
};

struct fabric {
    struct comms comms;
    struct fabric_group *groups;
    struct fabric_request *channels;
};

static ncclDataType_t nccl_type(enum element element)
{
    return element == ELEMENT_BF16 ? ncclBfloat16 : ncclFloat;
}

struct message {
    enum element element;
    void *data;
    size_t count;
};

static ncclResult_t issue_send(const struct comm *comm, cudaStream_t stream, const void *arguments)
{
    const struct message *message = arguments;
    return ncclSend(message->data, message->count, nccl_type(message->element), 1, comm->handle,
                    stream);
}

static ncclResult_t issue_receive(const struct comm *comm, cudaStream_t stream,
                                  const void *arguments)
{
    const struct message *message = arguments;
    return ncclRecv(message->data, message->count, nccl_type(message->element), 0, comm->handle,
                    stream);
}

static int nccl_channel(struct fabric *fabric, int from, int to, uint32_t tag, struct error *err)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    const struct message greeting = {ELEMENT_F32, fabric->comms.word, 1};
    const int ends[2] = {from, to};
    char key[NCCL_KEY_SIZE];
    struct fabric_request *channel = xcalloc(1, sizeof *channel);
    *channel =
        (struct fabric_request){.next = fabric->channels, .from = from, .to = to, .tag = tag};
    fabric->channels = channel;
    int rc = 0;
    if (from == fabric->comms.rank) {
        rc = accelerator->stream_open(&channel->stream, false, err);
        if (rc == 0)
            rc = accelerator->event_create(&channel->filled, err);
        if (rc == 0)
            rc = accelerator->event_create(&channel->sent, err);
    }
    snprintf(key, sizeof key, "nccl/channel/%d/%d/%u", from, to, tag);
    if (rc == 0)
        rc = comm_join(&fabric->comms, &channel->comm, ends, 2, key, err);
    return rc == 0
               ? comm_greet(&fabric->comms, &channel->comm,
                            from == fabric->comms.rank ? issue_send : issue_receive, &greeting, err)
               : rc;
}

static int channel_find(struct fabric *fabric, int from, int to, uint32_t tag,
                        struct fabric_request **out, struct error *err)
{
    struct fabric_request *channel = fabric->channels;
    while (channel && (channel->from != from || channel->to != to || channel->tag != tag))
        channel = channel->next;
    *out = channel;
    return channel ? 0
                   : error_set(err, -EINVAL,
                               "message from rank %d to rank %d, tag %u: nobody has prepared it",
                               from, to, tag);
}

static int nccl_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                     const void *source, size_t count, struct fabric_request **out,
                     struct error *err)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    const struct message message = {element, (void *)source, count}; /* it is read only */
    struct device_stream *here = accelerator->inside();
    struct fabric_request *channel;
    int rc = channel_find(fabric, fabric->comms.rank, peer, tag, &channel, err);
    if (rc < 0)
        return rc;
    accelerator->event_set(channel->filled);
    accelerator->enter(channel->stream);
    accelerator->event_await(channel->filled);
    if (count > 0)
        rc = comm_call(&fabric->comms, &channel->comm, "send", issue_send, &message, err);
    accelerator->event_set(channel->sent);
    accelerator->enter(here);
    *out = channel;
    return rc;
}

/* In a stream, later work is made to wait for the message; outside of one, the host waits. */
static int nccl_wait(struct fabric *fabric, struct fabric_request *channel, struct error *err)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    if (accelerator->inside()) {
        accelerator->event_await(channel->sent);
        return 0;
    }
    accelerator->enter(channel->stream);
    int rc = accelerator->finish(err);
    accelerator->enter(NULL);
    return rc == 0 ? comms_check(&fabric->comms, err) : rc;
}

static int nccl_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                        void *destination, size_t count, struct error *err)
{
    const struct message message = {element, destination, count};
    struct fabric_request *channel;
    int rc = channel_find(fabric, peer, fabric->comms.rank, tag, &channel, err);
    if (rc < 0 || count == 0)
        return rc;
    return comm_call(&fabric->comms, &channel->comm, "receive", issue_receive, &message, err);
}

/* Free all channels. Only after comms_close(). */
static void nccl_channels_close(struct fabric *fabric)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    while (fabric->channels) {
        struct fabric_request *next = fabric->channels->next;
        accelerator->stream_close(fabric->channels->stream);
        accelerator->event_destroy(fabric->channels->filled);
        accelerator->event_destroy(fabric->channels->sent);
        free(fabric->channels);
        fabric->channels = next;
    }
}

static int nccl_open(const struct fabric_config *config, struct fabric **out, struct error *err)
{
    if (!config->accelerator || !config->rendezvous)
        return error_set(err, -EINVAL, "nccl: a device and a rendezvous are needed");
    if (config->rank < 0 || config->rank >= config->count)
        return error_set(err, -EINVAL, "nccl: rank %d of %d", config->rank, config->count);
    if (!(config->timeout_s > 0))
        return error_set(err, -EINVAL, "nccl: a limit of %g s: more than 0 is needed",
                         config->timeout_s);
    nccl_interface_use(config->interface);
    nccl_ways_use();
    struct fabric *fabric = xcalloc(1, sizeof *fabric);
    int rc = comms_open(&fabric->comms, config, err);
    if (rc < 0)
        free(fabric);
    else
        *out = fabric;
    return rc;
}

static void nccl_close(struct fabric *fabric)
{
    if (!fabric)
        return;
    comms_close(&fabric->comms);
    while (fabric->groups) {
        struct fabric_group *next = fabric->groups->next;
        free(fabric->groups);
        fabric->groups = next;
    }
    nccl_channels_close(fabric);
    free(fabric);
}

static void nccl_abort(struct fabric *fabric)
{
    struct error cause;
    error_set(&cause, -ECANCELED, "the exchange was aborted");
    comms_fail(&fabric->comms, -ECANCELED, &cause);
}

static int nccl_check(struct fabric *fabric, struct error *err)
{
    return comms_check(&fabric->comms, err);
}

/* ---- groups ---- */

static uint64_t hash_members(const int *ranks, int count)
{
    uint64_t hash = hash_number(HASH_START, (uint64_t)count);
    for (int i = 0; i < count; i++)
        hash = hash_number(hash, (uint64_t)ranks[i]);
    return hash;
}

struct all_reduce {
    enum element element;
    void *data;
    size_t count;
    enum reduction reduction;
};

static ncclResult_t issue_all_reduce(const struct comm *comm, cudaStream_t stream,
                                     const void *arguments)
{
    const struct all_reduce *a = arguments;
    return ncclAllReduce(a->data, a->data, a->count, nccl_type(a->element),
                         a->reduction == REDUCTION_MAX ? ncclMax : ncclSum, comm->handle, stream);
}

/* Groups of the same ranks are numbered in the order in which they are created, which is the same
 * on all members; the number is part of their key. */
static int nccl_group(struct fabric *fabric, const int *ranks, int count, struct fabric_group **out,
                      struct error *err)
{
    char key[NCCL_KEY_SIZE];
    uint64_t members = hash_members(ranks, count), earlier = 0;
    for (const struct fabric_group *other = fabric->groups; other; other = other->next)
        earlier += other->members == members;
    snprintf(key, sizeof key, "nccl/group/%016" PRIx64 "/%" PRIu64, members, earlier);
    struct fabric_group *group = xcalloc(1, sizeof *group);
    group->fabric = fabric;
    group->members = members;
    group->next = fabric->groups;
    fabric->groups = group;
    *out = group;
    const struct all_reduce greeting = {ELEMENT_F32, fabric->comms.word, 1, REDUCTION_MAX};
    int rc = comm_join(&fabric->comms, &group->comm, ranks, count, key, err);
    return rc == 0 ? comm_greet(&fabric->comms, &group->comm, issue_all_reduce, &greeting, err)
                   : rc;
}

static int nccl_all_reduce(struct fabric_group *group, enum element element, void *data,
                           size_t count, enum reduction reduction, struct error *err)
{
    const struct all_reduce arguments = {element, data, count, reduction};
    if (count == 0)
        return 0;
    return comm_call(&group->fabric->comms, &group->comm, "all_reduce", issue_all_reduce,
                     &arguments, err);
}

struct chunks {
    enum element element;
    const struct collective_part *parts;
    int count;
};

static bool are_equal(const struct comm *comm, const size_t *counts)
{
    for (int i = 1; i < comm->count; i++)
        if (counts[i] != counts[0])
            return false;
    return true;
}

/* NCCL's reduce-scatter needs equal chunks. Unequal ones are reduced member by member. */
static ncclResult_t reduce_part(const struct comm *comm, cudaStream_t stream, enum element element,
                                const struct collective_part *part)
{
    const char *chunk = part->source;
    ncclResult_t result = ncclSuccess;
    if (are_equal(comm, part->counts))
        return ncclReduceScatter(part->source, part->destination, part->counts[0],
                                 nccl_type(element), ncclSum, comm->handle, stream);
    for (int i = 0; i < comm->count && nccl_goes_on(result);
         chunk += part->counts[i++] * element_size(element))
        if (part->counts[i] > 0)
            result = ncclReduce(chunk, i == comm->me ? part->destination : NULL, part->counts[i],
                                nccl_type(element), ncclSum, i, comm->handle, stream);
    return result;
}

static ncclResult_t issue_reduce_scatter(const struct comm *comm, cudaStream_t stream,
                                         const void *arguments)
{
    const struct chunks *chunks = arguments;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < chunks->count && nccl_goes_on(result); i++)
        result = reduce_part(comm, stream, chunks->element, &chunks->parts[i]);
    return result;
}

static int nccl_reduce_scatter(struct fabric_group *group, enum element element,
                               const struct collective_part *parts, int count, struct error *err)
{
    const struct chunks arguments = {element, parts, count};
    return comm_call(&group->fabric->comms, &group->comm, "reduce_scatter", issue_reduce_scatter,
                     &arguments, err);
}

/* Likewise, unequal chunks are broadcast member by member. */
static ncclResult_t gather_part(const struct comm *comm, cudaStream_t stream, enum element element,
                                const struct collective_part *part)
{
    char *chunk = part->destination;
    ncclResult_t result = ncclSuccess;
    if (are_equal(comm, part->counts))
        return ncclAllGather(part->source, part->destination, part->counts[0], nccl_type(element),
                             comm->handle, stream);
    for (int i = 0; i < comm->count && nccl_goes_on(result);
         chunk += part->counts[i++] * element_size(element))
        if (part->counts[i] > 0)
            result = ncclBroadcast(i == comm->me ? part->source : chunk, chunk, part->counts[i],
                                   nccl_type(element), i, comm->handle, stream);
    return result;
}

static ncclResult_t issue_all_gather(const struct comm *comm, cudaStream_t stream,
                                     const void *arguments)
{
    const struct chunks *chunks = arguments;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < chunks->count && nccl_goes_on(result); i++)
        result = gather_part(comm, stream, chunks->element, &chunks->parts[i]);
    return result;
}

static int nccl_all_gather(struct fabric_group *group, enum element element,
                           const struct collective_part *parts, int count, struct error *err)
{
    const struct chunks arguments = {element, parts, count};
    return comm_call(&group->fabric->comms, &group->comm, "all_gather", issue_all_gather,
                     &arguments, err);
}

struct exchange {
    enum element element;
    const char *source;
    char *destination;
    const size_t *sends, *receives;
};

static ncclResult_t issue_all_to_all(const struct comm *comm, cudaStream_t stream,
                                     const void *arguments)
{
    const struct exchange *e = arguments;
    const char *source = e->source;
    char *destination = e->destination;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < comm->count && nccl_goes_on(result); i++) {
        if (e->sends[i] > 0)
            result = ncclSend(source, e->sends[i], nccl_type(e->element), i, comm->handle, stream);
        if (e->receives[i] > 0 && nccl_goes_on(result))
            result = ncclRecv(destination, e->receives[i], nccl_type(e->element), i, comm->handle,
                              stream);
        source += e->sends[i] * element_size(e->element);
        destination += e->receives[i] * element_size(e->element);
    }
    return result;
}

static int nccl_all_to_all(struct fabric_group *group, enum element element, const void *source,
                           const size_t *sends, void *destination, const size_t *receives,
                           struct error *err)
{
    const struct exchange arguments = {element, source, destination, sends, receives};
    return comm_call(&group->fabric->comms, &group->comm, "all_to_all", issue_all_to_all,
                     &arguments, err);
}

/* Connects every two members, which a sum does not. The word is read and overwritten at the same
 * time; its value does not matter. */
static ncclResult_t issue_word_to_all(const struct comm *comm, cudaStream_t stream,
                                      const void *arguments)
{
    void *const *word = arguments;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < comm->count && nccl_goes_on(result); i++) {
        if (i == comm->me)
            continue;
        result = ncclSend(*word, 1, ncclFloat, i, comm->handle, stream);
        if (nccl_goes_on(result))
            result = ncclRecv(*word, 1, ncclFloat, i, comm->handle, stream);
    }
    return result;
}

static int nccl_acquaint(struct fabric_group *group, struct error *err)
{
    struct comms *comms = &group->fabric->comms;
    return comm_greet(comms, &group->comm, issue_word_to_all, &comms->word, err);
}

const struct collectives collectives_nccl = {
    .name = "nccl",
    .in_streams = true,
    .open = nccl_open,
    .close = nccl_close,
    .abort = nccl_abort,
    .group = nccl_group,
    .acquaint = nccl_acquaint,
    .channel = nccl_channel,
    .all_reduce = nccl_all_reduce,
    .reduce_scatter = nccl_reduce_scatter,
    .all_gather = nccl_all_gather,
    .all_to_all = nccl_all_to_all,
    .send = nccl_send,
    .wait = nccl_wait,
    .receive = nccl_receive,
    .check = nccl_check,
};
