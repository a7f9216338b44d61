/* pack.c - `gimbal data pack`: writes texts as a token file. */
#include "coordinator/cli/commands.h"
#include "coordinator/cli/commands/data/packing.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"

#include "common/base/units.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

struct pack_values {
    const char *to, *tokenizer;
    bool end_of_text, force;
};

static const struct flag pack_flags[] = {
    {"to", 'o', FLAG_TEXT, offsetof(struct pack_values, to), "FILE", "the token file to write"},
    {"tokenizer", 0, FLAG_TEXT, offsetof(struct pack_values, tokenizer), "PATH",
     "a tokenizer.json, or the folder of one: it makes the tokens (every byte is one)"},
    {"end-of-text", 'e', FLAG_SWITCH, offsetof(struct pack_values, end_of_text), NULL,
     "put a token after every text: the tokenizer's, or 256, which needs a vocabulary of 257"},
    {"force", 0, FLAG_SWITCH, offsetof(struct pack_values, force), NULL,
     "replace the file if it is there"},
    {.name = NULL},
};

static void print_json(const struct common *common, const char *file,
                       const Gimbal__ExecutorPacked *packed)
{
    output_print_object(
        (enum output)common->output,
        resource_object("TokenFile",
                        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "file", file, "documents",
                                  (json_int_t)packed->documents, "text_bytes",
                                  (json_int_t)packed->text_bytes, "tokens",
                                  (json_int_t)packed->tokens, "vocab", (json_int_t)packed->vocab,
                                  "file_bytes", (json_int_t)packed->file_bytes)),
        stdout);
}

static void print_table(const struct common *common, const char *file,
                        const Gimbal__ExecutorPacked *packed)
{
    static const struct column columns[] = {
        {.name = "FILE"},
        {.name = "DOCUMENTS", .right = true},
        {.name = "TOKENS", .right = true},
        {.name = "VOCAB", .right = true},
        {.name = "SIZE", .right = true},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    char size[32];
    table_add(table, "%s", file);
    table_add(table, "%" PRIu64, packed->documents);
    table_add(table, "%" PRIu64, packed->tokens);
    table_add(table, "%" PRIu32, packed->vocab);
    table_add(table, "%s", units_print_bytes(size, sizeof size, (double)packed->file_bytes));
    table_print(table, (enum output)common->output, !common->no_headers, stdout);
    table_destroy(table);
}

/* -o is a format for other commands: such a word is hardly meant to be a file. */
static int check_to(const char *to, struct error *err)
{
    if (!to || !*to)
        return error_set(err, EXIT_USAGE, "needs the file to write: -o corpus.bin");
    for (size_t i = 0; output_words[i]; i++)
        if (strcmp(to, output_words[i]) == 0)
            return error_set(err, EXIT_USAGE,
                             "-o is the file to write: give a format with --output %s, and a file "
                             "of that name as -o ./%s",
                             to, to);
    return EXIT_DONE;
}

static int run(const struct invocation *invocation, struct error *err)
{
    const struct pack_values *values = invocation->values;
    const struct packing_options options = {.out = values->to,
                                            .tokenizer = values->tokenizer,
                                            .texts = invocation->arguments,
                                            .text_count = invocation->argument_count,
                                            .end_of_text = values->end_of_text,
                                            .force = values->force,
                                            .quiet = invocation->common.quiet};
    Gimbal__ExecutorPacked *packed;
    int code = check_to(values->to, err);
    if (code == EXIT_DONE)
        code = packing_run(&options, &packed, err);
    if (code != EXIT_DONE)
        return code;
    if (invocation->common.output >= OUTPUT_JSON)
        print_json(&invocation->common, values->to, packed);
    else
        print_table(&invocation->common, values->to, packed);
    message_free(&packed->base);
    return EXIT_DONE;
}

const struct command command_data_pack = {
    .name = "data pack",
    .summary = "Write texts as a file of tokens, for data.tokens",
    .arguments = "TEXT...",
    .arguments_min = 1,
    .arguments_max = INT_MAX,
    .flags = pack_flags,
    .values_size = sizeof(struct pack_values),
    .takes = TAKES_OUTPUT,
    .run = run,
};
