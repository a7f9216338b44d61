/* columns.h - maps the members of a struct to the columns of a table by a list of columns. */
#ifndef COORDINATOR_STORE_COLUMNS_H
#define COORDINATOR_STORE_COLUMNS_H

#include "coordinator/store/sql.h"

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
