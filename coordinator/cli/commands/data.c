/* data.c - `gimbal data pack` writes texts as a file of tokens, and `gimbal data show` says what
 * such files hold, for people who are about to train on them. Both have an executor do it. */
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/executor.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/output.h"
#include "coordinator/cli/progress.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/job.h"
#include "common/message/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000 /* for the end of what packs, once it has closed the channel */
#define IDS_SHOWN 8
#define TEXT_SHOWN 48 /* bytes */

struct pack_values {
    const char *to, *tokenizer, *end_of_text;
    bool force;
};

static const struct flag pack_flags[] = {
    {"to", 'o', FLAG_TEXT, offsetof(struct pack_values, to), "FILE", "the token file to write"},
    {"tokenizer", 0, FLAG_TEXT, offsetof(struct pack_values, tokenizer), "PATH",
     "a tokenizer.json, or the folder of one: it makes the tokens (every byte is one)"},
    {"end-of-text", 'e', FLAG_OPTION, offsetof(struct pack_values, end_of_text), "TOKEN",
     "put a token after every text: this or the tokenizer's; of bytes 256, for a vocabulary of "
     "257"},
    {"force", 0, FLAG_SWITCH, offsetof(struct pack_values, force), NULL,
     "replace the file if it is there"},
    {.name = NULL},
};

static void pack_print_json(const struct common *common, const char *file,
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

static void pack_print_table(const struct common *common, const char *file,
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
static int pack_check_to(const char *to, struct error *err)
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

struct packing {
    const struct pack_values *values;
    struct progress progress;
    struct executor executor;
    int signals;
    int signal;                 /* that has ended it; 0: none */
    bool insists;               /* a second one has come */
    Gimbal__ExecutorEvent *end; /* NULL: it has not said how it ended */
};

/* Our standard input under a number that the child does not use otherwise; -1: it is not read. */
static int pack_open_input(const struct invocation *invocation, int *out, struct error *err)
{
    int count = 0;
    *out = -1;
    for (int i = 0; i < invocation->argument_count; i++)
        count += strcmp(invocation->arguments[i], "-") == 0;
    if (count == 0)
        return 0;
    if (count > 1)
        return error_set(err, -EINVAL, "'-' is given %d times: standard input can be read once",
                         count);
    if (isatty(STDIN_FILENO))
        return error_set(err, -EINVAL,
                         "'-' is standard input, which is a terminal: pipe a text into it");
    *out = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return *out >= 0 ? 0 : error_set(err, -errno, "read standard input: %s", strerror(errno));
}

/* Its flag; "" is without a value, NULL none. */
static void add_end_of_text(struct executor *executor, const char *token)
{
    char *word = token && *token ? xasprintf("--end-of-text=%s", token) : NULL;
    if (token)
        executor_word(executor, word ? word : "--end-of-text");
    free(word);
}

static int pack_start(struct packing *packing, const struct invocation *invocation, int input,
                      struct error *err)
{
    const struct pack_values *values = packing->values;
    struct executor *executor = &packing->executor;
    int rc = executor_begin(executor, err);
    if (rc < 0)
        return rc;
    executor_flag(executor, "--pack", values->to);
    if (input >= 0)
        executor_fd(executor, "--stdin", input);
    executor_flag(executor, "--tokenizer", values->tokenizer);
    add_end_of_text(executor, values->end_of_text);
    if (values->force)
        executor_word(executor, "--force");
    executor_word(executor, "--");
    for (int i = 0; i < invocation->argument_count; i++)
        executor_word(executor, invocation->arguments[i]);
    return executor_start(executor, STDERR_FILENO, STDERR_FILENO, err);
}

static void pack_show(struct packing *packing, const Gimbal__ExecutorPacking *state)
{
    char line[PROGRESS_TEXT_SIZE], done[32], total[32];
    double bytes = (double)state->bytes, all = (double)state->bytes_total;
    units_print_bytes(done, sizeof done, bytes);
    if (all > 0) /* a file may grow while it is read */
        snprintf(line, sizeof line, "packed %s of %s  %.1f%%", done,
                 units_print_bytes(total, sizeof total, all),
                 bytes < all ? 100 * bytes / all : 100);
    else
        snprintf(line, sizeof line, "packed %s", done);
    progress_show(&packing->progress, line, clock_s());
}

/* Read everything that has arrived; -EPIPE: it has closed its side. */
static int pack_read_events(struct packing *packing, struct error *err)
{
    Gimbal__ExecutorEvent *event;
    int rc;
    while ((rc = executor_read(&packing->executor, 0, &event, err)) > 0) {
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PACKING)
            pack_show(packing, event->packing);
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PACKED && !packing->end)
            packing->end = event;
        else
            message_free(&event->base);
    }
    return rc;
}

