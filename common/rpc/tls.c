/* tls.c - configures TLS for NNG.
 *
 * NNG is built with mbedTLS 2.28, which speaks TLS 1.2. By default an NNG server does not ask its
 * clients for certificates; setting the authentication mode to required is what makes it secure. */
#include "common/rpc/tls.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

int rpc_tls_config(const struct rpc_tls *tls, const char *server_name, struct nng_tls_config **out,
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
