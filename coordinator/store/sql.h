/* sql.h - cached prepared statements with a sticky error, for use inside the store.
 *
 * After a failure every function here does nothing, so a sequence of statements needs no checks in
 * between; sql_failed() returns the first failure.
 *
 * A list of columns maps the members of a struct to those of a table. */
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
    bool inside; /* a transaction is open */
    int rc;      /* errno of the first failure; 0: none */
    struct error words;
    struct sql_statement *statements;
    size_t count, capacity;
};

/* -EBUSY, -EACCES, -EIO, -ENOSPC and others. */
int sql_open(struct sql *sql, const char *path, struct error *err);
void sql_close(struct sql *sql);

/* Bind values and return the statement, ready for sql_step(). The text must be a constant that
 * outlives sql. Types: t text, i int64_t, u uint64_t (stored bit for bit), d double, b void * and
 * size_t. NULL after a failure. */
sqlite3_stmt *sql_bind(struct sql *sql, const char *text, const char *types, ...);
/* Step to the next row. Returns false at the end, after a failure, and for NULL; the statement is
 * then reset. */
bool sql_step(struct sql *sql, sqlite3_stmt *statement);
/* Reset a statement before its end. */
void sql_leave(sqlite3_stmt *statement);
/* Bind values and run a statement that changes something, opening a transaction if necessary. */
void sql_put(struct sql *sql, const char *text, const char *types, ...);
/* Run one or more statements outside of any transaction. */
void sql_script(struct sql *sql, const char *text);
/* Commit the transaction, if one is open. */
void sql_commit(struct sql *sql);
/* 0, or the first failure with its message. */
int sql_failed(const struct sql *sql, struct error *err);
/* Record a failure that was found otherwise. */
void sql_fail(struct sql *sql, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A number of rows for LIMIT, where SIZE_MAX is no limit. */
int64_t sql_limit(size_t rows);

/* Columns count from 0. Texts are lent until the next step and never NULL. */
const char *sql_text(sqlite3_stmt *statement, int column);
uint64_t sql_number(sqlite3_stmt *statement, int column);
/* NULL is NaN, which SQLite does not have. */
double sql_real(sqlite3_stmt *statement, int column);

enum sql_kind {
    COLUMN_NUMBER, /* unsigned or bool, of any size */
    COLUMN_REAL,   /* double */
    COLUMN_TEXT,   /* char [size] */
    COLUMN_OWNED,  /* char *, owned by the struct */
    COLUMN_WORD,   /* an enum, stored by name */
};

struct sql_words {
    const char *(*name_of)(int value);
    int count;
};

struct sql_column {
    enum sql_kind kind;
    size_t offset, size;
    const struct sql_words *words; /* for COLUMN_WORD */
};

/* Run a constant statement that has one parameter per column, in this order. */
void columns_put(struct sql *sql, const char *text, const struct sql_column *columns, size_t count,
                 const void *from);
/* Read the columns of a row, starting with its first, into a zeroed struct. */
void columns_read(struct sql *sql, sqlite3_stmt *row, const struct sql_column *columns,
                  size_t count, void *to);

/* The enumerator with this name; fails as sql_fail() if there is none. */
int column_word(struct sql *sql, const char *text, const struct sql_words *words);

#endif
