/* tokens.c - two modes about files of tokens: writes texts as one, and tells what such files hold.
 *
 * Packing reports how far it is and how that ended. It ends early when the process that started it
 * goes away or closes the channel. Signals are left aside, so that nothing half-written stays
 * behind. Showing sends one message a file. */
#include "worker/executor/modes.h"

#include "common/base/text.h"
#include "common/message/channel.h"
#include "common/message/message.h"
#include "proto/executor.pb-c.h"
#include "worker/data/tokens.h"
#include "worker/tokenizer/byte_buffer.h"
#include "worker/tokenizer/pack.h"
#include "worker/tokenizer/tokenizer.h"

#include <signal.h>
#include <string.h>

#define FIRST_TOKENS 32

static void pack_send_progress(void *data, uint64_t bytes, uint64_t total)
{
    Gimbal__ExecutorPacking packing = GIMBAL__EXECUTOR_PACKING__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    packing.bytes = bytes;
    packing.bytes_total = total;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PACKING;
    event.packing = &packing;
    channel_write(data, &event.base, NULL); /* a broken channel is noticed by pack_run */
}

static void pack_send_end(struct channel *channel, const struct pack_request *request,
                          const struct pack_result *result, int rc, struct error *err)
{
    Gimbal__ExecutorPacked packed = GIMBAL__EXECUTOR_PACKED__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    packed.documents = result->documents;
    packed.text_bytes = result->text_bytes;
    packed.tokens = result->tokens;
    packed.file_bytes = result->file_bytes;
    packed.vocab = request->tokenizer ? (uint32_t)tokenizer_size(request->tokenizer) : 0;
    packed.failed = (uint32_t)-rc;
    if (rc < 0) {
        text_mend(err->text); /* a file name need not be valid UTF-8 */
        packed.error = err->text;
    }
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PACKED;
    event.packed = &packed;
    channel_write(channel, &event.base, NULL);
}

int executor_pack(const struct executor_options *options, struct error *err)
{
    struct channel channel;
    struct pack_result result = {0};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    channel_open(&channel, options->channel);
    struct tokenizer *tokenizer = NULL;
    const char *end = options->end_of_text;
    int rc = 0;
    if (options->tokenizer)
        rc = tokenizer_open(options->tokenizer, &tokenizer, err);
    else
        tokenizer_open_bytes(end, &tokenizer);
    if (rc == 0 && end && *end)
        rc = tokenizer_set_end(tokenizer, end, err);
    const struct pack_request request = {.names = options->names,
                                         .name_count = options->name_count,
                                         .input = options->input,
                                         .tokenizer = tokenizer,
                                         .out = options->pack,
                                         .end_of_text = options->end_of_text,
                                         .force = options->force,
                                         .end = options->channel,
                                         .progress_cb = pack_send_progress,
                                         .data = &channel};
    if (rc == 0)
        rc = pack_run(&request, &result, err);
    pack_send_end(&channel, &request, &result, rc, err);
    channel_close(&channel);
    tokenizer_close(tokenizer);
    return rc;
}

static enum job_format show_format(const char *word)
{
    for (int i = 0; word && job_formats[i]; i++)
        if (strcmp(job_formats[i], word) == 0)
            return (enum job_format)i;
    return JOB_FORMAT_AUTO;
}

static int show_open_tokenizer(const char *name, struct tokenizer **out, struct error *err)
{
    if (!name || strcmp(name, "bytes") != 0)
        return name ? tokenizer_open(name, out, err) : 0;
    tokenizer_open_bytes(true, out);
    return 0;
}

/* What the file says, or else how often the token is there that ends one; what is behind the last
 * of these is a document, too. */
static void count_documents(const struct token_file *file, const struct tokenizer *tokenizer,
                            Gimbal__ExecutorShown *out)
{
    const struct elements elements = file->elements;
    int32_t end = tokenizer ? tokenizer_end(tokenizer) : -1;
    out->documents_known = file->documents != DOCUMENTS_UNKNOWN || end >= 0;
    if (file->documents != DOCUMENTS_UNKNOWN)
        out->documents = file->documents;
    else if (end >= 0 && elements.count)
        out->documents = elements_count(elements, (uint32_t)end) +
                         (elements_at(elements, elements.count - 1) != (uint32_t)end);
}

static void decode_first(const Gimbal__ExecutorShown *shown, const struct tokenizer *tokenizer,
                         struct byte_buffer *out)
{
    for (size_t i = 0; i < shown->n_first; i++) {
        size_t size;
        const char *text = tokenizer_text(tokenizer, shown->first[i], &size);
        byte_buffer_add(out, text ? text : "", text ? size : 0);
    }
    out->size -= text_cut(out->bytes, out->size);
}

static void show_send(struct channel *channel, Gimbal__ExecutorShown *shown)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_SHOWN;
    event.shown = shown;
    channel_write(channel, &event.base, NULL); /* if nobody reads it, nobody needs it */
}

static void show_send_file(struct channel *channel, const struct token_file *file,
                           const char *format, const struct tokenizer *tokenizer)
{
    const struct elements elements = file->elements;
    Gimbal__ExecutorShown shown = GIMBAL__EXECUTOR_SHOWN__INIT;
    uint32_t first[FIRST_TOKENS] = {0};
    struct byte_buffer text;
    byte_buffer_init(&text);
    shown.file = file->path;
    shown.format = (char *)format;
    shown.token_bytes = (uint32_t)elements.width;
    shown.tokens = elements.count;
    shown.file_bytes = file->file.size;
    count_documents(file, tokenizer, &shown);
    if (elements.count)
        elements_range(elements, &shown.smallest, &shown.largest);
    for (; shown.n_first < FIRST_TOKENS && shown.n_first < elements.count; shown.n_first++)
        first[shown.n_first] = elements_at(elements, shown.n_first);
    shown.first = first;
    shown.text_known = tokenizer != NULL;
    if (tokenizer)
        decode_first(&shown, tokenizer, &text);
    shown.text = (ProtobufCBinaryData){text.size, (uint8_t *)text.bytes};
    show_send(channel, &shown);
    byte_buffer_finish(&text);
}

static int show_file(struct channel *channel, const char *path, const char *told,
                     const struct tokenizer *tokenizer, struct error *err)
{
    struct token_file file;
    const struct data_format *format;
    int rc = token_file_open(path, show_format(told), &file, &format, err);
    if (rc == 0 && tokenizer)
        rc = token_file_check(
            &file, (struct token_limit){tokenizer_size(tokenizer), "the size of the tokenizer"},
            err);
    if (rc == 0)
        show_send_file(channel, &file, format->name, tokenizer);
    token_file_finish(&file);
    return rc;
}

int executor_show(const struct executor_options *options, struct error *err)
{
    struct channel channel;
    struct tokenizer *tokenizer = NULL;
    channel_open(&channel, options->channel);
    int rc = show_open_tokenizer(options->tokenizer, &tokenizer, err);
    if (rc == 0 && tokenizer && options->end_of_text)
        rc = tokenizer_set_end(tokenizer, options->end_of_text, err);
    for (size_t i = 0; i < options->name_count && rc == 0; i++)
        rc = show_file(&channel, options->names[i], options->format, tokenizer, err);
    if (rc < 0) {
        Gimbal__ExecutorShown failure = GIMBAL__EXECUTOR_SHOWN__INIT;
        failure.failed = (uint32_t)-rc;
        failure.error = err->text;
        show_send(&channel, &failure);
    }
    channel_close(&channel);
    tokenizer_close(tokenizer);
    return rc;
}