/* Once nothing can be said to it any more, the executor removes what it has written, ends, and says
 * how. */
static void pack_take_signal(struct packing *packing, int signal)
{
    packing->insists = packing->signal != 0;
    packing->signal = signal;
    shutdown(packing->executor.channel.fd, SHUT_WR);
}

/* Follow until the executor closes its side, or until a second signal. */
static int pack_follow(struct packing *packing, struct error *err)
{
    int rc = 0;
    while (rc == 0 && !packing->insists) {
        struct pollfd fds[] = {{packing->executor.channel.fd, POLLIN, 0},
                               {packing->signals, POLLIN, 0}};
        poll(fds, 2, -1);
        int signal = signals_take(packing->signals);
        if (signal)
            pack_take_signal(packing, signal);
        rc = pack_read_events(packing, err);
    }
    if (rc != -EPIPE)
        return rc;
    err->text[0] = '\0';
    return 0;
}

static int pack_conclude(const struct packing *packing, int rc, struct error *err)
{
    if (rc < 0)
        return exit_of_errno(rc);
    bool packed = packing->end && !packing->end->packed->failed;
    if (!packed && packing->signal)
        return error_set(err, EXIT_SIGNAL + packing->signal, "interrupted: '%s' is not written",
                         packing->values->to);
    if (!packing->end)
        return executor_explain_end(&packing->executor, EXIT_FAILED, err);
    if (!packed)
        return error_set(err, exit_of_errno(-(int)packing->end->packed->failed), "%s",
                         packing->end->packed->error);
    return EXIT_DONE;
}

/* An enum exit_code. */
static int pack_texts(struct packing *packing, const struct invocation *invocation, int input,
                      struct error *err)
{
    packing->signals = signals_open(err);
    if (packing->signals < 0)
        return exit_of_errno(packing->signals);
    progress_open(&packing->progress, stderr, invocation->common.quiet);
    int rc = pack_start(packing, invocation, input, err);
    if (rc == 0)
        rc = pack_follow(packing, err);
    executor_end(&packing->executor, packing->insists ? 0 : PATIENCE_MS);
    progress_clear(&packing->progress);
    close(packing->signals);
    int code = pack_conclude(packing, rc, err);
    executor_finish(&packing->executor);
    return code;
}

static int pack_run(const struct invocation *invocation, struct error *err)
{
    const struct common *common = &invocation->common;
    struct packing packing = {.values = invocation->values};
    const char *to = packing.values->to;
    int input, code = pack_check_to(to, err);
    if (code == EXIT_DONE && pack_open_input(invocation, &input, err) < 0)
        code = EXIT_USAGE;
    if (code != EXIT_DONE)
        return code;
    code = pack_texts(&packing, invocation, input, err);
    if (input >= 0)
        close(input);
    if (code == EXIT_DONE && common->output >= OUTPUT_JSON)
        pack_print_json(common, to, packing.end->packed);
    else if (code == EXIT_DONE)
        pack_print_table(common, to, packing.end->packed);
    message_free((ProtobufCMessage *)packing.end);
    return code;
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
    .run = pack_run,
};

struct data_show_values {
    const char *tokenizer;
    int format;
    const char *end_of_text;
};

static const struct flag data_show_flags[] = {
    {"format", 0, FLAG_WORD, offsetof(struct data_show_values, format), "FORMAT",
     "uint16 or uint32: files without a header, as data.format of a job (auto)",
     .words = job_formats},
    {"tokenizer", 0, FLAG_TEXT, offsetof(struct data_show_values, tokenizer), "bytes|PATH",
     "what the tokens are: bytes, a tokenizer.json or the folder of one"},
    {"end-of-text", 0, FLAG_TEXT, offsetof(struct data_show_values, end_of_text), "TOKEN",
     "with --tokenizer: the token that ends documents (the tokenizer's)"},
    {.name = NULL},
};

/* What is printed at the end, if all files could be read. */
struct shown {
    struct table *table;
    json_t *items;
};

