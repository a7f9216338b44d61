/* sql.c - SQLite's C interface with errno values and messages. */
#include "coordinator/store/sql.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

#define CODE_MASK 0xff /* an extended code without what extends it */

static int sql_errno(int code)
{
    switch (code & CODE_MASK) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
        return -EACCES;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
        return -EPROTO;
    default:
        return -EIO;
    }
}

/* Record SQLite's latest error as the first failure. */
static void sql_note_failure(struct sql *sql)
{
    if (sql->rc != 0)
        return;
    int code = sql->db ? sqlite3_extended_errcode(sql->db) : SQLITE_NOMEM;
    int system = sql->db ? sqlite3_system_errno(sql->db) : 0;
    int rc = sql_errno(code);
    bool told = system != 0 && (rc == -EIO || (code & CODE_MASK) == SQLITE_CANTOPEN);
    if (told && rc == -EACCES)
        rc = -system;
    sql->rc =
        error_set(&sql->words, rc, "%s%s%s", sql->db ? sqlite3_errmsg(sql->db) : "out of memory",
                  told ? ": " : "", told ? strerror(system) : "");
}

void sql_fail(struct sql *sql, int rc, const char *format, ...)
{
    if (sql->rc != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sql->words.text, sizeof sql->words.text, format, arguments);
    va_end(arguments);
    sql->rc = rc;
}

int sql_failed(const struct sql *sql, struct error *err)
{
    return sql->rc == 0 ? 0 : error_set(err, sql->rc, "%s", sql->words.text);
}

/* The path without symbolic links on the way to its folder: SQLite's NOFOLLOW, which is for the
 * file, refuses those, too. The caller frees it. */
static char *sql_real_path(const char *path)
{
    char *above = xstrdup(path), *name = strrchr(above, '/');
    char *folder = NULL, *real = NULL;
    if (name) {
        *name++ = '\0';
        folder = realpath(*above ? above : "/", NULL);
    }
    real = folder ? xasprintf("%s/%s", folder, name) : xstrdup(path); /* its failure is SQLite's */
    free(folder);
    free(above);
    return real;
}

int sql_open(struct sql *sql, const char *path, struct error *err)
{
    char *real = sql_real_path(path);
    *sql = (struct sql){0};
    if (sqlite3_open_v2(real, &sql->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                            SQLITE_OPEN_NOFOLLOW,
                        NULL) != SQLITE_OK)
        sql_note_failure(sql);
    free(real);
    if (sql->db)
        sqlite3_extended_result_codes(sql->db, 1);
    return sql_failed(sql, err);
}

void sql_close(struct sql *sql)
{
    for (size_t i = 0; i < sql->count; i++)
        sqlite3_finalize(sql->statements[i].statement);
    free(sql->statements);
    sqlite3_close(sql->db);
    *sql = (struct sql){0};
}

void sql_script(struct sql *sql, const char *text)
{
    if (sql->rc == 0 && sqlite3_exec(sql->db, text, NULL, NULL, NULL) != SQLITE_OK)
        sql_note_failure(sql);
}

/* Texts are constants, so their addresses identify them. */
static sqlite3_stmt *sql_prepare(struct sql *sql, const char *text)
{
    for (size_t i = 0; i < sql->count; i++)
        if (sql->statements[i].text == text)
            return sql->statements[i].statement;
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(sql->db, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
        SQLITE_OK) {
        sql_note_failure(sql);
        return NULL;
    }
    sql->statements = grow(sql->statements, sql->count, &sql->capacity, sizeof *sql->statements);
    sql->statements[sql->count++] = (struct sql_statement){text, statement};
    return statement;
}

static int sql_bind_one(sqlite3_stmt *statement, int index, char type, va_list *values)
{
    if (type == 't')
        return sqlite3_bind_text(statement, index, va_arg(*values, const char *), -1,
                                 SQLITE_TRANSIENT);
    if (type == 'i')
        return sqlite3_bind_int64(statement, index, va_arg(*values, int64_t));
    if (type == 'u')
        return sqlite3_bind_int64(statement, index, (int64_t)va_arg(*values, uint64_t));
    if (type == 'd')
        return sqlite3_bind_double(statement, index, va_arg(*values, double));
    const void *bytes = va_arg(*values, const void *);
    size_t size = va_arg(*values, size_t);
    return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", size, SQLITE_TRANSIENT);
}

