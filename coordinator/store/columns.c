/* columns.c - binds and reads every kind of column. */
#include "coordinator/store/columns.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t load_number(const void *at, size_t size)
{
    return size == sizeof(uint64_t)   ? *(const uint64_t *)at
           : size == sizeof(uint32_t) ? *(const uint32_t *)at
                                      : *(const bool *)at;
}

static void store_number(void *at, size_t size, uint64_t number)
{
    if (size == sizeof(uint64_t))
        *(uint64_t *)at = number;
    else if (size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)number;
    else
        *(bool *)at = number != 0;
}

static int bind(sqlite3_stmt *statement, int index, const struct sql_column *column, const void *at)
{
    switch (column->kind) {
    case COLUMN_NUMBER:
        return sqlite3_bind_int64(statement, index, (int64_t)load_number(at, column->size));
    case COLUMN_REAL:
        return sqlite3_bind_double(statement, index, *(const double *)at);
    case COLUMN_TEXT:
        return sqlite3_bind_text(statement, index, at, -1, SQLITE_TRANSIENT);
    case COLUMN_OWNED:
        return sqlite3_bind_text(statement, index, *(const char *const *)at, -1, SQLITE_TRANSIENT);
    case COLUMN_WORD:
        return sqlite3_bind_text(statement, index, column->words->name_of(*(const int *)at), -1,
                                 SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

void columns_put(struct sql *sql, const char *text, const struct sql_column *columns, size_t count,
                 const void *from)
{
    sqlite3_stmt *statement = sql_begin(sql, text);
    for (size_t i = 0; statement && i < count; i++)
        sql_bound(sql,
                  bind(statement, (int)i + 1, &columns[i], (const char *)from + columns[i].offset));
    while (sql_step(sql, statement))
        continue;
}

int column_word(struct sql *sql, const char *text, const struct sql_words *words)
{
    for (int i = 0; i < words->count; i++)
        if (strcmp(words->name_of(i), text) == 0)
            return i;
    sql_fail(sql, -EPROTO, "'%.40s' means nothing to this release", text);
    return 0;
}

static void read(struct sql *sql, sqlite3_stmt *row, int index, const struct sql_column *column,
                 void *at)
{
    switch (column->kind) {
    case COLUMN_NUMBER:
        store_number(at, column->size, sql_number(row, index));
        break;
    case COLUMN_REAL:
        *(double *)at = sqlite3_column_double(row, index);
        break;
    case COLUMN_TEXT:
        snprintf(at, column->size, "%s", sql_text(row, index));
        break;
    case COLUMN_OWNED:
        *(char **)at = xstrdup(sql_text(row, index));
        break;
    case COLUMN_WORD:
        *(int *)at = column_word(sql, sql_text(row, index), column->words);
        break;
    }
}

void columns_read(struct sql *sql, sqlite3_stmt *row, const struct sql_column *columns,
                  size_t count, void *to)
{
    for (size_t i = 0; i < count; i++)
        read(sql, row, (int)i, &columns[i], (char *)to + columns[i].offset);
}