static json_t *data_show_json_of(const Gimbal__ExecutorShown *shown)
{
    json_t *first = json_array();
    for (size_t i = 0; i < shown->n_first; i++)
        json_array_append_new(first, json_integer(shown->first[i]));
    char *text = text_clean(shown->text.data, shown->text.len);
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
static char *data_show_print_beginning(const Gimbal__ExecutorShown *shown)
{
    char *out = NULL;
    if (shown->text_known) {
        size_t size = shown->text.len < TEXT_SHOWN ? shown->text.len : TEXT_SHOWN;
        size -= text_cut(shown->text.data, size);
        char *text = text_clean(shown->text.data, size);
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

static void data_show_add_number(struct table *table, bool known, uint64_t number)
{
    if (known)
        table_add(table, "%" PRIu64, number);
    else
        table_add(table, "%s", "");
}

static void data_show_take(struct shown *shown, const Gimbal__ExecutorShown *one)
{
    char size[32], *beginning = data_show_print_beginning(one);
    json_array_append_new(shown->items, data_show_json_of(one));
    table_add(shown->table, "%s", one->file);
    table_add(shown->table, "%s", one->format);
    table_add(shown->table, "%" PRIu32, 8 * one->token_bytes);
    table_add(shown->table, "%" PRIu64, one->tokens);
    data_show_add_number(shown->table, one->documents_known, one->documents);
    data_show_add_number(shown->table, one->tokens > 0, one->smallest);
    data_show_add_number(shown->table, one->tokens > 0, one->largest);
    table_add(shown->table, "%s", units_print_bytes(size, sizeof size, (double)one->file_bytes));
    table_add(shown->table, "%s", beginning);
    free(beginning);
}

static int data_show_start(struct executor *executor, const struct invocation *invocation,
                           struct error *err)
{
    const struct data_show_values *values = invocation->values;
    int rc = executor_begin(executor, err);
    if (rc < 0)
        return rc;
    executor_word(executor, "--show");
    executor_flag(executor, "--format", job_formats[values->format]);
    executor_flag(executor, "--tokenizer", values->tokenizer);
    add_end_of_text(executor, values->end_of_text);
    executor_word(executor, "--");
    for (int i = 0; i < invocation->argument_count; i++)
        executor_word(executor, invocation->arguments[i]);
    return executor_start(executor, STDERR_FILENO, STDERR_FILENO, err);
}

/* Read until the executor closes its side: -EPIPE. *failed is the message with which it failed, for
 * the caller to free; NULL: it has sent none. */
static int data_show_read_all(struct executor *executor, struct shown *shown,
                              Gimbal__ExecutorEvent **failed, struct error *err)
{
    Gimbal__ExecutorEvent *event;
    int rc;
    while ((rc = executor_read(executor, -1, &event, err)) > 0) {
        bool is_shown = event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_SHOWN;
        if (is_shown && event->shown->failed && !*failed) {
            *failed = event;
            continue;
        }
        if (is_shown && !event->shown->failed)
            data_show_take(shown, event->shown);
        message_free(&event->base);
    }
    return rc;
}

/* What it says of itself comes first. */
static int data_show_conclude(const struct executor *executor, const Gimbal__ExecutorEvent *failed,
                              int rc, struct error *err)
{
    int status = executor->process.status;
    if (failed) {
        int number = (int)failed->shown->failed;
        int code = number == ERANGE ? EXIT_INPUT : exit_of_errno(-number); /* of a token */
        return error_set(err, code, "%s", failed->shown->error);
    }
    if (rc != -EPIPE)
        return exit_of_errno(rc);
    err->text[0] = '\0'; /* that it has closed its side */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_DONE;
    return executor_explain_end(executor, EXIT_FAILED, err);
}

/* A signal ends us, and the executor with us: it has nothing to clean up. An enum exit_code. */
static int data_show_files(const struct invocation *invocation, struct shown *shown,
                           struct error *err)
{
    struct executor executor;
    Gimbal__ExecutorEvent *failed = NULL;
    int code, rc = data_show_start(&executor, invocation, err);
    if (rc < 0) {
        code = exit_of_errno(rc);
    } else {
        rc = data_show_read_all(&executor, shown, &failed, err);
        executor_end(&executor, -1);
        code = data_show_conclude(&executor, failed, rc, err);
    }
    executor_finish(&executor);
    message_free((ProtobufCMessage *)failed);
    return code;
}

static int data_show_run(const struct invocation *invocation, struct error *err)
{
    const struct data_show_values *values = invocation->values;
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
    const struct common *common = &invocation->common;
    if (values->end_of_text && !values->tokenizer)
        return error_set(err, EXIT_USAGE,
                         "--end-of-text is a token of a --tokenizer: name it, too");
    struct shown shown = {.table = table_create(columns, sizeof columns / sizeof *columns),
                          .items = json_array()};
    int code = data_show_files(invocation, &shown, err);
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
    .flags = data_show_flags,
    .values_size = sizeof(struct data_show_values),
    .takes = TAKES_OUTPUT,
    .run = data_show_run,
};

static const struct command *const data_below[] = {&command_data_pack, &command_data_show, NULL};

const struct command command_data = {
    .name = "data",
    .summary = "Prepare and check the data that jobs learn from",
    .arguments = "pack|show ...",
    .below = data_below,
};