static sqlite3_stmt *sql_bind_all(struct sql *sql, const char *text, const char *types,
                                  va_list *values)
{
    sqlite3_stmt *statement = sql->rc == 0 ? sql_prepare(sql, text) : NULL;
    for (int i = 0; statement && types[i]; i++) {
        if (sql_bind_one(statement, i + 1, types[i], values) == SQLITE_OK)
            continue;
        sql_note_failure(sql);
        return NULL;
    }
    return statement;
}

sqlite3_stmt *sql_bind(struct sql *sql, const char *text, const char *types, ...)
{
    va_list values;
    va_start(values, types);
    sqlite3_stmt *statement = sql_bind_all(sql, text, types, &values);
    va_end(values);
    return statement;
}

bool sql_step(struct sql *sql, sqlite3_stmt *statement)
{
    if (!statement || sql->rc != 0)
        return false;
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return true;
    if (code != SQLITE_DONE)
        sql_note_failure(sql);
    sqlite3_reset(statement);
    return false;
}

void sql_leave(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
}

static void sql_enter(struct sql *sql)
{
    if (sql->inside)
        return;
    sql_script(sql, "BEGIN IMMEDIATE");
    sql->inside = sql->rc == 0;
}

/* Like sql_put() in steps: sql_begin() opens a transaction and returns the statement, NULL after a
 * failure; sql_bound() checks the result of each binding; sql_step() runs it. */
static sqlite3_stmt *sql_begin(struct sql *sql, const char *text)
{
    sql_enter(sql);
    return sql->rc == 0 ? sql_prepare(sql, text) : NULL;
}

static void sql_bound(struct sql *sql, int code)
{
    if (code != SQLITE_OK)
        sql_note_failure(sql);
}

void sql_put(struct sql *sql, const char *text, const char *types, ...)
{
    sql_enter(sql);
    va_list values;
    va_start(values, types);
    sqlite3_stmt *statement = sql_bind_all(sql, text, types, &values);
    va_end(values);
    while (sql_step(sql, statement))
        continue;
}

void sql_commit(struct sql *sql)
{
    if (!sql->inside)
        return;
    sql_script(sql, "COMMIT");
    sql->inside = false;
}

int64_t sql_limit(size_t rows)
{
    return rows > INT64_MAX ? -1 : (int64_t)rows;
}

const char *sql_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

uint64_t sql_number(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

double sql_real(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? (double)NAN
               : sqlite3_column_double(statement, column);
}

static uint64_t column_load_number(const void *at, size_t size)
{
    return size == sizeof(uint64_t)   ? *(const uint64_t *)at
           : size == sizeof(uint32_t) ? *(const uint32_t *)at
                                      : *(const bool *)at;
}

static void column_store_number(void *at, size_t size, uint64_t number)
{
    if (size == sizeof(uint64_t))
        *(uint64_t *)at = number;
    else if (size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)number;
    else
        *(bool *)at = number != 0;
}

static int column_bind(sqlite3_stmt *statement, int index, const struct sql_column *column,
                       const void *at)
{
    switch (column->kind) {
    case COLUMN_NUMBER:
        return sqlite3_bind_int64(statement, index, (int64_t)column_load_number(at, column->size));
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
        sql_bound(sql, column_bind(statement, (int)i + 1, &columns[i],
                                   (const char *)from + columns[i].offset));
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

static void column_read(struct sql *sql, sqlite3_stmt *row, int index,
                        const struct sql_column *column, void *at)
{
    switch (column->kind) {
    case COLUMN_NUMBER:
        column_store_number(at, column->size, sql_number(row, index));
        break;
    case COLUMN_REAL:
        *(double *)at = sql_real(row, index);
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
        column_read(sql, row, (int)i, &columns[i], (char *)to + columns[i].offset);
}
