/* envelope.c - packs directly into the frame, which saves a copy of large payloads. */
#include "common/rpc/envelope.h"

#include "common/message/message.h"

#include <errno.h>

nng_msg *envelope_encode(const Gimbal__Envelope *envelope)
{
    nng_msg *frame;
    if (nng_msg_alloc(&frame, protobuf_c_message_get_packed_size(&envelope->base)) != 0)
        return NULL;
    protobuf_c_message_pack(&envelope->base, nng_msg_body(frame));
    return frame;
}

int envelope_decode(nng_msg *frame, Gimbal__Envelope **out, struct error *err)
{
    /* Its fields are copies of parts of the frame, so memory is bounded by a multiple of its size.
     */
    size_t size = nng_msg_len(frame);
    ProtobufCMessage *message;
    int rc = message_unpack(&gimbal__envelope__descriptor, nng_msg_body(frame), size,
                            ENVELOPE_BYTES_MAX + 2 * size, &message, err);
    if (rc == 0)
        *out = (Gimbal__Envelope *)message;
    return rc;
}

int envelope_check_version(const Gimbal__Envelope *envelope, struct error *err)
{
    uint32_t low = envelope->protocol_minor, high = RPC_PROTOCOL_MINOR;
    if (low > high) {
        low = RPC_PROTOCOL_MINOR;
        high = envelope->protocol_minor;
    }
    if (envelope->protocol_major == RPC_PROTOCOL_MAJOR && high - low <= 1)
        return 0;
    return error_set(err, -ESTALE,
                     "protocol %u.%u meets protocol %d.%d: major versions must be equal and minor "
                     "versions at most one apart; install the same release on both sides",
                     envelope->protocol_major, envelope->protocol_minor, RPC_PROTOCOL_MAJOR,
                     RPC_PROTOCOL_MINOR);
}
