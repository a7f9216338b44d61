/* columns.h - members of a struct as columns of a table: one list says how each is stored. */
#ifndef COORDINATOR_STORE_COLUMNS_H
#define COORDINATOR_STORE_COLUMNS_H

#include "coordinator/store/sql.h"

enum sql_kind {
    COLUMN_NUMBER, /* unsigned, or bool, of any size */
    COLUMN_REAL,   /* double */
    COLUMN_TEXT,   /* char [size] */
    COLUMN_OWNED,  /* char *, yours */
    COLUMN_WORD,   /* an enum, stored by name */
};

struct sql_words {
    const char *(*name_of)(int value);
    int count;
};

struct sql_column {
    enum sql_kind kind;
    size_t offset, size;
    const struct sql_words *words; /* of COLUMN_WORD */
};

/* Run a constant text with a place for each column, in their order. */
void columns_put(struct sql *sql, const char *text, const struct sql_column *columns, size_t count,
                 const void *from);
/* Columns of a row, from its first on, into a zeroed struct. */
void columns_read(struct sql *sql, sqlite3_stmt *row, const struct sql_column *columns,
                  size_t count, void *to);

/* The enumerator by that name; fails when there is none. */
int column_word(struct sql *sql, const char *text, const struct sql_words *words);

#endif
