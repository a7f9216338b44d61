/* show.c - `gimbal data show`: what files of tokens hold, for people who are about to train on
 * them.
 */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/data/showing.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/base/utf8.h"
#include "common/config/job.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#define IDS_SHOWN 8
#define TEXT_SHOWN 48 /* bytes */

struct show_values {
    const char *tokenizer;
    int format;
};

static const struct flag show_flags[] = {
    {"format", 0, FLAG_WORD, offsetof(struct show_values, format), "FORMAT",
     "uint16 or uint32: files without a header, as data.format of a job (auto)",
     .words = job_formats},
    {"tokenizer", 0, FLAG_TEXT, offsetof(struct show_values, tokenizer), "bytes|PATH",
     "what the tokens are: bytes, a tokenizer.json or the folder of one"},
    {.name = NULL},
};

/* What is printed at the end, if all files could be read. */
struct shown {
    struct table *table;
    json_t *items;
};

static json_t *json_of(const Gimbal__ExecutorShown *shown)
{
    json_t *first = json_array();
    for (size_t i = 0; i < shown->n_first; i++)
        json_array_append_new(first, json_integer(shown->first[i]));
    char *text = utf8_clean(shown->text.data, shown->text.len);
    json_t *object =
        json_pack("{s:s, s:s, s:i, s:I, s:o, s:o, s:o, s:I, s:o, s:o}", "file", shown->file,
                  "format", shown->format, "token_bytes", (int)shown->token_bytes, "tokens",
                  (json_int_t)shown->tokens, "documents",
                  shown->documents_known ? json_integer((json_int_t)shown->documents) : json_null(),
                  "smallest", shown->tokens ? json_integer(shown->smallest) : json_null(),
                  "largest", shown->tokens ? json_integer(shown->largest) : json_null(),
                  "file_bytes", (json_int_t)shown->file_bytes, "first", first, "text",
                  shown->text_known ? json_string(text) : json_null());
    free(text);
    return object;
}

/* The first tokens: their text in quotes, on one line, or the tokens themselves. */
static char *print_beginning(const Gimbal__ExecutorShown *shown)
{
    char *out = NULL;
    if (shown->text_known) {
        size_t size = shown->text.len < TEXT_SHOWN ? shown->text.len : TEXT_SHOWN;
        size -= utf8_cut(shown->text.data, size);
        char *text = utf8_clean(shown->text.data, size);
        json_t *string = json_string(text);
        out = json_dumps(string, JSON_ENCODE_ANY);
        json_decref(string);
        free(text);
        return out;
    }
    size_t length;
    FILE *words = open_memstream(&out, &length);
    for (size_t i = 0; i < shown->n_first && i < IDS_SHOWN; i++)
        fprintf(words, i ? " %" PRIu32 : "%" PRIu32, shown->first[i]);
    if (shown->tokens > IDS_SHOWN)
        fputs(" ...", words);
    fclose(words);
    return out;
}

static void add_number(struct table *table, bool known, uint64_t number)
{
    if (known)
        table_add(table, "%" PRIu64, number);
    else
        table_add(table, "%s", "");
}

static void take(void *data, const Gimbal__ExecutorShown *one)
{
    struct shown *shown = data;
    char size[32], *beginning = print_beginning(one);
    json_array_append_new(shown->items, json_of(one));
    table_add(shown->table, "%s", one->file);
    table_add(shown->table, "%s", one->format);
    table_add(shown->table, "%" PRIu32, 8 * one->token_bytes);
    table_add(shown->table, "%" PRIu64, one->tokens);
    add_number(shown->table, one->documents_known, one->documents);
    add_number(shown->table, one->tokens > 0, one->smallest);
    add_number(shown->table, one->tokens > 0, one->largest);
    table_add(shown->table, "%s", units_print_bytes(size, sizeof size, (double)one->file_bytes));
    table_add(shown->table, "%s", beginning);
    free(beginning);
}

static int run(const struct invocation *invocation, struct error *err)
{
    static const struct column columns[] = {
        {.name = "FILE"},
        {.name = "FORMAT"},
        {.name = "BITS", .right = true},
        {.name = "TOKENS", .right = true},
        {.name = "DOCUMENTS", .right = true},
        {.name = "SMALLEST", .right = true},
        {.name = "LARGEST", .right = true},
        {.name = "SIZE", .right = true},
        {.name = "BEGINS"},
    };
    const struct show_values *values = invocation->values;
    const struct common *common = &invocation->common;
    const struct showing_options options = {.format = job_formats[values->format],
                                            .tokenizer = values->tokenizer,
                                            .files = invocation->arguments,
                                            .file_count = invocation->argument_count};
    struct shown shown = {.table = table_create(columns, sizeof columns / sizeof *columns),
                          .items = json_array()};
    int code = showing_run(&options, take, &shown, err);
    if (code == EXIT_DONE && common->output >= OUTPUT_JSON)
        output_print_list((enum output)common->output, "TokenFileList", "files",
                          json_incref(shown.items), stdout);
    else if (code == EXIT_DONE)
        table_print(shown.table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(shown.table);
    json_decref(shown.items);
    return code;
}

const struct command command_data_show = {
    .name = "data show",
    .summary = "Show what files of tokens hold: how many, of what size, and how they begin",
    .arguments = "FILE...",
    .arguments_min = 1,
    .arguments_max = INT_MAX,
    .flags = show_flags,
    .values_size = sizeof(struct show_values),
    .takes = TAKES_OUTPUT,
    .run = run,
};
