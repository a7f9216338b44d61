/* output.c - prints objects and tables; a file of output is written beside the final one, then
 * renamed. */
#include "coordinator/cli/output.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "coordinator/cli/exit.h"

const char *const output_words[] = {"table", "wide", "name", "json", "jsonl", "svg", "csv", NULL};

void output_print_object(enum output output, json_t *object, FILE *out)
{
    size_t layout = output == OUTPUT_JSONL ? JSON_COMPACT : JSON_INDENT(2);
    json_dumpf(object, out, layout | JSON_REAL_PRECISION(15));
    fputc('\n', out);
    fflush(out);
    json_decref(object);
}

bool output_print_text(enum output output, const char *text, FILE *out)
{
    json_t *json = json_loads(text, 0, NULL);
    if (!json)
        return false;
    if (output == OUTPUT_JSONL) {
        output_print_object(output, json, out);
        return true;
    }
    json_decref(json);
    fprintf(out, "%s\n", text);
    return true;
}

void output_print_list(enum output output, const char *kind, const char *member, json_t *items,
                       FILE *out)
{
    if (output == OUTPUT_JSONL) {
        size_t i;
        json_t *item;
        json_array_foreach(items, i, item) output_print_object(output, json_incref(item), out);
        json_decref(items);
        return;
    }
    output_print_object(output, resource_list(kind, member, items), out);
}

void output_print_rows(const char *text, size_t rows, bool headers, FILE *out)
{
    size_t line = 0, left_out = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (rows > 0 && line > rows)
            left_out++;
        else if (line > 0 || headers)
            fprintf(out, "%.*s\n", (int)length, text);
        line++;
        text += length + (text[length] == '\n');
    }
    if (left_out)
        fprintf(out, "and %zu more\n", left_out);
}

char *output_print_time(char *out, size_t size, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm local;
    if (!unix_ms || !localtime_r(&seconds, &local) || strftime(out, size, "%F %T", &local) == 0)
        *out = '\0';
    return out;
}

struct table {
    const struct column *columns;
    size_t column_count;
    char **cells;
    size_t cell_count, cell_capacity;
};

struct table *table_create(const struct column *columns, size_t count)
{
    struct table *table = xcalloc(1, sizeof *table);
    table->columns = columns;
    table->column_count = count;
    return table;
}

void table_destroy(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

/* A row is one line, whatever its texts contain. */
static void table_flatten(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
}

void table_add(struct table *table, const char *format, ...)
{
    va_list arguments;
    char *cell = NULL;
    va_start(arguments, format);
    if (vasprintf(&cell, format, arguments) < 0 || !*cell) {
        free(cell);
        cell = xstrdup("-");
    }
    va_end(arguments);
    table_flatten(cell);
    table->cells =
        grow(table->cells, table->cell_count, &table->cell_capacity, sizeof *table->cells);
    table->cells[table->cell_count++] = cell;
}

/* Counts UTF-8 code points: all characters in our own texts are one column wide. */
static int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

static int column_columns(const struct table *table, size_t column, bool headers)
{
    int widest = headers ? text_columns(table->columns[column].name) : 0;
    for (size_t i = column; i < table->cell_count; i += table->column_count) {
        int columns = text_columns(table->cells[i]);
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

static bool column_is_shown(const struct table *table, size_t column, enum output output)
{
    if (output == OUTPUT_NAME)
        return column == 0;
    return output == OUTPUT_WIDE || !table->columns[column].wide;
}

static void table_print_row(const struct table *table, const int *widths, const char *const *texts,
                            enum output output, FILE *out)
{
    int owed = 0; /* spaces that are written only if something follows */
    for (size_t i = 0; i < table->column_count; i++) {
        if (!column_is_shown(table, i, output))
            continue;
        int pad = widths[i] - text_columns(texts[i]);
        bool right = table->columns[i].right;
        fprintf(out, "%*s%s", owed + (right ? pad : 0), "", texts[i]);
        owed = 2 + (right ? 0 : pad);
    }
    fputc('\n', out);
}

void table_print(const struct table *table, enum output output, bool headers, FILE *out)
{
    int *widths = xcalloc(table->column_count, sizeof *widths);
    const char **names = xcalloc(table->column_count, sizeof *names);
    assert(table->cell_count % table->column_count == 0);
    for (size_t i = 0; i < table->column_count; i++) {
        widths[i] = column_columns(table, i, headers);
        names[i] = table->columns[i].name;
    }
    if (headers && output != OUTPUT_NAME)
        table_print_row(table, widths, names, output, out);
    for (size_t i = 0; i < table->cell_count; i += table->column_count)
        table_print_row(table, widths, (const char *const *)&table->cells[i], output, out);
    fflush(out);
    free(widths);
    free(names);
}

int outfile_begin(const char *path, struct outfile *outfile, struct error *err)
{
    *outfile = (struct outfile){.path = path};
    if (!path)
        return 0;
    /* two commands may write it at once */
    outfile->part = xasprintf("%s.%ld.part", path, (long)getpid());
    fflush(stdout);
    if (freopen(outfile->part, "we", stdout))
        return 0;
    int rc = error_set(err, -errno, "cannot write '%s': %s", path, strerror(errno));
    free(outfile->part);
    return rc;
}

int outfile_end(struct outfile *outfile, bool done, struct error *err)
{
    if (!outfile->path)
        return 0;
    int rc = fflush(stdout) < 0 ? -errno : ferror(stdout) ? -EIO : 0;
    bool keep = done || ftello(stdout) > 0;
    if (rc == 0 && keep && rename(outfile->part, outfile->path) < 0)
        rc = -errno;
    if (rc < 0 && keep)
        error_set(err, rc, "cannot write '%s': %s", outfile->path, strerror(-rc));
    if (!keep || rc < 0)
        unlink(outfile->part);
    free(outfile->part);
    return keep ? rc : 0;
}

/* A pipe without a reader makes poll(2) report an error at its other end, whatever events were
 * asked for. */

struct pollfd reader_poll(void)
{
    return (struct pollfd){.fd = STDOUT_FILENO, .events = 0};
}

int reader_code(const struct pollfd *polled)
{
    if (ferror(stdout))
        return EXIT_IO;
    return polled->revents & POLLERR ? EXIT_SIGNAL + SIGPIPE : EXIT_DONE;
}
