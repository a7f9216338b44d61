/* identity.c - stores join tokens and credentials; of both only hashes. */
#include "coordinator/store/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void store_put_token(struct store *store, const struct identity_token *token)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO tokens (id, role, name, hash, issued_ms, expires_ms, uses_left)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            "tttbuuu", token->id, identity_role_names[token->role], token->name,
            (const void *)token->hash, sizeof token->hash, token->issued_ms, token->expires_ms,
            (uint64_t)token->uses_left);
}

void store_put_credential(struct store *store, const struct identity_credential *credential)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO credentials (role, name, hash, issued_ms, revoked_ms)"
            " VALUES (?, ?, ?, ?, ?)",
            "ttbuu", identity_role_names[credential->role], credential->name,
            (const void *)credential->hash, sizeof credential->hash, credential->issued_ms,
            credential->revoked_ms);
}

static void read_role(struct sql *sql, const char *word, enum identity_role *out)
{
    struct error err;
    int rc = identity_role_parse(word, out, &err);
    if (rc < 0)
        sql_fail(sql, -EPROTO, "%s", err.text);
}

static void read_hash(struct sql *sql, sqlite3_stmt *row, int column,
                      uint8_t out[IDENTITY_HASH_BYTES])
{
    if (sqlite3_column_bytes(row, column) == IDENTITY_HASH_BYTES)
        memcpy(out, sqlite3_column_blob(row, column), IDENTITY_HASH_BYTES);
    else
        sql_fail(sql, -EPROTO, "a hash of a token or credential has a wrong length");
}

static void read_tokens(struct sql *sql, struct identity *identity)
{
    sqlite3_stmt *row = sql_bind(
        sql, "SELECT id, role, name, hash, issued_ms, expires_ms, uses_left FROM tokens", "");
    while (sql_step(sql, row)) {
        struct identity_token token = {.issued_ms = sql_number(row, 4),
                                       .expires_ms = sql_number(row, 5),
                                       .uses_left = (uint32_t)sql_number(row, 6)};
        snprintf(token.id, sizeof token.id, "%s", sql_text(row, 0));
        snprintf(token.name, sizeof token.name, "%s", sql_text(row, 2));
        read_role(sql, sql_text(row, 1), &token.role);
        read_hash(sql, row, 3, token.hash);
        identity_restore_token(identity, &token);
    }
}

static void read_credentials(struct sql *sql, struct identity *identity)
{
    sqlite3_stmt *row =
        sql_bind(sql, "SELECT role, name, hash, issued_ms, revoked_ms FROM credentials", "");
    while (sql_step(sql, row)) {
        struct identity_credential credential = {.issued_ms = sql_number(row, 3),
                                                 .revoked_ms = sql_number(row, 4)};
        snprintf(credential.name, sizeof credential.name, "%s", sql_text(row, 1));
        read_role(sql, sql_text(row, 0), &credential.role);
        read_hash(sql, row, 2, credential.hash);
        identity_restore_credential(identity, &credential);
    }
}

int store_read_identity(struct store *store, struct identity *identity, struct error *err)
{
    read_tokens(&store->sql, identity);
    read_credentials(&store->sql, identity);
    return sql_failed(&store->sql, err);
}
