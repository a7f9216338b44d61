/* secret.c - secrets, of which only hashes are kept.
 *
 * A secret has 256 random bits, so a single round of SHA-256 protects it as well as a slow hash
 * would a password. Comparing takes the same time whatever the result. */
#include "coordinator/identity/internal.h"

#include <mbedtls/constant_time.h>
#include <mbedtls/sha256.h>
#include <stdio.h>
#include <string.h>

void secret_print(char *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

void secret_hash(const char *secret, uint8_t out[IDENTITY_HASH_BYTES])
{
    mbedtls_sha256_ret((const unsigned char *)secret, strlen(secret), out, 0);
}

bool secret_matches(const uint8_t stored[IDENTITY_HASH_BYTES], const char *secret)
{
    uint8_t given[IDENTITY_HASH_BYTES];
    secret_hash(secret, given);
    return mbedtls_ct_memcmp(stored, given, sizeof given) == 0;
}
