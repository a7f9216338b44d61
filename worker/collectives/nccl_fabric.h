/* nccl_fabric.h - what the files of the NCCL library share: a fabric's groups, and its channels of
 * messages. */
#ifndef WORKER_COLLECTIVES_NCCL_FABRIC_H
#define WORKER_COLLECTIVES_NCCL_FABRIC_H

#include "worker/collectives/nccl_comm.h"

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
    struct lane *lane;          /* in which messages wait for the receiver */
    struct mark *filled, *sent; /* the data is ready in the sender's lane; the message was sent */
};

struct fabric {
    struct comms comms;
    struct fabric_group *groups;
    struct fabric_request *channels;
};

static inline ncclDataType_t nccl_type(enum element element)
{
    return element == ELEMENT_BF16 ? ncclBfloat16 : ncclFloat;
}

/* See struct collectives: channel(), send(), wait() and receive(). */
int nccl_channel(struct fabric *fabric, int from, int to, uint32_t tag, struct error *err);
int nccl_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
              const void *source, size_t count, struct fabric_request **out, struct error *err);
int nccl_wait(struct fabric *fabric, struct fabric_request *channel, struct error *err);
int nccl_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                 void *destination, size_t count, struct error *err);
/* Free all channels. Only after comms_close(). */
void nccl_channels_close(struct fabric *fabric);

#endif
