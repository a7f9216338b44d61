/* sql.h - inside the store: statements that are prepared once, and the first failure kept.
 *
 * After a failure every function here does nothing, so that a run of statements needs no check
 * between them; sql_failed() says what it was. */
#ifndef COORDINATOR_STORE_SQL_H
#define COORDINATOR_STORE_SQL_H

#include "common/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sql_statement {
    const char *text;
    sqlite3_stmt *statement;
};

struct sql {
    sqlite3 *db;
    bool inside; /* a transaction */
    int rc;      /* of the first failure; 0: none */
    struct error words;
    struct sql_statement *statements;
    size_t count, capacity;
};

/* -EBUSY, -EACCES, -EIO, -ENOSPC... */
int sql_open(struct sql *sql, const char *path, struct error *err);
void sql_close(struct sql *sql);

/* Bind values and return the statement, ready for sql_step. The text is a constant that outlives
 * sql. Types: t text, i int64_t, u uint64_t (kept bit by bit), d double, b void* and size_t.
 * NULL after a failure. */
sqlite3_stmt *sql_bind(struct sql *sql, const char *text, const char *types, ...);
/* The next row; false at the end, after a failure, and for NULL. The statement is then reset. */
bool sql_step(struct sql *sql, sqlite3_stmt *statement);
/* Leave a statement before its end. */
void sql_leave(sqlite3_stmt *statement);
/* Bind and run what changes something, in a transaction that it opens. */
void sql_put(struct sql *sql, const char *text, const char *types, ...);
/* The same by steps: the statement, in a transaction that it opens; then what SQLite said to each
 * value; then sql_step. NULL after a failure. */
sqlite3_stmt *sql_begin(struct sql *sql, const char *text);
void sql_bound(struct sql *sql, int code);
/* Run a text of one or more statements, outside of any transaction. */
void sql_script(struct sql *sql, const char *text);
/* End the transaction, if there is one. */
void sql_commit(struct sql *sql);
/* 0, or the first failure with its words. */
int sql_failed(const struct sql *sql, struct error *err);
/* Fail by a finding of one's own. */
void sql_fail(struct sql *sql, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Columns, from 0. Texts are lent until the next step; never NULL. */
const char *sql_text(sqlite3_stmt *statement, int column);
uint64_t sql_number(sqlite3_stmt *statement, int column);

#endif
