/* nccl_message.c - messages: a communicator of two ranks for each channel, and at the sender's end
 * a lane. */
#include "worker/collectives/nccl_fabric.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

int nccl_channel(struct fabric *fabric, int from, int to, uint32_t tag, struct error *err)
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
        rc = accelerator->lane_open(&channel->lane, false, err);
        if (rc == 0)
            rc = accelerator->mark_create(&channel->filled, err);
        if (rc == 0)
            rc = accelerator->mark_create(&channel->sent, err);
    }
    snprintf(key, sizeof key, "nccl/channel/%d/%d/%u", from, to, tag);
    if (rc == 0)
        rc = comm_join(&fabric->comms, &channel->comm, ends, 2, key, err);
    return rc == 0
               ? comm_greet(&fabric->comms, &channel->comm,
                            from == fabric->comms.rank ? issue_send : issue_receive, &greeting, err)
               : rc;
}

static int find(struct fabric *fabric, int from, int to, uint32_t tag, struct fabric_request **out,
                struct error *err)
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

int nccl_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
              const void *source, size_t count, struct fabric_request **out, struct error *err)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    const struct message message = {element, (void *)source, count}; /* it is read only */
    struct lane *here = accelerator->inside();
    struct fabric_request *channel;
    int rc = find(fabric, fabric->comms.rank, peer, tag, &channel, err);
    if (rc < 0)
        return rc;
    accelerator->mark_set(channel->filled);
    accelerator->enter(channel->lane);
    accelerator->mark_await(channel->filled);
    if (count > 0)
        rc = comm_call(&fabric->comms, &channel->comm, "send", issue_send, &message, err);
    accelerator->mark_set(channel->sent);
    accelerator->enter(here);
    *out = channel;
    return rc;
}

/* In a lane, later work is made to wait for the message; outside of one, the host waits. */
int nccl_wait(struct fabric *fabric, struct fabric_request *channel, struct error *err)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    if (accelerator->inside()) {
        accelerator->mark_await(channel->sent);
        return 0;
    }
    accelerator->enter(channel->lane);
    int rc = accelerator->finish(err);
    accelerator->enter(NULL);
    return rc == 0 ? comms_check(&fabric->comms, err) : rc;
}

int nccl_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                 void *destination, size_t count, struct error *err)
{
    const struct message message = {element, destination, count};
    struct fabric_request *channel;
    int rc = find(fabric, peer, fabric->comms.rank, tag, &channel, err);
    if (rc < 0 || count == 0)
        return rc;
    return comm_call(&fabric->comms, &channel->comm, "receive", issue_receive, &message, err);
}

void nccl_channels_close(struct fabric *fabric)
{
    const struct accelerator *accelerator = fabric->comms.accelerator;
    while (fabric->channels) {
        struct fabric_request *next = fabric->channels->next;
        accelerator->lane_close(fabric->channels->lane);
        accelerator->mark_destroy(fabric->channels->filled);
        accelerator->mark_destroy(fabric->channels->sent);
        free(fabric->channels);
        fabric->channels = next;
    }
}
