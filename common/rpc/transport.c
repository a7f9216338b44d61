/* transport.c - packs directly into the frame, which saves a copy of large payloads; and configures
 * TLS.
 *
 * NNG is built with mbedTLS 2.28, which speaks TLS 1.2. By default an NNG server does not ask its
 * clients for certificates; setting the authentication mode to required is what makes it secure. */
#include "common/rpc/transport.h"

#include "common/message/message.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

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

int transport_tls(const struct rpc_tls *tls, const char *server_name, nng_tls_config **out,
                  struct error *err)
{
    nng_tls_config *config;
    int rc = nng_tls_config_alloc(&config, server_name ? NNG_TLS_MODE_CLIENT : NNG_TLS_MODE_SERVER);
    if (rc != 0)
        return error_set(err, -EINVAL, "set up TLS: %s", nng_strerror(rc));
    rc = nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED);
    if (rc == 0)
        rc = nng_tls_config_version(config, NNG_TLS_1_2, NNG_TLS_1_2);
    if (rc == 0)
        rc = nng_tls_config_ca_chain(config, tls->authority, NULL);
    if (rc == 0)
        rc = nng_tls_config_own_cert(config, tls->certificate, tls->key, NULL);
    if (rc == 0 && server_name)
        rc = nng_tls_config_server_name(config, server_name);
    if (rc != 0) {
        nng_tls_config_free(config);
        return error_set(err, -EINVAL, "set up TLS: %s: the certificates do not hold together",
                         nng_strerror(rc));
    }
    *out = config;
    return 0;
}
