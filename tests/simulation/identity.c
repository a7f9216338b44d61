/* identity.c - the store's part in who may call: nothing, for on loopback all are trusted. */
#include "coordinator/store/store.h"
#include "tests/simulation/world.h"

void store_put_token(struct store *store, const struct identity_token *token)
{
    (void)store, (void)token;
    world_fail("a token is stored");
}

void store_put_credential(struct store *store, const struct identity_credential *credential)
{
    (void)store, (void)credential;
    world_fail("a credential is stored");
}

int store_read_identity(struct store *store, struct identity *identity, struct error *err)
{
    (void)store, (void)identity, (void)err;
    return 0;
}
